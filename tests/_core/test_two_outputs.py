"""Certified divergences of shuffled reports with two outputs: compared with sums over all divisions of the others."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import Epsilon, TwoOutputs


def _exact(two: TwoOutputs, low: int, high: int, ratio: float) -> float:
    """The divergence for one division of the others, in floating point, by convolution of two binomial laws."""
    from scipy.stats import binom

    least, greatest = (
        binom.pmf(np.arange(count + 1), count, float(q)) for count, q in ((low, two.least), (high, two.greatest))
    )
    others = np.convolve(least, greatest)
    before, here = np.append(0.0, others), np.append(others, 0.0)
    p, q = float(two.first), float(two.second)
    return float(np.maximum(p * before + (1 - p) * here - ratio * (q * before + (1 - q) * here), 0).sum())


@pytest.mark.parametrize(
    "two",
    [
        TwoOutputs(Fraction(4, 5), Fraction(1, 5), Fraction(1, 5), Fraction(4, 5)),
        TwoOutputs(Fraction(1, 5), Fraction(4, 5), Fraction(1, 5), Fraction(4, 5)),
        TwoOutputs(Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), Fraction(9, 10)),
    ],
)
def test_bound_holds_for_every_division_of_the_others(two: TwoOutputs) -> None:
    people = 120
    for epsilon in ("0.3", "0.6"):
        bound = float(two.divergence_above(people, Epsilon(epsilon)))
        ratio = math.exp(float(epsilon))
        exact = [_exact(two, low, people - 1 - low, ratio) for low in range(people)]
        assert max(exact) <= bound * (1 + 1e-9)
        if epsilon == "0.3":  # near the local level of a pair, no bound may be found
            assert bound <= 2 * max(exact)


def test_one_bit_has_nearly_equal_bounds() -> None:
    policy = sf.Uniform(sf.Domain(["no", "yes"]), 4)
    mechanism = sf.mechanisms.RandomizedResponse(policy.domain, 4)
    result = sf.amplify(mechanism, policy, 10**5, "1e-6")
    assert 1 < float(result.epsilon) / float(result.lower) < 1.07
    # The blanket of two outputs bounds all mechanisms of this level; one bit is hidden better.
    assert float(result.epsilon) < 0.09
