"""The best mechanism for two values (Acharya et al. 2020, Thm 2), Warner's and Mangat's among its special cases.

Any convex policy on two values is a cone in the plane with two edges, so one construction serves them all:
``BinaryMechanism`` is what they share, and ``weights_rounded_to_privacy`` makes the weights from the edges.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato._core import ZERO, Epsilon, EpsilonLike, Terms, sign_of_sum
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import HighLow, PairwisePolicy, Policy

__all__ = ["BinaryMechanism", "BinaryOptimal", "Edge", "greatest_first_weight", "weights_rounded_to_privacy"]

#: A number in [0, 1] as a ratio of two sums Σ c·e^ε. No terms are zero.
Edge: TypeAlias = tuple[Terms, Terms]


class BinaryMechanism(TableMechanism):
    """Two values and two reports: a table of two by two weights over 2^62."""

    def __init__(self, domain: Domain, weights: Any) -> None:
        super().__init__(domain, weights)
        if self.outputs != 2:
            raise InvalidInput(type(self).__name__, "weights", "be two by two", f"{self.outputs} outputs")

    @classmethod
    def check_two_values(cls, parameter: str, domain: Domain, must: str = "have exactly two values") -> None:
        """Refuse ``parameter`` unless its domain has two values; ``must`` is what the refusal asks for."""
        if len(checked_domain(cls.__name__, domain)) != 2:
            raise InvalidInput(cls.__name__, parameter, must, len(domain))


class BinaryOptimal(BinaryMechanism):
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
        self.check_two_values("domain", domain)
        self.epsilon_first = Epsilon(epsilon_first, subject="BinaryOptimal", parameter="epsilon_first")
        self.epsilon_second = Epsilon(epsilon_second, subject="BinaryOptimal", parameter="epsilon_second")
        if weights is None:
            weights = weights_rounded_to_privacy(_edge(self.epsilon_first), _edge(self.epsilon_second))
        super().__init__(domain, weights)

    @classmethod
    def for_policy(cls, policy: Policy) -> BinaryOptimal:
        """The best mechanism for any policy that binds the two values of its domain."""
        if not isinstance(policy, PairwisePolicy):
            raise InvalidInput("BinaryOptimal", "policy", "bind pairs of values", policy.kind)
        cls.check_two_values("policy", policy.domain, "be over exactly two values")
        return cls(policy.domain, policy.effective_epsilon(0, 1), policy.effective_epsilon(1, 0))

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
        epsilons = table.pop("epsilon_first"), table.pop("epsilon_second")
        return cls(domain, *epsilons, weights=TableMechanism.from_parameters(domain, table).weights)


def _edge(epsilon: Epsilon) -> Edge:
    """e^-ε."""
    return [] if epsilon.is_infinite else [(Fraction(1), -epsilon)], [(Fraction(1), ZERO)]


def weights_rounded_to_privacy(first: Edge, second: Edge) -> list[list[int]]:
    """Integer weights of the best mechanism that keeps T₂ ≥ first·T₁ and T₁ ≥ second·T₂ in both columns.

    ``docs/proofs/binary-optimal.md`` has the argument.
    """
    first_weight = greatest_first_weight(first, second)
    if first_weight is None:
        first_weight = second_weight = TOTAL // 2
    else:
        # The least integer that is at least ``first`` times it: the first one rounded down leaves only this to bind.
        second_weight = bisect_left(
            range(first_weight + 1), True, key=lambda weight: _is_at_least(weight, first_weight, first)
        )
    return [[first_weight, TOTAL - first_weight], [second_weight, TOTAL - second_weight]]


def greatest_first_weight(first: Edge, second: Edge) -> int | None:
    """⌊2^62·(1-b)/(1-ab)⌋ with a = first and b = second: certified. None where ab = 1."""
    (a, below_a), (b, below_b) = first, second
    # (1-b)/(1-ab), with both fractions cleared.
    part = _times(below_a, [*below_b, *_negative(b)])
    whole = [*_times(below_a, below_b), *_negative(_times(a, b))]
    if sign_of_sum(whole) == 0:
        return None

    def is_above(weight: int) -> bool:
        return sign_of_sum([*((weight * c, e) for c, e in whole), *((-TOTAL * c, e) for c, e in part)]) > 0

    return bisect_left(range(1, TOTAL + 1), True, key=is_above)


def _is_at_least(weight: int, first_weight: int, edge: Edge) -> bool:
    top, bottom = edge
    return sign_of_sum([*((weight * c, e) for c, e in bottom), *((-first_weight * c, e) for c, e in top)]) >= 0


def _times(one: Terms, other: Terms) -> Terms:
    return [(c * d, e + f) for c, e in one for d, f in other]


def _negative(terms: Terms) -> Terms:
    return [(-c, e) for c, e in terms]
