"""Designs for questions: values, bounds, unbiased answers, and what does not fit together."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import scipy.sparse as sparse

import sfumato as sf
from sfumato._core import Floats
from sfumato.compiler import Estimation, WorstEstimation
from sfumato.compiler.classes import Classes
from sfumato.compiler.solvers import coarsening
from sfumato.compiler.solvers.answers import Answers
from sfumato.compiler.solvers.clusters import trace_of_clusters
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.compiler.solvers.estimation import best_design, solve_design
from sfumato.compiler.solvers.relaxation import least_trace
from sfumato.compiler.solvers.slice import Slice
from sfumato.errors import InvalidInput

clarabel = pytest.importorskip("clarabel")


def least_variance(rays: Floats, rows: Floats) -> float:
    """Solve the design as one second-order cone program over weights and scores: no ridge, no pseudo-inverse.

    Output y has weight w_y and scores z_y/w_y: minimise Σ t_y with |z_y|² ≤ w_y·t_y, Σ z_y v_y' = W and Σ w_y v_y = 1.
    """
    count, size = rays.shape
    answers = len(rows)
    block = answers + 2  # z, w, t per output
    costs = np.zeros(count * block)
    costs[answers + 1 :: block] = 1
    equations, right = [], []
    for row, x in itertools.product(range(answers), range(size)):
        line = np.zeros(count * block)
        line[row::block] = rays[:, x]
        equations.append(line)
        right.append(rows[row, x])
    for x in range(size):
        line = np.zeros(count * block)
        line[answers::block] = rays[:, x]
        equations.append(line)
        right.append(1.0)
    cones = np.zeros((count * block, count * block))
    for y in range(count):
        first = y * block
        cones[first, [first + answers, first + answers + 1]] = -1, -1
        cones[first + 1, [first + answers, first + answers + 1]] = -1, 1
        for row in range(answers):
            cones[first + 2 + row, first + row] = -2
    matrix = sparse.vstack([sparse.csr_matrix(np.array(equations)), sparse.csr_matrix(cones)]).tocsc()
    offset = np.concatenate([right, np.zeros(count * block)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    kinds = [clarabel.ZeroConeT(len(right)), *[clarabel.SecondOrderConeT(block)] * count]
    quadratic = sparse.csc_matrix((len(costs), len(costs)))
    return float(clarabel.DefaultSolver(quadratic, costs, matrix, offset, kinds, settings).solve().obj_val)


def random_policy(rng: np.random.Generator, size: int) -> sf.Pairwise:
    epsilons = rng.uniform(0.3, 2.5, (size, size)).round(2)
    np.fill_diagonal(epsilons, 0.0)
    return sf.Pairwise(sf.Domain.range(size), epsilons)


@pytest.mark.parametrize("seed", range(6))
def test_value_and_bound_match_an_independent_program(seed: int) -> None:
    """Rank-deficient and full questions, skewed priors: value and bound are both the least variance."""
    rng = np.random.default_rng(seed)
    size = 4 if seed % 2 else 5
    policy = random_policy(rng, size)
    prior = rng.dirichlet(np.full(size, 3.0))
    rows = rng.normal(size=((seed % 3) + 1, size))
    slice_ = Slice.of(policy, prior)
    rays = slice_.all_vertices()
    assert rays is not None
    expected = least_variance(rays, rows) - float(np.sum((rows @ prior) ** 2))
    result = sf.optimal(policy, question=sf.Workload(rows), prior=prior)
    assert result.value == pytest.approx(expected, rel=3e-4)
    assert expected * (1 - 1e-4) <= result.value
    assert result.bound <= expected * (1 + 1e-6)
    assert result.status == "optimal"
    assert sf.audit(result.mechanism, policy).holds


def test_other_frequencies_are_not_taken_as_known() -> None:
    """Projecting the rays onto the answers would treat the other frequencies as known, and promise too little."""
    policy = sf.Uniform(sf.Domain.range(4), 1)
    rows = np.array([[0.0, 1.0, 2.0, 3.0]])
    rays = Slice.of(policy, np.full(4, 0.25)).all_vertices()
    assert rays is not None
    centred = rows - rows.mean()
    direction = centred[0] / np.linalg.norm(centred)
    information = [(direction @ ray) ** 2 for ray in rays]
    projected = float(np.sum(centred**2)) / max(information)
    true = sf.optimal(policy, question=sf.Mean()).value
    assert true == pytest.approx(least_variance(rays, centred), rel=3e-4)
    assert projected < 0.9 * true


@pytest.mark.parametrize("question", [sf.Mean(), sf.Distribution(), sf.Ranges([(0, 1)]), sf.Quantiles([0.5])])
@pytest.mark.parametrize(
    "policy",
    [
        sf.Uniform(sf.Domain.range(5), 1),
        sf.Metric(sf.Domain.range(5), "absolute", "0.5"),
        sf.HighLow(sf.Domain.range(5), [3, 4], 1),
        sf.Blocks(sf.Domain.range(5), [[0, 1], [2, 3, 4]], 1, across=2),
        sf.Prior(sf.Domain.range(5), [0.1, 0.2, 0.4, 0.2, 0.1], 1),
    ],
    ids=lambda policy: policy.kind,
)
def test_answers_are_unbiased_and_have_the_stated_error(policy: sf.Policy, question: sf.Question) -> None:
    result = sf.optimal(policy, question=question)
    estimator = result.mechanism.estimator
    rows = question.checked(policy.domain).matrix(result.prior)
    matrix = result.mechanism.matrix()
    scores = np.array([estimator.output_scores(row) for row in rows])
    np.testing.assert_allclose(matrix @ scores.T, rows.T, atol=1e-7 * np.abs(rows).max())
    law = result.prior @ matrix
    error = float(law @ np.sum(scores**2, axis=0) - np.sum((rows @ result.prior) ** 2))
    assert result.value == pytest.approx(error, rel=1e-6)
    assert Estimation(question).checked(policy.domain).value(matrix, result.prior) == pytest.approx(error, rel=1e-5)
    assert result.bound <= result.value * (1 + 1e-9)
    assert result.value <= 1.001 * result.bound
    assert sf.audit(result.mechanism, policy).holds


@pytest.mark.parametrize("epsilon", [1, 2])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_the_worst_case_of_a_mean_is_that_of_one_bit(size: int, epsilon: int) -> None:
    """Duchi et al. 2013: half of the people at each end are least favourable, and one bit is then optimal."""
    result = sf.optimal(sf.Uniform(sf.Domain.range(size), epsilon), "worst-estimation", question=sf.Mean())
    ratio = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    assert result.value == pytest.approx((size - 1) ** 2 / 4 * ratio**2, rel=1e-6)
    assert result.bound == pytest.approx(result.value, rel=1e-5)
    assert result.prior[[0, -1]] == pytest.approx([0.5, 0.5], abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_the_worst_case_is_the_worst(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy = random_policy(rng, 4)
    rows = rng.normal(size=(2, 4))
    result = sf.optimal(policy, "worst-estimation", question=sf.Workload(rows))
    errors = [
        Estimation(sf.Workload(rows)).checked(policy.domain).error_of(result.mechanism, rng.dirichlet(np.ones(4)))
        for _ in range(200)
    ]
    assert max(errors) <= result.value * (1 + 1e-6)
    at_worst = Estimation(sf.Workload(rows)).checked(policy.domain).error_of(result.mechanism, result.prior)
    assert at_worst == pytest.approx(result.value, rel=1e-3)
    assert result.bound == pytest.approx(result.value, rel=1e-3)


def sliced(policy: sf.Policy, rows: Floats) -> Slice:
    slice_ = Slice.of(policy, np.full(len(policy.domain), 1 / len(policy.domain)))
    slice_.answers = Answers.of(rows, slice_.group_of, slice_.prior)
    return slice_


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_relaxation_bounds_every_design(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy = random_policy(rng, 6)
    slice_ = sliced(policy, rng.normal(size=(1 + seed, 6)))
    rays = slice_.all_vertices()
    assert rays is not None
    weights, _, _, value = solve_design(rays, answers=slice_.answers)
    bound = least_trace(slice_, rays, weights, NEVER)
    assert 0.5 * value < bound <= value * (1 + 1e-6)


def test_relaxation_of_prefixes_is_close() -> None:
    """Under one epsilon the lifted maximum makes the bound nearly exact, also for prefixes."""
    policy = sf.Uniform(sf.Domain.range(12), 1)
    result = sf.optimal(policy, question=sf.Distribution(), max_rounds=30)
    assert result.value <= 1.01 * result.bound


def test_clusters_bound_the_answers_of_the_whole() -> None:
    """Dropping the rules between two blocks: the bound is the exact optimum of the policy without them."""
    domain = sf.Domain.range(6)
    rows = np.array([[0.0, 1, 2, 3, 4, 5], [1, 1, 1, 1, 0, 0]])
    apart = sf.Blocks(domain, [[0, 1, 2], [3, 4, 5]], 1)
    exact = best_design(sliced(apart, rows), NEVER)[0]

    def of_part(part: Slice, end: Deadline) -> float:
        return best_design(part, end)[0].bound + part.offset

    joined = sf.Blocks(domain, [[0, 1, 2], [3, 4, 5]], 1, across=3)
    clusters = np.array([0, 0, 0, 1, 1, 1])
    assert trace_of_clusters(sliced(joined, rows), of_part, NEVER, clusters) == pytest.approx(exact.value, rel=1e-4)
    assert best_design(sliced(joined, rows), NEVER)[0].value > exact.value


def test_values_that_must_be_equal() -> None:
    """At ε = 0 between two values, a question that separates them has no answer, and one that does not has."""
    domain = sf.Domain.range(3)
    policy = sf.Pairwise(domain, [[0, 0, 1], [0, 0, 1], [1, 1, 0]])
    apart = sf.optimal(policy, question=sf.Mean())
    assert math.isinf(apart.value)
    assert sf.audit(apart.mechanism, policy).holds
    same = sf.optimal(policy, question=sf.Mean([2, 2, 5]))
    two = sf.optimal(sf.Uniform(sf.Domain.range(2), 1), question=sf.Mean([2, 5]), prior=[2 / 3, 1 / 3])
    assert same.bound == pytest.approx(two.value, rel=1e-6)
    assert same.value == pytest.approx(two.value, rel=1e-6)


def test_no_limit_and_nothing() -> None:
    domain = sf.Domain.range(4)
    free = sf.plan(sf.Uniform(domain, "inf"), n=100, question="mean")
    assert free.error(free.best) == pytest.approx(1.25 / 100)  # the variance of the values themselves
    nothing = sf.plan(sf.Uniform(domain, 0), n=100, question="mean")
    assert math.isinf(nothing.error(nothing.best))
    assert "reveal nothing" in nothing.reason


def test_the_reason_states_large_errors_without_exponents() -> None:
    incomes = sf.Domain.numbers(0, 200_000, bins=4)
    compared = sf.plan(sf.Uniform(incomes, 1), n=20_000, question="mean", max_seconds=0)
    assert f"standard error of the mean about {compared.standard_error(compared.best):,.0f}," in compared.reason
    assert "," in f"{compared.standard_error(compared.best):,.0f}"


def test_plan_of_a_question() -> None:
    policy = sf.Uniform(sf.Domain.range(6), 1)
    compared = sf.plan(policy, n=1000, question=sf.Mean())
    assert compared.question == sf.Mean().checked(policy.domain)
    assert compared.best.ratio is not None
    assert compared.best.ratio < 1.001
    assert compared.saving == 1  # every mechanism for a policy with one level is classical
    assert compared.standard_error(compared.best) == pytest.approx(math.sqrt(compared.error(compared.best)))
    assert "standard error of the mean" in compared.reason
    assert "standard error" in str(compared)
    again = sf.compiler.Plan.from_dict(json.loads(json.dumps(compared.to_dict())))
    assert again == compared
    assert "question" not in sf.plan(policy, n=1000).to_dict()
    errors = compared.to_pandas()["standard_error"]
    assert list(errors) == sorted(errors)


def test_people_for_a_standard_error() -> None:
    policy = sf.Uniform(sf.Domain.range(6), 1)
    compared = sf.plan(policy, target=0.2, question="mean")
    assert compared.standard_error(compared.best) <= 0.2
    fewer = sf.plan(policy, n=compared.n - 1, question="mean")
    assert fewer.standard_error(fewer.best) > 0.2


def test_a_question_needs_an_estimation_goal() -> None:
    policy = sf.Uniform(sf.Domain.range(4), 1)
    for utility in ("mutual-information", "mmse"):
        with pytest.raises(InvalidInput, match="question must be left out"):
            sf.optimal(policy, utility, question="mean")
        with pytest.raises(InvalidInput, match="question must be left out"):
            sf.plan(policy, n=10, utility=utility, question="mean")
    with pytest.raises(InvalidInput, match="question must be left out"):
        sf.optimal(policy, WorstEstimation(sf.Mean()), question="mean")
    with pytest.raises(InvalidInput, match="target must be a positive number"):
        sf.plan(policy, target=-1, question="mean")


def test_all_frequencies_as_a_question_change_nothing() -> None:
    policy = sf.Metric(sf.Domain.range(5), "absolute", 1)
    assert sf.optimal(policy, question=sf.Frequencies()).value == sf.optimal(policy).value
    assert sf.plan(policy, n=10, question="frequencies") == sf.plan(policy, n=10)


def test_results_of_questions_are_cached_apart(tmp_path: object) -> None:
    policy = sf.Uniform(sf.Domain.range(4), 1)
    folder = str(tmp_path)
    mean = sf.optimal(policy, question="mean", cache=folder)
    prefixes = sf.optimal(policy, question="distribution", cache=folder)
    assert mean.value != prefixes.value
    assert sf.optimal(policy, question="mean", cache=folder).mechanism == mean.mechanism


@pytest.mark.parametrize("seed", range(3))
def test_bins_bound_the_answers_over_values(seed: int) -> None:
    """Joining values to bins gives a bound below the exact optimum, also for a skewed prior and a metric."""
    rng = np.random.default_rng(seed)
    policy = [
        random_policy(rng, 8),
        sf.Metric(sf.Domain.range(8), "absolute", "0.3"),
        sf.Uniform(sf.Domain.range(8), 1),
    ]
    prior = rng.dirichlet(np.full(8, 4.0))
    slice_ = Slice.of(policy[seed], prior)
    slice_.answers = Answers.of(np.tri(7, 8), slice_.group_of, prior)
    exact = best_design(slice_, NEVER)[0].value
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coarsening, "_BINS", 4)
        coarse = coarsening.coarse_slice(slice_)
        of_policy = coarsening.coarse_slice_of_policy(policy[seed], np.tri(7, 8), prior)
    assert coarse is not None
    assert of_policy is not None
    assert coarse.size <= 4
    bound = best_design(coarse, NEVER)[0].bound
    assert 0 < bound <= exact * (1 + 1e-9)
    assert best_design(of_policy, NEVER)[0].bound <= exact * (1 + 1e-9)


def test_many_values_have_a_bound_from_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of 300 values: the bound from 12 bins is close to the error of one bit, which is near the optimum."""
    monkeypatch.setattr(coarsening, "_BINS", 12)
    domain = sf.Domain.range(300)
    rows = sf.Mean().checked(domain).matrix()
    coarse = coarsening.coarse_slice_of_policy(sf.Uniform(domain, 1), rows, np.full(300, 1 / 300))
    assert coarse is not None
    one_bit = 299**2 / 4 * ((math.exp(1) + 1) / (math.exp(1) - 1)) ** 2
    bound = best_design(coarse, NEVER)[0].bound
    assert 0.75 * one_bit < bound < one_bit


