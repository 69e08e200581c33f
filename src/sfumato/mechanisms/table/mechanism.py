"""Tables: mechanisms given by an explicit matrix, as exact integer weights."""

from __future__ import annotations

import bisect
import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import canonical_hash, exact_fraction, integer_kernel, quantity
from sfumato.domain import Domain, align, align_table, checked_distribution, checked_domain
from sfumato.errors import Description, InvalidInput, NoMechanism
from sfumato.mechanisms.base import LARGEST_MATRIX, Finished, Mechanism
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.table.alias import TOTAL, TOTAL_BITS, AliasTable
from sfumato.policy import PairwisePolicy, Policy

__all__ = ["TableMechanism", "rounded_doubles"]

#: Maximum distance from one of the sum of a row of doubles.
_ROW_TOLERANCE = 1e-9
#: Least share of the constant column that is tried when a table is fitted to a policy, as the exponent in 2^-56.
_FIRST_MIX_BITS = 56
#: Share of the constant column that is tried before all others, as the exponent in 2^-20.
_SAFE_MIX_BITS = 20
#: Number of entries above which a table keeps the share 2^-20 if time is short; deciding ties exactly takes long.
_SMALL_TABLE = 1000
#: Precision in bits of the fixed-point numbers through which matrices are rounded.
_FIXED_BITS = 128
_NO_ROUNDING = (
    "no rounding of this matrix to multiples of 2^-62 was found that obeys the policy. Compute the matrix for a policy "
    "with a slightly smaller epsilon."
)


