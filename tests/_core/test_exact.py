"""Epsilons and the certified decisions about e^ε, against Fractions and decimals of 60 digits and more."""

from __future__ import annotations

import contextlib
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st

from sfumato._core import exact
from sfumato._core.exact import (
    INFINITE,
    ZERO,
    Epsilon,
    ceil_of_log,
    digits_of,
    exact_fraction,
    exceeds,
    excess,
    floor_of_log,
    floor_of_ratio,
    sign_of_sum,
)
from sfumato.errors import InvalidInput
from support.clocks import ends
from support.reference import (
    PRIMES,
    Parts,
    below,
    digits,
    e_to,
    exact_e_to,
    excess_of,
    finite_levels,
    fractions,
    parts_of,
    plus,
    ratio,
    real,
    refusal,
    scaled,
    text_of,
    tidy,
    truncated,
    violates,
)

#: Levels with several logarithms, of either sign of its parts.
signed_parts: st.SearchStrategy[Parts] = st.dictionaries(
    st.sampled_from([1, 2, 3, 5, 7, 101]), fractions(-3, 3), max_size=4
).map(tidy)


def built(parts: Parts) -> Epsilon:
    """The epsilon of these parts, by the package's arithmetic on single texts."""
    total = ZERO
    for p, c in parts.items():
        one = Epsilon(1) if p == 1 else Epsilon(f"ln {p}")
        total = total + one * c
    return total


# -- what is read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_value", "parts"),
    [
        (0, {}),
        (3, {1: 3}),
        (Fraction(2, 7), {1: Fraction(2, 7)}),
        (Decimal("0.1"), {1: Fraction(1, 10)}),
        (Decimal("1E+2"), {1: 100}),
        (0.1, {1: Fraction(1, 10)}),
        (1e-7, {1: Fraction(1, 10**7)}),
        (0.30000000000000004, {1: Fraction("0.30000000000000004")}),
        (-0.0, {}),
        (10**6, {1: 10**6}),
        ("0.1", {1: Fraction(1, 10)}),
        (".5", {1: Fraction(1, 2)}),
        ("5.", {1: 5}),
        ("2/6", {1: Fraction(1, 3)}),
        ("1e-3", {1: Fraction(1, 1000)}),
        ("1e+2", {1: 100}),
        ("1E+2", {1: 100}),
        ("  1.5 ", {1: Fraction(3, 2)}),
        ("ln 3", {3: 1}),
        ("ln3", {3: 1}),
        ("ln(3)", {3: 1}),
        ("ln ( 3 )", {3: 1}),
        ("log 3", {3: 1}),
        ("ln 1", {}),
        ("ln 9", {3: 2}),
        ("ln 12", {2: 2, 3: 1}),
        ("ln 3/2", {2: -1, 3: 1}),
        ("ln 1.5", {2: -1, 3: 1}),
        ("ln 0.5 + 1", {1: 1, 2: -1}),
        ("2 ln 3", {3: 2}),
        ("2ln3", {3: 2}),
        ("2*ln 3", {3: 2}),
        ("1/2*ln 3", {3: Fraction(1, 2)}),
        ("0.5 ln 3", {3: Fraction(1, 2)}),
        ("0*ln 3", {}),
        ("1+ln 2", {1: 1, 2: 1}),
        ("ln 2 + 1/3*ln 5 + 0.5", {1: Fraction(1, 2), 2: 1, 5: Fraction(1, 3)}),
        ("ln 2 + ln 3 + ln 1/6", {}),
        ("ln 1000003", {1000003: 1}),
        (np.int64(3), {1: 3}),
        (np.uint8(3), {1: 3}),
        (np.float64(0.1), {1: Fraction(1, 10)}),
        (np.float32(0.1), {1: Fraction(1, 10)}),
        (np.float16(0.1), {1: Fraction(1, 10)}),
        (np.str_("ln 3"), {3: 1}),
        (np.array(0.1), {1: Fraction(1, 10)}),
    ],
    ids=repr,
)
def test_reads_exactly(given_value: Any, parts: Parts) -> None:
    assert parts_of(Epsilon(given_value)) == parts


