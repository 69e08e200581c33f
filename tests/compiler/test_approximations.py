"""Structured policies on either side of a policy: exact implication, quality of their mechanisms, valid bounds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.compiler.approximations import (
    _partitions_of_blocks,
    _partitions_of_matrix,
    in_words,
    inner_approximations,
    outer_bound,
)
from sfumato.compiler.bounds import least_risk, uniform_least_risk
from sfumato.compiler.candidates import candidates
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.orbits import best_orbits
from sfumato.compiler.warm_starts import warm_rays
from sfumato.mechanisms.table.value_levels import gain_of_levels, levels_table

Matrix = npt.NDArray[np.float64]


def pairwise(matrix: Matrix) -> sf.Pairwise:
    """Return the policy of a matrix with two decimals."""
    rounded = matrix.round(2)
    np.fill_diagonal(rounded, 0)
    return sf.Pairwise(sf.Domain.range(len(rounded)), rounded.astype(str).tolist())


def random_policy(size: int, seed: int, unprotected: int = 0) -> sf.Pairwise:
    """Return epsilons of 0.5 to 3 in each direction, and rows without limits for some values."""
    generator = np.random.default_rng(seed)
    matrix = generator.uniform(0.5, 3, (size, size))
    matrix[generator.choice(size, unprotected, replace=False)] = np.inf
    return pairwise(matrix)


def clustered(sizes: list[int], within: tuple[float, float], across: tuple[float, float], seed: int = 0) -> sf.Pairwise:
    """Return shuffled groups with epsilons in two ranges, which no path through other values shortens."""
    generator = np.random.default_rng(seed)
    group = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
    shape = (len(group), len(group))
    same = group[:, None] == group
    return pairwise(np.where(same, generator.uniform(*within, shape), generator.uniform(*across, shape)))


def three_levels(size: int) -> sf.Pairwise:
    """Return a policy that protects a value at 0.5, 1 or 3 against all others, and leaves the last one unprotected."""
    levels = np.resize([0.5, 1, 3, 3], size)
    levels[-1] = np.inf
    return pairwise(np.repeat(levels[:, None], size, axis=1))


def partitions(size: int) -> Iterator[list[int]]:
    """Yield every partition of some values, as block numbers in order of first appearance."""
    if size == 0:
        yield []
        return
    for rest in partitions(size - 1):
        for block in range(max(rest, default=-1) + 2):
            yield [*rest, block]


POLICIES = {
    "random": random_policy(6, 1),
    "unprotected": random_policy(6, 2, unprotected=2),
    "clustered": clustered([2, 2, 2], (1, 1.2), (2, 2.2)),
    "unequal": clustered([1, 1, 1, 3], (0.5, 0.6), (2, 2.2)),
    "levels": three_levels(6),
    "blocks": sf.Blocks(sf.Domain.range(6), [0, 0, 0, 1, 1, 2], ["0.5", 1, 2], across="1.5"),
    "line": sf.Metric(sf.Domain.range(6), "absolute", "0.5"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_candidate_for_a_stronger_policy_obeys_the_policy_itself(name: str) -> None:
    policy = POLICIES[name]
    for stronger in inner_approximations(policy):
        assert sf.implies(stronger, policy)
        assert not sf.implies(policy, stronger)
    suitable = candidates(policy)
    for short_name in {*suitable.stronger, "levels"} & {*suitable.by_name}:
        mechanism = sf.design(policy, mechanism=short_name)
        columns = ([mechanism.probability(report, x) for x in range(6)] for report in mechanism.reports())
        assert all(map(policy.allows, columns)), short_name
        assert sf.mechanism_from_spec(json.loads(json.dumps(mechanism.spec))) == mechanism


@pytest.mark.parametrize("seed", range(4))
def test_no_other_partition_gives_a_weaker_policy(seed: int) -> None:
    """Compare the chain with all 52 partitions of five values at all levels."""
    matrix = np.random.default_rng(seed).choice([0.5, 0.7, 1, 1.5, 2], (5, 5))
    policy = pairwise(matrix)
    exact = policy.epsilon_matrix()
    chain = [
        sf.Blocks(policy.domain, part.block_of, part.within, part.across) for part in _partitions_of_matrix(exact, 100)
    ]
    levels = sorted({exact.epsilon(code) for code in exact.codes.ravel().tolist()})[1:]
    implying = [
        blocks
        for block_of, (within, across) in itertools.product(partitions(5), itertools.combinations(levels, 2))
        if 1 < len(set(block_of)) < 5
        and sf.implies(blocks := sf.Blocks(policy.domain, block_of, within, across), policy)
    ]
    assert all(any(sf.implies(blocks, best) for best in chain) for blocks in implying)
    assert all(sf.implies(best, policy) for best in chain)


@pytest.mark.slow
def test_noisy_groups_are_found_and_used() -> None:
    """The optimum of the groups at the greatest levels of the noise is a lower bound."""
    policy = clustered([5] * 30, (1, 1.05), (3, 3.1))
    plan = sf.plan(policy, 1000, max_seconds=0)
    assert plan.best.name == "nested-cyclic-in-30-blocks"
    assert plan.best.stronger == "30 blocks with epsilon 1 within and 3 across"
    assert f"made for the stronger policy of {plan.best.stronger}" in plan.reason
    assert sf.audit(plan.best.mechanism, policy).holds
    (inner,) = inner_approximations(policy)
    optimum = best_orbits(inner)
    assert optimum is not None
    assert 1000 * plan.best.risk <= 1.01 * optimum.value
    bound = outer_bound(policy)
    assert bound is not None
    assert isinstance(bound[1], sf.Blocks)
    assert plan.best.bound == pytest.approx(bound[0] / 1000)
    assert plan.best.ratio is not None
    assert plan.best.ratio <= 1.3
    assert plan.saving > 3


@pytest.mark.parametrize("utility", ["estimation", "mutual-information"])
def test_a_row_for_a_stronger_policy_is_stored(utility: str) -> None:
    policy = clustered([2, 2, 2], (0.5, 0.6), (2, 2.2))
    plan = sf.plan(policy, 10, utility=utility, max_seconds=0)
    assert {row.name for row in plan if row.stronger} == {row.name for row in plan if row.name.endswith("-blocks")}
    document = json.loads(json.dumps(plan.to_dict()))
    assert any(row.stronger for row in plan)
    assert all(
        ("stronger" in row) == (read.stronger is not None) for row, read in zip(document["rows"], plan, strict=True)
    )
    assert sf.Plan.from_dict(document) == plan


@pytest.mark.slow
def test_small_blocks_are_merged_if_padding_would_cost_more() -> None:
    sizes = [6] * 2 + [1] * 12
    policy = sf.Blocks(sf.Domain.range(24), np.repeat(np.arange(14), sizes).tolist(), 1, 3)
    (packed,) = inner_approximations(policy)
    assert isinstance(packed, sf.Blocks)
    assert np.bincount(packed.block_of).tolist() == [6] * 4
    plan = sf.plan(policy, 1, max_seconds=0)
    assert plan.best.name == "nested-cyclic-in-4-blocks"
    assert plan.best.risk < 0.85 * plan["nested-cyclic"].risk
    assert sf.audit(plan.best.mechanism, policy).holds


def test_blocks_at_a_high_level_fall_apart() -> None:
    """Their values are as far from each other as from other blocks, so one block per value is weaker."""
    policy = sf.Blocks(sf.Domain.range(6), [0, 0, 1, 1, 2, 2], [1, 3, 2], across=3)
    chain = [(part.block_of.tolist(), str(part.across)) for part in _partitions_of_blocks(policy)]
    assert chain == [([0, 0, 1, 2, 3, 4], "2"), ([0, 0, 2, 3, 1, 1], "3")]


def test_unlimited_pairs_separate_blocks_with_their_own_epsilons() -> None:
    """Blocks are numbered by their first value, also if the smallest epsilon is in a later one."""
    epsilons = {0: "1.5", 1: "0.7", 2: "1.1"}
    group = [0, 1, 0, 2, 1, 2, 0]
    matrix = {
        (x, y): epsilons[group[x]] if (x + y) % 3 else "2"
        for x, y in itertools.permutations(range(7), 2)
        if group[x] == group[y]
    }
    policy = sf.Pairwise(sf.Domain.range(7), matrix)
    blocks = inner_approximations(policy)[0]
    assert isinstance(blocks, sf.Blocks)
    assert blocks.across.is_infinite
    assert blocks.block_of.tolist() == group
    assert [min(e for (x, _), e in matrix.items() if group[x] == g) for g in range(3)] == list(
        map(str, blocks.epsilons)
    )
    plan = sf.plan(policy, 1, max_seconds=0)
    assert plan.best.risk < plan.classical.risk / 2


def test_unprotected_values_are_used() -> None:
    policy = random_policy(80, 1, unprotected=2)
    (high_low,) = inner_approximations(policy)
    assert isinstance(high_low, sf.HighLow)
    assert high_low.is_sensitive.sum() == 78
    assert high_low.epsilon == policy.least[0]
    assert in_words(high_low) == "epsilon 0.5 for 78 sensitive values of 80"
    plan = sf.plan(policy, 1, max_seconds=0)
    assert plan["high-low-cyclic"].risk < 0.98 * plan.classical.risk


@pytest.mark.parametrize(
    "policy",
    [
        sf.Uniform(sf.Domain.range(5), 1),
        sf.HighLow(sf.Domain.range(5), [1, 2], 1),
        sf.Blocks(sf.Domain.range(5), [0, 0, 1, 1, 1], [1, 2]),
        sf.Blocks(sf.Domain.range(6), [0, 0, 1, 1, 2, 2], 1, across=2),
        sf.Pairwise(sf.Domain.range(3), [[0, 0, 1], [0, 0, 1], [1, 1, 0]]),
        sf.Pairwise(sf.Domain.range(2), [[0, 1], [2, 0]]),
        sf.Prior(sf.Domain.range(3), ["1/2", "1/3", "1/6"], 1),
        sf.Metric(sf.Domain.range(6), "absolute", 1),
    ],
    ids=lambda policy: policy.kind,
)
def test_policies_whose_own_mechanisms_are_as_good(policy: sf.Policy) -> None:
    assert inner_approximations(policy) == ()


def test_no_policy_is_tried_after_the_deadline() -> None:
    policy = POLICIES["clustered"]
    assert inner_approximations(policy)
    assert inner_approximations(policy, Deadline(0)) == ()
    assert outer_bound(policy, Deadline(0)) is None


@pytest.mark.parametrize("name", POLICIES)
def test_an_outer_bound_is_implied_and_below_every_mechanism(name: str) -> None:
    policy = POLICIES[name]
    result = outer_bound(policy)
    assert result is not None
    bound, weaker = result
    assert sf.implies(policy, weaker)
    assert 0 < bound <= min(row.risk for row in sf.plan(policy, 1, max_seconds=0))
    assert outer_bound(policy, least=bound) == result
    assert outer_bound(policy, least=1.01 * bound) is None


@pytest.mark.parametrize("seed", range(3))
def test_an_outer_bound_is_below_the_optimum_of_a_search(seed: int) -> None:
    policy = random_policy(4, seed)
    result = outer_bound(policy)
    assert result is not None
    assert result[0] <= sf.optimal(policy, "estimation").value


def test_outer_bounds_of_other_kinds_of_policies() -> None:
    prior = sf.Prior(sf.Domain.range(3), ["1/2", "1/3", "1/6"], 1)
    assert outer_bound(prior) == (least_risk(sf.Uniform(prior.domain, 2)), sf.Uniform(prior.domain, 2))
    pairs = sf.Domain.product(S=["s", "t"], U=["u", "v"])
    secret = sf.Secret(pairs, "S", 1, sf.Anything())
    assert inner_approximations(secret) == ()
    result = outer_bound(secret)
    assert result is not None
    assert sf.implies(secret, result[1])
    same = sf.Pairwise(sf.Domain.range(4), [[0, 0, 1, 2], [0, 0, 1, 2], [1, 1, 0, 1], [2, 2, 1, 0]])
    result = outer_bound(same)
    assert result is not None
    assert np.isinf(result[0])  # no report distinguishes the first two values
    assert sf.implies(same, result[1])
    known = sf.Secret(pairs, "S", 1, sf.Known([["1/4", "1/4"], ["1/4", "1/4"]]))
    assert outer_bound(known) is None


def test_a_table_by_levels() -> None:
    """Three levels and an unprotected value, against one level for all."""
    policy = three_levels(60)
    plan = sf.plan(policy, 1, max_seconds=0)
    assert plan.best.name == "levels"
    assert plan.best.risk < plan.classical.risk / 2
    mechanism = plan.best.mechanism
    assert sf.audit(mechanism, policy).holds
    # The last output reveals the unprotected value; rounding leaves other values a share of 2^-20.
    matrix = mechanism.matrix()
    assert matrix[-1, -1] > 0.1
    assert matrix[:-1, -1].max() < 1e-6
    # In the other outputs, likelihoods are nearly as large as the levels permit.
    ratios = matrix[:-1, :-1] / matrix[:-1, :-1].min(axis=0)
    assert ratios.max(axis=1) == pytest.approx(np.exp(np.resize([0.5, 1, 3, 3], 59)), rel=0.08)


def test_a_table_by_levels_is_offered_only_if_levels_differ() -> None:
    same = pairwise(np.full((40, 40), 0.8) + np.eye(40, k=1))
    assert gain_of_levels(same) == 1
    assert "levels" not in candidates(same).by_name
    assert levels_table(same).risk(1) < 1.2 * uniform_least_risk(40, "0.8")
    zero = sf.Pairwise(sf.Domain.range(3), [[0, 0, 1], [1, 0, 1], [1, 2, 0]])
    assert gain_of_levels(zero) == 0


@pytest.mark.parametrize("name", POLICIES)
def test_warm_rays_lie_in_the_cone_and_identify_all_values(name: str) -> None:
    policy = POLICIES[name]
    rays = warm_rays(policy, 60)
    assert len(rays) <= 60
    assert (rays.max(axis=1) == 1).all()
    assert np.linalg.matrix_rank(rays) == len(policy.domain)
    assert isinstance(policy, (sf.Pairwise, sf.Blocks, sf.Metric))
    limits = np.exp(policy.epsilon_matrix().floats)
    with np.errstate(invalid="ignore"):  # an infinite limit of a likelihood 0 is no limit
        largest = np.where(np.isinf(limits), np.inf, limits * rays[:, None, :])
    assert (rays[:, :, None] <= largest * (1 + 1e-9)).all()


def test_warm_rays_of_other_policies() -> None:
    assert warm_rays(sf.Prior(sf.Domain.range(4), ["1/10", "2/10", "3/10", "4/10"], 1), 30).shape[1] == 4
    assert warm_rays(sf.Uniform(sf.Domain.range(600), 1), 30).shape == (0, 600)
