"""What an estimate is: frequencies with their covariance, from which every interval follows."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, is_number, plot_result
from sfumato.domain import Domain, read_numbers
from sfumato.errors import InvalidInput, LimitExceeded, MissingExtra
from sfumato.mechanisms import (
    Cohort,
    Fit,
    Form,
    FormLaw,
    SamplingDistribution,
    ScoreLaw,
    confidence_limits,
    tilted,
    with_some_mass,
)

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["Estimate", "LawHolder", "LinearEstimate", "frequency_of", "weighted_sum"]


#: A dense covariance of more values than this is refused (it would take over 3 GB).
_LARGEST_COVARIANCE = 20_000
#: A variance that is this part of the square of what one report counts is rounding: all reports said the same.
_SILENT = 1e-12
#: Different weights that the make-up of the people is followed for; more are put into as many bins.
_MOST_BINS = 64


@dataclass(frozen=True)
class LinearEstimate:
    """An estimated number with its standard error.

    ``unseen``: how far one more report could move it. A share of people that no report told of is not ruled out by n
    reports if they miss it with probability (1 - share)^n ≥ α, so no normal interval reaches less than ln(1/α) such
    reports. ``terms`` has for each independent group of people a coefficient and what its reports estimate. Limits come
    from their law; without terms they come from the normal law.
    """

    value: float
    standard_error: float
    unseen: float = field(default=0.0, kw_only=True)
    terms: tuple[tuple[float, Any], ...] = field(default=(), kw_only=True, compare=False, repr=False)

    @functools.cached_property
    def _form(self) -> Form | None:
        """The law of the estimate, or None if it is not known."""
        if not self.terms:
            return Form(self.value, []) if self._is_known else None
        return Form(self.value, [(coefficient, source.law) for coefficient, source in self.terms])

    @property
    def _is_known(self) -> bool:
        """Whether this is a constant: there is no error, and reports that were not seen cannot move it."""
        return not self.terms and self.standard_error == 0 and self.unseen == 0

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the lower and upper confidence limits.

        Parameters
        ----------
        level
            The confidence: how often the interval holds the true number.

        Notes
        -----
        The limits invert the law of the estimate (see ``sfumato.mechanisms.estimators.forms``) and lie within the
        numbers that are possible: a share within [0, 1], a mean between the least and the greatest weight. If the law
        is not known they are normal, and not nearer than reports that were not seen leave them.
        """
        _check_level(level)
        if self._form is not None:
            return self._form.limits(1 - level)
        quantile = NormalDist().inv_cdf((1 + level) / 2)
        score_bounds = max(quantile * self.standard_error, -math.log(1 - level) * self.unseen)
        return self.value - score_bounds, self.value + score_bounds

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of ``null``: the least α at which the interval of level 1 - α leaves it out."""
        if self._form is not None:
            return self._form.p_value(null)
        distance = abs(self.value - null)
        if distance == 0:
            return 1.0
        normal = 2 * NormalDist().cdf(-distance / self.standard_error) if self.standard_error else 0.0
        return max(normal, math.exp(-distance / self.unseen) if self.unseen else 0.0)

    def __sub__(self, other: LinearEstimate) -> LinearEstimate:
        """Return the difference of two estimates from different people."""
        return weighted_sum([(1.0, self), (-1.0, other)])

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.standard_error:.2g}"


def weighted_sum(parts: Sequence[tuple[float, LinearEstimate]]) -> LinearEstimate:
    """Return the estimate of Σ weight·number, of numbers that are estimated from different people."""
    value = sum(weight * part.value for weight, part in parts)
    error = math.hypot(*(weight * part.standard_error for weight, part in parts))
    # No report of λ and of μ expected ones has probability e^-(λ+μ), and they differ by no more than the greater.
    unseen = max(abs(weight) * part.unseen for weight, part in parts)
    terms: tuple[tuple[float, LawSource], ...] = ()
    if all(part.terms or part._is_known for _, part in parts):
        terms = tuple((weight * coefficient, source) for weight, part in parts for coefficient, source in part.terms)
    return LinearEstimate(value, error, unseen=unseen, terms=terms)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated frequencies of the values of a domain.

    ``frequencies`` are those of the chosen method. Errors and intervals are those of the *unbiased* estimate, whatever
    the method: a projection can only come closer to the truth, and honest intervals do not shrink because of it.
    ``estimator`` made them from the counts; ``fit`` describes the maximum-likelihood search of method "mle".
    """

    domain: Domain
    n: int
    method: str
    frequencies: Floats
    unbiased: Floats
    #: A distribution near the unbiased estimate, at which variances are computed: never negative, consistent.
    nearest: Floats
    estimator: SamplingDistribution
    fit: Fit | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """The values that the frequencies belong to, in the same order."""
        return self.domain.labels

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each frequency: randomization and sampling together.

        Of a value for which all reports said the same, as if one of them had been another.
        """
        return np.sqrt(np.maximum(self._variances, self.least_variances) / self.n)

    @functools.cached_property
    def _variances(self) -> Floats:
        """The variance of each frequency from one report, at the nearest distribution."""
        return np.maximum(self.estimator.variances(self.nearest), 0)

    @functools.cached_property
    def _far(self) -> Floats:
        """The most that one report may count above or below each frequency."""
        least, greatest = self.estimator.honest_score_bounds()
        return np.maximum(greatest - self.nearest, self.nearest - least)

    @functools.cached_property
    def _revealed(self) -> tuple[npt.NDArray[np.int64], Floats]:
        """Return the revealed values, and the number of reports that reveal each."""
        revealed = np.flatnonzero(self.estimator.revealed())
        return revealed, np.clip(
            self.unbiased[revealed] / self.estimator.honest_score_bounds()[1][revealed], 0, 1
        ) * self.n

    @functools.cached_property
    def _silent(self) -> npt.NDArray[np.bool_]:
        """For which values all reports said the same: no variance can be computed from them."""
        silent = self._variances < _SILENT * self._far**2
        revealed, told = self._revealed
        silent[revealed] = np.minimum(told, self.n - told) < 0.5
        return np.asarray(silent & (len(self.domain) > 1))  # of a single value there is nothing else to say

    @functools.cached_property
    def least_variances(self) -> Floats:
        """The variance from one report that each frequency has at least.

        Where all reports said the same, as if one in n had been another, or as few as can be if all people had it.
        """
        share = np.minimum(1 / max(self.n, 2), 1 / np.maximum(self._far, 1))
        return np.where(self._silent, share * (1 - share) * self._far**2, self.estimator.least_variances())

    @functools.cached_property
    def covariance(self) -> Floats:
        """The covariance matrix of the unbiased frequencies."""
        if len(self.domain) > _LARGEST_COVARIANCE:
            raise LimitExceeded(
                f"a covariance of {len(self.domain)} values is refused (at most {_LARGEST_COVARIANCE}); "
                "standard_errors has its diagonal"
            )
        return self.estimator.covariance(self.nearest) / self.n

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Return lower and upper confidence limits of each frequency, within [0, 1].

        Parameters
        ----------
        level
            The confidence: how often the interval of a value holds its true frequency.
        simultaneous
            Whether all intervals together hold with this confidence (Bonferroni).

        Notes
        -----
        The limits invert the law of the unbiased estimate (see ``sfumato.mechanisms.estimators.limits``): the binomial
        law of a value's count where it has one, elsewhere the law of the sum of scores by its characteristic function,
        and the normal law for large counts. An interval is a single point only if the domain has a single value. It is
        widened to hold a projected or fitted frequency that lies outside.
        """
        tests = len(self.domain) if simultaneous else 1
        _check_level(level, tests)
        if len(self.domain) == 1:
            return np.ones(1), np.ones(1)
        laws = self.estimator.score_laws(self.nearest, self.n)
        low, high = confidence_limits(laws, self.unbiased, (1 - level) / tests)
        inside = np.clip(self.frequencies, 0, 1)
        return np.minimum(low, inside), np.maximum(high, inside)

    @property
    def expected_tv(self) -> float:
        """The expected total variation error of the unbiased frequencies, in the normal approximation."""
        return float(np.sum(np.sqrt(self._variances / self.n))) * float(np.sqrt(2 / np.pi)) / 2

    def linear(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> LinearEstimate:
        """The estimate of Σ weight·frequency: a share of a group, a mean of numeric labels, a contrast.

        Weights are in domain order, or have labels (a pandas Series) and are aligned by them; a mapping may leave out
        values of weight zero. Frequencies sum to one: where there are two different weights, the sum is estimated from
        the frequencies of the fewer values, and a sum with one weight alone is known.
        """
        vector = self._weights(weights)
        source: LawSource
        different = np.unique(vector)
        if len(different) == 1:
            return LinearEstimate(float(vector[0]), 0.0)
        if len(different) == 2:
            chosen = vector == different[1]
            sign = 1.0 if 2 * np.count_nonzero(chosen) <= len(vector) else -1.0
            members = np.flatnonzero(chosen if sign > 0 else ~chosen)
            base, gap = float(different[0 if sign > 0 else 1]), sign * float(different[1] - different[0])
            one_way = np.zeros(len(vector))
            one_way[members] = 1.0
            share = float(one_way @ self.unbiased)
            source = (
                FrequencySource(LawHolder(self), int(members[0])) if len(members) == 1 else ShareSource(self, members)
            )
            value = base + gap * share
            error, unseen = self._linear_error(gap * one_way)
        else:
            value, gap, source = float(vector @ self.unbiased), float(np.ptp(vector)), MeanSource(self, vector)
            error, unseen = self._linear_error(vector)
        return LinearEstimate(value, error, unseen=unseen, terms=((gap, source),))

    def _linear_error(self, vector: Floats) -> tuple[float, float]:
        """Return the standard error of Σ weight·frequency, and how far one more report could move it."""
        # How far one report of each value moves the sum: not at all if all values have one weight.
        expected = float(vector @ self.nearest)
        least = float(((vector - expected) ** 2 * self.least_variances).max())
        variance = max(self.estimator.variance(vector, self.nearest), least)
        # For a group of values with one weight a report counts once, however much it counts for each of them.
        group = self.estimator.known_groups()
        least, greatest = np.full((2, group.max() + 1), np.inf) * [[1], [-1]]
        np.minimum.at(least, group, vector)
        np.maximum.at(greatest, group, vector)
        counts = np.where((least == greatest)[group], 1.0, self._far)
        return (variance / self.n) ** 0.5, float((np.abs(vector - expected) * counts).max()) / self.n

    def share(self, values: object) -> LinearEstimate:
        """The share of people whose value is one of these: a value, or several of them in a list or a column."""
        if isinstance(values, Mapping):
            raise InvalidInput("share", "values", "be a value, or a list of values", values)
        # A text is one value, never its letters; a tuple is one value of a product or a grid, or several of others.
        single = not isinstance(values, Iterable) or isinstance(values, str)
        single = single or (isinstance(values, tuple) and values in self.domain)
        chosen = [values] if single else list(cast("Iterable[object]", values))
        weights = np.zeros(len(self.domain))
        weights[[self.domain.index(value) for value in chosen]] = 1.0
        return self.linear(weights)

    def mean(self) -> LinearEstimate:
        """The mean of numeric labels."""
        labels = self.domain.labels
        if not all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels):
            raise InvalidInput("mean", "the labels", "be numbers", labels[0])
        return self.linear(np.array(labels, dtype=np.float64))

    def _weights(self, weights: Mapping[Any, float] | Sequence[float] | Floats) -> Floats:
        return read_numbers(self.domain, weights, "linear", "weights", absent=0.0)

    def influence(self, fraction: float) -> Floats:
        """The most that a fraction of dishonest reports can move each frequency, up or down."""
        if not (is_number(fraction) and 0 <= fraction <= 1):
            raise InvalidInput("influence", "fraction", "lie in [0, 1]", fraction)
        low, high = self.estimator.score_bounds()
        return fraction * np.maximum(high - self.nearest, self.nearest - low)

    def to_arrow(self, level: float = 0.95, *, simultaneous: bool = False) -> pyarrow.Table:
        """A table: value, frequency, standard_error, low, high; the last two are those of ``interval``."""
        try:
            import pyarrow
        except ImportError:
            raise MissingExtra("arrow", "an estimate as an Arrow table") from None
        low, high = self.interval(level, simultaneous=simultaneous)
        labels = [str(v) if isinstance(v, tuple) else v for v in self.domain.labels]
        return pyarrow.table(
            {
                "value": labels,
                "frequency": self.frequencies,
                "standard_error": self.standard_errors,
                "low": low,
                "high": high,
            }
        )

    def plot(self, level: float = 0.95, truth: Any = None) -> Figure:
        """A picture: bars with their intervals, a line where there are many, a map where the domain is a grid."""
        figure: Figure = plot_result(self, level, truth)
        return figure

    def __str__(self) -> str:
        low, high = self.interval()
        rows = [
            f"{label!s:>12}  {frequency:9.5f}  [{a:.5f}, {b:.5f}]"
            for label, frequency, a, b in zip(self.domain, self.frequencies, low, high, strict=False)
        ]
        shown = rows if len(rows) <= 20 else [*rows[:20], f"… {len(rows) - 20} more"]
        return "\n".join([f"{self.n} reports, method {self.method}, 95% intervals", *shown])