@pytest.mark.parametrize(
    "given_value",
    ["inf", "Infinity", "∞", "1 + inf", math.inf, np.float64(math.inf), np.float32(math.inf), Decimal("Infinity")],
    ids=repr,
)
def test_reads_infinity(given_value: Any) -> None:
    epsilon = Epsilon(given_value)
    assert epsilon.is_infinite
    assert epsilon == INFINITE
    assert str(epsilon) == "inf"


@pytest.mark.parametrize(
    "given_value",
    [
        math.nan, "nan", Decimal("NaN"), Decimal("sNaN"), np.float64("nan"), np.float32("nan"),
        -1, -0.1, "-1", Fraction(-1, 3), Decimal("-0.5"), -math.inf, "-inf", Decimal("-Infinity"), "1 + -2",
        True, False, np.True_, None, [], [1], {}, 1j, b"1", np.array([0.5, 0.6]),
        "", " ", "+", "1+", "+ln 2", "ln", "ln ()", "ln(3", "ln 3)", "ln 0", "ln 0.0", "ln 0/1", "ln -3", "-ln 3",
        "ln inf", "ln nan", "1/0", "ln 1/0", "1/0*ln 2", "ln 1/2", "2**3", "e", "one", "1_000", "0x10", "1;2", "3 4",
        "ln 2 ln 3", "ln 1" + "0" * 40, "1.5/2", "1e", "1 ln",
    ],
    ids=repr,
)  # fmt: skip
def test_refuses_and_shows_what_it_got(given_value: Any) -> None:
    message = refusal(Epsilon, given_value, subject="Uniform", parameter="the level")
    assert message.startswith("Uniform: the level must ")
    assert message.endswith(f"got {given_value!r}")


@pytest.mark.parametrize(
    "given_value",
    [10**12 + 1, "1000000000000.0000000001", 1e300, "1e300", "1442695040889*ln 2", "1e400", 10**400, Decimal("1e400")],
    ids=lambda value: str(value)[:24],
)
def test_refuses_what_is_too_large_rather_than_taking_it_as_infinite(given_value: Any) -> None:
    assert "be at most 1000000000000, or 'inf'" in refusal(Epsilon, given_value)


@pytest.mark.parametrize("digits_of_it", [5000, 10**5])
def test_refuses_integers_too_long_to_be_shown(digits_of_it: int) -> None:
    assert "be at most 1000000000000, or 'inf'" in refusal(Epsilon, 10**digits_of_it)


@pytest.mark.parametrize("text", ["1e99999999", "1e-99999999"])
def test_an_absurd_exponent_is_refused_before_it_is_computed(text: str) -> None:
    with ends():
        refusal(Epsilon, text)
    with ends():
        refusal(Epsilon, Decimal(text))


@pytest.mark.parametrize(
    "text", ["1e99999999 ", " 1e-99999999\t", "1e1000_00000", "1E+0099999999", "1e٠99999999", "1e９９９９９９９９"]
)
def test_no_spelling_hides_an_absurd_exponent(text: str) -> None:
    with ends(), pytest.raises(ValueError, match="exponent"):
        exact_fraction(text)


def test_numbers_are_written_again_as_they_were_read() -> None:
    """A number longer than Python writes would be read from a document that cannot be written."""
    for text in ("1e3999", "1e-3999", "7/" + "9" * 4000):
        assert exact_fraction(str(exact_fraction(text))) == exact_fraction(text)
    for number in ("1e9999", "1e-9999", "1" * 4300, Decimal("1e9999")):
        with pytest.raises(ValueError, match="4,000 digits"):
            exact_fraction(number)


def test_spaces_take_no_time() -> None:
    for text in ("1" + " " * 10**6 + "x", "ln" + " " * 10**6 + "x"):
        with ends():
            refusal(Epsilon, text)


def test_a_long_double_is_read_or_refused() -> None:
    with contextlib.suppress(InvalidInput):
        assert Epsilon(np.longdouble("0.5")) == Epsilon("0.5")  # type: ignore[arg-type]


@given(st.floats(0, 10**6))
def test_a_float_is_its_shortest_decimal(number: float) -> None:
    assert parts_of(Epsilon(number)) == tidy({1: Fraction(repr(number))})


def test_exact_fraction_of_each_type() -> None:
    tenth = Fraction(1, 10)
    same: list[object] = [0.1, "0.1", "1/10", Decimal("0.1"), tenth, np.float64(0.1), np.float32(0.1)]
    assert [exact_fraction(value) for value in same] == [tenth] * len(same)
    assert exact_fraction(np.int32(-7)) == -7
    for wrong in (True, np.False_, None, [1]):
        with pytest.raises(TypeError):
            exact_fraction(wrong)


