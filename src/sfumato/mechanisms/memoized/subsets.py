"""How subset selection divides into a permanent set and a report about it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

from sfumato._core import ZERO
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.memoized.forms import Form, Odds, at_level, mixture_odds
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.systems.base import OUTSIDE
from sfumato.mechanisms.systems.subsets import SubsetSelection, best_subset_size, nth_set_bit
from sfumato.policy import Policy, on_pairs

__all__ = ["SUBSET", "extensions", "if_full", "joint_of_sets", "with_one_more"]


class _SubsetForm(Form[SubsetSelection]):
    """Subset selection: the permanent set has the best size d' for its level, and a report the best size d ≥ d'.

    With probability ρ = γ/γ' a report is a uniform set of d values that contains the permanent set, otherwise a uniform
    set. All stages are symmetric in the values other than x, so a report is uniform given whether it contains x. It
    contains x with probability d/k + ρ·γ'·(1 - d/k), as a report of subset selection with γ does.
    """

    def permanent_for(self, single: SubsetSelection, lifetime: Policy) -> SubsetSelection | None:
        pairs = on_pairs(lifetime)
        if pairs is None:
            return None
        epsilon = pairs.least[0]
        # A smaller set has a smaller γ', which must be at least γ.
        sizes = range(min(best_subset_size(len(single.domain), epsilon), single.size), single.size + 1)
        sets = (SubsetSelection(single.domain, epsilon, size) for size in sizes)
        return next((each for each in sets if each.threshold >= single.threshold), None)

    def check(self, single: SubsetSelection, permanent: SubsetSelection) -> None:
        if single.domain != permanent.domain or permanent.size > single.size:
            must = "have the values of the mechanism of one report, and sets that are not larger"
            raise InvalidInput("MemoizedMechanism", "the permanent mechanism", must, permanent)

    def keep(self, single: SubsetSelection, permanent: SubsetSelection) -> tuple[Odds, ...]:
        return (mixture_odds(single, permanent),)

    def blank(self, single: SubsetSelection, permanent: SubsetSelection) -> SubsetSelection:  # noqa: ARG002
        return at_level(single, ZERO)

    def extend(self, permanent: SubsetSelection, blank: SubsetSelection, answer: int) -> Hashable | Finished:  # noqa: ARG002
        return if_full(blank, answer)

    def extend_step(self, blank: SubsetSelection, state: int, draws: Draws) -> Hashable | Finished:
        return if_full(blank, with_one_more(blank, state, draws))

    def extension_probability(
        self,
        permanent: SubsetSelection,  # noqa: ARG002
        blank: SubsetSelection,
        report: int,
        answer: int,
    ) -> Fraction:
        return Fraction(report & answer == answer, extensions(blank, answer.bit_count()))

    def joint_probability(
        self,
        permanent: SubsetSelection,
        blank: SubsetSelection,
        reports: Sequence[int],
        x: int,
        keep: Fraction,
        blank_probabilities: Sequence[Fraction],
    ) -> Fraction:
        return joint_of_sets(permanent, blank, reports, x, keep, blank_probabilities)


def if_full(blank: SubsetSelection, members: int) -> int | Finished:
    """Return a set as a report if it has the size of reports."""
    return Finished(members) if members.bit_count() == blank.size else members


def with_one_more(blank: SubsetSelection, members: int, draws: Draws) -> int:
    """Return a set with a uniformly drawn further member."""
    absent = members ^ (1 << len(blank.domain)) - 1
    return members | nth_set_bit(absent, draws.below(absent.bit_count()))


def extensions(blank: SubsetSelection, size: int) -> int:
    """Return the number of reports that contain a given set of a size."""
    return math.comb(len(blank.domain) - size, blank.size - size)


def joint_of_sets(
    permanent: Mixture,
    blank: SubsetSelection,
    reports: Sequence[int | None],
    x: int,
    keep: Fraction,
    blank_probabilities: Sequence[Fraction],
) -> Fraction:
    """Return the probability that the permanent answer is a set, and that its reports are these.

    A report of None reveals a value, and so does the permanent answer of a value x = OUTSIDE with probability γ.
    """
    values, gamma = len(blank.domain), permanent.gamma
    size = int(permanent.density * values)
    each = keep / extensions(blank, size)
    total = Fraction(0)
    # Every subset of the reports may be those that keep the permanent set, which lies in their intersection.
    for choice in itertools.product((False, True), repeat=len(reports)):
        common = (1 << values) - 1
        term = Fraction(1)
        for is_extension, report, rest in zip(choice, reports, blank_probabilities, strict=True):
            common &= (report or 0) if is_extension else common
            term *= each if is_extension else rest
        members = common.bit_count()
        total += term * (1 - gamma) * Fraction(math.comb(members, size), math.comb(values, size))
        if x != OUTSIDE and common >> x & 1:
            forced = Fraction(math.comb(members - 1, size - 1), math.comb(values - 1, size - 1))
            total += term * gamma * forced
    return total


SUBSET = _SubsetForm()
