"""The law of an error that is a sum of few independent events, for which the normal law is too inaccurate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, number_document, read_items, read_number
from sfumato.estimation.linear import LinearEstimate

__all__ = ["EventEstimate", "Events"]


#: Standard deviation, in sizes of the largest event, above which the normal law is accurate enough.
_NORMAL_FROM = 10.0
#: Width of the smoothing kernel that makes the integral converge, as a fraction of one event.
_SMOOTHING = 0.05
#: Distance, in smoothing widths, within which a smoothed event lies.
_WIDTH = 3.0
#: Distance from the mean, in deviations plus events, that a sum exceeds with negligible probability.
_REACH = 7.0


@dataclass(frozen=True)
class Events:
    """Model of an estimation error: error = size·(N - E[N]), where N is a random number of independent events.

    N is binomial with parameters ``trials`` and ``probability``. With ``probability=0`` it is Poisson, the limit of
    many improbable trials.

    Parameters
    ----------
    trials
        Number of trials. It need not be an integer, because the model may stand for events of different probabilities
        whose number has the same mean and variance. If ``probability`` is 0, it is the mean of the Poisson
        distribution instead.
    probability
        Probability of an event in each trial, from 0 to 1; 0 selects the Poisson distribution.
    size
        Change of the estimate by one event, in the unit of the estimate. A negative size means that events lower it.

    Examples
    --------
    >>> events = Events(trials=10, probability=0.1, size=0.5)
    >>> events.scaled(2)
    Events(trials=10, probability=0.1, size=1.0)
    """

    trials: float
    probability: float
    size: float

    @classmethod
    def of(cls, probabilities: Floats, sizes: Floats, weights: Floats) -> list[Events]:
        """Approximate many different events by at most two ``Events`` with the same mean and variance.

        An event of probability above 1/2 is counted by its absence, which changes the estimate in the other direction.
        The first model counts all that raise the estimate, the second all that lower it.

        Parameters
        ----------
        probabilities
            Probability of each kind of event, shape (m,).
        sizes
            Change of the estimate by one event of each kind, shape (m,); negative if events lower it.
        weights
            Number of trials of each kind, shape (m,).

        Returns
        -------
        list of Events
            One model with a positive size, one with a negative size, or both. Kinds without variance are left out.
        """
        likely = probabilities > 0.5
        rare = np.where(likely, 1 - probabilities, probabilities)
        directions = np.where(likely, -np.sign(sizes), np.sign(sizes))
        events = []
        for direction in (1.0, -1.0):
            rows = directions == direction
            chance = rare[rows]
            mean = float(weights[rows] @ chance)
            variances = weights[rows] * chance * (1 - chance)
            variance = float(variances.sum())
            if mean > 0 and variance > 0:
                probability = min(max(1 - variance / mean, 0.0), 0.5)
                squared = float(variances @ sizes[rows] ** 2) / variance
                trials = variance / (probability * (1 - probability)) if probability else mean
                events.append(cls(trials, probability, direction * math.sqrt(squared)))
        return events

    def scaled(self, factor: float) -> Events:
        """Return the model of the error times a factor.

        Parameters
        ----------
        factor
            The number by which ``size`` is multiplied.

        Returns
        -------
        Events
            The same trials and probability, with the new size.
        """
        return replace(self, size=factor * self.size)

    def logarithm(self, points: Floats) -> npt.NDArray[np.complex128]:
        """Return the logarithm of the characteristic function of the error, ln E[exp(i·t·error)].

        Parameters
        ----------
        points
            The real numbers t, as an array.

        Returns
        -------
        numpy.ndarray
            The complex logarithm at each point, in the shape of ``points``.
        """
        waves = np.expm1(1j * self.size * points)
        if self.probability == 0:  # the limit of infinitely many trials: Poisson with mean ``trials``
            return np.asarray(self.trials * (waves - 1j * self.size * points))
        centre = 1j * self.probability * self.size * points
        with np.errstate(divide="ignore"):
            return np.asarray(self.trials * (np.log1p(self.probability * waves) - centre))


@dataclass(frozen=True, eq=False, repr=False)
class EventEstimate(LinearEstimate):
    """An estimated number whose error is a sum of independent random events, such as the reports of single users.

    If the standard error is less than ten times the size of the largest event, intervals use the exact distribution of
    the events. Otherwise they use the normal approximation.

    Parameters
    ----------
    value
        The estimated number.
    standard_error
        The standard error of the number.
    unseen
        The distance by which one additional report could move the number (see :class:`LinearEstimate`).
    terms
        The groups of people whose reports are summed (see :class:`LinearEstimate`).
    rounding
        The error that bins add (see :class:`LinearEstimate`); 0 here.
    clipped
        The bounds to which numbers were clipped; None for other numbers.
    warnings
        Sentences about ends of the range to which many numbers were clipped.
    events
        The independent models of the error, whose errors add (see :class:`Events`).

    Examples
    --------
    >>> number = EventEstimate(3.0, 0.47, events=(Events(trials=10, probability=0.1, size=0.5),))
    >>> low, high = number.interval()
    >>> round(low, 2), round(high, 2)
    (1.91, 3.61)
    """

    events: tuple[Events, ...] = field(default=(), kw_only=True)

    format: ClassVar[str] = "sfumato-event-estimate"
    _further_keys: ClassVar[tuple[str, ...]] = ("events",)

    @property
    def _few_events(self) -> bool:
        """Whether so few events are expected that the normal law is too inaccurate."""
        largest = max((abs(event.size) for event in self.events), default=0.0)
        return 0 < self.standard_error < _NORMAL_FROM * largest

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the lower and upper confidence limits of the number.

        If few events are expected (see :class:`EventEstimate`), the interval excludes a number only if an error that
        large in that direction has a probability of at most (1 - confidence)/2.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval contains the true number.

        Returns
        -------
        tuple of float
            The lower and the upper limit.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.
        """
        normal = super().interval(confidence)
        if not self._few_events:
            return normal
        least, greatest = _largest_errors(self.events, self.standard_error, 1 - confidence)
        return self.value - greatest, self.value - least

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of the null hypothesis that the true number equals ``null``.

        Parameters
        ----------
        null
            The number under the null hypothesis.

        Returns
        -------
        float
            The p-value. If few events are expected (see :class:`EventEstimate`), it is twice the probability of an
            error at least as large as ``value - null`` in its direction, and at most 1. Otherwise it is that of the
            normal approximation.
        """
        if not self._few_events:
            return super().p_value(null)
        tails = _error_tails(self.events, self.standard_error, np.array([self.value - null]))
        return min(1.0, 2 * float(np.min(tails)))

    def scaled(self, factor: float) -> EventEstimate:
        """Return the estimate of the number times a factor.

        Parameters
        ----------
        factor
            The number by which value, standard error and events are multiplied.

        Returns
        -------
        EventEstimate
            The scaled estimate, without ``terms`` and ``unseen``.
        """
        events = tuple(event.scaled(factor) for event in self.events)
        return EventEstimate(factor * self.value, abs(factor) * self.standard_error, events=events)

    def _further(self) -> dict[str, Any]:
        rows = [[number_document(x) for x in (event.trials, event.probability, event.size)] for event in self.events]
        return {"events": rows}

    @classmethod
    def _read_further(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        subject = "LinearEstimate.from_dict"
        events = []
        for row in read_items(subject, "events", document["events"]):
            trials, probability, size = read_items(subject, "an event", row, 3)
            events.append(
                Events(
                    read_number(subject, "the trials of an event", trials, least=0.0, most=1e300),
                    read_number(subject, "the probability of an event", probability, least=0.0, most=1.0),
                    read_number(subject, "the size of an event", size, least=-1e300, most=1e300),
                )
            )
        return {"events": tuple(events)}

    def __sub__(self, other: LinearEstimate) -> LinearEstimate:
        """Return the difference of two estimates from different people."""
        difference = super().__sub__(other)
        if not isinstance(other, EventEstimate):
            return difference
        events = (*self.events, *(event.scaled(-1.0) for event in other.events))
        return EventEstimate(difference.value, difference.standard_error, events=events)


def _error_tails(events: Sequence[Events], deviation: float, points: Floats) -> tuple[Floats, Floats]:
    """Return the probabilities that an error is at most, and at least, each of some numbers."""
    unit = max(abs(event.size) for event in events)
    score_bounds = _REACH * (deviation + unit)
    step = math.pi / score_bounds
    nodes = np.arange(int(6.8 / (_SMOOTHING * unit * step)) + 1) + 0.5
    at = np.asarray(nodes * step, np.float64)
    law = sum((event.logarithm(at) for event in events), -((_SMOOTHING * unit * at) ** 2) / 2 + 0j)

    def lower(shifted: Floats) -> Floats:
        """Return the distribution function at some points."""
        waves = np.exp(law - 1j * at * np.clip(shifted, -score_bounds, score_bounds)[:, None])
        return np.asarray(np.clip(0.5 - np.sum(waves.imag / (np.pi * nodes), axis=1), 0.0, 1.0))

    width = _WIDTH * _SMOOTHING * unit  # includes an event exactly at the point
    return lower(points + width), 1 - lower(points - width)


def _largest_errors(events: Sequence[Events], deviation: float, alpha: float) -> tuple[float, float]:
    """Return the least and the greatest error, each exceeded with a probability of at most α/2."""
    unit = max(abs(event.size) for event in events)
    ends = [-_REACH * (deviation + unit), _REACH * (deviation + unit)]
    limits = []
    for side in (0, 1):
        inner, outer = 0.0, ends[side]
        for _ in range(30):
            middle = (inner + outer) / 2
            likely = _error_tails(events, deviation, np.array([middle]))[side][0] > alpha / 2
            inner, outer = (middle, outer) if likely else (inner, middle)
        limits.append(outer)
    return limits[0], limits[1]
