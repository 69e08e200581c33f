"""The verb ``amplify``: the central level of reports that arrive without identity and order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    ZERO,
    Epsilon,
    OutputGroup,
    TwoOutputs,
    checked_count,
    checked_type,
    divergence_above,
    divergence_estimate,
    read_list,
)
from sfumato.auditing.audits import audit
from sfumato.auditing.shuffling.bounds import greatest_certified, least_certified, least_certified_of_two, local_level
from sfumato.auditing.shuffling.deltas import checked_delta
from sfumato.auditing.shuffling.pairs import Laws, ProtectedPair, protected_pairs
from sfumato.auditing.shuffling.result import Amplification, AmplifiedPair
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import Mechanism, links_reports
from sfumato.policy import INFINITE_CODE, PairwisePolicy, Policy, on_pairs, representatives

__all__ = ["amplify", "is_certified", "upper_level"]

#: Number of kinds of pairs up to which a lower bound is computed for each; then only for those of the greatest levels.
_MOST_LOWER = 12
#: Number of pairs up to which the bound for two outputs is computed, which takes half a second per pair.
_MOST_SHARP = 24


def amplify(
    mechanism: Mechanism,
    policy: Policy,
    n: int,
    delta: Any,
    *,
    pairs: Iterable[tuple[object, object]] | None = None,
    minimum_counts: int | Mapping[Any, int] | None = None,
    once: bool = False,
) -> Amplification:
    """Return the certified central privacy level of n reports that arrive without identity and order.

    Each of n people sends one report of the mechanism, and an observer sees all reports in random order. The observer
    may know the values of all people except one. For every pair of values that the policy protects, the result states
    ε such that P(S | value) ≤ e^ε·P(S | other) + δ for every set S of outcomes of the batch. Here one person has one of
    the two values, and the values of all other people are arbitrary.

    Parameters
    ----------
    mechanism
        The mechanism that draws the reports; it must obey the policy.
    policy
        The policy that states which pairs of values are protected: those with a finite level. Pairs with an infinite
        level are left out. A pair is protected in one direction, as the policy states it.
    n
        Number of people in the batch, each of whom sends exactly one report.
    delta
        The probability δ, from 0 to below 1, as a number or a string such as ``"1e-6"``. At δ = 0 nothing is amplified.
    pairs
        Pairs (value, other) of labels to compute, at least one; all protected pairs by default. The result then speaks
        only of these pairs, in this direction.
    minimum_counts
        Number of people, the person in question included, who are known to have a value of each group. A group is a set
        of values that are connected by protected pairs, such as a block of :class:`Blocks`. An integer holds for every
        group; a mapping from labels to integers for the groups of these labels. By default, all other people may have
        any value.
    once
        Whether every person sends only one report of this mechanism, ever. A mechanism that shares a random choice
        between the reports of a person, such as a memoized one, is amplified only on this condition.

    Returns
    -------
    Amplification
        Certified upper and lower bounds on the central level, with a table of all kinds of protected pairs.

    Raises
    ------
    InvalidInput
        If a parameter is invalid, if the policy does not compare pairs of values, or if reports can be linked and
        ``once`` is False.
    PolicyViolated
        If the mechanism does not obey the policy.
    LimitExceeded
        If the mechanism has too many outputs to list and no shorter form of its law is known.

    Notes
    -----
    The upper bound is the privacy blanket of Balle, Bell, Gascón and Nissim (2019), for every pair separately: a report
    y of any other person has at least the likelihood min_z Q(y|z), whatever the person's value. The remaining
    probability is given to the observer. If all people, or those of a group with a minimum count, have two outputs, a
    sharper bound compares a few divisions of them among the two extreme values. The lower bound is the exact divergence
    of a data set in which all others have the same value. All bounds are evaluated in interval arithmetic.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain.range(10), 4)
    >>> mechanism = sf.mechanisms.RandomizedResponse(policy.domain, 4)
    >>> result = sf.amplify(mechanism, policy, 100_000, "1e-6")
    >>> round(float(result.epsilon), 2), round(float(result.lower), 2)
    (0.11, 0.11)

    Under a HighLow policy, the crowd hides sensitive values from each other:

    >>> policy = sf.HighLow(sf.Domain(["none", "flu", "hiv", "cancer"]), ["hiv", "cancer"], 2)
    >>> mechanism = sf.mechanisms.UtilityOptimizedRR(policy.domain, ["hiv", "cancer"], 2)
    >>> for row in sf.amplify(mechanism, policy, 100_000, "1e-6"):
    ...     print(row.value, row.other, round(float(row.epsilon), 2))
    hiv none 1.45
    hiv cancer 0.03
    """
    count = checked_count("amplify", n)
    probability = checked_delta("amplify", delta)
    rules = _checked_rules(mechanism, policy, once=once)
    audit(mechanism, policy).raise_if_violated()
    laws = Laws(mechanism)
    group_of = _groups(rules)
    minimum = _Minimum.read(minimum_counts, rules, group_of, count)
    chosen, mutual = protected_pairs(laws, rules, group_of) if pairs is None else _stated_pairs(pairs, rules)
    rows = _amplified(laws, chosen, count, probability, minimum)
    return Amplification(count, probability, tuple(rows), mutual, once)


def upper_level(mechanism: Mechanism, policy: Policy, people: int, delta: Fraction) -> Epsilon:
    """Return the certified central level over all protected pairs; the caller knows that the policy is obeyed."""
    rules = _checked_rules(mechanism, policy, once=True)
    laws, group_of = Laws(mechanism), _groups(rules)
    chosen, _ = protected_pairs(laws, rules, group_of)
    levels = _upper_levels(laws, chosen, people, delta, _Minimum({}, {}, group_of))
    return max((epsilon for _, _, epsilon in levels), default=ZERO)


def is_certified(mechanism: Mechanism, policy: Policy, people: int, delta: Fraction, epsilon: Epsilon) -> bool:
    """Return whether the central level of all protected pairs is certified to be at most ε, in less time."""
    rules = _checked_rules(mechanism, policy, once=True)
    laws = Laws(mechanism)
    chosen, _ = protected_pairs(laws, rules, _groups(rules))
    # The blankets of all people determine both outputs, because either all pairs have two outputs or none has.
    different = {laws.against_all(pair.value, pair.other): pair for pair in chosen}

    def is_hidden(groups: tuple[OutputGroup, ...], pair: ProtectedPair) -> bool:
        if min(local_level(groups), pair.epsilon) <= epsilon or divergence_above(groups, people, epsilon) <= delta:
            return True
        two = laws.two_outputs(pair.value, pair.other)
        return two is not None and two.is_below(people, epsilon, delta)

    return all(is_hidden(groups, pair) for groups, pair in different.items())


def _checked_rules(mechanism: Mechanism, policy: Policy, *, once: bool) -> PairwisePolicy:
    """Return the policy on pairs, or raise InvalidInput if reports are not amplified under it."""
    checked_type("amplify", "mechanism", mechanism, Mechanism)
    checked_type("amplify", "policy", policy, Policy)
    if mechanism.domain != policy.domain:
        raise InvalidInput("amplify", "policy", "be over the domain of the mechanism", policy.domain)
    rules = on_pairs(policy)
    if rules is None:
        hint = "Pass a policy on pairs that the mechanism obeys, such as Uniform at its classical level."
        got = Description(f"a {policy.kind} policy")
        raise InvalidInput("amplify", "policy", "compare pairs of values", got, hint=hint)
    if links_reports(mechanism) and not once:
        hint = (
            "Reports of one person share a random choice, so an observer can link them. Pass once=True if every person "
            "sends only one report, ever. Otherwise charge the level of all reports of a person, such as a lifetime "
            "level, with compose_batches(linked=)."
        )
        raise InvalidInput("amplify", "mechanism", "draw every report independently", mechanism.name, hint=hint)
    return rules


def _groups(policy: PairwisePolicy) -> npt.NDArray[np.int64]:
    """Return the group of each value, which protected pairs connect; -1 for a value without protected pairs."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    classes = policy.classes()
    indices = representatives(classes)
    codes = policy.epsilons_on(indices).codes.copy()
    np.fill_diagonal(codes, INFINITE_CODE)
    is_protected = codes < INFINITE_CODE
    _, group = connected_components(csr_array(is_protected), directed=False)
    group = np.where(is_protected.any(axis=0) | is_protected.any(axis=1), group, -1)
    # Two members of a class have the same levels to all other values, so they are in the same group.
    of_class = dict(zip(classes[indices].tolist(), group.tolist(), strict=True))
    return np.array([of_class[c] for c in classes.tolist()], dtype=np.int64)


