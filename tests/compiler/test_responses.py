"""Responses of memoized tables: exact levels, exact laws, and errors near the bounds of both stages."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.responses import best_response
from sfumato.errors import InvalidInput
from sfumato.mechanisms import MemoizedMechanism, TableMechanism, shared_moments
from sfumato.testing import check_law

R = sf.Domain.range
LEVELS = np.array([[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, 1, 0]])


def pairwise(epsilon: float) -> sf.Pairwise:
    return sf.Pairwise(R(4), LEVELS * epsilon)


def metric(epsilon: float) -> sf.Metric:
    return sf.Metric(R(4), "manhattan", epsilon)


@pytest.fixture(scope="module")
def designs() -> dict[str, MemoizedMechanism]:
    made = {kind.__name__: sf.design(kind(1), lifetime=kind(2)) for kind in (pairwise, metric)}
    assert all(isinstance(each, MemoizedMechanism) for each in made.values())
    return made  # type: ignore[return-value]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pairwise, metric])
def test_both_errors_are_near_their_bounds(kind: Any, designs: dict[str, MemoizedMechanism]) -> None:
    """The bounds are the errors of the best mechanisms for one report at each of the two levels."""
    mechanism = designs[kind.__name__]
    one, permanent = (sf.plan(kind(level), n=1, max_bits=None).best.risk for level in (1, 2))
    p = np.full(4, 1 / 4)
    shared = float((shared_moments(mechanism, p) - p**2).sum())
    assert mechanism.risk(1) <= 1.02 * one
    assert shared <= 1.02 * permanent
    if kind is metric:  # the best mechanism of one report is a table, so it has a permanent table, too
        simple = MemoizedMechanism.for_policies(sf.design(kind(1)), kind(1), kind(2))
        assert shared < float((shared_moments(simple, p) - p**2).sum()) / 1.3


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pairwise, metric])
def test_both_levels_and_all_laws_are_exact(kind: Any, designs: dict[str, MemoizedMechanism]) -> None:
    mechanism = designs[kind.__name__]
    assert sf.mechanism_from_spec(mechanism.spec) == mechanism
    for made, policy in ((mechanism, kind(1)), (mechanism.permanent, kind(2))):
        certificate = sf.audit(made, policy)
        assert certificate.holds
        assert certificate.coverage == "all"
        check_law(made)
    assert mechanism.keep_probability(0) == 0
    answers, reports = range(mechanism.permanent.outputs), range(mechanism.outputs)
    response = {z: [mechanism.instantaneous.probability(y, z) for y in reports] for z in answers}
    assert all(sum(row) == 1 for row in response.values())
    for x in range(4):
        law = [mechanism.permanent.probability(z, x) for z in answers]
        composed = [sum(p * response[z][y] for z, p in zip(answers, law, strict=True)) for y in reports]
        assert composed == [mechanism.probability(y, x) for y in reports]
        for waves in itertools.islice(itertools.combinations_with_replacement(reports, 3), 0, None, 5):
            joint = sum(law[z] * math.prod(response[z][y] for y in waves) for z in answers)
            assert mechanism.joint_probability(waves, x) == joint
    scores = np.array([mechanism.single.estimator.output_scores(unit) for unit in np.eye(4)])
    means = scores @ np.array([[float(p) for p in response[z]] for z in answers]).T
    assert np.allclose(mechanism.permanent.matrix() @ means.T, np.eye(4), atol=1e-7)


@pytest.mark.slow
def test_a_device_answers_waves_from_a_response(designs: dict[str, MemoizedMechanism]) -> None:
    mechanism = designs["metric"]
    ledger = sf.Ledger()
    reports = [ledger.answer_wave("daily", mechanism, 1, wave, stream=sf.InsecureSeeded(wave)) for wave in range(20)]
    assert sf.aggregate(mechanism, reports).n == 20


def test_a_response_must_join_the_two_tables() -> None:
    domain = R(2)
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    permanent = TableMechanism.from_matrix(domain, [[1 - quarter, quarter], [quarter, 1 - quarter]])
    response = TableMechanism.from_matrix(domain, [[1 - quarter, quarter], [quarter, 1 - quarter]])
    single = TableMechanism.from_matrix(domain, [["5/8", "3/8"], ["3/8", "5/8"]])
    mechanism = MemoizedMechanism(single, permanent, sf.Uniform(domain, "ln 3"), response=response)
    assert mechanism.joint_probability([0, 0], 0) == Fraction(7, 16)
    wrong = TableMechanism.from_matrix(domain, [[half, half], [quarter, 1 - quarter]])
    for parts in ((wrong, permanent, response), (single, wrong, response), (single, permanent, wrong)):
        with pytest.raises(InvalidInput, match="times the response"):
            MemoizedMechanism(*parts[:2], sf.Uniform(domain, "ln 3"), response=parts[2])
    with pytest.raises(InvalidInput, match="one row per permanent answer"):
        MemoizedMechanism(
            single, permanent, sf.Uniform(domain, 2), response=TableMechanism.from_matrix(R(3), [[1, 0]] * 3)
        )
    document = mechanism.spec
    document["parameters"]["response"]["weights"][0] = document["parameters"]["response"]["weights"][1]
    with pytest.raises(InvalidInput):
        sf.mechanism_from_spec(document)


def test_the_search_ends_at_its_deadline_with_a_response_that_obeys_the_policy() -> None:
    permanent = sf.mechanisms.RandomizedResponse(R(4), 2).matrix()
    p = np.full(4, 1 / 4)
    response = best_response(permanent, metric(0.5), p, [], Deadline(0))
    assert response is not None
    law = permanent @ response
    assert np.allclose(law.sum(axis=1), 1)
    distances = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    ratios = law[:, None] / law[None]
    assert (ratios <= np.exp(0.5 * distances)[:, :, None] * (1 + 1e-9)).all()
    assert best_response(np.full((4, 70), 1 / 70), metric(1), p, [], Deadline(0)) is None


def test_a_mechanism_that_the_caller_names_is_not_replaced() -> None:
    mechanism = sf.design(metric(1), lifetime=metric(2), mechanism="rr")
    assert isinstance(mechanism, MemoizedMechanism)
    assert mechanism.single.name == "randomized-response"
    quick = sf.design(metric(1), lifetime=metric(2), max_seconds=0)
    assert isinstance(quick, MemoizedMechanism)
    assert "response" not in quick.parameters()
