"""Marginal tables of several attributes: estimates, errors, intervals, and tables that agree with each other."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import MOST_ROWS, Floats, project_to_simplex, quantity, read_only
from sfumato.errors import UnknownLabel
from sfumato.estimation.answers import Answers
from sfumato.estimation.consistency import ConsistentTables
from sfumato.estimation.linear import LinearEstimate, check_confidence
from sfumato.mechanisms import Estimator, MarginalEstimator, SamplingDistribution
from sfumato.questions import Marginals, cell_positions, marginal_sums, table_columns

if TYPE_CHECKING:
    from sfumato.estimation.estimates import Estimate

__all__ = ["MarginalTables", "MarginalValues", "marginal_of_counts", "marginal_of_frequencies"]

#: Variance of one report below which it is rounding because all reports agree about a cell.
_SILENT = 1e-12
#: Number of people below which a cell counts as empty; shares near 0 are rounding of fitted distributions.
_ONE_HALF = 0.5
#: Relative rounding error of second moments.
_NEGLIGIBLE = 1e-9
#: Least share of people outside a cell by which moments are divided.
_LEAST_REST = 1e-9
#: Least mean variance of the cells of a table by which it is weighted; reports without noise have no variance.
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class MarginalValues:
    """The estimate of one marginal table: unbiased cells, and the moments of one report's scores.

    ``variances`` and ``covariance()`` are those at a distribution near the estimate, whose cells have ``shares``.
    ``tested`` are variances for :meth:`limits`, which takes the variance at the tested share where no report counts.
    ``inside()`` is the mean squared score of people in each cell, and ``expected()`` the mean variance of a cell if all
    values are equally frequent.
    """

    cells: Floats
    shares: Floats
    variances: Floats
    tested: Floats
    inside: Callable[[], Floats]
    covariance: Callable[[], Floats]
    expected: Callable[[], float]

    def limits(self, n: int, alpha: float) -> tuple[Floats, Floats]:
        """Return the limits of each cell: shares π at which a normal test with the variance at π accepts the estimate.

        The mean squared score is linear in the share of people in the cell, from the one outside for share 0 to
        ``inside()`` for share 1. The one outside follows from the variance and the share. A share that does not
        differ significantly from 0 counts as 0, because noise would otherwise pass for people in the cell and hide the
        variance of the others. So the limits solve a quadratic equation (score interval).
        """
        if len(self.cells) == 1:
            return np.ones(1), np.ones(1)
        spread = NormalDist().inv_cdf(1 - alpha / 2) ** 2 / n
        inside, moments = self.inside(), self.tested + self.shares**2
        certain = np.where(self.shares**2 > spread * self.tested, self.shares, 0.0)
        rest = np.maximum(1 - certain, _LEAST_REST)
        outside = np.clip((moments - certain * inside) / rest, 0.0, np.maximum(moments, inside))
        # (1 + s)·π² - (2·estimate + s·(inside - outside))·π + estimate² - s·outside = 0.
        half = self.cells + spread * (inside - outside) / 2
        root = np.sqrt(np.maximum(half**2 - (1 + spread) * (self.cells**2 - spread * outside), 0.0))
        inner = np.clip(self.cells, 0.0, 1.0)
        low, high = ((half + sign * root) / (1 + spread) for sign in (-1, 1))
        return np.clip(np.minimum(low, inner), 0.0, 1.0), np.clip(np.maximum(high, inner), 0.0, 1.0)


def marginal_of_counts(
    estimator: Estimator, fractions: Floats, n: int, shape: Sequence[int], axes: Sequence[int], p: Floats | None = None
) -> MarginalValues:
    """Return the estimate of a marginal from the counts of one mechanism, with errors at p or, by default, observed."""
    marginal: MarginalEstimator = estimator.marginal(shape, axes)

    @functools.cache
    def inside() -> Floats:
        return marginal.second_moments_inside(shape, axes)

    cells = marginal.frequencies(fractions)
    variances = marginal.observed_variances(fractions) if p is None else marginal.variances(p)
    shares = project_to_simplex(cells) if p is None else marginal_sums(p, shape, axes)
    silent = np.zeros(len(cells), np.bool_)
    if p is not None and (shares * n < _ONE_HALF).any():
        # A fitted distribution has a little mass in all cells, so only the reports show which of them none counts for.
        silent = marginal.observed_variances(fractions) + cells**2 < _SILENT
        cells = np.where(silent, 0.0, cells)

    def covariance() -> Floats:
        return marginal.observed_covariance(fractions) if p is None else marginal.covariance(p)

    def expected() -> float:
        uniform = np.broadcast_to(np.float64(1 / estimator.size), (estimator.size,))  # takes no memory
        return marginal.squared_error(uniform) / marginal.size

    tested = _at_least(variances, shares, inside, n)
    least = _at_least(variances, shares, inside, n, silent) if silent.any() else tested
    return MarginalValues(cells, shares, least, tested, inside, covariance, expected)


def marginal_of_frequencies(
    estimator: SamplingDistribution, unbiased: Floats, p: Floats, n: int, shape: Sequence[int], axes: Sequence[int]
) -> MarginalValues:
    """Return the estimate of a marginal from the unbiased frequencies of all values, with errors at p."""
    positions = cell_positions(shape, axes)
    rows = [(positions == cell).astype(np.float64) for cell in range(math.prod(shape[axis] for axis in axes))]

    @functools.cache
    def inside() -> Floats:
        return np.array([estimator.variance(row, row / row.sum()) + 1.0 for row in rows])

    variances = np.array([estimator.variance(row, p) for row in rows])

    def covariance() -> Floats:
        return np.asarray(np.array(rows) @ estimator.covariance(p) @ np.array(rows).T)

    def expected() -> float:
        return sum(estimator.variance(row, np.full(len(p), 1 / len(p))) for row in rows) / len(rows)

    cells, shares = (marginal_sums(vector, shape, axes) for vector in (unbiased, p))
    least = _at_least(variances, shares, inside, n)
    return MarginalValues(cells, shares, least, least, inside, covariance, expected)


def _at_least(
    variances: Floats,
    shares: Floats,
    inside: Callable[[], Floats],
    n: int,
    silent: npt.NDArray[np.bool_] | bool = False,
) -> Floats:
    """Return variances, computed as if one report had been different where all reports agree about a cell.

    ``silent`` marks cells that no report counts for. If only people in a cell have reports that count for it, and each
    such report counts d, the mean squared score of these people is d, because their mean score is 1. A fraction f of
    the reports then adds the variance f(1-f)·d². If the reports that count have several scores, d² is at least the mean
    of their squares, by the Cauchy-Schwarz inequality.
    """
    if len(variances) == 1:
        return np.zeros(1)
    empty = (variances < _SILENT) | (shares * n < _ONE_HALF) | silent
    if not empty.any():
        return variances
    distance, moments = inside(), variances + shares**2
    # If other people's reports have no score, the people in the cell account for the whole second moment.
    revealed = silent | (moments - shares * distance <= _SILENT + _NEGLIGIBLE * moments)
    fraction = np.minimum(1 / max(n, 2), 1 / distance)
    least = np.where(empty & revealed, fraction * (1 - fraction) * distance**2, 0.0)
    return np.maximum(variances, least)


@dataclass(frozen=True, eq=False, repr=False)
class MarginalTables(Answers, question="marginals"):
    """The estimated marginal tables of several attributes, as ``Estimate.marginals`` returns them.

    ``tables["sex", "race"]`` returns the :class:`CrossTable` of two attributes, ``tables["sex"]`` the table of one
    attribute, and ``tables["sex=f, race=White"]`` the share of people in one cell. All numbers are unbiased, so some
    shares may be negative. :meth:`consistent` returns tables that agree with each other.

    Parameters
    ----------
    estimate
        The estimate from which the tables are computed.
    question
        The question :class:`Marginals`, fitted to the domain of the estimate.

    Notes
    -----
    An interval contains the shares that a normal test accepts, with the variance of the estimate at the tested share
    (a score interval). ``tables["sex=f"].interval()`` inverts the exact law of one cell instead, which takes longer. It
    differs noticeably only for cells to which few reports contribute.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(sex=sf.Domain(["f", "m"]), smokes=sf.Domain(["yes", "no"]))
    >>> mechanism = sf.mechanisms.RandomizedResponse(people, 2)
    >>> reports = [0] * 300 + [1] * 200 + [2] * 200 + [3] * 300
    >>> tables = sf.estimate(mechanism, sf.aggregate(mechanism, reports)).marginals(2)
    >>> print(tables)
    4 cells in 1 table, 1,000 reports, 95% intervals
    cell               frequency  standard_error      low     high
    sex=f, smokes=yes     0.3313        0.023564  0.28644  0.37866
    sex=f, smokes=no      0.1687        0.020568  0.13028  0.21084
    sex=m, smokes=yes     0.1687        0.020568  0.13028  0.21084
    sex=m, smokes=no      0.3313        0.023564  0.28644  0.37866
    >>> print(tables["sex"]["sex=f"])
    0.5 ± 0.026
    """

    estimate: Estimate
    question: Marginals

    _headings: ClassVar[tuple[str, str]] = ("cell", "frequency")

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The names of the attributes of each table."""
        return self.question.tables

    @functools.cached_property
    def _marginals(self) -> list[MarginalValues]:
        """The estimates of all tables."""
        return [self.estimate._marginal(axes) for axes in self.question.axes]

    @functools.cached_property
    def values(self) -> Floats:
        """The estimated share of people in each cell, in the order of ``names``."""
        return read_only(np.concatenate([marginal.cells for marginal in self._marginals]))

    @property
    def standard_errors(self) -> Floats:
        """The standard error of each cell, in the order of ``names``."""
        variances = np.concatenate([marginal.variances for marginal in self._marginals])
        return np.sqrt(variances / self.estimate.n)

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Return the lower and upper confidence limits of each cell, within [0, 1].

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval of a cell contains its true
            share.
        simultaneous
            If True, all intervals together contain the true shares with this confidence (Bonferroni correction).

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, in the order of ``names``.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.
        """
        tests = max(len(self), 1) if simultaneous else 1
        check_confidence(confidence, tests)
        alpha = (1 - confidence) / tests
        low, high = zip(*(marginal.limits(self.estimate.n, alpha) for marginal in self._marginals), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def _number(self, row: int) -> LinearEstimate:
        weights = next(itertools.islice(self.question.rows(), row, None))
        return self.estimate.linear(weights)

    def __getitem__(self, key: object) -> Any:
        """Return the table of some attributes, or one cell by its name; raise UnknownLabel for another key."""
        attributes = key if isinstance(key, tuple) else (key,)
        factors = self.estimate.domain.factors
        if not attributes or not all(name in factors for name in attributes) or len(set(attributes)) < len(attributes):
            if key in self.names:
                return self._number(self.names.index(cast("str", key)))
            must = f"be one or several of the attributes {', '.join(map(repr, factors))}, or the name of a cell"
            raise UnknownLabel("MarginalTables", "the key", must, key)
        if len(attributes) == 2:
            from sfumato.estimation.cross_tables import CrossTable

            return CrossTable(self.estimate, (attributes[0], attributes[1]))
        question = Marginals(tables=[attributes]).checked(self.estimate.domain)
        return MarginalTables(self.estimate, question)

    def consistent(self, *, nonnegative: bool = False) -> ConsistentTables:
        """Return the tables nearest to these that agree with each other: equal shares of one attribute, total 1.

        Parameters
        ----------
        nonnegative
            If True, no cell is negative. This makes the tables biased, and they have no standard errors.

        Returns
        -------
        ConsistentTables
            The tables, with standard errors unless ``nonnegative`` is True.

        Notes
        -----
        The method is weighted least squares. The weight of a table is the inverse mean variance of its cells if all
        values are equally frequent, so it does not depend on the reports. Each table is a sum of one part per set of
        its attributes (an analysis of variance). The part of a set is averaged over the tables that contain the set,
        with the weight of the table divided by the number of cells over which the part is spread. The part of no
        attribute is known, because shares sum to 1. The averages are linear, so the tables stay unbiased. They do not
        change if they are made consistent again.

        The tables of one estimate agree already, up to their totals. A report about all attributes counts in every
        table, and if each person reports a part of the attributes, the estimator averages the parts in the same way.
        Only the counts of bits, as from :class:`UnaryEncoding`, have tables with other totals.

        With ``nonnegative``, the result is the nearest set of tables that is consistent and has no negative cell, in
        the same weighted distance, by Dykstra's alternating projections.
        """
        return ConsistentTables(self, nonnegative)

    @functools.cached_property
    def _weights(self) -> list[float]:
        """The weight of each table: the inverse mean variance of its cells if all values are equally frequent."""
        return [1 / max(marginal.expected(), _LEAST_VARIANCE) for marginal in self._marginals]

    @functools.cached_property
    def _covariances(self) -> list[Floats]:
        """The covariance of the cells of each table."""
        return [marginal.covariance() / self.estimate.n for marginal in self._marginals]

    def _title(self) -> str:
        cells, tables = quantity(len(self), "cell"), quantity(len(self.tables), "table")
        return f"{cells} in {tables}, {quantity(self.estimate.n, 'report')}, 95% intervals"

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval(confidence, simultaneous=simultaneous)
        numbers = {"frequency": self.values, "standard_error": self.standard_errors, "low": low, "high": high}
        return table_columns(self.question, numbers)

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval()
        numbers = {"frequency": self.values, "standard_error": self.standard_errors, "low": low, "high": high}
        cells = {name: [f"{number:.5g}" for number in column[:MOST_ROWS]] for name, column in numbers.items()}
        return {"cell": list(self.names[:MOST_ROWS]), **cells}
