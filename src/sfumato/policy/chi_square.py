"""Every joint distribution that an observed table of counts does not contradict: a chi-square confidence set.

Lopuhaä-Zwakenberg, Goseling: The Privacy-Utility Tradeoff of Robust Local Differential Privacy (RLDP), section IV.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, chi_square_is_likelier, exact_fraction, read_list
from sfumato.domain import Domain, align_table, unaligned_table
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.policy.confidence import SecretPair
from sfumato.policy.distributions import AtLeast, Distributions, table_axes

__all__ = ["ChiSquare", "greatest_distance", "probability_range"]


#: √(B+1) is the least multiple of 2^-64 that covers the quantile: the same number on every machine.
_RADIUS_BITS = 64
#: The greatest l1 distance is searched over all subsets of at most this many cells; beyond, it is bounded by √B.
_MOST_SUBSET_CELLS = 16


class ChiSquare(Distributions):
    """All P with ``Σ P̂²/P ≤ B + 1``, P̂ the frequencies of ``counts`` (RLDP eq. 4): a (1-alpha)-confidence set for P.

    ``counts`` has a row per value of S and a column per value of U, from n people whose data are public; a table with
    labels (``pandas.crosstab``, a Series under (S, U)) is aligned by them once it is part of a policy. n·B is the
    (1-alpha)-quantile of chi-square with |S|·|U| - 1 degrees of freedom, rounded outwards: the set is never too small.
    A cell that was never seen may have any probability that its neighbours leave, and a secret that was never seen any
    law of U. The confidence is that of the chi-square approximation: for many cells and few people it is lower.
    """

    def __init__(self, counts: Any, alpha: Any = "0.05") -> None:
        must = "be rows of counts, one row per value of the secret"
        self._counts_argument = counts
        table = read_list("ChiSquare", "counts", must, unaligned_table(counts, "ChiSquare", "counts"))
        rows = [read_list("ChiSquare", "counts", must, row) for row in table]
        if len(rows) < 2:
            raise InvalidInput("ChiSquare", "counts", "have at least two rows, one per value of the secret", len(rows))
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise InvalidInput("ChiSquare", "counts", "have rows of one length", [len(row) for row in rows])
        self.counts = tuple(tuple(_count(s, u, value) for u, value in enumerate(row)) for s, row in enumerate(rows))
        self.n = sum(map(sum, self.counts))
        if self.n == 0:
            raise InvalidInput("ChiSquare", "counts", "count at least one person", 0)
        try:
            self.alpha = exact_fraction(alpha)
        except (TypeError, ValueError, ArithmeticError):
            raise InvalidInput("ChiSquare", "alpha", "be a number between 0 and 1", alpha) from None
        if not 0 < self.alpha < 1:
            raise InvalidInput("ChiSquare", "alpha", "lie strictly between 0 and 1", alpha)
        #: P̂, exact.
        self.estimate = tuple(tuple(Fraction(count, self.n) for count in row) for row in self.counts)

    def check(self, cells: Domain) -> Distributions:
        secrets, others = table_axes(cells)
        shape = len(secrets), len(others)
        aligned = align_table(secrets, others, self._counts_argument, "ChiSquare", "counts", cells=cells)
        fitted = self if aligned is self._counts_argument else ChiSquare(aligned, self.alpha)
        fitted._counts_argument = self._counts_argument  # with its labels, should it become part of another policy
        if (len(fitted.counts), len(fitted.counts[0])) != shape:
            got = f"{len(fitted.counts)} rows of {len(fitted.counts[0])}"
            raise InvalidInput("ChiSquare", "counts", f"be {shape[0]} rows of {shape[1]} counts", got)
        return fitted

    def document(self) -> dict[str, Any]:
        return {"chi-square": {"counts": [list(row) for row in self.counts], "alpha": str(self.alpha)}}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        raise LimitExceeded(
            "a chi-square confidence set asks infinitely many inequalities, which cannot be listed; "
            "cut() gives the one that a likelihood vector comes closest to breaking"
        )

    @functools.cached_property
    def root_radius(self) -> Fraction:
        """√(B+1), rounded up to a multiple of 2^-64. Everything else about the set follows from it, exactly."""
        degrees = len(self.counts) * len(self.counts[0]) - 1
        unit = Fraction(1, 1 << _RADIUS_BITS)

        def is_too_small(units: int) -> bool:
            return chi_square_is_likelier(self.n * ((1 + units * unit) ** 2 - 1), degrees, self.alpha)

        high = 1
        while is_too_small(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_too_small(middle) else (low, middle)
        return 1 + high * unit

    @property
    def radius(self) -> Fraction:
        """B of RLDP eq. 3."""
        return self.root_radius**2 - 1

    def holds(self, joint: Sequence[Sequence[Any]]) -> bool:
        """Whether a joint distribution lies in the set. Exact."""
        try:
            unlabelled = unaligned_table(joint, "ChiSquare", "joint") is joint
            exact = [[exact_fraction(p) for p in row] for row in joint] if unlabelled else []
        except (TypeError, ValueError, ArithmeticError):
            exact = []
        if not exact:
            raise InvalidInput("ChiSquare", "joint", "be rows of numbers in the order of the counts", joint)
        if [len(row) for row in exact] != [len(row) for row in self.counts]:
            raise InvalidInput("ChiSquare", "joint", f"be {len(self.counts)} rows of {len(self.counts[0])}", joint)
        cells = list(zip(itertools.chain(*exact), itertools.chain(*self.estimate), strict=True))
        if any(p < 0 for p, _ in cells) or sum((p for p, _ in cells), Fraction(0)) != 1:
            raise InvalidInput("ChiSquare", "joint", "be probabilities that sum to one", joint)
        if any(p == 0 for p, frequency in cells if frequency):
            return False
        return sum((frequency * frequency / p for p, frequency in cells if frequency), Fraction(0)) <= self.radius + 1

    def pair(self, s: int, other: int) -> SecretPair:
        """What the rule between two secrets depends on."""
        return SecretPair(self.estimate[s], self.estimate[other], self.root_radius - 1)

    # -- its projections, in doubles: for designs; an audit reads the set itself -------------------------------

    @functools.cached_property
    def frequencies(self) -> Floats:
        """P̂ in doubles."""
        return np.array([[float(p) for p in row] for row in self.estimate])

    def conditional_estimate(self) -> Floats:
        """P̂(U|s), a row per secret; uniform for one that was never seen."""
        totals = self.frequencies.sum(axis=1, keepdims=True)
        return np.where(totals > 0, self.frequencies / np.where(totals > 0, totals, 1), 1 / self.frequencies.shape[1])

    def conditional_radius(self, s: int) -> Fraction | None:
        """B_s: the laws P(U|s) form a set of the same kind with this radius (Lemma 8); None if any law is possible."""
        frequency = sum(self.estimate[s], Fraction(0))
        return ((self.root_radius - 1 + frequency) / frequency) ** 2 - 1 if frequency else None

    def conditional_ranges(self, s: int, members: npt.NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """The least and greatest P(u|s), or P(D|s) for sets D given as rows of ``members`` (Lemma 9)."""
        law = self.conditional_estimate()[s]
        members = np.eye(len(law), dtype=bool) if members is None else members
        everything = members.all(axis=1)
        radius = self.conditional_radius(s)
        if radius is None:
            return np.where(everything, 1.0, 0.0), np.ones(len(members))
        least, greatest = probability_range(float(radius), members @ law)
        return np.where(everything, 1.0, least), np.where(everything, 1.0, greatest)

    def conditional_distance(self, s: int) -> float:
        """d_s: the greatest l1 distance of P(U|s) from P̂(U|s) (Prop. 10), or a bound on it."""
        radius = self.conditional_radius(s)
        return 2.0 if radius is None else greatest_distance(float(radius), self.conditional_estimate()[s])

    def polytope(self) -> AtLeast:
        """A simplex of laws for each secret that contains the set (RLDP Theorem 11): rules that can be listed.

        It asks more than the set itself, so mechanisms made for it obey the set, and lose some utility.
        """
        unit = 1 << 60
        rows = [self.conditional_ranges(s)[0] for s in range(len(self.counts))]
        # Down by more than the formula can be wrong in doubles: a simplex that is too large is safe.
        return AtLeast(
            [[Fraction(int(probability * (1 - 1e-12) * unit), unit) for probability in row.tolist()] for row in rows]
        )

    def corners(self) -> Floats:
        """Return the vertices of a simplex that contains the set: each cell at its least; shape (cells, cells)."""
        least, _ = probability_range(float(self.radius) * (1 + 1e-12), self.frequencies.ravel())
        least = least * (1 - 1e-12)
        return np.asarray(least + (1 - least.sum()) * np.eye(len(least)))


def probability_range(radius: float, frequencies: Floats) -> tuple[Floats, Floats]:
    """Return the least and greatest probability of a cell, or of merged cells, at distance ``radius`` (Lemma 9).

    Merged cells do best in proportion, so the formula holds for them too. Eq. 36 cancels; this form does not.
    """
    root = np.sqrt(radius * radius + 4 * radius * frequencies * (1 - frequencies))
    greatest = (radius + 2 * frequencies + root) / (2 * radius + 2)
    return np.asarray(2 * frequencies**2 / (radius + 2 * frequencies + root)), np.asarray(greatest)


def greatest_distance(radius: float, frequencies: Floats) -> float:
    """The greatest ‖P - P̂‖₁ (Prop. 10): exact, or √B where B < 1 and there are too many cells to search all subsets.

    The cells where P > P̂ are scaled alike, and so are the others: the maximum over subsets of eq. 154. It falls in
    the subset's frequency for B ≥ 1, so that the smallest cell attains it; below that eq. 43 must not be used.
    """
    if radius >= 1:
        return float(_distance(radius, np.array(frequencies.min())))
    if len(frequencies) > _MOST_SUBSET_CELLS:
        return math.sqrt(radius)
    chosen = np.array(list(itertools.product((False, True), repeat=len(frequencies))))[1:-1]
    return float(_distance(radius, chosen @ frequencies).max(initial=0.0))


def _distance(radius: float, frequency: Floats) -> Floats:
    root = np.sqrt(radius * (radius + 4 * frequency * (1 - frequency)))
    return np.asarray((radius * (1 - 2 * frequency) + root) / (radius + 1))


def _count(s: int, u: int, value: Any) -> int:
    name = f"the count in row {s}, column {u}"
    try:
        exact = exact_fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput("ChiSquare", name, "be a whole number", value) from None
    if exact.denominator != 1 or exact < 0:
        raise InvalidInput("ChiSquare", name, "be a whole number, at least 0", value)
    return int(exact)
