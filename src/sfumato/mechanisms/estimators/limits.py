"""Confidence limits of a frequency, from the law of the score of one report.

An unbiased estimate is a mean of scores, one per report. The scores of people who have a value follow the law
``at_value``, those of people with another value of the same group ``in_group``, and those of all other people
``outside_group``. A group is a set of values whose total the reports reveal: a block, or all values. The confidence
limits of a frequency are the frequencies t at which an estimate as extreme as the observed one, or more, has the
probability α/2 (Clopper and Pearson 1934). The total of the group stays as observed while t varies.

Near the ends of [0, 1] a plain limit may lie outside the interval of possible frequencies, and the interval would be
empty. The probability that a limit is compared with is therefore relative to the probability at the end itself,

    P_t(S ≤ s) = α · min(1/2, P_0(S ≤ s)).

This is the plain α/2 if the estimate is at or above its median at t = 0. Without a solution, the limit is t = 0.
If no report counts for the value, the limit solves (1 - t)^n = α/2: 3.7/n for α = 0.05, above the rule of three. This
rule only widens intervals, so their coverage does not decrease. If the counts of a value are binomial, it is at least
1 - α at every frequency. Intervals that count the observed outcome half (mid-P) are shorter, but some frequencies of
rare values have a coverage of 0.917 at α = 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats

__all__ = [
    "LEAST_TAIL",
    "MOST_NODES",
    "REACH",
    "SHIFT",
    "SMOOTHING",
    "ScoreLaw",
    "binomial_tails_at",
    "confidence_limits",
    "has_two_scores",
    "relative_spread",
    "switch_probability",
    "variance_coefficients",
]

Tails = Callable[[Floats, npt.NDArray[np.int64]], tuple[Floats, Floats]]

#: Largest relative error of a tail probability for which the normal law replaces the exact one.
_TAIL_ERROR = 0.1
#: Relative distance from an integer within which a count is rounded to it.
_ROUNDING = 1e-9
#: Least tail probability that the inversion of a characteristic function resolves.
LEAST_TAIL = 1e-8
#: Number of deviations and largest scores from the mean within which a sum lies, up to a negligible probability.
REACH = 6.0
#: Smoothing of a sum, relative to its largest score and to its deviation; it spreads atoms and changes little else.
SMOOTHING = (0.15, 0.1)
#: Distance beyond the observed sum up to which a tail reaches, relative to the largest score. A tail then includes the
#: observed atom and not the next one, and has the continuity correction if the smoothing exceeds their distance.
SHIFT = 0.5
#: Maximum number of points at which a characteristic function is evaluated; the constants above need 204.
MOST_NODES = 256
#: Maximum number of complex numbers in memory at once.
_CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class ScoreLaw:
    """Law of the score of one report for each value, with a row per value.

    Attributes
    ----------
    score_values
        The scores that a report may have.
    at_value
        Their probabilities for people who have the value.
    in_group
        Their probabilities for people who have another value of the group.
    outside_group
        Their probabilities for all other people.
    mass
        The total frequency of the group.
    reports
        The number of reports that are averaged.
    weight
        The weight of this mean in the estimate; 1 unless several cohorts are combined.
    spread
        The standard deviation of the estimate, relative to that of the weighted mean of these scores. It differs from 1
        if the estimate has a correction that these scores do not include.
    """

    score_values: Floats
    at_value: Floats
    in_group: Floats
    outside_group: Floats
    mass: Floats
    reports: Floats
    weight: Floats
    spread: Floats

    def rows(self, rows: npt.NDArray[Any]) -> ScoreLaw:
        """Return the laws of some of the values."""
        return ScoreLaw(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def fractions(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the fractions of people with each of the three laws if the value has frequency t."""
        others = np.maximum(self.mass - t, 0.0)
        return t, others, 1 - t - others

    @property
    def parts(self) -> tuple[Floats, Floats, Floats]:
        """The three laws, in the order of ``fractions``."""
        return self.at_value, self.in_group, self.outside_group


