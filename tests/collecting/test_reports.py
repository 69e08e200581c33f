"""Reports at rest: batches and files come back as they were, and every fault is refused with reason and row."""

from __future__ import annotations

import functools
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core.atomic_files import replacing
from sfumato.collecting.batch import decode_batch, encode_batch
from sfumato.collecting.files import read_reports, write_reports
from sfumato.device.values import read_values
from sfumato.errors import InvalidInput, MissingExtra, UnknownSpec
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.reports import base as formats
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from support import ROOT
from support.tables import write_table

VECTORS = ROOT / "vectors" / "reports"
SUFFIXES = [".parquet", ".pq", ".arrow", ".feather", ".ipc", ".sfb"]

Array = npt.NDArray[Any]


def rows_of_zeros(outputs: int) -> list[list[int]]:
    weights = [2**62 // outputs] * outputs
    weights[0] += 2**62 - sum(weights)
    return [weights, weights]


MECHANISMS: dict[str, Mechanism] = {
    "response, 3 bits": RandomizedResponse(sf.Domain.range(5), 1),
    "response, 8 bits": RandomizedResponse(sf.Domain.range(256), 1),
    "response, 0 bits": RandomizedResponse(sf.Domain.range(1), 1),
    "response, 20 bits": RandomizedResponse(sf.Domain.range(1_000_003), 1),
    "unary, 5 bits": UnaryEncoding(sf.Domain.range(5), 1),
    "unary, 64 bits": UnaryEncoding(sf.Domain.range(64), 1),
    "unary optimized, 70 bits": UnaryEncoding(sf.Domain.range(70), 1, optimized=True),
    "subset, 9 bits": SubsetSelection(sf.Domain.range(9), 1, 3),
    "subset, 16 bits": SubsetSelection(sf.Domain.range(16), 1),
    "hadamard, 3 bits": HadamardResponse(sf.Domain.range(7), 1, block_size=8),
    "hadamard, blocks": HadamardResponse(sf.Domain.range(7), 3, block_size=4, blocks=3),
    "hadamard, 33 bits": HadamardResponse(sf.Domain.range(9), 1, block_size=2**31, blocks=3),
    "cyclic, 11 bits": CyclicDesign(sf.Domain.range(1000), 1),
    "table, 3 outputs": TableMechanism(sf.Domain.range(2), rows_of_zeros(3)),
    "table, 0 bits": TableMechanism(sf.Domain.range(2), rows_of_zeros(1)),
}


@pytest.fixture(params=MECHANISMS, ids=lambda name: name.replace(", ", "-").replace(" ", "-"))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return MECHANISMS[request.param]


def valid_reports(mechanism: Mechanism, count: int, seed: int = 1) -> Array:
    """Any valid reports; their law does not matter here."""
    generator = np.random.default_rng(seed)
    size = len(mechanism.domain)
    if isinstance(mechanism, SubsetSelection):
        order = generator.random((count, size)).argsort(axis=1)
        return np.packbits(order < mechanism.size, axis=1, bitorder="little")
    if mechanism.report_format.shape:
        return np.packbits(generator.integers(0, 2, (count, size), np.uint8), axis=1, bitorder="little")
    return generator.integers(0, mechanism.outputs, count, dtype=mechanism.report_format.dtype)


def as_numbers(mechanism: Mechanism, reports: Array) -> list[int]:
    if mechanism.report_format.shape:
        return [int.from_bytes(row.tobytes(), "little") for row in reports]
    return [int(report) for report in reports]


def batch_by_hand(mechanism: Mechanism, numbers: list[int]) -> bytes:
    """The format as its page states it, by arithmetic on one large number."""
    width = max(mechanism.bits, 1)
    body = sum(number << i * width for i, number in enumerate(numbers))
    header = b"SFUM\x01\0\0\0" + bytes.fromhex(mechanism.hash) + len(numbers).to_bytes(8, "little")
    return header + body.to_bytes(-(-len(numbers) * width // 8), "little")


def refusal(run: Callable[..., object], *arguments: Any, kind: type[Exception] = InvalidInput) -> str:
    with pytest.raises(kind) as caught:
        run(*arguments)
    return str(caught.value)


# -- which arrays are reports --------------------------------------------------------------------------------


def test_what_the_sampler_draws_is_valid(mechanism: Mechanism) -> None:
    values = np.arange(200) % len(mechanism.domain)
    reports = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(1))
    assert mechanism.report_format.validate(reports) is reports


@pytest.mark.parametrize("values", [2, 3, 5, 16, 17, 64, 100, 128, 129, 256, 257])
def test_reports_of_every_width_are_packed_without_gaps(values: int) -> None:
    """1 to 9 bits per report, and every number of reports up to three groups of eight."""
    mechanism = RandomizedResponse(sf.Domain.range(values), 1)
    width = mechanism.bits
    for count in range(1, 26):
        reports = (np.arange(count) * 7919 + values - 1) % values
        batch = encode_batch(mechanism, reports)
        packed = int.from_bytes(batch[48:], "little")  # report i is in the bits from i * width
        assert [packed >> place * width & (1 << width) - 1 for place in range(count)] == reports.tolist()
        assert decode_batch(mechanism, batch).tolist() == reports.tolist()


def test_an_index_beyond_the_outputs_is_refused_with_its_row() -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    assert refusal(mechanism.report_format.validate, [0, 4, 5, 9]) == (
        "reports: the report in row 2 must be in 0 … 4; got 5"
    )
    assert "row 11 must be in 0 … 4; got -1" in refusal(mechanism.report_format.validate, [3, -1], "reports", 10)
    assert "got 18446744073709551615" in refusal(mechanism.report_format.validate, np.array([2**64 - 1], np.uint64))


def test_spare_bits_are_refused_with_their_row() -> None:
    mechanism = MECHANISMS["unary, 5 bits"]
    reports = np.array([[31], [32]], np.uint8)
    assert refusal(mechanism.report_format.validate, reports) == (
        "reports: the report in row 1 must leave its last 3 bits zero; got '20'"
    )


@pytest.mark.parametrize("wrong", [0b11, 0b1111, 0])
def test_a_subset_of_another_size_is_refused_with_its_row(wrong: int) -> None:
    mechanism = MECHANISMS["subset, 9 bits"]
    reports = np.array([[0b111, 0], [wrong, 0]], np.uint8)
    assert "row 1 must have exactly 3 bits set" in refusal(mechanism.report_format.validate, reports)


@pytest.mark.parametrize(
    "wrong",
    [
        [0.0, 1.0],
        [True, False],
        ["0"],
        [None],
        5,
        [[1, 2]],
        [[1], [2, 3]],
        [2**70],
        np.empty((5, 0), np.uint32),
        np.empty((0, 2), np.uint32),
        np.ma.masked_array([0, 1], mask=[False, True]),
        iter([1]),
        {0: 1},
        "01",
        b"01",
    ],
    ids=lambda wrong: type(wrong).__name__,
)
def test_what_is_no_array_of_indices_is_refused(wrong: Any) -> None:
    assert "the array must" in refusal(MECHANISMS["response, 3 bits"].report_format.validate, wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        [1, 2],
        [[1, 2]],
        np.zeros((2, 1), np.int64),
        np.zeros((2, 1), bool),
        np.zeros((2, 2, 1), np.uint8),
        np.zeros((2, 1, 1, 1), np.uint8),
        np.empty((3, 0), np.uint8),
    ],
    ids=repr,
)
def test_what_is_no_array_of_bitmaps_is_refused(wrong: Any) -> None:
    assert "the array must" in refusal(MECHANISMS["unary, 5 bits"].report_format.validate, wrong)


def test_no_reports_are_an_empty_array_of_the_right_type(mechanism: Mechanism) -> None:
    empty = mechanism.report_format.validate([])
    assert empty.shape == (0, *mechanism.report_format.shape)
    assert empty.dtype == mechanism.report_format.dtype


def test_any_type_of_integer_will_do() -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    for dtype in ("i1", "u1", ">i4", "i8", "u8"):
        checked = mechanism.report_format.validate(np.array([0, 4, 2], dtype))
        assert checked.dtype == np.uint32
        assert checked.tolist() == [0, 4, 2]


@given(data=st.data())
def test_pieces_are_the_reports_however_they_were_cut(data: st.DataObject) -> None:
    mechanism = MECHANISMS["unary, 64 bits"]
    with mock.patch.object(formats, "_PIECE_BYTES", 256):  # 32 reports
        check_pieces(mechanism, data)


def check_pieces(mechanism: Mechanism, data: st.DataObject) -> None:
    rows = mechanism.report_format.piece_rows
    lengths = data.draw(st.lists(st.sampled_from([0, 1, 7, rows - 1, rows, rows + 1]), max_size=4))
    reports = valid_reports(mechanism, sum(lengths))
    shared = np.empty((max(lengths, default=0), 8), np.uint8)

    def parts() -> Iterator[Array]:  # a giver that fills one array again and again
        start = 0
        for length in lengths:
            shared[:length] = reports[start : start + length]
            start += length
            yield shared[:length]

    pieces = [piece.copy() for piece in mechanism.report_format.validated_pieces(parts())]
    assert all(len(piece) == rows for piece in pieces[:-1])
    assert all(len(piece) > 0 for piece in pieces)
    assert np.array_equal(np.concatenate([reports[:0], *pieces]), reports)


def test_rows_count_on_from_piece_to_piece() -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    parts = iter([np.array([1, 2]), np.array([], int), np.array([3, 9])])
    assert "row 3 must" in refusal(lambda: list(mechanism.report_format.validated_pieces(parts)))


# -- batches -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_a_batch_is_what_the_page_says(mechanism: Mechanism, count: int) -> None:
    reports = valid_reports(mechanism, count)
    batch = encode_batch(mechanism, reports)
    assert batch == batch_by_hand(mechanism, as_numbers(mechanism, reports))
    assert np.array_equal(decode_batch(mechanism, batch), reports)


@pytest.mark.parametrize("count", [65_536 + 5, 2**19 + 5])
def test_long_batches_come_back(mechanism: Mechanism, count: int) -> None:
    if len(mechanism.domain) == 70:
        count = min(count, 3 * 2**18)
    reports = valid_reports(mechanism, count)
    decoded = decode_batch(mechanism, encode_batch(mechanism, reports))
    assert decoded.dtype == reports.dtype
    assert np.array_equal(decoded, reports)


@functools.cache
def sized(kind: type[Mechanism], size: int) -> Mechanism:
    domain = sf.Domain.range(size)
    if kind is TableMechanism:
        return TableMechanism(sf.Domain.range(2), rows_of_zeros(size))
    mechanism: Mechanism = kind(domain, 1)  # type: ignore[call-arg]
    return mechanism


@given(
    kind=st.sampled_from([RandomizedResponse, UnaryEncoding, SubsetSelection, HadamardResponse, TableMechanism]),
    size=st.integers(2, 40),
    count=st.integers(0, 40),
    seed=st.integers(0, 2**32),
    step=st.sampled_from([1, 2, -1]),
)
def test_batches_of_every_mechanism_and_size_come_back(
    kind: type[Mechanism], size: int, count: int, seed: int, step: int
) -> None:
    mechanism = sized(kind, size)
    reports = valid_reports(mechanism, count, seed)[::step]
    batch = encode_batch(mechanism, reports)
    assert batch == batch_by_hand(mechanism, as_numbers(mechanism, reports))
    decoded = decode_batch(mechanism, batch)
    assert decoded.dtype == mechanism.report_format.dtype
    assert np.array_equal(decoded, reports)


@given(data=st.binary(max_size=12), at=st.integers(0, 60))
def test_damage_is_refused_or_leaves_a_batch_that_is_canonical(data: bytes, at: int) -> None:
    mechanism = MECHANISMS["subset, 9 bits"]
    good = encode_batch(mechanism, valid_reports(mechanism, 9))
    damaged = good[:at] + data + good[at + len(data) :]
    try:
        reports = decode_batch(mechanism, damaged)
    except InvalidInput:
        return
    assert encode_batch(mechanism, reports) == damaged


def test_faults_of_a_batch_are_refused_with_reason_and_row() -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    good = encode_batch(mechanism, [0, 1, 2, 3, 4])
    other = RandomizedResponse(sf.Domain.range(5), 2)

    def says(data: bytes) -> str:
        return refusal(decode_batch, mechanism, data)

    assert says(good[:30]) == "a batch: its length must be at least 48 bytes; got 30 bytes"
    assert says(good[:-1]) == "a batch: its length must be 50 bytes for 5 reports; got 49 bytes"
    assert says(good + b"\0") == "a batch: its length must be 50 bytes for 5 reports; got 51 bytes"
    assert says(b"PAR1" + good[4:]) == "a batch: its first four bytes must be b'SFUM'; got b'PAR1'"
    assert f"its mechanism hash must be {other.hash[:12]}…; got {good[8:14].hex()}…. The reports were" in refusal(
        decode_batch, other, good
    )
    assert says(batch_by_hand(mechanism, [0, 1, 7])) == "a batch: the report in row 2 must be in 0 … 4; got 7"
    assert says(good[:-1] + b"\x80") == "a batch: the bits after the last report must be zero; got 128"
    version = good[:4] + b"\x02" + good[5:]
    assert refusal(decode_batch, mechanism, version, kind=UnknownSpec) == (
        "a batch: its format version must be 1; got 2. A later version of Sfumato wrote the batch, or the batch is "
        "damaged. Upgrade Sfumato, or write it again."
    )


def test_a_fault_far_in_has_its_row() -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    reports = np.zeros(mechanism.report_format.piece_rows + 100, np.uint32)
    batch = bytearray(encode_batch(mechanism, reports))
    row = mechanism.report_format.piece_rows + 48  # begins on a byte
    batch[48 + row * 3 // 8] = 7
    assert f"row {row} must be in 0 … 4; got 7" in refusal(decode_batch, mechanism, bytes(batch))


def test_a_header_that_promises_too_much_costs_no_memory() -> None:
    for name in ("response, 0 bits", "unary, 64 bits"):
        batch = batch_by_hand(MECHANISMS[name], [])
        swollen = batch[:40] + b"\xff" * 7 + b"\x0f"
        assert "its length must be" in refusal(decode_batch, MECHANISMS[name], swollen)


# -- published batches ---------------------------------------------------------------------------------------

REASONS = {
    "magic": "its first four bytes must",
    "short": "its length must be at least",
    "version": "its format version must",
    "reserved": "bytes 5 to 7 must",
    "mechanism": "its mechanism hash must",
    "length": "its length must be",
    "range": "must be in 0 …",
    "weight": "must have exactly",
    "part": "must be a report of one of the parts",
    "padding": "the bits after the last report must",
}


def vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", sorted(path.stem for path in VECTORS.glob("*.json")))
def test_published_batches_still_read_the_same(name: str) -> None:
    for vector in vectors(name):
        mechanism = sf.mechanism_from_spec(vector["spec"])
        assert mechanism.hash == vector["hash"]
        for case in vector["good"]:
            numbers = [int.from_bytes(bytes.fromhex(report), "little") for report in case["reports"]]
            decoded = decode_batch(mechanism, bytes.fromhex(case["batch"]))
            assert as_numbers(mechanism, decoded) == numbers
            assert encode_batch(mechanism, decoded).hex() == case["batch"]
        for case in vector["bad"]:
            message = refusal(decode_batch, mechanism, bytes.fromhex(case["batch"]))
            assert REASONS[case["reason"]] in message, (case, message)
            assert "row" not in case or f"row {case['row']} " in message, (case, message)


def test_every_mechanism_here_has_published_batches() -> None:
    assert {path.stem for path in VECTORS.glob("*.json")} >= {mechanism.name for mechanism in MECHANISMS.values()}


def test_the_page_names_every_reason() -> None:
    page = (ROOT / "docs" / "report-format.md").read_text(encoding="utf-8")
    table = page.partition("A reader rejects a batch for one of these reasons")[2].partition("##")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE) == list(REASONS)


# -- files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("count", [0, 1, 1001])
def test_files_come_back(mechanism: Mechanism, suffix: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / f"reports{suffix}"
    reports = valid_reports(mechanism, count)
    assert write_reports(mechanism, reports, path) == count
    pieces = list(read_reports(mechanism, path))
    assert all(len(piece) and piece.dtype == mechanism.report_format.dtype for piece in pieces)
    assert np.array_equal(np.concatenate([reports[:0], *pieces]), reports)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".sfb"])
