"""The truncated geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009) for values on a line."""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Integers, checked_integer, exceeds, floor_of_ratio
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, Mechanism, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mean.line import LARGEST_LINE, step_on_line
from sfumato.mechanisms.mixture import ONE
from sfumato.mechanisms.table.alias import TOTAL, AliasTable
from sfumato.policy import PairwisePolicy, Policy, Uniform

__all__ = ["TruncatedGeometric"]


class TruncatedGeometric(Mechanism):
    """Geometric noise on a line of equally spaced values, where values beyond an end are reported as the end.

    A report is the index of a value: that of the true value plus random noise, cut off at 0 and k-1. The mechanism
    obeys a :class:`Metric` policy whose level is proportional to the number of steps between two values.

    Parameters
    ----------
    domain
        The k values in their order, at least two and at most 65,536.
    epsilon
        The level ε between two neighbouring values; between values s steps apart, it is s·ε.
    ratio
        The integer ⌈2^64·e^-ε⌉ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Notes
    -----
    Let α = ratio/2^64. The noise is z with a probability near (1-α)/(1+α)·α^|z|. All probabilities are integers
    over 2^62, computed from the ratio alone: the weight of distance d+1 is that of d times α, rounded up. So neighbours
    differ in the likelihood of every report by at most 1/α ≤ e^ε.

    The matrix Q(y|x) has a tridiagonal inverse, so k frequencies are estimated in k steps. The score of the mean index
    is the reported index, except at the two ends, where it is α/(1-α) beyond the end. For the mean of equally spaced
    numbers at the uniform distribution of 12 values, the tests check that no mechanism that obeys the policy has 0.1%
    less variance; see ``docs/proofs/truncated-geometric.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import TruncatedGeometric
    >>> TruncatedGeometric(Domain.range(3), "ln 2").matrix().round(6).tolist()
    [[0.666667, 0.166667, 0.166667], [0.333333, 0.333333, 0.333333], [0.166667, 0.166667, 0.666667]]
    """

    name = "truncated-geometric"

    def __init__(self, domain: Domain, epsilon: EpsilonLike, *, ratio: int | str | None = None) -> None:
        subject = "TruncatedGeometric"
        self.domain = checked_domain(subject, domain)
        self.epsilon = read_epsilon(subject, epsilon)
        if not 2 <= len(domain) <= LARGEST_LINE:
            raise InvalidInput(subject, "domain", f"have from 2 to {LARGEST_LINE} values", domain)
        self.ratio = checked_integer(subject, "ratio", _ratio(self.epsilon) if ratio is None else ratio, 0, ONE)
        bin_bits = (2 * len(domain) - 2).bit_length()
        self.layout = Layout(64, (Field.number(0, bin_bits), Field.number(32, 32)))

    @classmethod
    def for_policy(cls, policy: PairwisePolicy) -> TruncatedGeometric:
        """Build the mechanism for a metric policy on equally spaced numbers.

        Parameters
        ----------
        policy
            A :class:`Metric` policy with the distance ``"absolute"``, over equally spaced numbers in their order.

        Returns
        -------
        TruncatedGeometric
            The mechanism, which obeys the policy exactly.

        Raises
        ------
        InvalidInput
            If the policy has another form.
        """
        step = step_on_line(policy)
        if step is None:
            must = 'be a Metric with the distance "absolute" over equally spaced numbers in their order'
            raise InvalidInput("TruncatedGeometric", "policy", must, policy)
        return cls(policy.domain, step)

    @functools.cached_property
    def weights(self) -> Integers:
        """Integer weights of the noise over 2^62, from -(k-1) to k-1; the outermost ones are those of whole tails."""
        from_zero = _noise_weights(self.ratio, len(self.domain) - 1)
        return np.array([*from_zero[:0:-1], *from_zero], dtype=np.int64)

    @functools.cached_property
    def _tails(self) -> list[int]:
        """Weight of noise that is at least d, for every distance d from 0 to k-1."""
        from_zero = self.weights[len(self.domain) - 1 :].tolist()
        return list(itertools.accumulate(reversed(from_zero)))[::-1]

    @functools.cached_property
    def alias_table(self) -> AliasTable:
        """Integer table of the alias method, from which the sampler draws the noise in constant time."""
        return AliasTable.build(self.weights[None, :])

    # -- the sampler -----------------------------------------------------------------------------------------

    def step(self, state: int, draws: Draws) -> Finished:
        table, last = self.alias_table, len(self.domain) - 1
        bin_ = draws.below(table.bins)
        stay = draws.bernoulli(int(table.thresholds[0, bin_]), table.capacity)
        noise = (bin_ if stay else int(table.aliases[0, bin_])) - last
        return Finished(min(max(state + noise, 0), last))

    def audit_surrogate(self) -> TruncatedGeometric:
        return self.from_parameters(Domain.range(min(len(self.domain), SURROGATE_VALUES)), self.parameters())

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return len(self.domain)

    def _weight(self, report: int, x: int) -> int:
        """Return the probability of a report over 2^62."""
        last = len(self.domain) - 1
        if report in (0, last):
            return self._tails[abs(report - x)]
        return int(self.weights[last + report - x])

    def probability(self, report: int, x: int) -> Fraction:
        return Fraction(self._weight(report, x), TOTAL)

    def matrix(self) -> npt.NDArray[np.float64]:
        places = np.arange(len(self.domain))
        distances = np.abs(places - places[:, None])
        matrix = self.weights[len(places) - 1 :][distances] / TOTAL
        tails = np.array(self._tails, dtype=np.float64) / TOTAL
        matrix[:, 0], matrix[:, -1] = tails[distances[:, 0]], tails[distances[:, -1]]
        return np.asarray(matrix)

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        if not isinstance(policy, PairwisePolicy) or not _grows_with_distance(policy):
            return None
        # Likelihoods fall with the distance from the report, at the rate of the weights or, for the ends, of the tails.
        # Report 1 has every pair of weights that another inner report has, for values on one side of the report.
        return ((y, [Fraction(self._weight(y, x)) for x in range(len(self.domain))]) for y in (0, 1))

    def classical_epsilon(self) -> Epsilon | None:
        level = self.epsilon * (len(self.domain) - 1)
        inner = (int(self.weights[len(self.domain) - 1]), int(self.weights[1])) if self.outputs > 2 else (0, 0)
        pairs = ((self._tails[0], self._tails[-1]), inner)
        return None if any(exceeds(high, low, level) for high, low in pairs) else level

    def guess_probability(self) -> Fraction:
        inner = (len(self.domain) - 2) * int(self.weights[len(self.domain) - 1])
        return Fraction(2 * self._tails[0] + inner, TOTAL * len(self.domain))

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon), "ratio": str(self.ratio)}