def test_values_that_the_question_does_not_distinguish_report_the_same() -> None:
    """Half of 4,096 values: the best mechanism is randomized response about the half, with a proven bound."""
    domain = sf.Domain.range(4096)
    policy = sf.Uniform(domain, 1)
    result = sf.optimal(policy, question=sf.Ranges([(0, 2047)]))
    ratio = (math.exp(1) + 1) / (math.exp(1) - 1)
    assert result.value == pytest.approx(ratio**2 / 4, rel=1e-9)
    assert result.status == "optimal"
    assert result.mechanism.outputs == 2
    assert sf.audit(result.mechanism, policy).holds
    assert result.mechanism.probability(0, 0) == result.mechanism.probability(0, 2047)


def test_classes_need_equal_epsilons() -> None:
    """Totals of blocks: blocks at one level have a design over blocks; under a metric each value counts."""
    domain = sf.Domain.range(6)
    totals = np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    blocks = sf.Blocks(domain, [0, 0, 0, 1, 1, 1], 1, across=2)
    classes = Classes.of(blocks, totals)
    assert classes is not None
    assert float(classes.policy.epsilon_between(0, 1)) == 2
    assert Classes.of(sf.Metric(domain, "absolute", 1), totals) is None
    assert Classes.of(blocks, np.eye(6)) is None
    prior = np.array([0.3, 0.1, 0.1, 0.1, 0.2, 0.2])
    rays = Slice.of(blocks, prior).all_vertices()
    assert rays is not None
    expected = least_variance(rays, totals) - float(np.sum((totals @ prior) ** 2))
    result = sf.optimal(blocks, question=sf.Workload(totals), prior=prior)
    assert result.value == pytest.approx(expected, rel=1e-5)
    assert sf.audit(result.mechanism, blocks).holds
    worst = sf.optimal(blocks, "worst-estimation", question=sf.Workload(totals))
    assert worst.value == pytest.approx(2 * ((math.exp(2) + 1) / (math.exp(2) - 1)) ** 2 / 4, rel=1e-5)


