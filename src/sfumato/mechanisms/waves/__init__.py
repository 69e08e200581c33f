"""The family of waves, for questions about the order of values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.waves.choice import best_modulus
from sfumato.mechanisms.waves.estimator import WavesEstimator
from sfumato.mechanisms.waves.mechanism import Waves, most_waves
from sfumato.questions import Distribution, Quantiles, Ranges

__all__ = ["WAVES", "Waves"]

#: Least and greatest number of values for which waves are offered; all variances take k² log k steps.
_FEWEST_VALUES, _MOST_VALUES = 8, 2**13
#: Approximate time in seconds per value to choose the weights, and per pair of values to compute the error.
_SECONDS_PER_VALUE, _SECONDS_PER_PAIR = 1e-3, 6e-7


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield waves for questions about the order of values."""
    domain, question = request.policy.domain, request.question
    if not isinstance(question, Distribution | Ranges | Quantiles) or request.utility != "estimation":
        return
    if _FEWEST_VALUES <= len(domain) <= _MOST_VALUES and float(request.epsilon) > 0:
        modulus = best_modulus(len(domain), request.epsilon)
        if most_waves(len(domain), modulus, request.max_outputs) > 1:
            build = partial(Waves, domain, request.epsilon, question=question, max_bits=request.max_bits)
            seconds = _SECONDS_PER_VALUE * len(domain) + _SECONDS_PER_PAIR * len(domain) ** 2
            yield "waves", Candidate(build, "k log k", classical=True, seconds=seconds)


WAVES = Family(
    mechanisms=(Waves,),
    estimator=WavesEstimator,
    kernel="sfumato.mechanisms.waves.kernel:build",
    candidates=_candidates,
    in_browser=True,
)
