"""Optimal mechanism for two values (Acharya et al. 2020, Thm 2), with Warner's and Mangat's as special cases.

Any convex policy on two values is a cone in the plane with two edges, so one construction covers them all.
``BinaryMechanism`` is the common base class, and ``weights_rounded_to_privacy`` computes the weights from the edges.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato._core import ZERO, Epsilon, EpsilonLike, Terms, quantity, sign_of_sum
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import HighLow, PairwisePolicy, Policy

__all__ = ["BinaryMechanism", "BinaryOptimal", "Edge", "greatest_first_weight", "weights_rounded_to_privacy"]

#: A number in [0, 1] as a ratio of two sums Σ c·e^ε; an empty list of terms is zero.
Edge: TypeAlias = tuple[Terms, Terms]


class BinaryMechanism(TableMechanism):
    """Base class of mechanisms with two values and two reports: a two-by-two table of weights over 2^62."""

    def __init__(self, domain: Domain, weights: Any) -> None:
        super().__init__(domain, weights)
        if self.outputs != 2:
            must, got = "have two rows and two columns", Description(quantity(self.outputs, "column"))
            raise InvalidInput(type(self).__name__, "weights", must, got)

    @classmethod
    def check_two_values(cls, parameter: str, domain: Domain, must: str = "have exactly two values") -> None:
        """Raise InvalidInput for ``parameter`` unless its domain has two values; ``must`` states the requirement."""
        if len(checked_domain(cls.__name__, domain)) != 2:
            raise InvalidInput(cls.__name__, parameter, must, Description(quantity(len(domain), "value")))


class BinaryOptimal(BinaryMechanism):
    """Optimal mechanism for two values, with a separate privacy level for each direction.

    It is optimal because every mechanism with these two levels is this one followed by a random map of its reports. A
    report is one of the two values, as its index 0 or 1.

    Parameters
    ----------
    domain
        The two values.
    epsilon_first
        The level of the first value: every report is at most e^epsilon_first times likelier for the first value than
        for the second.
    epsilon_second
        The level of the second value: every report is at most e^epsilon_second times likelier for the second value
        than for the first.
    weights
        The probabilities of the reports times 2^62, as integers, that a stored spec holds: a row per value. Omit them
        to compute them from the levels.

    Notes
    -----
    With a = e^-epsilon_first and b = e^-epsilon_second, the probabilities of the reports, with a row per value, are::

        Q = 1/(1-ab) · [[1-b, b(1-a)], [a(1-b), 1-a]]

    This is eq. 9 of Acharya et al. (2020, "Context-Aware Local Differential Privacy") as printed at ICML; the preprint
    has it with the levels exchanged. Theorem 2 of the paper proves that it is optimal. Special cases:

    - equal levels: Warner's randomized response;
    - one infinite level: Mangat's method;
    - two infinite levels: the report is the value;
    - a level of zero: both rows are equal, and the report holds no information;
    - both levels zero: the report is a fair coin.

    The probabilities are rounded so that both levels hold exactly.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import BinaryOptimal
    >>> BinaryOptimal(Domain(["no", "yes"]), "ln 3", "ln 3").matrix().tolist()
    [[0.75, 0.25], [0.25, 0.75]]
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
        """Build the optimal mechanism for a policy on the two values of its domain.

        Parameters
        ----------
        policy
            A policy over two values that bounds ratios of pairs of values: :class:`Uniform`, :class:`HighLow`,
            :class:`Blocks`, :class:`Pairwise` or :class:`Metric`.

        Returns
        -------
        BinaryOptimal
            The mechanism, which obeys the policy exactly.

        Raises
        ------
        InvalidInput
            If the policy is a :class:`Prior` or :class:`Secret` policy, or its domain does not have exactly two values.
        """
        if not isinstance(policy, PairwisePolicy):
            hint = "For a Prior policy, use PriorBinary."
            must = "be a Uniform, HighLow, Blocks, Pairwise or Metric policy"
            raise InvalidInput("BinaryOptimal", "policy", must, policy, hint=hint)
        cls.check_two_values("policy", policy.domain, "be over exactly two values")
        return cls(policy.domain, policy.effective_epsilon(0, 1), policy.effective_epsilon(1, 0))

    @classmethod
    def warner(cls, domain: Domain, epsilon: EpsilonLike) -> BinaryOptimal:
        """Build the mechanism of Warner (1965), which protects both values equally.

        Parameters
        ----------
        domain
            The two values.
        epsilon
            The level ε in both directions.

        Returns
        -------
        BinaryOptimal
            The mechanism that reports the true value with probability e^ε/(e^ε+1).
        """
        return cls(domain, epsilon, epsilon)

    @classmethod
    def mangat(cls, domain: Domain, sensitive: object, epsilon: EpsilonLike) -> BinaryOptimal:
        """Build the mechanism of Mangat (1994), which protects one sensitive value.

        The sensitive value is always reported as itself. The harmless value is reported as the sensitive one with
        probability e^-ε. So a person who reports the sensitive value can deny having it.

        Parameters
        ----------
        domain
            The two values.
        sensitive
            The sensitive value, one of the two values of the domain.
        epsilon
            The level ε. A report is at most e^ε times likelier for the sensitive value than for the harmless one.

        Returns
        -------
        BinaryOptimal
            The mechanism.

        Examples
        --------
        >>> from sfumato import Domain
        >>> from sfumato.mechanisms import BinaryOptimal
        >>> BinaryOptimal.mangat(Domain(["no", "yes"]), "yes", "ln 4").matrix().tolist()
        [[0.75, 0.25], [0.0, 1.0]]
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
    """Return e^-ε as an edge."""
    return [] if epsilon.is_infinite else [(Fraction(1), -epsilon)], [(Fraction(1), ZERO)]


def weights_rounded_to_privacy(first: Edge, second: Edge) -> list[list[int]]:
    """Return the integer weights of the optimal mechanism with T₂ ≥ first·T₁ and T₁ ≥ second·T₂ in both columns.

    ``docs/proofs/binary-optimal.md`` has the proof.
    """
    first_weight = greatest_first_weight(first, second)
    if first_weight is None:
        first_weight = second_weight = TOTAL // 2
    else:
        # The least integer that is at least ``first`` times the first weight. Because the first weight was rounded
        # down, no other constraint binds.
        second_weight = bisect_left(
            range(first_weight + 1), True, key=lambda weight: _is_at_least(weight, first_weight, first)
        )
    return [[first_weight, TOTAL - first_weight], [second_weight, TOTAL - second_weight]]


def greatest_first_weight(first: Edge, second: Edge) -> int | None:
    """Return ⌊2^62·(1-b)/(1-ab)⌋ with a = first and b = second, certified, or None if ab = 1."""
    (a, below_a), (b, below_b) = first, second
    # (1-b)/(1-ab) = part/whole, with the denominators of a and b cleared.
    part = _times(below_a, [*below_b, *_negative(b)])
    whole = [*_times(below_a, below_b), *_negative(_times(a, b))]
    if sign_of_sum(whole) == 0:
        return None

    def is_above(weight: int) -> bool:
        return sign_of_sum([*((weight * c, e) for c, e in whole), *((-TOTAL * c, e) for c, e in part)]) > 0

    return bisect_left(range(1, TOTAL + 1), True, key=is_above)


def _is_at_least(weight: int, first_weight: int, edge: Edge) -> bool:
    """Return whether weight ≥ edge·first_weight, certified."""
    top, bottom = edge
    return sign_of_sum([*((weight * c, e) for c, e in bottom), *((-first_weight * c, e) for c, e in top)]) >= 0


def _times(one: Terms, other: Terms) -> Terms:
    """Return the product of two sums."""
    return [(c * d, e + f) for c, e in one for d, f in other]


def _negative(terms: Terms) -> Terms:
    """Return the negative of a sum."""
    return [(-c, e) for c, e in terms]
