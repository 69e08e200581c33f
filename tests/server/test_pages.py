"""The pages in a real browser, against a real collector: from Studio to answers to results, by mouse and keyboard."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from support import ROOT
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
from support.collectors import Served, ServeProcess

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.component

FOLDER = ROOT / "src" / "sfumato" / "server" / "pages"
CONTRAST = ROOT / "tests" / "browser" / "contrast.js"


# -- the files ---------------------------------------------------------------------------------------------


def test_no_page_computes_a_bound() -> None:
    """Studio and results show what the collector computed, the survey what the client library did."""
    scripts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.js") if path.name != "sfumato.js"}
    assert {"studio.js", "results.js", "survey.js", "words.js", "promise.js"} <= set(scripts)
    for name, script in scripts.items():
        assert not re.search(r"Math\.(exp|expm1|log|log1p|log2|E|LN\w+)\b|readLevel|\bln\b", script), name
    users = {name for name, script in scripts.items() if re.search(r"\bdisclosure\b|sfumato\.js", script)}
    # The worker stores the client library as a file, and does not run it.
    assert users <= {"survey.js", "promise.js", "replies.js", "worker.js"}
    assert "import" not in scripts["worker.js"]
    assert not re.search(r"epsilon\s*[-+*/]|[-+*/]\s*\(?epsilon", "".join(scripts.values()))


# -- a collector and a browser -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("collector")
    process = ServeProcess(f"sqlite:///{folder / 'collect.db'}", folder)
    process.start()
    yield process.served
    process.stop()


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


# -- from Studio to results --------------------------------------------------------------------------------


def test_a_fresh_collector_says_what_it_is_and_how_to_start(
    people: People, collector: Served, shot: Callable[[Page, str], None]
) -> None:
    page = people(DESKTOP)
    page.goto(collector.url)
    text = page.inner_text("main")
    assert "every question states it before people answer" in text
    for promise in ("nobody sees", "how little"):  # surveys that hide nothing are listed here too
        assert promise not in text
    assert "admin token" in text
    assert "sfumato admin-tokens --new" in text
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
    studio.check("#listed")
    studio.click("text=Open the survey")
    studio.wait_for_selector("text=The survey is open")
    link, _, fixed = studio.input_value("#done input").partition("#")
    shot(studio, "studio-done")
    name = link.rpartition("/")[2]
    assert fixed == f";{read(collector, name)['mechanism_hash'][:32]}"
    policy = read(collector, name)["policy"]["policy"]
    assert policy == {"kind": "high-low", "sensitive": ["hiv", "cancer"], "epsilon": "2"}

    results = people(DESKTOP)
    results.goto(f"{link}/results")
    results.wait_for_selector("text=Not enough answers yet")
    how_many = 200 if pytestconfig.getoption("--soak") else 4
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
    for text in ("CSV", "Parquet", "PNG of the chart", "Download the certificate"):
        with results.expect_download() as download:
            results.click(f"text={text}")
        taken[text] = Path(download.value.path()).read_bytes()
    table = list(csv.DictReader(io.StringIO(taken["CSV"].decode())))
    assert [row["value"] for row in table] == ILLNESSES
    assert [float(row["low"]) for row in table] == [row["low"] for row in rows]
    assert pq.read_table(io.BytesIO(taken["Parquet"]))["frequency"].to_pylist() == [row["frequency"] for row in rows]
    assert taken["PNG of the chart"].startswith(b"\x89PNG")
    assert len(set(taken["PNG of the chart"])) > 100  # something is drawn
    certificate = sf.Certificate.from_json(taken["Download the certificate"].decode())
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
    link = page.input_value("#done input").partition("#")[0]
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
    for name in ("Check my choice", "Randomize and send"):
        while survey.evaluate("document.activeElement.textContent") != name:
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
    enter_studio(studio, collector, public=False)
    studio.fill("#title", "Do you vote?")
    studio.fill("#values", "yes\nno")
    studio.click("text=Add a question")
    studio.fill("#title", "Have you cheated, and how old are you?")
    studio.click("text=Several things at once")
    studio.click("text=One part is the secret")
    studio.wait_for_selector("#promise:has-text('suspicion of your “answer”')")
    studio.wait_for_selector("#curve svg")
    planned(studio, 2000)
    studio.check("input[name=one-of-results][value=public]")
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
    assert page.evaluate("location.hash") == ""
    page.click("text=Next question")
    choose(page, "no", "under 40")
    shot(page, "survey-second-question")
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=sent]")
    assert [read(collector, name)["reports"] for name in names] == [1, 1]

    again = people()
    again.goto(links[0])
    again.wait_for_selector("#problem:has-text('used before')")
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
    people.expected = "503"


def test_a_survey_says_why_it_cannot_be_answered(people: People, collector: Served) -> None:
    """The browser refuses storage, or the collector has another mechanism than the link."""
    name = high_low(collector)
    page = people()
    page.goto(f"{collector.url}/c/{name}#;{'0' * 32}")
    page.wait_for_selector("text=as in the link")
    page.add_init_script("IDBFactory.prototype.open = () => { throw new DOMException('storage is blocked') }")
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("text=Nothing was drawn or sent")
    assert read(collector, name)["reports"] == 0


def test_answers_given_without_network_arrive_once_later(people: People, collector: Served) -> None:
    name, other = high_low(collector), high_low(collector, "And which of these?")
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
    later.wait_for_selector("#end li:nth-child(2)[data-state=sent]")
    later.click("#end li:nth-child(2) button")
    later.wait_for_selector("#outcome [data-state=sent]")
    assert later.text_content("#sent") == batch
    assert [read(collector, name)["reports"], read(collector, other)["reports"]] == [1, 1]


def test_who_would_rather_not_answer_draws_and_sends_nothing(people: People, collector: Served) -> None:
    name = high_low(collector)
    page = people()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".disclosure:has-text('from 10% to at most 23.2%')")
    page.get_by_label("hiv", exact=True).check()
    page.click("text=I would rather not answer")
    page.wait_for_selector("text=No reply was drawn")
    assert page.evaluate("import('/static/sfumato.js').then(module => module.answers())") == []
    assert sent == []
    page.click("text=Answer after all")
    page.wait_for_selector("form")


# -- what a reply reveals, as the page states it -------------------------------------------------------------


def as_shown(share: float) -> str:
    """A probability as pages show it: never as certain or impossible unless it is."""
    if share < 1 and share >= 0.9995:
        return "more than 99.9%"
    return "less than 0.1%" if 0 < share < 0.0005 else f"{100 * share:.1f}%"


def exposure_of(guess: float, chance: float) -> str:
    """How loud the page has to be, in words that it then says."""
    if guess == 1:
        return "sent as it is"
    if (guess - chance) / (1 - chance) < 0.5:
        return ""
    return "almost always reveals your answer" if guess >= 0.9 else "likely to reveal your answer"


def stated(collector: Served, mechanism: Mechanism, policy: sf.Policy, title: str = "Which of these?") -> str:
    """The id of a collection with this mechanism."""
    document = policy.to_dict()
    return opened(collector, title, document["domain"], document["policy"], mechanism=mechanism.spec)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "5", "10", "20", "inf"])
def test_the_odds_on_the_page_are_those_of_the_exact_law(people: People, collector: Served, epsilon: str) -> None:
    domain, make = sf.Domain(ILLNESSES), sf.mechanisms
    uniform, high_low = sf.Uniform(domain, epsilon), sf.HighLow(domain, ["hiv", "cancer"], epsilon)
    blocks = sf.Blocks(domain, "aabb", epsilon)
    cases: list[tuple[Mechanism, sf.Policy]] = [
        (make.RandomizedResponse(domain, epsilon), uniform),
        (make.HighLowSubset(domain, ["hiv", "cancer"], epsilon), high_low),
    ]
    if epsilon in ("1", "5", "inf"):
        cases += [
            (make.SubsetSelection(domain, epsilon, 2), uniform),
            (make.UnaryEncoding(domain, epsilon), uniform),
            (make.HadamardResponse(domain, epsilon), uniform),
            (make.CyclicDesign(domain, epsilon, design=make.CyclicDesign.singer(2, 1, 3)), uniform),
            (make.BlockMechanism.for_policy(blocks, "rr"), blocks),
        ]
    page = people()
    for number, (mechanism, policy) in enumerate(cases):
        name = stated(collector, mechanism, policy, f"Question {number} at {epsilon}")
        guess, chance = mechanism.guess_probability(), Fraction(1, len(ILLNESSES))
        page.goto(f"{collector.url}/c/{name}")
        page.wait_for_selector("#odds")
        promise = page.inner_text(".promise")
        assert f"correct with probability {as_shown(float(guess))} (without the reply: 25.0%)" in promise, mechanism
        assert f"{float(guess):.3f}" != "1.000" or "more than 99.9%" in promise or guess == 1
        exposed = exposure_of(float(guess) if guess == 1 else min(float(guess), 1 - 2**-53), float(chance))
        alarms = page.locator(".promise .alarm").all_inner_texts()
        assert len(alarms) == bool(exposed), mechanism
        assert all(exposed in alarm for alarm in alarms)
        for denial in ("Not your answer", "need not be your answer"):
            assert denial not in promise


def test_a_survey_about_a_thousand_values_sends_two_bytes(people: People, collector: Served) -> None:
    """At ε = 1, by a cyclic design, whose sets the page derives from a few integers."""
    values = [f"village {number}" for number in range(1000)]
    policy = {"kind": "uniform", "epsilon": "1"}
    name = opened(collector, "Which village?", {"values": values}, policy, mechanism="cyclic", results="public")
    mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
    assert mechanism.name == "cyclic-design"
    page = people()
    posts: list[Any] = []
    page.on("request", lambda request: posts.append(request.post_data_json) if request.method == "POST" else None)
    drawn = answer(page, f"{collector.url}/c/{name}", "village 999")
    reports = [post["report"] for post in posts]
    # The reply is shown by the values for which it is likeliest: some of them, and all on request.
    law = [mechanism.probability(reports[0], x) for x in range(1000)]
    named = [value for value, probability in zip(values, law, strict=True) if probability == max(law)]
    assert drawn.startswith(f"a set of {len(named)} of the 1,000 values: “{named[0]}”, “{named[1]}”")
    assert page.locator(".names li").all_text_contents() == named
    assert [len(mechanism.report_format.encode(report)) for report in reports] == [2]
    assert f"correct with probability {as_shown(float(mechanism.guess_probability()))}" in page.inner_text("#outcome")
    # The collector estimates from the report what the library does.
    body = collector.ask("GET", f"/v1/collections/{name}/estimate").json
    expected = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    assert body["reports"] == 1
    assert [row["frequency"] for row in body["rows"]] == pytest.approx(expected.frequencies.tolist(), abs=1e-12)


def test_the_page_asks_nobody_else_what_a_reply_reveals(people: People, collector: Served) -> None:
    """Neither the planner, however busy, nor a route that could fail: the form comes with its statement."""
    name = opened(collector, "Which of these?", {"values": ILLNESSES}, {"kind": "uniform", "epsilon": "inf"})
    page = people()
    paths: list[str] = []
    page.on("request", lambda request: paths.append(request.url.removeprefix(collector.url)))
    page.route("**/reveals", lambda _: None)  # as if the planner never answered
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("form button[type=submit]")
    assert "sent as it is" in page.inner_text(".promise .alarm")
    assert {path for path in paths if path.startswith("/v1/")} == {
        f"/v1/collections/{name}", f"/v1/collections/{name}/admission"
    }  # fmt: skip
    page.get_by_label("hiv", exact=True).check()
    page.get_by_role("button", name="Send", exact=True).click()
    page.wait_for_selector("#outcome:has-text('It reveals your answer')")
    assert page.inner_text("#drawn") == "“hiv”"


def test_a_mechanism_that_breaks_its_policy_is_not_run(people: People, collector: Served) -> None:
    """The threshold 2^64 served under ε = 1/10, with its true hash: the page draws and sends nothing."""
    policy = sf.Uniform(sf.Domain(ILLNESSES), "1/10")
    name = stated(collector, sf.mechanisms.RandomizedResponse(policy.domain, "1/10"), policy)
    false = sf.mechanisms.RandomizedResponse(policy.domain, "1/10", threshold=2**64)
    served = read(collector, name) | {"mechanism": false.spec, "mechanism_hash": false.hash}
    page = people()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.route(f"**/v1/collections/{name}", lambda route: route.fulfill(json=served))
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".alarm:has-text('violates its own rule')")
    assert page.locator("form").count() == 0
    assert page.evaluate("import('/static/sfumato.js').then(module => module.answers())") == []
    assert sent == []
    # As it was opened, it is taken.
    page.unroute(f"**/v1/collections/{name}")
    page.click("text=Try again")
    page.wait_for_selector(".disclosure:has-text('from 10% to at most 11%')")


@pytest.mark.parametrize(
    ("policy", "statements"),
    [
        ({"kind": "uniform", "epsilon": "1"}, ["from 10% to at most 23.2%"]),
        ({"kind": "uniform", "epsilon": "1+ln 2"}, ["from 10% to at most 37.7%"]),
        (
            {"kind": "high-low", "sensitive": ["hiv"], "epsilon": "1"},
            [
                "that it is “hiv” from 10% to at most 23.2%",
                "If it is “none”, “flu” or “cancer”, your reply may reveal it",
            ],
        ),
        (
            {"kind": "blocks", "blocks": [0, 0, 1, 1], "epsilon": "1"},
            [
                "knows your group can raise their suspicion of one value from 10% to at most 23.2%",
                "may reveal your group",
            ],
        ),
        (
            {"kind": "blocks", "blocks": [0, 0, 0, 1], "epsilon": "1"},
            ["If it is “cancer”, the only value of its group"],
        ),
        (
            {"kind": "blocks", "blocks": [0, 0, 1, 1], "epsilon": "1", "across": "2"},
            ["and knows your group can raise their suspicion of one value from 10% to", "Between groups: a stranger"],
        ),
        (
            {"kind": "prior", "prior": ["0.4", "0.3", "0.2", "0.1"], "epsilon": "1"},
            ["that it is “cancer” from 10% to at"],
        ),
    ],
)
def test_sentences_are_about_the_mechanism_and_within_the_policy(
    people: People, collector: Served, policy: dict[str, Any], statements: list[str]
) -> None:
    name = opened(collector, "Which of these?", {"values": ILLNESSES}, policy)
    page = people()
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".disclosure")
    sentences = page.inner_text(".disclosure")
    for sentence in statements:
        assert sentence in sentences
    assert page.locator("#unproved").count() == 0
    # No bound is above that of the policy.
    rules = collector.as_admin("POST", "/v1/check", {"policy": read(collector, name)["policy"], "before": 0.1}).json
    most = max(rule["after"] for rule in rules["suspicions"])
    for bound in re.findall(r"at most ([\d.]+)%", sentences):
        assert float(bound) / 100 <= most + 0.001


def test_a_rule_about_an_estimate_is_stated_against_anything(people: People, collector: Served) -> None:
    domain = sf.Domain.product(cheated=["yes", "no"], age=["young", "old"])
    policy = sf.Secret(domain, "cheated", 1, sf.ChiSquare([[300, 100], [200, 400]]))
    mechanism = sf.design(policy)
    blocks = sf.Blocks(domain, [0, 0, 1, 1], "inf", across="1")
    epsilon = sf.audit(mechanism, blocks).worst.excess + 1  # of the worst pair of different secrets
    name = stated(collector, mechanism, policy)
    page = people()
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("#unproved")
    assert "cannot check the rule" in page.inner_text("#unproved")
    sentences = page.inner_text(".disclosure")
    if math.isinf(epsilon):
        assert "may learn it from your reply" in sentences
    else:
        most = 0.1 / (0.1 + 0.9 * math.exp(-epsilon))
        (bound,) = re.findall(
            r"from 10% to at most ([\d.]+)%, however the rest of your answer depends on it", sentences
        )
        assert most <= float(bound) / 100 <= most + 0.001


def test_what_is_hidden_by_a_search_is_neither_lost_nor_sent(people: People, collector: Served) -> None:
    values = [f"{word} {number}" for word in ("alder", "birch") for number in range(10)]
    name = opened(collector, "Which tree?", {"values": values}, {"kind": "uniform", "epsilon": "inf"})
    page = people()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.goto(f"{collector.url}/c/{name}")
    page.get_by_label("alder 3", exact=True).check()
    page.fill("input[type=search]", "birch")
    page.press("input[type=search]", "Enter")
    # Nothing was answered, and what is chosen can be seen.
    assert page.locator("#outcome").count() == 0
    visible = page.locator(".choice:visible").all_inner_texts()
    assert visible == ["alder 3", *(value for value in values if value.startswith("birch"))]
    assert page.inner_text(".chosen") == "Chosen: alder 3."
    page.get_by_label("birch 7", exact=True).check()
    assert page.locator(".choice:visible").all_inner_texts() == values[10:]
    assert page.inner_text(".chosen") == "Chosen: birch 7."
    page.click("text=Check my choice")
    assert "birch 7" in page.inner_text("#confirm")
    page.click("text=Change it")
    page.get_by_label("birch 8", exact=True).check()
    assert sent == []
    send(page)
    page.wait_for_selector("[data-state=sent]")
    assert page.inner_text("#drawn") == "“birch 8”"


def test_a_second_tab_is_told_that_the_first_has_answered(people: People, collector: Served) -> None:
    name = opened(collector, "Which of these?", {"values": ILLNESSES}, {"kind": "uniform", "epsilon": "1"})
    first = people()
    second = first.context.new_page()
    for page in (first, second):
        page.goto(f"{collector.url}/c/{name}")
        page.wait_for_selector("form")
    choose(first, "hiv")
    first.click("text=Randomize and send")
    first.wait_for_selector("[data-state=sent]")
    assert first.locator("#repeated").count() == 0
    choose(second, "flu")
    second.click("text=Randomize and send")
    second.wait_for_selector("#repeated")
    assert "already answered" in second.inner_text("#repeated")
    assert "was not used" in second.inner_text("#repeated")
    assert second.inner_text("#drawn") == first.inner_text("#drawn")
    assert read(collector, name)["reports"] == 1


def test_twelve_collections_that_ask_the_same_get_one_reply(
    people: People, collector: Served, shot: Callable[[Page, str], None]
) -> None:
    names = [high_low(collector, "Which of these?") for _ in range(12)]
    page = people()
    sent: list[Any] = []
    page.on("request", lambda request: sent.append(json.loads(request.post_data or "")) if request.post_data else None)
    page.goto(f"{collector.url}/c/{names[0]}?then={','.join(names[1:])}")
    choose(page, "hiv")
    total = page.inner_text("#total")
    assert "at most 23.2%" in total  # as of one
    assert "11 questions ask the same" in total
    page.click("text=Randomize and send")
    page.wait_for_selector("[data-state=sent]")
    for number in range(11):
        page.click("text=Next question")
        page.wait_for_selector("#remembered")
        if number == 0:
            shot(page, "survey-remembered")
        assert page.locator("input[type=radio]").count() == 0
        page.click("text=Send the same reply")
        page.wait_for_selector("[data-state=sent]")
        assert page.locator("#repeated").count() == 0
    assert len({json.dumps(body["report"]) for body in sent}) == 1
    assert len({body["batch"] for body in sent}) == 12
    assert [read(collector, name)["reports"] for name in names] == [1] * 12


def test_the_same_question_by_another_randomizer_is_said_to_add_up(people: People, collector: Served) -> None:
    rules = [{"kind": "uniform", "epsilon": epsilon} for epsilon in ("1", "2")]
    first, second = (opened(collector, "How often?", {"values": ILLNESSES}, rule) for rule in rules)
    page = people()
    answer(page, f"{collector.url}/c/{first}", "flu")
    page.goto(f"{collector.url}/c/{second}")
    page.wait_for_selector("#again:has-text('what both replies reveal adds up')")
    assert page.locator("input[type=radio]").count() == len(ILLNESSES)


def test_what_several_questions_reveal_is_added_up(people: People, collector: Served) -> None:
    rules = {"Which of these?": "1", "And in your family?": "1/2", "And before?": "ln 2"}
    names = [
        opened(collector, title, {"values": ILLNESSES}, {"kind": "uniform", "epsilon": epsilon})
        for title, epsilon in rules.items()
    ]
    page = people()
    page.goto(f"{collector.url}/c/{names[0]}?then={names[1]},{names[2]}")
    page.wait_for_selector("#total")
    text = page.inner_text("#total")
    # e^(1 + 1/2 + ln 2) times the odds of 1 to 9.
    assert f"from 10% to at most {math.ceil(1000 / (1 + 9 / (2 * math.exp(1.5)))) / 10:g}%" in text
    mechanisms = [sf.mechanism_from_spec(read(collector, name)["mechanism"]) for name in names]
    guess = math.prod(float(mechanism.guess_probability()) for mechanism in mechanisms)
    assert f"correct with probability {as_shown(guess)} (without the replies: {as_shown(1 / 64)})" in text
    # One that cannot be read is named.
    page.route(f"**/v1/collections/{names[2]}", lambda route: route.fulfill(status=404, json={}))
    page.reload()
    page.wait_for_selector("#total:has-text('Question 3 cannot be loaded now')")
    page.wait_for_load_state("networkidle")  # the page also tries to store all questions
    people.expected = "404"


@pytest.mark.parametrize(
    ("epsilon", "phrase"),
    [
        ("1", ""),
        ("2.5", "is likely to reveal"),
        ("6", "almost always reveals"),
        ("20", "almost always reveals"),
        ("inf", "is the answer"),
    ],
)
def test_studio_warns_when_replies_give_answers_away(
    people: People, collector: Served, shot: Callable[[Page, str], None], epsilon: str, phrase: str
) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", f"Which of these, at {epsilon}?")
    page.fill("#values", "\n".join(ILLNESSES))
    if epsilon in ("20", "inf"):  # beyond the slider, as a draft may be
        draft = json.loads(page.evaluate("localStorage.getItem('sfumato-studio-draft')"))
        draft["questions"][0]["epsilon"] = epsilon
        page.evaluate("draft => localStorage.setItem('sfumato-studio-draft', draft)", json.dumps(draft))
        page.reload()
    else:
        page.locator("#epsilon").fill(epsilon)
    planned(page, 2000)
    warning = page.inner_text("#warning")
    assert phrase in warning
    assert bool(warning) == bool(phrase)
    shot(page, f"studio-warning-{epsilon}")
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    name = page.input_value("#done input").rpartition("/")[2]
    guess = float(sf.mechanism_from_spec(read(collector, name)["mechanism"]).guess_probability())
    text = page.inner_text("#done")
    assert (f"correct with probability {as_shown(guess)} (without the reply: 25.0%)" in text) == bool(phrase)


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
    page.wait_for_selector("#predicted:has-text('With 1 person, nothing can be estimated')")
    assert "2,942.4% at 1" in str(page.get_attribute("#curve svg", "aria-label"))


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
    page.wait_for_selector("#differences tbody tr")
    rows = collector.ask("GET", f"/v1/collections/{first}/comparison?with={second}").json["rows"]
    for value, row in zip(ILLNESSES, rows, strict=True):
        shown = page.inner_text(f"#differences tbody tr:has(th:has-text('{value}'))")
        assert "2. In the south − 1. In the north" in shown
        numbers = [float(number.replace("−", "-")) for number in re.findall(r"[−-]?[\d.]+(?=%)", shown)]
        assert numbers == pytest.approx([100 * row[name] for name in ("difference", "low", "high")], abs=0.06)
    shot(page, "results-groups")
    other = opened(collector, "Another", {"values": ["a", "b"]}, {"kind": "uniform", "epsilon": "1"})
    page.goto(f"{collector.url}/c/{first}/results?with={other}")
    page.wait_for_selector("text=These cannot be compared")


#: Two outputs, whose reports determine the mean of the numbers 0 to 3 and no share of one of them.
ONE_BIT = sf.mechanisms.TableMechanism.from_matrix(
    sf.Domain.range(4), [["3/4", "1/4"], ["7/12", "5/12"], ["5/12", "7/12"], ["1/4", "3/4"]]
)


@pytest.mark.parametrize(
    ("question", "mechanism"), [("mean", ONE_BIT), ("distribution", None), ("quantiles:0.5", None)]
)
def test_results_answer_the_question(
    question: str,
    mechanism: Mechanism | None,
    people: People,
    collector: Served,
    shot: Callable[[Page, str], None],
) -> None:
    spec = None if mechanism is None else mechanism.spec
    epsilon = {"kind": "uniform", "epsilon": "2"}
    name = opened(collector, "How many?", {"size": 4}, epsilon, question=question, mechanism=spec)
    used = sf.mechanism_from_spec(read(collector, name)["mechanism"])
    reports = sf.privatize(used, [0, 1, 1, 3] * 100, sf.InsecureSeeded(1))
    assert collector.send(name, used, reports, "all-its-reports").status == 200
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#reports:text-is('400')")
    page.wait_for_selector("#question:visible")
    rows = collector.ask("GET", f"/v1/collections/{name}/estimate").json["answers"]
    shown = page.inner_text("#question")
    if question == "distribution":
        page.wait_for_selector("#distribution svg .line")
        assert [f"up to {row['answer']}" in shown for row in rows] == [True] * 3
        assert all(f"{100 * row['value']:.1f}%".replace("-", "−") in shown for row in rows)
    else:
        text = f"{rows[0]['value']:.5g}" if question == "mean" else str(rows[0]["value"])
        assert page.inner_text("#answer .big") == text.replace("-", "−")
    if mechanism is not None:
        assert "do not distinguish all values" in page.inner_text("#verdict")
        assert page.query_selector("#chart svg") is None
    assert page.evaluate("document.querySelector('main section').id") == "question"  # above the shares of single values
    assert "Not enough answers" not in page.inner_text("#verdict")
    with page.expect_download() as saved:
        page.click("button:text-is('CSV')")
    lines = list(csv.DictReader(io.StringIO(saved.value.path().read_text())))
    assert [float(line["value"]) for line in lines] == pytest.approx([row["value"] for row in rows])
    shot(page, f"results-{question.partition(':')[0]}")


@pytest.mark.parametrize("role", ["admin", "owner", "reader"])
def test_results_for_owners_and_readers_need_a_token(people: People, collector: Served, role: str) -> None:
    name = high_low(collector, results="admin", listed=False)
    answer(people(), f"{collector.url}/c/{name}", "flu")
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("text=a token is needed")  # as the collector has said by then
    assert "Only owners and readers with a token may read these results" in page.inner_text("#token-form")
    token = collector.admin
    if role != "admin":
        token = collector.as_admin("POST", f"/v1/collections/{name}/roles", {"role": role}).json["token"]
    people.faults = [fault for fault in people.faults if "401" not in fault]
    page.fill("#admin", token)
    page.click("text=Show the results")
    page.wait_for_selector("#reports:text-is('1')")
    assert token not in str(page.context.storage_state())  # in the tab, and nowhere that outlives it


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

    def look(name: str) -> None:
        for device, (width, height), scheme in looks:
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            assert page.evaluate(CONTRAST.read_text(encoding="utf-8")) == [], f"{name}, {device}, {scheme}"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"
            fields = "[...document.querySelectorAll('input, select, textarea')]"
            assert page.evaluate(f"{fields}.filter(e => !e.labels.length && !e.ariaLabel).map(e => e.outerHTML)") == []
            shot(page, f"{name}-{device}-{scheme}")

    page.goto(collector.url)
    look("first")
    page.goto(f"{collector.url}/docs")
    look("api")
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".disclosure strong")
    look("survey")
    loud = opened(collector, "Which of these?", {"values": ILLNESSES}, {"kind": "uniform", "epsilon": "5"})
    page.goto(f"{collector.url}/c/{loud}?then={name}")
    page.wait_for_selector("#total")
    assert page.locator(".loud").count() == 2  # the reply's alarm, and the sum's
    look("survey-alarm")
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".disclosure strong")
    page.locator(".cells input").nth(9).check(force=True)
    send(page)
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
