"""Every kind of question and the words around it, from Studio to the answers of people and to the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.browsing import DESKTOP, PHONE, People, choose, enter_studio, opened, read, send
from support.collectors import Served, served
from support.components import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.component

#: Words that would run or show as markup if a page inserted them as HTML.
MARKUP = "<img src=x onerror=alert(1)>"
WIDE = "document.documentElement.scrollWidth - innerWidth"
STORED = "import('/static/sfumato.js').then(module => module.answers())"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path_factory.mktemp('collector')}/collect.db") as collector:
        yield collector


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def people(browser: Browser, collector: Served) -> Iterator[People]:
    visitors = People(browser, collector)
    yield visitors
    for context in visitors.contexts:
        context.close()
    assert visitors.faults == []


def test_consent_sections_required_questions_and_the_end_reach_participants(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    for number, title in enumerate(("Do you smoke?", "Do you drink?")):
        if number:
            page.click("text=Add a question")
        page.fill("#title", title)
        page.fill("#values", "yes\nno")
    # Moving a question keeps the focus on the button, or on its neighbour if the button is gone.
    for button in ("Move earlier", "Move later"):
        page.focus(f"button:text-is('{button}')")
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelector('[aria-label=Questions]').contains(document.activeElement)")
    assert page.input_value("#title") == "Do you drink?"
    page.click("summary:text-is('Section, required')")
    page.fill("#heading", f"Habits {MARKUP}")
    page.fill("#section", "Two short questions.")
    page.check("#required")
    page.fill("#consent", f"We study habits.\nYou may stop at any time. {MARKUP}")
    page.fill("#ending", f"Thank you! {MARKUP}")
    draft = page.context.new_page()  # a draft survives the tab
    draft.goto(f"{collector.url}/studio")
    assert draft.input_value("#consent").startswith("We study habits.")
    draft.click("button:text-is('Question 2')")
    assert draft.is_checked("#required")
    draft.close()
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    link = page.input_value("[aria-label='Link to the survey']")

    person = people(PHONE)
    person.goto(link)
    person.wait_for_selector("#consent")
    assert person.inner_text("h1") == "Before you start"
    assert MARKUP in person.inner_text("#consent")
    assert person.locator("img").count() == 0
    assert person.evaluate(WIDE) <= 0
    person.select_option(".language select", "de")
    person.wait_for_selector("h1:text-is('Bevor Sie beginnen')")
    person.select_option(".language select", "en")
    person.click("#disagree")
    person.wait_for_selector("text=You did not agree")
    assert person.locator("form").count() == 0
    assert person.evaluate(STORED) == []
    person.click("text=Read it again")
    person.focus("#agree")
    person.keyboard.press("Enter")
    person.wait_for_selector("h1:text-is('Do you smoke?')")
    assert person.evaluate("document.activeElement.tagName") == "H1"
    assert person.locator("#section").count() == 0
    person.click("text=I would rather not answer")
    person.click("text=Next question")
    # The agreement covers all questions with the same words; the second one is required.
    person.wait_for_selector("#section")
    assert person.inner_text("#section .name") == f"Habits {MARKUP}"
    assert person.locator("button:text-is('I would rather not answer')").count() == 0
    person.click("form button.main")
    assert "close the page" in person.inner_text("form .alarm")
    choose(person, "no")
    send(person)
    person.wait_for_selector("[data-state=sent]")
    person.click("text=Finish")
    person.wait_for_selector("#ending")
    assert person.inner_text("#ending") == f"Thank you! {MARKUP}"
    assert person.evaluate(WIDE) <= 0

    # A question that is opened by itself asks for the same consent, and a copy of it, too.
    second = link.split("then=")[1].split("#")[0]
    stored = read(collector, second)
    assert stored["presentation"]["required"]
    copy = collector.as_admin("POST", f"/v1/collections/{second}/copies", {}).json["collection"]
    assert copy["presentation"] == stored["presentation"]
    change = collector.as_admin("PATCH", f"/v1/collections/{second}", {"presentation": {"ending": "Changed."}})
    assert change.reason == "invalid"
    plain = opened(collector, stored["title"], stored["policy"]["domain"], stored["policy"]["policy"])
    assert read(collector, plain)["presentation"] is None
    assert read(collector, plain)["wording_hash"] != stored["wording_hash"]
    alone = people(PHONE)
    alone.goto(f"{collector.url}/c/{second}")
    alone.wait_for_selector("#consent")
    alone.goto(f"{collector.url}/c/{plain}")
    alone.wait_for_selector("text=Do you drink?")
    assert alone.locator("#consent").count() == 0
