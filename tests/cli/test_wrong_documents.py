"""A document of one kind in the place of another is rejected in the words of both kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli import main

DOMAIN = sf.Domain(["no", "yes"])
KINDS = {
    "the spec of a mechanism": "mechanism",
    "a policy": "policy",
    "a certificate": "certificate",
    "an aggregate": "counts",
    "an estimate": "estimate",
    "a plan": "plan",
}
#: The place of a document in a command, and the kind that belongs there.
PLACES: dict[str, tuple[list[str], str]] = {
    "verify": (["verify", "{}"], "a certificate"),
    "check": (["check", "{}"], "a policy"),
    "estimate": (["estimate", "{}", "counts.json"], "the spec of a mechanism"),
    "estimate counts": (["estimate", "mechanism.json", "{}"], "an aggregate"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    policy = sf.Uniform(DOMAIN, 1)
    mechanism = sf.mechanisms.RandomizedResponse(DOMAIN, 1)
    counts = sf.aggregate(mechanism, [0, 1, 1])
    documents = {
        "mechanism": mechanism.spec,
        "policy": policy.to_dict(),
        "certificate": sf.audit(mechanism, policy).to_dict(),
        "counts": json.loads(counts.to_json()),
        "estimate": sf.estimate(mechanism, counts).to_dict(),
        "plan": sf.plan(policy, 1000, max_seconds=0).to_dict(),
    }
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_message_names_both_kinds(kind: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, wanted = PLACES[place]
    code = main([argument.format(f"{KINDS[kind]}.json") for argument in arguments])
    if kind == wanted:
        assert code == 0
    else:
        assert code == 2
        assert f"the document must be {wanted}; got {kind}" in capsys.readouterr().err


def test_json_that_is_not_a_document_is_rejected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "list.json").write_text("[1, 2]", encoding="utf-8")
    assert main(["verify", "list.json"]) == 2
    assert "the document must be a certificate, a JSON object; got [1, 2]" in capsys.readouterr().err
