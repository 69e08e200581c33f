"""Mechanisms that protect sensitive values and mostly reveal harmless ones (Acharya et al. 2020, Section 5).

The mechanism has one part: its protected values are the sensitive ones, its unprotected values the harmless ones. A
column of the part is high on a set of sensitive values and low on all other values, harmless ones included. A harmless
value also has a column in which all other values have probability zero. So a person can always deny a sensitive value,
at the ratio high/low ≤ e^ε, and no constraint binds a harmless value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._core import Epsilon, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.policy import HighLow

__all__ = ["HighLowMechanism"]


class HighLowMechanism(PartitionedMechanism):
    """Base class of mechanisms for HighLow policies, which differ in the mixture over the sensitive values."""

    epsilon: Epsilon

    def _hide(self, policy: HighLow, *mixtures: Mixture) -> None:
        """Set up the part with the sensitive values as protected values; further parts are alternatives to it."""
        flags = policy.is_sensitive
        numbers = np.where(flags, np.cumsum(flags) - 1, OUTSIDE)
        self.epsilon = policy.epsilon
        self._assemble(policy.domain, mixtures, np.zeros(len(flags), dtype=np.int64), numbers)

    @property
    def mixture(self) -> Mixture:
        """The mixture that randomizes the sensitive values, which it numbers in domain order."""
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
        """Return the sensitive values, which a spec states by position, and the other parameters."""
        others = dict(parameters)
        last = len(checked_domain("HighLow", domain)) - 1
        positions = [checked_integer("HighLow", "sensitive", x, 0, last) for x in others.pop("sensitive")]
        return list(domain.decode(positions)), others
