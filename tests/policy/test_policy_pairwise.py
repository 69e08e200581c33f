"""Policies on pairs: their levels, what they imply together, and what they allow, against brute force."""

from __future__ import annotations

import contextlib
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, floyd_warshall

from sfumato._core.exact import INFINITE, ZERO, Epsilon, exceeds
from sfumato.domain.domain import Domain
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.policy import pairwise
from sfumato.policy.blocks import Blocks
from sfumato.policy.distributions import Anything
from sfumato.policy.epsilon_matrix import EpsilonMatrix
from sfumato.policy.high_low import HighLow
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise, PairwisePolicy
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform
from support.reference import (
    PRIMES,
    Column,
    Level,
    PairCase,
    any_pair_case,
    below,
    columns,
    digits,
    e_to,
    exact_e_to,
    fewer,
    finite_levels,
    fractions,
    matrix_cases,
    pair_case,
    pair_cases,
    parts_of,
    plus,
    pulled_inside,
    real,
    refusal,
    shortest_paths,
    sizes,
    smaller,
    tidy,
    written,
)

ABC = Domain(["a", "b", "c"])
TINY = Fraction(1, 10**30)


# -- matrices of levels ------------------------------------------------------------------------------------


def levels_of(matrix: Any) -> EpsilonMatrix:
    """A matrix of parts as the package's Levels, each entry a distinct Epsilon of its own."""
    size = len(matrix)
    epsilons = [Epsilon(written(level)) for row in matrix for level in row]
    return EpsilonMatrix.from_epsilons(np.arange(size * size).reshape(size, size), epsilons)


def everywhere(found: EpsilonMatrix) -> list[list[Level]]:
    size = len(found.codes)
    return [[parts_of(found.at(x, y)) for y in range(size)] for x in range(size)]


def as_lists(matrix: Any) -> list[list[Level]]:
    return [[None if level is None else tidy(level) for level in row] for row in matrix]


def floats(matrix: Any) -> npt.NDArray[np.float64]:
    return np.array([[math.inf if level is None else float(real(level)) for level in row] for row in matrix])


#: Each sort of entry leads to another way to add: 64-bit multiples, big integers, symbols.
rational: st.SearchStrategy[Level] = st.one_of(fractions(0, 3).map(lambda c: tidy({1: c})), st.none())
multiples_of_one_logarithm: st.SearchStrategy[Level] = st.one_of(fractions(0, 3).map(lambda c: tidy({3: c})), st.none())
no_common_unit: st.SearchStrategy[Level] = st.one_of(finite_levels, finite_levels, st.none())
LARGE_PRIMES = (10**9 + 7, 10**9 + 9, 998244353, 10**9 + 21, 10**9 + 33)
no_unit_in_64_bits: st.SearchStrategy[Level] = st.one_of(
    st.builds(lambda n, d: {1: Fraction(n, d)}, st.integers(1, 3 * 10**9), st.sampled_from(LARGE_PRIMES)), st.none()
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "entries", [rational, multiples_of_one_logarithm, no_common_unit, no_unit_in_64_bits],
    ids=["rational", "one logarithm", "no common unit", "no unit in 64 bits"],
)  # fmt: skip
@given(data=st.data())
def test_closure_is_the_least_sum_over_every_path(entries: st.SearchStrategy[Level], data: st.DataObject) -> None:
    size = data.draw(sizes)
    matrix = [[{} if x == y else data.draw(entries) for y in range(size)] for x in range(size)]
    declared = levels_of(matrix)
    assert everywhere(declared) == as_lists(matrix)
    closed = declared.closed()
    assert everywhere(closed) == as_lists(shortest_paths(matrix))
    assert everywhere(declared) == as_lists(matrix)  # unchanged by closing
    assert everywhere(closed.closed()) == everywhere(closed)


def test_each_way_to_close_is_the_one_it_is_meant_to_be() -> None:
    assert levels_of([[{}, {1: Fraction(1, 3)}], [None, {}]]).unit is not None
    assert levels_of([[{}, {3: Fraction(1, 3)}], [{3: Fraction(2)}, {}]]).unit is not None
    assert levels_of([[{}, {1: Fraction(1)}], [{2: Fraction(1)}, {}]]).unit is None
    several = [{1: Fraction(1, p)} for p in LARGE_PRIMES[:4]]
    assert levels_of([[{}, several[0], several[1]], [several[2], {}, several[3]], [None, None, {}]]).unit is None


@pytest.mark.parametrize("units", [2**59, 2**60 - 1, 2**60, 2**61 - 1, 2**61, 2**70])
def test_sums_that_would_not_fit_64_bits(units: int) -> None:
    """A chain of five steps; the unit is what the last entry is one of."""
    size = 6
    matrix: list[list[Level]] = [[{} if x == y else None for y in range(size)] for x in range(size)]
    for x in range(size - 1):
        matrix[x][x + 1] = {1: Fraction(1) - Fraction(x, units)}
    matrix[size - 1][0] = {1: Fraction(1, units)}
    closed = levels_of(matrix).closed()
    assert everywhere(closed) == as_lists(shortest_paths(matrix))


def random_matrix(size: int, seed: int, most: int, share: float) -> npt.NDArray[np.int64]:
    """Integers from 1 to ``most`` with this share of entries finite, -1 for infinite."""
    draw = np.random.default_rng(seed)
    matrix = np.where(draw.random((size, size)) < share, draw.integers(1, most, (size, size)), -1)
    np.fill_diagonal(matrix, 0)
    return matrix


