"""The optimal design: against closed forms, against independent programs, with bounds that hold, and exact."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st

import sfumato as sf
from sfumato._core.exact import information
from sfumato.compiler import goal_of
from sfumato.compiler.solvers.clusters import trace_of_clusters
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.solvers.estimation import Effort, best_design, solve_design
from sfumato.compiler.solvers.goals import Estimation, MutualInformation
from sfumato.compiler.solvers.optimization import optimal_until
from sfumato.compiler.solvers.pricing import greatest
from sfumato.compiler.solvers.relaxation import least_trace
from sfumato.compiler.solvers.slice import Slice
from sfumato.compiler.solvers.utilities import ConvexUtility
from sfumato.datasets import data_folder, us_grid
from sfumato.errors import InvalidInput, LimitExceeded, NoAnswer
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.binary import binary_for_policy
from support.policies import random_metric, random_pairwise

Floats = npt.NDArray[np.float64]


def soaking(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--soak", default=False))


def check(optimum: sf.Optimum, policy: sf.Policy) -> None:
    """The mechanism obeys the policy, exactly; value and bound stand in the right order."""
    assert sf.audit(optimum.mechanism, policy).holds
    better, worse = sorted([optimum.value, optimum.bound], reverse=not optimum.smaller_is_better)
    assert optimum.bound == pytest.approx(better, rel=1e-7, abs=1e-9)
    assert optimum.value == pytest.approx(worse, rel=1e-7, abs=1e-9)


def same_up_to_order(first: Floats, second: Floats, tolerance: float) -> bool:
    """Whether two matrices have the same columns."""
    if first.shape != second.shape:
        return False
    ordered = [matrix[:, np.lexsort(np.round(matrix, 5))] for matrix in (first, second)]
    return bool(np.abs(ordered[0] - ordered[1]).max() <= tolerance)


# -- closed forms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
@pytest.mark.parametrize("k", [4, 6, 8])
def test_the_uniform_optimum_is_ye_and_bargs(k: int, epsilon: str) -> None:
    policy = sf.Uniform(sf.Domain.range(k), epsilon)
    optimum = sf.optimal(policy)
    assert optimum.value == pytest.approx(SubsetSelection(policy.domain, epsilon).risk(1), rel=1e-6)
    assert optimum.gap < 1e-5
    assert optimum.status == "optimal"
    check(optimum, policy)


@pytest.mark.parametrize("back", ["0.3", "1", "4", "inf"])
@pytest.mark.parametrize("forth", ["0.2", "ln 3", "2.5", "inf"])
def test_the_binary_optimum_is_the_closed_form(forth: str, back: str) -> None:
    policy = sf.Pairwise(sf.Domain(["a", "b"]), [[0, forth], [back, 0]])
    optimum = sf.optimal(policy)
    best = binary_for_policy(policy)
    assert optimum.value == pytest.approx(best.risk(1), rel=1e-6)
    assert same_up_to_order(optimum.mechanism.matrix(), best.matrix(), 1e-6)
    check(optimum, policy)


@pytest.mark.parametrize(("secrets", "others", "epsilon"), [(2, 2, 1), (2, 3, 3), (3, 2, 4)])
def test_a_secret_under_anything_at_large_epsilon_is_secret_randomized_response(
    secrets: int, others: int, epsilon: int
) -> None:
    """RLDP Theorem 7, for distributions of full support."""
    domain = sf.Domain.product(S=range(secrets), U=range(others))
    policy = sf.Secret(domain, "S", epsilon, sf.Anything())
    p = np.random.default_rng(5).dirichlet(np.full(len(domain), 5.0))
    optimum = sf.optimal(policy, "mutual-information", prior=p)
    rr = sf.mechanisms.SecretRandomizedResponse(domain, "S", epsilon)
    assert optimum.value == pytest.approx(MutualInformation().value(rr.matrix(), p), rel=1e-6)
    assert same_up_to_order(optimum.mechanism.matrix(), rr.matrix(), 1e-6)
    check(optimum, policy)


def test_policies_that_ask_everything_or_nothing_have_trivial_mechanisms() -> None:
    domain = sf.Domain.range(5)
    constant = sf.optimal(sf.Uniform(domain, 0))
    assert constant.mechanism.matrix().tolist() == [[1.0]] * 5
    assert constant.value == constant.bound == math.inf
    free = sf.Pairwise(domain, [[0 if x == y else "inf" for x in range(5)] for y in range(5)])
    for utility in ("estimation", "mutual-information", "mmse", sf.ExpectedLoss(1 - np.eye(5))):
        identity = sf.optimal(free, utility)
        assert same_up_to_order(identity.mechanism.matrix(), np.eye(5), 0)
        check(identity, free)
    assert sf.optimal(free).value == pytest.approx(0.8)  # 1 - |p|²: no noise but that of the sample
    assert sf.optimal(free, "mmse").value == 0
    large = sf.Pairwise(sf.Domain.range(15), {})
    assert same_up_to_order(sf.optimal(large).mechanism.matrix(), np.eye(15), 0)


def test_values_that_may_not_be_told_apart_share_their_rows() -> None:
    levels = [[0 if x == y or x + y == 1 else 1 for x in range(5)] for y in range(5)]
    policy = sf.Pairwise(sf.Domain.range(5), levels)
    for utility in ("estimation", "mutual-information", "mmse"):
        optimum = sf.optimal(policy, utility)
        matrix = optimum.mechanism.matrix()
        assert matrix[0].tolist() == matrix[1].tolist()
        check(optimum, policy)
    assert sf.optimal(policy).value == math.inf
    merged = sf.optimal(sf.Uniform(sf.Domain.range(4), 1), "mutual-information", prior=[0.4, 0.2, 0.2, 0.2])
    assert sf.optimal(policy, "mutual-information").value == pytest.approx(merged.value, rel=1e-6)


# -- independent programs --------------------------------------------------------------------------------


def test_the_design_is_that_of_a_conic_solver() -> None:
    """min tr X with [[J, I], [I, X]] positive semidefinite, by Clarabel, over all rays of small policies."""
    import clarabel  # type: ignore[import-untyped]
    from scipy import sparse

    for seed in range(5):
        k = 4
        slice_ = Slice.of(random_pairwise(seed, k), np.full(k, 1 / k))
        rays = slice_.all_vertices()
        assert rays is not None
        columns, rows = np.tril_indices(2 * k)
        scales = np.where(rows == columns, 1.0, math.sqrt(2))
        own_columns, own_rows = np.tril_indices(k)
        of_rays = np.where(columns < k, rays[:, rows % k] * rays[:, columns % k], 0).T * scales[:, None]
        of_x = np.zeros((len(rows), len(own_rows)))
        bottom = np.flatnonzero(rows >= k)
        of_x[bottom, np.arange(len(bottom))] = scales[bottom]
        nothing = np.zeros((k, len(own_rows)))
        matrix = sparse.csc_matrix(
            np.block([[rays.T, nothing], [-np.eye(len(rays)), np.zeros((len(rays), len(own_rows)))], [-of_rays, -of_x]])
        )
        offset = np.concatenate([np.ones(k), np.zeros(len(rays)), np.where(columns == rows + k, scales, 0.0)])
        cost = np.concatenate([np.zeros(len(rays)), (own_rows == own_columns).astype(float)])
        settings_ = clarabel.DefaultSettings()
        settings_.verbose = False
        cones = [clarabel.ZeroConeT(k), clarabel.NonnegativeConeT(len(rays)), clarabel.PSDTriangleConeT(2 * k)]
        size = matrix.shape[1]
        solver = clarabel.DefaultSolver(sparse.csc_matrix((size, size)), cost, matrix, offset, cones, settings_)
        assert solve_design(rays)[3] == pytest.approx(solver.solve().obj_val, rel=1e-6)


def test_mutual_information_is_that_of_all_staircases() -> None:
    """Under Uniform every ray has two levels (Kairouz, Oh, Viswanath 2016), so they can be listed without geometry."""
    from scipy.optimize import linprog

    k, ratio = 4, math.exp(0.8)
    p = np.array([0.5, 0.25, 0.15, 0.1])
    rays = np.array([np.where(high, ratio, 1.0) for high in itertools.product([0, 1], repeat=k)])
    rays /= (rays @ p)[:, None]
    information = (rays * np.log(rays)) @ p
    listed = linprog(-information, A_eq=rays.T, b_eq=np.ones(k), method="highs")
    optimum = sf.optimal(sf.Uniform(sf.Domain.range(k), "0.8"), "mutual-information", prior=p)
    assert optimum.value == pytest.approx(-listed.fun, rel=1e-7)


@pytest.mark.parametrize("scale", [1, 1e-3, 1e-6, 1e-8])
def test_mutual_information_of_next_to_nothing_is_exact(scale: float) -> None:
    """Against interval arithmetic on the same doubles, whose last places are a share 1e-16/scale of what is told."""
    generator = np.random.default_rng(5)
    for k in (2, 3, 10):
        matrix = (1 + scale * generator.uniform(-1, 1, (k, k))) / k
        p = generator.dirichlet(np.ones(k))
        rows, weights = [[Fraction(q) for q in row] for row in matrix.tolist()], [Fraction(q) for q in p.tolist()]
        law = [sum(w * row[y] for w, row in zip(weights, rows, strict=True)) / sum(weights) for y in range(k)]
        told = information(
            (w * row[y], row[y] / Fraction(law[y])) for w, row in zip(weights, rows, strict=True) for y in range(k)
        )
        assert MutualInformation().value(matrix, p) == pytest.approx(told, rel=1e-14 / scale, abs=0)


@pytest.mark.parametrize("epsilon", ["1e-3", "1e-5"])
def test_the_solver_sees_how_little_is_told(epsilon: str) -> None:
    optimum = sf.optimal(sf.Uniform(sf.Domain.range(4), epsilon), "mutual-information")
    assert optimum.value == pytest.approx(float(epsilon) ** 2 / 8, rel=1e-3)  # half of the values against the others
    assert optimum.gap < 1e-4


def near_zero(epsilon: str) -> list[sf.Policy]:
    product = sf.Domain.product(S=["a", "b"], U=["x", "y"])
    joint, counts = [["1/4", "1/4"], ["1/10", "4/10"]], [[25, 25], [10, 40]]
    return [
        sf.Prior(sf.Domain.range(4), ["0.4", "0.3", "0.2", "0.1"], epsilon),
        sf.Prior(sf.Domain.range(3), ["0.5", "0.3", "0.2"], epsilon, side="upper"),
        sf.Prior(sf.Domain.range(2), ["0.4", "0.6"], epsilon),
        sf.Metric(sf.Domain.range(4), "absolute", epsilon),
        sf.Blocks(sf.Domain.range(4), [0, 0, 1, 1], epsilon),
        sf.Blocks(sf.Domain.range(4), [0, 0, 1, 1], epsilon, across=1),
        sf.Pairwise(sf.Domain.range(3), [[0, epsilon, 1], [2, 0, 1], ["inf", 1, 0]]),
        sf.Secret(product, "S", epsilon, sf.Known(joint)),
        sf.Secret(product, "S", epsilon, sf.ChiSquare(counts)),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("counted_time")
@pytest.mark.parametrize("utility", ["estimation", "worst-estimation", "mutual-information"])
@pytest.mark.parametrize("epsilon", ["0", "1e-300", "1e-9", "1e-5"])
def test_levels_at_zero_or_near_it_have_a_mechanism_or_a_sentence(epsilon: str, utility: str) -> None:
    """What is found obeys, exactly; what doubles cannot find is refused in words."""
    refusals = []
    for policy in near_zero(epsilon):
        try:
            optimum = sf.optimal(policy, utility, max_seconds=1)
        except NoAnswer as error:
            refusals.append(str(error))
        else:
            assert sf.audit(optimum.mechanism, policy).holds
    assert all(re.search("near 0|linear program", refusal) for refusal in refusals)


@pytest.mark.parametrize(
    ("size", "utility", "epsilon"),
    [
        *itertools.product([4], ["estimation", "worst-estimation"], ["1e-12", "1e-7", "1e-6", "1e-4"]),
        pytest.param(11, "estimation", "1e-6", marks=pytest.mark.slow),
    ],
)
def test_a_level_of_zero_next_to_a_tiny_one_has_an_infinite_error(size: int, utility: str, epsilon: str) -> None:
    """The first two values are equal, and the last two nearly; the search for all others must not fail."""
    levels = [[0 if x == z else 1 for z in range(size)] for x in range(size)]
    levels[0][1] = levels[1][0] = 0
    levels[-1][-2] = levels[-2][-1] = epsilon  # type: ignore[call-overload]
    policy = sf.Pairwise(sf.Domain.range(size), levels)
    optimum = sf.optimal(policy, utility, max_rounds=2)
    assert optimum.value == optimum.bound == math.inf
    assert sf.audit(optimum.mechanism, policy).holds
    ratios = optimum.mechanism.matrix()[2] / optimum.mechanism.matrix()[0]
    assert ratios.max() > 1.5  # other values are told apart


@pytest.mark.parametrize("epsilon", ["0", "1e-9", "1e-5"])
def test_levels_at_zero_or_near_it_are_designed_for(epsilon: str) -> None:
    for policy in near_zero(epsilon)[:-1]:
        assert sf.audit(sf.design(policy), policy).holds


@pytest.mark.parametrize("side", ["both", "upper", "lower"])
@pytest.mark.parametrize("utility", ["estimation", "worst-estimation", "mutual-information"])
def test_a_prior_policy_of_level_zero_has_the_trivial_mechanism(side: str, utility: str) -> None:
    policy = sf.Prior(sf.Domain.range(4), ["0.4", "0.3", "0.3", "0"], 0, side=side)
    made = sf.optimal(policy, utility).mechanism
    assert made.outputs == 1
    assert sf.audit(made, policy).holds
    counts = sf.aggregate(made, sf.privatize(made, [0, 1], sf.InsecureSeeded(1)))
    with pytest.raises(InvalidInput, match="distinguish all values in its reports"):
        _ = sf.estimate(made, counts).frequencies


@pytest.mark.parametrize("epsilon", ["1e-3", "1e-5", "1e-6"])
@pytest.mark.parametrize("k", [3, 4])
def test_no_bound_on_information_is_broken_where_next_to_nothing_is_told(k: int, epsilon: str) -> None:
    optimum = sf.optimal(sf.Metric(sf.Domain.range(k), "absolute", epsilon), "mutual-information")
    assert 0.9999 * optimum.bound < optimum.value <= optimum.bound


def grid_task(side: int, prior: Floats, epsilon: str) -> tuple[sf.Metric, Floats, Floats]:
    points = np.array(list(itertools.product(range(side), repeat=2)), dtype=float)
    distances = np.round(np.linalg.norm(points[:, None] - points, axis=2), 6)
    for middle in range(side**2):
        distances = np.minimum(distances, np.round(distances[:, middle : middle + 1] + distances[middle], 6))
    policy = sf.Metric(sf.Domain.range(side**2), [[f"{x:.6f}" for x in row] for row in distances], epsilon)
    return policy, distances**2, prior / prior.sum()


def direct_loss(policy: sf.Metric, losses: Floats, p: Floats) -> float:
    """The least expected loss as one linear program over the whole matrix."""
    from scipy import sparse
    from scipy.optimize import linprog

    k = len(p)
    cone = sparse.csr_matrix(-Slice.of(policy, p).rows)
    found = linprog(
        (p[:, None] * losses).T.ravel(),
        A_ub=sparse.block_diag([cone] * k),
        b_ub=np.zeros(k * cone.shape[0]),
        A_eq=sparse.hstack([sparse.eye(k)] * k),
        b_eq=np.ones(k),
        method="highs-ipm",
    )
    assert found.status == 0
    return float(found.fun)


def test_the_expected_loss_of_a_place_is_the_optimum_of_the_whole_program() -> None:
    policy, losses, p = grid_task(4, np.random.default_rng(2).dirichlet(np.ones(16)), "1")
    optimum = sf.optimal(policy, sf.ExpectedLoss(losses), prior=p)
    assert optimum.value == pytest.approx(direct_loss(policy, losses, p), rel=1e-6)
    assert optimum.gap < 1e-5
    assert optimum.mechanism.outputs == 16  # an output is a place
    check(optimum, policy)


@pytest.mark.soak
def test_the_expected_loss_on_a_real_map() -> None:
    """Seven by seven regions of the United States with check-ins as the prior: Gowalla's, or invented ones."""
    counts = us_grid(data_folder()).value[:119].reshape(7, 17, 7, 50).sum(axis=(1, 3)).ravel() + 0.5
    policy, losses, p = grid_task(7, counts, "1")
    optimum = sf.optimal(policy, sf.ExpectedLoss(losses), prior=p, max_seconds=300)
    assert optimum.value == pytest.approx(direct_loss(policy, losses, p), rel=1e-6)
    check(optimum, policy)


