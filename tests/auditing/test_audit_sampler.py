"""The black-box audit: honest samplers are left in peace, faulty ones are found with the right event named."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import beta, binom

import sfumato as sf
from sfumato.auditing.black_box import audit_sampler, source
from sfumato.auditing.black_box.limits import chernoff_lower, clopper_pearson_lower, clopper_pearson_upper
from sfumato.auditing.black_box.outputs import Outputs, read_outputs
from sfumato.auditing.black_box.result import SamplerAudit
from sfumato.errors import InvalidInput, PolicyViolated, Undecided
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import BitDraws
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

DOMAIN = sf.Domain.range(16)
POLICY = sf.Uniform(DOMAIN, 1)

Bits = npt.NDArray[np.bool_]
Sampler = Callable[[Any], Any]
BatchSampler = Callable[[Any, int], Any]


# -- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-3, 1e-9, 1e-14])
@pytest.mark.parametrize("trials", [1, 10, 500, 50_000, 5_000_000])
def test_clopper_pearson_limits_are_those_of_scipy_rounded_outward(trials: int, alpha: float) -> None:
    counts = {0, 1, 2, 10, trials // 1000, trials // 3, trials // 2, trials - 3, trials - 1, trials}
    for count in sorted(count for count in counts if 0 <= count <= trials):
        lower = float(clopper_pearson_lower(count, trials, Fraction(alpha)))
        upper = float(clopper_pearson_upper(count, trials, Fraction(alpha)))
        exact_lower = beta.ppf(alpha, count, trials - count + 1) if count else 0.0
        exact_upper = beta.isf(alpha, count + 1, trials - count) if count < trials else 1.0
        assert exact_lower * (1 - 1e-5) <= lower <= exact_lower * (1 + 1e-10)
        assert exact_upper * (1 - 1e-10) <= upper <= exact_upper * (1 + 1e-5)


@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 10**9)])
def test_the_tail_at_a_limit_is_within_alpha_and_hardly_less_exactly(alpha: Fraction) -> None:
    def tail(p: Fraction) -> Fraction:
        return sum((math.comb(12, k) * p**k * (1 - p) ** (12 - k) for k in range(count, 13)), Fraction(0))

    for count in range(1, 13):
        limit = clopper_pearson_lower(count, 12, alpha)
        assert tail(limit) <= alpha < tail(limit * Fraction(100_001, 100_000))


def test_the_chernoff_limits_that_rank_are_no_tighter_than_the_limits_that_decide() -> None:
    counts = np.arange(0, 2001, 40)
    quick = chernoff_lower(counts, 2000, 1e-6)
    exact = [float(clopper_pearson_lower(int(count), 2000, Fraction(1, 10**6))) for count in counts]
    assert (quick <= np.array(exact) * (1 + 1e-4)).all()
    assert (quick[1:] > 0.5 * np.array(exact)[1:]).all()


# -- honest samplers ---------------------------------------------------------------------------------------


def ours(mechanism: Mechanism, seed: int) -> Sampler:
    """The scalar sampler of a mechanism, from seeded bits; what is audited is the serialised report."""
    bits = random.Random(seed).getrandbits

    def sampler(value: object) -> bytes:
        x = mechanism.domain.index(value)
        draws = BitDraws(bits, mechanism.layout_of(x), bits(mechanism.layout.frame_bits))
        return mechanism.report_format.encode(mechanism.sample(x, draws))

    return sampler


KINDS: list[Any] = [RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse, CyclicDesign]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_our_samplers_are_left_in_peace_and_the_bound_is_not_idle(kind: Any) -> None:
    audit = audit_sampler(ours(kind(DOMAIN, 1), seed=1), POLICY, trials=6000)
    assert not audit.violated
    assert 0.4 < audit.epsilon_lower < 1
    assert audit.raise_if_violated() is audit
    assert "does not prove that the sampler obeys the policy" in str(audit)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_epsilon_twice_too_large_is_found_in_each_of_them(kind: Any) -> None:
    audit = audit_sampler(ours(kind(DOMAIN, 2), seed=2), POLICY, trials=4000)
    assert audit.violated
    assert 1 < audit.epsilon_lower < 2


def warner(keep: float, values: int, seed: int) -> BatchSampler:
    """The truth with this probability, else one of the others."""
    numbers = np.random.default_rng(seed)

    def sampler(value: int, n: int) -> npt.NDArray[np.int64]:
        other = (value + numbers.integers(1, values, n)) % values
        return np.where(numbers.random(n) < keep, value, other)

    return sampler


@pytest.mark.slow
def test_an_exactly_tight_sampler_is_accused_no_more_often_than_alpha_allows(is_soak: bool) -> None:
    """100 repetitions notice a rate of 25% with probability 0.93; 200 notice one of 20% with probability 0.98."""
    repetitions = 200 if is_soak else 100
    policy = sf.Uniform(sf.Domain.range(3), "ln 4")
    rejections = sum(
        audit_sampler(warner(2 / 3, 3, seed), policy, trials=1000, confidence=0.95, batch=True).violated
        for seed in range(repetitions)
    )
    assert rejections <= binom.isf(1e-6, repetitions, 0.05)


@pytest.mark.slow
def test_a_law_five_percent_wrong_is_found() -> None:
    policy = sf.Uniform(sf.Domain.range(2), "ln 3")
    for seed in range(10):
        assert audit_sampler(warner(0.75 * 1.05, 2, seed), policy, batch=True).violated
        assert not audit_sampler(warner(0.75, 2, seed), policy, batch=True).violated


# -- faulty samplers ---------------------------------------------------------------------------------------


def found(sampler: Any, policy: sf.Policy = POLICY, trials: int = 20_000, **keywords: Any) -> SamplerAudit:
    """The violation that an audit finds, stated by a plain event where there is one."""
    audit = audit_sampler(sampler, policy, trials, **keywords)
    assert audit.violated, str(audit)
    with pytest.raises(PolicyViolated, match=f"epsilon is at least {math.floor(audit.epsilon_lower)}"):
        audit.raise_if_violated()
    plain = audit.plain or audit
    assert plain.violated
    assert plain.epsilon_lower <= audit.epsilon_lower
    return plain


def true_value_first(size: int, members: int, seed: int) -> Sampler:
    """Subset selection at epsilon 1, its set in the order in which it was drawn up."""
    numbers = random.Random(seed)
    keep = members * math.e / (members * math.e + size - members)

    def sampler(value: int) -> list[int]:
        others = [other for other in range(size) if other != value]
        if numbers.random() < keep:
            return [value, *numbers.sample(others, members - 1)]
        return numbers.sample(others, members)

    return sampler


@pytest.mark.slow
def test_the_order_of_a_subset_gives_the_value_away() -> None:
    policy = sf.Uniform(sf.Domain.range(64), 1)
    audit = found(true_value_first(64, 17, seed=3), policy, trials=10_000)
    assert audit.event == f"the first item is {audit.pair[0]}"
    assert audit.epsilon_lower > 3


@pytest.mark.slow
def test_in_ascending_order_the_same_subset_does_not() -> None:
    sampler = true_value_first(64, 17, seed=3)
    audit = audit_sampler(lambda value: sorted(sampler(value)), sf.Uniform(sf.Domain.range(64), 1), trials=10_000)
    assert not audit.violated


def test_the_length_of_a_report_gives_the_value_away() -> None:
    numbers = random.Random(4)

    def sampler(value: int) -> bytes:
        return numbers.randbytes(9 if numbers.random() < (0.6 if value == 0 else 0.1) else 8)

    audit = found(sampler)
    assert audit.pair[0] == 0
    assert audit.event in {"the output has length 9", "the output does not have length 8"}


def unary(epsilon: float, seed: int, fault: Callable[[Bits, int], None] | None = None) -> BatchSampler:
    """Symmetric unary encoding, one array of bits a report; a fault changes which bits are flipped."""
    numbers = np.random.default_rng(seed)

    def sampler(value: int, n: int) -> Bits:
        flip = numbers.random((n, 16)) < 1 / (1 + math.exp(epsilon / 2))
        if fault is not None:
            fault(flip, value)
        return np.asarray(flip ^ (np.arange(16) == value))

    return sampler


def never_cleared(flip: Bits, value: int) -> None:
    flip[:, value] = False


def last_left_alone(flip: Bits, value: int) -> None:  # noqa: ARG001
    flip[:, 15] = False


def packed(sampler: BatchSampler) -> BatchSampler:
    return lambda value, n: [bytes(row) for row in np.packbits(sampler(value, n), axis=1, bitorder="little")]


def test_a_true_bit_that_is_never_cleared_is_found() -> None:
    audit = found(unary(1, 5, never_cleared), batch=True)
    assert audit.counts[1] == 0  # infinite, as far as any number of trials can show
    assert audit.event in {"the first item is 0", f"item {audit.pair[1]} (counted from 0) is 0"}
    audit = found(packed(unary(1, 5, never_cleared)), batch=True)
    byte, bit = divmod(int(str(audit.pair[1])), 8)
    assert audit.event == f"bit {bit} of byte {byte} is 0"
    assert audit.counts[1] == 0


def test_a_last_bit_left_alone_is_found() -> None:
    audit = found(unary(1, 6, last_left_alone), batch=True)
    assert (audit.event, audit.pair[1], audit.counts) == ("item 15 (counted from 0) is 0", 15, (10_000, 0))
    audit = found(packed(unary(1, 6, last_left_alone)), batch=True)
    assert (audit.event, audit.pair[1], audit.counts) == ("bit 7 of byte 1 is 0", 15, (10_000, 0))


def test_a_leak_that_only_a_combination_shows_is_found_by_a_learned_score() -> None:
    numbers = np.random.default_rng(7)

    def sampler(value: int, n: int) -> Bits:
        """Twenty bits, each at epsilon 0.3 and none of them telling; together at epsilon 6."""
        return np.asarray((numbers.random((n, 20)) < 1 / (1 + math.exp(-0.3))) ^ (value % 2 == 1))

    audit = audit_sampler(sampler, POLICY, 20_000, batch=True)
    assert audit.violated
    assert "the score learned from items" in audit.event
    assert audit.epsilon_lower > 1.5


def test_an_item_that_occurs_anywhere_is_found() -> None:
    numbers = np.random.default_rng(8)

    def sampler(value: int, n: int) -> npt.NDArray[np.int64]:
        report = numbers.integers(100, 200, (n, 12))
        report[np.arange(n), numbers.integers(0, 12, n)] = np.where(numbers.random(n) < 0.5, value, 150)
        return report

    audit = found(sampler, trials=4000, batch=True)
    assert audit.event == f"{audit.pair[0]} occurs in the output"
    assert audit.counts[1] == 0


def test_a_beginning_is_found() -> None:
    numbers = random.Random(9)

    def sampler(value: int) -> str:
        """Two characters whose exclusive or tells the value; each alone is uniform, and so is the rest."""
        first = numbers.randrange(16)
        told = value if numbers.random() < 0.8 else numbers.randrange(16)
        return f"{first:x}{first ^ told:x}{numbers.getrandbits(64):016x}"

    audit = found(sampler, values=[0, 1], trials=40_000)
    assert audit.event.startswith("the output begins with '")


def test_a_rare_leak_is_found_though_few_outputs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(10)

    def sampler(value: int, n: int) -> npt.NDArray[np.int64]:
        return np.where(numbers.random(n) < 0.02, value, numbers.integers(1000, 1100, n))

    # Only 1000 outputs are kept to look at; the events found in them are followed through the rest of the half.
    monkeypatch.setattr(source, "_LOOK_ITEMS", 8000)
    monkeypatch.setattr(source, "_BLOCK_ITEMS", 80_000)
    audit = found(sampler, trials=40_000, batch=True)
    assert audit.event == f"the output is {audit.pair[0]}"
    assert audit.tested == 20_000


# -- policies ----------------------------------------------------------------------------------------------


def test_only_the_direction_that_a_policy_forbids_is_tested() -> None:
    domain = sf.Domain(["none", "hiv"])
    policy = sf.HighLow(domain, ["hiv"], 1)
    numbers = random.Random(11)

    def mangat(value: str) -> str:
        """'none' may be told; 'hiv' hides among it."""
        return "hiv" if value == "hiv" or numbers.random() < 0.4 else "none"

    assert not audit_sampler(mangat, policy, 20_000).violated  # 'none' is never said for 'hiv', and may be
    audit = found(mangat, sf.Uniform(domain, 1))
    assert (audit.pair, audit.counts[1]) == (("none", "hiv"), 0)
    audit = found(lambda value: value, policy)
    assert audit.pair == ("hiv", "none")


def test_rules_between_the_compared_values_are_taken_together() -> None:
    domain = sf.Domain(["a", "b", "c"])
    chain = sf.Pairwise(domain, {("a", "b"): "ln 2", ("b", "c"): "ln 2"})
    numbers = random.Random(12)
    laws = {"a": 0.8, "b": 0.3, "c": 0.05}  # both rules are broken a little; what they imply for a and c, most
    audit = found(lambda value: numbers.random() < laws[value], chain)
    assert (audit.pair, audit.epsilon) == (("a", "c"), sf.Epsilon("ln 4"))


def test_a_prior_policy_is_held_to_twice_its_epsilon_between_values() -> None:
    domain = sf.Domain.range(2)
    policy = sf.Prior(domain, ["1/2", "1/2"], "ln 2")
    assert not audit_sampler(warner(0.8, 2, 13), policy, batch=True).violated
    audit = found(warner(0.85, 2, 13), policy, 100_000, batch=True)
    assert audit.epsilon == sf.Epsilon("ln 4")


def test_a_secret_is_compared_across_its_values_only() -> None:
    domain = sf.Domain.product(S=["yes", "no"], U=["x", "y"])
    policy = sf.Secret(domain, "S", 1, sf.Anything())
    numbers = random.Random(14)
    told = {("yes", "x"): 0.5, ("yes", "y"): 0.2, ("no", "x"): 0.5, ("no", "y"): 0.2}  # e^1 lies above 0.5/0.2
    assert not audit_sampler(lambda value: numbers.random() < told[value], policy, 20_000).violated
    told = {("yes", "x"): 0.3, ("yes", "y"): 0.01, ("no", "x"): 0.15, ("no", "y"): 0.15}
    assert found(lambda value: numbers.random() < told[value], policy).pair in [
        (("no", "x"), ("yes", "y")),
        (("no", "y"), ("yes", "y")),
    ]  # not "yes" against "yes", though that ratio is the greatest
    with pytest.raises(Undecided, match="mixtures of values"):
        audit_sampler(str, sf.Secret(domain, "S", 1, sf.Known([["1/4"] * 2] * 2)))


def test_what_asks_nothing_cannot_be_broken() -> None:
    with pytest.raises(Undecided, match="constrains no two values"):
        audit_sampler(str, sf.Uniform(DOMAIN, "inf"))
    with pytest.raises(InvalidInput, match="include two values that the policy constrains"):
        audit_sampler(str, sf.HighLow(DOMAIN, [3], 1), values=[1, 2])


# -- what is called ----------------------------------------------------------------------------------------


def test_every_value_gets_its_trials_and_progress_tells() -> None:
    calls: dict[int, int] = {}
    told: list[tuple[int, int | None]] = []

    def sampler(value: int, n: int) -> list[bool]:
        calls[value] = calls.get(value, 0) + n
        return [True] * n

    audit = audit_sampler(sampler, POLICY, 3001, batch=True, progress=lambda at: told.append((at.done, at.total)))
    assert calls == dict.fromkeys([0, 1, 8, 15], 3001)
    assert told[-1] == (4 * 3001, 4 * 3001)
    assert told == sorted(told)
    assert (audit.trials, audit.tested, audit.epsilon_lower) == (3001, 1501, 0.0)


def test_the_pair_at_the_least_level_is_among_the_compared() -> None:
    seen: set[int] = set()

    def sampler(value: int) -> int:
        seen.add(value)
        return 0

    audit_sampler(sampler, sf.Pairwise(DOMAIN, {(5, 11): 1, (0, 1): 2}), 1000)
    assert seen == {0, 1, 5, 11}


@pytest.mark.slow
def test_one_by_one_and_in_batches_are_the_same_audit() -> None:
    def one_by_one(seed: int) -> Sampler:
        numbers = random.Random(seed)
        return lambda value: [value if numbers.random() < 0.3 else numbers.randrange(16) for _ in range(2)]

    single = one_by_one(15)
    batched = one_by_one(15)
    assert audit_sampler(single, POLICY, 3000) == audit_sampler(
        lambda value, n: np.array([batched(value) for _ in range(n)]), POLICY, 3000, batch=True
    )


def test_a_result_is_a_json_document() -> None:
    domain = sf.Domain.product(S=["a", "b"], U=[1, 2])
    audit = audit_sampler(lambda value: value[0], sf.Uniform(domain, "ln 3"), 2000)
    document = json.loads(audit.to_json())
    assert document["violated"] is True
    assert (document["level"], document["plain"]) == ("ln 3", None)
    assert document["pair"] == [list(label) for label in audit.pair]  # type: ignore[call-overload]


# -- outputs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (b"\x00\xff", "b'\\x00\\xff'"),
        ("né", "'né'"),
        (-17, "-17"),
        (np.int32(5), "5"),
        (True, "True"),
        ([3, 1], "[3, 1]"),
        ((), "[]"),
        (np.array([True, False]), "[1, 0]"),
    ],
)
def test_every_kind_of_output_is_read_and_named(output: Any, text: str) -> None:
    assert read_outputs([output, output], 2).text(1) == text


def test_a_shorter_output_is_not_one_that_ends_in_zeros() -> None:
    outputs = read_outputs([b"\x01", b"\x01\x00", b"\x01", b""], 4)
    prints = outputs.fingerprints()
    assert prints[0] == prints[2]
    assert len(set(prints.tolist())) == 3
    wider = Outputs.joined([outputs, read_outputs([b"\x01" * 9], 1)])
    assert (wider.fingerprints()[:4] == prints).all()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, "the sampler must return bytes, str, int, bool, .* got <class 'NoneType'>"),
        (0.5, "got <class 'float'>"),
        ({1, 2}, "got <class 'set'>"),
        ([1, 0.5], "every item of an output must be an int or a bool; got <class 'float'>"),
        (np.array([0.5]), "must contain ints or bools; got dtype"),
        (2**64, "must fit in 64 bits"),
        ([2**64], "must fit in 64 bits"),
    ],
)
def test_an_output_of_another_kind_is_refused_by_its_type(output: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        audit_sampler(lambda value: output, POLICY, 1000)  # noqa: ARG005


def test_outputs_of_two_kinds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="have the same type; got int and, for 1, str"):
        audit_sampler(lambda value: str(value) if value else 0, POLICY, 1000)
    with pytest.raises(InvalidInput, match="have the same type; got bytes and str"):
        audit_sampler(lambda value, n: [b"", ""] * (n // 2), POLICY, 1000, batch=True)  # noqa: ARG005


def test_a_batch_of_another_size_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must have 256 outputs; got 255"):
        audit_sampler(lambda value, n: [value] * (n - 1), POLICY, 1000, batch=True)
    with pytest.raises(InvalidInput, match="must be a list or an array; got <class 'int'>"):
        audit_sampler(lambda value, n: value, POLICY, 1000, batch=True)  # noqa: ARG005


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"trials": 999}, "trials must be an int of at least 1000; got 999"),
        ({"trials": 1e5}, "trials must be an int"),
        ({"trials": True}, "trials must be an int"),
        ({"confidence": 0}, "confidence must be strictly between 0 and 1; got 0"),
        ({"confidence": 1}, "confidence must be strictly between"),
        ({"confidence": "often"}, "confidence must be strictly between"),
        ({"confidence": float("nan")}, "confidence must be strictly between"),
        ({"values": [1, 99]}, "values must be values of the policy's domain; got 99"),
        ({"values": [1, 1]}, "values must be at least two different values"),
    ],
)
def test_what_makes_no_sense_is_refused(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        audit_sampler(lambda value: value, POLICY, **keywords)
