"""Rules of a confidence set, which cannot be listed and are generated when a likelihood vector violates them.

A mechanism can only be better under a subset of the rules than under all rules. A bound under the generated rules is
therefore a bound under all rules. Vectors that slightly violate a rule are moved towards the constant vector, which
violates none.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.policy import ChiSquare, Secret, widest

__all__ = ["TOLERANCE", "Rules"]


#: Maximum violation of a rule, relative to its left-hand side, before a vector is moved inwards.
TOLERANCE = 1e-6
#: Fraction of the estimate mixed into distributions on the boundary of the set, so that rounding keeps them inside.
_INWARDS = 1e-9
#: Fraction of the constant added to a vector before its closest rules are computed, which keeps all ratios finite.
_TRACE = 1e-9
#: Processor time in seconds per ray and cell of a pair of secrets (36,000 rays and pairs of 20 cells took 3.8 s).
_SECONDS = 5e-6
#: Maximum number of pairs of secrets and vectors in one batch; bounds memory.
_MOST_AT_ONCE = 2**14


class Rules:
    """The rules of a secret policy with a confidence set."""

    def __init__(self, policy: Secret, confidence: ChiSquare) -> None:
        self._cells = policy.cells
        self._ratio = float((-policy.epsilon).exp())
        self._pairs = np.array(list(itertools.permutations(range(len(policy.cells)), 2)))
        self._frequencies = confidence.frequencies[self._pairs]
        self._slack = float(confidence.root_radius - 1)
        sizes = self._frequencies.sum(axis=2, keepdims=True)
        self._observed = sizes > 0
        self._centres = self._frequencies / np.where(self._observed, sizes, 1)
        self._least = np.array([confidence.conditional_ranges(s)[0] for s in range(len(policy.cells))])

    def seconds_for(self, rays: int) -> float:
        """Estimate the processor time to check this number of rays against all rules and to move them inwards."""
        return _SECONDS * rays * int(self._frequencies[:, 0].size)

    def closest(self, rays: Floats) -> tuple[Floats, Floats]:
        """Return for each ray and pair of secrets the most violated rule r·v ≥ 0, and its relative violation.

        The shapes are (rays, pairs, values) and (rays, pairs). The violation is relative to the left-hand side of the
        rule. Rules that the polytope around the set shows to hold are zero.
        """
        step = max(1, _MOST_AT_ONCE // len(self._pairs))
        parts = [self._closest(rays[start : start + step]) for start in range(0, len(rays), step)]
        return np.concatenate([rows for rows, _ in parts]), np.concatenate([broken for _, broken in parts])

    def _closest(self, rays: Floats) -> tuple[Floats, Floats]:
        """Return the most violated rules of a part of the rays."""
        traced = rays + _TRACE * rays.max(axis=1, keepdims=True)
        tables = traced[:, self._cells]
        number, pair = np.nonzero(self._may_break(tables))
        likelihoods = tables[number[:, None], self._pairs[pair]]
        laws = widest(likelihoods, self._frequencies[pair], self._slack).laws
        laws = np.where(self._observed[pair], (1 - _INWARDS) * laws + _INWARDS * self._centres[pair], laws)
        rows = np.zeros((len(rays), len(self._pairs), rays.shape[1]))
        first, second = self._cells[self._pairs[pair]].transpose(1, 0, 2)
        rows[number[:, None], pair[:, None], first] = -self._ratio * laws[:, 0]
        rows[number[:, None], pair[:, None], second] = laws[:, 1]
        # The cells of one secret are on the left-hand side, and those of the other on the right-hand side.
        lefts = -np.einsum("ijk,ik->ij", np.minimum(rows, 0), rays)
        return rows, -np.einsum("ijk,ik->ij", rows, rays) / np.maximum(lefts, 1e-300)

    def _may_break(self, tables: Floats) -> npt.NDArray[np.bool_]:
        """Return the rays and pairs of secrets that violate a rule of the polytope around the set, up to rounding."""
        least_averages = np.einsum("isu,su->is", tables, self._least)
        left = 1 - self._least.sum(axis=1)
        most, least = least_averages + left * tables.max(axis=2), least_averages + left * tables.min(axis=2)
        first, second = self._pairs.T
        return np.asarray(self._ratio * most[:, first] > least[:, second] * (1 - TOLERANCE))

    def draw_inwards(self, rays: Floats) -> Floats:
        """Return rays that satisfy all rules up to rounding, mixed with as little of the constant vector as needed."""
        rays = rays.copy()
        late = np.arange(len(rays))
        for _ in range(8):
            rows, broken = self.closest(rays[late])
            breaks = broken > TOLERANCE / 100
            # r·((1-a)·v + a·1) = 0
            at, at_constant = np.einsum("ijk,ik->ij", rows, rays[late]), rows.sum(axis=2)
            apart = np.where(breaks, at - at_constant, -1.0)
            weights = np.where(breaks, np.clip(1.01 * at / apart, 0.0, 1.0), 0.0).max(axis=1)
            late, weights = late[breaks.any(axis=1)], weights[breaks.any(axis=1), None]
            if not len(late):
                break
            rays[late] = (1 - weights) * rays[late] + weights
        return rays
