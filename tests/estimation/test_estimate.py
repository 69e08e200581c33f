"""The verb `estimate`: unbiased, with the covariance it states, by enumeration; optima by certificate; coverage."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st
from scipy import optimize, stats

import sfumato as sf
from sfumato._core.simplex import project_protected, project_to_simplex
from sfumato.collecting.aggregates import Aggregate
from sfumato.errors import InvalidInput, LimitExceeded, MissingExtra
from sfumato.estimation import LinearEstimate, MechanismEstimate
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.base import Estimator, HistogramEstimator
from sfumato.mechanisms.estimators.inclusion import InclusionEstimator
from sfumato.mechanisms.estimators.likelihood import fit_bit_counts, fit_histogram
from sfumato.mechanisms.estimators.limits import ScoreLaw, confidence_limits
from sfumato.mechanisms.estimators.mixture import MixtureEstimator
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.reports.bitmap import BitmapFormat
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse, walsh_hadamard
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

Floats = npt.NDArray[np.float64]
R = sf.Domain.range
METHODS = ("unbiased", "simplex", "mle")


def random_table(values: int, outputs: int, seed: int, *, unused: bool = False) -> TableMechanism:
    matrix = np.random.default_rng(seed).dirichlet(np.ones(outputs), values)
    if unused:
        matrix = np.insert(matrix, 1, 0.0, axis=1)
    return TableMechanism.from_matrix(R(values), matrix)


MECHANISMS: dict[str, Mechanism] = {
    "response of one value": RandomizedResponse(R(1), 1),
    "Warner": RandomizedResponse(R(2), "0.1"),
    "response": RandomizedResponse(R(5), 1),
    "response, little": RandomizedResponse(R(3), "0.01"),
    "response, everything": RandomizedResponse(R(4), "inf"),
    "unary": UnaryEncoding(R(4), 1),
    "unary of two": UnaryEncoding(R(2), 2),
    "unary, everything": UnaryEncoding(R(3), "inf"),
    "unary optimized": UnaryEncoding(R(4), 1, optimized=True),
    "unary optimized, everything": UnaryEncoding(R(3), "inf", optimized=True),
    "subset of one": SubsetSelection(R(4), 1, 1),
    "subset of two": SubsetSelection(R(5), 1, 2),
    "subset of all but one": SubsetSelection(R(4), "0.5", 3),
    "subset among two": SubsetSelection(R(2), 1, 1),
    "subset, everything": SubsetSelection(R(5), "inf", 2),
    "hadamard, one full block": HadamardResponse(R(3), 1, block_size=4),
    "hadamard, one ragged block": HadamardResponse(R(5), 1, block_size=8),
    "hadamard, two blocks": HadamardResponse(R(5), 2, block_size=4),
    "hadamard, a block a value": HadamardResponse(R(3), 4, block_size=2),
    "hadamard, an idle block": HadamardResponse(R(5), 1, block_size=4, blocks=3),
    "hadamard, everything": HadamardResponse(R(5), "inf", block_size=4, blocks=3),
    "cyclic, all residues": CyclicDesign(R(7), 1, design=CyclicDesign.singer(2, 1, 3)),
    "cyclic, some residues": CyclicDesign(R(4), 2, design=CyclicDesign.residues(7, 2)),
    "cyclic, everything": CyclicDesign(R(5), "inf", design=CyclicDesign.residues(5, 2)),
    "table, square": TableMechanism.from_matrix(R(4), RandomizedResponse(R(4), 1).matrix()),
    "table, wide": random_table(3, 7, 1),
    "table, an output never used": random_table(3, 4, 2, unused=True),
}
HISTOGRAMS = sorted(name for name, m in MECHANISMS.items() if isinstance(m.estimator, HistogramEstimator))
BITMAPS = sorted(name for name, m in MECHANISMS.items() if m.report_format.encoding == "bitmap")


@pytest.fixture(params=MECHANISMS, ids=lambda name: name.replace(", ", "-").replace(" ", "-"))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return MECHANISMS[request.param]


class Enumeration:
    """Everything about one report, by going through all of them with their exact probabilities."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.estimator = mechanism.estimator
        outputs = list(mechanism.reports())
        size = len(mechanism.domain)
        self.law = [[mechanism.probability(y, x) for y in outputs] for x in range(size)]  # exact
        self.matrix = np.array([[float(entry) for entry in row] for row in self.law])
        self.reports = [self._as_array(y) for y in outputs]
        #: The counts of each report alone, and the estimate from it: shares, for n is 1.
        self.shares = np.array([sf.aggregate(mechanism, report).counts for report in self.reports], np.float64)
        self.decoded = np.array([self.estimator.frequencies(row) for row in self.shares])

    def _as_array(self, report: int) -> npt.NDArray[Any]:
        if self.mechanism.report_format.shape:
            return np.frombuffer(self.mechanism.report_format.encode(report), np.uint8)[None]
        return np.array([report], self.mechanism.report_format.dtype)

    def covariance(self, p: Floats) -> Floats:
        weights = p @ self.matrix
        mean = weights @ self.decoded
        return np.asarray((self.decoded * weights[:, None]).T @ self.decoded - np.outer(mean, mean))

    @property
    def scale(self) -> float:
        """How large numbers in a covariance are on the way: what rounding errors are measured against."""
        return float(np.abs(self.decoded).max()) ** 2


@functools.cache
def enumeration(mechanism: Mechanism) -> Enumeration:
    return Enumeration(mechanism)


def distributions(size: int) -> list[Floats]:
    generator = np.random.default_rng(size)
    corner = np.zeros(size)
    corner[-1] = 1
    return [np.full(size, 1 / size), corner, *generator.dirichlet(np.full(size, 0.5), 4)]


# -- exact, by enumeration -----------------------------------------------------------------------------------


def test_the_enumeration_has_all_outputs_and_nothing_else(mechanism: Mechanism) -> None:
    for row in enumeration(mechanism).law:
        assert sum(row, Fraction(0)) == 1


def test_the_estimate_is_unbiased(mechanism: Mechanism) -> None:
    all_of_it = enumeration(mechanism)
    means = all_of_it.matrix @ all_of_it.decoded  # one row a true value: must be that value's unit vector
    assert means == pytest.approx(np.eye(len(mechanism.domain)), abs=1e-11 * math.sqrt(all_of_it.scale))


