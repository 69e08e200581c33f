"""Certified bounds on the hockey-stick divergence of a report that is hidden among n - 1 independent ones.

A report has the law P or P'. It is shuffled with n - 1 reports, each of which has likelihoods w(y), with a total of at
most one; the rest of their probability is known to the observer. With t = e^ε, the greatest difference P(event) -
t·P'(event) over all events of the shuffled reports is (Balle, Bell, Gascón and Nissim 2019, Lemma 5.3)

    δ(ε) = E[(V_1 + … + V_n)₊]/n + Σ_y (P(y) - t·P'(y))₊ over the outputs with w(y) = 0,

where the V_i are independent, and equal (P(y) - t·P'(y))/w(y) with probability w(y), and 0 otherwise.

Let M be the moment generating function of V and c > 0. The Laplace transform of the positive part gives

    E[(S)₊] = 1/(2π) ∫ M(s)^n / s² du  with  s = c + iu.

Both bounds add a normal variable G of standard deviation τ, whose factor e^(τ²s²/2) makes the integrand negligible for
large u, and evaluate the integral by the trapezoidal rule in interval arithmetic:

- E[(S)₊] ≤ E[(S + G)₊] because the positive part is convex;
- E[(S)₊] ≥ E[(S + G - a)₊] - E[(G - a)₊], because the difference of both sides is least at S = 0.

If few people have few kinds of outputs, the expectation is a short sum over all histograms instead, without smoothing.

By Poisson's summation formula, the rule with steps of width h returns Σ_j e^(-cξ)·E[(S + ξ)₊] over ξ = 2πj/h instead of
the term j = 0. The other terms are positive, so an upper bound needs no correction. A lower bound subtracts a Chernoff
bound on them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato._core.exact import Epsilon, arb_precision, to_arb
from sfumato._core.types import Floats, Integers

if TYPE_CHECKING:
    import flint

__all__ = [
    "OutputGroup",
    "composed_delta",
    "divergence_above",
    "divergence_below",
    "divergence_estimate",
    "merged_groups",
    "upper_end",
]

#: Scale of the tilted sum divided by the standard deviation of the added normal variable, for upper and lower bounds.
_UPPER_SHARPNESS, _LOWER_SHARPNESS = 32.0, 240.0
#: Greatest scale, and distance of the tail that a lower bound gives up, in units of 1/c and of standard deviations.
_MOST_SCALE, _LEAST_SHIFT = 5.0, 4.5
#: The integrand is evaluated where the factor of the normal variable is above e^-38, about 10^-17.
_CUT = math.sqrt(2 * 38.0)
#: Maximum number of points of the rule; bounds the time, at the price of looser bounds in far tails.
_MOST_POINTS = 20_000
#: Maximum number of histograms that are listed.
_MOST_HISTOGRAMS = 3_000
#: Working precision in bits, added to the length of n.
_BITS = 128
#: Number of tilts c that are tried, and their range: c times the standard deviation, and times that of positive scores.
_TILTS, _LEAST_TILT, _MOST_TILT = 300, 1e-3, 300.0
#: Relative changes of c that are tried to bound the other terms of the rule, which are to be e^-10 of the result.
_CHANGES, _SMALL = np.array([-3 / 4, -1 / 2, -1 / 4, -1 / 8, -1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0]), 10.0
#: Largest exponent of e in floats.
_LARGEST_EXPONENT = 600.0
#: Bounds are rounded up to 2^-16384, because the exact fraction of a far tail of many people would fill the memory.
_LEAST_EXPONENT = 16_384


@dataclass(frozen=True, slots=True)
class OutputGroup:
    """Outputs with proportional likelihoods: their probability under P and P', and their total weight w."""

    first: Fraction
    second: Fraction
    weight: Fraction


def merged_groups(groups: Sequence[OutputGroup]) -> tuple[OutputGroup, ...]:
    """Merge groups whose three likelihoods are proportional, which does not change the divergence, and sort them."""
    merged: dict[tuple[Fraction, ...], list[Fraction]] = {}
    for group in groups:
        total = group.first + group.second + group.weight
        if total:
            key = (group.first / total, group.second / total)
            sums = merged.setdefault(key, [Fraction(0)] * 3)
            sums[0] += group.first
            sums[1] += group.second
            sums[2] += group.weight
    return tuple(OutputGroup(*merged[key]) for key in sorted(merged, reverse=True))


@dataclass(frozen=True)
class _Rule:
    """Parameters of the trapezoidal rule, which affect how tight a bound is, not whether it is valid."""

    tilt: float
    spread: float
    shift: float
    step: float
    points: int
    smaller: float
    larger: float


