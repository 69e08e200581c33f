"""A secret attribute S beside a harmless one U: hide S, under what is known of how U depends on it.

Lopuhaä-Zwakenberg, Goseling: The Privacy-Utility Tradeoff of Robust Local Differential Privacy (RLDP).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.domain import Domain
from sfumato.errors import CannotCompose, InvalidInput
from sfumato.exact import INFINITE, ZERO, Epsilon, EpsilonLike
from sfumato.policy.base import Inequality, Policy, Worst, read_list
from sfumato.policy.blocks import Blocks
from sfumato.policy.prior import read_distribution

__all__ = ["Anything", "Distributions", "Known", "Secret"]


class Distributions(ABC):
    """What is known of the joint distribution of (S, U): the set of distributions to protect under."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The set as part of a policy document."""

    @abstractmethod
    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:
        """The extreme laws of U given S = s; the rule must hold for each, hence for their mixtures."""

    def check(self, shape: tuple[int, int], secrets: Sequence[object], others: Sequence[object]) -> Distributions:  # noqa: ARG002
        """This set, fitted to |S| by |U| cells, or an error that names the cell."""
        return self


class Known(Distributions):
    """The joint distribution is known: one row per value of S, one column per value of U."""

    def __init__(self, joint: Any) -> None:
        self._given = joint
        self.joint: tuple[tuple[Fraction, ...], ...] = ()

    def check(self, shape: tuple[int, int], secrets: Sequence[object], others: Sequence[object]) -> Distributions:
        must = f"be {shape[0]} rows of {shape[1]} probabilities"
        rows = [read_list("Known", "joint", must, row) for row in read_list("Known", "joint", must, self._given)]
        if len(rows) != shape[0]:
            raise InvalidInput("Known", "joint", must, f"{len(rows)} rows")
        for number, row in enumerate(rows):
            if len(row) != shape[1]:
                raise InvalidInput("Known", "joint", must, f"{len(row)} in row {number}")
        names = [f"({s!r}, {u!r})" for s in secrets for u in others]
        flat = read_distribution("Known", "the probability", [p for row in rows for p in row], names)
        fitted = Known(self._given)
        fitted.joint = tuple(flat[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0]))
        return fitted

    def document(self) -> dict[str, Any]:
        return {"known": [[str(p) for p in row] for row in self.joint]}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:
        total = sum(self.joint[s], Fraction(0))
        if total == 0:
            # Nothing is known of U for a secret that never occurs: protect it under any law.
            return Anything().conditionals(s, shape)
        return [tuple(p / total for p in self.joint[s])]


class Anything(Distributions):
    """Nothing is known: every joint distribution is possible."""

    def document(self) -> dict[str, Any]:
        return {"anything": True}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        size = shape[1]
        return [tuple(Fraction(int(u == only)) for u in range(size)) for only in range(size)]


def _without(label: Any, axis: int) -> object:
    """What stands beside the secret in a member of the product."""
    rest = label[:axis] + label[axis + 1 :]
    return rest[0] if len(rest) == 1 else rest


class Secret(Policy):
    """``P(U|s)·T_s ≤ e^ε·P(U|s')·T_s'`` for all secrets s ≠ s' and every distribution P in a given set.

    ``domain`` is a product; ``secret`` names its secret factor. Two releases under Known do **not** compose
    (U, then S xor U: each at ε = 0, together they reveal S); under Anything they add.
    """

    kind = "secret"

    def __init__(self, domain: Domain, secret: str, epsilon: EpsilonLike, distributions: Distributions) -> None:
        factors = domain.factors
        if secret not in list(factors):
            names = f"one of {', '.join(factors)}" if factors else "a factor of a Domain.product"
            raise InvalidInput("Secret", "secret", f"name {names}", secret)
        if len(factors[secret]) < 2:
            raise InvalidInput("Secret", "secret", "have at least two values", list(factors[secret]))
        if not isinstance(distributions, Distributions):
            raise InvalidInput("Secret", "distributions", "be Known(...) or Anything()", distributions)
        self.domain = domain
        self.secret = secret
        self.epsilon = Epsilon(epsilon, what="Secret")
        # cells[s, u] is the index in the domain of secret s beside harmless value u.
        axis = list(factors).index(secret)
        grid = np.arange(len(domain)).reshape([len(factor) for factor in factors.values()])
        self.cells = np.moveaxis(grid, axis, 0).reshape(len(factors[secret]), -1)
        self._secrets = list(factors[secret])
        others = [_without(domain.label(int(i)), axis) for i in self.cells[0]]
        self.distributions = distributions.check((self.cells.shape[0], self.cells.shape[1]), self._secrets, others)

    @property
    def as_pairwise(self) -> Blocks | None:
        """The same cone as rules on pairs, where it is one: under Anything (RLDP Prop. 4)."""
        if not isinstance(self.distributions, Anything):
            return None
        secret_of = np.empty(len(self.domain), dtype=np.int64)
        for s, cells in enumerate(self.cells):
            secret_of[cells] = s
        return Blocks(self.domain, secret_of, INFINITE, across=self.epsilon)

    def inequalities(self) -> Iterator[Inequality]:
        if self.epsilon.is_infinite:
            return
        shape = (self.cells.shape[0], self.cells.shape[1])
        laws = [
            [
                {int(i): p for i, p in zip(cells, law, strict=True) if p}
                for law in self.distributions.conditionals(s, shape)
            ]
            for s, cells in enumerate(self.cells)
        ]
        for s, mine in enumerate(laws):
            for other, theirs in enumerate(laws):
                if s == other:
                    continue
                for left in mine:
                    for right in theirs:
                        yield Inequality(left, right, self.epsilon, (self._secrets[s], self._secrets[other]))

    def worst(self, likelihoods: Sequence[object]) -> Worst:
        pairwise = self.as_pairwise
        return super().worst(likelihoods) if pairwise is None else pairwise.worst(likelihoods)

    def parameters(self) -> dict[str, Any]:
        return {
            "secret": self.secret,
            "epsilon": str(self.epsilon),
            "distributions": self.distributions.document(),
        }

    def posterior_odds_bound(self, secret: object, other: object, prior_odds: Fraction | int = 1) -> float:
        """The most that the odds between two values of the secret can be after a report."""
        for value in (secret, other):
            self.domain.factors[self.secret].index(value)
        return float(prior_odds) * (ZERO if secret == other else self.epsilon).exp() if prior_odds else 0.0

    def compose(self, other: Policy) -> Policy:
        mine = self.as_pairwise
        theirs = other.as_pairwise if isinstance(other, Secret) else other
        if mine is None or theirs is None:
            raise CannotCompose(
                "secrets protected under a known or estimated distribution do not compose: two releases at "
                "epsilon 0 can together reveal the secret; use Anything(), under which levels add"
            )
        if isinstance(other, Secret) and other.domain == self.domain and other.secret == self.secret:
            return Secret(self.domain, self.secret, (self.epsilon + other.epsilon).as_promise(), Anything())
        return mine.compose(theirs)

    def restrict(self, values: Sequence[Any]) -> Policy:
        pairwise = self.as_pairwise
        if pairwise is None:
            raise CannotCompose("restricting the values changes the known distribution; state a new policy instead")
        return pairwise.restrict(values)
