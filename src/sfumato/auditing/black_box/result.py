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
    quantity,
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
    """Result of :func:`audit_sampler`: a lower bound on the epsilon of a sampler, never an upper bound.

    The audit counts how often the outputs of two values fall into a set of outputs, the *event*. Different counts prove
    that the sampler distinguishes the two values.

    Parameters
    ----------
    violated
        Whether the lower bound exceeds ``epsilon``. False means that the audit found no violation, which proves
        nothing.
    epsilon_lower
        Lower bound on the epsilon of the sampler between the two values, at the confidence level :attr:`confidence`.
    epsilon
        Epsilon that the policy allows between the two values.
    pair
        The two values.
    event
        Description of the event that distinguishes the two values best.
    counts
        Number of tested outputs in the event, for the first value and for the second.
    tested
        Number of outputs of each value on which events were tested; the other outputs served to choose the events.
    trials
        Number of outputs that were drawn for each value.
    alpha
        Maximum probability that the audit reports a violation of a sampler that obeys the policy.
    tests
        Number of events that were tested in total.
    plain
        Second result with an event that a person can check by eye, if ``event`` is a learned score and such an event
        also shows a violation; otherwise None.

    See Also
    --------
    audit_sampler : Audit a sampler.

    Examples
    --------
    >>> import sfumato as sf
    >>> policy = sf.Uniform(sf.Domain(["no", "yes"]), 1)
    >>> result = sf.audit_sampler(lambda value: value == "yes", policy, trials=1000)
    >>> result.violated, result.pair
    (True, ('no', 'yes'))
    >>> round(result.epsilon_lower, 1)
    3.4
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
        """Confidence level of the audit, 1 - ``alpha``.

        A sampler that obeys the policy passes the audit with at least this probability.
        """
        return float(1 - exact_fraction(self.alpha))

    def raise_if_violated(self) -> SamplerAudit:
        """Return this result if the audit found no violation, and raise otherwise.

        Returns
        -------
        SamplerAudit
            This result.

        Raises
        ------
        PolicyViolated
            If the audit proved at its confidence level that the sampler violates the policy.
        """
        if self.violated:
            raise PolicyViolated(f"{self.summary()}. Do not use this sampler.")
        return self

    def summary(self) -> str:
        """Return the verdict, the evidence and the confidence level in words.

        Returns
        -------
        str
            One line of English.
        """
        plain = "" if self.plain is None else f"; with an event that is easy to check, {self.plain._finding()}"
        return f"{self._verdict()}: {self._finding()}{plain} (confidence {percent(self.confidence)})"

    def _verdict(self) -> str:
        """Return whether the sampler violates the policy, in words."""
        if self.violated:
            return "the sampler violates the policy"
        return "no violation found, which does not prove that the sampler obeys the policy"

    def _finding(self) -> str:
        """Describe the bound and the event."""
        first, second = self.pair
        return (
            f"epsilon is at least {math.floor(self.epsilon_lower * 1000) / 1000:.3f} for {first!r} against {second!r}, "
            f"and the policy allows {self.epsilon}; {self.event} in {self.counts[0]:,} of "
            f"{quantity(self.tested, 'output')} for {first!r}, and in {self.counts[1]:,} for {second!r}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON-compatible dict.

        Returns
        -------
        dict
            The dict that :meth:`from_dict` reads; the key ``"level"`` has the allowed epsilon as a string.
        """
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
        """Return the result that :meth:`to_dict` serialized, without checking that its statements are true.

        Parameters
        ----------
        document
            Dict that :meth:`to_dict` returned.

        Returns
        -------
        SamplerAudit
            The result that was serialized.

        Raises
        ------
        InvalidInput
            If the dict is incomplete, or a count exceeds the number of tested outputs.
        """
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
        """Return the result as a JSON string.

        Returns
        -------
        str
            The dict of :meth:`to_dict` as JSON.
        """
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
        """Draw the epsilon that the policy allows and the lower bound that the audit found.

        Requires matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        figure: Figure = plot_result(self)
        return figure

    def _title(self) -> str:
        return f"{self._verdict()} (confidence {percent(self.confidence)})"

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<SamplerAudit: {self._title()}, epsilon at least {self.epsilon_lower:.4g}, allowed {self.epsilon}>"
