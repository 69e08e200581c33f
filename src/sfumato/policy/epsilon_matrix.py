"""Dense matrices of exact epsilons, stored as integer codes with the same order."""

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

#: Code of an infinite epsilon; twice this code fits 64 bits, so sums of codes cannot overflow.
INFINITE_CODE = 2**61
#: Maximum number of values of a dense matrix; 4096² codes take 128 MB.
LARGEST_DENSE = 4096
#: Maximum number of values whose closure is computed with Python integers or with Epsilons, in k³ slow steps.
_LARGEST_BIG_INTEGER_CLOSURE = 400
_LARGEST_SYMBOLIC_CLOSURE = 96


@dataclass(frozen=True, eq=False)
class EpsilonMatrix:
    """Square matrix of exact epsilons, one for each ordered pair of values.

    Entry (x, x') limits how much likelier an output may be for value x than for value x'.
    :meth:`PairwisePolicy.epsilon_matrix` returns such a matrix, and :meth:`at` returns one of its entries. Entries are
    stored as integer codes, which are in the same order as the epsilons they represent.

    Parameters
    ----------
    codes
        Square int64 array of codes. If ``unit`` is set, the code n means n·unit; otherwise n is a position in
        ``table``. A code for infinity is larger than all others.
    unit
        Epsilon of which all finite entries are multiples; None if they have no common unit, such as 1 and ``"ln 2"``.
    table
        The distinct finite epsilons in ascending order if ``unit`` is None; otherwise empty.

    Examples
    --------
    >>> from sfumato import Domain, Metric
    >>> matrix = Metric(Domain.range(3), "absolute", "1/2").epsilon_matrix()
    >>> matrix.at(0, 2), matrix.greatest()
    (Epsilon('1'), (Epsilon('1'), (0, 2)))
    """

    codes: Integers
    unit: Epsilon | None
    table: tuple[Epsilon, ...] = ()

    @classmethod
    def from_epsilons(cls, positions: npt.NDArray[np.intp], distinct: Sequence[Epsilon]) -> EpsilonMatrix:
        """Build a matrix from its distinct epsilons and the position of each entry among them.

        Parameters
        ----------
        positions
            Square array of positions in ``distinct``.
        distinct
            The epsilons that occur in the matrix, in any order.

        Returns
        -------
        EpsilonMatrix
            The matrix with the entries ``distinct[positions[x, x']]``.
        """
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
        """Return the epsilon that an integer code represents.

        Parameters
        ----------
        code
            An entry of the array ``codes``.

        Returns
        -------
        Epsilon
            The exact epsilon, which may be infinite.
        """
        if code >= INFINITE_CODE:
            return INFINITE
        return self.table[code] if self.unit is None else self.unit * int(code)

    def at(self, x: int, other: int) -> Epsilon:
        """Return the epsilon of an ordered pair of values.

        Parameters
        ----------
        x
            Row: index of the first value.
        other
            Column: index of the second value.

        Returns
        -------
        Epsilon
            The entry in row x and column other.
        """
        return self.epsilon(int(self.codes[x, other]))

    def on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        """Return the submatrix of some values.

        Parameters
        ----------
        indices
            Indices of the values.

        Returns
        -------
        EpsilonMatrix
            Square matrix with rows and columns in the order of ``indices``.
        """
        if np.array_equal(indices, np.arange(len(self.codes))):
            return self
        return EpsilonMatrix(self.codes[np.ix_(indices, indices)], self.unit, self.table)

    @functools.cached_property
    def floats(self) -> npt.NDArray[np.float64]:
        """The matrix as a square float array of the nearest floats, with ``inf`` where an entry is infinite."""
        distinct, positions = np.unique(self.codes, return_inverse=True)
        floats = np.array([float(self.epsilon(int(code))) for code in distinct])
        return np.asarray(floats[positions].reshape(self.codes.shape))

    def least(self) -> tuple[Epsilon, tuple[int, int]]:
        """Return the smallest epsilon of an ordered pair of different values.

        Returns
        -------
        tuple
            The epsilon, and the pair of indices (row, column) of such an entry.
        """
        return self._extreme(np.argmin, INFINITE_CODE)

    def greatest(self) -> tuple[Epsilon, tuple[int, int]]:
        """Return the greatest epsilon of an ordered pair of different values.

        Returns
        -------
        tuple
            The epsilon, and the pair of indices (row, column) of such an entry.
        """
        return self._extreme(np.argmax, -1)

    def _extreme(self, arg: Callable[[Integers], Any], diagonal: int) -> tuple[Epsilon, tuple[int, int]]:
        """Return the entry that ``arg`` selects off the diagonal, and its indices."""
        codes = self.codes.copy()
        np.fill_diagonal(codes, diagonal)
        x, other = divmod(int(arg(codes)), codes.shape[1])
        if x == other:  # every epsilon is infinite, so any pair is correct
            x, other = 0, 1
        return self.at(x, other), (x, other)

    def closed(self) -> EpsilonMatrix:
        """Return the effective epsilons: for each ordered pair, the smallest epsilon that all entries together imply.

        A limit of a from x to z and a limit of b from z to x' imply a limit of a + b from x to x'. The effective
        epsilon is therefore the length of the shortest path from x to x'.

        Returns
        -------
        EpsilonMatrix
            The matrix of the lengths of all shortest paths.

        Raises
        ------
        LimitExceeded
            If the matrix is large and its epsilons are not multiples of a common unit that 64-bit codes can represent.
        """
        size = self.codes.shape[0]
        if self.unit is not None:
            return EpsilonMatrix(_floyd_warshall(self.codes), self.unit)
        multiples, unit = _common_unit(self.table)
        if multiples is not None and size <= _LARGEST_BIG_INTEGER_CLOSURE:
            per_code = [multiples[e] for e in self.table]
            # No path costs more than the sum of all epsilons; a greater cost means that no path exists.
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
                f"the effective epsilons of {size} values cannot be computed, because the epsilons have no common unit "
                "that fits 64 bits. State the epsilons with fewer digits, or all as multiples of one epsilon."
            )
        return EpsilonMatrix.from_epsilons(positions.reshape(self.codes.shape), epsilons)

    def plus(self, other: EpsilonMatrix) -> EpsilonMatrix:
        """Return the entrywise sum of two matrices, which limits two independent releases together.

        Parameters
        ----------
        other
            A matrix over the same values.

        Returns
        -------
        EpsilonMatrix
            The sum.
        """
        pairs = np.stack([self.codes.ravel(), other.codes.ravel()])
        distinct, positions = np.unique(pairs, axis=1, return_inverse=True)
        sums = [self.epsilon(int(a)) + other.epsilon(int(b)) for a, b in distinct.T]
        return EpsilonMatrix.from_epsilons(positions.reshape(self.codes.shape), sums)

    def as_promises(self) -> EpsilonMatrix:
        """Return a matrix whose entries can all be written to a file, each rounded up if necessary.

        See :meth:`Epsilon.as_promise` for the epsilons that are rounded.

        Returns
        -------
        EpsilonMatrix
            A matrix whose entries are at least those of this one; this matrix if nothing is rounded.
        """
        distinct, positions = np.unique(self.codes, return_inverse=True)
        epsilons = [self.epsilon(int(code)) for code in distinct]
        promises = [e.as_promise() for e in epsilons]
        return (
            self if promises == epsilons else EpsilonMatrix.from_epsilons(positions.reshape(self.codes.shape), promises)
        )

    def first_above(self, other: EpsilonMatrix) -> tuple[int, int] | None:
        """Return an ordered pair of values whose epsilon is greater in this matrix than in another one.

        Parameters
        ----------
        other
            A matrix over the same values.

        Returns
        -------
        tuple of int or None
            The indices (row, column) of such a pair, or None if no entry is greater.
        """
        size = self.codes.shape[0]
        off_diagonal = ~np.eye(size, dtype=bool)
        mine, theirs = self.codes[off_diagonal], other.codes[off_diagonal]
        distinct, place = np.unique(mine, return_inverse=True)
        other_distinct, other_place = np.unique(theirs, return_inverse=True)
        # Codes are in the order of the epsilons. Of all pairs with one epsilon in one matrix, only the extreme epsilon
        # in the other matrix must be compared, which takes one exact comparison per distinct epsilon.
        if len(distinct) <= len(other_distinct):
            own_codes, other_codes = distinct, np.full(len(distinct), INFINITE_CODE)
            np.minimum.at(other_codes, place, theirs)
        else:
            own_codes, other_codes = np.zeros(len(other_distinct), dtype=np.int64), other_distinct
            np.maximum.at(own_codes, other_place, mine)
        for code, other_code in zip(own_codes.tolist(), other_codes.tolist(), strict=True):
            if other.epsilon(other_code) < self.epsilon(code):
                position = int(np.flatnonzero((mine == code) & (theirs == other_code))[0])
                x, remainder = divmod(position, size - 1)
                return x, remainder + (remainder >= x)
        return None


def _common_unit(epsilons: Sequence[Epsilon]) -> tuple[dict[Epsilon, int] | None, Epsilon]:
    """Return finite epsilons as integer multiples of a common unit, or None if they have no such unit."""
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
    """Return the lengths of all shortest paths."""
    closed = distances.copy()
    np.fill_diagonal(closed, 0)
    for middle in range(closed.shape[0]):
        np.minimum(closed, closed[:, middle, None] + closed[middle], out=closed)
    return closed


def _floyd_warshall_of_epsilons(closed: list[list[Epsilon]]) -> list[list[Epsilon]]:
    """Return the lengths of all shortest paths between exact epsilons; the argument is changed in place."""
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
