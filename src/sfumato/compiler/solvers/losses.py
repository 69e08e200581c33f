"""The least expected loss for many values: an interior-point method on the whole linear program.

Let c_d(x) = p_x·L(x, d) be the weighted loss of decision d, and T_d(x) = Q(d|x). Minimise Σ_d c_d·T_d subject to G·T_d
≥ 0 for each d, one row of G per rule T_x ≤ e^E[x,z]·T_z of the policy, and Σ_d T_d = 1. Rules that follow from two
others are left out, so that a value on a grid has rules with its neighbours only.

For any multipliers f_d ≥ 0, every mechanism has c_d·T_d ≥ (c_d - G'f_d)·T_d. Since Σ_d T_d(x) = 1, its loss is at least
Σ_x min_d (c_d - G'f_d)(x). This bound needs neither a converged nor an accurate solution.

A Newton step of the method (Mehrotra 1992, with the centrality correctors of Gondzio 1996) solves H_d·ΔT_d = g_d + Δλ
with H_d = G'·diag(f_d/s_d)·G for the slacks s_d = G·T_d, and Σ_d ΔT_d = 0. The multipliers λ of the sums therefore
solve (Σ_d H_d⁻¹)·Δλ = -Σ_d H_d⁻¹·g_d. All matrices H_d have the pattern of G'G, which is banded for a grid.

Most decisions of a concentrated prior have probability 0 in the best mechanism. The search therefore starts with
decisions that are likely to be used. For the others, the same method minimises (c_d - λ)·v over the likelihood vectors
v of the policy, which gives their multipliers f_d. Decisions with a negative minimum join the search.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, import_late
from sfumato.compiler.solvers.banded import BandedFactors, BandedPattern
from sfumato.compiler.solvers.deadline import GRACE, Deadline, OutOfTime
from sfumato.compiler.solvers.design_weights import Rounds
from sfumato.policy import PairwisePolicy

__all__ = ["FEW_VALUES", "LossDesign", "least_loss"]

#: Number of values up to which rays are generated instead, which gives a vertex of the program in little time.
FEW_VALUES = 64
#: Minimum epsilon between two values; below it, rules are nearly equations, and the method converges slowly.
_LEAST_EPSILON = 1e-3
#: Maximum number of values; for more, the rules that follow from others are not known.
_MOST_VALUES = 1024
#: Processor time in seconds to find the rules that do not follow from others, per triple of values (2 s for 1024).
_RULES_SECONDS = 2e-9
#: Maximum number of products of rules and decisions, and of floats in the factors of all matrices; bounds memory.
_MOST_PRODUCTS, _MOST_STORED = 2**24, 2**28
#: Relative distance of value and bound at which a search ends, first and last. The first one decides which decisions
#: join, and the last one is close to what double precision resolves.
_TOLERANCES = (1e-2, 1e-5)
#: Loss of the bound by decisions that are not part of the search, as a fraction of its distance from the value.
_PRICED = 0.3
#: Fraction of likely decisions above which all decisions join the search, because every step then gives a bound.
_MOST_CHOSEN = 0.6
#: Time of the search per decision, relative to that of the other decisions, by which the time is divided.
_SEARCH_SHARE = 4.0
#: Sum of the products f·s at the start, relative to the loss. Smaller starts are too far from the central path.
_START = 4.0
#: Maximum number of Newton steps.
_MOST_STEPS = 200
#: Maximum fraction of the distance to the nearest face that a step covers.
_STEP_FRACTION = 0.995
#: Minimum length of a step; a shorter one means that double precision is exhausted.
_LEAST_STEP = 1e-4
#: Maximum number of centrality correctors per step.
_CORRECTORS = 3
#: Products f·s outside this range, relative to their target, are corrected.
_CENTRAL = (0.1, 10.0)
#: Aimed increase of the step by a corrector, and the least increase of both steps together that accepts it.
_AIMED_GAIN, _LEAST_GAIN = 0.3, 0.05
#: Maximum number of passes that make the rows sum to one, and the distance from one at which they end.
_PASSES, _ROW_ERROR = 6, 1e-9
#: Maximum distance of the sum of a row from 1 in an iterate that is used.
_ROW_TOLERANCE = 1e-5
#: Relative shifts of the diagonal that are tried until the sum of the inverses has a Cholesky factor.
_SHIFTS = (0.0, 1e-8, 1e-7, 1e-6, 1e-5)
#: Rounding error of a double, relative to the sum of the absolute values of its terms.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class LossDesign:
    """Probabilities of the decisions for each value, and a bound on the loss of every mechanism.

    Parameters
    ----------
    matrix
        ``matrix[x, d]`` is the probability of decision d for value x. Rows sum to one, and rules hold up to rounding.
    bound
        Lower bound on the expected loss of every mechanism that obeys the policy.
    in_time
        Whether the search ended before the deadline.
    """

    matrix: Floats
    bound: float
    in_time: bool


def least_loss(
    policy: PairwisePolicy, losses: Floats, prior: Floats, deadline: Deadline, rounds: Rounds | None = None
) -> LossDesign | None:
    """Search for the mechanism with the least expected loss until the bound meets it or the deadline passes.

    Return None if there are too many values or rules, or epsilons near 0.
    """
    if len(losses) > _MOST_VALUES:
        return None
    if not deadline.extended(GRACE).fits(_RULES_SECONDS * len(losses) ** 3):
        raise OutOfTime
    least = losses.min(axis=1)
    costs = prior[:, None] * (losses - least[:, None])
    epsilons = policy.effective_epsilon_matrix().floats
    if epsilons[~np.eye(len(epsilons), dtype=bool)].min() < _LEAST_EPSILON:
        return None
    deadline.require()
    program = _Program.of(policy.without_sums().epsilon_matrix().floats, costs)
    if program is None:
        return None
    descent = _Descent(program, epsilons, prior, float(prior @ least), deadline, rounds)
    descent.run()
    return LossDesign(descent.matrix, descent.base + descent.bound, in_time=not descent.late)


class _Descent:
    """The search among some of the decisions, and the bound over all of them."""

    def __init__(
        self, program: _Program, epsilons: Floats, prior: Floats, base: float, deadline: Deadline, rounds: Rounds | None
    ) -> None:
        self._program, self._deadline, self._rounds = program, deadline, rounds
        #: Expected loss that no decision avoids; the costs of the program are in excess of it.
        self.base = base
        self.bound = 0.0
        #: The best probabilities so far, one column per decision, and their loss.
        self.matrix = _remapped(epsilons, program.costs)
        self.loss = float((program.costs * self.matrix).sum())
        self._averages = (prior + 1 / len(prior)) / 2
        # The decisions for outputs with likelihoods e^-E[x,z] are nearly those of the best mechanism.
        self._chosen = np.zeros(program.costs.shape[1], dtype=bool)
        self._chosen[(np.exp(-epsilons).T @ program.costs).argmin(axis=1)] = True
        if self._chosen.mean() > _MOST_CHOSEN:
            self._chosen[:] = True
        self._search = self._start()
        #: Whether the time ended a search.
        self.late = False

    def run(self) -> None:
        """Search until the bound meets the loss, the deadline passes, or double precision is exhausted."""
        tolerances = iter(_TOLERANCES)
        tolerance = next(tolerances)
        while True:
            within = self._descend(tolerance)
            if not self._chosen.all():
                added = self._price()
                if added.any() and not self.late:
                    self._chosen |= added
                    self._search = self._start()
                    continue
            tolerance = next(tolerances, 0.0)
            if self.late or not within or tolerance == 0.0:
                return

    def _start(self) -> _Search:
        return _Search(self._program.among(self._chosen), _Rows())

    def _descend(self, tolerance: float) -> bool:
        """Take steps until the loss is close to the bound among the chosen decisions; return whether it is."""
        everything = bool(self._chosen.all())
        share = _SEARCH_SHARE * self._chosen.sum()
        end = self._deadline if everything else self._deadline.part(share / (share + (~self._chosen).sum()))
        search = self._search
        while True:
            matrix = search.matrix
            loss, bound = float((search.costs * matrix).sum()), float(search.floor.sum())
            if loss < self.loss:
                self.loss, self.matrix = loss, np.zeros(self.matrix.shape)
                self.matrix[:, self._chosen] = matrix
            if everything:
                self.bound = max(self.bound, bound)
            self._report()
            if min(loss - bound, float(search.complementarity)) <= tolerance * self._scale:
                return True
            if search.steps == _MOST_STEPS or not search.advance(end):
                self.late |= end.passed
                return False

    def _price(self) -> npt.NDArray[np.bool_]:
        """Bound all decisions at the prices of the search; return the decisions that would lower the loss."""
        floor, others = self._search.floor, ~self._chosen
        gap = max(self.loss - float(floor.sum()), _TOLERANCES[-1] * self._scale)
        program = self._program.among(others).at(self._search.prices)
        pricing = _Pricing(program, self._averages, _PRICED * gap)
        pricing.run(self._deadline)
        self.late |= self._deadline.passed
        self.bound = max(self.bound, float(np.minimum(floor, pricing.floor + self._search.prices).sum()))
        self._report()
        added = np.zeros(len(self._chosen), dtype=bool)
        added[np.flatnonzero(others)[pricing.lower]] = True
        return added

    @property
    def _scale(self) -> float:
        """Size of the losses, to which tolerances are relative."""
        return max(
            abs(self.base + self.loss), abs(self.base + self.bound), _TOLERANCES[-1] * float(self._program.costs.max())
        )

    def _report(self) -> None:
        """Report the least loss and the bound so far."""
        if self._rounds is not None:
            self._rounds(self.base + self.loss, self.base + self.bound)


def _remapped(epsilons: Floats, costs: Floats) -> Floats:
    """Return the exponential mechanism with the best decision for each output, or the best single decision.

    The exponential mechanism (McSherry and Talwar 2007) reports z with probability proportional to e^(-E[x,z]/2). It
    obeys the policy if the epsilons are symmetric.
    """
    size = len(epsilons)
    outputs = np.full((size, size), 1 / size)
    if np.array_equal(epsilons, epsilons.T):
        outputs = np.exp(-epsilons / 2)
        outputs /= outputs.sum(axis=1, keepdims=True)
    matrix = np.zeros(costs.shape)
    np.add.at(matrix.T, (outputs.T @ costs).argmin(axis=1), outputs.T)
    return matrix


class _Program:
    """The rules of a policy as a sparse matrix G, the costs c of each decision, and the pattern of G'·W·G."""

    def __init__(self, rules: Any, outer: Any, pattern: BandedPattern, costs: Floats) -> None:
        self.rules, self.transposed = rules, rules.T.tocsr()
        self._outer, self._pattern, self.costs = outer, pattern, costs
        #: Greatest e^-E[x,z] of any rule.
        self.greatest_ratio = -float(min(rules.data.min(), 0.0))

    @classmethod
    def of(cls, epsilons: Floats, costs: Floats) -> _Program | None:
        """Return the program for epsilons between values, where infinite ones mean no rule; None if it is too large."""
        sparse, (size, decisions) = import_late("scipy.sparse"), costs.shape
        high, low = np.nonzero(np.isfinite(epsilons) & ~np.eye(size, dtype=bool))
        if len(high) * decisions > _MOST_PRODUCTS:
            return None
        # Rules in both directions imply T_x ≥ 0. Other values need a rule for it, written as T_x - 0·T_x ≥ 0.
        cycles = import_late("scipy.sparse.csgraph").connected_components(
            sparse.csr_matrix((np.ones(len(high)), (high, low)), shape=(size, size)), connection="strong"
        )[1]
        alone = np.flatnonzero(np.bincount(cycles)[cycles] == 1)
        ratios = np.concatenate([np.exp(-epsilons[high, low]), np.zeros(len(alone))])
        high, low = np.concatenate([high, alone]), np.concatenate([low, alone])
        number = np.arange(len(high))
        rules = sparse.csr_matrix(
            (np.concatenate([np.ones(len(high)), -ratios]), (np.tile(number, 2), np.concatenate([low, high]))),
            shape=(len(high), size),
        )
        # A rule with weight w adds w to entry (z, z) of G'·W·G, w·a² to (x, x) and -w·a to (x, z), where a = e^-E[x,z].
        ends = np.minimum(high, low), np.maximum(high, low)
        keys = size * np.concatenate([low, high, ends[0]]) + np.concatenate([low, high, ends[1]])
        entries, place = np.unique(keys, return_inverse=True)
        values = np.concatenate([np.ones(len(high)), ratios**2, -ratios])
        outer = sparse.csr_matrix((values, (place, np.tile(number, 3))), shape=(len(entries), len(high)))
        pattern = BandedPattern(entries // size, entries % size, size)
        return None if pattern.stored * decisions > _MOST_STORED else cls(rules, outer, pattern, costs)

    def among(self, decisions: npt.NDArray[np.bool_]) -> _Program:
        """Return the program with some of the decisions."""
        return _Program(self.rules, self._outer, self._pattern, self.costs[:, decisions])

    def at(self, prices: Floats) -> _Program:
        """Return the program with costs c_d - λ."""
        return _Program(self.rules, self._outer, self._pattern, self.costs - prices[:, None])

    def factors(self, weights: Floats, deadline: Deadline, *, add: bool) -> BandedFactors | None:
        """Return the factors of G'·diag(w_d)·G for each column w_d; None if the deadline passes first."""
        return self._pattern.factors(self._outer @ weights, deadline, add=add)

    def reduced(self, multipliers: Floats) -> Floats:
        """Return c_d - G'f_d for each decision."""
        return np.asarray(self.costs - self.transposed @ multipliers)

    def surely_reduced(self, multipliers: Floats) -> Floats:
        """Return c_d - G'f_d for each decision, reduced by its rounding error."""
        errors = np.abs(self.costs) + abs(self.transposed) @ multipliers
        return np.asarray(self.reduced(multipliers) - _ROUNDING * errors)


class _Equations(Protocol):
    """Equations between the probabilities of all decisions."""

    @property
    def axis(self) -> int | None:
        """Axis over which steps and products are taken together: all numbers, or those of one decision."""

    def start(self, shape: tuple[int, int]) -> Floats:
        """Return constant probabilities that solve the equations."""

    def missing(self, probabilities: Floats) -> Floats:
        """Return the right-hand sides minus the left-hand sides."""

    def excess(self, reduced: Floats) -> Floats:
        """Return the reduced costs without their part that multipliers of the equations explain."""

    def prepared(self, factors: BandedFactors) -> Any:
        """Return the data with which ``restored`` solves the equations; None if double precision does not suffice."""

    def restored(self, factors: BandedFactors, prepared: Any, missing: Floats, passes: int) -> Floats:
        """Return the change of the probabilities that adds this much to the left-hand sides, up to an error."""


class _Rows:
    """The equations Σ_d T_d(x) = 1 of a mechanism."""

    axis = None

    def start(self, shape: tuple[int, int]) -> Floats:
        return np.full(shape, 1 / shape[1])

    def missing(self, probabilities: Floats) -> Floats:
        return np.asarray(1 - probabilities.sum(axis=1))

    def excess(self, reduced: Floats) -> Floats:
        return np.asarray(reduced - reduced.mean(axis=1, keepdims=True))

    def prepared(self, factors: BandedFactors) -> Any:
        linalg = import_late("scipy.linalg")
        scales = 1 / np.sqrt(factors.sum_of_inverses.diagonal())
        scaled = factors.sum_of_inverses * scales[:, None] * scales
        if not np.isfinite(scaled).all():
            return None
        for shift in _SHIFTS:
            try:
                return scales, linalg.cho_factor(scaled + shift * np.eye(len(scaled)), check_finite=False)
            except linalg.LinAlgError:
                continue
        return None

    def restored(self, factors: BandedFactors, prepared: Any, missing: Floats, passes: int) -> Floats:
        """Solve for Δλ by conjugate gradients; the sum of the inverses in single precision is the preconditioner."""
        scales, cholesky = prepared
        linalg = import_late("scipy.linalg")
        change = np.zeros((len(missing), factors.count))
        conjugate, previous = np.zeros(len(missing)), np.inf
        for _ in range(passes):
            if not np.abs(missing).max() > _ROW_ERROR:
                break
            prices = scales * linalg.cho_solve(cholesky, scales * missing, check_finite=False)
            product = float(missing @ prices)
            conjugate = prices + product / previous * conjugate
            steps = factors.solve(np.broadcast_to(conjugate[:, None], change.shape))
            sums = steps.sum(axis=1)
            length = product / float(conjugate @ sums)
            change += length * steps
            missing = missing - length * sums
            previous = product
        return change


@dataclass(frozen=True, eq=False)
class _Averages:
    """The equations w·v_d = 1 of a likelihood vector for each decision."""

    weights: Floats
    axis = 0

    def start(self, shape: tuple[int, int]) -> Floats:
        return np.full(shape, 1 / self.weights.sum())

    def missing(self, probabilities: Floats) -> Floats:
        return np.asarray(1 - self.weights @ probabilities)

    def excess(self, reduced: Floats) -> Floats:
        multiples = self.weights @ reduced / (self.weights @ self.weights)
        return np.asarray(reduced - np.outer(self.weights, multiples))

    def prepared(self, factors: BandedFactors) -> Any:
        return factors.solve(np.broadcast_to(self.weights[:, None], (len(self.weights), factors.count)))

    def restored(self, factors: BandedFactors, prepared: Any, missing: Floats, passes: int) -> Floats:  # noqa: ARG002
        return np.asarray(prepared * (missing / (self.weights @ prepared)))


class _Direction(NamedTuple):
    """A change of the probabilities, the slacks and the multipliers, with the longest steps that keep the signs."""

    probabilities: Floats
    slacks: Floats
    multipliers: Floats
    primal: Floats
    dual: Floats


class _Search:
    """The iterates of the interior-point method, from constant probabilities."""

    def __init__(self, program: _Program, equations: _Equations) -> None:
        self._program, self._equations = program, equations
        self._probabilities = equations.start(program.costs.shape)
        self._slacks = np.asarray(program.rules @ self._probabilities)
        # All products f·s are equal at the start.
        products = _START * np.abs(program.costs * self._probabilities).sum(axis=equations.axis)
        self._multipliers = np.maximum(products, np.finfo(np.float64).tiny) / self._per_sum / self._slacks
        #: Number of steps so far.
        self.steps = 0

    @property
    def _per_sum(self) -> int:
        """Number of products in each sum."""
        return self._slacks.size if self._equations.axis is None else len(self._slacks)

    @property
    def matrix(self) -> Floats:
        """The probabilities of a mechanism that obeys the rules.

        Where the sums r of rows are not one, a multiple of M - r is added to the best single decision. The vector M - r
        obeys the rules if M is large enough, because M - r_x ≤ e^E·(M - r_z) for the smallest epsilon E.
        """
        sums = self._probabilities.sum(axis=1)
        total = sums.max() + np.ptp(sums) * self._program.greatest_ratio / (1 - self._program.greatest_ratio)
        matrix = self._probabilities.copy()
        matrix[:, self.costs.sum(axis=0).argmin()] += total - sums
        return np.asarray(matrix / total)

    @property
    def costs(self) -> Floats:
        """The costs of the decisions, one column each."""
        return self._program.costs

    @property
    def values(self) -> Floats:
        """The cost of the probabilities of each decision."""
        return np.asarray((self.costs * self._probabilities).sum(axis=0))

    @property
    def prices(self) -> Floats:
        """The multipliers λ of the sums of the rows."""
        return np.asarray(self._program.reduced(self._multipliers).mean(axis=1))

    @property
    def reduced(self) -> Floats:
        """The reduced costs c_d - G'f_d, less their rounding error."""
        return self._program.surely_reduced(self._multipliers)

    @property
    def floor(self) -> Floats:
        """The least reduced cost of any decision for each value; their sum bounds the loss."""
        return np.asarray(self.reduced.min(axis=1))

    @property
    def complementarity(self) -> Floats:
        """The sum of the products f·s, the distance of cost and bound without rounding errors."""
        return np.asarray((self._multipliers * self._slacks).sum(axis=self._equations.axis))

    def keep(self, decisions: npt.NDArray[np.bool_]) -> None:
        """Continue with some of the decisions."""
        self._program = self._program.among(decisions)
        self._probabilities = self._probabilities[:, decisions]
        self._slacks, self._multipliers = self._slacks[:, decisions], self._multipliers[:, decisions]

    @np.errstate(all="ignore")  # a step that is not finite is rejected
    def advance(self, deadline: Deadline) -> bool:
        """Take a Newton step; return False and keep the iterate if time or double precision does not suffice."""
        direction = self._direction(deadline)
        if direction is None:
            return False
        axis = self._equations.axis
        primal, dual = (np.minimum(1.0, _STEP_FRACTION * step) for step in (direction.primal, direction.dual))
        probabilities = self._probabilities + primal * direction.probabilities
        multipliers = self._multipliers + dual * direction.multipliers
        slacks = np.asarray(self._program.rules @ probabilities)
        valid = (slacks.min(axis=axis) > 0) & (multipliers.min(axis=axis) > 0) & (probabilities.min(axis=axis) > 0)
        errors = np.abs(self._equations.missing(probabilities))
        valid &= (errors.max() if axis is None else errors) <= _ROW_TOLERANCE
        valid &= np.maximum(primal, dual) >= _LEAST_STEP
        self._probabilities = np.where(valid, probabilities, self._probabilities)
        self._slacks = np.where(valid, slacks, self._slacks)
        self._multipliers = np.where(valid, multipliers, self._multipliers)
        self.steps += 1
        return bool(np.any(valid))

    def _direction(self, deadline: Deadline) -> _Direction | None:
        """Return the direction of the next step; None if time or double precision does not suffice."""
        multipliers, slacks, axis = self._multipliers, self._slacks, self._equations.axis
        factors = self._program.factors(multipliers / slacks, deadline, add=axis is None)
        prepared = None if factors is None else self._equations.prepared(factors)
        if factors is None or prepared is None:
            return None
        newton = _Newton(self._program, self._equations, factors, prepared, self._probabilities, multipliers, slacks)
        mean = self.complementarity / self._per_sum
        affine = newton.direction(-multipliers * slacks, passes=1)
        products = (multipliers + np.minimum(1.0, affine.dual) * affine.multipliers) * (
            slacks + np.minimum(1.0, affine.primal) * affine.slacks
        )
        target = mean * (products.sum(axis=axis) / self._per_sum / mean) ** 3
        aims = target - multipliers * slacks - affine.slacks * affine.multipliers
        direction = newton.direction(aims)
        for _ in range(_CORRECTORS if axis is None else 0):
            if deadline.passed:
                break
            primal, dual = (np.minimum(1.0, step + _AIMED_GAIN) for step in (direction.primal, direction.dual))
            products = (slacks + primal * direction.slacks) * (multipliers + dual * direction.multipliers)
            low, high = (limit * target for limit in _CENTRAL)
            aims = aims + np.maximum(np.clip(products, low, high) - products, -high)
            corrected = newton.direction(aims)
            gains = [
                float(np.minimum(1.0, a) - np.minimum(1.0, b))
                for a, b in zip(corrected[3:], direction[3:], strict=True)
            ]
            if min(gains) < -_LEAST_GAIN or sum(gains) < _LEAST_GAIN:
                break
            direction = corrected
        return direction


class _Newton:
    """The linear equations of a Newton step at one iterate."""

    def __init__(
        self,
        program: _Program,
        equations: _Equations,
        factors: BandedFactors,
        prepared: Any,
        probabilities: Floats,
        multipliers: Floats,
        slacks: Floats,
    ) -> None:
        self._program, self._equations, self._factors, self._prepared = program, equations, factors, prepared
        self._multipliers, self._slacks = multipliers, slacks
        self._missing = equations.missing(probabilities)
        self._excess = equations.excess(program.reduced(multipliers))

    def direction(self, aims: Floats, passes: int = _PASSES) -> _Direction:
        """Return the direction that changes each product f·s by its aim, to first order."""
        multipliers, slacks = self._multipliers, self._slacks
        change = self._factors.solve(self._program.transposed @ (aims / slacks) - self._excess)
        # The missing part is that of the iterate plus that of the change, whose target is 0.
        missing = self._missing + self._equations.missing(change) - self._equations.missing(np.zeros_like(change))
        change += self._equations.restored(self._factors, self._prepared, missing, passes)
        slack_change = np.asarray(self._program.rules @ change)
        multiplier_change = (aims - multipliers * slack_change) / slacks
        steps = (
            _longest(numbers, changes, self._equations.axis)
            for numbers, changes in ((slacks, slack_change), (multipliers, multiplier_change))
        )
        return _Direction(change, slack_change, multiplier_change, *steps)


def _longest(numbers: Floats, changes: Floats, axis: int | None) -> Floats:
    """Return the longest step along the changes that keeps positive numbers at least 0."""
    fastest = np.asarray((-changes / numbers).max(axis=axis))
    return np.asarray(np.where(fastest > 0, 1 / fastest, np.inf))


class _Pricing:
    """The least (c_d - λ)·v over likelihood vectors v with w·v = 1, for each decision of a program."""

    def __init__(self, program: _Program, weights: Floats, tolerance: float) -> None:
        self._search = _Search(program, _Averages(weights))
        self._weights, self._tolerance = weights, tolerance
        self._open = np.arange(program.costs.shape[1])
        #: The least reduced cost c_d - λ - G'f_d of any decision for each value.
        self.floor = np.full(len(weights), np.inf)
        #: Numbers of the decisions with a minimum below zero, beyond the tolerance.
        self.lower: list[int] = []

    def run(self, deadline: Deadline) -> None:
        """Take steps until the sign of every minimum is known, or the deadline passes."""
        while len(self._open):
            moving = self._search.steps < _MOST_STEPS and self._search.advance(deadline)
            reduced = self._search.reduced
            least, values = (reduced / self._weights[:, None]).min(axis=0), self._search.values
            negative = values < -self._tolerance
            settled = (least >= -self._tolerance) | (negative & (values - least <= np.abs(values)))
            if not moving:
                settled[:] = True
            self.floor = np.minimum(self.floor, reduced[:, settled].min(axis=1, initial=np.inf))
            self.lower += self._open[settled & negative].tolist()
            self._open = self._open[~settled]
            self._search.keep(~settled)
