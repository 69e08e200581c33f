"""A pandas Series of reports remembers its mechanism: every use with another mechanism is rejected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sfumato as sf
from sfumato.collecting import encode_batch, write_reports
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, RandomizedResponse, UnaryEncoding

DOMAIN = sf.Domain(["a", "b", "c"])
VALUES = pd.Series(["a"] * 60 + ["b"] * 25 + ["c"] * 15)
#: Uses of a mechanism with a column of reports.
USES: dict[str, Callable[[Mechanism, Any, Path], Any]] = {
    "aggregate": lambda mechanism, reports, _: sf.aggregate(mechanism, reports),
    "pieces": lambda mechanism, reports, _: sf.aggregate(mechanism, iter([reports[:50], reports[50:]])),
    "groups": lambda mechanism, reports, _: sf.aggregate_groups(mechanism, reports, VALUES.rename("g")),
    "batch": lambda mechanism, reports, _: encode_batch(mechanism, reports),
    "file": lambda mechanism, reports, folder: write_reports(mechanism, reports, folder / "reports.sfb"),
}
#: What keeps the attributes of a Series.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda reports: reports,
    "slice": lambda reports: reports[10:].reset_index(drop=True)[:90].set_axis(VALUES.index[:90]),
    "mask": lambda reports: reports[VALUES != "d"],
    "copy": lambda reports: reports.copy(),
    "two of one mechanism": lambda reports: pd.concat([reports[:50], reports[50:]]),
}


@pytest.mark.parametrize("kind", [RandomizedResponse, UnaryEncoding])
@pytest.mark.parametrize("use", USES)
def test_reports_of_another_mechanism_are_rejected(kind: Any, use: str, tmp_path: Path) -> None:
    reports = sf.privatize(kind(DOMAIN, 1), VALUES, sf.InsecureSeeded(1))
    USES[use](kind(DOMAIN, 1), reports, tmp_path)
    with pytest.raises(InvalidInput, match=r"attrs\['sfumato.mechanism'\] must be .*another mechanism"):
        USES[use](kind(DOMAIN, 3), reports, tmp_path)


@pytest.mark.parametrize("view", VIEWS)
def test_parts_of_a_column_remember_the_mechanism(view: str) -> None:
    reports = VIEWS[view](sf.privatize(RandomizedResponse(DOMAIN, 1), VALUES, sf.InsecureSeeded(1)))
    assert sf.aggregate(RandomizedResponse(DOMAIN, 1), reports).n == len(reports)
    with pytest.raises(InvalidInput, match="another mechanism"):
        sf.aggregate(RandomizedResponse(DOMAIN, 3), reports)
