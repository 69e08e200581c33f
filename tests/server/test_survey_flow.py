"""The survey page as participants use it: words for odds, replies in words, several questions, languages."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import sfumato as sf
from support import ROOT
from support.browsing import DESKTOP, ILLNESSES, PHONE, People, answer, choose, high_low, opened, read, send
from support.collectors import Served
from support.components import absent, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FOLDER = ROOT / "src" / "sfumato" / "server" / "pages"
GRID = {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 4, "columns": 6}}
#: A word and an address that are wider than a phone, a tag, an emoji, and a label that is read from right to left.
HARD = [
    "Donaudampfschifffahrtsgesellschaftskapitän" * 3,
    f"https://example.org/{'a' * 90}",
    "<b>bold</b>",
    "🙂",
    "لا أعرف",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Names that are not this machine's, so that pages from them are not secure.
    names = ("sfumato.local", "sfumato.example", "collector", "ai")
    with chromium(f"--host-resolver-rules={', '.join(f'MAP {name} 127.0.0.1' for name in names)}") as browser:
        yield browser


def times(share: float) -> str:
    """A probability as the page says it."""
    return f"{round(100 * share)} times in 100"


def fits(page: Page) -> bool:
    """Whether nothing is wider than the screen."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.component
def test_odds_are_said_in_words_of_the_exact_law(people: People, collector: Served) -> None:
    name = opened(collector, "Have you?", {"values": ["yes", "no"]}, {"kind": "uniform", "epsilon": "1"})
    mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
    (own, other), _ = mechanism.matrix()
    page = people()
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("#often li")
    text = page.inner_text("#often")
    assert f"If you answer “yes”, “yes” is sent {times(own)}." in text
    assert f"If you answer “no”, “yes” is sent {times(other)}." in text
    # After a choice, the sentences are about it.
    page.get_by_label("no", exact=True).check()
    page.wait_for_selector(f"#often:has-text('If you answer “no”, “no” is sent {times(own)}.')")


