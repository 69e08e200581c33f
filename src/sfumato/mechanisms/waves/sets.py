"""Waves: sets of residues whose indicator is a pulse train of constant or rising frequency, and all their shifts."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.mechanisms.systems.base import SetSystem

__all__ = ["LARGEST_MODULUS", "ShiftedWave", "Wave"]

#: Maximum number of residues; phases are then below 3·2^51, so that also clients that compute with doubles are exact.
LARGEST_MODULUS = 2**17


@dataclass(frozen=True)
class Wave:
    """A set of residues modulo v: the places at which a pulse train is high.

    The residue x has the phase φ(x) = (2·first·v·x + (last - first)·x²) mod 2v², and is in the set if φ(x) < 2v·width.
    In units of 2v², the phase rises by ``first`` periods per round at residue 0 and by ``last`` at residue v. A wave
    with ``first`` = ``last`` = 1 is an arc of ``width`` residues. A fraction of about ``width``/v of all residues is in
    the set of any wave.

    Parameters
    ----------
    first
        Periods per round at residue 0.
    last
        Periods per round at residue v, at least ``first``.
    width
        The part of a period in which the wave is high, in units of 1/v.
    """

    first: int
    last: int
    width: int

    def members(self, modulus: int) -> npt.NDArray[np.bool_]:
        """Return whether each residue is in the set."""
        x = np.arange(modulus, dtype=np.int64)
        phases = (2 * self.first * modulus * x + (self.last - self.first) * x * x) % (2 * modulus * modulus)
        return np.asarray(phases < 2 * modulus * self.width)


@dataclass(frozen=True)
class ShiftedWave(SetSystem):
    """The v shifts of a wave; values are the first k residues modulo v."""

    size: int
    modulus: int
    wave: Wave

    @functools.cached_property
    def indicator(self) -> npt.NDArray[np.bool_]:
        """Whether each residue is in the set of the wave itself."""
        return self.wave.members(self.modulus)

    @functools.cached_property
    def elements(self) -> Integers:
        """The residues in the set of the wave itself."""
        return np.flatnonzero(self.indicator).astype(np.int64)

    @property
    def outputs(self) -> int:
        return self.modulus

    @functools.cached_property
    def density(self) -> Fraction:
        return Fraction(len(self.elements), self.modulus)

    def contains(self, report: int, x: int) -> bool:
        return bool(self.indicator[(x - report) % self.modulus])

    def member(self, x: int, number: int) -> int:
        return (x - int(self.elements[number])) % self.modulus

    def members(self, values: Sequence[int]) -> npt.NDArray[np.bool_]:
        return np.asarray(self.indicator[(np.asarray(values)[:, None] - np.arange(self.modulus)) % self.modulus])

    @functools.cached_property
    def set_sizes(self) -> Integers:
        sums = np.cumsum(np.concatenate([[0], self.indicator, self.indicator]))
        starts = -np.arange(self.modulus) % self.modulus
        return np.asarray(sums[starts + self.size] - sums[starts])
