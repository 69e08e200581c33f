"""Base class of policies: a policy is a convex cone of allowed likelihood vectors.

For one output y of a mechanism Q, let T = (Q(y|x))ₓ be its vector of likelihoods. Every policy requires inequalities
``left·T ≤ e^ε·right·T`` with non-negative rational left and right. They are homogeneous and linear, so the allowed T
form a cone. A mechanism obeys the policy if and only if all its likelihood vectors lie in the cone.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import ZERO, Epsilon, canonical_hash, exact_fraction, exceeds, excess, quantity
from sfumato.domain import Domain, align
from sfumato.errors import Description, InvalidInput

__all__ = ["MOST_FILTERED", "Inequality", "Policy", "TightestConstraint"]

#: Distance of a log-ratio from its limit below which it is decided exactly. In floats, sums of a few thousand weights
#: below 2^63 and their logarithms are accurate to about 1e-12.
_FILTER_MARGIN = 1e-8
#: Smallest sum and largest epsilon for which that accuracy holds.
_LEAST_SUM, MOST_FILTERED = 1e-100, 1000


@dataclass(frozen=True)
class Inequality:
    """One rule of a policy: the inequality ``left·T ≤ e^epsilon·right·T``.

    T is the likelihood vector of an output y of a mechanism Q: T[x] = Q(y|x), the probability of y for value x.

    Parameters
    ----------
    left
        Coefficients of the left side: a mapping from the index of a value to its coefficient. Missing indices have
        coefficient 0.
    right
        Coefficients of the right side, in the same form.
    epsilon
        Exact privacy level of the inequality.
    names
        Names of the two sides, for messages: two values, two values of a secret, or a value and the average over the
        prior.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> rule = next(Uniform(Domain(["no", "yes"]), 1).inequalities())
    >>> rule.names, rule.epsilon
    (('no', 'yes'), Epsilon('1'))
    """

    left: Mapping[int, Fraction]
    right: Mapping[int, Fraction]
    epsilon: Epsilon
    names: tuple[object, object]


@dataclass(frozen=True)
class TightestConstraint:
    """The inequality that a likelihood vector violates most, or comes closest to violating.

    The likelihood vector of an output contains the probability of that output for each value. The inequality is ``left
    ≤ e^epsilon·right``. :meth:`Policy.worst` returns objects of this class.

    Parameters
    ----------
    violated
        Whether the inequality is violated. Exact arithmetic decides it, so rounding cannot change the answer.
    excess
        ``ln(left/right) - epsilon`` as a float, for display; positive if the inequality is violated.
    left
        Left side of the inequality, exact: the likelihood of a value, or an average of likelihoods.
    right
        Right side of the inequality, exact.
    epsilon
        Exact privacy level of the inequality.
    names
        Names of the two sides: two values, two values of a secret, or a value and the average over the prior. None if
        no inequality applies to the vector.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> print(Uniform(Domain(["no", "yes"]), "ln 2").worst([1, 3]))
    'yes' against 'no': likelihood ratio e^1.09861 exceeds e^ln 2 (excess 0.405)
    """

    violated: bool
    excess: float
    left: Fraction
    right: Fraction
    epsilon: Epsilon
    names: tuple[object, object] | None

    @classmethod
    def of(cls, left: Fraction, right: Fraction, epsilon: Epsilon, names: tuple[object, object]) -> TightestConstraint:
        """Return the constraint ``left ≤ e^epsilon·right``, and decide exactly whether it is violated.

        Parameters
        ----------
        left
            Left side: the likelihood of a value, or an average of likelihoods.
        right
            Right side, in the same unit as the left side.
        epsilon
            Exact privacy level.
        names
            Names of the two sides, for messages.

        Returns
        -------
        TightestConstraint
            The constraint with ``violated`` and ``excess`` computed from the arguments.
        """
        return cls(exceeds(left, right, epsilon), excess(left, right, epsilon), left, right, epsilon, names)

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key ``(violated, excess)``; the tightest constraint has the greatest key.

        All violated constraints sort after all others. Within each group, constraints are in ascending order of
        ``excess``. The tightest of several constraints is ``max(constraints, key=lambda c: c.rank)``.
        """
        return self.violated, self.excess

    def __str__(self) -> str:
        if self.names is None:
            return "nothing is constrained"
        verb = "exceeds" if self.violated else "is within"
        ratio = "infinite" if self.right == 0 else f"e^{self.excess + float(self.epsilon):.6g}"
        first, second = self.names
        return (
            f"{first!r} against {second!r}: likelihood ratio {ratio} {verb} e^{self.epsilon} (excess {self.excess:.3g})"
        )


