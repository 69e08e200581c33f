"""The exact audit: does this mechanism obey this policy?

Three things are read, in this order. The *layout*: the bits of different decisions must be disjoint, or they are
not independent. The *sampler*: the branching interpreter follows every branch of the code that runs, for all
values where that is feasible, else for three of them, against the law the mechanism states; where even one value has
too many branches, those of the same class over fewer values. The certificate says which. The *law*: each column, read
or stated, is compared with the policy's cone in certified arithmetic.

What cannot be done exactly is refused with the reason.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato._core import checked_type, information
from sfumato.auditing.certificate import Certificate, Coverage
from sfumato.auditing.interpreter import TooManyBranches, branches, sampler_law
from sfumato.errors import InvalidInput, LimitExceeded, Undecided
from sfumato.mechanisms import (
    LARGEST_MATRIX,
    Finished,
    IndependentBits,
    Mechanism,
    has_independent_steps,
    independent_bits_of,
    is_library_format,
    is_library_mechanism,
    mechanism_from_spec,
    surrogate_of,
)
from sfumato.policy import UNCONSTRAINED, Policy, Prior, Secret, policy_from_dict

__all__ = ["audit", "verify"]

#: The interpreter gives up on one value after this many runs of the sampler…
_MOST_RUNS_PER_VALUE = 600_000
#: …and reads every value only where all of them together take no more than this.
_MOST_RUNS = 400_000
#: The information that reports carry is summed over a law of at most this many entries.
_MOST_OUTPUTS = 20_000

#: How evidence begins where the law was not read from the sampler, and what it says of one with too many branches.
_STATED, _TOO_MANY = "stated law;", " the sampler has too many branches at this size to be read"

#: An output, and the likelihood of each value for it (up to a common factor).
Column = tuple[bytes | None, list[Fraction]]
#: The probability of each serialised report of one value.
OutputDistribution = dict[bytes, Fraction]


def audit(mechanism: Mechanism, policy: Policy) -> Certificate:
    """An exact certificate that the mechanism obeys the policy, or of where it does not."""
    checked_type("audit", "the mechanism", mechanism, Mechanism)
    checked_type("audit", "the policy", policy, Policy)
    if mechanism.domain != policy.domain:
        raise InvalidInput("audit", "the policy", "have the mechanism's domain", policy.domain)
    fault = next(filter(None, (layout.fault() for layout in mechanism.layouts())), _fault_of_code(mechanism))
    reading = _read_sampler(mechanism) if fault is None else _Reading("the sampler was not read", "none")
    fault = fault or reading.fault or _fault_of_format(mechanism)
    if fault is None and reading.coverage == "none" and required_coverage(mechanism) != "none":
        raise Undecided(
            f"the sampler of {mechanism.name} cannot be read ({reading.evidence}), and its class is not one of the "
            "library's, whose samplers are tested: bound its draws, or define audit_surrogate()"
        )
    columns = _columns_read(reading) if reading.laws else stated_columns(mechanism, policy)
    worst, output = UNCONSTRAINED, None
    for report, likelihoods in columns:
        tightest = policy.worst(likelihoods)
        if worst.names is None or tightest.rank > worst.rank:
            worst, output = tightest, report
    return Certificate(
        holds=fault is None and not worst.violated,
        worst=worst,
        output=None if output is None else output.hex(),
        fault=fault,
        evidence=reading.evidence,
        coverage=reading.coverage,
        mechanism=mechanism.spec,
        policy=policy.to_dict(),
        information=_information(reading, policy) if isinstance(policy, Prior) else None,
        information_bound=policy.information_bound() if isinstance(policy, Prior) else None,
    )


def required_coverage(mechanism: Mechanism) -> Coverage:
    """Return how much of a sampler must be read before the mechanism is relied on.

    Tests compare the samplers of the library with their laws. Those of other classes only an audit compares.
    """
    return "none" if is_library_mechanism(mechanism) else "surrogate"


def verify(certificate: Certificate) -> Certificate:
    """Repeat the audit from the certificate's own content, and refuse one that says something else.

    Everything that it states is compared, the evidence and the information too. Certificates from before ``read`` was
    stated may use the words of that time for what this audit finds; earlier ones do not state the information.
    """
    checked_type("verify", "the certificate", certificate, Certificate, " (Certificate.from_json reads a text)")
    mechanism = mechanism_from_spec(certificate.mechanism)
    repeated = audit(mechanism, policy_from_dict(certificate.policy))
    expected = repeated
    if certificate.coverage is None:
        known = certificate.evidence in _evidence_before_read(mechanism, repeated.evidence)
        evidence = certificate.evidence if known else repeated.evidence
        expected = dataclasses.replace(repeated, coverage=None, evidence=evidence)
    if expected != certificate or not _agree(certificate, repeated):
        raise InvalidInput("a certificate", "its findings", f"be those of the audit: {repeated}", str(certificate))
    return repeated


def _agree(certificate: Certificate, repeated: Certificate) -> bool:
    """Return whether the two state the same information, or the certificate, which may be an early one, none at all."""
    stated = (certificate.information, certificate.information_bound)
    return stated == (None, None) or all(
        one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9))
        for one, other in zip(stated, (repeated.information, repeated.information_bound), strict=True)
    )


def _evidence_before_read(mechanism: Mechanism, evidence: str) -> set[str]:
    """Return what certificates without ``read`` may say where this audit has this evidence.

    They read the same values, before mechanisms named ``kinds`` only three, and no smaller sampler of the class.
    """
    size = len(mechanism.domain)
    first_three = sorted({0, size // 2, size - 1})
    allowed = {evidence}
    if evidence.startswith(f"{_STATED}{_TOO_MANY}"):
        allowed.add(f"{_STATED}{_TOO_MANY}")
    for spots in (first_three, _spots(mechanism)):
        if evidence == _equal_there(mechanism, _spots(mechanism)):
            allowed.add(_equal_there(mechanism, spots))
        if evidence == _equal_bits(mechanism, _spots(mechanism)):
            allowed.add(f"{_STATED} the sampler read bit by bit for {_named(mechanism, spots)}, and equal to it there")
    return allowed


def _information(reading: _Reading, policy: Prior) -> float | None:
    """I(X;Y) at the prior, from the law that was read; None where it was not, or is long."""
    if not reading.laws or sum(map(len, reading.laws)) > _MOST_OUTPUTS:
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


def _fault_of_code(mechanism: Mechanism) -> str | None:
    """The steps are what is read, so they must be what runs."""
    if getattr(mechanism.sample, "__func__", None) is Mechanism.sample:
        return None
    return "the sampler that runs is a sample() of its own, not the steps that an audit reads"


def _fault_of_format(mechanism: Mechanism) -> str | None:
    """The serialised reports are what is compared, so they must show all that a report says."""
    if is_library_format(mechanism.report_format):
        return None
    return "its report format is not one of the library's: reports may hold more than the audit compares"


# -- reading the sampler ---------------------------------------------------------------------------------


@dataclass
class _Reading:
    """What the interpreter found: the law of every value, or that some values follow the stated law."""

    evidence: str
    coverage: Coverage
    fault: str | None = None
    laws: list[OutputDistribution] = field(default_factory=list)


def _read_sampler(mechanism: Mechanism) -> _Reading:
    size, done = len(mechanism.domain), list[int]()
    try:
        if mechanism.outputs > _MOST_RUNS_PER_VALUE:  # one run gives one report
            raise TooManyBranches(f"{mechanism.name} has more than {_MOST_RUNS_PER_VALUE} outputs")
        first, runs = sampler_law(mechanism, 0, _MOST_RUNS_PER_VALUE)
        if runs * size <= _MOST_RUNS and (laws := _laws_of_all(mechanism, [first], runs)):
            fault = next(filter(None, map(_constant_length_fault, laws)), None)
            return _Reading(f"law read from the sampler, every branch of all {size} values", "all", fault, laws)
        for x in _spots(mechanism):
            law = first if x == 0 else sampler_law(mechanism, x, _MOST_RUNS_PER_VALUE)[0]
            fault = _fault_of_law(mechanism, x, law)
            if fault:
                return _Reading("sampler read", "some", fault)
            done.append(x)
    except TooManyBranches:
        bits = independent_bits_of(mechanism)
        return _read_smaller(mechanism, done) if bits is None else _read_bits(bits)
    return _Reading(_equal_there(mechanism, done), "some")


def _equal_there(mechanism: Mechanism, spots: Iterable[int]) -> str:
    return f"{_STATED} the sampler read on every branch of {_named(mechanism, spots)}, and equal to it there"


def _equal_bits(mechanism: Mechanism, spots: Iterable[int]) -> str:
    named = _named(mechanism, spots)
    return f"{_STATED} the sampler read bit by bit for {named}, where no bit before is set, and equal to it there"


def _laws_of_all(
    mechanism: Mechanism, known: Iterable[OutputDistribution] = (), runs: int = 0
) -> list[OutputDistribution] | None:
    """The laws of all values, those ``known`` first; None where they take too many runs together."""
    laws = list(known)
    for x in range(len(laws), len(mechanism.domain)):
        try:
            law, more = sampler_law(mechanism, x, _MOST_RUNS - runs)
        except TooManyBranches:
            return None
        laws.append(law)
        runs += more
    return laws


def _spots(mechanism: Mechanism) -> list[int]:
    """The values to read where there are too many for all, the first among them."""
    size = len(mechanism.domain)
    return sorted({0, size // 2, size - 1, *mechanism.representatives()})


def _named(mechanism: Mechanism, spots: Iterable[int]) -> str:
    return ", ".join(repr(mechanism.domain.label(x)) for x in spots)


def _read_smaller(mechanism: Mechanism, done: Sequence[int]) -> _Reading:
    """Where all but the values ``done`` have too many branches: what the same class does over fewer values."""
    evidence = f"{_equal_there(mechanism, done)}; for others" if done else _STATED
    evidence += _TOO_MANY
    try:
        audit_surrogate = surrogate_of(mechanism)
    except (InvalidInput, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # A subclass that is made from something else.
        audit_surrogate = None
    laws = None if audit_surrogate is None else _laws_of_all(audit_surrogate)
    if audit_surrogate is None or laws is None:
        return _Reading(evidence, "some" if done else "none")
    fault = next(filter(None, (_fault_of_law(audit_surrogate, x, law) for x, law in enumerate(laws))), None)
    if fault:
        return _Reading("sampler read", "surrogate", f"over {len(laws)} values {fault}")
    evidence += f"; one of its class over {len(laws)} values was, and follows the law that it states"
    return _Reading(evidence, "some" if done else "surrogate")


def _read_bits(mechanism: IndependentBits) -> _Reading:
    spots = _spots(mechanism)
    fault = next(filter(None, (_fault_of_bits(mechanism, x) for x in spots)), None)
    if fault:
        return _Reading("sampler read", "some", fault)
    if not has_independent_steps(mechanism):
        return _Reading(f"{_STATED} overridden steps may use the bits before, and were not all read", "none")
    return _Reading(_equal_bits(mechanism, spots), "some")


def _fault_of_bits(mechanism: IndependentBits, x: int) -> str | None:
    """Follow the steps of one value along the path where no bit is set: each decides its own bit, as is stated."""
    size, label = len(mechanism.domain), mechanism.domain.label(x)
    report = 0
    if mechanism.start(x) != (x, 0, report):
        return f"the sampler does not begin with the first bit for {label!r}"
    for position in range(size):
        unset, with_bit = (
            (x, position + 1, bits) if position + 1 < size else Finished(bits)
            for bits in (report, report | 1 << position)
        )
        probability = Fraction(0)
        for following, weight, total in branches(functools.partial(mechanism.step, (x, position, report))):
            if following == with_bit:
                probability += Fraction(weight, total)
            elif following != unset:
                return f"the sampler decides more than bit {position} for {label!r} in its step"
        stated = mechanism.bit_probability(x, position)
        if probability != stated:
            return (
                f"the sampler sets bit {position} for {label!r} with probability {float(probability):.6g}, "
                f"not {float(stated):.6g} as stated"
            )
        report |= (stated == 1) << position
    return None


def _fault_of_law(mechanism: Mechanism, x: int, law: OutputDistribution) -> str | None:
    return _constant_length_fault(law) or _stated_law_fault(mechanism, x, law)


def _constant_length_fault(law: OutputDistribution) -> str | None:
    lengths = {len(report) for report in law}
    return None if len(lengths) == 1 else f"serialised reports have different lengths: {sorted(lengths)} bytes"


def _stated_law_fault(mechanism: Mechanism, x: int, law: OutputDistribution) -> str | None:
    stated_total = 0
    for report in mechanism.reports():
        stated = mechanism.probability(report, x)
        read = law.get(mechanism.report_format.encode(report), Fraction(0))
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


def stated_columns(mechanism: Mechanism, policy: Policy) -> Iterator[Column]:
    """The columns of the stated law that can be the worst for this policy."""
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else None
    columns = mechanism.worst_columns(policy if pairwise is None else pairwise)
    if columns is None:
        size = len(mechanism.domain)
        if size * mechanism.outputs > LARGEST_MATRIX:
            raise LimitExceeded(
                f"{mechanism.name} over {size} values has too many outputs to go through, and no shorter statement of "
                f"its law is known for a {policy.kind} policy"
            )
        columns = ((y, [mechanism.probability(y, x) for x in range(size)]) for y in mechanism.reports())
    for report, likelihoods in columns:
        yield mechanism.report_format.encode(report), likelihoods