def _float_scores(groups: Sequence[OutputGroup], epsilon: float) -> tuple[Floats, Floats, float]:
    """Return the values of V with their probabilities, and the divergence of outputs without weight, as floats."""
    ratio = math.exp(min(epsilon, _LARGEST_EXPONENT))
    # A weight below the least float is rounded to zero.
    apart = sum(max(float(g.first) - ratio * float(g.second), 0.0) for g in groups if not float(g.weight))
    hidden = [g for g in groups if float(g.weight)]
    values = np.array([(float(g.first) - ratio * float(g.second)) / float(g.weight) for g in hidden])
    return values, np.array([float(g.weight) for g in hidden]), apart


def _log_moments(values: Floats, weights: Floats, people: int, tilts: Floats) -> Floats:
    """Return ln E[e^(cS)] for several c; infinite where a float would overflow."""
    exponents = np.multiply.outer(tilts, values)
    too_large = exponents.max(axis=1) > _LARGEST_EXPONENT
    sums = np.expm1(np.minimum(exponents, _LARGEST_EXPONENT)) @ weights
    return np.where(too_large, np.inf, people * np.log1p(np.maximum(sums, -1 + 1e-15)))


def _rule(values: Floats, weights: Floats, people: int, sharpness: float, *, below: bool) -> _Rule:
    """Choose the tilt that makes the integrand smallest, the smoothing, and a step with little aliasing.

    The scales are those of the tilted sum, in which scores far below zero are rare: they do not affect the result.
    """
    largest = float(np.abs(values).max())
    square = max(float(values**2 @ weights) - float(values @ weights) ** 2, 1e-30 * largest**2)
    deviation = math.sqrt(people * square)
    gains = np.maximum(values, 0)
    of_gains = math.sqrt(people * float(gains**2 @ weights)) or deviation
    tilts = np.geomspace(_LEAST_TILT / max(deviation, largest), _MOST_TILT / min(of_gains, deviation), _TILTS)
    log_moments = _log_moments(values, weights, people, tilts)
    best = int(np.argmin(log_moments - 2 * np.log(tilts)))
    tilt = float(tilts[best])
    scale = max(_tilted_deviation(values, weights, people, tilt), 1 / tilt)
    spread = min(scale, _MOST_SCALE / tilt, deviation) / sharpness
    # The result is below E[e^(cS)]/(e·c) and n·E[(V)₊], and usually not far below.
    log_result = float(log_moments[best]) - 1 - math.log(tilt) - math.log1p(scale * tilt)
    if (mean := people * float(gains @ weights)) > 0:
        log_result = min(log_result, math.log(mean))
    # The tail E[(G - a)₊] of a lower bound, and the terms that are bounded by E[e^(θS)]/(eθ), are to be small.
    tail = max(math.log(spread) - log_result + 5, 0.0)
    shift = spread * max(_LEAST_SHIFT, math.sqrt(2 * tail)) if below else 0.0
    thetas = tilt * (1 + _CHANGES)
    logs = _log_moments(values, weights, people, thetas) - np.log(thetas) - 1 - log_result
    periods = np.maximum(logs + (spread * thetas) ** 2 / 2 + _SMALL, 1.0) / np.abs(thetas - tilt)
    smaller, larger = (int(np.argmin(np.where(side, periods, np.inf))) for side in (_CHANGES < 0, _CHANGES > 0))
    last = _CUT / spread
    step = max(2 * math.pi / float(max(periods[smaller], periods[larger])), last / _MOST_POINTS)
    return _Rule(tilt, spread, shift, step, math.ceil(last / step), float(thetas[smaller]), float(thetas[larger]))


def _tilted_deviation(values: Floats, weights: Floats, people: int, tilt: float) -> float:
    """Return the standard deviation of the sum under the law that is weighted by e^(cS)."""
    nothing = max(1 - float(weights.sum()), 0.0)
    values, weights = np.append(values, 0.0), np.append(weights, nothing)
    exponents = np.where(weights > 0, tilt * values, -np.inf)
    factors = np.exp(exponents - exponents.max()) * weights
    factors /= factors.sum()
    return math.sqrt(people * max(float(values**2 @ factors) - float(values @ factors) ** 2, 0.0))


def _histograms(people: int, outputs: int) -> Integers | None:
    """Return all counts of outputs that add up to at most ``people``, one per row; None if there are too many."""
    is_short = math.comb(people + outputs, outputs) <= _MOST_HISTOGRAMS
    return _all_histograms(people, outputs) if is_short else None


