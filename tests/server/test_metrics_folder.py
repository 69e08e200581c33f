"""The folder in which workers share their metrics: it forgets ended workers, and is removed after its collector."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sfumato.server import run
from sfumato.server.http.metrics_folder import metrics_folder
from sfumato.server.http.telemetry import SHARED
from sfumato.server.settings import ENDED, Settings
from support.collectors import until


def test_the_gauges_of_a_worker_that_was_killed_do_not_count(tmp_path: Path) -> None:
    environment = os.environ | {SHARED: str(tmp_path)}
    script = (
        "import os, signal, sys\n"
        "from sfumato.server.http.telemetry import Metrics\n"
        "metrics = Metrics()\n"
        "metrics.streams(int(sys.argv[1]))\n"
        "print(metrics.text().decode(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    def streams(count: int) -> str:
        command = [sys.executable, "-c", script, str(count)]
        text = subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout
        return text.partition("\nsfumato_live_streams ")[2].partition("\n")[0]

    assert [streams(3), streams(2)] == ["3.0", "2.0"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_one_worker_needs_no_folder_and_several_remove_theirs(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED, "")
    monkeypatch.delenv(ENDED, raising=False)
    monkeypatch.setattr(run, "to_standard_error", lambda: None)
    monkeypatch.setattr(Settings, "to_environment", lambda settings: None)  # noqa: ARG005
    handler = signal.getsignal(signal.SIGTERM)
    for workers in (1, 2):
        seen: list[Path] = []
        monkeypatch.setattr(run, "_run", lambda *_, seen=seen: seen.extend(temporary.iterdir()))
        try:
            run.serve(Settings(), "127.0.0.1", 0, workers)
        finally:
            signal.signal(signal.SIGTERM, handler)
        assert len(seen) == workers - 1
        assert not [*temporary.iterdir()]


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has the lock")
def test_the_folder_of_a_killed_collector_is_removed_and_others_stay(temporary: Path) -> None:
    script = (
        f"import tempfile, time\n"
        f"tempfile.tempdir = {str(temporary)!r}\n"
        f"from sfumato.server.http.metrics_folder import metrics_folder\n"
        f"with metrics_folder() as folder:\n"
        f"    open(folder + '/ready', 'w').close()\n"
        f"    time.sleep(1000)\n"
    )
    collectors = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    try:
        until(lambda: len([*temporary.glob("*/ready")]) == 3)
        unlocked = temporary / "sfumato-metrics-of-an-earlier-release"
        unlocked.mkdir()
        for collector in collectors[:2]:
            collector.kill()
            collector.wait()
        folders = {*temporary.iterdir()}
        with metrics_folder() as own:
            running = {*temporary.iterdir()} - {Path(own), unlocked}
            assert len(running) == 1
            assert len(folders) == 4
            # Workers of a killed collector may still run, as this process does.
            (*running,)[0].joinpath(f"gauge_livesum_{os.getpid()}.db").touch()
            collectors[2].kill()
            collectors[2].wait()
            with metrics_folder() as second:
                assert {*temporary.iterdir()} == running | {Path(own), Path(second), unlocked}
    finally:
        for collector in collectors:
            collector.kill()
            collector.wait()
