"""Conditional reporting: randomize the secret first, and report the public attribute if the secret stayed true."""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, quantity
from sfumato.errors import LimitExceeded
from sfumato.mechanisms.secret.base import (
    checked_policy,
    information,
    memberships,
    offered_sizes,
    reporting_table,
    set_response,
    set_sizes,
    utility_at,
    zoom,
)
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import ChiSquare, Policy, widest

__all__ = ["ConditionalReporting", "ConditionalUnary"]


#: Maximum number of entries (outputs times values) of a unary table, which is audited column by column.
_LARGEST_TABLE = 2**14
#: Number of bisection steps for the level at which the inner responses of a unary report reach ε.
_HALVINGS = 9


def ConditionalReporting(policy: Policy, utility: str = "mutual-information") -> TableMechanism:  # noqa: N802
    """Return a mechanism that reports a randomized secret S̃, and the public attribute U only if S̃ is the true secret.

    A value is a pair (S, U) of a secret and a public attribute. The mechanism randomizes S to S̃. If S̃ = S, it adds U,
    otherwise a draw from P̂(U|S̃), the frequencies of U among observed people with secret S̃. A randomizer for S̃, the
    *inner response*, then adds noise to the attribute. A report is the index of an output.

    One part of ε is spent on randomizing the secret, the rest on the inner responses. A numerical search finds the
    division of greatest utility.

    Parameters
    ----------
    policy
        A :class:`Secret` policy whose ``distributions`` are a :class:`ChiSquare` confidence set.
    utility
        The criterion of the search. ``"mutual-information"`` maximizes the information between the value and the
        report at the frequencies of the counts of :class:`ChiSquare`. ``"estimation"`` minimizes the expected
        squared error of the estimated frequencies of all values, at the uniform distribution.

    Returns
    -------
    TableMechanism
        A mechanism that obeys the policy. The ``budget`` in its provenance states levels and set sizes.

    Raises
    ------
    InvalidInput
        If the policy is not a :class:`Secret` under :class:`ChiSquare`, or the utility is unknown.

    Notes
    -----
    This is Protocol 2 (GRR-CR) of Lopuhaä-Zwakenberg and Goseling (2021, "The Privacy-Utility Tradeoff of Robust Local
    Differential Privacy"). There is one inner response per secret s. It reports a set of attributes that is likelier
    for its members, and only has to hide whether the attribute was drawn from the true P(U|s) or from P̂(U|s). So the
    better the table of counts is known, the less noise it adds. Theorem 17 of the paper bounds that noise by an l1
    distance; here it is computed exactly (``docs/proofs/conditional-reporting.md``). For a secret that was never
    observed, P̂(U|s) is uniform.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(ill=["no", "yes"], city=["Ulm", "Bonn"])
    >>> policy = sf.Secret(people, "ill", "ln 3", sf.ChiSquare([[300, 200], [100, 200]]))
    >>> mechanism = sf.mechanisms.ConditionalReporting(policy)
    >>> sf.audit(mechanism, policy).holds
    True
    """
    secret, confidence, epsilon = checked_policy("ConditionalReporting", policy, utility)
    laws = confidence.conditional_estimate()
    size = len(laws)

    def design(first: float) -> tuple[Floats, list[_Inner]]:
        # S̃ = s is e^first times likelier for s, so P(y|s)/P̂(y|s) may be at most e^(ε-first). The inverse ratio is
        # multiplied by e^-first, so it may be at most e^(ε+first).
        inner = _inner(confidence, epsilon - first, epsilon + first)
        return _conditional_matrix(set_response(size, 1, math.expm1(first)), inner, laws), inner

    (first,) = zoom(lambda first: utility_at(confidence, utility, design(first)[0]), (0.0, epsilon))
    matrix, inner = design(first)
    budget = {"secret": f"{first:.9g}", **_described(inner)}
    return reporting_table("conditional-reporting", secret, budget, matrix)


