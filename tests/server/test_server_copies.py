"""Backups: written while the collector runs, checked, and restored to either database."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import main
from sfumato.errors import InvalidInput
from sfumato.server.store import open_store
from sfumato.server.store.base import Unavailable
from sfumato.server.store.copies import back_up, check_store, restore
from support.collectors import Postgres, served

pytestmark = pytest.mark.slow


def target_url(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder}/restored.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.mark.component
@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_backup_of_a_running_collector_is_restored_to_either_database(
    store_url: str, target: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path, reports = tmp_path / "backup.db", np.arange(300) % 5
    with served(store_url) as collector:
        name, mechanism, _ = collector.create(sf.Uniform(sf.Domain.range(5), 1), mechanism="rr")
        other, *_ = collector.create(submission="token")
        tokens = collector.as_admin("POST", f"/v1/collections/{other}/tokens", {"count": 2}).json["tokens"]
        assert collector.send(name, mechanism, reports[:100], "before-backup").status == 200
        written = back_up(store_url, path)
        assert (written.collections, written.reports, written.batches) == (2, 100, 1)
        assert collector.send(name, mechanism, reports[100:], "after-backup").status == 200
        admin = collector.admin
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.glob("backup*")) == ["backup.db"]
    url = target_url(target, tmp_path, request)
    assert restore(path, url) == written
    assert check_store(url) == written
    with served(url) as restored:
        assert restored.aggregate(name) == sf.aggregate(mechanism, reports[:100])
        # What the backup has is not counted again, and what it lacks is.
        for batch, part in (("before-backup", reports[:100]), ("after-backup", reports[100:])):
            assert restored.send(name, mechanism, part, batch).json == {"batch": batch, "reports": len(part)}
        assert restored.aggregate(name) == sf.aggregate(mechanism, reports)
        assert restored.ask("GET", "/v1/collections", token=admin).status == 200
        restored.admin = admin  # its token is known, and new collections get new numbers
        restored.create()
        assert len(tokens) == 2
    with pytest.raises(InvalidInput, match=r"not exist yet|have no collections"):
        restore(path, url)


def test_a_damaged_backup_is_not_restored(tmp_path: Path) -> None:
    url, path = f"sqlite:///{tmp_path}/collect.db", tmp_path / "backup.db"
    with served(url) as collector:
        collector.create()
        back_up(url, path)
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(8192))
    with pytest.raises((Unavailable, sqlite3.DatabaseError)):
        restore(path, f"sqlite:///{tmp_path}/restored.db")
    assert not (tmp_path / "restored.db").exists()


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_the_log_of_an_earlier_store_is_not_copied_into_a_restored_one(tmp_path: Path, end: str) -> None:
    """An operator moved only the main file away, after a kill. The log has reports that nothing else has."""
    path, backup, moved = (tmp_path / name for name in ("collect.db", "backup.db", "moved.db"))
    with served(f"sqlite:///{path}") as collector:
        name, mechanism, _ = collector.create(mechanism="rr")
        back_up(f"sqlite:///{path}", backup)
        assert collector.send(name, mechanism, [1, 2], "in-the-log").status == 200
        for file in ("", "-wal"):
            shutil.copy(f"{path}{file}", f"{moved}{file}")
    left = Path(f"{path}{end}")
    path.unlink()
    shutil.copy(f"{moved}-wal", left)
    content = left.read_bytes()
    with pytest.raises(InvalidInput, match=f"not exist yet; got .*collect.db{end}"):
        restore(backup, f"sqlite:///{path}")
    assert left.read_bytes() == content
    assert not path.exists()
    left.unlink()
    assert restore(backup, f"sqlite:///{path}").reports == 0
    assert check_store(f"sqlite:///{moved}").reports == 2


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, path = f"sqlite:///{tmp_path}/collect.db", str(tmp_path / "backup.db")
    for action in (["upgrade"], ["check"], ["backup", path]):  # a mistyped URL creates no store
        assert main(["store", *action, "--store", url]) == 2
        assert "there is no store at" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    open_store(url).close_all()
    assert main(["store", "upgrade", "--store", url, "--json"]) == 0
    upgraded = json.loads(capsys.readouterr().out)
    assert upgraded["collections"] == 0
    assert main(["store", "check", "--store", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == upgraded
    assert main(["store", "backup", path, "--store", url]) == 0
    assert main(["store", "backup", path, "--store", url]) == 2
    assert "not exist yet" in capsys.readouterr().err
    (tmp_path / "collect.db").unlink()
    assert main(["store", "check", "--store", url]) == 2
    assert main(["store", "restore", path, "--store", url, "--json"]) == 0  # also where a store was
    assert json.loads(capsys.readouterr().out) == upgraded
    for wrong in (["store", "backup", "--store", url], ["store", "check", path, "--store", url]):
        assert main(wrong) == 2
    with (tmp_path / "collect.db").open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(12_288))
    assert main(["store", "check", "--store", url]) == 2
    assert "restore a backup" in capsys.readouterr().err
