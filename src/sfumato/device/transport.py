"""One request to a collector, made again until it is answered. Only what may be repeated is sent this way."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.randomness import secure

__all__ = ["CollectorRefused", "CollectorUnreachable", "Transport"]

#: Answers after which the same request may succeed.
_AGAIN = (408, 429, 500, 502, 503, 504)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0


class _Failed(SfumatoError):
    """A request came to nothing. ``batch`` is the name its reports were sent under, if it had any."""

    batch: str | None = None

    def name_batch(self, batch: str) -> None:
        """Say under which name, ``batch``, the same reports may be sent again."""
        self.batch = batch
        self.args = (f"{self} (batch {batch})",)


class CollectorRefused(_Failed):
    """The collector refused for good, with a status and a message.

    ``reason`` is one of those in docs/collector.md, ``row`` the report at fault.
    """

    def __init__(self, status: int, reason: str, message: str, row: int | None) -> None:
        super().__init__(f"the collector refused ({reason}): {message}")
        self.status, self.reason, self.row = status, reason, row


class CollectorUnreachable(_Failed):
    """No answer of a collector came, however often it was asked. Whether the last request was heeded is not known."""


class Transport:
    """A connection that is kept open, and opened again when it was lost. For one thread."""

    def __init__(
        self, url: str, token: str | None, attempts: int, timeout: float, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._secure, self._host, self._port, self._base = _address(url)
        if token is not None and not _fits_a_line(token):
            raise InvalidInput("Client", "token", "be of visible ASCII characters", "others")  # it is not to be shown
        if attempts < 1:
            raise InvalidInput("Client", "attempts", "be at least 1", attempts)
        if not timeout > 0:
            raise InvalidInput("Client", "timeout", "be above 0 seconds", timeout)
        self._token, self._attempts, self._timeout, self._sleep = token, attempts, timeout, sleep
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        repeat: bool = True,
    ) -> bytes:
        """The answer to a request; what cannot be repeated without harm is sent once."""
        sent = {"Accept": "*/*", **(headers or {})}
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        if not repeat:
            self.close()  # one that was kept open may be closed at the other end just now
        pause, retry_after, problem = _FIRST_PAUSE, 0.0, ""
        for attempt in range(self._attempts):
            if attempt:
                # Not before it was asked for, and not all clients at once.
                self._sleep(retry_after + pause * (0.5 + secure.bits(16) / 2**17))
                pause, retry_after = min(2 * pause, _LONGEST_PAUSE), 0.0
            try:
                status, answer, response_headers = self._once(method, self._base + path, body, sent)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = str(error) or type(error).__name__
                if repeat or isinstance(error, ConnectionRefusedError):  # who refused it has not heard it
                    continue
                break
            if status < 300:
                return answer
            if status < 400:
                raise self.unreachable(
                    f"the collector is not here, but at {response_headers.get('Location', 'another address')}"
                )
            refused = _refusal(status, answer)
            if status not in _AGAIN or not repeat:
                raise refused
            retry_after, problem = _wait(response_headers), str(refused)
        raise self.unreachable(problem)

    def ask_json(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, repeat: bool = True
    ) -> dict[str, Any]:
        """The document that is the answer."""
        answer = self.ask(method, path, body, headers, repeat=repeat)
        with contextlib.suppress(ValueError):
            document = json.loads(answer)
            if isinstance(document, dict):
                return document
        # Such as the page on which a network asks who one is.
        raise self.unreachable(f"no collector answers so: {answer[:200].decode(errors='replace')}")

    def unreachable(self, problem: str) -> CollectorUnreachable:
        """What to raise where no collector has answered."""
        return CollectorUnreachable(f"{self._host}: {problem}")

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        if self._connection is None:
            if self._secure:
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=self._timeout, context=context
                )
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        if self._connection.sock is None:
            self._connection.connect()
        whole = True
        try:
            self._connection.request(method, path, body, dict(headers))
        except (BrokenPipeError, ConnectionResetError):
            whole = False  # who refuses need not read a long body to its end: the answer may be there
        answer = self._connection.getresponse()
        content = answer.read()
        if not whole:
            self.close()
        return answer.status, content, answer.headers

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _address(url: str) -> tuple[bool, str, int | None, str]:
    """Whether the URL of a collector is one of https, and its host, port and path."""
    with contextlib.suppress(ValueError):  # for a port that is no number, a host that cannot be one
        parts = urllib.parse.urlsplit(url)
        host, path = (parts.hostname or "").encode("idna").decode(), parts.path.rstrip("/")
        plain = _fits_a_line(f"/{path}") and not parts.query and not parts.fragment
        if parts.scheme in ("http", "https") and host and plain:
            return parts.scheme == "https", host, parts.port, path
    raise InvalidInput("Client", "url", "be that of a collector, such as https://collect.example", url)


def _fits_a_line(text: str) -> bool:
    """Whether HTTP takes it as one word of a line."""
    return text != "" and all("!" <= character <= "~" for character in text)


def _wait(headers: http.client.HTTPMessage) -> float:
    seconds = headers.get("Retry-After", "0")
    return min(float(seconds), _LONGEST_PAUSE) if seconds.isdecimal() else 0.0


def _refusal(status: int, answer: bytes) -> CollectorRefused:
    try:
        error: Any = json.loads(answer)["error"]
        return CollectorRefused(status, error["reason"], error["message"], error["row"])
    except (ValueError, KeyError, TypeError):  # a proxy's own page
        return CollectorRefused(status, f"status {status}", answer[:200].decode(errors="replace"), None)
