"""Limits on how often one address may ask. Addresses are not kept: buckets are named by a hash under a random key."""

from __future__ import annotations

import hashlib
import ipaddress
from collections import OrderedDict
from collections.abc import Callable

from sfumato.randomness import secure

__all__ = ["Rates"]

#: So many addresses are remembered; the one that was quiet for longest is forgotten first.
_MOST_ADDRESSES = 100_000


class Rates:
    """For each address a bucket of ``burst`` requests that fills up at ``rate`` a second."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._key = secure.read(32)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Take one request out of the bucket of an address, if it has one."""
        if self._rate <= 0:
            return True
        name = hashlib.blake2b(_network(address), key=self._key, digest_size=12).digest()
        now = self._clock()
        left, last = self._buckets.get(name, (float(self._burst), now))
        left = min(float(self._burst), left + (now - last) * self._rate)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > _MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return allowed


def _network(address: str) -> bytes:
    """An address; of one of IPv6 its first 64 bits, for one household has all the rest, or the one of IPv4 in it."""
    if ":" not in address:
        return address.encode()
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    return found.packed[:8] if found.ipv4_mapped is None else str(found.ipv4_mapped).encode()
