"""Law of the counts of unary encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato._core import Floats, Integers
from sfumato.mechanisms.mixture import ONE
from sfumato.mechanisms.reports.count_laws import multinomial
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["draw_counts"]


def draw_counts(mechanism: UnaryEncoding, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the number of reports with each bit set, among the reports of n people."""
    people = multinomial(generator, n, truth)
    return generator.binomial(people, mechanism.own / ONE) + generator.binomial(n - people, mechanism.other / ONE)
