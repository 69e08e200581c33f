"""Run the collector in one process, or in several processes that share a port."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import signal
import socket
from typing import Any

import uvicorn

from sfumato.errors import InvalidInput
from sfumato.server.http.connections import Connection, check_uvicorn
from sfumato.server.http.metrics_folder import metrics_folder
from sfumato.server.http.telemetry import SHARED, to_standard_error
from sfumato.server.settings import ENDED, Settings

__all__ = ["check_address", "check_proxies", "check_uvicorn", "check_workers", "serve", "studio_address"]

#: Seconds that open requests have to finish at shutdown.
_GRACE = 30


def check_workers(store: str, workers: int) -> None:
    """Raise InvalidInput for more processes than the store supports."""
    if workers > 1 and store.startswith("sqlite"):
        hint = "Use --workers 1, or a PostgreSQL store."
        raise InvalidInput("serve", "--workers", "be 1 with SQLite, which has one writer", workers, hint=hint)


def check_proxies(forwarded: str) -> None:
    """Raise InvalidInput for proxies that are not addresses; uvicorn would silently trust none of them."""
    if forwarded in ("", "*"):  # trust no proxy, or every proxy
        return
    for proxy in map(str.strip, forwarded.split(",")):
        try:
            ipaddress.ip_network(proxy) if "/" in proxy else ipaddress.ip_address(proxy)
        except ValueError:
            must = "be addresses or networks such as 10.0.0.0/8, separated by commas, or * alone"
            raise InvalidInput("serve", "--trust-proxy", must, proxy) from None


def check_address(host: str, port: int) -> None:
    """Raise OSError for an address that the process cannot listen on."""
    try:
        candidates = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        errors = [*filter(None, (_binding_error(family, address) for family, _, _, _, address in candidates))]
        if len(errors) == len(candidates):
            raise errors[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: a part of the host name is empty or too long
        reason = getattr(error, "strerror", None) or error
        hint = "Choose another --host or --port."
        raise OSError(f"the collector cannot listen on {host}:{port}: {reason}. {hint}") from error


def _binding_error(family: int, address: Any) -> OSError | None:
    """Return the error if this machine does not have the address, else None; raise OSError if the address is in use."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if os.name == "posix":  # as uvicorn does; on Windows the option would let two processes listen
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            raise  # another address of the same name may still be usable, but not one that is in use
        return error
    return None


def studio_address(host: str, port: int) -> str:
    """Return the URL of Studio on this machine; without TLS, browsers can randomize only on local addresses."""
    local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{local}]' if ':' in local else local}:{port}/studio"


def serve(settings: Settings, host: str, port: int, workers: int = 1, forwarded: str = "127.0.0.1") -> None:
    """Serve until SIGTERM or SIGINT, then answer open requests and count pending reports before returning."""
    check_uvicorn()
    settings.to_environment()
    to_standard_error()
    with metrics_folder() if workers > 1 else contextlib.nullcontext() as folder:
        if folder is not None:
            os.environ[SHARED] = folder
        # uvicorn shuts down first and then raises the signal again; this handler ends the process.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            _run(host, port, workers, forwarded)
        except SystemExit as error:
            message = f"the collector could not start on {host}:{port}; see the log lines above for the reason"
            raise OSError(message) from error
        except KeyboardInterrupt:
            _check_ended()
            raise
        _check_ended()


def _check_ended() -> None:
    """Raise OSError if the writer thread has ended, so that the exit code shows a failure."""
    if os.environ.pop(ENDED, None):
        raise OSError(
            "the writer thread of the collector has ended unexpectedly; see the log lines above, and restart it"
        )


def _run(host: str, port: int, workers: int, forwarded: str) -> None:
    """Run uvicorn with the application and the connection class of the collector."""
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
