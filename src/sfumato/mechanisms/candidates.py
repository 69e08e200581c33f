"""What a family is asked when mechanisms for a policy are compared, and what it offers."""

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

#: Tables are offered up to this many values: making one takes k³ steps, and its spec has k² integers.
LARGEST_TABLE = 512


@dataclass(frozen=True)
class Candidate:
    """How to build a mechanism, and what is known of it before it is built.

    Parameters
    ----------
    build
        Builds the mechanism.
    decoding
        What estimating from its reports costs for k values, in words.
    classical
        Whether it keeps ε-LDP between all values.
    seconds
        About how much processor time it takes to build, where that may matter.
    compared
        Whether ``plan`` compares it. A candidate with the law of another one is built only if its name is given.
    """

    build: Callable[[], Mechanism]
    decoding: str
    classical: bool = False
    seconds: float = 0.0
    compared: bool = True


@dataclass(frozen=True)
class CandidateRequest:
    """The policy for which candidates are wanted, and what else a family may need to know.

    Parameters
    ----------
    policy
        The policy that candidates have to obey.
    epsilon
        The greatest ε for which every ε-LDP mechanism obeys the policy.
    max_bits
        Maximum report size in bits, or None.
    utility
        The name of what the mechanism is wanted for.
    """

    policy: Policy
    epsilon: Epsilon
    max_bits: int | None = None
    utility: str = "estimation"

    @functools.cached_property
    def structure(self) -> Policy:
        """The simplest policy with the same promise: a matrix of one level, sensitive values or blocks is that."""
        return structure_of(self.policy)

    @property
    def max_outputs(self) -> int | None:
        """Maximum number of outputs of a mechanism that reports an index, or None."""
        return most_outputs(self.max_bits)


def most_outputs(max_bits: int | None) -> int | None:
    """Return how many outputs reports of at most this many bits can number; no table comes near 2^64."""
    return None if max_bits is None or max_bits >= 64 else 1 << max_bits
