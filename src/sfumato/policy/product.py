"""One policy per attribute: the levels of a pair of values are sums over their attributes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, Floats, Integers, exact_fraction, exceeds, quantity
from sfumato.domain import Domain, checked_domain, read_mapping
from sfumato.errors import CannotCompose, Description, InvalidInput, LimitExceeded
from sfumato.policy.base import UNCONSTRAINED, Policy, TightestConstraint
from sfumato.policy.epsilon_matrix import LARGEST_DENSE, EpsilonMatrix
from sfumato.policy.high_low import HighLow
from sfumato.policy.pairwise import PairwisePolicy
from sfumato.policy.uniform import Uniform

__all__ = ["Product"]

#: Relative distance of a log-likelihood ratio from its limit below which it is decided exactly.
_FILTER_MARGIN = 1e-9
#: Maximum number of combinations of the attributes' epsilons that are numbered without sorting; bounds memory.
_MOST_NUMBERED = 2**22


class Product(PairwisePolicy):
    """One policy per attribute, for people who report several attributes together.

    The epsilon of two values is the sum of the epsilons of their attributes. Values that differ in one attribute are
    protected as the policy of this attribute states. Values that differ in several are as hard to distinguish as
    separate reports of all attributes, each under its policy.

    Parameters
    ----------
    policies
        Policy by attribute name, for two or more attributes. Each is a policy on pairs of values, such as Uniform,
        HighLow, Blocks, Metric, PerValue, Graph or Pairwise. The domain of the product is ``Domain.product`` of their
        domains, in the same order.

    Raises
    ------
    InvalidInput
        If there are fewer than two policies, or one of them is not a policy on pairs of values.

    Notes
    -----
    The policy requires Q(y|x) ≤ e^E·Q(y|x') with E = Σᵢ Eᵢ[xᵢ,xᵢ'] for all values x, x' and every output y, where Eᵢ is
    the epsilon of attribute i. A pair without a limit in one attribute has none. The rules of pairs that differ in one
    attribute imply all others, because changing one attribute after the other is a path. Effective epsilons are
    therefore sums too. No method needs a matrix over all values.

    A mechanism that reports one randomly drawn attribute, under its policy, obeys the product too, and so does one that
    reports all attributes separately, each under its policy.

    Examples
    --------
    >>> from sfumato import Domain, HighLow, Metric, Uniform
    >>> policy = Product({
    ...     "job": HighLow(Domain(["clerk", "spy"]), ["spy"], 1),
    ...     "age": Metric(Domain.range(100), "absolute", "1/10"),
    ... })
    >>> x, other = policy.domain.index(("spy", 30)), policy.domain.index(("clerk", 35))
    >>> policy.epsilon_between(x, other), policy.epsilon_between(other, x)
    (Epsilon('1.5'), Epsilon('inf'))
    """

    kind = "product"

    def __init__(self, policies: Mapping[str, PairwisePolicy]) -> None:
        self._policies = _read_policies(policies)
        self.domain = Domain.product(**{name: policy.domain for name, policy in self._policies.items()})
        self._parts = tuple(self._policies.values())
        self._sizes = self.domain.shape

    @classmethod
    def split(cls, domain: Domain, epsilon: EpsilonLike, weights: Mapping[str, Any] | None = None) -> Product:
        """Divide one epsilon among the attributes of a domain.

        The product implies ``Uniform(domain, epsilon)``: two values that differ in all attributes have epsilon exactly.

        Parameters
        ----------
        domain
            A product of attributes, from ``Domain.product``.
        epsilon
            Privacy level of all attributes together.
        weights
            Positive number per attribute name, in any unit; only ratios matter. The default is equal weights.

        Returns
        -------
        Product
            A product of Uniform policies, whose epsilons are proportional to the weights and sum to ``epsilon``.

        Raises
        ------
        InvalidInput
            If the domain has no attributes, or the weights do not fit them.

        Examples
        --------
        >>> from sfumato import Domain
        >>> cells = Domain.product(smokes=["yes", "no"], age=range(9))
        >>> Product.split(cells, 2, {"smokes": 1, "age": 3})["age"]
        Uniform(Domain.range(9), epsilon='1.5')
        """
        factors = checked_domain("Product.split", domain).factors
        if domain.kind != "product":
            hint = "Build the domain with Domain.product(...)."
            raise InvalidInput("Product.split", "domain", "be a product of attributes", domain, hint=hint)
        total = Epsilon(epsilon, subject="Product.split")
        shares = _read_weights(factors, weights)
        return cls({name: Uniform(factor, total * shares[name]) for name, factor in factors.items()})

    @property
    def policies(self) -> dict[str, PairwisePolicy]:
        """The policy of each attribute by name, in the order of the domain."""
        return dict(self._policies)

    def __getitem__(self, name: str) -> PairwisePolicy:
        return self._policies[name]

    def project(self, names: Sequence[str]) -> PairwisePolicy:
        """Return the policy of some attributes: what a report obeys that depends on these attributes only.

        Parameters
        ----------
        names
            One or more attribute names, in any order.

        Returns
        -------
        PairwisePolicy
            The policy of the attribute, or the product of the policies of several.

        Raises
        ------
        InvalidInput
            If a name is unknown or repeated, or there is none.

        Examples
        --------
        >>> from sfumato import Domain
        >>> policy = Product.split(Domain.product(a=range(2), b=range(3), c=range(4)), 3)
        >>> policy.project(["c"])
        Uniform(Domain.range(4), epsilon='1')
        """
        chosen = list(names)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(self._policies):
            must = f"be some of the attributes {', '.join(map(repr, self._policies))}, each once"
            raise InvalidInput("Product.project", "names", must, chosen)
        if len(chosen) == 1:
            return self._policies[chosen[0]]
        return Product({name: self._policies[name] for name in chosen})

    # -- epsilons of pairs ---------------------------------------------------------------------------------------

    def _coordinates(self, x: int) -> list[int]:
        """Return the index of a value in each attribute."""
        return [int(place) for place in np.unravel_index(x, self._sizes)]

    def _index(self, coordinates: Sequence[int]) -> int:
        """Return the index of the value with these indices in the attributes."""
        return int(np.ravel_multi_index(tuple(coordinates), self._sizes))

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        pairs = zip(self._parts, self._coordinates(x), self._coordinates(other), strict=True)
        return _sum(part.epsilon_between(a, b) for part, a, b in pairs)

    def effective_epsilon(self, x: int, other: int) -> Epsilon:
        pairs = zip(self._parts, self._coordinates(x), self._coordinates(other), strict=True)
        return _sum(part.effective_epsilon(a, b) for part, a, b in pairs)

    def classes(self) -> npt.NDArray[np.int64]:
        # Swapping two values changes the epsilon to a third value that shares an attribute with one of them.
        return np.arange(len(self.domain))

    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._sums_on(indices, lambda part, chosen: part.epsilons_on(chosen))

    def effective_epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._sums_on(indices, lambda part, chosen: part.effective_epsilons_on(chosen))

    def _sums_on(
        self,
        indices: npt.NDArray[np.intp],
        epsilons_on: Callable[[PairwisePolicy, npt.NDArray[np.intp]], EpsilonMatrix],
    ) -> EpsilonMatrix:
        """Return the sums over the attributes of the epsilons between some values."""
        if len(indices) > LARGEST_DENSE:
            raise LimitExceeded(
                f"a matrix of epsilons over {len(indices)} values exceeds the limit of {LARGEST_DENSE} values. Ask for "
                "the epsilons of fewer values, or of the attributes one by one."
            )
        positions = np.zeros((len(indices), len(indices)), np.int64)
        levels: list[list[Epsilon]] = []
        for part, places in zip(self._parts, np.unravel_index(indices, self._sizes), strict=True):
            chosen, inverse = np.unique(places, return_inverse=True)
            matrix = epsilons_on(part, chosen)
            codes, ranks = np.unique(matrix.codes, return_inverse=True)
            ranks = ranks.reshape(matrix.codes.shape)
            positions = positions * len(codes) + ranks[np.ix_(inverse, inverse)]
            levels.append([matrix.epsilon(int(code)) for code in codes])
        shape = [len(level) for level in levels]
        if math.prod(shape) <= _MOST_NUMBERED:
            present = np.flatnonzero(np.bincount(positions.reshape(-1), minlength=math.prod(shape)))
            number = np.zeros(math.prod(shape), np.intp)
            number[present] = np.arange(len(present))
            positions = number[positions]
        else:
            present, flat = np.unique(positions, return_inverse=True)
            positions = flat.reshape(positions.shape)
        ranks_of = np.stack(np.unravel_index(present, shape), axis=1).tolist()
        sums = [_sum(level[rank] for level, rank in zip(levels, ranks, strict=True)) for ranks in ranks_of]
        return EpsilonMatrix.from_epsilons(positions, sums)

    @functools.cached_property
    def least(self) -> tuple[Epsilon, tuple[int, int]]:
        """Smallest declared epsilon of an ordered pair of different values, and the two indices of such a pair."""
        # Values that differ in one attribute have the smallest epsilons.
        several = [i for i, size in enumerate(self._sizes) if size > 1] or [0]
        number = min(several, key=lambda i: self._parts[i].least[0])
        epsilon, pair = self._parts[number].least
        first, second = ([0] * len(self._parts) for _ in range(2))
        first[number], second[number] = pair
        return epsilon, (self._index(first), self._index(second))

    @functools.cached_property
    def greatest_effective(self) -> tuple[Epsilon, tuple[int, int]]:
        """Greatest :meth:`effective_epsilon` between two different values, and the two indices of such a pair."""
        pairs = [part.greatest_effective for part in self._parts]
        first, second = zip(*(pair for _, pair in pairs), strict=True)
        return _sum(epsilon for epsilon, _ in pairs), (self._index(first), self._index(second))

    # -- likelihood vectors --------------------------------------------------------------------------------------

    def worst(self, likelihoods: Sequence[object]) -> TightestConstraint:
        exact = self._checked(likelihoods)
        if not any(exact) or len(exact) == 1:
            return UNCONSTRAINED
        logs = np.array([math.log(v.numerator) - math.log(v.denominator) if v else -math.inf for v in exact])
        pair, excess = _greatest_excess(logs.reshape(self._sizes), self._levels)
        if pair is None:
            return UNCONSTRAINED
        finite = np.where(np.isfinite(logs), np.abs(logs), 0.0).max()
        margin = _FILTER_MARGIN * (1 + 2 * finite + sum(levels.greatest for levels in self._levels))
        if -margin <= excess <= margin:
            pair = self._violated_rule(exact, logs, margin) or pair
        x, other = pair
        names = (self.domain.label(x), self.domain.label(other))
        return TightestConstraint.of(exact[x], exact[other], self.epsilon_between(x, other), names)

    def _violated_rule(self, exact: Sequence[Fraction], logs: Floats, margin: float) -> tuple[int, int] | None:
        """Return a pair that differs in one attribute and violates its rule, or None; the answer is exact.

        The rules of these pairs imply all others. Pairs with equal likelihoods and equal epsilons are decided once.
        """
        distinct = {value: number for number, value in enumerate(dict.fromkeys(exact))}
        values, numbers = list(distinct), np.array([distinct[value] for value in exact])
        indices = np.arange(len(exact)).reshape(self._sizes)
        for axis, levels in enumerate(self._levels):
            lines = np.moveaxis(indices, axis, 0).reshape(self._sizes[axis], -1)
            decided: set[tuple[int, int, Epsilon]] = set()
            smallest = logs[lines].min(axis=0)
            for a in range(len(lines)):
                row, codes = levels.row(a)
                row[a] = math.inf
                likely = np.isfinite(logs[lines[a]])
                with np.errstate(invalid="ignore"):
                    if not (likely & (logs[lines[a]] - row.min() - smallest >= -margin)).any():
                        continue
                    apart = logs[lines[a]] - row[:, None] - logs[lines]
                near = (apart >= -margin) & np.isfinite(row)[:, None] & likely
                others, columns = np.nonzero(near)
                of_pairs = np.stack([numbers[lines[a, columns]], numbers[lines[others, columns]], codes[others]])
                for place in np.unique(of_pairs, axis=1, return_index=True)[1].tolist():
                    one, two, code = of_pairs[:, place].tolist()
                    key = one, two, levels.epsilon(a, code)
                    if key not in decided and exceeds(values[one], values[two], key[2]):
                        return int(lines[a, columns[place]]), int(lines[others[place], columns[place]])
                    decided.add(key)
        return None

    @functools.cached_property
    def _levels(self) -> list[_Levels]:
        """The declared epsilons of the attributes, row by row."""
        return [_RowLevels(part) if isinstance(part, (Uniform, HighLow)) else _Levels(part) for part in self._parts]

    def allows_all(self, columns: Sequence[Sequence[int]] | npt.NDArray[np.int64]) -> bool:
        if len(self.domain) <= LARGEST_DENSE:
            return super().allows_all(columns)
        return all(self.allows([int(weight) for weight in column]) for column in columns)

    # -- documents and algebra -----------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        attributes = {name: {"kind": part.kind, **part.parameters()} for name, part in self._policies.items()}
        return {"attributes": attributes}

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:
        if not isinstance(other, Product):
            return None
        composed: dict[str, PairwisePolicy] = {}
        for name, part in self._policies.items():
            sum_of_parts = part.compose(other[name])
            assert isinstance(sum_of_parts, PairwisePolicy)
            composed[name] = sum_of_parts
        return Product(composed)

    def compose(self, other: Policy) -> Policy:
        if isinstance(other, Uniform) and other.domain == self.domain and len(self.domain) > LARGEST_DENSE:
            raise CannotCompose(
                f"cannot compose a product policy and a uniform policy over {len(self.domain)} values: their sum has "
                f"no short form, and a matrix is limited to {LARGEST_DENSE} values. Use Product.split to state the "
                "uniform level per attribute."
            )
        return super().compose(other)

    def __repr__(self) -> str:
        policies = ", ".join(f"{name!r}: {part!r}" for name, part in self._policies.items())
        return f"Product({{{policies}}})"


def _read_policies(policies: object) -> dict[str, PairwisePolicy]:
    """Return the policies by attribute name, or raise InvalidInput."""
    must = "be a mapping from two or more attribute names to policies"
    if not isinstance(policies, Mapping):
        raise InvalidInput("Product", "policies", must, policies)
    if len(policies) < 2:
        hint = "For one attribute, use its policy itself." if policies else None
        raise InvalidInput("Product", "policies", must, Description(quantity(len(policies), "policy")), hint=hint)
    for name, policy in policies.items():
        if not isinstance(name, str) or not name:
            raise InvalidInput("Product", "every attribute name", "be a non-empty string", name)
        if not isinstance(policy, Policy):
            raise InvalidInput("Product", f"the policy of {name!r}", "be a Policy", policy)
        if not isinstance(policy, PairwisePolicy):
            hint = "Use Uniform, HighLow, Blocks, Metric, PerValue, Graph or Pairwise, whose limits can be added."
            raise InvalidInput("Product", f"the policy of {name!r}", "be on pairs of values", policy.kind, hint=hint)
    return dict(policies)


def _read_weights(factors: Mapping[str, Domain], weights: Mapping[str, Any] | None) -> dict[str, Fraction]:
    """Return positive shares of the attributes that sum to one."""
    if weights is None:
        return dict.fromkeys(factors, Fraction(1, len(factors)))
    must = f"name each of the attributes {', '.join(map(repr, factors))}"
    entries = read_mapping(weights, "Product.split", "weights", must)
    if set(entries) != set(factors):
        raise InvalidInput("Product.split", "weights", must, sorted(map(str, entries)))
    exact: dict[str, Fraction] = {}
    for name in factors:
        try:
            exact[name] = exact_fraction(entries[name])
        except (TypeError, ValueError, ArithmeticError):
            exact[name] = Fraction(0)
        if exact[name] <= 0:
            raise InvalidInput("Product.split", f"the weight of {name!r}", "be a positive number", entries[name])
    total = sum(exact.values())
    return {name: weight / total for name, weight in exact.items()}


def _sum(epsilons: Iterable[Epsilon]) -> Epsilon:
    """Return the sum of epsilons."""
    total = ZERO
    for epsilon in epsilons:
        if epsilon.is_infinite:
            return INFINITE
        total = total + epsilon
    return total


class _Levels:
    """The declared epsilons of one attribute, as floats and as codes of exact epsilons."""

    def __init__(self, policy: PairwisePolicy) -> None:
        self._matrix = policy.epsilon_matrix()
        floats = self._matrix.floats
        #: Greatest finite epsilon, as a float.
        self.greatest = float(floats[np.isfinite(floats)].max(initial=0.0))

    def row(self, x: int) -> tuple[Floats, Integers]:
        """Return the epsilons from a value to all values as floats, and their codes."""
        return self._matrix.floats[x].copy(), self._matrix.codes[x]

    def steps(self, lines: Floats) -> Floats:
        """Return the maximum over b ≠ a of lines[b] - E[a, b] for every a."""
        result = np.full(lines.shape, -math.inf)
        for a in range(len(lines)):
            row, _ = self.row(a)
            row[a] = math.inf
            differences = lines - row.reshape(-1, *[1] * (lines.ndim - 1))
            differences[np.isinf(row)] = -math.inf
            result[a] = differences.max(axis=0)
        return result

    def epsilon(self, x: int, code: int) -> Epsilon:  # noqa: ARG002
        """Return the exact epsilon of a code in the row of a value."""
        return self._matrix.epsilon(code)


class _RowLevels(_Levels):
    """The epsilons of a policy that has one epsilon from a value to all others; it needs no matrix."""

    def __init__(self, policy: Uniform | HighLow) -> None:
        size = len(policy.domain)
        protected = policy.is_sensitive if isinstance(policy, HighLow) else np.ones(size, bool)
        self._epsilons = [policy.epsilon if is_protected else INFINITE for is_protected in protected.tolist()]
        self.greatest = 0.0 if policy.epsilon.is_infinite else float(policy.epsilon)

    def row(self, x: int) -> tuple[Floats, Integers]:
        row = np.full(len(self._epsilons), float(self._epsilons[x]))
        row[x] = 0.0
        return row, np.zeros(len(row), np.int64)

    def steps(self, lines: Floats) -> Floats:
        if len(lines) == 1:
            return np.full(lines.shape, -math.inf)
        second, first = np.partition(lines, len(lines) - 2, axis=0)[-2:]
        is_first = np.arange(len(lines)).reshape(-1, *[1] * (lines.ndim - 1)) == lines.argmax(axis=0)
        epsilons = np.array([float(epsilon) for epsilon in self._epsilons])
        result = np.where(is_first, second, first) - epsilons.reshape(-1, *[1] * (lines.ndim - 1))
        result[np.isinf(epsilons)] = -math.inf
        return np.asarray(result)

    def epsilon(self, x: int, code: int) -> Epsilon:  # noqa: ARG002
        return self._epsilons[x]


def _greatest_excess(logs: Floats, levels: Sequence[_Levels]) -> tuple[tuple[int, int] | None, float]:
    """Return the pair of different values with the greatest excess ln(T_x/T_x') - E, and the excess.

    The maximum over x' is taken along one attribute after the other, which takes k·Σkᵢ steps.
    """
    with np.errstate(invalid="ignore"):
        # The greatest -ln(T_x') - E so far, over the x' that equal x in all attributes, and over the others.
        same, other = -logs, np.full(logs.shape, -math.inf)
        for axis, of_attribute in enumerate(levels):
            lines = np.moveaxis(np.maximum(same, other), axis, 0)
            other = np.maximum(other, np.moveaxis(of_attribute.steps(lines), 0, axis))
        excess = np.where(np.isneginf(logs) | np.isneginf(other), -math.inf, logs + other)
    x = int(np.argmax(excess))
    greatest = float(excess.reshape(-1)[x])
    if math.isinf(greatest) and greatest < 0:
        return None, greatest
    epsilons = np.zeros([1] * logs.ndim)
    for axis, (of_attribute, place) in enumerate(zip(levels, np.unravel_index(x, logs.shape), strict=True)):
        row, _ = of_attribute.row(int(place))
        epsilons = epsilons + row.reshape([-1 if i == axis else 1 for i in range(logs.ndim)])
    with np.errstate(invalid="ignore"):
        apart = np.where(np.isinf(epsilons), -math.inf, -logs - epsilons).reshape(-1)
    apart[x] = -math.inf
    return (x, int(np.argmax(apart))), greatest
