"""Linear programs over a slice of a cone, each started from the solution of the last one."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.deadline import NEVER, Deadline, OutOfTime
from sfumato.errors import SolverFailed

__all__ = ["LinearProgram", "best_weights"]


#: Maximum violation of a row by a vertex; rounding to an exact mechanism must compensate for it.
_FEASIBILITY = 1e-9
#: Codes of the dual and the primal simplex method in the options of the solver.
_DUAL, _PRIMAL = 1, 4
#: Status strings of the solver.
_OPTIMAL, _TIME_LIMIT = "Optimal", "Time limit reached"


class LinearProgram:
    """Maximise linear functions over {v ≥ 0: rows·v ≥ 0, p·v = 1}, with optional limits on ``directions``·v.

    Rows may have more columns than p. The additional variables reduce the number of rules. A row that compares one
    coordinate with the average p·v = 1 is a bound of that coordinate, which costs no time. All rows of a prior policy
    at its own prior have this form, and so does a limit of a direction along an axis.
    """

    def __init__(self, rows: Floats, prior: Floats, directions: Floats) -> None:
        self.prior = prior
        self._costs = np.zeros(rows.shape[1])
        self._lows, self._highs, others = _bounds(rows, prior)
        self._axes = np.where((directions != 0).sum(axis=1) == 1, (directions != 0).argmax(axis=1), -1)
        self._factors = directions[np.arange(len(directions)), self._axes]
        self._first = len(others) + 1
        self._solver = _solver(self._lows, self._highs, others, prior, directions[self._axes < 0])
        # Without directions only the costs change, and the last vertex stays feasible.
        self._strategy = _DUAL if len(directions) else _PRIMAL
        self._solver.setOptionValue("simplex_strategy", self._strategy)

    def farthest(
        self, direction: Floats, low: Floats | None = None, high: Floats | None = None, deadline: Deadline = NEVER
    ) -> Floats | None:
        """Return the vertex with the greatest inner product; None if the limits are infeasible or time runs out."""
        solver, size = self._solver, len(self.prior)
        self._costs[:size] = direction
        solver.changeColsCost(len(self._costs), np.arange(len(self._costs), dtype=np.int32), self._costs)
        if low is not None and high is not None:
            self._hold(low, high)
        solver.setOptionValue("time_limit", solver.getRunTime() + deadline.left)  # counted from the first run
        solver.run()
        if low is None and not self._is_solved() and not self.ran_out_of_time:
            # The last basis may be unsuitable: restart with the other method, then with a larger tolerance.
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
        """Whether the deadline ended the last program."""
        return self._status() == _TIME_LIMIT

    def _is_solved(self) -> bool:
        return self._status() == _OPTIMAL

    def _status(self) -> str:
        return str(self._solver.modelStatusToString(self._solver.getModelStatus()))

    def add(self, rows: Floats) -> None:
        """Add rows to a program without directions."""
        for row in rows:
            used = np.flatnonzero(row).astype(np.int32)
            self._solver.addRow(0.0, np.inf, len(used), used, row[used])

    def _hold(self, low: Floats, high: Floats) -> None:
        """Set the limits of each direction."""
        along = self._axes >= 0
        ends = np.sort(np.stack([low[along], high[along]]) / self._factors[along], axis=0)
        axes = self._axes[along]
        lows, highs = np.maximum(ends[0], self._lows[axes]), np.minimum(ends[1], self._highs[axes])
        self._solver.changeColsBounds(len(axes), axes.astype(np.int32), lows, np.maximum(lows, highs))
        for number, (least, most) in enumerate(zip(low[~along].tolist(), high[~along].tolist(), strict=True)):
            self._solver.changeRowBounds(self._first + number, least, most)


def _bounds(rows: Floats, prior: Floats) -> tuple[Floats, Floats, Floats]:
    """Return lower and upper bounds of the coordinates at p·v = 1, and the rows that are not such bounds."""
    lows, highs = np.zeros(rows.shape[1]), np.full(rows.shape[1], np.inf)
    if not len(rows) or len(prior) < 3 or rows.shape[1] > len(prior):
        return lows, highs, rows
    # r·v ≥ 0 with r = c·p + d·e_x means c + d·v_x ≥ 0. The median of the ratios r/p is c.
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
    """Minimise costs·w subject to equations·w = right and w ≥ 0.

    Parameters
    ----------
    costs
        The cost of each weight.
    equations
        The coefficients, one row per equation.
    right
        The right-hand side of each equation.
    tolerance
        Maximum violation of a constraint.
    deadline
        Time by which the solver must end.

    Returns
    -------
    tuple
        The weights, the multiplier of each equation, and the least cost.

    Raises
    ------
    OutOfTime
        If the deadline passes first.
    SolverFailed
        If no solution exists within the tolerance.
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
        raise SolverFailed(
            f"a linear program of the search was not solved (solver status: {status}). Raise max_seconds, or use "
            "plan(), which also compares mechanisms that need no search."
        )
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual), float(solver.getInfo().objective_function_value)


def _quiet_solver() -> Any:
    """Return a solver without output, on one thread."""
    solver = import_late("highspy").Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver


def _solver(lows: Floats, highs: Floats, rows: Floats, prior: Floats, directions: Floats) -> Any:
    """Return a solver for the program, with bounds of coordinates and one row per rule and direction."""
    highspy, solver = import_late("highspy"), _quiet_solver()
    solver.setOptionValue("presolve", "off")  # keeps the program, so that the last basis stays valid
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
