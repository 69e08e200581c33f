"""Joint distributions of a secret S and another attribute U that a policy protects against."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

from sfumato._core import exact_fraction, quantity, read_list
from sfumato.domain import Domain, align_table
from sfumato.errors import Description, InvalidInput
from sfumato.policy.prior import read_probabilities

__all__ = ["Anything", "AtLeast", "Distributions", "Known", "table_axes"]


def table_axes(cells: Domain) -> tuple[Domain, Domain]:
    """Return the values of the rows (the first factor of a product) and of the columns (the other factors)."""
    (_, secrets), *others = cells.factors.items()
    return secrets, others[0][1] if len(others) == 1 else Domain.product(**dict(others))


class Distributions(ABC):
    """Base class of sets of joint distributions of a secret S and other attributes U.

    A :class:`Secret` policy protects S under every distribution in its set. The subclasses are :class:`Known`,
    :class:`AtLeast`, :class:`ChiSquare` and :class:`Anything`. In all tables, rows are the values of S, and columns are
    the values of U. If U consists of several attributes, the columns are their combinations in the order of a product
    domain.
    """

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """Return the set as a JSON-compatible dict, as it appears in :meth:`Policy.to_dict`.

        Returns
        -------
        dict
            The value of the key ``"distributions"``: one key with the kind of the set, such as ``"known"``, and its
            numbers.
        """

    @abstractmethod
    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:
        """Return the extreme points of the set of conditional distributions of U given one value of S.

        Every conditional distribution in the set is a mixture of the extreme points. A rule that holds for the extreme
        points therefore holds for the whole set.

        Parameters
        ----------
        s
            Index of the value of S.
        shape
            Number of values of S and number of values of U.

        Returns
        -------
        list of tuple of Fraction
            Conditional distributions, each with one probability per value of U.

        Raises
        ------
        LimitExceeded
            If there are infinitely many extreme points, as for :class:`ChiSquare`.
        """

    def check(self, cells: Domain) -> Distributions:  # noqa: ARG002
        """Return a copy of this set whose tables are checked and put in the order of a product domain.

        :class:`Secret` calls this method with its domain.

        Parameters
        ----------
        cells
            A product domain whose first factor is S; the other factors are U.

        Returns
        -------
        Distributions
            The set with its tables in the order of ``cells``.

        Raises
        ------
        InvalidInput
            If a table does not match the domain.
        """
        return self


class Known(Distributions):
    """Set that consists of one known joint distribution of the secret S and the other attributes U.

    Use it as the ``distributions`` of a :class:`Secret` policy.

    Parameters
    ----------
    joint
        Joint probabilities P(s, u) with one row per value s of S and one column per value u of U. They sum to one. A
        table with labels is aligned to the domain of the policy: a DataFrame, a mapping of mappings, or a Series or
        mapping with keys (s, u).

    Notes
    -----
    If a value of S has probability zero, it is protected under every distribution of U.

    Examples
    --------
    >>> from sfumato import Domain, Secret
    >>> people = Domain.product(smoker=["yes", "no"], coffee=["yes", "no"])
    >>> joint = {"yes": {"yes": "0.2", "no": "0.1"}, "no": {"yes": "0.3", "no": "0.4"}}
    >>> Secret(people, "smoker", 1, Known(joint)).distributions.joint[0]
    (Fraction(1, 5), Fraction(1, 10))
    """

    def __init__(self, joint: Any) -> None:
        self._joint_argument = joint
        self.joint: tuple[tuple[Fraction, ...], ...] = ()

    def check(self, cells: Domain) -> Distributions:
        secrets, others = table_axes(cells)
        shape = len(secrets), len(others)
        must = f"be {quantity(shape[0], 'row')} of {quantity(shape[1], 'probability')}"
        table = align_table(secrets, others, self._joint_argument, "Known", "joint", cells=cells)
        rows = [read_list("Known", "joint", must, row) for row in read_list("Known", "joint", must, table)]
        if len(rows) != shape[0]:
            raise InvalidInput("Known", "joint", must, Description(quantity(len(rows), "row")))
        for number, row in enumerate(rows):
            if len(row) != shape[1]:
                got = Description(f"{quantity(len(row), 'entry')} in row {number}")
                raise InvalidInput("Known", "joint", must, got)
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
            # For a secret of probability zero, the distribution of U is unknown: protect it under every distribution.
            return Anything().conditionals(s, shape)
        return [tuple(p / total for p in self.joint[s])]


class AtLeast(Distributions):
    """Set of joint distributions with lower bounds on the conditional probabilities P(u|s).

    S is the secret, and U are the other attributes. Use it as the ``distributions`` of a :class:`Secret` policy.

    Parameters
    ----------
    probabilities
        Lower bounds on P(u|s), with one row per value s of S and one column per value u of U. Each row sums to at most
        one. Tables with labels are aligned as in :class:`Known`.

    Notes
    -----
    For each s, the conditional distributions form a simplex. At each of its corners, one value of U has all the
    probability that the lower bounds leave. :meth:`ChiSquare.polytope` returns bounds of this kind that enclose a
    confidence set.

    Examples
    --------
    >>> from sfumato import Domain, Secret
    >>> people = Domain.product(smoker=["yes", "no"], coffee=["yes", "no"])
    >>> bounds = AtLeast([["0.6", "0.2"], ["0.3", "0.5"]])
    >>> Secret(people, "smoker", 1, bounds).distributions.conditionals(0, (2, 2))
    [(Fraction(4, 5), Fraction(1, 5)), (Fraction(3, 5), Fraction(2, 5))]
    """

    def __init__(self, probabilities: Any) -> None:
        self._probabilities_argument = probabilities
        self.probabilities: tuple[tuple[Fraction, ...], ...] = ()

    def check(self, cells: Domain) -> Distributions:
        secrets, others = table_axes(cells)
        shape = len(secrets), len(others)
        must = f"be {quantity(shape[0], 'row')} of {quantity(shape[1], 'lower bound')}"
        table = align_table(secrets, others, self._probabilities_argument, "AtLeast", "probabilities", cells=cells)
        rows = [
            read_list("AtLeast", "probabilities", must, row)
            for row in read_list("AtLeast", "probabilities", must, table)
        ]
        if [len(row) for row in rows] != [shape[1]] * shape[0]:
            raise InvalidInput(
                "AtLeast", "probabilities", must, Description(f"rows of the lengths {[len(row) for row in rows]}")
            )
        fitted = AtLeast(self._probabilities_argument)
        fitted.probabilities = tuple(
            tuple(_read_probability(s, u, probability) for u, probability in zip(others, row, strict=True))
            for s, row in zip(secrets, rows, strict=True)
        )
        for s, row in zip(secrets, fitted.probabilities, strict=True):
            if sum(row) > 1:
                got = Description(f"a sum of {float(sum(row)):.12g}")
                raise InvalidInput("AtLeast", f"the lower bounds of {s!r}", "sum to at most one", got)
        return fitted

    def document(self) -> dict[str, Any]:
        return {"at-least": [[str(probability) for probability in row] for row in self.probabilities]}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        row = self.probabilities[s]
        rest = 1 - sum(row)
        return list(dict.fromkeys(tuple(p + rest * (u == v) for v, p in enumerate(row)) for u in range(len(row))))


def _read_probability(s: object, u: object, value: Any) -> Fraction:
    """Return one lower bound as an exact fraction."""
    try:
        probability = exact_fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput("AtLeast", f"the lower bound of ({s!r}, {u!r})", "be a number", value) from None
    if not 0 <= probability <= 1:
        raise InvalidInput("AtLeast", f"the lower bound of ({s!r}, {u!r})", "lie in [0, 1]", value)
    return probability


class Anything(Distributions):
    """Set of all joint distributions of the secret S and the other attributes U.

    Use it as the ``distributions`` of a :class:`Secret` policy if nothing is known about how U depends on S.

    Examples
    --------
    >>> from sfumato import Domain, Secret
    >>> people = Domain.product(smoker=["yes", "no"], coffee=["yes", "no"])
    >>> Secret(people, "smoker", 1, Anything()).allows([1, 1, 1, 0])
    False
    """

    def document(self) -> dict[str, Any]:
        return {"anything": True}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        size = shape[1]
        return [tuple(Fraction(int(u == only)) for u in range(size)) for only in range(size)]
