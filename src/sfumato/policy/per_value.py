"""One privacy level per value: input-discriminative LDP (Gu et al. 2020)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, did_you_mean, quantity, read_list
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.policy.base import Policy
from sfumato.policy.epsilon_matrix import LARGEST_DENSE, EpsilonMatrix
from sfumato.policy.pairwise import PairwisePolicy

__all__ = ["PerValue"]


def _mean(first: Epsilon, second: Epsilon) -> Epsilon:
    """Return the mean of two epsilons."""
    return (first + second) / 2


#: The epsilon of a pair from those of its two values, by name.
_RULES: dict[str, Callable[[Epsilon, Epsilon], Epsilon]] = {"min": min, "mean": _mean, "max": max}
#: Maximum number of different epsilons under the rule "mean", which forms all their sums exactly.
_MOST_MEANS = 512


class PerValue(PairwisePolicy):
    """Input-discriminative LDP: one epsilon per value, and for each pair of values a function of their epsilons.

    A small epsilon means a sensitive value. With the rule ``"min"``, the epsilon of a value also limits every
    comparison with less sensitive values.

    Parameters
    ----------
    domain
        The values.
    epsilons
        Privacy level of each value, in domain order or with labels (a mapping, a pandas Series). ``"inf"`` means that
        the value needs no protection for its own sake.
    rule
        How the epsilon of a pair follows from those of its values:

        - ``"min"``: the smaller one, so that every comparison is as strict as its more sensitive value requires;
        - ``"mean"``: their mean;
        - ``"max"``: the larger one. A sensitive value is then protected only from values that are as sensitive.

    Raises
    ------
    InvalidInput
        If the epsilons do not match the domain, if the rule is unknown, or if there are too many different epsilons.

    Notes
    -----
    Let Q(y|x) be the probability of output y for value x, and e(x) the epsilon of x. The policy requires Q(y|x) ≤
    e^r(e(x),e(x'))·Q(y|x') for all values x, x' and every output y. Gu et al. (2020, Providing Input-Discriminative
    Protection for Local Differential Privacy) define this for any function r, and study the minimum (MinID-LDP).

    With the rule ``"min"``, a path through the value of least epsilon m limits every pair to 2m. The effective epsilon
    is therefore min(e(x), e(x'), 2m). With the other rules no path is shorter than the direct step.

    The number of values is not limited. More than 4096 values may have at most 2048 different epsilons, and the rule
    ``"mean"`` accepts at most 512 different epsilons.

    Examples
    --------
    >>> from sfumato import Domain
    >>> illness = Domain(["none", "flu", "hiv"])
    >>> policy = PerValue(illness, {"hiv": "1/2", "flu": 1, "none": 4})
    >>> policy.epsilon_between(0, 2), policy.epsilon_between(0, 1)
    (Epsilon('0.5'), Epsilon('1'))
    >>> PerValue(illness, [4, 1, "1/2"], rule="max").epsilon_between(0, 2)
    Epsilon('4')
    """

    kind = "per-value"

    def __init__(
        self,
        domain: Domain,
        epsilons: Sequence[EpsilonLike] | Mapping[Any, EpsilonLike] | npt.NDArray[Any],
        rule: str = "min",
    ) -> None:
        self.domain = checked_domain("PerValue", domain)
        if rule not in _RULES:
            must = f"be one of {', '.join(_RULES)}{did_you_mean(rule, _RULES)}"
            raise InvalidInput("PerValue", "rule", must, rule)
        self.rule = rule
        by_value = _read_epsilons(domain, epsilons)
        self._levels = tuple(sorted(set(by_value)))
        place = {epsilon: rank for rank, epsilon in enumerate(self._levels)}
        self._rank = np.array([place[epsilon] for epsilon in by_value], dtype=np.int64)
        most = _most_levels(len(domain), rule)
        if len(self._levels) > most:
            must = f"have at most {most} different entries for {len(domain)} values under the rule {rule!r}"
            raise InvalidInput("PerValue", "epsilons", must, len(self._levels))

    @property
    def epsilons(self) -> tuple[Epsilon, ...]:
        """Epsilon of each value, in domain order."""
        return tuple(self._levels[rank] for rank in self._rank.tolist())

    @functools.cached_property
    def _effective_levels(self) -> tuple[Epsilon, ...]:
        """Levels whose combination by the rule is the effective epsilon of a pair."""
        if self.rule != "min":
            return self._levels
        most = self._levels[0] * 2
        return tuple(min(level, most) for level in self._levels)

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        return self._between(self._levels, x, other)

    def effective_epsilon(self, x: int, other: int) -> Epsilon:
        return self._between(self._effective_levels, x, other)

    def _between(self, levels: Sequence[Epsilon], x: int, other: int) -> Epsilon:
        """Return the epsilon of a pair, given the levels."""
        return ZERO if x == other else _RULES[self.rule](levels[self._rank[x]], levels[self._rank[other]])

    def classes(self) -> npt.NDArray[np.int64]:
        """Return the class of each value: values with the same epsilon are exchangeable.

        Returns
        -------
        numpy.ndarray
            One class number per value, in domain order. Classes are numbered from 0 in ascending order of epsilon.
        """
        return self._rank

    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._epsilons_on(indices, self._levels)

    def effective_epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._epsilons_on(indices, self._effective_levels)

    def _epsilons_on(self, indices: npt.NDArray[np.intp], levels: Sequence[Epsilon]) -> EpsilonMatrix:
        """Return the epsilons between values, given the levels."""
        rank = self._rank[indices]
        low, high = np.minimum(rank[:, None], rank), np.maximum(rank[:, None], rank)
        if self.rule == "mean":
            pairs, positions = np.unique(low * len(levels) + high, return_inverse=True)
            combined = [_mean(levels[pair // len(levels)], levels[pair % len(levels)]) for pair in pairs.tolist()]
            positions = positions.reshape(low.shape)
        else:
            combined, positions = list(levels), low if self.rule == "min" else high
        positions = positions + 1
        np.fill_diagonal(positions, 0)
        return EpsilonMatrix.from_epsilons(positions, [ZERO, *combined])

    # Every rule grows with both epsilons, so the extreme pairs are the two smallest and the two largest epsilons.

    @functools.cached_property
    def least(self) -> tuple[Epsilon, tuple[int, int]]:
        """Smallest declared epsilon of an ordered pair of different values, and the two indices of such a pair."""
        if len(self.domain) == 1:
            return INFINITE, (0, 0)
        pair = self._by_epsilon(0, 1)
        return self.epsilon_between(*pair), pair

    @functools.cached_property
    def greatest_effective(self) -> tuple[Epsilon, tuple[int, int]]:
        """Greatest :meth:`effective_epsilon` between two different values, and the two indices of such a pair."""
        if len(self.domain) == 1:
            return ZERO, (0, 0)
        pair = self._by_epsilon(-2, -1)
        return self.effective_epsilon(*pair), pair

    def _by_epsilon(self, first: int, second: int) -> tuple[int, int]:
        """Return the indices of two values, given their positions in ascending order of epsilon."""
        order = np.argsort(self._rank, kind="stable")
        return int(order[first]), int(order[second])

    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = {"epsilons": [str(epsilon) for epsilon in self.epsilons]}
        return parameters if self.rule == "min" else {**parameters, "rule": self.rule}

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:
        """Return the composition of two policies with the same rule, if it has that form too, or None.

        The mean of sums is the sum of means. The minimum or maximum of sums is the sum of minima or maxima if both
        policies agree on which of two values is more sensitive.
        """
        if not isinstance(other, PerValue) or other.rule != self.rule:
            return None
        order = np.lexsort([other._effective_rank, self._effective_rank])
        if self.rule != "mean" and (np.diff(other._effective_rank[order]) < 0).any():
            return None
        pairs = np.stack([self._rank, other._rank], axis=1)
        distinct, positions = np.unique(pairs, axis=0, return_inverse=True)
        if len(distinct) > _most_levels(len(self.domain), self.rule):
            return None
        sums = [(self._effective_levels[a] + other._effective_levels[b]).as_promise() for a, b in distinct.tolist()]
        return PerValue(self.domain, [sums[place] for place in positions.reshape(-1).tolist()], self.rule)

    @property
    def _effective_rank(self) -> npt.NDArray[np.int64]:
        """Position of the effective level of each value; equal levels have the same position."""
        place = {level: rank for rank, level in reversed(list(enumerate(self._effective_levels)))}
        return np.array([place[level] for level in self._effective_levels])[self._rank]

    def restrict(self, values: Sequence[Any]) -> Policy:
        ranks = self._rank[[self.domain.index(value) for value in values]]
        levels = [self._effective_levels[rank].as_promise() for rank in ranks.tolist()]
        return PerValue(self.domain.subset(values), levels, self.rule)


def _most_levels(values: int, rule: str) -> int:
    """Return the maximum number of different epsilons, so that a matrix of two values per epsilon stays small."""
    if rule == "mean":
        return _MOST_MEANS
    return values if values <= LARGEST_DENSE else LARGEST_DENSE // 2


def _read_epsilons(domain: Domain, epsilons: Any) -> list[Epsilon]:
    """Return one epsilon per value in domain order; equal entries of the same type are parsed once."""
    must = f"be a list of {quantity(len(domain), 'epsilon')}, one per value of the domain, or have labels"
    entries = read_list("PerValue", "epsilons", must, align(domain, epsilons, "PerValue", "epsilons"))
    if len(entries) != len(domain):
        raise InvalidInput("PerValue", "epsilons", must, Description(quantity(len(entries), "entry")))
    known: dict[tuple[type, str], Epsilon] = {}
    result = []
    for x, entry in enumerate(entries):
        key = (type(entry), repr(entry))
        if key not in known:
            known[key] = Epsilon(entry, subject="PerValue", parameter=f"epsilon of {domain.label(x)!r}")
        result.append(known[key])
    return result
