"""Chi-square confidence sets: their radius, members and projections, against independent optimisation."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import sfumato as sf
from sfumato._core.exact import chi_square_is_likelier
from sfumato.errors import LimitExceeded, UnknownSpec
from sfumato.policy.chi_square import greatest_distance, probability_range
from support.published import reference
from support.reference import refusal

TWO_BY_THREE = sf.Domain.product(S=["s0", "s1"], U=["u0", "u1", "u2"])
COUNTS = [[100, 200, 100], [300, 50, 250]]


def table(n: int, cells: int) -> list[list[int]]:
    """Counts of n people in two rows of cells/2."""
    half = cells // 2
    row = [n // cells] * half
    return [[n - n // cells * (2 * half - 1), *row[1:]], row]


# -- the radius --------------------------------------------------------------------------------------------


def test_the_published_radii_are_reproduced() -> None:
    for case in reference("rldp_B"):
        rows = 2 if case["a"] % 2 == 0 else math.isqrt(case["a"])
        counts = np.zeros((rows, case["a"] // rows), dtype=int)
        counts[0, 0] = case["n"]
        assert float(sf.ChiSquare(counts, case["alpha"]).radius) == pytest.approx(case["B"], rel=1e-11)


@pytest.mark.parametrize("alpha", ["0.05", "1e-9", "0.999", "1/3"])
@pytest.mark.parametrize(("n", "cells"), [(10, 4), (1000, 6), (32561, 40), (10**9, 12)])
def test_the_radius_is_the_quantile_rounded_up_by_less_than_one_unit(n: int, cells: int, alpha: str) -> None:
    confidence = sf.ChiSquare(table(n, cells), alpha)
    root, exact_alpha = confidence.root_radius, Fraction(alpha)
    assert (root * 2**64).denominator == 1
    assert not chi_square_is_likelier(n * (root**2 - 1), cells - 1, exact_alpha)
    assert chi_square_is_likelier(n * ((root - Fraction(1, 2**64)) ** 2 - 1), cells - 1, exact_alpha)
    # An independent implementation agrees to the digits it has.
    assert float(n * confidence.radius) == pytest.approx(chi2.isf(float(exact_alpha), cells - 1), rel=1e-8)


@pytest.mark.parametrize("degrees", [1, 2, 3, 24, 671])
def test_the_tail_is_decided_as_an_independent_implementation_has_it(degrees: int) -> None:
    for alpha in (Fraction(1, 20), Fraction(1, 10**12), Fraction(99, 100)):
        quantile = Fraction(float(chi2.isf(float(alpha), degrees)))
        assert chi_square_is_likelier(quantile * Fraction(10**6 - 1, 10**6), degrees, alpha)
        assert not chi_square_is_likelier(quantile * Fraction(10**6 + 1, 10**6), degrees, alpha)
    # Two degrees of freedom: P(X > x) = e^(-x/2), so that -2·ln α is the quantile.
    assert chi_square_is_likelier(Fraction("5.991464547107981"), 2, Fraction(1, 20))
    assert not chi_square_is_likelier(Fraction("5.991464547107983"), 2, Fraction(1, 20))
    assert chi_square_is_likelier(Fraction(0), degrees, Fraction(99, 100))


# -- members -----------------------------------------------------------------------------------------------


def test_membership_is_exact() -> None:
    confidence = sf.ChiSquare(COUNTS)
    assert confidence.holds(confidence.estimate)
    # Move mass along a line until the boundary, and look on either side of it.
    low, high = Fraction(0), Fraction(1, 10)
    for _ in range(80):
        middle = (low + high) / 2
        moved = [list(row) for row in confidence.estimate]
        moved[0][0] += middle
        moved[1][2] -= middle
        low, high = (middle, high) if confidence.holds(moved) else (low, middle)
        square = sum(
            (c - p) ** 2 / p
            for c, p in zip(itertools.chain(*confidence.estimate), itertools.chain(*moved), strict=True)
        )
        assert confidence.holds(moved) == (square <= confidence.radius)  # eq. 3
    assert 0 < low < Fraction(1, 10)


def test_a_cell_that_was_never_seen_may_be_anything_and_a_seen_one_not_nothing() -> None:
    confidence = sf.ChiSquare([[50, 0], [30, 20]])
    assert confidence.holds([["0.45", "0.05"], ["0.3", "0.2"]])
    assert not confidence.holds([["0.5", 0], ["0.5", 0]])


@pytest.mark.slow
def test_the_set_covers_the_truth_about_as_often_as_promised(is_soak: bool) -> None:
    """Samples of 1,000 people: misses are binomial. 1e-6 quantiles on either side of 5%, at most 8.2% or 9% of them.

    A set that covers 88% instead of 95% is noticed with probability 0.99 by 800 samples.
    """
    samples, least, most = (2000, 55, 164) if is_soak else (800, 14, 72)
    generator = np.random.default_rng(3)
    truth = [["0.1", "0.2", "0.1"], ["0.3", "0.05", "0.25"]]
    shares = np.array(truth, dtype=float).ravel()
    misses = sum(
        not sf.ChiSquare(generator.multinomial(1000, shares).reshape(2, 3)).holds(truth) for _ in range(samples)
    )
    assert least <= misses <= most


# -- projections -------------------------------------------------------------------------------------------


def extremes(counts: Any, alpha: Any, value: Any, *, sign: float) -> float:
    """The least of sign·value(P) over the confidence set, by a general solver from several starts."""
    confidence = sf.ChiSquare(counts, alpha)
    hat = confidence.frequencies.ravel()
    bound = float(confidence.radius) + 1
    seen = hat > 0
    constraints = [
        {"type": "eq", "fun": lambda p: p.sum() - 1},
        {"type": "ineq", "fun": lambda p: bound - np.sum(hat[seen] ** 2 / p[seen])},
    ]
    best = math.inf
    generator = np.random.default_rng(4)
    for _ in range(4):
        start = 0.98 * hat + 0.02 * generator.dirichlet(np.ones(len(hat)))
        result = minimize(
            lambda p: sign * value(p.reshape(confidence.frequencies.shape)),
            start,
            method="SLSQP",
            bounds=[(1e-9, 1)] * len(hat),
            constraints=constraints,
            options={"maxiter": 500, "ftol": 1e-13},
        )
        if abs(result.x.sum() - 1) < 1e-8 and np.sum(hat[seen] ** 2 / result.x[seen]) <= bound * (1 + 1e-8):
            best = min(best, result.fun)
    return best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "alpha"),
    [(COUNTS, "0.05"), ([[10, 5], [4, 11], [8, 2]], "0.2"), ([[20, 0, 5], [9, 9, 9]], "0.05")],
)
def test_laws_given_a_secret_range_as_lemmas_8_and_9_say(counts: Any, alpha: Any) -> None:
    confidence = sf.ChiSquare(counts, alpha)
    hat, bound = confidence.frequencies, float(confidence.radius) + 1
    for s, u in itertools.product(range(len(counts)), range(len(counts[0]))):
        for sign, end in zip((1, -1), confidence.conditional_ranges(s), strict=True):
            # No distribution that a general solver finds goes further…
            found = extremes(counts, alpha, lambda p, s=s, u=u: p[s, u] / p[s].sum(), sign=sign)
            assert sign * end[u] <= found + 1e-7
            # …and this one, of Lemma 8's proof, goes as far: the other laws stay, and their secrets shrink alike.
            law = hat[s] * (1 - end[u]) / max(hat[s].sum() - hat[s, u], 1e-300)
            law[u] = end[u]
            p = hat / math.sqrt(bound)
            p[s] = law * (1 - (1 - hat[s].sum()) / math.sqrt(bound))
            seen = hat > 0
            assert p.sum() == pytest.approx(1, rel=1e-12)
            reached = np.sum(hat[seen] ** 2 / p[seen]) / bound
            assert reached <= 1 + 1e-11
            assert reached >= 1 - 1e-11 or end[u] == hat[s, u] == 0  # what was never seen may not be there at all


def test_sets_of_values_range_as_one_merged_value() -> None:
    confidence = sf.ChiSquare(COUNTS)
    least, greatest = confidence.conditional_ranges(1, np.array([[True, False, True], [True, True, True]]))
    low = extremes(COUNTS, "0.05", lambda p: (p[1, 0] + p[1, 2]) / p[1].sum(), sign=1)
    assert least[0] == pytest.approx(low, abs=2e-6)
    assert (least[1], greatest[1]) == (1, 1)


@pytest.mark.parametrize("key", ["rldp_Bs_lemma8", "rldp_lemma9", "rldp_prop10"])
def test_published_values_of_the_projections(key: str) -> None:
    for case in reference(key):
        if key == "rldp_Bs_lemma8":
            root, share = math.sqrt(case["B"] + 1), case["Ps"]
            assert ((root - 1 + share) / share) ** 2 - 1 == pytest.approx(case["Bs"], rel=1e-11)
        elif key == "rldp_lemma9":
            assert [float(end) for end in probability_range(case["B"], np.array(case["p"]))] == pytest.approx(
                [case["min"], case["max"]], rel=1e-11
            )
        else:
            assert greatest_distance(case["B"], np.array(case["phat"])) == pytest.approx(case["exact"], rel=1e-11)


def test_published_projections_of_whole_tables() -> None:
    for case in reference("rldp_instances"):
        confidence = sf.ChiSquare((np.array(case["Phat"]) * case["n"]).round().astype(int), case["alpha"])
        assert float(confidence.radius) == pytest.approx(case["B"], rel=1e-11)
        for s, expected in enumerate(case["Bs"]):
            radius = confidence.conditional_radius(s)
            assert (math.inf if radius is None else float(radius)) == pytest.approx(float(expected), rel=1e-11)
            assert confidence.conditional_ranges(s)[0] == pytest.approx(case["Pmin"][s], rel=1e-9, abs=1e-13)
            assert confidence.conditional_distance(s) == pytest.approx(case["d_s_exact"][s], rel=1e-11)


def test_small_shares_do_not_cancel() -> None:
    """Eq. 36 as printed is 100% wrong here; the least share is about p²/(B + 2p) for a small p."""
    for radius, share in ((0.01, 1e-6), (0.02, 1e-9), (1.0, 1e-9)):
        least, _ = probability_range(radius, np.array(share))
        exact = Fraction(share)
        b = Fraction(radius)
        # It solves p̂²/P + (1-p̂)²/(1-P) = B + 1 (eq. 41), checked with 60 digits' room.
        value = exact**2 / Fraction(float(least)) + (1 - exact) ** 2 / (1 - Fraction(float(least)))
        assert float(value / (b + 1)) == pytest.approx(1, rel=1e-12)


def test_the_greatest_distance_is_reached_and_not_passed() -> None:
    generator = np.random.default_rng(5)
    for _ in range(40):
        cells = int(generator.integers(2, 6))
        shares = generator.dirichlet(np.full(cells, 0.7))
        radius = float(10 ** generator.uniform(-3, 1))
        bound = greatest_distance(radius, shares)
        assert bound <= math.sqrt(radius) + 1e-12 or radius >= 1
        reached = 0.0
        for signs in itertools.product((-1.0, 1.0), repeat=cells):
            # ‖P-P̂‖₁ is the maximum over signs of a linear function, whose maximum has R_x ∝ p̂_x/√(μ-sign_x).
            if len(set(signs)) == 1:
                continue
            low, high = 1.0 + 1e-13, 1e9
            for _ in range(200):
                mu = math.sqrt(low * high) if low > 1.1 else 1 + math.sqrt((low - 1) * (high - 1))
                weights = shares / np.sqrt(mu - np.array(signs))
                law = weights / weights.sum()
                if np.sum(shares**2 / law) > radius + 1:
                    low = mu
                else:
                    high = mu
            weights = shares / np.sqrt(high - np.array(signs))
            reached = max(reached, float(np.abs(weights / weights.sum() - shares).sum()))
        assert reached == pytest.approx(bound, rel=1e-6)


def test_too_many_cells_for_all_subsets_are_bounded() -> None:
    assert greatest_distance(0.04, np.full(30, 1 / 30)) == pytest.approx(0.2)


def test_the_corners_enclose_the_set() -> None:
    confidence = sf.ChiSquare(COUNTS)
    corners = confidence.corners()
    np.testing.assert_allclose(corners.sum(axis=1), 1, rtol=1e-12)
    least = corners.min(axis=0)
    for x in range(6):
        assert least[x] <= extremes(COUNTS, "0.05", lambda p, x=x: p.ravel()[x], sign=1) + 1e-7


# -- documents and bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["policy.toml", "policy.json"])
def test_the_policy_survives_its_file(name: str, tmp_path: Path) -> None:
    policy = sf.Secret(TWO_BY_THREE, "S", "0.5", sf.ChiSquare(COUNTS, alpha=0.01))
    sf.save_policy(policy, tmp_path / name)
    read = sf.load_policy(tmp_path / name)
    assert read == policy
    assert read.hash == policy.hash
    assert isinstance(read, sf.Secret)
    assert isinstance(read.distributions, sf.ChiSquare)
    assert read.distributions.root_radius == sf.ChiSquare(COUNTS, alpha="1/100").root_radius


def test_the_hash_and_the_radius_are_the_same_everywhere() -> None:
    """Whole numbers all the way: no digit of these depends on a machine or on another library."""
    policy = sf.Secret(TWO_BY_THREE, "S", 1, sf.ChiSquare(COUNTS))
    assert policy.hash == "2f91cb81c903b150d4f692b6e5b638b2f2e19eb520bbebba77a1729883b02a08"
    assert policy.distributions.root_radius == Fraction(18_548_570_351_352_715_466, 2**64)  # type: ignore[attr-defined]


def test_alpha_is_optional_in_a_file() -> None:
    document = sf.Secret(TWO_BY_THREE, "S", 1, sf.ChiSquare(COUNTS)).to_dict()
    del document["policy"]["distributions"]["chi-square"]["alpha"]
    assert sf.policy_from_dict(document) == sf.Secret(TWO_BY_THREE, "S", 1, sf.ChiSquare(COUNTS, "0.05"))


@pytest.mark.parametrize(
    ("counts", "alpha", "culprit"),
    [
        (COUNTS, 0, "alpha must lie strictly between 0 and 1; got 0"),
        (COUNTS, 1, "alpha must lie strictly between 0 and 1; got 1"),
        (COUNTS, -0.05, "alpha must lie strictly between 0 and 1"),
        (COUNTS, "5%", "alpha must be a number between 0 and 1; got '5%'"),
        (COUNTS, None, "alpha must be a number between 0 and 1"),
        ([[1, 2, 3]], 0.05, "counts must have at least two rows, one per value of the secret; got 1 row"),
        ([], 0.05, "counts must have at least two rows"),
        ([[1, 2], [3]], 0.05, "with at least one count each; got rows of the lengths [2, 1]"),
        ([[], []], 0.05, "counts must have rows of equal length, with at least one count each"),
        ([[1, -2], [3, 4]], 0.05, "the count in row 0, column 1 must be a whole number, at least 0; got -2"),
        ([[1, 2], [3, 4.5]], 0.05, "the count in row 1, column 1 must be a whole number, at least 0; got 4.5"),
        ([[1, 2], ["x", 4]], 0.05, "the count in row 1, column 0 must be a whole number; got 'x'"),
        ([[0, 0], [0, 0]], 0.05, "counts must count at least one person; got only zeros"),
        ("1234", 0.05, "counts must be rows of counts"),
        ([1, 2], 0.05, "counts must be rows of counts"),
        (None, 0.05, "counts must be rows of counts"),
    ],
)
def test_bad_tables_are_refused(counts: Any, alpha: Any, culprit: str) -> None:
    message = refusal(sf.ChiSquare, counts, alpha)
    assert message.startswith("ChiSquare: ")
    assert culprit in message


def test_a_table_of_another_shape_than_the_domain_is_refused() -> None:
    message = refusal(sf.Secret, TWO_BY_THREE, "S", 1, sf.ChiSquare([[1, 2], [3, 4]]))
    assert "counts must be 2 rows of 3 counts; got 2 rows of 2 counts" in message
    message = refusal(sf.Secret, TWO_BY_THREE, "U", 1, sf.ChiSquare(COUNTS))
    assert "counts must be 3 rows of 2 counts" in message


@pytest.mark.parametrize("joint", [[["1/2", "1/2"]], [["1/6"] * 3, ["1/6", "1/6", "1/3"]], [["-1/6"] * 3, ["1/2"] * 3]])
def test_what_is_no_distribution_is_no_member(joint: Any) -> None:
    assert "joint must be" in refusal(sf.ChiSquare(COUNTS).holds, joint)


def test_unknown_keys_of_the_document_are_named() -> None:
    document = sf.Secret(TWO_BY_THREE, "S", 1, sf.ChiSquare(COUNTS)).to_dict()
    document["policy"]["distributions"] = {"chi-square": {"counts": COUNTS, "alfa": "0.05"}}
    assert "did you mean 'alpha'?" in refusal(sf.policy_from_dict, document)
    document["policy"]["distributions"] = {"chi-squared": COUNTS}
    with pytest.raises(UnknownSpec, match="chi-square = "):
        sf.policy_from_dict(document)


def test_infinitely_many_rules_are_not_listed() -> None:
    policy = sf.Secret(TWO_BY_THREE, "S", 1, sf.ChiSquare(COUNTS))
    with pytest.raises(LimitExceeded, match="infinitely many rules"):
        list(policy.inequalities())
    assert list(sf.Secret(TWO_BY_THREE, "S", "inf", sf.ChiSquare(COUNTS)).inequalities()) == []
