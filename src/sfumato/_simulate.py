"""The verb ``simulate``: a whole collection on paper, from people to estimate, beside what was predicted.

People are drawn from the truth by the same exact sampler that privatizes them: a table with one row. Nothing here is
secure, and nothing that is simulated is anybody's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato._aggregate import Aggregate
from sfumato._design import design
from sfumato._estimate import Estimate, estimate
from sfumato._plan import expected_tv
from sfumato._privatize import privatize_indices
from sfumato.domain import Domain
from sfumato.entropy import InsecureSeeded
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, TableMechanism
from sfumato.mechanisms.base import checked_distribution
from sfumato.policy import Policy

__all__ = ["TRUTHS", "Simulation", "simulate"]

Floats = npt.NDArray[np.float64]

#: People are made, randomized and counted in pieces, so memory does not grow with their number.
_PIECE = 2**19

#: Named truths over k values, as unnormalised weights.
TRUTHS: dict[str, Callable[[int], Floats]] = {
    "uniform": lambda k: np.ones(k, dtype=np.float64),
    "zipf": lambda k: np.asarray(1 / np.arange(1, k + 1), dtype=np.float64),
    "geometric": lambda k: np.asarray(0.95 ** np.arange(k), dtype=np.float64),
}


@dataclass(frozen=True, eq=False)
class Simulation:
    """One simulated collection: what was true, what was estimated, and the error beside its prediction."""

    mechanism: Mechanism
    truth: Floats
    estimate: Estimate

    @property
    def l2(self) -> float:
        """The squared l2 error of the estimate."""
        return float(np.sum((self.estimate.frequencies - self.truth) ** 2))

    @property
    def tv(self) -> float:
        """The total variation error of the estimate."""
        return float(np.abs(self.estimate.frequencies - self.truth).sum()) / 2

    @property
    def predicted_l2(self) -> float:
        """The expected squared l2 error of the unbiased estimate at the truth."""
        return self.mechanism.risk(self.estimate.n, self.truth)

    @property
    def predicted_tv(self) -> float:
        """The expected total variation error of the unbiased estimate at the truth."""
        return expected_tv(self.mechanism, self.truth) / math.sqrt(self.estimate.n)

    @property
    def coverage(self) -> float:
        """The share of values whose 95% interval holds the truth."""
        low, high = self.estimate.interval()
        return float(np.mean((low <= self.truth) & (self.truth <= high)))


def simulate(
    what: Policy | Mechanism,
    *,
    n: int,
    truth: str | Sequence[float] | Floats = "uniform",
    method: str = "unbiased",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Draw n people from a truth, privatize, aggregate, estimate. ``truth`` is a distribution, or one of TRUTHS."""
    mechanism = what if isinstance(what, Mechanism) else design(what, n)
    size = len(mechanism.domain)
    if n < 1:
        raise InvalidInput("simulate", "n", "be at least 1", n)
    if isinstance(truth, str):
        if truth not in TRUTHS:
            raise InvalidInput("simulate", "truth", f"be a distribution, or one of {', '.join(TRUTHS)}", truth)
        weights = TRUTHS[truth](size)
        distribution = weights / weights.sum()
    else:
        distribution = checked_distribution(truth, size)
    people = TableMechanism.from_matrix(Domain.range(1), [distribution.tolist()])
    stream = InsecureSeeded(seed)
    counts = Aggregate.empty(mechanism)
    for start in range(0, n, _PIECE):
        anybody = np.zeros(min(_PIECE, n - start), dtype=np.int64)
        values = privatize_indices(people, anybody, stream).astype(np.int64)
        counts = counts.accumulate(mechanism, privatize_indices(mechanism, values, stream))
        if progress is not None:
            progress(start + len(values), n)
    return Simulation(mechanism, distribution, estimate(mechanism, counts, method))
