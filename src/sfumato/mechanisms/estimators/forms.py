"""Confidence limits of linear forms: shares of sets, means, differences between groups of people, weighted totals.

A form is a constant plus a sum of terms. Each term is a coefficient times a number t in [0, 1] of one group of people,
such as the share of people with one of some values. The groups are independent. As in
``sfumato.mechanisms.estimators.limits``, the confidence limits are the numbers at which the observed estimate is as
extreme as α/2 allows.

The law of an estimate depends on more than the tested number; the rest is taken as estimated:

- Within a group the distribution moves through the estimated one by exponential tilting, p_x·exp(λ·weight_x). For a
  share, people with and people without the values keep their composition. For a mean, one more person is added, with
  any value.
- Of several groups, each moves by its variance at the place it moves to, t = t̂ + κ·coefficient·variance(t). This is
  the least unlikely way to reach a total (Miettinen and Nurminen 1985).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.limits import (
    LEAST_TAIL,
    MOST_NODES,
    REACH,
    SHIFT,
    SMOOTHING,
    ScoreLaw,
    binomial_tails_at,
    confidence_limits,
    has_two_scores,
    switch_probability,
)
from sfumato.mechanisms.estimators.scores import Scores, Waves

__all__ = ["Cohort", "Form", "FormLaw", "tilted"]


#: Frequencies at which the path of a group is tabulated; dense near 0 and 1.
_LOWER = np.concatenate([[0.0], np.geomspace(1e-7, 0.5, 200)])
_GRID = np.concatenate([_LOWER, 1 - _LOWER[-2::-1]])
#: Tilts at which a path through a distribution is tabulated; at the largest ones only the greatest weight is left.
_TILTS = np.geomspace(0.01, 4000.0, 70)
#: Replacement for a variance of zero.
_TINY = 1e-30
#: Maximum iterations until the level of a p-value agrees with the law that it is computed from.
_ROUNDS = 4
#: Points, in units of 1/deviation, at which the atoms of a sum are searched. The characteristic function of a sum whose
#: atoms are a distance d apart returns to 1 at 2π/d. The first point is beyond the decay of the normal law.
_RESONANCES = np.arange(5.0, 256.0, 0.5)
#: Least modulus of a characteristic function that indicates atoms.
_ATOMIC = 0.05


@dataclass(frozen=True, eq=False)
class Cohort:
    """Reports of one mechanism, and the scores whose mean enters an estimate.

    Attributes
    ----------
    reports
        The number of reports.
    scale
        The factor of the mean score in the estimate.
    means
        The mean score of the people in each part.
    squares
        The mean square of the score in each part.
    scores
        The law of the score, or None if only its moments are known. The normal law is used in that case.
    parts
        The distributions over the values that make up the people, with a row per part.
    """

    reports: float
    scale: float
    means: Floats
    squares: Floats
    scores: Scores | None
    parts: Floats

    def transform(self, points: Floats) -> Waves:
        """Return the transform of one report's contribution to the estimate, in each part."""
        points = points * self.scale / self.reports
        if self.scores is not None:
            return self.scores.transform(self.parts, points)
        spreads = self.squares - self.means**2
        return np.asarray(np.exp(1j * np.outer(self.means, points) - np.outer(spreads, points**2) / 2))


@dataclass(frozen=True, eq=False)
class _RowScores(Scores):
    """Scores of a ``ScoreLaw`` with a single row."""

    law: ScoreLaw

    @property
    def width(self) -> float:  # type: ignore[override]
        return float(np.ptp(self.law.score_values))

    def transform(self, parts: Floats, points: Floats) -> Waves:  # noqa: ARG002
        probabilities = np.concatenate(self.law.parts)
        return np.asarray(probabilities @ np.exp(1j * np.outer(self.law.score_values[0], points)))


