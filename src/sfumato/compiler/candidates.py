"""Which mechanisms suit a policy, by their short names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sfumato._core import INFINITE, ZERO, Epsilon, checked_type
from sfumato.auditing import audit, required_coverage
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism, SfumatoError
from sfumato.mechanisms import Candidate, CandidateRequest, Family, Mechanism, all_families
from sfumato.policy import PairwisePolicy, Policy, Prior, Secret

__all__ = ["Candidates", "candidates", "safe_epsilon"]


#: The short name of the mechanism that a search finds; no candidate may have it.
_OF_SEARCH = "optimal"


@dataclass(frozen=True)
class Candidates:
    """The mechanisms that families offer for a policy, by their short names in the order of comparison.

    Parameters
    ----------
    by_name
        The candidates. Those of registered families are audited when they are built.
    registered
        Short names of the candidates of registered families.
    skipped
        What is not compared, and why. ``comparing`` adds to it.
    """

    by_name: dict[str, Candidate] = field(default_factory=dict)
    registered: set[str] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)

    @contextmanager
    def comparing(self, name: str) -> Iterator[None]:
        """Skip the candidate of this name, and say why, if the block cannot build or measure it.

        Errors in the code of a registered family do not stop the comparison of all others.
        """
        try:
            yield
        except Exception as error:
            is_registered = name in self.registered
            if isinstance(error, NoMechanism) and not is_registered:
                return  # there is none for this policy, or none with reports of so few bits
            if not is_registered and not isinstance(error, NoAnswer):
                raise
            self.skipped.append(f"{name}, because {_reason(error)}")


def candidates(policy: Policy, max_bits: int | None = None, utility: str = "estimation") -> Candidates:
    """Return every mechanism that a family offers for the policy.

    Classical mechanisms are offered at the safe epsilon, others for the structure of the policy.
    """
    request = CandidateRequest(policy, safe_epsilon(policy), max_bits, utility)
    offered = Candidates()
    for family in all_families():
        if family.candidates is None:
            continue
        if family.is_of_library:
            for name, candidate in family.candidates(request):
                if name in offered.by_name:
                    must = "be offered by one family"
                    raise InvalidInput("the registry", "the short name of a candidate", must, name)
                offered.by_name[name] = candidate
        else:
            _add_registered(family, request, offered)
    return offered


def _add_registered(family: Family, request: CandidateRequest, offered: Candidates) -> None:
    """Add what a registered family offers; skip anything that is not a candidate or whose name is taken."""
    assert family.candidates is not None
    owner = ", ".join(kind.name for kind in family.mechanisms)
    try:
        for name, candidate in family.candidates(request):
            checked_type("register", "the short name of a candidate", name, str)
            checked_type("register", f"the candidate {name}", candidate, Candidate)
            if name in offered.by_name or name == _OF_SEARCH:
                offered.skipped.append(f"{name} of {owner}, because the short name is taken")
                continue
            build = functools.partial(_build_audited, candidate, request.policy)
            offered.by_name[name] = replace(candidate, build=build)
            offered.registered.add(name)
    except Exception as error:
        offered.skipped.append(f"candidates of {owner}, because {_reason(error)}")


def _build_audited(candidate: Candidate, policy: Policy) -> Mechanism:
    """Build the candidate of a registered family; raise unless an audit shows that it obeys the policy."""
    mechanism = candidate.build()
    audit(mechanism, policy).raise_if_violated(coverage=required_coverage(mechanism))
    return mechanism


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, SfumatoError) else f"{type(error).__name__}: {error}"


def safe_epsilon(policy: Policy) -> Epsilon:
    """Return the greatest ε for which every ε-LDP mechanism obeys the policy.

    For a prior it is rounded down to nine digits or more. For a class of policies that is not known here it may be
    smaller than that.
    """
    if isinstance(policy, PairwisePolicy):
        return policy.least[0]
    if isinstance(policy, Prior):
        return policy.implying_epsilon
    if isinstance(policy, Secret):
        # A likelihood that depends on the secret alone reaches ε between two secrets, whatever the distribution.
        return policy.epsilon
    # Likelihoods within a factor e^ε of each other keep left·T ≤ e^ε·right·T if the coefficients on the left add up to
    # no more than those on the right.
    rules = list(policy.inequalities())
    if all(sum(rule.left.values()) <= sum(rule.right.values()) for rule in rules):
        return min((rule.epsilon for rule in rules), default=INFINITE)
    return ZERO
