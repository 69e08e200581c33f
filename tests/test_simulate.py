"""Simulation: the truth is drawn as asked, errors are what the mechanisms predict, and seeds repeat."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato._simulate import TRUTHS
from sfumato.errors import InvalidInput
from sfumato.mechanisms import HadamardResponse, RandomizedResponse

DOMAIN = sf.Domain.range(12)


@pytest.mark.parametrize("truth", sorted(TRUTHS))
def test_people_follow_the_truth(truth: str) -> None:
    """Without noise the estimate is the sample: χ² against the truth at α = 1e-6, and a truth 5% off is rejected."""
    n = 400_000
    found = sf.simulate(RandomizedResponse(DOMAIN, "inf"), n=n, truth=truth, seed=2)
    observed = found.estimate.frequencies * n
    limit = stats.chi2.isf(1e-6, len(DOMAIN) - 1)

    def distance(expected: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(np.sum((observed - expected) ** 2 / expected))

    assert distance(found.truth * n) < limit
    wrong = found.truth * np.where(np.arange(len(DOMAIN)) == 0, 0.95, 1)
    assert distance(wrong / wrong.sum() * n) > limit


def test_errors_are_those_predicted() -> None:
    """The mean squared error of 200 seeded collections has a relative deviation below 4%; 25% is beyond α = 1e-6."""
    runs = [sf.simulate(HadamardResponse(DOMAIN, 1), n=5000, truth="zipf", seed=seed) for seed in range(200)]
    assert np.mean([run.l2 for run in runs]) == pytest.approx(runs[0].predicted_l2, rel=0.25)
    assert np.mean([run.tv for run in runs]) == pytest.approx(runs[0].predicted_tv, rel=0.1)
    assert 0.92 < np.mean([run.coverage for run in runs]) < 0.98


def test_a_policy_is_designed_for_and_progress_is_told() -> None:
    policy = sf.Uniform(DOMAIN, 1)
    seen: list[tuple[int, int]] = []
    found = sf.simulate(policy, n=700_000, truth=[1 / 12] * 12, progress=lambda done, total: seen.append((done, total)))
    assert found.mechanism == sf.design(policy)
    assert found.estimate.n == 700_000
    assert seen[-1] == (700_000, 700_000)
    assert len(seen) > 1


def test_the_same_seed_gives_the_same_collection() -> None:
    first, second, other = (sf.simulate(sf.Uniform(DOMAIN, 1), n=1000, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.estimate.frequencies, second.estimate.frequencies)
    assert not np.array_equal(first.estimate.frequencies, other.estimate.frequencies)


def test_bad_questions_are_refused() -> None:
    policy = sf.Uniform(DOMAIN, 1)
    with pytest.raises(InvalidInput, match="n must be at least 1"):
        sf.simulate(policy, n=0)
    with pytest.raises(
        InvalidInput, match=r"truth must be a distribution, or one of uniform, zipf, geometric; got 'flat'"
    ):
        sf.simulate(policy, n=10, truth="flat")
    with pytest.raises(InvalidInput, match="12 entries"):
        sf.simulate(policy, n=10, truth=[1.0])
