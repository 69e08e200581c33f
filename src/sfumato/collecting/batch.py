"""The compact binary batch: a header that names the mechanism, then the reports as consecutive bits.

    offset  bytes  content
         0      4  "SFUM"
         4      1  version, 1
         5      3  zero
         8     32  SHA-256 of the mechanism's canonical spec
        40      8  number of reports n, little-endian
        48      …  n·w bits, w = max(bits, 1): report i is bits i·w … (i+1)·w - 1, little-endian; then zero bits to a
                   whole byte

Equal reports give equal batches, and decoding is strict: it rejects everything that the encoder would not write. A
report takes at least one bit, even if the mechanism has a single output, so the length of a batch bounds its number of
reports. The same bytes are a file (``.sfb``), which is read and written in pieces.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from sfumato._core import quantity
from sfumato.collecting.hashes import check_origin, wrong_mechanism
from sfumato.errors import Description, InvalidInput, UnknownSpec
from sfumato.mechanisms import Mechanism

__all__ = ["HEADER_BYTES", "MAGIC", "batch_header", "decode_batch", "encode_batch", "read_batch", "write_batch"]

MAGIC = b"SFUM"
_VERSION = 1
HEADER_BYTES = 48
_COUNT_OFFSET = 40


def encode_batch(mechanism: Mechanism, reports: Any) -> bytes:
    """Encode reports as a binary batch, the compact format of ``.sfb`` files and of submissions to a collector.

    Parameters
    ----------
    mechanism
        Mechanism that produced the reports.
    reports
        An array, a column of pandas, polars or Arrow, or an iterator of such pieces. Every report is checked.

    Returns
    -------
    bytes
        A header of 48 bytes with the hash of the mechanism and the number of reports, then the reports as consecutive
        bits. Equal reports give equal batches.

    Examples
    --------
    >>> import sfumato as sf
    >>> from sfumato.collecting import decode_batch, encode_batch
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> data = encode_batch(mechanism, [0, 1, 1])
    >>> len(data), decode_batch(mechanism, data)
    (49, array([0, 1, 1], dtype=uint32))
    """
    check_origin(mechanism, reports, "a batch")
    file = io.BytesIO()
    write_batch(mechanism, file, mechanism.report_format.validated_pieces(reports, "a batch"))
    return file.getvalue()


def decode_batch(mechanism: Mechanism, data: bytes) -> npt.NDArray[Any]:
    """Return the reports of a binary batch.

    Parameters
    ----------
    mechanism
        Mechanism that produced the reports.
    data
        Batch that :func:`encode_batch` returned, or the content of a ``.sfb`` file.

    Returns
    -------
    numpy.ndarray
        The reports in their original order: unsigned integers, or one row of bytes per report.

    Raises
    ------
    InvalidInput
        If the batch is damaged, has reports of another mechanism, or has an invalid report.

    Examples
    --------
    >>> import sfumato as sf
    >>> from sfumato.collecting import decode_batch, encode_batch
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), epsilon=1)
    >>> decode_batch(mechanism, encode_batch(mechanism, [1, 0]))
    array([1, 0], dtype=uint32)
    """
    pieces = list(read_batch(mechanism, io.BytesIO(data), len(data)))
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate([np.empty((0, *mechanism.report_format.shape), mechanism.report_format.dtype), *pieces])


def write_batch(mechanism: Mechanism, file: BinaryIO, pieces: Iterable[npt.NDArray[Any]]) -> int:
    """Write checked reports to a seekable file, and return their number.

    All pieces except the last must have a length that is a multiple of 8. The number of reports is written to the
    header last.
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
    mechanism: Mechanism, file: BinaryIO, length: int | None, subject: str = "a batch", first_row: int = 0
) -> Iterator[npt.NDArray[Any]]:
    """Yield the reports of a batch of ``length`` bytes in pieces, after checking its header and length.

    Messages number the reports from ``first_row``.
    A pipe has no length in advance (None). It must then end with the batch, which is checked after the last piece.
    """
    count = _read_header(mechanism, file.read(HEADER_BYTES), subject)
    width = _width(mechanism)
    size = HEADER_BYTES + -(-count * width // 8)

    def must() -> str:
        return f"be {quantity(size, 'byte')} for {quantity(count, 'report')}"

    if length is not None and length != size:
        raise InvalidInput(subject, "its length", must(), Description(quantity(length, "byte")))
    rows = mechanism.report_format.piece_rows
    for start in range(0, count, rows):
        piece = np.empty((min(rows, count - start), *mechanism.report_format.shape), mechanism.report_format.dtype)
        packed = np.frombuffer(_read_exactly(file, -(-len(piece) * width // 8), subject, must), np.uint8)
        _unpack(packed, width, piece)
        used = len(piece) * width % 8
        if used and packed[-1] >> used:
            raise InvalidInput(subject, "the bits after the last report", "be zero", int(packed[-1]))
        yield mechanism.report_format.validate(piece, subject, first_row + start)
    if file.read(1):
        raise InvalidInput(subject, "its length", must(), Description("more bytes"))


def batch_header(mechanism: Mechanism, count: int) -> bytes:
    """Return the header of a batch with ``count`` reports."""
    return MAGIC + bytes([_VERSION, 0, 0, 0]) + bytes.fromhex(mechanism.hash) + count.to_bytes(8, "little")


def _read_header(mechanism: Mechanism, header: bytes, subject: str) -> int:
    """Check a header, and return the number of reports."""
    if header[:4] != MAGIC:
        raise InvalidInput(subject, "its first four bytes", f"be {MAGIC!r}", header[:4])
    if len(header) < HEADER_BYTES:
        got = Description(quantity(len(header), "byte"))
        raise InvalidInput(subject, "its length", f"be at least {HEADER_BYTES} bytes", got)
    if header[4] != _VERSION:
        hint = (
            "A later version of Sfumato wrote the batch, or the batch is damaged. Upgrade Sfumato, or write it again."
        )
        raise UnknownSpec(subject, "its format version", f"be {_VERSION}", header[4], hint=hint)
    if header[5:8] != bytes(3):
        raise InvalidInput(subject, "bytes 5 to 7", "be zero", header[5:8])
    if header[8:40].hex() != mechanism.hash:
        raise wrong_mechanism(subject, "its mechanism hash", mechanism.hash, header[8:40].hex())
    return int.from_bytes(header[_COUNT_OFFSET:], "little")


def _read_exactly(file: BinaryIO, size: int, subject: str, must: Callable[[], str]) -> bytes:
    """Read ``size`` bytes, or raise InvalidInput."""
    data = file.read(size)
    if len(data) != size:
        raise InvalidInput(
            subject, "its length", must(), Description(f"at least {quantity(size - len(data), 'byte')} fewer")
        )
    return data


def _width(mechanism: Mechanism) -> int:
    """Return the number of bits per report in a batch."""
    return max(mechanism.bits, 1)


def _pack(reports: npt.NDArray[Any], width: int) -> bytes:
    """Return reports as consecutive bits."""
    rows = _as_bytes(reports)
    if width == 8 * rows.shape[1]:
        return rows.tobytes()
    return np.packbits(np.unpackbits(rows, axis=1, count=width, bitorder="little"), bitorder="little").tobytes()


def _as_bytes(reports: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return each report as a row of bytes, least significant first."""
    little = np.ascontiguousarray(reports, reports.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(len(reports), -1)


def _unpack(packed: npt.NDArray[np.uint8], width: int, into: npt.NDArray[Any]) -> None:
    """Read consecutive bits into an array of reports."""
    if width < 8 and into.ndim == 1:
        _unpack_short(packed, width, into)
        return
    row_bytes = into.itemsize * (into.shape[1] if into.ndim > 1 else 1)
    rows = np.zeros((len(into), row_bytes), np.uint8)
    bits = np.unpackbits(packed, count=len(into) * width, bitorder="little").reshape(len(into), width)
    rows[:, : -(-width // 8)] = np.packbits(bits, axis=1, bitorder="little")
    into[...] = rows.view(into.dtype.newbyteorder("<")).reshape(into.shape)


def _unpack_short(packed: npt.NDArray[np.uint8], width: int, into: npt.NDArray[Any]) -> None:
    """Read reports of fewer than 8 bits: eight of them have ``width`` bytes, which are one integer of 64 bits.

    This takes a third of the time of unpacking single bits, for a batch of 1,000 reports.
    """
    words = np.zeros((-(-len(into) // 8), 8), np.uint8)
    whole = len(packed) // width
    words[:whole, :width] = packed[: whole * width].reshape(whole, width)
    words[whole:, : len(packed) - whole * width] = packed[whole * width :]
    shifts = np.arange(0, 8 * width, width, dtype=np.uint64)
    reports = (words.view("<u8") >> shifts) & np.uint64((1 << width) - 1)
    into[...] = reports.reshape(-1)[: len(into)]
