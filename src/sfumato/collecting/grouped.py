"""Exact counts of reports by public group, in integers that merge."""

from __future__ import annotations

import json
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato._core import check_keys, parse_json, read_items, read_string, reads_document
from sfumato.collecting.aggregates import GROUPED_FORMAT, Aggregate
from sfumato.collecting.labels import group_document, read_group
from sfumato.collecting.weights import MOST_CLASSES, check_weight
from sfumato.errors import Description, InvalidInput, LimitExceeded, UnknownLabel, UnknownSpec
from sfumato.mechanisms import Mechanism

__all__ = ["GroupedAggregate", "check_columns", "check_size", "sort_groups", "too_many_weights"]

_SUBJECT = "GroupedAggregate"
_VERSION = 1
#: Maximum number of groups, and of counts in all groups; a column of names or addresses would exceed them.
_MOST_GROUPS, _MOST_COUNTS = 100_000, 2**27
_HINT = "Use the output of GroupedAggregate.to_json() or of the command 'sfumato aggregate --by'."


@dataclass(frozen=True, eq=False, repr=False)
class GroupedAggregate(Mapping[Any, Aggregate]):
    """Exact counts of the reports of one mechanism in each public group of people, such as each region.

    It is a mapping from groups to their :class:`Aggregate`. :func:`aggregate_groups` computes it, and
    :func:`estimate_groups` reads it. Groups are public: the mechanism protects the value of a person, but not the group
    and not the weight. Instances are immutable.

    Parameters
    ----------
    mechanism_hash
        Hash of the mechanism: 64 hexadecimal digits.
    groups
        The counts of each group. With several columns, a group is a tuple with one label per column.
    columns
        The names of the columns that form the groups. They may be empty if groups have no names of columns.
    weight
        The name of the column that holds the weight of each person: one of ``columns``, or None. Weights are integers
        from 0.

    Raises
    ------
    InvalidInput
        If the counts belong to different mechanisms, a group does not have one label per column, or a weight is not an
        integer of at least 0.
    LimitExceeded
        If there are more than 100,000 groups, 134,217,728 counts or 1,000 different weights.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> counts = sf.aggregate_groups(mechanism, [1, 0, 1, 1], by={"sex": ["f", "m", "f", "m"], "age": [30, 30, 40, 40]})
    >>> counts
    GroupedAggregate(columns=('sex', 'age'), groups=4, n=4)
    >>> counts["f", 40].counts.tolist()
    [0, 1]
    >>> {group: aggregate.n for group, aggregate in counts.over("sex").items()}
    {'f': 2, 'm': 2}
    """

    mechanism_hash: str
    groups: Mapping[Any, Aggregate]
    columns: tuple[str, ...] = ()
    weight: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", types.MappingProxyType(dict(self.groups)))
        object.__setattr__(self, "columns", tuple(self.columns))
        check_columns(_SUBJECT, self.groups, self.columns, self.weight)
        size = max((len(aggregate.counts) for aggregate in self.groups.values()), default=0)
        check_size(len(self.groups), size)
        for group, aggregate in self.groups.items():
            if aggregate.mechanism_hash != self.mechanism_hash:
                got = Description(f"those of another mechanism in the group {group!r}")
                raise InvalidInput(_SUBJECT, "the counts", "belong to one mechanism", got)

    def labels(self, group: Any) -> tuple[Any, ...]:
        """Return the labels of a group as a tuple, with one label per column.

        Parameters
        ----------
        group
            A group of this mapping.

        Returns
        -------
        tuple
            The group itself if there are several columns; otherwise a tuple with one item.
        """
        return group if len(self.columns) > 1 else (group,)

    @property
    def n(self) -> int:
        """The number of reports in all groups."""
        return sum(aggregate.n for aggregate in self.groups.values())

    def __getitem__(self, group: Any) -> Aggregate:
        try:
            return self.groups[group]
        except (KeyError, TypeError):
            raise UnknownLabel(_SUBJECT, "the group", f"be one of {list(self.groups)}", group) from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        weight = f", weight={self.weight!r}" if self.weight is not None else ""
        return f"GroupedAggregate(columns={self.columns!r}{weight}, groups={len(self.groups)}, n={self.n})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, GroupedAggregate):
            mine, theirs = ((each.mechanism_hash, each.columns, each.weight) for each in (self, other))
            return mine == theirs and dict(self.groups) == dict(other.groups)
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.mechanism_hash, dict(self.groups), self.columns, self.weight)

    @classmethod
    def empty(cls, mechanism: Mechanism, columns: Sequence[str] = (), weight: str | None = None) -> GroupedAggregate:
        """Return the aggregate of zero reports, to which others can be added.

        Parameters
        ----------
        mechanism
            Mechanism whose reports will be counted.
        columns
            The names of the columns that form the groups.
        weight
            The column that holds the weights, or None.

        Returns
        -------
        GroupedAggregate
            An aggregate without groups.
        """
        return cls(mechanism.hash, {}, tuple(columns), weight)

    def merge(self, other: GroupedAggregate) -> GroupedAggregate:
        """Return the counts of both sets of reports together, group by group.

        Parameters
        ----------
        other
            Counts of other reports of the same mechanism, by the same columns.

        Returns
        -------
        GroupedAggregate
            The sums. New groups are sorted in if their labels can be compared.

        Raises
        ------
        InvalidInput
            If the other counts belong to another mechanism or have other columns.
        """
        if (self.columns, self.weight) != (other.columns, other.weight):
            must = f"have the columns {_shown(self)}"
            hint = "Call over(...) with the columns that both have."
            raise InvalidInput(_SUBJECT, "the other counts", must, Description(_shown(other)), hint=hint)
        groups = dict(self.groups)
        for group, aggregate in other.groups.items():
            groups[group] = groups[group].merge(aggregate) if group in groups else aggregate
        if self.groups.keys() != groups.keys():
            groups = {group: groups[group] for group in sort_groups(groups)}
        if self.mechanism_hash != other.mechanism_hash:
            got = Description("those of another mechanism")
            raise InvalidInput(_SUBJECT, "the other counts", "belong to the same mechanism", got)
        return GroupedAggregate(self.mechanism_hash, groups, self.columns, self.weight)

    def over(self, *columns: str) -> GroupedAggregate:
        """Return the counts by fewer columns; groups that differ in the other columns only are added.

        Parameters
        ----------
        *columns
            Names of the columns to keep, in the order of the labels in the result.

        Returns
        -------
        GroupedAggregate
            The counts by these columns. Weights are kept if their column is.

        Raises
        ------
        InvalidInput
            If no column is named, or a name is not one of ``columns``.
        """
        if not columns or not set(columns) <= set(self.columns):
            raise InvalidInput("over", "columns", f"be some of {list(self.columns)}", list(columns))
        places = [self.columns.index(name) for name in columns]
        groups: dict[Any, Aggregate] = {}
        for group, aggregate in self.groups.items():
            labels = self.labels(group)
            shorter = tuple(labels[place] for place in places) if len(places) > 1 else labels[places[0]]
            groups[shorter] = groups[shorter].merge(aggregate) if shorter in groups else aggregate
        weight = self.weight if self.weight in columns else None
        return GroupedAggregate(self.mechanism_hash, groups, columns, weight)

    def total(self) -> Aggregate:
        """Return the counts of all groups together.

        Returns
        -------
        Aggregate
            The sum of the counts of all groups.

        Raises
        ------
        InvalidInput
            If there is no group.
        """
        if not self.groups:
            raise InvalidInput(_SUBJECT, "the counts", "have at least one group", Description("no groups"))
        first, *others = self.groups.values()
        for other in others:
            first = first.merge(other)
        return first

    def check(self, mechanism: Mechanism) -> None:
        """Raise an error unless these can be the counts of reports of a mechanism.

        Parameters
        ----------
        mechanism
            Mechanism that produced the reports.

        Raises
        ------
        InvalidInput
            If the counts belong to another mechanism, or no reports of the mechanism have these counts.
        """
        if self.mechanism_hash != mechanism.hash:
            Aggregate(self.mechanism_hash, 0, Aggregate.empty(mechanism).counts).check(mechanism)  # raises its error
        for aggregate in self.groups.values():
            aggregate.check(mechanism)

    def to_json(self) -> str:
        """Return the counts as a JSON string.

        Returns
        -------
        str
            A JSON object with the keys ``format``, ``version``, ``mechanism_hash``, ``columns``, ``weight`` and
            ``groups``; :meth:`from_json` reads it.

        Raises
        ------
        InvalidInput
            If the name of a group is not a string, a finite number, a boolean, None, a date, a time or a tuple of
            these.
        """
        groups = [
            {"group": group_document(group, "to_json"), "n": aggregate.n, "counts": aggregate.counts.tolist()}
            for group, aggregate in self.groups.items()
        ]
        header = {"format": GROUPED_FORMAT, "version": _VERSION, "mechanism_hash": self.mechanism_hash}
        return json.dumps({**header, "columns": list(self.columns), "weight": self.weight, "groups": groups}) + "\n"

    @classmethod
    @reads_document
    def from_json(cls, text: str | bytes) -> GroupedAggregate:
        """Return the counts that :meth:`to_json` serialized.

        Parameters
        ----------
        text
            JSON string that :meth:`to_json` returned.

        Returns
        -------
        GroupedAggregate
            The counts that were serialized.

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
            got = Description(f"invalid JSON ({error})")
            raise InvalidInput(_SUBJECT, "the document", "be JSON", got, hint=_HINT) from None
        if isinstance(document, Mapping) and document.get("format") != GROUPED_FORMAT:
            must = f"be {GROUPED_FORMAT!r}"
            raise UnknownSpec(_SUBJECT, "the key 'format'", must, document.get("format"), hint=_HINT)
        keys = ("format", "version", "mechanism_hash", "columns", "weight", "groups")
        check_keys(_SUBJECT, "the document", document, required=keys)
        if type(document["version"]) is not int or document["version"] != _VERSION:
            hint = "Upgrade Sfumato, because a later version wrote these counts."
            raise UnknownSpec(_SUBJECT, "the key 'version'", f"be {_VERSION}", document["version"], hint=hint)
        mechanism_hash = read_string(_SUBJECT, "mechanism_hash", document["mechanism_hash"])
        names = read_items(_SUBJECT, "columns", document["columns"])
        columns = tuple(read_string(_SUBJECT, "a column", name) for name in names)
        weight = document["weight"]
        groups: dict[Any, Aggregate] = {}
        for row in read_items(_SUBJECT, "groups", document["groups"]):
            check_keys(_SUBJECT, "a row of groups", row, required=("group", "n", "counts"))
            group = read_group(_SUBJECT, row["group"])
            if group in groups:
                raise InvalidInput(_SUBJECT, "groups", "contain each group once", Description(f"{group!r} twice"))
            groups[group] = Aggregate(mechanism_hash, row["n"], row["counts"])
        if weight is not None:
            read_string(_SUBJECT, "weight", weight)
        return cls(mechanism_hash, groups, columns, weight)


def check_columns(subject: str, groups: Collection[Any], columns: tuple[str, ...], weight: str | None) -> None:
    """Raise InvalidInput unless every group has one label per column, and the weights are integers of at least 0."""
    if len(set(columns)) < len(columns):
        raise InvalidInput(subject, "columns", "have different names", list(columns))
    for group in groups if len(columns) > 1 else ():
        if not (isinstance(group, tuple) and len(group) == len(columns)):
            raise InvalidInput(subject, "every group", f"have one label for each of {list(columns)}", group)
    if weight is None:
        return
    if weight not in columns:
        raise InvalidInput(subject, "weight", f"be one of the columns {list(columns)}", weight)
    place = columns.index(weight)
    weights = {group[place] if len(columns) > 1 else group for group in groups}
    for each in weights:
        check_weight(subject, f"a weight in {weight!r}", each)
    if len(weights) > MOST_CLASSES:
        raise too_many_weights(len(weights))


def _shown(counts: GroupedAggregate) -> str:
    """Return the columns of counts for messages."""
    weight = f" with the weight {counts.weight!r}" if counts.weight is not None else ""
    return f"{list(counts.columns)}{weight}"


def sort_groups(groups: Mapping[Any, Any]) -> list[Any]:
    """Return groups in a fixed order: sorted, or by type and string if they cannot be compared."""
    try:
        return sorted(groups)
    except TypeError:
        return sorted(groups, key=_sort_key)


def _sort_key(group: Any) -> tuple[tuple[str, str], ...]:
    """Return a key that compares labels of different types."""
    labels = group if isinstance(group, tuple) else (group,)
    return tuple((type(label).__name__, str(label)) for label in labels)


def check_size(groups: int, counts: int) -> None:
    """Raise LimitExceeded if there are too many groups, each with this number of counts."""
    if groups > _MOST_GROUPS or groups * counts > _MOST_COUNTS:
        raise LimitExceeded(
            f"counts by group support at most {_MOST_GROUPS:,} groups and {_MOST_COUNTS:,} counts, not {groups:,} "
            f"groups with {counts:,} counts each. Choose columns with fewer different labels."
        )


def too_many_weights(classes: int) -> LimitExceeded:
    """Return the error for too many different weights."""
    return LimitExceeded(
        f"weights may have at most {MOST_CLASSES:,} different values, not {classes:,}. "
        "Round them with sfumato.collecting.weight_classes(weights)."
    )
