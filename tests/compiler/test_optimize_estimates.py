"""The error that an optimal design states is the one that its estimate has, and the spec carries what that takes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.compiler import goal_of
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism, mechanism_from_spec
from sfumato.mechanisms.table.mechanism import TableMechanism
from support.policies import random_pairwise

TOTAL = 2**62
SYMPTOMS = sf.Pairwise(
    sf.Domain(["none", "cough", "fever", "rash", "jaundice"]),
    [
        [0, "inf", "inf", "inf", "inf"],
        ["2", 0, "2.5", "2", "2"],
        ["2", "2.5", 0, "1.5", "1.5"],
        ["1", "1.5", "1", 0, "0.5"],
        ["0.5", "1", "1", "0.5", 0],
    ],
)


def errors_of(mechanism: Mechanism, p: Any, n: int = 1000) -> list[float]:
    """n times the expected squared error at p as every part of the library states it."""
    estimator = mechanism.estimator
    return [
        mechanism.risk(1, p),
        mechanism.risk(n, p) * n,
        float(estimator.variances(p).sum()),
        float(np.trace(estimator.covariance(p))),
    ]


def squared_error(mechanism: Mechanism, p: Any, method: str, n: int = 200, repetitions: int = 400) -> float:
    """n times the mean squared error of estimates from simulated counts."""
    generator, errors = np.random.default_rng(1), []
    law = p @ mechanism.matrix()
    for counts in generator.multinomial(n, law / law.sum(), size=repetitions):
        reports = np.repeat(np.arange(len(law), dtype=mechanism.report_format.dtype), counts)
        estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports), method)
        errors.append(n * float(np.sum((estimate.frequencies - p) ** 2)))
    return float(np.mean(errors))


def test_the_documented_worst_case_is_reached() -> None:
    worst = sf.optimal(SYMPTOMS, "worst-estimation")
    assert worst.value == pytest.approx(10.158, abs=1e-3)
    assert worst.mechanism.worst_risk(1) == pytest.approx(worst.value, rel=1e-9)
    assert errors_of(worst.mechanism, worst.prior) == pytest.approx([worst.value] * 4, rel=1e-6)
    for method in ("unbiased", "efficient"):
        assert squared_error(worst.mechanism, worst.prior, method) == pytest.approx(worst.value, rel=0.1)
    read = mechanism_from_spec(json.dumps(worst.mechanism.spec))
    assert read.worst_risk(1) == worst.mechanism.worst_risk(1)


@pytest.mark.parametrize("seed", range(12))
def test_random_designs_reach_the_error_they_state(seed: int) -> None:
    generator = np.random.default_rng(seed)
    k = int(generator.integers(3, 7))
    p = 0.99 * generator.dirichlet(np.full(k, 0.5)) + 0.01 / k
    policy = random_pairwise(seed, k, harmless=int(generator.integers(0, k - 1)))
    worst = sf.optimal(policy, "worst-estimation")
    assert worst.mechanism.worst_risk(1) == pytest.approx(worst.value, rel=1e-9)
    assert errors_of(worst.mechanism, worst.prior) == pytest.approx([worst.value] * 4, rel=1e-5)
    assert worst.value == pytest.approx(worst.bound, rel=1e-4)
    at_p = sf.optimal(policy, prior=p)
    assert errors_of(at_p.mechanism, p) == pytest.approx([at_p.value] * 4, rel=1e-6)
    assert at_p.value == pytest.approx(at_p.bound, rel=1e-4)


def test_a_prior_policy_is_designed_for_its_prior() -> None:
    policy = sf.Prior(sf.Domain.range(4), ["0.6", "0.2", "0.15", "0.05"], 1)
    optimum = sf.optimal(policy)
    assert errors_of(optimum.mechanism, optimum.prior) == pytest.approx([optimum.value] * 4, rel=1e-6)
    assert optimum.value == pytest.approx(optimum.bound, rel=1e-4)


def test_plan_and_design_read_the_same_error() -> None:
    p = [0.05, 0.05, 0.1, 0.1, 0.7]
    plan = sf.plan(SYMPTOMS, 1000, prior=p)
    row = next(row for row in plan.rows if row.name == "optimal")
    assert row.ratio == pytest.approx(1, abs=1e-4)
    assert row.risk * 1000 == pytest.approx(sf.optimal(SYMPTOMS, prior=p).value, rel=1e-6)
    assert sf.design(SYMPTOMS, prior=p).risk(1000, p) == pytest.approx(plan.best.risk, rel=1e-9)
    made = sf.design(SYMPTOMS, utility="worst-estimation")
    assert made.worst_risk(1) == pytest.approx(sf.optimal(SYMPTOMS, "worst-estimation").value, rel=1e-6)


def test_designs_for_equal_shares_and_other_utilities_have_the_spec_they_had() -> None:
    for optimum in (sf.optimal(SYMPTOMS), sf.optimal(SYMPTOMS, "mutual-information", prior=[0.5, 0.2, 0.1, 0.1, 0.1])):
        assert set(optimum.mechanism.parameters()) == {"total_bits", "weights"}
    table = TableMechanism(sf.Domain(["a", "b"]), [[3 * 2**60, 2**60], [2**60, 3 * 2**60]])
    assert table.hash == "835bb6a3aa84985217610894d86a731e6b19900a8a5c15eff59e8da75e0aeab1"


def test_the_design_prior_is_part_of_the_spec_and_of_nothing_that_is_sent() -> None:
    weights = [[2**61, 3 * 2**59, 2**59], [2**59, 2**59, 6 * 2**59]]
    table = TableMechanism(sf.Domain(["a", "b"]), weights)
    designed = TableMechanism(sf.Domain(["a", "b"]), weights, design_prior=[2**60, 3 * 2**60])
    assert designed.parameters() == table.parameters() | {"design_prior": [str(2**60), str(3 * 2**60)]}
    assert designed.hash != table.hash
    assert mechanism_from_spec(designed.to_json()) == designed != table
    assert {**designed.spec, "parameters": None} == {**table.spec, "parameters": None}
    assert np.array_equal(designed.matrix(), table.matrix())
    values = ["a", "b"] * 500
    reports = [sf.privatize(mechanism, values, sf.InsecureSeeded(3)) for mechanism in (table, designed)]
    assert np.array_equal(np.asarray(reports[0]), np.asarray(reports[1]))
    assert designed.risk(1, [0.25, 0.75]) < table.risk(1, [0.25, 0.75])
    assert designed.risk(1) > table.risk(1)
    shares = TableMechanism.from_matrix(table.domain, table.matrix(), design_prior=[0.25, 0.75])
    assert shares == designed


@pytest.mark.parametrize(
    "design_prior",
    [
        [],
        [str(TOTAL)],
        [str(TOTAL), "0"],
        [str(TOTAL + 1), "-1"],
        [str(2**61), str(2**61 - 1)],
        [str(2**60), str(2**60), str(2**61)],
        [2**61, 2**61],
        [f" {2**61}", str(2**61)],
        ["1/2", "1/2"],
        [0.5, 0.5],
        [None, None],
        {"a": str(2**61)},
        str(TOTAL),
        7,
        None,
    ],
)
def test_a_design_prior_that_is_none_is_refused(design_prior: Any) -> None:
    spec = TableMechanism(sf.Domain(["a", "b"]), [[TOTAL, 0], [0, TOTAL]], design_prior=[2**61, 2**61]).spec
    assert mechanism_from_spec(spec).spec == spec
    for changed in ({"design_prior": design_prior}, {"prior": ["1", "1"]}):
        with pytest.raises(InvalidInput):
            mechanism_from_spec(spec | {"parameters": spec["parameters"] | changed})


def test_a_design_prior_is_checked_by_constructors() -> None:
    domain = sf.Domain(["a", "b"])
    for wrong in ([TOTAL], [TOTAL, 0], [2.0**61, 2.0**61], [True, TOTAL - 1]):
        with pytest.raises(InvalidInput, match="design_prior must be 2 positive integers that sum to 2"):
            TableMechanism(domain, [[TOTAL], [TOTAL]], design_prior=wrong)
    for probabilities in ([0.5, 0.6], [1.0], [-0.5, 1.5], [1.0, 0.0]):
        with pytest.raises(InvalidInput, match="design_prior"):
            TableMechanism.from_matrix(domain, [[1], [1]], design_prior=probabilities)


@pytest.mark.parametrize("harmless", [0, 2])
@pytest.mark.parametrize("zeros", [[3], [0, 1], [0, 2, 3]])
def test_value_and_bound_are_those_at_a_distribution_with_zero_shares(harmless: int, zeros: list[int]) -> None:
    policy = random_pairwise(7, 4, harmless=harmless)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    p[zeros] = 0.0
    p /= p.sum()
    numbers, losses = [3.0, 1.0, 4.0, 1.5], np.random.default_rng(2).uniform(0, 9, (4, 3))
    nearby = 0.9999 * p + 0.0001 / 4
    for utility in ("estimation", "mutual-information", sf.SquaredError(numbers), sf.ExpectedLoss(losses)):
        optimum = sf.optimal(policy, utility, prior=p)
        goal, mechanism = goal_of(utility, policy.domain), optimum.mechanism
        assert optimum.prior == pytest.approx(p, rel=1e-15, abs=0)
        stated = mechanism.risk(1, p) if utility == "estimation" else goal.value(mechanism.matrix(), p)
        assert optimum.value == pytest.approx(stated, rel=1e-12)
        # No mechanism that is nearly the best nearby is beyond the bound.
        near = sf.optimal(policy, utility, prior=nearby)
        for other in (optimum, near):
            reached = goal.value_of(other.mechanism, p)
            beyond = (optimum.bound - reached) * (1 if goal.small_is_good else -1)
            assert beyond <= 1e-7 * abs(reached) + 1e-12
        assert optimum.value == pytest.approx(near.value, rel=0.01, abs=0.01)
        assert optimum.gap < 0.01 or abs(optimum.value - optimum.bound) < 1e-3


def test_nothing_is_told_of_a_value_that_is_certain() -> None:
    optimum = sf.optimal(sf.Uniform(sf.Domain.range(3), 1), "mutual-information", prior=[1, 0, 0])
    assert optimum.value == pytest.approx(0, abs=1e-15)
    assert optimum.bound == pytest.approx(0, abs=1e-12)
