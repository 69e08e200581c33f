"""Products: one mechanism per coordinate, audited by ratios and decoded axis by axis."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Epsilon
from sfumato.auditing import stated_columns
from sfumato.errors import InvalidInput, LimitExceeded, UnknownSpec
from sfumato.mechanisms.base import Mechanism, surrogate_of
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.estimators.limits import confidence_limits
from sfumato.mechanisms.estimators.matrix import MatrixEstimator, efficient_estimator
from sfumato.mechanisms.product import nodes as product_nodes
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.binary import BinaryOptimal
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.testing import MechanismContract, check_law

R = sf.Domain.range
SINGER = CyclicDesign.singer(2, 1, 3)
LINE = TableMechanism.from_matrix(R(3), [["2/3", "1/4", "1/12"], ["1/3", "1/3", "1/3"], ["1/12", "1/4", "2/3"]])


def product(*factors: Mechanism) -> ProductMechanism:
    return ProductMechanism(R(int(np.prod([len(factor.domain) for factor in factors]))), factors)


class TestContract(MechanismContract):
    cases = 40
    sizes = (4, 6, 8, 9)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        sizes = {4: (2, 2), 6: (3, 2), 8: (2, 2, 2), 9: (3, 3)}[len(domain)]
        share = epsilon / len(sizes)
        kinds: list[Any] = [
            RandomizedResponse,
            lambda values, level: CyclicDesign(values, level, design=SINGER),
            lambda values, level: BinaryOptimal(values, level, level),
        ]
        return ProductMechanism(domain, [kind(R(size), share) for kind, size in zip(kinds, sizes, strict=False)])

    def test_the_matrix_is_the_law_in_doubles(self) -> None:
        """Check that the matrix, a product of doubles, has the last digits of the law."""
        for mechanism, _ in self.mechanisms(20):
            law = [
                [float(mechanism.probability(y, x)) for y in mechanism.reports()] for x in range(mechanism.domain.size)
            ]
            np.testing.assert_allclose(mechanism.matrix(), law, rtol=1e-15)


# -- the sampler and the law -------------------------------------------------------------------------------


def test_values_and_reports_are_in_row_major_order() -> None:
    certain = [RandomizedResponse(R(size), "inf") for size in (2, 3, 4)]
    cells = sf.Domain.product(a=R(2), b=R(3), c=R(4))
    mechanism = ProductMechanism(cells, certain)
    for x, (a, b, c) in enumerate(itertools.product(range(2), range(3), range(4))):
        assert cells.label(x) == (a, b, c)
        assert mechanism.probability((a * 3 + b) * 4 + c, x) == 1
    values = [(1, 0, 2), (0, 2, 3)]
    assert sf.privatize(mechanism, values).tolist() == cells.encode(values).tolist()


def test_the_law_is_the_product_of_the_laws_of_the_factors() -> None:
    factors = [LINE, RandomizedResponse(R(2), 1), HadamardResponse(R(3), "0.5")]
    mechanism = product(*factors)
    check_law(mechanism)
    outputs, sizes = [factor.outputs for factor in mechanism.factors], mechanism.sizes
    for x, coordinates in enumerate(itertools.product(*map(range, sizes))):
        for y, reports in enumerate(itertools.product(*map(range, outputs))):
            parts = zip(factors, reports, coordinates, strict=True)
            expected = functools.reduce(lambda p, part: p * part[0].probability(*part[1:]), parts, Fraction(1))
            assert mechanism.probability(y, x) == expected


def test_a_changed_order_of_the_digits_is_another_law() -> None:
    class Swapped(ProductMechanism):
        """Factors whose samplers run in the wrong order."""

        def start(self, x: int) -> Any:
            return super().start((x % 3) * 3 + x // 3)

    with pytest.raises(AssertionError, match="does not have the law"):
        check_law(Swapped(R(9), [LINE, RandomizedResponse(R(3), 1)]))


def test_labels_of_the_factors_do_not_matter() -> None:
    named = TableMechanism(sf.Domain(["low", "middle", "high"]), LINE.weights)
    assert product(named, LINE) == product(LINE, LINE)
    assert product(LINE, LINE).parameters()["kind"] == [0, 0]
    assert len(product(LINE, LINE, RandomizedResponse(R(2), 1)).parameters()["kinds"]) == 2


# -- the audit ---------------------------------------------------------------------------------------------


def random_table(generator: random.Random, size: int) -> TableMechanism:
    """A table with zeros and with equal ratios in several reports."""
    rows = [[generator.choice([0, 1, 1, 2, 3, 6]) for _ in range(generator.randrange(2, 5))]]
    rows += [[generator.choice([0, 1, 2, 6]) for _ in rows[0]] for _ in range(size - 1)]
    rows = [[*row[:-1], row[-1] + 1] for row in rows]
    return TableMechanism.from_matrix(R(size), [[Fraction(weight, sum(row)) for weight in row] for row in rows])


def random_factor(generator: random.Random, size: int) -> Mechanism:
    level = generator.choice(["0", "0.3", "ln 2", "ln 6"])
    kinds: list[Callable[[], Mechanism]] = [
        lambda: RandomizedResponse(R(size), level),
        lambda: HadamardResponse(R(size), level),
        lambda: CyclicDesign(R(size), level, design=SINGER),
        lambda: random_table(generator, size),
        lambda: random_table(generator, size),
    ]
    return generator.choice(kinds)()


def random_policy(generator: random.Random, domain: sf.Domain) -> sf.Policy:
    size = len(domain)
    levels = generator.choice([["ln 2", "ln 3", "ln 6", "inf"], ["1/2", "2", "7/2"], ["1", "ln 6", "inf"], ["inf"]])
    matrix = [[0 if x == y else generator.choice(levels) for y in range(size)] for x in range(size)]
    return generator.choice([sf.Pairwise(domain, matrix), sf.Uniform(domain, generator.choice(levels))])


@pytest.mark.slow
def test_the_audit_finds_the_worst_report_of_any_policy_on_pairs() -> None:
    generator = random.Random(11)
    verdicts = []
    for _ in range(120):
        sizes = generator.choice([(2, 3), (3, 2), (2, 2, 2), (4, 2)])
        mechanism = product(*(random_factor(generator, size) for size in sizes))
        policy = random_policy(generator, mechanism.domain)
        columns = zip(*mechanism.channel().rows, strict=True)
        worst = max((policy.worst(column) for column in columns), key=lambda constraint: constraint.rank)
        stated = list(stated_columns(mechanism, policy))
        assert len(stated) == 1
        short = policy.worst(stated[0][1])
        assert (short.violated, short.names is None) == (worst.violated, worst.names is None)
        assert short.excess == worst.excess
        verdicts.append(worst.violated)
    assert 10 < sum(verdicts) < 110


def test_a_sum_is_obeyed_exactly_if_every_factor_obeys_its_part() -> None:
    cells = sf.Domain.product(row=R(3), column=R(3))
    steps = sf.Metric(R(3), "absolute", "ln 2")
    line = TableMechanism.from_matrix(R(3), [[4, 1, 1], [2, 2, 2], [1, 1, 4]] @ np.eye(3) / 6, policy=steps)
    assert -1e-15 < sf.audit(line, steps).worst.excess <= 0
    mechanism = ProductMechanism(cells, [line, line])
    for level, holds in (("ln 2", True), ("0.693147180559945", False)):
        policy = sf.Metric(cells, lambda a, b: abs(a[0] - b[0]) + abs(a[1] - b[1]), level)
        certificate = sf.audit(mechanism, policy)
        assert certificate.holds is holds
        assert sf.verify(certificate) == certificate
    assert not sf.audit(mechanism, sf.Uniform(cells, "ln 15")).holds
    assert sf.audit(mechanism, sf.Uniform(cells, "ln 16")).holds


def test_a_large_product_is_audited_by_ratios() -> None:
    line = sf.Metric(R(16), "absolute", 1)
    factor = sf.design(line, mechanism="exponential")
    mechanism = product(factor, factor)
    places = np.arange(256)
    rows, columns = places // 16, places % 16
    distance = abs(np.subtract.outer(rows, rows)) + abs(np.subtract.outer(columns, columns))
    for level in ("1", "0.999999999"):
        policy = sf.Metric(mechanism.domain, distance, level)
        (column,) = stated_columns(mechanism, policy)
        assert policy.worst(column[1]).violated is (level != "1")
    # Other policies compare all reports.
    prior = sf.Prior(mechanism.domain, ["1/256"] * 256, 1)
    assert mechanism.worst_columns(prior) is None
    with pytest.raises(LimitExceeded, match="too many outputs"):
        next(stated_columns(product(factor, factor, factor), sf.Prior(R(4096), ["1/4096"] * 4096, 1)))


def test_a_sampler_with_many_branches_is_read_over_fewer_values() -> None:
    many = TableMechanism(R(2), np.full((2, 1024), 2**52))
    mechanism = product(many, many, RandomizedResponse(R(2), 1))
    surrogate = surrogate_of(mechanism)
    assert surrogate is not None
    check_law(surrogate)
    assert surrogate.outputs <= 36
    small = product(RandomizedResponse(R(30), 1), LINE).audit_surrogate()
    assert [factor.name for factor in small.factors] == ["randomized-response", "table"]
    assert small.factors[1] == LINE


def test_audits_read_every_coordinate_of_every_factor() -> None:
    mechanism = product(RandomizedResponse(R(7), 1), LINE)
    read = [divmod(x, 3) for x in mechanism.representatives()]
    assert {row for row, _ in read} == set(range(7))
    assert {column for _, column in read} == set(range(3))


def test_levels_of_the_factors_add_up() -> None:
    assert product(RandomizedResponse(R(3), 1), HadamardResponse(R(4), "ln 2")).classical_epsilon() == Epsilon("1+ln 2")
    assert product(RandomizedResponse(R(3), 1), LINE).classical_epsilon() is None


# -- the estimate ------------------------------------------------------------------------------------------


PRODUCTS: dict[str, Sequence[Mechanism]] = {
    "tables": (LINE, TableMechanism.from_matrix(R(2), [["1/2", "1/3", "1/6"], ["1/6", "1/6", "2/3"]])),
    "three factors": (BinaryOptimal(R(2), 1, 2), RandomizedResponse(R(3), 2), LINE),
    "classical": (HadamardResponse(R(3), 1), CyclicDesign(R(4), 2, design=SINGER)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_estimator_is_the_least_squares_estimator_of_the_whole_law(name: str) -> None:
    mechanism = product(*PRODUCTS[name])
    estimator, whole = mechanism.estimator, MatrixEstimator.of(mechanism)
    assert efficient_estimator(mechanism) is estimator
    generator = np.random.default_rng(3)
    size, outputs = len(mechanism.domain), mechanism.outputs
    p, fractions = generator.dirichlet(np.ones(size)), generator.dirichlet(np.ones(outputs))
    weights, of_outputs = generator.normal(size=size), generator.normal(size=outputs)
    same = functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    same(estimator.frequencies(estimator.expected_counts(p)), p)
    for method, argument in (
        ("frequencies", fractions),
        ("expected_counts", p),
        ("variances", p),
        ("covariance", p),
        ("output_scores", weights),
        ("adjoint", of_outputs),
    ):
        same(getattr(estimator, method)(argument), getattr(whole, method)(argument))
    # Scores are in another order.
    for power in range(4):
        (scores, at_value), (of_whole, law) = estimator.score_values(), whole.score_values()
        same(np.sum(at_value * scores**power, axis=1), np.sum(law * of_whole**power, axis=1))
        at_p, of_law = (each.score_probabilities(p) for each in (estimator, whole))
        same(np.sum(at_p * scores**power, axis=1), np.sum(of_law * of_whole**power, axis=1))
    for method in ("second_moments", "score_bounds"):
        same(getattr(estimator, method)(), getattr(whole, method)())
    assert estimator.variance(weights, p) == pytest.approx(whole.variance(weights, p), rel=1e-9)
    assert estimator.condition == pytest.approx(whole.condition, rel=1e-9)


def test_design_priors_of_the_factors_multiply() -> None:
    priors = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    factors = [TableMechanism.from_matrix(R(3), LINE.matrix(), design_prior=prior) for prior in priors]
    mechanism, expected = product(*factors), np.asarray(np.kron(*priors), np.float64)
    assert mechanism.risk(1, expected) == pytest.approx(
        float(np.trace(MatrixEstimator.of(mechanism, expected).covariance(expected))), rel=1e-9
    )


def test_the_risk_is_a_product_of_the_risks_of_the_factors() -> None:
    factors = PRODUCTS["three factors"]
    size = 2 * 3 * 3
    expected = np.prod([factor.risk(1) + 1 / len(factor.domain) for factor in factors]) - 1 / size
    assert product(*factors).risk(1) == pytest.approx(expected, rel=1e-12)


def test_a_factor_that_tells_nothing_leaves_no_estimate() -> None:
    mechanism = product(LINE, RandomizedResponse(R(2), 0))
    assert mechanism.risk(1) == float("inf")
    with pytest.raises(NotIdentifiable, match="distinguish all values"):
        _ = mechanism.estimator


def test_a_survey_is_estimated_with_intervals() -> None:
    mechanism = product(RandomizedResponse(R(3), 3), LINE)
    truth = np.array([0.3, 0.1, 0.05, 0.05, 0.2, 0.05, 0.05, 0.1, 0.1])
    values = np.random.default_rng(5).choice(9, 40_000, p=truth)
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(2))
    counts = sf.aggregate(mechanism, reports)
    for method in ("unbiased", "efficient", "simplex", "mle"):
        estimate = sf.estimate(mechanism, counts, method)
        # Five standard errors for nine values: the seeds are fixed, and other seeds fail with probability 5e-6.
        assert (abs(estimate.frequencies - truth) <= 5 * estimate.standard_errors).all()
    low, high = sf.estimate(mechanism, counts).interval(0.999999)
    assert ((low <= truth) & (truth <= high)).all()


def test_many_scores_are_shared_between_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(2).dirichlet(np.ones(40), 3) + 0.3 * np.eye(3, 40)
    table = TableMechanism.from_matrix(R(3), matrix / matrix.sum(axis=1, keepdims=True))
    p = np.arange(1.0, 10) / 45
    whole = product(table, table).estimator
    (exact,) = whole.score_laws(p, 100)
    assert exact.score_values.shape == (9, 1600)
    np.testing.assert_allclose(exact.spread, 1, rtol=1e-9)
    monkeypatch.setattr(product_nodes, "_MOST_SCORES", 9 * 20**2)
    (law,) = (estimator := product(table, table).estimator).score_laws(p, 100)
    assert law.score_values.shape == (9, 400)
    # Means, extreme scores and probabilities are kept, and the spread accounts for the rest.
    np.testing.assert_allclose(np.sum(law.at_value * law.score_values, axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(np.sum(law.in_group * law.score_values, axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(np.sum(estimator.score_probabilities(p) * law.score_values, axis=1), p, rtol=1e-9)
    np.testing.assert_allclose(law.score_values.max(axis=1), exact.score_values.max(axis=1))
    np.testing.assert_allclose(law.score_values.min(axis=1), exact.score_values.min(axis=1))
    assert (law.spread > 0.9).all()
    assert (law.spread < 1).all()
    low, high = confidence_limits([law], p, 0.05)
    for near, limits in zip((low, high), confidence_limits([exact], p, 0.05), strict=True):
        np.testing.assert_allclose(near, limits, atol=0.02)


@pytest.mark.slow
def test_large_products_have_intervals_without_the_whole_law() -> None:
    mechanism = product(RandomizedResponse(R(64), 5), RandomizedResponse(R(64), 5))
    p = np.full(4096, 1 / 4096)
    assert mechanism.estimator.variances(p).sum() == pytest.approx(mechanism.risk(1), rel=1e-9)
    with pytest.raises(LimitExceeded, match="matrix of product"):
        mechanism.matrix()
    (law,) = mechanism.estimator.score_laws(p, 10)
    assert law.score_values.size <= 2**22
    assert product_nodes.node_counts([64, 64], [64, 64]) == [32, 32]
    assert product_nodes.node_counts([64, 4], [200, 3]) == [200, 3]
    with pytest.raises(LimitExceeded, match="no confidence intervals for 2,500,000 values"):
        product_nodes.node_counts([2500, 1000], [2500, 1000])


# -- invalid parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "factors", "message"),
    [
        (R(3), [LINE], "factors must be two or more mechanisms; got 1 mechanism"),
        (R(9), "LINE", "factors must be a list of two or more mechanisms"),
        (R(9), [LINE, "rr"], "factor 1 must be of one of the classes RandomizedResponse"),
        (R(9), [LINE, SubsetSelection(R(3), 1, 2)], "factor 1 must be of one of"),
        (R(3), [LINE, RandomizedResponse(R(1), 1)], "factor 1 must be over at least two values"),
        (R(8), [LINE, LINE], r"sizes whose product is 8, the number of values; got the sizes \(3, 3\)"),
        (R(2**24), [RandomizedResponse(R(2**12), 1)] * 2, "have at most 4,194,304 reports together; got 16,777,216"),
    ],
)
def test_invalid_factors_are_refused(domain: sf.Domain, factors: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ProductMechanism(domain, factors)


def test_a_subclass_of_a_factor_is_refused() -> None:
    class Response(RandomizedResponse):
        """A response that may sample differently."""

    class Table(TableMechanism):
        """A table that may sample differently."""

    for mine in (Response(R(2), 1), Table(R(3), LINE.weights)):
        with pytest.raises(InvalidInput, match="factor 0 must be of one of"):
            product(mine, LINE)


def test_a_factor_keeps_its_provenance() -> None:
    binary = BinaryOptimal(sf.Domain(["no", "yes"]), 1, 2)
    mechanism = product(binary, LINE)
    assert mechanism.factors[0] == TableMechanism(R(2), binary.weights, provenance=binary.provenance)
    assert sf.mechanism_from_spec(mechanism.to_json()) == mechanism


def test_invalid_specs_are_refused_by_name() -> None:
    spec = product(LINE, RandomizedResponse(R(2), 1)).spec
    kinds = spec["parameters"]["kinds"]

    def read(**parameters: Any) -> Mechanism:
        return sf.mechanism_from_spec({**spec, "parameters": {**spec["parameters"], **parameters}})

    assert read() == product(LINE, RandomizedResponse(R(2), 1))
    for name in ("subset-selection", "binary-optimal", "product", "unheard-of", 3):
        with pytest.raises(UnknownSpec, match="the mechanism of a factor must be one of randomized-response"):
            read(kinds=[{**kinds[0], "mechanism": name}, kinds[1]])
    for parameters, message in (
        ({"kinds": {}}, "have the lists kinds and kind"),
        ({"more": []}, "have the lists kinds and kind"),
        ({"kind": [0, 2]}, "kind must be integers in 0 … 1"),
        ({"kind": [1, 0]}, "must be"),
        ({"kinds": [{"mechanism": "table"}, kinds[1]]}, "a factor must have the keys mechanism, size and parameters"),
    ):
        with pytest.raises(InvalidInput, match=message):
            read(**parameters)