# -- texts, copies -----------------------------------------------------------------------------------------


@pytest.mark.slow
@given(signed_parts)
def test_text_reads_back_as_the_same_epsilon(parts: Parts) -> None:
    epsilon = built(parts)
    assert parts_of(epsilon) == parts
    assume(real(parts) >= 0)
    again = Epsilon(str(epsilon))
    assert again == epsilon
    assert str(again) == str(epsilon)
    assert hash(again) == hash(epsilon)
    assert Epsilon(epsilon) is epsilon


@given(finite_levels)
def test_equal_epsilons_have_one_text_however_written(parts: Parts) -> None:
    separately = Epsilon(text_of(parts))
    doubled = Epsilon(text_of(scaled(parts, 2) or {})) / 2
    assert separately == doubled == built(parts)
    assert len({str(separately), str(doubled), str(built(parts))}) == 1
    assert len({separately, doubled, built(parts)}) == 1


@pytest.mark.parametrize(
    "text",
    ["0", "1", "0.1", "1/3", "0.00001", "ln 3", "2*ln 3", "1/2*ln 3", "ln 3/2", "0.5+ln 2", "1/6*ln 72", "inf"],
)
def test_canonical_texts(text: str) -> None:
    assert str(Epsilon(text)) == text
    assert repr(Epsilon(text)) == f"Epsilon({text!r})"


@pytest.mark.parametrize(
    "text",
    [
        "ln 9999999999999999999999999999999999999999",  # forty digits
        "ln 170141183460469231731687303715884105727",  # a prime, 2^127 - 1
        "ln 170141183460469231731687303715884105727/3 + 2",
        "99*ln 2 + 100*ln 3 + 101*ln 5",  # one logarithm of it has more digits than are read
        "1/7*ln 2 + 1/11*ln 3 + 1/13*ln 5",
        "ln 1000000007/999999937 + ln 1000000009/999999929 + ln 99991",
        "0.12345678901234567890123",
        "1/340282366920938463463374607431768211456",
    ],
)
def test_long_texts_read_back(text: str) -> None:
    epsilon = Epsilon(text)
    assert Epsilon(str(epsilon)) == epsilon


def test_an_epsilon_that_is_accepted_can_be_written_and_read() -> None:
    try:
        epsilon = Epsilon("1e-5000")
    except InvalidInput:
        return
    assert Epsilon(str(epsilon)) == epsilon


@given(st.one_of(signed_parts.map(built), st.just(INFINITE)))
def test_pickles_to_an_equal(epsilon: Epsilon) -> None:
    again = pickle.loads(pickle.dumps(epsilon))
    assert again == epsilon
    assert hash(again) == hash(epsilon)
    assert again.is_infinite == epsilon.is_infinite


# -- order and arithmetic ----------------------------------------------------------------------------------


@given(signed_parts, signed_parts)
def test_order_agrees_with_sixty_digits(first: Parts, second: Parts) -> None:
    a, b = built(first), built(second)
    assert (a == b) == (first == second)
    assert (a < b) == below(first, second)
    assert (a > b) == below(second, first)
    assert (a <= b) == (not below(second, first))
    assert a < INFINITE
    assert not a > INFINITE


@given(signed_parts, signed_parts, fractions(-4, 4))
def test_arithmetic_is_that_of_the_parts(first: Parts, second: Parts, factor: Fraction) -> None:
    a, b = built(first), built(second)
    assert parts_of(a + b) == plus(first, second)
    assert parts_of(a * factor) == parts_of(factor * a) == scaled(first, factor)
    assert parts_of(-a) == scaled(first, -1)
    if factor:
        assert parts_of(a / factor) == scaled(first, 1 / factor)
        assert (a * factor).ratio_to(a) == (factor if first else 0)


