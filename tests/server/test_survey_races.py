"""The survey page on a slow network: what a person does while a request is held is kept, and shown afterwards."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.browsing import Held, People, answer, choose, high_low, opened, read
from support.collectors import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.component

STORED = "import('/static/sfumato.js').then(({ answers }) => answers())"
DECLINE = "button:text-is('I would rather not answer')"
SEND = "form button.main"


def speak(page: Page, language: str) -> None:
    page.select_option(".language select", language)


def with_link(collector: Served) -> tuple[str, str]:
    """The id of a collection, and a one-time link to it."""
    name = high_low(collector, f"Slow {time.time_ns()}?", submission="token")
    (token,) = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 1}).json["tokens"]
    return name, f"{collector.url}/c/{name}#{token}"


def two_questions(collector: Served) -> str:
    names = [high_low(collector, f"{word} {time.time_ns()}?") for word in ("First", "Second")]
    return f"{collector.url}/c/{names[0]}?then={names[1]}"


def test_declining_outlasts_a_question_under_way(people: People, collector: Served) -> None:
    _, link = with_link(collector)
    page = people()
    page.goto(link)
    page.wait_for_selector(SEND)
    held = Held(page, "**/admission*")
    speak(page, "de")
    held.wait()
    page.click(DECLINE)
    page.wait_for_selector("h2:text-is('Sie haben nicht geantwortet')")
    held.release(0)
    assert page.locator("form").count() == 0


def test_a_reply_that_arrived_outlasts_a_question_under_way(people: People, collector: Served) -> None:
    """The question asked whether the link counts before the reply used it, and hears of it later."""
    name, link = with_link(collector)
    page = people()
    page.goto(link)
    page.wait_for_selector(SEND)
    held = Held(page, "**/admission*")
    speak(page, "de")
    held.wait()
    choose(page, "flu")
    page.click(SEND)
    held.wait(2)
    held.end()
    held.release(1)
    page.wait_for_selector("[data-state=sent]")
    held.release(0)
    assert page.locator("[data-state=sent]").count() == 1
    assert read(collector, name)["reports"] == 1
    people.expected = "403"


def test_nothing_is_declined_or_asked_again_while_a_reply_is_drawn(people: People, collector: Served) -> None:
    name, link = with_link(collector)
    page = people()
    page.goto(link)
    choose(page, "flu")
    held = Held(page, "**/admission*")
    page.click(SEND)
    held.wait()
    page.click(DECLINE, force=True)
    speak(page, "de")
    page.wait_for_selector("html[lang=de]")
    assert page.locator(SEND).is_disabled()
    held.end()
    held.release(0)
    page.wait_for_selector("[data-state=sent]:has-text('Meldung ist angekommen')")
    assert page.evaluate("sessionStorage.getItem('sfumato-declined')") is None
    assert read(collector, name)["reports"] == 1


def test_a_reply_that_arrives_late_leaves_the_question_that_a_person_went_back_to(
    people: People, collector: Served
) -> None:
    page = people()
    page.goto(two_questions(collector))
    page.click(DECLINE)
    page.click("text=Next question")
    page.wait_for_selector("h1:has-text('Second')")
    choose(page, "flu")
    held = Held(page, "**/admission*")
    page.click(SEND)
    held.wait()
    page.go_back()
    page.wait_for_selector("h1:has-text('First')")
    held.end()
    held.release(0)
    page.wait_for_function(f"{STORED}.then(({{ length }}) => length)")
    page.wait_for_timeout(100)
    assert "First" in page.inner_text("h1")
    speak(page, "de")
    page.wait_for_selector("h2:text-is('Sie haben nicht geantwortet')")
    assert "First" in page.inner_text("h1")
    page.go_forward()
    page.wait_for_selector("#outcome")
    assert "Second" in page.inner_text("h1")


def test_the_language_is_that_of_the_question_that_is_shown(people: People, collector: Served) -> None:
    """A person pressed “Next question”, and answers this one after all while the next one loads."""
    page = people()
    page.goto(two_questions(collector))
    page.click(DECLINE)
    page.wait_for_selector("text=Next question")
    held = Held(page, "**/v1/collections/*")
    page.click("text=Next question")
    held.wait()
    page.click("text=Answer after all")
    held.wait(2)
    held.end()
    held.release(1)
    page.wait_for_selector(SEND)
    held.release(0)
    speak(page, "de")
    page.wait_for_selector(f"{SEND}:has-text('senden')")
    assert "First" in page.inner_text("h1")


@pytest.mark.parametrize("kind", ["list", "long list", "number", "map"])
def test_a_choice_stays_in_another_language(people: People, collector: Served, kind: str) -> None:
    domains: dict[str, dict[str, Any]] = {
        "list": {"values": ["yes", "no"]},
        "long list": {"values": [f"value {i}" for i in range(30)]},
        "number": {"low": 0, "high": 100, "bins": 10},
        "map": {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 2, "columns": 3}},
    }
    name = opened(collector, f"A {kind}?", domains[kind], {"kind": "uniform", "epsilon": "1"})
    page = people()
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(SEND)
    held = Held(page, "**/admission*")
    speak(page, "de")
    held.wait()
    if kind == "number":
        page.fill("#number", "37")
    else:
        page.locator("form input[type=radio]").nth(1).check(force=True)
    held.end()
    held.release(0)
    page.wait_for_selector(f"{SEND}:text-matches('senden|prüfen')")
    if kind == "number":
        assert page.input_value("#number") == "37"
        assert "37" not in page.inner_text("#counted")  # it names the bin
        assert "30" in page.inner_text("#counted")
    else:
        assert [box.is_checked() for box in page.locator("form input[type=radio]").all()[:2]] == [False, True]
    # The odds are those of the chosen value, as before.
    assert page.locator("#often li").count() > 0
    page.click(SEND)
    page.wait_for_selector("#confirm:visible, [data-state=sent]")


def test_the_language_that_was_chosen_last_stays(people: People, collector: Served) -> None:
    page = people()
    page.goto(f"{collector.url}/c/{high_low(collector)}")
    page.wait_for_selector(SEND)
    held = Held(page, "**/messages-de.js")
    speak(page, "de")
    held.wait()
    speak(page, "ar")
    page.wait_for_selector("html[lang=ar]")
    held.end()
    held.release(0)
    assert page.get_attribute("html", "lang") == "ar"
    assert page.input_value(".language select") == "ar"


def test_a_language_that_cannot_be_loaded_leaves_the_page_as_it_is(people: People, collector: Served) -> None:
    people.expected = "ERR_FAILED"
    page = people()
    page.route("**/messages-de.js", lambda route: route.abort())
    name = high_low(collector)
    page.goto(f"{collector.url}/c/{name}?lang=de")
    page.wait_for_selector(SEND)
    assert page.get_attribute("html", "lang") == "en"
    choose(page, "flu")
    with page.expect_event("requestfailed"):
        speak(page, "de")
    page.wait_for_function("document.querySelector('.language select').value === 'en'")
    assert page.get_by_label("flu", exact=True).is_checked()


def test_another_link_in_the_same_tab_is_used(people: People, collector: Served) -> None:
    """Only the fragment changes, and so the browser does not load the page again by itself."""
    name, used = with_link(collector)
    answer(people(), used, "flu")
    page = people()
    page.goto(used)
    page.wait_for_selector("#problem:has-text('used before')")
    (token,) = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": 1}).json["tokens"]
    page.goto(f"{collector.url}/c/{name}#{token}")
    page.wait_for_selector(SEND)
    page.wait_for_function("location.hash === ''")
    assert not re.search("used before", page.inner_text("main"))
    people.expected = "403"
