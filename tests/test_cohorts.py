"""Cohorts and groups: combined estimates are unbiased and at least as precise as each part, by exact computation."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato._estimate.decoders import decoder_for
from sfumato.errors import CannotDecide, InvalidInput
from sfumato.mechanisms import HadamardResponse, Mechanism, RandomizedResponse, SubsetSelection, UnaryEncoding

DOMAIN = sf.Domain(["none", "flu", "hiv", "cancer"])
P = np.array([0.5, 0.3, 0.05, 0.15])


def exact_counts(mechanism: Mechanism, n: int, p: np.ndarray[tuple[int], np.dtype[np.float64]] = P) -> sf.Aggregate:
    """Counts at their expectation, to the nearest integer: an estimate from them is p, nearly exactly."""
    expected = decoder_for(mechanism).shares(p) * n
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
    combined = sf.combine(halves)
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


def test_a_functional_of_a_combined_estimate() -> None:
    combined = sf.combine(COHORTS)
    share = combined.share(["hiv", "cancer"])
    assert share.value == pytest.approx(0.2, abs=1e-6)
    weights = np.array([0, 0, 1, 1.0])
    assert share.standard_error == pytest.approx((weights @ combined.covariance @ weights) ** 0.5)


def test_cohorts_of_different_domains_are_refused() -> None:
    other = cohort(RandomizedResponse(DOMAIN, 1), 100)
    stranger = sf.estimate(
        RandomizedResponse(sf.Domain.range(4), 1), exact_counts(RandomizedResponse(sf.Domain.range(4), 1), 100)
    )
    with pytest.raises(InvalidInput, match="estimate 1 must be over the domain of the first"):
        sf.combine([other, stranger])
    with pytest.raises(InvalidInput, match="at least one"):
        sf.combine([])
    clear = RandomizedResponse(DOMAIN, "inf")
    with pytest.raises(InvalidInput, match="estimate 0 must have an error"):
        sf.combine([sf.estimate(clear, sf.aggregate(clear, [0] * 10))])


def test_the_influence_of_liars_on_combined_cohorts_is_not_bounded_here() -> None:
    with pytest.raises(CannotDecide, match="bound each cohort by itself"):
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
    with pytest.raises(InvalidInput, match="not all 0"):
        result.weighted({"north": 0, "south": 0})
    with pytest.raises(InvalidInput, match="be one of"):
        result.difference("north", "east")
    with pytest.raises(InvalidInput, match="at least one"):
        sf.estimate_groups(MECHANISM, {})


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
    with pytest.raises(InvalidInput, match="prior must be given with method 'mmse'"):
        sf.estimate(mechanism, exact_counts(mechanism, 100), "mmse")
    with pytest.raises(InvalidInput, match="only with it"):
        sf.estimate(mechanism, exact_counts(mechanism, 100), prior=P)
    with pytest.raises(InvalidInput, match="not be 'mmse' for bitmaps"):
        sf.estimate(unary, exact_counts(unary, 100), "mmse", prior=P)
