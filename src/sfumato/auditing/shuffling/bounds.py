"""Certified bounds on the central level of one pair of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sfumato._core import (
    INFINITE,
    ZERO,
    Epsilon,
    OutputGroup,
    TwoOutputs,
    ceil_of_log,
    digits_of,
    divergence_above,
    divergence_below,
    divergence_estimate,
    floor_of_log,
)

__all__ = ["greatest_certified", "least_certified", "least_certified_of_two", "local_level"]

#: Significant digits of a certified level.
_DIGITS = 5
#: Number of people from which two outputs have a better bound than the blanket, at most by the factor 1/√2, and the
#: number of bisections of this interval.
_MANY_PEOPLE, _LEAST_SHARE, _BISECTIONS = 100, 0.68, 8
#: Factors that are tried if the search in floating point was too optimistic, for upper and for lower bounds.
_INCREASES = (1.0, 1.0002, 1.001, 1.005, 1.02, 1.1, 1.5, 3.0)
_DECREASES = (0.9975, 0.994, 0.985, 0.96, 0.9, 0.8, 0.6, 0.35, 0.1)


def local_level(groups: Sequence[OutputGroup], *, above: bool = True) -> Epsilon:
    """Return the greatest ln P(y)/P'(y), rounded up or down to nine digits; infinite if P'(y) = 0 < P(y)."""
    if any(group.first and not group.second for group in groups):
        return INFINITE
    ratio = max((group.first / group.second for group in groups if group.second), default=Fraction(1))
    if ratio <= 1:
        return ZERO
    # Fractions near one round to the float one, and log1p keeps their logarithms above zero.
    logarithm = math.log1p(ratio - 1) if ratio < 2 else math.log(ratio.numerator) - math.log(ratio.denominator)
    step = digits_of(Epsilon(Fraction(logarithm)))
    numerator, denominator = [(Fraction(ratio.numerator), ZERO)], [(Fraction(ratio.denominator), ZERO)]
    return (ceil_of_log if above else floor_of_log)(numerator, denominator, step)


def least_certified(groups: Sequence[OutputGroup], people: int, delta: Fraction, local: Epsilon) -> Epsilon:
    """Return an ε, at most ``local``, whose divergence is certified to be at most δ."""
    if local == ZERO or people < 2 or not delta or not any(g.first and g.weight for g in groups):
        return local

    def is_enough(epsilon: Epsilon) -> bool:
        return divergence_above(groups, people, epsilon) <= delta

    if is_enough(ZERO):
        return ZERO
    estimate = _search(groups, people, float(delta), float(local))
    for factor in _INCREASES:
        epsilon = _rounded(estimate * factor, math.ceil)
        if epsilon >= local:
            break
        if is_enough(epsilon):
            return epsilon
    return local


def least_certified_of_two(two: TwoOutputs, people: int, delta: Fraction, known: Epsilon) -> Epsilon:
    """Return an ε, at most the ``known`` bound, at which the divergence of two outputs is certified to be at most δ."""
    if people < _MANY_PEOPLE or not delta or known == ZERO or not two.is_below(people, known, delta):
        return known
    best, low, high = known, _LEAST_SHARE * float(known), float(known)
    for _ in range(_BISECTIONS):
        middle = _rounded((low + high) / 2, math.ceil)
        if middle < best and two.is_below(people, middle, delta):
            best, high = middle, float(middle)
        else:
            low = float(middle)
    return best


def greatest_certified(groups: Sequence[OutputGroup], people: int, delta: Fraction, local: Epsilon) -> Epsilon:
    """Return an ε whose divergence is certified to exceed δ, so that the level at δ is larger; zero if none is found.

    ``local`` is the level of one report, rounded up. At δ = 0 the result is that level, rounded down.
    """
    if not delta:
        # The output of the greatest ratio may be the report of every person.
        return local_level([g for g in groups if g.weight], above=False)
    if divergence_estimate(groups, people, 0.0) <= delta:
        return ZERO
    estimate = _search(groups, people, float(delta), float(local))
    for factor in _DECREASES:
        epsilon = _rounded(estimate * factor, math.floor)
        if epsilon == ZERO:
            break
        if divergence_below(groups, people, epsilon) > delta:
            return epsilon
    return ZERO


def _search(groups: Sequence[OutputGroup], people: int, delta: float, greatest: float) -> float:
    """Return the ε at which the divergence is about δ, by bisection in floating point."""
    low, high = 0.0, greatest
    while high - low > 1e-6 * high:
        middle = (low + high) / 2 if low else high / 4
        if divergence_estimate(groups, people, middle) > delta:
            low = middle
        else:
            high = middle
        if high < 1e-12:
            break
    return high


def _rounded(level: float, direction: Callable[[Fraction], int]) -> Epsilon:
    """Return a level as a decimal with few digits, rounded up or down."""
    if level <= 0:
        return ZERO
    scale = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(level)))
    return Epsilon(Fraction(direction(Fraction(level) * scale)) / scale)
