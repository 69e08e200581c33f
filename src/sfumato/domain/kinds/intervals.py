"""Intervals: real numbers, divided into adjacent bins with exact edges."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers, exact_fraction
from sfumato.domain.columns import library
from sfumato.domain.kinds.base import CellReader, DomainKind, Fault, Scalar
from sfumato.domain.kinds.grid import even_ticks
from sfumato.domain.refusals import At, listing
from sfumato.domain.scalars import Label, as_double, read_double
from sfumato.errors import Description

#: The side on which bins contain their edge.
Closed: TypeAlias = Literal["left", "right"]
#: Maximum number of bins, because their edges are stored.
MOST_BINS = 2**20
#: Largest magnitude and largest denominator of a bound; they keep labels short.
_LARGEST_BOUND, _LARGEST_DENOMINATOR = 2**53, 10**30


class Intervals(Scalar):
    """Adjacent bins of numbers. A bin contains its edge on the ``closed`` side, and the outermost edges are included.

    Edges are exact. A value is rounded to a double, and compared with the double nearest to each edge.
    """

    name = "numbers"
    is_ordered = True
    is_numeric = True
    reads_decimals = True

    def __init__(
        self,
        marks: tuple[Fraction, ...],
        size: int,
        *,
        closed: Closed = "left",
        clips: bool = True,
        only_labels: bool = False,
    ) -> None:
        self.size = size
        self.shape = (size,)
        self.closed = closed
        self.clips = clips
        self._marks = marks  # two bounds with equal bins between them, or all edges
        self._only_labels = only_labels

    @functools.cached_property
    def by_label(self) -> DomainKind:  # cached with its table of labels
        if self._only_labels:
            return self
        return Intervals(self._marks, self.size, closed=self.closed, clips=self.clips, only_labels=True)

    @property
    def key(self) -> tuple[object, ...]:
        return ("numbers", self._marks, self.size, self.closed, self.clips)

    @property
    def _is_even(self) -> bool:
        return len(self._marks) == 2

    def edge(self, index: int) -> Fraction:
        """Return the exact edge below the bin with an index; the last one is above all bins."""
        if not self._is_even:
            return self._marks[index]
        start, stop, unit = self._units
        return Fraction(start * (self.size - index) + stop * index, unit * self.size)

    @functools.cached_property
    def _units(self) -> tuple[int, int, int]:
        """The lowest and the highest edge as ints, and their unit's denominator."""
        low, high = self._marks[0], self._marks[-1]
        unit = math.lcm(low.denominator, high.denominator)
        return int(low * unit), int(high * unit), unit

    @functools.cached_property
    def exact_edges(self) -> list[Fraction]:
        """All edges, ascending."""
        return [self.edge(i) for i in range(self.size + 1)]

    @functools.cached_property
    def edges(self) -> Floats:
        """The double nearest to each edge, ascending."""
        even = even_ticks(self._marks[0], self._marks[-1], self.size, range(self.size + 1)) if self._is_even else None
        edges = np.array(even or [float(edge) for edge in self._marks])
        edges.flags.writeable = False  # callers get this array, and a domain is immutable
        return edges

    @functools.cached_property
    def _inner_edges(self) -> list[float]:
        return cast("list[float]", self.edges[1:-1].tolist())

    @functools.cached_property
    def _labels(self) -> tuple[str, ...]:
        shown, right = [decimal(edge) for edge in self.exact_edges], self.closed == "right"
        return tuple(
            f"{'(' if right and i > 0 else '['}{shown[i]}, {shown[i + 1]}{']' if right or i == self.size - 1 else ')'}"
            for i in range(self.size)
        )

    @functools.cached_property
    def _table(self) -> dict[object, int]:
        return {label: i for i, label in enumerate(self._labels)}

    def label(self, index: int) -> Label:
        return self._labels[index]

    def labels(self) -> Iterator[Label]:
        return iter(self._labels)

    def place(self, value: object) -> int:
        if isinstance(value, str):
            return self._table.get(str.__str__(value), -1)
        if is_interval(value):
            return self._place_interval(value)
        number = None if self._only_labels else as_double(value)
        if number is None or not (self.clips or self.edges[0] <= number <= self.edges[-1]):
            return -1
        find = bisect.bisect_right if self.closed == "left" else bisect.bisect_left
        return find(self._inner_edges, number)

    def _place_interval(self, interval: Any) -> int:
        """Return the index of the bin that equals a ``pandas.Interval``, or -1."""
        left, right = as_double(interval.left), as_double(interval.right)
        if left is None or interval.closed != self.closed:
            return -1
        index = int(np.searchsorted(self.edges[:-1], left))
        return index if index < self.size and (self.edges[index], self.edges[index + 1]) == (left, right) else -1

    def fault(self, value: object) -> Fault:
        bounds = "" if self.clips else f" from {decimal(self.edge(0))} to {decimal(self.edge(self.size))}"
        return "", f"be {'' if self._only_labels else f'a number{bounds}, or '}one of {listing(self._labels, 3)}", value

    def of_items(self, items: list[Any]) -> Integers:
        if set(map(type, items)) <= {int, float}:
            try:
                return self.of_array(np.array(items, dtype=np.float64))
            except OverflowError:  # an int beyond the largest double
                pass
        return np.array([self.place(item) for item in items], dtype=np.int64)

    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        if array.dtype.kind == "b" or self._only_labels:
            return np.full(len(array), -1, dtype=np.int64)
        array = array.astype(np.float64, copy=False)
        side: Literal["left", "right"] = "right" if self.closed == "left" else "left"
        codes = np.searchsorted(self.edges[1:-1], array, side=side).astype(np.int64)
        inside = ~np.isnan(array) if self.clips else (array >= self.edges[0]) & (array <= self.edges[-1])
        return np.where(inside, codes, -1)

    @property
    def cell_reader(self) -> CellReader | None:
        def read_cell(cell: str) -> object | None:
            return cell if cell in self._table else read_double(cell)

        return read_cell, "be a number or the label of a bin"

    def exact_numbers(self) -> list[Fraction | None] | None:
        edges = self.exact_edges
        return [(low + high) / 2 for low, high in itertools.pairwise(edges)]

    def numbers(self) -> Floats | None:
        if not self._is_even:
            return super().numbers()
        return np.array(even_ticks(self._marks[0], self._marks[1], 2 * self.size, range(1, 2 * self.size, 2)))

    def widths(self) -> Floats:
        if self._is_even:
            return np.full(self.size, float((self._marks[1] - self._marks[0]) / self.size))
        return np.array([float(high - low) for low, high in itertools.pairwise(self._marks)])

    def decode(self, codes: Integers) -> list[Label]:
        return list(map(self._labels.__getitem__, codes.tolist()))

    def document(self) -> dict[str, Any]:
        shown = [_number_document(mark) for mark in self._marks]
        document: dict[str, Any] = {"edges": shown}
        if self._is_even:
            document = {"low": shown[0], "high": shown[1], "bins": self.size}
        if self.closed == "right":
            document["closed"] = "right"
        return document if self.clips else {**document, "out_of_range": "refuse"}

    def text(self) -> str:
        shown = [decimal(mark) if "/" not in decimal(mark) else repr(decimal(mark)) for mark in self._marks]
        bounds = f"{shown[0]}, {shown[1]}, bins={self.size}" if self._is_even else f"edges=[{', '.join(shown)}]"
        closed = "" if self.closed == "left" else ", closed='right'"
        refused = "" if self.clips else ", out_of_range='refuse'"
        return f"Domain.numbers({bounds}{closed}{refused})"


