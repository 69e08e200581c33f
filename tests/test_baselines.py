"""The published mechanisms of the benchmark of questions obey ε, are unbiased, and have the stated errors."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import sfumato as sf
from support import ROOT

EPSILONS = (0.3, 1.0, 2.5)
AGES = np.array([17.0, 18.0, 21.0, 30.0, 31.5, 64.0, 65.0, 90.0])


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def baselines(name: str) -> Any:
    return importlib.import_module(f"benchmarks.baselines.{name}")


def skewed(k: int) -> Any:
    weights = np.arange(1, k + 1) ** 1.5
    return weights / weights.sum()


def level(matrix: Any) -> float:
    """Return the greatest logarithm of a ratio between the probabilities of one output."""
    return float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())


# -- means -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", ["OneBit", "Piecewise", "Hybrid"])
@pytest.mark.parametrize("values", [np.array([0.0, 1.0, 2.0, 3.0]), AGES], ids=["4", "8"])
def test_a_mechanism_for_a_mean_obeys_epsilon_and_is_unbiased(name: str, epsilon: float, values: Any) -> None:
    mechanism = getattr(baselines("means"), name)(values, epsilon)
    assert mechanism.matrix.min() > 0
    assert np.allclose(mechanism.matrix.sum(axis=1), 1, atol=1e-12)
    assert level(mechanism.matrix) == pytest.approx(epsilon, rel=1e-9)
    assert np.allclose(mechanism.matrix @ mechanism.scores, values, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.7])
@pytest.mark.parametrize("name", ["SteepBit", "Geometric"])
def test_a_mechanism_for_a_metric_obeys_it_and_is_unbiased(name: str, epsilon: float) -> None:
    values = np.arange(17.0, 25.0)
    mechanism = getattr(baselines("means"), name)(values, epsilon)
    assert np.allclose(mechanism.matrix.sum(axis=1), 1, atol=1e-12)
    assert np.allclose(mechanism.matrix @ mechanism.scores, values, atol=1e-9)
    distances = np.abs(np.subtract.outer(values, values))
    logarithms = np.log(mechanism.matrix)
    ratios = (logarithms[:, None] - logarithms[None]).max(axis=2)
    assert (ratios <= epsilon * distances + 1e-9).all()
    assert (ratios - epsilon * distances)[distances > 0].max() == pytest.approx(0, abs=1e-9)  # no slack is left


def test_a_steep_bit_on_unequal_steps_obeys_the_metric() -> None:
    mechanism = baselines("means").SteepBit(AGES, 0.05)
    logarithms = np.log(mechanism.matrix)
    ratios = (logarithms[:, None] - logarithms[None]).max(axis=2)
    assert (ratios <= 0.05 * np.abs(np.subtract.outer(AGES, AGES)) + 1e-9).all()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_published_variances_are_those_of_the_laws(epsilon: float) -> None:
    means = baselines("means")
    prior, spread = skewed(8), np.cov(AGES, aweights=skewed(8), ddof=0)
    bit = means.OneBit(AGES, epsilon)
    half, middle = 36.5, 53.5
    reach = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    at_value = reach**2 - ((AGES - middle) / half) ** 2  # Wang et al. 2019, eq. 4
    assert bit.variance(prior) == pytest.approx(half**2 * (prior @ at_value) + spread, rel=1e-12)
    piecewise = means.Piecewise(AGES, epsilon)
    # A point that is uniform within an interval adds a twelfth of the squared length to the variance of the midpoint.
    within = prior @ piecewise.matrix @ piecewise.lengths**2 / 12
    assert piecewise.published_variance(prior) == pytest.approx(piecewise.variance(prior) + within, rel=1e-9)
    hybrid = means.Hybrid(AGES, epsilon)
    within = hybrid.share * within
    assert hybrid.published_variance(prior) == pytest.approx(hybrid.variance(prior) + within, rel=1e-9)


def test_hybrid_starts_where_mixing_helps() -> None:
    """At the published ε, the greatest variances with the published share and with one bit alone are equal."""
    means = baselines("means")
    ends, epsilon = np.array([-1.0, 0.0, 1.0]), means.HYBRID_EPSILON
    root, reach = math.exp(epsilon / 2), 1 / math.tanh(epsilon / 2)
    mixed = (1 - 1 / root) * (root + 3) / (3 * (root - 1) ** 2) + reach**2 / root
    assert mixed == pytest.approx(reach**2, rel=1e-9)
    for point in np.eye(3):  # above it, the variance given the value is the same for all values
        assert means.Hybrid(ends, 1.0).published_variance(point) == pytest.approx(
            means.Hybrid(ends, 1.0).published_variance(np.eye(3)[0]), rel=1e-9
        )


def test_geometric_noise_has_its_published_variance_in_the_middle_of_many_values() -> None:
    mechanism = baselines("means").Geometric(np.arange(200.0), 0.5)
    middle = np.eye(200)[100]
    assert mechanism.variance(middle) == pytest.approx(mechanism.published_variance(middle), rel=1e-9)
    with pytest.raises(ValueError, match="consecutive"):
        baselines("means").Geometric(AGES, 0.5)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_unbiased_scores_have_less_than_the_least_variance(epsilon: float) -> None:
    means = baselines("means")
    prior = skewed(8)
    for mechanism in (means.Piecewise(AGES, epsilon), means.Hybrid(AGES, epsilon)):
        least = mechanism.least_variance(prior)
        assert least <= mechanism.variance(prior) * (1 + 1e-12)
        # The best scores are J⁻v·Q/q; any other unbiased scores differ by a vector in the kernel of Q.
        law = prior @ mechanism.matrix
        information = (mechanism.matrix / law) @ mechanism.matrix.T
        scores = np.linalg.pinv(information, rcond=1e-11, hermitian=True) @ AGES @ (mechanism.matrix / law)
        assert np.allclose(mechanism.matrix @ scores, AGES)
        assert law @ scores**2 - (prior @ AGES) ** 2 == pytest.approx(least, rel=1e-9)
    bit = means.OneBit(AGES, epsilon)
    assert bit.least_variance(prior) == pytest.approx(bit.variance(prior), rel=1e-9)
    assert means.least_variance(bit.matrix, np.eye(8), prior) == math.inf  # one bit identifies no frequency


# -- distribution functions ------------------------------------------------------------------------------------------


def mechanisms(k: int, epsilon: float) -> list[Any]:
    levels = baselines("levels")
    trees = [
        levels.Hierarchy(k, fanout, epsilon, oracle) for fanout in (2, 3) for oracle in ("unary", "subset", "hadamard")
    ]
    return [*trees, levels.Haar(k, epsilon)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", [4, 6, 8])
def test_level_sampling_obeys_epsilon_and_is_unbiased_by_enumeration(k: int, epsilon: float) -> None:
    prior = skewed(k)
    for mechanism in mechanisms(k, epsilon):
        if k == 8 and mechanism.levels[-1].oracle.matrix().shape[1] > 300:
            continue
        matrix = mechanism.matrix()
        assert np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
        assert level(matrix) <= epsilon + 1e-9
        gains = mechanism.gains()
        estimate = np.full(k, 1 / k)
        covariance = np.zeros((k, k))
        parts = zip(mechanism.levels, gains, mechanism.probabilities, strict=True)
        for part, gain, share in parts:
            # Enumerate the outputs of the level: their law at the prior, and the vector estimated from each.
            law = prior @ part.oracle.matrix()[part.symbols]
            scores = part.oracle.scores()
            mean = law @ scores
            assert np.allclose(mean, part.transform @ prior, atol=1e-9)
            centred = (scores - mean) @ gain.T
            estimate = estimate + share * gain @ (mean - part.transform.mean(axis=1))
            covariance += share * (law[:, None] * centred).T @ centred
        assert np.allclose(estimate, prior, atol=1e-9)
        assert np.allclose(mechanism.covariance(prior), covariance, atol=1e-8)
        assert np.allclose(mechanism.covariance(np.full(k, 1 / k)), mechanism.covariance(), atol=1e-8)


@pytest.mark.parametrize("k", [4, 8])
def test_no_estimate_from_the_same_reports_is_better_at_the_uniform_distribution(k: int) -> None:
    least_variance, levels = baselines("means").least_variance, baselines("levels")
    workload, uniform = levels.prefixes(k), np.full(k, 1 / k)
    for mechanism in (levels.Hierarchy(k, 2, 1.0, "subset"), levels.Haar(k, 1.0)):
        least = least_variance(mechanism.matrix(), workload, uniform)
        assert mechanism.error(workload) == pytest.approx(least, rel=1e-8)
    unary = levels.Hierarchy(k, 2, 1.0, "unary") if k == 4 else levels.Hierarchy(k, 8, 1.0, "unary")
    least = least_variance(unary.matrix(), workload, uniform)
    assert least <= unary.error(workload)  # counts of bits say less than whole bitmaps


def test_a_tree_of_one_level_is_subset_selection() -> None:
    levels = baselines("levels")
    mechanism = sf.design(sf.Uniform(sf.Domain.range(16), 1), mechanism="subset")
    workload, prior = levels.prefixes(16), skewed(16)
    for distribution in (None, prior):
        covariance = mechanism.estimator.covariance(np.full(16, 1 / 16) if distribution is None else prior)
        expected = np.trace(workload @ covariance @ workload.T)
        assert levels.Hierarchy(16, 16, 1).error(workload, distribution) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("k", [16, 20])
def test_optimized_shares_have_the_least_error(k: int) -> None:
    levels = baselines("levels")
    workload = levels.prefixes(k)
    for mechanism in (levels.Hierarchy(k, 2, 1.0), levels.Hierarchy(k, 4, 1.0), levels.Haar(k, 1.0)):
        best = mechanism.optimized(workload)
        slopes = best.slopes(workload.T @ workload, best.probabilities)
        # The error E is convex and homogeneous of degree -1: E(w') >= E(w)² / (greatest slope) for all shares w'.
        error = best.error(workload)
        assert error == pytest.approx(best.probabilities @ slopes, rel=1e-9)
        assert slopes.max() <= (1 + 2e-4) * error
        assert error <= mechanism.error(workload)


# -- square wave -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("k", "reach"), [(4, None), (8, None), (8, 0), (8, 11)])
def test_square_wave_is_the_law_that_it_states(k: int, reach: int | None, epsilon: float) -> None:
    wave = baselines("square_wave").SquareWave(k, epsilon, reach)
    matrix = wave.matrix()
    assert matrix.shape == (k, wave.outputs)
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
    assert level(matrix) == pytest.approx(epsilon, rel=1e-9)
    prior, weights = skewed(k), np.arange(wave.outputs) ** 2.0
    assert np.allclose(wave.law(prior), prior @ matrix, atol=1e-12)
    assert np.allclose(wave.adjoint(weights), matrix @ weights, atol=1e-9)
    law = prior @ matrix
    assert wave.mutual_information(prior) == pytest.approx(
        float(prior @ (matrix * np.log(matrix / law)).sum(axis=1)), rel=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_published_width_maximizes_a_bound_and_not_the_information(epsilon: float) -> None:
    square_wave = baselines("square_wave").SquareWave
    width = square_wave.published_width(epsilon)
    best = minimize_scalar(
        lambda b: -square_wave.information_bound(epsilon, b),
        bounds=(1e-6, 1),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert best.x == pytest.approx(width, abs=1e-6)
    uniform = np.full(256, 1 / 256)
    information = [square_wave(256, epsilon, reach).mutual_information(uniform) for reach in range(200)]
    published = square_wave(256, epsilon)
    assert information[published.reach] <= square_wave.information_bound(epsilon, width)
    assert np.argmax(information) < published.reach


def test_em_finds_the_distribution_from_exact_counts() -> None:
    square_wave = baselines("square_wave")
    wave, prior = square_wave.SquareWave(8, 2.0, 1), skewed(8)
    counts = np.rint(1e12 * wave.law(prior)).astype(np.int64)
    result = square_wave.reconstruct(counts, wave.law, wave.adjoint, 8, tolerance=1e-3, smooth=False)
    assert np.allclose(result, prior, atol=1e-3)
    smooth = square_wave.reconstruct(counts, wave.law, wave.adjoint, 8, tolerance=1e-3)
    assert smooth.sum() == pytest.approx(1)
    assert np.abs(np.diff(smooth)).max() < np.abs(np.diff(prior)).max()


# -- several attributes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["grr", "oue-z"])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_fake_data_is_unbiased_with_the_published_variance(protocol: str, epsilon: float) -> None:
    """Arcolezi et al. 2021: f̂ = (C·d·k - n(d - 1 + q·k))/(n·k·(p - q)) for GRR, and Var = d²·δ(1-δ)/(n·(p - q)²)."""
    sizes, p = (2, 5, 3), skewed(5)
    mechanism = baselines("attributes").FakeData(sizes, epsilon, protocol)
    level = math.log(3 * math.expm1(epsilon) + 1)
    assert mechanism.level == pytest.approx(level)
    rates = mechanism.count_rates(1, p)
    assert np.allclose(mechanism.estimate(1, rates), p, atol=1e-12)
    # The count of a value is binomial, and the estimate is linear in it.
    slope = mechanism.estimate(1, np.ones(5)) - mechanism.estimate(1, np.zeros(5))
    assert np.allclose(mechanism.variances(1, p), slope**2 * rates * (1 - rates))
    if protocol == "grr":
        true = math.exp(level) / (math.exp(level) + 4)
        other = (1 - true) / 4
        published = (rates * 3 * 5 - (3 - 1 + other * 5)) / (5 * (true - other))
        assert np.allclose(mechanism.estimate(1, rates), published)
        delta = (other + p * (true - other) + (3 - 1) / 5) / 3
    else:
        true, other = 0.5, 1 / (math.exp(level) + 1)
        delta = (3 * other + p * (true - other)) / 3
    assert np.allclose(mechanism.variances(1, p), 9 * delta * (1 - delta) / (true - other) ** 2)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_fake_data_has_the_raised_level_for_people_who_differ_in_all_attributes(epsilon: float) -> None:
    """The law of all reports: marginal rates agree, and the level of whole tuples is ε', not ε."""
    for amplified in (True, False):
        mechanism = baselines("attributes").FakeData((2, 3, 3), epsilon, amplified=amplified)
        first, second = mechanism.tuple_law((0, 0, 0)), mechanism.tuple_law((1, 1, 1))
        assert first.sum() == pytest.approx(1)
        assert np.allclose(first.sum(axis=(0, 2)), mechanism.count_rates(1, np.array([1.0, 0, 0])))
        assert np.log(first / second).max() == pytest.approx(mechanism.level)


