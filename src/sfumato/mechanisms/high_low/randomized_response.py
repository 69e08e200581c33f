"""Randomized response among the sensitive values, harmless ones revealed (Murakami and Kawamoto 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sfumato._core import EpsilonLike
from sfumato.domain import Domain
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.randomized_response.mechanism import RandomizedResponse
from sfumato.policy import HighLow

__all__ = ["UtilityOptimizedRR"]


class UtilityOptimizedRR(HighLowMechanism):
    """A sensitive value answers by randomized response among the s sensitive ones; a harmless value tells itself
    with probability γ = (e^ε-1)/(e^ε-1+s), otherwise it gives a uniform sensitive answer. A baseline: it is
    HighLowSubset at size one.
    """

    name = "utility-optimized-rr"

    def __init__(
        self,
        domain: Domain,
        sensitive: Iterable[object],
        epsilon: EpsilonLike,
        *,
        threshold: int | str | None = None,
    ) -> None:
        policy = HighLow(domain, sensitive, epsilon)
        answers = Domain.range(len(policy.sensitive))
        self._hide(policy, RandomizedResponse(answers, policy.epsilon, threshold=threshold))

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> UtilityOptimizedRR:
        sensitive, others = cls._read_sensitive(domain, parameters)
        return cls(domain, sensitive, **others)
