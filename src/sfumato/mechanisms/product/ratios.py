"""The greatest likelihood ratios of products, from those of their factors.

A report of a product has one digit per factor, and the digits are free. For two values x and x', the greatest ratio of
likelihoods over all reports is therefore the product of the greatest ratios of the factors at (xᵢ, xᵢ'). An audit
compares these products with the levels of the policy instead of comparing all reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Integers, exceeds, excess
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.mixture import TwoLevelMechanism
from sfumato.policy import INFINITE_CODE, PairwisePolicy

__all__ = ["worst_reports"]

#: Maximum number of combinations of levels and ratios that are compared; bounds memory.
_MOST_COMBINATIONS = 2**24
#: Relative distance from the greatest excess within which candidates are compared exactly; doubles are far closer.
_MARGIN = 1e-9


@dataclass(frozen=True)
class _Ratios:
    """The greatest ratio max_y Q(y|a)/Q(y|b) of a factor for every ordered pair of values.

    Parameters
    ----------
    rank
        Rank of the ratio of every pair among the different ratios, in ascending order.
    ratios
        The different ratios as pairs (numerator, denominator), exact; an infinite ratio has the denominator 0.
    report
        Returns a report that attains the ratio of a pair.
    """

    rank: Integers
    ratios: Sequence[tuple[int, int]]
    report: Callable[[int, int], int]

    @property
    def logs(self) -> npt.NDArray[np.float64]:
        """The logarithms of the ratios."""
        return np.array([math.log(n) - math.log(d) if d else math.inf for n, d in self.ratios])


def worst_reports(factors: Sequence[Mechanism], policy: PairwisePolicy) -> list[int] | None:
    """Return the reports of the factors whose product comes closest to violating a policy, or None if not known."""
    matrix = policy.epsilon_matrix()
    # Code -1 stands for pairs that no rule constrains, and for a value and itself.
    constrained = np.where(matrix.codes < INFINITE_CODE, matrix.codes, -1)
    np.fill_diagonal(constrained, -1)
    codes, inverse = np.unique(constrained, return_inverse=True)
    if codes[-1] < 0:
        return [0] * len(factors)
    sizes = [len(factor.domain) for factor in factors]
    level_of = inverse.reshape(constrained.shape)
    coordinates = np.unravel_index(np.arange(len(level_of)), sizes)
    of_factor = list(map(_ratios, factors))
    # For one level and given ratios of all other factors, only the greatest ratio of this factor matters.
    last = max(range(len(factors)), key=lambda i: len(of_factor[i].ratios))
    others = [i for i in range(len(factors)) if i != last]
    shape = [len(codes), *(len(of_factor[i].ratios) for i in others)]
    if math.prod(shape) > _MOST_COMBINATIONS:
        return None

    def combinations(x: int) -> tuple[Integers, Integers]:
        """Return, for all values x', the combination of (x, x') without the last factor, and the last rank."""
        ranks = [of_factor[i].rank[coordinates[i][x]][coordinates[i]] for i in range(len(factors))]
        indices = (level_of[x], *(ranks[i] for i in others))
        return np.ravel_multi_index(indices, shape), ranks[last]

    greatest = np.full(math.prod(shape), -1, np.int64)
    for x in range(len(level_of)):
        np.maximum.at(greatest, *combinations(x))
    chosen = _worst_combination(greatest, shape, [of_factor[i] for i in (*others, last)], codes, matrix.epsilon)
    for x in range(len(level_of)):
        combination, rank = combinations(x)
        pairs = np.flatnonzero((combination == chosen) & (rank == greatest[chosen]))
        if len(pairs):
            other = int(pairs[0])
            return [
                ratios.report(int(places[x]), int(places[other]))
                for ratios, places in zip(of_factor, coordinates, strict=True)
            ]
    raise AssertionError("some pair has the chosen combination")


def _worst_combination(
    greatest: Integers,
    shape: Sequence[int],
    ratios: Sequence[_Ratios],
    codes: Integers,
    epsilon: Callable[[int], Epsilon],
) -> int:
    """Return the combination whose ratio exceeds its level most, decided exactly."""
    present = np.flatnonzero(greatest >= 0)
    present = present[np.unravel_index(present, shape)[0] >= np.searchsorted(codes, 0)]  # without the code -1
    level, *ranks = np.unravel_index(present, shape)
    ranks.append(greatest[present])
    logs = sum(part.logs[rank] for part, rank in zip(ratios, ranks, strict=True))
    levels = [epsilon(int(code)) if code >= 0 else Epsilon(0) for code in codes]
    floats = np.array([float(one) for one in levels])
    beyond = logs - floats[level]
    top = beyond.max()
    near = beyond == top if math.isinf(top) else beyond >= top - _MARGIN * (1 + np.abs(logs) + floats[level])
    # At one level the greatest ratio is the worst, so only one combination per level needs certified arithmetic.
    worst: dict[int, tuple[int, int, int]] = {}
    for place in np.flatnonzero(near).tolist():
        parts = [part.ratios[rank[place]] for part, rank in zip(ratios, ranks, strict=True)]
        numerator, denominator = (math.prod(side) for side in zip(*parts, strict=True))
        known = worst.get(int(level[place]))
        if known is None or numerator * known[1] > known[0] * denominator:
            worst[int(level[place])] = numerator, denominator, int(present[place])

    def tightness(of_level: int) -> tuple[bool, float]:
        numerator, denominator, _ = worst[of_level]
        sides = Fraction(numerator), Fraction(denominator), levels[of_level]
        return exceeds(*sides), excess(*sides)

    return worst[max(worst, key=tightness)][2]


def _ratios(factor: Mechanism) -> _Ratios:
    """Return the greatest ratios of a factor."""
    if isinstance(factor, TwoLevelMechanism):
        high, low = factor.likelihoods
        rank = 1 - np.eye(len(factor.domain), dtype=np.int64)
        ratio = (high / low).as_integer_ratio() if low else (1, 0)
        # If nothing is revealed, all ratios are 1.
        ratios = [(1, 1), ratio] if high != low else [(1, 1)]
        return _Ratios(rank % len(ratios), ratios, lambda a, b: 0 if a == b else factor.separating(a, b))
    likelihoods = [[factor.probability(y, x) for y in factor.reports()] for x in range(len(factor.domain))]
    return _ratios_of_table(likelihoods)


def _ratios_of_table(likelihoods: Sequence[Sequence[Fraction]]) -> _Ratios:
    """Return the greatest ratios of an explicit table."""
    scale = math.lcm(*(entry.denominator for row in likelihoods for entry in row))
    rows = [[int(entry * scale) for entry in row] for row in likelihoods]
    logs = np.array([[math.log(entry) if entry else -math.inf for entry in row] for row in rows])
    size = len(rows)
    reports = np.empty((size, size), np.int64)
    ratio_of: list[Fraction | None] = []  # None if infinite
    for a, row in enumerate(rows):
        with np.errstate(invalid="ignore"):
            apart = logs[a] - logs
        apart[np.isnan(apart)] = -math.inf  # a report that is impossible for both values
        most = apart.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            near = (apart >= most - _MARGIN * (1 + np.abs(most))) | (apart == most)
        for b, other in enumerate(rows):
            best, *candidates = np.flatnonzero(near[b]).tolist()
            for y in candidates:
                if row[y] * other[best] > row[best] * other[y]:
                    best = y
            reports[a, b] = best
            ratio_of.append(Fraction(row[best], other[best]) if other[best] else None)
    finite = sorted({ratio for ratio in ratio_of if ratio is not None})
    rank_of: dict[Fraction | None, int] = {ratio: rank for rank, ratio in enumerate(finite)} | {None: len(finite)}
    ratios = [ratio.as_integer_ratio() for ratio in finite] + [(1, 0)] * (None in ratio_of)
    rank = np.array([rank_of[ratio] for ratio in ratio_of]).reshape(size, size)
    return _Ratios(rank, ratios, lambda a, b: int(reports[a, b]))
