"""Central levels of shuffled reports: compared with brute force, and their special cases."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core import ZERO, Epsilon, OutputGroup, hockey_stick, merged_groups
from sfumato.auditing.shuffling import amplifying, bounds, pairs as pair_module
from sfumato.auditing.shuffling.structures import structure_of
from sfumato.errors import InvalidInput, PolicyViolated, UnknownLabel
from sfumato.mechanisms import (
    BinaryOptimal,
    BlockMechanism,
    Channel,
    HadamardResponse,
    HighLowMixedSubsets,
    LocalHashing,
    Mechanism,
    MemoizedMechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
    UtilityOptimizedRR,
)
from sfumato.policy import PairwisePolicy
from support.family_examples import all_examples
from support.shuffles import divergence, histogram_law, ratios, shuffled_laws

TWO, THREE = sf.Domain(["a", "b"]), sf.Domain(["a", "b", "c"])


def _table() -> TableMechanism:
    """A mechanism without symmetry, with a different level for every pair."""
    weights = [[5, 2, 1, 0], [2, 4, 1, 1], [1, 1, 5, 1]]
    return TableMechanism(THREE, [[w * 2**59 for w in row] for row in weights])


#: Mechanisms with a policy that they obey.
CASES: dict[str, tuple[Mechanism, sf.Policy]] = {
    "binary": (BinaryOptimal(TWO, 1, "1/2"), sf.Pairwise(TWO, [[0, 1], ["1/2", 0]])),
    "response-2": (RandomizedResponse(TWO, 2), sf.Uniform(TWO, 2)),
    "response-3": (RandomizedResponse(THREE, "ln 5"), sf.Uniform(THREE, "ln 5")),
    "subset": (SubsetSelection(THREE, 1, size=2), sf.Uniform(THREE, 1)),
    "high-low": (UtilityOptimizedRR(THREE, ["a", "b"], "ln 3"), sf.HighLow(THREE, ["a", "b"], "ln 3")),
    "one sensitive": (UtilityOptimizedRR(THREE, ["a"], 1), sf.HighLow(THREE, ["a"], 1)),
    "unary": (UnaryEncoding(TWO, 1), sf.Uniform(TWO, 1)),
    "blocks": (
        BlockMechanism.for_policy(sf.Blocks(THREE, [0, 0, 1], 1)),
        sf.Blocks(THREE, [0, 0, 1], 1),
    ),
}


def _check_between(mechanism: Mechanism, result: sf.Amplification, people: int, delta: Fraction) -> None:
    """The exact level at δ, the worst over all values of others, is between the two bounds of every pair."""
    rows = mechanism.channel().rows
    for row in result:
        value, other = mechanism.domain.index(row.value), mechanism.domain.index(row.other)
        laws = list(shuffled_laws(rows, value, other, people))
        worst = max(divergence(*pair, ratios(row.epsilon)[0]) for pair in laws)
        assert worst <= delta, f"{row.value} against {row.other}: δ is {float(worst)} at the upper bound"
        assert row.lower is not None
        best = max(divergence(*pair, ratios(row.lower)[1]) for pair in laws)
        assert best >= delta or row.lower == ZERO, f"{row.value} against {row.other}: δ is {float(best)} at the lower"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("people", "delta"), [(2, "0.1"), (4, "0.01"), (6, "0.001")])
def test_exact_level_is_between_the_bounds(name: str, people: int, delta: str) -> None:
    mechanism, policy = CASES[name]
    result = sf.amplify(mechanism, policy, people, delta)
    assert len(result)
    _check_between(mechanism, result, people, Fraction(delta))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["response-3", "high-low", "subset"])
def test_bounds_hold_along_the_curve(name: str) -> None:
    mechanism, policy = CASES[name]
    for delta in ("0.3", "0.03", "0.0003", "1e-6", "1e-12"):
        _check_between(mechanism, sf.amplify(mechanism, policy, 5, delta), 5, Fraction(delta))


def test_table_without_symmetry_is_between_the_bounds() -> None:
    mechanism = _table()
    matrix = [[_level(row, other) for other in mechanism.channel().rows] for row in mechanism.channel().rows]
    policy = sf.Pairwise(THREE, matrix)
    result = sf.amplify(mechanism, policy, 4, "0.01")
    assert {row.local for row in result}
    assert not result.mutual
    _check_between(mechanism, result, 4, Fraction("0.01"))


def _level(row: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> str:
    """The least level that two rows obey, rounded up."""
    if any(p and not q for p, q in zip(row, other, strict=True)):
        return "inf"
    return str(math.ceil(1000 * math.log(max(p / q for p, q in zip(row, other, strict=True) if q))) / 1000)


@pytest.mark.parametrize("defect", ["weights", "crowd"])
def test_a_wrong_law_is_detected(monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    mechanism, policy = CASES["response-3"]
    if defect == "weights":  # the blanket of the two values, not of all values
        exact = pair_module.Laws.against_all

        def wrong(laws: pair_module.Laws, value: int, other: int, _: object = None) -> object:
            return exact(laws, value, other, [value, other])

        monkeypatch.setattr(pair_module.Laws, "against_all", wrong)
        mechanism = TableMechanism(THREE, [[w * 2**60 for w in row] for row in ([2, 1, 1], [1, 2, 1], [0, 1, 3])])
        policy = sf.Pairwise(THREE, [[0, "ln 2", "inf"], ["ln 2", 0, "inf"], ["inf", "inf", 0]])
    else:  # one output is missing from the lower bound's law of the crowd
        exact_of_crowd = pair_module.Laws.against

        def shifted(laws: pair_module.Laws, value: int, other: int, crowd: int) -> object:
            groups = exact_of_crowd(laws, value, other, crowd)
            return (dataclasses.replace(groups[0], weight=groups[0].weight / 8), *groups[1:])

        monkeypatch.setattr(pair_module.Laws, "against", shifted)
    with pytest.raises(AssertionError, match="δ is"):
        _check_between(mechanism, sf.amplify(mechanism, policy, 6, "0.1"), 6, Fraction("0.1"))


@pytest.mark.slow
def test_lower_bound_is_attained_by_its_data_set() -> None:
    # Another method: the exact law of four counts, summed over all histograms.
    people, delta = 14, Fraction(1, 100)
    mechanism = RandomizedResponse(sf.Domain.range(5), 2)
    row = next(iter(sf.amplify(mechanism, sf.Uniform(mechanism.domain, 2), people, delta)))
    assert isinstance(row.crowd, int)
    assert row.lower is not None
    law = mechanism.channel().rows

    def grouped(x: int) -> list[Fraction]:
        outputs = [law[x][int(str(label))] for label in (row.value, row.other, row.crowd)]
        return [*outputs, 1 - sum(outputs, Fraction(0))]

    others = [grouped(row.crowd)] * (people - 1)
    first, second = (histogram_law([grouped(int(str(x))), *others]) for x in (row.value, row.other))
    assert divergence(first, second, ratios(row.lower)[1]) > delta
    assert divergence(first, second, ratios(row.epsilon)[0]) < delta


@pytest.mark.parametrize("level", [4, 6])
def test_lower_bound_of_many_people_is_attained_by_its_data_set(level: int) -> None:
    # Another method: the law of two counts of the other people, as a product of binomial laws in doubles.
    from scipy.stats import binom

    people, delta = 100_000, 1e-6
    mechanism = RandomizedResponse(THREE, level)
    row = sf.amplify(mechanism, sf.Uniform(THREE, level), people, delta, pairs=[("a", "b")])["a", "b"]
    assert row.crowd == "c"
    assert row.lower is not None
    high, low = (float(mechanism.probability(0, x)) for x in (0, 1))
    mean = people * low
    counts = np.arange(max(0, int(mean - 9 * mean**0.5)), int(mean + 9 * mean**0.5))
    # Of the others, i send "a" and j of the rest send "b"; one more row and column have the person's report.
    others = binom.pmf(counts[:, None], people - 1, low)
    others = others * binom.pmf(counts, people - 1 - counts[:, None], low / (1 - low))
    here, with_a, with_b = others[1:, 1:], others[:-1, 1:], others[1:, :-1]
    first, second = high * with_a + low * with_b + low * here, low * with_a + high * with_b + low * here

    def divergence_at(epsilon: Epsilon) -> float:
        return float(np.maximum(first - math.exp(float(epsilon)) * second, 0).sum())

    assert delta < divergence_at(row.lower) < 1.2 * delta
    assert divergence_at(row.epsilon) < delta


@pytest.mark.slow
@pytest.mark.parametrize(("level", "values"), [(4, 10), (4, 1000), (6, 10), (6, 1000)])
def test_upper_bound_of_many_people_equals_sums_over_the_blanket(level: int, values: int) -> None:
    # Another method, in doubles: of n draws from the blanket, i are the value, j the other and l any third one.
    from scipy.stats import binom

    people, delta = 100_000, 1e-6
    mechanism = RandomizedResponse(sf.Domain.range(values), level)
    result = sf.amplify(mechanism, sf.Uniform(mechanism.domain, level), people, delta, pairs=[(0, 1)])
    ratio, low = math.exp(level), 1 / (math.exp(level) + values - 1)
    t, mean = math.exp(float(result.epsilon)), people * low
    j = np.arange(max(0, int(mean - 11 * mean**0.5)), int(mean + 11 * mean**0.5) + 12)
    i = j[:, None]
    weights = binom.pmf(i, people, low) * binom.pmf(j, people - i, low / (1 - low))
    rest, share = people - i - j, (values - 2) * low / (1 - 2 * low)
    score = (ratio - t) * i - (t * ratio - 1) * j
    last = np.floor(score / (t - 1))  # E[(score - (t-1)·l)₊], as a sum over l up to here
    positive = score * binom.cdf(last, rest, share) - (t - 1) * rest * share * binom.cdf(last - 1, rest - 1, share)
    exact = float((weights * np.where(score > 0, positive, 0)).sum()) / people
    assert 0.98 * delta < exact < delta


@pytest.mark.slow
def test_reference_levels_at_many_people() -> None:
    # Two independent computations in doubles gave these levels at n = 10^5 and δ = 10^-6, to three digits; that of
    # k-ary response at k = 1000 is 0.0244, and the certified bounds are 0.5% below it.
    wanted = {
        (4, "response", 1000): 0.0244,
        (4, "response", 10): 0.110,
        (4, "subset", 1000): 0.0815,
        (6, "response", 1000): 0.181,
        (6, "response", 10): 0.353,
    }
    for (epsilon, kind, k), level in wanted.items():
        domain = sf.Domain.range(k)
        mechanism = RandomizedResponse(domain, epsilon) if kind == "response" else SubsetSelection(domain, epsilon)
        result = sf.amplify(mechanism, sf.Uniform(domain, epsilon), 100_000, 1e-6, pairs=[(0, 1)])
        assert float(result.epsilon) == pytest.approx(level, rel=6e-3)
        assert 1 < float(result.epsilon) / float(result.lower) < 1.02


@pytest.mark.slow
def test_more_people_hide_better() -> None:
    mechanism, policy = CASES["response-3"]
    levels = [float(sf.amplify(mechanism, policy, n, "1e-6").epsilon) for n in (1, 10, 10**3, 10**5, 10**8)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == pytest.approx(math.log(5))
    assert levels[-1] < 1e-3


@pytest.mark.parametrize(("n", "delta"), [(1, "1e-6"), (1000, 0)])
def test_no_crowd_or_no_delta_gives_the_local_level(n: int, delta: object) -> None:
    result = sf.amplify(RandomizedResponse(THREE, 2), sf.Uniform(THREE, 2), n, delta)
    assert result.epsilon == result.local == Epsilon(2)
    assert 1.99 < float(result.lower) <= 2
    assert not any(row.is_amplified for row in result)


def test_level_zero_and_single_value() -> None:
    result = sf.amplify(RandomizedResponse(THREE, 0), sf.Uniform(THREE, 0), 100, "1e-6")
    assert result.epsilon == result.lower == ZERO
    single = sf.Domain(["only"])
    assert sf.amplify(RandomizedResponse(single, 1), sf.Uniform(single, 1), 100, "1e-6").epsilon == ZERO


def test_large_delta_gives_zero() -> None:
    assert sf.amplify(RandomizedResponse(THREE, 1), sf.Uniform(THREE, 1), 10**6, "0.5").epsilon == ZERO


@pytest.mark.slow
def test_sensitive_pairs_amplify_and_hidden_harmless_values_do_not() -> None:
    domain = sf.Domain.range(20)
    policy = sf.HighLow(domain, range(10), 4)
    mechanism = UtilityOptimizedRR(domain, range(10), 4)
    result = sf.amplify(mechanism, policy, 100_000, "1e-6")
    assert not result.mutual
    by_kind = {(row.other in range(10)): row for row in result}
    assert {row.value in range(10) for row in result} == {True}
    assert sum(row.pairs for row in result) == 10 * 19
    # Among sensitive values: the level of randomized response over ten values.
    plain = RandomizedResponse(sf.Domain.range(10), 4)
    alone = sf.amplify(plain, sf.Uniform(plain.domain, 4), 100_000, "1e-6")
    assert by_kind[True].epsilon == alone.epsilon
    # A harmless value reveals itself with probability γ, so that no revealing report is evidence of at least
    # -ln(1 - γ) for a sensitive value, however large the crowd is.
    floor = -math.log(1 - mechanism.parts[0].gamma)
    assert float(by_kind[False].lower or 0) > floor
    assert float(by_kind[False].epsilon) < floor + 0.1


@pytest.mark.slow
def test_blocks_amplify_only_with_a_minimum_count() -> None:
    domain = sf.Domain.range(7)
    policy = sf.Blocks(domain, [0, 0, 0, 1, 1, 1, 2], 3)
    mechanism = BlockMechanism.for_policy(policy)
    alone = sf.amplify(mechanism, policy, 10**5, "1e-6")
    assert alone.epsilon == Epsilon(3)
    assert float(alone.lower) > 2.99
    assert not any(row.is_amplified for row in alone)
    assert sum(row.pairs for row in alone) == 12
    stated = sf.amplify(mechanism, policy, 10**5, "1e-6", minimum_counts=10**4)
    inside = RandomizedResponse(sf.Domain.range(3), 3)
    same = sf.amplify(inside, sf.Uniform(inside.domain, 3), 10**4, "1e-6")
    assert stated.epsilon == same.epsilon
    assert stated.lower == same.lower
    one = sf.amplify(mechanism, policy, 10**5, "1e-6", minimum_counts={0: 10**4})
    assert [row.is_amplified for row in one] == [False, True]
    assert all(row.lower is not None for row in one)


@pytest.mark.slow
def test_blocks_of_two_values_have_the_bound_of_two_outputs() -> None:
    policy = sf.Blocks(sf.Domain.range(4), [0, 0, 1, 1], 3)
    mechanism = BlockMechanism.for_policy(policy)
    stated = sf.amplify(mechanism, policy, 10**5, "1e-6", minimum_counts=10**4)
    plain = sf.amplify(RandomizedResponse(TWO, 3), sf.Uniform(TWO, 3), 10**4, "1e-6")
    assert float(stated.epsilon) == pytest.approx(float(plain.epsilon), rel=1e-3)
    assert stated.lower == plain.lower
    assert float(stated.epsilon) / float(stated.lower) < 1.1


@pytest.mark.slow
def test_proportional_outputs_count_as_one_output() -> None:
    weights = [[6, 2], [1, 7]]
    split = TableMechanism(TWO, [[w * 2**58 for w in (a, a, b, b)] for a, b in weights])
    merged = TableMechanism(TWO, [[w * 2**59 for w in row] for row in weights])
    policy = sf.Uniform(TWO, 2)
    results = [sf.amplify(mechanism, policy, 1000, "1e-6") for mechanism in (split, merged)]
    assert results[0].epsilon == results[1].epsilon
    assert results[0].lower == results[1].lower


class _WrongLaw(RandomizedResponse):
    """Randomized response of another package that states uniform reports."""

    name = "wrong-law"

    def probability(self, report: int, x: int) -> Fraction:  # noqa: ARG002
        return Fraction(1, len(self.domain))


class _WrongChannel(RandomizedResponse):
    """Randomized response of another package whose channel is that of level zero."""

    name = "wrong-channel"

    def channel(self, values: Iterable[object] | None = None) -> Channel:
        return RandomizedResponse(self.domain, 0).channel(values)


@pytest.mark.parametrize("kind", [_WrongLaw, _WrongChannel])
@pytest.mark.parametrize("values", [2, 3])
def test_laws_of_other_packages_are_read_from_their_samplers(kind: type[RandomizedResponse], values: int) -> None:
    policy = sf.Uniform(sf.Domain.range(values), 3)
    right = sf.amplify(RandomizedResponse(policy.domain, 3), policy, 12, "0.01")
    result = sf.amplify(kind(policy.domain, 3), policy, 12, "0.01")
    assert (result.epsilon, result.lower) == (right.epsilon, right.lower)


@pytest.mark.parametrize("delta", ["0", "1e-3"])
def test_rows_that_differ_by_one_unit_have_a_tiny_level(delta: str) -> None:
    half = 2**61
    mechanism = TableMechanism(sf.Domain.range(2), [[half, half], [half - 1, half + 1]])
    result = sf.amplify(mechanism, sf.Uniform(mechanism.domain, 1), 5, delta)
    assert ZERO < result.local < Epsilon("1e-18")
    assert result.lower <= result.epsilon <= result.local


def test_minimum_counts_of_the_only_group_do_not_raise_the_lower_bound() -> None:
    policy = sf.Uniform(THREE, 3)
    mechanism = RandomizedResponse(THREE, 3)
    free = sf.amplify(mechanism, policy, 12, "0.01")
    stated = sf.amplify(mechanism, policy, 12, "0.01", minimum_counts=5)
    assert (stated.epsilon, stated.lower) == (free.epsilon, free.lower)


def test_minimum_counts_that_leave_no_room_for_a_pair_have_no_lower_bound() -> None:
    policy = sf.Blocks(sf.Domain.range(4), [0, 0, 1, 1], 3)
    mechanism = BlockMechanism.for_policy(policy)
    result = sf.amplify(mechanism, policy, 20, "0.01", minimum_counts={0: 20})
    assert result[0, 1].lower is not None
    assert result[2, 3].lower is None


def _structured_examples() -> list[Mechanism]:
    """Examples of all families that know their law in groups of reports."""
    examples = [
        mechanism
        for known in all_examples()
        for epsilon in ("1", "3")
        for mechanism in known.laws(epsilon)
        if len(mechanism.domain) > 1 and structure_of(mechanism) is not None
    ]
    # A second size that contains all sensitive values has a part over one value.
    wide = HighLowMixedSubsets(sf.Domain.range(5), range(3), 1, sizes=(2, 3), weight=2**63)
    return [*examples, wide, LocalHashing(sf.Domain.range(6), 2, buckets=3), HadamardResponse(sf.Domain.range(6), 4)]


def test_structured_laws_equal_listed_laws() -> None:
    # Structured laws, kinds and classes of pairs are used if a complete law is large.
    names = set()
    for mechanism in _structured_examples():
        names.add(mechanism.name)
        listed, structured = pair_module.Laws(mechanism), pair_module.Laws(mechanism)
        listed.structure, structured.structure = None, structure_of(mechanism)
        size = min(len(mechanism.domain), 6)
        kinds, classes = structured.kinds(np.arange(size)), structured.classes().tolist()
        assert kinds is not None
        of_kind: dict[object, object] = {}
        for x, other in itertools.permutations(range(size), 2):
            exact, short = (laws.against_all(x, other) for laws in (listed, structured))
            # A structured law may bound the least likelihood from below, where no value attains the bound.
            assert _without_weights(exact) == _without_weights(short)
            least = _weights(exact)
            assert all(weight <= least[ratio] for ratio, weight in _weights(short).items())
            assert of_kind.setdefault(("kind", int(kinds[x, other])), short) == short
            assert of_kind.setdefault((classes[x], classes[other]), short) == short
            for crowd in range(size):
                assert listed.against(x, other, crowd) == structured.against(x, other, crowd)
    assert names >= {"cyclic-design", "hadamard-response", "parts", "high-low-mixed-subsets", "unary-encoding"}


@pytest.mark.parametrize("policy", [sf.Uniform(sf.Domain.range(6), 2), sf.HighLow(sf.Domain.range(6), range(4), 2)])
def test_structured_laws_have_the_same_number_of_pairs(policy: PairwisePolicy) -> None:
    for row in sf.plan(policy, 100, max_seconds=0):
        if structure_of(row.mechanism) is None:
            continue
        listed, structured = pair_module.Laws(row.mechanism), pair_module.Laws(row.mechanism)
        listed.structure, structured.structure = None, structure_of(row.mechanism)
        groups = amplifying._groups(policy)
        counts = [
            sum(p.pairs for p in pair_module.protected_pairs(laws, policy, groups)[0]) for laws in (listed, structured)
        ]
        assert counts[0] == counts[1]


def _without_weights(groups: tuple[OutputGroup, ...]) -> tuple[OutputGroup, ...]:
    """Groups merged by their ratio P/P' alone."""
    return merged_groups([dataclasses.replace(g, weight=Fraction(0)) for g in groups])


