"""The results page: many questions, options in the address, groups, days, frames of other sites, downloads."""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.device import privatize_indices
from support.browsing import DESKTOP, ILLNESSES, PHONE, Held, People, high_low, opened, read
from support.collectors import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.component

STRONG = {"kind": "uniform", "epsilon": "4"}
NO_OVERFLOW = "document.documentElement.scrollWidth <= innerWidth"


def fill(collector: Served, name: str, indices: Any, batch: str = "all-its-reports") -> None:
    """Send reports of these values, by their indices."""
    mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
    reports = privatize_indices(mechanism, np.asarray(indices), sf.InsecureSeeded(1))
    assert collector.send(name, mechanism, reports, batch).status == 200


def saved(page: Page, button: str) -> str:
    """Return the content of the file that a button saves."""
    with page.expect_download() as download:
        page.click(f"button:text-is('{button}')")
    return str(download.value.path().read_text(encoding="utf-8"))


def with_token(page: Page, collector: Served, path: str) -> None:
    """Open a page with the admin token in its tab."""
    page.goto(f"{collector.url}/docs")
    page.evaluate("token => sessionStorage.setItem('sfumato-admin-token', token)", collector.admin)
    page.goto(f"{collector.url}{path}")


def test_a_survey_of_many_questions_is_on_one_page(people: People, collector: Served) -> None:
    """More questions than a browser opens connections for: streams would block the page."""
    many = 12
    names = [high_low(collector, f"Question {number + 1}?", listed=False) for number in range(many)]
    fill(collector, names[0], [0, 1, 2, 3] * 50)
    fill(collector, names[-1], [0] * 60)
    page = people(PHONE)
    page.goto(f"{collector.url}/c/{names[0]}/results?then={','.join(names[1:])}&sort=label#question-{many}")
    page.wait_for_selector(f"#reports-{many}:text-is('60')")
    page.wait_for_selector("#reports:text-is('200')")
    page.wait_for_function("n => document.querySelectorAll('.live.on').length === n", arg=many)
    assert page.evaluate(NO_OVERFLOW)
    # The jumps are a list that opens by keyboard, and each question leads back to it.
    page.focus("#questions summary")
    page.keyboard.press("Enter")
    assert page.locator("#questions a").all_inner_texts() == [f"Question {number + 1}?" for number in range(many)]
    page.click("#questions >> text=Question 12?")
    assert page.evaluate("location.hash") == f"#question-{many}"
    page.click(f"#question-{many} >> text=Back to the list of questions")
    # An option holds for all questions and is in the link.
    page.click("#question-1 summary:text-is('Method of estimation')")
    page.select_option("#level", "0.99")
    page.wait_for_selector(f"#table-{many} caption:has-text('99% intervals')")
    page.click("#question-1 summary:text-is('What do the intervals mean?')")  # the explanation is one click away
    page.wait_for_selector("text=99% of the intervals of a value would contain its true share >> visible=true")
    page.wait_for_selector("#table caption:has-text('99% intervals')")
    assert page.input_value(f"#level-{many}") == "0.99"
    assert "level=0.99" in page.input_value("#permalink input")
    assert page.locator("#table tbody th").all_inner_texts()[0].startswith("cancer")
    # One question is one page, without jumps.
    page.goto(f"{collector.url}/c/{names[0]}/results")
    page.wait_for_selector("#table tbody")
    assert page.locator("#questions").count() == 0
    assert page.title() == "Question 1?: results"


