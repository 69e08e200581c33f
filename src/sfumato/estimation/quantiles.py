"""Estimates of quantiles, from the distribution function."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    Floats,
    FrozenData,
    Result,
    is_number,
    percent,
    plot_result,
    quantity,
    read_number,
    reads_document,
)
from sfumato.errors import InvalidInput, Undecided
from sfumato.estimation.answers import Answers
from sfumato.estimation.distributions import DistributionEstimate, distribution_of
from sfumato.estimation.documents import VERSION, check_document, read_estimate, read_header
from sfumato.estimation.linear import check_confidence
from sfumato.questions import Quantiles, numeric_labels

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["QuantileAnswers", "QuantileEstimate"]

#: Difference between a share and a level that is rounding.
_ROUNDING = 1e-12
#: Confidence level of one standard error to each side of a normal variable.
_ONE_SIGMA = 2 * NormalDist().cdf(1) - 1

_SUBJECT = "QuantileEstimate.from_dict"


@dataclass(frozen=True, eq=False, repr=False)
class QuantileEstimate(FrozenData, Result):
    """An estimated quantile, as ``Estimate.quantile`` returns it: the median at level 0.5.

    The quantile is the least value up to which the share of people is at least ``level``. It is a value of the domain.

    Parameters
    ----------
    distribution
        The distribution function from which the quantile is computed.
    level
        The level, above 0 and below 1.

    Notes
    -----
    The estimated quantile is that of ``DistributionEstimate.monotone``. The interval inverts the limits of single
    shares. A value is below it if this value and all smaller ones have an upper limit below the level. A value is above
    it if the value before it and all greater ones have a lower limit of at least the level. An error on either side
    requires that one given share lies outside its interval. The interval therefore has the coverage of these intervals,
    although the shares of different values depend on each other.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 40 + [1] * 40 + [2] * 10 + [3] * 10))
    >>> median = result.quantile(0.5)
    >>> median.value, median.interval(0.95)
    (1, (0, 1))
    """

    distribution: DistributionEstimate
    level: float

    #: Name of the class in documents.
    format: ClassVar[str] = "sfumato-quantile-estimate"

    def __post_init__(self) -> None:
        if not (is_number(self.level) and 0 < self.level < 1):
            hint = "Use 0.5 for the median."
            raise InvalidInput("quantile", "the level", "lie between 0 and 1", self.level, hint=hint)

    @functools.cached_property
    def _position(self) -> int:
        """The index of the estimated quantile in the domain."""
        return int(np.searchsorted(self.distribution.monotone, self.level - _ROUNDING))

    @property
    def value(self) -> Any:
        """The estimated quantile: a label of the domain."""
        return self.distribution.estimate.domain.label(self._position)

    @functools.cached_property
    def standard_error(self) -> float:
        """Half the length of the interval of confidence level 68.3%; NaN if the labels are not numbers.

        This is the standard error of a normal estimate. The estimate of a quantile is a value of the domain, so its
        standard error is 0 if the interval is a single value.
        """
        numbers = numeric_labels(self.distribution.estimate.domain)
        if numbers is None:
            return math.nan
        low, high = self._positions(_ONE_SIGMA)
        return float(numbers[high] - numbers[low]) / 2

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Return the least and the greatest value that the quantile may have.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval contains the true quantile.

        Returns
        -------
        tuple
            Two labels of the domain; the interval contains both.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.
        """
        low, high = self._positions(confidence)
        domain = self.distribution.estimate.domain
        return domain.label(low), domain.label(high)

    def _positions(self, confidence: float) -> tuple[int, int]:
        """Return the indices of the interval in the domain."""
        check_confidence(confidence)
        shares, level = self.distribution, self.level
        errors, unseen = shares._errors.T
        # Beyond twice the normal limits, and twice the reports that could be missing, no law reaches the level.
        alpha = 1 - confidence
        margins = -2 * NormalDist().inv_cdf(alpha / 2) * errors + 4 * math.log(2 / alpha) * unseen
        low, high = shares.values - margins, shares.values + margins
        for row in np.flatnonzero((low < level) & (level <= high)).tolist():
            low[row], high[row] = shares._number(row).interval(confidence)
        reached, below = np.flatnonzero(high >= level - _ROUNDING), np.flatnonzero(low < level + _ROUNDING)
        first = int(reached[0]) if len(reached) else len(shares)
        last = int(below[-1]) + 1 if len(below) else 0
        return min(first, self._position), max(last, self._position)

    # -- tables and pictures -----------------------------------------------------------------------------------

    def to_pandas(self, confidence: float = 0.95) -> pandas.DataFrame:
        """Return the quantile as a pandas DataFrame with one row.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pandas.DataFrame
            The columns ``level``, ``value``, ``standard_error``, ``low`` and ``high``.
        """
        return super().to_pandas(confidence)

    def to_arrow(self, confidence: float = 0.95) -> pyarrow.Table:
        """Return the quantile as an Arrow table with one row.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``.
        """
        return super().to_arrow(confidence)

    def plot(self, confidence: float = 0.95) -> Figure:
        """Draw the distribution function with its band, and the quantile with its interval.

        Parameters
        ----------
        confidence
            Confidence level of the band and of the interval, above 0 and below 1.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence)
        return figure

    def _columns(self, confidence: float = 0.95) -> Mapping[str, Sequence[Any]]:
        low, high = self.interval(confidence)
        numbers = {"level": self.level, "value": self.value, "standard_error": self.standard_error}
        return {name: [entry] for name, entry in {**numbers, "low": low, "high": high}.items()}

    def _title(self) -> str:
        reports = quantity(self.distribution.estimate.n, "report")
        return f"quantile with its {percent(0.95)} interval, {reports}"

    def __repr__(self) -> str:
        return f"QuantileEstimate(level={self.level!r}, value={self.value!r})"

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the quantile as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The level and the document of the estimate, from which the quantile follows.
        """
        estimate = self.distribution.estimate.to_dict()
        return {"format": self.format, "version": VERSION, "level": float(self.level), "estimate": estimate}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> QuantileEstimate:
        """Return the quantile that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        QuantileEstimate
            A quantile equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or the estimate contradicts its counts (see ``Estimate.from_dict``).
        """
        read_header(_SUBJECT, document, cls.format)
        document = check_document(_SUBJECT, document, ("level", "estimate"))
        level = read_number(_SUBJECT, "level", document["level"])
        return cls(distribution_of(read_estimate(document["estimate"])), level)


