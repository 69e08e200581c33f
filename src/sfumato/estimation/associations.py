"""How two attributes depend on each other: odds ratio and Cramér's V, with intervals that stay honest near 0."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato._core import Floats, FrozenData, Result, percent, quantity
from sfumato.errors import Description, InvalidInput, NoAnswer
from sfumato.estimation.linear import check_confidence
from sfumato.randomness import insecure_generator

if TYPE_CHECKING:
    from sfumato.estimation.cross_tables import CrossTable

__all__ = ["Association", "CramersV", "OddsRatio"]

#: Number of draws of the errors of a table, with a fixed seed.
_DRAWS = 20_000
#: Standard errors by which the share of every row and column must exceed 0 for Cramér's V.
_LEAST_SHARE = 2.0
#: Precision of the limits of Cramér's V, and of the number of standard errors of a p-value.
_PRECISION = 1e-6
#: Positions of the cells of both products of an odds ratio, row by row.
_PAIRS = ((0, 3), (1, 2))
#: Direction in which each cell changes the logarithm of an odds ratio.
_SIGNS = np.array([1.0, -1.0, -1.0, 1.0])
#: Number of people in a cell from which the search for a limit starts at least, and below which a cell counts as empty.
_LEAST_COUNT, _EMPTY = 1e-3, 1e-4
#: Most rounds of this search, least factor by which a cell shrinks, and relative change of the cells at its end.
_MOST_ROUNDS, _LEAST_FACTOR, _TOLERANCE = 500, 0.2, 1e-9
#: Least variance by which covariances are divided.
_LEAST_VARIANCE = 1e-24
#: Confidence level of the limits from which errors of rare cells follow for Cramér's V.
_LEVEL = 0.95
#: Numbers of standard errors at which intervals are compared with 1 for a p-value; it rounds to 0 beyond the last.
_STEPS = (*(0.5 * step for step in range(1, 13)), 10.0, 20.0, 40.0)


@dataclass(frozen=True, eq=False, repr=False)
class Association(FrozenData, Result):
    """Base class of measures of the association between the two attributes of a cross-table.

    Parameters
    ----------
    table
        The table of both attributes. Measures use its unbiased frequencies and their covariance.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(sex=sf.Domain(["f", "m"]), smokes=sf.Domain(["yes", "no"]))
    >>> mechanism = sf.mechanisms.RandomizedResponse(people, 3)
    >>> reports = [0] * 300 + [1] * 200 + [2] * 100 + [3] * 400
    >>> table = sf.cross_table(sf.estimate(mechanism, sf.aggregate(mechanism, reports)))
    >>> print(table.odds_ratio())
    odds ratio of sex and smokes: 10.3 (95% interval 6.87 to 16.1)
    >>> print(table.cramers_v())
    Cramér's V of sex and smokes: 0.498 (95% interval 0.427 to 0.571)
    """

    table: CrossTable

    #: Name of the measure in tables and messages.
    measure: ClassVar[str]

    @property
    @abstractmethod
    def value(self) -> float:
        """The estimate of the measure."""

    @property
    @abstractmethod
    def p_value(self) -> float:
        """The p-value of the null hypothesis that the attributes are independent."""

    @abstractmethod
    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the lower and upper confidence limits of the measure.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1.

        Returns
        -------
        tuple of float
            The lower and the upper limit.
        """

    @functools.cached_property
    def _cells(self) -> Floats:
        """The unbiased frequencies of the table."""
        return self.table.unbiased

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval(confidence)
        columns: dict[str, Sequence[Any]] = {"measure": [self.measure], "value": [self.value]}
        return {**columns, "low": [low], "high": [high], "p_value": [self.p_value]}

    def _title(self) -> str:
        return f"{self.measure} of {' and '.join(self.table.questions)}, {quantity(self.table.estimate.n, 'report')}"

    def __str__(self) -> str:
        low, high = (f"{limit:.3g}" for limit in self.interval())
        questions = " and ".join(self.table.questions)
        return f"{self.measure} of {questions}: {self.value:.3g} ({percent(0.95)} interval {low} to {high})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value:.6g}, n={self.table.estimate.n})"


