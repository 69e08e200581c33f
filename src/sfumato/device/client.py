"""The client of a collector."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy.typing as npt

from sfumato.auditing import Certificate, audit
from sfumato.collecting import Aggregate, encode_batch
from sfumato.device.transport import CollectorRefused, CollectorUnreachable, Transport
from sfumato.errors import InvalidInput, shown
from sfumato.mechanisms import Mechanism, mechanism_from_spec
from sfumato.policy import Policy, policy_from_dict
from sfumato.randomness import secure

__all__ = ["Client", "CollectionInfo", "Receipt"]

_JSON = {"Content-Type": "application/json"}
_BATCH = "application/vnd.sfumato.reports"
#: A batch holds at most so many bytes of reports, unless its one report is longer, and so many reports.
_BATCH_BYTES = 2**20
_BATCH_REPORTS = 2**20
_NAME = re.compile("[A-Za-z0-9_-]{6,48}")


@dataclass(frozen=True)
class CollectionInfo:
    """A collection as the collector describes it; ``mechanism`` has the stated hash and was audited against ``policy``.

    ``id``, ``title``, ``description``, ``state``, ``submission``, ``reports`` (how many) and ``previous`` (the id of
    the version before) are those of docs/collector.md.
    """

    id: str
    title: str
    description: str
    state: str
    submission: str
    reports: int
    previous: str | None
    policy: Policy
    mechanism: Mechanism


@dataclass(frozen=True)
class Receipt:
    """The collector's confirmation that the reports of a batch are counted and stored."""

    batch: str
    reports: int


