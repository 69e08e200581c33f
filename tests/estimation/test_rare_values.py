"""Intervals and warnings for values that few people have."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import sfumato as sf
from sfumato.mechanisms.estimators.limits import ScoreLaw, confidence_limits
from sfumato.mechanisms.parts.high_low import HighLowSubset
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism

N = 50_000
WORDS = sf.Domain(["none", "flu", "hiv"])


def revealed(rows: int) -> ScoreLaw:
    """The law of a value that reports reveal: its count is binomial."""
    ones, yes, no = np.ones(rows), np.tile([0.0, 1.0], (rows, 1)), np.tile([1.0, 0.0], (rows, 1))
    return ScoreLaw(yes.copy(), yes, no, no, ones, N * ones, ones, ones)


@pytest.mark.parametrize("values", [1, 20, 1000])
def test_a_rare_revealed_value_is_covered_at_every_frequency(values: int) -> None:
    """Summed over all counts; intervals that count the observed outcome half cover 0.917 at three people of 50,000.

    ``values`` values of the same frequency with simultaneous intervals hold together, if they are independent.
    """
    counts = np.arange(600)
    low, high = confidence_limits([revealed(len(counts))], counts / N, 0.05 / values)
    assert (high > low).all()
    for people in np.geomspace(0.05, 300, 200):
        law, share = stats.binom.pmf(counts, N, people / N), people / N
        missed = float(law[(low > share) | (high < share)].sum())
        assert (1 - missed) ** values >= 0.944


@pytest.mark.slow
def test_intervals_of_rare_values_hold_in_surveys() -> None:
    """60 surveys at fixed seeds: a coverage of 0.944 fails with a probability below 1e-6."""
    domain, truth = sf.Domain.range(8), np.array([0, 1, 5, 20, 100, 0, 0, 0]) / N
    truth[5:] = (1 - truth.sum()) / 3
    mechanisms = [
        HadamardResponse(domain, 1),
        RandomizedResponse(domain, 8),
        HighLowSubset(domain, [5, 6, 7], 1),
    ]
    for mechanism, method in zip(mechanisms, ("unbiased", "simplex", "simplex"), strict=True):
        held = np.zeros(8)
        for seed in range(60):
            run = sf.simulate(mechanism, n=N, truth=truth, method=method, seed=seed, one_by_one=False).estimate
            low, high = run.interval()
            assert ((low >= 0) & (low < high) & (high <= 1)).all()
            held += (low <= truth) & (truth <= high)
        assert stats.binom.cdf(held.min(), 60, 0.944) > 1e-6 / 8


@pytest.mark.parametrize("n", [1, 2, 4])
def test_sums_from_reports_that_do_not_distinguish_all_values_are_covered(n: int) -> None:
    """Summed over all counts, at corners and random distributions. Half-counted outcomes gave 0.88 at n = 4."""
    tables = [
        [["3/4", "1/4"], ["1/2", "1/2"], ["1/4", "3/4"]],
        [["0.9", "0.1"], ["0.9", "0.1"], ["0.2", "0.8"]],
        [["0.98", "0.01", "0.01"], ["0.01", "0.98", "0.01"], ["0.01", "0.98", "0.01"]],
    ]
    distributions = [*np.eye(3), *np.random.default_rng(0).dirichlet(np.full(3, 0.5), 20)]
    for table in tables:
        mechanism = TableMechanism.from_matrix(sf.Domain.range(3), table)
        matrix = mechanism.matrix()
        counts = np.array([c for c in itertools.product(range(n + 1), repeat=matrix.shape[1]) if sum(c) == n])
        estimates = [sf.estimate(mechanism, sf.Aggregate(mechanism.hash, n, c)) for c in counts]
        for weights in ([0, 1, 2], [1, 0, 0], [0, 0, 1]):
            if not estimates[0].estimator.identifies(np.array(weights, float)):
                continue
            low, high = np.array([estimate.linear(weights).interval() for estimate in estimates]).T
            for p in distributions:
                answer, law = float(weights @ p), stats.multinomial.pmf(counts, n, p @ matrix)
                assert law[(low <= answer + 1e-9) & (answer - 1e-9 <= high)].sum() >= 0.944


# -- marks and warnings ----------------------------------------------------------------------------------------


def estimate_of(epsilon: int | str, *counts: int, method: str = "unbiased") -> sf.Estimate:
    mechanism = RandomizedResponse(WORDS, epsilon)
    return sf.estimate(mechanism, sf.Aggregate(mechanism.hash, sum(counts), np.array(counts)), method)


def test_frequencies_outside_the_possible_range_are_marked() -> None:
    estimate = estimate_of(1, 60, 30, 10)
    assert estimate.outside.tolist() == [True, False, True]
    lines = str(estimate).splitlines()
    assert lines[2].endswith("  above 1")
    assert lines[4].endswith("  below 0")
    assert "1 of 3 values cannot be distinguished from zero." in lines
    assert any(line.startswith("2 frequencies lie outside [0, 1]") for line in lines)
    projected = estimate_of(1, 60, 30, 10, method="simplex")
    assert not projected.outside.any()
    assert "outside" not in str(projected)
    assert "below 0" not in str(projected)


def test_too_few_reports_are_warned_of() -> None:
    one = estimate_of(1, 1, 0, 0)
    assert one.warnings == ("no frequency can be distinguished from zero with 1 report",)
    assert one.indistinguishable.all()
    assert str(one).endswith(f"WARNING: {one.warnings[0]}")
    assert one.warnings[0] in one._repr_html_()
    many = estimate_of(1, 5000, 3000, 2500)
    assert many.warnings == ()
    assert not many.indistinguishable.any()
    most = estimate_of(2, 80, 12, 10)
    assert most.warnings == ("most frequencies, 2 of 3, cannot be distinguished from zero with 102 reports",)


def test_values_that_differ_from_zero_by_chance_are_warned_of() -> None:
    policy = sf.Uniform(sf.Domain.range(1000), 1)
    result = sf.simulate(policy, n=500, seed=1).estimate
    assert 0 < (~result.indistinguishable).sum() < 50
    (warning,) = result.warnings
    assert warning == (
        "no frequency can be distinguished from zero with 500 reports if all 1,000 values are compared: noise alone "
        "makes about 25 look different"
    )
    # One value that stands out is not noise.
    truth = np.append(0.5, np.full(999, 0.5 / 999))
    (warning,) = sf.simulate(policy, n=5000, truth=truth, seed=1).estimate.warnings
    assert warning.startswith("most frequencies,")


@pytest.mark.parametrize(("epsilon", "warns"), [("inf", True), (12, True), (3, False)])
def test_reports_without_noise_are_warned_of(epsilon: int | str, warns: bool) -> None:
    message = "the reports contain almost no noise: a single report practically is a person's answer"
    assert (message in estimate_of(epsilon, 600, 300, 100).warnings) == warns


def test_a_single_value_and_sums_have_no_warnings() -> None:
    mechanism = RandomizedResponse(sf.Domain(["only"]), 1)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, [0] * 5))
    assert estimate.warnings == ()
    assert not estimate.indistinguishable.any()
    table = TableMechanism.from_matrix(sf.Domain.range(3), [["3/4", "1/4"], ["1/2", "1/2"], ["1/4", "3/4"]])
    assert sf.estimate(table, sf.aggregate(table, [0, 1])).warnings == ()


def test_values_that_are_distinguished_from_zero_have_a_positive_limit() -> None:
    domain = sf.Domain.range(300)
    for mechanism in (HadamardResponse(domain, 1), HighLowSubset(domain, list(range(20)), 1)):
        run = sf.simulate(mechanism, n=20_000, truth="zipf", seed=3, one_by_one=False).estimate
        low: npt.NDArray[np.float64] = run.interval()[0]
        assert (run.indistinguishable == (low <= 0)).all()
