"""What a search for the best mechanism found, and how far from the best it can be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from sfumato.compiler.solvers.goals import Goal
from sfumato.mechanisms import TableMechanism

__all__ = ["Optimum"]


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best mechanism found for a policy and a utility at the distribution ``p``.

    ``value`` is that of the exact mechanism: n times the expected squared error of all frequencies, information in
    nats, a mean squared error or an expected loss, at ``p`` itself also where some of its shares are zero. No mechanism
    that obeys the policy is better than ``bound``; for estimation this says: none that asks everybody the same question
    has an estimator, regular and unbiased in the limit, with less error asymptotically. ``status``: "optimal" where the
    bound accounts for every ray and is within 1e-4 of the value, "gap" where rays were bounded by a relaxation only, or
    where doubles or the rounding to an exact table lost more than that, "time" where the search was cut short. ``goal``
    is the utility, and ``seconds`` how long the search took.
    """

    mechanism: TableMechanism
    goal: Goal
    p: npt.NDArray[np.float64]
    value: float
    bound: float
    status: Literal["optimal", "gap", "time"]
    seconds: float

    @property
    def gap(self) -> float:
        """How much better than this a mechanism may be, relative to the larger of value and bound."""
        scale = max(abs(self.value), abs(self.bound))
        if scale == math.inf:  # nothing was proved, unless no mechanism can do it at all
            return 0.0 if self.value == self.bound else 1.0
        return abs(self.value - self.bound) / scale if scale > 0 else 0.0

    def __str__(self) -> str:
        least = "at least" if self.goal.small_is_good else "at most"
        reached = f"{self.goal.name} {self.value:.6g}, {least} {self.bound:.6g} for any mechanism (gap {self.gap:.2%})"
        if math.isinf(self.value):
            reached = "no mechanism that obeys the policy tells all values apart, so no number of people suffices"
        return f"{reached}; {self.mechanism.outputs} outputs; {self.status} after {self.seconds:.1f} s"
