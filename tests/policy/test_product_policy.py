"""One policy per attribute: sums over attributes, without a matrix over all values."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import sfumato as sf
from sfumato._core import Epsilon
from sfumato.errors import CannotCompose, InvalidInput, LimitExceeded, UnknownSpec
from sfumato.policy import PairwisePolicy, describe, disclosure_warnings, posterior_bounds, strictest
from support.reference import PairCase, fewer, product_cases, product_shapes, refusal

R = sf.Domain.range
JOB, AGE, SEX = sf.Domain(["clerk", "judge", "spy"]), R(4), sf.Domain(["f", "m"])


def _survey() -> sf.Product:
    return sf.Product(
        {"job": sf.HighLow(JOB, ["spy"], 1), "age": sf.Metric(AGE, "absolute", "1/2"), "sex": sf.Uniform(SEX, "ln 2")}
    )


def _large() -> sf.Product:
    """Five attributes with 106,560 combinations."""
    return sf.Product(
        {
            "age": sf.Metric(R(74), "absolute", "1/10"),
            "work": sf.Uniform(R(9), 1),
            "education": sf.HighLow(R(16), [3, 4], 1),
            "race": sf.Blocks(R(5), "aabbb", "ln 2", across=2),
            "sex": sf.Uniform(R(2), 1),
        }
    )


@fewer(4)
@given(product_shapes.flatmap(product_cases))
def test_epsilons_are_sums_over_the_attributes(case: PairCase) -> None:
    policy, dense = case.policy, case.dense
    assert isinstance(policy, sf.Product)
    for x in range(case.size):
        for other in range(case.size):
            assert policy.epsilon_between(x, other) == dense.epsilon_between(x, other)
            assert policy.effective_epsilon(x, other) == dense.effective_epsilon(x, other)
    assert policy.least[0] == dense.least[0]
    assert policy.epsilon_between(*policy.least[1]) == policy.least[0]
    assert policy.greatest_effective[0] == dense.greatest_effective[0]
    assert policy.effective_epsilon(*policy.greatest_effective[1]) == policy.greatest_effective[0]
    chosen = np.array([case.size - 1, 0, 2])
    assert policy.epsilons_on(chosen).at(0, 2) == dense.epsilon_between(case.size - 1, 2)


def test_a_limit_in_no_attribute_is_no_limit() -> None:
    policy = _survey()
    clerk, spy = policy.domain.index(("clerk", 0, "f")), policy.domain.index(("spy", 2, "m"))
    assert policy.epsilon_between(spy, clerk) == Epsilon("2+ln 2")
    assert policy.epsilon_between(clerk, spy).is_infinite
    assert policy.epsilon_between(spy, spy) == Epsilon(0)


def test_the_tightest_rule_is_that_of_a_matrix() -> None:
    policy, generator = _survey(), random.Random(7)
    kinds: set[bool] = set()
    for trial in range(200):
        weights = [0, 1, 2, 3, 4, 8] if trial % 2 else [20, 21, 22]
        column = [
            Fraction(generator.choice(weights), generator.choice([1, 1, 2] if trial % 2 else [1])) for _ in range(24)
        ]
        found, dense = policy.worst(column), PairwisePolicy.worst(policy, column)
        assert found.violated == dense.violated
        assert found.excess == pytest.approx(dense.excess, abs=1e-12)
        kinds.add(found.violated)
    assert kinds == {True, False}


def test_limits_that_are_met_exactly_are_decided_exactly() -> None:
    policy = sf.Product({"a": sf.Uniform(R(2), "ln 2"), "b": sf.Uniform(R(3), "ln 3")})
    column = [6, 2, 2, 3, 1, 1]
    assert policy.allows(column)
    beyond = [Fraction(6) + Fraction(1, 10**40), *column[1:]]
    worst = policy.worst(beyond)
    assert worst.violated
    assert not policy.allows_all([[6 * 2**60, *[c * 2**60 for c in column[1:]]], [2**62, 1, 1, 1, 1, 1]])


@pytest.mark.slow
def test_large_products_need_no_matrix() -> None:
    policy = _large()
    size = len(policy.domain)
    assert size == 106_560
    assert policy.least[0] == Epsilon("1/10")
    assert policy.greatest_effective[0].is_infinite
    weights = np.random.default_rng(3).integers(100, 105, size)
    worst = policy.worst(weights.tolist())
    assert not worst.violated
    # The best pair that differs in one year of age, as a direct search finds it.
    logs = np.log(weights.astype(float)).reshape(policy.domain.shape)
    years = np.abs(np.diff(logs, axis=0)).max() - 0.1
    assert worst.excess == pytest.approx(years, abs=1e-9)
    weights[5] = 1
    assert policy.worst(weights.tolist()).violated
    assert not policy.allows_all([weights.tolist()])
    assert policy.allows_all([[1] * size])
    assert sf.policy_from_dict(policy.to_dict()) == policy
    assert sf.structure_of(policy) is policy
    assert len(disclosure_warnings(policy)) == 0
    assert sum(len(bound.values) for bound in posterior_bounds(policy, 0.1)) == size
    with pytest.raises(LimitExceeded, match="106560 values"):
        policy.epsilon_matrix()


def test_attributes_of_many_values_need_no_matrix_either() -> None:
    policy = sf.Product({"place": sf.Uniform(R(6000), 1), "sex": sf.HighLow(SEX, ["f"], "ln 3")})
    column = [1] * 12_000
    column[0] = 3
    assert policy.worst(column).violated  # a place is e < 3 times as likely as another
    column[0] = 2
    assert policy.allows(column)


def test_implication_is_decided_attribute_by_attribute() -> None:
    weak, strong = _survey(), _survey().policies
    strong["sex"] = sf.Uniform(SEX, "1/2")
    assert sf.implies(sf.Product(strong), weak)
    assert not sf.implies(weak, sf.Product(strong))
    large = _large()
    assert sf.implies(large, large)
    assert sf.implies(sf.Uniform(large.domain, "1/10"), large)
    assert not sf.implies(sf.Uniform(large.domain, "0.11"), large)
    split = sf.Product.split(large.domain, 3)
    assert sf.implies(split, sf.Uniform(large.domain, 3))
    assert not sf.implies(split, sf.Uniform(large.domain, "2.99"))


def test_products_compose_attribute_by_attribute() -> None:
    twice = _survey().compose(_survey())
    assert isinstance(twice, sf.Product)
    assert twice["sex"] == sf.Uniform(SEX, "2*ln 2")
    assert twice["age"].epsilon_between(0, 3) == Epsilon(3)
    mixed = _survey().compose(sf.Uniform(_survey().domain, 1))
    assert isinstance(mixed, PairwisePolicy)
    assert mixed.epsilon_between(0, 1) == Epsilon("1+ln 2")
    large = _large()
    assert large.compose(large)["work"] == sf.Uniform(R(9), 2)  # type: ignore[index]
    with pytest.raises(CannotCompose, match=r"Product\.split"):
        large.compose(sf.Uniform(large.domain, 1))


def test_some_values_and_some_attributes() -> None:
    policy = _survey()
    some = policy.restrict([("spy", 0, "f"), ("clerk", 3, "f")])
    assert isinstance(some, PairwisePolicy)
    assert some.epsilon_between(0, 1) == Epsilon("2.5")
    assert policy.project(["sex"]) == sf.Uniform(SEX, "ln 2")
    assert list(policy.project(["age", "sex"]).domain.factors) == ["age", "sex"]
    assert "be some of the attributes" in refusal(policy.project, ["size"])


def test_a_budget_is_divided_exactly() -> None:
    cells = sf.Domain.product(smokes=["yes", "no"], age=range(9), sex=SEX)
    even = sf.Product.split(cells, "ln 3")
    assert even["age"] == sf.Uniform(R(9), "1/3*ln 3")
    assert even.greatest_effective[0] == Epsilon("ln 3")
    weighted = sf.Product.split(cells, 2, {"age": 3, "smokes": "1/2", "sex": 0.5})
    assert [str(policy.parameters()["epsilon"]) for policy in weighted.policies.values()] == ["0.25", "1.5", "0.25"]


def test_policies_are_described() -> None:
    policy = _survey()
    text = describe(policy)
    assert text.startswith("each attribute has its own rule")
    assert "for sex, no report is more than 2 times (epsilon ln 2)" in text
    assert strictest(policy).startswith("0.5 (('clerk', 0, 'f') against")
    nothing = sf.Product({"a": sf.Uniform(R(2), "inf"), "b": sf.Uniform(R(2), "inf")})
    assert describe(nothing).startswith("nothing")
    exposed = sf.Product({"a": sf.Uniform(R(2), 30), "b": sf.Uniform(R(2), 1)})
    assert [warning.partition(":")[0] for warning in disclosure_warnings(exposed)] == ["a"]


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ([sf.Uniform(SEX, 1)] * 2, "be a mapping from two or more attribute names"),
        ({"sex": sf.Uniform(SEX, 1)}, "use its policy itself"),
        ({"sex": sf.Uniform(SEX, 1), 3: sf.Uniform(SEX, 1)}, "non-empty string"),
        ({"sex": sf.Uniform(SEX, 1), "age": AGE}, "be a Policy"),
        ({"sex": sf.Uniform(SEX, 1), "age": sf.Prior(AGE, ["1/4"] * 4, 1)}, "be on pairs of values"),
    ],
)
def test_bad_products_are_rejected(policies: Any, words: str) -> None:
    assert words in refusal(sf.Product, policies)


@pytest.mark.parametrize("weights", [{"a": 1}, {"a": 1, "b": 0}, {"a": 1, "b": "x"}, [1, 2]])
def test_bad_weights_are_rejected(weights: Any) -> None:
    with pytest.raises(InvalidInput, match="weight"):
        sf.Product.split(sf.Domain.product(a=range(2), b=range(2)), 1, weights)


def test_bad_documents_are_rejected() -> None:
    document = _survey().to_dict()
    no_sex = {**document["policy"], "attributes": {**document["policy"]["attributes"]}}
    del no_sex["attributes"]["sex"]
    assert "sex" in refusal(sf.policy_from_dict, {**document, "policy": no_sex})
    assert "be a product" in refusal(sf.policy_from_dict, {**document, "domain": {"size": 24}})
    wrong = {**document["policy"], "attributes": {**document["policy"]["attributes"], "sex": "uniform"}}
    assert "table of keys" in refusal(sf.policy_from_dict, {**document, "policy": wrong})
    unknown = {**document["policy"]["attributes"], "sex": {"kind": "other"}}
    with pytest.raises(UnknownSpec):
        sf.policy_from_dict({**document, "policy": {"kind": "product", "attributes": unknown}})
    assert "be a product of attributes" in refusal(sf.Product.split, R(4), 1)


def test_an_attribute_with_one_value_names_no_pair() -> None:
    """Its least epsilon is infinite, as that of attributes that are revealed."""
    one, two = sf.Domain(["only"]), sf.Domain.range(2)
    policy = sf.Product({"a": sf.Uniform(one, 1), "b": sf.Uniform(two, "inf"), "c": sf.Uniform(two, "inf")})
    epsilon, (x, other) = policy.least
    assert (epsilon, x == other) == (Epsilon("inf"), False)
    single = sf.Product({"a": sf.Uniform(one, 1), "b": sf.Uniform(one, 2)})
    assert single.least == (Epsilon("inf"), (0, 0))
    assert sf.Product({"a": sf.Uniform(one, 1), "b": sf.Uniform(two, 2)}).least == (Epsilon(2), (0, 1))
