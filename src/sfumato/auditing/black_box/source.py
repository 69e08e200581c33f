"""Call the sampler in blocks, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato._core import Progress, ProgressCallback
from sfumato.auditing.black_box.events import Candidate, Event, Pair
from sfumato.auditing.black_box.outputs import Outputs, read_outputs
from sfumato.errors import Description, InvalidInput

__all__ = ["Source"]

#: Maximum number of items per block, and per value in the sample from which events are proposed; bounds memory.
_BLOCK_ITEMS, _LOOK_ITEMS = 2**21, 2**21
_FIRST_BLOCK, _LARGEST_BLOCK = 256, 2**16


class Source:
    """Calls the sampler, and counts events in its outputs."""

    def __init__(
        self,
        sampler: Callable[..., Any],
        labels: Sequence[object],
        batch: bool,
        trials: int,
        progress: ProgressCallback | None,
    ) -> None:
        self._sampler, self._labels, self._batch = sampler, labels, batch
        self._done, self._total, self._progress = 0, trials * len(labels), progress
        self._type_name: str | None = None
        self._block = _FIRST_BLOCK

    def _draw(self, i: int, n: int) -> Outputs:
        """Draw n outputs of value i."""
        label = self._labels[i]
        outputs = read_outputs(self._sampler(label, n) if self._batch else [self._sampler(label) for _ in range(n)], n)
        if self._type_name not in (None, outputs.type_name):
            raise InvalidInput(
                "audit_sampler",
                "every output",
                "have the same type",
                Description(f"{self._type_name} and, for {label!r}, {outputs.type_name}"),
            )
        self._type_name = outputs.type_name
        self._block = min(_LARGEST_BLOCK, max(1, _BLOCK_ITEMS // max(1, outputs.width)))
        self._done += n
        if self._progress is not None:
            self._progress(Progress(self._done, self._total, "calls"))
        return outputs

    def _blocks(self, i: int, n: int) -> Iterator[Outputs]:
        """Draw n outputs of value i in blocks."""
        while n:
            rows = min(n, self._block)
            yield self._draw(i, rows)
            n -= rows

    def samples(self, most: int) -> list[Outputs]:
        """Draw the outputs from which events are proposed: at most ``most`` per value, in bounded memory."""
        count = range(len(self._labels))
        first = [self._draw(i, min(most, _FIRST_BLOCK)) for i in count]
        width = max(1, *(outputs.width for outputs in first))
        more = min(most, max(_FIRST_BLOCK, _LOOK_ITEMS // width)) - len(first[0])
        return [Outputs.joined([first[i], *self._blocks(i, more)]) for i in count]

    def count(self, candidates: Mapping[Pair, list[Candidate]], n: int) -> dict[Pair, list[Candidate]]:
        """Return the same candidates with their counts in n more outputs of each value added."""
        counts: list[dict[Event, int]] = []
        for i in range(len(self._labels)):
            events = dict.fromkeys((c.event for pair, listed in candidates.items() if i in pair for c in listed), 0)
            for outputs in self._blocks(i, n):
                for event in events:
                    events[event] += int(np.count_nonzero(event.holds(outputs)))
            counts.append(events)
        return {
            (i, j): [c.plus((counts[i][c.event], counts[j][c.event]), n) for c in listed]
            for (i, j), listed in candidates.items()
        }
