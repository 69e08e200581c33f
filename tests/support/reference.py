"""What the tests of epsilons and policies are compared with: Fractions, 60 decimal digits, brute force.

Nothing here computes through the package. A level is kept as its *parts*, ``{1: r, p: c}`` for r + c·ln p,
or None for infinity; a policy is drawn together with the rules it stands for, written down from the table
in the design (``left·T ≤ e^level·right·T``), so that neither side of a comparison is derived from the other.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import settings, strategies as st

from sfumato._core.exact import Epsilon
from sfumato.domain.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.distributions import Anything, Known
from sfumato.policy.graph import Graph
from sfumato.policy.high_low import HighLow
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise, PairwisePolicy
from sfumato.policy.per_value import PerValue
from sfumato.policy.prior import Prior
from sfumato.policy.product import Product
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform as UniformPolicy

DIGITS = 60
PRIMES = (2, 3, 5)

Parts = dict[int, Fraction]
Level = Parts | None
Column = list[Fraction]
Weights = dict[int, Fraction]


def fewer(divisor: int) -> settings:
    """The profile in force, with a fraction of its examples: for tests whose every case is dear."""
    return settings(max_examples=max(10, settings().max_examples // divisor))


def refusal(call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """The message with which a call is refused."""
    with pytest.raises(InvalidInput) as caught:
        call(*args, **kwargs)
    return str(caught.value)


# -- numbers -----------------------------------------------------------------------------------------------


@contextmanager
def digits(count: int = DIGITS) -> Iterator[None]:
    """Decimal arithmetic with this many digits and no range to speak of."""
    with localcontext(Context(prec=count, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        yield


@functools.cache
def _ln(number: int, count: int) -> Decimal:
    with digits(count):
        return Decimal(number).ln()


def ratio(value: Fraction | int) -> Decimal:
    """A Fraction as a Decimal of the current precision."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def real(parts: Parts, count: int = DIGITS) -> Decimal:
    """r + Σ c·ln p in decimal digits."""
    with digits(count + 5):
        return sum(
            (ratio(c) * (1 if p == 1 else _ln(p, count + 5)) for p, c in sorted(parts.items())), start=Decimal(0)
        )


def e_to(parts: Parts, count: int = DIGITS) -> Decimal:
    """e^level in decimal digits."""
    value = real(parts, count + 10)
    with digits(count + 5):
        return value.exp()


def truncated(value: Callable[[int], Decimal], places: int) -> Fraction:
    """A positive number, given to any count of digits, cut after so many decimal places."""
    with digits(places + 30):
        return Fraction(int(value(places + 20).scaleb(places)), 10**places)


def exact_e_to(parts: Parts) -> Fraction | None:
    """e^level where it is rational."""
    if parts.get(1, 0) or any(c.denominator != 1 for c in parts.values()):
        return None
    return math.prod((Fraction(p) ** int(c) for p, c in parts.items() if p != 1), start=Fraction(1))


def text_of(parts: Parts) -> str:
    """A level as a person may write it; not the canonical text."""
    terms = [str(c) if p == 1 else f"{c}*ln {p}" for p, c in sorted(parts.items()) if c]
    return " + ".join(terms) or "0"


def written(level: Level) -> str:
    return "inf" if level is None else text_of(level)


def tidy(parts: Parts) -> Parts:
    return {p: c for p, c in sorted(parts.items()) if c}


def parts_of(epsilon: Epsilon) -> Level:
    """What the package holds, as parts: to compare with, never to compute from."""
    return None if epsilon.is_infinite else tidy({1: epsilon.rational, **dict(epsilon.logs)})


def plus(first: Level, second: Level) -> Level:
    if first is None or second is None:
        return None
    return tidy({p: first.get(p, Fraction(0)) + second.get(p, Fraction(0)) for p in {*first, *second}})


def scaled(level: Level, factor: Fraction | int) -> Level:
    """The multiple of a level; 0·∞ = 0."""
    if level is None:
        return None if factor else {}
    return tidy({p: c * factor for p, c in level.items()})


