"""Single values as sets: k-ary randomized response (Warner 1965 for k = 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import EpsilonLike, Floats
from sfumato.domain import Domain, checked_domain
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished
from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.systems.base import Force, MixtureDraws
from sfumato.mechanisms.systems.symmetric import SymmetricSystem

__all__ = ["RANDOMIZED_RESPONSE", "RandomizedResponse", "Singletons"]


@dataclass(frozen=True)
class Singletons(SymmetricSystem):
    """The sets of one value: output y has the set {y}."""

    size: int
    members_per_set = 1
    layout = Layout(64, (Field.number(32, 32), Field.number(0, 32)))

    @property
    def outputs(self) -> int:
        return self.size

    def step(self, state: int, draws: Draws, force: Force) -> Finished:
        # Both decisions are always made, so that each reads its half of the frame's word.
        keep, other = force(), draws.below(self.size)
        return Finished(state if keep else other)

    def surrogate(self) -> Singletons:
        return Singletons(min(self.size, SURROGATE_VALUES))

    def draws(self) -> MixtureDraws:
        return MixtureDraws(choices=self.size)

    def contains(self, report: int, x: int) -> bool:
        return report == x

    def as_report(self, values: Sequence[int]) -> int:
        return values[0]

    def spread(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return weights

    def gather(self, outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return outputs

    def shared(self, outputs: Floats) -> Floats:
        return np.diag(outputs)


class RandomizedResponse(Mixture):
    """Randomized response: report the true value with probability γ, otherwise a value drawn uniformly.

    The draw is over all k values, so it may again be the true one. A report is the index of a value in the domain.

    Parameters
    ----------
    domain
        The k values.
    epsilon
        The level ε of classical local differential privacy.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    Let Q(y|x) be the probability of report y for value x, and t = e^ε. Then a = Q(x|x) = t/(t+k-1) and
    b = Q(y|x) = 1/(t+k-1) for y ≠ x, so γ = (t-1)/(t+k-1). γ is rounded down to a multiple of 2^-64, so that ε holds
    exactly. For k = 2 this is the mechanism of Warner (1965).

    If T_x of n reports are x, the unbiased estimate of the frequency of x is (T_x/n - b)/(a-b).

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv", "cancer"]), "ln 5")
    >>> mechanism.gamma
    Fraction(1, 2)
    >>> mechanism.matrix()[0].tolist()
    [0.625, 0.125, 0.125, 0.125]
    """

    name = "randomized-response"

    def __init__(self, domain: Domain, epsilon: EpsilonLike, *, threshold: int | str | None = None) -> None:
        values = checked_domain("RandomizedResponse", domain)
        super().__init__(values, epsilon, Singletons(len(values)), threshold=threshold)


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield randomized response for every policy."""
    yield "rr", Candidate(partial(RandomizedResponse, request.policy.domain, request.epsilon), "k", classical=True)


RANDOMIZED_RESPONSE = Family(
    mechanisms=(RandomizedResponse,),
    kernel="sfumato.mechanisms.kernels.singletons:build",
    candidates=_candidates,
    in_browser=True,
    memory="sfumato.mechanisms.memoized.forms:MIXTURE",
)