def _weights(groups: tuple[OutputGroup, ...]) -> dict[Fraction, Fraction]:
    """The total weight of the outputs of each share P/(P + P')."""
    totals: dict[Fraction, Fraction] = {}
    for group in groups:
        if total := group.first + group.second:
            share = group.first / total
            totals[share] = totals.get(share, Fraction(0)) + group.weight
    return totals


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cyclic", "hadamard"])
def test_short_reports_of_many_values_have_central_levels(name: str) -> None:
    policy = sf.Uniform(sf.Domain.range(1000), 4)
    result = sf.amplify(sf.design(policy, mechanism=name), policy, 100_000, "1e-6")
    assert sum(row.pairs for row in result) == 1000 * 999
    assert 0.07 < float(result.epsilon) < 0.09
    assert float(result.epsilon) / float(result.lower) < 1.02


def _random_table(seed: int) -> TableMechanism:
    """A table of two or three values without symmetry, often with outputs that some values do not send."""
    generator = np.random.default_rng(seed)
    values, outputs = int(generator.integers(2, 4)), int(generator.integers(2, 4))
    rows = []
    for _ in range(values):
        weights = generator.integers(0 if seed % 2 else 1, 10**6 if seed % 3 else 4, outputs).tolist()
        weights[int(generator.integers(outputs))] += 1
        row = [w * 2**62 // sum(weights) for w in weights]
        row[row.index(max(row))] += 2**62 - sum(row)
        rows.append(row)
    return TableMechanism(sf.Domain.range(values), rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "listed"), [*((seed, True) for seed in range(40)), *((seed, False) for seed in range(6))]
)
def test_random_tables_are_between_the_bounds(monkeypatch: pytest.MonkeyPatch, seed: int, listed: bool) -> None:
    if not listed:  # the method for many people
        monkeypatch.setattr(hockey_stick, "_MOST_HISTOGRAMS", 0)
    mechanism = _random_table(seed)
    laws = mechanism.channel().rows
    policy = sf.Pairwise(mechanism.domain, [[_level(row, other) for other in laws] for row in laws])
    people = 2 + seed % 4
    for delta in ("0.2", "0.01", "1e-5"):
        result = sf.amplify(mechanism, policy, people, delta)
        _check_between(mechanism, result, people, Fraction(delta))
        for row in result:
            assert row.lower is not None
            assert row.lower <= row.epsilon <= row.local
            # The bound comes from the stated data set alone.
            others = [laws[mechanism.domain.index(row.crowd)]] * (people - 1)
            first, second = (histogram_law([laws[mechanism.domain.index(x)], *others]) for x in (row.value, row.other))
            assert row.lower == ZERO or divergence(first, second, ratios(row.lower)[1]) >= Fraction(delta)


