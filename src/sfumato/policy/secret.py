"""A secret attribute S and another attribute U: protect S, given what is known of how U depends on it.

Lopuhaä-Zwakenberg, Goseling: The Privacy-Utility Tradeoff of Robust Local Differential Privacy (RLDP).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, dot, exceeds, quantity
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import CannotCompose, Description, InvalidInput
from sfumato.policy.base import MOST_FILTERED, UNCONSTRAINED, Inequality, Policy, TightestConstraint
from sfumato.policy.blocks import Blocks
from sfumato.policy.chi_square import ChiSquare
from sfumato.policy.confidence import SecretPair, Widest, ratio_is_certain, ratio_within, ratios_are_certain, widest
from sfumato.policy.distributions import Anything, AtLeast, Distributions, Known
from sfumato.policy.pairwise import PairwisePolicy

__all__ = ["Anything", "AtLeast", "ChiSquare", "Distributions", "Known", "Secret", "on_pairs"]

#: Bits of the probabilities in a rule: they are multiples of 2^-48.
_LAW_BITS = 48
#: Maximum number of searches in one batch, one per likelihood vector and ordered pair of secrets.
_MOST_AT_ONCE = 2**14
#: Bits of integer likelihoods, and number of last bits that are ignored when equal columns are grouped.
_WEIGHT_BITS, _ALIKE_BITS = 62, 16
#: Minimum number of columns to group; fewer columns are checked one by one.
_LEAST_GROUPED = 8
#: Relative excess over its limit from which a ratio in floats is certainly above it.
_SURE = 1e-6
#: Weight of the constant vector that is mixed into a likelihood vector before its closest rule is searched.
_TRACE = 1e-9


class Secret(Policy):
    """Protection of a secret attribute S that is reported together with other attributes U.

    The secret is protected under every joint distribution of (S, U) in a given set. Two releases under :class:`Known`,
    :class:`AtLeast` or :class:`ChiSquare` do **not** compose: the reports U and S xor U each reveal nothing about S (ε
    = 0), but together they reveal S. Under :class:`Anything`, epsilons add.

    Parameters
    ----------
    domain
        A :meth:`Domain.product` of S and one or more other attributes.
    secret
        Name of the factor S.
    epsilon
        Privacy level ε between any two values of S, in any form that :class:`Epsilon` accepts.
    distributions
        The set of joint distributions: :class:`Known`, :class:`AtLeast`, :class:`ChiSquare` or :class:`Anything`.

    Raises
    ------
    InvalidInput
        If the domain has no factor of that name, or if the distributions do not match the domain.

    Notes
    -----
    Let Q(y|s,u) be the probability of output y for a person with secret s and other attributes u. For a joint
    distribution P, the probability of y given s is P(y|s) = Σ_u P(u|s)·Q(y|s,u). The policy requires P(y|s) ≤
    e^ε·P(y|s') for every output y, all secrets s ≠ s' and every P in the set. This is robust local differential privacy
    (Lopuhaä-Zwakenberg and Goseling 2021).

    Examples
    --------
    >>> from sfumato import Anything, Domain
    >>> people = Domain.product(smoker=["yes", "no"], coffee=["yes", "no"])
    >>> policy = Secret(people, "smoker", "ln 3", Anything())
    >>> policy.posterior_odds_bound("yes", "no")
    3.0
    """

    kind = "secret"

    def __init__(self, domain: Domain, secret: str, epsilon: EpsilonLike, distributions: Distributions) -> None:
        factors = checked_domain("Secret", domain).factors
        if secret not in list(factors):
            must = f"be one of the factors {', '.join(factors)}" if factors else "be a factor of a Domain.product"
            hint = None if factors else "Build the domain with Domain.product."
            raise InvalidInput("Secret", "secret", must, secret, hint=hint)
        if len(factors[secret]) < 2:
            raise InvalidInput("Secret", "secret", "have at least two values", list(factors[secret]))
        if not isinstance(distributions, Distributions):
            raise InvalidInput(
                "Secret",
                "distributions",
                "be Known(...), AtLeast(...), ChiSquare(...) or Anything()",
                distributions,
            )
        self.domain = domain
        self.secret = secret
        self.epsilon = Epsilon(epsilon, subject="Secret")
        # cells[s, u] is the index in the domain of the value with secret s and other attributes u.
        axis = list(factors).index(secret)
        grid = np.arange(len(domain)).reshape([len(factor) for factor in factors.values()])
        self.cells = np.moveaxis(grid, axis, 0).reshape(len(factors[secret]), -1)
        self._secrets = list(factors[secret])
        others = {name: factor for name, factor in factors.items() if name != secret}
        self.distributions = distributions.check(Domain.product(**{secret: factors[secret]}, **others))

    @property
    def as_pairwise(self) -> Blocks | None:
        """Equivalent :class:`Blocks` policy on pairs of values; None unless the distributions are :class:`Anything`.

        Each block contains the values with the same secret. The epsilon is infinite within blocks, and that of this
        policy between blocks.
        """
        if not isinstance(self.distributions, Anything):
            return None
        secret_of = np.empty(len(self.domain), dtype=np.int64)
        for s, cells in enumerate(self.cells):
            secret_of[cells] = s
        return Blocks(self.domain, secret_of, INFINITE, across=self.epsilon)

    def inequalities(self) -> Iterator[Inequality]:
        if self.epsilon.is_infinite:
            return
        shape = (self.cells.shape[0], self.cells.shape[1])
        laws = [
            [
                {int(i): p for i, p in zip(cells, law, strict=True) if p}
                for law in self.distributions.conditionals(s, shape)
            ]
            for s, cells in enumerate(self.cells)
        ]
        for s, first_laws in enumerate(laws):
            for other, second_laws in enumerate(laws):
                if s == other:
                    continue
                for left in first_laws:
                    for right in second_laws:
                        yield Inequality(left, right, self.epsilon, (self._secrets[s], self._secrets[other]))

    def equations(self) -> list[list[Fraction]]:
        if self.epsilon != ZERO:
            return []
        if isinstance(self.distributions, ChiSquare):  # the set and the polytope around it span the same distributions
            return Secret(self.domain, self.secret, ZERO, self.distributions.polytope()).equations()
        return super().equations()

    def worst(self, likelihoods: Sequence[object]) -> TightestConstraint:
        """Return the rule that a likelihood vector violates most, or comes closest to violating.

        Under :class:`ChiSquare`, the decision is conservative: a vector is accepted only if exact arithmetic proves
        that no distribution in the set violates a rule. If a violating distribution is found, the result contains its
        likelihoods. If neither is found, which happens only very close to the limit, the vector counts as violating.
        Under the other distributions, the decision is exact.

        Parameters
        ----------
        likelihoods
            Probability of one output for each value, in the same form as for :meth:`allows`.

        Returns
        -------
        TightestConstraint
            The rule between two values of the secret. Under :class:`ChiSquare`, ``left/right`` is a proved upper bound
            on the likelihood ratio over the whole set, unless a violating distribution was found.
        """
        if isinstance(self.distributions, ChiSquare):
            return self._worst_in(self.distributions, self._checked(likelihoods))
        pairwise = self.as_pairwise
        return self._worst_listed(self._checked(likelihoods)) if pairwise is None else pairwise.worst(likelihoods)

    @functools.cached_property
    def _integer_laws(self) -> list[tuple[list[list[int]], int]]:
        """For each secret its possible distributions of U, as integers over one denominator."""
        integer_laws = []
        for s in range(self.cells.shape[0]):
            laws = self.distributions.conditionals(s, (self.cells.shape[0], self.cells.shape[1]))
            total = math.lcm(*(p.denominator for law in laws for p in law))
            integer_laws.append(([[p.numerator * (total // p.denominator) for p in law] for law in laws], total))
        return integer_laws

    def _worst_listed(self, exact: list[Fraction]) -> TightestConstraint:
        """Return the worst rule: the largest sum of one secret against the smallest sum of another."""
        if self.epsilon.is_infinite:
            return UNCONSTRAINED
        unit = math.lcm(*(likelihood.denominator for likelihood in exact))
        whole = [likelihood.numerator * (unit // likelihood.denominator) for likelihood in exact]
        ends = []
        for cells, (laws, total) in zip(self.cells.tolist(), self._integer_laws, strict=True):
            sums = [sum(p * whole[i] for p, i in zip(law, cells, strict=True)) for law in laws]
            ends.append((Fraction(min(sums), total * unit), Fraction(max(sums), total * unit)))
        worst = UNCONSTRAINED
        for s, other in itertools.permutations(range(len(ends)), 2):
            names = (self._secrets[s], self._secrets[other])
            candidate = TightestConstraint.of(ends[s][1], ends[other][0], self.epsilon, names)
            if worst.names is None or candidate.rank > worst.rank:
                worst = candidate
        return worst

    def _worst_in(self, confidence: ChiSquare, exact: list[Fraction]) -> TightestConstraint:
        """Return the worst rule over a confidence set."""
        if self.epsilon.is_infinite or not any(exact):
            return UNCONSTRAINED
        largest = max(exact)
        exact = [value / largest for value in exact]
        rows = [[exact[i] for i in cells] for cells in self.cells.tolist()]
        widest_ratios, pairs = self._search(confidence, [[float(value) for value in exact]])
        worst = UNCONSTRAINED
        proved: Fraction | None = None
        for i in np.argsort(-widest_ratios.ratio, kind="stable").tolist():
            s, other = pairs[i]
            pair, offsets = confidence.pair(s, other), widest_ratios.offsets[i].tolist()
            q, against = rows[s], rows[other]
            if proved is not None and (
                max(q) <= proved * min(against) or ratio_is_certain(pair, q, against, offsets, proved)
            ):
                continue
            names = (self._secrets[s], self._secrets[other])
            bound: Fraction | None = None
            if max(q) == min(q) and max(against) == min(against) > 0:
                bound = max(q) / max(against)
            elif max(q) == 0:
                bound = Fraction(0)
            elif math.isfinite(widest_ratios.ratio[i]):
                bound = ratio_within(pair, q, against, offsets, float(widest_ratios.ratio[i]))
            candidate = TightestConstraint.of(Fraction(1), Fraction(0), self.epsilon, names)
            if bound is not None:
                proved = bound if proved is None else max(proved, bound)
                candidate = TightestConstraint.of(bound, Fraction(1), self.epsilon, names)
            if candidate.violated:
                laws = _laws_within(pair, widest_ratios.laws[i])
                shown = [dot(law, row) for law, row in zip(laws, (q, against), strict=True)]
                if exceeds(shown[0], shown[1], self.epsilon):
                    candidate = TightestConstraint.of(shown[0], shown[1], self.epsilon, names)
            if worst.names is None or candidate.rank > worst.rank:
                worst = candidate
        return worst

    def allows_all(self, columns: Sequence[Sequence[int]]) -> bool:
        """Return whether a mechanism may have all of these outputs.

        The result is that of :meth:`allows` for each output, but it is computed faster. Under :class:`ChiSquare`,
        likelihoods that agree up to their last bits are checked together.

        Parameters
        ----------
        columns
            One likelihood vector per output: integers below 2^62, one per value, in domain order.

        Returns
        -------
        bool
            Whether every vector satisfies every rule of the policy.
        """
        confidence, pairwise = self.distributions, self.as_pairwise
        if pairwise is not None:
            return pairwise.allows_all(columns)
        if not isinstance(confidence, ChiSquare):
            return self._allows_all_listed(columns)
        if self.epsilon.is_infinite or len(columns) < _LEAST_GROUPED:
            return super().allows_all(columns)
        # Slightly less than e^ε, and at most the largest float.
        ratio = Fraction(min(self.epsilon.exp(), 2.0**1000) * (1 - 2.0**-40))
        if exceeds(ratio, Fraction(1), self.epsilon):
            return super().allows_all(columns)
        rows = np.array(columns, dtype=np.int64)[:, self.cells]
        unproved: set[int] = set()
        slack = float(confidence.root_radius - 1)
        for s, other in itertools.permutations(range(len(self._secrets)), 2):
            group_of = _alike(rows[:, [s, other]].reshape(len(rows), -1))
            order = np.argsort(group_of, kind="stable")
            starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
            top, bottom = (
                each.reduceat(rows[order, side], starts) for each, side in ((np.maximum, s), (np.minimum, other))
            )
            likelihoods = np.stack([top, bottom], axis=1) / 2.0**_WEIGHT_BITS
            frequencies = np.tile(confidence.frequencies[[s, other]], (len(starts), 1, 1))
            widest_ratios = widest(likelihoods, frequencies, slack)
            alone = np.diff(starts, append=len(order)) == 1
            if (widest_ratios.ratio[alone] > (1 + _SURE) * float(ratio)).any():
                return False  # distributions in the set, up to rounding, violate the rule by far more than rounding
            proved = ratios_are_certain(top, bottom, frequencies[0], slack, widest_ratios.offsets, float(ratio))
            pair = confidence.pair(s, other)
            for number in np.flatnonzero(~proved).tolist():
                q, against = top[number].tolist(), bottom[number].tolist()
                if max(q) <= ratio * min(against):
                    continue
                first, second = ([Fraction(weight, 1 << _WEIGHT_BITS) for weight in side] for side in (q, against))
                if not ratio_is_certain(pair, first, second, widest_ratios.offsets[number].tolist(), ratio):
                    unproved.update(np.flatnonzero(group_of == group_of[order[starts[number]]]).tolist())
        return all(self.allows(columns[number]) for number in sorted(unproved))

    def _allows_all_listed(self, columns: Sequence[Sequence[int]]) -> bool:
        """Return whether all columns are allowed; filter them in floats and decide those near a limit exactly."""
        if self.epsilon.is_infinite or float(self.epsilon) > MOST_FILTERED:
            return super().allows_all(columns)
        weights = np.array(columns, dtype=np.int64).reshape(-1, len(self.domain))
        secrets, others = self.cells.shape
        most, least = np.empty((2, len(weights), secrets))
        for s, cells in enumerate(self.cells):
            laws = np.array([[float(p) for p in law] for law in self.distributions.conditionals(s, (secrets, others))])
            likelihoods = weights[:, cells] @ laws.T
            most[:, s], least[:, s] = likelihoods.max(axis=1), likelihoods.min(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.log(most)[:, :, None] - np.log(least)[:, None, :]
        apart[:, np.arange(secrets), np.arange(secrets)] = -math.inf
        return self._allows_near(columns, apart.max(axis=(1, 2)) - float(self.epsilon), least)

    def cut(self, likelihoods: Sequence[float]) -> Inequality | None:
        """Return one exact rule: the one that a likelihood vector violates most, or comes closest to violating.

        A policy under :class:`ChiSquare` has infinitely many rules. A solver that cannot list them adds them one by one
        with this method.

        Parameters
        ----------
        likelihoods
            Probability of one output for each value, in domain order or with labels.

        Returns
        -------
        Inequality or None
            A rule of this policy with exact coefficients. Which rule is closest is decided in floats. None if the
            vector is zero or the epsilon is infinite.
        """
        return self.cuts([likelihoods])[0]

    def cuts(self, vectors: Iterable[Sequence[float]]) -> list[Inequality | None]:
        """Return the result of :meth:`cut` for each of several likelihood vectors, which is faster than single calls.

        Parameters
        ----------
        vectors
            Likelihood vectors, each in the same form as for :meth:`cut`.

        Returns
        -------
        list of Inequality or None
            One rule per vector, in the order of ``vectors``; None for a vector to which no rule applies.

        Raises
        ------
        InvalidInput
            If a vector does not have one entry per value.
        """
        columns = np.maximum(np.array([list(self._aligned(vector)) for vector in vectors], dtype=np.float64), 0.0)
        if columns.ndim != 2 or columns.shape[1] != len(self.domain):
            must = f"have {quantity(len(self.domain), 'entry')}, one per value of the domain"
            raise InvalidInput("Secret", "likelihoods", must, Description(f"the shape {columns.shape}"))
        if self.epsilon.is_infinite:
            return [None] * len(columns)
        if not isinstance(self.distributions, ChiSquare):
            return self._cuts_listed(columns)
        # The search finds no distribution for an infinite ratio; a small constant makes every ratio finite.
        columns = columns + _TRACE * columns.max(axis=1, keepdims=True)
        cuts: list[Inequality | None] = []
        pairs = len(self._secrets) * (len(self._secrets) - 1)
        step = max(1, _MOST_AT_ONCE // pairs)
        for start in range(0, len(columns), step):
            widest_ratios, order = self._search(self.distributions, columns[start : start + step].tolist())
            for number, column in enumerate(columns[start : start + step]):
                i = number * pairs + int(np.argmax(widest_ratios.ratio[number * pairs : (number + 1) * pairs]))
                s, other = order[i]
                law, against = _laws_within(self.distributions.pair(s, other), widest_ratios.laws[i])
                cuts.append(self._rule(s, law, other, against) if column.any() else None)
        return cuts

    def _aligned(self, likelihoods: Any) -> Any:
        """Return likelihoods in domain order."""
        return align(self.domain, likelihoods, "Secret", "likelihoods")

    def _cuts_listed(self, columns: npt.NDArray[np.float64]) -> list[Inequality | None]:
        """Return the closest rule of each column, if the rules can be listed."""
        rules = list(self.inequalities())
        sides = np.zeros((2, len(rules), len(self.domain)))
        for number, rule in enumerate(rules):
            for side, part in ((0, rule.left), (1, rule.right)):
                sides[side, number, list(part)] = [float(c) for c in part.values()]
        left, right = sides[0] @ columns.T, sides[1] @ columns.T
        ratio = np.where(left > 0, left / np.maximum(right, 1e-300), 0.0)
        return [rules[i] if column.any() else None for i, column in zip(ratio.argmax(axis=0), columns, strict=True)]

    def _search(self, confidence: ChiSquare, columns: list[list[float]]) -> tuple[Widest, list[tuple[int, int]]]:
        """Return the greatest ratio of every likelihood vector for all ordered pairs of secrets, and the pairs."""
        pairs = list(itertools.permutations(range(len(self._secrets)), 2))
        rows = np.array(columns)[:, self.cells]
        indices = np.array(pairs)
        likelihoods = rows[:, indices].reshape(-1, 2, self.cells.shape[1])
        frequencies = np.tile(confidence.frequencies[indices], (len(columns), 1, 1))
        return widest(likelihoods, frequencies, float(confidence.root_radius - 1)), pairs * len(columns)

    def _rule(self, s: int, law: Sequence[Fraction], other: int, against: Sequence[Fraction]) -> Inequality:
        """Return the rule between two secrets under given conditional distributions of U."""
        left = {int(i): p for i, p in zip(self.cells[s], law, strict=True) if p}
        right = {int(i): p for i, p in zip(self.cells[other], against, strict=True) if p}
        return Inequality(left, right, self.epsilon, (self._secrets[s], self._secrets[other]))

    def parameters(self) -> dict[str, Any]:
        return {
            "secret": self.secret,
            "epsilon": str(self.epsilon),
            "distributions": self.distributions.document(),
        }

    def posterior_odds_bound(self, secret: object, other: object, prior_odds: Fraction | int = 1) -> float:
        """Return the greatest odds of one secret against another that an observer can assign after a report.

        The odds of s against s' are P(s)/P(s'). A report multiplies them by at most e^ε.

        Parameters
        ----------
        secret
            A value of the secret attribute.
        other
            Another value of the secret attribute.
        prior_odds
            Odds of ``secret`` against ``other`` before the report.

        Returns
        -------
        float
            Upper bound on the odds after the report.
        """
        for value in (secret, other):
            self.domain.factors[self.secret].index(value)
        return float(prior_odds) * (ZERO if secret == other else self.epsilon).exp() if prior_odds else 0.0

    def compose(self, other: Policy) -> Policy:
        first = self.as_pairwise
        second = other.as_pairwise if isinstance(other, Secret) else other
        if first is None or second is None:
            raise CannotCompose(
                "secret policies under a known or estimated distribution do not compose, because two releases at "
                "epsilon 0 can together reveal the secret. Use Anything(), under which epsilons add."
            )
        if isinstance(other, Secret) and other.domain == self.domain and other.secret == self.secret:
            return Secret(self.domain, self.secret, (self.epsilon + other.epsilon).as_promise(), Anything())
        return first.compose(second)

    def restrict(self, values: Sequence[Any]) -> Policy:
        pairwise = self.as_pairwise
        if pairwise is None:
            raise CannotCompose(
                "a secret policy under a known or estimated distribution cannot be restricted, because fewer values "
                "change the distribution. State a new policy over the remaining values."
            )
        return pairwise.restrict(values)


def _alike(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return group numbers of rows that agree up to their last bits.

    Rows are compared by a weighted sum, which rarely puts different rows into one group.
    """
    factors = np.modf(np.sqrt(2 + np.arange(rows.shape[1])))[0] + 1
    sums = ((rows >> _ALIKE_BITS) * ((factors * 2.0**40).astype(np.int64) | 1)).sum(axis=1)
    return np.unique(sums, return_inverse=True)[1].astype(np.intp)


