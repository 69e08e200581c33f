"""The moment at which a process is told to end: live streams then end too, or the server would wait for them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["when_told_to_stop"]


@contextmanager
def when_told_to_stop(act: Callable[[], None]) -> Iterator[None]:
    """Act with every SIGTERM or SIGINT, before the server's own handler does what it does."""
    if threading.current_thread() is not threading.main_thread():  # only there are signals handled
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(number: int, frame: Any) -> None:
        act()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
