"""Estimates from reports that do not distinguish all values: sums that the reports determine, and errors elsewhere."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.estimation import LinearEstimate, PartialEstimate
from sfumato.mechanisms import NotIdentifiable, RandomizedResponse, TableMechanism
from support.mutations import assert_read_or_rejected

#: Two outputs whose probabilities are linear in the value: the reports determine the mean and nothing else.
LINE = TableMechanism.from_matrix(sf.Domain.range(5), [[Fraction(7 - x, 8), Fraction(1 + x, 8)] for x in range(5)])
#: The first value is separate, and the last two have equal rows.
TWINS = TableMechanism.from_matrix(
    sf.Domain(["none", "flu A", "flu B"]), [["3/4", "1/4"], ["1/4", "3/4"], ["1/4", "3/4"]]
)


def partial(mechanism: TableMechanism = LINE, *counts: int) -> PartialEstimate:
    counts = counts or (40, 60)
    estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, sum(counts), np.array(counts)))
    assert isinstance(estimate, PartialEstimate)
    return estimate


def through_json(document: dict[str, Any]) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


def test_one_report_has_the_weight_of_its_value_on_average() -> None:
    for mechanism, weights in ((LINE, np.arange(5.0)), (LINE, 3 - 2 * np.arange(5.0)), (TWINS, np.array([0.0, 1, 1]))):
        singles = [partial(mechanism, *row).linear(weights).value for row in np.eye(2, dtype=int).tolist()]
        for x, weight in enumerate(weights):
            expected = sum(float(mechanism.probability(y, x)) * value for y, value in enumerate(singles))
            assert expected == pytest.approx(weight, abs=1e-12)


def test_the_mean_of_two_outputs_has_the_exact_error_and_the_binomial_interval() -> None:
    estimate = partial(LINE, 600, 400)
    mean = estimate.mean()
    # A person with value x reports 1 with probability (1 + x)/8, so the mean is 8·share - 1.
    assert mean.value == pytest.approx(8 * 0.4 - 1)
    assert mean.standard_error == pytest.approx(8 * (0.6 * 0.4 / 1000) ** 0.5, rel=1e-3)
    low, high = mean.interval(0.95)
    for limit, tail, count in ((low, stats.binom.sf, 399), (high, stats.binom.cdf, 400)):
        assert tail(count, 1000, (limit + 1) / 8) == pytest.approx(0.025, rel=0.1)  # the normal law, for many reports


@pytest.mark.parametrize("n", [1, 4, 25])
def test_exact_coverage_of_a_mean_from_few_people(n: int) -> None:
    limits = np.array([partial(LINE, n - y, y).mean().interval(0.9) for y in range(n + 1)])
    coverage = []
    for mean in np.linspace(0, 4, 41):
        law = stats.binom.pmf(np.arange(n + 1), n, (1 + mean) / 8)
        held = (limits[:, 0] <= mean + 1e-9) & (mean - 1e-9 <= limits[:, 1])
        coverage.append(law[held].sum())
    assert min(coverage) >= 0.9


def test_reports_that_agree_have_an_error() -> None:
    mean = partial(LINE, 0, 50).mean()
    assert mean.standard_error > 0
    low, high = mean.interval()
    assert 2 < low < 4 == high


def test_frequencies_raise_an_error_that_names_what_can_be_asked() -> None:
    estimate = partial()
    accesses: list[Callable[[], Any]] = [
        lambda: estimate.frequencies,
        lambda: estimate.unbiased,
        lambda: estimate.standard_errors,
        lambda: estimate.covariance,
        lambda: estimate[3],
        lambda: estimate.interval(),
        lambda: estimate.expected_tv,
        lambda: estimate.influence(0.1),
        lambda: estimate.cdf(),
        lambda: estimate.quantile(0.5),
        lambda: estimate.answers(),
        lambda: estimate.answers(sf.Ranges([(0, 2)])),
        lambda: estimate.range(1, 2),
        lambda: estimate.linear([0, 1, 4, 9, 16]),
        lambda: estimate.set_fraction([1, 3]),
    ]
    for access in accesses:
        with pytest.raises(NotIdentifiable, match=r"mean\(\)"):
            access()
    for method in ("simplex", "mle"):
        with pytest.raises(NotIdentifiable, match="Use method 'unbiased'"):
            sf.estimate(LINE, estimate.counts, method)
    with pytest.raises(KeyError):
        estimate["unknown"]


def test_sums_that_the_reports_determine_are_estimated() -> None:
    estimate = partial(TWINS)
    assert not estimate.is_complete
    assert estimate.identifies({"flu A": 1, "flu B": 1})
    assert not estimate.identifies({"flu A": 1})
    share = estimate.set_fraction(["flu A", "flu B"])
    assert share.value == pytest.approx((0.6 - 0.25) / 0.5)
    assert estimate["none"].value == pytest.approx(1 - share.value)
    assert estimate["none"].interval() == pytest.approx([1 - limit for limit in share.interval()[::-1]])
    assert estimate.range("flu A", "flu B") == share
    answers = estimate.answers(sf.Workload({"any flu": {"flu A": 1, "flu B": 1}, "everyone": [1, 1, 1]}))
    assert answers.values == pytest.approx([share.value, 1])
    assert answers.standard_errors == pytest.approx([share.standard_error, 0])
    assert answers.covariance[0, 0] ** 0.5 == pytest.approx(share.standard_error)
    low, high = answers.interval()
    assert (low[0], high[0]) == pytest.approx(share.interval())
    assert low[1] == high[1] == 1


def test_variances_do_not_depend_on_the_distribution_that_agrees_with_the_reports() -> None:
    estimate, weights = partial(LINE, 450, 550), np.arange(5.0)
    p = estimate.nearest
    assert p.sum() == pytest.approx(1)
    assert p @ LINE.matrix() == pytest.approx([0.45, 0.55], abs=1e-3)
    # Moving people away from the middle, equally to both sides, changes neither the mean nor the law of the reports.
    other = p + 0.5 * p[2] * np.array([0, 0.5, -1, 0.5, 0])
    assert other @ LINE.matrix() == pytest.approx(p @ LINE.matrix())
    assert LINE.estimator.variance(weights, other) == pytest.approx(LINE.estimator.variance(weights, p))


def test_errors_of_a_mean_are_right_where_single_frequencies_are_uncertain() -> None:
    """The stated standard error of a mean agrees with the true one within 5% if single frequencies have no precision.

    A table for neighbouring values has errors of single frequencies above 0.5 here. Their projection onto the
    distributions has another law of reports than the one observed, and a standard error that is wrong by up to 20%.
    """
    size, n = 24, 3000
    distances = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    matrix = np.exp(-0.1 * distances)
    mechanism = TableMechanism.from_matrix(sf.Domain.range(size), matrix / matrix.sum(axis=1, keepdims=True))
    p = np.full(size, 1 / size)
    law, weights = p @ mechanism.matrix(), np.arange(float(size))
    true = (mechanism.estimator.variance(weights, p) / n) ** 0.5
    generator = np.random.default_rng(7)
    stated = []
    for _ in range(10):
        counts = sf.Aggregate(mechanism.hash, n, generator.multinomial(n, law / law.sum()))
        estimate = sf.estimate(mechanism, counts)
        assert estimate.standard_errors.min() > 0.05
        mean = estimate.mean()
        stated.append(mean.standard_error)
        low, high = mean.interval(0.95)
        assert high - low == pytest.approx(2 * 1.96 * mean.standard_error, rel=0.05)
        answers = estimate.answers("mean")
        assert answers.covariance[0, 0] ** 0.5 == pytest.approx(mean.standard_error)
    assert stated == pytest.approx([true] * 10, rel=0.05)


def test_a_partial_estimate_is_data() -> None:
    estimate = partial()
    document = through_json(estimate.to_dict())
    assert document["format"] == "sfumato-partial-estimate"
    again = sf.Estimate.from_dict(document)
    assert again == estimate == pickle.loads(pickle.dumps(estimate))
    assert hash(again) == hash(estimate)
    assert again != partial(LINE, 41, 59)
    mean = estimate.mean()
    assert LinearEstimate.from_dict(through_json(mean.to_dict())) == mean
    frequency = partial(TWINS)["none"]
    assert LinearEstimate.from_dict(through_json(frequency.to_dict())).interval() == frequency.interval()
    assert sf.Estimate.from_dict({**document, "method": "efficient"}).method == "efficient"
    with pytest.raises(InvalidInput, match="method must be one of unbiased, efficient"):
        sf.Estimate.from_dict({**document, "method": "simplex"})
    other = RandomizedResponse(sf.Domain.range(5), 1)
    with pytest.raises(InvalidInput, match="have reports that do not distinguish all values"):
        sf.Estimate.from_dict({**document, "mechanism": other.spec, "counts": [20] * 5})
    assert_read_or_rejected(sf.Estimate, document)


def test_a_partial_estimate_is_printed_and_drawn() -> None:
    estimate = partial()
    assert repr(estimate) == "PartialEstimate(n=100, values=5, method='unbiased', mechanism='table')"
    assert "mean" in str(estimate)
    assert "The reports do not distinguish all values." in str(estimate)
    assert "<td>mean</td>" in estimate._repr_html_()
    frame = estimate.to_pandas(0.9)
    assert frame["answer"].tolist() == ["mean"]
    assert tuple(frame.loc[0, ["low", "high"]]) == estimate.mean().interval(0.9)
    assert partial(TWINS).to_arrow()["answer"].to_pylist() == ["frequency of none"]
    assert [tick.get_text() for tick in estimate.plot().axes[0].get_yticklabels()] == ["mean"]
    equal = TableMechanism.from_matrix(sf.Domain.range(2), [["1/2", "1/2"]] * 2)
    assert len(partial(equal).to_pandas()) == 0
    assert partial(equal).linear([3, 3]).value == 3


def test_groups_have_partial_estimates_and_differences_of_means() -> None:
    counts = {name: sf.Aggregate(LINE.hash, 1000, np.array([1000 - y, y])) for name, y in (("a", 300), ("b", 500))}
    groups = sf.estimate_groups(LINE, counts)
    difference = groups["b"].mean() - groups["a"].mean()
    assert difference.value == pytest.approx(8 * 0.2)
    assert groups.total.mean().value == pytest.approx(8 * 0.4 - 1)
    assert "mean" in str(groups).splitlines()[1]
    assert groups.to_pandas()["group"].tolist() == ["a", "b"]
    assert sf.GroupedEstimate.from_dict(through_json(groups.to_dict())) == groups
    with pytest.raises(NotIdentifiable):
        _ = groups.difference("a", "b")[3]
    with pytest.raises(InvalidInput, match=r"combine: estimate 0 must be from reports that distinguish all values"):
        sf.combine([groups["a"], groups["b"]])
