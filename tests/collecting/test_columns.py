"""Reports as a column of pandas, polars or Arrow: one element per report, for every mechanism."""

from __future__ import annotations

import io
import itertools
import json
import math
import re
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.collecting import read_reports, write_reports
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism, reports_to_column
from support import ROOT
from support.reference import refusal

Array = npt.NDArray[Any]

STORED = json.loads((ROOT / "tests" / "stored" / "mechanisms.json").read_text())
EVERY = [sf.mechanism_from_spec(entry["spec"]) for entry in STORED]
LIKE: dict[str, Any] = {"pandas": pd.Index([0]), "polars": pl.Series([0]), "pyarrow": pa.array([0])}
INDEX = sf.mechanisms.RandomizedResponse(sf.Domain(["a", "b", "c"]), 1)
BITMAP = sf.mechanisms.UnaryEncoding(sf.Domain.range(12), 1)
#: What some reader of CSV may take for a number, a truth value, a date or nothing.
NUMERIC = re.compile(r"[0-9]+(e[0-9]+)?")

every_mechanism = pytest.mark.parametrize(
    "mechanism", EVERY, ids=[f"{number}-{mechanism.name}" for number, mechanism in enumerate(EVERY)]
)
every_library = pytest.mark.parametrize("library", LIKE)


def stacked(mechanism: Mechanism, reports: Iterable[int]) -> Array:
    rows = [mechanism.report_format.encode(report) for report in reports]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), *mechanism.report_format.shape)


def some_reports(mechanism: Mechanism) -> Array:
    """Return all reports if they are few, else those of the sampler."""
    if mechanism.bits <= 16 and mechanism.outputs <= 500:
        reports = list(mechanism.reports())
        form = mechanism.report_format
        return stacked(mechanism, reports) if form.shape else np.array(reports, form.dtype)
    values = np.arange(200) * 7919 % len(mechanism.domain)
    return np.asarray(sf.privatize(mechanism, mechanism.domain.decode(values), sf.InsecureSeeded(1)))


def deceptive_reports(mechanism: Mechanism) -> Array:
    """Return only reports whose digits alone would be read as a number."""
    reports = some_reports(mechanism)
    if not mechanism.report_format.shape:
        return reports
    if mechanism.name == "unary-encoding" and mechanism.bits > 8:
        width = mechanism.report_format.shape[0]
        digits = [ending.rjust(2 * width, "0") for ending in ("", "01", "1e10", "1e05", "9910", "12345600")]
        reports = np.array([list(bytes.fromhex(row)) for row in digits], np.uint8)
    return reports[[bool(NUMERIC.fullmatch(row.tobytes().hex())) for row in reports]]


def through_pandas_csv(column: Any) -> Any:
    text = pd.DataFrame({"report": column, "person": range(len(column))}).to_csv(index=False)
    return pd.read_csv(io.StringIO(text)).report


def through_pandas_csv_python(column: Any) -> Any:
    text = pd.DataFrame({"report": column, "person": range(len(column))}).to_csv(index=False)
    return pd.read_csv(io.StringIO(text), engine="python").report


def through_pandas_csv_arrow(column: Any) -> Any:
    text = pd.DataFrame({"report": column, "person": range(len(column))}).to_csv(index=False)
    return pd.read_csv(io.BytesIO(text.encode()), engine="pyarrow", dtype_backend="pyarrow").report


def through_pandas_parquet(column: Any) -> Any:
    file = io.BytesIO()
    pd.DataFrame({"report": column}).to_parquet(file)
    return pd.read_parquet(file).report


def through_polars_csv(column: Any) -> Any:
    return pl.read_csv(pl.DataFrame({"report": column}).write_csv().encode(), try_parse_dates=True)["report"]


def through_polars_parquet(column: Any) -> Any:
    file = io.BytesIO()
    pl.DataFrame({"report": column}).write_parquet(file)
    file.seek(0)
    return pl.read_parquet(file)["report"]


def through_arrow_csv(column: Any) -> Any:
    file = io.BytesIO()
    arrow_csv.write_csv(pa.table({"report": column}), file)
    return arrow_csv.read_csv(io.BytesIO(file.getvalue()))["report"]