def as_graph(matrix: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """For scipy: no edge is infinity; all entries but the diagonal are positive, so no edge is lost."""
    return np.where(matrix < 0, math.inf, matrix.astype(float))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [2, 17, 60])
def test_closure_of_multiples_agrees_with_scipy(size: int, seed: int) -> None:
    matrix = random_matrix(size, seed, 1000, [0.05, 0.3, 1.0][seed % 3])
    unit = [Epsilon("1/7"), Epsilon("1/3*ln 5")][seed % 2]
    distinct, positions = np.unique(matrix, return_inverse=True)
    epsilons = [INFINITE if n < 0 else unit * int(n) for n in distinct]
    closed = EpsilonMatrix.from_epsilons(positions.reshape(matrix.shape), epsilons).closed()
    expected = floyd_warshall(as_graph(matrix))
    for x, y in itertools.product(range(size), repeat=2):
        want = INFINITE if math.isinf(expected[x, y]) else unit * int(expected[x, y])
        assert closed.at(x, y) == want


@pytest.mark.parametrize("sort", ["symbols", "big integers"])
def test_slower_closures_agree_with_scipy(sort: str) -> None:
    size = 24
    matrix = random_matrix(size, 1, 100, 0.2)
    logs = Epsilon("ln 2")
    rationals = Epsilon(1)

    def epsilon(x: int, y: int) -> Epsilon:
        n = int(matrix[x, y])
        if n <= 0:
            return ZERO if n == 0 else INFINITE
        if sort == "symbols":
            return (logs if (x + y) % 2 else rationals) * Fraction(n, 10)
        return rationals * Fraction(n, LARGE_PRIMES[(x + y) % len(LARGE_PRIMES)])

    epsilons = [epsilon(x, y) for x in range(size) for y in range(size)]
    declared = EpsilonMatrix.from_epsilons(np.arange(size * size).reshape(size, size), epsilons)
    assert declared.unit is None
    closed = declared.closed()
    # scipy takes an entry below 1e-8 for no edge at all: give it numbers of ordinary size.
    scale = 1.0 if sort == "symbols" else 1e9
    expected = floyd_warshall(np.array([float(e) * scale for e in epsilons]).reshape(size, size))
    found = scale * np.array([[float(closed.at(x, y)) for y in range(size)] for x in range(size)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
def test_closure_of_a_thousand_values() -> None:
    size = 1000
    matrix = random_matrix(size, 3, 500, 0.004)
    distinct, positions = np.unique(matrix, return_inverse=True)
    epsilons = [INFINITE if n < 0 else Epsilon(Fraction(int(n), 100)) for n in distinct]
    policy = Pairwise._from_epsilon_matrix(
        Domain.range(size), EpsilonMatrix.from_epsilons(positions.reshape(size, size), epsilons)
    )
    graph = csr_array(np.where(matrix < 0, 0, matrix).astype(float))
    expected = dijkstra(graph)
    closed = policy.effective_epsilon_matrix()
    in_units = np.where(closed.codes >= 2**61, math.inf, closed.codes.astype(float))
    assert closed.unit == Epsilon("0.01")
    np.testing.assert_array_equal(in_units, expected)
    assert math.isinf(expected.max()) or expected.max() > matrix.max()  # paths did matter


def test_a_closure_out_of_reach_is_refused() -> None:
    def of(size: int, *epsilons: Epsilon) -> EpsilonMatrix:
        positions = np.arange(size * size).reshape(size, size) % len(epsilons)
        return EpsilonMatrix.from_epsilons(positions, epsilons)

    with pytest.raises(LimitExceeded, match="effective epsilons of 97 values cannot be computed"):
        of(97, Epsilon(1), Epsilon("ln 2")).closed()
    with pytest.raises(LimitExceeded, match="effective epsilons of 401 values cannot be computed"):
        of(401, *(Epsilon(Fraction(1, p)) for p in LARGE_PRIMES)).closed()


@given(sizes.flatmap(matrix_cases))
def test_codes_order_as_the_levels_do(case: PairCase) -> None:
    found = levels_of(case.matrix)
    cells = list(itertools.product(range(case.size), repeat=2))
    for (a, b), (c, d) in itertools.combinations(cells, 2):
        assert (found.codes[a, b] < found.codes[c, d]) == below(case.matrix[a][b], case.matrix[c][d])
        assert (found.codes[a, b] == found.codes[c, d]) == (case.matrix[a][b] == case.matrix[c][d])


@given(sizes.flatmap(matrix_cases))
def test_doubles_in_front_of_exact_comparisons_are_near(case: PairCase) -> None:
    floats = levels_of(case.matrix).floats
    for x, y in itertools.product(range(case.size), repeat=2):
        level = case.matrix[x][y]
        if level is None:
            assert floats[x, y] == math.inf
        else:
            with digits():
                assert abs(Decimal(floats[x, y]) - e_to(level).ln()) <= Decimal("1e-15") * (1 + e_to(level).ln())


@given(st.tuples(sizes).flatmap(lambda size: st.tuples(matrix_cases(*size), matrix_cases(*size))))
def test_sum_and_comparison_of_matrices(cases: tuple[PairCase, PairCase]) -> None:
    first, second = cases
    mine, theirs = levels_of(first.matrix), levels_of(second.matrix)
    cells = list(itertools.product(range(first.size), repeat=2))
    added = mine.plus(theirs)
    for x, y in cells:
        assert parts_of(added.at(x, y)) == plus(first.matrix[x][y], second.matrix[x][y])
    above = {(x, y) for x, y in cells if x != y and below(second.matrix[x][y], first.matrix[x][y])}
    pair = mine.first_above(theirs)
    assert pair in above if above else pair is None


@given(sizes.flatmap(matrix_cases), st.data())
def test_part_of_a_matrix(case: PairCase, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(case.size)), min_size=1, unique=True))
    part = levels_of(case.matrix).on(np.array(chosen))
    assert everywhere(part) == as_lists([[case.matrix[x][y] for y in chosen] for x in chosen])