class TableMechanism(Mechanism):
    """Mechanism given by a table: report y has probability ``weights[x, y] / 2^62`` for value x.

    The constructor takes integer weights. :meth:`from_matrix` takes probabilities and rounds them to weights, so that
    the result obeys a given policy exactly. A report is the index y of a column.

    Parameters
    ----------
    domain
        The values.
    weights
        Integer weights, a row per value; each row sums to 2^62. Rows are in domain order, or have labels (a DataFrame,
        a mapping from values to rows) and are aligned by them.
    design_prior
        The distribution of values at which the estimated frequencies have the least expected squared error, as
        positive integers that sum to 2^62; uniform by default. The reports do not depend on it.
    provenance
        How the table was computed, as a JSON-compatible dictionary for readers of the spec, such as
        ``{"from": "binary-optimal", "epsilons": ["1", "2"]}``. Nothing is computed from it, and no audit relies on it.

    Notes
    -----
    The sampler draws from an alias table in integers, so the probabilities are exactly weights/2^62. The estimator is
    weighted least squares: the weights come from the distribution of reports at the design prior. It is unbiased at
    every distribution of values (``docs/proofs/table.md``).

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import TableMechanism
    >>> answers = Domain(["no", "yes"])
    >>> mechanism = TableMechanism.from_matrix(answers, [["3/4", "1/4"], ["1/4", "3/4"]])
    >>> mechanism.probability(0, 0)
    Fraction(3, 4)
    >>> TableMechanism(answers, [[3 * 2**60, 2**60], [2**60, 3 * 2**60]]) == mechanism
    True
    """

    name = "table"

    def __init__(
        self,
        domain: Domain,
        weights: Any,
        *,
        design_prior: Any = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.domain = checked_domain("TableMechanism", domain)
        self.weights = _checked_weights(domain, weights)
        self.weights.setflags(write=False)
        self.design_prior = None if design_prior is None else _checked_prior(domain, design_prior)
        #: How the table was computed, for readers; empty if that is not stated.
        self.provenance = {} if provenance is None else _checked_provenance(provenance)
        bin_bits = (self.weights.shape[1] - 1).bit_length()
        stay = Field.number(16, 16) if bin_bits <= 16 else Field.number(32, 32)
        self.layout = Layout(32 if bin_bits <= 16 else 64, (Field.number(0, bin_bits), stay))

    @staticmethod
    def from_matrix(
        domain: Domain,
        matrix: Any,
        *,
        policy: Policy | None = None,
        design_prior: Any = None,
        provenance: Mapping[str, Any] | None = None,
        late: Callable[[], bool] = lambda: False,
    ) -> TableMechanism:
        """Build a mechanism from a matrix of probabilities, rounded to integer weights.

        Without a policy each row is rounded separately, and no positive entry becomes zero. With a policy, rows that
        must be equal are made equal. If the rounded matrix violates the policy, each row is mixed with a share 2^-m of
        one row that is the same for all values. The method searches for the largest m that makes the policy hold.

        Parameters
        ----------
        domain
            The values.
        matrix
            ``matrix[x][y]`` is the probability of report y for value x. Each row sums to one. Rows are in domain order
            or have labels.
        policy
            The policy that the rounded matrix must obey, or None.
        design_prior
            The distribution of values, with positive probabilities, at which the estimated frequencies have the least
            expected squared error; uniform by default.
        provenance
            How the matrix was computed, for readers of the spec.
        late
            A function without arguments that returns whether time is short. If it returns True, the method uses
            m = 20 for all but small tables instead of searching for the largest m.

        Returns
        -------
        TableMechanism
            The mechanism. If a policy is given, the mechanism obeys it exactly.

        Raises
        ------
        InvalidInput
            If a row is not a distribution, or the policy is over another domain.
        NoMechanism
            If no rounding that obeys the policy was found.
        """
        if policy is not None and policy.domain != domain:
            raise InvalidInput("TableMechanism", "policy", "be over the same domain", policy.domain)
        if design_prior is not None:
            distribution = checked_distribution(design_prior, domain, "TableMechanism", "design_prior")
            (design_prior,) = _rounded([_fixed(_over_one_denominator(distribution.tolist())[0])])
        weights = None
        if isinstance(policy, PairwisePolicy) and _are_doubles(matrix, len(domain)) and late():
            weights = _rounded_quickly(matrix, policy)
        if weights is None:
            fixed = _checked_matrix(domain, matrix)
            weights = _rounded(fixed) if policy is None else _rounded_within(fixed, policy, late)
        return TableMechanism(domain, weights, design_prior=design_prior, provenance=provenance)

    @functools.cached_property
    def alias_table(self) -> AliasTable:
        """Integer table of the alias method, from which the sampler draws a report in constant time."""
        return AliasTable.build(self.weights)

    def step(self, state: int, draws: Draws) -> Finished:
        table = self.alias_table
        bin_ = draws.below(table.bins)
        stay = draws.bernoulli(int(table.thresholds[state, bin_]), table.capacity)
        return Finished(bin_ if stay else int(table.aliases[state, bin_]))

    @property
    def outputs(self) -> int:
        return int(self.weights.shape[1])

    def probability(self, report: int, x: int) -> Fraction:
        return Fraction(int(self.weights[x, report]), TOTAL)

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]]:  # noqa: ARG002
        # Any report may be the worst for a policy.
        return ((y, [Fraction(weight) for weight in self.weights[:, y].tolist()]) for y in self.reports())

    def guess_probability(self) -> Fraction:
        greatest = sum(self.weights.max(axis=0).tolist())
        return Fraction(greatest, TOTAL * len(self.domain))

    def matrix(self) -> npt.NDArray[np.float64]:
        matrix: npt.NDArray[np.float64] = self.weights / TOTAL
        return matrix

    def parameters(self) -> dict[str, Any]:
        table = {"total_bits": TOTAL_BITS, "weights": [[str(w) for w in row] for row in self.weights.tolist()]}
        if self.design_prior is not None:
            table["design_prior"] = [str(weight) for weight in self.design_prior.tolist()]
        return {**table, "provenance": self.provenance} if self.provenance else table

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> TableMechanism:
        keys = set(parameters) - {"design_prior", "provenance"}
        if keys != {"total_bits", "weights"} or parameters["total_bits"] != TOTAL_BITS:
            must = f"have the keys total_bits and weights, with total_bits = {TOTAL_BITS}"
            stated = ", ".join(
                f"total_bits = {parameters[key]}" if key == "total_bits" else key for key in sorted(keys)
            )
            raise InvalidInput("TableMechanism", "parameters", must, Description(stated or "neither"))
        try:
            weights = [[int(w) for w in row] for row in parameters["weights"]]
            prior = [int(weight) for weight in parameters["design_prior"]] if "design_prior" in parameters else None
        except (ValueError, OverflowError) as error:
            raise InvalidInput("TableMechanism", "weights", "be integers", Description(error)) from None
        return cls(domain, weights, design_prior=prior, provenance=parameters.get("provenance"))


