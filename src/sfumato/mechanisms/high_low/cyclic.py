"""A cyclic design among the sensitive values, with harmless values revealed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from sfumato._core import EpsilonLike
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.candidates import most_outputs
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.systems.designs.choice import best_design
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.policy import HighLow

__all__ = ["HighLowCyclic"]


class HighLowCyclic(HighLowMechanism):
    """Cyclic design among the sensitive values, for the policy :class:`HighLow`.

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
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

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

    name = "high-low-cyclic"

    def __init__(
        self,
        domain: Domain,
        sensitive: Iterable[object],
        epsilon: EpsilonLike,
        *,
        design: dict[str, Any] | None = None,
        max_bits: int | None = None,
        threshold: int | str | None = None,
    ) -> None:
        policy = HighLow(domain, sensitive, epsilon)
        count = len(policy.sensitive)
        if count < 2:
            hint = "Use UtilityOptimizedRR for a single sensitive value."
            raise InvalidInput("HighLowCyclic", "sensitive", "be at least two values", policy.sensitive, hint=hint)
        if design is None:
            harmless = len(domain) - count
            most = (most_outputs(max_bits) or math.inf) - harmless
            design = best_design(count, policy.epsilon, unprotected=harmless, max_outputs=most).document()
        self._hide(policy, CyclicDesign(Domain.range(count), policy.epsilon, design=design, threshold=threshold))

    def audit_surrogate(self) -> HighLowCyclic:
        mixture = self.mixture.audit_surrogate()
        assert isinstance(mixture, CyclicDesign)
        protected, unprotected = len(mixture.domain), min(len(self.unprotected), 2)
        domain = Domain.range(protected + unprotected)
        return type(self)(domain, range(protected), self.epsilon, design=mixture.design.document())

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> HighLowCyclic:
        sensitive, others = cls._read_sensitive(domain, parameters)
        return cls(domain, sensitive, **others)
