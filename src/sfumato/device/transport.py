"""HTTP requests to a collector, with retries."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import re
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from sfumato._core import parse_json
from sfumato.errors import Description, InvalidInput, SfumatoError
from sfumato.randomness import secure

__all__ = ["CollectorRefused", "CollectorUnreachable", "Transport"]

#: HTTP statuses after which a retry may succeed.
_AGAIN = (408, 429, 500, 502, 503, 504)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
#: Hosts in a local network: private addresses, and names that only such a network knows. The survey page has the same
#: rule, and refuses or asks for the same hosts.
LOCAL_NETWORK = re.compile(
    r"^(10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$|^\[(f[cd]|fe[89ab])"
    r"|^(?!..$|xn--)[^.:[]+$|\.(local|lan|internal|home\.arpa)$",
    re.IGNORECASE,
)


class _Failed(SfumatoError):
    """A request failed.

    Attributes
    ----------
    batch
        Name of the batches that the request belonged to, or None.
    """

    batch: str | None = None

    def name_batch(self, batch: str) -> None:
        """Record the name of the batches, and add it to the message.

        Parameters
        ----------
        batch
            Name under which the caller can send the same reports again.
        """
        self.batch = batch
        self.args = (f"{self} (batch {batch})",)


class CollectorRefused(_Failed):
    """Error raised if the collector rejects a request for a reason that a retry does not change.

    The message gives the reason of the collector.

    Attributes
    ----------
    status
        HTTP status of the response.
    reason
        Reason as one word, such as ``"not-open"``; the documentation of the collector lists all of them.
    row
        Index of the report that the collector rejected, from 0, or None if the request is rejected as a whole.
    batch
        Prefix of the batch names if the request was a submission, or None.
    """

    def __init__(self, status: int, reason: str, message: str, row: int | None) -> None:
        super().__init__(f"the collector rejected the request ({reason}): {message}")
        self.status, self.reason, self.row = status, reason, row


class CollectorUnreachable(_Failed):
    """Error raised if no collector answered a request after all attempts.

    The collector may have processed the request although its response was lost. Repeat a submission with the same
    reports and ``batch=error.batch``; the collector counts them once.

    Attributes
    ----------
    batch
        Prefix of the batch names if the request was a submission, or None.
    """


class Transport:
    """A persistent connection that reconnects when it is lost. Use it from one thread."""

    def __init__(
        self,
        url: str,
        token: str | None,
        attempts: int,
        timeout: float,
        sleep: Callable[[float], None] = time.sleep,
        *,
        plain_http: bool = False,
    ) -> None:
        self._secure, self._host, self._port, self._base = _address(url)
        if not self._secure and not _is_this_machine(self._host):
            _check_plain_http(self._host, url, agreed=plain_http)
        if token is not None and not _fits_a_line(token):
            got = Description("other characters")  # the token is a secret
            raise InvalidInput("Client", "token", "have only visible ASCII characters", got)
        if attempts < 1:
            raise InvalidInput("Client", "attempts", "be at least 1", attempts)
        if not timeout > 0:
            raise InvalidInput("Client", "timeout", "be more than 0 seconds", timeout)
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
        """Send a request and return the body of the response. Retry unless ``repeat`` is False."""
        sent = {"Accept": "*/*", **(headers or {})}
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        if not repeat:
            self.close()  # the collector may be closing an idle connection just now, and this request has no retry
        pause, retry_after, problem = _FIRST_PAUSE, 0.0, ""
        for attempt in range(self._attempts):
            if attempt:
                # Wait at least as long as the collector asked, plus a random pause so that clients spread out.
                self._sleep(retry_after + pause * (0.5 + secure.bits(16) / 2**17))
                pause, retry_after = min(2 * pause, _LONGEST_PAUSE), 0.0
            try:
                status, answer, response_headers = self._once(method, self._base + path, body, sent)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                problem = str(error) or type(error).__name__
                if repeat or isinstance(error, ConnectionRefusedError):  # a refused connection delivered nothing
                    continue
                break
            if status < 300:
                return answer
            if status < 400:  # a redirect
                location = response_headers.get("Location", "another address")
                raise self.unreachable(f"the server redirects to {location}. Use the address of the collector itself.")
            refused = _refusal(status, answer, sent.get("Idempotency-Key"))
            if refused is not None and (status not in _AGAIN or not repeat):
                raise refused
            retry_after = _wait(response_headers)
            problem = str(refused or f"status {status}, not from a collector: {answer[:200].decode(errors='replace')}")
            if not repeat:
                break
        attempts = "1 attempt" if self._attempts == 1 or not repeat else f"{self._attempts} attempts"
        raise self.unreachable(f"{problem} (gave up after {attempts}). Check the address and the network, then retry.")

    def ask_json(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, repeat: bool = True
    ) -> dict[str, Any]:
        """Send a request and return the JSON object in the response."""
        answer = self.ask(method, path, body, headers, repeat=repeat)
        with contextlib.suppress(ValueError):
            document = parse_json(answer)
            if isinstance(document, dict):
                return document
        raise self.unexpected(answer[:200].decode(errors="replace"))  # such as the login page of a network

    def unreachable(self, problem: str) -> CollectorUnreachable:
        """Return the error to raise when no collector answered."""
        return CollectorUnreachable(f"{self._host}: {problem}")

    def unexpected(self, answer: str) -> CollectorUnreachable:
        """Return the error to raise when the response does not come from a collector."""
        return self.unreachable(
            f"the response does not come from a collector: {answer}. Check the URL, and that no proxy or login page "
            "answers instead."
        )

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        """Send a request once."""
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
            whole = False  # a server may reject a long body before it has read all of it: its response may be there
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
    """Return whether the URL uses https, and its host, port and path."""
    with contextlib.suppress(ValueError):  # an invalid port or host
        parts = urllib.parse.urlsplit(url)
        host, path = (parts.hostname or "").encode("idna").decode(), parts.path.rstrip("/")
        plain = _fits_a_line(f"/{path}") and not parts.query and not parts.fragment
        if parts.scheme in ("http", "https") and host and plain:
            return parts.scheme == "https", host, parts.port, path
    raise InvalidInput("Client", "url", "be an address such as https://collect.example", url)


def _is_this_machine(host: str) -> bool:
    """Return whether a host is this machine, to which no network is in between."""
    with contextlib.suppress(ValueError):  # a name
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _check_plain_http(host: str, url: str, *, agreed: bool) -> None:
    """Raise InvalidInput unless the host is in a local network, and the caller agreed to plain HTTP there."""
    is_local = LOCAL_NETWORK.search(f"[{host}]" if ":" in host else host) is not None
    if not (is_local and agreed):
        risk = "Others in the network can read the token and the reports, and change the mechanism."
        step = "Use https"
        if is_local:
            step += ", or pass plain_http=True (--plain-http) if you trust everyone in this local network"
        raise InvalidInput("Client", "url", "begin with https:// or lead to this machine", url, hint=f"{risk} {step}.")


def _fits_a_line(word: str) -> bool:
    """Return whether the string is one word of visible ASCII characters, as HTTP headers require."""
    return word != "" and all("!" <= character <= "~" for character in word)


def _wait(headers: http.client.HTTPMessage) -> float:
    """Return how many seconds the collector asked the client to wait."""
    seconds = headers.get("Retry-After", "0")
    return min(float(seconds), _LONGEST_PAUSE) if seconds.isdecimal() else 0.0


def _refusal(status: int, answer: bytes, batch: str | None) -> CollectorRefused | None:
    """Return the error that a response of the collector describes; None if a proxy answered in its place.

    Only a rejection that names the batch of a submission comes from the collector: a proxy may answer with any JSON.
    """
    try:
        error: Any = parse_json(answer)["error"]
        if batch is not None and error["batch"] != batch:
            return None
        return CollectorRefused(status, error["reason"], error["message"], error["row"])
    except (ValueError, KeyError, TypeError):
        return None