def relative_spread(variances: Floats, of_scores: Floats) -> Floats:
    """Return the ``spread`` of a law whose scores have variances other than the estimate's; at least 0.1."""
    ratios = np.divide(variances, of_scores, out=np.ones(len(variances)), where=of_scores > 0)
    return np.asarray(np.sqrt(np.maximum(ratios, 0.01)))


class _Moments:
    """Variance of the estimate at each t, and ``unit``, the greatest contribution of one report to the estimate."""

    def __init__(self, laws: Sequence[ScoreLaw]) -> None:
        self._laws = laws
        self._scales = [(law.weight * law.spread) ** 2 / law.reports for law in laws]
        self._squares = [[np.sum(part * law.score_values**2, axis=1) for part in law.parts] for law in laws]
        sizes = [np.abs(law.weight) * law.spread * np.ptp(law.score_values, axis=1) / law.reports for law in laws]
        self.unit: Floats = np.max(sizes, axis=0)

    def variance(self, t: Floats) -> Floats:
        """Return the variance of the estimate at each t."""
        total = np.zeros(len(t))
        for law, scale, squares in zip(self._laws, self._scales, self._squares, strict=True):
            square = sum(fraction * each for fraction, each in zip(law.fractions(t), squares, strict=True))
            total += scale * (square - t**2)
        return np.maximum(total, 0.0)

    def coefficients(self) -> tuple[Floats, Floats, Floats]:
        """Return A, B, C of the variance A + B·t - C·t², valid while t is at most the mass of the group."""
        constant, slope, square = np.zeros((3, len(self.unit)))
        for law, scale, (at_value, in_group, outside_group) in zip(
            self._laws, self._scales, self._squares, strict=True
        ):
            alone = law.mass == 0  # no other value in the group
            constant += scale * (law.mass * in_group + (1 - law.mass) * outside_group)
            slope += scale * (at_value - np.where(alone, outside_group, in_group))
            square += scale
        return constant, slope, square


def variance_coefficients(laws: Sequence[ScoreLaw]) -> tuple[Floats, Floats, Floats]:
    """Return A, B and C of the variance A + B·t - C·t² of each estimate at frequency t."""
    return _Moments(laws).coefficients()