def _checked_shape(domain: Domain, rows: list[list[Any]]) -> None:
    """Raise InvalidInput if a matrix does not have one row per value, all of one length."""
    if len(rows) != len(domain):
        got = Description(quantity(len(rows), "row"))
        raise InvalidInput("TableMechanism", "the matrix", f"have {len(domain)} rows, one per value", got)
    widths = sorted({len(row) for row in rows})
    if len(widths) != 1 or widths[0] == 0:
        got = Description(f"rows of lengths {widths}")
        raise InvalidInput("TableMechanism", "the rows", "have the same length, at least 1", got)
    if len(rows) * widths[0] > LARGEST_MATRIX:
        got = Description(f"{len(rows) * widths[0]:,} entries")
        raise InvalidInput("TableMechanism", "the matrix", f"have at most {LARGEST_MATRIX:,} entries", got)


def _rows(domain: Domain, table: Any, parameter: str) -> list[list[Any]]:
    """Return the rows in domain order; rows with labels are aligned by them."""
    aligned = align_table(checked_domain("TableMechanism", domain), None, table, "TableMechanism", parameter)
    return aligned.tolist() if isinstance(aligned, np.ndarray) else [list(row) for row in aligned]


def _checked_weights(domain: Domain, weights: Any) -> npt.NDArray[np.int64]:
    """Return integer weights as an array, or raise InvalidInput."""
    if _is_valid_array(domain, weights):
        return np.array(weights)
    rows = _rows(domain, weights, "weights")
    _checked_shape(domain, rows)
    for label, row in zip(domain, rows, strict=True):
        for y, weight in enumerate(row):
            if isinstance(weight, bool) or not isinstance(weight, (int, np.integer)):
                raise InvalidInput("TableMechanism", f"the weight of output {y} for {label!r}", "be an integer", weight)
            if weight < 0:
                raise InvalidInput("TableMechanism", f"the weight of output {y} for {label!r}", "be at least 0", weight)
        if sum(row) != TOTAL:
            raise InvalidInput("TableMechanism", f"the weights of {label!r}", f"sum to 2^{TOTAL_BITS}", sum(row))
    return np.array(rows, dtype=np.int64)


def _is_valid_array(domain: Domain, weights: Any) -> bool:
    """Return whether the weights are an array of 64-bit integers that needs no check of single entries."""
    if not isinstance(weights, np.ndarray) or weights.dtype != np.int64 or weights.ndim != 2:
        return False
    if len(weights) != len(domain) or not 0 < weights.size <= LARGEST_MATRIX:
        return False
    # A sum of doubles below 1.5·2^62 shows that the sum of integers has not overflowed.
    is_small = (weights >= 0).all() and (weights.sum(axis=1, dtype=np.float64) < 1.5 * TOTAL).all()
    return bool(is_small and (weights.sum(axis=1) == TOTAL).all())


def _are_doubles(matrix: Any, values: int) -> bool:
    """Return whether a matrix is a large array of doubles with one distribution per value."""
    if not isinstance(matrix, np.ndarray) or matrix.dtype != np.float64 or matrix.ndim != 2 or len(matrix) != values:
        return False
    is_large = _SMALL_TABLE < matrix.size <= LARGEST_MATRIX
    return bool(is_large and (matrix >= 0).all() and (abs(matrix.sum(axis=1) - 1) <= _ROW_TOLERANCE).all())


def _rounded_quickly(matrix: npt.NDArray[np.float64], policy: PairwisePolicy) -> npt.NDArray[np.int64] | None:
    """Round doubles that are mixed with the share 2^-20 of their mean row; return None if that violates the policy.

    Doubles have 53 bits, so the largest entry of a row takes what is missing to 2^62. The exact comparison with the
    policy decides whether that is good enough.
    """
    weights = rounded_doubles(matrix + (matrix.mean(axis=0) - matrix) * 2.0**-_SAFE_MIX_BITS)
    return weights if policy.without_sums().allows_all(weights.T) else None


def rounded_doubles(matrix: npt.NDArray[np.float64], total: int = TOTAL) -> npt.NDArray[np.int64]:
    """Round rows to integers with a given sum; positive entries stay positive, and the largest takes the rest."""
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    weights = np.where(matrix > 0, np.maximum(np.floor(matrix * total), 1.0), 0.0).astype(np.int64)
    weights[np.arange(len(weights)), weights.argmax(axis=1)] += total - weights.sum(axis=1)
    return weights


