"""The rules of axe-core on every page and state, on a phone and on a desktop, in light and dark."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.device import privatize_indices
from support.browsing import DESKTOP, ILLNESSES, PHONE, People, choose, enter_studio, high_low, opened, read, send
from support.collectors import Served
from support.components import absent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.component

AXE = "4.14.0"
GRID = {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 3, "columns": 4}}
BLOCKS = {"kind": "blocks", "blocks": [x // 4 for x in range(12)], "epsilon": "1", "across": "2"}


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from the cache or from npm."""
    npm = shutil.which("npm")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "sfumato-tests" / f"axe-core-{AXE}"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        if npm is None:
            absent("npm, which installs axe-core, is not on this machine")
        command = [npm, "install", "--no-audit", "--no-fund", "--fetch-retries=10", "--prefix", str(folder)]
        command += [f"axe-core@{AXE}"]
        if subprocess.run(command, capture_output=True, check=False, cwd=tmp_path_factory.mktemp("npm")).returncode:
            absent(f"axe-core {AXE} could not be installed")
    return script.read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[Any]:
    """Return the violated rules of a page with the first element of each, in both colour schemes."""
    broken: list[Any] = []
    looks: list[tuple[Any, tuple[int, int]]] = [("light", PHONE), ("dark", DESKTOP)]
    for scheme, (width, height) in looks:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.evaluate(axe)
        rules = page.evaluate("axe.run().then(({ violations }) => violations)")
        broken += [[rule["id"], rule["nodes"][0]["html"], rule["nodes"][0]["failureSummary"]] for rule in rules]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return broken


def test_survey_pages_break_no_rule(browser: Browser, collector: Served, axe: str) -> None:
    people = People(browser, collector)
    page = people()
    names = [
        opened(collector, "Where?", GRID, BLOCKS),
        high_low(collector, "And which?"),
        high_low(collector, "And then?"),
    ]
    page.goto(f"{collector.url}/c/{names[0]}?then={names[1]},{names[2]}")
    page.wait_for_selector("#total")
    assert violations(page, axe) == []
    page.locator(".cells.pick input").nth(3).check(force=True)
    page.click("text=Check my choice")
    page.wait_for_selector("#confirm:visible")
    assert violations(page, axe) == []
    page.click("#confirm button.main")
    page.wait_for_selector("[data-state=sent]")
    assert violations(page, axe) == []
    page.click("text=Next question")
    page.wait_for_selector("h1:has-text('which')")
    page.click("text=I would rather not answer")
    page.wait_for_selector("text=You did not answer")
    assert violations(page, axe) == []
    page.click("text=Next question")
    choose(page, "flu")
    page.select_option(".language select", "ar")
    page.wait_for_selector("form button.main:has-text('موّه')")  # the form follows the direction of the page
    assert violations(page, axe) == []
    choose(page, "flu")
    send(page)
    page.wait_for_selector("[data-state=sent]")
    page.click("#outcome button.main")
    page.wait_for_selector("#end li[data-state=sent]")
    assert violations(page, axe) == []
    for path in ("/", "/docs", "/guide", "/c/aaaaaaaaaaaaaaaa", "/nowhere"):
        page.goto(f"{collector.url}{path}")
        page.wait_for_selector("h1")
        assert violations(page, axe) == [], path
    page.context.close()


def test_studio_and_results_break_no_rule(browser: Browser, collector: Served, axe: str) -> None:
    people = People(browser, collector)
    page = people(DESKTOP)
    page.goto(f"{collector.url}/studio")
    assert violations(page, axe) == []
    enter_studio(page, collector)
    page.fill("#title", "Which of these?")
    page.fill("#values", "\n".join(ILLNESSES))
    page.click("text=Which one of a group")
    page.click("text=Add a question")
    page.click("text=A place on a map")
    page.click("text=Some values are sensitive")
    page.locator(".map .cell").nth(3).click()
    page.wait_for_selector("#curve svg")
    page.wait_for_selector("#together strong")
    assert violations(page, axe) == []
    page.click("button:text-is('Question 1')")
    page.wait_for_selector("#promise strong")
    page.wait_for_selector("#simulated svg")
    page.click("text=Compare all randomizers")
    page.focus("#plan-table button.term")
    assert violations(page, axe) == []
    first, second = (opened(collector, title, GRID, BLOCKS) for title in ("North", "South"))
    for path in (f"/c/{first}/results", f"/c/{first}/results?with={second}", f"/c/{first}/results?then={second}"):
        page.goto(f"{collector.url}{path}")
        page.wait_for_selector("#permalink input")
        assert violations(page, axe) == [], path
    for name in (first, second):
        mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
        reports = privatize_indices(mechanism, np.arange(600) % 12, sf.InsecureSeeded(1))
        assert collector.send(name, mechanism, reports, "all-its-reports").status == 200
    # The tab has the token of an administrator, who sees the days.
    page.goto(f"{collector.url}/c/{first}/results?with={second}&view=bars")
    for selector in ("#differences tbody tr", "#days .day", "#compare:visible"):
        page.wait_for_selector(selector)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert violations(page, axe) == []
    page.goto(f"{collector.url}/c/{first}/embed")
    page.wait_for_selector("svg .patch")
    assert violations(page, axe) == []
    page.context.close()


def test_my_surveys_break_no_rule(browser: Browser, collector: Served, axe: str) -> None:
    name = high_low(collector, "Mine?", submission="token", label="Pilot")
    page = People(browser, collector)(DESKTOP)
    page.goto(f"{collector.url}/surveys")
    assert violations(page, axe) == []
    page.fill("#admin-token", collector.admin)
    page.click("text=Show my surveys")
    page.click(f"[data-survey='{name}'] summary")
    page.click("text=Create links")
    page.wait_for_selector("text=Download the links (CSV)")
    for part in ("Owners and readers", "Answers per day", "Log"):
        page.click(f"summary:text-is('{part}')")
    page.click("text=Create the role")
    page.wait_for_selector("td:text-is('grant')")
    page.wait_for_selector("text=Link for the reader")
    assert violations(page, axe) == []
    page.click("text=Delete the survey")
    page.wait_for_selector("dialog[open]")
    assert violations(page, axe) == []
    page.context.close()