@pytest.mark.component
def test_a_map_is_confirmed_and_its_reply_is_lit_cells(people: People, collector: Served) -> None:
    policy: dict[str, Any] = {"kind": "blocks", "blocks": [x // 6 for x in range(24)], "epsilon": "1", "across": "2"}
    rules: list[dict[str, Any]] = [{"kind": "uniform", "epsilon": "1"}, policy]
    for rule in rules:
        name = opened(collector, f"Where, {rule['kind']}?", GRID, rule)
        page = people()
        page.goto(f"{collector.url}/c/{name}")
        page.wait_for_selector("#often li")
        assert "times in 100" in page.inner_text("#often")
        assert "lit" in page.inner_text("#often")
        # Groups differ by their numbers, not by colours alone.
        marks = page.locator(".cells.pick .mark").all_text_contents()
        assert marks == (["4"] * 6 + ["3"] * 6 + ["2"] * 6 + ["1"] * 6 if rule is policy else [])
        page.locator(".cells.pick input").nth(8).check(force=True)
        page.click("text=Check my choice")
        page.wait_for_selector("#confirm:has-text('row 3, column 3')")
        assert page.evaluate("document.activeElement.textContent") == "Is this your choice?"
        assert page.locator("#confirm .lit").count() == 1
        assert read(collector, name)["reports"] == 0
        page.click("#confirm >> text=Randomize and send")
        page.wait_for_selector("[data-state=sent]")
        drawn = page.inner_text("#drawn")
        assert "code" not in drawn
        mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
        report = json.loads(page.text_content("#sent") or "")["report"]
        number = report if isinstance(report, int) else int.from_bytes(bytes.fromhex(report), "little")
        law = [mechanism.probability(number, x) for x in range(24)]
        likeliest = sum(probability == max(law) for probability in law)
        lit = page.locator("#outcome .lit").count()
        assert lit in (likeliest, 0)
        assert drawn.startswith(f"{lit} lit cells of 24") or lit < 2
        assert fits(page)


@pytest.mark.component
def test_each_promise_of_a_rule_with_groups_is_stated(people: People, collector: Served) -> None:
    page = people()
    rule = {"kind": "blocks", "blocks": [0, 0, 1, 1], "epsilon": "0.5", "across": "2"}
    name = opened(collector, "Two levels?", {"values": ILLNESSES}, rule)
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("#bounds li")
    within, across = page.locator("#bounds li").all_inner_texts()
    assert "knows your group" in within
    assert "Between groups" in across
    bounds = [float(re.search(r"at most ([\d.]+)%", text)[1]) for text in (within, across)]  # type: ignore[index]
    checked = collector.as_admin("POST", "/v1/check", {"policy": read(collector, name)["policy"], "before": 0.1}).json
    assert bounds[0] / 100 <= checked["within"] + 0.001
    assert bounds[1] / 100 <= checked["across"] + 0.001
    assert checked["within"] < checked["across"]
    # Groups with levels of their own.
    rule = {"kind": "blocks", "blocks": [0, 0, 1, 1], "epsilon": ["0.5", "2"]}
    name = opened(collector, "Levels by group?", {"values": ILLNESSES}, rule)
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("#bounds:has-text('one of “none” or “flu”')")
    assert "one of “hiv” or “cancer”" in page.inner_text("#bounds")


@pytest.mark.component
def test_several_questions_have_a_way_back_an_end_and_a_total(people: People, collector: Served) -> None:
    names = [high_low(collector, f"Question about {subject}?") for subject in ("health", "home", "work")]
    link = f"{collector.url}/c/{names[0]}?then={names[1]},{names[2]}"
    page = people()
    answer(page, link, "flu")
    text = page.inner_text("main")
    assert "You can close this page" not in text
    assert "2 questions are left" in text
    page.click("text=Next question")
    page.wait_for_selector("h1:has-text('home')")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.go_back()
    page.wait_for_selector("#outcome")  # of the first question, not another page
    assert "health" in page.inner_text("h1")
    page.go_forward()
    page.wait_for_selector("h1:has-text('home')")
    page.click("text=I would rather not answer")
    page.wait_for_selector("text=You did not answer")
    # A declined question is not asked again.
    page.reload()
    page.wait_for_selector("h1:has-text('work')")
    choose(page, "none")
    send(page)
    page.wait_for_selector("[data-state=sent]")
    page.click("text=Finish")
    page.wait_for_selector("#end li")
    assert page.locator("#end li").evaluate_all("items => items.map((item) => item.dataset.state)") == [
        "sent",
        "declined",
        "sent",
    ]
    # Two replies of ε = 1: e^2 times the odds of 1 to 9 are 45.1%.
    page.wait_for_selector("#so-far:has-text('from 10% to at most 45.1%')")
    page.reload()
    page.wait_for_selector("#end")
    page.click("#end li:nth-child(2) button")
    page.wait_for_selector("text=Answer after all")
    assert [read(collector, name)["reports"] for name in names] == [1, 0, 1]


@pytest.mark.component
def test_hard_labels_fit_a_phone_and_are_not_markup(people: People, collector: Served) -> None:
    name = opened(collector, HARD[0], {"values": HARD}, {"kind": "uniform", "epsilon": "1"}, description=HARD[1])
    page = people(PHONE)
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("#often li")
    assert page.locator(".choice").all_inner_texts() == HARD
    assert page.locator("main b").count() == 0
    assert fits(page)
    choose(page, HARD[1])
    send(page)
    page.wait_for_selector("[data-state=sent]")
    assert fits(page)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#table tbody")
    assert fits(page)
    # A long label breaks, so that the first number stays on the screen.
    assert page.evaluate("document.querySelector('#table td').getBoundingClientRect().right <= innerWidth")


@pytest.mark.component
def test_two_thousand_values_and_fifty_questions_fit_a_phone(people: People, collector: Served) -> None:
    values = [f"village {number}" for number in range(2000)]
    rule = {"kind": "uniform", "epsilon": "1"}
    many = opened(collector, "Which village?", {"values": values}, rule)
    big = opened(
        collector, "Which place?", {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 40, "columns": 40}}, rule
    )
    page = people(PHONE)
    answer(page, f"{collector.url}/c/{many}", "village 1999")
    assert len(page.inner_text("#drawn")) < 400
    assert fits(page)
    page.goto(f"{collector.url}/c/{big}")
    page.wait_for_selector(".cells.pick")
    assert page.locator(".cells.pick input").count() == 1600
    assert fits(page)
    short = opened(collector, "Short?", {"values": ["yes", "no"]}, rule)
    page.goto(f"{collector.url}/c/{many}?then={','.join([short] * 49)}")
    page.wait_for_selector("#total")
    assert "Question 2 of 50" in page.inner_text("main")
    assert fits(page)


@pytest.mark.component
def test_the_chosen_cell_shows_in_forced_colours(people: People, collector: Served) -> None:
    name = opened(collector, "Where?", GRID, {"kind": "uniform", "epsilon": "1"})
    page = people(DESKTOP)
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector(".cells.pick")
    page.locator(".cells.pick input").nth(3).check(force=True)
    colours = page.locator(".cells.pick .cell").evaluate_all(
        "cells => cells.map((c) => getComputedStyle(c).backgroundColor)"
    )
    assert colours[3] not in colours[:3]


@pytest.mark.component
def test_a_link_opens_without_the_network_after_the_first_visit(people: People, collector: Served) -> None:
    names = [high_low(collector, f"Offline {number}?") for number in (1, 2)]
    link = f"{collector.url}/c/{names[0]}?then={names[1]}"
    page = people(PHONE, workers="allow")
    page.goto(link)
    page.wait_for_selector("html[data-offline=ready]")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.context.set_offline(True)
    page.goto(link)
    page.wait_for_selector("#offline")
    for _ in names:
        page.wait_for_selector("#often li")
        choose(page, "flu")
        send(page)
        page.wait_for_selector("[data-state=waiting]")
        page.click("#outcome button.main")
    page.wait_for_selector("#end li[data-state=waiting]")
    assert [read(collector, name)["reports"] for name in names] == [0, 0]
    page.context.set_offline(False)
    page.wait_for_selector("#end li:nth-child(2)[data-state=sent]")
    assert [read(collector, name)["reports"] for name in names] == [1, 1]
    # A link with a question that does not exist opens the others.
    page.goto(f"{link},aaaaaaaaaaaaaaaa")
    page.wait_for_selector("html[data-offline=ready]")
    page.context.set_offline(True)
    page.goto(f"{link},aaaaaaaaaaaaaaaa")
    page.wait_for_selector("#end, h1:has-text('cannot be shown')")
    page.context.set_offline(False)
    people.faults = [fault for fault in people.faults if "404" not in fault]
    # Stored copies hold neither tokens nor reports.
    stored = page.evaluate("caches.open('sfumato-survey').then((c) => c.keys()).then((all) => all.map((r) => r.url))")
    assert not [url for url in stored if "reports" in url or "#" in url]
    people.expected = "ERR_|Failed to fetch"


@pytest.mark.component
@pytest.mark.parametrize(("language", "direction", "send_label"), [("de", "ltr", "Verrauschen"), ("ar", "rtl", "موّه")])
def test_participants_choose_their_language(
    people: People, collector: Served, language: str, direction: str, send_label: str
) -> None:
    names = [high_low(collector, f"Sprache {language} {number}") for number in (1, 2)]
    page = people(PHONE)
    page.goto(f"{collector.url}/c/{names[0]}?then={names[1]}&lang={language}")
    page.wait_for_selector("#often li")
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [language, direction]
    assert send_label in page.inner_text("form button.main")
    # No message of another language is left.
    assert not re.search(r"\b(the|your|answer|question)\b", page.inner_text("main"))
    choose(page, "flu")
    send(page)
    page.wait_for_selector("[data-state=sent]")
    assert not re.search(r"\b(the|your|answer|question)\b", page.inner_text("main"))
    assert fits(page)
    page.select_option(".language select", "en")
    page.wait_for_selector("text=Thank you, your reply has arrived")
    assert page.evaluate("document.documentElement.dir") == "ltr"


def test_catalogues_have_the_same_messages_and_places() -> None:
    node = shutil.which("node")
    if node is None:
        absent("node, which runs the scripts of the pages, is not on this machine")
    files = {name: (FOLDER / f"{name}.js").as_uri() for name in ("messages", "messages-de", "messages-ar")}
    script = f"""
        const {{ ENGLISH, LANGUAGES }} = await import({json.dumps(files["messages"])})
        const paths = {json.dumps([files["messages-de"], files["messages-ar"]])}
        const others = await Promise.all(paths.map((file) => import(file)))
        console.log(JSON.stringify([Object.keys(LANGUAGES), ENGLISH, ...others.map((one) => one.default)]))
    """
    run = subprocess.run([node, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=True)
    languages, english, *others = json.loads(run.stdout)
    assert languages == ["en", "de", "ar"]
    for other in others:
        assert set(other) == set(english)
        for key, message in english.items():
            assert message.strip()
            assert sorted(set(re.findall(r"\{\w+\}", other[key]))) == sorted(set(re.findall(r"\{\w+\}", message))), key
    sources = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("survey.js", "words.js", "domains.js"))
    used = set(re.findall(r'(?:\bt|stressedMessage|plain)\("([a-z0-9-]+)"', sources))
    known = {re.sub(r"\.\w+$", "", key) for key in english}
    assert used <= known | {"exposed"}, used - known


@pytest.mark.component
def test_a_survey_is_answered_over_plain_http_in_a_local_network(people: People, collector: Served) -> None:
    """Browsers lack digests, locks and service workers there; the page says what is missing before it draws."""
    rules: list[dict[str, Any]] = [{"kind": "uniform", "epsilon": "1"}, {"kind": "blocks", "blocks": [0, 0, 1, 1]}]
    names = [
        opened(collector, f"Plain {number}?", {"values": ILLNESSES}, {"epsilon": "1", **rule})
        for number, rule in enumerate(rules)
    ]
    page = people(PHONE)
    hashes = ",".join(read(collector, name)["mechanism_hash"][:32] for name in names)
    address = f":{collector.port}/c/{names[0]}?then={names[1]}#;{hashes}"
    page.goto(f"http://sfumato.local{address}")
    page.wait_for_selector("h1:text-is('This page is not encrypted')")
    assert page.evaluate("[isSecureContext, !crypto.subtle, !navigator.locks, !navigator.serviceWorker]") == [
        False,
        True,
        True,
        True,
    ]
    assert "could change this page" in page.inner_text("#plain")
    assert fits(page)
    page.select_option(".language select", "de")
    page.wait_for_selector("h1:text-is('Diese Seite ist nicht verschlüsselt')")
    page.select_option(".language select", "en")
    page.click("text=Continue without encryption")
    for name in names:
        page.wait_for_selector("#plain-http")
        choose(page, "flu")
        send(page)
        page.wait_for_selector("[data-state=sent]")
        assert read(collector, name)["reports"] == 1
        page.click("#outcome button.main")
    page.wait_for_selector("#end li:nth-child(2)[data-state=sent]")
    # A reload neither asks nor draws again.
    page.reload()
    page.wait_for_selector("#end li:nth-child(2)[data-state=sent]")
    # Another mechanism than that of the link is refused, as on an encrypted page.
    other = people(PHONE)
    other.goto(f"http://sfumato.local:{collector.port}/c/{names[0]}#;{'0' * 32}")
    other.click("text=Continue without encryption")
    other.wait_for_selector("text=This question cannot be shown")
    # Outside of local networks, nothing is answered without encryption.
    public = people(PHONE)
    for host in ("sfumato.example", "ai"):  # a top-level domain of a country can have an address
        public.goto(f"http://{host}{address}")
        public.wait_for_selector("text=This survey cannot be answered here")
        assert public.locator("button").count() == 0
    public.goto(f"http://collector{address}")
    public.wait_for_selector("h1:text-is('This page is not encrypted')")
    # Requests go to these names, and the browser says that it ignores a header on plain HTTP.
    people.expected = r"^a request to http://(sfumato\.|ai:|collector:)|^The Cross-Origin-Opener-Policy header has been"
    assert [read(collector, name)["reports"] for name in names] == [1, 1]


@pytest.mark.component
def test_participants_see_when_replies_are_deleted_and_that_a_survey_was(people: People, collector: Served) -> None:
    texts = {}
    for days in (None, 0, 30):
        name = high_low(collector, f"Kept {days}?", keep_days=days)
        page = people(PHONE)
        page.goto(f"{collector.url}/c/{name}")
        page.wait_for_selector("#retention")
        texts[days] = page.inner_text("#retention")
    assert texts[None] == "The collector keeps single replies until the owner of the survey deletes it."
    assert texts[0] == "The collector stores no single replies, only counts."
    until = page.evaluate(
        "new Date(Date.now() + 30 * 86400000).toLocaleDateString('en', { dateStyle: 'long', timeZone: 'UTC' })"
    )
    assert texts[30] == f"The collector deletes single replies by {until} and keeps only counts."
    answer(page, f"{collector.url}/c/{name}", "flu")
    collector.as_admin("PATCH", f"/v1/collections/{name}", {"state": "closed"})
    deleted = collector.as_admin("DELETE", f"/v1/collections/{name}")
    assert deleted.status == 200
    page.goto(f"{collector.url}/c/{name}")
    page.wait_for_selector("text=This survey was deleted, with the replies to it.")
    stranger = people(PHONE)
    stranger.goto(f"{collector.url}/c/{name}")
    stranger.wait_for_selector("text=This survey does not exist.")
    people.expected = "404"


@pytest.mark.component
def test_a_waiting_reply_to_a_deleted_survey_is_dropped(people: People, collector: Served) -> None:
    """The page says that nothing more is sent, so the collector's 404 must end the attempts."""
    name = high_low(collector, "Deleted meanwhile?")
    link, page = f"{collector.url}/c/{name}", people(PHONE)
    page.route("**/reports", lambda route: route.fulfill(status=503, json={"error": {"reason": "overloaded"}}))
    page.goto(link)
    choose(page, "flu")
    send(page)
    page.wait_for_selector("[data-state=waiting]")
    for method, body in (("PATCH", {"state": "closed"}), ("DELETE", None)):
        assert collector.as_admin(method, f"/v1/collections/{name}", body).status == 200
    page.unroute("**/reports")
    page.goto(link)
    page.wait_for_selector("text=Nothing more is sent.")
    stored = "import('/static/sfumato.js').then(async ({ answers, flush }) => [await flush(), await answers()])"
    waiting, (reply,) = page.evaluate(stored)
    assert (waiting, reply["state"], reply["problem"]["reason"]) == (0, "refused", "not-found")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.evaluate(stored)
    assert not [url for url in requests if url.endswith("/reports")]
    people.expected = "404|503"