def decimal(number: Fraction) -> str:
    """Return a number in plain digits: as a decimal if it has finitely many places, otherwise as a fraction."""
    places = _decimal_places(number.denominator)
    if places is None:
        return str(number)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


@functools.lru_cache(maxsize=4096)
def _decimal_places(denominator: int) -> int | None:
    """Return how many decimal places a reduced fraction has; None if they do not end."""
    return next((places for places in range(denominator.bit_length()) if 10**places % denominator == 0), None)


def _number_document(number: Fraction) -> int | str:
    """Return a number for a document: an int, or a string that keeps other numbers exact."""
    return int(number) if number.denominator == 1 else decimal(number)


def is_interval(value: object) -> bool:
    """Return whether a value is a ``pandas.Interval``."""
    return type(value).__name__ == "Interval" and library(value) == "pandas"


def even_intervals(
    low: object, high: object, bins: object, step: object, ats: tuple[At, At, At, At], *, closed: Closed, clips: bool
) -> Intervals:
    """Return equal bins between two bounds, of which either the number or the width is given.

    ``ats`` are the places of the bounds, of ``bins`` and of ``step`` in messages.
    """
    first, last = _bound(low, ats[0]), _bound(high, ats[1])
    if not first < last:
        raise ats[1].error(f"be greater than the lower bound {decimal(first)}", high)
    if (bins is None) == (step is None):
        raise ats[2].error("be given, or step, but not both", bins)
    if step is not None:
        width = _bound(step, ats[3])
        if width <= 0 or ((last - first) / width).denominator != 1:
            shown = decimal(last - first)
            hint = "Choose a high bound that is a whole number of steps above the low bound."
            raise ats[3].error(f"be positive and divide the distance {shown} of the bounds", step, hint=hint)
        bins = int((last - first) / width)
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 1 <= bins <= MOST_BINS:
        raise ats[2].error(f"be an int from 1 to {MOST_BINS}", bins)
    return _resolved(Intervals((first, last), int(bins), closed=closed, clips=clips), ats[2], bins)


