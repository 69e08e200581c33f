"""Designs at ε = 0 and near it: rounding keeps equations exactly, and costs next to nothing of what was found."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sfumato as sf
from sfumato._core.exact import integer_kernel
from sfumato.mechanisms.table.mechanism import TableMechanism

PAIR = sf.Domain.product(S=["a", "b"], U=["x", "y"])
JOINT = [["0.3", "0.2"], ["0.1", "0.4"]]


def shortfall(optimum: sf.Optimum, policy: sf.Policy) -> float:
    """The gap of a mechanism that keeps the policy exactly."""
    assert sf.audit(optimum.mechanism, policy).holds
    better = optimum.value <= optimum.bound if optimum.smaller_is_better else optimum.value >= optimum.bound
    assert not better or optimum.gap < 1e-7
    return optimum.gap


@pytest.mark.parametrize("epsilon", ["0", "1e-300", "1e-12", "1e-8", "1e-6"])
def test_a_known_secret_reveals_all_that_is_independent_of_it(epsilon: str) -> None:
    policy = sf.Secret(PAIR, "S", epsilon, sf.Known(JOINT))
    optimum = sf.optimal(policy, "mutual-information")
    assert optimum.value == pytest.approx(0.760975, abs=1e-6)
    assert shortfall(optimum, policy) < 1e-6
    assert optimum.status == "optimal"


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    counts=st.tuples(st.integers(2, 3), st.integers(2, 3)).flatmap(
        lambda shape: st.lists(
            st.lists(st.integers(0, 20), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
        ).filter(lambda rows: any(map(any, rows)))
    ),
    seed=st.integers(0, 1000),
    epsilon=st.sampled_from(["0", "0", "1e-10"]),
)
def test_random_known_secrets_of_level_zero_lose_nothing_to_rounding(
    counts: list[list[int]], seed: int, epsilon: str
) -> None:
    domain = sf.Domain.product(S=range(len(counts)), U=range(len(counts[0])))
    total = sum(map(sum, counts))
    policy = sf.Secret(domain, "S", epsilon, sf.Known([[Fraction(n, total) for n in row] for row in counts]))
    generator = np.random.default_rng(seed)
    for utility in (
        "mutual-information",
        sf.SquaredError(generator.integers(0, 10, len(domain)).tolist()),
        sf.ExpectedLoss(generator.integers(0, 10, (len(domain), 3))),
    ):
        optimum = sf.optimal(policy, utility)
        assert shortfall(optimum, policy) < 1e-6 or optimum.value == pytest.approx(optimum.bound, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "epsilon"), [*itertools.product([3, 5], ["0", "1e-12", "1e-9", "1e-7", "1e-5"]), (11, "0"), (11, "1e-7")]
)
def test_two_values_that_are_nearly_one_do_not_spoil_the_others(k: int, epsilon: str) -> None:
    levels = [[0 if x == z else epsilon if {x, z} == {0, 1} else "1.5" for z in range(k)] for x in range(k)]
    policy = sf.Pairwise(sf.Domain.range(k), levels)
    optimum = sf.optimal(policy, "mmse")
    assert shortfall(optimum, policy) < 1e-4


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", ["1e-14", "1e-10", "1e-7"])
def test_what_next_to_nothing_tells_has_a_bound_as_small(epsilon: str, k: int) -> None:
    policy = sf.Uniform(sf.Domain.range(k), epsilon)
    optimum = sf.optimal(policy, "mutual-information")
    assert optimum.bound <= float(epsilon) ** 2
    assert optimum.bound - optimum.value <= 1e-3 * optimum.bound
    loss = sf.optimal(policy, sf.ExpectedLoss(1 - np.eye(k)))
    assert loss.bound == pytest.approx(1 - 1 / k, rel=1e-6)


def test_a_mechanism_is_called_optimal_only_next_to_its_bound() -> None:
    # Equations between numbers of 17 digits have few solutions among multiples of 2^-62.
    joint = (np.array([[3.0, 4.0], [5.0, 1.0]]) / 13).tolist()
    optimum = sf.optimal(sf.Secret(PAIR, "S", 0, sf.Known(joint)), "mutual-information")
    assert (optimum.status == "optimal") == (optimum.gap <= 1e-4)
    assert optimum.gap < 0.05


def test_the_rules_at_level_zero_are_equations() -> None:
    assert sf.Secret(PAIR, "S", "0.1", sf.Known(JOINT)).equations() == []
    (row,) = sf.Secret(PAIR, "S", 0, sf.Known(JOINT)).equations()
    assert [abs(entry) for entry in row] == [Fraction(3, 5), Fraction(2, 5), Fraction(1, 5), Fraction(4, 5)]
    for policy in (
        sf.Prior(sf.Domain.range(3), ["0.5", "0.3", "0.2"], 0, side="upper"),
        sf.Secret(PAIR, "S", 0, sf.Anything()),
        sf.Secret(PAIR, "S", 0, sf.AtLeast([["1/4", "1/4"], ["0", "1/2"]])),
        sf.Secret(PAIR, "S", 0, sf.ChiSquare([[10, 20], [30, 5]])),
    ):
        assert integer_kernel(policy.equations()) in ([[1] * len(policy.domain)], [[-1] * len(policy.domain)])


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.lists(st.fractions(-9, 9, max_denominator=7), min_size=4, max_size=4), min_size=1, max_size=4))
def test_the_integer_kernel_holds_every_integer_solution(rows: list[list[Fraction]]) -> None:
    basis = integer_kernel(rows)
    assert all(sum(a * b for a, b in zip(row, vector, strict=True)) == 0 for row in rows for vector in basis)
    small = np.array(list(itertools.product(range(-4, 5), repeat=4)))
    solutions = small[np.abs(small @ np.array(rows, dtype=float).T).max(axis=1) < 1e-9]
    coordinates = solutions @ np.linalg.pinv(np.array(basis, dtype=float)) if basis else np.zeros((len(solutions), 0))
    whole = np.rint(coordinates)
    assert np.abs(coordinates - whole).max(initial=0.0) < 1e-6
    assert np.array_equal(whole @ np.array(basis, dtype=float).reshape(-1, 4), solutions)


def test_a_matrix_that_solves_the_equations_is_kept_as_it_is() -> None:
    policy = sf.Secret(PAIR, "S", 0, sf.Known([["1/4", "1/4"], ["3/8", "1/8"]]))
    matrix = [["1/2", "1/2"], ["1/4", "3/4"], ["3/8", "5/8"], ["3/8", "5/8"]]
    table = TableMechanism.from_matrix(PAIR, matrix, policy=policy)
    assert table.matrix().tolist() == [[float(Fraction(entry)) for entry in row] for row in matrix]


def test_what_binds_one_of_two_equal_values_binds_the_other() -> None:
    # T_b ≤ T_a in every column, so they are equal, and T_a ≤ e^0.5·T_c as T_b is.
    policy = sf.Pairwise(sf.Domain(["a", "b", "c"]), [[0, 3, 3], [0, 0, "0.5"], [3, 3, 0]])
    same = sf.Pairwise(sf.Domain(["a", "b", "c"]), [[0, 0, "0.5"], [0, 0, "0.5"], [3, 3, 0]])
    for utility in ("mutual-information", sf.SquaredError([1, 2, 4]), sf.ExpectedLoss(1 - np.eye(3))):
        optimum = sf.optimal(policy, utility)
        assert shortfall(optimum, policy) < 1e-6
        assert optimum.value == pytest.approx(sf.optimal(same, utility).value, rel=1e-6)


@pytest.mark.slow
def test_merged_values_are_bound_by_their_strictest_member_also_above_ten_values() -> None:
    """Two of 14 values are one by a one-way level of 0; the other way they have 6."""
    size = 14
    levels = [["2"] * size for _ in range(size)]
    for x in range(size):
        levels[x][x] = "0"
    levels[0][1], levels[1][0] = "0", "6"
    policy = sf.Pairwise(sf.Domain.range(size), levels)
    optimum = sf.optimal(policy, "mutual-information", max_seconds=6)
    assert sf.audit(optimum.mechanism, policy).holds
    few = sf.optimal(sf.Uniform(sf.Domain.range(8), 2), "mutual-information")
    assert optimum.value > few.value / 2 > 0
