"""The exact audit: decide whether a mechanism obeys a policy.

The audit checks three things in this order:

1. The *layout*: different decisions must use disjoint bits, because otherwise they are not independent.
2. The *sampler*: the branching interpreter follows every branch of the code that runs, and compares the result with the
   law that the mechanism states. It reads all values if that is feasible, otherwise a few of them. If even one value
   has too many branches, it reads an instance of the same class over fewer values. The certificate states which.
3. The *law*: each column, read or stated, is compared with the cone of the policy in certified arithmetic.

The audit raises an error with the reason if it cannot decide exactly.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato._core import checked_type, different_keys, information
from sfumato.auditing.certificate import Certificate, Coverage
from sfumato.auditing.interpreter import TooManyBranches, branches, sampler_law
from sfumato.errors import Description, InvalidInput, Undecided
from sfumato.mechanisms import (
    Finished,
    IndependentBits,
    Mechanism,
    candidate_columns,
    further_promises,
    has_independent_steps,
    independent_bits_of,
    is_library_format,
    is_library_mechanism,
    mechanism_from_spec,
    surrogate_of,
)
from sfumato.policy import UNCONSTRAINED, Policy, Prior, Secret, TightestConstraint, policy_from_dict

__all__ = ["audit", "verify"]

#: Maximum number of runs of the sampler for one value; bounds the time of an audit.
_MOST_RUNS_PER_VALUE = 600_000
#: Maximum number of runs for all values together; above it the audit reads only some values.
_MOST_RUNS = 400_000
#: Maximum number of entries of a law whose mutual information is computed.
_MOST_OUTPUTS = 20_000

#: Beginning of the evidence if the law is the stated one. Stored in certificates: do not change.
_STATED = "stated law;"

#: A serialized report, and its likelihood under each value (up to a common factor).
Column = tuple[bytes | None, list[Fraction]]
#: The probability of each serialized report of one value.
OutputDistribution = dict[bytes, Fraction]


def audit(mechanism: Mechanism, policy: Policy) -> Certificate:
    """Prove that a mechanism obeys a policy, or find a violation.

    Parameters
    ----------
    mechanism
        Mechanism to audit.
    policy
        Policy over the domain of the mechanism.

    Returns
    -------
    Certificate
        An exact statement; ``holds`` is True if the mechanism obeys the policy.

    Raises
    ------
    InvalidInput
        If the mechanism and the policy have different domains.
    Undecided
        If the sampler of a third-party mechanism has too many branches to be read.
    LimitExceeded
        If the mechanism has too many outputs to compare with this policy.

    Notes
    -----
    The audit runs the sampler on every possible sequence of its random draws, and adds up the exact probability of each
    report. It compares these probabilities with the policy in exact arithmetic. If the sampler has too many branches,
    the audit reads only a part of it; ``Certificate.coverage`` states how much was read.

    The certificate of a memoized mechanism speaks of one report. The audit also checks the permanent answers
    against the lifetime policy of the mechanism, and finds a fault if they break it. ``audit(mechanism.permanent,
    lifetime)`` returns the certificate of all reports about one unchanged value.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> mechanism = sf.mechanisms.RandomizedResponse(domain, epsilon=1)
    >>> sf.audit(mechanism, sf.Uniform(domain, 1)).holds
    True
    >>> sf.audit(mechanism, sf.Uniform(domain, "0.5")).holds
    False
    """
    checked_type("audit", "the mechanism", mechanism, Mechanism)
    checked_type("audit", "the policy", policy, Policy)
    if mechanism.domain != policy.domain:
        raise InvalidInput("audit", "the policy", "have the mechanism's domain", policy.domain)
    fault = next(filter(None, (layout.fault() for layout in mechanism.layouts())), _fault_of_code(mechanism))
    reading = _read_sampler(mechanism) if fault is None else _Reading("the sampler was not read", "none")
    fault = fault or reading.fault or _fault_of_format(mechanism)
    if fault is None and reading.coverage == "none" and required_coverage(mechanism) != "none":
        raise Undecided(
            f"cannot audit {mechanism.name}: its sampler cannot be read ({reading.evidence}), and it is not part of "
            "the library, whose samplers are tested. Limit the number of draws in the sampler, or define "
            "audit_surrogate() in its class, which returns a smaller instance to audit."
        )
    promises = further_promises(mechanism)
    fault = fault or _broken_promise(promises)
    worst, output = _tightest(mechanism, policy, reading)
    return Certificate(
        holds=fault is None and not worst.violated,
        worst=worst,
        output=None if output is None else output.hex(),
        fault=fault,
        evidence=reading.evidence + "".join(map(_promise_words, promises)),
        coverage=reading.coverage,
        mechanism=mechanism.spec,
        policy=policy.to_dict(),
        information=_information(reading, policy) if isinstance(policy, Prior) else None,
        information_bound=policy.information_bound() if isinstance(policy, Prior) else None,
    )


def _broken_promise(promises: Iterable[tuple[str, Mechanism, Policy]]) -> str | None:
    """Return in words which further promise of a mechanism does not hold, or None."""
    for subject, part, policy in promises:
        certificate = audit(part, policy)
        if not certificate.holds:
            return f"{subject}: {certificate.summary()}"
    return None


def _promise_words(promise: tuple[str, Mechanism, Policy]) -> str:
    """Return the end of the evidence of a mechanism with a further promise, which the audit checked."""
    subject, _, policy = promise
    return f"; the statement is about one report, and {subject} were checked against the {policy.kind} lifetime policy"


def required_coverage(mechanism: Mechanism) -> Coverage:
    """Return how much of a sampler an audit must read before the mechanism can be trusted.

    Tests compare the samplers of the library with their laws. Only an audit compares those of other classes.
    """
    return "none" if is_library_mechanism(mechanism) else "surrogate"


def verify(certificate: Certificate) -> Certificate:
    """Repeat the audit of a certificate, and check that the certificate states the same result.

    Parameters
    ----------
    certificate
        Certificate from :func:`audit` or :meth:`Certificate.from_json`.

    Returns
    -------
    Certificate
        The certificate of the repeated audit.

    Raises
    ------
    InvalidInput
        If the repeated audit has another result, including other evidence or another mutual information.

    Notes
    -----
    ``verify`` compares every part of the certificate except ``wording_hash``, which an audit cannot know. The rounded
    numbers, ``excess`` and the two of nats, may differ by one part in 10^9.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> certificate = sf.audit(sf.mechanisms.RandomizedResponse(domain, 1), sf.Uniform(domain, 1))
    >>> sf.verify(certificate) == certificate
    True
    """
    checked_type("verify", "the certificate", certificate, Certificate, " (Certificate.from_json reads a JSON string)")
    repeated = audit(mechanism_from_spec(certificate.mechanism), policy_from_dict(certificate.policy))
    # Rounding depends on the platform.
    worst, excess = repeated.worst, certificate.worst.excess
    stated, bound = certificate.information, certificate.information_bound
    expected = dataclasses.replace(
        repeated,
        worst=dataclasses.replace(worst, excess=excess) if _is_close(excess, worst.excess) else worst,
        information=stated if _is_close(stated, repeated.information) else repeated.information,
        information_bound=bound if _is_close(bound, repeated.information_bound) else repeated.information_bound,
        wording_hash=certificate.wording_hash,
    )
    changed = different_keys(expected.to_dict(), certificate.to_dict())
    if changed:
        must = f"be that of the repeated audit: {repeated}"
        got = Description(f"another {', '.join(changed)}: {certificate}")
        hint = "Do not trust this certificate. Run the audit again, and use its certificate."
        raise InvalidInput("a certificate", "its statement", must, got, hint=hint)
    return repeated


def _is_close(stated: float | None, computed: float | None) -> bool:
    """Return whether a stated number is the computed one up to rounding."""
    return stated is not None and computed is not None and math.isclose(stated, computed, rel_tol=1e-9)


def _information(reading: _Reading, policy: Prior) -> float | None:
    """Return I(X;Y) at the prior in nats, or None if the law was not read or is too long."""
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
    """Return a fault if the mechanism overrides ``sample``, because the audit reads the steps instead."""
    if getattr(mechanism.sample, "__func__", None) is Mechanism.sample:
        return None
    # These words are stored in certificates, and verifying a certificate compares them.
    return "the sampler that runs is a sample() of its own, not the steps that an audit reads"


def _fault_of_format(mechanism: Mechanism) -> str | None:
    """Return a fault if the report format is not one of the library's, because a report may then contain more data."""
    if is_library_format(mechanism.report_format):
        return None
    return "its report format is not one of the library's: reports may hold more than the audit compares"