def test_a_file_does_not_tell_how_its_reports_came(suffix: str, tmp_path: Path) -> None:
    mechanism = MECHANISMS["unary optimized, 70 bits"]
    rows = mechanism.report_format.piece_rows
    reports = valid_reports(mechanism, 2 * rows + 9)
    whole, cut = tmp_path / f"whole{suffix}", tmp_path / f"cut{suffix}"
    write_reports(mechanism, reports, whole)
    write_reports(mechanism, iter([reports[:5], reports[5 : rows + 11], reports[rows + 11 :]]), cut)
    assert whole.read_bytes() == cut.read_bytes()
    pieces = list(read_reports(mechanism, whole))
    assert max(map(len, pieces)) <= rows
    assert len(pieces) >= 3
    assert np.array_equal(np.concatenate(pieces), reports)


def test_a_batch_file_is_a_batch(tmp_path: Path) -> None:
    mechanism = MECHANISMS["subset, 9 bits"]
    reports = valid_reports(mechanism, 13)
    write_reports(mechanism, reports, tmp_path / "reports.sfb")
    assert (tmp_path / "reports.sfb").read_bytes() == encode_batch(mechanism, reports)


def test_column_files_are_what_the_page_says(tmp_path: Path) -> None:
    for name, kind in {
        "response, 3 bits": pa.uint32(),
        "hadamard, 33 bits": pa.uint64(),
        "unary optimized, 70 bits": pa.binary(9),
    }.items():
        mechanism = MECHANISMS[name]
        write_reports(mechanism, valid_reports(mechanism, 3), tmp_path / "reports.parquet")
        write_reports(mechanism, valid_reports(mechanism, 3), tmp_path / "reports.arrow")
        schemas = [pq.read_schema(tmp_path / "reports.parquet"), feather.read_table(tmp_path / "reports.arrow").schema]
        for schema in schemas:
            assert schema.names == ["report"]
            assert schema.field("report").type == kind
            assert not schema.field("report").nullable
            assert schema.metadata[b"sfumato.mechanism"] == mechanism.hash.encode()


