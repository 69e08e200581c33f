"""k-ary randomized response (Warner 1965 for k = 2)."""

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
    """Randomized response: report the true value with probability γ, otherwise a value drawn uniformly.

    The draw is over all k values, so it may again be the true one. A report is the index of a value in the domain.

    Parameters
    ----------
    domain
        The k values.
    epsilon
        The level ε of classical local differential privacy.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    Let Q(y|x) be the probability of report y for value x, and t = e^ε. Then a = Q(x|x) = t/(t+k-1) and
    b = Q(y|x) = 1/(t+k-1) for y ≠ x, so γ = (t-1)/(t+k-1). γ is rounded down to a multiple of 2^-64, so that ε holds
    exactly. For k = 2 this is the mechanism of Warner (1965).

    If T_x of n reports are x, the unbiased estimate of the frequency of x is (T_x/n - b)/(a-b).

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv", "cancer"]), "ln 5")
    >>> mechanism.gamma
    Fraction(1, 2)
    >>> mechanism.matrix()[0].tolist()
    [0.625, 0.125, 0.125, 0.125]
    """

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