@dataclass(frozen=True, eq=False, repr=False)
class OddsRatio(Association):
    """The odds ratio p₁₁·p₂₂/(p₁₂·p₂₁) of a table of two by two cells; 1 if the attributes are independent.

    Parameters
    ----------
    table
        The table of both attributes, with two rows and two columns.

    Notes
    -----
    The interval has the odds ratios of all tables whose distance from the unbiased estimate is at most z standard
    errors: the quadratic form of the difference with the inverse covariance is at most z². The covariance is that of
    the table in question: the randomization adds what it adds at the estimate, and the sampling of people adds the
    multinomial covariance of the table. For exact reports, this is Cornfield's interval (1956). The upper limit is
    infinite if a cell of the second product may be empty, and the lower limit is 0 if a cell of the first may be. The
    interval is extended to the estimate. The p-value is the level at which a limit of the interval is 1.

    The estimate is A/B with the unbiased estimates A and B of p₁₁·p₂₂ and p₁₂·p₂₁. It is not the ratio of the printed
    cells: a product of two estimates has a bias, their covariance, which A and B leave out. If both products are
    estimated at 0 or below, the ratio is not determined: the estimate is not a number, the interval is 0 to infinity at
    every confidence level, and the p-value is 1.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(sex=sf.Domain(["f", "m"]), smokes=sf.Domain(["yes", "no"]))
    >>> mechanism = sf.mechanisms.RandomizedResponse(people, 3)
    >>> counts = sf.Aggregate(mechanism.hash, 1000, [300, 200, 100, 400])
    >>> low, high = sf.cross_table(sf.estimate(mechanism, counts)).odds_ratio().interval(0.9)
    >>> round(low, 1), round(high, 1)
    (7.3, 14.9)
    """

    measure: ClassVar[str] = "odds ratio"

    def __post_init__(self) -> None:
        if self._cells.shape != (2, 2):
            rows, columns = self._cells.shape
            got = Description(f"{rows} by {columns} cells")
            hint = "Use cramers_v() for larger tables."
            raise InvalidInput("odds_ratio", "the table", "have two rows and two columns", got, hint=hint)

    @functools.cached_property
    def _products(self) -> tuple[float, float]:
        """Unbiased estimates of both products."""
        cells, covariance = self._cells.ravel(), self.table.covariance
        first, second = (float(cells[x] * cells[y] - covariance[x, y]) for x, y in _PAIRS)
        return first, second

    @property
    def value(self) -> float:
        """The ratio of the unbiased products; infinite if the second is not positive, NaN if neither is."""
        first, second = self._products
        if second > 0:
            return max(first, 0.0) / second
        return math.inf if first > 0 else math.nan

    @functools.cached_property
    def _noise(self) -> Floats:
        """The covariance of one report's scores that its randomization adds to that of the cell of a person."""
        cells = self._cells.ravel()
        sizes, directions = np.linalg.eigh(self.table.covariance * self.table.estimate.n - _multinomial(cells))
        return np.asarray((directions * np.maximum(sizes, 0.0)) @ directions.T)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        check_confidence(confidence)
        return self._interval(NormalDist().inv_cdf((1 + confidence) / 2))

    def _interval(self, z: float) -> tuple[float, float]:
        """Return the limits at a number of standard errors."""
        value = self.value
        if math.isnan(value):
            return 0.0, math.inf
        # A product that is estimated below 0 counts as 0, so the estimate may lie outside.
        return min(self._extreme(z, greatest=False), value), max(self._extreme(z, greatest=True), value)

    def _extreme(self, z: float, *, greatest: bool) -> float:
        """Return the greatest or the least odds ratio of tables that are z standard errors from the estimate.

        Each round takes the table where the tangent of the logarithm is greatest or least, with errors at the last one.
        """
        cells, n = self._cells.ravel(), self.table.estimate.n
        signs = _SIGNS if greatest else -_SIGNS
        table = np.maximum(cells, _LEAST_COUNT / n)
        for _ in range(_MOST_ROUNDS):
            gradient = signs / table
            step = (self._noise + _multinomial(table)) @ gradient / n
            farthest = cells + step * (z / math.sqrt(max(float(gradient @ step), _LEAST_VARIANCE)))
            change = np.maximum(farthest, table * _LEAST_FACTOR) - table
            table = table + change / 2
            if (table[signs < 0] < _EMPTY / n).any():
                return math.inf if greatest else 0.0
            if (np.abs(change) <= _TOLERANCE * table).all():
                break
        return float(np.exp(_SIGNS @ np.log(table)))

    @property
    def p_value(self) -> float:
        """The p-value of the null hypothesis that the odds ratio is 1."""

        value = self.value

        def has_one(z: float) -> bool:
            return value == 1 or (self._extreme(z, greatest=value < 1) >= 1) == (value < 1)

        if math.isnan(value):
            return 1.0
        # Errors depend on z, so intervals are not nested by construction. The first of them that contains 1 counts.
        low = 0.0
        for high in _STEPS:
            if has_one(high):
                break
            low = high
        else:
            return 0.0
        while high - low > _PRECISION:
            middle = (low + high) / 2
            low, high = (low, middle) if has_one(middle) else (middle, high)
        return _two_sided(low)


