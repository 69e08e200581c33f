"""The ledger: totals are exact and true, what exceeds the budget draws nothing, what was answered stays answered."""

from __future__ import annotations

import copy
import errno
import fcntl
import itertools
import json
import os
import pickle
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core.locks import locked
from sfumato.device.ledger import Ledger
from sfumato.errors import (
    BudgetExceeded,
    CannotCompose,
    InvalidInput,
    PolicyViolated,
    Undecided,
    UnknownSpec,
    ValueChanged,
)
from sfumato.mechanisms import repeating
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.secret.randomized_response import SecretRandomizedResponse
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

FRUIT = sf.Domain(["apple", "pear", "fig"])
COIN = sf.Domain(["heads", "tails"])
PRODUCT = sf.Domain.product(S=[0, 1], U=[0, 1])
EVEN = [["1/4", "1/4"], ["1/4", "1/4"]]
KNOWN = sf.Known(EVEN)


class NoStream:
    """A stream of which nothing may be drawn."""

    def reserve(self, chunks: int) -> tuple[bytes, int]:
        raise AssertionError(f"{chunks} chunks were drawn")


NOTHING = NoStream()


def response(epsilon: Any, domain: sf.Domain = FRUIT) -> RandomizedResponse:
    return RandomizedResponse(domain, epsilon)


def charged(policies: Sequence[sf.Policy], mechanism: Callable[[sf.Policy], Mechanism]) -> Ledger:
    ledger = Ledger()
    for number, policy in enumerate(policies):
        ledger.charge(f"collection {number}", mechanism(policy), policy)
    return ledger


# -- totals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policies", "together"),
    [
        ([sf.Uniform(FRUIT, 0.1)] * 3, sf.Uniform(FRUIT, "0.3")),
        ([sf.Uniform(FRUIT, "ln 2"), sf.Uniform(FRUIT, 1)], sf.Uniform(FRUIT, "1+ln 2")),
        ([sf.HighLow(FRUIT, ["fig"], 1)] * 2, sf.HighLow(FRUIT, ["fig"], 2)),
        (
            [sf.Uniform(FRUIT, 1), sf.Pairwise(FRUIT, {("apple", "pear"): 2, ("pear", "apple"): 3})],
            sf.Pairwise(FRUIT, {("apple", "pear"): 3, ("pear", "apple"): 4}),
        ),
        ([sf.Metric(sf.Domain.range(4), "absolute", "1/2")] * 3, sf.Metric(sf.Domain.range(4), "absolute", "3/2")),
        ([sf.Prior(COIN, ["1/2", "1/2"], "ln 2")] * 2, sf.Prior(COIN, ["1/2", "1/2"], "ln 8")),
    ],
    ids=["uniform", "logarithms", "high-low", "mixed pairs", "metric", "prior"],
)
def test_what_is_spent_is_the_exact_composition(policies: list[sf.Policy], together: sf.Policy) -> None:
    ledger = charged(policies, lambda policy: sf.design(policy, mechanism="rr"))
    spent = ledger.spent(policies[0].domain)
    assert spent is not None
    if type(spent) is type(together):
        assert spent == together
    assert sf.implies(spent, together)
    assert sf.implies(together, spent)


def test_nothing_was_spent_on_what_was_never_asked() -> None:
    ledger = charged([sf.Uniform(FRUIT, 1)], lambda _: response(1))
    assert ledger.spent(COIN) is None
    assert Ledger().total == sf.Epsilon(0)
    assert repr(ledger) == "Ledger(1 release about 1 question)"


@pytest.mark.parametrize("levels", list(itertools.permutations([1, 2, 5])))
def test_priors_take_the_sum_and_all_but_the_greatest_once_more_in_any_order(levels: tuple[int, ...]) -> None:
    prior = ["1/4", "1/4", "1/2"]
    ledger = charged([sf.Prior(FRUIT, prior, e) for e in levels], lambda policy: sf.design(policy, mechanism="rr"))
    assert ledger.spent(FRUIT) == sf.Prior(FRUIT, prior, 8 + 3)


@pytest.mark.parametrize(
    ("policy", "build"),
    [
        (sf.Uniform(FRUIT, 1), lambda d: SubsetSelection(d, 1)),
        (sf.Prior(FRUIT, ["1/2", "1/3", "1/6"], 1), lambda d: response(1, d)),
        (
            sf.HighLow(FRUIT, ["fig"], 1),
            lambda d: TableMechanism(d, [[2**61, 0, 2**61], [0, 2**61, 2**61], [0, 0, 2**62]]),
        ),
        (sf.Secret(PRODUCT, "S", 1, sf.Known(EVEN)), lambda d: response(1, d)),
    ],
    ids=lambda value: value.kind if isinstance(value, sf.Policy) else "",
)
def test_the_joint_law_of_two_releases_obeys_what_the_ledger_says(
    policy: sf.Policy, build: Callable[[sf.Domain], Mechanism]
) -> None:
    """Every pair of outputs is read from the mechanism's exact law."""
    mechanism = build(policy.domain)
    ledger = charged([policy] * 2, lambda _: mechanism)
    spent = ledger.spent(policy.domain)
    assert spent is not None
    values = range(len(policy.domain))
    for first, second in itertools.product(list(mechanism.reports()), repeat=2):
        assert spent.allows([mechanism.probability(first, x) * mechanism.probability(second, x) for x in values])


def test_questions_are_counted_apart_and_their_worst_cases_add_up() -> None:
    ledger = Ledger()
    ledger.charge("a", response(1), sf.Uniform(FRUIT, 1))
    ledger.charge("b", response("ln 2", COIN), sf.HighLow(COIN, ["tails"], "ln 2"))
    ledger.charge("c", response("1/2"), sf.Uniform(FRUIT, "1/2"))
    assert ledger.spent(FRUIT) == sf.Uniform(FRUIT, "3/2")
    assert ledger.spent(COIN) == sf.HighLow(COIN, ["tails"], "ln 2")
    assert ledger.total == sf.Epsilon("3/2+ln 2")  # the mechanism keeps ln 2 for every pair, more than its policy asks


