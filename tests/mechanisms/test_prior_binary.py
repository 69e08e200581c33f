"""The best mechanism for two values under a prior: its contract, its published values, the correction, the optimum."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.interpreter import sampler_law
from sfumato.errors import InvalidInput, PolicyViolated
from sfumato.estimation import information_privacy
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.binary import (
    BinaryOptimal,
    PriorBinary,
    PriorSymmetric,
    binary_for_policy,
    one_sided_as_printed,
)
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.testing import MechanismContract
from support.published import reference

COIN = sf.Domain(["no", "yes"])
LEVELS = ["0", "1e-30", "0.001", "0.5", "ln 3", "2", "16", "200", "1e12", "inf"]
PRIORS = ["0", "1e-30", "1e-9", "0.01", "0.25", "1/2", "0.7", "0.999", "1"]
JUST_LESS = Fraction(10**9 - 1, 10**9)


def of(second: Any) -> list[Fraction]:
    """The prior with this probability of the second value."""
    return [1 - Fraction(second), Fraction(second)]


class TestRare(MechanismContract):
    sizes = (2,)
    second = Fraction(1, 100)
    side = "both"

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return PriorBinary(domain, of(self.second), epsilon, self.side)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Policy:
        return sf.Prior(domain, of(self.second), epsilon, self.side)


class TestInTheMiddle(TestRare):
    second = Fraction(2, 5)


class TestFrequent(TestRare):
    second = Fraction(93, 100)


class TestOfPriorZero(TestRare):
    second = Fraction(0)


class TestOneSided(TestRare):
    side = "lower"
    second = Fraction(1, 7)


class TestSymmetric(MechanismContract):
    sizes = (2,)
    second = Fraction(1, 10)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> Mechanism:
        return PriorSymmetric(domain, of(self.second), epsilon)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> sf.Policy:
        return sf.Prior(domain, of(self.second), epsilon)


class TestSymmetricOfAFrequentValue(TestSymmetric):
    second = Fraction(3, 4)


# -- every prior and every level -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("second", PRIORS)
def test_every_prior_and_level_is_kept(second: str, epsilon: str) -> None:
    for side in ("both", "upper", "lower"):
        mechanism = PriorBinary(COIN, of(second), epsilon, side)
        assert sf.audit(mechanism, sf.Prior(COIN, of(second), epsilon, side)).holds
        (told, _), (denied, _) = mechanism.weights.tolist()
        assert denied <= told
        assert sf.mechanism_from_spec(mechanism.to_json()) == mechanism
    both, symmetric = PriorBinary(COIN, of(second), epsilon), PriorSymmetric(COIN, of(second), epsilon)
    assert sf.audit(symmetric, sf.Prior(COIN, of(second), epsilon)).holds
    assert sf.mechanism_from_spec(symmetric.to_json()) == symmetric
    if epsilon != "inf":
        # No finite level becomes certainty: an output is possible for both values or for none.
        for weights in (both.weights, symmetric.weights):
            possible = weights > 0
            assert np.array_equal(possible[0], possible[1])


@pytest.mark.parametrize("second", PRIORS)
def test_no_budget_is_a_fair_coin_and_an_infinite_one_is_the_value(second: str) -> None:
    for kind in (PriorBinary, PriorSymmetric):
        assert sampler_law(kind(COIN, of(second), 0), 1)[0] == {b"\0": Fraction(1, 2), b"\1": Fraction(1, 2)}
        assert sampler_law(kind(COIN, of(second), "inf"), 1)[0] == {b"\1": 1}


def test_a_value_of_prior_zero_is_protected_as_by_randomized_response() -> None:
    """Errata L9: released in clear, an 'impossible' value would be the worst leak."""
    for second, kind in itertools.product((0, 1), (PriorBinary, PriorSymmetric)):
        for epsilon in ("0.1", "1", "ln 3"):
            mechanism = kind(COIN, of(second), epsilon)
            np.testing.assert_allclose(mechanism.matrix(), RandomizedResponse(COIN, epsilon).matrix(), rtol=1e-15)
            assert information_privacy.mmse(mechanism, of(second)) == 0  # and the estimate is the constant


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "ln 3", "2", "7"])
@pytest.mark.parametrize("second", [Fraction(i, 24) for i in range(25)])
def test_the_three_regimes(second: Fraction, epsilon: str) -> None:
    """Errata L1, in the form that PriorBinary's docstring states."""
    t, p1, p0 = Epsilon(epsilon).exp(), float(second), float(1 - second)
    if p1 < 1 / (t + 1):
        flips = (1 - p1 * t) / (p0 * (t + 1)), 1 / (t + 1)
    elif p1 <= t / (t + 1):
        flips = p1 / t, p0 / t
    else:
        flips = 1 / (t + 1), (1 - p0 * t) / (p1 * (t + 1))
    matrix = PriorBinary(COIN, of(second), epsilon).matrix()
    assert (matrix[0, 1], matrix[1, 0]) == pytest.approx(flips, rel=1e-12)
    smaller = min(p0, p1)
    q = (1 - smaller) / (t + 1 - 2 * smaller)
    symmetric = PriorSymmetric(COIN, of(second), epsilon).matrix()
    assert (symmetric[0, 1], symmetric[1, 0]) == pytest.approx((q, q), rel=1e-12)