def test_a_link_holds_order_filter_method_and_level(people: People, collector: Served) -> None:
    values = ["value 10", "value 9", "<b>other</b>", "value 100"]
    name = opened(collector, "In which order?", {"values": values}, STRONG, listed=False)
    fill(collector, name, [0] * 100 + [1] * 300 + [2] * 500 + [3] * 700)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")

    def order() -> list[str]:
        page.wait_for_selector("#table tbody")
        texts = page.locator("#table tbody th").all_text_contents()
        drawn = page.locator("#chart svg text").all_text_contents()
        assert [text for text in drawn if text in values] == texts  # the chart has the same order
        return texts

    assert order() == values
    page.select_option("#sort", "label")
    assert order() == ["<b>other</b>", "value 9", "value 10", "value 100"]
    page.select_option("#sort", "share")
    assert order() == ["value 100", "<b>other</b>", "value 9", "value 10"]
    page.fill("#filter", "VALUE")
    page.wait_for_selector("#table caption:has-text('3 of 4 values match')")
    page.click("text=Method of estimation")
    page.select_option("#method", "mle")
    page.wait_for_selector("#table caption:has-text('maximum likelihood')")
    link = page.input_value("#permalink input")
    again = people(PHONE, "dark")
    again.goto(link)
    again.wait_for_selector("#table caption:has-text('maximum likelihood')")
    assert again.locator("#table tbody th").all_text_contents() == ["value 100", "value 9", "value 10"]
    assert again.input_value("#filter") == "VALUE"
    assert again.evaluate(NO_OVERFLOW)
    again.fill("#filter", "no such value")
    again.wait_for_selector("text=No value has this name.")
    again.wait_for_selector("#chart svg", state="detached")
    # Every file says what it shows. The picture is tested with the maps.
    rows = list(csv.DictReader(io.StringIO(saved(page, "CSV"))))
    assert {(row["title"], row["reports"], row["method"], row["level"]) for row in rows} == {
        ("In which order?", "1600", "mle", "0.95")
    }
    assert all(row["date"].startswith("20") for row in rows)
    svg = saved(page, "SVG of the chart")
    assert "In which order?: 1,600 answers" in svg
    assert "95% intervals, maximum likelihood estimate, 20" in svg
    assert "<b>" not in svg


def test_answers_to_a_question_are_saved_with_method_and_date(people: People, collector: Served) -> None:
    name = opened(collector, "How many?", {"size": 4}, STRONG, question="mean", listed=False)
    fill(collector, name, [0, 1, 1, 3] * 100)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#reports:text-is('400')")
    (row,) = csv.DictReader(io.StringIO(saved(page, "CSV")))
    assert (row["title"], row["reports"], row["method"], row["level"]) == ("How many?", "400", "unbiased", "0.95")
    assert row["date"].startswith("20")


def test_a_value_is_open_only_if_its_interval_contains_0(people: People, collector: Served) -> None:
    """A share of 13% with an interval of 5% to 21% is a finding, although the interval is wider than the share."""
    weak = opened(collector, "At ε = 1?", {"values": list("abcd")}, {"kind": "uniform", "epsilon": "1"}, listed=False)
    fill(collector, weak, [0] * 720 + [1] * 130 + [2] * 130 + [3] * 20)
    strong = opened(collector, "At ε = 4?", {"values": list("abcd")}, STRONG, listed=False)
    fill(collector, strong, [0] * 950 + [1] * 30 + [2] * 20)
    page, words = people(DESKTOP), []
    for name in (weak, strong):
        page.goto(f"{collector.url}/c/{name}/results")
        page.wait_for_selector("#table tbody tr")
        for row in collector.ask("GET", f"/v1/collections/{name}/estimate").json["rows"]:
            shown = page.text_content(f"#table tbody th:has-text('{row['value']}')")
            bar = page.locator(f"#chart g.first:has-text('%') >> nth={'abcd'.index(row['value'])}")
            kind = "share" if row["low"] > 0 else "at most" if row["high"] <= 0.1 else "not enough"
            assert (
                shown
                == row["value"]
                + {
                    "share": "",
                    "at most": f"at most {100 * row['high']:.1f}%",
                    "not enough": "not enough answers yet",
                }[kind]
            )
            assert ("unsure" in str(bar.get_attribute("class"))) == (kind != "share")
            is_wide = row["high"] - row["low"] > row["frequency"]
            words.append((kind, is_wide, row["high"] <= 0.1))
    # The cases that were hidden: wide intervals above 0, one of them with a low upper limit.
    assert {("share", True, False), ("share", True, True), ("at most", True, True), ("not enough", True, False)} <= set(
        words
    )
    assert "Every interval lies above 0 or ends at 10% or less. 1 value is rare: at most" in page.inner_text("#verdict")


def test_a_multiple_choice_has_a_chart_to_save(people: People, collector: Served) -> None:
    options = ["flu", "hiv", "long covid"]
    domain = {"product": {option: ["no", "yes"] for option in options}, "order": options}
    policy = {"kind": "uniform", "epsilon": "2"}
    name = opened(collector, "Which of these?", domain, policy, question="marginals:1", listed=False)
    fill(collector, name, [0b100] * 600 + [0b101] * 300 + [0b000] * 100)
    page = people(PHONE)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#reports:text-is('1,000')")
    assert page.locator("#distribution svg .bar").count() == len(options)
    answers = collector.ask("GET", f"/v1/collections/{name}/estimate").json["answers"]
    shares = [f"{100 * row['value']:.1f}%" for row in answers if row["answer"].endswith("=yes") and row["low"] > 0]
    assert len(shares) == 2
    drawn = page.locator("#distribution svg text").all_text_contents()
    assert set(options) | set(shares) <= set(drawn)
    assert page.evaluate(NO_OVERFLOW)
    svg = saved(page, "SVG of the chart")
    assert "Which of these?: 1,000 answers" in svg
    assert "long covid" in svg
    empty = opened(collector, "How many?", {"size": 4}, STRONG, question="mean", listed=False)
    page.goto(f"{collector.url}/c/{empty}/results")
    page.wait_for_selector("#permalink input")
    page.click("button:text-is('SVG of the chart')")
    page.wait_for_selector("[role=alert]:has-text('There is no chart.')")