def test_equal_numbers_are_equal_epsilons() -> None:
    assert Epsilon("ln 9") == 2 * Epsilon("ln 3")
    assert Epsilon("ln 4") * Fraction(1, 2) == Epsilon("ln 2")
    assert Epsilon("ln 6") == Epsilon("ln 2") + Epsilon("ln 3")
    assert Epsilon("1/2*ln 8") == Epsilon("3/2*ln 2")
    assert -Epsilon("ln 27/8") == Epsilon("ln 8") + -Epsilon("ln 27")
    assert not Epsilon("ln 9") < 2 * Epsilon("ln 3")
    assert not Epsilon("ln 9") > 2 * Epsilon("ln 3")
    assert Epsilon("1") != Epsilon("ln 3")
    assert Epsilon(1) != 1  # a bare number is no epsilon


def test_infinity_absorbs_all_but_a_distance_of_zero() -> None:
    assert INFINITE + Epsilon(1) == Epsilon(1) + INFINITE == INFINITE + INFINITE == INFINITE
    assert INFINITE * Fraction(1, 2) == INFINITE
    assert INFINITE * 0 == ZERO
    assert max(Epsilon(10**6), INFINITE) == INFINITE
    assert INFINITE.ratio_to(Epsilon(1)) is None
    assert Epsilon(1).ratio_to(INFINITE) is None
    assert not INFINITE < INFINITE


@pytest.mark.parametrize(
    ("text", "unit", "quotient"),
    [
        ("ln 8", "ln 2", Fraction(3)),
        ("ln 2", "ln 8", Fraction(1, 3)),
        ("0", "ln 2", Fraction(0)),
        ("3+ln 8", "1+ln 2", Fraction(3)),
        ("ln 2", "1", None),
        ("ln 6", "ln 2", None),
        ("1+ln 2", "1", None),
        ("2+ln 2", "1+ln 2", None),
        ("1", "0", None),
    ],
)
def test_ratio_to(text: str, unit: str, quotient: Fraction | None) -> None:
    assert Epsilon(text).ratio_to(Epsilon(unit)) == quotient


@pytest.mark.parametrize("places", [20, 40, 100, 400])
@pytest.mark.parametrize("prime", [2, 3, 101])
def test_near_ties_with_a_logarithm_are_decided(prime: int, places: int) -> None:
    just_below = truncated(lambda count: real({prime: Fraction(1)}, count), places)
    just_above = just_below + Fraction(1, 10**places)
    logarithm = Epsilon(f"ln {prime}")
    assert Epsilon(just_below) < logarithm < Epsilon(just_above)


@given(signed_parts)
def test_doubles_are_near_and_the_upper_one_is_above(parts: Parts) -> None:
    epsilon = built(parts)
    value = real(parts)
    with digits():
        upper = Decimal(epsilon.upper_float())
        assert upper >= value
        assert upper - value <= 2 * Decimal(math.ulp(float(value)))
        assert abs(Decimal(float(epsilon)) - value) <= Decimal(math.ulp(float(value)))
        assert abs(Decimal(epsilon.exp()) / e_to(parts) - 1) < Decimal("1e-15")


def test_doubles_of_the_extremes() -> None:
    assert float(INFINITE) == INFINITE.upper_float() == INFINITE.exp() == math.inf
    assert Epsilon(0.1).upper_float() > Fraction(1, 10)
    assert Epsilon("1/3").upper_float() > Fraction(1, 3)
    assert Epsilon("1/2").upper_float() == 0.5
    assert Epsilon(10**6).exp() == math.inf
    assert ZERO.exp() == 1


# -- e^ε ---------------------------------------------------------------------------------------------------


@given(signed_parts)
def test_bounds_on_e_to_epsilon_hold_and_are_tight(parts: Parts) -> None:
    low, high, shift = built(parts).exp_bounds()
    with digits(80):
        scaled_value = e_to(parts, 75) * (Decimal(2) ** shift)
        assert Decimal(low) <= scaled_value * (1 + Decimal("1e-74"))
        assert Decimal(high) >= scaled_value * (1 - Decimal("1e-74"))
        assert Decimal(high) - Decimal(low) <= scaled_value / 2**150


@pytest.mark.slow
def test_bounds_hold_at_the_extremes() -> None:
    for text in ("0", "ln 2", "ln 3"):
        low, high, shift = Epsilon(text).exp_bounds()
        value = exact_e_to(parts_of(Epsilon(text)) or {})
        assert value is not None
        assert low <= value * 2**shift <= high
    low, high, shift = Epsilon(10**6).exp_bounds()
    with digits():
        value_there = Decimal(10**6).exp()
        scale = Decimal(2) ** (10**6 - shift)  # fewer digits to convert than low and high themselves have
        assert Decimal(low >> 10**6) * scale <= value_there * (1 + Decimal("1e-55"))
        assert Decimal(-(-high >> 10**6)) * scale >= value_there * (1 - Decimal("1e-55"))
    with pytest.raises(ValueError, match="infinite"):
        INFINITE.exp_bounds()


