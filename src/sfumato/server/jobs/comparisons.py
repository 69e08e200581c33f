"""Compare the estimates of several collections with the same values, in the process for slow estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.collecting import Aggregate
from sfumato.estimation import Estimate, GroupedEstimate, combine, estimate
from sfumato.mechanisms import mechanism_from_spec
from sfumato.questions import Question

__all__ = ["AGAINST", "compared"]

#: What each group is compared with: the first group, every other group, or all other people together.
AGAINST = ("first", "pairs", "rest")
_COLUMNS = ("difference", "standard_error", "low", "high", "p_value", "adjusted_p_value")


def compared(request: Mapping[str, Any]) -> list[list[Any]]:
    """Return the differences between groups, with a row per pair of groups and answer.

    A row has the numbers of both groups, the name of the answer and the columns of ``Comparison.to_pandas``. The second
    group is None for all other people. Groups may have different mechanisms, because groups are independent.
    """
    mechanisms = [mechanism_from_spec(spec) for spec in request["mechanisms"]]
    counts = [Aggregate.from_json(one) for one in request["counts"]]
    parts: list[Estimate] = [estimate(*pair) for pair in zip(mechanisms, counts, strict=True)]
    if len({mechanism.hash for mechanism in mechanisms}) == 1:
        together = counts[0]
        for one in counts[1:]:
            together = together.merge(one)
        total: Estimate = estimate(mechanisms[0], together)
    else:
        total = combine(parts)
    stated = request["question"]
    question = "frequencies" if stated is None else Question.from_dict(stated)
    answers = GroupedEstimate(dict(enumerate(parts)), total).answers(question)
    against = request["against"]
    comparison = answers.compare(0 if against == "first" else None, rest=against == "rest")
    columns = comparison.to_columns(request["confidence"], simultaneous=True)
    groups = [(int(first), None if against == "rest" else int(second)) for first, second in _pairs(columns)]
    numbers = np.column_stack([columns[name] for name in _COLUMNS]).tolist()
    return [[*pair, name, *row] for pair, name, row in zip(groups, columns["answer"], numbers, strict=True)]


def _pairs(columns: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Return the two groups of each difference."""
    return list(zip(columns["group"], columns["minus"], strict=True))