def _checked_prior(domain: Domain, prior: Any) -> npt.NDArray[np.int64]:
    """Return the design prior as integers, or raise InvalidInput."""
    aligned = align(domain, prior, "TableMechanism", "design_prior")
    weights = aligned.tolist() if isinstance(aligned, np.ndarray) else list(aligned)
    # Weights must be positive, so that every possible output has a positive probability under the design prior.
    are_integers = all(isinstance(weight, int) and not isinstance(weight, bool) for weight in weights)
    if not are_integers or len(weights) != len(domain) or min(weights) < 1 or sum(weights) != TOTAL:
        must = f"be {len(domain)} positive integers that sum to 2^{TOTAL_BITS}"
        raise InvalidInput("TableMechanism", "design_prior", must, prior)
    checked = np.array(weights, dtype=np.int64)
    checked.setflags(write=False)
    return checked


def _checked_provenance(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the provenance, or raise InvalidInput unless it is a JSON-compatible dictionary."""
    if not isinstance(provenance, dict):
        raise InvalidInput("TableMechanism", "provenance", "be a dictionary", provenance)
    try:
        canonical_hash(provenance)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("TableMechanism", "provenance", "be JSON-compatible", Description(error)) from None
    return copy.deepcopy(provenance)


def _checked_matrix(domain: Domain, matrix: Any) -> list[list[int]]:
    """Return the matrix in units of 2^-128, far finer than a weight; positive entries stay positive."""
    rows = _rows(domain, matrix, "the matrix")
    _checked_shape(domain, rows)
    fixed = []
    for label, row in zip(domain, rows, strict=True):
        for y, entry in enumerate(row):
            try:
                is_double = isinstance(entry, float) and math.isfinite(entry)
                negative = (entry if is_double else exact_fraction(entry)) < 0
            except (TypeError, ValueError):
                raise InvalidInput("TableMechanism", f"Q({y} | {label!r})", "be a number", entry) from None
            if negative:
                raise InvalidInput("TableMechanism", f"Q({y} | {label!r})", "be at least 0", entry)
        # Doubles are read as the dyadic numbers they are, not as their shortest decimals.
        values = [entry if isinstance(entry, float) else exact_fraction(entry) for entry in row]
        parts, whole = _over_one_denominator(values)
        doubles = any(isinstance(entry, float) for entry in row)
        if sum(parts) != whole and not (doubles and abs(Fraction(sum(parts), whole) - 1) <= _ROW_TOLERANCE):
            total = float(Fraction(sum(parts), whole))
            got = Description(f"a sum of {total:.12g}")
            raise InvalidInput("TableMechanism", f"the row of {label!r}", "sum to one", got)
        fixed.append(_fixed(parts))
    return fixed


def _over_one_denominator(values: Sequence[float | Fraction]) -> tuple[list[int], int]:
    """Return integers and one common denominator that represent the numbers exactly."""
    ratios = [value.as_integer_ratio() for value in values]
    whole = math.lcm(*{denominator for _, denominator in ratios})
    return [numerator * (whole // denominator) for numerator, denominator in ratios], whole


def _fixed(parts: Sequence[int]) -> list[int]:
    """Return fractions of the sum in units of 2^-128; positive entries stay positive."""
    total = sum(parts)
    return [max((part << _FIXED_BITS) // total, 1) if part else 0 for part in parts]


def _rounded(matrix: list[list[int]]) -> npt.NDArray[np.int64]:
    """Round fixed-point rows to integer weights by largest remainder; positive entries stay positive."""
    return np.array([_rounded_row(row) for row in matrix], dtype=np.int64)


def _rounded_row(row: list[int]) -> list[int]:
    """Round one fixed-point row to integer weights."""
    shift = _FIXED_BITS - TOTAL_BITS
    weights = [max(entry >> shift, 1) if entry else 0 for entry in row]
    missing = TOTAL - sum(weights)
    by_remainder = sorted(range(len(row)), key=lambda y: ((weights[y] << shift) - row[y], y))
    for y in by_remainder[: max(missing, 0)]:
        weights[y] += 1
    for _ in range(max(-missing, 0)):  # the largest entries compensate for entries that were raised to one
        weights[max(range(len(weights)), key=weights.__getitem__)] -= 1
    return weights


def _rounded_within(matrix: list[list[int]], policy: Policy, late: Callable[[], bool]) -> npt.NDArray[np.int64]:
    """Round a matrix to integer weights that obey a policy."""
    equations = [] if isinstance(policy, PairwisePolicy) else policy.equations()
    if equations:
        return _rounded_with_equations(matrix, policy, equations)
    matrix = _merged(matrix, policy)
    rules = policy.without_sums() if isinstance(policy, PairwisePolicy) else policy
    columns = list(zip(*matrix, strict=True))
    mean = [-(-sum(column) // len(column)) for column in columns]

    def obeying(bits: int | None) -> npt.NDArray[np.int64] | None:
        weights = _rounded(matrix if bits is None else _mixed(matrix, mean, bits))
        return weights if rules.allows_all(weights.T.tolist()) else None

    # First try a share that costs a millionth of the utility. It usually suffices, and doubles decide that quickly.
    best = obeying(_SAFE_MIX_BITS)
    entries = len(matrix) * len(mean)

    def is_enough() -> bool:
        return best is not None and entries > _SMALL_TABLE and late()

    unmixed = None if is_enough() else obeying(None)
    if unmixed is not None:
        return unmixed
    # Exponents of a share 2^-bits that suffices, and of one that does not.
    enough, short = (-1, _SAFE_MIX_BITS) if best is None else (_SAFE_MIX_BITS, _FIRST_MIX_BITS + 1)
    while short - enough > 1 and not is_enough():
        middle = (enough + short) // 2
        weights = obeying(middle)
        if weights is None:
            short = middle
        else:
            best, enough = weights, middle
    if best is None:
        raise NoMechanism(_NO_ROUNDING)
    return best


def _rounded_with_equations(
    matrix: list[list[int]], policy: Policy, equations: list[list[Fraction]]
) -> npt.NDArray[np.int64]:
    """Round to integer columns that solve the policy's equations exactly, which mixing with a constant cannot achieve.

    The integer solutions form a lattice that contains the constant vector. Columns are shrunk by the least power of two
    that suffices and rounded in coordinates of a reduced basis. A column that became negative is raised by a constant.
    The remainder to 2^62 also solves the equations, and is added to the likeliest output.
    """
    weights = _rounded(matrix)
    if policy.allows_all(weights.T.tolist()):
        return weights
    basis = np.array(integer_kernel(equations), dtype=object).T
    columns = np.array(matrix, dtype=object).astype(np.float64) / 2.0**_FIXED_BITS
    lengths = np.linalg.norm(basis.astype(np.float64), axis=0)
    coordinates = np.linalg.pinv(basis.astype(np.float64) / lengths) / lengths[:, None] @ columns * TOTAL
    likeliest = int(columns.sum(axis=0).argmax())

    def rounded(bits: int) -> npt.NDArray[np.int64] | None:
        shrunk = ((1 - 2.0**-bits) * coordinates).tolist()
        weights = basis @ np.array([[round(entry) for entry in row] for row in shrunk], dtype=object)
        weights = weights - np.minimum(weights.min(axis=0), 0)
        weights[:, likeliest] += TOTAL - weights.sum(axis=1)
        obeys = weights.min() >= 0 and policy.allows_all(weights.T.tolist())
        return weights.astype(np.int64) if obeys else None

    bits = range(_FIRST_MIX_BITS, 0, -1)
    first = bisect.bisect_left(bits, True, key=lambda bits: rounded(bits) is not None)
    weights_within = rounded(bits[first] if first < len(bits) else 0)
    if weights_within is None:
        raise NoMechanism(_NO_ROUNDING)
    return weights_within


def _mixed(matrix: list[list[int]], constant: list[int], bits: int) -> list[list[int]]:
    """Return the matrix mixed with a share 2^-bits of a constant column."""
    return [[entry + ((c - entry) >> bits) for entry, c in zip(row, constant, strict=True)] for row in matrix]


def _merged(matrix: list[list[int]], policy: Policy) -> list[list[int]]:
    """Average the rows of values that must be indistinguishable: T_x ≤ T_x' in every column makes rows equal."""
    if not isinstance(policy, PairwisePolicy):
        return matrix
    codes = policy.epsilon_matrix().codes
    group = np.arange(len(matrix))
    for x, other in np.argwhere(codes == codes[0, 0]).tolist():  # codes[0, 0] is the code of level zero
        if group[x] != group[other]:
            group[group == group[x]] = group[other]
    merged = list(matrix)
    for number in np.unique(group):
        members = np.flatnonzero(group == number).tolist()
        if len(members) > 1:
            mean = [sum(column) // len(members) for column in zip(*(matrix[x] for x in members), strict=True)]
            for x in members:
                merged[x] = mean
    return merged