def through_arrow_parquet(column: Any) -> Any:
    file = io.BytesIO()
    pq.write_table(pa.table({"report": column}), file)
    return pq.read_table(file)["report"]


TRIPS: dict[str, list[Callable[[Any], Any]]] = {
    "pandas": [through_pandas_csv, through_pandas_csv_python, through_pandas_csv_arrow, through_pandas_parquet],
    "polars": [through_polars_csv, through_polars_parquet],
    "pyarrow": [through_arrow_csv, through_arrow_parquet],
}


# -- every mechanism -----------------------------------------------------------------------------------------


@every_mechanism
@every_library
def test_a_column_comes_back_from_csv_and_parquet(mechanism: Mechanism, library: str) -> None:
    for reports in (some_reports(mechanism), deceptive_reports(mechanism)):
        if not len(reports):
            continue
        column = reports_to_column(reports, LIKE[library])
        assert type(column).__module__.startswith(library)
        assert len(column) == len(reports)
        assert np.array_equal(mechanism.report_format.validate(column), reports)
        for trip in TRIPS[library]:
            again = mechanism.report_format.validate(trip(column))
            assert again.dtype == mechanism.report_format.dtype, trip
            assert np.array_equal(again, reports), trip


@pytest.mark.slow
def test_there_are_reports_whose_digits_look_like_numbers() -> None:
    """The round trips above would prove nothing without them, and plain digits do fail."""
    assert sum(len(deceptive_reports(m)) > 0 for m in EVERY if m.report_format.shape) > 15
    wide = sf.mechanisms.UnaryEncoding(sf.Domain.range(70), 1)
    plain = pd.Series([row.tobytes().hex() for row in deceptive_reports(wide)])
    assert through_pandas_csv(plain).dtype.kind == "f"
    assert len(deceptive_reports(wide)) >= 5


@every_mechanism
def test_groups_of_a_frame_are_counted_alike_whatever_the_mechanism(mechanism: Mechanism) -> None:
    labels = mechanism.domain.decode(np.arange(60) % len(mechanism.domain))
    values = pd.Series(labels, index=[f"p{i}" for i in range(60)])
    frame = pd.DataFrame({"sex": ["f", "m", "x"] * 20}, index=values.index)
    frame["report"] = sf.privatize(mechanism, values, sf.InsecureSeeded(1))
    expected = sf.privatize(mechanism, labels, sf.InsecureSeeded(1))
    by_loop = {name: sf.aggregate(mechanism, part) for name, part in frame.groupby("sex").report}
    groups = sf.aggregate_groups(mechanism, frame.report, frame.sex)
    assert list(groups) == ["f", "m", "x"]
    assert groups == by_loop == {name: sf.aggregate(mechanism, expected[i::3]) for i, name in enumerate("fmx")}
    assert sf.aggregate(mechanism, frame.report) == sf.aggregate(mechanism, expected)
    if mechanism.risk(100) < math.inf:
        assert set(sf.estimate_groups(mechanism, groups).groups) == {"f", "m", "x"}


@every_mechanism
def test_report_files_are_columns_for_every_library(mechanism: Mechanism, tmp_path: Path) -> None:
    reports = some_reports(mechanism)
    path = tmp_path / "reports.parquet"
    write_reports(mechanism, reports, path)
    for column in (pd.read_parquet(path).report, pl.read_parquet(path)["report"], pq.read_table(path)["report"]):
        assert np.array_equal(mechanism.report_format.validate(column), reports)
        copy = tmp_path / "copy.parquet"
        assert write_reports(mechanism, column, copy) == len(reports)
        assert np.array_equal(np.concatenate(list(read_reports(mechanism, copy))), reports)
        assert copy.read_bytes() == path.read_bytes()