def test_the_regimes_meet_exactly() -> None:
    """At P1 = 1/(t+1) with t = 3 both formulas give (1/12, 1/4), and the weights are those of neither approximately."""
    mechanism = PriorBinary(COIN, ["3/4", "1/4"], "ln 3")
    assert mechanism.probability(1, 0) == Fraction(1, 12) + Fraction(TOTAL * 11 % 12, 12 * TOTAL)
    assert mechanism.probability(0, 1) == Fraction(1, 4)


def test_both_sides_are_spent() -> None:
    for second in ("0.01", "0.3", "1/2", "0.9"):
        mechanism = PriorBinary(COIN, of(second), "0.5")
        law, tighter = mechanism.channel(), Epsilon("0.5") * JUST_LESS
        for column in zip(*law.rows, strict=True):
            assert not sf.Prior(COIN, of(second), tighter).allows(column)


def test_the_second_row_is_rounded_by_no_more_than_the_policy_asks() -> None:
    for second, epsilon in (("0.01", "1"), ("0.3", "ln 3"), ("0.9", "0.1")):
        mechanism = PriorBinary(COIN, of(second), epsilon)
        (told, _), (denied, _) = mechanism.weights.tolist()
        nudged = TableMechanism(COIN, [[told, TOTAL - told], [denied - 1, TOTAL - denied + 1]])
        assert not sf.audit(nudged, sf.Prior(COIN, of(second), epsilon)).holds


# -- the correction ------------------------------------------------------------------------------------------


def test_the_printed_theorem_2_breaks_its_own_definition() -> None:
    """Jiang, Li, Tandon, Theorem 2 and Definition 3: at P1 = 0.01, ε = 1 the real level is 4.15."""
    rare = ["0.99", "0.01"]
    policy = sf.Prior(COIN, rare, 1)
    q0, q1 = 0.01 / math.e, 0.99 / math.e
    as_matrix = TableMechanism.from_matrix(COIN, [[1 - q0, q0], [q1, 1 - q1]])
    named = one_sided_as_printed(COIN, rare, 1)
    np.testing.assert_allclose(named.matrix(), as_matrix.matrix(), rtol=1e-14)
    for printed in (as_matrix, named):
        certificate = sf.audit(printed, policy)
        assert not certificate.holds
        assert certificate.worst.names == ("yes", "the average over the prior")
        assert certificate.worst.excess + 1 == pytest.approx(4.15229793824444, abs=1e-9)
        with pytest.raises(PolicyViolated, match=r"e\^4\.1523, above the limit e\^1 "):
            certificate.raise_if_violated()
    # What it does keep is one side, and of that it is the optimum.
    assert named.provenance == {"from": "prior-binary", "prior": ["99/100", "1/100"], "epsilon": "1", "side": "lower"}
    assert sf.audit(named, sf.Prior(COIN, rare, 1, side="lower")).holds
    assert not sf.audit(named, sf.Prior(COIN, rare, 1, side="upper")).holds
    ours = PriorBinary(COIN, rare, 1)
    assert sf.audit(ours, policy).raise_if_violated().holds


