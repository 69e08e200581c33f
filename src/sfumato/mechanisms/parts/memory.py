"""How parts divide into a permanent answer and a report about it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from sfumato._core import ZERO, Epsilon
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.memoized.forms import Form, Odds, at_level, check_sets, mixture_odds
from sfumato.mechanisms.memoized.subsets import SUBSET, extensions, if_full, joint_of_sets, with_one_more
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.parts.high_low import best_high_low_size, mixture_of_sets
from sfumato.mechanisms.parts.mechanism import Parts
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Blocks, HighLow, Policy, Uniform, on_pairs, structure_of

__all__ = ["PARTS"]


class _PartsForm(Form[Parts]):
    """Parts: a closed form for every part; a report that reveals a value belongs to its part."""

    def permanent_for(self, single: Parts, lifetime: Policy) -> Parts | None:
        levels = _levels(single, lifetime)
        if levels is None:
            return None
        harmless = np.bincount(single.part_of[single.unprotected], minlength=len(single.parts)).tolist()
        parts = [_with_level(*part) for part in zip(single.parts, levels, harmless, strict=True)]
        known = [part for part in parts if part is not None]
        return _with_parts(single, known) if len(known) == len(parts) else None

    def blank(self, single: Parts, permanent: Parts) -> Parts:  # noqa: ARG002
        return _with_parts(single, [at_level(part, ZERO) for part in single.parts])

    def check(self, single: Parts, permanent: Parts) -> None:
        same = type(single) is type(permanent) and single.domain == permanent.domain
        same = same and np.array_equal(single.part_of, permanent.part_of)
        if not same or not np.array_equal(single.number_of, permanent.number_of):
            must = "have the class, the values and the parts of the mechanism of one report"
            raise InvalidInput("MemoizedMechanism", "the permanent mechanism", must, permanent)
        for pair in dict.fromkeys(zip(single.parts, permanent.parts, strict=True)):
            if not _has_smaller_sets(*pair):
                check_sets("a part of the permanent mechanism", *pair)

    def keep(self, single: Parts, permanent: Parts) -> tuple[Odds, ...]:
        return tuple(map(mixture_odds, single.parts, permanent.parts))

    def part_of(self, permanent: Parts, x: int) -> int:
        return int(permanent.part_of[x])

    def value_like(self, permanent: Parts, report: int) -> int:
        part, inner = permanent.numbering.parse(report)
        return inner if part == OUTSIDE else int(permanent.protected(part)[0])

    # A state of an extension is the number of the part and the set so far.

    def extend(self, permanent: Parts, blank: Parts, answer: int) -> Hashable | Finished:
        part, inner = permanent.numbering.parse(answer)
        if part == OUTSIDE:
            return Finished(blank.numbering.revealed(inner))
        reported = blank.parts[part]
        if not isinstance(reported, SubsetSelection):
            return Finished(blank.numbering.of_part(part, inner))
        return self._in_part(blank, part, if_full(reported, _as_set(permanent.parts[part], inner)))

    def extend_step(self, blank: Parts, state: Any, draws: Draws) -> Hashable | Finished:
        part, members = state
        reported = blank.parts[part]
        assert isinstance(reported, SubsetSelection)
        return self._in_part(blank, part, if_full(reported, with_one_more(reported, members, draws)))

    @staticmethod
    def _in_part(blank: Parts, part: int, following: int | Finished) -> Hashable | Finished:
        """Return the next state with its part, or the report of the whole mechanism."""
        if isinstance(following, Finished):
            return Finished(blank.numbering.of_part(part, following.report))
        return part, following

    def extension_probability(self, permanent: Parts, blank: Parts, report: int, answer: int) -> Fraction:
        part, inner = permanent.numbering.parse(answer)
        reported_part, reported = blank.numbering.parse(report)
        if part != reported_part:
            return Fraction(0)
        inside = None if part == OUTSIDE else blank.parts[part]
        if not isinstance(inside, SubsetSelection):
            return Fraction(reported == inner)
        members = _as_set(permanent.parts[part], inner)
        return Fraction(reported & members == members, extensions(inside, members.bit_count()))

    def joint_probability(
        self,
        permanent: Parts,
        blank: Parts,
        reports: Sequence[int],
        x: int,
        keep: Fraction,
        blank_probabilities: Sequence[Fraction],
    ) -> Fraction:
        part, number = int(permanent.part_of[x]), int(permanent.number_of[x])
        inside = blank.parts[part]
        if not isinstance(inside, SubsetSelection):
            return super().joint_probability(permanent, blank, reports, x, keep, blank_probabilities)
        parsed = [blank.numbering.parse(report) for report in reports]
        sets = [inner if place == part else None for place, inner in parsed]
        total = joint_of_sets(permanent.parts[part], inside, sets, number, keep, blank_probabilities)
        if number == OUTSIDE:
            pairs = zip(parsed, blank_probabilities, strict=True)
            revealed = (keep * (each == (OUTSIDE, x)) + rest for each, rest in pairs)
            total += permanent.parts[part].gamma * prod(revealed, start=Fraction(1))
        return total


def _levels(single: Parts, lifetime: Policy) -> Sequence[Epsilon] | None:
    """Return the level of each part under a lifetime policy with the same parts, or None."""
    policy = structure_of(lifetime)
    if isinstance(policy, Blocks) and policy.across.is_infinite and np.array_equal(policy.block_of, single.part_of):
        return None if len(single.unprotected) else policy.epsilons
    if len(single.parts) > 1:
        return None
    if isinstance(policy, HighLow) and np.array_equal(policy.is_sensitive, single.number_of != OUTSIDE):
        return [policy.epsilon]
    # All values are sensitive, or none of them needs protection.
    pairs = on_pairs(lifetime)
    return None if len(single.unprotected) or pairs is None else [pairs.least[0]]


def _with_level(part: Mixture, epsilon: Epsilon, harmless: int) -> Mixture | None:
    """Return the mixture of a part at another level, with the best size of its sets; a smaller set has a smaller γ."""
    values = len(part.domain)
    if values == 1 and not harmless:
        return part  # its value is revealed
    if not isinstance(part, SubsetSelection):
        return at_level(part, epsilon)
    if not harmless:
        return SUBSET.permanent_for(part, Uniform(part.domain, epsilon))
    sizes = range(min(best_high_low_size(values, harmless, epsilon), part.size), part.size + 1)
    sets = (mixture_of_sets(values, epsilon, size) for size in sizes)
    return next((each for each in sets if each.threshold >= part.threshold), None)


def _with_parts(mechanism: Parts, parts: Sequence[Mixture]) -> Parts:
    """Return the mechanism with other mixtures."""
    return Parts(mechanism.domain, mechanism.part_of, parts, mechanism.unprotected)


def _has_smaller_sets(single: Mixture, permanent: Mixture) -> bool:
    """Return whether a part of one report has sets that contain those of the permanent answer; one value is a set."""
    is_set = isinstance(permanent, SubsetSelection | RandomizedResponse) and len(permanent.domain) > 1
    same_values = len(single.domain) == len(permanent.domain)
    return is_set and same_values and isinstance(single, SubsetSelection) and permanent.density <= single.density


def _as_set(permanent: Mixture, answer: int) -> int:
    """Return the permanent answer of a part as a bitmap."""
    return answer if isinstance(permanent, SubsetSelection) else 1 << answer


PARTS = _PartsForm()
