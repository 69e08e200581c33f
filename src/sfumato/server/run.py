"""Running the service: one process, or several on one port."""

from __future__ import annotations

import os
import signal
import tempfile

import uvicorn

from sfumato.errors import InvalidInput
from sfumato.server.connections import Connection
from sfumato.server.logs import to_standard_error
from sfumato.server.metrics import SHARED
from sfumato.server.settings import Settings

__all__ = ["check_workers", "serve"]

#: Seconds that requests have to end after the process was told to.
_GRACE = 30


def check_workers(store: str, workers: int) -> None:
    """Refuse more processes than the store can have."""
    if workers > 1 and store.startswith("sqlite"):
        raise InvalidInput("serve", "workers", "be 1 with SQLite, which has one writer", workers)


def serve(settings: Settings, host: str, port: int, workers: int = 1, forwarded: str = "127.0.0.1") -> None:
    """Serve until told to stop (SIGTERM, SIGINT): requests under way are answered, what waits is counted."""
    settings.to_environment()
    to_standard_error()
    with tempfile.TemporaryDirectory(prefix="sfumato-metrics-") as folder:
        if workers > 1:
            os.environ[SHARED] = folder
        # The server ends of its own accord, then has the signal do what it would have done: nothing is left to do.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            _run(host, port, workers, forwarded)
        except SystemExit as error:
            raise OSError(f"no collector could be started on {host}:{port}; the log says why") from error


def _run(host: str, port: int, workers: int, forwarded: str) -> None:
    uvicorn.run(
        "sfumato.server.app:from_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_config=None,
        access_log=False,
        http=Connection,
        ws="none",
        server_header=False,
        forwarded_allow_ips=forwarded,
        timeout_graceful_shutdown=_GRACE,
    )
