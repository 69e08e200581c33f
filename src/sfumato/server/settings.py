"""What a collector is told when it starts."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass

__all__ = ["VARIABLE", "Settings"]

#: Where worker processes find the settings of the one that started them.
VARIABLE = "SFUMATO_SERVER"


@dataclass(frozen=True)
class Settings:
    """Limits are per process; ``docs/operations.md`` says how to choose them."""

    store: str = "sqlite:///collect.db"
    #: The longest body of a request.
    max_bytes: int = 2**23
    #: Requests a second from one address, and how many at once after a pause; 0 is no limit.
    rate: float = 200.0
    burst: int = 2000
    #: Submissions that may wait to be counted, before more are refused for now.
    waiting: int = 10_000
    #: Connections at a time, and live streams among them.
    connections: int = 10_000
    streams: int = 500
    #: Seconds between two looks at whether a live estimate has changed.
    live_seconds: float = 1.0
    #: Seconds and memory that one plan, design or audit may take, and the most values of a domain to plan for.
    plan_seconds: float = 30.0
    plan_bytes: int = 2**30
    plan_values: int = 5000
    #: Seconds until a head, a body or a reader that does not move is given up.
    patience: float = 30.0

    def to_environment(self) -> None:
        """Leave the settings to the processes that are started from this one."""
        os.environ[VARIABLE] = json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_environment(cls) -> Settings:
        """The settings of the process that started this one."""
        return cls(**json.loads(os.environ[VARIABLE]))
