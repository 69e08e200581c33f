"""A dense matrix of exact epsilons, as integers that order (and, where they can, add) like them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, Integers
from sfumato.errors import LimitExceeded

__all__ = ["INFINITE_CODE", "LARGEST_DENSE", "EpsilonMatrix"]

#: Code of an infinite epsilon. Twice this still fits 64 bits, so sums of codes need no check.
INFINITE_CODE = 2**61
#: Above this many values a dense matrix is refused (4096² codes are 128 MB).
LARGEST_DENSE = 4096
#: Closures beyond 64-bit sums run on Python integers or on Epsilons, in k³ slow steps.
_LARGEST_BIG_INTEGER_CLOSURE = 400
_LARGEST_SYMBOLIC_CLOSURE = 96


@dataclass(frozen=True, eq=False)
class EpsilonMatrix:
    """``codes[x, x']`` stands for the epsilon ``E[x, x']``; codes compare as the epsilons do.

    With ``unit`` the code n means n·unit, so codes also add. Without it (epsilons such as 1 and "ln 2",
    which have no common unit) codes are positions in the sorted ``table``.
    """

    codes: Integers
    unit: Epsilon | None
    table: tuple[Epsilon, ...] = ()

    @classmethod
    def from_epsilons(cls, positions: npt.NDArray[np.intp], distinct: Sequence[Epsilon]) -> EpsilonMatrix:
        """``distinct[positions[x, x']]`` as epsilons, on a common unit where 64 bits hold it."""
        finite = [e for e in distinct if not e.is_infinite]
        multiples, common = _common_unit(finite)
        unit: Epsilon | None = common
        size = positions.shape[0] if positions.ndim else 1
        if multiples is not None and max(multiples.values(), default=0) * max(size, 1) < INFINITE_CODE:
            code_of = {e: multiples[e] for e in finite}
            table: tuple[Epsilon, ...] = ()
        else:
            unit, table = None, tuple(sorted(set(finite)))
            code_of = {e: rank for rank, e in enumerate(table)}
        per_distinct = np.array([INFINITE_CODE if e.is_infinite else code_of[e] for e in distinct], dtype=np.int64)
        return cls(per_distinct[positions], unit, table)

    def epsilon(self, code: int) -> Epsilon:
        """Return the epsilon that a ``code`` stands for."""
        if code >= INFINITE_CODE:
            return INFINITE
        return self.table[code] if self.unit is None else self.unit * int(code)

    def at(self, x: int, other: int) -> Epsilon:
        """Return the level between the values with these indices."""
        return self.epsilon(int(self.codes[x, other]))

    def on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        """The epsilons between these values, in this order."""
        if np.array_equal(indices, np.arange(len(self.codes))):
            return self
        return EpsilonMatrix(self.codes[np.ix_(indices, indices)], self.unit, self.table)

    @functools.cached_property
    def floats(self) -> npt.NDArray[np.float64]:
        """The epsilons in doubles, for the filter in front of exact comparisons."""
        distinct, positions = np.unique(self.codes, return_inverse=True)
        floats = np.array([float(self.epsilon(int(code))) for code in distinct])
        return np.asarray(floats[positions].reshape(self.codes.shape))

    def least(self) -> tuple[Epsilon, tuple[int, int]]:
        """The smallest epsilon between two different values, and where it stands."""
        return self._extreme(np.argmin, INFINITE_CODE)

    def greatest(self) -> tuple[Epsilon, tuple[int, int]]:
        """The greatest epsilon between two different values, and where it stands."""
        return self._extreme(np.argmax, -1)

    def _extreme(self, arg: Callable[[Integers], Any], diagonal: int) -> tuple[Epsilon, tuple[int, int]]:
        codes = self.codes.copy()
        np.fill_diagonal(codes, diagonal)
        x, other = divmod(int(arg(codes)), codes.shape[1])
        if x == other:  # every epsilon is infinite: any pair will do
            x, other = 0, 1
        return self.at(x, other), (x, other)

    def closed(self) -> EpsilonMatrix:
        """Closed under shortest paths: T_x ≤ e^a·T_z ≤ e^(a+b)·T_x' binds x to x' at a+b."""
        size = self.codes.shape[0]
        if self.unit is not None:
            return EpsilonMatrix(_floyd_warshall(self.codes), self.unit)
        multiples, unit = _common_unit(self.table)
        if multiples is not None and size <= _LARGEST_BIG_INTEGER_CLOSURE:
            per_code = [multiples[e] for e in self.table]
            # A path never costs more than the sum of all epsilons; a greater cost means that there is no path.
            infinite = sum(per_code) * size + 1
            distances = np.array([[per_code[c] if c < INFINITE_CODE else infinite for c in row]
                                  for row in self.codes.tolist()], dtype=object)  # fmt: skip
            closed = _floyd_warshall(distances)
            distinct, positions = np.unique(closed, return_inverse=True)
            epsilons = [INFINITE if value >= infinite else unit * int(value) for value in distinct]
        elif size <= _LARGEST_SYMBOLIC_CLOSURE:
            symbolic = _floyd_warshall_of_epsilons([[self.epsilon(c) for c in row] for row in self.codes.tolist()])
            epsilons = sorted({e for row in symbolic for e in row})
            place = {e: i for i, e in enumerate(epsilons)}
            positions = np.array([[place[e] for e in row] for row in symbolic])
        else:
            raise LimitExceeded(
                f"the closure of {size} values whose levels have no common unit in 64 bits is out of reach; "
                "write the levels with fewer digits, or all as multiples of one level"
            )
        return EpsilonMatrix.from_epsilons(positions.reshape(self.codes.shape), epsilons)

    def plus(self, other: EpsilonMatrix) -> EpsilonMatrix:
        """The sum of each two entries: what two independent releases together may reveal."""
        pairs = np.stack([self.codes.ravel(), other.codes.ravel()])
        distinct, positions = np.unique(pairs, axis=1, return_inverse=True)
        sums = [self.epsilon(int(a)) + other.epsilon(int(b)) for a, b in distinct.T]
        return EpsilonMatrix.from_epsilons(positions.reshape(self.codes.shape), sums)

    def as_promises(self) -> EpsilonMatrix:
        """The same epsilons, or weaker ones where an epsilon cannot be written."""
        distinct, positions = np.unique(self.codes, return_inverse=True)
        epsilons = [self.epsilon(int(code)) for code in distinct]
        promises = [e.as_promise() for e in epsilons]
        return (
            self if promises == epsilons else EpsilonMatrix.from_epsilons(positions.reshape(self.codes.shape), promises)
        )

    def first_above(self, other: EpsilonMatrix) -> tuple[int, int] | None:
        """A pair whose epsilon here is greater than there, or None."""
        size = self.codes.shape[0]
        off_diagonal = ~np.eye(size, dtype=bool)
        pairs = np.stack([self.codes[off_diagonal], other.codes[off_diagonal]])
        distinct, first = np.unique(pairs, axis=1, return_index=True)
        for (mine, theirs), position in zip(distinct.T, first, strict=True):
            if other.epsilon(int(theirs)) < self.epsilon(int(mine)):
                x, remainder = divmod(int(position), size - 1)
                return x, remainder + (remainder >= x)
        return None


def _common_unit(epsilons: Sequence[Epsilon]) -> tuple[dict[Epsilon, int] | None, Epsilon]:
    """Whole multiples of one unit that give these finite epsilons, or None where there is no such unit."""
    reference = next((e for e in epsilons if e != ZERO), None)
    if reference is None:
        return dict.fromkeys(epsilons, 0), Epsilon(1)
    ratios = [e.ratio_to(reference) for e in epsilons]
    if any(ratio is None for ratio in ratios):
        return None, reference
    exact = [ratio for ratio in ratios if ratio is not None]
    scale = math.lcm(*(ratio.denominator for ratio in exact))
    return {e: int(r * scale) for e, r in zip(epsilons, exact, strict=True)}, reference / scale


def _floyd_warshall(distances: npt.NDArray[Any]) -> npt.NDArray[Any]:
    closed = distances.copy()
    np.fill_diagonal(closed, 0)
    for middle in range(closed.shape[0]):
        np.minimum(closed, closed[:, middle, None] + closed[middle], out=closed)
    return closed


def _floyd_warshall_of_epsilons(closed: list[list[Epsilon]]) -> list[list[Epsilon]]:
    size = len(closed)
    for x in range(size):
        closed[x][x] = ZERO
    for middle in range(size):
        for x in range(size):
            via = closed[x][middle]
            if via.is_infinite or x == middle:
                continue
            closed[x] = [min(direct, via + onward) for direct, onward in zip(closed[x], closed[middle], strict=True)]
    return closed
