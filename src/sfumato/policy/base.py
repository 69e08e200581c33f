"""What every policy is: a convex cone of allowed likelihood vectors.

Fix one output y of a mechanism Q and look at the column T = (Q(y|x))ₓ. Every policy here asks finitely many
inequalities ``left·T ≤ e^ε·right·T`` of it, with non-negative rational left and right. They are homogeneous
and linear, so the allowed T form a cone, and a mechanism obeys the policy iff each of its columns lies in it.
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

from sfumato._core import ZERO, Epsilon, canonical_hash, exact_fraction, exceeds, excess
from sfumato.domain import Domain, align
from sfumato.errors import InvalidInput

__all__ = ["MOST_FILTERED", "Inequality", "Policy", "TightestConstraint"]

#: Logarithms of ratios that are this close to a limit are decided exactly. Sums of a few thousand weights below 2^63,
#: and their logarithms, are good to about 1e-12 in doubles…
_FILTER_MARGIN = 1e-8
#: …where they are at least this, and limits are at most this.
_LEAST_SUM, MOST_FILTERED = 1e-100, 1000


@dataclass(frozen=True)
class Inequality:
    """``left·T ≤ e^epsilon·right·T``; left and right map the index of a value to its coefficient.

    ``names`` are the two values, secrets or averages that it keeps apart.
    """

    left: Mapping[int, Fraction]
    right: Mapping[int, Fraction]
    epsilon: Epsilon
    names: tuple[object, object]


@dataclass(frozen=True)
class TightestConstraint:
    """The inequality that a likelihood vector comes closest to breaking, or breaks the most.

    ``left ≤ e^epsilon·right`` is what the policy asks; ``excess = ln(left/right) - epsilon``. ``violated``
    is certified; ``excess`` is a double for people to read. Where nothing binds, ``names`` is None.
    """

    violated: bool
    excess: float
    left: Fraction
    right: Fraction
    epsilon: Epsilon
    names: tuple[object, object] | None

    @classmethod
    def of(cls, left: Fraction, right: Fraction, epsilon: Epsilon, names: tuple[object, object]) -> TightestConstraint:
        """The inequality ``left ≤ e^epsilon·right`` between two likelihoods, decided."""
        return cls(exceeds(left, right, epsilon), excess(left, right, epsilon), left, right, epsilon, names)

    @property
    def rank(self) -> tuple[bool, float]:
        """Sort key: a certified violation outranks every double."""
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
    """A set of rules about which values must be hard to tell apart, and by how much. Immutable."""

    kind: ClassVar[str]
    domain: Domain

    @abstractmethod
    def inequalities(self) -> Iterator[Inequality]:
        """Every finite inequality, for solvers."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The policy's own part of its document: JSON-able, exact, canonical."""

    @abstractmethod
    def compose(self, other: Policy) -> Policy:
        """What an observer of two independent releases, one under each policy, is held to.

        Raises CannotCompose where no such policy exists or is known.
        """

    @abstractmethod
    def restrict(self, values: Sequence[Any]) -> Policy:
        """What is still promised when only these values can occur."""

    def equations(self) -> list[list[Fraction]]:
        """Return rows r with r·T = 0 for every column T of every mechanism that obeys the policy.

        They are the rules at ε = 0. Each side of a rule sums to one over all columns, so no column can leave a slack.
        """
        rules = [rule for rule in self.inequalities() if rule.epsilon == ZERO]
        # Sides that are equal to the same side are equal: the edges of a spanning forest suffice.
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
        """The inequality that these likelihoods come closest to breaking. Exact."""
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
        """Whether this likelihood vector lies in the policy's cone. Exact.

        Ints, Fractions, Decimals and strings are taken as they are, floats as their shortest decimal. Likelihoods are
        in domain order, or have labels (a mapping, a pandas Series) and are aligned by them.
        """
        return not self.worst(likelihoods).violated

    def allows_all(self, columns: Sequence[Sequence[int]]) -> bool:
        """Whether all of these likelihood vectors, in integers below 2^63, lie in the policy's cone. Exact."""
        return all(self.allows(column) for column in columns)

    def _allows_near(
        self, columns: Sequence[Sequence[int]], excess: npt.NDArray[np.float64], sums: npt.NDArray[np.float64]
    ) -> bool:
        """Return whether all columns are allowed, by how far the logarithm of a ratio exceeds a limit in doubles.

        Decided exactly are columns that come close to it, and those with sums that doubles may not hold.
        """
        excess = np.where((sums < _LEAST_SUM).any(axis=1), 0.0, excess)
        if (excess > _FILTER_MARGIN).any():
            return False
        return all(self.allows(columns[number]) for number in np.flatnonzero(excess >= -_FILTER_MARGIN).tolist())

    def _checked(self, likelihoods: Sequence[object]) -> list[Fraction]:
        likelihoods = align(self.domain, likelihoods, type(self).__name__, "likelihoods")
        if len(likelihoods) != len(self.domain):
            raise InvalidInput(type(self).__name__, "likelihoods", f"have {len(self.domain)} entries", len(likelihoods))
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
        """The policy as a document: what its TOML and JSON files hold."""
        return {"domain": self.domain.to_dict(), "policy": {"kind": self.kind, **self.parameters()}}

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON document: the same policy has the same hash everywhere."""
        return canonical_hash(self.to_dict())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Policy):
            return NotImplemented
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.hash)

    def implies(self, other: Policy) -> bool:
        """Return whether every mechanism that obeys this policy obeys the other one. Exact.

        The same as :func:`implies`.

        Raises
        ------
        Undecided
            If no exact answer is known for policies of these kinds.
        """
        from sfumato.policy.implication import implies

        return implies(self, other)

    def simplify(self) -> Policy:
        """Return the simplest of Uniform, HighLow and Blocks that promises exactly the same, else this policy.

        The same as :func:`structure_of`.
        """
        from sfumato.policy.structure import structure_of

        return structure_of(self)

    def __repr__(self) -> str:
        stated = ", ".join(f"{name}={_short(value)}" for name, value in self.parameters().items())
        return f"{type(self).__name__}({self.domain!r}, {stated})"


UNCONSTRAINED = TightestConstraint(False, -math.inf, Fraction(0), Fraction(0), Epsilon("inf"), None)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
