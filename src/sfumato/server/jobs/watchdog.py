"""Messages to systemd: that the collector is ready, that it works, and that it stops (``sd_notify(3)``).

Without systemd, the environment variable ``NOTIFY_SOCKET`` is not set, and nothing happens.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

__all__ = ["notify", "report_health"]

#: Messages per watchdog interval; systemd recommends at least two.
_PER_INTERVAL = 4
#: Seconds between checks if systemd does not watch the service.
_UNWATCHED = 60.0


def notify(message: str) -> bool:
    """Send a message such as ``READY=1`` to systemd; return whether systemd listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            client.sendto(message.encode(), address)
    except OSError:
        return False
    return True


async def report_health(is_healthy: Callable[[], bool]) -> None:
    """Report to systemd that the collector works, as long as it does; otherwise systemd restarts it.

    This runs in the event loop, so it also stops if the loop is blocked.
    """
    notify("READY=1")
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    pause = int(microseconds) / 1e6 / _PER_INTERVAL if microseconds.isdecimal() else _UNWATCHED
    while True:
        if is_healthy():
            notify("WATCHDOG=1")
        await asyncio.sleep(pause)