# -- reading the sampler ---------------------------------------------------------------------------------


@dataclass
class _Reading:
    """What the interpreter read: the law of every value, or the evidence that some values follow the stated law."""

    evidence: str
    coverage: Coverage
    fault: str | None = None
    laws: list[OutputDistribution] = field(default_factory=list)


def _read_sampler(mechanism: Mechanism) -> _Reading:
    """Read the sampler for all values, for some, or for a smaller instance of the class."""
    size, done = len(mechanism.domain), list[int]()
    try:
        if mechanism.outputs > _MOST_RUNS_PER_VALUE:  # one run gives one report
            raise TooManyBranches(
                f"cannot read every branch of the sampler of {mechanism.name}, because it has more than "
                f"{_MOST_RUNS_PER_VALUE} outputs. Audit it over a smaller domain."
            )
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


def laws_of_sampler(mechanism: Mechanism) -> list[OutputDistribution]:
    """Return the law of every value if an audit reads them all from the sampler; empty if it compares some of them."""
    return _read_sampler(mechanism).laws


def _equal_there(mechanism: Mechanism, spots: Iterable[int]) -> str:
    """Return the evidence that the sampler follows the stated law at some values."""
    return f"{_STATED} the sampler read on every branch of {_named(mechanism, spots)}, and equal to it there"


