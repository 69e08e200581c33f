"""What an experiment gives: rows with the published numbers, what the paper says of them, and a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.papers.data.folder import Loaded
from sfumato.papers.figure import Panel

__all__ = ["Claim", "Result", "Row"]

_FIXED = ("setting", "published", "measured", "ours")


@dataclass(frozen=True)
class Row:
    """One setting: the number printed in the paper, the same measured here, and what our best mechanism does.

    ``published`` is None where the paper has only a curve, ``ours`` where there is nothing to go beyond. ``details``
    are further columns.
    """

    setting: str
    published: float | None
    measured: float | None
    ours: float | None = None
    details: Mapping[str, float | str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """What the paper's text says of its figure, whether that was found here, and what was found."""

    text: str
    holds: bool
    finding: str


@dataclass(frozen=True)
class Result:
    """One experiment, run once.

    ``quantity`` says what the numbers are, ``ours_is`` what stands in the column "ours", ``notes`` how far the numbers
    are from the published ones, and why.
    """

    quantity: str
    ours_is: str
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    panels: tuple[Panel, ...]
    sources: tuple[Loaded[Any], ...] = ()

    def document(self) -> dict[str, Any]:
        """All but the figure, for JSON; what is infinite or undefined is null there."""
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
        """Headings and cells as text; a column that would be empty is left out."""
        document = self.document()["rows"]
        names = list(dict.fromkeys([*_FIXED, *(name for row in document for name in row)]))
        columns = [name for name in names if any(row.get(name) is not None for row in document)]
        return tuple(columns), [tuple(_text(row.get(name)) for name in columns) for row in document]


def _finite(value: Any) -> Any:
    if isinstance(value, str) or value is None:
        return value
    return float(value) if math.isfinite(value) else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.4g}"
