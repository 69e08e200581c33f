"""The questions: all frequencies, a mean, the distribution function, ranges, quantiles, any linear answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato._core import Floats, check_keys, is_number, label_document, quantity, read_items, read_label, read_list
from sfumato.domain import Domain, frame_rows, read_numbers
from sfumato.errors import Description, InvalidInput
from sfumato.questions.base import Question
from sfumato.questions.order import check_order, numeric_labels, positions_between, prefix_names

__all__ = ["Distribution", "Frequencies", "Mean", "Quantiles", "Ranges", "Workload"]

#: Distance from a requested level, in units of the expected distribution function, that quantiles weigh by default.
_WIDTH = 0.1
#: Weight of prefixes far from every requested level, relative to those at a level.
_FAR_WEIGHT = 0.01


class Frequencies(Question):
    """Question: the frequency of every value. This is the default of all functions.

    Examples
    --------
    >>> from sfumato import Domain, Frequencies
    >>> Frequencies().checked(Domain(["no", "yes"])).matrix().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    name = "frequencies"

    def _fit(self, domain: Domain) -> None:
        pass

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.domain.labels))

    def matrix(self, prior: Floats | None = None) -> Floats:  # noqa: ARG002
        return np.eye(len(self.domain))


class Mean(Question):
    """Question: the mean of a number over all people.

    Parameters
    ----------
    values
        The number of each value: a sequence in domain order, a pandas Series with the values as its index, or a
        mapping from values to numbers. By default, the number is the label itself or the midpoint of a bin, and all
        values must be numbers. A domain with a value for missing answers needs ``values``, because the mean over the
        people who answered is not a linear function of the frequencies.

    Examples
    --------
    >>> from sfumato import Domain, Mean
    >>> Mean({"none": 0, "one": 1, "many": 2.5}).checked(Domain(["none", "one", "many"])).matrix().tolist()
    [[0.0, 1.0, 2.5]]
    """

    name = "mean"

    def __init__(self, values: Mapping[Any, float] | Sequence[float] | Floats | None = None) -> None:
        self._values_argument = values
        self._numbers: Floats = np.zeros(0)

    def _fit(self, domain: Domain) -> None:
        values: Any = self._values_argument
        if values is None:
            values = numeric_labels(domain)
            if values is None:
                hint = "Pass Mean(values) with one number per value."
                raise InvalidInput("Mean", "the labels of the domain", "be numbers", domain, hint=hint)
            if domain.missing is not None:
                hint = (
                    "The mean over the people who answered is not linear. Pass Mean(values) with a number for missing "
                    "answers too, such as the mean that you expect."
                )
                raise InvalidInput("Mean", "values", "be given, because answers may be missing", None, hint=hint)
        self._numbers = read_numbers(domain, values, "Mean", "values")
        if np.ptp(self._numbers) == 0 and len(domain) > 1:
            raise InvalidInput("Mean", "values", "differ, because a mean of equal numbers is known", values)

    @property
    def numbers(self) -> Floats:
        """The number of each value, shape (k,), in domain order."""
        return np.asarray(self.matrix()[0])

    @property
    def names(self) -> tuple[str, ...]:
        return ("mean",)

    def matrix(self, prior: Floats | None = None) -> Floats:  # noqa: ARG002
        return self._numbers.reshape(1, len(self.domain)).copy()

    def _parameters(self) -> dict[str, Any]:
        if self._values_argument is None:
            return {}
        return {"values": self.numbers.tolist()}

    @classmethod
    def _read(cls, parameters: Mapping[str, Any]) -> Mean:
        check_keys("Mean", "the document", parameters, optional=["values"])
        return cls(read_items("Mean", "values", parameters["values"]) if "values" in parameters else None)


class Distribution(Question):
    """Question: the distribution function, that is the share of people up to each value.

    The values are in the order of the domain. The share up to the last value is 1, so there is one answer less than
    there are values.

    Examples
    --------
    >>> from sfumato import Distribution, Domain
    >>> question = Distribution().checked(Domain.range(3))
    >>> question.names, question.matrix().tolist()
    (('≤ 0', '≤ 1'), [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    """

    name = "distribution"

    def _fit(self, domain: Domain) -> None:
        check_order(domain, "Distribution")

    @property
    def names(self) -> tuple[str, ...]:
        return prefix_names(self.domain)

    def matrix(self, prior: Floats | None = None) -> Floats:  # noqa: ARG002
        return _prefixes(len(self.domain))