def test_only_the_same_question_is_called_so_and_other_values_are_not_compared(
    people: People, collector: Served
) -> None:
    uniform = {"kind": "uniform", "epsilon": "1"}

    def scale(title: str, low: str, **about: Any) -> str:
        ends = {"low_label": low, "high_label": "the other end"}
        return opened(collector, title, {"low": 1, "high": 6}, uniform, presentation=ends, **about)

    def marks(title: str, *options: str) -> str:
        domain = {"product": {option: ["no", "yes"] for option in options}, "order": list(options)}
        return opened(collector, title, domain, uniform, question="marginals:1")

    def place(title: str, north: int) -> str:
        grid = {"latitude": [0, north], "longitude": [0, 1], "rows": 2, "columns": 2}
        return opened(collector, title, {"grid": grid}, uniform)

    mood = scale("How are you?", "bad")
    again, turned, other = scale("how  are you?", "bad"), scale("How are you?", "good"), scale("How was it?", "bad")
    illness, ill, animal = (marks("Which of these?", *options) for options in (("flu", "hiv"), ("flu", "hiv"), "ab"))
    here, hereabouts, there = (place("Where?", north) for north in (1, 1, 2))
    page = people(PHONE)

    def offered(name: str) -> dict[str, list[str | None]]:
        page.goto(f"{collector.url}/c/{name}/results")
        page.wait_for_selector("#compare:visible")
        return {
            field.locator("legend").inner_text().split("\n")[0]: [
                one.get_attribute("value") for one in field.locator("input").all()
            ]
            for field in page.locator("#compare fieldset:visible").all()
        }

    assert offered(mood) == {"The same question": [again], "Other questions with the same values": [turned, other]}
    assert page.evaluate(NO_OVERFLOW)
    assert offered(illness) == {"The same question": [ill]}
    assert offered(here) == {"The same question": [hereabouts]}
    for first, second in ((illness, animal), (here, there)):
        page.goto(f"{collector.url}/c/{first}/results?with={second}")
        page.wait_for_selector("text=These cannot be compared")
        response = collector.ask("GET", f"/v1/collections/{first}/comparison?with={second}")
        assert "the same values" in response.json["error"]["message"]


def test_any_number_of_groups_is_compared(people: People, collector: Served) -> None:
    """Five groups: their shares side by side, and differences with intervals that hold together."""
    names = [opened(collector, f"Region {number}", {"values": ILLNESSES}, STRONG) for number in range(1, 6)]
    for number, name in enumerate(names):
        fill(collector, name, [0] * 300 + [1] * (100 + 300 * (number == 4)) + [2] * 200)
    page = people(PHONE)
    page.goto(f"{collector.url}/c/{names[0]}/results")
    page.wait_for_selector("#compare:visible")
    assert page.locator("section[aria-label='Differences between groups']").count() == 0
    for number in range(2, 6):
        page.check(f"#compare label:has-text('Region {number}') input")
    page.click("button:text-is('Compare')")
    page.wait_for_selector("#differences tbody tr")
    assert page.inner_text("h1") == "Region 1, and 4 other groups"
    assert page.inner_text("#reports") == "3,300"
    assert page.locator("#chart .number-of-group").all_text_contents()[:5] == list("12345")
    heads = page.locator("#table thead th.group").all_inner_texts()
    assert [head.split("\n")[0] for head in heads] == [f"{number}. Region {number}" for number in range(1, 6)]
    assert heads[4].endswith("900 answers")
    path = f"/v1/collections/{names[0]}/comparison?with={','.join(names[1:])}"
    rows = collector.ask("GET", path).json["rows"]
    clear = sum(row["low"] > 0 or row["high"] < 0 for row in rows)
    assert 0 < clear < len(rows) == 16
    page.wait_for_selector(f"text={clear} of 16 differences are clear")
    flu = "#differences tr:has(th:has-text('flu')):has(th:has-text('5. Region 5 − 1. Region 1'))"
    assert page.inner_text(f"{flu} td:last-child") == "higher"
    assert page.evaluate(NO_OVERFLOW)
    page.select_option("#against", "pairs")
    page.wait_for_selector("#differences caption:has-text('Every two groups')")
    assert page.locator("#differences tbody tr").count() == 40
    page.fill("#filter", "flu")
    page.wait_for_function("() => document.querySelectorAll('#differences tbody tr').length === 10")
    assert "against=pairs" in page.url
    assert page.is_checked("#compare label:has-text('Region 3') input")
    table = list(csv.DictReader(io.StringIO(saved(page, "CSV of the differences"))))
    assert len(table) == 40
    assert (table[0]["group"], table[0]["minus"], table[0]["reports"]) == ("Region 1", "Region 2", "600")
    assert {row["method"] for row in table} == {"unbiased"}


