"""How a harmless attribute U depends on a secret S: one known distribution, least probabilities, or nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

from sfumato._core import exact_fraction, read_list
from sfumato.domain import Domain, align_table
from sfumato.errors import InvalidInput
from sfumato.policy.prior import read_probabilities

__all__ = ["Anything", "AtLeast", "Distributions", "Known", "table_axes"]


def table_axes(cells: Domain) -> tuple[Domain, Domain]:
    """Return the values of the rows and of the columns of a table over a product: its first factor, and the others."""
    (_, secrets), *others = cells.factors.items()
    return secrets, others[0][1] if len(others) == 1 else Domain.product(**dict(others))


class Distributions(ABC):
    """What is known of the joint distribution of (S, U): the set of distributions to protect under."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The set as part of a policy document."""

    @abstractmethod
    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:
        """The extreme laws of U given S = s; the rule must hold for each, hence for their mixtures.

        LimitExceeded where there are infinitely many.
        """

    def check(self, cells: Domain) -> Distributions:  # noqa: ARG002
        """Return this set, fitted to the cells of a product whose first factor is S, or reject what does not fit."""
        return self


class Known(Distributions):
    """The joint distribution is known: one row per value of S, one column per value of U.

    A table with labels is aligned by them: a DataFrame, a mapping of mappings, or a Series or mapping under (S, U).
    """

    def __init__(self, joint: Any) -> None:
        self._joint_argument = joint
        self.joint: tuple[tuple[Fraction, ...], ...] = ()

    def check(self, cells: Domain) -> Distributions:
        secrets, others = table_axes(cells)
        shape = len(secrets), len(others)
        must = f"be {shape[0]} rows of {shape[1]} probabilities"
        table = align_table(secrets, others, self._joint_argument, "Known", "joint", cells=cells)
        rows = [read_list("Known", "joint", must, row) for row in read_list("Known", "joint", must, table)]
        if len(rows) != shape[0]:
            raise InvalidInput("Known", "joint", must, f"{len(rows)} rows")
        for number, row in enumerate(rows):
            if len(row) != shape[1]:
                raise InvalidInput("Known", "joint", must, f"{len(row)} in row {number}")
        names = [f"({s!r}, {u!r})" for s in secrets for u in others]
        flat = read_probabilities("Known", "the probability", [p for row in rows for p in row], names)
        fitted = Known(self._joint_argument)
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


class AtLeast(Distributions):
    """Each P(u|s) is at least a given probability: one row per value of S, of sum at most one; or labelled, as Known.

    The laws of U given s form a simplex, whose corners give one value of U all that the least probabilities leave.
    RLDP's polytope around a confidence set (Theorem 11) is of this kind.
    """

    def __init__(self, probabilities: Any) -> None:
        self._probabilities_argument = probabilities
        self.probabilities: tuple[tuple[Fraction, ...], ...] = ()

    def check(self, cells: Domain) -> Distributions:
        secrets, others = table_axes(cells)
        shape = len(secrets), len(others)
        must = f"be {shape[0]} rows of {shape[1]} least probabilities"
        table = align_table(secrets, others, self._probabilities_argument, "AtLeast", "probabilities", cells=cells)
        rows = [
            read_list("AtLeast", "probabilities", must, row)
            for row in read_list("AtLeast", "probabilities", must, table)
        ]
        if [len(row) for row in rows] != [shape[1]] * shape[0]:
            raise InvalidInput("AtLeast", "probabilities", must, [len(row) for row in rows])
        fitted = AtLeast(self._probabilities_argument)
        fitted.probabilities = tuple(
            tuple(_read_probability(s, u, probability) for u, probability in zip(others, row, strict=True))
            for s, row in zip(secrets, rows, strict=True)
        )
        for s, row in zip(secrets, fitted.probabilities, strict=True):
            if sum(row) > 1:
                raise InvalidInput(
                    "AtLeast", f"the least probabilities of {s!r}", "sum to at most one", float(sum(row))
                )
        return fitted

    def document(self) -> dict[str, Any]:
        return {"at-least": [[str(probability) for probability in row] for row in self.probabilities]}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        row = self.probabilities[s]
        left = 1 - sum(row)
        return list(dict.fromkeys(tuple(p + left * (u == v) for v, p in enumerate(row)) for u in range(len(row))))


def _read_probability(s: object, u: object, value: Any) -> Fraction:
    try:
        probability = exact_fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput("AtLeast", f"the least probability of ({s!r}, {u!r})", "be a number", value) from None
    if not 0 <= probability <= 1:
        raise InvalidInput("AtLeast", f"the least probability of ({s!r}, {u!r})", "lie in [0, 1]", value)
    return probability


class Anything(Distributions):
    """Nothing is known: every joint distribution is possible."""

    def document(self) -> dict[str, Any]:
        return {"anything": True}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        size = shape[1]
        return [tuple(Fraction(int(u == only)) for u in range(size)) for only in range(size)]
