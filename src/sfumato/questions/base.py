"""The base class of questions."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from sfumato._core import Floats, check_keys, checked_type, reads_document
from sfumato.domain import Domain
from sfumato.errors import InvalidInput

__all__ = ["Question"]


class Question(ABC):
    """Base class of questions: what is to be learned about the frequencies of the values.

    The answers to a question are linear functions of the frequencies. With frequencies p, they are W·p for a matrix W
    with one row per answer and one column per value. Pass a question to :func:`plan`, :func:`design` or
    :func:`optimal` as ``question``. The mechanism is then compared or designed by the expected squared error of the
    answers, added up. Subclasses are :class:`Frequencies`, :class:`Mean`, :class:`Distribution`, :class:`Ranges`,
    :class:`Quantiles`, :class:`Marginals` and :class:`Workload`.

    Attributes
    ----------
    name
        Word for the kind of question in documents and on the command line, such as ``"mean"``.

    Examples
    --------
    >>> from sfumato import Domain, Mean
    >>> question = Mean().checked(Domain.range(4))
    >>> question.name, question.matrix().tolist()
    ('mean', [[0.0, 1.0, 2.0, 3.0]])
    """

    name: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Question]]] = {}
    _domain: Domain | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._kinds[cls.name] = cls

    @property
    def domain(self) -> Domain:
        """The domain that the question was fitted to by :meth:`checked`.

        Raises
        ------
        InvalidInput
            If the question was not fitted to a domain.
        """
        if self._domain is None:
            hint = "Call question.checked(domain) first."
            raise InvalidInput(type(self).__name__, "the question", "be fitted to a domain", self, hint=hint)
        return self._domain

    def checked(self, domain: Domain) -> Self:
        """Check that the question fits a domain, and return it with its numbers in domain order.

        Parameters
        ----------
        domain
            The domain of the policy.

        Returns
        -------
        Question
            A copy that is fitted to the domain.

        Raises
        ------
        InvalidInput
            If the question does not fit the domain, for example because the labels of the values are not numbers.
        """
        checked_type(type(self).__name__, "the domain", domain, Domain)
        fitted = copy.copy(self)
        fitted._domain = domain
        fitted._fit(domain)
        return fitted

    @abstractmethod
    def _fit(self, domain: Domain) -> None:
        """Read the parameters of the question in the order of a domain, or raise InvalidInput."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The name of each answer, in the order of the rows of :meth:`matrix`."""

    @abstractmethod
    def matrix(self, prior: Floats | None = None) -> Floats:
        """Return the matrix W of the question; the answers are W·p for frequencies p.

        Parameters
        ----------
        prior
            Expected frequencies in domain order, by which :class:`Quantiles` chooses its weights; uniform by default.
            Other questions do not depend on it.

        Returns
        -------
        numpy.ndarray
            One row per answer and one column per value, in domain order.
        """

    def rows(self, prior: Floats | None = None) -> Iterator[Floats]:
        """Yield the rows of :meth:`matrix` one at a time; questions with many answers do not build the matrix.

        Parameters
        ----------
        prior
            Expected frequencies in domain order, as for :meth:`matrix`.

        Yields
        ------
        numpy.ndarray
            The weights of one answer, in domain order.
        """
        yield from self.matrix(prior)

    @property
    def axes(self) -> tuple[tuple[int, ...], ...] | None:
        """The positions in the domain of the attributes of each marginal table, if the answers are such tables.

        None for questions that are not about tables.
        """
        return None

    def answers_of(self, frequencies: Floats, prior: Floats | None = None) -> Floats:
        """Return the answers W·p for known frequencies p.

        Parameters
        ----------
        frequencies
            The frequency of each value, shape (k,), in domain order.
        prior
            Expected frequencies in domain order, as for :meth:`matrix`.

        Returns
        -------
        numpy.ndarray
            One number per answer, in the order of :attr:`names`.
        """
        return np.asarray(self.matrix(prior) @ frequencies)

    def to_dict(self) -> dict[str, Any]:
        """Return the question as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            The entry ``"question"`` is the ``name``; other entries are the parameters. Numbers per value are in the
            order of the domain, so a question with such numbers must be fitted to its domain.
        """
        return {"question": self.name, **self._parameters()}

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON-compatible entries."""
        return {}

    @classmethod
    def _read(cls, parameters: Mapping[str, Any]) -> Question:
        """Return the question with these parameters."""
        check_keys(cls.__name__, "the document", parameters)
        return cls()

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> Question:
        """Return the question that :meth:`to_dict` wrote, not fitted to a domain.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        Question
            The question; call :meth:`checked` with its domain.

        Raises
        ------
        InvalidInput
            If the dict is malformed.
        """
        content: object = document
        if not isinstance(content, Mapping) or content.get("question") not in Question._kinds:
            kinds = ", ".join(repr(name) for name in Question._kinds)
            must = f"be a mapping whose entry 'question' is one of {kinds}"
            raise InvalidInput("Question.from_dict", "the document", must, document)
        kind = Question._kinds[document["question"]]
        return kind._read({key: entry for key, entry in document.items() if key != "question"})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Question):
            return NotImplemented
        return self._domain == other._domain and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self._domain))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
