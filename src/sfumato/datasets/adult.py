"""Adult: 32,561 people of the 1994 US census (UCI Machine Learning Repository; B. Becker, R. Kohavi)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from sfumato.datasets.folder import Loaded, bad_line, first_existing, parquet_columns, text_lines
from sfumato.datasets.seeded import SeededNumbers
from sfumato.errors import InvalidInput

__all__ = ["PEOPLE", "census_column", "census_table"]

_ORIGINAL, _TABLE = "adult.data", "adult.parquet"
#: Columns of the original file, in its order.
_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
#: Number of values of each attribute in RLDP Figure 10, including "?".
SIZES = {"sex": 2, "race": 5, "relationship": 6, "occupation": 15, "education": 16, "native-country": 42}
PEOPLE = 32_561


def census_column(folder: Path | None, name: str) -> Loaded[npt.NDArray[np.str_]]:
    """Return one attribute of the 32,561 people in the census data set Adult.

    Adult is an extract of the 1994 US census (UCI Machine Learning Repository; B. Becker and R. Kohavi). The function
    reads ``adult.data``, the original file, or else ``adult.parquet``. If the folder has neither, the function returns
    invented data of the same size, a stand-in.

    Parameters
    ----------
    folder
        Folder with the data files, as :func:`data_folder` returns it, or None for invented data.
    name
        Attribute: ``"sex"``, ``"race"``, ``"relationship"``, ``"occupation"``, ``"education"`` or ``"native-country"``.

    Returns
    -------
    Loaded
        ``value`` is an array of 32,561 strings, one per person; ``stand_in`` says whether they are invented.

    Raises
    ------
    InvalidInput
        If the attribute is unknown, or a line of the file is malformed.

    Examples
    --------
    >>> from sfumato.datasets import census_column
    >>> column = census_column(None, "sex")
    >>> len(column.value), column.stand_in
    (32561, True)
    """
    if name not in SIZES:
        raise InvalidInput("census_column", "name", f"be one of {', '.join(SIZES)}", name)
    original = first_existing(folder, _ORIGINAL)
    if original is not None:
        return Loaded(np.array(_read(original, _COLUMNS.index(name))), f"all people, from {original.name}", False)
    table = first_existing(folder, _TABLE)
    if table is not None:
        return Loaded(parquet_columns(table, name)[0].astype(np.str_), f"all people, from {table.name}", False)
    return Loaded(
        _invented(name), "a stand-in: invented people, half of them with attributes that depend on each other", True
    )


def census_table(folder: Path | None, secret: str, other: str) -> Loaded[npt.NDArray[np.int64]]:
    """Count the people with each pair of values of two attributes in the census data set Adult.

    Adult is an extract of the 1994 US census with 32,561 people. :func:`census_column` lists the files that the
    function reads. Without such a file, the people are invented (a stand-in).

    Parameters
    ----------
    folder
        Folder with the data files, as :func:`data_folder` returns it, or None for invented data.
    secret
        Attribute in the rows: ``"sex"``, ``"race"``, ``"relationship"``, ``"occupation"``, ``"education"`` or
        ``"native-country"``.
    other
        Attribute in the columns; the same names are accepted.

    Returns
    -------
    Loaded
        ``value`` is an array of counts of people, with one row per value of ``secret`` and one column per value of
        ``other``. Rows and columns are in alphabetical order of the values. ``stand_in`` says whether the people are
        invented.

    Raises
    ------
    InvalidInput
        If an attribute is unknown, or a line of the file is malformed.

    Examples
    --------
    >>> from sfumato.datasets import census_table
    >>> table = census_table(None, "sex", "race")
    >>> table.value.shape, int(table.value.sum())
    ((2, 5), 32561)
    """
    rows, columns = (census_column(folder, name) for name in (secret, other))
    labels, row_of = np.unique(rows.value, return_inverse=True)
    others, column_of = np.unique(columns.value, return_inverse=True)
    table = np.zeros((len(labels), len(others)), np.int64)
    np.add.at(table, (row_of, column_of), 1)
    return Loaded(table, rows.source, rows.stand_in)


def _read(path: Path, place: int) -> list[str]:
    """Return one field of every line."""
    values = []
    with text_lines(path) as lines:
        for number, line in enumerate(lines, 1):
            fields = line.strip().split(", ")
            if len(fields) == len(_COLUMNS):
                values.append(fields[place])
            elif fields != [""]:  # the last line of the file is empty
                raise bad_line(path, number, f"have {len(_COLUMNS)} fields", line)
    return values


def _invented(name: str) -> npt.NDArray[np.str_]:
    """Return invented values, which depend on the other attributes for half of the people."""
    size = SIZES[name]
    alike = SeededNumbers(8).uniforms(2 * PEOPLE).reshape(2, -1)
    independent = SeededNumbers(100 + list(SIZES).index(name)).uniforms(PEOPLE)
    chosen = np.where(alike[0] < 0.5, alike[1], independent)
    # Squaring makes the first values more frequent than the last.
    return np.array([f"{name} {value:02d}" for value in (size * chosen**2).astype(int)])
