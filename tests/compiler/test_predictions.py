"""Plans predict the error of the method that will be used, at the truth that is expected."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.collecting import Aggregate
from sfumato.compiler.plans import ordered_by_method
from sfumato.compiler.predictions import (
    Assumption,
    Visible,
    _normal_frequencies,
    people_for,
    predict,
    unbiased_errors,
)
from sfumato.errors import InvalidInput
from sfumato.mechanisms.registry import count_law_for
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.randomness import insecure_generator

DOMAIN = sf.Domain.range(30)
POLICY = sf.HighLow(DOMAIN, range(5), 1)


@functools.cache
def planned() -> sf.Plan:
    """Return a plan for projected estimates and a Zipf law."""
    return sf.plan(POLICY, n=5_000, truth="zipf", method="simplex", max_seconds=0)


def zipf(size: int) -> np.ndarray:
    weights = 1 / np.arange(1, size + 1)
    return np.asarray(weights / weights.sum())


def assumed(method: str, size: int) -> Assumption:
    return Assumption.read("plan", "zipf", method, None, sf.Domain.range(size))


@pytest.mark.parametrize("method", ["unbiased", "simplex"])
@pytest.mark.parametrize(("size", "n"), [(10, 2_000), (200, 200_000)])
def test_predicted_errors_are_those_of_other_surveys(method: str, size: int, n: int) -> None:
    """Within 10%, at fixed seeds. The standard errors of both means are below 2%."""
    mechanism, truth = HadamardResponse(sf.Domain.range(size), 1), zipf(size)
    predicted = predict(mechanism, n, assumed(method, size))
    assert predicted is not None
    law = count_law_for(mechanism)
    assert law is not None
    distances, squares = [], []
    for seed in range(1, 151):
        counts = Aggregate(mechanism.hash, n, law(insecure_generator(seed), n, truth))
        difference = sf.estimate(mechanism, counts, method).frequencies - truth
        distances.append(np.abs(difference).sum() / 2)
        squares.append(difference @ difference)
    assert predicted.tv == pytest.approx(np.mean(distances), rel=0.1)
    assert predicted.squared == pytest.approx(np.mean(squares), rel=0.1)
    assert 0 < predicted.tv_error < 0.03 * predicted.tv


@pytest.mark.slow
def test_many_bits_are_predicted_by_the_normal_law() -> None:
    """Subset selection over 300 values: the normal approximation agrees with the exact law within 5%."""
    mechanism, truth, n = SubsetSelection(sf.Domain.range(300), 1), zipf(300), 300_000
    law = count_law_for(mechanism)
    assert law is not None
    for method in ("unbiased", "simplex"):
        predicted = predict(mechanism, n, assumed(method, 300))
        assert predicted is not None
        exact = []
        for seed in range(1, 11):
            counts = Aggregate(mechanism.hash, n, law(insecure_generator(seed), n, truth))
            exact.append(np.abs(sf.estimate(mechanism, counts, method).frequencies - truth).sum() / 2)
        assert predicted.tv == pytest.approx(np.mean(exact), rel=0.05)


def test_normal_draws_keep_the_totals_of_blocks() -> None:
    """Totals are counts of people; variances agree within 6 standard errors of 400 draws (a relative error of 7%)."""
    policy, n, truth = sf.Blocks(sf.Domain.range(40), [x // 10 for x in range(40)], 1), 20_000, zipf(40)
    mechanism = sf.design(policy)
    generator = insecure_generator(3)
    draws = np.concatenate([list(_normal_frequencies(mechanism, n, truth, generator)) for _ in range(2)])
    assert len(draws) == 400
    totals, expected = draws.reshape(-1, 4, 10).sum(axis=2), truth.reshape(4, 10).sum(axis=1)
    assert totals.var(axis=0) == pytest.approx(expected * (1 - expected) / n, rel=0.42)
    assert draws.var(axis=0) == pytest.approx(mechanism.estimator.variances(truth) / n, rel=0.42)
    assert predict(mechanism, n, assumed("bayes", 40)) is not None


def test_errors_of_estimates_that_are_not_distributions_are_not_clipped() -> None:
    """Half the l1 error of the unbiased estimate is far above 1, and that of a projected one below."""
    plan = sf.plan(sf.Uniform(sf.Domain.range(1000), "0.1"), n=10_000, truth="zipf", max_seconds=0)
    for row in plan:
        assert row.predicted is not None
        assert row.tv == row.predicted.tv == pytest.approx(row.half_l1, rel=0.1)
        assert row.predicted.tv_error > 0
    simplex = sf.plan(sf.Uniform(sf.Domain.range(1000), "0.1"), n=100, truth="zipf", method="simplex", max_seconds=0)
    assert all(row.tv < 1 for row in simplex)


def test_a_plan_states_what_it_assumes() -> None:
    plain = sf.plan(POLICY, n=1000, max_seconds=0)
    assert str(plain).splitlines()[0].endswith("n = 1,000, equally frequent values, method unbiased")
    prior = sf.plan(POLICY, n=1000, prior=zipf(30), max_seconds=0)
    assert prior.title.endswith("frequencies equal to the prior, method unbiased")
    options: dict[str, Any] = {"n": 1000, "method": "simplex", "mechanism": "uo-rr"}
    named = sf.plan(POLICY, truth="zipf", **options)
    assert named.title.endswith("frequencies proportional to 1/rank (zipf), method simplex, ordered by TV")
    by_series = sf.plan(POLICY, truth=pd.Series(zipf(30), index=range(30)), **options)
    assert by_series.title.endswith("the given truth, method simplex, ordered by TV")
    assert by_series.best.predicted == named.best.predicted
    assert named.truth == pytest.approx(zipf(30))
    question = sf.plan(POLICY, n=1000, question="mean", max_seconds=0)
    assert question.title.endswith("question mean, n = 1,000, equally frequent values")


@pytest.mark.slow
def test_rows_are_in_the_order_of_the_errors_of_the_method() -> None:
    """Errors that differ by less than three standard errors keep the order of their risks."""
    zipfian = planned()
    assert zipfian.title.endswith("method simplex, ordered by TV")
    errors = [row.predicted for row in zipfian if row.predicted is not None]
    assert len(errors) == len(zipfian)
    for first, second in itertools.pairwise(errors):
        assert first.tv <= second.tv + 3 * np.hypot(first.tv_error, second.tv_error)
    assert all(row.tv == predicted.tv for row, predicted in zip(zipfian, errors, strict=True))
    table = zipfian.to_pandas()
    assert (table["tv"] > table["tv_error"]).all()
    plain = sf.plan(POLICY, n=5_000, max_seconds=0)
    assert [row.risk for row in plain] == sorted(row.risk for row in plain)
    assert {row.name: row.risk for row in plain} == {row.name: row.risk for row in zipfian}
    assert "squared" not in plain.to_pandas()


def test_a_row_moves_only_if_its_error_is_certainly_smaller() -> None:
    plan = planned()
    first, second = plan.rows[:2]
    known = first.predicted
    assert known is not None

    def order(tv: float) -> list[str]:
        errors = [dataclasses.replace(known, tv=each, tv_error=0.01) for each in (0.5, tv)]
        rows = [dataclasses.replace(row, predicted=error) for row, error in zip((first, second), errors, strict=True)]
        return [row.name for row in ordered_by_method(dataclasses.replace(plan, rows=tuple(rows)))]

    assert order(0.48) == [first.name, second.name]
    assert order(0.44) == [second.name, first.name]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bayes", "best"])
def test_shrunk_errors_are_those_of_other_surveys(method: str) -> None:
    """Within 10%, at fixed seeds. The standard errors of the means are 2% to 3%, and 2%."""
    mechanism, truth, n = HadamardResponse(sf.Domain.range(100), 1), zipf(100), 300_000
    predicted = predict(mechanism, n, assumed(method, 100))
    assert predicted is not None
    law = count_law_for(mechanism)
    assert law is not None
    distances = []
    for seed in range(1, 26):
        counts = Aggregate(mechanism.hash, n, law(insecure_generator(seed), n, truth))
        distances.append(np.abs(sf.estimate(mechanism, counts, method).frequencies - truth).sum() / 2)
    assert predicted.tv == pytest.approx(np.mean(distances), rel=0.1)
    assert predicted.tv_error < (0.02 if method == "bayes" else 0.05) * predicted.tv


@pytest.mark.slow
def test_a_target_is_reached_by_the_same_method() -> None:
    options: dict[str, Any] = {"truth": "zipf", "method": "simplex", "mechanism": "uo-rr"}
    plan = sf.plan(POLICY, target=0.08, **options)
    assert plan.best.tv == pytest.approx(0.08, rel=0.03)
    fewer = sf.plan(POLICY, n=plan.n // 2, **options)
    assert fewer.best.tv > 1.2 * 0.08
    mechanism, start = plan.best.mechanism, float(plan.n)
    for guess in (start / 100, 100 * start):
        people = people_for(0.08, mechanism, assumed("simplex", 30), guess)
        assert people == pytest.approx(plan.n, rel=0.03)
    assert people_for(0.999, mechanism, assumed("simplex", 30), 50.0) == 1
    assert people_for(1e-9, mechanism, assumed("simplex", 30), 1e12) is None


@pytest.mark.slow
def test_the_saving_is_that_of_the_method() -> None:
    plan = planned()
    assert plan.classical_people == round(plan.saving * plan.n)
    classical = predict(plan.classical.mechanism, plan.classical_people, assumed("simplex", 30))
    assert classical is not None
    assert classical.tv == pytest.approx(plan.best.tv, rel=0.03)
    people = f"{plan.classical_people:,} people instead of 5,000"
    assert f"for the same total variation error by this method, classical LDP needs {people}" in str(plan)
    assert sf.plan(sf.Uniform(DOMAIN, 1), n=5_000, method="simplex", max_seconds=0).saving == 1


def test_errors_of_single_values() -> None:
    plan = sf.plan(POLICY, n=5_000, truth="zipf", mechanism="uo-rr")
    exact = np.sqrt(plan.best.mechanism.estimator.variances(zipf(30)) / 5_000)
    assert plan.value_errors() == pytest.approx(exact)
    projected = planned()
    errors = projected.value_errors(projected["uo-rr"])
    assert errors.shape == (30,)
    assert float(np.sqrt(np.mean(errors**2) * 30)) == pytest.approx(projected["uo-rr"].squared ** 0.5, rel=0.1)


def test_predictions_survive_json() -> None:
    plan = planned()
    assert sf.Plan.from_dict(plan.to_dict()) == plan
    document = sf.plan(POLICY, n=5_000, max_seconds=0).to_dict()
    assert not {"truth", "method"} & set(document)
    incomplete = {key: value for key, value in plan.to_dict().items() if key != "method"}
    with pytest.raises(InvalidInput):
        sf.Plan.from_dict(incomplete)


def test_a_method_that_does_not_support_a_mechanism_has_no_prediction() -> None:
    plan = sf.plan(sf.Uniform(sf.Domain.range(12), 1), n=5_000, method="efficient", max_seconds=0)
    assert plan["rr"].predicted is not None
    assert plan["unary"].predicted is None
    assert "-" in next(line for line in str(plan).splitlines() if " unary " in line)
    hopeless = sf.plan(sf.Uniform(DOMAIN, 0), n=10, truth="zipf", method="simplex", max_seconds=0)
    assert hopeless.best.predicted is None
    assert hopeless.best.tv == np.inf


def test_invalid_assumptions_are_rejected() -> None:
    with pytest.raises(InvalidInput, match=r"plan: truth must be a distribution, or one of uniform, zipf, geometric"):
        sf.plan(POLICY, n=10, truth="normal")
    with pytest.raises(InvalidInput, match="plan: method must be one of unbiased"):
        sf.plan(POLICY, n=10, method="mmse")
    with pytest.raises(InvalidInput, match="plan: truth must be left out with a question"):
        sf.plan(POLICY, n=10, question="mean", truth="zipf")
    with pytest.raises(InvalidInput, match="plan: method must be left out with a question"):
        sf.plan(POLICY, n=10, question="mean", method="simplex")


@pytest.mark.parametrize("policy", [sf.Uniform(sf.Domain.range(800), 1), sf.HighLow(sf.Domain.range(800), [5, 7], 1)])
def test_visible_values_are_those_whose_intervals_exclude_zero(policy: sf.Policy) -> None:
    """A value 1.6 times above the limit is found in about 88% of surveys, one at 0.4 times in about 12%."""
    n, size = 100_000, 800
    mechanism = sf.plan(policy, n, max_seconds=0).best.mechanism
    visible = Visible.of(mechanism, n, np.full(size, 1 / size))
    assert 0 < visible.least < 0.1
    truth = np.full(size, (1 - 2 * visible.least) / (size - 2))
    truth[5], truth[7] = 1.6 * visible.least, 0.4 * visible.least
    at = np.where(np.arange(size) == 5, visible.least, (1 - visible.least) / (size - 1))
    assert unbiased_errors(mechanism, n, at)[5] == pytest.approx(visible.error, rel=1e-6)
    law = count_law_for(mechanism)
    assert law is not None
    generator = insecure_generator(1)
    found = []
    for _ in range(100):
        counts = Aggregate(mechanism.hash, n, law(generator, n, truth))
        found.append(sf.estimate(mechanism, counts).interval()[0][[5, 7]] > 0)
    above, below = np.mean(found, axis=0)
    assert above > 0.7
    assert below < 0.3


def test_an_error_above_one_comes_with_that_of_the_recommended_method() -> None:
    compared = sf.plan(sf.Uniform(sf.Domain.range(3_000), 1), n=100_000, truth="zipf", max_seconds=0)
    better = predict(compared.best.mechanism, 100_000, assumed("best", 3_000))
    assert better is not None
    assert better.tv < 1 < compared.best.tv
    assert f"with method unbiased, and about {better.tv:.2g} with method best, " in compared.reason


@pytest.mark.slow
def test_few_people_are_warned_of() -> None:
    policy = sf.Uniform(DOMAIN, 1)
    few = sf.plan(policy, n=2, max_seconds=0).warnings
    assert few == ["2 people are too few: no value can be expected to differ from zero, however frequent"]
    (equal,) = sf.plan(policy, n=100, max_seconds=0).warnings
    assert equal == (
        "with equally frequent values, no value can be expected to differ from zero; 100 people show every value above "
        "39% (standard error 20%); pass the frequencies that you expect as truth"
    )
    (some,) = sf.plan(policy, n=3_000, truth="zipf", max_seconds=0).warnings
    assert some == (
        "with frequencies proportional to 1/rank (zipf) and 3,000 people, 3 of 30 values can be expected to differ "
        "from zero, among them every value above 6.7% (standard error 3.4%); 46% of people have these values"
    )
    assert sf.plan(policy, n=10**6, max_seconds=0).warnings == []
    assert sf.plan(policy, n=20, question="mean", max_seconds=0).warnings == []
