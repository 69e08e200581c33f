"""Designs for a prior over more than two values: known mechanisms at the greatest ε it allows, and a table.

A prior binds the classical mechanisms less than the same ε between all values does. The reason is that an output which
is likelier on a set of d values also raises the average over the prior. Each mechanism here has the greatest ε that
its own sets allow.
So it obeys the prior policy, but not classical LDP at the policy's ε. ``docs/proofs/prior-designs.md`` has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats, exceeds, floor_of_ratio, quantity
from sfumato.errors import NoMechanism, Undecided
from sfumato.mechanisms.mixture import TwoLevelMechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Prior

__all__ = ["prior_hadamard", "prior_response", "prior_subset", "prior_table"]

Built = TypeVar("Built", bound=TwoLevelMechanism)

#: Maximum number of weights of a table; its spec lists each of them.
_MOST_WEIGHTS = 2**18
#: Numbers of base columns, each of which is rotated through all values; powers of two, so that they divide 2^62.
_BASES = (1, 2, 4, 8, 16)
#: Factor of the lower bound on the risk at which the search for base columns stops.
_NEAR_ENOUGH = 1.002
#: Maximum number of sweeps over all places of all base columns; a few are enough.
_MOST_SWEEPS = 4
#: Least relative decrease of the risk for which two places are swapped; prevents cycles caused by rounding.
_LEAST_GAIN = 1e-9


# -- known mechanisms at the greatest ε that the prior allows ------------------------------------------------


def prior_response(policy: Prior) -> RandomizedResponse:
    """Return randomized response at the greatest ε at which it obeys the policy."""
    return _at_greatest_epsilon(policy, partial(RandomizedResponse, policy.domain))


def prior_subset(policy: Prior) -> SubsetSelection:
    """Return subset selection of the best size, at the greatest ε at which it obeys the policy.

    The size has the least risk at the uniform distribution.
    """
    size = _best_size(policy)
    return _at_greatest_epsilon(policy, lambda epsilon: SubsetSelection(policy.domain, epsilon, size))


def prior_hadamard(policy: Prior) -> HadamardResponse:
    """Return Hadamard response of the best block size, at the greatest ε at which it obeys the policy.

    The block sizes compared are those that are best at an ε between two ends: the greatest ε that implies the policy,
    and the least ε that the policy implies.
    """
    domain = policy.domain
    largest, size = (
        HadamardResponse(domain, e).block_size for e in (policy.implying_epsilon, policy.classical_epsilon)
    )
    options = []
    while size <= largest:
        options.append(_at_greatest_epsilon(policy, partial(HadamardResponse, domain, block_size=size)))
        size *= 2
    return min(options, key=lambda mechanism: mechanism.risk(1))


def _at_greatest_epsilon(policy: Prior, build: Callable[[Epsilon], Built]) -> Built:
    """Build a mechanism whose sets do not depend on ε at the greatest ε at which its law obeys the policy."""
    probe = build(policy.epsilon)
    lightest, heaviest = (
        sum((p for x, p in enumerate(policy.prior) if probe.in_set(report, x)), Fraction(0))
        for report in (probe.extreme(policy.prior, heaviest=heaviest) for heaviest in (False, True))
    )
    epsilon = policy.greatest_subset_epsilon(lightest, heaviest)
    mechanism = build(epsilon)
    columns = mechanism.worst_columns(policy)
    assert columns is not None
    if not all(policy.allows(column) for _, column in columns):
        raise Undecided(
            f"the exact test did not prove that {mechanism.name} at epsilon {epsilon} obeys this Prior policy. "
            "Choose another mechanism with the argument mechanism of sfumato.plan or sfumato.design."
        )
    return mechanism


def _best_size(policy: Prior) -> int:
    """Return the size d of least risk at the uniform distribution, computed in doubles.

    With g = r - 1 the risk is (k-1)²(d·g + k)²/(k·d·(k-d)·g²); see ``Prior.greatest_subset_epsilon`` for g.
    """
    k = len(policy.domain)
    prior = np.sort(np.array([float(p) for p in policy.prior]))
    lightest, heaviest = np.cumsum(prior)[:-1], np.cumsum(prior[::-1])[:-1]
    gain, d = min(math.expm1(min(float(policy.epsilon), 700.0)), 1e300), np.arange(1, k)
    with np.errstate(divide="ignore", over="ignore"):
        slack = 1 - lightest * (1 + gain)
        upper = np.where(slack > 0, slack / gain, 0.0)
        inverse = {"both": np.maximum(upper, heaviest / gain), "upper": upper, "lower": heaviest / gain}[policy.side]
        risks = (d + k * inverse) ** 2 / (d * (k - d))  # up to a factor; inverse is 1/g
    return int(np.argmin(risks)) + 1


# -- a uniform prior: a table of three levels ------------------------------------------------------------------


def prior_table(policy: Prior, max_outputs: int | None = None) -> TableMechanism:
    """Return a table for a uniform prior whose risk is close to the lower bound: rotations of a few base columns.

    In each column, d values have e^ε times the mean, one value a level in between and the others e^-ε times the mean.
    The least risk (``bounds.prior_least_risk``) requires columns of these levels whose second moments E[v v'] are the
    same for all pairs of values. All permutations of one column satisfy this, but they are too many. All rotations of
    one base column make the second moments a circulant matrix, whose eigenvalues are the squares of the column's
    Fourier coefficients; those of several base columns add. The search swaps places to make the sums nearly equal.

    Privacy does not depend on that search: the likelihoods are integers rounded to the private side, and the policy is
    proved for them.
    """
    assert policy.is_uniform
    k = len(policy.domain)
    limit = min(_MOST_WEIGHTS // k, _MOST_WEIGHTS if max_outputs is None else max_outputs)
    best: tuple[float, npt.NDArray[np.int64]] | None = None
    for bases in (bases for bases in _BASES if bases * k <= limit):
        high, count, between, low = _likelihoods(policy, bases)
        likelihoods = [high] * count + [between] + [low] * (k - count - 1)
        mean = TOTAL / (bases * k)
        ratio, places = _flattest(np.array(likelihoods) / mean, bases)
        if best is None or ratio < best[0]:
            best = ratio, np.array(likelihoods, dtype=np.int64)[places]
        if ratio <= _NEAR_ENOUGH:
            break
    if best is None:
        raise NoMechanism(
            f"the mechanism prior-table over {k} values has more than the limit of {quantity(limit, 'output')}. "
            'Increase max_bits, or pass mechanism="prior-subset" to sfumato.plan or sfumato.design.'
        )
    columns = best[1]
    if not policy.allows(columns[0].tolist()):
        raise NoMechanism(
            f"the mechanism prior-table cannot be built at epsilon {policy.epsilon}: with probabilities in steps of "
            '2^-62, its three levels do not obey the policy. Pass mechanism="prior-subset" to sfumato.plan or '
            "sfumato.design."
        )
    # Row x holds base[(x - shift) mod k] for every shift, so it has the sum of all bases, 2^62.
    shifts = (np.arange(k)[:, None] - np.arange(k)) % k
    return TableMechanism(policy.domain, np.hstack([column[shifts] for column in columns]))


def _likelihoods(policy: Prior, bases: int) -> tuple[int, int, int, int]:
    """Return the high likelihood, the number of values that have it, the middle one and the low one, in units of 2^-62.

    Each base column sums to 2^62/bases, so the mean of a column is exactly a k-th of that. The high level is rounded
    down and the low one up. The middle one is the rest, which is at least the low one and below the high one.
    """
    k, total = len(policy.domain), TOTAL // bases
    mean = Fraction(total, k)
    high, low = total, 0
    if not policy.epsilon.is_infinite:
        if policy.side != "lower" and exceeds(k, 1, policy.epsilon):  # otherwise e^ε times the mean is at least the sum
            high = floor_of_ratio((mean, Fraction(0)), (Fraction(0), Fraction(1)), policy.epsilon)
        if policy.side != "upper":
            low = -floor_of_ratio((Fraction(0), -mean), (Fraction(1), Fraction(0)), policy.epsilon)
    if not low <= mean <= high or low >= high:
        raise NoMechanism(
            f"the mechanism prior-table cannot be built at epsilon {policy.epsilon}, which is too close to 0 for "
            'probabilities in steps of 2^-62. Increase epsilon, or pass mechanism="prior-subset" to sfumato.plan or '
            "sfumato.design."
        )
    count = min((total - k * low) // (high - low), k - 1)
    return high, count, total - count * high - (k - count - 1) * low, low


def _flattest(likelihoods: Floats, bases: int) -> tuple[float, npt.NDArray[np.intp]]:
    """Arrange the likelihoods in base columns whose rotations distinguish all pairs of values nearly equally well.

    Return the risk relative to that of all permutations, and for each base column the index of the likelihood of each
    value. The search swaps two places at a time while the risk decreases.
    """
    k = len(likelihoods)
    # Start: fractional parts of √2 times squares are spread evenly (Weyl), so no random numbers are needed.
    multiples = np.sqrt(2) * np.arange(1, bases + 1)[:, None] * np.arange(1, k + 1) ** 2
    places = np.argsort(np.modf(multiples)[0], axis=1)
    # Every swap moves the likelihood that fewer values have, or the middle one.
    rare = (
        likelihoods > likelihoods[-1]
        if 2 * np.sum(likelihoods > likelihoods[-1]) <= k
        else likelihoods < likelihoods[0]
    )
    frequencies = np.arange(1, k // 2 + 1)
    # The coefficients of f and k - f are conjugate; the one of k/2 occurs once.
    counts = np.where(2 * frequencies == k, 1.0, 2.0)
    waves = np.exp(-2j * np.pi / k * (np.outer(np.arange(k), frequencies) % k))
    transforms = likelihoods[places] @ waves
    powers = np.abs(transforms) ** 2
    # Flat powers would all be bases·k·(Σv² - k)/(k-1), by Parseval's equation.
    flat = (k - 1) ** 2 / (bases * k * float(np.sum((likelihoods - 1) ** 2)))
    with np.errstate(divide="ignore"):
        risk = float((counts / powers.sum(axis=0)).sum())
        for _ in range(_MOST_SWEEPS):
            before = risk
            for base in range(bases):
                others = powers.sum(axis=0) - powers[base]
                for x in np.flatnonzero(rare[places[base]]).tolist():
                    values = likelihoods[places[base]]
                    partners = np.flatnonzero(values != values[x])
                    steps = (values[partners] - values[x])[:, None] * (waves[x] - waves[partners])
                    swapped = np.abs(transforms[base] + steps) ** 2
                    risks = (counts / (others + swapped)).sum(axis=1)
                    best = int(np.argmin(risks))
                    if risks[best] < risk * (1 - _LEAST_GAIN):
                        pair = [x, int(partners[best])]
                        places[base, pair] = places[base, pair[::-1]]
                        transforms[base] += steps[best]
                        powers[base], risk = swapped[best], float(risks[best])
            if risk == before or risk <= _NEAR_ENOUGH * flat:
                break
    return risk / flat, places
