"""How well can it be done? Published bounds on the error of an estimate, corrected, with every constant written out.

Notation: t = e^ε, c = (t+1)/(t-1), k values, n reports. Equation numbers are those of Acharya et al. 2020,
context-aware LDP (arXiv version). Upper bounds hold for the Hadamard mechanisms of that paper at every distribution;
``least_risk`` is what no mechanism can beat as n grows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import ZERO, Epsilon, EpsilonLike, checked_count
from sfumato.domain import Domain, Frequencies, align, labels_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, SubsetSelection
from sfumato.policy import Blocks, Policy, Prior, Uniform, structure_of

__all__ = [
    "block_l1",
    "block_l2",
    "block_reports",
    "blocks_least_risk",
    "high_low_l1",
    "high_low_l2",
    "high_low_reports",
    "least_risk",
    "prior_least_risk",
    "reports_for",
    "uniform_least_risk",
]


def _c(epsilon: EpsilonLike) -> float:
    """(t+1)/(t-1) = 1/tanh(ε/2)."""
    exact = Epsilon(epsilon, subject="a bound")
    return math.inf if exact == ZERO else 1 / math.tanh(float(exact) / 2)


def _checked_sizes(sizes: Sequence[int]) -> npt.NDArray[np.float64]:
    if not len(sizes) or min(sizes) < 1:
        raise InvalidInput("a bound", "sizes", "be at least one block, of at least one value each", list(sizes))
    return np.asarray(sizes, dtype=np.float64)


def _checked_sensitive(sensitive: int, size: int) -> None:
    if not 1 <= sensitive <= size:
        raise InvalidInput("a bound", "sensitive", f"be in 1 … {size}, the number of values", sensitive)


# -- upper bounds of the paper -----------------------------------------------------------------------------


def high_low_l2(sensitive: int, epsilon: EpsilonLike, n: int) -> float:
    """E|p̂-p|² ≤ (3s·c² + c)/n for s sensitive values, eq. (29).

    Its proof takes p(A)(1-p(A)) for n·Var(p̂(A)), which is c²·p([S])(1-p([S])). With that the sum over i in A is at most
    2.5s·c² where 3s·c² is written, so the bound stands.
    """
    c = _c(epsilon)
    return (3 * sensitive * c**2 + c) / checked_count("a bound", n)


def high_low_l1(sensitive: int, size: int, epsilon: EpsilonLike, n: int) -> float:
    """E|p̂-p|₁ ≤ √(3s²c²/n) + √(ck/n) for s ``sensitive`` of k = ``size`` values, eq. (19).

    The conference version states this right-hand side for the total variation distance, which is half of |p̂-p|₁.
    """
    _checked_sensitive(sensitive, size)
    c, n = _c(epsilon), checked_count("a bound", n)
    return math.sqrt(3 * sensitive**2 * c**2 / n) + math.sqrt(c * size / n)


def block_l2(sizes: Sequence[int], epsilon: EpsilonLike, n: int) -> float:
    """E|p̂-p|² ≤ 12c²·max k_j/n for blocks of k_j values (``sizes``), eq. (24)."""
    return 12 * float(_checked_sizes(sizes).max()) * _c(epsilon) ** 2 / checked_count("a bound", n)


def block_l1(sizes: Sequence[int], epsilon: EpsilonLike, n: int) -> float:
    """E|p̂-p|₁ ≤ 2c·√(3·Σ k_j²/n) for blocks of k_j values (``sizes``), eq. (24)."""
    return 2 * _c(epsilon) * math.sqrt(3 * float(np.sum(_checked_sizes(sizes) ** 2)) / checked_count("a bound", n))


# -- how many reports suffice ------------------------------------------------------------------------------


def high_low_reports(sensitive: int, size: int, epsilon: EpsilonLike, tv: float) -> int:
    """Reports after which the expected total variation distance is at most ``tv``, whatever the distribution.

    For the paper's mechanism, from its exact variances, q being the mass of the s sensitive of k = ``size`` values:
    n·Var = c²(2/(t+1) + q/c) - p_i² for those, c·p_i - p_i² for the others. So √n·E|p̂-p|₁ is at most
    √(B(q + a)) + √(C(1-q)) with B = s²c, C = (k-s)c and a = 2c/(t+1). That is greatest where (q + a)/(1-q) = B/C, or at
    q = 0 if this has no q ≥ 0.
    """
    _checked_sensitive(sensitive, size)
    _checked_error(tv)
    c = _c(epsilon)
    if math.isinf(c):
        raise InvalidInput("high_low_reports", "epsilon", "be above 0: no number of reports suffices", epsilon)
    a = c - 1  # 2/(t+1) = 1 - 1/c
    b, rest = sensitive**2 * c, (size - sensitive) * c
    mass = max((1 + a) * b / (b + rest) - a, 0.0)
    return _reports(math.sqrt(b * (mass + a)) + math.sqrt(rest * (1 - mass)), tv)


def block_reports(sizes: Sequence[int], epsilon: EpsilonLike, tv: float) -> int:
    """Reports after which the expected total variation distance is at most ``tv``, whatever the distribution.

    For the paper's mechanism, from its exact variances: n·Var = c²·p(X_j) - p_x² in block j of size k_j, so
    √n·E|p̂-p|₁ ≤ c·Σ k_j·√p(X_j) ≤ c·√(Σ k_j²). Eq. (24) would ask for twelve times as many.
    """
    _checked_error(tv)
    c = _c(epsilon)
    if math.isinf(c):
        raise InvalidInput("block_reports", "epsilon", "be above 0: no number of reports suffices", epsilon)
    return _reports(c * math.sqrt(float(np.sum(_checked_sizes(sizes) ** 2))), tv)


def reports_for(mechanism: Mechanism, tv: float, p: Frequencies | None = None) -> int:
    """Reports of any mechanism after which the expected total variation distance is at most ``tv``.

    From its exact risk R, by E|p̂-p|₁ ≤ √(k·R/n): at p, or at the worst distribution where none is given.
    """
    _checked_error(tv)
    risk = mechanism.worst_risk(1) if p is None else mechanism.risk(1, p)
    if not math.isfinite(risk):
        raise InvalidInput("reports_for", "the mechanism", "tell all values apart", mechanism)
    return _reports(math.sqrt(len(mechanism.domain) * risk), tv)


def _checked_error(tv: float) -> None:
    if not tv > 0:
        raise InvalidInput("a number of reports", "tv", "be above 0", tv)


def _reports(l1_of_one: float, tv: float) -> int:
    """The least n with l1/√n ≤ 2·tv."""
    return max(1, math.ceil((l1_of_one / (2 * tv)) ** 2))


# -- what no mechanism can beat ----------------------------------------------------------------------------


def uniform_least_risk(k: int, epsilon: EpsilonLike) -> float:
    """lim n·E|p̂-p|² of the best mechanism for ε-LDP at the uniform distribution (Ye and Barg 2018).

    (k-1)²(dt + k-d)² / (k(t-1)²·d(k-d)) at the best d: subset selection attains it, and no mechanism has less, for the
    trace of the inverse Fisher information at the uniform distribution is never smaller.
    """
    return 0.0 if k == 1 else _risk_of_subsets(k, Epsilon(epsilon, subject="a bound"))


@functools.lru_cache(maxsize=1024)  # blocks often come in a few sizes
def _risk_of_subsets(k: int, epsilon: Epsilon) -> float:
    return SubsetSelection(Domain.range(k), epsilon).risk(1)


def blocks_least_risk(
    sizes: Sequence[int],
    epsilon: EpsilonLike | Sequence[EpsilonLike],
    totals: Sequence[float] | npt.NDArray[np.float64] | None = None,
) -> float:
    """lim n·E|p̂-p|² of the best mechanism for blocks that may be revealed, at p uniform within each block.

    ``sizes`` are those of the blocks. If they are labelled (a pandas Series, a mapping), epsilons and masses that are
    labelled too are aligned with them.

    ``totals`` are the masses w_j of the blocks; without them, the greatest over all. Telling the block costs no privacy
    and helps, so the best mechanism tells it, and hides the value with the best mechanism for k_j values. To first
    order p̂ = ŵ·q̂ errs by q·δw + w·δq; n·Var ŵ_j = w_j(1-w_j), and q̂ within block j comes from n·w_j reports, each of
    risk r_j = ``uniform_least_risk(k_j, ε_j)``. The two are independent, hence

        Σ_j w_j·r_j + |q_j|²·w_j(1-w_j) = Σ_j w_j·(r_j + 1/k_j) - w_j²/k_j,  as |q_j|² = 1/k_j.
    """
    blocks = labels_domain(sizes, "blocks_least_risk", "sizes")
    if blocks is not None:
        sizes = align(blocks, sizes, "blocks_least_risk", "sizes")
        epsilon = align(blocks, epsilon, "blocks_least_risk", "epsilon")
        totals = align(blocks, totals, "blocks_least_risk", "totals")
    counts = _checked_sizes(sizes)
    epsilons: list[Any] = list(epsilon) if isinstance(epsilon, (list, tuple)) else [epsilon] * len(counts)
    if len(epsilons) != len(counts):
        raise InvalidInput("blocks_least_risk", "epsilon", f"be one, or one for each of {len(counts)} blocks", epsilons)
    slopes = np.array([uniform_least_risk(int(k), e) for k, e in zip(counts, epsilons, strict=True)]) + 1 / counts
    if totals is None:
        if np.isinf(slopes).any():
            return math.inf
        weights = _worst_totals(slopes, counts)
    else:
        weights = np.asarray(totals, dtype=np.float64)
        if weights.shape != counts.shape or not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-9:
            must = f"be {len(counts)} probabilities that sum to one"
            raise InvalidInput("blocks_least_risk", "totals", must, list(weights))
    used = weights > 0  # an empty block costs nothing, whatever its epsilon
    return float(weights[used] @ slopes[used] - np.sum(weights**2 / counts))


def _worst_totals(slopes: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Where Σ w·slope - w²/k is greatest among distributions: w = k·max(slope - λ, 0)/2, λ such that they sum to 1."""
    order = np.argsort(-slopes)
    filled, mass = np.cumsum(counts[order]), np.cumsum((counts * slopes)[order])
    thresholds = (mass - 2) / filled
    last = int(np.flatnonzero(slopes[order] > thresholds)[-1])
    return np.asarray(counts * np.maximum(slopes - thresholds[last], 0.0) / 2)