def test_the_total_is_infinite_where_a_value_may_show() -> None:
    ledger = Ledger()
    ledger.charge("a", response(1), sf.Uniform(FRUIT, 1))
    ledger.charge("b", revealing(COIN), sf.Pairwise(COIN, {}))
    assert ledger.total.is_infinite


def test_the_total_knows_when_two_worst_cases_never_meet() -> None:
    """Levels 3 and 1 in one direction, 1 and 3 in the other: no pair has more than 4, though the worst sum to 6."""
    policies = [sf.Pairwise(COIN, [[0, 3], [1, 0]]), sf.Pairwise(COIN, [[0, 1], [3, 0]])]
    ledger = charged(policies, lambda _: TableMechanism.from_matrix(COIN, [[0.6, 0.4], [0.4, 0.6]]))
    assert ledger.total == sf.Epsilon(4)


# -- budgets -----------------------------------------------------------------------------------------------


def test_a_budget_is_spent_to_the_last_bit_and_not_beyond() -> None:
    """0.1 + 0.1 + 0.1 > 0.3 in doubles; here it is equal."""
    ledger = Ledger(sf.Uniform(FRUIT, 0.3))
    policy = sf.Uniform(FRUIT, 0.1)
    for number in range(3):
        assert ledger.allows(f"{number}", response(0.1), policy)
        ledger.charge(f"{number}", response(0.1), policy)
    assert ledger.remaining(FRUIT) == sf.Epsilon(0)
    tiny = "1/1000000000000000000000000000000"
    assert not ledger.allows("more", response(tiny), sf.Uniform(FRUIT, tiny))
    with pytest.raises(
        BudgetExceeded, match=r"'more': .*a uniform policy at epsilon 0.4, which exceeds the budget, a uni"
    ):
        ledger.charge("more", response(0.1), policy)
    assert len(ledger.releases) == 3


def test_what_exceeds_the_budget_draws_nothing_and_changes_nothing() -> None:
    ledger = Ledger(sf.HighLow(FRUIT, ["fig"], "ln 9"))
    policy = sf.HighLow(FRUIT, ["fig"], "ln 3")
    for number in range(2):
        ledger.answer(f"{number}", response("ln 3"), policy, "fig", stream=sf.InsecureSeeded(number))
    before = ledger.to_json()
    with pytest.raises(BudgetExceeded):
        ledger.answer("2", response("ln 3"), policy, "fig", stream=NOTHING)
    with pytest.raises(BudgetExceeded):
        ledger.answer("0", response("ln 3"), policy, "pear", allow_change=True, stream=NOTHING)
    assert ledger.to_json() == before


@pytest.mark.parametrize(
    "budget",
    [
        sf.Uniform(FRUIT, 3),
        sf.HighLow(FRUIT, ["fig"], 2),
        sf.Blocks(FRUIT, ["round", "round", "odd"], ["ln 7", 1], across=5),
        sf.Pairwise(FRUIT, {("apple", "pear"): 2, ("fig", "pear"): "5/2"}),
        sf.Metric(FRUIT, lambda a, b: abs(len(a) - len(b)), "9/4"),
    ],
    ids=lambda budget: budget.kind,
)
def test_what_remains_is_allowed_and_more_is_not(budget: sf.Policy) -> None:
    ledger = Ledger(budget)
    ledger.charge("first", response("2/3"), sf.Uniform(FRUIT, "2/3"))
    ledger.charge("second", response("1/10"), sf.Uniform(FRUIT, "1/10"))
    left = ledger.remaining(FRUIT)
    assert left is not None
    more = left + sf.Epsilon("1/1000000000000")
    assert ledger.allows("all", response(left), sf.Uniform(FRUIT, left))
    assert not ledger.allows("more", response(more), sf.Uniform(FRUIT, more))
    ledger.charge("all", response(left), sf.Uniform(FRUIT, left))
    assert ledger.remaining(FRUIT) == sf.Epsilon(0)


def test_what_remains_is_counted_in_the_way_that_leaves_most() -> None:
    """The policy was stated at 1, but its mechanism keeps 1/2."""
    ledger = Ledger(sf.HighLow(FRUIT, ["fig"], 2))
    ledger.charge("a", response("1/2"), sf.HighLow(FRUIT, ["fig"], 1))
    assert ledger.remaining(FRUIT) == sf.Epsilon("3/2")
    ledger.charge("b", response("3/2"), sf.Uniform(FRUIT, "3/2"))
    assert ledger.spent(FRUIT) == sf.Uniform(FRUIT, 2)


def test_nothing_has_to_be_told_apart_where_there_is_but_one_value() -> None:
    one = sf.Domain(["only"])
    assert Ledger(sf.Uniform(one, 1)).remaining(one) is None


def test_what_remains_without_a_limit_and_where_it_is_no_level() -> None:
    assert Ledger().remaining(FRUIT) is None
    assert Ledger(sf.Pairwise(FRUIT, {})).remaining(FRUIT) is None
    assert Ledger(sf.Uniform(FRUIT, 1)).remaining(COIN) == sf.Epsilon(0)
    assert Ledger(sf.Secret(PRODUCT, "S", 2, sf.Anything())).remaining(PRODUCT) == sf.Epsilon(2)
    with pytest.raises(Undecided, match=r"Call allows\(\)"):
        Ledger(sf.Prior(COIN, ["1/2", "1/2"], 1)).remaining(COIN)


def test_a_budget_speaks_of_its_own_question_and_refuses_others() -> None:
    ledger = Ledger(sf.Uniform(FRUIT, 1))
    with pytest.raises(BudgetExceeded, match="the budget does not cover this question"):
        ledger.answer("coins", response("0.01", COIN), sf.Uniform(COIN, "0.01"), "heads", stream=NOTHING)
    both = Ledger([sf.Uniform(FRUIT, 1), sf.Uniform(COIN, 2)])
    both.charge("coins", response(2, COIN), sf.Uniform(COIN, 2))
    assert both.remaining(COIN) == sf.Epsilon(0)
    assert both.remaining(FRUIT) == sf.Epsilon(1)
    assert both.budget == (sf.Uniform(FRUIT, 1), sf.Uniform(COIN, 2))