# -- what is declared, what it implies ---------------------------------------------------------------------


@given(any_pair_case)
def test_levels_are_those_declared(case: PairCase) -> None:
    policy = case.pairs
    found = [[parts_of(policy.epsilon_between(x, y)) for y in range(case.size)] for x in range(case.size)]
    assert found == as_lists(case.matrix)
    assert everywhere(policy.epsilon_matrix()) == as_lists(case.matrix)


@given(any_pair_case)
def test_inequalities_are_the_rules_of_the_design(case: PairCase) -> None:
    def key(left: Any, right: Any, level: Level) -> tuple[Any, ...]:
        return tuple(sorted(left.items())), tuple(sorted(right.items())), tuple(sorted((level or {}).items()))

    for policy in (case.policy, case.pairs, case.dense):
        stated = sorted(key(i.left, i.right, parts_of(i.epsilon)) for i in policy.inequalities())
        assert stated == sorted(key(rule.left, rule.right, tidy(rule.level)) for rule in case.rules)


@given(any_pair_case)
def test_effective_levels_are_shortest_paths(case: PairCase) -> None:
    expected = as_lists(case.shortest)
    for policy in (case.pairs, case.dense):
        found = [[parts_of(policy.effective_epsilon(x, y)) for y in range(case.size)] for x in range(case.size)]
        assert found == expected
        assert everywhere(policy.effective_epsilon_matrix()) == expected


@pytest.mark.slow
@given(any_pair_case, st.data())
def test_levels_on_some_values_in_any_order(case: PairCase, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(case.size)), min_size=1, unique=True))
    indices = np.array(chosen)
    for policy in (case.pairs, case.dense):
        declared = [[case.matrix[x][y] for y in chosen] for x in chosen]
        assert everywhere(policy.epsilons_on(indices)) == as_lists(declared)
        effective = [[case.shortest[x][y] for y in chosen] for x in chosen]
        assert everywhere(policy.effective_epsilons_on(indices)) == as_lists(effective)


@given(any_pair_case)
def test_least_and_greatest_are_attained(case: PairCase) -> None:
    pairs = list(itertools.permutations(range(case.size), 2))
    least: Level = None
    greatest: Level = {}
    for x, y in pairs:
        least = smaller(least, case.matrix[x][y])
        greatest = case.shortest[x][y] if below(greatest, case.shortest[x][y]) else greatest
    for policy in (case.pairs, case.dense):
        epsilon, (x, y) = policy.least
        assert parts_of(epsilon) == least
        assert x != y
        assert case.matrix[x][y] == least
        epsilon, (x, y) = policy.greatest_effective
        assert parts_of(epsilon) == greatest
        assert x != y
        assert case.shortest[x][y] == greatest


@given(any_pair_case)
def test_values_of_a_class_are_exchangeable(case: PairCase) -> None:
    classes = case.pairs.classes()
    assert len(classes) == case.size
    for a, b in itertools.combinations(range(case.size), 2):
        if classes[a] == classes[b]:
            swapped = list(range(case.size))
            swapped[a], swapped[b] = b, a
            for x, y in itertools.product(range(case.size), repeat=2):
                assert case.pairs.epsilon_between(x, y) == case.pairs.epsilon_between(swapped[x], swapped[y])


def test_one_value_alone_is_bound_by_nothing() -> None:
    alone = Domain(["only"])
    policies: list[PairwisePolicy] = [
        Uniform(alone, 0), HighLow(alone, ["only"], 0), Blocks(alone, ["x"], 0), Metric(alone, [[0]], 1),
        Pairwise(alone, [[0]]),
    ]  # fmt: skip
    for policy in policies:
        assert policy.least == (INFINITE, (0, 0))
        assert policy.greatest_effective == (ZERO, (0, 0))
        assert policy.worst([7]).names is None
        assert policy.allows([0])
        assert list(policy.inequalities()) == []
        assert policy.effective_epsilon_matrix().at(0, 0) == ZERO


def test_out_of_a_block_and_back_may_be_shorter() -> None:
    policy = Blocks(ABC, [["a", "b"], ["c"]], epsilon="ln 100", across="ln 3")
    assert policy.epsilon_between(0, 1) == Epsilon("ln 100")
    assert policy.effective_epsilon(0, 1) == Epsilon("ln 9")
    assert policy.greatest_effective[0] == Epsilon("ln 9")
    one_block = Blocks(ABC, ["x", "x", "x"], epsilon="ln 100", across="ln 3")
    assert one_block.effective_epsilon(0, 1) == Epsilon("ln 100")


# -- what is allowed ---------------------------------------------------------------------------------------


