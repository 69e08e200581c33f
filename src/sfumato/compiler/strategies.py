"""Ways to ask for several attributes under one policy: each separately, or a sample of them per person.

Each way is one mechanism over the product of the attributes:

- *Split*: a product with one factor per attribute. Under one epsilon for all attributes, each factor has a share of it.
  Under a policy per attribute, each factor has the policy of its attribute.
- *Sample*: one attribute, pair or larger table is drawn per person, independently of the values, and reported at the
  full level.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from sfumato._core import Floats
from sfumato.compiler.candidates import candidates
from sfumato.compiler.products import best_factor, coordinate_policies, output_limits
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.domain import Domain
from sfumato.errors import NoAnswer, NoMechanism
from sfumato.mechanisms import (
    LARGEST_OUTPUTS,
    Mechanism,
    NotIdentifiable,
    ProductMechanism,
    SampledParts,
    can_be_component,
    most_outputs,
    policy_of_part,
)
from sfumato.policy import PairwisePolicy, Policy, Product, Uniform, structure_of
from sfumato.questions import Marginals

__all__ = ["EVENLY", "WEIGHTED", "Strategies", "Way", "best_fractions", "errors_by_table"]

#: Number of parts in an equal share; the search for weights moves whole parts.
_PARTS = 32
#: Endings of the names of strategies with equal and with optimized weights.
EVENLY, WEIGHTED = " evenly", " by weights"
#: Words for what one person reports, by the number of attributes.
_WORDS = {1: "sample", 2: "sample pairs"}
_MANY = "sample tables"


@dataclass(frozen=True)
class Way:
    """One way to ask: a mechanism over all attributes, with the mechanisms and weights of its parts by their names."""

    name: str
    mechanism: Mechanism
    mechanisms: dict[str, Mechanism]
    weights: dict[str, Fraction] | None


class Strategies:
    """The ways to ask for marginal tables under a policy on pairs of values over a product domain.

    Parameters
    ----------
    policy
        The policy over all attributes together.
    question
        The tables to learn, fitted to the domain.
    max_bits
        Maximum number of bits of a report, or None.
    deadline
        Time by which searches for the mechanisms of attributes end.
    """

    def __init__(self, policy: Policy, question: Marginals, max_bits: int | None, deadline: Deadline) -> None:
        self.domain, self.question, self._deadline = policy.domain, question, deadline
        simplest = structure_of(policy)
        self._policy = simplest if isinstance(simplest, Uniform) else policy
        self._most = min(most_outputs(max_bits) or LARGEST_OUTPUTS, LARGEST_OUTPUTS)
        self._names = list(self.domain.factors)
        self._components: dict[tuple[tuple[int, ...], Fraction, int], Mechanism] = {}
        self._searched: dict[PairwisePolicy, Mechanism] = {}
        self.left_out: list[str] = []

    def ways(self) -> Iterator[tuple[str, Callable[[], Way]]]:
        """Yield the name of each way, and a function that builds it or raises NoAnswer."""
        if not isinstance(self._policy, PairwisePolicy):
            return
        if isinstance(self._policy, Uniform):
            even = self._even([(axis,) for axis in range(len(self._names))])
            yield "split" + EVENLY, functools.partial(self._split, "split" + EVENLY, even)
            yield "split" + WEIGHTED, functools.partial(self._split_by_weights, even)
        elif self._attribute_policies() is not None:
            yield "split", functools.partial(self._split, "split", None)
        for order in self._orders():
            word, parts = _WORDS.get(order, _MANY), self._parts(order)
            even = self._even(parts)
            yield word + EVENLY, functools.partial(self._sampled, word + EVENLY, parts, even)
            yield word + WEIGHTED, functools.partial(self._sampled_by_weights, word + WEIGHTED, parts, even)

    # -- which parts people may report -------------------------------------------------------------------------

    @property
    def _largest(self) -> int:
        """The number of attributes of the largest table."""
        return max(map(len, self.question.axes))

    def _orders(self) -> list[int]:
        """Return the numbers of attributes that one person may report so that all tables are determined."""
        least = self._largest
        if least > 1:
            self.left_out.append(f"sample: not compared, because one attribute does not determine a table of {least}")
        return [order for order in sorted({least, max(least, 2)}) if order < len(self._names)]

    def _parts(self, order: int) -> list[tuple[int, ...]]:
        """Return the parts that people report: tables of the question that no other one contains, or larger ones."""
        tables = {tuple(sorted(axes)) for axes in self.question.axes}
        if order > self._largest:
            used = sorted(set(itertools.chain.from_iterable(tables)))
            return list(itertools.combinations(used, order)) if len(used) >= order else [tuple(used)]
        return sorted(axes for axes in tables if not any(set(axes) < set(other) for other in tables))

    def _key(self, axes: Sequence[int]) -> str:
        """Return the name of a part."""
        return " × ".join(self._names[axis] for axis in axes)

    def _even(self, parts: Sequence[tuple[int, ...]]) -> dict[str, Fraction]:
        """Return equal weights."""
        return {self._key(axes): Fraction(1, len(parts)) for axes in parts}

    # -- mechanisms of attributes ------------------------------------------------------------------------------

    def _attribute_policies(self) -> tuple[PairwisePolicy, ...] | None:
        """Return a policy per attribute whose levels add up to those of the policy; None if there are none."""
        policies = coordinate_policies(self._policy)
        sizes = [size for size in self.domain.shape if size > 1]
        return policies if policies and [len(part.domain) for part in policies] == sizes else None

    def _component(self, axes: tuple[int, ...], share: Fraction, most: int) -> Mechanism:
        """Return the mechanism of least risk for some attributes, at a share of the level."""
        key = axes, share, most
        if key not in self._components:
            assert isinstance(self._policy, PairwisePolicy)
            policy = policy_of_part(self._policy, self.domain.shape, axes)
            if policy is None:
                raise NoMechanism("no short form of the policy of a part is known")
            self._components[key] = self._best(policy, share, most)
        return self._components[key]

    def _best(self, policy: PairwisePolicy, share: Fraction, most: int) -> Mechanism:
        """Return the mechanism of least risk for a policy whose class a product or a sample accepts."""
        if isinstance(policy, Uniform):
            scaled = Uniform(Domain.range(len(policy.domain)), policy.epsilon * share)
            options: list[Mechanism] = []
            for candidate in candidates(scaled).by_name.values():
                with suppress(NoAnswer):
                    options.append(candidate.build())
            options = [option for option in options if can_be_component(option) and option.outputs <= most]
            if not options:
                raise NoMechanism(f"a report about {len(policy.domain)} values needs more than {most} outputs")
            return min(options, key=lambda option: (option.risk(1), option.outputs))
        if isinstance(policy, Product):
            limits = output_limits(policy.domain.shape, most)
            parts = zip(policy.policies.values(), limits, strict=True)
            factors = [self._best(part, share, limit or most) for part, limit in parts]
            return ProductMechanism(policy.domain, factors)
        if policy not in self._searched:
            self._searched[policy] = best_factor(policy, self._deadline.part(1 / 2), None)
        unlimited = self._searched[policy]
        return unlimited if unlimited.outputs <= most else best_factor(policy, self._deadline.part(1 / 2), most)

    # -- ways --------------------------------------------------------------------------------------------------

    def _split(self, name: str, weights: dict[str, Fraction] | None) -> Way:
        """Return a product of mechanisms, one per attribute."""
        shape, shares = self.domain.shape, weights or dict.fromkeys(self._names, Fraction(1))
        axes = [axis for axis in range(len(shape)) if shape[axis] > 1]
        free = [self._component((axis,), shares[self._names[axis]], self._most) for axis in axes]
        if math.prod(factor.outputs for factor in free) > self._most:
            limits = output_limits([shape[axis] for axis in axes], self._most)
            pairs = zip(axes, limits, strict=True)
            free = [self._component((axis,), shares[self._names[axis]], limit or self._most) for axis, limit in pairs]
        mechanisms = {self._names[axis]: factor for axis, factor in zip(axes, free, strict=True)}
        if len(free) < 2:
            raise NoMechanism("fewer than two attributes have two or more values")
        return Way(name, ProductMechanism(self.domain, free), mechanisms, weights)

    def _split_by_weights(self, even: dict[str, Fraction]) -> Way:
        """Return a product with the shares of epsilon that minimise the error."""
        return self._split("split" + WEIGHTED, best_fractions(self._split_error, even))

    def _split_error(self, weights: Mapping[str, Fraction]) -> float:
        """Return the error of the tables of a product, if all values are equally frequent."""
        moments = []
        for name, axis in zip(self._names, range(len(self._names)), strict=True):
            size = self.domain.shape[axis]
            risk = self._component((axis,), weights[name], self._most).risk(1) if size > 1 else 0.0
            moments.append((risk + 1 / size, 1 / size))
        # Digits are independent, so the squared scores of a table are products of those of its attributes.
        return sum(
            math.prod(moments[axis][0] for axis in axes) - math.prod(moments[axis][1] for axis in axes)
            for axes in self.question.axes
        )

    def _sampled(self, name: str, parts: Sequence[tuple[int, ...]], weights: dict[str, Fraction]) -> Way:
        """Return a mechanism that reports one part per person."""
        mechanisms = {self._key(axes): mechanism for axes, mechanism in self._part_mechanisms(parts).items()}
        by_names = {
            tuple(self._names[axis] for axis in axes): mechanism
            for axes, mechanism in self._part_mechanisms(parts).items()
        }
        sampled = SampledParts(self.domain, by_names, [weights[self._key(axes)] for axes in parts])
        return Way(name, sampled, mechanisms, weights)

    def _sampled_by_weights(self, name: str, parts: Sequence[tuple[int, ...]], even: dict[str, Fraction]) -> Way:
        """Return a mechanism that reports one part per person, with probabilities that minimise the error."""
        return self._sampled(name, parts, self._neyman(parts, even))

    def _part_mechanisms(self, parts: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], Mechanism]:
        """Return the mechanism of each part, such that their reports fit in the limit together."""
        sizes = [math.prod(self.domain.shape[axis] for axis in axes) for axes in parts]
        most = [self._most] * len(parts)
        mechanisms = [self._component(axes, Fraction(1), limit) for axes, limit in zip(parts, most, strict=True)]
        if sum(mechanism.outputs for mechanism in mechanisms) > self._most:
            if sum(sizes) > self._most:
                raise NoMechanism(f"the parts have {sum(sizes)} values, more than {self._most} reports")
            most = [size * self._most // sum(sizes) for size in sizes]
            mechanisms = [self._component(axes, Fraction(1), limit) for axes, limit in zip(parts, most, strict=True)]
        return dict(zip(parts, mechanisms, strict=True))

    def _neyman(self, parts: Sequence[tuple[int, ...]], even: dict[str, Fraction]) -> dict[str, Fraction]:
        """Return weights of parts that minimise the sum of their errors: error/weight for each (Neyman 1934)."""
        errors = {self._key(axes): m.risk(1) for axes, m in self._part_mechanisms(parts).items()}
        return best_fractions(lambda weights: sum(errors[key] / float(w) for key, w in weights.items()), even)


def errors_by_table(mechanism: Mechanism, question: Marginals, p: Floats) -> dict[str, float]:
    """Return the expected squared error of each table from one report at p; infinite if it is not determined."""
    errors = {}
    for names, axes in zip(question.tables, question.axes, strict=True):
        try:
            error = mechanism.estimator.marginal(question.domain.shape, axes).squared_error(p)
        except NotIdentifiable:
            error = math.inf
        errors[" × ".join(names)] = error
    return errors


def best_fractions(cost: Callable[[Mapping[str, Fraction]], float], even: dict[str, Fraction]) -> dict[str, Fraction]:
    """Return fractions that no transfer of one part between two names improves; start with large transfers."""
    if len(even) < 2 or not math.isfinite(cost(even)):
        return even
    parts = dict.fromkeys(even, _PARTS)
    whole = _PARTS * len(even)

    def fractions(counts: Mapping[str, int]) -> dict[str, Fraction]:
        return {name: Fraction(count, whole) for name, count in counts.items()}

    step, least = _PARTS // 2, cost(even)
    while step:
        moves = [
            {**parts, receiver: parts[receiver] + step, giver: parts[giver] - step}
            for receiver, giver in itertools.permutations(even, 2)
            if parts[giver] > step
        ]
        costs = [cost(fractions(move)) for move in moves]
        best = min(range(len(moves)), key=costs.__getitem__, default=None)
        if best is not None and costs[best] < least:
            parts, least = moves[best], costs[best]
        else:
            step //= 2
    return fractions(parts)
