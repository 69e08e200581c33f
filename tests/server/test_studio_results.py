"""Studio and results as authors and readers use them: focus, shared budgets, few answers, groups, downloads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

import sfumato as sf
from sfumato.device import privatize_indices
from support.browsing import (
    DESKTOP,
    ILLNESSES,
    PHONE,
    People,
    answer,
    choose,
    enter_studio,
    high_low,
    opened,
    planned,
    read,
    send,
)
from support.collectors import Served, new_author

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.component

GRID = {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 2, "columns": 3}}
WIDTH = "document.documentElement.scrollWidth - innerWidth"
FOCUS = "document.activeElement === document.body ? '' : document.activeElement.outerHTML"


def fill(collector: Served, name: str, indices: Any) -> None:
    """Send reports of these values, by their indices."""
    mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
    reports = privatize_indices(mechanism, np.asarray(indices), sf.InsecureSeeded(1))
    assert collector.send(name, mechanism, reports, "all-its-reports").status == 200


def press(page: Page, selector: str, key: str = "Space") -> None:
    """Use a control by keyboard, and check that the focus stays in the form."""
    page.focus(selector)
    page.keyboard.press(key)
    focus = page.evaluate(FOCUS)
    assert focus, f"{selector} loses the focus"
    assert page.evaluate("document.activeElement.closest('form') !== null"), selector


def test_no_control_of_studio_loses_the_keyboard_focus(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#values", "\n".join(ILLNESSES))
    press(page, "input[name=one-of-keep][value=blocks]")
    press(page, "button:text-is('Add a group')")
    press(page, "button:text-is('Remove the last group')")
    press(page, "#across")
    press(page, "input[name=one-of-kind][value=product]")
    press(page, "button:text-is('Add a part')")
    press(page, "button:text-is('Remove the last part')")
    press(page, "input[name=one-of-submission][value=token]")
    press(page, "button:text-is('Add a question')")
    press(page, "button:text-is('Question 1')")
    press(page, "input[name=one-of-shared][value=false]")
    press(page, "button:text-is('Remove this question')")


def test_questions_are_copied_and_moved_and_a_draft_survives_the_tab(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "First?")
    page.click("text=Duplicate")
    assert page.input_value("#title") == "First? (copy)"
    page.click("text=Move earlier")
    again = page.context.new_page()
    page.close()
    again.goto(f"{collector.url}/studio")
    assert again.input_value("#title") == "First? (copy)"
    again.click("button:text-is('Question 2')")
    assert again.input_value("#title") == "First?"
    assert collector.admin not in str(again.context.storage_state())


def test_three_questions_share_a_budget_from_studio_to_results(
    people: People, collector: Served, pytestconfig: pytest.Config
) -> None:
    """Alpha: every interval at 1 - 1e-6 / 12 contains the true share, with 12 shares in all."""
    page = people(DESKTOP)
    enter_studio(page, collector)
    for number, subject in enumerate(("health", "home", "work")):
        if number:
            page.click("text=Add a question")
        page.fill("#title", f"Which of these about {subject}?")
        page.fill("#values", "\n".join(ILLNESSES))
    page.locator("#total-level").fill("60")
    page.wait_for_selector("#part-level:text-is('2')")
    # e^6 times the odds of 1 to 9.
    page.wait_for_selector("#together:has-text('from 10% to at most 97.9%')")
    page.locator("#total-level").fill("10")
    page.wait_for_selector("#part-level:text-is('1/3')")
    page.locator("#total-level").fill("60")
    page.wait_for_selector("#together:has-text('ε = 6')")
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    link = page.input_value("#done input")
    results = page.get_attribute("#all-results", "href")
    names = [link.partition("?")[0].rpartition("/")[2], *link.partition("then=")[2].partition("#")[0].split(",")]
    assert [read(collector, name)["policy"]["policy"]["epsilon"] for name in names] == ["2"] * 3

    many = 200 if pytestconfig.getoption("--soak") else 20
    for person in range(many):
        visitor = people(PHONE)
        language = ("en", "de")[person % 2]
        address, _, secret = link.partition("#")
        visitor.goto(f"{address}&lang={language}#{secret}")
        for number in range(3):
            visitor.wait_for_selector("#often li")
            choose(visitor, ILLNESSES[(person + number) % 2])
            if person == 0 and number == 0:
                assert "at most 97.9%" in visitor.inner_text("#total")
            send(visitor)
            visitor.wait_for_selector("[data-state=sent]")
            visitor.click("#outcome button.main")
        visitor.wait_for_selector("#end li:nth-child(3)[data-state=sent]")
        visitor.context.close()
        people.contexts.remove(visitor.context)
    reader = people(DESKTOP)
    reader.goto(f"{collector.url}{results}")
    for tag in ("", "-2", "-3"):
        reader.wait_for_selector(f"#reports{tag}:text-is('{many}')")
        reader.wait_for_selector(f"#chart{tag} svg")
    assert reader.locator(".panel h1").all_inner_texts() == [
        f"Which of these about {s}?" for s in ("health", "home", "work")
    ]
    z = float(stats.norm.isf(1e-6 / 24))
    for name in names:
        rows = collector.ask("GET", f"/v1/collections/{name}/estimate").json["rows"]
        assert len(rows) == 4
        for row, truth in zip(rows, [0.5, 0.5, 0, 0], strict=True):
            mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
            spread = float(np.sqrt(mechanism.worst_risk(many)))  # at most that of one share
            assert abs(row["frequency"] - truth) < z * spread


def test_a_draft_whose_second_question_is_refused_leaves_nothing_open(people: People, collector: Served) -> None:
    """Studio once kept the first question as it was opened, with the ε that the owner then lowered."""
    page, author = people(DESKTOP), new_author(collector)
    page.goto(f"{collector.url}/studio")
    page.fill("#admin-token", author)
    page.click("text=Use it")
    page.fill("#title", "Have you cheated?")
    page.click("text=Add a question")
    page.fill("#title", "Which of these?")
    page.fill("#values", "\n".join(ILLNESSES))
    page.check("input[name=one-of-shared][value=false]")
    page.check("input[name=one-of-keep][value=blocks]")
    page.check("#across")
    page.fill("#across-level", "high")
    page.click("button:text-is('Question 1')")
    page.fill("#values", "yes\nno")
    page.check("input[name=one-of-submission][value=token]")
    page.fill("#links", "2")
    page.click("text=Open the survey")
    page.wait_for_selector("form [role=alert]:has-text('across')")
    page.locator("#epsilon").fill("0.3")
    page.click("button:text-is('Question 2')")
    page.fill("#across-level", "3")
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    with page.expect_download() as download:
        page.click("#links-csv")
    opened = re.findall("[a-z2-7]{16}", Path(download.value.path()).read_text(encoding="utf-8").partition("#")[0])
    mine = collector.ask("GET", "/v1/mine", token=author).json["collections"]
    assert [one["id"] for one in mine] == opened
    assert [read(collector, name)["policy"]["policy"]["epsilon"] for name in opened] == ["0.3", "1"]
    assert [one["issued"] for one in mine] == [2, 2]
    people.expected = "422"


def test_studio_says_that_a_survey_may_be_open_if_its_response_is_lost(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Do you vote?")
    page.fill("#values", "yes\nno")
    page.route("**/v1/surveys", lambda route: route.abort())
    page.click("text=Open the survey")
    page.wait_for_selector("[role=alert]:has-text('Look in “My surveys” before you try again')")
    page.unroute("**/v1/surveys")
    page.reload()
    page.route("**/v1/surveys", lambda route: route.fulfill(status=201, body='{"questions": [{"coll'))
    page.click("text=Open the survey")
    page.wait_for_selector("[role=alert]:has-text('Look in “My surveys” before you try again')")
    people.expected = "ERR_FAILED"


def test_a_draft_cannot_be_changed_while_it_is_opened(people: People, collector: Served) -> None:
    """What Studio shows when the survey is open is what the collector received."""
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Do you drive?")
    page.fill("#values", "yes\nno")
    held: list[Route] = []
    page.route("**/v1/surveys", lambda route: held.append(route))
    with page.expect_request("**/v1/surveys"):
        page.click("text=Open the survey")
    page.focus("#title")
    page.keyboard.type("Changed?")
    page.locator("#epsilon").press("Home")
    assert page.input_value("#title") == "Do you drive?"
    assert page.input_value("#epsilon") == "1"
    held[0].continue_()
    page.wait_for_selector("text=The survey is open")
    page.click("text=Make another like it")
    page.fill("#title", "Do you walk?")


def test_studio_shows_no_plan_of_a_draft_that_was_changed_since(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Do you swim?")
    page.fill("#values", "yes\nno")
    planned(page, 400)
    held: list[Route] = []
    page.route("**/v1/plan", lambda route: held.append(route))
    with page.expect_request("**/v1/plan"):
        page.fill("#people", "5000")
    page.fill("#people", "20")
    with page.expect_request("**/v1/plan"):
        held[0].continue_()
    assert "With 400 people" in page.inner_text("#predicted")
    page.unroute("**/v1/plan")
    page.wait_for_selector("#predicted:has-text('With 20 people')")


def test_a_closed_survey_is_not_live_and_a_wrong_token_is_named(people: People, collector: Served) -> None:
    name = high_low(collector, "Closed?")
    fill(collector, name, [0, 1, 2, 3] * 10)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector(".live:text-is('live')")
    assert collector.as_admin("PATCH", f"/v1/collections/{name}", {"state": "closed"}).status == 200
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector(".live:has-text('closed')")
    assert page.locator(".live.on").count() == 0
    hidden = high_low(collector, "Hidden?", results="admin", listed=False)
    page.goto(f"{collector.url}/c/{hidden}/results")
    page.fill("#admin", "sfa_wrong")
    page.click("text=Show the results")
    page.wait_for_selector("[role=alert]:has-text('does not accept this token')")
    assert page.inner_text("#reports") == "–"
    people.expected = "401"


def test_few_answers_draw_no_impossible_shares(people: People, collector: Served) -> None:
    name = opened(collector, "Where, of four?", GRID, {"kind": "uniform", "epsilon": "0.2"})
    fill(collector, name, [0, 1, 2, 5])
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#chart .patch")
    rows = collector.ask("GET", f"/v1/collections/{name}/estimate").json["rows"]
    assert max(row["frequency"] for row in rows) > 1  # as an unbiased estimate from four answers may be
    for view in ("Map", "Bars"):
        page.click(f"button:text-is('{view}')")
        shown = page.locator("#chart svg text").all_text_contents()
        assert all("−" not in text for text in shown)
        assert all(float(text.rstrip("%")) <= 100 for text in shown if text.endswith("%") and text[0].isdigit())
    cells = page.locator("#table td").all_text_contents()
    assert all("−" not in cell for cell in cells)


def test_rare_values_have_an_upper_limit(people: People, collector: Served) -> None:
    name = opened(collector, "Rare?", {"values": ILLNESSES}, {"kind": "uniform", "epsilon": "3"})
    fill(collector, name, [0] * 1000 + [1] * 1000)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#table tbody")
    rows = collector.ask("GET", f"/v1/collections/{name}/estimate").json["rows"]
    text = page.inner_text("#table tr:has(th:has-text('hiv')) .verdict")
    assert text == f"at most {100 * rows[2]['high']:.1f}%"
    assert "Not enough answers" not in page.inner_text("#verdict")


def test_every_group_has_a_map_and_pictures_say_what_they_show(people: People, collector: Served) -> None:
    names = [opened(collector, f"Region {number}", GRID, {"kind": "uniform", "epsilon": "3"}) for number in (1, 2, 3)]
    for number, name in enumerate(names):
        fill(collector, name, [number] * 200 + [5] * 100)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{names[0]}/results?with={names[1]},{names[2]}")
    page.wait_for_selector("#chart figure:nth-child(3) svg")
    assert page.locator("#chart figcaption").all_inner_texts() == [f"Region {number} (300)" for number in (1, 2, 3)]
    page.evaluate(
        """() => { window.drawn = []
        const fill = CanvasRenderingContext2D.prototype.fillText
        CanvasRenderingContext2D.prototype.fillText = function (...a) { drawn.push(a[0]); fill.apply(this, a) } }"""
    )
    with page.expect_download() as saved:
        page.click("text=PNG of the chart")
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    lines = page.evaluate("window.drawn.slice(0, 4)")
    assert lines[:3] == [f"Region {number}: 300 answers" for number in (1, 2, 3)]
    assert lines[3].startswith("95% intervals, unbiased estimate, 20")
    with page.expect_download() as saved:
        page.click("text=SVG of the chart")
    svg = saved.value.path().read_text(encoding="utf-8")
    assert "Region 2: 300 answers" in svg
    assert "class=" not in svg
    with page.expect_download() as saved:
        page.click("button:text-is('JSON')")
    estimates = json.loads(Path(saved.value.path()).read_text(encoding="utf-8"))
    assert [(each["title"], each["reports"], each["method"], each["date"][:2]) for each in estimates] == [
        (f"Region {number}", 300, "unbiased", "20") for number in (1, 2, 3)
    ]
    # The address holds the options.
    page.select_option("#sort", "share")
    page.click("button:text-is('Bars')")
    assert "sort=share" in page.input_value("#permalink input")
    page.fill("#filter", "row 1, column 2")
    page.wait_for_selector("#table caption:has-text('1 of 6 values match')")
    page.reload()
    page.wait_for_selector("#chart svg")
    assert page.locator("#chart .patch").count() == 0
    assert page.locator("#table tbody tr").count() == 1


def test_leaving_links_that_are_shown_once_asks_first(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "One-time?")
    page.fill("#values", "yes\nno")
    page.click("text=One answer for each one-time link")
    page.fill("#links", "2")
    page.click("text=Open the survey")
    page.wait_for_selector("text=Download the links (CSV)")
    asked: list[str] = []

    def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    page.on("dialog", stay)
    with page.expect_download():
        page.click("text=Download the links (CSV)")
    page.reload()
    assert asked == []
    page.fill("#title", "Again?")
    page.click("text=Open the survey")
    page.wait_for_selector("text=Download the links (CSV)")
    page.reload()
    assert asked == ["beforeunload"]


def test_a_survey_is_made_and_read_by_keyboard_alone(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    page.goto(f"{collector.url}/studio")

    def go_to(selector: str) -> None:
        for _ in range(200):
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"the tab key does not reach {selector}")

    go_to("#admin-token")
    page.keyboard.type(collector.admin)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Forget it")
    go_to("#title")
    page.keyboard.type("By keyboard?")
    go_to("#values")
    page.keyboard.type("yes\nno")
    for name in ("submission", "results"):
        go_to(f"input[name=one-of-{name}]:checked")
        page.keyboard.press("ArrowUp")  # anybody
    go_to("button[type=submit].main")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The survey is open")
    page.goto(page.input_value("#done input"))
    page.wait_for_selector("#often li")
    go_to("input[type=radio]")
    page.keyboard.press("Space")
    page.wait_for_selector("#often:has-text('If you answer “yes”')")
    go_to("form button.main")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-state=sent]")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    go_to("a[href$='/results']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#reports:text-is('1')")
    go_to("summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=would contain its true share")


#: Labels that are wider than a phone, a tag, an emoji, and a label that is read from right to left.
HARD = ["Donaudampfschifffahrtsgesellschaftskapitän" * 3, f"https://example.org/{'a' * 90}", "<b>🙂</b>", "لا أعرف"]


def test_fifty_questions_go_from_studio_to_results_on_a_phone(people: People, collector: Served) -> None:
    many = 50
    page = people(PHONE)
    enter_studio(page, collector)
    page.fill("#values", "\n".join(HARD))
    # The draft of one question, as Studio stores it, becomes one of fifty.
    page.evaluate(
        """([many, titles]) => {
            const draft = JSON.parse(localStorage.getItem("sfumato-studio-draft"))
            const title = (i) => titles[i % titles.length] + " " + (i + 1)
            draft.questions = Array.from({ length: many }, (_, i) => ({ ...draft.questions[0], title: title(i) }))
            localStorage.setItem("sfumato-studio-draft", JSON.stringify({ ...draft, total: 100 }))
        }""",
        [many, HARD],
    )
    page.reload()
    page.wait_for_selector("#together:has-text('All 50 questions together have ε = 10')")
    assert page.inner_text("#part-level") == "0.2"
    assert page.evaluate(WIDTH) <= 0
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    assert page.evaluate(WIDTH) <= 0
    link, results = page.input_value("#done input"), page.get_attribute("#all-results", "href")
    visitor = people(PHONE)
    visitor.goto(link)
    visitor.wait_for_selector("#total")
    assert "Question 1 of 50" in visitor.inner_text("main")
    for number in range(2):
        visitor.wait_for_selector(f".step:text-is('Question {number + 1} of 50')")
        choose(visitor, HARD[1])
        send(visitor)
        visitor.wait_for_selector("[data-state=sent]")
        assert visitor.evaluate(WIDTH) <= 0
        visitor.click("text=Next question")
    # The last question, from the history of the page, leads to the end with all questions.
    visitor.evaluate("dispatchEvent(new PopStateEvent('popstate', { state: { question: 50 } }))")
    visitor.wait_for_selector("#end li:nth-child(50)[data-state=open]")
    assert visitor.locator("#end li[data-state=sent]").count() == 2
    assert visitor.evaluate(WIDTH) <= 0
    page.goto(f"{collector.url}{results}")
    page.wait_for_selector("#reports-50:text-is('0')")
    page.wait_for_selector("#reports:text-is('1')")
    page.wait_for_selector("#permalink input")
    assert page.evaluate(WIDTH) <= 0
    assert page.locator("main b").count() == 0


def test_a_multiple_choice_goes_from_studio_to_results(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Which of these have you had?")
    page.click("text=Any of a list")
    page.fill("#values", "flu\nhiv\nlong covid")
    page.wait_for_selector("#predicted:has-text('the share of each option')")
    page.wait_for_selector("#goal:has-text('For ± 10% you need about')")
    assert page.locator("#plan-table tbody tr").count() > 2
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    link = page.input_value("#done input")
    name = link.partition("#")[0].rpartition("/")[2]
    assert read(collector, name)["question"] == {"question": "marginals", "order": 1}
    visitor = people(PHONE)
    visitor.goto(link)
    visitor.wait_for_selector("#often li")
    for option in ("flu", "long covid"):
        visitor.get_by_label(option, exact=True).check()
    visitor.click("text=Check my choice")
    visitor.wait_for_selector("#confirm:has-text('flu, long covid')")
    visitor.click("#confirm >> text=Randomize and send")
    visitor.wait_for_selector("[data-state=sent]")
    assert "code" not in visitor.inner_text("#drawn")
    fill(collector, name, [5] * 500 + [1] * 500)  # flu and long covid, or long covid alone
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#answer-table tbody")
    assert page.locator("#answer-table tbody th").all_inner_texts() == ["flu", "hiv", "long covid"]


def test_pages_that_do_not_exist_are_pages_for_people_and_json_for_programs(people: People, collector: Served) -> None:
    page = people(PHONE)
    response = page.goto(f"{collector.url}/nowhere")
    assert response is not None
    assert response.status == 404
    assert page.inner_text("h1") == "This page does not exist"
    assert response.headers["content-security-policy"].startswith("default-src 'self'")
    people.faults = [fault for fault in people.faults if "404" not in fault]
    assert collector.ask("GET", "/nowhere").reason == "not-found"
    assert collector.ask("GET", "/v1/nowhere", headers={"Accept": "text/html"}).reason == "not-found"
    assert collector.ask("GET", "/<b>", headers={"Accept": "text/html"}).body.count(b"<b>") == 0


def test_paper_has_the_content_and_no_controls(people: People, collector: Served) -> None:
    names = [f"Krankheit {i}" for i in range(30)]
    many = opened(collector, "Many on paper?", {"values": names}, {"kind": "uniform", "epsilon": "1"})
    name = high_low(collector, "On paper?")
    fill(collector, name, [0, 1, 2, 3] * 50)
    page = people(DESKTOP, "dark")
    controls = ":is(button, select, textarea, input:not([type=radio], [type=checkbox])):visible"

    # The results: charts and tables on white.
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#table tbody")
    page.wait_for_selector("#certificate a")
    assert page.locator(controls).count() > 3
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(controls).count() == 0
    assert page.locator(".top").is_hidden()
    assert page.locator("#table").is_visible()
    assert page.locator("#chart svg").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"

    # A question: all of its answers, also those that a search hides, and what the page promises.
    page.emulate_media(media="screen", color_scheme="dark")
    page.goto(f"{collector.url}/c/{many}")
    page.wait_for_selector("#often li")
    page.fill("input[type=search]", "Krankheit 7")
    assert page.locator(".choice:visible").count() == 1
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(controls).count() == 0
    assert page.locator(".choice:visible").count() == 30
    assert page.locator(".promise #bounds li").first.is_visible()
    # The list does not scroll, so the last answer is on paper, too.
    listed = "document.querySelector('.choices')"
    assert page.evaluate(f"{listed}.scrollHeight - {listed}.clientHeight") < 5


# -- my surveys ----------------------------------------------------------------------------------------------


def enter_my_surveys(page: Page, collector: Served, token: str) -> None:
    page.goto(f"{collector.url}/surveys")
    page.fill("#admin-token", token)
    page.click("text=Show my surveys")
    page.wait_for_selector("text=Forget it")


def test_an_owner_manages_a_survey(people: People, collector: Served) -> None:
    token, long = new_author(collector), "Donaudampfschifffahrtsgesellschaft" * 5
    policy = {"domain": {"values": ILLNESSES}, "policy": {"kind": "uniform", "epsilon": "1"}}
    about = {"title": long, "policy": policy, "n": 100, "results": "admin", "listed": False}
    name = collector.ask("POST", "/v1/collections", about, token).json["collection"]["id"]
    high_low(collector, "Of somebody else")
    page = people(PHONE)
    enter_my_surveys(page, collector, token)
    assert page.locator("[data-survey]").count() == 1
    fact = "[data-fact='{}']:text-is('{}')".format

    # Close and reopen by keyboard; the focus stays on the button.
    page.focus("button:text-is('Close')")
    page.keyboard.press("Enter")
    page.wait_for_selector(fact("state", "closed"))
    assert page.evaluate("document.activeElement.textContent") == "Reopen"
    page.keyboard.press("Enter")
    page.wait_for_selector(fact("state", "open"))
    assert read(collector, name)["state"] == "open"

    page.click("summary:has-text('Manage')")
    page.fill(f"#count-{name}", "2")
    page.click("text=Create links")
    with page.expect_download() as download:
        page.click("text=Download the links (CSV)")
    links = [line.partition(",")[2] for line in download.value.path().read_text(encoding="utf-8").splitlines()[1:]]
    page.click("text=I have saved it")
    page.wait_for_selector(fact("one-time links", "0 of 2 used"))
    answer(people(), links[0], "flu")

    page.fill(f"#label-{name}", "Pilot")
    page.click("text=Save the name")
    page.wait_for_selector("h2:text-is('Pilot')")
    page.wait_for_selector(fact("one-time links", "1 of 2 used"))
    page.fill(f"#closes-{name}", "2020-01-01T00:00")
    page.click("text=Save the dates")
    page.wait_for_selector(fact("state", "closed, the end date is over"))
    page.click("text=Reopen without an end date")
    page.wait_for_selector(fact("state", "open"))

    page.click("summary:text-is('Owners and readers')")
    page.fill(f"#grantee-{name}", "Board")
    page.click("text=Create the role")
    link = page.input_value("input[aria-label='Link for the reader']")
    page.click("text=I have saved it")
    reader = people(PHONE)
    reader.goto(link)
    reader.wait_for_selector("#reports:text-is('1')")
    assert "sfr_" not in reader.url
    assert "sfr_" not in reader.input_value("#permalink input")
    page.click("summary:text-is('Log')")
    page.wait_for_selector("td:text-is('grant')")
    page.wait_for_selector("td:has-text('label: Pilot')")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.fill(f"#copy-{name}", "Second round")
    page.click("button:text-is('Duplicate')")
    page.wait_for_selector("[data-survey] >> nth=1")
    copy = next(one for one in collector.ask("GET", "/v1/mine", token=token).json["collections"] if one["id"] != name)
    assert (copy["title"], copy["state"], copy["reports"], copy["results"]) == ("Second round", "open", 0, "admin")

    page.click("text=Delete the survey")
    assert page.evaluate("document.activeElement.textContent") == "Cancel"
    page.keyboard.press("Escape")
    assert collector.ask("GET", f"/v1/collections/{name}", token=token).json["reports"] == 1
    page.click("text=Delete the survey")
    page.click("dialog button.danger")
    page.wait_for_selector(f"[data-survey='{name}']", state="detached")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    assert collector.ask("GET", f"/v1/collections/{name}").status == 404


def test_my_surveys_says_what_is_missing(people: People, collector: Served) -> None:
    page = people(PHONE)
    page.goto(f"{collector.url}/surveys")
    page.fill("#admin-token", "sfu_unknown")
    page.click("text=Show my surveys")
    page.wait_for_selector("[role=alert]:has-text('does not accept this token')")
    page.fill("#admin-token", new_author(collector))
    page.keyboard.press("Enter")
    page.wait_for_selector("#empty:has-text('You have no surveys yet')")
    page.route("**/v1/mine*", lambda route: route.abort())
    page.reload()
    page.wait_for_selector("[role=alert]:has-text('cannot be reached')")
    page.unroute("**/v1/mine*")
    page.click("button:text-is('Try again')")
    page.wait_for_selector("#empty")
    people.expected = "401|ERR_FAILED"


@pytest.mark.parametrize("is_known", [True, False])
def test_my_surveys_shows_nothing_of_a_token_that_was_replaced(
    people: People, collector: Served, *, is_known: bool
) -> None:
    earlier, later = new_author(collector) if is_known else "sfu_unknown", new_author(collector)
    if is_known:
        body = {
            "title": "Of the earlier token?",
            "policy": {"domain": {"size": 2}, "policy": {"kind": "uniform", "epsilon": "1"}},
        }
        assert collector.ask("POST", "/v1/collections", body, earlier).status == 201
    page = people(PHONE)
    page.goto(f"{collector.url}/surveys")
    held: list[Route] = []
    page.route("**/v1/mine*", lambda route: held.append(route))
    for token in (earlier, later):
        page.fill("#admin-token", token)
        with page.expect_request("**/v1/mine*"):
            page.keyboard.press("Enter")
    held[1].continue_()
    page.wait_for_selector("#empty")
    with page.expect_response("**/v1/mine*"):
        held[0].continue_()
    page.wait_for_timeout(100)
    assert page.locator("text=Of the earlier token?").count() == 0
    assert page.evaluate("sessionStorage.getItem('sfumato-admin-token')") == later
    people.expected = "401"


def test_studio_dates_a_survey_and_my_surveys_moves_its_start(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "In the future?")
    page.fill("#values", "yes\nno")
    page.fill("#opens", "2090-01-01T09:00")
    page.fill("#closes", "2090-02-01T09:00")
    page.click("text=Open the survey")
    page.wait_for_selector("h2:has-text('The survey opens on 1 Jan 2090')")
    name = page.input_value("#done input").partition("#")[0].rpartition("/")[2]
    assert read(collector, name)["closes"] - read(collector, name)["opens"] == 31 * 86_400
    page.click("#done >> text=My surveys")  # the tab keeps the token
    page.wait_for_selector(f"[data-survey='{name}'] [data-fact=state]:text-is('not open yet')")
    page.click(f"[data-survey='{name}'] summary")
    assert page.input_value(f"#opens-{name}") == "2090-01-01T09:00"
    page.fill(f"#opens-{name}", "2090-01-31T09:00")
    page.click("text=Save the dates")
    page.wait_for_selector(f"[data-survey='{name}'] [data-fact=opens]:has-text('31 Jan 2090')")
    assert read(collector, name)["closes"] - read(collector, name)["opens"] == 86_400