class Client:
    """A collector at a URL. Requests that may be repeated are, up to ``attempts`` times, with growing pauses.

    ``token`` is whatever the collection or the operation asks for: its key, a one-time token, an admin token.
    ``timeout`` is how many seconds one answer may take.

    Before it returns a mechanism or sends reports of it, the client audits the mechanism against the policy that the
    collector serves with it: a device cannot rely on the collector's certificate alone. Each pair of mechanism and
    policy is audited once per client; see ``collection``. ``audit_mechanisms=False`` leaves that to the caller.

    >>> Client("ftp://collect.example")
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Client: url must be that of a collector, such as https://collect.example; got 'ftp://collect.example'
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        attempts: int = 10,
        timeout: float = 30.0,
        audit_mechanisms: bool = True,
    ) -> None:
        self._transport = Transport(url, token, attempts, timeout)
        self._audits = audit_mechanisms
        self._collections: dict[str, CollectionInfo] = {}
        #: Hashes of a mechanism and of a policy that it obeys.
        self._audited: set[tuple[str, str]] = set()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    # -- collections -------------------------------------------------------------------------------------

    def collection(self, collection: str) -> CollectionInfo:
        """Return what a client needs to know before it randomizes.

        Parameters
        ----------
        collection
            The id of the collection.

        Returns
        -------
        CollectionInfo
            The collection with its policy and its mechanism.

        Raises
        ------
        InvalidInput
            If the mechanism does not have the stated hash, or the policy is over another domain.
        PolicyViolated
            If the mechanism breaks the policy that is served with it.
        NoAnswer
            If the audit cannot decide that.

        Notes
        -----
        The audit is ``sfumato.audit``, exact. It takes well under a second but for large domains: some 6 s for Hadamard
        response over 100,000 values, 2 s for a table of 500 by 500.
        """
        info = self._described(collection)
        self._audit(info)
        return info

    def _described(self, collection: str) -> CollectionInfo:
        """Return the collection as it is served, its mechanism not audited."""
        document = self._json("GET", _path(collection))
        if "mechanism" not in document:
            raise self._transport.unreachable(f"no collector answers so: {shown(document)}")
        mechanism = mechanism_from_spec(document["mechanism"])
        if mechanism.hash != document["mechanism_hash"]:
            raise InvalidInput("Client", "the mechanism's hash", f"be {mechanism.hash}", document["mechanism_hash"])
        info = CollectionInfo(
            document["id"],
            document["title"],
            document["description"],
            document["state"],
            document["submission"],
            document["reports"],
            document["previous"],
            policy_from_dict(document["policy"]),
            mechanism,
        )
        self._collections[collection] = info
        return info

    def _audit(self, info: CollectionInfo) -> None:
        """Raise PolicyViolated unless the mechanism obeys the policy that is served with it."""
        pair = (info.mechanism.hash, info.policy.hash)
        if self._audits and pair not in self._audited:
            audit(info.mechanism, info.policy).raise_if_violated()
            self._audited.add(pair)

    def certificate(self, collection: str) -> Certificate:
        """The collection's proof; ``verify`` checks it."""
        return Certificate.from_json(self._transport.ask("GET", _path(collection, "/certificate")).decode())

    def create(
        self, title: str, policy: Policy, mechanism: Mechanism | str | None = None, **about: Any
    ) -> tuple[str, str | None]:
        """Open a collection with this title, as an administrator: its id, and its key if it asks for one.

        ``about`` is what else docs/collector.md names: ``submission``, ``results``, ``keep_days`` and so on.
        """
        spec = mechanism.spec if isinstance(mechanism, Mechanism) else mechanism
        document = {"title": title, "policy": policy.to_dict(), "mechanism": spec, **about}
        created = self._json("POST", "/v1/collections", document, repeat=False)
        return created["collection"]["id"], created["key"]

    def change(self, collection: str, **change: Any) -> None:
        """Open, close or archive a collection (``state=``), or change what else is said of it, such as ``title``."""
        self._json("PATCH", _path(collection), change)

    def tokens(self, collection: str, count: int) -> list[str]:
        """New one-time tokens."""
        answer = self._json("POST", _path(collection, "/tokens"), {"count": count}, repeat=False)
        return list(answer["tokens"])

    def new_key(self, collection: str) -> str:
        """Another key for a collection that asks for one; the one before is refused from now on."""
        return str(self._json("POST", _path(collection, "/key"), repeat=False)["key"])

    # -- reports -----------------------------------------------------------------------------------------

    def submit(self, collection: str, reports: Any, *, batch: str | None = None) -> list[Receipt]:
        """Send reports, an array or an iterator of arrays, and come back when every one is counted.

        Nothing is sent where the mechanism breaks the collection's policy: PolicyViolated, as ``collection`` says.

        They go out in batches named ``batch``-0, ``batch``-1, …, and the same reports under the same name are counted
        once. So whoever may be interrupted gives a name, and calls it again with the same arguments. Without one there
        is a new random name each time: where this fails, ``batch`` of the error is it, to be given with the same
        reports, or a note where it was the iterator that failed; where the process ends, nobody knows it.
        """
        name = new_batch_name() if batch is None else batch
        if not _NAME.fullmatch(name):
            raise InvalidInput("submit", "batch", "be 6 to 48 letters, digits, '-' or '_'", batch)
        try:
            info = self._known(collection)
            self._audit(info)
            mechanism = info.mechanism
            return [
                self._send(collection, Receipt(f"{name}-{number}", len(piece)), encode_batch(mechanism, piece))
                for number, piece in enumerate(_batches(mechanism, reports))
            ]
        except (CollectorRefused, CollectorUnreachable) as error:
            error.name_batch(name)
            raise
        except BaseException as error:  # the reports could not be read to their end, and some of them may be counted
            error.add_note(f"(batch {name})")
            raise

    def _send(self, collection: str, receipt: Receipt, payload: bytes) -> Receipt:
        """Send a batch until its receipt comes: another one is none."""
        headers = {"Content-Type": _BATCH, "Idempotency-Key": receipt.batch}
        document = self._transport.ask_json("POST", _path(collection, "/reports"), payload, headers)
        if (document.get("batch"), document.get("reports")) != (receipt.batch, receipt.reports):
            raise self._transport.unreachable(f"the answer must be the {receipt}; got {shown(document)}")
        return receipt

    # -- results -----------------------------------------------------------------------------------------

    def aggregate(self, collection: str) -> Aggregate:
        """The exact counts: ``sfumato.estimate`` takes them."""
        mechanism = self._known(collection).mechanism
        headers = {"Accept": "application/vnd.sfumato.aggregate"}
        counts = Aggregate.from_bytes(self._transport.ask("GET", _path(collection, "/aggregate"), headers=headers))
        counts.check(mechanism)
        return counts

    # -- inside ------------------------------------------------------------------------------------------

    def _known(self, collection: str) -> CollectionInfo:
        """Return the collection as it was last described, asked for only once."""
        return self._collections.get(collection) or self._described(collection)

    def _json(self, method: str, path: str, document: Any = None, *, repeat: bool = True) -> Any:
        body = None if document is None else json.dumps(document).encode()
        return self._transport.ask_json(method, path, body, _JSON, repeat=repeat)


def new_batch_name() -> str:
    """A name for batches that nobody else has."""
    return secure.read(16).hex()


def _path(collection: str, rest: str = "") -> str:
    if not collection.isascii() or not collection.isalnum():
        raise InvalidInput("Client", "collection", "be the id of a collection", collection)
    return f"/v1/collections/{collection}{rest}"


def _batches(mechanism: Mechanism, reports: Any) -> Iterator[npt.NDArray[Any]]:
    """The same batches however the reports were cut, so that the same name means the same payload."""
    rows = min(_BATCH_REPORTS, max(1, _BATCH_BYTES * 8 // max(mechanism.bits, 1)))
    for piece in mechanism.report_format.validated_pieces(reports):
        for start in range(0, len(piece), rows):
            yield piece[start : start + rows]
