"""Data files of the papers: read as they are published, from smaller copies, or stood in for, and said which."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.datasets.adult import PEOPLE, SIZES, census_column, census_table
from sfumato.datasets.folder import VARIABLE, Loaded, data_folder
from sfumato.datasets.gowalla import district_users, us_grid
from sfumato.datasets.kosarak import page_clicks
from sfumato.datasets.seeded import SeededNumbers
from sfumato.errors import InvalidInput

CHECK_INS = """0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847
0\t2010-10-18T22:17:43Z\t25.0\t-130.0\t420315
0\t2010-10-17T23:42:03Z\t49.9999\t-60.0001\t316637
0\t2010-10-16T18:50:42Z\t50.0\t-60.0\t16516
1\t2010-10-12T23:58:03Z\t52.5\t-1.5\t5535878
1\t2010-10-12T22:02:11Z\t52.5\t-1.5\t15372
1\t2010-10-12T19:44:40Z\t55.1\t-1.5\t21714
2\t2010-10-12T15:57:20Z\t51.0\t-2.0\t420315
"""
CENSUS = """39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, \
United-States, <=50K
50, ?, 83311, Bachelors, 13, Married-civ-spouse, ?, Husband, Black, Male, 0, 0, 13, ?, <=50K
38, Private, 215646, HS-grad, 9, Divorced, Handlers-cleaners, Wife, Black, Female, 0, 0, 40, United-States, >50K

