"""Sampled parts: every person reports one randomly drawn part of a value, such as one attribute or a pair of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from sfumato._core import Epsilon, exact_fraction, quantity
from sfumato.domain import Domain, checked_domain, read_mapping
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.choice import Choice
from sfumato.mechanisms.components import COMPONENTS, can_be_component, diagonal, joined_layouts, numbered, small
from sfumato.mechanisms.draws import Draws, Field
from sfumato.mechanisms.part_documents import part_documents, read_parts
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.sampled_parts.restriction import policy_of_part
from sfumato.mechanisms.systems.designs.families import LARGEST_OUTPUTS
from sfumato.mechanisms.tightest import tightest_report
from sfumato.policy import LARGEST_DENSE, UNCONSTRAINED, PairwisePolicy, Policy, Product, TightestConstraint, Uniform

__all__ = ["SampledParts"]

#: Mechanisms that a part may have, by name.
_KINDS: dict[str, type[Mechanism]] = {**COMPONENTS, ProductMechanism.name: ProductMechanism}
#: Maximum sum of the integer weights, because an audit follows every outcome of the choice.
_LARGEST_TOTAL = 2**16
#: Maximum number of outputs times parts, over all values, up to which an audit reads the sampler for every attribute.
_MOST_READ = 100_000
#: Bits of the frame that choose the part.
_CHOICE_BITS = 32


class SampledParts(Choice):
    """Sampled parts: draw one part of the value, independently of the value, and report it with its own mechanism.

    A part is one attribute of a product, or several attributes together. Which part a person reports reveals nothing,
    because it is drawn without looking at the value. So every part may be reported at the full level of its policy: a
    person who reports one of two attributes at ε = 1 has ε = 1, not 2.

    Parameters
    ----------
    domain
        The values: a product of attributes, from ``Domain.product``.
    parts
        The mechanism of each part. A key is the name of an attribute, or a tuple of names in the order of the domain.
        A mechanism is over the values of its attribute, or over all combinations of its attributes in row-major order:
        a :class:`RandomizedResponse`, :class:`HadamardResponse`, :class:`CyclicDesign`, a table of the library, or a
        :class:`ProductMechanism`. Only the numbers of its values matter, not the labels. Together, the parts have at
        most 2^22 reports.
    weights
        Positive number per part, in any unit and in the order of ``parts``, or by key; only ratios matter. A part is
        drawn with probability proportional to its weight, exactly. The default is equal weights.

    Notes
    -----
    A report is one index: the reports of the first part, then those of the second part, and so on. The likelihood of a
    report of part c is πᶜ·Qᶜ(y|xᶜ), with the probability πᶜ of the part and the attributes xᶜ of the value that belong
    to it. The factor πᶜ cancels in every ratio. The mechanism therefore obeys a policy on pairs if and only if the
    mechanism of every part obeys the policy of its attributes: the smallest level between values with these attributes.
    Under a :class:`Product` policy, this is the sum over the attributes of the part.

    The sampler draws the part first. It then runs the mechanisms of all parts up to the chosen one, and reports the
    last. Clients and kernels thus read fixed bits of the frame in every part.

    The reports determine the marginals of the parts, and sums of them, but not the joint distribution of attributes
    that no part has together. The proof is in ``docs/proofs/sampled-parts.md``.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(sex=["f", "m"], age=range(4))
    >>> mechanism = sf.mechanisms.SampledParts(
    ...     people,
    ...     {
    ...         "sex": sf.mechanisms.RandomizedResponse(sf.Domain.range(2), 1),
    ...         "age": sf.mechanisms.RandomizedResponse(sf.Domain.range(4), 1),
    ...     },
    ...     weights=[1, 2],
    ... )
    >>> mechanism.outputs, mechanism.probabilities
    (6, (Fraction(1, 3), Fraction(2, 3)))
    >>> sf.audit(mechanism, sf.Uniform(people, 1)).holds
    True
    """

    name = "sampled-parts"

    def __init__(
        self,
        domain: Domain,
        parts: Mapping[Any, Mechanism],
        weights: Sequence[Any] | Mapping[Any, Any] | None = None,
    ) -> None:
        subject = "SampledParts"
        self.domain = checked_domain(subject, domain)
        if not domain.factors:
            hint = "Build the domain with Domain.product(...)."
            raise InvalidInput(subject, "domain", "be a product of attributes", domain, hint=hint)
        must = "be a mapping from one or more attributes to mechanisms"
        mechanisms = read_mapping(parts, subject, "parts", must)
        if not mechanisms:
            raise InvalidInput(subject, "parts", must, parts)
        keys = list(mechanisms)
        self.axes = tuple(_read_key(domain, key) for key in keys)
        if len(set(self.axes)) < len(keys):
            raise InvalidInput(subject, "parts", "name each set of attributes once", keys)
        for key, axes, mechanism in zip(keys, self.axes, mechanisms.values(), strict=True):
            _check_part(domain, key, axes, mechanism)
        self.parts = tuple(map(numbered, mechanisms.values()))
        self.weights = _read_weights(keys, weights)
        if self.outputs > LARGEST_OUTPUTS:
            must = f"have at most {LARGEST_OUTPUTS:,} reports together"
            raise InvalidInput(subject, "parts", must, Description(f"{self.outputs:,} reports"))
        self.frame_offsets, self.layout = joined_layouts(self.parts, Field.number(0, _CHOICE_BITS))

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """Attribute names of each part."""
        names = list(self.domain.factors)
        return tuple(tuple(names[axis] for axis in axes) for axes in self.axes)

    # -- the sampler -----------------------------------------------------------------------------------------

    def start(self, x: int) -> tuple[int, int, int, Any]:
        return x, -1, 0, None

    def step(self, state: tuple[int, int, int, Any], draws: Draws) -> tuple[int, int, int, Any] | Finished:
        x, chosen, number, inner = state
        if chosen < 0:
            return x, self._drawn(draws), 0, self.parts[0].start(self._projected(x, 0))
        following = self.parts[number].step(inner, draws)
        if not isinstance(following, Finished):
            return x, chosen, number, following
        if number == chosen:
            return Finished(self._joined(number, following.report))
        return x, chosen, number + 1, self.parts[number + 1].start(self._projected(x, number + 1))

    def _projected(self, values: Any, number: int) -> Any:
        place = 0
        for stride, size in self._strides[number]:
            place = place * size + values // stride % size
        return place

    @cached_property
    def _strides(self) -> list[list[tuple[int, int]]]:
        """For each attribute of each part, the number of values per step along it, and its size."""
        shape = self.domain.shape
        return [[(math.prod(shape[axis + 1 :]), shape[axis]) for axis in axes] for axes in self.axes]

    def representatives(self) -> Iterable[int]:
        shape = self.domain.shape
        return diagonal(shape) if self.outputs * max(shape) * len(self.parts) <= _MOST_READ else ()

    def audit_surrogate(self) -> SampledParts:
        parts = [small(part) for part in self.parts[:2]]
        names = ("a", "b")[: len(parts)]
        factors = {name: Domain.range(len(part.domain)) for name, part in zip(names, parts, strict=True)}
        # A product has two factors or more; the last attribute belongs to no part if there is only one.
        domain = Domain.product(**factors, **({} if len(parts) > 1 else {"rest": Domain.range(2)}))
        return SampledParts(domain, dict(zip(names, parts, strict=True)), self.weights[: len(parts)])

    # -- the stated law --------------------------------------------------------------------------------------

    def tightest(self, policy: Policy) -> tuple[int, TightestConstraint] | None:
        if isinstance(policy, Product) or (isinstance(policy, Uniform) and len(self.domain) > LARGEST_DENSE):
            return self._tightest(policy)
        return None

    def _tightest(self, policy: Product | Uniform) -> tuple[int, TightestConstraint]:
        """Return the tightest rule of all parts, without a list of values.

        A report is as likely for all values that agree in the part. Two different values therefore come as close to
        their level as their combinations in the part do, or they are equally likely.
        """
        worst = 0, UNCONSTRAINED
        for number, axes in enumerate(self.axes):
            candidates = self._of_combinations(policy, number)
            if isinstance(policy, Product):
                others = (axis for axis in range(len(self.domain.shape)) if axis not in axes)
                candidates += [self._of_equal(policy, number, axis) for axis in others if self.domain.shape[axis] > 1]
            for report, rule in candidates:
                if worst[1].names is None or rule.rank > worst[1].rank:
                    worst = self._joined(number, report), rule
        return worst

    def _of_combinations(self, policy: Product | Uniform, number: int) -> list[tuple[int, TightestConstraint]]:
        """Return the tightest rule between values that differ in a part only, with the report of the part."""
        axes, share = self.axes[number], self.probabilities[number]
        restricted = policy_of_part(policy, self.domain.shape, axes)
        assert restricted is not None
        report, rule = tightest_report(self.parts[number], restricted)
        if rule.names is None:  # the part has one value
            return []
        sizes = [self.domain.shape[axis] for axis in axes]
        places = (np.unravel_index(restricted.domain.index(name), sizes) for name in rule.names)
        return [(report, self._rule(policy, axes, places, (share * rule.left, share * rule.right), rule.epsilon))]

    def _of_equal(self, policy: Product, number: int, axis: int) -> tuple[int, TightestConstraint]:
        """Return the rule of the closest two values that differ in one attribute outside a part, equally likely."""
        epsilon, pair = list(policy.policies.values())[axis].least
        part = self.parts[number]
        report = next(y for y in part.reports() if part.probability(y, 0))
        likelihood = self.probabilities[number] * part.probability(report, 0)
        return report, self._rule(policy, [axis], ([place] for place in pair), (likelihood, likelihood), epsilon)

    def _rule(
        self,
        policy: Policy,
        axes: Sequence[int],
        places: Iterable[Sequence[Any]],
        sides: tuple[Fraction, Fraction],
        epsilon: Epsilon,
    ) -> TightestConstraint:
        """Return the rule of two values with these attributes, whose other attributes are the first ones."""
        values = np.zeros((2, len(self.domain.shape)), np.intp)
        values[:, axes] = list(places)
        first, second = (
            policy.domain.label(int(np.ravel_multi_index(tuple(row), self.domain.shape))) for row in values
        )
        return TightestConstraint.of(*sides, epsilon, (first, second))

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if not isinstance(policy, PairwisePolicy):
            return None
        shape = self.domain.shape
        policies = [part for axes in self.axes if (part := policy_of_part(policy, shape, axes)) is not None]
        return map(self._worst_column, range(len(policies)), policies) if len(policies) == len(self.axes) else None

    def _worst_column(self, number: int, policy: PairwisePolicy) -> tuple[int, list[Fraction]]:
        """Return the worst report of a part with the likelihoods of all values."""
        part = self.parts[number]
        report, _ = tightest_report(part, policy)
        of_part = [part.probability(report, x) for x in range(len(part.domain))]
        places = self._projected(np.arange(len(self.domain)), number)
        return self._joined(number, report), [of_part[place] for place in places.tolist()]

    # -- the spec --------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        parts = [list(axes) for axes in self.axes]
        return {"parts": parts, "weights": list(self.weights), **part_documents(self.parts)}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> SampledParts:
        keys = {"parts", "weights", "kinds", "kind"}
        if set(parameters) != keys or not all(isinstance(part, list) for part in parameters.values()):
            got = sorted(parameters)
            raise InvalidInput("SampledParts", "parameters", f"have the lists {', '.join(sorted(keys))}", got)
        mechanisms = read_parts("SampledParts", "part", parameters, _KINDS)
        parts, weights = parameters["parts"], parameters["weights"]
        names = list(checked_domain("SampledParts", domain).factors)
        numbers = [axis for axes in parts for axis in (axes if isinstance(axes, list) else [None])]
        is_stated = all(type(axis) is int and 0 <= axis < len(names) for axis in numbers)
        if is_stated and len(parts) == len(mechanisms) and all(type(weight) is int for weight in weights):
            chosen = [tuple(names[axis] for axis in axes) for axes in parts]
            mechanism = cls(domain, dict(zip(chosen, mechanisms, strict=True)), weights)
            if len(mechanism.parts) == len(parts) and list(mechanism.weights) == weights:
                return mechanism
        must = f"have different parts of positions in 0 … {len(names) - 1}, and weights without a common divisor"
        raise InvalidInput("SampledParts", "parameters", must, (parts, weights))


def _read_key(domain: Domain, key: object) -> tuple[int, ...]:
    """Return the positions of the attributes of a part, or raise InvalidInput."""
    names = list(domain.factors)
    chosen = (key,) if isinstance(key, str) else key
    must = f"be some of the attributes {', '.join(map(repr, names))}, in this order"
    if not isinstance(chosen, tuple) or not chosen or not all(name in names for name in chosen):
        raise InvalidInput("SampledParts", "every part", must, key)
    axes = tuple(names.index(name) for name in chosen)
    if list(axes) != sorted(set(axes)):
        raise InvalidInput("SampledParts", "every part", must, key)
    return axes


def _check_part(domain: Domain, key: object, axes: Sequence[int], mechanism: object) -> None:
    """Raise InvalidInput if a mechanism cannot report these attributes."""
    if not (can_be_component(mechanism) or type(mechanism) is ProductMechanism):
        kinds = ", ".join(kind.__name__ for kind in _KINDS.values())
        raise InvalidInput("SampledParts", f"the mechanism of {key!r}", f"be of one of the classes {kinds}", mechanism)
    assert isinstance(mechanism, Mechanism)
    size = math.prod(domain.shape[axis] for axis in axes)
    if len(mechanism.domain) != size or size < 2:
        must = f"be over {quantity(max(size, 2), 'value')}, the combinations of the attributes"
        got = Description(quantity(len(mechanism.domain), "value"))
        raise InvalidInput("SampledParts", f"the mechanism of {key!r}", must, got)


def _read_weights(keys: Sequence[object], weights: Sequence[Any] | Mapping[Any, Any] | None) -> tuple[int, ...]:
    """Return integer weights without a common divisor, or raise InvalidInput."""
    if weights is None:
        return (1,) * len(keys)
    must = f"be {quantity(len(keys), 'positive number')}, one per part"
    try:
        if isinstance(weights, Mapping) and len(weights) == len(keys):
            weights = [weights[key] for key in keys]
        exact = [exact_fraction(weight) for weight in weights]
    except (TypeError, ValueError, ArithmeticError, KeyError):
        raise InvalidInput("SampledParts", "weights", must, weights) from None
    if len(exact) != len(keys) or min(exact, default=Fraction(0)) <= 0:
        raise InvalidInput("SampledParts", "weights", must, weights)
    scale = math.lcm(*(weight.denominator for weight in exact))
    integers = [int(weight * scale) for weight in exact]
    divisor = math.gcd(*integers)
    if sum(integers) // divisor > _LARGEST_TOTAL:
        hint = "Use weights with small whole numbers, such as 1 and 3."
        got = Description(f"a sum of {sum(integers) // divisor}")
        must = f"have a sum of at most {_LARGEST_TOTAL:,} as integers"
        raise InvalidInput("SampledParts", "weights", must, got, hint=hint)
    return tuple(weight // divisor for weight in integers)
