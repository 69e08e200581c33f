"""The contract of every mechanism, their published values, and their refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.interpreter import sampler_law
from sfumato.errors import InvalidInput, LimitExceeded, UnknownSpec
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.inclusion import InclusionEstimator
from sfumato.mechanisms.estimators.mixture import MixtureEstimator
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection, best_subset_size
from sfumato.mechanisms.table.alias import TOTAL, AliasTable
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.testing import MechanismContract
from support.published import reference


class TestRandomizedResponse(MechanismContract):
    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return RandomizedResponse(domain, epsilon)


class TestUnarySymmetric(MechanismContract):
    sizes = range(2, 8)  # each value more doubles the states of the sampler

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return UnaryEncoding(domain, epsilon)


class TestUnaryOptimized(TestUnarySymmetric):
    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return UnaryEncoding(domain, epsilon, optimized=True)


class TestSubsetSelection(MechanismContract):
    sizes = range(2, 8)  # each value more doubles the states of the sampler; eight are below

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return SubsetSelection(domain, epsilon)


class TestSubsetSelectionOfHalf(TestSubsetSelection):
    cases, sizes = 60, range(2, 9)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return SubsetSelection(domain, epsilon, size=max(1, len(domain) // 2))


class TestHadamardResponse(MechanismContract):
    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HadamardResponse(domain, epsilon)


class TestHadamardInTwoColumns(MechanismContract):
    cases = 60

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return HadamardResponse(domain, epsilon, block_size=2, blocks=len(domain) + 3)


class TestTable(MechanismContract):
    """A table made from the doubles of another mechanism, fitted to the policy."""

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        matrix = RandomizedResponse(domain, epsilon).matrix()
        return TableMechanism.from_matrix(domain, matrix, policy=sf.Uniform(domain, epsilon))


class TestTableOfHadamard(TestTable):
    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        matrix = HadamardResponse(domain, epsilon).matrix()
        return TableMechanism.from_matrix(domain, matrix, policy=sf.Uniform(domain, epsilon))


def classical(domain: sf.Domain, epsilon: Any) -> list[Mechanism]:
    return [
        RandomizedResponse(domain, epsilon),
        UnaryEncoding(domain, epsilon),
        UnaryEncoding(domain, epsilon, optimized=True),
        SubsetSelection(domain, epsilon),
        HadamardResponse(domain, epsilon),
    ]


# -- large domains: small cases miss width bugs ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RandomizedResponse, HadamardResponse])
@pytest.mark.parametrize("x", [0, 65_537, 99_999])
def test_every_branch_of_one_value_among_100_000(kind: Any, x: int) -> None:
    mechanism = kind(sf.Domain.range(100_000), 1)
    law, _ = sampler_law(mechanism, x)
    assert sum(law.values()) == 1
    assert len(law) == mechanism.outputs
    assert all(law[mechanism.report_format.encode(y)] == mechanism.probability(y, x) for y in mechanism.reports())


@pytest.mark.slow
def test_every_branch_of_hadamard_with_wide_words_and_several_blocks() -> None:
    mechanism = HadamardResponse(sf.Domain.range(150_000), 2, block_size=2**17)
    assert (mechanism.blocks, mechanism.layout.frame_bits) == (2, 128)
    law, _ = sampler_law(mechanism, 140_000)
    assert all(law[mechanism.report_format.encode(y)] == mechanism.probability(y, 140_000) for y in mechanism.reports())


# -- zero, infinite and extreme budgets --------------------------------------------------------------------


def test_no_budget_is_exactly_uniform() -> None:
    domain = sf.Domain.range(5)
    for mechanism in classical(domain, 0):
        laws = {tuple(sorted(sampler_law(mechanism, x)[0].items())) for x in range(5)}
        assert len(laws) == 1, mechanism
        assert sf.audit(mechanism, sf.Uniform(domain, 0)).holds
        assert math.isinf(mechanism.risk(100))


def test_a_budget_too_small_for_64_bits_is_still_private() -> None:
    domain = sf.Domain.range(6)
    for epsilon in ("1e-19", "1e-25", Fraction(1, 10**40)):
        for mechanism in classical(domain, epsilon):
            assert sf.audit(mechanism, sf.Uniform(domain, epsilon)).holds, mechanism


def test_an_infinite_budget_reports_the_value() -> None:
    response = RandomizedResponse(sf.Domain.range(4), "inf")
    for x in range(4):
        assert sampler_law(response, x)[0] == {bytes([x]): 1}
    for mechanism in classical(sf.Domain.range(4), "inf"):
        assert sf.audit(mechanism, sf.Uniform(mechanism.domain, "inf")).holds
        assert not sf.audit(mechanism, sf.Uniform(mechanism.domain, 1000)).holds


def test_a_huge_finite_budget_never_becomes_certainty() -> None:
    domain = sf.Domain.range(3)
    for mechanism in classical(domain, 200):
        assert sf.audit(mechanism, sf.Uniform(domain, 200)).holds, mechanism


# -- published values --------------------------------------------------------------------------------------


def increasing(k: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.arange(1, k + 1) / (k * (k + 1) / 2)


def test_randomized_response_and_rappor_reproduce_the_reference_values() -> None:
    for case in reference("krr_rappor"):
        domain = sf.Domain.range(case["k"])
        rr = RandomizedResponse(domain, case["eps"])
        assert float(rr.probability(0, 0)) == pytest.approx(case["krr_true"], rel=1e-11)
        assert float(rr.probability(1, 0)) == pytest.approx(case["krr_other"], rel=1e-11)
        assert rr.risk(1) == pytest.approx(case["krr_risk_uniform_n1"], rel=1e-11)
        rappor = UnaryEncoding(domain, case["eps"])
        assert float(rappor.bit_probability(0, 1)) == pytest.approx(case["rappor_flip"], rel=1e-11)
        assert rappor.risk(1, case["p"]) == pytest.approx(case["rappor_risk_at_p_n1"], rel=1e-11)
        for mechanism, key in ((rr, "krr_estimate"), (rappor, "rappor_estimate")):
            estimate = mechanism.estimator.frequencies(np.array(case["T"]) / case["n"])
            assert estimate.tolist() == pytest.approx(case[key], rel=1e-11)


def test_subset_selection_reproduces_the_reference_values() -> None:
    for case in reference("subset_selection"):
        domain, epsilon = sf.Domain.range(case["k"]), case["eps"]
        if "Q" in case:
            mechanism = SubsetSelection(domain, epsilon, case["d"])
            for x, row in enumerate(case["Q"]):
                for members, probability in zip(case["Y"], row, strict=True):
                    report = sum(1 << i for i in members)
                    assert float(mechanism.probability(report, x)) == pytest.approx(probability, rel=1e-11)
            continue
        best = SubsetSelection(domain, epsilon)
        assert best.size == case["d_star"]
        assert best.risk(1) == pytest.approx(case["risk_uniform_n1"], rel=1e-11)
        assert best.risk(1, increasing(case["k"])) == pytest.approx(case["risk_at_p_n1"], rel=1e-11)
        estimator = best.estimator
        assert isinstance(estimator, MixtureEstimator)
        assert estimator.inclusion is not None
        own, other = float(estimator.inclusion.true_probability), float(estimator.inclusion.other)
        assert own == pytest.approx(case["prob_own_included"], rel=1e-11)
        assert 1 / (own - other) == pytest.approx(case["coef_T_over_n"], rel=1e-11)
        assert other / (own - other) == pytest.approx(case["offset"], rel=1e-11)
        for size, risk in case["risk_by_d_n1"].items():
            assert SubsetSelection(domain, epsilon, int(size)).risk(1) == pytest.approx(risk, rel=1e-11)


def test_hadamard_response_reproduces_the_reference_values() -> None:
    for case in reference("hadamard_response_general"):
        mechanism = HadamardResponse(sf.Domain.range(case["k"]), case["eps"], block_size=case["b"], blocks=case["B"])
        probabilities = {float(mechanism.probability(y, 0)) for y in mechanism.reports()}
        assert sorted(probabilities) == pytest.approx([case["prob_out"], case["prob_in"]], rel=1e-11)
        assert 1 / float(mechanism.gamma) == pytest.approx(case["coef"], rel=1e-11)
        assert mechanism.risk(1) == pytest.approx(case["l2_uniform_n1"], rel=1e-11)
        assert mechanism.risk(1, increasing(case["k"])) == pytest.approx(case["l2_risk_n1"], rel=1e-11)
    for case in reference("hadamard_response_best_block"):
        best = HadamardResponse(sf.Domain.range(case["k"]), case["eps"])
        assert (best.blocks, best.block_size) == (case["best_B"], case["best_b"])
        assert best.risk(1) == pytest.approx(case["l2_uniform_n1"], rel=1e-11)
        subset = SubsetSelection(best.domain, case["eps"])
        assert subset.risk(1) == pytest.approx(case["subset_selection_n1"], rel=1e-11)


def test_hadamard_sets_are_the_published_ones() -> None:
    values = reference("hadamard")
    for size in (4, 8):
        mechanism = HadamardResponse(sf.Domain.range(size - 1), 1, block_size=size)
        for row, columns in values[f"S_sets_m{size}"].items():
            x = int(row) - 1
            assert [y + 1 for y in mechanism.reports() if mechanism.in_set(y, x)] == columns


def exact_risk(mechanism: Mechanism, p: list[float]) -> float:
    """n·E|p̂ - p|² of the estimator that inverts the columns' sets, by enumeration of all outputs."""
    matrix = mechanism.matrix()
    k = len(mechanism.domain)
    if isinstance(mechanism, HadamardResponse):
        signs = np.array(
            [
                [
                    0.0 if y // mechanism.block_size != x // (mechanism.block_size - 1)
                    else (1.0 if mechanism.in_set(y, x) else -1.0)
                    for y in mechanism.reports()
                ]
                for x in range(k)
            ]
        )  # fmt: skip
        scores = signs / float(mechanism.gamma)
    else:
        assert isinstance(mechanism, (RandomizedResponse, UnaryEncoding, SubsetSelection))
        estimator = mechanism.estimator
        assert isinstance(estimator, (InclusionEstimator, MixtureEstimator))
        assert estimator.inclusion is not None
        own, other = float(estimator.inclusion.true_probability), float(estimator.inclusion.other)
        held = np.array([[mechanism.in_set(y, x) for y in mechanism.reports()] for x in range(k)])
        scores = (held - other) / (own - other)
    law = np.asarray(p) @ matrix
    mean = scores @ law
    np.testing.assert_allclose(matrix @ scores.T, np.eye(k), atol=1e-9)  # unbiased, value by value
    return float(np.sum(scores**2 @ law) - np.sum(mean**2))


