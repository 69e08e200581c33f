"""Test whether counts could come from honest devices, whatever the true distribution of the values is.

A mechanism limits the counts: with Q(y|x) the probability of output y for value x, honest reports follow Q·p for some
distribution p. Forged reports, and those of another mechanism, can leave that set. Three tests look for it:

- The number of reports that add to one cell is a sum of independent events whose probabilities lie between min_x Q(y|x)
  and max_x Q(y|x). The tails of the two binomial distributions bound its tails, for any values of the people.
- If bits are independent given the value, so are all bits of all reports. The tails of their total lie below those of a
  binomial distribution with its mean (Hoeffding 1956, theorem 4), for any values of the people.
- For histograms, the mixture of all distributions over the outputs under the Dirichlet(1/2) prior (Krichevsky and
  Trofimov 1981), divided by the greatest likelihood of any Q·p, is an e-value: its expectation is at most 1 if the
  people are a random sample. It stays valid if it is computed again after every report (Ville's inequality).

All hold for every number of reports. No mechanism has both of the last two, so the p-value is twice the smaller one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from sfumato._core import Floats, Integers
from sfumato.collecting import Aggregate
from sfumato.errors import InvalidInput
from sfumato.mechanisms import HistogramEstimator, Mechanism, has_independent_steps, independent_bits_of

__all__ = ["ALARM", "Plausibility", "implausible", "plausibility"]

#: Level of the alarm: probability of an alarm for honest reports, per check.
ALARM = 1e-6
#: Maximum products of values and cells whose probabilities are listed; larger mechanisms are not tested unless their
#: estimator knows the least and the greatest probability of each cell.
_MOST_CELLS = 2**22
#: Maximum products of values and cells that are listed for a warning; this takes milliseconds.
_QUICK_CELLS = 2**18
#: Maximum number of counts of the likelihood test, which bounds its time.
_MOST_OUTPUTS = 2**16
#: Bound on the rounding error of a computed probability.
_ROUNDING = 1e-12
#: Replacement for zero in logarithms and quotients.
_TINY = 1e-300
_WARNING = (
    "the counts are improbable under every distribution of values (p at most 1e-6): the reports may be of another "
    "mechanism, or some may be forged; check that this mechanism produced them"
)


@dataclass(frozen=True)
class Plausibility:
    """The result of the test.

    Parameters
    ----------
    n
        The number of reports.
    p_value
        Probability of counts at least as extreme from honest reports, at most, for any truth. None if the mechanism is
        too large to test.
    cell
        Index of the count that is the least plausible, or None if another test decided.
    """

    n: int
    p_value: float | None
    cell: int | None

    @property
    def alarm(self) -> bool:
        """Whether the p-value is at most 1e-6."""
        return self.p_value is not None and self.p_value <= ALARM


def plausibility(mechanism: Mechanism, counts: Aggregate, *, most_cells: int = _MOST_CELLS) -> Plausibility:
    """Test whether counts could come from honest devices, for any distribution of the values.

    Parameters
    ----------
    mechanism
        The mechanism that produced the reports.
    counts
        Aggregated reports.
    most_cells
        Maximum product of values and counts whose probabilities are listed.

    Returns
    -------
    Plausibility
        The p-value.
    """
    n, observed = counts.n, np.asarray(counts.counts, np.int64)
    if n == 0:
        return Plausibility(n, 1.0, None)
    try:
        bounds = mechanism.estimator.count_bounds(most_cells)
    except InvalidInput:
        bounds = None
    if bounds is None:
        return Plausibility(n, None, None)
    least, greatest, least_total, greatest_total = bounds
    by_cell, cell = _cell_test(observed, n, least, greatest)
    estimator, bits, by_law = mechanism.estimator, independent_bits_of(mechanism), 1.0
    if bits is not None and has_independent_steps(bits):
        by_law = _total_test(int(observed.sum()), n, len(observed), least_total, greatest_total)
    elif mechanism.report_format.is_histogram and len(observed) <= min(n, _MOST_OUTPUTS):  # it needs many reports
        by_law = _likelihood_test(cast("HistogramEstimator", estimator), observed, n)
    return Plausibility(n, min(1.0, 2 * min(by_cell, by_law)), cell if by_cell <= by_law else None)


def implausible(mechanism: Mechanism, counts: Aggregate) -> tuple[str, ...]:
    """Return the warning of an estimate from improbable counts; empty if they are plausible or not tested."""
    return (_WARNING,) if plausibility(mechanism, counts, most_cells=_QUICK_CELLS).alarm else ()


def _cell_test(counts: Integers, n: int, least: Floats, greatest: Floats) -> tuple[float, int]:
    """Return the p-value of the most extreme count, for all tails together, and its index.

    The exponents of Chernoff's bound choose the count, so that only one exact tail is computed.
    """
    # If all counts have the same bounds, only the least and the greatest count can be the most extreme.
    places = np.arange(len(counts)) if np.ndim(least) else np.array([counts.argmin(), counts.argmax()])
    seen = counts[places] / n
    limits = np.clip(seen, np.maximum(least - _ROUNDING, 0.0), np.minimum(greatest + _ROUNDING, 1.0))
    outside = np.flatnonzero(seen != limits)
    if not len(outside):
        return 1.0, 0
    places, seen, limits = places[outside], seen[outside], limits[outside]
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(seen > 0, seen * np.log(seen / limits), 0.0)
        exponents = ones + np.where(seen < 1, (1 - seen) * np.log((1 - seen) / (1 - limits)), 0.0)
    chosen = int(exponents.argmax())
    place = int(places[chosen])
    tail = _tail(int(counts[place]), n, float(limits[chosen]))
    return min(1.0, 2 * len(counts) * tail), place


def _total_test(total: int, n: int, cells: int, least: float, greatest: float) -> float:
    """Return the p-value of the total of all bits, whose mean per report lies between two numbers."""
    trials = n * cells
    mean = min(max(total, n * (least - cells * _ROUNDING)), n * (greatest + cells * _ROUNDING))
    if abs(total - mean) < 1:  # the theorem is about totals at least 1 away from the mean
        return 1.0
    return min(1.0, 2 * _tail(total, trials, min(max(mean / trials, 0.0), 1.0)))


def _tail(count: int, n: int, probability: float) -> float:
    """Return P(B ≥ count) for binomial B if count is above its mean, and P(B ≤ count) if it is below."""
    from scipy.special import betainc

    if count < n * probability:
        count, probability = n - count, 1 - probability
    return float(betainc(count, n - count + 1, probability))


def _likelihood_test(estimator: HistogramEstimator, counts: Integers, n: int) -> float:
    """Return the reciprocal of the e-value, which is a p-value by Markov's inequality."""
    from scipy.special import gammaln

    outputs, seen = len(counts), counts > 0
    fractions = counts / n
    if (estimator.expected_counts(np.full(estimator.size, 1 / estimator.size))[seen] <= _ROUNDING).any():
        return 1.0  # an output that no value produces; the binomial tails decide
    mixture = gammaln(outputs / 2) - gammaln(n + outputs / 2)
    mixture += float((gammaln(counts[seen] + 0.5) - gammaln(0.5)).sum())

    def likelihood(law: Floats) -> float:
        return n * float(fractions[seen] @ np.log(np.maximum(law[seen], _TINY)))

    if estimator.is_complete:  # the distribution near the estimate is usually likely enough, and needs no search
        nearest = estimator.nearest(estimator.frequencies(fractions), fractions)
        if likelihood(estimator.expected_counts(nearest)) >= mixture:
            return 1.0
    law = np.maximum(estimator.expected_counts(estimator.reported_distribution(fractions, n)), _TINY)
    # The logarithm is concave, so its slopes at a law bound what any other distribution of the values can gain.
    slopes = estimator.adjoint(np.divide(fractions, law, out=np.zeros(outputs), where=seen))
    greatest = likelihood(law) + n * max(math.log(slopes.max()), 0.0)
    return math.exp(min(0.0, greatest - mixture))