def confidence_limits(laws: Sequence[ScoreLaw], estimate: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the lower and upper confidence limits of each frequency, within [0, 1].

    Parameters
    ----------
    laws
        The law of the scores of each cohort; a single cohort unless estimates were combined.
    estimate
        The unbiased estimate of each frequency: the weighted sum of the cohorts' mean scores.
    alpha
        The probability with which the interval of one value may miss the frequency.

    Notes
    -----
    Limits of large counts use the normal law with the variance at the limit (the score interval). Limits of smaller
    counts use the binomial law if a report has two scores. Otherwise they use the law of the sum of scores, by
    inversion of its characteristic function (Davies 1980).
    """
    moments = _Moments(laws)
    low, high, switch = _normal_limits(moments, estimate, alpha)
    rough = alpha < switch
    binomial = rough & has_two_scores(laws)
    for rows, limits in ((binomial, _binomial_limits), (rough & ~binomial, _inverted_limits)):
        chosen = np.flatnonzero(rows)
        if len(chosen):
            better = limits([law.rows(chosen) for law in laws], estimate[chosen], alpha)
            # If a tail is too small to compute, the normal limit is kept, which works with logarithms.
            low[chosen], high[chosen] = (
                np.where(np.isnan(new), old[chosen], new) for new, old in zip(better, (low, high), strict=True)
            )
    changed = np.flatnonzero(rough & (switch < 1))
    if len(changed):
        # Limits of a lower α enclose those of a higher one, even where the law changes.
        chosen_moments = _Moments([law.rows(changed) for law in laws])
        least, greatest, _ = _normal_limits(chosen_moments, estimate[changed], switch[changed])
        low[changed], high[changed] = np.minimum(low[changed], least), np.maximum(high[changed], greatest)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


# -- many reports: the normal law --------------------------------------------------------------------------


def _normal_limits(moments: _Moments, estimate: Floats, alpha: float | Floats) -> tuple[Floats, Floats, Floats]:
    """Return the limits of the score interval, and the α below which it is not accurate enough.

    With the variance A + B·t - C·t² and the quantile z the limits solve (estimate - t)² = z²(A + B·t - C·t²).
    """
    from scipy.special import log_ndtr, ndtri_exp

    constant, slope, square = moments.coefficients()

    def limit(end: float, side: int) -> tuple[Floats, Floats]:
        distance = side * (estimate - end)
        spread = np.sqrt(moments.variance(np.full(len(estimate), end)))
        with np.errstate(divide="ignore", invalid="ignore"):
            at_end = np.where(spread > 0, distance / spread, np.where(distance > 0, np.inf, 0.0))
        at_end = np.minimum(log_ndtr(at_end), -math.log(2))
        z = -ndtri_exp(np.log(alpha) + at_end)
        a, b, c = 1 + z**2 * square, 2 * estimate + z**2 * slope, estimate**2 - z**2 * constant
        return (b + side * np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))) / (2 * a), at_end

    high, at_0 = limit(0.0, 1)
    low, at_1 = limit(1.0, -1)
    deviation = np.sqrt(moments.variance(np.clip(estimate, 0, 1)))
    return low, high, switch_probability(deviation, moments.unit, np.minimum(at_0, at_1))


def switch_probability(deviation: Floats, unit: Floats, at_end: Floats) -> Floats:
    """Return the α from which on the normal law is accurate enough.

    The skewness of a mean is at most unit/deviation, and changes a tail at z deviations by a factor of about
    1 + skewness·z³/6. Half of an atom of one unit changes it by a factor of about 1 + (z + 0.8)·unit/(2·deviation),
    because φ(z)/Φ(-z) ≤ z + 0.8. ``at_end`` is the logarithm of the probability that α is relative to.
    """
    from scipy.special import log_ndtr

    with np.errstate(divide="ignore"):
        ratio = np.divide(deviation, unit, out=np.full(len(unit), np.inf), where=unit > 0)
        farthest = np.minimum(np.cbrt(6 * _TAIL_ERROR * ratio), 2 * _TAIL_ERROR * ratio - 0.8)
        return np.asarray(np.exp(np.minimum(log_ndtr(-farthest) - at_end, 0.0)))


# -- two scores: the binomial law --------------------------------------------------------------------------


def has_two_scores(laws: Sequence[ScoreLaw]) -> npt.NDArray[np.bool_]:
    """Return for which values a report has one of exactly two scores."""
    return np.asarray((_possible(laws[0]).sum(axis=1) == 2) & (len(laws) == 1))


def _possible(law: ScoreLaw) -> npt.NDArray[np.bool_]:
    """Return which scores have a positive probability."""
    return np.asarray((law.at_value > 0) | (law.in_group > 0) | (law.outside_group > 0))


def _binomial_limits(laws: Sequence[ScoreLaw], estimate: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the exact limits if the number of reports with the higher score is binomial.

    Its probability is affine in the frequency, for any frequencies of the other values.
    """
    (law,) = laws
    # Many values have the same count and the same scores, so their limits are computed once.
    columns = [estimate, law.reports, law.spread, *_two_scores(law)]
    problems, place = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    everything = np.zeros(len(problems)), np.ones(len(problems))
    low, high = _limits(_count_tails(*problems.T), len(problems), alpha, everything)
    return low[place.ravel()], high[place.ravel()]


def binomial_tails_at(laws: Sequence[ScoreLaw], estimate: Floats) -> Tails:
    """Return the tails of the estimate if the number of reports with the higher score is binomial."""
    (law,) = laws
    return _count_tails(estimate, law.reports, law.spread, *_two_scores(law))


def _two_scores(law: ScoreLaw) -> tuple[Floats, Floats]:
    """Return the lower of two scores, and its distance from the higher one."""
    score_values = np.where(_possible(law), law.score_values, np.nan)
    bottom = np.nanmin(score_values, axis=1)
    return bottom, np.nanmax(score_values, axis=1) - bottom


def _count_tails(estimate: Floats, reports: Floats, spread: Floats, bottom: Floats, gap: Floats) -> Tails:
    """Return a function that computes the tails of the estimate at each t."""

    def tails(t: Floats, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        scored = t + (estimate[rows] - t) / spread[rows]
        counts = np.clip(reports[rows] * (scored - bottom[rows]) / gap[rows], 0, reports[rows])
        near = np.rint(counts)
        counts = np.where(np.abs(counts - near) < _ROUNDING * np.maximum(near, 1), near, counts)
        return _binomial_tails(counts, reports[rows], np.clip((t - bottom[rows]) / gap[rows], 0.0, 1.0))

    return tails


def _binomial_tails(counts: Floats, reports: Floats, probability: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities of at most and of at least ``counts`` successes."""
    from scipy.special import betainc, betaincc

    failures = reports - counts
    with np.errstate(invalid="ignore"):
        at_most = np.where(failures <= 0, 1.0, betaincc(counts + 1, failures, probability))
        at_least = np.where(counts <= 0, 1.0, betainc(counts, failures + 1, probability))
    return at_most, at_least


# -- any scores: the characteristic function -----------------------------------------------------------------


def _inverted_limits(laws: Sequence[ScoreLaw], estimate: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the limits by inversion of characteristic functions, in chunks of values."""
    size = max(1, _CHUNK // (MOST_NODES * max(law.score_values.shape[1] for law in laws)))
    parts = []
    for start in range(0, len(estimate), size):
        rows = np.arange(start, min(start + size, len(estimate)))
        inversion = _Inversion([law.rows(rows) for law in laws], estimate[rows], alpha)
        parts.append(_limits(inversion.tails, len(rows), alpha, inversion.range, LEAST_TAIL))
    low, high = zip(*parts, strict=True)
    return np.concatenate(low), np.concatenate(high)


class _Inversion:
    """Law of the estimate at any t, from the characteristic functions of the scores, which do not depend on t.

    The estimate is smoothed by a normal variable that is small compared with one score or with the deviation of the
    sum, which lets the integral end. A tail reaches beyond the observed estimate, so that it includes its atom.
    """

    def __init__(self, laws: Sequence[ScoreLaw], estimate: Floats, alpha: float) -> None:
        self._laws, self._estimate = laws, estimate
        moments = _Moments(laws)
        # A limit lies between these ends. If few reports count, it lies within the reports that could be missing.
        low, high, _ = _normal_limits(moments, estimate, alpha)
        unseen = 2 * math.log(2 / alpha) * moments.unit
        ends = (np.minimum(low, estimate - unseen), estimate, np.maximum(high, estimate + unseen))
        deviation = np.sqrt(np.max([moments.variance(np.clip(end, 0.0, 1.0)) for end in ends], axis=0))
        self._reach = REACH * (deviation + moments.unit)
        self._shift = SHIFT * moments.unit
        smoothing = np.maximum(SMOOTHING[0] * moments.unit, SMOOTHING[1] * deviation)
        step = np.pi / self._reach
        # The kernel of the smoothing is below 2e-9 at the last point.
        nodes = np.arange(min(int(np.max(6.4 / (smoothing * step))) + 1, MOST_NODES)) + 0.5
        self._points = nodes * step[:, None]
        self._kernel = np.exp(-((smoothing[:, None] * self._points) ** 2) / 2) / (np.pi * nodes)
        self._parts = [self._transforms(law) for law in laws]
        #: The least and the greatest frequency at which the estimate has a non-negligible probability.
        self.range = np.clip(estimate - self._reach, 0.0, 1.0), np.clip(estimate + self._reach, 0.0, 1.0)

    def _transforms(self, law: ScoreLaw) -> tuple[npt.NDArray[np.complex128], ...]:
        """Return the characteristic functions of one report's contribution under the three laws."""
        scale = law.weight * law.spread / law.reports
        waves = np.exp(1j * self._points[:, :, None] * (scale[:, None] * law.score_values)[:, None, :])
        return tuple(np.einsum("rul,rl->ru", waves, part) for part in law.parts)

    def tails(self, t: Floats, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the lower and the upper tail of the estimate at t."""
        points, estimate = self._points[rows], self._estimate[rows]
        exponent = np.zeros(points.shape, np.complex128)
        mean = np.zeros(len(t))
        for law, parts in zip(self._laws, self._parts, strict=True):
            chosen = law.rows(rows)
            fractions = zip(chosen.fractions(t), parts, strict=True)
            mixture = sum(fraction[:, None] * part[rows] for fraction, part in fractions)
            with np.errstate(divide="ignore"):
                logarithm = np.log(mixture)
            exponent += chosen.reports[:, None] * logarithm
            mean += chosen.weight * chosen.spread * t
        # The correction that the spread represents leaves the mean at t.
        waves = np.exp(exponent + 1j * points * (t - mean - estimate)[:, None])
        turn = np.exp(-1j * points * self._shift[rows][:, None])
        far, above = np.abs(t - estimate) > self._reach[rows], t > estimate
        tails = []
        for sign, turned, beyond in ((1, turn, above), (-1, turn.conj(), ~above)):
            tail = 0.5 - sign * np.sum((waves * turned).imag * self._kernel[rows], axis=1)
            tails.append(np.where(far, np.where(beyond, 0.0, 1.0), np.clip(tail, 0.0, 1.0)))
        return tails[0], tails[1]


# -- from tails to limits --------------------------------------------------------------------------------------


def _limits(
    tails: Tails, count: int, alpha: float, within: tuple[Floats, Floats], least: float = 0.0
) -> tuple[Floats, Floats]:
    """Return where the tails have the required probability, or NaN if it is at most ``least``.

    ``within`` are the frequencies between which the limits lie.
    """
    rows, (first, last) = np.arange(count), within
    lower_at_0, upper_at_1 = tails(np.zeros(count), rows)[0], tails(np.ones(count), rows)[1]
    high = _crossing(lambda t, chosen: tails(t, chosen)[0], alpha * np.minimum(lower_at_0, 0.5), first, last, least)
    low = _crossing(lambda t, chosen: tails(t, chosen)[1], alpha * np.minimum(upper_at_1, 0.5), last, first, least)
    return low, high


def _crossing(
    tail: Callable[[Floats, npt.NDArray[np.int64]], Floats], target: Floats, first: Floats, last: Floats, least: float
) -> Floats:
    """Return where a tail that decreases from ``first`` to ``last`` crosses a target, or ``last`` if it stays above."""
    from scipy.optimize import elementwise
    from scipy.special import ndtri

    def distance(t: Floats, row: Floats) -> Floats:
        chosen = row.astype(np.int64)
        # On the normal scale a tail is nearly a straight line, so a few steps suffice.
        return np.asarray(np.clip(ndtri(tail(t, chosen)), -40, 40) - ndtri(target[chosen]))

    crossing = np.full(len(target), np.nan)
    possible = np.flatnonzero(target > least)
    stays = distance(last[possible], possible.astype(np.float64)) >= 0
    crossing[possible[stays]] = last[possible[stays]]
    searched = possible[~stays]
    if len(searched):
        # The last digits of a limit are not resolved if its tail is not.
        tolerances = {"xatol": 1e-300, "xrtol": max(least, 1e-12), "fatol": 1e3 * least, "frtol": 0.0}
        ends = np.sort([first[searched], last[searched]], axis=0)
        bracket, rows = (ends[0], ends[1]), searched.astype(np.float64)
        result = elementwise.find_root(distance, bracket, args=(rows,), tolerances=tolerances)
        crossing[searched] = np.where(result.success, result.x, np.nan)
    return crossing