@pytest.mark.parametrize("k", [2, 3, 5, 6])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "ln 7"])
def test_stated_risks_are_exact_and_their_estimators_unbiased(k: int, epsilon: str) -> None:
    p = [2 * (i + 1) / (k * (k + 1)) for i in range(k)]
    for mechanism in classical(sf.Domain.range(k), epsilon):
        assert mechanism.risk(1, p) == pytest.approx(exact_risk(mechanism, p), rel=1e-9), mechanism
        assert mechanism.risk(50, p) == pytest.approx(mechanism.risk(1, p) / 50)


@pytest.mark.parametrize("k", [2, 3, 5, 9, 20])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "ln 7", "4"])
def test_no_distribution_has_more_than_the_worst_risk(k: int, epsilon: str) -> None:
    generator = np.random.default_rng(4)
    candidates = [
        np.full(k, 1 / k),
        *np.eye(k),
        *(generator.dirichlet(np.full(k, a)) for a in (0.1, 1, 10) for _ in range(40)),
    ]
    for mechanism in classical(sf.Domain.range(k), epsilon):
        worst = mechanism.worst_risk(10)
        assert worst is not None
        assert worst >= max(mechanism.risk(10, p) for p in candidates) * (1 - 1e-12), mechanism
        assert worst <= mechanism.risk(10) * 1.5  # and it is the risk somewhere: not far above that at uniform p
    two_blocks = HadamardResponse(sf.Domain.range(4), 1, block_size=4)  # blocks of three values and of one
    steps = np.linspace(0, 1, 2001)
    masses = [two_blocks.risk(1, [m / 3, m / 3, m / 3, 1 - m]) for m in steps]
    assert two_blocks.worst_risk(1) == pytest.approx(max(masses), rel=1e-6)


