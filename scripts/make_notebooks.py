"""Write notebooks/*.py: the code of each tutorial as a marimo notebook, without the explanations.

A cell writes each file that the tutorial asks its reader to save, and a cell runs each command. The notebook ends
before the first section that needs a second terminal.
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

os.chdir(tempfile.mkdtemp())  # the notebook writes its files to a new folder
"""

#: First cell of a notebook that runs commands.
_TERMINAL = """\
import subprocess
from pathlib import Path


def run(command):
    result = subprocess.run(command, shell=True, capture_output=True, text=True)
    print(result.stdout, result.stderr)
    result.check_returncode()
"""


def cells(page: Path) -> list[str]:
    """Return the notebook as Markdown whose blocks are cells, the format that `marimo convert` reads."""
    title, *rest = [block for block in blocks(page) if block.language != "text"]
    intro = f"`docs/tutorials/{page.name}` explains this code. `scripts/make_notebooks.py` wrote this notebook from it."
    terminal = [cell(_TERMINAL)] if any(block.commands for block in rest) else []
    code = [as_cell(block) for block in before_second_terminal(rest)]
    return [cell(_BEGIN), *terminal, f"{title.text}\n\n{intro}", *code]


def before_second_terminal(parts: list[Block]) -> list[Block]:
    """Return the parts before the first that needs a second terminal, without sections at the end that hold no code."""
    starts = [number for number, part in enumerate(parts) if part.language == "console" and part.title]
    selection = parts[: starts[0]] if starts else parts
    while not selection[-1].language:
        selection = selection[:-1]
    return selection


def as_cell(block: Block) -> str:
    """Return a heading as it is, and a block as the cell that does what the block asks."""
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
    """Return the notebook of a tutorial, in the format that marimo writes."""
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
