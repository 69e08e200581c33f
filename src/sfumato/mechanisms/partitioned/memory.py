"""How mechanisms made of parts divide into a permanent answer and a report about it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.memoized.forms import Form, Odds, check_sets, mixture_odds
from sfumato.mechanisms.memoized.subsets import extensions, if_full, joint_of_sets, with_one_more
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.policy import Policy

__all__ = ["PartitionedForm"]


class PartitionedForm(Form[PartitionedMechanism]):
    """Mechanisms made of parts: a closed form for every part; a report that reveals a value belongs to its part."""

    def permanent_for(self, single: PartitionedMechanism, lifetime: Policy) -> PartitionedMechanism | None:
        raise NotImplementedError

    def check(self, single: PartitionedMechanism, permanent: PartitionedMechanism) -> None:
        same = type(single) is type(permanent) and single.domain == permanent.domain
        same = same and np.array_equal(single.part_of, permanent.part_of)
        if not same or not np.array_equal(single.number_of, permanent.number_of):
            must = "have the class, the values and the parts of the mechanism of one report"
            raise InvalidInput("MemoizedMechanism", "the permanent mechanism", must, permanent)
        for pair in dict.fromkeys(zip(single.parts, permanent.parts, strict=True)):
            if not _has_smaller_sets(*pair):
                check_sets("a part of the permanent mechanism", *pair)

    def keep(self, single: PartitionedMechanism, permanent: PartitionedMechanism) -> tuple[Odds, ...]:
        return tuple(map(mixture_odds, single.parts, permanent.parts))

    def part_of(self, permanent: PartitionedMechanism, x: int) -> int:
        return int(permanent.part_of[x])

    def value_like(self, permanent: PartitionedMechanism, report: int) -> int:
        part, inner = permanent.parse(report)
        return inner if part == OUTSIDE else int(permanent.protected(part)[0])

    # A state of an extension is the number of the part and the set so far.

    def extend(self, permanent: PartitionedMechanism, blank: PartitionedMechanism, answer: int) -> Hashable | Finished:
        part, inner = permanent.parse(answer)
        if part == OUTSIDE:
            return Finished(blank.revealed(inner))
        reported = blank.parts[part]
        if not isinstance(reported, SubsetSelection):
            return Finished(blank.of_part(part, inner))
        return self._in_part(blank, part, if_full(reported, _as_set(permanent.parts[part], inner)))

    def extend_step(self, blank: PartitionedMechanism, state: Any, draws: Draws) -> Hashable | Finished:
        part, members = state
        reported = blank.parts[part]
        assert isinstance(reported, SubsetSelection)
        return self._in_part(blank, part, if_full(reported, with_one_more(reported, members, draws)))

    @staticmethod
    def _in_part(blank: PartitionedMechanism, part: int, following: int | Finished) -> Hashable | Finished:
        """Return the next state with its part, or the report of the whole mechanism."""
        if isinstance(following, Finished):
            return Finished(blank.of_part(part, following.report))
        return part, following

    def extension_probability(
        self, permanent: PartitionedMechanism, blank: PartitionedMechanism, report: int, answer: int
    ) -> Fraction:
        part, inner = permanent.parse(answer)
        reported_part, reported = blank.parse(report)
        if part != reported_part:
            return Fraction(0)
        inside = None if part == OUTSIDE else blank.parts[part]
        if not isinstance(inside, SubsetSelection):
            return Fraction(reported == inner)
        members = _as_set(permanent.parts[part], inner)
        return Fraction(reported & members == members, extensions(inside, members.bit_count()))

    def joint_probability(
        self,
        permanent: PartitionedMechanism,
        blank: PartitionedMechanism,
        reports: Sequence[int],
        x: int,
        keep: Fraction,
        blank_probabilities: Sequence[Fraction],
    ) -> Fraction:
        part, number = int(permanent.part_of[x]), int(permanent.number_of[x])
        inside = blank.parts[part]
        if not isinstance(inside, SubsetSelection):
            return super().joint_probability(permanent, blank, reports, x, keep, blank_probabilities)
        parsed = [blank.parse(report) for report in reports]
        sets = [inner if place == part else None for place, inner in parsed]
        total = joint_of_sets(permanent.parts[part], inside, sets, number, keep, blank_probabilities)
        if number == OUTSIDE:
            pairs = zip(parsed, blank_probabilities, strict=True)
            revealed = (keep * (each == (OUTSIDE, x)) + rest for each, rest in pairs)
            total += permanent.parts[part].gamma * prod(revealed, start=Fraction(1))
        return total


def _has_smaller_sets(single: Mixture, permanent: Mixture) -> bool:
    """Return whether a part of one report has sets that contain those of the permanent answer; one value is a set."""
    is_set = isinstance(permanent, SubsetSelection | RandomizedResponse) and len(permanent.domain) > 1
    same_values = len(single.domain) == len(permanent.domain)
    return is_set and same_values and isinstance(single, SubsetSelection) and permanent.density <= single.density


def _as_set(permanent: Mixture, answer: int) -> int:
    """Return the permanent answer of a part as a bitmap."""
    return answer if isinstance(permanent, SubsetSelection) else 1 << answer
