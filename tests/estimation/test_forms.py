"""Limits of shares, means, differences and weighted totals: they invert the law of what is estimated."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.collecting import Aggregate
from sfumato.estimation import LinearEstimate, MechanismEstimate
from sfumato.estimation.linear import weighted_sum
from sfumato.mechanisms import CyclicDesign, HadamardResponse, RandomizedResponse, SubsetSelection, UnaryEncoding
from sfumato.mechanisms.estimators.forms import tilted
from sfumato.mechanisms.estimators.scores import SubsetScores
from support.surveys import FAMILIES, counts_of, too_few, truths

GRID = np.concatenate([[0, 0.01, 0.02], np.linspace(0.05, 0.95, 10), [0.98, 0.99, 1]])


def one_estimate(name: str, n: int, epsilon: int = 2, seed: int = 3) -> MechanismEstimate:
    mechanism = FAMILIES[name](epsilon)
    (row,) = counts_of(mechanism, n, truths(len(mechanism.domain))["falling"], 1, seed)
    estimate = sf.estimate(mechanism, Aggregate(mechanism.hash, n, row))
    assert isinstance(estimate, MechanismEstimate)
    return estimate


def frequency(mechanism: RandomizedResponse, n: int, count: int) -> LinearEstimate:
    """The frequency of the second of two values, of which this many reports were received."""
    estimate = sf.estimate(mechanism, Aggregate(mechanism.hash, n, np.array([n - count, count])))
    return estimate[1]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["unbiased", "simplex"])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_share_of_one_value_has_its_interval(name: str, method: str) -> None:
    for n in (25, 20_000):
        mechanism = FAMILIES[name](2)
        size = len(mechanism.domain)
        (row,) = counts_of(mechanism, min(n, 2000), truths(size)["falling"], 1, 3)
        row = row * (n // min(n, 2000))
        estimate = sf.estimate(mechanism, Aggregate(mechanism.hash, n, row), method)
        low, high = estimate.interval(0.9)
        for x in range(size):
            # The same law; where it is inverted, to within the tolerance of the search.
            assert estimate.set_fraction([x]).interval(0.9) == pytest.approx((low[x], high[x]), abs=1e-6)
            others = [y for y in range(size) if y != x]
            assert estimate.set_fraction(others).interval(0.9) == pytest.approx((1 - high[x], 1 - low[x]), abs=1e-6)


def test_a_set_under_randomized_response_has_a_binomial_count() -> None:
    mechanism, n = RandomizedResponse(sf.Domain.range(7), 3), 40
    estimate = sf.estimate(mechanism, Aggregate(mechanism.hash, n, np.array([4, 6, 1, 9, 11, 7, 2])))
    low, high = estimate.set_fraction([0, 2, 5]).interval()
    own, other = (float(mechanism.probability(0, x)) for x in range(2))
    for limit, tail in ((low, lambda k, *law: stats.binom.sf(k - 1, *law)), (high, stats.binom.cdf)):
        chance = 3 * other + (own - other) * limit
        assert tail(12, n, chance) == pytest.approx(0.025, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1, 8])
def test_exact_coverage_of_a_share(epsilon: int) -> None:
    # Normal limits have 0.873 at ε = 8.
    mechanism, n = RandomizedResponse(sf.Domain.range(2), epsilon), 20
    limits = np.array([frequency(mechanism, n, count).interval() for count in range(n + 1)])
    held = []
    for p in np.linspace(0, 1, 101):
        inside = (limits[:, 0] <= p + 1e-12) & (p <= limits[:, 1] + 1e-12)
        law = stats.binom.pmf(range(n + 1), n, mechanism.estimator.expected_counts(np.array([1 - p, p]))[1])
        held.append(float(law @ inside))
    assert min(held) >= 0.915
    assert np.mean(held) >= 0.94


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "first", "second"), [(1, 12, 12), (8, 8, 14)])
def test_exact_coverage_of_a_difference(epsilon: int, first: int, second: int) -> None:
    mechanism = RandomizedResponse(sf.Domain.range(2), epsilon)
    groups = [[frequency(mechanism, n, count) for count in range(n + 1)] for n in (first, second)]
    limits = np.array([[(a - b).interval() for b in groups[1]] for a in groups[0]])
    chances = [mechanism.estimator.expected_counts(np.array([1 - p, p]))[1] for p in GRID]
    laws = [[stats.binom.pmf(range(n + 1), n, chance) for chance in chances] for n in (first, second)]
    held = []
    for (i, p), (j, q) in itertools.product(enumerate(GRID), repeat=2):
        inside = (limits[..., 0] <= p - q + 1e-9) & (p - q <= limits[..., 1] + 1e-9)
        held.append(float(laws[0][i] @ inside @ laws[1][j]))
    assert min(held) >= 0.915
    assert np.mean(held) >= 0.94
    assert (limits[..., 0] < limits[..., 1]).all()
    assert np.abs(limits).max() <= 1


def test_limits_reach_to_the_next_atom_of_the_sum() -> None:
    """Coverage was 96.7% while tails of post-stratified means included half a report of the smallest stratum."""
    binary, many = (RandomizedResponse(sf.Domain.range(size), 3) for size in (2, 21))
    same = (frequency(binary, 200, 60) - frequency(binary, 200, 80))._form
    assert same is not None
    assert same._spacing == pytest.approx(same.unit)  # all atoms are one report apart
    sizes, totals = (1120, 580, 220, 80), (0.2, 0.32, 0.28, 0.2)
    laws = np.random.default_rng(2).dirichlet(np.ones(21), 4) @ many.matrix()
    counts = [np.random.default_rng(3).multinomial(n, law) for n, law in zip(sizes, laws, strict=True)]
    means = [sf.estimate(many, Aggregate(many.hash, n, row)).mean() for n, row in zip(sizes, counts, strict=True)]
    total = weighted_sum(list(zip(totals, means, strict=True)))
    assert total._form is not None
    assert total._form._spacing < total._form.unit / 5
    low, high = total.interval()
    assert (high - low) / (2 * 1.96 * total.standard_error) == pytest.approx(1, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["randomized response", "subset", "unary", "hadamard", "table", "high-low subset"])
def test_means_hold_the_truth(name: str) -> None:
    """At a fixed seed; a coverage of 0.91 is rejected with probability at most 1e-6."""
    mechanism, n, repetitions = FAMILIES[name](6), 20, 60
    truth = truths(5)["falling"]
    held = 0
    for row in counts_of(mechanism, n, truth, repetitions, 5):
        low, high = sf.estimate(mechanism, Aggregate(mechanism.hash, n, row)).mean().interval()
        assert 0 <= low < high <= 4
        held += int(low <= truth @ np.arange(5) <= high)
    assert not too_few(np.array([held / repetitions]), repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*FAMILIES} - {"binary"}))
def test_p_values_agree_with_intervals(name: str) -> None:
    for n in (25, 400):
        estimate = one_estimate(name, n)
        for form in (estimate.set_fraction([1]), estimate.set_fraction([0, 3]), estimate.mean()):
            for level in (0.8, 0.99):
                low, high = form.interval(level)
                for limit, outwards in ((low, -1), (high, 1)):
                    if form.p_value(limit) < 1 and 0 < limit < form.terms[0][0]:
                        assert form.p_value(limit) == pytest.approx(1 - level, rel=1e-3)
                        assert form.p_value(limit + outwards * 0.01) < 1 - level


def test_p_values_of_differences_agree_with_intervals() -> None:
    mechanism = RandomizedResponse(sf.Domain.range(2), 3)
    for counts in ((3, 9), (0, 5), (10, 12), (20, 0)):
        form = frequency(mechanism, 20, counts[0]) - frequency(mechanism, 30, counts[1])
        for level in (0.5, 0.95):
            for limit in form.interval(level):
                if abs(limit) < 1:
                    assert form.p_value(limit) == pytest.approx(1 - level, rel=1e-3)
        low, high = form.interval()
        assert (form.p_value() < 0.05) == (not low <= 0 <= high)


@pytest.mark.parametrize("name", FAMILIES)
def test_transforms_have_the_moments_of_the_estimate(name: str) -> None:
    mechanism = FAMILIES[name](1)
    estimator, size = mechanism.estimator, len(mechanism.domain)
    random = np.random.default_rng(0)
    parts = random.dirichlet(np.ones(size), 3)
    for weights in (random.normal(size=size), (np.arange(size) % 2).astype(float)):
        for cohort in estimator.cohorts(weights, parts, 1):
            step = 1e-3 / np.sqrt(cohort.squares.max())
            up, down, centre = (cohort.transform(np.array([u / cohort.scale])) for u in (step, -step, 0.0))
            assert centre == pytest.approx(1)
            assert ((up - down).imag / (2 * step)).ravel() == pytest.approx(cohort.means, abs=1e-4)
            assert (-(up + down - 2 * centre).real / step**2).ravel() == pytest.approx(cohort.squares, rel=1e-4)


def test_sets_of_many_values_are_nearly_independent() -> None:
    # The exact recursion, and the approximation that replaces it where that would take too long.
    weights = np.random.default_rng(1).normal(size=30)
    points = np.linspace(0, 2, 9)
    exact = SubsetScores(weights, 8, 0.4, 0.0)
    many = SubsetScores(np.repeat(weights, 30) / np.sqrt(30), 240, 0.4, 0.0)
    parts = np.full((1, 30), 1 / 30)
    law = exact.transform(parts, points)
    for draw in (np.abs(law), np.abs(many.transform(np.repeat(parts, 30, axis=1) / 30, points))):
        assert draw[0, 0] == pytest.approx(1)
        assert (np.diff(draw[0]) < 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*FAMILIES} - {"binary"}))
def test_limits_of_many_reports_are_normal(name: str) -> None:
    estimate = one_estimate(name, 4_000)
    truth = truths(len(estimate.domain))["falling"]
    law = np.rint(1e9 * estimate.estimator.expected_counts(truth)).astype(np.int64)
    counts = Aggregate(estimate.mechanism.hash, 10**9, law)
    many = MechanismEstimate("unbiased", truth, truth, truth, mechanism=estimate.mechanism, counts=counts)
    for form in (many.set_fraction([0, 2]), many.mean(), many.set_fraction([0, 2]) - many.set_fraction([1])):
        low, high = form.interval()
        assert (low + high) / 2 == pytest.approx(form.value, abs=1e-2 * form.standard_error)
        assert high - low == pytest.approx(2 * 1.959964 * form.standard_error, rel=1e-3)


@pytest.mark.parametrize("kind", [RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse, CyclicDesign])
def test_no_interval_is_a_point_where_the_truth_may_differ(kind: type[RandomizedResponse]) -> None:
    mechanism = kind(sf.Domain.range(6), "inf")
    reports = sf.privatize(mechanism, [0] * 50, sf.InsecureSeeded(1))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    for form in (
        estimate.set_fraction([3, 4]),
        estimate.set_fraction([0, 1]),
        estimate.mean(),
        estimate.set_fraction([3]) - estimate.set_fraction([4]),
    ):
        low, high = form.interval()
        assert high - low > 0.02
    everybody = estimate.set_fraction(range(6))
    assert (everybody.value, everybody.standard_error, everybody.interval()) == (1, 0, (1, 1))
    assert everybody.p_value(1) == 1
    assert everybody.p_value(0.5) == 0


def test_a_path_of_tilts_goes_through_the_distribution() -> None:
    masses, weights = np.array([0.2, 0.5, 0.3]), np.array([0.0, 0.25, 1.0])
    knots, fractions = tilted(masses, weights)
    assert (knots[0], knots[-1]) == (0, 1)
    assert (np.diff(knots) > 0).all()
    np.testing.assert_allclose(fractions @ weights, knots, atol=1e-12)
    assert np.abs(fractions - masses).sum(axis=1).min() < 1e-12