@dataclass(frozen=True)
class _Minimum:
    """Least number of people in each group of values, and the values of each group."""

    counts: Mapping[int, int]
    members: Mapping[int, list[int]]
    group_of: npt.NDArray[np.int64]

    @classmethod
    def read(cls, counts: Any, policy: PairwisePolicy, group_of: npt.NDArray[np.int64], people: int) -> _Minimum:
        """Return the counts that a caller states."""
        if counts is None:
            return cls({}, {}, group_of)
        by_group: dict[int, int] = {}
        if isinstance(counts, Mapping):
            for label, least in counts.items():
                group = int(group_of[policy.domain.index(label)])
                by_group[group] = max(by_group.get(group, 1), _checked_least(least, people))
        else:
            by_group = dict.fromkeys(np.unique(group_of[group_of >= 0]).tolist(), _checked_least(counts, people))
        if sum(by_group.values()) > people:
            must = f"add up to at most n = {people} over all groups"
            raise InvalidInput("amplify", "minimum_counts", must, sum(by_group.values()))
        members = {group: np.flatnonzero(group_of == group).tolist() for group in by_group}
        return cls(by_group, members, group_of)


def _checked_least(least: Any, people: int) -> int:
    """Return a minimum number of people in a group."""
    number = checked_count("amplify", least, "minimum_counts")
    if number > people:
        raise InvalidInput("amplify", "minimum_counts", f"be at most n = {people}", least)
    return number


