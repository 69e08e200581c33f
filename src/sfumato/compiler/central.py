"""Plans for reports that arrive without identity and order: central levels of mechanisms, and a target for them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from sfumato._core import Epsilon, EpsilonLike
from sfumato.auditing import checked_delta, is_certified, upper_level
from sfumato.compiler.plans import Plan, Row
from sfumato.compiler.requests import Request
from sfumato.errors import Description, InvalidInput, LimitExceeded, NoMechanism, SfumatoError
from sfumato.mechanisms import Mechanism
from sfumato.policy import Policy, policy_from_dict

__all__ = ["CentralTarget", "with_central_levels"]

#: Number of bisections of the local level; the last interval is 0.1% of the level of the policy.
_BISECTIONS = 10


class CentralTarget:
    """A central level ε at δ that n shuffled reports must not exceed."""

    def __init__(self, verb: str, central: EpsilonLike, delta: Any, n: int | None) -> None:
        if delta is None or n is None:
            missing = "delta" if delta is None else "n"
            raise InvalidInput(verb, missing, "be passed together with central", None)
        self.verb, self.n = verb, n
        self.central = Epsilon(central, subject=verb, parameter="central")
        self.delta = checked_delta(verb, delta)

    def rows(self, plan: Plan, request: Request, row_for: Any) -> tuple[Row, ...]:
        """Return the mechanisms of a plan, each at the greatest local level that meets the target, the best first.

        ``row_for(request)`` measures the mechanism that a request names.
        """
        rows = []
        for row in plan.rows:
            if row.name == "optimal":
                continue  # a search for every level would take long
            at_target = self._at_target(row, request, row_for)
            if at_target is not None:
                rows.append(at_target)
        if not rows:
            raise NoMechanism(
                f"no mechanism that was compared has a central level of at most {self.central} at δ = "
                f"{float(self.delta):g} with n = {self.n}. Raise central, delta or n."
            )
        return tuple(sorted(rows, key=lambda row: row.risk if row.value is None else row.value))

    def _at_target(self, row: Row, request: Request, row_for: Any) -> Row | None:
        """Return a mechanism at the greatest level found that meets the target; None if no level does."""
        best = row if self._is_met(row.mechanism, request.policy) else None
        policy = request.policy
        low, high = Fraction(0), Fraction(1)
        for _ in range(_BISECTIONS if best is None else 0):
            middle = (low + high) / 2
            smaller = _scaled(self.verb, request.policy, middle)
            try:
                candidate = row_for(replace(request, policy=smaller, mechanism=row.name))
            except SfumatoError:  # some mechanisms do not exist at every level
                high = middle
                continue
            if self._is_met(candidate.mechanism, smaller):
                low, best, policy = middle, candidate, smaller
            else:
                high = middle
        return None if best is None else replace(best, central=self._level(best.mechanism, policy))

    def _is_met(self, mechanism: Mechanism, policy: Policy) -> bool:
        """Return whether the target is certified; False if it cannot be computed."""
        try:
            return is_certified(mechanism, policy, self.n, self.delta, self.central)
        except LimitExceeded:
            return False

    def _level(self, mechanism: Mechanism, policy: Policy) -> float:
        """Return the certified central level, which is at most the target."""
        return min(upper_level(mechanism, policy, self.n, self.delta), self.central).upper_float()


def with_central_levels(plan: Plan, delta: Fraction) -> Plan:
    """Return a plan whose rows state their central level at δ; None where it cannot be computed."""
    rows = []
    for row in plan.rows:
        try:
            central: float | None = upper_level(row.mechanism, plan.policy, plan.n, delta).upper_float()
        except LimitExceeded:
            central = None
        rows.append(replace(row, central=central))
    return replace(plan, rows=tuple(rows))


def _scaled(verb: str, policy: Policy, factor: Fraction) -> Policy:
    """Return the same kind of policy with its level multiplied by a factor."""
    document = policy.to_dict()
    rules = document["policy"]
    if "epsilon" not in rules or isinstance(rules["epsilon"], (list, dict)):
        hint = "Use a Uniform, HighLow, Blocks, Metric or Graph policy, or bisect its levels with amplify."
        got = Description(f"a {policy.kind} policy")
        raise InvalidInput(verb, "policy", "have one level epsilon if central is passed", got, hint=hint)
    scaled = Epsilon(rules["epsilon"]) * factor
    return policy_from_dict({**document, "policy": {**rules, "epsilon": str(scaled)}})
