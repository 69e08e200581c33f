"""The methods "bayes" and "best" on the command line, with the option --smooth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.collecting import Aggregate
from sfumato.mechanisms import HadamardResponse


def written(folder: Path) -> tuple[Aggregate, list[str]]:
    """Write a mechanism and counts, and return the counts and the arguments that name both files."""
    mechanism = HadamardResponse(sf.Domain.range(40), 1)
    law = mechanism.estimator.expected_counts(np.arange(1, 41) ** -1.0 / np.sum(np.arange(1, 41) ** -1.0))
    counts = Aggregate(mechanism.hash, 5000, np.random.default_rng(1).multinomial(5000, law))
    names = [str(folder / name) for name in ("mechanism.json", "counts.json")]
    Path(names[0]).write_text(json.dumps(mechanism.spec))
    Path(names[1]).write_text(counts.to_json())
    return counts, names


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [False, True])
def test_best_states_its_choice(smooth: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts, names = written(tmp_path)
    arguments = ["estimate", *names, "--method", "best", *(["--smooth"] if smooth else [])]
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    mechanism = HadamardResponse(sf.Domain.range(40), 1)
    expected = sf.estimate(mechanism, counts, "best", smooth=smooth)
    assert expected.choice is not None
    assert document["choice"] == pytest.approx(expected.choice.to_dict())
    assert [row["frequency"] for row in document["rows"]] == pytest.approx(expected.frequencies.tolist())
    assert main(arguments) == 0
    assert f"Method best chose {expected.choice.method}, because" in capsys.readouterr().out


def test_smooth_needs_a_method_with_a_prior(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, names = written(tmp_path)
    assert main(["estimate", *names, "--smooth"]) != 0
    assert "smooth must be left out with method 'unbiased'" in capsys.readouterr().err
