"""Maximum likelihood on the simplex: EM where the counts are a histogram, one equation where they are bit counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Fit", "fit_bits", "fit_histogram"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """A fitted distribution, and whether the iteration came to rest.

    ``gain`` is the mean log-likelihood per report above that of the uniform distribution; ``bound`` says how much more
    any distribution could gain.
    """

    frequencies: Floats
    converged: bool
    iterations: int
    gain: float
    bound: float


def fit_histogram(
    shares: Floats,
    law: Callable[[Floats], Floats],
    pull: Callable[[Floats], Floats],
    size: int,
    *,
    tolerance: float = 1e-9,
    most: int = 2000,
) -> Fit:
    """EM, accelerated by SQUAREM (Varadhan and Roland 2008): steps p ← p·pull(shares/law(p)).

    For any p the likelihood gained by another distribution q is at most ln(max_x pull(shares/law(p))_x), because ln is
    concave; that bound is the stopping rule, so "converged" is a statement about the optimum and not about small steps.
    """
    seen = shares > 0

    def weights(p: Floats) -> Floats:
        expected = law(p)
        return np.where(seen, shares / np.where(seen, expected, 1.0), 0.0)

    def likelihood(p: Floats) -> float:
        return float(shares[seen] @ np.log(law(p)[seen]))

    def step(p: Floats) -> Floats:
        moved = p * pull(weights(p))
        return np.asarray(moved / moved.sum())

    p = np.full(size, 1 / size)
    start = value = likelihood(p)
    bound = np.inf
    for iteration in range(1, most + 1):
        ratio = pull(weights(p))
        bound = float(np.log(max(ratio.max(), 1.0)))
        if bound <= tolerance:
            return Fit(p, True, iteration, value - start, bound)
        first = step(p)
        second = step(first)
        difference, curvature = first - p, second - 2 * first + p
        norm = float(np.linalg.norm(curvature))
        candidate = second
        if norm > 0:
            length = -max(1.0, float(np.linalg.norm(difference)) / norm)
            leap = p - 2 * length * difference + length**2 * curvature
            if (leap > 0).all():
                candidate = step(leap / leap.sum())
        candidate_value = likelihood(candidate)
        if not candidate_value >= value:  # a leap that lost likelihood: EM itself never does
            candidate, candidate_value = second, likelihood(second)
        p, value = candidate, candidate_value
    return Fit(p, False, most, value - start, bound)


def fit_bits(shares: Floats, other: float, gap: float) -> Fit:
    """Maximum composite likelihood: each bit's count as a binomial of its own, frequencies on the simplex.

    Maximises Σ_x s_x·ln q_x + (1-s_x)·ln(1-q_x), q_x = other + gap·p_x. The optimum solves, for one multiplier λ,
    s/q - (1-s)/(1-q) = λ wherever p_x > 0; λ is found by bisection on Σ p = 1.
    """

    def at(multiplier: float) -> Floats:
        # s(1-q) - (1-s)q = λq(1-q): a quadratic in q with one root in [0, 1].
        if abs(multiplier) < 1e-14:
            q = shares
        else:
            half = (1 + multiplier) / 2
            root = np.sqrt(np.maximum(half * half - multiplier * shares, 0.0))
            q = shares / (half + root) if half >= 0 else (half - root) / multiplier
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

    def likelihood(q: Floats) -> float:
        safe = np.clip(q, 1e-300, 1 - 1e-16)
        return float(shares @ np.log(safe) + (1 - shares) @ np.log1p(-safe))

    uniform = np.full(len(p), 1 / len(p))
    return Fit(p, True, iterations, likelihood(other + gap * p) - likelihood(other + gap * uniform), 0.0)
