"""Mechanisms for sensitive and harmless values: one part, whose unprotected values are the harmless ones.

A column of the part is high on a set of sensitive values and low on all others, harmless ones included. A harmless
value also has a column in which all other values have probability zero. So a person can always deny a sensitive value,
at the ratio high/low ≤ e^ε, and no constraint binds a harmless value (Acharya et al. 2020, Section 5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato._core import Epsilon, EpsilonLike, checked_integer
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.candidates import most_outputs
from sfumato.mechanisms.estimators.mixture import MixtureEstimator, mixture_moments
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.systems.designs.choice import best_design
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import HighLow

__all__ = [
    "HighLowCyclic",
    "HighLowHadamard",
    "HighLowSubset",
    "UtilityOptimizedRR",
    "best_high_low_size",
    "mixture_of_sets",
]


def HighLowSubset(  # noqa: N802
    domain: Domain, sensitive: Iterable[object], epsilon: EpsilonLike, size: int | None = None
) -> Parts:
    """Return subset selection among the sensitive values, for the policy :class:`HighLow`.

    A report is either a set of d of the s sensitive values, or one harmless value. A sensitive value always gives a
    set, which often contains it. A harmless value is revealed with probability γ, and otherwise gives a uniformly
    drawn set.

    Parameters
    ----------
    domain
        The values.
    sensitive
        The s sensitive values; all others are harmless.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.
    size
        The number d of values in a set. By default, d minimizes the expected squared error of the estimated frequencies
        (the risk) at the uniform distribution.

    Returns
    -------
    Parts
        One part of :class:`SubsetSelection` whose unprotected values are the harmless ones. For d = 1 the part is
        :class:`RandomizedResponse`, which reports the index of the set.

    Notes
    -----
    A set is e^ε times likelier for its members than for all other values, sensitive or harmless. With t = e^ε,
    γ = (t-1)d/((t-1)d + s), rounded down to a multiple of 2^-64, so that ε holds exactly. The proof is in
    ``docs/proofs/high-low-subset.md``. Special cases:

    - one sensitive value: the only subset is the value itself, which is Mangat's method;
    - d = 1: :func:`UtilityOptimizedRR`;
    - all values sensitive: :class:`SubsetSelection`.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import HighLowSubset
    >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
    >>> mechanism = HighLowSubset(illnesses, ["hiv", "cancer"], "ln 3")
    >>> mechanism.matrix()[0].tolist()  # "none" is harmless: revealed with probability 1/2
    [0.25, 0.25, 0.5, 0.0]
    """
    policy = HighLow(domain, sensitive, epsilon)
    count = len(policy.sensitive)
    if size is None:
        size = best_high_low_size(count, len(domain) - count, policy.epsilon)
    size = checked_integer("HighLowSubset", "size", size, 1, max(1, count - 1))
    return _hiding(policy, mixture_of_sets(count, policy.epsilon, size))


def UtilityOptimizedRR(domain: Domain, sensitive: Iterable[object], epsilon: EpsilonLike) -> Parts:  # noqa: N802
    """Return utility-optimized randomized response: :func:`HighLowSubset` with sets of one value.

    Any value is reported as itself with probability γ, and otherwise as a uniformly drawn sensitive value. A harmless
    value in a report is thus certainly true.

    Parameters
    ----------
    domain
        The values.
    sensitive
        The s sensitive values; all others are harmless.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.

    Returns
    -------
    Parts
        One part of :class:`RandomizedResponse`. A report is the index of an output; outputs are the sensitive values,
        then the harmless ones, each in domain order.

    Notes
    -----
    With t = e^ε, γ = (t-1)/(t-1+s). A sensitive value is reported as itself with probability t/(t-1+s) (Murakami and
    Kawamoto 2019, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation").

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import UtilityOptimizedRR
    >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
    >>> mechanism = UtilityOptimizedRR(illnesses, ["hiv", "cancer"], "ln 3")
    >>> mechanism.matrix()[0].tolist()  # outputs: hiv, cancer, none, flu
    [0.25, 0.25, 0.5, 0.0]
    >>> mechanism.matrix()[2].tolist()
    [0.75, 0.25, 0.0, 0.0]
    """
    return HighLowSubset(domain, sensitive, epsilon, 1)


def HighLowHadamard(  # noqa: N802
    domain: Domain,
    sensitive: Iterable[object],
    epsilon: EpsilonLike,
    *,
    block_size: int | None = None,
    blocks: int | None = None,
    published: bool = False,
) -> Parts:
    """Return Hadamard response among the sensitive values, for the policy :class:`HighLow`.

    An output is either a column of a Hadamard matrix with a row per sensitive value, or one harmless value. A sensitive
    value always gives a column. A harmless value is revealed with probability γ, and otherwise gives a uniformly drawn
    column. A report is the index of an output, of about log2 k + 1 bits for k values.

    Parameters
    ----------
    domain
        The values.
    sensitive
        The sensitive values; all others are harmless.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.
    block_size
        The number of columns per block of the matrix, a power of two. By default, it minimizes the expected squared
        error of the estimated frequencies at the uniform distribution. At large ε several small blocks are better than
        one.
    blocks
        The number of blocks; the fewest that hold all sensitive values by default.
    published
        Whether to use the single block of the published mechanism by default.

    Returns
    -------
    Parts
        One part of :class:`HadamardResponse` whose unprotected values are the harmless ones.

    Notes
    -----
    With probability γ a sensitive value gives a uniformly drawn column of its block where its row is +1, and a harmless
    value gives itself. Otherwise the report is a column drawn uniformly from all blocks. With t = e^ε and B blocks,
    γ = (t-1)/(t-1+2B), rounded down to a multiple of 2^-64, so that ε holds exactly.

    The mechanism of Acharya et al. (2020, "Context-Aware Local Differential Privacy"), with ``published=True``, has one
    block of S columns, where S is the least power of two above the number of sensitive values. Row 0, all ones, is
    skipped. Their printed channel (eq. 13) does not skip it, so its rows do not sum to one.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import HighLowHadamard
    >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
    >>> mechanism = HighLowHadamard(illnesses, ["hiv", "cancer"], "ln 3")
    >>> mechanism.matrix()[0].tolist()  # "none" is harmless: revealed with probability 1/2
    [0.125, 0.125, 0.125, 0.125, 0.5, 0.0]
    >>> mechanism.matrix()[2].tolist()
    [0.375, 0.125, 0.375, 0.125, 0.0, 0.0]
    """
    policy = HighLow(domain, sensitive, epsilon)
    count = len(policy.sensitive)
    if block_size is None:
        harmless = len(domain) - count
        block_size = 1 << count.bit_length() if published else _best_block_size(count, harmless, policy.epsilon)
    return _hiding(policy, HadamardResponse(Domain.range(count), policy.epsilon, block_size=block_size, blocks=blocks))


def HighLowCyclic(  # noqa: N802
    domain: Domain,
    sensitive: Iterable[object],
    epsilon: EpsilonLike,
    *,
    design: dict[str, Any] | None = None,
    max_bits: int | None = None,
) -> Parts:
    """Return a cyclic design among the sensitive values, for the policy :class:`HighLow`.

    An output is either a shift of a cyclic design over the sensitive values, or one harmless value. A sensitive value
    always gives a shift, whose set often contains it. A harmless value is revealed with probability γ, and otherwise
    gives a uniformly drawn shift. A report is the index of an output, of about log2 k bits for k values.

    Parameters
    ----------
    domain
        The values.
    sensitive
        The sensitive values, at least two; all others are harmless.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.
    design
        The difference family, as :class:`CyclicDesign` takes it. By default, it has the shortest reports among the
        families within 0.5% of the least risk (the expected squared error of the estimated frequencies) at the uniform
        distribution.
    max_bits
        Maximum report size in bits for the default design.

    Returns
    -------
    Parts
        One part of :class:`CyclicDesign` whose unprotected values are the harmless ones.

    Raises
    ------
    InvalidInput
        If there are fewer than two sensitive values.

    Notes
    -----
    The sets, γ and the estimate are those of :class:`CyclicDesign`; a harmless value is in no set. The proof is in
    ``docs/proofs/high-low-cyclic.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import HighLowCyclic
    >>> mechanism = HighLowCyclic(Domain.range(100), range(50), 1)
    >>> mechanism.bits
    10
    """
    policy = HighLow(domain, sensitive, epsilon)
    count = len(policy.sensitive)
    if count < 2:
        hint = "Use UtilityOptimizedRR for a single sensitive value."
        raise InvalidInput("HighLowCyclic", "sensitive", "be at least two values", policy.sensitive, hint=hint)
    if design is None:
        harmless = len(domain) - count
        most = (most_outputs(max_bits) or math.inf) - harmless
        design = best_design(count, policy.epsilon, unprotected=harmless, max_outputs=most).document()
    return _hiding(policy, CyclicDesign(Domain.range(count), policy.epsilon, design=design))


def _hiding(policy: HighLow, mixture: Mixture) -> Parts:
    """Return the part that protects the sensitive values of a policy."""
    return Parts(policy.domain, [0] * len(policy.domain), [mixture], np.flatnonzero(~policy.is_sensitive))


def mixture_of_sets(values: int, epsilon: Epsilon, size: int) -> Mixture:
    """Return subset selection; a set of one value is an index, which tells as much as a bitmap with one bit."""
    domain = Domain.range(values)
    return RandomizedResponse(domain, epsilon) if size == 1 else SubsetSelection(domain, epsilon, size)


def best_high_low_size(sensitive: int, harmless: int, epsilon: Epsilon) -> int:
    """Return the subset size 1 ≤ d < s of least exact risk at the uniform distribution.

    With r = (d-1)/(s-1), β = (1-γ)d/s + γr and κ = 1/(γ(1-r)), a subset has |φ|² = κ²(d(1-β)² + (s-d)β²), and a
    revealed harmless value has sκ²(1-γ)²(r - d/s)² + 1/γ² (docs/proofs/high-low-subset.md).
    """
    if epsilon.is_infinite or sensitive == 1:
        return 1
    d = np.arange(1, sensitive, dtype=np.float64)
    odds = np.expm1(min(float(epsilon), 700.0)) * d  # above 700, one member is best despite rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        gamma, rest = odds / (odds + sensitive), sensitive / (odds + sensitive)
        of_sensitive, of_harmless = mixture_moments(
            sensitive, d / sensitive, (d - 1) / max(sensitive - 1, 1), gamma, rest
        )
        risks = sensitive * of_sensitive + harmless * of_harmless
    return int(np.nanargmin(risks)) + 1 if np.isfinite(risks).any() else max(1, sensitive // 2)


def _best_block_size(sensitive: int, harmless: int, epsilon: Epsilon) -> int:
    """Return the power of two with the least exact risk at the uniform distribution."""

    def risk(block_size: int) -> tuple[float, int]:
        mixture = HadamardResponse(Domain.range(sensitive), epsilon, block_size=block_size)
        if mixture.threshold == 0:
            return math.inf, mixture.blocks
        estimator = mixture.estimator
        assert isinstance(estimator, MixtureEstimator)
        total = float(estimator.second_moments().sum()) + harmless * estimator.unprotected_second_moment()
        return total, mixture.blocks

    return min((1 << bits for bits in range(1, sensitive.bit_length() + 1)), key=risk)
