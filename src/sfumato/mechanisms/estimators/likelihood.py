"""Maximum likelihood on the simplex: EM where the counts are a histogram, one equation where they are bit counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.errors import InvalidInput

__all__ = ["Fit", "fit_bit_counts", "fit_histogram"]


#: Stands for zero where a logarithm or a quotient is taken.
_TINY = 1e-300
#: An accelerated step leaves every frequency at least this fraction of what plain EM would.
_LEAST_FRACTION = 0.01


@dataclass(frozen=True)
class Fit:
    """A fitted distribution, ``frequencies``, and whether the search ``converged`` within its ``iterations``.

    ``gain`` is the mean log-likelihood per report above that of the uniform distribution; ``bound`` says how much more
    any distribution could gain.
    """

    frequencies: Floats
    converged: bool
    iterations: int
    gain: float
    bound: float


def fit_histogram(
    fractions: Floats,
    law: Callable[[Floats], Floats],
    adjoint: Callable[[Floats], Floats],
    size: int,
    *,
    tolerance: float = 1e-9,
    most: int = 2000,
) -> Fit:
    """EM, accelerated by SQUAREM (Varadhan and Roland 2008): steps p ← p·adjoint(fractions/law(p)).

    For any p the likelihood gained by another distribution q is at most ln(max_x adjoint(fractions/law(p))_x), because
    ln is concave; that bound is the stopping rule, so "converged" is a statement about the optimum and not about small
    steps. Outputs that no value can give, which only a dishonest client sends, say nothing and are left out.
    """
    p = np.full(size, 1 / size)
    seen = (fractions > 0) & (law(p) > 0)
    if not seen.any():
        raise InvalidInput("estimate", "the reports", "be outputs that some value can give", "none that is")
    fractions = np.where(seen, fractions, 0.0) / fractions[seen].sum()

    def expected(p: Floats) -> Floats:
        return np.where(seen, np.maximum(law(p), _TINY), 1.0)  # rounding may leave a zero below zero

    def likelihood(p: Floats) -> float:
        return float(fractions @ np.log(expected(p)))

    def step(p: Floats, ratio: Floats) -> Floats:
        moved = np.maximum(p * ratio, 0.0)
        return np.asarray(moved / moved.sum())

    start = value = likelihood(p)
    longest = 1.0
    bound = np.inf
    for iteration in range(1, most + 1):
        ratio = adjoint(fractions / expected(p))
        bound = float(np.log(max(ratio.max(), 1.0)))
        if bound <= tolerance:
            return Fit(p, True, iteration, value - start, bound)
        first = step(p, ratio)
        second = step(first, adjoint(fractions / expected(first)))
        difference, curvature = first - p, second - 2 * first + p
        norm = float(np.linalg.norm(curvature))
        length = min(max(1.0, float(np.linalg.norm(difference)) / norm), longest) if norm > 0 else 1.0
        leap = p + 2 * length * difference + length**2 * curvature
        # What the leap would make negative goes towards zero instead: at the optimum many frequencies are zero.
        leap = np.maximum(leap, second * _LEAST_FRACTION)
        leap /= leap.sum()
        candidate = step(leap, adjoint(fractions / expected(leap)))
        candidate_value = likelihood(candidate)
        if not candidate_value >= value:  # a leap that lost likelihood: EM itself never does
            candidate, candidate_value = second, likelihood(second)
            longest = max(1.0, longest / 2)
        elif length == longest:
            longest *= 4
        p, value = candidate, candidate_value
    return Fit(p, False, most, value - start, bound)


def fit_bit_counts(fractions: Floats, other: float | Floats, gap: float | Floats, *, tolerance: float = 1e-9) -> Fit:
    """Maximum composite likelihood: each bit's count as a binomial of its own, frequencies on the simplex.

    Maximises Σ_x s_x·ln q_x + (1-s_x)·ln(1-q_x), q_x = other + gap·p_x; each bit may have an ``other`` and a ``gap`` of
    its own. The optimum solves, for one multiplier λ, gap·(s/q - (1-s)/(1-q)) = λ wherever p_x > 0; λ, in units of the
    largest gap, is found by bisection on Σ p = 1.
    """
    relative = np.max(gap) / gap

    def at(multiplier: float) -> Floats:
        # s(1-q) - (1-s)q = λq(1-q): a quadratic in q with one root in [0, 1].
        scaled = multiplier * relative
        half = (1 + scaled) / 2
        root = np.sqrt(np.maximum(half * half - scaled * fractions, 0.0))
        # Two forms of the root, neither where it cancels. At λ = -1 a bit that was never set has the double root 0.
        q = np.where(half >= 0, fractions / np.maximum(half + root, _TINY), (half - root) / np.minimum(scaled, -1.0))
        return np.clip((q - other) / gap, 0.0, 1.0)

    low, high = -1.0, 1.0
    while at(low).sum() < 1:
        low *= 2
    while at(high).sum() > 1:
        high *= 2
    iterations = 0
    while high - low > 1e-15 * max(1.0, abs(low), abs(high)) and iterations < 200:
        iterations += 1
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle).sum() > 1 else (low, middle)
    p = at(high)
    p = p / p.sum()
    fitted = other + gap * p
    # The likelihood is concave, so its slope at p bounds what any other distribution gains: max slope - slope·p.
    slope = gap * (_ratio(fractions, fitted) - _ratio(1 - fractions, 1 - fitted))
    bound = max(float(slope.max() - slope @ p), 0.0)
    gain = _bit_likelihood(fractions, fitted) - _bit_likelihood(fractions, np.full(len(p), other + gap / len(p)))
    return Fit(p, bound <= tolerance, iterations, gain, bound)


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.where(part > 0, part / np.maximum(whole, _TINY), 0.0)


def _bit_likelihood(fractions: Floats, fitted: Floats) -> float:
    return float(
        fractions @ np.log(np.maximum(fitted, _TINY)) + (1 - fractions) @ np.log(np.maximum(1 - fitted, _TINY))
    )