def test_a_release_is_counted_in_whichever_true_way_the_budget_allows() -> None:
    """Two classical releases at 1 keep Uniform(2), which implies Prior(2); as priors they would compose to 3."""
    prior = ["1/2", "1/3", "1/6"]
    ledger = Ledger(sf.Prior(FRUIT, prior, 2))
    for name in ("a", "b"):
        ledger.charge(name, response(1), sf.Prior(FRUIT, prior, 1))
    assert ledger.spent(FRUIT) == sf.Uniform(FRUIT, 2)
    assert not ledger.allows("c", response("1/2"), sf.Prior(FRUIT, prior, "1/2"))


# -- what does not compose ---------------------------------------------------------------------------------


def revealing(domain: sf.Domain, part: Callable[[int], int] = lambda x: x) -> TableMechanism:
    outputs = 1 + max(part(x) for x in range(len(domain)))
    return TableMechanism(domain, [[2**62 * (part(x) == y) for y in range(outputs)] for x in range(len(domain))])


def test_u_and_then_s_xor_u_is_refused_by_name() -> None:
    """Each of the two is harmless at epsilon 0 under the known distribution; together they reveal S."""
    policy = sf.Secret(PRODUCT, "S", 0, sf.Known(EVEN))
    u, s_xor_u = revealing(PRODUCT, lambda x: x % 2), revealing(PRODUCT, lambda x: x % 2 ^ x // 2)
    ledger = Ledger()
    ledger.charge("tastes", u, policy)
    assert ledger.spent(PRODUCT) == policy
    assert ledger.total.is_infinite
    assert not ledger.allows("habits", s_xor_u, policy)
    with pytest.raises(CannotCompose, match=r"total privacy loss of collections 'tastes', 'habits':"):
        ledger.answer("habits", s_xor_u, policy, (1, 0), stream=NOTHING)
    assert len(ledger.releases) == 1


def test_a_known_distribution_is_charged_against_anything_where_the_mechanism_keeps_an_epsilon() -> None:
    policy = sf.Secret(PRODUCT, "S", 1, sf.Known(EVEN))
    ledger = Ledger(sf.Secret(PRODUCT, "S", 2, sf.Known(EVEN)))
    ledger.charge("a", response("1/2", PRODUCT), policy)
    assert ledger.spent(PRODUCT) == policy
    ledger.charge("b", HadamardResponse(PRODUCT, 1), policy)
    assert ledger.spent(PRODUCT) == sf.Uniform(PRODUCT, "3/2")
    assert not ledger.allows("c", response(1, PRODUCT), policy)
    assert ledger.allows("c", response("1/2", PRODUCT), policy)


@pytest.mark.parametrize("distributions", [sf.Known(EVEN), sf.ChiSquare([[10, 20], [30, 40]])])
@pytest.mark.parametrize("epsilon", [1, "ln 3", "0.3"])
def test_a_secret_is_charged_at_what_an_audit_proves_against_anything(distributions: Any, epsilon: Any) -> None:
    """Secret randomized response keeps no classical epsilon of its own, but hides the secret from anybody."""
    once = sf.Epsilon(epsilon)
    policy = sf.Secret(PRODUCT, "S", epsilon, distributions)
    mechanism = SecretRandomizedResponse(PRODUCT, "S", epsilon)
    assert sf.audit(mechanism, sf.Secret(PRODUCT, "S", epsilon, sf.Anything())).holds
    ledger = Ledger(sf.Secret(PRODUCT, "S", once * 2, distributions))
    ledger.charge("a", mechanism, policy)
    assert ledger.spent(PRODUCT) == policy
    assert ledger.total == once * 2  # two values of one secret may differ by that
    ledger.charge("b", mechanism, policy)
    assert ledger.spent(PRODUCT) == sf.Secret(PRODUCT, "S", once * 2, sf.Anything())
    assert ledger.total == once * 4
    assert not ledger.allows("c", mechanism, policy)
    assert not ledger.allows("c", response("0.01", PRODUCT), policy)
    restored = Ledger.from_json(ledger.to_json())
    assert restored.releases == ledger.releases
    assert restored.spent(PRODUCT) == ledger.spent(PRODUCT)


def test_what_is_charged_against_anything_is_the_mechanisms_level_not_that_of_the_policy() -> None:
    known = sf.Known([["0.4", "0.1"], ["0.1", "0.4"]])
    for epsilon, expected in ((2, "1.098612289"), ("ln 3", "ln 3")):
        ledger = Ledger()
        ledger.charge("a", SecretRandomizedResponse(PRODUCT, "S", "ln 3"), sf.Secret(PRODUCT, "S", epsilon, known))
        assert ledger.releases[0].hiding == sf.Epsilon(expected)
    # Randomized response on U alone, at ln 3: nearly harmless to S under the known distribution, ln 3 against anything.
    on_u = TableMechanism.from_matrix(PRODUCT, [["3/4", "1/4"], ["1/4", "3/4"]] * 2)
    policy = sf.Secret(PRODUCT, "S", "0.7", known)
    assert sf.audit(on_u, policy).holds
    assert not sf.audit(on_u, sf.Secret(PRODUCT, "S", "1.098612288", sf.Anything())).holds
    ledger = Ledger()
    for name in ("a", "b"):
        ledger.charge(name, on_u, policy)
    assert ledger.spent(PRODUCT) == sf.Secret(PRODUCT, "S", "2.197224578", sf.Anything())
    assert "hiding" not in json.loads(charged([sf.Uniform(FRUIT, 1)], lambda _: response(1)).to_json())["releases"][0]


def test_a_level_against_anything_belongs_to_a_secret() -> None:
    document = json.loads(charged([sf.Uniform(FRUIT, 1)], lambda _: response(1)).to_json())
    document["releases"][0]["hiding"] = "1"
    with pytest.raises(InvalidInput, match="hiding must be absent unless the policy is a secret"):
        Ledger.from_json(json.dumps(document))


def without_level(ledger: Ledger) -> Ledger:
    """The ledger as a version wrote it that recorded no level against anything."""
    document = json.loads(ledger.to_json())
    for release in document["releases"]:
        release.pop("hiding", None)
    return Ledger.from_json(json.dumps(document))


def test_a_level_is_proved_only_by_the_mechanism_of_the_release() -> None:
    policy = sf.Secret(PRODUCT, "S", 1, sf.Known(EVEN))
    mechanism = SecretRandomizedResponse(PRODUCT, "S", 1)
    ledger = Ledger()
    ledger.charge("a", mechanism, policy)
    ledger = without_level(ledger)
    for collection, other in (("a", SecretRandomizedResponse(PRODUCT, "S", "1/2")), ("b", mechanism)):
        with pytest.raises(InvalidInput, match=f"mechanism must be that of a release of collection '{collection}'"):
            ledger.prove(collection, other)
    assert ledger.releases[0].hiding is None
    assert ledger.prove("a", mechanism) == sf.Epsilon(1)
    with pytest.raises(InvalidInput, match="whose level is not recorded"):
        ledger.prove("a", mechanism)


def test_a_level_that_does_not_exist_is_not_proved() -> None:
    """U in clear is harmless under the known distribution, and tells everything to somebody who knows another."""
    policy = sf.Secret(PRODUCT, "S", 0, sf.Known(EVEN))
    u = revealing(PRODUCT, lambda x: x % 2)
    ledger = Ledger()
    ledger.charge("a", u, policy)
    with pytest.raises(CannotCompose, match="rule out a secret"):
        ledger.prove("a", u)
    assert not ledger.allows("b", SecretRandomizedResponse(PRODUCT, "S", "0.01"), sf.Secret(PRODUCT, "S", 1, KNOWN))


def test_a_level_is_that_of_the_sampler_that_ran() -> None:
    """A class from elsewhere may share the spec of the library's and tell U in clear; the hash does not say which."""

    class TellsU(TableMechanism):
        def step(self, state: int, draws: Draws) -> Finished:  # noqa: ARG002
            return Finished(state % 2)

    policy = sf.Secret(PRODUCT, "S", 1, sf.Known(EVEN))
    mechanism = SecretRandomizedResponse(PRODUCT, "S", 1)
    other = TellsU(PRODUCT, mechanism.weights, provenance=mechanism.provenance)
    assert mechanism.hash == other.hash
    ledger = Ledger()
    ledger.charge("a", other, policy)
    assert ledger.releases[0].hiding is None
    # The same spec, run by the library's class, proves nothing about that release by itself.
    assert not ledger.allows("b", mechanism, policy)
    assert not without_level(ledger).allows("b", mechanism, policy)
    with pytest.raises(CannotCompose, match="rule out a secret"):
        ledger.prove("a", other)


def test_a_proved_level_continues_the_file_and_is_not_lost_again(tmp_path: Path) -> None:
    policy = sf.Secret(PRODUCT, "S", 1, sf.Known(EVEN))
    mechanism = SecretRandomizedResponse(PRODUCT, "S", 1)
    ledger = Ledger()
    ledger.charge("a", mechanism, policy)
    old = without_level(ledger)
    old.save(tmp_path / "ledger.json")
    proved = Ledger.load(tmp_path / "ledger.json")
    proved.prove("a", mechanism)
    proved.save(tmp_path / "ledger.json")
    assert Ledger.load(tmp_path / "ledger.json").releases == proved.releases
    with pytest.raises(InvalidInput, match="hold only releases that this ledger has"):
        old.save(tmp_path / "ledger.json")


def test_a_known_distribution_within_a_classical_budget() -> None:
    ledger = Ledger(sf.Uniform(PRODUCT, 1))
    ledger.charge("a", response(1, PRODUCT), sf.Secret(PRODUCT, "S", 1, sf.Known(EVEN)))
    assert ledger.spent(PRODUCT) == sf.Uniform(PRODUCT, 1)


def test_a_prior_beside_pairs_is_charged_against_anything() -> None:
    prior = sf.Prior(COIN, ["1/2", "1/2"], "ln 2")
    mechanism = TableMechanism.from_matrix(COIN, [[0.75, 0.25], [0.25, 0.75]])  # keeps ln 3, states no epsilon
    ledger = Ledger()
    ledger.charge("a", mechanism, prior)
    ledger.charge("b", response(1, COIN), sf.Uniform(COIN, 1))
    assert ledger.spent(COIN) == sf.Uniform(COIN, "1+ln 4")  # ε-LIP implies 2ε-LDP


def test_secrets_under_anything_add() -> None:
    policy = sf.Secret(PRODUCT, "S", 1, sf.Anything())
    ledger = charged([policy] * 2, lambda _: response(1, PRODUCT))
    assert ledger.spent(PRODUCT) == sf.Secret(PRODUCT, "S", 2, sf.Anything())


# -- a charge is at least what the mechanism gives away ----------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [response(2), RandomizedResponse(FRUIT, "0.1", threshold=2**64), UnaryEncoding(FRUIT, 1, own=2**64 - 1)],
    ids=["more epsilon", "a spec that lies", "a unary spec that lies"],
)
def test_a_mechanism_that_breaks_the_policy_is_refused(mechanism: Mechanism) -> None:
    ledger = Ledger()
    for attempt in (
        lambda: ledger.charge("a", mechanism, sf.Uniform(FRUIT, 1)),
        lambda: ledger.answer("a", mechanism, sf.Uniform(FRUIT, 1), "fig", stream=NOTHING),
        lambda: ledger.allows("a", mechanism, sf.Uniform(FRUIT, 1)),
    ):
        with pytest.raises(PolicyViolated):
            attempt()
    assert ledger.releases == ()


