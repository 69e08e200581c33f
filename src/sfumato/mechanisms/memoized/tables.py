"""Two tables for any policy: the permanent answer, and one report about it.

Let Q be the table of one report, and q a row that all values share. For c up to the mass that all rows of Q have in
common, (Q - c·q)/(1 - c) is a table too, and Q is that table with probability ρ = 1 - c, and q otherwise. The permanent
table takes the largest c at which it obeys the lifetime policy, with q proportional to the column minima of Q. For a
mixture, q is uniform, and this is the closed form. With c = 0, permanent answers are reported as they are.

The permanent table above is often far from the best one for its level. A *response table* takes any permanent table and
any channel from its answers to reports; the compiler searches for both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.domain import Domain
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.memoized.forms import KEEP_BITS
from sfumato.mechanisms.table.alias import TOTAL_BITS
from sfumato.mechanisms.table.mechanism import TableMechanism, rounded_doubles
from sfumato.policy import Policy

__all__ = ["memoized_tables", "response_tables"]

#: Maximum number of entries of the two tables; their specs list all weights.
LARGEST_PAIR = 2**17
#: Sum of the weights of a row, before they are multiplied by 2^22.
_COARSE = 1 << TOTAL_BITS - KEEP_BITS
#: Bits of the two stages of a response table, whose product has the sum of the weights of a table.
_HALF_BITS = TOTAL_BITS // 2
_HALF = 1 << _HALF_BITS
#: Shares of the mean row that are tried so that the rounded table obeys its policy, as exponents of 1/2.
_SHARES = (20, 16, 12, 8)
#: Probability below which an output counts as rare; weights of the others have at least 16 bits.
_RARE = 2.0**-24
#: Probability below which a report of a response counts as rare; both stages are rounded to multiples of 2^-31.
_RARE_REPORT = 2.0**-14
#: Number of halvings in the search for the largest c.
_HALVINGS = 40

Weights = npt.NDArray[np.int64]


def memoized_tables(
    single: Mechanism, policy: Policy, lifetime: Policy
) -> tuple[TableMechanism, TableMechanism] | None:
    """Return tables of one report and of permanent answers; None if the mechanism is too large or cannot be rounded."""
    if not single.report_format.is_histogram or len(single.domain) * single.outputs > LARGEST_PAIR:
        return None
    matrix = _without_rare_outputs(single.matrix())
    common = matrix.min(axis=0)
    blank = common / common.sum() if common.sum() > 0 else matrix.mean(axis=0)
    for bits in _SHARES:

        def permanent_at(c: float, bits: int = bits) -> Weights | None:
            table = np.maximum(matrix - c * blank, 0.0) / (1 - c)
            weights = rounded_doubles(table + (matrix.mean(axis=0) - table) * 2.0**-bits, _COARSE)
            return weights if lifetime.allows_all((weights << KEEP_BITS).T.tolist()) else None

        permanent = _largest(permanent_at, float(common.sum()))
        if permanent is None:
            continue
        row = rounded_doubles(blank[None], _COARSE)[0]

        def single_at(numerator: int, permanent: Weights = permanent, row: Weights = row) -> Weights | None:
            weights = numerator * permanent + ((1 << KEEP_BITS) - numerator) * row
            return weights if policy.allows_all(weights.T.tolist()) else None

        one = _largest_numerator(single_at)
        if one is not None:
            prior = single.design_prior if isinstance(single, TableMechanism) else None
            weights = (one, permanent << KEEP_BITS)
            first, second = (TableMechanism(single.domain, each, design_prior=prior) for each in weights)
            return first, second
    return None


def response_tables(
    domain: Domain, permanent: Floats, response: Floats, policy: Policy, lifetime: Policy
) -> tuple[TableMechanism, TableMechanism, TableMechanism] | None:
    """Return exact tables of one report, of permanent answers, and of the response that joins them.

    Both stages have weights that are multiples of 2^31, so the law of one report has integer weights too. Rounding is
    mixed with shares of constant rows until both policies hold; None if they do not at any share.
    """
    permanent, response = _without_rare_answers(permanent, response)
    if response.shape[1] > response.shape[0] * len(domain):
        return None
    typical = permanent.mean(axis=0)
    for bits in _SHARES:
        answers_table = rounded_doubles(permanent + (typical - permanent) * 2.0**-bits, _HALF)
        if not lifetime.allows_all((answers_table << _HALF_BITS).T.tolist()):
            continue
        for other_bits in range(_SHARES[0], _SHARES[-1] - 1, -1):
            row = typical @ response
            channel = rounded_doubles(response + (row - response) * 2.0**-other_bits, _HALF)
            law = answers_table @ channel
            if policy.allows_all(law.T.tolist()):
                return (
                    TableMechanism(domain, law),
                    TableMechanism(domain, answers_table << _HALF_BITS),
                    TableMechanism(Domain.range(len(channel)), channel << _HALF_BITS),
                )
    return None


def _without_rare_answers(permanent: Floats, response: Floats) -> tuple[Floats, Floats]:
    """Drop permanent answers that are too rare for the rounding, and merge rare reports into the likeliest one."""
    common = permanent.max(axis=0) >= _RARE
    permanent = permanent[:, common] / permanent[:, common].sum(axis=1, keepdims=True)
    return permanent, _without_rare_outputs(response[common], _RARE_REPORT)


def _without_rare_outputs(matrix: Floats, least: float = _RARE) -> Floats:
    """Merge outputs that are too rare for the rounding into the likeliest output, which obeys every policy."""
    rare = matrix.max(axis=0) < least
    merged = matrix.copy()
    merged[:, matrix.sum(axis=0).argmax()] += matrix[:, rare].sum(axis=1)
    return np.asarray(merged[:, ~rare])


def _largest(weights_at: Callable[[float], Weights | None], limit: float) -> Weights | None:
    """Return the weights at the largest c below the limit for which there are any, or None if there are none at 0."""
    best = weights_at(0.0)
    low, high = 0.0, min(limit, 1.0)
    if best is None:
        return None
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        weights = weights_at(middle)
        if weights is None:
            high = middle
        else:
            best, low = weights, middle
    return best


def _largest_numerator(weights_at: Callable[[int], Weights | None]) -> Weights | None:
    """Return the weights at the largest numerator of ρ for which there are any."""
    # Columns that obey a policy form a cone, so all smaller numerators have weights, too.
    count = bisect_left(range((1 << KEEP_BITS) + 1), True, key=lambda numerator: weights_at(numerator) is None)
    return weights_at(count - 1) if count else None
