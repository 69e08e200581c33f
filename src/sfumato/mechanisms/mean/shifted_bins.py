"""Bins at a random offset, with randomized response between them: estimates of a mean with little error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Floats, checked_integer, checked_integers, exceeds
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, Mechanism, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mean.choice import best_share, best_width
from sfumato.mechanisms.mixture import ONE, mixing_threshold
from sfumato.policy import PairwisePolicy, Policy, Uniform

__all__ = ["ShiftedBins"]

#: Maximum number of outputs, which must be below 2^31.
_LARGEST_OUTPUTS = 2**31 - 1


class ShiftedBins(Mechanism):
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

    def step(self, state: int, draws: Draws) -> Finished:
        if draws.bernoulli(self.share, ONE):
            offset, kind = draws.below(self.first_offsets), 0
        else:
            offset, kind = self.first_offsets + draws.below(self.width - self.first_offsets), 1
        keep = draws.bernoulli(self.thresholds[kind], ONE)
        other = draws.below(self.bins[kind])
        return Finished(offset + self.width * (self._bin(offset, state) if keep else other))

    def _bin(self, offset: int, x: int) -> int:
        """Return the bin of a value."""
        return (x + self.width - 1 - offset) // self.width

    def audit_surrogate(self) -> ShiftedBins:
        size = min(len(self.domain), SURROGATE_VALUES)
        # With both classes of offsets if this mechanism has both, otherwise with thresholds only.
        width = min(self.width, size - 2 if self.first_offsets else size - 1)
        return ShiftedBins(Domain.range(size), self.epsilon, width=width)

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return len(self.domain) + self.width - 1

    def offset_probability(self, offset: int) -> Fraction:
        """Return the probability of an offset, which does not depend on the value.

        Parameters
        ----------
        offset
            The offset, from 0 to ``width`` - 1.

        Returns
        -------
        Fraction
            The probability.
        """
        first = self.first_offsets
        if offset < first:
            return Fraction(self.share, ONE * first)
        return Fraction(ONE - self.share, ONE * (self.width - first))

    def _levels(self, kind: int) -> tuple[Fraction, Fraction]:
        """Return the probabilities of a bin of a class of offsets if it contains the value, and if it does not."""
        gamma = Fraction(self.thresholds[kind], ONE)
        return gamma + (1 - gamma) / self.bins[kind], (1 - gamma) / self.bins[kind]

    def probability(self, report: int, x: int) -> Fraction:
        bin_, offset = divmod(report, self.width)
        high, low = self._levels(0 if offset < self.first_offsets else 1)
        return self.offset_probability(offset) * (high if self._bin(offset, x) == bin_ else low)

    def matrix(self) -> npt.NDArray[np.float64]:
        size = len(self.domain)
        values, reports = np.arange(size)[:, None], np.arange(self.outputs)
        in_bin = (values <= reports) & (values > reports - self.width)
        entries = [
            [float(self.offset_probability(offset) * level) for level in self._levels(offset >= self.first_offsets)]
            for offset in range(self.width)
        ]
        high, low = np.array(entries)[reports % self.width].T
        return np.asarray(np.where(in_bin, high, low), np.float64)

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if not isinstance(policy, PairwisePolicy):
            return None
        # The columns of a class of offsets have one ratio high/low. The least epsilon of all pairs binds if both
        # classes have a bin that contains one value of such a pair and not the other. Every offset separates the ends.
        pair = (0, len(self.domain) - 1) if isinstance(policy, Uniform) else policy.least[1]
        separating = [self._separating(kind, min(pair), max(pair)) for kind in self._possible_classes()]
        if None in separating:
            return None
        reports = [report for pair_ in separating if pair_ is not None for report in pair_]
        return ((report, self._column(report)) for report in reports)

    def _possible_classes(self) -> list[int]:
        """Return the classes of offsets that have a positive probability."""
        return [kind for kind, share in enumerate((self.share, ONE - self.share)) if share]

    def _separating(self, kind: int, low: int, high: int) -> tuple[int, int] | None:
        """Return reports of a class whose bins contain the lower and the higher of two values and not the other."""
        first = self.first_offsets
        offsets = range(first) if kind == 0 else range(first, self.width)
        offset = next((r for r in offsets if self._bin(r, low) != self._bin(r, high)), None)
        if offset is None:
            return None
        return offset + self.width * self._bin(offset, low), offset + self.width * self._bin(offset, high)

    def _column(self, report: int) -> list[Fraction]:
        """Return the likelihoods of all values."""
        high, low = self._levels(0 if report % self.width < self.first_offsets else 1)
        return [high if report - self.width < x <= report else low for x in range(len(self.domain))]

    def classical_epsilon(self) -> Epsilon | None:
        levels = map(self._levels, self._possible_classes())
        return None if any(exceeds(high, low, self.epsilon) for high, low in levels) else self.epsilon

    def guess_probability(self) -> Fraction:
        shares = Fraction(self.share, ONE), 1 - Fraction(self.share, ONE)
        greatest = (
            share * bins * self._levels(kind)[0]
            for kind, (share, bins) in enumerate(zip(shares, self.bins, strict=True))
        )
        return sum(greatest, Fraction(0)) / len(self.domain)

    def parameters(self) -> dict[str, Any]:
        return {
            "epsilon": str(self.epsilon),
            "width": self.width,
            "share": str(self.share),
            "thresholds": [str(threshold) for threshold in self.thresholds],
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> ShiftedBins:
        return cls(domain, **parameters)