def test_no_mechanism_exceeds_the_bound_for_all_mechanisms_of_a_level() -> None:
    # The blanket of randomized response over two values bounds that of every mechanism of the same level.
    people, delta = 30, Fraction(1, 1000)
    half = RandomizedResponse(TWO, 2)
    generic = bounds.least_certified(pair_module.Laws(half).against_all(0, 1), people, delta, Epsilon(2))
    for mechanism in (
        RandomizedResponse(THREE, 2),
        SubsetSelection(sf.Domain.range(5), 2, size=2),
        HadamardResponse(sf.Domain.range(4), 2),
        UnaryEncoding(THREE, 2, optimized=True),
        sf.design(sf.Metric(sf.Domain.range(3), "absolute", 1), max_seconds=1),
    ):
        result = sf.amplify(mechanism, sf.Uniform(mechanism.domain, 2), people, delta)
        assert result.epsilon <= generic


@pytest.mark.slow
@pytest.mark.parametrize(("level", "people"), [(8, 10**4), (10, 10**4), (12, 10**6), (20, 10**6), (30, 10**4)])
@pytest.mark.parametrize("values", [2, 3, 100])
def test_bounds_are_close_where_the_crowd_is_nearly_too_small(level: int, people: int, values: int) -> None:
    # About n·e^-ε others send the report that hides a value; the level falls where they are about ln 1/δ.
    mechanism = RandomizedResponse(sf.Domain.range(values), level)
    result = sf.amplify(mechanism, sf.Uniform(mechanism.domain, level), people, "1e-6", pairs=[(0, 1)])
    assert float(result.epsilon) / float(result.lower) < 1.1