class Ranges(Question):
    """Question: the shares of people in some ranges of values.

    Parameters
    ----------
    ranges
        Pairs (low, high) of values, both included. None as a limit means no limit. Numeric labels are compared with
        the limits as numbers. If the domain has bins, the limits are edges. A mapping from names to pairs gives each
        range a name.

    Examples
    --------
    >>> from sfumato import Domain, Ranges
    >>> question = Ranges({"minors": (None, 17), "adults": (18, None)}).checked(Domain.range(90))
    >>> question.names, question.matrix().sum(axis=1).tolist()
    (('minors', 'adults'), [18.0, 72.0])
    """

    name = "ranges"

    def __init__(self, ranges: Mapping[str, tuple[Any, Any]] | Iterable[tuple[Any, Any]]) -> None:
        names: list[str] | None = None
        if isinstance(ranges, Mapping):
            names, ranges = [str(name) for name in ranges], list(ranges.values())
        must = "be a list of pairs (low, high), or a mapping from names to such pairs"
        pairs = read_list("Ranges", "ranges", must, ranges)
        if not pairs or any(isinstance(p, (str, bytes)) or not isinstance(p, Sequence) or len(p) != 2 for p in pairs):
            raise InvalidInput("Ranges", "ranges", must, ranges)
        self._ranges = [tuple(pair) for pair in pairs]
        self._names = names
        self._positions: list[Any] = []

    def _fit(self, domain: Domain) -> None:
        check_order(domain, "Ranges")
        self._positions = [positions_between(domain, low, high, "Ranges") for low, high in self._ranges]
        if all(len(positions) == len(domain) > 1 for positions in self._positions):
            must = "leave out a value of the domain, because the share of all values is known"
            raise InvalidInput("Ranges", "a range", must, self._ranges)

    @property
    def names(self) -> tuple[str, ...]:
        if self._names is not None:
            return tuple(self._names)
        shown = [tuple("" if limit is None else str(limit) for limit in limits) for limits in self._ranges]
        return tuple(_range_name(low, high) for low, high in shown)

    def matrix(self, prior: Floats | None = None) -> Floats:  # noqa: ARG002
        rows = np.zeros((len(self._ranges), len(self.domain)))
        for row, positions in zip(rows, self._positions, strict=True):
            row[positions] = 1.0
        return rows

    def _parameters(self) -> dict[str, Any]:
        named = {} if self._names is None else {"names": list(self._names)}
        return {"ranges": [[label_document(limit) for limit in limits] for limits in self._ranges], **named}

    @classmethod
    def _read(cls, parameters: Mapping[str, Any]) -> Ranges:
        check_keys("Ranges", "the document", parameters, required=["ranges"], optional=["names"])
        pairs = [
            tuple(map(read_label, read_items("Ranges", "ranges", pair, 2)))
            for pair in read_items("Ranges", "ranges", parameters["ranges"])
        ]
        question = cls(pairs)
        if "names" in parameters:
            question._names = list(map(str, read_items("Ranges", "names", parameters["names"], len(pairs))))
        return question

    def __repr__(self) -> str:
        return f"Ranges({quantity(len(self._ranges), 'range')})"


def _range_name(low: str, high: str) -> str:
    """Return the name of a range; an empty string means that a limit is missing."""
    if low and high:
        return f"{low} to {high}"
    if low:
        return f"from {low}"
    return f"up to {high}" if high else "all values"