def test_shares_are_the_expected_counts_and_frequencies_their_inverse(mechanism: Mechanism) -> None:
    all_of_it = enumeration(mechanism)
    for p in distributions(len(mechanism.domain)):
        shares = all_of_it.estimator.expected_counts(p)
        assert shares == pytest.approx(p @ all_of_it.matrix @ all_of_it.shares, abs=1e-14)
        assert all_of_it.estimator.frequencies(shares) == pytest.approx(p, abs=1e-11 * math.sqrt(all_of_it.scale))


def test_covariance_and_variances_are_those_of_the_enumeration(mechanism: Mechanism) -> None:
    all_of_it = enumeration(mechanism)
    generator = np.random.default_rng(3)
    for p in distributions(len(mechanism.domain)):
        covariance = all_of_it.covariance(p)
        near = 1e-12 * all_of_it.scale
        assert all_of_it.estimator.covariance(p) == pytest.approx(covariance, rel=1e-9, abs=near)
        assert all_of_it.estimator.variances(p) == pytest.approx(np.diag(covariance), rel=1e-9, abs=near)
        for weights in [*generator.normal(size=(3, len(p))), np.ones(len(p)), np.zeros(len(p))]:
            expected = float(weights @ covariance @ weights)
            assert all_of_it.estimator.variance(weights, p) == pytest.approx(
                expected, rel=1e-9, abs=near * float(np.abs(weights).sum()) ** 2
            )


def test_risk_is_the_trace_of_the_covariance(mechanism: Mechanism) -> None:
    all_of_it = enumeration(mechanism)
    for p in distributions(len(mechanism.domain)):
        trace = float(np.trace(all_of_it.estimator.covariance(p)))
        assert mechanism.risk(1, p) == pytest.approx(trace, rel=1e-9, abs=1e-12 * all_of_it.scale)
        assert mechanism.risk(1000, p) == pytest.approx(trace / 1000, rel=1e-9, abs=1e-12 * all_of_it.scale)


def test_the_covariance_is_positive_semidefinite(mechanism: Mechanism) -> None:
    estimator = mechanism.estimator
    for p in distributions(estimator.size):
        covariance = estimator.covariance(p)
        assert np.array_equal(covariance, covariance.T) or covariance == pytest.approx(covariance.T, rel=1e-12)
        assert np.linalg.eigvalsh(covariance).min() >= -1e-9 * max(1.0, float(np.abs(covariance).max()))


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_pull_is_the_adjoint_of_shares(name: str) -> None:
    all_of_it = enumeration(MECHANISMS[name])
    estimator = all_of_it.estimator
    assert isinstance(estimator, HistogramEstimator)
    generator = np.random.default_rng(4)
    for weights in generator.normal(size=(4, all_of_it.matrix.shape[1])):
        assert estimator.adjoint(weights) == pytest.approx(all_of_it.matrix @ weights, abs=1e-13)
        for p in distributions(estimator.size):
            assert estimator.adjoint(weights) @ p == pytest.approx(weights @ estimator.expected_counts(p), abs=1e-13)


def test_reach_is_the_least_and_greatest_of_all_reports(mechanism: Mechanism) -> None:
    all_of_it = enumeration(mechanism)
    low, high = all_of_it.estimator.score_bounds()
    if len(mechanism.domain) == 1:  # only one report is there, and reach may say more than can be
        return
    assert low == pytest.approx(all_of_it.decoded.min(axis=0), rel=1e-12)
    assert high == pytest.approx(all_of_it.decoded.max(axis=0), rel=1e-12)


def test_two_people_give_half_the_covariance() -> None:
    # The verb itself, over all pairs of reports: what is exact for one report is exact for n.
    mechanism = MECHANISMS["subset of one"]
    all_of_it = enumeration(mechanism)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    law = p @ all_of_it.matrix
    mean, square = np.zeros(4), np.zeros((4, 4))
    for (i, first), (j, second) in itertools.product(enumerate(all_of_it.reports), repeat=2):
        estimate = sf.estimate(mechanism, sf.aggregate(mechanism, np.concatenate([first, second])))
        mean += law[i] * law[j] * estimate.frequencies
        square += law[i] * law[j] * np.outer(estimate.frequencies, estimate.frequencies)
    assert mean == pytest.approx(p)
    assert square - np.outer(mean, mean) == pytest.approx(mechanism.estimator.covariance(p) / 2)


def test_the_fast_transform_is_the_slow_one() -> None:
    matrix = np.array([[(-1.0) ** (i & j).bit_count() for i in range(16)] for j in range(16)])
    rows = np.random.default_rng(1).normal(size=(3, 16))
    before = rows.copy()
    assert walsh_hadamard(rows) == pytest.approx(rows @ matrix)
    assert np.array_equal(rows, before)
    assert walsh_hadamard(rows[:, :1]) == pytest.approx(rows[:, :1])


# -- counts with a known expectation --------------------------------------------------------------------------


def expected_aggregate(mechanism: Mechanism, p: Floats, n: int) -> Aggregate:
    """An aggregate whose shares are those expected at p, rounded to whole reports."""
    shares = np.maximum(mechanism.estimator.expected_counts(p), 0)  # rounding may leave a zero below zero
    counts = np.floor(shares * n).astype(np.int64)
    if mechanism.report_format.encoding == "index":
        counts[np.argsort(-shares)[: n - counts.sum()]] += 1
    elif isinstance(mechanism, SubsetSelection):
        counts[: mechanism.size * n - counts.sum()] += 1
    return Aggregate(mechanism.hash, n, counts)


LARGE = 10**9
ORDINARY = sorted(set(MECHANISMS) - {"response of one value"})


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_truth_in_what_is_expected_of_it(name: str, method: str) -> None:
    mechanism = MECHANISMS[name]
    p = np.random.default_rng(5).dirichlet(np.ones(len(mechanism.domain)))
    estimate = sf.estimate(mechanism, expected_aggregate(mechanism, p, LARGE), method)
    assert estimate.frequencies == pytest.approx(p, abs=20 * max(estimate.standard_errors.max(), 1e-7))
    assert estimate.values == mechanism.domain.labels
    assert estimate.n == LARGE
    assert (estimate.fit is not None) == (method == "mle")


