"""Answers to questions: the same numbers as their sums, bands that hold together, and quantiles with honest limits."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import sfumato as sf
from sfumato._core import Floats
from sfumato.errors import InvalidInput, Undecided, UnknownLabel
from sfumato.estimation import (
    Answers,
    DistributionEstimate,
    LinearEstimate,
    MechanismEstimate,
    QuantileAnswers,
    QuantileEstimate,
)
from sfumato.estimation.bands import LARGEST_BAND, simultaneous_alphas
from sfumato.mechanisms import HadamardResponse, Mechanism, RandomizedResponse, UnaryEncoding
from support.mutations import assert_read_or_rejected

R = sf.Domain.range
WORDS = sf.Domain(["low", "middle", "high"])


def estimate_of(mechanism: Mechanism, n: int = 2000, seed: int = 1, method: str = "unbiased") -> MechanismEstimate:
    """An estimate from n people whose values fall off geometrically."""
    size = len(mechanism.domain)
    values = np.minimum(np.random.default_rng(seed).geometric(0.3, n) - 1, size - 1)
    reports = sf.privatize(mechanism, mechanism.domain.decode(values), sf.InsecureSeeded(seed))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports), method)
    assert isinstance(estimate, MechanismEstimate)
    return estimate


def through_json(document: dict[str, Any]) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


MECHANISMS = {
    "response": RandomizedResponse(R(6), 1),
    "bits": UnaryEncoding(R(6), 1),
    "hadamard": HadamardResponse(R(7), 1),
}
QUESTIONS: dict[str, sf.Question] = {
    "frequencies": sf.Frequencies(),
    "mean": sf.Mean(),
    "other mean": sf.Mean(range(6)[::-1]),
    "distribution": sf.Distribution(),
    "ranges": sf.Ranges({"low": (None, 1), "middle": (2, 3), "all": (None, None)}),
    "workload": sf.Workload([[1, 0, 0, 0, 0, 2], [0, 1, 1, 1, 1, 1]], names=["first", "second"]),
}


# -- sums ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["unbiased", "simplex"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_the_sums_of_their_rows(question: str, method: str) -> None:
    estimate = estimate_of(UnaryEncoding(R(6), 1), method=method)
    answers = estimate.answers(QUESTIONS[question])
    matrix = QUESTIONS[question].checked(estimate.domain).matrix()
    sums = [estimate.linear(row) for row in matrix]
    assert answers.values == pytest.approx([each.value for each in sums])
    assert answers.standard_errors == pytest.approx([each.standard_error for each in sums])
    assert np.diag(answers.covariance) ** 0.5 == pytest.approx(answers.standard_errors)
    for confidence in (0.8, 0.95):
        low, high = answers.interval(confidence)
        assert np.column_stack([low, high]) == pytest.approx(np.array([each.interval(confidence) for each in sums]))
    for name, each in zip(answers.names, sums, strict=True):
        assert answers[name] == each
    assert list(answers) == list(answers.names)
    assert len(answers) == len(matrix)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_covariance_of_the_distribution_function_is_that_of_its_sums(name: str) -> None:
    distribution = estimate_of(MECHANISMS[name]).cdf()
    rows = distribution._reduced[1]
    expected = rows @ distribution.estimate.covariance @ rows.T
    np.testing.assert_allclose(distribution.covariance, expected, rtol=1e-9, atol=1e-15)


def test_ranges_include_both_limits() -> None:
    estimate = estimate_of(RandomizedResponse(R(6), 2))
    assert estimate.range(1, 3) == estimate.set_fraction([1, 2, 3])
    assert estimate.range(0.5, 3.9) == estimate.range(1, 3)
    assert estimate.range(high=2) == estimate.set_fraction([0, 1, 2])
    assert estimate.range(low=5) == estimate.set_fraction([5])
    assert estimate.range().value == 1
    assert estimate.answers(sf.Ranges([(1, 3)]))["1 to 3"] == estimate.range(1, 3)
    assert estimate_of(RandomizedResponse(WORDS, 2)).range("middle", "high").value < 1
    with pytest.raises(InvalidInput, match="range: a range must contain at least one value"):
        estimate.range(1.2, 1.8)
    with pytest.raises(InvalidInput, match="range: the domain must have one dimension"):
        estimate_of(RandomizedResponse(sf.Domain.product(a=R(2), b=R(2)), 2)).range(0, 1)
    for call in ("cdf", "quantile"):
        method = getattr(estimate_of(RandomizedResponse(sf.Domain([3, 1, 2]), 2)), call)
        with pytest.raises(InvalidInput, match="be increasing if they are numbers"):
            method(*([0.5] if call == "quantile" else []))


def test_an_unknown_question_or_answer_is_rejected() -> None:
    estimate = estimate_of(RandomizedResponse(WORDS, 2))
    with pytest.raises(InvalidInput, match="answers: question must be one of 'frequencies', 'mean'"):
        estimate.answers("average")
    with pytest.raises(InvalidInput, match="Mean: the labels of the domain must be numbers"):
        estimate.answers("mean")
    with pytest.raises(UnknownLabel, match="the name must be one of"):
        estimate.answers()["fever"]
    with pytest.raises(UnknownLabel):
        estimate.cdf()["fever"]
    assert estimate.answers()["low"] == estimate.linear({"low": 1})


def test_a_domain_of_one_value_has_known_answers() -> None:
    mechanism = RandomizedResponse(sf.Domain(["only"]), 1)
    estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, 5, np.array([5])))
    assert len(estimate.cdf()) == 0
    assert estimate.cdf().interval(simultaneous=True)[0].shape == (0,)
    assert estimate.quantile(0.5).value == "only"
    assert estimate.quantile(0.5).interval() == ("only", "only")


# -- simultaneous intervals ------------------------------------------------------------------------------------------


def test_the_level_of_a_band_is_that_of_the_largest_normal_error() -> None:
    # Equal variables need no correction, independent ones the correction of Šidák; the quantile is rounded up.
    equal = np.ones((5, 5))
    assert simultaneous_alphas(equal, np.zeros(5), 0.05) == pytest.approx(np.full(5, 0.05), rel=0.1)
    independent = simultaneous_alphas(np.eye(5) * [1, 4, 9, 16, 25], np.zeros(5), 0.05)
    assert independent == pytest.approx(np.full(5, 1 - 0.95 ** (1 / 5)), rel=0.12)
    assert (independent >= 0.01).all()
    assert simultaneous_alphas(equal, np.zeros(5), 0.05)[0] <= 0.05


def test_answers_with_skewed_errors_get_their_share_by_bonferroni() -> None:
    units = np.array([0.0, 0, 5, 0, 0])
    alphas = simultaneous_alphas(np.ones((5, 5)), units, 0.05)
    assert alphas[2] == pytest.approx(0.01)
    assert alphas[0] == pytest.approx(0.04, rel=0.1)
    # By the union bound over the two kinds of answers, all intervals together miss with probability at most 5%.
    assert alphas[2] + alphas[0] <= 0.05
    assert simultaneous_alphas(np.ones((5, 5)), units + 5, 0.05) == pytest.approx(np.full(5, 0.01))
    assert simultaneous_alphas(np.ones((5, 5)), np.zeros(5), 1e-6) == pytest.approx(np.full(5, 2e-7))
    known = simultaneous_alphas(np.diag([1.0, 0, 0]), np.zeros(3), 0.05)
    assert known[0] == 0.05
    many = simultaneous_alphas(np.eye(LARGEST_BAND + 1), np.zeros(LARGEST_BAND + 1), 0.05)
    assert many == pytest.approx(np.full(LARGEST_BAND + 1, 0.05 / (LARGEST_BAND + 1)))


@pytest.mark.parametrize(("size", "epsilon"), [(8, 8), (32, 1)])
def test_the_band_of_normal_errors_has_its_level(size: int, epsilon: int) -> None:
    """The largest standardized error, over 20,000 draws of the counts, stays within the band.

    Its coverage has a standard deviation of 0.0016. A band of 95% has a coverage outside [0.9422, 0.965] with
    probability below 1e-6, and one whose α is 5% wrong in the number of deviations (z = 2.5 instead of 2.63) is below.
    """
    n, mechanism = 100_000, RandomizedResponse(R(size), epsilon)
    weights = np.arange(size, 0, -1) ** 1.5
    p = np.asarray(weights / weights.sum(), np.float64)
    law = mechanism.estimator.expected_counts(p)
    counts = np.random.default_rng(4).multinomial(n, law / law.sum(), 20_000)
    distribution = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, n, counts[0])).cdf()
    alphas = simultaneous_alphas(distribution.covariance, distribution._errors[:, 1], 0.05)
    assert len(set(alphas)) == 1
    constants, rows = distribution._reduced
    decoder = np.array([mechanism.estimator.frequencies(unit) for unit in np.eye(size)])
    errors = counts / n @ decoder @ rows.T + constants - np.cumsum(p)[:-1]
    greatest = np.abs(errors / distribution.standard_errors).max(axis=1)
    coverage = np.mean(greatest <= -ndtri(alphas[0] / 2))
    assert 0.9422 <= coverage <= 0.965
    # The Bonferroni correction would be wider.
    assert alphas[0] > 1.1 * 0.05 / (size - 1)


def test_a_band_is_monotone_and_wider_than_single_intervals() -> None:
    for mechanism in MECHANISMS.values():
        distribution = estimate_of(mechanism, n=500).cdf()
        low, high = distribution.interval(0.9)
        band = distribution.interval(0.9, simultaneous=True)
        assert (np.diff(band[0]) >= 0).all()
        assert (np.diff(band[1]) >= 0).all()
        assert (band[0] <= distribution.monotone).all()
        assert (distribution.monotone <= band[1]).all()
        assert (band[1] - band[0]).mean() > (high - low).mean() * 0.9
        answers = distribution.estimate.answers()
        single, together = answers.interval(0.9), answers.interval(0.9, simultaneous=True)
        assert (together[0] <= single[0]).all()
        assert (together[1] >= single[1]).all()


def test_a_band_of_few_people_holds_together() -> None:
    """The exact coverage of bands from 4 people, over all counts of three outputs."""
    mechanism, n = RandomizedResponse(R(3), 3), 4
    counts = np.array([c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n])
    bands = [
        sf.estimate(mechanism, sf.Aggregate(mechanism.hash, n, c)).cdf().interval(0.9, simultaneous=True)
        for c in counts
    ]
    for p in (*np.eye(3), np.full(3, 1 / 3), np.array([0.1, 0.2, 0.7])):
        shares, law = np.cumsum(p)[:-1], multinomial(counts, p @ mechanism.matrix())
        held = [(low <= shares + 1e-9).all() and (shares - 1e-9 <= high).all() for low, high in bands]
        assert law[held].sum() >= 0.9


def multinomial(counts: Floats, law: Floats) -> Floats:
    """The probability of each row of counts."""
    n = int(counts[0].sum())
    ways = [math.factorial(n) / math.prod(math.factorial(int(c)) for c in row) for row in counts]
    return np.asarray(ways * np.prod(law**counts, axis=1))


# -- the distribution function and quantiles -------------------------------------------------------------------------


def test_the_monotone_shares_are_those_of_a_distribution() -> None:
    for mechanism in MECHANISMS.values():
        for method in ("unbiased", "simplex", "mle"):
            distribution = estimate_of(mechanism, n=200, method=method).cdf()
            assert (np.diff(distribution.monotone) >= 0).all()
            assert distribution.monotone.min() >= 0
            assert distribution.monotone.max() <= 1
            if method != "unbiased":
                frequencies = distribution.estimate.frequencies
                assert distribution.monotone == pytest.approx(np.cumsum(frequencies)[:-1])
    # Isotonic regression does not move shares that do not decrease.
    mechanism = RandomizedResponse(R(4), 8)
    rising = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, 100, np.array([40, 30, 20, 10]))).cdf()
    assert rising.monotone == pytest.approx(rising.values)


def test_shares_are_found_by_value_and_by_name() -> None:
    distribution = estimate_of(RandomizedResponse(R(6), 2)).cdf()
    assert distribution.labels == (0, 1, 2, 3, 4)
    assert distribution[2] == distribution["≤ 2"] == distribution.estimate.set_fraction([0, 1, 2])
    assert distribution[5] == LinearEstimate(1.0, 0.0)
    assert distribution.to_pandas().columns.tolist() == ["value", "share", "standard_error", "low", "high"]


def test_a_quantile_is_the_least_value_that_reaches_its_level() -> None:
    mechanism = RandomizedResponse(R(4), 20)
    estimate = sf.estimate(mechanism, sf.Aggregate(mechanism.hash, 1000, np.array([250, 250, 250, 250])), "simplex")
    for level, value in ((0.1, 0), (0.25, 0), (0.26, 1), (0.5, 1), (0.75, 2), (0.76, 3), (0.99, 3)):
        assert estimate.quantile(level).value == value
    levels: list[Any] = [0, 1, -1, 2, "half", True, math.nan]
    for level in levels:
        with pytest.raises(InvalidInput, match="quantile: the level must lie between 0 and 1"):
            estimate.quantile(level)
    quantile = estimate.quantile(0.4)
    low, high = quantile.interval(0.6826894921370859)
    assert quantile.standard_error == (high - low) / 2
    words = estimate_of(RandomizedResponse(WORDS, 2)).quantile(0.5)
    assert words.value in WORDS
    assert math.isnan(words.standard_error)


def distributions(size: int) -> Iterator[Floats]:
    """Distributions with ties at the levels 0.25 and 0.5, at the corners, and random ones."""
    for p in itertools.product((0, 0.25, 0.5, 0.75, 1), repeat=size):
        if sum(p) == 1:
            yield np.array(p, float)
    yield from np.random.default_rng(0).dirichlet(np.ones(size), 30)


@pytest.mark.parametrize(("n", "epsilon"), [(1, 1), (2, 8), (5, 3), (9, 1)])
def test_exact_coverage_of_quantiles_from_few_people(n: int, epsilon: int) -> None:
    """The coverage over all counts of three outputs."""
    mechanism = RandomizedResponse(R(3), epsilon)
    counts = np.array([c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n])
    estimates = [sf.estimate(mechanism, sf.Aggregate(mechanism.hash, n, c)) for c in counts]
    for level in (0.25, 0.5):
        low, high = np.array([estimate.quantile(level).interval(0.9) for estimate in estimates]).T
        coverage = []
        for p in distributions(3):
            truth = int(np.argmax(np.cumsum(p) >= level - 1e-12))
            law = multinomial(counts, p @ mechanism.matrix())
            coverage.append(law[(low <= truth) & (truth <= high)].sum())
        assert min(coverage) >= 0.9


def test_the_interval_of_a_quantile_contains_it_and_grows_with_confidence() -> None:
    for mechanism, level in itertools.product(MECHANISMS.values(), (0.1, 0.5, 0.9)):
        quantile = estimate_of(mechanism, n=300).quantile(level)
        before = (quantile.value, quantile.value)
        for confidence in (0.5, 0.9, 0.999):
            low, high = quantile.interval(confidence)
            assert low <= before[0] <= quantile.value <= before[1] <= high
            before = low, high


def test_limits_far_from_a_level_are_not_computed_but_would_not_matter() -> None:
    quantile = estimate_of(RandomizedResponse(R(12), 3), n=400).quantile(0.5)
    low, high = quantile.distribution.interval(0.95)
    first, last = np.flatnonzero(high >= 0.5)[0], np.flatnonzero(low < 0.5)[-1] + 1
    assert quantile.interval(0.95) == (min(first, quantile.value), max(last, quantile.value))


def test_several_quantiles_are_answers() -> None:
    estimate = estimate_of(RandomizedResponse(R(6), 2))
    answers = estimate.answers(sf.Quantiles([0.25, 0.5]))
    assert isinstance(answers, QuantileAnswers)
    assert answers[0.5] == estimate.quantile(0.5)
    assert answers.values.tolist() == [estimate.quantile(level).value for level in (0.25, 0.5)]
    assert answers.standard_errors.tolist() == [estimate.quantile(level).standard_error for level in (0.25, 0.5)]
    low, high = answers.interval(0.9, simultaneous=True)
    assert (low[1], high[1]) == estimate.quantile(0.5).interval(0.95)
    assert answers.to_pandas()["level"].tolist() == [0.25, 0.5]
    with pytest.raises(Undecided, match="covariance of quantiles"):
        _ = answers.covariance


# -- results as data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", [*QUESTIONS, "quantiles"])
def test_answers_survive_json(question: str) -> None:
    asked = QUESTIONS.get(question, sf.Quantiles([0.5]))
    answers = estimate_of(RandomizedResponse(R(6), 2)).answers(asked)
    document = through_json(answers.to_dict())
    again = Answers.from_dict(document)
    assert type(again) is type(answers)
    assert again == answers == pickle.loads(pickle.dumps(answers))
    assert again.to_dict() == answers.to_dict()
    assert repr(again) == repr(answers)
    assert "\n" not in repr(answers)
    assert len(str(answers).splitlines()) == len(answers) + 2
    assert "<table>" in answers._repr_html_()
    assert answers.to_arrow().num_rows == len(answers)
    assert answers.plot().axes[0].get_xlabel()


def test_malformed_documents_of_answers_are_rejected() -> None:
    estimate = estimate_of(RandomizedResponse(WORDS, 2))
    assert_read_or_rejected(Answers, through_json(estimate.cdf().to_dict()))
    assert_read_or_rejected(QuantileEstimate, through_json(estimate.quantile(0.5).to_dict()))
    with pytest.raises(InvalidInput, match="have answers of the class DistributionEstimate"):
        DistributionEstimate.from_dict(estimate.answers().to_dict())


def test_a_quantile_survives_json_and_is_drawn() -> None:
    quantile = estimate_of(RandomizedResponse(R(6), 2)).quantile(0.5)
    again = QuantileEstimate.from_dict(through_json(quantile.to_dict()))
    assert again == quantile
    assert again.interval() == quantile.interval()
    assert repr(quantile) == f"QuantileEstimate(level=0.5, value={quantile.value})"
    assert quantile.to_pandas()["level"].tolist() == [0.5]
    assert quantile.to_arrow().num_rows == 1
    axes: Any = quantile.plot().axes[0]
    assert axes.lines[-1].get_xdata().tolist() == [quantile.value]
    assert axes.lines[-1].get_ydata().tolist() == [0.5]


def test_figures_show_the_numbers() -> None:
    estimate = estimate_of(RandomizedResponse(R(6), 2))
    distribution = estimate.cdf()
    axes: Any = distribution.plot().axes[0]
    assert axes.lines[0].get_ydata().tolist() == [*distribution.monotone, 1.0]
    assert axes.lines[0].get_xdata().tolist() == list(range(6))
    mean = estimate.mean()
    axes = mean.plot().axes[0]
    assert axes.lines[0].get_xdata().tolist() == [mean.value]
    ((segment,),) = [collection.get_segments() for collection in axes.collections]
    assert segment[:, 0].tolist() == pytest.approx(mean.interval())
    ranges = estimate.answers(QUESTIONS["ranges"])
    axes = ranges.plot(simultaneous=True).axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(ranges.values.tolist())
    words = estimate_of(RandomizedResponse(WORDS, 2)).cdf().plot().axes[0]
    assert [tick.get_text() for tick in words.get_xticklabels()] == list(WORDS)
    assert estimate.answers(sf.Workload(np.eye(6)[np.arange(70) % 6])).plot().axes[0].lines


def test_a_mean_of_bins_states_their_error() -> None:
    number = LinearEstimate(3.0, 0.1, rounding=0.5)
    assert str(number) == "3 ± 0.1 (± 0.5 from bins)"
    assert "may differ by up to 0.5 more" in number._repr_html_()
    assert LinearEstimate.from_dict(through_json(number.to_dict())) == number
    assert (number - number).rounding == 1
    assert "rounding" not in LinearEstimate(3.0, 0.1).to_dict()
    assert estimate_of(RandomizedResponse(R(6), 2)).answers("mean").rounding == 0
    domain = sf.Domain.numbers(0, 30, bins=3)
    mechanism = RandomizedResponse(domain, 3)
    reports = sf.privatize(mechanism, [4.0] * 300 + [17.5] * 300 + [29.9] * 300, sf.InsecureSeeded(1))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    mean = estimate.mean()
    assert mean.rounding == estimate.answers("mean").rounding == 5
    assert abs(mean.value - 17.13) < 5 + 5 * mean.standard_error
    assert "may differ by up to 5 more" in str(estimate.answers("mean"))
    assert estimate.answers(sf.Mean([1, 2, 4])).rounding == 0
    assert estimate.range(0, 20) == estimate.set_fraction(["[0, 10)", "[10, 20)"])
    median = estimate.quantile(0.5)
    assert median.value == "[10, 20)"
    axes: Any = median.plot().axes[0]
    assert axes.lines[-1].get_xdata().tolist() == [15.0]
