"""Simulated surveys of every family of mechanisms: their counts, drawn from the law of the counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

import sfumato as sf
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.high_low_mixed.mechanism import HighLowMixedSubsets
from sfumato.mechanisms.nested_cyclic.mechanism import NestedCyclic
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.parts.high_low import HighLowCyclic, HighLowHadamard, HighLowSubset, UtilityOptimizedRR
from sfumato.mechanisms.registry import count_law_for
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.table.binary import binary_for_policy
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.unary.mechanism import UnaryEncoding
from sfumato.mechanisms.waves.mechanism import Waves
from sfumato.randomness import insecure_generator

Floats = npt.NDArray[np.float64]

D = sf.Domain.range(5)
#: Coverage that every interval of 95% must have.
LEAST = 0.91
#: False-rejection rate of one setting, shared among its values.
ALPHA = 1e-6

FAMILIES: dict[str, Callable[[int], Mechanism]] = {
    "randomized response": lambda epsilon: RandomizedResponse(D, epsilon),
    "unary": lambda epsilon: UnaryEncoding(D, epsilon),
    "unary, optimized": lambda epsilon: UnaryEncoding(D, epsilon, optimized=True),
    "subset": lambda epsilon: SubsetSelection(D, epsilon, 2),
    "hadamard": lambda epsilon: HadamardResponse(D, epsilon),
    "hadamard, blocks": lambda epsilon: HadamardResponse(D, epsilon, block_size=4, blocks=2),
    "cyclic": lambda epsilon: CyclicDesign(D, epsilon, design=CyclicDesign.singer(2, 1, 3)),
    "cyclic, blocks": lambda epsilon: CyclicDesign(D, epsilon, design=CyclicDesign.residues(5, 1, zero=1)),
    "table": lambda epsilon: TableMechanism.from_matrix(D, wide_matrix(epsilon)),
    "binary": lambda epsilon: binary_for_policy(sf.Pairwise(sf.Domain.range(2), [[0, epsilon], [2 * epsilon, 0]])),
    "high-low subset": lambda epsilon: HighLowSubset(D, [0, 1, 2], epsilon, 2),
    "high-low mixed": lambda epsilon: HighLowMixedSubsets(D, [0, 1, 2], epsilon, (1, 2), weight=2**63, share="1/2"),
    "high-low hadamard": lambda epsilon: HighLowHadamard(D, [0, 1, 2], epsilon),
    "high-low cyclic": lambda epsilon: HighLowCyclic(D, [0, 1, 2], epsilon, design=CyclicDesign.singer(2, 1, 3)),
    "uo-rr": lambda epsilon: UtilityOptimizedRR(D, [0, 1, 2], epsilon),
    "blocks, rr": lambda epsilon: BlockMechanism.for_policy(sf.Blocks(D, "aabbb", epsilon), "rr"),
    "blocks, subset": lambda epsilon: BlockMechanism.for_policy(sf.Blocks(D, "aabbb", epsilon), "subset"),
    "blocks, hadamard": lambda epsilon: BlockMechanism.for_policy(sf.Blocks(D, "aabbb", epsilon), "hadamard"),
    "blocks, cyclic": lambda epsilon: BlockMechanism.for_policy(sf.Blocks(D, "aabbb", epsilon), "cyclic"),
    "nested cyclic": lambda epsilon: NestedCyclic.for_policy(sf.Blocks(D, "aabbb", epsilon, 2 * epsilon), max_bits=6),
    "waves": lambda epsilon: Waves(D, epsilon, modulus=8, waves=[(1, 1, 3, 2), (2, 2, 3, 1), (1, 4, 2, 1)]),
    "composed": lambda epsilon: ComposedSubsets.for_policy(sf.Blocks(D, "aabbb", epsilon, 2 * epsilon)),
}


def wide_matrix(epsilon: int) -> Floats:
    """More outputs than values, of two kinds: half as much of the privacy is spent by one output in three."""
    sharp, dull = (
        np.exp(-level * np.abs(np.subtract.outer(np.arange(5), np.arange(5)))) for level in (epsilon, epsilon / 2)
    )
    matrix = np.hstack([2 * sharp, dull])
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def truths(size: int) -> dict[str, Floats]:
    falling = 1 / np.arange(1, size + 1) ** 2
    peak = np.where(np.arange(size) == size - 1, 0.9, 0.1 / (size - 1))
    return {"falling": falling / falling.sum(), "peak": peak}


def counts_of(mechanism: Mechanism, n: int, truth: Floats, repetitions: int, seed: int) -> npt.NDArray[np.int64]:
    """The counts of many collections."""
    estimator = mechanism.estimator
    if mechanism.report_format.encoding == "index":
        law = np.maximum(estimator.expected_counts(truth), 0)
        return np.random.default_rng(seed).multinomial(n, law / law.sum(), repetitions)
    count_law = count_law_for(mechanism)
    if count_law is None:
        values = np.random.default_rng(seed).choice(len(truth), n * repetitions, p=truth)
        reports = sf.privatize(mechanism, values, sf.InsecureSeeded(seed))
        starts = range(0, len(values), n)
        return np.stack([sf.aggregate(mechanism, reports[start : start + n]).counts for start in starts])
    draws = insecure_generator(seed)
    return np.stack([count_law(draws, n, truth) for _ in range(repetitions)])


def too_few(held: Floats, repetitions: int, least: float = LEAST) -> bool:
    """Whether so few intervals held the truth that a coverage of ``least`` is refuted: an exact test."""
    covered = np.rint(held * repetitions)
    return bool((stats.binom.cdf(covered, repetitions, least) < ALPHA / len(held)).any())
