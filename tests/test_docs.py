"""The documentation says what the code does: examples run, names and pages are complete, links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.mechanisms import Mechanism

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_runs_and_prints_what_the_page_shows(page: Path) -> None:
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("name", sorted(Mechanism.registry))
def test_every_mechanism_has_its_proof_and_its_vectors(name: str) -> None:
    assert (ROOT / "docs" / "proofs" / f"{name}.md").exists()
    assert (ROOT / "vectors" / f"{name}.json").exists()


def test_the_reference_is_up_to_date() -> None:
    location = ROOT / "scripts" / "make_reference.py"
    module_spec = importlib.util.spec_from_file_location("make_reference", location)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    current = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert current == module.reference(), "run scripts/make_reference.py"


def test_the_demo_runs() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    assert "obeys the high-low policy" in result.stdout