@given(signed_parts)
def test_e_to_epsilon_where_it_is_rational(parts: Parts) -> None:
    assert built(parts).exp_if_rational() == exact_e_to(parts)


def test_e_to_epsilon_is_rational_only_where_it_is() -> None:
    assert Epsilon("1/2*ln 4").exp_if_rational() == 2
    assert Epsilon("ln 3/2").exp_if_rational() == Fraction(3, 2)
    assert ZERO.exp_if_rational() == 1
    assert Epsilon("1/2*ln 2").exp_if_rational() is None
    assert Epsilon("1").exp_if_rational() is None
    assert INFINITE.exp_if_rational() is None


# -- the sign of a sum -------------------------------------------------------------------------------------

terms = st.lists(st.tuples(fractions(-9, 9), signed_parts), max_size=5)


@pytest.mark.slow
@given(terms)
def test_sign_of_a_sum_agrees_with_sixty_digits(drawn: list[tuple[Fraction, Parts]]) -> None:
    found = sign_of_sum([(c, built(parts)) for c, parts in drawn])
    with digits():
        value = sum((ratio(c) * e_to(parts) for c, parts in drawn), start=Decimal(0))
    if abs(value) < Decimal("1e-40"):
        assert found == 0  # no sum of so few small terms comes so near without being zero
    else:
        assert found == (1 if value > 0 else -1)


@pytest.mark.slow
@given(terms.filter(bool), st.data())
def test_a_sum_that_cancels_is_zero_and_a_trace_more_is_not(
    drawn: list[tuple[Fraction, Parts]], data: st.DataObject
) -> None:
    """Each term is written twice, once with an integer moved from the factor into the exponent."""
    total: list[tuple[Fraction | int, Epsilon]] = []
    for c, parts in drawn:
        p = data.draw(st.sampled_from(PRIMES))
        k = data.draw(st.integers(-2, 3))
        moved = plus(parts, {p: Fraction(k)})
        assert moved is not None
        total += [(c, built(parts)), (-c / Fraction(p) ** k, built(moved))]
    total = data.draw(st.permutations(total))
    assert sign_of_sum(total) == 0
    trace = Fraction(1, 10**40)
    assert sign_of_sum([*total, (trace, built(drawn[0][1]))]) == 1
    assert sign_of_sum([(-trace, built(drawn[0][1])), *total]) == -1


def test_algebraic_zeros() -> None:
    root_two, root_three = Epsilon("1/2*ln 2"), Epsilon("1/2*ln 3")
    assert sign_of_sum([]) == 0
    assert sign_of_sum([(0, Epsilon(1))]) == 0
    assert sign_of_sum([(3, ZERO), (-1, Epsilon("ln 3"))]) == 0
    assert sign_of_sum([(1, root_two + Epsilon("1/2*ln 8")), (-4, ZERO)]) == 0  # √2·√8 = 4
    assert sign_of_sum([(1, Epsilon("1/2*ln 8")), (-2, root_two)]) == 0  # √8 = 2√2
    assert sign_of_sum([(1, Epsilon("1/2*ln 6")), (-1, root_two + root_three)]) == 0  # √6 = √2·√3
    assert sign_of_sum([(1, -root_two), (Fraction(-1, 2), root_two)]) == 0  # 1/√2 = √2/2
    assert sign_of_sum([(1, Epsilon("1+ln 2")), (-2, Epsilon(1))]) == 0
    assert sign_of_sum([(1, Epsilon("1/3*ln 54")), (-3, Epsilon("1/3*ln 2"))]) == 0  # ∛54 = 3∛2
    # (√2 + √3)² = 5 + 2√6
    square = [(2, ZERO), (2, root_two + root_three), (3, ZERO), (-5, ZERO), (-2, Epsilon("1/2*ln 6"))]
    assert sign_of_sum(square) == 0