def test_owners_see_answers_per_day_and_others_do_not(people: People, collector: Served) -> None:
    name = high_low(collector, "On which day?", keep_days=30)
    fill(collector, name, [0, 1] * 20)
    fill(collector, name, [2] * 5, "later-reports")
    stranger = people(DESKTOP)
    stranger.goto(f"{collector.url}/c/{name}/results")
    stranger.wait_for_selector("#table tbody")
    assert stranger.locator("#days").is_hidden()
    assert collector.ask("GET", f"/v1/collections/{name}/days").reason == "unauthorized"
    page = people(PHONE)
    with_token(page, collector, f"/c/{name}/results")
    page.wait_for_selector("#days svg .day")
    (day,) = collector.as_admin("GET", f"/v1/collections/{name}/days").json["days"]
    assert page.locator("#days svg .day title").text_content() == f"{day['day']}: 45 answers"
    assert "Only owners see this" in page.inner_text("#days")
    page.focus("#days summary")
    page.keyboard.press("Enter")
    assert page.inner_text("#days tbody tr").split() == [day["day"], "45"]
    assert page.evaluate(NO_OVERFLOW)
    (row,) = csv.DictReader(io.StringIO(saved(page, "CSV of the days")))
    assert (row["title"], row["day"], row["answers"]) == ("On which day?", day["day"], "45")


