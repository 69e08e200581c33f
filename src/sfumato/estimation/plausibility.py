"""Test whether counts could come from honest devices, whatever the true distribution of the values is.

A mechanism limits the counts: with Q(y|x) the probability of output y for value x, honest reports follow Q·p for some
distribution p. Forged reports can leave that set. Two tests look for it, and both hold for every number of reports:

- The number of reports that add to one cell is a sum of independent events whose probabilities lie between min_x Q(y|x)
  and max_x Q(y|x). The tails of the two binomial distributions bound its tails, for any values of the people.
- For histograms, the mixture of all distributions over the outputs under the Dirichlet(1/2) prior (Krichevsky and
  Trofimov 1981), divided by the greatest likelihood of any Q·p, is an e-value: its expectation is at most 1 if the
  people are a random sample. It stays valid if it is computed again after every report (Ville's inequality).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato._core import Floats
from sfumato.collecting import Aggregate
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism

__all__ = ["ALARM", "Plausibility", "plausibility"]

#: Level of the alarm: probability of an alarm for honest reports, per check.
ALARM = 1e-6
#: Maximum products of values and cells whose probabilities are listed; larger mechanisms are not tested.
_MOST_CELLS = 2**22
#: Bound on the rounding error of a computed probability.
_ROUNDING = 1e-12


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
        Maximum product of values and counts that is tested.

    Returns
    -------
    Plausibility
        The p-value.
    """
    n, observed = counts.n, np.asarray(counts.counts, np.int64)
    size = len(mechanism.domain)
    if n == 0 or size * len(observed) > most_cells:
        return Plausibility(n, 1.0 if n == 0 else None, None)
    try:
        cells = np.array([mechanism.estimator.expected_counts(unit) for unit in np.eye(size)])
    except InvalidInput:
        return Plausibility(n, None, None)
    least = np.clip(cells.min(axis=0) - _ROUNDING, 0.0, 1.0)
    greatest = np.clip(cells.max(axis=0) + _ROUNDING, 0.0, 1.0)
    tails = np.concatenate([_at_least(observed, n, greatest), _at_most(observed, n, least)])
    place = int(tails.argmin())
    by_cell = min(1.0, len(tails) * float(tails[place]))
    by_likelihood = _likelihood_test(mechanism, observed, n, cells) if mechanism.report_format.is_histogram else 1.0
    return Plausibility(
        n, min(1.0, 2 * min(by_cell, by_likelihood)), place % len(observed) if by_cell <= by_likelihood else None
    )


def _at_least(counts: np.ndarray, n: int, probabilities: Floats) -> Floats:
    """Return P(B ≥ count) for binomial B, per cell."""
    from scipy.special import betainc

    inner = (counts > 0) & (counts <= n)
    tails = np.where(counts <= 0, 1.0, 0.0)
    tails[inner] = betainc(counts[inner], n - counts[inner] + 1, probabilities[inner])
    return tails


def _at_most(counts: np.ndarray, n: int, probabilities: Floats) -> Floats:
    """Return P(B ≤ count) for binomial B, per cell."""
    return _at_least(n - counts, n, 1 - probabilities)


def _likelihood_test(mechanism: Mechanism, counts: np.ndarray, n: int, cells: Floats) -> float:
    """Return the reciprocal of the e-value, which is a p-value by Markov's inequality."""
    from scipy.special import gammaln

    uniform = cells.mean(axis=0)
    fractions = counts / n
    if ((uniform <= _ROUNDING) & (counts > 0)).any():
        return 1.0  # an output that no value produces; the binomial tails decide
    fit = mechanism.estimator.fit(fractions, n)
    seen = counts > 0
    # fit.bound is a certified bound on what another distribution can gain, so this is at least the greatest likelihood.
    greatest = n * (float(fractions[seen] @ np.log(uniform[seen])) + fit.gain + fit.bound)
    m = len(counts)
    mixture = gammaln(m / 2) - gammaln(n + m / 2) + float((gammaln(counts + 0.5) - gammaln(0.5)).sum())
    return float(np.exp(min(0.0, greatest - mixture)))