# -- sensitive values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("sensitive", "harmless"), [(1, 3), (3, 2), (5, 0)])
def test_utility_optimized_rappor_obeys_the_policy_and_is_unbiased(
    sensitive: int, harmless: int, epsilon: float
) -> None:
    mechanism = baselines("rappor").UtilityOptimizedRappor(sensitive, harmless, epsilon)
    matrix, scores = mechanism.matrix(), mechanism.scores()
    size = sensitive + harmless
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
    with np.errstate(divide="ignore"):
        logarithms = np.log(matrix)
    possible = np.isfinite(logarithms[:sensitive])
    excess = np.where(possible, logarithms[:sensitive], 0)[:, None] - np.where(possible[:1], logarithms, 0)[None]
    assert excess[:, :, possible[0]].max() == pytest.approx(epsilon, rel=1e-9)
    assert np.allclose(matrix @ scores, np.eye(size), atol=1e-9)
    for p in (np.full(size, 1 / size), skewed(size)):
        assert mechanism.risk(p) == pytest.approx(float(p @ matrix @ (scores**2).sum(axis=1) - p @ p))


@pytest.mark.parametrize(
    ("sensitive", "harmless", "epsilon", "ratio"),
    [(2, 10, "1", 2.692), (10, 100, "3", 2.388), (100, 100, "0.25", 1.085), (100, 100, "6", 4.215)],
)
def test_subsets_of_sensitive_values_have_less_error_than_rappor(
    sensitive: int, harmless: int, epsilon: str, ratio: float
) -> None:
    subset = sf.mechanisms.HighLowSubset(sf.Domain.range(sensitive + harmless), range(sensitive), epsilon)
    rappor = baselines("rappor").UtilityOptimizedRappor(sensitive, harmless, float(epsilon))
    assert rappor.risk() / subset.risk(1) == pytest.approx(ratio, abs=5e-4)
