"""The lower bound on the error of one answer: exact maximisation over likelihoods, known optima, and plans."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

import sfumato as sf
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.one_answer import _cuts, _Likelihoods, _Line, _OneLevel, bound_of_one_answer
from sfumato.mechanisms import OneBit, RandomizedResponse, ShiftedBins, TruncatedGeometric
from sfumato.policy import Policy

R = sf.Domain.range
Floats = npt.NDArray[np.float64]


def uniform(size: int) -> Floats:
    return np.full(size, 1 / size)


def some_distribution(size: int, seed: int) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.ones(size))


def extreme_vectors(likelihoods: _Likelihoods) -> Floats:
    """All extreme likelihood vectors v with p·v = 1."""
    size = len(likelihoods.prior)
    if isinstance(likelihoods, _OneLevel):
        vectors = 1 + likelihoods.odds * np.array(list(itertools.product((0, 1), repeat=size)))
    else:
        assert isinstance(likelihoods, _Line)
        changes = likelihoods.steps * np.array(list(itertools.product((-1, 1), repeat=size - 1)))
        vectors = np.exp(np.hstack([np.zeros((len(changes), 1)), np.cumsum(changes, axis=1)]))
    return np.asarray(vectors / (vectors @ likelihoods.prior)[:, None])


def cases() -> list[_Likelihoods]:
    return [
        *(_OneLevel(some_distribution(7, seed), epsilon) for seed, epsilon in ((1, 0.3), (2, 1.5), (3, 6.0))),
        _OneLevel(np.array([0.5, 0, 0, 0.5]), 1.0),
        _Line(some_distribution(7, 4), np.full(6, 0.4)),
        _Line(some_distribution(7, 5), np.array([0.1, 2, 0.5, 1, 0.01, 3])),
        _Line(np.array([0.5, 0, 0, 0.5]), np.array([1.0, 0.2, 0.7])),
    ]


@pytest.mark.parametrize("likelihoods", cases())
def test_the_largest_vector_is_the_largest_of_all(likelihoods: _Likelihoods) -> None:
    vectors, generator = extreme_vectors(likelihoods), np.random.default_rng(6)
    rows = generator.normal(size=(300, len(likelihoods.prior)))
    largest = likelihoods.largest(rows)
    np.testing.assert_allclose(largest @ likelihoods.prior, 1)
    np.testing.assert_allclose(np.einsum("ij,ij->i", rows, largest), (rows @ vectors.T).max(axis=1), rtol=1e-9)


@pytest.mark.parametrize("likelihoods", cases())
def test_the_excess_is_not_below_that_of_any_vector(likelihoods: _Likelihoods) -> None:
    vectors, generator = extreme_vectors(likelihoods), np.random.default_rng(7)
    for _ in range(20):
        n, multipliers = generator.normal(size=(2, len(likelihoods.prior)))
        violated, excess = _cuts(likelihoods, np.array([n, multipliers]))
        greatest = np.max((vectors @ n) ** 2 - vectors @ multipliers)
        assert max(greatest, 0) <= excess <= max(greatest, 0) + 1e-6 * np.ptp(vectors @ n) ** 2 + 1e-9
        assert ((violated @ n) ** 2 > violated @ multipliers).all()


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_two_values_have_the_known_optimum(epsilon: str) -> None:
    domain, p = R(2), np.array([0.3, 0.7])
    expected = RandomizedResponse(domain, epsilon).estimator.variance(np.array([2.0, 5.0]), p)
    for policy in (sf.Uniform(domain, epsilon), sf.Metric(domain, "absolute", epsilon)):
        bound = bound_of_one_answer(policy, np.array([2.0, 5.0]), p)
        assert bound == pytest.approx(expected, rel=1e-5)
        assert bound is not None
        assert bound <= expected


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
def test_bins_attain_the_bound_of_a_mean(epsilon: str) -> None:
    weights = np.arange(20.0)
    bound = bound_of_one_answer(sf.Uniform(R(20), epsilon), weights, uniform(20))
    assert bound is not None
    assert 1 <= ShiftedBins(R(20), epsilon).estimator.variance(weights, uniform(20)) / bound < 1.005


@pytest.mark.parametrize("epsilon", ["0.01", "0.2", "3"])
def test_geometric_noise_attains_the_bound_of_a_mean(epsilon: str) -> None:
    weights, p = np.arange(20.0), some_distribution(20, 8)
    bound = bound_of_one_answer(sf.Metric(R(20), "absolute", epsilon), weights, p)
    assert bound is not None
    assert 1 <= TruncatedGeometric(R(20), epsilon).estimator.variance(weights, p) / bound < 1.00001


def test_the_bound_holds_for_any_weights_order_and_prior() -> None:
    labels, weights = sf.Domain([4.0, 0.0, 9.0, 2.5, 5.0, 1.0]), np.array([4.0, 0, 9, 2.5, 5, 1])
    p = np.array([0.3, 0.2, 0, 0.1, 0.25, 0.15])
    policies: list[Policy] = [sf.Uniform(labels, 1), sf.Metric(labels, "absolute", "0.4")]
    for policy in policies:
        bound = bound_of_one_answer(policy, weights, p)
        assert bound is not None
        assert bound == pytest.approx(bound_of_one_answer(policy, 3 - weights, p), rel=4e-3)
        optimum = sf.optimal(policy, question=sf.Mean(), prior=0.999 * p + 0.001 / 6)
        assert bound <= optimum.value * 1.02
        assert OneBit.for_policy(policy, weights).estimator.variance(weights, p) >= bound  # type: ignore[arg-type]
    # A set of values: with two groups of equal weights, the best report is one random bit.
    share = np.array([0.0, 0, 1, 0, 1, 1])
    bound = bound_of_one_answer(policies[0], share, p)
    expected = OneBit.for_policy(sf.Uniform(labels, 1), share).estimator.variance(share, p)
    assert bound == pytest.approx(expected, rel=3e-3)


def test_no_bound_is_returned_where_none_is_known() -> None:
    weights = np.arange(4.0)
    assert bound_of_one_answer(sf.HighLow(R(4), [0], 1), weights, uniform(4)) is None
    assert bound_of_one_answer(sf.Uniform(R(4), 0), weights, uniform(4)) is None
    assert bound_of_one_answer(sf.Uniform(R(4), "inf"), weights, uniform(4)) is None
    assert bound_of_one_answer(sf.Uniform(R(4), 1), np.ones(4), uniform(4)) is None
    assert bound_of_one_answer(sf.Uniform(R(200), 1), np.arange(200.0), uniform(200)) is None
    assert bound_of_one_answer(sf.Uniform(R(4), 1), weights, uniform(4), deadline=Deadline(0)) is None


def test_a_plan_for_a_mean_states_the_bound() -> None:
    plan = sf.plan(sf.Uniform(R(30), 2), n=1_000, question=sf.Mean())
    assert plan.best.name == "shifted-bins"
    assert plan.best.ratio is not None
    assert 1 <= plan.best.ratio < 1.005
    assert "optimal" not in {row.name for row in plan.rows}
    line = sf.plan(sf.Metric(R(30), "absolute", "0.1"), n=1_000, question=sf.Mean())
    assert line.best.name == "geometric"
    assert line.best.ratio == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("domain", [sf.Domain.numbers(0, 10, bins=5), sf.Domain.numbers(edges=[0, 1, 4, 9, 10])])
def test_a_line_of_bins_has_the_bound_of_their_midpoints(domain: sf.Domain) -> None:
    midpoints = sf.Domain(domain.numeric_values.tolist())
    binned, plain = (
        sf.plan(sf.Metric(each, "absolute", "1/2"), 1, question="mean", max_seconds=5).best
        for each in (domain, midpoints)
    )
    assert binned.bound == pytest.approx(plain.bound, rel=1e-6)
    assert binned.value == pytest.approx(plain.value, rel=1e-6)