def test_standard_errors_are_the_root_of_the_diagonal(mechanism: Mechanism) -> None:
    p = distributions(len(mechanism.domain))[2]
    estimate = sf.estimate(mechanism, expected_aggregate(mechanism, p, 10_000))
    assert estimate.standard_errors**2 == pytest.approx(np.diag(estimate.covariance), rel=1e-9, abs=1e-15)
    assert estimate.covariance == pytest.approx(
        estimate.estimator.covariance(project_to_simplex(estimate.unbiased)) / 10_000
    )


def test_the_expected_total_variation_is_that_of_normal_errors() -> None:
    mechanism = MECHANISMS["response"]
    estimate = sf.estimate(mechanism, expected_aggregate(mechanism, np.full(5, 0.2), 10_000))
    mean_of_absolute = [stats.halfnorm(scale=error).mean() for error in estimate.standard_errors]
    assert estimate.expected_tv == pytest.approx(sum(mean_of_absolute) / 2)


# -- the simplex, by certificate ------------------------------------------------------------------------------

POINTS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12).map(np.array)


def assert_is_projection(point: Floats, projected: Floats, total: float = 1.0) -> None:
    """Nearest in {q ≥ 0, Σ q = total}: point - q is one constant where q > 0, and no greater elsewhere."""
    scale = max(1.0, float(np.abs(point - point.max()).max()), total)
    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total, abs=1e-12 * scale)
    gap = point - projected
    multiplier = gap[projected > 0]
    assert np.ptp(multiplier) <= 1e-12 * scale + 4 * np.spacing(np.abs(point).max())
    assert (gap[projected == 0] <= multiplier.max() + 1e-12 * scale + 4 * np.spacing(np.abs(point).max())).all()


@given(POINTS, st.sampled_from([1.0, 0.25, 7.0]))
def test_the_projection_is_certified(point: Floats, total: float) -> None:
    assert_is_projection(point, project_to_simplex(point, total), total)


@given(POINTS)
def test_a_distribution_is_its_own_projection(point: Floats) -> None:
    inside = np.abs(point) + 1e-3
    inside /= inside.sum()
    assert project_to_simplex(inside) == pytest.approx(inside, abs=1e-14)


def test_points_far_out_are_projected() -> None:
    assert project_to_simplex(np.array([3e20, -1e20, 0.0])).tolist() == [1, 0, 0]
    assert project_to_simplex(np.array([-3e20, -3e20])).tolist() == [0.5, 0.5]


@given(st.data(), st.sampled_from([1.0, 0.25, 7.0]))
def test_values_in_clear_keep_their_share_and_the_others_are_projected(data: st.DataObject, total: float) -> None:
    point = data.draw(POINTS)
    size = len(point)
    clear = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    found = project_protected(point, clear, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, abs=1e-9)
    if clear.all() or not clear.any():
        assert_is_projection(point, found, total)
        return
    told = np.maximum(point[clear], 0)
    left = total - float(told.sum())
    if left > 0:
        assert found[clear].tolist() == told.tolist()
        assert_is_projection(point[~clear], found[~clear], left)
    else:
        assert found[clear] == pytest.approx(told * total / told.sum())
        assert not found[~clear].any()


def test_the_simplex_method_is_the_projection_of_the_unbiased() -> None:
    mechanism = MECHANISMS["hadamard, two blocks"]
    aggregate = sf.aggregate(mechanism, sf.privatize(mechanism, [0, 0, 1] * 20, stream=sf.InsecureSeeded(1)))
    estimate = sf.estimate(mechanism, aggregate, "simplex")
    assert (estimate.unbiased < 0).any()
    assert_is_projection(estimate.unbiased, estimate.frequencies)
    assert np.array_equal(estimate.unbiased, sf.estimate(mechanism, aggregate).frequencies)


# -- maximum likelihood, by certificate -----------------------------------------------------------------------


def log_likelihood(shares: Floats, law: Floats) -> float:
    return float(sum(s * math.log(q) for s, q in zip(shares.tolist(), law.tolist(), strict=True) if s > 0))


def random_counts(mechanism: Mechanism, seed: int) -> npt.NDArray[np.int64]:
    """Counts of reports at a sparse truth, few enough that the optimum lies on the edge."""
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.full(len(mechanism.domain), 0.3))
    law = p @ enumeration(mechanism).matrix
    draws = generator.multinomial(int(generator.integers(1, 300)), law / law.sum())
    return np.asarray(draws @ enumeration(mechanism).shares.astype(np.int64))


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_em_is_certified(name: str) -> None:
    all_of_it = enumeration(MECHANISMS[name])
    estimator, matrix = all_of_it.estimator, all_of_it.matrix
    assert isinstance(estimator, HistogramEstimator)
    size = estimator.size
    for seed in range(20):
        counts = random_counts(all_of_it.mechanism, seed)
        shares = counts / counts.sum()
        tolerance = max(1e-9, 1e-3 / int(counts.sum()))  # as the verb asks for
        fit = fit_histogram(shares, estimator.expected_counts, estimator.adjoint, size, tolerance=tolerance)
        p = fit.frequencies
        assert (p >= 0).all()
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert fit.converged
        assert fit.bound <= tolerance
        best = log_likelihood(shares, p @ matrix)
        assert fit.gain == pytest.approx(best - log_likelihood(shares, matrix.mean(axis=0)), abs=1e-12)
        # Nothing gains more than the bound says: corners mixed in, the unbiased estimate's projection, and at random.
        generator = np.random.default_rng(seed)
        rivals = [*generator.dirichlet(np.full(size, 0.3), 200), *(0.999 * p + 0.001 * np.eye(size))]
        rivals.append(0.999 * project_to_simplex(estimator.frequencies(shares)) + 0.001 * p)
        seen = shares > 0
        for rival in rivals:
            law = rival @ matrix
            if (law[seen] > 0).all():
                assert log_likelihood(shares, law) <= best + fit.bound + 1e-12
        # Karush-Kuhn-Tucker: the slope is 1 where p is positive, and at most 1 elsewhere.
        law = p @ matrix
        slope = matrix[:, seen] @ (shares[seen] / law[seen])
        assert (slope <= 1 + 2 * tolerance).all()
        assert p @ np.abs(slope - 1) <= 4 * tolerance


