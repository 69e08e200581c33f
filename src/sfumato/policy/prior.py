"""Localized information privacy: an answer moves the probability of each value by at most a factor e^ε.

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
    read_list,
    sign_of_sum,
)
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import CannotCompose, InvalidInput
from sfumato.policy.base import MOST_FILTERED, UNCONSTRAINED, Inequality, Policy, TightestConstraint
from sfumato.policy.uniform import Uniform

__all__ = ["PRIOR_AVERAGE", "SIDES", "Prior", "log_rounded_up", "read_distribution", "read_probabilities"]

#: Which of the two inequalities a policy asks for: ``upper`` is T_x ≤ e^ε·(π·T), ``lower`` is T_x ≥ e^-ε·(π·T).
SIDES = ("both", "upper", "lower")

#: How the average likelihood is named in a certificate, next to the value it is compared with.
PRIOR_AVERAGE = "the average over the prior"

#: Probabilities given as floats need not sum to one exactly; they are then divided by their sum.
_FLOAT_TOLERANCE = Fraction(1, 10**9)


class Prior(Policy):
    """``e^-ε·(π·T) ≤ T_x ≤ e^ε·(π·T)`` for every value, also for values of prior zero.

    The prior is part of the public rules: which prior a report was made under is visible to everyone. It is a list in
    domain order, or has labels (a mapping, a pandas Series) and is aligned by them.

    ``side="upper"`` asks only the right inequality: no report makes a value more than e^ε times as probable as it was,
    but one may rule a value out. ``side="lower"`` asks only the left one: no report makes a value less than e^-ε times
    as probable, but one may make an improbable value nearly certain. Each alone is much weaker than both.
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
        # Only the largest and the smallest likelihood can be the worst against one and the same average.
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
        """Decide all columns together in doubles, and exactly those that come close to a limit."""
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
        stated = {"prior": [str(p) for p in self.prior], "epsilon": str(self.epsilon)}
        return stated if self.side == "both" else {**stated, "side": self.side}

    # -- what a report can do to what was believed ---------------------------------------------------------

    def posterior_interval(self, value: object) -> tuple[float, float]:
        """The least and the greatest probability that ``value`` can have after a report. Both can be reached."""
        # On the slice π·T = 1 the other values take the weight that T_x leaves: π_x·T_x = 1 - Σ π·(the others).
        before = float(self.prior[self.domain.index(value)])
        most, least = self.epsilon.exp(), math.exp(-float(self.epsilon))
        if before in (0.0, 1.0):
            return before, before  # nothing is learnt of what was certain before
        low, high = 0.0, 1.0
        if self.side != "upper":
            low, high = before * least, 1 - (1 - before) * least
        if self.side != "lower" and not math.isinf(most):
            low, high = max(low, 1 - (1 - before) * most), min(high, before * most)
        return low, high

    def posterior_odds_bound(self, x: object, other: object, prior_odds: Fraction | int = 1) -> float:
        """Both likelihoods lie within e^±ε of one average, so odds move by at most e^2ε.

        One side alone bounds them by the prior: see ``classical_epsilon``.
        """
        place, against = self.domain.index(x), self.domain.index(other)
        if not prior_odds:
            return 0.0
        if self.side == "both" or place == against:
            return float(prior_odds) * (ZERO if place == against else self.epsilon * 2).exp()
        probability = self.prior[place if self.side == "lower" else against]
        return float(prior_odds) * log_rounded_up(*self.largest_ratio(probability)).exp()

    def largest_ratio(self, probability: Fraction) -> tuple[Terms, Terms]:
        """Numerator and denominator of the largest T_x/T_x' under one side; a denominator of none means no bound.

        ``lower``: all but x stand at e^-ε of the average, and x, of this prior ``probability``, takes the rest.
        ``upper``: all but x' stand at e^ε times the average, and what that leaves for x', of this prior, may be
        nothing.
        """
        one: Terms = [(Fraction(1), ZERO)]
        if self.epsilon.is_infinite or probability == 0:
            return one, []
        if self.side == "lower":
            return [(Fraction(1), self.epsilon), (probability - 1, ZERO)], [(probability, ZERO)]
        left = [*one, (probability - 1, self.epsilon)]
        return [(probability, self.epsilon)], left if sign_of_sum(left) > 0 else []

    @property
    def classical_epsilon(self) -> Epsilon:
        """An ε of classical LDP that the policy implies: 2ε. One side alone implies one that depends on the prior.

        With π the least prior, ``lower`` implies ln(1 + (e^ε-1)/π), and ``upper`` ln(π·e^ε/(1 - (1-π)·e^ε)) or nothing;
        both grow without limit as π falls.
        """
        return self._classical_epsilon(range(len(self.domain)))

    def _classical_epsilon(self, indices: Sequence[int]) -> Epsilon:
        if self.side == "both":
            return (self.epsilon * 2).as_promise()
        if len(indices) == 1:
            return ZERO
        return log_rounded_up(*self.largest_ratio(min(self.prior[x] for x in indices)))

    @property
    def is_uniform(self) -> bool:
        """Whether all values have the same prior."""
        return min(self.prior) == max(self.prior)

    @functools.cached_property
    def implying_epsilon(self) -> Epsilon:
        """The greatest ε of classical LDP that implies the policy, rounded down to nine digits or more.

        The extreme likelihood vectors of classical LDP are high on any set of values, so the lightest set is the value
        of least prior and the heaviest set all values but that one. It is never below the ε of the policy.
        """
        if len(self.domain) == 1:
            return INFINITE
        least = min(self.prior)
        return self.greatest_subset_epsilon(least, 1 - least)

    def greatest_subset_epsilon(self, lightest: Fraction, heaviest: Fraction) -> Epsilon:
        """Return the greatest ε' at which two likelihoods, in the ratio e^ε', obey the policy.

        It is rounded down to nine digits or more, and never below the ε of the policy, which suffices for every set.

        Parameters
        ----------
        lightest, heaviest
            The least and the greatest prior of a set of values on which an output is likelier than elsewhere.

        Notes
        -----
        With r = e^ε' on the set, 1 elsewhere and w its prior, the average is 1 + (r-1)·w. The upper side asks
        r - 1 ≤ (e^ε-1)/(1 - w·e^ε), or nothing where w·e^ε ≥ 1, which is hardest for the lightest set. The lower side
        asks r - 1 ≤ (e^ε-1)/w, which is hardest for the heaviest set.
        """
        if self.epsilon.is_infinite or self.epsilon == ZERO:
            return self.epsilon
        step = digits_of(self.epsilon)
        one = (Fraction(1), ZERO)
        # The greatest r as fractions of sums of powers of e; a denominator that is not positive means no limit.
        upper: tuple[Terms, Terms] = [(1 - lightest, self.epsilon)], [one, (-lightest, self.epsilon)]
        lower: tuple[Terms, Terms] = [(Fraction(1), self.epsilon), (heaviest - 1, ZERO)], [(heaviest, ZERO)]
        limits = {"both": [upper, lower], "upper": [upper], "lower": [lower]}[self.side]
        binding = [limit for limit in limits if sign_of_sum(limit[1]) > 0]
        return max(self.epsilon, min((floor_of_log(*limit, step) for limit in binding), default=INFINITE))

    def information_bound(self) -> float:
        """The most that a report of an allowed mechanism can tell: a bound on I(X;Y) at the prior, in nats.

        Both sides: ε·tanh(ε/2), below ε and below ε²/2. ``upper``: ε. ``lower``: it depends on the prior. Never more
        than the entropy of the prior.
        """
        prior = [float(p) for p in self.prior if float(p)]
        entropy = max(0.0, -math.fsum(p * math.log(p) for p in prior))
        if self.epsilon.is_infinite:
            return entropy
        epsilon = float(self.epsilon)
        if self.side == "both":
            # Each report has E[r ln r], r = T/(π·T) in [e^-ε, e^ε] of mean one under π: convex, so at most the chord.
            return min(entropy, epsilon * math.tanh(epsilon / 2))
        if self.side == "upper":
            return min(entropy, epsilon)
        return min(entropy, max(_information_of_one(p, epsilon) for p in set(prior)))

    # -- more than one release, fewer values ---------------------------------------------------------------

    def compose(self, other: Policy) -> Policy:
        """Two reports under one prior: ε₁ + ε₂ + min(ε₁, ε₂). The plain sum is not enough.

        T₁ₓT₂ₓ ≤ e^(ε₁+ε₂)·m₁m₂, while the joint average Σ π T₁T₂ may fall to e^-min(ε₁,ε₂)·m₁m₂
        (bound one factor below, average the other); symmetrically from below. For π = (½, ½), two reports
        at ln 2 reach ln 5 > 2·ln 2.

        One side at ε₂ next to both at ε₁: only the two-sided factor holds the average, so 2ε₁ + ε₂ on that side.
        Two one-sided policies have no bound in ε alone: the joint average can vanish, or grow like 1/π.
        """
        if not isinstance(other, Prior):
            raise CannotCompose(f"a prior policy and a {other.kind} policy have no composition rule here")
        if other.domain != self.domain or other.prior != self.prior:
            raise CannotCompose("two prior policies compose only over the same domain and the same prior")
        if "both" not in (self.side, other.side):
            raise CannotCompose(
                "two one-sided prior policies do not compose: nothing bounds the average over the prior of both reports"
            )
        if self.side == other.side:
            again, side = min(self.epsilon, other.epsilon), "both"
        else:
            again, side = (self.epsilon, other.side) if self.side == "both" else (other.epsilon, self.side)
        epsilon = self.epsilon + other.epsilon + again
        return Prior(self.domain, self.prior, epsilon.as_promise(), side)

    def restrict(self, values: Sequence[Any]) -> Policy:
        """ε-LIP implies 2ε-LDP, and that is what remains when the average runs over values that cannot occur.

        For one side it is the ``classical_epsilon`` of the values that remain.
        """
        domain = self.domain.subset(values)
        return Uniform(domain, self._classical_epsilon([self.domain.index(label) for label in domain]))


