"""Domains of numbers: bins with exact edges, the same index from every kind of column, clipping and missing values."""

from __future__ import annotations

import csv
import itertools
import json
import math
import tomllib
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import sfumato as sf
from sfumato._core import canonical_json
from sfumato.device.values import read_values
from sfumato.domain import Domain
from support import ROOT
from support.reference import refusal

VECTORS: list[dict[str, Any]] = json.loads((ROOT / "vectors/documents/numbers.json").read_text(encoding="utf-8"))
AGES = Domain.range(17, 91)
PAY = Domain.numbers(0, 200_000, bins=4)


def place(domain: Domain, value: object) -> int:
    """Return the index of a value, or -1 if the domain rejects it."""
    try:
        return domain.encode_one(value)
    except sf.errors.InvalidInput:
        return -1


# -- shared vectors ------------------------------------------------------------------------------------------

vectors = pytest.mark.parametrize("vector", VECTORS, ids=range(len(VECTORS)))
#: A column of numbers in every form; NaN is a missing value in all of them.
COLUMNS: dict[str, Callable[[list[float]], Any]] = {
    "list": list,
    "numpy": np.array,
    "numpy objects": lambda values: np.array(values, dtype=object),
    "decimals": lambda values: [Decimal(value) for value in values],
    "pandas": pd.Series,
    "pandas nullable": lambda values: pd.Series(values, dtype="Float64"),
    "pandas categorical": lambda values: pd.Series(values).astype("category"),
    "arrow": pa.array,
    "arrow nulls": lambda values: pa.array([None if math.isnan(value) else value for value in values]),
    "arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "polars": pl.Series,
}


@vectors
def test_documents_hashes_and_labels(vector: dict[str, Any]) -> None:
    mechanism = sf.mechanism_from_spec(json.loads(vector["mechanism"]))
    assert mechanism.hash == vector["hash"]
    assert canonical_json(mechanism.spec) == vector["mechanism"]
    assert canonical_json(sf.policy_from_dict(json.loads(vector["policy"])).to_dict()) == vector["policy"]
    assert json.loads(json.dumps(list(mechanism.domain))) == vector["labels"]
    assert mechanism.domain.encode(vector["labels"]).tolist() == list(range(len(vector["labels"])))


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if '"values":' not in vector["policy"]])
@pytest.mark.parametrize("form", COLUMNS)
def test_a_number_has_the_same_index_in_every_column(vector: dict[str, Any], form: str) -> None:
    domain = Domain.from_dict(json.loads(vector["policy"])["domain"])
    cases = {text: index for text, index in vector["cases"] if text is not None}
    known = [(float(text), index) for text, index in cases.items() if index >= 0]
    values, indices = zip(*known, strict=True)
    assert domain.encode(COLUMNS[form](list(values))).tolist() == list(indices)
    assert [place(domain, float(text)) for text in cases] == list(cases.values())
    assert place(domain, None) == dict(map(tuple, vector["cases"]))[None]
    for text in (text for text, index in cases.items() if index < 0):
        assert "row 0" in refusal(domain.encode, COLUMNS[form]([float(text)]))


@vectors
def test_a_number_has_the_same_index_in_a_file(vector: dict[str, Any], tmp_path: Path) -> None:
    domain = Domain.from_dict(json.loads(vector["policy"])["domain"])
    cells = [(text, index) for text, index in vector["cases"] if index >= 0 and text not in (None, "NaN")]
    cells += [(str(label), i) for i, label in enumerate(domain.labels)]
    if domain.missing is not None:
        cells.append(("", domain.index(domain.missing)))
    path = tmp_path / "values.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["number", "row"], *([text, row] for row, (text, _) in enumerate(cells))])
    (piece,) = read_values(path, "number", domain=domain)
    assert domain.encode(piece).tolist() == [index for _, index in cells]


