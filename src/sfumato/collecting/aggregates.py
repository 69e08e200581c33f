"""The verb ``aggregate``: reports become exact integer counts that merge.

What is counted is all an estimate needs (``ReportFormat.count``). Counts add, so one process, many
files, a database or a cluster give the same integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._core import Integers, check_keys, checked_type
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.mechanisms import Mechanism

__all__ = ["Aggregate", "aggregate"]

_FORMAT = "sfumato-aggregate"
_VERSION = 1
_MAGIC = b"SFAG"
_HEADER_BYTES = 48
_LARGEST = 2**63 - 1
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class Aggregate:
    """``counts`` of ``n`` reports of the mechanism with the hash ``mechanism_hash``. Immutable.

    ``merge`` and ``accumulate`` give new ones.
    """

    mechanism_hash: str
    n: int
    counts: Integers

    def __post_init__(self) -> None:
        if not _HASH.fullmatch(str(self.mechanism_hash)):  # a document may hold anything here
            raise InvalidInput("an aggregate", "the mechanism's hash", "be 64 hex digits", self.mechanism_hash)
        if type(self.n) is not int or not 0 <= self.n <= _LARGEST:
            raise InvalidInput("an aggregate", "n", "be an integer in [0, 2^63 - 1]", self.n)
        counts = _as_counts(self.counts)
        wrong = (counts < 0) | (counts > self.n)
        if wrong.any():
            raise InvalidInput("an aggregate", "every count", f"lie in [0, n = {self.n}]", int(counts[wrong.argmax()]))
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.mechanism_hash, self.n, self.counts)  # the counts are read-only again

    @classmethod
    def empty(cls, mechanism: Mechanism) -> Aggregate:
        """No reports yet."""
        return cls(mechanism.hash, 0, np.zeros(mechanism.report_format.count_size, np.int64))

    def accumulate(self, mechanism: Mechanism, reports: Any) -> Aggregate:
        """Return these counts plus those of more reports of the same mechanism, every one of them checked.

        ``reports`` is an array, a column of pandas, polars or Arrow, or an iterator of such pieces.
        """
        self.check(mechanism)
        counts = self.counts.copy()
        n, first = self.n, 0
        for part in reports if isinstance(reports, Iterator) else (reports,):
            array = mechanism.report_format.validate(part, first_row=first)
            first += len(array)
            mechanism.report_format.count(array, counts)
        return Aggregate(self.mechanism_hash, n + first, counts)

    def merge(self, other: Aggregate) -> Aggregate:
        """The aggregate of both sets of reports: associative and commutative."""
        self._refuse_other(other.mechanism_hash)
        if len(self.counts) != len(other.counts):
            raise InvalidInput("an aggregate", "the other's counts", f"be {len(self.counts)}", len(other.counts))
        # No count exceeds its n, so none overflows unless n does, which is refused.
        return Aggregate(self.mechanism_hash, self.n + other.n, self.counts + other.counts)

    def _refuse_other(self, mechanism_hash: str) -> None:
        if mechanism_hash != self.mechanism_hash:
            raise InvalidInput("an aggregate", "the other mechanism", f"be {self.mechanism_hash}", mechanism_hash)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aggregate):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> str:
        """The aggregate as a JSON text."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "mechanism_hash": self.mechanism_hash,
            "n": self.n,
            "counts": self.counts.tolist(),
        }
        return json.dumps(document) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Aggregate:
        """The inverse of ``to_json``; refuses what it would not have written."""
        try:
            document = json.loads(text)
        except ValueError as error:
            must = "be JSON, the counts that aggregate makes of reports"
            raise InvalidInput("an aggregate", "the text", must, str(error)) from None
        check_keys(
            "an aggregate", "the document", document, required=("format", "version", "mechanism_hash", "n", "counts")
        )
        if document["format"] != _FORMAT:
            raise UnknownSpec("an aggregate", "format", f"be {_FORMAT!r}", document["format"])
        if type(document["version"]) is not int or document["version"] != _VERSION:
            raise UnknownSpec("an aggregate", "version", f"be {_VERSION}", document["version"])
        return cls(document["mechanism_hash"], document["n"], document["counts"])

    def to_bytes(self) -> bytes:
        """The aggregate in binary: magic, hash, n and the counts as little-endian 64-bit integers."""
        head = _MAGIC + bytes([_VERSION, 0, 0, 0]) + bytes.fromhex(self.mechanism_hash) + self.n.to_bytes(8, "little")
        return head + self.counts.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Aggregate:
        """The inverse of ``to_bytes``; refuses what it would not have written."""
        if data[:4] != _MAGIC:
            raise InvalidInput("an aggregate", "its first four bytes", f"be {_MAGIC!r}", data[:4])
        if len(data) < _HEADER_BYTES or len(data) % 8:
            raise InvalidInput(
                "an aggregate", "its length", f"be a multiple of 8, at least {_HEADER_BYTES}", f"{len(data)} bytes"
            )
        if data[4] != _VERSION:
            raise UnknownSpec("an aggregate", "its version", f"be {_VERSION}", data[4])
        if data[5:8] != bytes(3):
            raise InvalidInput("an aggregate", "bytes 5 to 7", "be zero", data[5:8])
        counts = np.frombuffer(data, "<i8", offset=_HEADER_BYTES).astype(np.int64)
        return cls(data[8:40].hex(), int.from_bytes(data[40:_HEADER_BYTES], "little"), counts)

    def check(self, mechanism: Mechanism) -> None:
        """Refuse to be read as counts of another mechanism, or of no possible reports."""
        self._refuse_other(mechanism.hash)
        size = mechanism.report_format.count_size
        if len(self.counts) != size:
            raise InvalidInput("an aggregate", "counts", f"have {size} entries", len(self.counts))
        mechanism.report_format.check_counts(self.n, self.counts)


def aggregate(mechanism: Mechanism, reports: Any) -> Aggregate:
    """Count reports exactly.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    reports
        An array, a column of pandas, polars or Arrow as :func:`privatize` returns it, or an iterator of such pieces.
        Every report is checked.

    Returns
    -------
    Aggregate
        Counts that merge with others of the same mechanism.

    Raises
    ------
    InvalidInput
        If a report is missing or not one of the mechanism; the message names its row.
    """
    checked_type("aggregate", "the mechanism", mechanism, Mechanism)
    return Aggregate.empty(mechanism).accumulate(mechanism, reports)


def _as_counts(counts: Any) -> Integers:
    """A fresh array of integers; texts, fractions and what does not fit 64 bits are refused."""
    if isinstance(counts, np.ndarray):
        if counts.ndim != 1 or counts.dtype != np.int64:
            raise InvalidInput("an aggregate", "counts", "be a row of int64", f"{counts.dtype} of shape {counts.shape}")
        return counts.copy()
    if not isinstance(counts, list) or not all(type(count) is int and 0 <= count <= _LARGEST for count in counts):
        raise InvalidInput("an aggregate", "counts", "be integers in [0, 2^63 - 1]", counts)
    return np.array(counts, np.int64)
