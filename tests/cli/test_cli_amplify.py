"""`sfumato amplify` prints the levels that `sf.amplify` returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli import main


def test_table_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    policy = sf.Uniform(sf.Domain.range(4), 2)
    mechanism = sf.mechanisms.RandomizedResponse(policy.domain, 2)
    sf.save_policy(policy, "policy.toml")
    Path("mechanism.json").write_text(mechanism.to_json(), encoding="utf-8")
    command = ("amplify", "mechanism.json", "--policy", "policy.toml", "--n", "1e4", "--delta", "1e-6")
    wanted = sf.amplify(mechanism, policy, 10_000, "1e-6")
    assert main(command) == 0
    assert f"central ε at most {float(wanted.epsilon):.5g}" in capsys.readouterr().out
    assert main((*command, "--pairs", "3", "1", "--minimum-counts", "100", "--json")) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["value"], row["other"]) for row in document["rows"]] == [(3, 1)]
    assert document["epsilon"] == wanted.epsilon.upper_float()