def test_files_reject_what_is_not_a_number(tmp_path: Path) -> None:
    path = tmp_path / "values.csv"
    for cell in ("", "NaN", "12 000", "1_000", "0x10", "[0, 1)"):
        path.write_text(f'pay,row\n"{cell}",0\n')
        assert "line 2, column 'pay' must be a number or the label of a bin" in refusal(
            list, read_values(path, "pay", domain=PAY)
        )
    path.write_text('pay,row\n"",0\n')
    assert "missing='unknown'" in refusal(list, read_values(path, "pay", domain=PAY))
    ages = Domain.range(17, 91, missing="unknown")
    path.write_text("age,row\n36.0,0\n102,1\n,2\n-inf,3\n")  # as pandas writes a column with a missing value
    (piece,) = read_values(path, "age", domain=ages)
    assert ages.decode(ages.encode(piece)) == [36, 90, "unknown", 17]


def test_values_of_several_columns_may_be_missing(tmp_path: Path) -> None:
    domain = Domain.product(age=Domain.range(17, 91, missing="unknown"), pay=PAY)
    path = tmp_path / "values.csv"
    path.write_text("age,pay\n,1e6\n18,50000\n")
    (piece,) = read_values(path, domain=domain)
    assert domain.decode(domain.encode(piece)) == [("unknown", "[150000, 200000]"), (18, "[50000, 100000)")]
    frame = pd.DataFrame({"age": [None, 18.0], "pay": [1e6, 5e4]})
    assert domain.encode(frame).tolist() == domain.encode(piece).tolist()


# -- edges ---------------------------------------------------------------------------------------------------


@given(st.integers(-50, 50), st.integers(1, 60), st.sampled_from([1, 10, 1000]), st.data())
def test_edges_do_not_drift(start: int, bins: int, unit: int, data: st.DataObject) -> None:
    """A decimal on an edge belongs to the bin that begins there, however many steps lead to it."""
    low, step = Fraction(start, unit), Fraction(1, unit)
    domain = Domain.numbers(low, low + bins * step, step=step)
    assert domain.size == bins
    index = data.draw(st.integers(0, bins - 1))
    assert domain.encode_one(float(low + index * step)) == index
    assert domain.encode_one(Decimal(start + index) / unit) == index
    assert domain.encode_one(math.nextafter(float(low + index * step), -math.inf)) == max(index - 1, 0)
    assert domain == Domain.numbers(edges=[low + i * step for i in range(bins + 1)])
    assert domain.to_dict() == Domain.numbers(str(low), float(low + bins * step), bins=bins).to_dict()
    assert Domain.from_dict(domain.to_dict()) == domain


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True), st.sampled_from(["left", "right"]))
def test_bins_contain_what_their_labels_say(numbers: list[float], closed: Any) -> None:
    edges = sorted({float(f"{number:.9f}") for number in numbers})
    if len(edges) < 2:
        return
    domain = Domain.numbers(edges=edges, closed=closed)
    for value in [*edges, *map(sum, itertools.pairwise(edges))]:
        label = str(domain.label(domain.encode_one(value)))
        low, high = (float(part) for part in label[1:-1].split(", "))
        value = min(max(value, edges[0]), edges[-1])
        assert low < value or (label[0] == "[" and low == value)
        assert value < high or (label[-1] == "]" and high == value)
    assert domain.labels[0][0] == "["  # type: ignore[index]
    assert domain.labels[-1][-1] == "]"  # type: ignore[index]


