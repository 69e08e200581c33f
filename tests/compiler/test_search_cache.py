"""Results of searches in a folder: found again, audited, and never trusted blindly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import InvalidInput

POLICY = sf.Metric(sf.Domain.range(5), "absolute", 1)


def test_a_search_is_not_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "searches"
    rounds: list[object] = []
    first = sf.optimal(POLICY, cache=folder, progress=rounds.append)
    assert rounds
    rounds.clear()
    second = sf.optimal(POLICY, cache=str(folder), progress=rounds.append)
    assert not rounds
    assert second.to_dict() == first.to_dict()
    assert sf.design(POLICY, cache=folder, progress=rounds.append).hash == first.mechanism.hash
    assert len(list(folder.iterdir())) == 1


def test_other_searches_have_other_files(tmp_path: Path) -> None:
    sf.optimal(POLICY, cache=tmp_path)
    sf.optimal(POLICY, prior=[0.5, 0.2, 0.1, 0.1, 0.1], cache=tmp_path)
    sf.optimal(POLICY, "mutual-information", cache=tmp_path)
    sf.optimal(POLICY, sf.SquaredError([0, 1, 2, 3, 4]), cache=tmp_path)
    sf.optimal(POLICY, sf.SquaredError([0, 0, 0, 1, 1]), cache=tmp_path)
    sf.optimal(sf.Metric(POLICY.domain, "absolute", 2), cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 6


def test_a_longer_search_replaces_one_that_ran_out_of_time(tmp_path: Path) -> None:
    first = sf.optimal(POLICY, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    document = json.loads(file.read_text())
    document["optimum"]["status"] = "time"
    document["optimum"]["value"] = 1000.0
    document["seconds"] = 5
    file.write_text(json.dumps(document))
    assert sf.optimal(POLICY, cache=tmp_path, max_seconds=4).value == 1000.0
    assert sf.optimal(POLICY, cache=tmp_path, max_seconds=6).value == first.value


@pytest.mark.parametrize("damage", ["violation", "other domain", "not JSON", "a list"])
def test_a_file_that_cannot_be_trusted_is_not_used(tmp_path: Path, damage: str) -> None:
    first = sf.optimal(POLICY, cache=tmp_path)
    (file,) = tmp_path.iterdir()
    document = json.loads(file.read_text())
    if damage == "violation":
        looser = sf.optimal(sf.Metric(POLICY.domain, "absolute", 3))
        document["optimum"]["mechanism"] = looser.mechanism.spec
    if damage == "other domain":
        document["optimum"] = sf.optimal(sf.Metric(sf.Domain(list("abcde")), lambda a, b: int(a != b), 1)).to_dict()
    contents = {"not JSON": "{", "a list": "[1]"}
    file.write_text(contents.get(damage, json.dumps(document)))
    again = sf.optimal(POLICY, cache=tmp_path)
    assert again.mechanism.hash == first.mechanism.hash
    assert sf.audit(again.mechanism, POLICY).holds


def test_the_cache_is_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for cache in (file, 3):
        with pytest.raises(InvalidInput, match="cache must be the path of a folder"):
            sf.optimal(POLICY, cache=cache)  # type: ignore[arg-type]


def test_rounds_and_not_time_make_a_search_reproducible() -> None:
    policy = sf.Metric(sf.Domain.range(14), "absolute", "0.4")
    first, second = (sf.optimal(policy, max_rounds=6) for _ in range(2))
    assert first.mechanism.hash == second.mechanism.hash
    assert sf.optimal(policy, max_rounds=1).value > first.value
    with pytest.raises(InvalidInput, match="max_rounds"):
        sf.optimal(policy, max_rounds=0)
