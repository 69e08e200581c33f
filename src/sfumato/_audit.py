"""The exact audit: does this mechanism obey this policy?

Three things are read, in this order. The *layout*: the bits of different decisions must be disjoint, or they are
not independent. The *sampler*: the branching interpreter follows every branch of the code that runs, for all
values where that is feasible, else for three of them, against the law the mechanism states. The *law*: each
column, read or stated, is compared with the policy's cone in certified arithmetic.

What cannot be done exactly is refused with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.certificate import Certificate
from sfumato.errors import CannotDecide, InvalidInput
from sfumato.exact import information
from sfumato.interpreter import TooManyBranches, branches, sampler_law
from sfumato.mechanisms.base import LARGEST_MATRIX, Mechanism, mechanism_from_spec
from sfumato.mechanisms.unary import IndependentBits
from sfumato.policy.base import NOTHING_BINDS, Policy
from sfumato.policy.document import policy_from_dict
from sfumato.policy.prior import Prior
from sfumato.policy.secret import Secret

__all__ = ["audit", "audit_again"]

#: The interpreter gives up on one value after this many runs of the sampler…
_MOST_RUNS_PER_VALUE = 600_000
#: …and reads every value only where all of them together take no more than this.
_MOST_RUNS = 400_000
#: The information that reports carry is summed over a law of at most this many entries.
_MOST_TOLD = 20_000

#: An output, and the likelihood of each value for it (up to a common factor).
Column = tuple[bytes | None, list[Fraction]]


def audit(mechanism: Mechanism, policy: Policy) -> Certificate:
    """An exact certificate that the mechanism obeys the policy, or of where it does not."""
    if mechanism.domain != policy.domain:
        raise InvalidInput("audit", "the policy", "have the mechanism's domain", policy.domain)
    fault = next(filter(None, (layout.fault() for layout in mechanism.layouts())), None)
    reading = _read_sampler(mechanism) if fault is None else _Reading("the sampler was not read")
    fault = fault or reading.fault
    columns = _columns_read(reading) if reading.laws else _columns_stated(mechanism, policy)
    worst, output = NOTHING_BINDS, None
    for report, likelihoods in columns:
        found = policy.worst(likelihoods)
        if worst.names is None or found.rank > worst.rank:
            worst, output = found, report
    return Certificate(
        holds=fault is None and not worst.violated,
        worst=worst,
        output=None if output is None else output.hex(),
        fault=fault,
        evidence=reading.evidence,
        mechanism=mechanism.spec,
        policy=policy.to_dict(),
        information=_information(reading, policy) if isinstance(policy, Prior) else None,
        information_bound=policy.information_bound() if isinstance(policy, Prior) else None,
    )


def audit_again(certificate: Certificate) -> Certificate:
    """Repeat the audit from the certificate's own content, and refuse one that says something else."""
    repeated = audit(mechanism_from_spec(certificate.mechanism), policy_from_dict(certificate.policy))
    if repeated != certificate or not _agree(certificate, repeated):
        raise InvalidInput("a certificate", "its findings", f"be those of the audit: {repeated}", str(certificate))
    return repeated


def _agree(certificate: Certificate, repeated: Certificate) -> bool:
    """Whether the two say the same of the information told, where the certificate says anything."""
    return certificate.information_bound is None or all(
        stated == found or (stated is not None and found is not None and math.isclose(stated, found, rel_tol=1e-9))
        for stated, found in (
            (certificate.information, repeated.information),
            (certificate.information_bound, repeated.information_bound),
        )
    )


def _information(reading: _Reading, policy: Prior) -> float | None:
    """I(X;Y) at the prior, from the law that was read; None where it was not, or is long."""
    if not reading.laws or sum(map(len, reading.laws)) > _MOST_TOLD:
        return None
    averages: dict[bytes, Fraction] = {}
    for p, law in zip(policy.prior, reading.laws, strict=True):
        for report, likelihood in law.items():
            averages[report] = averages.get(report, Fraction(0)) + p * likelihood
    return information(
        (p * likelihood, likelihood / averages[report])
        for p, law in zip(policy.prior, reading.laws, strict=True)
        if p
        for report, likelihood in law.items()
    )


# -- reading the sampler ---------------------------------------------------------------------------------


