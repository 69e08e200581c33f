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

from sfumato._core import Integers, check_keys, check_kind, checked_type, parse_json, quantity
from sfumato.collecting.hashes import check_origin, wrong_mechanism
from sfumato.errors import Description, InvalidInput, UnknownSpec
from sfumato.mechanisms import Mechanism

__all__ = ["GROUPED_FORMAT", "Aggregate", "aggregate"]

_FORMAT = "sfumato-aggregate"
#: Format of documents of counts by group.
GROUPED_FORMAT = "sfumato-grouped-aggregate"
_VERSION = 1
_MAGIC = b"SFAG"
_HEADER_BYTES = 48
_LARGEST = 2**63 - 1
_HASH = re.compile("[0-9a-f]{64}")
_UPGRADE = "Upgrade Sfumato, because a later version wrote these counts."


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Exact counts of the reports of one mechanism, which is all that an estimate needs.

    :func:`aggregate` and :func:`aggregate_files` compute them, and :func:`estimate` reads them. Instances are
    immutable; :meth:`merge` and :meth:`accumulate` return new ones.

    Parameters
    ----------
    mechanism_hash
        Hash of the mechanism: 64 hexadecimal digits.
    n
        Number of reports.
    counts
        Integers from 0 to ``n``. For a mechanism whose report is the index of an output, entry i counts the reports of
        output i. Other mechanisms count features of their reports; for example, unary encoding counts how many reports
        have bit i set.

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
        """Return the aggregate of zero reports, to which others can be added.

        Parameters
        ----------
        mechanism
            Mechanism whose reports will be counted.

        Returns
        -------
        Aggregate
            An aggregate with ``n = 0`` and all counts zero.
        """
        return cls(mechanism.hash, 0, np.zeros(mechanism.report_format.count_size, np.int64))

    def accumulate(self, mechanism: Mechanism, reports: Any) -> Aggregate:
        """Count more reports of the same mechanism, and return the sum.

        Parameters
        ----------
        mechanism
            Mechanism that produced the reports.
        reports
            An array, a column of pandas, polars or Arrow, or an iterator of such pieces. Every report is checked.

        Returns
        -------
        Aggregate
            The counts of all reports, old and new.

        Raises
        ------
        InvalidInput
            If a report is invalid, or these counts belong to another mechanism.
        """
        self.check(mechanism)
        counts = self.counts.copy()
        n, first = self.n, 0
        for part in reports if isinstance(reports, Iterator) else (reports,):
            check_origin(mechanism, part)
            array = mechanism.report_format.validate(part, first_row=first)
            first += len(array)
            mechanism.report_format.count(array, counts)
        return Aggregate(self.mechanism_hash, n + first, counts)

    def merge(self, other: Aggregate) -> Aggregate:
        """Return the counts of both sets of reports together.

        Merging is associative and commutative: the order of parts does not matter.

        Parameters
        ----------
        other
            Counts of other reports of the same mechanism.

        Returns
        -------
        Aggregate
            The sum of ``n`` and of each count.

        Raises
        ------
        InvalidInput
            If the other counts belong to another mechanism, or the sum does not fit in 63 bits.
        """
        self._check_same(other.mechanism_hash)
        if len(self.counts) != len(other.counts):
            must = f"have {quantity(len(self.counts), 'entry')}"
            got = Description(quantity(len(other.counts), "entry"))
            raise InvalidInput("an aggregate", "the other counts", must, got)
        # No count exceeds its n, so a count overflows only if n does, which the constructor rejects.
        return Aggregate(self.mechanism_hash, self.n + other.n, self.counts + other.counts)

    def _check_same(self, mechanism_hash: str) -> None:
        """Raise InvalidInput if the mechanism is another one."""
        if mechanism_hash != self.mechanism_hash:
            raise wrong_mechanism(
                "an aggregate",
                "the mechanism hash",
                self.mechanism_hash,
                mechanism_hash,
                cause="The counts belong to another mechanism.",
                next_step="Count and estimate reports of each mechanism separately; combine() joins the estimates.",
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
            A JSON object with the keys ``format``, ``version``, ``mechanism_hash``, ``n`` and ``counts``;
            :meth:`from_json` reads it.
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
        """Return the aggregate that :meth:`to_json` serialized.

        Parameters
        ----------
        text
            JSON string that :meth:`to_json` returned.

        Returns
        -------
        Aggregate
            The aggregate that was serialized.

        Raises
        ------
        InvalidInput
            If the string is not JSON, a key is missing or unknown, or a value is invalid.
        UnknownSpec
            If the format or the version is another one.
        """
        try:
            document = parse_json(text)
        except ValueError as error:
            hint = "Use the output of Aggregate.to_json() or of the command 'sfumato aggregate'."
            raise InvalidInput(
                "an aggregate", "the document", "be JSON", Description(f"invalid JSON ({error})"), hint=hint
            ) from None
        if isinstance(document, dict) and document.get("format") == GROUPED_FORMAT:
            hint = "These are counts by group: count with --by and their columns, or read them with GroupedAggregate."
            raise UnknownSpec("an aggregate", "the key 'format'", f"be {_FORMAT!r}", GROUPED_FORMAT, hint=hint)
        if isinstance(document, dict):
            check_kind("an aggregate", "an aggregate", document)
        check_keys(
            "an aggregate", "the document", document, required=("format", "version", "mechanism_hash", "n", "counts")
        )
        if document["format"] != _FORMAT:
            hint = "Use the output of Aggregate.to_json() or of the command 'sfumato aggregate'."
            raise UnknownSpec("an aggregate", "the key 'format'", f"be {_FORMAT!r}", document["format"], hint=hint)
        if type(document["version"]) is not int or document["version"] != _VERSION:
            raise UnknownSpec("an aggregate", "the key 'version'", f"be {_VERSION}", document["version"], hint=_UPGRADE)
        return cls(document["mechanism_hash"], document["n"], document["counts"])

    def to_bytes(self) -> bytes:
        """Return the aggregate in binary form, which is smaller than JSON.

        Returns
        -------
        bytes
            A header with the hash and the number of reports, then the counts as little-endian 64-bit integers;
            :meth:`from_bytes` reads them.
        """
        head = _MAGIC + bytes([_VERSION, 0, 0, 0]) + bytes.fromhex(self.mechanism_hash) + self.n.to_bytes(8, "little")
        return head + self.counts.astype("<i8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Aggregate:
        """Return the aggregate that :meth:`to_bytes` serialized.

        Parameters
        ----------
        data
            Bytes that :meth:`to_bytes` returned.

        Returns
        -------
        Aggregate
            The aggregate that was serialized.

        Raises
        ------
        InvalidInput
            If the data differ in any way from the output of :meth:`to_bytes`.
        UnknownSpec
            If the data have another version.
        """
        if data[:4] != _MAGIC:
            raise InvalidInput("an aggregate", "its first four bytes", f"be {_MAGIC!r}", data[:4])
        if len(data) < _HEADER_BYTES or len(data) % 8:
            must = f"be a multiple of 8 bytes, at least {_HEADER_BYTES}"
            raise InvalidInput("an aggregate", "its length", must, Description(quantity(len(data), "byte")))
        if data[4] != _VERSION:
            raise UnknownSpec("an aggregate", "its format version", f"be {_VERSION}", data[4], hint=_UPGRADE)
        if data[5:8] != bytes(3):
            raise InvalidInput("an aggregate", "bytes 5 to 7", "be zero", data[5:8])
        counts = np.frombuffer(data, "<i8", offset=_HEADER_BYTES).astype(np.int64)
        return cls(data[8:40].hex(), int.from_bytes(data[40:_HEADER_BYTES], "little"), counts)

    def check(self, mechanism: Mechanism) -> None:
        """Raise an error unless these can be the counts of reports of a mechanism.

        Parameters
        ----------
        mechanism
            Mechanism that produced the reports.

        Raises
        ------
        InvalidInput
            If the counts belong to another mechanism, or no ``n`` reports of the mechanism have these counts.
        """
        self._check_same(mechanism.hash)
        size = mechanism.report_format.count_size
        if len(self.counts) != size:
            got = Description(quantity(len(self.counts), "entry"))
            raise InvalidInput("an aggregate", "counts", f"have {quantity(size, 'entry')}", got)
        mechanism.report_format.check_counts(self.n, self.counts)


def aggregate(mechanism: Mechanism, reports: Any) -> Aggregate:
    """Count the reports of a mechanism, as integers from which frequencies are estimated.

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
        The counts, for :func:`estimate`. Counts of the same mechanism can be added with :meth:`Aggregate.merge`.

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
            got = Description(f"an array of {counts.dtype} with shape {counts.shape}")
            raise InvalidInput("an aggregate", "counts", "be a one-dimensional int64 array", got)
        return counts.copy()
    if not isinstance(counts, list) or not all(type(count) is int and 0 <= count <= _LARGEST for count in counts):
        raise InvalidInput("an aggregate", "counts", "be integers in [0, 2^63 - 1]", counts)
    return np.array(counts, np.int64)
