"""How mechanisms for sensitive values divide into a permanent answer and a report about it."""

from __future__ import annotations

from sfumato._core import ZERO, Epsilon
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.high_low.subset import HighLowSubset, best_high_low_size
from sfumato.mechanisms.memoized.forms import at_level
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.partitioned.memory import PartitionedForm
from sfumato.policy import HighLow, Policy, on_pairs, structure_of

__all__ = ["HIGH_LOW"]


class _HighLowForm(PartitionedForm):
    """Mechanisms for sensitive and harmless values, with one part."""

    def permanent_for(self, single: PartitionedMechanism, lifetime: Policy) -> PartitionedMechanism | None:
        assert isinstance(single, HighLowMechanism)
        policy = structure_of(lifetime)
        if isinstance(policy, HighLow) and policy.sensitive == single.sensitive:
            return self._with_level(single, policy.epsilon)
        # All values are sensitive, or none of them needs protection.
        pairs = on_pairs(lifetime)
        all_sensitive = not len(single.unprotected) and pairs is not None
        return self._with_level(single, pairs.least[0]) if all_sensitive and pairs is not None else None

    @staticmethod
    def _with_level(single: HighLowMechanism, epsilon: Epsilon) -> HighLowMechanism | None:
        """Return the mechanism at another level, with the best size of its sets; a smaller set has a smaller γ."""
        if not isinstance(single, HighLowSubset):
            return at_level(single, epsilon)
        best = best_high_low_size(len(single.mixture.domain), len(single.unprotected), epsilon)
        sizes = range(min(best, single.size), single.size + 1)
        sets = (HighLowSubset(single.domain, single.sensitive, epsilon, size) for size in sizes)
        return next((each for each in sets if each.mixture.threshold >= single.mixture.threshold), None)

    def blank(self, single: PartitionedMechanism, permanent: PartitionedMechanism) -> PartitionedMechanism:  # noqa: ARG002
        return at_level(single, ZERO)


HIGH_LOW = _HighLowForm()
