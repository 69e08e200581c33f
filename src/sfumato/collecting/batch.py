"""The compact binary batch: a header that names the mechanism, then the reports, bit after bit.

    offset  bytes  content
         0      4  "SFUM"
         4      1  version, 1
         5      3  zero
         8     32  SHA-256 of the mechanism's canonical spec
        40      8  number of reports n, little-endian
        48      …  n·w bits, w = max(bits, 1): report i is bits i·w … (i+1)·w - 1, little-endian; then zero bits to a
                   whole byte

There is one batch for given reports, and decoding is strict: whatever the encoder would not have written is refused.
A report takes a bit even where the mechanism has a single output, so the length of a batch always bounds its reports.
The same bytes are a file (``.sfb``), which is read and written in pieces.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.mechanisms import Mechanism

__all__ = ["HEADER_BYTES", "MAGIC", "batch_header", "decode_batch", "encode_batch", "read_batch", "write_batch"]

MAGIC = b"SFUM"
_VERSION = 1
HEADER_BYTES = 48
_COUNT_OFFSET = 40


def encode_batch(mechanism: Mechanism, reports: Any) -> bytes:
    """The batch of these reports."""
    file = io.BytesIO()
    write_batch(mechanism, file, mechanism.report_format.validated_pieces(reports, "a batch"))
    return file.getvalue()


def decode_batch(mechanism: Mechanism, data: bytes) -> npt.NDArray[Any]:
    """The reports of a batch, or InvalidInput with the reason."""
    pieces = list(read_batch(mechanism, io.BytesIO(data), len(data)))
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate([np.empty((0, *mechanism.report_format.shape), mechanism.report_format.dtype), *pieces])


def write_batch(mechanism: Mechanism, file: BinaryIO, pieces: Iterable[npt.NDArray[Any]]) -> int:
    """Write checked reports to a seekable file, in pieces of which all but the last are a multiple of 8 long.

    The answer is how many there were; only then is it written to the header.
    """
    start = file.tell()
    file.write(batch_header(mechanism, 0))
    count = 0
    for piece in pieces:
        file.write(_pack(piece, _width(mechanism)))
        count += len(piece)
    end = file.tell()
    file.seek(start + _COUNT_OFFSET)
    file.write(count.to_bytes(8, "little"))
    file.seek(end)
    return count


def read_batch(
    mechanism: Mechanism, file: BinaryIO, length: int | None, subject: str = "a batch"
) -> Iterator[npt.NDArray[Any]]:
    """The reports of a batch of ``length`` bytes, in pieces; the header and the length are checked before the first.

    A pipe has no length beforehand (None): it must then end where the batch does, which is known after the last piece.
    """
    count = _read_header(mechanism, file.read(HEADER_BYTES), subject)
    width = _width(mechanism)
    size = HEADER_BYTES + -(-count * width // 8)
    must = f"be {size} bytes for {count} reports"
    if length is not None and length != size:
        raise InvalidInput(subject, "its length", must, f"{length} bytes")
    rows = mechanism.report_format.piece_rows
    for start in range(0, count, rows):
        piece = np.empty((min(rows, count - start), *mechanism.report_format.shape), mechanism.report_format.dtype)
        packed = np.frombuffer(_read_exactly(file, -(-len(piece) * width // 8), subject, must), np.uint8)
        _unpack(packed, width, piece)
        used = len(piece) * width % 8
        if used and packed[-1] >> used:
            raise InvalidInput(subject, "the bits after the last report", "be zero", int(packed[-1]))
        yield mechanism.report_format.validate(piece, subject, start)
    if file.read(1):
        raise InvalidInput(subject, "its length", must, "more")


def batch_header(mechanism: Mechanism, count: int) -> bytes:
    """What stands before so many reports."""
    return MAGIC + bytes([_VERSION, 0, 0, 0]) + bytes.fromhex(mechanism.hash) + count.to_bytes(8, "little")


def _read_header(mechanism: Mechanism, header: bytes, subject: str) -> int:
    if header[:4] != MAGIC:
        raise InvalidInput(subject, "its first four bytes", f"be {MAGIC!r}", header[:4])
    if len(header) < HEADER_BYTES:
        raise InvalidInput(subject, "its length", f"be at least {HEADER_BYTES} bytes", f"{len(header)} bytes")
    if header[4] != _VERSION:
        raise UnknownSpec(subject, "its version", f"be {_VERSION}", header[4])
    if header[5:8] != bytes(3):
        raise InvalidInput(subject, "bytes 5 to 7", "be zero", header[5:8])
    if header[8:40].hex() != mechanism.hash:
        raise InvalidInput(subject, "its mechanism", f"be {mechanism.hash}", header[8:40].hex())
    return int.from_bytes(header[_COUNT_OFFSET:], "little")


def _read_exactly(file: BinaryIO, size: int, subject: str, must: str) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise InvalidInput(subject, "its length", must, f"at least {size - len(data)} bytes fewer")
    return data


def _width(mechanism: Mechanism) -> int:
    return max(mechanism.bits, 1)


def _pack(reports: npt.NDArray[Any], width: int) -> bytes:
    rows = _as_bytes(reports)
    if width == 8 * rows.shape[1]:
        return rows.tobytes()
    return np.packbits(np.unpackbits(rows, axis=1, count=width, bitorder="little"), bitorder="little").tobytes()


def _as_bytes(reports: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    little = np.ascontiguousarray(reports, reports.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(len(reports), -1)


def _unpack(packed: npt.NDArray[np.uint8], width: int, into: npt.NDArray[Any]) -> None:
    row_bytes = into.itemsize * (into.shape[1] if into.ndim > 1 else 1)
    rows = np.zeros((len(into), row_bytes), np.uint8)
    bits = np.unpackbits(packed, count=len(into) * width, bitorder="little").reshape(len(into), width)
    rows[:, : -(-width // 8)] = np.packbits(bits, axis=1, bitorder="little")
    into[...] = rows.view(into.dtype.newbyteorder("<")).reshape(into.shape)
