"""Prior and Secret: what they allow, against their definitions evaluated one inequality at a time."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from sfumato._core.exact import INFINITE, ZERO, Epsilon
from sfumato.domain.domain import Domain
from sfumato.policy.base import Policy
from sfumato.policy.distributions import Anything, Known
from sfumato.policy.prior import PRIOR_AVERAGE, Prior
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform
from support.reference import (
    Case,
    Column,
    Level,
    PairCase,
    anything_cases,
    columns,
    dot,
    exact_e_to,
    finite_levels,
    known_cases,
    levels,
    mixed_inside,
    parts_of,
    prior_cases,
    priors,
    product_domain,
    pulled_inside,
    refusal,
    shapes,
    sizes,
    tidy,
    violates,
    written,
)

ABC = Domain(["a", "b", "c"])
TINY = Fraction(1, 10**30)
HALF = Fraction(1, 2)

prior_case = sizes.flatmap(prior_cases)
known_case = shapes.flatmap(known_cases)
anything_case = shapes.flatmap(anything_cases)


def check(case: Case, column: Column) -> None:
    """The policy and its rules agree on this column, in every part of the answer."""
    allowed, expected = case.allows(column), float(case.excess(column))
    worst = case.policy.worst(column)
    assert case.policy.allows(column) == allowed
    assert worst.violated != allowed
    if math.isinf(expected):
        assert worst.excess == expected
    else:
        assert worst.excess == pytest.approx(expected, rel=1e-12, abs=2e-9)
    if worst.names is not None:
        # Its two sides are those of a rule, and that rule is as bad as any.
        sides = [(*rule.sides(column), tidy(rule.level)) for rule in case.rules]
        assert (worst.left, worst.right, parts_of(worst.epsilon)) in sides


# -- Prior -------------------------------------------------------------------------------------------------


def nonzero(weights: Any) -> tuple[Any, ...]:
    return tuple(sorted((x, c) for x, c in weights.items() if c))


@given(st.one_of(prior_case, known_case))
def test_inequalities_are_the_rules_of_the_design(case: Case) -> None:
    def key(left: Any, right: Any, level: Level) -> tuple[Any, ...]:
        return nonzero(left), nonzero(right), tuple(sorted((level or {}).items()))

    stated = [key(rule.left, rule.right, parts_of(rule.epsilon)) for rule in case.policy.inequalities()]
    assert sorted(stated) == sorted(key(rule.left, rule.right, tidy(rule.level)) for rule in case.rules)


@given(st.one_of(prior_case, known_case, anything_case), st.data())
def test_allows_and_worst_agree_with_every_rule(case: Case, data: st.DataObject) -> None:
    check(case, data.draw(columns(case.size)))


@given(sizes, st.data())
def test_prior_columns_at_their_limits(size: int, data: st.DataObject) -> None:
    prior, level = data.draw(priors(size)), data.draw(levels)
    case_policy = Prior(Domain.range(size), prior, written(level))
    column = mixed_inside(prior, level, data.draw(columns(size)))
    assert case_policy.allows(column)
    average = dot(dict(enumerate(prior)), column)
    limit = None if level is None else exact_e_to(level)
    if limit is None or average == 0:
        return
    for x in range(size):
        # Move one likelihood, and with it the average, a little beyond the limit it stands at.
        for sign, at_limit in ((1, column[x] == limit * average), (-1, average == limit * column[x])):
            if at_limit and prior[x] != 1:
                moved = [t + sign * TINY * t if y == x else t for y, t in enumerate(column)]
                assert not case_policy.allows(moved)


@given(shapes, st.data())
def test_secret_columns_just_inside_and_just_outside(shape: tuple[int, int], data: st.DataObject) -> None:
    """Scale the rows of a column so that two secrets stand at the limit exactly."""
    flat = data.draw(
        priors(shape[0] * shape[1]).filter(lambda p: sum(p[: shape[1]]) * sum(p[shape[1] : 2 * shape[1]]) > 0)
    )
    joint = [flat[s * shape[1] : (s + 1) * shape[1]] for s in range(shape[0])]
    assume(all(sum(row) for row in joint))
    level = data.draw(finite_levels.filter(lambda parts: exact_e_to(parts) is not None))
    limit = exact_e_to(level)
    assert limit is not None
    column = data.draw(columns(shape[0] * shape[1]))
    means = []
    for s, row in enumerate(joint):
        cells = column[s * shape[1] : (s + 1) * shape[1]]
        means.append(sum(p * t for p, t in zip(row, cells, strict=True)) / sum(row))
    assume(all(means))
    targets = [limit if s == 0 else Fraction(1) for s in range(shape[0])]
    scaled = [t * targets[i // shape[1]] / means[i // shape[1]] for i, t in enumerate(column)]
    policy = Secret(product_domain(*shape), "S", written(level), Known(joint))
    assert policy.allows(scaled)
    assert policy.worst(scaled).excess == 0
    above = [t * (1 + TINY) if i < shape[1] else t for i, t in enumerate(scaled)]
    assert not policy.allows(above)
    assert policy.worst(above).names is not None
    assert policy.worst(above).names[0] == "s0"  # type: ignore[index]


def test_a_prior_policy_by_hand() -> None:
    """π = (1/2, 1/2), ε = ln 2: T_x may lie between half and twice the average; (1, 3) is at its limit."""
    policy = Prior(Domain(["x", "y"]), ["1/2", "1/2"], "ln 2")
    assert policy.allows([1, 3])
    assert policy.worst([1, 3]).names == (PRIOR_AVERAGE, "x")
    assert policy.worst([1, 3]).excess == 0
    assert not policy.allows([1, 3 + TINY])
    assert policy.allows([3, 1])
    assert not policy.allows([0, 1])
    skew = Prior(Domain(["x", "y"]), ["9/10", "1/10"], "ln 2")
    assert skew.allows([8, 18])  # average 9: T_y at twice the average
    assert skew.worst([8, 18]).names == ("y", PRIOR_AVERAGE)
    assert not skew.allows([8, 18 + TINY])
    assert not Prior(Domain(["x", "y"]), ["1/2", "1/2"], 0).allows([1, 1 + TINY])
    assert Prior(Domain(["x", "y"]), ["1/2", "1/2"], 0).allows([7, 7])


def test_values_of_prior_zero_are_protected() -> None:
    """Nobody is expected to hold b; who does must be hidden all the same (errata L9)."""
    policy = Prior(ABC, [HALF, 0, HALF], "ln 2")
    assert policy.allows([1, 2, 1])
    assert not policy.allows([1, 2 + TINY, 1])
    assert policy.allows([2, 1, 2])
    assert not policy.allows([2, 1 - TINY, 2])
    assert not policy.allows([0, 1, 0])
    assert policy.worst([0, 1, 0]).excess == math.inf
    assert policy.worst([0, 1, 0]).names == ("b", PRIOR_AVERAGE)
    assert not policy.allows([1, 0, 1])
    assert policy.worst([1, 0, 1]).names == (PRIOR_AVERAGE, "b")
    certain = Prior(ABC, [0, 1, 0], "ln 2")
    assert certain.allows([2, 1, HALF])
    assert not certain.allows([2 + TINY, 1, HALF])


def test_nothing_binds() -> None:
    assert Prior(ABC, [HALF, 0, HALF], "inf").worst([0, 1, 0]).names is None
    assert list(Prior(ABC, [HALF, 0, HALF], "inf").inequalities()) == []
    assert Prior(ABC, [HALF, 0, HALF], 0).worst([0, 0, 0]).names is None
    assert Prior(ABC, [HALF, 0, HALF], 0).allows([0, 0, 0])
    assert Prior(Domain(["only"]), [1], 0).allows([5])
    product = product_domain(2, 2)
    for distributions in (Anything(), Known([["1/4", "1/4"], ["1/4", "1/4"]])):
        assert Secret(product, "S", "inf", distributions).allows([0, 0, 1, 1])
        assert list(Secret(product, "S", "inf", distributions).inequalities()) == []
        assert Secret(product, "S", 0, distributions).allows([0, 0, 0, 0])


@pytest.mark.parametrize(
    ("given_prior", "exact"),
    [
        ([0.1, 0.2, 0.7], ["1/10", "1/5", "7/10"]),  # 0.1 + 0.2 + 0.7 in doubles is below one
        (np.array([0.1, 0.2, 0.7]), ["1/10", "1/5", "7/10"]),
        (["0.1", Decimal("0.2"), Fraction(7, 10)], ["1/10", "1/5", "7/10"]),
        ([0, 1, 0], ["0", "1", "0"]),
        ([1 / 3, 1 / 3, 1 / 3], ["1/3", "1/3", "1/3"]),  # thirds of a sum that is not quite one
    ],
)
def test_priors_are_read_exactly(given_prior: Any, exact: list[str]) -> None:
    policy = Prior(ABC, given_prior, 1)
    assert policy.prior == tuple(map(Fraction, exact))
    assert sum(policy.prior) == 1
    assert policy == Prior(ABC, exact, 1)


@pytest.mark.parametrize(
    ("prior", "culprit"),
    [
        ([HALF, HALF], "have 3 entries, one per value of the domain; got 2 entries"),
        ([HALF, HALF, 0, 0], "have 3 entries, one per value of the domain; got 4 entries"),
        ([HALF, Fraction(1, 4), 0], "sum to one; got a sum of 0.75"),
        (["0.5", "0.5", "0.0000000001"], "sum to one"),  # texts are exact: no tolerance
        ([0.5, 0.5, 1e-8], "sum to one"),
        ([0, 0, 0], "sum to one"),
        ([HALF, -HALF, 1], "prior of 'b' must lie in [0, 1]"),
        ([0, 0, 2], "prior of 'c' must lie in [0, 1]; got 2"),
        ([1, math.nan, 0], "prior of 'b' must be a number in [0, 1]; got nan"),
        ([1, None, 0], "prior of 'b' must be a number in [0, 1]; got None"),
        ([True, 0, 0], "prior of 'a' must be a number in [0, 1]; got True"),
        (["x", 0, 1], "prior of 'a' must be a number in [0, 1]; got 'x'"),
        ([1, 0, math.inf], "prior of 'c' "),
        ([1, 0, Decimal("Infinity")], "prior of 'c' "),
        ([1, "1/0", 0], "prior of 'b' "),
        (5, "got 5"),
        (None, "got None"),
        ("100", "got '100'"),  # a text is not a list of its digits
    ],
)
def test_bad_priors(prior: Any, culprit: str) -> None:
    message = refusal(Prior, ABC, prior, 1)
    assert message.startswith("Prior: prior")
    assert culprit in message


@pytest.mark.parametrize("epsilon", [-1, math.nan, None, "ln 1/2"])
def test_a_prior_policy_with_a_bad_epsilon(epsilon: Any) -> None:
    message = refusal(Prior, ABC, [1, 0, 0], epsilon)
    assert message.startswith("Prior: epsilon must ")
    assert message.endswith(f"got {epsilon!r}")


# -- Secret ------------------------------------------------------------------------------------------------


def test_a_secret_policy_by_hand() -> None:
    """Given s0, U is 0 or 1 with probabilities 1/4 and 3/4; given s1 it is 0."""
    joint = [["1/8", "3/8"], ["1/2", "0"]]
    policy = Secret(product_domain(2, 2), "S", "ln 2", Known(joint))
    # Means: 1/4·t0 + 3/4·t1 against t2. The likelihood t3 of what cannot happen is free.
    assert policy.allows([8, 0, 1, 10**9])
    assert policy.worst([8, 0, 1, 10**9]).excess == 0
    assert policy.worst([8, 0, 1, 0]).names == ("s0", "s1")
    assert not policy.allows([8 + TINY, 0, 1, 0])
    assert policy.allows([0, 4, 6, 0])
    assert policy.worst([0, 4, 6, 0]).names == ("s1", "s0")
    assert not policy.allows([0, 4, 6 + TINY, 0])
    assert not policy.allows([0, 0, 1, 0])


def test_a_secret_that_never_occurs_is_protected_under_any_law() -> None:
    joint = [["1/2", "1/2"], [0, 0]]
    policy = Secret(product_domain(2, 2), "S", "ln 2", Known(joint))
    # The mean over s0 against each single likelihood of s1.
    assert policy.allows([1, 3, 1, 4])
    assert not policy.allows([1, 3, 1 - TINY, 4])
    assert not policy.allows([1, 3, 1, 4 + TINY])
    assert not policy.allows([0, 0, 1, 0])
    assert not policy.allows([1, 1, 1, 0])
    assert len(list(policy.inequalities())) == 4
    both = Secret(product_domain(3, 2), "S", "ln 2", Known([["1/2", "1/2"], [0, 0], [0, 0]]))
    assert len(list(both.inequalities())) == 2 * (2 + 2 + 4)
    assert not both.allows([1, 1, 2, 1, 1 - TINY, 1])


@given(anything_case, st.data())
def test_anything_is_known_for_every_distribution(case: PairCase, data: st.DataObject) -> None:
    """What Anything allows every Known allows, and what it forbids some Known forbids (RLDP Prop. 4)."""
    policy = case.policy
    assert isinstance(policy, Secret)
    shape = policy.cells.shape
    column = data.draw(columns(case.size))
    if data.draw(st.booleans()):
        column = pulled_inside(case.matrix, column)
    level = parts_of(policy.epsilon)

    def under(joint: list[list[Fraction]]) -> Policy:
        return Secret(policy.domain, "S", policy.epsilon, Known(joint))

    if policy.allows(column):
        flat = data.draw(priors(case.size))
        joint = [flat[s * shape[1] : (s + 1) * shape[1]] for s in range(shape[0])]
        assert under(joint).allows(column)
    else:
        x, y = next(
            (x, y)
            for x, y in itertools.permutations(range(case.size), 2)
            if x // shape[1] != y // shape[1] and violates(column[x], column[y], level)
        )
        two = [[HALF if i in (x, y) else Fraction(0) for i in row] for row in policy.cells.tolist()]
        assert not under(two).allows(column)


def test_anything_as_pairs() -> None:
    policy = Secret(product_domain(2, 2), "S", "ln 3", Anything())
    pairs = policy.as_pairwise
    assert pairs is not None
    assert pairs.epsilon_between(0, 1) == INFINITE
    assert pairs.effective_epsilon(0, 1) == Epsilon("ln 9")
    assert pairs.epsilon_between(0, 2) == Epsilon("ln 3")
    assert pairs.epsilon_between(2, 0) == Epsilon("ln 3")
    assert pairs.epsilon_between(1, 1) == ZERO
    assert Secret(product_domain(2, 2), "S", 1, Known([["1/4"] * 2] * 2)).as_pairwise is None
    assert policy.allows([3, 1, 1, 3])
    assert not policy.allows([3 + TINY, 1, 1, 3])
    assert policy.allows([9, 1, 3, 3])
    assert not policy.allows([9 + TINY, 1, 3, 3])


THREE = Domain.product(A=["a0", "a1"], B=[10, 20, 30], C=[False, True])


@pytest.mark.slow
@pytest.mark.parametrize("secret", ["A", "B", "C"])
@given(data=st.data())
def test_any_factor_can_be_the_secret(secret: str, data: st.DataObject) -> None:
    """The definition by labels: the harmless part is the label without its secret, in domain order."""
    place = "ABC".index(secret)
    secrets = list(dict.fromkeys(label[place] for label in THREE))  # type: ignore[index]
    others = list(dict.fromkeys(label[:place] + label[place + 1 :] for label in THREE))  # type: ignore[index,operator]
    flat = data.draw(priors(12))
    joint = [flat[s * len(others) : (s + 1) * len(others)] for s in range(len(secrets))]
    level = data.draw(finite_levels)
    column = data.draw(columns(12))
    likelihood = dict(zip(THREE.labels, column, strict=True))

    def at(s: int, u: Any) -> Fraction:
        return likelihood[(*u[:place], secrets[s], *u[place:])]

    def means(s: int) -> list[Fraction]:
        total = sum(joint[s])
        if total == 0:
            return [at(s, u) for u in others]
        return [sum((p * at(s, u) for p, u in zip(joint[s], others, strict=True)), start=Fraction(0)) / total]

    expected = not any(
        violates(left, right, level)
        for s, other in itertools.permutations(range(len(secrets)), 2)
        for left in means(s)
        for right in means(other)
    )
    policy = Secret(THREE, secret, written(level), Known(joint))
    assert policy.allows(column) == expected
    everything = not any(
        violates(at(s, u), at(other, v), level)
        for s, other in itertools.permutations(range(len(secrets)), 2)
        for u in others
        for v in others
    )
    assert Secret(THREE, secret, written(level), Anything()).allows(column) == everything


@pytest.mark.parametrize(
    ("domain", "secret", "culprit"),
    [
        (product_domain(2, 2), "X", "be one of the factors S, U; got 'X'"),
        (product_domain(2, 2), 0, "be one of the factors S, U; got 0"),
        (product_domain(2, 2), None, "be one of the factors S, U; got None"),
        (ABC, "S", "be a factor of a Domain.product; got 'S'"),
        (product_domain(1, 2), "S", "have at least two values; got ['s0']"),
        (product_domain(2, 2), ["S"], "be one of the factors S, U; got ['S']"),
    ],
)
def test_bad_secrets(domain: Domain, secret: Any, culprit: str) -> None:
    message = refusal(Secret, domain, secret, 1, Anything())
    assert message.startswith("Secret: secret must ")
    assert culprit in message


@pytest.mark.parametrize("distributions", [None, "anything", [[1]], Anything, Known], ids=str)
def test_bad_distributions(distributions: Any) -> None:
    message = refusal(Secret, product_domain(2, 2), "S", 1, distributions)
    assert message.startswith(
        "Secret: distributions must be Known(...), AtLeast(...), ChiSquare(...) or Anything(); got"
    )


@pytest.mark.parametrize(
    ("joint", "culprit"),
    [
        ([["1/2", "1/2"]], "be 2 rows of 3 probabilities; got 1 row"),
        ([[0.25] * 3] * 3, "be 2 rows of 3 probabilities; got 3 rows"),
        ([], "be 2 rows of 3 probabilities; got 0 rows"),
        ([["1/2", 0, 0], ["1/2", 0]], "row 1"),
        ([["1/2", 0, 0, 0], ["1/2", 0, 0]], "row 0"),
        (0.5, "be 2 rows of 3 probabilities; got 0.5"),
        (None, "be 2 rows of 3 probabilities; got None"),
        ([1, 0], "be 2 rows of 3 probabilities"),
        (["100", "000"], "be 2 rows of 3 probabilities"),  # a text is not a list of its digits
        ([["1/2", 0, 0], ["1/4", 0, 0]], "sum to one; got a sum of 0.75"),
        ([["1/2", 0, 0], ["1", "-1/2", 0]], "('s1', 1) must lie in [0, 1]; got '-1/2'"),
        ([["1/2", 0, "x"], ["1/2", 0, 0]], "('s0', 2) must be a number in [0, 1]; got 'x'"),
        ([["1/2", 0, 0], ["1/2", 0, math.nan]], "('s1', 2) must be a number in [0, 1]; got nan"),
    ],
)
def test_bad_joint_distributions(joint: Any, culprit: str) -> None:
    message = refusal(Secret, product_domain(2, 3), "S", 1, Known(joint))
    assert message.startswith("Known: ")
    assert culprit in message


def test_a_joint_distribution_can_be_used_for_two_policies() -> None:
    """Fitting it to one policy must leave it as it was for another."""
    known = Known(np.array([[0.25, 0.25], [0.25, 0.25]]))
    first = Secret(product_domain(2, 2), "S", 1, known)
    second = Secret(product_domain(2, 2), "U", 2, known)
    assert first.parameters()["distributions"] == second.parameters()["distributions"] == {
        "known": [["1/4", "1/4"], ["1/4", "1/4"]]
    }  # fmt: skip
    assert "2 rows of 3" in refusal(Secret, product_domain(2, 3), "S", 1, known)


def test_a_uniform_policy_is_stricter_than_any_average() -> None:
    """ε-LDP implies ε-LIP and every secret policy at ε: one column at the limit of all three."""
    column = [3, 1, 3, 1]
    product = product_domain(2, 2)
    assert Uniform(product, "ln 3").allows(column)
    assert Prior(product, ["1/4"] * 4, "ln 3").allows(column)
    assert Secret(product, "S", "ln 3", Anything()).allows(column)
    assert Secret(product, "S", 0, Known([["1/4"] * 2] * 2)).allows(column)
    assert not Secret(product, "U", "ln 2", Known([["1/4"] * 2] * 2)).allows(column)
