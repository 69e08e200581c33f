"""The verb ``aggregate``: count reports exactly, in integers that merge.

The counts are all that an estimate needs (``ReportFormat.count``). Counts add, so one process, many files, a database
or a cluster give the same integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato._core import Integers, check_keys, checked_type, quantity
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
    """Exact counts of reports of one mechanism.

    Instances are immutable; :meth:`merge` and :meth:`accumulate` return new ones.

    Parameters
    ----------
    mechanism_hash
        Hash of the mechanism.
    n
        Number of reports.
    counts
        Counts in the order of the mechanism's report format. No count exceeds ``n``.

    Raises
    ------
    InvalidInput
        If the hash, the number of reports or a count is invalid.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> counts = sf.aggregate(mechanism, [0, 1, 1])
    >>> counts.merge(sf.aggregate(mechanism, [1])).counts
    array([1, 3])
    """

    mechanism_hash: str
    n: int
    counts: Integers

    def __post_init__(self) -> None:
        if not _HASH.fullmatch(str(self.mechanism_hash)):  # a JSON document may have any type here
            raise InvalidInput("an aggregate", "mechanism_hash", "be 64 hexadecimal digits", self.mechanism_hash)
        if type(self.n) is not int or not 0 <= self.n <= _LARGEST:
            raise InvalidInput("an aggregate", "n", "be an integer in [0, 2^63 - 1]", self.n)
        counts = _as_counts(self.counts)
        wrong = (counts < 0) | (counts > self.n)
        if wrong.any():
            raise InvalidInput("an aggregate", "every count", f"be in [0, n = {self.n}]", int(counts[wrong.argmax()]))
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.mechanism_hash, self.n, self.counts)  # the constructor makes the counts read-only

    @classmethod
    def empty(cls, mechanism: Mechanism) -> Aggregate:
        """Return the counts of no reports.

        Parameters
        ----------
        mechanism
            Mechanism of the reports.

        Returns
        -------
        Aggregate
            Zero counts.
        """
        return cls(mechanism.hash, 0, np.zeros(mechanism.report_format.count_size, np.int64))

    def accumulate(self, mechanism: Mechanism, reports: Any) -> Aggregate:
        """Return these counts plus those of more reports of the same mechanism.

        Parameters
        ----------
        mechanism
            Mechanism that produced the reports.
        reports
            An array, a column of pandas, polars or Arrow, or an iterator of such pieces. Every report is checked.

        Returns
        -------
        Aggregate
            The new counts.

        Raises
        ------
        InvalidInput
            If a report is invalid, or the mechanism is another one.
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
        """Return the counts of both sets of reports together.

        Merging is associative and commutative.

        Parameters
        ----------
        other
            Counts of the same mechanism.

        Returns
        -------
        Aggregate
            The sum.

        Raises
        ------
        InvalidInput
            If the other counts belong to another mechanism, or the sum does not fit in 63 bits.
        """
        self._check_same(other.mechanism_hash)
        if len(self.counts) != len(other.counts):
            must = f"have {quantity(len(self.counts), 'entry')}"
            raise InvalidInput("an aggregate", "the other counts", must, len(other.counts))
        # No count exceeds its n, so a count overflows only if n does, which the constructor rejects.
        return Aggregate(self.mechanism_hash, self.n + other.n, self.counts + other.counts)

    def _check_same(self, mechanism_hash: str) -> None:
        """Raise InvalidInput if the mechanism is another one."""
        if mechanism_hash != self.mechanism_hash:
            raise InvalidInput(
                "an aggregate",
                "the mechanism",
                f"have the hash {self.mechanism_hash}",
                mechanism_hash,
                hint="Count and estimate reports of different mechanisms separately; combine() joins estimates.",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aggregate):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> str:
        """Return the counts as a JSON string.

        Returns
        -------
        str
            The document that :meth:`from_json` reads.
        """
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
        """Read counts from a JSON string.

        Parameters
        ----------
        text
            Document that :meth:`to_json` returned.

        Returns
        -------
        Aggregate
            Equal counts.

        Raises
        ------
        InvalidInput
            If the document differs in any way from what :meth:`to_json` writes.
        UnknownSpec
            If the document has another format or version.
        """
        try:
            document = json.loads(text)
        except ValueError as error:
            hint = "Use the output of Aggregate.to_json() or of the command 'sfumato aggregate'."
            raise InvalidInput("an aggregate", "the document", "be JSON", str(error), hint=hint) from None
        check_keys(
            "an aggregate", "the document", document, required=("format", "version", "mechanism_hash", "n", "counts")
        )
        if document["format"] != _FORMAT:
            raise UnknownSpec("an aggregate", "format", f"be {_FORMAT!r}", document["format"])
        if type(document["version"]) is not int or document["version"] != _VERSION:
            raise UnknownSpec("an aggregate", "version", f"be {_VERSION}", document["version"])
        return cls(document["mechanism_hash"], document["n"], document["counts"])

    def to_bytes(self) -> bytes:
        """Return the counts in binary form.

        Returns
        -------
        bytes
            A header with the hash and the number of reports, then the counts as little-endian 64-bit integers.
        """
        head = _MAGIC + bytes([_VERSION, 0, 0, 0]) + bytes.fromhex(self.mechanism_hash) + self.n.to_bytes(8, "little")
        return head + self.counts.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Aggregate:
        """Read counts from their binary form.

        Parameters
        ----------
        data
            Bytes that :meth:`to_bytes` returned.

        Returns
        -------
        Aggregate
            Equal counts.

        Raises
        ------
        InvalidInput
            If the data differ in any way from what :meth:`to_bytes` writes.
        UnknownSpec
            If the data have another version.
        """
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
        """Raise an error unless these are counts of the mechanism that some set of reports can have.

        Parameters
        ----------
        mechanism
            Mechanism that produced the reports.

        Raises
        ------
        InvalidInput
            If the mechanism is another one, or no set of reports has these counts.
        """
        self._check_same(mechanism.hash)
        size = mechanism.report_format.count_size
        if len(self.counts) != size:
            raise InvalidInput("an aggregate", "counts", f"have {quantity(size, 'entry')}", len(self.counts))
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
        If a report is missing, or is not a report of the mechanism. The message names its row.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> sf.aggregate(mechanism, [0, 1, 1, 0, 1]).counts
    array([2, 3])
    """
    checked_type("aggregate", "the mechanism", mechanism, Mechanism)
    return Aggregate.empty(mechanism).accumulate(mechanism, reports)


def _as_counts(counts: Any) -> Integers:
    """Return a new array of integers, or raise InvalidInput."""
    if isinstance(counts, np.ndarray):
        if counts.ndim != 1 or counts.dtype != np.int64:
            raise InvalidInput(
                "an aggregate", "counts", "be a one-dimensional int64 array", f"{counts.dtype} of shape {counts.shape}"
            )
        return counts.copy()
    if not isinstance(counts, list) or not all(type(count) is int and 0 <= count <= _LARGEST for count in counts):
        raise InvalidInput("an aggregate", "counts", "be integers in [0, 2^63 - 1]", counts)
    return np.array(counts, np.int64)
