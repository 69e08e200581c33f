"""The protected pairs of a policy, grouped by the pair of output distributions that a mechanism gives them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats, OutputGroup, TwoOutputs, merged_groups
from sfumato.auditing.audits import laws_of_sampler
from sfumato.auditing.shuffling.structures import ReportGroup, structure_of
from sfumato.errors import LimitExceeded
from sfumato.mechanisms import Mechanism, is_library_mechanism
from sfumato.policy import INFINITE_CODE, LARGEST_DENSE, PairwisePolicy, representatives

__all__ = ["Laws", "ProtectedPair", "protected_pairs"]

#: Maximum number of entries of a law that is listed completely.
_MOST_ENTRIES = 10**6
#: Number of entries up to which the complete law is listed even if the mechanism knows a shorter form.
_FEW_ENTRIES = 4_000
#: Number of values that are compared as the common value of all other people.
_MOST_CROWDS = 6


@dataclass(frozen=True)
class ProtectedPair:
    """A pair of values with a finite level, and the number of pairs with the same distributions and level."""

    value: int
    other: int
    epsilon: Epsilon
    pairs: int


class Laws:
    """Exact output distributions of a mechanism, in groups of outputs with proportional likelihoods."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.size = len(mechanism.domain)
        # The structure of a class from elsewhere is not trusted; its law is listed, as the audit reads or compares it.
        is_small = self.size * mechanism.outputs <= _FEW_ENTRIES
        self.structure = structure_of(mechanism) if is_library_mechanism(mechanism) and not is_small else None
        if self.structure is None and self.size * mechanism.outputs > _MOST_ENTRIES:
            raise LimitExceeded(
                f"amplify cannot list the law of {mechanism.name} over {self.size:,} values: values times outputs may "
                f"be at most {_MOST_ENTRIES:,}, and no shorter form of the law is known. Use a smaller domain, or "
                "another mechanism."
            )

    @functools.cached_property
    def columns(self) -> list[tuple[Fraction, ...]]:
        """The likelihoods of all values for each output."""
        if is_library_mechanism(self.mechanism):
            return list(zip(*self.mechanism.channel().rows, strict=True))
        if laws := laws_of_sampler(self.mechanism):
            # The audit decided on this law and did not compare it with the stated one.
            reports = sorted(set().union(*laws))
            return [tuple(law.get(report, Fraction(0)) for law in laws) for report in reports]
        return list(zip(*Mechanism.channel(self.mechanism).rows, strict=True))

    def classes(self) -> npt.NDArray[np.int64]:
        """Return classes of values that the mechanism treats alike."""
        return np.arange(self.size) if self.structure is None else self.structure.classes()

    def kinds(self, values: npt.NDArray[np.intp]) -> npt.NDArray[np.int64] | None:
        """Return a number per pair of values; pairs of one kind have the same distributions up to renamed outputs."""
        return None if self.structure is None else self.structure.kinds(values)

    def against_all(self, value: int, other: int, others: Sequence[int] | None = None) -> tuple[OutputGroup, ...]:
        """Return the outputs of two values, weighted by the least likelihood that any other person can have."""
        groups = []
        for group in self._groups([value, other], others):
            first, second = group.probabilities
            groups.append(OutputGroup(first, second, group.least))
        return merged_groups(groups)

    def against(self, value: int, other: int, crowd: int) -> tuple[OutputGroup, ...]:
        """Return the outputs of two values, weighted by the likelihoods of a third value, which others have."""
        distinct = list(dict.fromkeys([value, other, crowd]))
        place = [distinct.index(x) for x in (value, other, crowd)]
        groups = (OutputGroup(*(group.probabilities[i] for i in place)) for group in self._groups(distinct, None))
        return merged_groups(list(groups))

    def two_outputs(self, value: int, other: int, others: Sequence[int] | None = None) -> TwoOutputs | None:
        """Return the probabilities of the first of two outputs; None if other people have more outputs.

        Outputs with proportional likelihoods for all people count as one. Both values of the pair must be among those
        that other people may have.
        """
        if self.structure is not None:
            return None
        members = list(range(self.size)) if others is None else list(others)
        merged: dict[tuple[Fraction, ...], list[Fraction]] = {}
        for column in self.columns:
            likelihoods = [column[z] for z in members]
            if total := sum(likelihoods, Fraction(0)):
                known = merged.setdefault(tuple(p / total for p in likelihoods), [Fraction(0)] * len(members))
                known[:] = [sum(pair, Fraction(0)) for pair in zip(known, likelihoods, strict=True)]
            if len(merged) > 2:
                return None
        if len(merged) != 2:
            return None
        first = next(iter(merged.values()))
        return TwoOutputs(first[members.index(value)], first[members.index(other)], min(first), max(first))

    def kinds_of_values(self, values: npt.NDArray[np.intp]) -> list[int]:
        """Return one of these values per class of values that the mechanism treats alike."""
        _, places = np.unique(self.classes()[values], return_index=True)
        return [int(x) for x in values[places]]

    def crowds(self, value: int, other: int, among: npt.NDArray[np.intp]) -> list[int]:
        """Return a few of the values ``among`` that, if all other people have one, hide the pair least."""
        if self.structure is not None:
            rest = self.kinds_of_values(np.setdiff1d(among, [value, other]))
            chosen = rest[:: max(1, -(-len(rest) // _MOST_CROWDS))]
            return [*np.intersect1d(among, [value, other]).tolist(), *chosen]
        # The Pearson divergence Σ (P - P')²/Q_z determines the level for many people.
        matrix = self._matrix
        square = (matrix[value] - matrix[other]) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(square > 0, square / matrix, 0.0).sum(axis=1)
        return [int(x) for x in among[np.argsort(-scores[among], kind="stable")[:_MOST_CROWDS]]]

    @functools.cached_property
    def _matrix(self) -> Floats:
        """The law as floats, with one row per value."""
        return np.array([[float(p) for p in column] for column in self.columns]).T

    def _groups(self, values: Sequence[int], others: Sequence[int] | None) -> Iterable[ReportGroup]:
        """Return groups of outputs for some values."""
        if self.structure is not None:
            return self.structure.groups(values, others)
        among = range(self.size) if others is None else others
        return [ReportGroup(tuple(c[x] for x in values), min(c[z] for z in among)) for c in self.columns]


def protected_pairs(
    laws: Laws, policy: PairwisePolicy, group_of: npt.NDArray[np.int64]
) -> tuple[list[ProtectedPair], bool]:
    """Return one pair per kind, and whether all opposite directions are protected too.

    Pairs of one kind have the same distributions, the same level and the same group of values.
    """
    classes = [policy.classes(), laws.classes(), group_of]
    indices = representatives(*classes)
    if len(indices) > LARGEST_DENSE:
        raise LimitExceeded(
            f"amplify compares all pairs of {len(indices):,} kinds of values, more than the limit of "
            f"{LARGEST_DENSE:,}. Pass the pairs in question as pairs=."
        )
    joint = np.unique(np.stack(classes, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    sizes = np.bincount(joint)[joint[indices]]
    same = joint[indices][:, None] == joint[indices]
    counts = sizes[:, None] * np.where(same, sizes - 1, sizes)
    codes = policy.epsilons_on(indices).codes.copy()
    np.fill_diagonal(codes, INFINITE_CODE)
    kinds = laws.kinds(indices)
    if kinds is None:
        kinds = np.arange(codes.size).reshape(codes.shape)
    rows, columns = np.nonzero(codes < INFINITE_CODE)
    if not len(rows):
        return [], True
    # Up to two members of a class represent all of it, so the pairs of two classes are shared among up to four pairs.
    members = np.bincount(joint[indices])[joint[indices]]
    shown = members[:, None] * np.where(same, members - 1, members)
    shares = counts[rows, columns] / shown[rows, columns]
    firsts, seconds = indices[rows], indices[columns]
    keys = np.stack([kinds[rows, columns], codes[rows, columns], group_of[firsts], group_of[seconds]], axis=1)
    _, places, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    totals = np.bincount(inverse.reshape(-1), weights=shares)
    pairs = [
        ProtectedPair(x, other, policy.epsilon_between(x, other), round(total))
        for x, other, total in zip(firsts[places].tolist(), seconds[places].tolist(), totals.tolist(), strict=True)
    ]
    is_protected = codes < INFINITE_CODE
    return pairs, bool((is_protected == is_protected.T).all())