def test_a_spec_that_lies_is_never_charged_at_the_epsilon_it_states() -> None:
    liar = RandomizedResponse(COIN, "0.1", threshold=2**63)  # keeps ln 3
    ledger = Ledger()
    ledger.charge("a", liar, sf.Uniform(COIN, "ln 3"))
    assert ledger.releases[0].classical is None
    assert ledger.total == sf.Epsilon("ln 3")


class InClear(RandomizedResponse):
    """States the law of randomized response and answers with the value."""

    def step(self, state: int, draws: Draws) -> Finished:  # noqa: ARG002
        return Finished(state)


def test_a_class_from_elsewhere_is_charged_for_what_its_sampler_does() -> None:
    class Named(InClear):
        name = "named-in-clear"

    class Honest(RandomizedResponse):
        pass

    policy = sf.Uniform(FRUIT, 1)
    ledger = Ledger(budget=policy)
    for mechanism in (InClear(FRUIT, 1), Named(FRUIT, 1)):
        with pytest.raises(PolicyViolated, match="infinite"):
            ledger.charge("a", mechanism, policy)
        with pytest.raises(PolicyViolated, match="infinite"):
            ledger.answer("a", mechanism, policy, "fig", stream=NOTHING)
        with pytest.raises(PolicyViolated, match="infinite"):
            ledger.allows("a", mechanism, policy)
    assert ledger.releases == ()
    # What it tells besides is not taken from the law that it states.
    ledger = Ledger()
    ledger.charge("a", InClear(FRUIT, 1), sf.Uniform(FRUIT, "inf"))
    ledger.charge("b", Honest(FRUIT, 1), policy)
    assert [release.classical for release in ledger.releases] == [None, None]
    assert ledger.total.is_infinite


