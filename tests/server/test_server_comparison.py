"""Differences between collections are those of the library, and only readers of all collections get them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.device import privatize_indices
from sfumato.mechanisms import Mechanism
from support.browsing import opened, read
from support.collectors import Served, served

pytestmark = pytest.mark.component

VALUES = ["none", "flu", "hiv"]
COLUMNS = ("difference", "standard_error", "low", "high", "p_value", "adjusted_p_value")
SHARES = ([0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.5, 0.4, 0.1])


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path_factory.mktemp('comparison')}/collect.db") as running:
        yield running


def group(collector: Served, number: int, epsilon: str = "2", n: int = 400, **about: Any) -> tuple[str, Mechanism]:
    """A collection with reports, and its mechanism."""
    name = opened(collector, f"Group {number}", {"values": VALUES}, {"kind": "uniform", "epsilon": epsilon}, **about)
    mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
    values = np.repeat(np.arange(3), np.round(np.array(SHARES[number]) * n).astype(int))
    reports = privatize_indices(mechanism, values, sf.InsecureSeeded(number))
    assert collector.send(name, mechanism, reports, "all-its-reports").status == 200
    return name, mechanism


def test_differences_are_those_of_the_library(collector: Served) -> None:
    groups = [group(collector, number) for number in range(3)]
    names = [name for name, _ in groups]
    counts = {number: collector.aggregate(name) for number, name in enumerate(names)}
    answers = sf.estimate_groups(groups[0][1], counts).answers()
    path = f"/v1/collections/{names[0]}/comparison?with={names[1]},{names[2]}"
    for against, comparison in (
        ("first", answers.compare(0)),
        ("pairs", answers.compare()),
        ("rest", answers.compare(rest=True)),
    ):
        body = collector.ask("GET", f"{path}&against={against}&level=0.9").json
        assert (body["collections"], body["reports"]) == (names, [400] * 3)
        assert (body["method"], body["level"], body["question"]) == ("unbiased", 0.9, None)
        table = comparison.to_columns(0.9, simultaneous=True)
        rows = body["rows"]
        minus = [None if other == "rest" else other for other in table["minus"]]
        assert [row["group"] for row in rows] == list(table["group"])
        assert [row["minus"] for row in rows] == minus
        assert [row["answer"] for row in rows] == list(table["answer"])
        for column in COLUMNS:
            assert [row[column] for row in rows] == pytest.approx(np.asarray(table[column], float).tolist())


def test_groups_may_have_different_mechanisms_and_a_question(collector: Served) -> None:
    domain, policy = {"size": 4}, {"kind": "uniform", "epsilon": "2"}
    names = [opened(collector, "How many?", domain, policy, question="mean") for _ in range(2)]
    names.append(opened(collector, "How many?", domain, {"kind": "uniform", "epsilon": "1"}, question="mean"))
    means = []
    for number, name in enumerate(names):
        mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
        reports = sf.privatize(mechanism, [number, number + 1] * 200, sf.InsecureSeeded(number))
        assert collector.send(name, mechanism, reports, "all-its-reports").status == 200
        answer = collector.ask("GET", f"/v1/collections/{name}/estimate").json["answers"][0]
        means.append((answer["value"], answer["standard_error"]))
    body = collector.ask("GET", f"/v1/collections/{names[0]}/comparison?with={names[1]},{names[2]}").json
    assert [(row["group"], row["minus"], row["answer"]) for row in body["rows"]] == [(1, 0, "mean"), (2, 0, "mean")]
    for row in body["rows"]:
        (value, error), (first, first_error) = means[row["group"]], means[0]
        assert row["difference"] == pytest.approx(value - first)
        assert row["standard_error"] == pytest.approx(np.hypot(error, first_error))
        assert row["low"] < row["difference"] < row["high"]


def test_a_comparison_needs_access_to_every_group_and_equal_values(collector: Served) -> None:
    first, hidden = group(collector, 0)[0], group(collector, 1, results="admin", listed=False)[0]
    path = f"/v1/collections/{first}/comparison"
    assert collector.ask("GET", f"{path}?with={hidden}").reason == "unauthorized"
    assert collector.ask("GET", f"/v1/collections/{hidden}/comparison?with={first}").reason == "unauthorized"
    assert collector.ask("GET", f"{path}?with={hidden}", token=collector.admin).status == 200
    empty = opened(collector, "Empty", {"values": VALUES}, {"kind": "uniform", "epsilon": "2"})
    other = opened(collector, "Other", {"values": ["a", "b", "c"]}, {"kind": "uniform", "epsilon": "2"})
    lifetime = sf.Uniform(sf.Domain(VALUES), 4).to_dict()
    uniform = {"kind": "uniform", "epsilon": "2"}
    returning = opened(collector, "Again", {"values": VALUES}, uniform, lifetime=lifetime, waves={"count": 2})
    for query, part in (
        ("", "with must name"),
        (f"?with={first}", "with must name"),
        (f"?with={empty}", "must have reports"),
        (f"?with={other}", "the same values"),
        (f"?with={returning}", "waves"),
        (f"?with={hidden}&against=all", "against must be"),
        (f"?with={hidden}&method=mle", "method must be"),
        (f"?with={hidden}&level=2", "level must be"),
    ):
        answer = collector.ask("GET", path + query, token=collector.admin)
        assert answer.reason == "invalid", query
        assert part in answer.json["error"]["message"], query
    assert collector.ask("GET", f"{path}?with=aaaaaaaaaaaaaaaa").reason == "not-found"
    wide = [opened(collector, "Wide", {"size": 1001}, {"kind": "uniform", "epsilon": "2"}) for _ in range(2)]
    answer = collector.ask("GET", f"/v1/collections/{wide[0]}/comparison?with={wide[1]}")
    assert "at most 1,000 differences" in answer.json["error"]["message"]
