"""Take the screenshots of the documentation site: Studio, a survey and results, in both colour schemes."""

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
from support.collectors import Served, served
from support.components import PATIENCE, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.component

FOLDER = ROOT / "build" / "screenshots"
PHONE, DESKTOP = (430, 760), (900, 760)
QUESTION = "Which of these did you have in the last year?"
ILLNESSES = ["none", "flu", "depression", "hiv", "cancer"]
SENSITIVE = ["depression", "hiv", "cancer"]
SHARES = [0.55, 0.25, 0.12, 0.03, 0.05]
#: Space around the elements of a picture, in pixels.
MARGIN = 16
#: Cells of the map that are painted as sensitive, by rows from the north.
PAINTED = (8, 9, 14, 15)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path_factory.mktemp('collector')}/collect.db") as collector:
        yield collector


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(reduced_motion="reduce", device_scale_factor=2)
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def take(page: Page, name: str, size: tuple[int, int], first: str, last: str) -> None:
    """Write a picture of a page, from one element to another, in each colour scheme."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    top, bottom = (page.locator(selector).first.bounding_box() for selector in (first, last))
    assert top is not None
    assert bottom is not None
    start, end = max(top["y"] - MARGIN, 0), bottom["y"] + bottom["height"] + MARGIN
    schemes: tuple[Any, ...] = ("light", "dark")
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        clip: Any = {"x": 0, "y": start, "width": size[0], "height": end - start}
        page.screenshot(path=FOLDER / f"{name}-{scheme}.png", full_page=True, clip=clip, animations="disabled")


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
    take(page, "studio", DESKTOP, "section.card:has(.cell)", "section.card:has(#curve)")


def test_studio_with_a_map(page: Page, collector: Served) -> None:
    open_studio(page, collector, "grid")
    page.fill("#title", "Where were you at noon?")
    page.fill("#rows", "4")
    page.fill("#columns", "6")
    for cell in PAINTED:
        page.locator(".map .cell").nth(cell).click()
    page.wait_for_selector("#curve svg")
    take(page, "studio-map", DESKTOP, "section.card:has(.map)", "section.card:has(.map)")


def test_survey_and_results(page: Page, collector: Served) -> None:
    policy = sf.HighLow(sf.Domain(ILLNESSES), SENSITIVE, epsilon=1)
    link = open_collection(collector, policy, QUESTION, SHARES, 10_000)
    page.goto(link)
    page.get_by_label("flu", exact=True).check()
    page.wait_for_selector(".disclosure strong")
    take(page, "survey", PHONE, "h1", ".card:has(.disclosure)")
    page.goto(f"{link}/results")
    page.wait_for_selector("#chart svg")
    take(page, "results", DESKTOP, "main", ".card:has(#chart)")


def test_results_on_a_map(page: Page, collector: Served) -> None:
    domain = sf.Domain.grid(latitude=(46, 48), longitude=(6, 10), rows=6, columns=9)
    north, east = np.mgrid[0:6, 0:9]
    density = np.exp(-((north - 2) ** 2 + (east - 3) ** 2) / 3) + 0.6 * np.exp(-((north - 4) ** 2 + (east - 7) ** 2))
    shares = density.ravel() / density.sum()
    page.goto(f"{open_collection(collector, sf.Uniform(domain, 3), 'Where do you work?', shares, 20_000)}/results")
    page.wait_for_selector("#chart .patch")
    take(page, "results-map", DESKTOP, "main", ".card:has(#chart)")


def test_every_screenshot_of_the_site_has_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    hook = importlib.import_module("site_screenshots")
    source = Path(__file__).read_text(encoding="utf-8")
    assert all(f'take(page, "{name}"' in source for name in hook.SCREENSHOTS)
