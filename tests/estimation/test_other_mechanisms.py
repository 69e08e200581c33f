"""Counting reports of one mechanism with another: what is rejected, what warns, and that honest reports do not."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.cli import main
from sfumato.collecting import read_reports, write_reports
from sfumato.errors import InvalidInput
from sfumato.estimation import implausible, plausibility
from sfumato.mechanisms import (
    HadamardResponse,
    LocalHashing,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
    reports_to_column,
)
from support.examples import EXAMPLES

DOMAIN = sf.Domain(["none", "flu", "hiv", "cancer", "other"])
VALUES = np.repeat(np.array(DOMAIN.labels), [6000, 2500, 500, 500, 500])
#: A mechanism that draws the reports, and another one with reports of the same form that counts them.
MIXED_UP: dict[str, tuple[Mechanism, Mechanism]] = {
    "response by hadamard": (RandomizedResponse(DOMAIN, 2), HadamardResponse(DOMAIN, 2)),
    "response by hashing": (RandomizedResponse(DOMAIN, 2), LocalHashing(DOMAIN, 2, buckets=2)),
    "response, larger epsilon": (RandomizedResponse(DOMAIN, 3), RandomizedResponse(DOMAIN, 1)),
    "hadamard, other epsilon": (HadamardResponse(DOMAIN, 1), HadamardResponse(DOMAIN, 3)),
    "unary, smaller epsilon": (UnaryEncoding(DOMAIN, 1), UnaryEncoding(DOMAIN, 3)),
    "unary, larger epsilon": (UnaryEncoding(DOMAIN, 3), UnaryEncoding(DOMAIN, 1)),
    "subsets by unary": (SubsetSelection(DOMAIN, 1), UnaryEncoding(DOMAIN, 1)),
}
WARNING = "the reports may be of another mechanism"


def reports_of(mechanism: Mechanism, values: Any = VALUES, seed: int = 1) -> Any:
    return sf.privatize(mechanism, values, sf.InsecureSeeded(seed))


def arrow_column(reports: Any) -> Any:
    """The column that ``privatize`` returns for Arrow values."""
    return reports_to_column(reports, pa.array(["none"]))


#: Columns without metadata.
BARE: dict[str, Callable[[Any], Any]] = {
    "numpy": np.asarray,
    "list": list,
    "arrow": arrow_column,
    "polars": lambda reports: pl.Series(arrow_column(reports)),
}


@pytest.mark.parametrize("column", BARE)
@pytest.mark.parametrize("case", MIXED_UP)
def test_bare_reports_of_another_mechanism_warn(case: str, column: str) -> None:
    drawn, counted = MIXED_UP[case]
    reports = BARE[column](reports_of(drawn))
    result = sf.estimate(counted, sf.aggregate(counted, reports))
    assert WARNING in result.warnings[0]
    assert f"WARNING: {result.warnings[0]}" in str(result)
    assert WARNING not in str(sf.estimate(drawn, sf.aggregate(drawn, reports)))


@pytest.mark.parametrize("case", MIXED_UP)
def test_a_pandas_column_and_files_of_another_mechanism_are_rejected(case: str, tmp_path: Path) -> None:
    drawn, counted = MIXED_UP[case]
    with pytest.raises(InvalidInput, match="produced by another mechanism"):
        sf.aggregate(counted, reports_of(drawn, pd.Series(VALUES)))
    for name in ("reports.parquet", "reports.arrow", "reports.sfb"):
        write_reports(drawn, reports_of(drawn), tmp_path / name)
        assert sum(map(len, read_reports(drawn, tmp_path / name))) == len(VALUES)
        with pytest.raises(InvalidInput, match="produced by another mechanism"):
            list(read_reports(counted, tmp_path / name))


def test_four_hundred_reports_are_enough_for_unary_encoding() -> None:
    """Estimates of such mistakes are .52, .39 and .32 for .60, .25 and .05; no single count is impossible."""
    drawn, counted = MIXED_UP["unary, smaller epsilon"]
    for seed in range(20):
        counts = sf.aggregate(counted, reports_of(drawn, VALUES[::25], seed))
        assert counts.n == 400
        assert implausible(counted, counts)


def test_the_test_is_blind_if_a_distribution_explains_the_counts() -> None:
    """Randomized response with a smaller epsilon looks like that of people with more even values."""
    counted = RandomizedResponse(DOMAIN, 3)
    counts = sf.aggregate(counted, reports_of(RandomizedResponse(DOMAIN, 1)))
    assert not implausible(counted, counts)
    assert abs(sf.estimate(counted, counts)["none"].value - 0.6) > 0.2


def test_all_kinds_of_estimates_warn() -> None:
    drawn, counted = RandomizedResponse(DOMAIN, 3), RandomizedResponse(DOMAIN, 1)
    counts = sf.aggregate(counted, reports_of(drawn))
    wrong = sf.estimate(counted, counts)
    right = sf.estimate(drawn, sf.aggregate(drawn, reports_of(drawn)))
    combined = sf.combine([wrong, right, wrong])
    assert [warning for warning in combined.warnings if WARNING in warning] == [wrong.warnings[0]]
    assert not any(WARNING in warning for warning in sf.combine([right, right]).warnings)
    region = np.arange(len(VALUES)) % 2
    groups = sf.estimate_groups(counted, sf.aggregate_groups(counted, reports_of(drawn), region))
    assert str(groups).endswith(f"WARNING: {wrong.warnings[0]}")
    assert all(WARNING in group.warnings[0] for group in groups.groups.values())
    assert "WARNING" not in str(sf.estimate_groups(drawn, sf.aggregate_groups(drawn, reports_of(drawn), region)))
    mean = TableMechanism.from_matrix(sf.Domain.range(3), [["3/4", "1/4"], ["1/2", "1/2"], ["1/4", "3/4"]])
    partial = sf.estimate(mean, sf.aggregate(mean, [0] * 950 + [1] * 50))
    assert partial.warnings == (wrong.warnings[0],)
    assert str(partial).endswith(f"WARNING: {wrong.warnings[0]}")
    assert sf.estimate(mean, sf.aggregate(mean, [0] * 740 + [1] * 260)).warnings == ()
    read = sf.Estimate.from_dict(wrong.to_dict())
    assert read.warnings == wrong.warnings


def test_the_command_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn, counted = RandomizedResponse(sf.Domain.range(5), 3), RandomizedResponse(sf.Domain.range(5), 1)
    reports = reports_of(drawn, np.arange(5).repeat([6000, 2500, 500, 500, 500]))
    mechanism, counts, groups = (str(tmp_path / name) for name in ("m.json", "counts.json", "groups.json"))
    Path(mechanism).write_text(counted.to_json())
    Path(counts).write_text(sf.aggregate(counted, reports).to_json())
    Path(groups).write_text(sf.aggregate_groups(counted, reports, np.arange(10_000) % 2).to_json())
    for arguments in ([counts], [counts, "--question", "mean"], [groups], [groups, "--json"]):
        assert main(["estimate", mechanism, *arguments]) == 0
        captured = capsys.readouterr()
        assert (captured.out + captured.err).count(WARNING) == 1
    assert main(["estimate", mechanism, counts, "--json"]) == 0
    assert WARNING in json.loads(capsys.readouterr().out)["warnings"][0]


# -- honest reports ----------------------------------------------------------------------------------------------

#: Families of mechanisms, by name of ``design``; not all exist for every number of values.
FAMILIES = ("rr", "unary", "unary-optimized", "subset", "hadamard", "cyclic", "local-hashing", "mean")

#: Levels of privacy, from almost no information to no protection.
LEVELS: tuple[int | str, ...] = ("1/100", 1, 8, "inf")


def honest_mechanisms() -> list[Mechanism]:
    """Return mechanisms of all families for 2 to 16 values and levels from 0.01 to infinity."""
    made = [example.mechanism for example in EXAMPLES.values() if len(example.mechanism.domain) <= 32]
    for size, epsilon, name in itertools.product((2, 3, 16), LEVELS, FAMILIES):
        try:
            made.append(sf.design(sf.Uniform(sf.Domain.range(size), epsilon), mechanism=name))
        except sf.SfumatoError:
            continue  # the family has no mechanism of this size or level
    return made


@pytest.mark.slow
def test_honest_reports_are_plausible() -> None:
    """No alarm, whose probability is below 1e-6 per check, and at most a share α of p-values up to α, for α = 0.02.

    The number of p-values up to 0.02 exceeds its limit with a probability below 1e-6.
    """
    generator = np.random.default_rng(8)
    p_values = []
    for mechanism in honest_mechanisms():
        size = len(mechanism.domain)
        for n in (1, 2, 30, 3000):
            truth = generator.dirichlet(np.full(size, generator.choice([0.05, 0.5, 5.0])))
            values = mechanism.domain.decode(generator.choice(size, n, p=truth))
            reports = sf.privatize(mechanism, list(values), sf.InsecureSeeded(int(generator.integers(2**32))))
            result = plausibility(mechanism, sf.aggregate(mechanism, reports))
            assert not result.alarm, (mechanism, n)
            p_values.append(1.0 if result.p_value is None else result.p_value)
    assert len(p_values) > 400
    below = sum(p_value <= 0.02 for p_value in p_values)
    assert stats.binom.sf(below - 1, len(p_values), 0.02) > 1e-6


def test_the_level_of_the_total_holds_exactly() -> None:
    """All counts of 3 reports of 3 bits with their exact probabilities: P(p-value ≤ α) ≤ α for every α."""
    for epsilon, values in itertools.product((1, 5), ((0, 0, 0), (0, 1, 2), (1, 1, 2))):
        mechanism = UnaryEncoding(sf.Domain.range(3), epsilon)
        own, other = map(float, mechanism.bit_probabilities)
        laws = [bits_law([own if value == bit else other for value in values]) for bit in range(3)]
        outcomes = []
        for counts in itertools.product(range(4), repeat=3):
            result = plausibility(mechanism, sf.Aggregate(mechanism.hash, 3, np.array(counts)))
            assert result.p_value is not None
            outcomes.append((result.p_value, math.prod(law[count] for law, count in zip(laws, counts, strict=True))))
        for level, _ in outcomes:
            assert level == 1.0 or sum(p for value, p in outcomes if value <= level) <= level * (1 + 1e-9)


def bits_law(probabilities: list[float]) -> np.ndarray:
    """The law of the number of set bits, for independent bits."""
    law = np.ones(1)
    for probability in probabilities:
        law = np.convolve(law, [1 - probability, probability])
    return law
