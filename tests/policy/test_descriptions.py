"""Policies in words: what a reply may give away is what the rays of the policy's cone can do."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import sfumato as sf
from sfumato.compiler.solvers.slice import Slice
from sfumato.policy.descriptions import describe, disclosure_warnings, strictest

R = sf.Domain.range


def stated_error(policy: sf.Policy) -> float | None:
    """The probability of a wrong guess that a warning states, None where there is none."""
    warnings = disclosure_warnings(policy)
    if not warnings:
        return None
    match = re.search("probability of only ([0-9.e-]+)", warnings[0])
    return float(match[1]) if match else 0.0


def least_error(policy: sf.Policy, prior: list[float]) -> float:
    """The least probability, over all rays and values, that a value is another one after a reply."""
    p = np.array(prior)
    rays = Slice.of(policy, p).all_vertices()
    assert rays is not None
    weights = rays * p
    return float((1 - weights / weights.sum(axis=1, keepdims=True)).min())


def random_matrices(count: int) -> list[sf.Pairwise]:
    generator = random.Random(12)
    policies = []
    for _ in range(count):
        k = generator.choice([2, 3, 4])
        matrix = [[0 if x == z else generator.choice(["1", "4", "6", "9"]) for z in range(k)] for x in range(k)]
        policies.append(sf.Pairwise(R(k), matrix))
    return policies


@pytest.mark.parametrize(
    "policy",
    [
        sf.Uniform(R(4), "4.5"),
        sf.Uniform(R(2), 3),
        sf.HighLow(R(4), range(4), 6),
        sf.Blocks(R(4), "aabb", 5, across=6),
        sf.Blocks(R(5), "aabbb", [9, 5], across=4),
        sf.Blocks(R(4), "aabb", 5),
        sf.Metric(R(4), "absolute", 5),
        sf.PerValue(R(4), ["4", "5", "6", "20"]),
        sf.PerValue(R(4), ["4", "5", "6", "6"], "mean"),
        sf.PerValue(R(4), ["4", "4", "6", "6"], "max"),
        sf.Graph(R(4), [(0, 1), (1, 2), (2, 3)], 5),
        *random_matrices(12),
    ],
    ids=lambda policy: f"{policy.kind}-{policy.hash[:4]}",
)
def test_the_stated_odds_are_those_of_the_most_telling_ray(policy: sf.Policy) -> None:
    k = len(policy.domain)
    error, stated = least_error(policy, [1 / k] * k), stated_error(policy)
    if stated is None:
        assert error > 0.05 * (1 - 1 / k)
    else:
        assert stated == pytest.approx(error, rel=0.06)  # it has two digits
        assert error <= 0.05 * (1 - 1 / k)


@pytest.mark.parametrize("side", ["both", "upper", "lower"])
@pytest.mark.parametrize("epsilon", ["0.5", "2", "4", "8"])
def test_under_a_prior_the_odds_start_from_it(side: str, epsilon: str) -> None:
    policy = sf.Prior(R(4), ["0.4", "0.3", "0.2", "0.1"], epsilon, side)
    stated = stated_error(policy)
    error = least_error(policy, [float(p) for p in policy.prior])
    if stated is not None:
        assert stated == pytest.approx(error, rel=0.06, abs=1e-9)
    else:
        assert error > 0.05 * 0.6


def test_a_likely_value_raises_no_alarm_by_itself() -> None:
    assert not disclosure_warnings(sf.Prior(R(2), ["0.99", "0.01"], 1))
    assert disclosure_warnings(sf.Prior(R(2), ["0.99", "0.01"], 20))
    assert not disclosure_warnings(sf.Prior(R(2), [1, 0], 20))  # nothing was in doubt
    assert not disclosure_warnings(sf.Uniform(sf.Domain(["only"]), "inf"))


@pytest.mark.slow
def test_large_domains_are_answered_for_without_a_matrix() -> None:
    assert stated_error(sf.Uniform(R(10**6), 20)) == pytest.approx(0.0021, rel=0.05)
    assert stated_error(sf.Uniform(R(10**6), 10)) is None
    blocks = sf.Blocks(R(2000), [x // 2 for x in range(2000)], 20)
    assert stated_error(blocks) == pytest.approx(2.1e-9, rel=0.05)
    # Of more than 512 values only the nearest is looked at, which states more than there is.
    many = sf.Metric(R(520), "absolute", 30)
    few = sf.Metric(R(500), "absolute", 30)
    assert stated_error(few) == pytest.approx(2 * np.exp(-30), rel=0.05)
    assert stated_error(many) == pytest.approx(519 * np.exp(-30), rel=0.05)


@pytest.mark.parametrize("epsilon", ["20", "709", "711", "1e6", "1000000000000", "inf"])
def test_no_words_hold_an_infinite_number(epsilon: str) -> None:
    product = sf.Domain.product(S=["a", "b"], U=range(2))
    policies: list[sf.Policy] = [
        sf.Uniform(R(3), epsilon),
        sf.HighLow(R(3), [1], epsilon),
        sf.Blocks(R(4), "aabb", epsilon),
        sf.Blocks(R(4), "aabb", 1, across=epsilon),
        sf.Metric(R(3), "absolute", epsilon),
        sf.PerValue(R(3), [epsilon, epsilon, "20"]),
        sf.PerValue(R(3), [epsilon, "1", "1"], "max"),
        sf.Graph(R(3), [(0, 1, epsilon), (1, 2, "20")]),
        sf.Pairwise(R(3), {(0, 1): epsilon, (1, 0): 1}),
        sf.Prior(R(3), ["1/3"] * 3, epsilon),
        sf.Secret(product, "S", epsilon, sf.Anything()),
        sf.Secret(product, "S", epsilon, sf.Known([["1/4", "1/4"]] * 2)),
    ]
    for policy in policies:
        said = " ".join([describe(policy), *disclosure_warnings(policy)])
        assert not re.search(r"\binf\b|\bnan\b|any number of times", said), said
        assert "inf times" not in strictest(policy)