def test_the_best_subset_size_has_the_least_risk() -> None:
    for k in (2, 3, 5, 7, 12, 40):
        for tenths in range(1, 60, 3):
            epsilon = Epsilon(Fraction(tenths, 10))
            risks = {d: SubsetSelection(sf.Domain.range(k), epsilon, d).risk(1) for d in range(1, k)}
            assert risks[best_subset_size(k, epsilon)] == pytest.approx(min(risks.values()), rel=1e-12), (k, tenths)


def test_the_efficient_risk_of_a_square_table_is_that_of_its_inverse() -> None:
    domain = sf.Domain.range(5)
    response = RandomizedResponse(domain, 1)
    table = TableMechanism.from_matrix(domain, response.matrix())
    p = [0.1, 0.1, 0.2, 0.2, 0.4]
    assert table.risk(10, p) == pytest.approx(response.risk(10, p), rel=1e-9)
    constant = TableMechanism.from_matrix(domain, [[0.5, 0.5]] * 5)
    assert math.isinf(constant.risk(10))


# -- tables ------------------------------------------------------------------------------------------------


def test_alias_tables_give_the_weights_back() -> None:
    generator = np.random.default_rng(3)
    for outputs in (1, 2, 3, 7, 8, 9, 100):
        rows = []
        for _ in range(20):
            cuts = np.sort(generator.integers(0, TOTAL, outputs - 1))
            rows.append(np.diff(np.concatenate([[0], cuts, [TOTAL]])))
        rows.append(np.array([TOTAL] + [0] * (outputs - 1)))
        weights = np.array(rows, dtype=np.int64)
        table = AliasTable.build(weights)
        for row in range(len(rows)):
            given = [0] * table.bins
            for b in range(table.bins):
                given[b] += int(table.thresholds[row, b])
                given[table.aliases[row, b]] += table.capacity - int(table.thresholds[row, b])
            assert given[:outputs] == weights[row].tolist()
            assert not any(given[outputs:])


