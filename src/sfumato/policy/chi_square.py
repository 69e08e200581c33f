"""Chi-square confidence sets: all joint distributions that are consistent with a table of counts.

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

from sfumato._core import Floats, chi_square_is_likelier, exact_fraction, quantity, read_list
from sfumato.domain import Domain, align_table, unaligned_table
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.policy.confidence import SecretPair
from sfumato.policy.distributions import AtLeast, Distributions, table_axes

__all__ = ["ChiSquare", "greatest_distance", "probability_range"]


#: Bits of √(B+1), which is rounded up to a multiple of 2^-64 and therefore equal on every machine.
_RADIUS_BITS = 64
#: Maximum number of cells for which all subsets are searched for the greatest l1 distance; otherwise √B bounds it.
_MOST_SUBSET_CELLS = 16


class ChiSquare(Distributions):
    """Confidence set of joint distributions, estimated from a table of counts.

    The set contains the true distribution with confidence 1 - alpha. This confidence level relies on the chi-square
    approximation; with many cells and few people it is lower.

    Parameters
    ----------
    counts
        Counts from n people whose data are public, with one row per value of the secret S and one column per value of
        U. A table with labels (``pandas.crosstab``, a Series with keys (s, u)) is aligned when it becomes part of a
        policy.
    alpha
        One minus the confidence level.

    Raises
    ------
    InvalidInput
        If the counts are not a table of whole numbers with at least two rows, or if alpha is not between 0 and 1.

    Notes
    -----
    The set contains all P with Σ P̂²/P ≤ B + 1, where P̂ are the frequencies of the counts (RLDP eq. 4). n·B is the
    (1-alpha)-quantile of the chi-square distribution with |S|·|U| - 1 degrees of freedom. It is rounded up, so the
    set is never too small. A cell with count 0 may have any probability that the other cells leave. For a secret with
    count 0, any distribution of U is possible.

    Examples
    --------
    >>> from sfumato import Domain, Secret
    >>> people = Domain.product(smoker=["yes", "no"], coffee=["yes", "no"])
    >>> robust = ChiSquare([[210, 90], [280, 420]], alpha="0.05")
    >>> robust.holds([["0.2", "0.1"], ["0.3", "0.4"]]), robust.holds([["0.1", "0.2"], ["0.3", "0.4"]])
    (True, False)
    >>> Secret(people, "smoker", 1, robust).allows([3, 1, 1, 1])
    True
    """

    def __init__(self, counts: Any, alpha: Any = "0.05") -> None:
        must = "be rows of counts, one row per value of the secret"
        self._counts_argument = counts
        table = read_list("ChiSquare", "counts", must, unaligned_table(counts, "ChiSquare", "counts"))
        rows = [read_list("ChiSquare", "counts", must, row) for row in table]
        if len(rows) < 2:
            raise InvalidInput("ChiSquare", "counts", "have at least two rows, one per value of the secret", len(rows))
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            must = "have rows of equal length, with at least one count each"
            raise InvalidInput("ChiSquare", "counts", must, [len(row) for row in rows])
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
        #: The exact frequencies P̂.
        self.estimate = tuple(tuple(Fraction(count, self.n) for count in row) for row in self.counts)

    def check(self, cells: Domain) -> Distributions:
        secrets, others = table_axes(cells)
        shape = len(secrets), len(others)
        aligned = align_table(secrets, others, self._counts_argument, "ChiSquare", "counts", cells=cells)
        fitted = self if aligned is self._counts_argument else ChiSquare(aligned, self.alpha)
        fitted._counts_argument = self._counts_argument  # with its labels, which another policy may need
        if (len(fitted.counts), len(fitted.counts[0])) != shape:
            got = f"{quantity(len(fitted.counts), 'row')} of {quantity(len(fitted.counts[0]), 'count')}"
            must = f"be {quantity(shape[0], 'row')} of {quantity(shape[1], 'count')}"
            raise InvalidInput("ChiSquare", "counts", must, got)
        return fitted

    def document(self) -> dict[str, Any]:
        return {"chi-square": {"counts": [list(row) for row in self.counts], "alpha": str(self.alpha)}}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        raise LimitExceeded(
            "a chi-square confidence set has infinitely many inequalities, which cannot be listed; "
            "use Secret.cut() for the one that a likelihood vector comes closest to violating, or polytope()"
        )

    @functools.cached_property
    def root_radius(self) -> Fraction:
        """√(B+1), rounded up to a multiple of 2^-64; everything else about the set follows from it exactly."""
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
        """The radius B of the set (RLDP eq. 3)."""
        return self.root_radius**2 - 1

    def holds(self, joint: Sequence[Sequence[Any]]) -> bool:
        """Return whether a joint distribution lies in the set; the answer is exact.

        Parameters
        ----------
        joint
            Probabilities in the order of the counts, with a sum of exactly one.

        Returns
        -------
        bool
            Whether the set contains the distribution.

        Raises
        ------
        InvalidInput
            If the rows do not match the counts, or if they are not probabilities that sum to one.
        """
        try:
            unlabelled = unaligned_table(joint, "ChiSquare", "joint") is joint
            exact = [[exact_fraction(p) for p in row] for row in joint] if unlabelled else []
        except (TypeError, ValueError, ArithmeticError):
            exact = []
        if not exact:
            raise InvalidInput("ChiSquare", "joint", "be rows of numbers in the order of the counts", joint)
        if [len(row) for row in exact] != [len(row) for row in self.counts]:
            must = f"be {quantity(len(self.counts), 'row')} of {quantity(len(self.counts[0]), 'probability')}"
            raise InvalidInput("ChiSquare", "joint", must, joint)
        cells = list(zip(itertools.chain(*exact), itertools.chain(*self.estimate), strict=True))
        if any(p < 0 for p, _ in cells) or sum((p for p, _ in cells), Fraction(0)) != 1:
            raise InvalidInput("ChiSquare", "joint", "be probabilities that sum to one", joint)
        if any(p == 0 for p, frequency in cells if frequency):
            return False
        return sum((frequency * frequency / p for p, frequency in cells if frequency), Fraction(0)) <= self.radius + 1

    def pair(self, s: int, other: int) -> SecretPair:
        """Return the part of the set that the rule between two secrets depends on.

        Parameters
        ----------
        s
            Index of a value of the secret.
        other
            Index of another value of the secret.

        Returns
        -------
        SecretPair
            The frequencies of both, and the slack.
        """
        return SecretPair(self.estimate[s], self.estimate[other], self.root_radius - 1)

    # -- projections in floats, for designs; audits use the set itself -----------------------------------------

    @functools.cached_property
    def frequencies(self) -> Floats:
        """Observed frequencies P̂ as floats."""
        return np.array([[float(p) for p in row] for row in self.estimate])

    def conditional_estimate(self) -> Floats:
        """Return the observed conditional distributions P̂(U|s).

        Returns
        -------
        numpy.ndarray
            One row per secret; uniform for a secret with count 0.
        """
        totals = self.frequencies.sum(axis=1, keepdims=True)
        return np.where(totals > 0, self.frequencies / np.where(totals > 0, totals, 1), 1 / self.frequencies.shape[1])

    def conditional_radius(self, s: int) -> Fraction | None:
        """Return the radius of the set of conditional distributions P(U|s), which is of the same kind (Lemma 8).

        Parameters
        ----------
        s
            Index of a value of the secret.

        Returns
        -------
        Fraction or None
            The radius B_s, or None if any distribution is possible.
        """
        frequency = sum(self.estimate[s], Fraction(0))
        return ((self.root_radius - 1 + frequency) / frequency) ** 2 - 1 if frequency else None

    def conditional_ranges(self, s: int, members: npt.NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """Return the smallest and greatest conditional probabilities given one secret (Lemma 9).

        Parameters
        ----------
        s
            Index of a value of the secret.
        members
            Sets D of values of U, one row of flags per set; by default each value by itself.

        Returns
        -------
        tuple of numpy.ndarray
            Smallest and greatest P(D|s) of each set.
        """
        law = self.conditional_estimate()[s]
        members = np.eye(len(law), dtype=bool) if members is None else members
        everything = members.all(axis=1)
        radius = self.conditional_radius(s)
        if radius is None:
            return np.where(everything, 1.0, 0.0), np.ones(len(members))
        least, greatest = probability_range(float(radius), members @ law)
        return np.where(everything, 1.0, least), np.where(everything, 1.0, greatest)

    def conditional_distance(self, s: int) -> float:
        """Return the greatest l1 distance of P(U|s) from P̂(U|s), or an upper bound on it (Prop. 10).

        Parameters
        ----------
        s
            Index of a value of the secret.

        Returns
        -------
        float
            The distance d_s, at most 2.
        """
        radius = self.conditional_radius(s)
        return 2.0 if radius is None else greatest_distance(float(radius), self.conditional_estimate()[s])

    def polytope(self) -> AtLeast:
        """Return a simplex of conditional distributions for each secret that contains the set (RLDP Theorem 11).

        Its rules can be listed. They are stricter than those of the set itself, so mechanisms for the polytope obey the
        set too, at some loss of utility.

        Returns
        -------
        AtLeast
            Lower bounds on the conditional probabilities.
        """
        unit = 1 << 60
        rows = [self.conditional_ranges(s)[0] for s in range(len(self.counts))]
        # Round down by more than the error of the formula in floats; a larger simplex is safe.
        return AtLeast(
            [[Fraction(int(probability * (1 - 1e-12) * unit), unit) for probability in row.tolist()] for row in rows]
        )

    def corners(self) -> Floats:
        """Return the corners of a simplex that contains the set: all cells but one at their least probability.

        Returns
        -------
        numpy.ndarray
            One row per corner, with one joint probability per cell.
        """
        least, _ = probability_range(float(self.radius) * (1 + 1e-12), self.frequencies.ravel())
        least = least * (1 - 1e-12)
        return np.asarray(least + (1 - least.sum()) * np.eye(len(least)))


def probability_range(radius: float, frequencies: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and greatest probability of a cell, or of merged cells, in a set (Lemma 9).

    The formula holds for merged cells, because their extreme is attained in proportion. Eq. 36 suffers from
    cancellation; this form does not.
    """
    root = np.sqrt(radius * radius + 4 * radius * frequencies * (1 - frequencies))
    greatest = (radius + 2 * frequencies + root) / (2 * radius + 2)
    return np.asarray(2 * frequencies**2 / (radius + 2 * frequencies + root)), np.asarray(greatest)