def check(case: PairCase, column: Column) -> None:
    """The policy, its dense twin and the rules agree on this column."""
    allowed, expected = case.allows(column), float(case.excess(column))
    for policy in (case.policy, case.dense):
        assert policy.allows(column) == allowed
        worst = policy.worst(column)
        assert worst.violated != allowed
        if math.isinf(expected):
            assert worst.excess == expected
        else:
            # Among pairs within 1e-9 of the limit a certified violation is preferred to the largest double.
            assert worst.excess == pytest.approx(expected, abs=2e-9)
        if worst.names is None:
            assert expected == -math.inf
            continue
        x, y = (policy.domain.index(name) for name in worst.names)
        assert (worst.left, worst.right) == (column[x], column[y])
        assert parts_of(worst.epsilon) == case.matrix[x][y]
        assert str(worst).startswith(f"{worst.names[0]!r} against {worst.names[1]!r}: ")
        assert ("exceeds" in str(worst)) == worst.violated


@given(any_pair_case, st.data())
def test_allows_and_worst_agree_with_every_rule(case: PairCase, data: st.DataObject) -> None:
    check(case, data.draw(columns(case.size)))


@given(any_pair_case, st.data())
def test_columns_at_their_limits_are_allowed(case: PairCase, data: st.DataObject) -> None:
    column = pulled_inside(case.matrix, data.draw(columns(case.size)))
    assert case.policy.allows(column)
    assert case.dense.allows(column)
    check(case, column)


@given(any_pair_case, st.data())
def test_one_part_in_a_nonillion_above_a_limit_is_not_allowed(case: PairCase, data: st.DataObject) -> None:
    """Where e^E is rational the limit itself is allowed: the smallest step beyond it is not."""
    column = pulled_inside(case.matrix, data.draw(columns(case.size)))
    tight = [
        (x, y)
        for x, y in itertools.permutations(range(case.size), 2)
        if (level := case.matrix[x][y]) is not None
        and (limit := exact_e_to(level)) is not None
        and column[x] == limit * column[y] > 0
    ]
    for x, _ in tight:
        above = list(column)
        above[x] *= 1 + TINY
        assert not case.policy.allows(above)
        assert not case.dense.allows(above)
        assert case.policy.worst(above).violated


def test_exactly_at_the_limit_and_just_above() -> None:
    uniform, high_low = Uniform(ABC, "ln 3"), HighLow(ABC, ["a"], "ln 3")
    assert uniform.allows([1, 2, 3])
    assert uniform.worst([1, 2, 3]).excess == 0
    assert not uniform.allows([1, 2, 3 + TINY])
    assert not uniform.allows([1 - TINY, 2, 3])
    assert high_low.allows([3, 1, 1])
    assert not high_low.allows([3 + TINY, 1, 1])
    assert high_low.allows([1, 10**30, 1])  # a harmless value may be reported in clear
    assert not high_low.allows([1, 0, 1])
    half = Metric(ABC, [["0", "1/2", "1"], ["1/2", "0", "1/2"], ["1", "1/2", "0"]], "ln 4")
    assert half.allows([4, 2, 1])
    assert not half.allows([4 + TINY, 2, 1])
    assert Pairwise(ABC, {("a", "b"): "1/2*ln 4"}).allows([2, 1, 0])
    assert not Pairwise(ABC, {("a", "b"): "1/2*ln 4"}).allows([2 + TINY, 1, 0])
    with digits(45):
        below_e, above_e = Fraction(Decimal(1).exp()) - 10 * TINY, Fraction(Decimal(1).exp()) + 10 * TINY
    assert Uniform(ABC, 1).allows([1, 1, below_e])
    assert not Uniform(ABC, 1).allows([1, 1, above_e])


def test_the_direction_of_an_asymmetric_rule() -> None:
    """matrix[x][x'] bounds T_x by T_x', not the other way round (context-aware LDP, Def. 2; errata C1)."""
    policy = Pairwise(Domain(["x", "y"]), [[0, "ln 2"], ["ln 5", 0]])
    assert policy.allows([2, 1])
    assert not policy.allows([2 + TINY, 1])
    assert policy.allows([1, 5])
    assert not policy.allows([1, 5 + TINY])
    one_way = Pairwise(Domain(["x", "y"]), {("x", "y"): 0})
    assert one_way.allows([0, 1])
    assert not one_way.allows([1, 0])


def test_zero_likelihoods() -> None:
    policy = Uniform(ABC, "1000")
    assert policy.allows([0, 0, 0])
    assert policy.worst([0, 0, 0]).names is None
    assert str(policy.worst([0, 0, 0])) == "nothing is constrained"
    assert not policy.allows([0, 0, Fraction(1, 10**1000)])
    worst = policy.worst([1, 0, 1])
    assert worst.excess == math.inf
    assert worst.names is not None
    assert worst.names[1] == "b"
    assert "likelihood ratio infinite exceeds" in str(worst)
    assert Uniform(ABC, "inf").allows([0, 0, 1])
    assert Uniform(ABC, "inf").worst([0, 0, 1]).names is None


@pytest.mark.parametrize("power", [100, 280, 290, 310, 400, 5000])
def test_likelihoods_beyond_doubles(power: int) -> None:
    small = Fraction(1, 10**power)
    limit = Epsilon(f"{power}*ln 10")
    policy = Uniform(ABC, limit)
    assert policy.allows([1, small, small])
    assert policy.allows([small, small**2, small])
    assert not policy.allows([1, small * (1 - TINY), small])
    assert not Uniform(ABC, 1).allows([small, small, 3 * small])
    assert Uniform(ABC, 1).allows([small, small, 2 * small])
    assert policy.worst([1, small / 10, 1]).excess == pytest.approx(math.log(10))


