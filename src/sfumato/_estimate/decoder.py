"""What a decoder is: from counts to unbiased frequencies, and the exact covariance of that estimate.

A decoder is linear in the counts, so what it says is exact for every n: the estimate is unbiased, and the covariance
of n reports is 1/n of what ``covariance(p)`` gives for one report of a person drawn from p.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

from sfumato.simplex import project_beside_clear

__all__ = ["Decoder", "Floats", "HistogramDecoder"]

Floats = npt.NDArray[np.float64]

#: Beside what a report counts for a value, this is nothing: rounding of a matrix that was inverted.
_NOTHING = 1e-9


class Decoder(ABC):
    """The unbiased linear estimate of one mechanism."""

    size: int

    @abstractmethod
    def frequencies(self, shares: Floats) -> Floats:
        """The estimate from shares: counts divided by the number of reports."""

    @abstractmethod
    def shares(self, p: Floats) -> Floats:
        """The expected shares at p: ``frequencies(shares(p)) == p``."""

    def nearest(self, unbiased: Floats, shares: Floats) -> Floats:  # noqa: ARG002
        """A distribution near the unbiased estimate, among those with the totals that the counts know.

        Values told in clear keep what they are told to have; the others are the nearest in l2 to theirs.
        """
        return project_beside_clear(unbiased, self.clear())

    def clear(self) -> npt.NDArray[np.bool_]:
        """Which values are told in clear: no report counts against them, so their estimate is a count of reports."""
        least, greatest = self.span()
        return np.asarray((greatest > 0) & (least >= -_NOTHING * greatest))

    @abstractmethod
    def variances(self, p: Floats) -> Floats:
        """The variance of each frequency from one report at p."""

    @abstractmethod
    def covariance(self, p: Floats) -> Floats:
        """The covariance of the frequencies from one report at p."""

    @abstractmethod
    def variance(self, weights: Floats, p: Floats) -> float:
        """The variance of Σ weight·frequency from one report at p: weights·covariance·weights, without the matrix."""

    @abstractmethod
    def reach(self) -> tuple[Floats, Floats]:
        """The least and the greatest that one report can count for each frequency."""

    def least_variances(self) -> Floats:
        """The variance from one report that each frequency has at least, whatever the counts seem to say."""
        return np.zeros(self.size)

    def told_together(self) -> npt.NDArray[np.int64]:
        """For each value the number of its group: every report tells the group, so its total is a count of reports."""
        return np.zeros(self.size, dtype=np.int64)

    def span(self) -> tuple[Floats, Floats]:
        """The least and the greatest that one honest report counts: what intervals from few reports rest on."""
        return self.reach()


class HistogramDecoder(Decoder):
    """A decoder whose counts are a histogram over the outputs: ``shares`` is the law of the outputs at p."""

    @abstractmethod
    def pull(self, weights: Floats) -> Floats:
        """Σ_y Q(y|x)·weights_y for every value x: the adjoint of ``shares``."""
