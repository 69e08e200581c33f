"""Decide whether one policy implies another: every mechanism that obeys the first obeys the second.

A policy is a cone, so the question is whether one cone contains another. All answers are exact. If no exact method is
known, Undecided is raised.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from sfumato._core import ZERO, Epsilon, Terms, exceeds, sign_of_sum
from sfumato.errors import InvalidInput, LimitExceeded, Undecided
from sfumato.policy.base import Inequality, Policy
from sfumato.policy.chi_square import ChiSquare
from sfumato.policy.distributions import Known
from sfumato.policy.epsilon_matrix import LARGEST_DENSE
from sfumato.policy.pairwise import PairwisePolicy, representatives
from sfumato.policy.prior import Prior
from sfumato.policy.product import Product
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform

__all__ = ["binds_nothing", "implies"]

_UNDECIDED = (
    "cannot decide whether a {first} policy implies a {second}: neither a proof nor a counterexample was found. "
    "Audit the mechanism under both policies instead."
)


def implies(first: Policy, second: Policy) -> bool:
    """Return whether every mechanism that obeys one policy also obeys another; the answer is exact.

    Parameters
    ----------
    first
        The policy that mechanisms obey.
    second
        The policy that may follow from it, over the same domain.

    Returns
    -------
    bool
        Whether ``second`` follows from ``first``.

    Raises
    ------
    InvalidInput
        If an argument is not a policy or the domains differ.
    Undecided
        If this package has no exact method for these policies.
    LimitExceeded
        If the comparison needs a dense matrix over more than 4096 values.

    Examples
    --------
    >>> from sfumato import Domain, HighLow, Uniform
    >>> answers = Domain(["no", "yes"])
    >>> implies(Uniform(answers, 1), HighLow(answers, ["yes"], 1))
    True
    >>> implies(HighLow(answers, ["yes"], 1), Uniform(answers, 1))
    False
    """
    for name, policy in (("first", first), ("second", second)):
        if not isinstance(policy, Policy):
            raise InvalidInput("implies", name, "be a Policy", policy)
    if first.domain != second.domain:
        raise InvalidInput("implies", "second", "have the same domain as first", second.domain)
    first, second = _simplest(first), _simplest(second)
    if isinstance(first, PairwisePolicy) and isinstance(second, PairwisePolicy):
        return _pairwise_implies_pairwise(first, second)
    if binds_nothing(second):
        return True
    if binds_nothing(first):
        return False
    if isinstance(first, PairwisePolicy) and isinstance(second, Prior):
        return _pairwise_implies_prior(first, second)
    if isinstance(first, PairwisePolicy) and isinstance(second, Secret):
        return _pairwise_implies_secret(first, second)
    if isinstance(first, Prior) and isinstance(second, PairwisePolicy):
        return _prior_implies_pairwise(first, second)
    if isinstance(first, Prior) and isinstance(second, Prior):
        return _prior_implies_prior(first, second)
    if isinstance(first, Secret) and isinstance(second, Secret):
        same = {**first.parameters(), "epsilon": ""} == {**second.parameters(), "epsilon": ""}
        if same:
            return first.epsilon <= second.epsilon
        if _is_member(first, second) and first.epsilon <= second.epsilon:
            return True
    raise Undecided(
        f"this package has no exact method to decide whether a {first.kind} policy implies a {second.kind} policy. "
        "Audit the mechanism under both policies instead."
    )


def _simplest(policy: Policy) -> Policy:
    """Return the equivalent policy on pairs for a secret under Anything; otherwise the policy itself."""
    pairwise = policy.as_pairwise if isinstance(policy, Secret) else None
    return policy if pairwise is None else pairwise


def binds_nothing(policy: Policy) -> bool:
    """Return whether every mechanism obeys the policy, because its cone contains every unit vector.

    Any finite epsilon between two values or two secrets excludes an output that only one of them can have. A prior
    policy with only the upper side excludes it only if 1/π > e^ε, because such an output makes a value 1/π times as
    probable.
    """
    if isinstance(policy, PairwisePolicy):
        return policy.least[0].is_infinite
    if isinstance(policy, Secret):
        return policy.epsilon.is_infinite
    if isinstance(policy, Prior) and policy.side == "upper":
        return not exceeds(Fraction(1), min(policy.prior), policy.epsilon)
    if isinstance(policy, Prior):
        return policy.epsilon.is_infinite or len(policy.domain) == 1
    return next(iter(policy.inequalities()), None) is None


def _is_member(first: Secret, second: Secret) -> bool:
    """Return whether the second policy has the same secret and one distribution of the first's confidence set."""
    if first.secret != second.secret or not isinstance(second.distributions, Known):
        return False
    return isinstance(first.distributions, ChiSquare) and first.distributions.holds(second.distributions.joint)