# -- values in, reports out ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [INDEX, sf.mechanisms.UnaryEncoding(sf.Domain(["a", "b", "c"]), 1)])
def test_a_series_becomes_a_series_with_its_index(mechanism: Mechanism) -> None:
    values = pd.Series(["a", "c", "b"], index=["x", "y", "z"], name="answer")
    expected = sf.privatize(mechanism, values.tolist(), sf.InsecureSeeded(1))
    for given in (values, values.astype("category"), values.astype("string")):
        reports = sf.privatize(mechanism, given, sf.InsecureSeeded(1))
        assert isinstance(reports, pd.Series)
        assert reports.name == "report"
        assert reports.index.equals(values.index)
        assert np.array_equal(mechanism.report_format.validate(reports), expected)
    assert sf.privatize(mechanism, pd.Index(["a", "c", "b"]), sf.InsecureSeeded(1)).tolist() == reports.tolist()
    for given in (pa.array(["a", "c", "b"]), pa.chunked_array([["a"], ["c", "b"]])):
        column = sf.privatize(mechanism, given, sf.InsecureSeeded(1))
        assert isinstance(column, pa.Array)
        assert np.array_equal(mechanism.report_format.validate(column), expected)
    series = sf.privatize(mechanism, pl.Series("answer", ["a", "c", "b"]), sf.InsecureSeeded(1))
    assert isinstance(series, pl.Series)
    assert series.name == "report"
    assert np.array_equal(mechanism.report_format.validate(series), expected)
    for plain in (["a", "c", "b"], np.array(["a", "c", "b"])):
        assert isinstance(sf.privatize(mechanism, plain, sf.InsecureSeeded(1)), np.ndarray)
    out = np.empty((3, *mechanism.report_format.shape), mechanism.report_format.dtype)
    assert sf.privatize(mechanism, values, sf.InsecureSeeded(1), out=out) is out


def test_a_table_of_parts_becomes_one_column() -> None:
    product = sf.mechanisms.SubsetSelection(sf.Domain.product(S=["yes", "no"], U=sf.Domain.range(5)), 1)
    grid = sf.Domain.grid(latitude=(0, 10), longitude=(0, 10), rows=3, columns=3)
    points = {"latitude": [1.0, 9.0, 5.0], "longitude": [2.0, 5.0, 9.5]}
    parts = {"S": ["yes", "no", "no"], "U": [0, 4, 2]}
    for mechanism, columns in ((product, parts), (sf.mechanisms.UnaryEncoding(grid, 1), points)):
        expected = sf.privatize(mechanism, columns, sf.InsecureSeeded(1))
        assert isinstance(expected, np.ndarray)
        frame = pd.DataFrame(columns, index=[5, 6, 7])
        reports = sf.privatize(mechanism, frame, sf.InsecureSeeded(1))
        assert reports.index.tolist() == [5, 6, 7]
        others = [sf.privatize(mechanism, table(columns), sf.InsecureSeeded(1)) for table in (pl.DataFrame, pa.table)]
        for column in (reports, *others):
            assert np.array_equal(mechanism.report_format.validate(column), expected)


def test_the_elements_are_as_documented() -> None:
    reports = np.array([[0, 0], [0x1E, 0x08]], np.uint8)
    for like in LIKE.values():
        assert [str(element) for element in reports_to_column(reports, like)] == ["x0000", "x1e08"]
    assert reports_to_column(reports, pa.array([0])).type == pa.large_string()
    assert reports_to_column(np.array([2], np.uint32), LIKE["polars"]).dtype == pl.UInt32
    assert reports_to_column(np.array([2], np.uint32), LIKE["pandas"]).dtype == np.uint32


# -- other columns that hold reports ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([0, 2, 1], dtype="int64"),
        pd.Series([0, 2, 1], dtype="Int64"),
        pd.Series([0, 2, 1], dtype="UInt8"),
        pd.Series([0, 2, 1], dtype="int64[pyarrow]"),
        pd.Series([0, 2, 1], dtype=object),
        pd.Series([np.int64(0), np.uint8(2), 1], dtype=object),
        pd.Series(pd.arrays.SparseArray([0, 2, 1])),
        pd.Series(pd.arrays.SparseArray([0.0, 2.0, 1.0])),
        pd.Series([0, 2, 1], dtype="category"),
        pd.Series([0.0, 2.0, 1.0]),
        pd.Series([0, 2, None, 1]).dropna(),
        pd.Series([0, 2, None, 1], dtype="Int64").dropna(),
        pd.Index([0, 2, 1]),
        pl.Series([0, 2, None, 1]).drop_nulls(),
        pl.Series([0, 2, 1], dtype=pl.Int8),
        pa.array([0, 2, 1], pa.uint64()),
        pa.chunked_array([[0, 2], [1]]),
        pa.array([0, 2, 1]).dictionary_encode(),
        pa.array([7, 0, 2, 1]).slice(1),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', '')}",
)
def test_integers_of_any_type_are_indices(column: Any) -> None:
    assert INDEX.report_format.validate(column).tolist() == [0, 2, 1]
    assert INDEX.report_format.validate(column).dtype == np.uint32