def test_a_class_from_elsewhere_whose_sampler_nobody_can_read_is_refused() -> None:
    class MadeOtherwise(SubsetSelection):
        def __init__(self, domain: sf.Domain) -> None:
            super().__init__(domain, 1)

    large = sf.Domain.range(30)
    with pytest.raises(Undecided, match="cannot be read"):
        Ledger().charge("a", MadeOtherwise(large), sf.Uniform(large, 1))
    Ledger().charge("a", SubsetSelection(large, 1), sf.Uniform(large, 1))


# -- answers -----------------------------------------------------------------------------------------------

MECHANISMS: dict[str, Mechanism] = {
    "response": response(1),
    "unary": UnaryEncoding(FRUIT, 1),
    "subset": SubsetSelection(sf.Domain.range(20), 1),
    "hadamard": HadamardResponse(sf.Domain.range(300), 1),
    "cyclic": CyclicDesign(sf.Domain.range(300), 1),
    "table": TableMechanism.from_matrix(FRUIT, response(1).matrix(), policy=sf.Uniform(FRUIT, 1)),
}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_the_same_value_answers_with_the_same_bytes_across_save_and_load(mechanism: Mechanism, tmp_path: Path) -> None:
    policy, value = sf.Uniform(mechanism.domain, 1), mechanism.domain.label(1)
    ledger = Ledger(policy)
    report = ledger.answer("weekly", mechanism, policy, value)
    assert report.shape == (1, *mechanism.report_format.shape)
    expected = report.tobytes()
    report[:] = 0  # the stored report is nobody else's array
    path = tmp_path / "ledger.json"
    ledger.save(path)
    for kept in (ledger, Ledger.load(path), Ledger.from_json(ledger.to_json())):
        again = kept.answer("weekly", mechanism, policy, value, stream=NOTHING)
        assert (again.tobytes(), again.dtype) == (expected, mechanism.report_format.dtype)
        assert kept.spent(mechanism.domain) == policy
        sf.aggregate(mechanism, again)


def test_the_report_is_that_of_privatize() -> None:
    mechanism = UnaryEncoding(FRUIT, 1)
    report = Ledger().answer("a", mechanism, sf.Uniform(FRUIT, 1), "fig", stream=sf.InsecureSeeded(3))
    assert np.array_equal(report, sf.privatize(mechanism, ["fig"], stream=sf.InsecureSeeded(3)))


def test_stored_reports_have_batch_names_that_stay() -> None:
    mechanism, policy, ledger = response(1), sf.Uniform(FRUIT, 1), Ledger()
    assert ledger.batches("health", mechanism, policy) == {}
    ledger.charge("health", mechanism, policy)
    answers = [ledger.answer("health", mechanism, policy, value, allow_change=True) for value in FRUIT]
    batches = ledger.batches("health", mechanism, policy)
    assert [report.tolist() for report in batches.values()] == [report.tolist() for report in answers]
    again = Ledger.from_json(ledger.to_json())
    again.answer("other", mechanism, policy, "pear")
    assert list(again.batches("health", mechanism, policy)) == list(batches)
    assert not set(again.batches("other", mechanism, policy)) & set(batches)
    for other in (response(2), UnaryEncoding(FRUIT, 1)):
        with pytest.raises(InvalidInput, match="be those of the earlier reports"):
            ledger.batches("health", other, policy)
    waves = sf.design(policy, lifetime=sf.Uniform(FRUIT, 2))
    assert isinstance(waves, sf.mechanisms.MemoizedMechanism)
    ledger.answer_wave("waves", waves, "pear", 0)
    with pytest.raises(InvalidInput, match="be those of the earlier reports"):  # never a permanent answer
        ledger.batches("waves", waves, waves.lifetime)


def test_another_value_is_refused_or_charged() -> None:
    policy, mechanism = sf.Uniform(FRUIT, 1), response(1)
    ledger = Ledger(sf.Uniform(FRUIT, 2))
    first = ledger.answer("weekly", mechanism, policy, "fig")
    with pytest.raises(
        ValueChanged, match="collection 'weekly' has already received a report of another value"
    ) as refusal:
        ledger.answer("weekly", mechanism, policy, "pear", stream=NOTHING)
    assert "pear" not in str(refusal.value)
    assert "fig" not in str(refusal.value)
    second = ledger.answer("weekly", mechanism, policy, "pear", allow_change=True)
    assert ledger.spent(FRUIT) == sf.Uniform(FRUIT, 2)
    for value, report in (("fig", first), ("pear", second)):
        assert np.array_equal(ledger.answer("weekly", mechanism, policy, value, stream=NOTHING), report)
    with pytest.raises(BudgetExceeded):
        ledger.answer("weekly", mechanism, policy, "apple", allow_change=True, stream=NOTHING)


