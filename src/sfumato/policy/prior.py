"""Localized information privacy: an answer moves the probability of each value by at most a factor e^ε.

Jiang, Li, Tandon: Context-aware Data Aggregation with Localized Information Privacy (LIP).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from sfumato.domain import Domain
from sfumato.errors import CannotCompose, InvalidInput
from sfumato.exact import ZERO, Epsilon, EpsilonLike, exact_fraction
from sfumato.policy.base import NOTHING_BINDS, Inequality, Policy, Worst, read_list
from sfumato.policy.uniform import Uniform

__all__ = ["PRIOR_AVERAGE", "Prior", "read_distribution"]

#: How the average likelihood is named in a certificate, beside the value it is compared with.
PRIOR_AVERAGE = "the average over the prior"

#: Probabilities given as floats need not sum to one exactly; they are then divided by their sum.
_FLOAT_TOLERANCE = Fraction(1, 10**9)


class Prior(Policy):
    """``e^-ε·(π·T) ≤ T_x ≤ e^ε·(π·T)`` for every value, also for values of prior zero.

    The prior is part of the public rules: which prior a report was made under is visible to everyone.
    """

    kind = "prior"

    def __init__(self, domain: Domain, prior: Sequence[Any], epsilon: EpsilonLike) -> None:
        self.domain = domain
        self.prior = read_distribution("Prior", "prior", prior, [repr(label) for label in domain])
        self.epsilon = Epsilon(epsilon, what="Prior")

    def inequalities(self) -> Iterator[Inequality]:
        if self.epsilon.is_infinite:
            return
        average = {x: p for x, p in enumerate(self.prior) if p}
        for x, label in enumerate(self.domain):
            own = {x: Fraction(1)}
            yield Inequality(own, average, self.epsilon, (label, PRIOR_AVERAGE))
            yield Inequality(average, own, self.epsilon, (PRIOR_AVERAGE, label))

    def worst(self, likelihoods: Sequence[object]) -> Worst:
        exact = self._checked(likelihoods)
        if self.epsilon.is_infinite or not any(exact):
            return NOTHING_BINDS
        # Only the largest and the smallest likelihood can be the worst against one and the same average.
        average = sum((p * t for p, t in zip(self.prior, exact, strict=True)), Fraction(0))
        most = max(range(len(exact)), key=exact.__getitem__)
        least = min(range(len(exact)), key=exact.__getitem__)
        label = self.domain.label
        above = Worst.of(exact[most], average, self.epsilon, (label(most), PRIOR_AVERAGE))
        below = Worst.of(average, exact[least], self.epsilon, (PRIOR_AVERAGE, label(least)))
        return max(above, below, key=lambda worst: worst.rank)

    def parameters(self) -> dict[str, Any]:
        return {"prior": [str(p) for p in self.prior], "epsilon": str(self.epsilon)}

    def posterior_odds_bound(self, x: object, other: object, prior_odds: Fraction | int = 1) -> float:
        """Both likelihoods lie within e^±ε of one average, so odds move by at most e^2ε."""
        same = self.domain.index(x) == self.domain.index(other)
        return float(prior_odds) * (ZERO if same else self.epsilon * 2).exp() if prior_odds else 0.0

    def compose(self, other: Policy) -> Policy:
        """Two reports under one prior: ε₁ + ε₂ + min(ε₁, ε₂). The plain sum is not enough.

        T₁ₓT₂ₓ ≤ e^(ε₁+ε₂)·m₁m₂, while the joint average Σ π T₁T₂ may fall to e^-min(ε₁,ε₂)·m₁m₂
        (bound one factor below, average the other); symmetrically from below. For π = (½, ½), two reports
        at ln 2 reach ln 5 > 2·ln 2.
        """
        if not isinstance(other, Prior):
            raise CannotCompose(f"a prior policy and a {other.kind} policy have no composition rule here")
        if other.domain != self.domain or other.prior != self.prior:
            raise CannotCompose("two prior policies compose only over the same domain and the same prior")
        epsilon = self.epsilon + other.epsilon + min(self.epsilon, other.epsilon)
        return Prior(self.domain, self.prior, epsilon.as_promise())

    def restrict(self, values: Sequence[Any]) -> Policy:
        """ε-LIP implies 2ε-LDP, and that is what remains when the average runs over values that cannot occur."""
        return Uniform(self.domain.subset(values), (self.epsilon * 2).as_promise())


def read_distribution(what: str, parameter: str, given: Sequence[Any], names: Sequence[str]) -> tuple[Fraction, ...]:
    """Exact probabilities, one per name, summing to one."""
    probabilities = read_list(what, parameter, f"be a list of {len(names)} probabilities", given)
    if len(probabilities) != len(names):
        raise InvalidInput(what, parameter, f"have {len(names)} entries", f"{len(probabilities)} entries")
    exact = []
    for name, value in zip(names, probabilities, strict=True):
        try:
            exact.append(exact_fraction(value))
        except (TypeError, ValueError, ArithmeticError):
            raise InvalidInput(what, f"{parameter} of {name}", "be a number in [0, 1]", value) from None
        if not 0 <= exact[-1] <= 1:
            raise InvalidInput(what, f"{parameter} of {name}", "lie in [0, 1]", value)
    total = sum(exact, Fraction(0))
    inexact = any(not isinstance(value, (int, Fraction, str)) for value in probabilities)
    if total != 1 and not (inexact and abs(total - 1) <= _FLOAT_TOLERANCE):
        raise InvalidInput(what, parameter, "sum to one", f"a sum of {float(total):.12g}")
    return tuple(value / total for value in exact)
