"""Several batches: the sum of levels, the optimal theorem, and reports that can be linked."""

from __future__ import annotations

from fractions import Fraction

import pytest

import sfumato as sf
from sfumato._core import ZERO, Epsilon
from sfumato.auditing import AmplifiedPair
from sfumato.errors import InvalidInput


def _batch(epsilon: str, delta: str, *, mutual: bool = True, once: bool = False) -> sf.Amplification:
    level = Epsilon(epsilon)
    row = AmplifiedPair("a", "b", 2, Epsilon(4), level, None, None)
    return sf.Amplification(1000, Fraction(delta), (row,), mutual, once)


def test_levels_add_up() -> None:
    result = sf.compose_batches([_batch("0.1", "1e-8"), _batch("0.3", "1e-7")])
    assert (result.epsilon, result.delta, result.rule) == (Epsilon("0.4"), 1.1e-7, "basic")
    assert sf.compose_batches([]).epsilon == ZERO


def test_a_larger_delta_saves_in_both_directions_only() -> None:
    many = [_batch("0.1", "1e-9")] * 100
    optimal = sf.compose_batches(many, delta="1e-6")
    assert optimal.rule == "optimal"
    assert Epsilon(3) < optimal.epsilon < Epsilon(6)
    one_sided = sf.compose_batches([*many[1:], _batch("0.1", "1e-9", mutual=False)], delta="1e-6")
    assert (one_sided.epsilon, one_sided.rule) == (Epsilon(10), "basic")


def test_linked_reports_cost_their_local_level() -> None:
    result = sf.compose_batches([_batch("0.1", "1e-8")], linked=[2, "ln 3"])
    assert result.epsilon == Epsilon("0.1") + Epsilon(2) + Epsilon("ln 3")
    assert "linked" in repr(result)


def test_invalid_compositions() -> None:
    with pytest.raises(InvalidInput, match="be at least 2e-08, the sum over the batches"):
        sf.compose_batches([_batch("0.1", "1e-8")] * 2, delta="1e-8")
    with pytest.raises(InvalidInput, match=r"whose sum is below 1; got 1\.2"):
        sf.compose_batches([_batch("0.1", "0.6")] * 2)
    with pytest.raises(InvalidInput, match="independent reports"):
        sf.compose_batches([_batch("0.1", "1e-8", once=True)], linked=[1])
    with pytest.raises(InvalidInput, match="be an Amplification"):
        sf.compose_batches([0.1])  # type: ignore[list-item]