def _pairwise_implies_pairwise(first: PairwisePolicy, second: PairwisePolicy) -> bool:
    """Return whether a policy on pairs implies another, by comparing effective epsilons.

    The likelihoods T_z = e^-E*(x,z) lie in the first cone and attain its effective epsilons E*.
    """
    decided = _implied_by_attributes(first, second)
    if decided is not None:
        return decided
    indices = representatives(first.classes(), second.classes())
    if len(indices) > LARGEST_DENSE:
        raise LimitExceeded(
            f"cannot decide whether a {first.kind} policy implies a {second.kind} policy: {len(indices)} values must "
            f"be compared pair by pair, and the limit is {LARGEST_DENSE}. Restrict both policies to fewer values."
        )
    return first.effective_epsilons_on(indices).first_above(second.epsilons_on(indices)) is None


def _implied_by_attributes(first: PairwisePolicy, second: PairwisePolicy) -> bool | None:
    """Return whether a policy implies another, if one is a product and no matrix over all values is needed."""
    if isinstance(first, Product) and isinstance(second, Product):
        # Values that differ in one attribute show that each attribute must imply the other's; sums then follow.
        return all(_pairwise_implies_pairwise(part, second[name]) for name, part in first.policies.items())
    if isinstance(first, Product) and isinstance(second, Uniform):
        return first.greatest_effective[0] <= second.epsilon
    if isinstance(first, Uniform) and isinstance(second, Product):
        return first.epsilon <= second.least[0]
    return None


