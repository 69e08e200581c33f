"""The black-box audit: a lower bound on the epsilon of any sampler, also of code that is not ours.

A sampler is called many times on a few values. On the first half of its outputs events are proposed, on the second half
they are tested, so that looking costs nothing in validity. With exact limits on both probabilities of an event,

    epsilon ≥ ln(least probability under x / greatest probability under x')

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
#: Far below any number of trials that could ever reach it, and far above what doubles cannot hold.
_LEAST_ALPHA = Fraction(1, 10**100)
#: How many values are compared unless they are named.
_MOST_VALUES = 4
#: Events of each family that are followed through the first half, and that are tested on the second.
_FOLLOWED, _TESTED = 8, 2
#: The alpha of the limits that rank events of which more will be seen.
_WHILE_LOOKING = 0.05
#: Tested events whose exact limits are computed: those with the greatest estimated bounds.
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
    """Look for evidence that a sampler, any callable, breaks a policy. **Silence proves nothing; a finding does.**

    ``sampler(value)`` takes a label of the policy's domain and returns bytes, a str, an int, a bool, or a list, tuple
    or array of ints or bools. With ``batch=True`` it is ``sampler(value, n)`` and returns n of them, as a list or as an
    array whose first axis is n. Each value gets ``trials`` calls, in blocks, so memory stays bounded.

    A sampler that obeys the policy is reported as violating it with probability at most ``1 - confidence``, provided
    that its calls are independent: a sampler that remembers its answers must be made to forget them.

    ``values`` are those to compare; by default up to four spread over the domain, two of them at the policy's least
    epsilon. ``progress`` is called now and then with a :class:`Progress` that counts calls.
    """
    if isinstance(trials, bool) or not hasattr(trials, "__index__") or operator.index(trials) < _FEWEST_TRIALS:
        raise InvalidInput("audit_sampler", "trials", f"be an int of at least {_FEWEST_TRIALS}", trials)
    try:
        risk = 1 - exact_fraction(confidence)
    except (TypeError, ValueError):
        risk = Fraction(0)
    if not _LEAST_ALPHA <= risk < 1:
        raise InvalidInput("audit_sampler", "confidence", "lie strictly between 0 and 1", confidence)
    trials = operator.index(trials)
    indices, epsilons = _compared(policy, values)
    labels = [policy.domain.label(x) for x in indices]
    count = range(len(indices))
    pairs = [(i, j) for i in count for j in count if i != j and not epsilons.at(i, j).is_infinite]

    source = Source(sampler, labels, batch, trials, progress)
    half = trials // 2
    # Only the ranking depends on these guesses: the alpha of one limit, and how far to trust what may be followed up.
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
        pair: [candidate.afresh() for candidate in best_of_each_family(candidates[pair], limit_alpha, _TESTED)]
        for pair in pairs
    }
    tested = source.count(chosen, trials - half)
    return _Verdict(epsilons, labels, trials, risk, sum(map(len, tested.values()))).of(tested)


@dataclass(frozen=True)
class _Verdict:
    """Turns counts into the result: the event whose bound exceeds its pair's epsilon the most, or comes closest."""

    epsilons: EpsilonMatrix
    labels: Sequence[object]
    trials: int
    alpha: Fraction
    tests: int

    def of(self, tested: Mapping[Pair, list[Candidate]]) -> SamplerAudit:
        every = [(pair, candidate) for pair, candidates in tested.items() for candidate in candidates]
        result, is_learned = self._strongest(every)
        plain = [(pair, candidate) for pair, candidate in every if not candidate.is_learned]
        if is_learned and result.violated and plain:
            second, _ = self._strongest(plain)
            result = replace(result, plain=second if second.violated else None)
        return result

    def _strongest(self, tested: Sequence[tuple[Pair, Candidate]]) -> tuple[SamplerAudit, bool]:
        estimates = estimated_bounds([candidate for _, candidate in tested], float(self._each))
        estimates -= [float(self.epsilons.at(*pair)) for pair, _ in tested]
        finalists = [tested[place] for place in np.argsort(-estimates, kind="stable")[:_FINALISTS]]
        results = [(self._exactly(pair, candidate), candidate.is_learned) for pair, candidate in finalists]
        return max(results, key=lambda result: (result[0].violated, result[0].epsilon_lower - float(result[0].epsilon)))

    @property
    def _each(self) -> Fraction:
        """What each limit may err: Bonferroni over the tests, and two limits a test."""
        return self.alpha / (2 * self.tests)

    def _exactly(self, pair: Pair, candidate: Candidate) -> SamplerAudit:
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
    """ln(ratio) rounded down; 0 where it is negative, because no epsilon is."""
    return max(0.0, math.log(ratio) * (1 - 2**-50)) if ratio > 1 else 0.0


# -- what is compared --------------------------------------------------------------------------------------


def _compared(policy: Policy, values: Sequence[Any] | None) -> tuple[list[int], EpsilonMatrix]:
    """The values to compare, and what the rules between them imply together."""
    pairwise = _as_pairwise(policy)
    size = len(policy.domain)
    if values is None:
        least, (x, other) = pairwise.least
        if least.is_infinite:
            raise Undecided(f"this {policy.kind} policy asks nothing of any two values")
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
        raise InvalidInput("audit_sampler", "values", "hold two that the policy asks something of", values)
    return indices, epsilons


def _as_pairwise(policy: Policy) -> PairwisePolicy:
    if isinstance(policy, PairwisePolicy):
        return policy
    if isinstance(policy, Prior):
        return Uniform(policy.domain, policy.classical_epsilon)
    if isinstance(policy, Secret) and policy.as_pairwise is not None:
        return policy.as_pairwise
    raise Undecided(
        f"a {policy.kind} policy that knows a distribution compares mixtures of values: no two values have a level "
        "that their outputs could exceed"
    )