def test_labels_are_short() -> None:
    assert Domain.numbers(0, 1, bins=3).labels == ("[0, 1/3)", "[1/3, 2/3)", "[2/3, 1]")
    assert Domain.numbers(-0.5, 1e-7, bins=1).labels == ("[-0.5, 0.0000001]",)
    assert Domain.numbers("1.50", 100, bins=1, closed="right").labels == ("[1.5, 100]",)
    assert Domain.numbers(0, 4, step=2, closed="right").labels == ("[0, 2]", "(2, 4]")
    assert repr(Domain.numbers("1/3", 2.5, bins=2, out_of_range="refuse", missing="?")) == (
        "Domain.numbers('1/3', 2.5, bins=2, out_of_range='refuse', missing='?')"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low": 0, "high": 1}, "bins must be given, or step or edges; got None"),
        ({"low": 0, "high": 1, "bins": 2, "step": 1}, "bins must be given, or step, but not both; got 2"),
        ({"low": 1, "high": 1, "bins": 2}, "high must be greater than the lower bound 1; got 1"),
        ({"low": 0, "high": math.inf, "bins": 2}, "high must be a finite number; got inf"),
        ({"low": True, "high": 3, "bins": 2}, "low must be a finite number; got True"),
        (
            {"low": 0, "high": 1e300, "bins": 2},
            "high must be a number from -2**53 to 2**53 with at most 30 decimal places",
        ),
        ({"low": 0, "high": 1, "bins": 0}, "bins must be an int from 1 to 1048576; got 0"),
        ({"low": 0, "high": 1, "bins": 2.0}, "bins must be an int from 1 to 1048576; got 2.0"),
        (
            {"low": 0, "high": 1, "step": 0.3},
            "step must be positive and divide the distance 1 of the bounds; got 0.3. Choose",
        ),
        ({"low": 2**53 - 1, "high": 2**53, "bins": 9}, "bins must leave each bin wider than floats can resolve; got 9"),
        ({"edges": [1]}, "edges must be at least two ascending numbers; got [1]"),
        ({"edges": [1, 3, 2]}, "edges must be at least two ascending numbers; got [1, 3, 2]"),
        ({"edges": "12"}, "edges must be a list of numbers; got '12'"),
        ({"edges": [1, "x"]}, "edges[1] must be a finite number; got 'x'"),
        ({"edges": [1, 2], "low": 0}, "edges must come without low, high, bins and step"),
        ({"low": 0, "high": 1, "bins": 2, "closed": "both"}, "closed must be 'left' or 'right'; got 'both'"),
        (
            {"low": 0, "high": 1, "bins": 2, "out_of_range": "drop"},
            "out_of_range must be 'clip' or 'refuse'; got 'drop'",
        ),
        (
            {"low": 0, "high": 1, "bins": 2, "missing": ""},
            "missing must be a label for missing values: a str that is not",
        ),
        (
            {"low": 0, "high": 1, "bins": 1, "missing": "[0, 1]"},
            "missing must differ from the other labels; got '[0, 1]'",
        ),
    ],
)
def test_bad_bins_are_refused(arguments: dict[str, Any], message: str) -> None:
    assert refusal(Domain.numbers, **arguments).startswith(f"Domain.numbers: {message}")


# -- ranges --------------------------------------------------------------------------------------------------


def test_ranges_with_two_bounds() -> None:
    assert AGES.labels == tuple(range(17, 91))
    assert AGES.to_dict() == {"low": 17, "high": 91}
    assert AGES.kind == "range"
    assert AGES.encode([17, 90, 3, 1000, -math.inf, 90.5, 2**70]).tolist() == [0, 73, 0, 73, 0, 73, 73]
    assert AGES.decode_array([0, 73]).tolist() == [17, 90]
    for column in (np.array([0, 255], np.uint8), np.array([2**64 - 1], np.uint64), np.array([-128], np.int8)):
        assert AGES.encode(column).tolist() == AGES.encode(column.tolist()).tolist()
    assert 91 not in AGES
    assert "row 0 must be an int from 17 to 90; got 36.5" in refusal(AGES.encode, [36.5])
    assert "row 1 must be an int from 17 to 90; got None" in refusal(AGES.encode, [17, None])
    strict = Domain.range(17, 91, out_of_range="refuse")
    assert "row 0 must be an int from 17 to 90; got 91" in refusal(strict.encode, [91])
    assert "row 0" in refusal(strict.encode, np.array([91.0]))


def test_ranges_from_zero_keep_their_document() -> None:
    assert Domain.range(5).to_dict() == {"size": 5}
    assert Domain.range(0, 5, out_of_range="refuse") == Domain.range(5) == Domain(range(5))
    assert Domain.range(5, out_of_range="clip") == Domain.range(0, 5) != Domain.range(5)
    assert "got 5" in refusal(Domain.range(5).encode_one, 5)
    assert Domain.range(0, 5).encode_one(5) == 4


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((5, 5), "high must be greater than the first label 5, by at most 2**31; got 5"),
        ((0, 2**31 + 1), "high must be greater than the first label 0, by at most 2**31; got 2147483649"),
        ((0.5, 5), "k must be an int between -2**53 and 2**53; got 0.5"),
        ((0, "5"), "high must be an int between -2**53 and 2**53; got '5'"),
    ],
)
def test_bad_ranges_are_refused(bounds: tuple[Any, Any], message: str) -> None:
    assert refusal(Domain.range, *bounds) == f"Domain.range: {message}"