def test_the_printed_theorem_2_is_right_between_the_regimes() -> None:
    for second in ("0.3", "1/2", "0.7"):
        assert np.array_equal(PriorBinary(COIN, of(second), 1).weights,
                              one_sided_as_printed(COIN, of(second), 1).weights)  # fmt: skip


# -- published values ----------------------------------------------------------------------------------------


def level(mechanism: Mechanism, policy: sf.Policy) -> float:
    return mechanism.channel().worst(policy).excess


def test_the_reference_values_are_reproduced() -> None:
    def close(expected: float) -> Any:
        return pytest.approx(expected, rel=1e-11, abs=1e-13)

    for case in reference("lip"):
        p1, epsilon = case["P1"], case["eps"]
        prior = of(str(p1))
        ours, printed = PriorBinary(COIN, prior, epsilon), one_sided_as_printed(COIN, prior, epsilon)
        symmetric = PriorSymmetric(COIN, prior, epsilon)
        assert (ours.matrix()[0, 1], ours.matrix()[1, 0]) == (close(case["q0"]), close(case["q1"]))
        assert (1 - p1) * ours.matrix()[0, 0] + p1 * ours.matrix()[1, 0] == close(case["lambda0"])
        assert information_privacy.optimal_mse(p1, epsilon) == close(case["mse"])
        assert information_privacy.mmse(ours, prior) == close(case["mse"])
        low, high = information_privacy.posterior_range(p1, epsilon)
        assert (low, high) == (close(case["EX_given_Y0"]), close(case["EX_given_Y1"]))
        assert level(ours, sf.Prior(COIN, prior, 0)) == pytest.approx(case["lip_level"], abs=1e-9)
        assert level(ours, sf.Uniform(COIN, 0)) == pytest.approx(case["ldp_level"], abs=1e-9)
        assert (printed.matrix()[0, 1], printed.matrix()[1, 0]) == (
            close(case["published_q0"]),
            close(case["published_q1"]),
        )
        assert information_privacy.printed_mse(p1, epsilon) == close(case["published_mse_19"])
        assert level(printed, sf.Prior(COIN, prior, 0)) == pytest.approx(case["published_true_lip_level"], abs=1e-9)
        assert level(printed, sf.Uniform(COIN, 0)) == pytest.approx(case["published_true_ldp_level"], abs=1e-9)
        assert information_privacy.optimal_ldp_mse(p1, epsilon) == close(case["opt_ldp_mse_20"])
        assert information_privacy.mmse(RandomizedResponse(COIN, epsilon), prior) == close(case["opt_ldp_mse_20"])
        assert symmetric.matrix()[0, 1] == close(case["sym_q"])
        assert information_privacy.symmetric_mse(p1, epsilon) == close(case["sym_mse"])
        assert information_privacy.mmse(symmetric, prior) == close(case["sym_mse"])


def test_the_baselines_are_reproduced() -> None:
    for case in reference("lip_contextfree_24_25"):
        count = information_privacy.context_free_count(case["sumY"], case["N"], case["eps"])
        assert count == pytest.approx(case["estimate"], rel=1e-11)
        assert case["N"] * information_privacy.context_free_mse(case["eps"]) == pytest.approx(
            case["variance"], rel=1e-11
        )
    for case in reference("lip_example1"):
        n, p1, epsilon = case["N"], case["P1"], case["eps"]
        assert n * information_privacy.context_free_mse(epsilon) == pytest.approx(case["E_LDP"], rel=1e-11)
        assert n * information_privacy.optimal_mse(p1, epsilon) == pytest.approx(case["E_LIP_true"], rel=1e-11)
        assert n * information_privacy.optimal_ldp_mse(p1, epsilon) == pytest.approx(case["E_OptLDP_mmse"], rel=1e-11)


