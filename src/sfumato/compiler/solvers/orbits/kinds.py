"""Exchangeable values: blocks of values, kinds of blocks, and the information that an orbit of rays has about each.

Permutations of the values within a block, and of the blocks of one kind, change neither the policy nor the
distribution. The average of v v' over these permutations has one small matrix per component:

* the means of the kinds: one matrix;
* the differences between blocks of a kind: one number per kind;
* the differences between values of a block: one number per kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato._core import Floats, Integers

__all__ = ["Kinds", "Orbits", "Sort"]

#: Number of significant digits at which two levels count as equal.
_DIGITS = 12


@dataclass(frozen=True, order=True)
class Sort:
    """Equal blocks of a ray: their kind, their number, and how many values of each are ``inside``, at the high level.

    In a ray of a prior policy, one value may be at a third level.
    """

    kind: int
    high: float
    low: float
    inside: int
    number: int = 1
    third: float | None = None

    def mapped(self, function: Callable[[float], float]) -> Sort:
        """Return the same blocks with other levels."""
        third = None if self.third is None else function(self.third)
        return Sort(self.kind, function(self.high), function(self.low), self.inside, self.number, third)


@dataclass(frozen=True, eq=False)
class Orbits:
    """Some orbits (rows), scaled to v·p = 1, with one column per kind.

    Attributes
    ----------
    sorts
        The blocks of one ray of each orbit.
    sums
        Sum of v over the values of each kind.
    between
        Sum of the squared differences between the sums of the blocks and their mean.
    within
        Sum of the squared differences between the values and the means of their blocks.
    information
        Σ p·v·ln v of one ray.
    """

    sorts: tuple[tuple[Sort, ...], ...]
    sums: Floats
    between: Floats
    within: Floats
    information: Floats

    def __len__(self) -> int:
        return len(self.sorts)

    def of(self, rows: Sequence[int]) -> Orbits:
        """Return the orbits in these rows."""
        numbers = (self.sums[rows], self.between[rows], self.within[rows], self.information[rows])
        return Orbits(tuple(self.sorts[row] for row in rows), *numbers)

    def __add__(self, other: Orbits) -> Orbits:
        names = ("sums", "between", "within", "information")
        joined = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in names)
        return Orbits(self.sorts + other.sorts, *joined)


@dataclass(frozen=True, eq=False)
class Kinds:
    """Kinds of exchangeable blocks of exchangeable values.

    Attributes
    ----------
    blocks
        For each kind, the indices of its values in the domain: one row per block.
    probabilities
        Probability of each value of a kind.
    """

    blocks: tuple[Integers, ...]
    probabilities: Floats

    @classmethod
    def of(cls, blocks: Sequence[Integers], prior: Floats) -> Kinds:
        """Return the kinds with the probabilities of their values under a distribution that is constant on kinds."""
        return cls(tuple(blocks), np.array([prior[block[0, 0]] for block in blocks]))

    @property
    def numbers(self) -> Floats:
        """Number of blocks of each kind."""
        return np.array([float(block.shape[0]) for block in self.blocks])

    @property
    def sizes(self) -> Floats:
        """Number of values in each block of a kind."""
        return np.array([float(block.shape[1]) for block in self.blocks])

    @property
    def values(self) -> Floats:
        """Number of values of each kind."""
        return self.numbers * self.sizes

    @property
    def squared_norm(self) -> float:
        """Sum of the squared probabilities of all values."""
        return float(self.values @ self.probabilities**2)

    @property
    def components(self) -> list[tuple[str, int, int]]:
        """Each component: its name, its kind and its dimension; that of the means has one dimension per kind."""
        numbers, sizes = self.numbers.astype(int).tolist(), self.sizes.astype(int).tolist()
        between = [("between", kind, number - 1) for kind, number in enumerate(numbers) if number > 1]
        rest = [(n, s - 1) for n, s in zip(numbers, sizes, strict=True)]
        within = [("within", kind, number * size) for kind, (number, size) in enumerate(rest) if size]
        return [("means", 0, 1), *between, *within]

    def means(self, orbits: Orbits) -> Floats:
        """Return the mean of each kind of values (columns) in each orbit (rows)."""
        return np.asarray(orbits.sums / self.values)

    def parts(self, orbits: Orbits) -> list[Floats]:
        """Return the average of v v' over each orbit, by component."""
        lengths = orbits.sums / np.sqrt(self.values)
        parts = [lengths[:, :, None] * lengths[:, None, :]]
        for name, kind, dimension in self.components[1:]:
            if name == "between":
                part = orbits.between[:, kind] / self.sizes[kind] / dimension
            else:
                part = orbits.within[:, kind] / dimension
            parts.append(np.asarray(part[:, None, None]))
        return parts

    def orbits(self, rays: Sequence[Sequence[Sort]]) -> Orbits:
        """Return the orbits of rays, which are scaled here."""
        shape = (len(rays), len(self.blocks))
        sums, between, within, entropies = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(len(rays))
        scaled = []
        for row, sorts in enumerate(rays):
            levels = [(sort, self._levels(sort)) for sort in sorts]
            total = sum(
                self.probabilities[sort.kind] * sort.number * counts @ heights for sort, (counts, heights) in levels
            )
            for sort, (counts, heights) in levels:
                of_block = float(counts @ heights) / total
                mean = of_block / counts.sum()
                sums[row, sort.kind] += sort.number * of_block
                within[row, sort.kind] += sort.number * float(counts @ (heights / total - mean) ** 2)
                logarithms = np.log(np.where(heights > 0, heights / total, 1.0))
                entropy = float(counts @ (heights * logarithms)) / total
                entropies[row] += self.probabilities[sort.kind] * sort.number * entropy
            for sort, (counts, heights) in levels:
                mean = sums[row, sort.kind] / self.numbers[sort.kind]
                between[row, sort.kind] += sort.number * (float(counts @ heights) / total - mean) ** 2
            scaled.append(tuple(sorted(self._scaled(sort, total) for sort in sorts if sort.number)))
        return Orbits(tuple(scaled), sums, between, within, entropies)

    def _levels(self, sort: Sort) -> tuple[Floats, Floats]:
        """Return the number of values at each level of a block, and the levels."""
        thirds = 0 if sort.third is None else 1
        low = self.blocks[sort.kind].shape[1] - sort.inside - thirds
        return np.array([sort.inside, low, thirds], dtype=np.float64), np.array(
            [sort.high, sort.low, sort.third or 0.0]
        )

    def _scaled(self, sort: Sort, total: float) -> Sort:
        """Return a sort in the scale v·p = 1, in the same form for equal rays."""
        scaled = sort.mapped(lambda level: float(f"{level / total:.{_DIGITS}g}"))
        size = self.blocks[sort.kind].shape[1] - (sort.third is not None)
        if scaled.high == scaled.low or sort.inside in (0, size):
            level = scaled.high if sort.inside else scaled.low
            return replace(scaled, high=level, low=level, inside=0)
        if scaled.high < scaled.low:
            return replace(scaled, high=scaled.low, low=scaled.high, inside=size - sort.inside)
        return scaled

    def ray(self, sorts: Sequence[Sort], shift: int = 0) -> Floats:
        """Return a ray with these blocks, in domain order; ``shift`` moves the values cyclically within each kind."""
        ray = np.zeros(sum(block.size for block in self.blocks))
        starts = [0] * len(self.blocks)
        for sort in sorts:
            cells = self.blocks[sort.kind]
            number, size = cells.shape
            values = np.full(size, sort.low)
            values[: sort.inside] = sort.high
            if sort.third is not None:
                values[sort.inside] = sort.third
            values = np.roll(values, shift)
            for _ in range(sort.number):
                ray[cells[(starts[sort.kind] + shift // size) % number]] = values
                starts[sort.kind] += 1
        return ray

    def words(self, sorts: Sequence[Sort]) -> str:
        """Describe a ray by its blocks and by levels relative to its greatest one."""
        greatest = max(max(sort.high, sort.low, sort.third or 0.0) for sort in sorts)
        return "; ".join(self._words_of(sort, greatest) for sort in sorted(sorts, key=lambda sort: -sort.high))

    def _words_of(self, sort: Sort, greatest: float) -> str:
        """Describe equal blocks."""
        number, size = self.blocks[sort.kind].shape
        levels: Counter[float] = Counter()
        for count, level in zip(*self._levels(sort), strict=True):
            levels[level] += int(count)
        described = [f"{count} at {level / greatest:.3g}" for level, count in levels.items() if count]
        each = f"{size} values: " + ", ".join(described)
        return each if number == 1 else f"{sort.number} × {each}"
