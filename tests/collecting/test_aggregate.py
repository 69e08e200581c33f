"""The verb `aggregate`: counts are exact, merge in any order, and come back from their documents."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato.collecting.aggregates import Aggregate
from sfumato.collecting.batch import encode_batch
from sfumato.collecting.files import read_reports, write_reports
from sfumato.errors import InvalidInput, LimitExceeded, UnknownSpec
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

FEW = sf.Domain.range(5)
MECHANISMS: dict[str, Mechanism] = {
    "response": RandomizedResponse(FEW, 1),
    "unary": UnaryEncoding(FEW, 1),
    "unary, 70 bits": UnaryEncoding(sf.Domain.range(70), 1, optimized=True),
    "subset": SubsetSelection(FEW, 1, 2),
    "subset, 70 bits": SubsetSelection(sf.Domain.range(70), 1),
    "hadamard": HadamardResponse(FEW, 1),
    "hadamard, blocks": HadamardResponse(FEW, 3, block_size=4, blocks=3),
    "cyclic": CyclicDesign(FEW, 1),
    "table": TableMechanism.from_matrix(FEW, RandomizedResponse(FEW, 1).matrix()),
    "table, 0 bits": TableMechanism(sf.Domain.range(2), [[2**62], [2**62]]),
}

Array = npt.NDArray[Any]


@pytest.fixture(params=MECHANISMS, ids=lambda name: name.replace(", ", "-").replace(" ", "-"))
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return MECHANISMS[request.param]


@functools.cache
def reports_of(name: str, seed: int, count: int) -> Array:
    mechanism = MECHANISMS[name]
    values = np.random.default_rng(seed).integers(0, len(mechanism.domain), count)
    reports: Array = sf.privatize(mechanism, values, stream=sf.InsecureSeeded(seed))
    return reports


def some_reports(mechanism: Mechanism, count: int, seed: int = 1) -> Array:
    return reports_of(next(name for name, m in MECHANISMS.items() if m is mechanism), seed, count)


def counted_one_by_one(mechanism: Mechanism, reports: Array) -> list[int]:
    if not mechanism.report_format.shape:
        return [sum(int(report) == output for report in reports) for output in range(mechanism.outputs)]
    numbers = [int.from_bytes(row.tobytes(), "little") for row in reports]
    return [sum(number >> bit & 1 for number in numbers) for bit in range(mechanism.bits)]


# -- counting ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 300])
def test_counts_are_those_of_counting_one_by_one(mechanism: Mechanism, count: int) -> None:
    reports = some_reports(mechanism, count)
    aggregate = sf.aggregate(mechanism, reports)
    assert aggregate.n == count
    assert aggregate.mechanism_hash == mechanism.hash
    assert aggregate.counts.dtype == np.int64
    assert aggregate.counts.tolist() == counted_one_by_one(mechanism, reports)


@pytest.mark.slow
def test_counts_of_many_reports_are_exact() -> None:
    mechanism = MECHANISMS["unary, 70 bits"]
    count = 2**18 + 7  # more than is counted at once
    bits = np.random.default_rng(1).integers(0, 2, (count, 70), np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert sf.aggregate(mechanism, packed).counts.tolist() == bits.sum(axis=0, dtype=np.int64).tolist()
    response = MECHANISMS["response"]
    indices = np.random.default_rng(2).integers(0, 5, count)
    assert sf.aggregate(response, indices).counts.tolist() == [int((indices == y).sum()) for y in range(5)]


def test_reports_may_come_in_pieces(mechanism: Mechanism) -> None:
    reports = some_reports(mechanism, 300)
    pieces = iter([reports[:1], reports[1:1], reports[1:200], reports[200:]])
    assert sf.aggregate(mechanism, pieces) == sf.aggregate(mechanism, reports)
    assert sf.aggregate(mechanism, iter([])) == Aggregate.empty(mechanism)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".sfb"])
def test_a_file_is_counted_like_its_reports(mechanism: Mechanism, suffix: str, tmp_path: Path) -> None:
    reports = some_reports(mechanism, 300)
    path = tmp_path / f"reports{suffix}"
    write_reports(mechanism, reports, path)
    assert sf.aggregate(mechanism, read_reports(mechanism, path)) == sf.aggregate(mechanism, reports)


def test_a_bad_report_is_refused_with_its_row_and_nothing_is_counted() -> None:
    mechanism = MECHANISMS["response"]
    before = sf.aggregate(mechanism, [1, 2])
    with pytest.raises(InvalidInput, match="row 4 must be in 0 … 4; got 5"):
        before.accumulate(mechanism, iter([np.array([1, 1, 1]), np.array([2, 5])]))
    assert before == sf.aggregate(mechanism, [1, 2])


def test_reports_of_large_types_are_counted() -> None:
    mechanism = HadamardResponse(FEW, 1, block_size=2**16, blocks=2)
    reports = np.array([0, 2**17 - 1, 2**17 - 1], np.uint64)
    assert np.flatnonzero(sf.aggregate(mechanism, reports).counts).tolist() == [0, 2**17 - 1]


def test_more_counts_than_fit_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="6,442,450,944 counts"):
        sf.aggregate(HadamardResponse(FEW, 1, block_size=2**31, blocks=3), [1])


# -- merging -------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(sorted(MECHANISMS))
PARTS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40)), min_size=1, max_size=5)


@given(name=NAMES, parts=PARTS, data=st.data())
def test_merging_in_any_order_and_grouping_counts_all_reports(
    name: str, parts: list[tuple[int, int]], data: st.DataObject
) -> None:
    mechanism = MECHANISMS[name]
    pieces = [reports_of(name, seed, 40)[:length] for seed, length in parts]
    whole = sf.aggregate(mechanism, np.concatenate(pieces))
    aggregates = data.draw(st.permutations([sf.aggregate(mechanism, piece) for piece in pieces]))
    while len(aggregates) > 1:  # any two neighbours next
        i = data.draw(st.integers(0, len(aggregates) - 2))
        aggregates[i : i + 2] = [aggregates[i].merge(aggregates[i + 1])]
    assert aggregates[0] == whole
    assert aggregates[0].to_bytes() == whole.to_bytes()
    assert aggregates[0].to_json() == whole.to_json()


@given(name=NAMES, first=st.integers(0, 40), second=st.integers(0, 40))
def test_empty_is_the_identity_and_accumulate_is_merge(name: str, first: int, second: int) -> None:
    mechanism = MECHANISMS[name]
    a, b = reports_of(name, 1, 40)[:first], reports_of(name, 2, 40)[:second]
    one, empty = sf.aggregate(mechanism, a), Aggregate.empty(mechanism)
    assert one.merge(empty) == one == empty.merge(one)
    assert one.accumulate(mechanism, b) == one.merge(sf.aggregate(mechanism, b))


ROWS = st.lists(st.integers(0, 2**59), min_size=5, max_size=5)


@given(st.lists(ROWS, min_size=1, max_size=3))
def test_large_counts_merge_exactly(rows: list[list[int]]) -> None:
    mechanism = MECHANISMS["response"]
    merged = functools.reduce(Aggregate.merge, [Aggregate(mechanism.hash, sum(row), np.array(row)) for row in rows])
    assert merged.counts.tolist() == [sum(column) for column in zip(*rows, strict=True)]
    merged.check(mechanism)


def test_counts_that_would_overflow_are_refused() -> None:
    mechanism = MECHANISMS["response"]
    half = Aggregate(mechanism.hash, 2**62, np.array([2**62, 0, 0, 0, 0]))
    assert half.merge(Aggregate(mechanism.hash, 2**62 - 1, np.array([2**62 - 1, 0, 0, 0, 0]))).n == 2**63 - 1
    with pytest.raises(InvalidInput, match="n must be an integer in"):
        half.merge(half)


def test_other_mechanisms_are_refused() -> None:
    one, other = MECHANISMS["response"], RandomizedResponse(FEW, 2)
    mine, theirs = sf.aggregate(one, [1, 2]), sf.aggregate(other, [1, 2])
    for refused in (
        lambda: mine.merge(theirs),
        lambda: mine.accumulate(other, [1]),
        lambda: mine.check(other),
        lambda: sf.estimate(other, mine),
    ):
        with pytest.raises(InvalidInput, match=r"the mechanism hash must be .*The counts belong to another mechanism"):
            refused()
    assert mine != theirs


# -- immutable ----------------------------------------------------------------------------------------------


def test_an_aggregate_does_not_change() -> None:
    mechanism = MECHANISMS["response"]
    given_counts = np.array([1, 0, 0, 0, 1])
    aggregate = Aggregate(mechanism.hash, 2, given_counts)
    given_counts[0] = 100
    assert aggregate.counts.tolist() == [1, 0, 0, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        aggregate.counts[0] = 3
    with pytest.raises(AttributeError):
        aggregate.n = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="unhashable"):
        hash(aggregate)
    assert aggregate != "something else"


# -- documents ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 40])
def test_documents_come_back(mechanism: Mechanism, count: int) -> None:
    aggregate = sf.aggregate(mechanism, some_reports(mechanism, 40)[:count])
    assert Aggregate.from_json(aggregate.to_json()) == aggregate
    assert Aggregate.from_json(aggregate.to_json().encode()) == aggregate
    assert Aggregate.from_bytes(aggregate.to_bytes()) == aggregate
    assert Aggregate.from_bytes(aggregate.to_bytes()).counts.tolist() == aggregate.counts.tolist()


def test_the_binary_form_is_what_the_page_says() -> None:
    mechanism = MECHANISMS["response"]
    data = sf.aggregate(mechanism, [4, 4, 0]).to_bytes()
    assert data[:8] == b"SFAG\x01\0\0\0"
    assert data[8:40].hex() == mechanism.hash
    assert [int.from_bytes(data[i : i + 8], "little") for i in range(40, len(data), 8)] == [3, 1, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "sfumato-policy"}, "must be an aggregate; got a policy"),
        ({"version": 2}, "the key 'version' must be 1; got 2"),
        ({"version": True}, "the key 'version' must be 1; got True"),
        ({"mechanism_hash": "abc"}, "hash must be 64 hexadecimal digits"),
        ({"mechanism_hash": "A" * 64}, "hash must be 64 hexadecimal digits"),
        ({"mechanism_hash": 5}, "hash must be 64 hexadecimal digits"),
        ({"mechanism_hash": None}, "hash must be 64 hexadecimal digits"),
        ({"n": -1}, "n must be an integer"),
        ({"n": 2.0}, "n must be an integer"),
        ({"n": True}, "n must be an integer"),
        ({"n": "2"}, "n must be an integer"),
        ({"n": 2**63}, "n must be an integer"),
        ({"n": 1}, r"every count must be in \[0, n = 1\]; got 2"),
        ({"counts": [1.0, 1, 0, 0, 0]}, "counts must be integers"),
        ({"counts": [True, 1, 0, 0, 0]}, "counts must be integers"),
        ({"counts": [-1, 1, 0, 0, 0]}, "counts must be integers"),
        ({"counts": [2**63, 1, 0, 0, 0]}, "counts must be integers"),
        ({"counts": [[1], 1]}, "counts must be integers"),
        ({"counts": {"0": 1}}, "counts must be integers"),
        ({"counts": None}, "counts must be integers"),
        ({"more": 1}, "document key must be one of"),
    ],
    ids=str,
)
def test_a_tampered_document_is_refused(change: dict[str, Any], message: str) -> None:
    document = json.loads(sf.aggregate(MECHANISMS["response"], [1, 1, 3]).to_json())
    with pytest.raises(InvalidInput, match=message):
        Aggregate.from_json(json.dumps({**document, **change}))


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "null", '"x"', '{"format": "sfumato-aggregate"}', b"\xff"])
def test_what_is_no_document_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidInput, match="an aggregate"):
        Aggregate.from_json(text)


def test_reports_in_place_of_their_counts_are_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"the document must be JSON.*Use the output of Aggregate\.to_json"):
        Aggregate.from_json(encode_batch(MECHANISMS["response"], np.array([1, 1, 3])))


def test_tampered_bytes_are_refused() -> None:
    data = sf.aggregate(MECHANISMS["response"], [1, 1, 3]).to_bytes()
    for wrong, message in (
        (b"", "first four bytes"),
        (b"SFUM" + data[4:], "first four bytes"),
        (data[:40], "length must be a multiple of 8"),
        (data[:-1], "length must be a multiple of 8"),
        (data + b"\0", "length must be a multiple of 8"),
        (data[:5] + b"\x01" + data[6:], "bytes 5 to 7"),
        (data[:40] + b"\xff" * 8 + data[48:], "n must be an integer"),
        (data[:-8] + b"\xff" * 8, "every count must be in"),
        (data[:-8] + b"\x04" + bytes(7), "every count must be in"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Aggregate.from_bytes(wrong)
    with pytest.raises(UnknownSpec, match="its format version must be 1; got 9"):
        Aggregate.from_bytes(data[:4] + b"\x09" + data[5:])


@given(data=st.data())
def test_damaged_bytes_are_refused_or_another_aggregate(data: st.DataObject) -> None:
    good = sf.aggregate(MECHANISMS["unary"], reports_of("unary", 1, 40)).to_bytes()
    at, patch = data.draw(st.integers(0, len(good))), data.draw(st.binary(max_size=9))
    damaged = good[:at] + patch + good[at + len(patch) :]
    try:
        read = Aggregate.from_bytes(damaged)
    except InvalidInput:
        return
    assert read.to_bytes() == damaged


# -- counts of no possible reports --------------------------------------------------------------------------


def test_counts_that_no_reports_have_are_refused() -> None:
    response, subset = MECHANISMS["response"], MECHANISMS["subset"]
    with pytest.raises(InvalidInput, match="counts must have 5 entries; got 4"):
        Aggregate(response.hash, 3, np.array([1, 1, 1, 0])).check(response)
    with pytest.raises(InvalidInput, match="counts must sum to 3, 1 for each of 3 reports; got 2"):
        Aggregate(response.hash, 3, np.array([1, 1, 0, 0, 0])).check(response)
    with pytest.raises(InvalidInput, match="counts must sum to 6, 2 for each of 3 reports; got 5"):
        Aggregate(subset.hash, 3, np.array([2, 2, 1, 0, 0])).check(subset)
    Aggregate(subset.hash, 3, np.array([2, 2, 1, 1, 0])).check(subset)
    Aggregate(MECHANISMS["unary"].hash, 3, np.array([3, 0, 1, 1, 0])).check(MECHANISMS["unary"])
    huge = 2**62  # whose sum wraps around to n in 64 bits
    with pytest.raises(InvalidInput, match="counts must sum to"):
        Aggregate(response.hash, huge, np.array([huge, huge, huge, huge, huge])).check(response)


def test_aggregates_of_other_lengths_do_not_merge() -> None:
    mechanism = MECHANISMS["response"]
    short = Aggregate(mechanism.hash, 3, np.array([3]))  # which numpy would add to every count
    with pytest.raises(InvalidInput, match="the other counts must have 5 entries; got 1"):
        Aggregate.empty(mechanism).merge(short)
    with pytest.raises(InvalidInput, match="the other counts must have 1 entry; got 5"):
        short.merge(Aggregate.empty(mechanism))


@pytest.mark.parametrize(
    "counts", [np.array([1.0, 2]), np.array([[1, 2]]), np.array([1, 2], np.uint8), (1, 2), "12", None], ids=repr
)
def test_what_is_no_row_of_counts_is_refused(counts: Any) -> None:
    with pytest.raises(InvalidInput, match="counts must be"):
        Aggregate("0" * 64, 3, counts)