class Quantiles(Question):
    """Question: quantiles, such as the median and the quartiles.

    A quantile is found where the distribution function reaches a level. The mechanism is therefore compared by the
    error of the distribution function near the levels. Prefixes are weighted by their distance from the levels under
    the expected distribution (the ``prior`` of :func:`plan` or :func:`design`), which is uniform by default. Prefixes
    far from every level keep a small weight, because the expectation may be wrong. The domain must not have a value for
    missing answers, because quantiles of the people who answered depend on their share.

    Parameters
    ----------
    levels
        Levels between 0 and 1, by default the quartiles 0.25, 0.5 and 0.75.

    Examples
    --------
    >>> from sfumato import Domain, Quantiles
    >>> question = Quantiles([0.5]).checked(Domain.range(9))
    >>> question.matrix().max(axis=1).round(2).tolist()
    [0.1, 0.15, 0.5, 0.93, 0.93, 0.5, 0.15, 0.1]
    """

    name = "quantiles"

    def __init__(self, levels: Iterable[float] = (0.25, 0.5, 0.75)) -> None:
        must = "be a list of numbers between 0 and 1, such as [0.5] for the median"
        self.levels = tuple(read_list("Quantiles", "levels", must, levels))
        if not self.levels or not all(is_number(level) and 0 < level < 1 for level in self.levels):
            raise InvalidInput("Quantiles", "levels", must, levels)

    def _fit(self, domain: Domain) -> None:
        check_order(domain, "Quantiles")
        if domain.missing is not None:
            hint = "Ask for the Distribution, whose shares are those of all people."
            raise InvalidInput("Quantiles", "the domain", "have no value for missing answers", domain, hint=hint)

    @property
    def names(self) -> tuple[str, ...]:
        return prefix_names(self.domain)

    def matrix(self, prior: Floats | None = None) -> Floats:
        size = len(self.domain)
        expected = np.cumsum(np.full(size, 1 / size) if prior is None else prior / prior.sum())[:-1]
        distances = np.abs(expected[:, None] - np.array(self.levels)).min(axis=1)
        weights = np.maximum(np.exp(-((distances / _WIDTH) ** 2) / 2), _FAR_WEIGHT)
        return np.asarray(np.sqrt(weights)[:, None] * _prefixes(size))

    def _parameters(self) -> dict[str, Any]:
        return {"levels": [float(level) for level in self.levels]}

    @classmethod
    def _read(cls, parameters: Mapping[str, Any]) -> Quantiles:
        check_keys("Quantiles", "the document", parameters, required=["levels"])
        return cls(read_items("Quantiles", "levels", parameters["levels"]))

    def __repr__(self) -> str:
        return f"Quantiles({list(self.levels)})"


class Workload(Question):
    """Question: any linear functions of the frequencies, such as the totals of districts.

    Parameters
    ----------
    matrix
        One row per answer and one column per value in domain order; answer i is Σ_x matrix[i, x]·frequency[x]. A row
        may also be a mapping from values to weights, where values may be left out. A pandas DataFrame has the values as
        columns and the names of the answers as its index. A mapping from names to rows gives each answer a name.
    names
        The names of the answers, by default "answer 1", "answer 2" and so on.

    Examples
    --------
    >>> from sfumato import Domain, Workload
    >>> question = Workload({"any flu": {"flu A": 1, "flu B": 1}}).checked(Domain(["none", "flu A", "flu B"]))
    >>> question.names, question.matrix().tolist()
    (('any flu',), [[0.0, 1.0, 1.0]])
    """

    name = "workload"

    def __init__(self, matrix: Any, names: Iterable[str] | None = None) -> None:
        must = "be a table with one row per answer"
        if frame_rows(matrix) is not None and hasattr(matrix, "index") and hasattr(matrix, "iterrows"):
            names = list(matrix.index) if names is None else names
            matrix = [dict(row) for _, row in matrix.iterrows()]
        elif isinstance(matrix, Mapping):
            names, matrix = (list(matrix) if names is None else names), list(matrix.values())
        self._rows = read_list("Workload", "matrix", must, matrix)
        if not self._rows:
            raise InvalidInput("Workload", "matrix", must, matrix)
        if names is None:
            names = [f"answer {i + 1}" for i in range(len(self._rows))]
        self._names = list(map(str, read_list("Workload", "names", "be names, one per row", names)))
        if len(self._names) != len(self._rows):
            got = Description(quantity(len(self._names), "name"))
            raise InvalidInput("Workload", "names", f"be {len(self._rows)} names, one per row", got)
        self._matrix: Floats = np.zeros((0, 0))

    def _fit(self, domain: Domain) -> None:
        rows = [
            read_numbers(domain, row, "Workload", f"row {name!r}", absent=0.0)
            for name, row in zip(self._names, self._rows, strict=True)
        ]
        self._matrix = np.array(rows)
        if not np.any(np.ptp(self._matrix, axis=1) > 0) and len(domain) > 1:
            raise InvalidInput("Workload", "matrix", "have a row with different weights", Description("constant rows"))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def matrix(self, prior: Floats | None = None) -> Floats:  # noqa: ARG002
        return self._matrix.reshape(-1, len(self.domain)).copy()

    def _parameters(self) -> dict[str, Any]:
        return {"matrix": self.matrix().tolist(), "names": list(self._names)}

    @classmethod
    def _read(cls, parameters: Mapping[str, Any]) -> Workload:
        check_keys("Workload", "the document", parameters, required=["matrix"], optional=["names"])
        rows = read_items("Workload", "matrix", parameters["matrix"])
        return cls([read_items("Workload", "matrix", row) for row in rows], parameters.get("names"))

    def __repr__(self) -> str:
        return f"Workload({quantity(len(self._rows), 'answer')})"


def _prefixes(size: int) -> Floats:
    """Return one row per value but the last, with ones up to that value."""
    return np.tri(size - 1, size)