# -- missing values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [None, math.nan, np.float32("nan"), Decimal("NaN"), pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize(
    "domain",
    [
        Domain(["yes", "no"], missing="unknown"),
        Domain([1, 2], missing="unknown"),
        Domain.range(5, missing="unknown"),
        Domain.range(17, 91, missing="unknown"),
        Domain.numbers(0, 1, bins=2, missing="unknown"),
    ],
    ids=repr,
)
def test_missing_values_have_an_index_if_they_have_a_label(domain: Domain, missing: object) -> None:
    known = domain.label(0)
    assert domain.missing == domain.labels[-1] == "unknown"
    assert domain.encode([known, missing, "unknown"]).tolist() == [0, domain.size - 1, domain.size - 1]
    assert domain.encode_one(missing) == domain.size - 1
    assert missing not in domain
    assert domain.decode_array([0, domain.size - 1]).tolist() == [known, "unknown"]
    document = {key: value for key, value in domain.to_dict().items() if key != "missing"}
    if domain.kind == "list":
        document["values"].pop()
    assert "row 1" in refusal(Domain.from_dict(document).encode, [known, missing])


def test_a_column_of_strings_with_nulls() -> None:
    domain = Domain(["yes", "no"], missing="unknown")
    for column in (pd.Series(["no", None], dtype="string"), pa.array(["no", None]), pl.Series(["no", None])):
        assert domain.encode(column).tolist() == [1, 2]
    assert domain.to_dict() == {"values": ["yes", "no", "unknown"], "missing": "unknown"}
    assert Domain.from_dict({"values": ["yes", "no"], "missing": "unknown"}) == domain
    assert domain != Domain(["yes", "no", "unknown"])
    assert domain.subset(["no", "unknown"]) == Domain(["no"], missing="unknown")
    ages = Domain.range(17, 91, missing="?")
    assert ages.subset([20, "?"]) == Domain([20], missing="?")
    assert "labels must have '?' last, the label of missing values; got ['?', 20]" in refusal(ages.subset, ["?", 20])


def test_frequencies_of_missing_values_are_found_under_nan() -> None:
    domain = Domain.range(3, missing="unknown")
    shares = pd.Series([0, 1, 1, 2, None]).value_counts(normalize=True, dropna=False)
    assert sf.Prior(domain, shares, 1).prior == (Fraction(1, 5), Fraction(2, 5), Fraction(1, 5), Fraction(1, 5))


@pytest.mark.parametrize("missing", ["", 3, True])
def test_bad_labels_of_missing_values_are_refused(missing: Any) -> None:
    assert refusal(Domain, ["a"], missing=missing).startswith("Domain: missing must be a label for missing values")
    grid = Domain.grid(2, 2)
    assert "because the values are tuples" in refusal(Domain, grid, missing="none")


# -- numbers and order ---------------------------------------------------------------------------------------


def test_numbers_and_widths() -> None:
    assert AGES.numeric_values.tolist() == list(range(17, 91))
    assert not AGES.widths.any()
    assert PAY.numeric_values.tolist() == [25_000, 75_000, 125_000, 175_000]
    assert PAY.widths.tolist() == [50_000] * 4
    assert PAY.bin_edges.tolist() == [0, 50_000, 100_000, 150_000, 200_000]
    brackets = Domain.numbers(edges=[0, "0.1", 18], missing="unknown")
    np.testing.assert_array_equal(brackets.numeric_values, [0.05, 9.05, math.nan])
    np.testing.assert_array_equal(brackets.widths, [0.1, 17.9, math.nan])
    assert Domain([2.5, -1.0]).numeric_values.tolist() == [2.5, -1.0]
    for domain in (Domain(["a"]), Domain([True]), Domain.grid(2, 2)):
        assert "the labels must be numbers" in refusal(lambda domain=domain: domain.numeric_values)
    assert "the domain must have bins" in refusal(lambda: AGES.bin_edges)


