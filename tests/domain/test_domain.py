from __future__ import annotations

import copy
import enum
import json
import math
import pickle
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tomli_w
from hypothesis import given, strategies as st

from sfumato.domain.domain import Domain
from sfumato.errors import InvalidInput, MissingExtra


def refusal(call: Callable[..., object], *args: object, **kwargs: object) -> str:
    """The message with which a call is refused."""
    with pytest.raises(InvalidInput) as caught:
        call(*args, **kwargs)
    return str(caught.value)


ANSWERS = Domain(["yes", "no", "unsure"])
MIAMI = Domain.grid(latitude=(25.6, 25.8), longitude=(-80.4, -80.1), rows=2, columns=3)
BOARD = Domain.grid(2, 3)
SURVEY = Domain.product(S=["yes", "no"], U=Domain.range(3))
DOMAINS = {
    "str": ANSWERS,
    "one": Domain(["only"]),
    "empty and NUL": Domain(["", "a", "a\0", "ä", "😀"]),
    "int": Domain([7, -3, 12]),
    "sparse int": Domain([10**15, -(10**15), 0]),
    "big int": Domain([2**64, -(2**70), 5]),
    "bool": Domain([True, False]),
    "float": Domain([0.5, -1.25, 3.0]),
    "range": Domain.range(5),
    "huge range": Domain.range(2**31),
    "bounded range": Domain.range(-3, 4),
    "bounded range that refuses": Domain.range(17, 91, out_of_range="refuse"),
    "range with missing": Domain.range(5, missing="unknown"),
    "bounded range with missing": Domain.range(-3, 4, missing="unknown"),
    "list with missing": Domain(["yes", "no"], missing="unknown"),
    "floats with missing": Domain([0.5, -1.25], missing="unknown"),
    "numbers": Domain.numbers(0, 1, bins=10),
    "thirds": Domain.numbers("-1/3", 1, bins=3, closed="right", out_of_range="refuse"),
    "brackets": Domain.numbers(edges=[0, "0.1", 25, 45.5, 1000], missing="unknown"),
    "product with numbers": Domain.product(age=Domain.range(17, 21, missing="?"), pay=Domain.numbers(0, 8, step=2)),
    "grid": MIAMI,
    "grid without coordinates": BOARD,
    "product": SURVEY,
    "nested product": Domain.product(where=MIAMI, who=SURVEY, flag=[True, False]),
    "subset of grid": MIAMI.subset([(1, 2), (0, 0)]),
    "product with a board": Domain.product(cell=BOARD, flag=[True, False]),
    "subset of board": BOARD.subset([(1, 2), (0, 1)]),
    "subset of product": SURVEY.subset([("no", 1), ("yes", 2)]),
    "subset of nested": Domain.product(where=MIAMI, flag=[True, False]).subset([((1, 0), True)]),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())


# What every kind of domain keeps to


@every_domain
def test_label_and_index_are_inverse(domain: Domain) -> None:
    for i in {0, 1, domain.size // 2, domain.size - 1} & set(range(min(domain.size, 10))) | {domain.size - 1}:
        label = domain.label(i)
        assert domain.index(label) == i
        assert label in domain
        assert domain.decode([i, i]) == [label, label]


@every_domain
def test_iteration_size_and_labels_agree(domain: Domain) -> None:
    assert len(domain) == domain.size == math.prod(domain.shape)
    if domain.size < 1000:
        assert tuple(domain) == domain.labels == tuple(domain.decode(range(domain.size)))
        assert len(set(domain.labels)) == domain.size
    else:
        assert next(iter(domain)) == domain.label(0)


@every_domain
def test_documents_round_trip_through_json_toml_and_pickle(domain: Domain) -> None:
    document = domain.to_dict()
    copies = [
        Domain.from_dict(document),
        Domain.from_dict(json.loads(json.dumps(document))),
        Domain.from_dict(json.loads(json.dumps(document, sort_keys=True))),
        Domain.from_dict(tomllib.loads(tomli_w.dumps(document))),
        pickle.loads(pickle.dumps(domain)),
        copy.deepcopy(domain),
    ]
    for other in copies:
        assert other == domain
        assert hash(other) == hash(domain)
        assert other.to_dict() == document
        assert repr(other) == repr(domain)
        assert other.kind == domain.kind


def test_no_two_of_these_domains_are_equal() -> None:
    assert len(set(DOMAINS.values())) == len(DOMAINS)


@every_domain
def test_a_domain_cannot_be_changed(domain: Domain) -> None:
    with pytest.raises(AttributeError, match="immutable"):
        domain.size = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        domain._kind = ANSWERS._kind
    with pytest.raises(AttributeError, match="immutable"):
        del domain._kind


@every_domain
def test_nothing_foreign_is_a_label(domain: Domain) -> None:
    for stranger in (None, math.nan, "nowhere", 2**31, -4, [], {}, object(), (1, 2, 3, 4), b"yes"):
        assert stranger not in domain
        assert "got" in refusal(domain.index, stranger)
        if stranger in (2**31, -4) and "refuse" not in repr(domain) and domain.to_dict().keys() & {"low", "edges"}:
            assert domain.encode_one(stranger) in (0, domain.size - 1 - (domain.missing is not None))
            continue
        if (stranger is None or stranger is math.nan) and domain.missing is not None:
            assert domain.encode([stranger]) == domain.encode_one(stranger) == domain.index(domain.missing)
            continue
        assert "got" in refusal(domain.encode_one, stranger)
        assert "row 0" in refusal(domain.encode, [stranger])


@every_domain
def test_no_values_have_no_indices(domain: Domain) -> None:
    codes = domain.encode([])
    assert codes.dtype == np.int64
    assert codes.shape == (0,)
    assert domain.decode(codes) == []


@every_domain
@pytest.mark.parametrize("index", [-1, None, True, 0.5, "0", 2**40, 10**30])
def test_an_index_out_of_range_is_refused_with_its_row(domain: Domain, index: object) -> None:
    message = refusal(domain.decode, [0, index, index])
    must = f"must be an int from 0 to {domain.size - 1}; got {index!r}"
    assert message == f"Domain.decode: row 1 (and 1 more row) {must}"
    assert refusal(domain.label, index) == f"Domain.label: index {must}"


# Labels


@pytest.mark.parametrize(
    ("given_labels", "labels"),
    [
        (["b", "a"], ("b", "a")),
        (("b", "a"), ("b", "a")),
        ((x for x in "ba"), ("b", "a")),
        (np.array(["b", "a"]), ("b", "a")),
        (np.array(["b", "a"], dtype=object), ("b", "a")),
        (pa.array(["b", "a"]), ("b", "a")),
        (pa.chunked_array([["b"], ["a"]]).dictionary_encode(), ("b", "a")),
        (pd.Series(["b", "a"]), ("b", "a")),
        (pd.Index(["b", "a"]), ("b", "a")),
        (pl.Series(["b", "a"]), ("b", "a")),
        (ANSWERS, ("yes", "no", "unsure")),
        (np.array([3, 1], dtype=np.uint8), (3, 1)),
        ([np.int16(3), 1], (3, 1)),
        (range(3, 5), (3, 4)),
        (np.array([1.5, 2], dtype=np.float32), (1.5, 2.0)),
        (pa.array([True, False]), (True, False)),
        ([np.bool_(True)], (True,)),
        ({"b": 0, "a": 0}.keys(), ("b", "a")),
    ],
)
def test_labels_become_plain_python_in_their_order(given_labels: Any, labels: tuple[object, ...]) -> None:
    domain = Domain(given_labels)
    assert domain.labels == labels
    assert [type(label) for label in domain.labels] == [type(label) for label in labels]


def test_enumerations_become_their_values() -> None:
    class Colour(enum.StrEnum):
        RED = "red"

    class Mixed(str, enum.Enum):  # noqa: UP042 (it prints as its name)
        RED = "red"

    class Level(enum.IntEnum):
        LOW = 4

    assert Domain([Colour.RED]) == Domain([Mixed.RED]) == Domain(["red"])
    assert type(Domain([Mixed.RED]).label(0)) is str
    assert Domain([Level.LOW]) == Domain([4])
    assert Domain(["red"]).encode([Colour.RED, Mixed.RED, "red"]).tolist() == [0, 0, 0]
    assert Domain([4]).encode_one(Level.LOW) == 0


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "Domain: labels must contain from 1 to 2**31 labels; got []"),
        (range(0), "Domain: labels must contain from 1 to 2**31 labels; got []"),
        (["a", 1], "Domain: labels[1] must be a str, like labels[0]; got 1"),
        ([1, 2, True], "Domain: labels[2] must be an int, like labels[0]; got True"),
        ([True, 1], "Domain: labels[1] must be a bool, like labels[0]; got 1"),
        ([1, 2.0], "Domain: labels[1] must be an int, like labels[0]; got 2.0"),
        ([1.0, 2], "Domain: labels[1] must be a finite float, like labels[0]; got 2"),
        (["a", None], "Domain: labels[1] must be a str, an int, a bool or a finite float; got None"),
        ([0.5, math.nan], "Domain: labels[1] must be a str, an int, a bool or a finite float; got nan"),
        ([math.inf], "Domain: labels[0] must be a str, an int, a bool or a finite float; got inf"),
        ([b"a"], "Domain: labels[0] must be a str, an int, a bool or a finite float; got b'a'"),
        ([("a", "b")], "Domain: labels[0] must be a str, an int, a bool or a finite float; got ('a', 'b')"),
        (["\ud800"], "Domain: labels[0] must be a str, an int, a bool or a finite float; got '\\ud800'"),
        (
            pa.array(["a", None]),
            "Domain: labels[1] must be a str, an int, a bool or a finite float; got None",
        ),
        (["a", "b", "a"], "Domain: labels[0], labels[2] must be distinct; got 'a'"),
        ([0.0, -0.0], "Domain: labels[0], labels[1] must be distinct; got 0.0"),
        ([3, 4, 4, 3], "Domain: labels[0], labels[3] must be distinct; got 3"),
        ([1] * 9, "Domain: labels[0], labels[1], labels[2], labels[3] and 5 more must be distinct; got 1"),
        ("abc", "Domain: labels must be a list or a column; got 'abc'"),
        (7, "Domain: labels must be a list or a column; got 7"),
        ({"a": 1}, "Domain: labels must be a list or a column; got {'a': 1}"),
        ({"a"}, "Domain: labels must be ordered, which a set is not; got {'a'}. Pass sorted(values)."),
        (np.zeros((2, 2)), "Domain: labels must have one dimension; got (2, 2)"),
    ],
)
def test_bad_labels_are_refused(labels: Any, message: str) -> None:
    assert refusal(Domain, labels) == message