class Policy(ABC):
    """Base class of policies: rules about which values must be hard to distinguish, and by how much.

    A policy limits the likelihood vector T of every output y of a mechanism Q. T has one entry per value of the domain,
    in domain order: T[x] = Q(y|x), the probability of y for value x. The set of allowed vectors is the *cone* of the
    policy.

    Policies are immutable. Two policies are equal if they have the same class and the same :meth:`to_dict`.
    """

    kind: ClassVar[str]
    domain: Domain

    @abstractmethod
    def inequalities(self) -> Iterator[Inequality]:
        """Iterate over all rules of the policy that have a finite epsilon.

        Yields
        ------
        Inequality
            One rule, as an inequality on the likelihood vector of an output.

        Raises
        ------
        LimitExceeded
            If the policy has infinitely many rules: a :class:`Secret` policy under :class:`ChiSquare`.
        """

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the policy for :meth:`to_dict`, without its domain and kind.

        Returns
        -------
        dict
            JSON-compatible values by name. Exact numbers are strings such as ``"ln 3"`` and ``"1/3"``; infinity is
            ``"inf"``.
        """

    @abstractmethod
    def compose(self, other: Policy) -> Policy:
        """Return the policy that two releases about the same value obey together.

        Each release is one report, and the two reports are drawn independently of each other.

        Parameters
        ----------
        other
            The policy of the other release, over the same domain.

        Returns
        -------
        Policy
            A policy for the pair of reports. It limits what an observer of both reports can learn.

        Raises
        ------
        CannotCompose
            If no such policy exists, or if no composition rule is known for these two policies.
        """

    @abstractmethod
    def restrict(self, values: Sequence[Any]) -> Policy:
        """Return the policy that a mechanism still obeys if only some of the values can occur.

        Parameters
        ----------
        values
            The labels of the values that can occur.

        Returns
        -------
        Policy
            A policy over the domain of these values, in the order of ``values``. Every mechanism that obeys this policy
            obeys it when it is used only on these values.
        """

    def equations(self) -> list[list[Fraction]]:
        """Return the linear equations that the likelihood vector of every output must satisfy.

        The equations are the rules with ε = 0. Both sides of such a rule sum to one over all outputs, so neither side
        can be smaller than the other: every output satisfies the rule with equality.

        Returns
        -------
        list of list of Fraction
            One row of coefficients per equation, in domain order. A row r means ``r·T = 0`` for the likelihood vector T
            of every output. The list is empty if no rule has ε = 0.
        """
        rules = [rule for rule in self.inequalities() if rule.epsilon == ZERO]
        # Equality is transitive, so the edges of a spanning forest suffice.
        component = {id(side): id(side) for rule in rules for side in (rule.left, rule.right)}

        def root(side: int) -> int:
            while component[side] != side:
                component[side] = side = component[component[side]]
            return side

        rows = []
        for rule in rules:
            left, right = root(id(rule.left)), root(id(rule.right))
            if left != right:
                component[left] = right
                row = [Fraction(0)] * len(self.domain)
                for x, coefficient in rule.left.items():
                    row[x] += coefficient
                for x, coefficient in rule.right.items():
                    row[x] -= coefficient
                rows.append(row)
        return rows

    def worst(self, likelihoods: Sequence[object]) -> TightestConstraint:
        """Return the rule that a likelihood vector violates most, or comes closest to violating.

        Parameters
        ----------
        likelihoods
            Probability of one output for each value, in the same form as for :meth:`allows`.

        Returns
        -------
        TightestConstraint
            The rule with the greatest ``excess``, and an exact decision whether it is violated.
        """
        exact = self._checked(likelihoods)
        tightest = UNCONSTRAINED
        for rule in self.inequalities():
            left = sum((c * exact[x] for x, c in rule.left.items()), Fraction(0))
            right = sum((c * exact[x] for x, c in rule.right.items()), Fraction(0))
            candidate = TightestConstraint.of(left, right, rule.epsilon, rule.names)
            if tightest.names is None or candidate.rank > tightest.rank:
                tightest = candidate
        return tightest

    def allows(self, likelihoods: Sequence[object]) -> bool:
        """Return whether a mechanism may have an output with these likelihoods; the answer is exact.

        Parameters
        ----------
        likelihoods
            Probability of one output for each value, or any positive multiple of these numbers. They are in domain
            order or have labels (a mapping, a pandas Series). Ints, Fractions, Decimals and strings are exact; a float
            means its shortest decimal.

        Returns
        -------
        bool
            Whether the likelihoods satisfy every rule of the policy.

        Raises
        ------
        InvalidInput
            If a likelihood is negative or not a number, or if their number differs from the size of the domain.

        Examples
        --------
        >>> from sfumato import Domain, Uniform
        >>> policy = Uniform(Domain(["no", "yes"]), "ln 3")
        >>> policy.allows(["1/4", "3/4"]), policy.allows(["1/5", "4/5"])
        (True, False)
        """
        return not self.worst(likelihoods).violated

    def allows_all(self, columns: Sequence[Sequence[int]]) -> bool:
        """Return whether a mechanism may have all of these outputs; the answer is exact.

        Parameters
        ----------
        columns
            One likelihood vector per output: its probability for each value, in domain order, times any positive
            number that makes all entries integers from 0 to 2^63 - 1. The rules do not depend on that number.

        Returns
        -------
        bool
            Whether every vector satisfies every rule of the policy.
        """
        return all(self.allows(column) for column in columns)

    def _allows_near(
        self, columns: Sequence[Sequence[int]], excess: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]
    ) -> bool:
        """Return whether all columns are allowed, given how far each exceeds its limit in floats.

        Columns close to the limit, and columns with sums that floats may not represent, are decided exactly.
        """
        excess = np.where((sums < _LEAST_SUM).any(axis=1), 0.0, excess)
        if (excess > _FILTER_MARGIN).any():
            return False
        return all(self.allows(columns[number]) for number in np.flatnonzero(excess >= -_FILTER_MARGIN).tolist())

    def _checked(self, likelihoods: Sequence[object]) -> list[Fraction]:
        """Return likelihoods as exact fractions in domain order."""
        likelihoods = align(self.domain, likelihoods, type(self).__name__, "likelihoods")
        if len(likelihoods) != len(self.domain):
            must = f"have {quantity(len(self.domain), 'entry')}, one per value of the domain"
            raise InvalidInput(
                type(self).__name__, "likelihoods", must, Description(quantity(len(likelihoods), "entry"))
            )
        exact = []
        for x, value in enumerate(likelihoods):
            try:
                exact.append(exact_fraction(value))
            except (TypeError, ValueError, ArithmeticError):
                name = f"the likelihood of {self.domain.label(x)!r}"
                raise InvalidInput(type(self).__name__, name, "be a finite number", value) from None
            if exact[-1] < 0:
                name = f"the likelihood of {self.domain.label(x)!r}"
                raise InvalidInput(type(self).__name__, name, "be at least 0", value)
        return exact

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as a JSON-compatible dict, which is also the content of policy files.

        Returns
        -------
        dict
            A dict with the keys ``"domain"`` (see :meth:`Domain.to_dict`) and ``"policy"`` (kind and parameters).
            :func:`policy_from_dict` builds an equal policy from it.
        """
        return {"domain": self.domain.to_dict(), "policy": {"kind": self.kind, **self.parameters()}}

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON form of :meth:`to_dict`, in hexadecimal; the same on every machine."""
        return canonical_hash(self.to_dict())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.hash)

    def implies(self, other: Policy) -> bool:
        """Return whether every mechanism that obeys this policy also obeys another; the answer is exact.

        ``first.implies(second)`` is the same as ``sfumato.implies(first, second)``.

        Parameters
        ----------
        other
            The policy that may follow from this one, over the same domain.

        Returns
        -------
        bool
            Whether the other policy follows from this one.

        Raises
        ------
        InvalidInput
            If the domains differ.
        Undecided
            If no exact method is known for policies of these kinds.
        LimitExceeded
            If the comparison needs a dense matrix over more than 4096 values.
        """
        from sfumato.policy.implication import implies

        return implies(self, other)

    def simplify(self) -> Policy:
        """Return the simplest equivalent policy: Uniform, HighLow or Blocks, if one of them is equivalent.

        ``policy.simplify()`` is the same as ``sfumato.structure_of(policy)``. Equivalent policies allow the same
        mechanisms.

        Returns
        -------
        Policy
            The equivalent policy, or this policy if none of the three is equivalent or the domain is too large to
            decide.
        """
        from sfumato.policy.structure import structure_of

        return structure_of(self)

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({self.domain!r}, {parameters})"


#: Result for a likelihood vector to which no inequality applies.
UNCONSTRAINED = TightestConstraint(False, -math.inf, Fraction(0), Fraction(0), Epsilon("inf"), None)


def _short(value: object) -> str:
    """Return the ``repr`` of a value, cut to 60 characters."""
    representation = repr(value)
    return representation if len(representation) <= 60 else representation[:57] + "..."
