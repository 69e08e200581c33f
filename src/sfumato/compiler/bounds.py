"""Bounds on the error of estimated frequencies.

The module has three kinds of functions:

- upper bounds on the error of the Hadamard mechanisms of Acharya et al. 2020, at every distribution (``high_low_l2``,
  ``block_l1``, …);
- numbers of reports that suffice for a target error (``high_low_reports``, ``block_reports``, ``reports_for``);
- lower bounds that no mechanism can beat as n grows, at the uniform distribution (``least_risk`` and its special cases)
  and in the worst case over all distributions (``least_worst_risk``, ``high_low_worst_risk``).

Notation: t = e^ε, c = (t+1)/(t-1), k values, n reports. Equation numbers refer to Acharya et al. 2020, "Context-Aware
Local Differential Privacy" (arXiv version). Where the paper contains an error, the bound here is corrected and the
docstring says how.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import ZERO, Epsilon, EpsilonLike, checked_count, quantity
from sfumato.compiler.solvers.orbits import best_orbits
from sfumato.domain import Domain, Frequencies, align, labels_domain
from sfumato.errors import Description, InvalidInput, NoAnswer
from sfumato.mechanisms import Mechanism, SubsetSelection, best_high_low_mixture
from sfumato.policy import Blocks, HighLow, Policy, Prior, Uniform, structure_of

__all__ = [
    "block_l1",
    "block_l2",
    "block_reports",
    "blocks_least_risk",
    "high_low_l1",
    "high_low_l2",
    "high_low_reports",
    "high_low_worst_risk",
    "least_risk",
    "least_worst_risk",
    "prior_least_risk",
    "reports_for",
    "uniform_least_risk",
]


def _c(subject: str, epsilon: EpsilonLike) -> float:
    """Return (t+1)/(t-1) = 1/tanh(ε/2)."""
    exact = Epsilon(epsilon, subject=subject)
    return math.inf if exact == ZERO else 1 / math.tanh(float(exact) / 2)


def _checked_sizes(subject: str, sizes: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return the sizes of blocks as floats; raise InvalidInput unless each is at least 1."""
    if not len(sizes) or min(sizes) < 1:
        raise InvalidInput(subject, "sizes", "name at least one block, each of at least one value", list(sizes))
    return np.asarray(sizes, dtype=np.float64)


def _checked_sensitive(subject: str, sensitive: int, size: int) -> None:
    """Raise InvalidInput unless the number of sensitive values lies between 1 and the number of values."""
    if not 1 <= sensitive <= size:
        raise InvalidInput(subject, "sensitive", f"lie between 1 and {size}, the number of values", sensitive)


# -- upper bounds of the paper -----------------------------------------------------------------------------


def high_low_l2(sensitive: int, epsilon: EpsilonLike, n: int) -> float:
    """Return an upper bound on the expected squared l2 error under a :class:`HighLow` policy.

    The bound holds for the Hadamard mechanism of Acharya et al. (2020), "Context-Aware Local Differential Privacy", and
    its unbiased estimate p̂, at every distribution p of the values.

    Parameters
    ----------
    sensitive
        Number of sensitive values, s.
    epsilon
        The ε of the policy.
    n
        Number of reports.

    Returns
    -------
    float
        (3s·c² + c)/n with c = (e^ε+1)/(e^ε-1), an upper bound on E|p̂-p|².

    Notes
    -----
    This is eq. (29) of the paper. Its proof uses p(A)(1-p(A)) as the variance n·Var(p̂(A)) of the set A of sensitive
    values. The correct variance is c²·p([S])(1-p([S])), where p([S]) is the probability of a report in the set [S] of
    outputs that sensitive values produce. With it, the errors of the values in A sum to at most 2.5s·c², where the
    paper writes 3s·c². The bound therefore still holds.

    Examples
    --------
    >>> round(high_low_l2(sensitive=2, epsilon=1, n=1000), 4)
    0.0303
    """
    c = _c("high_low_l2", epsilon)
    return (3 * sensitive * c**2 + c) / checked_count("high_low_l2", n)


