"""What the collector caches of an estimate: three numbers per value, from which intervals of every level follow."""

from __future__ import annotations

import functools

import numpy as np

from sfumato.collecting import Aggregate
from sfumato.errors import SfumatoError
from sfumato.estimation import Estimate, decoder_of_method, estimate
from sfumato.mechanisms import Decoder, Mechanism
from sfumato.server.http.refusals import Refusal

__all__ = ["decoded", "estimate_of", "in_words"]


def decoded(mechanism: Mechanism, counts: Aggregate, method: str) -> bytes:
    """Return the frequencies of an estimate, the unbiased ones and the nearest distribution, as bytes.

    The decoder is left out, because it may hold large tables; it is built again from the mechanism.
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


@functools.lru_cache(maxsize=4)  # a decoder may hold large tables, and take seconds to build
def _decoder(mechanism: Mechanism, method: str) -> Decoder:
    return decoder_of_method(mechanism, method)
