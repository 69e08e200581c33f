"""The estimator of a mechanism, looked up by the results that derive their errors from it."""

from __future__ import annotations

import functools

from sfumato.mechanisms import Estimator, Mechanism, efficient_estimator

__all__ = ["check_estimable", "estimator_of"]


def check_estimable(mechanism: Mechanism) -> None:
    """Raise InvalidInput unless frequencies can be estimated from the reports of a mechanism."""
    _ = mechanism.estimator


def estimator_of(mechanism: Mechanism, method: str) -> Estimator:
    """Return the estimator that ``estimate`` uses for a method; a mechanism caches its own."""
    return _efficient(mechanism) if method == "efficient" else mechanism.estimator


#: A result looks its estimator up whenever it derives an error; one with a large table takes seconds to build.
_efficient = functools.lru_cache(maxsize=8)(efficient_estimator)
