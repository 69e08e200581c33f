"""Orbit designs: the orbits are all there are, their optimum is that of every ray, and known theorems come out."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.compiler import bounds
from sfumato.compiler.solvers.optimization import optimal
from sfumato.compiler.solvers.orbits import OrbitDesign, _NestedBlocks, _Shape, _Subsets, best_orbits
from sfumato.compiler.solvers.slice import Slice
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.high_low.subset import HighLowSubset
from sfumato.mechanisms.nested_subsets.mechanism import NestedSubsets
from sfumato.mechanisms.subset.mechanism import SubsetSelection

Floats = npt.NDArray[np.float64]
R = sf.Domain.range


def found(policy: sf.Policy) -> OrbitDesign:
    design = best_orbits(policy)
    assert design is not None
    assert design.bound <= design.value
    assert design.gap < 1e-6
    assert sum(orbit.weight for orbit in design.orbits) == pytest.approx(1, abs=5e-3)
    return design


def high_low(sensitive: int, harmless: int, epsilon: str) -> sf.HighLow:
    return sf.HighLow(R(sensitive + harmless), range(sensitive), epsilon)


def two_levels(blocks: int, size: int, epsilon: str, across: str) -> sf.Blocks:
    return sf.Blocks(R(blocks * size), [x // size for x in range(blocks * size)], epsilon, across)


def vertices(policy: sf.Policy) -> Floats:
    k = len(policy.domain)
    every = Slice.of(policy, np.full(k, 1 / k)).all_vertices()
    assert every is not None
    return every


def rounded(rows: Floats) -> set[tuple[float, ...]]:
    return {tuple(row) for row in (np.round(rows, 6) + 0.0).tolist()}


# -- the orbits are those of all rays ----------------------------------------------------------------------------


@pytest.mark.parametrize(("sensitive", "harmless"), [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2), (2, 4), (4, 2), (3, 4)])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_orbits_of_sensitive_values_are_those_of_all_rays(sensitive: int, harmless: int, epsilon: str) -> None:
    """What a ray tells by components, from the ray itself: means, their products, and squares within a class."""
    rows = []
    for v in vertices(high_low(sensitive, harmless, epsilon)):
        classes = v[:sensitive], v[sensitive:]
        means = [part.mean() for part in classes]
        lengths = [part.sum() / math.sqrt(len(part)) for part in classes]
        within = [part.var(ddof=1) for part in classes if len(part) > 1]
        rows.append([*means, *np.outer(lengths, lengths).ravel(), *within])
    every = _Subsets(sensitive, harmless, Epsilon(epsilon))._all
    count = len(every.words)
    assert count == sensitive + 1
    flat = np.concatenate([every.means, *(part.reshape(count, -1) for part in every.parts)], axis=1)
    assert rounded(flat) == rounded(np.array(rows))


@pytest.mark.parametrize(("blocks", "size"), [(2, 2), (2, 3), (3, 2), (3, 3), (2, 4), (4, 2)])
@pytest.mark.parametrize(("epsilon", "across"), [("0.5", "2"), ("1", "1.1"), ("1", "3")])
def test_orbits_at_two_levels_are_those_of_all_rays(blocks: int, size: int, epsilon: str, across: str) -> None:
    rows = [
        [size * v.mean(axis=1).var(ddof=1), v.var(axis=1, ddof=1).mean()]
        for v in vertices(two_levels(blocks, size, epsilon, across)).reshape(-1, blocks, size)
    ]
    family = _NestedBlocks(blocks, size, Epsilon(epsilon), Epsilon(across))
    highs, lows = [(0, d) for d in range(1, size + 1)], [(1, d) for d in range(size)]
    sorts = itertools.combinations_with_replacement(highs + lows, blocks)
    extreme = [family._orbit(Counter(sort)) for sort in sorts if 0 < sum(kind for kind, _ in sort) < blocks]
    assert rounded(np.array([[float(part[0, 0, 0]) for part in orbit.parts[1:]] for orbit in extreme])) == rounded(
        np.array(rows)
    )


@given(
    st.integers(2, 4), st.integers(2, 5), st.floats(0.1, 6), st.floats(1.02, 5), st.floats(-6, 6), st.booleans()
)  # fmt: skip
def test_the_best_blocks_for_given_prices_are_the_best_of_all(
    blocks: int, size: int, epsilon: float, factor: float, log_price: float, plain: bool
) -> None:
    """Against all choices of a number of values in for every block; where F is convex only a bound is promised."""
    family = _NestedBlocks(blocks, size, Epsilon(f"{epsilon:.6f}"), Epsilon(f"{epsilon * factor:.6f}"))
    price = 1 / size if plain else math.exp(log_price)
    shape = _Shape(family, price, 1.0)
    (high, inside, inside_low), most = shape.greatest()

    def share(sorts: Counter[tuple[int, int]]) -> float:
        total = worth = 0.0
        for (kind, d), number in sorts.items():
            values = family.heights[kind] * np.array([1.0] * d + [family.low] * (size - d))
            total += number * values.sum()
            worth += number * (price * values.sum() ** 2 + ((values - values.mean()) ** 2).sum())
        return float(worth / total**2)

    sorts = [(kind, d) for kind in (0, 1) for d in range(size + 1)]
    best = max(share(Counter(choice)) for choice in itertools.combinations_with_replacement(sorts, blocks))
    taken = Counter(shape.spread(0, high, inside)) + Counter(shape.spread(1, blocks - high, inside_low))
    assert sum(taken.values()) == blocks
    assert best <= most * (1 + 1e-9)
    assert share(taken) <= best * (1 + 1e-9)
    if shape.concave:
        assert share(taken) == pytest.approx(most, rel=1e-9)


# -- the optimum of the orbits is that of all mechanisms ---------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [
        sf.Uniform(R(6), "0.5"),
        sf.Uniform(R(8), 2),
        high_low(1, 3, "1"),
        high_low(3, 2, "0.5"),
        high_low(4, 4, "1.25"),  # a mixture of two sizes
        high_low(2, 6, "3"),
        sf.Blocks(R(6), "aabbbc", ["1", "0.5", "2"]),
        two_levels(2, 2, "1", "2"),
        two_levels(2, 3, "0.5", "0.6"),
        two_levels(3, 2, "2", "2.1"),
        two_levels(3, 3, "1", "3"),
        two_levels(2, 4, "0.25", "0.3"),
    ],
    ids=lambda policy: f"{policy.kind}-{len(policy.domain)}",
)
def test_the_general_search_finds_the_same(policy: sf.Policy) -> None:
    design, general = found(policy), optimal(policy)
    assert general.status == "optimal"
    assert design.value == pytest.approx(general.value, rel=1e-5)
    assert design.bound == pytest.approx(general.bound, rel=1e-5)


GRID: list[sf.Policy] = [
    *(sf.Uniform(R(k), e) for k, e in itertools.product((2, 7, 30), ("0.1", "1", "4"))),
    *(high_low(s, h, e) for s, h, e in itertools.product((1, 3, 12), (1, 20), ("0.25", "1", "6"))),
    *(sf.Blocks(R(9), labels, ["0.5", "1", "3"]) for labels in ("aaabbbccc", "aaaaaabcc")),
    *(
        two_levels(m, b, e, str(float(e) * f))
        for m, b, e, f in itertools.product((2, 5), (2, 4), ("0.25", "1", "4"), (1.05, 1.5, 4))
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("policy", GRID, ids=[f"{n}-{policy.kind}" for n, policy in enumerate(GRID)])
def test_no_mechanism_of_a_plan_is_below_the_bound(policy: sf.Policy) -> None:
    bound = found(policy).bound
    for row in sf.plan(policy, 1).rows:
        assert row.risk >= bound * (1 - 1e-9), row.name


# -- theorems ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5, 17, 100, 1000, 10_000])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "ln 7", "6"])
def test_one_level_gives_subset_selection(k: int, epsilon: str) -> None:
    """Ye and Barg 2018: no mechanism is better."""
    design, mechanism = found(sf.Uniform(R(k), epsilon)), SubsetSelection(R(k), epsilon)
    assert design.value == pytest.approx(mechanism.risk(1), rel=1e-9)
    assert design.bound == pytest.approx(mechanism.risk(1), rel=1e-9)
    sizes = [int(orbit.words.split()[0]) for orbit in design.orbits]
    assert mechanism.size in sizes  # two sizes may be equally good
    assert design.orbits[0].weight > 0.49


#: How much better two sizes together may be than the best one: largest at three sensitive values.
WORST_OF_ONE_SIZE = 1.037


@pytest.mark.slow
@pytest.mark.parametrize("sensitive", [1, 2, 3, 4, 5, 7, 11, 21, 50])
def test_one_size_of_sensitive_subsets_is_nearly_the_best(sensitive: int) -> None:
    mixed = 0
    for harmless, quarter in itertools.product((1, 3, 10, 100, 1000), range(1, 25)):
        epsilon = str(quarter / 4)
        design = found(high_low(sensitive, harmless, epsilon))
        risk = HighLowSubset(R(sensitive + harmless), range(sensitive), epsilon).risk(1)
        assert design.bound * (1 - 1e-9) <= risk <= design.bound * (1.01 if sensitive > 11 else WORST_OF_ONE_SIZE)
        sizes = [orbit for orbit in design.orbits if "sensitive" in orbit.words]
        if len(sizes) == 1 and sizes[0].weight > 0.01:  # smaller shares are not all named
            assert risk == pytest.approx(design.value, rel=1e-3)
        mixed += risk > design.value * (1 + 1e-6)
    assert mixed == 0 if sensitive == 1 else mixed > 0


def test_two_sizes_of_sensitive_subsets_may_be_better_than_one() -> None:
    design = found(high_low(3, 1000, "1.25"))
    assert [orbit.words for orbit in design.orbits] == [
        "one of 1000 harmless values, revealed",
        "1 of 3 sensitive values",
        "2 of 3 sensitive values",
    ]
    ratio = HighLowSubset(R(1003), range(3), "1.25").risk(1) / design.value
    assert 1.035 < ratio < WORST_OF_ONE_SIZE


@pytest.mark.parametrize(
    ("labels", "epsilons"),
    [("aabbbc", ["1", "0.5", "0"]), ("abab", ["2", "2"]), ("a" * 30 + "b" * 10 + "c" * 10, ["1", "inf", "3"])],
)
def test_open_blocks_give_subsets_within_blocks(labels: str, epsilons: list[str]) -> None:
    policy = sf.Blocks(R(len(labels)), labels, epsilons)
    design = found(policy)
    sizes = np.bincount(policy.block_of)
    known = bounds.blocks_least_risk(sizes.tolist(), epsilons, sizes / sizes.sum())
    assert design.value == pytest.approx(known, rel=1e-9)
    assert design.value == pytest.approx(BlockMechanism.for_policy(policy, "subset").risk(1), rel=1e-9)


def test_ten_thousand_values_at_two_levels() -> None:
    policy = two_levels(100, 100, "1", "3")
    design = found(policy)
    nested = NestedSubsets.for_policy(policy)
    assert nested.risk(1) == pytest.approx(design.bound, rel=1e-8)
    (orbit,) = design.orbits
    assert f"{nested.high} high with {nested.sizes[0]} of 100" in orbit.words
    assert ComposedSubsets.for_policy(policy).risk(1) > 3 * design.value


@pytest.mark.parametrize(("factor", "most"), [("1.05", 1.23), ("2", 1.04), ("4", 1.04)])
def test_nested_subsets_are_near_the_best_where_the_levels_differ(factor: str, most: float) -> None:
    ratios = []
    for blocks, size, epsilon in itertools.product((2, 4, 30), (2, 5, 20), ("0.25", "1", "4")):
        policy = two_levels(blocks, size, epsilon, str(float(epsilon) * float(factor)))
        ratios.append(NestedSubsets.for_policy(policy).risk(1) / found(policy).bound)
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) <= most


# -- edges -------------------------------------------------------------------------------------------------------


def test_a_matrix_is_seen_through() -> None:
    blocks = two_levels(2, 3, "1", "2")
    dense = sf.Pairwise(R(6), [[blocks.epsilon_between(x, y) for y in range(6)] for x in range(6)])
    assert found(dense) == found(blocks)
    assert found(sf.HighLow(R(5), range(5), 1)) == found(sf.Uniform(R(5), 1))


@pytest.mark.parametrize(
    "policy",
    [
        sf.Blocks(R(5), "aabbb", 1, 2),
        sf.Blocks(R(4), "aabb", [1, "1.5"], 2),
        sf.Blocks(R(4), "aabb", 3, 2),
        sf.Prior(R(2), ["1/2", "1/2"], 1),
        sf.Metric(R(4), "absolute", 1),
        sf.Uniform(R(4), "0.0001"),
        sf.Blocks(R(4), "aabb", "0.0001"),
    ],
    ids=["unequal blocks", "unequal levels", "within above across", "prior", "metric", "tiny", "tiny blocks"],
)
def test_other_policies_have_none(policy: sf.Policy) -> None:
    assert best_orbits(policy) is None


@pytest.mark.parametrize(
    "policy", [sf.Uniform(R(3), 0), high_low(1, 2, "0"), sf.Blocks(R(4), "aabb", [0, 1]), two_levels(2, 2, "0", "1")]
)
def test_nothing_can_be_told_without_budget(policy: sf.Policy) -> None:
    design = best_orbits(policy)
    assert design is not None
    assert design.bound == design.value == math.inf
    assert design.gap == 0


def test_all_of_the_budget_leaves_the_sampling_error() -> None:
    for policy in (sf.Uniform(R(4), "inf"), sf.Uniform(R(4), 900), two_levels(2, 2, "400", "900")):
        assert found(policy).value == pytest.approx(3 / 4)
    assert found(high_low(2, 2, "900")).value == pytest.approx(3 / 4)
    assert found(sf.Uniform(R(1), 0)).value == pytest.approx(0, abs=1e-9)


def test_a_design_in_words() -> None:
    lines = str(found(sf.Blocks(R(7), "aabbbcc", [1, 2, 1]))).splitlines()
    assert lines[0].startswith("estimation 2.24065, lower bound 2.24065")
    assert lines[1:] == ["  0.5714  1 of 2 values in one of 2 blocks", "  0.4286  1 of 3 values in 1 block"]


def test_importing_it_imports_no_solver() -> None:
    modules = "[name for name in ('scipy', 'highspy') if name in sys.modules]"
    code = f"import sys, sfumato.compiler.solvers.orbits; print({modules})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