@pytest.mark.parametrize("power", [100, 310, 5000])
def test_a_worst_pair_beyond_doubles_can_be_shown(power: int) -> None:
    small = Fraction(1, 10**power)
    exponent = f"{power * math.log(10):.6g}"
    assert f"likelihood ratio e^{exponent} exceeds e^1 " in str(Uniform(ABC, 1).worst([1, small, 1]))
    assert f"likelihood ratio e^-{exponent} is within e^1 " in str(HighLow(ABC, ["a"], 1).worst([small, 1, 1]))


def test_the_worst_pair_where_e_to_the_level_is_beyond_doubles() -> None:
    policy = Pairwise(Domain(["x", "y"]), [[0, 1000], [800, 0]])
    worst = policy.worst([1, 1])
    assert not worst.violated
    assert worst.excess == -800
    assert worst.names == ("y", "x")


@given(st.integers(3, 5).flatmap(lambda size: matrix_cases(size, finite_levels)), st.data())
def test_a_large_level_does_not_blur_the_small_ones(case: PairCase, data: st.DataObject) -> None:
    x, y = data.draw(st.permutations(range(case.size)))[:2]
    matrix = [[{1: Fraction(10**9)} if (a, b) == (x, y) else level for b, level in enumerate(row)]
              for a, row in enumerate(case.matrix)]  # fmt: skip
    policy = Pairwise(case.policy.domain, [[written(level) for level in row] for row in matrix])
    check(pair_case(policy, lambda a, b: matrix[a][b]), data.draw(columns(case.size)))


def test_the_worst_of_two_violations_beside_a_large_level() -> None:
    policy = Pairwise(ABC, {("a", "b"): "ln 2", ("b", "c"): "ln 2", ("c", "a"): 10**9})
    worst = policy.worst(["2.2", "1", "0.2"])
    assert worst.names == ("b", "c")
    assert worst.excess == pytest.approx(math.log(2.5))


def comparisons(monkeypatch: pytest.MonkeyPatch) -> list[Epsilon]:
    """The levels of all certified comparisons from now on."""
    compared: list[Epsilon] = []

    def counted(left: Fraction, right: Fraction, epsilon: Epsilon) -> bool:
        compared.append(epsilon)
        return exceeds(left, right, epsilon)

    monkeypatch.setattr(pairwise, "exceeds", counted)
    return compared