def greatest_distance(radius: float, frequencies: Floats) -> float:
    """Return the greatest ‖P - P̂‖₁ (Prop. 10): exact, or √B if B < 1 and there are too many cells.

    At the maximum, all cells with P > P̂ are scaled by one factor and the others by another, so it is a maximum over
    subsets (eq. 154). For B ≥ 1 it decreases in the frequency of the subset, so the smallest cell attains it. For B <
    1, eq. 43 must not be used.
    """
    if radius >= 1:
        return float(_distance(radius, np.array(frequencies.min())))
    if len(frequencies) > _MOST_SUBSET_CELLS:
        return math.sqrt(radius)
    subsets = np.array(list(itertools.product((False, True), repeat=len(frequencies))))[1:-1]
    return float(_distance(radius, subsets @ frequencies).max(initial=0.0))


def _distance(radius: float, frequency: Floats) -> Floats:
    """Return the l1 distance if cells with this total frequency are scaled up as far as the set allows."""
    root = np.sqrt(radius * (radius + 4 * frequency * (1 - frequency)))
    return np.asarray((radius * (1 - 2 * frequency) + root) / (radius + 1))


def _count(s: int, u: int, value: Any) -> int:
    """Return one count as an int; an error message names its row and column."""
    name = f"the count in row {s}, column {u}"
    try:
        exact = exact_fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput("ChiSquare", name, "be a whole number", value) from None
    if exact.denominator != 1 or exact < 0:
        raise InvalidInput("ChiSquare", name, "be a whole number, at least 0", value)
    return int(exact)
