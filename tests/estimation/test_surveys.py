"""Answers by group, weighted and post-stratified answers, and comparisons."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.collecting import GroupedAggregate
from sfumato.errors import InvalidInput, LimitExceeded, UnknownLabel
from sfumato.estimation import LinearEstimate, WeightedEstimate
from sfumato.mechanisms import Mechanism, RandomizedResponse, TableMechanism
from support import ROOT
from support.mutations import assert_read_or_rejected

NUMBERS = sf.Domain.range(4)
FULL = RandomizedResponse(NUMBERS, "ln 8")
#: Two reports, which determine the mean only.
LINE = TableMechanism.from_matrix(NUMBERS, [["4/5", "1/5"], ["3/5", "2/5"], ["2/5", "3/5"], ["1/5", "4/5"]])
MECHANISMS = pytest.mark.parametrize("mechanism", [FULL, LINE], ids=["complete", "partial"])


def reports(mechanism: Mechanism, n: int, seed: int = 1) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(seed).choice(4, n, p=[0.5, 0.25, 0.15, 0.1])
    return np.asarray(sf.privatize(mechanism, values, sf.InsecureSeeded(seed)))


def survey(mechanism: Mechanism, n: int = 300, seed: int = 1) -> sf.GroupedEstimate:
    """Return estimates by region, age and weight."""
    generator = np.random.default_rng(seed)
    by = {"region": generator.choice(["n", "s", "w"], n).tolist(), "age": generator.integers(0, 2, n)}
    weights = generator.choice([1, 2, 5], n)
    return sf.estimate_groups(
        mechanism, sf.aggregate_groups(mechanism, reports(mechanism, n, seed), by, weights=weights)
    )


def weighted_total(grouped: sf.GroupedEstimate) -> WeightedEstimate:
    """Return the weighted mean of all people."""
    (number,) = grouped.answers("mean", by=[]).total
    assert isinstance(number, WeightedEstimate)
    return number


def same(first: LinearEstimate, second: LinearEstimate) -> bool:
    numbers = [
        (each._unbiased, each.standard_error, *each.interval(0.9), each.p_value(0.3)) for each in (first, second)
    ]
    return numbers[0] == numbers[1]


# -- answers in groups -------------------------------------------------------------------------------------------


@MECHANISMS
def test_answers_in_groups_are_those_of_their_estimates(mechanism: Mechanism) -> None:
    counts = sf.aggregate_groups(mechanism, reports(mechanism, 200), ["a", "b"] * 100)
    grouped = sf.estimate_groups(mechanism, counts)
    answers = grouped.answers("mean")
    assert list(answers) == ["a", "b"]
    assert not answers.is_weighted
    for group in "ab":
        assert same(answers[group][0], grouped[group].mean())
        np.testing.assert_allclose(answers.covariance(group), grouped[group].answers("mean").covariance)
    assert same(answers.total[0], grouped.total.mean())
    assert answers.n("a") == 100
    assert answers.n() == 200
    with pytest.raises(UnknownLabel, match="be one of"):
        answers["c"]


def test_columns_that_are_left_out_are_merged_by_their_counts() -> None:
    generator = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"report": reports(FULL, 400), "sex": generator.choice(["f", "m"], 400), "age": [30, 40] * 200}
    )
    grouped = sf.estimate_groups(FULL, frame, by=["sex", "age"])
    assert grouped.columns == ("sex", "age")
    assert grouped["f", 30].n == int(((frame.sex == "f") & (frame.age == 30)).sum())
    by_sex = grouped.answers(by="sex")
    direct = sf.estimate_groups(FULL, frame, by="sex")
    assert by_sex.names == (0, 1, 2, 3)
    for sex, x in itertools.product("fm", range(4)):
        assert same(by_sex[sex][x], direct[sex][x])
    table = grouped.answers("mean").to_pandas()
    assert table.columns.tolist() == ["sex", "age", "reports", "answer", "value", "standard_error", "low", "high"]
    assert len(table) == 4


@pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "arrow", "dict"]
)
def test_groups_of_frames(library: Any) -> None:
    columns = {"report": reports(FULL, 60).tolist(), "region": ["n", "s", None] * 20, "w": [1, 2, 1, 1, 2, 3] * 10}
    frame = library(columns)
    with pytest.raises(InvalidInput, match="the group in row 2 must not be missing"):
        sf.estimate_groups(FULL, frame, by="region")
    grouped = sf.estimate_groups(FULL, frame, by="region", weight="w", missing="unknown")
    assert list(grouped) == [("n", 1), ("s", 2), ("unknown", 1), ("unknown", 3)]
    assert grouped.weight == "w"
    assert set(grouped.answers("mean")) == {"n", "s", "unknown"}
    with pytest.raises(InvalidInput, match="every column must be one of"):
        sf.estimate_groups(FULL, frame, by="county")
    with pytest.raises(InvalidInput, match="by must name columns of the frame"):
        sf.estimate_groups(FULL, frame)


def test_options_of_frames_are_rejected_with_counts() -> None:
    counts = sf.aggregate_groups(FULL, [0, 1], ["a", "b"])
    with pytest.raises(InvalidInput, match="by must be given only with a frame"):
        sf.estimate_groups(FULL, counts, by="region")
    with pytest.raises(InvalidInput, match="quantile"):
        sf.estimate_groups(FULL, counts).answers("quantiles")
    with pytest.raises(InvalidInput, match="different columns among"):
        sf.estimate_groups(FULL, counts).answers(by="region")
    with pytest.raises(InvalidInput, match="every group must have a name"):
        sf.GroupedEstimate({None: sf.estimate(FULL, counts["a"])}, sf.estimate(FULL, counts["a"])).answers()


# -- weights -----------------------------------------------------------------------------------------------------


@MECHANISMS
@pytest.mark.parametrize("weight", [1, 7, 2**53])
def test_equal_weights_give_exactly_the_unweighted_answer(mechanism: Mechanism, weight: int) -> None:
    sample = reports(mechanism, 150)
    counts = sf.aggregate_groups(mechanism, sample, ["a", "b", "b"] * 50, weights=[weight] * 150)
    answers = sf.estimate_groups(mechanism, counts).answers("mean")
    plain = sf.estimate(mechanism, sf.aggregate(mechanism, sample)).mean()
    (number,) = answers.total
    assert isinstance(number, WeightedEstimate)
    assert same(number, plain)
    assert (number.design_effect, number.effective_n) == (1.0, 150.0)
    in_a = sf.estimate(mechanism, sf.aggregate(mechanism, sample[::3])).mean()
    assert same(answers["a"][0], in_a)


@MECHANISMS
def test_weighted_means_and_errors_are_those_of_single_reports(mechanism: Mechanism) -> None:
    n = 240
    sample, weights = reports(mechanism, n), np.random.default_rng(3).choice([1, 4, 9], n)
    counts = sf.aggregate_groups(mechanism, sample, weights=weights)
    number = weighted_total(sf.estimate_groups(mechanism, counts))
    scores = mechanism.estimator.output_scores(np.arange(4.0))[sample]
    mean = float(weights @ scores) / weights.sum()
    variance = float(weights**2 @ (scores - mean) ** 2) / float(weights.sum()) ** 2
    assert number.value == pytest.approx(mean)
    assert number.standard_error == pytest.approx(math.sqrt(variance), rel=0.02)
    spread = float(weights @ (scores - mean) ** 2) / weights.sum()
    assert number.design_effect == pytest.approx(variance * n / spread, rel=0.02)
    kish = n * float(weights @ weights) / float(weights.sum()) ** 2
    assert number.effective_n == pytest.approx(n / kish, rel=0.1)
    low, high = number.interval()
    z = 1.959964
    for limit in (low, high):  # the limits are z standard errors from the estimate, with the error at the limit
        at_limit = math.sqrt(number.standard_error**2 + _change(number, limit))
        assert abs(limit - number.value) == pytest.approx(z * at_limit, rel=1e-5)
        assert number.p_value(limit) == pytest.approx(0.05, rel=1e-4)
    assert number.p_value(number.value) == 1
    assert number.p_value(-1) == number.p_value(4) == 0


def _change(number: WeightedEstimate, limit: float) -> float:
    """Return by how much the variance at a limit exceeds that at the estimate."""
    terms = ((each.share**2 / each.n, each.value) for each in number.classes)
    return sum(factor * ((value - limit) ** 2 - (value - number.value) ** 2) for factor, value in terms)


def test_zero_weights_do_not_contribute() -> None:
    sample = reports(FULL, 100)
    counts = sf.aggregate_groups(FULL, sample, weights=[0, 1] * 50)
    (number,) = sf.estimate_groups(FULL, counts).answers("mean", by=[]).total
    assert same(number, sf.estimate(FULL, sf.aggregate(FULL, sample[1::2])).mean())
    none = sf.estimate_groups(FULL, sf.aggregate_groups(FULL, sample, weights=[0] * 100))
    with pytest.raises(InvalidInput, match="the weights of all people must not all be 0"):
        none.answers("mean")


def test_one_heavy_person_leaves_the_whole_range() -> None:
    counts = sf.aggregate_groups(FULL, reports(FULL, 50), weights=[10**12] + [1] * 49)
    number = weighted_total(sf.estimate_groups(FULL, counts))
    assert number.interval() == (0, 3)
    assert number.effective_n < 2
    assert number.p_value(1.5) > 0.05
    single = sf.estimate_groups(FULL, sf.aggregate_groups(FULL, [2], weights=[3])).answers("mean", by=[]).total[0]
    assert same(single, sf.estimate(FULL, sf.aggregate(FULL, [2])).mean())


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, None, "many", True])
def test_weights_that_are_not_numbers_of_at_least_0_are_rejected(weight: Any) -> None:
    for call in (
        lambda weights: sf.aggregate_groups(FULL, [0, 1, 2], weights=weights),
        sf.collecting.weight_classes,
    ):
        with pytest.raises(InvalidInput, match="in row 1 must be a finite number of at least 0"):
            call([1, weight, 2])


def test_weights_are_integers_with_few_different_values() -> None:
    with pytest.raises(InvalidInput, match=r"in row 1 must be an integer from 0 to 2\^53; got 0.5.*weight_classes"):
        sf.aggregate_groups(FULL, [0, 1], weights=[1, 0.5])
    many = np.arange(1001)
    with pytest.raises(LimitExceeded, match="at most 1,000 different values, not 1,001"):
        sf.aggregate_groups(FULL, np.zeros(1001, np.int64), weights=many)
    classes = sf.collecting.weight_classes(many)
    assert len(np.unique(classes)) <= 101
    assert sf.aggregate_groups(FULL, np.zeros(1001, np.int64), weights=classes).n == 1001


@pytest.mark.parametrize("most", [1, 5, 100])
def test_classes_of_weights_are_near_the_weights(most: int) -> None:
    weights = np.random.default_rng(2).lognormal(0, 1, 2000)
    classes = sf.collecting.weight_classes(weights, most)
    assert len(np.unique(classes)) <= most
    assert classes.min() >= 1000
    ratio = classes / weights
    spread = (weights.max() / weights.min()) ** (1 / most)
    assert ratio.max() / ratio.min() <= spread**2 * 1.001
    with pytest.raises(InvalidInput, match="a factor of at most 10"):
        sf.collecting.weight_classes([1e-9, 2.5])
    with pytest.raises(InvalidInput, match="most must be an integer"):
        sf.collecting.weight_classes([1], 0)


# -- known totals ------------------------------------------------------------------------------------------------


@MECHANISMS
def test_known_totals_are_the_weights_of_strata(mechanism: Mechanism) -> None:
    counts = sf.aggregate_groups(mechanism, reports(mechanism, 300), ["a", "b", "c"] * 100)
    grouped = sf.estimate_groups(mechanism, counts)
    totals = {"a": 500, "b": 300, "c": 200}
    (number,) = grouped.answers("mean", by=[], totals=pd.Series(totals)).total
    means = [grouped[group].mean() for group in "abc"]
    assert number.value == pytest.approx(0.5 * means[0].value + 0.3 * means[1].value + 0.2 * means[2].value)
    errors = [share * mean.standard_error for share, mean in zip((0.5, 0.3, 0.2), means, strict=True)]
    assert number.standard_error == pytest.approx(math.hypot(*errors))
    assert len(number.terms) == 3
    if mechanism is FULL:
        table = grouped.weighted(totals)
        for label, frequency in zip(NUMBERS, grouped.answers(by=[], totals=totals).total, strict=True):
            assert frequency.value == pytest.approx(table[label].value)
            assert frequency.interval() == pytest.approx(table[label].interval())


def test_totals_by_group_and_standardization() -> None:
    grouped = survey(FULL)
    totals = {(region, age): 10 + 5 * age for region in "nsw" for age in (0, 1)}
    answers = grouped.answers("mean", by="region", totals=totals)
    standard = grouped.answers("mean", by="region", strata="age", totals={0: 10, 1: 15})
    for region in "nsw":  # the totals have the same proportions in all regions
        assert answers[region][0].value == pytest.approx(standard[region][0].value)
        assert answers[region][0].standard_error == pytest.approx(standard[region][0].standard_error)
    parts = [answers[region][0].value / 3 for region in "nsw"]
    assert answers.total[0].value == pytest.approx(sum(parts))
    assert "weighted by weight, 6 known totals" in str(answers)
    assert {"design_effect", "effective_n"} <= set(answers.to_pandas())


def test_limits_from_known_totals_stay_within_possible_numbers() -> None:
    """Shares of strata sum to one only up to rounding, so limits could exceed the ends by a rounding error."""
    generator = np.random.default_rng(5)
    for epsilon, value in ((1, 0), (20, 3)):
        mechanism = RandomizedResponse(NUMBERS, epsilon)
        for _ in range(3):
            totals = dict(zip("abcd", generator.integers(1, 1000, 4).tolist(), strict=True))
            strata = np.repeat(list("abcd"), generator.integers(1, 30, 4)).tolist()
            counts = sf.aggregate_groups(mechanism, [value] * len(strata), strata)
            grouped = sf.estimate_groups(mechanism, counts)
            for question, most in (("mean", 3), ("frequencies", 1)):
                for number in grouped.answers(question, by=[], totals=totals).total:
                    low, high = number.interval()
                    assert 0 <= low <= high <= most


def test_strata_without_reports_or_totals_are_rejected() -> None:
    grouped = sf.estimate_groups(FULL, sf.aggregate_groups(FULL, reports(FULL, 40), ["a", "b"] * 20))
    with pytest.raises(InvalidInput, match=r"have reports; got no reports of \['c'\].*Merge small strata"):
        grouped.answers("mean", by=[], totals={"a": 1, "b": 2, "c": 3})
    with pytest.raises(InvalidInput, match=r"totals must name every stratum.*no total of \['b'\]"):
        grouped.answers("mean", by=[], totals={"a": 1})
    without = grouped.answers("mean", by=[], totals={"a": 1, "b": 0, "c": 0}).total[0]
    assert same(without, grouped["a"].mean())
    for wrong in (-1, math.nan, "3", None, math.inf):
        with pytest.raises(InvalidInput, match="the total of 'b' must be a finite number of at least 0"):
            grouped.answers("mean", by=[], totals={"a": 1, "b": wrong})  # type: ignore[dict-item]
    with pytest.raises(InvalidInput, match="must not all be 0"):
        grouped.answers("mean", by=[], totals={"a": 0, "b": 0})
    with pytest.raises(InvalidInput, match="strata must be given only with totals"):
        grouped.answers("mean", strata="group")


# -- comparisons -------------------------------------------------------------------------------------------------


def test_pairs_a_baseline_and_the_rest() -> None:
    sample, by = reports(FULL, 600), np.random.default_rng(4).choice(["a", "b", "c"], 600)
    grouped = sf.estimate_groups(FULL, sf.aggregate_groups(FULL, sample, by))
    answers = grouped.answers("mean")
    pairs = answers.compare()
    assert pairs.pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    assert same(pairs["a", "c"][0], grouped["a"].mean() - grouped["c"].mean())
    assert pairs["c", "a"][0].value == -pairs["a", "c"][0].value
    assert answers.compare("b").pairs == [("a", "b"), ("c", "b")]
    rest = answers.compare(rest=True)
    others = sf.estimate(FULL, sf.aggregate(FULL, sample[by != "a"])).mean()
    assert rest["a", None][0].value == pytest.approx(grouped["a"].mean().value - others.value)
    assert rest["a", None][0].standard_error == pytest.approx(
        math.hypot(grouped["a"].mean().standard_error, others.standard_error), rel=0.02
    )
    low, high = pairs.interval(simultaneous=True)
    each_low, each_high = pairs.interval(simultaneous=False)
    bonferroni = [pairs[pair][0].interval(1 - 0.05 / 3) for pair in pairs.pairs]
    assert (low <= each_low).all()
    assert (high >= each_high).all()
    assert (low.ravel() >= [limit for limit, _ in bonferroni]).all()
    p = np.sort(pairs.p_values.ravel())
    holm = np.sort(pairs.adjusted_p_values.ravel())
    assert holm[0] == pytest.approx(min(1.0, 3 * p[0]))
    assert (np.diff(holm) >= 0).all()
    for wrong in (lambda: answers.compare("z"), lambda: pairs["a", "z"], lambda: pairs["a"]):
        with pytest.raises(UnknownLabel):
            wrong()
    with pytest.raises(InvalidInput, match="rest must be False"):
        answers.compare("a", rest=True)
    with pytest.raises(InvalidInput, match="at least two groups"):
        grouped.answers("mean", by=[]).compare()


def test_comparisons_of_weighted_answers() -> None:
    answers = survey(FULL).answers("mean", by="region")
    comparison = answers.compare("n")
    first, second = answers["s"][0], answers["n"][0]
    assert comparison["s", "n"][0].value == pytest.approx(first.value - second.value)
    assert comparison["s", "n"][0].standard_error == pytest.approx(
        math.hypot(first.standard_error, second.standard_error)
    )
    for group in "nsw":
        assert answers.covariance(group)[0, 0] ** 0.5 == pytest.approx(answers[group][0].standard_error, rel=1e-6)
    table = comparison.to_pandas()
    assert table.columns.tolist()[:4] == ["group", "minus", "answer", "difference"]
    rest = answers.compare(rest=True)
    assert set(rest.to_pandas().minus) == {"rest"}


def test_too_many_differences_are_rejected() -> None:
    n = 300
    grouped = sf.estimate_groups(LINE, sf.aggregate_groups(LINE, reports(LINE, n), np.arange(n)))
    with pytest.raises(LimitExceeded, match="at most 5,000 differences, not 44,850"):
        grouped.answers("mean").compare()


# -- results are data --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [FULL, LINE], ids=["complete", "partial"])
def test_results_survive_json_and_pickle(mechanism: Mechanism) -> None:
    grouped = survey(mechanism, 120)
    totals = {(region, age): 1 + age for region in "nsw" for age in (0, 1)}
    answers = grouped.answers("mean", by=["region"], totals=totals)
    results: list[Any] = [grouped, answers, answers.compare("n"), answers.compare(rest=True), *answers.total]
    plain = grouped.answers("mean").total
    for result in [*results, *plain]:
        document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        again = type(result).from_dict(document)
        assert again == result
        assert again.to_dict() == document
        assert pickle.loads(pickle.dumps(result)) == result
        assert hash(again) == hash(result)
        assert str(again) == str(result)
        with pytest.raises(InvalidInput):
            type(result).from_dict({**document, "colour": "red"})
    assert repr(answers).startswith("GroupedAnswers(question=Mean(")
    assert repr(answers.compare()) == "Comparison(against='pairs', differences=3)"
    changed = {**plain[0].to_dict(), "value": 2.5}
    with pytest.raises(InvalidInput, match="as its classes imply"):
        LinearEstimate.from_dict(changed)


def test_malformed_documents_are_rejected() -> None:
    counts = sf.aggregate_groups(LINE, reports(LINE, 30), ["a", "b"] * 15, weights=[1, 2, 3] * 10)
    answers = sf.estimate_groups(LINE, counts).answers("mean", by="group", totals={"a": 2, "b": 1})
    assert_read_or_rejected(WeightedEstimate, json.loads(json.dumps(answers.total[0].to_dict())))
    wrong: tuple[Any, ...] = (
        None,
        3,
        "x",
        [],
        {},
        [1],
        ["weight"],
        [{"stratum": "a"}],
        [{"stratum": "a", "total": -1}],
    )
    for result in (answers, answers.compare("a")):
        document = json.loads(json.dumps(result.to_dict()))
        for key, value in itertools.product(set(document) - {"estimate"}, wrong):
            with contextlib.suppress(InvalidInput):
                assert type(result).from_dict({**document, key: value}) is not None


@pytest.mark.slow
def test_tables_and_figures() -> None:
    answers = survey(FULL).answers(by="region")
    assert len(answers.to_pandas()) == 12
    assert answers.to_arrow().num_rows == 12
    assert answers.plot(0.9).axes[0].get_title().endswith("in 3 groups, 90% intervals")
    assert "<table>" in answers._repr_html_()
    comparison = answers.compare("n")
    assert comparison.to_arrow().num_rows == len(comparison) == 8
    assert comparison.plot().axes[0].get_xlabel() == "difference"
    each, together = answers.interval(0.95), answers.interval(0.95, simultaneous=True)
    assert (together["n"][0] <= each["n"][0]).all()
    assert (together["n"][1] >= each["n"][1]).all()


# -- grouped counts ----------------------------------------------------------------------------------------------


def test_grouped_counts_merge_and_survive_json() -> None:
    sample, by = reports(FULL, 90), {"region": [*"nsw"] * 30, "age": [*"12"] * 45}
    whole = sf.aggregate_groups(FULL, sample, by, weights=[3, 4, 5, 6, 7] * 18)
    parts = [
        sf.aggregate_groups(
            FULL,
            sample[part],
            {name: column[part] for name, column in by.items()},
            weights=([3, 4, 5, 6, 7] * 18)[part],
        )
        for part in (slice(0, 7), slice(7, 50), slice(50, 90))
    ]
    merged = parts[2].merge(parts[0]).merge(parts[1])
    assert merged == whole
    assert list(merged) == list(whole)
    assert GroupedAggregate.from_json(whole.to_json()) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert whole.total() == sf.aggregate(FULL, sample)
    assert whole.over("age")["1"] == sf.aggregate(FULL, sample[::2])
    assert whole.over("age").weight is None
    assert GroupedAggregate.empty(FULL, whole.columns, whole.weight).merge(whole) == whole
    with pytest.raises(InvalidInput, match="have the columns"):
        whole.merge(whole.over("region"))
    with pytest.raises(InvalidInput, match=r"columns must be some of \['region', 'age', 'weight'\]"):
        whole.over("county")
    with pytest.raises(InvalidInput):
        whole.check(LINE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "sfumato-aggregate"}, "be 'sfumato-grouped-aggregate'"),
        ({"version": 2}, "the key 'version' must be 1"),
        ({"weight": "age"}, "weight must be one of the columns"),
        ({"columns": ["a", "b"]}, "have one label for each"),
        ({"groups": [{"group": "a", "n": 1, "counts": [1, 0, 0, 0]}] * 2}, "'a' twice"),
        ({"colour": 1}, "colour"),
    ],
)
def test_malformed_grouped_counts_are_rejected(change: dict[str, Any], message: str) -> None:
    document = json.loads(sf.aggregate_groups(FULL, [0, 1], ["a", "b"]).to_json())
    with pytest.raises(InvalidInput, match=message):
        GroupedAggregate.from_json(json.dumps({**document, **change}))
    with pytest.raises(InvalidInput, match="be JSON"):
        GroupedAggregate.from_json("{")


# -- coverage ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_coverage_of_weighted_means_on_a_skewed_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """False rejections: at most 1e-6. An interval that is too narrow by a third is rejected."""
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.surveys import study

    mechanism = RandomizedResponse(sf.Domain.range(21), 3)
    result = study(mechanism, sf.Mean(), "weights", 2000, 250)
    low, high = binom.ppf([5e-7, 1 - 5e-7], 250, 0.95)
    assert low <= result.inside <= high
    assert binom.cdf(low - 1, 250, 0.81) > 0.8  # 0.81 is the coverage of intervals two thirds as wide
    assert abs(result.bias) < 5 * result.bias_error
