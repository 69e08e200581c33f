"""Acharya et al. 2020 (ICML), Figure 2: block-structured privacy against the number of people."""

from __future__ import annotations

import itertools

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._blocks import best, published
from papers.figure import Curve, Panel
from papers.result import Claim, Result, Row
from sfumato._core import Floats
from sfumato.datasets.seeded import SeededNumbers
from sfumato.device import simulate
from sfumato.domain import Domain

__all__ = ["EXPERIMENT"]


def _truths(k: int, seed: int) -> dict[str, Floats]:
    """Return the true distributions by name."""
    geometric, zipf = 0.95 ** np.arange(k), 1 / np.arange(1, k + 1)
    shuffled = geometric[SeededNumbers(seed).shuffled(k)]
    weights = {"uniform": np.ones(k), "Geo(0.95)": geometric, "Zipf(1)": zipf, "Geo(0.95)*": shuffled}
    return {name: each / each.sum() for name, each in weights.items()}


def _run(run: Run) -> Result:
    k, repetitions, of_ours = run.of((100, 1, 1), (1000, 10, 3))
    blocks = run.of((10, 20), (10, 20, 50, 100))
    numbers = [1000 * 2**i for i in run.of(range(2), range(10))]
    domain, seeds = Domain.range(k), run.seeds()
    truths = _truths(k, next(seeds))
    schemes = {"LDP": None} | {f"m = {m}": np.arange(k) // (k // m) for m in blocks}
    mechanisms = {
        (name, who): make(domain, labels, 1)
        for name, labels in schemes.items()
        for who, make in (("measured", published), ("ours", best))
    }
    errors: dict[tuple[str, int, str, str], list[float]] = {}
    cases = itertools.product(truths, numbers, range(repetitions), mechanisms)
    for truth, n, _, (name, who) in run.each(case for case in cases if case[3][1] == "measured" or case[2] < of_ours):
        simulation = simulate(
            mechanisms[name, who],
            n=n,
            truth=truths[truth],
            method="simplex",
            seed=next(seeds),
            one_by_one=who != "ours",
        )
        errors.setdefault((truth, n, name, who), []).append(simulation.tv)
    means = {key: float(np.mean(values)) for key, values in errors.items()}
    rows = tuple(
        Row(f"{truth}, {name}, n = {n:,}", None, means[truth, n, name, "measured"], means[truth, n, name, "ours"])
        for truth, name, n in itertools.product(truths, schemes, numbers)
    )
    return Result(
        quantity="total variation error, mean of the repetitions",
        ours_is="subset selection in each block, projected onto the simplex",
        rows=rows,
        claims=_claims(means, list(truths), numbers, list(schemes)),
        notes=(
            f"k = {k}, ε = 1, {repetitions} repetitions ({of_ours} of ours). The paper prints no numbers.",
            "We read Geo(0.95) as p(i) ∝ 0.95^i. The printed (1-λ)^i·λ at λ = 0.95 would give one value 95% of "
            "the mass. A permutation could then not spread frequent values over blocks.",
            "The paper does not state how it treats estimates outside the simplex. We project them, block by block.",
        ),
        panels=tuple(
            Panel(
                truth,
                "people",
                "total variation error",
                tuple(Curve(name, numbers, [means[truth, n, name, "measured"] for n in numbers]) for name in schemes)
                + tuple(
                    Curve(f"{name}, ours", numbers, [means[truth, n, name, "ours"] for n in numbers], ours=True)
                    for name in ("LDP", list(schemes)[-1])
                ),
                "x",
            )
            for truth in truths
        ),
    )


def _claims(
    means: dict[tuple[str, int, str, str], float], truths: list[str], numbers: list[int], schemes: list[str]
) -> tuple[Claim, ...]:
    classical, *blocks = schemes
    points = list(itertools.product(truths, numbers))
    better = sum(means[t, n, b, "measured"] < means[t, n, classical, "measured"] for t, n in points for b in blocks)
    pairs = list(itertools.pairwise(blocks))
    finer = sum(means[t, n, b, "measured"] < means[t, n, a, "measured"] for t, n in points for a, b in pairs)
    ours = sum(means[t, n, s, "ours"] < means[t, n, s, "measured"] for t, n in points for s in schemes)
    of_ours = len(points) * len(schemes)
    return (
        Claim(
            "the accuracy is consistently better under block-structured LDP than under classical LDP",
            better == len(points) * len(blocks),
            f"at {better} of {len(points) * len(blocks)} points",
        ),
        Claim(
            "the larger m, the better the accuracy",
            finer == len(points) * len(pairs),
            f"at {finer} of {len(points) * len(pairs)} points",
        ),
        Claim(
            "(ours) the error is smaller than that of the paper's mechanism",
            ours == of_ours,
            f"at {ours} of {of_ours} points",
        ),
    )


EXPERIMENT = Experiment(
    "icml-figure2",
    "Error against the number of people for blocks of 1,000 values",
    "Acharya, Bonawitz, Kairouz, Ramage, Sun: Context-Aware Local Differential Privacy, ICML 2020, Figure 2",
    _run,
)
