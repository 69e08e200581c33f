"""A slice of a policy's cone: the likelihood vectors v with v·p = 1, a polytope whose vertices are the rays.

A mechanism is a mixture of such vectors. Output y has probability w_y at p, and Σ_y w_y·v_y = 1 means that every row of
Q(y|x) = w_y·v_y(x) sums to one. Every utility here is convex in v, so vertices suffice.

Values that must be indistinguishable share one coordinate, even if only one direction requires ε = 0: columns with v_x
≤ v_z everywhere and equal sums have v_x = v_z. Values at an epsilon below double precision share a coordinate too.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato._core import ZERO, Floats, import_late
from sfumato.compiler.solvers.answers import Answers
from sfumato.compiler.solvers.deadline import GRACE, NEVER, Deadline, OutOfTime
from sfumato.compiler.solvers.linear_program import LinearProgram
from sfumato.compiler.solvers.local_search import RaySearch, independent_rules
from sfumato.compiler.solvers.rays import distinct, weyl_numbers
from sfumato.compiler.solvers.rules import TOLERANCE, Rules
from sfumato.compiler.solvers.simplices import Simplices
from sfumato.errors import LimitExceeded, SolverFailed
from sfumato.policy import AtLeast, ChiSquare, Known, PairwisePolicy, Policy, Prior, Secret

__all__ = ["FRACTION_WITHIN", "LARGEST_SEARCHED", "Slice", "groups", "pair_rows"]


#: Maximum number of values; a table for more has too many entries to store and to load.
LARGEST_SEARCHED = 512
#: Maximum number of coordinates for enumeration; random pairwise policies then have about four thousand vertices.
_LARGEST_ENUMERATED = 10
#: Seconds of an enumeration for ten coordinates, per pair of rules, and growth factor per coordinate. Measured over
#: random, nearly uniform, uniform and secret policies: at most 2.5 s for 90 rules between 10 values.
_ENUMERATION_SECONDS, _ENUMERATION_GROWTH = 3e-4, 4.0
#: Maximum number of pairs of faces and vertices in one batch; bounds memory.
_MOST_AT_ONCE = 2**22
#: Fraction of the time for a search under listed rules if not all rules can be listed.
FRACTION_WITHIN = 0.1
#: Positions of simplices between the polytope around a confidence set (0) and one within the set (1).
_SHRUNK = (0.1, 0.2, 0.3, 0.45, 0.6, 1.0)
#: Number of bisections to find the largest simplex within the set.
_HALVINGS = 40
#: Number of starts of the local search for initial rays: per coordinate, and at most.
_STARTS, _MOST_STARTS = 6, 384
#: Fraction of the time for initial rays in directions other than the axes.
_STARTS_FRACTION = 0.3
#: Epsilons are limited to this, so that exponentials fit in double precision; larger ones count as infinite.
_MOST_EPSILON = 300.0
#: Maximum number of violated rules that one ray adds.
_MOST_MET = 4
#: Epsilon at or below which values share a coordinate, and width at or below which a slice counts as flat, because
#: double precision does not resolve smaller differences.
_UNRESOLVED = 1e-9
#: Maximum difference at which two rules count as opposite; the slice between them is thin.
_OPPOSED = 1e-5
#: Maximum number of inequalities that are searched for duplicates.
_FEW_ROWS = 4096
#: Maximum number of inequalities; more would make even a small linear program slow.
_MOST_ROWS = 250_000


class Slice:
    """The polytope {v ≥ 0: rows·v ≥ 0, p·v = 1} over groups of values; its solver starts from its last solution.

    If the rules of a policy cannot be listed, ``rows`` contains some of them, and ``obeying`` adds rules that rays
    violate.
    """

    def __init__(
        self,
        rows: Floats | None,
        prior: Floats,
        group_of: npt.NDArray[np.int64],
        compact: Floats | None = None,
        rules: Rules | None = None,
        within: Slice | None = None,
        simplices: Sequence[Simplices] = (),
        epsilons: Floats | None = None,
        answers: Answers | None = None,
    ) -> None:
        if rows is not None:
            self.rows = rows
        self.prior = prior
        self.group_of = group_of
        self.size = len(prior)
        if compact is not None:
            self._compact = compact
        self._rules = rules
        #: Shortest paths between groups under a pairwise policy, otherwise None.
        self.epsilons = epsilons
        #: The answers whose error is minimised; None for the frequencies themselves.
        self.answers = answers
        #: Part of the slice whose rules can be listed; rays in it obey all rules.
        self.within = within
        #: The same slice as a few choices, if the distributions of U form a simplex for each secret. Under a confidence
        #: set: slices of smaller and smaller simplices, whose rays may violate rules; the last slice contains all rays.
        self.simplices = simplices
        #: Whether values share a coordinate although a mechanism could distinguish them below double precision.
        self.is_coarse = False
        self._directions = 0

    @functools.cached_property
    def rows(self) -> Floats:
        """Rows r with r·v ≥ 0. Under a pairwise policy they are built when they are first needed."""
        assert self.epsilons is not None
        return pair_rows(self.epsilons, self.independent)

    @functools.cached_property
    def _compact(self) -> Floats:
        """Rows of the linear program, which may have additional variables."""
        return self.rows

    @functools.cached_property
    def independent(self) -> npt.NDArray[np.bool_]:
        """Which ordered pairs of coordinates of a pairwise policy have a rule that does not follow from two others."""
        assert self.epsilons is not None
        return independent_rules(self.epsilons)

    @functools.cached_property
    def _program(self) -> LinearProgram:
        """Solver without limits on directions, created when it is first needed."""
        return self.linear_program()

    @functools.cached_property
    def ray_search(self) -> RaySearch | None:
        """Local search for rays under a pairwise policy with too many vertices to enumerate, otherwise None."""
        if self.epsilons is None or self.size <= _LARGEST_ENUMERATED:
            return None
        return RaySearch(self.epsilons, self.independent, self.prior)

    @classmethod
    def of(cls, policy: Policy, prior: Floats, unresolved: float = _UNRESOLVED) -> Slice:
        """Return the slice of a policy's cone; values share a coordinate if an epsilon of at most this joins them."""
        rules = within = None
        simplices: Sequence[Simplices] = ()
        if isinstance(policy, Secret) and isinstance(policy.distributions, ChiSquare):
            if float(policy.epsilon) <= _UNRESOLVED:  # only a constant has equal averages under all distributions
                constant = cls(np.zeros((0, 1)), np.ones(1), np.zeros(len(prior), dtype=np.int64))
                constant.is_coarse = policy.epsilon > ZERO
                return constant
            if not policy.epsilon.is_infinite:
                rules, polytope = Rules(policy, policy.distributions), policy.distributions.polytope()
                within = cls.of(Secret(policy.domain, policy.secret, policy.epsilon, polytope), prior)
                simplices = _shrunk(policy, policy.distributions, prior) if within.simplices else ()
            estimate = Known(policy.distributions.estimate)
            policy = Secret(policy.domain, policy.secret, policy.epsilon, estimate)
        elif isinstance(policy, Secret):
            policy = policy.as_pairwise or policy
        if len(policy.domain) > LARGEST_SEARCHED:
            raise LimitExceeded(
                f"the search for the optimal design supports at most {LARGEST_SEARCHED} values, not "
                f"{len(policy.domain)}. Use plan(), which compares mechanisms that support larger domains."
            )
        group_of = groups(policy, unresolved)
        size = int(group_of.max()) + 1
        compact = _compact(policy) if isinstance(policy, Secret) and size == len(prior) else None
        grouped = np.bincount(group_of, weights=prior).astype(np.float64)
        if isinstance(policy, Secret) and isinstance(policy.distributions, AtLeast) and size == len(prior):
            least = np.array(
                [[float(probability) for probability in row] for row in policy.distributions.probabilities]
            )
            simplices = [
                choices for choices in [Simplices.of(policy.cells, least, float(policy.epsilon), prior)] if choices
            ]
        epsilons = _group_epsilons(policy, group_of, size) if isinstance(policy, PairwisePolicy) else None
        rows = None if epsilons is not None else _rows(policy, group_of, size)
        slice_ = cls(rows, grouped, group_of, compact, rules, within, simplices, epsilons)
        slice_.is_coarse = size <= groups(policy).max()
        return slice_

    def at(self, prior: Floats) -> Slice:
        """Return the slice of the same cone at another distribution of the groups."""
        if np.array_equal(prior, self.prior):
            return self
        within = None if self.within is None else self.within.at(prior)
        rows, compact = (None, None) if self.epsilons is not None else (self.rows, self._compact)
        answers = None if self.answers is None else self.answers.at(prior)
        moved = Slice(rows, prior, self.group_of, compact, self._rules, within, epsilons=self.epsilons, answers=answers)
        moved._directions = self._directions
        if self.ray_search is not None:
            moved.ray_search = self.ray_search.at(prior)
        return moved

    def without(self, coordinates: npt.NDArray[np.bool_], prior: Floats) -> Slice:
        """Return a slice at p that contains all possible values of the other coordinates."""
        rows = self.rows[~(self.rows[:, coordinates] > 0).any(axis=1)][:, ~coordinates]
        rest = prior[~coordinates] / prior[~coordinates].sum()
        answers = None if self.answers is None else self.answers.among(np.flatnonzero(~coordinates), rest)
        return Slice(rows, rest, np.arange(len(rest)), answers=answers)

    def among(self, coordinates: npt.NDArray[np.intp]) -> Slice:
        """Return the slice of the rules among some coordinates of a pairwise policy, at their conditional distribution.

        Rules that follow from rules about other coordinates are kept.
        """
        assert self.epsilons is not None
        epsilons, rest = self.epsilons[np.ix_(coordinates, coordinates)], self.prior[coordinates]
        numbers, rest = np.arange(len(coordinates)), rest / rest.sum()
        answers = None if self.answers is None else self.answers.among(coordinates, rest)
        return Slice(None, rest, numbers, epsilons=epsilons, answers=answers)

    @property
    def least_trace(self) -> float:
        """The value of tr(W·J⁻·W') without any noise, which no mechanism exceeds in precision; 1 for frequencies."""
        return 1.0 if self.answers is None else self.answers.least

    def squared_mean(self, coordinates: npt.NDArray[np.intp]) -> float:
        """Return the part of tr(W·J⁻·W') that the answers among some coordinates lack, because their mean is zero.

        It is |W·π|² for the conditional distribution π of the coordinates, and 0 for frequencies.
        """
        if self.answers is None:
            return 0.0
        mean = self.answers.rows[:, coordinates] @ self.prior[coordinates] / self.prior[coordinates].sum()
        return float(mean @ mean)

    @property
    def offset(self) -> float:
        """The difference |W·p|² between tr(W·J⁻·W') and the variance of the answers."""
        return float(self.prior @ self.prior) if self.answers is None else 0.0

    @property
    def is_constant(self) -> bool:
        """Whether the answers have the same weight for all coordinates, so that they are known without a report."""
        return self.answers is not None and self.answers.scale == 0

    @property
    def merges(self) -> bool:
        """Whether the policy makes some values completely indistinguishable."""
        return self.size < len(self.group_of)

    def linear_program(self, directions: Floats | None = None) -> LinearProgram:
        """Return a new solver with optional limits on directions·v."""
        return LinearProgram(self._compact, self.prior, np.zeros((0, self.size)) if directions is None else directions)

    def farthest(self, directions: Floats, deadline: Deadline = NEVER) -> Floats:
        """Return the vertex with the greatest inner product for each direction (row), under the rules known so far.

        After the deadline no further direction is tried, so the vertices belong to the first directions.
        """
        vertices: list[Floats] = []
        for direction in directions:
            if deadline.passed:
                break
            vertex = self._program.farthest(direction, deadline=deadline)
            if vertex is None and not self._program.ran_out_of_time:
                raise SolverFailed(
                    "the search for the optimal mechanism could not solve the linear program of the policy. "
                    "Use plan(), which also compares mechanisms that need no search."
                )
            if vertex is None:
                break
            vertices.append(vertex)
        return np.array(vertices).reshape(len(vertices), self.size)

    def _add(self, rows: Floats) -> None:
        """Add rules to the rows and to the solver."""
        program = self._program
        rows = distinct(rows / np.abs(rows).max(axis=1, keepdims=True))
        self.rows = np.concatenate([self.rows, rows])
        widened = np.zeros((len(rows), self._compact.shape[1]))
        widened[:, : self.size] = rows
        self._compact = np.concatenate([self._compact, widened])
        program.add(widened)

    def obeying(self, rays: Floats, most: int | None = None) -> Floats:
        """Return the rays moved towards the constant vector until they obey all rules; add the violated rules.

        Checking rules that cannot be listed takes long, so only the first ``most`` rays are then checked and returned.
        """
        if self._rules is None:
            return rays
        rays = rays[:most]
        rows, broken = self._rules.closest(rays)
        added = (broken > TOLERANCE) & (broken >= np.sort(broken, axis=1)[:, -_MOST_MET:][:, :1])
        if added.any():
            self._add(rows[added])
        return self._rules.draw_inwards(rays)

    def draw_inwards(self, rays: Floats) -> Floats:
        """Return the rays moved towards the constant vector until they obey all rules."""
        return rays if self._rules is None else self._rules.draw_inwards(rays)

    def ranges(self, directions: Floats, deadline: Deadline = NEVER) -> tuple[Floats, Floats]:
        """Return the least and the greatest inner product with each direction; raise OutOfTime after the deadline."""
        return -self.most(-directions, deadline), self.most(directions, deadline)

    def most(self, directions: Floats, deadline: Deadline = NEVER) -> Floats:
        """Return the greatest inner product with each direction; raise OutOfTime after the deadline."""
        vertices = self.farthest(directions, deadline)
        if len(vertices) < len(directions):
            raise OutOfTime
        return np.asarray(np.einsum("ij,ij->i", directions, vertices))

    def axis_vertices(self, deadline: Deadline = NEVER) -> Floats:
        """Return vertices in the directions of the coordinate axes; raise OutOfTime after the deadline.

        A pairwise policy needs no program: v_x is greatest at v_z = e^-E(x,z)·v_x and least at v_z = e^E(z,x)·v_x,
        where E is the length of the shortest path.
        """
        if self.ray_search is not None:
            assert self.epsilons is not None
            greatest = np.exp(-self.epsilons)
            least = np.exp(np.minimum(self.epsilons.T, _MOST_EPSILON))[np.isfinite(self.epsilons).all(axis=0)]
            vertices = np.concatenate([greatest, least])
            return distinct(np.asarray(vertices / (vertices @ self.prior)[:, None]))
        axes = np.concatenate([np.eye(self.size), -np.eye(self.size)])
        vertices = self.farthest(axes, deadline)
        if len(vertices) < len(axes):
            raise OutOfTime
        return distinct(vertices)

    def spread_vertices(self, count: int, deadline: Deadline = NEVER) -> Floats:
        """Return vertices in this many evenly spread new directions; fewer after the deadline."""
        directions = weyl_numbers(self._directions, count, self.size) - 0.5
        self._directions += count
        return distinct(self.farthest(directions, deadline))

    def first_rays(self, deadline: Deadline = NEVER) -> Floats:
        """Return a few vertices in every direction and the points opposite them; each pair mixes to the constant.

        Vertices of the axes are required (OutOfTime if they take too long). Other vertices get a part of the time.
        """
        if self.within is not None:
            within = self.within.first_rays(deadline)
            if self._rules is not None and not deadline.fits(self._rules.seconds_for(2 * self.size)):
                return within  # these rays obey every rule
            return distinct(np.concatenate([within, self.obeying(self.axis_vertices(deadline))]))
        vertices = self.axis_vertices(deadline)
        if self.ray_search is not None:
            # Rays of great length inform about all values; under one epsilon they form the best design.
            starts = self.ray_search.starts(min(_STARTS * self.size, _MOST_STARTS), vertices)
            part = deadline.part(_STARTS_FRACTION)
            spread = self.ray_search.climb(starts, np.eye(self.size), np.zeros(self.size), part)
            return distinct(np.concatenate([vertices, self.ray_search.opposite(vertices), spread]))
        spread = self.spread_vertices(4 * self.size, deadline.part(_STARTS_FRACTION))
        vertices = distinct(np.concatenate([vertices, spread]))
        centre = np.ones(self.size) / self.prior.sum()
        steps = self._steps_to_faces(vertices, centre)
        apart = np.isfinite(steps)  # a vertex at the centre has no opposite
        opposite = np.maximum(centre + steps[apart, None] * (centre - vertices[apart]), 0.0)
        return distinct(np.concatenate([vertices, opposite]))

    def _steps_to_faces(self, vertices: Floats, centre: Floats) -> Floats:
        """Return the distance from each vertex through the centre to the first face beyond: r·(c + t·(c - v)) = 0."""
        steps = np.full(len(vertices), np.inf)
        sparse = import_late("scipy.sparse")
        step = max(1, _MOST_AT_ONCE // max(len(vertices), self.size))
        faces = np.concatenate([self.rows, np.eye(self.size)])
        for start in range(0, len(faces), step):
            some = sparse.csr_matrix(faces[start : start + step])
            falls = some @ (vertices - centre).T
            falling = falls > 1e-12
            until = np.where(falling, (some @ centre)[:, None] / np.where(falling, falls, 1.0), np.inf)
            steps = np.minimum(steps, until.min(axis=0, initial=np.inf))
        return steps

    def all_vertices(self, deadline: Deadline = NEVER) -> Floats | None:
        """Return every vertex; None if there may be too many.

        The enumeration cannot be interrupted, so it starts only if it fits in the time and the grace period.
        """
        if self.size > _LARGEST_ENUMERATED or self._rules is not None:
            return None
        seconds = _ENUMERATION_SECONDS * len(self.rows) ** 2 * _ENUMERATION_GROWTH ** (self.size - _LARGEST_ENUMERATED)
        if not deadline.extended(GRACE).fits(seconds):
            return None
        if self.size <= 2:  # a point or a segment
            return self.axis_vertices()
        try:
            return _enumerate(self.rows, self.prior)
        except SolverFailed:
            return None


def _compact(secret: Secret) -> Floats:
    """Return the rules of a secret with two additional variables per secret, high_s and low_s.

    Instead of one rule per pair of distributions and secrets: law·T_s ≤ high_s, low_s ≤ law·T_s, high_s ≤ e^ε·low_s'.
    """
    secrets, others = secret.cells.shape
    size = secrets * others
    rows = []
    for s, cells in enumerate(secret.cells):
        for law in secret.distributions.conditionals(s, (secrets, others)):
            for sign, variable in ((-1.0, size + s), (1.0, size + secrets + s)):
                row = np.zeros(size + 2 * secrets)
                row[cells] = sign * np.array([float(probability) for probability in law])
                row[variable] = -sign
                rows.append(row)
    for s, other in itertools.permutations(range(secrets), 2):
        row = np.zeros(size + 2 * secrets)
        row[size + s], row[size + secrets + other] = -float((-secret.epsilon).exp()), 1.0
        rows.append(row)
    return np.array(rows)


def _shrunk(secret: Secret, confidence: ChiSquare, prior: Floats) -> list[Simplices]:
    """Return simplices from the polytope around the confidence set inwards; the last one lies in the set.

    A simplex lies in the set if its corners do. Each secret uses half of the slack that φ_s + φ_s' ≤ κ leaves beyond
    P̂.
    """
    count = len(secret.cells)
    least = np.array([confidence.conditional_ranges(s)[0] for s in range(count)])
    centres, half = confidence.conditional_estimate(), float(confidence.root_radius - 1) / 2

    def is_within(s: int, step: float) -> bool:
        """Return whether the simplex of secret s, shrunk by ``step``, lies in the set."""
        probabilities = (1 - step) * least[s] + step * centres[s]
        corners = probabilities + (1 - probabilities.sum()) * np.eye(len(probabilities))
        observed = confidence.frequencies[s] > 0
        phi = np.sqrt((confidence.frequencies[s, observed] ** 2 / corners[:, observed]).sum(axis=1)).max(initial=0.0)
        return bool(phi - confidence.frequencies[s].sum() <= half)

    inside = np.zeros((count, 1))
    for s in range(count):
        low, high = 0.0, 0.0 if is_within(s, 0.0) else 1.0
        for _ in range(_HALVINGS if high else 0):
            middle = (low + high) / 2
            low, high = (low, middle) if is_within(s, middle) else (middle, high)
        inside[s] = high
    parts = [least + step * inside * (centres - least) for step in _SHRUNK]
    simplices = [Simplices.of(secret.cells, part, float(secret.epsilon), prior) for part in parts]
    return [each for each in simplices if each] if all(simplices) else []


def groups(policy: Policy, epsilon: float = 0.0) -> npt.NDArray[np.int64]:
    """Return the group number of each value; outputs distinguish values of a group by at most this epsilon."""
    size = len(policy.domain)
    if isinstance(policy, Prior) and float(policy.epsilon) <= epsilon:
        return np.zeros(size, dtype=np.int64)  # if no value exceeds the mean, or all reach it, all values are equal
    same = np.eye(size, dtype=bool)
    if isinstance(policy, PairwisePolicy):
        same |= policy.effective_epsilon_matrix().floats <= epsilon
    else:
        for rule in policy.inequalities():
            if len(rule.left) == len(rule.right) == 1 and float(rule.epsilon) <= epsilon:
                same[next(iter(rule.left)), next(iter(rule.right))] = True
    same |= same.T
    for middle in range(size):  # transitive closure
        same |= np.outer(same[:, middle], same[middle])
    return np.unique(same.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def _group_epsilons(policy: PairwisePolicy, group_of: npt.NDArray[np.int64], size: int) -> Floats:
    """Return the shortest paths between groups; a rule for one value of a group applies to the whole group."""
    each = policy.effective_epsilon_matrix().floats
    if size == len(each):
        return np.asarray(each)
    epsilons = np.full((size, size), np.inf)
    np.minimum.at(epsilons, (group_of[:, None], group_of), each)
    for middle in range(size):
        epsilons = np.minimum(epsilons, epsilons[:, middle, None] + epsilons[middle])
    return epsilons


def _rows(policy: Policy, group_of: npt.NDArray[np.int64], size: int) -> Floats:
    """Return rows r with r·v ≥ 0, one for each inequality that does not follow from two others."""
    if size == 1:  # rules do not restrict a constant
        return np.zeros((0, 1))
    if isinstance(policy, Secret) and size == len(group_of):
        return _secret_rows(policy)
    if isinstance(policy, Prior) and size == len(group_of):
        return _prior_rows(policy)
    listed = []
    for rule in policy.inequalities():
        row = np.zeros(size)
        for x, coefficient in rule.right.items():
            row[group_of[x]] += float(coefficient)
        for x, coefficient in rule.left.items():
            row[group_of[x]] -= float(coefficient) * float((-rule.epsilon).exp())
        if np.any(row < 0):
            listed.append(row / np.abs(row).max())
        if len(listed) > _MOST_ROWS:
            raise _too_many_rules()
    return np.unique(np.array(listed), axis=0) if listed else np.zeros((0, size))


def pair_rows(epsilons: Floats, rules: npt.NDArray[np.bool_]) -> Floats:
    """Return one row per rule between two coordinates."""
    pairs = np.argwhere(rules)
    rows = np.zeros((len(pairs), len(epsilons)))
    # Written as v_z ≥ e^-E·v_x, so that no coefficient exceeds one for any epsilon.
    rows[np.arange(len(pairs)), pairs[:, 1]] = 1.0
    rows[np.arange(len(pairs)), pairs[:, 0]] = -np.exp(-epsilons[tuple(pairs.T)])
    return rows


def _too_many_rules() -> LimitExceeded:
    """Return the error for a policy with too many inequalities."""
    return LimitExceeded(
        f"the search for the optimal design supports at most {_MOST_ROWS:,} inequalities, and this policy has more. "
        "Use plan(), which also compares mechanisms that need no search."
    )


def _secret_rows(secret: Secret) -> Floats:
    """Return one row per pair of secrets and pair of their distributions."""
    if secret.epsilon.is_infinite:
        return np.zeros((0, secret.cells.size))
    shape = (secret.cells.shape[0], secret.cells.shape[1])
    laws = []
    for s, cells in enumerate(secret.cells):
        probabilities = np.array(
            [[float(probability) for probability in law] for law in secret.distributions.conditionals(s, shape)]
        )
        rows = np.zeros((len(probabilities), secret.cells.size))
        rows[:, cells] = probabilities
        laws.append(rows)
    count = sum(map(len, laws)) ** 2 - sum(len(rows) ** 2 for rows in laws)
    if count > _MOST_ROWS:
        raise _too_many_rules()
    ratio = float((-secret.epsilon).exp())
    differences = [
        (right[None] - ratio * left[:, None]).reshape(-1, secret.cells.size)
        for left, right in itertools.permutations(laws, 2)
    ]
    rows = np.concatenate(differences)
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    # Sorting many rows would dominate the running time, and the distributions of a secret differ anyway.
    return np.unique(rows, axis=0) if len(rows) <= _FEW_ROWS else rows


def _prior_rows(policy: Prior) -> Floats:
    """Return the rows that compare each value with the average."""
    if policy.epsilon.is_infinite:
        return np.zeros((0, len(policy.prior)))
    average, ratio = np.array([float(probability) for probability in policy.prior]), float((-policy.epsilon).exp())
    each = np.eye(len(average))
    sides = {"upper": average - ratio * each, "lower": each - ratio * average}
    rows = np.concatenate([row for side, row in sides.items() if policy.side in ("both", side)])
    rows = rows[(rows < 0).any(axis=1)]
    return np.unique(rows / np.abs(rows).max(axis=1, keepdims=True), axis=0)


def _enumerate(rows: Floats, prior: Floats) -> Floats:
    """Return all vertices by the intersection of half-spaces around an interior point (qhull)."""
    null_space = import_late("scipy.linalg").null_space
    # The constant 1 lies inside every slice, and directions orthogonal to p keep v·p.
    centre = np.ones(len(prior)) / prior.sum()
    apart = np.abs(rows[:, None] + rows).max(axis=2, initial=0.0)
    opposed, opposite = np.nonzero(apart <= _OPPOSED)
    along = null_space(np.concatenate([prior[None], rows[opposed] - rows[opposite]]), rcond=_OPPOSED)
    width = (rows[opposed] @ centre).min(initial=1.0)
    if width > _UNRESOLVED:  # stretch thin directions to a scale that double precision resolves
        across = null_space(np.concatenate([prior[None], along.T]))
        basis, faces = np.column_stack([along, width * across]), np.concatenate([rows, np.eye(len(prior))])
    else:
        basis, faces = along, np.concatenate([np.delete(rows, opposed, axis=0), np.eye(len(prior))])
    distances = faces @ centre
    normals = faces @ basis / distances[:, None]
    if basis.shape[1] < 2:  # a point or a segment
        ends = np.array([[-1 / normals.min(initial=-1.0)], [-1 / normals.max(initial=1.0)]])[:, : basis.shape[1]]
    else:
        ends = _intersections(np.column_stack([-normals, np.full(len(faces), -1.0)]))
    vertices = centre + ends @ basis.T
    vertices[vertices < 1e-14 * vertices.max()] = 0.0  # remove rounding errors
    return distinct(np.asarray(vertices / (vertices @ prior)[:, None]))


def _intersections(halfspaces: Floats) -> Floats:
    """Return the vertices of a polytope around the origin."""
    spatial = import_late("scipy.spatial")
    inside = np.zeros(halfspaces.shape[1] - 1)
    try:
        polytope = spatial.HalfspaceIntersection(halfspaces, inside)
    except spatial.QhullError:  # faces nearly meet in one vertex; option QJ moves them by about 1e-10
        try:
            polytope = spatial.HalfspaceIntersection(halfspaces, inside, qhull_options="QJ")
        except spatial.QhullError as error:
            raise SolverFailed(
                "the search for the optimal mechanism could not enumerate the reports that the policy allows "
                f"({str(error).splitlines()[0]}). Use plan(), which also compares mechanisms that need no search."
            ) from None
    return np.asarray(polytope.intersections)