def test_a_budget_limits_the_questions_that_it_names_and_not_their_total() -> None:
    longer = sf.Domain([*FRUIT, "plum"])
    ledger = Ledger(budget=[sf.Uniform(FRUIT, 1), sf.Uniform(COIN, 1)])
    for domain in (FRUIT, COIN):
        ledger.answer(f"about {domain}", response(1, domain), sf.Uniform(domain, 1), domain.label(0))
    assert ledger.total == sf.Epsilon(2)
    with pytest.raises(BudgetExceeded, match=r"does not cover this question.*'plum'") as exceeded:
        ledger.answer("longer", response("0.1", longer), sf.Uniform(longer, "0.1"), "fig", stream=NOTHING)
    assert "larger budget" not in str(exceeded.value)


def test_what_a_change_costs_is_said_in_words_and_as_a_policy() -> None:
    policy, mechanism = sf.Uniform(FRUIT, 1), response(1)
    ledger = Ledger(sf.Uniform(FRUIT, 2))
    ledger.answer("weekly", mechanism, policy, "fig")
    before = ledger.to_json()
    free = ledger.cost_of_change("weekly", mechanism, policy, "fig")
    assert (free.added, free.total, free.allowed) == (None, policy, True)
    assert str(free).startswith("free: ")
    cost = ledger.cost_of_change("weekly", mechanism, policy, "pear")
    assert (cost.added, cost.total, cost.allowed) == (policy, sf.Uniform(FRUIT, 2), True)
    assert str(cost) == ("costs a uniform policy at epsilon 1; the total would become a uniform policy at epsilon 2")
    assert ledger.to_json() == before
    ledger.answer("weekly", mechanism, policy, "pear", allow_change=True)
    dear = ledger.cost_of_change("weekly", mechanism, policy, "apple")
    assert not dear.allowed
    assert str(dear).endswith("a uniform policy at epsilon 3, which exceeds the budget")


def test_a_collection_keeps_its_mechanism_and_its_policy() -> None:
    ledger = Ledger()
    ledger.answer("weekly", response(1), sf.Uniform(FRUIT, 1), "fig")
    for mechanism, policy in (
        (SubsetSelection(FRUIT, 1), sf.Uniform(FRUIT, 1)),
        (response(1), sf.HighLow(FRUIT, ["fig"], 1)),
    ):
        with pytest.raises(
            InvalidInput, match="mechanism and policy must be those of the earlier reports of collection 'weekly'"
        ):
            ledger.answer("weekly", mechanism, policy, "fig", stream=NOTHING)


def test_the_same_cell_of_a_map_is_the_same_value() -> None:
    """A point is not a value; the cell it falls into is."""
    grid = sf.Domain.grid(latitude=(0, 10), longitude=(0, 10), rows=2, columns=2)
    ledger, mechanism, policy = Ledger(), RandomizedResponse(grid, 1), sf.Uniform(grid, 1)
    report = ledger.answer("where", mechanism, policy, (1.0, 1.0))
    assert np.array_equal(ledger.answer("where", mechanism, policy, (2.5, 4.0), stream=NOTHING), report)
    with pytest.raises(ValueChanged):
        ledger.answer("where", mechanism, policy, (2.5, 6.0), stream=NOTHING)


def test_digests_of_equal_values_differ_between_collections_and_ledgers() -> None:
    digests = set()
    for _ in range(2):
        ledger = Ledger()
        for collection in ("a", "b"):
            ledger.answer(collection, response(1), sf.Uniform(FRUIT, 1), "fig")
        digests |= {release.value for release in ledger.releases}
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("", response(1), sf.Uniform(FRUIT, 1), "fig"), "collection must be a non-empty string"),
        (("a", response(1), sf.Uniform(COIN, 1), "fig"), "policy must have the mechanism's domain"),
        (("a", response(1), sf.Uniform(FRUIT, 1), "plum"), "must be one of the str labels"),
    ],
)
def test_bad_questions_are_refused(arguments: tuple[Any, ...], culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        Ledger().answer(*arguments, stream=NOTHING)


@pytest.mark.parametrize(
    ("budget", "culprit"),
    [(3, "be a policy"), (["cheap"], "be a policy"), ([sf.Uniform(COIN, 1)] * 2, "one policy per domain")],
)
def test_bad_budgets_are_refused(budget: Any, culprit: str) -> None:
    with pytest.raises(InvalidInput, match=culprit):
        Ledger(budget)


# -- documents ---------------------------------------------------------------------------------------------


def full_ledger() -> Ledger:
    ledger = Ledger([sf.Uniform(FRUIT, "2+ln 2"), sf.Secret(PRODUCT, "S", 2, sf.Known(EVEN))])
    ledger.answer("fruit", response("ln 2"), sf.Uniform(FRUIT, "ln 2"), "fig")
    ledger.charge("more fruit", response(1), sf.HighLow(FRUIT, ["fig"], 1))
    ledger.answer("secret", response(1, PRODUCT), sf.Secret(PRODUCT, "S", 1, sf.Known(EVEN)), (1, 0))
    return ledger


def test_a_ledger_round_trips() -> None:
    ledger = full_ledger()
    again = Ledger.from_json(ledger.to_json())
    assert again.releases == ledger.releases
    assert again.budget == ledger.budget
    assert again.total == ledger.total
    assert again.to_json() == ledger.to_json()


def test_a_saved_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    path.write_text("old")
    path.chmod(0o644)
    ledger = full_ledger()
    ledger.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.json"]
    assert Ledger.load(path).releases == ledger.releases


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    full_ledger().save(path)
    before = path.read_bytes()

    class Broken(Ledger):
        def to_json(self) -> str:
            raise RuntimeError("no power")

    with pytest.raises(RuntimeError):
        Broken().save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.json"]


def _set(*path: Any) -> Callable[[Any], None]:
    *parents, last, value = path

    def change(document: Any) -> None:
        for key in parents:
            document = document[key]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "error", "culprit"),
    [
        (_set("note", 1), InvalidInput, "document key must be one of .*; got 'note'"),
        (_set("ledger", 3), UnknownSpec, "version must be 1 or 2; got 3"),
        (lambda d: d.pop("key"), InvalidInput, "have the key 'key'"),
        (_set("key", "00"), InvalidInput, "key must be lower-case hexadecimal digits of 32 bytes"),
        (_set("releases", {}), InvalidInput, "releases must be a list"),
        (_set("budget", None), InvalidInput, "budget must be a list"),
        (_set("releases", 0, "note", 1), InvalidInput, "release 0 key must be"),
        (_set("releases", 0, 7), InvalidInput, "release 0 must be a mapping"),
        (_set("releases", 0, "collection", ""), InvalidInput, "release 0, collection must be a non-empty string"),
        (_set("releases", 0, "mechanism", "rr"), InvalidInput, "release 0, mechanism must be"),
        (_set("releases", 0, "classical", "much"), InvalidInput, "release 0, classical must be"),
        (_set("releases", 0, "value", None), InvalidInput, "release 0 must have both value and report"),
        (_set("releases", 0, "report", "0X"), InvalidInput, "release 0, report must be"),
        (_set("releases", 0, "report", "0A "), InvalidInput, "release 0, report must be"),
        (_set("releases", 1, "policy", "policy", "kind", "magic"), UnknownSpec, "kind must be one of"),
        (_set("releases", 1, "policy", "policy", "note", 1), InvalidInput, "got 'note'"),
    ],
)
def test_a_misshapen_ledger_is_refused(change: Callable[[Any], None], error: type[Exception], culprit: str) -> None:
    document = json.loads(full_ledger().to_json())
    change(document)
    with pytest.raises(error, match=culprit):
        Ledger.from_json(json.dumps(document))


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "7", "{"):
        with pytest.raises(InvalidInput):
            Ledger.from_json(text)
    with pytest.raises(InvalidInput, match="be a readable ledger"):
        Ledger.load(tmp_path / "nothing.json")


