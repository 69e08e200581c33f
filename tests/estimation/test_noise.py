"""Intervals from models of rare events lean to the side on which the truth can lie."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.estimation import EventEstimate, Events


@pytest.mark.parametrize("probability", [0.01, 0.05, 0.3, 0.97])
def test_a_total_of_independent_users_lies_where_its_binomial_law_says(probability: float) -> None:
    """The truth is binomial given the reports; before sizes kept their sign, the limits leaned to the other side."""
    users = 200
    means, ones = np.full(users, probability), np.ones(users)
    error = float(np.sqrt(users * probability * (1 - probability)))
    total = EventEstimate(users * probability, error, events=tuple(Events.of(means, -ones, ones)))
    low, high = total.interval(0.95)
    assert low <= binom.ppf(0.025, users, probability)
    assert binom.ppf(0.975, users, probability) <= high
    assert high - low < binom.ppf(0.975, users, probability) - binom.ppf(0.025, users, probability) + 1


def test_the_sign_of_sizes_mirrors_the_events() -> None:
    probabilities, sizes, weights = np.array([0.1, 0.2, 0.9]), np.array([1.0, 2.0, 0.5]), np.array([3.0, 1.0, 2.0])
    raising, lowering = Events.of(probabilities, sizes, weights)
    mirrored = Events.of(probabilities, -sizes, weights)
    assert [event.size for event in mirrored] == [-lowering.size, -raising.size]
    assert [event.trials for event in mirrored] == [lowering.trials, raising.trials]
