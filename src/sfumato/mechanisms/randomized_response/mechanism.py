"""k-ary randomized response (Warner 1965 at k = 2)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from sfumato._core import EpsilonLike, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.two_level import ONE, InclusionMixture, MixtureDraws, extreme_indices, mixing_threshold

__all__ = ["RandomizedResponse"]


class RandomizedResponse(InclusionMixture):
    """Report the true value with probability γ, otherwise a uniform one (which may again be the true one)."""

    name = "randomized-response"

    def __init__(self, domain: Domain, epsilon: EpsilonLike, *, threshold: int | str | None = None) -> None:
        self.domain = checked_domain("RandomizedResponse", domain)
        self.epsilon = read_epsilon("RandomizedResponse", epsilon)
        self.density = Fraction(1, len(domain))
        if threshold is None:
            threshold = mixing_threshold(self.epsilon, self.density)
        self.threshold = checked_integer("RandomizedResponse", "threshold", threshold, 0, ONE)
        self.layout = Layout(64, (Field.number(32, 32), Field.number(0, 32)))

    def step(self, state: int, draws: Draws) -> Finished:
        keep = draws.bernoulli(self.threshold, ONE)
        other = draws.below(len(self.domain))
        return Finished(state if keep else other)

    def audit_surrogate(self) -> RandomizedResponse:
        return self.from_parameters(Domain.range(min(len(self.domain), SURROGATE_VALUES)), self.parameters())

    def draws(self) -> MixtureDraws:
        return MixtureDraws(choices=len(self.domain))

    @property
    def outputs(self) -> int:
        return len(self.domain)

    def in_set(self, report: int, x: int) -> bool:
        return report == x

    def separating(self, x: int, other: int) -> int:  # noqa: ARG002
        return x

    def lightest(self, weights: Sequence[Fraction]) -> int:
        return extreme_indices(weights, 1, heaviest=False)[0]

    def heaviest(self, weights: Sequence[Fraction]) -> int:
        return extreme_indices(weights, 1, heaviest=True)[0]

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon), "threshold": str(self.threshold)}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> RandomizedResponse:
        return cls(domain, **parameters)