@pytest.mark.parametrize("report", ["", "0000", "ff"])
def test_a_stored_report_that_is_none_is_refused(report: str) -> None:
    ledger = Ledger()
    ledger.answer("fruit", response(1), sf.Uniform(FRUIT, 1), "fig")
    document = json.loads(ledger.to_json())
    document["releases"][0]["report"] = report
    with pytest.raises(InvalidInput, match="stored report"):
        Ledger.from_json(json.dumps(document)).answer("fruit", response(1), sf.Uniform(FRUIT, 1), "fig")


def test_fractions_survive_the_file() -> None:
    epsilon = sf.Epsilon(Fraction(1, 3)) + sf.Epsilon("1/7*ln 5")
    ledger = Ledger(sf.Uniform(FRUIT, epsilon))
    ledger.charge("a", response(epsilon), sf.Uniform(FRUIT, epsilon))
    assert Ledger.from_json(ledger.to_json()).remaining(FRUIT) == sf.Epsilon(0)


# -- several at once ---------------------------------------------------------------------------------------

TENTHS = sf.Uniform(COIN, "0.7")


def answered(ledger: Ledger, collection: str, stream: Any = None) -> Any:
    return ledger.answer(collection, response("0.7", COIN), TENTHS, "heads", stream=stream)


class Meanwhile:
    """A stream that lets another thread begin between the check of the budget and the charge."""

    def __init__(self, other: threading.Thread) -> None:
        self.other = other

    def reserve(self, chunks: int) -> tuple[bytes, int]:
        self.other.start()
        self.other.join(0.2)  # it is done by then, or it waits for us
        return sf.InsecureSeeded(1).reserve(chunks)


@pytest.mark.parametrize("spend", ["answer", "charge"])
def test_two_threads_do_not_spend_the_same_budget(spend: str) -> None:
    ledger, refused = Ledger(sf.Uniform(COIN, 1)), []

    def second() -> None:
        try:
            if spend == "answer":
                answered(ledger, "second")
            else:
                ledger.charge("second", response("0.7", COIN), TENTHS)
        except BudgetExceeded as error:
            refused.append(error)

    other = threading.Thread(target=second)
    answered(ledger, "first", Meanwhile(other))
    other.join()
    assert [release.collection for release in ledger.releases] == ["first"]
    assert len(refused) == 1