STRINGS = ["x0000", "x1e08", "xff0f"]
BYTES = [b"\0\0", b"\x1e\x08", b"\xff\x0f"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(STRINGS),
        pd.Series(STRINGS, dtype=object),
        pd.Series(STRINGS, dtype="string"),
        pd.Series(STRINGS, dtype="string[python]"),
        pd.Series(STRINGS, dtype="string[pyarrow]"),
        pd.Series(STRINGS, dtype="category"),
        pd.Series([*STRINGS, None]).dropna(),
        pd.Series([text[1:] for text in STRINGS]),
        pd.Series(BYTES),
        pd.Series(BYTES, dtype=pd.ArrowDtype(pa.binary(2))),
        pd.Index(STRINGS),
        pl.Series(STRINGS),
        pl.Series(STRINGS, dtype=pl.Categorical),
        pl.Series(BYTES),
        pa.array(STRINGS),
        pa.array(["x0000", *STRINGS]).slice(1),
        pa.array(STRINGS, pa.string_view()),
        pa.array(STRINGS).dictionary_encode(),
        pa.chunked_array([STRINGS[:1], STRINGS[1:]]),
        pa.array(BYTES, pa.binary(2)),
        pa.array(BYTES, pa.binary()),
        pa.array(BYTES, pa.binary_view()),
        STRINGS,
        BYTES,
        np.array(STRINGS),
        np.array(STRINGS, dtype=object),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', getattr(column, 'type', ''))}",
)
def test_strings_and_bytes_of_any_type_are_bitmaps(column: Any) -> None:
    assert BITMAP.report_format.validate(column).tolist() == [[0, 0], [0x1E, 8], [0xFF, 15]]
    assert sf.aggregate(BITMAP, column).n == 3


@pytest.mark.parametrize("mechanism", [INDEX, BITMAP])
def test_columns_without_rows_and_columns_in_pieces(mechanism: Mechanism) -> None:
    empty = [pd.Series([]), pd.Series([], dtype="str"), pl.Series([]), pa.array([]), pa.chunked_array([], "int8"), []]
    for column in empty:
        assert sf.aggregate(mechanism, column).n == 0
    reports = some_reports(INDEX) if mechanism is INDEX else np.array([[1, 0], [2, 0], [4, 0]], np.uint8)
    pieces = [reports_to_column(reports[i : i + 1], LIKE["pandas"]) for i in range(3)]
    assert sf.aggregate(mechanism, iter(pieces)) == sf.aggregate(mechanism, reports)


# -- refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "column", "drop"),
    [
        (INDEX, pd.Series([0, None, 1]), "dropna()"),
        (INDEX, pd.Series([0, None, 1], dtype="Int64"), "dropna()"),
        (INDEX, pd.Series([0, None, 1], dtype="int64[pyarrow]"), "dropna()"),
        (INDEX, pl.Series([0, None, 1]), "drop_nulls()"),
        (INDEX, pa.array([0, None, 1]), "drop_null()"),
        (BITMAP, pd.Series(["x0000", None, "x0100"]), "dropna()"),
        (BITMAP, pd.Series(["x0000", float("nan"), "x0100"], dtype=object), "dropna()"),
        (BITMAP, np.array(["x0000", None], dtype=object), "dropna()"),
        (BITMAP, pl.Series(["x0000", None, "x0100"]), "drop_nulls()"),
        (BITMAP, pa.chunked_array([["x0000"], [None, "x0100"]]), "drop_null()"),
    ],
)
def test_a_missing_report_is_refused_with_its_row(mechanism: Mechanism, column: Any, drop: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(drop)) as caught:
        sf.aggregate(mechanism, column)
    assert caught.value.row == 1
    assert "the report in row 1 must not be missing" in str(caught.value)


