"""Public groups (a region, a week): an estimate for each, for all together, and the differences between them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato._core import is_number
from sfumato.collecting import Aggregate
from sfumato.domain import read_mapping
from sfumato.errors import InvalidInput
from sfumato.estimation.result import Estimate, LawHolder, LinearEstimate, frequency_of, weighted_sum

__all__ = ["GroupedEstimate"]


@dataclass(frozen=True, eq=False)
class GroupedEstimate:
    """One estimate per group, ``groups``, and one of all people together, ``total``.

    Groups are public, and their people different.
    """

    groups: Mapping[Any, Estimate]
    total: Estimate

    def difference(self, first: Hashable, second: Hashable) -> dict[object, LinearEstimate]:
        """For every value, the frequency in the first group minus that in the second, with its error."""
        a, b = self._group(first), self._group(second)
        first_laws, second_laws = LawHolder(a), LawHolder(b)
        return {
            label: frequency_of(a, x, first_laws) - frequency_of(b, x, second_laws) for x, label in enumerate(a.domain)
        }

    def weighted(self, weights: Mapping[Any, float]) -> dict[object, LinearEstimate]:
        """Frequencies in a population made up of the groups in these shares (survey weights)."""
        weights = read_mapping(weights, "weighted", "weights", f"name each of the groups {list(self.groups)}")
        if set(weights) != set(self.groups):
            raise InvalidInput("weighted", "weights", f"name each of the groups {list(self.groups)}", list(weights))
        if not all(is_number(weight) and math.isfinite(weight) for weight in weights.values()):
            raise InvalidInput("weighted", "weights", "be finite numbers", dict(weights))
        total = sum(weights.values())
        if total <= 0 or min(weights.values()) < 0:
            raise InvalidInput("weighted", "weights", "be at least 0, not all 0", dict(weights))
        shares = {group: float(weight / total) for group, weight in weights.items()}
        laws = {group: LawHolder(self.groups[group]) for group in shares}
        return {
            label: weighted_sum(
                [(share, frequency_of(self.groups[group], x, laws[group])) for group, share in shares.items()]
            )
            for x, label in enumerate(self.total.domain)
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
