"""The most valuable ray under least shares, found by few choices, against all vertices; and its designs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.goals import MutualInformation
from sfumato.compiler.solvers.simplices import Simplices, _Search
from sfumato.compiler.solvers.slice import Slice
from sfumato.mechanisms.secret.base import memberships
from sfumato.mechanisms.secret.conditional import ConditionalReporting
from sfumato.mechanisms.secret.independent import IndependentReporting, _leakage_of_secret, _may_tell_most
from sfumato.policy.confidence import widest
from support.policies import jeffreys, policies

Floats = npt.NDArray[np.float64]


def worths(rays: Floats, p: Floats, prices: Floats) -> Floats:
    return np.asarray((rays * np.log(np.maximum(rays, 1e-300))) @ p - rays @ prices)


def slice_of(policy: sf.Secret, p: Floats) -> tuple[Slice, Simplices]:
    found = Slice.of(policy, p)
    assert len(found.simplices) == 1
    return found, found.simplices[0]


def soon() -> Deadline:
    return Deadline(60)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_no_vertex_is_dearer_and_one_is_as_dear(shape: tuple[int, int], epsilon: str) -> None:
    generator = np.random.default_rng(5)
    for seed in (1, 7):
        _, around, _ = policies(jeffreys(seed, shape, n=200), epsilon)
        p = generator.dirichlet(np.ones(shape[0] * shape[1]))
        slice_, simplices = slice_of(around, p)
        vertices = slice_.all_vertices()
        assert vertices is not None
        for _ in range(4):
            prices = generator.normal(size=len(p)) * p
            most = worths(vertices, p, prices).max()
            bound, rays = simplices.most_valuable(prices, np.inf, 1e-9, soon())
            assert worths(rays, p, prices).max() == pytest.approx(most, abs=1e-9)
            assert most - 1e-9 <= bound <= most + 2e-9
            assert (rays @ slice_.rows.T).min() > -1e-9
            assert rays.min() >= 0
            assert rays @ p == pytest.approx(1)


def test_what_cannot_be_settled_in_time_is_left() -> None:
    """Every value of t by itself, and no time: the search comes back, and its bound still holds all of them."""
    _, around, shares = policies(jeffreys(7, (3, 3)), "2")
    _, simplices = slice_of(around, shares)
    prices = np.zeros_like(simplices.cells, dtype=np.float64)
    search = _Search(simplices, prices, 0.0)
    for star, steps in enumerate(simplices.steps):
        search._open([(star, number, number) for number in range(len(steps))])
    before = search.bound
    search.go_on(Deadline(0))
    assert search.bound == before
    search.go_on(soon())
    assert search.bound <= before


def test_a_bound_that_was_cut_short_is_one() -> None:
    _, around, p = policies(jeffreys(3, (3, 3)), "1")
    p = (p + 1e-6) / (p + 1e-6).sum()
    slice_, simplices = slice_of(around, p)
    vertices = slice_.all_vertices()
    assert vertices is not None
    for seed in range(5):
        prices = np.random.default_rng(seed).normal(size=9) * p
        most = worths(vertices, p, prices).max()
        assert simplices.most_valuable(prices, np.inf, 1e-9, Deadline(0))[0] >= most - 1e-9
        assert simplices.most_valuable(prices, -np.inf, 1e-9, soon())[0] >= most - 1e-9


def test_secrets_never_seen_and_cells_never_seen() -> None:
    for counts in ([[30, 10, 0], [0, 0, 0], [5, 0, 60]], [[0, 3], [7, 0]]):
        policy, around, _ = policies(np.array(counts), "1")
        shares = (np.ravel(counts) + 1) / (np.ravel(counts) + 1).sum()
        found = sf.optimal(around, "mutual-information", prior=shares)
        assert found.gap < 1e-6
        assert sf.audit(found.mechanism, policy).holds


def test_sixteen_cells_are_certified(request: pytest.FixtureRequest) -> None:
    """4 x 4, which takes vertex enumeration more than half a day; 5 x 5 and 9 x 9 with --soak."""
    soak = bool(request.config.getoption("--soak", default=False))
    for size, allowed in ((4, 1e-6), (5, 1e-6), (9, 0.01)) if soak else ((4, 1e-6),):
        policy, around, shares = policies(jeffreys(7, (size, size)), "1")
        found = sf.optimal(around, "mutual-information", prior=shares, max_seconds=280)
        print(f"{size} x {size}: {found}")
        assert found.gap < allowed
        assert found.bound >= found.value - 1e-9
        assert sf.audit(found.mechanism, policy).holds


@pytest.mark.slow
@pytest.mark.usefixtures("counted_time")
@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
def test_the_set_itself_is_never_worse_than_the_polytope_however_short_the_time(shape: tuple[int, int]) -> None:
    for seed in (3, 7):
        policy, around, shares = policies(jeffreys(seed, shape), "1")
        polytope = sf.optimal(around, "mutual-information", prior=shares)
        exact = sf.optimal(policy, "mutual-information", prior=shares, max_seconds=1e-3)
        assert exact.value >= polytope.value * (1 - 1e-6)
        assert exact.bound >= exact.value
        assert sf.audit(exact.mechanism, policy).holds


@pytest.mark.slow
def test_the_set_itself_tells_more_than_its_polytope_at_sixteen_cells(request: pytest.FixtureRequest) -> None:
    """4 x 4 in a few seconds; 5 x 5 and 9 x 9, and twice the information of every simple protocol, with --soak."""
    soak = bool(request.config.getoption("--soak", default=False))
    for size, seconds in ((4, 60), (5, 120), (9, 280)) if soak else ((4, 8),):
        policy, around, shares = policies(jeffreys(7, (size, size)), "1")
        polytope = sf.optimal(around, "mutual-information", prior=shares, max_seconds=seconds)
        exact = sf.optimal(policy, "mutual-information", prior=shares, max_seconds=seconds)
        print(f"{size} x {size}: {polytope}; {exact}")
        assert exact.value >= polytope.value * (1 - 1e-6)
        assert sf.audit(exact.mechanism, policy).holds
        if soak:
            for kind in (IndependentReporting, ConditionalReporting):
                simple: Any = kind(policy)
                assert exact.value >= 2 * MutualInformation().value(simple.matrix(), shares)


def test_too_many_values_are_left_to_the_search_for_all_policies() -> None:
    _, around, p = policies(np.full((2, 11), 10), "1")
    assert not Slice.of(around, p).simplices


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (4, 3)])
def test_many_columns_are_proved_as_each_by_itself(shape: tuple[int, int]) -> None:
    counts = jeffreys(2, shape)
    policy, _, _ = policies(counts, "1")
    mechanism: Any = IndependentReporting(policy)
    columns = np.repeat(mechanism.weights.T, 64 // mechanism.outputs + 1, axis=0)
    columns = columns - np.random.default_rng(0).integers(0, 2, columns.shape) * (columns > 0)
    assert policy.allows_all(columns.tolist()) is all(policy.allows(column) for column in columns.tolist())
    broken = columns.copy()
    broken[-1] //= 16
    broken[-1, policy.cells[0]] = 9 * broken[-1].max()
    assert not policy.allows(broken[-1].tolist())
    assert not policy.allows_all(broken.tolist())


@pytest.mark.parametrize("gain", [0.3, 4.0, np.inf])
def test_sets_left_out_tell_no_more_of_the_secret(gain: float) -> None:
    for seed in range(4):
        policy, _, _ = policies(jeffreys(seed, (3, 5), n=300), "1")
        confidence: Any = policy.distributions
        for size in (1, 2):
            members = memberships(5, size)
            pairs = np.array([(s, t) for s in range(3) for t in range(3) if s != t])
            within = members @ confidence.frequencies.T
            merged = np.stack([within, confidence.frequencies.sum(axis=1) - within], axis=2).clip(min=0)
            cells = merged[:, pairs].reshape(-1, 2, 2)
            each = np.array([1.0, 0.0]) if np.isinf(gain) else np.array([1 + gain, 1.0])
            everything = widest(np.broadcast_to(each, cells.shape), cells, float(confidence.root_radius - 1)).ratio
            assert _leakage_of_secret(confidence, size, gain) == pytest.approx(np.log(everything.max()), rel=1e-9)
            assert _may_tell_most(confidence, members, pairs, gain).sum() < everything.size
