"""The documentation says what the code does: examples run, names and pages are complete, links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.mechanisms.registry import mechanism_classes
from support import ROOT
from support.collectors import served
from support.pictures import as_shown
from support.public_names import public_constants, public_names, undocumented_modules

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: What a page cannot know whose Python talks to a collector: where it is, and its admin token.
ADDRESS, TOKEN = "http://127.0.0.1:8000", "sfa_YourAdminToken"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The scripts of the project, importable."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module


@pytest.mark.slow
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
    with contextlib.ExitStack() as running:
        if any(TOKEN in block for _, block in blocks):
            collector = running.enter_context(served(f"sqlite:///{tmp_path}/collect.db"))
            blocks = [
                (kind, text.replace(ADDRESS, collector.url).replace(TOKEN, collector.admin)) for kind, text in blocks
            ]
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


@pytest.mark.parametrize("name", sorted(mechanism_classes()))
def test_every_mechanism_has_its_proof_and_its_vectors(name: str) -> None:
    assert (ROOT / "docs" / "proofs" / f"{name}.md").exists()
    assert (ROOT / "vectors" / f"{name}.json").exists()


def test_the_command_lines_page_is_up_to_date(scripts: Any) -> None:
    made = scripts("make_cli_reference")
    assert made.PAGE.read_text(encoding="utf-8") == made.reference(), "run scripts/make_cli_reference.py"


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    assert problems_of_the_reference(documented_paths()) == []


def test_the_index_of_the_reference_summarizes_every_page() -> None:
    index = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        assert f"<!-- summary of reference/{page.name} -->" in index
        assert "<!-- summary -->" in page.read_text(encoding="utf-8")


def test_a_public_name_without_a_page_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = documented_paths()
    monkeypatch.setattr(sf, "hidden", lambda: None, raising=False)
    monkeypatch.setattr(sf, "LIMIT", 3, raising=False)
    monkeypatch.setattr(sf, "__all__", [*sf.__all__, "hidden", "LIMIT"])
    assert problems_of_the_reference([*paths, "sfumato.estimate", "sfumato.gone"]) == [
        "sfumato.LIMIT has no page",
        "sfumato.estimate has 2 entries",
        "sfumato.gone is not public",
        "sfumato.hidden has no page",
    ]


def documented_paths() -> list[str]:
    """Return the import paths that the pages of the reference document."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    return [
        path for page in pages for path in re.findall(r"^::: (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def problems_of_the_reference(paths: list[str]) -> list[str]:
    """Return what is missing from the reference, documented twice, or documented without being public."""
    public = {name.path for name in public_names()} | set(public_constants())
    problems = [f"{path} has no page" for path in public - set(paths)]
    problems += [f"{path} is not public" for path in set(paths) - public]
    problems += [f"{path} has {count} entries" for path, count in Counter(paths).items() if count > 1]
    return sorted(problems) + undocumented_modules()


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_demo_runs() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    assert "obeys the high-low policy" in result.stdout
    # The service counts the reports of the survey; 0.05 is ten standard errors.
    survey, service = (
        [(answer.strip(), float(truth), float(estimate)) for answer, truth, estimate in rows]
        for rows in (
            re.findall(r"^(.+?) truth (\S+) +estimate (\S+)", part, flags=re.MULTILINE)
            for part in result.stdout.partition("== A map of a city")[0].split("== The same reports over HTTP")
        )
    )
    assert survey == service
    assert len(service) == 5
    assert all(abs(truth - estimate) < 0.05 for _, truth, estimate in [*survey, *service])
    page = (ROOT / "build" / "demo" / "report.html").read_text(encoding="utf-8")
    assert '<meta name="viewport"' in page
    assert "prefers-color-scheme:dark" in page
    for title in ("The true map", "hide the place within its district", "hide the district too"):
        assert title in page
    assert "399,994 reports (method" not in page
    # Sentences are paragraphs, which wrap; only tables scroll.
    assert "<p>A report multiplies the odds" in page