def test_a_ledger_can_be_copied() -> None:
    ledger = full_ledger()
    for again in (copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert again.to_json() == ledger.to_json()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.json"
    Ledger(sf.Uniform(COIN, 1)).save(path)
    return path


def test_a_file_with_releases_that_are_not_known_is_not_overwritten(shared: Path) -> None:
    first, second = Ledger.load(shared), Ledger.load(shared)
    answered(first, "first")
    first.save(shared)
    first.save(shared)
    answered(second, "second")
    kept = shared.read_bytes()
    for other in (second, Ledger()):
        with pytest.raises(InvalidInput, match=r"hold only releases that this ledger has.*Send no report"):
            other.save(shared)
    assert shared.read_bytes() == kept
    newer = {**json.loads(kept), "ledger": 3}
    shared.write_text(json.dumps(newer))
    with pytest.raises(UnknownSpec):
        first.save(shared)
    assert [file.name for file in shared.parent.iterdir()] == ["ledger.json"]


def test_an_open_ledger_is_saved_when_the_block_ends(shared: Path) -> None:
    before = shared.stat()
    with Ledger.open(shared) as ledger:
        assert ledger.releases == ()
    assert os.path.samestat(shared.stat(), before)
    reports = []

    def fails() -> None:
        with Ledger.open(shared) as ledger:
            reports.append(answered(ledger, "first"))
            raise RuntimeError("no network")

    with pytest.raises(RuntimeError):
        fails()
    with Ledger.open(shared) as ledger:
        assert (answered(ledger, "first", NOTHING) == reports[0]).all()
        with pytest.raises(BudgetExceeded):
            answered(ledger, "second", NOTHING)
    assert [file.name for file in shared.parent.iterdir()] == ["ledger.json"]
    with pytest.raises(InvalidInput, match="be a readable ledger"), Ledger.open(shared.with_name("other.json")):
        pass
    with pytest.raises(InvalidInput, match="be writable"), Ledger.open(shared.parent / "none" / "ledger.json"):
        pass


def test_an_open_ledger_can_be_saved_before_the_block_ends(shared: Path) -> None:
    with Ledger.open(shared) as ledger:
        answered(ledger, "first")
        ledger.save(shared)  # so that it may be sent within the block
        assert Ledger.load(shared).releases == ledger.releases


def test_a_block_within_a_block_is_not_forgotten(shared: Path) -> None:
    def nested() -> None:
        with Ledger.open(shared) as outer:
            with Ledger.open(shared) as inner:
                answered(inner, "inner")
            answered(outer, "outer")

    with pytest.raises(InvalidInput, match="hold only releases that this ledger has"):
        nested()
    assert [release.collection for release in Ledger.load(shared).releases] == ["inner"]


ANSWERS = """
import sys, sfumato as sf
from sfumato.mechanisms import RandomizedResponse
domain = sf.Domain(["heads", "tails"])
with sf.Ledger.open(sys.argv[1]) as ledger:
    print("open", flush=True)
    sys.stdin.readline()
    ledger.answer("elsewhere", RandomizedResponse(domain, "0.7"), sf.Uniform(domain, "0.7"), "heads")
"""


@pytest.mark.slow
def test_two_processes_do_not_spend_the_same_budget(shared: Path) -> None:
    command = [sys.executable, "-c", ANSWERS, str(shared)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with (shared.parent / ".ledger.json.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        other.stdin.write("\n")
        other.stdin.flush()
        with Ledger.open(shared) as ledger, pytest.raises(BudgetExceeded):
            answered(ledger, "here", NOTHING)
        assert other.wait() == 0
    assert [release.collection for release in Ledger.load(shared).releases] == ["elsewhere"]
    assert [file.name for file in shared.parent.iterdir()] == ["ledger.json"]


def test_a_lock_that_comes_and_goes_lets_one_in_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")

    def count() -> None:
        for _ in range(50):
            with locked(path), locked(path):
                path.write_text(str(int(path.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "400"
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_can_be_left_in_another_thread_than_it_was_entered_in(tmp_path: Path) -> None:
    block = locked(tmp_path / "file")
    block.__enter__()
    leaving = threading.Thread(target=block.__exit__, args=(None, None, None))
    leaving.start()
    leaving.join()
    assert list(tmp_path.iterdir()) == []
    with locked(tmp_path / "file"):
        assert len(list(tmp_path.iterdir())) == 1


def test_where_nothing_can_be_locked_a_ledger_is_saved_nevertheless(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: int) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr("fcntl.flock", unknown)
    Ledger.load(shared).save(shared)
    assert [file.name for file in shared.parent.iterdir()] == ["ledger.json"]


def test_a_save_reaches_the_disk_and_so_does_its_name(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = [], os.fsync

    def recorded(descriptor: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    Ledger.load(shared).save(shared)
    assert synced == ["file", "folder"]


# -- sampled parts -----------------------------------------------------------------------------------------------


def _questionnaire() -> tuple[sf.mechanisms.SampledParts, sf.Product]:
    """Return a questionnaire of four attributes, of which a person reports one."""
    names = ["a", "b", "c", "d"]
    policy = sf.Product({name: sf.Uniform(sf.Domain.range(3), 1) for name in names})
    parts = {name: RandomizedResponse(sf.Domain.range(3), 1) for name in names}
    return sf.mechanisms.SampledParts(policy.domain, parts, [1, 2, 3, 4]), policy


def test_a_person_reports_the_same_attribute_in_all_waves(tmp_path: Path) -> None:
    mechanism, policy = _questionnaire()
    drawn = set()
    for seed in range(12):
        ledger = Ledger()
        first = ledger.answer("wave 1", mechanism, policy, (0, 1, 2, 0), stream=sf.InsecureSeeded(seed))
        part = mechanism.split_report(int(first[0]))[0]
        drawn.add(part)
        path = tmp_path / f"{seed}.json"
        ledger.save(path)
        again = Ledger.load(path)
        for wave in range(2, 5):
            value = (wave % 3, 1, 0, 2)
            stream = sf.InsecureSeeded(100 * seed + wave)
            later = again.answer(f"wave {wave}", mechanism, policy, value, stream=stream)
            assert mechanism.split_report(int(later[0]))[0] == part
        changed = again.answer(
            "wave 1", mechanism, policy, (2, 2, 2, 2), allow_change=True, stream=sf.InsecureSeeded(seed)
        )
        assert mechanism.split_report(int(changed[0]))[0] == part
    assert len(drawn) > 1


def test_the_choice_is_repeated_only_for_the_same_questionnaire() -> None:
    mechanism, policy = _questionnaire()
    other = sf.mechanisms.SampledParts(policy.domain, {"a": RandomizedResponse(sf.Domain.range(3), 1)})
    ledger = Ledger()
    ledger.answer("first", mechanism, policy, (0, 0, 0, 0), stream=sf.InsecureSeeded(1))
    assert int(ledger.answer("second", other, policy, (0, 0, 0, 0), stream=sf.InsecureSeeded(1))[0]) < 3


def test_a_repeated_choice_has_the_law_of_its_part() -> None:
    mechanism, _ = _questionnaire()
    repeated = repeating(mechanism, 4)
    assert isinstance(repeated, sf.mechanisms.SampledParts)
    assert list(repeated.probabilities) == [Fraction(0), Fraction(1), Fraction(0), Fraction(0)]
    assert mechanism.probabilities == (Fraction(1, 10), Fraction(1, 5), Fraction(3, 10), Fraction(2, 5))
    x = mechanism.domain.index((0, 2, 1, 1))
    law = [repeated.probability(y, x) for y in range(12)]
    assert law[3:6] == [RandomizedResponse(sf.Domain.range(3), 1).probability(y, 2) for y in range(3)]
    assert sum(law) == 1
    assert repeating(RandomizedResponse(FRUIT, 1), 0) == RandomizedResponse(FRUIT, 1)
