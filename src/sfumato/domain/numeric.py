"""Numbers of a domain: construction of numeric kinds, and the numeric properties of the class ``Domain``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np

from sfumato._core import Floats, exact_fraction
from sfumato.domain.kinds.base import DomainKind, Scalar
from sfumato.domain.kinds.bounded import Bounded, range_of
from sfumato.domain.kinds.counted import Counted, checked_size
from sfumato.domain.kinds.intervals import Intervals, decimal, even_intervals, uneven_intervals
from sfumato.domain.kinds.missing import WithMissing, with_missing
from sfumato.domain.kinds.product import Product
from sfumato.domain.refusals import At
from sfumato.domain.scalars import Label
from sfumato.errors import InvalidInput

#: Parameters of ``numeric_kind``.
_OPTIONS = ("low", "high", "bins", "step", "closed", "edges", "out_of_range")


def numeric_kind(options: Mapping[str, Any], at: Callable[[str], At]) -> Scalar:
    """Return the kind for bounds or edges; without ``bins`` and ``step``, the bounds are those of a range of ints.

    ``options`` are the parameters of ``Domain.numbers``, of which any may be None or left out, and ``at`` maps the name
    of one to its place in messages.
    """
    low, high, bins, step, closed, edges, out_of_range = map(options.get, _OPTIONS)
    if out_of_range not in (None, "clip", "refuse"):
        raise at("out_of_range").error("be 'clip' or 'refuse'", out_of_range)
    if closed not in (None, "left", "right"):
        raise at("closed").error("be 'left' or 'right'", closed)
    clips = out_of_range != "refuse"
    if edges is not None:
        if not isinstance(edges, Iterable) or isinstance(edges, (str, Mapping, set, frozenset)):
            raise at("edges").error("be a list of numbers", edges)
        return uneven_intervals(list(edges), at("edges"), closed=closed or "left", clips=clips)
    if bins is None and step is None:
        if closed is not None:
            raise at("closed").error("come with bins or step", closed)
        return range_of(low, high, at("low"), at("high"), clips=clips)
    places = at("low"), at("high"), at("bins"), at("step")
    return even_intervals(low, high, bins, step, places, closed=closed or "left", clips=clips)


def exact_coordinates(domain: NumericDomain) -> list[tuple[Fraction | None, ...]]:
    """Return the exact numbers of each value, one per part of a label that is a tuple; None for other parts."""
    kind = domain._kind
    if isinstance(kind, Product):
        return list(
            itertools.product(*(factor.exact_numbers() or [None] * factor.size for factor in kind.factor_kinds))
        )
    numbers = kind.exact_numbers()
    if numbers is not None:
        return [(number,) for number in numbers]
    return [tuple(map(_part, label)) if isinstance(label, tuple) else (None,) for label in kind.labels()]


def _part(label: Label) -> Fraction | None:
    """Return the number that a part of a tuple is, or None."""
    return exact_fraction(label) if isinstance(label, (int, float)) and not isinstance(label, bool) else None


class NumericDomain:
    """Part of the class ``Domain`` that deals with numbers, their order and missing values."""

    __slots__ = ()
    _kind: DomainKind

    @classmethod
    def _of(cls, kind: DomainKind) -> Self:
        """Return the domain of a kind."""
        domain = cls.__new__(cls)
        object.__setattr__(domain, "_kind", kind)
        return domain

    @classmethod
    def range(
        cls,
        k: int,
        high: int | None = None,
        *,
        out_of_range: Literal["clip", "refuse"] | None = None,
        missing: str | None = None,
    ) -> Self:
        """Return the domain of the ints 0..k-1, or k..high-1; only the bounds are stored.

        Parameters
        ----------
        k
            Number of labels, from 1 to 2**31. With ``high``, the first label.
        high
            The first int after the last label, as in Python's ``range``.
        out_of_range
            ``"clip"`` encodes numbers below the first label as the first label, and numbers above the last label as the
            last one. ``"refuse"`` rejects them. The default is ``"clip"`` with ``high``, because a device that refuses
            to answer reveals its value by its silence. Without ``high``, the default is ``"refuse"``.
        missing
            Label of missing values, which is added as the last label. If it is None, missing values are rejected.

        Returns
        -------
        Domain
            A domain of kind ``"range"``.

        Examples
        --------
        >>> from sfumato import Domain
        >>> Domain.range(1000).label(999)
        999
        >>> ages = Domain.range(17, 91, missing="unknown")
        >>> ages.decode(ages.encode([17, 34, 102, None]))
        [17, 34, 90, 'unknown']
        """
        if high is None and out_of_range is None:
            kind: Scalar = Counted(checked_size(k, At("Domain.range", "k")))
        else:
            low, end = (0, checked_size(k, At("Domain.range", "k"))) if high is None else (k, high)
            kind = numeric_kind(
                {"low": low, "high": end, "out_of_range": out_of_range},
                lambda name: At("Domain.range", "k" if name == "low" else name),
            )
        return cls._of(with_missing(kind, missing, At("Domain.range", "missing")))

    @classmethod
    def numbers(
        cls,
        low: Any = None,
        high: Any = None,
        *,
        bins: int | None = None,
        step: Any = None,
        edges: Iterable[Any] | None = None,
        closed: Literal["left", "right"] = "left",
        out_of_range: Literal["clip", "refuse"] = "clip",
        missing: str | None = None,
    ) -> Self:
        """Return a domain of real numbers, whose values are the bins that the device puts the numbers into.

        The label of a bin is its interval, such as ``"[20, 25)"``. :meth:`encode` takes numbers, labels of bins, and
        ``pandas.Interval`` that equal a bin.

        Parameters
        ----------
        low
            Lower bound of the first bin.
        high
            Upper bound of the last bin.
        bins
            Number of bins of equal width, at most 2**20.
        step
            Width of the bins, instead of their number. The distance of the bounds must be a multiple.
        edges
            All edges of the bins in ascending order, instead of ``low``, ``high`` and ``bins`` or ``step``.
        closed
            Side on which a bin contains its edge: ``"left"`` for [20, 25), ``"right"`` for (20, 25]. The outermost bins
            contain the bounds.
        out_of_range
            ``"clip"`` puts numbers below ``low`` into the first bin and numbers above ``high`` into the last bin,
            because a device that refuses to answer reveals its value by its silence. ``"refuse"`` rejects them.
        missing
            Label of missing values, which is added as the last label. If it is None, missing values are rejected.

        Returns
        -------
        Domain
            A domain of kind ``"numbers"``.

        Raises
        ------
        InvalidInput
            If the bounds are not ascending numbers, or the step does not divide their distance.

        Notes
        -----
        A bound means the decimal as written: 0.1 is one tenth. Edges are computed exactly. A value is compared with the
        double nearest to each edge, in the same way in lists, arrays, files, Spark and the browser client.

        Examples
        --------
        >>> from sfumato import Domain
        >>> incomes = Domain.numbers(0, 200_000, bins=4)
        >>> incomes.labels
        ('[0, 50000)', '[50000, 100000)', '[100000, 150000)', '[150000, 200000]')
        >>> incomes.encode([49_999.99, 50_000, 1_000_000, -3])
        array([0, 1, 3, 0])
        """
        bounds = {"low": low, "high": high, "bins": bins, "step": step}
        at = functools.partial(At, "Domain.numbers")
        if edges is None and bins is None and step is None:
            raise at("bins").error("be given, or step or edges", None)
        if edges is not None and any(value is not None for value in bounds.values()):
            raise at("edges").error("come without low, high, bins and step", bounds)
        options = {**bounds, "edges": edges, "closed": closed, "out_of_range": out_of_range}
        return cls._of(with_missing(numeric_kind(options, at), missing, at("missing")))

    @property
    def missing(self) -> str | None:
        """The label of missing values, which is the last label; None if the domain rejects missing values."""
        return self._kind.missing

    @property
    def is_ordered(self) -> bool:
        """Whether the values are in an order: one dimension, and ascending if they are numbers.

        Labels that are not numbers count as ordered, in the order in which they were listed. The value for missing
        answers is last.
        """
        return self._kind.is_ordered

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers or bins of numbers, apart from the value for missing answers."""
        return self._kind.is_numeric

    @property
    def numeric_values(self) -> Floats:
        """The number of each value, as an array of shape (size,): a numeric label, or the midpoint of a bin.

        The number of the value for missing answers is NaN. Other domains raise :class:`InvalidInput`.
        """
        numbers = self._kind.numbers()
        if numbers is None:
            hint = "Use Domain.range, Domain.numbers or labels that are numbers."
            raise InvalidInput("Domain.numeric_values", "the labels", "be numbers", self, hint=hint)
        return numbers

    @property
    def widths(self) -> Floats:
        """The width of each bin, as an array of shape (size,); 0 for labels that stand for themselves.

        The number of a person differs from the midpoint of the bin by at most half its width, unless it was out of
        range. The width of the value for missing answers is NaN.
        """
        return self._kind.widths()

    @property
    def clipped(self) -> tuple[float, float] | None:
        """The least and the greatest number to which numbers out of range are clipped; None if they are rejected."""
        kind = self._values
        if isinstance(kind, Intervals) and kind.clips:
            return float(kind.edges[0]), float(kind.edges[-1])
        return (kind.low, kind.last) if isinstance(kind, Bounded) and kind.clips else None

    @property
    def bin_edges(self) -> Floats:
        """The edges of the bins of a domain of numbers, ascending: one more than there are bins.

        Other domains raise :class:`InvalidInput`.
        """
        kind = self._values
        if not isinstance(kind, Intervals):
            hint = "Build the domain with Domain.numbers."
            raise InvalidInput("Domain.bin_edges", "the domain", "have bins", self, hint=hint)
        return kind.edges

    def above(self, bound: Any) -> tuple[Label, ...]:
        """Return the labels of the numbers from a bound upwards.

        Parameters
        ----------
        bound
            The lowest number. If the domain has bins, it must be one of their edges.

        Returns
        -------
        tuple
            Labels in domain order, without that of missing values.

        Raises
        ------
        InvalidInput
            If the labels are not numbers, no label is selected, or the bound is inside a bin.

        Examples
        --------
        >>> from sfumato import Domain
        >>> Domain.numbers(0, 200_000, step=50_000).above(100_000)
        ('[100000, 150000)', '[150000, 200000]')
        """
        return self._between(bound, None, "Domain.above")

    def below(self, bound: Any) -> tuple[Label, ...]:
        """Return the labels of the numbers below a bound, which is itself excluded.

        Parameters
        ----------
        bound
            The lowest number that is not selected. If the domain has bins, it must be one of their edges.

        Returns
        -------
        tuple
            Labels in domain order, without that of missing values.

        Raises
        ------
        InvalidInput
            If the labels are not numbers, no label is selected, or the bound is inside a bin.

        Examples
        --------
        >>> from sfumato import Domain
        >>> Domain.range(16, 91).below(18)
        (16, 17)
        """
        return self._between(None, bound, "Domain.below")

    def between(self, low: Any, high: Any) -> tuple[Label, ...]:
        """Return the labels of the numbers from a low bound up to, but not including, a high bound.

        Parameters
        ----------
        low
            The lowest number. If the domain has bins, it must be one of their edges.
        high
            The lowest number above the selected ones. If the domain has bins, it must be one of their edges.

        Returns
        -------
        tuple
            Labels in domain order, without that of missing values.

        Raises
        ------
        InvalidInput
            If the labels are not numbers, no label is selected, or a bound is inside a bin.

        Examples
        --------
        >>> from sfumato import Domain
        >>> Domain.range(16, 91).between(18, 21)
        (18, 19, 20)
        """
        return self._between(low, high, "Domain.between")

    def split(self, bounds: Iterable[Any]) -> list[list[Label]]:
        """Return the labels in groups, separated at some numbers, such as the blocks of a :class:`Blocks` policy.

        Parameters
        ----------
        bounds
            Ascending numbers. Each is the lowest number of a group. If the domain has bins, they must be edges.

        Returns
        -------
        list
            One list of labels per group: one more than there are bounds. The label of missing values is in a further
            group.

        Raises
        ------
        InvalidInput
            If the labels are not numbers, a group is empty, or a bound is inside a bin.

        Examples
        --------
        >>> from sfumato import Domain
        >>> Domain.range(16, 23).split([18, 21])
        [[16, 17], [18, 19, 20], [21, 22]]
        """
        limits = [None, *bounds, None]
        pairs = itertools.pairwise(limits)
        groups = [list(self._between(low, high, "Domain.split")) for low, high in pairs]
        return groups if self.missing is None else [*groups, [self.missing]]

    @property
    def _values(self) -> DomainKind:
        """The kind without the value for missing answers."""
        return self._kind.values if isinstance(self._kind, WithMissing) else self._kind

    def _between(self, low: Any, high: Any, subject: str) -> tuple[Label, ...]:
        """Return the labels between two bounds, of which None means no bound."""
        kind = self._values
        least, most = (None if bound is None else self._bound(kind, bound, subject) for bound in (low, high))
        if isinstance(kind, Intervals):
            ends = list(itertools.pairwise(kind.exact_edges))
            chosen = [(least is None or a >= least) and (most is None or b <= most) for a, b in ends]
        else:
            numbers = kind.exact_numbers()
            if numbers is None:
                raise InvalidInput(subject, "the labels", "be numbers", self)
            chosen = [
                (least is None or number >= least) and (most is None or number < most)
                for number in numbers
                if number is not None
            ]
        if not any(chosen):
            raise InvalidInput(subject, "the bounds", "select at least one value", (low, high))
        return tuple(kind.label(i) for i in np.flatnonzero(chosen).tolist())

    @staticmethod
    def _bound(kind: DomainKind, bound: Any, subject: str) -> Fraction:
        """Return a bound as a number, which must be an edge if the domain has bins."""
        try:
            number = exact_fraction(bound)
        except (TypeError, ValueError, ArithmeticError):
            raise InvalidInput(subject, "a bound", "be a number", bound) from None
        if isinstance(kind, Intervals):
            # A float may be the double nearest to an edge, as ``bin_edges`` has it.
            doubles = map(exact_fraction, kind.edges.tolist())
            number = dict(zip(doubles, kind.exact_edges, strict=True)).get(number, number)
        if isinstance(kind, Intervals) and number not in kind.exact_edges:
            near = sorted(kind.exact_edges, key=lambda edge: abs(edge - number))[:2]
            hint = f"The nearest edges are {' and '.join(decimal(edge) for edge in sorted(near))}."
            raise InvalidInput(subject, "a bound", "be an edge of a bin", bound, hint=hint)
        return number
