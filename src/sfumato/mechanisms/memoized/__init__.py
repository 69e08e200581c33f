"""Memoized mechanisms: permanent answers and instantaneous responses, for questions that are asked again."""

from __future__ import annotations

from typing import cast

from numpy.random import Generator

from sfumato._core import Floats, Integers
from sfumato.mechanisms.memoized.mechanism import MemoizedMechanism
from sfumato.mechanisms.registry import CountLaw, Family, count_law_for

__all__ = ["MEMOIZED", "MemoizedMechanism"]


def _draw_counts(mechanism: MemoizedMechanism, generator: Generator, n: int, truth: Floats) -> Integers:
    """Draw the counts of one report per person, which have the law of the single mechanism."""
    return cast("CountLaw", count_law_for(mechanism.single))(generator, n, truth)


MEMOIZED = Family(
    mechanisms=(MemoizedMechanism,),
    estimator=lambda mechanism: mechanism.single.estimator,
    report_format=lambda mechanism: mechanism.single.report_format,
    count_law=_draw_counts,
    in_browser=True,
)
