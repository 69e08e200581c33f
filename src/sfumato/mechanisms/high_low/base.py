"""Sensitive values protected among themselves, harmless ones mostly revealed (context-aware LDP §5).

One part: its protected values are the sensitive ones, its unprotected values the harmless ones. A column of the
part is high on a set of sensitive values and low on all others, harmless ones too; the column of a harmless value
is its own. So a sensitive value can always be denied, at the ratio high/low ≤ e^ε, and nothing binds a harmless one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._core import Epsilon, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.two_level import OUTSIDE, MixtureMechanism
from sfumato.policy import HighLow

__all__ = ["HighLowMechanism"]


class HighLowMechanism(PartitionedMechanism):
    """What the mechanisms for HighLow policies share; they differ in the mixture over the sensitive values."""

    epsilon: Epsilon

    def _hide(self, policy: HighLow, mixture: MixtureMechanism) -> None:
        flags = policy.is_sensitive
        numbers = np.where(flags, np.cumsum(flags) - 1, OUTSIDE)
        self.epsilon = policy.epsilon
        self._assemble(policy.domain, [mixture], np.zeros(len(flags), dtype=np.int64), numbers)

    @property
    def mixture(self) -> MixtureMechanism:
        """What the sensitive values are randomized with, numbered in domain order."""
        return self.parts[0]

    @property
    def sensitive(self) -> list[object]:
        """The sensitive values, in domain order."""
        return list(self.domain.decode(self.protected(0)))

    def parameters(self) -> dict[str, Any]:
        first = {"sensitive": self.protected(0).tolist(), "epsilon": str(self.epsilon)}
        return first | {key: value for key, value in self.mixture.parameters().items() if key != "epsilon"}

    @staticmethod
    def _read_sensitive(domain: Domain, parameters: dict[str, Any]) -> tuple[list[object], dict[str, Any]]:
        """The sensitive values, which a spec gives by their positions, and the rest of its parameters."""
        others = dict(parameters)
        last = len(checked_domain("HighLow", domain)) - 1
        positions = [checked_integer("HighLow", "sensitive", x, 0, last) for x in others.pop("sensitive")]
        return list(domain.decode(positions)), others