@pytest.mark.parametrize("places", [20, 40, 100, 400])
def test_near_ties_of_a_sum_are_decided(places: int) -> None:
    e_below = truncated(lambda count: e_to({1: Fraction(1)}, count), places)
    e_above = e_below + Fraction(1, 10**places)
    assert sign_of_sum([(e_below, ZERO), (-1, Epsilon(1))]) == -1
    assert sign_of_sum([(e_above, ZERO), (-1, Epsilon(1))]) == 1
    assert exceeds(e_above, 1, Epsilon(1))
    assert not exceeds(e_below, 1, Epsilon(1))
    tie = Fraction(1, 10**places)
    assert exceeds(3 + tie, 1, Epsilon("ln 3"))
    assert not exceeds(3, 1, Epsilon("ln 3"))
    assert not exceeds(3 - tie, 1, Epsilon("ln 3"))


@pytest.mark.parametrize("steps", range(1, 400, 7))
def test_convergents_of_the_root_of_two(steps: int) -> None:
    """p/q with p² - 2q² = ±1 comes as near to √2 as any; the sign is that of the integers."""
    p, q = 1, 1
    for _ in range(steps):
        p, q = p + 2 * q, p + q
    assert abs(p * p - 2 * q * q) == 1
    assert sign_of_sum([(p, ZERO), (-q, Epsilon("1/2*ln 2"))]) == p * p - 2 * q * q
    assert exceeds(p, q, Epsilon("1/2*ln 2")) == (p * p > 2 * q * q)


def test_an_infinite_epsilon_has_no_place_in_a_sum() -> None:
    with pytest.raises(ValueError, match="infinite"):
        sign_of_sum([(1, INFINITE)])


def test_sums_with_astronomic_terms() -> None:
    assert sign_of_sum([(1, Epsilon(10**6)), (-(10**400), Epsilon(999_000))]) == 1
    assert sign_of_sum([(1, Epsilon(10**6)), (-(10**440), Epsilon(999_000))]) == -1
    assert sign_of_sum([(1, Epsilon("1000000*ln 2")), (-(2**1_000_000), ZERO)]) == 0
    assert sign_of_sum([(1, Epsilon("1000000*ln 2")), (-(2**1_000_000) - 1, ZERO)]) == -1


def test_astronomic_powers_are_not_written_out() -> None:
    """The largest epsilons that are accepted must be usable: 3^900,000,000 has 430 million digits."""
    huge = Epsilon("900000000*ln 3")
    with ends():
        assert sign_of_sum([(1, huge), (-1, ZERO)]) == 1
        assert sign_of_sum([(1, huge), (-3, huge + -Epsilon("ln 3"))]) == 0
        assert sign_of_sum([(1, huge), (-4, huge + -Epsilon("ln 3"))]) == -1
        assert floor_of_ratio((Fraction(2**16), Fraction(0)), (Fraction(1), Fraction(1)), huge) == 2**16 - 1
        assert not exceeds(10**100, 1, huge)


def test_astronomic_powers_that_cancel_leave_the_small_term() -> None:
    huge = Epsilon("900000000*ln 3")
    with ends():
        assert sign_of_sum([(1, ZERO), (1, huge), (-2, huge + -Epsilon("ln 2"))]) == 1


small_terms = st.lists(st.tuples(fractions(-30, 30), signed_parts), max_size=3)


@pytest.mark.slow
@given(small_terms, small_terms)
def test_an_astronomic_factor_decides_unless_what_it_multiplies_is_zero(
    large: list[tuple[Fraction, Parts]], small: list[tuple[Fraction, Parts]]
) -> None:
    """sign(3^900000000·L + S) = sign(L) or, where L vanishes, sign(S); L and S have a sign known by other means."""
    huge = Epsilon("900000000*ln 3")
    large_terms = [(c, built(parts)) for c, parts in large]
    rest = [(c, built(parts)) for c, parts in small]
    cancelling = [(-c, e) for c, e in large_terms[:1]]  # often leaves exactly zero
    for factor in (large_terms, large_terms + cancelling):
        expected = sign_of_sum(factor) or sign_of_sum(rest)
        with ends():
            assert sign_of_sum([*((c, e + huge) for c, e in factor), *rest]) == expected


# -- exceeds and excess ------------------------------------------------------------------------------------

likelihoods = st.one_of(st.integers(0, 30).map(Fraction), fractions(0, 30), st.just(Fraction(1, 10**40)))


