"""Randomized response among the sensitive values, with harmless values revealed (Murakami and Kawamoto 2019)."""

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
    """Utility-optimized randomized response: randomized response that protects only the sensitive values.

    Any value is reported as itself with probability γ, and otherwise as a uniformly drawn sensitive value. A harmless
    value in a report is thus certainly true. The mechanism is a baseline: it equals :class:`HighLowSubset` with sets of
    one value. A report is the index of an output; outputs are the sensitive values, then the harmless ones, each in
    domain order.

    Parameters
    ----------
    domain
        The values.
    sensitive
        The s sensitive values; all others are harmless.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    With t = e^ε, γ = (t-1)/(t-1+s), rounded down to a multiple of 2^-64, so that ε holds exactly (Murakami and Kawamoto
    2019, "Utility-Optimized Local Differential Privacy Mechanisms for Distribution Estimation"). Before rounding, a
    sensitive value is reported as itself with probability t/(t-1+s).

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
