"""What an answer to a collection can reveal at most, for whoever is about to give one."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sfumato.server.bodies import JSON_TYPE
from sfumato.server.collector import Collector

__all__ = ["BEFORE", "give_reveals"]

#: What a stranger believes before an answer. One number for all: whoever asks cannot make the planner work twice.
BEFORE = 0.1


async def give_reveals(collector: Collector, request: Request) -> Response:
    """The collection's policy in words and numbers, as ``check`` gives it."""
    collection = await collector.collections.get(request.path_params["id"])

    async def computed() -> bytes:
        policy = msgspec.json.decode(collection.record.policy)
        return msgspec.json.encode(await collector.planner.ask("check", policy=policy, before=BEFORE), enc_hook=str)

    return Response(await collector.reveals.get(collection.id, computed), media_type=JSON_TYPE)
