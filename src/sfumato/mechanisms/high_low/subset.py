"""Subset selection among the sensitive values, harmless ones revealed: the size of the subsets is free."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato._core import Epsilon, EpsilonLike, checked_integer
from sfumato.domain import Domain
from sfumato.mechanisms.base import SURROGATE_VALUES
from sfumato.mechanisms.estimators.inclusion import set_moments
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.mechanisms.subset.mechanism import SubsetSelection, scaled_size
from sfumato.mechanisms.two_level import InclusionMixture
from sfumato.policy import HighLow

__all__ = ["HighLowSubset", "best_high_low_size"]


class HighLowSubset(HighLowMechanism):
    """Outputs: every d-subset D of the s sensitive values, and every harmless value.

    D has the likelihood e^ε on its members and 1 on all other values; a harmless value is revealed with the rest:
    γ = (e^ε-1)d / ((e^ε-1)d + s). The size of least exact risk (at the uniform distribution) is taken unless given.
    A single sensitive value has one subset, itself: Mangat's method. Every value sensitive is subset selection.
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
            # Subsets of one value are numbered: an index says the same as a bitmap with one bit.
            mixture: InclusionMixture = RandomizedResponse(Domain.range(count), policy.epsilon, threshold=threshold)
        else:
            mixture = SubsetSelection(
                Domain.range(count), policy.epsilon, size, threshold=threshold, coin=coin, planes=planes
            )
        self.size = size
        self._hide(policy, mixture)

    def audit_surrogate(self) -> HighLowSubset:
        protected, unprotected = min(len(self.mixture.domain), SURROGATE_VALUES), min(len(self.unprotected), 2)
        # Of one member or of several: these are different samplers.
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


def best_high_low_size(sensitive: int, harmless: int, epsilon: Epsilon) -> int:
    """The subset size 1 ≤ d < s of least exact risk at the uniform distribution.

    With r = (d-1)/(s-1), β = (1-γ)d/s + γr and κ = 1/(γ(1-r)), a subset has |φ|² = κ²(d(1-β)² + (s-d)β²), and a
    revealed harmless value sκ²(1-γ)²(r - d/s)² + 1/γ² (docs/proofs/high-low-subset.md).
    """
    if epsilon.is_infinite or sensitive == 1:
        return 1
    d = np.arange(1, sensitive, dtype=np.float64)
    odds = np.expm1(min(float(epsilon), 700.0)) * d  # beyond, one member is best whatever the rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        gamma, rest = odds / (odds + sensitive), sensitive / (odds + sensitive)
        of_subset, of_revealed = set_moments(sensitive, d, gamma, rest)
        risks = sensitive * of_subset + harmless * (rest * of_subset + gamma * of_revealed)
    return int(np.nanargmin(risks)) + 1 if np.isfinite(risks).any() else max(1, sensitive // 2)
