"""The test for forged reports: its level for any truth, by enumeration, and what it detects and cannot detect."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.estimation.plausibility import ALARM, plausibility

FEW = sf.Domain(["none", "flu", "hiv"])


@pytest.mark.parametrize("truth", [(1.0, 0.0, 0.0), (0.2, 0.3, 0.5), (1 / 3, 1 / 3, 1 / 3)])
def test_the_level_holds_exactly_for_every_truth(truth: tuple[float, ...]) -> None:
    """All histograms of 12 reports with their exact probabilities: P(p-value ≤ α) ≤ α for every α."""
    mechanism, n = sf.mechanisms.RandomizedResponse(FEW, 2), 12
    law = np.asarray(truth) @ mechanism.matrix()
    outcomes = []
    for first, second in itertools.product(range(n + 1), repeat=2):
        counts = np.array([first, second, n - first - second])
        if counts[2] < 0:
            continue
        ways = math.factorial(n) / math.prod(math.factorial(count) for count in counts.tolist())
        probability = ways * float(np.prod(law**counts))
        result = plausibility(mechanism, sf.Aggregate(mechanism.hash, n, counts))
        assert result.p_value is not None
        outcomes.append((result.p_value, probability))
    outcomes.sort()
    for level, total in zip([value for value, _ in outcomes], np.cumsum([p for _, p in outcomes]), strict=True):
        at_most = sum(p for value, p in outcomes if value <= level)
        assert at_most <= level * (1 + 1e-9) or level == 1.0, (level, total)


@pytest.mark.parametrize("name", ["rr", "subset", "unary", "hadamard"])
def test_honest_reports_raise_no_alarm_and_a_flood_of_one_report_does(name: str) -> None:
    """False alarms have probability at most 1e-6 per check; a flood as large as the survey is detected."""
    domain = sf.Domain.range(16)
    mechanism = sf.design(sf.Uniform(domain, 1), mechanism=name)
    values = np.random.default_rng(3).choice(16, 4000, p=np.arange(16) / 120)
    honest = sf.privatize(mechanism, values.tolist(), sf.InsecureSeeded(4))
    counts = sf.aggregate(mechanism, honest)
    assert not plausibility(mechanism, counts).alarm
    flood = sf.aggregate(mechanism, np.repeat(honest[:1], 4000, axis=0))
    result = plausibility(mechanism, counts.merge(flood))
    assert result.alarm
    assert result.p_value is not None
    assert result.p_value < ALARM


def test_a_report_that_no_value_produces_is_improbable() -> None:
    weights = [[2**61, 2**61, 0], [2**61, 2**61, 0]]
    mechanism = sf.mechanisms.TableMechanism(sf.Domain(["no", "yes"]), weights)
    counts = np.array([0, 0, 1])
    assert plausibility(mechanism, sf.Aggregate(mechanism.hash, 1, counts)).alarm


def test_a_forger_who_follows_the_law_is_not_detected() -> None:
    """Reports of one value, drawn by the mechanism, are those of people who all have that value."""
    mechanism = sf.mechanisms.RandomizedResponse(FEW, 1)
    honest = sf.privatize(mechanism, ["none", "flu"] * 1000, sf.InsecureSeeded(5))
    forged = sf.privatize(mechanism, ["hiv"] * 2000, sf.InsecureSeeded(6))
    together = sf.aggregate(mechanism, np.concatenate([honest, forged]))
    assert not plausibility(mechanism, together).alarm
    assert abs(sf.estimate(mechanism, together).frequencies[2] - 0.5) < 0.1  # and yet half of the people seem ill


@pytest.mark.parametrize("name", ["rr", "unary", "hadamard"])
def test_large_domains_are_tested_without_a_list_of_all_probabilities(name: str) -> None:
    mechanism = sf.design(sf.Uniform(sf.Domain.range(2**17), 2), mechanism=name)
    counts = np.zeros(mechanism.report_format.count_size, np.int64)
    counts[0] = 1000
    assert plausibility(mechanism, sf.Aggregate(mechanism.hash, 1000, counts), most_cells=0).alarm


def test_other_mechanisms_are_tested_up_to_a_size() -> None:
    table = sf.mechanisms.TableMechanism.from_matrix(FEW, [["1/2", "1/4", "1/4"]] * 2 + [["1/4", "1/4", "1/2"]])
    counts = sf.Aggregate(table.hash, 1, np.eye(1, 3, dtype=np.int64)[0])
    assert plausibility(table, counts, most_cells=8).p_value is None
    assert plausibility(table, counts, most_cells=9).p_value == 1.0
    assert plausibility(table, sf.Aggregate(table.hash, 0, np.zeros(3, np.int64)), most_cells=8).p_value == 1.0
