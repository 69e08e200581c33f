"""The documentation site: it builds without warnings or a network, holds every page, and leads nowhere wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from support import ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"

#: Runs mkdocs where every connection fails: a build that asks another host for anything ends with an error.
OFFLINE = """
import socket, sys
def refuse(*_, **__):
    raise OSError("no network")
socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--config-file", sys.argv[1], "--site-dir", sys.argv[2]])
"""


class Page(HTMLParser):
    """What a page leads to (``links``), what it loads (``loads``), and the names that links can point at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        for name in ("href", "src", "srcset", "data", "action", "poster"):
            if name in given and not given[name].startswith("data:"):
                (self.links if tag == "a" else self.loads).add(given[name])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-c", OFFLINE, str(ROOT / "mkdocs.yml"), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
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
