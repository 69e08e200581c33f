"""Estimates of the distribution function."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato._core import (
    Floats,
)
from sfumato.estimation.answers import Answers
from sfumato.estimation.linear import LinearEstimate
from sfumato.questions import Distribution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.estimation.estimates import Estimate

__all__ = ["DistributionEstimate", "distribution_of"]


@dataclass(frozen=True, eq=False, repr=False)
class DistributionEstimate(Answers, question="distribution"):
    """The estimated distribution function: the share of people up to each value, as ``Estimate.cdf`` returns it.

    ``distribution[label]`` returns the share up to one value. The share up to the last value is 1, and the other
    attributes leave it out: they have k - 1 entries for k values.

    Parameters
    ----------
    estimate
        The estimate from which the shares are computed.
    question
        The question :class:`Distribution`, fitted to the domain of the estimate.

    Notes
    -----
    The shares in ``values`` are unbiased, so they may fall between two values or leave [0, 1]. ``monotone`` does not:
    quantiles and figures use it.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 20 + [2] * 10 + [3] * 10))
    >>> distribution = result.cdf()
    >>> distribution.labels, distribution.values.round(3).tolist()
    ((0, 1, 2), [0.8, 0.971, 0.986])
    >>> print(distribution[1])
    0.971429 ± 0.063
    >>> low, high = distribution.interval(0.9, simultaneous=True)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.63, 0.82, 0.86], [0.96, 1.0, 1.0])
    """

    _headings: ClassVar[tuple[str, str]] = ("value", "share")

    @property
    def labels(self) -> tuple[Any, ...]:
        """The values up to which shares are counted: the labels of the domain except the last."""
        return self.estimate.domain.labels[:-1]

    @property
    def _row_labels(self) -> tuple[Any, ...]:
        return self.labels

    @functools.cached_property
    def covariance(self) -> Floats:
        """The covariance matrix of the shares, in the order of ``labels``.

        Raises
        ------
        LimitExceeded
            If the domain has more than 20,000 values.
        """
        sums = self.estimate._covariance_for_sums
        half = len(sums) // 2
        for _ in range(2):  # for the rows, and then for the columns
            sums = np.cumsum(sums, axis=0)
            sums[half:] -= sums[-1].copy()  # shares above one half of the values are estimated from the other values
            sums = sums[:-1].T
        return sums

    @functools.cached_property
    def monotone(self) -> Floats:
        """The shares as a distribution function: non-decreasing and within [0, 1], in the order of ``labels``.

        They are the sums of ``Estimate.frequencies`` if these are a distribution, as with method ``"simplex"``.
        Otherwise they are the non-decreasing shares nearest to ``values``, weighted by the inverse variances (isotonic
        regression), and clipped to [0, 1].
        """
        from scipy.optimize import isotonic_regression

        frequencies = self.estimate.frequencies
        if frequencies.min() >= 0 and abs(float(frequencies.sum()) - 1) < 1e-9:
            return np.minimum(np.cumsum(frequencies)[:-1], 1.0)
        if not len(self):
            return np.zeros(0)
        fitted = isotonic_regression(self.values, weights=self.standard_errors**-2.0).x
        return np.asarray(np.clip(fitted, 0.0, 1.0))

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Return the lower and upper confidence limits of each share, within [0, 1].

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval of a share contains the true
            share.
        simultaneous
            If True, the limits are a band that contains the whole distribution function with this confidence. If False,
            each interval contains its share on its own.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, in the order of ``labels``. Limits of a band never decrease.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.

        Notes
        -----
        The levels of a band are those of ``Answers.interval``. A distribution function never decreases, so a lower
        limit holds for all greater values too, and an upper limit for all smaller ones. The band uses these limits,
        and it is widened where it would not contain ``monotone``.
        """
        low, high = super().interval(confidence, simultaneous=simultaneous)
        if simultaneous and len(self):
            low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
            low, high = np.minimum(low, self.monotone), np.maximum(high, self.monotone)
        return low, high

    def plot(self, confidence: float = 0.95, *, simultaneous: bool = True) -> Figure:
        """Draw the distribution function as a step function with its band.

        Parameters
        ----------
        confidence
            Confidence level of the band, above 0 and below 1.
        simultaneous
            If True, the band contains the whole distribution function with this confidence. If False, it contains each
            share on its own.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        return super().plot(confidence, simultaneous=simultaneous)

    def __getitem__(self, label: object) -> LinearEstimate:
        """Return the share of people up to a value; raise UnknownLabel, which is also a KeyError, if it is unknown."""
        if label in self.estimate.domain:
            row = self.estimate.domain.index(label)
            return self._number(row) if row < len(self) else LinearEstimate(1.0, 0.0)
        answer: LinearEstimate = super().__getitem__(label)
        return answer


def distribution_of(estimate: Estimate) -> DistributionEstimate:
    """Return the distribution function of an estimate."""
    return DistributionEstimate(estimate, Distribution().checked(estimate.domain))