def test_linked_reports_are_refused() -> None:
    policy = sf.Uniform(THREE, 1)
    memoized = sf.design(policy, lifetime=sf.Uniform(THREE, 2))
    assert isinstance(memoized, MemoizedMechanism)
    with pytest.raises(InvalidInput, match="share a random choice"):
        sf.amplify(memoized, policy, 1000, "1e-6")
    result = sf.amplify(memoized, policy, 1000, "1e-6", once=True)
    assert result.once
    assert result.epsilon < Epsilon(1)
    for linked in ([], [2]):
        with pytest.raises(InvalidInput, match="lifetime level"):
            sf.compose_batches([result, result], linked=linked)
    # All reports of a person at the lifetime level, next to a batch of another mechanism.
    batch = sf.amplify(RandomizedResponse(THREE, 1), policy, 1000, "1e-6")
    charged = sf.compose_batches([batch], linked=[2])
    assert charged.epsilon == batch.epsilon + Epsilon(2)


def test_invalid_requests() -> None:
    mechanism, policy = RandomizedResponse(THREE, 1), sf.Uniform(THREE, 1)
    for arguments, message in (
        ((mechanism, policy, 10, 1), "from 0 to below 1"),
        ((mechanism, policy, 10, "x"), "from 0 to below 1"),
        ((mechanism, policy, 10, "1e-999999999"), "from 0 to below 1"),  # 10^999999999 would fill the memory
        ((mechanism, policy, 10, "1/0"), "from 0 to below 1"),
        ((mechanism, policy, 10, "-1e-6"), "from 0 to below 1"),
        ((mechanism, policy, 0, 0.1), "n must"),
        ((policy, mechanism, 10, 0.1), "swapped"),
        ((mechanism, sf.Prior(THREE, ["1/2", "1/4", "1/4"], 2), 10, 0.1), "compare pairs"),
        ((mechanism, sf.Uniform(TWO, 1), 10, 0.1), "over the domain"),
    ):
        with pytest.raises(InvalidInput, match=message):
            sf.amplify(*arguments)
    with pytest.raises(PolicyViolated):
        sf.amplify(mechanism, sf.Uniform(THREE, "1/2"), 10, 0.1)
    with pytest.raises(InvalidInput, match="pairs that the policy protects"):
        sf.amplify(*CASES["one sensitive"], 10, 0.1, pairs=[("b", "a")])
    with pytest.raises(InvalidInput, match="at least one pair"):
        sf.amplify(mechanism, policy, 10, 0.1, pairs=[])
    with pytest.raises(InvalidInput, match="linked must be a list"):
        sf.compose_batches([], linked=4)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at most n = 10"):
        sf.amplify(mechanism, policy, 10, 0.1, minimum_counts=11)


