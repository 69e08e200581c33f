"""The estimators of mechanisms, which results look up to derive their errors."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from sfumato.mechanisms import Estimator, Mechanism, NotIdentifiable, efficient_estimator, identifies_answers
from sfumato.questions import Question

__all__ = ["check_estimable", "estimator_of"]

#: Maximum bytes of cached efficient estimators; the largest one, with 10^7 probabilities, takes 160 MB.
_MOST_BYTES = 2**28


def check_estimable(mechanism: Mechanism, question: Question | None = None) -> None:
    """Raise InvalidInput unless the reports of a mechanism determine all frequencies, or the answers to a question."""
    estimator = mechanism.estimator
    if estimator.is_complete or (question is not None and identifies_answers(estimator, question)):
        return
    must, hint = "distinguish all values in its reports", "Use a mechanism that was designed for all frequencies."
    if question is not None:
        must, hint = "determine all answers by its reports", "Use a mechanism that was designed for this question."
    raise NotIdentifiable(must, mechanism, hint=hint)


def estimator_of(mechanism: Mechanism, method: str) -> Estimator:
    """Return the estimator of a mechanism for a method of ``estimate``."""
    return _CACHE.get(mechanism) if method == "efficient" else mechanism.estimator


class EfficientEstimators:
    """A cache of estimators of method "efficient", limited in bytes, least recently used first out.

    A result looks up its estimator whenever it derives an error, and building one with a large table takes seconds. The
    most recent estimator stays in the cache whatever its size.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._entries: OrderedDict[Mechanism, tuple[Estimator, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, mechanism: Mechanism) -> Estimator:
        """Return the estimator of a mechanism; build it if it is not cached."""
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
        """Total size of the arrays of the cached estimators, in bytes."""
        return sum(size for _, size in self._entries.values())


def array_bytes(estimator: Estimator) -> int:
    """Return the total size of the arrays of an estimator, in bytes."""
    return sum(part.nbytes for part in vars(estimator).values() if isinstance(part, np.ndarray))


_CACHE = EfficientEstimators(_MOST_BYTES)
