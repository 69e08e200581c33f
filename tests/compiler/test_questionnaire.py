"""Questionnaires: budgets add up exactly, risks are the mechanisms' own, the best is the least, choices are exact."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing.interpreter import branches
from sfumato.compiler import Questionnaire, QuestionnairePlan
from sfumato.compiler.solvers.deadline import NEVER
from sfumato.compiler.strategies import Strategies, best_fractions
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.estimation import cross_table

SMOKES = sf.Domain(["yes", "no"])
COLOURS = sf.Domain(["red", "green", "blue"])
AGES = sf.Domain.range(20)
QUESTIONS = {"smokes": SMOKES, "colour": COLOURS, "age": AGES}


def questionnaire(epsilon: Any = 1) -> Questionnaire:
    return Questionnaire(QUESTIONS, epsilon)


# -- sharing the budget ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.1", "ln 3", "1+1/7*ln 5", "inf"])
@pytest.mark.parametrize(
    "weights", [None, {"smokes": 1, "colour": 2, "age": 4}, {"smokes": 0.1, "colour": "1/3", "age": Fraction(5, 7)}]
)
def test_the_parts_of_a_split_add_up_exactly(epsilon: str, weights: dict[str, Any] | None) -> None:
    policies = questionnaire(epsilon).split(weights)
    assert list(policies) == list(QUESTIONS)
    assert sum((policy.least[0] for policy in policies.values()), sf.Epsilon(0)) == sf.Epsilon(epsilon)
    for name, policy in policies.items():
        assert policy.domain == QUESTIONS[name]


def test_weights_are_shares_in_any_unit_and_order() -> None:
    policies = questionnaire(7).split({"age": 4, "colour": 2, "smokes": 1})
    assert [str(policy.least[0]) for policy in policies.values()] == ["1", "2", "4"]
    assert policies == questionnaire(7).split({"smokes": 0.1, "colour": 0.2, "age": 0.4})


def test_a_split_is_what_a_ledger_would_add_up() -> None:
    from sfumato.device.ledger import Ledger

    ledger = Ledger()
    for name, policy in questionnaire("ln 5").split({"smokes": 1, "colour": 3, "age": 3}).items():
        ledger.charge(name, sf.design(policy, 1), policy)
    assert ledger.total == sf.Epsilon("ln 5")


def test_who_answers_one_question_answers_it_at_the_full_epsilon() -> None:
    sampling = questionnaire("ln 3").sampled({"smokes": 1, "colour": 1, "age": 2})
    assert sampling.policies == {name: sf.Uniform(domain, "ln 3") for name, domain in QUESTIONS.items()}
    assert sampling.weights == {"smokes": Fraction(1, 4), "colour": Fraction(1, 4), "age": Fraction(1, 2)}


def test_a_joint_report_is_about_all_answers() -> None:
    policy = questionnaire(2).joint()
    assert policy == sf.Uniform(sf.Domain.product(smokes=SMOKES, colour=COLOURS, age=AGES), 2)


# -- which question ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights", [None, {"smokes": 1, "colour": 2, "age": 4}, {"smokes": "1/3", "colour": "1/10", "age": "17/30"}]
)
def test_the_law_of_the_choice_is_exactly_the_weights(weights: dict[str, Any] | None) -> None:
    """Every branch of the code that runs, with its exact probability."""
    sampling = questionnaire().sampled(weights)
    law: Counter[str] = Counter()
    for name, weight, total in branches(sampling.draw):
        law[name] += Fraction(weight, total)  # type: ignore[assignment]
    assert law == sampling.weights


def test_choices_come_from_the_stream_or_from_secure_bits() -> None:
    drawn = [questionnaire().choose(stream) for stream in [sf.InsecureSeeded(5)] * 40]
    assert drawn == [questionnaire().sampled().choose(stream) for stream in [sf.InsecureSeeded(5)] * 40]
    assert set(drawn) == set(QUESTIONS)
    assert questionnaire().choose() in QUESTIONS
    nearly_always = {"smokes": 1, "colour": 1, "age": 2**32 - 2}  # fails with probability 2^-31
    assert questionnaire().choose(weights=nearly_always) == "age"


# -- plans -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planned() -> QuestionnairePlan:
    return questionnaire().plan(9600)


def test_every_strategy_stands_in_the_plan_best_first(planned: QuestionnairePlan) -> None:
    names = {"split", "sample", "sample pairs"}
    assert {row.name for row in planned.rows} == {f"{n} {how}" for n in names for how in ("evenly", "by weights")} | {
        "joint"
    }
    risks = [row.risk for row in planned.rows]
    assert risks == sorted(risks)
    assert planned.best.risk == min(risks)
    for row in planned.rows:
        assert row.risk == pytest.approx(sum(row.risks.values()))
        assert row.bits == row.mechanism.bits
        assert row is planned[row.name]
    with pytest.raises(InvalidInput, match="'joint'"):
        planned["all"]


def test_split_risks_are_those_of_the_mechanisms_at_their_part_of_epsilon(planned: QuestionnairePlan) -> None:
    for name in ("split evenly", "split by weights"):
        row = planned[name]
        assert row.weights is not None
        assert sum(row.weights.values()) == 1
        assert isinstance(row.mechanism, sf.mechanisms.ProductMechanism)
        for question, policy in questionnaire().split(row.weights).items():
            mechanism = row.mechanisms[question]
            assert sf.audit(mechanism, sf.Uniform(mechanism.domain, policy.least[0])).holds
            # A product decodes its factors by least squares, which may be better than their usual estimators.
            assert row.risks[question] <= mechanism.risk(9600) * (1 + 1e-9)
            assert row.risks[question] == pytest.approx(sf.plan(policy, 9600).best.risk, rel=0.1)


def test_sampled_risks_are_those_of_the_mechanisms_with_their_part_of_the_people(planned: QuestionnairePlan) -> None:
    for name in ("sample evenly", "sample by weights"):
        row = planned[name]
        assert row.weights is not None
        assert sum(row.weights.values()) == 1
        for question, policy in questionnaire().sampled(row.weights).policies.items():
            people = 9600 * row.weights[question]
            assert people.denominator == 1
            mechanism = row.mechanisms[question]
            assert sf.audit(mechanism, sf.Uniform(mechanism.domain, policy.least[0])).holds
            assert row.risks[question] <= mechanism.risk(int(people)) * (1 + 1e-9)
            assert row.risks[question] == pytest.approx(sf.plan(policy, int(people)).best.risk, rel=0.1)


def test_joint_risks_are_the_traces_of_the_marginals_covariances(planned: QuestionnairePlan) -> None:
    row = planned["joint"]
    mechanism = row.mechanisms["age"]
    domain = questionnaire().joint().domain
    covariance = mechanism.estimator.covariance(np.full(len(domain), 1 / len(domain))).reshape(2 * domain.shape)
    for question, summed in (("smokes", "abcade->"), ("colour", "abcdbe->"), ("age", "abcdec->")):
        assert row.risks[question] == pytest.approx(float(np.einsum(summed, covariance)) / 9600)
    assert row.weights is None


def test_the_joint_mechanism_is_the_best_for_the_marginals() -> None:
    two = Questionnaire({"a": SMOKES, "b": COLOURS}, 1)
    row = two.plan(100)["joint"]
    uniform = np.full(6, 1 / 6)
    for other in sf.plan(two.joint(), 100).rows:
        estimator = other.mechanism.estimator
        groups = [*np.repeat(np.eye(2), 3, axis=1), *np.tile(np.eye(3), 2)]
        assert row.risk <= sum(estimator.variance(group, uniform) for group in groups) / 100 * (1 + 1e-12)


@pytest.mark.parametrize("question", [sf.Marginals(1), sf.Marginals(2)])
def test_no_transfer_of_one_part_improves_the_weights(question: sf.Marginals) -> None:
    """The certificate of a local optimum, from mechanisms built again."""
    strategies = Strategies(questionnaire().policy, question.checked(questionnaire().policy.domain), None, NEVER)
    even = dict.fromkeys(QUESTIONS, Fraction(1, 3))
    weights = best_fractions(strategies._split_error, even)
    least, part = strategies._split_error(weights), Fraction(1, 96)
    assert sum(weights.values()) == 1
    for to, giver in itertools.permutations(QUESTIONS, 2):
        if weights[giver] > part:
            moved = {**weights, to: weights[to] + part, giver: weights[giver] - part}
            assert strategies._split_error(moved) >= least * (1 - 1e-12)
    assert least < strategies._split_error(even)


def test_sampling_weights_come_close_to_the_square_roots_of_the_risks(planned: QuestionnairePlan) -> None:
    """Neyman: Σ r/w is least at w ∝ √r, where it is (Σ √r)²."""
    row = planned["sample by weights"]
    assert row.weights is not None
    alone = {name: row.risks[name] * float(weight) for name, weight in row.weights.items()}
    least = sum(math.sqrt(risk) for risk in alone.values()) ** 2
    assert least * (1 - 1e-9) <= row.risk <= least * 1.001


# -- tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["joint", "split evenly", "split by weights", "sample pairs evenly"])
def test_every_strategy_estimates_tables_without_bias_and_with_exact_variances(name: str) -> None:
    """By enumeration of all outputs: means and variances of every cell."""
    few = Questionnaire({"a": SMOKES, "b": COLOURS, "c": SMOKES}, 2)
    question = sf.Marginals(2).checked(few.policy.domain)
    mechanism = few.design(question=question, strategy=name, max_bits=10)
    assert sf.audit(mechanism, few.policy).holds
    matrix = np.array([[float(mechanism.probability(y, x)) for y in range(mechanism.outputs)] for x in range(12)])
    p = np.array([5.0, 1, 3, 2, 4, 1, 2, 2, 1, 3, 1, 5]) / 30
    law, rows = p @ matrix, question.matrix()
    place = 0
    for axes in question.axes:
        marginal = mechanism.estimator.marginal(few.policy.domain.shape, axes)
        scores = np.stack([marginal.frequencies(unit) for unit in np.eye(mechanism.outputs)], axis=1)
        cells = slice(place, place + marginal.size)
        np.testing.assert_allclose(scores @ law, rows[cells] @ p, atol=1e-9)
        covariance = (scores * law) @ scores.T - np.outer(rows[cells] @ p, rows[cells] @ p)
        np.testing.assert_allclose(marginal.covariance(p), covariance, atol=1e-9)
        place += marginal.size
    uniform = np.full(12, 1 / 12)
    errors = [
        mechanism.estimator.marginal(few.policy.domain.shape, axes).squared_error(uniform) for axes in question.axes
    ]
    assert few.plan(50, question=question, max_bits=10)[name].risk == pytest.approx(sum(errors) / 50)


def test_pairs_are_sampled_for_tables_and_single_attributes_are_not() -> None:
    compared = questionnaire().plan(1000, question="marginals:2")
    assert {row.name for row in compared.rows} == {
        "split evenly",
        "split by weights",
        "sample pairs evenly",
        "sample pairs by weights",
        "joint",
    }
    assert set(compared.best.risks) == {"smokes × colour", "smokes × age", "colour × age"}
    assert "one attribute does not determine a table of 2" in str(compared.left_out)
    assert "summed over all tables" in compared.reason
    assert "3 tables, 1,000 people" in str(compared)
    assert list(compared.to_pandas().columns) == ["strategy", "risk", "bits", "mechanism", "weights"]
    only = questionnaire().plan(1000, question=sf.Marginals(tables=[("smokes", "age"), "colour"]))
    sampled = only["sample pairs evenly"]
    assert sampled.weights is not None
    assert set(sampled.weights) == {"colour", "smokes × age"}


def test_a_plan_for_tables_lists_the_strategies() -> None:
    few = Questionnaire({"a": SMOKES, "b": COLOURS, "c": SMOKES}, 1)
    compared = sf.plan(few.policy, 100, question=sf.Marginals(2), max_seconds=0)
    best = few.plan(100, question=sf.Marginals(2)).best
    assert compared.error(compared.rows[0]) == pytest.approx(best.risk)
    name = best.name.replace(" ", "-")
    assert compared[name].mechanism == best.mechanism
    assert sf.design(few.policy, question="marginals", mechanism="split-evenly").name == "product"


POLICIES: dict[str, Any] = {
    "job": sf.HighLow(sf.Domain(["clerk", "nurse", "spy"]), ["spy"], 1),
    "age": sf.Metric(sf.Domain.range(6), "absolute", "1/2"),
    "sex": sf.Uniform(SMOKES, 1),
}


@pytest.mark.slow
def test_policies_per_attribute_are_obeyed_by_every_strategy() -> None:
    own = Questionnaire(POLICIES)
    assert own.policy == sf.Product(POLICIES)
    assert own.epsilon is None
    assert own.split() == POLICIES
    assert own.sampled().policies == POLICIES
    compared = own.plan(1000, question=sf.Marginals(2))
    assert compared.best.name in ("split", "joint")
    assert {"split", "sample pairs evenly"} <= {row.name for row in compared.rows}
    for row in compared.rows:
        assert sf.audit(row.mechanism, own.policy).holds
    with pytest.raises(InvalidInput, match="be left out"):
        own.split({"job": 1, "age": 1, "sex": 1})
    assert repr(own).startswith("Questionnaire(Product(")


def test_one_joint_policy_is_accepted() -> None:
    domain = sf.Domain.product(a=SMOKES, b=COLOURS)
    assert (
        Questionnaire(sf.Uniform(domain, 2)).plan(10).rows
        == Questionnaire({"a": SMOKES, "b": COLOURS}, 2).plan(10).rows
    )
    grid = sf.Metric(domain, lambda x, y: 2 * (x[0] != y[0]) + (x[1] != y[1]), 1)
    joint = Questionnaire(grid)
    assert joint.policy is grid
    compared = joint.plan(10)
    assert "sample evenly" in {row.name for row in compared.rows}
    for row in compared.rows:
        assert sf.audit(row.mechanism, grid).holds
    assert [str(policy.epsilon_between(0, 1)) for policy in joint.sampled().policies.values()] == ["2", "1"]


def test_equal_questions_get_equal_weights_and_the_simplest_strategy_wins_ties() -> None:
    plan = Questionnaire({"a": SMOKES, "b": SMOKES}, 1).plan(100)
    for row in plan.rows:
        assert row.weights is None or set(row.weights.values()) == {Fraction(1, 2)}
    assert plan.best.name == "sample evenly"
    assert [row.name for row in plan.rows].index("split evenly") < [row.name for row in plan.rows].index(
        "split by weights"
    )


def test_a_joint_report_wins_where_epsilon_is_large() -> None:
    assert Questionnaire({"a": COLOURS, "b": SMOKES}, 6).plan(100).best.name == "joint"


def test_the_recommendation_is_a_sentence_of_the_plan(planned: QuestionnairePlan) -> None:
    assert planned.best.name == "sample by weights"
    assert planned.reason in str(planned)
    assert "every person answers one question at the full epsilon" in planned.reason
    assert "for splitting evenly" in planned.reason
    assert "* sample by weights" in str(planned)


def test_what_is_too_large_to_compare_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.compiler.questionnaires._LARGEST_JOINT", 10)
    plan = Questionnaire({"a": SMOKES, "b": COLOURS}, 1).plan(10)
    assert "joint" not in {row.name for row in plan.rows}
    assert plan.left_out == "joint: not compared, because there are 6 combinations of answers"
    assert plan.left_out in str(plan)


@pytest.mark.slow
def test_reports_are_short_unless_the_caller_says_otherwise() -> None:
    questions = Questionnaire({"a": sf.Domain.range(40), "b": SMOKES}, 1)
    short, unlimited, limited = (questions.plan(100, max_bits=max_bits) for max_bits in ("short", None, 6))
    assert questions.plan(100).rows == short.rows
    assert short["joint"].bits < unlimited["joint"].bits
    assert short["joint"].risk <= 1.05 * unlimited["joint"].risk
    assert limited["sample evenly"].bits <= 6
    assert {row.name for row in limited.rows} == {"sample evenly", "sample by weights"}
    assert "joint: not compared, because its reports are longer than max_bits" in str(limited.left_out)
    with pytest.raises(InvalidInput, match="max_bits must be"):
        questions.plan(100, max_bits="long")  # type: ignore[arg-type]
    with pytest.raises(NoMechanism, match="no strategy has reports of at most 5 bits"):
        questions.plan(100, max_bits=5)


def test_an_epsilon_too_small_to_tell_anything_has_infinite_risks() -> None:
    plan = Questionnaire({"a": SMOKES, "b": COLOURS}, "1/10000000000000000000000000").plan(10)
    assert all(math.isinf(row.risk) for row in plan.rows)
    assert plan.best.name == "split evenly"


@pytest.mark.parametrize(
    ("questions", "epsilon", "culprit"),
    [
        ({}, 1, "questions must be a mapping from at least two names"),
        ({"a": SMOKES}, 1, "questions must be a mapping from at least two names"),
        ([SMOKES, AGES], 1, "questions must be a mapping from at least two names"),
        ({"a": SMOKES, "b": ["x", "y"]}, 1, "question 'b' must be a name with a Domain"),
        ({"a": SMOKES, "b": sf.Domain(["x"])}, 1, "question 'b' must be a name with a Domain of at least two"),
        ({"a": SMOKES, 3: AGES}, 1, "question 3 must be a name"),
        (QUESTIONS, None, "epsilon must be given with domains"),
        ({"a": sf.Uniform(SMOKES, 1), "b": sf.Uniform(COLOURS, 1)}, 1, "epsilon must be left out"),
        (sf.Uniform(SMOKES, 1), None, "questions must be a mapping from at least two names"),
        (QUESTIONS, 0, "epsilon must be more than 0"),
        (QUESTIONS, -1, "epsilon must be at least 0"),
    ],
)
def test_bad_questionnaires_are_refused(questions: Any, epsilon: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        Questionnaire(questions, epsilon)


@pytest.mark.parametrize(
    ("weights", "culprit"),
    [
        ({"smokes": 1}, "weights must name each of the questions 'smokes', 'colour', 'age'"),
        ([1, 2, 3], "weights must name each"),
        ({"smokes": 1, "colour": 0, "age": 1}, "the weight of 'colour' must be more than 0"),
        ({"smokes": 1, "colour": -1, "age": 1}, "the weight of 'colour' must be more than 0"),
        ({"smokes": 1, "colour": "much", "age": 1}, "the weight of 'colour' must be a number"),
        ({"smokes": 1, "colour": float("nan"), "age": 1}, "the weight of 'colour' must be a number"),
    ],
)
def test_bad_weights_are_refused(weights: Any, culprit: str) -> None:
    for use in (questionnaire().split, questionnaire().sampled):
        with pytest.raises(InvalidInput, match=culprit):
            use(weights)


def test_weights_that_no_draw_can_follow_are_refused_and_bad_n_too() -> None:
    with pytest.raises(InvalidInput, match="common denominator of at most 4294967296"):
        questionnaire().sampled({"smokes": 1, "colour": 1, "age": 2**33})
    for n in (0, -1, 2.5, True):
        with pytest.raises(InvalidInput, match=r"n must be a whole number from 1 to 2\^53"):
            questionnaire().plan(n)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="be about tables"):
        questionnaire().plan(10, question="frequencies")


# -- cross-tables ------------------------------------------------------------------------------------------


def estimated(domain: sf.Domain, method: str = "unbiased") -> sf.Estimate:
    mechanism = sf.mechanisms.RandomizedResponse(domain, 3)
    values = [domain.label(i * i % len(domain)) for i in range(4000)]
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(11))
    return sf.estimate(mechanism, sf.aggregate(mechanism, reports), method)


def test_a_cross_table_of_two_questions_is_the_joint_estimate() -> None:
    estimate = estimated(sf.Domain.product(smokes=SMOKES, colour=COLOURS))
    table = cross_table(estimate)
    assert table.questions == ("smokes", "colour")
    assert table.labels == (("yes", "no"), ("red", "green", "blue"))
    assert table.frequencies.shape == table.standard_errors.shape == (2, 3)
    for i, smokes in enumerate(SMOKES):
        for j, colour in enumerate(COLOURS):
            alone = estimate.set_fraction([(smokes, colour)])
            assert table.frequencies[i, j] == pytest.approx(alone.value)
            assert table.standard_errors[i, j] == pytest.approx(alone.standard_error)
    swapped = cross_table(estimate, rows="colour", columns="smokes")
    assert np.array_equal(swapped.frequencies, table.frequencies.T)
    assert np.array_equal(swapped.standard_errors, table.standard_errors.T)
    assert [line.split()[0] for line in str(table).splitlines()] == ["smokes", "yes", "no"]


@pytest.mark.slow
def test_a_cyclic_design_answers_one_question_and_all_together() -> None:
    asked = Questionnaire({"colour": COLOURS, "age": sf.Domain.range(14)}, 3)
    joint = asked.joint()
    mechanism = sf.design(joint, mechanism="cyclic")
    assert mechanism.name == "cyclic-design"
    assert sf.audit(mechanism, joint).holds
    domain = joint.domain
    values = [domain.label(i * i % len(domain)) for i in range(20_000)]
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(11))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    table = cross_table(estimate)
    truth = np.bincount([domain.index(value) for value in values], minlength=len(domain)).reshape(3, 14) / len(values)
    assert (np.abs(table.frequencies - truth) < 6 * table.standard_errors).all()
    covariance = estimate.covariance.reshape(3, 14, 3, 14)
    for i, colour in enumerate(COLOURS):
        share = table.marginals["colour"][colour]
        assert share.value == pytest.approx(table.frequencies[i].sum())
        assert share.standard_error == pytest.approx(np.sqrt(covariance[i, :, i].sum()))
    for policy in (asked.split()["age"], asked.sampled().policies["age"]):
        alone = sf.design(policy, mechanism="cyclic")
        assert alone.bits < sf.mechanisms.SubsetSelection(policy.domain, policy.least[0]).bits
        assert sf.audit(alone, policy).holds


def test_marginals_are_shares_with_the_errors_of_sums() -> None:
    estimate = estimated(sf.Domain.product(smokes=SMOKES, colour=COLOURS))
    table = cross_table(estimate)
    for smokes in SMOKES:
        share = estimate.set_fraction([(smokes, colour) for colour in COLOURS])
        assert table.marginals["smokes"][smokes].value == pytest.approx(share.value)
        assert table.marginals["smokes"][smokes].standard_error == pytest.approx(share.standard_error)
    assert list(table.marginals) == ["smokes", "colour"]
    assert [marginal.value for marginal in table.marginals["colour"].values()] == pytest.approx(
        list(table.frequencies.sum(axis=0))
    )


@pytest.mark.parametrize(("rows", "columns"), [("smokes", "age"), ("age", "smokes"), ("colour", "age")])
def test_two_of_three_questions_sum_over_the_third(rows: str, columns: str) -> None:
    questions = {"smokes": SMOKES, "colour": COLOURS, "age": sf.Domain.range(4)}
    domain = sf.Domain.product(**questions)
    estimate = estimated(domain)
    table = cross_table(estimate, rows, columns)
    places = [list(questions).index(rows), list(questions).index(columns)]
    for i, a in enumerate(questions[rows]):
        for j, b in enumerate(questions[columns]):
            group = [label for label in domain if isinstance(label, tuple) and [label[p] for p in places] == [a, b]]
            share = estimate.set_fraction(group)
            assert table.frequencies[i, j] == pytest.approx(share.value)
            assert table.standard_errors[i, j] == pytest.approx(share.standard_error)


def test_cells_are_those_of_the_method_and_errors_those_of_the_unbiased_estimate() -> None:
    domain = sf.Domain.product(smokes=SMOKES, colour=COLOURS)
    unbiased, projected = cross_table(estimated(domain)), cross_table(estimated(domain, "simplex"))
    assert projected.frequencies.min() >= 0
    assert np.array_equal(projected.frequencies.ravel(), estimated(domain, "simplex").frequencies)
    assert np.array_equal(projected.standard_errors, unbiased.standard_errors)
    for question, marginal in projected.marginals.items():
        for label, share in marginal.items():
            other = unbiased.marginals[question][label]
            assert (share.value, share.standard_error) == (other.value, other.standard_error)


def test_bad_cross_tables_are_refused() -> None:
    three = estimated(sf.Domain.product(a=[0, 1], b=[0, 1], c=[0, 1]))
    for rows, columns in ((None, None), ("a", None), ("a", "a"), ("a", "d")):
        with pytest.raises(InvalidInput, match="rows and columns must name two of the questions 'a', 'b', 'c'"):
            cross_table(three, rows, columns)
    with pytest.raises(InvalidInput, match="estimate must be over a product of questions"):
        cross_table(estimated(COLOURS))
