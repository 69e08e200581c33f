"""The law of an error that is a sum of few independent events, where the normal law is too rough."""

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


#: A standard deviation of this many events, from which on the normal law is exact enough.
_NORMAL_FROM = 10.0
#: Smoothing that lets the integral end, as a part of one event.
_SMOOTHING = 0.05
#: Smoothings within which a smoothed event lies.
_WIDTH = 3.0
#: Deviations, and events, from the mean within which a sum lies but for a negligible probability.
_REACH = 7.0


@dataclass(frozen=True)
class Events:
    """Independent events, each of which moves an estimate by ``size``: a binomial count of them, less its mean.

    Each of the ``trials`` is an event with the same ``probability``. ``trials`` need not be an integer: the events may
    have different probabilities, of which the count has the same mean and variance.
    """

    trials: float
    probability: float
    size: float

    @classmethod
    def of(cls, probabilities: Floats, sizes: Floats, weights: Floats) -> list[Events]:
        """Return events with the mean and the variance of these, each counted ``weights`` times.

        An event that is likelier than not is replaced by its absence.
        """
        likely = probabilities > 0.5
        events = []
        for rows, sign in ((~likely, 1.0), (likely, -1.0)):
            chance = np.where(likely, 1 - probabilities, probabilities)[rows]
            mean = float(weights[rows] @ chance)
            variances = weights[rows] * chance * (1 - chance)
            variance = float(variances.sum())
            if mean > 0 and variance > 0:
                probability = min(max(1 - variance / mean, 0.0), 0.5)
                squared = float(variances @ sizes[rows] ** 2) / variance
                trials = variance / (probability * (1 - probability)) if probability else mean
                events.append(cls(trials, probability, sign * math.sqrt(squared)))
        return events

    def scaled(self, factor: float) -> Events:
        """Return events whose size is multiplied by a ``factor``."""
        return replace(self, size=factor * self.size)

    def logarithm(self, points: Floats) -> npt.NDArray[np.complex128]:
        """Return the logarithm of the characteristic function of the sum at some ``points``."""
        waves = np.expm1(1j * self.size * points)
        if self.probability == 0:  # infinitely many trials: Poisson, with ``trials`` for its mean
            return np.asarray(self.trials * (waves - 1j * self.size * points))
        centre = 1j * self.probability * self.size * points
        with np.errstate(divide="ignore"):
            return np.asarray(self.trials * (np.log1p(self.probability * waves) - centre))


@dataclass(frozen=True, eq=False, repr=False)
class EventEstimate(LinearEstimate):
    """An estimated number whose error is made of ``events``.

    Where few events are expected, intervals come from the law of their number and not from the normal law.
    """

    events: tuple[Events, ...] = field(default=(), kw_only=True)

    format: ClassVar[str] = "sfumato-event-estimate"
    _further_keys: ClassVar[tuple[str, ...]] = ("events",)

    @property
    def _few_events(self) -> bool:
        largest = max((abs(event.size) for event in self.events), default=0.0)
        return 0 < self.standard_error < _NORMAL_FROM * largest

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the lower and upper confidence limits.

        A number is left out only if an error as large as its distance has probability at most (1 - confidence)/2.

        Parameters
        ----------
        confidence
            The confidence level: how often the interval holds the true number.
        """
        normal = super().interval(confidence)
        if not self._few_events:
            return normal
        least, greatest = _largest_errors(self.events, self.standard_error, 1 - confidence)
        return self.value - greatest, self.value - least

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of ``null``: the probability of at least this distance if it is the truth."""
        if not self._few_events:
            return super().p_value(null)
        tails = _error_tails(self.events, self.standard_error, np.array([self.value - null]))
        return min(1.0, 2 * float(np.min(tails)))

    def scaled(self, factor: float) -> EventEstimate:
        """Return the estimate of the number times a factor."""
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
        waves = np.exp(law - 1j * at * np.clip(shifted, -score_bounds, score_bounds)[:, None])
        return np.asarray(np.clip(0.5 - np.sum(waves.imag / (np.pi * nodes), axis=1), 0.0, 1.0))

    width = _WIDTH * _SMOOTHING * unit  # an event at the very point counts
    return lower(points + width), 1 - lower(points - width)


def _largest_errors(events: Sequence[Events], deviation: float, alpha: float) -> tuple[float, float]:
    """Return the least and the greatest error, each of which is passed with a probability of at most α/2."""
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
