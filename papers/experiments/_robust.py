"""The protocols of the robust LDP paper with the budgets of the paper, and their mutual information with X at P̂.

Lopuhaä-Zwakenberg, Goseling: The Privacy-Utility Tradeoff of Robust Local Differential Privacy (RLDP). Our mechanisms
of the same names compute the noise over the confidence set. The protocols here bound it by l1 distances (Theorems 15,
17, 19), so that a table of 6 x 42 cells takes milliseconds. Two statements of the paper are corrected: with another
secret s', Protocol 3 draws from P̂(U|s'); and a secret that does not occur in the counts has d_s = 2.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats
from sfumato.compiler import Optimum, optimal, robust_information
from sfumato.datasets.seeded import SeededNumbers
from sfumato.domain import Domain
from sfumato.errors import LimitExceeded
from sfumato.mechanisms import ConditionalReporting, ConditionalUnary, IndependentReporting, Mechanism
from sfumato.policy import ChiSquare, Secret

__all__ = [
    "PAPER",
    "PROTOCOLS",
    "Best",
    "Table",
    "averages",
    "conditional",
    "epsilon_text",
    "independent",
    "information_fractions",
    "matrices",
    "our_best",
    "our_optimum",
    "polyopt",
    "unary",
]


PAPER = "Lopuhaä-Zwakenberg, Goseling: The Privacy-Utility Tradeoff of Robust Local Differential Privacy"
ALPHA = "0.05"
#: Grid points per budget, by number of budgets; and number of finer grids around the best point.
_POINTS, _ZOOMS = {1: 33, 2: 11}, 2
#: Maximum number of cells for an optimal design over the confidence set, and its time limit in seconds.
_MOST_CELLS, _SECONDS = 9, 5.0
#: Maximum number of cells for independent reporting over the confidence set.
_MOST_INDEPENDENT = 25


class Table(NamedTuple):
    """Counts of n people, the radius B of the confidence set, and the true distribution."""

    counts: npt.NDArray[np.int64]
    radius: float
    truth: Floats

    @classmethod
    def draw(cls, numbers: SeededNumbers, shape: tuple[int, int], n: int, alpha: str = ALPHA) -> Table:
        """Draw n people from a distribution that is drawn from the Jeffreys prior."""
        truth = numbers.jeffreys(shape[0] * shape[1])
        return cls(numbers.multinomial(n, truth).reshape(shape), radius_of(n, shape, alpha), truth.reshape(shape))

    @classmethod
    def counted(cls, counts: npt.NDArray[np.int64], alpha: str = ALPHA) -> Table:
        """Return the table of real data; the empirical distribution replaces the unknown true one."""
        rows, columns = counts.shape
        n = int(counts.sum())
        return cls(counts, radius_of(n, (rows, columns), alpha), counts / n)

    @property
    def frequencies(self) -> Floats:
        """The empirical distribution P̂."""
        return np.asarray(self.counts / self.counts.sum(), np.float64)

    @property
    def laws(self) -> Floats:
        """P̂(U|s), one row per secret; uniform for a secret that does not occur."""
        totals = self.counts.sum(axis=1, keepdims=True)
        laws = np.where(totals > 0, self.counts / np.maximum(totals, 1), 1 / self.counts.shape[1])
        return np.asarray(laws, np.float64)

    @property
    def entropy(self) -> float:
        """The entropy H(X) at P̂."""
        return float(_entropy(self.frequencies.ravel()))

    def distances(self) -> Floats:
        """Return d_s of eq. 65."""
        totals = self.frequencies.sum(axis=1)
        safe = np.where(totals > 0, totals, 1.0)
        radius = ((np.sqrt(self.radius + 1) - 1 + safe) / safe) ** 2 - 1  # B_s, Lemma 8
        least = self.laws.min(axis=1)
        root = np.sqrt(radius**2 + 4 * radius * least * (1 - least))
        distances = np.where(radius >= 1, (radius * (1 - 2 * least) + root) / (radius + 1), np.sqrt(radius))
        return np.where(totals > 0, distances, 2.0)

    def policy(self, epsilon: str, alpha: str = ALPHA) -> Secret:
        """Return the robust policy."""
        rows, columns = self.counts.shape
        domain = Domain.product(S=[f"s{s}" for s in range(rows)], U=[f"u{u}" for u in range(columns)])
        return Secret(domain, "S", epsilon, ChiSquare(self.counts.tolist(), alpha))


@functools.cache
def radius_of(n: int, shape: tuple[int, int], alpha: str) -> float:
    """Return B of eq. 3."""
    counts = np.zeros(shape, np.int64)
    counts[0, 0] = n
    return float(ChiSquare(counts.tolist(), alpha).radius)


class Best(NamedTuple):
    """The best budget, and its mutual information with X at P̂ in nats."""

    information: float
    budget: dict[str, float]


# -- randomized response, in numbers ---------------------------------------------------------------------------


def _entropy(law: Floats) -> Floats:
    """Return the entropy of the laws along the last axis."""
    return np.asarray(-np.sum(law * np.log(np.where(law > 0, law, 1.0)), axis=-1))


def _response_information(law: Floats, gain: Floats) -> Floats:
    """Return I(R(V);V) for V with this law along the last axis and randomized response R at ε = ln(1 + gain)."""
    values = law.shape[-1]
    output = (1 + gain[..., None] * law) / (values + gain[..., None])
    same, other = (1 + gain) / (values + gain), 1 / (values + gain)
    noise = -same * np.log(same) - (values - 1) * other * np.log(other)
    return np.asarray(_entropy(output) - noise)


def _searched(objective: Callable[..., Floats], *ranges: tuple[float, float]) -> tuple[float, list[float]]:
    """Return the greatest value on a box and its point: search a grid, then finer grids around the best point."""
    low, high = [a for a, _ in ranges], [b for _, b in ranges]
    best, point, count = -np.inf, low, _POINTS[len(ranges)]
    for _ in range(1 + _ZOOMS):
        axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
        points = [axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]
        values = objective(*points)
        at = int(np.argmax(values))
        if values[at] > best:
            best, point = float(values[at]), [float(axis[at]) for axis in points]
        widths = [(b - a) / (count - 1) for a, b in zip(low, high, strict=True)]
        low = [max(x - width, a) for x, width, (a, _) in zip(point, widths, ranges, strict=True)]
        high = [min(x + width, b) for x, width, (_, b) in zip(point, widths, ranges, strict=True)]
    return best, point


# -- the protocols ---------------------------------------------------------------------------------------------


def independent(table: Table, epsilon: float) -> Best:
    """Return IR: randomized response of U at δ₂ of Theorem 15, and of S at the rest of ε."""
    frequencies, laws = table.frequencies, table.laws
    apart = max(np.abs(a - b).sum() for a, b in itertools.combinations(laws, 2))
    distance = min(2.0, 2 * table.distances().max() + apart)
    secrets, size = frequencies.sum(axis=1), len(frequencies)

    def objective(second: Floats) -> Floats:
        first, gain = np.expm1(epsilon - second), 2 * np.expm1(second) / distance
        after = frequencies.sum(axis=0) + first[:, None, None] * frequencies  # joint of R¹(S) and U, times a₁ + first
        law = after.sum(axis=-1, keepdims=True)
        of_other = _response_information(after / law, np.broadcast_to(gain[:, None], law.shape[:-1]))
        weights = law[..., 0] / (size + first)[:, None]
        of_secret = _response_information(np.broadcast_to(secrets, (len(first), size)), first)
        return np.asarray(of_secret + np.sum(weights * of_other, axis=1))

    value, (second,) = _searched(objective, (0.0, epsilon))
    return Best(value, {"second": second, "gain": 2 * float(np.expm1(second)) / distance})


def conditional(table: Table, epsilon: float) -> Best:
    """Return GRR-CR: S̃ at ε₁ = ε - ε₂, and U at δ_s of Theorem 17 if S̃ = S."""
    secrets, laws, distances = table.frequencies.sum(axis=1), table.laws, table.distances()
    size = len(secrets)

    def objective(second: Floats) -> Floats:
        first = np.expm1(epsilon - second)
        of_secret = _response_information(np.broadcast_to(secrets, (len(first), size)), first)
        true_rate = (1 + first) / (size + first)
        return np.asarray(
            of_secret + true_rate * _conditional_information(secrets, laws, distances, second)
        )  # Theorem 18

    value, (second,) = _searched(objective, (0.0, epsilon))
    return Best(value, {"second": second})


def unary(table: Table, epsilon: float) -> Best:
    """Return UE-CR: a set of secrets with parameters κ and λ, and U with the true one. Theorem 19: ε₂ ≤ ε/2."""
    secrets, laws, distances = table.frequencies.sum(axis=1), table.laws, table.distances()
    members = np.array(list(itertools.product((False, True), repeat=len(secrets))))
    inside, sizes = members @ secrets, members.sum(axis=1)

    def objective(second: Floats, inclusion: Floats) -> Floats:
        spread = inclusion + (1 - inclusion) * np.exp(epsilon - second)  # κ/λ; and (1-κ)/(1-λ) is that over e^ε₁
        other = inclusion / spread
        within, without = spread[:, None], (spread / np.exp(epsilon - second))[:, None]
        # 0^0 = 1, so at κ = λ = 1 only the set of all secrets remains.
        base = other[:, None] ** sizes * (1 - other)[:, None] ** (len(secrets) - sizes)
        mean = within * inside + without * (1 - inside)
        each = within * inside * np.log(within) + without * (1 - inside) * np.log(without) - mean * np.log(mean)
        return np.asarray(
            np.sum(base * each, axis=1) + inclusion * _conditional_information(secrets, laws, distances, second)
        )  # Theorem 20

    value, (second, inclusion) = _searched(objective, (0.0, epsilon / 2), (0.02, 1.0))
    return Best(
        value,
        {
            "second": second,
            "own": inclusion,
            "others": inclusion / (inclusion + (1 - inclusion) * np.exp(epsilon - second)),
        },
    )


def _conditional_information(secrets: Floats, laws: Floats, distances: Floats, second: Floats) -> Floats:
    """Return I(Rˢ(U);U|S) with δ_s = ln(1 + 2(e^ε₂ - 1)/d_s)."""
    gains = 2 * np.expm1(second)[:, None] / distances
    return np.asarray(_response_information(np.broadcast_to(laws, (len(second), *laws.shape)), gains) @ secrets)


def secret_response(table: Table, epsilon: float) -> Best:
    """Return SRR, eq. 18."""
    frequencies, t = table.frequencies, np.exp(epsilon)
    others, cells = frequencies.shape[1], frequencies.size
    total = t + (others - 1) / t + cells - others
    secrets = frequencies.sum(axis=1, keepdims=True)
    output = (t * frequencies + (secrets - frequencies) / t + 1 - secrets) / total
    row = np.concatenate([[t], np.full(others - 1, 1 / t), np.ones(cells - others)]) / total
    return Best(float(_entropy(output.ravel()) - _entropy(row)), {})


def randomized_response(table: Table, epsilon: float) -> Best:
    """Return GRR over all pairs."""
    return Best(float(_response_information(table.frequencies.ravel(), np.expm1(np.array(epsilon)))), {})


PROTOCOLS: dict[str, Callable[[Table, float], Best]] = {
    "IR": independent,
    "GRR-CR": conditional,
    "UE-CR": unary,
    "SRR": secret_response,
    "GRR": randomized_response,
}


def information_fractions(table: Table, epsilon: float) -> dict[str, float]:
    """Return I(X;Y)/H(X) at P̂ of each protocol."""
    return {name: protocol(table, epsilon).information / table.entropy for name, protocol in PROTOCOLS.items()}


def averages(tables: Iterable[Table], epsilon: float) -> dict[str, float]:
    """Return the mean of I(X;Y)/H(X) over tables."""
    fractions = [information_fractions(table, epsilon) for table in tables]
    return {name: float(np.mean([each[name] for each in fractions])) for name in PROTOCOLS}


# -- the channels of the protocols, for other distributions and for audits -------------------------------------


def matrices(table: Table, epsilon: float) -> dict[str, Floats]:
    """Return the channels of IR, GRR-CR and UE-CR with their best budgets; rows are (s, u)."""
    laws, distances = table.laws, table.distances()
    secrets, others = laws.shape
    of_ir, of_cr, of_ue = (PROTOCOLS[name](table, epsilon).budget for name in ("IR", "GRR-CR", "UE-CR"))
    first = float(np.expm1(epsilon - of_ir["second"]))
    channels: dict[str, Floats] = {
        "IR": np.asarray(np.kron(_response(secrets, first), _response(others, of_ir["gain"])), np.float64)
    }

    def lanes(second: float) -> list[tuple[Floats, Floats]]:
        """Return for each secret the response to each u, and the law of a report of U drawn from P̂(U|s)."""
        responses = [_response(others, 2 * float(np.expm1(second)) / distance) for distance in distances]
        return [(response, law @ response) for law, response in zip(laws, responses, strict=True)]

    outer = _response(secrets, float(np.expm1(epsilon - of_cr["second"])))
    blocks = []
    for s, (response, law) in enumerate(lanes(of_cr["second"])):
        block = np.tile(law, (secrets, others, 1))
        block[s] = response
        blocks.append((outer[:, s, None, None] * block).reshape(secrets * others, -1))
    channels["GRR-CR"] = np.hstack(blocks)

    matrix = np.ones((secrets * others, 1))
    for s, (response, law) in enumerate(lanes(of_ue["second"])):
        lane = np.tile(np.hstack([1 - of_ue["others"], of_ue["others"] * law]), (secrets, others, 1))
        lane[s] = np.hstack([np.full((others, 1), 1 - of_ue["own"]), of_ue["own"] * response])
        rows = lane.reshape(secrets * others, 1, -1)
        matrix = (matrix[:, :, None] * rows).reshape(secrets * others, -1)
    channels["UE-CR"] = matrix
    return channels


def _response(values: int, gain: float) -> Floats:
    """Return the matrix of randomized response at ε = ln(1 + gain)."""
    return np.asarray((1 + gain * np.eye(values)) / (values + gain))


# -- PolyOpt, and ours ---------------------------------------------------------------------------------------------


def epsilon_text(epsilon: float) -> str:
    """Return ε as a string for a policy."""
    return f"{epsilon:g}"


def polyopt(table: Table, epsilon: float, seconds: float | None = None) -> Optimum:
    """Return the best mechanism for the polytope around the confidence set: PolyOpt of the paper, by our solver."""
    policy = table.policy(epsilon_text(epsilon))
    assert isinstance(policy.distributions, ChiSquare)
    around = Secret(policy.domain, "S", policy.epsilon, policy.distributions.polytope())
    return optimal(around, "mutual-information", prior=table.frequencies.ravel(), max_seconds=seconds)


def our_optimum(table: Table, epsilon: float, seconds: float = _SECONDS) -> float:
    """Return I(X;Y)/H(X) of the best mechanism for the confidence set, within a time limit."""
    optimum = optimal(
        table.policy(epsilon_text(epsilon)), "mutual-information", prior=table.frequencies.ravel(), max_seconds=seconds
    )
    return float(optimum.value) / table.entropy


def our_best(table: Table, epsilon: float) -> float:
    """Return I(X;Y)/H(X) of the best of our mechanisms for a table of this size."""
    if table.counts.size <= _MOST_CELLS:
        return our_optimum(table, epsilon)
    policy = table.policy(epsilon_text(epsilon))
    mechanisms: list[Mechanism] = [ConditionalReporting(policy)]
    if table.counts.size <= _MOST_INDEPENDENT:
        mechanisms.append(IndependentReporting(policy))
    with contextlib.suppress(LimitExceeded):  # too many outputs for a table
        mechanisms.append(ConditionalUnary(policy))
    fractions = [robust_information(mechanism, policy).fraction for mechanism in mechanisms]
    return max(*fractions, secret_response(table, epsilon).information / table.entropy)
