"""Methods "bayes" and "best": the fitted prior is optimal, totals are kept, and errors shrink."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core import Floats
from sfumato.collecting import Aggregate
from sfumato.errors import InvalidInput
from sfumato.estimation import MechanismEstimate
from sfumato.estimation.empirical_bayes.mixture import Noise, fit_mixture
from sfumato.estimation.empirical_bayes.shrinkage import SharedPrior, Shrinkage
from sfumato.estimation.empirical_bayes.smoothing import ClassPrior, ShiftedPrior, fit_smooth
from sfumato.mechanisms import (
    BlockMechanism,
    HadamardResponse,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    count_law_for,
)


def constant_noise(size: int, variance: float = 1.0) -> Noise:
    return Noise(np.full(size, variance), np.zeros(size), np.zeros(size))


def drawn(mechanism: Mechanism, n: int, truth: npt.ArrayLike, seed: int = 0) -> Aggregate:
    law = count_law_for(mechanism)
    assert law is not None
    return Aggregate(mechanism.hash, n, law(np.random.default_rng(seed), n, np.asarray(truth)))


def distance(first: Floats, second: Floats) -> float:
    return float(np.abs(first - second).sum()) / 2


def zipf(size: int, power: float = 1.0) -> Floats:
    weights = np.arange(1, size + 1) ** -power
    return np.asarray(weights / weights.sum())


def log_likelihood(observations: Floats, atoms: Floats, weights: Floats) -> float:
    densities = np.exp(-((observations[:, None] - atoms) ** 2) / 2) / np.sqrt(2 * np.pi)
    return float(np.log(densities @ weights).sum())


# -- the fitted prior ------------------------------------------------------------------------------------------


def test_prior_has_the_greatest_likelihood_of_all_priors_on_the_grid() -> None:
    generator = np.random.default_rng(1)
    truth = np.where(generator.random(400) < 0.7, 0.0, generator.exponential(4.0, 400))
    observations = truth + generator.standard_normal(400)
    fitted = fit_mixture(observations, constant_noise(400))
    assert fitted.gap < 1e-3
    best = log_likelihood(observations, fitted.atoms, fitted.weights)
    # Expectation maximization on the same grid never exceeds it, from any start and after any number of steps.
    densities = np.exp(-((observations[:, None] - fitted.atoms) ** 2) / 2)
    for _ in range(3):
        weights = generator.dirichlet(np.ones(len(fitted.atoms)))
        for _ in range(300):
            weights *= densities.T @ (1 / (densities @ weights)) / len(observations)
        assert log_likelihood(observations, fitted.atoms, weights) <= best + 0.05  # bins of observations


def test_observations_on_their_own_keep_their_values() -> None:
    observations = np.array([0.0, 0.1, -0.2, 40.0, 90.0])
    fitted = fit_mixture(observations, constant_noise(5))
    assert fitted.mean[3:] == pytest.approx([40.0, 90.0])
    assert fitted.variance[3:] == pytest.approx([1.0, 1.0])
    assert np.ptp(fitted.mean[:3]) < 0.3  # near each other, so they are shrunk together


@pytest.mark.slow
def test_a_fine_grid_does_not_hurt_large_values() -> None:
    generator = np.random.default_rng(2)
    truth = np.concatenate([np.zeros(900), 1000 * 0.9 ** np.arange(100)])
    observations = truth + generator.standard_normal(1000)
    fitted = fit_mixture(observations, constant_noise(1000))
    large = truth > 20
    assert np.mean((fitted.mean - truth)[large] ** 2) < 1.2 * np.mean((observations - truth)[large] ** 2)


def test_equal_parameters_are_shrunk_to_a_point() -> None:
    observations = 5 + np.random.default_rng(3).standard_normal(2000)
    fitted = fit_mixture(observations, constant_noise(2000))
    assert np.sqrt(np.mean((fitted.mean - 5) ** 2)) < 0.1  # the noise is 1


def test_noise_that_grows_with_the_parameter_is_used() -> None:
    generator = np.random.default_rng(4)
    truth = np.repeat([0.0, 100.0], [500, 500])
    noise = Noise(np.full(1000, 1.0), np.full(1000, 1.0), np.zeros(1000))
    observations = truth + generator.standard_normal(1000) * np.sqrt(1 + truth)
    fitted = fit_mixture(observations, noise)
    assert np.sqrt(np.mean((fitted.mean - truth) ** 2)) < 3  # the noise at 100 is 10


def test_draws_follow_the_posterior() -> None:
    generator = np.random.default_rng(5)
    truth = np.repeat([0.0, 3.0], [1500, 500])
    observations = truth + generator.standard_normal(2000)
    fitted = fit_mixture(observations, constant_noise(2000))
    draws = np.mean([fitted.draw(generator) for _ in range(60)], axis=0)
    # A standard error per value is below 1.5/√60, and 2,000 values average their errors.
    assert abs(np.mean(draws - fitted.mean)) < 0.05
    assert np.corrcoef(draws, fitted.mean)[0, 1] > 0.97


# -- estimates -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_bayes_is_closer_to_the_truth_than_simplex(power: float) -> None:
    truth = zipf(300, power)
    mechanism = HadamardResponse(sf.Domain.range(300), 1)
    counts = drawn(mechanism, 100_000, truth)
    simplex, bayes, best = (sf.estimate(mechanism, counts, method) for method in ("simplex", "bayes", "best"))
    assert distance(bayes.frequencies, truth) < 0.85 * distance(simplex.frequencies, truth)
    assert best.choice is not None
    assert best.choice.method == "bayes"
    assert np.array_equal(best.frequencies, bayes.frequencies)
    assert bayes.choice is None
    assert bayes.frequencies.sum() == pytest.approx(1)
    assert bayes.frequencies.min() >= 0


def test_best_takes_simplex_where_few_values_are_near_the_noise() -> None:
    truth = np.repeat([1 / 64, 0.0], [64, 936])
    mechanism = HadamardResponse(sf.Domain.range(1000), 1)
    counts = drawn(mechanism, 100_000, truth)
    best = sf.estimate(mechanism, counts, "best")
    assert best.choice is not None
    assert best.choice.method == "simplex"
    assert best.choice.simplex_tv < best.choice.bayes_tv
    assert np.array_equal(best.frequencies, best.nearest)
    assert "Method best chose simplex, because its expected total variation error is" in str(best)
    assert sf.estimate(mechanism, counts, "best").choice == best.choice


@pytest.mark.slow
def test_best_accepts_a_smaller_advantage_for_many_values() -> None:
    # Simulations predict an advantage of about 7%, below the least margin of up to 2,000 values.
    size = 2**17
    mechanism = HadamardResponse(sf.Domain.range(size), 1)
    best = sf.estimate(mechanism, drawn(mechanism, 1000 * size, np.full(size, 1 / size)), "best")
    assert best.choice is not None
    assert best.choice.method == "bayes"
    assert 3 <= best.choice.repetitions <= 6
    assert best.choice.bayes_tv > 0.9 * best.choice.simplex_tv
    assert 0.08 * np.sqrt(2000 / size) - 1e-12 <= best.choice.margin < 0.08


def test_best_takes_simplex_for_many_values_if_all_people_have_hidden_few() -> None:
    # The squared error favours bayes by many standard errors, the total variation error does not.
    size = 2**15
    mechanism = HadamardResponse(sf.Domain.range(size), 1)
    truth = (np.arange(size) < size // 16) * 16 / size
    best = sf.estimate(mechanism, drawn(mechanism, 1000 * size, truth), "best")
    assert best.choice is not None
    assert best.choice.evidence is not None
    assert best.choice.evidence > 10
    assert best.choice.method == "simplex"
    bayes = sf.estimate(mechanism, best.counts, "bayes")
    assert distance(best.frequencies, truth) < distance(bayes.frequencies, truth)


def test_best_takes_simplex_if_there_are_too_few_values_for_a_prior() -> None:
    # The values are many standard errors apart, so their neighbours say nothing about them.
    truth = np.linspace(1, 3, 12) / 24
    mechanism = RandomizedResponse(sf.Domain.range(12), 3)
    for seed in range(2):
        best = sf.estimate(mechanism, drawn(mechanism, 100_000, truth, seed), "best")
        assert best.choice is not None
        assert best.choice.method == "simplex"
    assert best.choice is not None
    assert "because" in str(best.choice)
    assert best.choice.margin == pytest.approx(1.5 / np.sqrt(12))


def test_divided_observations_are_independent() -> None:
    """Both parts have the means and variances that are stated, and no correlation (1e-6: 5 standard errors)."""
    mechanism = HadamardResponse(sf.Domain.range(500), 1)
    counts = drawn(mechanism, 100_000, zipf(500))
    result = sf.estimate(mechanism, counts)
    model = Shrinkage.of(mechanism.estimator, result.unbiased, result.nearest, result.n)
    generator = np.random.default_rng(6)
    truth = model.simplex()
    deviation = np.sqrt(model.noise.variance(truth))
    parts = [model.drawn(generator, truth).divided(generator, 0.5) for _ in range(40)]
    first = (np.array([part.observations for part, _ in parts]) - truth) / deviation
    second = (np.array([part for _, part in parts]) - truth) / deviation
    assert np.mean(first**2) == pytest.approx(1.5, rel=5 * np.sqrt(2 / first.size) + 0.01)
    assert np.mean(second**2) == pytest.approx(3.0, rel=5 * np.sqrt(2 / first.size) + 0.01)
    assert abs(np.mean(first * second)) < 5 * np.sqrt(1.5 * 3 / first.size) + 0.02


def test_totals_of_blocks_and_revealed_values_are_kept() -> None:
    domain = sf.Domain.range(60)
    mechanism: Mechanism = BlockMechanism.for_policy(sf.Blocks(domain, np.repeat([0, 1, 2], [30, 29, 1]), 1))
    counts = drawn(mechanism, 5000, zipf(60))
    bayes, simplex = (sf.estimate(mechanism, counts, method) for method in ("bayes", "simplex"))
    for block in (slice(0, 30), slice(30, 59), slice(59, 60)):
        assert bayes.frequencies[block].sum() == pytest.approx(simplex.frequencies[block].sum(), abs=1e-12)
    policy = sf.HighLow(domain, list(range(20)), 1)
    mechanism = sf.design(policy)
    counts = drawn(mechanism, 5000, zipf(60))
    bayes, simplex = (sf.estimate(mechanism, counts, method) for method in ("bayes", "simplex"))
    revealed = mechanism.estimator.revealed()
    assert revealed.sum() == 40
    assert np.array_equal(bayes.frequencies[revealed], simplex.frequencies[revealed])


def test_values_with_different_noise_have_different_priors() -> None:
    # The columns of this Hadamard response are in blocks, and a block of many people has more noise.
    mechanism = HadamardResponse(sf.Domain.range(1000), 3)
    counts = drawn(mechanism, 100_000, zipf(1000))
    result = sf.estimate(mechanism, counts, "bayes")
    model = Shrinkage.of(mechanism.estimator, result.unbiased, result.nearest, result.n)
    assert len(model.classes()) > 1
    assert sorted(np.concatenate([part for groups in model.classes() for part in groups])) == list(range(1000))


def blocks_of(truth: Floats, size: int, n: int, seed: int = 0) -> tuple[Shrinkage, sf.Estimate]:
    """Return the model and the estimate of a survey about blocks of equal size."""
    policy = sf.Blocks(sf.Domain.range(len(truth)), np.arange(len(truth)) // size, 1)
    mechanism = BlockMechanism.for_policy(policy)
    result = sf.estimate(mechanism, drawn(mechanism, n, truth, seed), "bayes")
    return Shrinkage.of(mechanism.estimator, result.unbiased, result.nearest, n), result


def test_blocks_are_not_divided_between_priors() -> None:
    model, _ = blocks_of(zipf(1000), 50, 30_000)
    for groups in model.classes():
        blocks = np.concatenate(groups) // 50
        assert (np.bincount(blocks, minlength=20)[np.unique(blocks)] == 50).all()
        assert [len(np.unique(group // 50)) for group in groups] == [1] * len(groups)


def test_blocks_that_look_different_have_their_own_priors() -> None:
    alike = np.full(400, 1 / 400)
    model, _ = blocks_of(alike, 50, 100_000)
    assert len(SharedPrior().fit(model).classes) == 1
    # All blocks have the same total and noise. In every second block, five values have all people.
    different = np.where((np.arange(400) // 50 % 2 == 1) & (np.arange(400) % 50 >= 5), 0.0, alike)
    different[(different > 0) & (np.arange(400) // 50 % 2 == 1)] *= 10
    model, result = blocks_of(different, 50, 100_000)
    posterior = SharedPrior().fit(model)
    assert sorted(map(len, posterior.classes)) == [50] * 8
    pooled = fit_mixture(model.observations, model.noise)
    errors = [np.abs(frequencies - different).sum() for frequencies in (result.frequencies, pooled.mean)]
    assert errors[0] < errors[1]


def test_many_blocks_share_priors() -> None:
    truth = np.full(70 * 20, 1 / 1400)
    model, _ = blocks_of(truth, 20, 100_000)
    assert all(len(groups) == 1 for groups in model.classes())


def test_errors_that_sum_to_zero_have_the_likelihood_of_independent_ones() -> None:
    mechanism = RandomizedResponse(sf.Domain.range(10), 1)
    counts = drawn(mechanism, 1000, np.full(10, 0.1))
    result = sf.estimate(mechanism, counts)
    model = Shrinkage.of(mechanism.estimator, result.unbiased, result.nearest, result.n)
    at = result.nearest
    ratio = model.noise.variance(at) / (mechanism.estimator.variances(at) / 1000)
    assert ratio == pytest.approx(np.full(10, 10 / 9), rel=0.05)


def test_grid_stays_small_where_the_noise_falls_to_zero_at_both_ends() -> None:
    # Two shares of ten people at ε = 20: the variance θ·(1 - θ)/n is nearly 0 at θ = 0 and at θ = 1.
    mechanism = RandomizedResponse(sf.Domain.range(2), 20)
    counts = sf.aggregate(mechanism, [0] * 8 + [1] * 2)
    result = sf.estimate(mechanism, counts)
    model = Shrinkage.of(mechanism.estimator, result.unbiased, result.nearest, result.n)
    assert len(fit_mixture(model.observations, model.noise).atoms) < 200
    assert sf.estimate(mechanism, counts, "bayes", smooth=True).frequencies.sum() == pytest.approx(1)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 40])
def test_few_values_and_reports(size: int, n: int) -> None:
    domain = sf.Domain.range(size)
    mechanism = RandomizedResponse(domain, 1) if size > 1 else TableMechanism.from_matrix(domain, [["1/2", "1/2"]])
    counts = drawn(mechanism, n, np.full(size, 1 / size))
    for method in ("bayes", "best"):
        result = sf.estimate(mechanism, counts, method)
        assert result.frequencies.sum() == pytest.approx(1)
        low, high = result.interval()
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert size == 1 or (low < high).all()


def test_reports_without_noise() -> None:
    mechanism = RandomizedResponse(sf.Domain.range(5), "inf")
    counts = sf.aggregate(mechanism, [0] * 6 + [1] * 3 + [2])
    for method in ("bayes", "best"):
        result = sf.estimate(mechanism, counts, method)
        assert result.frequencies == pytest.approx([0.6, 0.3, 0.1, 0, 0])


def test_intervals_contain_the_frequencies_and_are_not_empty() -> None:
    truth = np.repeat([1 / 64, 0.0], [64, 936])
    mechanism = HadamardResponse(sf.Domain.range(1000), 1)
    result = sf.estimate(mechanism, drawn(mechanism, 1_000_000, truth), "bayes")
    low, high = result.interval()
    assert ((low <= result.frequencies) & (result.frequencies <= high) & (low < high)).all()
    # 1,000 values, each covered with probability 0.95: fewer than 91% has a probability below 1e-6.
    covered = (low <= truth) & (truth <= high)
    assert covered.mean() > 0.91
    assert covered[:64].mean() > 0.8


# -- neighbours ------------------------------------------------------------------------------------------------


def test_neighbours_in_an_ordered_domain() -> None:
    place = np.arange(100)
    truth = np.exp(-(((place - 40) / 12) ** 2) / 2)
    truth /= truth.sum()
    domain = sf.Domain.range(100)
    mechanism = SubsetSelection(domain, 1)
    counts = drawn(mechanism, 30_000, truth)
    bayes = sf.estimate(mechanism, counts, "bayes")
    smooth = sf.estimate(mechanism, counts, "bayes", smooth=True)
    assert distance(smooth.frequencies, truth) < 0.6 * distance(bayes.frequencies, truth)
    assert smooth != bayes


@pytest.mark.slow
def test_neighbours_on_a_grid() -> None:
    row, column = np.mgrid[:30, :40]
    truth = np.exp(-((row - 8) ** 2 + (column - 30) ** 2) / 8) + 0.3 * np.exp(
        -((row - 20) ** 2 + (column - 9) ** 2) / 4
    )
    truth = (truth / truth.sum()).ravel()
    mechanism = HadamardResponse(sf.Domain.grid(30, 40), 1)
    counts = drawn(mechanism, 100_000, truth)
    bayes, smooth = (sf.estimate(mechanism, counts, "best", smooth=smooth) for smooth in (False, True))
    assert distance(smooth.frequencies, truth) < 0.8 * distance(bayes.frequencies, truth)


@pytest.mark.slow
def test_the_kind_of_prior_with_the_greatest_likelihood_is_taken() -> None:
    mechanism = HadamardResponse(sf.Domain.grid(30, 40), 1)
    result = sf.estimate(mechanism, drawn(mechanism, 100_000, zipf(1200)))
    model = Shrinkage.of(mechanism.estimator, result.unbiased, result.nearest, result.n)
    chosen = fit_smooth(model, (30, 40))
    others = [kind((30, 40), 1.0).fit(model) for kind in (ClassPrior, ShiftedPrior)]
    assert chosen.log_likelihood >= max(other.log_likelihood for other in others)
    assert SharedPrior().fit(model).frequencies().sum() == pytest.approx(1)


def test_a_missing_value_has_no_neighbours() -> None:
    domain = sf.Domain.numbers(0, 50, bins=50, missing="none")
    mechanism = SubsetSelection(domain, 1)
    truth = np.append(np.full(50, 0.01), 0.5)
    result = sf.estimate(mechanism, drawn(mechanism, 20_000, truth), "bayes", smooth=True)
    assert result.frequencies[-1] == pytest.approx(0.5, abs=0.1)


def test_smooth_needs_neighbours_and_a_prior() -> None:
    for domain in (sf.Domain.product(a=["x", "y"], b=["u", "v"]), sf.Domain(["red", "green", "blue", "black"])):
        mechanism = RandomizedResponse(domain, 1)
        counts = drawn(mechanism, 100, [0.4, 0.3, 0.2, 0.1])
        with pytest.raises(InvalidInput, match="be a grid or ascending numbers with smoothing"):
            sf.estimate(mechanism, counts, "bayes", smooth=True)
    with pytest.raises(InvalidInput, match="smooth must be left out with method 'simplex'"):
        sf.estimate(mechanism, counts, "simplex", smooth=True)


# -- documents -------------------------------------------------------------------------------------------------


def test_documents_keep_the_choice() -> None:
    mechanism = HadamardResponse(sf.Domain.range(40), 1)
    counts = drawn(mechanism, 1000, zipf(40))
    for method, smooth in (("bayes", False), ("best", False), ("best", True)):
        result = sf.estimate(mechanism, counts, method, smooth=smooth)
        document = json.loads(json.dumps(result.to_dict()))
        again = sf.Estimate.from_dict(document)
        assert again == result
        assert isinstance(again, MechanismEstimate)
        assert (again.choice, again.smooth) == (result.choice, smooth)
    assert result.choice is not None
    document["choice"] = None
    with pytest.raises(InvalidInput, match="choice must be present with method 'best'"):
        sf.Estimate.from_dict(document)
    old = {key: value for key, value in result.choice.to_dict().items() if key not in ("evidence", "margin")}
    read = sf.Estimate.from_dict({**result.to_dict(), "choice": old}).choice
    assert read is not None
    assert (read.method, read.evidence) == (result.choice.method, None)
    with pytest.raises(InvalidInput, match="simplex or bayes"):
        sf.Estimate.from_dict({**result.to_dict(), "choice": {**result.choice.to_dict(), "method": "mle"}})