"""


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    """Smaller copies with the names, keys and types of those that docs/reproduce.md describes, and invented numbers."""
    generator = np.random.default_rng(11)
    np.savez(
        tmp_path / "gowalla_world_256x256.npz",
        hist=generator.integers(0, 2000, (256, 256)),
        lat_edges=np.linspace(-90, 90, 257),
        lon_edges=np.linspace(-180, 180, 257),
    )
    np.savez(tmp_path / "gowalla_us_grid_125x350_subset.npz", hist=generator.integers(0, 30, (125, 350)))
    priors = np.where(np.arange(1000) < 68, 0.25, 0.0)
    users = {
        "source": ["timed_1000"] * 1000 + ["subset"] * 5,
        "prior": [*priors.tolist(), *[0.5] * 5],
        "value": [*(np.arange(1000) < 24).astype(int).tolist(), *[1] * 5],
    }
    pq.write_table(pa.table(users), tmp_path / "gowalla_user_prior_value.parquet")
    np.savez(tmp_path / "kosarak_page_counts.npz", stratified_full_estimate=np.arange(41_271.0))
    people = {name: [f"{name} {row % size}" for row in range(PEOPLE)] for name, size in SIZES.items()}
    pq.write_table(pa.table(people), tmp_path / "adult.parquet")
    return tmp_path


# -- the original files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_check_ins_as_snap_publishes_them(tmp_path: Path, packed: bool) -> None:
    name = "loc-gowalla_totalCheckins.txt"
    if packed:
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(CHECK_INS.encode()))
    else:
        (tmp_path / name).write_text(CHECK_INS)
    grid = us_grid(tmp_path)
    assert not grid.stand_in
    assert grid.value.shape == (125, 350)
    # Austin; the corner of the box; the last cell; and 50 N, 60 W themselves are outside.
    assert sorted(zip(*map(np.ndarray.tolist, np.nonzero(grid.value)), strict=True)) == [(0, 0), (26, 161), (124, 349)]
    users = district_users(tmp_path)
    assert not users.stand_in
    # The newest comes first; user 2 has no earlier one.
    assert users.value.priors.tolist() == [0.0, 0.5]
    assert users.value.values.tolist() == [False, True]


@pytest.mark.parametrize("packed", [False, True])
def test_clicks_as_fimi_publishes_them(tmp_path: Path, packed: bool) -> None:
    text = "1 2 3\n1\n\n41270 1\n"
    if packed:
        (tmp_path / "kosarak.dat.gz").write_bytes(gzip.compress(text.encode()))
    else:
        (tmp_path / "kosarak.dat").write_text(text)
    clicks = page_clicks(tmp_path)
    assert not clicks.stand_in
    assert clicks.value[[0, 1, 2, 3, 41269]].tolist() == [3, 1, 1, 0, 1]
    assert clicks.value.sum() == 6


def test_people_as_uci_publishes_them(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text(CENSUS)
    assert census_column(tmp_path, "native-country").value.tolist() == ["United-States", "?", "United-States"]
    table = census_table(tmp_path, "sex", "race")
    assert table.value.tolist() == [[1, 0], [1, 1]]  # Female, Male; Black, White
    assert not table.stand_in


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("loc-gowalla_totalCheckins.txt", CHECK_INS + "3\tnow\n", "line 9 must have user, time, latitude"),
        ("loc-gowalla_totalCheckins.txt", "3\tnow\tnorth\t1\t2\n", "line 1 must have user, time, latitude"),
        ("kosarak.dat", "1 2\n3 four\n", "line 2 must be page numbers"),
        ("kosarak.dat", "1 2\n0\n", "line 2 must have page numbers from 1 to 41270"),
        ("adult.data", CENSUS + "39, State-gov\n", "line 5 must have 15 fields"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    readers: dict[str, Callable[[Path], object]] = {
        "loc-gowalla_totalCheckins.txt": us_grid,
        "kosarak.dat": page_clicks,
        "adult.data": lambda folder: census_table(folder, "sex", "race"),
    }
    with pytest.raises(InvalidInput, match=message):
        readers[name](tmp_path)


# -- smaller copies --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_coarse_map_is_divided_and_nobody_is_lost(copies: Path) -> None:
    grid = us_grid(copies)
    assert grid.stand_in
    assert "stand-in" in grid.source
    world = np.load(copies / "gowalla_world_256x256.npz")
    # Nobody is lost: the check-ins of the box, with the border cells by area.
    shares = [
        np.clip(np.minimum(edges[1:], high) - np.maximum(edges[:-1], low), 0, None) / np.diff(edges)
        for edges, low, high in ((world["lat_edges"], 25, 50), (world["lon_edges"], -130, -60))
    ]
    assert grid.value.sum() == pytest.approx(shares[0] @ world["hist"] @ shares[1])
    # One coarse cell with all its fine ones: 0.703 x 1.406 degrees, none of whose borders is a border of 0.2 degrees.
    row, column = 175, 60
    south, west = world["lat_edges"][row], world["lon_edges"][column]
    low, left = (south - 25) * 5, (west + 130) * 5
    rows = np.clip(np.minimum(np.arange(1, 126), low + 180 / 256 * 5) - np.maximum(np.arange(125), low), 0, None)
    columns = np.clip(np.minimum(np.arange(1, 351), left + 360 / 256 * 5) - np.maximum(np.arange(350), left), 0, None)
    subset = np.load(copies / "gowalla_us_grid_125x350_subset.npz")["hist"] + 1.0
    expected = world["hist"][row, column]
    inside = rows[:, None] * columns * subset
    assert rows.sum() * columns.sum() == pytest.approx(180 / 256 * 5 * 360 / 256 * 5)
    whole = (rows == 1)[:, None] & (columns == 1)
    assert grid.value[whole] == pytest.approx((expected * inside / inside.sum())[whole])


def test_users_clicks_and_people_of_the_smaller_copies(copies: Path) -> None:
    users = district_users(copies)
    assert (len(users.value.priors), int((users.value.priors > 0).sum()), int(users.value.values.sum())) == (
        1000,
        68,
        24,
    )
    assert users.stand_in
    clicks = page_clicks(copies)
    assert clicks.stand_in
    assert clicks.value.tolist() == list(range(1, 41_271))  # pages are numbered from one
    for name, size in SIZES.items():
        column = census_column(copies, name)
        assert not column.stand_in
        assert (len(column.value), len(set(column.value.tolist()))) == (PEOPLE, size)


def test_the_published_totals_of_the_data_in_use() -> None:
    """Only real files have them: those of the folder that SFUMATO_DATA names. Invented data are called a stand-in."""
    folder = data_folder()
    grid, users, clicks = us_grid(folder), district_users(folder), page_clicks(folder)
    if not grid.source.startswith("a stand-in: an invented"):
        assert grid.value.sum() == pytest.approx(3_674_030 if grid.stand_in else 3_671_812, abs=1)
    if "1,000 users" in users.source:
        assert (len(users.value.priors), int((users.value.priors > 0).sum()), int(users.value.values.sum())) == (
            1000,
            68,
            24,
        )
    if "invented" not in clicks.source:
        published = {6: 601_374, 3: 450_031, 11: 364_065, 1: 197_522, 218: 88_598}
        for page, count in published.items():
            assert clicks.value[page - 1] == pytest.approx(count, rel=0.014)
    for name, size in SIZES.items():
        column = census_column(folder, name)
        assert (len(column.value), len(set(column.value.tolist()))) == (PEOPLE, size)


# -- stand-ins, folders, and bad input -------------------------------------------------------------------------


def test_without_files_all_is_invented_and_says_so() -> None:
    found: list[Loaded[Any]] = [
        us_grid(None),
        district_users(None),
        page_clicks(None),
        census_table(None, "relationship", "native-country"),
    ]
    assert all(each.stand_in and each.source.startswith("a stand-in: ") for each in found)
    assert found[0].value.sum() == pytest.approx(3_671_812)
    assert found[3].value.shape == (6, 42)
    assert found[3].value.sum() == PEOPLE
    assert np.array_equal(found[0].value, us_grid(None).value)


def test_the_folder_is_given_or_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert data_folder() is None
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(tmp_path.parent) == tmp_path.parent
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInput, match="SFUMATO_DATA: the folder must be an existing directory"):
        data_folder()
    with pytest.raises(InvalidInput, match="--data: the folder must be"):
        data_folder(tmp_path / "nowhere")


def test_an_unknown_attribute_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name must be one of sex, race"):
        census_column(None, "shoe size")


# -- seeded numbers --------------------------------------------------------------------------------------------


def test_numbers_are_reproducible_and_differ_by_seed() -> None:
    assert SeededNumbers(1).normals(5).tolist() == SeededNumbers(1).normals(5).tolist()
    assert SeededNumbers(1).normals(5).tolist() != SeededNumbers(2).normals(5).tolist()
    assert sorted(SeededNumbers(3).shuffled(100).tolist()) == list(range(100))
    assert SeededNumbers(3).shuffled(100).tolist() != list(range(100))


def test_normals_and_jeffreys_distributions_have_their_moments() -> None:
    """Each mean within 5.5 of its standard deviations, which a normal one exceeds once in 10^7; one seed."""
    count = 200_000
    normals = SeededNumbers(4).normals(count)
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (4, 3, 96)):
        assert abs(np.mean(normals**power) - mean) < 5.5 * math.sqrt(variance / count)
        if power == 2:  # a spread 5% too wide is seen
            assert abs(np.mean((1.05 * normals) ** 2) - mean) > 5.5 * math.sqrt(variance / count)
    numbers, cells, draws = SeededNumbers(5), 4, 20_000
    first = np.array([numbers.jeffreys(cells)[0] for _ in range(draws)])
    # A cell is Beta(1/2, 3/2): mean 1/4, second moment (1/2)(3/2)/(2·3) = 1/8; fourth moment 7/128.
    assert abs(first.mean() - 1 / 4) < 5.5 * math.sqrt((1 / 8 - 1 / 16) / draws)
    assert abs(np.mean(first**2) - 1 / 8) < 5.5 * math.sqrt((7 / 128 - 1 / 64) / draws)