def test_answers_that_only_values_without_probability_distinguish() -> None:
    # Reports reveal the values 0 and 1 at no cost, and the answer is constant among the others.
    limits = np.array([[0, 1, "inf", "inf"], [1, 0, "inf", "inf"], [1, 1, 0, 1], [1, 1, 1, 0]])
    policy = sf.Pairwise(sf.Domain.range(4), limits.tolist())
    question = sf.Workload([[1, 0, 0, 0]])
    for prior in ([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0, 1, 0, 0], [0, 0, 0, 1]):
        optimum = sf.optimal(policy, question=question, prior=prior, max_seconds=5)
        assert sf.audit(optimum.mechanism, policy).holds
        assert 0 <= optimum.bound <= optimum.value * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("epsilon", [1, 20])
def test_the_bound_of_quantiles_has_the_weights_of_the_stated_prior(epsilon: int) -> None:
    policy = sf.HighLow(sf.Domain.range(7), [4, 5], epsilon)
    prior = [0, 0.01, 0.76, 0, 0.025, 0.002, 0.203]
    compared = sf.plan(policy, 1, question=sf.Quantiles([0.88]), prior=prior, max_seconds=5)
    assert compared.best.bound is not None
    assert all(row.value is not None and row.value >= compared.best.bound * (1 - 1e-9) for row in compared.rows)


@pytest.mark.parametrize("question", ["mean", "distribution", "quantiles", sf.Ranges([(0, 0)]), sf.Workload([[2]])])
def test_answers_about_one_value_are_known(question: str | sf.Question) -> None:
    for utility in ("estimation", "worst-estimation"):
        optimum = sf.optimal(sf.Uniform(sf.Domain.range(1), 1), utility, question=question)
        assert optimum.value == optimum.bound == 0
