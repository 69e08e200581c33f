"""Certified divergences of shuffled reports: compared with exact sums over all histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import flint
import numpy as np
import pytest

from sfumato._core import (
    Epsilon,
    OutputGroup,
    composed_delta,
    divergence_above,
    divergence_below,
    divergence_estimate,
    hockey_stick,
    merged_groups,
)
from support.shuffles import divergence, histogram_law, ratios


def _groups(seed: int, outputs: int, *, blanket: bool) -> list[OutputGroup]:
    """Random laws of two values, and a crowd or a blanket below it."""
    generator = np.random.default_rng(seed)
    rows = []
    for _ in range(3):
        weights = generator.integers(1, 12, outputs).tolist()
        rows.append([Fraction(w, sum(weights)) for w in weights])
    least = [min(column) for column in zip(*rows, strict=True)]
    return [OutputGroup(p, q, w) for p, q, w in zip(rows[0], rows[1], least if blanket else rows[2], strict=True)]


def _exact(groups: Sequence[OutputGroup], people: int, ratio: Fraction) -> Fraction:
    """The divergence of the histograms in which the rest of a crowd has a separate output."""
    zero = Fraction(0)
    crowd = [*(group.weight for group in groups), 1 - sum((group.weight for group in groups), zero)]
    others = [crowd] * (people - 1)
    first = histogram_law([[*(group.first for group in groups), zero], *others])
    second = histogram_law([[*(group.second for group in groups), zero], *others])
    return divergence(first, second, ratio)


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "integral"])
@pytest.mark.parametrize("blanket", [True, False], ids=["blanket", "crowd"])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_contain_the_exact_divergence(
    monkeypatch: pytest.MonkeyPatch, seed: int, blanket: bool, listed: bool
) -> None:
    people, epsilon = 9, Epsilon("0.3")
    groups = _groups(seed, 3, blanket=blanket)
    if not listed:
        monkeypatch.setattr(hockey_stick, "_MOST_HISTOGRAMS", 0)
    low, high = (_exact(groups, people, ratio) for ratio in reversed(ratios(epsilon)))
    above, below = divergence_above(groups, people, epsilon), divergence_below(groups, people, epsilon)
    assert below <= high
    assert low <= above
    tolerance = 1e-12 if listed else 0.05
    assert float(above - below) <= tolerance + tolerance * float(high)
    assert divergence_estimate(groups, people, 0.3) == pytest.approx(float(above), rel=0.01)


def test_a_dropped_term_is_detected() -> None:
    groups = _groups(0, 3, blanket=True)
    exact = _exact(groups, 6, ratios(Epsilon("0.2"))[0])
    for missing in range(3):
        fewer = [group for place, group in enumerate(groups) if place != missing]
        assert not divergence_below(fewer, 6, Epsilon("0.2")) <= exact <= divergence_above(fewer, 6, Epsilon("0.2"))


def test_outputs_that_others_cannot_send_count_fully() -> None:
    half = Fraction(1, 2)
    groups = [OutputGroup(half, Fraction(1, 4), Fraction(0)), OutputGroup(half, Fraction(3, 4), Fraction(1, 3))]
    exact = _exact(groups, 5, ratios(Epsilon("0.1"))[0])
    assert float(divergence_above(groups, 5, Epsilon("0.1"))) == pytest.approx(float(exact), rel=1e-12)


def test_integral_and_binomial_tail_agree_for_many_people() -> None:
    # Two outputs: the divergence is a difference of two binomial tails, here in 40 digits.
    people, p = 2_000, Fraction(9, 10)
    groups = [OutputGroup(p, 1 - p, 1 - p), OutputGroup(1 - p, p, p)]
    epsilon = Epsilon("0.4")
    with localcontext(prec=40):
        ratio, q, total = Decimal("0.4").exp(), Decimal("0.1"), Decimal(0)
        others = [math.comb(people - 1, j) * q**j * (1 - q) ** (people - 1 - j) for j in range(people)]
        for before, here in zip([Decimal(0), *others], [*others, Decimal(0)], strict=True):
            total += max((1 - q) * before + q * here - ratio * (q * before + (1 - q) * here), Decimal(0))
    assert (
        float(divergence_below(groups, people, epsilon))
        < float(total)
        < float(divergence_above(groups, people, epsilon))
    )
    assert float(divergence_above(groups, people, epsilon)) == pytest.approx(float(total), rel=0.02)


def test_merging_keeps_the_divergence() -> None:
    groups = _groups(2, 3, blanket=True)
    halves = [
        OutputGroup(group.first * part, group.second * part, group.weight * part)
        for group in groups
        for part in (Fraction(1, 3), Fraction(2, 3))
    ]
    assert merged_groups(halves) == merged_groups(groups)


def test_composition_at_one_release_and_at_no_saving() -> None:
    level, delta = Epsilon("0.1"), Fraction(1, 10**6)
    assert float(composed_delta(level, delta, 1, 0)) == pytest.approx(1e-6, rel=1e-9)
    assert float(composed_delta(level, delta, 5, 0)) == pytest.approx(5e-6, rel=1e-4)
    # Randomized response at ε, twice: the outcome "both truthful" has the loss 2ε; at the level 0 the divergence is
    # that of the likelier pair of answers.
    t = math.exp(0.1)
    assert float(composed_delta(level, Fraction(0), 2, 1)) == pytest.approx((t * t - 1) / (1 + t) ** 2, rel=1e-12)


@pytest.mark.parametrize("people", [10**8, 10**15])
@pytest.mark.parametrize("level", ["2", "4"])
def test_bounds_of_many_people_are_short_fractions(people: int, level: str) -> None:
    high, low = Fraction(55, 57), Fraction(1, 57)
    groups = [OutputGroup(high, low, low), OutputGroup(low, high, low), OutputGroup(low, low, low)]
    for bound in (divergence_above, divergence_below):
        result = bound(groups, people, Epsilon(level))
        assert -1 <= result <= 1
        assert result.denominator.bit_length() < 20_000


@pytest.mark.parametrize(
    ("number", "bound"),
    [("1e-9999", Fraction(1, 2**16384)), ("-1e-9999", Fraction(0)), ("1e9999", Fraction(1)), ("-1e9999", Fraction(-1))],
)
def test_ends_are_rounded_up_to_short_fractions(number: str, bound: Fraction) -> None:
    assert hockey_stick.upper_end(flint.arb(number)) == bound
