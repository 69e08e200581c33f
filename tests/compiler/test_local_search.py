"""The local search for rays, and the symmetries of policies, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Floats
from sfumato.compiler.solvers.local_search import RaySearch, independent_rules
from sfumato.compiler.solvers.slice import Slice
from sfumato.compiler.solvers.symmetry import automorphisms, pair_orbits
from sfumato.policy.pairwise import PairwisePolicy


def random_pairwise(size: int, seed: int, harmless: int = 0) -> sf.Pairwise:
    matrix = np.random.default_rng(seed).uniform(0.5, 3, (size, size)).round(2).astype(str).tolist()
    for x, row in enumerate(matrix):
        matrix[x] = ["inf"] * size if x < harmless else row
        matrix[x][x] = "0"
    return sf.Pairwise(sf.Domain.range(size), matrix)


def epsilons_of(policy: PairwisePolicy) -> Floats:
    return policy.effective_epsilon_matrix().floats


def search_of(policy: PairwisePolicy, prior: Floats) -> RaySearch:
    epsilons = epsilons_of(policy)
    return RaySearch(epsilons, independent_rules(epsilons), prior)


def grid(rows: int, columns: int) -> sf.Metric:
    cells = np.array(list(itertools.product(range(rows), range(columns))))
    return sf.Metric(sf.Domain.range(len(cells)), np.abs(cells[:, None] - cells).sum(axis=2), 1)


def test_only_rules_between_neighbours_of_a_grid_are_independent() -> None:
    rules = independent_rules(epsilons_of(grid(3, 4)))
    cells = list(itertools.product(range(3), range(4)))
    for (x, a), (z, b) in itertools.product(enumerate(cells), repeat=2):
        assert rules[x, z] == (abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("harmless", [0, 2])
def test_rays_stay_in_the_cone_and_come_near_the_greatest_worth_of_all_vertices(seed: int, harmless: int) -> None:
    size = 7
    policy = random_pairwise(size, seed, harmless)
    generator = np.random.default_rng(seed)
    prior = generator.dirichlet(np.full(size, 5.0))
    directions, multipliers = generator.normal(size=(size, size)), 10 * generator.normal(size=size)
    vertices = Slice.of(policy, prior).all_vertices()
    assert vertices is not None

    def worths(rays: Floats) -> Floats:
        return np.asarray(np.sum((rays @ directions.T) ** 2, axis=1) - rays @ multipliers)

    search = search_of(policy, prior)
    starts = np.concatenate([search.starts(1000, np.zeros((0, size))), np.ones((1, size))])
    rays = search.climb(starts, directions, multipliers)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.log(rays[:, :, None]) - np.log(rays[:, None, :])
    assert np.nanmax(apart - epsilons_of(policy)) < 1e-9
    assert np.allclose(rays @ prior, 1)
    most = worths(vertices).max()
    assert worths(rays).max() <= most + 1e-9 * abs(most)
    revealed = worths(np.diag(1 / prior))[:harmless]  # a harmless value may be revealed; no finite move reaches that
    assert max(worths(rays).max(), *revealed, -np.inf) >= most - 1e-3 * abs(most)


def test_a_ray_and_its_opposite_mix_to_the_constant() -> None:
    policy = random_pairwise(12, 2, harmless=1)
    search = search_of(policy, np.full(12, 1 / 12))
    rays = search.starts(50, np.zeros((0, 12)))
    opposite = search.opposite(rays)
    assert len(opposite) == len(rays)
    steps = (opposite - 1)[:, 0] / (1 - rays)[:, 0]
    assert np.allclose(opposite, 1 + steps[:, None] * (1 - rays))
    with np.errstate(divide="ignore"):
        slack = epsilons_of(policy) + np.log(opposite[:, None, :]) - np.log(opposite[:, :, None])
    tightest = np.minimum(np.nanmin(slack + np.diag(np.full(12, np.inf)), axis=(1, 2)), opposite.min(axis=1))
    assert np.abs(tightest).max() < 1e-9  # each point lies on the boundary of the cone
    assert len(search.opposite(np.ones((1, 12)))) == 0


def test_starts_are_the_same_in_every_run() -> None:
    policy = random_pairwise(12, 1)
    first, second = (search_of(policy, np.full(12, 1 / 12)) for _ in range(2))
    used = np.ones((1, 12))
    assert np.array_equal(first.starts(5, used), second.starts(5, used))
    assert not np.array_equal(first.starts(5, used), search_of(policy, np.full(12, 1 / 12)).starts(5, used))


def all_automorphisms(epsilons: Floats) -> list[tuple[int, ...]]:
    size = len(epsilons)
    return [g for g in itertools.permutations(range(size)) if np.array_equal(epsilons[np.ix_(g, g)], epsilons)]


@pytest.mark.parametrize(
    "policy",
    [
        grid(2, 3),
        grid(1, 6),
        sf.Uniform(sf.Domain.range(6), 1),
        sf.Blocks(sf.Domain.range(6), [0, 0, 1, 1, 2, 2], 1, 3),
        sf.Blocks(sf.Domain.range(6), [0, 0, 0, 1, 1, 2], 1, 3),
        sf.HighLow(sf.Domain.range(6), [1, 4], 1),
        sf.Metric(sf.Domain.range(6), lambda a, b: min(abs(a - b), 6 - abs(a - b)), 1),
        random_pairwise(6, 3),
        # Directions of a cycle: rotations preserve it, reflections do not.
        sf.Pairwise(sf.Domain.range(6), [[(b - a) % 6 for b in range(6)] for a in range(6)]),
    ],
    ids=lambda policy: policy.kind,
)
def test_orbits_of_pairs_are_those_of_all_permutations(policy: PairwisePolicy) -> None:
    epsilons = epsilons_of(policy)
    size = len(epsilons)
    group = all_automorphisms(epsilons)
    generators = automorphisms(epsilons, np.full(size, 1 / size))
    assert all(tuple(g.tolist()) in group for g in generators)
    orbits = pair_orbits(size, generators)
    for (x, z), (a, b) in itertools.product(itertools.product(range(size), repeat=2), repeat=2):
        same = any({(g[x], g[z])} & {(a, b), (b, a)} for g in group)
        assert (orbits[x, z] == orbits[a, b]) == same


def test_an_uneven_distribution_breaks_symmetries() -> None:
    epsilons = epsilons_of(sf.Uniform(sf.Domain.range(4), 1))
    orbits = pair_orbits(4, automorphisms(epsilons, np.array([0.1, 0.1, 0.4, 0.4])))
    assert len(np.unique(orbits)) == 5  # two diagonals, two pairs within a class, one across
    rare = np.array([0.0, 1e-13, 3e-13, 1 - 4e-13])
    assert automorphisms(epsilons, rare) == []
    thirds = np.array([1 - 2 / 3, 1 / 3, 1 / 6 + 1 / 6, 0.0])
    assert len(np.unique(pair_orbits(4, automorphisms(epsilons, thirds)))) == 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 7, 11])
def test_rays_of_little_weight_are_kept_if_a_design_needs_them(seed: int) -> None:
    """Ten values with a few strict rules are enumerated; a free eleventh value leaves the search to moves."""
    generator = np.random.default_rng(seed)
    matrix = np.full((11, 11), np.inf)
    matrix[:10, :10] = np.where(generator.random((10, 10)) < 0.15, 0.01, generator.uniform(0.5, 3, (10, 10)).round(2))
    np.fill_diagonal(matrix, 0)
    ten = sf.optimal(sf.Pairwise(sf.Domain.range(10), matrix[:10, :10]))
    eleven = sf.optimal(sf.Pairwise(sf.Domain.range(11), matrix), max_rounds=20)
    assert ten.status == "optimal"
    # The trace of a free value is 1, and the traces of both parts count by their probabilities.
    expected = (10 * (ten.value + 1 / 10) + 1) / 11 - 1 / 11
    assert eleven.bound <= expected * (1 + 1e-6)
    assert expected * (1 - 1e-6) <= eleven.value <= expected * 1.01