@pytest.mark.parametrize("share", [0.02, 1.0])
def test_pairs_far_from_their_limit_are_not_compared_exactly(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit asks for the worst pair of thousands of columns: doubles must settle nearly all pairs."""
    size = 60
    compared = comparisons(monkeypatch)
    matrix = random_matrix(size, 5, 3, share)
    policy = Pairwise(Domain.range(size), [["inf" if n < 0 else int(n) for n in row] for row in matrix])
    column = [1 + Fraction(x, 1000) for x in range(size)]
    worst = policy.worst(column)
    assert worst.names is not None
    assert not worst.violated
    assert compared == []


def test_a_violation_hidden_among_ties() -> None:
    """Thousands of pairs stand at the limit; one is beyond it by less than doubles can see."""
    size = 60
    column = [Fraction(1 if x % 2 else 3) for x in range(size)]
    policy = Pairwise(Domain.range(size), [[0 if x == y else "ln 3" for y in range(size)] for x in range(size)])
    assert policy.allows(column)
    column[40] += TINY
    worst = policy.worst(column)
    assert worst.violated
    assert worst.left == 3 + TINY


def test_ties_are_compared_once_per_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair of a geometric column is at its limit or just inside; only the greatest ratio of a level matters."""
    size = 40
    compared = comparisons(monkeypatch)
    policy = Metric(Domain.range(size), "absolute", "ln 2")
    column = [Fraction(2) ** x - (TINY if x % 3 == 1 else 0) for x in range(size)]
    assert policy.worst([Fraction(2) ** x for x in range(size)]).violated is False
    assert sorted(compared) == [Epsilon("ln 2") * n for n in range(1, size)]
    # 2^(x+1) is more than twice 2^x - TINY.
    worst = policy.worst(column)
    assert worst.violated
    assert worst.left / worst.right > 2 ** (worst.names[0] - worst.names[1])  # type: ignore[index, operator]


def test_likelihoods_of_every_type_are_read_as_written() -> None:
    policy = Uniform(ABC, "ln 3")
    assert policy.allows([0.1, 0.3, "0.2"])  # 0.3 > 3·0.1 in doubles
    assert policy.allows(np.array([0.1, 0.3, 0.2]))  # type: ignore[arg-type]
    assert policy.allows([Decimal("0.1"), Fraction(3, 10), "1/5"])
    assert not policy.allows(["0.1", Decimal("0.30000000000000000000000000001"), 0.2])


@pytest.mark.parametrize("wrong", [math.nan, math.inf, None, "x", True, "1/0", Decimal("Infinity")], ids=repr)
def test_a_likelihood_that_is_no_number_is_refused_by_name(wrong: Any) -> None:
    assert "'b'" in refusal(Uniform(ABC, 1).allows, [1, wrong, 1])


def test_bad_likelihoods() -> None:
    policy = Uniform(ABC, 1)
    assert (
        refusal(policy.allows, [1, 1])
        == "Uniform: likelihoods must have 3 entries, one per value of the domain; got 2 entries"
    )
    assert refusal(policy.worst, [1, 1, -1]).startswith("Uniform: the likelihood of 'c' must be at least 0")


# -- large domains: a few representatives of each class stand for all --------------------------------------

MANY = 20_000


@pytest.mark.slow
def test_a_large_uniform_policy() -> None:
    policy = Uniform(Domain.range(MANY), "ln 3")
    assert policy.least == (Epsilon("ln 3"), policy.least[1])
    assert policy.least[1][0] != policy.least[1][1]
    column = [Fraction(2)] * MANY
    column[123], column[MANY - 1] = Fraction(3), Fraction(1)
    assert policy.allows(column)
    column[123] += TINY
    worst = policy.worst(column)
    assert worst.violated
    assert worst.names == (123, MANY - 1)


@pytest.mark.slow
def test_a_large_block_policy() -> None:
    blocks = [x % 50 for x in range(MANY)]
    within: list[Any] = ["ln 3"] * 49 + ["ln 2"]
    policy = Blocks(Domain.range(MANY), blocks, within)
    column = [Fraction(10 ** (x % 50)) for x in range(MANY)]
    column[7] *= 3
    assert policy.allows(column)
    column[49] *= 2
    assert policy.allows(column)
    column[49] *= 1 + TINY
    worst = policy.worst(column)
    assert worst.violated
    assert worst.names is not None
    assert worst.names[0] == 49
    assert isinstance(worst.names[1], int)
    assert worst.names[1] % 50 == 49
    assert policy.greatest_effective[0] == INFINITE
    assert Blocks(Domain.range(MANY), blocks, within, across="ln 4").greatest_effective[0] == Epsilon("ln 4")
    assert policy.least[0] == Epsilon("ln 2")
    assert {x % 50 for x in policy.least[1]} == {49}


@pytest.mark.slow
def test_a_large_high_low_policy() -> None:
    policy = HighLow(Domain.range(MANY), range(0, MANY, 1000), "ln 3")
    column = [Fraction(1)] * MANY
    column[1] = Fraction(10**9)
    column[5000] = Fraction(3)
    assert policy.allows(column)
    column[17] -= TINY
    worst = policy.worst(column)
    assert worst.violated
    assert worst.names == (5000, 17)
    with pytest.raises(LimitExceeded, match="20000 values"):
        policy.epsilon_matrix()


# -- Metric ------------------------------------------------------------------------------------------------


def test_named_distances() -> None:
    numbers = Domain([0.1, 0.3, 2.0])
    absolute = Metric(numbers, "absolute", 10)
    assert [absolute.distance(0, y) for y in range(3)] == [0, Fraction(1, 5), Fraction(19, 10)]
    assert absolute.epsilon_between(0, 1) == Epsilon(2)
    discrete = Metric(ABC, "discrete", "ln 3")
    assert [[discrete.epsilon_between(x, y) for y in range(3)] for x in range(3)] == [
        [Uniform(ABC, "ln 3").epsilon_between(x, y) for y in range(3)] for x in range(3)
    ]
    by_function = Metric(Domain([1, 5, 9]), lambda a, b: abs(a - b), 1)
    assert by_function.distance(0, 2) == 8
    array = Metric(ABC, np.array([[0, 0.1, 1], [0.1, 0, 1], [1, 1, 0]]), 1)
    assert array.epsilon_between(0, 1) == Epsilon("0.1")


def test_kilometres_are_rounded_down_and_right_to_a_metre() -> None:
    """One degree of latitude on a sphere of radius 6371.0088 km is 111.195 km."""
    grid = Domain.grid(latitude=(0, 2), longitude=(0, 2), rows=2, columns=2)
    policy = Metric(grid, "km", 1)
    assert policy.distance(0, 2) == Fraction("111.195")
    assert policy.distance(0, 2) == policy.distance(2, 0) == policy.distance(1, 3)
    along = float(policy.distance(0, 1))  # at half a degree north
    assert along == pytest.approx(111.195 * math.cos(math.radians(0.5)), abs=2e-3)
    assert policy.distance(0, 0) == 0


def test_distances_of_mixed_types_that_are_one_number() -> None:
    half = Metric(ABC, [["0", "1/2", "1"], ["0.5", "0", "1"], ["1", "1", "0"]], 1)
    assert half.epsilon_between(0, 1) == half.epsilon_between(1, 0) == Epsilon("1/2")
    mixed = Metric(ABC, [[0, "1/2", 1], [0.5, 0, Decimal(1)], ["1.0", Fraction(1), 0]], 1)
    assert mixed == half


def test_a_distance_of_zero_makes_values_indistinguishable() -> None:
    for epsilon in ("1", "inf"):
        policy = Metric(ABC, [[0, 0, 1], [0, 0, 1], [1, 1, 0]], epsilon)
        assert policy.epsilon_between(0, 1) == ZERO
        assert policy.allows([2, 2, 2])
        assert not policy.allows([2, 2 + TINY, 2])


@pytest.mark.parametrize("distance", [10**7, 10**13, 10**300], ids=["1e7", "1e13", "1e300"])
def test_a_level_too_large_to_compute_with_is_refused_or_decided(distance: int) -> None:
    with contextlib.suppress(InvalidInput):
        policy = Metric(ABC, [[0, 1, distance], [1, 0, distance], [distance, distance, 0]], 1)
        assert policy.allows([1, 1, 10**100])
        assert not policy.allows([1, 3, 1])


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [-1, math.nan, "-0.1", None, "", True, "ln 1/2"], ids=repr)
def test_a_bad_epsilon_is_refused_in_the_name_of_the_policy(epsilon: Any) -> None:
    got = f"got {epsilon!r}"
    makers: dict[str, Any] = {
        "Uniform: epsilon ": lambda: Uniform(ABC, epsilon),
        "HighLow: epsilon ": lambda: HighLow(ABC, ["a"], epsilon),
        "Blocks: epsilon ": lambda: Blocks(ABC, ["x", "x", "y"], epsilon),
        "Blocks: epsilon of block 1 ": lambda: Blocks(ABC, ["x", "x", "y"], [1, epsilon]),
        "Blocks: across ": lambda: Blocks(ABC, ["x", "x", "y"], 1, across=epsilon),
        "Metric: epsilon ": lambda: Metric(ABC, "discrete", epsilon),
        "Secret: epsilon ": lambda: Secret(Domain.product(S=[1, 2], U=[1, 2]), "S", epsilon, Anything()),
        "Pairwise: the matrix at ('b', 'c') ": lambda: Pairwise(ABC, [[0, 1, 1], [1, 0, epsilon], [1, 1, 0]]),
        "Pairwise: the matrix at ('c', 'a') ": lambda: Pairwise(ABC, {("a", "b"): 1, ("c", "a"): epsilon}),
    }
    for start, make in makers.items():
        message = refusal(make)
        assert message.startswith(start)
        assert message.endswith(got)


