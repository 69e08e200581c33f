"""Public groups (a region, a week): an estimate for each, for all together, and the differences between them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato._aggregate import Aggregate
from sfumato._estimate.result import Estimate, LinearEstimate
from sfumato.errors import InvalidInput

__all__ = ["GroupedEstimate"]


@dataclass(frozen=True, eq=False)
class GroupedEstimate:
    """One estimate per group and one of all people together. Groups are public, and their people different."""

    groups: Mapping[Any, Estimate]
    total: Estimate

    def difference(self, first: Hashable, second: Hashable) -> dict[object, LinearEstimate]:
        """For every value, the frequency in one group minus that in another, with its error."""
        a, b = self._group(first), self._group(second)
        return {
            label: LinearEstimate(float(a.unbiased[x]), float(a.standard_errors[x]))
            - LinearEstimate(float(b.unbiased[x]), float(b.standard_errors[x]))
            for x, label in enumerate(a.domain)
        }

    def weighted(self, weights: Mapping[Any, float]) -> dict[object, LinearEstimate]:
        """Frequencies in a population made up of the groups in these shares (survey weights)."""
        if set(weights) != set(self.groups):
            raise InvalidInput("weighted", "weights", f"name each of the groups {list(self.groups)}", list(weights))
        total = sum(weights.values())
        if total <= 0 or min(weights.values()) < 0:
            raise InvalidInput("weighted", "weights", "be at least 0, not all 0", dict(weights))
        shares = {group: weight / total for group, weight in weights.items()}
        domain = self.total.domain
        return {
            label: LinearEstimate(
                sum(share * float(self.groups[g].unbiased[x]) for g, share in shares.items()),
                sum((share * float(self.groups[g].standard_errors[x])) ** 2 for g, share in shares.items()) ** 0.5,
            )
            for x, label in enumerate(domain)
        }

    def _group(self, name: Hashable) -> Estimate:
        if name not in self.groups:
            raise InvalidInput("difference", "the group", f"be one of {list(self.groups)}", name)
        return self.groups[name]


def merged(aggregates: Mapping[Any, Aggregate]) -> Aggregate:
    """All groups together."""
    if not aggregates:
        raise InvalidInput("estimate", "the groups", "be at least one", {})
    first, *others = aggregates.values()
    for other in others:
        first = first.merge(other)
    return first
