"""Bounds of the search: they hold for every mechanism, and they are near the optimum where that is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Floats
from sfumato.compiler.known_bounds import exact_bound
from sfumato.compiler.solvers import relaxation
from sfumato.compiler.solvers.clusters import trace_of_clusters
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.estimation import best_design, solve_design
from sfumato.compiler.solvers.relaxation import least_trace
from sfumato.compiler.solvers.slice import Slice
from sfumato.policy import Policy

R = sf.Domain.range


def random_pairwise(size: int, seed: int, harmless: int = 0) -> sf.Pairwise:
    matrix = np.random.default_rng(seed).uniform(0.5, 3, (size, size)).round(2).astype(str).tolist()
    for x, row in enumerate(matrix):
        matrix[x] = ["inf"] * size if x < harmless else row
        matrix[x][x] = "0"
    return sf.Pairwise(R(size), matrix)


def manhattan(rows: int, columns: int, epsilon: str) -> sf.Metric:
    return sf.Metric(sf.Domain.grid(rows, columns), "manhattan", epsilon)


def uniform(size: int) -> Floats:
    return np.full(size, 1 / size)


def bound_on(policy: Policy, prior: Floats) -> float:
    """The bound of the relaxation alone, started from any design."""
    slice_ = Slice.of(policy, prior)
    rays = slice_.first_rays()
    return least_trace(slice_, rays, solve_design(rays)[0], NEVER) - float(prior @ prior)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("harmless", [0, 2])
@pytest.mark.parametrize("even", [True, False])
def test_no_bound_is_above_the_optimum(seed: int, harmless: int, even: bool) -> None:
    policy = random_pairwise(7, seed, harmless)
    prior = uniform(7) if even else np.random.default_rng(seed).dirichlet(np.full(7, 3.0))
    optimum = sf.optimal(policy, prior=prior.tolist())
    assert optimum.status == "optimal"  # all rays were enumerated
    bound = bound_on(policy, prior)
    assert 0.7 * optimum.value < bound <= optimum.value * (1 + 1e-7)


@pytest.mark.parametrize(
    ("size", "epsilon"),
    [
        *itertools.product((5, 12), ("0.5", "1", "3")),
        pytest.param(30, "1", marks=pytest.mark.slow),
        *(pytest.param(30, epsilon, marks=pytest.mark.soak) for epsilon in ("0.5", "3")),
    ],
)
def test_one_maximum_for_all_values_makes_the_bound_nearly_exact(size: int, epsilon: str) -> None:
    policy = sf.Uniform(R(size), epsilon)
    least = exact_bound(policy)
    assert least is not None
    bound = bound_on(policy, uniform(size))
    assert 0.9 * least < bound <= least * (1 + 1e-7)


def test_symmetries_do_not_change_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = manhattan(3, 4, "0.7")
    reduced = bound_on(policy, uniform(12))
    monkeypatch.setattr(relaxation, "automorphisms", lambda *_: [])
    assert bound_on(policy, uniform(12)) == pytest.approx(reduced, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.25", "1"])
def test_the_bound_of_a_grid_is_within_two_percent(epsilon: str) -> None:
    optimum = sf.optimal(manhattan(4, 4, epsilon), max_rounds=60)
    assert optimum.bound <= optimum.value <= 1.02 * optimum.bound


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_irregular_distances_have_a_bound(seed: int) -> None:
    """Without limits on the squares, the first products left the program unbounded."""
    points = np.random.default_rng(seed).uniform(0, 1, (16, 2))
    distances = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2)).round(4)
    optimum = sf.optimal(sf.Metric(R(16), distances, 5), max_rounds=60)
    assert 0.7 * optimum.value < optimum.bound <= optimum.value


@pytest.mark.slow
def test_an_interrupted_relaxation_has_a_bound_too(is_soak: bool) -> None:
    policy = random_pairwise(12, 3)
    slice_ = Slice.of(policy, uniform(12))
    rays = slice_.first_rays()
    weights = solve_design(rays)[0]
    whole = least_trace(slice_, rays, weights, NEVER)
    for ticks, clock in ((n, itertools.count()) for n in range(5, 60, 5 if is_soak else 18)):
        bound = least_trace(slice_, rays, weights, Deadline(ticks, lambda clock=clock: float(next(clock))))  # type: ignore[misc]
        assert 1 <= bound <= whole * (1 + 1e-6)


@pytest.mark.slow
def test_clusters_bound_the_whole() -> None:
    """Two lines that do not meet: without rules between them, the bound of their clusters is that of the policy."""
    line = sf.Metric(R(25), "absolute", 1)
    levels = [[abs(x - z) if x // 25 == z // 25 else "inf" for z in range(50)] for x in range(50)]
    slice_ = Slice.of(sf.Pairwise(R(50), levels), uniform(50))

    def trace(part: Slice, deadline: Deadline) -> float:
        design, prior = best_design(part, deadline)
        return design.bound + float(prior @ prior)

    alone = sf.optimal(line, max_rounds=40)
    both = trace_of_clusters(slice_, trace, NEVER) - 1 / 50
    # A report reveals the line, and then a value of it: Σ w·(r + 1/k) - 1/50 with w = 1/2 for each.
    assert both == pytest.approx(alone.bound + 1 / 25 - 1 / 50, rel=1e-3)


@pytest.mark.slow
def test_many_values_have_a_bound_from_clusters() -> None:
    policy = sf.Metric(R(60), "absolute", 2)
    slice_ = Slice.of(policy, uniform(60))
    bound = trace_of_clusters(slice_, lambda part, end: best_design(part, end)[0].bound + 1 / part.size, NEVER)
    exponential = sf.plan(policy, 1, max_seconds=0)["exponential"]
    assert exponential.risk / 1.2 < bound - 1 / 60 <= exponential.risk


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        sf.Blocks(R(12), [0] * 6 + [1] * 4 + [2] * 2, "0.5", "1.5"),
        sf.Blocks(R(12), [0] * 6 + [1] * 4 + [2] * 2, 1, 3),
        sf.Secret(sf.Domain.product(S=["x", "y", "z"], U=[0, 1, 2, 3]), "S", 1, sf.Anything()),
        sf.PerValue(R(12), ["0.5"] * 3 + ["1"] * 4 + ["3"] * 5),
        sf.Prior(R(12), ["1/12"] * 12, 1),
    ],
    ids=["blocks-1.5", "blocks-3", "secret", "per-value", "prior"],
)
def test_symmetric_policies_are_designed_to_optimality_by_default(policy: Policy) -> None:
    plan = sf.plan(policy, 1)
    assert plan.bound is not None
    assert plan.best.risk <= 1.01 * plan.bound
    optimum = sf.optimal(policy)
    assert optimum.status == "optimal"
    assert optimum.bound == pytest.approx(plan.bound, rel=1e-6)


def test_a_bound_that_is_not_useful_is_not_stated() -> None:
    optimum = sf.optimal(random_pairwise(12, 1), max_rounds=3)
    assert "lower bound " in optimum.summary()
    worse = sf.Optimum.from_dict(optimum.to_dict() | {"bound": optimum.value / 5})
    assert "no useful lower bound" in worse.summary()
    assert "gap" not in worse.summary()
