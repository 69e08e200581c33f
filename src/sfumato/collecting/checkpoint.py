"""Checkpoints: the counts so far and the files that they cover. The file is always replaced as a whole."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from sfumato._core import check_keys, parse_json, replacing
from sfumato.collecting.aggregates import Aggregate
from sfumato.collecting.grouped import GroupedAggregate
from sfumato.collecting.sources import Source, unreadable
from sfumato.errors import Description, InvalidInput, UnknownSpec, file_error
from sfumato.mechanisms import Mechanism

__all__ = ["Checkpoint", "Counts", "CountsType", "State", "state_of"]

_FORMAT = "sfumato-checkpoint"
_VERSION = 1


class Counts(Protocol):
    """Counts that merge: of all reports, or by group."""

    @property
    def n(self) -> int:
        """The number of reports."""

    def merge(self, other: Self) -> Self:
        """Return the counts of both sets of reports together."""

    def check(self, mechanism: Mechanism) -> None:
        """Raise an error unless these can be counts of reports of a mechanism."""

    def to_json(self) -> str:
        """Return the counts as a JSON string."""


CountsType = TypeVar("CountsType", bound=Counts)

#: Size and modification time of a file, which reveal whether it changed.
State = tuple[int, int]


@dataclass(frozen=True)
class _File:
    """How much of a file is counted, and its state at that time.

    ``groups`` is the number of row groups that are counted, or None if the whole file is.
    """

    state: State
    groups: int | None


@dataclass(frozen=True)
class Checkpoint(Generic[CountsType]):
    """Counts, and the files that they cover, by path."""

    counts: CountsType
    files: dict[str, _File]

    @classmethod
    def read(
        cls, mechanism: Mechanism, path: Path | str, sources: Sequence[Source], empty: CountsType
    ) -> Checkpoint[CountsType]:
        """Read a checkpoint, or return one with the empty counts if the file does not exist.

        Reject a checkpoint of another mechanism, and one with files that ``sources`` does not list, because its counts
        include them. ``sources`` may list further files. Only files can be resumed: a pipe cannot be read again, and a
        file that is listed twice would be counted once.
        """
        names: set[str] = set()
        for source in sources:
            if source.pipe is not None:
                hint = "Write the reports to a file first, or leave resume out."
                raise InvalidInput("resume", "reports", "be files, not a pipe", "-", hint=hint)
            if _name(source) in names:
                hint = "Remove the duplicate, because its reports would be counted once."
                raise InvalidInput("resume", "reports", "name each file once", _name(source), hint=hint)
            names.add(_name(source))
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return Checkpoint(empty, {})
        except OSError as error:
            raise file_error(error, str(path), "the path", "be a readable checkpoint", Description(error)) from error
        except UnicodeDecodeError as error:
            got = Description(f"a file that is not UTF-8 text ({error.reason})")
            raise InvalidInput(str(path), "the path", "be a readable checkpoint", got) from error
        checkpoint = cls.from_json(text, str(path))
        checkpoint.counts.check(mechanism)
        if type(checkpoint.counts) is not type(empty):
            hint = "Use the same columns as before, or delete the checkpoint and count all files again."
            got = Description(f"{type(checkpoint.counts).__name__} in {path}")
            raise InvalidInput(
                "resume", "the checkpoint", f"have counts of the type {type(empty).__name__}", got, hint=hint
            )
        empty.merge(checkpoint.counts)  # raises InvalidInput if the columns differ
        for name in checkpoint.files:
            if name not in names:
                must = f"be in the list of files, because the checkpoint {path} includes its reports"
                hint = "Add the file to the list, or delete the checkpoint and count all files again."
                raise InvalidInput(name, "the file", must, Description("a list without it"), hint=hint)
        return checkpoint

    def done(self, source: Source, state: State) -> int | None:
        """Return the number of row groups of a file that are counted, or None if the whole file is."""
        known = self.files.get(_name(source)) if source.pipe is None else None
        if known is None:
            return 0
        if state != known.state:
            hint = "Restore the file, or delete the checkpoint and count all files again."
            must = "be unchanged since a part of it was counted"
            raise InvalidInput(source.shown, "the file", must, Description("a changed file"), hint=hint)
        return known.groups

    def extended(
        self, counts: CountsType, files_done: Sequence[tuple[Source, State, int | None]]
    ) -> Checkpoint[CountsType]:
        """Return a checkpoint with more counts, and with the number of row groups that are then counted per file.

        Reject a file that changed while it was counted, because it is unknown which version was counted.
        """
        files = dict(self.files)
        for source, state, groups in files_done:
            if state_of(source) != state:
                hint = "Wait until the file is complete, then count it again."
                got = Description("a changed file")
                raise InvalidInput(source.shown, "the file", "not change while it is counted", got, hint=hint)
            if source.pipe is None:
                files[_name(source)] = _File(state, groups)
        return Checkpoint(self.counts.merge(counts), files)

    def write(self, path: Path | str) -> None:
        """Replace the file atomically: a reader sees the old checkpoint or the new one."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "counts": json.loads(self.counts.to_json()),
            "files": {
                name: {"bytes": file.state[0], "modified": file.state[1], "row_groups": file.groups}
                for name, file in self.files.items()
            },
        }
        with replacing(path) as file:
            file.write(json.dumps(document).encode() + b"\n")

    @classmethod
    def from_json(cls, text: str, shown: str) -> Checkpoint[Any]:
        """Read the document that ``write`` writes."""
        try:
            document = parse_json(text)
        except ValueError as error:
            hint = "Pass the path of a checkpoint, or delete the file and count all files again."
            got = Description(f"invalid JSON ({error})")
            raise InvalidInput(shown, "the checkpoint", "be JSON", got, hint=hint) from None
        check_keys(shown, "the document", document, required=("format", "version", "counts", "files"))
        if document["format"] != _FORMAT or document["version"] != _VERSION:
            stored = (document["format"], document["version"])
            hint = "Pass the path of a checkpoint, or delete the file and count all files again."
            raise UnknownSpec(shown, "format and version", f"be {_FORMAT!r} and {_VERSION}", stored, hint=hint)
        files = {
            name: _read_file(shown, entry)
            for name, entry in check_keys(
                shown, "files", document["files"], required=(), optional=tuple(document["files"])
            ).items()
        }
        counts = document["counts"]
        is_grouped = isinstance(counts, dict) and "groups" in counts
        kind: Any = GroupedAggregate if is_grouped else Aggregate
        return cls(kind.from_json(json.dumps(counts)), files)


def _read_file(shown: str, entry: Any) -> _File:
    """Read the entry of a file."""
    check_keys(shown, "a file", entry, required=("bytes", "modified", "row_groups"))
    size, modified, groups = entry["bytes"], entry["modified"], entry["row_groups"]
    for name, number in (("bytes", size), ("modified", modified), ("row_groups", 0 if groups is None else groups)):
        if type(number) is not int:
            raise InvalidInput(shown, name, "be an integer", number)
    return _File((size, modified), groups)


def _name(source: Source) -> str:
    """Return the absolute path of a source."""
    return str(Path(source.shown).resolve())


def state_of(source: Source) -> State:
    """Return the state of a file; a pipe always has the same state, because reading changes its modification time."""
    if source.pipe is not None:
        return 0, 0
    try:
        status = Path(source.shown).stat()
    except OSError as error:
        raise unreadable(source.shown, error) from error
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (0, 0)
