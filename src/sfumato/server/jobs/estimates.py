"""Estimates, computed once: a cache of answers that took long, and what is cached of an estimate.

Three numbers per value are cached, from which intervals of every level follow.
"""

from __future__ import annotations

import asyncio
import functools
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

import numpy as np

from sfumato.collecting import Aggregate
from sfumato.errors import SfumatoError
from sfumato.estimation import Estimate, estimate, estimator_of_method
from sfumato.mechanisms import Estimator, Mechanism
from sfumato.server.http.refusals import Refusal

__all__ = ["Kept", "decoded", "estimate_of", "in_words"]

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


def decoded(mechanism: Mechanism, counts: Aggregate, method: str) -> bytes:
    """Return the frequencies of an estimate, the unbiased ones and the nearest distribution, as bytes.

    The estimator is left out, because it may hold large tables; it is built again from the mechanism.
    """
    try:
        found = estimate(mechanism, counts, method)
    except SfumatoError as error:
        raise Refusal("invalid", f"this cannot be estimated: {in_words(error)}") from None
    return np.stack([found.frequencies, found.unbiased, found.nearest]).tobytes()


def in_words(error: SfumatoError) -> str:
    """Why nothing can be estimated, for people: without what was got, which may be a mechanism as Python writes it."""
    return str(error).removeprefix("estimate: ").partition("; got ")[0]


def estimate_of(mechanism: Mechanism, n: int, method: str, kept: bytes) -> Estimate:
    """Return the estimate again, from what ``decoded`` gave."""
    frequencies, unbiased, nearest = np.frombuffer(kept).reshape(3, -1)
    return Estimate(mechanism.domain, n, method, frequencies, unbiased, nearest, _decoder(mechanism, method))


@functools.lru_cache(maxsize=4)  # a estimator may hold large tables, and take seconds to build
def _decoder(mechanism: Mechanism, method: str) -> Estimator:
    return estimator_of_method(mechanism, method)
