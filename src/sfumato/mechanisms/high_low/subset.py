"""Subset selection among the sensitive values, with harmless values revealed; the subset size is free."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato._core import Epsilon, EpsilonLike, checked_integer
from sfumato.domain import Domain
from sfumato.mechanisms.base import SURROGATE_VALUES
from sfumato.mechanisms.estimators.mixture import mixture_moments
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection, scaled_size
from sfumato.policy import HighLow

__all__ = ["HighLowSubset", "UtilityOptimizedRR", "best_high_low_size"]


class HighLowSubset(HighLowMechanism):
    """Subset selection among the sensitive values, for the policy :class:`HighLow`.

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
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.
    coin
        Setting of the sampler, which first includes each value with probability coin/2^planes. It affects the speed,
        not the probabilities of the reports.
    planes
        Number of random bits per coin, from 1 to 8. It affects the speed, not the probabilities of the reports.

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
    >>> mechanism.size
    1
    >>> mechanism.matrix()[0].tolist()  # "none" is harmless: revealed with probability 1/2
    [0.25, 0.25, 0.5, 0.0]
    """

    name = "high-low-subset"

    def __init__(
        self,
        domain: Domain,
        sensitive: Iterable[object],
        epsilon: EpsilonLike,
        size: int | None = None,
        *,
        threshold: int | str | None = None,
        coin: int | None = None,
        planes: int | None = None,
    ) -> None:
        policy = HighLow(domain, sensitive, epsilon)
        count = len(policy.sensitive)
        if size is None:
            size = best_high_low_size(count, len(domain) - count, policy.epsilon)
        size = checked_integer("HighLowSubset", "size", size, 1, max(1, count - 1))
        if size == 1:
            # A subset of one value is reported as an index, which holds the same information as a bitmap with one bit.
            mixture: Mixture = RandomizedResponse(Domain.range(count), policy.epsilon, threshold=threshold)
        else:
            mixture = SubsetSelection(
                Domain.range(count), policy.epsilon, size, threshold=threshold, coin=coin, planes=planes
            )
        self.size = size
        self._hide(policy, mixture)

    def audit_surrogate(self) -> HighLowSubset:
        protected, unprotected = min(len(self.mixture.domain), SURROGATE_VALUES), min(len(self.unprotected), 2)
        # Subsets of one member and subsets of several have different samplers.
        size = 1 if self.size == 1 else scaled_size(self.mixture.density, protected, least=2)
        return self.from_parameters(
            Domain.range(protected + unprotected),
            self.parameters() | {"sensitive": list(range(protected)), "size": size},
        )

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"size": self.size}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> HighLowSubset:
        sensitive, others = cls._read_sensitive(domain, parameters)
        return cls(domain, sensitive, **others)


def UtilityOptimizedRR(domain: Domain, sensitive: Iterable[object], epsilon: EpsilonLike) -> HighLowSubset:  # noqa: N802
    """Return utility-optimized randomized response: :class:`HighLowSubset` with sets of one value.

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
    HighLowSubset
        The mechanism with ``size=1``. A report is the index of an output; outputs are the sensitive values, then the
        harmless ones, each in domain order.

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
