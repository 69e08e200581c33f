"""Answers to a question: sums of frequencies with errors, intervals and simultaneous bands."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sfumato._core import MOST_ROWS, Floats, FrozenData, Result, percent, plot_result, quantity, reads_document
from sfumato.errors import Description, InvalidInput, UnknownLabel
from sfumato.estimation.bands import simultaneous_alphas
from sfumato.estimation.binning import is_mean_of_labels, largest_rounding, stated
from sfumato.estimation.documents import VERSION, check_document, read_estimate, read_header
from sfumato.estimation.linear import LinearEstimate, check_confidence, reduced_weights
from sfumato.questions import Question

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.figure import Figure

    from sfumato.estimation.estimates import Estimate

__all__ = ["Answers"]

_SUBJECT = "Answers.from_dict"


@dataclass(frozen=True, eq=False, repr=False)
class Answers(FrozenData, Result):
    """The estimated answers to a question, as ``Estimate.answers`` returns them.

    ``answers[name]`` returns one answer. Answers are unbiased estimates, whatever the method of the estimate is.

    Parameters
    ----------
    estimate
        The estimate from which the answers are computed.
    question
        The question, fitted to the domain of the estimate.

    Examples
    --------
    >>> from sfumato import Domain, Ranges, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 20 + [2] * 10 + [3] * 10))
    >>> answers = result.answers(Ranges({"low": (0, 1), "high": (2, 3)}))
    >>> print(answers)
    2 answers to the question "ranges", 100 reports, 95% intervals
    answer     value  standard_error     low    high
    low      0.97143        0.062857  0.8271       1
    high    0.028571        0.062857       0  0.1729
    >>> print(answers["low"])
    0.971429 ± 0.063
    """

    estimate: Estimate
    question: Question

    #: Name of the class in documents.
    format: ClassVar[str] = "sfumato-answers"
    #: Classes of answers by the name of their question; other questions have answers of the class ``Answers``.
    _kinds: ClassVar[dict[str, type[Answers]]] = {}

    def __init_subclass__(cls, *, question: str) -> None:
        Answers._kinds[question] = cls

    @classmethod
    def of(cls, estimate: Estimate, question: Question) -> Answers:
        """Return the answers to a fitted question, in the class of its kind.

        Parameters
        ----------
        estimate
            The estimate from which the answers are computed.
        question
            The question, fitted to the domain of the estimate.

        Returns
        -------
        Answers
            The answers.
        """
        return Answers._kinds.get(question.name, Answers)(estimate, question)

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the answers, in the order of ``values``."""
        return self.question.names

    @functools.cached_property
    def _matrix(self) -> Floats:
        """The weights of the frequencies, with one row per answer."""
        return self.question.matrix()

    @functools.cached_property
    def _reduced(self) -> tuple[Floats, Floats]:
        """The constants and the weights from which the answers are estimated (see ``reduced_weights``)."""
        pairs = [reduced_weights(row) for row in self._matrix]
        rows = np.reshape([row for _, row in pairs], self._matrix.shape)
        return np.array([constant for constant, _ in pairs]), rows

    def _number(self, row: int) -> LinearEstimate:
        """Return one answer."""
        return stated(self.estimate.linear(self._matrix[row]), self.estimate, self.question)

    @functools.cached_property
    def values(self) -> Floats:
        """The estimated answers, in the order of ``names``."""
        constants, rows = self._reduced
        return np.asarray(constants + [self.estimate._sum(row)[0] for row in rows])

    @functools.cached_property
    def _errors(self) -> Floats:
        """Standard error of each answer, and the distance by which one additional report could move it."""
        pairs = [self.estimate._linear_error(row) if row.any() else (0.0, 0.0) for row in self._reduced[1]]
        return np.asarray(np.reshape(pairs, (-1, 2)))

    @property
    def standard_errors(self) -> Floats:
        """The standard error of each answer, in the order of ``names``."""
        return self._errors[:, 0]

    @functools.cached_property
    def covariance(self) -> Floats:
        """The covariance matrix of the answers, in the order of ``names``.

        Raises
        ------
        LimitExceeded
            If the domain has more than 20,000 values.
        """
        return self.estimate._sum_covariance(self._reduced[1])

    @property
    def rounding(self) -> float:
        """The largest error that dividing numbers into bins adds to an answer; 0 if the domain has no bins.

        It is half the width of the widest bin for the mean of a domain of binned numbers. Standard errors and intervals
        do not include it.
        """
        return largest_rounding(self.estimate.domain) if is_mean_of_labels(self.question) else 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reasons why a mean is misleading, because many numbers were clipped; empty if there are none."""
        return self._number(0).warnings if is_mean_of_labels(self.question) else ()

    def interval(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Return the lower and upper confidence limits of each answer.

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1: the probability with which the interval of an answer contains its
            true value.
        simultaneous
            If True, all intervals together contain the true answers with this confidence. If False, each interval does
            so on its own.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, in the order of ``names``.

        Raises
        ------
        InvalidInput
            If the confidence level does not lie between 0 and 1, or is too close to 1.

        Notes
        -----
        Each interval is that of ``Estimate.linear``, which inverts the law of the estimate. Simultaneous intervals have
        a higher level. It is the level at which the largest standardized error of dependent normal variables stays
        within the limits. Its quantile comes from 5,000 to 20,000 draws with a fixed seed, and is rounded up. Answers
        to which few reports contribute are not nearly normal. They get their share of 1 - confidence by the Bonferroni
        correction, as do all answers if there are more than 2,048.
        """
        check_confidence(confidence, max(len(self), 1) if simultaneous else 1)
        alphas = np.full(len(self), 1 - confidence)
        if simultaneous:
            alphas = simultaneous_alphas(self.covariance, self._errors[:, 1], 1 - confidence)
        limits = [self._number(row).interval(1 - alpha) for row, alpha in enumerate(alphas.tolist())]
        low, high = np.reshape(limits, (-1, 2)).T
        return low, high

    def __getitem__(self, name: object) -> Any:
        """Return one answer by its name; raise UnknownLabel, which is also a KeyError, for an unknown name."""
        if name not in self.names:
            raise UnknownLabel(type(self).__name__, "the name", f"be one of {list(self.names)}", name)
        return self._number(self.names.index(name))

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    # -- tables and pictures -----------------------------------------------------------------------------------

    def to_pandas(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pandas.DataFrame:
        """Return the answers as a pandas DataFrame with one row per answer.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true answers with this confidence (see ``interval``).

        Returns
        -------
        pandas.DataFrame
            The columns ``answer``, ``value``, ``standard_error``, ``low`` and ``high``.
        """
        return super().to_pandas(confidence, simultaneous=simultaneous)

    def to_arrow(self, confidence: float = 0.95, *, simultaneous: bool = False) -> pyarrow.Table:
        """Return the table of ``to_pandas`` as an Arrow table.

        Parameters
        ----------
        confidence
            Confidence level of the limits ``low`` and ``high``, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true answers with this confidence (see ``interval``).

        Returns
        -------
        pyarrow.Table
            The columns of ``to_pandas``.
        """
        return super().to_arrow(confidence, simultaneous=simultaneous)

    def plot(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Figure:
        """Draw the answers with their intervals.

        Parameters
        ----------
        confidence
            Confidence level of the intervals, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true answers with this confidence (see ``interval``).

        Returns
        -------
        matplotlib.figure.Figure
            The figure; requires matplotlib (the extra ``plot``).
        """
        figure: Figure = plot_result(self, confidence, simultaneous=simultaneous)
        return figure

    #: Names of the first two columns of the table.
    _headings: ClassVar[tuple[str, str]] = ("answer", "value")

    @property
    def _row_labels(self) -> tuple[Any, ...]:
        """The entries of the first column of the table."""
        return self.names

    def _columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        return self.named_columns(confidence, simultaneous=simultaneous)

    def named_columns(self, confidence: float = 0.95, *, simultaneous: bool = False) -> Mapping[str, Sequence[Any]]:
        """Return the answers as five columns: name, number, standard error and limits.

        Parameters
        ----------
        confidence
            Confidence level of the limits, above 0 and below 1.
        simultaneous
            If True, all intervals together contain the true answers with this confidence (see ``interval``).

        Returns
        -------
        dict of str to sequence
            The columns by their names, in this order.
        """
        low, high = self.interval(confidence, simultaneous=simultaneous)
        name, value = self._headings
        columns: dict[str, Any] = {name: list(self._row_labels), value: self.values}
        return {**columns, "standard_error": self.standard_errors, "low": low, "high": high}

    def _shown(self) -> Mapping[str, Sequence[Any]]:
        rows = range(min(len(self), MOST_ROWS))
        limits = [self._number(row).interval() for row in rows]
        name, value = self._headings
        columns: dict[str, Any] = {
            value: self.values[: len(rows)],
            "standard_error": self.standard_errors[: len(rows)],
            "low": [low for low, _ in limits],
            "high": [high for _, high in limits],
        }
        cells = {heading: [f"{number:.5g}" for number in column] for heading, column in columns.items()}
        return {name: [str(label) for label in self._row_labels[: len(rows)]], **cells}

    def _left_out(self) -> int:
        return max(0, len(self) - MOST_ROWS)

    def _notes(self) -> Sequence[str]:
        return self._number(0)._notes()

    def _title(self) -> str:
        count = quantity(len(self), "answer")
        reports = quantity(self.estimate.n, "report")
        return f'{count} to the question "{self.question.name}", {reports}, {percent(0.95)} intervals'

    def __repr__(self) -> str:
        return f"{type(self).__name__}(question={self.question!r}, answers={len(self)}, n={self.estimate.n})"

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The documents of the question and of the estimate. The answers follow from them.
        """
        parts = {"question": self.question.to_dict(), "estimate": self.estimate.to_dict()}
        return {"format": self.format, "version": VERSION, **parts}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Answers:
        """Return the answers that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        Answers
            Answers equal to those that were written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, the question does not fit the domain, or the estimate contradicts its counts (see
            ``Estimate.from_dict``).
        """
        read_header(_SUBJECT, document, Answers.format)
        document = check_document(_SUBJECT, document, ("question", "estimate"))
        estimate = read_estimate(document["estimate"])
        question = Question.from_dict(document["question"]).checked(estimate.domain)
        result = Answers.of(estimate, question)
        if not isinstance(result, cls):
            got = Description(f'the question "{question.name}"')
            raise InvalidInput(_SUBJECT, "the question", f"have answers of the class {cls.__name__}", got)
        return result
