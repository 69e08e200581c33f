"""Grids: cells in rows and columns; on a map, values are points, which belong to cells."""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.domain.kinds.base import LARGEST, DomainKind, Fault
from sfumato.domain.kinds.counted import Counted, checked_size
from sfumato.domain.kinds.product import Product
from sfumato.domain.refusals import At
from sfumato.domain.rows import split_row
from sfumato.domain.scalars import as_number


def even_ticks(low: Fraction, high: Fraction, steps: int, which: range) -> list[float]:
    """Return some of the ends of ``steps`` equal steps between two numbers, each as the nearest float."""
    unit = math.lcm(low.denominator, high.denominator)
    start, stop = int(low * unit), int(high * unit)
    # The quotient of two ints is correctly rounded, like that of a Fraction, and ten times faster.
    return [(start * (steps - i) + stop * i) / (unit * steps) for i in which]


class Axis(Counted):
    """The interval from ``low`` to ``high`` in ``size`` equal steps; the last step contains both its ends."""

    def __init__(self, low: float, high: float, size: int) -> None:
        super().__init__(size)
        self.low = low
        self.high = high

    @property
    def by_label(self) -> DomainKind:
        return Counted(self.size)

    @property
    def key(self) -> tuple[object, ...]:
        return ("axis", self.low, self.high, self.size)

    def ticks(self, steps: int, which: range) -> list[float]:
        """Return some of the ends of ``steps`` equal steps, each as the float nearest to the exact decimal."""
        return even_ticks(Fraction(repr(self.low)), Fraction(repr(self.high)), steps, which)

    @functools.cached_property
    def edges(self) -> npt.NDArray[np.float64]:
        edges = np.array(self.ticks(self.size, range(self.size + 1)))
        edges.flags.writeable = False  # callers get this array, and a domain is immutable
        return edges

    def centres(self) -> npt.NDArray[np.float64]:
        return np.array(self.ticks(2 * self.size, range(1, 2 * self.size, 2)))

    @functools.cached_property
    def _edge_list(self) -> list[float]:
        return cast("list[float]", self.edges.tolist())

    def place(self, value: object) -> int:
        number = as_number(value)
        if number is None or not self.low <= number <= self.high:
            return -1
        return min(bisect.bisect_right(self._edge_list, number), self.size) - 1

    def fault(self, value: object) -> Fault:
        return "", f"be a number from {self.low} to {self.high}", value

    def of_array(self, array: npt.NDArray[Any]) -> Integers:
        if array.dtype.kind == "b":
            return np.full(len(array), -1, dtype=np.int64)
        array = array.astype(np.float64, copy=False)
        codes = np.searchsorted(self.edges, array, side="right").astype(np.int64, copy=False) - 1
        codes[array == self.high] = self.size - 1
        codes[~(array <= self.high)] = -1  # also true for NaN
        return codes


class Grid(Product):
    """Cells of a map: values are points, labels are (row, column)."""

    name = "grid"

    def __init__(self, latitude: Axis, longitude: Axis) -> None:
        spellings = (("latitude", "lat"), ("longitude", "lon"))
        super().__init__({"latitude": latitude, "longitude": longitude}, spellings)
        self.latitude = latitude
        self.longitude = longitude

    @property
    def by_label(self) -> DomainKind:
        return Product({"row": self.latitude.by_label, "column": self.longitude.by_label})

    def part(self, name: str) -> str:
        return f", {name}"

    def centres(self) -> npt.NDArray[np.float64]:
        latitudes, longitudes = self.latitude.centres(), self.longitude.centres()
        return np.column_stack([np.repeat(latitudes, len(longitudes)), np.tile(longitudes, len(latitudes))])

    def document(self) -> dict[str, Any]:
        bounds = {name: [axis.low, axis.high] for name, axis in self._axes()}
        return {"grid": {**bounds, "rows": self.shape[0], "columns": self.shape[1]}}

    def text(self) -> str:
        bounds = ", ".join(f"{name}=({axis.low}, {axis.high})" for name, axis in self._axes())
        return f"Domain.grid({bounds}, rows={self.shape[0]}, columns={self.shape[1]})"

    def _axes(self) -> tuple[tuple[str, Axis], ...]:
        return ("latitude", self.latitude), ("longitude", self.longitude)


class Board(Product):
    """Cells in rows and columns without a place on a map: values are the labels (row, column)."""

    name = "grid"

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__({"row": Counted(rows), "column": Counted(columns)})

    def document(self) -> dict[str, Any]:
        return {"grid": {"rows": self.shape[0], "columns": self.shape[1]}}

    def text(self) -> str:
        return f"Domain.grid(rows={self.shape[0]}, columns={self.shape[1]})"


def grid_of(
    latitude: object,
    longitude: object,
    rows: object,
    columns: object,
    at: Callable[[str], At],
) -> DomainKind:
    """Return the grid with these bounds, or without bounds if both are None.

    ``at`` maps a parameter's name to its place in messages.
    """
    shape = checked_size(rows, at("rows")), checked_size(columns, at("columns"))
    if latitude is None and longitude is None:
        kind: DomainKind = Board(*shape)
    else:
        for name, bounds in (("latitude", latitude), ("longitude", longitude)):
            if bounds is None:
                raise at(name).error("be given together with the other bounds, or not at all", None)
        kind = Grid(
            _axis(latitude, 90, shape[0], at("latitude"), at("rows")),
            _axis(longitude, 180, shape[1], at("longitude"), at("columns")),
        )
    if kind.size > LARGEST:
        raise at("rows").error("be at most 2**31 when multiplied by columns", shape)
    return kind


def _axis(bounds: object, most: int, steps: int, at: At, steps_at: At) -> Axis:
    """Return an axis after checking its bounds and its number of steps."""
    parts = split_row(bounds, ((), ())) or ()
    numbers = [number for number in map(as_number, parts) if number is not None and -most <= number <= most]
    if len(numbers) < 2 or not numbers[0] < numbers[1]:
        raise at.error(f"be two ascending numbers from -{most} to {most}", bounds)
    low, high = (float(number) + 0.0 for number in numbers)  # -0.0 becomes 0.0
    # Edges that are more than two float spacings apart cannot round to the same float.
    if (Fraction(high) - Fraction(low)) / steps <= 2 * Fraction(math.ulp(max(abs(low), abs(high)))):
        raise steps_at.error(
            "leave each cell wider than floats can resolve", steps, hint="Use fewer cells or wider bounds."
        )
    return Axis(low, high, steps)
