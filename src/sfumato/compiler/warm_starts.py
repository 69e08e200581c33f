"""Likelihood vectors that a search for the optimal mechanism can start from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from sfumato._core import Floats
from sfumato.compiler.candidates import candidates
from sfumato.compiler.set_distances import distances_to_sets
from sfumato.compiler.solvers.goals import Estimation
from sfumato.errors import LimitExceeded
from sfumato.mechanisms import LARGEST_TABLE, Mechanism
from sfumato.policy import PairwisePolicy, Policy, on_pairs
from sfumato.questions import Question

__all__ = ["warm_rays"]

#: Number of mechanisms that are used, maximum number of their outputs, and maximum time to build one in seconds.
_MOST_MECHANISMS, _MOST_OUTPUTS, _MOST_SECONDS = 4, 2**16, 1.0
#: Fractional part of the golden ratio; its multiples modulo 1 are spread evenly for any number of them.
_GOLDEN = (math.sqrt(5) - 1) / 2


def warm_rays(policy: Policy, limit: int, question: Question | None = None) -> Floats:
    """Return likelihood vectors that a policy allows, from mechanisms in closed form and from sets of values.

    Half of the vectors are outputs of the candidates of least risk, including those for stronger policies. The other
    half belong to sets S of values, for a policy on pairs with effective epsilons E: e^-E(S,x), where E(S,x) is the
    least epsilon from a value of S to x. These satisfy every rule, and those of S against x with equality.

    Parameters
    ----------
    policy
        The policy.
    limit
        Maximum number of vectors.
    question
        The question, fitted to the domain, by whose answers the candidates are compared; all frequencies by default.

    Returns
    -------
    numpy.ndarray
        One vector per row, with a column per value in domain order. The largest entry of a row is 1. Rules hold up to
        the precision of doubles. There are no rows for more than 512 values.

    Examples
    --------
    >>> from sfumato import Domain, Metric
    >>> warm_rays(Metric(Domain.range(6), "absolute", 1), 20).shape[1]
    6
    """
    size = len(policy.domain)
    if size > LARGEST_TABLE:
        return np.empty((0, size))
    pairs = on_pairs(policy)
    of_sets = np.empty((0, size)) if pairs is None else _rays_of_sets(pairs, limit // 2)
    of_mechanisms = np.array(list(_outputs(_best_mechanisms(policy, question), limit - len(of_sets)))).reshape(-1, size)
    rays = np.concatenate([of_mechanisms, of_sets])
    rays = rays[rays.min(axis=1) < rays.max(axis=1)]  # a constant vector says nothing
    return np.unique(rays / rays.max(axis=1, keepdims=True), axis=0)


def _best_mechanisms(policy: Policy, question: Question | None) -> list[Mechanism]:
    """Return the candidates of least error that have few outputs and take little time to build."""
    suitable = candidates(policy, question=question)
    by_error: list[tuple[float, Mechanism]] = []
    goal, even = Estimation(question), np.full(len(policy.domain), 1 / len(policy.domain))
    for name, candidate in suitable.by_name.items():
        if candidate.seconds > _MOST_SECONDS:
            continue
        with suitable.comparing(name):
            mechanism = candidate.build()
            if mechanism.outputs <= _MOST_OUTPUTS:
                by_error.append((goal.error_of(mechanism, even), mechanism))
    return [mechanism for _, mechanism in sorted(by_error, key=lambda pair: pair[0])[:_MOST_MECHANISMS]]


def _outputs(mechanisms: Iterable[Mechanism], limit: int) -> Iterator[list[float]]:
    """Yield the likelihoods of outputs of mechanisms, in turns and spread over all outputs of each."""
    in_turns = itertools.zip_longest(*map(_spread_outputs, mechanisms))
    return itertools.islice((column for turn in in_turns for column in turn if column is not None), limit)


def _spread_outputs(mechanism: Mechanism) -> Iterator[list[float]]:
    """Yield the likelihoods of every output of a mechanism once, in an order that spreads the first ones evenly."""
    reports = list(mechanism.reports())
    for place in np.argsort((np.arange(len(reports)) * _GOLDEN) % 1).tolist():
        yield [float(mechanism.probability(reports[place], x)) for x in range(len(mechanism.domain))]


def _rays_of_sets(pairs: PairwisePolicy, limit: int) -> Floats:
    """Return vectors for sets of values that look random, of sizes from one value to half of all values."""
    try:
        epsilons = pairs.effective_epsilon_matrix().floats
    except LimitExceeded:  # epsilons without a common unit
        return np.empty((0, len(pairs.domain)))
    return np.asarray(np.exp(-distances_to_sets(epsilons, limit)))
