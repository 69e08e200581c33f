"""Error regions: all tests by enumeration, the policy's region around them, and the picture of both."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato.auditing import Channel
from sfumato.auditing.regions import ErrorRegion, error_region, policy_region
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.binary import BinaryOptimal, binary_for_policy
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.plotting import plot_error_region
from support.reference import PairCase, domain_of, pair_cases, priors, sizes

AB = sf.Domain(["a", "b"])
INSIDE = Fraction(1, 10**9)


@st.composite
def laws(draw: st.DrawFn, size: int) -> Channel:
    width = draw(st.integers(1, 5))
    return Channel(domain_of(size), [draw(priors(width)) for _ in range(size)])


def errors_of_all_tests(law: Channel) -> list[tuple[Fraction, Fraction]]:
    """Every deterministic test between the first two values: say "a" on some set of outputs."""
    found = []
    for says_a in itertools.product([0, 1], repeat=len(law.outputs)):
        alarm = sum((t for t, said in zip(law.rows[1], says_a, strict=True) if said), Fraction(0))
        missed = sum((t for t, said in zip(law.rows[0], says_a, strict=True) if not said), Fraction(0))
        found.append((alarm, missed))
    return found


def on_or_above(region: ErrorRegion, point: tuple[Fraction, Fraction]) -> bool:
    return region.contains(ErrorRegion(region.x, region.other, (point,)))


# -- mechanisms --------------------------------------------------------------------------------------------


@given(laws(2))
def test_the_curve_is_the_lower_hull_of_all_tests(law: Channel) -> None:
    region = error_region(law, "a", "b")
    tests = errors_of_all_tests(law)
    assert all(on_or_above(region, point) for point in tests)
    assert set(region.points) <= set(tests)
    assert region.vertices[[0, -1]].tolist() == [[0, 1], [1, 0]]
    # Strictly convex, so that every point is a corner; the slopes are minus the likelihood ratios.
    for (f0, m0), (f1, m1), (f2, m2) in zip(region.points, region.points[1:], region.points[2:], strict=False):
        assert (f1 - f0) * (m2 - m1) > (m1 - m0) * (f2 - f1)
    # A step below a corner is out of reach.
    for alarm, missed in region.points[1:-1]:
        assert not on_or_above(region, (alarm - INSIDE, missed - INSIDE))


@given(laws(2), st.data())
def test_processing_shrinks_the_region(law: Channel, data: st.DataObject) -> None:
    matrix = [data.draw(priors(3)) for _ in law.outputs]
    region, processed = error_region(law, "a", "b"), error_region(law.then(matrix), "a", "b")
    assert region.contains(processed)
    assert region.contains(region)


def test_a_mechanism_and_its_law_have_one_region() -> None:
    mechanism = UnaryEncoding(sf.Domain.range(4), 1)
    for x, other in ((0, 3), (3, 0)):
        assert error_region(mechanism, x, other) == error_region(mechanism.channel(), x, other)


# -- policies ----------------------------------------------------------------------------------------------


@given(sizes.flatmap(pair_cases), st.data())
def test_a_law_obeys_a_policy_iff_no_test_leaves_its_regions(case: PairCase, data: st.DataObject) -> None:
    """Theorem 1, with the law as drawn and as fitted to the policy."""
    drawn = data.draw(laws(case.size))
    fitted = TableMechanism.from_matrix(case.policy.domain, drawn.rows, policy=case.policy).channel()
    pairs = list(itertools.permutations(case.policy.domain, 2))
    for law in (drawn, fitted):
        kept = [policy_region(case.pairs, *pair).contains(error_region(law, *pair)) for pair in pairs]
        assert law.obeys(case.policy) == all(kept)
    assert fitted.obeys(case.policy)


@pytest.mark.parametrize("first", ["0", "0.001", "0.5", "ln 3", "2", "inf"])
@pytest.mark.parametrize("second", ["0", "0.001", "0.5", "ln 3", "2", "inf"])
def test_the_best_mechanism_for_two_values_fills_the_policys_region(first: str, second: str) -> None:
    policy = sf.Pairwise(AB, [[0, first], [second, 0]])
    allowed, reached = policy_region(policy, "a", "b"), error_region(binary_for_policy(policy), "a", "b")
    assert allowed.contains(reached)
    np.testing.assert_allclose(reached.vertices, allowed.vertices, atol=1e-15)


def test_an_infinite_level_asks_nothing_of_a_test_that_never_errs() -> None:
    """Mangat's: no false alarm at all, though e^∞·0 + missed ≥ 1 would fail if ∞·0 were 0."""
    mechanism = BinaryOptimal(AB, "inf", 1)
    region = error_region(mechanism, "a", "b")
    assert region.points[1][0] == 0
    assert region.points[1][1] < 1
    assert policy_region(sf.HighLow(AB, ["b"], 1), "a", "b").contains(region)
    assert not policy_region(sf.HighLow(AB, ["a"], 1), "a", "b").contains(region)


def test_the_region_of_a_policy_has_its_effective_levels() -> None:
    chain = sf.Pairwise(sf.Domain(["a", "b", "c"]), {("a", "b"): 1, ("b", "c"): 1})
    region = policy_region(chain, "a", "c")
    assert (region.epsilon, region.epsilon_back) == (sf.Epsilon(2), sf.Epsilon("inf"))
    assert region.vertices.tolist() == [[0, 1], [pytest.approx(np.exp(-2)), 0], [1, 0]]


# -- refusals and pictures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "culprit"),
    [
        (lambda: error_region(RandomizedResponse(AB, 1), "a", "a"), "error_region: other must differ from x"),
        (lambda: policy_region(sf.Uniform(AB, 1), "b", "b"), "policy_region: other must differ from x"),
        (lambda: policy_region(sf.Prior(AB, ["1/2", "1/2"], 1), "a", "b"), "policy must constrain pairs of values"),
        (lambda: error_region(RandomizedResponse(AB, 1), "a", "z"), "'z'"),
        (
            lambda: policy_region(sf.Uniform(AB, 1), "b", "a").contains(
                error_region(RandomizedResponse(AB, 1), "a", "b")
            ),
            "be about 'b' against 'a'",
        ),
    ],
)
def test_what_cannot_be_tested_is_refused(call: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        call()


def test_outputs_that_cannot_be_enumerated_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="at most 1,000,000 entries"):
        error_region(UnaryEncoding(sf.Domain.range(64), 1), 0, 1)


def test_the_picture_shows_both_regions() -> None:
    policy = sf.Pairwise(AB, [[0, "0.5"], [2, 0]])
    mechanism = RandomizedResponse(AB, "0.5")
    axes: Any = plot_error_region(mechanism, policy, "a", "b").axes[0]
    np.testing.assert_allclose(axes.lines[0].get_xydata(), error_region(mechanism, "a", "b").vertices)
    (filled,) = axes.collections
    drawn = filled.get_paths()[0].vertices
    for corner in policy_region(policy, "a", "b").vertices:
        assert np.abs(drawn - corner).max(axis=1).min() < 1e-12
    assert axes.get_xlabel() == "false alarm rate\n(test says 'a' if the value is 'b')"