def test_order() -> None:
    ordered = [AGES, PAY, Domain.range(3), Domain([1, 5, 9]), Domain(["low", "high"]), Domain([1, 2], missing="?")]
    assert all(domain.is_ordered for domain in ordered)
    others = [Domain([5, 1]), Domain.grid(2, 2), Domain.product(a=AGES, b=PAY), Domain.grid(2, 2).subset([(0, 0)])]
    assert not any(domain.is_ordered for domain in others)


def test_labels_between_bounds() -> None:
    assert PAY.above(100_000) == PAY.labels[2:]
    assert PAY.below(100_000) == PAY.labels[:2]
    assert PAY.between(50_000, 1e5) == PAY.labels[1:2]
    assert AGES.above(89) == (89, 90)
    assert AGES.between(16.5, 18.5) == (17, 18)
    assert Domain.numbers(0, 1, bins=10, missing="?").above(0.3)[0] == "[0.3, 0.4)"
    assert Domain.numbers(0, 1, bins=10, missing="?").above(0.3)[-1] == "[0.9, 1]"
    thirds = Domain.numbers(0, 10, bins=6)
    assert [thirds.above(edge)[0] for edge in thirds.bin_edges[:-1]] == list(thirds.labels)
    assert Domain.range(17, 21, missing="?").split([18, 20]) == [[17], [18, 19], [20], ["?"]]
    assert "a bound must be an edge of a bin; got 60000. The nearest edges are 50000 and 100000." in refusal(
        PAY.above, 60_000
    )
    assert "the bounds must select at least one value; got (95, None)" in refusal(AGES.above, 95)
    assert "a bound must be a number; got 'x'" in refusal(AGES.above, "x")
    assert "the labels must be numbers" in refusal(Domain(["a"]).above, 1)


# -- pandas --------------------------------------------------------------------------------------------------


def test_categories_keep_their_order() -> None:
    sizes = pd.Series(["small", "large", "small"]).astype(pd.CategoricalDtype(["large", "small", "tiny"], ordered=True))
    for labels in (sizes.dtype, sizes.cat.categories):
        domain = Domain(labels)
        assert domain.labels == ("large", "small", "tiny")
        assert domain.encode(sizes).tolist() == [1, 0, 1]
    assert Domain(sizes.dtype, missing="?").encode(pd.Series(["tiny", None], dtype=sizes.dtype)).tolist() == [2, 3]
    assert "labels must have categories" in refusal(Domain, pd.CategoricalDtype())
    assert "repeated values. Pass its dtype, whose categories are the labels." in refusal(Domain, sizes)


@pytest.mark.parametrize("right", [True, False])
def test_cut_columns_have_the_bins_of_their_intervals(right: bool) -> None:
    ages = pd.Series([17, 25, 25.5, 44, 90, 18])
    cut = pd.cut(ages, [17, 18, 25, 45, 90.5], right=right, include_lowest=False)
    domain = Domain(cut.dtype, missing="unknown")
    assert domain == Domain(pd.IntervalIndex(cut.cat.categories), missing="unknown")
    assert domain.to_dict()["edges"] == [17, 18, 25, 45, "90.5"]
    codes = domain.encode(cut)
    known = cut.notna()
    assert codes[known].tolist() == cut.cat.codes[known].tolist() == domain.encode(ages)[known].tolist()
    assert (codes[~known] == domain.size - 1).all()
    assert domain.encode(cut.astype(object)).tolist() == codes.tolist()
    assert domain.encode(pd.Series(cut.array.astype(cut.cat.categories.dtype))).tolist() == codes.tolist()
    other = pd.Interval(17, 18, closed="left" if right else "right")
    assert "row 0" in refusal(domain.encode, [other])
    assert "row 0" in refusal(domain.encode, [pd.Interval(17, 25, closed="right" if right else "left")])
    shares = cut.value_counts(normalize=True)
    assert sf.Prior(Domain(cut.dtype), shares, 1).prior[0] == pytest.approx(shares.iloc[shares.index.codes.argmin()])


