"""The black-box audit: a lower bound on the epsilon of any sampler, even without its source code.

The audit calls a sampler many times on a few values. It proposes events on the first half of the outputs and tests them
on the second half, so that the search does not affect the validity of the tests. With exact limits on both
probabilities of an event,

    epsilon ≥ ln(lower limit of the probability under x / upper limit of the probability under x')

holds for all tested events together at the stated confidence (Bonferroni over the tests and both limits).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import ProgressCallback, exact_fraction, exceeds
from sfumato.auditing.black_box.events import Candidate, Pair, best_of_each_family, estimated_bounds
from sfumato.auditing.black_box.families import propose
from sfumato.auditing.black_box.limits import clopper_pearson_lower, clopper_pearson_upper
from sfumato.auditing.black_box.result import SamplerAudit
from sfumato.auditing.black_box.source import Source
from sfumato.errors import InvalidInput, Undecided
from sfumato.policy import EpsilonMatrix, PairwisePolicy, Policy, Prior, Secret, Uniform

__all__ = ["SamplerAudit", "audit_sampler"]

_FEWEST_TRIALS = 1000
#: Smallest accepted 1 - confidence; no feasible number of trials reaches it, and doubles still represent it.
_LEAST_ALPHA = Fraction(1, 10**100)
#: Maximum number of values to compare by default.
_MOST_VALUES = 4
#: Number of events per family that are counted in all of the first half, and number that are tested on the second half.
_FOLLOWED, _TESTED = 8, 2
#: Alpha of the limits that rank events before all of the first half is counted.
_WHILE_LOOKING = 0.05
#: Number of tested events whose exact limits are computed: those with the greatest estimated bounds.
_FINALISTS = 5


def audit_sampler(
    sampler: Callable[..., Any],
    policy: Policy,
    trials: int = 100_000,
    *,
    confidence: float = 0.999999,
    values: Sequence[Any] | None = None,
    batch: bool = False,
    progress: ProgressCallback | None = None,
) -> SamplerAudit:
    """Search for evidence that a sampler violates a policy.

    The audit calls the sampler many times and compares the frequencies of its outputs for a few values. A violation
    that the audit reports is proved at the confidence level ``confidence``. **If the audit finds no violation, that
    proves nothing.**

    Parameters
    ----------
    sampler
        Function to audit. ``sampler(value)`` takes a value of the policy's domain and returns one output: bytes, str,
        int, bool, or a list, tuple or array of ints or bools.
    policy
        Policy that the sampler should obey.
    trials
        Number of outputs to draw per value, at least 1,000.
    confidence
        Confidence level: a sampler that obeys the policy passes the audit with at least this probability. This requires
        that calls are independent: if a sampler stores its answers, clear its memory before each call.
    values
        Values to compare. The default is up to four values spread over the domain, including a pair with the smallest
        epsilon of the policy.
    batch
        Whether the function is ``sampler(value, n)`` and returns n outputs, as a list or as an array whose first axis
        has length n.
    progress
        A function that is called with a :class:`Progress` after each block of calls.

    Returns
    -------
    SamplerAudit
        The strongest evidence, with a lower bound on epsilon.

    Raises
    ------
    InvalidInput
        If a parameter is invalid, or the outputs have different or unsupported types.
    Undecided
        If the policy sets no limit between any two values, or only limits between mixtures of values.

    Notes
    -----
    The audit chooses sets of outputs (events) on the first half of the outputs and tests them on the second half.
    Clopper-Pearson limits bound the probability of each event, with a Bonferroni correction over all tests. The sampler
    is called in blocks, so memory stays bounded.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain(["no", "yes"]), 1)
    >>> sf.audit_sampler(lambda value: value == "yes", policy, trials=1000).violated  # a sampler without noise
    True
    """
    if isinstance(trials, bool) or not hasattr(trials, "__index__") or operator.index(trials) < _FEWEST_TRIALS:
        raise InvalidInput("audit_sampler", "trials", f"be an int of at least {_FEWEST_TRIALS}", trials)
    try:
        risk = 1 - exact_fraction(confidence)
    except (TypeError, ValueError):
        risk = Fraction(0)
    if not _LEAST_ALPHA <= risk < 1:
        raise InvalidInput("audit_sampler", "confidence", "be strictly between 0 and 1", confidence)
    trials = operator.index(trials)
    indices, epsilons = _compared(policy, values)
    labels = [policy.domain.label(x) for x in indices]
    count = range(len(indices))
    pairs = [(i, j) for i in count for j in count if i != j and not epsilons.at(i, j).is_infinite]

    source = Source(sampler, labels, batch, trials, progress)
    half = trials // 2
    # This alpha only ranks events; the validity of the tests does not depend on it.
    limit_alpha = float(risk) / (len(pairs) * 2 * 2 * 8)
    samples = source.samples(half)
    sampled = len(samples[0])
    candidates = propose(
        samples, pairs, limit_alpha if sampled == half else max(limit_alpha, _WHILE_LOOKING), _FOLLOWED
    )
    del samples
    if sampled < half:
        candidates = source.count(candidates, half - sampled)
    chosen = {
        pair: [candidate.without_counts() for candidate in best_of_each_family(candidates[pair], limit_alpha, _TESTED)]
        for pair in pairs
    }
    tested = source.count(chosen, trials - half)
    return _Verdict(epsilons, labels, trials, risk, sum(map(len, tested.values()))).of(tested)


@dataclass(frozen=True)
class _Verdict:
    """Selects the event whose bound exceeds the epsilon of its pair the most, or comes closest to it."""

    epsilons: EpsilonMatrix
    labels: Sequence[object]
    trials: int
    alpha: Fraction
    tests: int

    def of(self, tested: Mapping[Pair, list[Candidate]]) -> SamplerAudit:
        """Return the result for all tested events."""
        every = [(pair, candidate) for pair, candidates in tested.items() for candidate in candidates]
        result, is_learned = self._strongest(every)
        plain = [(pair, candidate) for pair, candidate in every if not candidate.is_learned]
        if is_learned and result.violated and plain:
            second, _ = self._strongest(plain)
            result = replace(result, plain=second if second.violated else None)
        return result

    def _strongest(self, tested: Sequence[tuple[Pair, Candidate]]) -> tuple[SamplerAudit, bool]:
        """Return the strongest result, and whether its event is a learned score."""
        estimates = estimated_bounds([candidate for _, candidate in tested], float(self._each))
        estimates -= [float(self.epsilons.at(*pair)) for pair, _ in tested]
        finalists = [tested[place] for place in np.argsort(-estimates, kind="stable")[:_FINALISTS]]
        results = [(self._exactly(pair, candidate), candidate.is_learned) for pair, candidate in finalists]
        return max(results, key=lambda result: (result[0].violated, result[0].epsilon_lower - float(result[0].epsilon)))

    @property
    def _each(self) -> Fraction:
        """Error probability of each limit: Bonferroni over the tests, with two limits per test."""
        return self.alpha / (2 * self.tests)

    def _exactly(self, pair: Pair, candidate: Candidate) -> SamplerAudit:
        """Return the result for one event with exact limits."""
        least = clopper_pearson_lower(candidate.counts[0], candidate.looked, self._each)
        greatest = clopper_pearson_upper(candidate.counts[1], candidate.looked, self._each)
        epsilon = self.epsilons.at(*pair)
        return SamplerAudit(
            violated=exceeds(least, greatest, epsilon),
            epsilon_lower=_ln_down(least / greatest),
            epsilon=epsilon,
            pair=(self.labels[pair[0]], self.labels[pair[1]]),
            event=str(candidate),
            counts=candidate.counts,
            tested=candidate.looked,
            trials=self.trials,
            alpha=float(self.alpha),
            tests=self.tests,
        )


def _ln_down(ratio: Fraction) -> float:
    """Return ln(ratio) rounded down, or 0 if it is negative."""
    return max(0.0, math.log(ratio) * (1 - 2**-50)) if ratio > 1 else 0.0


# -- the values to compare ---------------------------------------------------------------------------------


def _compared(policy: Policy, values: Sequence[Any] | None) -> tuple[list[int], EpsilonMatrix]:
    """Return the values to compare, and the epsilons that all constraints imply between them."""
    pairwise = _as_pairwise(policy)
    size = len(policy.domain)
    if values is None:
        least, (x, other) = pairwise.least
        if least.is_infinite:
            raise Undecided(
                f"this {policy.kind} policy constrains no two values, so no sampler violates it. Audit the sampler "
                "against a policy with a finite epsilon."
            )
        spread = [x, other, 0, 1, size - 1, size // 2]
        indices = sorted(list(dict.fromkeys(spread))[:_MOST_VALUES])
    else:
        if isinstance(values, (str, bytes, Mapping)):
            raise InvalidInput("audit_sampler", "values", "be a list of values", values)
        for value in values:
            if value not in policy.domain:
                raise InvalidInput("audit_sampler", "values", "be values of the policy's domain", value)
        indices = sorted({policy.domain.index(value) for value in values})
        if len(indices) < 2:
            raise InvalidInput("audit_sampler", "values", "be at least two different values", values)
    epsilons = pairwise.epsilons_on(np.array(indices)).closed()
    if epsilons.least()[0].is_infinite:
        raise InvalidInput("audit_sampler", "values", "include two values that the policy constrains", values)
    return indices, epsilons


def _as_pairwise(policy: Policy) -> PairwisePolicy:
    """Return constraints on pairs of values that the policy implies."""
    if isinstance(policy, PairwisePolicy):
        return policy
    if isinstance(policy, Prior):
        return Uniform(policy.domain, policy.classical_epsilon)
    if isinstance(policy, Secret) and policy.as_pairwise is not None:
        return policy.as_pairwise
    raise Undecided(
        f"cannot test this {policy.kind} policy with single values: under a known or estimated distribution, its rules "
        "compare mixtures of values. Audit the sampler against Secret(..., Anything()) or a policy on pairs of values."
    )
