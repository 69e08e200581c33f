"""Take the screenshots of the documentation site: ten states, by size and colour scheme."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.device import privatize_indices
from support import ROOT
from support.collectors import Served
from support.components import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.component

FOLDER = ROOT / "build" / "screenshots"
SIZES = {"desktop": (900, 760), "phone": (390, 844)}
QUESTION = "Which of these did you have in the last year?"
ILLNESSES = ["none", "flu", "depression", "hiv", "cancer"]
SENSITIVE = ["depression", "hiv", "cancer"]
SHARES = [0.55, 0.25, 0.12, 0.03, 0.05]
#: Space around the elements of a picture, in pixels.
MARGIN = 16
#: Cells of the map that are painted as sensitive, by rows from the north.
PAINTED = (8, 9, 14, 15)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(reduced_motion="reduce", device_scale_factor=2)
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def take(page: Page, name: str, first: str, last: str) -> None:
    """Write pictures of a page, from one element to another, in each size and colour scheme."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    schemes: tuple[Any, ...] = ("light", "dark")
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
        # Charts are drawn again for the new width.
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, size)
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            top, bottom = (page.locator(selector).first.bounding_box() for selector in (first, last))
            assert top is not None
            assert bottom is not None
            start, end = max(top["y"] - MARGIN, 0), bottom["y"] + bottom["height"] + MARGIN
            clip: Any = {"x": 0, "y": start, "width": width, "height": end - start}
            path = FOLDER / f"{name}-{size}-{scheme}.png"
            page.screenshot(path=path, full_page=True, clip=clip, animations="disabled")


def open_studio(page: Page, collector: Served, kind: str) -> None:
    """Open Studio with the admin token, and choose a kind of question and the rule on sensitive values."""
    page.goto(f"{collector.url}/studio")
    page.fill("#admin-token", collector.admin)
    page.press("#admin-token", "Enter")
    page.locator("#admin-token").wait_for(state="detached")
    page.check(f"input[name=one-of-kind][value={kind}]")
    page.check("input[name=one-of-keep][value=high-low]")


def open_collection(collector: Served, policy: sf.Policy, title: str, shares: Any, people: int) -> str:
    """Open a collection, submit simulated answers, and return the address of its survey."""
    name, mechanism, _ = collector.create(policy, title=title, n=people, submission="open")
    values = np.random.default_rng(1).choice(len(shares), people, p=shares)
    reports = privatize_indices(mechanism, values, sf.InsecureSeeded(1))
    assert collector.send(name, mechanism, reports, "screenshots-1", collector.admin).status == 200
    return f"{collector.url}/c/{name}"


def test_studio(page: Page, collector: Served) -> None:
    open_studio(page, collector, "list")
    page.fill("#title", QUESTION)
    page.fill("#values", "\n".join(ILLNESSES))
    for value in SENSITIVE:
        page.click(f".cell:has-text('{value}')")
    page.fill("#people", "2000")
    page.wait_for_selector("#predicted:has-text('2,000')")
    page.wait_for_selector("#curve svg")
    page.select_option("#expected", "own")
    page.fill("#own-shares", "55 25 12 3 5")
    page.wait_for_selector("#shares li:has-text('hiv: 3.0%')")
    take(page, "studio", "section.card:has(#title)", "section.card:has(#region)")
    take(page, "tradeoff", "section.card:has(#curve)", "section.card:has(#curve)")
    take(page, "outlook", "section.card:has(#shares)", "section.card:has(#participants)")


def test_studio_with_a_map(page: Page, collector: Served) -> None:
    open_studio(page, collector, "grid")
    page.fill("#title", "Where were you at noon?")
    page.fill("#rows", "4")
    page.fill("#columns", "6")
    for cell in PAINTED:
        page.locator(".map .cell").nth(cell).click()
    page.wait_for_selector("#curve svg")
    take(page, "studio-map", "section.card:has(.map)", "section.card:has(.map)")


def test_survey_and_results(page: Page, collector: Served) -> None:
    policy = sf.HighLow(sf.Domain(ILLNESSES), SENSITIVE, epsilon=1)
    link = open_collection(collector, policy, QUESTION, SHARES, 10_000)
    page.goto(link)
    page.get_by_label("flu", exact=True).check()
    page.wait_for_selector(".disclosure strong")
    take(page, "survey", "h1", ".card:has(.disclosure)")
    page.click("form button.main")
    page.wait_for_selector("[data-state=sent]")
    take(page, "reply", "h1", "main")
    page.goto(f"{link}/results")
    page.wait_for_selector("#chart svg")
    take(page, "results", "header", ".card:has(#chart)")


def test_results_on_a_map(page: Page, collector: Served) -> None:
    domain = sf.Domain.grid(latitude=(46, 48), longitude=(6, 10), rows=6, columns=9)
    north, east = np.mgrid[0:6, 0:9]
    density = np.exp(-((north - 2) ** 2 + (east - 3) ** 2) / 3) + 0.6 * np.exp(-((north - 4) ** 2 + (east - 7) ** 2))
    shares = density.ravel() / density.sum()
    link = open_collection(collector, sf.Uniform(domain, 3), "Where do you work?", shares, 20_000)
    page.goto(f"{link}/results")
    page.wait_for_selector("#chart .patch")
    take(page, "results-map", "header", ".card:has(#chart)")
    page.goto(link)
    page.wait_for_selector(".map .cell, .map input")
    take(page, "survey-map", "h1", ".card:has(.disclosure)")


def test_my_surveys(page: Page, collector: Served) -> None:
    policy = sf.HighLow(sf.Domain(ILLNESSES), SENSITIVE, epsilon=1)
    open_collection(collector, policy, "What do you have now?", SHARES, 2_000)
    page.goto(f"{collector.url}/surveys")
    page.fill("input[type=password]", collector.admin)
    page.press("input[type=password]", "Enter")
    page.wait_for_selector("text=What do you have now?")
    take(page, "my-surveys", "header", "main")


def test_every_screenshot_of_the_site_has_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    hook = importlib.import_module("site_screenshots")
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'take(page, "{name}"' in source for name in hook.SCREENSHOTS)
