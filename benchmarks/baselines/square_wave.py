"""Square Wave reporting with EM and EMS reconstruction (Li, Wang, Lopuhaä-Zwakenberg, Li and Škorić 2020).

The reconstruction is biased, so that it is compared by distances between distributions and not by variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["SquareWave", "reconstruct"]

Floats = npt.NDArray[np.float64]

#: Maximum number of EM steps, as in the published code.
_STEPS = 10_000


class SquareWave:
    """Discrete square wave: k bins, k + 2b outputs, and the greater probability within distance b of the bin.

    Parameters
    ----------
    k
        The number of bins of [0, 1].
    epsilon
        Privacy level of each report.
    reach
        The integer b; by default the published width times k, rounded down.
    """

    def __init__(self, k: int, epsilon: float, reach: int | None = None) -> None:
        self.k, self.epsilon = k, epsilon
        self.reach = int(self.published_width(epsilon) * k) if reach is None else reach
        self.outputs = k + 2 * self.reach
        self.low = 1 / ((2 * self.reach + 1) * math.exp(epsilon) + k - 1)

    @staticmethod
    def published_width(epsilon: float) -> float:
        """Return the half width b of the window, in units of the domain (Li et al. 2020, sec. 5.3)."""
        t = math.exp(epsilon)
        return (epsilon * t - t + 1) / (2 * t * (t - 1 - epsilon))

    @staticmethod
    def information_bound(epsilon: float, width: float) -> float:
        """Return the bound on the mutual information that the published width maximizes.

        It is the differential entropy of a uniform output on an interval of length 1 + 2b, minus that of the noise.
        """
        t = math.exp(epsilon)
        total = 2 * width * t + 1
        return math.log((1 + 2 * width) / total) + 2 * width * epsilon * t / total

    def matrix(self) -> Floats:
        """Return the probability of each output for each bin."""
        distance = np.arange(self.outputs) - np.arange(self.k)[:, None]
        inside = (distance >= 0) & (distance <= 2 * self.reach)
        return self.low * np.where(inside, math.exp(self.epsilon), 1.0)

    def law(self, p: Floats) -> Floats:
        """Return the probability of each output at a distribution, in a time linear in the outputs."""
        sums = np.concatenate([np.zeros(2 * self.reach + 1), np.cumsum(p), np.full(2 * self.reach, p.sum())])
        window = sums[2 * self.reach + 1 :] - sums[: self.outputs]
        return np.asarray(self.low * (p.sum() + math.expm1(self.epsilon) * window))

    def adjoint(self, weights: Floats) -> Floats:
        """Return the expected weight of the output of each bin."""
        sums = np.concatenate([[0.0], np.cumsum(weights)])
        window = sums[2 * self.reach + 1 :] - sums[: self.k]
        return np.asarray(self.low * (sums[-1] + math.expm1(self.epsilon) * window))

    def mutual_information(self, prior: Floats) -> float:
        """Return the mutual information between the bin and the report, in nats."""
        law = self.law(prior)
        inside = (2 * self.reach + 1) * self.low * math.exp(self.epsilon)
        noise = inside * (math.log(self.low) + self.epsilon) + (1 - inside) * math.log(self.low)
        return float(noise - law @ np.log(law))


def reconstruct(
    counts: npt.NDArray[np.int64],
    law: Callable[[Floats], Floats],
    adjoint: Callable[[Floats], Floats],
    k: int,
    *,
    tolerance: float = 1e-3,
    smooth: bool = True,
) -> Floats:
    """Return the distribution that EM finds from counts of outputs; with ``smooth``, EMS.

    EMS averages each bin with its neighbours by the weights 1, 2, 1 after every step. The iteration stops when the
    log-likelihood of all reports changes by less than the tolerance, or the distribution by at most 1/n. The published
    tolerances are 0.001 for EMS and 0.001·e^ε for EM.
    """
    p = np.full(k, 1 / k)
    before = -math.inf
    for _ in range(_STEPS):
        expected = law(p)
        likelihood = float(counts @ np.log(np.where(counts > 0, expected, 1.0)))
        if abs(likelihood - before) < tolerance:
            break
        before, previous = likelihood, p
        p = p * adjoint(counts / expected)
        if smooth:
            p = _smoothed(p)
        p /= p.sum()
        if np.abs(p - previous).sum() <= 1 / counts.sum():
            break
    return p


def _smoothed(p: Floats) -> Floats:
    """Return the averages of neighbours by the weights 1, 2, 1; those beyond the ends are left out."""
    total = np.full(len(p), 4.0)
    total[[0, -1]] = 3.0
    sums = 2 * p
    sums[1:] += p[:-1]
    sums[:-1] += p[1:]
    return np.asarray(sums / total)
