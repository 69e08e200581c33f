"""How cyclic designs divide into a permanent answer and a report about it."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from sfumato.mechanisms.candidates import short_bits
from sfumato.mechanisms.memoized.forms import MixtureForm
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.policy import Policy, on_pairs

__all__ = ["CYCLIC"]

#: Number of densities between those of the two levels that are compared.
_DENSITIES = 6


class _CyclicForm(MixtureForm):
    """Cyclic designs: reports and permanent answers have the same sets, so their density is a compromise."""

    def variants(self, single: Mixture, lifetime: Policy) -> Iterable[Mixture]:
        pairs, first = on_pairs(lifetime), single.epsilon
        if pairs is None or pairs.least[0].is_infinite:
            return
        seen = [single.parameters()["design"]]
        most = short_bits(len(single.domain))
        for number in range(1, _DENSITIES + 1):
            share = Fraction(number, _DENSITIES)
            between = first * (1 - share) + pairs.least[0] * share
            design = CyclicDesign(single.domain, between, max_bits=most).design.document()
            if design not in seen:
                seen.append(design)
                yield CyclicDesign(single.domain, first, design=design)


CYCLIC = _CyclicForm()
