"""Cross-tables: the estimated frequencies of all pairs of values of two attributes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato._core import (
    Floats,
    FrozenData,
    Result,
    check_keys,
    checked_type,
    quantity,
    read_items,
    read_string,
    reads_document,
    unused_name,
)
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.estimation.associations import CramersV, OddsRatio
from sfumato.estimation.estimates import Estimate
from sfumato.estimation.linear import LinearEstimate, check_confidence
from sfumato.estimation.marginals import MarginalValues
from sfumato.questions import Marginals

__all__ = ["CrossTable", "cross_table"]

#: Names of numeric columns in a cross-table; an attribute with one of these names is renamed.
_TABLE_COLUMNS = ("frequency", "standard_error")


@dataclass(frozen=True, eq=False, repr=False)
class CrossTable(FrozenData, Result):
    """Estimated frequencies of all pairs of answers to two questions.

    The table has one row per answer to the first question and one column per answer to the second. Its cells are the
    frequencies of the estimate, summed over all other questions. Standard errors and marginals always belong to the
    unbiased estimate from the same reports, even if the estimate uses another method.

    Parameters
    ----------
    estimate
        Estimate over a product domain, which has one factor per question.
    questions
        Names of the questions in the rows and in the columns.

    See Also
    --------
    cross_table : Construct a cross-table from an estimate.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain.product(smokes=sf.Domain(["yes", "no"]), sex=sf.Domain(["f", "m"]))
    >>> result = sf.simulate(sf.Uniform(domain, 2), n=10_000, seed=1)
    >>> table = sf.cross_table(result.estimate)
    >>> table.labels
    (('yes', 'no'), ('f', 'm'))
    >>> table.frequencies.shape
    (2, 2)
    """

    estimate: Estimate
    questions: tuple[str, str]

    format: ClassVar[str] = "sfumato-cross-table"

    @property
    def labels(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The answers in the rows, and the answers in the columns, each in domain order."""
        rows, columns = (self.estimate.domain.factors[name].labels for name in self.questions)
        return rows, columns

    @functools.cached_property
    def _marginal(self) -> MarginalValues:
        """The estimate of the table, from counts or from the frequencies of all combinations."""
        (axes,) = self._question.axes
        return self.estimate._marginal(axes)

    @property
    def _question(self) -> Marginals:
        """The question that asks for this table."""
        return Marginals(tables=[self.questions]).checked(self.estimate.domain)

    @functools.cached_property
    def frequencies(self) -> Floats:
        """Estimated frequency of each pair of answers: shape (answers in the rows, answers in the columns)."""
        if not self.estimate.is_complete:
            return self.unbiased
        return self._table(self._question.answers_of(self.estimate.frequencies))

    @functools.cached_property
    def unbiased(self) -> Floats:
        """Unbiased frequency of each pair of answers, with the shape of :attr:`frequencies`."""
        return self._table(self._marginal.cells)

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """Standard error of each cell of :attr:`frequencies`, with the same shape, for the unbiased estimate."""
        estimate = self.estimate
        if len(estimate.domain.factors) == 2 and estimate.is_complete:
            return self._table(self._question.answers_of(estimate.standard_errors))
        return self._table(np.sqrt(self._marginal.variances / estimate.n))

    @functools.cached_property
    def covariance(self) -> Floats:
        """Covariance of the unbiased cells, row by row: shape (cells, cells).

        Raises
        ------
        LimitExceeded
            If the table has too many cells, or the mechanism has no short form of its covariance.
        """
        return self._marginal.covariance() / self.estimate.n

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the lower and upper confidence limits of each cell, within [0, 1].

        Parameters
        ----------
        confidence
            Confidence level, above 0 and below 1.

        Returns
        -------
        tuple of arrays
            The lower and the upper limits, with the shape of :attr:`frequencies` (see :class:`MarginalTables`).
        """
        check_confidence(confidence)
        low, high = self._marginal.limits(self.estimate.n, 1 - confidence)
        return self._table(low), self._table(high)

    def odds_ratio(self) -> OddsRatio:
        """Estimate the odds ratio of a table with two rows and two columns.

        Returns
        -------
        OddsRatio
            The ratio with its interval and the p-value of independence.

        Raises
        ------
        InvalidInput
            If the table does not have two rows and two columns.
        """
        return OddsRatio(self)

    def cramers_v(self) -> CramersV:
        """Estimate Cramér's V, the association between both questions on a scale from 0 to 1.

        Returns
        -------
        CramersV
            The measure with its interval and the p-value of independence.

        Raises
        ------
        NoAnswer
            When the measure is computed, if the share of a row or a column is not clearly above 0.
        """
        return CramersV(self)

    @functools.cached_property
    def marginals(self) -> dict[str, dict[Any, LinearEstimate]]:
        """Estimated frequency of each answer alone, as ``marginals[question][answer]``, by the unbiased estimate."""
        domain = self.estimate.domain
        return {
            name: {
                label: self.estimate.linear(group)
                for label, group in zip(
                    domain.factors[name], Marginals(tables=[name]).checked(domain).rows(), strict=True
                )
            }
            for name in self.questions
        }

    def _table(self, cells: Floats) -> Floats:
        """Return the cells as a table."""
        return np.asarray(cells.reshape([len(labels) for labels in self.labels]))

    def _columns(self) -> Mapping[str, Any]:
        rows, columns = self.labels
        first, second = self.questions
        first = unused_name(first, {*_TABLE_COLUMNS, second})
        second = unused_name(second, {*_TABLE_COLUMNS, first})
        return {
            first: [row for row in rows for _ in columns],
            second: [column for _ in rows for column in columns],
            "frequency": self.frequencies.ravel(),
            "standard_error": self.standard_errors.ravel(),
        }

    def _title(self) -> str:
        return f"{self.questions[0]} by {self.questions[1]}, {quantity(self.estimate.n, 'report')}"

    def __repr__(self) -> str:
        return f"CrossTable(questions={self.questions}, n={self.estimate.n})"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a JSON-compatible dict.

        Returns
        -------
        dict
            The estimate and the names of the questions; :meth:`from_dict` reads them.
        """
        return {
            "format": self.format,
            "version": 1,
            "estimate": self.estimate.to_dict(),
            "questions": list(self.questions),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> CrossTable:
        """Return the table that :meth:`to_dict` converted to a dict.

        Parameters
        ----------
        document
            Dict that :meth:`to_dict` returned.

        Returns
        -------
        CrossTable
            The original table.

        Raises
        ------
        InvalidInput
            If a key is missing or unknown, or the estimate in the dict is invalid.
        UnknownSpec
            If the format or the version is another one.
        """
        subject = "CrossTable.from_dict"
        document = check_keys(
            subject, "the document", document, required=("format", "version", "estimate", "questions")
        )
        if (document["format"], document["version"]) != (cls.format, 1):
            must = f"be {cls.format!r} in version 1"
            raise UnknownSpec(subject, "format", must, (document["format"], document["version"]))
        rows, columns = (
            read_string(subject, "a question", question)
            for question in read_items(subject, "questions", document["questions"], 2)
        )
        return cross_table(Estimate.from_dict(document["estimate"]), rows, columns)

    def __str__(self) -> str:
        corner = f"{self.questions[0]} by {self.questions[1]}"
        lines = ["".join(f"{label!s:>20}" for label in (corner, *self.labels[1]))]
        for label, frequencies, errors in zip(self.labels[0], self.frequencies, self.standard_errors, strict=True):
            cells = (
                f"{f'{frequency:.4f} ± {error:.4f}':>20}" for frequency, error in zip(frequencies, errors, strict=True)
            )
            lines.append(f"{label!s:>20}" + "".join(cells))
        return "\n".join(lines)


def cross_table(estimate: Estimate, rows: str | None = None, columns: str | None = None) -> CrossTable:
    """Return the estimated frequencies of all pairs of answers to two questions.

    The reports must determine the table: they are about all answers together, about each answer separately, or about
    pairs of answers (see :meth:`Questionnaire.plan`).

    Parameters
    ----------
    estimate
        Estimate over a ``Domain.product`` with one factor per question.
    rows
        Name of the question in the rows. The default is the first question, if there are exactly two.
    columns
        Name of the question in the columns. The default is the second question, if there are exactly two.

    Returns
    -------
    CrossTable
        The table, with the standard error of every cell and the marginals of both questions.

    Raises
    ------
    InvalidInput
        If the names are not two different questions of the estimate.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain.product(smokes=sf.Domain(["yes", "no"]), sex=sf.Domain(["f", "m"]))
    >>> result = sf.simulate(sf.Uniform(domain, 2), n=10_000, seed=1)
    >>> table = sf.cross_table(result.estimate, rows="sex", columns="smokes")
    >>> table.questions
    ('sex', 'smokes')
    """
    checked_type("cross_table", "the estimate", estimate, Estimate)
    domain = estimate.domain
    factors = domain.factors
    if rows is None and columns is None and len(factors) == 2:
        rows, columns = factors
    if rows not in factors or columns not in factors or rows == columns:
        if not factors:
            hint = "Collect joint reports over Domain.product(...) to get a cross-table."
            raise InvalidInput("cross_table", "estimate", "be over a product of questions", domain.kind, hint=hint)
        must = f"name two of the questions {', '.join(map(repr, factors))}"
        raise InvalidInput("cross_table", "rows and columns", must, (rows, columns))
    assert rows is not None
    assert columns is not None
    return CrossTable(estimate, (rows, columns))