@dataclass(frozen=True, eq=False, repr=False)
class QuantileAnswers(Answers, question="quantiles"):
    """The estimated quantiles that answer the question :class:`Quantiles`.

    ``answers[level]`` returns the quantile at one level.

    Parameters
    ----------
    estimate
        The estimate from which the quantiles are computed.
    question
        The question :class:`Quantiles`, fitted to the domain of the estimate.

    Examples
    --------
    >>> from sfumato import Domain, Quantiles, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 40 + [1] * 40 + [2] * 10 + [3] * 10))
    >>> answers = result.answers(Quantiles([0.25, 0.75]))
    >>> answers.values.tolist()
    [0, 1]
    >>> answers[0.75].interval(0.95)
    (1, 1)
    """

    _headings: ClassVar[tuple[str, str]] = ("level", "value")

    @property
    def names(self) -> tuple[Any, ...]:
        """The levels of the quantiles."""
        question = self.question
        return question.levels if isinstance(question, Quantiles) else ()

    @functools.cached_property
    def _quantiles(self) -> list[QuantileEstimate]:
        """The quantiles, which share one distribution function."""
        distribution = distribution_of(self.estimate)
        return [QuantileEstimate(distribution, float(level)) for level in self.names]

    def _number(self, row: int) -> Any:
        return self._quantiles[row]

    @functools.cached_property
    def values(self) -> npt.NDArray[Any]:
        """The estimated quantiles, labels of the domain, in the order of the levels."""
        return np.array([each.value for each in self._quantiles])

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each quantile (see ``QuantileEstimate.standard_error``)."""
        return np.array([each.standard_error for each in self._quantiles])

    @property
    def covariance(self) -> Floats:
        """Not defined for quantiles.

        Raises
        ------
        Undecided
            Always, because quantiles are values of the domain and not sums of frequencies.
        """
        raise Undecided(
            "the covariance of quantiles is not known, because they are not sums of frequencies. Use "
            "interval(simultaneous=True), or the covariance of cdf()."
        )

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Any, Any]:
        """Return the least and the greatest value that each quantile may have.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval of a quantile contains the
            true one.
        simultaneous
            If True, all intervals together contain the true quantiles with this confidence (Bonferroni correction). If
            False, each interval does so on its own.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, labels of the domain, in the order of the levels.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.
        """
        tests = len(self) if simultaneous else 1
        check_confidence(confidence, tests)
        limits = [each.interval(1 - (1 - confidence) / tests) for each in self._quantiles]
        return np.array([low for low, _ in limits]), np.array([high for _, high in limits])

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        return {name: list(column) for name, column in self._columns().items()}