def test_example_1_corrected() -> None:
    """Errata L6: the asymmetric parameters of Wang et al. at ε = 1, all ones, all zeros, and one in ten."""
    found = 100 * information_privacy.context_free_asymmetric_mse([1, 0, 0.1], 1)
    assert found == pytest.approx([250.265, 150.265, 160.265], abs=5e-3)
    assert (found > 100 * information_privacy.context_free_mse(1)).all()


def test_the_count_is_unbiased_and_the_printed_one_is_not() -> None:
    """Errata L3: with the printed p the estimate of 10 in 100 is 90."""
    flip = 1 / (math.e + 1)
    expected_ones = 10 * (1 - flip) + 90 * flip
    assert information_privacy.context_free_count(expected_ones, 100, 1) == pytest.approx(10)
    printed = (expected_ones - 100 * (1 - flip)) / (1 - 2 * (1 - flip))
    assert printed == pytest.approx(90)


# -- nothing is better ---------------------------------------------------------------------------------------


def error_of(q0: float, q1: float, p1: float) -> float:
    """Eq. 16: the error of the channel with these two flips."""
    ones = (1 - p1) * q0 + p1 * (1 - q1)
    if ones <= 0 or ones >= 1:
        return p1 * (1 - p1)
    return p1 * (1 - p1) - (p1 * (1 - ones - q1)) ** 2 / (ones * (1 - ones))


def least_error_at_a_vertex(p1: float, t: float) -> float:
    """The error is concave in (q0, q1), so it is least at a corner of the polygon of Definition 3, eq. 17."""
    p0 = 1 - p1
    # Each report's likelihood for each value, and its law, as a·q0 + b·q1 + c.
    likelihoods = [(-1, 0, 1), (0, 1, 0), (1, 0, 0), (0, -1, 1)]
    laws = [(-p0, p1, p0)] * 2 + [(p0, -p1, p1)] * 2
    halves = [(1, 0, 0), (0, 1, 0), (-1, 0, 1), (0, -1, 1)]  # all at least zero
    for own, law in zip(likelihoods, laws, strict=True):
        halves.append(tuple(t * m - x for m, x in zip(law, own, strict=True)))  # type: ignore[arg-type]
        halves.append(tuple(t * x - m for m, x in zip(law, own, strict=True)))  # type: ignore[arg-type]
    lines = np.array(halves)
    best = math.inf
    for one, two in itertools.combinations(lines, 2):
        determinant = one[0] * two[1] - one[1] * two[0]
        if abs(determinant) < 1e-14:
            continue
        q0 = (one[1] * two[2] - two[1] * one[2]) / determinant
        q1 = (two[0] * one[2] - one[0] * two[2]) / determinant
        if (lines @ (q0, q1, 1) >= -1e-12).all():
            best = min(best, error_of(q0, q1, p1))
    return best


def least_error_of_any_number_of_reports(p1: float, t: float) -> float:
    """A linear program over the laws of the posterior: every point that Definition 3 allows, on a grid."""

    def allowed(r: float) -> bool:
        return p1 / t <= r <= p1 * t and (1 - p1) / t <= 1 - r <= (1 - p1) * t

    def end(outside: float) -> float:
        inside = p1
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if allowed(middle) else (inside, middle)
        return inside

    # E[r(1-r)] = P0P1 - E[(r-P1)²], in units of the interval's length: the solver's tolerance is then small enough.
    low, high = end(0.0), end(1.0)
    grid = (np.linspace(low, high, 101) - p1) / (high - low)
    found = linprog(-(grid**2), A_eq=[np.ones_like(grid), grid], b_eq=[1, 0], method="highs")
    assert found.status == 0
    return p1 * (1 - p1) + (high - low) ** 2 * float(found.fun)


