"""The structure of a policy: found in any order of the values, equal as a cone, and cheap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core.exact import INFINITE, Epsilon
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.high_low import HighLow
from sfumato.policy.implication import implies
from sfumato.policy.pairwise import Pairwise, PairwisePolicy
from sfumato.policy.structure import structure_of
from sfumato.policy.uniform import Uniform

R = sf.Domain.range
FINITE = ["0", "0.1", "1", "2", "3", "ln 2"]


def permuted(policy: PairwisePolicy, order: list[int]) -> Pairwise:
    """The levels of the values in another order, over 0 … k-1."""
    epsilon = policy.epsilon_between
    return Pairwise(policy.domain, [[epsilon(x, y) for y in order] for x in order])


def check_equal(first: Policy, second: Policy) -> None:
    assert implies(first, second)
    assert implies(second, first)


@st.composite
def structured(draw: st.DrawFn) -> tuple[PairwisePolicy, Pairwise]:
    """A structured policy of at least two values, and a dense one with its levels in a random order."""
    k = draw(st.integers(2, 7))
    kind = draw(st.sampled_from([Uniform, HighLow, Blocks]))
    levels = st.sampled_from(FINITE)
    policy: PairwisePolicy
    if kind is Uniform:
        policy = Uniform(R(k), draw(st.sampled_from([*FINITE, "inf"])))
    elif kind is HighLow:
        policy = HighLow(R(k), draw(st.sets(st.integers(0, k - 1), min_size=1)), draw(levels))
    else:
        block_of = draw(st.lists(st.integers(0, 3), min_size=k, max_size=k))
        epsilons = [draw(levels) for _ in set(block_of)]
        policy = Blocks(R(k), block_of, epsilons, draw(st.sampled_from([*FINITE, "inf"])))
    return policy, permuted(policy, draw(st.permutations(range(k))))


def right_kind(policy: PairwisePolicy) -> type[Policy]:
    """The simplest kind, by going through the effective levels one by one."""
    k = len(policy.domain)
    rows = [{policy.effective_epsilon(x, y) for y in range(k) if y != x} for x in range(k)]
    everything = set().union(*rows)
    if len(everything) == 1:
        return Uniform
    if all(len(row) == 1 for row in rows) and len(everything) == 2 and INFINITE in everything:
        return HighLow
    return Blocks


@given(structured())
def test_a_structure_is_found_in_a_matrix_in_any_order(case: tuple[PairwisePolicy, Pairwise]) -> None:
    original, matrix = case
    found = structure_of(matrix)
    assert type(found) is right_kind(original)
    check_equal(found, matrix)
    itself = structure_of(original)
    assert type(itself) is right_kind(original)
    check_equal(itself, original)


@given(structured(), st.data())
def test_a_structure_is_found_behind_levels_that_do_not_bind(
    case: tuple[PairwisePolicy, Pairwise], data: st.DataObject
) -> None:
    original, matrix = case
    k = len(matrix.domain)
    levels = [[matrix.effective_epsilon(x, y) for y in range(k)] for x in range(k)]
    x, y = data.draw(st.integers(0, k - 1)), data.draw(st.integers(0, k - 1))
    others = [levels[x][z] + levels[z][y] for z in range(k) if z not in (x, y)]
    if x == y or not others or min(others) != levels[x][y]:
        return
    levels[x][y] = levels[x][y] + Epsilon(1)  # a path is shorter
    padded = Pairwise(matrix.domain, levels)
    assert type(structure_of(padded)) is right_kind(original)
    check_equal(structure_of(padded), padded)


@given(st.integers(2, 6), st.data())
def test_what_has_no_structure_stays_as_it_is(k: int, data: st.DataObject) -> None:
    entry = st.sampled_from(["0.1", "1", "2", "3", "inf"])
    policy = Pairwise(R(k), [[0 if x == y else data.draw(entry) for y in range(k)] for x in range(k)])
    found = structure_of(policy)
    check_equal(found, policy)
    if found is not policy:
        assert isinstance(found, (Uniform, HighLow, Blocks))
        assert structure_of(found) is found


def test_an_unstructured_policy_is_returned_itself() -> None:
    for policy in (
        Pairwise(R(3), [[0, 1, 2], [1, 0, 3], [2, 3, 0]]),
        Pairwise(R(3), [[0, 1, 1], ["0.5", 0, "0.5"], ["inf", "inf", 0]]),
        Pairwise(R(4), [[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, "1.5", 0]]),
        Pairwise(R(4), [[0, 1, 1, 2], [1, 0, 2, 2], [1, 2, 0, 2], [2, 2, 2, 0]]),
        Pairwise(R(3), [[0, "ln 2", 1], ["ln 2", 0, "ln 3"], [1, "ln 3", 0]]),
        sf.Metric(R(5), "absolute", 1),
        sf.Prior(R(2), ["1/3", "2/3"], 1),
    ):
        assert structure_of(policy) is policy


@pytest.mark.parametrize(
    ("policy", "simplest"),
    [
        (Pairwise(R(3), 1 - np.eye(3, dtype=int)), Uniform(R(3), 1)),
        (sf.Metric(R(4), "discrete", "ln 3"), Uniform(R(4), "ln 3")),
        (HighLow(R(4), range(4), 1), Uniform(R(4), 1)),
        (HighLow(R(4), [1], "inf"), Uniform(R(4), "inf")),
        (Blocks(R(4), [0, 0, 0, 0], 1, across=5), Uniform(R(4), 1)),
        (Blocks(R(4), range(4), 1, across=2), Uniform(R(4), 2)),
        (Blocks(R(4), [0, 0, 1, 1], 2, across=2), Uniform(R(4), 2)),
        (Blocks(R(4), [0, 0, 1, 2], [2, 7, 9], across=2), Uniform(R(4), 2)),
        (Blocks(R(4), [0, 0, 1, 1], 3, across=0), Uniform(R(4), 0)),
        (Pairwise(R(2), {(0, 1): 1}), HighLow(R(2), [0], 1)),
        (Pairwise(R(3), {}), Uniform(R(3), "inf")),
        (Pairwise(R(1), [[0]]), Uniform(R(1), "inf")),
        (Pairwise(R(3), {(0, 1): 1, (1, 0): 1}), Blocks(R(3), [0, 0, 1], 1)),
        (sf.Metric(R(4), [[0, 1, 3, 3], [1, 0, 3, 3], [3, 3, 0, 2], [3, 3, 2, 0]], 1), Blocks(R(4), "aabb", [1, 2], 3)),
        (sf.Metric(R(3), [[0, 2, 1], [2, 0, 1], [1, 1, 0]], 1), Blocks(R(3), "aab", 2, 1)),
    ],
)
def test_known_cases(policy: Policy, simplest: Policy) -> None:
    assert structure_of(policy) == simplest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "k"),
    [
        *(("uniform", 1500), ("high-low", 1500), ("blocks", 2048), ("two levels", 1500), ("none", 1500)),
        pytest.param("blocks", 4096, marks=pytest.mark.soak),
    ],
)
def test_many_values_in_a_matrix(kind: str, k: int) -> None:
    group = np.random.default_rng(1).integers(0, 40, k)
    matrices: dict[str, Any] = {
        "uniform": np.ones((k, k)),
        "high-low": np.where((group < 9)[:, None], 1.0, np.inf) * np.ones(k),
        "blocks": np.where(group[:, None] == group, 1.0 + group % 3, np.inf),
        "two levels": np.where(group[:, None] == group, 1.0, 2.0),
        "none": 1.0 + (group[:, None] + group) % 5,
    }
    matrix = matrices[kind]
    np.fill_diagonal(matrix, 0)
    policy = Pairwise(R(k), matrix)
    found = structure_of(policy)
    kinds: dict[str, type[Policy]] = {
        "uniform": Uniform,
        "high-low": HighLow,
        "blocks": Blocks,
        "two levels": Blocks,
        "none": Pairwise,
    }
    assert type(found) is kinds[kind]
    if isinstance(found, Blocks):
        assert len(found.epsilons) == len(set(group.tolist()))
    if isinstance(found, HighLow):
        assert np.array_equal(found.is_sensitive, group < 9)


@pytest.mark.slow
def test_large_structured_policies_are_not_written_out() -> None:
    domain = R(10**6)
    for policy in (
        Uniform(domain, 1),
        HighLow(domain, [5, 7], 1),
        Blocks(domain, np.arange(10**6) // 10, 1),
        Blocks(domain, np.arange(10**6) // 10, 1, across=3),
    ):
        assert structure_of(policy) is policy
