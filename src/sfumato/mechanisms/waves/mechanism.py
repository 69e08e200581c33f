"""Waves: short reports for questions about the order of values, such as the distribution function."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Integers, checked_integer, checked_integers, exceeds
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, Finished, Mechanism, read_epsilon
from sfumato.mechanisms.candidates import most_outputs
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.mixture import ONE, mixing_threshold
from sfumato.mechanisms.waves.choice import WEIGHT_SUM, best_modulus, best_waves
from sfumato.mechanisms.waves.sets import LARGEST_MODULUS, Wave
from sfumato.policy import PairwisePolicy, Policy, Uniform
from sfumato.questions import Distribution, Question, read_question

__all__ = ["WaveClass", "Waves", "most_waves"]

#: Bits that a report may have beyond those that number the values, unless the caller sets a limit.
_EXTRA_BITS = 5
#: Maximum number of default waves.
_MOST_WAVES = 32


@dataclass(frozen=True)
class WaveClass:
    """All shifts of one wave: the number of members, the mixing threshold and the weight."""

    wave: Wave
    members: npt.NDArray[np.int64]
    threshold: int
    weight: int

    def likelihoods(self, modulus: int) -> tuple[Fraction, Fraction]:
        """Return the likelihoods of a value in the set and of one outside, relative to the uniform law."""
        gamma = Fraction(self.threshold, ONE)
        return gamma * modulus / len(self.members) + (1 - gamma), 1 - gamma


class Waves(Mechanism):
    """Waves: report a shifted wave, likelier if it is high at the true value.

    It is for questions about the order of the values: the distribution function, ranges or quantiles. Values are the
    first k of v residues modulo v. A *wave* is a set of residues at which a pulse train is high. Waves of few periods
    tell how many people are in large parts of the order, and waves of rising frequency resolve neighbouring values. A
    report is the number of a wave and of its shift, an index of about log2 k + 5 bits.

    Parameters
    ----------
    domain
        The k values in their order, at least two.
    epsilon
        The level ε of classical local differential privacy.
    question
        The question that the default waves serve; the distribution function by default. A spec does not hold it.
    max_bits
        Maximum report size in bits for the default waves; 5 bits more than the index of a value by default.
    modulus
        The number v of residues, at least k. By default, it is between 1.06·k and 1.25·k, more for smaller epsilons.
    waves
        Rows (first, last, width, weight) that a stored spec holds. The residue x is in the set if (2·first·v·x + (last
        - first)·x²) mod 2v² is less than 2v·width. The wave is chosen with a probability in proportion to its weight;
        the weights sum to a power of two, at most 4096. By default, a convex program chooses the waves and weights.
    thresholds
        The integers ⌊2^64·γ⌋ of the waves that a stored spec holds. Omit them to compute them from ``epsilon``.

    Notes
    -----
    A wave is chosen with its probability. With probability γ, which depends on the wave, the shift is uniform over
    those that put the true value in the set. Otherwise it is uniform over all v shifts. With t = e^ε and d of v
    residues in the set, γ = (t-1)d/((t-1)d+v), rounded down to a multiple of 2^-64, so that ε holds exactly.

    The information about differences of frequencies is a Toeplitz matrix, because all shifts are equally likely. The
    estimate solves one Toeplitz system by Fourier transforms. It is unbiased for any waves that distinguish all values.
    Residues without a value separate the two ends of the order. Without them the mechanism would treat the order as a
    circle, at almost twice the error for many values. The proof is in ``docs/proofs/shifted-waves.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import Waves
    >>> mechanism = Waves(Domain.range(100), 1, max_bits=11)
    >>> mechanism.modulus, mechanism.bits
    (125, 11)
    >>> small = Waves(Domain.range(4), "ln 3", modulus=5, waves=[(1, 1, 2, 3), (2, 2, 2, 1)])
    >>> [wave.members.tolist() for wave in small.classes]
    [[0, 1], [0, 3]]
    """

    name = "shifted-waves"

    def __init__(
        self,
        domain: Domain,
        epsilon: EpsilonLike,
        *,
        question: Question | str | None = None,
        max_bits: int | None = None,
        modulus: int | None = None,
        waves: Sequence[Sequence[int]] | None = None,
        thresholds: Sequence[int | str] | None = None,
    ) -> None:
        subject = "Waves"
        self.domain = checked_domain(subject, domain)
        self.epsilon = read_epsilon(subject, epsilon)
        size = len(domain)
        if not 2 <= size <= LARGEST_MODULUS:
            raise InvalidInput(subject, "domain", f"have from 2 to {LARGEST_MODULUS} values", domain)
        if modulus is None:
            modulus = best_modulus(size, self.epsilon)
        self.modulus = checked_integer(subject, "modulus", modulus, size, LARGEST_MODULUS)
        if waves is None:
            count = most_waves(size, self.modulus, most_outputs(max_bits))
            if count == 0:
                least = (self.modulus - 1).bit_length()
                raise InvalidInput(subject, "max_bits", f"be at least {least} for {size} values", max_bits)
            answers = read_question(subject, Distribution() if question is None else question, domain).matrix()
            chosen, weights = best_waves(self.modulus, self.epsilon, answers, count)
        else:
            chosen, weights = _read_waves(subject, waves, self.modulus)
        self.classes = self._classes(chosen, weights, thresholds)
        self.layout = Layout(64, (Field.number(52, 12), Field.number(32, 20), Field.number(0, 32)))

    def _classes(
        self, waves: Sequence[Wave], weights: Sequence[int], stated: Sequence[int | str] | None
    ) -> tuple[WaveClass, ...]:
        """Return the classes of all waves; raise InvalidInput if the stated thresholds differ from theirs."""
        classes = []
        for number, (wave, weight) in enumerate(zip(waves, weights, strict=True)):
            members = np.flatnonzero(wave.members(self.modulus)).astype(np.int64)
            if not 0 < len(members) < self.modulus:
                must = f"contain some of the {self.modulus} residues, not none or all of them"
                raise InvalidInput("Waves", f"the set of wave {number}", must, wave)
            threshold = mixing_threshold(self.epsilon, Fraction(len(members), self.modulus))
            classes.append(WaveClass(wave, members, threshold, weight))
        expected = tuple(each.threshold for each in classes)
        if stated is not None:
            kinds = tuple((f"of wave {number}", 0, ONE) for number in range(len(classes)))
            if checked_integers("Waves", "thresholds", stated, kinds) != expected:
                must = f"be {list(expected)}, which epsilon and the waves determine"
                raise InvalidInput("Waves", "thresholds", must, list(stated))
        return tuple(classes)

    # -- the sampler -----------------------------------------------------------------------------------------

    def step(self, state: int | tuple[int, int], draws: Draws) -> tuple[int, int] | Finished:
        if not isinstance(state, tuple):
            return state, int(self.class_table[draws.below(len(self.class_table))])
        x, number = state
        chosen = self.classes[number]
        if draws.bernoulli(chosen.threshold, ONE):
            shift = x - int(chosen.members[draws.below(len(chosen.members))])
        else:
            shift = draws.below(self.modulus)
        return Finished(number * self.modulus + shift % self.modulus)

    @functools.cached_property
    def class_table(self) -> Integers:
        """The number of the wave for each outcome of the first decision."""
        return np.repeat(np.arange(len(self.classes)), [each.weight for each in self.classes])

    def audit_surrogate(self) -> Waves:
        few = min(len(self.domain), SURROGATE_VALUES)
        return Waves(
            Domain.range(few),
            self.epsilon,
            modulus=SURROGATE_VALUES + 1,
            waves=[(1, 1, 3, 3), (2, 4, 2, 1)],
        )

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return len(self.classes) * self.modulus

    @functools.cached_property
    def indicators(self) -> npt.NDArray[np.bool_]:
        """Whether each residue is in the set of each wave, shape (m, v)."""
        table = np.zeros((len(self.classes), self.modulus), bool)
        for row, each in zip(table, self.classes, strict=True):
            row[each.members] = True
        return table

    @functools.cached_property
    def likelihoods(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """For each wave, the likelihoods of a value in the set and of one outside, relative to the uniform law."""
        return tuple(each.likelihoods(self.modulus) for each in self.classes)

    @functools.cached_property
    def _probabilities(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """For each wave, the probabilities of a report for a value in the set and for one outside."""
        shares = (Fraction(each.weight, len(self.class_table) * self.modulus) for each in self.classes)
        return tuple((share * high, share * low) for share, (high, low) in zip(shares, self.likelihoods, strict=True))

    def probability(self, report: int, x: int) -> Fraction:
        number, shift = divmod(report, self.modulus)
        high, low = self._probabilities[number]
        return high if self.indicators[number, (x - shift) % self.modulus] else low

    def _column(self, report: int) -> tuple[int, list[Fraction]]:
        """Return a report with the likelihoods of all values."""
        number, shift = divmod(report, self.modulus)
        high, low = self.likelihoods[number]
        members = np.roll(self.indicators[number], shift)[: len(self.domain)]
        return report, [high if member else low for member in members.tolist()]

    @functools.cached_property
    def _values_in_sets(self) -> Integers:
        """The number of values in the set of each report, shape (m, v)."""
        doubled = np.concatenate([np.zeros((len(self.classes), 1), np.int64), *[self.indicators] * 2], axis=1)
        sums = np.cumsum(doubled, axis=1)
        starts = -np.arange(self.modulus) % self.modulus
        return np.asarray(sums[:, starts + len(self.domain)] - sums[:, starts])

    def guess_probability(self) -> Fraction:
        empty = (self._values_in_sets == 0).sum(axis=1).tolist()
        total = Fraction(0)
        for none, (high, low) in zip(empty, self._probabilities, strict=True):
            total += (self.modulus - none) * high + none * low
        return total / len(self.domain)

    def classical_epsilon(self) -> Epsilon | None:
        # A spec may state one ε while its thresholds keep another, so the likelihoods are compared.
        holds = not any(exceeds(high, low, self.epsilon) for high, low in self.likelihoods)
        return self.epsilon if holds else None

    # -- audits of large domains -------------------------------------------------------------------------------

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:
        """Return a report that includes the worst of all reports for a policy, or None.

        Parameters
        ----------
        policy
            The policy that the mechanism is audited against.

        Returns
        -------
        Iterator of tuple or None
            A report of the wave with the greatest ratio of likelihoods, in which the policy's closest pair of values is
            on different levels. None unless the policy is on pairs of values, and the wave separates this pair; an
            audit then compares all reports.
        """
        if not isinstance(policy, PairwisePolicy):
            return None
        used = np.flatnonzero(np.any((self._values_in_sets > 0) & (self._values_in_sets < len(self.domain)), axis=1))
        if len(used) == 0:
            return None
        number = max(used.tolist(), key=lambda each: self.likelihoods[each][0] / self.likelihoods[each][1])
        _, (x, other) = policy.least
        places = self.classes[number].members
        apart = np.flatnonzero(~self.indicators[number, (places + (other - x)) % self.modulus])
        if len(apart):
            shift = (x - int(places[apart[0]])) % self.modulus
        elif isinstance(policy, Uniform):
            inside = self._values_in_sets[number]
            shift = int(np.flatnonzero((inside > 0) & (inside < len(self.domain)))[0])
        else:
            return None
        return iter([self._column(number * self.modulus + shift)])

    # -- the spec ----------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        rows = [[each.wave.first, each.wave.last, each.wave.width, each.weight] for each in self.classes]
        return {
            "epsilon": str(self.epsilon),
            "modulus": self.modulus,
            "waves": rows,
            "thresholds": [str(each.threshold) for each in self.classes],
        }

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> Waves:
        return cls(domain, **parameters)


def most_waves(values: int, modulus: int, max_outputs: int | None) -> int:
    """Return the greatest number of default waves that the size of reports allows, 0 if not even one fits."""
    outputs = 1 << (values - 1).bit_length() + _EXTRA_BITS
    return min(_MOST_WAVES, (outputs if max_outputs is None else max_outputs) // modulus)


def _read_waves(subject: str, rows: Sequence[Sequence[int]], modulus: int) -> tuple[tuple[Wave, ...], tuple[int, ...]]:
    """Return the waves and the weights of a spec."""
    limits = (("first", 0, modulus), ("last", 0, modulus), ("width", 1, modulus), ("weight", 1, WEIGHT_SUM))
    read = [checked_integers(subject, "waves", row, limits) for row in rows]
    if any(last < first for first, last, *_ in read):
        raise InvalidInput(subject, "waves", "have last at least as large as first", rows)
    total = sum(row[3] for row in read)
    if total not in (1 << bits for bits in range(WEIGHT_SUM.bit_length())):
        must = f"have weights that sum to a power of two, at most {WEIGHT_SUM}"
        raise InvalidInput(subject, "the waves", must, Description(f"the sum {total}"))
    return tuple(Wave(*row[:3]) for row in read), tuple(row[3] for row in read)
