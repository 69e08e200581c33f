"""The documentation site builds without warnings or a network, holds every page, and has no broken link."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from support import ROOT
from support.components import PATIENCE, chromium
from support.public_names import public_members, public_names

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"

#: Program that runs mkdocs with every connection failing, so that a build which needs another host ends with an error.
OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise OSError("no network")
socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--config-file", sys.argv[1], "--site-dir", sys.argv[2]])
"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve the site without a log."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Drop the message."""


class Page(HTMLParser):
    """The addresses that a page links to (``links``) and loads (``loads``), and the names that links can point at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.names: set[str] = set()
        self.html = path.read_text(encoding="utf-8")
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.names |= {attributes[name] for name in ("id", "name") if name in attributes}
        for name in ("href", "src", "srcset", "data", "action", "poster"):
            if name in attributes and not attributes[name].startswith("data:"):
                (self.links if tag == "a" else self.loads).add(attributes[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-c", OFFLINE, str(ROOT / "mkdocs.yml"), str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def test_every_page_is_built_and_in_the_navigation(site: Path, pages: dict[Path, Page]) -> None:
    first = pages[site / "index.html"]
    reached = {(site / urlsplit(link).path).resolve() for link in first.links}
    for source in DOCS.rglob("*.md"):
        name = "index.html" if source.name == "README.md" else f"{source.stem}.html"
        built = site / source.relative_to(DOCS).parent / name
        assert built in pages, f"{source.name} was not built"
        assert built.resolve() in reached, f"{source.name} is not in the navigation (nav, mkdocs.yml)"


def test_no_page_loads_anything_from_another_host(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for address in page.loads:
            assert not urlsplit(address).netloc, f"{path.name} loads {address}"
    for style in site.rglob("*.css"):
        for address in re.findall(r"url\(([^)]*)\)|@import\s*\"([^\"]*)\"", style.read_text(encoding="utf-8")):
            assert not urlsplit("".join(address).strip("'\"")).netloc, f"{style.name} loads {address}"


def test_pages_link_to_other_hosts_only_where_their_text_does(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        others = {link for link in page.links if urlsplit(link).netloc}
        if others:
            source = (DOCS / path.relative_to(site)).with_suffix(".md")
            text = source.read_text(encoding="utf-8")
            if path.parent == site / "reference":  # built from docstrings
                text += "".join(module.read_text(encoding="utf-8") for module in (ROOT / "src").rglob("*.py"))
            assert all(link in text for link in others), f"{path.name} leads to {others}"


def test_every_link_of_the_site_leads_somewhere(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for link in page.links | page.loads:
            parts = urlsplit(link)
            if parts.netloc or path.name == "404.html":  # whose links are absolute, for a server
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            assert target.is_file(), f"{path.name} links to {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].names, f"{path.name} links to {link}"


def test_code_has_copy_buttons_and_pages_lead_to_their_neighbours(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        settings = re.search(r'<script id="__config" type="application/json">(.*?)</script>', page.html)
        assert settings is not None
        assert "content.code.copy" in json.loads(settings[1])["features"]
        if path.name != "404.html":
            assert "md-footer__link--next" in page.html or "md-footer__link--prev" in page.html, path.name
    first = pages[site / "index.html"].html
    assert re.search(r'href="gallery.html" class="md-footer__link md-footer__link--next"', first)


def test_surveys_without_code_are_one_click_from_home(site: Path, pages: dict[Path, Page]) -> None:
    article = pages[site / "index.html"].html.partition("<article")[2].partition("</article>")[0]
    for target in ("survey-pages.html", "gallery.html", "operations.html", "proofs/index.html", "glossary.html"):
        assert f'href="{target}"' in article, target


def test_the_gallery_shows_every_screenshot_and_every_figure_of_a_tutorial(site: Path, pages: dict[Path, Page]) -> None:
    gallery = pages[site / "gallery.html"]
    wanted = re.findall(r"<!-- screenshot ([\w-]+):", (DOCS / "gallery.md").read_text(encoding="utf-8"))
    taken = {name for name in wanted if (site / "screenshots" / f"{name}-phone-dark.png").exists()}
    shown = {Path(urlsplit(address).path).name for address in gallery.loads}
    kinds = ("desktop-light", "desktop-dark", "phone-light", "phone-dark")
    assert len(set(wanted)) == 10
    assert {f"{name}-{kind}.png" for name in taken for kind in kinds} <= shown
    assert ("not-taken.svg" in shown) == (taken != set(wanted))
    for tutorial in (DOCS / "tutorials").glob("*.md"):
        figures = re.findall(r"\(\.\./figures/([\w-]+\.svg)\)", tutorial.read_text(encoding="utf-8"))
        assert not figures or set(figures) & shown, tutorial.name
        assert f"tutorials/{tutorial.stem}.html" in gallery.links


def test_every_public_name_and_member_has_an_anchor_in_the_reference(site: Path, pages: dict[Path, Page]) -> None:
    anchors = set().union(*(page.names for path, page in pages.items() if path.parent == site / "reference"))
    names = [each for name in public_names() for each in (name, *public_members(name)) if each.value.__doc__]
    missing = [name.path for name in names if name.path not in anchors]
    assert not missing, missing
    for name in ("Estimate", "GroupedEstimate", "Plan", "Certificate"):
        assert f"sfumato.{name}.to_pandas" in anchors  # inherited from an internal class


@pytest.mark.component
def test_search_copy_buttons_and_dark_figures_work_in_a_browser(site: Path) -> None:
    handler = functools.partial(QuietHandler, directory=str(site))
    with chromium() as browser, ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        page = browser.new_context(color_scheme="dark").new_page()
        page.set_default_timeout(PATIENCE)
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{address}/tutorials/telemetry.html")
        page.wait_for_selector("button[data-clipboard-target]", state="attached")
        figure = page.locator("img[src*='figures/']").first
        assert "invert" in figure.evaluate("image => getComputedStyle(image).filter")
        page.fill("input[name=query]", "HighLow")
        page.wait_for_selector(".md-search-result__link[href*='reference/']", state="attached")
        server.shutdown()
    assert all(request.startswith(address) for request in requests), requests