def test_em_never_loses_likelihood() -> None:
    for name in ("response", "hadamard, two blocks", "hadamard, one ragged block", "table, wide"):
        mechanism = MECHANISMS[name]
        estimator = mechanism.estimator
        assert isinstance(estimator, HistogramEstimator)
        counts = random_counts(mechanism, 1)
        fits = [
            fit_histogram(
                counts / counts.sum(),
                estimator.expected_counts,
                estimator.adjoint,
                estimator.size,
                most=most,
                tolerance=0,
            )
            for most in range(1, 40)
        ]
        gains = [fit.gain for fit in fits]
        assert all(b >= a - 1e-15 for a, b in itertools.pairwise(gains))
        assert not fits[0].converged
        # Every fit on the way says truly how much is left.
        for fit in fits:
            assert gains[-1] - fit.gain <= fit.bound + 1e-12


def solve_on_simplex(loss: Callable[[Floats], float], size: int) -> Floats:
    solution = optimize.minimize(
        loss,
        np.full(size, 1 / size),
        method="SLSQP",
        bounds=[(1e-12, 1)] * size,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return np.asarray(solution.x)


@pytest.mark.parametrize("name", ["response", "hadamard, two blocks", "table, wide", "table, an output never used"])
def test_em_agrees_with_a_general_optimizer(name: str) -> None:
    mechanism = MECHANISMS[name]
    matrix = enumeration(mechanism).matrix
    for seed in range(5):
        counts = random_counts(mechanism, seed)
        estimate = sf.estimate(mechanism, Aggregate(mechanism.hash, int(counts.sum()), counts), "mle")
        shares = counts / counts.sum()

        def loss(p: Floats, shares: Floats = shares) -> float:
            return -log_likelihood(shares, np.maximum(p @ matrix, 1e-15))

        theirs = solve_on_simplex(loss, len(matrix))
        ours = log_likelihood(shares, estimate.frequencies @ matrix)
        assert ours >= log_likelihood(shares, theirs / theirs.sum() @ matrix) - 1e-3 / counts.sum() - 1e-9
        assert estimate.frequencies == pytest.approx(theirs, abs=0.02)


def bit_likelihood(shares: Floats, q: Floats) -> float:
    return log_likelihood(shares, q) + log_likelihood(1 - shares, 1 - q)


@pytest.mark.parametrize("name", BITMAPS)
def test_the_fit_of_bits_is_certified(name: str) -> None:
    mechanism = MECHANISMS[name]
    estimator = mechanism.estimator
    assert isinstance(estimator, (InclusionEstimator, MixtureEstimator))
    assert estimator.inclusion is not None
    own, other = float(estimator.inclusion.true_probability), float(estimator.inclusion.other)
    for seed in range(20):
        counts = random_counts(mechanism, seed)
        n = int(np.random.default_rng(seed).integers(counts.max(), counts.max() + 20))
        shares = counts / n
        fit = fit_bit_counts(shares, estimator.other, estimator.gap)
        p = fit.frequencies
        assert (p >= 0).all()
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert fit.converged
        q = other + (own - other) * p
        best = bit_likelihood(shares, q)
        uniform = np.full(len(p), other + (own - other) / len(p))
        assert fit.gain == pytest.approx(best - bit_likelihood(shares, uniform), abs=1e-10)
        # One multiplier: the slope is equal where p is positive, and no greater elsewhere.
        up = np.divide(shares, q, out=np.zeros_like(q), where=shares > 0)
        down = np.divide(1 - shares, 1 - q, out=np.zeros_like(q), where=shares < 1)
        slope = up - down
        multiplier = float(slope @ p)
        tolerance = 1e-7 * max(1.0, float(np.abs(slope).max()))
        assert slope[p > 1e-9] == pytest.approx(multiplier, abs=tolerance)
        assert (slope <= multiplier + tolerance).all()
        for rival in np.random.default_rng(seed).dirichlet(np.full(len(p), 0.3), 100):
            law = other + (own - other) * rival
            if ((law > 0) | (shares == 0)).all() and ((law < 1) | (shares == 1)).all():
                assert bit_likelihood(shares, law) <= best + fit.bound + 1e-12


def test_the_fit_of_bits_agrees_with_a_general_optimizer() -> None:
    mechanism = MECHANISMS["unary optimized"]
    assert isinstance(mechanism, UnaryEncoding)
    own, other = (float(probability) for probability in mechanism.bit_probabilities)
    for seed in range(5):
        counts = random_counts(mechanism, seed)
        n = int(counts.max()) + 5
        estimate = sf.estimate(mechanism, Aggregate(mechanism.hash, n, counts), "mle")

        def loss(p: Floats, shares: Floats = counts / n) -> float:
            return -bit_likelihood(shares, other + (own - other) * p)

        theirs = solve_on_simplex(loss, 4)
        assert estimate.frequencies == pytest.approx(theirs, abs=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_bits_all_alike_fit_the_uniform_distribution(share: float) -> None:
    for name in ("unary", "unary optimized"):
        estimator = MECHANISMS[name].estimator
        assert isinstance(estimator, InclusionEstimator)
        fit = fit_bit_counts(np.full(4, share), estimator.other, estimator.gap)
        assert fit.frequencies == pytest.approx(np.full(4, 0.25), abs=1e-9)


def test_many_values_and_a_sparse_truth_converge() -> None:
    size, n = 500, 100_000
    p = 1 / np.arange(1, size + 1) ** 1.2
    p /= p.sum()
    for mechanism in (RandomizedResponse(R(size), 1), HadamardResponse(R(size), "0.5")):
        law = mechanism.estimator.expected_counts(p)
        counts = np.random.default_rng(1).multinomial(n, law / law.sum())
        estimate = sf.estimate(mechanism, Aggregate(mechanism.hash, n, counts), "mle")
        assert estimate.fit is not None
        assert estimate.fit.converged
        assert estimate.fit.bound * n <= 1e-3
        assert (estimate.frequencies < 1e-6).any()


def test_outputs_that_no_value_gives_do_not_spoil_a_fit() -> None:
    # Only a dishonest client can send these: blocks that no value owns, and a column of zeros.
    for name, output in (("hadamard, everything", 11), ("table, an output never used", 1)):
        mechanism = MECHANISMS[name]
        assert all(mechanism.probability(output, x) == 0 for x in range(len(mechanism.domain)))
        counts = expected_aggregate(mechanism, distributions(len(mechanism.domain))[2], 1000).counts.copy()
        honest = sf.estimate(mechanism, Aggregate(mechanism.hash, 1000, counts), "mle")
        counts[output] += 100
        spoiled = sf.estimate(mechanism, Aggregate(mechanism.hash, 1100, counts), "mle")
        assert spoiled.frequencies == pytest.approx(honest.frequencies, abs=1e-3)
        with pytest.raises(InvalidInput, match="include an output that some value can produce"):
            sf.estimate(mechanism, sf.aggregate(mechanism, [output]), "mle")


@pytest.mark.parametrize("method", METHODS)
def test_a_single_report_is_enough_for_every_method(mechanism: Mechanism, method: str) -> None:
    all_of_it = enumeration(mechanism)
    for number, report in enumerate(all_of_it.reports):
        if all_of_it.matrix[:, number].max() == 0:
            continue
        estimate = sf.estimate(mechanism, sf.aggregate(mechanism, report), method)
        assert np.isfinite(estimate.frequencies).all()
        assert np.isfinite(np.concatenate(estimate.interval())).all()
        if method != "unbiased":
            assert estimate.frequencies.sum() == pytest.approx(1)
            assert (estimate.frequencies >= 0).all()


def zipf(size: int) -> Floats:
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


# -- intervals -----------------------------------------------------------------------------------------------


def sampled_estimate(name: str, method: str = "unbiased", n: int = 500, seed: int = 1) -> sf.Estimate:
    mechanism = MECHANISMS[name]
    values = np.random.default_rng(seed).choice(len(mechanism.domain), n, p=distributions(len(mechanism.domain))[3])
    return sf.estimate(
        mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, values, sf.InsecureSeeded(1))), method
    )