def test_result_is_data() -> None:
    result = sf.amplify(RandomizedResponse(THREE, 2), sf.Uniform(THREE, 2), 1000, "1e-6")
    (row,) = result
    assert result[row.value, row.other] is row
    with pytest.raises(UnknownLabel):
        result["a", "z"]
    assert list(result.to_pandas().columns) == ["value", "other", "pairs", "local", "epsilon", "lower", "crowd"]
    assert result.to_pandas()["pairs"].tolist() == [6]
    assert repr(result).startswith("<Amplification ")
    assert "<table>" in result._repr_html_()
    assert 0 < float(result.lower) < float(result.epsilon) < 2


def test_shown_bounds_are_rounded_to_the_safe_side() -> None:
    pair = dataclasses.replace(
        sf.amplify(RandomizedResponse(TWO, 3), sf.Uniform(TWO, 3), 1, "1e-6", pairs=[("a", "b")])["a", "b"],
        epsilon=Epsilon("2.99832093"),
        lower=Epsilon("2.99837"),
    )
    tiny = Fraction(1, 3 * 10**400)
    result = sf.Amplification(1, tiny, (pair,))
    assert "2.9984" in str(result)
    assert repr(result).startswith("<Amplification 2.9983 ≤ ε ≤ 2.9984 ")
    assert result.delta > 0
    third = sf.compose_batches([dataclasses.replace(result, exact_delta=Fraction(1, 3))])
    assert Fraction(third.delta) >= Fraction(1, 3)
    assert "ε ≤ 2.9984 at δ = 0.333334" in repr(third)