@functools.lru_cache(maxsize=8)
def _all_histograms(people: int, outputs: int) -> Integers:
    """Return all counts of outputs that add up to at most ``people``, one per row."""
    rows = np.zeros((1, 0), np.int64)
    for _ in range(outputs):
        left = people - rows.sum(axis=1)
        firsts = np.repeat(rows, left + 1, axis=0)
        rows = np.column_stack([firsts, np.concatenate([np.arange(rest + 1) for rest in left.tolist()])])
    return rows


def divergence_estimate(groups: Sequence[OutputGroup], people: int, epsilon: float) -> float:
    """Return the divergence in floating point, for a search; it is close to the upper bound but not certified."""
    values, weights, apart = _float_scores(groups, epsilon)
    if not len(values) or values.max() <= 0:
        return apart
    histograms = _histograms(people, len(values))
    if histograms is not None:
        return (
            apart + float(_histogram_weights(histograms, people, weights) @ np.maximum(histograms @ values, 0)) / people
        )
    mean = people * float(values @ weights)
    if mean > 0:  # E[(S)₊] = E[S] + E[(-S)₊]
        values = -values
    rule = _rule(values, weights, people, _UPPER_SHARPNESS, below=False)
    s = rule.tilt + 1j * rule.step * np.arange(rule.points + 1)
    moments = np.zeros(len(s), dtype=complex)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for value, weight in zip(values, weights, strict=True):
            moments += weight * np.expm1(s * value)
        terms = (np.exp(people * np.log1p(moments) + (rule.spread * s) ** 2 / 2) / s**2).real
        terms = np.nan_to_num(terms)  # the moment generating function may be zero
        part = rule.step / math.pi * float(terms.sum() - terms[0] / 2)
    return apart + (max(mean, 0.0) + part) / people


def divergence_above(groups: Sequence[OutputGroup], people: int, epsilon: Epsilon) -> Fraction:
    """Return a certified upper bound on the divergence δ(ε) of one report among ``people``."""
    with arb_precision(_BITS + people.bit_length()):
        bound = _divergence(groups, people, epsilon, below=False)
        return upper_end(bound) if bound.is_finite() else Fraction(1)


def divergence_below(groups: Sequence[OutputGroup], people: int, epsilon: Epsilon) -> Fraction:
    """Return a certified lower bound on the divergence δ(ε) of one report among ``people``."""
    with arb_precision(_BITS + people.bit_length()):
        bound = _divergence(groups, people, epsilon, below=True)
        return -upper_end(-bound) if bound.is_finite() else Fraction(0)


def upper_end(ball: flint.arb) -> Fraction:
    """Return the upper end of a ball that contains a number in [-1, 1], rounded up to a fraction of limited length."""
    import flint

    end, least = ball.upper(), flint.arb(2) ** -_LEAST_EXPONENT
    if end >= 1:
        return Fraction(1)
    if end <= -1:
        return Fraction(-1)
    if abs(end) < least:
        return Fraction(1, 2**_LEAST_EXPONENT) if end > 0 else Fraction(0)
    exact = end.fmpq()
    return Fraction(int(exact.p), int(exact.q))


def _divergence(groups: Sequence[OutputGroup], people: int, epsilon: Epsilon, *, below: bool) -> flint.arb:
    """Return a ball whose upper (or, if ``below``, lower) end bounds the divergence."""
    import flint

    ratio = epsilon._ball().exp()
    zero = flint.arb(0)
    apart = zero
    values, weights = [], []
    for group in groups:
        score = to_arb(group.first) - ratio * to_arb(group.second)
        if group.weight:
            values.append(score / to_arb(group.weight))
            weights.append(to_arb(group.weight))
        else:
            apart += score.max(zero)
    rough, shares, _ = _float_scores(groups, float(epsilon))
    if not len(rough) or rough.max() <= 0:
        # Scores that are not positive, or below the least float: (V_1 + … + V_n)₊ is at most the sum of the (V_i)₊.
        return apart if below else apart + sum((v.max(zero) * w for v, w in zip(values, weights, strict=True)), zero)
    histograms = _histograms(people, len(values))
    if histograms is not None:
        return apart + _listed_positive_part(histograms, values, weights, people) / people
    mean = zero
    if rough @ shares > 0:  # E[(S)₊] = E[S] + E[(-S)₊], and the second sum has a short integral
        mean = sum((value * weight for value, weight in zip(values, weights, strict=True)), zero)
        values, rough = [-value for value in values], -rough
    rule = _rule(rough, shares, people, _LOWER_SHARPNESS if below else _UPPER_SHARPNESS, below=below)
    bound = _positive_part(values, weights, people, rule, below=below) / people
    return apart + mean + (bound.max(zero) if below else bound)