def prior_least_risk(k: int, epsilon: EpsilonLike, side: str = "both") -> float:
    """Return lim n·E|p̂-p|² of the best mechanism for a uniform prior, at the uniform distribution.

    Parameters
    ----------
    k
        The number of values.
    epsilon
        The ε of the prior policy.
    side
        The side of the prior policy: ``"both"``, ``"upper"`` or ``"lower"``.

    Returns
    -------
    float
        (k-1)²/(Σv² - k), where v has d values e^ε, one value in between and all others e^-ε, and sums to k.

    Notes
    -----
    Let v be the likelihoods of an output divided by their mean, so that Σv = k and the policy asks
    e^-ε ≤ v ≤ e^ε (one of the two for one side). With expectations over the outputs at the uniform distribution, the
    information is J = E[v v'], and the risk is tr J⁻¹ - 1/k. E v = 1, so J·1 = k·1, and the other k-1 eigenvalues of J
    sum to E|v|² - k. The sum of their inverses is at least (k-1)²/(E|v|² - k), and |v|², which is convex, is greatest
    at a vertex of the polytope: at most one value lies strictly between the limits. A uniform permutation of that
    vertex makes all k-1 eigenvalues equal, and so attains the bound.

    Examples
    --------
    >>> round(prior_least_risk(20, 1), 2)
    17.68
    >>> round(prior_least_risk(20, "inf"), 2)
    0.95
    """
    exact = Epsilon(epsilon, subject="a bound")
    if k == 1:
        return 0.0
    # All in deviations from the mean, which lose nothing where ε is small. No value of v exceeds k.
    high = k - 1.0 if side == "lower" else min(math.expm1(min(float(exact), math.log(k))), k - 1.0)
    low = -1.0 if side == "upper" else math.expm1(-float(exact))
    if high <= 0 or low >= 0:
        return math.inf
    d = min(math.floor(-k * low / (high - low)), k - 1)
    between = -d * high - (k - d - 1) * low
    spread = d * high**2 + between**2 + (k - d - 1) * low**2
    return (k - 1) ** 2 / spread if spread > 0 else math.inf  # which doubles may not tell from 0


def least_risk(policy: Policy) -> float | None:
    """lim n·E|p̂-p|² of the best mechanism at the uniform distribution, or None where no closed form is known.

    Known for one epsilon between all values, for a uniform prior, and for blocks that may be revealed.
    """
    simplest = structure_of(policy)
    if isinstance(simplest, Prior) and simplest.is_uniform:
        return prior_least_risk(len(simplest.domain), simplest.epsilon, simplest.side)
    if isinstance(simplest, Uniform):
        return uniform_least_risk(len(simplest.domain), simplest.epsilon)
    if isinstance(simplest, Blocks) and simplest.across.is_infinite:
        sizes = np.bincount(simplest.block_of)
        return blocks_least_risk(sizes.tolist(), simplest.epsilons, sizes / sizes.sum())
    return None
