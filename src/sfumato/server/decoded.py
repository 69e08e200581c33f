"""What is kept of an estimate: enough for intervals of every level, and small beside what it took to compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._aggregate import Aggregate
from sfumato._estimate import Estimate, estimate
from sfumato._estimate.decoder import Decoder, Floats
from sfumato.errors import SfumatoError
from sfumato.mechanisms import Mechanism
from sfumato.server.refusals import Refusal

__all__ = ["decoded", "estimate_of", "in_words"]


def decoded(mechanism: Mechanism, counts: Aggregate, method: str) -> bytes:
    """What intervals of every level follow from, six numbers a value: a decoder itself may hold large tables."""
    try:
        found = estimate(mechanism, counts, method)
        variances, reach = found.decoder.variances(found.nearest), found.decoder.reach()
    except SfumatoError as error:
        raise Refusal("invalid", f"this cannot be estimated: {in_words(error)}") from None
    return np.stack([found.frequencies, found.unbiased, found.nearest, variances, *reach]).tobytes()


def in_words(error: SfumatoError) -> str:
    """Why nothing can be estimated, for people: without what was got, which may be a mechanism as Python writes it."""
    return str(error).removeprefix("estimate: ").partition("; got ")[0]


def estimate_of(mechanism: Mechanism, n: int, method: str, kept: bytes) -> Estimate:
    """The estimate again, from what ``decoded`` gave."""
    frequencies, unbiased, nearest, variances, least, greatest = np.frombuffer(kept).reshape(6, -1)
    decoder = _Decoded(variances, (least, greatest))
    return Estimate(mechanism.domain, n, method, frequencies, unbiased, nearest, decoder)


class _Decoded(Decoder):
    """What intervals need of the decoder of an estimate, at the distribution that it has found."""

    def __init__(self, variances: Floats, reach: tuple[Floats, Floats]) -> None:
        self.size, self._variances, self._reach = len(variances), variances, reach

    def variances(self, p: Floats) -> Floats:  # noqa: ARG002
        return self._variances

    def reach(self) -> tuple[Floats, Floats]:
        return self._reach

    def _not_kept(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    frequencies = shares = covariance = variance = _not_kept
