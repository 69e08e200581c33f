"""How a mechanism divides into a permanent answer and a report about it, for each class that has a closed form.

A form takes two mechanisms that differ only in their level: the law of one report, and the law of the permanent answer.
A report is the permanent answer with probability ρ, and otherwise a report that does not depend on the value. The
functions of a form return ρ, a sampler of such *blank* reports, and the part of the values to which an answer belongs.
The sets of subset selection may also differ in size: a report then extends the permanent set with probability ρ.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from sfumato._core import ZERO, Epsilon, Floats
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.blocks.mechanism import BlockMechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.high_low.base import HighLowMechanism
from sfumato.mechanisms.local_hashing.mechanism import LocalHashing
from sfumato.mechanisms.partitioned.mechanism import PartitionedMechanism
from sfumato.mechanisms.subset.mechanism import SubsetSelection, best_subset_size, nth_set_bit
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.two_level import OUTSIDE, MixtureMechanism
from sfumato.policy import Blocks, HighLow, Policy, on_pairs, structure_of

__all__ = ["BLOCKS", "BUCKETS", "HIGH_LOW", "KEEP_BITS", "MIXTURE", "SUBSET", "TABLE", "Form"]

#: Bits of the probability ρ of a table. Weights of a permanent table are multiples of 2^22, so that the law of one
#: report has integer weights too.
KEEP_BITS = 22

Kind = TypeVar("Kind", bound=Mechanism)
#: A probability as two integers: numerator and denominator.
Odds = tuple[int, int]


class Form(ABC, Generic[Kind]):
    """Division of a class of mechanisms into permanent answers and reports.

    ``shares_answers`` states whether several values may share a permanent answer.
    """

    shares_answers = False

    @abstractmethod
    def permanent_for(self, single: Kind, lifetime: Policy) -> Kind | None:
        """Return the same mechanism at the levels of the lifetime policy, or None if the policy has another form."""

    @abstractmethod
    def check(self, single: Kind, permanent: Kind) -> None:
        """Raise InvalidInput unless the two mechanisms differ only in their levels."""

    @abstractmethod
    def keep(self, single: Kind, permanent: Kind) -> tuple[Odds, ...]:
        """Return the probability ρ that a report is the permanent answer, for each part of the values."""

    @abstractmethod
    def blank(self, single: Kind, permanent: Kind) -> Kind:
        """Return the mechanism of reports that depend only on the part of a value."""

    def part_of(self, permanent: Kind, x: int) -> int:  # noqa: ARG002
        """Return the part of a value."""
        return 0

    def value_like(self, permanent: Kind, report: int) -> int:  # noqa: ARG002
        """Return a value of the part to which a report belongs."""
        return 0

    # -- reports that keep the permanent answer ------------------------------------------------------------------

    def extend(self, blank: Kind, answer: int) -> Hashable | Finished:  # noqa: ARG002
        """Return the report that keeps a permanent answer, or the first state of a sampler that draws one."""
        return Finished(answer)

    def extend_step(self, blank: Kind, state: Any, draws: Draws) -> Hashable | Finished:
        """Run one step of the sampler of reports that keep a permanent answer."""
        raise NotImplementedError

    def extension_probability(self, blank: Kind, report: int, answer: int) -> Fraction:  # noqa: ARG002
        """Return the probability of a report that keeps a permanent answer."""
        return Fraction(report == answer)

    def joint_probability(
        self,
        permanent: Kind,
        blank: Kind,  # noqa: ARG002
        reports: Sequence[int],
        x: int,
        keep: Fraction,
        blank_probabilities: Sequence[Fraction],
    ) -> Fraction:
        """Return the probability of several reports about one answer.

        ``blank_probabilities`` has the probability of each report to be blank and to be this one.
        """
        # A report differs from the permanent answer only if it is blank, so answers that were not reported are alike.
        all_blank = math.prod(blank_probabilities, start=Fraction(1))
        total = all_blank
        for answer in dict.fromkeys(reports):
            likelihood = permanent.probability(answer, x)
            pairs = zip(reports, blank_probabilities, strict=True)
            total += likelihood * (math.prod(rest + keep * (report == answer) for report, rest in pairs) - all_blank)
        return total

    def shared_moments(self, single: Kind, permanent: Kind, u: Floats) -> Floats:  # noqa: ARG002
        """Return Σ_x u(x)·E[ψ_v(Z)² | x] for every value v, where ψ(z) is the mean score of reports about an answer z.

        Reports about an answer have affine counts, and so has the answer itself. Only one affine score is unbiased, so
        ψ is the score of the permanent mechanism.
        """
        return permanent.shared_moments(u)

    def most_answers(self, permanent: Kind) -> int:
        """Return the greatest number of permanent answers that one person needs: one per value or bucket."""
        return len(permanent.domain)

    def key(self, permanent: Kind, x: int, earlier: int) -> int:  # noqa: ARG002
        """Return the number under which a device stores the permanent answer of a value."""
        return x

    def start(self, permanent: Kind, x: int, earlier: int | None) -> Hashable:  # noqa: ARG002
        """Return the first state of the sampler for a further permanent answer of a person."""
        return permanent.start(x)


def _odds(single: MixtureMechanism, permanent: MixtureMechanism) -> Odds:
    """Return ρ of two mixtures over the same sets; it is 1 if both are uniform."""
    if single.threshold > permanent.threshold:
        must = "be at least as large as the level of one report"
        raise InvalidInput("MemoizedMechanism", "the level of the permanent answer", must, permanent)
    return (single.threshold, permanent.threshold) if permanent.threshold else (1, 1)


def _at_level(mechanism: Kind, epsilon: Epsilon) -> Kind:
    """Return the mechanism with the same sets at another level."""
    parameters = {**mechanism.parameters(), "epsilon": str(epsilon)}
    parameters.pop("threshold")
    rebuilt = type(mechanism).from_parameters(mechanism.domain, parameters)
    assert isinstance(rebuilt, type(mechanism))
    return rebuilt


def _check_sets(subject: str, single: Mechanism, permanent: Mechanism) -> None:
    """Raise InvalidInput unless two mechanisms have the same class and the same parameters except the level."""
    level = {"epsilon", "threshold"}
    sets = [{key: part for key, part in each.parameters().items() if key not in level} for each in (single, permanent)]
    if type(single) is not type(permanent) or single.domain != permanent.domain or sets[0] != sets[1]:
        must = "have the class, the values and the sets of the mechanism of one report"
        raise InvalidInput("MemoizedMechanism", subject, must, permanent)


class _MixtureForm(Form[MixtureMechanism]):
    """Mixtures: with probability γ the report is forced. The permanent answer has a larger γ, and ρ is their ratio."""

    def permanent_for(self, single: MixtureMechanism, lifetime: Policy) -> MixtureMechanism | None:
        pairs = on_pairs(lifetime)
        return None if pairs is None else _at_level(single, pairs.least[0])

    def check(self, single: MixtureMechanism, permanent: MixtureMechanism) -> None:
        _check_sets("the permanent mechanism", single, permanent)

    def keep(self, single: MixtureMechanism, permanent: MixtureMechanism) -> tuple[Odds, ...]:
        return (_odds(single, permanent),)

    def blank(self, single: MixtureMechanism, permanent: MixtureMechanism) -> MixtureMechanism:  # noqa: ARG002
        return _at_level(permanent, ZERO)


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
        return (_odds(single, permanent),)

    def blank(self, single: SubsetSelection, permanent: SubsetSelection) -> SubsetSelection:  # noqa: ARG002
        return _at_level(single, ZERO)

    def extend(self, blank: SubsetSelection, answer: int) -> Hashable | Finished:
        return Finished(answer) if answer.bit_count() == blank.size else answer

    def extend_step(self, blank: SubsetSelection, state: int, draws: Draws) -> Hashable | Finished:
        absent = state ^ (1 << len(blank.domain)) - 1
        return self.extend(blank, state | nth_set_bit(absent, draws.below(absent.bit_count())))

    def extension_probability(self, blank: SubsetSelection, report: int, answer: int) -> Fraction:
        size = answer.bit_count()
        extensions = math.comb(len(blank.domain) - size, blank.size - size)
        return Fraction(report & answer == answer, extensions)

    def joint_probability(
        self,
        permanent: SubsetSelection,
        blank: SubsetSelection,
        reports: Sequence[int],
        x: int,
        keep: Fraction,
        blank_probabilities: Sequence[Fraction],
    ) -> Fraction:
        values, size, gamma = len(permanent.domain), permanent.size, permanent.gamma
        each = keep / math.comb(values - size, blank.size - size)
        total = Fraction(0)
        # Every subset of the reports may be those that keep the permanent set, which lies in their intersection.
        for choice in itertools.product((False, True), repeat=len(reports)):
            common = (1 << values) - 1
            term = Fraction(1)
            for is_extension, report, rest in zip(choice, reports, blank_probabilities, strict=True):
                common &= report if is_extension else common
                term *= each if is_extension else rest
            members = common.bit_count()
            free = Fraction(math.comb(members, size), math.comb(values, size))
            forced = Fraction(math.comb(members - 1, size - 1), math.comb(values - 1, size - 1)) if members else free
            total += term * (gamma * forced * (common >> x & 1) + (1 - gamma) * free)
        return total


class _BucketForm(_MixtureForm):
    """Local hashing: a person keeps one hash function, and values of one bucket share a permanent answer."""

    shares_answers = True

    def most_answers(self, permanent: MixtureMechanism) -> int:
        assert isinstance(permanent, LocalHashing)
        return min(permanent.buckets, len(permanent.domain))

    def key(self, permanent: MixtureMechanism, x: int, earlier: int) -> int:
        assert isinstance(permanent, LocalHashing)
        return permanent.bucket(earlier // permanent.buckets, x)

    def start(self, permanent: MixtureMechanism, x: int, earlier: int | None) -> Hashable:
        assert isinstance(permanent, LocalHashing)
        return permanent.start(x) if earlier is None else (x, earlier // permanent.buckets)


class _PartitionedForm(Form[PartitionedMechanism]):
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
            _check_sets("a part of the permanent mechanism", *pair)

    def keep(self, single: PartitionedMechanism, permanent: PartitionedMechanism) -> tuple[Odds, ...]:
        return tuple(map(_odds, single.parts, permanent.parts))

    def part_of(self, permanent: PartitionedMechanism, x: int) -> int:
        return int(permanent.part_of[x])

    def value_like(self, permanent: PartitionedMechanism, report: int) -> int:
        part, inner = permanent.parse(report)
        return inner if part == OUTSIDE else int(permanent.protected(part)[0])


class _HighLowForm(_PartitionedForm):
    """Mechanisms for sensitive and harmless values, with one part."""

    def permanent_for(self, single: PartitionedMechanism, lifetime: Policy) -> PartitionedMechanism | None:
        assert isinstance(single, HighLowMechanism)
        policy = structure_of(lifetime)
        if isinstance(policy, HighLow) and policy.sensitive == single.sensitive:
            return _at_level(single, policy.epsilon)
        # All values are sensitive, or none of them needs protection.
        pairs = on_pairs(lifetime)
        all_sensitive = not len(single.unprotected) and pairs is not None
        return _at_level(single, pairs.least[0]) if all_sensitive and pairs is not None else None

    def blank(self, single: PartitionedMechanism, permanent: PartitionedMechanism) -> PartitionedMechanism:  # noqa: ARG002
        return _at_level(permanent, ZERO)


class _BlockForm(_PartitionedForm):
    """Mechanisms that reveal the block of a value."""

    def permanent_for(self, single: PartitionedMechanism, lifetime: Policy) -> PartitionedMechanism | None:
        policy = structure_of(lifetime)
        if not isinstance(policy, Blocks) or not policy.across.is_infinite:
            return None
        if not np.array_equal(policy.block_of, single.part_of):
            return None
        return self._with_levels(single, policy.epsilons)

    def blank(self, single: PartitionedMechanism, permanent: PartitionedMechanism) -> PartitionedMechanism:  # noqa: ARG002
        return self._with_levels(permanent, [ZERO] * len(permanent.parts))

    @staticmethod
    def _with_levels(mechanism: PartitionedMechanism, levels: Any) -> BlockMechanism:
        """Return the mechanism with other levels; a block of one value keeps its mechanism, which reveals it."""
        pairs = zip(mechanism.parts, levels, strict=True)
        parts = [part if len(part.domain) == 1 else _at_level(part, level) for part, level in pairs]
        return BlockMechanism(mechanism.domain, mechanism.part_of, parts)


class _TableForm(Form[TableMechanism]):
    """Tables: a row of one report is ρ times the row of the permanent answer, plus a row that all values share."""

    def permanent_for(self, single: TableMechanism, lifetime: Policy) -> TableMechanism | None:  # noqa: ARG002
        return None  # both tables are rounded together; see ``tables.py``

    def check(self, single: TableMechanism, permanent: TableMechanism) -> None:
        both = (type(single), type(permanent)) == (TableMechanism, TableMechanism)
        if not both or single.domain != permanent.domain or single.weights.shape != permanent.weights.shape:
            must = "be a table with the values and the outputs of the table of one report"
            raise InvalidInput("MemoizedMechanism", "the permanent mechanism", must, permanent)
        blank = self.blank(single, permanent)
        ratio = Fraction(*self.keep(single, permanent)[0])
        mixed = (1 - ratio) * blank.weights.astype(object) + ratio * permanent.weights.astype(object)
        if not np.array_equal(mixed, single.weights.astype(object)):
            must = "be the permanent table mixed with a row that all values share"
            raise InvalidInput("MemoizedMechanism", "the table of one report", must, single)

    def keep(self, single: TableMechanism, permanent: TableMechanism) -> tuple[Odds, ...]:
        # Rows of the permanent table differ by 1/ρ times as much as those of one report.
        difference = permanent.weights - permanent.weights[:1]
        places = np.argwhere(difference)
        if len(places) == 0:
            return ((1, 1),)
        x, y = places[0].tolist()
        ratio = Fraction(int(single.weights[x, y]) - int(single.weights[0, y]), int(difference[x, y]))
        if not 0 <= ratio <= 1 or (1 << KEEP_BITS) % ratio.denominator:
            must = f"be a multiple of 2^-{KEEP_BITS} between 0 and 1"
            raise InvalidInput("MemoizedMechanism", "the probability of the permanent answer", must, Description(ratio))
        return ((int(ratio * (1 << KEEP_BITS)), 1 << KEEP_BITS),)

    def shared_moments(self, single: TableMechanism, permanent: TableMechanism, u: Floats) -> Floats:
        keep = float(Fraction(*self.keep(single, permanent)[0]))
        scores = np.array([single.estimator.output_scores(unit) for unit in np.eye(len(u))])
        blank = self.blank(single, permanent).matrix()[0]
        means = keep * scores + (1 - keep) * (scores @ blank)[:, None]
        return np.asarray(means**2 @ (u @ permanent.matrix()))

    def blank(self, single: TableMechanism, permanent: TableMechanism) -> TableMechanism:
        numerator, denominator = self.keep(single, permanent)[0]
        row = permanent.weights[0].astype(object)
        if numerator < denominator:
            row = (denominator * single.weights[0].astype(object) - numerator * row) / Fraction(denominator - numerator)
        weights = [int(weight) for weight in row]
        if (
            any(weight != exact or weight < 0 for weight, exact in zip(weights, row, strict=True))
            or sum(weights) != TOTAL
        ):
            must = "be the permanent table mixed with a row that all values share"
            raise InvalidInput("MemoizedMechanism", "the table of one report", must, single)
        return TableMechanism(permanent.domain, [weights] * len(permanent.domain))


#: The forms, which the registry entries of families name.
MIXTURE, SUBSET, BUCKETS = _MixtureForm(), _SubsetForm(), _BucketForm()
HIGH_LOW, BLOCKS, TABLE = _HighLowForm(), _BlockForm(), _TableForm()
