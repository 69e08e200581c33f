"""Subset selection among the sensitive values with two subset sizes, of which a coin chooses one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import EpsilonLike, checked_integer, checked_integers
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import ONE, Mixture
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.parts.sizes import best_high_low_mixture
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import MOST_PLANES, SubsetSelection, cheap_planes, scaled_size
from sfumato.policy import HighLow, PairwisePolicy, Policy

__all__ = ["HighLowMixedSubsets"]

#: The value; then None, or the part that the coin chose and the state of that part's sampler.
MixedState = tuple[int, tuple[int, Any] | None]


class HighLowMixedSubsets(Parts):
    """Subset selection among the sensitive values with two subset sizes, for the policy :class:`HighLow`.

    A coin that does not depend on the value chooses one of two sizes d. The report is then that of
    :func:`HighLowSubset` with sets of d sensitive values: such a set, or one harmless value. The size that is best for
    the frequencies of single values differs from the size that is best for their total. Two sizes together may
    therefore have a smaller error than any single size.

    Parameters
    ----------
    domain
        The values.
    sensitive
        The s sensitive values, at least two; all others are harmless, at least one.
    epsilon
        The level ε. A report is at most e^ε times likelier for a sensitive value than for any other value.
    sizes
        The two numbers of values in a set, in ascending order, from 1 to s. By default, they minimize the expected
        squared error of the estimated frequencies (the risk) at the distribution that ``share`` determines.
    weight
        The integer 2^64·w, where w is the probability of the second size. By default, w minimizes the same risk.
    share
        Total probability of the sensitive values, strictly between 0 and 1, at which the estimator has the least risk.
        Values are equally likely within either class. By default, it is the least favourable share, at which the risk
        of the best mixture is greatest.
    thresholds
        The integers ⌊2^64·γ⌋ of the two sizes that a stored spec holds. Omit them to compute them from ``epsilon``.
    coins
        Setting of the sampler: numerators, over 2^planes, of the probabilities with which it first includes each value.
        They affect the speed, not the probabilities of the reports.
    planes
        Number of random bits per coin, from 1 to 8. It affects the speed, not the probabilities of the reports.

    Raises
    ------
    InvalidInput
        If there are fewer than two sensitive values or no harmless value, or if a parameter is out of range.

    Notes
    -----
    With t = e^ε, the size d has γ = (t-1)d/((t-1)d + s), rounded down to a multiple of 2^-64, so that ε holds exactly.
    The set of all s values is a valid report. It is as likely for all sensitive values, so it only informs about their
    total.

    By default, the mechanism and its estimator have the least worst-case risk of all mechanisms for the policy, up to
    rounding. The estimate is unbiased at every distribution. The proof is in ``docs/proofs/high-low-mixed-subsets.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import HighLowMixedSubsets, HighLowSubset
    >>> mechanism = HighLowMixedSubsets(Domain.range(8), range(4), 1)
    >>> mechanism.sizes, round(float(mechanism.weights[1]), 3), round(float(mechanism.share), 3)
    ((1, 2), 0.279, 0.468)
    >>> round(mechanism.worst_risk(1), 3), round(HighLowSubset(Domain.range(8), range(4), 1).worst_risk(1), 3)
    (8.999, 9.47)
    """

    name = "high-low-mixed-subsets"

    def __init__(
        self,
        domain: Domain,
        sensitive: Iterable[object],
        epsilon: EpsilonLike,
        sizes: Sequence[int] | None = None,
        *,
        weight: int | str | None = None,
        share: Fraction | float | str | None = None,
        thresholds: Sequence[int | str | None] = (None, None),
        coins: Sequence[int | None] = (None, None),
        planes: int | None = None,
    ) -> None:
        subject = "HighLowMixedSubsets"
        policy = HighLow(domain, sensitive, epsilon)
        count = len(policy.sensitive)
        if not 2 <= count < len(domain):
            must, hint = "have at least two sensitive values and one harmless value", "Use HighLowSubset."
            raise InvalidInput(subject, "the policy", must, policy, hint=hint)
        exact = None if share is None else _checked_share(subject, share)
        if sizes is None or weight is None or exact is None:
            best = best_high_low_mixture(count, len(domain) - count, policy.epsilon, exact)
            exact = best.share
            if sizes is None:
                sizes = best.size, best.size + 1
            if weight is None and tuple(sizes) != (best.size, best.size + 1):
                raise InvalidInput(subject, "weight", "be passed with sizes that are not the default", None)
            weight = round(best.weight * 2**32) << 32 if weight is None else weight
        first, last = checked_integers(subject, "sizes", sizes, [("first", 1, count - 1), ("second", 2, count)])
        if first >= last:
            raise InvalidInput(subject, "sizes", "be in ascending order", sizes)
        self.sizes, self.share = (first, last), exact
        self.weight = checked_integer(subject, "weight", weight, 0, ONE)
        if planes is None:
            planes = max(cheap_planes(size, count) for size in self.sizes if size < count)
        self.planes = checked_integer(subject, "planes", planes, 1, MOST_PLANES)
        answers, parts = Domain.range(count), list[Mixture]()
        pairs = (self.sizes, _checked_pair(subject, "thresholds", thresholds), _checked_pair(subject, "coins", coins))
        for size, threshold, probability in zip(*pairs, strict=True):
            if size == count:
                # A set of all values is one output, as for a single sensitive value.
                parts.append(RandomizedResponse(Domain.range(1), policy.epsilon, threshold=threshold))
                continue
            selection = SubsetSelection(
                answers, policy.epsilon, size, threshold=threshold, coin=probability, planes=self.planes
            )
            parts.append(selection)
        self.epsilon = policy.epsilon
        self._assemble(domain, parts, np.zeros(len(domain), np.int64), policy.is_sensitive)
        self.layout = Layout(
            64 + 64 * self.planes * -(-count // 64),
            (Field.number(0, 32), Field.number(32, 32)),
            lanes=count,
            planes=self.planes,
            planes_start=64,
        )
        # All values have one layout, whichever part the coin chooses.
        self._layouts = dict.fromkeys(self._layouts, self.layout)

    @property
    def weights(self) -> tuple[Fraction, Fraction]:
        """The probabilities of the two sizes."""
        return Fraction(ONE - self.weight, ONE), Fraction(self.weight, ONE)

    # -- the sampler ---------------------------------------------------------------------------------------

    def start(self, x: int) -> MixedState:
        return x, None

    def step(self, state: MixedState, draws: Draws) -> MixedState | Finished:
        """Run one step of the sampler; :meth:`sample` calls it until it returns :class:`Finished`.

        The first decision chooses the size. The subset selection of that size makes all others.

        Parameters
        ----------
        state
            The value, and after the first step the chosen part with the state of its sampler.
        draws
            The source of random decisions.

        Returns
        -------
        tuple or Finished
            The next state, or ``Finished(report)``.
        """
        x, chosen = state
        if chosen is None:
            part = int(draws.bernoulli(self.weight, ONE))
            return x, (part, self.parts[part].start(self._number(part, x)))
        part, inner = chosen
        following = self.parts[part].step(inner, draws)
        if not isinstance(following, Finished):
            return x, (part, following)
        return Finished(self.numbering.of_value(x, part, following.report))

    def _number(self, part: int, x: int) -> int:
        """Return the number of a value in a part, which is 0 for all sensitive values if a set contains all of them."""
        return min(int(self.number_of[x]), len(self.parts[part].domain) - 1)

    def layout_document(self) -> Any:
        return self.layout.document()

    def audit_surrogate(self) -> HighLowMixedSubsets:
        sensitive, harmless = min(len(self.protected(0)), SURROGATE_VALUES), min(len(self.unprotected), 2)
        has_all = self.sizes[1] == len(self.protected(0))
        first = min(scaled_size(self.parts[0].density, sensitive), sensitive - 1 if has_all else sensitive - 2)
        second = sensitive if has_all else max(scaled_size(self.parts[1].density, sensitive), first + 1)
        changes = {"sensitive": list(range(sensitive)), "sizes": [first, second]}
        return self.from_parameters(Domain.range(sensitive + harmless), self.parameters() | changes)

    # -- the stated law ------------------------------------------------------------------------------------

    def probability(self, report: int, x: int) -> Fraction:
        part, inner = self.numbering.parse(report)
        if part == OUTSIDE:
            return self.reveal_probability if inner == x else Fraction(0)
        mixture, number = self.parts[part], self._number(part, x)
        law = (1 - mixture.gamma) / mixture.outputs if number == OUTSIDE else mixture.probability(inner, number)
        return self.weights[part] * law

    @property
    def reveal_probability(self) -> Fraction:
        """Probability that the report of a harmless value reveals it."""
        pairs = zip(self.weights, self.parts, strict=True)
        return sum((weight * part.gamma for weight, part in pairs), Fraction(0))

    def guess_probability(self) -> Fraction:
        # Every set has a sensitive member, which is likeliest.
        of_parts = (len(part.domain) * part.guess_probability() for part in self.parts)
        of_sets = sum((weight * of_part for weight, of_part in zip(self.weights, of_parts, strict=True)), Fraction(0))
        return (of_sets + len(self.unprotected) * self.reveal_probability) / len(self.domain)

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if not isinstance(policy, PairwisePolicy):
            return super().worst_columns(policy)
        return itertools.chain.from_iterable(self._columns(*pair) for pair in self._worst_pairs(policy))

    def _columns(self, x: int, other: int) -> Iterator[tuple[int, list[Fraction]]]:
        """Yield the reports that favour x over another value, one of each size, with their likelihoods."""
        if self.number_of[x] == OUTSIDE:
            yield self._column(x, other)
            return
        for part, mixture in enumerate(self.parts):
            number, apart = self._number(part, x), self._number(part, other)
            if apart in (OUTSIDE, number):
                apart = 1 if number == 0 else 0
            report = mixture.separating(number, apart)
            yield self.numbering.of_part(part, report), self._likelihoods(part, report)

    def _likelihoods(self, part: int, report: int) -> list[Fraction]:
        mixture = self.parts[part]
        high, low = mixture.likelihoods
        numbers = (self._number(part, x) for x in range(len(self.domain)))
        return [high if number != OUTSIDE and mixture.in_set(report, number) else low for number in numbers]

    # -- the spec ------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        return {
            "sensitive": self.protected(0).tolist(),
            "epsilon": str(self.epsilon),
            "sizes": list(self.sizes),
            "weight": str(self.weight),
            "share": str(self.share),
            "thresholds": [str(part.threshold) for part in self.parts],
            "coins": [part.system.draws().coin for part in self.parts],
            "planes": self.planes,
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> HighLowMixedSubsets:
        others = dict(parameters)
        last = len(checked_domain("HighLowMixedSubsets", domain)) - 1
        positions = [checked_integer("HighLowMixedSubsets", "sensitive", x, 0, last) for x in others.pop("sensitive")]
        return cls(domain, list(domain.decode(positions)), **others)


def _checked_pair(subject: str, parameter: str, pair: Sequence[Any]) -> tuple[Any, Any]:
    """Return a pair, or raise InvalidInput."""
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise InvalidInput(subject, parameter, "be a pair, one for each size", pair)
    return pair[0], pair[1]


def _checked_share(subject: str, share: Fraction | float | str) -> Fraction:
    """Return the share of the sensitive values, or raise InvalidInput."""
    try:
        exact = Fraction(share)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        exact = Fraction(0)
    if not 0 < exact < 1:
        raise InvalidInput(subject, "share", "lie strictly between 0 and 1", share)
    return exact
