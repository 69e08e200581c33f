"""Large tables are rounded in doubles and still obey their policy exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.compiler.candidates import candidates
from sfumato.errors import InvalidInput
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.table.metric_exponential import best_exponential

Floats = npt.NDArray[np.float64]


def random_points(size: int, seed: int) -> list[list[int]]:
    """Distances of random points on a plane, in thousandths of a unit."""
    points = np.random.default_rng(seed).random((size, 2)) * np.sqrt(size)
    distances: list[list[int]] = np.floor(1000 * np.hypot(*(points[:, None] - points).T)).astype(int).tolist()
    return distances


def in_doubles(policy: sf.Metric, fraction: float = 0.5) -> Floats:
    """The exponential mechanism in doubles."""
    table = np.exp(-fraction * policy.epsilon_matrix().floats)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def risk_of_matrix(matrix: Floats) -> float:
    """The risk of the efficient estimate at the uniform distribution, from the definition."""
    information = matrix @ np.diag(1 / matrix.mean(axis=0)) @ matrix.T
    return float(np.trace(np.linalg.inv(information))) - 1 / len(matrix)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_that_is_rounded_quickly_obeys_the_policy_and_costs_little(seed: int) -> None:
    policy = sf.Metric(sf.Domain.range(40), random_points(40, seed), "1/1000")
    matrix = in_doubles(policy)
    mechanism = TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: True)
    assert sf.audit(mechanism, policy).holds
    assert (mechanism.weights.sum(axis=1) == TOTAL).all()
    assert (mechanism.weights > 0).all()
    assert mechanism.matrix() == pytest.approx(matrix, rel=1e-5, abs=1e-6)
    assert mechanism.risk(1) == pytest.approx(risk_of_matrix(matrix), rel=1e-4)


def test_a_matrix_beyond_the_policy_is_drawn_inwards() -> None:
    """The quick rounding violates the policy, so that the slow one must find a larger share of the mean row."""
    policy = sf.Metric(sf.Domain.range(40), "absolute", "0.1")
    matrix = in_doubles(policy, 1.001)
    mechanism = TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: True)
    assert sf.audit(mechanism, policy).holds
    unlimited = TableMechanism.from_matrix(policy.domain, matrix)
    assert not sf.audit(unlimited, policy).holds


def test_values_at_level_zero_keep_equal_rows() -> None:
    levels = np.full((40, 40), 1.0)
    levels[0, 1] = levels[1, 0] = 0.0
    np.fill_diagonal(levels, 0.0)
    policy = sf.Pairwise(sf.Domain.range(40), levels.tolist())
    matrix = np.full((40, 40), 1 / 42) + np.eye(40) * (2 / 42)
    mechanism = TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: True)
    assert sf.audit(mechanism, policy).holds
    assert (mechanism.weights[0] == mechanism.weights[1]).all()


def test_an_array_of_weights_is_checked_like_a_list() -> None:
    domain = sf.Domain.range(2)
    good = np.array([[TOTAL // 2, TOTAL // 2], [0, TOTAL]])
    assert TableMechanism(domain, good) == TableMechanism(domain, good.tolist())
    overflowing = np.full((2, 5), TOTAL)  # 5·2^62 is 2^62 modulo 2^64
    with np.errstate(over="ignore"):
        assert (overflowing.sum(axis=1) == TOTAL).all()
    for bad in (overflowing, good - [[1, 0], [0, 0]], good - [[0, 0], [1, -1]], good[:1], good[:, :0]):
        with pytest.raises(InvalidInput) as of_array:
            TableMechanism(domain, bad)
        with pytest.raises(InvalidInput) as of_list:
            TableMechanism(domain, bad.tolist())
        assert str(of_array.value) == str(of_list.value)


@pytest.mark.slow
def test_the_larger_tables_for_distances_obey_the_policy() -> None:
    """150 values have more entries than are rounded exactly."""
    policy = sf.Metric(sf.Domain.range(150), random_points(150, 1), "1/1000")
    mechanism = best_exponential(policy)
    assert sf.audit(mechanism, policy).holds
    assert mechanism.risk(1) <= risk_of_matrix(in_doubles(policy))


@pytest.mark.parametrize(("size", "is_offered"), [(1024, True), (1025, False)])
def test_tables_for_distances_are_offered_up_to_1024_values(size: int, is_offered: bool) -> None:
    offered = candidates(sf.Metric(sf.Domain.range(size), "absolute", 1)).by_name
    assert ("exponential" in offered) == is_offered