def test_a_policy_without_protected_pairs_states_no_level() -> None:
    result = sf.amplify(RandomizedResponse(THREE, 2), sf.Uniform(THREE, "inf"), 10, 0.1)
    assert not len(result)
    assert "no protected pairs" in repr(result)
    assert "no protected pairs" in str(result)


@pytest.mark.slow
@pytest.mark.parametrize("disjoint", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_minimum_counts_hold_for_all_data_sets_that_have_them(seed: int, disjoint: bool) -> None:
    # Two groups of two values, with disjoint outputs or without; all data sets with the stated counts.
    generator = np.random.default_rng(seed)
    people, delta, domain = 4, Fraction(1, 50), sf.Domain.range(4)
    rows = []
    for x in range(4):
        weights = generator.integers(1, 9, 4).tolist()
        if disjoint:
            weights = [w if (y < 2) == (x < 2) else 0 for y, w in enumerate(weights)]
        row = [w * 2**62 // sum(weights) for w in weights]
        row[row.index(max(row))] += 2**62 - sum(row)
        rows.append(row)
    mechanism = TableMechanism(domain, rows)
    laws = mechanism.channel().rows
    levels = [
        [_level(laws[x], laws[z]) if (x < 2) == (z < 2) and x != z else "inf" for z in range(4)] for x in range(4)
    ]
    policy = sf.Pairwise(domain, [["0" if x == z else levels[x][z] for z in range(4)] for x in range(4)])
    least = {0: 1 + seed % 3, 2: 1}
    for result in sf.amplify(mechanism, policy, people, delta, minimum_counts=least):
        value, other = domain.index(result.value), domain.index(result.other)
        allowed = []
        for crowd in itertools.combinations_with_replacement(range(4), people - 1):
            first = sum(z < 2 for z in (value, *crowd))
            if first >= least[0] and people - first >= least[2]:
                others = [laws[z] for z in crowd]
                allowed.append((histogram_law([laws[value], *others]), histogram_law([laws[other], *others])))
        assert max(divergence(*pair, ratios(result.epsilon)[0]) for pair in allowed) <= delta
        if result.lower is not None and result.lower != ZERO:
            assert max(divergence(*pair, ratios(result.lower)[1]) for pair in allowed) >= delta


def _split_table(p: Fraction, q: Fraction, share: Fraction) -> TableMechanism:
    """Two blocks of two and three values, where the pairs (a, b) and (c, d) have equal blankets.

    The first output of (c, d) is divided, and e prefers one of its parts. So the second block has three outputs.
    """
    rows: list[list[Fraction | int]] = [
        [p, 1 - p, 0, 0, 0],
        [q, 1 - q, 0, 0, 0],
        [0, 0, p * share, p * (1 - share), 1 - p],
        [0, 0, q * share, q * (1 - share), 1 - q],
        [0, 0, p - q * (1 - share), q * (1 - share), 1 - p],
    ]
    return TableMechanism(sf.Domain(list("abcde")), [[int(x * 2**62) for x in row] for row in rows])


@pytest.mark.parametrize("pairs", [["ab", "cd"], ["cd", "ab"]])
def test_a_pair_does_not_inherit_the_bound_for_two_outputs_of_another_group(pairs: list[str]) -> None:
    mechanism = _split_table(Fraction(3, 4), Fraction(1, 4), Fraction(1, 64))
    policy = sf.Blocks(mechanism.domain, [["a", "b"], ["c", "d", "e"]], 6)
    result = sf.amplify(
        mechanism, policy, 4000, "1e-6", pairs=[(pair[0], pair[1]) for pair in pairs], minimum_counts=2000
    )
    assert [row.pairs for row in result] == [1, 1]
    assert float(result["a", "b"].epsilon) < 0.101
    row = result["c", "d"]
    assert row.lower is not None
    assert 0.1149 < float(row.lower) <= float(row.epsilon)


def _random_blocks(seed: int) -> TableMechanism:
    """A table with blocks ab and cde: with equal blankets of ab and cd if the seed is even, arbitrary otherwise."""
    generator = np.random.default_rng(seed)
    if seed % 2 == 0:
        q, p = sorted(generator.choice(np.arange(2, 15), 2, replace=False).tolist())
        return _split_table(Fraction(p, 16), Fraction(q, 16), Fraction(int(generator.integers(1, 16)), 16))
    rows = []
    for outputs in ([0, 1], [0, 1], [2, 3, 4], [2, 3, 4], [2, 3, 4]):
        # Few different weights, so that pairs often have the same levels.
        cuts = sorted(generator.choice([1, 2, 3], len(outputs) - 1, replace=False).tolist())
        weights = dict(zip(outputs, np.diff([0, *cuts, 4]).tolist(), strict=True))
        rows.append([weights.get(y, 0) * 2**60 for y in range(5)])
    return TableMechanism(sf.Domain(list("abcde")), rows)


@pytest.mark.parametrize("minimum", [None, 120, {"a": 120}, {"a": 120, "c": 130}])
@pytest.mark.parametrize("seed", range(6))
def test_levels_of_a_list_of_pairs_are_those_of_each_pair_alone(seed: int, minimum: Any) -> None:
    mechanism = _random_blocks(seed)
    policy = sf.Blocks(mechanism.domain, [["a", "b"], ["c", "d", "e"]], 6)
    pairs = [*itertools.permutations("ab", 2), *itertools.permutations("cde", 2)]
    np.random.default_rng(seed).shuffle(pairs)

    def levels(chosen: list[tuple[str, str]]) -> list[Epsilon]:
        rows = sf.amplify(mechanism, policy, 300, "1e-4", pairs=chosen, minimum_counts=minimum)
        return sorted(itertools.chain.from_iterable([row.epsilon] * row.pairs for row in rows))

    assert levels(pairs) == sorted(itertools.chain.from_iterable(levels([pair]) for pair in pairs))
