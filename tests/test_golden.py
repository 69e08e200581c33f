"""The golden corpus: a fast part of it agrees with the library, and the list of features is true."""

from __future__ import annotations

import tomllib

import pytest

from support import golden
from support.golden_cases import CASES, LARGE
from support.golden_features import FEATURES, has_feature
from support.golden_grid import GRID

LIST: dict[str, dict[str, str]] = tomllib.loads((golden.FOLDER / "features.toml").read_text(encoding="utf-8"))
#: The smallest cases of every name, and the fields of a case that are read without compiling a kernel.
SMALL = [key for key in CASES if key.endswith(("/k=3", "/k=4", "/labels", "/robust", "/policy", "/three"))]
FAST = ("report", "law", "risks")
#: Every tenth plan over few values.
PLANS = [key for key in GRID if key.startswith(("uniform", "high-low", "blocks"))][::10]


def unlisted(path: str, before: object, after: object) -> list[str]:
    return [str(change) for change in golden.compared(path, before, after) if golden.listed(change) is None]


def test_every_case_is_recorded() -> None:
    names = {key.partition("/")[0] for key in CASES}
    files = {path.stem for path in golden.FOLDER.glob("*.json")} - {"plans"}
    assert files == names == set(LARGE)
    assert names <= set(LIST)
    assert {key for name in names for key in golden.recorded(name)} == set(CASES)
    assert set(golden.recorded("plans")) == set(GRID)
    sizes = [path.stat().st_size for path in golden.FOLDER.iterdir()]
    assert sum(sizes) < 2_000_000
    assert max(sizes) < 700_000


@pytest.mark.parametrize("key", SMALL)
def test_the_mechanism_is_the_recorded_one(key: str) -> None:
    before = golden.recorded(key.partition("/")[0])[key]
    now = golden.measured_case(key, FAST)
    assert not unlisted(key, {field: before[field] for field in FAST}, now)


@pytest.mark.slow
@pytest.mark.parametrize("key", PLANS)
def test_the_plan_is_the_recorded_one(key: str) -> None:
    assert not unlisted(f"plans.{key}", golden.recorded("plans")[key], golden.measured_plan(key))


def test_differences_are_found() -> None:
    before = {"law": {"sorted": "ab"}, "risks": [1.0, 2.0], "mle": [1.0]}
    assert not list(golden.compared("x", before, {**before, "risks": [1.0, 2.0 + 1e-9], "mle": [1.00001]}))
    changes = list(golden.compared("x", before, {"law": {"sorted": "ac"}, "risks": [1.1, 2.0], "mle": [1.001]}))
    assert [change.path for change in changes] == ["x.law.sorted", "x.risks[0]", "x.mle[0]"]
    assert "+10.00%" in str(changes[1])
    assert [golden.listed(change, [("x.risks*", "why")]) for change in changes] == [None, "why", None]


@pytest.mark.slow
@pytest.mark.parametrize("name", LIST)
def test_the_list_of_features_is_true(name: str) -> None:
    """A feature is present if the list says yes, kept, moved or gained, and absent if it says no or dropped."""
    assert list(LIST[name]) == list(FEATURES)
    for feature, entry in LIST[name].items():
        word, _, reason = entry.partition(": ")
        assert word in ("yes", "no", "kept", "moved", "gained", "dropped"), entry
        assert reason or word not in ("moved", "dropped"), f"{name}.{feature} has no reason"
        if name in {key.partition("/")[0] for key in CASES}:
            assert has_feature(name, feature) == (word not in ("no", "dropped")), f"{name}.{feature} is {entry}"
