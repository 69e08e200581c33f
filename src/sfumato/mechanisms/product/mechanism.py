"""Products: several mechanisms side by side, one for each coordinate of a value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from sfumato._core import Epsilon, Floats, quantity, read_list
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import LARGEST_MATRIX, Finished, Mechanism
from sfumato.mechanisms.components import COMPONENTS, can_be_component, diagonal, joined_layouts, numbered, small
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.estimators.marginals import axes_of_factors, kronecker
from sfumato.mechanisms.part_documents import part_documents, read_parts
from sfumato.mechanisms.product.ratios import worst_reports
from sfumato.mechanisms.systems.designs.families import LARGEST_OUTPUTS
from sfumato.mechanisms.tightest import tightest_report
from sfumato.policy import (
    LARGEST_DENSE,
    UNCONSTRAINED,
    PairwisePolicy,
    Policy,
    Product,
    TightestConstraint,
    Uniform,
)

__all__ = ["ProductMechanism"]

#: Maximum number of outputs, over all values, up to which an audit reads the sampler for every value of every factor.
_MOST_READ = 200_000


class ProductMechanism(Mechanism):
    """Product of mechanisms: each coordinate of a value passes through a separate mechanism, independently.

    It is for values with several coordinates, such as the cells of a grid, and for policies whose levels are sums over
    the coordinates. A report is one index, in which the reports of the factors are the digits.

    Parameters
    ----------
    domain
        The values. Their number is the product of the sizes of the factors. Values are numbered in row-major order: the
        coordinate of the last factor changes fastest, as in ``Domain.product`` and ``Domain.grid``.
    factors
        Two or more mechanisms, one per coordinate, each over at least two values: :class:`RandomizedResponse`,
        :class:`HadamardResponse`, :class:`CyclicDesign`, or :class:`TableMechanism`. Only the numbers of their values
        matter, not the labels. The product has at most 2^22 reports.

    Notes
    -----
    The probability of a report is the product of the probabilities Qᵢ(yᵢ|xᵢ) of its digits. Digits are chosen
    independently, so the greatest ratio of the likelihoods of two values is the product of the greatest ratios of their
    coordinates. If E[x,x'] = Σᵢ Eᵢ[xᵢ,xᵢ'], the product obeys E if and only if factor i obeys Eᵢ for every i.

    The estimator applies the least-squares decoder of each factor along its axis of the array of counts. With uniform
    values, the trace of the product's inverse information matrix is the product of those of the factors. So the product
    has the least risk of all products if every factor has the least risk for its policy. The proof is in
    ``docs/proofs/product.md``.

    Examples
    --------
    >>> import sfumato as sf
    >>> cells = sf.Domain.product(row=sf.Domain.range(2), column=sf.Domain.range(3))
    >>> rows = sf.mechanisms.RandomizedResponse(sf.Domain.range(2), "ln 3")
    >>> columns = sf.mechanisms.RandomizedResponse(sf.Domain.range(3), "ln 2")
    >>> mechanism = sf.mechanisms.ProductMechanism(cells, [rows, columns])
    >>> mechanism.outputs
    6
    >>> mechanism.matrix()[0].tolist()
    [0.375, 0.1875, 0.1875, 0.125, 0.0625, 0.0625]
    >>> sf.audit(mechanism, sf.Uniform(cells, "ln 6")).holds
    True
    """

    name = "product"

    def __init__(self, domain: Domain, factors: Sequence[Mechanism]) -> None:
        subject = "ProductMechanism"
        self.domain = checked_domain(subject, domain)
        mechanisms = read_list(subject, "factors", "be a list of two or more mechanisms", factors)
        if len(mechanisms) < 2:
            got = Description(quantity(len(mechanisms), "mechanism"))
            raise InvalidInput(subject, "factors", "be two or more mechanisms", got)
        for number, factor in enumerate(mechanisms):
            if not can_be_component(factor):
                kinds = ", ".join(kind.__name__ for kind in COMPONENTS.values())
                raise InvalidInput(subject, f"factor {number}", f"be of one of the classes {kinds}", factor)
            if len(factor.domain) < 2:
                raise InvalidInput(subject, f"factor {number}", "be over at least two values", factor)
        self.sizes = tuple(len(factor.domain) for factor in mechanisms)
        if math.prod(self.sizes) != len(domain):
            must = f"have sizes whose product is {len(domain)}, the number of values"
            raise InvalidInput(subject, "factors", must, Description(f"the sizes {self.sizes}"))
        self.factors = tuple(map(numbered, mechanisms))
        self.radices = tuple(factor.outputs for factor in self.factors)
        if self.outputs > LARGEST_OUTPUTS:
            must = f"have at most {LARGEST_OUTPUTS:,} reports together"
            raise InvalidInput(subject, "factors", must, Description(f"{self.outputs:,} reports"))
        self.frame_offsets, self.layout = joined_layouts(self.factors)

    # -- the sampler -----------------------------------------------------------------------------------------

    def start(self, x: int) -> tuple[int, int, int, Any]:
        return x, 0, 0, self.factors[0].start(self._digits(x, self.sizes)[0])

    def step(self, state: tuple[int, int, int, Any], draws: Draws) -> tuple[int, int, int, Any] | Finished:
        x, number, report, inner = state
        following = self.factors[number].step(inner, draws)
        if not isinstance(following, Finished):
            return x, number, report, following
        report, number = report * self.radices[number] + following.report, number + 1
        if number == len(self.factors):
            return Finished(report)
        return x, number, report, self.factors[number].start(self._digits(x, self.sizes)[number])

    @staticmethod
    def _digits(number: int, radices: Sequence[int]) -> list[int]:
        """Return the coordinates of a value, or the reports of the factors in a report."""
        digits = []
        for radix in reversed(radices):
            number, digit = divmod(number, radix)
            digits.append(digit)
        return digits[::-1]

    def representatives(self) -> Iterable[int]:
        return diagonal(self.sizes) if self.outputs * max(self.sizes) <= _MOST_READ else ()

    def audit_surrogate(self) -> ProductMechanism:
        factors = [small(factor) for factor in self.factors[:2]]
        return ProductMechanism(Domain.range(math.prod(len(factor.domain) for factor in factors)), factors)

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return math.prod(self.radices)

    def probability(self, report: int, x: int) -> Fraction:
        digits = zip(self.factors, self._digits(report, self.radices), self._digits(x, self.sizes), strict=True)
        return math.prod((factor.probability(y, coordinate) for factor, y, coordinate in digits), start=Fraction(1))

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if not isinstance(policy, PairwisePolicy) or len(self.domain) > LARGEST_DENSE:
            return None
        digits = worst_reports(self.factors, policy)
        return None if digits is None else iter([self._column(digits)])

    def tightest(self, policy: Policy) -> tuple[int, TightestConstraint] | None:
        if isinstance(policy, Product):
            return self._tightest_of_sum(policy)
        if isinstance(policy, Uniform) and len(self.domain) > LARGEST_DENSE:
            # Ratios multiply, so the most different values differ most in every coordinate.
            return self._joined(policy, [Uniform(factor.domain, 0) for factor in self.factors])
        return None

    def _tightest_of_sum(self, policy: Product) -> tuple[int, TightestConstraint] | None:
        """Return the report and the rule that comes closest to being violated, if each factor has its attributes.

        The excess of a pair is the sum of the excesses of its coordinates. So all coordinates that violate their
        policies do so together, and otherwise the coordinate of greatest excess is the worst by itself.
        """
        runs = axes_of_factors(policy.domain.shape, self.sizes)
        if runs is None:
            return None
        names = list(policy.policies)
        return self._joined(policy, [policy.project([names[axis] for axis in run]) for run in runs])

    def _joined(self, policy: Product | Uniform, policies: Sequence[PairwisePolicy]) -> tuple[int, TightestConstraint]:
        """Return the tightest rule of a policy, and its report, from the policies of the factors."""
        worst = list(map(tightest_report, self.factors, policies))
        chosen = [number for number, (_, rule) in enumerate(worst) if rule.names is not None]
        if not chosen:
            return 0, UNCONSTRAINED
        if isinstance(policy, Product):
            violated = [number for number in chosen if worst[number][1].violated]
            chosen = violated or [max(chosen, key=lambda number: worst[number][1].rank)]
        report, left, right, epsilon = 0, Fraction(1), Fraction(1), Epsilon(0)
        values: tuple[list[int], list[int]] = ([], [])
        for number, (factor, (digit, rule)) in enumerate(zip(self.factors, worst, strict=True)):
            if number in chosen:
                assert rule.names is not None
                places = [policies[number].domain.index(name) for name in rule.names]
                left, right, epsilon = left * rule.left, right * rule.right, epsilon + rule.epsilon
            else:
                # Both values have the first coordinate here, and any report that is possible for it.
                digit = next(y for y in factor.reports() if factor.probability(y, 0))
                places = [0, 0]
                left, right = (side * factor.probability(digit, 0) for side in (left, right))
            report = report * factor.outputs + digit
            for value, place in zip(values, places, strict=True):
                value.append(place)
        first, second = (policy.domain.label(int(np.ravel_multi_index(value, self.sizes))) for value in values)
        limit = policy.epsilon if isinstance(policy, Uniform) else epsilon
        return report, TightestConstraint.of(left, right, limit, (first, second))

    def _column(self, digits: Sequence[int]) -> tuple[int, list[Fraction]]:
        """Return the report with these digits and the likelihoods of all values."""
        report = 0
        likelihoods = [Fraction(1)]
        for factor, y in zip(self.factors, digits, strict=True):
            report = report * factor.outputs + y
            of_factor = [factor.probability(y, coordinate) for coordinate in range(len(factor.domain))]
            likelihoods = [before * likelihood for before in likelihoods for likelihood in of_factor]
        return report, likelihoods

    def classical_epsilon(self) -> Epsilon | None:
        levels = [level for factor in self.factors if (level := factor.classical_epsilon()) is not None]
        return reduce(Epsilon.__add__, levels) if len(levels) == len(self.factors) else None

    def guess_probability(self) -> Fraction:
        return math.prod((factor.guess_probability() for factor in self.factors), start=Fraction(1))

    def matrix(self) -> Floats:
        if len(self.domain) * self.outputs > LARGEST_MATRIX:
            return super().matrix()  # raises an error
        return kronecker(factor.matrix() for factor in self.factors)

    def parameters(self) -> dict[str, Any]:
        return part_documents(self.factors)

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> ProductMechanism:
        if set(parameters) != {"kinds", "kind"} or not all(isinstance(part, list) for part in parameters.values()):
            keys = sorted(parameters)
            raise InvalidInput("ProductMechanism", "parameters", "have the lists kinds and kind, and no others", keys)
        return cls(domain, read_parts("ProductMechanism", "factor", parameters, COMPONENTS))
