"""Whether one policy implies another, by linear programs over the rules of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import assume
from scipy.optimize import linprog

from support.reference import Case, Rule, Weights, e_to


def vector(weights: Weights, size: int) -> Any:
    dense = np.zeros(size)
    for x, c in weights.items():
        dense[x] = float(c)
    return dense


def row(rule: Rule, size: int) -> Any:
    """left - e^ε·right, in units of 1 + e^ε: at most zero on the cone."""
    limit = float(e_to(rule.level))
    return (vector(rule.left, size) - limit * vector(rule.right, size)) / (1 + limit)


def greatest(rules: Sequence[Rule], rule: Rule, size: int) -> float:
    """max left·T - e^ε·right·T over the cone of ``rules``, cut at sum T = 1, in units of 1 + e^ε."""
    bounds = np.array([row(each, size) for each in rules]).reshape(len(rules), size)
    answer = linprog(
        -row(rule, size), A_ub=bounds if len(rules) else None, b_ub=np.zeros(len(rules)) if len(rules) else None,
        A_eq=np.ones((1, size)), b_eq=[1], method="highs",
    )  # fmt: skip
    assert answer.status == 0
    return -float(answer.fun)


def farthest_beyond(first: Case, second: Case) -> float:
    """How far the first cone reaches beyond a rule of the second: not at all where it lies within."""
    return max((greatest(first.rules, rule, first.size) for rule in second.rules), default=-math.inf)


def implied_by_linear_programs(first: Case, second: Case) -> bool:
    """The oracle, in doubles: ties count as implied, what is too near to tell from a tie is not asked."""
    most = farthest_beyond(first, second)
    assume(not 1e-9 < most < 1e-6)
    return most <= 1e-9


def least_implied(first: Case, rules: Sequence[Rule]) -> float:
    """The least ε at which left·T ≤ e^ε·right·T for all T in the first cone and all these rules."""
    most = 1.0
    bounds = [row(each, first.size) for each in first.rules]
    for rule in rules:
        found = linprog(
            -vector(rule.left, first.size), A_ub=np.array([*bounds, vector(rule.right, first.size)]),
            b_ub=[*[0.0] * len(bounds), 1.0], method="highs",
        )  # fmt: skip
        if found.status != 0:  # T = 0 is feasible, so nothing bounds this ratio
            return math.inf
        most = max(most, -float(found.fun))
    return math.log(most)