def _stated_pairs(pairs: Any, policy: PairwisePolicy) -> tuple[list[ProtectedPair], bool]:
    """Return the pairs of labels that a caller states, and whether they include all opposite directions."""
    must = "be a list of pairs (value, other) of different labels"
    chosen = []
    for pair in read_list("amplify", "pairs", must, pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or pair[0] == pair[1]:
            raise InvalidInput("amplify", "pairs", must, pair)
        x, other = (policy.domain.index(label) for label in pair)
        epsilon = policy.epsilon_between(x, other)
        if epsilon.is_infinite:
            raise InvalidInput("amplify", "pairs", "be pairs that the policy protects", pair)
        chosen.append(ProtectedPair(x, other, epsilon, 1))
    if not chosen:
        raise InvalidInput("amplify", "pairs", "name at least one pair", [])
    stated = {(pair.value, pair.other) for pair in chosen}
    return chosen, stated == {(other, x) for x, other in stated}


@dataclass(frozen=True)
class _Crowd:
    """People among whom a person hides: their number, their blanket and, if they have two outputs, the law of these."""

    blanket: tuple[OutputGroup, ...]
    people: int
    two: TwoOutputs | None


def _upper_levels(
    laws: Laws, chosen: list[ProtectedPair], people: int, delta: Fraction, minimum: _Minimum
) -> list[tuple[ProtectedPair, Epsilon, Epsilon]]:
    """Return the pairs of different laws with their local and their central level."""
    known: dict[Any, tuple[ProtectedPair, Epsilon, Epsilon]] = {}
    is_sharp = len(chosen) <= _MOST_SHARP
    for pair in chosen:
        crowds = [_crowd(laws, pair, people, None, is_sharp=is_sharp)]
        group = int(minimum.group_of[pair.value])
        if group in minimum.counts:
            # The reports of people outside the group are independent of the pair, and do not increase the divergence.
            members = minimum.members[group]
            crowds.append(_crowd(laws, pair, minimum.counts[group], members, is_sharp=is_sharp))
        local = min(local_level(crowds[0].blanket), pair.epsilon)
        # Equal blankets do not imply that both crowds have two outputs, so the key contains all arguments of the bound.
        key = (tuple(crowds), local)
        if key in known:
            first, local, epsilon = known[key]
            known[key] = replace(first, pairs=first.pairs + pair.pairs), local, epsilon
        else:
            known[key] = pair, local, _upper(*key, delta)
    return list(known.values())


def _crowd(laws: Laws, pair: ProtectedPair, people: int, members: list[int] | None, *, is_sharp: bool) -> _Crowd:
    """Return a number of people who have some values, or any value, as far as the bound of a pair depends on them."""
    two = laws.two_outputs(pair.value, pair.other, members) if is_sharp else None
    return _Crowd(laws.against_all(pair.value, pair.other, members), people, None if two is None else two.oriented())


def _upper(crowds: Sequence[_Crowd], local: Epsilon, delta: Fraction) -> Epsilon:
    """Return the smallest bound that any crowd certifies. It must depend on nothing but its arguments."""
    epsilon = min(least_certified(crowd.blanket, crowd.people, delta, local) for crowd in crowds)
    for crowd in crowds:
        if crowd.two is not None:
            epsilon = least_certified_of_two(crowd.two, crowd.people, delta, epsilon)
    return epsilon


def _amplified(
    laws: Laws, chosen: list[ProtectedPair], people: int, delta: Fraction, minimum: _Minimum
) -> list[AmplifiedPair]:
    """Return the levels of all pairs, the greatest first."""
    label = laws.mechanism.domain.label
    levels = _upper_levels(laws, chosen, people, delta, minimum)
    rows = []
    for place, (pair, local, epsilon) in enumerate(sorted(levels, key=lambda level: level[2], reverse=True)):
        crowd, lower = None, None
        if place < _MOST_LOWER:
            crowd, lower = _lower(laws, pair, people, delta, (local, epsilon), minimum)
        shown = None if crowd is None else label(crowd)
        rows.append(AmplifiedPair(label(pair.value), label(pair.other), pair.pairs, local, epsilon, lower, shown))
    return rows


def _lower(
    laws: Laws, pair: ProtectedPair, people: int, delta: Fraction, levels: tuple[Epsilon, Epsilon], minimum: _Minimum
) -> tuple[int | None, Epsilon | None]:
    """Return the value of all other people that gives the greatest lower bound among those compared, and the bound."""
    local, epsilon = levels
    crowds, number = _crowds(laws, pair, people, minimum)
    if not crowds:
        return None, None
    if local == ZERO:
        return crowds[0], ZERO
    # The estimates rank the data sets near the level; only the best one is certified.
    near = 0.9 * float(epsilon)
    by_crowd = {crowd: laws.against(pair.value, pair.other, crowd) for crowd in crowds}
    best = max(crowds, key=lambda crowd: divergence_estimate(by_crowd[crowd], number, near))
    return best, greatest_certified(by_crowd[best], number, delta, local)


def _crowds(laws: Laws, pair: ProtectedPair, people: int, minimum: _Minimum) -> tuple[list[int], int]:
    """Return values that all other people may have, and how many people they are with the person in question.

    With minimum counts, people outside the pair's group must not be able to send the reports of the pair, because their
    values are not all the same. No values are returned if the counts exclude that anyone has a value of the pair.
    """
    if not minimum.counts:
        return laws.crowds(pair.value, pair.other, np.arange(laws.size)), people
    group = int(minimum.group_of[pair.value])
    inside = laws.crowds(pair.value, pair.other, np.flatnonzero(minimum.group_of == group))
    outside = laws.kinds_of_values(np.flatnonzero(minimum.group_of != group))
    least = {group: 1, **minimum.counts}
    if sum(least.values()) > people:
        return [], 0
    if outside and all(_is_disjoint(laws.against(pair.value, pair.other, x)) for x in outside):
        return inside, least[group]
    return (inside, people) if set(least) == {group} else ([], 0)


def _is_disjoint(groups: Iterable[OutputGroup]) -> bool:
    """Return whether the values of a pair share no output with a third value."""
    return not any(group.weight and (group.first or group.second) for group in groups)
