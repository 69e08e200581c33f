"""What is left of a promise under a prior if the true prior is another one: exact audits against a set of priors.

For one output with likelihoods T, a prior enters the rules only through its average π·T, which is linear in π, and
T_x/(π·T) and (π·T)/T_x are both largest where that average is smallest or largest. So the worst over a convex set of
priors is found at its corners: a list of priors stands for all their mixtures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato._core import (
    ZERO,
    EpsilonLike,
    Result,
    check_keys,
    exact_fraction,
    excess,
    number_document,
    read_fractions,
    read_list,
    read_number,
    reads_document,
)
from sfumato.auditing.audits import audit
from sfumato.auditing.certificate import Certificate
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.policy import Prior, read_distribution

__all__ = ["PriorBox", "PriorMixtures", "PriorSet", "PriorSetAudit", "audit_priors"]

Distribution = tuple[Fraction, ...]


class PriorSet(ABC):
    """A convex set of priors over a domain."""

    domain: Domain

    @abstractmethod
    def extremes(self, likelihoods: Sequence[Fraction]) -> Iterator[Distribution]:
        """Priors among which the average of these likelihoods is least and greatest over the whole set."""


class PriorMixtures(PriorSet):
    """All mixtures of a few priors; each is a list in domain order, or has labels."""

    def __init__(self, domain: Domain, priors: Sequence[Sequence[Any] | Mapping[Any, Any]]) -> None:
        self.domain = checked_domain("PriorMixtures", domain)
        entries = read_list("PriorMixtures", "priors", "be a list of priors", priors)
        if not entries:
            raise InvalidInput("PriorMixtures", "priors", "hold at least one", priors)
        self.priors = [
            read_distribution("PriorMixtures", f"prior {i}", prior, domain) for i, prior in enumerate(entries)
        ]

    def extremes(self, likelihoods: Sequence[Fraction]) -> Iterator[Distribution]:  # noqa: ARG002
        return iter(self.priors)


class PriorBox(PriorSet):
    """All priors with ``low[x] ≤ π_x ≤ high[x]``: an interval for two values, a box cut by the simplex for more.

    The limits are lists in domain order, or have labels (a mapping, a pandas Series) and are aligned by them.
    """

    def __init__(
        self, domain: Domain, low: Sequence[Any] | Mapping[Any, Any], high: Sequence[Any] | Mapping[Any, Any]
    ) -> None:
        self.domain = checked_domain("PriorBox", domain)
        self.low, self.high = self._limits("low", low), self._limits("high", high)
        for label, least, most in zip(domain, self.low, self.high, strict=True):
            if least > most:
                raise InvalidInput("PriorBox", f"low of {label!r}", f"be at most its high, {float(most)}", float(least))
        if not sum(self.low) <= 1 <= sum(self.high):
            sums = f"sums of {float(sum(self.low)):.6g} and {float(sum(self.high)):.6g}"
            raise InvalidInput("PriorBox", "low and high", "leave room for a sum of one", sums)

    @classmethod
    def around(cls, domain: Domain, prior: Sequence[Any] | Mapping[Any, Any], radius: Any) -> PriorBox:
        """Every prior that differs by at most ``radius`` in each probability."""
        centre = read_distribution("PriorBox", "prior", prior, checked_domain("PriorBox", domain))
        reach = _number("radius", radius)
        if reach < 0:
            raise InvalidInput("PriorBox", "radius", "be at least 0", radius)
        return cls(domain, [max(p - reach, Fraction(0)) for p in centre], [min(p + reach, Fraction(1)) for p in centre])

    def _limits(self, which: str, limits: Any) -> Distribution:
        aligned = align(self.domain, limits, "PriorBox", which)
        numbers = read_list("PriorBox", which, f"be {len(self.domain)} numbers", aligned)
        if len(numbers) != len(self.domain):
            raise InvalidInput("PriorBox", which, f"have {len(self.domain)} entries", len(numbers))
        exact = tuple(_number(f"{which} of {label!r}", n) for label, n in zip(self.domain, numbers, strict=True))
        for label, limit in zip(self.domain, exact, strict=True):
            if not 0 <= limit <= 1:
                raise InvalidInput("PriorBox", f"{which} of {label!r}", "lie in [0, 1]", float(limit))
        return exact

    def extremes(self, likelihoods: Sequence[Fraction]) -> Iterator[Distribution]:
        # The mass above the lower limits goes to the smallest likelihoods first, or to the largest.
        ascending = sorted(range(len(likelihoods)), key=likelihoods.__getitem__)
        for order in (ascending, ascending[::-1]):
            prior = list(self.low)
            left = 1 - sum(self.low, Fraction(0))
            for x in order:
                added = min(left, self.high[x] - self.low[x])
                prior[x] += added
                left -= added
            yield tuple(prior)


@dataclass(frozen=True, repr=False)
class PriorSetAudit(Result):
    """What was found at the worst prior of a set: ``certificate`` is that of the audit there, and can be checked again.

    ``epsilon``: the least ε that the mechanism keeps for every prior of the set, as a double; infinite where there is
    none. ``holds`` is decided exactly.
    """

    certificate: Certificate
    prior: Distribution
    epsilon: float

    @property
    def holds(self) -> bool:
        """Whether the mechanism obeys, whichever prior of the set is the true one."""
        return self.certificate.holds

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document of plain JSON types, with exact fractions as strings."""
        prior = [str(probability) for probability in self.prior]
        return {"certificate": self.certificate.to_dict(), "prior": prior, "epsilon": number_document(self.epsilon)}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> PriorSetAudit:
        """Return the result that a document holds: the inverse of ``to_dict``."""
        parts = check_keys("PriorSetAudit", "the document", document, required=("certificate", "prior", "epsilon"))
        certificate = Certificate.from_dict(parts["certificate"])
        size = len(Domain.from_dict(certificate.mechanism["domain"]))
        prior = read_fractions("PriorSetAudit", "prior", parts["prior"], size)
        if min(prior) < 0 or sum(prior) != 1:
            raise InvalidInput("PriorSetAudit", "prior", "be probabilities that sum to one", parts["prior"])
        return cls(certificate, prior, read_number("PriorSetAudit", "epsilon", parts["epsilon"], least=0.0))

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        labels = Domain.from_dict(self.certificate.mechanism["domain"]).labels
        return {"value": list(labels), "worst prior": [float(probability) for probability in self.prior]}

    def _title(self) -> str:
        return f"{self.certificate.summary()}, at the worst prior; the least epsilon for all is {self.epsilon:.6g}"

    def __repr__(self) -> str:
        return f"<PriorSetAudit: {self._title()}>"