def high_low_l1(sensitive: int, size: int, epsilon: EpsilonLike, n: int) -> float:
    """Return an upper bound on the expected l1 error under a :class:`HighLow` policy.

    The bound holds for the Hadamard mechanism of Acharya et al. (2020), "Context-Aware Local Differential Privacy", and
    its unbiased estimate p̂, at every distribution p of the values.

    Parameters
    ----------
    sensitive
        Number of sensitive values, s.
    size
        Number of values, k.
    epsilon
        The ε of the policy.
    n
        Number of reports.

    Returns
    -------
    float
        √(3s²c²/n) + √(ck/n) with c = (e^ε+1)/(e^ε-1), an upper bound on E|p̂-p|₁.

    Raises
    ------
    InvalidInput
        If ``sensitive`` does not lie between 1 and ``size``.

    Notes
    -----
    This is eq. (19) of the paper. The conference version states the same right-hand side for the total variation
    distance, which is half of |p̂-p|₁.

    Examples
    --------
    >>> round(high_low_l1(sensitive=2, size=10, epsilon=1, n=1000), 4)
    0.3842
    """
    _checked_sensitive("high_low_l1", sensitive, size)
    c, n = _c("high_low_l1", epsilon), checked_count("high_low_l1", n)
    return math.sqrt(3 * sensitive**2 * c**2 / n) + math.sqrt(c * size / n)


def block_l2(sizes: Sequence[int], epsilon: EpsilonLike, n: int) -> float:
    """Return an upper bound on the expected squared l2 error under a :class:`Blocks` policy.

    The bound holds for the Hadamard mechanism of Acharya et al. (2020), "Context-Aware Local Differential Privacy", and
    its unbiased estimate p̂, at every distribution p of the values.

    Parameters
    ----------
    sizes
        Number of values in each block, k_j.
    epsilon
        The ε within every block.
    n
        Number of reports.

    Returns
    -------
    float
        12c²·max k_j/n with c = (e^ε+1)/(e^ε-1), an upper bound on E|p̂-p|², from eq. (24) of the paper.

    Examples
    --------
    >>> round(block_l2(sizes=[5, 5], epsilon=1, n=1000), 4)
    0.281
    """
    largest, c = float(_checked_sizes("block_l2", sizes).max()), _c("block_l2", epsilon)
    return 12 * largest * c**2 / checked_count("block_l2", n)


def block_l1(sizes: Sequence[int], epsilon: EpsilonLike, n: int) -> float:
    """Return an upper bound on the expected l1 error under a :class:`Blocks` policy.

    The bound holds for the Hadamard mechanism of Acharya et al. (2020), "Context-Aware Local Differential Privacy", and
    its unbiased estimate p̂, at every distribution p of the values.

    Parameters
    ----------
    sizes
        Number of values in each block, k_j.
    epsilon
        The ε within every block.
    n
        Number of reports.

    Returns
    -------
    float
        2c·√(3·Σ k_j²/n) with c = (e^ε+1)/(e^ε-1), an upper bound on E|p̂-p|₁, from eq. (24) of the paper.

    Examples
    --------
    >>> round(block_l1(sizes=[5, 5], epsilon=1, n=1000), 4)
    1.6762
    """
    squares, c = float(np.sum(_checked_sizes("block_l1", sizes) ** 2)), _c("block_l1", epsilon)
    return 2 * c * math.sqrt(3 * squares / checked_count("block_l1", n))


# -- numbers of reports that suffice -----------------------------------------------------------------------


