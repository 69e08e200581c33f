"""``sfumato design --lifetime``: a memoized mechanism, with both levels audited."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.mechanisms import MemoizedMechanism

DOMAIN = sf.Domain(["none", "flu", "hiv"])


@pytest.fixture
def policies(tmp_path: Path) -> list[str]:
    """Paths of a policy of one report and of a lifetime policy."""
    paths = [str(tmp_path / name) for name in ("policy.toml", "lifetime.toml")]
    for path, epsilon in zip(paths, ("0.5", "1"), strict=True):
        sf.save_policy(sf.HighLow(DOMAIN, ["hiv"], epsilon), path)
    return paths


def test_design_writes_a_memoized_mechanism(
    policies: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, lifetime = policies
    output = tmp_path / "mechanism.json"
    command = ["design", first, "--lifetime", lifetime, "--max-changes", "2", "-o", str(output)]
    assert main(command) == 0
    assert "all reports about one value: " in capsys.readouterr().out
    mechanism = sf.mechanism_from_spec(output.read_text(encoding="utf-8"))
    assert isinstance(mechanism, MemoizedMechanism)
    expected = sf.design(sf.load_policy(first), lifetime=sf.load_policy(lifetime), max_changes=2)
    assert mechanism == expected
    assert main([*command, "--json"]) == 0
    assert "within the limit e^1" in json.loads(capsys.readouterr().out)["lifetime"]


def test_settings_need_a_lifetime(policies: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, lifetime = policies
    output = str(tmp_path / "mechanism.json")
    assert main(["design", first, "--refresh-every", "7", "-o", output]) == 2
    assert "--refresh-every must be used together with --lifetime" in capsys.readouterr().err
    assert main(["design", lifetime, "--lifetime", first, "-o", output]) == 2
    assert "lifetime must be implied by the policy of one report" in capsys.readouterr().err
