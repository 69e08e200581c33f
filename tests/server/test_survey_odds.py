"""The survey page states what a reply reveals about the part that it names, and the total of permanent answers."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from support.browsing import DESKTOP, People, enter_studio, opened, planned, read
from support.collectors import Served

pytestmark = pytest.mark.component


def marks(collector: Served, epsilon: str, count: int = 5) -> str:
    """A multiple choice of some options."""
    order = [f"option {i}" for i in range(count)]
    domain = {"product": {name: ["no", "yes"] for name in order}, "order": order}
    policy = {"kind": "uniform", "epsilon": epsilon}
    return opened(collector, f"Which at {epsilon}?", domain, policy, question="marginals:1")


@pytest.mark.parametrize("language", ["en", "de", "ar"])
def test_the_odds_of_the_option_that_a_reply_names_are_stated(people: People, collector: Served, language: str) -> None:
    """The best guess of all five marks says little; for the named option it is e/(1 + e) against 1/2."""
    name = marks(collector, "1")
    page = people()
    page.goto(f"{collector.url}/c/{name}?lang={language}")
    page.wait_for_selector("#odds")
    every, part = (re.sub(r"[\s\u00a0٪]|\u200e", "", page.inner_text(where)) for where in ("#odds", ".part-odds"))
    separator = "," if language == "de" else "."
    assert f"3{separator}1" in every
    assert f"73{separator}1" in part
    assert f"50{separator}0" in part
    assert page.locator(".part-odds.alarm").count() == 0
    mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
    assert isinstance(mechanism, sf.mechanisms.SampledParts)
    assert max(float(one.guess_probability()) for one in mechanism.parts) == pytest.approx(math.e / (1 + math.e))


def test_a_reply_that_shows_an_option_is_an_alarm(people: People, collector: Served) -> None:
    page = people()
    page.goto(f"{collector.url}/c/{marks(collector, '6/5')}")
    page.wait_for_selector(".part-odds")
    assert f"{math.exp(1.2) / (1 + math.exp(1.2)):.1%}" in page.inner_text(".part-odds.alarm")


def guess_of_a_mark(mechanism: Mechanism) -> Fraction:
    """The best guess of one of several marks from a report, by the law; all combinations are equally likely."""
    size = len(mechanism.domain)
    columns = [[mechanism.probability(report, x) for x in range(size)] for report in mechanism.reports()]
    best = (
        sum(
            (max(sum(c[x] for x in range(size) if x >> bit & 1 == mark) for mark in (0, 1)) for c in columns),
            Fraction(),
        )
        for bit in range(size.bit_length() - 1)
    )
    return max(best) * Fraction(1, size)


def uneven(domain: sf.Domain) -> Mechanism:
    """A table whose reports reveal more about some marks than about others."""
    odds = (0.7, 0.9, 0.8)
    values = list(itertools.product((0, 1), repeat=3))
    rows = [
        [math.prod(p if a == b else 1 - p for p, a, b in zip(odds, value, report, strict=True)) for report in values]
        for value in values
    ]
    return sf.mechanisms.TableMechanism.from_matrix(domain, rows)


@pytest.mark.parametrize("kind", ["table", "randomized-response", "pairs"])
def test_the_odds_of_an_option_follow_from_the_law(people: People, collector: Served, kind: str) -> None:
    """Also if a reply is about all options at once, or about two of them: in the plan and in the browser."""
    options = [sf.Domain.product(**{key: ["no", "yes"] for key in names}) for names in ("abc", "ab")]
    response = sf.mechanisms.RandomizedResponse
    mechanism: Mechanism
    if kind == "pairs":
        parts = {("a", "b"): response(sf.Domain.range(4), 3), "c": response(sf.Domain.range(2), 1)}
        mechanism, law = sf.mechanisms.SampledParts(options[0], parts), guess_of_a_mark(response(options[1], 3))
    else:
        mechanism = uneven(options[0]) if kind == "table" else response(options[0], 3)
        law = guess_of_a_mark(mechanism)
    policy = sf.Uniform(options[0], 5).to_dict()
    body = {"title": kind, "policy": policy, "n": 1000, "mechanism": mechanism.spec, "question": "marginals:1"}
    created = collector.as_admin("POST", "/v1/collections", {**body, "submission": "open"}).json
    assert created["part"] == pytest.approx({"guess": float(law), "chance": 0.5}, rel=1e-15)
    page = people()
    page.goto(f"{collector.url}/c/{created['collection']['id']}")
    page.wait_for_selector(f".part-odds:has-text('{float(law):.1%} (without the reply: 50.0%)')")


def test_studio_warns_if_a_reply_reveals_an_option(people: People, collector: Served) -> None:
    """The guess of all marks at once is no reason for a warning, that of one option is."""
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Which of these?")
    page.get_by_label("Any of a list").check()
    page.fill("#values", "flu\ncold\nhiv\nasthma\nallergy")
    page.locator("#epsilon").fill("2")
    planned(page, 60)
    warning = ".alarm:has-text('a part of the answer, such as an option')"
    page.wait_for_selector(f"#warning {warning}")
    page.click("button:has-text('Open the survey')")
    page.wait_for_selector(f"#done {warning}")


def test_the_planner_states_the_odds_of_a_part(collector: Served) -> None:
    domain = sf.Domain.product(a=["no", "yes"], b=["no", "yes"], c=["no", "yes"])
    body = {"policy": sf.Uniform(domain, 1).to_dict(), "n": 1000, "question": "marginals:1"}
    part = collector.as_admin("POST", "/v1/plan", body).json["part"]
    assert part == pytest.approx({"guess": math.e / (1 + math.e), "chance": 0.5})
    whole = {"policy": sf.Uniform(sf.Domain.range(4), 1).to_dict(), "n": 1000}
    assert collector.as_admin("POST", "/v1/plan", whole).json["part"] is None


def test_permanent_answers_are_added_up(people: People, collector: Served) -> None:
    """Five permanent answers at ε = 2 have up to ε = 10: 10% can become 99.96%. Two at ε = 1 have up to ε = 2."""
    domain = {"values": [f"answer {i}" for i in range(8)]}

    def returning(title: str, level: str, lifetime: str, changes: int) -> str:
        policies = [{"kind": "uniform", "epsilon": epsilon} for epsilon in (level, lifetime)]
        return opened(
            collector, title, domain, policies[0], waves={"count": 20, "days": 7}, max_changes=changes,
            lifetime={"domain": domain, "policy": policies[1]},
        )  # fmt: skip

    page = people()
    five = returning("Five?", "1", "2", 4)
    page.goto(f"{collector.url}/c/{five}")
    page.wait_for_selector("#level-total:has-text('from 10% to more than 99.9%')")
    assert "to at most 45.1%" in page.inner_text("#level-all")  # of one permanent answer
    two = returning("Two?", "1/2", "1", 1)
    page.goto(f"{collector.url}/c/{two}")
    page.wait_for_selector("#level-total:has-text('to at most 45.1%')")
    one = returning("One?", "1/2", "1", 0)
    page.goto(f"{collector.url}/c/{one}")
    page.wait_for_selector("#level-all:has-text('at most 23.2%')")
    assert page.locator("#level-total").count() == 0
    # Two questions that return: two and one permanent answers at ε = 1.
    page.goto(f"{collector.url}/c/{two}?then={one}")
    after = 1 / (1 + 9 * math.exp(-3))
    page.wait_for_selector(f"#total:has-text('to at most {math.ceil(1000 * after) / 10}%')")


def test_studio_adds_up_permanent_answers(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "How are you this week?")
    page.fill("#values", "well\nill\nunsure")
    page.get_by_label("Again and again").check()
    page.wait_for_selector("#lifetime:has-text('without a limit on changes')")
    page.fill("#changes", "1")
    planned(page, 50)
    page.wait_for_selector("#lifetime:has-text('ε = 4')")
    assert f"at most {math.ceil(1000 / (1 + 9 * math.exp(-4))) / 10}%" in page.inner_text("#lifetime")


@pytest.mark.parametrize("kind", ["uniform", "blocks", "across", "high-low"])
def test_the_odds_of_a_map_have_a_baseline(people: People, collector: Served, kind: str) -> None:
    """A cell that is lit 43 times in 100 says nothing without how often it is lit for another answer."""
    grid = {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 4, "columns": 6}}
    groups = {"kind": "blocks", "blocks": [x // 12 for x in range(24)]}
    rules: dict[str, dict[str, Any]] = {
        "uniform": {"kind": kind},
        "blocks": groups,
        "across": {**groups, "across": "2"},
        "high-low": {"kind": kind, "sensitive": [[0, 0], [0, 1], [2, 2]]},
    }
    mechanism = "nested-cyclic" if kind == "across" else None
    name = opened(collector, f"Where, {kind}?", grid, {"epsilon": "1", **rules[kind]}, mechanism=mechanism)
    page = people()
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("#often li")
    assert "If you choose another cell, it is lit" in page.inner_text("#often")