SAMPLED = ["response", "unary", "subset of two", "hadamard, two blocks", "table, wide"]


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_are_ordered_nested_and_within_bounds(name: str, method: str) -> None:
    estimate = sampled_estimate(name, method)
    narrower = estimate.interval(0.5)
    for level in (0.8, 0.95, 0.999):
        low, high = estimate.interval(level)
        assert ((low >= 0) & (high <= 1) & (low <= high)).all()
        assert ((low <= narrower[0]) & (high >= narrower[1])).all()
        if method != "unbiased":
            assert ((low <= estimate.frequencies) & (estimate.frequencies <= high)).all()
        narrower = low, high


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_intervals_of_many_reports_are_z_standard_errors_about_the_unbiased(name: str) -> None:
    estimate = sampled_estimate(name, n=400_000)
    inside = estimate.unbiased > 8 * estimate.standard_errors
    assert inside.sum() > 1
    for level in (0.8, 0.95, 0.999):
        low, high = estimate.interval(level)
        score_bounds = stats.norm.ppf(0.5 + level / 2) * estimate.standard_errors
        assert (high - estimate.unbiased)[inside] == pytest.approx(score_bounds[inside], rel=0.03)
        assert (estimate.unbiased - low)[inside] == pytest.approx(score_bounds[inside], rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rr", "unary", "subset", "hadamard"])
def test_no_interval_of_a_thousand_values_is_a_point(name: str) -> None:
    """Most of 1,000 values are below what the noise resolves: many estimates lie far below zero."""
    size, n = 1_000, 50_000
    mechanism = sf.design(sf.Uniform(R(size), 1), n=n, mechanism=name)
    truth = zipf(size)
    for seed in range(3):
        for method in ("unbiased", "simplex", "mle"):
            run = sf.simulate(mechanism, n=n, truth=truth, seed=seed, one_by_one=False, method=method).estimate
            low, high = run.interval()
            # The rule of three for reports that count as much as one can, at the least.
            least = (1 - 0.05 ** (1 / n)) * run.estimator.score_bounds()[1] / 4
            assert (high - low > least).all()
            assert (high > 0).all()
            held = (low <= truth) & (truth <= high)
            assert held.mean() > 0.94


@pytest.mark.parametrize("n", [1, 5, 60])
def test_a_value_nobody_told_of_has_an_interval_all_the_same(n: int) -> None:
    """With no report for a value that is told as it is, the plain normal interval would be a point."""
    policy = sf.HighLow(sf.Domain(["none", "flu", "hiv"]), sensitive=["hiv"], epsilon=1)
    mechanism = sf.design(policy, n=1000)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, ["none"] * n)))
    low, high = estimate.interval(0.95)
    assert (estimate.frequencies[1], low[1]) == (0, 0)
    # The greatest p at which n others in a row have probability 0.025 (Clopper and Pearson), above the rule of three.
    # A report of flu counts as much as it can.
    _, most = estimate.estimator.score_bounds()
    share = high[1] / most[1] if high[1] < 1 else 1 - 0.025 ** (1 / n)
    assert (1 - share) ** n == pytest.approx(0.025)
    assert np.all(estimate.interval(0.99)[1] >= high)
    assert np.all(estimate.interval(0.95, simultaneous=True)[1] >= high)


def two_scores(own: float, other: float, n: int, rows: int) -> ScoreLaw:
    """The law of a set that holds the true value with probability ``own`` and another one with ``other``."""
    gap = own - other
    ones = np.ones(rows)
    others = np.tile([1 - other, other], (rows, 1))
    levels, mine = np.tile([-other / gap, (1 - other) / gap], (rows, 1)), np.tile([1 - own, own], (rows, 1))
    return ScoreLaw(levels, mine, others, others, ones, n * ones, ones, ones)


def with_another_score(law: ScoreLaw) -> ScoreLaw:
    """The same law with a score of nearly no probability, so that it is not seen to be binomial."""
    rows = len(law.score_values)
    parts = {
        name: np.column_stack([getattr(law, name), np.full(rows, 1e-15)])
        for name in ("at_value", "in_group", "outside_group")
    }
    return replace(law, score_values=np.column_stack([law.score_values, law.score_values.mean(axis=1)]), **parts)


@pytest.mark.parametrize("n", [1, 7, 150, 10**6])
@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-5])
def test_limits_of_a_revealed_count_are_where_each_tail_has_half_of_alpha(n: int, alpha: float) -> None:
    counts = np.arange(min(n, 99) + 1)
    low, high = confidence_limits([two_scores(1.0, 0.0, n, len(counts))], counts / n, alpha)
    at_most, at_least = stats.binom.cdf(counts, n, high), stats.binom.sf(counts - 1, n, low)
    inner = (counts > 0) & (counts < n)
    # Exactly for few reports; for more the normal law may replace theirs, the earlier the larger alpha is.
    for few, tolerance in ((counts < 3, 1e-4), (counts >= 3, 0.15)):
        assert at_most[inner & few] == pytest.approx(alpha / 2, rel=tolerance)
        assert at_least[inner & few] == pytest.approx(alpha / 2, rel=tolerance)
    # Of no report at all, and of all reports: at least the rule of three, which leaves alpha.
    assert low[0] == 0
    assert (1 - high[0]) ** n == pytest.approx(alpha / 2, rel=1e-4)
    assert high[counts == n] == pytest.approx(1)
    assert low[counts == n] ** n == pytest.approx(alpha / 2, rel=1e-4)


