"""What is counted of a mechanism's reports: exact integers that add.

For indices a histogram over the outputs; for bitmaps the number of reports with each bit set. A mechanism whose
estimate needs other counts has a tally of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.subset.mechanism import SubsetSelection

__all__ = ["check_counts", "count_reports", "count_size"]

#: Integers of more outputs than this would take over 32 GB.
_MOST_COUNTS = 2**32
#: Reports are counted in pieces that stay in the cache.
_PIECE = 2**18
#: Fewer bytes of reports than this are counted before numba is imported.
_FEW_BYTES = 2**18


def count_size(mechanism: Mechanism) -> int:
    """How many counts there are: of outputs, or of bits."""
    if isinstance(mechanism, PartitionedMechanism):
        size = mechanism.count_offsets[-1] + len(mechanism.unprotected)
    else:
        size = mechanism.outputs if mechanism.encoding == "index" else mechanism.bits
    if isinstance(mechanism, NestedSubsets):
        size = 2 * len(mechanism.domain) + mechanism.blocks
    if size > _MOST_COUNTS:
        raise LimitExceeded(f"an aggregate of {size} counts is refused (at most {_MOST_COUNTS})")
    return size


def count_reports(mechanism: Mechanism, reports: npt.NDArray[Any], counts: Integers) -> None:
    """Add the counts of checked reports."""
    plain = mechanism.encoding in ("index", "bitmap") and not isinstance(mechanism, NestedSubsets)
    if plain and reports.nbytes > _FEW_BYTES:
        from sfumato.mechanisms.kernels.counting import add_bit_sums, add_histogram

        (add_histogram if mechanism.encoding == "index" else add_bit_sums)(reports, counts)
        return
    step = max(_PIECE, len(counts))  # a histogram of few reports costs as much as its length
    for start in range(0, len(reports), step):
        piece = reports[start : start + step]
        if isinstance(mechanism, NestedSubsets):
            counts += nested_sums(piece, mechanism)
        elif isinstance(mechanism, PartitionedMechanism) and mechanism.encoding == "parted":
            from sfumato.mechanisms.partitioned.report_kernel import add_counts

            add_counts(mechanism, piece, counts)
        elif mechanism.encoding == "index":
            counts += np.bincount(piece.astype(np.intp), minlength=len(counts))
        else:
            counts += bit_sums(piece, mechanism.bits)


def check_counts(mechanism: Mechanism, n: int, counts: Integers) -> None:
    """Refuse counts that no n reports can have."""
    if isinstance(mechanism, PartitionedMechanism):
        _check_parts(mechanism, n, counts)
        return
    # Every report adds to one count, or, as a subset, to as many as it has members.
    each = mechanism.size if isinstance(mechanism, SubsetSelection) else 1
    if mechanism.encoding == "index" or isinstance(mechanism, SubsetSelection):
        total = exact_sum(counts)
        if total != each * n:
            raise InvalidInput("an aggregate", "counts", f"sum to {each}·n = {each * n}", total)
    if isinstance(mechanism, ComposedSubsets):
        values, blocks = np.split(counts, [len(mechanism.domain)])
        wanted, found = (mechanism.values.size * n, mechanism.labels.size * n), (exact_sum(values), exact_sum(blocks))
        if found != wanted:
            raise InvalidInput("an aggregate", "counts of values and of blocks", f"sum to {wanted}", found)
    if isinstance(mechanism, NestedSubsets):
        _check_nested(mechanism, n, counts)


def _check_nested(mechanism: NestedSubsets, n: int, counts: Integers) -> None:
    size = len(mechanism.domain)
    # The counts of a block may overflow 64 bits together: Python's integers do not.
    in_high, in_low, high = (part.astype(object) for part in np.split(counts, [size, 2 * size]))
    if high.sum() != mechanism.high * n:
        raise InvalidInput("an aggregate", "counts of blocks", f"sum to {mechanism.high * n}", high.sum())
    for held, reports, each in zip((in_high, in_low), (high, n - high), mechanism.sizes, strict=True):
        found = held[mechanism.order].reshape(mechanism.blocks, -1).sum(axis=1)
        wrong = found != each * reports
        if wrong.any():
            block = int(wrong.argmax())
            must = f"sum to {each * reports[block]}"
            raise InvalidInput("an aggregate", f"counts of the values of block {block}", must, found[block])


def _check_parts(mechanism: PartitionedMechanism, n: int, counts: Integers) -> None:
    *starts, end = mechanism.count_offsets
    total = exact_sum(counts[end:])
    for number, (part, start) in enumerate(zip(mechanism.parts, starts, strict=True)):
        each = part.size if isinstance(part, SubsetSelection) else 1
        own = counts[start : mechanism.count_offsets[number + 1]]
        reports, rest = divmod(exact_sum(own), each)
        if rest:
            raise InvalidInput("an aggregate", f"the counts of part {number}", f"sum to a multiple of {each}", rest)
        if own.max() > reports:
            must = f"be at most the {reports} reports of the part"
            raise InvalidInput("an aggregate", f"every count of part {number}", must, int(own.max()))
        total += reports
    if total != n:
        raise InvalidInput("an aggregate", "counts", f"be those of n = {n} reports", total)


def exact_sum(counts: Integers) -> int:
    """The sum of counts that may overflow 64 bits together."""
    return (int((counts >> 32).sum()) << 32) + int((counts & 0xFFFFFFFF).sum())


def bit_sums(rows: npt.NDArray[np.uint8], bits: int) -> Integers:
    """How many of the rows have each bit set."""
    sums = np.zeros(bits, np.int64)
    step = max(1, 2**22 // max(bits, 1))
    for start in range(0, len(rows), step):
        unpacked = np.unpackbits(rows[start : start + step], axis=1, count=bits, bitorder="little")
        sums += unpacked.sum(axis=0, dtype=np.int64)
    return sums


def nested_sums(rows: npt.NDArray[np.uint8], mechanism: NestedSubsets) -> Integers:
    """How many of the rows have each value in a high block, each value in a low block, and each block high."""
    size, blocks, order = len(mechanism.domain), mechanism.blocks, mechanism.order
    in_all, in_high, high_sums = (np.zeros(count, np.int64) for count in (size, size, blocks))
    for start in range(0, len(rows), 255):  # so many ones fit a byte
        unpacked = np.unpackbits(rows[start : start + 255], axis=1, count=mechanism.bits, bitorder="little")
        held = np.take(unpacked, order, axis=1).reshape(-1, blocks, mechanism.block_size)
        high = unpacked[:, size:]
        in_all[order] += held.sum(axis=0, dtype=np.uint8).ravel()
        in_high[order] += (held & high[:, :, None]).sum(axis=0, dtype=np.uint8).ravel()
        high_sums += high.sum(axis=0, dtype=np.uint8)
    return np.concatenate([in_high, in_all - in_high, high_sums])
