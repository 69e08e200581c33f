"""Sensitive and non-sensitive values (context-aware LDP §5: high-low LDP)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, label_document, read_list
from sfumato.domain import Domain, align, checked_domain, has_labels
from sfumato.errors import InvalidInput
from sfumato.policy.base import Policy
from sfumato.policy.epsilon_matrix import EpsilonMatrix
from sfumato.policy.pairwise import Pairwise, PairwisePolicy
from sfumato.policy.uniform import Uniform

__all__ = ["HighLow"]


class HighLow(PairwisePolicy):
    """Protection of sensitive values only.

    An output is at most e^ε times likelier for a sensitive value than for any other value, so a person with a sensitive
    value can always deny it. A non-sensitive value may be revealed, because its likelihood has no upper bound. If every
    value is sensitive, the policy is equivalent to :class:`Uniform`.

    Parameters
    ----------
    domain
        The values.
    sensitive
        A list of the sensitive values, or a mapping or pandas Series from every value to a bool.
    epsilon
        Privacy level ε of the sensitive values, in any form that :class:`Epsilon` accepts.

    Raises
    ------
    InvalidInput
        If no value is sensitive, or if a value is unknown or named twice.

    Notes
    -----
    Let Q(y|x) be the probability of output y for value x. The policy requires Q(y|x) ≤ e^ε·Q(y|x') for every sensitive
    x, every x' and every output y (Acharya et al. 2020, Context-Aware Local Differential Privacy, section 5).

    Examples
    --------
    >>> from sfumato import Domain
    >>> policy = HighLow(Domain(["healthy", "flu", "HIV"]), ["HIV"], 1)
    >>> policy.allows([1, 0, 0]), policy.allows([0, 0, 1])
    (True, False)
    """

    kind = "high-low"

    def __init__(self, domain: Domain, sensitive: Iterable[object] | Mapping[Any, bool], epsilon: EpsilonLike) -> None:
        self.domain = checked_domain("HighLow", domain)
        self.epsilon = Epsilon(epsilon, subject="HighLow")
        values = read_list("HighLow", "sensitive", "be a list of values", _flagged(domain, sensitive))
        indices = [domain.index(value) for value in values]
        if not indices:
            raise InvalidInput("HighLow", "sensitive", "name at least one value", [])
        if len(set(indices)) < len(indices):
            twice = next(i for n, i in enumerate(indices) if i in indices[:n])
            raise InvalidInput("HighLow", "sensitive", "name each value once", domain.label(twice))
        self._is_sensitive = np.zeros(len(domain), dtype=bool)
        self._is_sensitive[indices] = True

    @property
    def sensitive(self) -> list[object]:
        """Sensitive values, in domain order."""
        return [self.domain.label(int(x)) for x in np.flatnonzero(self._is_sensitive)]

    @property
    def is_sensitive(self) -> npt.NDArray[np.bool_]:
        """One flag per value, in domain order: whether the value is sensitive."""
        return self._is_sensitive.copy()

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        if x == other:
            return ZERO
        return self.epsilon if self._is_sensitive[x] else INFINITE

    # Only steps from sensitive values are finite, and each costs ε, so no path is shorter than the direct step.
    effective_epsilon = epsilon_between

    def classes(self) -> npt.NDArray[np.int64]:
        return self._is_sensitive.astype(np.int64)

    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        positions = np.where(self._is_sensitive[indices][:, None], 1, 2) * np.ones(len(indices), dtype=np.intp)
        np.fill_diagonal(positions, 0)
        return EpsilonMatrix.from_epsilons(positions, [ZERO, self.epsilon, INFINITE])

    effective_epsilons_on = epsilons_on

    def parameters(self) -> dict[str, Any]:
        return {"sensitive": [label_document(value) for value in self.sensitive], "epsilon": str(self.epsilon)}

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:
        if isinstance(other, HighLow) and np.array_equal(self._is_sensitive, other._is_sensitive):
            return HighLow(self.domain, self.sensitive, (self.epsilon + other.epsilon).as_promise())
        return None

    def restrict(self, values: Sequence[Any]) -> Policy:
        domain = self.domain.subset(values)
        sensitive = [value for value in values if self._is_sensitive[self.domain.index(value)]]
        if not sensitive:
            return Pairwise(domain, {})
        if len(sensitive) == len(values):
            return Uniform(domain, self.epsilon)
        return HighLow(domain, sensitive, self.epsilon)


def _flagged(domain: Domain, sensitive: Any) -> Any:
    """Return the values that a labelled input of bools marks as true; return other inputs unchanged."""
    if not has_labels(domain, sensitive):
        return sensitive
    entries = list(sensitive.values()) if isinstance(sensitive, Mapping) else list(sensitive)
    if not entries or not all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        return sensitive
    flags = align(domain, sensitive, "HighLow", "sensitive")
    return [label for label, flag in zip(domain, flags, strict=True) if flag]
