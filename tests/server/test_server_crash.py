"""Exactly once, whatever ends: kill -9 of the service and of PostgreSQL under load, with both stores."""

from __future__ import annotations

import contextlib
import http.client
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from support.collectors import Postgres, Served, ServeProcess

pytestmark = pytest.mark.component

THREADS = 4
#: All senders share one address, and send more than one person would.
WITHOUT_LIMITS = ("--open-batch", "0", "--open-per-address", "0", "--open-per-collection", "0")


class Senders:
    """Threads that send new batches all the time, each again and again until it has its receipt."""

    def __init__(self, collector: Served, collection: str, mechanism: Mechanism) -> None:
        self._collector, self._collection, self._mechanism = collector, collection, mechanism
        self._enough = threading.Event()
        self._sent: list[list[np.ndarray]] = [[] for _ in range(THREADS)]
        self._repeated = 0
        self._threads = [threading.Thread(target=self._send, args=(number,), daemon=True) for number in range(THREADS)]
        for thread in self._threads:
            thread.start()

    def _send(self, number: int) -> None:
        generator = random.Random(number)
        while not self._enough.is_set():
            reports = np.array(
                [generator.randrange(self._mechanism.outputs) for _ in range(generator.randint(1, 40))],
                self._mechanism.report_format.dtype,
            )
            batch = f"thread{number}-{len(self._sent[number])}"
            self._until_acknowledged(reports, batch)
            self._sent[number].append(reports)
            if generator.random() < 0.25:  # a client that lost the receipt
                self._until_acknowledged(reports, batch)
                self._repeated += 1

    def _until_acknowledged(self, reports: np.ndarray, batch: str) -> None:
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                response = self._collector.send(self._collection, self._mechanism, reports, batch)
                if response.status == 200:
                    assert response.json == {"batch": batch, "reports": len(reports)}
                    return
                assert response.status == 503, response.body
            time.sleep(0.02)

    def acknowledged(self) -> int:
        return sum(map(len, self._sent))

    def stop(self) -> sf.Aggregate:
        """What was acknowledged, counted here."""
        self._enough.set()
        for thread in self._threads:
            thread.join()
        assert self._repeated > 0
        return sf.aggregate(self._mechanism, np.concatenate([reports for sent in self._sent for reports in sent]))


def hammered(process: ServeProcess, kill_and_restart: Callable[[], None], kills: int) -> None:
    """Kill at random moments under load; at the end every acknowledged report is counted once, and no other."""
    generator = random.Random(7)
    process.start()
    try:
        collection, mechanism, _ = process.served.create(mechanism="rr")
        senders = Senders(process.served, collection, mechanism)
        try:
            for _ in range(kills):
                before = senders.acknowledged()
                while senders.acknowledged() < before + THREADS:  # it works again
                    time.sleep(0.005)
                time.sleep(generator.uniform(0, 0.3))
                kill_and_restart()
        finally:
            expected = senders.stop()
        assert process.served.aggregate(collection) == expected
    finally:
        process.kill()


def store_url(kind: str, folder: Path, postgres: Postgres) -> str:
    return f"sqlite:///{folder}/collect.db" if kind == "sqlite" else postgres.new_database()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_service_is_killed_under_load(
    kind: str, tmp_path: Path, postgres: Postgres, request: pytest.FixtureRequest
) -> None:
    options = () if kind == "sqlite" else ("--workers", "2")
    process = ServeProcess(store_url(kind, tmp_path, postgres), tmp_path, *WITHOUT_LIMITS, *options)

    def kill_and_restart() -> None:
        process.kill()
        process.start()

    hammered(process, kill_and_restart, kills=50 if request.config.getoption("--soak") else 3)


def test_postgresql_is_killed_under_load(tmp_path: Path, postgres: Postgres, request: pytest.FixtureRequest) -> None:
    process = ServeProcess(postgres.new_database(), tmp_path, *WITHOUT_LIMITS)

    def kill_and_restart() -> None:
        postgres.kill()
        time.sleep(0.05)
        postgres.start()

    hammered(process, kill_and_restart, kills=10 if request.config.getoption("--soak") else 1)