def object_series(elements: list[str]) -> Any:
    return pd.Series(elements, dtype=object)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("0x0000", "row 1 must be 'x' and 4 hex digits; got '0x0000'"),
        ("x00", "row 1 must be"),
        ("x1E08", "row 1 must be"),
        ("y1e08", "row 1 must be"),
        ("x1e0g", "row 1 must be"),
        ("x1e\u00e9", "row 1 must be"),
        ("x１e08", "row 1 must be"),
        ("0000", "row 1 must be"),
        ("", "row 1 must be"),
        ("x00ff", "row 1 must leave its last 4 bits zero"),
    ],
)
@pytest.mark.parametrize("kind", [pd.Series, object_series, pl.Series, pa.array, list])
def test_a_string_that_is_no_report_is_refused(kind: Callable[[list[str]], Any], wrong: str, message: str) -> None:
    assert message in refusal(sf.aggregate, BITMAP, kind(["x0000", wrong, "x0100"]))


@pytest.mark.parametrize(
    ("mechanism", "column", "message"),
    [
        (BITMAP, pd.Series([0, 1]), "the column must hold strings, 'x' and 4 hex digits each; got 'int64'"),
        (BITMAP, pl.Series([0.5]), "the column must hold strings"),
        (BITMAP, pa.array([True]), "the column must hold strings"),
        (BITMAP, pa.array([b"\0", b"\0\0"]), "row 0 must be 2 bytes"),
        (BITMAP, pd.Series(["x0000", 5]), "must"),
        (BITMAP, pd.DataFrame({"report": STRINGS}), "must be one column, not a table"),
        (BITMAP, pl.DataFrame({"report": STRINGS}), "must be one column, not a table"),
        (BITMAP, pa.table({"report": STRINGS}), "must be one column, not a table"),
        (INDEX, pd.Series(["0", "1"]), "the column must hold integers"),
        (INDEX, pl.Series(["0", "1"]), "the column must hold integers; got 'large_string'"),
        (INDEX, pd.Series([0, 0.5]), "row 1 must be a whole number; got 0.5"),
        (INDEX, pd.Series([0.0, 2.0**60]), "row 1 must be a whole number"),
        (INDEX, pd.Series([0, 3]), "row 1 must be in 0 … 2; got 3"),
        (INDEX, pd.Series([0, -1]), "row 1 must be in 0 … 2; got -1"),
        (INDEX, pd.Series([True, False]), "must hold integers"),
        (INDEX, pd.Series([True, False], dtype="boolean"), "must hold integers"),
        (INDEX, pd.to_datetime(pd.Series(["2020-01-01"])), "must hold integers"),
        (INDEX, pd.DataFrame({"report": [0]}), "must be one column, not a table"),
        (INDEX, pd.Series([0, 1]).astype("datetime64[ns]"), "the column must hold integers; got 'datetime64[ns]'"),
        (INDEX, pd.Series([0]).astype("timedelta64[ns]"), "the column must hold integers; got 'timedelta64[ns]'"),
        (INDEX, pd.Series(pd.to_datetime([0], utc=True)), "the column must hold integers; got 'datetime64[ns, UTC]'"),
        (INDEX, pd.DatetimeIndex([0]), "the column must hold integers"),
        (INDEX, pd.Series([0]).astype("datetime64[ns]").astype("category"), "the column must hold integers"),
        (INDEX, pd.Series([0], dtype="timestamp[ns][pyarrow]"), "the column must hold integers"),
        (INDEX, pd.Series([0], dtype="duration[ns][pyarrow]"), "the column must hold integers"),
        (INDEX, pl.Series([0], dtype=pl.Datetime), "the column must hold integers"),
        (INDEX, pl.Series([0], dtype=pl.Duration), "the column must hold integers"),
        (INDEX, pa.array([0], pa.date32()), "the column must hold integers"),
        (INDEX, np.array([0], "M8[ns]"), "must hold integers"),
        (INDEX, pd.Series([Decimal(1)]), "must hold integers"),
        (INDEX, pd.Series([Decimal(1)], dtype=pd.ArrowDtype(pa.decimal128(5))), "the column must hold integers"),
        (INDEX, pa.array([Decimal(1)]), "the column must hold integers"),
        (INDEX, pl.Series([Decimal(1)]), "the column must hold integers"),
        (INDEX, pd.Series(pd.arrays.SparseArray([0, 3])), "row 1 must be in 0 … 2; got 3"),
        (INDEX, pd.Series(pd.arrays.SparseArray([0, np.nan])), "row 1 must not be missing"),
        (INDEX, pd.Series(pd.arrays.SparseArray([True, False])), "must hold integers"),
        (INDEX, pd.Series([True, np.int64(1)], dtype=object), "must hold integers"),
        (INDEX, pd.Series([np.bool_(True)], dtype=object), "must hold integers"),
        (INDEX, pd.Series([True], dtype="bool[pyarrow]"), "must hold integers"),
        (BITMAP, pd.Series(pd.arrays.SparseArray([0, 1])), "the column must hold strings"),
        (BITMAP, pd.Series([0]).astype("datetime64[ns]"), "the column must hold strings"),
    ],
)
def test_a_column_of_something_else_is_refused(mechanism: Mechanism, column: Any, message: str) -> None:
    assert message in refusal(sf.aggregate, mechanism, column)


