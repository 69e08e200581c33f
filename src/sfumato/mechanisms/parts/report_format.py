"""Report formats of parts: an index through all parts, or a part's report below its number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, quantity
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.reports.base import AGGREGATE_AGAIN, ReportFormat, count_pieces, exact_sum
from sfumato.mechanisms.reports.bitmap import RowFormat
from sfumato.mechanisms.reports.index import IndexFormat

__all__ = ["parts_format"]


def parts_format(mechanism: Parts) -> ReportFormat:
    """Return the format of a mechanism made of parts: indices if every part reports an index."""
    return _IndexOfParts(mechanism) if mechanism.numbering.reports_index else _ReportOfPart(mechanism)


class _IndexOfParts(IndexFormat):
    """Indices of the outputs of the parts, one part after the other, then of the unprotected values."""

    def __init__(self, mechanism: Parts) -> None:
        super().__init__(mechanism.outputs)
        self._mechanism = mechanism

    def check_counts(self, n: int, counts: Integers) -> None:
        _check_parts(self._mechanism, n, counts)


class _ReportOfPart(RowFormat):
    """The part's report in the low bits, and above it the number of the part or of an unprotected value."""

    encoding = "parted"

    def __init__(self, mechanism: Parts) -> None:
        heads = len(mechanism.parts) + len(mechanism.unprotected)
        super().__init__(mechanism.numbering.body_bits + (heads - 1).bit_length())
        self._mechanism = mechanism

    def _check_rows(self, array: npt.NDArray[np.uint8], subject: str, first_row: int) -> None:
        from sfumato.mechanisms.parts.report_kernel import first_fault

        wrong = np.arange(len(array)) == first_fault(self._mechanism, np.ascontiguousarray(array))
        self._refuse_rows(subject, first_row, array, wrong, "be a report of one of the parts, or of a revealed value")

    def _count_size(self) -> int:
        return self._mechanism.numbering.count_offsets[-1] + len(self._mechanism.unprotected)

    def count(self, reports: npt.NDArray[Any], counts: Integers) -> None:
        from sfumato.mechanisms.parts.report_kernel import add_counts

        for piece in count_pieces(reports, counts):
            add_counts(self._mechanism, piece, counts)

    def check_counts(self, n: int, counts: Integers) -> None:
        _check_parts(self._mechanism, n, counts)


def _check_parts(mechanism: Parts, n: int, counts: Integers) -> None:
    """Raise InvalidInput if the counts cannot be those of n reports."""
    total = exact_sum(counts[mechanism.numbering.count_offsets[-1] :])
    for number, part in enumerate(mechanism.parts):
        each = part.report_format.counts_per_report
        assert each is not None
        part_counts = counts[mechanism.numbering.counts_of(number)]
        part_total = exact_sum(part_counts)
        reports, rest = divmod(part_total, each)
        if rest:
            must = f"sum to a multiple of {each}, because each report of the part adds {each}"
            raise InvalidInput("an aggregate", f"the counts of part {number}", must, part_total, hint=AGGREGATE_AGAIN)
        if part_counts.max() > reports:
            must = f"be at most {reports}, the number of reports of the part"
            got = int(part_counts.max())
            raise InvalidInput("an aggregate", f"every count of part {number}", must, got, hint=AGGREGATE_AGAIN)
        total += reports
    if total != n:
        must, counted = f"be those of {quantity(n, 'report')}", Description(f"counts of {quantity(total, 'report')}")
        raise InvalidInput("an aggregate", "counts", must, counted, hint=AGGREGATE_AGAIN)