def test_equal_intervals_have_the_description_of_their_number() -> None:
    assert Domain(pd.interval_range(0, 100, periods=20, closed="left")) == Domain.numbers(0, 100, bins=20)


ADJACENT = "must begin where the interval before it ends"


@pytest.mark.parametrize(
    ("intervals", "message"),
    [
        ([pd.Interval(0, 5), pd.Interval(4, 9)], f"labels[1] {ADJACENT}; got (4, 9], which overlaps (0, 5]"),
        ([pd.Interval(0, 5), pd.Interval(6, 9)], f"labels[1] {ADJACENT}; got (6, 9], which leaves a gap after (0, 5]"),
        ([pd.Interval(0, 5, closed="both")], "labels must all be closed on the left or all on the right, so that no"),
        ([pd.Interval(pd.Timestamp("2020"), pd.Timestamp("2021"))], "labels[0] must be a finite number"),
    ],
)
def test_bad_intervals_are_refused(intervals: list[Any], message: str) -> None:
    assert refusal(Domain, intervals).startswith(f"Domain: {message}")


# -- policies and estimates ----------------------------------------------------------------------------------


def test_metric_policies_measure_in_the_unit_of_the_numbers() -> None:
    ages = sf.Metric(AGES, "absolute", "0.1")
    assert ages.effective_epsilon(AGES.index(20), AGES.index(35)) == sf.Epsilon("1.5")
    bins = sf.Metric(Domain.numbers(0, 1, bins=3), "absolute", 1)
    assert bins.distance(0, 2) == Fraction(2, 3)
    pairs = sf.Metric(Domain.product(a=AGES, b=Domain.numbers(0, 1, bins=2)), "manhattan", 1)
    assert pairs.distance(0, 3) == Fraction(3, 2)
    for policy in (ages, bins):
        assert sf.policy_from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    message = refusal(sf.Metric, Domain.range(17, 91, missing="?"), "absolute", 1)
    assert "got the label '?'. Pass a matrix or a function" in message


def test_thresholds_and_blocks_of_intervals() -> None:
    pay = Domain.numbers(0, 200_000, step=25_000, missing="unknown")
    sensitive = sf.HighLow(pay, [*pay.above(100_000), "unknown"], 1)
    assert sensitive.is_sensitive.tolist() == [False] * 4 + [True] * 5
    blocks = sf.Blocks(pay, pay.split([50_000, 100_000]), 1, across=2)
    assert blocks.block_of.tolist() == [0, 0, 1, 1, 2, 2, 2, 2, 3]
    for policy in (sensitive, blocks, sf.Uniform(pay, 1)):
        assert sf.policy_from_dict(policy.to_dict()) == policy
        assert sf.design(policy).domain == pay


def read(domain: str, policy: str) -> sf.Policy:
    """Return the policy of a TOML file with this domain and these lines."""
    return sf.policy_from_dict(tomllib.loads(f"domain = {domain}\n[policy]\nepsilon = 1\n{policy}\n"))


def test_policy_files_state_domains_and_bounds() -> None:
    pay = Domain.numbers(0, 200_000, bins=40)
    assert read("{low = 17, high = 91}", 'kind = "uniform"') == sf.Uniform(AGES, 1)
    files = "{low = 0, high = 200000, bins = 40}", "{low = 0.0, high = '2e5', step = 5000.0}"
    for domain in files:
        assert read(domain, 'kind = "high-low"\nsensitive = {above = 100_000}') == sf.HighLow(pay, pay.above(1e5), 1)
        assert read(domain, 'kind = "blocks"\nblocks = {bounds = [25_000, 1e5]}') == sf.Blocks(
            pay, pay.split([25_000, 100_000]), 1
        )
    ages = Domain.range(17, 91, missing="unknown")
    domain = "{low = 17, high = 91, missing = 'unknown'}"
    assert read(domain, 'kind = "high-low"\nsensitive = {below = 18, missing = true}') == sf.HighLow(
        ages, [17, "unknown"], 1
    )
    assert read(domain, 'kind = "high-low"\nsensitive = {between = [20, 22]}') == sf.HighLow(ages, [20, 21], 1)
    tenths = read("{edges = [0, 0.1, 0.3], closed = 'right', out_of_range = 'refuse'}", 'kind = "uniform"').domain
    assert tenths == Domain.numbers(edges=[0, "0.1", "3/10"], closed="right", out_of_range="refuse")


