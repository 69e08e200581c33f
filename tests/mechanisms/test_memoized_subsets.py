"""Memoized subset selection with two sizes: exact laws, optimal stages, and what two reports share."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.mechanisms import MemoizedMechanism, keeps_answers, shared_moments
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.testing import check_law
from support.family_examples import all_examples

R = sf.Domain.range


def memoized(k: int, first: str, lifetime: str, **options: Any) -> MemoizedMechanism:
    domain = R(k)
    mechanism = sf.design(sf.Uniform(domain, first), lifetime=sf.Uniform(domain, lifetime), max_bits=None, **options)
    assert isinstance(mechanism, MemoizedMechanism)
    return mechanism


def sizes(mechanism: MemoizedMechanism) -> tuple[int, int]:
    """Return the sizes of a report and of a permanent answer."""
    single, permanent = mechanism.single, mechanism.permanent
    assert isinstance(single, SubsetSelection)
    assert isinstance(permanent, SubsetSelection)
    return single.size, permanent.size


@pytest.mark.slow
@pytest.mark.parametrize(("k", "first", "lifetime"), [(5, "0.1", "3"), (6, "0.5", "3"), (6, "0.2", "inf")])
def test_both_levels_and_the_law_of_one_report_are_exact(k: int, first: str, lifetime: str) -> None:
    mechanism = memoized(k, first, lifetime, mechanism="subset")
    size, smaller = sizes(mechanism)
    assert smaller < size
    for made, level in ((mechanism, first), (mechanism.permanent, lifetime)):
        certificate = sf.audit(made, sf.Uniform(R(k), level))
        assert certificate.holds
        assert certificate.coverage == "all"
        check_law(made)
    answers, reports = list(mechanism.permanent.reports()), list(mechanism.reports())
    response = {z: [mechanism.instantaneous.probability(y, z) for y in reports] for z in answers}
    assert all(sum(row) == 1 for row in response.values())
    for x in range(k):
        law = [mechanism.permanent.probability(z, x) for z in answers]
        composed = [sum(p * response[z][i] for z, p in zip(answers, law, strict=True)) for i in range(len(reports))]
        assert composed == [mechanism.probability(y, x) for y in reports]
    for waves in itertools.islice(itertools.combinations_with_replacement(reports, 3), 0, None, 37):
        for x in (0, k - 1):
            joint = sum(
                mechanism.permanent.probability(z, x)
                * math.prod(mechanism.instantaneous.probability(y, z) for y in waves)
                for z in answers
            )
            assert mechanism.joint_probability(waves, x) == joint


@pytest.mark.parametrize(("first", "lifetime"), [("0.5", "1"), ("1", "2"), ("1", "4")])
@pytest.mark.parametrize("k", [2, 10, 100])
def test_both_stages_are_the_best_mechanisms_for_their_levels(k: int, first: str, lifetime: str) -> None:
    mechanism = memoized(k, first, lifetime)
    for made, level in ((mechanism, first), (mechanism.permanent, lifetime)):
        best = sf.plan(sf.Uniform(R(k), level), n=1, max_bits=None).best
        assert made.risk(1) == pytest.approx(best.risk, rel=1e-9)


def test_a_permanent_set_grows_until_its_mixture_is_strong_enough() -> None:
    """A smaller set has a smaller γ, so levels that differ little may need a set that is larger than the best one."""
    made = [memoized(k, "1", level, mechanism="subset") for k in range(3, 40) for level in ("1", "1.01", "1.1", "1.5")]
    for mechanism in made:
        assert 0 < mechanism.keep_probability(0) <= 1
        assert sizes(mechanism)[1] <= sizes(mechanism)[0]
    assert any(sizes(m)[1] > SubsetSelection(m.domain, getattr(m.permanent, "epsilon", 1)).size for m in made)


EXAMPLES = [made for examples in all_examples() for made in examples.samplers()]
MEMOIZED = {
    f"{i}: {made.single.name}": made
    for i, made in enumerate(EXAMPLES)
    if isinstance(made, MemoizedMechanism) and made.outputs < 200 and np.isfinite(made.risk(1))
}


@pytest.mark.parametrize("mechanism", MEMOIZED.values(), ids=MEMOIZED)
def test_two_reports_share_the_mean_score_given_the_permanent_answer(mechanism: MemoizedMechanism) -> None:
    report_format = mechanism.report_format
    reports = list(mechanism.reports())
    rows = [np.frombuffer(report_format.encode(y), np.uint8) if report_format.shape else y for y in reports]
    counts = report_format.indicators(report_format.validate(np.array(rows)))
    scores = np.array([mechanism.estimator.frequencies(row.astype(float)) for row in counts])
    answers = list(mechanism.permanent.reports())
    response = np.array([[float(mechanism.instantaneous.probability(y, z)) for y in reports] for z in answers])
    size = len(mechanism.domain)
    law = np.array([[float(mechanism.permanent.probability(z, x)) for z in answers] for x in range(size)])
    shared = law @ (response @ scores) ** 2
    assert np.allclose(law @ response @ scores, np.eye(size), atol=1e-9)
    for x in range(size):
        assert np.allclose(shared_moments(mechanism, np.eye(size)[x]), shared[x], rtol=1e-7, atol=1e-9)
    weights = np.arange(1, size + 1) / 10
    assert np.allclose(shared_moments(mechanism, weights), weights @ shared, rtol=1e-7, atol=1e-9)
    assert np.array_equal(shared_moments(mechanism, np.zeros(size)), np.zeros(size))
    assert keeps_answers(mechanism) == (mechanism.refresh_every is None)


def test_a_plain_mechanism_may_send_the_same_report_again() -> None:
    mechanism = sf.mechanisms.RandomizedResponse(R(3), 1)
    assert not keeps_answers(mechanism)
    p = np.array([0.5, 0.3, 0.2])
    assert np.allclose(shared_moments(mechanism, p), mechanism.estimator.variances(p) + p**2)


PARTS = {
    "sets of two sizes": lambda epsilon: sf.HighLow(R(7), range(5), epsilon),
    "blocks": lambda epsilon: sf.Blocks(R(7), [0] * 5 + [1, 2], epsilon),
}


@pytest.mark.slow
@pytest.mark.parametrize("lifetime", ["1.2", "3"])
@pytest.mark.parametrize("kind", PARTS.values(), ids=PARTS)
def test_sets_in_parts_have_the_best_size_for_each_level(kind: Any, lifetime: str) -> None:
    name = "block-subset" if kind is PARTS["blocks"] else None
    mechanism = sf.design(kind("0.2"), lifetime=kind(lifetime), mechanism=name)
    assert isinstance(mechanism, MemoizedMechanism)
    assert sf.mechanism_from_spec(mechanism.spec) == mechanism
    for made, policy in ((mechanism, kind("0.2")), (mechanism.permanent, kind(lifetime))):
        certificate = sf.audit(made, policy)
        assert certificate.holds
        assert certificate.coverage == "all"
        check_law(made)
    best = sf.plan(kind(lifetime), n=1, max_bits=None).best
    assert mechanism.permanent.risk(1) <= best.risk * (1 + 1e-9)
    answers, reports = list(mechanism.permanent.reports()), list(mechanism.reports())
    response = {z: {y: mechanism.instantaneous.probability(y, z) for y in reports} for z in answers}
    for x in range(7):
        law = {z: mechanism.permanent.probability(z, x) for z in answers}
        for y in reports:
            assert sum(law[z] * response[z][y] for z in answers) == mechanism.probability(y, x)
        for waves in itertools.islice(itertools.combinations_with_replacement(reports, 3), 0, None, 29):
            joint = sum(law[z] * math.prod(response[z][y] for y in waves) for z in answers)
            assert mechanism.joint_probability(waves, x) == joint


@pytest.mark.parametrize(("first", "lifetime"), [("0.5", "1"), ("1", "2"), ("1", "4")])
@pytest.mark.parametrize("k", [2, 10, 100])
def test_the_default_is_best_for_one_wave_and_for_means(k: int, first: str, lifetime: str) -> None:
    mechanism = sf.design(sf.Uniform(R(k), first), lifetime=sf.Uniform(R(k), lifetime))
    assert isinstance(mechanism, MemoizedMechanism)
    for made, level in ((mechanism, first), (mechanism.permanent, lifetime)):
        best = sf.plan(sf.Uniform(R(k), level), n=1, max_bits=None).best
        assert made.risk(1) <= best.risk * 1.001


def test_short_reports_trade_one_wave_for_means() -> None:
    """With the same sets in both stages, more waves make the sets smaller."""
    first, lifetime = sf.Uniform(R(100), 1), sf.Uniform(R(100), 4)
    made = [sf.design(first, lifetime=lifetime, max_bits=15, waves=waves) for waves in (1, 10, 1000)]
    assert all(isinstance(each, MemoizedMechanism) and each.bits <= 15 for each in made)
    ones = [each.risk(1) for each in made]
    permanents = [each.permanent.risk(1) for each in made if isinstance(each, MemoizedMechanism)]
    assert ones == sorted(ones)
    assert permanents == sorted(permanents, reverse=True)
    assert ones[0] / 10 + 0.9 * permanents[0] > ones[1] / 10 + 0.9 * permanents[1]
    large = sf.design(sf.Uniform(R(2000), 1), lifetime=sf.Uniform(R(2000), 2))
    assert large.bits <= 19


def test_waves_belong_to_a_lifetime_and_are_at_least_one() -> None:
    policy = sf.Uniform(R(3), 1)
    with pytest.raises(InvalidInput, match="waves must be passed together with lifetime"):
        sf.design(policy, waves=3)
    with pytest.raises(InvalidInput, match="waves must"):
        sf.design(policy, lifetime=sf.Uniform(R(3), 2), waves=0)