def test_pandas_does_without_pyarrow() -> None:
    strings = pd.Series(STRINGS, dtype=object)
    with mock.patch.dict(sys.modules, {"pyarrow": None}):
        assert BITMAP.report_format.validate(strings).tolist() == [[0, 0], [0x1E, 8], [0xFF, 15]]
        assert INDEX.report_format.validate(pd.Series([0, 1], dtype="Int64")).tolist() == [0, 1]
        column = reports_to_column(np.array([[1, 2]], np.uint8), strings.iloc[:1])
    assert column.tolist() == ["x0102"]


# -- groups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        (["b", "a", "b", "a"], ["a", "b"]),
        ([2, 1, 2, 1], [1, 2]),
        (np.array([2.5, 1.0, 2.5, 1.0]), [1.0, 2.5]),
        (np.array([True, False, True, False]), [False, True]),
        ([("f", 2), ("f", 1), ("f", 2), ("f", 1)], [("f", 1), ("f", 2)]),
        ([1, "a", 1, "a"], [1, "a"]),
        (pd.Series(["b", "a", "b", "a"]), ["a", "b"]),
        (pd.Categorical(["b", "a", "b", "a"], categories=["c", "b", "a"]), ["b", "a"]),
        (pl.Series(["b", "a", "b", "a"]), ["a", "b"]),
        (pa.array([2, 1, 2, 1]), [1, 2]),
    ],
)
def test_groups_may_be_any_column(by: Any, groups: list[Any]) -> None:
    counts = sf.aggregate_groups(INDEX, [0, 1, 2, 1], by)
    assert list(counts) == groups
    sizes = {tuple(aggregate.counts.tolist()) for aggregate in counts.values()}
    assert sizes == {(1, 0, 1), (0, 2, 0)}
    assert sum((aggregate.n for aggregate in counts.values()), 0) == 4


def test_groups_that_do_not_fit_are_refused() -> None:
    assert "one group per report, 3 in total; got 2" in refusal(sf.aggregate_groups, INDEX, [0, 1, 2], ["a", "b"])
    for missing in (["a", None, "b"], pd.Series(["a", None, "b"]), np.array([1, np.nan, 2]), pl.Series([1, None, 2])):
        assert "the group in row 1 must not be missing" in refusal(sf.aggregate_groups, INDEX, [0, 1, 2], missing)
    reports, by = pd.Series([0, 1, 2]), pd.Series(["a", "b", "b"], index=[2, 1, 0])
    assert "by must have the index of the reports" in refusal(sf.aggregate_groups, INDEX, reports, by)
    assert "every group must be" in refusal(sf.aggregate_groups, INDEX, [0], [["a"]])
    assert "row 1 must be in" in refusal(sf.aggregate_groups, INDEX, [0, 3], ["a", "b"])
    assert sf.aggregate_groups(INDEX, [], []) == {}


def test_many_groups_and_all_their_reports_are_counted() -> None:
    mechanism = sf.mechanisms.SubsetSelection(sf.Domain.range(9), 1)
    values = np.arange(3000) % 9
    reports = sf.privatize(mechanism, values, sf.InsecureSeeded(1))
    by = values * 7919 % 1000
    counts = sf.aggregate_groups(mechanism, reports, by)
    for group, aggregate in itertools.islice(counts.items(), 9):
        assert aggregate == sf.aggregate(mechanism, reports[by == group])
    total = sum(aggregate.n for aggregate in counts.values())
    assert total == 3000
