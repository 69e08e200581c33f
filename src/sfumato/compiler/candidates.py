"""The candidate mechanisms for a policy, by their short names."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sfumato._core import INFINITE, ZERO, Epsilon, checked_type
from sfumato.auditing import audit, required_coverage
from sfumato.compiler.approximations import in_words, inner_approximations
from sfumato.compiler.report_length import MaxBits, ReportLength
from sfumato.compiler.solvers.deadline import NEVER, Deadline
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism, SfumatoError
from sfumato.mechanisms import Candidate, CandidateRequest, Family, Mechanism, all_families
from sfumato.policy import Blocks, PairwisePolicy, Policy, Prior, Secret
from sfumato.questions import Question

__all__ = ["Candidates", "candidates", "safe_epsilon", "short_reason"]


#: Short name reserved for the result of a search; candidates must not use it.
_OF_SEARCH = "optimal"


@dataclass(frozen=True)
class Candidates:
    """The mechanisms that families offer for a policy, by short name and in the order of comparison.

    Parameters
    ----------
    by_name
        The candidates. Candidates of registered families are audited when they are built.
    registered
        Short names of the candidates of registered families.
    skipped
        The candidates that are not compared, with the reasons. ``comparing`` appends to it.
    stronger
        The policy in words for which a candidate is made, if it is not the policy itself but one that implies it.
    """

    by_name: dict[str, Candidate] = field(default_factory=dict)
    registered: set[str] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)
    stronger: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def comparing(self, name: str) -> Iterator[None]:
        """Record this candidate as skipped, with the reason, if the block cannot build or measure it.

        Errors in the code of a registered family do not stop the comparison of the other candidates.
        """
        try:
            yield
        except Exception as error:
            is_registered = name in self.registered
            if isinstance(error, NoMechanism) and not is_registered:
                return  # the family has no mechanism for this policy or report length
            if not is_registered and not isinstance(error, NoAnswer):
                raise
            self.skipped.append(f"{name}, because {short_reason(error)}")


def candidates(
    policy: Policy,
    max_bits: MaxBits = None,
    utility: str = "estimation",
    deadline: Deadline = NEVER,
    question: Question | None = None,
) -> Candidates:
    """Return every mechanism that a family offers for the policy.

    Families offer classical mechanisms at the safe epsilon and other mechanisms for the structure of the policy, or of
    a policy that implies it. Policies that imply it are sought until the deadline.
    """
    length = ReportLength(max_bits, len(policy.domain))
    request = CandidateRequest(policy, safe_epsilon(policy), length.limit, utility, length.short, question)
    offered = Candidates()
    for family in all_families():
        if family.candidates is None:
            continue
        if family.is_of_library:
            for name, candidate in family.candidates(request):
                if name in offered.by_name:
                    must = "be offered by only one family"
                    raise InvalidInput("the registry", "the short name of a candidate", must, name)
                offered.by_name[name] = candidate
        else:
            _add_registered(family, request, offered)
    for stronger in inner_approximations(policy, deadline):
        _add_for_stronger(replace(request, policy=stronger, epsilon=safe_epsilon(stronger)), offered)
    return offered


def _add_for_stronger(request: CandidateRequest, offered: Candidates) -> None:
    """Add the candidates for a policy that implies the requested one; classical ones are among the others already."""
    stronger = request.policy
    where = f"-in-{len(stronger.epsilons)}-blocks" if isinstance(stronger, Blocks) else ""
    for family in all_families():
        if family.candidates is None or not family.is_of_library:
            continue
        for offered_name, candidate in family.candidates(request):
            name = offered_name + where
            if not candidate.classical and name not in offered.by_name:
                offered.by_name[name] = candidate
                offered.stronger[name] = in_words(stronger)


def _add_registered(family: Family, request: CandidateRequest, offered: Candidates) -> None:
    """Add the candidates of a registered family; skip invalid candidates and short names that are taken."""
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
        offered.skipped.append(f"candidates of {owner}, because {short_reason(error)}")


def _build_audited(candidate: Candidate, policy: Policy) -> Mechanism:
    """Build the candidate of a registered family; raise unless an audit shows that it obeys the policy."""
    mechanism = candidate.build()
    audit(mechanism, policy).raise_if_violated(coverage=required_coverage(mechanism))
    return mechanism


def short_reason(error: Exception) -> str:
    """Return the first sentence of an error's message, without the advice that follows it and without a full stop.

    The result continues a sentence after "because". An error from outside this package is named by its type.

    >>> short_reason(NoAnswer("the table has 10^9 entries. Use a smaller domain."))
    'the table has 10^9 entries'
    >>> short_reason(ZeroDivisionError("division by zero"))
    'its code raised ZeroDivisionError: division by zero'
    """
    if not isinstance(error, SfumatoError):
        return f"its code raised {type(error).__name__}: {error}"
    return re.split(r"\.(?:\s+(?=[A-Z])|$)", str(error).strip(), maxsplit=1)[0]


def safe_epsilon(policy: Policy) -> Epsilon:
    """Return the greatest ε for which every ε-LDP mechanism obeys the policy.

    For a prior policy the result is rounded down, with at least nine correct digits. For a policy class from outside
    this package it may be smaller than the greatest ε.
    """
    if isinstance(policy, PairwisePolicy):
        return policy.least[0]
    if isinstance(policy, Prior):
        return policy.implying_epsilon
    if isinstance(policy, Secret):
        # A likelihood that depends only on the secret reaches ε between two secrets under any distribution.
        return policy.epsilon
    # Likelihoods within a factor e^ε of each other satisfy left·T ≤ e^ε·right·T if the left coefficients sum to at most
    # the sum of the right coefficients.
    rules = list(policy.inequalities())
    if all(sum(rule.left.values()) <= sum(rule.right.values()) for rule in rules):
        return min((rule.epsilon for rule in rules), default=INFINITE)
    return ZERO