def audit_priors(
    mechanism: Mechanism,
    priors: PriorSet | Sequence[Sequence[Any] | Mapping[Any, Any]],
    epsilon: EpsilonLike,
    side: str = "both",
) -> PriorSetAudit:
    """Does the mechanism keep ε-LIP whichever prior of the set is the true one? Exact.

    ``priors`` is a set, or a list of priors, which stands for all their mixtures.
    """
    domain = mechanism.domain
    chosen = priors if isinstance(priors, PriorSet) else PriorMixtures(domain, priors)
    if chosen.domain != domain:
        raise InvalidInput("audit_priors", "priors", "be over the mechanism's domain", chosen.domain)
    law = mechanism.channel()
    greatest: tuple[bool, Fraction] | None = None
    sides, worst = (Fraction(0), Fraction(1)), next(chosen.extremes([Fraction(0)] * len(domain)))
    for column in zip(*law.rows, strict=True):
        for prior in chosen.extremes(column) if any(column) else ():
            at = Prior(domain, prior, ZERO, side).worst(column)
            # Compared as the rationals they are, so that the worst is the worst however close another comes.
            ratio = (True, Fraction(0)) if at.right == 0 else (False, at.left / at.right)
            if greatest is None or ratio > greatest:
                greatest, sides, worst = ratio, (at.left, at.right), prior
    return PriorSetAudit(audit(mechanism, Prior(domain, worst, epsilon, side)), worst, excess(*sides, ZERO))


def _number(parameter: str, value: Any) -> Fraction:
    try:
        return exact_fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput("PriorBox", parameter, "be a number", value) from None
