"""Which handler a request goes to. A path here names at most one thing, such as ``/v1/collections/{id}/reports``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from sfumato.server.http.refusals import JsonAnswer, Refusal

__all__ = ["Answer", "Handler", "Route", "Routes"]

Answer: TypeAlias = JsonAnswer | Response
#: Takes the service that all requests share, and a request.
Handler: TypeAlias = Callable[[Any, Request], Awaitable[Answer]]


@dataclass
class Route:
    """A path as it is documented, what the name in it is called, and what answers each method."""

    path: str
    name: str
    handlers: dict[str, Handler] = field(default_factory=dict)


class Routes:
    """All of them, found by looking them up: with every segment as it is, then with any one of them for the name."""

    def __init__(self, handlers: Iterable[tuple[str, str, Handler]]) -> None:
        self._routes: dict[tuple[str, ...], Route] = {}
        self._places: set[int] = set()
        for method, path, handler in handlers:
            segments = path.split("/")
            named = [place for place, segment in enumerate(segments) if segment.startswith("{")]
            name = segments[named[0]][1:-1] if named else ""
            for place in named:
                self._places.add(place)
                segments[place] = ""
            route = self._routes.setdefault(tuple(segments), Route(path, name))
            route.handlers[method] = handler
            if method == "GET":
                route.handlers["HEAD"] = handler

    def find(self, path: str) -> tuple[Route, dict[str, str]]:
        """The route of a path, and what stands for its name."""
        segments = path.split("/")
        for place in self._places:
            if place < len(segments) and segments[place]:
                route = self._routes.get((*segments[:place], "", *segments[place + 1 :]))
                if route is not None:
                    return route, {route.name: segments[place]}
        route = self._routes.get(tuple(segments))
        if route is None or route.name:
            raise Refusal("not-found", "there is nothing here")
        return route, {}

    @staticmethod
    def handler(route: Route, method: str) -> Handler:
        """What answers a method there."""
        found = route.handlers.get(method)
        if found is None:
            raise Refusal("method-not-allowed", f"the methods here are {', '.join(sorted(route.handlers))}")
        return found
