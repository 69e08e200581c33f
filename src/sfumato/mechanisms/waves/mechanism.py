"""Waves: short reports for questions about the order of values, such as the distribution function."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from sfumato._core import EpsilonLike, checked_integer, checked_integers
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import SURROGATE_VALUES, read_epsilon
from sfumato.mechanisms.candidates import most_outputs
from sfumato.mechanisms.choice import ChoiceOfMixtures
from sfumato.mechanisms.draws import Field, Layout
from sfumato.mechanisms.mixture import ONE, Mixture
from sfumato.mechanisms.waves.choice import WEIGHT_SUM, best_modulus, best_waves
from sfumato.mechanisms.waves.sets import LARGEST_MODULUS, ShiftedWave, Wave
from sfumato.questions import Distribution, Question, read_question

__all__ = ["Waves", "most_waves"]

#: Bits that a report may have beyond those that number the values, unless the caller sets a limit.
_EXTRA_BITS = 5
#: Maximum number of default waves.
_MOST_WAVES = 32


class Waves(ChoiceOfMixtures):
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
    >>> [wave.elements.tolist() for wave in small.waves]
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
            chosen, self.weights = best_waves(self.modulus, self.epsilon, answers, count)
        else:
            chosen, self.weights = _read_waves(subject, waves, self.modulus)
        #: The sets of each wave.
        self.waves = tuple(ShiftedWave(size, self.modulus, wave) for wave in chosen)
        for number, shifts in enumerate(self.waves):
            if not 0 < shifts.density < 1:
                must = f"contain some of the {self.modulus} residues, not none or all of them"
                raise InvalidInput(subject, f"the set of wave {number}", must, shifts.wave)
        self.parts = tuple(Mixture(domain, self.epsilon, shifts) for shifts in self.waves)
        if thresholds is not None:
            expected = tuple(part.threshold for part in self.parts)
            kinds = tuple((f"of wave {number}", 0, ONE) for number in range(len(expected)))
            if checked_integers(subject, "thresholds", thresholds, kinds) != expected:
                must = f"be {list(expected)}, which epsilon and the waves determine"
                raise InvalidInput(subject, "thresholds", must, list(thresholds))
        self.layout = Layout(64, (Field.number(52, 12), Field.number(32, 20), Field.number(0, 32)))

    def audit_surrogate(self) -> Waves:
        few = min(len(self.domain), SURROGATE_VALUES)
        return Waves(
            Domain.range(few),
            self.epsilon,
            modulus=SURROGATE_VALUES + 1,
            waves=[(1, 1, 3, 3), (2, 4, 2, 1)],
        )

    # -- the spec ----------------------------------------------------------------------------------------------

    def parameters(self) -> dict[str, Any]:
        pairs = zip(self.waves, self.weights, strict=True)
        rows = [[*dataclasses.astuple(shifts.wave), weight] for shifts, weight in pairs]
        return {
            "epsilon": str(self.epsilon),
            "modulus": self.modulus,
            "waves": rows,
            "thresholds": [str(part.threshold) for part in self.parts],
        }


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
