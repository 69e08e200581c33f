"""Five attributes of a million people, each under its own policy: exact audits, and all tables of two attributes.

The attributes have the sizes of age, work class, education, race and sex in the Adult data, 106,560 combinations. Age
has a metric, education has sensitive values, and the others are uniform. Values are uniform, because the time does not
depend on them. Run with ``python -m benchmarks.attributes``.

``python -m benchmarks.attributes FOLDER`` audits reports about occupation, age and sex with the values of Adult
in this folder: sensitive occupations (high-low), a metric of ages, and uniform sexes. Every strategy must obey the
policy, and break one whose levels are 1% lower.
"""

from __future__ import annotations

import itertools
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.compiler.products import product_mechanism
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.mechanisms import Mechanism, ProductMechanism, SampledParts

SIZES = {"age": 74, "work": 9, "education": 16, "race": 5, "sex": 2}
PEOPLE = 10**6
#: Seconds for the designs of all attributes.
SECONDS = 30


def policy() -> sf.Product:
    """Return one policy per attribute."""
    age, work, education, race, sex = (sf.Domain.range(size) for size in SIZES.values())
    return sf.Product(
        {
            "age": sf.Metric(age, "absolute", "1/10"),
            "work": sf.Uniform(work, 1),
            "education": sf.HighLow(education, [0, 1, 2, 3], 1),
            "race": sf.Uniform(race, 1),
            "sex": sf.Uniform(sex, 1),
        }
    )


def mechanisms(stated: sf.Product) -> dict[str, Mechanism]:
    """Return a product, one attribute per person, and one pair of attributes per person."""
    split = product_mechanism(stated, Deadline(SECONDS))
    assert split is not None
    factors = dict(zip(SIZES, split.factors, strict=True))
    pairs = {
        (a, b): ProductMechanism(sf.Domain.range(SIZES[a] * SIZES[b]), [factors[a], factors[b]])
        for a, b in itertools.combinations(SIZES, 2)
    }
    return {
        "split": split,
        "sampled": SampledParts(stated.domain, factors),
        "sampled pairs": SampledParts(stated.domain, pairs),
    }


def main() -> None:
    """Print the seconds of every step, and the greatest error of a cell in standard errors."""
    stated = policy()
    begin = time.perf_counter()
    designs = mechanisms(stated)
    print(f"{len(stated.domain):,} combinations; designs of the attributes: {time.perf_counter() - begin:.1f} s")
    generator = np.random.default_rng(1)
    rows = np.stack([generator.integers(0, size, PEOPLE) for size in SIZES.values()], axis=1)
    for name, mechanism in designs.items():
        sf.privatize(mechanism, rows[:10], sf.InsecureSeeded(1))  # compiles the kernels
        seconds = {}
        begin = time.perf_counter()
        certificate = sf.audit(mechanism, stated)
        seconds["audit"] = time.perf_counter() - begin
        begin = time.perf_counter()
        reports = sf.privatize(mechanism, rows, sf.InsecureSeeded(1))
        seconds["privatize"] = time.perf_counter() - begin
        begin = time.perf_counter()
        counts = sf.aggregate(mechanism, reports)
        seconds["count"] = time.perf_counter() - begin
        begin = time.perf_counter()
        worst = greatest_deviation(mechanism, counts.counts / counts.n, rows, 1 if name == "sampled" else 2)
        seconds["tables"] = time.perf_counter() - begin
        steps = ", ".join(f"{step} {value:.2f} s" for step, value in seconds.items())
        print(
            f"{name}: {mechanism.outputs:,} reports, obeys {certificate.holds} (excess {certificate.worst.excess:.1g}, "
            f"read: {certificate.coverage}); {steps}; greatest error {worst:.1f} standard errors",
            flush=True,
        )


def audit_adult(folder: Path) -> None:
    """Print the exact audits of all strategies over occupation, age and sex of the Adult data."""
    import pandas as pd

    people = pd.read_parquet(folder / "adult.parquet")
    jobs = sf.Domain(sorted(people["occupation"].astype(str).unique()))
    ages = sf.Domain.range(int(people["age"].min()), int(people["age"].max()) + 1)
    sexes = sf.Domain(sorted(people["sex"].astype(str).unique()))
    services = [job for job in jobs.labels if "serv" in str(job)]

    def stated(share: Fraction) -> sf.Product:
        return sf.Product(
            {
                "occupation": sf.HighLow(jobs, services, share),
                "age": sf.Metric(ages, "absolute", share / 10),
                "sex": sf.Uniform(sexes, share),
            }
        )

    whole, lower = stated(Fraction(1)), stated(Fraction(99, 100))
    plan = sf.Questionnaire(whole).plan(len(people), question=sf.Marginals(2))
    print(f"{len(whole.domain):,} combinations of {len(jobs)} occupations, {len(ages)} ages and {len(sexes)} sexes")
    for row in plan.rows:
        begin = time.perf_counter()
        certificate = sf.audit(row.mechanism, whole)
        seconds = time.perf_counter() - begin
        broken = sf.audit(row.mechanism, lower)
        print(
            f"{row.name} ({row.mechanism.name}, {row.mechanism.outputs:,} reports): obeys {certificate.holds} (excess "
            f"{certificate.worst.excess:.1g}, read: {certificate.coverage}, {seconds:.1f} s); obeys levels that are 1% "
            f"lower: {broken.holds}",
            flush=True,
        )


def greatest_deviation(mechanism: Mechanism, fractions: np.ndarray, rows: np.ndarray, order: int) -> float:
    """Return the greatest error of a cell of all tables of this order, in standard errors."""
    shape, worst = mechanism.domain.shape, 0.0
    for axes in itertools.combinations(range(len(shape)), order):
        marginal = mechanism.estimator.marginal(shape, axes)
        cells = np.ravel_multi_index(rows[:, axes].T, marginal.shape)
        truth = np.bincount(cells, minlength=marginal.size) / len(rows)
        errors = np.sqrt(marginal.observed_variances(fractions) / len(rows))
        worst = max(worst, float(np.max(np.abs(marginal.frequencies(fractions) - truth) / errors)))
    return worst


if __name__ == "__main__":
    if sys.argv[1:]:
        audit_adult(Path(sys.argv[1]))
    else:
        main()
