"""Joint counts of two reports of the same people, from two waves of one survey."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato._core import (
    FrozenData,
    Integers,
    check_keys,
    checked_type,
    quantity,
    read_items,
    read_only,
    reads_document,
)
from sfumato.collecting.aggregates import Aggregate
from sfumato.collecting.hashes import check_origin
from sfumato.errors import Description, InvalidInput, LimitExceeded, UnknownSpec
from sfumato.mechanisms import Mechanism

__all__ = ["PairCounts", "aggregate_pairs"]

_FUNCTION = "aggregate_pairs"
_VERSION = 1
#: Maximum number of joint counts; more would take over 80 MB.
_MOST_COUNTS = 10_000_000


@dataclass(frozen=True, eq=False)
class PairCounts(FrozenData):
    """Joint counts of the reports that the same people sent in two waves.

    :func:`aggregate_pairs` computes them. :func:`estimate_waves` derives from them how strongly the estimates of two
    waves are correlated.

    Parameters
    ----------
    first
        Counts of the reports of these people in the first wave.
    second
        Counts of the reports of the same people in the second wave.
    joint
        Entry (i, j) is the number of people whose first report adds to count i and whose second report adds to count j.

    Raises
    ------
    InvalidInput
        If the two waves have different mechanisms or numbers of people, or the joint counts do not fit.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> pairs = sf.aggregate_pairs(mechanism, [0, 1, 1, 0], [0, 1, 0, 0])
    >>> pairs.n, pairs.joint.tolist()
    (4, [[2, 0], [1, 1]])
    """

    first: Aggregate
    second: Aggregate
    joint: Integers

    format: ClassVar[str] = "sfumato-pair-counts"

    def __post_init__(self) -> None:
        joint = np.asarray(self.joint)
        size = len(self.first.counts)
        if self.first.mechanism_hash != self.second.mechanism_hash or self.first.n != self.second.n:
            got = Description(f"{quantity(self.first.n, 'report')} and {quantity(self.second.n, 'report')}")
            raise InvalidInput("PairCounts", "the two waves", "have the same mechanism and people", got)
        if joint.shape != (size, size) or joint.dtype.kind not in "iu":
            must = f"be integers of shape ({size}, {size})"
            raise InvalidInput("PairCounts", "joint", must, Description(f"{joint.dtype} of shape {joint.shape}"))
        most = np.minimum(self.first.counts[:, None], self.second.counts)
        least = np.maximum(self.first.counts[:, None] + self.second.counts - self.first.n, 0)
        if ((joint < least) | (joint > most)).any():
            raise InvalidInput(
                "PairCounts", "joint", "be counts of pairs of these reports", Description("other counts")
            )
        object.__setattr__(self, "joint", read_only(joint, np.int64))

    @property
    def n(self) -> int:
        """The number of people who reported in both waves."""
        return self.first.n

    def merge(self, other: PairCounts) -> PairCounts:
        """Return the joint counts of both sets of people together.

        Parameters
        ----------
        other
            Joint counts of other people in the same two waves.

        Returns
        -------
        PairCounts
            The sum of all counts.

        Raises
        ------
        InvalidInput
            If the other counts belong to another mechanism.
        """
        first, second = self.first.merge(other.first), self.second.merge(other.second)
        return PairCounts(first, second, self.joint + other.joint)

    def check(self, mechanism: Mechanism) -> None:
        """Raise an error unless these can be counts of reports of a mechanism.

        Parameters
        ----------
        mechanism
            Mechanism that produced the reports.

        Raises
        ------
        InvalidInput
            If the counts belong to another mechanism, or no reports of the mechanism have these counts.
        """
        self.first.check(mechanism)
        self.second.check(mechanism)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The hash of the mechanism, the number of people, and the counts of both waves and of pairs.
        """
        return {
            "format": self.format,
            "version": _VERSION,
            "mechanism_hash": self.first.mechanism_hash,
            "n": self.n,
            "first": self.first.counts.tolist(),
            "second": self.second.counts.tolist(),
            "joint": self.joint.tolist(),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> PairCounts:
        """Return the counts that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        PairCounts
            Counts equal to those that were written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or the counts contradict each other.
        UnknownSpec
            If the format or the version is another one.
        """
        subject, keys = "PairCounts.from_dict", ("mechanism_hash", "n", "first", "second", "joint")
        document = check_keys(subject, "the document", document, required=("format", "version", *keys))
        header = {"format": cls.format, "version": _VERSION}
        for key, known in header.items():
            if document[key] != known or isinstance(document[key], bool):
                raise UnknownSpec(subject, f"the key {key!r}", f"be {known!r}", document[key])
        digest, n = document["mechanism_hash"], document["n"]
        first, second = (Aggregate(digest, n, document[key]) for key in ("first", "second"))
        rows = read_items(subject, "joint", document["joint"], len(first.counts))
        joint = np.array([Aggregate(digest, n, row).counts for row in rows], np.int64)
        return cls(first, second, joint.reshape(len(first.counts), -1))

    def __repr__(self) -> str:
        return f"PairCounts(n={self.n}, counts={len(self.joint)}x{len(self.joint)})"


def aggregate_pairs(mechanism: Mechanism, first: Any, second: Any) -> PairCounts:
    """Count the pairs of reports that the same people sent in two waves.

    The collector must link the reports of a person, for example by a pseudonym. The lifetime level of a memoized
    mechanism covers this: it bounds what all linked reports about an unchanged value reveal together.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports of both waves.
    first
        The reports of the first wave: an array, or a column of pandas, polars or Arrow.
    second
        The reports of the same people in the second wave, in the same order.

    Returns
    -------
    PairCounts
        The joint counts, for :func:`estimate_waves`. Those of other people can be added with :meth:`PairCounts.merge`.

    Raises
    ------
    InvalidInput
        If a report is missing or not a report of the mechanism, or the two waves have different lengths.
    LimitExceeded
        If there would be more than 10,000,000 joint counts.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> sf.aggregate_pairs(mechanism, [0, 1, 1], [0, 0, 1])
    PairCounts(n=3, counts=2x2)
    """
    checked_type(_FUNCTION, "the mechanism", mechanism, Mechanism)
    report_format = mechanism.report_format
    size = report_format.count_size
    if size**2 > _MOST_COUNTS:
        raise LimitExceeded(
            f"the pairs of reports of {mechanism.name} would have {size:,} times {size:,} joint counts, more than the "
            f"limit of {_MOST_COUNTS:,}. Use estimate_waves without pairs, which bounds the errors of changes."
        )
    check_origin(mechanism, first, "first")
    check_origin(mechanism, second, "second")
    rows, columns = report_format.validate(first, "first"), report_format.validate(second, "second")
    if len(rows) != len(columns):
        got = Description(f"{len(rows)} and {len(columns)} reports")
        hint = "Select the people who reported in both waves, in the same order."
        raise InvalidInput(_FUNCTION, "second", "have one report for each report of first", got, hint=hint)
    joint = np.zeros((size, size), np.int64)
    report_format.count_pairs(rows, columns, joint)
    empty = Aggregate.empty(mechanism)
    return PairCounts(empty.accumulate(mechanism, rows), empty.accumulate(mechanism, columns), joint)