@pytest.mark.parametrize(
    ("domain", "policy", "message"),
    [
        ("{low = 17}", "", "Domain.from_dict: document['high'] must be an int between -2**53 and 2**53; got None"),
        ("{low = 1, high = 9, edges = [1]}", "", "Domain.from_dict: document must have exactly one of the keys"),
        (
            "{low = 1, high = 9, closed = 'left'}",
            "",
            "Domain.from_dict: document['closed'] must come with bins or step",
        ),
        ("{size = 9, bins = 3}", "", "Domain.from_dict: document key must be one of 'size', 'missing'; got 'bins'"),
        ("{size = 9}", "sensitive = {above = 3, below = 4}", "[policy] of kind high-low: sensitive must have one of"),
        (
            "{size = 9}",
            "sensitive = {above = 3, missing = true}",
            "[policy] of kind high-low: sensitive['missing'] must",
        ),
        ("{size = 9}", "sensitive = {above = 'x'}", "Domain.above: a bound must be a number; got 'x'"),
        (
            "{size = 9}",
            "sensitive = {between = 3}",
            "[policy] of kind high-low: sensitive['between'] must be a list of",
        ),
    ],
)
def test_bad_policy_files_are_refused(domain: str, policy: str, message: str) -> None:
    assert refusal(read, domain, f'kind = "high-low"\n{policy or "sensitive = [1]"}').startswith(message)


def test_estimates_show_bins_and_missing_values() -> None:
    pay = Domain.numbers(0, 4, bins=2, missing="unknown")
    mechanism = sf.mechanisms.RandomizedResponse(pay, "inf")
    reports = sf.privatize(mechanism, [0.5, 3, 99, None], stream=sf.InsecureSeeded(1))
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    assert [estimate[label].value for label in ("[0, 2)", "[2, 4]", "unknown")] == [0.25, 0.5, 0.25]
    assert estimate.to_pandas()["value"].tolist() == ["[0, 2)", "[2, 4]", "unknown"]
    ages = sf.mechanisms.RandomizedResponse(Domain.range(17, 19, missing="unknown"), "inf")
    mixed = sf.estimate(ages, sf.aggregate(ages, sf.privatize(ages, [17, 18, None], stream=sf.InsecureSeeded(1))))
    assert mixed.to_pandas()["value"].tolist() == [17, 18, "unknown"]
    assert mixed.to_arrow().column("value").to_pylist() == ["17", "18", "unknown"]
    assert (
        sf.Estimate.from_dict(json.loads(json.dumps(mixed.to_dict()))).frequencies.tolist()
        == mixed.frequencies.tolist()
    )


def test_answers_about_bins() -> None:
    pay = Domain.numbers(edges=[0, 2, 8])
    mechanism = sf.mechanisms.RandomizedResponse(pay, "inf")
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, [0, 1, 1, 1]))
    assert estimate.mean().value == pytest.approx((1 + 3 * 5) / 4)
    assert estimate.mean().rounding == 3
    assert estimate.range(2, 8).value == 0.75
    assert estimate.quantile(0.5).value == "[2, 8]"
    rows = [["3/4", "1/4"], ["1/4", "3/4"], ["1/4", "3/4"]]  # the reports determine one share only
    partial = sf.mechanisms.TableMechanism.from_matrix(Domain(pay, missing="unknown"), rows)
    answers = sf.estimate(partial, sf.aggregate(partial, [0, 1])).to_pandas()["answer"].tolist()
    assert answers == ["frequency of [0, 2)"]