def uneven_intervals(edges: Sequence[object], at: At, *, closed: Closed, clips: bool) -> Intervals:
    """Return the bins between ascending edges; equal ones have the same description as from their number."""
    marks = [_bound(edge, at.item(i)) for i, edge in enumerate(edges)]
    if not 2 <= len(marks) <= MOST_BINS + 1 or any(low >= high for low, high in itertools.pairwise(marks)):
        raise at.error("be at least two ascending numbers", list(edges))
    gaps = {high - low for low, high in itertools.pairwise(marks)}
    stored = (marks[0], marks[-1]) if len(gaps) == 1 else tuple(marks)
    return _resolved(Intervals(stored, len(marks) - 1, closed=closed, clips=clips), at, list(edges))


def intervals_of(items: list[Any], at: At) -> Intervals:
    """Return the bins of a list of ``pandas.Interval``, which must be adjacent and ascending."""
    for i, (interval, following) in enumerate(itertools.pairwise(items)):
        if following.left != interval.right:
            problem = "overlaps" if following.left < interval.right else "leaves a gap after"
            got = Description(f"{following}, which {problem} {interval}")
            raise at.item(i + 1).error("begin where the interval before it ends", got)
    closed = items[0].closed
    if closed not in ("left", "right") or any(interval.closed != closed for interval in items):
        hint = 'Use intervals with closed="left" or closed="right".'
        raise at.error("all be closed on the left or all on the right, so that no number is in two", closed, hint=hint)
    return uneven_intervals([items[0].left, *(interval.right for interval in items)], at, closed=closed, clips=True)


def _bound(value: object, at: At) -> Fraction:
    """Return a bound or an edge; a float means its shortest decimal."""
    try:
        number = exact_fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise at.error("be a finite number", value) from None
    if abs(number) > _LARGEST_BOUND or number.denominator > _LARGEST_DENOMINATOR:
        raise at.error("be a number from -2**53 to 2**53 with at most 30 decimal places", value)
    return number


def _resolved(intervals: Intervals, at: At, got: object) -> Intervals:
    """Return intervals, or reject bins that are too narrow for doubles."""
    if not (np.diff(intervals.edges) > 0).all():
        raise at.error("leave each bin wider than floats can resolve", got, hint="Use fewer or wider bins.")
    return intervals
