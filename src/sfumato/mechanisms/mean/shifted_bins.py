"""Bins at a random offset, with randomized response between them: estimates of a mean with little error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import EpsilonLike, Floats, checked_integer, checked_integers
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, read_epsilon
from sfumato.mechanisms.choice import ChoiceOfMixtures
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mean.choice import best_share, best_width
from sfumato.mechanisms.mixture import ONE, Mixture, mixing_threshold
from sfumato.mechanisms.systems.base import Force, SetSystem

__all__ = ["Bins", "ShiftedBins"]

#: Maximum number of outputs, which must be below 2^31.
_LARGEST_OUTPUTS = 2**31 - 1


@dataclass(frozen=True)
class Bins(SetSystem):
    """The bins of ``width`` neighbours at some offsets; report r + j·m is bin j of the offset r."""

    size: int
    width: int
    offsets: range
    #: Number of bins of each offset.
    bins: int

    @property
    def outputs(self) -> int:
        return len(self.offsets) * self.bins

    @property
    def density(self) -> Fraction:
        return Fraction(1, self.bins)

    def reports(self) -> Iterable[int]:
        return (offset + self.width * place for place in range(self.bins) for offset in self.offsets)

    def step(self, state: int, draws: Draws, force: Force) -> Finished:
        number, keep, other = draws.below(len(self.offsets)), force(), draws.below(self.bins)
        return Finished(self.member(state, number) if keep else self.offsets[number] + self.width * other)

    def member(self, x: int, number: int) -> int:
        offset = self.offsets[number]
        return offset + self.width * ((x + self.width - 1 - offset) // self.width)

    def contains(self, report: int, x: int) -> bool:
        return report - self.width < x <= report

    def members(self, values: Sequence[int]) -> npt.NDArray[np.bool_]:
        reports, places = np.array([*self.reports()], np.int64), np.asarray(values)[:, None]
        return np.asarray((reports - self.width < places) & (places <= reports))

    def empty_outputs(self) -> int:
        return 0


class ShiftedBins(ChoiceOfMixtures):
    """Bins of neighbouring values at a random offset, with randomized response between the bins.

    The values are in an order, such as numbers. An offset is drawn that does not depend on the value. It cuts the
    values into bins of ``width`` neighbours; the first and the last bin may have fewer. The report is the offset with
    the bin of the true value, or with a bin drawn uniformly. It estimates means, and also all frequencies, though with
    more error than other mechanisms.

    Parameters
    ----------
    domain
        The k values in their order, at least three.
    epsilon
        The level ε of classical local differential privacy.
    width
        Number of neighbouring values in a bin, from 2 to k-1. By default, the width with the least variance of the mean
        index at the uniform distribution.
    share
        Probability, times 2^64, of the offsets with one bin more than the others. By default, the one with the least
        variance of the mean index at the uniform distribution.
    thresholds
        The integers ⌊2^64·γ⌋ that a stored spec holds, for offsets with one bin more and for the others. Omit them to
        compute them from ``epsilon``.

    Notes
    -----
    With offset r from 0 to m-1 for width m, bin j has the values from r + (j-1)·m + 1 to r + j·m that exist, and the
    report is r + j·m. There are k+m-1 reports. Let a be the remainder of k+m-1 divided by m. The first a offsets have
    one bin more than the others. With g bins, the bin is the true one with probability γ = (t-1)/(t+g-1), t = e^ε,
    rounded down to a multiple of 2^-64. Otherwise it is drawn uniformly from the g bins. For m = k-1 every offset is a
    threshold between two values.

    The form of the mechanism was found by solving for the least variance of the mean of equally spaced numbers at the
    uniform distribution. For 16 values, the tests check that no mechanism of ε-local differential privacy has 0.1% less
    variance. ``docs/proofs/shifted-bins.md`` has the proofs, and the ratios for more values.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import ShiftedBins
    >>> mechanism = ShiftedBins(Domain.range(74), 1)
    >>> mechanism.width, mechanism.bins, mechanism.outputs
    (57, (3, 2), 130)
    """

    name = "shifted-bins"

    def __init__(
        self,
        domain: Domain,
        epsilon: EpsilonLike,
        *,
        width: int | None = None,
        share: int | str | None = None,
        thresholds: Sequence[int | str] | None = None,
    ) -> None:
        subject = "ShiftedBins"
        self.domain = checked_domain(subject, domain)
        self.epsilon = read_epsilon(subject, epsilon)
        size = len(domain)
        if size < 3:
            hint = "Use RandomizedResponse for two values."
            raise InvalidInput(subject, "domain", "have at least three values", domain, hint=hint)
        if width is None:
            width = best_width(np.arange(size, dtype=np.float64), self.epsilon)
        self.width = checked_integer(subject, "width", width, 2, min(size - 1, _LARGEST_OUTPUTS - size))
        fewest, self.first_offsets = divmod(size + self.width - 1, self.width)
        #: Number of bins of the first offsets, and of the others.
        self.bins = (fewest + 1, fewest)
        if share is None:
            share = best_share(np.arange(size, dtype=np.float64), self.epsilon, self.width)
        self.share = checked_integer(subject, "share", share, 0, ONE if self.first_offsets else 0)
        if thresholds is None:
            thresholds = [mixing_threshold(self.epsilon, Fraction(1, bins)) for bins in self.bins]
        ranges = [("of the first offsets", 0, ONE), ("of the other offsets", 0, ONE)]
        self.thresholds = checked_integers(subject, "thresholds", thresholds, ranges)
        classes = range(self.first_offsets), range(self.first_offsets, self.width)
        self.parts = tuple(
            Mixture(domain, self.epsilon, Bins(size, self.width, offsets, bins), threshold=threshold)
            for offsets, bins, threshold in zip(classes, self.bins, self.thresholds, strict=True)
        )
        self.weights = self.share, ONE - self.share
        self.layout = Layout(128, tuple(Field.number(low, 32) for low in (32, 0, 96, 64)))

    @classmethod
    def for_numbers(cls, domain: Domain, epsilon: EpsilonLike, numbers: Floats) -> ShiftedBins:
        """Build the mechanism with the least variance of the mean of given numbers at the uniform distribution.

        Parameters
        ----------
        domain
            The values in their order, at least three.
        epsilon
            The level ε of classical local differential privacy.
        numbers
            The number of each value, in domain order and not all equal.

        Returns
        -------
        ShiftedBins
            The mechanism. Its width and share suit the numbers; its reports can be used for any other question too.
        """
        weights, level = np.asarray(numbers, dtype=np.float64), read_epsilon("ShiftedBins", epsilon)
        width = best_width(weights, level)
        return cls(domain, level, width=width, share=best_share(weights, level, width))

    # -- the sampler -----------------------------------------------------------------------------------------

    def _drawn(self, draws: Draws) -> int:
        return 0 if draws.bernoulli(self.share, ONE) else 1

    def audit_surrogate(self) -> ShiftedBins:
        size = min(len(self.domain), SURROGATE_VALUES)
        # With both classes of offsets if this mechanism has both, otherwise with thresholds only.
        width = min(self.width, size - 2 if self.first_offsets else size - 1)
        return ShiftedBins(Domain.range(size), self.epsilon, width=width)

    # -- the stated law --------------------------------------------------------------------------------------

    def split_report(self, report: int) -> tuple[int, int]:
        return int(report % self.width >= self.first_offsets), report

    def _joined(self, number: int, report: int) -> int:  # noqa: ARG002
        return report

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": str(self.epsilon),
            "width": self.width,
            "share": str(self.share),
            "thresholds": [str(threshold) for threshold in self.thresholds],
        }
