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
from sfumato.errors import InvalidInput

__all__ = ["MOST_FILTERED", "Inequality", "Policy", "TightestConstraint"]

#: Distance of a log-ratio from its limit below which it is decided exactly. In floats, sums of a few thousand weights
#: below 2^63 and their logarithms are accurate to about 1e-12.
_FILTER_MARGIN = 1e-8
#: Smallest sum and largest epsilon for which that accuracy holds.
_LEAST_SUM, MOST_FILTERED = 1e-100, 1000


@dataclass(frozen=True)
class Inequality:
    """Inequality ``left·T ≤ e^epsilon·right·T`` on a likelihood vector T.

    Parameters
    ----------
    left
        Coefficients on the left side, by index of the value.
    right
        Coefficients on the right side, by index of the value.
    epsilon
        Exact privacy level of the inequality.
    names
        The two values, secrets or averages that the inequality protects from each other.

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

    The policy requires ``left ≤ e^epsilon·right``.

    Parameters
    ----------
    violated
        Whether the inequality is violated; certified.
    excess
        ``ln(left/right) - epsilon`` as a float, for display.
    left
        Likelihood on the left side, exact.
    right
        Likelihood on the right side, exact.
    epsilon
        Exact privacy level of the inequality.
    names
        The two values, secrets or averages that are compared; None if no inequality applies.

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
        """Decide the inequality ``left ≤ e^epsilon·right`` between two likelihoods.

        Parameters
        ----------
        left
            Likelihood on the left side.
        right
            Likelihood on the right side.
        epsilon
            Exact privacy level.
        names
            The two values, secrets or averages that are compared.

        Returns
        -------
        TightestConstraint
            The inequality with its certified decision.
        """
        return cls(exceeds(left, right, epsilon), excess(left, right, epsilon), left, right, epsilon, names)

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key; every certified violation ranks above every constraint that holds."""
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
    """Rules about which values must be hard to distinguish, and by how much; immutable.

    This is the base class of all policies. Two policies are equal if their documents are.
    """

    kind: ClassVar[str]
    domain: Domain

    @abstractmethod
    def inequalities(self) -> Iterator[Inequality]:
        """Iterate over all inequalities with a finite epsilon.

        Yields
        ------
        Inequality
            One rule of the policy.
        """

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the policy as they appear in its document.

        Returns
        -------
        dict
            Exact, canonical values that JSON can represent.
        """

    @abstractmethod
    def compose(self, other: Policy) -> Policy:
        """Return the policy that two independent releases obey together.

        Parameters
        ----------
        other
            The policy of the other release, over the same domain.

        Returns
        -------
        Policy
            A bound on what an observer of both releases can learn.

        Raises
        ------
        CannotCompose
            If no such policy exists or none is known.
        """

    @abstractmethod
    def restrict(self, values: Sequence[Any]) -> Policy:
        """Return the policy that still holds if only some of the values can occur.

        Parameters
        ----------
        values
            The values that can occur.

        Returns
        -------
        Policy
            A policy over the domain of these values.
        """

    def equations(self) -> list[list[Fraction]]:
        """Return the equations that every mechanism under this policy satisfies.

        They are the rules with ε = 0. Each side of such a rule sums to one over all outputs, so every output satisfies
        it with equality.

        Returns
        -------
        list of list of Fraction
            Rows r with r·T = 0 for the likelihood vector T of every output.
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
        """Return the inequality that a likelihood vector violates most, or comes closest to violating.

        Parameters
        ----------
        likelihoods
            One likelihood per value, as for :meth:`allows`.

        Returns
        -------
        TightestConstraint
            The inequality with an exact decision whether it is violated.
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
        """Return whether a likelihood vector lies in the cone of the policy; the answer is exact.

        Parameters
        ----------
        likelihoods
            One likelihood per value, in domain order or with labels (a mapping, a pandas Series). Ints, Fractions,
            Decimals and strings are exact; a float means its shortest decimal.

        Returns
        -------
        bool
            Whether an output with these likelihoods obeys the policy.

        Raises
        ------
        InvalidInput
            If a likelihood is negative or not a number, or if their number is wrong.

        Examples
        --------
        >>> from sfumato import Domain, Uniform
        >>> policy = Uniform(Domain(["no", "yes"]), "ln 3")
        >>> policy.allows(["1/4", "3/4"]), policy.allows(["1/5", "4/5"])
        (True, False)
        """
        return not self.worst(likelihoods).violated

    def allows_all(self, columns: Sequence[Sequence[int]]) -> bool:
        """Return whether all likelihood vectors lie in the cone of the policy; the answer is exact.

        Parameters
        ----------
        columns
            One vector per output, with integers below 2^63 in domain order.

        Returns
        -------
        bool
            Whether all outputs obey the policy.
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
            raise InvalidInput(type(self).__name__, "likelihoods", must, len(likelihoods))
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
        """Return the policy as a document, the content of its TOML and JSON files.

        Returns
        -------
        dict
            A document that :func:`policy_from_dict` reads.
        """
        return {"domain": self.domain.to_dict(), "policy": {"kind": self.kind, **self.parameters()}}

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON document; equal policies have equal hashes on every machine."""
        return canonical_hash(self.to_dict())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.hash)

    def implies(self, other: Policy) -> bool:
        """Return whether every mechanism that obeys this policy also obeys another; the answer is exact.

        The same as :func:`implies`.

        Parameters
        ----------
        other
            The policy that may follow from this one.

        Returns
        -------
        bool
            Whether the other policy follows.

        Raises
        ------
        Undecided
            If no exact answer is known for policies of these kinds.
        """
        from sfumato.policy.implication import implies

        return implies(self, other)

    def simplify(self) -> Policy:
        """Return the simplest of Uniform, HighLow and Blocks that is equivalent to this policy.

        The same as :func:`structure_of`.

        Returns
        -------
        Policy
            An equivalent policy, or this policy if none of the three is equivalent.
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