def below(first: Level, second: Level) -> bool:
    """first < second. Different parts are different reals; 60 digits tell those of these tests apart."""
    if first is None or second is None:
        return first is not None
    if tidy(first) == tidy(second):
        return False
    gap = real(second) - real(first)
    assert abs(gap) > Decimal("1e-45")
    return gap > 0


def smaller(first: Level, second: Level) -> Level:
    return second if below(second, first) else first


def violates(left: Fraction, right: Fraction, level: Level) -> bool:
    """left > e^level·right, by Fractions where e^level is rational, else by 60 digits (never a tie)."""
    if level is None or left == 0:
        return False
    if right == 0:
        return True
    exact = exact_e_to(level)
    if exact is not None:
        return left > exact * right
    gap = excess_of(left, right, level)
    assert abs(gap) > Decimal("1e-45")
    return gap > 0


def excess_of(left: Fraction, right: Fraction, level: Level) -> Decimal:
    """ln(left/right) - level."""
    if level is None or left == 0:
        return Decimal("-inf")
    if right == 0:
        return Decimal("inf")
    with digits():
        return ratio(left / right).ln() - real(level)


def rational_below_e_to(parts: Parts) -> Fraction:
    """e^level where it is rational, else a rational that is smaller by less than one part in 10^12."""
    exact = exact_e_to(parts)
    if exact is not None:
        return exact
    value = e_to(parts)
    with digits():
        return Fraction(int(value * 10**12), 10**12)


