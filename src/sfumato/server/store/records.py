"""Records that a store accepts and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy.typing as npt
from msgspec import Meta, Struct

from sfumato.mechanisms import Mechanism

__all__ = [
    "DIGEST_BYTES",
    "FOLLOWING_STATES",
    "ID_BYTES",
    "METADATA",
    "RECEIPT_BYTES",
    "Access",
    "Days",
    "Description",
    "Label",
    "Metadata",
    "Moment",
    "Origins",
    "Outcome",
    "Progress",
    "Record",
    "ReleaseEvery",
    "ResultsKind",
    "Schedule",
    "State",
    "StateNow",
    "Submission",
    "SubmissionMode",
    "SubmissionResult",
    "Title",
    "WaveCount",
    "WaveDays",
    "WaveNumber",
]

#: Sizes in bytes of a stored batch id, a digest and a receipt.
ID_BYTES, DIGEST_BYTES, RECEIPT_BYTES = 16, 16, 20

State = Literal["open", "closed", "archived"]
#: State at a time: an open collection is scheduled before its first date, and closed after its last one.
StateNow = Literal["scheduled", "open", "closed", "archived"]
#: Allowed changes of state; an archived collection stays archived.
FOLLOWING_STATES: dict[State, tuple[State, ...]] = {
    "open": ("open", "closed"),
    "closed": ("closed", "open", "archived"),
    "archived": ("archived",),
}
#: Outcome of a submission: counted now, counted before, or the reason of its rejection.
Outcome = Literal["accepted", "repeated", "conflict", "not-found", "not-open", "rate", "token-unknown", "token-spent"]


Title = Annotated[str, Meta(min_length=1, max_length=200)]
Description = Annotated[str, Meta(max_length=20_000)]
Origin = Annotated[str, Meta(pattern=r"^(\*|https?://[A-Za-z0-9.:\[\]-]{1,250})$(?!\n)")]
Origins = Annotated[list[Origin], Meta(max_length=100)]
Days = Annotated[int, Meta(ge=0, le=36_500)]
Label = Annotated[str, Meta(max_length=200)]
Moment = Annotated[int, Meta(ge=0, le=2**40)]
SubmissionMode = Literal["open", "key", "token"]
ResultsKind = Literal["public", "admin"]
WaveCount = Annotated[int, Meta(ge=1, le=400, description="Number of waves.")]
WaveNumber = Annotated[int, Meta(ge=0, le=399, description="Number of a wave, from 0.")]
WaveDays = Annotated[int, Meta(ge=1, le=366, description="Length of a wave in days.")]

_DAY_SECONDS = 86_400


class Schedule(Struct, frozen=True, forbid_unknown_fields=True):
    """The waves of a collection that asks again."""

    count: WaveCount
    #: Length of a wave in days; None if an administrator opens each wave.
    days: WaveDays | None
    #: Start of the first wave, in seconds since 1970 (Unix time).
    start: int
    #: The wave that an administrator opened last, if there are no days.
    opened: WaveNumber = 0

    def position(self, now: float) -> int:
        """Return the number of the wave at a time: negative before the first, at least ``count`` after the last."""
        return self.opened if self.days is None else int((now - self.start) // (self.days * _DAY_SECONDS))

    def current(self, now: float) -> int | None:
        """Return the number of the current wave, or None before the first and after the last one."""
        position = self.position(now)
        return position if 0 <= position < self.count else None

    def next(self, now: float) -> int | None:
        """Return when the next wave starts or the last one ends; None if that is past or an administrator decides."""
        if self.days is None or self.position(now) >= self.count:
            return None
        return self.start + max(self.position(now) + 1, 0) * self.days * _DAY_SECONDS

    def accepts(self, wave: int, now: float) -> bool:
        """Return whether reports of a wave are counted: during it, and during the next one if they come late."""
        return 0 <= wave < self.count and self.position(now) - wave in (0, 1)


ReleaseEvery = Annotated[int, Meta(ge=2, le=10**9, description="Least number of reports that are released together.")]


class Access(Struct, frozen=True, kw_only=True):
    """Who may send, who may read, and whether strangers see the title.

    Every policy protects something, so the defaults do not depend on it: one report per person, results and title for
    owners only, unless the owner decides otherwise. Studio preselects the same.
    """

    #: Clients that may send reports: all (open), those with the collection's key, or those with a one-time token.
    submission: SubmissionMode = "token"
    #: Readers of estimates and counts: the public, or those with a role.
    results: ResultsKind = "admin"
    #: Whether the first page and the list of collections show the title.
    listed: bool = False


class Metadata(Access, frozen=True, forbid_unknown_fields=True):
    """The metadata of a collection, which administrators may change; stored as JSON in the column ``about``.

    Lists of collections decode it for each row, so it is short: the presentation has its own column.
    """

    title: Title
    description: Description = ""
    origins: Origins = []
    keep_days: Days | None = None
    #: The waves of a collection that asks again; they do not change, except that an administrator may open the next.
    waves: Schedule | None = None
    #: Name for its owners, which participants do not see.
    label: Label = ""
    #: Unix times between which the collection accepts reports; None for no limit.
    opens: Moment | None = None
    closes: Moment | None = None
    #: Least number of reports by which counts and results advance; it does not change. None shows each report at once.
    release_every: ReleaseEvery | None = None

    def state_at(self, state: State, now: float) -> StateNow:
        """Return the state at a time: an open collection is scheduled or closed outside its dates."""
        if state == "open" and self.opens is not None and now < self.opens:
            return "scheduled"
        return "closed" if state == "open" and self.ended(now) else state

    def ended(self, now: float) -> bool:
        """Return whether the last date is over."""
        return self.closes is not None and now >= self.closes


#: Decoder of stored metadata.
METADATA = msgspec.json.Decoder(Metadata)


@dataclass(frozen=True)
class Record:
    """A stored collection, with its documents as JSON strings.

    Policy, question, mechanism, certificate and presentation never change; the metadata (title, submission mode,
    retention) and the key may.
    """

    id: str
    #: Position in the order of creation, assigned by the store.
    number: int
    created: int
    previous: str | None
    policy: str
    mechanism: str
    certificate: str
    metadata: str
    #: SHA-256 hash of the key that clients send with reports, if the submission mode is ``key``.
    key_hash: bytes | None
    #: The question that the mechanism answers, as a JSON string; None for all frequencies.
    question: str | None = None
    #: How the survey page presents the collection, as a JSON string; None for a plain question.
    presentation: str | None = None


@dataclass(frozen=True)
class Progress:
    """State and counters of a collection."""

    state: State
    reports: int
    batches: int
    #: The counters as of the last release, which readers without a token see.
    released_reports: int = 0
    released_batches: int = 0


class Submission(NamedTuple):
    """A valid batch that is waiting to be counted."""

    collection: str
    mechanism: Mechanism
    #: Hash of the collection and the batch id.
    batch: bytes
    #: Digest of the payload and number of its reports, stored under the batch id.
    receipt: bytes
    reports: npt.NDArray[Any]
    #: Whether the store keeps the reports in addition to the counts.
    keep: bool
    #: SHA-256 hash of the one-time token to spend.
    token_hash: bytes | None
    #: Day of arrival, in days since 1970 (UTC).
    day: int
    #: Number of the wave, if the collection asks again.
    wave: int | None = None
    #: Whether the wave accepts no more reports; a batch that was counted before still gets its receipt.
    late: bool = False
    #: Whether the dates of the collection exclude new reports; a batch that was counted before gets its receipt.
    closed: bool = False
    #: Whether too many reports came today; a batch that was counted before gets its receipt.
    exhausted: bool = False
    #: Number of reports that are released together, if the collection does not show each report at once.
    release_every: int | None = None


class SubmissionResult(NamedTuple):
    """The outcome of a submission, and the number of reports counted under its batch id, now or before."""

    outcome: Outcome
    reports: int = 0
