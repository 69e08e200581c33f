"""Base class of estimators of a mixture, which may be one part of a larger mechanism."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.likelihood import Fit
from sfumato.mechanisms.estimators.scores import ColumnScores, SubsetScores

__all__ = ["PartEstimator"]


class PartEstimator(Estimator):
    """Estimator that also serves one part of a larger mechanism, whose values may be protected or unprotected.

    In a part, ``p`` sums to the mass of the part's protected values. ``total`` is that mass plus the mass of its
    unprotected values, whose reports are revealed with probability γ and otherwise uniform. For a whole mechanism,
    ``p`` sums to 1 and ``total`` is 1. "A set" below is a report that is not revealed: a set or a column.
    """

    #: Number of counts that a set increments.
    each: int
    gamma: float
    #: Score of every protected value for a report that reveals an unprotected value.
    revealed_score: float

    @property
    @abstractmethod
    def set_score_values(self) -> Floats:
        """The scores that a set can have for a value."""

    @abstractmethod
    def set_probabilities(self, p: Floats, total: float) -> Floats:
        """Return the probabilities of ``set_score_values`` for each value; they sum to the probability of a set."""

    @abstractmethod
    def set_scores(self, weights: Floats) -> SubsetScores | ColumnScores:
        """Return the law of a set's contribution to Σ weight·frequency."""

    @abstractmethod
    def law(self, p: Floats, total: float) -> Floats:
        """Return the expected counts of sets."""

    @abstractmethod
    def decode(self, counts: Floats, protected: float, total: float) -> Floats:
        """Return the inverse of ``law``, for a known mass of the protected values."""

    @abstractmethod
    def fit_part(self, fractions: Floats) -> Fit:
        """Return the distribution of maximum likelihood from the fractions of sets."""

    @abstractmethod
    def unprotected_second_moment(self) -> float:
        """Return the mean of |φ(Y)|² for an unprotected value."""

    @abstractmethod
    def squared_scores(self, p: Floats, total: float) -> Floats:
        """Return E[φ²; a set] of each value's score φ."""

    @abstractmethod
    def products(self, p: Floats, total: float) -> Floats:
        """Return E[φφ'; a set]."""

    @abstractmethod
    def quadratic(self, weights: Floats, p: Floats, total: float) -> float:
        """Return E[(Σ weight·φ)²; a set], without building a matrix."""

    def variances(self, p: Floats) -> Floats:
        return self.squared_scores(p, 1.0) - p**2

    def variance(self, weights: Floats, p: Floats) -> float:
        return self.quadratic(weights, p, 1.0) - float(weights @ p) ** 2

    def covariance(self, p: Floats) -> Floats:
        return self.products(p, 1.0) - np.outer(p, p)
