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
    design_epsilon,
    information,
    memberships,
    risk_of,
    set_response,
    set_sizes,
    zoom,
)
from sfumato.policy import ChiSquare, Policy, widest

__all__ = ["IndependentReporting"]


#: An epsilon beyond 99 tells all.
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
        design = _best(confidence, design_epsilon(secret.epsilon), utility)
        budget = {
            "secret": f"{math.log1p(design.secret_gain):.9g}",
            "other": f"{math.log1p(design.other_gain):.9g}",
            "sizes": [design.secret_size, design.other_size],
        }
        mechanism: IndependentReporting = cls.within(secret, budget, design.matrix(confidence.frequencies.shape))
        return mechanism


class _Design(NamedTuple):
    """Sets of these sizes are so much likelier for their members than for others."""

    secret_gain: float
    secret_size: int
    other_gain: float
    other_size: int

    def matrix(self, shape: tuple[int, ...]) -> Floats:
        of_secret, other = self._parts(shape)
        return np.asarray(np.kron(of_secret, other), dtype=np.float64)

    def _parts(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        of_secret = set_response(shape[0], self.secret_size, self.secret_gain)
        return of_secret, set_response(shape[1], self.other_size, self.other_gain)

    def utility_of(self, frequencies: Floats, utility: str) -> float:
        if utility == "estimation":
            return -risk_of(*self._parts(frequencies.shape))
        of_secret, other = self._parts(frequencies.shape)
        # I = I(R¹(S);S) + I(R²(U);U|R¹(S)) (Theorem 16).
        after = of_secret.T @ frequencies  # joint of R¹(S) and U
        law = after.sum(axis=1)
        given_secret = sum(p * information(row / p, other) for p, row in zip(law, after, strict=True) if p > 0)
        return information(frequencies.sum(axis=1), of_secret) + float(given_secret)


def _best(confidence: ChiSquare, epsilon: float, utility: str) -> _Design:
    frequencies = confidence.frequencies
    designs: dict[float, _Design] = {}

    def utility_of(bent: float) -> float:
        # The epsilon of R², from zero (bent = 0) to infinity (bent = 1).
        gain = math.expm1(bent / (1 - bent)) if bent < _ALL else math.inf
        options = []
        for size in set_sizes(frequencies.shape[1], gain):
            left = epsilon - _leakage_of_secret(confidence, size, gain)
            if left >= 0:
                secret_gain = math.expm1(left)
                options += [
                    _Design(secret_gain, mine, gain, size) for mine in set_sizes(frequencies.shape[0], secret_gain)
                ]
        if not options:
            return -math.inf
        designs[bent] = max(options, key=lambda design: design.utility_of(frequencies, utility))
        return designs[bent].utility_of(frequencies, utility)

    (at,) = zoom(utility_of, (0.0, 1.0))
    utility_of(at)
    return designs[at]


def _leakage_of_secret(confidence: ChiSquare, size: int, gain: float) -> float:
    """ln of the greatest ratio P(D|s)/P(D|s'), over all sets, pairs of secrets and distributions, of R²'s outputs D.

    Cells on which the likelihood is equal do best in proportion: a set and its complement are two cells.
    """
    frequencies = confidence.frequencies
    if gain == 0 or frequencies.shape[1] == 1:
        return 0.0
    members = memberships(frequencies.shape[1], size)
    within = members @ frequencies.T  # sets by secrets
    merged = np.stack([within, frequencies.sum(axis=1) - within], axis=2).clip(min=0)
    pairs = np.array(list(itertools.permutations(range(frequencies.shape[0]), 2)))
    cells = merged[:, pairs][_may_tell_most(confidence, members, pairs, gain)]
    likelihoods = np.broadcast_to(np.array([1.0, 0.0]) if math.isinf(gain) else np.array([1 + gain, 1.0]), cells.shape)
    return float(np.log(widest(likelihoods, cells, float(confidence.root_radius - 1)).ratio.max()))


def _may_tell_most(
    confidence: ChiSquare, members: npt.NDArray[np.bool_], pairs: npt.NDArray[np.int64], gain: float
) -> npt.NDArray[np.bool_]:
    """Sets and pairs of secrets that can have the greatest ratio, by the ranges of P(D|s) and P(D|s') (Lemma 9).

    Both probabilities at their ends are more than any distribution has; one at its end, the other as observed, is less.
    """
    ranges = [confidence.conditional_ranges(s, members) for s in range(len(confidence.frequencies))]
    least, greatest = (np.stack(ends, axis=1) for ends in zip(*ranges, strict=True))
    observed = members @ confidence.conditional_estimate().T

    def ratio(mine: Floats, theirs: Floats) -> Floats:
        top, bottom = (mine, theirs) if math.isinf(gain) else (1 + gain * mine, 1 + gain * theirs)
        return np.asarray(np.where(top > 0, top / np.maximum(bottom, 1e-300), 0.0))

    first, second = pairs.T
    reached = np.maximum(ratio(greatest[:, first], observed[:, second]), ratio(observed[:, first], least[:, second]))
    return np.asarray(ratio(greatest[:, first], least[:, second]) >= reached.max() * (1 - 1e-9))