@example(Fraction(1), Fraction(64), {1: Fraction(-5)})
@given(likelihoods, likelihoods, st.one_of(finite_levels, signed_parts))
def test_exceeds_and_excess_agree_with_decimals(left: Fraction, right: Fraction, parts: Parts) -> None:
    epsilon = built(parts)
    assert exceeds(left, right, epsilon) == violates(left, right, parts)
    expected = excess_of(left, right, parts)
    found = excess(left, right, epsilon)
    if expected.is_infinite():
        assert found == float(expected)
    else:
        assert found == pytest.approx(float(expected), rel=1e-14, abs=1e-50)


@given(likelihoods.filter(bool), finite_levels.filter(lambda parts: exact_e_to(parts) is not None))
def test_exactly_at_the_limit_is_within_it(right: Fraction, parts: Parts) -> None:
    limit = exact_e_to(parts)
    assert limit is not None
    assert not exceeds(limit * right, right, built(parts))
    assert excess(limit * right, right, built(parts)) == 0
    for places in (30, 100, 300):
        above = limit * right * (1 + Fraction(1, 10**places))
        assert exceeds(above, right, built(parts))
        assert excess(above, right, built(parts)) == pytest.approx(10.0**-places, rel=1e-9, abs=0)


def test_exceeds_with_zero_and_infinity() -> None:
    for epsilon in (ZERO, Epsilon(1), Epsilon("ln 3"), INFINITE):
        assert not exceeds(0, 0, epsilon)
        assert not exceeds(0, 1, epsilon)
        assert exceeds(Fraction(1, 10**100), 0, epsilon) is not epsilon.is_infinite
        assert excess(0, 0, epsilon) == excess(0, 1, epsilon) == -math.inf
        assert excess(1, 0, epsilon) == (-math.inf if epsilon.is_infinite else math.inf)
    assert not exceeds(1, 1, ZERO)
    assert exceeds(10**30 + 1, 10**30, ZERO)
    assert not exceeds(10**1000, 1, INFINITE)
    assert exceeds(10**1000, 1, Epsilon(2302))  # 1000·ln 10 = 2302.58…
    assert not exceeds(10**1000, 1, Epsilon(2303))


# -- floors ------------------------------------------------------------------------------------------------


@given(
    fractions(-99, 99), fractions(-99, 99), fractions(0, 99), fractions(0, 99),
    st.sampled_from([Fraction(1), Fraction(2), Fraction(3), Fraction(9, 2), Fraction(100)]),
)  # fmt: skip
def test_floor_of_a_ratio_at_rational_e_to_epsilon(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction, t: Fraction
) -> None:
    assume(c * t + d > 0)
    found = floor_of_ratio((a, b), (c, d), Epsilon(f"ln {t}"))
    assert found == math.floor((a * t + b) / (c * t + d))
    # The value itself a whole number: the floor is that number, not the one below.
    whole = a.numerator
    assert floor_of_ratio((whole * c, whole * d), (c, d), Epsilon(f"ln {t}")) == whole


@given(fractions(-99, 99), fractions(-99, 99), fractions(0, 99), fractions(0, 99), finite_levels)
def test_floor_of_a_ratio_agrees_with_decimals(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction, parts: Parts
) -> None:
    assume(c + d > 0)
    with digits():
        t = e_to(parts)
        value = (ratio(a) * t + ratio(b)) / (ratio(c) * t + ratio(d))
        rounded = value.to_integral_value()
        whole = abs(value - rounded) < Decimal("1e-40")
    found = floor_of_ratio((a, b), (c, d), built(parts))
    if whole:
        assert found == int(rounded)  # a whole number: nothing else comes so near here
    else:
        assert found == math.floor(value)


def test_floors_of_thresholds() -> None:
    one = Fraction(1)
    scale = Fraction(2**64)
    assert floor_of_ratio((scale, Fraction(0)), (one, one), Epsilon("ln 3")) == 3 * 2**62
    assert floor_of_ratio((scale, Fraction(0)), (one, one), ZERO) == 2**63
    with digits():
        t = e_to({1: one})
        expected = math.floor(2**64 * t / (t + 1))
    assert floor_of_ratio((scale, Fraction(0)), (one, one), Epsilon(1)) == expected
    assert floor_of_ratio((scale, Fraction(0)), (one, one), Epsilon(10**6)) == 2**64 - 1
    assert floor_of_ratio((Fraction(0), Fraction(1000)), (one, one), Epsilon(10**6)) == 0
    # One part in 10^50 below and at a whole number.
    at = (Fraction(5, 3), Fraction(0))
    assert floor_of_ratio(at, (Fraction(0), one), Epsilon("ln 3")) == 5
    assert floor_of_ratio((at[0] - Fraction(1, 10**50), at[1]), (Fraction(0), one), Epsilon("ln 3")) == 4


