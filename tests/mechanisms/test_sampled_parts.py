"""Sampled parts: exact law, audits by parts, unbiased sums of functions of parts, marginals that agree."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Floats
from sfumato.auditing import stated_columns
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.base import HistogramEstimator
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.sampled_parts.mechanism import SampledParts
from sfumato.mechanisms.sampled_parts.restriction import policy_of_part
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import PairwisePolicy
from support.family_examples.sampled_parts import examples
from support.reference import refusal

R = sf.Domain.range
PEOPLE = sf.Domain.product(sex=["f", "m"], age=R(3), job=R(2))


def response(size: int, epsilon: Any = 1) -> RandomizedResponse:
    return RandomizedResponse(R(size), epsilon)


def singles(weights: Any = None) -> SampledParts:
    return SampledParts(PEOPLE, {"sex": response(2), "age": response(3, 2), "job": response(2, "ln 3")}, weights)


def pairs() -> SampledParts:
    parts = {
        ("sex", "age"): ProductMechanism(R(6), [response(2), response(3)]),
        ("sex", "job"): response(4),
        ("age", "job"): response(6),
    }
    return SampledParts(PEOPLE, parts, [1, 2, 2])


def _sums(domain: sf.Domain, axes: tuple[int, ...]) -> Floats:
    """Return a row per cell of a marginal, with ones at the values of the cell."""
    places = np.stack(np.unravel_index(np.arange(len(domain)), domain.shape))
    cells = itertools.product(*(range(domain.shape[axis]) for axis in axes))
    return np.array([(places[list(axes)] == np.reshape(cell, (-1, 1))).all(axis=0) for cell in cells], np.float64)


# -- the law -----------------------------------------------------------------------------------------------------


def test_reports_are_numbered_part_by_part() -> None:
    mechanism = singles([1, 2, 3])
    assert mechanism.outputs == 7
    assert mechanism.names == (("sex",), ("age",), ("job",))
    assert [mechanism.split_report(y) for y in (0, 1, 2, 4, 5, 6)] == [(0, 0), (0, 1), (1, 0), (1, 2), (2, 0), (2, 1)]
    x = PEOPLE.index(("m", 2, 0))
    assert mechanism.probability(1, x) == Fraction(1, 6) * response(2).probability(1, 1)
    assert mechanism.probability(4, x) == Fraction(1, 3) * response(3, 2).probability(2, 2)
    assert sum(mechanism.probability(y, x) for y in range(7)) == 1
    np.testing.assert_allclose(mechanism.matrix()[x, 4], float(mechanism.probability(4, x)))


def test_a_guess_is_as_good_as_the_law_permits() -> None:
    for mechanism in (singles(), pairs()):
        largest = [max(mechanism.probability(y, x) for x in range(12)) for y in range(mechanism.outputs)]
        assert mechanism.guess_probability() == sum(largest, Fraction(0)) / 12


def test_the_part_does_not_depend_on_the_value() -> None:
    mechanism = pairs()
    for number in range(3):
        shares = {
            sum(mechanism.probability(y, x) for y in range(mechanism.offsets[number], mechanism.offsets[number + 1]))
            for x in range(12)
        }
        assert shares == {mechanism.probabilities[number]}


@pytest.mark.slow
def test_many_people_report_with_the_stated_law() -> None:
    mechanism = pairs()
    values = np.random.default_rng(4).integers(0, 12, 90_000)
    reports = sf.privatize(mechanism, PEOPLE.decode(values), sf.InsecureSeeded(8))
    law = mechanism.matrix()
    counts = np.array([np.bincount(reports[values == x], minlength=mechanism.outputs) for x in range(12)])
    expected = law * counts.sum(axis=1, keepdims=True)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    # 12 rows of 16 outputs have 180 degrees of freedom; beyond 300 the p-value is below 1e-7.
    assert statistic < 300
    wrong = expected * np.where(np.arange(mechanism.outputs) % 2, 1.05, 0.95)
    assert float(((counts - wrong) ** 2 / wrong).sum()) > 300


# -- audits ------------------------------------------------------------------------------------------------------


def _random_policies(generator: random.Random) -> list[PairwisePolicy]:
    """Return a policy per attribute, of random kinds and levels."""

    def level() -> str:
        return generator.choice(["1/2", "1", "2", "ln 3", "3"])

    sexes, ages, jobs = PEOPLE.factors.values()
    return [
        generator.choice([sf.Uniform(sexes, level()), sf.HighLow(sexes, ["f"], level())]),
        generator.choice([sf.Metric(ages, "absolute", level()), sf.Blocks(ages, "xxy", level(), level())]),
        generator.choice([sf.Uniform(jobs, level()), sf.PerValue(jobs, [level(), level()])]),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sampled", "pairs", "product", "product of runs"])
def test_audits_by_attributes_agree_with_audits_by_matrix(kind: str) -> None:
    mechanism: Mechanism = {
        "sampled": singles([1, 2, 3]),
        "pairs": pairs(),
        "product": ProductMechanism(PEOPLE, [response(2), response(3, 2), response(2, "ln 3")]),
        "product of runs": ProductMechanism(PEOPLE, [response(6), response(2, 2)]),
    }[kind]
    generator, seen = random.Random(kind), set()
    everything = [[mechanism.probability(y, x) for x in range(12)] for y in range(mechanism.outputs)]
    for _ in range(20):
        policy = sf.Product(dict(zip(PEOPLE.factors, _random_policies(generator), strict=True)))
        dense = sf.Pairwise(PEOPLE, [[policy.epsilon_between(x, y) for y in range(12)] for x in range(12)])
        found = mechanism.tightest(policy)
        assert found is not None
        report, worst = found
        expected = max((dense.worst(column) for column in everything), key=lambda rule: rule.rank)
        assert worst.violated == expected.violated
        assert worst.excess == pytest.approx(expected.excess, abs=1e-9)
        # The rule that is named is the one that the report comes closest to violating.
        assert policy.worst(everything[report]).excess == pytest.approx(worst.excess, abs=1e-9)
        x, other = (PEOPLE.index(name) for name in worst.names or ())
        assert policy.epsilon_between(x, other) == worst.epsilon
        assert worst.left * everything[report][other] == worst.right * everything[report][x]
        columns = [dense.worst(column) for _, column in stated_columns(mechanism, dense)]
        by_column = max(columns, key=lambda rule: rule.rank)
        assert by_column.violated == worst.violated
        assert by_column.excess == pytest.approx(worst.excess, abs=1e-9)
        certificate = sf.audit(mechanism, policy)
        assert certificate.holds == (not worst.violated)
        seen.add(certificate.holds)
    assert seen == {True, False}


def test_each_part_is_asked_at_its_full_level() -> None:
    mechanism = SampledParts(PEOPLE, {"sex": response(2), "age": response(3)})
    assert mechanism.classical_epsilon() == sf.Epsilon(1)
    assert sf.audit(mechanism, sf.Uniform(PEOPLE, 1)).holds
    assert not sf.audit(mechanism, sf.Uniform(PEOPLE, "0.999")).holds
    both = ProductMechanism(PEOPLE, [response(2), response(3), response(2)])
    assert not sf.audit(both, sf.Uniform(PEOPLE, "2.99")).holds
    assert sf.audit(both, sf.Uniform(PEOPLE, 3)).holds


@pytest.mark.slow
def test_large_domains_are_audited_by_parts() -> None:
    sizes = {"age": 40, "work": 9, "education": 6, "sex": 2}
    domain = sf.Domain.product(**{name: R(size) for name, size in sizes.items()})
    assert len(domain) > 4096
    policy = sf.Product({name: sf.Uniform(R(size), 1) for name, size in sizes.items()})
    parts = {
        pair: ProductMechanism(R(sizes[pair[0]] * sizes[pair[1]]), [response(sizes[name]) for name in pair])
        for pair in itertools.combinations(sizes, 2)
    }
    mechanism = SampledParts(domain, parts)
    certificate = sf.audit(mechanism, policy)
    assert certificate.holds
    assert sf.verify(sf.auditing.Certificate.from_json(certificate.to_json())) == certificate
    stricter = sf.Product({**policy.policies, "sex": sf.Uniform(R(2), "0.99")})
    rule = mechanism.tightest(stricter)
    assert rule is not None
    assert rule[1].violated
    assert not any(
        sf.Uniform(domain, 2).worst(column).violated
        for _, column in mechanism.worst_columns(sf.Uniform(domain, 2)) or ()
    )
    together = ProductMechanism(domain, [response(size) for size in sizes.values()])
    for limit, is_violated in (
        (sf.Uniform(domain, 4), False),
        (sf.Uniform(domain, "3.99"), True),
        (policy, False),
        (stricter, True),
    ):
        rule = together.tightest(limit)
        assert rule is not None
        assert rule[1].violated == is_violated


@pytest.mark.parametrize("epsilon", [0, "1/2", 1, "ln 3", 2, 3])
def test_one_level_for_all_values_is_audited_by_parts(epsilon: Any) -> None:
    """The audit without a list of values agrees with the one that lists them."""
    policy = sf.Uniform(PEOPLE, epsilon)
    for mechanism in (singles(), pairs()):
        report, worst = mechanism._tightest(policy)
        columns = [[mechanism.probability(y, x) for x in range(len(PEOPLE))] for y in mechanism.reports()]
        expected = max((policy.worst(column) for column in columns), key=lambda rule: rule.rank)
        assert (worst.violated, worst.left / worst.right) == (expected.violated, expected.left / expected.right)
        assert worst.names is not None
        first, second = (mechanism.probability(report, PEOPLE.index(name)) for name in worst.names)
        assert first / second == worst.left / worst.right


@pytest.mark.slow
def test_a_billion_combinations_need_no_list() -> None:
    """Plans, tables and audits take the attributes of each part only."""
    questions = {f"q{number}": R(5) for number in range(13)}
    questionnaire = sf.Questionnaire(questions, 2)
    mechanism = questionnaire.plan(1000, question=sf.Marginals(2))["sample pairs evenly"].mechanism
    assert len(mechanism.domain) == 5**13
    assert sf.audit(mechanism, questionnaire.policy).holds
    assert not sf.audit(mechanism, sf.Uniform(mechanism.domain, "1.9")).holds
    rows = dict.fromkeys(questions, [0, 1, 2, 3, 4] * 20)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, rows, sf.InsecureSeeded(1))))
    tables = estimate.marginals(tables=[("q0", "q12")])
    low, high = tables.interval()
    assert tables.values.sum() == pytest.approx(1)
    assert ((low <= np.clip(tables.values, 0, 1)) & (np.clip(tables.values, 0, 1) <= high)).all()


def test_the_policy_of_a_part_has_the_smallest_levels() -> None:
    matrix = [[0 if x == y else (x * 7 + y * 3) % 5 + 1 for y in range(12)] for x in range(12)]
    policy = sf.Pairwise(PEOPLE, matrix)
    part = policy_of_part(policy, PEOPLE.shape, (0, 2))
    assert part is not None
    places = list(itertools.product(range(2), range(3), range(2)))
    for a, b in itertools.permutations(itertools.product(range(2), range(2)), 2):
        least = min(
            matrix[x][y]
            for x, y in itertools.product(range(12), repeat=2)
            if (places[x][0], places[x][2]) == a and (places[y][0], places[y][2]) == b
        )
        assert part.epsilon_between(2 * a[0] + a[1], 2 * b[0] + b[1]) == sf.Epsilon(least)
    large = sf.Domain.product(a=R(100), b=R(100))
    assert policy_of_part(sf.Blocks(large, [0, 1] * 5000, 1), large.shape, (0,)) is None


# -- estimates ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(6))
def test_marginals_are_unbiased_with_exact_errors(number: int) -> None:
    mechanism = [singles([1, 2, 3]), pairs(), *examples().samplers()[1:3], *examples().laws("1")[:2]][number]
    assert isinstance(mechanism, SampledParts)
    estimator, size, shape = mechanism.estimator, len(mechanism.domain), mechanism.domain.shape
    generator = np.random.default_rng(number)
    p, law = generator.dirichlet(np.ones(size)), mechanism.matrix()
    np.testing.assert_allclose(estimator.expected_counts(p), p @ law)
    assert isinstance(estimator, HistogramEstimator)
    weights = generator.normal(size=mechanism.outputs)
    np.testing.assert_allclose(estimator.adjoint(weights), law @ weights)
    determined = 0
    for axes in itertools.chain.from_iterable(
        itertools.permutations(range(len(shape)), n) for n in range(len(shape) + 1)
    ):
        sums = _sums(mechanism.domain, axes) if axes else np.ones((1, size))
        covered = any(set(axes) <= set(part) for part in mechanism.axes)
        assert estimator.identifies(sums) == covered
        if not covered:
            with pytest.raises(NotIdentifiable):
                estimator.marginal(shape, axes)
            with pytest.raises(NotIdentifiable):
                estimator.output_scores(sums[0])
            continue
        determined += 1
        marginal = estimator.marginal(shape, axes)
        scores = np.stack([estimator.output_scores(row) for row in sums])
        np.testing.assert_allclose(law @ scores.T, sums.T, atol=1e-9)
        covariance = (scores * (p @ law)) @ scores.T - np.outer(sums @ p, sums @ p)
        fractions = generator.dirichlet(np.ones(mechanism.outputs))
        np.testing.assert_allclose(marginal.frequencies(fractions), scores @ fractions, atol=1e-9)
        np.testing.assert_allclose(marginal.covariance(p), covariance, atol=1e-9)
        np.testing.assert_allclose(marginal.variances(p), np.diag(covariance), atol=1e-9)
        assert estimator.variance(sums[0], p) == pytest.approx(covariance[0, 0], abs=1e-9)
    assert determined >= len(mechanism.axes) + 1


def test_tables_agree_with_each_other() -> None:
    estimator = pairs().estimator
    fractions = np.random.default_rng(1).dirichlet(np.ones(16))
    ages = estimator.marginal(PEOPLE.shape, [1]).frequencies(fractions)
    for axes, axis in (((0, 1), 0), ((1, 2), 1), ((2, 1), 0)):
        marginal = estimator.marginal(PEOPLE.shape, axes)
        np.testing.assert_allclose(marginal.frequencies(fractions).reshape(marginal.shape).sum(axis=axis), ages)


def test_a_part_with_all_attributes_determines_all_frequencies() -> None:
    mechanism = SampledParts(PEOPLE, {"sex": response(2), ("sex", "age", "job"): response(12)}, [1, 3])
    estimator = mechanism.estimator
    assert estimator.is_complete
    p = np.random.default_rng(2).dirichlet(np.ones(12))
    np.testing.assert_allclose(estimator.frequencies(estimator.expected_counts(p)), p, atol=1e-12)
    covariance = estimator.covariance(p)
    np.testing.assert_allclose(estimator.variances(p), np.diag(covariance), atol=1e-9)
    assert mechanism.risk(1, p) == pytest.approx(np.trace(covariance))
    # Reports of the sex help: the estimate is better than from the part with all attributes alone.
    alone = SampledParts(PEOPLE, {("sex", "age", "job"): response(12)})
    uniform = np.full(12, 1 / 12)
    sexes = mechanism.estimator.marginal(PEOPLE.shape, [0]).squared_error(uniform)
    assert sexes < alone.estimator.marginal(PEOPLE.shape, [0]).squared_error(uniform) / 0.75


def test_single_frequencies_without_such_a_part_are_rejected() -> None:
    estimator = pairs().estimator
    assert not estimator.is_complete
    assert pairs().risk(100) == float("inf")
    for call in (estimator.second_moments, estimator.score_values, estimator.score_bounds):
        with pytest.raises(NotIdentifiable, match="a part with all attributes"):
            call()
    with pytest.raises(NotIdentifiable):
        estimator.frequencies(np.full(16, 1 / 16))


# -- construction ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((R(4), {"a": response(4)}), "be a product of attributes"),
        ((PEOPLE, {}), "one or more attributes"),
        ((PEOPLE, {"size": response(2)}), "be some of the attributes"),
        ((PEOPLE, {("age", "sex"): response(6)}), "in this order"),
        ((PEOPLE, {("sex", "sex"): response(2)}), "in this order"),
        ((PEOPLE, {"sex": response(2), ("sex",): response(2)}), "once"),
        ((PEOPLE, {"sex": response(3)}), "be over 2 values"),
        ((PEOPLE, {"age": SubsetSelection(R(3), 1)}), "be of one of the classes"),
        ((PEOPLE, {"sex": response(2), "age": response(3)}, [1]), "2 positive numbers"),
        ((PEOPLE, {"sex": response(2), "age": response(3)}, [1, 0]), "2 positive numbers"),
        ((PEOPLE, {"sex": response(2), "age": response(3)}, {"sex": 1}), "2 positive numbers"),
        ((PEOPLE, {"sex": response(2), "age": response(3)}, [1, 10**6]), "at most 65,536"),
        ((PEOPLE, {"sex": TableMechanism(R(2), [[2**62] + [0] * 2**22] * 2)}), "4,194,304 reports"),
    ],
)
def test_bad_parts_are_rejected(arguments: Any, words: str) -> None:
    assert words in refusal(SampledParts, *arguments)


def test_weights_are_reduced() -> None:
    assert singles([2, 4, 6]).weights == (1, 2, 3)
    assert singles(["1/2", 1, 0.25]).weights == (2, 4, 1)
    by_name = SampledParts(PEOPLE, {"sex": response(2), "age": response(3)}, {"age": 3, "sex": 1})
    assert by_name.probabilities == (Fraction(1, 4), Fraction(3, 4))


def test_changed_specs_are_rejected() -> None:
    parameters = singles([1, 2, 3]).parameters()
    assert SampledParts.from_parameters(PEOPLE, parameters) == singles([1, 2, 3])
    changes: list[dict[str, Any]] = [
        {"weights": [2, 4, 6]},
        {"weights": [1, 2]},
        {"weights": [1, 2, 3.0]},
        {"parts": [[0], [1], [3]]},
        {"parts": [[0], [1], [0]]},
        {"parts": [[0], [1], 2]},
        {"more": []},
    ]
    for change in changes:
        with pytest.raises(InvalidInput):
            SampledParts.from_parameters(PEOPLE, {**parameters, **change})
    kinds = [{"mechanism": "subset-selection", "size": 2, "parameters": {}}]
    with pytest.raises(UnknownSpec):
        SampledParts.from_parameters(PEOPLE, {**parameters, "kinds": kinds, "kind": [0, 0, 0]})