def _laws_of_all(
    mechanism: Mechanism, known: Iterable[OutputDistribution] = (), runs: int = 0
) -> list[OutputDistribution] | None:
    """Return the laws of all values, starting with ``known`` ones, or None if they take too many runs together."""
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
    """Return the values to read if there are too many to read all; the first value is always one of them."""
    size = len(mechanism.domain)
    return sorted({0, size // 2, size - 1, *mechanism.representatives()})


def _named(mechanism: Mechanism, spots: Iterable[int]) -> str:
    """Return labels as a list in words."""
    return ", ".join(repr(mechanism.domain.label(x)) for x in spots)


def _read_smaller(mechanism: Mechanism, done: Sequence[int]) -> _Reading:
    """Read an instance of the same class over fewer values; ``done`` are the values that were already read."""
    evidence = f"{_equal_there(mechanism, done)}; for others" if done else _STATED
    evidence += " the sampler has too many branches at this size to be read"
    try:
        audit_surrogate = surrogate_of(mechanism)
    except (InvalidInput, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # The constructor of a subclass takes other arguments.
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
    """Read a mechanism whose bits are independent, one bit at a time."""
    spots = _spots(mechanism)
    fault = next(filter(None, (_fault_of_bits(mechanism, x) for x in spots)), None)
    if fault:
        return _Reading("sampler read", "some", fault)
    if not has_independent_steps(mechanism):
        return _Reading(f"{_STATED} overridden steps may use the bits before, and were not all read", "none")
    read = f"read bit by bit for {_named(mechanism, spots)}, where no bit before is set"
    return _Reading(f"{_STATED} the sampler {read}, and equal to it there", "some")


def _fault_of_bits(mechanism: IndependentBits, x: int) -> str | None:
    """Follow the steps of one value while no bit is set, and check that each step decides its bit as stated."""
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
    """Return how the law of one value differs from the stated one, or None."""
    return _constant_length_fault(law) or _stated_law_fault(mechanism, x, law)


def _constant_length_fault(law: OutputDistribution) -> str | None:
    """Return a fault if serialized reports differ in length."""
    lengths = {len(report) for report in law}
    return None if len(lengths) == 1 else f"serialised reports have different lengths: {sorted(lengths)} bytes"


def _stated_law_fault(mechanism: Mechanism, x: int, law: OutputDistribution) -> str | None:
    """Return the first report whose probability differs from the stated one, or None."""
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
    """Yield the columns of the law that was read."""
    zero = Fraction(0)
    for report in sorted(set().union(*reading.laws)):
        yield report, [law.get(report, zero) for law in reading.laws]


def _tightest(mechanism: Mechanism, policy: Policy, reading: _Reading) -> tuple[TightestConstraint, bytes | None]:
    """Return the rule that comes closest to being violated, and its report."""
    if not reading.laws and is_library_mechanism(mechanism) and (known := mechanism.tightest(policy)) is not None:
        report, worst = known
        return worst, None if worst.names is None else mechanism.report_format.encode(report)
    columns = _columns_read(reading) if reading.laws else stated_columns(mechanism, policy)
    worst, output = UNCONSTRAINED, None
    for encoded, likelihoods in columns:
        tightest = policy.worst(likelihoods)
        if worst.names is None or tightest.rank > worst.rank:
            worst, output = tightest, encoded
    return worst, output


def stated_columns(mechanism: Mechanism, policy: Policy) -> Iterator[Column]:
    """Yield the columns of the stated law that can be the worst for this policy."""
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else None
    for report, likelihoods in candidate_columns(mechanism, policy if pairwise is None else pairwise):
        yield mechanism.report_format.encode(report), likelihoods