def test_branch_and_bound_finds_the_greatest_worth() -> None:
    for seed in range(4):
        slice_ = Slice.of(random_pairwise(seed, 5, harmless=1), np.full(5, 0.2))
        rays = slice_.all_vertices()
        assert rays is not None
        _, worth, _, _ = solve_design(slice_.first_rays())
        bound, _ = greatest(slice_, worth, rays[0], Deadline(60), 1e-6)
        assert 0 <= bound - worth.of(rays).max() <= 2e-6
        information = MutualInformation().on(slice_, slice_.prior)
        assert isinstance(information, ConvexUtility)
        prices = np.random.default_rng(seed).normal(size=5)
        exact = float((information.of(rays) - rays @ prices).max())
        bound, found = information.search(slice_, prices, rays[:3], exact + 1e-9, Deadline(60))
        assert exact <= bound + 1e-9
        assert bound == pytest.approx(exact, abs=1e-5)
        assert (information.of(found) - found @ prices).max() == pytest.approx(exact, abs=1e-5)


# -- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fifty_random_pairwise_policies_are_solved(request: pytest.FixtureRequest) -> None:
    """Ten values, two harmless, asymmetric: no closed form is better, and the smallest ε alone is far worse."""
    ratios = []
    for seed in range(50 if soaking(request) else 3):
        policy = random_pairwise(seed, 10, harmless=2)
        plan = sf.plan(policy, 1)
        optimum = sf.optimal(policy)
        check(optimum, policy)
        assert optimum.status == "optimal"
        assert optimum.gap < 1e-4
        assert all(row.risk >= optimum.value * (1 - 1e-6) for row in plan.rows)
        ratios.append(plan.classical.risk / optimum.value)
    assert np.median(ratios) >= 6


