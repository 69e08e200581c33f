"""The result of a black-box audit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato._core import (
    Epsilon,
    Result,
    check_keys,
    exact_fraction,
    label_document,
    number_document,
    percent,
    plot_result,
    read_flag,
    read_integer,
    read_items,
    read_label,
    read_number,
    read_string,
    reads_document,
)
from sfumato.errors import InvalidInput, PolicyViolated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SamplerAudit"]

_KEYS = (
    *("violated", "epsilon_lower", "level", "pair", "event", "counts", "tested", "trials", "alpha", "tests", "plain"),
)


@dataclass(frozen=True, repr=False)
class SamplerAudit(Result):
    """The result of a black-box audit: ``epsilon_lower`` is a lower bound, never an upper one.

    Parameters
    ----------
    violated
        Whether the bound exceeds ``epsilon``. False means that nothing was found, and proves nothing.
    epsilon_lower
        Lower bound on the epsilon between the two values, at the stated confidence.
    epsilon
        What the policy allows between the two values.
    pair
        The two values.
    event
        The outputs that tell the two values apart.
    counts
        How many of ``tested`` outputs were in the event, for the first value and for the second.
    tested
        Number of outputs of each value that the events were tested on.
    trials
        Number of outputs that were drawn for each value.
    alpha
        Maximum probability that a sampler that obeys the policy is accused: 1 minus the confidence.
    tests
        Number of events that were tested in all.
    plain
        Where the event is a learned score: the strongest violation that a person can check by eye, if there is one.
    """

    violated: bool
    epsilon_lower: float
    epsilon: Epsilon
    pair: tuple[object, object]
    event: str
    counts: tuple[int, int]
    tested: int
    trials: int
    alpha: float
    tests: int
    plain: SamplerAudit | None = None

    @property
    def confidence(self) -> float:
        """Probability that a sampler that obeys the policy is not accused, at least."""
        return float(1 - exact_fraction(self.alpha))

    def raise_if_violated(self) -> SamplerAudit:
        """Return this result, or raise PolicyViolated with the reason."""
        if self.violated:
            raise PolicyViolated(self.summary())
        return self

    def summary(self) -> str:
        """Return the result in a sentence."""
        verdict = "the sampler violates the policy" if self.violated else "nothing found, which proves nothing"
        also = "" if self.plain is None else f"; more plainly, {self.plain._finding()}"
        return f"{verdict}: {self._finding()}{also} (confidence {percent(self.confidence)})"

    def _finding(self) -> str:
        first, second = self.pair
        return (
            f"epsilon is at least {math.floor(self.epsilon_lower * 1000) / 1000:.3f} for {first!r} against {second!r}, "
            f"where {self.epsilon} is allowed: {self.event} in {self.counts[0]:,} of {self.tested:,} outputs for "
            f"{first!r}, in {self.counts[1]:,} for {second!r}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a document of plain JSON types; ``from_dict`` returns an equal result."""
        document = {"level" if name == "epsilon" else name: value for name, value in vars(self).items()}
        return {
            **document,
            "epsilon_lower": number_document(self.epsilon_lower),
            "level": str(self.epsilon),
            "pair": [label_document(label) for label in self.pair],
            "counts": list(self.counts),
            "plain": None if self.plain is None else self.plain.to_dict(),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> SamplerAudit:
        """Return the result that a document holds: the inverse of ``to_dict``. Its findings are trusted."""
        subject = "SamplerAudit"
        parts = check_keys(subject, "the document", document, required=_KEYS)
        first, second = read_items(subject, "pair", parts["pair"], 2)
        tested = read_integer(subject, "tested", parts["tested"])
        x, other = (read_integer(subject, "a count", c) for c in read_items(subject, "counts", parts["counts"], 2))
        if max(x, other) > tested:
            raise InvalidInput(subject, "counts", f"be at most {tested}, the number of outputs tested", [x, other])
        return cls(
            violated=read_flag(subject, "violated", parts["violated"]),
            epsilon_lower=read_number(subject, "epsilon_lower", parts["epsilon_lower"], least=0.0),
            epsilon=Epsilon(parts["level"]),
            pair=(read_label(first), read_label(second)),
            event=read_string(subject, "event", parts["event"]),
            counts=(x, other),
            tested=tested,
            trials=read_integer(subject, "trials", parts["trials"]),
            alpha=read_number(subject, "alpha", parts["alpha"], least=0.0, most=1.0),
            tests=read_integer(subject, "tests", parts["tests"]),
            plain=None if parts["plain"] is None else cls.from_dict(parts["plain"]),
        )

    def to_json(self) -> str:
        """Return the result as a JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        findings = [self, *([] if self.plain is None else [self.plain])]
        return {
            "violated": [each.violated for each in findings],
            "epsilon_lower": [each.epsilon_lower for each in findings],
            "epsilon": [float(each.epsilon) for each in findings],
            "x": [each.pair[0] for each in findings],
            "other": [each.pair[1] for each in findings],
            "event": [each.event for each in findings],
            "count_x": [each.counts[0] for each in findings],
            "count_other": [each.counts[1] for each in findings],
            "tested": [each.tested for each in findings],
        }

    def plot(self) -> Figure:
        """Draw the epsilon that is allowed and the one that was found; needs matplotlib."""
        figure: Figure = plot_result(self)
        return figure

    def _title(self) -> str:
        verdict = "the sampler violates the policy" if self.violated else "nothing found, which proves nothing"
        return f"{verdict} (confidence {percent(self.confidence)})"

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<SamplerAudit: {self._title()}, epsilon at least {self.epsilon_lower:.4g}, {self.epsilon} allowed>"
