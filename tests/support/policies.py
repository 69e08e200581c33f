"""Random policies: levels between values, distances, and secrets under an estimated distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.mechanisms.nested import NestedMechanism

Floats = npt.NDArray[np.float64]


def random_pairwise(seed: int, k: int, harmless: int = 0) -> sf.Pairwise:
    """Levels uniform in [0.5, 3], asymmetric, closed under adding; harmless values are compared with nothing."""
    generator = np.random.default_rng(seed)
    levels = generator.uniform(0.5, 3, (k, k))
    levels[generator.choice(k, harmless, replace=False)] = np.inf
    np.fill_diagonal(levels, 0)
    for middle in range(k):
        levels = np.minimum(levels, levels[:, middle : middle + 1] + levels[middle : middle + 1])
    return sf.Pairwise(sf.Domain.range(k), [[f"{x:.6f}" if x < np.inf else "inf" for x in row] for row in levels])


def random_metric(seed: int, k: int, epsilon: int = 4) -> sf.Metric:
    """Points in a unit square, with Euclid's distance to four digits (and the triangle inequality kept)."""
    points = np.random.default_rng(seed).uniform(size=(k, 2))
    distances = np.round(np.linalg.norm(points[:, None] - points, axis=2), 4)
    for middle in range(k):
        distances = np.minimum(distances, distances[:, middle : middle + 1] + distances[middle : middle + 1])
    return sf.Metric(sf.Domain.range(k), [[f"{x:.4f}" for x in row] for row in distances], epsilon)


def policies(counts: npt.NDArray[np.int64], epsilon: str) -> tuple[sf.Secret, sf.Secret, Floats]:
    """The policy under the confidence set, that under the polytope around it, and the estimated shares."""
    domain = sf.Domain.product(S=range(counts.shape[0]), U=range(counts.shape[1]))
    confidence = sf.ChiSquare(counts.tolist())
    around = sf.Secret(domain, "S", epsilon, confidence.polytope())
    return sf.Secret(domain, "S", epsilon, confidence), around, counts.ravel() / counts.sum()


def jeffreys(seed: int, shape: tuple[int, int], n: int = 1000) -> npt.NDArray[np.int64]:
    generator = np.random.default_rng(seed)
    counts = generator.multinomial(n, generator.dirichlet(np.full(shape[0] * shape[1], 0.5)))
    return np.asarray(counts.reshape(shape))


def policies_over_blocks(mechanism: NestedMechanism, generator: np.random.Generator) -> list[sf.Policy]:
    """Policies of several kinds over the values of a mechanism for blocks, one of them random."""
    domain = mechanism.domain
    matrix = generator.choice(["0.5", "1", "2", "inf"], (len(domain), len(domain)))
    np.fill_diagonal(matrix, "0")
    return [
        sf.Uniform(domain, 1),
        sf.Blocks(domain, [x // 2 for x in range(len(domain))], "0.3", 2),
        sf.Blocks(domain, mechanism.block_of, "inf", 1),
        sf.HighLow(domain, [0, 1], 1),
        sf.Pairwise(domain, matrix),
    ]