@contextmanager
def other_site(address: str) -> Iterator[str]:
    """Serve a page of another origin with a frame."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            icon = "<link rel=icon href='data:,'>"
            self.wfile.write(f"<!doctype html>{icon}<iframe src='{address}' width=390 height=480></iframe>".encode())

        def log_message(self, *arguments: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_other_sites_show_public_results_in_a_frame(people: People, collector: Served) -> None:
    title = 'A "quoted" <question>?'
    name, hidden = high_low(collector, title, listed=False), high_low(collector, results="admin", listed=False)
    fill(collector, name, [0] * 500 + [1] * 200)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#table tbody")
    page.click("text=Method of estimation")
    page.select_option("#level", "0.9")
    code = page.input_value("#embed input")
    assert code.startswith(f'<iframe src="{collector.url}/c/{name}/embed?level=0.9" ')
    assert 'title="Results: A &quot;quoted&quot; &lt;question&gt;?"' in code

    tokens: list[str | None] = []
    with other_site(f"{collector.url}/c/{name}/embed?level=0.9&sort=label") as address:
        site = people(DESKTOP)
        site.on("request", lambda request: tokens.append(request.headers.get("authorization")))
        site.goto(address)
        frame = site.frame_locator("iframe")
        frame.locator("svg .bar").first.wait_for()
        assert frame.locator("h1").inner_text() == title
        about = frame.locator("#about").inner_text()
        assert about.startswith("700 answers, 90% intervals, unbiased estimate, 20")
        assert frame.locator("button, input, form, select").count() == 0
    with other_site(f"{collector.url}/c/{name}/results") as address:
        with site.expect_console_message(lambda message: "frame-ancestors 'none'" in message.text):
            site.goto(address)
        assert site.frame_locator("iframe").locator("main").count() == 0
    people.faults = [fault for fault in people.faults if not re.search("a request to|frame-ancestors", fault)]

    # The page uses no token, even if the tab has one, and shows no hidden results.
    own = people(PHONE, "dark")
    own.on("request", lambda request: tokens.append(request.headers.get("authorization")))
    with_token(own, collector, f"/c/{hidden}/embed")
    own.wait_for_selector("text=The results of this survey are not public.")
    own.goto(f"{collector.url}/c/{name}/embed")
    own.wait_for_selector("svg .bar")
    assert own.evaluate(NO_OVERFLOW)
    assert set(tokens) == {None}


def test_only_the_embedded_page_may_be_in_a_frame(collector: Served) -> None:
    name, hidden = high_low(collector, listed=False), high_low(collector, results="admin", listed=False)

    def policy(path: str) -> str:
        return str(collector.ask("GET", path).headers["content-security-policy"])

    embedded = policy(f"/c/{name}/embed")
    assert "frame-ancestors *" in embedded
    assert "default-src 'none'" in embedded
    assert "form-action 'none'" in embedded
    assert "unsafe" not in embedded
    others = (
        f"/c/{hidden}/embed",
        f"/c/{name}/results",
        f"/c/{name}",
        "/",
        "/studio",
        "/surveys",
        "/static/embed.html",
    )
    for path in others:
        assert "frame-ancestors 'none'" in policy(path), path
    assert "frame-ancestors 'none'" in policy(f"/v1/collections/{name}/estimate")
    assert collector.ask("GET", "/c/aaaaaaaaaaaaaaaa/embed").reason == "not-found"


def test_a_survey_that_closes_is_no_longer_live(people: People, collector: Served) -> None:
    name = high_low(collector, "Until when?", listed=False)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector(".live.on:text-is('live')")
    assert collector.as_admin("PATCH", f"/v1/collections/{name}", {"state": "closed"}).status == 200
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.wait_for_selector(".live:not(.on):has-text('closed: no more answers are accepted')")
    later = high_low(collector, "Not yet?", listed=False, opens=4_000_000_000)
    page.goto(f"{collector.url}/c/{later}/results")
    page.wait_for_selector(".live:not(.on):text-is('not open yet')")


def test_readers_without_a_token_are_informed_of_steps(people: People, collector: Served) -> None:
    """A page that only says "live" would hide why the number of answers stands still."""
    name = high_low(collector, listed=False, release_every=12)
    fill(collector, name, [0, 1, 2, 3] * 5)
    page = people(PHONE)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector(".live.on:text-is('live, in steps of at least 12 answers')")
    page.goto(f"{collector.url}/c/{name}/results?lang=de")
    page.wait_for_selector(".live.on:text-is('aktuell, in Schritten von mindestens 12 Antworten')")
    page.goto(f"{collector.url}/c/{high_low(collector, listed=False)}/results?lang=en")
    page.wait_for_selector(".live.on:text-is('live')")


def test_a_mean_of_clipped_numbers_says_so(people: People, collector: Served) -> None:
    """Half of the people have more than the greatest number, and their number counts as it."""
    domain, rule = {"low": 0, "high": 100_000, "bins": 20}, {"kind": "uniform", "epsilon": "2"}
    name = opened(collector, "Income?", domain, rule, question="mean")
    fill(collector, name, [*range(20)] * 100 + [19] * 2000)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#answer .big")
    assert "mean of numbers from 0 to 100000. A number outside counts as the nearer" in page.inner_text("#question")
    assert "Warning: too many people have the value" in page.inner_text("#warned")
    # People cannot choose a number outside a short scale.
    name = opened(collector, "How content?", {"low": 1, "high": 6}, rule, question="mean")
    fill(collector, name, [0, 1, 2, 3, 4] * 100)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#answer .big")
    assert "outside" not in page.inner_text("#question")
    assert page.inner_text("#warned") == ""


def test_estimates_are_named_by_the_options_that_they_were_computed_with(people: People, collector: Served) -> None:
    """A slow method is still under way when a person orders the table and saves a file."""
    names = [high_low(collector, f"Slow method, group {number}?") for number in range(2)]
    for name in names:
        fill(collector, name, [0, 1, 2, 3] * 200)
    for compared in ([], names[1:]):
        page = people(DESKTOP)
        page.goto(f"{collector.url}/c/{names[0]}/results?with={','.join(compared)}")
        page.wait_for_selector("#table caption:has-text('95% intervals, unbiased')")
        held = Held(page, "**/live?method=bayes*")
        page.click("summary:text-is('Method of estimation')")
        page.select_option("#method", "bayes")
        held.wait(1 + len(compared))
        page.select_option("#sort", "label")
        page.wait_for_selector("#table caption:has-text('unbiased')")
        rows = list(csv.DictReader(io.StringIO(saved(page, "CSV"))))
        assert {row["method"] for row in rows} == {"unbiased"}
        for route in held.routes:
            page.wait_for_timeout(50)
            assert "unbiased" in page.inner_text("#table caption")
            route.continue_()
        page.wait_for_selector("#table caption:has-text('empirical Bayes')")
