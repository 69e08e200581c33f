"""Places for long computations, a cache for their results, and the form in which it stores estimates.

The cache stores the document of an estimate. The document has no standard errors or intervals; the library derives
them for each confidence level.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from sfumato.collecting import Aggregate
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.estimation import Estimate, estimate
from sfumato.mechanisms import Mechanism
from sfumato.server.http.limits import Shares
from sfumato.server.http.responses import ApiError
from sfumato.server.jobs.threads import Workers

__all__ = ["QUICK_METHODS", "EstimatePlaces", "ResultCache", "cached_estimate", "estimate_of", "in_words"]

#: Methods that take a fraction of a second for every mechanism; the others run in a process with a time limit, and
#: their intervals in separate threads.
QUICK_METHODS = ("unbiased", "simplex")
#: Error reasons that are cached, because the same request would fail again.
_FINAL = ("invalid", "too-hard")
#: Bytes of a cache entry in addition to its result.
_ENTRY_OVERHEAD = 512


class EstimatePlaces:
    """Threads for the estimates of some methods, and the places of each address and collection before them."""

    def __init__(self, each: int, per_collection: int, workers: Workers) -> None:
        self.workers = workers
        self._each = Shares(each, "this address is waiting for too many estimates; retry when they have arrived")
        self._per_collection = Shares(per_collection, "too many estimates of this collection are waiting; retry later")

    @contextmanager
    def take(self, address: bytes, collection: Hashable) -> Iterator[None]:
        """Hold a place in a block; raise ApiError if the address or the collection holds too many."""
        with self._each.take(address), self._per_collection.take(collection):
            yield


class ResultCache:
    """A bounded cache for the results of long computations. Concurrent requests for a key share one computation.

    A key has one result, that of the last ``version`` of its data. Results of earlier versions would fill the cache
    while reports arrive, and no request would ask for them again.
    """

    def __init__(self, most_bytes: int = 2**26) -> None:
        self._results: OrderedDict[Hashable, tuple[Hashable, bytes | ApiError]] = OrderedDict()
        self._pending: dict[tuple[Hashable, Hashable], asyncio.Task[bytes | ApiError]] = {}
        self._left = most_bytes

    def _cached(self, key: Hashable, version: Hashable) -> bytes | ApiError | None:
        """Return the cached result of a version, or None."""
        cached, result = self._results.get(key, (None, None))
        return result if cached == version else None

    async def get(
        self, key: Hashable, compute: Callable[[], Coroutine[Any, Any, bytes]], version: Hashable = None
    ) -> bytes:
        """Return the cached result of a key, or compute it."""
        result = self._cached(key, version)
        if result is None:
            if (key, version) not in self._pending:
                self._pending[key, version] = asyncio.create_task(self._compute(key, version, compute))
            # Shielded, because the client that started the computation may disconnect while others wait.
            result = await asyncio.shield(self._pending[key, version])
        if isinstance(result, ApiError):
            raise ApiError(result.reason, result.message)
        return result

    async def _compute(
        self, key: Hashable, version: Hashable, compute: Callable[[], Coroutine[Any, Any, bytes]]
    ) -> bytes | ApiError:
        """Compute a result, cache it, and evict the oldest results beyond the size limit."""
        result: bytes | ApiError
        try:
            result = await compute()
        except ApiError as error:
            result = ApiError(error.reason, error.message)  # a copy without the traceback, which holds references
            if error.reason not in _FINAL:
                return result
        finally:
            del self._pending[key, version]
        if key in self._results:
            self._left += _size(self._results.pop(key)[1])
        self._results[key] = version, result
        self._left -= _size(result)
        while self._left < 0:
            self._left += _size(self._results.popitem(last=False)[1][1])
        return result


def _size(result: bytes | ApiError) -> int:
    """Return the bytes of a cache entry."""
    return _ENTRY_OVERHEAD + len(result.message if isinstance(result, ApiError) else result)


def cached_estimate(mechanism: Mechanism, counts: Aggregate, method: str) -> bytes:
    """Return the document of an estimate, ``Estimate.to_dict()``, as JSON."""
    try:
        result = estimate(mechanism, counts, method)
    except SfumatoError as error:
        raise ApiError("invalid", f"the estimate is not possible: {in_words(error)}") from None
    return msgspec.json.encode(result.to_dict())


def in_words(error: SfumatoError) -> str:
    """Return the message of an error without the rejected value, which may be the repr of a whole mechanism.

    >>> from sfumato.errors import InvalidInput
    >>> in_words(InvalidInput("estimate", "epsilon", "be more than 0", 0, hint="Choose a larger epsilon."))
    'epsilon must be more than 0. Choose a larger epsilon.'
    """
    message, _, _ = str(error).removeprefix("estimate: ").partition("; got ")
    hint = error.hint if isinstance(error, InvalidInput) else None
    return message if hint is None else f"{message}. {hint}"


def estimate_of(mechanism: Mechanism, cached: bytes) -> Estimate:
    """Return the estimate from the document that ``cached_estimate`` returned."""
    return Estimate.from_dict(msgspec.json.decode(cached), mechanism=mechanism)
