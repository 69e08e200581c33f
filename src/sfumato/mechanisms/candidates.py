"""Candidates: the mechanisms that a family offers for a policy, before they are built."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato._core import Epsilon, checked_integer
from sfumato.policy import Policy, structure_of
from sfumato.questions import Question

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

__all__ = ["LARGEST_TABLE", "Candidate", "CandidateRequest", "most_outputs", "short_bits"]

#: Maximum number of values for which tables are offered; building one takes k³ steps, and its spec has k² integers.
LARGEST_TABLE = 512
#: Bits that a short report may have beyond those that number the values.
_EXTRA_BITS = 8


@dataclass(frozen=True)
class Candidate:
    """Mechanism that :func:`plan` and :func:`design` may choose, not built yet.

    The function passed to :func:`register` as ``candidates`` yields instances of this class.

    Parameters
    ----------
    build
        A function without arguments that returns the mechanism.
    decoding
        Cost of estimating the frequencies of k values from the reports, such as ``"k log k"``. Plans display it.
    classical
        Whether the mechanism satisfies classical ε-LDP: every report has probabilities within a factor e^ε for all
        pairs of values.
    seconds
        Approximate processor time to build the mechanism, in seconds; 0 if negligible.
    compared
        Whether :func:`plan` compares the candidate with the others. If False, the mechanism is built only if the
        caller requests it with ``mechanism="name"``, as for a duplicate of another candidate.

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
    """Request for candidate mechanisms, with the policy that they must obey.

    :func:`plan` and :func:`design` pass a request to the function that :func:`register` received as ``candidates``.

    Parameters
    ----------
    policy
        The policy that candidates must obey.
    epsilon
        The greatest ε for which every mechanism of classical ε-local differential privacy obeys the policy.
    max_bits
        Maximum report size in bits, or None for no limit.
    utility
        Name of the criterion by which mechanisms are compared, such as ``"estimation"`` or ``"mutual-information"``.
    short_bits
        Report size in bits up to which a mechanism is preferred to one with longer reports and at most 5% less error;
        None if there is no such preference. A family that can adjust the size of its reports to a limit should use
        ``preferred_bits``. It may offer longer reports under another short name.
    question
        The question that is to be answered, fitted to the domain of the policy; None for all frequencies. Mechanisms
        that serve some questions only are offered for these.

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
    short_bits: int | None = None
    question: Question | None = None

    @functools.cached_property
    def structure(self) -> Policy:
        """Simplest of ``Uniform``, ``HighLow`` and ``Blocks`` that is equivalent to ``policy``; else ``policy``."""
        return structure_of(self.policy)

    @property
    def preferred_bits(self) -> int | None:
        """Report size in bits that is required (``max_bits``) or preferred (``short_bits``), or None for no limit."""
        return self.max_bits if self.short_bits is None else self.short_bits

    def is_short(self, bits: int) -> bool:
        """Return whether reports of this size are within ``preferred_bits``, or short if that is None.

        Parameters
        ----------
        bits
            Report size in bits.

        Returns
        -------
        bool
            True if ``bits`` is at most ``preferred_bits``, or at most ⌈log2 k⌉ + 8 for k values if that is None.
        """
        most = self.preferred_bits
        return bits <= (short_bits(len(self.policy.domain)) if most is None else most)

    @property
    def max_outputs(self) -> int | None:
        """Maximum number of distinct reports, 2^max_bits, or None if ``max_bits`` is None or at least 64."""
        return most_outputs(self.max_bits)


def short_bits(values: int) -> int:
    """Return the number of bits up to which reports about this many values count as short."""
    return (values - 1).bit_length() + _EXTRA_BITS


def most_outputs(max_bits: int | None) -> int | None:
    """Return the number of outputs that reports of at most this many bits can encode, or None for no limit."""
    if max_bits is None:
        return None
    bits = checked_integer("a mechanism", "max_bits", max_bits, 1, 2**32)
    return None if bits >= 64 else 1 << bits
