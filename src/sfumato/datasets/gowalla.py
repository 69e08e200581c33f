"""Gowalla check-ins (SNAP loc-gowalla): a map of the United States, and the visitors of a district of Britain.

E. Cho, S. A. Myers, J. Leskovec: Friendship and Mobility, KDD 2011.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.datasets.folder import Loaded, bad_line, first_existing, parquet_columns, text_lines
from sfumato.datasets.seeded import SeededNumbers

__all__ = ["COLUMNS", "ROWS", "Users", "district_users", "us_grid"]


#: The file that SNAP publishes: user, time, latitude, longitude and place, separated by tabs, newest first.
_ORIGINAL = ("loc-gowalla_totalCheckins.txt", "loc-gowalla_totalCheckins.txt.gz")
_COARSE, _FINE = "gowalla_world_256x256.npz", "gowalla_us_grid_125x350_subset.npz"
_USERS = "gowalla_user_prior_value.parquet"

#: Cells of 0.2 degrees in 25..50 N, 130..60 W (Acharya et al. 2020, section 7).
ROWS, COLUMNS = 125, 350
_SOUTH, _WEST, _DEGREES = 25.0, -130.0, 0.2
#: Number of cities in the invented map, and the fraction of people outside all cities.
_CITIES, _ANYWHERE = 300, 0.1
#: Number of invented users, and the fraction of them who ever visited the district.
_INVENTED_USERS, _VISITORS = 1000, 0.07


class Users(NamedTuple):
    """Users of the location network Gowalla, with one prior and one binary value each.

    The value says whether the user is in a district. :func:`district_users` returns such users.

    Parameters
    ----------
    priors
        Probability of each user to be in the district: the fraction of all check-ins but the last that were there.
    values
        Whether the last check-in of each user was in the district, in the same order.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.datasets import Users
    >>> users = Users(np.array([0.0, 0.4]), np.array([False, True]))
    >>> users.values.sum()
    np.int64(1)
    """

    priors: Floats
    values: npt.NDArray[np.bool_]


# -- the map ---------------------------------------------------------------------------------------------------


def us_grid(folder: Path | None) -> Loaded[Floats]:
    """Return the number of Gowalla check-ins in each cell of a map of the United States.

    The map covers 25 to 50 degrees north and 130 to 60 degrees west with cells of 0.2 by 0.2 degrees (Acharya et al.
    2020, section 7). Gowalla is a location network whose check-ins are public (Cho, Myers and Leskovec, "Friendship and
    Mobility", KDD 2011).

    The function uses the first data in this list that the folder has:

    1. ``loc-gowalla_totalCheckins.txt`` or ``.txt.gz``: the original file.
    2. ``gowalla_world_256x256.npz`` and ``gowalla_us_grid_125x350_subset.npz``: a coarse map of all check-ins, which
       the function divides in proportion to a subset. This is a stand-in for the original.
    3. No file: an invented map of cities, also a stand-in.

    Parameters
    ----------
    folder
        Folder with the data files, as :func:`data_folder` returns it, or None for invented data.

    Returns
    -------
    Loaded
        ``value`` is an array of 125 rows (south to north) and 350 columns (west to east). Its entries are not integers
        if the map is a stand-in.

    Examples
    --------
    >>> from sfumato.datasets import us_grid
    >>> us_grid(None).value.shape
    (125, 350)
    """
    original = first_existing(folder, *_ORIGINAL)
    if original is not None:
        return Loaded(_counted(original), f"all check-ins in the box, from {original.name}", False)
    coarse, fine = first_existing(folder, _COARSE), first_existing(folder, _FINE)
    if coarse is not None and fine is not None:
        source = (
            f"a stand-in: all check-ins on a coarse grid ({coarse.name}), divided among cells of 0.2 degrees in "
            f"proportion to the counts of a subset plus one ({fine.name})"
        )
        return Loaded(_refined(coarse, fine), source, True)
    return Loaded(_invented(), "a stand-in: an invented map of cities with Zipf sizes", True)


def _check_ins(path: Path) -> Iterator[tuple[str, float, float]]:
    """Yield user, latitude and longitude of every check-in."""
    with text_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                user, _, latitude, longitude, _ = line.split("\t")
                yield user, float(latitude), float(longitude)
            except ValueError:
                raise bad_line(path, number, "have user, time, latitude, longitude and place", line) from None


def _counted(path: Path) -> Floats:
    """Count the check-ins of the original file per cell."""
    grid = np.zeros((ROWS, COLUMNS))
    for _, latitude, longitude in _check_ins(path):
        # A double cannot represent 0.2 degrees exactly, but it can represent 5 cells per degree.
        row, column = math.floor((latitude - _SOUTH) * 5), math.floor((longitude - _WEST) * 5)
        if 0 <= row < ROWS and 0 <= column < COLUMNS:
            grid[row, column] += 1
    return grid


def _refined(coarse: Path, fine: Path) -> Floats:
    """Divide the check-ins of each coarse cell in proportion to the subset plus one (Laplace's rule of succession).

    Cells that overlap two coarse cells belong to both, by area.
    """
    world, subset = np.load(coarse), np.load(fine)["hist"].astype(np.float64)
    latitude = _overlaps(world["lat_edges"], np.asarray(_SOUTH + _DEGREES * np.arange(ROWS + 1), np.float64))
    longitude = _overlaps(world["lon_edges"], np.asarray(_WEST + _DEGREES * np.arange(COLUMNS + 1), np.float64))
    inside = world["hist"] * np.outer(latitude.sum(axis=0), longitude.sum(axis=0))
    inside /= np.outer(np.diff(world["lat_edges"]), np.diff(world["lon_edges"]))
    weights = (subset + 1) / _DEGREES**2
    total = latitude.T @ weights @ longitude
    fraction = np.divide(inside, total, out=np.zeros_like(inside), where=total > 0)
    return np.asarray(weights * (latitude @ fraction @ longitude.T))


def _overlaps(coarse: Floats, fine: Floats) -> Floats:
    """Return the overlap in degrees of each fine interval (rows) with each coarse interval (columns)."""
    low = np.maximum(fine[:-1, None], coarse[None, :-1])
    return np.asarray(np.clip(np.minimum(fine[1:, None], coarse[None, 1:]) - low, 0, None))


def _invented() -> Floats:
    """Return an invented map of cities."""
    numbers = SeededNumbers(5)
    row, column = np.mgrid[:ROWS, :COLUMNS]
    density = np.zeros((ROWS, COLUMNS))
    for rank in range(1, _CITIES + 1):
        north, east, wide = numbers.uniforms(3)
        distance = (row - ROWS * north) ** 2 + (column - COLUMNS * east) ** 2
        cells = np.exp(-distance / (2 * (0.5 + 1.5 * wide) ** 2))
        density += cells / (rank * max(cells.sum(), 1e-12))
    people = 3_671_812
    return np.asarray(people * ((1 - _ANYWHERE) * density / density.sum() + _ANYWHERE / density.size))


# -- the district ----------------------------------------------------------------------------------------------


def district_users(folder: Path | None) -> Loaded[Users]:
    """Return users of Gowalla, and whether each of them is in one district of Britain.

    Gowalla is a location network whose check-ins are public (Cho, Myers and Leskovec, "Friendship and Mobility", KDD
    2011). The district is the box from 50 to 55 degrees north and from 5 to 0 degrees west, as in section V-B of Jiang,
    Li and Tandon, "Context-aware Data Aggregation with Localized Information Privacy". The value of a user says whether
    the last check-in was in the district. The prior is the fraction of the earlier check-ins that were there.

    The function uses the first data in this list that the folder has:

    1. ``loc-gowalla_totalCheckins.txt`` or ``.txt.gz``: every user of the original file with at least two check-ins.
    2. ``gowalla_user_prior_value.parquet``: 1,000 of about 107,000 users, a stand-in for the original.
    3. No file: 1,000 invented users, also a stand-in.

    Parameters
    ----------
    folder
        Folder with the data files, as :func:`data_folder` returns it, or None for invented data.

    Returns
    -------
    Loaded
        ``value`` is a :class:`Users` with the priors and the values; ``stand_in`` is False for the original file.

    Examples
    --------
    >>> from sfumato.datasets import district_users
    >>> len(district_users(None).value.priors)
    1000
    """
    original = first_existing(folder, *_ORIGINAL)
    if original is not None:
        return Loaded(_last_of_each(original), f"every user with two check-ins or more, from {original.name}", False)
    reduced = first_existing(folder, _USERS)
    if reduced is not None:
        source, priors, values = parquet_columns(reduced, "source", "prior", "value")
        timed = source == "timed_1000"
        users = Users(priors[timed].astype(np.float64), values[timed].astype(np.bool_))
        return Loaded(users, f"a stand-in: 1,000 users instead of about 107,000 ({reduced.name})", True)
    numbers = SeededNumbers(6)
    seldom, fraction, last = numbers.uniforms(3 * _INVENTED_USERS).reshape(3, -1)
    invented = np.where(seldom < _VISITORS, fraction**2, 0.0)
    return Loaded(
        Users(invented, last < invented), "a stand-in: invented users, few of whom ever visited the district", True
    )


def _last_of_each(path: Path) -> Users:
    """Return the users of the original file, which lists the check-ins of each user together, newest first."""
    last: dict[str, bool] = {}
    earlier: dict[str, list[int]] = {}
    for user, latitude, longitude in _check_ins(path):
        inside = 50 <= latitude <= 55 and -5 <= longitude <= 0
        if user not in last:
            last[user] = inside
            continue
        counts = earlier.setdefault(user, [0, 0])
        counts[0] += inside
        counts[1] += 1
    users = [user for user in last if user in earlier]
    priors = [earlier[user][0] / earlier[user][1] for user in users]
    return Users(np.array(priors, np.float64), np.array([last[user] for user in users], np.bool_))
