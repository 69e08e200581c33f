"""Independent reporting: the secret and the harmless attribute each through a response of its own."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.mechanisms.secret.base import (
    ReportingMechanism,
    checked_policy,
    design_level,
    information,
    memberships,
    risk_of,
    set_response,
    set_sizes,
    zoom,
)
from sfumato.policy import ChiSquare, Policy, widest

__all__ = ["IndependentReporting"]


#: A level beyond 99 tells all.
_ALL = 0.99


class IndependentReporting(ReportingMechanism):
    """Reports (R¹(S), R²(U)), two set responses drawn independently (RLDP Protocol 1).

    R² only leaks what U tells of S. Theorem 15 bounds that by an l1 distance; ``for_policy`` computes the greatest
    ratio over the confidence set itself, for every level of R², and gives what is left of ε to R¹.
    """

    name = "independent-reporting"

    @classmethod
    def for_policy(cls, policy: Policy, utility: str = "mutual-information") -> IndependentReporting:
        """The best division of ε, for what is told at P̂ or for the error of the estimated table."""
        secret, confidence = checked_policy("IndependentReporting", policy, utility)
        design = _best(confidence, design_level(secret.epsilon), utility)
        budget = {
            "secret": f"{math.log1p(design.own_gain):.9g}",
            "other": f"{math.log1p(design.other_gain):.9g}",
            "sizes": [design.own_size, design.other_size],
        }
        mechanism: IndependentReporting = cls.within(secret, budget, design.matrix(confidence.frequencies.shape))
        return mechanism


class _Design(NamedTuple):
    """Sets of these sizes are so much likelier for their members than for others."""

    own_gain: float
    own_size: int
    other_gain: float
    other_size: int

    def matrix(self, shape: tuple[int, ...]) -> Floats:
        own, other = self._parts(shape)
        return np.asarray(np.kron(own, other), dtype=np.float64)

    def _parts(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        own = set_response(shape[0], self.own_size, self.own_gain)
        return own, set_response(shape[1], self.other_size, self.other_gain)

    def worth(self, shares: Floats, utility: str) -> float:
        if utility == "estimation":
            return -risk_of(*self._parts(shares.shape))
        own, other = self._parts(shares.shape)
        # I = I(R¹(S);S) + I(R²(U);U|R¹(S)) (Theorem 16).
        after = own.T @ shares  # joint of R¹(S) and U
        law = after.sum(axis=1)
        told = sum(p * information(row / p, other) for p, row in zip(law, after, strict=True) if p > 0)
        return information(shares.sum(axis=1), own) + float(told)


def _best(confidence: ChiSquare, level: float, utility: str) -> _Design:
    shares = confidence.frequencies
    found: dict[float, _Design] = {}

    def worth(bent: float) -> float:
        # The level of R², from zero (bent = 0) to infinity (bent = 1).
        gain = math.expm1(bent / (1 - bent)) if bent < _ALL else math.inf
        options = []
        for size in set_sizes(shares.shape[1], gain):
            left = level - _told_of_secret(confidence, size, gain)
            if left >= 0:
                own = math.expm1(left)
                options += [_Design(own, mine, gain, size) for mine in set_sizes(shares.shape[0], own)]
        if not options:
            return -math.inf
        found[bent] = max(options, key=lambda design: design.worth(shares, utility))
        return found[bent].worth(shares, utility)

    (at,) = zoom(worth, (0.0, 1.0))
    worth(at)
    return found[at]


def _told_of_secret(confidence: ChiSquare, size: int, gain: float) -> float:
    """ln of the greatest ratio P(D|s)/P(D|s'), over all sets, pairs of secrets and distributions, of R²'s outputs D.

    Cells on which the likelihood is equal do best in proportion: a set and its complement are two cells.
    """
    shares = confidence.frequencies
    if gain == 0 or shares.shape[1] == 1:
        return 0.0
    members = memberships(shares.shape[1], size)
    within = members @ shares.T  # sets by secrets
    merged = np.stack([within, shares.sum(axis=1) - within], axis=2).clip(min=0)
    pairs = np.array(list(itertools.permutations(range(shares.shape[0]), 2)))
    cells = merged[:, pairs][_may_tell_most(confidence, members, pairs, gain)]
    likelihoods = np.broadcast_to(np.array([1.0, 0.0]) if math.isinf(gain) else np.array([1 + gain, 1.0]), cells.shape)
    return float(np.log(widest(likelihoods, cells, float(confidence.root_radius - 1)).ratio.max()))


def _may_tell_most(
    confidence: ChiSquare, members: npt.NDArray[np.bool_], pairs: npt.NDArray[np.int64], gain: float
) -> npt.NDArray[np.bool_]:
    """Sets and pairs of secrets that can have the greatest ratio, by the ranges of P(D|s) and P(D|s') (Lemma 9).

    Both shares at their ends are more than any distribution has; one at its end, the other as observed, is less.
    """
    ranges = [confidence.conditional_ranges(s, members) for s in range(len(confidence.frequencies))]
    least, greatest = (np.stack(ends, axis=1) for ends in zip(*ranges, strict=True))
    observed = members @ confidence.conditional_estimate().T

    def ratio(mine: Floats, theirs: Floats) -> Floats:
        top, bottom = (mine, theirs) if math.isinf(gain) else (1 + gain * mine, 1 + gain * theirs)
        return np.asarray(np.where(top > 0, top / np.maximum(bottom, 1e-300), 0.0))

    own, other = pairs.T
    reached = np.maximum(ratio(greatest[:, own], observed[:, other]), ratio(observed[:, own], least[:, other]))
    return np.asarray(ratio(greatest[:, own], least[:, other]) >= reached.max() * (1 - 1e-9))