@pytest.mark.parametrize(
    ("matrix", "culprit"),
    [
        ([[0, 1], [1, 0]], "2 rows of length 2"),
        ([[0, 1, 1], [1, 0, 1]], "2 rows of length 3"),
        ([[0, 1, 1], [1, 0], [1, 1, 0]], "3 rows of length 2, 3"),
        ([], "no rows"),
        (None, "NoneType"),
        (np.zeros((3, 2)), "3 rows of length 2"),
        ([[0, 1, 1], [1, 0, -1], [1, 1, 0]], "('b', 'c')"),
        (np.array([[0, 1, 1], [1, 0, 1], [-0.5, 1, 0]]), "('c', 'a')"),
        (np.array([[0, 1, 1], [1, 0, math.nan], [1, 1, 0]]), "('b', 'c')"),
        ([[0, 1, 1], [1, "1/5", 1], [1, 1, 0]], "('b', itself)"),
        ([[0, 1, 1], [1, 0, 1], [1, 1, math.inf]], "('c', itself)"),
        ({("a", "a"): 1}, "('a', itself)"),
        ({("a", "z"): 1}, "'z'"),
        ({"ab": 1}, "'ab'"),
        ({("a", "b", "c"): 1}, "('a', 'b', 'c')"),
        ({("a", "b"): "x"}, "('a', 'b')"),
        ([[0, {}, 1], [1, 0, 1], [1, 1, 0]], "('a', 'b')"),
    ],
)
def test_bad_matrices(matrix: Any, culprit: str) -> None:
    assert culprit in refusal(Pairwise, ABC, matrix)


def test_a_matrix_may_be_an_array_of_any_number_type() -> None:
    expected = Pairwise(ABC, [[0, "0.1", "inf"], ["0.1", 0, 2], ["inf", 2, 0]])
    numbers = [[0, 0.1, math.inf], [0.1, 0, 2], [math.inf, 2, 0]]
    assert Pairwise(ABC, np.array(numbers)) == expected
    assert Pairwise(ABC, np.array(numbers, dtype=object)) == expected
    assert Pairwise(ABC, np.array(numbers, dtype=np.float32)) == expected
    sparse = {("a", "b"): 0.1, ("b", "a"): "1/10", ("b", "c"): 2, ("c", "b"): Fraction(2), ("a", "a"): 0}
    assert Pairwise(ABC, sparse) == expected
    assert Pairwise(ABC, np.array([["0", "0.1", "inf"], ["0.1", "0", "2"], ["inf", "2", "0"]])) == expected


def test_domains_too_large_for_a_matrix() -> None:
    large = Domain.range(5000)
    assert "at most 4096 values; got 5000" in refusal(Pairwise, large, {})
    assert "at most 4096 values; got 5000" in refusal(Metric, large, "discrete", 1)


@pytest.mark.parametrize(
    ("blocks", "epsilon", "culprit"),
    [
        ([["a", "b"], ["b", "c"]], 1, "'b' in blocks 0 and 1"),
        ([["a", "a"], ["b", "c"]], 1, "'a' in block 0 twice"),
        ([["a"], ["c"]], 1, "no block for 'b'"),
        ([["a"]], 1, "no block for 'b' and 1 more value"),
        ([["a", "b", "c"], []], 1, "block 1"),
        ([["a", "b"], ["z"]], 1, "'z'"),
        (["x", "y"], 1, "3 block labels, one per value; got 2 labels"),
        (["x", "y", "x", "y"], 1, "3 block labels, one per value; got 4 labels"),
        ([], 1, "got 0 labels"),
        ([["a", "b"], ["c"]], [1], "a list of 2 epsilons, one per block; got 1 epsilon"),
        ([["a", "b"], ["c"]], [1, 2, 3], "a list of 2 epsilons, one per block; got 3 epsilons"),
        (["x", "x", "x"], [1, 1], "a list of 1 epsilon, one per block; got 2 epsilons"),
        (5, 1, "got 5"),
    ],
    ids=repr,
)
def test_bad_blocks(blocks: Any, epsilon: Any, culprit: str) -> None:
    message = refusal(Blocks, ABC, blocks, epsilon)
    assert culprit in message