@pytest.fixture
def counted_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A floor that must be searched for step by step, among more integers than can be tried, is a failure."""
    left = iter(range(1000))

    def counted(summands: Any) -> int:
        assert next(left, None) is not None, "more than a thousand guesses"
        return sign_of_sum(summands)

    monkeypatch.setattr(exact, "sign_of_sum", counted)


@pytest.mark.usefixtures("counted_signs")
@pytest.mark.parametrize("exponent", [100, 200, 1000])
def test_floor_of_a_large_number_is_found_without_search(exponent: int) -> None:
    with digits(600):
        expected = int(Decimal(exponent).exp().to_integral_value(rounding="ROUND_FLOOR"))
    assert floor_of_ratio((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)), Epsilon(exponent)) == expected


@pytest.mark.usefixtures("counted_signs")
def test_floor_of_a_ratio_whose_denominator_nearly_vanishes() -> None:
    e_below = truncated(lambda count: e_to({1: Fraction(1)}, count), 60)
    with digits(150):
        expected = math.floor(1 / (Decimal(1).exp() - ratio(e_below)))
    assert expected > 10**60
    assert floor_of_ratio((Fraction(0), Fraction(1)), (Fraction(1), -e_below), Epsilon(1)) == expected


# -- threads -----------------------------------------------------------------------------------------------


def test_decisions_in_many_threads_at_once() -> None:
    """python-flint has one precision for the process: near ties decided side by side must not disturb it."""
    import flint

    before = flint.ctx.prec
    near = [truncated(lambda count: real({3: Fraction(1)}, count), places) for places in range(30, 330, 3)]

    def decide(just_below: Fraction) -> bool:
        return Epsilon(just_below) < Epsilon("ln 3") and not exceeds(3, 1, Epsilon("ln 3"))

    patience = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns in the middle of nearly every decision
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(decide, near * 10))
    finally:
        sys.setswitchinterval(patience)
    assert flint.ctx.prec == before


def test_levels_of_more_digits_than_any_memory_holds() -> None:
    # Fractions of these took the process down: 2^-1442695040888 is no number to write out.
    greatest = Epsilon("1e12")
    assert floor_of_ratio((Fraction(0), Fraction(3)), (Fraction(1), Fraction(1)), greatest) == 0
    assert floor_of_ratio((Fraction(0), Fraction(-3)), (Fraction(1), Fraction(0)), greatest) == -1
    assert floor_of_ratio((Fraction(7), Fraction(0)), (Fraction(2), Fraction(1)), greatest) == 3


def test_logarithms_are_rounded_to_the_stated_side() -> None:
    step = Epsilon("0.001")
    three: list[tuple[Fraction, Epsilon]] = [(Fraction(3), ZERO)]
    one: list[tuple[Fraction, Epsilon]] = [(Fraction(1), ZERO)]
    assert (floor_of_log(three, one, step), ceil_of_log(three, one, step)) == (Epsilon("1.098"), Epsilon("1.099"))
    # What is a multiple of the step is neither raised nor lowered.
    e: list[tuple[Fraction, Epsilon]] = [(Fraction(1), Epsilon(1))]
    assert floor_of_log(e, one, step) == ceil_of_log(e, one, step) == Epsilon(1)
    assert floor_of_log(one, one, step) == ceil_of_log(one, one, step) == ZERO
    assert ceil_of_log(one, three, step) == ZERO
    most = Epsilon("1e12")
    assert floor_of_log([(Fraction(2), most)], one, Epsilon(1)) == most  # the greatest that can be stated
    assert [digits_of(Epsilon(level)) for level in ("3", "1", "0.2", "0.004")] == [
        Epsilon(step) for step in ("1e-9", "1e-9", "1e-10", "1e-12")
    ]
