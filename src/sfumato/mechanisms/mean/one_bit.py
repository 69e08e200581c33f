"""One bit for a mean (Duchi, Jordan and Wainwright 2013): its probability is linear in a number of the value."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Floats, Integers, checked_integer, exceeds, floor_of_ratio
from sfumato.domain import Domain, checked_domain
from sfumato.errors import InvalidInput, NoMechanism
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, Mechanism, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mean.line import step_on_line
from sfumato.mechanisms.mean.positions import checked_positions, integer_positions
from sfumato.mechanisms.mixture import ONE
from sfumato.policy import INFINITE_CODE, LARGEST_DENSE, EpsilonMatrix, PairwisePolicy, Policy, Uniform

__all__ = ["OneBit"]

#: Relative distance from the least float within which the steps of pairs are compared exactly.
_TIE = 1e-9


class OneBit(Mechanism):
    """One random bit whose probability is linear in a number of the value, for estimates of a mean.

    Each value has a *position*, an integer from 0 to C. A value at position c reports 1 with probability b + s·c, and 0
    otherwise. The mean position of all people follows from the share of ones. The frequencies of single values do not,
    unless there are only two values.

    Parameters
    ----------
    domain
        The k values, at least two.
    epsilon
        The level ε of classical local differential privacy.
    positions
        The position of each value, in domain order: integers whose least is 0. By default, the index of the value, as
        for the mean of equally spaced numbers.
    step
        The integer 2^64·s that a stored spec holds, an even number. Omit it to compute it from ``epsilon``.

    Notes
    -----
    With t = e^ε, s = (t-1)/((t+1)·C) is rounded down to an even multiple of 2^-64, and b = (1 - s·C)/2. The report is
    then at most t times as likely for the greatest position as for the least. The probability is exactly linear, so the
    estimate (share of ones - b)/s of the mean position is unbiased. If the share of ones has expectation q, n reports
    estimate the mean with variance q(1-q)/(s²·n).

    The greatest variance over all distributions is 1/(4s²·n), and no mechanism of ε-local differential privacy has
    less, up to rounding; see ``docs/proofs/one-bit.md``. At most other distributions, :class:`ShiftedBins` has less.
    This is the mechanism of Duchi, Jordan and Wainwright (2013, "Local privacy and statistical minimax rates") in one
    dimension.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import OneBit
    >>> mechanism = OneBit(Domain.range(5), "ln 3")
    >>> mechanism.matrix()[:, 1].tolist()
    [0.25, 0.375, 0.5, 0.625, 0.75]
    """

    name = "one-bit"

    def __init__(
        self,
        domain: Domain,
        epsilon: EpsilonLike,
        *,
        positions: Sequence[int | str] | Integers | None = None,
        step: int | str | None = None,
    ) -> None:
        subject = "OneBit"
        self.domain = checked_domain(subject, domain)
        self.epsilon = read_epsilon(subject, epsilon)
        if len(domain) < 2:
            raise InvalidInput(subject, "domain", "have at least two values", domain)
        self._positions = checked_positions(subject, len(domain), positions)
        self.greatest_position = len(domain) - 1 if self._positions is None else max(self._positions)
        if step is None:
            step = min(_greatest_step(0, self.greatest_position, self.greatest_position, self.epsilon), self._largest)
        self.step_size = checked_integer(subject, "step", step, 0, self._largest)
        if self.step_size % 2:
            raise InvalidInput(subject, "step", "be an even integer", step)
        self.base = (ONE - self.step_size * self.greatest_position) // 2
        self.layout = Layout(32, (Field.number(0, 32),))

    @property
    def _largest(self) -> int:
        """Greatest step for which both reports are possible for every value."""
        return (ONE - 2) // self.greatest_position // 2 * 2

    @classmethod
    def for_policy(cls, policy: PairwisePolicy, numbers: Sequence[Any] | Floats | None = None) -> OneBit:
        """Build the mechanism with the greatest step that a policy on pairs of values allows.

        For more than 4096 values, the step is that of the least epsilon of all pairs.

        Parameters
        ----------
        policy
            A policy on pairs of values, such as :class:`Uniform` or :class:`Metric`.
        numbers
            The number of each value, in domain order; their mean is to be estimated. By default, the index of the
            value.

        Returns
        -------
        OneBit
            The mechanism, which obeys the policy exactly. Positions are the numbers on an integer scale.

        Raises
        ------
        InvalidInput
            If the policy does not compare pairs of values, or all numbers are equal.
        NoMechanism
            If the policy requires equal reports for two values with different numbers.
        """
        if not isinstance(policy, PairwisePolicy):
            raise InvalidInput("OneBit", "policy", "be a policy on pairs of values", policy)
        positions = None if numbers is None else integer_positions(numbers)
        if isinstance(policy, Uniform) or len(policy.domain) > LARGEST_DENSE:
            return cls(policy.domain, policy.least[0], positions=positions)
        last, between_neighbours = len(policy.domain) - 1, step_on_line(policy)
        if between_neighbours is not None and checked_positions("OneBit", last + 1, positions) is None:
            # The neighbours at an end bind: 1 + n·s/b ≤ (1 + s/b)^n for values n steps apart.
            level, steps = between_neighbours * last, [_greatest_step(0, 1, last, between_neighbours)]
        else:
            matrix = policy.epsilon_matrix()
            level, steps = matrix.greatest()[0], _steps_of_pairs(matrix, positions)
        widest = cls(policy.domain, level, positions=positions)
        step = min([widest.step_size, *steps])
        if step == 0:
            raise NoMechanism("the policy requires equal reports for two values with different numbers")
        return cls(policy.domain, level, positions=positions, step=step)

    @functools.cached_property
    def positions(self) -> Integers:
        """Position of each value, in domain order."""
        positions = range(len(self.domain)) if self._positions is None else self._positions
        array = np.array(positions, dtype=np.int64)
        array.setflags(write=False)
        return array

    def _position(self, x: int) -> int:
        """Return the position of a value."""
        return x if self._positions is None else self._positions[x]

    def threshold(self, x: int) -> int:
        """Return the probability that a value reports 1, as an integer multiple of 2^-64.

        Parameters
        ----------
        x
            Index of the value in the domain.

        Returns
        -------
        int
            The probability times 2^64, between 1 and 2^64 - 1.
        """
        return self.base + self.step_size * self._position(x)

    def step(self, state: int, draws: Draws) -> Finished:
        return Finished(int(draws.bernoulli(self.threshold(state), ONE)))

    def representatives(self) -> list[int]:
        return [int(self.positions.argmin()), int(self.positions.argmax())]

    def audit_surrogate(self) -> OneBit:
        return OneBit(Domain.range(min(len(self.domain), SURROGATE_VALUES)), self.epsilon)

    @property
    def outputs(self) -> int:
        return 2

    def probability(self, report: int, x: int) -> Fraction:
        threshold = self.threshold(x)
        return Fraction(threshold if report else ONE - threshold, ONE)

    def matrix(self) -> npt.NDArray[np.float64]:
        ones = np.array([self.threshold(x) for x in range(len(self.domain))], dtype=np.float64) / ONE
        zeros = np.array([ONE - self.threshold(x) for x in range(len(self.domain))], dtype=np.float64) / ONE
        return np.column_stack([zeros, ones])

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]]:  # noqa: ARG002
        ones = [Fraction(self.threshold(x)) for x in range(len(self.domain))]
        return iter([(0, [ONE - threshold for threshold in ones]), (1, ones)])

    def classical_epsilon(self) -> Epsilon | None:
        return None if exceeds(ONE - self.base, self.base, self.epsilon) else self.epsilon

    def guess_probability(self) -> Fraction:
        return Fraction(2 * (ONE - self.base), ONE * len(self.domain))

    def parameters(self) -> dict[str, Any]:
        positions = {} if self._positions is None else {"positions": [str(position) for position in self._positions]}
        return {"epsilon": str(self.epsilon), **positions, "step": str(self.step_size)}


def _greatest_step(low: int, high: int, greatest: int, epsilon: Epsilon) -> int:
    """Return the greatest even step with b + s·high ≤ e^ε·(b + s·low), as a multiple of 2^-64.

    With b = (1 - s·C)/2 this is s·((C - 2·low)·t + 2·high - C) ≤ t - 1. The factor of s must be positive.
    """
    if epsilon.is_infinite:
        return ONE
    return 2 * floor_of_ratio(
        (Fraction(ONE // 2), Fraction(-ONE // 2)),
        (Fraction(greatest - 2 * low), Fraction(2 * high - greatest)),
        epsilon,
    )


def _steps_of_pairs(matrix: EpsilonMatrix, stated: Sequence[int] | None) -> list[int]:
    """Return the greatest steps for the pairs of values that limit the step most, with all pairs tied for the least."""
    positions = np.array(range(len(matrix.codes)) if stated is None else stated, dtype=np.int64)
    greatest = int(positions.max())
    # With u = 1 - e^-ε, the limit of ``_greatest_step`` is u/(2·(high - low) + (C - 2·high)·u). It neither cancels for
    # small ε nor overflows for large ε.
    fractions = np.where(matrix.codes < INFINITE_CODE, -np.expm1(-matrix.floats), np.nan)
    steps: list[int] = []
    # The report 0 is as likely for a position as the report 1 is for its mirror image.
    for places in (positions, greatest - positions):
        high, low = places[:, None].astype(np.float64), places[None, :].astype(np.float64)
        factor = 2 * (high - low) + (greatest - 2 * high) * fractions
        with np.errstate(divide="ignore", invalid="ignore"):
            bounds = np.where((high > low) & (factor > 0), fractions / factor, np.nan)
        if np.isnan(bounds).all():
            continue
        tied = np.argwhere(bounds <= np.nanmin(bounds) * (1 + _TIE))
        cases = {(int(places[x]), int(places[other]), int(matrix.codes[x, other])) for x, other in tied.tolist()}
        steps += [_greatest_step(low_, high_, greatest, matrix.epsilon(code)) for high_, low_, code in cases]
    return steps