def table_of(mechanism: Mechanism, reports: Any, kind: pa.DataType, name: str = "report") -> pa.Table:
    metadata = {"sfumato.mechanism": mechanism.hash}
    return pa.table({name: pa.array(reports, kind)}).replace_schema_metadata(metadata)


@pytest.fixture(params=[".parquet", ".arrow"])
def column_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"reports{request.param}"


def test_reports_may_stand_beside_other_columns(column_path: Path) -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    table = table_of(mechanism, [1, 4, 2], pa.uint32(), "answer").append_column("when", pa.array(["a", "b", "c"]))
    write_table(column_path, table)
    assert [piece.tolist() for piece in read_reports(mechanism, column_path, column="answer")] == [[1, 4, 2]]
    assert refusal(list, read_reports(mechanism, column_path)) == (
        f"{column_path}: the column must be one of 'answer', 'when'; got 'report'"
    )


def test_slices_of_columns_are_read_from_where_they_begin(column_path: Path) -> None:
    mechanism = MECHANISMS["unary optimized, 70 bits"]
    reports = valid_reports(mechanism, 20)
    write_table(column_path, table_of(mechanism, [row.tobytes() for row in reports], pa.binary(9)).slice(7, 6))
    assert np.array_equal(np.concatenate(list(read_reports(mechanism, column_path))), reports[7:13])


