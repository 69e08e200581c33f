"""Candidates: the mechanisms that a family offers for a policy, before they are built."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato._core import Epsilon
from sfumato.policy import Policy, structure_of

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

__all__ = ["LARGEST_TABLE", "Candidate", "CandidateRequest", "most_outputs"]

#: Maximum number of values for which tables are offered; building one takes k³ steps, and its spec has k² integers.
LARGEST_TABLE = 512


@dataclass(frozen=True)
class Candidate:
    """Function that builds a mechanism, with the facts that are known before it runs.

    Parameters
    ----------
    build
        Builds the mechanism.
    decoding
        Cost of estimating frequencies of k values from its reports, such as ``"k log k"``.
    classical
        Whether the mechanism keeps ε-LDP between all values.
    seconds
        Approximate processor time to build the mechanism; 0 if negligible.
    compared
        Whether ``plan`` compares the candidate. A candidate with the same law as another one is False here, and is
        built only if the caller names it.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import Candidate, RandomizedResponse
    >>> domain = Domain(["no", "yes"])
    >>> candidate = Candidate(lambda: RandomizedResponse(domain, 1), "k", classical=True)
    >>> candidate.build().outputs
    2
    """

    build: Callable[[], Mechanism]
    decoding: str
    classical: bool = False
    seconds: float = 0.0
    compared: bool = True


@dataclass(frozen=True)
class CandidateRequest:
    """Policy for which ``plan`` requests candidates, with the limits that a family may need.

    Parameters
    ----------
    policy
        The policy that candidates have to obey.
    epsilon
        The greatest ε for which every ε-LDP mechanism obeys the policy.
    max_bits
        Maximum report size in bits, or None.
    utility
        Name of the utility that the mechanism is designed for.

    Examples
    --------
    >>> import sfumato as sf
    >>> from sfumato.mechanisms import CandidateRequest
    >>> policy = sf.Uniform(sf.Domain(["no", "yes"]), 1)
    >>> CandidateRequest(policy, policy.epsilon, max_bits=8).max_outputs
    256
    """

    policy: Policy
    epsilon: Epsilon
    max_bits: int | None = None
    utility: str = "estimation"

    @functools.cached_property
    def structure(self) -> Policy:
        """The simplest policy with the same constraints, such as ``HighLow`` for a matrix of that structure."""
        return structure_of(self.policy)

    @property
    def max_outputs(self) -> int | None:
        """Maximum number of outputs of a mechanism that reports an index, or None."""
        return most_outputs(self.max_bits)


def most_outputs(max_bits: int | None) -> int | None:
    """Return the number of outputs that reports of at most this many bits can encode, or None for no limit."""
    return None if max_bits is None or max_bits >= 64 else 1 << max_bits
