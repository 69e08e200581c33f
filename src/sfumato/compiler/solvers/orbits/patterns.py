"""All extreme rays of a policy on pairs of values, up to permutations of exchangeable values and blocks.

Let the epsilon of two values depend only on their blocks, and let M and m be the greatest and the least likelihood
within a block. The rules are M_c ≤ e^E(c,d)·m_d for blocks c ≠ d, and M_c ≤ e^E(c)·m_c within a block. A value strictly
between m and M is in no tight rule. It can move alone, so the vector is not an extreme ray. Hence every block of an
extreme ray has at most two levels, and (m, M) is an extreme ray of the cone of these rules with m ≤ M. Such a (m, M) is
a *pattern*. Any number of values of each block may be at the high level.

Patterns are the vertices of a polytope of potentials f = ln(m, M): all rules limit differences. The tight rules of a
vertex connect all nodes. Along an edge of the polytope, a set of nodes moves together. ``class_patterns`` follows these
edges from one vertex to all others. An infinite epsilon is replaced by one that exceeds every sum of finite ones, and
levels that are lower by this much are 0 in the limit.

If one epsilon a applies between all blocks, ``block_patterns`` lists the patterns. Let D be the greatest minus the
least potential, scaled to end at 0.

* D = a. The greatest and the least potential are in different blocks. Tight rules between blocks connect the tops at 0
  with the bottoms at -a. Each block is *high* (top at 0) or *low* (bottom at -a), and its width is the least of its
  epsilon and a.
* D > a. One block c has both ends. The ends of all others lie in an interval of length 2a - D, so that no rule between
  them is tight. Each of them is at the upper or the lower end of the interval, with the least of its epsilon and 2a - D
  as its width. The ends of c are connected by its epsilon (D = ε_c), or by a block that touches both ends of the
  interval, whose width is 0 (D = 2a) or its epsilon (D = 2a - ε_d).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.orbits.kinds import Sort

__all__ = ["MOST_NODES", "Cell", "Patterns", "block_patterns", "class_patterns"]

#: Maximum number of levels of a pattern from blocks without a common epsilon between them; sets of levels are listed.
MOST_NODES = 10
#: Maximum number of patterns, and of groups of blocks in one pattern.
_MOST_PATTERNS, _MOST_CELLS = 4096, 10
#: Levels that are lower than the highest one by a greater epsilon are 0, because e^-100 is negligible.
_MOST_EPSILON = 100.0
#: Slack of a rule, relative to the greatest epsilon, below which it counts as tight.
_TIGHT = 1e-11


@dataclass(frozen=True)
class Cell:
    """A number of blocks of one kind with the same two potentials."""

    kind: int
    number: int
    high: float
    low: float


@dataclass(frozen=True, eq=False)
class Patterns:
    """Patterns (rows) of cells (columns): kind, number of blocks, levels, and the most values at the high level.

    Shorter patterns are filled with cells of no blocks.
    """

    kinds: Integers
    numbers: Floats
    highs: Floats
    lows: Floats
    limits: Integers

    @classmethod
    def of(cls, rows: Sequence[Sequence[Cell]], sizes: Floats) -> Patterns:
        """Return the patterns with these cells; levels are scaled to a maximum of 1."""
        width = max(map(len, rows))
        empty = Cell(0, 0, -np.inf, -np.inf)
        filled = [[*row, *[empty] * (width - len(row))] for row in rows]
        kinds = np.array([[cell.kind for cell in row] for row in filled])
        numbers = np.array([[float(cell.number) for cell in row] for row in filled])
        highs, lows = (
            np.array([[getattr(cell, name) for cell in row] for row in filled], dtype=np.float64)
            for name in ("high", "low")
        )
        greatest = highs.max(axis=1, keepdims=True)
        highs, lows = (
            np.where(levels > greatest - _MOST_EPSILON, np.exp(levels - greatest), 0.0) for levels in (highs, lows)
        )
        limits = np.where(highs > lows, numbers * sizes[kinds], 0).astype(np.int64)
        return cls(kinds, numbers, highs, lows, limits)

    def __len__(self) -> int:
        return len(self.kinds)

    def sorts(self, row: int, inside: Sequence[int], is_uneven: Sequence[bool] | None = None) -> list[Sort]:
        """Return the blocks of a ray with this many values at the high level of each cell.

        They are spread evenly over the blocks of a cell, or so that all blocks but one are full or empty.
        """
        sorts = []
        for cell, total in enumerate(inside):
            number = int(self.numbers[row, cell])
            if not number:
                continue
            if is_uneven is not None and is_uneven[cell]:
                size = int(self.limits[row, cell]) // number
                full, rest = divmod(total, size)
                counts = {size: full, rest: 1, 0: number - full - 1} if rest else {size: full, 0: number - full}
            else:
                each, more = divmod(total, number)
                counts = {each: number - more, each + 1: more}
            levels = float(self.highs[row, cell]), float(self.lows[row, cell])
            sorts += [Sort(int(self.kinds[row, cell]), *levels, d, count) for d, count in counts.items() if count]
        return sorts


def block_patterns(numbers: Sequence[int], epsilons: Sequence[float], across: float) -> list[list[Cell]] | None:
    """Return all patterns of blocks with one finite epsilon between them; None if they are too many.

    Parameters
    ----------
    numbers
        Number of blocks of each kind; at least two blocks in total.
    epsilons
        Epsilon within the blocks of each kind; 0 for blocks of one value.
    across
        Epsilon between values of different blocks.
    """
    contexts: list[tuple[int | None, float]] = [(None, across)]
    for kind, epsilon in enumerate(epsilons):
        others = [e for other, e in enumerate(epsilons) if other != kind or numbers[kind] > 1]
        widest = min(epsilon, 2 * across)
        spreads = {widest, *(2 * across - e for e in others if 0 < e < across)}
        contexts += [(kind, spread) for spread in sorted(spreads) if across < spread <= widest]
    patterns: list[list[Cell]] = []
    for special, spread in contexts:
        # The blocks other than the special one lie between these potentials.
        top, bottom = (0.0, -across) if special is None else (across - spread, -across)
        rest = [number - (kind == special) for kind, number in enumerate(numbers)]
        choices = [
            list(_two_tiers(kind, number, top, bottom, min(epsilon, top - bottom)))
            for kind, (number, epsilon) in enumerate(zip(rest, epsilons, strict=True))
        ]
        if len(patterns) + np.prod([float(len(choice)) for choice in choices]) > _MOST_PATTERNS:
            return None
        first = [] if special is None else [Cell(special, 1, 0.0, -spread)]
        patterns += [[*first, *itertools.chain(*choice)] for choice in itertools.product(*choices)]
    return patterns if max(map(len, patterns)) <= _MOST_CELLS else None


def _two_tiers(kind: int, number: int, top: float, bottom: float, width: float) -> Iterator[list[Cell]]:
    """Yield the ways to put blocks at the upper and at the lower end of an interval of potentials."""
    if width == top - bottom:  # both ends are the same
        yield [Cell(kind, number, top, bottom)] if number else []
        return
    for high in range(number + 1):
        cells = [Cell(kind, high, top, top - width), Cell(kind, number - high, bottom + width, bottom)]
        yield [cell for cell in cells if cell.number]


def class_patterns(sizes: Sequence[int], epsilons: Floats, deadline: Deadline = NEVER) -> list[list[Cell]] | None:
    """Return all patterns of classes of exchangeable values; None if they may be too many.

    Parameters
    ----------
    sizes
        Number of values of each class.
    epsilons
        Epsilon between values of two classes; on the diagonal, that between two values of the class.
    deadline
        Time limit; OutOfTime is raised after it.
    """
    tops = np.cumsum([min(size, 2) for size in sizes]) - 1
    bottoms = np.array([top - (size > 1) for top, size in zip(tops.tolist(), sizes, strict=True)])
    nodes = int(tops[-1]) + 1
    if nodes > MOST_NODES:
        return None
    limits = np.full((nodes, nodes), np.inf)
    for c, d in itertools.product(range(len(sizes)), repeat=2):
        limits[tops[c], bottoms[d]] = epsilons[c, d]
    limits[bottoms, tops] = np.minimum(limits[bottoms, tops], 0.0)
    np.fill_diagonal(limits, 0.0)
    finite = np.isfinite(limits)
    infinite = 4 * nodes * (1 + float(limits[finite].max()))
    potentials = _vertices(np.where(finite, limits, infinite), deadline)
    if potentials is None:
        return None
    potentials[potentials < -infinite / 2] = -np.inf
    _, first = np.unique(np.round(potentials, 12), axis=0, return_index=True)
    ends = list(enumerate(zip(tops.tolist(), bottoms.tolist(), strict=True)))
    return [
        [Cell(kind, 1, float(f[top]), float(f[bottom])) for kind, (top, bottom) in ends]
        for f in potentials[np.sort(first)]
    ]


def _vertices(limits: Floats, deadline: Deadline) -> Floats | None:
    """Return all f with maximum 0 and f_i - f_j ≤ limits whose tight rules connect all nodes; None if too many.

    Limits between all nodes must be finite. Every row f_j = -limit(i, j) of shortest paths is such a vertex.
    """
    size = len(limits)
    for middle in range(size):
        limits = np.minimum(limits, limits[:, middle, None] + limits[middle])
    tight = _TIGHT * (1 + limits.max())
    masks = np.arange(1, 2**size - 1)
    members = (masks[:, None] >> np.arange(size) & 1).astype(bool)
    first = -limits[0]
    vertices = {_key(first, tight): first}
    queue = [first]
    while queue:
        deadline.require()
        f = queue.pop()
        slack = limits - (f[:, None] - f)
        rules = (slack <= tight) & ~np.eye(size, dtype=bool)
        for moved in members[_moving(rules, members, masks)]:
            new = f + slack[np.ix_(moved, ~moved)].min() * moved
            new -= new.max()
            key = _key(new, tight)
            if key not in vertices:
                vertices[key] = new
                queue.append(new)
        if len(vertices) > _MOST_PATTERNS:
            return None
    return np.array(list(vertices.values()))


def _key(potentials: Floats, unit: float) -> bytes:
    """Return the same key for potentials that differ by rounding."""
    return bytes(np.round((potentials - potentials.max()) / (10 * unit)).astype(np.int64).data)


def _moving(rules: npt.NDArray[np.bool_], members: npt.NDArray[np.bool_], masks: Integers) -> Integers:
    """Return the sets that move up along an edge of the polytope: rows of ``members``.

    No tight rule limits a node of the set against one outside, and tight rules connect the set and its complement.
    """
    size = len(rules)
    bits = 1 << np.arange(size)
    after = (rules * bits).sum(axis=1)
    closed = np.all(~members | ((after & ~masks[:, None]) == 0), axis=1)
    candidates = np.flatnonzero(closed)
    near = ((rules | rules.T) * bits).sum(axis=1)
    full = (1 << size) - 1
    for side in (masks, full - masks):
        some = side[candidates]
        reached = some & -some
        for _ in range(size):
            inside = (reached[:, None] >> np.arange(size) & 1).astype(bool)
            reached = reached | (np.bitwise_or.reduce(np.where(inside, near, 0), axis=1) & some)
        candidates = candidates[reached == some]
    return candidates