class Looks:
    """A clock that goes on by a second with every look at it: what is found in time is the same on every machine."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.mark.slow
def test_a_policy_with_too_many_rays_has_a_gap(request: pytest.FixtureRequest) -> None:
    soak = soaking(request)
    k = 30 if soak else 13
    policy = random_metric(3, k)
    deadline = Deadline(300) if soak else Deadline(4000, Looks())
    optimum = optimal_until(deadline, policy, "estimation", None, None, None)
    check(optimum, policy)
    assert optimum.status in ("gap", "time")
    assert 0 < optimum.gap < (0.05 if soak else 0.25)
    assert all(row.risk >= optimum.value for row in sf.plan(policy, 1, max_seconds=0).rows)


def test_the_relaxation_bounds_the_optimum() -> None:
    for policy in (random_pairwise(1, 5), random_pairwise(2, 6, harmless=2), random_metric(1, 7)):
        k = len(policy.domain)
        slice_ = Slice.of(policy, np.full(k, 1 / k))
        value = sf.optimal(policy).value + 1 / k
        rays = slice_.first_rays()
        bound = least_trace(slice_, rays, solve_design(rays)[0], Deadline(60))
        assert 0.5 * value < bound <= value


def _one_sided(size: int) -> Floats:
    """Epsilons that are small in one direction and large in the other."""
    return np.where(np.arange(size)[:, None] < np.arange(size), 0.2, 5.0) * (1 - np.eye(size))


def test_the_relaxation_goes_on_while_it_is_below_the_trace_without_noise() -> None:
    matrix = np.full((13, 13), np.inf)
    matrix[:7, :7], matrix[7:, 7:] = _one_sided(7), _one_sided(6)
    slice_ = Slice.of(sf.Pairwise(sf.Domain.range(13), matrix), np.full(13, 1 / 13))
    design, _ = best_design(slice_, Deadline(60), effort=Effort(most_rounds=20, target=1e-9))
    parts = [sf.optimal(sf.Pairwise(sf.Domain.range(size), _one_sided(size))).value + 1 / size for size in (7, 6)]
    optimum = (7 * parts[0] + 6 * parts[1]) / 13
    assert 0.8 * optimum < least_trace(slice_, design.rays, design.weights, Deadline(60)) < optimum


def test_a_value_that_does_not_occur_may_be_unlimited_within_its_cluster() -> None:
    matrix = np.full((5, 5), np.inf)
    matrix[:2, 4], matrix[2:4, :4], matrix[2:4, 4] = 1.0, 0.5, 1.5  # only the last value limits the first two
    np.fill_diagonal(matrix, 0)
    policy, prior = sf.Pairwise(sf.Domain.range(5), matrix), np.array([0, 0, 0.3, 0.3, 0.4])

    def trace_of(part: Slice, deadline: Deadline) -> float:
        design, shares = best_design(part, deadline)
        return design.bound + float(shares @ shares)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bound = trace_of_clusters(Slice.of(policy, prior), trace_of, Deadline(60), np.array([0, 0, 0, 0, 1]))
    pair = sf.optimal(sf.Uniform(sf.Domain.range(2), "1/2")).value + 1 / 2
    assert bound == pytest.approx(0.6 * pair + 0.4, rel=1e-6)
    assert bound < sf.optimal(policy, prior=prior.tolist()).value + float(prior @ prior)


def test_parts_without_rules_between_them_are_bounded_one_by_one() -> None:
    """The search over all values does not enumerate them, but its bound enumerates those of each part."""
    matrix, prior = np.full((13, 13), np.inf), np.arange(1, 14) / 91
    matrix[:7, :7], matrix[7:, 7:] = _one_sided(7), _one_sided(6)
    order = np.random.default_rng(0).permutation(13)
    policy = sf.Pairwise(sf.Domain.range(13), matrix[np.ix_(order, order)])
    result = sf.optimal(policy, prior=prior[order].tolist())
    assert result.value == pytest.approx(result.bound, rel=1e-4)
    total = -float(prior @ prior)
    for some in (slice(0, 7), slice(7, 13)):
        weight, shares = prior[some].sum(), prior[some] / prior[some].sum()
        part = sf.optimal(sf.Pairwise(sf.Domain.range(len(shares)), matrix[some, some]), prior=shares.tolist())
        total += weight * (part.bound + float(shares @ shares))
    assert result.bound == pytest.approx(total, rel=1e-6)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5), harmless=st.integers(0, 1))
@settings(max_examples=25, deadline=None)
def test_what_is_found_obeys_the_policy_and_no_mechanism_is_beyond_the_bound(seed: int, k: int, harmless: int) -> None:
    policy = random_pairwise(seed, k, harmless)
    p = np.random.default_rng(seed).dirichlet(np.full(k, 2.0))
    mechanisms = [row.mechanism for row in sf.plan(policy, 1).rows]
    for utility in ("estimation", "mutual-information", "mmse"):
        optimum = sf.optimal(policy, utility, prior=p)
        check(optimum, policy)
        assert optimum.gap < 1e-4
        for mechanism in mechanisms:
            value = goal_of(utility, policy.domain).value(mechanism.matrix(), optimum.prior)
            assert value >= optimum.bound - 1e-7 if optimum.smaller_is_better else value <= optimum.bound + 1e-7


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5))
@settings(max_examples=15, deadline=None)
def test_prior_and_known_secrets_are_cones_like_any_other(seed: int, k: int) -> None:
    generator = np.random.default_rng(seed)
    counts = generator.integers(1, 20, 2 * k)
    shares = [Fraction(int(c), int(counts[:k].sum())) for c in counts[:k]]
    cells = [Fraction(int(c), int(counts.sum())) for c in counts]
    prior = sf.Prior(sf.Domain.range(k), shares, "0.7")
    secret = sf.Secret(sf.Domain.product(S=["x", "y"], U=range(k)), "S", "0.7", sf.Known([cells[:k], cells[k:]]))
    for policy, utility in itertools.product((prior, secret), ("estimation", "mutual-information")):
        optimum = sf.optimal(policy, utility)
        check(optimum, policy)
        assert optimum.gap < 1e-4


@pytest.mark.slow
def test_a_prior_over_many_values_is_solved_with_a_certified_gap(request: pytest.FixtureRequest) -> None:
    soak = soaking(request)
    k = 50 if soak else 16
    shares = np.random.default_rng(1).integers(1, 1000, k)
    policy = sf.Prior(sf.Domain.range(k), [Fraction(int(s), int(shares.sum())) for s in shares], 1)
    for utility in ("mmse", sf.SquaredError({3: 1}), "mutual-information"):
        deadline = Deadline(20) if soak else Deadline(20_000, Looks())
        optimum = optimal_until(deadline, policy, utility, None, None, None)
        check(optimum, policy)
        assert optimum.gap < (0.01 if utility == "mutual-information" else 1e-5)
        assert optimum.prior == pytest.approx([float(share) for share in policy.prior])


# -- the worst case ----------------------------------------------------------------------------------------


def worst_over_a_fine_grid(mechanism: Floats, k: int, parts: int) -> float:
    """The greatest error of the efficient estimate over all distributions in multiples of a share."""
    grid = (np.diff([-1, *bars, parts + k - 1]) - 1 for bars in itertools.combinations(range(parts + k - 1), k - 1))
    return max(Estimation().value(mechanism, (cell + 1e-6) / (cell + 1e-6).sum()) for cell in grid)


@pytest.mark.parametrize("seed", range(4))
def test_the_worst_case_is_a_saddle_point(seed: int) -> None:
    policy = random_pairwise(seed, 4, harmless=1)
    worst = sf.optimal(policy, "worst-estimation")
    check(worst, policy)
    assert worst.status == "optimal"
    assert worst.gap < 1e-5
    # No other mechanism does better at the least favourable distribution...
    assert sf.optimal(policy, prior=worst.prior).value == pytest.approx(worst.value, rel=1e-5)
    # ...and no other distribution does worse to this mechanism.
    matrix = worst.mechanism.matrix()
    assert worst_over_a_fine_grid(matrix, 4, 20) <= worst.value * (1 + 1e-6)
    assert Estimation().value(matrix, worst.prior) == pytest.approx(worst.value, rel=1e-5)
    assert sf.optimal(policy).mechanism.worst_risk(1) >= worst.bound


def test_what_is_best_at_equal_shares_is_worse_at_worst() -> None:
    policy = random_pairwise(1, 8, harmless=2)
    worst, equal = sf.optimal(policy, "worst-estimation"), sf.optimal(policy)
    assert equal.value < 0.9 * worst.value
    assert equal.mechanism.worst_risk(1) > 1.1 * worst.value


def test_the_worst_case_of_symmetric_policies_is_the_uniform_distribution() -> None:
    worst = sf.optimal(sf.Uniform(sf.Domain.range(5), 1), "worst-estimation")
    assert worst.prior == pytest.approx(np.full(5, 0.2), abs=1e-6)
    assert worst.value == pytest.approx(SubsetSelection(sf.Domain.range(5), 1).risk(1), rel=1e-6)


@pytest.mark.slow
def test_the_worst_case_beyond_enumeration_has_a_bound(request: pytest.FixtureRequest) -> None:
    policy = random_metric(3, 12)
    deadline = Deadline(60) if soaking(request) else Deadline(2000, Looks())
    worst = optimal_until(deadline, policy, "worst-estimation", None, None, None)
    check(worst, policy)
    assert worst.gap < 0.4
    fewer = sf.optimal(random_pairwise(1, 5), "worst-estimation", max_outputs=6)
    check(fewer, random_pairwise(1, 5))
    assert fewer.mechanism.outputs <= 6


def test_values_that_may_not_be_told_apart_have_an_infinite_worst_case() -> None:
    levels = [[0 if x == y or x + y == 1 else 1 for x in range(4)] for y in range(4)]
    assert sf.optimal(sf.Pairwise(sf.Domain.range(4), levels), "worst-estimation").value == math.inf


def test_design_takes_the_worst_case_a_loss_and_a_listener() -> None:
    policy = random_pairwise(2, 4, harmless=1)
    rounds: list[sf.Progress] = []
    made = sf.design(policy, utility="worst-estimation", progress=rounds.append)
    assert sf.audit(made, policy).holds
    assert rounds
    assert rounds[-1].value == pytest.approx(rounds[-1].bound, rel=1e-4)
    assert [at.done for at in rounds] == list(range(1, len(rounds) + 1))
    assert {(at.total, at.unit) for at in rounds} == {(None, "rounds")}
    assert sf.design(policy, utility="estimation", progress=rounds.append).hash != made.hash


# -- requests ----------------------------------------------------------------------------------------------


def test_fewer_outputs_on_request() -> None:
    policy = sf.Uniform(sf.Domain.range(6), 1)
    best = sf.optimal(policy)
    fewer = sf.optimal(policy, max_outputs=8)
    assert fewer.mechanism.outputs <= 8 < best.mechanism.outputs
    assert best.value < fewer.value
    assert fewer.status == "gap"
    assert sf.audit(fewer.mechanism, policy).holds
    with pytest.raises(InvalidInput, match="max_outputs must be at least 6"):
        sf.optimal(policy, max_outputs=5)


@pytest.mark.usefixtures("counted_time")
def test_when_time_runs_out_the_answer_is_still_a_mechanism_with_a_bound() -> None:
    policy = random_metric(3, 14)
    rounds: list[sf.Progress] = []
    hurried = sf.optimal(policy, max_seconds=1e-3, progress=rounds.append)
    check(hurried, policy)
    assert hurried.status == "time"
    assert len(rounds) == 1
    information = sf.optimal(policy, "mutual-information", max_seconds=1e-3)
    check(information, policy)
    assert information.status == "time"


def test_a_value_that_never_occurs_is_protected_all_the_same() -> None:
    policy = random_pairwise(4, 4, harmless=1)
    optimum = sf.optimal(policy, "mutual-information", prior=[0.5, 0.5, 0, 0])
    check(optimum, policy)
    assert optimum.prior.tolist() == [0.5, 0.5, 0, 0]


def test_what_cannot_be_meant_is_refused() -> None:
    policy = sf.Uniform(sf.Domain(["a", "b", "c"]), 1)
    refused: dict[str, Callable[[], object]] = {
        "max_seconds must be positive": lambda: sf.optimal(policy, max_seconds=0),
        "utility must be one of": lambda: sf.optimal(policy, "speed"),
        "the labels of the domain must be numbers": lambda: sf.optimal(policy, "mmse"),
        "matrix must have 3 rows": lambda: sf.optimal(policy, sf.ExpectedLoss(np.eye(2))),
        "a table of finite numbers": lambda: sf.ExpectedLoss([1, 2]),
        "be a table of numbers": lambda: sf.ExpectedLoss([["x"]]),
        "numbers must be 3 finite numbers": lambda: sf.optimal(policy, sf.SquaredError([1, 2])),
        "numbers must be numbers": lambda: sf.optimal(policy, sf.SquaredError(["x", "y", "z"])),  # type: ignore[list-item]
        "prior must be left out for the utility 'worst-estimation'": lambda: sf.optimal(
            policy, "worst-estimation", prior=[0.5, 0.2, 0.3]
        ),
        "prior must have 3 entries": lambda: sf.optimal(policy, prior=[1.0]),
    }
    for words, call in refused.items():
        with pytest.raises(InvalidInput, match=words):
            call()


@pytest.mark.slow
def test_more_values_than_the_solver_takes_are_refused_with_what_to_use_instead() -> None:
    policy = sf.Metric(sf.Domain.range(513), "absolute", "0.1")
    with pytest.raises(LimitExceeded, match=r"at most 512 values, not 513\. Use plan\(\), which compares"):
        sf.optimal(policy)
    assert "optimal" not in {row.name for row in sf.plan(policy, 10).rows}


def test_an_optimum_says_what_it_is() -> None:
    optimum = sf.optimal(sf.Uniform(sf.Domain.range(3), 1))
    assert str(optimum).startswith("estimation ")
    assert ", lower bound " in str(optimum)
    assert ", upper bound " in str(sf.optimal(sf.Uniform(sf.Domain.range(3), 1), "mutual-information"))
    assert optimum.utility == "estimation"