# -- rules -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """left·T ≤ e^level·right·T."""

    left: Weights
    right: Weights
    level: Parts

    def sides(self, column: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        return dot(self.left, column), dot(self.right, column)


@dataclass(frozen=True)
class Case:
    """A policy, and the rules that it stands for."""

    policy: Policy
    rules: tuple[Rule, ...]

    def allows(self, column: Sequence[Fraction]) -> bool:
        return not any(violates(*rule.sides(column), rule.level) for rule in self.rules)

    def excess(self, column: Sequence[Fraction]) -> Decimal:
        """The greatest excess over all rules, -inf where none binds."""
        return max((excess_of(*rule.sides(column), rule.level) for rule in self.rules), default=Decimal("-inf"))

    @property
    def size(self) -> int:
        return len(self.policy.domain)


@dataclass(frozen=True)
class PairCase(Case):
    """A policy on pairs, the rules it stands for, and its matrix."""

    matrix: tuple[tuple[Level, ...], ...]

    @property
    def pairs(self) -> PairwisePolicy:
        if isinstance(self.policy, Secret):
            pairwise = self.policy.as_pairwise
            assert pairwise is not None
            return pairwise
        assert isinstance(self.policy, PairwisePolicy)
        return self.policy

    @functools.cached_property
    def shortest(self) -> tuple[tuple[Level, ...], ...]:
        return shortest_paths(self.matrix)

    @functools.cached_property
    def dense(self) -> Pairwise:
        return Pairwise(self.policy.domain, [[written(level) for level in row] for row in self.matrix])


def dot(weights: Mapping[int, Fraction], column: Sequence[Fraction]) -> Fraction:
    return sum((c * column[x] for x, c in weights.items()), start=Fraction(0))


def shortest_paths(matrix: Sequence[Sequence[Level]]) -> tuple[tuple[Level, ...], ...]:
    """The least sum over *every* simple path, listed one by one."""
    size = len(matrix)

    def least(x: int, y: int) -> Level:
        if x == y:
            return {}
        others = [z for z in range(size) if z not in (x, y)]
        best: Level = matrix[x][y]
        for length in range(1, size - 1):
            for middle in itertools.permutations(others, length):
                stops = (x, *middle, y)
                total: Level = {}
                for a, b in itertools.pairwise(stops):
                    total = plus(total, matrix[a][b])
                best = smaller(best, total)
        return best

    return tuple(tuple(least(x, y) for y in range(size)) for x in range(size))


def pair_rules(matrix: Sequence[Sequence[Level]]) -> tuple[Rule, ...]:
    one = Fraction(1)
    return tuple(
        Rule({x: one}, {y: one}, level)
        for x, row in enumerate(matrix)
        for y, level in enumerate(row)
        if x != y and level is not None
    )


def pair_case(policy: Policy, level: Callable[[int, int], Level]) -> PairCase:
    size = len(policy.domain)
    matrix = tuple(tuple({} if x == y else level(x, y) for y in range(size)) for x in range(size))
    return PairCase(policy, pair_rules(matrix), matrix)


def prior_rules(prior: Sequence[Fraction], level: Level) -> tuple[Rule, ...]:
    if level is None:
        return ()
    average = dict(enumerate(prior))
    one = Fraction(1)
    upper = [Rule({x: one}, average, level) for x in range(len(prior))]
    lower = [Rule(average, {x: one}, level) for x in range(len(prior))]
    return (*upper, *lower)


def known_rules(joint: Sequence[Sequence[Fraction]], level: Level) -> tuple[Rule, ...]:
    """P(U|s)·T_s ≤ e^ε·P(U|s')·T_s' for the domain S × U; any law of U for a secret of probability zero."""
    if level is None:
        return ()
    width = len(joint[0])

    def laws(s: int) -> list[Weights]:
        total = sum(joint[s])
        if total == 0:
            return [{s * width + u: Fraction(1)} for u in range(width)]
        return [{s * width + u: p / total for u, p in enumerate(joint[s])}]

    return tuple(
        Rule(left, right, level)
        for s, other in itertools.permutations(range(len(joint)), 2)
        for left in laws(s)
        for right in laws(other)
    )


# -- strategies --------------------------------------------------------------------------------------------


def fractions(low: Fraction | int, high: Fraction | int, denominator: int = 12) -> st.SearchStrategy[Fraction]:
    return st.fractions(low, high, max_denominator=denominator)


#: Levels of every sort: rational, with rational e^ε, roots, and such that have no common unit.
finite_levels: st.SearchStrategy[Parts] = st.one_of(
    st.builds(lambda c: tidy({1: c}), fractions(0, 3)),
    st.builds(lambda p, c: tidy({p: c}), st.sampled_from(PRIMES), st.sampled_from([1, 1, 2, 3]).map(Fraction)),
    st.builds(lambda p, c: tidy({p: c}), st.sampled_from(PRIMES), fractions(0, 2)),
    st.builds(lambda r, p, c: tidy({1: r, p: c}), fractions(0, 2), st.sampled_from(PRIMES), fractions(0, 2)),
)
levels: st.SearchStrategy[Level] = st.one_of(finite_levels, finite_levels, finite_levels, st.none())

sizes = st.integers(2, 5)
LABELS = ("a", "b", "c", "d", "e")


def domain_of(size: int) -> Domain:
    return Domain(LABELS[:size])


@st.composite
def columns(draw: st.DrawFn, size: int) -> Column:
    """Likelihoods with zeros, repetitions, exact powers, and steps of one part in 10^30."""
    entry = st.one_of(
        st.integers(0, 9).map(Fraction),
        st.builds(lambda p, k: Fraction(p) ** k, st.sampled_from(PRIMES), st.integers(-2, 3)),
        fractions(0, 4),
    )
    nudge = st.sampled_from([0, 0, 0, 1, -1]).map(lambda sign: 1 + Fraction(sign, 10**30))
    return [draw(entry) * draw(nudge) for _ in range(size)]


@st.composite
def priors(draw: st.DrawFn, size: int) -> list[Fraction]:
    weights = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    return [Fraction(w, sum(weights)) for w in weights]


@st.composite
def uniform_cases(draw: st.DrawFn, size: int) -> PairCase:
    level = draw(levels)
    return pair_case(UniformPolicy(domain_of(size), written(level)), lambda _x, _y: level)


@st.composite
def high_low_cases(draw: st.DrawFn, size: int) -> PairCase:
    level = draw(levels)
    sensitive = draw(st.lists(st.sampled_from(range(size)), min_size=1, unique=True))
    policy = HighLow(domain_of(size), [LABELS[x] for x in sensitive], written(level))
    return pair_case(policy, lambda x, _y: level if x in sensitive else None)


@st.composite
def blocks_cases(draw: st.DrawFn, size: int) -> PairCase:
    """Blocks as labels or as lists, one level or one per block, finite and infinite ``across``."""
    names = draw(st.lists(st.sampled_from("xyz"), min_size=size, max_size=size))
    order = list(dict.fromkeys(names))
    across = draw(levels)
    if draw(st.booleans()):
        within = dict.fromkeys(order, draw(levels))
        epsilon: Any = written(within[order[0]])
    else:
        order = draw(st.permutations(order))
        within = {name: draw(levels) for name in order}
        epsilon = [written(within[name]) for name in order]
    as_lists: list[Any] = [[LABELS[x] for x in range(size) if names[x] == name] for name in order]
    by_label = isinstance(epsilon, str) and draw(st.booleans())
    policy = Blocks(domain_of(size), names if by_label else as_lists, epsilon, across=written(across))
    return pair_case(policy, lambda x, y: within[names[x]] if names[x] == names[y] else across)


@st.composite
def metric_cases(draw: st.DrawFn, size: int) -> PairCase:
    """Symmetric distances, zeros among them, that need not obey the triangle inequality."""
    level = draw(levels)
    half = {pair: draw(fractions(0, 3, 4)) for pair in itertools.combinations(range(size), 2)}

    def distance(x: int, y: int) -> Fraction:
        return Fraction(0) if x == y else half[min(x, y), max(x, y)]

    matrix = [[distance(x, y) for y in range(size)] for x in range(size)]
    return pair_case(Metric(domain_of(size), matrix, written(level)), lambda x, y: scaled(level, distance(x, y)))


@st.composite
def per_value_cases(draw: st.DrawFn, size: int) -> PairCase:
    """One level per value, with ties, combined by every rule."""
    pool = draw(st.lists(levels, min_size=1, max_size=4))
    own = [draw(st.sampled_from(pool)) for _ in range(size)]
    rule = draw(st.sampled_from(["min", "mean", "max"]))

    def combined(x: int, y: int) -> Level:
        if rule == "mean":
            return scaled(plus(own[x], own[y]), Fraction(1, 2))
        least = smaller(own[x], own[y])
        return least if rule == "min" else own[y] if least is own[x] else own[x]

    by_label = {LABELS[x]: written(own[x]) for x in draw(st.permutations(range(size)))}
    epsilons: Any = by_label if draw(st.booleans()) else [written(level) for level in own]
    return pair_case(PerValue(domain_of(size), epsilons, rule), combined)


@st.composite
def graph_cases(draw: st.DrawFn, size: int) -> PairCase:
    """Any undirected graph, with one level or one per edge, in both directions of writing an edge."""
    pairs = draw(st.lists(st.sampled_from(list(itertools.combinations(range(size), 2))), unique=True))
    shared = draw(levels)
    level_of = {pair: shared if draw(st.booleans()) else draw(levels) for pair in pairs}
    edges = []
    for (x, y), level in draw(st.permutations(list(level_of.items()))):
        ends = (LABELS[y], LABELS[x]) if draw(st.booleans()) else (LABELS[x], LABELS[y])
        edges.append((*ends, written(level)) if level is not shared or draw(st.booleans()) else ends)
    policy = Graph(domain_of(size), edges, written(shared))
    return pair_case(policy, lambda x, y: level_of.get((min(x, y), max(x, y))))


@st.composite
def matrix_cases(draw: st.DrawFn, size: int, entries: st.SearchStrategy[Level] = levels) -> PairCase:
    """Any matrix, asymmetric; few distinct levels, so that ties occur."""
    pool = draw(st.lists(entries, min_size=1, max_size=4))
    matrix = [[{} if x == y else draw(st.sampled_from(pool)) for y in range(size)] for x in range(size)]
    policy = Pairwise(domain_of(size), [[written(level) for level in row] for row in matrix])
    return pair_case(policy, lambda x, y: matrix[x][y])


def product_domain(secrets: int, others: int) -> Domain:
    return Domain.product(S=[f"s{i}" for i in range(secrets)], U=Domain.range(others))


shapes = st.sampled_from([(2, 1), (2, 2), (2, 2), (3, 1), (2, 3), (3, 2)])


@st.composite
def anything_cases(draw: st.DrawFn, shape: tuple[int, int]) -> PairCase:
    level = draw(levels)
    policy = Secret(product_domain(*shape), "S", written(level), Anything())
    return pair_case(policy, lambda x, y: None if x // shape[1] == y // shape[1] else level)


@st.composite
def known_cases(draw: st.DrawFn, shape: tuple[int, int]) -> Case:
    level = draw(levels)
    flat = draw(priors(shape[0] * shape[1]))
    joint = [flat[s * shape[1] : (s + 1) * shape[1]] for s in range(shape[0])]
    policy = Secret(product_domain(*shape), "S", written(level), Known(joint))
    return Case(policy, known_rules(joint, level))


@st.composite
def prior_cases(draw: st.DrawFn, size: int) -> Case:
    level, prior = draw(levels), draw(priors(size))
    return Case(Prior(domain_of(size), prior, written(level)), prior_rules(prior, level))


def pair_cases(size: int) -> st.SearchStrategy[PairCase]:
    """A policy on pairs over the values a, b, c, … of any kind but Secret."""
    return st.one_of(
        uniform_cases(size),
        high_low_cases(size),
        blocks_cases(size),
        metric_cases(size),
        per_value_cases(size),
        graph_cases(size),
        matrix_cases(size),
    )


@st.composite
def product_cases(draw: st.DrawFn, shape: tuple[int, ...]) -> PairCase:
    """A policy per attribute, of any kinds; levels are sums over the attributes."""
    attributes = [draw(pair_cases(size)) for size in shape]
    policy = Product({name: case.pairs for name, case in zip("STU", attributes, strict=False)})
    places = list(itertools.product(*map(range, shape)))

    def level(x: int, y: int) -> Level:
        total: Level = {}
        for case, a, b in zip(attributes, places[x], places[y], strict=True):
            total = plus(total, case.matrix[a][b])
        return total

    return pair_case(policy, level)


product_shapes: st.SearchStrategy[tuple[int, ...]] = st.sampled_from([(2, 2), (2, 3), (3, 2)])
any_pair_case: st.SearchStrategy[PairCase] = st.one_of(
    sizes.flatmap(pair_cases), shapes.flatmap(anything_cases), product_shapes.flatmap(product_cases)
)
any_case: st.SearchStrategy[Case] = st.one_of(any_pair_case, sizes.flatmap(prior_cases), shapes.flatmap(known_cases))


def pulled_inside(matrix: Sequence[Sequence[Level]], column: Sequence[Fraction]) -> Column:
    """The greatest column below this one that obeys every pair, with e^E rounded down to a rational.

    Most of its pairs are at their limit exactly, or within one part in 10^12.
    """
    limits = {
        (x, y): rational_below_e_to(level)
        for x, row in enumerate(matrix)
        for y, level in enumerate(row)
        if x != y and level is not None
    }
    inside = list(column)
    for _ in inside:
        for (x, y), limit in limits.items():
            inside[x] = min(inside[x], limit * inside[y])
    assert all(inside[x] <= limit * inside[y] for (x, y), limit in limits.items())
    return inside


def mixed_inside(prior: Sequence[Fraction], level: Level, column: Sequence[Fraction]) -> Column:
    """This column, mixed with its own average by no more than the prior policy asks for (e^ε rounded down)."""
    average = sum((p * t for p, t in zip(prior, column, strict=True)), start=Fraction(0))
    if level is None or average == 0:
        return [average if level is not None else t for t in column]
    limit = rational_below_e_to(level)
    share = Fraction(1)
    for t in column:
        room = (limit - 1) * average if t > average else (1 - 1 / limit) * average
        if t != average:
            share = min(share, room / abs(t - average))
    return [average + share * (t - average) for t in column]
