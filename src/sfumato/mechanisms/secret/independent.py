"""Independent reporting: the secret and the public attribute each pass through a separate response."""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.mechanisms.secret.base import (
    checked_policy,
    information,
    memberships,
    reporting_table,
    risk_of,
    set_response,
    set_sizes,
    zoom,
)
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import ChiSquare, Policy, widest

__all__ = ["IndependentReporting"]


#: Point of the search interval from which on the level is infinite; it corresponds to ε = 99.
_ALL = 0.99


def IndependentReporting(policy: Policy, utility: str = "mutual-information") -> TableMechanism:  # noqa: N802
    """Return two independent random responses: R¹(S) to the secret S, and R²(U) to the public attribute U.

    A value is a pair (S, U). A report is the index of a pair of outputs of R¹ and R². A numerical search finds the
    division of ε between them that has the greatest utility.

    Parameters
    ----------
    policy
        A :class:`Secret` policy whose ``distributions`` are a :class:`ChiSquare` confidence set.
    utility
        The criterion of the search. ``"mutual-information"`` maximizes the information between the value and the
        report at the frequencies of the counts of :class:`ChiSquare`. ``"estimation"`` minimizes the expected
        squared error of the estimated frequencies of all values, at the uniform distribution.

    Returns
    -------
    TableMechanism
        A mechanism that obeys the policy. The ``budget`` in its provenance states levels and set sizes.

    Raises
    ------
    InvalidInput
        If the policy is not a :class:`Secret` under :class:`ChiSquare`, or the utility is unknown.

    Notes
    -----
    This is Protocol 1 of Lopuhaä-Zwakenberg and Goseling (2021, "The Privacy-Utility Tradeoff of Robust Local
    Differential Privacy"). Each response reports a random set of values; a set is 1 + x times likelier for its members
    than for other values, for some x ≥ 0. R² reveals about S only what U reveals. Theorem 15 of the paper bounds this
    leakage by an l1 distance. Here the greatest ratio P(R²|s)/P(R²|s') over the confidence set of distributions
    is computed instead, and R¹ gets the rest of ε. The proof is in
    ``docs/proofs/independent-reporting.md``.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(ill=["no", "yes"], city=["Ulm", "Bonn"])
    >>> policy = sf.Secret(people, "ill", "ln 3", sf.ChiSquare([[300, 200], [100, 200]]))
    >>> mechanism = sf.mechanisms.IndependentReporting(policy)
    >>> sf.audit(mechanism, policy).holds
    True
    """
    secret, confidence, epsilon = checked_policy("IndependentReporting", policy, utility)
    design = _best(confidence, epsilon, utility)
    budget = {
        "secret": f"{math.log1p(design.secret_gain):.9g}",
        "other": f"{math.log1p(design.other_gain):.9g}",
        "sizes": [design.secret_size, design.other_size],
    }
    matrix = np.asarray(np.kron(*design.matrices(confidence.frequencies.shape)), dtype=np.float64)
    return reporting_table("independent-reporting", secret, budget, matrix)


class _Design(NamedTuple):
    """Levels of the two responses: sets of these sizes are 1 + gain times likelier for their members."""

    secret_gain: float
    secret_size: int
    other_gain: float
    other_size: int

    def matrices(self, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """Return the matrices of the two responses."""
        of_secret = set_response(shape[0], self.secret_size, self.secret_gain)
        return of_secret, set_response(shape[1], self.other_size, self.other_gain)

    def utility_of(self, frequencies: Floats, utility: str) -> float:
        """Return the utility of the design at the observed frequencies."""
        of_secret, other = self.matrices(frequencies.shape)
        if utility == "estimation":
            return -risk_of(of_secret, other)
        # I = I(R¹(S);S) + I(R²(U);U|R¹(S)) (Theorem 16).
        after = of_secret.T @ frequencies  # joint of R¹(S) and U
        law = after.sum(axis=1)
        given_secret = sum(p * information(row / p, other) for p, row in zip(law, after, strict=True) if p > 0)
        return information(frequencies.sum(axis=1), of_secret) + float(given_secret)


def _best(confidence: ChiSquare, epsilon: float, utility: str) -> _Design:
    """Return the design of greatest utility."""
    frequencies = confidence.frequencies
    secrets, others = frequencies.shape

    @functools.cache
    def best_at(position: float) -> tuple[float, _Design]:
        # position/(1 - position) is the epsilon of R², from zero (position = 0) to infinity (position = 1).
        gain = math.expm1(position / (1 - position)) if position < _ALL else math.inf
        left = {size: epsilon - _leakage_of_secret(confidence, size, gain) for size in set_sizes(others, gain)}
        gains = [(size, math.expm1(rest)) for size, rest in left.items() if rest >= 0]
        designs = [_Design(mine, first, gain, size) for size, mine in gains for first in set_sizes(secrets, mine)]
        options = [(design.utility_of(frequencies, utility), design) for design in designs]
        return max(options, key=lambda option: option[0], default=(-math.inf, _Design(0.0, 1, 0.0, 1)))

    (at,) = zoom(lambda position: best_at(position)[0], (0.0, 1.0))
    return best_at(at)[1]


def _leakage_of_secret(confidence: ChiSquare, size: int, gain: float) -> float:
    """Return ln of the greatest ratio P(D|s)/P(D|s') over all outputs D of R², pairs of secrets, and distributions.

    Values with equal likelihoods reach the greatest ratio in proportion, so a set and its complement form two cells.
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
    """Return which sets and pairs of secrets can have the greatest ratio, by the ranges of P(D|s) of Lemma 9.

    Both probabilities at their ends bound the ratio from above; one at its end and the other as observed from below.
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
