"""Answers that took long to compute, kept while there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

__all__ = ["Kept"]


class Kept:
    """The last few answers that took long to compute."""

    def __init__(self, most_bytes: int = 2**26) -> None:
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._left = most_bytes

    def get(self, key: Hashable) -> bytes | None:
        """The answer to this, if it is still there."""
        return self._answers.get(key)

    def put(self, key: Hashable, answer: bytes) -> None:
        """Keep an answer, and as many of the last ones as there is room for."""
        if key in self._answers:
            return
        self._answers[key] = answer
        self._left -= len(answer)
        while self._left < 0:
            _, forgotten = self._answers.popitem(last=False)
            self._left += len(forgotten)
