"""Tables of distances to sets of values: a design without a search, for policies over many values.

Let E be the effective epsilons, and E(S, x) the least epsilon from a value of the set S to x. By the triangle
inequality, e^-E(S,x) and e^E(x,S) obey every rule of the policy, for every set S. A few such vectors per value, with
the weights of least error, are a design. The weights take one convex program. A search over all vectors finds better
designs, but takes minutes for more than about 250 values.
"""

from __future__ import annotations

import numpy as np

from sfumato._core import ZERO, Floats, one_thread
from sfumato.compiler.solvers.answers import Answers
from sfumato.compiler.solvers.deadline import Deadline, OutOfTime
from sfumato.compiler.solvers.estimation import balanced, scaled, solve_design
from sfumato.errors import LimitExceeded, NoMechanism, SolverFailed
from sfumato.mechanisms import TableMechanism, ranks, split_mix_keys
from sfumato.policy import Blocks, HighLow, Policy, Uniform, on_pairs, structure_of

__all__ = ["distances_to_sets", "has_set_distances", "seconds_of_set_distances", "set_distances"]

#: Numbers of values for which such a table is offered. Fewer values are searched well; more take too long.
_LEAST_VALUES, _MOST_VALUES = 65, 1024
#: Processor time in seconds, per third power of the number of values.
_SECONDS = 5e-8
#: Maximum exponent of a likelihood, so that sums of likelihoods keep their precision.
_MOST_EXPONENT = 50.0
#: Precision of the weights, relative to the error; more would not change the choice of a mechanism.
_PRECISION = 1e-4
#: Weight of a vector, relative to the average, below which it is dropped; about half of them are.
_LIGHT = 0.01


def has_set_distances(policy: Policy) -> bool:
    """Return whether a table of distances to sets suits a policy and the number of its values."""
    pairs = on_pairs(policy)
    if pairs is None or not _LEAST_VALUES <= len(pairs.domain) <= _MOST_VALUES:
        return False
    is_structured = isinstance(structure_of(pairs), (Uniform, HighLow, Blocks))
    return not is_structured and pairs.least[0] > ZERO and not pairs.greatest_effective[0].is_infinite


def seconds_of_set_distances(values: int) -> float:
    """Return the approximate processor time to build the table, in seconds."""
    return _SECONDS * values**3


def set_distances(policy: Policy, deadline: Deadline, answers: Floats | None = None) -> TableMechanism:
    """Return the table of distances to single values and to spread sets that has the least error.

    The error is that of the answers W·p, for a matrix W (``answers``), or of all frequencies. Values are assumed to be
    equally likely. Raise NoMechanism if these vectors do not distinguish all values, and OutOfTime at the deadline.
    """
    pairs = on_pairs(policy)
    assert pairs is not None
    try:
        epsilons = pairs.effective_epsilon_matrix().floats
    except LimitExceeded:
        raise NoMechanism("the epsilons have no common unit, so effective epsilons are not known") from None
    size = len(epsilons)
    exponents = [-epsilons, -distances_to_sets(epsilons, size), distances_to_sets(epsilons.T, size)]
    prior = np.full(size, 1 / size)
    rays = scaled(np.exp(np.minimum(np.concatenate(exponents), _MOST_EXPONENT)), prior)
    try:
        question = None if answers is None else Answers.of(answers, np.arange(size), prior)
        with one_thread():  # for the same result in every run
            weights = solve_design(rays, deadline, _PRECISION, question)[0]
    except OutOfTime:
        raise
    except SolverFailed:
        raise NoMechanism("distances to sets do not distinguish all values in double precision") from None
    used = weights > _LIGHT / len(weights)
    rays = rays[used]
    columns = (balanced(weights[used], rays)[:, None] * rays).T
    matrix = columns / columns.sum(axis=1, keepdims=True)
    return TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: True)


def distances_to_sets(epsilons: Floats, count: int) -> Floats:
    """Return E(S, x) for sets S that look random, of sizes from one value to half of all values; one row per set."""
    size = len(epsilons)
    members = np.geomspace(1, max(size // 2, 1), count).round()
    is_member = ranks(split_mix_keys(0, count * size).reshape(count, size)) < members[:, None]
    return np.array([epsilons[row].min(axis=0) for row in is_member]).reshape(count, size)
