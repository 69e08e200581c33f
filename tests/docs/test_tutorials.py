"""Tutorials and how-to pages do what they show: commands word for word, files, figures, and notebooks made of them.

The Python between them is run by test_docs.py.
"""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow.parquet as pq
import pytest

from sfumato import Domain, HighLow, audit, design, load_policy, load_question, plan
from sfumato.cli import main
from sfumato.datasets import census_column, data_folder
from sfumato.datasets.adult import _COLUMNS, SIZES
from support import ROOT
from support.collectors import free_port
from support.pictures import as_shown

SURVEY = ROOT / "docs" / "tutorials" / "survey.md"

#: A number with decimals. Where a command draws real randomness, the page's decimals are not the reader's.
DECIMALS = re.compile(r"-?\d+\.\d+")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The scripts of the project, importable."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return lambda name: importlib.import_module(name)


class Reader:
    """Somebody at a terminal in an empty folder, who types what the page shows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "110",
        }

    def types(self, command: str) -> str:
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def rejects(self, command: str) -> str:
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, command
        return done.stderr

    def starts(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            shlex.split(command), cwd=self.folder, env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def without_decimals(text: str) -> list[list[str]]:
    """The words of all lines with decimals masked, in any order of lines: tables are sorted by what was drawn."""
    return sorted(DECIMALS.sub("#", line).split() for line in lines(text))


def wait_until_open(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the collector did not start")


@pytest.mark.component
def test_who_follows_the_first_tutorial_word_for_word_gets_what_it_shows(tmp_path: Path, scripts: Any) -> None:
    """In a fresh folder. Two things no page can know are put in: a port that is free here, and the admin token."""
    reader, port, server, token = Reader(tmp_path), str(free_port()), None, ""
    drawn = False  # whether real randomness has been used, so that decimals differ

    def put_in(text: str) -> str:
        return re.sub(r"(127\.0\.0\.1:|--port )8000", rf"\g<1>{port}", text).replace("sfa_YourAdminToken", token)

    try:
        for block in scripts("pages").blocks(SURVEY):
            if block.is_file:
                (tmp_path / block.title).write_text(put_in(block.text), encoding="utf-8")
            elif block.language == "console" and block.title == "second terminal":
                ((command, shown),) = block.commands
                server = reader.starts(put_in(command))
                assert server.stdout is not None
                said, token = server.stdout.readline().strip().rsplit(" ", 1)
                assert said == shown.strip().rsplit(" ", 1)[0]
                wait_until_open(int(port))
            elif block.language == "console":
                for command, shown in block.commands:
                    drawn = drawn or command.startswith("sfumato privatize")
                    printed = reader.types(put_in(command))
                    if drawn:
                        assert without_decimals(printed) == without_decimals(shown), command
                    else:
                        assert lines(printed) == lines(shown), command
        collection = (tmp_path / "collection.txt").read_text(encoding="utf-8")
        pages = re.findall(r"^\| `(http://\S+)` \|", SURVEY.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert len(pages) == 5
        for page in pages:
            with urlopen(put_in(page).replace("{id}", collection)) as answer:
                assert answer.headers.get_content_type() == "text/html", page
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=60)
    assert server is not None
    for name in ("mechanism.json", "certificate.json", "counts.json", "estimate.csv", "estimate.svg", "survey.db"):
        assert (tmp_path / name).stat().st_size > 0
    assert as_shown(tmp_path / "rehearsal.svg"), "run scripts/make_figures.py"


def write_adult(path: Path, labels: dict[str, list[str]]) -> None:
    """Write the file adult.data, of invented people if the public data are not here."""
    folder, people = data_folder(), 32_561
    columns = {name: ["0"] * people for name in _COLUMNS}
    if folder is not None and not census_column(folder, "sex").stand_in:
        columns |= {name: census_column(folder, name).value.tolist() for name in SIZES}
        further = ("age", "income")
        if (folder / "adult.parquet").exists():
            table = pq.read_table(folder / "adult.parquet", columns=list(further))
            columns |= {name: list(map(str, table[name].to_pylist())) for name in further}
        else:
            lines = [line.split(", ") for line in (folder / "adult.data").read_text().splitlines() if line]
            columns |= {name: [line[_COLUMNS.index(name)] for line in lines] for name in further}
    else:
        draws = np.random.default_rng(1)
        columns |= {name: draws.choice(known, people).tolist() for name, known in labels.items()}
        columns["age"] = draws.integers(17, 91, people).astype(str).tolist()
        columns["occupation"] = ["?" if job == "unknown" else job for job in columns["occupation"]]
        columns["occupation"][:28] = ["Sales"] * 27 + ["?"]  # the first unknown occupation is in the 28th row
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(", ".join(row) + "\n" for row in rows) + "\n", encoding="utf-8")


def without_numbers(text: str) -> list[list[str]]:
    """The words of all lines with numbers masked, and rules as long as numbers make them."""
    masked = (re.sub(r"(?<![\w=])-?\d[\d.,e+-]*", "#", line) for line in lines(text))
    return [re.sub("─+", "─", line).split() for line in masked]


@pytest.mark.slow
def test_the_tutorial_on_adult_does_what_it_shows(tmp_path: Path, scripts: Any) -> None:
    """With the public data if they are here, and otherwise with people of the same attributes."""
    reader, pages = Reader(tmp_path), scripts("pages")
    shown_blocks = pages.blocks(pages.ADULT)
    labels: dict[str, list[str]] = {}
    for block in shown_blocks:
        if block.is_file:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
            if block.title in ("own.toml", "policy.toml"):
                factors = load_policy(tmp_path / block.title).domain.factors
                labels |= {name: list(map(str, factor.labels)) for name, factor in factors.items()}
    write_adult(tmp_path / "adult.data", labels)
    for command, shown in (pair for block in shown_blocks if block.language == "console" for pair in block.commands):
        if shown.startswith("sfumato: "):
            assert reader.rejects(command) == shown
        elif shown:
            assert without_numbers(reader.types(command)) == without_numbers(shown), command
        else:
            reader.types(command)
    best = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert best["best"] == "sample-pairs-by-weights"
    with (tmp_path / "tables.csv").open(encoding="utf-8") as file:
        assert len(list(csv.reader(file))) == 1 + 695


def test_the_commands_of_merging_counts_print_what_is_shown(
    tmp_path: Path, scripts: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in scripts("pages").blocks(ROOT / "docs" / "how-to" / "merge-counts.md"):
        if block.is_file:
            Path(block.title).write_text(block.text, encoding="utf-8")
        for command, shown in block.commands:
            capsys.readouterr()
            assert main(shlex.split(command.removeprefix("sfumato "))) == 0
            assert lines(capsys.readouterr().out) == lines(shown), command


@pytest.mark.slow
def test_the_commands_of_auditing_a_sampler_print_what_is_shown(tmp_path: Path, scripts: Any) -> None:
    reader = Reader(tmp_path)
    for block in scripts("pages").blocks(ROOT / "docs" / "how-to" / "audit-a-sampler.md"):
        if block.is_file:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        for command, shown in block.commands:
            assert lines(reader.types(command)) == lines(shown), command


@pytest.mark.slow
def test_every_policy_file_shown_is_read_and_can_be_obeyed(tmp_path: Path, scripts: Any) -> None:
    page = ROOT / "docs" / "how-to" / "write-a-policy-file.md"
    shown = [block for block in scripts("pages").blocks(page) if block.is_file]
    further = {"incomes": "high-low", "age-groups": "blocks", "ages": "uniform"}  # others have the name of their kind
    assert len(shown) == 9 + len(further)
    for block in shown:
        (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        policy = load_policy(tmp_path / block.title)
        name = Path(block.title).stem
        assert policy.kind == further.get(name, name)
        question = load_question(tmp_path / block.title)
        assert (question is not None) == (name == "ages")
        assert audit(design(policy, 1000, question=question), policy).holds


def test_the_flow_is_drawn_as_the_script_draws_it(scripts: Any) -> None:
    kept = (ROOT / "docs" / "figures" / "flow.svg").read_text(encoding="utf-8")
    assert kept == scripts("make_figures").flow(), "run scripts/make_figures.py"


@pytest.mark.slow
def test_the_picture_of_the_readme_is_computed_as_its_caption_says(tmp_path: Path, scripts: Any) -> None:
    picture = scripts("readme_figure")
    (tmp_path / "same-privacy.svg").write_text(picture.draw(), encoding="utf-8")
    assert as_shown(tmp_path / "same-privacy.svg"), "run scripts/make_figures.py"
    policy = HighLow(Domain(list(picture.PEOPLE)), picture.SENSITIVE, picture.EPSILON)
    n = sum(picture.PEOPLE.values())
    caption = " ".join((ROOT / "README.md").read_text(encoding="utf-8").partition("same-privacy.svg)")[2].split())
    shares = {answer: people / n for answer, people in picture.PEOPLE.items()}
    saving = plan(policy, n, truth=shares).saving
    for statement in (
        f"ε = {picture.EPSILON}", f"seed {picture.SEED}", f"{n:,} people", f"{saving:.1f} times as many people"
    ):  # fmt: skip
        assert statement in caption[:900], statement


def test_every_figure_is_shown_and_every_tutorial_has_a_notebook(scripts: Any) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for figure in (ROOT / "docs" / "figures").rglob("*.svg"):
        shown = figure.relative_to(ROOT / "docs").as_posix()
        assert f"{shown})" in text, f"{shown} is shown nowhere"
    names = {page.stem.replace("-", "_") for page in scripts("pages").TUTORIALS}
    assert names == {notebook.stem for notebook in (ROOT / "notebooks").glob("*.py")}


NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_made_of_its_tutorial_and_runs_in_its_order(name: str, scripts: Any) -> None:
    """Python that runs on the page in this order runs in the notebook too; test_docs.py runs the page."""
    from marimo._ast.app import InternalApp

    notebook = ROOT / "notebooks" / f"{name}.py"
    page = ROOT / "docs" / "tutorials" / f"{name.replace('_', '-')}.md"
    made = scripts("make_notebooks").notebook(page)
    assert notebook.read_text(encoding="utf-8") == made, "run scripts/make_notebooks.py"
    program: dict[str, Any] = {"__name__": name}
    exec(compile(made, str(notebook), "exec"), program)
    app = InternalApp(program["app"])
    order = [cell for cell, _ in app.cell_manager.valid_cells()]
    assert len(order) == made.count("@app.cell")
    assert list(app.execution_order) == order
    assert not app.graph.get_multiply_defined()
    # marimo keeps names that begin with an underscore within their cell.
    assert not re.search(r"(?<![\w.])_[a-z]\w* =", made)


# The page runs the Python of the others, and the first tutorial is followed word for word.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "tables" else pytest.mark.soak) for name in NOTEBOOKS]
)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    Reader(tmp_path).types(f"{sys.executable} {ROOT / 'notebooks' / name}.py")