def _laws_within(pair: SecretPair, laws: npt.NDArray[np.float64]) -> list[tuple[Fraction, ...]]:
    """Return two exact distributions of U close to the given ones that some distribution in the set has."""
    targets = [_rounded(law) for law in laws]
    centres = []
    for cells, law in zip((pair.first, pair.second), targets, strict=True):
        total = sum(cells, Fraction(0))
        centres.append(tuple(c / total for c in cells) if total else law)
    for bits in range(_LAW_BITS - 4, -1, -1):
        weight = Fraction(1, 1 << bits)
        mixed = [
            tuple(r + weight * (c - r) for r, c in zip(law, centre, strict=True))
            for law, centre in zip(targets, centres, strict=True)
        ]
        if pair.holds(*mixed):
            return mixed
    return centres


def _rounded(law: npt.NDArray[np.float64]) -> tuple[Fraction, ...]:
    """Return a distribution in multiples of 2^-48 with a sum of exactly one."""
    units = [round(p * 2**_LAW_BITS) for p in law.tolist()]
    units[max(range(len(units)), key=units.__getitem__)] += 2**_LAW_BITS - sum(units)
    return tuple(Fraction(unit, 2**_LAW_BITS) for unit in units)


def on_pairs(policy: Policy) -> PairwisePolicy | None:
    """Return the equivalent policy on pairs of values, or None if there is none."""
    if isinstance(policy, Secret):
        return policy.as_pairwise
    return policy if isinstance(policy, PairwisePolicy) else None