def ConditionalUnary(policy: Policy, utility: str = "mutual-information") -> TableMechanism:  # noqa: N802
    """Return a mechanism that reports a random set of secrets, each with a value of the public attribute U.

    A value is a pair (S, U) of a secret and a public attribute. The true secret, if it is in the set, comes with the
    true U. Every other secret s in the set comes with a draw from P̂(U|s), the frequencies of U among observed people
    with secret s. A randomizer per secret, the *inner response*, then adds noise to each attribute.

    A report is the index of an output. With inner responses of one attribute there are (1 + |U|)^|S| outputs for |S|
    secrets and |U| public values, so the mechanism is for few secrets. A numerical search finds two numbers of
    greatest utility: the probability κ that the set contains the true secret, and the part of ε that is spent on the
    set. The rest of ε is spent on the inner responses.

    Parameters
    ----------
    policy
        A :class:`Secret` policy whose ``distributions`` are a :class:`ChiSquare` confidence set.
    utility
        The criterion of the search. ``"mutual-information"`` maximizes the information between the value and the
        report at the frequencies of the counts of :class:`ChiSquare`. ``"estimation"`` minimizes the expected
        squared error of the estimated frequencies of all values, at the uniform distribution.

    Returns
    -------
    TableMechanism
        A mechanism that obeys the policy. The ``budget`` in its provenance states levels and set sizes.

    Raises
    ------
    InvalidInput
        If the policy is not a :class:`Secret` under :class:`ChiSquare`, or the utility is unknown.
    LimitExceeded
        If the table of outputs by values would have more than 16,384 entries. Use :func:`ConditionalReporting`.

    Notes
    -----
    This is Protocol 3 (UE-CR) of Lopuhaä-Zwakenberg and Goseling (2021, "The Privacy-Utility Tradeoff of Robust Local
    Differential Privacy"), corrected: another secret s' is sent with a draw from P̂(U|s'), not from P̂(U|s), which would
    reveal the true secret s. The set contains the true secret with probability κ, and each other secret with
    probability λ = κ/(κ + (1-κ)·e^ε₁), where ε₁ is the part of ε that is spent on the set. The proof is in
    ``docs/proofs/conditional-unary.md``.

    Examples
    --------
    >>> import sfumato as sf
    >>> people = sf.Domain.product(ill=["no", "yes"], city=["Ulm", "Bonn"])
    >>> policy = sf.Secret(people, "ill", "ln 3", sf.ChiSquare([[300, 200], [100, 200]]))
    >>> mechanism = sf.mechanisms.ConditionalUnary(policy)
    >>> sf.audit(mechanism, policy).holds
    True
    """
    secret, confidence, epsilon = checked_policy("ConditionalUnary", policy, utility)
    laws = confidence.conditional_estimate()
    size, others = laws.shape
    if is_too_large(size, others):
        raise LimitExceeded(
            f"ConditionalUnary over {quantity(size, 'secret')} and {quantity(others, 'public value')} has "
            f"{1 + others}^{size} outputs, but its table may have at most {_LARGEST_TABLE:,} entries (outputs "
            'times values). Use ConditionalReporting, or pass mechanism="conditional-rr" to sfumato.plan or '
            "sfumato.design."
        )

    @functools.cache
    def inner_at(first: float) -> list[_Inner]:
        # A set with s and without s' has the ratio e^first·P(y|s)/P̂(y|s), or its inverse. A set with both has that
        # ratio of s times the inverse ratio of s', over the same distribution. Bisection finds how much of ε each
        # may use.
        best = _inner(confidence, epsilon - first, first)
        low, high = first, epsilon + first
        middle = high
        for _ in range(_HALVINGS):
            inner = _inner(confidence, epsilon - first, middle)
            if _joint_epsilon(confidence, inner) <= epsilon:
                best, low = inner, middle
                if middle == high:
                    break
            else:
                high = middle
            middle = (low + high) / 2
        return best

    def design(first: float, kappa: float) -> tuple[Floats, float, list[_Inner]]:
        other, inner = kappa / (kappa + (1 - kappa) * math.exp(first)), inner_at(first)
        return _unary_matrix(kappa, other, inner, laws), other, inner

    first, kappa = zoom(lambda *at: utility_at(confidence, utility, design(*at)[0]), (0.0, epsilon), (0.5, 1.0))
    matrix, other, inner = design(first, kappa)
    budget = {"own": f"{kappa:.9g}", "others": f"{other:.9g}", **_described(inner)}
    return reporting_table("conditional-unary", secret, budget, matrix)


def is_too_large(secrets: int, others: int) -> bool:
    """Return whether the table of a unary report would be rejected."""
    outputs: int = (1 + others) ** secrets
    return outputs * secrets * others > _LARGEST_TABLE


class _Inner(NamedTuple):
    """Set response for the value that is sent with one secret."""

    gain: float
    size: int