@pytest.mark.slow
def test_the_error_is_the_least_there_is_at_random_points(is_soak: bool) -> None:
    generator = np.random.default_rng(5)
    regimes = set()
    for _ in range(500 if is_soak else 100):
        p1 = float(generator.choice([generator.random(), generator.random() ** 6, 1 - generator.random() ** 6]))
        epsilon = float(np.exp(generator.uniform(math.log(0.01), math.log(8))))
        t = math.exp(epsilon)
        regimes.add((p1 < 1 / (t + 1), p1 > t / (t + 1)))
        exact = of(repr(p1))
        found = information_privacy.mmse(PriorBinary(COIN, exact, epsilon), exact)
        assert found == pytest.approx(float(information_privacy.optimal_mse(p1, epsilon)), abs=1e-12)
        assert found == pytest.approx(least_error_at_a_vertex(p1, t), abs=1e-9)
        assert found == pytest.approx(least_error_of_any_number_of_reports(p1, t), abs=1e-9)
    assert len(regimes) == 3


@pytest.mark.slow
def test_no_channel_within_the_policy_tells_more() -> None:
    """Random channels of up to four outputs, mixed until they just obey: less information, more error."""
    generator = np.random.default_rng(8)
    reached = 0.0
    for _ in range(300):
        p1, epsilon = float(generator.random()), float(generator.choice([0.1, 1, 3]))
        prior = np.array([1 - p1, p1])
        rows = generator.dirichlet(np.full(int(generator.integers(2, 5)), 0.3), size=2)
        average = prior @ rows
        over, under = (rows / average - 1) / (math.exp(epsilon) - 1), (1 - rows / average) / (1 - math.exp(-epsilon))
        channel = average + (rows - average) / max(over.max(), under.max(), 1.0)
        best = PriorBinary(COIN, of(repr(p1)), epsilon)
        posterior = p1 * channel[1] / average
        told, most = p1 * (1 - p1) - float(average @ (posterior * (1 - posterior))), p1 * (1 - p1)
        limit = most - information_privacy.mmse(best, of(repr(p1)))
        assert told <= limit + 1e-12
        reached = max(reached, told / limit)
        information = float(np.sum(prior[:, None] * channel * np.log(np.maximum(channel, 1e-300) / average)))
        assert information <= best.channel().mutual_information(of(repr(p1))) + 1e-12
    assert reached > 0.9


def test_the_models_are_ordered_as_they_must_be() -> None:
    """E_LIP ≤ E_Sym ≤ E_LDP at every ε, and ε/2-LIP never beats ε-LDP (errata L2: Theorem 1 forbids it)."""
    p1, epsilon = np.linspace(0, 1, 201)[:, None], np.linspace(0, 12, 121)[None, :]
    best, symmetric = information_privacy.optimal_mse(p1, epsilon), information_privacy.symmetric_mse(p1, epsilon)
    ldp = information_privacy.optimal_ldp_mse(p1, epsilon)
    assert (best <= symmetric + 1e-15).all()
    assert (symmetric <= ldp + 1e-15).all()
    assert (information_privacy.optimal_mse(p1, epsilon / 2) >= ldp - 1e-15).all()
    assert (
        information_privacy.printed_mse(p1, epsilon) <= best + 1e-15
    ).all()  # what it gains, it gains by breaking LIP
    assert (ldp <= information_privacy.context_free_mse(epsilon) + 1e-15).all()
    # Errata L7: the gap between LIP and LDP does not grow with |P1 - 1/2|.
    gaps = ldp[[100, 60, 40, 20, 2], 10] - best[[100, 60, 40, 20, 2], 10]
    assert gaps == pytest.approx([0.0465, 0.0449, 0.0198, 0.0028, 3e-6], abs=4e-4)
    assert (np.diff(gaps) < 0).all()


