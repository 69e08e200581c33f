"""An estimate is a prior: its frequencies count, whatever its labels are, and not the labels themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.mechanisms import RandomizedResponse

#: Labels that are numbers, which add up to one: read as a list, they were a prior of their own.
DOMAIN = sf.Domain([0, 1])
POLICY = sf.HighLow(DOMAIN, [1], 1)
MECHANISM = RandomizedResponse(DOMAIN, 1)
#: Estimates with the frequencies 0.75 and 0.25, and one with a negative frequency.
POSITIVE, NEGATIVE = (
    sf.estimate(MECHANISM, sf.Aggregate(MECHANISM.hash, 1000, np.array(counts))) for counts in ([615, 385], [800, 200])
)
USES: dict[str, Callable[[Any], Any]] = {
    "design": lambda prior: sf.design(POLICY, n=100, prior=prior).spec,
    "plan": lambda prior: sf.plan(POLICY, 100, prior=prior, max_seconds=0).to_dict()["prior"],
    "Prior": lambda prior: sf.Prior(DOMAIN, prior, 1).to_dict(),
    "truth": lambda truth: sf.simulate(MECHANISM, n=100, truth=truth, seed=1, one_by_one=False).to_dict()["truth"],
    "mmse": lambda prior: sf.estimate(MECHANISM, POSITIVE.counts, "mmse", prior=prior).frequencies.tolist(),
}


@pytest.mark.parametrize("use", USES)
def test_an_estimate_is_used_by_its_frequencies(use: str) -> None:
    by_label = {1: float(POSITIVE.frequencies[1]), 0: float(POSITIVE.frequencies[0])}
    assert USES[use](POSITIVE) == USES[use](by_label)


@pytest.mark.parametrize("use", USES)
def test_what_is_not_a_distribution_is_rejected(use: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"(be probabilities that sum to one|lie in \[0, 1\]); got (-0|1|np\.float64\(1)\.\d+"
    ):
        USES[use](NEGATIVE)
    with pytest.raises(
        InvalidInput, match=r"(be probabilities that sum to one|lie in \[0, 1\]); got (-0|1|np\.float64\(1)\.\d+"
    ):
        USES[use](NEGATIVE.frequencies)
    with pytest.raises(InvalidInput, match="be an Estimate, a mapping by label, or a list in domain order"):
        USES[use](sf.plan(POLICY, 100, max_seconds=0))
    other = RandomizedResponse(sf.Domain([1, 0]), 1)
    with pytest.raises(InvalidInput, match="be an estimate over the same domain"):
        USES[use](sf.estimate(other, sf.Aggregate(other.hash, 1000, np.array([615, 385]))))


def test_the_message_about_a_negative_frequency_says_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"got -0\.\d+ for 1\. .* estimate with method='simplex'"):
        sf.design(POLICY, n=100, prior=NEGATIVE)
    sf.design(POLICY, n=100, prior=sf.estimate(MECHANISM, NEGATIVE.counts, "simplex"))
