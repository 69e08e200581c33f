"""Repeated collection: published mechanisms by enumeration, and estimates over several waves by simulation."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.mechanisms import shared_moments
from support import ROOT

LEVELS = [(0.5, 1.0), (1.0, 2.0), (1.0, 4.0)]
NAMES = ["LSUE", "LOSUE", "LGRR", "LOLOHA"]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


def baseline(name: str) -> Any:
    return getattr(importlib.import_module("benchmarks.baselines.longitudinal"), name)


def level(matrix: Any) -> float:
    """Return the greatest logarithm of a ratio between the probabilities of one output."""
    return float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())


def skewed(k: int) -> Any:
    weights = np.arange(1, k + 1) ** 1.5
    return weights / weights.sum()


def mechanisms(k: int, first: float, lifetime: float) -> list[Any]:
    exact = [baseline(name).at(k, first, lifetime) for name in NAMES]
    return [*exact, *(baseline(name).published(k, first, lifetime) for name in ("LGRR", "LOLOHA"))]


@pytest.mark.parametrize(("first", "lifetime"), LEVELS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_both_levels_and_variances_are_those_of_the_law(k: int, first: float, lifetime: float) -> None:
    prior = skewed(k)
    for mechanism in mechanisms(k, first, lifetime):
        permanent, instantaneous = mechanism.matrices()
        report = permanent @ instantaneous
        for matrix in (permanent, instantaneous, report):
            assert np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
        assert mechanism.levels() == pytest.approx((level(report), level(permanent)), rel=1e-9)
        # The scores of one report are unbiased. Given the permanent answer, two reports are independent.
        true, other = mechanism.report_rates
        scores = (mechanism.supports() - other) / (true - other)
        assert np.allclose(report @ scores, np.eye(k), atol=1e-9)
        law, memory = prior @ report, prior @ permanent
        persistent = instantaneous @ scores
        assert np.allclose(persistent, (mechanism.supports() - mechanism.other) / (mechanism.true - mechanism.other))
        for x in range(k):
            one = law @ scores[:, x] ** 2 - prior[x] ** 2
            shared = memory @ persistent[:, x] ** 2 - prior[x] ** 2
            assert mechanism.variance(prior[x]) == pytest.approx(one, rel=1e-9)
            assert mechanism.permanent_variance(prior[x]) == pytest.approx(shared, rel=1e-9)
            assert mechanism.mean_variance(prior[x], 10) == pytest.approx((one + 9 * shared) / 10, rel=1e-9)


@pytest.mark.parametrize(("first", "lifetime"), LEVELS)
@pytest.mark.parametrize("k", [2, 10, 100])
def test_levels_are_reached_and_the_published_variance_is_that_of_an_absent_value(
    k: int, first: float, lifetime: float
) -> None:
    for name in NAMES:
        mechanism = baseline(name).at(k, first, lifetime)
        assert mechanism.levels() == pytest.approx((first, lifetime), rel=1e-9)
    for mechanism in mechanisms(k, first, lifetime):
        assert mechanism.variance(0.0) == pytest.approx(mechanism.published_variance(), rel=1e-9)


@pytest.mark.parametrize(("first", "lifetime"), LEVELS)
def test_published_randomized_response_is_more_private_than_asked(first: float, lifetime: float) -> None:
    response = baseline("LGRR")
    assert response.published(2, first, lifetime).levels() == pytest.approx((first, lifetime), rel=1e-9)
    for k in (3, 10, 100):
        published = response.published(k, first, lifetime)
        assert published.levels()[0] < first - 0.01
        assert published.variance(1 / k) > response.at(k, first, lifetime).variance(1 / k)


@pytest.mark.parametrize(("first", "lifetime"), [*LEVELS, (2.0, 5.0), (3.0, 4.0), (0.1, 3.0)])
def test_the_published_number_of_buckets_minimizes_the_published_variance(first: float, lifetime: float) -> None:
    module = importlib.import_module("benchmarks.baselines.longitudinal")
    variances = {}
    for g in range(2, 30):
        true, _, keep, flip = module._published_rates(g, first, lifetime)
        variances[g] = module.LOLOHA(9, true, 1 / g, keep, flip, g).published_variance()
    # The formula rounds the real minimum, which may miss the best integer by one.
    assert abs(module.published_buckets(first, lifetime) - min(variances, key=variances.__getitem__)) <= 1


@pytest.mark.parametrize("levels", [(1.0, 1.0), (2.0, 1.0), (0.0, 1.0)])
def test_levels_out_of_order_are_rejected(levels: tuple[float, float]) -> None:
    for name in NAMES:
        with pytest.raises(ValueError, match="first < lifetime"):
            baseline(name).at(4, *levels)


def test_the_report_of_optimized_unary_encoding_is_optimized_unary_encoding() -> None:
    mechanism = baseline("LOSUE").at(7, 1.0, 4.0)
    assert mechanism.report_rates == pytest.approx((0.5, 1 / (math.e + 1)))


# -- estimates over several waves --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("max_changes", [None, 1])
def test_intervals_cover_the_values_that_devices_report_about(
    max_changes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test rejects a correct law with probability below 1e-6, by the union over all cells."""
    module = importlib.import_module("benchmarks.longitudinal")
    monkeypatch.setattr(module, "PEOPLE", 400)
    waves, repetitions = 4, 500
    domain = sf.Domain.range(4)
    policies = sf.Uniform(domain, 1), sf.Uniform(domain, 2)
    mechanism: Any = sf.design(policies[0], lifetime=policies[1], mechanism="rr", max_changes=max_changes)
    survey = module.simulate(mechanism, repetitions, seed=7, waves=waves)
    limits = module.wave_limits(mechanism, survey)
    module.check_against_library(mechanism, survey, limits, 5)
    truth, subjects = module.true_frequencies(mechanism.most_answers, waves)
    assert (np.abs(truth - subjects).max() > 0.001) == (max_changes is not None)  # a full memory makes estimates biased
    shares = module.coverage_of(mechanism, survey, limits, subjects)
    cells = sum(each.size for each in shares.values())
    low, high = (binom.ppf([1e-6 / cells, 1 - 1e-6 / cells], repetitions, level) for level in (0.944, 0.956))
    for name, each in shares.items():
        assert (each * repetitions >= low[0]).all(), name
        assert (each * repetitions <= high[1]).all(), name
    if max_changes is not None:
        return
    # The mean of the estimated variances of a change is exact within 2%, which is about ten standard errors.
    chain = (1 - module.CHANGE_RATE) * np.eye(4) + module.CHANGE_RATE * module.transitions()
    moments = np.array([shared_moments(mechanism, unit) for unit in np.eye(4)])
    for first, second in ((0, 1), (2, 3), (0, 3)):
        same = truth[first] * np.diag(np.linalg.matrix_power(chain, second - first))
        covariance = same @ moments - truth[first] * truth[second]
        variances = mechanism.estimator.variances(truth[first]) + mechanism.estimator.variances(truth[second])
        exact = (variances - 2 * covariance) / module.PEOPLE
        estimated = (module.linked_errors(mechanism, survey, first, second)[1] ** 2).mean(axis=0)
        assert np.allclose(estimated, exact, rtol=0.02)
        assert not np.allclose(variances / module.PEOPLE, exact, rtol=0.05)  # independent waves would be wrong
        # Without linked reports, the variance is bounded if the rate is.
        rate = module.CHANGE_RATE * (second - first)
        bounds = [
            module.library_change(mechanism, survey, i, first, second, overlap=1, change_rate=rate).standard_errors ** 2
            for i in range(20)
        ]
        assert (np.mean(bounds, axis=0) >= 0.98 * exact).all()


def test_devices_report_about_the_same_values_as_the_library_says() -> None:
    module = importlib.import_module("benchmarks.longitudinal")
    domain = sf.Domain.range(4)
    mechanism: Any = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 2), max_changes=1)
    paths = np.array(list(itertools.product(range(4), repeat=4)))
    chain = (1 - module.CHANGE_RATE) * np.eye(4) + module.CHANGE_RATE * module.transitions()
    masses = module.START[paths[:, 0]] * np.prod([chain[paths[:, i], paths[:, i + 1]] for i in range(3)], axis=0)
    truth, subjects = module.true_frequencies(2, 4)
    for exact, values in ((truth, paths), (subjects, mechanism.effective_values(paths))):
        for wave in range(4):
            assert np.allclose(np.bincount(values[:, wave], weights=masses, minlength=4), exact[wave])