def _multinomial(table: Floats) -> Floats:
    """Return the covariance of the cell of one person who is drawn from a table."""
    return np.diag(table) - np.outer(table, table)


def _two_sided(z: float) -> float:
    """Return the probability that a normal number is more than z standard errors from its mean."""
    return math.erfc(z / math.sqrt(2))


@dataclass(frozen=True, eq=False, repr=False)
class CramersV(Association):
    """Cramér's V of a table: 0 if the attributes are independent, 1 if one of them determines the other.

    Parameters
    ----------
    table
        The table of both attributes, with two or more rows and columns.

    Notes
    -----
    V² = Σ (p_ij - p_i·p_j)²/(p_i·p_j)/(m - 1) with m the smaller number of rows and columns. Its plug-in estimate is
    biased upwards by the noise of the reports. The expected noise is subtracted here, and negative results become 0.

    The interval inverts a test. Under the null hypothesis that V has a given value, the deviations from independence
    are normal with the covariance of the table, and point in the estimated direction. Cells to which few reports
    contribute have the errors that follow from their upper limits. The distribution of the plug-in statistic is drawn
    20,000 times with a fixed seed. The lower limit is 0 if independence is not rejected.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(sex=sf.Domain(["f", "m"]), age=sf.Domain(["young", "middle", "old"]))
    >>> mechanism = sf.mechanisms.RandomizedResponse(people, 3)
    >>> counts = sf.Aggregate(mechanism.hash, 1000, [200, 200, 100, 190, 210, 100])
    >>> measure = sf.cross_table(sf.estimate(mechanism, counts)).cramers_v()
    >>> round(measure.value, 2), measure.interval()[0], measure.p_value > 0.5
    (0.0, 0.0, True)
    """

    measure: ClassVar[str] = "Cramér's V"

    def __post_init__(self) -> None:
        if min(self._cells.shape) < 2:
            got = Description("a single row or column")
            raise InvalidInput("cramers_v", "the table", "have two or more rows and columns", got)

    @functools.cached_property
    def _parts(self) -> tuple[float, float, Floats, Floats]:
        """The statistic Σ deviation²/(p_i·p_j), its expected noise, and draws of the noise along and in total.

        If independence is violated by φ, the statistic is φ² + 2·φ·(noise along) + (noise in total).
        """
        cells, covariance, wide = self._cells, self.table.covariance, self._wide_covariance()
        rows, columns = cells.shape
        unit = np.eye(rows * columns).reshape(rows, columns, -1)
        of_rows, of_columns = unit.sum(axis=1), unit.sum(axis=0)
        shares = [cells.sum(axis=1), cells.sum(axis=0)]
        for weights, share, name in zip((of_rows, of_columns), shares, self.table.questions, strict=True):
            # Rounding may turn the variance 0 of a total into a negative number.
            errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", weights, covariance, weights), 0.0))
            if (share <= _LEAST_SHARE * errors).any():
                raise NoAnswer(
                    f"the share of a value of {name!r} is not clearly above 0, so Cramér's V is not determined. Merge "
                    "rare values, or collect more reports."
                )
        # The deviations p_ij - p_i·p_j, without the bias of the product, and their covariance to first order.
        product_bias = of_rows @ covariance @ of_columns.T
        deviations = (cells - np.outer(*shares) + product_bias).ravel()
        jacobian = unit - shares[1][None, :, None] * of_rows[:, None] - shares[0][:, None, None] * of_columns[None]
        scale = 1 / np.sqrt(np.outer(*shares).ravel())
        scaled = scale[:, None] * jacobian.reshape(rows * columns, -1)
        sizes, directions = np.linalg.eigh(scaled @ wide @ scaled.T)
        sizes = np.sqrt(np.maximum(sizes, 0.0))
        point = directions.T @ (scale * deviations)
        statistic = float(point @ point)
        along = point / math.sqrt(statistic) if statistic > 0 else np.zeros(len(point))
        normal = insecure_generator(len(point)).standard_normal((_DRAWS, len(point))) * sizes
        noise = float(np.trace(scaled @ covariance @ scaled.T))
        return statistic, noise, normal @ along, np.sum(normal**2, axis=1)

    def _wide_covariance(self) -> Floats:
        """Return the covariance of the cells, where rare cells have the errors of their upper limits.

        The errors at the estimate are too small for cells to which few or no reports contribute.
        """
        covariance = self.table.covariance
        plain = np.sqrt(np.maximum(np.diag(covariance), _LEAST_VARIANCE))
        high = self.table.interval(_LEVEL)[1]
        above = (high - self._cells).ravel() / NormalDist().inv_cdf((1 + _LEVEL) / 2)
        scale = np.maximum(above / plain, 1.0)
        wide = covariance * np.outer(scale, scale)
        np.fill_diagonal(wide, np.maximum(plain * scale, 0.0) ** 2)
        return np.asarray(wide)

    @property
    def _greatest(self) -> float:
        """The square root of the greatest statistic, at which V is 1."""
        return math.sqrt(min(self._cells.shape) - 1)

    @property
    def value(self) -> float:
        """The estimate, in [0, 1]: the square root of the statistic without its expected noise."""
        statistic, noise, _, _ = self._parts
        return min(math.sqrt(max(statistic - noise, 0.0)) / self._greatest, 1.0)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        check_confidence(confidence)
        statistic, _, along, total = self._parts
        alpha = (1 - confidence) / 2

        def tail(size: float) -> float:
            return float(np.mean(size**2 + 2 * size * along + total >= statistic))

        low = 0.0 if tail(0.0) >= alpha else self._first(lambda size: tail(size) >= alpha)
        # A statistic below the median of pure noise says no more about V than the median does.
        bound = max(statistic, float(np.median(total)))
        high = self._first(lambda size: float(np.mean(size**2 + 2 * size * along + total <= bound)) < alpha)
        return low / self._greatest, high / self._greatest

    def _first(self, holds: Any) -> float:
        """Return the least size of the deviations at which a condition holds; the greatest possible if none does."""
        low, high = 0.0, self._greatest
        if not holds(high):
            return high
        while high - low > _PRECISION:
            middle = (low + high) / 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return (low + high) / 2

    @property
    def p_value(self) -> float:
        """The p-value of independence: the share of draws of pure noise that reach the statistic, at least 1/20,001."""
        statistic, _, _, total = self._parts
        return (1 + int(np.count_nonzero(total >= statistic))) / (_DRAWS + 1)