def test_levels_and_certainty_in_the_curves() -> None:
    for curve in (
        information_privacy.optimal_mse,
        information_privacy.symmetric_mse,
        information_privacy.optimal_ldp_mse,
    ):
        assert curve([0, 0.3, 1], 0) == pytest.approx([0, 0.21, 0])
        assert curve([0, 0.3, 1], math.inf) == pytest.approx([0, 0, 0])
    assert information_privacy.context_free_mse([0, math.inf]).tolist() == [math.inf, 0]
    for bad, culprit in (
        ((1.5, 1), "prior must lie in"),
        ((math.nan, 1), "prior must lie in"),
        ((0.5, -1), "epsilon must be at least 0"),
        ((0.5, math.nan), "epsilon must be at least 0"),
        (("x", 1), "be a number"),
    ):
        with pytest.raises(InvalidInput, match=culprit):
            information_privacy.optimal_mse(*bad)
    with pytest.raises(InvalidInput, match="above 0"):
        information_privacy.context_free_count(1, 2, 0)


# -- estimates, and a prior that is wrong ----------------------------------------------------------------------


@pytest.mark.parametrize("second", ["0.01", "1/2", "0.8"])
def test_the_estimate_is_unbiased_and_its_risk_exact(second: str) -> None:
    """By enumeration of all sequences of two reports."""
    mechanism, p = PriorBinary(COIN, of(second), 1), np.array([0.3, 0.7])
    estimator, law = mechanism.estimator, p @ mechanism.matrix()
    mean, risk = np.zeros(2), 0.0
    for reports in itertools.product(range(2), repeat=2):
        estimate = estimator.frequencies(np.bincount(reports, minlength=2) / 2)
        probability = float(np.prod(law[list(reports)]))
        mean += probability * estimate
        risk += probability * float(np.sum((estimate - p) ** 2))
    assert mean == pytest.approx(p, rel=1e-9)
    assert mechanism.risk(2, p) == pytest.approx(risk, rel=1e-9)


def enumerated_error(mechanism: Mechanism, assumed: list[float], true: list[float], n: int) -> tuple[float, float]:
    """Bias and mean square error of the sum over n users, over all their values and reports."""
    matrix: npt.NDArray[np.float64] = mechanism.matrix()
    guess = [assumed[1] * matrix[1, y] / sum(assumed[x] * matrix[x, y] for x in range(2)) for y in range(2)]
    bias = square = 0.0
    for values in itertools.product(range(2), repeat=n):
        for reports in itertools.product(range(2), repeat=n):
            probability = math.prod(true[x] * matrix[x, y] for x, y in zip(values, reports, strict=True))
            error = sum(guess[y] for y in reports) - sum(values)
            bias += probability * error
            square += probability * error**2
    return bias, square


@pytest.mark.parametrize("true", [[0.9, 0.1], [0.8, 0.2], [1.0, 0.0]])
def test_the_error_under_another_prior(true: list[float]) -> None:
    mechanism, assumed = PriorBinary(COIN, ["0.9", "0.1"], 1), [0.9, 0.1]
    found = information_privacy.estimate_error(mechanism, assumed, true)
    for n in (1, 3):
        bias, square = enumerated_error(mechanism, assumed, true, n)
        assert n * found.bias == pytest.approx(bias, abs=1e-14)
        assert found.mse(n) == pytest.approx(square, rel=1e-12)
    assert (abs(found.bias) < 1e-15) == (true == assumed)


