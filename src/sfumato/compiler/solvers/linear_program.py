"""Linear programs over a slice of a cone: the same constraints again and again, each from the last solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.errors import SolverFailed

__all__ = ["LinearProgram", "best_weights"]


#: What a vertex breaks of a row must be made up for when a mechanism is rounded.
_FEASIBILITY = 1e-9
#: The numbers of the dual and the primal simplex method in the solver's options.
_DUAL, _PRIMAL = 1, 4
#: The solver's words for how a run ended.
_OPTIMAL, _TIME_LIMIT = "Optimal", "Time limit reached"


class LinearProgram:
    """Maximise over {v ≥ 0: rows·v ≥ 0, p·v = 1}, with each of ``directions``·v between limits where they are given.

    Rows may have more columns than p: variables in addition to v, which make rules fewer. A row that compares one
    coordinate with the average p·v = 1 is a bound of that coordinate, which costs nothing: all rows of a prior policy
    at its own prior are. So is a limit of a direction along an axis.
    """

    def __init__(self, rows: Floats, prior: Floats, directions: Floats) -> None:
        self.prior = prior
        self._costs = np.zeros(rows.shape[1])
        self._lows, self._highs, others = _bounds(rows, prior)
        self._axes = np.where((directions != 0).sum(axis=1) == 1, (directions != 0).argmax(axis=1), -1)
        self._factors = directions[np.arange(len(directions)), self._axes]
        self._first = len(others) + 1
        self._solver = _solver(self._lows, self._highs, others, prior, directions[self._axes < 0])
        # Where only costs change the last vertex stays feasible.
        self._strategy = _DUAL if len(directions) else _PRIMAL
        self._solver.setOptionValue("simplex_strategy", self._strategy)

    def farthest(
        self, direction: Floats, low: Floats | None = None, high: Floats | None = None, deadline: Deadline = NEVER
    ) -> Floats | None:
        """The vertex with the greatest inner product; None where the limits leave nothing, or time runs out."""
        solver, size = self._solver, len(self.prior)
        self._costs[:size] = direction
        solver.changeColsCost(len(self._costs), np.arange(len(self._costs), dtype=np.int32), self._costs)
        if low is not None and high is not None:
            self._hold(low, high)
        solver.setOptionValue("time_limit", solver.getRunTime() + deadline.left)  # it counts from its first run
        solver.run()
        if low is None and not self._is_solved() and not self.ran_out_of_time:
            # The last basis led astray: afresh and by the other method, then less exactly.
            solver.clearSolver()
            solver.setOptionValue("simplex_strategy", _DUAL)
            solver.run()
            if not self._is_solved() and not self.ran_out_of_time:
                solver.clearSolver()
                solver.setOptionValue("primal_feasibility_tolerance", 100 * _FEASIBILITY)
                solver.run()
                solver.setOptionValue("primal_feasibility_tolerance", _FEASIBILITY)
            solver.setOptionValue("simplex_strategy", self._strategy)
        if not self._is_solved():
            return None
        vertex = np.maximum(np.array(solver.getSolution().col_value)[:size], 0.0)
        return np.asarray(vertex / (vertex @ self.prior))

    @property
    def ran_out_of_time(self) -> bool:
        """Whether the last program was ended by its deadline."""
        return self._status() == _TIME_LIMIT

    def _is_solved(self) -> bool:
        return self._status() == _OPTIMAL

    def _status(self) -> str:
        return str(self._solver.modelStatusToString(self._solver.getModelStatus()))

    def add(self, rows: Floats) -> None:
        """More rows; only where there are no directions."""
        for row in rows:
            used = np.flatnonzero(row).astype(np.int32)
            self._solver.addRow(0.0, np.inf, len(used), used, row[used])

    def _hold(self, low: Floats, high: Floats) -> None:
        along = self._axes >= 0
        ends = np.sort(np.stack([low[along], high[along]]) / self._factors[along], axis=0)
        axes = self._axes[along]
        lows, highs = np.maximum(ends[0], self._lows[axes]), np.minimum(ends[1], self._highs[axes])
        self._solver.changeColsBounds(len(axes), axes.astype(np.int32), lows, np.maximum(lows, highs))
        for number, (least, most) in enumerate(zip(low[~along].tolist(), high[~along].tolist(), strict=True)):
            self._solver.changeRowBounds(self._first + number, least, most)


def _bounds(rows: Floats, prior: Floats) -> tuple[Floats, Floats, Floats]:
    """Lower and upper bounds of the coordinates where p·v = 1, and the rows that are none."""
    lows, highs = np.zeros(rows.shape[1]), np.full(rows.shape[1], np.inf)
    if not len(rows) or len(prior) < 3 or rows.shape[1] > len(prior):
        return lows, highs, rows
    # r·v ≥ 0 with r = c·p + d·e_x says c + d·v_x ≥ 0; c is what most of the ratios r/p agree on.
    averages = np.median(rows[:, prior > 0] / prior[prior > 0], axis=1)
    rests = rows - averages[:, None] * prior
    single = (np.abs(rests) > 1e-12 * np.abs(rows).max(axis=1, keepdims=True)).sum(axis=1) == 1
    for average, rest in zip(averages[single].tolist(), rests[single], strict=True):
        x = int(np.abs(rest).argmax())
        if rest[x] > 0:
            lows[x] = max(lows[x], -average / rest[x])
        else:
            highs[x] = min(highs[x], -average / rest[x])
    return lows, highs, rows[~single]


def best_weights(
    costs: Floats, equations: Floats, right: Floats, tolerance: float, deadline: Deadline
) -> tuple[Floats, Floats, float]:
    """Minimise costs·w with equations·w = right and w ≥ 0.

    Parameters
    ----------
    costs
        The cost of each weight.
    equations
        The coefficients, a row for each equation.
    right
        The right side of each equation.
    tolerance
        How far the solver may break a constraint.
    deadline
        When the solver must end.

    Returns
    -------
    tuple
        The weights, the multiplier of each equation, and the least cost.

    Raises
    ------
    OutOfTime
        If the deadline came first.
    SolverFailed
        If there is no solution within the tolerance.
    """
    highspy = import_late("highspy")
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(costs), len(right)
    model.col_cost_ = costs
    model.col_lower_, model.col_upper_ = np.zeros(len(costs)), np.full(len(costs), highspy.kHighsInf)
    model.row_lower_ = model.row_upper_ = right
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    entries = equations != 0
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(entries.sum(axis=1))]).astype(np.int32)
    model.a_matrix_.index_ = np.nonzero(entries)[1].astype(np.int32)
    model.a_matrix_.value_ = equations[entries]
    solver = _quiet_solver()
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(name, tolerance)
    solver.setOptionValue("time_limit", deadline.left)
    solver.passModel(model)
    solver.run()
    status = str(solver.modelStatusToString(solver.getModelStatus()))
    if status == _TIME_LIMIT:
        raise OutOfTime
    if status != _OPTIMAL:
        raise SolverFailed(f"the linear program has no solution: {status}")
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual), float(solver.getInfo().objective_function_value)


def _quiet_solver() -> Any:
    solver = import_late("highspy").Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver


def _solver(lows: Floats, highs: Floats, rows: Floats, prior: Floats, directions: Floats) -> Any:
    highspy, solver = import_late("highspy"), _quiet_solver()
    solver.setOptionValue("presolve", "off")  # the program stays the same, and so does the last basis
    solver.setOptionValue("primal_feasibility_tolerance", _FEASIBILITY)
    infinite = highspy.kHighsInf
    for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
        solver.addVar(low, high)
    solver.addRow(1.0, 1.0, len(prior), np.arange(len(prior), dtype=np.int32), prior)
    for row, least in [*((row, 0.0) for row in rows), *((row, -infinite) for row in directions)]:
        used = np.flatnonzero(row).astype(np.int32)
        solver.addRow(least, infinite, len(used), used, row[used])
    solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return solver