#: Epsilons that are rounded up are multiples of this.
_STEP = Epsilon(1) / 10**9


def log_rounded_up(numerator: Terms, denominator: Terms) -> Epsilon:
    """Return ln(numerator/denominator), rounded up to a step of 10^-9; infinite where the denominator has no terms."""
    return ceil_of_log(numerator, denominator, _STEP).as_promise() if denominator else INFINITE


def _information_of_one(probability: float, epsilon: float) -> float:
    """E[r ln r] where one value of this prior takes all that the others, at e^-ε, leave."""
    least = math.exp(-epsilon)
    most = least - math.expm1(-epsilon) / probability
    return probability * most * math.log(most) - (1 - probability) * least * epsilon


def read_distribution(subject: str, parameter: str, values: Any, domain: Domain) -> tuple[Fraction, ...]:
    """Return exact probabilities in domain order, summing to one; those with labels are aligned by them."""
    aligned = align(domain, values, subject, parameter)
    return read_probabilities(subject, parameter, aligned, [repr(label) for label in domain])


def read_probabilities(subject: str, parameter: str, values: Any, names: Sequence[str]) -> tuple[Fraction, ...]:
    """Return exact probabilities, one per name, summing to one."""
    probabilities = read_list(subject, parameter, f"be a list of {len(names)} probabilities", values)
    if len(probabilities) != len(names):
        raise InvalidInput(subject, parameter, f"have {len(names)} entries", f"{len(probabilities)} entries")
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
        raise InvalidInput(subject, parameter, "sum to one", f"a sum of {float(total):.12g}")
    return tuple(value / total for value in exact)