def test_the_error_of_other_numbers_and_more_values() -> None:
    domain = sf.Domain.range(3)
    mechanism, prior, numbers = RandomizedResponse(domain, 1), np.array([0.5, 0.3, 0.2]), np.array([2.0, -1.0, 10.0])
    joint = prior[:, None] * mechanism.matrix()
    means = (numbers @ joint) / joint.sum(axis=0)
    expected = float(prior @ numbers**2) - float(joint.sum(axis=0) @ means**2)
    assert information_privacy.mmse(mechanism, prior, numbers.tolist()) == pytest.approx(expected)
    clear = RandomizedResponse(domain, "inf")
    # A report that the assumed prior calls impossible leaves the estimate at its mean.
    assert information_privacy.estimate_error(clear, [1, 0, 0], [0, 0, 1]).bias == pytest.approx(-2)
    for given, culprit in (([0.5, 0.5], "have 3 entries"), ([0.5, 0.5, 0.5], "sum to one"), ([2, 0, -1], "lie in")):
        with pytest.raises(InvalidInput, match=culprit):
            information_privacy.mmse(mechanism, given)
    with pytest.raises(InvalidInput, match="3 finite numbers"):
        information_privacy.mmse(mechanism, prior, [1, 2])


# -- how it is found, and what is refused ------------------------------------------------------------------------


def test_plan_and_design_offer_it() -> None:
    policy = sf.Prior(COIN, ["0.9", "0.1"], 1)
    plan = sf.plan(policy, n=1000)
    # A solver's table may stand beside it in the plan; it cannot be better.
    first, *others = [row.name for row in plan.rows if row.name != "optimal"][:3]
    assert first == "prior-binary"
    assert sorted(others) == ["prior-symmetric", "rr"]  # equal to nine digits
    assert plan.best.risk == pytest.approx(binary_for_policy(policy).risk(1000), rel=1e-9)
    assert sf.design(policy, 1000, mechanism="prior-binary") == binary_for_policy(policy)
    assert sf.design(policy, 1000, mechanism="prior-symmetric") == PriorSymmetric(COIN, ["0.9", "0.1"], 1)
    one_sided = sf.Prior(COIN, ["0.9", "0.1"], 1, "upper")
    assert {row.name for row in sf.plan(one_sided, n=1000).rows} & {"prior-binary", "prior-symmetric"} == {
        "prior-binary"
    }
    assert sf.audit(sf.design(one_sided, 1000), one_sided).holds


@pytest.mark.parametrize(
    ("build", "culprit"),
    [
        (lambda: PriorBinary(sf.Domain.range(3), ["1/3"] * 3, 1), "domain must have exactly two values; got 3 values"),
        (
            lambda: PriorSymmetric(sf.Domain.range(3), ["1/3"] * 3, 1),
            "domain must have exactly two values; got 3 values",
        ),
        (lambda: PriorBinary(COIN, ["1/2", "1/3"], 1), "Prior: prior must sum to one"),
        (lambda: PriorBinary(COIN, ["3/2", "-1/2"], 1), "prior of 'no' must lie in"),
        (lambda: PriorBinary(COIN, [1], 1), "have 2 entries"),
        (lambda: PriorBinary(COIN, [0.5, 0.5], -1), "epsilon must be at least 0"),
        (lambda: PriorBinary(COIN, [0.5, 0.5], 1, "left"), "side must be one of both, upper, lower"),
        (
            lambda: binary_for_policy(sf.Prior(sf.Domain.range(3), ["1/3"] * 3, 1)),
            "binary_for_policy: domain must have exactly two values",
        ),
    ],
)
def test_bad_parameters_are_refused_by_name(build: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        build()


def test_a_spec_that_states_more_than_it_keeps_is_caught_by_the_audit() -> None:
    honest = PriorBinary(COIN, ["0.9", "0.1"], 1)
    stated = PriorBinary(COIN, ["0.9", "0.1"], "0.5").provenance
    lying = TableMechanism(COIN, honest.weights, provenance=stated)
    assert not sf.audit(lying, sf.Prior(COIN, ["0.9", "0.1"], "0.5")).holds


def test_equal_levels_are_those_of_the_binary_optimum() -> None:
    """A prior policy over two values is one on pairs: its edges, as levels, give the same law."""
    mechanism = PriorBinary(COIN, ["1/2", "1/2"], "ln 2")  # T_x between a half and twice the average: ratio 3
    np.testing.assert_array_equal(mechanism.weights, BinaryOptimal(COIN, "ln 3", "ln 3").weights)