def _pairwise_implies_prior(first: PairwisePolicy, second: Prior) -> bool:
    """Return whether a policy on pairs implies a prior policy, by bounding the average for each value."""
    if first.greatest_effective[0] <= second.epsilon:
        return True  # ε-LDP implies ε-LIP for every prior
    if len(first.domain) > LARGEST_DENSE:
        raise LimitExceeded(
            f"cannot decide whether a {first.kind} policy implies a prior policy: {len(first.domain)} values must be "
            f"compared pair by pair, and the limit is {LARGEST_DENSE}. Restrict both policies to fewer values."
        )
    matrix = first.effective_epsilon_matrix()
    numerators = np.array([p.numerator for p in second.prior], dtype=object)
    denominators = np.array([p.denominator for p in second.prior], dtype=object)

    def mass_by_epsilon(codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterable[tuple[Epsilon, Fraction]]:
        for code in np.unique(codes):
            members = codes == code
            mass = sum(
                (Fraction(int(n), int(d)) for n, d in zip(numerators[members], denominators[members], strict=True)),
                Fraction(0),
            )
            if mass:
                yield matrix.epsilon(int(code)), mass

    for x in range(len(first.domain)):
        # With T_x = 1, the least average in the cone is Σ π_z·e^-E*(x,z), and the greatest is Σ π_z·e^E*(z,x).
        low = [(mass, -e) for e, mass in mass_by_epsilon(matrix.codes[x]) if not e.is_infinite]
        if second.side != "lower" and sign_of_sum([*low, (Fraction(-1), -second.epsilon)]) < 0:
            return False
        if second.side == "upper":
            continue
        high = list(mass_by_epsilon(matrix.codes[:, x]))
        if any(e.is_infinite for e, _ in high):
            return False
        if sign_of_sum([*((mass, e) for e, mass in high), (Fraction(-1), second.epsilon)]) > 0:
            return False
    return True


def _prior_implies_pairwise(first: Prior, second: PairwisePolicy) -> bool:
    """Return whether a prior policy implies a policy on pairs, by the largest likelihood ratio of each pair."""
    if first.side == "both" and first.epsilon * 2 <= second.least[0]:
        return True  # ε-LIP implies 2ε-LDP
    matrix, prior = second.epsilon_matrix(), first.prior
    checked: set[tuple[Fraction, Fraction, int]] = set()
    for x in range(len(prior)):
        for other in range(len(prior)):
            key = (prior[x], prior[other], int(matrix.codes[x, other]))
            if x == other or key in checked or matrix.at(x, other).is_infinite:
                continue
            checked.add(key)
            top, bottom = _largest_ratio(first, prior[x], prior[other])
            target = matrix.at(x, other)
            if sign_of_sum([*top, *((-c, e + target) for c, e in bottom)]) > 0:
                return False
    return True


def _largest_ratio(cone: Prior, a: Fraction, b: Fraction) -> tuple[Terms, Terms]:
    """Return max T_x/T_x' over e^-ε ≤ T ≤ e^ε and π·T = 1, as a quotient, with a = π_x and b = π_x'."""
    if cone.side != "both":
        return cone.largest_ratio(a if cone.side == "lower" else b)
    hi, lo, one = cone.epsilon, -cone.epsilon, (Fraction(1), ZERO)
    # With T_x at its maximum and all others at their minimum, the average exceeds 1, so T_x has to be smaller.
    if sign_of_sum([(a, hi), (1 - a, lo), (Fraction(-1), ZERO)]) > 0:
        return [one, (a - 1, lo)], [(a, lo)]
    # With T_x' at its minimum and all others at their maximum, the average is below 1, so T_x' has to be larger.
    if sign_of_sum([(1 - b, hi), (b, lo), (Fraction(-1), ZERO)]) < 0:
        return [(b, hi)], [one, (b - 1, hi)]
    return [(Fraction(1), hi)], [(Fraction(1), lo)]


def _prior_implies_prior(first: Prior, second: Prior) -> bool:
    """Return whether a prior policy implies another, by checking each rule over the cone of the first."""
    if first.prior == second.prior and first.epsilon <= second.epsilon and first.side in ("both", second.side):
        return True
    return all(_greatest_value_is_at_most_zero(first, rule) for rule in second.inequalities())


def _greatest_value_is_at_most_zero(cone: Prior, rule: Inequality) -> bool:
    """Return whether left·T - e^ε·right·T ≤ 0 over the box e^-ε ≤ T ≤ e^ε with π·T = 1: a fractional knapsack.

    With one side, the box has the lower limit zero (a sum without terms) or no upper limit.
    """
    lo: Terms = [] if cone.side == "upper" else [(Fraction(1), -cone.epsilon)]
    hi: Terms | None = None if cone.side == "lower" else [(Fraction(1), cone.epsilon)]

    def gain(x: int) -> Terms:
        return [(rule.left.get(x, Fraction(0)), ZERO), (-rule.right.get(x, Fraction(0)), rule.epsilon)]

    def times(terms: Terms, factors: Terms) -> Terms:
        return [(c * d, e + f) for c, e in terms for d, f in factors]

    def scaled(terms: Terms, factor: Fraction) -> Terms:
        return times(terms, [(factor, ZERO)])

    def left_after(mass_at_top: Fraction, mass_at_bottom: Fraction) -> Terms:
        top: Terms = [] if hi is None else scaled(hi, -mass_at_top)
        return [(Fraction(1), ZERO), *top, *scaled(lo, -mass_at_bottom)]

    total: Terms = []
    for x in (x for x, p in enumerate(cone.prior) if p == 0):
        gains = sign_of_sum(gain(x)) > 0
        if gains and hi is None:
            return False
        total += times(gain(x), hi if gains and hi is not None else lo)

    class _ByGainPerMass:
        """Orders values by gain per unit of prior, best first, with certified comparisons."""

        def __init__(self, x: int) -> None:
            self.terms = scaled(gain(x), 1 / cone.prior[x])

        def __lt__(self, other: _ByGainPerMass) -> bool:
            return sign_of_sum([*self.terms, *scaled(other.terms, Fraction(-1))]) > 0

    filled = Fraction(0)
    pending = True
    for x in sorted((x for x, p in enumerate(cone.prior) if p), key=_ByGainPerMass):
        mass = cone.prior[x]
        if not pending:
            total += times(gain(x), lo)
        elif hi is not None and sign_of_sum(left_after(filled + mass, 1 - filled - mass)) >= 0:
            total += times(gain(x), hi)
            filled += mass
        else:
            # The critical value takes the remaining mass: T_x = (1 - filled·hi - (rest)·lo) / π_x.
            total += times(gain(x), scaled(left_after(filled, 1 - filled - mass), 1 / mass))
            pending = False
    return sign_of_sum(total) <= 0


def _pairwise_implies_secret(first: PairwisePolicy, second: Secret) -> bool:
    """Return whether a policy on pairs implies a secret policy, by effective epsilons or a counterexample."""
    if first.greatest_effective[0] <= second.epsilon:
        return True
    matrix = first.effective_epsilon_matrix()
    if isinstance(second.distributions, ChiSquare):
        # For every distribution, a rule compares values of one secret with values of another (RLDP Prop. 4).
        for cells, other_cells in itertools.permutations(second.cells, 2):
            if matrix.epsilon(int(matrix.codes[np.ix_(cells, other_cells)].max())) > second.epsilon:
                raise Undecided(_UNDECIDED.format(first=first.kind, second="secret policy under a confidence set"))
        return True
    undecided = False
    for rule in second.inequalities():
        left, right = list(rule.left), list(rule.right)
        block = matrix.codes[np.ix_(left, right)]
        if matrix.epsilon(int(block.max())) <= second.epsilon:
            continue
        # T = 1 on the values of the first secret and as small as the cone permits elsewhere. This vector is in the
        # cone, because the pointwise maximum of the members T_z = e^-E*(x,z) is in the cone.
        nearest = [matrix.epsilon(int(code)) for code in block.min(axis=0)]
        terms = [
            (-rule.right[z], second.epsilon + -e) for z, e in zip(right, nearest, strict=True) if not e.is_infinite
        ]
        if sign_of_sum([(Fraction(1), ZERO), *terms]) > 0:
            return False
        undecided = True
    if undecided:
        raise Undecided(_UNDECIDED.format(first=first.kind, second="secret policy"))
    return True
