"""Tables of distances to sets: their vectors obey every rule, and they beat what needs no search on large metrics."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.compiler.set_distances import distances_to_sets, has_set_distances, set_distances
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.errors import NoMechanism
from sfumato.policy import Policy
from support.clocks import Clock

Floats = npt.NDArray[np.float64]


def irregular(size: int, seed: int) -> sf.Metric:
    """Distances of random points on a plane, in thousandths of a unit."""
    points = np.random.default_rng(seed).random((size, 2)) * np.sqrt(size)
    distances = np.floor(1000 * np.hypot(*(points[:, None] - points).T)).astype(int)
    return sf.Metric(sf.Domain.range(size), distances.tolist(), "1/1000")


def one_way(size: int) -> sf.Pairwise:
    """A circle on which every step forward costs more than a step back."""
    steps = (np.arange(size) - np.arange(size)[:, None]) % size
    forward, back = 0.5 * steps, 0.25 * (size - steps)
    levels = np.minimum(forward, back)
    np.fill_diagonal(levels, 0.0)
    return sf.Pairwise(sf.Domain.range(size), levels.tolist())


def least_slack(likelihoods: Floats, epsilons: Floats) -> float:
    """The least E(x,z) - ln(v_x/v_z) of all vectors and pairs of values."""
    return min(float((epsilons - vector[:, None] + vector).min()) for vector in np.log(likelihoods))


@pytest.mark.parametrize("policy", [irregular(70, 1), one_way(70)], ids=["irregular", "one way"])
def test_distances_to_sets_and_their_inverses_obey_every_rule(policy: sf.Pairwise | sf.Metric) -> None:
    epsilons = policy.effective_epsilon_matrix().floats
    assert least_slack(np.exp(-distances_to_sets(epsilons, 40)), epsilons) > -1e-9
    assert least_slack(np.exp(distances_to_sets(epsilons.T, 40)), epsilons) > -1e-9


def test_the_wrong_direction_breaks_a_rule() -> None:
    """The two directions differ on the circle, so that the test above can fail."""
    epsilons = one_way(70).effective_epsilon_matrix().floats
    assert least_slack(np.exp(-distances_to_sets(epsilons.T, 40)), epsilons) < -0.1


@pytest.mark.parametrize(("policy", "gain"), [(irregular(70, 2), 2), (one_way(70), 1)], ids=["irregular", "one way"])
def test_the_table_obeys_the_policy_and_beats_every_candidate_without_a_search(policy: Policy, gain: float) -> None:
    plan = sf.plan(policy, 1, max_seconds=0)
    row = plan["set-distances"]
    assert sf.audit(row.mechanism, policy).holds
    assert plan.rows[0] == row
    assert gain * row.risk < min(other.risk for other in plan.rows[1:])
    assert row.mechanism.outputs < 3 * len(policy.domain)
    assert sf.design(policy, mechanism="set-distances") == row.mechanism  # nothing depends on time or chance


def test_a_question_changes_the_table() -> None:
    policy = irregular(70, 1)
    values = np.arange(70.0)
    frequencies = sf.design(policy, mechanism="set-distances")
    mean = sf.plan(policy, 1, question=sf.Mean(values), mechanism="set-distances").best
    weights = values - values.mean()
    assert sf.audit(mean.mechanism, policy).holds
    uniform = np.full(70, 1 / 70)
    errors = [float(m.estimator.variance(weights, uniform)) for m in (mean.mechanism, frequencies)]
    assert errors[0] < 0.9 * errors[1]


@pytest.mark.parametrize(
    ("policy", "suits"),
    [
        (irregular(70, 1), True),
        (irregular(64, 1), False),  # few values are searched
        (sf.Metric(sf.Domain.range(1025), "absolute", 1), False),
        (sf.Uniform(sf.Domain.range(70), 1), False),
        (sf.Blocks(sf.Domain.range(70), np.arange(70) // 10, 1, 2), False),
        (sf.Pairwise(sf.Domain.range(70), {(0, 1): "0.3", (1, 0): 2}), False),  # other pairs have no limit
        (sf.Prior(sf.Domain.range(70), ["1/70"] * 70, 1), False),
    ],
    ids=lambda case: case.kind if isinstance(case, Policy) else str(case),
)
def test_it_is_offered_for_many_values_with_limits_between_all(policy: Policy, suits: bool) -> None:
    assert has_set_distances(policy) == suits


def test_it_ends_at_the_deadline() -> None:
    with pytest.raises(OutOfTime):
        set_distances(irregular(70, 1), Deadline(0, Clock()))


def test_vectors_that_do_not_suffice_give_no_mechanism() -> None:
    """At levels of 1e-9, doubles do not distinguish the vectors from a constant."""
    points = irregular(70, 1)
    policy = sf.Metric(points.domain, points.epsilon_matrix().floats.tolist(), "1e-9")
    with pytest.raises(NoMechanism):
        set_distances(policy, NEVER)