@pytest.mark.parametrize("epsilon", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("n", [20, 50, 200, 1000])
def test_coverage_of_randomized_response_over_two_values_is_exactly_known(epsilon: int, n: int) -> None:
    """Summed over all counts, on a grid of frequencies: the normal interval covers 0.849 at ε = 5, n = 20."""
    mechanism = RandomizedResponse(R(2), epsilon)
    own, other = (float(mechanism.probability(0, x)) for x in range(2))
    counts, truth = np.arange(n + 1), np.linspace(0, 1, 401)
    estimate = (counts / n - other) / (own - other)
    low, high = confidence_limits([two_scores(own, other, n, n + 1)], estimate, 0.05)
    held = (low[:, None] <= truth + 1e-12) & (truth <= high[:, None] + 1e-12)
    coverage = (stats.binom.pmf(counts[:, None], n, other + (own - other) * truth) * held).sum(axis=0)
    assert coverage.min() >= 0.945
    assert coverage.mean() >= 0.95
    assert (high > low).all()
    # These are the limits of an estimate: the same from the counts of reports.
    (number,) = np.flatnonzero(counts == n // 3)
    found = sf.estimate(
        mechanism, Aggregate(mechanism.hash, n, np.array([counts[number], n - counts[number]]))
    ).interval()
    assert [found[0][0], found[1][0]] == pytest.approx([low[number], high[number]], rel=1e-4)


@pytest.mark.parametrize(("own", "other", "n"), [(0.9, 0.2, 40), (0.5, 0.01, 300), (0.99, 0.001, 25), (0.6, 0.4, 500)])
def test_inverted_characteristic_functions_give_the_binomial_limits(own: float, other: float, n: int) -> None:
    law = two_scores(own, other, n, n + 1)
    estimate = (np.arange(n + 1) / n - other) / (own - other)
    exact, inverted = (
        confidence_limits([law], estimate, 0.05),
        confidence_limits([with_another_score(law)], estimate, 0.05),
    )
    plausible = (estimate > -0.5) & (estimate < 1.5)
    for one, other_one in zip(exact, inverted, strict=True):
        assert other_one[plausible] == pytest.approx(one[plausible], abs=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "sensitive", "epsilon", "n", "rare", "name"),
    [
        (100, 50, "1", 1000, False, None),
        (100, 20, "0.1", 5000, True, None),
        (100, 5, "0.1", 1000, True, None),
        (20, 5, "0.5", 500, False, None),
        (100, 50, "1", 1000, True, "high-low-hadamard"),
    ],
)
def test_intervals_of_harmless_values_hold_the_truth(
    size: int, sensitive: int, epsilon: str, n: int, rare: bool, name: str | None
) -> None:
    """Told in clear, beside sensitive values that are noisy; ``rare``: by a Zipf law that has these at its rare end.

    The seeds are fixed. Errors of values told in clear hardly go together, so the mean over 60 surveys of at least 15
    values has a standard deviation below 0.01, and a coverage of 95% fails with probability below 1e-6; before values
    in clear kept their share it was 88% or less in all of these.
    """
    mechanism = sf.design(sf.HighLow(R(size), list(range(sensitive)), epsilon), n=n, mechanism=name)
    truth = zipf(size)[::-1] if rare else np.full(size, 1 / size)
    held, errors = np.zeros(size), np.zeros(2)
    stated, found = [], []
    for seed in range(60):
        run = sf.simulate(mechanism, n=n, truth=truth, seed=seed, one_by_one=False, method="simplex").estimate
        assert isinstance(run, MechanismEstimate)
        unbiased = replace(run, method="unbiased", frequencies=run.unbiased)
        low, high = unbiased.interval()
        held += (low <= truth) & (truth <= high)
        errors += [float(np.abs(p - truth)[sensitive:].sum()) for p in (run.frequencies, run.unbiased)]
        stated.append(run.standard_errors[sensitive:])
        found.append(run.unbiased[sensitive:])
    assert (held / 60)[sensitive:].mean() > 0.91
    assert errors[0] <= errors[1] * (1 + 1e-9)
    assert np.min(stated) > 0
    assert np.mean(stated) > 0.9 * np.std(found, axis=0).mean()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "n"), [("1e-9", 1000), ("1e-4", 1000), ("0.01", 100), ("0.1", 10)])
def test_silence_is_judged_by_what_one_report_counts(epsilon: str, n: int) -> None:
    """At a tiny epsilon one report in clear counts thousands: without one nothing is known, whatever rounding left."""
    domain = sf.Domain(["none", "flu", "hiv", "cancer"])
    mechanism = sf.design(sf.HighLow(domain, ["hiv"], epsilon), n=n)
    held = np.zeros(4)
    for seed in range(40):
        low, high = sf.simulate(mechanism, n=n, seed=seed).estimate.interval()
        held += (low <= 0.25) & (high >= 0.25)
    assert (held > 28).all(), held  # at 95%, 28 of 40 or fewer have a probability below 1e-6


def test_shares_of_values_nobody_told_of_agree_with_their_intervals() -> None:
    mechanism = sf.design(sf.HighLow(R(4), [0, 1], 1), n=1000)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, sf.privatize(mechanism, [2] * 100, sf.InsecureSeeded(1))))
    share, high = estimate.set_fraction([3]), float(estimate.interval()[1][3])
    assert share.value == 0
    assert share.standard_error == pytest.approx(estimate.standard_errors[3])
    assert share.standard_error > 0
    assert high <= share.interval()[1] <= 1.02 * high
    # A share in the interval is one that is not refuted, and the other way round.
    assert share.p_value(0.99 * high) > 0.05 > share.p_value(1.03 * high)
    # All values together are everybody, and all but one are what this one leaves.
    everybody = estimate.set_fraction([0, 1, 2, 3])
    assert everybody.value == pytest.approx(1)
    assert everybody.standard_error == pytest.approx(0, abs=1e-6)
    others = estimate.set_fraction([0, 1, 2])
    assert others.interval()[0] == pytest.approx(1 - share.interval()[1], abs=1e-6)


