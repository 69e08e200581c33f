"""Laws: processing keeps a policy, releases add up, beliefs move by no more than allowed; on random small cases."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core.exact import exceeds
from sfumato.auditing import Channel
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from support.published import reference
from support.reference import PairCase, domain_of, finite_levels, pair_cases, plus, priors, sizes, written

ABC = sf.Domain(["a", "b", "c"])


@st.composite
def matrices(draw: st.DrawFn, rows: int) -> list[list[Fraction]]:
    """Rows of exact probabilities, zeros among them."""
    return [draw(priors(width)) for width in [draw(st.integers(1, 4))] * rows]


def within(case: PairCase, matrix: Sequence[Sequence[Fraction]]) -> Channel:
    """The law of a mechanism that obeys the case's policy, close to this matrix."""
    law = TableMechanism.from_matrix(case.policy.domain, matrix, policy=case.policy).channel()
    assert law.obeys(case.policy)
    return law


@st.composite
def obedient_laws(draw: st.DrawFn, case: PairCase) -> Channel:
    return within(case, draw(matrices(case.size)))


cases = sizes.flatmap(pair_cases)
two_cases = sizes.flatmap(lambda size: st.tuples(pair_cases(size), pair_cases(size)))


# -- the three properties ----------------------------------------------------------------------------------


@given(cases, st.data())
def test_processing_keeps_the_policy(case: PairCase, data: st.DataObject) -> None:
    law = data.draw(obedient_laws(case))
    matrix = data.draw(matrices(len(law.outputs)))
    processed = law.then(matrix)
    assert processed.obeys(case.policy)
    # And it is the law of doing one after the other.
    exact = [
        [sum((row[y] * matrix[y][z] for y in range(len(matrix))), Fraction(0)) for z in range(len(matrix[0]))]
        for row in law.rows
    ]
    assert processed.rows == tuple(map(tuple, exact))


@pytest.mark.slow
@given(two_cases, st.data())
def test_an_adaptive_second_release_adds_its_policy(pair: tuple[PairCase, PairCase], data: st.DataObject) -> None:
    first, second = pair
    law = data.draw(obedient_laws(first))
    following = {output: data.draw(obedient_laws(second)) for output in law.outputs}
    joint = law.and_then(following.__getitem__)
    assert joint.obeys(first.policy.compose(second.policy))
    for x, row in enumerate(joint.rows):
        for (output, after), probability in zip(joint.outputs, row, strict=True):
            other = following[output]
            assert probability == law.column(output)[x] * other.column(after)[x]
    # Looking at the first output only gives the first release back.
    marginal = [[int(output == name) for name in law.outputs] for output, _ in joint.outputs]
    assert joint.then(marginal).rows == law.rows


@given(cases, st.data())
def test_beliefs_move_by_no_more_than_the_policy_allows(case: PairCase, data: st.DataObject) -> None:
    law = data.draw(obedient_laws(case))
    prior = data.draw(priors(case.size))
    pairs, labels = case.pairs, case.policy.domain.labels
    for output in law.outputs:
        if not any(p * t for p, t in zip(prior, law.column(output), strict=True)):
            continue
        posterior = law.posterior(prior, output)
        assert sum(posterior) == 1
        for x in range(case.size):
            for other in range(case.size):
                if x == other:
                    continue
                # posterior odds ≤ e^E*·prior odds, multiplied out: exact, and there where odds are infinite.
                left, right = posterior[x] * prior[other], posterior[other] * prior[x]
                assert not exceeds(left, right, pairs.effective_epsilon(x, other))
                if posterior[other]:
                    bound = pairs.posterior_odds_bound(labels[x], labels[other], prior[x] / prior[other])
                    assert float(posterior[x] / posterior[other]) <= bound * (1 + 1e-12)


@pytest.mark.slow
@given(cases, st.data())
def test_a_weaker_policy_is_obeyed_too(case: PairCase, data: st.DataObject) -> None:
    law = data.draw(obedient_laws(case))
    slack = [[data.draw(finite_levels) for _ in range(case.size)] for _ in range(case.size)]
    weaker = sf.Pairwise(
        case.policy.domain,
        [
            [written({} if x == y else plus(case.matrix[x][y], slack[x][y])) for y in range(case.size)]
            for x in range(case.size)
        ],
    )
    assert sf.implies(case.policy, weaker)
    assert law.obeys(weaker)


@given(two_cases, st.data())
def test_what_a_policy_implies_its_laws_obey(pair: tuple[PairCase, PairCase], data: st.DataObject) -> None:
    first, second = pair
    law = data.draw(obedient_laws(first))
    if not law.obeys(second.policy):
        assert not sf.implies(first.policy, second.policy)


@given(cases, st.data())
def test_a_law_obeys_a_policy_iff_the_rules_say_so(case: PairCase, data: st.DataObject) -> None:
    law = Channel(case.policy.domain, data.draw(matrices(case.size)))
    assert law.obeys(case.policy) == all(case.allows(law.column(output)) for output in law.outputs)


