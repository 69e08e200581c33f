"""What was counted so far, and of which files: a document that is replaced whole, so it is never half right."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato._core import check_keys, replacing
from sfumato.collecting.aggregates import Aggregate
from sfumato.collecting.sources import Source, unreadable
from sfumato.errors import InvalidInput, UnknownSpec, file_error
from sfumato.mechanisms import Mechanism

__all__ = ["Checkpoint", "State", "state_of"]

_FORMAT = "sfumato-checkpoint"
_VERSION = 1

#: A file's size and age, by which it is seen whether the file changed.
State = tuple[int, int]


@dataclass(frozen=True)
class _File:
    """How much of a file is counted: so many row groups, or None for all of it; and its state at that time."""

    state: State
    groups: int | None


@dataclass(frozen=True)
class Checkpoint:
    """Counts, and by their paths the files that they are of."""

    counts: Aggregate
    files: dict[str, _File]

    @classmethod
    def start(cls, mechanism: Mechanism) -> Checkpoint:
        """Nothing is counted yet."""
        return cls(Aggregate.empty(mechanism), {})

    @classmethod
    def read(cls, mechanism: Mechanism, path: Path | str, sources: Sequence[Source]) -> Checkpoint:
        """The checkpoint of a file, or a new one if there is no file; refuses one of another mechanism or other files.

        Files may be added to those it has, but none be left out: its counts are of them all. Only files can be gone on
        with: a pipe is there once, and a file named twice would be counted once.
        """
        names: set[str] = set()
        for source in sources:
            if source.pipe is not None:
                raise InvalidInput("resume", "reports", "be files, not a pipe", "-")
            if _name(source) in names:
                raise InvalidInput("resume", "reports", "name each file once", _name(source))
            names.add(_name(source))
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls.start(mechanism)
        except OSError as error:
            raise file_error(error, str(path), "the path", "be a readable checkpoint", str(error)) from error
        except UnicodeDecodeError as error:
            raise InvalidInput(str(path), "the path", "be a readable checkpoint", str(error)) from error
        checkpoint = cls.from_json(text, str(path))
        checkpoint.counts.check(mechanism)
        for name in checkpoint.files:
            if name not in names:
                raise InvalidInput(name, "the file", f"be named again, for its counts are in {path}", "others only")
        return checkpoint

    def done(self, source: Source, state: State) -> int | None:
        """How many row groups of a file in this state are counted already; None if all of it is."""
        known = self.files.get(_name(source)) if source.pipe is None else None
        if known is None:
            return 0
        if state != known.state:
            raise InvalidInput(source.shown, "the file", "be as it was when a part of it was counted", "a changed one")
        return known.groups

    def extended(self, counts: Aggregate, files_done: Sequence[tuple[Source, State, int | None]]) -> Checkpoint:
        """With more counts, after which so many row groups of these files are counted, or all of them.

        Refuses files that are no longer in the state that they were in before they were counted: nobody knows what was.
        """
        files = dict(self.files)
        for source, state, groups in files_done:
            if state_of(source) != state:
                raise InvalidInput(source.shown, "the file", "stay as it is while it is counted", "a changed one")
            if source.pipe is None:
                files[_name(source)] = _File(state, groups)
        return Checkpoint(self.counts.merge(counts), files)

    def write(self, path: Path | str) -> None:
        """Replace the file: a reader sees the old checkpoint or the new one."""
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
    def from_json(cls, text: str, shown: str) -> Checkpoint:
        """The inverse of what ``write`` writes."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise InvalidInput(shown, "the text", "be JSON", str(error)) from None
        check_keys(shown, "the document", document, required=("format", "version", "counts", "files"))
        if document["format"] != _FORMAT or document["version"] != _VERSION:
            got = (document["format"], document["version"])
            raise UnknownSpec(shown, "format and version", f"be {_FORMAT!r} and {_VERSION}", got)
        files = {
            name: _read_file(shown, entry)
            for name, entry in check_keys(
                shown, "files", document["files"], required=(), optional=tuple(document["files"])
            ).items()
        }
        return cls(Aggregate.from_json(json.dumps(document["counts"])), files)


def _read_file(shown: str, entry: Any) -> _File:
    check_keys(shown, "a file", entry, required=("bytes", "modified", "row_groups"))
    size, modified, groups = entry["bytes"], entry["modified"], entry["row_groups"]
    for name, number in (("bytes", size), ("modified", modified), ("row_groups", 0 if groups is None else groups)):
        if type(number) is not int:
            raise InvalidInput(shown, name, "be an integer", number)
    return _File((size, modified), groups)


def _name(source: Source) -> str:
    return str(Path(source.shown).resolve())


def state_of(source: Source) -> State:
    """The state of a file; a pipe, named or not, has but one, for it ages as it is read."""
    if source.pipe is not None:
        return 0, 0
    try:
        status = Path(source.shown).stat()
    except OSError as error:
        raise unreadable(source.shown, error) from error
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (0, 0)
