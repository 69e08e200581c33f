"""Every rule of docs/words-to-decisions.md, enumerated exhaustively where bits are few."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import pytest

from sfumato.auditing.interpreter import branches
from sfumato.errors import InvalidInput
from sfumato.mechanisms.draws import BitDraws, Decision, Field, Layout, RecordedDraws, RecordingDraws
from sfumato.testing import ScriptedBits


def one_field(width: int) -> Layout:
    return Layout(32, (Field.number(0, width),))


def below_is_uniform(draws: type[BitDraws], width: int, m: int) -> bool:
    """Whether each answer has equally many accepted first numbers, all others being redrawn at this width."""
    answers: Counter[int] = Counter()
    redrawn = 0
    accepted = next(v for v in range(1 << width) if v * m % (1 << width) >= (1 << width) % m)
    for value in range(1 << width):
        script = ScriptedBits([accepted])
        try:
            answer = draws(script, one_field(width), value).below(m)
        except IndexError:  # it rejected a number that is to be accepted
            return False
        if script.left:
            answers[answer] += 1
        else:
            redrawn += 1
    exact = set(answers) == set(range(m)) and len(set(answers.values())) == 1
    return exact and redrawn == (1 << width) % m


@pytest.mark.parametrize("width", range(1, 9))
def test_below_is_exactly_uniform(width: int) -> None:
    for m in range(1, (1 << width) + 1):
        assert below_is_uniform(BitDraws, width, m), (width, m)


class MultiplyWithoutRejection(BitDraws):
    """The usual mistake: multiply and shift, and keep what should be rejected."""

    def below(self, m: int) -> int:
        value, width = self._first_bits(32)
        return value * m >> width


class RejectionOffByOne(BitDraws):
    def below(self, m: int) -> int:
        value, width = self._first_bits(32)
        while value * m % (1 << width) <= (1 << width) % m:
            value = self._auxiliary(width)
        return value * m >> width


@pytest.mark.parametrize("broken", [MultiplyWithoutRejection, RejectionOffByOne])
def test_the_exhaustive_test_catches_a_biased_below(broken: type[BitDraws]) -> None:
    assert not all(below_is_uniform(broken, width, m) for width in range(1, 7) for m in range(1, 1 << width))


def test_below_repeats_until_it_accepts() -> None:
    # 8 bits, m = 3: 256 mod 3 = 1, so only v = 0 (0·3 mod 256 < 1) is rejected.
    script = ScriptedBits([0, 0, 255])
    assert BitDraws(script, one_field(8), 0).below(3) == 2
    assert script.left == 0


@pytest.mark.parametrize("total_width", [1, 2, 4, 6])
def test_bernoulli_is_exact_for_every_prefix_and_numerator(total_width: int) -> None:
    for prefix, numerator in itertools.product(range(total_width + 1), range((1 << total_width) + 1)):
        rest = total_width - prefix
        successes = Fraction(0)
        for value in range(1 << prefix):
            outcomes = []
            for more in range(1 << rest):
                script = ScriptedBits([more])
                outcomes.append(BitDraws(script, one_field(prefix), value).bernoulli(numerator, 1 << total_width))
                tied = value == numerator >> rest and numerator & (1 << rest) - 1
                assert script.left == (0 if tied else 1), "the auxiliary stream is read on a tie, and only then"
            successes += Fraction(sum(outcomes), len(outcomes))
        assert successes / (1 << prefix) == Fraction(numerator, 1 << total_width)


def test_bernoulli_of_any_denominator_is_below() -> None:
    for denominator in (3, 5, 6, 7):
        for numerator in range(denominator + 1):
            hits = 0
            for value in range(denominator):
                # the smallest 8-bit number that `below` maps to this value without rejection
                script = ScriptedBits([])
                layout = one_field(8)
                v = next(
                    v
                    for v in range(256)
                    if v * denominator >> 8 == value and v * denominator % 256 >= 256 % denominator
                )
                hits += BitDraws(script, layout, v).bernoulli(numerator, denominator)
            assert hits == numerator


def test_certain_decisions_read_nothing_more() -> None:
    nothing = ScriptedBits([])
    for value in range(16):
        assert BitDraws(nothing, one_field(4), value).bernoulli(2**64, 2**64)
        assert not BitDraws(nothing, one_field(4), value).bernoulli(0, 2**64)


def test_decisions_beyond_the_fields_read_the_auxiliary_stream() -> None:
    script = ScriptedBits([2**32 - 1, 5])
    draws = BitDraws(script, one_field(4), 0b1010)
    assert draws.below(16) == 10
    assert draws.below(7) == 6
    assert draws.bernoulli(6, 8)
    assert script.left == 0


def test_impossible_requests_are_refused() -> None:
    draws = BitDraws(ScriptedBits([0] * 9), one_field(4), 0)
    with pytest.raises(ValueError, match="numerator/denominator must be a probability; got 2/1"):
        draws.bernoulli(2, 1)
    with pytest.raises(ValueError, match=r"m must be in 1 … 2\^4 for a decision of 4 bits; got 17"):
        draws.below(17)
    with pytest.raises(ValueError, match="the width of the decision's field must be at most 1"):
        BitDraws(ScriptedBits([]), one_field(4), 0).bernoulli(1, 2)


def test_fields_read_the_bits_the_page_says() -> None:
    frame = 0b1011_0010
    assert Field.number(0, 4).read(frame) == 0b0010
    assert Field.number(4, 4).read(frame) == 0b1011
    assert Field(0, 4, 2).read(frame) == 0b01  # most significant first: bit 0, then bit 4
    layout = Layout(64 + 128 * 2, (Field.number(32, 32),), lanes=70, planes=2, planes_start=64)
    assert layout.field(0) == Field.number(32, 32)
    assert layout.field(1) == Field(64, 64, 2)
    assert layout.field(64) == Field(64 + 63, 64, 2)
    assert layout.field(65) == Field(64 + 128, 64, 2)
    assert layout.fault() is None
    assert layout.chunk_values == 2**18 // 40


def test_overlapping_or_overlong_fields_are_a_fault() -> None:
    overlap = Layout(32, (Field.number(16, 16), Field.number(0, 17)))
    assert overlap.fault() == "the field of decision 1 overlaps the field of an earlier decision"
    assert "leaves the frame" in str(Layout(32, (Field.number(20, 16),)).fault())


def test_replaying_refuses_another_sampler() -> None:
    recording = RecordingDraws(BitDraws(ScriptedBits([3, 1]), None))
    assert recording.below(2**32) == 3
    assert recording.bernoulli(2, 4)
    assert recording.decisions == [Decision("below", (2**32,), 3), Decision("bernoulli", (2, 4), 1)]
    with pytest.raises(InvalidInput, match=r"ask for below\(4294967296,\); got below\(5,\)"):
        RecordedDraws(recording.decisions).below(5)
    replay = RecordedDraws(recording.decisions)
    replay.below(2**32)
    with pytest.raises(InvalidInput, match="every recorded decision"):
        replay.check_finished()
    replay.bernoulli(2, 4)
    replay.check_finished()
    with pytest.raises(InvalidInput, match="no more decisions"):
        replay.below(2)


def test_the_interpreter_follows_every_branch_once() -> None:
    found = list(branches(lambda draws: (draws.below(3), draws.bernoulli(1, 4) and draws.below(2))))
    assert sum(Fraction(weight, total) for _, weight, total in found) == 1
    assert Counter(result for result, _, _ in found) == Counter(
        [(i, False) for i in range(3)] + [(i, j) for i in range(3) for j in range(2)]
    )
    assert list(branches(lambda draws: draws.bernoulli(4, 4) or draws.bernoulli(0, 4))) == [(True, 1, 1)]
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]; got 5/4"):
        list(branches(lambda draws: draws.bernoulli(5, 4)))
    with pytest.raises(ValueError, match="m must be at least 1; got 0"):
        list(branches(lambda draws: draws.below(0)))
