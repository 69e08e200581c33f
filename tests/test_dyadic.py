"""The baseline of dyadic intervals: its level, its mean and its variance, by enumeration."""

from __future__ import annotations

import math

import pytest

from benchmarks.baselines.dyadic import Dyadic, one_wave_variance


@pytest.mark.parametrize(("waves", "changes"), [(2, 1), (4, 1), (4, 2), (8, 1), (8, 2), (8, 3)])
def test_the_level_of_all_reports_is_exact(waves: int, changes: int) -> None:
    dyadic = Dyadic(waves, changes, 1.0)
    histories = dyadic.histories()
    worst = 0.0
    for level, signs in dyadic.reports():
        law = [dyadic.probability(level, signs, history) for history in histories]
        worst = max(worst, max(law) / min(law))
    # In the lowest level, two histories can change in different waves, up to twice the number of changes.
    reached = math.e if waves >= 2 * changes else worst
    assert worst == pytest.approx(reached, rel=1e-12)
    assert worst <= math.e * (1 + 1e-12)


def test_half_the_budget_of_signs_would_be_too_little() -> None:
    """A sign at ε instead of ε/c breaks the level, which the enumeration finds."""
    wrong = Dyadic(8, 2, 2.0)
    law = [wrong.probability(0, (1, -1) * 4, history) for history in wrong.histories()]
    assert max(law) / min(law) > math.e * 1.5


@pytest.mark.parametrize("history", [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 1, 0), (0, 0, 1, 1)])
def test_estimates_are_unbiased_with_the_stated_variance(history: tuple[int, ...]) -> None:
    dyadic = Dyadic(4, 2, 1.0)
    reports = [(each, dyadic.probability(*each, history)) for each in dyadic.reports()]
    assert sum(p for _, p in reports) == pytest.approx(1)
    for wave, status in enumerate(history, 1):
        mean = sum(p * dyadic.estimate(*report, wave) for report, p in reports)
        second = sum(p * dyadic.estimate(*report, wave) ** 2 for report, p in reports)
        assert mean == pytest.approx(status, abs=1e-12)
        assert second - mean**2 == pytest.approx(dyadic.variance(wave, status))


def test_answers_in_one_wave_have_the_stated_variance() -> None:
    p = math.e / (1 + math.e)
    for status in (0, 1):
        right = p if status else 1 - p
        scores = {1: (1 - (1 - p)) / (2 * p - 1), 0: -(1 - p) / (2 * p - 1)}
        second = 8 * (right * scores[1] ** 2 + (1 - right) * scores[0] ** 2)
        assert one_wave_variance(8, 1.0, status) == pytest.approx(second - status)


def test_one_wave_per_person_is_better_up_to_hundreds_of_waves() -> None:
    for waves in (8, 32, 128):
        mean = sum(Dyadic(waves, 2, 1.0).variance(wave, 0) for wave in range(1, waves + 1)) / waves
        assert one_wave_variance(waves, 1.0, 0) < mean
