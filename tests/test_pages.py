"""The pages in a real browser, against a real collector: from Studio to answers to results, by mouse and keyboard."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from collectors import Served, ServeProcess
from components import PATIENCE, chromium

import sfumato as sf
from sfumato.exact import Epsilon

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

CONTRAST = Path(__file__).parent / "browser" / "contrast.js"
PHONE, DESKTOP = (390, 844), (1180, 860)
ILLNESSES = ["none", "flu", "hiv", "cancer"]


# -- a collector and a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("collector")
    process = ServeProcess(f"sqlite:///{folder / 'collect.db'}", folder)
    process.start()
    yield process.served
    process.stop()


def opened(collector: Served, title: str, domain: dict[str, Any], policy: dict[str, Any], **about: Any) -> str:
    """The id of a new collection."""
    body = {"title": title, "policy": {"domain": domain, "policy": policy}, "n": 1000, **about}
    made = collector.as_admin("POST", "/v1/collections", body)
    assert made.status == 201, made.body
    return str(made.json["collection"]["id"])


def high_low(collector: Served, title: str = "Which of these?", **about: Any) -> str:
    policy = {"kind": "high-low", "sensitive": ["hiv", "cancer"], "epsilon": "1"}
    return opened(collector, title, {"values": ILLNESSES}, policy, **about)


def read(collector: Served, name: str) -> Any:
    return collector.ask("GET", f"/v1/collections/{name}").json


@dataclass
class People:
    """Fresh browsers, one a person; whatever goes wrong in their pages is noted."""

    browser: Browser
    collector: Served
    faults: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    def __call__(self, size: tuple[int, int] = PHONE, scheme: Any = "light") -> Page:
        context = self.browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        self.contexts.append(context)
        context.on("console", self._said)
        context.on("weberror", lambda error: self._note(str(error.error)))
        context.on("request", lambda request: self._away(request.url))
        return context.new_page()

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(message.text)

    def _note(self, fault: str) -> None:
        # What a page cannot reach while it is cut off is no fault of its own.
        if "ERR_INTERNET_DISCONNECTED" not in fault:
            self.faults.append(fault)

    def _away(self, url: str) -> None:
        if not url.startswith((self.collector.url, "blob:")):
            self._note(f"a request to {url}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def people(browser: Browser, collector: Served) -> Iterator[People]:
    made = People(browser, collector)
    yield made
    for context in made.contexts:
        context.close()
    assert made.faults == []


@pytest.fixture(scope="session")
def shot(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Page, str], None]:
    """Keeps a picture of a page: in the folder SFUMATO_SCREENSHOTS, or among the files of the test run."""
    folder = Path(os.environ.get("SFUMATO_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Page, name: str) -> None:
        # From the top: a picture of the whole page taken further down leaves a scroll behind that the browser makes
        # when the mouse is next pressed, so that a click ends beside its button.
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=folder / f"{name}.png", full_page=True)

    return take


def enter_studio(page: Page, collector: Served) -> None:
    page.goto(f"{collector.url}/studio")
    page.fill("#admin-token", collector.admin)
    page.click("text=Use it")
    page.wait_for_selector("text=Forget it")


def planned(page: Page, people: int) -> None:
    """Says how many people will answer, and waits until the planner has, which so has heard of all that was said.

    Its words move what is below them, and a button that moves while the mouse is down is not clicked.
    """
    page.fill("#people", str(people))
    page.wait_for_selector(f"#predicted:has-text('With {people:,} people')")


def choose(page: Page, *values: str) -> None:
    """Chooses an answer, in each part of the question, and waits for what comes last and moves the buttons below."""
    for value in values:
        page.get_by_label(value, exact=True).check()
    page.wait_for_selector(".reveals strong")


def answer(page: Page, link: str, value: str) -> str:
    """Answers a question about a list, and waits until that has arrived; what was drawn."""
    page.goto(link)
    choose(page, value)
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=sent]")
    return page.inner_text("#drawn")


# -- from Studio to results --------------------------------------------------------------------------------


def test_a_fresh_collector_says_what_it_is_and_how_to_start(
    people: People, collector: Served, shot: Callable[[Page, str], None]
) -> None:
    page = people(DESKTOP)
    page.goto(collector.url)
    told = page.inner_text("main")
    assert "admin token" in told
    assert "sfumato admin-tokens --new" in told
    shot(page, "first-fresh")
    page.click("text=Open Studio")
    page.wait_for_selector("#admin-token")


def test_a_survey_is_made_answered_and_read(
    people: People, collector: Served, shot: Callable[[Page, str], None], pytestconfig: pytest.Config
) -> None:
    studio = people(DESKTOP)
    enter_studio(studio, collector)
    studio.fill("#title", "Which of these have you had this year?")
    studio.fill("#values", "\n".join(ILLNESSES))
    studio.click("text=Some values are sensitive")
    for value in ("hiv", "cancer"):
        studio.click(f".cell:has-text('{value}')")
    # The words and both pictures come from the policy, by the planner: e^1 times the odds of 1 to 9 are 23.2%.
    studio.wait_for_selector("#promise:has-text('from 10% to at most 23.2%')")
    studio.wait_for_selector("#region svg")
    studio.wait_for_selector("#predicted:has-text('With 1,000 people')")
    studio.wait_for_selector("#curve svg")
    shot(studio, "studio-list")
    studio.locator("#epsilon").fill("2")
    studio.wait_for_selector("#promise:has-text('from 10% to at most 45.1%')")
    planned(studio, 2000)
    studio.click("text=Open the survey")
    studio.wait_for_selector("text=The survey is open")
    link = studio.input_value("#done input")
    shot(studio, "studio-done")
    name = link.rpartition("/")[2]
    policy = read(collector, name)["policy"]["policy"]
    assert policy == {"kind": "high-low", "sensitive": ["hiv", "cancer"], "epsilon": "2"}

    results = people(DESKTOP)
    results.goto(f"{link}/results")
    results.wait_for_selector("text=Not enough answers yet")
    how_many = 200 if pytestconfig.getoption("--soak") else 12
    for person in range(how_many):
        page = people()
        drawn = answer(page, link, ILLNESSES[person % 4])
        assert drawn.strip("“”") in ILLNESSES
        if person == 0:
            shot(page, "survey-answered")
            results.wait_for_selector("#reports:text-is('1')")  # it came by itself
        page.context.close()
        people.contexts.remove(page.context)
    results.wait_for_selector(f"#reports:text-is('{how_many}')")
    results.wait_for_selector("#chart svg")
    shot(results, "results-list")
    assert read(collector, name)["reports"] == how_many

    # What is downloaded is what the API says.
    rows = read(collector, f"{name}/estimate")["rows"]
    taken = {}
    for text in ("CSV", "Parquet", "PNG of the chart", "The certificate as a file"):
        with results.expect_download() as download:
            results.click(f"text={text}")
        taken[text] = Path(download.value.path()).read_bytes()
    table = list(csv.DictReader(io.StringIO(taken["CSV"].decode())))
    assert [row["value"] for row in table] == ILLNESSES
    assert [float(row["low"]) for row in table] == [row["low"] for row in rows]
    assert pq.read_table(io.BytesIO(taken["Parquet"]))["frequency"].to_pylist() == [row["frequency"] for row in rows]
    assert taken["PNG of the chart"].startswith(b"\x89PNG")
    assert len(set(taken["PNG of the chart"])) > 100  # something is drawn
    certificate = sf.Certificate.from_json(taken["The certificate as a file"].decode())
    assert certificate.holds
    assert "obeys the high-low policy" in results.inner_text("#certificate")


def test_blocks_are_drawn_on_a_map_by_mouse_and_by_keyboard(
    people: People, collector: Served, shot: Callable[[Page, str], None]
) -> None:
    page = people(DESKTOP, "dark")
    enter_studio(page, collector)
    page.fill("#title", "Where do you live?")
    page.click("text=A place on a map")
    page.fill("#rows", "3")
    page.fill("#columns", "4")
    page.click("text=Which one of a group")
    page.click(".brushes >> text=Group 2")
    cells = page.locator(".map .cell")
    cells.nth(7).scroll_into_view_if_needed()
    start, end = (cells.nth(i).bounding_box() for i in (2, 7))
    assert start is not None
    assert end is not None
    # A stroke over the first row's end and down; the top row of the screen is the map's northernmost.
    page.mouse.move(start["x"] + 9, start["y"] + 9)
    page.mouse.down()
    page.mouse.move(end["x"] + 9, start["y"] + 9, steps=9)
    page.mouse.move(end["x"] + 9, end["y"] + 9, steps=9)
    page.mouse.up()
    page.click("text=Add a group")
    page.locator(".map .cell").nth(8).focus()
    page.keyboard.press("Space")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("1")
    page.wait_for_selector("#curve svg")
    page.wait_for_selector("#promise:has-text('knows your group')")
    planned(page, 2000)
    shot(page, "studio-map-dark")
    page.click("text=Open the survey")
    link = page.input_value("#done input")
    policy = read(collector, link.rpartition("/")[2])["policy"]["policy"]
    # Rows from the south: the third group; then the first, whose last cell was taken back; then the north.
    assert policy["blocks"] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2]

    survey = people()
    survey.goto(link)
    survey.wait_for_selector(".cells")
    for _ in range(30):
        if survey.evaluate("document.activeElement.type") == "radio":
            break
        survey.keyboard.press("Tab")
    for key in ("Space", "ArrowDown", "ArrowRight"):
        survey.keyboard.press(key)
    assert "row 2, column 2" in survey.inner_text("fieldset")
    shot(survey, "survey-map")
    while survey.evaluate("document.activeElement.textContent") != "Randomize and send":
        survey.keyboard.press("Tab")
    survey.keyboard.press("Enter")
    survey.wait_for_selector("[data-state=sent]")
    results = people(DESKTOP, "dark")
    results.goto(f"{link}/results")
    results.wait_for_selector("#chart svg")
    assert results.locator("#chart .patch").count() == 12
    shot(results, "results-map-dark")


def test_several_questions_and_one_time_links(
    people: People, collector: Served, shot: Callable[[Page, str], None]
) -> None:
    studio = people(PHONE)
    enter_studio(studio, collector)
    studio.fill("#title", "Do you vote?")
    studio.fill("#values", "yes\nno")
    studio.click("text=Add a question")
    studio.fill("#title", "Have you cheated, and how old are you?")
    studio.click("text=Several things at once")
    studio.click("text=One part is the secret")
    studio.wait_for_selector("#promise:has-text('suspicion of your “answer”')")
    studio.wait_for_selector("#curve svg")
    planned(studio, 2000)
    studio.click("text=One answer for each one-time link")
    studio.fill("#links", "3")
    shot(studio, "studio-phone")
    studio.click("text=Open the survey")
    with studio.expect_download() as download:
        studio.click("text=Download the links (CSV)")
    links = [
        row["link"] for row in csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8").splitlines())
    ]
    assert len(set(links)) == 3
    names = re.findall("[a-z2-7]{16}", links[0].partition("#")[0])
    assert len(names) == 2

    page = people()
    answer(page, links[0], "yes")
    page.click("text=Next question")
    choose(page, "no", "under 40")
    shot(page, "survey-second-question")
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=sent]")
    assert [read(collector, name)["reports"] for name in names] == [1, 1]

    again = people()
    again.goto(links[0])
    choose(again, "no")
    again.click("text=Randomize and send")
    again.wait_for_selector("[data-state=refused]")
    assert "used before" in again.inner_text("main")
    people.faults = [fault for fault in people.faults if "403" not in fault]
    without = people()
    without.goto(links[1].partition("#")[0])
    without.wait_for_selector("text=personal link")
    assert [read(collector, name)["reports"] for name in names] == [1, 1]


# -- what an answer promises -------------------------------------------------------------------------------


def test_a_reload_in_the_middle_of_an_answer_changes_nothing(people: People, collector: Served) -> None:
    name = high_low(collector)
    page = people()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or "") if request.method == "POST" else None)
    busy = {"error": {"reason": "overloaded", "message": "", "row": None}}
    page.route("**/reports", lambda route: route.fulfill(status=503, json=busy))
    page.goto(f"{collector.url}/c/{name}")
    choose(page, "hiv")
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=waiting]")
    shown = [page.inner_text("#drawn"), page.text_content("#sent")]
    for _ in range(3):
        page.reload()
        page.wait_for_selector("[data-state=waiting]")
        assert [page.inner_text("#drawn"), page.text_content("#sent")] == shown
    page.unroute("**/reports")
    page.reload()
    page.wait_for_selector("[data-state=sent]")
    assert [page.inner_text("#drawn"), page.text_content("#sent")] == shown
    assert set(sent) == {shown[1]}
    assert read(collector, name)["reports"] == 1
    page.reload()
    page.wait_for_selector("[data-state=sent]")
    assert page.inner_text("#drawn") == shown[0]
    assert read(collector, name)["reports"] == 1
    people.faults = [fault for fault in people.faults if "503" not in fault]


def test_answers_given_without_network_arrive_once_later(people: People, collector: Served) -> None:
    name, other = high_low(collector), high_low(collector)
    page = people()
    # One stays on the page until the network is back, one closes it and comes again.
    page.goto(f"{collector.url}/c/{name}?then={other}")
    choose(page, "cancer")
    page.context.set_offline(True)
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=waiting]")
    batch = page.text_content("#sent")
    assert read(collector, name)["reports"] == 0
    page.context.set_offline(False)
    page.wait_for_selector("[data-state=sent]")
    assert page.text_content("#sent") == batch
    assert read(collector, name)["reports"] == 1

    page.click("text=Next question")
    choose(page, "none")
    page.context.set_offline(True)
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=waiting]")
    batch = page.text_content("#sent")
    page.close()
    assert read(collector, other)["reports"] == 0
    page.context.set_offline(False)
    later = page.context.new_page()
    later.goto(f"{collector.url}/c/{name}?then={other}")
    later.wait_for_selector("[data-state=sent]")
    assert later.text_content("#sent") == batch
    assert [read(collector, name)["reports"], read(collector, other)["reports"]] == [1, 1]


def test_who_would_rather_not_answer_draws_and_sends_nothing(people: People, collector: Served) -> None:
    name = high_low(collector)
    page = people()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".reveals:has-text('from 10% to at most 23.2%')")
    page.get_by_label("hiv", exact=True).check()
    page.click("text=I would rather not answer")
    page.wait_for_selector("text=Nothing was drawn")
    assert page.evaluate("import('/static/sfumato.js').then(module => module.answers())") == []
    assert sent == []
    page.click("text=Answer after all")
    page.wait_for_selector("form")


@pytest.mark.parametrize(
    ("policy", "said", "then"),
    [
        ({"kind": "uniform", "epsilon": "1"}, "Not your answer itself", "It need not be your answer"),
        ({"kind": "blocks", "blocks": [0, 0, 1, 1], "epsilon": "1"}, "Not your answer itself", "It need not be"),
        ({"kind": "blocks", "blocks": [0, 0, 0, 1], "epsilon": "1"}, "it may be the answer itself", "It may be your"),
        ({"kind": "high-low", "sensitive": ["hiv"], "epsilon": "1"}, "it may be the answer itself", "It may be your"),
        (
            {"kind": "prior", "prior": ["1/4"] * 4, "epsilon": "1", "side": "upper"},
            "Not your answer itself",
            "It need not be your answer",
        ),
        (
            {"kind": "uniform", "epsilon": "inf"},
            "Expect your answer to be sent as it is",
            "Expect it to be your answer",
        ),
    ],
)
def test_nothing_is_promised_that_the_policy_does_not_hold(
    people: People, collector: Served, policy: dict[str, Any], said: str, then: str
) -> None:
    name = opened(collector, "Which of these?", {"values": ILLNESSES}, policy)
    page = people()
    page.goto(f"{collector.url}/c/{name}")
    page.get_by_label("hiv", exact=True).check()
    page.wait_for_selector(f".promise:has-text('{said}')")
    assert ("Not your answer" in page.inner_text(".promise")) == said.startswith("Not")
    page.get_by_role("button", name="Send" if policy["epsilon"] == "inf" else "Randomize and send", exact=True).click()
    page.wait_for_selector(f"#outcome .promise:has-text('{then}')")
    if policy["epsilon"] == "inf":
        assert page.inner_text("#drawn") == "“hiv”"


def test_studio_asks_for_people_and_its_charts_have_room_before_they_come(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    heights = "['region', 'curve'].map(name => document.getElementById(name).offsetHeight)"
    empty = page.evaluate(heights)
    page.fill("#title", "Which of these?")
    page.fill("#values", "\n".join(ILLNESSES))
    page.wait_for_selector("#curve svg")
    assert page.evaluate(heights) == pytest.approx(empty, abs=1)
    for nobody in ("0", "-5", ""):
        page.fill("#people", nobody)
        page.wait_for_selector("#predicted:has-text('at least 1')")
        page.click("text=Open the survey")
        page.wait_for_selector(".alarm:has-text('at least 1')")
    page.fill("#people", "1")
    page.locator("#epsilon").fill("0.1")
    page.wait_for_selector("#predicted:has-text('With 1 person nothing can be said')")
    assert "100.0%" in str(page.get_attribute("#curve svg", "aria-label"))


def test_a_survey_is_answered_by_keyboard_alone(people: People, collector: Served) -> None:
    name = high_low(collector)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("form")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.querySelector('input:checked').closest('label').textContent") == "flu"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-state=sent]")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    assert read(collector, name)["reports"] == 1


def test_groups_are_compared(people: People, collector: Served, shot: Callable[[Page, str], None]) -> None:
    first, second = (high_low(collector, title) for title in ("In the north", "In the south"))
    for name, value in ((first, "hiv"), (second, "flu"), (second, "flu")):
        answer(people(), f"{collector.url}/c/{name}", value)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{first}/results?with={second}")
    page.wait_for_selector("#reports:text-is('1 + 2')")
    page.wait_for_selector("#chart .second")
    assert "2 − 1" in page.inner_text("#table")
    shot(page, "results-groups")
    other = opened(collector, "Another", {"values": ["a", "b"]}, {"kind": "uniform", "epsilon": "1"})
    page.goto(f"{collector.url}/c/{first}/results?with={other}")
    page.wait_for_selector("text=These cannot be compared")


def test_results_for_administrators_need_the_token(people: People, collector: Served) -> None:
    name = high_low(collector, results="admin", listed=False)
    answer(people(), f"{collector.url}/c/{name}", "flu")
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("text=an admin token is needed")  # as the collector has said by then
    people.faults = [fault for fault in people.faults if "401" not in fault]
    page.fill("#admin", collector.admin)
    page.click("text=Show the results")
    page.wait_for_selector("#reports:text-is('1')")
    assert collector.admin not in str(page.context.storage_state())  # in the tab, and nowhere that outlives it


@pytest.mark.parametrize("level", ["1", "0.1", "3/2", "ln 3", "1/2*ln 3", "ln 3/2", "inf"])
def test_levels_are_read_as_python_reads_them(people: People, collector: Served, level: str) -> None:
    page = people()
    page.goto(collector.url)
    text = str(Epsilon(level))
    told = page.evaluate("level => import('/static/words.js').then(words => String(words.levelOf(level)))", text)
    assert float(told.replace("Infinity", "inf")) == pytest.approx(float(Epsilon(level)))


def test_what_was_drawn_is_named_by_the_values_it_speaks_for(people: People, collector: Served) -> None:
    """The named value is the one, or the set those, for which the report is likeliest."""
    domain = sf.Domain(ILLNESSES)
    mechanisms = [
        sf.design(sf.Uniform(domain, epsilon=1), mechanism="rr"),
        sf.design(sf.Uniform(domain, epsilon="0.5"), mechanism="subset"),
        sf.design(sf.HighLow(domain, sensitive=["flu", "cancer"], epsilon=1), mechanism="high-low-subset"),
        sf.design(sf.Blocks(domain, blocks=[0, 1, 0, 1], epsilon=1), mechanism="block-rr"),
    ]
    page = people()
    page.goto(collector.url)
    call = "([spec, report]) => import('/static/words.js').then(words => words.drawnInWords(spec, report))"
    for mechanism in mechanisms:
        law = mechanism.matrix()
        index = mechanism.spec["report"]["encoding"] == "index"
        for output in range(law.shape[1]):
            likeliest = [ILLNESSES[x] for x in range(4) if law[x, output] == law[:, output].max()]
            report = str(output) if index else json.dumps(_bitmap(likeliest))
            told = page.evaluate(call, [mechanism.spec, report])
            assert re.findall("“(.*?)”", told) == likeliest


def _bitmap(values: list[str]) -> str:
    return f"{sum(1 << ILLNESSES.index(value) for value in values):02x}"


# -- how it looks --------------------------------------------------------------------------------------------


def test_pages_are_readable(
    people: People, collector: Served, shot: Callable[[Page, str], None], pytestconfig: pytest.Config
) -> None:
    """Contrast as WCAG AA asks, nothing wider than the screen, every field with its label."""
    grid = {"grid": {"latitude": [46, 48], "longitude": [6, 10], "rows": 4, "columns": 6}}
    name = opened(collector, "Where do you work?", grid, {"kind": "uniform", "epsilon": "2"}, description="In daytime.")
    looks: list[tuple[str, tuple[int, int], Any]] = [("phone", PHONE, "light"), ("desktop", DESKTOP, "dark")]
    if pytestconfig.getoption("--soak"):
        looks += [("phone", PHONE, "dark"), ("desktop", DESKTOP, "light")]
    page = people()

    def look(what: str) -> None:
        for device, (width, height), scheme in looks:
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert page.evaluate(CONTRAST.read_text(encoding="utf-8")) == [], f"{what}, {device}, {scheme}"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{what} is too wide"
            fields = "[...document.querySelectorAll('input, select, textarea')]"
            assert page.evaluate(f"{fields}.filter(e => !e.labels.length && !e.ariaLabel).map(e => e.outerHTML)") == []
            shot(page, f"{what}-{device}-{scheme}")

    page.goto(collector.url)
    look("first")
    page.goto(f"{collector.url}/docs")
    look("api")
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".reveals strong")
    look("survey")
    page.locator(".cells input").nth(9).check(force=True)
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=sent]")
    look("answered")
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#chart svg")
    look("results")
    page.click("text=Bars")
    look("results-bars")
    enter_studio(page, collector)
    page.fill("#values", "\n".join(ILLNESSES))
    page.click("text=Which one of a group")
    page.click(".cell:has-text('hiv')")
    page.wait_for_selector("#curve svg")
    look("studio")