def _histogram_weights(histograms: Integers, people: int, weights: Floats) -> Floats:
    """Return the probability of each histogram, in floating point."""
    from scipy.special import gammaln

    unseen = people - histograms.sum(axis=1)
    nothing = max(1 - float(weights.sum()), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.where(unseen > 0, unseen * np.log(nothing), 0.0)
    logs = gammaln(people + 1) - gammaln(histograms + 1).sum(axis=1) - gammaln(unseen + 1)
    probabilities: Floats = np.exp(logs + histograms @ np.log(weights) + missing)
    return probabilities


def _listed_positive_part(
    histograms: Integers, values: Sequence[flint.arb], weights: Sequence[flint.arb], people: int
) -> flint.arb:
    """Return a ball that contains E[(S)₊], summed over all histograms."""
    import flint

    zero = flint.arb(0)
    nothing = (1 - sum(weights, zero)).max(zero)
    powers = [[weight**count for count in range(people + 1)] for weight in [*weights, nothing]]
    total = zero
    for counts in histograms.tolist():
        score = sum((value * count for value, count in zip(values, counts, strict=True)), zero).max(zero)
        unseen = people - sum(counts)
        ways = math.factorial(people) // math.prod(map(math.factorial, [*counts, unseen]))
        for of_output, count in zip(powers, [*counts, unseen], strict=True):
            score *= of_output[count]
        total += score * ways
    return total


def _positive_part(
    values: Sequence[flint.arb], weights: Sequence[flint.arb], people: int, rule: _Rule, *, below: bool
) -> flint.arb:
    """Return a ball whose upper or lower end bounds E[(S)₊] for the sum S of ``people`` independent scores."""
    import flint

    tilt, spread, shift, step = map(flint.arb, (rule.tilt, rule.spread, rule.shift, rule.step))
    half_square = spread * spread / 2
    total = flint.arb(0)
    for point in range(rule.points + 1):
        s = flint.acb(tilt, step * point)
        moment = flint.acb(0)
        for value, weight in zip(values, weights, strict=True):
            moment += (s * value).expm1() * weight
        term = (1 + moment) ** people * (half_square * s * s - shift * s).exp() / (s * s)
        total += term.real / 2 if point == 0 else term.real
    pi = flint.arb.pi()
    total *= step / pi

    def moment_at(theta: flint.arb) -> flint.arb:
        """Return E[e^(θ(S + G - shift))]."""
        powers = sum(((theta * v).expm1() * w for v, w in zip(values, weights, strict=True)), flint.arb(0))
        return (1 + powers) ** people * (half_square * theta * theta - shift * theta).exp()

    # The terms beyond the last point decrease, so an integral bounds their sum: ∫ e^(-τ²u²/2) du ≤ e^(-τ²U²/2)/(τ²U).
    last = step * rule.points
    beyond = moment_at(tilt) * (-half_square * last * last).exp() / (2 * half_square * last**3 * pi)
    if not below:
        return total + beyond
    # Terms ξ > 0 and ξ < 0, by E[(X)₊] ≤ E[e^(θX)]/(eθ) with θ below and above c.
    aliases = flint.arb(0)
    for theta in (flint.arb(rule.smaller), flint.arb(rule.larger)):
        decay = (-abs(theta - tilt) * 2 * pi / step).exp()
        aliases += moment_at(theta) / (theta * flint.arb(1).exp()) * decay / (1 - decay)
    z = shift / spread
    density = (-z * z / 2).exp() / (2 * pi).sqrt()
    tail = spread * (density - z * (z / flint.arb(2).sqrt()).erfc() / 2)
    return total - beyond - aliases - tail


def composed_delta(epsilon: Epsilon, delta: Fraction, count: int, saved: int) -> Fraction:
    """Return a certified upper bound on the δ of ``count`` (ε, δ)-private releases at the level (count - 2·saved)·ε.

    It is 1 - (1-δ)^count·(1 - Σ_l C(count, l)·(e^((count-l)ε) - e^((count-2·saved+l)ε))/(1+e^ε)^count), l < saved, of
    Kairouz, Oh and Viswanath (2015), Theorem 3.3.
    """
    import flint

    with arb_precision(_BITS + 4 * count.bit_length() + count):
        ball = epsilon._ball()
        scale = (1 + ball.exp()) ** count
        total = flint.arb(0)
        for chosen in range(saved):
            ways = flint.arb(math.comb(count, chosen))
            total += ways * (((count - chosen) * ball).exp() - ((count - 2 * saved + chosen) * ball).exp()) / scale
        return upper_end(1 - (1 - to_arb(delta)) ** count * (1 - total))