def test_times_are_no_labels() -> None:
    # NumPy counts timedelta64 among the integers, and tolist makes nanoseconds of both.
    for unit in ("D", "ns"):
        for times in (np.array([3], dtype=f"m8[{unit}]"), np.array([3], dtype=f"M8[{unit}]")):
            assert "labels[0] must be a str" in refusal(Domain, times)
            assert "row 0 must be" in refusal(Domain.range(9).encode, times)
            assert "row 0 must be" in refusal(Domain([3, 5]).encode, pd.Series(times))
            seconds = pa.array(times.astype(f"{times.dtype.kind}8[s]"))
            assert "row 0 must be" in refusal(Domain.range(9).encode, seconds)
            assert times[0] not in Domain.range(9)
    assert "row 0 must be" in refusal(Domain.range(9).encode, pd.Series(pd.period_range("1970", periods=1)))


def test_labels_of_different_types_make_different_domains() -> None:
    domains = {Domain([5]), Domain([5.0]), Domain(["5"]), Domain([1]), Domain([True]), Domain([1.0])}
    assert len(domains) == 6
    assert Domain(["a", "b"]) != Domain(["b", "a"])
    assert Domain(["a"]) != "a"


def test_negative_zero_is_zero() -> None:
    assert math.copysign(1, Domain([-0.0]).labels[0]) == 1  # type: ignore[arg-type]
    assert Domain([-0.0, 1.0]).encode(np.array([0.0, -0.0])).tolist() == [0, 0]


def test_counting_ints_in_order_are_a_range() -> None:
    for labels in ([0, 1, 2], range(3), np.arange(3), Domain.range(3)):
        assert Domain(labels) == Domain.range(3)
        assert Domain(labels).to_dict() == {"size": 3}
    assert Domain([0, 2, 1]).to_dict() == {"values": [0, 2, 1]}
    assert Domain([False, True]) != Domain.range(2)
    assert Domain([0.0, 1.0]) != Domain.range(2)


@pytest.mark.parametrize("k", [0, -1, 2**31 + 1, 2.0, True, "3", None])
def test_a_range_needs_a_size(k: Any) -> None:
    assert refusal(Domain.range, k) == f"Domain.range: k must be an int from 1 to 2**31; got {k!r}"


def test_a_range_is_symbolic() -> None:
    domain = Domain.range(2**31)
    assert domain.label(2**31 - 1) == 2**31 - 1
    assert domain.encode(np.array([2**31 - 1, 5])).tolist() == [2**31 - 1, 5]
    assert "got 2147483648" in refusal(domain.encode, np.array([2**31]))


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (ANSWERS, "Domain(['yes', 'no', 'unsure'])"),
        (Domain([f"p{i}" for i in range(1000)]), "Domain(['p0', 'p1', 'p2', 'p3', 'p4', … 995 more])"),
        (Domain(["x" * 99]), "Domain(['xxxxxxxxxxxxxxxxxxxxxxxxxxxx…])"),
        (Domain.range(7), "Domain.range(7)"),
        (MIAMI, "Domain.grid(latitude=(25.6, 25.8), longitude=(-80.4, -80.1), rows=2, columns=3)"),
        (SURVEY, "Domain.product(S=Domain(['yes', 'no']), U=Domain.range(3))"),
    ],
)
def test_repr_is_short_and_says_it_all(domain: Domain, text: str) -> None:
    assert repr(domain) == text


# Columns


