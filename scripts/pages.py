"""Read the blocks of a documentation page and run its Python; the scripts for figures and notebooks use this module."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Tutorial that starts with a file which its readers download; it has no notebook.
ADULT = DOCS / "tutorials" / "adult.md"
TUTORIALS = sorted(page for page in (DOCS / "tutorials").glob("*.md") if page != ADULT)

_PART = re.compile(r'^(?:(#+ [^\n]*)|```(\w+)(?: title="([^"]*)")?\n(.*?)^```)$', flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block, or a heading (with an empty ``language``). A block whose title is a file name holds that file."""

    language: str
    title: str
    text: str

    @property
    def is_file(self) -> bool:
        return bool(re.fullmatch(r"[\w-]+\.\w+", self.title))

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Return each command of a console block, which follows a ``$``, with its output."""
        matches = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", self.text, flags=re.MULTILINE)
        return [(command, output) for command, output in matches]


def blocks(page: Path) -> list[Block]:
    """Return the headings and fenced blocks of a page, in order."""
    parts = _PART.findall(page.read_text(encoding="utf-8"))
    return [Block(language, title, text or heading) for heading, language, title, text in parts]


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Make this the current folder for the duration of a block."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_python(page: Path, folder: Path) -> None:
    """Run the Python blocks of a page one after the other, in this folder."""
    namespace: dict[str, object] = {}
    with inside(folder), contextlib.redirect_stdout(None):
        for block in blocks(page):
            if block.language == "python" and not block.is_file:
                exec(compile(block.text, str(page), "exec"), namespace)
