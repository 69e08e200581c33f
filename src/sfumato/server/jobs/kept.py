"""Answers that took long to compute, kept while there is room."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

from sfumato.server.http.refusals import Refusal

__all__ = ["Kept"]

#: Refusals that are answers: they would be the same the next time.
_FINAL = ("invalid", "too-hard")
#: What an answer takes beside its own bytes.
_EACH = 512


class Kept:
    """The last few answers that took long to compute. However many ask for one at once, it is computed once."""

    def __init__(self, most_bytes: int = 2**26) -> None:
        self._answers: OrderedDict[Hashable, bytes | Refusal] = OrderedDict()
        self._coming: dict[Hashable, asyncio.Task[bytes | Refusal]] = {}
        self._left = most_bytes

    async def get(self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """The answer to this; computed, if it is not there."""
        answer = self._answers.get(key)
        if answer is None:
            if key not in self._coming:
                self._coming[key] = asyncio.create_task(self._computed(key, compute))
            answer = await asyncio.shield(self._coming[key])  # who asked first may go, and the others stay
        if isinstance(answer, Refusal):
            raise Refusal(answer.reason, answer.message)
        return answer

    async def _computed(self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes | Refusal:
        answer: bytes | Refusal
        try:
            answer = await compute()
        except Refusal as refusal:
            answer = Refusal(refusal.reason, refusal.message)  # without the trace, and all that hangs on it
            if refusal.reason not in _FINAL:
                return answer
        finally:
            del self._coming[key]
        self._answers[key] = answer
        self._left -= _size(answer)
        while self._left < 0:
            self._left += _size(self._answers.popitem(last=False)[1])
        return answer


def _size(answer: bytes | Refusal) -> int:
    return _EACH + len(answer.message if isinstance(answer, Refusal) else answer)