def test_a_table_keeps_every_positive_entry_and_every_zero() -> None:
    domain = sf.Domain(["a", "b"])
    tiny = 1e-300
    table = TableMechanism.from_matrix(domain, [[1.0, tiny, 0.0], [0.25, 0.25, 0.5]])
    assert table.weights[0].tolist() == [TOTAL - 1, 1, 0]
    assert table.weights[1].tolist() == [TOTAL // 4, TOTAL // 4, TOTAL // 2]


def test_rows_that_must_be_equal_are_made_equal() -> None:
    domain = sf.Domain(["a", "b", "c"])
    policy = sf.Pairwise(domain, {("a", "b"): 0, ("c", "a"): 1, ("a", "c"): 1})
    table = TableMechanism.from_matrix(domain, [[0.7, 0.3], [0.5, 0.5], [0.4, 0.6]], policy=policy)
    assert table.weights[0].tolist() == table.weights[1].tolist()
    assert sf.audit(table, policy).holds


def test_a_matrix_that_breaks_the_policy_is_mixed_until_it_obeys() -> None:
    domain = sf.Domain.range(3)
    policy = sf.Uniform(domain, 1)
    table = TableMechanism.from_matrix(domain, np.eye(3), policy=policy)
    certificate = sf.audit(table, policy)
    assert certificate.holds
    assert sf.audit(TableMechanism.from_matrix(domain, np.eye(3)), policy).holds is False


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda d: RandomizedResponse(d, -1), "epsilon must be at least 0; got -1"),
        (lambda d: RandomizedResponse(d, float("nan")), "epsilon must be"),
        (lambda d: RandomizedResponse(d, 1, threshold=2**64 + 1), "threshold must be an integer"),
        (lambda d: SubsetSelection(d, 1, size=3), r"size must be an integer in \[1, 2\]; got 3"),
        (lambda d: SubsetSelection(d, 1, size=0), "size must be"),
        (lambda d: UnaryEncoding(d, 1, own=1, other=2), "own must be at least other"),
        (lambda d: HadamardResponse(d, 1, block_size=3), "block_size must be a power of two; got 3"),
        (lambda d: HadamardResponse(d, 1, block_size=2, blocks=2), r"blocks must be an integer in \[3,"),
        (lambda d: HadamardResponse(d, 1, blocks=2), "block_size must be given together with blocks"),
        (lambda d: TableMechanism(d, [[TOTAL], [TOTAL]]), "3 rows, one per value"),
        (lambda d: TableMechanism(d, [[TOTAL], [TOTAL], [TOTAL - 1]]), "weights of 'c' must sum to 2"),
        (lambda d: TableMechanism(d, [[TOTAL, 0], [TOTAL, 0], [TOTAL + 1, -1]]), "output 1 for 'c' must be at least 0"),
        (lambda d: TableMechanism(d, [[TOTAL, 0], [TOTAL, 0], [TOTAL]]), "rows must have the same length"),
        (lambda d: TableMechanism.from_matrix(d, [[0.5, 0.5], [1.1, -0.1], [1, 0]]), "'b'.* must be at least 0"),
        (lambda d: TableMechanism.from_matrix(d, [[0.5, 0.5], [0.5, 0.4], [1, 0]]), "row of 'b' must sum to one"),
        (lambda d: TableMechanism.from_matrix(d, [[0.5, 0.5], [float("nan"), 1], [1, 0]]), "'b'.* must be a number"),
        (lambda d: TableMechanism.from_matrix(d, [[1], [1], [1]], policy=sf.Uniform(sf.Domain.range(3), 1)), "policy"),
    ],
)
def test_bad_parameters_are_refused_by_name(build: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        build(sf.Domain(["a", "b", "c"]))


@pytest.mark.parametrize("kind", [SubsetSelection, UnaryEncoding, HadamardResponse])
def test_one_value_is_too_few(kind: Any) -> None:
    with pytest.raises(InvalidInput, match="at least two values"):
        kind(sf.Domain(["only"]), 1)


def test_one_value_needs_no_noise() -> None:
    only = sf.Domain(["only"])
    for mechanism in (RandomizedResponse(only, 1), TableMechanism.from_matrix(only, [[1]])):
        assert sampler_law(mechanism, 0)[0] == {b"": 1}
        assert sf.audit(mechanism, sf.Uniform(only, 0)).holds


def test_risks_refuse_what_is_no_distribution() -> None:
    mechanism = RandomizedResponse(sf.Domain.range(3), 1)
    for p, culprit in (([0.5, 0.5], "3 entries"), ([0.5, 0.6, -0.1], "sum to one"), ([0.5, 0.5, 0.5], "sum to one")):
        with pytest.raises(InvalidInput, match=culprit):
            mechanism.risk(10, p)
    with pytest.raises(InvalidInput, match=r"risk: n must be a whole number from 1 to 2\^53"):
        mechanism.risk(0)


def test_a_large_matrix_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="16000000 entries, more than the limit of 10000000"):
        RandomizedResponse(sf.Domain.range(4000), 1).matrix()


