"""Limits per address and per collection, so that one client cannot use up what all clients share.

Addresses are never stored or logged. A limit is kept in memory under a hash of the address with a random key.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from sfumato.randomness import secure
from sfumato.server.http.responses import ApiError

__all__ = ["AddressNames", "DailyBudget", "Shares", "network"]

#: Maximum addresses that a limit remembers; the least recently used one is forgotten first.
MOST_ADDRESSES = 100_000
_DAY = 86_400


def network(address: str) -> bytes:
    """Return the part of an address that is limited: IPv4 whole, also if mapped; of IPv6 the first 64 bits, a site."""
    if ":" not in address:
        return address.encode()
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    return parsed.packed[:8] if parsed.ipv4_mapped is None else str(parsed.ipv4_mapped).encode()


class AddressNames:
    """Names of addresses: hashes under a random key, which only this process has."""

    def __init__(self) -> None:
        self._key = secure.read(32)

    def name(self, address: str) -> bytes:
        """Return the name of an address."""
        return hashlib.blake2b(network(address), key=self._key, digest_size=12).digest()

    def of(self, scope: Any) -> bytes:
        """Return the name of the address that a request comes from, according to its ASGI scope."""
        return self.name(scope["client"][0] if scope.get("client") else "")


class Shares:
    """What each key holds of a shared resource at the moment, at most ``most``; 0 means no limit."""

    def __init__(self, most: int, message: str) -> None:
        self._most, self._message = most, message
        self._held: dict[Hashable, int] = {}

    @contextmanager
    def take(self, key: Hashable) -> Iterator[None]:
        """Hold one unit in a block; raise ApiError if the key holds too many."""
        self.change(key, 1)
        try:
            yield
        finally:
            self.change(key, -1)

    def change(self, key: Hashable, amount: int) -> None:
        """Take or return units; raise ApiError if the key would hold too many."""
        total = self._held.get(key, 0) + amount
        if amount > 0 and 0 < self._most < total:
            raise ApiError("overloaded", self._message)
        if total:
            self._held[key] = total
        else:
            self._held.pop(key, None)


class DailyBudget:
    """What each key may use per day (UTC), at most ``most``; 0 means no limit."""

    def __init__(self, most: int, message: str) -> None:
        self._most, self._message = most, message
        self._day = -1
        self._used: OrderedDict[Hashable, int] = OrderedDict()

    def use(self, key: Hashable, amount: int, now: float) -> None:
        """Use some of the budget of a key; raise ApiError, with the seconds until tomorrow, if too little is left."""
        if not self._most:
            return
        day = int(now) // _DAY
        if day != self._day:
            self._day = day
            self._used.clear()
        used = self._used.get(key, 0) + amount
        if used > self._most:
            raise ApiError("rate", self._message, retry_after=_DAY - int(now) % _DAY)
        self._used[key] = used
        self._used.move_to_end(key)
        if len(self._used) > MOST_ADDRESSES:
            self._used.popitem(last=False)

    def give_back(self, key: Hashable, amount: int) -> None:
        """Return what a submission used that was not counted."""
        if key in self._used:
            self._used[key] = max(0, self._used[key] - amount)
