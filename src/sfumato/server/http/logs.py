"""Structured logs: one JSON object a line, on standard error.

No line holds an address, a token, a batch id or a report, and an accepted report leaves no line at all: the time at
which it came, put beside a proxy's list of addresses, would say whose it is.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback

__all__ = ["LOG", "to_standard_error"]

LOG = logging.getLogger("sfumato.server")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            # The places alone: the message of an error may quote what was sent.
            kind, _, trace = record.exc_info
            line["error"] = kind.__name__ if kind else None
            line["at"] = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(trace)]
        return json.dumps(line)


def to_standard_error(level: str = "info") -> None:
    """Write what the collector and its server say as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name in ("sfumato.server", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