def _ratio(epsilon: Epsilon) -> int:
    """Return ⌈2^64·e^-ε⌉."""
    if epsilon.is_infinite:
        return 0
    return -floor_of_ratio((Fraction(0), Fraction(-ONE)), (Fraction(1), Fraction(0)), epsilon)


def _noise_weights(ratio: int, last: int) -> list[int]:
    """Return the weights over 2^62 of the distances 0 to last, where the weight of the last is that of the whole tail.

    With α = ratio/2^64, weight f(d+1) = ⌈α·f(d)⌉, and the tail is at least f·α/(1-α) for the weight f before it. The
    weight of distance 0 is the greatest even one whose total does not exceed 2^62. The remainder goes to the tails.
    """
    if ratio == ONE:  # neighbours must be equally likely to send every report, so the report is one of the two ends
        return [0] * last + [TOTAL // 2]

    def weights(center: int) -> list[int]:
        result = [center]
        for _ in range(last - 1):
            result.append(-(-result[-1] * ratio // ONE))
        return [*result, -(-result[-1] * ratio // (ONE - ratio))]

    def total(center: int) -> int:
        center_weight, *others = weights(center)
        return center_weight + 2 * sum(others)

    half = bisect_left(range(1, TOTAL // 2 + 1), True, key=lambda half: total(2 * half) > TOTAL)
    result = weights(2 * half)
    result[-1] += (TOTAL - total(2 * half)) // 2
    return result


def _grows_with_distance(policy: PairwisePolicy) -> bool:
    """Return whether the level of two values depends only on their distance in the domain, and never decreases."""
    if isinstance(policy, Uniform):
        return True
    codes = policy.epsilon_matrix().codes
    stationary = np.array_equal(codes[1:, 1:], codes[:-1, :-1]) and np.array_equal(codes[0], codes[:, 0])
    return stationary and bool((np.diff(codes[0]) >= 0).all())
