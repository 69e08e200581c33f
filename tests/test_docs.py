"""The documentation says what the code does: examples run, names and pages are complete, links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pictures import as_shown

from sfumato.cli import main
from sfumato.mechanisms import Mechanism

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs_and_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # pages write files, as their readers do
    blocks = re.findall(
        r"^```(python|text)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    printed: str | None = None
    namespace: dict[str, object] = {}
    for language, block in blocks:
        if language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block, str(page), "exec"), namespace)
            printed = output.getvalue()
        else:
            assert printed == block, f"the page shows\n{block}\nbut its example prints\n{printed}"
    for figure in tmp_path.glob("*.svg"):
        assert as_shown(figure), f"{figure.name} is not what the page shows: run scripts/make_figures.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_what_the_readme_says_is_measured_stands_on_the_page_it_links_to() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = readme.partition("## What is measured")[2].partition("\n## ")[0]
    quoted = re.findall(r"\[([^\]]*\d[^\]]*)\]\(([^)]*)\)", measured)
    assert len(quoted) >= 4
    for words, page in quoted:
        for number in re.findall(r"[\d.]+(?:%| times)", words):
            assert f" {number} " in (ROOT / page).read_text(encoding="utf-8").replace("\n", " "), f"{page}: {number}"


@pytest.mark.parametrize("name", sorted(Mechanism.registry))
def test_every_mechanism_has_its_proof_and_its_vectors(name: str) -> None:
    assert (ROOT / "docs" / "proofs" / f"{name}.md").exists()
    assert (ROOT / "vectors" / f"{name}.json").exists()


@pytest.mark.parametrize("name", ["make_reference", "make_cli_reference"])
def test_generated_pages_are_up_to_date(name: str) -> None:
    module_spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.reference(), f"run scripts/{name}.py"


def test_the_readmes_command_line_runs_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `sfumato` line of the README, in order, in a folder with its policy file and a file of values."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    policies = re.findall(r"^```toml\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "policy.toml").write_text(policies[0], encoding="utf-8")
    pq.write_table(pa.table({"answer": ["none", "flu", "hiv", "cancer"] * 250}), tmp_path / "values.parquet")
    commands = re.findall(r"^    sfumato (.*)$", readme, flags=re.MULTILINE)
    assert len(commands) == 8
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    for written in (
        "mechanism.json",
        "certificate.json",
        "reports.parquet",
        "counts.json",
        "estimate.csv",
        "estimate.svg",
    ):
        assert (tmp_path / written).stat().st_size > 0


def test_the_demo_runs() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    assert "obeys the high-low policy" in result.stdout
