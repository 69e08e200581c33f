"""Client for a collector's HTTP API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy.typing as npt

from sfumato.auditing import Certificate, audit
from sfumato.collecting import Aggregate, check_origin, encode_batch, wrong_mechanism
from sfumato.device.ledger import Ledger
from sfumato.device.transport import CollectorRefused, CollectorUnreachable, Transport
from sfumato.errors import InvalidInput, shown
from sfumato.mechanisms import Mechanism, MemoizedMechanism, keeps_answers, mechanism_from_spec
from sfumato.policy import Policy, policy_from_dict
from sfumato.questions import Question, read_question
from sfumato.randomness import secure

__all__ = ["Client", "CollectionInfo", "Receipt", "WaveSchedule"]

_JSON = {"Content-Type": "application/json"}
_BATCH = "application/vnd.sfumato.reports"
#: Maximum bytes of reports per batch, except that a batch always holds at least one report.
_BATCH_BYTES = 2**20
#: Maximum number of reports per batch.
_BATCH_REPORTS = 2**20
_NAME = re.compile("[A-Za-z0-9_-]{6,48}")
#: Next step after a response that contradicts itself, an earlier one, or what the application agreed to.
_REFUSE = "Do not send reports. Ask the operator of the collector to check the collection."


@dataclass(frozen=True)
class WaveSchedule:
    """WaveSchedule of a collection that asks again; see :attr:`CollectionInfo.waves`. Times are in seconds since 1970.

    Parameters
    ----------
    count
        Number of waves.
    days
        Length of a wave in days; None if an administrator opens each wave.
    start
        Start of the first wave.
    current
        Number of the current wave, from 0; None before the first wave and after the last one.
    next
        Start of the next wave, or end of the last one; None if an administrator decides.

    Examples
    --------
    >>> from sfumato.device import WaveSchedule
    >>> WaveSchedule(count=10, days=7, start=1_800_000_000, current=0, next=1_800_604_800).current
    0
    """

    count: int
    days: int | None
    start: int
    current: int | None
    next: int | None


@dataclass(frozen=True)
class CollectionInfo:
    """Description of a collection that a collector serves.

    :meth:`Client.collection` returns it, after it has checked that the mechanism has the hash in the response and obeys
    the policy. The client skips the second check if it was created with ``audit_mechanisms=False``.

    Parameters
    ----------
    id
        Identifier of the collection.
    title
        Title, which the pages of the collector show.
    description
        Longer description; may be empty.
    state
        ``"open"``, ``"closed"`` or ``"archived"``; ``"scheduled"`` before an open collection accepts reports.
    submission
        Credential that a client needs to submit reports: ``"open"`` (none), ``"key"`` (the collection key) or
        ``"token"`` (a one-time token per report).
    reports
        Number of reports that the collector has counted.
    previous
        Identifier of the previous version of this collection, or None.
    policy
        Privacy policy of the collection.
    mechanism
        Mechanism that randomizes values for this collection.
    question
        Question that the results of the collection answer; None for all frequencies.
    waves
        WaveSchedule of a collection that asks again; None if it asks once.

    See Also
    --------
    Client.collection : Fetch the description of a collection.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> mechanism = sf.mechanisms.RandomizedResponse(domain, 1)
    >>> info = sf.device.CollectionInfo("c1", "Smoking", "", "open", "key", 0, None, sf.Uniform(domain, 1), mechanism)
    >>> info.mechanism.bits
    1
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
    question: Question | None = None
    waves: WaveSchedule | None = None


@dataclass(frozen=True)
class Receipt:
    """Confirmation that the collector stored and counted the reports of one batch; see :meth:`Client.submit`.

    Parameters
    ----------
    batch
        Name of the batch.
    reports
        Number of reports in the batch.

    Examples
    --------
    >>> from sfumato.device import Receipt
    >>> Receipt("monday-0", 250)
    Receipt(batch='monday-0', reports=250)
    """

    batch: str
    reports: int