# -- the laws of linear estimates ----------------------------------------------------------------------------


class LawHolder:
    """The laws of all frequencies of an estimate, computed once when the first is needed."""

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate

    @functools.cached_property
    def rows(self) -> Sequence[ScoreLaw]:
        """The laws, with a row per value."""
        return self.estimate.estimator.score_laws(self.estimate.nearest, self.estimate.n)


class LawSource(ABC):
    """A number in [0, 1] that an estimate estimates, and the law of its estimate."""

    @functools.cached_property
    def law(self) -> FormLaw:
        """The law, computed when it is first needed."""
        return self._law()

    @abstractmethod
    def _law(self) -> FormLaw: ...


@dataclass(frozen=True, eq=False)
class FrequencySource(LawSource):
    """The frequency of one value."""

    holder: LawHolder
    index: int

    def _law(self) -> FormLaw:
        estimate, x = self.holder.estimate, self.index
        rows = [law.rows(np.array([x])) for law in self.holder.rows]
        return FormLaw.of_rows(rows, float(estimate.unbiased[x]), min(max(float(estimate.frequencies[x]), 0.0), 1.0))


@dataclass(frozen=True, eq=False)
class ShareSource(LawSource):
    """The share of people who have one of some values."""

    estimate: Estimate
    members: npt.NDArray[np.int64]

    def _law(self) -> FormLaw:
        estimate, estimator = self.estimate, self.estimate.estimator
        weights = np.zeros(len(estimate.domain))
        weights[self.members] = 1.0
        p = with_some_mass(estimate.nearest)
        group = estimator.known_groups()
        mine = group == group[self.members[0]]
        if mine[self.members].all() and not mine.all() and not weights[mine].all():
            # Within a group of values whose total the reports reveal, the total stays as observed.
            masks = [weights > 0, (weights == 0) & mine, ~mine]
            mass = float(p[mine].sum())
        else:
            masks, mass = [weights > 0, weights == 0], 1.0
        parts = np.array([np.where(mask, p, 0.0) / p[mask].sum() for mask in masks])
        cohorts = estimator.cohorts(weights, parts, estimate.n)
        value, inside = float(weights @ estimate.unbiased), float(weights @ estimate.frequencies)
        inside = min(max(inside, 0.0), 1.0)
        rows = _two_score_rows(cohorts, mass)
        if rows is not None:
            return FormLaw.of_rows(rows, value, inside)
        if len(masks) == 2:
            return FormLaw(value, inside, np.array([0.0, 1.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), cohorts)
        fractions = np.array([[0, mass, 1 - mass], [mass, 0, 1 - mass], [1, 0, 0]])
        return FormLaw(value, inside, np.array([0.0, mass, 1.0]), fractions, cohorts)


@dataclass(frozen=True, eq=False)
class MeanSource(LawSource):
    """The mean of weights, of which the least counts as 0 and the greatest as 1."""

    estimate: Estimate
    weights: Floats

    def _law(self) -> FormLaw:
        estimate, weights = self.estimate, self.weights
        least, gap = float(weights.min()), float(np.ptp(weights))
        unit = (weights - least) / gap
        # One more person, with any value: a value that is absent from a small sample may still move a mean far.
        p = (estimate.n * estimate.nearest + 1 / len(weights)) / (estimate.n + 1)
        place = _places(unit)
        masses = np.asarray(np.bincount(place, weights=p), np.float64)
        parts = np.zeros((len(masses), len(p)))
        parts[place, np.arange(len(p))] = p / masses[place]
        knots, fractions = tilted(masses, parts @ unit)
        value, inside = (float(weights @ each - least) / gap for each in (estimate.unbiased, estimate.frequencies))
        cohorts = estimate.estimator.cohorts(weights / gap, parts, estimate.n)
        return FormLaw(value, min(max(inside, 0.0), 1.0), knots, fractions, cohorts)


def _places(unit: Floats) -> npt.NDArray[np.int64]:
    """Return the number of the bin of each weight in [0, 1]: bins of 0 and of 1 alone, and some between them."""
    different, place = np.unique(unit, return_inverse=True)
    if len(different) > _MOST_BINS:
        inner = 1 + np.minimum((unit * (_MOST_BINS - 2)).astype(np.int64), _MOST_BINS - 3)
        inner[unit == 0], inner[unit == 1] = 0, _MOST_BINS - 1
        place = np.unique(inner, return_inverse=True)[1]
    return np.asarray(place.ravel(), np.int64)


def _two_score_rows(cohorts: Sequence[Cohort], mass: float) -> list[ScoreLaw] | None:
    """Return the law of a share whose reports have one of two scores, or None: its count is binomial."""
    cohort, *others = cohorts
    listed = None if others or cohort.scores is None else cohort.scores.levels(cohort.parts)
    if listed is None or len(listed[0]) != 2:
        return None
    levels, probabilities = listed
    own, same, *elsewhere = probabilities / probabilities.sum(axis=1, keepdims=True)
    ones = np.ones(1)
    last = elsewhere[0] if elsewhere else np.zeros(2)
    return [ScoreLaw(levels[None], own[None], same[None], last[None], mass * ones, cohort.reports * ones, ones, ones)]


def frequency_of(estimate: Estimate, x: int, holder: LawHolder) -> LinearEstimate:
    """The frequency of the value with index x, by itself. Estimates of several values share a holder of their laws."""
    value, error = float(estimate.unbiased[x]), float(estimate.standard_errors[x])
    if len(estimate.domain) == 1:
        return LinearEstimate(1.0, 0.0)
    terms = ((1.0, FrequencySource(holder, x)),)
    return LinearEstimate(value, error, unseen=float(estimate._far[x]) / estimate.n, terms=terms)


def _check_level(level: float, tests: int = 1) -> None:
    """Raise InvalidInput unless this is a confidence that leaves each of the tests a probability to miss."""
    if not (is_number(level) and 0 < level < 1):
        raise InvalidInput("interval", "level", "lie between 0 and 1", level)
    if 1 - (1 - level) / (2 * tests) == 1:
        raise InvalidInput("interval", "level", "be so far from 1 that a number between can be told", level)
