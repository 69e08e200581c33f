"""Exact audits against a set of priors: what a promise under one prior is worth if another prior is the true one.

For one output with likelihoods T, a prior π enters the rules only through the average π·T, which is linear in π. The
ratios T_x/(π·T) and (π·T)/T_x are largest where that average is smallest or largest. The worst case over a convex set
of priors is therefore at one of its corners, and a list of priors represents all their mixtures.
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
    quantity,
    read_fractions,
    read_list,
    read_number,
    reads_document,
)
from sfumato.auditing.audits import audit
from sfumato.auditing.certificate import Certificate
from sfumato.domain import Domain, align, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import Mechanism
from sfumato.policy import Prior, read_distribution

__all__ = ["PriorBox", "PriorMixtures", "PriorSet", "PriorSetAudit", "audit_priors"]

Distribution = tuple[Fraction, ...]


class PriorSet(ABC):
    """Base class of convex sets of priors, against which :func:`audit_priors` audits a mechanism.

    A prior is a probability distribution over the values of a domain. Use :class:`PriorBox` or :class:`PriorMixtures`,
    or define :meth:`extremes` in a subclass.

    Attributes
    ----------
    domain
        Domain of the priors.
    """

    domain: Domain

    @abstractmethod
    def extremes(self, likelihoods: Sequence[Fraction]) -> Iterator[Distribution]:
        """Yield priors of the set that minimize and maximize the average likelihood of an output.

        The average likelihood under a prior π is Σ_x π(x)·Q(y|x), where Q(y|x) is the probability of the output y for
        value x.

        Parameters
        ----------
        likelihoods
            Probability Q(y|x) of one output for each value, in domain order.

        Yields
        ------
        tuple of Fraction
            A prior in domain order. One of the yielded priors has the smallest average of the whole set, and one the
            greatest.
        """


class PriorMixtures(PriorSet):
    """Set of all mixtures (weighted averages) of a few priors.

    Parameters
    ----------
    domain
        Domain of the priors.
    priors
        At least one prior: the probability of each value, in domain order or with labels (a mapping, a pandas Series).

    Raises
    ------
    InvalidInput
        If the list is empty, or an entry is not a distribution over the domain.

    Examples
    --------
    >>> import sfumato as sf
    >>> priors = sf.auditing.PriorMixtures(sf.Domain(["no", "yes"]), [["0.9", "0.1"], ["0.8", "0.2"]])
    >>> len(priors.priors)
    2
    """

    def __init__(self, domain: Domain, priors: Sequence[Sequence[Any] | Mapping[Any, Any]]) -> None:
        self.domain = checked_domain("PriorMixtures", domain)
        entries = read_list("PriorMixtures", "priors", "be a list of priors", priors)
        if not entries:
            raise InvalidInput("PriorMixtures", "priors", "have at least one prior", Description("an empty list"))
        self.priors = [
            read_distribution("PriorMixtures", f"prior {i}", prior, domain) for i, prior in enumerate(entries)
        ]

    def extremes(self, likelihoods: Sequence[Fraction]) -> Iterator[Distribution]:  # noqa: ARG002
        return iter(self.priors)


class PriorBox(PriorSet):
    """Set of all priors whose probabilities lie between a lower and an upper limit for each value.

    The set contains the distributions π over the domain with ``low[x] ≤ π[x] ≤ high[x]`` for every value x.

    Parameters
    ----------
    domain
        Domain of the priors.
    low
        Smallest probability of each value: a list in domain order, or a mapping or pandas Series with the values as
        labels.
    high
        Greatest probability of each value, in the same form.

    Raises
    ------
    InvalidInput
        If a limit is not in [0, 1], a lower limit exceeds the upper one, or no prior satisfies all limits.

    Examples
    --------
    >>> import sfumato as sf
    >>> box = sf.PriorBox(sf.Domain(["no", "yes"]), low=["0.7", "0.1"], high=["0.9", "0.3"])
    >>> box.low
    (Fraction(7, 10), Fraction(1, 10))
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
            sums = Description(f"sums of {float(sum(self.low)):.6g} and {float(sum(self.high)):.6g}")
            must = "have sums of at most one (low) and at least one (high), so that some prior satisfies them"
            raise InvalidInput("PriorBox", "low and high", must, sums)

    @classmethod
    def around(cls, domain: Domain, prior: Sequence[Any] | Mapping[Any, Any], radius: Any) -> PriorBox:
        """Return the set of priors that differ from a given prior by at most ``radius`` in each probability.

        Parameters
        ----------
        domain
            Domain of the priors.
        prior
            Prior in the center: the probability of each value, in domain order or with labels.
        radius
            Maximum difference of each probability, at least 0.

        Returns
        -------
        PriorBox
            The set of priors; its limits are cut to [0, 1].

        Raises
        ------
        InvalidInput
            If the prior is not a distribution, or the radius is negative.
        """
        center = read_distribution("PriorBox", "prior", prior, checked_domain("PriorBox", domain))
        reach = _number("radius", radius)
        if reach < 0:
            raise InvalidInput("PriorBox", "radius", "be at least 0", radius)
        return cls(domain, [max(p - reach, Fraction(0)) for p in center], [min(p + reach, Fraction(1)) for p in center])

    def _limits(self, which: str, limits: Any) -> Distribution:
        """Return limits as exact fractions in the order of the domain."""
        aligned = align(self.domain, limits, "PriorBox", which)
        numbers = read_list("PriorBox", which, f"be {quantity(len(self.domain), 'number')}", aligned)
        if len(numbers) != len(self.domain):
            must = f"have {quantity(len(self.domain), 'entry')}, one per value of the domain"
            raise InvalidInput("PriorBox", which, must, Description(quantity(len(numbers), "entry")))
        exact = tuple(_number(f"{which} of {label!r}", n) for label, n in zip(self.domain, numbers, strict=True))
        for label, limit in zip(self.domain, exact, strict=True):
            if not 0 <= limit <= 1:
                raise InvalidInput("PriorBox", f"{which} of {label!r}", "be in [0, 1]", float(limit))
        return exact

    def extremes(self, likelihoods: Sequence[Fraction]) -> Iterator[Distribution]:
        # Give the mass above the lower limits to the smallest likelihoods first, then to the largest.
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
    """Result of :func:`audit_priors`: whether a mechanism obeys a prior policy under every prior of a set.

    Parameters
    ----------
    certificate
        Certificate of the audit at the worst prior; :func:`verify` checks it.
    prior
        The worst prior of the set: the one under which the mechanism needs the greatest epsilon. Exact, in domain
        order.
    epsilon
        Smallest epsilon at which the mechanism obeys the prior policy under every prior of the set, as a float;
        infinite if no finite epsilon suffices. :attr:`holds` is decided exactly and does not use this float.

    See Also
    --------
    audit_priors : Audit a mechanism against a set of priors.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> mechanism = sf.design(sf.Prior(domain, ["0.9", "0.1"], 1))
    >>> result = sf.audit_priors(mechanism, sf.PriorBox.around(domain, ["0.9", "0.1"], "0.05"), epsilon=1)
    >>> result.holds
    False
    """

    certificate: Certificate
    prior: Distribution
    epsilon: float

    @property
    def holds(self) -> bool:
        """Whether the mechanism obeys the prior policy under every prior of the set; decided exactly."""
        return self.certificate.holds

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-compatible dict, with exact fractions as strings.

        Returns
        -------
        dict
            The dict that :meth:`from_dict` reads.
        """
        prior = [str(probability) for probability in self.prior]
        return {"certificate": self.certificate.to_dict(), "prior": prior, "epsilon": number_document(self.epsilon)}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> PriorSetAudit:
        """Return the result that :meth:`to_dict` serialized.

        Parameters
        ----------
        document
            Dict that :meth:`to_dict` returned.

        Returns
        -------
        PriorSetAudit
            The result that was serialized.

        Raises
        ------
        InvalidInput
            If the dict is incomplete, or if its prior is not a distribution.
        """
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
        least = f"the smallest epsilon for all priors is {self.epsilon:.6g}"
        return f"at the worst prior, {self.certificate.summary()}; {least}"

    def __repr__(self) -> str:
        return f"<PriorSetAudit: {self._title()}>"


def audit_priors(
    mechanism: Mechanism,
    priors: PriorSet | Sequence[Sequence[Any] | Mapping[Any, Any]],
    epsilon: EpsilonLike,
    side: str = "both",
) -> PriorSetAudit:
    """Decide exactly whether a mechanism obeys a prior policy under every prior of a set.

    Use it if the true prior is not known exactly: a mechanism that was designed for one prior may violate the policy
    under another one.

    Parameters
    ----------
    mechanism
        Mechanism to audit; its outputs must be few enough to enumerate.
    priors
        A :class:`PriorBox` or another :class:`PriorSet`, or a list of priors, which stands for all their mixtures.
    epsilon
        Privacy level ε of the prior policy.
    side
        ``"both"``, ``"upper"`` or ``"lower"``, as in :class:`Prior`.

    Returns
    -------
    PriorSetAudit
        The result under the worst prior of the set.

    Raises
    ------
    InvalidInput
        If the priors are not over the domain of the mechanism.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> mechanism = sf.design(sf.Prior(domain, ["0.9", "0.1"], 1))
    >>> result = sf.audit_priors(mechanism, [["0.9", "0.1"], ["0.95", "0.05"]], epsilon=1)
    >>> result.holds, result.prior
    (False, (Fraction(19, 20), Fraction(1, 20)))
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
            # Compare exact rationals, so that the worst prior is the worst however close another one is.
            ratio = (True, Fraction(0)) if at.right == 0 else (False, at.left / at.right)
            if greatest is None or ratio > greatest:
                greatest, sides, worst = ratio, (at.left, at.right), prior
    return PriorSetAudit(audit(mechanism, Prior(domain, worst, epsilon, side)), worst, excess(*sides, ZERO))


def _number(parameter: str, value: Any) -> Fraction:
    """Return an exact fraction, or raise InvalidInput."""
    try:
        return exact_fraction(value)
    except (TypeError, ValueError, ArithmeticError):
        raise InvalidInput("PriorBox", parameter, "be a number", value) from None