def test_a_foreign_file_in_one_piece_is_read_in_many(column_path: Path) -> None:
    mechanism = MECHANISMS["response, 8 bits"]
    reports = valid_reports(mechanism, 2 * mechanism.report_format.piece_rows + 3)
    write_table(column_path, table_of(mechanism, reports, pa.uint32()))
    pieces = list(read_reports(mechanism, column_path))
    assert max(map(len, pieces)) <= mechanism.report_format.piece_rows
    assert np.array_equal(np.concatenate(pieces), reports)


def test_another_mechanism_is_refused(column_path: Path) -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    write_reports(RandomizedResponse(sf.Domain.range(5), 2), [1, 2], column_path)
    message = refusal(list, read_reports(mechanism, column_path))
    assert (
        f"{column_path}: the mechanism hash in its metadata (sfumato.mechanism) must be {mechanism.hash[:12]}…"
        in message
    )
    write_table(column_path, pa.table({"report": pa.array([1], pa.uint32())}))
    assert "got none. The reports" in refusal(list, read_reports(mechanism, column_path))


@pytest.mark.parametrize("kind", [pa.int32(), pa.uint64(), pa.uint8(), pa.float64(), pa.string(), pa.binary(4)])
def test_another_type_of_column_is_refused(kind: pa.DataType, column_path: Path) -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    write_table(column_path, table_of(mechanism, pa.nulls(2, kind), kind))
    message = refusal(list, read_reports(mechanism, column_path))
    assert f"{column_path}: the column 'report' must have the type uint32; got {kind}" in message


