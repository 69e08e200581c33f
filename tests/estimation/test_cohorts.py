"""Cohorts and groups: combined estimates are unbiased and at least as precise as each part, by exact computation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.collecting import Aggregate
from sfumato.errors import InvalidInput, Undecided
from sfumato.estimation import MechanismEstimate
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.parts.high_low import HighLowSubset
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

DOMAIN = sf.Domain(["none", "flu", "hiv", "cancer"])
P = np.array([0.5, 0.3, 0.05, 0.15])


def exact_counts(mechanism: Mechanism, n: int, p: np.ndarray[tuple[int], np.dtype[np.float64]] = P) -> sf.Aggregate:
    """Counts at their expectation, to the nearest integer: an estimate from them is p, nearly exactly."""
    expected = mechanism.estimator.expected_counts(p) * n
    counts = np.floor(expected).astype(np.int64)
    missing = round(float(expected.sum())) - int(counts.sum())
    counts[np.argsort(counts - expected)[:missing]] += 1  # largest remainders first
    return sf.Aggregate(mechanism.hash, n, counts)


def cohort(mechanism: Mechanism, n: int) -> sf.Estimate:
    return sf.estimate(mechanism, exact_counts(mechanism, n))


COHORTS = [
    cohort(RandomizedResponse(DOMAIN, 1), 10**7),
    cohort(RandomizedResponse(DOMAIN, 3), 10**6),
    cohort(HadamardResponse(DOMAIN, 2), 10**7),
    cohort(UnaryEncoding(DOMAIN, 1), 10**7),
    cohort(SubsetSelection(DOMAIN, 1, 2), 10**7),
]


def test_combining_is_unbiased_and_never_less_precise() -> None:
    combined = sf.combine(COHORTS)
    assert combined.n == sum(part.n for part in COHORTS)
    np.testing.assert_allclose(combined.frequencies, P, atol=1e-6)
    for part in COHORTS:
        # Loewner order: every linear functional is estimated at least as well.
        gap = part.covariance - combined.covariance
        assert np.linalg.eigvalsh(gap).min() > -1e-12
    assert (combined.standard_errors <= min(part.standard_errors.max() for part in COHORTS)).all()
    np.testing.assert_allclose(combined.standard_errors**2, np.diag(combined.covariance), rtol=1e-9)


def test_combining_two_halves_of_one_cohort_is_the_whole() -> None:
    mechanism = HadamardResponse(DOMAIN, 2)
    halves = [cohort(mechanism, 10**6), cohort(mechanism, 10**6)]
    whole = sf.combine([cohort(mechanism, 2 * 10**6)])
    combined = sf.combine(half for half in halves)
    np.testing.assert_allclose(combined.frequencies, whole.frequencies, atol=1e-6)
    np.testing.assert_allclose(combined.covariance, whole.covariance, rtol=1e-4, atol=1e-13)


def test_weights_are_those_of_generalised_least_squares() -> None:
    """Two invertible covariances: the least covariance Z(Z' Σ C⁻¹ Z)⁻¹Z' of vectors that sum to zero is attained."""
    parts = [cohort(HadamardResponse(DOMAIN, 1), 10**6), cohort(UnaryEncoding(DOMAIN, 1), 10**6)]
    combined = sf.combine(parts)
    precision = np.sum([np.linalg.inv(part.covariance) for part in parts], axis=0)
    basis = np.array([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1.0]]).T
    textbook = basis @ np.linalg.inv(basis.T @ precision @ basis) @ basis.T
    np.testing.assert_allclose(combined.covariance, textbook, rtol=1e-4, atol=1e-12)
    assert combined.frequencies.sum() == pytest.approx(1)


def test_many_values_are_weighted_one_by_one() -> None:
    domain = sf.Domain.range(1500)
    p = np.full(1500, 1 / 1500)
    parts = [
        sf.estimate(m, exact_counts(m, n, p))
        for m, n in ((HadamardResponse(domain, 1), 10**8), (RandomizedResponse(domain, 6), 10**7))
    ]
    combined = sf.combine(parts)
    expected = 1 / (1 / parts[0].standard_errors ** 2 + 1 / parts[1].standard_errors ** 2)
    np.testing.assert_allclose(combined.standard_errors**2, expected, rtol=1e-3)


@pytest.mark.parametrize("people", [["none"] * 100, ["none", "hiv"] * 50], ids=["one value", "two"])
def test_a_cohort_with_a_value_nobody_told_of_combines_to_itself(people: list[str]) -> None:
    mechanism = sf.design(sf.HighLow(DOMAIN, ["hiv", "cancer"], 1), n=1000)
    alone = sf.estimate(mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, people, sf.InsecureSeeded(1))))
    assert alone.unbiased[1] == 0
    for cohorts in ([alone], [alone, alone]):
        combined = sf.combine(cohorts)
        np.testing.assert_allclose(combined.frequencies, alone.frequencies, atol=1e-12)
        np.testing.assert_allclose(combined.covariance, alone.covariance / len(cohorts), atol=1e-12)
    np.testing.assert_allclose(sf.combine([alone]).interval(), alone.interval(), atol=1e-9)
    np.testing.assert_allclose(sf.combine([alone]).standard_errors, alone.standard_errors, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [60, 1100])
def test_combining_is_closer_to_the_truth_however_many_values_nobody_told_of(size: int, is_soak: bool) -> None:
    domain, truth = sf.Domain.range(size), np.zeros(size)
    truth[:40] = 1 / 40
    mechanisms = [sf.design(sf.HighLow(domain, list(range(10)), epsilon), n=3000) for epsilon in (1, 2)]
    errors = np.zeros(3)
    for seed in range(4 if is_soak or size < 100 else 1):
        parts = [sf.simulate(m, n=3000, truth=truth, seed=2 * seed + i).estimate for i, m in enumerate(mechanisms)]
        combined = sf.combine(parts)
        errors += [float(np.abs(part.unbiased - truth).sum()) for part in (*parts, combined)]
        low, high = combined.interval()
        assert np.mean((low <= truth) & (truth <= high)) > 0.9
        assert (combined.standard_errors > 0).all()
        assert (high[40:] < 0.1).all()
    assert errors[2] < errors[:2].min()


def test_a_value_that_one_cohort_told_in_clear_of_nobody_keeps_its_error() -> None:
    """Told in clear by nobody among a hundred, hidden by few: the error is not far below that of both by themselves."""
    domain = sf.Domain.range(4)
    told = HighLowSubset(domain, [0, 1], "1"), [0] * 50 + [1] * 30 + [2] * 20
    hidden = HighLowSubset(domain, [2, 3], "1"), [0] * 10 + [1] * 10 + [2] * 4
    cohorts = [
        sf.estimate(mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, values, sf.InsecureSeeded(seed))))
        for seed, (mechanism, values) in enumerate((told, hidden), 1)
    ]
    combined = sf.combine(cohorts)
    errors = [cohort.standard_errors[3] for cohort in cohorts]
    best = math.hypot(1 / errors[0], 1 / errors[1]) ** -1
    for found in (combined.standard_errors[3], combined.set_fraction([3]).standard_error):
        assert found > best / 2


def test_a_block_that_nobody_is_in_combines_to_nobody() -> None:
    domain = sf.Domain(list("abcdef"))
    truth = [0.4, 0.3, 0.2, 0.1, 0, 0]
    blocks = [["a", "b"], ["c", "d"], ["e", "f"]]
    mechanisms = [sf.design(sf.Blocks(domain, blocks, epsilon), n=3000) for epsilon in (1, 2)]
    combined = sf.combine([sf.simulate(m, n=3000, truth=truth, seed=3).estimate for m in mechanisms])
    np.testing.assert_allclose(combined.frequencies[4:], 0, atol=1e-9)
    assert np.abs(combined.frequencies - truth).max() < 5 * combined.standard_errors.max()
    low, high = combined.interval()
    assert (low[4:] < 1e-9).all()
    assert ((high[4:] > 0) & (high[4:] < 0.01)).all()


@pytest.mark.parametrize("size", [8, 1100])
def test_combining_does_not_move_what_the_cohorts_agree_on(size: int) -> None:
    """The weights sum to the identity wherever they are computed, here where most values have nobody."""
    domain, p = sf.Domain.range(size), np.zeros(size)
    p[[0, size - 1]] = 0.25, 0.75
    mechanisms = [sf.design(sf.HighLow(domain, [0, 1], epsilon), n=100) for epsilon in (1, 2)]
    parts = [
        MechanismEstimate("unbiased", p, p, p, mechanism=mechanism, counts=replace(Aggregate.empty(mechanism), n=100))
        for mechanism in mechanisms
    ]
    np.testing.assert_allclose(sf.combine(parts).frequencies, p, atol=1e-12)


@pytest.mark.parametrize("wrong", [[exact_counts(RandomizedResponse(DOMAIN, 1), 100)], COHORTS[0], 5], ids=type)
def test_what_is_not_a_list_of_estimates_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="combine: estimate"):
        sf.combine(wrong)


def test_a_functional_of_a_combined_estimate() -> None:
    combined = sf.combine(COHORTS)
    share = combined.set_fraction(["hiv", "cancer"])
    assert share.value == pytest.approx(0.2, abs=1e-6)
    weights = np.array([0, 0, 1, 1.0])
    assert share.standard_error == pytest.approx((weights @ combined.covariance @ weights) ** 0.5)


def test_cohorts_of_different_domains_are_refused() -> None:
    other = cohort(RandomizedResponse(DOMAIN, 1), 100)
    stranger = sf.estimate(
        RandomizedResponse(sf.Domain.range(4), 1), exact_counts(RandomizedResponse(sf.Domain.range(4), 1), 100)
    )
    with pytest.raises(InvalidInput, match="estimate 1 must have the domain of the first estimate"):
        sf.combine([other, stranger])
    with pytest.raises(InvalidInput, match="at least one"):
        sf.combine([])
    clear = RandomizedResponse(DOMAIN, "inf")
    with pytest.raises(InvalidInput, match="estimate 0 must have an error"):
        sf.combine([sf.estimate(clear, sf.aggregate(clear, [0] * 10))])


def test_the_influence_of_liars_on_combined_cohorts_is_not_bounded_here() -> None:
    with pytest.raises(Undecided, match=r"\. Call influence\(\) on the estimate of each cohort in parts\.$"):
        sf.combine(COHORTS).influence(0.01)


# -- groups ----------------------------------------------------------------------------------------------------


MECHANISM = HadamardResponse(DOMAIN, 2)
NORTH, SOUTH = np.array([0.6, 0.2, 0.1, 0.1]), np.array([0.4, 0.4, 0.0, 0.2])


def grouped() -> sf.GroupedEstimate:
    aggregates = {"north": exact_counts(MECHANISM, 10**6, NORTH), "south": exact_counts(MECHANISM, 3 * 10**6, SOUTH)}
    return sf.estimate_groups(MECHANISM, aggregates)


def test_groups_their_total_and_their_differences() -> None:
    result = grouped()
    np.testing.assert_allclose(result.groups["north"].frequencies, NORTH, atol=1e-5)
    np.testing.assert_allclose(result.total.frequencies, (NORTH + 3 * SOUTH) / 4, atol=1e-5)
    assert result.total.n == 4 * 10**6
    differences = result.difference("north", "south")
    assert list(differences) == list(DOMAIN)
    flu = differences["flu"]
    assert flu.value == pytest.approx(-0.2, abs=1e-5)
    errors = [float(result.groups[name].standard_errors[1]) for name in ("north", "south")]
    assert flu.standard_error == pytest.approx((errors[0] ** 2 + errors[1] ** 2) ** 0.5)
    assert flu.p_value() < 1e-6
    low, high = flu.interval(0.95)
    assert low < -0.2 < high


def test_survey_weights() -> None:
    result = grouped()
    halves = result.weighted({"north": 2, "south": 2})
    assert [halves[label].value for label in DOMAIN] == pytest.approx(list((NORTH + SOUTH) / 2), abs=1e-5)
    errors = np.array([result.groups[name].standard_errors for name in ("north", "south")])
    assert halves["flu"].standard_error == pytest.approx(float(np.sum(errors[:, 1] ** 2)) ** 0.5 / 2)
    with pytest.raises(InvalidInput, match="name each of the groups"):
        result.weighted({"north": 1})
    with pytest.raises(InvalidInput, match="be at least 0 and have a positive sum"):
        result.weighted({"north": 0, "south": 0})
    wrong: Any
    for wrong in (math.nan, math.inf, "2", None):
        with pytest.raises(InvalidInput, match="weighted: weights must be finite numbers"):
            result.weighted({"north": 1, "south": wrong})
    with pytest.raises(InvalidInput, match="be one of"):
        result.difference("north", "east")
    with pytest.raises(InvalidInput, match="at least one"):
        sf.estimate_groups(MECHANISM, {})


def test_a_value_nobody_in_a_group_told_of_is_not_known_to_be_absent() -> None:
    mechanism = sf.design(sf.HighLow(DOMAIN, ["hiv", "cancer"], 1), n=1000)
    groups = {
        name: sf.aggregate(mechanism, sf.privatize(mechanism, ["none"] * n, sf.InsecureSeeded(n)))
        for name, n in (("north", 100), ("south", 400))
    }
    result = sf.estimate_groups(mechanism, groups)
    high = float(result.groups["north"].interval()[1][1])
    difference = result.difference("north", "south")["flu"]
    assert difference.value == 0
    assert difference.standard_error > 0
    assert difference.interval()[1] == pytest.approx(high, rel=0.03)
    assert difference.p_value(high / 2) > 0.05
    assert result.weighted({"north": 1, "south": 1})["flu"].interval()[1] == pytest.approx(high / 2, rel=0.03)


# -- the posterior mean ------------------------------------------------------------------------------------------


def test_the_mean_posterior_is_that_of_bayes() -> None:
    mechanism = RandomizedResponse(DOMAIN, 1)
    prior = np.array([0.4, 0.4, 0.1, 0.1])
    counts = np.array([10, 20, 30, 40])
    found = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, 100, counts), "mmse", prior=prior).frequencies
    matrix = mechanism.matrix()
    posterior = prior[:, None] * matrix / (prior @ matrix)
    np.testing.assert_allclose(found, posterior @ counts / 100, rtol=1e-12)


def test_the_mean_posterior_needs_its_prior_and_a_histogram() -> None:
    mechanism, unary = RandomizedResponse(DOMAIN, 1), UnaryEncoding(DOMAIN, 1)
    with pytest.raises(InvalidInput, match="prior must be passed with method 'mmse'; got None"):
        sf.estimate(mechanism, exact_counts(mechanism, 100), "mmse")
    with pytest.raises(InvalidInput, match="prior must be left out with method 'unbiased'"):
        sf.estimate(mechanism, exact_counts(mechanism, 100), prior=P)
    with pytest.raises(InvalidInput, match="not be 'mmse' for bitmaps"):
        sf.estimate(unary, exact_counts(unary, 100), "mmse", prior=P)