class Client:
    """HTTP client for a Sfumato collector, the server that receives and counts reports.

    Use it as a context manager, or call :meth:`close` when you are done. The client retries requests that are safe to
    repeat, with growing pauses between attempts.

    Before the client returns a mechanism or sends reports, it audits the mechanism against the policy of the
    collection. A device therefore does not rely on the certificate of the collector. The client audits each pair of
    mechanism and policy once.

    Methods raise :class:`CollectorRefused` if the collector rejects a request, and :class:`CollectorUnreachable` if no
    collector answers.

    Parameters
    ----------
    url
        Address of the collector, such as ``https://collect.example``.
    token
        Credential: a collection key or a one-time token to submit reports, or an admin token to manage collections. The
        default is none, which open collections accept.
    attempts
        Maximum number of attempts per request.
    timeout
        Maximum time to wait for one response, in seconds.
    audit_mechanisms
        Whether to audit mechanisms. Pass False only if your program audits them with :func:`sfumato.audit`.
    plain_http
        Whether to allow an ``http`` address in a local network, where others can then read the token and the reports
        and change the mechanism. ``http`` to this machine is always possible, and to other hosts never.

    Raises
    ------
    InvalidInput
        If the URL, the token or a limit is invalid, or the URL is a plain HTTP address that is not possible.

    Examples
    --------
    >>> from sfumato.device import Client
    >>> with Client("https://collect.example", token="...") as client:
    ...     pass  # client.submit("c1", reports)
    >>> Client("ftp://collect.example")
    Traceback (most recent call last):
        ...
    sfumato.errors.InvalidInput: Client: url must be an address such as https://collect.example; got 'ftp://collect.example'
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        attempts: int = 10,
        timeout: float = 30.0,
        audit_mechanisms: bool = True,
        plain_http: bool = False,
    ) -> None:
        self._transport = Transport(url, token, attempts, timeout, plain_http=plain_http)
        self._audits = audit_mechanisms
        self._collections: dict[str, CollectionInfo] = {}
        #: Hashes of the mechanism and the policy of every audit that passed.
        self._audited: set[tuple[str, str]] = set()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection to the collector; the next request opens a new one."""
        self._transport.close()

    # -- collections -------------------------------------------------------------------------------------

    def collection(self, collection: str) -> CollectionInfo:
        """Fetch the description of a collection and audit its mechanism.

        Parameters
        ----------
        collection
            Identifier of the collection.

        Returns
        -------
        CollectionInfo
            The collection with its policy and its mechanism.

        Raises
        ------
        InvalidInput
            If the mechanism does not have the stated hash, or the policy has a different domain.
        PolicyViolated
            If the mechanism violates the policy that the collector serves with it.
        NoAnswer
            If the audit cannot decide whether the mechanism obeys the policy.

        Notes
        -----
        The audit is the exact :func:`sfumato.audit`. It takes well under a second except for large domains: about 6 s
        for Hadamard response over 100,000 values, and 2 s for a table of 500 by 500.
        """
        info = self._described(collection)
        self._audit(info)
        return info

    def _described(self, collection: str) -> CollectionInfo:
        """Fetch a collection and check its identifier and the hash of its mechanism, without an audit."""
        document = self._json("GET", _path(collection))
        if "mechanism" not in document:
            raise self._transport.unexpected(shown(document))
        if document["id"] != collection:  # a ledger would not find the earlier answers under another name
            raise InvalidInput("Client", "the id in the response", f"be {collection!r}", document["id"], hint=_REFUSE)
        mechanism = mechanism_from_spec(document["mechanism"])
        if mechanism.hash != document["mechanism_hash"]:
            raise wrong_mechanism(
                "Client",
                "the mechanism hash in the response",
                mechanism.hash,
                str(document["mechanism_hash"]),
                cause="The mechanism in the response has another hash than the response states.",
                next_step=_REFUSE,
            )
        known = self._collections.get(collection)
        if known is not None and known.mechanism.hash != mechanism.hash:
            raise wrong_mechanism(
                "Client",
                "the mechanism of the collection",
                known.mechanism.hash,
                mechanism.hash,
                cause="The mechanism of a collection never changes, and this client received another one before.",
                next_step=_REFUSE,
            )
        # A collector of an earlier release does not send a question.
        stated = document.get("question")
        question = None if stated is None else Question.from_dict(stated).checked(mechanism.domain)
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
            question,
            None if document.get("waves") is None else WaveSchedule(**document["waves"]),
        )
        self._collections[collection] = info
        return info

    def _audit(self, info: CollectionInfo, *, always: bool = False) -> None:
        """Raise PolicyViolated unless the mechanism obeys the policy of its collection."""
        pair = (info.mechanism.hash, info.policy.hash)
        if (self._audits or always) and pair not in self._audited:
            audit(info.mechanism, info.policy).raise_if_violated()
            self._audited.add(pair)

    def certificate(self, collection: str) -> Certificate:
        """Fetch the certificate of a collection, which states that the mechanism obeys the policy.

        This method does not check the certificate; :func:`sfumato.verify` does.

        Parameters
        ----------
        collection
            Identifier of the collection.

        Returns
        -------
        Certificate
            The certificate that the collector serves.
        """
        return Certificate.from_json(self._transport.ask("GET", _path(collection, "/certificate")).decode())

    def create(
        self,
        title: str,
        policy: Policy,
        mechanism: Mechanism | str | None = None,
        *,
        question: Question | str | None = None,
        **about: Any,
    ) -> tuple[str, str | None]:
        """Create a collection for the values of one policy. Requires an admin token.

        Parameters
        ----------
        title
            Title, which the pages of the collector show.
        policy
            Privacy policy that all reports obey.
        mechanism
            Mechanism, or its short name such as ``"subset"``. By default the collector designs a mechanism for the
            policy and the question.
        question
            What is to be learned: a :class:`Question`, or a string such as ``"mean"``. The results of the collection
            answer it. By default, all frequencies.
        **about
            Further fields of the request, such as ``submission`` (``"open"``, ``"key"`` or ``"token"``), ``results``
            and ``keep_days``. By default each person sends one report, only owners read the results, and the title is
            not listed. The documentation of the collector has all fields.

        Returns
        -------
        tuple of str and str or None
            The identifier of the collection, and the key that clients need to submit reports. The key is None unless
            ``submission`` is ``"key"``.
        """
        spec = mechanism.spec if isinstance(mechanism, Mechanism) else mechanism
        document = {"title": title, "policy": policy.to_dict(), "mechanism": spec, **about}
        if question is not None:  # a collector of an earlier release rejects the field
            document["question"] = read_question("Client.create", question, policy.domain).to_dict()
        created = self._json("POST", "/v1/collections", document, repeat=False)
        return created["collection"]["id"], created["key"]

    def change(self, collection: str, **change: Any) -> None:
        """Change fields of a collection. Requires an admin token.

        Parameters
        ----------
        collection
            Identifier of the collection.
        **change
            New values by field, such as ``state`` (``"open"``, ``"closed"`` or ``"archived"``) and ``title``.
        """
        self._json("PATCH", _path(collection), change)

    def tokens(self, collection: str, count: int) -> list[str]:
        """Create one-time tokens, each of which admits one report. Requires an admin token.

        Parameters
        ----------
        collection
            Identifier of the collection.
        count
            Number of tokens.

        Returns
        -------
        list of str
            The new tokens. The collector stores only their hashes and cannot return them again.
        """
        answer = self._json("POST", _path(collection, "/tokens"), {"count": count}, repeat=False)
        return list(answer["tokens"])

    def new_key(self, collection: str) -> str:
        """Replace the key that clients need to submit reports. Requires an admin token.

        The collector rejects the previous key from then on.

        Parameters
        ----------
        collection
            Identifier of the collection.

        Returns
        -------
        str
            The new key.
        """
        return str(self._json("POST", _path(collection, "/key"), repeat=False)["key"])

    # -- reports -----------------------------------------------------------------------------------------

    def answer_wave(
        self, collection: str, value: object, ledger: str | Path, *, policy: Policy, lifetime: Policy
    ) -> Receipt:
        """Answer the current wave of a collection, with the permanent answers of a ledger file.

        The client fetches the collection once. It compares both policies with those that the application was shipped
        with and audits the mechanism, before it draws anything. The ledger stores the permanent answer and the report
        before the report is sent. A call that was interrupted can be repeated: it sends the same report under the same
        name, and the collector counts it once.

        Parameters
        ----------
        collection
            Identifier of the collection.
        value
            Value of the person in this wave.
        ledger
            Path of the person's ledger file, from :meth:`Ledger.save`. Its budget limits what further permanent answers
            about changed values add up to.
        policy
            Policy of one report that the application agreed to. Ship it with the application; do not fetch it.
        lifetime
            Policy of all reports about one unchanged value that the application agreed to.

        Returns
        -------
        Receipt
            The receipt of the report.

        Raises
        ------
        InvalidInput
            If the collection has no current wave or another policy or lifetime policy. Nothing was drawn or sent.
        PolicyViolated
            If the mechanism violates its policy, or its permanent answers violate the lifetime policy. The client
            audits the mechanism also if it was created with ``audit_mechanisms=False``, because no other code sees it.
        """
        info = self._described(collection)  # fetched again, because the wave changes
        mechanism = cast("MemoizedMechanism", info.mechanism)
        if info.waves is None or info.waves.current is None or not keeps_answers(mechanism):
            hint = "Ask again when the next wave has started, or use submit() for a collection without waves."
            raise InvalidInput("answer_wave", "the collection", "have a current wave", info.waves, hint=hint)
        for name, agreed, served in (("policy", policy, info.policy), ("lifetime", lifetime, mechanism.lifetime)):
            if served != agreed:
                must = f"be {shown(agreed)}"
                raise InvalidInput("answer_wave", f"the {name} of the collection", must, served, hint=_REFUSE)
        self._audit(info, always=True)
        with Ledger.open(ledger) as memory:
            reports = memory.answer_wave(collection, mechanism, value, info.waves.current)
            batch = memory.batch_name(collection, info.waves.current)
        return self.submit(collection, reports, batch=batch, wave=info.waves.current)[0]

    def submit(
        self, collection: str, reports: Any, *, batch: str | None = None, wave: int | None = None
    ) -> list[Receipt]:
        """Send reports and return when the collector has counted all of them.

        The client divides the reports into batches with the names ``{batch}-0``, ``{batch}-1`` and so on. The collector
        counts a batch once, even if it arrives again. A process that may be interrupted should therefore choose
        ``batch``, and call this method again with the same arguments after a failure.

        Parameters
        ----------
        collection
            Identifier of the collection.
        reports
            Reports of the collection's mechanism, as an array or as an iterator of arrays.
        batch
            Prefix of the batch names: 6 to 48 letters, digits, ``-`` or ``_``. The default is a random prefix, which is
            lost if the process ends.
        wave
            Number of the wave of all reports, if the collection has waves.

        Returns
        -------
        list of Receipt
            One receipt per batch.

        Raises
        ------
        InvalidInput
            If the name or a report is invalid.
        PolicyViolated
            If the mechanism violates the policy of the collection. Nothing was sent.
        CollectorRefused
            If the collector rejected a batch. ``error.batch`` is the prefix of the batch names.
        CollectorUnreachable
            If no response arrived. Retry with the same reports and ``batch=error.batch``.

        Notes
        -----
        If the iterator of reports raises an exception, the client adds a note with the prefix to the exception.
        """
        name = new_batch_name() if batch is None else batch
        if not _NAME.fullmatch(name):
            raise InvalidInput("submit", "batch", "be 6 to 48 letters, digits, '-' or '_'", batch)
        try:
            info = self._known(collection)
            self._audit(info)
            mechanism = info.mechanism
            return [
                self._send(collection, Receipt(f"{name}-{number}", len(piece)), encode_batch(mechanism, piece), wave)
                for number, piece in enumerate(_batches(mechanism, reports))
            ]
        except (CollectorRefused, CollectorUnreachable) as error:
            error.name_batch(name)
            raise
        except BaseException as error:  # reading the reports failed, but the collector may have counted some batches
            error.add_note(
                f"The collector may have counted some batches. Submit the same reports again with batch={name!r}."
            )
            raise

    def _send(self, collection: str, receipt: Receipt, payload: bytes, wave: int | None) -> Receipt:
        """Send a batch and check that the response is its receipt."""
        headers = {"Content-Type": _BATCH, "Idempotency-Key": receipt.batch}
        path = _path(collection, "/reports" + _query(wave))
        document = self._transport.ask_json("POST", path, payload, headers)
        if (document.get("batch"), document.get("reports")) != (receipt.batch, receipt.reports):
            raise self._transport.unreachable(
                f"the response must be {receipt}; got {shown(document)}. Submit the same reports again."
            )
        return receipt

    # -- results -----------------------------------------------------------------------------------------

    def aggregate(self, collection: str, *, wave: int | None = None) -> Aggregate:
        """Fetch the exact counts of all reports of a collection.

        Pass them to :func:`sfumato.estimate` with the mechanism of the collection. The request needs an admin token if
        only admins may read the results.

        Parameters
        ----------
        collection
            Identifier of the collection.
        wave
            Number of a wave, if the collection has waves. By default, the last one that has reports.

        Returns
        -------
        Aggregate
            The counts of the reports that the collector has counted so far.
        """
        mechanism = self._known(collection).mechanism
        headers = {"Accept": "application/vnd.sfumato.aggregate"}
        path = _path(collection, "/aggregate" + _query(wave))
        counts = Aggregate.from_bytes(self._transport.ask("GET", path, headers=headers))
        counts.check(mechanism)
        return counts

    # -- inside ------------------------------------------------------------------------------------------

    def _known(self, collection: str) -> CollectionInfo:
        """Return the cached description of a collection, or fetch it."""
        return self._collections.get(collection) or self._described(collection)

    def _json(self, method: str, path: str, document: Any = None, *, repeat: bool = True) -> Any:
        """Send a JSON document and return the JSON response."""
        body = None if document is None else json.dumps(document).encode()
        return self._transport.ask_json(method, path, body, _JSON, repeat=repeat)


def _query(wave: int | None) -> str:
    """Return the query of a path that names a wave."""
    return "" if wave is None else f"?wave={wave}"


def new_batch_name() -> str:
    """Return a new random name for batches."""
    return secure.read(16).hex()


def _path(collection: str, rest: str = "") -> str:
    """Return the API path of a collection."""
    if not collection.isascii() or not collection.isalnum():
        raise InvalidInput(
            "Client",
            "collection",
            "be the identifier of a collection: ASCII letters and digits",
            collection,
            hint="Copy it from the collection's page or from the link to it.",
        )
    return f"/v1/collections/{collection}{rest}"


def _batches(mechanism: Mechanism, reports: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield batches that do not depend on how the caller divided the reports, so equal names mean equal payloads."""
    check_origin(mechanism, reports)
    rows = min(_BATCH_REPORTS, max(1, _BATCH_BYTES * 8 // max(mechanism.bits, 1)))
    for piece in mechanism.report_format.validated_pieces(reports):
        for start in range(0, len(piece), rows):
            yield piece[start : start + rows]
