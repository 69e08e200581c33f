"""Policies that are sums over coordinates, and the products of mechanisms that are designed for them."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.compiler.products import coordinate_policies, product_mechanism
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.mechanisms.table.metric_exponential import best_exponential
from sfumato.policy import PairwisePolicy

R = sf.Domain.range
Levels = list[list[sf.Epsilon]]


def steps(*sizes: int, epsilon: Any = 1) -> sf.Metric:
    """The L1 distance on a grid."""
    cells = sf.Domain.product(**{f"axis{i}": R(size) for i, size in enumerate(sizes)})
    return sf.Metric(cells, lambda a, b: sum(abs(x - y) for x, y in zip(a, b, strict=True)), epsilon)


def random_levels(generator: random.Random, size: int, choices: list[str]) -> Levels:
    return [[sf.Epsilon(0 if x == y else generator.choice(choices)) for y in range(size)] for x in range(size)]


def sums(*parts: Levels) -> Levels:
    """The levels of tuples of values, as sums of the levels of their coordinates."""
    values = list(itertools.product(*(range(len(part)) for part in parts)))
    zero = sf.Epsilon(0)
    return [
        [sum((part[a][b] for part, a, b in zip(parts, x, other, strict=True)), zero) for other in values]
        for x in values
    ]


def levels_of(policy: PairwisePolicy) -> Levels:
    size = len(policy.domain)
    return [[policy.effective_epsilon(x, other) for other in range(size)] for x in range(size)]


def parts_of(policy: sf.Policy, shape: Any = None) -> tuple[PairwisePolicy, ...]:
    parts = coordinate_policies(policy, shape)
    assert parts is not None
    return parts


# -- sums over coordinates ---------------------------------------------------------------------------------


def test_the_l1_distance_is_a_sum_of_lines() -> None:
    rows, columns = parts_of(steps(3, 5, epsilon="1/3"))
    assert isinstance(rows, sf.Metric)
    for line, size in ((rows, 3), (columns, 5)):
        assert levels_of(line) == levels_of(sf.Metric(R(size), "absolute", "1/3"))


def test_the_parts_have_the_labels_of_the_factors() -> None:
    people = sf.Domain.product(sex=["f", "m"], age=["young", "old"])
    policy = sf.Metric(people, lambda a, b: 2 * (a[0] != b[0]) + (a[1] != b[1]), 1)
    assert [part.domain for part in parts_of(policy)] == [sf.Domain(["f", "m"]), sf.Domain(["young", "old"])]
    grid = sf.Domain.grid(latitude=(0, 1), longitude=(0, 1), rows=2, columns=3)
    assert [part.domain for part in parts_of(sf.Metric(grid, steps(2, 3).parameters()["distance"], 1))] == [R(2), R(3)]


@pytest.mark.parametrize("choices", [["1", "2", "5/2", "inf"], ["ln 2", "ln 4", "0"], ["1", "ln 2", "inf", "1+ln 2"]])
def test_sums_are_recognized_exactly(choices: list[str]) -> None:
    generator, broken = random.Random(repr(choices)), 0
    for sizes in ((2, 3), (3, 2), (2, 2, 2)):
        for _ in range(4):
            parts = [random_levels(generator, size, choices) for size in sizes]
            whole = sums(*parts)
            domain = R(math.prod(sizes))
            policy = sf.Pairwise(domain, whole)
            again = parts_of(policy, sizes)
            # Parts are declared or effective levels; both allow the same mechanisms.
            expected = [sf.Pairwise(R(size), part) for size, part in zip(sizes, parts, strict=True)]
            assert list(map(levels_of, again)) == list(map(levels_of, expected))
            broken += is_broken(policy, whole, sizes)
    assert broken


def is_broken(policy: PairwisePolicy, whole: Levels, sizes: tuple[int, ...]) -> bool:
    """Whether some level matters: the sum is not recognized if it is higher by 10^-12."""
    for x, other in itertools.permutations(range(len(whole)), 2):
        if whole[x][other].is_infinite:
            continue
        levels = [list(row) for row in whole]
        levels[x][other] = whole[x][other] + sf.Epsilon("1/1000000000000")
        broken = sf.Pairwise(policy.domain, levels)
        if levels_of(broken) != levels_of(policy):
            assert len(coordinate_policies(broken, sizes) or ()) < len(sizes)
            return True
    return False


def test_neighbours_of_a_grid_imply_the_sums() -> None:
    cells = list(itertools.product(range(3), range(4)))
    near = {(a, b): 1 for a in cells for b in cells if sum(abs(x - y) for x, y in zip(a, b, strict=True)) == 1}
    policy = sf.Pairwise(sf.Domain.product(row=R(3), column=R(4)), near)
    assert policy.epsilon_between(0, 2).is_infinite
    assert list(map(levels_of, parts_of(policy))) == list(map(levels_of, parts_of(steps(3, 4))))


def test_coordinates_that_do_not_add_up_stay_together() -> None:
    king = [[max(abs(a - c), abs(b - d)) for c, d in itertools.product(range(2), range(2))]
            for a, b in itertools.product(range(2), range(2))]  # fmt: skip
    levels = [[sf.Epsilon(entry) for entry in row] for row in king]
    line = [[sf.Epsilon(abs(x - y)) for y in range(3)] for x in range(3)]
    for parts, sizes in (((levels, line), [4, 3]), ((line, levels), [3, 4])):
        shape = (2, 2, 3) if sizes == [4, 3] else (3, 2, 2)
        found = parts_of(sf.Pairwise(R(12), sums(*parts)), shape)
        assert [len(part.domain) for part in found] == sizes
        assert list(map(levels_of, found)) == list(map(levels_of, map(sf.Pairwise, map(R, sizes), parts)))
    assert coordinate_policies(sf.Pairwise(R(4), king), (2, 2)) is None


def test_other_policies_are_not_sums() -> None:
    cells = sf.Domain.product(row=R(2), column=R(3))
    assert coordinate_policies(sf.Uniform(cells, 1)) is None
    assert coordinate_policies(sf.Prior(cells, ["1/6"] * 6, 1)) is None
    assert coordinate_policies(sf.Metric(R(6), "absolute", 1)) is None
    assert coordinate_policies(sf.Uniform(sf.Domain.product(row=R(100), column=R(100)), 1)) is None
    # A coordinate with one value says nothing.
    assert coordinate_policies(sf.Metric(R(6), "absolute", 1), (1, 6)) is None
    assert [len(part.domain) for part in parts_of(steps(2, 3), (2, 1, 3))] == [2, 3]


@pytest.mark.parametrize("shape", [(), (2, 2), (-2, -3), (0, 6)])
def test_a_shape_of_another_size_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="shape must be sizes whose product is 6"):
        coordinate_policies(sf.Uniform(R(6), 1), shape)


# -- designs -----------------------------------------------------------------------------------------------


def test_the_product_has_the_factors_of_least_risk() -> None:
    policy = steps(3, 3, epsilon="1/2")
    mechanism = product_mechanism(policy, Deadline(30))
    assert mechanism is not None
    best = sf.optimal(sf.Metric(R(3), "absolute", "1/2"), max_seconds=30)
    assert best.status == "optimal"
    assert mechanism.risk(1) == pytest.approx((best.bound + 1 / 3) ** 2 - 1 / 9, rel=3e-4)
    line = best_exponential(sf.Metric(R(3), "absolute", "1/2"))
    assert mechanism.risk(1) <= sf.mechanisms.ProductMechanism(policy.domain, [line, line]).risk(1)
    assert mechanism.factors[0] == mechanism.factors[1]
    assert sf.audit(mechanism, policy).holds
    assert not sf.audit(mechanism, steps(3, 3, epsilon="0.4999")).holds


def test_factors_with_closed_forms_need_no_search() -> None:
    cells = sf.Domain.product(sex=["f", "m"], city=R(3), old=[False, True])
    policy = sf.Metric(cells, lambda a, b: 3 * (a[0] != b[0]) + 2 * (a[1] != b[1]) + (a[2] != b[2]), "ln 3")
    mechanism = product_mechanism(policy, Deadline(0))
    assert mechanism is not None
    assert [len(factor.domain) for factor in mechanism.factors] == [2, 3, 2]
    assert mechanism.outputs == 12
    certificate = sf.audit(mechanism, policy)
    assert certificate.holds
    assert certificate.worst.excess > -1e-12


def test_a_given_shape_and_other_policies() -> None:
    policy = sf.Pairwise(R(4), [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
    mechanism = product_mechanism(policy, Deadline(5), shape=(2, 2))
    assert mechanism is not None
    assert sf.audit(mechanism, policy).holds
    assert product_mechanism(policy, Deadline(5)) is None
    assert product_mechanism(sf.Uniform(sf.Domain.product(a=R(2), b=R(2)), 1), Deadline(5)) is None


def test_outputs_are_limited() -> None:
    policy = steps(3, 3, epsilon="1/2")
    free, limited = product_mechanism(policy, Deadline(30)), product_mechanism(policy, Deadline(30), max_outputs=9)
    assert free is not None
    assert limited is not None
    assert limited.outputs <= 9 < free.outputs
    assert free.risk(1) < limited.risk(1) < math.inf
    assert sf.audit(limited, policy).holds
    with pytest.raises(NoMechanism, match="needs 9 reports, but at most 8 fit"):
        product_mechanism(policy, Deadline(30), max_outputs=8)


def test_a_policy_without_estimates_has_a_product_of_infinite_risk() -> None:
    policy = sf.Pairwise(R(4), [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    mechanism = product_mechanism(policy, Deadline(5), shape=(2, 2))
    assert mechanism is not None
    assert np.isinf(mechanism.risk(1))
    assert sf.audit(mechanism, policy).holds
