"""The verb ``aggregate``: reports become exact integer counts that merge.

For indices the counts are a histogram over the outputs; for bitmaps, the number of reports with each bit set. They
are all an estimate needs. Counts add, so one process, many files, a database or a cluster give the same integers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.documents import check_keys
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.reports import check_reports

__all__ = ["Aggregate", "aggregate"]

_FORMAT = "sfumato-aggregate"
_VERSION = 1
_MAGIC = b"SFAG\x01\x00\x00\x00"
#: Reports are counted in pieces that stay in the cache.
_PIECE = 2**18

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Aggregate:
    """``counts`` of ``n`` reports of one mechanism. Immutable; ``merge`` and ``accumulate`` give new ones."""

    mechanism_hash: str
    n: int
    counts: Counts

    @classmethod
    def empty(cls, mechanism: Mechanism) -> Aggregate:
        """No reports yet."""
        size = mechanism.outputs if mechanism.encoding == "index" else mechanism.bits
        return cls(mechanism.hash, 0, np.zeros(size, np.int64))

    def accumulate(self, mechanism: Mechanism, reports: Any) -> Aggregate:
        """These counts and those of more reports of the same mechanism, every one of them checked."""
        self._refuse_other(mechanism.hash)
        array = check_reports(mechanism, reports)
        counts = self.counts.copy()
        for start in range(0, len(array), _PIECE):
            piece = array[start : start + _PIECE]
            if mechanism.encoding == "index":
                counts += np.bincount(piece, minlength=len(counts))
            else:
                counts += _bit_sums(piece, mechanism.bits)
        return Aggregate(self.mechanism_hash, self.n + len(array), counts)

    def merge(self, other: Aggregate) -> Aggregate:
        """The aggregate of both sets of reports: associative and commutative."""
        self._refuse_other(other.mechanism_hash)
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
            raise InvalidInput("an aggregate", "the text", "be JSON", str(error)) from None
        check_keys(
            "an aggregate", "the document", document, needed=("format", "version", "mechanism_hash", "n", "counts")
        )
        if (document["format"], document["version"]) != (_FORMAT, _VERSION):
            raise InvalidInput("an aggregate", "format and version", f"be {_FORMAT} {_VERSION}", document["format"])
        counts = document["counts"]
        if not isinstance(counts, list) or not all(type(count) is int and count >= 0 for count in counts):
            raise InvalidInput("an aggregate", "counts", "be integers of at least 0", "something else")
        return cls._checked(str(document["mechanism_hash"]), document["n"], np.array(counts, np.int64))

    def to_bytes(self) -> bytes:
        """The aggregate in binary: magic, hash, n and the counts as little-endian 64-bit integers."""
        head = _MAGIC + bytes.fromhex(self.mechanism_hash) + self.n.to_bytes(8, "little")
        return head + self.counts.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Aggregate:
        """The inverse of ``to_bytes``; refuses what it would not have written."""
        if len(data) < 48 or data[:8] != _MAGIC or len(data) % 8:
            raise InvalidInput("an aggregate", "the bytes", f"begin with {_MAGIC!r} and be whole", data[:8])
        counts = np.frombuffer(data, "<i8", offset=48).astype(np.int64)
        return cls._checked(data[8:40].hex(), int.from_bytes(data[40:48], "little"), counts)

    @classmethod
    def _checked(cls, mechanism_hash: str, n: Any, counts: Counts) -> Aggregate:
        if type(n) is not int or n < 0:
            raise InvalidInput("an aggregate", "n", "be an integer of at least 0", n)
        if (counts < 0).any() or (counts > n).any():
            raise InvalidInput("an aggregate", "every count", f"lie between 0 and n = {n}", int(counts.max(initial=0)))
        return cls(mechanism_hash, n, counts)

    def check(self, mechanism: Mechanism) -> None:
        """Refuse to be read as counts of another mechanism, or of no possible reports."""
        self._refuse_other(mechanism.hash)
        empty = Aggregate.empty(mechanism)
        if len(self.counts) != len(empty.counts):
            raise InvalidInput("an aggregate", "counts", f"have {len(empty.counts)} entries", len(self.counts))
        if mechanism.encoding == "index" and int(self.counts.sum()) != self.n:
            raise InvalidInput("an aggregate", "counts", f"sum to n = {self.n}", int(self.counts.sum()))


def aggregate(mechanism: Mechanism, reports: Any) -> Aggregate:
    """Count reports exactly. Every report is checked; the counts merge with others of the same mechanism."""
    return Aggregate.empty(mechanism).accumulate(mechanism, reports)


def _bit_sums(rows: npt.NDArray[np.uint8], bits: int) -> Counts:
    sums = np.zeros(bits, np.int64)
    step = max(1, 2**22 // max(bits, 1))
    for start in range(0, len(rows), step):
        unpacked = np.unpackbits(rows[start : start + step], axis=1, count=bits, bitorder="little")
        sums += unpacked.sum(axis=0, dtype=np.int64)
    return sums
