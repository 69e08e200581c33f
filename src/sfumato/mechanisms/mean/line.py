"""Metric policies on a line of equally spaced numbers."""

from __future__ import annotations

from sfumato._core import Epsilon
from sfumato.policy import Metric, Policy

__all__ = ["LARGEST_LINE", "step_on_line"]

#: Maximum number of values of a line; bounds the rounding errors of the noise, which grow with the square.
LARGEST_LINE = 2**16


def step_on_line(policy: Policy) -> Epsilon | None:
    """Return the level between neighbours of a metric policy on equally spaced numbers; None for other policies."""
    if not isinstance(policy, Metric) or policy.parameters()["distance"] != "absolute":
        return None
    last = len(policy.domain) - 1
    if not 1 <= last < LARGEST_LINE:
        return None
    spacing = policy.distance(0, 1)
    if any(policy.distance(x, x + 1) != spacing for x in range(last)) or policy.distance(0, last) != last * spacing:
        return None
    return policy.epsilon_between(0, 1)
