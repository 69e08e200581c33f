"""The verb ``design``: the best mechanism for a policy."""

from __future__ import annotations

from sfumato._plan import checked_bits, most_outputs, plan
from sfumato.candidates import candidates
from sfumato.errors import CannotDecide, InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.mechanisms.base import Frequencies, checked_count, checked_kind
from sfumato.optimize import ExpectedLoss, Goal, goal_of, optimal
from sfumato.optimize.weighted import Progress
from sfumato.policy import Policy

__all__ = ["design", "designed"]


def design(
    policy: Policy,
    n: int | None = None,
    *,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    p: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: Progress | None = None,
) -> Mechanism:
    """The mechanism that ``plan`` recommends, or the one asked for by its short name.

    Candidates are the mechanisms made for the structure of the policy, classical ones at the greatest ε that implies
    it, and the optimal design (``mechanism="optimal"`` asks for it whatever the policy). For a ``utility`` other than
    "estimation" ("worst-estimation", "mutual-information", "mmse", ``SquaredError`` or ``ExpectedLoss``) the best of
    the same at p. ``progress`` is told the value and the bound of the search, again and again.
    """
    return designed(policy, n, mechanism, utility, p, max_bits, max_seconds, progress)[0]


def designed(
    policy: Policy,
    n: int | None = None,
    mechanism: str | None = None,
    utility: str | Goal = "estimation",
    p: Frequencies | None = None,
    max_bits: int | None = None,
    max_seconds: float | None = None,
    progress: Progress | None = None,
) -> tuple[Mechanism, str]:
    """The mechanism, and in a sentence why this one."""
    checked_kind("design", "the policy", policy, Policy)
    n = 1 if n is None else checked_count("design", n)
    max_bits = checked_bits("design", max_bits)
    if len(policy.domain) < 2:
        raise InvalidInput("design", "the domain", "have at least two values", policy.domain)
    goal = goal_of(utility, policy.domain)
    suitable = candidates(policy, max_bits, goal.name)
    if mechanism is not None and mechanism != "optimal":
        if mechanism not in suitable:
            must = f"be one of optimal, {', '.join(suitable)} for this policy"
            raise InvalidInput("design", "mechanism", must, mechanism)
        return suitable[mechanism].build(), f"{mechanism}, as asked"
    if goal.name == "estimation" and mechanism is None:
        found = plan(policy, n, p=p, max_bits=max_bits, max_seconds=max_seconds, progress=progress)
        return found.best.mechanism, found.why()
    outputs = most_outputs(max_bits)
    optimum = optimal(policy, goal, p=p, max_seconds=max_seconds, max_outputs=outputs, progress=progress)
    best: tuple[Mechanism, str] = optimum.mechanism, f"optimal: {optimum}"
    if mechanism == "optimal" or isinstance(goal, ExpectedLoss):
        return best
    value = optimum.value
    for name, candidate in suitable.items():
        if not candidate.compared:
            continue
        try:
            other = candidate.build()
            reached = goal.value_of(other, optimum.p)
        except CannotDecide:  # too many outputs to write down, or too many bits
            continue
        if (reached < value if goal.small_is_good else reached > value) and (not max_bits or other.bits <= max_bits):
            value, best = reached, (other, f"{name}: {goal.name} {reached:.6g}, any mechanism {optimum.bound:.6g}")
    return best
