"""How local hashing divides into a permanent answer per bucket and a report about it."""

from __future__ import annotations

from collections.abc import Hashable

from sfumato.mechanisms.memoized.forms import MixtureForm
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.systems.buckets import LocalHashing

__all__ = ["BUCKETS"]


class _BucketForm(MixtureForm):
    """Local hashing: a person keeps one hash function, and values of one bucket share a permanent answer."""

    shares_answers = True

    def most_answers(self, permanent: Mixture) -> int:
        assert isinstance(permanent, LocalHashing)
        return min(permanent.buckets, len(permanent.domain))

    def key(self, permanent: Mixture, x: int, earlier: int) -> int:
        assert isinstance(permanent, LocalHashing)
        return permanent.bucket(earlier // permanent.buckets, x)

    def start(self, permanent: Mixture, x: int, earlier: int | None) -> Hashable:
        assert isinstance(permanent, LocalHashing)
        return permanent.start(x) if earlier is None else (x, earlier // permanent.buckets)


BUCKETS = _BucketForm()
