"""The head of an answer and its body go out together: one call of the system and one packet, instead of two."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["JoinedWrites"]


class JoinedWrites(asyncio.Transport):
    """A transport on which whatever is written in one turn of the event loop is sent at its end."""

    __slots__ = ("_held", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[Any] = []

    def write(self, data: Any) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)

    def _send(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.writelines(held)  # not joined: a long answer is one for all who asked for it

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._held = []
        self._transport.abort()

    # -- all else is the transport's own -------------------------------------------------------------------

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()
