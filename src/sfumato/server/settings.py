"""Settings of a collector process."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass

__all__ = ["VARIABLE", "Settings"]

#: Environment variable from which worker processes read the settings of their parent.
VARIABLE = "SFUMATO_SERVER"


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
    #: Seconds between two checks whether a live estimate has changed.
    live_seconds: float = 1.0
    #: Maximum seconds and bytes of one plan, design or audit, and maximum values of a domain to plan for.
    plan_seconds: float = 30.0
    plan_bytes: int = 2**30
    plan_values: int = 5000
    #: Seconds after which a stalled request head, body or reader times out.
    timeout: float = 30.0

    def to_environment(self) -> None:
        """Pass the settings to child processes."""
        os.environ[VARIABLE] = json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        """Return the settings of the parent process."""
        return cls(**json.loads(os.environ[VARIABLE]))
