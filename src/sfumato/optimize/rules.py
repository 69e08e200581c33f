"""Rules that cannot be listed: each is met where a likelihood vector breaks it.

Under some of the rules a mechanism can only be better than under all, so what bounds it bounds every mechanism under
all of them. Vectors that break a rule by a little are drawn towards the constant, which breaks none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.policy import Secret

__all__ = ["ALLOWED", "Rules"]

Floats = npt.NDArray[np.float64]

#: A vector may break a rule by this share of its left side before it is drawn back.
ALLOWED = 1e-6


class Rules:
    """The rules of a secret under a confidence set."""

    def __init__(self, policy: Secret) -> None:
        self._policy = policy
        self._ratio = float((-policy.epsilon).exp())

    def closest(self, rays: Floats) -> tuple[Floats, Floats]:
        """The rule r·v ≥ 0 that each ray comes closest to breaking, and by what share of its left side it does."""
        rows, broken = np.zeros(rays.shape), np.zeros(len(rays))
        for number, rule in enumerate(self._policy.cuts(rays)):
            if rule is not None:
                rows[number, list(rule.right)] = [float(share) for share in rule.right.values()]
                rows[number, list(rule.left)] = [-self._ratio * float(share) for share in rule.left.values()]
        # One secret's cells are on the left, another's on the right.
        lefts = -(np.minimum(rows, 0) * rays).sum(axis=1)
        broken = -(rows * rays).sum(axis=1) / np.maximum(lefts, 1e-300)
        return rows, broken

    def drawn(self, rays: Floats) -> Floats:
        """Rays that break no rule by more than rounding: as little of the constant in them as that takes."""
        rays = rays.copy()
        late = np.arange(len(rays))
        for _ in range(8):
            rows, broken = self.closest(rays[late])
            late, rows = late[broken > ALLOWED / 100], rows[broken > ALLOWED / 100]
            if not len(late):
                break
            # r·((1-a)·v + a·1) = 0
            at, at_constant = (rows * rays[late]).sum(axis=1), rows.sum(axis=1)
            shares = np.clip(1.01 * at / (at - at_constant), 0.0, 1.0)[:, None]
            rays[late] = (1 - shares) * rays[late] + shares
        return rays
