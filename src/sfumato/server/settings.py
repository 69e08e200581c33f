"""Settings of a collector process."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass

__all__ = ["ENDED", "VARIABLE", "Settings"]

#: Environment variable from which worker processes read the settings of their parent.
VARIABLE = "SFUMATO_SERVER"
#: Environment variable that is set in a process whose writer thread has ended.
ENDED = "SFUMATO_WRITER_ENDED"


@dataclass(frozen=True)
class Settings:
    """Settings of a collector. Limits are per process; ``docs/operations.md`` explains how to choose them."""

    #: URL of the database.
    store: str = "sqlite:///collect.db"
    #: Maximum bytes of a request body.
    max_bytes: int = 2**23
    #: Maximum requests per second from one address, and maximum burst after a pause; rate 0 means no limit.
    rate: float = 200.0
    burst: int = 2000
    #: Maximum submissions that wait to be counted; the collector rejects further ones as overloaded.
    waiting: int = 10_000
    #: Maximum open connections, and maximum live streams among them.
    connections: int = 10_000
    streams: int = 500
    #: Maximum connections, live streams and waiting estimates of one address; 0 means no limit. Connections of trusted
    #: proxies are not limited, because they carry the requests of many addresses.
    connections_each: int = 500
    streams_each: int = 20
    estimates_each: int = 8
    #: Maximum waiting estimates of one collection.
    estimates_per_collection: int = 6
    #: The same for methods other than ``unbiased`` and ``simplex`` and for comparisons, which have separate places. One
    #: address gets fewer than one collection, so that it cannot use up those of a collection.
    slow_estimates_each: int = 2
    slow_estimates_per_collection: int = 4
    #: Maximum seconds of one estimate by a method other than ``unbiased`` and ``simplex``.
    estimate_seconds: float = 10.0
    #: Maximum reports in one request to an open collection, per address and day to open collections, and per open
    #: collection and day. 0 means no limit.
    open_batch: int = 100
    open_per_address: int = 1000
    open_per_collection: int = 100_000
    #: Least number of reports by which public results advance for readers without a token, and seconds between two
    #: such steps. 0 reports: each report is shown at once.
    public_step: int = 10
    public_seconds: float = 60.0
    #: Host names that the collector answers to, separated by commas; ``*`` for all. A browser stores answers by host
    #: name, so a second name would allow a second draw.
    hosts: str = "*"
    #: Addresses and networks of trusted proxies, separated by commas; ``*`` for all.
    proxies: str = "127.0.0.1"
    #: Seconds between two checks whether a live estimate has changed.
    live_seconds: float = 1.0
    #: Maximum seconds and bytes of one plan, design or audit, and maximum values of a domain to plan for.
    plan_seconds: float = 30.0
    plan_bytes: int = 2**30
    plan_values: int = 5000
    #: Free bytes on the disk of a SQLite store below which the collector takes no reports, and maximum bytes of the
    #: store; 0 means no limit.
    min_free_bytes: int = 2**26
    max_store_bytes: int = 0
    #: Seconds after which a stalled request head, body or reader times out.
    timeout: float = 30.0

    def to_environment(self) -> None:
        """Pass the settings to child processes."""
        os.environ[VARIABLE] = json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        """Return the settings of the parent process."""
        return cls(**json.loads(os.environ[VARIABLE]))