@dataclass(frozen=True, eq=False)
class FormLaw:
    """Law of the unbiased estimate of a number t in [0, 1] from one group of people.

    Attributes
    ----------
    estimate
        The unbiased estimate of t.
    inside
        The point within [0, 1] that every interval contains.
    knots
        Numbers t from 0 to 1.
    fractions
        The fractions of the parts of the people at each knot; linear between knots.
    cohorts
        The reports; several if cohorts were combined.
    rows
        The same as laws of a single frequency, if they have this form.
    """

    estimate: float
    inside: float
    knots: Floats
    fractions: Floats
    cohorts: Sequence[Cohort]
    rows: Sequence[ScoreLaw] | None = None

    @classmethod
    def of_rows(cls, rows: Sequence[ScoreLaw], estimate: float, inside: float) -> FormLaw:
        """Return the law of a single frequency."""
        mass = min(float(rows[0].mass[0]), 1.0)
        if mass <= 0:
            knots, fractions = np.array([0.0, 1.0]), np.array([[0.0, 0, 1], [1, 0, 0]])
        elif mass >= 1:
            knots, fractions = np.array([0.0, 1.0]), np.array([[0.0, 1, 0], [1, 0, 0]])
        else:
            knots = np.array([0.0, mass, 1.0])
            fractions = np.array([[0.0, mass, 1 - mass], [mass, 0, 1 - mass], [1, 0, 0]])
        means = np.array([1.0, 0.0, 0.0])
        cohorts = [
            Cohort(
                float(law.reports[0]),
                float(law.weight[0] * law.spread[0]),
                means,
                np.array([float(part[0] @ law.score_values[0] ** 2) for part in law.parts]),
                _RowScores(law),
                np.empty((3, 0)),
            )
            for law in rows
        ]
        return cls(estimate, inside, knots, fractions, cohorts, rows)

    def at(self, t: Floats) -> Floats:
        """Return the fractions of the parts at each t, with a row per t."""
        place = np.clip(np.searchsorted(self.knots, t, side="right") - 1, 0, len(self.knots) - 2)
        first, last = self.knots[place], self.knots[place + 1]
        along = np.clip((t - first) / (last - first), 0.0, 1.0)[:, None]
        return np.asarray((1 - along) * self.fractions[place] + along * self.fractions[place + 1])

    def variance(self, t: Floats) -> Floats:
        """Return the variance of the estimate at each t."""
        fractions, total = self.at(t), np.zeros(len(t))
        for cohort in self.cohorts:
            per_report = fractions @ cohort.squares - (fractions @ cohort.means) ** 2
            total += cohort.scale**2 / cohort.reports * np.maximum(per_report, 0.0)
        return total

    @property
    def unit(self) -> float:
        """Greatest contribution of one report to the estimate."""
        widths = (
            abs(cohort.scale) * cohort.scores.width / cohort.reports
            for cohort in self.cohorts
            if cohort.scores is not None
        )
        return max(widths, default=0.0)


