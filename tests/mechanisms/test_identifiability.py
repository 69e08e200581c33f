"""Reports that do not distinguish all values: which sums they determine, compared with exact rational arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sfumato as sf
from sfumato.mechanisms import NotIdentifiable, RandomizedResponse, TableMechanism
from sfumato.mechanisms.estimators.matrix import MatrixEstimator

Table = list[list[Fraction]]
R = sf.Domain.range


def rank_of(rows: Sequence[Sequence[Fraction]]) -> int:
    """Return the exact rank of a matrix, by elimination over the rationals."""
    table, rank = [list(row) for row in rows], 0
    for column in range(len(table[0])):
        pivot = next((i for i in range(rank, len(table)) if table[i][column]), None)
        if pivot is None:
            continue
        table[rank], table[pivot] = table[pivot], table[rank]
        for i in range(rank + 1, len(table)):
            factor = table[i][column] / table[rank][column]
            table[i] = [a - factor * b for a, b in zip(table[i], table[rank], strict=True)]
        rank += 1
    return rank


def is_identified(table: Table, weights: Sequence[Fraction]) -> bool:
    """Return whether weights are a combination of the columns of a table, exactly."""
    return rank_of(table) == rank_of([[*row, w] for row, w in zip(table, weights, strict=True)])


def floats(table: Sequence[Sequence[Fraction]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([[float(entry) for entry in row] for row in table])


@st.composite
def rows(draw: st.DrawFn, length: int) -> list[Fraction]:
    """A distribution over ``length`` outcomes with small rational probabilities."""
    counts = draw(st.lists(st.integers(0, 7), min_size=length, max_size=length).filter(any))
    return [Fraction(count, sum(counts)) for count in counts]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table of rank at most 3, often singular: rows are mixtures of a few rows."""
    values, outputs, inner = draw(st.integers(2, 6)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    mixtures = [draw(rows(inner)) for _ in range(values)]
    basis = [draw(rows(outputs)) for _ in range(inner)]
    return [
        [sum((a * b[y] for a, b in zip(m, basis, strict=True)), Fraction(0)) for y in range(outputs)] for m in mixtures
    ]


def weights_of(values: int) -> st.SearchStrategy[list[Fraction]]:
    return st.lists(st.integers(-5, 5).map(Fraction), min_size=values, max_size=values)


def assert_unbiased(table: Table, estimator: MatrixEstimator, weights: Sequence[Fraction]) -> None:
    """Assert that the expected score of one report is the weight of every value, with exact sums over the reports."""
    scores = [Fraction(score) for score in estimator.output_scores(floats([weights])[0])]
    allowed = Fraction(max(weights) - min(weights), 10**6) + max(map(abs, weights)) / 10**14
    for row, weight in zip(table, weights, strict=True):
        assert abs(sum(q * s for q, s in zip(row, scores, strict=True)) - weight) <= allowed


@settings(max_examples=100)
@given(data=st.data())
def test_singular_tables_answer_exactly_the_sums_that_their_reports_determine(data: st.DataObject) -> None:
    table = data.draw(tables())
    estimator = MatrixEstimator(floats(table))
    assert estimator.rank == rank_of(table)
    assert estimator.is_complete == (rank_of(table) == len(table))
    scores = data.draw(weights_of(len(table[0])))
    combination = [sum((q * s for q, s in zip(row, scores, strict=True)), Fraction(0)) for row in table]
    assert estimator.identifies(floats([combination])[0])
    assert_unbiased(table, estimator, combination)
    weights = data.draw(weights_of(len(table)))
    assert estimator.identifies(floats([weights])[0]) == is_identified(table, weights)
    if is_identified(table, weights):
        assert_unbiased(table, estimator, weights)
    else:
        p = np.full(len(table), 1 / len(table))
        for answer in (estimator.output_scores, lambda w: estimator.variance(w, p), estimator.scores):
            with pytest.raises(NotIdentifiable, match="determine this sum of frequencies"):
                answer(floats([weights])[0])


@settings(max_examples=60)
@given(data=st.data(), digits=st.integers(1, 20))
def test_sums_of_nearly_singular_tables_are_answered_without_bias_or_not_at_all(
    data: st.DataObject, digits: int
) -> None:
    table = data.draw(tables())
    other = data.draw(rows(len(table[0])))
    share = Fraction(1, 10**digits)
    table[0] = [(1 - share) * q + share * r for q, r in zip(table[0], other, strict=True)]
    estimator = MatrixEstimator(floats(table))
    assert estimator.rank <= rank_of(table)
    for weights in (data.draw(weights_of(len(table))), *np.eye(len(table), dtype=int).tolist()):
        weights = [Fraction(w) for w in weights]
        if estimator.identifies(floats([weights])[0]):
            assert_unbiased(table, estimator, weights)


def test_the_variance_of_an_identified_sum_is_the_least_of_all_unbiased_ones() -> None:
    generator = np.random.default_rng(3)
    for _ in range(20):
        mixtures, basis = generator.dirichlet(np.ones(2), 5), generator.dirichlet(np.ones(4), 2)
        matrix, p = mixtures @ basis, generator.dirichlet(np.ones(5))
        estimator, law = MatrixEstimator(matrix, p), p @ matrix
        scores = generator.normal(size=4)
        weights = matrix @ scores
        # By the theory: w'J⁻w - (w·p)², with the information J at p.
        information = (matrix / law) @ matrix.T
        least = weights @ np.linalg.pinv(information, rcond=1e-10) @ weights - (weights @ p) ** 2
        assert estimator.variance(weights, p) == pytest.approx(least, rel=1e-6)
        assert estimator.variance(weights, p) <= law @ scores**2 - (weights @ p) ** 2 + 1e-12


def test_the_best_mechanism_for_a_mean_has_two_outputs() -> None:
    line = [[Fraction(3 - x, 4), Fraction(1 + x, 4)] for x in range(3)]
    mechanism = TableMechanism.from_matrix(R(3), line)
    estimator = mechanism.estimator
    assert not estimator.is_complete
    assert estimator.identifies(np.array([0.0, 1, 2]))
    assert estimator.identifies(np.array([[0.0, 1, 2], [5, 5, 5], [-2, 0, 2]]))
    assert not estimator.identifies(np.array([[0.0, 1, 2], [0, 0, 1]]))
    assert not estimator.identifies(np.array([0.0, 1, 2.0001]))
    assert not estimator.identifies(np.array([0.0, 1, np.nan]))
    assert mechanism.risk(1) == mechanism.worst_risk(1) == math.inf
    p = np.full(3, 1 / 3)
    for method in (estimator.second_moments, estimator.score_values, estimator.score_bounds, estimator.revealed):
        with pytest.raises(NotIdentifiable, match=r"distinguish all values in its reports .* rank 2\. Ask for a mean"):
            method()
    for method_at in (estimator.variances, estimator.covariance):
        with pytest.raises(NotIdentifiable):
            method_at(p)
    # One report y has score 4y - 1, so its variance at the uniform distribution is 4.
    assert estimator.variance(np.array([0.0, 1, 2]), p) == pytest.approx(4)


def test_other_estimators_are_complete() -> None:
    estimator = RandomizedResponse(R(3), 1).estimator
    assert estimator.is_complete
    assert estimator.identifies(np.eye(3))


def test_equal_rows_leave_the_sum_of_their_frequencies() -> None:
    halves = [Fraction(1, 2)] * 2
    for order in itertools.permutations([[Fraction(1), Fraction(0)], halves, halves]):
        estimator = TableMechanism.from_matrix(R(3), [list(row) for row in order]).estimator
        single = np.array([row != halves for row in order], float)
        assert estimator.identifies(single)
        assert estimator.identifies(1 - single)
        assert not any(estimator.identifies(unit) for unit in np.eye(3)[single == 0])
