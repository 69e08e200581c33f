"""Propose events for testing, from a sample of the outputs of each value.

Events belong to *families*: whole outputs, lengths, items at a position and so on. Each family is counted for all
values at once. The counts of a family also define a learned score: the sum of the log-likelihood ratios of the parts of
an output (naive Bayes). The level sets of a score are events too, and detect leaks that no single item shows.

The validity of an audit does not depend on this module, because events are tested on other outputs.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers
from sfumato.auditing.black_box.events import LEARNED, Candidate, Event, Pair, estimated_bounds, ln_ratio
from sfumato.auditing.black_box.limits import chernoff_lower
from sfumato.auditing.black_box.outputs import Outputs

__all__ = ["propose"]

_PREFIXES = (2, 3, 4, 8)
#: Maximum number of cells in a table of positions by items; rarer items and later positions have no separate events.
_LARGEST_TABLE = 2**22
#: Number of thresholds to try for a learned score.
_THRESHOLDS = 64

Codes = npt.NDArray[np.integer[Any]]
Score = Callable[[Outputs], Floats]


def propose(samples: Sequence[Outputs], pairs: Sequence[Pair], alpha: float, most: int) -> dict[Pair, list[Candidate]]:
    """Return up to ``most`` promising events of each family for each pair of values. All samples have the same size."""
    look = _Look(samples)
    proposed: dict[Pair, list[Candidate]] = {pair: [] for pair in pairs}
    for family in look.families():
        low = _distinct_limits(family.totals, look.size, alpha)
        high = 1 - _distinct_limits(look.size - family.totals, look.size, alpha)
        for pair in pairs:
            proposed[pair] += look.best(family, pair, low, high, most)
        if family.score is not None:
            for x, other in sorted({(min(pair), max(pair)) for pair in pairs}):
                for pair, candidates in look.learn(family, x, other, alpha, most).items():
                    if pair in proposed:
                        proposed[pair] += candidates
    return proposed


# -- families of events in samples -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Family:
    """Events of one kind, with ``counts[value, half, i]`` of event i in each half of each value's sample.

    ``score`` takes one weight per event, and returns the function that adds up the weights of an output's events.
    """

    name: str
    counts: Integers
    make: Callable[[int], Event]
    score: Callable[[Floats], Score] | None = None
    _cache: dict[int, Event] = field(default_factory=dict)

    def event(self, i: int) -> Event:
        """Return event i, always the same object, so that pairs of values share its counts."""
        if i not in self._cache:
            self._cache[i] = self.make(i)
        return self._cache[i]

    @functools.cached_property
    def totals(self) -> Integers:
        """The counts of both halves together."""
        return np.asarray(self.counts.sum(axis=1))


class _Look:
    """The samples of all values in one array, and the families of events in them.

    Scores are learned on one half of each sample, and their thresholds are chosen on the other half.
    """

    def __init__(self, samples: Sequence[Outputs]) -> None:
        self.size = len(samples[0])
        self.values = len(samples)
        self.all = Outputs.joined(samples)
        value, row = np.divmod(np.arange(len(self.all)), self.size)
        self.group = value * 2 + row % 2  # which value, which half
        starts = range(0, len(self.all), self.size)
        self.halves = [[self.all.rows(slice(s + which, s + self.size, 2)) for which in (0, 1)] for s in starts]

    def families(self) -> Iterator[_Family]:
        """Yield the families, simple ones first, because the first of two equally promising events is chosen."""
        outputs = self.all
        has_parts = outputs.type_name not in {"int", "bool"}
        coder = _Coder(outputs)
        table = self._table(coder)
        if has_parts:
            yield self._lengths()
            if outputs.width > 1:
                yield self._items(coder, table)
        yield self._fingerprints(None)
        if has_parts and outputs.width > 1:
            yield self._occurrences(coder)
        if outputs.is_bytewise and outputs.type_name != "bool":
            yield self._bits(coder, table)
        if has_parts:
            for prefix in _PREFIXES:
                if prefix < outputs.width:
                    yield self._fingerprints(prefix)

    # -- one family each --

    def _lengths(self) -> _Family:
        """Return the family of lengths."""
        distinct, place = np.unique(self.all.lengths, return_inverse=True)

        def event(i: int) -> Event:
            length = int(distinct[i])
            return Event(
                lambda outputs: outputs.lengths == length,
                f"the output has length {length}",
                f"the output does not have length {length}",
            )

        return _Family("length", self._counts(place, len(distinct)), event)

    def _fingerprints(self, prefix: int | None) -> _Family:
        """Return the family of whole outputs, or of their first ``prefix`` items."""
        distinct, first, place = np.unique(self.all.fingerprints(prefix), return_index=True, return_inverse=True)
        verbs = ("is", "is not") if prefix is None else ("begins with", "does not begin with")

        def event(i: int) -> Event:
            output, key = self.all.text(int(first[i]), prefix), distinct[i]
            return Event(
                lambda outputs: outputs.fingerprints(prefix) == key,
                f"the output {verbs[0]} {output}",
                f"the output {verbs[1]} {output}",
            )

        def score(weights: Floats) -> Score:
            def of(outputs: Outputs) -> Floats:
                keys = outputs.fingerprints()
                places = np.searchsorted(distinct, keys).clip(max=len(distinct) - 1)
                return np.where(distinct[places] == keys, weights[places], 0.0)

            return of

        name = "whole outputs" if prefix is None else "beginnings"
        return _Family(name, self._counts(place, len(distinct)), event, score if prefix is None else None)

    def _table(self, coder: _Coder) -> Integers:
        """Return the counts ``table[value, half, position, code]``."""
        cells = coder.positions * coder.size
        offsets = np.arange(coder.positions) * coder.size
        table = np.empty((self.values, 2, cells), dtype=np.int64)
        for value, which in itertools.product(range(self.values), (0, 1)):
            codes = coder.codes(self.halves[value][which])
            table[value, which] = np.bincount((codes + offsets).ravel(), minlength=cells)
        return table.reshape(self.values, 2, coder.positions, coder.size)

    def _items(self, coder: _Coder, table: Integers) -> _Family:
        """Return the family of items at each position."""
        noun = {"bytes": "byte", "str": "character"}.get(self.all.type_name, "item")

        def event(i: int) -> Event:
            position, code = divmod(i, coder.size - 1)
            item = coder.item(code + 1)
            name = f"the first {noun}" if position == 0 else f"{noun} {position} (counted from 0)"
            shown = self.all.item_text(item)
            return Event(lambda outputs: outputs.at(position) == item, f"{name} is {shown}", f"{name} is not {shown}")

        def score(weights: Floats) -> Score:
            return _table_score(coder, np.pad(weights.reshape(coder.positions, -1), ((0, 0), (1, 0))))

        return _Family("items", table[..., 1:].reshape(self.values, 2, -1), event, score)

    def _bits(self, coder: _Coder, table: Integers) -> _Family:
        """Return the family of bits that are 1."""
        bit_of = np.arange(256)[:, None] >> np.arange(8) & 1

        def event(i: int) -> Event:
            position, bit = divmod(i, 8)
            name = f"bit {bit} of byte {position}" if self.all.type_name == "bytes" else f"bit {i} of the output"
            # The fill value in place of a missing byte has zeros in its low bits.
            return Event(lambda outputs: (outputs.at(position) >> bit & 1) == 1, f"{name} is 1", f"{name} is 0")

        def score(weights: Floats) -> Score:
            return _table_score(coder, np.pad(weights.reshape(coder.positions, 8) @ bit_of.T, ((0, 0), (1, 0))))

        return _Family("bits", (table[..., 1:] @ bit_of).reshape(self.values, 2, -1), event, score)

    def _occurrences(self, coder: _Coder) -> _Family:
        """Return the family of items that occur anywhere in an output."""
        counts = np.empty((self.values, 2, coder.size), dtype=np.int64)
        for value, which in itertools.product(range(self.values), (0, 1)):
            codes = coder.distinct_codes(self.halves[value][which])
            counts[value, which] = np.bincount(codes.ravel(), minlength=coder.size)

        def event(i: int) -> Event:
            item = coder.item(i + 1)
            shown = self.all.item_text(item)
            return Event(
                lambda outputs: np.asarray((outputs.items == item).any(axis=1)),
                f"{shown} occurs in the output",
                f"{shown} does not occur in the output",
            )

        def score(weights: Floats) -> Score:
            padded = np.pad(weights, (1, 0))
            return lambda outputs: np.asarray(padded[coder.distinct_codes(outputs)].sum(axis=1))

        return _Family("occurrences", counts[..., 1:], event, score)

    def _counts(self, place: Codes, events: int) -> Integers:
        """Return the counts of events per value and half."""
        flat = np.bincount(self.group * events + place, minlength=self.values * 2 * events)
        return flat.reshape(self.values, 2, events)

    # -- the most promising --

    def best(self, family: _Family, pair: Pair, low: Floats, high: Floats, most: int) -> list[Candidate]:
        """Return the events of a family, or their complements, with the greatest estimated bounds."""
        x, other = pair
        events = low.shape[1]
        bounds = np.concatenate([ln_ratio(low[x], high[other]), ln_ratio(1 - high[x], 1 - low[other])])
        chosen = np.argpartition(-bounds, most)[:most] if len(bounds) > most else np.arange(len(bounds))
        candidates = []
        for i in chosen[np.argsort(-bounds[chosen], kind="stable")]:
            denied, place = divmod(int(i), events)
            counts = (int(family.totals[x, place]), int(family.totals[other, place]))
            candidate = Candidate(family.name, family.event(place), False, counts, self.size)
            candidates.append(candidate.denial() if denied else candidate)
        return candidates

    def learn(self, family: _Family, x: int, other: int, alpha: float, most: int) -> dict[Pair, list[Candidate]]:
        """Return level sets of a score learned on the first half: high scores for x, low scores for the other value."""
        assert family.score is not None
        a, b = family.counts[x, 0] + 0.5, family.counts[other, 0] + 0.5
        weights = np.log(a / b)
        if family.name == "bits":  # a bit that is 0 is evidence too
            half = len(self.halves[x][0])
            weights -= np.log((half + 1 - a) / (half + 1 - b))
        score = family.score(weights)
        first, second = np.sort(score(self.halves[x][1])), np.sort(score(self.halves[other][1]))
        # Slightly below an observed score, so that rounding does not decide whether an output is in the set.
        thresholds = np.quantile(np.concatenate([first, second]), np.linspace(0, 1, _THRESHOLDS + 1)[1:]) - 1e-9
        up, down = [], []
        for threshold in np.unique(thresholds).tolist():
            event = _level_set(score, threshold, f"the score learned from {family.name}")
            counts = [len(scores) - int(np.searchsorted(scores, threshold)) for scores in (first, second)]
            up.append(Candidate(LEARNED, event, False, (counts[0], counts[1]), len(first)))
            down.append(Candidate(LEARNED, event, False, (counts[1], counts[0]), len(first)).denial())
        return {
            pair: [candidates[i] for i in np.argsort(-estimated_bounds(candidates, alpha), kind="stable")[:most]]
            for pair, candidates in (((x, other), up), ((other, x), down))
        }


def _level_set(score: Score, threshold: float, name: str) -> Event:
    """Return the event that a score is at least a threshold."""
    return Event(
        lambda outputs: outputs.once(score, score) >= threshold,
        f"{name} is at least {threshold:.6g}",
        f"{name} is below {threshold:.6g}",
    )


def _distinct_limits(counts: Integers, trials: int, alpha: float) -> Floats:
    """Return Chernoff limits, computed once per distinct count."""
    distinct, place = np.unique(counts, return_inverse=True)
    return chernoff_lower(distinct, trials, alpha)[place].reshape(counts.shape)


# -- items as small numbers ------------------------------------------------------------------------------


class _Coder:
    """Encode the items of outputs as small numbers.

    Bytes have codes from 1 in their order; other items have codes from a dictionary of the frequent ones. Code 0 stands
    for a missing item, or one that is too rare for a code.
    """

    def __init__(self, outputs: Outputs) -> None:
        self._dictionary: npt.NDArray[np.signedinteger[Any]] | None = None
        if outputs.is_bytewise:
            self.size = 257
        else:
            items, counts = np.unique(outputs.items[outputs.items != outputs.fill], return_counts=True)
            most = max(1, _LARGEST_TABLE // max(1, outputs.width))
            if len(items) > most:
                items = np.sort(items[np.argsort(-counts, kind="stable")[:most]])
            self._dictionary = items
            self.size = len(items) + 1
        self.positions = min(outputs.width, _LARGEST_TABLE // self.size)

    def item(self, code: int) -> int:
        """Return the item of a code."""
        return code - 1 if self._dictionary is None else int(self._dictionary[code - 1])

    def codes(self, outputs: Outputs) -> Codes:
        """Return the codes at the first positions of each output."""
        return outputs.once(self, self._codes)

    def _codes(self, outputs: Outputs) -> Codes:
        items = outputs.items[:, : self.positions]
        codes = np.zeros((len(outputs), self.positions), dtype=np.int32)
        if self._dictionary is None:
            codes[:, : items.shape[1]] = np.maximum(items, -1) + 1
        elif len(self._dictionary):
            places = np.searchsorted(self._dictionary, items).clip(max=len(self._dictionary) - 1)
            codes[:, : items.shape[1]] = np.where(self._dictionary[places] == items, places + 1, 0)
        return codes

    def distinct_codes(self, outputs: Outputs) -> Codes:
        """Return the codes of each output in ascending order, with repetitions replaced by 0."""
        return outputs.once((self, "distinct"), self._distinct_codes)

    def _distinct_codes(self, outputs: Outputs) -> Codes:
        codes = np.sort(self.codes(outputs), axis=1)
        again = codes[:, 1:] == codes[:, :-1]
        codes[:, 1:][again] = 0
        return codes


def _table_score(coder: _Coder, weights: Floats) -> Score:
    """Return the score that sums ``weights[position, code]`` over the positions of an output."""
    flat, offsets = weights.ravel(), np.arange(coder.positions) * coder.size
    return lambda outputs: np.asarray(flat[coder.codes(outputs) + offsets].sum(axis=1))
