"""Results of experiments: rows with published and measured numbers, claims of the paper, and a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from papers.figure import Panel
from sfumato.datasets.folder import Loaded

__all__ = ["Claim", "Result", "Row"]

_FIXED = ("setting", "published", "measured", "ours")


@dataclass(frozen=True)
class Row:
    """One setting: the number in the paper, the same number measured here, and the number of our best mechanism.

    ``published`` is None if the paper shows only a curve. ``ours`` is None if no better mechanism exists. ``details``
    are further columns.
    """

    setting: str
    published: float | None
    measured: float | None
    ours: float | None = None
    details: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper about its figure, whether it holds here, and the finding."""

    text: str
    holds: bool
    finding: str


@dataclass(frozen=True)
class Result:
    """The result of one run of an experiment.

    ``quantity`` describes the numbers, ``ours_is`` describes the column "ours", and ``notes`` explain differences from
    the published numbers.
    """

    quantity: str
    ours_is: str
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    panels: tuple[Panel, ...]
    sources: tuple[Loaded[Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """Return everything but the figure as a JSON document; infinite and undefined numbers are null."""
        return {
            "quantity": self.quantity,
            "ours_is": self.ours_is,
            "data": [{"source": each.source, "stand_in": each.stand_in} for each in self.sources],
            "rows": [
                {
                    "setting": row.setting,
                    "published": _finite(row.published),
                    "measured": _finite(row.measured),
                    "ours": _finite(row.ours),
                    **{name: _finite(value) for name, value in row.details.items()},
                }
                for row in self.rows
            ],
            "claims": [{"claim": each.text, "holds": each.holds, "found": each.finding} for each in self.claims],
            "notes": list(self.notes),
        }

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return headings and cells as strings, without empty columns."""
        document = self.document()["rows"]
        names = list(dict.fromkeys([*_FIXED, *(name for row in document for name in row)]))
        columns = [name for name in names if any(row.get(name) is not None for row in document)]
        return tuple(columns), [tuple(_text(row.get(name)) for name in columns) for row in document]


def _finite(value: Any) -> Any:
    """Return a number or a string, or None if the number is not finite."""
    if isinstance(value, str) or value is None:
        return value
    return float(value) if math.isfinite(value) else None


def _text(value: Any) -> str:
    """Return a cell as a string."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.4g}"
