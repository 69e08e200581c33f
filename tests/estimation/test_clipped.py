"""Means of clipped numbers say so, and warn if an end of the range holds clipped numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sfumato as sf
from sfumato.estimation import LinearEstimate
from sfumato.mechanisms.registry import count_law_for
from sfumato.randomness import insecure_generator

INCOMES = sf.Domain.numbers(0, 100_000, step=10_000)
MECHANISM = sf.mechanisms.SubsetSelection(INCOMES, 1)
N = 20_000


def skewed(people: int) -> np.ndarray:
    """Return incomes with a mean of 36,200, of which 6.5% are above 100,000."""
    return np.exp(np.random.default_rng(5).normal(np.log(36_200) - 0.5, 1, people))


def surveys(values: np.ndarray, repetitions: int) -> list[sf.Aggregate]:
    """Return the counts of simulated surveys, from their exact law."""
    truth = np.bincount(INCOMES.encode(values), minlength=len(INCOMES)) / len(values)
    law, generator = count_law_for(MECHANISM), insecure_generator(1)
    assert law is not None
    return [sf.Aggregate(MECHANISM.hash, N, law(generator, N, truth)) for _ in range(repetitions)]


def means_of(values: np.ndarray, repetitions: int) -> list[LinearEstimate]:
    return [sf.estimate(MECHANISM, counts).mean() for counts in surveys(values, repetitions)]


def test_a_mean_that_clipping_lowers_warns() -> None:
    """The true mean is 4 standard errors above the mean of clipped numbers; 97% of surveys warn."""
    means = means_of(skewed(200_000), 60)
    assert np.mean([mean.value + 2 * mean.standard_error for mean in means]) < 36_000
    words = (
        "too many people have the value [90000, 100000]: probably numbers above 100000 were clipped, so that the mean "
        "is too low"
    )
    assert np.mean([words in mean.warnings for mean in means]) > 0.85
    mean = next(mean for mean in means if mean.warnings)
    assert str(mean).endswith(f" (± 5e+03 from bins), clipped to 0 … 100000; WARNING: {words}")
    assert LinearEstimate.from_dict(json.loads(json.dumps(mean.to_dict()))) == mean


def test_numbers_within_the_range_seldom_warn() -> None:
    """At most 2.5% of even shares warn at each end; smooth shares of many people do not warn."""
    even = means_of(np.random.default_rng(2).uniform(0, 100_000, 200_000), 300)
    assert np.mean([bool(mean.warnings) for mean in even]) < 0.08
    rising = sf.mechanisms.RandomizedResponse(INCOMES, "inf")
    values = np.repeat(np.arange(10) * 10_000, np.arange(1, 11) * 10_000)
    mean = sf.estimate(rising, sf.aggregate(rising, sf.privatize(rising, values, sf.InsecureSeeded(1)))).mean()
    assert mean.warnings == ()


def test_answers_and_groups_state_that_numbers_were_clipped() -> None:
    counts = next(each for each in surveys(skewed(200_000), 5) if sf.estimate(MECHANISM, each).mean().warnings)
    estimate = sf.estimate(MECHANISM, counts)
    answers = estimate.answers("mean")
    assert answers.warnings == answers["mean"].warnings == estimate.mean().warnings
    shown = str(answers).splitlines()
    assert shown[-3:-1] == [
        "This is a mean of numbers clipped to 0 … 100000.",
        "Numbers were divided into bins, so the mean may differ by up to 5000 more.",
    ]
    assert shown[-1] == f"WARNING: {answers.warnings[0]}"
    assert estimate.answers("ranges:0-50000").warnings == ()
    grouped = sf.estimate_groups(MECHANISM, {"north": counts, "south": counts}).answers("mean")
    assert grouped.total[0].warnings == answers.warnings
    assert str(grouped).splitlines()[-3:] == shown[-3:]


@pytest.mark.parametrize(
    "domain", [sf.Domain.numbers(0, 9, bins=3, out_of_range="refuse"), sf.Domain.range(3), sf.Domain([0, 5, 9])]
)
def test_domains_that_reject_numbers_do_not_clip_them(domain: sf.Domain) -> None:
    assert domain.clipped is None
    mechanism = sf.mechanisms.RandomizedResponse(domain, "inf")
    mean = sf.estimate(mechanism, sf.aggregate(mechanism, [2] * 100)).mean()
    assert mean.clipped is None
    assert mean.warnings == ()
    assert "clipped" not in str(mean)


def test_reports_that_determine_only_the_mean_state_that_it_is_of_clipped_numbers() -> None:
    ages = sf.Domain.range(17, 91)
    assert list(ages.clipped or ()) == [17, 90]
    mechanism = sf.design(sf.Uniform(ages, 1), 1000, question="mean", mechanism="one-bit")
    reports = sf.privatize(mechanism, [90] * 1000, sf.InsecureSeeded(1))
    mean = sf.estimate(mechanism, sf.aggregate(mechanism, reports)).mean()
    assert mean.warnings == ()
    assert str(mean).endswith(", clipped to 17 … 90")
