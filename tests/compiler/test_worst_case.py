"""The worst case over all distributions: bounds at any size, against the cone program and known mechanisms."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.compiler import bounds
from sfumato.compiler.solvers.orbits import best_orbits
from sfumato.errors import InvalidInput
from sfumato.mechanisms import BlockMechanism, HighLowMixedSubsets, HighLowSubset, Parts

R = sf.Domain.range

#: Largest distance of a recommended mechanism from the bound.
NEAR = 1.001


def blocks_of(sizes: list[int]) -> list[int]:
    return np.repeat(range(len(sizes)), sizes).tolist()


@pytest.mark.parametrize(
    ("sensitive", "harmless", "epsilon"),
    [(4, 4, "1"), (3, 3, "1"), (2, 5, "1"), (3, 2, "1.25"), (1, 3, "1"), (5, 3, "0.5"), (4, 6, "2"), (6, 2, "0.2")],
)
def test_sensitive_values_agree_with_the_cone_program(sensitive: int, harmless: int, epsilon: str) -> None:
    """The cone program over all rays knows nothing about symmetry."""
    policy = sf.HighLow(R(sensitive + harmless), range(sensitive), epsilon)
    optimum = sf.optimal(policy, "worst-estimation")
    bound = bounds.high_low_worst_risk(sensitive, harmless, epsilon)
    assert bound == pytest.approx(optimum.value, rel=1e-6)
    assert bound <= optimum.value * (1 + 1e-9)
    assert bounds.least_worst_risk(policy) == bound


@pytest.mark.parametrize(
    ("sizes", "epsilon"), [([3, 3], 1), ([2, 4], 1), ([1, 2, 3], [1, "0.5", 2]), ([4, 1, 1], "0.3")]
)
def test_revealed_blocks_agree_with_the_cone_program(sizes: list[int], epsilon: Any) -> None:
    policy = sf.Blocks(R(sum(sizes)), blocks_of(sizes), epsilon)
    optimum = sf.optimal(policy, "worst-estimation")
    assert bounds.least_worst_risk(policy) == pytest.approx(optimum.value, rel=1e-6)


@pytest.mark.parametrize(
    ("sizes", "epsilon"),
    [
        ([5, 5], 1),
        ([2, 7, 3], 1),
        ([1, 4, 9], [1, "0.5", 2]),
        ([50, 3], [2, "0.2"]),
        ([10, 20, 30, 1], ["0.3", 1, 2, 1]),
        ([500, 500, 1000], 1),
    ],
)
def test_subsets_within_revealed_blocks_attain_the_bound(sizes: list[int], epsilon: Any) -> None:
    policy = sf.Blocks(R(sum(sizes)), blocks_of(sizes), epsilon)
    bound = bounds.least_worst_risk(policy)
    assert BlockMechanism.for_policy(policy, "subset").worst_risk(1) == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize(("count", "size", "across"), [(3, 4, 2), (2, 3, 3), (30, 100, 2)])
def test_blocks_of_one_size_are_worst_at_equal_shares(count: int, size: int, across: int) -> None:
    policy = sf.Blocks(R(count * size), blocks_of([size] * count), 1, across)
    plan = sf.plan(policy, 1, utility="worst-estimation", max_bits=None)
    assert plan.best.worst == pytest.approx(plan.best.risk, rel=1e-9)
    assert plan.best.bound == bounds.least_worst_risk(policy)
    assert plan.best.ratio is not None
    assert plan.best.ratio <= 1.02  # the price of short reports about blocks at two levels


def test_one_epsilon_is_worst_at_equal_shares() -> None:
    policy = sf.Uniform(R(3000), 1)
    assert bounds.least_worst_risk(policy) == bounds.least_risk(policy)
    assert bounds.high_low_worst_risk(3000, 0, 1) == bounds.least_risk(policy)


def test_two_sizes_attain_the_best_orbits_at_equal_shares() -> None:
    """The orbit program at the uniform distribution mixes any number of sizes."""
    for sensitive, harmless, epsilon in ((3, 50, "1.25"), (5, 4, "1"), (8, 100, "2")):
        policy = sf.HighLow(R(sensitive + harmless), range(sensitive), epsilon)
        share = f"{sensitive}/{sensitive + harmless}"
        design = best_orbits(policy)
        assert design is not None
        mixed = HighLowMixedSubsets(policy.domain, range(sensitive), epsilon, share=share)
        assert mixed.risk(1) == pytest.approx(design.value, rel=1e-6)


def test_the_bound_needs_at_least_one_sensitive_value() -> None:
    for sensitive, harmless in ((0, 3), (3, -1)):
        with pytest.raises(InvalidInput, match="sensitive must lie between 1 and"):
            bounds.high_low_worst_risk(sensitive, harmless, 1)
    assert bounds.least_worst_risk(sf.Blocks(R(5), [0, 0, 0, 1, 1], 1, 2)) is None


# -- plans -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("sensitive", "harmless"), [*itertools.product((2, 5, 8, 40, 2000), (1, 4000))])
def test_a_plan_recommends_the_least_worst_case_without_a_search(sensitive: int, harmless: int) -> None:
    policy = sf.HighLow(R(sensitive + harmless), range(sensitive), 2)
    rounds: list[sf.Progress] = []
    plan = sf.plan(policy, 100, utility="worst-estimation", max_bits=None, progress=rounds.append)
    best = plan.best
    assert not rounds
    assert best.bound == pytest.approx(bounds.high_low_worst_risk(sensitive, harmless, 2) / 100)
    assert best.value == best.worst
    assert best.ratio is not None
    assert best.ratio <= 1 + 1e-6
    assert isinstance(best.mechanism, (HighLowMixedSubsets, Parts))
    assert sf.design(policy, utility="worst-estimation", max_bits=None) == best.mechanism


def test_a_mechanism_of_two_sizes_is_recommended_and_obeys_the_policy() -> None:
    policy = sf.HighLow(R(2004), range(4), 1)
    plan = sf.plan(policy, 1, utility="worst-estimation")
    assert plan.best.name == "high-low-mixed"
    one_size = min(HighLowSubset(policy.domain, range(4), 1, d).worst_risk(1) for d in range(1, 4))
    assert one_size > 1.07 * plan.best.worst
    assert "lower bound" in plan.reason
    assert sf.audit(plan.best.mechanism, policy).holds
    assert not sf.audit(plan.best.mechanism, sf.HighLow(policy.domain, range(4), "0.9999")).holds


def test_two_sizes_are_compared_for_equally_likely_values_if_they_gain() -> None:
    policy = sf.HighLow(R(100), range(3), "1.5")
    plan = sf.plan(policy, 1, max_bits=None)
    assert plan.best.name == "high-low-mixed"
    one_size = min(HighLowSubset(policy.domain, range(3), "1.5", d).risk(1) for d in range(1, 3))
    assert one_size > 1.025 * plan.best.risk
    assert plan.best.ratio == pytest.approx(1, abs=1e-6)
    assert sf.audit(plan.best.mechanism, policy).holds
    assert not sf.audit(plan.best.mechanism, sf.HighLow(policy.domain, range(3), "1.4999")).holds
    many = sf.HighLow(R(50), range(25), 1)
    assert "high-low-mixed" not in {row.name for row in sf.plan(many, 1)}
    named = sf.design(many, mechanism="high-low-mixed")
    assert isinstance(named, HighLowMixedSubsets)
    assert named.share == Fraction(1, 2)


def test_thousands_of_values_in_unequal_blocks() -> None:
    policy = sf.Blocks(R(3000), blocks_of([500, 1500, 1000]), [1, "0.5", 2])
    best = sf.plan(policy, 1, utility="worst-estimation", max_bits=None).best
    assert best.ratio is not None
    assert best.ratio <= NEAR


def test_a_short_report_still_leads_to_a_search() -> None:
    """With too few bits for sets, no known mechanism is near the bound, and the search runs as for other policies."""
    policy = sf.HighLow(R(6), range(4), 1)
    rounds: list[sf.Progress] = []
    plan = sf.plan(policy, 1, utility="worst-estimation", max_bits=4, progress=rounds.append)
    assert rounds
    assert plan.best.name == "optimal"
    assert plan.best.bound == bounds.high_low_worst_risk(4, 2, 1)