def test_specs_that_are_unknown_or_inconsistent_are_refused() -> None:
    spec = RandomizedResponse(sf.Domain.range(3), 1).spec
    with pytest.raises(UnknownSpec, match=r"mechanism must be one of .*randomized-response.*; got 'magic'"):
        sf.mechanism_from_spec({**spec, "mechanism": "magic"})
    with pytest.raises(UnknownSpec, match="version must be 1; got 2"):
        sf.mechanism_from_spec({**spec, "version": 2})
    with pytest.raises(InvalidInput, match="report must be"):
        sf.mechanism_from_spec({**spec, "report": {"encoding": "index", "bits": 3}})
    with pytest.raises(InvalidInput, match="extra must be None"):
        sf.mechanism_from_spec({**spec, "extra": 1})
    with pytest.raises(InvalidInput, match="all its parts"):
        sf.mechanism_from_spec({**spec, "parameters": {"epsilon": "1", "secret": 1}})
    with pytest.raises(InvalidInput, match="be JSON"):
        sf.mechanism_from_spec("{")
    with pytest.raises(InvalidInput, match="be JSON"):
        sf.mechanism_from_spec("[" * 100_000)
    strange: list[Any] = ["ab", [["epsilon", "1"]], 5, None]
    for wrong in strange:
        with pytest.raises(UnknownSpec, match="mechanism must be one of"):
            sf.mechanism_from_spec({**spec, "mechanism": wrong})
        with pytest.raises(InvalidInput, match="parameters must be a JSON object"):
            sf.mechanism_from_spec({**spec, "parameters": wrong})


def test_a_mechanism_is_known_by_its_spec() -> None:
    a, b = (RandomizedResponse(sf.Domain.range(3), 1) for _ in range(2))
    assert a == b
    assert len({a, b}) == 1
    assert a != RandomizedResponse(sf.Domain.range(3), 2)
    assert a != "something else"
    assert "RandomizedResponse" in repr(a)
    assert sf.mechanism_from_spec(a.to_json()) == a
