"""The instantaneous response: a channel from permanent answers to reports."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.memoized.forms import Form, Odds
from sfumato.mechanisms.table.mechanism import TableMechanism

__all__ = ["InstantaneousResponse", "TableResponse"]


class InstantaneousResponse:
    """Channel from a permanent answer to a report, drawn again for every report.

    A report is the permanent answer with probability ρ. Otherwise it is a *blank* report, which depends only on the
    part of the values to which the permanent answer belongs. Most mechanisms have one part. The attribute
    :attr:`MemoizedMechanism.instantaneous` holds an instance; users do not construct them.

    Parameters
    ----------
    permanent
        The mechanism that draws permanent answers.
    blank
        The mechanism that draws blank reports. Its law is the same for all values of a part.
    keep
        The probability ρ of each part, as numerator and denominator.
    form
        The functions that know the parts.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> mechanism = sf.design(sf.Uniform(domain, "ln 3"), lifetime=sf.Uniform(domain, "ln 7"))
    >>> mechanism.instantaneous.keep_probability(0)
    Fraction(2, 3)
    >>> mechanism.instantaneous.probability(1, 0)  # the report 1, if the permanent answer is 0
    Fraction(1, 6)
    """

    def __init__(self, permanent: Mechanism, blank: Mechanism, keep: tuple[Odds, ...], form: Form[Any]) -> None:
        self._permanent, self.blank = permanent, blank
        self.odds = keep
        self._form = form

    def _part_of(self, answer: int) -> int:
        """Return the part of the values to which a permanent answer belongs."""
        return self._form.part_of(self._permanent, self._form.value_like(self._permanent, answer))

    def keep_probability(self, answer: int) -> Fraction:
        """Return the probability ρ that a report is the permanent answer because it was not replaced.

        Parameters
        ----------
        answer
            The permanent answer, as an integer.

        Returns
        -------
        Fraction
            The probability ρ. A blank report may be equal to the permanent answer too.
        """
        return Fraction(*self.odds[self._part_of(answer)])

    def probability(self, report: int, answer: int) -> Fraction:
        """Return the exact probability of a report given the permanent answer.

        Parameters
        ----------
        report
            The report, as an integer.
        answer
            The permanent answer, as an integer.

        Returns
        -------
        Fraction
            The probability ρ·[report = answer] + (1 - ρ)·q(report), where q is the law of blank reports. If reports are
            larger sets than permanent answers, a report that contains the answer takes the place of the answer.
        """
        keep = self.keep_probability(answer)
        value = self._form.value_like(self._permanent, answer)
        extension = self._form.extension_probability(self._permanent, self.blank, report, answer)
        return keep * extension + (1 - keep) * self.blank.probability(report, value)

    # -- the sampler -------------------------------------------------------------------------------------

    def start(self, answer: int) -> Hashable:
        """Return the first state of the sampler for a permanent answer.

        Parameters
        ----------
        answer
            The permanent answer, as an integer.

        Returns
        -------
        Hashable
            The state that :meth:`sample` passes to the first call of :meth:`step`.
        """
        return ("answer", answer)

    def step(self, state: Any, draws: Draws) -> Hashable | Finished:
        """Run one step of the sampler.

        Parameters
        ----------
        state
            The current state.
        draws
            The source of random decisions.

        Returns
        -------
        Hashable or Finished
            The next state, or ``Finished(report)``.
        """
        stage, inner = state
        if stage == "answer":
            numerator, denominator = self.odds[self._part_of(inner)]
            if numerator == denominator or (numerator > 0 and draws.bernoulli(numerator, denominator)):
                return self._stage("extend", self._form.extend(self._permanent, self.blank, inner))
            return ("blank", self.blank.start(self._form.value_like(self._permanent, inner)))
        if stage == "extend":
            return self._stage("extend", self._form.extend_step(self.blank, inner, draws))
        return self._stage("blank", self.blank.step(inner, draws))

    @staticmethod
    def _stage(stage: str, following: Hashable | Finished) -> Hashable | Finished:
        """Return the next state with its stage, or the report."""
        return following if isinstance(following, Finished) else (stage, following)

    def sample(self, answer: int, draws: Draws) -> int:
        """Draw a report about a permanent answer.

        Parameters
        ----------
        answer
            The permanent answer, as an integer.
        draws
            The source of random decisions.

        Returns
        -------
        int
            The report.
        """
        state: Any = self.start(answer)
        while not isinstance(state, Finished):
            state = self.step(state, draws)
        return state.report

    def __repr__(self) -> str:
        shown = ", ".join(f"{float(Fraction(*odds)):.6g}" for odds in dict.fromkeys(self.odds))
        return f"InstantaneousResponse(permanent={self._permanent.name!r}, keep={shown})"


class TableResponse(InstantaneousResponse):
    """Instantaneous response that is any table from permanent answers to reports.

    Parameters
    ----------
    permanent
        The mechanism that draws permanent answers.
    table
        The channel, as a table whose values are the permanent answers.
    form
        The functions that know the parts.
    """

    def __init__(self, permanent: Mechanism, table: TableMechanism, form: Form[Any]) -> None:
        super().__init__(permanent, table, (), form)
        self._table = table

    def keep_probability(self, answer: int) -> Fraction:  # noqa: ARG002
        return Fraction(0)  # no report is the permanent answer by itself

    def probability(self, report: int, answer: int) -> Fraction:
        return self._table.probability(report, answer)

    def start(self, answer: int) -> Hashable:
        return self._table.start(answer)

    def step(self, state: Any, draws: Draws) -> Hashable | Finished:
        return self._table.step(state, draws)

    def __repr__(self) -> str:
        return f"TableResponse(answers={len(self._table.domain)}, outputs={self._table.outputs})"
