"""The browser client's own tests, which node runs, and where the collector finds the client."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sfumato.server import pages
from support import ROOT
from support.components import absent

CLIENT = ROOT / "clients" / "js"
#: The first version of node whose test runner the tests work with.
NODE = 18


@pytest.mark.slow
def test_the_clients_own_tests_pass() -> None:
    node = shutil.which("node")
    if node is None:
        absent("node, which runs the tests of the browser client, is not on this machine")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < NODE:
        absent(f"the tests of the browser client need node {NODE} or later, and this machine has {version}")
    # Not by a folder as an argument: versions of node read that in different ways.
    run = subprocess.run(
        [node, "--test", "--test-reporter=tap"], cwd=CLIENT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    counts = dict(re.findall(r"^# (pass|fail|cancelled|skipped|todo) (\d+)$", run.stdout, flags=re.MULTILINE))
    assert int(counts.pop("pass")) > 80
    assert counts == dict.fromkeys(("fail", "cancelled", "skipped", "todo"), "0")


@pytest.mark.slow
def test_the_pages_show_the_labels_of_every_domain() -> None:
    node = shutil.which("node")
    if node is None:
        absent("node, which runs the scripts of the pages, is not on this machine")
    files = [ROOT / f"vectors/documents/{name}.json" for name in ("labels", "numbers")]
    vectors = [vector for file in files for vector in json.loads(file.read_text(encoding="utf-8"))]
    domains = [json.loads(vector["policy"])["domain"] for vector in vectors]
    script = f"""
        import {{ labelsOf }} from {json.dumps((ROOT / "src/sfumato/server/pages/domains.js").as_uri())}
        console.log(JSON.stringify({json.dumps(domains)}.map(labelsOf)))
    """
    run = subprocess.run([node, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [vector["labels"] for vector in vectors]


def test_no_cell_of_a_csv_file_is_a_formula() -> None:
    """A spreadsheet runs a cell that begins like a formula; titles and labels come from others."""
    node = shutil.which("node")
    if node is None:
        absent("node, which runs the scripts of the pages, is not on this machine")
    formulas = ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", '=HYPERLINK("http://x","y")']
    others = ["-1.5", "+2", "-1e-3", "", "a=b", "1-2", 'a "b", c', None, 0.25]
    script = f"""
        import {{ csv }} from {json.dumps((ROOT / "src/sfumato/server/pages/dom.js").as_uri())}
        console.log(JSON.stringify(await csv([{json.dumps(formulas)}, {json.dumps(others)}]).text()))
    """
    run = subprocess.run([node, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=True)
    first, second = csv.reader(io.StringIO(json.loads(run.stdout), newline=""))
    assert first == [f"'{formula}" for formula in formulas]
    assert second == ["" if cell is None else str(cell) for cell in others]


def test_the_collector_serves_the_packaged_client_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pages.client_library("sfumato.js").read_bytes() == (CLIENT / "sfumato.js").read_bytes()
    assert pages.client_library("sfumato.d.ts").read_bytes() == (CLIENT / "sfumato.d.ts").read_bytes()
    monkeypatch.setattr(pages, "_FOLDER", tmp_path)
    assert pages.client_library("sfumato.js").read_bytes() == (CLIENT / "sfumato.js").read_bytes()
    (tmp_path / "sfumato.js").write_text("// as the wheel has it", encoding="utf-8")
    assert pages.client_library("sfumato.js").read_text(encoding="utf-8") == "// as the wheel has it"
