"""Marginal tables that agree with each other: weighted least squares, by parts of an analysis of variance."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato._core import MOST_ROWS, Floats, FrozenData, Result, quantity, read_flag, read_only, reads_document
from sfumato.errors import NoAnswer, UnknownLabel
from sfumato.estimation.documents import VERSION, check_document, read_header
from sfumato.estimation.linear import check_confidence
from sfumato.questions import Marginals, table_columns

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from sfumato.estimation.marginals import MarginalTables, MarginalValues

__all__ = ["ConsistentTables"]

#: Maximum number of rounds of the projection onto tables without negative cells, and the change at which it ends.
_MOST_ROUNDS, _TOLERANCE = 20_000, 1e-11
#: Relative rounding error of variances.
_ROUNDING = 1e-9


class _Average:
    """The linear map from tables to the nearest consistent ones, in the weighted distance.

    A table is the sum of one part per set of its attributes. On the scale of shares, the part of a set is the table
    summed over the other attributes, less its means along each attribute of the set.
    """

    def __init__(self, shape: Sequence[int], axes: Sequence[tuple[int, ...]], weights: Sequence[float]) -> None:
        self._shape, self._axes = shape, axes
        self._sizes = [tuple(shape[axis] for axis in table) for table in axes]
        self._weights = weights
        self._ends = list(itertools.accumulate(map(math.prod, self._sizes), initial=0))
        self._sets = sorted({s for t in axes for n in range(len(t) + 1) for s in itertools.combinations(sorted(t), n)})

    def _spread(self, table: tuple[int, ...], attributes: tuple[int, ...]) -> int:
        """Return the number of cells of a table over which each entry of a part is spread."""
        return math.prod(self._shape[axis] for axis in table if axis not in attributes)

    def _parts(self, cells: Floats) -> dict[tuple[int, ...], list[tuple[int, Floats]]]:
        """Return the parts of every table, as pairs of the table's number and the part, by their attributes."""
        parts: dict[tuple[int, ...], list[tuple[int, Floats]]] = {chosen: [] for chosen in self._sets}
        for number, (table, sizes) in enumerate(zip(self._axes, self._sizes, strict=True)):
            block = cells[..., self._ends[number] : self._ends[number + 1]].reshape(*cells.shape[:-1], *sizes)
            order = np.argsort(table)
            block = np.moveaxis(block, [order[i] - len(table) for i in range(len(table))], range(-len(table), 0))
            ordered = sorted(table)
            for count in range(len(table) + 1):
                for chosen in itertools.combinations(ordered, count):
                    others = tuple(place - len(table) for place, axis in enumerate(ordered) if axis not in chosen)
                    part = block.sum(axis=others)
                    for place in range(count):
                        part = part - part.mean(axis=place - count, keepdims=True)
                    parts[chosen].append((number, part))
        return parts

    def __call__(self, cells: Floats, total: float = 1.0) -> Floats:
        """Return consistent tables with a known total, for cells along the last axis."""
        averages: dict[tuple[int, ...], Floats] = {}
        for chosen, parts in self._parts(cells).items():
            weights = [self._weights[number] / self._spread(self._axes[number], chosen) for number, _ in parts]
            summed = sum((weight * part for weight, (_, part) in zip(weights, parts, strict=True)), np.zeros(1))
            averages[chosen] = np.asarray(summed / sum(weights)) if chosen else np.full(cells.shape[:-1], total)
        blocks = []
        for table in self._axes:
            whole: Any = 0.0
            for count in range(len(table) + 1):
                for chosen in itertools.combinations(sorted(table), count):
                    # The part along its attributes, in the order of the table, and constant along the others.
                    inner = [chosen.index(axis) - count for axis in table if axis in chosen]
                    part = np.moveaxis(averages[chosen], inner, range(-count, 0)) if count else averages[chosen]
                    shape = [self._shape[axis] if axis in chosen else 1 for axis in table]
                    whole = whole + part.reshape(*cells.shape[:-1], *shape) / self._spread(table, chosen)
            sizes = [self._shape[axis] for axis in table]
            blocks.append(np.broadcast_to(whole, (*cells.shape[:-1], *sizes)).reshape(*cells.shape[:-1], -1))
        return np.concatenate(blocks, axis=-1)

    def blocks(self) -> list[slice]:
        """Return the cells of each table."""
        return [slice(first, last) for first, last in itertools.pairwise(self._ends)]

    def without_negative_cells(self, cells: Floats) -> Floats:
        """Return the nearest consistent tables without negative cells, by Dykstra's alternating projections."""
        point, correction = self(cells), np.zeros_like(cells)
        for _ in range(_MOST_ROUNDS):
            clipped = np.maximum(point + correction, 0.0)
            correction = point + correction - clipped
            point = self(clipped)
            if np.abs(point - clipped).max() <= _TOLERANCE:
                return np.maximum(point, 0.0)
        raise NoAnswer(
            f"the projection onto tables without negative cells did not converge in {_MOST_ROUNDS:,} rounds. Use "
            "consistent() without nonnegative=True."
        )


