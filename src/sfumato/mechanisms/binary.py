"""The best mechanism for two values (Acharya et al. 2020, Thm 2), Warner's and Mangat's among its special cases."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from typing import Any

from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.exact import ZERO, Epsilon, EpsilonLike, exceeds, sign_of_sum
from sfumato.mechanisms.alias import TOTAL
from sfumato.mechanisms.table import TableMechanism
from sfumato.policy.base import Policy
from sfumato.policy.high_low import HighLow
from sfumato.policy.pairwise import PairwisePolicy

__all__ = ["BinaryOptimal"]


class BinaryOptimal(TableMechanism):
    """The most that can be told about one of two values, with a level of its own for each direction.

    ``epsilon_first`` bounds how much likelier the first value may make an output than the second does,
    ``epsilon_second`` the converse. With a = e^-epsilon_first and b = e^-epsilon_second, a row per value::

        Q = 1/(1-ab) · [[1-b, b(1-a)], [a(1-b), 1-a]]

    This is eq. 9 of Acharya et al. 2020 as printed at ICML; the preprint has it with the levels exchanged. Equal
    levels give Warner's randomized response, an infinite one Mangat's, two infinite ones the value itself. A level
    of zero makes the rows equal: nothing is told. If both are zero the report is a fair coin.

    The weights over 2^62 are rounded so that both levels are kept exactly.
    """

    name = "binary-optimal"

    def __init__(
        self, domain: Domain, epsilon_first: EpsilonLike, epsilon_second: EpsilonLike, *, weights: Any = None
    ) -> None:
        if len(domain) != 2:
            raise InvalidInput("BinaryOptimal", "domain", "have exactly two values", len(domain))
        self.epsilon_first = Epsilon(epsilon_first, what="BinaryOptimal", parameter="epsilon_first")
        self.epsilon_second = Epsilon(epsilon_second, what="BinaryOptimal", parameter="epsilon_second")
        if weights is None:
            weights = _weights_rounded_to_privacy(self.epsilon_first, self.epsilon_second)
        super().__init__(domain, weights)
        if self.outputs != 2:
            raise InvalidInput("BinaryOptimal", "weights", "be two by two", f"{self.outputs} outputs")

    @classmethod
    def for_policy(cls, policy: Policy) -> BinaryOptimal:
        """The best mechanism for any policy that binds the two values of its domain."""
        if not isinstance(policy, PairwisePolicy):
            raise InvalidInput("BinaryOptimal", "policy", "bind pairs of values", policy.kind)
        if len(policy.domain) != 2:
            raise InvalidInput("BinaryOptimal", "policy", "be over exactly two values", len(policy.domain))
        return cls(policy.domain, policy.effective(0, 1), policy.effective(1, 0))

    @classmethod
    def warner(cls, domain: Domain, epsilon: EpsilonLike) -> BinaryOptimal:
        """Warner 1965: both values are protected alike; the true one is reported with probability e^ε/(e^ε+1)."""
        return cls(domain, epsilon, epsilon)

    @classmethod
    def mangat(cls, domain: Domain, sensitive: object, epsilon: EpsilonLike) -> BinaryOptimal:
        """Mangat 1994: the sensitive value is always reported, and so, with probability e^-ε, is the harmless one.

        Whoever reports the sensitive value can thus deny it.
        """
        return cls.for_policy(HighLow(domain, [sensitive], epsilon))

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon_first": str(self.epsilon_first),
            "epsilon_second": str(self.epsilon_second),
            **super().parameters(),
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> BinaryOptimal:
        table = dict(parameters)
        levels = table.pop("epsilon_first"), table.pop("epsilon_second")
        return cls(domain, *levels, weights=TableMechanism.from_parameters(domain, table).weights)


def _weights_rounded_to_privacy(first: Epsilon, second: Epsilon) -> list[list[int]]:
    """Integer weights of Q that keep both levels; ``docs/proofs/binary-optimal.md`` has the argument."""
    if first == second == ZERO:
        told = denied = TOTAL // 2
    else:
        # The greatest integer not above 2^62·Q(0|0), then the least that is at least e^-ε times it: rounding Q(0|0)
        # down leaves only the first level to bind.
        told = bisect_left(range(1, TOTAL + 1), True, key=lambda weight: _is_above(weight, first, second))
        denied = bisect_left(range(told + 1), True, key=lambda weight: not exceeds(told, weight, first))
    return [[told, TOTAL - told], [denied, TOTAL - denied]]


def _is_above(weight: int, first: Epsilon, second: Epsilon) -> bool:
    """Whether weight > 2^62·(1-b)/(1-ab), for ab < 1: certified."""
    terms: list[tuple[Fraction | int, Epsilon]] = [(TOTAL - weight, ZERO)]
    if not second.is_infinite:
        terms.append((-TOTAL, -second))
        if not first.is_infinite:
            terms.append((weight, -(first + second)))
    return sign_of_sum(terms) < 0
