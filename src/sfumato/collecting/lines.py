"""Reports as text for pipes: a line that names the mechanism, one report per line, and a line with their number.

    sfumato-reports 1 <hash>      version, and SHA-256 of the mechanism's canonical spec
    <report>                      an index in plain digits, or the bytes of a report as two hexadecimal digits each
    end <n>                       number of reports

Equal reports give equal lines, and reading is strict: it rejects everything that the writer would not write. The last
line reveals truncation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sfumato._core import quantity
from sfumato.collecting.hashes import wrong_mechanism
from sfumato.errors import Description, InvalidInput, UnknownSpec
from sfumato.mechanisms import Mechanism

__all__ = ["BEGINNING", "read_lines", "write_lines"]

BEGINNING = b"sfumato-reports "
_VERSION = "1"
_END = b"end "
#: Maximum length of the header, of an index and of the last line.
_LONGEST_LINE = 128


def write_lines(mechanism: Mechanism, file: BinaryIO, pieces: Iterable[npt.NDArray[Any]]) -> int:
    """Write checked reports, and return their number."""
    file.write(_header(mechanism))
    count = 0
    for piece in pieces:
        file.write(b"".join(_lines(piece)))
        count += len(piece)
    file.write(_last_line(count))
    return count


def read_lines(mechanism: Mechanism, file: BinaryIO, subject: str) -> Iterator[npt.NDArray[Any]]:
    """Yield reports in pieces, and check the last line after the last piece."""
    _check_header(mechanism, file.readline(_LONGEST_LINE), subject)
    rows = mechanism.report_format.piece_rows
    longest = max(_LONGEST_LINE, 2 * sum(mechanism.report_format.shape) + 1)
    count = 0
    line = file.readline(longest)
    while line and not line.startswith(_END):
        lines: list[bytes] = []
        while line and not line.startswith(_END) and len(lines) < rows:
            lines.append(line)
            line = file.readline(longest)
        yield _reports(mechanism, lines, subject, 1 + count)
        count += len(lines)
    last = _last_line(count)
    if line != last or file.read(1):
        got = Description("more lines after it") if line == last else line
        must = f"be {last.decode().strip()!r}, the number of reports before it"
        hint = "Check that the program that writes the pipe finished without an error."
        raise InvalidInput(subject, "its last line", must, got, hint=hint)


def _header(mechanism: Mechanism) -> bytes:
    """Return the first line."""
    return BEGINNING + f"{_VERSION} {mechanism.hash}\n".encode()


def _last_line(count: int) -> bytes:
    """Return the last line."""
    return _END + f"{count}\n".encode()


def _check_header(mechanism: Mechanism, line: bytes, subject: str) -> None:
    """Raise an error unless the first line names the version and the mechanism."""
    version, _, mechanism_hash = line.removeprefix(BEGINNING).decode(errors="replace").partition(" ")
    if version != _VERSION:
        hint = "Write the reports again with this release of Sfumato."
        raise UnknownSpec(subject, "the format version in its first line", f"be {_VERSION}", version, hint=hint)
    if line != _header(mechanism):
        stored_hash = mechanism_hash.removesuffix("\n")
        raise wrong_mechanism(subject, "the mechanism hash in its first line", mechanism.hash, stored_hash)


def _lines(reports: npt.NDArray[Any]) -> list[bytes]:
    """Return reports as lines."""
    if reports.ndim == 1:
        return [b"%d\n" % index for index in reports.tolist()]
    return [row.tobytes().hex().encode() + b"\n" for row in reports]


def _reports(mechanism: Mechanism, lines: list[bytes], subject: str, first_row: int) -> npt.NDArray[Any]:
    """Read lines as checked reports."""
    width = sum(mechanism.report_format.shape)
    must = (
        f"be {quantity(width, 'byte')} in lower-case hexadecimal digits"
        if width
        else f"be in 0 … {mechanism.outputs - 1}, in plain digits"
    )
    reports = np.empty((len(lines), *mechanism.report_format.shape), mechanism.report_format.dtype)
    for row, line in enumerate(lines):
        try:
            reports[row] = np.frombuffer(bytes.fromhex(line.decode()), np.uint8) if width else int(line)
        except (ValueError, OverflowError):  # an invalid digit, a wrong width, or an int that is too large
            raise InvalidInput(subject, f"the report in row {first_row + row}", must, line) from None
    checked = mechanism.report_format.validate(reports, subject, first_row)
    for row, (line, canonical) in enumerate(zip(lines, _lines(checked), strict=True)):
        if line != canonical:  # spaces, signs, leading zeros, capitals, or a missing line end
            raise InvalidInput(subject, f"the report in row {first_row + row}", must, line)
    return checked