def test_every_kind_of_question_breaks_no_rule(browser: Browser, collector: Served, axe: str) -> None:
    """Consent, scales, numbers, marks, districts, and the states in which nothing can be answered."""
    page = People(browser, collector)()
    rule = {"kind": "uniform", "epsilon": "1"}
    square = {"rings": [[[0, 0], [9000, 0], [9000, 9000], [0, 9000]]], "name": "Old town"}
    background = {"shapes": [square], "districts": [0] * 8 + [-1] * 4}
    ends = {"low_label": "not at all", "high_label": "very", "consent": "We study content.", "required": True}
    marks = {"product": {"flu": ["no", "yes"], "cold": ["no", "yes"]}, "order": ["flu", "cold"]}
    first = opened(collector, "How content?", {"low": 1, "high": 8}, rule, presentation=ends, question="mean")
    page.goto(f"{collector.url}/c/{first}")
    page.wait_for_selector("#consent")
    assert violations(page, axe) == []
    page.click("#disagree")
    page.wait_for_selector("text=You did not agree")
    assert violations(page, axe) == []
    page.click("text=Read it again")
    page.click("#agree")
    page.wait_for_selector(".scale")
    page.click("form button.main")
    page.wait_for_selector("form .alarm:visible")
    assert violations(page, axe) == []
    number = opened(collector, "How old?", {"low": 0, "high": 100, "bins": 10, "missing": "unknown"}, rule)
    page.goto(f"{collector.url}/c/{number}")
    page.fill("#number", "41")
    page.wait_for_selector("#counted:has-text('40 to below 50')")
    assert violations(page, axe) == []
    marked = opened(collector, "Which?", marks, rule, question="marginals:1")
    page.goto(f"{collector.url}/c/{marked}")
    page.get_by_label("cold").check()
    page.click("text=Check my choice")
    page.wait_for_selector("#confirm:visible")
    assert violations(page, axe) == []
    place = opened(collector, "Where?", GRID, BLOCKS, presentation={"background": background})
    page.goto(f"{collector.url}/c/{place}?lang=ar")
    page.wait_for_selector(".background")
    page.click(".zoom button >> nth=1")
    assert violations(page, axe) == []
    page.select_option(".language select", "en")
    unlinked = high_low(collector, "Personal?", submission="token")
    closed = high_low(collector, "Closed?")
    assert collector.as_admin("PATCH", f"/v1/collections/{closed}", {"state": "closed"}).status == 200
    waves = {"count": 3, "days": 7}
    lifetime = {"domain": {"values": ILLNESSES}, "policy": {"kind": "uniform", "epsilon": "2"}}
    again = opened(collector, "Again?", {"values": ILLNESSES}, rule, waves=waves, lifetime=lifetime)
    for name, text in ((unlinked, "personal link"), (closed, "is closed"), (again, "Wave 1 of 3")):
        page.goto(f"{collector.url}/c/{name}")
        page.wait_for_selector(f"text={text}")
        assert violations(page, axe) == [], text
    page.context.set_offline(True)
    choose(page, "flu")
    send(page)
    page.wait_for_selector("[data-state=waiting]")
    assert violations(page, axe) == []
    page.context.set_offline(False)
    page.wait_for_selector("[data-state=sent]")
    for name, selector in (
        (again, "#trends svg"),
        (place, "#verdict p"),
        (first, "#verdict p"),
        (marked, "#verdict p"),
    ):
        page.goto(f"{collector.url}/c/{name}/results")
        page.wait_for_selector(selector)
        assert violations(page, axe) == [], name
    mechanism = sf.mechanism_from_spec(read(collector, place)["mechanism"])
    reports = privatize_indices(mechanism, np.arange(600) % 12, sf.InsecureSeeded(1))
    assert collector.send(place, mechanism, reports, "all-its-reports").status == 200
    page.goto(f"{collector.url}/c/{place}/results?lang=ar")
    page.wait_for_selector("#districts tbody")
    assert violations(page, axe) == []
    page.context.close()


def test_studio_breaks_no_rule_for_any_kind_of_question(browser: Browser, collector: Served, axe: str) -> None:
    page = People(browser, collector)(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "What?")
    shapes = {"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 1]]]}
    for kind in ("marks", "scale", "number", "product", "grid"):
        page.check(f"input[name=one-of-kind][value={kind}]")
        if kind == "marks":
            page.fill("#values", "flu\ncold")
        if kind == "product":
            page.check("input[name=one-of-keep][value=secret]")
        if kind == "grid":
            content = json.dumps(shapes).encode()
            page.set_input_files("#geojson", {"name": "a.json", "mimeType": "application/json", "buffer": content})
            page.wait_for_selector("#districts")
            page.click("#group-districts")
        page.check("input[name=one-of-again][value=again]")
        page.wait_for_selector("#predicted strong")
        page.wait_for_selector("#participants .promise")
        assert violations(page, axe) == [], kind
        page.check("input[name=one-of-again][value=once]")
    for submission in ("token", "open"):
        page.check(f"input[name=one-of-submission][value={submission}]")
        page.click("text=Open the survey")
        page.wait_for_selector("#done h2")
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert violations(page, axe) == [], submission
        if submission == "token":
            page.click("text=Download the links (CSV)")
            page.click("text=Make another like it")
    page.context.close()
