"""Write notebooks/*.py: the code of each tutorial as a marimo notebook; the words stay in the tutorial.

Files that the tutorial has its reader save are written by a cell, and commands are run by one. The notebook ends where
a second terminal is needed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from pages import ROOT, TUTORIALS, Block, blocks

FOLDER = ROOT / "notebooks"

_BEGIN = """\
import os
import tempfile

import marimo as mo

os.chdir(tempfile.mkdtemp())  # what the tutorial writes goes to a new folder
"""

#: Where the tutorial has files to save and commands to type.
_TERMINAL = """\
import subprocess
from pathlib import Path


def run(command):
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    done.check_returncode()
"""


def cells(page: Path) -> list[str]:
    """The notebook as Markdown whose blocks are cells, the form that `marimo convert` reads."""
    title, *rest = [block for block in blocks(page) if block.language != "text"]
    intro = f"The code of `docs/tutorials/{page.name}`, by `scripts/make_notebooks.py`; the words are there."
    terminal = [cell(_TERMINAL)] if any(block.commands for block in rest) else []
    code = [as_cell(block) for block in before_second_terminal(rest)]
    return [cell(_BEGIN), *terminal, f"{title.text}\n\n{intro}", *code]


def before_second_terminal(parts: list[Block]) -> list[Block]:
    """All parts, or those before the section that needs a second terminal; and no section that has but words."""
    starts = [number for number, part in enumerate(parts) if part.language == "console" and part.title]
    kept = parts[: starts[0]] if starts else parts
    while not kept[-1].language:
        kept = kept[:-1]
    return kept


def as_cell(block: Block) -> str:
    if not block.language:
        return block.text
    if block.is_file:
        return cell(f'Path("{block.title}").write_text(\n    r"""{block.text}"""\n)\n')
    if block.language == "console":
        return cell("".join(f"run({command!r})\n" for command, _ in block.commands))
    return cell(block.text)


def cell(code: str) -> str:
    return f"```{{python}}\n{code}```"


def notebook(page: Path) -> str:
    """The notebook of a tutorial, as marimo itself writes it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "page.md", Path(folder) / "page.py"
        source.write_text("\n\n".join(cells(page)) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "marimo", "-q", "-y", "convert", str(source), "-o", str(target)]
        subprocess.run(command, check=True, capture_output=True)
        return target.read_text(encoding="utf-8")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for page in TUTORIALS:
        (FOLDER / f"{page.stem.replace('-', '_')}.py").write_text(notebook(page), encoding="utf-8")


if __name__ == "__main__":
    main()
