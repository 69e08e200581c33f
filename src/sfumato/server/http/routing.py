"""Find the handler of a request. A path has at most one parameter, as in ``/v1/collections/{id}/reports``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from sfumato.server.http.responses import ApiError, JsonResponse

__all__ = ["AnyResponse", "Handler", "Route", "Routes"]

AnyResponse: TypeAlias = JsonResponse | Response
#: A function of the shared collector and a request.
Handler: TypeAlias = Callable[[Any, Request], Awaitable[AnyResponse]]


@dataclass
class Route:
    """A documented path, the name of its parameter, and the handler of each method."""

    path: str
    name: str
    handlers: dict[str, Handler] = field(default_factory=dict)


class Routes:
    """All routes. A lookup in a dictionary tries each segment as the parameter first, then none."""

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
        """Return the route of a path, and the value of its parameter."""
        segments = path.split("/")
        for place in self._places:
            if place < len(segments) and segments[place]:
                route = self._routes.get((*segments[:place], "", *segments[place + 1 :]))
                if route is not None:
                    return route, {route.name: segments[place]}
        route = self._routes.get(tuple(segments))
        if route is None or route.name:
            raise ApiError("not-found", "this path does not exist; /docs lists the operations of the API")
        return route, {}

    @staticmethod
    def handler(route: Route, method: str) -> Handler:
        """Return the handler of a method."""
        handler = route.handlers.get(method)
        if handler is None:
            raise ApiError("method-not-allowed", f"this path supports {', '.join(sorted(route.handlers))}")
        return handler
