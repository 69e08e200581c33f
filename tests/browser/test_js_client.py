"""The browser client's own tests, which node runs, and where the collector finds the client."""

from __future__ import annotations

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


def test_the_collector_serves_the_packaged_client_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pages.client_library("sfumato.js").read_bytes() == (CLIENT / "sfumato.js").read_bytes()
    assert pages.client_library("sfumato.d.ts").read_bytes() == (CLIENT / "sfumato.d.ts").read_bytes()
    monkeypatch.setattr(pages, "_FOLDER", tmp_path)
    assert pages.client_library("sfumato.js").read_bytes() == (CLIENT / "sfumato.js").read_bytes()
    (tmp_path / "sfumato.js").write_text("// as the wheel has it", encoding="utf-8")
    assert pages.client_library("sfumato.js").read_text(encoding="utf-8") == "// as the wheel has it"
