"""A survey that returns: an author opens it in Studio, a person answers two waves, and the results show the trend."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import sfumato as sf
from sfumato.mechanisms import MemoizedMechanism
from support.browsing import DESKTOP, People, choose, enter_studio, planned, read, send
from support.collectors import Served, served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.component

DAY = 86_400
VALUES = ["well", "cold", "flu"]


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path_factory.mktemp('waves')}/collect.db", live_seconds=0.05) as collector:
        yield collector


def later(collector: Served, seconds: float) -> None:
    """Move the clock of the collector."""
    assert collector.app is not None
    assert collector.app.collector is not None
    before = collector.app.collector.now
    collector.app.collector.now = lambda: before() + seconds


def permanent(page: Page) -> list[str]:
    """The permanent answers that the browser keeps."""
    stored = page.evaluate("async () => (await import('/static/sfumato.js')).answers()")
    return [each["answer"] for record in stored for each in record.get("kept", [])]


def test_a_survey_returns(people: People, collector: Served) -> None:
    author = people(DESKTOP)
    enter_studio(author, collector)
    author.fill("#title", "How are you this week?")
    author.fill("#values", "\n".join(VALUES))
    author.get_by_label("Again and again").check()
    author.fill("#changes", "1")
    author.wait_for_selector("#lifetime:has-text('ε = 2')")
    planned(author, 50)
    author.click("text=Open the survey")
    link = author.input_value("#done input")
    name = link.split("/c/")[1].split("#")[0]
    described = read(collector, name)
    mechanism = sf.mechanism_from_spec(described["mechanism"])
    assert isinstance(mechanism, MemoizedMechanism)
    assert mechanism.lifetime == sf.Uniform(sf.Domain(VALUES), 2)
    assert (mechanism.max_changes, described["waves"]["count"], described["waves"]["days"]) == (1, 10, 7)

    person = people()
    person.goto(link)
    assert "Wave 1 of 10" in person.inner_text("#wave")
    # After one reply at ε = 1, a belief of 10% is at most 23.2%; after all replies at ε = 2, at most 45.1%.
    assert "from 10% to at most 23.2%" in person.inner_text("#level-one")
    assert "to at most 45.1%" in person.inner_text("#level-all")
    assert "at most 2" in person.inner_text("#lifetime")
    choose(person, "flu")
    send(person)
    person.wait_for_selector("[data-state=sent]")
    assert "the next wave starts" in person.inner_text("#come-back")
    first, answers = json.loads(person.text_content("#sent") or ""), permanent(person)
    assert first["wave"] == 0
    # The same wave again: the same bytes.
    person.reload()
    person.wait_for_selector("[data-state=sent]")
    assert json.loads(person.text_content("#sent") or "") == first

    later(collector, 7 * DAY)
    person.goto(link)
    person.wait_for_selector("#wave:has-text('Wave 2 of 10')")
    choose(person, "flu")
    send(person)
    person.wait_for_selector("[data-state=sent]")
    second = json.loads(person.text_content("#sent") or "")
    assert (second["wave"], second["batch"] != first["batch"]) == (1, True)
    assert permanent(person) == answers
    assert len(answers) == 1

    reader = people(DESKTOP)
    reader.goto(f"{collector.url}/c/{name}/results")
    reader.wait_for_selector("#trends svg")
    assert reader.locator("#trends svg").count() == len(VALUES)
    assert "Wave 1: 1 answer. Wave 2: 1 answer." in reader.inner_text("#wave")
    assert reader.locator("#changes tbody tr").count() == len(VALUES)
    assert "not linked" in reader.inner_text("#changes caption")
    assert "A device keeps at most 2 stored answers per person." in reader.inner_text("#stale")
    assert "counted with an earlier one" in reader.inner_text("#stale")
    later(collector, 70 * DAY)
    person.goto(link)
    person.wait_for_selector("text=No wave of this question is open now.")


def test_the_page_speaks_other_languages(people: People, collector: Served) -> None:
    domain = sf.Domain(VALUES)
    about = {"lifetime": sf.Uniform(domain, "ln 1000000").to_dict(), "waves": {"count": 2, "days": None}}
    name, _, _ = collector.create(sf.Uniform(domain, 1), submission="open", mechanism="rr", **about)
    page = people()
    for language, wave, certain in (("de", "Welle 1 von 2", "Gewissheit"), ("ar", "الموجة 1 من 2", "متأكد")):
        page.goto(f"{collector.url}/c/{name}?lang={language}")
        page.wait_for_selector(f"#wave:has-text('{wave}')")
        assert certain in page.inner_text("#level-all")
