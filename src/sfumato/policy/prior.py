"""Localized information privacy: a report changes the probability of each value by at most a factor e^ε.

Jiang, Li, Tandon: Context-aware Data Aggregation with Localized Information Privacy (LIP).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import (
    INFINITE,
    ZERO,
    Epsilon,
    EpsilonLike,
    Terms,
    ceil_of_log,
    digits_of,
    exact_fraction,
    floor_of_log,
    quantity,
    read_list,
    sign_of_sum,
)
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import CannotCompose, Description, InvalidInput
from sfumato.policy.base import MOST_FILTERED, UNCONSTRAINED, Inequality, Policy, TightestConstraint
from sfumato.policy.uniform import Uniform

__all__ = ["PRIOR_AVERAGE", "SIDES", "Prior", "log_rounded_up", "read_distribution", "read_probabilities"]

#: Inequalities that a policy may require: ``upper`` is T_x ≤ e^ε·(π·T), ``lower`` is T_x ≥ e^-ε·(π·T).
SIDES = ("both", "upper", "lower")

#: Name of the average likelihood in a certificate, where it is compared with a value.
PRIOR_AVERAGE = "the average over the prior"

#: Maximum distance of a sum of floats from one; such probabilities are divided by their sum.
_FLOAT_TOLERANCE = Fraction(1, 10**9)


class Prior(Policy):
    """Localized information privacy: limits on how far a report changes the probability of each value.

    An observer who knows the prior assigns each value a new probability after a report. The policy keeps the new
    probability between e^-ε and e^ε times the prior one. The prior is part of the policy and therefore public. The
    rules also protect values of prior zero.

    Parameters
    ----------
    domain
        The values.
    prior
        Probability of each value, in domain order or with labels (a mapping, a pandas Series). Strings and Fractions
        are exact; floats are divided by their sum.
    epsilon
        Privacy level ε, in any form that :class:`Epsilon` accepts.
    side
        ``"both"`` limits, or only one of them, which is much weaker:

        - ``"upper"``: no report makes a value more than e^ε times as probable, but a report may rule a value out. This
          is a limit on pointwise maximal leakage; see :meth:`maximal_leakage`.
        - ``"lower"``: no report makes a value less than e^-ε times as probable, but a report may make an improbable
          value nearly certain.

    Raises
    ------
    InvalidInput
        If the probabilities do not sum to one, or if the side is unknown.

    Notes
    -----
    Let Q(y|x) be the probability of output y for value x, and m(y) = Σ_x π(x)·Q(y|x) its average over the prior π. The
    policy requires e^-ε·m(y) ≤ Q(y|x) ≤ e^ε·m(y) for every value x and every output y (Jiang, Li and Tandon,
    Context-aware Data Aggregation with Localized Information Privacy).

    Examples
    --------
    >>> from sfumato import Domain
    >>> policy = Prior(Domain(["no", "yes"]), ["0.9", "0.1"], "ln 2")
    >>> low, high = policy.posterior_interval("yes")
    >>> round(low, 6), round(high, 6)
    (0.05, 0.2)
    """

    kind = "prior"

    def __init__(
        self, domain: Domain, prior: Sequence[Any] | Mapping[Any, Any], epsilon: EpsilonLike, side: str = "both"
    ) -> None:
        self.domain = checked_domain("Prior", domain)
        if side not in SIDES:
            raise InvalidInput("Prior", "side", f"be one of {', '.join(SIDES)}", side)
        self.prior = read_distribution("Prior", "prior", prior, domain)
        self.epsilon = Epsilon(epsilon, subject="Prior")
        self.side = side

    @classmethod
    def maximal_leakage(cls, domain: Domain, prior: Sequence[Any] | Mapping[Any, Any], epsilon: EpsilonLike) -> Prior:
        """Return the policy that limits pointwise maximal leakage (PML): a ``Prior`` policy with the upper side.

        The leakage of a report limits what any observer can gain from it. However an observer guesses a property of the
        value, the report multiplies the expected gain of the best guess by at most e^ε.

        Parameters
        ----------
        domain
            The values.
        prior
            Probability of each value, as for :class:`Prior`.
        epsilon
            Greatest leakage of a report in nats, in any form that :class:`Epsilon` accepts.

        Returns
        -------
        Prior
            The same policy as ``Prior(domain, prior, epsilon, side="upper")``.

        Notes
        -----
        Let Q(y|x) be the probability of output y for value x, and m(y) its average over the prior. The leakage of y is
        ln(max_x Q(y|x)/m(y)), and the policy keeps it at or below ε for every output y (Saeidian et al. 2023, Pointwise
        Maximal Leakage). The definition takes the maximum over values of positive prior; this policy also protects the
        others.

        Let p(x) be the prior. If e^ε·(1 - p(x)) ≤ 1 for all x, an optimal mechanism has one output per value, with
        Q(y|x) = e^ε·p(y) for y ≠ x and Q(x|x) = 1 - e^ε·(1 - p(x)) (Grosse, Saeidian and Oechtering 2024, Extremal
        Mechanisms for Pointwise Maximal Leakage). The output x then makes the value x less probable and all others more
        probable. :func:`optimal` finds mechanisms of the same information for this ε, and optima for every ε.

        Examples
        --------
        >>> from sfumato import Domain
        >>> policy = Prior.maximal_leakage(Domain(["no", "yes"]), ["0.9", "0.1"], "ln 2")
        >>> policy.side, policy.allows([0, 1]), policy.allows([1, 0])
        ('upper', False, True)
        """
        return cls(domain, prior, epsilon, "upper")

    def inequalities(self) -> Iterator[Inequality]:
        if self.epsilon.is_infinite:
            return
        average = {x: p for x, p in enumerate(self.prior) if p}
        for x, label in enumerate(self.domain):
            value = {x: Fraction(1)}
            if self.side != "lower":
                yield Inequality(value, average, self.epsilon, (label, PRIOR_AVERAGE))
            if self.side != "upper":
                yield Inequality(average, value, self.epsilon, (PRIOR_AVERAGE, label))

    def worst(self, likelihoods: Sequence[object]) -> TightestConstraint:
        exact = self._checked(likelihoods)
        if self.epsilon.is_infinite or not any(exact):
            return UNCONSTRAINED
        # All values are compared with the same average, so only the largest and smallest likelihood can be worst.
        average = sum((p * t for p, t in zip(self.prior, exact, strict=True)), Fraction(0))
        most = max(range(len(exact)), key=exact.__getitem__)
        least = min(range(len(exact)), key=exact.__getitem__)
        label = self.domain.label
        constraints = []
        if self.side != "lower":
            constraints.append(TightestConstraint.of(exact[most], average, self.epsilon, (label(most), PRIOR_AVERAGE)))
        if self.side != "upper":
            constraints.append(
                TightestConstraint.of(average, exact[least], self.epsilon, (PRIOR_AVERAGE, label(least)))
            )
        return max(constraints, key=lambda worst: worst.rank)

    def allows_all(self, columns: Sequence[Sequence[int]]) -> bool:
        """Return whether a mechanism may have all of these outputs; the answer is exact.

        Most vectors are decided in floats; those close to a limit are decided in exact arithmetic.

        Parameters
        ----------
        columns
            One likelihood vector per output, as for :meth:`allows`: integers below 2^63, one per value, in domain
            order.

        Returns
        -------
        bool
            Whether every vector satisfies every rule of the policy.
        """
        if self.epsilon.is_infinite or float(self.epsilon) > MOST_FILTERED:
            return super().allows_all(columns)
        weights = np.array(columns, dtype=np.int64).reshape(-1, len(self.domain))
        sums = weights @ np.array([float(probability) for probability in self.prior])
        with np.errstate(divide="ignore", invalid="ignore"):
            above = np.log(weights.max(axis=1)) - np.log(sums)
            below = np.log(sums) - np.log(weights.min(axis=1))
        excess = {"both": np.maximum(above, below), "upper": above, "lower": below}[self.side] - float(self.epsilon)
        return self._allows_near(columns, excess, sums[:, None])

    def parameters(self) -> dict[str, Any]:
        parameters = {"prior": [str(p) for p in self.prior], "epsilon": str(self.epsilon)}
        return parameters if self.side == "both" else {**parameters, "side": self.side}

    # -- bounds on beliefs after a report ------------------------------------------------------------------

    def posterior_interval(self, value: object) -> tuple[float, float]:
        """Return the smallest and greatest probability that an observer can assign to a value after a report.

        Before the report, the observer assigns the values the probabilities of the prior.

        Parameters
        ----------
        value
            A value of the domain.

        Returns
        -------
        tuple of float
            The smallest and the greatest probability. For each of them, some mechanism under this policy has a report
            that reaches it.
        """
        # With π·T normalized to 1, the other values have the remaining weight: π_x·T_x = 1 - Σ_{z≠x} π_z·T_z.
        before = float(self.prior[self.domain.index(value)])
        most, least = self.epsilon.exp(), math.exp(-float(self.epsilon))
        if before in (0.0, 1.0):
            return before, before  # a report cannot change a probability of 0 or 1
        low, high = 0.0, 1.0
        if self.side != "upper":
            low, high = before * least, 1 - (1 - before) * least
        if self.side != "lower" and not math.isinf(most):
            low, high = max(low, 1 - (1 - before) * most), min(high, before * most)
        return low, high

    def posterior_odds_bound(self, x: object, other: object, prior_odds: Fraction | int = 1) -> float:
        """Return the greatest odds of one value against another that an observer can assign after a report.

        The odds of x against x' are P(x)/P(x'). With both sides, a report multiplies them by at most e^2ε. With one
        side, the factor depends on the prior; see :attr:`classical_epsilon`.

        Parameters
        ----------
        x
            The first value.
        other
            The second value.
        prior_odds
            Odds of ``x`` against ``other`` before the report.

        Returns
        -------
        float
            Upper bound on the odds after the report, which may be infinite.
        """
        place, against = self.domain.index(x), self.domain.index(other)
        if not prior_odds:
            return 0.0
        if self.side == "both" or place == against:
            return float(prior_odds) * (ZERO if place == against else self.epsilon * 2).exp()
        probability = self.prior[place if self.side == "lower" else against]
        return float(prior_odds) * log_rounded_up(*self.largest_ratio(probability)).exp()

    def largest_ratio(self, probability: Fraction) -> tuple[Terms, Terms]:
        """Return the largest ratio Q(y|x)/Q(y|x') of the probabilities of one output that a one-sided policy allows.

        Parameters
        ----------
        probability
            Prior probability p of x if the side is ``"lower"``, and of x' if the side is ``"upper"``.

        Returns
        -------
        tuple
            Numerator and denominator, both exact. Each is a list of pairs (coefficient, level) and means the sum of
            coefficient·e^level. An empty denominator means that the ratio has no bound.

        Notes
        -----
        For ``"lower"``, the ratio is (e^ε - (1-p))/p: all values but x have the likelihood e^-ε times the average over
        the prior. For ``"upper"``, the ratio is p·e^ε/(1 - (1-p)·e^ε): all values but x' have e^ε times the average.
        """
        one: Terms = [(Fraction(1), ZERO)]
        if self.epsilon.is_infinite or probability == 0:
            return one, []
        if self.side == "lower":
            return [(Fraction(1), self.epsilon), (probability - 1, ZERO)], [(probability, ZERO)]
        rest = [*one, (probability - 1, self.epsilon)]
        return [(probability, self.epsilon)], rest if sign_of_sum(rest) > 0 else []

    @property
    def classical_epsilon(self) -> Epsilon:
        """Level of classical LDP (:class:`Uniform`) that follows from this policy.

        With both sides, it is 2ε. With one side, it depends on the smallest prior probability p. It is ln(1 +
        (e^ε-1)/p) for ``"lower"``. For ``"upper"``, it is ln(p·e^ε/(1 - (1-p)·e^ε)), or infinite if the denominator is
        not positive. Both are rounded up, and grow without limit as p falls.
        """
        return self._classical_epsilon(range(len(self.domain)))

    def _classical_epsilon(self, indices: Sequence[int]) -> Epsilon:
        """Return the level of classical LDP that the policy implies between some of the values."""
        if self.side == "both":
            return (self.epsilon * 2).as_promise()
        if len(indices) == 1:
            return ZERO
        return log_rounded_up(*self.largest_ratio(min(self.prior[x] for x in indices)))

    @property
    def is_uniform(self) -> bool:
        """Whether the prior gives all values the same probability."""
        return min(self.prior) == max(self.prior)

    @functools.cached_property
    def implying_epsilon(self) -> Epsilon:
        """Greatest level of classical LDP (:class:`Uniform`) from which this policy follows.

        Every mechanism that obeys ``Uniform`` at this level obeys this policy. The level is rounded down to nine digits
        or more, and never below the ε of this policy. It is infinite if the domain has one value.
        """
        if len(self.domain) == 1:
            return INFINITE
        least = min(self.prior)
        return self.greatest_subset_epsilon(least, 1 - least)

    def greatest_subset_epsilon(self, lightest: Fraction, heaviest: Fraction) -> Epsilon:
        """Return the greatest level ε' such that mechanisms whose outputs have two likelihoods obey this policy.

        An output y with two likelihoods has Q(y|x) = e^ε'·c for the values x in a set, and Q(y|x) = c for all other
        values. The sets of a mechanism may differ in their prior probability.

        Parameters
        ----------
        lightest
            Least prior probability of the set of an output.
        heaviest
            Greatest prior probability of the set of an output.

        Returns
        -------
        Epsilon
            The greatest ε', rounded down to nine digits or more. It is never below the ε of the policy, which is small
            enough for every set.

        Notes
        -----
        Let r = e^ε' be the ratio of the two likelihoods, and w the prior probability of the set. With c = 1, the
        average likelihood is 1 + (r-1)·w. The upper side requires r - 1 ≤ (e^ε-1)/(1 - w·e^ε), or nothing if w·e^ε ≥ 1;
        the lightest set gives the smallest r. The lower side requires r - 1 ≤ (e^ε-1)/w; the heaviest set gives the
        smallest r.
        """
        if self.epsilon.is_infinite or self.epsilon == ZERO:
            return self.epsilon
        step = digits_of(self.epsilon)
        one = (Fraction(1), ZERO)
        # The greatest r as a quotient of sums of powers of e; a denominator that is not positive means no limit.
        upper: tuple[Terms, Terms] = [(1 - lightest, self.epsilon)], [one, (-lightest, self.epsilon)]
        lower: tuple[Terms, Terms] = [(Fraction(1), self.epsilon), (heaviest - 1, ZERO)], [(heaviest, ZERO)]
        limits = {"both": [upper, lower], "upper": [upper], "lower": [lower]}[self.side]
        binding = [limit for limit in limits if sign_of_sum(limit[1]) > 0]
        return max(self.epsilon, min((floor_of_log(*limit, step) for limit in binding), default=INFINITE))

    def information_bound(self) -> float:
        """Return an upper bound on the mutual information of a value and its report, in nats.

        Returns
        -------
        float
            Bound for every mechanism under this policy if values are distributed like the prior. It never exceeds the
            entropy of the prior. For both sides it is at most ε·tanh(ε/2), which is below ε and ε²/2. For ``"upper"``
            it is at most ε, and for ``"lower"`` it depends on the prior.
        """
        prior = [float(p) for p in self.prior if float(p)]
        entropy = max(0.0, -math.fsum(p * math.log(p) for p in prior))
        if self.epsilon.is_infinite:
            return entropy
        epsilon = float(self.epsilon)
        if self.side == "both":
            # A report gives E[r ln r] with r = T/(π·T) in [e^-ε, e^ε] and mean one under π. By convexity the chord
            # is an upper bound.
            return min(entropy, epsilon * math.tanh(epsilon / 2))
        if self.side == "upper":
            return min(entropy, epsilon)
        return min(entropy, max(_information_of_one(p, epsilon) for p in set(prior)))

    # -- composition and restriction -----------------------------------------------------------------------

    def compose(self, other: Policy) -> Policy:
        """Return the policy that two releases under the same prior obey together.

        Both releases are reports about the same value, drawn independently of each other. Two policies with both sides
        compose to the level ε₁ + ε₂ + min(ε₁, ε₂); the plain sum is not enough. Both sides at ε₁ and one side at ε₂
        compose to 2ε₁ + ε₂ on that side. Two one-sided policies do not compose.

        Parameters
        ----------
        other
            A prior policy over the same domain with the same prior.

        Returns
        -------
        Policy
            The composed prior policy.

        Raises
        ------
        CannotCompose
            If the other policy is of another kind or has another prior, or if both policies are one-sided.

        Notes
        -----
        Let T₁ and T₂ be the likelihoods of the two reports for each value, and m₁ and m₂ their averages over the prior
        π. Then T₁(x)·T₂(x) ≤ e^(ε₁+ε₂)·m₁m₂. The average of the product, Σ_x π(x)·T₁(x)·T₂(x), can be as small as
        e^-min(ε₁,ε₂)·m₁m₂: bound one factor from below and average the other. The lower side is symmetric. For π = (½,
        ½), two reports at ln 2 reach ln 5 > 2·ln 2.

        If one policy has one side, only the likelihoods of the other one bound the average of the product. If both have
        one side, that average can vanish or grow like 1/π, so no bound in ε alone exists.
        """
        if not isinstance(other, Prior):
            raise CannotCompose(
                f"a prior policy and a {other.kind} policy have no composition rule in this package. "
                "Use two prior policies with the same prior, or two policies on pairs of values."
            )
        if other.domain != self.domain or other.prior != self.prior:
            raise CannotCompose(
                "prior policies compose only if they have the same domain and the same prior. "
                "State both policies with one prior."
            )
        if "both" not in (self.side, other.side):
            raise CannotCompose(
                "two one-sided prior policies do not compose, because together the two reports can reveal the value "
                "without a limit that depends on epsilon alone. Use side='both' for at least one of them."
            )
        if self.side == other.side:
            again, side = min(self.epsilon, other.epsilon), "both"
        else:
            again, side = (self.epsilon, other.side) if self.side == "both" else (other.epsilon, self.side)
        epsilon = self.epsilon + other.epsilon + again
        return Prior(self.domain, self.prior, epsilon.as_promise(), side)

    def restrict(self, values: Sequence[Any]) -> Policy:
        """Return the classical policy that a mechanism still obeys if only some of the values can occur.

        The rules of this policy use an average over all values, including those that cannot occur. Only classical LDP
        remains: at the level 2ε for both sides, and for one side at the level of :attr:`classical_epsilon`, computed
        for the remaining values.

        Parameters
        ----------
        values
            The labels of the values that can occur.

        Returns
        -------
        Policy
            A :class:`Uniform` policy over these values.
        """
        domain = self.domain.subset(values)
        return Uniform(domain, self._classical_epsilon([self.domain.index(label) for label in domain]))


#: Step to which epsilons are rounded up.
_STEP = Epsilon(1) / 10**9


def log_rounded_up(numerator: Terms, denominator: Terms) -> Epsilon:
    """Return ln(numerator/denominator), rounded up to a multiple of 10^-9; infinite if the denominator is empty."""
    return ceil_of_log(numerator, denominator, _STEP).as_promise() if denominator else INFINITE


def _information_of_one(probability: float, epsilon: float) -> float:
    """Return E[r ln r] if all values but one are at e^-ε and that one, of this prior, takes the rest."""
    least = math.exp(-epsilon)
    most = least - math.expm1(-epsilon) / probability
    return probability * most * math.log(most) - (1 - probability) * least * epsilon


def read_distribution(subject: str, parameter: str, values: Any, domain: Domain) -> tuple[Fraction, ...]:
    """Return exact probabilities in domain order that sum to one; labelled inputs are aligned."""
    aligned = align(domain, values, subject, parameter)
    return read_probabilities(subject, parameter, aligned, [repr(label) for label in domain])


def read_probabilities(subject: str, parameter: str, values: Any, names: Sequence[str]) -> tuple[Fraction, ...]:
    """Return exact probabilities, one per name, that sum to one."""
    probabilities = read_list(subject, parameter, f"be a list of {quantity(len(names), 'probability')}", values)
    if len(probabilities) != len(names):
        must = f"have {quantity(len(names), 'entry')}, one per value of the domain"
        raise InvalidInput(subject, parameter, must, Description(quantity(len(probabilities), "entry")))
    exact = []
    for name, value in zip(names, probabilities, strict=True):
        try:
            exact.append(exact_fraction(value))
        except (TypeError, ValueError, ArithmeticError):
            raise InvalidInput(subject, f"{parameter} of {name}", "be a number in [0, 1]", value) from None
        if not 0 <= exact[-1] <= 1:
            raise InvalidInput(subject, f"{parameter} of {name}", "lie in [0, 1]", value)
    total = sum(exact, Fraction(0))
    inexact = any(not isinstance(value, (int, Fraction, str)) for value in probabilities)
    if total != 1 and not (inexact and abs(total - 1) <= _FLOAT_TOLERANCE):
        hint = None if abs(total - 1) > Fraction(1, 100) else "Exact fractions such as '1/3' avoid rounding errors."
        raise InvalidInput(subject, parameter, "sum to one", Description(f"a sum of {float(total):.12g}"), hint=hint)
    return tuple(value / total for value in exact)
