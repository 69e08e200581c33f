"""Numbers estimated from people with survey weights, or from strata with known totals.

A stratum h has the known share T_h of the population. Without totals, all people are one stratum. In a stratum, class c
has weight w_c and n_c reports, whose mean score is f_c with variance s_c of one score. The estimate is

    θ = Σ_h T_h·θ_h,   θ_h = Σ_c a_c·f_c,   a_c = w_c·n_c / Σ_c w_c·n_c   (Hájek's ratio within each stratum).

Weights and totals are public constants; people and reports are random. The linearized variance of the ratio is

    V = Σ_h T_h² Σ_c a_c²·(s_c + (f_c - θ_h)²)/n_c,

because a person contributes w·(score - θ_h)/Σw (Särndal, Swensson and Wretman 1992, section 5.7). The score contains
the randomization of the report and the sampling of the person. The second term is the randomness of the class sizes.
With one class per stratum it is 0, and V is the variance given the sizes of the strata, as post-stratification requires
(Holt and Smith 1979).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sfumato._core import Floats, number_document, read_integer, read_items, read_number
from sfumato.errors import InvalidInput
from sfumato.estimation.documents import is_close
from sfumato.estimation.linear import LinearEstimate, check_confidence, weighted_sum
from sfumato.estimation.sources import FrequencyEstimate

__all__ = ["Stratum", "WeightClass", "WeightedEstimate", "weighted_covariance", "weighted_estimate"]

_SUBJECT = "LinearEstimate.from_dict"


class WeightClass(NamedTuple):
    """People of one stratum who have the same weight, as ``WeightedEstimate.classes`` lists them.

    Parameters
    ----------
    stratum
        Number of the stratum, from 0.
    share
        The share of the class in the estimate; all shares add up to one.
    n
        The number of reports.
    value
        The estimate from the reports of this class.
    variance
        The variance of the score of one report, from randomization and sampling together.

    Examples
    --------
    >>> from sfumato.estimation import WeightClass
    >>> WeightClass(stratum=0, share=0.25, n=100, value=0.4, variance=1.5).share
    0.25
    """

    stratum: int
    share: float
    n: int
    value: float
    variance: float


class Stratum(NamedTuple):
    """The weight of a stratum in the population, and the number of each of its weight classes."""

    total: float
    #: Weight, number of reports, and the estimate from these reports.
    classes: Sequence[tuple[int, int, LinearEstimate]]


@dataclass(frozen=True, eq=False, repr=False)
class WeightedEstimate(LinearEstimate):
    """An estimated number of a weighted survey, with its design effect.

    ``GroupedEstimate.answers`` returns such numbers if people have weights or the totals of strata are known.

    Parameters
    ----------
    value
        The estimated number.
    standard_error
        The standard error, from randomization, sampling and weighting together.
    unseen
        The distance by which one additional report could move the number (see :class:`LinearEstimate`).
    terms
        The estimates of which the number is a sum with known coefficients; empty if the shares of weight classes are
        random.
    rounding
        The largest error that bins add (see :class:`LinearEstimate`).
    clipped
        The bounds to which numbers were clipped; None for other numbers.
    warnings
        Sentences about ends of the range to which many numbers were clipped.
    classes
        The weight classes (:class:`WeightClass`), from which errors and limits follow.
    ends
        The least and the greatest possible number.

    Notes
    -----
    Weights are public constants, and people are drawn independently with probabilities in inverse proportion to their
    weights. The estimate is Hájek's ratio Σ weight·score / Σ weight. Its linearized variance includes the sampling of
    people, the randomization of their reports, and the random sizes of the weight classes.

    If the shares of the classes are random, the interval contains the numbers θ for which the estimate differs from θ
    by at most z standard errors, where the standard error is the one at θ. It is wider than the normal interval by
    about the factor 1/√(1 - z²/m) for the effective sample size m, and is the whole range of possible numbers if m is
    at most z².

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain.range(2), "ln 8")
    >>> reports, weights = [0] * 60 + [1] * 40, [1] * 50 + [3] * 50
    >>> grouped = sf.estimate_groups(mechanism, sf.aggregate_groups(mechanism, reports, weights=weights))
    >>> (mean,) = grouped.answers("mean", by=[]).total
    >>> print(mean, round(mean.design_effect, 2), round(mean.effective_n))
    0.628571 ± 0.068 1.07 94
    """

    classes: tuple[WeightClass, ...] = field(kw_only=True)
    ends: tuple[float, float] = field(kw_only=True)

    format: ClassVar[str] = "sfumato-weighted-estimate"
    _further_keys: ClassVar[tuple[str, ...]] = ("classes", "ends")

    @property
    def n(self) -> int:
        """The number of reports with a positive weight."""
        return sum(each.n for each in self.classes)

    @property
    def design_effect(self) -> float:
        """The variance of the number, divided by that from as many people drawn directly from the population.

        It exceeds 1 if weights differ without explaining the values. It is below 1 if strata with known totals do
        explain them.
        """
        share, n, value, variance = _arrays(self.classes)
        spread = float(share @ (variance + (value - self.value) ** 2))
        if len(self.classes) == 1 or spread == 0:
            return 1.0
        return self.standard_error**2 * float(n.sum()) / spread

    @property
    def effective_n(self) -> float:
        """The number of people, drawn directly from the population, that would give the same standard error."""
        return self.n / self.design_effect

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the lower and upper confidence limits of the number.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1.

        Returns
        -------
        tuple of float
            The lower and the upper limit, within the range of possible numbers.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.
        """
        if self._form is not None:
            # The known shares of strata sum to one only up to rounding.
            low, high = (min(max(limit, self.ends[0]), self.ends[1]) for limit in super().interval(confidence))
            return low, high
        check_confidence(confidence)
        z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
        slope, curve = self._residuals
        low, high = self.ends
        if z2 * curve < 1:
            # The numbers θ = value + d with d² ≤ z²·V(d), where V(d) = V - 2·d·slope + d²·curve.
            a, b = 1 - z2 * curve, z2 * slope
            root = math.sqrt(b * b + a * z2 * self.standard_error**2)
            floor = -math.log(1 - confidence) * self.unseen
            low = max(low, self.value + min((-b - root) / a, -floor))
            high = min(high, self.value + max((-b + root) / a, floor))
        inside = min(max(self.value, self.ends[0]), self.ends[1])
        return min(low, inside), max(high, inside)

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of the null hypothesis that the true number equals ``null``.

        Parameters
        ----------
        null
            The number under the null hypothesis.

        Returns
        -------
        float
            The p-value: the least α for which ``interval(1 - α)`` does not contain ``null``.
        """
        if self._form is not None:
            return super().p_value(null)
        if not self.ends[0] <= null <= self.ends[1]:
            return 0.0
        distance = null - self.value
        if null == min(max(self.value, self.ends[0]), self.ends[1]):
            return 1.0
        slope, curve = self._residuals
        variance = self.standard_error**2 - 2 * distance * slope + distance**2 * curve
        z2 = min(distance**2 / variance if variance > 0 else math.inf, 1 / curve)
        normal = 2 * NormalDist().cdf(-math.sqrt(z2))
        return max(normal, math.exp(-abs(distance) / self.unseen) if self.unseen else 0.0)

    @property
    def _residuals(self) -> tuple[float, float]:
        """How the variance changes with the tested number: its slope and its curvature."""
        share, n, value, _ = _arrays(self.classes)
        residual = value - _stratum_means(self.classes)
        return float((share**2 / n) @ residual), float((share**2 / n).sum())

    def _further(self) -> dict[str, Any]:
        rows = [
            [each.stratum, number_document(each.share), each.n, *map(number_document, each[3:])]
            for each in self.classes
        ]
        return {"classes": rows, "ends": [number_document(end) for end in self.ends]}

    @classmethod
    def _read_further(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        classes = []
        for row in read_items(_SUBJECT, "classes", document["classes"]):
            stratum, share, n, value, variance = read_items(_SUBJECT, "a class", row, 5)
            classes.append(
                WeightClass(
                    read_integer(_SUBJECT, "a stratum", stratum),
                    read_number(_SUBJECT, "a share", share, least=0.0, most=1.0 + 1e-9),
                    read_integer(_SUBJECT, "the n of a class", n, 1),
                    read_number(_SUBJECT, "the value of a class", value),
                    read_number(_SUBJECT, "a variance", variance, least=0.0),
                )
            )
        low, high = (read_number(_SUBJECT, "an end", end) for end in read_items(_SUBJECT, "ends", document["ends"], 2))
        return {"classes": tuple(classes), "ends": (low, high)}

    def _check_read(self) -> None:
        if not self.classes or abs(sum(each.share for each in self.classes) - 1) > 1e-9:
            raise InvalidInput(_SUBJECT, "classes", "have shares that sum to one", list(self.classes))
        if not self.ends[0] <= self.ends[1]:
            raise InvalidInput(_SUBJECT, "ends", "be a range of numbers", list(self.ends))
        expected = (*_moments(self.classes),)
        for name, number, must in zip(
            ("value", "standard_error"), (self.value, self.standard_error), expected, strict=True
        ):
            if not (math.isfinite(must) and is_close(np.array([number]), np.array([must]))):
                raise InvalidInput(_SUBJECT, name, f"be {must}, as its classes imply", number)


def weighted_estimate(strata: Sequence[Stratum], ends: tuple[float, float]) -> WeightedEstimate:
    """Return the estimate from strata whose totals are not all zero, and whose weights are not all zero either."""
    whole = sum(stratum.total for stratum in strata)
    parts: list[tuple[float, LinearEstimate]] = []
    classes: list[WeightClass] = []
    for number, stratum in enumerate(strata):
        weighted = [(weight * n, n, estimate) for weight, n, estimate in stratum.classes if weight * n > 0]
        size = sum(mass for mass, _, _ in weighted)
        for mass, n, estimate in weighted:
            share = stratum.total / whole * (mass / size)
            parts.append((share, estimate))
            variance = n * estimate.standard_error**2
            classes.append(WeightClass(number, share, n, estimate._unbiased, variance))
    total = weighted_sum(parts)
    single = len(classes) == 1
    value, error = (total.value, total.standard_error) if single else _moments(classes)
    # The terms determine the law only if the shares of the classes are known numbers.
    terms = total.terms if len({each.stratum for each in classes}) == len(classes) else ()
    unseen = total.unseen if terms else max(share * _unit(estimate) for share, estimate in parts)
    more: dict[str, Any] = {
        "unseen": unseen,
        "rounding": total.rounding,
        "clipped": total.clipped,
        "warnings": total.warnings,
    }
    return WeightedEstimate(value, error, **more, terms=terms, classes=tuple(classes), ends=ends)


def _unit(estimate: LinearEstimate) -> float:
    """Return how far one additional report could move an estimate; the law of a mean has the least bound."""
    if estimate._form is None or isinstance(estimate, FrequencyEstimate) or not estimate.terms:
        return estimate.unseen
    return min(estimate.unseen, estimate._form.unit)


def weighted_covariance(
    classes: Sequence[tuple[int, float, int]], values: Floats, covariances: Sequence[Floats]
) -> Floats:
    """Return the covariance of several numbers from the same weight classes.

    ``classes`` has the stratum, the share and the number of reports of each class; ``values`` has a row per class and a
    column per number; ``covariances`` are those of the numbers of each class.
    """
    rows = [WeightClass(stratum, share, n, 0.0, 0.0) for stratum, share, n in classes]
    share, n, _, _ = _arrays(rows)
    residuals = values - np.stack([_stratum_means(rows, column) for column in values.T], axis=1)
    between = (residuals * (share**2 / n)[:, None]).T @ residuals
    within = sum((each**2 * covariance for each, covariance in zip(share, covariances, strict=True)), np.zeros(1))
    return np.asarray(within + between)


def _arrays(classes: Sequence[WeightClass]) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the shares, the numbers of reports, the values and the variances of classes."""
    share, n, value, variance = np.array([each[1:] for each in classes], np.float64).reshape(-1, 4).T
    return share, n, value, variance


def _stratum_means(classes: Sequence[WeightClass], values: Floats | None = None) -> Floats:
    """Return the weighted mean of the stratum of each class."""
    share, _, class_values, _ = _arrays(classes)
    values = class_values if values is None else values
    place = np.unique([each.stratum for each in classes], return_inverse=True)[1]
    totals = np.bincount(place, weights=share)
    sums = np.bincount(place, weights=share * values)
    # A stratum with one class has exactly the mean of that class.
    is_single = np.bincount(place) == 1
    return np.where(is_single[place], values, (sums / np.where(totals > 0, totals, 1.0))[place])


def _moments(classes: Sequence[WeightClass]) -> tuple[float, float]:
    """Return the estimate and its standard error."""
    share, n, value, variance = _arrays(classes)
    residual = value - _stratum_means(classes)
    return float(share @ value), math.sqrt(float((share**2 / n) @ (variance + residual**2)))