def high_low_reports(sensitive: int, size: int, epsilon: EpsilonLike, tv: float) -> int:
    """Return a number of reports that suffices for a target error under a :class:`HighLow` policy.

    With this number of reports of the Hadamard mechanism of Acharya et al. (2020), the expected total variation
    distance between its unbiased estimate and the true distribution is at most ``tv``, at every distribution.

    Parameters
    ----------
    sensitive
        Number of sensitive values, s.
    size
        Number of values, k.
    epsilon
        The ε of the policy; it must be above 0.
    tv
        Target for the expected total variation distance (half the l1 distance), above 0.

    Returns
    -------
    int
        The number of reports.

    Raises
    ------
    InvalidInput
        If ``sensitive`` does not lie between 1 and ``size``, or if ``epsilon`` or ``tv`` is not above 0.

    Notes
    -----
    The number follows from the exact variances of the mechanism. Let t = e^ε and c = (t+1)/(t-1). Let q be the total
    probability of the sensitive values. Then n·Var = c²(2/(t+1) + q/c) - p_i² for the estimate of a sensitive value i,
    and c·p_i - p_i² for any other value. Hence √n·E|p̂-p|₁ is at most √(B(q + a)) + √(C(1-q)) with B = s²c, C = (k-s)c
    and a = 2c/(t+1). This expression is greatest where (q + a)/(1-q) = B/C, or at q = 0 if that equation has no
    solution q ≥ 0.

    Examples
    --------
    >>> high_low_reports(sensitive=2, size=10, epsilon=1, tv=0.05)
    5380
    """
    _checked_sensitive("high_low_reports", sensitive, size)
    _checked_error("high_low_reports", tv)
    c = _c("high_low_reports", epsilon)
    if math.isinf(c):
        raise InvalidInput(
            "high_low_reports", "epsilon", "be above 0, because no number of reports suffices at 0", epsilon
        )
    a = c - 1  # 2/(t+1) = 1 - 1/c
    b, rest = sensitive**2 * c, (size - sensitive) * c
    mass = max((1 + a) * b / (b + rest) - a, 0.0)
    return _reports(math.sqrt(b * (mass + a)) + math.sqrt(rest * (1 - mass)), tv)


def block_reports(sizes: Sequence[int], epsilon: EpsilonLike, tv: float) -> int:
    """Return a number of reports that suffices for a target error under a :class:`Blocks` policy.

    With this number of reports of the Hadamard mechanism of Acharya et al. (2020), the expected total variation
    distance between its unbiased estimate and the true distribution is at most ``tv``, at every distribution.

    Parameters
    ----------
    sizes
        Number of values in each block, k_j.
    epsilon
        The ε within every block; it must be above 0.
    tv
        Target for the expected total variation distance (half the l1 distance), above 0.

    Returns
    -------
    int
        The number of reports.

    Raises
    ------
    InvalidInput
        If a size is below 1, or if ``epsilon`` or ``tv`` is not above 0.

    Notes
    -----
    The number follows from the exact variances of the mechanism. Let c = (e^ε+1)/(e^ε-1), and let P_j be the total
    probability of block j, of size k_j. Then n·Var = c²·P_j - p_x² for the estimate of a value x in block j. Hence
    √n·E|p̂-p|₁ ≤ c·Σ k_j·√P_j ≤ c·√(Σ k_j²). Eq. (24) of the paper would require twelve times as many reports.

    Examples
    --------
    >>> block_reports(sizes=[5, 5], epsilon=1, tv=0.05)
    23414
    """
    _checked_error("block_reports", tv)
    c = _c("block_reports", epsilon)
    if math.isinf(c):
        raise InvalidInput(
            "block_reports", "epsilon", "be above 0, because no number of reports suffices at 0", epsilon
        )
    return _reports(c * math.sqrt(float(np.sum(_checked_sizes("block_reports", sizes) ** 2))), tv)


def reports_for(mechanism: Mechanism, tv: float, p: Frequencies | None = None) -> int:
    """Return a number of reports of a mechanism that suffices for a target error.

    Parameters
    ----------
    mechanism
        Any mechanism whose reports distinguish all values.
    tv
        Target for the expected total variation distance (half the l1 distance) between the unbiased estimate and the
        true distribution, above 0.
    p
        The distribution of values: a sequence in domain order, or a mapping or pandas Series with the values as labels.
        Without it, the number suffices at every distribution.

    Returns
    -------
    int
        The number of reports.

    Raises
    ------
    InvalidInput
        If ``tv`` is not above 0, or if the reports of the mechanism do not distinguish all values.

    Notes
    -----
    Let R be the exact expected squared l2 error from one report, and k the number of values. The number of reports n
    follows from E|p̂-p|₁ ≤ √(k·R/n).

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> reports_for(RandomizedResponse(Domain.range(5), 1), tv=0.05)
    6115
    """
    _checked_error("reports_for", tv)
    risk = mechanism.worst_risk(1) if p is None else mechanism.risk(1, p)
    if not math.isfinite(risk):
        raise InvalidInput(
            "reports_for",
            "the mechanism",
            "distinguish all values",
            mechanism,
            hint="Design one for a policy whose epsilons between all values are above 0.",
        )
    return _reports(math.sqrt(len(mechanism.domain) * risk), tv)


def _checked_error(subject: str, tv: float) -> None:
    """Raise InvalidInput unless the target error is above 0."""
    if not tv > 0:
        raise InvalidInput(subject, "tv", "be above 0", tv)