def test_nulls_and_invalid_reports_are_refused_with_their_row(column_path: Path) -> None:
    mechanism = MECHANISMS["response, 8 bits"]
    rows = mechanism.report_format.piece_rows
    reports = valid_reports(mechanism, rows + 10).tolist()
    reports[rows + 4] = 256
    write_table(column_path, table_of(mechanism, reports, pa.uint32()))
    assert refusal(list, read_reports(mechanism, column_path)) == (  # rows of files are counted from 1
        f"{column_path}: the report in row {rows + 5} must be in 0 … 255; got 256"
    )
    reports[rows + 3] = None
    write_table(column_path, table_of(mechanism, reports, pa.uint32()))
    assert f"row {rows + 4} must not be null" in refusal(list, read_reports(mechanism, column_path))
    bitmap = MECHANISMS["unary, 5 bits"]
    write_table(column_path, table_of(bitmap, [b"\x01", b"\xff"], pa.binary(1)))
    assert "row 2 must leave its last 3 bits zero; got 'ff'" in refusal(list, read_reports(bitmap, column_path))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".sfb"])
def test_every_truncation_is_refused_and_names_the_file(suffix: str, tmp_path: Path) -> None:
    mechanism = MECHANISMS["response, 8 bits"]
    path = tmp_path / f"reports{suffix}"
    write_reports(mechanism, valid_reports(mechanism, 100), path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 7), len(whole) - 1]:
        path.write_bytes(whole[:length])
        assert refusal(list, read_reports(mechanism, path)).startswith(f"{path}: ")


