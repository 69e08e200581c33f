"""Many symmetric matrices with one sparsity pattern: their factors, solutions and the sum of their inverses.

Values are reordered so that entries lie near the diagonal. With blocks as wide as the band, every matrix is block
tridiagonal. Block elimination gives H⁻¹b for all matrices H at once, and a backward recursion gives the blocks of H⁻¹.
For values on a grid of k cells, a matrix has √k blocks of √k values. Its inverse then costs k^2.5 multiplications
instead of k³.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.deadline import Deadline

__all__ = ["BandedFactors", "BandedPattern"]

#: Minimum width of a block, because a step of Python per block costs as much as a product of blocks of this width.
_LEAST_WIDTH = 16
#: Number of entries of block rows that are processed at once; they stay in the cache of a processor.
_ENTRIES_AT_ONCE = 2**20


class BandedPattern:
    """The positions of the entries of symmetric matrices, with an order of the values that keeps the band narrow.

    Parameters
    ----------
    rows, columns
        Position of each entry on or above the diagonal, without duplicates; every value has an entry on the diagonal.
    size
        Number of rows of a matrix.
    """

    def __init__(self, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], size: int) -> None:
        sparse = import_late("scipy.sparse")
        graph = sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), shape=(size, size)).tocsr()
        order = import_late("scipy.sparse.csgraph").reverse_cuthill_mckee(graph + graph.T, symmetric_mode=True)
        places = np.empty(size, dtype=np.int64)
        places[order] = np.arange(size)
        if _bandwidth(rows, columns) <= _bandwidth(places[rows], places[columns]):
            places = np.arange(size)
        #: Position of each value in the order of the blocks.
        self.places = places
        width = min(max(_bandwidth(places[rows], places[columns]), _LEAST_WIDTH), size)
        self.size, self.width = size, size if 2 * width > size else width
        self.blocks = -(-size // self.width)
        low = np.minimum(places[rows], places[columns])
        high = np.maximum(places[rows], places[columns])
        self._rows, self._columns = rows, columns
        #: Number of the entry of each value on the diagonal.
        self._diagonal = np.flatnonzero(rows == columns)[np.argsort(rows[rows == columns])]
        self._inside = low // self.width == high // self.width
        self._position = low // self.width, low % self.width, high % self.width

    @property
    def stored(self) -> int:
        """Number of floats that the factors of one matrix occupy."""
        return 2 * self.blocks * self.width**2

    def factors(self, entries: Floats, deadline: Deadline, *, add: bool) -> BandedFactors | None:
        """Return the factors of one matrix per column of ``entries``; None if the deadline passes first.

        If ``add`` is true, the result has the sum of the inverses, which takes about half of the time.

        The result contains numbers that are not finite if double precision does not resolve a matrix.
        """
        count, blocks, width = entries.shape[1], self.blocks, self.width
        inverses, ratios = np.empty((count, blocks, width, width)), np.empty((count, blocks - 1, width, width))
        total = np.zeros((blocks * width, blocks * width))
        step = max(8, _ENTRIES_AT_ONCE // (blocks * width * width))
        for start in range(0, count, step):
            if deadline.passed:
                return None
            part = slice(start, start + step)
            # With ones on the diagonal, the pivots of matrices whose entries differ by many orders stay accurate.
            scales = 1 / np.sqrt(entries[self._diagonal, part])
            diagonal, above = self._blocks((entries[:, part] * scales[self._rows] * scales[self._columns]).T)
            _eliminate(diagonal, above, inverses[part], ratios[part])
            self._restore(scales, inverses[part], ratios[part])
            if add:
                _add_inverses(total, inverses[part], ratios[part])
        upper = np.triu(total[: self.size, : self.size])
        total = upper + np.triu(upper, 1).T
        return BandedFactors(self, inverses, ratios, total[np.ix_(self.places, self.places)])

    def _blocks(self, entries: Floats) -> tuple[Floats, Floats]:
        """Return the blocks on and above the diagonal; positions beyond the last value have ones on the diagonal."""
        count, blocks, width = len(entries), self.blocks, self.width
        diagonal, above = np.zeros((count, blocks, width, width)), np.zeros((count, blocks - 1, width, width))
        block, row, column = (part[self._inside] for part in self._position)
        diagonal[:, block, row, column] = entries[:, self._inside]
        diagonal[:, block, column, row] = entries[:, self._inside]
        block, row, column = (part[~self._inside] for part in self._position)
        above[:, block, row, column] = entries[:, ~self._inside]
        beyond = np.arange(self.size - (blocks - 1) * width, width)
        diagonal[:, -1, beyond, beyond] = 1.0
        return diagonal, above

    def _restore(self, scales: Floats, inverses: Floats, ratios: Floats) -> None:
        """Turn the factors of the scaled matrices into those of the matrices."""
        padded = np.ones((scales.shape[1], self.blocks * self.width))
        padded[:, self.places] = scales.T
        scales = padded.reshape(-1, self.blocks, self.width)
        inverses *= scales[..., None] * scales[..., None, :]
        ratios *= scales[:, :-1, :, None] / scales[:, 1:, None, :]


class BandedFactors:
    """The factors of several matrices, with the sum of their inverses."""

    def __init__(self, pattern: BandedPattern, inverses: Floats, ratios: Floats, total: Floats) -> None:
        self._pattern, self._inverses, self._ratios = pattern, inverses, ratios
        #: Number of matrices.
        self.count = len(inverses)
        #: Sum of the inverses of all matrices, or zeros. Factors are in double precision, and this sum in single.
        self.sum_of_inverses = total

    def solve(self, right: Floats) -> Floats:
        """Return H⁻¹b for each matrix H and the column b of ``right`` with its number."""
        pattern, count = self._pattern, right.shape[1]
        padded = np.zeros((count, pattern.blocks * pattern.width))
        padded[:, pattern.places] = right.T
        parts = padded.reshape(count, pattern.blocks, pattern.width, 1)
        for i in range(pattern.blocks - 1):
            parts[:, i + 1] -= self._ratios[:, i].transpose(0, 2, 1) @ parts[:, i]
        for i in reversed(range(pattern.blocks)):
            parts[:, i] = self._inverses[:, i] @ parts[:, i]
            if i + 1 < pattern.blocks:
                parts[:, i] -= self._ratios[:, i] @ parts[:, i + 1]
        return np.ascontiguousarray(padded[:, pattern.places].T)


def _bandwidth(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> int:
    """Return the greatest distance of an entry from the diagonal."""
    return int(np.abs(rows - columns).max(initial=0))


def _eliminate(diagonal: Floats, above: Floats, inverses: Floats, ratios: Floats) -> None:
    """Write the inverse pivots A_i⁻¹ and the ratios A_i⁻¹·O_i, where A_i+1 = D_i+1 - O_i'·A_i⁻¹·O_i."""
    pivot: Any = diagonal[:, 0]
    for i in range(diagonal.shape[1]):
        try:
            inverses[:, i] = np.linalg.inv(pivot)
        except np.linalg.LinAlgError:  # the caller recognises a failure by numbers that are not finite
            inverses[:, i] = np.nan
        if i + 1 < diagonal.shape[1]:
            ratios[:, i] = inverses[:, i] @ above[:, i]
            pivot = diagonal[:, i + 1] - above[:, i].transpose(0, 2, 1) @ ratios[:, i]


def _add_inverses(total: Floats, inverses: Floats, ratios: Floats) -> None:
    """Add the blocks on and above the diagonal of all inverses to ``total``.

    The matrices of a search have entries of at most 0 off the diagonal, so their inverses and negated ratios have none
    below 0. Sums of such products lose no digits, and single precision suffices for a Newton step. It is three times
    faster than double precision.
    """
    single, falls = inverses.astype(np.float32), -ratios.astype(np.float32)
    blocks, width = single.shape[1], single.shape[2]
    row = single[:, -1]
    total[-width:, -width:] += row.sum(axis=0)
    for i in reversed(range(blocks - 1)):
        longer = np.empty((len(single), width, (blocks - i) * width), dtype=np.float32)
        np.matmul(falls[:, i], row, out=longer[:, :, width:])
        longer[:, :, :width] = single[:, i] + longer[:, :, width : 2 * width] @ falls[:, i].transpose(0, 2, 1)
        row = longer
        total[i * width : (i + 1) * width, i * width :] += row.sum(axis=0)