def _inner(confidence: ChiSquare, above: float, below: float) -> list[_Inner]:
    """Return for each secret the most informative response about U, with P(y|s)/P̂(y|s) in [e^-below, e^above]."""
    values = confidence.frequencies.shape[1]
    laws = confidence.conditional_estimate()
    best = []
    for s, law in enumerate(laws):
        options = []
        for size in offered_sizes(values):
            gain = _greatest_gain(confidence, s, memberships(values, size), above, below)
            if size in set_sizes(values, gain):
                options.append(_Inner(gain, size))
        informations = [information(law, set_response(values, option.size, option.gain)) for option in options]
        best.append(options[int(np.argmax(informations))])
    return best


def _greatest_gain(confidence: ChiSquare, s: int, members: npt.NDArray[np.bool_], above: float, below: float) -> float:
    """Return the greatest x with (1 + x·P)/(1 + x·P̂) in [e^-below, e^above] for every set and distribution."""
    centre = members @ confidence.conditional_estimate()[s]
    least, greatest = confidence.conditional_ranges(s, members)
    up, down = math.exp(above), math.exp(below)
    limits = [(up - 1, greatest - up * centre), (down - 1, centre - down * least)]
    gains = [top / bottom[bottom > 0] for top, bottom in limits]
    return min((float(gain.min()) for gain in gains if len(gain)), default=math.inf)


def _joint_epsilon(confidence: ChiSquare, inner: list[_Inner]) -> float:
    """Return ln of the greatest P(y|s)/P̂(y|s)·P̂(y'|s')/P(y'|s') over all secrets, outputs, and distributions."""
    laws, values = confidence.conditional_estimate(), confidence.frequencies.shape[1]
    totals = confidence.frequencies.sum(axis=1)
    relative, cells = [], []
    for law, total, each in zip(laws, totals, inner, strict=True):
        # Values with equal likelihoods reach the greatest ratio in proportion: a set and its complement are two cells.
        within = memberships(values, each.size) @ law
        inside, outside = (1.0, 0.0) if math.isinf(each.gain) else (1 + each.gain, 1.0)
        expected = inside * within + outside * (1 - within)
        possible = expected > 0
        relative.append(np.stack([inside / expected[possible], outside / expected[possible]], axis=1))
        cells.append(total * np.stack([within, (1 - within).clip(min=0)], axis=1)[possible])
    likelihoods, frequencies = [], []
    for s, other in itertools.permutations(range(len(laws)), 2):
        mine, theirs = np.indices((len(relative[s]), len(relative[other]))).reshape(2, -1)
        likelihoods.append(np.stack([relative[s][mine], relative[other][theirs]], axis=1))
        frequencies.append(np.stack([cells[s][mine], cells[other][theirs]], axis=1))
    slack = float(confidence.root_radius - 1)
    return math.log(widest(np.concatenate(likelihoods), np.concatenate(frequencies), slack).ratio.max())


def _described(inner: list[_Inner]) -> dict[str, list[object]]:
    """Return the levels and set sizes of the inner responses, for the budget."""
    epsilons: list[object] = [f"{math.log1p(each.gain):.9g}" for each in inner]
    return {"other": epsilons, "sizes": [each.size for each in inner]}


def _responses(inner: list[_Inner], laws: Floats) -> list[tuple[Floats, Floats]]:
    """Return for each secret the response to each value of U, and the law of the response to a draw from P̂(U|s)."""
    responses = [set_response(laws.shape[1], each.size, each.gain) for each in inner]
    return [(response, law @ response) for law, response in zip(laws, responses, strict=True)]


def _conditional_matrix(outer: Floats, inner: list[_Inner], laws: Floats) -> Floats:
    """Return the matrix of conditional reporting: a row per (s, u), and a block of columns per S̃."""
    size, values = laws.shape
    outer = np.full((size, size), 1 / size) if outer.shape[1] == 1 else outer
    blocks = []
    for s, (response, drawn) in enumerate(_responses(inner, laws)):
        block = np.tile(drawn, (size, values, 1))
        block[s] = response
        blocks.append((outer[:, s, None, None] * block).reshape(size * values, -1))
    return np.hstack(blocks)


def _unary_matrix(kappa: float, other: float, inner: list[_Inner], laws: Floats) -> Floats:
    """Return the matrix of a unary report: a row per (s, u), and a column per choice of absence or output of each s."""
    size, values = laws.shape
    matrix = np.ones((size * values, 1))
    for s, (response, drawn) in enumerate(_responses(inner, laws)):
        lane = np.tile(np.hstack([1 - other, other * drawn]), (size, values, 1))
        lane[s] = np.hstack([np.full((values, 1), 1 - kappa), kappa * response])
        lane = lane.reshape(size * values, -1)
        matrix = (matrix[:, :, None] * lane[:, None, :]).reshape(size * values, -1)
    return matrix