def tilted(masses: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return a path of distributions from all people at weight 0 to all at weight 1, through the given distribution.

    Parameters
    ----------
    masses
        The fraction of people at each weight, all above zero.
    weights
        The weights, ascending from 0 to 1.

    Returns
    -------
    tuple
        The mean weight at each point of the path, ascending, and the fractions of people there.
    """
    size = len(masses)
    if size == 2:
        return np.array([0.0, 1.0]), np.eye(2)
    tilts = np.concatenate([-_TILTS[::-1], [0.0], _TILTS])
    exponents = np.log(masses) + np.outer(tilts, weights)
    points = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    points /= points.sum(axis=1, keepdims=True)
    points = np.vstack([np.eye(size)[:1], points, np.eye(size)[-1:]])
    means = np.clip(points @ weights, 0.0, 1.0)
    means[0], means[-1] = 0.0, 1.0
    forward = np.concatenate([[True], np.diff(np.maximum.accumulate(means)) > 1e-12])
    forward[-1] = True
    indices = np.flatnonzero(forward)
    if len(indices) > 1 and means[indices[-2]] >= 1.0 - 1e-12:
        indices = np.delete(indices, -2)
    return means[indices], points[indices]


class Form:
    """A constant plus a sum of coefficients times numbers in [0, 1], one for each group of people.

    Parameters
    ----------
    value
        The estimate of the form: the constant plus the coefficients times the estimates of the laws.
    terms
        The coefficients, and the laws of the groups.
    """

    def __init__(self, value: float, terms: Sequence[tuple[float, FormLaw]]) -> None:
        self._estimate = value
        self._terms = [(coefficient, law) for coefficient, law in terms if coefficient]
        offset = value - sum(coefficient * law.estimate for coefficient, law in self._terms)
        coefficients = [coefficient for coefficient, _ in self._terms]
        #: The least and the greatest possible value of the form.
        self.ends = (
            offset + sum(min(coefficient, 0.0) for coefficient in coefficients),
            offset + sum(max(coefficient, 0.0) for coefficient in coefficients),
        )
        self._inside = offset + sum(coefficient * law.inside for coefficient, law in self._terms)
        self._offset = offset
        #: The greatest contribution of one report to the estimate.
        self.unit = max((abs(coefficient) * law.unit for coefficient, law in self._terms), default=0.0)

    # -- the other numbers of the groups -----------------------------------------------------------------------

    @functools.cached_property
    def _ways(self) -> tuple[Floats, list[Floats]]:
        """Values of the form, ascending, and the number of each group there."""
        if len(self._terms) == 1:
            ((coefficient, _),) = self._terms
            numbers = np.array([0.0, 1.0]) if coefficient > 0 else np.array([1.0, 0.0])
            return self._offset + coefficient * numbers, [numbers]
        pushes: list[Floats] = []
        ways: list[Floats] = []
        for coefficient, law in self._terms:
            start = min(max(law.estimate, 0.0), 1.0)
            grid = np.unique(np.append(_GRID, start))
            push = (grid - start) / np.maximum(coefficient * law.variance(grid) * np.sign(coefficient), _TINY)
            push *= np.sign(coefficient)
            if coefficient < 0:
                grid, push = grid[::-1], push[::-1]
            pushes.append(np.maximum.accumulate(push))
            ways.append(grid)
        every = np.unique(np.concatenate(pushes))
        tracks = [np.asarray(np.interp(every, push, grid)) for push, grid in zip(pushes, ways, strict=True)]
        sums = sum((c * track for (c, _), track in zip(self._terms, tracks, strict=True)), np.zeros(len(every)))
        totals = np.maximum.accumulate(self._offset + sums)
        rising = np.concatenate([[True], np.diff(totals) > 0])
        return totals[rising], [track[rising] for track in tracks]

    def _numbers(self, value: float) -> list[float]:
        """Return the number of each group at a value of the form."""
        totals, numbers = self._ways
        return [float(np.interp(value, totals, number)) for number in numbers]

    def _variance(self, value: float) -> float:
        """Return the variance of the estimate at a value of the form."""
        numbers = self._numbers(value)
        return sum(
            coefficient**2 * float(law.variance(np.array([number]))[0])
            for (coefficient, law), number in zip(self._terms, numbers, strict=True)
        )

    # -- the normal law ----------------------------------------------------------------------------------------

    def _distance(self, value: float) -> float:
        """Return the number of standard deviations by which the estimate is above a value."""
        return (self._estimate - value) / math.sqrt(max(self._variance(value), _TINY))

    @functools.cached_property
    def _at_ends(self) -> tuple[float, float]:
        """Logarithms of the lower tail at the least value and the upper tail at the greatest, at most ln(1/2)."""
        from scipy.special import log_ndtr

        low, high = self.ends
        lower, upper = float(log_ndtr(self._distance(low))), float(log_ndtr(-self._distance(high)))
        return min(lower, -math.log(2)), min(upper, -math.log(2))

    @functools.cached_property
    def _switch(self) -> float:
        """The α from which on the normal law is accurate enough."""
        inside = min(max(self._estimate, self.ends[0]), self.ends[1])
        deviation = math.sqrt(self._variance(inside))
        numbers = (np.array([number]) for number in (deviation, self.unit, min(self._at_ends)))
        return float(switch_probability(*numbers)[0])

    @functools.cached_property
    def _spacing(self) -> float:
        """Distance of the atoms of the estimate, at most ``unit``.

        Reports of one group move the estimate by ``unit`` or less, but the sum over several groups, or over scores of
        many sizes, has atoms that are closer. A tail that reached half a unit beyond the estimate would include many.
        """
        inside = min(max(self._estimate, self.ends[0]), self.ends[1])
        deviation = math.sqrt(self._variance(inside))
        is_frequency = len(self._terms) == 1 and self._terms[0][1].rows is not None
        if is_frequency or deviation <= self.unit:
            return self.unit  # as ``limits`` does for a single frequency
        points = _RESONANCES / deviation
        modulus = np.zeros(len(points))
        for (coefficient, law), number in zip(self._terms, self._numbers(inside), strict=True):
            fractions = law.at(np.array([number]))[0]
            for cohort in law.cohorts:
                with np.errstate(divide="ignore"):
                    modulus += cohort.reports * np.log(np.abs(fractions @ cohort.transform(coefficient * points)))
        atomic = np.flatnonzero(np.exp(modulus) >= _ATOMIC)
        farthest = points[atomic[0]] if len(atomic) else points[-1]
        return min(self.unit, 2 * math.pi / float(farthest))

    def _normal_limits(self, alpha: float) -> tuple[float, float]:
        """Return the limits under the normal law."""
        from scipy.special import ndtri_exp

        targets = [float(ndtri_exp(math.log(alpha) + at_end)) for at_end in self._at_ends]
        low, high = self.ends
        upper = _root(lambda value: self._distance(value) - targets[0], low, high)
        lower = _root(lambda value: -self._distance(value) - targets[1], high, low)
        return lower, upper

    # -- limits ------------------------------------------------------------------------------------------------

    def limits(self, alpha: float) -> tuple[float, float]:
        """Return the lower and upper confidence limits, within ``ends``."""
        if not self._terms:
            return self._estimate, self._estimate
        low, high = self._law_limits(alpha)
        low, high = min(low, self._inside), max(high, self._inside)
        return max(low, self.ends[0]), min(high, self.ends[1])

    def _law_limits(self, alpha: float) -> tuple[float, float]:
        """Return the limits under the most accurate law that α requires."""
        if len(self._terms) == 1 and (rows := self._terms[0][1].rows) is not None:
            ((coefficient, law),) = self._terms
            pair = confidence_limits(rows, np.array([law.estimate]), alpha)
            first, second = sorted(self._offset + coefficient * float(limit[0]) for limit in pair)
            return first, second
        if alpha >= self._switch:
            return self._normal_limits(alpha)
        low, high = _Inversion(self, alpha).limits(alpha)
        # Limits of a lower α enclose those of a higher one, even where the law changes.
        least, greatest = self._normal_limits(self._switch) if self._switch < 1 else (low, high)
        return min(low, least), max(high, greatest)

    def p_value(self, null: float) -> float:
        """Return the least α at which the interval does not contain ``null``."""
        from scipy.special import log_ndtr

        if not self._terms:
            return 1.0 if null == self._estimate else 0.0
        if null == self._inside:
            return 1.0
        if not self.ends[0] <= null <= self.ends[1]:
            return 0.0
        side = 0 if null > self._inside else 1
        sign = 1 if side == 0 else -1
        normal = min(math.exp(min(float(log_ndtr(sign * self._distance(null))) - self._at_ends[side], 0.0)), 1.0)
        if normal >= self._switch:
            return normal
        exact = self._exact_p_value(null, side, normal)
        return min(exact, self._switch, 1.0)

    def _exact_p_value(self, null: float, side: int, normal: float) -> float:
        """Return the p-value under the binomial law, or by inversion of characteristic functions."""
        if len(self._terms) == 1 and (rows := self._terms[0][1].rows) is not None and has_two_scores(rows)[0]:
            ((coefficient, law),) = self._terms
            tails = binomial_tails_at(rows, np.array([law.estimate]))
            which = side if coefficient > 0 else 1 - side
            at_null, at_end = (
                float(tails(np.array([t]), np.zeros(1, np.int64))[which][0])
                for t in ((null - self._offset) / coefficient, float(which))
            )
            return min(at_null / min(at_end, 0.5), 1.0)
        p_value = 0.05
        for _ in range(_ROUNDS):
            inversion = _Inversion(self, p_value)
            tail, at_end = (inversion.tails(value)[side] for value in (null, self.ends[side]))
            if tail <= LEAST_TAIL:
                return min(normal, LEAST_TAIL / min(at_end, 0.5))
            before, p_value = p_value, min(tail / min(at_end, 0.5), 1.0)
            if abs(p_value - before) <= 1e-9 or p_value == 1:
                break
        return p_value


class _Inversion:
    """Law of the estimate of a form, from the characteristic functions of the scores; see ``limits._Inversion``."""

    def __init__(self, form: Form, alpha: float) -> None:
        self._form = form
        estimate, unit = form._estimate, form.unit
        low, high = form._normal_limits(alpha)
        unseen = 2 * math.log(2 / alpha) * unit
        ends = (min(low, estimate - unseen), estimate, max(high, estimate + unseen))
        deviation = math.sqrt(max(form._variance(min(max(end, form.ends[0]), form.ends[1])) for end in ends))
        self._reach = REACH * (deviation + unit)
        self._shift = SHIFT * form._spacing
        smoothing = max(SMOOTHING[0] * unit, SMOOTHING[1] * deviation)
        step = math.pi / self._reach
        nodes = np.arange(min(int(6.4 / (smoothing * step)) + 1, MOST_NODES)) + 0.5
        self._points = np.asarray(nodes * step, np.float64)
        self._kernel = np.exp(-((smoothing * self._points) ** 2) / 2) / (np.pi * nodes)
        self._parts = [
            [
                (coefficient * cohort.scale, cohort, cohort.transform(coefficient * self._points))
                for cohort in law.cohorts
            ]
            for coefficient, law in form._terms
        ]

    def tails(self, value: float) -> tuple[float, float]:
        """Return the lower and the upper tail of the estimate at a value of the form."""
        form, estimate = self._form, self._form._estimate
        if abs(value - estimate) > self._reach:
            return (0.0, 1.0) if value > estimate else (1.0, 0.0)
        exponent = np.zeros(len(self._points), np.complex128)
        mean = 0.0
        for (_, law), number, parts in zip(form._terms, form._numbers(value), self._parts, strict=True):
            fractions = law.at(np.array([number]))[0]
            for scale, cohort, transforms in parts:
                with np.errstate(divide="ignore"):
                    exponent += cohort.reports * np.log(fractions @ transforms)
                mean += scale * float(fractions @ cohort.means)
        waves = np.exp(exponent + 1j * self._points * (value - mean - estimate))
        turn = np.exp(-1j * self._points * self._shift)
        lower, upper = 0.5 - (waves * turn).imag @ self._kernel, 0.5 + (waves * turn.conj()).imag @ self._kernel
        return min(max(float(lower), 0.0), 1.0), min(max(float(upper), 0.0), 1.0)

    def limits(self, alpha: float) -> tuple[float, float]:
        """Return the values of the form at which the tails have the required probability."""
        from scipy.special import ndtri

        form = self._form
        low, high = form.ends
        first, last = max(form._estimate - self._reach, low), min(form._estimate + self._reach, high)
        first, last = min(first, high), max(last, low)
        limits = []
        for side, (end, start, stop) in enumerate(((low, first, last), (high, last, first))):
            probability = alpha * min(self.tails(end)[side], 0.5)
            if probability <= LEAST_TAIL:
                limits.append(form._normal_limits(alpha)[1 - side])
                continue
            target = float(ndtri(probability))

            def distance(value: float, side: int = side, target: float = target) -> float:
                return float(np.clip(ndtri(self.tails(value)[side]), -40, 40)) - target

            limits.append(_root(distance, start, stop))
        return limits[1], limits[0]


def _root(distance: Callable[[float], float], first: float, last: float) -> float:
    """Return where a function that decreases from ``first`` to ``last`` crosses zero, or ``last`` if it stays above."""
    from scipy.optimize import brentq

    if distance(last) >= 0:
        return last
    if distance(first) <= 0:
        return first
    return float(brentq(distance, first, last, xtol=1e-10, rtol=1e-10))