def test_a_damaged_page_of_parquet_is_refused(tmp_path: Path) -> None:
    mechanism = MECHANISMS["unary, 64 bits"]
    path = tmp_path / "reports.parquet"
    write_reports(mechanism, valid_reports(mechanism, 1000), path)
    damaged = bytearray(path.read_bytes())
    damaged[4000] ^= 1
    path.write_bytes(damaged)
    assert "must be a complete file" in refusal(list, read_reports(mechanism, path))


def test_a_promise_of_more_rows_than_there_are_bytes_is_refused(tmp_path: Path) -> None:
    mechanism = MECHANISMS["response, 8 bits"]
    path = tmp_path / "reports.arrow"
    write_reports(mechanism, valid_reports(mechanism, 1000), path)
    whole, promise = path.read_bytes(), (1000).to_bytes(8, "little")
    places = [match.start() for match in re.finditer(re.escape(promise), whole)]
    assert places
    for place in places:
        path.write_bytes(whole[:place] + (1100).to_bytes(8, "little") + whole[place + 8 :])
        assert "must be a complete file" in refusal(list, read_reports(mechanism, path))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".sfb"])
def test_damage_is_refused_or_leaves_as_many_valid_reports(suffix: str, tmp_path: Path) -> None:
    mechanism = MECHANISMS["response, 8 bits"]
    path = tmp_path / f"reports{suffix}"
    write_reports(mechanism, valid_reports(mechanism, 100), path)
    whole = path.read_bytes()
    generator = np.random.default_rng(1)
    for place, byte in zip(generator.permutation(len(whole))[:700], generator.integers(0, 256, 700), strict=False):
        path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        try:
            pieces = list(read_reports(mechanism, path))
        except InvalidInput:
            continue
        assert sum(map(len, pieces)) == 100


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".sfb"])
def test_a_file_that_is_not_there_or_of_another_kind_is_refused(suffix: str, tmp_path: Path) -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    path = tmp_path / f"reports{suffix}"
    assert f"{path}: the path must be a readable file" in refusal(list, read_reports(mechanism, path))
    path.write_text("value\n1\n" * 20)
    assert str(path) in refusal(list, read_reports(mechanism, path))
    path.unlink()
    path.mkdir()
    assert str(path) in refusal(list, read_reports(mechanism, path))


