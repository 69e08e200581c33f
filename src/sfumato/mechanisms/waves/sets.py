"""Waves: sets of residues whose indicator is a pulse train of constant or rising frequency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST_MODULUS", "Wave"]

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
