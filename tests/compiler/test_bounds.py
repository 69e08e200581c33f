"""Bounds: published values, above the exact risk where they are upper ones, below it where they are lower ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.linalg import block_diag, hadamard
from scipy.optimize import minimize, nnls

import sfumato as sf
from sfumato.compiler import bounds
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from support.published import reference

Floats = npt.NDArray[np.float64]
R = sf.Domain.range
LEVELS = ["0.3", "1", "ln 7", "3"]


def level(epsilon: str) -> float:
    return float(sf.Epsilon(epsilon))


# -- the paper's mechanisms, with their estimates, by enumeration ----------------------------------------------


class Enumerated:
    """A matrix and the score of each output for each value; the estimate is the mean score."""

    def __init__(self, matrix: Floats, scores: Floats) -> None:
        assert matrix @ scores == pytest.approx(np.eye(len(matrix)), abs=1e-9)  # unbiased
        assert matrix.sum(axis=1) == pytest.approx(1)
        self.matrix, self.scores = matrix, scores

    def variances(self, p: Floats) -> Floats:
        return np.asarray((p @ self.matrix) @ self.scores**2 - p**2)


def signs(size: int) -> tuple[Floats, int]:
    columns = 1 << size.bit_length()
    return hadamard(columns)[1 : size + 1].astype(float), columns


def high_low(sensitive: int, size: int, epsilon: float) -> Enumerated:
    """Acharya et al. 2020, §5, with row x+1 for value x; the first values are the sensitive ones."""
    t = math.exp(epsilon)
    rows, columns = signs(sensitive)
    matrix = np.zeros((size, columns + size - sensitive))
    matrix[:sensitive, :columns] = np.where(rows > 0, t, 1) * 2 / (columns * (t + 1))
    matrix[sensitive:, :columns] = 2 / (columns * (t + 1))
    scores = np.zeros((matrix.shape[1], size))
    c = (t + 1) / (t - 1)
    scores[:columns, :sensitive] = c * rows.T
    for i in range(size - sensitive):
        matrix[sensitive + i, columns + i] = 1 / c
        scores[columns + i, sensitive + i] = c
    return Enumerated(matrix, scores)


def in_blocks(sizes: list[int], epsilon: float) -> Enumerated:
    """Acharya et al. 2020, §6: the block in clear, a Hadamard response within it."""
    t = math.exp(epsilon)
    parts, scores = [], []
    for size in sizes:
        rows, columns = signs(size)
        parts.append(np.where(rows > 0, t, 1) * 2 / (columns * (t + 1)))
        scores.append((t + 1) / (t - 1) * rows.T)
    return Enumerated(block_diag(*parts), block_diag(*scores))


def distributions(size: int, count: int = 20) -> list[Floats]:
    generator = np.random.default_rng(size)
    return [np.full(size, 1 / size), *np.eye(size), *generator.dirichlet(np.full(size, 0.5), count)]


# -- upper bounds ----------------------------------------------------------------------------------------------


def test_the_high_low_bounds_reproduce_the_reference_values() -> None:
    for case in reference("hlldp"):
        n, s, k, epsilon = case["n"], case["s"], case["k"], case["eps"]
        assert bounds.high_low_l1(s, k, epsilon, n) == pytest.approx(case["l1_bound_19"], rel=1e-11)
        assert bounds.high_low_l2(s, epsilon, n) == pytest.approx(case["l2_bound_29"], rel=1e-11)
        mechanism = high_low(s, k, epsilon)
        variances = mechanism.variances(np.array(case["p"])) / n
        assert variances == pytest.approx(np.array(case["var_per_symbol"]), rel=1e-9)


def test_the_block_bounds_reproduce_the_reference_values() -> None:
    cases = [case for case in reference("bsldp") if "l1_bound_24" in case]
    assert cases
    for case in cases:
        n, sizes, epsilon = case["n"], case["sizes"], case["eps"]
        assert bounds.block_l1(sizes, epsilon, n) == pytest.approx(case["l1_bound_24"], rel=1e-11)
        assert bounds.block_l2(sizes, epsilon, n) == pytest.approx(case["l2_bound_24"], rel=1e-11)
        variances = in_blocks(sizes, epsilon).variances(np.array(case["p"])) / n
        assert variances == pytest.approx(np.array(case["var_per_symbol"]), rel=1e-9)


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize(("sensitive", "size"), [(1, 2), (1, 9), (3, 5), (7, 8), (4, 4)])
def test_the_high_low_bounds_are_above_the_exact_risk(sensitive: int, size: int, epsilon: str) -> None:
    mechanism = high_low(sensitive, size, level(epsilon))
    enough = bounds.high_low_reports(sensitive, size, epsilon, tv=0.1)
    largest = 0.0
    even = [np.where(np.arange(size) < sensitive, q / sensitive, 0.0) for q in np.linspace(0, 1, 21)]
    for given in [*distributions(size), *even]:
        p = (
            given
            if sensitive == size
            else given + (np.arange(size) >= sensitive) * (1 - given.sum()) / (size - sensitive)
        )
        p = p / p.sum() if p.any() else np.full(size, 1 / size)
        variances = mechanism.variances(p)
        deviations = float(np.sqrt(np.maximum(variances, 0)).sum())  # of one report; E|p̂-p|₁ is at most that over √n
        assert variances.sum() <= bounds.high_low_l2(sensitive, epsilon, 1)
        assert deviations <= bounds.high_low_l1(sensitive, size, epsilon, 1)
        largest = max(largest, deviations / math.sqrt(enough) / 2)
    assert 0.07 < largest <= 0.1  # the number of reports is enough, and not much more than that


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("sizes", [[1], [2, 2], [3, 1, 1], [5, 2], [4, 4, 4]])
def test_the_block_bounds_are_above_the_exact_risk(sizes: list[int], epsilon: str) -> None:
    mechanism = in_blocks(sizes, level(epsilon))
    enough = bounds.block_reports(sizes, epsilon, tv=0.1)
    for p in distributions(sum(sizes)):
        variances = mechanism.variances(p)
        deviations = float(np.sqrt(np.maximum(variances, 0)).sum())
        assert variances.sum() <= bounds.block_l2(sizes, epsilon, 1)
        assert deviations <= bounds.block_l1(sizes, epsilon, 1)
        assert deviations / math.sqrt(enough) / 2 <= 0.1
    # Masses in proportion to the squares of the sizes: the bound on the deviations is near.
    masses = np.array(sizes, dtype=float) ** 2
    p = np.repeat(masses / masses.sum() / sizes, sizes)
    deviations = float(np.sqrt(mechanism.variances(p)).sum())
    assert deviations / math.sqrt(enough) / 2 > (0.06 if sum(sizes) > 1 else 0)


def test_enough_reports_of_any_mechanism() -> None:
    for mechanism in (RandomizedResponse(R(5), 1), SubsetSelection(R(9), 2), UnaryEncoding(R(4), "0.5")):
        k = len(mechanism.domain)
        n = bounds.reports_for(mechanism, 0.05)
        for p in distributions(k):
            assert math.sqrt(k * mechanism.risk(n, p)) / 2 <= 0.05
            assert bounds.reports_for(mechanism, 0.05, p) <= n
        assert math.sqrt(k * mechanism.worst_risk(n - 1)) / 2 > 0.05


# -- lower bounds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 5, 12])
@pytest.mark.parametrize("epsilon", LEVELS)
def test_the_uniform_bound_is_the_closed_form_and_no_mechanism_has_less(k: int, epsilon: str) -> None:
    t = math.exp(level(epsilon))
    least = bounds.uniform_least_risk(k, epsilon)
    closed = min(
        (k - 1) ** 2 * (d * t + k - d) ** 2 / (k * (t - 1) ** 2 * d * (k - d)) for d in range(1, k)
    )  # fmt: skip
    assert least == pytest.approx(closed, rel=1e-9)
    policy = sf.Uniform(R(k), epsilon)
    generator = np.random.default_rng(1)
    candidates: list[Mechanism] = [
        RandomizedResponse(R(k), epsilon),
        UnaryEncoding(R(k), epsilon),
        UnaryEncoding(R(k), epsilon, optimized=True),
        HadamardResponse(R(k), epsilon),
    ]
    for _ in range(10):  # columns of two levels, as extreme ones are, in random sets and weights
        sets = generator.random((k, 3 * k)) < generator.random()
        columns = np.where(sets, t, 1.0) * generator.dirichlet(np.ones(3 * k))
        scaled = columns / columns.sum(axis=1, keepdims=True)
        candidates.append(TableMechanism.from_matrix(R(k), scaled, policy=policy))
    for mechanism in candidates:
        assert mechanism.risk(1) >= least * (1 - 1e-9), mechanism


def block_mechanism(sizes: list[int], epsilons: list[str]) -> TableMechanism:
    """The block in clear, subset selection within it."""
    parts = [
        SubsetSelection(R(k), epsilon).matrix() if k > 1 else np.ones((1, 1))
        for k, epsilon in zip(sizes, epsilons, strict=True)
    ]
    return TableMechanism.from_matrix(R(sum(sizes)), block_diag(*parts))


CASES = [
    ([2, 3], ["1", "0.5"]),
    ([1, 4], ["1", "2"]),
    ([3, 3, 1], ["1", "1", "1"]),
    ([5], ["ln 3"]),
    ([1, 1], ["1"] * 2),
]


@pytest.mark.parametrize(("sizes", "epsilons"), CASES)
def test_the_block_bound_is_the_exact_risk_of_subsets_within_blocks(sizes: list[int], epsilons: list[str]) -> None:
    mechanism = block_mechanism(sizes, epsilons)
    generator = np.random.default_rng(2)
    for totals in [np.full(len(sizes), 1 / len(sizes)), *generator.dirichlet(np.ones(len(sizes)), 5)]:
        p = np.repeat(totals / sizes, sizes)
        assert bounds.blocks_least_risk(sizes, epsilons, totals) == pytest.approx(mechanism.risk(1, p), rel=1e-9)


@pytest.mark.parametrize(("sizes", "epsilons"), CASES)
def test_the_risk_within_blocks_is_made_of_its_parts_at_any_distribution(sizes: list[int], epsilons: list[str]) -> None:
    """n·risk = Σ_j [w_j·r_j + |p_j|²/w_j] - |p|², r_j the risk within block j at its conditional distribution."""
    mechanism = block_mechanism(sizes, epsilons)
    for p in np.random.default_rng(3).dirichlet(np.ones(sum(sizes)), 10):
        total = -float(p @ p)
        for part, k, epsilon in zip(np.split(p, np.cumsum(sizes)[:-1]), sizes, epsilons, strict=True):
            mass = part.sum()
            within = SubsetSelection(R(k), epsilon).risk(1, part / mass) if k > 1 else 0.0
            total += mass * within + float(part @ part) / mass
        assert mechanism.risk(1, p) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(("sizes", "epsilons"), [case for case in CASES if len(case[0]) > 1])
def test_the_worst_totals_are_the_worst(sizes: list[int], epsilons: list[str]) -> None:
    worst = bounds.blocks_least_risk(sizes, epsilons)
    count = len(sizes)

    def risk(free: Floats) -> float:
        weights = np.abs(free) + 1e-12
        return -bounds.blocks_least_risk(sizes, epsilons, weights / weights.sum())

    found = [minimize(risk, start, method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-12}).fun
             for start in (np.ones(count), *np.eye(count))]  # fmt: skip
    assert worst == pytest.approx(-min(found), rel=1e-6)
    corners = [bounds.blocks_least_risk(sizes, epsilons, corner) for corner in np.eye(count)]
    assert worst >= max(corners) - 1e-12


def fisher_risk(matrix: Floats, p: Floats) -> float:
    """The trace of the inverse Fisher information on the simplex at p: the least asymptotic n·E|p̂-p|²."""
    k = len(p)
    basis = np.linalg.qr(np.c_[np.ones(k), np.eye(k)[:, :-1]])[0][:, 1:]
    law = p @ matrix
    information = basis.T @ (matrix[:, law > 0] / law[law > 0]) @ matrix[:, law > 0].T @ basis
    return float(np.trace(np.linalg.inv(information)))


def test_no_mechanism_for_blocks_has_less_information_lost() -> None:
    sizes, epsilon = [2, 3], 1.0
    t = math.exp(epsilon)
    generator = np.random.default_rng(4)
    block_of = np.repeat([0, 1], sizes)
    for totals in ([0.5, 0.5], [0.2, 0.8]):
        p = np.repeat(np.array(totals) / sizes, sizes)
        least = bounds.blocks_least_risk(sizes, "1", totals)
        best = block_mechanism(sizes, ["1", "1"]).matrix()
        assert fisher_risk(best, p) == pytest.approx(least, rel=1e-9)
        compared = 0
        for _ in range(600):
            # Two-level columns within each block; any level between blocks, some zero.
            high = generator.random((5, 15)) < generator.random(15)
            heights = generator.random((2, 15)) * (generator.random((2, 15)) < 0.7)
            columns = np.where(high, t, 1.0) * heights[block_of]
            weights, missing = nnls(columns, np.ones(5))
            matrix = columns * weights
            if missing < 1e-12 and np.linalg.cond(matrix) < 1e6:
                assert fisher_risk(matrix, p) >= least * (1 - 1e-9)
                compared += 1
        assert compared > 30


def test_least_risks_of_policies() -> None:
    assert bounds.least_risk(sf.Uniform(R(7), 1)) == pytest.approx(SubsetSelection(R(7), 1).risk(1))
    assert bounds.least_risk(sf.HighLow(R(7), range(7), 1)) == bounds.least_risk(sf.Uniform(R(7), 1))
    blocks = sf.Blocks(R(5), [0, 1, 1, 0, 1], ["1", "0.5"])
    assert bounds.least_risk(blocks) == pytest.approx(block_mechanism([2, 3], ["1", "0.5"]).risk(1))
    dense = sf.Pairwise(R(5), [[blocks.epsilon_between(x, y) for y in range(5)] for x in range(5)])
    assert bounds.least_risk(dense) == pytest.approx(bounds.least_risk(blocks))
    assert bounds.least_risk(sf.HighLow(R(5), [1], 1)) is None
    assert bounds.least_risk(sf.Blocks(R(4), "aabb", 1, across=2)) is None
    assert bounds.least_risk(sf.Prior(R(2), ["1/2", "1/2"], 1)) == pytest.approx(bounds.prior_least_risk(2, 1))
    assert bounds.least_risk(sf.Prior(R(2), ["1/3", "2/3"], 1)) is None


# -- edges and refusals ----------------------------------------------------------------------------------------


def test_no_budget_and_all_of_it() -> None:
    assert math.isinf(bounds.high_low_l2(1, 0, 10))
    assert math.isinf(bounds.uniform_least_risk(3, 0))
    assert math.isinf(bounds.blocks_least_risk([2, 3], [1, 0]))
    assert bounds.blocks_least_risk([2, 3], [1, 0], [1, 0]) == pytest.approx(bounds.uniform_least_risk(2, 1))
    # Without noise, what is left is the sampling error 1 - |p|².
    assert bounds.uniform_least_risk(4, "inf") == pytest.approx(3 / 4)
    assert bounds.blocks_least_risk([2, 3], "inf") == pytest.approx(4 / 5)
    assert bounds.uniform_least_risk(1, 1) == 0
    assert bounds.block_l2([3], "inf", 10) == pytest.approx(3.6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: bounds.high_low_l1(0, 4, 1, 10),
        lambda: bounds.high_low_l1(5, 4, 1, 10),
        lambda: bounds.high_low_reports(1, 4, 0, 0.1),
        lambda: bounds.high_low_reports(1, 4, 1, 0),
        lambda: bounds.block_l1([], 1, 10),
        lambda: bounds.block_l2([3, 0], 1, 10),
        lambda: bounds.block_reports([3], 0, 0.1),
        lambda: bounds.reports_for(RandomizedResponse(R(3), 0), 0.1),
        lambda: bounds.blocks_least_risk([2, 3], [1], [0.5, 0.5]),
        lambda: bounds.blocks_least_risk([2, 3], 1, [0.5, 0.6]),
    ],
)
def test_what_has_no_bound_is_refused(ask: Any) -> None:
    with pytest.raises(InvalidInput):
        ask()
