"""Simulations of questions: the errors of the answers are those predicted, also where frequencies are not known."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.mechanisms import NotIdentifiable, RandomizedResponse, TableMechanism

DOMAIN = sf.Domain([20, 30, 40, 50])
TRUTH = [0.1, 0.4, 0.3, 0.2]
#: Two outputs: reports determine the mean, and no frequency.
ONE_BIT = TableMechanism.from_matrix(DOMAIN, [[0.75, 0.25], [7 / 12, 5 / 12], [5 / 12, 7 / 12], [0.25, 0.75]])


@pytest.mark.parametrize(
    ("mechanism", "question"),
    [
        (ONE_BIT, sf.Mean()),
        (RandomizedResponse(DOMAIN, 1), sf.Mean()),
        (RandomizedResponse(DOMAIN, 1), sf.Distribution()),
        (RandomizedResponse(DOMAIN, 1), sf.Quantiles([0.3, 0.5])),
        (RandomizedResponse(DOMAIN, 1), sf.Ranges([(25, 45)])),
    ],
)
def test_errors_of_answers_are_those_predicted(mechanism: sf.mechanisms.Mechanism, question: sf.Question) -> None:
    """Mean squared errors of 120 seeded collections; a deviation of 65% is beyond α = 1e-6."""
    options: dict[str, Any] = {"truth": TRUTH, "question": question, "one_by_one": False}
    runs = [sf.simulate(mechanism, n=2000, seed=seed, **options) for seed in range(120)]
    squared = np.mean([run.answer_rmse**2 for run in runs])
    assert squared == pytest.approx(runs[0].predicted_answer_rmse ** 2, rel=0.65)
    low, high = runs[0].answers.interval()
    truth = runs[0].true_answers
    assert runs[0].answer_coverage == np.mean((low <= truth) & (truth <= high))


def test_predicted_errors_are_exact() -> None:
    run = sf.simulate(ONE_BIT, n=100, truth=TRUTH, question="mean")
    high = float(np.array(TRUTH) @ ONE_BIT.matrix()[:, 1])  # the mean is 35 + 60·(share of output 1 - 1/2)
    assert run.predicted_answer_rmse == pytest.approx(60 * (high * (1 - high) / 100) ** 0.5)
    assert run.true_answers.tolist() == [pytest.approx(36)]
    distribution = sf.simulate(RandomizedResponse(DOMAIN, 1), n=100, truth=TRUTH, question=sf.Distribution())
    rows = np.tri(3, 4)
    covariance = distribution.mechanism.estimator.covariance(np.array(TRUTH))
    assert distribution.predicted_answer_rmse**2 == pytest.approx(np.trace(rows @ covariance @ rows.T) / 300)
    quantiles = sf.simulate(RandomizedResponse(DOMAIN, 1), n=100, truth=TRUTH, question=sf.Quantiles([0.1, 0.5, 0.81]))
    assert quantiles.true_answers.tolist() == [20, 30, 50]


def test_a_policy_gets_a_mechanism_for_the_question() -> None:
    policy = sf.Uniform(DOMAIN, 1)
    run = sf.simulate(policy, n=1000, truth=TRUTH, question=sf.Mean())
    assert run.mechanism == sf.design(policy, question=sf.Mean())
    assert sf.simulate(policy, n=1000, question="frequencies") == sf.simulate(policy, n=1000)


def test_tables_documents_and_figures() -> None:
    run = sf.simulate(ONE_BIT, n=1000, truth=TRUTH, question=sf.Mean())
    assert run.to_pandas().columns.tolist() == ["answer", "truth", "estimate", "low", "high"]
    assert "question mean: root mean square error of the answers" in repr(run)
    document = json.loads(json.dumps(run.to_dict()))
    assert sf.Simulation.from_dict(document) == run
    assert run.plot().axes
    without = sf.simulate(RandomizedResponse(DOMAIN, 1), n=1000, truth=TRUTH).to_dict()
    assert "question" not in without
    assert sf.Simulation.from_dict(without).answer_rmse > 0


def test_answers_that_reports_do_not_determine_are_refused() -> None:
    for question in (None, sf.Distribution(), sf.Ranges([(20, 30)])):
        with pytest.raises(NotIdentifiable):
            sf.simulate(ONE_BIT, n=10, question=question)
    with pytest.raises(InvalidInput, match="simulate: question must be one of"):
        sf.simulate(ONE_BIT, n=10, question="median")
