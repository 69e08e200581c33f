"""The reports of parts as integers."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from sfumato._core import Integers
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.systems.base import OUTSIDE

__all__ = ["Numbering"]


class Numbering:
    """Reports of several mixtures, and of unprotected values, as integers; see the notes of ``Parts``."""

    def __init__(self, parts: Sequence[Mixture], unprotected: Integers) -> None:
        self._parts, self._unprotected = parts, unprotected
        #: First output of each part, and last the first output of the unprotected values.
        self.offsets = [0, *itertools.accumulate(part.outputs for part in parts)]
        #: Whether a report is an index through the outputs of all parts.
        self.reports_index = all(part.report_format.is_histogram for part in parts)

    @functools.cached_property
    def count_offsets(self) -> list[int]:
        """First count of each part, of outputs or of bits, and last the first count of the unprotected values."""
        return [0, *itertools.accumulate(part.report_format.count_size for part in self._parts)]

    @functools.cached_property
    def body_bits(self) -> int:
        """Number of bits of the longest report of a part."""
        return max(part.bits for part in self._parts)

    def counts_of(self, part: int) -> slice:
        """Return the counts of a part."""
        return slice(*self.count_offsets[part : part + 2])

    def of_part(self, part: int, report: int) -> int:
        """Return a part's report as a report of the whole mechanism."""
        return self.offsets[part] + report if self.reports_index else part << self.body_bits | report

    def revealed(self, x: int) -> int:
        """Return the report that reveals an unprotected value."""
        number = int(np.searchsorted(self._unprotected, x))
        if self.reports_index:
            return self.offsets[-1] + number
        return (len(self._parts) + number) << self.body_bits

    def of_value(self, x: int, part: int, report: int) -> int:
        """Return the report of a value whose part drew a report, or drew OUTSIDE to reveal it."""
        return self.revealed(x) if report == OUTSIDE else self.of_part(part, report)

    def parse(self, report: int) -> tuple[int, int]:
        """Return (part, the part's report), or (OUTSIDE, unprotected value)."""
        if self.reports_index:
            part = bisect.bisect_right(self.offsets, report) - 1
            body, number = report - self.offsets[part], report - self.offsets[-1]
        else:
            part, body = report >> self.body_bits, report & (1 << self.body_bits) - 1
            number = part - len(self._parts)
        return (part, body) if number < 0 else (OUTSIDE, int(self._unprotected[number]))

    def reports(self) -> Iterator[int]:
        """Yield all reports: of the parts, then of the unprotected values."""
        for number, part in enumerate(self._parts):
            yield from (self.of_part(number, report) for report in part.reports())
        yield from (self.revealed(x) for x in self._unprotected.tolist())