# -- laws of mechanisms ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse])
def test_the_law_of_a_mechanism_is_audited_alike(kind: Any) -> None:
    mechanism = kind(ABC, "ln 3")
    law = mechanism.channel()
    np.testing.assert_allclose(np.array(law.rows, dtype=float), mechanism.matrix())
    assert law.outputs == tuple(mechanism.reports())
    for policy in (sf.Uniform(ABC, "ln 3"), sf.Uniform(ABC, 1), sf.Prior(ABC, ["1/2", "1/4", "1/4"], 1)):
        certificate = sf.audit(mechanism, policy)
        assert law.obeys(policy) == certificate.holds
        assert law.worst(policy).excess == pytest.approx(certificate.worst.excess)


def test_the_law_of_a_few_values_of_many() -> None:
    mechanism = RandomizedResponse(sf.Domain.range(1000), 1)
    law = mechanism.channel([700, 3])
    assert law.domain == sf.Domain([700, 3])
    assert law.column(700) == (mechanism.probability(700, 700), mechanism.probability(700, 3))
    assert law.obeys(sf.Uniform(law.domain, 1))


def test_nothing_binds_where_nothing_is_asked() -> None:
    assert Channel(ABC, np.eye(3).tolist()).worst(sf.Pairwise(ABC, {})).names is None


# -- published values --------------------------------------------------------------------------------------


def test_levels_and_posteriors_reproduce_the_reference_values() -> None:
    case = reference("eldp_level_matrix")
    law = Channel(ABC, case["Q"])
    for x, row in enumerate(case["level"]):
        for other, expected in enumerate(row):
            if x != other:
                asked = sf.Pairwise(ABC, {(ABC.label(x), ABC.label(other)): 0})
                assert law.worst(asked).excess == pytest.approx(expected, rel=1e-9)
    assert law.obeys(sf.Pairwise(ABC, [[level + 1e-9 * (level > 0) for level in row] for row in case["level"]]))
    for output, expected in zip(law.outputs, case["posterior_given_y"], strict=True):
        assert list(map(float, law.posterior(case["prior"], output))) == pytest.approx(expected, rel=1e-11)


def test_composition_reproduces_the_reference_values() -> None:
    """Declared levels add up as published; effective ones give the same or less, as paths are shorter than detours."""
    case = reference("eldp_composition")
    first, second, total = (sf.Pairwise(ABC, case[key]) for key in ("E1", "E2", "E_total"))
    composed = first.compose(second)
    assert isinstance(composed, sf.Pairwise)
    for x in range(3):
        for other in range(3):
            assert first.epsilon_between(x, other) + second.epsilon_between(x, other) == total.epsilon_between(x, other)
            direct = (first.effective_epsilon(x, other), second.effective_epsilon(x, other)) == (
                first.epsilon_between(x, other),
                second.epsilon_between(x, other),
            )
            if direct:
                assert composed.effective_epsilon(x, other) == total.epsilon_between(x, other)
    assert sf.implies(composed, total)


# -- refusals ----------------------------------------------------------------------------------------------

HALVES = [["1/2", "1/2"]] * 3


@pytest.mark.parametrize(
    ("call", "culprit"),
    [
        (lambda: Channel(ABC, HALVES[:2]), "rows must be 3; got 2"),
        (lambda: Channel(ABC, [["1/2", "1/2"], [1], [1]]), "have the same length"),
        (lambda: Channel(ABC, [[], [], []]), "have the same length, at least 1"),
        (
            lambda: Channel(ABC, [["1/2", "1/2"], [0.3, 0.3], [0, 1]]),
            "row of 'b' must be probabilities that sum to exactly",
        ),
        (lambda: Channel(ABC, [["1/2", "1/2"], ["3/2", "-1/2"], [0, 1]]), "row of 'b' must be probabilities"),
        (lambda: Channel(ABC, [["1/2", "1/2"], ["x", 1], [0, 1]]), "row of 'b' must hold numbers"),
        (lambda: Channel(ABC, HALVES, ["same", "same"]), "outputs must be 2 different names"),
        (lambda: Channel(ABC, HALVES, ["one"]), "outputs must be 2 different names"),
        (lambda: Channel(ABC, HALVES).column("none"), "output must be one of its outputs \\(0, 1\\); got 'none'"),
        (lambda: Channel(ABC, HALVES).worst(sf.Uniform(sf.Domain.range(3), 1)), "policy must be over the same domain"),
        (lambda: Channel(ABC, HALVES).then([[1]]), "then: the number of rows must be 2; got 1"),
        (lambda: Channel(ABC, HALVES).then([["1/2"], [1]]), "row of output 0 must be probabilities"),
        (
            lambda: Channel(ABC, HALVES).posterior([1], 0),
            "prior must have 3 entries, one per value of the domain; got 1 entry",
        ),
        (lambda: Channel(ABC, HALVES).posterior([1, 1, 1], 0), "the prior must be probabilities"),
        (
            lambda: Channel(ABC, np.eye(3).tolist()).posterior([1, 0, 0], 2),
            "output must be possible under the prior; got 2",
        ),
        (
            lambda: Channel(ABC, HALVES).and_then(lambda _: Channel(domain_of(2), HALVES[:2])),
            "the channel that choose\\(0\\) returns must be over",
        ),
    ],
)
def test_what_is_no_law_is_refused(call: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        call()


def test_laws_too_large_to_enumerate_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="the channel of unary-encoding has 40 values and 1099511627776 outputs"):
        UnaryEncoding(sf.Domain.range(40), 1).channel()
