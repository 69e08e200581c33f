"""Public groups (a region, a week): an estimate for each, for all together, and the differences between them."""

from __future__ import annotations

import datetime
import math
import types
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    MOST_ROWS,
    FrozenData,
    Result,
    check_keys,
    is_number,
    number_document,
    percent,
    plot_result,
    read_items,
    read_number,
    reads_document,
    unused_name,
)
from sfumato.collecting import Aggregate
from sfumato.domain import Domain, read_mapping
from sfumato.errors import InvalidInput, UnknownLabel
from sfumato.estimation.documents import VERSION, check_document, read_header
from sfumato.estimation.estimates import Estimate, MechanismEstimate, frequency_of, value_table
from sfumato.estimation.linear import LinearEstimate, check_confidence, weighted_sum

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["FrequencyTable", "GroupedEstimate", "merged"]

#: Values whose frequencies are printed in the row of a group.
_MOST_VALUES = 5


@dataclass(frozen=True, eq=False, repr=False)
class GroupedEstimate(FrozenData, Result):
    """One estimate per group, ``groups``, and one of all people together, ``total``.

    Groups are public, and their people different. ``grouped[group]`` is the estimate of a group.
    """

    groups: Mapping[Any, Estimate]
    total: Estimate

    format: ClassVar[str] = "sfumato-grouped-estimate"

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", types.MappingProxyType(dict(self.groups)))

    def __getstate__(self) -> dict[str, Any]:
        return {"groups": dict(self.groups), "total": self.total}  # a read-only mapping cannot be pickled

    def __getitem__(self, group: Hashable) -> Estimate:
        """Return the estimate of a group; raise UnknownLabel, which is also a KeyError, for another one."""
        if group not in self:
            raise UnknownLabel("GroupedEstimate", "the group", f"be one of {list(self.groups)}", group)
        return self.groups[group]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.groups)

    def __contains__(self, group: object) -> bool:
        try:
            return group in self.groups
        except TypeError:  # a list, or a tuple with a list inside
            return False

    def difference(self, first: Hashable, second: Hashable) -> FrequencyTable:
        """Return for every value the frequency in the first group minus that in the second, with its error.

        Returns
        -------
        FrequencyTable
            A mapping from values to estimated differences, which is also a table.
        """
        if first == second:
            raise InvalidInput("difference", "the groups", "be two different ones", first)
        return FrequencyTable(
            "difference", tuple((group, sign, self[group]) for group, sign in ((first, 1.0), (second, -1.0)))
        )

    def weighted(self, weights: Mapping[Any, float]) -> FrequencyTable:
        """Return the frequencies in a population made up of the groups in these proportions (survey weights).

        Returns
        -------
        FrequencyTable
            A mapping from values to estimated frequencies, which is also a table.
        """
        weights = read_mapping(weights, "weighted", "weights", f"name each of the groups {list(self.groups)}")
        if set(weights) != set(self.groups):
            raise InvalidInput("weighted", "weights", f"name each of the groups {list(self.groups)}", list(weights))
        if not all(is_number(weight) and math.isfinite(weight) for weight in weights.values()):
            raise InvalidInput("weighted", "weights", "be finite numbers", dict(weights))
        total = sum(weights.values())
        if total <= 0 or min(weights.values()) < 0:
            raise InvalidInput("weighted", "weights", "be at least 0, not all 0", dict(weights))
        terms = ((group, float(weights[group] / total), estimate) for group, estimate in self.groups.items())
        return FrequencyTable("frequency", tuple(terms))

    # -- tables and pictures -----------------------------------------------------------------------------------

    def to_pandas(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pandas.DataFrame:
        """Return a table with a row per group and value: group, and the columns of ``Estimate.to_pandas``.

        Parameters
        ----------
        confidence
            The confidence level of the limits ``low`` and ``high``.
        simultaneous
            Whether all intervals of a group together hold with this confidence (Bonferroni).
        """
        return super().to_pandas(confidence, simultaneous=simultaneous)

    def to_arrow(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table; labels that are tuples become strings."""
        return super().to_arrow(confidence, simultaneous=simultaneous)

    def plot(self, confidence: float = 0.95) -> Figure:
        """Return a figure: for every value the frequency in each group, with its interval."""
        figure: Figure = plot_result(self, confidence)
        return figure

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        tables = [estimate._columns(confidence, simultaneous=simultaneous) for estimate in self.groups.values()]
        columns: dict[str, Sequence[Any]] = {
            "group": [group for group in self.groups for _ in range(len(self.total))],
        }
        for name in tables[0]:
            parts = [table[name] for table in tables]
            arrays = isinstance(parts[0], np.ndarray)
            columns[name] = cast("Any", np.concatenate(parts)) if arrays else [cell for part in parts for cell in part]
        return columns

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        most = np.argsort(-self.total.frequencies, kind="stable")[:_MOST_VALUES]
        top = (most if len(self.total) > _MOST_VALUES else np.arange(len(self.total))).tolist()
        rows = [*list(self.groups.items())[: MOST_ROWS - 1], ("all", self.total)]
        columns: dict[str, Sequence[Any]] = {
            "group": [str(group) for group, _ in rows],
            "reports": [estimate.n for _, estimate in rows],
        }
        for x in top:
            cells = [f"{estimate.frequencies[x]:.4f} ± {estimate.standard_errors[x]:.4f}" for _, estimate in rows]
            columns[unused_name(str(self.total.domain.label(x)), columns)] = cells
        return columns

    def _left_out(self) -> int:
        return max(0, len(self.groups) - MOST_ROWS + 1)

    def _title(self) -> str:
        size, most = len(self.total), _MOST_VALUES
        values = f"the {most} most frequent of {size:,} values" if size > most else f"{size} values"
        return f"{len(self.groups)} groups, method {self.total.method}, frequency ± standard error of {values}"

    def __repr__(self) -> str:
        total = self.total
        return f"GroupedEstimate(groups={len(self.groups)}, n={total.n}, values={len(total)}, method={total.method!r})"

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as a document of plain JSON types, from which ``from_dict`` makes equal ones.

        Groups of the mechanism of the total do not repeat its spec.
        """
        groups = []
        for group, estimate in self.groups.items():
            document = estimate.to_dict()
            if isinstance(self.total, MechanismEstimate) and document.get("mechanism") == self.total.mechanism.spec:
                del document["mechanism"]
            groups.append({"group": _group_document(group), "estimate": document})
        return {"format": self.format, "version": VERSION, "total": self.total.to_dict(), "groups": groups}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> GroupedEstimate:
        """Return the estimates that ``to_dict`` described: equal to them, with the same errors and intervals.

        Raises
        ------
        InvalidInput
            If the document is malformed, has no group or one group twice, the groups have different domains, or an
            estimate contradicts its counts (see ``Estimate.from_dict``).
        """
        subject = "GroupedEstimate.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("total", "groups"))
        total = Estimate.from_dict(document["total"])
        mechanism = total.mechanism if isinstance(total, MechanismEstimate) else None
        groups: dict[Any, Estimate] = {}
        for row in read_items(subject, "groups", document["groups"]):
            row = check_keys(subject, "a row of groups", row, required=("group", "estimate"))
            shared = "mechanism" not in row["estimate"]
            estimate = Estimate.from_dict(row["estimate"], mechanism=mechanism if shared else None)
            group = _read_group(subject, row["group"])
            if group in groups:
                raise InvalidInput(subject, "groups", "be different from each other", row["group"])
            if estimate.domain != total.domain:
                raise InvalidInput(subject, f"the domain of {group!r}", "be that of the total", estimate.domain)
            groups[group] = estimate
        if not groups:
            raise InvalidInput(subject, "groups", "be at least one", document["groups"])
        return cls(groups, total)


def _group_document(group: Any) -> Any:
    """Return the name of a group as documents hold it.

    It is a string, a finite number, a truth value, none, a date or a time, or a tuple of these, which becomes a list. A
    date is ``{"date": "2026-01-31"}``, a time ``{"datetime": "2026-01-31T12:00:00"}``. A pandas Timestamp is a time.
    """
    if isinstance(group, tuple):
        return [_group_document(part) for part in group]
    is_time = isinstance(group, (np.datetime64, np.timedelta64))  # which may become bare integers
    plain = group.item() if isinstance(group, np.generic) and not is_time else group
    if isinstance(plain, datetime.date) and plain == plain and not getattr(plain, "nanosecond", 0):
        if not isinstance(plain, datetime.datetime):
            return {"date": plain.isoformat()}
        to_python = getattr(plain, "to_pydatetime", None)  # that of a pandas Timestamp
        return {"datetime": (plain if to_python is None else to_python()).isoformat()}
    if isinstance(plain, float) and math.isfinite(plain):
        return plain
    if plain is not None and not isinstance(plain, (str, int, bool)):
        must = (
            "be a string, a finite number, a truth value, None, a date, a time in whole microseconds, or a tuple of "
            "these to be stored (name groups of other types by str(group))"
        )
        raise InvalidInput("GroupedEstimate.to_dict", "a group", must, group)
    return plain


def _read_group(subject: str, document: Any) -> Any:
    """Return the name of a group that ``_group_document`` wrote."""
    if isinstance(document, list):
        return tuple(_read_group(subject, part) for part in document)
    if isinstance(document, float) and not math.isfinite(document):
        raise InvalidInput(subject, "a group", "not be NaN or infinite", document)
    if isinstance(document, Mapping):
        check_keys(subject, "a group", document, optional=("date", "datetime"))
        ((kind, text),) = document.items()
        reader = datetime.date if kind == "date" else datetime.datetime
        return reader.fromisoformat(text)
    if document is not None and not isinstance(document, (str, int, float)):
        raise InvalidInput(subject, "a group", "be a string, a number, a truth value, a date or a list", document)
    return document


@dataclass(frozen=True, eq=False, repr=False)
class FrequencyTable(FrozenData, Result, Mapping[Any, LinearEstimate]):
    """A number for every value, made of the frequencies in several groups: a mapping from values to estimates.

    ``quantity`` is "difference" or "frequency". ``terms`` has for every group its name, its weight and its estimate;
    the number of a value is Σ weight·frequency. Numbers and errors are those of the unbiased estimates.
    """

    quantity: str
    terms: tuple[tuple[Any, float, Estimate], ...]

    format: ClassVar[str] = "sfumato-frequency-table"

    @property
    def domain(self) -> Domain:
        """The domain of all groups."""
        return self.terms[0][2].domain

    def __getitem__(self, label: object) -> LinearEstimate:
        if label not in self.domain:
            raise UnknownLabel("FrequencyTable", "the label", f"be a value of {self.domain!r}", label)
        return self._row(self.domain.index(label))

    def _row(self, x: int) -> LinearEstimate:
        return weighted_sum([(weight, frequency_of(estimate, x)) for _, weight, estimate in self.terms])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.domain)

    def __len__(self) -> int:
        return len(self.domain)

    def __contains__(self, label: object) -> bool:
        return label in self.domain

    __eq__ = FrozenData.__eq__
    __hash__ = FrozenData.__hash__

    def to_pandas(self, confidence: float = 0.95) -> pandas.DataFrame:
        """Return a table with a row per value: value, the quantity, standard_error, low, high.

        Grids and products have further columns, as in ``Estimate.to_pandas``.

        Parameters
        ----------
        confidence
            The confidence level of the limits ``low`` and ``high``.
        """
        return super().to_pandas(confidence)

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table; labels that are tuples become strings."""
        return super().to_arrow(confidence)

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        check_confidence(confidence)
        return value_table(self.domain, self._numbers(range(len(self)), confidence))

    def plot(self, confidence: float = 0.95) -> Figure:
        """Return a figure: a bar per value, from 0, with its interval."""
        figure: Figure = plot_result(self, confidence)
        return figure

    def _numbers(self, chosen: Sequence[int], confidence: float) -> dict[str, Any]:
        rows = [self._row(x) for x in chosen]
        limits = np.array([row.interval(confidence) for row in rows])
        return {
            self.quantity: np.array([row.value for row in rows]),
            "standard_error": np.array([row.standard_error for row in rows]),
            "low": limits[:, 0],
            "high": limits[:, 1],
        }

    def _top(self) -> npt.NDArray[np.int64]:
        """Return the values that are printed: all in domain order, or those with the largest numbers."""
        if len(self) <= MOST_ROWS:
            return np.arange(len(self))
        sums = np.sum([weight * estimate.unbiased for _, weight, estimate in self.terms], axis=0)
        return np.argsort(-np.abs(sums), kind="stable")[:MOST_ROWS]

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        top = self._top().tolist()
        columns = self._numbers(top, 0.95)
        labels = [str(self.domain.label(x)) for x in top]
        return {"value": labels, **{name: [f"{number:.5f}" for number in column] for name, column in columns.items()}}

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _title(self) -> str:
        if self.quantity == "difference":
            shown = " minus ".join(str(group) for group, *_ in self.terms)
        else:
            shown = ", ".join(f"{group} {weight:.4g}" for group, weight, _ in self.terms)
        return f"{self.quantity}: {shown}, {percent(0.95)} intervals"

    def __repr__(self) -> str:
        groups = [group for group, *_ in self.terms]
        return f"FrequencyTable({self.quantity!r}, groups={groups}, values={len(self)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a document of plain JSON types, from which ``from_dict`` makes an equal one."""
        terms = [
            {"group": _group_document(group), "weight": number_document(weight), "estimate": estimate.to_dict()}
            for group, weight, estimate in self.terms
        ]
        return {"format": self.format, "version": VERSION, "quantity": self.quantity, "terms": terms}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> FrequencyTable:
        """Return the table that ``to_dict`` described: equal to it, with the same errors and intervals.

        Raises
        ------
        InvalidInput
            If the document is malformed, its estimates have different domains, its weights are not those of the
            quantity, or an estimate contradicts its counts (see ``Estimate.from_dict``).
        """
        subject = "FrequencyTable.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("quantity", "terms"))
        if document["quantity"] not in ("difference", "frequency"):
            raise InvalidInput(subject, "quantity", "be 'difference' or 'frequency'", document["quantity"])
        terms = []
        for term in read_items(subject, "terms", document["terms"]):
            term = check_keys(subject, "a term", term, required=("group", "weight", "estimate"))
            weight = read_number(subject, "a weight", term["weight"], least=-1.0, most=1.0)
            terms.append((_read_group(subject, term["group"]), weight, Estimate.from_dict(term["estimate"])))
        weights = [weight for _, weight, _ in terms]
        is_difference = document["quantity"] == "difference"
        if is_difference and weights != [1.0, -1.0]:
            raise InvalidInput(subject, "the weights of a difference", "be 1 and -1", weights)
        if not is_difference and (min(weights, default=0.0) < 0 or abs(sum(weights) - 1) > 1e-9):
            raise InvalidInput(subject, "the weights of frequencies", "be at least 0 and sum to one", weights)
        if any(estimate.domain != terms[0][2].domain for _, _, estimate in terms):
            raise InvalidInput(subject, "the domains of the terms", "be the same", document["terms"])
        return cls(document["quantity"], tuple(terms))


def merged(aggregates: Mapping[Any, Aggregate]) -> Aggregate:
    """Return the counts of all groups together."""
    if not aggregates:
        raise InvalidInput("estimate", "the groups", "be at least one", {})
    first, *others = aggregates.values()
    for other in others:
        first = first.merge(other)
    return first
