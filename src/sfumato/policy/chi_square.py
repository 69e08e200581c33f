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
from sfumato.errors import Description, InvalidInput, LimitExceeded
from sfumato.policy.confidence import SecretPair
from sfumato.policy.distributions import AtLeast, Distributions, table_axes

__all__ = ["ChiSquare", "greatest_distance", "probability_range"]


#: Bits of √(B+1), which is rounded up to a multiple of 2^-64 and therefore equal on every machine.
_RADIUS_BITS = 64
#: Maximum number of cells for which all subsets are searched for the greatest l1 distance; otherwise √B bounds it.
_MOST_SUBSET_CELLS = 16


class ChiSquare(Distributions):
    """Confidence set of joint distributions of a secret S and other attributes U, from a table of counts.

    Use it as the ``distributions`` of a :class:`Secret` policy if the joint distribution is known only from a public
    sample. The set contains the true distribution with confidence 1 - alpha. This confidence level relies on the
    chi-square approximation; with many cells and few people it is lower.

    Parameters
    ----------
    counts
        Number of people with each combination of S and U, among n people whose data are public. The table has one row
        per value of S and one column per value of U. A table with labels (``pandas.crosstab``, a Series with keys (s,
        u)) is aligned to the domain of the policy.
    alpha
        One minus the confidence level, strictly between 0 and 1.

    Raises
    ------
    InvalidInput
        If the counts are not a table of whole numbers with at least two rows, or if alpha is not between 0 and 1.

    Notes
    -----
    P̂ denotes the observed frequencies: the counts divided by n. The set contains all joint distributions P with Σ
    P̂²/P ≤ B + 1, where the sum is over all cells (s, u) and B is the radius of the set. n·B is the (1-alpha)-quantile
    of the chi-square distribution with |S|·|U| - 1 degrees of freedom, rounded up, so the set is never too small. A
    cell with count 0 may have any probability that the other cells leave. For a value of S with count 0, any
    distribution of U is possible.

    This is eq. 4 of Lopuhaä-Zwakenberg and Goseling, The Privacy-Utility Tradeoff of Robust Local Differential Privacy
    (2021).

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
            must = "have at least two rows, one per value of the secret"
            raise InvalidInput("ChiSquare", "counts", must, Description(quantity(len(rows), "row")))
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            must = "have rows of equal length, with at least one count each"
            raise InvalidInput(
                "ChiSquare", "counts", must, Description(f"rows of the lengths {[len(row) for row in rows]}")
            )
        self.counts = tuple(tuple(_count(s, u, value) for u, value in enumerate(row)) for s, row in enumerate(rows))
        self.n = sum(map(sum, self.counts))
        if self.n == 0:
            raise InvalidInput("ChiSquare", "counts", "count at least one person", Description("only zeros"))
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
            got = Description(f"{quantity(len(fitted.counts), 'row')} of {quantity(len(fitted.counts[0]), 'count')}")
            must = f"be {quantity(shape[0], 'row')} of {quantity(shape[1], 'count')}"
            raise InvalidInput("ChiSquare", "counts", must, got)
        return fitted

    def document(self) -> dict[str, Any]:
        return {"chi-square": {"counts": [list(row) for row in self.counts], "alpha": str(self.alpha)}}

    def conditionals(self, s: int, shape: tuple[int, int]) -> list[tuple[Fraction, ...]]:  # noqa: ARG002
        raise LimitExceeded(
            "a policy under a chi-square confidence set has infinitely many rules, which cannot be listed. Use "
            "Secret.cut() for the rule that an output comes closest to violating, or ChiSquare.polytope() for a "
            "stricter policy with finitely many rules."
        )

    @functools.cached_property
    def root_radius(self) -> Fraction:
        """√(B+1) for the :attr:`radius` B, as an exact fraction: rounded up to a multiple of 2^-64."""
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
        """The radius B of the set: P belongs to the set if Σ P̂²/P ≤ B + 1, with P̂ the observed frequencies."""
        return self.root_radius**2 - 1

    def holds(self, joint: Sequence[Sequence[Any]]) -> bool:
        """Return whether a joint distribution of S and U lies in the set; the answer is exact.

        Parameters
        ----------
        joint
            Joint probabilities, in rows and columns like the counts, with a sum of exactly one.

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
            raise InvalidInput("ChiSquare", "joint", "be probabilities that sum to exactly one", joint)
        if any(p == 0 for p, frequency in cells if frequency):
            return False
        return sum((frequency * frequency / p for p, frequency in cells if frequency), Fraction(0)) <= self.radius + 1

    def pair(self, s: int, other: int) -> SecretPair:
        """Return the parameters of the set that determine which pairs P(U|s), P(U|s') are possible for two secrets.

        Parameters
        ----------
        s
            Row index of a value s of the secret.
        other
            Row index of another value s' of the secret.

        Returns
        -------
        SecretPair
            The observed joint frequencies of both rows, and the slack √(B+1) - 1 for the :attr:`radius` B.
        """
        return SecretPair(self.estimate[s], self.estimate[other], self.root_radius - 1)

    # -- projections in floats, for designs; audits use the set itself -----------------------------------------

    @functools.cached_property
    def frequencies(self) -> Floats:
        """Observed joint frequencies P̂: the counts divided by their sum, as a float array of the same shape."""
        return np.array([[float(p) for p in row] for row in self.estimate])

    def conditional_estimate(self) -> Floats:
        """Return the observed conditional distributions P̂(U|s) of U given each value s of the secret.

        Returns
        -------
        numpy.ndarray
            Array with the shape of the counts, whose rows sum to one. The row of a secret with count 0 is uniform.
        """
        totals = self.frequencies.sum(axis=1, keepdims=True)
        return np.where(totals > 0, self.frequencies / np.where(totals > 0, totals, 1), 1 / self.frequencies.shape[1])

    def conditional_radius(self, s: int) -> Fraction | None:
        """Return the radius of the set of conditional distributions of U given one value of the secret.

        Parameters
        ----------
        s
            Row index of the value of the secret.

        Returns
        -------
        Fraction or None
            The radius B_s. The set contains a distribution with P(U|s) = R if and only if Σ P̂(u|s)²/R(u) ≤ B_s + 1.
            None if the count of s is 0: every R is then possible.

        Notes
        -----
        Lopuhaä-Zwakenberg and Goseling (2021), Lemma 8: the conditional distributions form a set of the same kind as
        the joint ones.
        """
        frequency = sum(self.estimate[s], Fraction(0))
        return ((self.root_radius - 1 + frequency) / frequency) ** 2 - 1 if frequency else None

    def conditional_ranges(self, s: int, members: npt.NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
        """Return the range of conditional probabilities P(D|s) over all distributions P in the set.

        D is a set of values of U, the attributes other than the secret.

        Parameters
        ----------
        s
            Index of a value of the secret, which is a row of the table of counts.
        members
            Boolean array of shape (m, number of values of U). Entry [i, u] is True if value u, which is column u of the
            table of counts, belongs to the set D_i. By default, each set is one value of U.

        Returns
        -------
        tuple of numpy.ndarray
            Two float arrays of length m: the smallest and the greatest possible P(D_i|s).

        Notes
        -----
        Lopuhaä-Zwakenberg and Goseling (2021), Lemma 9, gives the range in closed form.
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
        """Return an upper bound on the l1 distance between P(U|s) and the observed P̂(U|s), over all P in the set.

        Parameters
        ----------
        s
            Row index of a value of the secret.

        Returns
        -------
        float
            The bound, at most 2. It is the maximum itself unless the radius is below 1 and U has more than 16 values.

        Notes
        -----
        Lopuhaä-Zwakenberg and Goseling (2021), Prop. 10.
        """
        radius = self.conditional_radius(s)
        return 2.0 if radius is None else greatest_distance(float(radius), self.conditional_estimate()[s])

    def polytope(self) -> AtLeast:
        """Return lower bounds on the conditional probabilities P(u|s) that every distribution in the set satisfies.

        A :class:`Secret` policy under the result has finitely many rules, which can be listed. Those rules are stricter
        than the rules under this set. Mechanisms for them therefore also obey the policy under this set, at some loss
        of utility.

        Returns
        -------
        AtLeast
            The lower bounds, one row per value of the secret and one column per value of U.

        Notes
        -----
        Lopuhaä-Zwakenberg and Goseling (2021), Theorem 11: for each secret, the bounds describe a simplex that contains
        all its conditional distributions.
        """
        unit = 1 << 60
        rows = [self.conditional_ranges(s)[0] for s in range(len(self.counts))]
        # Round down by more than the error of the formula in floats; a larger simplex is safe.
        return AtLeast(
            [[Fraction(int(probability * (1 - 1e-12) * unit), unit) for probability in row.tolist()] for row in rows]
        )

    def corners(self) -> Floats:
        """Return the corners of a simplex of joint distributions that contains the set.

        At each corner, all cells (s, u) but one have the least probability that the set allows them.

        Returns
        -------
        numpy.ndarray
            Array of shape (c, c) for c cells: one joint distribution per row, with its cells in row-major order of the
            counts.
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