def _reports(l1_of_one: float, tv: float) -> int:
    """Return the least n with l1/√n ≤ 2·tv."""
    return max(1, math.ceil((l1_of_one / (2 * tv)) ** 2))


# -- lower bounds that no mechanism can beat ---------------------------------------------------------------


def uniform_least_risk(k: int, epsilon: EpsilonLike) -> float:
    """Return the least possible expected squared error from one report under ε-LDP.

    Values are assumed to be uniformly distributed.

    Parameters
    ----------
    k
        Number of values.
    epsilon
        The ε between all values.

    Returns
    -------
    float
        The limit of n·E|p̂-p|² as the number of reports n grows, for the best mechanism and estimate p̂. Divide it by n
        for the squared error from n reports.

    Notes
    -----
    With t = e^ε, the value is (k-1)²(dt + k-d)² / (k(t-1)²·d(k-d)) at the best subset size d (Ye and Barg
    2018, "Optimal schemes for discrete distribution estimation under locally differential privacy"). The mechanism
    :class:`SubsetSelection` attains it. No mechanism has a smaller limit, because the trace of the inverse
    Fisher information at the uniform distribution is never smaller.

    Examples
    --------
    >>> round(uniform_least_risk(5, 1), 3)
    12.23
    """
    return 0.0 if k == 1 else _risk_of_subsets(k, Epsilon(epsilon, subject="uniform_least_risk"))


@functools.lru_cache(maxsize=1024)  # many blocks have the same size
def _risk_of_subsets(k: int, epsilon: Epsilon) -> float:
    """Return the risk of one report of subset selection at the uniform distribution."""
    return SubsetSelection(Domain.range(k), epsilon).risk(1)


def blocks_least_risk(
    sizes: Sequence[int],
    epsilon: EpsilonLike | Sequence[EpsilonLike],
    totals: Sequence[float] | npt.NDArray[np.float64] | None = None,
) -> float:
    """Return the least possible expected squared error from one report under a policy whose blocks may be revealed.

    Such a policy is :class:`Blocks` with infinite ε between blocks. Values are assumed to be uniformly distributed
    within each block.

    Parameters
    ----------
    sizes
        Number of values in each block, k_j. If the sizes have labels (a mapping or a pandas Series), then epsilons and
        totals with labels are aligned with them.
    epsilon
        The ε within the blocks: one for all blocks, or one per block.
    totals
        Total probability w_j of each block. Without it, the function returns the greatest error over all totals.

    Returns
    -------
    float
        The limit of n·E|p̂-p|² as the number of reports n grows, for the best mechanism and estimate p̂. Divide it by n
        for the squared error from n reports.

    Raises
    ------
    InvalidInput
        If a size is below 1, the number of epsilons differs from the number of blocks, or the totals are not
        probabilities that sum to one.

    Notes
    -----
    Revealing the block costs no privacy and reduces the error. The best mechanism therefore reveals the block and hides
    the value within it by the best mechanism for k_j values. The estimate is p̂ = ŵ_j·q̂ for a value with probability q
    within block j. To first order, its error is q·δw + w·δq, where δ denotes the error of a factor. The block totals
    satisfy n·Var ŵ_j = w_j(1-w_j). The estimate q̂ within block j comes from n·w_j reports, each with the expected
    squared error r_j = ``uniform_least_risk(k_j, ε_j)``. The two errors are independent, and |q|² = 1/k_j. Hence the
    total is

        Σ_j w_j·r_j + w_j(1-w_j)/k_j = Σ_j w_j·(r_j + 1/k_j) - w_j²/k_j.

    Examples
    --------
    >>> round(blocks_least_risk([5, 5], 1), 3)
    12.33
    >>> round(blocks_least_risk([5, 5], 1, totals=[0.9, 0.1]), 3)
    12.266
    """
    blocks = labels_domain(sizes, "blocks_least_risk", "sizes")
    if blocks is not None:
        sizes = align(blocks, sizes, "blocks_least_risk", "sizes")
        epsilon = align(blocks, epsilon, "blocks_least_risk", "epsilon")
        totals = align(blocks, totals, "blocks_least_risk", "totals")
    counts = _checked_sizes("blocks_least_risk", sizes)
    epsilons: list[Any] = list(epsilon) if isinstance(epsilon, (list, tuple)) else [epsilon] * len(counts)
    if len(epsilons) != len(counts):
        must = f"be one number, or one for each of the {len(counts)} blocks"
        raise InvalidInput("blocks_least_risk", "epsilon", must, Description(quantity(len(epsilons), "epsilon")))
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
    used = weights > 0  # an empty block adds no error, whatever its epsilon
    return float(weights[used] @ slopes[used] - np.sum(weights**2 / counts))