class Foreign:
    """A column that speaks only the Arrow PyCapsule interface."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._column.__arrow_c_array__(requested_schema)


def columns_of_str(values: list[Any]) -> Iterator[Any]:
    yield values
    yield tuple(values)
    yield iter(values)
    yield np.array(values, dtype=object)
    yield pd.Series(values, dtype=object)
    yield pd.Series(values, dtype="string")
    yield pd.Series(values, dtype="string[python]")
    yield pd.Series(values, dtype=pd.ArrowDtype(pa.string()))
    yield pd.Series(values, dtype="category")
    yield pd.Series(values, index=["columns"] * len(values), dtype=object)
    yield pd.Categorical(values)
    yield pd.Index(values, dtype=object)
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield pa.array(values, kind)
        yield Foreign(pa.array(values, kind))
        yield pa.chunked_array([pa.array(values[:1], kind), pa.array(values[1:], kind)])
    yield pa.array(values).dictionary_encode()
    # Two chunks with unlike dictionaries.
    yield pa.chunked_array([pa.array(part).dictionary_encode() for part in (values[:1], values[1:])])
    yield pl.Series(values)
    yield pl.Series(values, dtype=pl.Categorical)
    yield pl.Series(values, dtype=pl.Enum(sorted({v for v in values if v is not None})))


def test_every_column_of_str_is_read() -> None:
    values = ["no", "yes", "no", "unsure"]
    for column in [
        *columns_of_str(values),
        np.array(values),
        np.array(values, dtype=np.dtypes.StringDType()),
    ]:
        codes = ANSWERS.encode(column)
        assert codes.dtype == np.int64, type(column)
        assert codes.tolist() == [1, 0, 1, 2], type(column)


def test_every_column_of_str_is_refused_at_its_first_unknown() -> None:
    values = ["no", "maybe", "yes", "perhaps", "maybe"]
    must = "must be one of the str labels 'yes', 'no', 'unsure'; got 'maybe'"
    for column in [*columns_of_str(values), np.array(values)]:
        message = refusal(ANSWERS.encode, column)
        assert message == f"Domain.encode: row 1 (and 2 more rows) {must}", type(column)


def test_every_column_of_str_is_refused_at_its_first_null() -> None:
    for column in columns_of_str(["no", "yes", None, "maybe"]):
        message = refusal(ANSWERS.encode, column)
        assert message.startswith("Domain.encode: row 2 (and 1 more row) must be one of the"), type(column)
        got, _, hint = message.partition(". ")
        assert got.endswith(("got None", "got nan", "got <NA>")), (type(column), message)
        assert hint.startswith("Choose a value for missing values: missing='unknown' in the domain declares one, and")


def test_a_null_among_a_dictionary_s_values_is_refused() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["no", None]))
    assert "row 1 must" in refusal(ANSWERS.encode, column)


class Stream:
    """A column that can be read once."""

    def __init__(self, column: Any) -> None:
        self._capsules = [column.__arrow_c_stream__()]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._capsules.pop()


def test_a_stream_is_read_once() -> None:
    assert ANSWERS.encode(Stream(pa.chunked_array([["no"], ["yes"]]))).tolist() == [1, 0]
    assert MIAMI.encode(Stream(pa.chunked_array([[[25.7, -80.25]]]))).tolist() == [4]
    assert SURVEY.encode(Stream(pa.table({"S": ["no"], "U": [2]}))).tolist() == [5]
    reader = pa.table({"S": ["no"], "U": [2]}).to_reader()
    assert SURVEY.encode(reader).tolist() == [5]


def test_empty_arrow_columns_have_no_indices() -> None:
    for kind in (pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.int64(), pa.null()):
        for column in (pa.array([], kind), pa.chunked_array([], kind)):
            assert ANSWERS.encode(column).tolist() == []
            assert Domain.range(3).encode(column).tolist() == []


def columns_of_int(values: list[Any]) -> Iterator[Any]:
    yield values
    yield np.array(values, dtype=object)
    yield pd.Series(values, dtype=object)
    yield pd.Series(values, dtype="Int64")
    yield pd.Series(values, dtype="Int8")
    yield pd.Series(values, dtype=pd.ArrowDtype(pa.int32()))
    yield pd.Series(values, dtype="category")
    yield pa.array(values, pa.int8())
    yield pa.array(values).dictionary_encode()
    yield pa.chunked_array([values[:2], values[2:]])
    yield pl.Series(values)
    yield pl.Series(values, dtype=pl.Int16)
    yield pl.DataFrame({"x": values})["x"]


INTS = [Domain.range(8), Domain([7, 5, 3, 1, 0, 2, 4, 6]), Domain([10**17, 7, 2, 3, 5])]
ints = pytest.mark.parametrize("domain", INTS, ids=["range", "dense", "sparse"])


@ints
def test_every_column_of_int_is_read(domain: Domain) -> None:
    values = [3, 7, 3, 2, 5]
    expected = [domain.index(value) for value in values]
    arrays = [np.array(values, dtype=kind) for kind in "bBhHiIlLefd"]
    swapped = [np.array(values, dtype=kind) for kind in (">i4", ">f8", ">u8")]
    strided = np.repeat(np.array(values), 3)[::3]
    pandas = [pd.Series(array) for array in arrays if array.dtype != np.float16]
    more = [
        pd.Series(values, dtype="UInt8"),
        pd.Series(values, dtype="Float32"),
        pa.array(values, pa.uint64()),
    ]
    masked = np.ma.masked_array(values, mask=[False] * 5)
    for column in [*columns_of_int(values), *arrays, *swapped, strided, *pandas, *more, masked]:
        assert domain.encode(column).tolist() == expected, (type(column), getattr(column, "dtype", ""))


@ints
def test_every_column_of_int_is_refused_at_its_first_unknown(domain: Domain) -> None:
    values = [3, 7, 99, 2, -5]
    for column in [*columns_of_int(values), np.array(values), np.array(values, dtype=np.int8)]:
        message = refusal(domain.encode, column)
        assert message.startswith("Domain.encode: row 2 (and 1 more row) must be "), type(column)
        assert message.endswith("; got 99"), type(column)


@ints
def test_every_column_of_int_is_refused_at_its_first_null(domain: Domain) -> None:
    masked = np.ma.masked_array([3, 7, 7, 2], mask=[False, False, True, False])
    floats = [pd.Series([3, 7, None, 2]), np.array([3, 7, np.nan, 2]), pl.Series([3.0, 7.0, math.nan, 2.0])]
    for column in [*columns_of_int([3, 7, None, 2]), masked, *floats]:
        message = refusal(domain.encode, column)
        assert message.startswith("Domain.encode: row 2 must be "), type(column)
        got, _, hint = message.partition(". ")
        assert got.endswith(("got None", "got nan", "got <NA>")), (type(column), message)
        assert hint.startswith("Choose a value for missing values: missing='unknown' in the domain declares one, and")


@ints
@pytest.mark.parametrize("value", [3.5, -0.5, math.nan, math.inf, -math.inf, 1e300, 2.0**63, -(2.0**63)])
def test_only_a_whole_float_equals_an_int(domain: Domain, value: float) -> None:
    for column in ([3.0, value], np.array([3.0, value]), pa.array([3.0, value]), [3, value]):
        message = refusal(domain.encode, column)
        assert message.startswith("Domain.encode: row 1 must be ")
        assert message.partition(". Choose a value for missing values")[0].endswith(f"; got {value!r}")
    assert refusal(domain.encode_one, value).endswith(f"; got {value!r}")


@ints
def test_a_bool_is_no_int(domain: Domain) -> None:
    columns = [
        [3, True],
        np.array([3, True], dtype=object),
        pd.Series([3, True], dtype=object),
        [3, np.bool_(True)],
    ]
    for column in columns:
        assert "row 1 must" in refusal(domain.encode, column)
    for column in ([True], np.array([True]), pa.array([True]), pd.Series([True]), pl.Series([True])):
        message = refusal(domain.encode, column)
        assert "row 0 must" in message
        assert message.endswith("got True")
    for value in (True, np.bool_(True)):
        assert value not in domain
        assert "got" in refusal(domain.encode_one, value)


def test_an_int_is_no_bool() -> None:
    domain = Domain([True, False])
    for column in ([True, False], np.array([True, False]), pa.array([True, False]), pl.Series([True, False])):
        assert domain.encode(column).tolist() == [0, 1]
    assert domain.encode(pd.Series([True, False], dtype="boolean")).tolist() == [0, 1]
    assert "row 1 must" in refusal(domain.encode, pd.Series([True, None], dtype="boolean"))
    for column in ([1], [1.0], np.array([1]), pa.array([1]), pd.Series([1]), ["True"]):
        assert refusal(domain.encode, column).startswith(
            "Domain.encode: row 0 must be one of the bool labels True, False; got "
        )
    assert 1 not in domain
    assert "got 1" in refusal(domain.encode_one, 1)
    assert Domain([True]).encode(np.array([True, True])).tolist() == [0, 0]
    assert "row 1 must" in refusal(Domain([True]).encode, np.array([True, False]))


def test_a_number_is_no_str() -> None:
    for column in ([1], np.array([1]), np.array([1.5]), np.array([b"1"]), np.array([True])):
        assert "row 0 must be one of the str labels '1'" in refusal(Domain(["1"]).encode, column)
    assert "row 0 must be an int from 0 to 4; got '1'" in refusal(Domain.range(5).encode, np.array(["1"]))
    assert "got Decimal('1')" in refusal(Domain.range(5).encode, pa.array([Decimal(1)]))
    assert "got np.complex128(1+0j)" in refusal(Domain.range(5).encode, np.array([1 + 0j]))


def test_uint64_does_not_wrap() -> None:
    wrapping = np.array([2**64 - 1], dtype=np.uint64)
    for domain in (Domain([-1, 5]), Domain([-1, 10**17]), Domain.range(3)):
        for column in (wrapping, pa.array(wrapping), pl.Series(wrapping)):
            assert refusal(domain.encode, column).endswith(f"got {2**64 - 1}")
    assert Domain([-1, 2**64 - 1]).encode(wrapping).tolist() == [1]


def test_big_ints_are_compared_exactly() -> None:
    domain = Domain([2**64, 2**64 + 1, 7, 2**53 + 1])
    assert domain.encode([2**64 + 1, 7, 2**64]).tolist() == [1, 2, 0]
    assert domain.encode(np.array([7, 2**53 + 1])).tolist() == [2, 3]
    assert domain.encode(np.array([2.0**64, 7.0])).tolist() == [0, 2]
    assert "got 9007199254740992.0" in refusal(domain.encode, np.array([2.0**53]))
    assert domain.decode_array([0, 2]).tolist() == [2**64, 7]
    with_int64 = Domain([2**53 + 1, -(2**63)])
    assert with_int64.encode(np.array([-(2**63), 2**53 + 1])).tolist() == [1, 0]
    assert with_int64.encode(np.array([-(2.0**63)])).tolist() == [1]
    assert "row 0" in refusal(with_int64.encode, np.array([2.0**53]))
    assert "row 0" in refusal(with_int64.encode, np.array([2.0**63]))


def test_floats_are_compared_exactly() -> None:
    domain = Domain([0.1, 2.0**53, -3.0, 0.5])
    assert domain.encode(np.array([0.5, -3.0, 0.1])).tolist() == [3, 2, 0]
    assert domain.encode([0.5, -3, 0.1, np.float32(0.5)]).tolist() == [3, 2, 0, 3]
    assert domain.encode(np.array([-3, -3], dtype=np.int8)).tolist() == [2, 2]
    assert domain.encode(np.array([2**53])).tolist() == [1]
    assert "got 9007199254740993" in refusal(domain.encode, np.array([2**53 + 1]))
    assert "got 0.10000000149011612" in refusal(domain.encode, np.array([0.1], dtype=np.float32))
    assert "row 0" in refusal(domain.encode, [np.float32(0.1)])
    assert "row 1 must be one of the float labels 0.1" in refusal(domain.encode, np.array([0.1, np.nan]))
    long = np.array([0.5, 0.1], dtype=np.longdouble)  # here 0.1 is the double's value
    assert domain.encode(long).tolist() == [3, 0]
    if np.finfo(np.longdouble).nmant > 52:
        assert "row 0" in refusal(domain.encode, np.array(["0.1"]).astype(np.longdouble))
        assert "row 0" in refusal(Domain.range(9).encode, [np.nextafter(np.longdouble(3), np.longdouble(4))])


def test_encode_returns_an_array_of_its_own() -> None:
    values = np.array([1, 2])
    codes = Domain.range(3).encode(values)
    codes[0] = 0
    assert values.tolist() == [1, 2]


def test_encode_without_a_copy_gives_indices_of_a_range_as_they_are_but_not_to_be_written() -> None:
    domain = Domain.range(200)
    values = np.array([1, 199, 0])
    for column in (values, pa.array(values), pd.Series(values), pl.Series(values)):
        codes = domain.encode(column, copy=False)
        assert codes.tolist() == [1, 199, 0]
        assert codes.dtype == np.int64
        assert not codes.flags.writeable
    assert np.shares_memory(domain.encode(values, copy=False), values)
    assert values.flags.writeable
    for other in (np.int8, np.uint8, np.int32, np.uint64, ">i8"):
        assert domain.encode(np.array([1, 100, 0], dtype=other), copy=False).tolist() == [1, 100, 0]
    assert domain.encode(np.arange(9)[::3], copy=False).flags.c_contiguous
    assert Domain([5, 7]).encode(np.array([7, 5]), copy=False).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.int8, ">i8"])
def test_encode_without_a_copy_refuses_as_with_one(dtype: Any) -> None:
    for wrong in ([0, -100], [0, 100], [0, 2**63 + 1], [0, -(2**63)]):
        if np.iinfo(dtype).min <= wrong[1] <= np.iinfo(dtype).max:
            column = np.array(wrong, dtype=dtype)
            refused = refusal(Domain.range(100).encode, column, copy=False)
            assert refused == refusal(Domain.range(100).encode, column)
            assert f"row 1 must be an int from 0 to 99; got {wrong[1]}" in refused
            assert column.tolist() == wrong
    assert "row 1 must be an int" in refusal(Domain.range(100).encode, pa.array([1, None]), copy=False)


@pytest.mark.parametrize("values", ["yes", b"yes", 5, None, {"yes"}, {"yes": 1}, np.array("yes"), np.eye(1)])
def test_what_is_no_column_is_refused(values: object) -> None:
    assert refusal(ANSWERS.encode, values).startswith("Domain.encode: values must ")


def test_a_table_is_no_column() -> None:
    assert "values must be a list or a column" in refusal(ANSWERS.encode, pd.DataFrame({"x": ["yes"]}))
    assert "row 0 must be one of" in refusal(ANSWERS.encode, pl.DataFrame({"x": ["yes"]}))
    assert "row 0 must be one of" in refusal(ANSWERS.encode, pa.table({"x": ["yes"]}))


def test_arrow_columns_need_pyarrow_and_pandas_columns_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    series = pl.Series(["yes"])
    python = pd.Series(["yes", "no"], dtype="string[python]")
    numbers = pd.Series([1, 2], dtype="Int64")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"reading an Arrow or polars column .*'\.\[arrow\]'"):
        ANSWERS.encode(series)
    assert ANSWERS.encode(python).tolist() == [0, 1]
    assert Domain.range(3).encode(numbers).tolist() == [1, 2]
    assert ANSWERS.encode(pd.Categorical(["no", "yes"])).tolist() == [1, 0]


@pytest.mark.slow
def test_importing_the_module_imports_no_data_library() -> None:
    code = "import sys, sfumato.domain; print({'pyarrow', 'pandas', 'polars'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


scalars = st.one_of(
    st.lists(st.text(max_size=5), min_size=1, unique=True),
    st.lists(st.integers(), min_size=1, unique=True),
    st.lists(st.integers(-50, 50), min_size=1, unique=True),
    st.lists(st.booleans(), min_size=1, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True),
)


@pytest.mark.slow
@given(scalars, st.data())
def test_encode_and_decode_are_inverse(labels: list[Any], data: st.DataObject) -> None:
    domain = Domain(labels)
    indices = data.draw(st.lists(st.integers(0, len(labels) - 1)))
    values = [labels[i] for i in indices]
    assert domain.encode(values).tolist() == indices
    assert [domain.encode_one(value) for value in values] == indices
    assert domain.decode(indices) == values
    array = domain.decode_array(np.array(indices, dtype=np.uint8) if len(labels) < 256 else indices)
    assert array.tolist() == values
    assert domain.encode(array).tolist() == indices
    assert Domain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain


@given(
    st.lists(st.integers(-40, 40) | st.integers(-(2**65), 2**65), min_size=1, unique=True),
    st.lists(
        st.integers(-40, 40)
        | st.integers(-(2**65), 2**65)
        | st.floats(-40, 40)
        | st.floats(allow_nan=True)
        | st.booleans()
    ),
)
def test_vector_and_scalar_encoding_agree_with_plain_python(labels: list[int], values: list[Any]) -> None:
    # The oracle is Python's own exact comparison of an int with a float.
    expected = [
        next((i for i, label in enumerate(labels) if not isinstance(value, bool) and label == value), -1)
        for value in values
    ]
    domain = Domain(labels)
    for kind in (None, np.float64, np.int64, np.uint64):
        if kind is None:
            column: Any = values
            wanted = expected
        else:
            kept = [
                (value, code)
                for value, code in zip(values, expected, strict=True)
                if not isinstance(value, bool) and _holds(kind, value)
            ]
            column = np.array([value for value, _ in kept], dtype=kind)
            wanted = [code for _, code in kept]
        codes, _ = domain._kind.encode(column, None)  # type: ignore[arg-type]
        assert codes.tolist() == wanted
        assert [domain._kind.place(value) for value in column] == wanted


def _holds(kind: type, value: Any) -> bool:
    if kind is np.float64:
        return isinstance(value, float) or abs(value) <= 2**53
    return isinstance(value, int) and np.iinfo(kind).min <= value <= np.iinfo(kind).max


@pytest.mark.parametrize(
    ("domain", "kind"),
    [
        (ANSWERS, "O"),
        (Domain([4, 2]), "i"),
        (Domain.range(3), "i"),
        (Domain([True]), "b"),
        (Domain([0.5]), "f"),
    ],
)
def test_decode_array_has_the_labels_type(domain: Domain, kind: str) -> None:
    assert domain.decode_array([0, 0]).dtype.kind == kind
    assert domain.decode_array([0]).tolist() == [domain.label(0)]
    assert "row 0" in refusal(domain.decode_array, [99])


@pytest.mark.parametrize("domain", [MIAMI, SURVEY, MIAMI.subset([(0, 0)])])
def test_decode_array_is_for_scalars(domain: Domain) -> None:
    assert "Domain.decode_array: domain must have scalar labels" in refusal(domain.decode_array, [0])


# Speed: each limit is some ten times what the machine this was written on takes.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("domain", "values", "most"),
    [
        (Domain.range(1000), lambda codes: codes, 0.01),
        (Domain(list(range(1000, 0, -1))), lambda codes: codes + 1, 0.01),
        (
            Domain([f"p{i}" for i in range(1000)]),
            lambda codes: pa.DictionaryArray.from_arrays(pa.array(codes), [f"p{i}" for i in range(1000)]),
            0.01,
        ),
        (Domain([f"p{i}" for i in range(1000)]), lambda codes: [f"p{i}" for i in codes[:20_000]], 20),
    ],
    ids=["range", "ints", "dictionary", "list"],
)
def test_ten_million_values_take_hardly_a_step_of_python_each(
    domain: Domain, values: Callable[[Any], Any], most: float
) -> None:
    """How many steps it takes is the same on every machine; how long they take is not. Those of a list are objects."""
    column = values(np.resize(np.arange(1000), 10_000_000))
    domain.encode(column)  # which loads what it needs
    steps = 0

    def count(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        assert steps < most * len(column)
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        domain.encode(column)
    finally:
        sys.settrace(before)
    assert steps > 0


# Grids


def test_a_grid_counts_cells_from_the_south_west() -> None:
    assert MIAMI.shape == (2, 3)
    assert MIAMI.kind == "grid"
    assert MIAMI.labels == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))
    points = [
        (25.65, -80.35),
        (25.65, -80.25),
        (25.65, -80.15),
        (25.75, -80.35),
        (25.75, -80.25),
        (25.75, -80.15),
    ]
    assert MIAMI.encode(points).tolist() == [0, 1, 2, 3, 4, 5]
    assert [MIAMI.encode_one(point) for point in points] == [0, 1, 2, 3, 4, 5]
    assert MIAMI.index((1, 0)) == 3
    assert (1, 0) in MIAMI
    assert (2, 0) not in MIAMI
    assert (True, 0) not in MIAMI
    assert MIAMI.factors == {}


def test_edges_are_the_decimals_one_would_write() -> None:
    latitudes, longitudes = MIAMI.edges
    assert latitudes.tolist() == [25.6, 25.7, 25.8]
    assert longitudes.tolist() == [-80.4, -80.3, -80.2, -80.1]
    with pytest.raises(ValueError, match="read-only"):
        latitudes[0] = 0
    wide = Domain.grid(latitude=(0, 3), longitude=(0.1, 0.7), rows=30, columns=6)
    assert wide.edges[0].tolist() == [i / 10 for i in range(31)]
    assert wide.edges[1].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]  # 0.1 + 2 * 0.1 is not 0.3


def test_centres_lie_in_their_own_cells() -> None:
    centres = MIAMI.centres()
    assert centres.shape == (6, 2)
    assert centres[0].tolist() == [25.65, -80.35]
    assert centres[5].tolist() == [25.75, -80.15]
    assert MIAMI.encode(centres).tolist() == list(range(6))


def test_cells_are_half_open_and_the_outermost_are_closed() -> None:
    assert MIAMI.encode([(25.6, -80.4), (25.7, -80.3), (25.8, -80.1), (25.6, -80.1)]).tolist() == [0, 4, 5, 2]
    below = (math.nextafter(25.7, 0), math.nextafter(-80.3, -90))
    assert MIAMI.encode_one(below) == 0
    assert MIAMI.encode(np.array([below])).tolist() == [0]


@given(st.data())
def test_a_point_on_an_edge_falls_into_the_cell_that_starts_there(data: st.DataObject) -> None:
    low = data.draw(st.integers(-9000, 8999))
    high = data.draw(st.integers(low + 1, 9000))
    rows = data.draw(st.integers(1, 60))
    grid = Domain.grid(latitude=(low / 100, high / 100), longitude=(-1, 1), rows=rows, columns=1)
    exact = [Fraction(low, 100) + Fraction(high - low, 100) * i / rows for i in range(rows + 1)]
    edges = [float(edge) for edge in exact]
    assert grid.edges[0].tolist() == edges
    cells = [*range(rows), rows - 1]
    assert grid.encode([(edge, 0) for edge in edges]).tolist() == cells
    latitude = data.draw(st.floats(low / 100, high / 100))
    cell = sum(edge <= latitude for edge in edges[1:-1])
    assert grid.encode([(latitude, 0.0)]).tolist() == [cell] == [grid.encode_one((latitude, 0.0))]


def test_every_table_of_points_is_read() -> None:
    latitudes, longitudes = [25.65, 25.8, 25.7], [-80.1, -80.35, -80.25]
    expected = [2, 3, 4]
    pairs = list(zip(latitudes, longitudes, strict=True))
    columns: dict[str, list[Any]] = {"id": ["x", "y", "z"], "longitude": longitudes, "latitude": latitudes}
    short = {"lat": latitudes, "lon": longitudes}
    records = np.array(pairs, dtype=[("latitude", "f8"), ("longitude", "f8")])
    tables = [
        pairs,
        [list(pair) for pair in pairs],
        [np.array(pair) for pair in pairs],
        [{"lat": lat, "longitude": lon} for lat, lon in pairs],
        iter(pairs),
        np.array(pairs),
        np.array(pairs, dtype=object),
        np.asfortranarray(np.array(pairs)),
        records,
        columns,
        short,
        {"lat": np.array(latitudes), "longitude": pa.array(longitudes)},
        pd.DataFrame(columns),
        pd.DataFrame(columns, index=[5, 5, 5]),
        pd.DataFrame(short, dtype="Float64"),
        pd.Series(pairs),
        pl.DataFrame(columns),
        pl.DataFrame(short).to_struct("points"),
        pa.table(columns),
        pa.table(columns).to_batches()[0],
        pa.array(map(list, pairs)),
    ]
    for table in tables:
        assert MIAMI.encode(table).tolist() == expected, type(table)
    assert MIAMI.encode_one({"lat": 25.7, "lon": -80.25}) == 4
    assert MIAMI.encode_one(np.array([25.7, -80.25])) == 4
    square = Domain.grid(latitude=(0, 2), longitude=(0, 2), rows=2, columns=2)
    assert square.encode([(1, 0.5)]).tolist() == [2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([(25.65, -80.2), (26, -80.2)], "row 1, latitude must be a number from 25.6 to 25.8; got 26"),
        (np.array([[25.65, -80.0]]), "row 0, longitude must be a number from -80.4 to -80.1; got -80.0"),
        ([(25.65, -80.2), (math.nan, -80.2)], "row 1, latitude must be a number from 25.6 to 25.8; got nan"),
        (
            [(25.65, None)] * 2,
            "row 0, longitude (and 1 more row) must be a number from -80.4 to -80.1; got None",
        ),
        ([("25.65", -80.2)], "row 0, latitude must be a number from 25.6 to 25.8; got '25.65'"),
        ([(10**400, -80.2)], f"row 0, latitude must be a number from 25.6 to 25.8; got {'1' + 78 * '0'}…"),
        ([(25.65, -80.2), (25.65,)], "row 1 must be a tuple (latitude, longitude); got (25.65,)"),
        ([(25.65, -80.2, 0.0)], "row 0 must be a tuple (latitude, longitude); got (25.65, -80.2, 0.0)"),
        ([25.65, -80.2], "row 0 must be a tuple (latitude, longitude); got 25.65"),
        (np.array([25.65, -80.2]), "row 0 must be a tuple (latitude, longitude); got 25.65"),
        (np.zeros((4, 3)), "values, each row must be a tuple (latitude, longitude); got (4, 3)"),
        ([(0, 1)], "row 0, latitude must be a number from 25.6 to 25.8; got 0"),
        (
            {"latitude": [25.6]},
            "values must have exactly one column 'longitude' or 'lon', not 0; got ['latitude']",
        ),
        (
            {"lat": [25.6], "latitude": [25.6], "lon": [-80.2]},
            "values must have exactly one column 'latitude' or 'lat', not 2; got ['lat', 'latitude', 'lon']",
        ),
        (
            {"lat": [25.6], "lon": [-80.2, -80.2]},
            "values must have columns of equal length; got {'latitude': 1, 'longitude': 2}",
        ),
        ({"lat": 25.6, "lon": -80.2}, "values['latitude'] must be a list or a column; got 25.6"),
    ],
)
def test_bad_points_are_refused(values: object, message: str) -> None:
    assert refusal(MIAMI.encode, values) == f"Domain.encode: {message}"


def test_a_bool_is_no_coordinate() -> None:
    grid = Domain.grid(latitude=(0, 2), longitude=(0, 2), rows=1, columns=1)
    for points in ([(True, 1.0)], {"lat": np.array([True]), "lon": [1.0]}):
        message = refusal(grid.encode, points)
        assert message == "Domain.encode: row 0, latitude must be a number from 0.0 to 2.0; got True"
    assert "value, latitude must be" in refusal(grid.encode_one, (True, 1.0))


def test_a_cell_out_of_the_grid_is_refused() -> None:
    far = refusal(MIAMI.index, (2, 0))
    assert far == "Domain.index: label, factor 'row' must be an int from 0 to 1; got 2"
    assert refusal(MIAMI.index, 5) == "Domain.index: label must be a tuple (row, column); got 5"
    no_point = refusal(MIAMI.encode_one, 5)
    assert no_point == "Domain.encode_one: value must be a tuple (latitude, longitude); got 5"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"latitude": (25.8, 25.6)},
            "latitude must be two ascending numbers from -90 to 90; got (25.8, 25.6)",
        ),
        ({"latitude": (1, 1)}, "latitude must be two ascending numbers from -90 to 90; got (1, 1)"),
        ({"latitude": (0, 90.1)}, "latitude must be two ascending numbers from -90 to 90; got (0, 90.1)"),
        ({"latitude": (0,)}, "latitude must be two ascending numbers from -90 to 90; got (0,)"),
        ({"latitude": (0, 1, 2)}, "latitude must be two ascending numbers from -90 to 90; got (0, 1, 2)"),
        (
            {"latitude": (False, True)},
            "latitude must be two ascending numbers from -90 to 90; got (False, True)",
        ),
        ({"latitude": ("0", "1")}, "latitude must be two ascending numbers from -90 to 90; got ('0', '1')"),
        ({"latitude": 5}, "latitude must be two ascending numbers from -90 to 90; got 5"),
        ({"longitude": (-181, 0)}, "longitude must be two ascending numbers from -180 to 180; got (-181, 0)"),
        (
            {"longitude": (0, math.nan)},
            "longitude must be two ascending numbers from -180 to 180; got (0, nan)",
        ),
        (
            {"longitude": (170, -170)},
            "longitude must be two ascending numbers from -180 to 180; got (170, -170)",
        ),
        ({"rows": 0}, "rows must be an int from 1 to 2**31; got 0"),
        ({"columns": 2.0}, "columns must be an int from 1 to 2**31; got 2.0"),
        (
            {"rows": 2**16, "columns": 2**16},
            "rows must be at most 2**31 when multiplied by columns; got (65536, 65536)",
        ),
        (
            {"latitude": (1, 1.000000000000001), "rows": 4},
            "rows must leave each cell wider than floats can resolve; got 4. Use fewer cells or wider bounds.",
        ),
    ],
)
def test_bad_grids_are_refused(change: dict[str, Any], message: str) -> None:
    arguments = {"latitude": (0, 1), "longitude": (0, 1), "rows": 2, "columns": 2, **change}
    assert refusal(Domain.grid, **arguments) == f"Domain.grid: {message}"


def test_a_grid_may_span_the_world_and_ints_are_floats() -> None:
    world = Domain.grid(latitude=(-90, 90), longitude=(-180, 180), rows=180, columns=360)
    north: Any = np.float32(90)
    assert world == Domain.grid(latitude=[-90.0, north], longitude=(-180, 180.0), rows=180, columns=360)
    assert world.encode([(-90, -180), (90, 180), (0, 0)]).tolist() == [0, 180 * 360 - 1, 90 * 360 + 180]
    zero = Domain.grid(latitude=(-0.0, 1), longitude=(0, 1), rows=1, columns=1)
    assert "-0.0" not in repr(zero)


def test_edges_and_centres_are_for_maps() -> None:
    for domain in (ANSWERS, SURVEY, Domain.range(3), BOARD):
        assert not domain.is_map
        must = "domain must be a grid with latitude and longitude; got Domain"
        assert refusal(getattr, domain, "edges").startswith(f"Domain.edges: {must}")
        assert refusal(domain.centres).startswith(f"Domain.centres: {must}")
    assert MIAMI.is_map


def test_a_grid_without_coordinates_has_cells_in_rows_and_columns() -> None:
    assert Domain.grid(rows=2, columns=3) == BOARD
    assert BOARD.labels == tuple(product(range(2), range(3)))
    assert (BOARD.kind, BOARD.shape) == ("grid", (2, 3))
    assert BOARD.factors == {"row": Domain.range(2), "column": Domain.range(3)}
    assert BOARD.to_dict() == {"grid": {"rows": 2, "columns": 3}}
    assert repr(BOARD) == "Domain.grid(rows=2, columns=3)"
    assert Domain.product(row=range(2), column=range(3)) != BOARD
    assert Domain.grid(3, 2) != BOARD
    cells = [(1, 2), (0, 0), (0, 1)]
    table = pd.DataFrame(cells, columns=["row", "column"])
    for values in (cells, table, pa.Table.from_pandas(table), np.array(cells), table.to_dict("list")):
        assert BOARD.encode(values).tolist() == [5, 0, 1]
    assert BOARD.subset(cells).labels == tuple(cells)
    assert MIAMI.factors == {}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Domain.grid(0, 3), "Domain.grid: rows must be an int from 1 to 2**31; got 0"),
        (lambda: Domain.grid(2**20, 2**20), "Domain.grid: rows must be at most 2**31 when multiplied by columns; got "),
        (lambda: Domain.grid(2, 2, latitude=(0, 1)), "Domain.grid: longitude must be given together with the other bo"),
        (lambda: Domain.grid(2, 2, longitude=(0, 1)), "Domain.grid: latitude must be given together with the other bo"),
        (
            lambda: BOARD.encode([(0, 0), (2, 0)]),
            "Domain.encode: row 1, factor 'row' must be an int from 0 to 1; got",
        ),
        (lambda: BOARD.index((0, 0.5)), "Domain.index: label, factor 'column' must be an int from 0 to 2; got 0.5"),
        (lambda: Domain.from_dict({"grid": {"rows": 2}}), "Domain.from_dict: document['grid'] must have the key 'colu"),
        (
            lambda: Domain.from_dict({"grid": {"rows": 2, "columns": 2, "latitude": [0, 1]}}),
            "Domain.from_dict: document['grid'] must have the key 'longitude'",
        ),
    ],
)
def test_grids_without_coordinates_are_checked(call: Callable[[], object], message: str) -> None:
    assert refusal(call).startswith(message)


# Products


def test_a_product_is_row_major_in_the_order_of_its_factors() -> None:
    assert SURVEY.labels == tuple(product(["yes", "no"], range(3)))
    assert SURVEY.shape == (2, 3)
    assert SURVEY.kind == "product"
    assert SURVEY.factors == {"S": Domain(["yes", "no"]), "U": Domain.range(3)}
    assert list(SURVEY.factors) == ["S", "U"]
    assert Domain.product(U=Domain.range(3), S=["yes", "no"]) != SURVEY
    assert Domain.product(S=["yes", "no"], V=Domain.range(3)) != SURVEY
    for counting in ([0, 1, 2], range(3), np.arange(3)):
        assert Domain.product(S=["yes", "no"], U=counting) == SURVEY
    assert Domain.product(cls=["a"], self=["b"]).labels == (("a", "b"),)
    three = Domain.product(a=[True, False], b=range(3), c=["x", "y"])
    assert three.encode(list(product([True, False], range(3), "xy"))).tolist() == list(range(12))


def test_every_table_of_a_product_is_read() -> None:
    answers, numbers = ["no", "yes", "no"], [2, 0, 1]
    expected = [5, 0, 4]
    rows = list(zip(answers, numbers, strict=True))
    columns: dict[str, list[Any]] = {"U": numbers, "other": [0.5, 0.5, None], "S": answers}
    tables = [
        rows,
        [list(row) for row in rows],
        [{"U": u, "S": s, "T": 0} for s, u in rows],
        iter(rows),
        np.array(rows, dtype=object),
        np.array(rows, dtype=[("S", "U9"), ("U", "i8")]),
        columns,
        {"S": pl.Series(answers), "U": np.array(numbers)},
        pd.DataFrame(columns),
        pd.DataFrame(columns).astype({"S": "category", "U": "Int8"}),
        pd.DataFrame(columns, index=["a", "a", "b"]),
        pd.MultiIndex.from_tuples(rows),
        pl.DataFrame(columns, strict=False),
        pl.DataFrame(columns, strict=False).with_columns(pl.col("S").cast(pl.Categorical)),
        pa.table(columns),
        pa.table({"S": pa.array(answers).dictionary_encode(), "U": pa.chunked_array([[2], [0, 1]])}),
        pa.table(columns).to_struct_array(),
        Foreign(pa.table(columns).combine_chunks().to_batches()[0]),
    ]
    for table in tables:
        assert SURVEY.encode(table).tolist() == expected, type(table)
    assert SURVEY.encode_one({"S": "no", "U": 2}) == 5
    assert SURVEY.encode_one(["no", 2]) == 5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"S": ["yes", "maybe", "no"], "U": [1, 1, 7]},
            "row 1, factor 'S' (and 1 more row) must be one of the str labels 'yes', 'no'; got 'maybe'",
        ),
        ({"S": ["yes", "yes"], "U": [1, 7]}, "row 1, factor 'U' must be an int from 0 to 2; got 7"),
        (
            [("yes", 1), ("maybe", 7)],
            "row 1, factor 'S' must be one of the str labels 'yes', 'no'; got 'maybe'",
        ),
        ([("yes", True)], "row 0, factor 'U' must be an int from 0 to 2; got True"),
        ([("yes", None)], "row 0, factor 'U' must be an int from 0 to 2; got None"),
        (
            pa.table({"S": ["no"], "U": pa.array([None], pa.int8())}),
            "row 0, factor 'U' must be an int from 0 to 2; got None",
        ),
        (np.array([("yes", 1)]), "row 0, factor 'U' must be an int from 0 to 2; got '1'"),
        ([("yes", 1), ("yes", 1, 1)], "row 1 must be a tuple (S, U); got ('yes', 1, 1)"),
        (["yes"], "row 0 must be a tuple (S, U); got 'yes'"),
        ([None], "row 0 must be a tuple (S, U); got None"),
        ([{"S": "yes"}], "row 0 must be a tuple (S, U); got {'S': 'yes'}"),
        ({"S": ["yes"], "u": [1]}, "values must have exactly one column 'U', not 0; got ['S', 'u']"),
        (pa.table({"S": ["yes"]}), "values must have exactly one column 'U', not 0; got ['S']"),
        (
            pd.DataFrame([["yes", 1, 2]], columns=["S", "U", "U"]),
            "values must have exactly one column 'U', not 2; got ['S', 'U', 'U']",
        ),
        (
            pa.table([["yes"], [1], [2]], names=["S", "U", "U"]),
            "values must have exactly one column 'U', not 2; got ['S', 'U', 'U']",
        ),
        ({"S": ["yes"], "U": []}, "values must have columns of equal length; got {'S': 1, 'U': 0}"),
        ({"S": "yes", "U": [1]}, "values['S'] must be a list or a column; got 'yes'"),
    ],
)
def test_bad_rows_of_a_product_are_refused(values: object, message: str) -> None:
    assert refusal(SURVEY.encode, values).partition(". Choose")[0] == f"Domain.encode: {message}"


def test_products_hold_grids_and_products() -> None:
    domain = Domain.product(where=MIAMI, who=SURVEY)
    assert domain.size == 36
    assert domain.label(35) == ((1, 2), ("no", 2))
    assert domain.index(((1, 2), ("no", 2))) == 35
    columns: dict[str, Any] = {"where": {"lat": [25.8], "lon": [-80.1]}, "who": {"S": ["no"], "U": [2]}}
    assert domain.encode(columns).tolist() == [35]
    assert domain.encode([((25.8, -80.1), ("no", 2))]).tolist() == [35]
    nested = {"where": [{"lat": 25.8, "lon": -80.1}], "who": [{"S": "no", "U": 2}]}
    assert domain.encode(pa.table(nested)).tolist() == [35]
    assert domain.encode(pl.DataFrame(nested)).tolist() == [35]
    assert domain.encode_one(((25.8, -80.1), ("no", 2))) == 35
    assert refusal(domain.encode, [((25.8, -80.1), ("no", 3))]) == (
        "Domain.encode: row 0, factor 'who', factor 'U' must be an int from 0 to 2; got 3"
    )
    assert refusal(domain.index, ((2, 0), ("no", 2))) == (
        "Domain.index: label, factor 'where', factor 'row' must be an int from 0 to 1; got 2"
    )


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({}, "factors must be at least two; got []. Use Domain(labels) for a single attribute."),
        ({"S": ["a"]}, "factors must be at least two; got ['S']. Use Domain(labels) for a single attribute."),
        (
            {"S": range(2**16), "U": range(2**16)},
            "factors must have at most 2**31 combinations; got {'S': 65536, 'U': 65536}",
        ),
        ({"S": ["a"], "U": []}, "U must contain from 1 to 2**31 labels; got []"),
        ({"S": ["a"], "U": ["b", "b"]}, "U[0], U[1] must be distinct; got 'b'"),
        ({"S": ["a"], "U": 5}, "U must be a list or a column; got 5"),
        ({"S": "yes", "U": ["b"]}, "S must be a list or a column; got 'yes'"),
    ],
)
def test_bad_products_are_refused(factors: dict[str, Any], message: str) -> None:
    assert refusal(Domain.product, **factors) == f"Domain.product: {message}"


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1, max_size=3), scalars, min_size=2, max_size=3), st.data())
def test_products_round_trip(factors: dict[str, list[Any]], data: st.DataObject) -> None:
    domain = Domain.product(**factors)
    assert domain.size == math.prod(map(len, factors.values()))
    indices = data.draw(st.lists(st.integers(0, domain.size - 1), max_size=5))
    labels = domain.decode(indices)
    assert labels == [domain.label(i) for i in indices]
    assert domain.encode(labels).tolist() == indices
    assert [domain.encode_one(label) for label in labels] == indices
    document = json.loads(json.dumps(domain.to_dict(), sort_keys=True))
    assert Domain.from_dict(document) == domain
    assert list(Domain.from_dict(document).factors) == list(factors)


# Subsets


def test_a_subset_keeps_the_order_asked_for() -> None:
    assert ANSWERS.subset(["unsure", "yes"]) == Domain(["unsure", "yes"])
    assert Domain.range(9).subset(np.array([7, 2])).labels == (7, 2)
    assert Domain.range(9).subset([7.0]).to_dict() == {"values": [7]}
    assert Domain.range(9).subset(range(4)) == Domain.range(4)
    cells = MIAMI.subset([(1, 2), (0, 0)])
    assert cells.kind == "list"
    assert cells.labels == ((1, 2), (0, 0))
    assert cells.to_dict() == {"values": [[1, 2], [0, 0]]}
    assert cells.encode([(0, 0), (1, 2), (1.0, np.int8(2))]).tolist() == [1, 0, 0]
    assert cells.encode_one([0, 0]) == 1
    assert cells.encode(pa.array([[0, 0], [1, 2]])).tolist() == [1, 0]
    assert cells.subset([(0, 0)]).labels == ((0, 0),)


def test_a_subset_of_tuples_is_as_strict() -> None:
    subset = Domain.product(S=[True, False], U=range(2)).subset([(True, 1), (False, 0)])
    assert subset.encode([(False, 0), (True, 1)]).tolist() == [1, 0]
    for stranger in ((1, 1), (True, True), (True, 0), (True,), (True, None), ("True", 1), True, 1):
        assert stranger not in subset
        assert refusal(subset.encode, [(True, 1), stranger]) == (
            f"Domain.encode: row 1 must be one of the tuple labels (True, 1), (False, 0); got {stranger!r}"
        )
    assert "row 0 must" in refusal(subset.encode, np.array([1]))


@pytest.mark.parametrize(
    ("domain", "labels", "message"),
    [
        (
            ANSWERS,
            ["yes", "maybe"],
            "labels[1] must be one of the str labels 'yes', 'no', 'unsure'; got 'maybe'",
        ),
        (ANSWERS, [], "labels must contain from 1 to 2**31 labels; got []"),
        (ANSWERS, ["no", "no"], "labels[0], labels[1] must be distinct; got 'no'"),
        (ANSWERS, "no", "labels must be a list or a column; got 'no'"),
        (Domain.range(4), [1, True], "labels[1] must be an int from 0 to 3; got True"),
        (Domain.range(4), [1, 1.0], "labels[0], labels[1] must be distinct; got 1"),
        (MIAMI, [(0, 3)], "labels[0], factor 'column' must be an int from 0 to 2; got 3"),
        (SURVEY, [("no", 0), ("no", 0)], "labels[0], labels[1] must be distinct; got ('no', 0)"),
    ],
)
def test_bad_subsets_are_refused(domain: Domain, labels: Any, message: str) -> None:
    assert refusal(domain.subset, labels) == f"Domain.subset: {message}"


# Documents


@pytest.mark.parametrize(
    ("domain", "document"),
    [
        (ANSWERS, {"values": ["yes", "no", "unsure"]}),
        (Domain.range(5), {"size": 5}),
        (
            MIAMI,
            {"grid": {"latitude": [25.6, 25.8], "longitude": [-80.4, -80.1], "rows": 2, "columns": 3}},
        ),
        (SURVEY, {"product": {"S": {"values": ["yes", "no"]}, "U": {"size": 3}}, "order": ["S", "U"]}),
    ],
)
def test_documents_are_what_the_format_says(domain: Domain, document: dict[str, Any]) -> None:
    assert domain.to_dict() == document
    assert json.dumps(domain.to_dict()) == json.dumps(document)


def test_a_document_may_leave_out_what_is_plain() -> None:
    assert Domain.from_dict({"product": {"S": ["yes", "no"], "U": {"size": 3}}}) == SURVEY
    turned = {"U": {"size": 3}, "S": ["yes", "no"]}
    assert Domain.from_dict({"product": turned, "order": ["S", "U"]}) == SURVEY
    assert Domain.from_dict({"product": turned}) != SURVEY
    toml = 'product.S = ["yes", "no"]\nproduct.U.size = 3\n'
    assert Domain.from_dict(tomllib.loads(toml)) == SURVEY


VALUES = "document['values']"
KINDS = "'values', 'size', 'low', 'edges', 'grid', 'product', 'file'"
COMPANIONS = "'missing', 'high', 'bins', 'step', 'closed', 'out_of_range', 'order', 'column', 'delimiter', 'encoding'"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([1, 2], "document must be a mapping; got [1, 2]"),
        ({}, f"document must have exactly one of the keys {KINDS}; got []"),
        (
            {"valeus": ["a"]},
            f"document key must be one of {KINDS}, {COMPANIONS} (did you mean 'values'?); got 'valeus'",
        ),
        ({"zzz": 1}, f"document key must be one of {KINDS}, {COMPANIONS}; got 'zzz'"),
        (
            {"size": 3, "values": [1]},
            f"document must have exactly one of the keys {KINDS}; got ['size', 'values']",
        ),
        ({"order": ["a"]}, f"document must have exactly one of the keys {KINDS}; got ['order']"),
        ({"size": 3, "order": []}, "document key must be one of 'size', 'missing'; got 'order'"),
        ({"size": 3.0}, "document['size'] must be an int from 1 to 2**31; got 3.0"),
        ({"values": "abc"}, "document['values'] must be a list of labels; got 'abc'"),
        ({"values": []}, "document['values'] must contain from 1 to 2**31 labels; got []"),
        ({"values": ["a", "a"]}, "document['values'][0], document['values'][1] must be distinct; got 'a'"),
        (
            {"values": [[1, "a"], [1, 2]]},
            f"{VALUES}[1] must be a tuple of ('int', 'str'), like {VALUES}[0]; got [1, 2]",
        ),
        (
            {"values": [[1, None]]},
            f"{VALUES}[0] must be a str, an int, a bool or a finite float, or a tuple of these; got [1, None]",
        ),
        (
            {"values": [[]]},
            f"{VALUES}[0] must be a str, an int, a bool or a finite float, or a tuple of these; got []",
        ),
        ({"grid": 3}, "document['grid'] must be a mapping; got 3"),
        (
            {"grid": {"latitude": [0, 1], "rows": 2}},
            "document['grid'] must have the keys 'longitude', 'columns'; got ['latitude', 'rows']",
        ),
        (
            {"grid": {"lattitude": [0, 1]}},
            "document['grid'] key must be one of 'latitude', 'longitude', 'rows', 'columns' "
            "(did you mean 'latitude'?); got 'lattitude'",
        ),
        (
            {"grid": {"latitude": [1, 0], "longitude": [0, 1], "rows": 1, "columns": 1}},
            "document['grid']['latitude'] must be two ascending numbers from -90 to 90; got [1, 0]",
        ),
        ({"product": ["S"]}, "document['product'] must be a mapping from factor names to domains; got ['S']"),
        (
            {"product": {"S": ["a"]}},
            "document['product'] must be at least two; got ['S']. Use Domain(labels) for a single attribute.",
        ),
        (
            {"product": {"S": ["a"], "U": {"siez": 3}}},
            f"document['product']['U'] key must be one of {KINDS}, {COMPANIONS} (did you mean 'size'?); got 'siez'",
        ),
        ({"product": {"S": ["a"], "U": 3}}, "document['product']['U'] must be a mapping; got 3"),
        (
            {"product": {"S": ["a"], "U": ["b"]}, "order": ["S"]},
            "document['order'] must name each of the factors 'S', 'U' once; got ['S']",
        ),
        (
            {"product": {"S": ["a"], "U": ["b"]}, "order": ["S", "U", "S"]},
            "document['order'] must name each of the factors 'S', 'U' once; got ['S', 'U', 'S']",
        ),
        (
            {"product": {"S": ["a"], "U": ["b"]}, "order": "SU"},
            "document['order'] must name each of the factors 'S', 'U' once; got 'SU'",
        ),
        (
            {"file": "a.txt"},
            "document['file'] must come with base=, the folder that contains the file; got 'a.txt'",
        ),
    ],
)
def test_bad_documents_are_refused(document: Any, message: str) -> None:
    assert refusal(Domain.from_dict, document) == f"Domain.from_dict: {message}"


def test_documents_do_not_share_state() -> None:
    document = ANSWERS.to_dict()
    document["values"].append("more")
    assert ANSWERS.to_dict() == {"values": ["yes", "no", "unsure"]}


# Files


def test_a_text_file_holds_a_label_a_line(tmp_path: Path) -> None:
    (tmp_path / "pages.txt").write_bytes("\ufeffhome\r\nabout, us\r\n\r\n two\u2028words \n".encode())
    domain = Domain.from_dict({"file": "pages.txt"}, base=tmp_path)
    assert domain.labels == ("home", "about, us", " two\u2028words ")
    assert domain.to_dict() == {"values": ["home", "about, us", " two\u2028words "]}


def test_a_csv_file_holds_labels_in_a_column(tmp_path: Path) -> None:
    (tmp_path / "pages.csv").write_bytes(b'id,page\n1,home\n2,"about, us"\n\n3,"two\nlines"\n')
    (tmp_path / "one.CSV").write_bytes(b'page\nhome\n"about, us"\n')
    (tmp_path / "folder").mkdir()
    by_name = Domain.from_dict({"file": "pages.csv", "column": "page"}, base=tmp_path)
    assert by_name.labels == ("home", "about, us", "two\nlines")
    assert Domain.from_dict({"file": "pages.csv", "column": "id"}, base=str(tmp_path)).labels == (
        "1",
        "2",
        "3",
    )
    assert Domain.from_dict({"file": "one.CSV"}, base=tmp_path).labels == ("home", "about, us")
    assert Domain.from_dict({"file": "../one.CSV"}, base=tmp_path / "folder").labels == ("home", "about, us")
    document: dict[str, Any] = {"product": {"S": ["a"], "U": {"file": "one.CSV", "column": "page"}}}
    assert Domain.from_dict(document, base=tmp_path).labels == (("a", "home"), ("a", "about, us"))


@pytest.mark.parametrize(
    ("content", "document", "message"),
    [
        (
            b"a\nb\na\n",
            {"file": "f.txt"},
            "document['file'][0], document['file'][2] must be distinct; got 'a'",
        ),
        (b"\n", {"file": "f.txt"}, "document['file'] must contain from 1 to 2**31 labels; got []"),
        (b"\xff\xfe", {"file": "f.txt"}, "f.txt: the file must have the encoding utf-8; got UTF-16 text"),
        (
            b"a",
            {"file": "g.txt"},
            "document['file'] must be a readable file (",
        ),
        (b"a", {"file": 3}, "document['file'] must be a path relative to base; got 3"),
        (b"a", {"file": "/etc/hosts"}, "document['file'] must be a path relative to base; got '/etc/hosts'"),
        (b"a", {"file": "f.txt", "column": 0}, "document['file'] column must be the name of a column; got 0"),
        (
            b"x,y\n1,2\n",
            {"file": "f.csv"},
            "document['file'] column must be named, because this CSV file does not have exactly one column; "
            "got ['x', 'y']",
        ),
        (
            b"x,y\n1,2\n",
            {"file": "f.csv", "column": "z"},
            "document['file'] column must occur once in the header ['x', 'y']; got 'z'",
        ),
        (
            b"x,x\n1,2\n",
            {"file": "f.csv", "column": "x"},
            "document['file'] column must occur once in the header ['x', 'x']; got 'x'",
        ),
        (
            b"x,y\n1,2\n3\n",
            {"file": "f.csv", "column": "x"},
            "f.csv: line 3 must have 2 cells, one per column of the header; got 1 cell",
        ),
        (
            b"x,y\n,2\n",
            {"file": "f.csv", "column": "x"},
            "f.csv: line 2 must have a label in the column 'x'; got an empty cell",
        ),
        (b'x\n"a" b\n', {"file": "f.csv"}, "f.csv: line 2 must be well-formed delimited text; got"),
        (
            b"a",
            {"file": "f.txt", "colunm": "x"},
            f"document key must be one of {KINDS}, {COMPANIONS} (did you mean 'column'?); got 'colunm'",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, document: Any, message: str) -> None:
    for name in ("f.txt", "f.csv"):
        (tmp_path / name).write_bytes(content)
    subject = f"{tmp_path}/" if message.startswith("f.") else "Domain.from_dict: "
    assert refusal(Domain.from_dict, document, base=tmp_path).startswith(f"{subject}{message}")
