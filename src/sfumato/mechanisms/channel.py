"""Exact channels of small mechanisms, with the operations on them: processing, composition, inference.

The three properties of context-aware LDP (Acharya et al. 2020, Props. 1-3) are operations here, so that they can be
computed and checked: ``then`` keeps every policy, ``and_then`` adds two policies up, and ``posterior`` moves the odds
of two values by no more than the policy allows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato._core import count_text, dot, exact_fraction, information
from sfumato.domain import Domain, align, align_table, checked_domain, unaligned_table
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.policy import UNCONSTRAINED, Policy, TightestConstraint

__all__ = ["Channel", "check_channel_size"]

#: Maximum number of entries of a channel; each is a Fraction.
_LARGEST_CHANNEL = 10**6


@dataclass(frozen=True, init=False)
class Channel:
    """``rows[x][y]``: the exact probability of the y-th of ``outputs`` given the value with index x.

    Numbers are read as a person means them (a float is its shortest decimal), and each row must sum to exactly one.
    Rows are in domain order, or have labels (a DataFrame, a mapping from values to rows) and are aligned by them.
    """

    domain: Domain
    outputs: tuple[Any, ...]
    rows: tuple[tuple[Fraction, ...], ...]

    def __init__(
        self, domain: Domain, rows: Sequence[Sequence[Any]], outputs: Sequence[Hashable] | None = None
    ) -> None:
        checked_domain("Channel", domain)
        exact = _stochastic(
            "Channel", align_table(domain, None, rows, "Channel", "rows"), [repr(label) for label in domain]
        )
        width = len(exact[0])
        names = tuple(range(width) if outputs is None else outputs)
        if len(names) != width or len(set(names)) != width:
            raise InvalidInput("Channel", "outputs", f"be {width} different names, one per column", names)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "outputs", names)
        object.__setattr__(self, "rows", exact)

    def column(self, output: Hashable) -> tuple[Fraction, ...]:
        """The likelihood of each value for this output."""
        if output not in self.outputs:
            raise InvalidInput("Channel", "output", "be one of its outputs", output)
        y = self.outputs.index(output)
        return tuple(row[y] for row in self.rows)

    def worst(self, policy: Policy) -> TightestConstraint:
        """The inequality of the policy that some output comes closest to breaking. Exact."""
        if policy.domain != self.domain:
            raise InvalidInput("Channel", "policy", "be over the same domain", policy.domain)
        constraints = (policy.worst(column) for column in zip(*self.rows, strict=True))
        return max(
            (worst for worst in constraints if worst.names is not None), key=lambda w: w.rank, default=UNCONSTRAINED
        )

    def obeys(self, policy: Policy) -> bool:
        """Whether every output lies in the policy's cone. Exact."""
        return not self.worst(policy).violated

    def then(self, matrix: Sequence[Sequence[Any]]) -> Channel:
        """The law after a random map of the outputs that does not look at the value: a row of ``matrix`` per output.

        Each new column is a non-negative combination of old ones, and a policy is a convex cone: it holds on.
        """
        if unaligned_table(matrix, "then", "matrix") is not matrix:
            raise InvalidInput("then", "matrix", "be rows of numbers in the order of the outputs", matrix)
        exact = _stochastic("then", matrix, [f"output {output!r}" for output in self.outputs])
        columns = list(zip(*exact, strict=True))
        return Channel(self.domain, [[dot(row, column) for column in columns] for row in self.rows])

    def and_then(self, choose: Callable[[Any], Channel]) -> Channel:
        """The joint law with a second release of the same value: ``choose(output)`` is its law after the first output.

        Outputs are pairs. The likelihoods multiply, so two policies on pairs add up: ``policy.compose(other)``.
        """
        names: list[Hashable] = []
        columns: list[list[Fraction]] = []
        for output, first in zip(self.outputs, zip(*self.rows, strict=True), strict=True):
            following = choose(output)
            if following.domain != self.domain:
                raise InvalidInput("and_then", f"the law after {output!r}", "be over the same domain", following.domain)
            for after, second in zip(following.outputs, zip(*following.rows, strict=True), strict=True):
                names.append((output, after))
                columns.append([a * b for a, b in zip(first, second, strict=True)])
        check_channel_size(len(self.domain), len(columns), "the joint law")
        return Channel(self.domain, list(zip(*columns, strict=True)), names)

    def posterior(self, prior: Sequence[Any], output: Hashable) -> tuple[Fraction, ...]:
        """What an observer believes who held ``prior`` and saw ``output``: exact probabilities, in domain order."""
        before = self._prior("posterior", prior)
        joint = [p * likelihood for p, likelihood in zip(before, self.column(output), strict=True)]
        total = sum(joint, Fraction(0))
        if total == 0:
            raise InvalidInput("posterior", "output", "be possible under the prior", output)
        return tuple(p / total for p in joint)

    def _prior(self, subject: str, probabilities: Any) -> tuple[Fraction, ...]:
        prior = align(self.domain, probabilities, subject, "prior")
        if len(prior) != len(self.domain):
            raise InvalidInput(subject, "prior", f"have {len(self.domain)} entries", len(prior))
        (exact,) = _stochastic(subject, [prior], ["the prior"])
        return exact

    def mutual_information(self, prior: Sequence[Any]) -> float:
        """I(X;Y) in nats between a value drawn from ``prior`` and the output, to double precision.

        Whatever obeys ``Prior(domain, prior, epsilon)`` tells at most ε·tanh(ε/2) (``Prior.information_bound``).
        """
        before = self._prior("mutual_information", prior)
        return information(
            (p * t, t / average)
            for column in zip(*self.rows, strict=True)
            for average in [dot(before, column)]
            for p, t in zip(before, column, strict=True)
            if p and t
        )


def check_channel_size(rows: int, columns: int, subject: str) -> None:
    """Raise LimitExceeded if a channel has too many entries to be enumerated."""
    if rows * columns > _LARGEST_CHANNEL:
        raise LimitExceeded(
            f"{subject} over {rows} values has {count_text(columns)} outputs; more than {_LARGEST_CHANNEL} entries are "
            "not enumerated"
        )


def _stochastic(subject: str, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> tuple[tuple[Fraction, ...], ...]:
    """Rows of exact probabilities, each of which sums to one; ``names`` says what the rows belong to."""
    if len(rows) != len(names):
        raise InvalidInput(subject, "rows", f"be {len(names)}", len(rows))
    if len({len(row) for row in rows}) != 1 or len(rows[0]) == 0:
        raise InvalidInput(subject, "rows", "have one length, at least 1", [len(row) for row in rows])
    exact = []
    for name, row in zip(names, rows, strict=True):
        try:
            values = tuple(exact_fraction(entry) for entry in row)
        except (TypeError, ValueError, ArithmeticError):
            raise InvalidInput(subject, f"the row of {name}", "hold numbers", list(row)) from None
        if min(values) < 0 or sum(values) != 1:
            raise InvalidInput(subject, f"the row of {name}", "be probabilities that sum to exactly one", list(row))
        exact.append(values)
    return tuple(exact)