def _worst_totals(slopes: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the block totals that maximise Σ w·slope - w²/k: w = k·max(slope - λ, 0)/2, with λ such that Σ w = 1."""
    order = np.argsort(-slopes)
    filled, mass = np.cumsum(counts[order]), np.cumsum((counts * slopes)[order])
    thresholds = (mass - 2) / filled
    last = int(np.flatnonzero(slopes[order] > thresholds)[-1])
    return np.asarray(counts * np.maximum(slopes - thresholds[last], 0.0) / 2)


def prior_least_risk(k: int, epsilon: EpsilonLike, side: str = "both") -> float:
    """Return the least possible expected squared error from one report under a :class:`Prior` policy.

    The prior is uniform, and values are assumed to follow it.

    Parameters
    ----------
    k
        Number of values.
    epsilon
        The ε of the prior policy.
    side
        Which changes of the probability of a value the policy limits: ``"upper"`` (increases by a report), ``"lower"``
        (decreases) or ``"both"``.

    Returns
    -------
    float
        The limit of n·E|p̂-p|² as the number of reports n grows, for the best mechanism and estimate p̂. Divide it by n
        for the squared error from n reports.

    Notes
    -----
    The value is (k-1)²/(Σv² - k). Here v has d entries e^ε, one entry in between and all others e^-ε, and sums to k.

    Let v be the likelihoods of an output divided by their mean, so that Σv = k. The policy requires e^-ε ≤ v ≤ e^ε
    (only one of the two for a one-sided policy). With expectations over the outputs at the uniform distribution, the
    information matrix is J = E[v v'], and the squared error is tr J⁻¹ - 1/k. Since E v = 1, J·1 = k·1, and the other
    k-1 eigenvalues of J sum to E|v|² - k. The sum of their inverses is at least (k-1)²/(E|v|² - k). The convex function
    |v|² is greatest at a vertex of the polytope, where at most one entry lies strictly between the limits. A uniform
    permutation of that vertex makes all k-1 eigenvalues equal and therefore attains the bound.

    Examples
    --------
    >>> round(prior_least_risk(20, 1), 2)
    17.68
    >>> round(prior_least_risk(20, "inf"), 2)
    0.95
    """
    exact = Epsilon(epsilon, subject="prior_least_risk")
    if k == 1:
        return 0.0
    # Deviations from the mean keep their precision for small ε. No entry of v exceeds k.
    high = k - 1.0 if side == "lower" else min(math.expm1(min(float(exact), math.log(k))), k - 1.0)
    low = -1.0 if side == "upper" else math.expm1(-float(exact))
    if high <= 0 or low >= 0:
        return math.inf
    d = min(math.floor(-k * low / (high - low)), k - 1)
    between = -d * high - (k - d - 1) * low
    spread = d * high**2 + between**2 + (k - d - 1) * low**2
    return (k - 1) ** 2 / spread if spread > 0 else math.inf  # the spread may underflow to 0


def least_risk(policy: Policy) -> float | None:
    """Return the least possible expected squared error from one report under a policy, if a closed form is known.

    Values are assumed to be uniformly distributed. No mechanism that obeys the policy has a smaller error as the number
    of reports grows.

    Parameters
    ----------
    policy
        Any policy. Closed forms are known for :class:`Uniform`, for :class:`Prior` with a uniform prior, for
        :class:`Blocks` with infinite ε between blocks, and for policies equal to one of these.

    Returns
    -------
    float or None
        The limit of n·E|p̂-p|² as the number of reports n grows, for the best mechanism and estimate p̂. Divide it by n
        for the squared error from n reports. None if no closed form is known.

    Examples
    --------
    >>> from sfumato import Domain, Metric, Uniform
    >>> round(least_risk(Uniform(Domain.range(5), 1)), 3)
    12.23
    >>> least_risk(Metric(Domain.range(5), "absolute", 1)) is None
    True
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


def high_low_worst_risk(sensitive: int, harmless: int, epsilon: EpsilonLike) -> float:
    """Return the least possible worst-case squared error from one report under a :class:`HighLow` policy.

    The worst case is the distribution of values at which the error is greatest.

    Parameters
    ----------
    sensitive
        Number of sensitive values, s, at least 1.
    harmless
        Number of harmless values, h.
    epsilon
        The ε of the policy.

    Returns
    -------
    float
        The limit of n·E|p̂-p|² as the number of reports n grows, at the distribution p where it is greatest, for the
        mechanism and estimate p̂ with the least such maximum. Divide it by n for the squared error from n reports.

    Raises
    ------
    InvalidInput
        If ``sensitive`` is below 1 or ``harmless`` is negative.

    Notes
    -----
    The error tr J(p)⁻¹ - |p|² of the efficient estimate, with the information matrix J(p), is convex in the mechanism
    and concave in p. Permutations of the sensitive values, and of the harmless values, leave the policy unchanged. A
    saddle point therefore exists at a p that is uniform within both classes. A search over the total probability of the
    sensitive values finds it, and its cost hardly depends on the numbers of values. The result is a lower bound from
    the dual problem at that p. :class:`HighLowMixedSubsets` attains it, or :func:`HighLowSubset` where one subset size
    is sufficient. In tests, the distance is below one part in a million.

    Examples
    --------
    >>> round(high_low_worst_risk(4, 4, 1), 3)
    8.999
    >>> round(high_low_worst_risk(2000, 3000, 1), 1)
    7358.0
    """
    _checked_sensitive("high_low_worst_risk", sensitive, sensitive + harmless)
    exact = Epsilon(epsilon, subject="high_low_worst_risk")
    return best_high_low_mixture(sensitive, harmless, exact).bound if harmless else uniform_least_risk(sensitive, exact)


def least_worst_risk(policy: Policy) -> float | None:
    """Return the least possible worst-case squared error from one report under a policy, if it is known at any size.

    The worst case is the distribution of values at which the error is greatest. For other policies and few values,
    :func:`optimal` with the utility ``"worst-estimation"`` computes a bound by a search.

    Parameters
    ----------
    policy
        Any policy. The value is known for :class:`Uniform`, for :class:`HighLow`, for :class:`Blocks` with infinite ε
        between blocks or with blocks of one size at two levels, and for policies equal to one of these.

    Returns
    -------
    float or None
        A lower bound on the limit of n·E|p̂-p|² as the number of reports n grows, at the distribution p where it is
        greatest, for every mechanism and estimate p̂. Divide it by n for the squared error from n reports. None if no
        bound is known.

    Notes
    -----
    If permutations that leave the policy unchanged carry every value to every other one, the uniform distribution is
    least favourable. This holds for :class:`Uniform` and for blocks of one size. For blocks that may be revealed, the
    value is ``blocks_least_risk`` at the worst block totals, and for sensitive values it is ``high_low_worst_risk``.

    Examples
    --------
    >>> from sfumato import Blocks, Domain, HighLow, Metric
    >>> round(least_worst_risk(HighLow(Domain.range(8), range(4), 1)), 3)
    8.999
    >>> round(least_worst_risk(Blocks(Domain.range(10), [0] * 3 + [1] * 7, 1)), 3)
    18.973
    >>> least_worst_risk(Metric(Domain.range(5), "absolute", 1)) is None
    True
    """
    simplest = structure_of(policy)
    if isinstance(simplest, HighLow):
        sensitive = len(simplest.sensitive)
        return high_low_worst_risk(sensitive, len(simplest.domain) - sensitive, simplest.epsilon)
    if isinstance(simplest, Uniform):
        return uniform_least_risk(len(simplest.domain), simplest.epsilon)
    if not isinstance(simplest, Blocks):
        return None
    if simplest.across.is_infinite:
        return blocks_least_risk(np.bincount(simplest.block_of).tolist(), simplest.epsilons)
    sizes = np.bincount(simplest.block_of)
    if sizes.min() < sizes.max() or len(set(simplest.epsilons)) > 1:
        return None  # the uniform distribution need not be the worst case
    with suppress(NoAnswer):
        symmetric = best_orbits(simplest)
        return None if symmetric is None else symmetric.bound
    return None
