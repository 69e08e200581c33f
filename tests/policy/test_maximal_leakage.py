"""Pointwise maximal leakage: the one-sided prior policy, and the published optima for small levels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf

#: Priors and a level ln of a rational with e^ε·(1 - p) ≤ 1 for every probability p.
SMALL_LEVELS = [
    (["1/2", "1/2"], "3/2"),
    (["3/10", "7/10"], "13/10"),
    (["1/5", "3/10", "1/2"], "11/10"),
    (["1/5", "3/10", "1/2"], "5/4"),
    (["1/4"] * 4, "4/3"),
    (["1/20", "3/20", "1/5", "1/4", "7/20"], "21/20"),
]


def published(prior: list[Fraction], factor: Fraction) -> list[list[Fraction]]:
    """Grosse, Saeidian and Oechtering 2024: Q(y|x) = e^ε·p(y), and 1 - e^ε·(1 - p(x)) on the diagonal."""
    return [[1 - factor * (1 - p) if x == y else factor * p for y, p in enumerate(prior)] for x in range(len(prior))]


def information(prior: list[Fraction], channel: list[list[Fraction]]) -> float:
    """Return the mutual information of a value and its report in nats."""
    joint = np.array([[float(p * q) for q in row] for p, row in zip(prior, channel, strict=True)])
    outer = joint.sum(axis=1)[:, None] * joint.sum(axis=0)
    used = joint > 0
    return float((joint[used] * np.log(joint[used] / outer[used])).sum())


def test_it_is_the_policy_with_the_upper_side() -> None:
    domain = sf.Domain(["no", "yes"])
    policy = sf.Prior.maximal_leakage(domain, {"yes": "1/10", "no": "9/10"}, "ln 2")
    assert policy == sf.Prior(domain, ["9/10", "1/10"], "ln 2", side="upper")
    assert policy.hash == sf.Prior(domain, ["9/10", "1/10"], "ln 2", side="upper").hash


@pytest.mark.parametrize(("probabilities", "factor"), SMALL_LEVELS)
def test_the_published_mechanism_obeys_and_reaches_the_bound(probabilities: list[str], factor: str) -> None:
    prior = [Fraction(p) for p in probabilities]
    policy = sf.Prior.maximal_leakage(sf.Domain.range(len(prior)), prior, f"ln {factor}")
    channel = published(prior, Fraction(factor))
    assert all(sum(row) == 1 and min(row) >= 0 for row in channel)
    for column in zip(*channel, strict=True):
        worst = policy.worst(column)
        assert not worst.violated
        assert worst.left == Fraction(factor) * worst.right  # the leakage of every report is exactly ε
    optimum = sf.optimal(policy, utility="mutual-information")
    assert optimum.bound == pytest.approx(information(prior, channel), rel=1e-9)
    assert optimum.value == pytest.approx(information(prior, channel), rel=1e-9)


@pytest.mark.parametrize(("size", "epsilon"), [(3, "0.5"), (4, "0.4"), (5, "0.7")])
def test_the_optimum_for_a_uniform_prior_has_its_closed_form(size: int, epsilon: str) -> None:
    """At most ⌊k·e^-ε⌋ values have the likelihood e^ε, one has the rest, and all others have none."""
    policy = sf.Prior.maximal_leakage(sf.Domain.range(size), [Fraction(1, size)] * size, epsilon)
    factor = math.exp(float(epsilon))
    most = math.floor(size / factor)
    rest = size - most * factor
    closed = (most * factor * float(epsilon) + rest * math.log(rest)) / size
    optimum = sf.optimal(policy, utility="mutual-information")
    assert optimum.bound == pytest.approx(closed, rel=1e-7)
    assert optimum.value == pytest.approx(closed, rel=1e-7)
