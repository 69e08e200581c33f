"""Estimates over time: covariances by enumeration, bounds that hold, panels, rotating samples, and clear errors."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import linprog

import sfumato as sf
from sfumato.errors import InvalidInput, LimitExceeded, UnknownLabel
from sfumato.estimation import WaveTable
from sfumato.mechanisms import shared_moments
from support.family_examples import all_examples
from support.mutations import assert_read_or_rejected

DOMAIN = sf.Domain(["none", "flu", "hiv"])
RESPONSE = sf.mechanisms.RandomizedResponse(DOMAIN, "ln 3")
SUBSET = sf.mechanisms.SubsetSelection(sf.Domain.range(5), 1, size=2)
#: One mechanism of every class.
LAWS = {made.name: made for examples in all_examples() for made in examples.laws("1")}


def some_reports(mechanism: Any, count: int, seed: int) -> Any:
    values = np.random.default_rng(seed).integers(len(mechanism.domain), size=count)
    return np.asarray(sf.privatize(mechanism, mechanism.domain.decode(values), stream=sf.InsecureSeeded(seed)))


def scores_of(mechanism: Any, reports: Any) -> Any:
    """Return the frequencies that each report alone estimates."""
    rows = (sf.aggregate(mechanism, reports[i : i + 1]).counts for i in range(len(reports)))
    return np.array([mechanism.estimator.frequencies(row.astype(float)) for row in rows])


# -- pairs of reports ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", LAWS.values(), ids=LAWS)
def test_linked_covariances_are_those_of_the_scores_of_people(mechanism: Any) -> None:
    first, second = some_reports(mechanism, 40, 1), some_reports(mechanism, 40, 2)
    pairs = sf.aggregate_pairs(mechanism, first, second)
    rows = [mechanism.report_format.indicators(mechanism.report_format.validate(each)) for each in (first, second)]
    assert np.array_equal(pairs.joint, rows[0].T.astype(int) @ rows[1])
    assert np.array_equal(pairs.first.counts, rows[0].sum(axis=0))
    if not np.isfinite(mechanism.risk(1)):
        return
    scores = [scores_of(mechanism, each) for each in (first, second)]
    expected = [np.cov(scores[0][:, v], scores[1][:, v])[0, 1] for v in range(len(mechanism.domain))]
    counts = {1: pairs.first, 2: pairs.second}
    waves = sf.estimate_waves(mechanism, counts, pairs={(1, 2): pairs})
    scale = float(np.abs(scores).max()) ** 2
    assert np.allclose(waves._covariance(1, 2, least=True) * 40, expected, atol=1e-9 * scale)
    assert np.allclose(waves._covariance(2, 1, least=False) * 40, expected, atol=1e-9 * scale)


def test_pairs_merge_and_are_data() -> None:
    first, second = some_reports(SUBSET, 30, 1), some_reports(SUBSET, 30, 2)
    pairs = sf.aggregate_pairs(SUBSET, first, second)
    parts = [sf.aggregate_pairs(SUBSET, first[part], second[part]) for part in (slice(0, 7), slice(7, 30))]
    assert parts[0].merge(parts[1]) == pairs
    assert pickle.loads(pickle.dumps(pairs)) == pairs
    assert not pairs.joint.flags.writeable
    assert repr(pairs) == "PairCounts(n=30, counts=5x5)"
    empty = sf.aggregate_pairs(RESPONSE, [], [])
    assert empty.n == 0
    assert empty.merge(sf.aggregate_pairs(RESPONSE, [0], [2])).joint[0, 2] == 1


def test_pairs_read_columns() -> None:
    expected = sf.aggregate_pairs(RESPONSE, [0, 1, 2], [0, 2, 2])
    assert sf.aggregate_pairs(RESPONSE, pd.Series([0, 1, 2]), pl.Series([0, 2, 2])) == expected


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0, 1], [0], "second must have one report for each report of first; got 2 and 1 reports"),
        ([0, 3], [0, 1], "first: the report in row 1 must be in 0 … 2; got 3"),
        ([0, 1], [0, None], "second"),
    ],
)
def test_invalid_pairs_are_rejected(first: Any, second: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sf.aggregate_pairs(RESPONSE, first, second)


def test_impossible_pairs_are_rejected() -> None:
    pairs = sf.aggregate_pairs(RESPONSE, [0, 1], [0, 2])
    with pytest.raises(InvalidInput, match="be counts of pairs of these reports"):
        sf.PairCounts(pairs.first, pairs.second, pairs.joint * 2)
    with pytest.raises(InvalidInput, match=r"be integers of shape \(3, 3\)"):
        sf.PairCounts(pairs.first, pairs.second, pairs.joint[:2])
    with pytest.raises(InvalidInput, match="have the same mechanism and people"):
        sf.PairCounts(pairs.first, sf.aggregate(RESPONSE, [0]), pairs.joint)
    with pytest.raises(LimitExceeded, match="joint counts"):
        sf.aggregate_pairs(sf.mechanisms.RandomizedResponse(sf.Domain.range(4000), 1), [0], [0])


# -- covariances -----------------------------------------------------------------------------------------------------


def joint_law(mechanism: Any, path: Any) -> Any:
    """Return the law of two reports of one person, if independent reports follow the joint law ``path`` of values."""
    matrix = mechanism.matrix()
    return np.einsum("ab,ai,bj->ij", path, matrix, matrix)


def test_the_linked_covariance_is_unbiased_by_enumeration() -> None:
    path = np.array([[0.5, 0.1, 0.0], [0.05, 0.2, 0.05], [0.0, 0.0, 0.1]])
    law = joint_law(RESPONSE, path)
    outcomes = list(itertools.product(range(3), repeat=2))
    expected = np.zeros(3)
    for people in itertools.product(outcomes, repeat=2):
        probability = np.prod([law[pair] for pair in people])
        first, second = zip(*people, strict=True)
        pairs = sf.aggregate_pairs(RESPONSE, list(first), list(second))
        waves = sf.estimate_waves(RESPONSE, {1: pairs.first, 2: pairs.second}, pairs={(1, 2): pairs})
        expected += probability * waves._covariance(1, 2, least=True)
    # Two independent reports about one value estimate the indicator of the value; n = 2 people.
    exact = (np.diag(path) - path.sum(axis=0) * path.sum(axis=1)) / 2
    assert np.allclose(expected, exact, atol=1e-12)


def wave_counts(mechanism: Any, p: Any, n: int) -> sf.Aggregate:
    """Return the counts that n people are expected to have, rounded."""
    law = mechanism.estimator.expected_counts(np.asarray(p, float)) * n
    counts = np.floor(law).astype(np.int64)
    counts[np.argsort(counts - law)[: n - int(counts.sum())]] += 1
    return sf.Aggregate(mechanism.hash, n, counts)


@pytest.mark.parametrize("rate", [0.05, 0.15, 0.4, 1.0, None])
@pytest.mark.parametrize("q", [[0.5, 0.3, 0.2], [0.45, 0.35, 0.2], [0.9, 0.05, 0.05]])
def test_bounds_contain_the_covariance_of_every_joint_law(rate: float | None, q: list[float]) -> None:
    """People may change in every way that the rates allow; devices may send the same report again or a new one."""
    p, n = np.array([0.5, 0.3, 0.2]), 10**8
    counts = {1: wave_counts(RESPONSE, p, n), 2: wave_counts(RESPONSE, q, n)}
    waves = sf.estimate_waves(RESPONSE, counts, overlap=1, change_rate=rate)
    least, greatest = (waves._covariance(1, 2, least=side) * n for side in (True, False))
    again = np.array([shared_moments(RESPONSE, unit) for unit in np.eye(3)])
    for v in range(3):
        if 0.5 * np.abs(p - q).sum() > (1 if rate is None else rate):
            continue  # no joint law has these frequencies
        ends = [
            extreme_covariance(p, np.array(q), rate, np.eye(3)[v], 1),
            extreme_covariance(p, np.array(q), 1, again[:, v], -1),
        ]
        exact = np.array(ends) - p[v] * q[v]
        assert least[v] == pytest.approx(exact[0], abs=1e-3)  # no bound from the same numbers is better
        assert greatest[v] >= exact[1] - 1e-3


@pytest.mark.parametrize("rate", [0.05, 0.15, 0.4, None])
@pytest.mark.parametrize("q", [[0.5, 0.3, 0.2], [0.45, 0.35, 0.2]])
def test_shared_answers_narrow_the_bounds(rate: float | None, q: list[float]) -> None:
    """Two reports of a memoized mechanism about one value share the permanent answer."""
    policies = sf.Uniform(DOMAIN, 1), sf.Uniform(DOMAIN, 2)
    memoized = sf.design(policies[0], lifetime=policies[1])
    p, n = np.array([0.5, 0.3, 0.2]), 10**8
    moments = np.array([shared_moments(memoized, unit) for unit in np.eye(3)])
    tables = []
    for mechanism in (memoized, memoized.single):  # type: ignore[attr-defined]
        counts = {1: wave_counts(mechanism, p, n), 2: wave_counts(mechanism, q, n)}
        tables.append(sf.estimate_waves(mechanism, counts, overlap=1, change_rate=rate))
    least, fresh = (waves._covariance(1, 2, least=True) * n for waves in tables)
    exact = [extreme_covariance(p, np.array(q), rate, moments[:, v], 1) - p[v] * q[v] for v in range(3)]
    assert (least <= np.array(exact) + 1e-3).all()
    assert (least >= np.array(exact) - 0.12).all()
    assert (least >= fresh - 1e-9).all()
    assert (tables[0].mean().standard_errors < tables[1].mean().standard_errors).all()


def test_a_mean_over_waves_of_unchanged_people_has_its_exact_error() -> None:
    """If no person changes, the bound of Cauchy and Schwarz is reached."""
    domain, n, waves = sf.Domain.range(10), 10**6, 10
    mechanism = sf.design(sf.Uniform(domain, 1), lifetime=sf.Uniform(domain, 4))
    p = np.arange(1, 11) / 55
    counts = sf.Aggregate(mechanism.hash, n, np.rint(mechanism.estimator.expected_counts(p) * n).astype(np.int64))
    mean = sf.estimate_waves(mechanism, dict.fromkeys(range(waves), counts), overlap=1).mean()
    one, shared = mechanism.estimator.variances(p), shared_moments(mechanism, p) - p**2
    assert np.allclose(mean.standard_errors**2 * n, one / waves + (1 - 1 / waves) * shared, rtol=1e-3)


@pytest.mark.parametrize("epsilon", ["inf", "20"])
def test_revealed_values_have_the_errors_of_a_sample(epsilon: str) -> None:
    mechanism = sf.mechanisms.RandomizedResponse(DOMAIN, epsilon)
    first, second = [0] * 60 + [1] * 30 + [2] * 10, [0] * 50 + [1] * 40 + [2] * 10
    pairs = sf.aggregate_pairs(mechanism, first, second)
    waves = sf.estimate_waves(mechanism, {1: pairs.first, 2: pairs.second}, pairs={(1, 2): pairs})
    shares = [np.bincount(each) / 100 for each in (first, second)]
    variances = sum((share * (1 - share) for share in shares), np.zeros(3))
    together = np.diag(pairs.joint) / 100 - shares[0] * shares[1]
    expected = np.maximum(variances - 2 * together * 100 / 99, 0) / 100
    assert np.allclose(waves.change(1, 2).standard_errors ** 2, expected, atol=1e-6)


def test_indistinguishable_values_are_rejected() -> None:
    mechanism = sf.mechanisms.RandomizedResponse(DOMAIN, 0)
    with pytest.raises(InvalidInput, match="epsilon is 0"):
        sf.estimate_waves(mechanism, {1: sf.aggregate(mechanism, [0])})


def extreme_covariance(p: Any, q: Any, rate: float | None, moments: Any, sign: int) -> float:
    """Return the least (sign 1) or greatest (sign -1) shared moment over all joint laws with marginals p and q."""
    size = len(p)
    rows = [np.kron(np.eye(size)[x], np.ones(size)) for x in range(size)]
    columns = [np.kron(np.ones(size), np.eye(size)[x]) for x in range(size)]
    unchanged = np.eye(size).ravel()
    result = linprog(
        sign * np.diag(moments).ravel(),
        A_eq=np.array(rows + columns),
        b_eq=np.concatenate([p, q]),
        A_ub=-unchanged[None],
        b_ub=[-(0 if rate is None else 1 - rate) + 1e-9],
    )
    assert result.status == 0
    return float(sign * result.fun)


def test_overlaps_and_rates_narrow_the_errors() -> None:
    n = 1000
    counts = {week: wave_counts(RESPONSE, [0.5, 0.3, 0.2], n) for week in (1, 2, 3)}

    def error(**options: Any) -> Any:
        return sf.estimate_waves(RESPONSE, counts, **options).change(1, 3).standard_errors

    free, panel, fresh = error(), error(overlap=1), error(overlap=0)
    assert np.allclose(fresh**2, 2 * sf.estimate(RESPONSE, counts[1]).standard_errors ** 2)
    assert np.array_equal(free, panel)  # without a rate, a panel of people who all change is worst for rare values
    assert (panel >= fresh).all()
    assert (error(overlap=0.5) <= panel).all()
    assert np.allclose(error(overlap=0.5), error(overlap={(3, 1): 500}))
    assert np.array_equal(error(overlap={(1, 2): 500}), free)  # nothing is known about waves 1 and 3
    assert (error(overlap=1, change_rate=0.05) < error(overlap=1, change_rate=0.1)).all()
    # Two steps of 10% are at most 20% between the first and the third wave.
    assert np.allclose(
        error(overlap=1, change_rate=0.1),
        sf.estimate_waves(RESPONSE, {1: counts[1], 3: counts[3]}, overlap=1, change_rate=0.2)
        .change(1, 3)
        .standard_errors,
    )
    assert np.allclose(error(change_rate=0.05), fresh)  # perhaps all people are different


def test_a_mean_over_waves_of_different_people_has_the_error_of_a_mean() -> None:
    counts = {week: wave_counts(RESPONSE, [0.5, 0.3, 0.2], 1000) for week in range(4)}
    one = sf.estimate(RESPONSE, counts[0]).standard_errors
    apart = sf.estimate_waves(RESPONSE, counts, overlap=0).mean()
    assert np.allclose(apart.standard_errors, one / 2)
    assert apart.is_linked
    together = sf.estimate_waves(RESPONSE, counts, overlap=1).mean()
    assert np.allclose(together.standard_errors, one)  # devices may have sent the same reports again
    assert not together.is_linked
    alone = sf.estimate_waves(RESPONSE, {0: counts[0]}).mean()
    assert np.allclose(alone.standard_errors, one)
    assert alone.is_linked


def test_equal_reports_have_no_error_of_change_but_a_positive_interval() -> None:
    reports = [0] * 50 + [1] * 30 + [2] * 20
    pairs = sf.aggregate_pairs(RESPONSE, reports, reports)
    change = sf.estimate_waves(RESPONSE, {1: pairs.first, 2: pairs.second}, pairs={(1, 2): pairs}).change(1, 2)
    assert np.allclose(change.standard_errors, 0, atol=1e-6)
    low, high = change.interval()
    assert (low < 0).all()
    assert (high > 0).all()


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def waves() -> sf.WaveEstimates:
    reports = [some_reports(RESPONSE, 200, seed) for seed in (1, 2, 3)]
    counts = {f"w{i}": sf.aggregate(RESPONSE, each) for i, each in enumerate(reports)}
    pairs = {("w0", "w1"): sf.aggregate_pairs(RESPONSE, reports[0], reports[1])}
    return sf.estimate_waves(RESPONSE, counts, pairs=pairs, overlap=1)


def test_waves_are_a_table_and_data(waves: sf.WaveEstimates) -> None:
    assert list(waves) == ["w0", "w1", "w2"]
    assert len(waves) == 3
    assert waves["w1"] == sf.estimate(RESPONSE, waves["w1"].counts)
    assert waves.mechanism == RESPONSE
    assert ["w0"] not in waves
    frame = waves.to_pandas()
    assert list(frame.columns) == waves.to_arrow().column_names
    assert frame["wave"].tolist() == ["w0"] * 3 + ["w1"] * 3 + ["w2"] * 3
    assert frame["frequency"].tolist()[3:6] == waves["w1"].frequencies.tolist()
    assert pickle.loads(pickle.dumps(waves)) == waves
    assert repr(waves) == "WaveEstimates(waves=3, n=600, values=3, linked=1)"
    assert "3 waves" in str(waves)
    assert waves._repr_html_().startswith("<table>")
    assert waves.plot().axes[0].get_xlabel() == "wave"
    assert len(waves.plot(values=["hiv"]).axes[0].lines) == 1


def test_changes_are_a_table_and_data(waves: sf.WaveEstimates) -> None:
    change = waves.change("w0", "w1")
    assert isinstance(change, WaveTable)
    assert np.allclose(change.numbers, waves["w1"].unbiased - waves["w0"].unbiased)
    assert list(change) == ["none", "flu", "hiv"]
    assert change["flu"].value == change.numbers[1]
    assert change["flu"].interval() == tuple(limit[1] for limit in change.interval())
    assert change == pickle.loads(pickle.dumps(change))
    assert list(change.to_pandas().columns) == ["value", "change", "standard_error", "low", "high"]
    assert change.to_arrow().num_rows == 3
    assert change.is_linked
    assert "upper bounds" not in str(change)
    assert "upper bounds" in str(waves.change("w0", "w2"))
    assert np.allclose(waves.change("w1", "w0").numbers, -change.numbers)
    assert np.allclose(waves.change("w1", "w0").standard_errors, change.standard_errors)
    mean = waves.mean()
    assert np.allclose(mean.numbers, np.mean([waves[wave].unbiased for wave in waves], axis=0))
    assert "mean over 3 waves" in str(mean)
    for table in (change, mean):
        assert table.plot().axes[0].get_xlabel() == "value"


def test_results_are_exact_through_json(waves: sf.WaveEstimates) -> None:
    rotating = {("w0", "w1"): 150, ("w1", "w2"): 100}
    other = sf.estimate_waves(RESPONSE, {w: waves[w].counts for w in waves}, overlap=rotating, change_rate=0.1)
    for result in (waves, other, waves.change("w0", "w1"), waves.mean(), waves.pairs["w0", "w1"]):
        document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        again = type(result).from_dict(document)
        assert again == result
        assert again.to_dict() == document
        with pytest.raises(InvalidInput):
            type(result).from_dict({**document, "colour": "red"})
    assert sf.WaveEstimates.from_dict(other.to_dict()).change("w0", "w2") == other.change("w0", "w2")


@pytest.mark.slow
def test_malformed_documents_are_rejected_and_nothing_else_happens() -> None:
    mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), 1)
    pairs = sf.aggregate_pairs(mechanism, [0, 1, 1], [0, 0, 1])
    result = sf.estimate_waves(
        mechanism, {1: pairs.first, 2: pairs.second}, pairs={(1, 2): pairs}, overlap={(1, 2): 3}, change_rate=0.5
    )
    for each in (pairs, result, result.mean()):
        assert_read_or_rejected(type(each), json.loads(json.dumps(each.to_dict())))


def test_many_waves_and_values_are_shortened() -> None:
    mechanism = sf.mechanisms.RandomizedResponse(sf.Domain.range(30), 3)
    counts = {week: sf.aggregate(mechanism, some_reports(mechanism, 50, week)) for week in range(25)}
    waves = sf.estimate_waves(mechanism, counts)
    assert "… 5 more" in str(waves)
    assert "the 5 most frequent of 30 values" in str(waves)
    assert "… 10 more" in str(waves.change(0, 24))


def test_one_value_never_changes() -> None:
    mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["all"]), 1)
    counts = {week: sf.aggregate(mechanism, [0] * 5) for week in (1, 2)}
    change = sf.estimate_waves(mechanism, counts).change(1, 2)
    assert change["all"].value == 0
    assert change["all"].standard_error == 0


def test_many_values_need_no_matrix_without_a_rate() -> None:
    mechanism = sf.mechanisms.RandomizedResponse(sf.Domain.range(10_000), 5)
    counts = {week: sf.aggregate(mechanism, some_reports(mechanism, 100, week)) for week in (1, 2)}
    waves = sf.estimate_waves(mechanism, counts, overlap=1)
    assert waves.change(1, 2).standard_errors.min() > 0
    assert waves.mean().standard_errors.min() > 0


COUNTS = sf.aggregate(RESPONSE, [0, 1, 2])
PAIRS = sf.aggregate_pairs(RESPONSE, [0, 1, 2], [0, 1, 2])


@pytest.mark.parametrize(
    ("aggregates", "options", "message"),
    [
        ({}, {}, "contain at least one wave"),
        ([COUNTS], {}, "be a mapping from names of waves"),
        ({1: sf.Aggregate.empty(RESPONSE)}, {}, "every wave must have at least one report; got no reports in 1"),
        ({1: sf.aggregate(SUBSET, some_reports(SUBSET, 3, 1))}, {}, "mechanism"),
        ({1: COUNTS}, {"method": "efficient"}, "method must be one of unbiased, simplex, mle"),
        ({1: COUNTS}, {"change_rate": 1.5}, "change_rate must lie between 0 and 1; got 1.5"),
        ({1: COUNTS}, {"overlap": 7}, "overlap must be a share between 0 and 1; got 7"),
        ({1: COUNTS}, {"overlap": {(1, 2): 3}}, r"overlap must have keys that name two of the waves \[1\]"),
        ({1: COUNTS, 2: COUNTS}, {"overlap": {(1, 2): 4}}, "be a number of people from 0 to 3; got 4"),
        ({1: COUNTS, 2: COUNTS}, {"pairs": {(1, 1): PAIRS}}, "pairs must have keys that name two"),
        ({1: COUNTS, 2: COUNTS}, {"pairs": {(1, 2): COUNTS}}, "PairCounts"),
        ({1: sf.aggregate(RESPONSE, [0]), 2: COUNTS}, {"pairs": {(1, 2): PAIRS}}, "count only reports of the waves"),
    ],
)
def test_invalid_input_is_rejected(aggregates: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sf.estimate_waves(RESPONSE, aggregates, **options)


def test_unknown_waves_and_values_are_rejected(waves: sf.WaveEstimates) -> None:
    with pytest.raises(UnknownLabel, match="the wave must be one of"):
        waves["w9"]
    with pytest.raises(InvalidInput, match="be two different waves; got 'w0' twice"):
        waves.change("w0", "w0")
    with pytest.raises(UnknownLabel, match="be a value of"):
        waves.change("w0", "w1")["cold"]


def test_reports_that_do_not_distinguish_values_are_rejected() -> None:
    table = sf.mechanisms.TableMechanism.from_matrix(
        sf.Domain.range(3), [["3/4", "1/4"], ["1/2", "1/2"], ["1/4", "3/4"]]
    )
    with pytest.raises(InvalidInput, match="distinguish all values"):
        sf.estimate_waves(table, {1: sf.aggregate(table, [0, 1])})


# -- devices that report about earlier values --------------------------------------------------------------------------


def waves_of(mechanism: Any, waves: int, **options: Any) -> sf.WaveEstimates:
    values = ["none", "flu", "hiv"] * 40
    counts = {
        wave: sf.aggregate(mechanism, sf.privatize(mechanism, values, sf.InsecureSeeded(wave))) for wave in range(waves)
    }
    return sf.estimate_waves(mechanism, counts, overlap=1, **options)


@pytest.mark.parametrize(
    ("settings", "rate", "biases"),
    [
        ({}, 0.1, [0, 0, 0, 0, 0]),
        ({"max_changes": 2}, 0.1, [0, 0, 0, 0, 0]),  # one answer per value
        ({"max_changes": 1}, 0.1, [0, 0, 0.1, 0.15, 0.2]),
        ({"max_changes": 1}, None, [0, 0, 1, 1, 1]),
        ({"max_changes": 0}, 0.1, [0, 0.1, 0.2, 0.3, 0.4]),
        ({"refresh_every": 2}, 0.1, [0, 0.1, 0, 0.1, 0]),
        ({"refresh_every": 2, "max_changes": 1}, 0.1, [0, 0.1, 0, 0.1, 0.2]),
    ],
)
def test_the_bias_of_exhausted_memories_is_reported(
    settings: dict[str, Any], rate: float | None, biases: list[float]
) -> None:
    mechanism: Any = sf.design(sf.Uniform(DOMAIN, 1), lifetime=sf.Uniform(DOMAIN, 2), **settings)
    result = waves_of(mechanism, 5, change_rate=rate)
    assert result.greatest_biases == pytest.approx(biases)
    assert bool(result.warnings) == any(biases)
    assert all(warning in str(result) for warning in result.warnings)
    # Every history with at most this share of changes has a smaller bias, also if the same people always change.
    random = np.random.default_rng(4)
    for _ in range(20):
        people = 200
        true = np.repeat(random.integers(3, size=(people, 1)), 5, axis=1)
        for wave in range(1, 5):
            changing = np.arange(people) < (people if rate is None else round(rate * people))
            true[changing, wave:] = random.integers(3, size=(int(changing.sum()), 1))
        stale = (mechanism.effective_values(true) != true).mean(axis=0)
        assert (stale <= result.greatest_biases + 1e-12).all()


def test_the_warning_about_the_bias_names_the_wave_and_the_share() -> None:
    mechanism = sf.design(sf.Uniform(DOMAIN, 1), lifetime=sf.Uniform(DOMAIN, 2), max_changes=1)
    (warning,) = waves_of(mechanism, 4, change_rate=0.1).warnings
    assert warning == (
        "Devices may report about earlier values: up to 15% of people in wave 3 if at most 10% of people change per "
        "wave. Frequencies may be wrong by as much, which errors and intervals do not include."
    )
    assert waves_of(RESPONSE, 4).warnings == ()