@dataclass(frozen=True, eq=False, repr=False)
class ConsistentTables(FrozenData, Result):
    """Marginal tables that agree with each other, as ``MarginalTables.consistent`` returns them.

    ``tables["sex", "race"]`` returns the shares of one table as an array. The shares of an attribute are the same in
    all tables that contain it, and every table sums to 1.

    Parameters
    ----------
    tables
        The unbiased tables.
    nonnegative
        Whether no cell is negative. Such tables are biased and have no standard errors.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(sex=sf.Domain(["f", "m"]), smokes=sf.Domain(["yes", "no"]))
    >>> mechanism = sf.mechanisms.UnaryEncoding(people, 2)
    >>> counts = sf.Aggregate(mechanism.hash, 100, [25, 10, 20, 35])
    >>> tables = sf.estimate(mechanism, counts).marginals(2)
    >>> print(f"{tables.values.sum():.3f} {tables.consistent().values.sum():.3f}")
    -0.380 1.000
    >>> tables.consistent(nonnegative=True)["sex", "smokes"].round(2)
    array([[0.3 , 0.  ],
           [0.19, 0.51]])
    """

    tables: MarginalTables
    nonnegative: bool = False

    #: Name of the class in documents.
    format: ClassVar[str] = "sfumato-consistent-tables"

    @property
    def question(self) -> Marginals:
        """The question, which states the tables."""
        return self.tables.question

    @functools.cached_property
    def _average(self) -> _Average:
        """The map to consistent tables."""
        return _Average(self.question.domain.shape, self.question.axes, self.tables._weights)

    @functools.cached_property
    def values(self) -> Floats:
        """The share of people in each cell, in the order of ``question.names``."""
        average, cells = self._average, self.tables.values
        return read_only(average.without_negative_cells(cells) if self.nonnegative else average(cells))

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each cell, in the order of ``question.names``.

        Raises
        ------
        NoAnswer
            If the tables have no negative cells, because their errors are not normal.
        LimitExceeded
            If a table has too many cells, or the mechanism has no short form of their covariance.
        """
        if self.nonnegative:
            raise NoAnswer(
                "tables without negative cells are biased and have no standard errors. Use those of the unbiased "
                "tables, or consistent() without nonnegative=True."
            )
        variances = np.concatenate([marginal.variances for marginal in self._marginals])
        return read_only(np.sqrt(variances / self.tables.estimate.n))

    @functools.cached_property
    def _marginals(self) -> list[MarginalValues]:
        """The estimates of all consistent tables."""
        n, marginals = self.tables.estimate.n, []
        for marginal, covariance, block in zip(
            self.tables._marginals, self.tables._covariances, self._average.blocks(), strict=True
        ):
            # Tables of one estimator differ in their totals only, so each is corrected by itself.
            before = np.diag(covariance) * n
            after = np.maximum(np.diag(_centred(_centred(covariance).T)) * n, 0.0)
            # Variances above those of the covariance are least variances, which a correction does not reduce.
            variances, tested = (
                np.where(least > before * (1 + _ROUNDING), least, after)
                for least in (marginal.variances, marginal.tested)
            )
            marginals.append(replace(marginal, cells=self.values[block], variances=variances, tested=tested))
        return marginals

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the confidence limits of each cell, within [0, 1]; see :class:`MarginalTables`.

        Parameters
        ----------
        confidence
            Confidence level of one interval, above 0 and below 1.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, in the order of ``question.names``.
        """
        check_confidence(confidence)
        _ = self.standard_errors  # rejects tables without negative cells
        n, alpha = self.tables.estimate.n, 1 - confidence
        low, high = zip(*(marginal.limits(n, alpha) for marginal in self._marginals), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def __getitem__(self, key: object) -> Floats:
        """Return the shares of one table by its attributes, one axis per attribute; raise UnknownLabel if unknown."""
        attributes = key if isinstance(key, tuple) else (key,)
        for names, block, axes in zip(self.question.tables, self._average.blocks(), self.question.axes, strict=True):
            if set(names) == set(attributes) and len(names) == len(attributes):
                sizes = [self.question.domain.shape[axis] for axis in axes]
                return np.asarray(self.values[block].reshape(sizes).transpose([names.index(n) for n in attributes]))
        raise UnknownLabel("ConsistentTables", "the key", f"be one of {list(self.question.tables)}", key)

    def __len__(self) -> int:
        return len(self.values)

    def to_pandas(self, confidence: float = 0.95) -> pandas.DataFrame:
        """Return the tables as a pandas DataFrame with one row per cell.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pandas.DataFrame
            The columns ``table``, one per attribute, ``frequency`` and, unless no cell is negative,
            ``standard_error``, ``low`` and ``high``.
        """
        return super().to_pandas(confidence)

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``.
        """
        return super().to_arrow(confidence)

    def _numbers(self, confidence: float = 0.95) -> dict[str, Floats]:
        """Return the columns of numbers."""
        if self.nonnegative:
            return {"frequency": self.values}
        low, high = self.interval(confidence)
        return {"frequency": self.values, "standard_error": self.standard_errors, "low": low, "high": high}

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        return table_columns(self.question, self._numbers(confidence))

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        numbers = {name: [f"{x:.5g}" for x in column[:MOST_ROWS]] for name, column in self._numbers().items()}
        return {"cell": list(self.question.names[:MOST_ROWS]), **numbers}

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _title(self) -> str:
        tables = quantity(len(self.question.tables), "table")
        which = "consistent and non-negative" if self.nonnegative else "consistent"
        return f"{quantity(len(self), 'cell')} in {tables}, {which}, {quantity(self.tables.estimate.n, 'report')}"

    def __repr__(self) -> str:
        return f"ConsistentTables(cells={len(self)}, nonnegative={self.nonnegative}, n={self.tables.estimate.n})"

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The document of the unbiased tables, and ``nonnegative``. The shares follow from them.
        """
        header = {"format": self.format, "version": VERSION}
        return {**header, "tables": self.tables.to_dict(), "nonnegative": self.nonnegative}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> ConsistentTables:
        """Return the tables that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        ConsistentTables
            Tables equal to those that were written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or the tables in it are.
        """
        from sfumato.estimation.marginals import MarginalTables

        subject = "ConsistentTables.from_dict"
        read_header(subject, document, cls.format)
        document = check_document(subject, document, ("tables", "nonnegative"))
        tables = MarginalTables.from_dict(document["tables"])
        assert isinstance(tables, MarginalTables)
        return cls(tables, read_flag(subject, "nonnegative", document["nonnegative"]))


def _centred(covariance: Floats) -> Floats:
    """Return the covariance of deviations from the mean along the first axis."""
    return np.asarray(covariance - covariance.mean(axis=0))
