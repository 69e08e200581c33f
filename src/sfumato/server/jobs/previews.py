"""Previews of a survey: the error by level, the error of each share, and simulated results."""

from __future__ import annotations

import time
from statistics import NormalDist
from typing import Any

import numpy as np

from sfumato.collecting import Aggregate
from sfumato.compiler import Plan, plan, truth_distribution, unbiased_errors
from sfumato.errors import SfumatoError
from sfumato.estimation import estimate
from sfumato.mechanisms import count_law_for
from sfumato.policy import policy_from_dict
from sfumato.questions import Question
from sfumato.randomness import insecure_generator

__all__ = ["errors_by_level", "simulated_results"]

#: Confidence level of the intervals of simulated results.
_CONFIDENCE = 0.95
#: Fraction of the time limit after which no further level is planned for.
_LEVELS_FRACTION = 0.3
#: Maximum values for which levels are compared with a short search for the optimal mechanism, and its seconds.
_FEW_VALUES, _SHORT_SEARCH = 12, 0.2


def errors_by_level(request: dict[str, Any], n: int, question: Question | None) -> list[dict[str, Any]]:
    """Return the root mean square standard error of a share at each level of a request, for the same policy otherwise.

    A level whose policy is invalid or has no mechanism is left out, and so are the last levels if time runs out.
    """
    document, rows = request["policy"], []
    deadline = time.monotonic() + _LEVELS_FRACTION * float(request["seconds"])
    for level in request["levels"] or ():
        if time.monotonic() > deadline:
            break
        changed = {**document, "policy": {**document["policy"], "epsilon": level}}
        try:
            policy = policy_from_dict(changed)
            seconds = _SHORT_SEARCH if question is None and len(policy.domain) <= _FEW_VALUES else 0.0
            result = plan(policy, n, question=question, max_bits=request["max_bits"], max_seconds=seconds)
        except SfumatoError:
            continue
        alike = [result.standard_error(row) for row in result.rows if row.classical]
        row = {"epsilon": level, "standard_error": result.standard_error(result.best)}
        rows.append({**row, "alike": min(alike, default=None)})
    return rows


def simulated_results(request: dict[str, Any], result: Plan) -> dict[str, Any] | None:
    """Return the expected shares with their standard errors, and one simulated survey; None without a law of counts.

    Counts are drawn from their law with a fixed seed, so that the same request has the same response.
    """
    if request["expected"] is None:
        return None
    mechanism, domain, question = result.best.mechanism, result.policy.domain, result.question
    expected = truth_distribution("preview", request["expected"], domain)
    law = count_law_for(mechanism)
    if law is None:
        return None
    counts = Aggregate(mechanism.hash, result.n, law(insecure_generator(request["draw"]), result.n, expected))
    drawn = estimate(mechanism, counts, "unbiased")
    if question is None:
        names: list[Any] = list(drawn.values)
        truth = expected
        columns: list[Any] = [drawn.frequencies, drawn.standard_errors, *drawn.interval(_CONFIDENCE)]
        deviations = unbiased_errors(mechanism, result.n, expected)
    else:
        answers = drawn.answers(question)
        names, *columns = [list(column) for column in answers.named_columns(_CONFIDENCE).values()]
        truth, deviations = question.answers_of(expected), np.asarray(columns[1], float)
    numbers = np.column_stack([np.asarray(column, float) for column in (truth, deviations, *columns)]).tolist()
    fields = ("expected", "expected_error", "frequency", "standard_error", "low", "high")
    rows = [{"value": name, **dict(zip(fields, row, strict=True))} for name, row in zip(names, numbers, strict=True)]
    return {"quantile": NormalDist().inv_cdf((1 + _CONFIDENCE) / 2), "rows": rows}