@pytest.mark.parametrize(
    "blocks", [[{"a", "c"}, {"b"}], (["a", "c"], ["b"]), ["x", "y", "x"], "xyx", [7, 1, 7]],

)  # fmt: skip
def test_one_partition_written_in_many_ways(blocks: Any) -> None:
    assert Blocks(ABC, blocks, 1) == Blocks(ABC, [["a", "c"], ["b"]], 1)


def test_blocks_are_numbered_by_first_appearance() -> None:
    policy = Blocks(ABC, [["c"], ["b", "a"]], ["ln 2", "ln 3"])
    assert policy.block_of.tolist() == [0, 0, 1]
    assert policy.epsilons == (Epsilon("ln 3"), Epsilon("ln 2"))
    policy.block_of[0] = 1  # a copy: the policy stays what it is
    assert policy.block_of.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("sensitive", "culprit"),
    [
        ([], "name at least one value"),
        (["z"], "'z'"),
        (["a", "b", "a"], "name each value once; got 'a'"),
        ("a", "be a list of values; got 'a'"),
        ("ab", "be a list of values; got 'ab'"),
        (b"ab", "be a list of values; got b'ab'"),
        ([0], "got 0"),
        ([None], "got None"),
        (5, "be a list of values; got 5"),
    ],
    ids=repr,
)
def test_bad_sensitive_values(sensitive: Any, culprit: str) -> None:
    assert culprit in refusal(HighLow, ABC, sensitive, 1)


def test_sensitive_values_are_kept_in_domain_order() -> None:
    policy = HighLow(ABC, iter(["c", "a"]), 1)
    assert policy.sensitive == ["a", "c"]
    assert policy.is_sensitive.tolist() == [True, False, True]
    policy.is_sensitive[1] = True
    assert policy.sensitive == ["a", "c"]


@pytest.mark.parametrize(
    ("distance", "culprit"),
    [
        ([[0, 1, 2], [1, 0, 1], [3, 1, 0]], "d('a', 'c')"),
        ([[0, 1, 1], [1, 0, -1], [1, -1, 0]], "a negative d('b', 'c')"),
        ([[0, 1, 1], [1, 2, 1], [1, 1, 0]], "d('b', 'b')"),
        ([[0, 1], [1, 0]], "3 by 3"),
        ([[0, 1, 1], [1, 0]], "3 by 3"),
        ([[0, 1, 1], [1, 0, math.nan], [1, math.nan, 0]], "d('b', 'c')"),
        ([[0, 1, 1], [1, 0, math.inf], [1, math.inf, 0]], "d('b', 'c')"),
        ([["0", "1", "1"], ["1", "0", "1/0"], ["1", "1/0", "0"]], "d('b', 'c')"),
        ([[0, 1, 1], [1, 0, Decimal("Infinity")], [1, Decimal("Infinity"), 0]], "d('b', 'c')"),
        ([[0, 1, 1], [1, 0, None], [1, None, 0]], "d('b', 'c')"),
        ([[False, 1, 1], [1, 0, 1], [1, 1, 0]], "d('a', 'a')"),
        (lambda a, b: a < b, "d('a', 'a')"),
        ("miles", "got 'miles'"),
        ("absolute", "'absolute' requires numeric labels"),
        ("km", "'km' requires a Domain.grid"),
        (None, "3 by 3"),
        (7, "3 by 3"),
    ],
)
def test_bad_distances(distance: Any, culprit: str) -> None:
    assert culprit in refusal(Metric, ABC, distance, 1)


def test_truth_values_have_no_absolute_distance() -> None:
    assert "numeric labels" in refusal(Metric, Domain([True, False]), "absolute", 1)


@fewer(2)
@given(st.sampled_from(PRIMES), st.integers(1, 5), sizes.flatmap(pair_cases), st.data())
def test_scaling_a_column_changes_nothing(p: int, k: int, case: PairCase, data: st.DataObject) -> None:
    """A cone: all columns of a ray are allowed, or none."""
    column = data.draw(columns(case.size))
    factor = Fraction(p) ** (40 * k - 100)
    first, second = case.policy.worst(column), case.policy.worst([factor * t for t in column])
    assert first.violated == second.violated
    assert first.excess == pytest.approx(second.excess, abs=2e-9)


def test_tuples_of_values_are_blocks_and_other_tuples_are_labels() -> None:
    abc = Domain(["a", "b", "c"])
    assert Blocks(abc, [("a", "b"), ("c",)], 1) == Blocks(abc, [["a", "b"], ["c"]], 1)
    assert Blocks(abc, [(0, 1), (0, 1), (2, 2)], 1) == Blocks(abc, [0, 0, 1], 1)
    with pytest.raises(InvalidInput, match="'c' in blocks 1 and 2"):
        Blocks(abc, [("a", "b"), ("c",), ("c",)], 1)
