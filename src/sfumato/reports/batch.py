"""The compact binary batch: a header that names the mechanism, then the reports, bit after bit.

    offset  bytes  content
         0      4  "SFUM"
         4      1  version, 1
         5      3  zero
         8     32  SHA-256 of the mechanism's canonical spec
        40      8  number of reports n, little-endian
        48      …  n·bits bits: report i is bits i·bits … (i+1)·bits - 1, little-endian; then zero bits to a whole byte

There is one batch for given reports, and decoding is strict: whatever the encoder would not have written is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.reports.validity import check_reports

__all__ = ["HEADER_BYTES", "decode_batch", "encode_batch"]

_MAGIC = b"SFUM\x01\x00\x00\x00"
HEADER_BYTES = 48
#: Reports are packed in pieces of a multiple of 8, so that each piece ends on a whole byte.
_PIECE = 2**16


def encode_batch(mechanism: Mechanism, reports: Any) -> bytes:
    """The batch of these reports."""
    array = check_reports(mechanism, reports, "a batch")
    header = _MAGIC + bytes.fromhex(mechanism.hash) + len(array).to_bytes(8, "little")
    pieces = [_pack(array[i : i + _PIECE], mechanism.bits) for i in range(0, len(array), _PIECE)]
    return b"".join([header, *pieces])


def decode_batch(mechanism: Mechanism, data: bytes) -> npt.NDArray[Any]:
    """The reports of a batch, or InvalidInput with the reason."""
    if len(data) < HEADER_BYTES:
        raise InvalidInput("a batch", "its length", f"be at least {HEADER_BYTES} bytes", len(data))
    if data[:8] != _MAGIC:
        raise InvalidInput("a batch", "its first bytes", f"be {_MAGIC!r}", data[:8])
    if data[8:40].hex() != mechanism.hash:
        raise InvalidInput("a batch", "its mechanism", f"be {mechanism.hash}", data[8:40].hex())
    count = int.from_bytes(data[40:48], "little")
    wanted = HEADER_BYTES + -(-count * mechanism.bits // 8)
    if len(data) != wanted:
        raise InvalidInput("a batch", "its length", f"be {wanted} bytes for {count} reports", f"{len(data)} bytes")
    array = np.empty((count, *mechanism.report_shape), mechanism.report_dtype)
    payload = np.frombuffer(data, np.uint8, offset=HEADER_BYTES)
    step = _PIECE * mechanism.bits // 8
    for i, start in enumerate(range(0, count, _PIECE)):
        piece = array[start : start + _PIECE]
        _unpack(payload[i * step : (i + 1) * step], mechanism.bits, piece)
    used = count * mechanism.bits % 8
    if used and payload[-1] >> used:
        raise InvalidInput("a batch", "the bits after the last report", "be zero", int(payload[-1]))
    return check_reports(mechanism, array, "a batch")


def _pack(reports: npt.NDArray[Any], bits: int) -> bytes:
    if bits == 8 * reports.itemsize * (reports.shape[1] if reports.ndim > 1 else 1):
        return reports.tobytes()
    rows = reports.reshape(len(reports), -1).view(np.uint8).reshape(len(reports), -1)
    return np.packbits(np.unpackbits(rows, axis=1, count=bits, bitorder="little"), bitorder="little").tobytes()


def _unpack(packed: npt.NDArray[np.uint8], bits: int, into: npt.NDArray[Any]) -> None:
    flat = np.unpackbits(packed, count=len(into) * bits, bitorder="little").reshape(len(into), bits)
    width = into.itemsize * (into.shape[1] if into.ndim > 1 else 1)
    rows = np.zeros((len(into), width), np.uint8)
    packed_rows = np.packbits(flat, axis=1, bitorder="little")
    rows[:, : packed_rows.shape[1]] = packed_rows
    into[...] = rows.view(into.dtype).reshape(into.shape)
