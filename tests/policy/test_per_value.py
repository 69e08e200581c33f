"""One level per value: labels are aligned, wrong inputs are named, and large domains need no matrix."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato._core.exact import INFINITE
from sfumato.policy import disclosure_warnings, posterior_bounds
from sfumato.policy.structure import structure_of
from support.reference import refusal

R = sf.Domain.range
ILLNESS = sf.Domain(["none", "flu", "hiv"])
EPSILONS = ["0.5", "1", "2", "3", "ln 2", "inf"]


def dense(policy: sf.PerValue) -> sf.Pairwise:
    """The same rules as a matrix."""
    size = range(len(policy.domain))
    return sf.Pairwise(policy.domain, [[policy.epsilon_between(x, y) for y in size] for x in size])


def random_policies(count: int) -> list[sf.PerValue]:
    generator = random.Random(5)
    return [
        sf.PerValue(R(k), generator.choices(EPSILONS, k=k), rule)
        for rule in ("min", "mean", "max")
        for k in generator.choices([1, 2, 3, 4, 6], k=count)
    ]


def test_levels_are_aligned_by_label() -> None:
    listed = sf.PerValue(ILLNESS, [4, 1, "1/2"])
    assert listed.epsilons == (sf.Epsilon(4), sf.Epsilon(1), sf.Epsilon("1/2"))
    forms: list[Any] = [
        {"hiv": 0.5, "none": 4, "flu": "1"},
        pd.Series({"flu": 1, "none": 4, "hiv": 0.5}),
        pd.DataFrame({"illness": ["hiv", "flu", "none"], "epsilon": [0.5, 1, 4]}),
    ]
    for labelled in forms:
        assert sf.PerValue(ILLNESS, labelled) == listed
    document = listed.to_dict()
    assert document["policy"] == {"kind": "per-value", "epsilons": ["4", "1", "0.5"]}
    document["policy"]["epsilons"] = {"hiv": "1/2", "none": 4, "flu": 1}
    assert sf.policy_from_dict(document).hash == listed.hash


@pytest.mark.parametrize(
    ("epsilons", "rule", "message"),
    [
        ([1, 2], "min", "PerValue: epsilons must be a list of 3 epsilons, one per value of the domain, or have labels"),
        ("1", "min", "PerValue: epsilons must be a list of 3 epsilons"),
        ({"none": 1, "flu": 2}, "min", "PerValue: epsilons must have an entry for every value of the domain; got no e"),
        ({"none": 1, "flu": 2, "hvi": 3}, "min", "PerValue: each label of epsilons must be one of the str labels "),
        ([1, -1, 1], "min", "PerValue: epsilon of 'flu' must "),
        ([1, 1, [1]], "min", "PerValue: epsilon of 'hiv' must "),
        ([1, 1, 1], "maximum", "PerValue: rule must be one of min, mean, max (did you mean 'max'?); got 'maximum'"),
    ],
)
def test_wrong_levels_and_rules_are_named(epsilons: object, rule: str, message: str) -> None:
    assert refusal(sf.PerValue, ILLNESS, epsilons, rule).startswith(message)


def test_the_minimum_protects_as_published() -> None:
    """Gu et al. 2020: min E implies MinID-LDP, which implies the smaller of max E and 2·min E."""
    for own in itertools.product(["1", "3/2", "4"], repeat=3):
        policy = sf.PerValue(R(3), own)
        levels = sorted(policy.epsilons)
        assert sf.implies(sf.Uniform(R(3), levels[0]), policy)
        assert sf.implies(policy, sf.Uniform(R(3), min(levels[-1], levels[0] * 2)))


def test_extreme_pairs_and_structure_equal_those_of_the_matrix() -> None:
    for policy in random_policies(60):
        matrix = dense(policy)
        assert policy.least[0] == matrix.least[0]
        assert policy.greatest_effective[0] == matrix.greatest_effective[0]
        if len(policy.domain) > 1:
            assert policy.epsilon_between(*policy.least[1]) == policy.least[0]
            assert policy.effective_epsilon(*policy.greatest_effective[1]) == policy.greatest_effective[0]
        simplest, expected = structure_of(policy), structure_of(matrix)
        assert type(simplest) is (sf.PerValue if expected is matrix else type(expected))
        assert sf.implies(simplest, matrix)
        assert sf.implies(matrix, simplest)


@pytest.mark.parametrize(
    ("policy", "simplest"),
    [
        (sf.PerValue(R(3), [1, 1, 5]), sf.Uniform(R(3), 1)),
        (sf.PerValue(R(4), [1, 1, 5, 7]), sf.Blocks(R(4), "abcc", 2, across=1)),
        (sf.PerValue(R(3), ["inf", 1, "inf"]), sf.Blocks(R(3), "aba", 2, across=1)),
        (sf.PerValue(R(3), [1, 2, 2], "max"), sf.Uniform(R(3), 2)),
        (sf.PerValue(R(3), [1, 1, "inf"], "max"), sf.Blocks(R(3), "aab", 1)),
        (sf.PerValue(R(3), [1, 1, 3], "mean"), sf.Blocks(R(3), "aab", 1, across=2)),
        (sf.PerValue(R(3), ["inf"] * 3), sf.Uniform(R(3), "inf")),
        (sf.PerValue(R(1), [1]), sf.Uniform(R(1), "inf")),
    ],
)
def test_known_structures(policy: sf.PerValue, simplest: sf.Policy) -> None:
    assert policy.simplify() == simplest


def test_three_effective_levels_have_no_simpler_form() -> None:
    policy = sf.PerValue(R(4), [2, 3, 4, 4])
    assert policy.simplify() is policy


def test_composition_keeps_the_form_where_it_is_exact() -> None:
    first, second = sf.PerValue(R(3), [1, "3/2", 9]), sf.PerValue(R(3), [2, 2, 3])
    assert first.compose(second) == sf.PerValue(R(3), [3, "7/2", 5])  # 9 is effectively 2
    reverse = sf.PerValue(R(3), [3, "5/2", 2])
    assert isinstance(first.compose(reverse), sf.Pairwise)  # the policies disagree on the more sensitive value
    assert first.compose(reverse) == dense(first).compose(dense(reverse))
    means = [sf.PerValue(R(3), own, "mean") for own in ([1, 2, 3], [5, 1, 1])]
    assert means[0].compose(means[1]) == sf.PerValue(R(3), [6, 3, 4], "mean")
    assert isinstance(first.compose(means[0]), sf.Pairwise)


def test_restriction_keeps_the_limits_through_values_that_cannot_occur() -> None:
    policy = sf.PerValue(ILLNESS, {"none": 9, "flu": 8, "hiv": "1/2"})
    assert policy.restrict(["flu", "none"]) == sf.PerValue(sf.Domain(["flu", "none"]), [1, 1])


def test_warnings_equal_those_of_the_matrix() -> None:
    for policy in random_policies(20):
        assert disclosure_warnings(policy) == disclosure_warnings(dense(policy))


@pytest.mark.slow
def test_many_values_need_no_matrix() -> None:
    size = 20_000
    own = np.where(np.arange(size) < 100, 0.5, np.where(np.arange(size) < 5000, 0.75, 0.875))
    policy = sf.PerValue(R(size), own)
    assert policy.least[0] == sf.Epsilon("0.5")
    assert policy.greatest_effective == (sf.Epsilon("0.875"), (size - 2, size - 1))
    assert policy.simplify() is policy
    assert policy.compose(policy) == sf.PerValue(R(size), 2 * own)
    assert sf.implies(policy, sf.Uniform(R(size), 1))
    assert not sf.implies(policy, sf.Uniform(R(size), "0.87"))
    weights: Any = np.ones((2, size), dtype=np.int64)
    assert policy.allows_all(weights)
    weights[1, 7] = 2  # ln 2 = 0.69 exceeds 0.5
    assert not policy.allows_all(weights)
    assert [len(bound.values) for bound in posterior_bounds(policy, 0.1)] == [100, 4900, size - 5000]
    assert disclosure_warnings(policy) == []
    # Each value of the least level would be a block.
    assert sf.PerValue(R(size), np.where(np.arange(size) < 5000, 0.5, 0.75)).simplify().kind == "per-value"


def test_the_number_of_different_levels_is_limited() -> None:
    message = refusal(sf.PerValue, R(5000), [f"{x}/7" for x in range(1, 5001)])
    assert message.startswith(
        "PerValue: epsilons must have at most 2048 different entries for 5000 values under the ru"
    )
    message = refusal(sf.PerValue, R(600), list(range(600)), "mean")
    assert message.startswith("PerValue: epsilons must have at most 512 different entries for 600 values")
    assert sf.PerValue(R(600), list(range(600))).effective_epsilon(5, 6) == sf.Epsilon(0)


def test_a_mechanism_is_designed_and_audited() -> None:
    policy = sf.PerValue(ILLNESS, {"hiv": "1/2", "flu": "3/4", "none": 1})
    mechanism = sf.design(policy, 1000)
    assert sf.audit(mechanism, policy).holds
    assert not sf.audit(mechanism, sf.Uniform(ILLNESS, "1/2")).holds


def test_a_value_without_a_limit_is_protected_by_the_others() -> None:
    policy = sf.PerValue(R(3), [1, "inf", "inf"])
    assert policy.epsilon_between(1, 2) == INFINITE
    assert policy.effective_epsilon(1, 2) == sf.Epsilon(2)
