"""Tables for distances: they pass the audit, the tight one wastes nothing and is known in closed form on a line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.table.metric_exponential import _normalised, _symmetric, best_exponential, sharp, tight
from sfumato.policy.implication import implies
from sfumato.policy.pairwise import PairwisePolicy

R = sf.Domain.range
Floats = npt.NDArray[np.float64]


def truncated_geometric(k: int, epsilon: float) -> Floats:
    a = np.exp(-epsilon)
    weights = np.full(k, (1 - a) / (1 + a))
    weights[[0, -1]] = 1 / (1 + a)
    return np.asarray(weights * a ** np.abs(np.arange(k)[:, None] - np.arange(k)))


def is_tight(mechanism: TableMechanism, policy: PairwisePolicy, tolerance: float = 1e-9) -> bool:
    certificate = sf.audit(mechanism, policy)
    assert certificate.holds
    return abs(certificate.worst.excess) < tolerance


def table(policy: PairwisePolicy, matrix: Floats) -> TableMechanism:
    return TableMechanism.from_matrix(policy.domain, matrix, policy=policy, late=lambda: matrix.size > 20_000)


def exponential(policy: PairwisePolicy) -> TableMechanism:
    return table(policy, _normalised(_symmetric(policy), 0.5))


def sharp_exponential(policy: PairwisePolicy) -> TableMechanism:
    return table(policy, sharp(policy))


def tight_exponential(policy: PairwisePolicy) -> TableMechanism:
    matrix = tight(policy)
    return sharp_exponential(policy) if matrix is None else table(policy, matrix)


# -- on a line -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 8, 40])
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "ln 5"])
def test_on_a_line_the_tight_table_is_the_truncated_geometric_law(k: int, epsilon: str) -> None:
    policy = sf.Metric(R(k), "absolute", epsilon)
    mechanism = tight_exponential(policy)
    # How much was mixed to make the rounded columns fit shows as a difference.
    assert mechanism.matrix() == pytest.approx(truncated_geometric(k, float(policy.epsilon)), abs=1e-11)
    assert is_tight(mechanism, policy)


def test_the_exponential_table_is_normalised_by_row() -> None:
    mechanism = exponential(sf.Metric(R(6), "absolute", 1))
    kernel = np.exp(-np.abs(np.arange(6)[:, None] - np.arange(6)) / 2)
    assert mechanism.matrix() == pytest.approx(kernel / kernel.sum(axis=1, keepdims=True), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("build", [exponential, tight_exponential])
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_256_values_on_a_line_are_built_and_fit_the_rules_between_neighbours(build: Any, epsilon: str) -> None:
    policy = sf.Metric(R(256), "absolute", epsilon)
    mechanism = build(policy)
    # Neighbours bind as much as all pairs do, and there are few of them: every column exactly.
    neighbours = {(x, x + step): epsilon for x in range(256) for step in (-1, 1) if 0 <= x + step < 256}
    fewer = sf.Pairwise(R(256), neighbours)
    assert fewer.effective_epsilon_matrix().first_above(policy.effective_epsilon_matrix()) is None
    assert all(fewer.allows(column) for column in mechanism.weights.T.tolist())
    if build is tight_exponential:
        # A large table is mixed with the share 2^-20 of one row.
        assert mechanism.matrix() == pytest.approx(truncated_geometric(256, float(policy.epsilon)), abs=1e-6)


# -- any policy on pairs ---------------------------------------------------------------------------------------


@st.composite
def policies(draw: st.DrawFn) -> PairwisePolicy:
    k = draw(st.integers(1, 7))
    kind = draw(st.sampled_from(["points", "matrix", "pairs"]))
    if kind == "points":
        places = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=k, max_size=k))
        taxicab = [[abs(a - c) + abs(b - d) for c, d in places] for a, b in places]
        return sf.Metric(R(k), taxicab, draw(st.sampled_from(["0.01", "0.3", "1", "ln 2"])))
    levels = st.sampled_from([0, "0.1", "0.5", 1, 2, 3, "inf"] if kind == "pairs" else ["0.1", "0.5", 1, 2, 3])
    matrix = [[0 if x == y else draw(levels) for y in range(k)] for x in range(k)]
    if kind == "matrix":
        matrix = [[matrix[min(x, y)][max(x, y)] for y in range(k)] for x in range(k)]
    return sf.Pairwise(R(k), matrix)


@pytest.mark.slow
@given(policies())
def test_every_table_passes_the_audit(policy: PairwisePolicy) -> None:
    for build in (exponential, sharp_exponential, tight_exponential):
        assert sf.audit(build(policy), policy).holds


@given(policies())
def test_leaving_out_sums_changes_no_promise(policy: PairwisePolicy) -> None:
    fewer = policy.without_sums()
    assert implies(fewer, policy)
    assert implies(policy, fewer)


@pytest.mark.slow
@given(policies())
def test_every_table_but_the_first_spends_its_budget(policy: PairwisePolicy) -> None:
    loose, sharp, tight = exponential(policy), sharp_exponential(policy), tight_exponential(policy)
    if not np.isfinite(loose.risk(1)) or sf.audit(loose, policy).worst.names is None:
        return  # nothing can be told, or everything
    symmetric = np.array_equal(policy.effective_epsilon_matrix().codes, policy.effective_epsilon_matrix().codes.T)
    assert not symmetric or is_tight(sharp, policy)
    assert not symmetric or is_tight(tight, policy)
    assert sharp.risk(1) <= loose.risk(1) * (1 + 1e-9)
    assert best_exponential(policy).risk(1) <= min(sharp.risk(1), tight.risk(1)) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5, 10, 30])
def test_the_tight_table_is_better_at_large_levels_and_worse_at_small_ones(k: int) -> None:
    for epsilon in ("1", "3"):
        policy = sf.Metric(R(k), "absolute", epsilon)
        assert tight_exponential(policy).risk(1) < sharp_exponential(policy).risk(1) < exponential(policy).risk(1)
        assert best_exponential(policy) == tight_exponential(policy)
    policy = sf.Metric(R(k), "absolute", "0.01")
    assert sharp_exponential(policy).risk(1) < exponential(policy).risk(1) < tight_exponential(policy).risk(1)
    assert best_exponential(policy) == sharp_exponential(policy)


def test_on_a_circle_the_sharp_table_has_the_whole_level_as_its_exponent() -> None:
    around = [[min((x - y) % 7, (y - x) % 7) for y in range(7)] for x in range(7)]
    policy = sf.Metric(R(7), around, 1)
    kernel = np.exp(-np.array(around, dtype=float))
    assert sharp_exponential(policy).matrix() == pytest.approx(kernel / kernel[0].sum(), abs=1e-12)


def test_classical_policies_give_classical_mechanisms() -> None:
    domain = R(5)
    response = tight_exponential(sf.Uniform(domain, 1))
    assert response.matrix() == pytest.approx(RandomizedResponse(domain, 1).matrix(), abs=1e-12)
    # Utility-optimized randomized response (Murakami and Kawamoto 2019): harmless values are told in clear, or hidden.
    t, sensitive = np.exp(1), 2
    total = sensitive + t - 1
    expected = np.full((5, 5), 0.0)
    expected[:, :2] = 1 / total
    expected[[0, 1], [0, 1]] = t / total
    expected[[2, 3, 4], [2, 3, 4]] = (t - 1) / total
    assert tight_exponential(sf.HighLow(domain, [0, 1], 1)).matrix() == pytest.approx(expected, abs=1e-12)
    blocks = tight_exponential(sf.Blocks(domain, [0, 0, 1, 1, 1], 1)).matrix()
    assert blocks[:2, :2] == pytest.approx(RandomizedResponse(R(2), 1).matrix(), abs=1e-12)
    assert blocks[2:, 2:] == pytest.approx(RandomizedResponse(R(3), 1).matrix(), abs=1e-12)
    assert blocks[:2, 2:] == pytest.approx(0, abs=1e-12)
    assert blocks[2:, :2] == pytest.approx(0, abs=1e-12)


def test_values_that_are_not_told_apart_share_an_output() -> None:
    policy = sf.Pairwise(R(4), [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
    mechanism = tight_exponential(policy)
    assert mechanism.outputs == 3
    assert np.array_equal(mechanism.weights[0], mechanism.weights[1])
    assert len(set(map(tuple, tight_exponential(sf.Uniform(R(3), 0)).weights.tolist()))) == 1


def test_where_no_weights_exist_the_sharp_table_is_taken() -> None:
    # The centre of a star of five, whose tips are at distance 2 from one another: its weight would be negative.
    star = [[0 if x == y else 1 if 0 in (x, y) else 2 for y in range(6)] for x in range(6)]
    policy = sf.Metric(R(6), star, "0.5")
    kernel = np.exp(-0.5 * np.array(star))
    assert np.linalg.solve(kernel, np.ones(6)).min() < 0
    assert tight(policy) is None
    assert best_exponential(policy) == sharp_exponential(policy)
    assert sf.audit(best_exponential(policy), policy).holds


def test_levels_without_a_common_unit_are_handled() -> None:
    policy = sf.Pairwise(R(3), [[0, "ln 2", 1], ["ln 2", 0, "ln 3"], [1, "ln 3", 0]])
    assert policy.effective_epsilon_matrix().unit is None
    assert is_tight(tight_exponential(policy), policy)


# -- maps ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("cells", [8, 16])
def test_tables_over_a_map_pass_the_audit(cells: int) -> None:
    grid = sf.Domain.grid(latitude=(46.0, 46.3), longitude=(7.0, 7.4), rows=cells, columns=cells)
    policy = sf.Metric(grid, "km", "0.2")
    loose, tight = exponential(policy), tight_exponential(policy)
    assert sf.audit(loose, policy).holds
    far = np.array([[float(policy.distance(x, y)) for y in range(cells**2)] for x in range(cells**2)])
    # Large tables are mixed with the share 2^-20 of one row.
    assert is_tight(tight, policy, 1e-9 if cells == 8 else 1e-5)
    if cells == 8:  # in finer cells some weight would be negative
        assert (tight.matrix() * far).sum() < 0.8 * (loose.matrix() * far).sum()