def test_a_name_that_says_no_format_is_refused(tmp_path: Path) -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    must = "the file name must end in one of .parquet, .pq, .arrow, .feather, .ipc, .sfb; got '.csv'"
    assert must in refusal(list, read_reports(mechanism, tmp_path / "reports.csv"))
    assert must in refusal(write_reports, mechanism, [1], tmp_path / "reports.csv")


# -- whole or not at all -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".sfb"])
def test_an_error_leaves_the_old_file_and_nothing_else(suffix: str, tmp_path: Path) -> None:
    mechanism = MECHANISMS["response, 8 bits"]
    path = tmp_path / f"reports{suffix}"
    many = valid_reports(mechanism, mechanism.report_format.piece_rows + 1)
    for before in (None, b"as it was"):
        if before is not None:
            path.write_bytes(before)

        def failing() -> Iterator[Array]:
            yield many
            raise KeyError("the source broke")

        with pytest.raises(KeyError):
            write_reports(mechanism, failing(), path)
        message = refusal(write_reports, mechanism, iter([many, np.array([256])]), path)
        assert message == f"{path}: the report in row {len(many)} must be in 0 … 255; got 256"
        assert (path.read_bytes() if path.exists() else None) == before
        assert set(tmp_path.iterdir()) <= {path}


def test_a_file_is_new_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
        assert len(list(tmp_path.iterdir())) == 2
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as first:
        first.write(b"first")
        with replacing(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"


def test_links_are_followed_and_devices_refused(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"x")
    assert link.is_symlink()
    assert target.read_bytes() == b"x"
    for path in (tmp_path, Path(os.devnull)):
        assert "must be that of a regular file" in refusal(replacing(path).__enter__)
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    nowhere = tmp_path / "no" / "file"
    assert "must be writable; got the system error: No such file" in refusal(lambda: replacing(nowhere).__enter__())


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    with replacing(tmp_path / "file") as file:
        file.write(b"x")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_without_pyarrow_column_files_name_the_extra_and_batches_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = MECHANISMS["response, 3 bits"]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "reports.parquet"
    assert "pip install '.[arrow]'" in refusal(write_reports, mechanism, [1], path, kind=MissingExtra)
    assert not path.exists()
    assert "pip install '.[arrow]'" in refusal(list, read_reports(mechanism, path), kind=MissingExtra)
    assert "pip install '.[arrow]'" in refusal(list, read_values(path), kind=MissingExtra)
    write_reports(mechanism, [1, 2], tmp_path / "reports.sfb")
    assert next(read_reports(mechanism, tmp_path / "reports.sfb")).tolist() == [1, 2]