@dataclass
class _Reading:
    """What the interpreter found: the law of every value, or that some values follow the stated law."""

    evidence: str
    fault: str | None = None
    laws: list[dict[bytes, Fraction]] = field(default_factory=list)


def _read_sampler(mechanism: Mechanism) -> _Reading:
    size = len(mechanism.domain)
    try:
        if mechanism.outputs > _MOST_RUNS_PER_VALUE:  # one run gives one report
            raise TooManyBranches(f"{mechanism.name} has more than {_MOST_RUNS_PER_VALUE} outputs")
        first, runs = sampler_law(mechanism, 0, _MOST_RUNS_PER_VALUE)
    except TooManyBranches:
        if isinstance(mechanism, IndependentBits):
            return _read_bits(mechanism)
        return _Reading("stated law; the sampler has too many branches at this size to be read")
    if runs * size <= _MOST_RUNS:
        laws = [first, *(sampler_law(mechanism, x)[0] for x in range(1, size))]
        fault = next(filter(None, (_constant_length_fault(law) for law in laws)), None)
        return _Reading(f"law read from the sampler, every branch of all {size} values", fault, laws)
    spots = sorted({0, size // 2, size - 1, *mechanism.kinds()})
    for x in spots:
        law = first if x == 0 else sampler_law(mechanism, x, _MOST_RUNS_PER_VALUE)[0]
        fault = _constant_length_fault(law) or _stated_law_fault(mechanism, x, law)
        if fault:
            return _Reading("sampler read", fault)
    named = ", ".join(repr(mechanism.domain.label(x)) for x in spots)
    return _Reading(f"stated law; the sampler read on every branch of {named}, and equal to it there")


def _read_bits(mechanism: IndependentBits) -> _Reading:
    size = len(mechanism.domain)
    spots = sorted({0, size // 2, size - 1, *mechanism.kinds()})
    for x in spots:
        for position in range(size):
            probability = sum(
                (
                    Fraction(weight, total)
                    for bit, weight, total in branches(lambda draws, x=x, i=position: mechanism.bit(x, i, draws))  # type: ignore[misc]
                    if bit
                ),
                Fraction(0),
            )
            if probability != mechanism.bit_probability(x, position):
                return _Reading(
                    "sampler read",
                    f"the sampler sets bit {position} for {mechanism.domain.label(x)!r} with probability "
                    f"{float(probability):.6g}, not {float(mechanism.bit_probability(x, position)):.6g} as stated",
                )
    named = ", ".join(repr(mechanism.domain.label(x)) for x in spots)
    return _Reading(f"stated law; the sampler read bit by bit for {named}, and equal to it there")


def _constant_length_fault(law: dict[bytes, Fraction]) -> str | None:
    lengths = {len(report) for report in law}
    return None if len(lengths) == 1 else f"serialised reports have different lengths: {sorted(lengths)} bytes"


def _stated_law_fault(mechanism: Mechanism, x: int, law: dict[bytes, Fraction]) -> str | None:
    stated_total = 0
    for report in mechanism.reports():
        stated = mechanism.probability(report, x)
        read = law.get(mechanism.serialise(report), Fraction(0))
        stated_total += read != 0
        if read != stated:
            return (
                f"the sampler gives report {report} for {mechanism.domain.label(x)!r} with probability "
                f"{float(read):.12g}, not {float(stated):.12g} as stated"
            )
    return None if stated_total == len(law) else "the sampler gives reports that its stated law does not know"


# -- the columns to compare with the cone ------------------------------------------------------------------


def _columns_read(reading: _Reading) -> Iterator[Column]:
    zero = Fraction(0)
    for report in sorted(set().union(*reading.laws)):
        yield report, [law.get(report, zero) for law in reading.laws]


def _columns_stated(mechanism: Mechanism, policy: Policy) -> Iterator[Column]:
    """The columns of the stated law that can be the worst for this policy."""
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else None
    columns = mechanism.worst_columns(policy if pairwise is None else pairwise)
    if columns is None:
        size = len(mechanism.domain)
        if size * mechanism.outputs > LARGEST_MATRIX:
            raise CannotDecide(
                f"{mechanism.name} over {size} values has too many outputs to go through, and no shorter statement of "
                f"its law is known for a {policy.kind} policy"
            )
        columns = ((y, [mechanism.probability(y, x) for x in range(size)]) for y in mechanism.reports())
    for report, likelihoods in columns:
        yield mechanism.serialise(report), likelihoods
