"""Base class of the systems of all sets of d of k values, which treat all values alike."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato.mechanisms.systems.base import SetSystem

__all__ = ["SymmetricSystem"]


class SymmetricSystem(SetSystem):
    """All sets of d of k values, where d is ``members_per_set``."""

    members_per_set: int

    @abstractmethod
    def as_report(self, values: Sequence[int]) -> int:
        """Return the report whose set consists of these values."""

    @property
    def density(self) -> Fraction:
        return Fraction(self.members_per_set, self.size)

    @property
    def pair_density(self) -> Fraction:
        return Fraction(self.members_per_set - 1, max(self.size - 1, 1))

    @property
    def triple_density(self) -> Fraction:
        return Fraction(self.members_per_set - 2, self.size - 2) if self.size > 2 else Fraction(0)

    def empty_outputs(self) -> int:
        return 0

    def separating(self, x: int, other: int) -> int:
        others = (i for i in range(self.size) if i not in (x, other))
        return self.as_report([x, *itertools.islice(others, self.members_per_set - 1)])

    def extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        ordered = sorted(range(len(weights)), key=weights.__getitem__, reverse=heaviest)
        return self.as_report(ordered[: self.members_per_set])

    def pattern_counts(self, values: Sequence[int]) -> Mapping[tuple[bool, ...], int]:
        m, d = len(values), self.members_per_set
        patterns = itertools.product((True, False), repeat=m)
        counts = {p: math.comb(self.size - m, d - sum(p)) if d >= sum(p) else 0 for p in patterns}
        return {pattern: count for pattern, count in counts.items() if count}
