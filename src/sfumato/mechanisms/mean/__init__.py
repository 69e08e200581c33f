"""The family of mechanisms for a mean, or for another linear function of the frequencies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.mean.estimator import mean_estimator
from sfumato.mechanisms.mean.geometric import TruncatedGeometric
from sfumato.mechanisms.mean.line import step_on_line
from sfumato.mechanisms.mean.one_bit import OneBit
from sfumato.mechanisms.mean.shifted_bins import ShiftedBins
from sfumato.mechanisms.registry import Family
from sfumato.policy import PairwisePolicy, Uniform

__all__ = ["MEAN", "OneBit", "ShiftedBins", "TruncatedGeometric"]


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield mechanisms for questions with one answer."""
    domain, weights = request.policy.domain, _only_row(request)
    if weights is None:
        return
    classical = Uniform(domain, request.epsilon)
    policy = request.structure if isinstance(request.structure, PairwisePolicy) else classical
    is_classical = isinstance(policy, Uniform)
    yield "one-bit", Candidate(partial(OneBit.for_policy, policy, weights), "1", classical=is_classical)
    steps = np.diff(weights)
    if len(domain) > 2 and (np.all(steps > 0) or np.all(steps < 0)):
        build = partial(ShiftedBins.for_numbers, domain, request.epsilon, weights)
        yield "shifted-bins", Candidate(build, "k", classical=True)
    step = step_on_line(policy)
    if step is not None:
        yield "geometric", Candidate(partial(TruncatedGeometric, domain, step), "k")


def _only_row(request: CandidateRequest) -> Floats | None:
    """Return the weights of a question with one answer; None for other questions, and if all weights are equal."""
    question = request.question
    if question is None or len(question.names) != 1:
        return None
    (weights,) = question.matrix()
    return weights if np.ptp(weights) > 0 else None


MEAN = Family(
    mechanisms=(OneBit, ShiftedBins, TruncatedGeometric),
    estimator=mean_estimator,
    kernel="sfumato.mechanisms.mean.kernel:build",
    candidates=_candidates,
    in_browser=True,
)
