"""Helpers for tasks on an executor: the mechanism, and the error that a task returns to the driver."""

from __future__ import annotations

import functools

from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, mechanism_from_spec

__all__ = ["Refused", "mechanism_of"]


class Refused(InvalidInput):
    """An error that an executor reported.

    Tasks return errors as data. If a task raised one, Spark would retry the same rows, and hide the message in a
    traceback.
    """

    def __init__(self, where: str, message: str) -> None:
        ValueError.__init__(self, f"{where}: {message}")


@functools.lru_cache(maxsize=8)
def mechanism_of(spec: str) -> Mechanism:
    """Return the mechanism of a spec, built once per process, because Spark reuses its Python workers."""
    return mechanism_from_spec(spec)
