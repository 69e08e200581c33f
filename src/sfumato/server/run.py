"""Running the service: one process, or several on one port."""

from __future__ import annotations

import errno
import ipaddress
import os
import signal
import socket
import tempfile
from typing import Any

import uvicorn

from sfumato.errors import InvalidInput
from sfumato.server.http.connections import Connection, check_uvicorn
from sfumato.server.http.telemetry import SHARED, to_standard_error
from sfumato.server.settings import Settings

__all__ = ["check_address", "check_proxies", "check_uvicorn", "check_workers", "serve", "studio_address"]

#: Seconds that requests have to end after the process was told to.
_GRACE = 30


def check_workers(store: str, workers: int) -> None:
    """Refuse more processes than the store can have."""
    if workers > 1 and store.startswith("sqlite"):
        raise InvalidInput("serve", "workers", "be 1 with SQLite, which has one writer", workers)


def check_proxies(forwarded: str) -> None:
    """Refuse what the server would take for the name of a proxy that never comes: it would believe nobody."""
    if forwarded in ("", "*"):  # nobody, anybody
        return
    for proxy in map(str.strip, forwarded.split(",")):
        try:
            ipaddress.ip_network(proxy) if "/" in proxy else ipaddress.ip_address(proxy)
        except ValueError:
            must = "be addresses or networks (10.0.0.0/8) with commas between, or * alone"
            raise InvalidInput("serve", "--trust-proxy", must, proxy) from None


def check_address(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, as far as can be told before it is."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        faults = [*filter(None, (_fault_of_binding(family, address) for family, _, _, _, address in found))]
        if len(faults) == len(found):
            raise faults[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: a part of the name is empty or too long
        why = getattr(error, "strerror", None) or error
        raise OSError(f"no collector can listen on {host}:{port}: {why}") from error


def _fault_of_binding(family: int, address: Any) -> OSError | None:
    """Why this machine has no such address, or None; an address that it has, but cannot be had, is an error."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # as the server does: elsewhere this would let two listen
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # one name may have addresses of both kinds
            raise
        return error
    return None


def studio_address(host: str, port: int) -> str:
    """Where whoever sits at this machine finds Studio; browsers randomize on no other address without TLS."""
    local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{local}]' if ':' in local else local}:{port}/studio"


def serve(settings: Settings, host: str, port: int, workers: int = 1, forwarded: str = "127.0.0.1") -> None:
    """Serve until told to stop (SIGTERM, SIGINT): requests under way are answered, what waits is counted."""
    check_uvicorn()
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
