"""Choice of patterns: as many as the length of a report allows, from the best of some seeds."""

from __future__ import annotations

import numpy as np

from sfumato._core import Floats
from sfumato.mechanisms.nested_cyclic.patterns import Patterns
from sfumato.mechanisms.nested_cyclic.transforms import power_spectrum
from sfumato.mechanisms.systems.designs.families import LARGEST_OUTPUTS

__all__ = ["best_seed", "most_patterns"]

#: Bits that a report may have beyond those that number the values, unless the caller sets the number of patterns. With
#: m patterns the risk is about 1 + 1/m times that of all sets of these sizes.
_EXTRA_BITS = 6
#: Maximum number of seeds that are compared, and of the outputs that all of them have together.
_MOST_SEEDS, _MOST_COMPARED = 32, 2**21


def most_patterns(values: int, places: int, max_outputs: int | None) -> int:
    """Return the greatest number of patterns, 0 if not even one fits; ``places`` counts blocks times positions."""
    most = min(LARGEST_OUTPUTS, 1 << (values - 1).bit_length() + _EXTRA_BITS)
    return (most if max_outputs is None else min(most, max_outputs)) // places


def best_seed(count: int, blocks: int, block_size: int, high: int, sizes: tuple[int, int], deviations: Floats) -> int:
    """Return the seed of least risk at the uniform distribution, among as many as take little time.

    ``deviations`` are the likelihoods of the four levels, relative to the uniform law, minus 1.
    """
    seeds = range(max(1, min(_MOST_SEEDS, _MOST_COMPARED // (count * blocks * block_size))))
    if len(seeds) == 1:
        return seeds[0]
    return min(seeds, key=lambda seed: _risk(Patterns(count, blocks, block_size, high, sizes, seed), deviations))


def _risk(patterns: Patterns, deviations: Floats) -> float:
    """Return a number that is proportional to the risk, up to a constant."""
    power = power_spectrum(patterns, deviations)
    # Frequencies w and -w of a real table have the same power; the transform lists only one of them.
    times = np.full(power.shape[1], 2.0)
    times[0] = 1.0
    if patterns.block_size % 2 == 0:
        times[-1] = 1.0
    with np.errstate(divide="ignore"):
        return float(((1 / power) @ times).sum())