def test_simultaneous_intervals_share_the_error_among_the_values() -> None:
    estimate = sampled_estimate("response")
    together, alone = estimate.interval(0.95, simultaneous=True), estimate.interval(0.99)
    assert np.concatenate(together) == pytest.approx(np.concatenate(alone))  # 5% over 5 values


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, math.nan, "0.9", None])
def test_a_confidence_outside_its_range_is_rejected(confidence: float) -> None:
    with pytest.raises(InvalidInput, match="confidence must lie between 0 and 1"):
        sampled_estimate("response").interval(confidence)
    with pytest.raises(InvalidInput, match="confidence must lie between 0 and 1"):
        LinearEstimate(0.5, 0.1).interval(confidence)


def test_a_confidence_next_to_one_is_rejected() -> None:
    least = 1 - 2.0**-53  # half of what is beyond it is nothing, beside 1
    with pytest.raises(InvalidInput, match="confidence must differ from 1 by more than double precision resolves"):
        LinearEstimate(0.5, 0.1).interval(least)
    assert LinearEstimate(0.5, 0.1).interval(1 - 2.0**-52)[0] < 0


# -- linear estimates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLED)
@pytest.mark.parametrize("method", METHODS)
def test_linear_estimates_are_the_direct_formulas(name: str, method: str) -> None:
    estimate = sampled_estimate(name, method)
    size = len(estimate.domain)
    for weights in np.random.default_rng(2).normal(size=(3, size)):
        for given_weights in (weights, weights.tolist(), dict(enumerate(weights.tolist()))):
            linear = estimate.linear(given_weights)
            assert linear.value == pytest.approx(float(weights @ estimate.unbiased))
            assert linear.standard_error**2 == pytest.approx(float(weights @ estimate.covariance @ weights))
    labels = np.arange(size)
    assert estimate.mean() == estimate.linear(labels.astype(float))
    assert estimate.set_fraction([0, 2]) == estimate.linear(np.isin(labels, [0, 2]).astype(float))
    for x in range(size):
        one = estimate.set_fraction([x])
        assert one.value == pytest.approx(estimate.unbiased[x])
        assert one.standard_error == pytest.approx(estimate.standard_errors[x])
    assert estimate.set_fraction([]) == LinearEstimate(0, 0)


def test_the_share_of_everyone_is_known_where_the_counts_know_it() -> None:
    everyone = sampled_estimate("response").set_fraction(range(5))
    assert everyone.value == pytest.approx(1)
    assert everyone.standard_error == pytest.approx(0, abs=1e-8)


@pytest.mark.slow
def test_linear_estimates_need_no_matrix() -> None:
    size = 100_000
    mechanism = HadamardResponse(R(size), 1)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, np.arange(1000) % mechanism.outputs))
    assert estimate.mean().standard_error > 0
    with pytest.raises(LimitExceeded, match="at most 20,000 values, not 100,000\\. Use standard_errors"):
        _ = estimate.covariance


def test_differences_and_p_values_are_the_direct_formulas() -> None:
    a, b = LinearEstimate(0.7, 0.03), LinearEstimate(0.6, 0.04)
    difference = a - b
    assert difference.value == pytest.approx(0.1)
    assert difference.standard_error == pytest.approx(0.05)
    assert difference.p_value() == pytest.approx(2 * stats.norm.sf(2))
    assert a.p_value(0.7) == pytest.approx(1)
    assert [a.p_value(0.64), a.p_value(0.76)] == pytest.approx([2 * stats.norm.sf(2)] * 2)
    assert a.interval(0.9) == pytest.approx(stats.norm(0.7, 0.03).interval(0.9))
    assert LinearEstimate(1.0, 0.0).p_value(1.0) == 1
    assert LinearEstimate(1.0, 0.0).p_value(0.0) == 0
    assert str(a) == "0.7 ± 0.03"


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.001, 1), st.floats(0.01, 0.99))
def test_the_p_value_at_the_end_of_an_interval_is_what_it_leaves_out(
    value: float, error: float, unseen: float, level: float
) -> None:
    one = LinearEstimate(value, error, unseen=unseen)
    for end in one.interval(level):
        assert one.p_value(end) == pytest.approx(1 - level, rel=1e-6)
    assert (one - LinearEstimate(0.0, 0.1, unseen=2.0)).unseen == 2


@pytest.mark.parametrize(
    "weights",
    [[1.0], [[1.0] * 5], [1, 2, 3, 4, math.nan], {0: math.inf}, "abcde", [None] * 5, {0: "x"}, 5, {0: [1, 2]}],
    ids=repr,
)
def test_wrong_weights_are_refused(weights: Any) -> None:
    with pytest.raises(InvalidInput, match="linear: weights must be"):
        sampled_estimate("response").linear(weights)


def test_unknown_labels_and_texts_have_no_mean() -> None:
    with pytest.raises(InvalidInput, match="got 7"):
        sampled_estimate("response").linear({7: 1.0})
    with pytest.raises(InvalidInput, match="got 7"):
        sampled_estimate("response").set_fraction([7])
    for labels in (["a", "b"], [False, True]):
        mechanism = RandomizedResponse(sf.Domain(labels), 1)
        with pytest.raises(InvalidInput, match="labels of the domain must be numbers"):
            sf.estimate(mechanism, sf.aggregate(mechanism, [0, 1])).mean()


def test_the_mean_of_labels_uses_their_values() -> None:
    mechanism = RandomizedResponse(sf.Domain([2.5, -1.0, 10.0]), "inf")
    mean = sf.estimate(mechanism, sf.aggregate(mechanism, [0, 0, 1, 2])).mean()
    values = np.array([2.5, 2.5, -1, 10])
    assert mean.value == pytest.approx(values.mean())
    assert mean.standard_error == pytest.approx(values.std() / 2)


# -- dishonest reports ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 1.0])
def test_the_influence_of_dishonest_reports_is_attained_and_never_exceeded(name: str, fraction: float) -> None:
    mechanism = MECHANISMS[name]
    all_of_it = enumeration(mechanism)
    p = distributions(len(mechanism.domain))[3]
    counts = Aggregate(mechanism.hash, 1000, np.zeros(all_of_it.shares.shape[1], np.int64))
    estimate = MechanismEstimate("unbiased", p, p, p, mechanism=mechanism, counts=counts)
    bound = estimate.influence(fraction)
    honest = all_of_it.estimator.expected_counts(p)
    moved = [
        np.abs(all_of_it.estimator.frequencies((1 - fraction) * honest + fraction * report) - p)
        for report in all_of_it.shares
    ]
    assert np.max(moved, axis=0) == pytest.approx(bound, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan, "0.1"])
