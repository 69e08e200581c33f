"""The least expected loss for many values, compared with one linear program over the whole matrix."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import sfumato as sf
from sfumato._core import Floats, Progress
from sfumato.cli import main
from sfumato.compiler.solvers import losses as solver
from sfumato.compiler.solvers.banded import BandedPattern
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.losses import FEW_VALUES, least_loss
from sfumato.compiler.solvers.optimization import optimal_until
from sfumato.mechanisms import mechanism_from_spec
from sfumato.policy import PairwisePolicy
from support.clocks import Clock


def grid(rows: int, columns: int, epsilon: str) -> tuple[sf.Metric, Floats]:
    """Return the policy of a grid with Manhattan distances, and the squared distances between cells."""
    cells = np.array(list(itertools.product(range(rows), range(columns))))
    steps = np.abs(cells[:, None] - cells)
    return sf.Metric(sf.Domain.range(len(cells)), steps.sum(axis=2), epsilon), (steps**2).sum(axis=2).astype(float)


def one_way(size: int, seed: int) -> sf.Pairwise:
    """Return a policy with asymmetric and infinite epsilons; some values have rules in one direction only."""
    generator = np.random.default_rng(seed)
    epsilons = generator.uniform(0.3, 2, (size, size)).round(2).astype(str)
    epsilons[generator.random((size, size)) < 0.7] = "inf"
    epsilons[0, 1:], epsilons[1:, 0] = "inf", "1"
    np.fill_diagonal(epsilons, "0")
    return sf.Pairwise(sf.Domain.range(size), epsilons.tolist())


def least(policy: PairwisePolicy, losses: Floats, prior: Floats) -> float:
    """Return the least expected loss by one linear program with all rules."""
    size, decisions = losses.shape
    epsilons = policy.epsilon_matrix().floats
    x, z = np.nonzero(np.isfinite(epsilons) & ~np.eye(size, dtype=bool))
    number = np.arange(len(x))
    entries = np.concatenate([np.ones(len(x)), -np.exp(epsilons[x, z])])
    rules = sparse.csr_matrix((entries, (np.tile(number, 2), np.concatenate([x, z]))), shape=(len(x), size))
    solved = linprog(
        (prior[:, None] * losses).ravel(),
        A_ub=sparse.kron(rules, np.eye(decisions)),
        b_ub=np.zeros(len(x) * decisions),
        A_eq=sparse.kron(np.eye(size), np.ones((1, decisions))),
        b_eq=np.ones(size),
    )
    assert solved.status == 0
    return float(solved.fun)


def random_task(name: str) -> tuple[PairwisePolicy, Floats, Floats]:
    """Return a policy, losses and a prior that contains zeros."""
    generator = np.random.default_rng(len(name))
    policies: dict[str, Callable[[], PairwisePolicy]] = {
        "line": lambda: sf.Metric(sf.Domain.range(20), "absolute", "0.4"),
        "grid": lambda: grid(5, 4, "0.7")[0],
        "one way": lambda: one_way(12, 3),
        "uniform": lambda: sf.Uniform(sf.Domain.range(9), "1.3"),
        "blocks": lambda: sf.Blocks(sf.Domain.range(10), [range(4), range(4, 9), [9]], "0.8"),
    }
    policy = policies[name]()
    prior = generator.dirichlet(np.full(len(policy.domain), 0.4))
    prior[generator.integers(len(prior), size=3)] = 0
    return policy, generator.uniform(-1, 3, (len(policy.domain), 7)), prior / prior.sum()


@pytest.mark.parametrize("shape", ["grid", "line", "dense", "star"])
def test_banded_factors_are_those_of_the_matrices(shape: str) -> None:
    generator, size, count = np.random.default_rng(1), 60, 5
    pairs = {
        "grid": [(x, x + 1) for x in range(size - 1) if x % 5 < 4] + [(x, x + 5) for x in range(size - 5)],
        "line": [(x, x + 1) for x in range(size - 1)],
        "dense": list(itertools.combinations(range(size), 2)),
        "star": [(0, x) for x in range(1, size)],
    }[shape]
    rows, columns = np.array([(x, x) for x in range(size)] + pairs).T
    mixed = generator.permutation(size)
    rows, columns = np.sort([mixed[rows], mixed[columns]], axis=0)
    entries = -generator.uniform(0, 1, (len(rows), count))
    matrices = np.zeros((count, size, size))
    matrices[:, rows, columns] = matrices[:, columns, rows] = entries.T
    diagonal = rows == columns
    entries[diagonal] = (1e-3 - matrices.sum(axis=2) + np.diagonal(matrices, axis1=1, axis2=2)).T[rows[diagonal]]
    matrices[:, rows, columns] = matrices[:, columns, rows] = entries.T
    factors = BandedPattern(rows, columns, size).factors(entries, NEVER, add=True)
    assert factors is not None
    right = generator.normal(size=(size, count))
    expected = np.linalg.solve(matrices, right.T[..., None])[..., 0].T
    assert np.allclose(factors.solve(right), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    assert np.allclose(factors.sum_of_inverses, np.linalg.inv(matrices).sum(axis=0), rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", ["line", "grid", "one way", "uniform", "blocks"])
def test_the_loss_and_its_bound_enclose_the_optimum(name: str) -> None:
    policy, losses, prior = random_task(name)
    design, optimum = least_loss(policy, losses, prior, NEVER), least(policy, losses, prior)
    assert design is not None
    loss = float(prior @ (design.matrix * losses).sum(axis=1))
    assert design.in_time
    assert design.bound <= optimum + 1e-9
    assert loss == pytest.approx(optimum, abs=1e-4)
    assert design.bound == pytest.approx(optimum, abs=3e-4)
    assert np.allclose(design.matrix.sum(axis=1), 1, rtol=0, atol=1e-12)
    ratios = np.exp(np.minimum(policy.epsilon_matrix().floats, 300))
    limits = ratios[..., None] * design.matrix + np.isinf(policy.epsilon_matrix().floats)[..., None]
    assert (design.matrix[:, None] <= limits + 1e-12).all()


def test_the_bound_holds_whenever_the_time_ends() -> None:
    policy, losses = grid(5, 5, "0.8")
    prior = np.random.default_rng(3).dirichlet(np.full(25, 0.3))
    optimum, bounds = least(policy, losses, prior), []
    for readings in (6, 12, 20, 60):
        design = least_loss(policy, losses, prior, Deadline(readings, Clock()))
        assert design is not None
        assert design.in_time == (readings == 60)
        assert float(prior @ (design.matrix * losses).sum(axis=1)) >= optimum - 1e-6
        bounds.append(design.bound)
    assert bounds == sorted(bounds)
    assert bounds[-1] <= optimum + 1e-9
    with pytest.raises(OutOfTime):
        least_loss(policy, losses, prior, Deadline(1, Clock()))


def test_any_multipliers_give_a_bound() -> None:
    policy, losses, prior = random_task("grid")
    costs = prior[:, None] * losses
    program = solver._Program.of(policy.without_sums().epsilon_matrix().floats, costs)
    assert program is not None
    optimum, bounds = least(policy, losses, prior), []
    for seed in range(50):
        generator = np.random.default_rng(seed)
        multipliers = generator.exponential(0.01, (program.rules.shape[0], costs.shape[1]))
        bounds.append(program.surely_reduced(multipliers).min(axis=1).sum())
    assert max(bounds) <= optimum
    # A multiplier below zero would not prove a bound.
    assert program.surely_reduced(np.full_like(multipliers, -1.0)).min(axis=1).sum() > optimum


def test_decisions_that_lower_the_loss_join_the_search() -> None:
    policy, losses = grid(4, 4, "1")
    prior = np.random.default_rng(5).dirichlet(np.ones(16))
    epsilons = policy.effective_epsilon_matrix().floats
    program = solver._Program.of(policy.without_sums().epsilon_matrix().floats, prior[:, None] * losses)
    assert program is not None
    descent = solver._Descent(program, epsilons, prior, 0.0, NEVER, None)
    descent._chosen = np.arange(16) < 2
    descent._search = descent._start()
    descent.run()
    optimum = least(policy, losses, prior)
    assert float((program.costs * descent.matrix).sum()) == pytest.approx(optimum, rel=1e-4)
    assert optimum * (1 - 1e-4) <= descent.bound <= optimum * (1 + 1e-9)
    assert not descent._chosen.all() or descent._chosen.sum() > 2


@pytest.mark.slow
@pytest.mark.parametrize("concentrated", [False, True])
def test_a_map_of_cells_has_an_optimal_mechanism(concentrated: bool) -> None:
    policy, losses = grid(9, 9, "1")
    assert len(policy.domain) > FEW_VALUES
    prior = np.full(81, 1 / 81)
    if concentrated:
        prior = np.random.default_rng(2).dirichlet(np.full(81, 0.2))
        prior[:9] = 0
        prior /= prior.sum()
    calls: list[Progress] = []
    optimum = sf.optimal(policy, sf.ExpectedLoss(losses), prior=prior, progress=calls.append)
    assert optimum.status == "optimal"
    assert optimum.bound <= optimum.value
    assert optimum.value == pytest.approx(float(optimum.prior @ (optimum.mechanism.matrix() * losses).sum(axis=1)))
    bounds = [call.bound for call in calls if call.bound is not None]
    assert bounds == sorted(bounds)
    assert calls[-1].value == pytest.approx(optimum.value, rel=1e-4)
    certificate = sf.audit(optimum.mechanism, policy)
    assert certificate.holds
    certificate.verify()
    assert mechanism_from_spec(json.loads(optimum.mechanism.to_json())) == optimum.mechanism
    again = sf.optimal(policy, sf.ExpectedLoss(losses), prior=prior)
    assert again.mechanism == optimum.mechanism
    assert again.bound == optimum.bound


def test_a_search_for_losses_ends_with_its_time() -> None:
    policy, losses = grid(9, 9, "1")
    for seconds in (0.2, 1.5, 3.0):
        clock = Clock(0.1)
        try:
            optimum = optimal_until(Deadline(seconds, clock), policy, sf.ExpectedLoss(losses), None, None, None)
        except OutOfTime:
            assert seconds == 0.2
            continue
        assert optimum.status == "time"
        assert optimum.bound <= optimum.value
        assert sf.audit(optimum.mechanism, policy).holds
        assert clock.now <= 1.2 * seconds + 2


def test_policies_with_equal_values_use_the_general_search() -> None:
    levels = np.abs(np.subtract.outer(np.arange(66) // 33, np.arange(66) // 33))
    policy = sf.Metric(sf.Domain.range(66), levels, "1")
    assert least_loss(policy, np.eye(66)[:, :2], np.full(66, 1 / 66), NEVER) is None
    optimum = sf.optimal(policy, sf.ExpectedLoss(levels[:, [0, 65]]))
    assert optimum.value == pytest.approx(1 / (1 + np.e), rel=1e-5)  # randomized response between the two groups


def test_plan_and_command_design_for_losses_of_many_values(tmp_path: Path) -> None:
    policy = sf.Metric(sf.Domain.range(70), "absolute", "0.5")
    losses = np.abs(np.subtract.outer(np.arange(70.0), np.arange(70)))
    plan = sf.plan(policy, 1, utility=sf.ExpectedLoss(losses))
    assert plan.best.name == "optimal"
    assert "lower bound" in plan.reason
    (tmp_path / "policy.json").write_text(json.dumps(policy.to_dict()))
    np.savetxt(tmp_path / "losses.csv", losses, delimiter=",")
    files = [str(tmp_path / name) for name in ("policy.json", "losses.csv", "mechanism.json")]
    assert main(["design", files[0], "--loss", files[1], "-o", files[2], "--json"]) == 0
    assert mechanism_from_spec(json.loads(Path(files[2]).read_text())) == plan.best.mechanism
