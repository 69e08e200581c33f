"""The baselines of dyadic intervals and of signs: levels, means and variances, by enumeration, and their page."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from benchmarks.baselines.dyadic import Dyadic, Signs, one_wave_change_variance, one_wave_variance
from benchmarks.longitudinal import CHANGE_WAVES, change_variances

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanations" / "over-time.md"


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
        change = status - (history[wave - 2] if wave > 1 else 0)
        mean = sum(p * dyadic.estimate_change(*report, wave) for report, p in reports)
        second = sum(p * dyadic.estimate_change(*report, wave) ** 2 for report, p in reports)
        assert mean == pytest.approx(change, abs=1e-12)
        assert second - mean**2 == pytest.approx(dyadic.change_variance(change))


@pytest.mark.parametrize(("waves", "changes"), [(4, 1), (4, 2), (8, 1), (8, 2), (8, 3)])
def test_signs_in_every_wave_have_their_level_mean_and_variance(waves: int, changes: int) -> None:
    signs, histories = Signs(waves, changes, 1.0), Dyadic(waves, changes, 1.0).histories()
    laws = {each: [signs.probability(each, h) for h in histories] for each in itertools.product((-1, 1), repeat=waves)}
    worst = max(max(law) / min(law) for law in laws.values())
    assert worst == pytest.approx(math.e if waves >= 2 * changes else worst, rel=1e-12)
    assert worst <= math.e * (1 + 1e-12)
    for place, history in enumerate(histories[:: max(1, len(histories) // 8)]):
        place *= max(1, len(histories) // 8)
        for wave, (before, after) in enumerate(itertools.pairwise((0, *history)), 1):
            scores = [(signs.estimate_change(each, wave), law[place]) for each, law in laws.items()]
            mean = sum(score * p for score, p in scores)
            assert mean == pytest.approx(after - before, abs=1e-12)
            variance = sum(score**2 * p for score, p in scores) - mean**2
            assert variance == pytest.approx(signs.change_variance(after - before))


def test_answers_in_one_wave_have_the_stated_variance() -> None:
    p = math.e / (1 + math.e)
    for status in (0, 1):
        right = p if status else 1 - p
        scores = {1: (1 - (1 - p)) / (2 * p - 1), 0: -(1 - p) / (2 * p - 1)}
        second = 8 * (right * scores[1] ** 2 + (1 - right) * scores[0] ** 2)
        assert one_wave_variance(8, 1.0, status) == pytest.approx(second - status)


def test_changes_from_answers_in_one_wave_have_the_stated_variance() -> None:
    p, waves = math.e / (1 + math.e), 4
    for before, after in itertools.product((0, 1), repeat=2):
        mean = second = 0.0
        for factor, status in ((-1, before), (1, after)):  # in other waves, a person contributes nothing
            for answer in (0, 1):
                score = factor * waves * (answer - (1 - p)) / (2 * p - 1)
                probability = (p if answer == status else 1 - p) / waves
                mean, second = mean + probability * score, second + probability * score**2
        assert mean == pytest.approx(after - before)
        assert one_wave_change_variance(waves, 1.0, before, after) == pytest.approx(second - mean**2)


def test_the_page_has_the_variances_of_changes() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "| reports | " + " | ".join(f"{waves:,} waves" for waves in CHANGE_WAVES) + " |" in page
    for name, variances in change_variances().items():
        assert f"| {name} | " + " | ".join(f"{variance:,.1f}" for variance in variances) + " |" in page


def test_the_page_says_where_signs_are_better_than_one_answer() -> None:
    for changes, least in ((1, 3), (2, 10), (4, 36)):
        sign = Signs(8, changes, 1.0).change_variance(0)
        assert one_wave_change_variance(least - 1, 1.0, 0, 0) < sign < one_wave_change_variance(least, 1.0, 0, 0)
    assert "3 waves if an event happens at most once, from 10 for one change, and from 36" in " ".join(
        PAGE.read_text(encoding="utf-8").split()
    )


@pytest.mark.parametrize(("changes", "least"), [(1, 256), (2, 1_024), (4, 8_192)])
def test_one_wave_per_person_is_better_for_counts_up_to_many_waves(changes: int, least: int) -> None:
    for waves in (8, least // 2, least):
        mean = sum(Dyadic(waves, changes, 1.0).variance(wave, 0) for wave in range(1, waves + 1)) / waves
        assert (one_wave_variance(waves, 1.0, 0) < mean) == (waves < least)
    assert f"from {least:,}" in PAGE.read_text(encoding="utf-8")
