"""Scripts of the browser are formatted, and their lines are short."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import ROOT

FOLDERS = ("clients/js", "clients/js/test", "src/sfumato/server/pages", "tests/browser")
SCRIPTS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.js"))]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_lines_without_strings_are_short(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    long = [number for number, line in enumerate(lines, 1) if len(line.expandtabs(2)) > 120]
    assert [number for number in long if not set(lines[number - 1]) & set("\"'`/")] == []
