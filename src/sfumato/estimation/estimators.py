"""The estimator of a mechanism, looked up by the results that derive their errors from it."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from sfumato.mechanisms import Estimator, Mechanism, efficient_estimator

__all__ = ["check_estimable", "estimator_of"]

#: Maximum bytes of cached efficient estimators. The largest one, of 10^7 probabilities, takes 160 MB.
_MOST_BYTES = 2**28


def check_estimable(mechanism: Mechanism) -> None:
    """Raise InvalidInput unless frequencies can be estimated from the reports of a mechanism."""
    _ = mechanism.estimator


def estimator_of(mechanism: Mechanism, method: str) -> Estimator:
    """Return the estimator that ``estimate`` uses for a method; a mechanism caches its own."""
    return _CACHE.get(mechanism) if method == "efficient" else mechanism.estimator


class EfficientEstimators:
    """The estimators of method "efficient" that were used last, up to a number of bytes.

    A result looks its estimator up whenever it derives an error, and one with a large table takes seconds to build. The
    last one is kept whatever its size.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._entries: OrderedDict[Mechanism, tuple[Estimator, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, mechanism: Mechanism) -> Estimator:
        """Return the estimator of a mechanism, built if it is not cached."""
        with self._lock:
            entry = self._entries.get(mechanism)
            if entry is not None:
                self._entries.move_to_end(mechanism)
                return entry[0]
        estimator = efficient_estimator(mechanism)
        with self._lock:
            self._entries[mechanism] = estimator, array_bytes(estimator)
            self._entries.move_to_end(mechanism)
            while len(self._entries) > 1 and self.bytes > self._most:
                self._entries.popitem(last=False)
        return estimator

    @property
    def bytes(self) -> int:
        """The bytes of all arrays of the cached estimators."""
        return sum(size for _, size in self._entries.values())


def array_bytes(estimator: Estimator) -> int:
    """Return the bytes of the arrays that an estimator holds."""
    return sum(part.nbytes for part in vars(estimator).values() if isinstance(part, np.ndarray))


_CACHE = EfficientEstimators(_MOST_BYTES)
