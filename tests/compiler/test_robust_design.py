"""The optimal design for a secret under an estimated distribution: PolyOpt, and past it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
import sfumato.compiler.solvers.slice as slices
from sfumato.compiler.solvers.goals import MutualInformation
from sfumato.mechanisms.secret.conditional import ConditionalReporting, ConditionalUnary
from sfumato.mechanisms.secret.independent import IndependentReporting
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from support.policies import jeffreys, policies
from support.published import reference

Floats = npt.NDArray[np.float64]


def instances() -> list[Any]:
    return [(x, case) for x in reference("rldp_instances") for case in x["cases"] if "polyopt" in case]


@pytest.mark.slow
def test_polyopt_is_what_was_computed_independently() -> None:
    assert instances()
    for instance, case in instances():
        counts = np.round(np.array(instance["Phat"]) * instance["n"]).astype(np.int64)
        policy, around, shares = policies(counts, str(case["eps"]))
        found = sf.optimal(around, "mutual-information", prior=shares)
        assert found.value == pytest.approx(case["polyopt"]["opt_MI"], rel=1e-5)
        assert found.gap < 1e-6
        certificate = sf.audit(found.mechanism, policy)
        assert certificate.holds


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_generated_columns_reach_what_enumeration_finds(
    shape: tuple[int, int], epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, around, shares = policies(jeffreys(7, shape), epsilon)
    listed = sf.optimal(around, "mutual-information", prior=shares)
    monkeypatch.setattr(slices, "_LARGEST_ENUMERATED", 0)
    generated = sf.optimal(around, "mutual-information", prior=shares)
    assert generated.value == pytest.approx(listed.value, rel=1e-6)
    assert generated.bound == pytest.approx(listed.value, rel=1e-6)
    assert sf.audit(generated.mechanism, policy).holds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "gain"), [((2, 2), 0.0), ((2, 3), 0.02), pytest.param((3, 3), 0.02, marks=pytest.mark.soak)]
)
def test_the_set_itself_leaves_more_than_the_polytope_around_it(shape: tuple[int, int], gain: float) -> None:
    policy, around, shares = policies(jeffreys(7, shape), "1")
    polytope = sf.optimal(around, "mutual-information", prior=shares)
    exact = sf.optimal(policy, "mutual-information", prior=shares, max_seconds=600)
    assert exact.value >= polytope.value * (1 + gain) - 1e-6
    assert exact.bound >= exact.value - 1e-9
    assert exact.gap < 1e-4
    certificate = sf.audit(exact.mechanism, policy)
    assert certificate.holds
    assert certificate.worst.excess > -1e-3  # it uses what the policy leaves


def test_a_design_for_the_estimate_alone_breaks_the_rules_of_the_set() -> None:
    counts = jeffreys(7, (2, 3))
    policy, _, shares = policies(counts, "1")
    estimate = sf.Secret(policy.domain, "S", 1, sf.Known((counts / counts.sum()).tolist()))
    naive = sf.optimal(estimate, "mutual-information", prior=shares)
    assert sf.audit(naive.mechanism, estimate).holds
    assert not sf.audit(naive.mechanism, policy).holds


@pytest.mark.slow
def test_the_best_table_for_estimation_is_offered_by_the_plan() -> None:
    policy, _, _ = policies(np.array([[200, 100], [50, 150]]), "1")
    plan = sf.plan(policy, n=1000)
    assert plan.best.name == "optimal"
    assert all(row.bound is not None and row.risk >= row.bound for row in plan.rows)
    assert sf.audit(plan.best.mechanism, policy).holds


@pytest.mark.slow
def test_design_for_information_picks_the_best_of_all() -> None:
    policy, _, shares = policies(jeffreys(7, (2, 2)), "1")
    made = sf.design(policy, utility="mutual-information", prior=shares)
    told = MutualInformation().value(made.matrix(), shares)
    for kind in (IndependentReporting, ConditionalReporting, ConditionalUnary):
        assert told >= MutualInformation().value(kind(policy).matrix(), shares) - 1e-9


@pytest.mark.slow
def test_the_order_of_figure_2(request: pytest.FixtureRequest) -> None:
    """3 x 3, n = 1000, Jeffreys draws: PolyOpt above all simple protocols as the paper has them, SRR above GRR."""
    soak = bool(request.config.getoption("--soak", default=False))
    levels = ("0.5", "1", "2", "4", "8") if soak else ("0.5", "2", "8")
    told: dict[str, list[list[float]]] = {name: [] for name in ("GRR", "SRR", "IR", "CR", "PolyOpt")}
    for seed in range(200 if soak else 2):
        counts = jeffreys(seed, (3, 3))
        rows: dict[str, list[float]] = {name: [] for name in told}
        for level in levels:
            policy, around, shares = policies(counts, level)
            optimum = sf.optimal(around, "mutual-information", prior=shares)
            entropy = -float(np.sum(shares * np.log(np.maximum(shares, 1e-300))))
            matrices = {
                "GRR": RandomizedResponse(policy.domain, level).matrix(),
                "SRR": SecretRandomizedResponse(policy.domain, "S", level).matrix(),
                "IR": IndependentReporting(policy).matrix(),
                "CR": ConditionalReporting(policy).matrix(),
                "PolyOpt": optimum.mechanism.matrix(),
            }
            for name, matrix in matrices.items():
                rows[name].append(MutualInformation().value(matrix, shares) / entropy)
        for name, row in rows.items():
            told[name].append(row)
    means = {name: np.mean(row, axis=0) for name, row in told.items()}
    print({name: np.round(row, 4).tolist() for name, row in means.items()})
    assert np.all(np.array(told["SRR"]) > np.array(told["GRR"]))
    for name in ("GRR", "SRR", "IR"):
        assert np.all(means["PolyOpt"] >= means[name])
    assert means["SRR"][-1] > max(means[name][-1] for name in ("GRR", "IR", "CR"))


def test_the_polytope_is_audited_as_its_listed_rules_say() -> None:
    generator = np.random.default_rng(3)
    for shape in ((2, 2), (2, 3), (3, 2)):
        _, around, _ = policies(jeffreys(11, shape), "1")
        for _ in range(20):
            vector = [int(x) for x in generator.integers(0, 9, shape[0] * shape[1])]
            listed, quick = sf.Policy.worst(around, vector), around.worst(vector)
            assert (listed.violated, listed.excess) == (quick.violated, quick.excess)
            assert around.allows(vector) is not quick.violated
