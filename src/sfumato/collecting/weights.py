"""Survey weights as integers: few classes of people with the same weight, whose counts stay exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato._core import Floats, Integers, checked_integer
from sfumato.domain import At, Numbers, is_missing, read_column
from sfumato.errors import Description, InvalidInput

__all__ = ["LARGEST_WEIGHT", "MOST_CLASSES", "check_weight", "read_weights", "weight_classes"]

#: Largest weight; doubles represent all integers up to it.
LARGEST_WEIGHT = 2**53
#: Maximum number of different weights.
MOST_CLASSES = 1000
#: Integer that represents the least positive weight if weights are not integers; rounding changes none by over 0.05%.
_LEAST_INTEGER = 1000


def weight_classes(weights: Any, most: int = 100) -> Integers:
    """Round survey weights to few classes of integers, so that reports can be counted by weight.

    Only the proportions of weights matter for an estimate. If the weights are integers with at most ``most`` different
    values, they are returned as they are. Otherwise they are multiplied by a constant and rounded.

    Parameters
    ----------
    weights
        The weight of each person: numbers of at least 0, as a list, an array or a column of pandas, polars or Arrow.
    most
        Maximum number of different positive weights in the result.

    Returns
    -------
    numpy.ndarray
        An integer of at least 0 per person, in the same order. A weight of 0 stays 0, and a positive weight stays
        positive.

    Raises
    ------
    InvalidInput
        If a weight is missing, negative, infinite or not a number, or the greatest weight exceeds the
        smallest positive one by a factor of more than 10^9. The message names the row.

    Notes
    -----
    If there are too many different weights, they are divided into classes on a logarithmic scale, each with the mean
    weight of its people. The ratio between the greatest and the least weight is R. Then a weight changes by a factor of
    at most R^(1/most), in addition to a rounding error of at most 0.05%.

    Examples
    --------
    >>> from sfumato.collecting import weight_classes
    >>> weight_classes([1, 3, 2, 3]).tolist()
    [1, 3, 2, 3]
    >>> weight_classes([0.5, 1.25, 0.0]).tolist()
    [1000, 2500, 0]
    """
    checked_integer("weight_classes", "most", most, 1, MOST_CLASSES)
    numbers = _read_numbers(weights, At("weight_classes", "weights"))
    positive = np.unique(numbers[numbers > 0])
    is_integer = bool((np.floor(positive) == positive).all()) and positive.max(initial=0.0) <= LARGEST_WEIGHT
    if len(positive) <= most and is_integer:
        return numbers.astype(np.int64)
    least, greatest = float(positive[0]), float(positive[-1])
    if greatest > 1e9 * least:
        got = Description(f"weights from {least:.3g} to {greatest:.3g}")
        must = "exceed the smallest positive one by a factor of at most 10^9"
        raise InvalidInput("weight_classes", "the greatest weight", must, got)
    if len(positive) > most:
        numbers = _class_means(numbers, least, math.log(greatest / least) / most, most)
    scaled = numbers * (_LEAST_INTEGER / float(numbers[numbers > 0].min()))
    return np.asarray(np.rint(scaled), np.int64)


def _class_means(numbers: Floats, least: float, step: float, most: int) -> Floats:
    """Return the mean weight of each person's class; classes are equally wide on a logarithmic scale."""
    is_positive = numbers > 0
    chosen = numbers[is_positive]
    place = np.minimum((np.log(chosen / least) / step).astype(np.int64), most - 1)
    sums, sizes = np.bincount(place, weights=chosen), np.bincount(place)
    means = np.zeros(len(numbers))
    means[is_positive] = (sums / np.maximum(sizes, 1))[place]
    return means


def read_weights(weights: Any, at: At, row_name: Callable[[int], str] | None = None) -> Integers:
    """Return weights as integers of at least 0; raise InvalidInput that names the row of another weight.

    ``row_name`` names a row of a file; rows of other columns are numbered from 0.
    """
    row_name = row_name or (lambda row: f"{at.parameter} in row {row}")
    numbers = _read_numbers(weights, at, row_name)
    wrong = (numbers != np.floor(numbers)) | (numbers > LARGEST_WEIGHT)
    if wrong.any():
        row = int(wrong.argmax())
        hint = "Round weights to classes of integers with sfumato.collecting.weight_classes(weights)."
        must = f"be an integer from 0 to 2^{LARGEST_WEIGHT.bit_length() - 1}"
        raise InvalidInput(at.subject, row_name(row), must, float(numbers[row]), row=row, hint=hint)
    return numbers.astype(np.int64)


def _read_numbers(weights: Any, at: At, row_name: Callable[[int], str] | None = None) -> Floats:
    """Return weights as finite floats of at least 0."""
    column = read_column(weights, at)
    if isinstance(column, Numbers) and column.nulls is None and column.array.dtype.kind != "b":
        numbers = column.array.astype(np.float64)
    else:
        numbers = np.array([_number(item) for item in column.items()], np.float64)
    wrong = ~(np.isfinite(numbers) & (numbers >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        got = column.at(row)
        got = Description("a missing weight") if is_missing(got) else got
        must = "be a finite number of at least 0"
        where = f"{at.parameter} in row {row}" if row_name is None else row_name(row)
        raise InvalidInput(at.subject, where, must, got, row=row)
    return numbers


def _number(item: Any) -> float:
    """Return a number or the string of a number as a float; NaN for anything else."""
    if isinstance(item, bool) or not isinstance(item, (int, float, str, np.number)):
        return math.nan
    try:
        return float(item)
    except (ValueError, OverflowError):
        return math.nan


def check_weight(subject: str, parameter: str, weight: object) -> None:
    """Raise InvalidInput unless a label is a weight: an integer from 0 to 2^53."""
    if type(weight) is not int or not 0 <= weight <= LARGEST_WEIGHT:
        raise InvalidInput(subject, parameter, "be an integer from 0 to 2^53", weight)
