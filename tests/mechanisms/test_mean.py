"""Mechanisms for a mean: exact laws, unbiased scores, certified bounds, the policies they obey, and bad specs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato._core.exact import Epsilon
from sfumato.auditing.audits import stated_columns
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.mechanisms import CandidateRequest, NotIdentifiable, OneBit, ShiftedBins, TruncatedGeometric
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.base import HistogramEstimator
from sfumato.mechanisms.estimators.matrix import MatrixEstimator, efficient_estimator
from sfumato.mechanisms.mean import MEAN
from sfumato.mechanisms.mean.positions import LARGEST_POSITION, integer_positions
from sfumato.mechanisms.mixture import ONE
from sfumato.mechanisms.registry import estimator_for
from sfumato.policy import PairwisePolicy, Policy
from sfumato.testing import MechanismContract

R = sf.Domain.range
Floats = npt.NDArray[np.float64]


def uniform(size: int) -> Floats:
    return np.full(size, 1 / size)


def some_distribution(size: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(size))


def histogram_estimator(mechanism: Mechanism) -> HistogramEstimator:
    estimator = mechanism.estimator
    assert isinstance(estimator, HistogramEstimator)
    return estimator


def check_blind(mechanism: Mechanism) -> None:
    with pytest.raises(NotIdentifiable):
        estimator_for(mechanism)


def expectation(mechanism: Mechanism, scores: Sequence[Fraction], x: int) -> Fraction:
    """The exact mean score of a value."""
    reports = mechanism.reports()
    return sum((mechanism.probability(y, x) * scores[place] for place, y in enumerate(reports)), Fraction(0))


# -- the contract --------------------------------------------------------------------------------------------------


class TestOneBit(MechanismContract):
    cases = 40

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> OneBit:
        return OneBit(domain, epsilon)


class TestOneBitWithPositions(MechanismContract):
    cases = 20
    sizes = range(3, 7)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> OneBit:
        generator = random.Random(f"{len(domain)} {epsilon}")
        return OneBit(domain, epsilon, positions=[0, *generator.sample(range(1, 100), len(domain) - 1)])


class TestShiftedBins(MechanismContract):
    cases = 40
    sizes = range(3, 9)

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> ShiftedBins:
        generator = random.Random(f"{len(domain)} {epsilon}")
        return ShiftedBins(domain, epsilon, width=generator.choice([None, *range(2, len(domain))]))


class TestTruncatedGeometric(MechanismContract):
    cases = 40

    def make(self, domain: sf.Domain, epsilon: Epsilon) -> TruncatedGeometric:
        return TruncatedGeometric(domain, epsilon)

    def policy(self, domain: sf.Domain, epsilon: Epsilon) -> Policy:
        return sf.Metric(domain, "absolute", epsilon)


# -- one bit -------------------------------------------------------------------------------------------------------


def test_positions_are_the_numbers_on_the_coarsest_integer_scale() -> None:
    assert integer_positions([17, 18, 20]) == [0, 1, 3]
    assert integer_positions([0.5, -0.25, 2.25]) == [3, 0, 10]
    assert integer_positions([0.1, 0.2, 0.4]) == [0, 1, 3]
    assert integer_positions(["1/3", "1/2"]) == [0, 1]
    assert integer_positions([4, 4]) == [0, 0]
    rounded = integer_positions([0.0, np.pi, 10.0])
    assert (rounded[0], rounded[2]) == (0, LARGEST_POSITION)
    assert rounded[1] == pytest.approx(LARGEST_POSITION * np.pi / 10, abs=1)


@pytest.mark.parametrize("numbers", [[2, 3, 5, 7], ["1/3", "-1/2", "1/7", 1], [0.1, 0.25, -3.5, 1e3]])
def test_one_bit_is_exactly_unbiased(numbers: list[Any]) -> None:
    mechanism = OneBit.for_policy(sf.Uniform(R(4), "0.7"), numbers)
    exact = [Fraction(str(number)) for number in numbers]
    low, span = min(exact), max(exact) - min(exact)
    scale = span / mechanism.greatest_position
    scores = [low + scale * Fraction(ONE * bit - mechanism.base, mechanism.step_size) for bit in (0, 1)]
    assert [expectation(mechanism, scores, x) for x in range(4)] == exact
    of_outputs = histogram_estimator(mechanism).output_scores(np.array(list(map(float, exact))))
    np.testing.assert_allclose(of_outputs, np.array(list(map(float, scores))), rtol=1e-12)


def test_one_bit_identifies_means_of_its_positions_only() -> None:
    mechanism = OneBit(R(6), 1, positions=[0, 5, 1, 9, 9, 2])
    estimator, p = histogram_estimator(mechanism), some_distribution(6)
    weights = 3 - 2 * mechanism.positions.astype(np.float64)
    law, scores = p @ mechanism.matrix(), estimator.output_scores(weights)
    assert law @ scores == pytest.approx(weights @ p)
    assert estimator.variance(weights, p) == pytest.approx(law @ scores**2 - (weights @ p) ** 2)
    assert estimator.identifies(np.array([weights, np.ones(6)]))
    assert not estimator.is_complete
    assert not estimator.identifies(weights**2)
    assert not estimator.identifies(np.eye(6)[0])
    with pytest.raises(NotIdentifiable):
        estimator.variance(weights**2, p)
    with pytest.raises(NotIdentifiable):
        estimator.frequencies(law)
    assert mechanism.risk(1) == np.inf
    assert not OneBit(R(5), 0).estimator.identifies(np.arange(5.0))
    assert OneBit(R(2), 1).estimator.is_complete
    many = OneBit(R(100_000), 1).estimator
    assert many.variance(np.arange(1e5), uniform(100_000)) == pytest.approx((99_999 / np.tanh(0.5)) ** 2 / 4)


def test_one_bit_is_minimax() -> None:
    # With half of the people at each end, scores X and likelihoods v₀ + v₁ = 2 of a report, unbiasedness is
    # E[X·(v₁ - v₀)] = C, and ε-LDP is |v₁ - v₀| ≤ 2τ. So Var(X) ≥ C²/(4τ²), which one bit attains as its worst case.
    size, epsilon = 9, 1.3
    mechanism, weights = OneBit(R(size), epsilon), np.arange(float(size))
    bound = ((size - 1) / np.tanh(epsilon / 2)) ** 2 / 4
    ends = np.zeros(size)
    ends[[0, -1]] = 0.5
    assert mechanism.estimator.variance(weights, ends) == pytest.approx(bound, rel=1e-12)
    for seed in range(50):
        assert mechanism.estimator.variance(weights, some_distribution(size, seed)) <= bound * (1 + 1e-12)
    # No other mechanism of the library has less at the two ends.
    for other in (
        ShiftedBins(R(size), epsilon),
        ShiftedBins(R(size), epsilon, width=4),
        sf.mechanisms.RandomizedResponse(R(size), epsilon),
        sf.mechanisms.SubsetSelection(R(size), epsilon),
    ):
        assert other.estimator.variance(weights, ends) > bound
        assert MatrixEstimator.of(other, 0.999 * ends + 0.001 * uniform(size)).variance(weights, ends) > bound * 0.99


def random_policies() -> list[PairwisePolicy]:
    generator = random.Random(5)
    matrix = [["0" if x == y else f"{generator.randint(1, 40)}/10" for y in range(5)] for x in range(5)]
    return [
        sf.Metric(R(5), "absolute", "0.3"),
        sf.Metric(sf.Domain([0.0, 1.0, 2.5, 9.0, 4.0]), "absolute", "ln 2"),
        sf.HighLow(R(5), [1, 2], 1),
        sf.Blocks(R(5), "aabbb", 1, 2),
        sf.Pairwise(R(5), matrix),
        sf.PerValue(R(5), ["0.5", "inf", "1", "2", "ln 3"]),
    ]


@pytest.mark.parametrize("policy", random_policies(), ids=lambda policy: policy.kind)
@pytest.mark.parametrize("numbers", [None, [0, 1, 2.5, 9, 4], [3, -1, -2, 0, 8]])
def test_one_bit_has_the_greatest_step_that_a_policy_allows(policy: PairwisePolicy, numbers: Any) -> None:
    mechanism = OneBit.for_policy(policy, numbers)
    assert sf.audit(mechanism, policy).holds
    larger = {**mechanism.parameters(), "step": str(mechanism.step_size + 2)}
    if mechanism.base > mechanism.greatest_position:
        assert not sf.audit(OneBit.from_parameters(policy.domain, larger), policy).holds
    level = mechanism.classical_epsilon()
    assert level is not None
    assert sf.audit(mechanism, sf.Uniform(policy.domain, level)).holds


@pytest.mark.parametrize(("least", "greatest"), [(-15.0, -12.0), (-6.0, 2.9)], ids=["tiny", "wide"])
def test_one_bit_obeys_levels_that_differ_by_orders_of_magnitude(least: float, greatest: float) -> None:
    # e^ε - 1 has no correct digit in doubles for the least levels, and e^ε times a position overflows for the greatest.
    generator = np.random.default_rng(0)
    for _ in range(60):
        size = int(generator.integers(2, 9))
        levels = 10 ** generator.uniform(least, greatest, (size, size))
        np.fill_diagonal(levels, 0)
        policy = sf.Pairwise(R(size), levels)
        numbers = generator.choice(99, size, replace=False).astype(np.float64)
        assert sf.audit(OneBit.for_policy(policy, numbers), policy).holds


def test_one_bit_needs_numbers_that_may_be_told_apart() -> None:
    merged = sf.Pairwise(R(3), {(0, 1): 0, (1, 0): 0})
    with pytest.raises(NoMechanism, match="equal reports"):
        OneBit.for_policy(merged)
    assert sf.audit(OneBit.for_policy(merged, [1, 1, 4]), merged).holds
    with pytest.raises(InvalidInput, match="pairs of values"):
        OneBit.for_policy(sf.Prior(R(2), ["1/2", "1/2"], 1))  # type: ignore[arg-type]
    many = sf.HighLow(R(5_000), [0, 7], "0.3")
    assert OneBit.for_policy(many) == OneBit(R(5_000), "0.3")
    assert OneBit(R(3), 1, step=0).classical_epsilon() == Epsilon(1)
    assert OneBit(R(3), 1, step=2**62).classical_epsilon() is None


def test_one_bit_over_many_values_is_audited_in_full() -> None:
    mechanism = OneBit(R(5_000), 1)
    assert sf.audit(mechanism, sf.Uniform(mechanism.domain, 1)).holds
    assert not sf.audit(mechanism, sf.Uniform(mechanism.domain, "0.999999999")).holds


# -- bins at a random offset ---------------------------------------------------------------------------------------

SIZES = [(3, 2), (5, 2), (7, 3), (7, 4), (8, 7), (9, 5)]


@pytest.mark.parametrize(("size", "width"), SIZES)
def test_the_scores_of_bins_are_the_least_squares_ones(size: int, width: int) -> None:
    mechanism = ShiftedBins(R(size), "1.2", width=width)
    expected, estimator = MatrixEstimator.of(mechanism), histogram_estimator(mechanism)
    p, generator = some_distribution(size), np.random.default_rng(2)
    weights, outputs = generator.normal(size=size), generator.random(mechanism.outputs)
    np.testing.assert_allclose(estimator.output_scores(weights), expected.output_scores(weights), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimator.adjoint(outputs), expected.adjoint(outputs), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimator.expected_counts(p), expected.expected_counts(p), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimator.frequencies(outputs), expected.frequencies(outputs), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimator.second_moments(), expected.second_moments(), rtol=1e-9)
    np.testing.assert_allclose(estimator.variances(p), expected.variances(p), rtol=1e-9)
    np.testing.assert_allclose(estimator.covariance(p), expected.covariance(p), rtol=1e-8, atol=1e-8)
    assert estimator.variance(weights, p) == pytest.approx(expected.variance(weights, p))
    assert efficient_estimator(mechanism) is estimator


@pytest.mark.parametrize(
    "mechanism",
    [
        *(ShiftedBins(R(size), "1.2", width=width) for size, width in SIZES),
        *(TruncatedGeometric(R(size), "0.4") for size in (2, 3, 7)),
    ],
    ids=repr,
)
def test_the_listed_scores_have_the_law_of_the_scores(mechanism: Mechanism) -> None:
    estimator, size = histogram_estimator(mechanism), len(mechanism.domain)
    values, at_value = estimator.score_values()
    p = some_distribution(size)
    score_of_output = np.array([estimator.output_scores(row) for row in np.eye(size)])
    matrix = mechanism.matrix()
    for probabilities, laws in ((at_value, matrix), (estimator.score_probabilities(p), np.tile(p @ matrix, (size, 1)))):
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        for power in (1, 2, 3):
            expected = (laws * score_of_output**power).sum(axis=1)
            np.testing.assert_allclose((probabilities * values**power).sum(axis=1), expected, rtol=1e-8, atol=1e-8)
    low, high = estimator.score_bounds()
    np.testing.assert_allclose(low, score_of_output.min(axis=1), atol=1e-8)
    np.testing.assert_allclose(high, score_of_output.max(axis=1), atol=1e-8)


def test_bins_are_exactly_unbiased_for_any_weights() -> None:
    # Within an offset, scores differ by (w_(b+1) - w_b)/(π·γ) across boundary b; a constant is added to all of them.
    mechanism, weights = ShiftedBins(R(7), 1, width=4), [Fraction(w) for w in (3, -1, 4, 1, 5, -9, 2)]
    scores = [Fraction(0)] * mechanism.outputs
    for b in range(6):
        part = int(b % 4 >= mechanism.first_offsets)
        chance = mechanism.probabilities[part] * mechanism.bins[part] / mechanism.parts[part].outputs
        difference = (weights[b + 1] - weights[b]) / (chance * mechanism.parts[part].gamma)
        scores[b + 4] = scores[b] + difference
    means = [expectation(mechanism, scores, x) for x in range(7)]
    assert len({mean - weight for mean, weight in zip(means, weights, strict=True)}) == 1


def test_widths_and_shares_are_the_best_ones() -> None:
    def variance(mechanism: ShiftedBins) -> float:
        size = len(mechanism.domain)
        return mechanism.estimator.variance(np.arange(float(size)), uniform(size))

    for size, epsilon in itertools.product((6, 15), ("0.5", "1", "2", "5")):
        chosen = ShiftedBins(R(size), epsilon)
        best = min(variance(ShiftedBins(R(size), epsilon, width=width)) for width in range(2, size))
        assert variance(chosen) == pytest.approx(best, rel=1e-12)
        for change in (ONE // 50, -ONE // 50):
            if 0 < chosen.share + change < ONE and chosen.first_offsets:
                assert variance(ShiftedBins(R(size), epsilon, width=chosen.width, share=chosen.share + change)) > best
    squares = np.arange(12.0) ** 2
    chosen = ShiftedBins.for_numbers(R(12), 1, squares)
    others = [ShiftedBins(R(12), 1, width=width).estimator for width in range(2, 12)]
    assert chosen.estimator.variance(squares, uniform(12)) <= min(e.variance(squares, uniform(12)) for e in others)


def test_bins_keep_epsilon_or_say_that_they_do_not() -> None:
    mechanism = ShiftedBins(R(10), 1, width=4)
    assert mechanism.bins == (4, 3)
    assert mechanism.classical_epsilon() == Epsilon(1)
    louder = ShiftedBins(R(10), 1, width=4, thresholds=[mechanism.thresholds[0] + 1, mechanism.thresholds[1]])
    assert louder.classical_epsilon() is None
    assert not sf.audit(louder, sf.Uniform(R(10), 1)).holds
    # A pair of neighbours is separated by one offset only, so a policy may bind in one class alone.
    policy = sf.Pairwise(R(10), {(0, 1): 1})
    assert sf.audit(mechanism, policy).holds
    assert len(list(stated_columns(mechanism, policy))) == mechanism.outputs
    assert len(list(stated_columns(mechanism, sf.Uniform(R(10), 1)))) == 1
    for broken in (ShiftedBins(R(10), 1, width=4, share=0), ShiftedBins(R(10), 0, width=4)):
        check_blind(broken)


def test_many_values_are_audited_by_few_columns() -> None:
    bins = ShiftedBins(R(800), 1)
    assert sf.audit(bins, sf.Uniform(bins.domain, 1)).holds
    assert not sf.audit(bins, sf.Uniform(bins.domain, "0.999999999")).holds
    line = sf.Metric(R(300), "absolute", "0.01")
    noise = TruncatedGeometric.for_policy(line)
    assert sf.audit(noise, line).holds
    assert not sf.audit(noise, sf.Metric(R(300), "absolute", "0.00999999999")).holds


# -- geometric noise -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 4, 9])
def test_the_estimator_inverts_the_law_of_the_noise(size: int) -> None:
    mechanism = TruncatedGeometric(R(size), "0.37")
    expected, estimator = MatrixEstimator.of(mechanism), histogram_estimator(mechanism)
    p = some_distribution(size)
    generator = np.random.default_rng(2)
    weights, outputs = generator.normal(size=size), generator.random(size)
    np.testing.assert_allclose(estimator.output_scores(weights), expected.output_scores(weights), rtol=1e-8)
    np.testing.assert_allclose(estimator.adjoint(outputs), expected.adjoint(outputs), rtol=1e-9)
    np.testing.assert_allclose(estimator.expected_counts(p), expected.expected_counts(p), rtol=1e-9)
    np.testing.assert_allclose(estimator.frequencies(outputs), expected.frequencies(outputs), rtol=1e-8)
    np.testing.assert_allclose(estimator.second_moments(), expected.second_moments(), rtol=1e-8)
    np.testing.assert_allclose(estimator.variances(p), expected.variances(p), rtol=1e-8)
    np.testing.assert_allclose(estimator.covariance(p), expected.covariance(p), rtol=1e-7, atol=1e-7)
    assert estimator.variance(weights, p) == pytest.approx(expected.variance(weights, p))


@pytest.mark.parametrize(("size", "epsilon"), [(300, "0.01"), (300, "1"), (40, "5"), (300, "0.0001")])
def test_the_bias_of_noise_is_below_the_rounding_of_doubles(size: int, epsilon: str) -> None:
    mechanism = TruncatedGeometric(R(size), epsilon)
    ratio = Fraction(mechanism.ratio, ONE)
    beyond = ratio / (1 - ratio)
    scores = [-beyond, *map(Fraction, range(1, size - 1)), size - 1 + beyond]
    for x in (0, 1, size // 2, size - 1):
        assert abs(expectation(mechanism, scores, x) - x) < Fraction(size, 10**12) * (1 + beyond / size)
    of_outputs = histogram_estimator(mechanism).output_scores(np.arange(float(size)))
    np.testing.assert_allclose(of_outputs, np.array(list(map(float, scores))), rtol=1e-12, atol=1e-12)


def test_noise_at_the_extreme_levels() -> None:
    assert TruncatedGeometric(R(4), "inf").matrix().tolist() == np.eye(4).tolist()
    assert TruncatedGeometric(R(4), 0).matrix().tolist() == [[0.5, 0, 0, 0.5]] * 4
    check_blind(TruncatedGeometric(R(4), 0))
    tiny = TruncatedGeometric(R(4), "1e-18")
    assert sf.audit(tiny, sf.Metric(R(4), "absolute", "1e-18")).holds
    louder = TruncatedGeometric(R(4), 1, ratio=TruncatedGeometric(R(4), "1.1").ratio)
    assert louder.classical_epsilon() is None
    assert TruncatedGeometric(R(4), 1).classical_epsilon() == Epsilon(3)


def test_noise_is_for_equal_steps_on_a_line() -> None:
    policy = sf.Metric(sf.Domain([-0.5, 0.0, 0.5, 1.0]), "absolute", "3")
    mechanism = TruncatedGeometric.for_policy(policy)
    assert mechanism.epsilon == Epsilon("1.5")
    assert sf.audit(mechanism, policy).holds
    for other in (
        sf.Metric(sf.Domain([0, 1, 3]), "absolute", 1),
        sf.Metric(sf.Domain([0, 2, 1]), "absolute", 1),
        sf.Metric(R(3), "discrete", 1),
        sf.Uniform(R(3), 1),
    ):
        with pytest.raises(InvalidInput, match="equally spaced"):
            TruncatedGeometric.for_policy(other)
    # On a circle, values on both sides of a report may be close, so the short list of columns does not apply.
    circle = sf.Metric(R(6), lambda a, b: min(abs(a - b), 6 - abs(a - b)), 1)
    assert len(list(stated_columns(TruncatedGeometric(R(6), 1), circle))) == 6
    assert not sf.audit(TruncatedGeometric(R(6), 1), circle).holds


# -- how far from the bound ----------------------------------------------------------------------------------------

#: First halves of vectors n (antisymmetric) and λ (symmetric), from column generation. Any numbers give a valid bound.
BINS_CERTIFICATES: dict[str, tuple[list[float], list[float]]] = {
    "0.5": (
        [-60.1184, -0.3827, -0.3219, -0.2621, -0.2031, -0.1447, -0.0866, -0.0289],
        [852.096, -56.806, -56.806, -56.806, -56.806, -56.806, -56.806, -56.806],
    ),
    "1": (
        [-14.6403, -0.7017, -0.6399, -0.4109, -0.201, -0.1421, -0.0847, -0.0281],
        [191.452, 0.356, -0.995, -8.946, -15.156, -15.156, -15.155, -15.156],
    ),
    "2": (
        [-3.146, -0.4973, -0.4259, -0.3626, -0.3041, -0.2485, -0.1944, -0.1449],
        [34.897, 1.961, 0.983, 0.183, -0.494, -1.079, -1.593, -1.98],
    ),
    "4": (
        [-0.7837, -0.4224, -0.3666, -0.3228, -0.2715, -0.1757, -0.1095, -0.0357],
        [7.057, 2.559, 1.872, 1.376, 0.807, 0.245, -0.058, -0.197],
    ),
}
LINE_CERTIFICATES: dict[str, tuple[list[float], list[float]]] = {
    "0.05": (
        [-164.5754, 147.426, -0.9641, -0.0264, -0.4534, -0.0524],
        [4818.975, -4513.046, -11.658, -17.64, -15.63, -17.079],
    ),
    "0.2": ([-7.2544, 3.915, -0.4324, -0.3553, -0.1966, -0.0552], [101.293, -69.087, -0.613, -1.46, -2.441, -2.828]),
    "1": ([-0.613, -0.3584, -0.2967, -0.2097, -0.1252, -0.0417], [4.196, 1.326, 0.912, 0.379, 0.037, -0.13]),
    "2": ([-0.486, -0.3728, -0.2904, -0.2073, -0.1244, -0.0415], [2.812, 1.635, 0.982, 0.486, 0.156, -0.009]),
}


def lower_bound(certificate: tuple[list[float], list[float]], rays: Floats) -> float:
    """Bound on the variance of the mean index at the uniform distribution, from all extreme rays of a policy's cone.

    For likelihoods v with mean one, the bound is 2·c·n - Σλ - max over v of (n·v)² - λ·v, which is convex in v.
    """
    half, symmetric = map(np.array, certificate)
    n, multipliers = np.concatenate([half, -half[::-1]]), np.concatenate([symmetric, symmetric[::-1]])
    size = len(n)
    centred = np.arange(size) - (size - 1) / 2
    likelihoods = rays / rays.mean(axis=1, keepdims=True)
    return float(2 * centred @ n - multipliers.sum() - np.max((likelihoods @ n) ** 2 - likelihoods @ multipliers))


@pytest.mark.parametrize("epsilon", BINS_CERTIFICATES)
def test_no_mechanism_beats_bins_by_much_at_one_level_for_all_pairs(epsilon: str) -> None:
    sets = (np.arange(2**16)[:, None] >> np.arange(16)) & 1
    bound = lower_bound(BINS_CERTIFICATES[epsilon], 1 + np.expm1(float(epsilon)) * sets)
    weights = np.arange(16.0)
    variance = ShiftedBins(R(16), epsilon).estimator.variance(weights, uniform(16))
    assert 1 <= variance / bound < 1.001
    if float(epsilon) >= 1:
        assert OneBit(R(16), epsilon).estimator.variance(weights, uniform(16)) / bound > 1.08


@pytest.mark.parametrize("epsilon", LINE_CERTIFICATES)
def test_no_mechanism_beats_geometric_noise_by_much_on_a_line(epsilon: str) -> None:
    # An extreme ray rises or falls by e^ε from each value to the next.
    directions = 2 * ((np.arange(2**11)[:, None] >> np.arange(11)) & 1) - 1
    logs = np.hstack([np.zeros((2**11, 1)), np.cumsum(directions, axis=1)])
    bound = lower_bound(LINE_CERTIFICATES[epsilon], np.exp(float(epsilon) * logs))
    variance = TruncatedGeometric(R(12), epsilon).estimator.variance(np.arange(12.0), uniform(12))
    assert 1 <= variance / bound < 1.001


# -- estimates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [OneBit(R(40), 1), ShiftedBins(R(40), 1), ShiftedBins(R(40), 3), TruncatedGeometric(R(40), "0.05")],
    ids=repr,
)
def test_the_mean_of_an_estimate_has_its_standard_error(mechanism: Mechanism) -> None:
    weights, n = np.arange(40.0), 20_000
    p = np.exp(-weights / 10) * (1 + np.sin(weights / 3) ** 2)
    p /= p.sum()
    estimator = histogram_estimator(mechanism)
    spread = np.sqrt(estimator.variance(weights, p) / n)
    generator = np.random.default_rng(4)
    for _ in range(3):
        counts = generator.multinomial(n, estimator.expected_counts(p))
        mean = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, n, counts)).mean()
        assert mean.value == pytest.approx(counts @ estimator.output_scores(weights) / n)
        assert mean.standard_error == pytest.approx(spread, rel=0.02)
        # Seven standard errors: false rejection below 1e-11, and fixed by the seed.
        assert abs(mean.value - weights @ p) < 7 * spread
        low, high = mean.interval(0.95)
        assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.03)


# -- candidates ----------------------------------------------------------------------------------------------------


def offered(policy: Policy, question: sf.Question | None) -> dict[str, Mechanism]:
    fitted = None if question is None else question.checked(policy.domain)
    epsilon = policy.least[0] if isinstance(policy, PairwisePolicy) else Epsilon(1)
    assert MEAN.candidates is not None
    request = CandidateRequest(policy, epsilon, question=fitted)
    return {name: candidate.build() for name, candidate in MEAN.candidates(request)}


def test_mechanisms_are_offered_for_questions_with_one_answer() -> None:
    ages = sf.Domain([17, 18, 19, 20, 21])
    line, high_low = sf.Metric(ages, "absolute", "0.2"), sf.HighLow(ages, [21], 1)
    expected = [
        (sf.Uniform(ages, 1), sf.Mean(), ["one-bit", "shifted-bins"]),
        (sf.Uniform(ages, 1), sf.Mean([5, 4, 3, 2, 0]), ["one-bit", "shifted-bins"]),
        (sf.Uniform(ages, 1), sf.Mean([0, 4, 1, 2, 3]), ["one-bit"]),
        (sf.Uniform(ages, 1), sf.Ranges([(18, 20)]), ["one-bit"]),
        (sf.Uniform(sf.Domain(["no", "yes"]), 1), sf.Mean([0, 1]), ["one-bit"]),
        (line, sf.Mean(), ["one-bit", "shifted-bins", "geometric"]),
        (sf.Metric(sf.Domain([1, 2, 4]), "absolute", 1), sf.Mean(), ["one-bit", "shifted-bins"]),
        (high_low, sf.Mean(), ["one-bit", "shifted-bins"]),
        (sf.Uniform(ages, 1), None, []),
        (sf.Uniform(ages, 1), sf.Frequencies(), []),
        (sf.Uniform(ages, 1), sf.Distribution(), []),
        (sf.Uniform(ages, 1), sf.Ranges([(17, 18), (19, 21)]), []),
        (sf.Prior(ages, ["1/5"] * 5, 1), sf.Mean(), ["one-bit", "shifted-bins"]),
    ]
    for policy, question, names in expected:
        mechanisms = offered(policy, question)
        assert list(mechanisms) == names, (policy, question)
        for mechanism in mechanisms.values():
            assert sf.audit(mechanism, policy).holds
            weights = question.checked(policy.domain).matrix()[0]  # type: ignore[union-attr]
            assert 0 < mechanism.estimator.variance(weights, uniform(len(policy.domain))) < np.inf


# -- bad parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: OneBit(R(1), 1), "at least two values"),
        (lambda: OneBit(R(3), 1, positions=[0, 1]), "3 integers"),
        (lambda: OneBit(R(3), 1, positions="012"), "3 integers"),
        (lambda: OneBit(R(3), 1, positions=[1, 2, 3]), "least equal to 0"),
        (lambda: OneBit(R(3), 1, positions=[0, 0, 0]), "least equal to 0"),
        (lambda: OneBit(R(3), 1, positions=[0, 1, 2**40 + 1]), "a position"),
        (lambda: OneBit(R(3), 1, step=3), "even"),
        (lambda: OneBit(R(3), 1, step=2**63), "step"),
        (lambda: ShiftedBins(R(2), 1), "at least three values"),
        (lambda: ShiftedBins(R(5), 1, width=5), "width"),
        (lambda: ShiftedBins(R(5), 1, width=1), "width"),
        (lambda: ShiftedBins(R(5), 1, width=4, share=1), "share"),
        (lambda: ShiftedBins(R(5), 1, width=3, thresholds=[1]), "thresholds"),
        (lambda: TruncatedGeometric(R(1), 1), "from 2 to 65536 values"),
        (lambda: TruncatedGeometric(R(2**16 + 1), 1), "from 2 to 65536 values"),
        (lambda: TruncatedGeometric(R(3), 1, ratio=-1), "ratio"),
    ],
)
def test_bad_parameters_are_rejected(build: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        build()


def test_positions_equal_to_the_indices_are_not_stored() -> None:
    plain = OneBit(R(4), 1)
    assert OneBit(R(4), 1, positions=np.arange(4)) == plain
    assert set(plain.parameters()) == {"epsilon", "step"}
    assert OneBit(R(4), 1, positions=[0, 1, 2, 4]).parameters()["positions"] == ["0", "1", "2", "4"]
