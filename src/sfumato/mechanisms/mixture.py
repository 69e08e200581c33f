"""Mixtures over set systems, and all other mechanisms whose columns have two likelihoods.

A column is high on a set D(y) of values and low elsewhere, with one ratio high/low for every output y. A policy on
pairs then binds only through its smallest level, and a prior only through the lightest and the heaviest set. Audits
therefore take little time for any number of values.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from sfumato._core import Epsilon, EpsilonLike, checked_integer, exceeds, floor_of_ratio
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.provenance import is_library_class
from sfumato.mechanisms.systems.base import SetSystem
from sfumato.policy import PairwisePolicy, Policy, Prior

__all__ = ["ONE", "Mixture", "TwoLevelMechanism", "mixing_threshold"]

#: Common denominator of all probabilities.
ONE = 2**64
#: Greatest product of values and outputs for which sets from outside are compared with their stated density.
_MOST_CHECKED = 2**14


class TwoLevelMechanism(Mechanism):
    """Base class of mechanisms whose columns are high on D(y) and low elsewhere.

    For every two values x and x', some set D(y) contains x but not x'.
    """

    @functools.cached_property
    @abstractmethod
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        """The pair (high, low), exact up to a factor common to the column."""

    @abstractmethod
    def in_set(self, report: int, x: int) -> bool:
        """Return whether D(report) contains the value with index x."""

    @abstractmethod
    def separating(self, x: int, other: int) -> int:
        """Return a report whose set contains x but not ``other``."""

    @abstractmethod
    def extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        """Return the report of the lightest or heaviest set that is neither empty nor the whole domain."""

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if isinstance(policy, PairwisePolicy):
            # All columns have the same ratio and every pair is separated, so only the smallest epsilon binds.
            _, (x, other) = policy.least
            return iter([self._column(self.separating(x, other))])
        if isinstance(policy, Prior):
            # high/average is largest where the set is lightest, average/low where it is heaviest.
            return (self._column(self.extreme(policy.prior, heaviest=heaviest)) for heaviest in (False, True))
        return None

    def _column(self, report: int) -> tuple[int, list[Fraction]]:
        """Return a report with the likelihoods of all values."""
        high, low = self.likelihoods
        return report, [high if self.in_set(report, x) else low for x in range(len(self.domain))]

    def classical_epsilon(self) -> Epsilon | None:
        # A spec may state one ε while its threshold keeps another, so the likelihoods are compared.
        epsilon: Epsilon | None = getattr(self, "epsilon", None)
        high, low = self.likelihoods
        if epsilon is None or exceeds(high, low, epsilon) or exceeds(low, high, epsilon):
            return None
        return epsilon


class Mixture(TwoLevelMechanism):
    """Mixture over a set system: a report whose set is likelier to contain the true value.

    With probability γ a report is uniform over the outputs whose set contains the true value, a fraction ``density`` of
    all outputs. Otherwise it is uniform over all outputs. To add a mixture, derive a class with a ``name`` from this
    one, whose constructor passes a :class:`SetSystem`, and pass it to :func:`register`.

    Parameters
    ----------
    domain
        The k values.
    epsilon
        The level ε of classical local differential privacy.
    system
        The sets of the outputs, over k values.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    Let t = e^ε and u be the density of the sets. Reports are at most t times likelier for one value than for another
    if γ ≤ (t-1)u/((t-1)u + 1). γ is rounded down to a multiple of 2^-64, so that ε holds exactly.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import Mixture, RandomizedResponse
    >>> isinstance(RandomizedResponse(Domain(["none", "flu"]), "ln 3"), Mixture)
    True
    """

    def __init__(
        self, domain: Domain, epsilon: EpsilonLike, system: SetSystem, *, threshold: int | str | None = None
    ) -> None:
        subject = type(self).__name__
        self.domain = checked_domain(subject, domain)
        self.epsilon = Epsilon(epsilon, subject=subject)
        if system.size != len(domain):
            raise InvalidInput(subject, "system", f"have sets of {len(domain)} values", system)
        if not is_library_class(type(system)):
            _check_sets(subject, system)
        self.system = system
        if threshold is None:
            threshold = mixing_threshold(self.epsilon, system.density)
        self.threshold = checked_integer(subject, "threshold", threshold, 0, ONE)
        self.layout = system.layout

    # -- the sampler -----------------------------------------------------------------------------------------

    def start(self, x: int) -> Hashable:
        return self.system.start(x)

    def step(self, state: Any, draws: Draws) -> Any:
        # The sampler also accepts OUTSIDE, a value in no set: with probability γ its report is then OUTSIDE too.
        return self.system.step(state, draws, lambda: draws.bernoulli(self.threshold, ONE))

    def audit_surrogate(self) -> Mixture | None:
        small = self.system.surrogate()
        if small is None:
            return None
        parameters = self.parameters() | small.document()
        if self.threshold == mixing_threshold(self.epsilon, self.density):
            del parameters["threshold"]  # it follows from ε and the density, as that of the small mixture does
        return self.from_parameters(Domain.range(small.size), parameters)

    @property
    def is_of_library(self) -> bool:
        return super().is_of_library and is_library_class(type(self.system))

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def density(self) -> Fraction:
        """Share of the sets that contain a value."""
        return self.system.density

    @property
    def gamma(self) -> Fraction:
        """Probability γ that the report is forced to depend on the true value."""
        return Fraction(self.threshold, ONE)

    @functools.cached_property
    def likelihoods(self) -> tuple[Fraction, Fraction]:
        """The pair (high, low), relative to the uniform law."""
        return self.gamma / self.density + (1 - self.gamma), 1 - self.gamma

    @functools.cached_property
    def _probabilities(self) -> tuple[Fraction, Fraction]:
        """The probabilities of one report given a value in its set, and given a value outside."""
        high, low = self.likelihoods
        return high / self.outputs, low / self.outputs

    @property
    def outputs(self) -> int:
        return self.system.outputs

    def reports(self) -> Iterable[int]:
        return self.system.reports()

    def probability(self, report: int, x: int) -> Fraction:
        high, low = self._probabilities
        return high if self.system.contains(report, x) else low

    def in_set(self, report: int, x: int) -> bool:
        return self.system.contains(report, x)

    def separating(self, x: int, other: int) -> int:
        return self.system.separating(x, other)

    def extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        return self.system.extreme(weights, heaviest=heaviest)

    def guess_probability(self) -> Fraction:
        high, low = self._probabilities
        empty = self.system.empty_outputs()
        return ((self.outputs - empty) * high + empty * low) / len(self.domain)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixture):
            return NotImplemented
        # A spec may lack a parameter of sets from outside; then equal specs are not equal laws.
        return super().__eq__(other) is True and self._sets == other._sets

    __hash__ = TwoLevelMechanism.__hash__

    @property
    def _sets(self) -> tuple[int, Fraction]:
        """Number of sets, and the share that contains a value."""
        return self.outputs, self.density

    # -- the spec --------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon), **self.system.document(), "threshold": str(self.threshold)}


def _check_sets(subject: str, system: SetSystem) -> None:
    """Raise InvalidInput unless every value is in the stated share of the sets, if the sets are few enough to list."""
    density: Any = system.density
    outputs: Any = system.outputs
    if not isinstance(density, Fraction) or not 0 < density <= 1:
        raise InvalidInput(subject, "the density of the sets", "be a Fraction above 0 and at most 1", density)
    if not isinstance(outputs, int) or outputs < 1:
        raise InvalidInput(subject, "the outputs of the sets", "be a positive integer", outputs)
    if system.size * system.outputs > _MOST_CHECKED:
        return
    for x in range(system.size):
        shares = Fraction(sum(bool(system.contains(report, x)) for report in system.reports()), system.outputs)
        if shares != system.density:
            must = f"be the share of the sets that contain each value, {shares} for value number {x}"
            hint = "Compare contains(report, x) with the numbers of the reports, which are 0 to outputs - 1."
            raise InvalidInput(subject, "the density of the sets", must, system.density, hint=hint)


def mixing_threshold(epsilon: Epsilon, density: Fraction) -> int:
    """Return ⌊2^64·γ⌋ for the largest γ at which a mixture keeps ε.

    With density u, the ratio of the likelihoods is 1 + γ/((1-γ)·u). It is at most e^ε if and only if γ ≤
    (e^ε-1)·u/((e^ε-1)·u + 1). Rounding down moves the law towards the uniform one, which is the private side for every
    ε. At ε = 0 the law is exactly uniform.
    """
    if epsilon.is_infinite:
        return ONE
    return floor_of_ratio((ONE * density, -ONE * density), (density, 1 - density), epsilon)