def test_a_fraction_outside_its_range_is_refused(fraction: float) -> None:
    with pytest.raises(InvalidInput, match=r"fraction must lie in \[0, 1\]"):
        sampled_estimate("response").influence(fraction)


# -- refusals, tables and texts ------------------------------------------------------------------------------


def test_a_method_that_is_not_known_is_refused() -> None:
    mechanism = MECHANISMS["response"]
    with pytest.raises(InvalidInput, match=r"method must be one of unbiased, .*; got 'median'"):
        sf.estimate(mechanism, sf.aggregate(mechanism, [1]), "median")


def test_reports_that_were_not_counted_are_refused_with_a_hint() -> None:
    mechanism = MECHANISMS["response"]
    reports: Any = sf.privatize(mechanism, [0, 1], sf.InsecureSeeded(1))
    with pytest.raises(
        InvalidInput,
        match=r"the aggregate must be an Aggregate; .*Count the reports with aggregate\(mechanism, reports\)",
    ):
        sf.estimate(mechanism, reports)
    policy: Any = sf.Uniform(R(5), 1)
    with pytest.raises(InvalidInput, match=r"the mechanism must be a Mechanism; .*Build one with design\(policy\)"):
        sf.estimate(policy, sf.aggregate(mechanism, reports))
    with pytest.raises(InvalidInput, match="be a mapping from group names to aggregates"):
        sf.estimate_groups(mechanism, reports)


def test_no_reports_have_no_estimate(mechanism: Mechanism) -> None:
    with pytest.raises(InvalidInput, match="the aggregate must have at least one report; got 0 reports"):
        sf.estimate(mechanism, Aggregate.empty(mechanism))


def test_counts_of_no_possible_reports_are_refused() -> None:
    mechanism = MECHANISMS["subset of two"]
    with pytest.raises(InvalidInput, match="counts must sum to"):
        sf.estimate(mechanism, Aggregate(mechanism.hash, 3, np.array([1, 1, 1, 1, 1])))


def test_mechanisms_that_tell_nothing_apart_are_refused() -> None:
    blind: list[Mechanism] = [
        RandomizedResponse(R(3), 0),
        UnaryEncoding(R(3), 0),
        UnaryEncoding(R(3), 0, optimized=True),
        SubsetSelection(R(3), 0, 1),
        HadamardResponse(R(3), 0),
        CyclicDesign(R(3), 0),
        TableMechanism(R(2), [[2**61, 2**61], [2**61, 2**61]]),
        TableMechanism(R(3), [[2**62, 0], [0, 2**62], [2**61, 2**61]]),
    ]
    for mechanism in blind:
        report = sf.privatize(mechanism, [0], stream=sf.InsecureSeeded(1))
        with pytest.raises(InvalidInput, match=r"the mechanism must distinguish all values in its reports"):
            _ = sf.estimate(mechanism, sf.aggregate(mechanism, report)).frequencies
        assert mechanism.risk(1) == math.inf


def test_a_bitmap_without_an_estimator_is_refused() -> None:
    class Foreign(Mechanism):
        step = probability = from_parameters = None  # type: ignore[assignment]
        outputs = None  # type: ignore[assignment]
        report_format = BitmapFormat(2)

        def parameters(self) -> dict[str, Any]:
            return {}

    foreign = Foreign()
    foreign.domain = R(2)
    with pytest.raises(InvalidInput, match="must report an index, or have an estimator; got Foreign"):
        _ = foreign.estimator


def test_an_estimate_is_a_table() -> None:
    estimate = sampled_estimate("response")
    table = estimate.to_arrow(0.9)
    assert table.column_names == ["value", "frequency", "standard_error", "low", "high"]
    assert table["value"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["frequency"].to_pylist() == estimate.frequencies.tolist()
    low, high = estimate.interval(0.9)
    assert table["low"].to_pylist() == low.tolist()
    assert table["high"].to_pylist() == high.tolist()
    product = RandomizedResponse(sf.Domain.product(S=["a", "b"], U=[1, 2]), 1)
    labels = sf.estimate(product, sf.aggregate(product, [0, 3])).to_arrow()["value"].to_pylist()
    assert labels[0] == "('a', 1)"


def test_a_table_without_pyarrow_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = sampled_estimate("response")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"'\.\[arrow\]'"):
        estimate.to_arrow()


def test_an_estimate_can_be_printed() -> None:
    text = str(sampled_estimate("response"))
    assert text.startswith("500 reports, method unbiased, 95% intervals\n")
    assert len(text.splitlines()) == 8
    assert text.splitlines()[-1] == "2 of 5 values cannot be distinguished from zero."
    many = RandomizedResponse(R(30), 1)
    assert "\n… 10 more\n" in str(sf.estimate(many, sf.aggregate(many, [0])))


def test_decoders_are_what_they_are_said_to_be(mechanism: Mechanism) -> None:
    estimator: Estimator = mechanism.estimator
    assert estimator.size == len(mechanism.domain)
    assert isinstance(estimator, HistogramEstimator) == (mechanism.report_format.encoding == "index")


@pytest.mark.parametrize("values", [slice(0, 40), slice(0, 80)])
def test_the_share_of_a_block_that_is_told_is_a_count(values: slice) -> None:
    """However much one report counts for a value of the block, it counts once for the block."""
    domain = sf.Domain.range(80)
    mechanism = BlockMechanism.for_policy(sf.Blocks(domain, [0] * 40 + [1] * 40, "0.5"), "rr")
    reports = sf.privatize(mechanism, [5] * 90 + [50] * 210, sf.InsecureSeeded(3))
    share = sf.estimate(mechanism, sf.aggregate(mechanism, reports)).set_fraction(list(range(80)[values]))
    low, high = share.interval()
    if values.stop == 40:
        # The exact limits of 90 of 300, whatever the privacy within the block is.
        assert stats.binom(300, low).sf(89) == pytest.approx(0.025, rel=1e-6)
        assert stats.binom(300, high).cdf(90) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == high == 1
    assert share.value == pytest.approx(0.3 if values.stop == 40 else 1)
