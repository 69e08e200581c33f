"""The results of a collection are those of the library, number by number, for every mechanism and method."""

from __future__ import annotations

import ast
import http.client
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.collecting import write_table
from sfumato.server.api.results import as_parquet
from sfumato.server.http.responses import ApiError
from sfumato.server.jobs.estimates import in_words
from support import ROOT
from support.collectors import Served, served
from support.examples import FIRST_EXAMPLES, METHODS, Example

PARQUET = "application/vnd.apache.parquet"
COLUMNS = ("frequency", "standard_error", "low", "high")
CONFIDENCE = 0.9


def test_the_server_has_no_estimator() -> None:
    """It asks the library for estimates, and reads their numbers: no module imports or names an estimator."""
    for path in (ROOT / "src" / "sfumato" / "server").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [getattr(node, field, None) for field in ("id", "attr", "name", "module")]
            assert not [name for name in names if isinstance(name, str) and "estimator" in name.lower()], path


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("results")
    with served(f"sqlite:///{folder}/collect.db", live_seconds=0.05) as running:
        yield running


#: A collector shows frequencies, so it rejects mechanisms whose reports do not distinguish all values.
COMPLETE = [name for name, example in FIRST_EXAMPLES.items() if example.mechanism.estimator.is_complete]


@pytest.fixture(scope="module", params=COMPLETE)
def collection(request: pytest.FixtureRequest, collector: Served) -> tuple[str, Example]:
    """A collection with the mechanism of an example and its reports."""
    example = FIRST_EXAMPLES[request.param]
    domain = example.mechanism.domain
    policy = sf.Pairwise(domain, np.where(np.eye(len(domain)), 0, np.inf))  # every mechanism obeys it
    name, mechanism, _ = collector.create(policy, mechanism=example.mechanism.spec)
    assert mechanism == example.mechanism
    assert collector.send(name, mechanism, example.reports, "all-its-reports").status == 200
    assert collector.aggregate(name) == sf.aggregate(mechanism, example.reports)
    return name, example


def first_event(collector: Served, path: str) -> Any:
    """The first event of a live stream, which the results page draws its numbers from."""
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=60)
    try:
        connection.request("GET", path)
        for line in connection.getresponse():
            if line.startswith(b"data: "):
                return json.loads(line[6:])
    finally:
        connection.close()
    raise AssertionError("the stream has no event")


@pytest.mark.component
@pytest.mark.parametrize("method", METHODS)
def test_results_are_those_of_the_library(
    collector: Served, collection: tuple[str, Example], method: str, tmp_path: Path
) -> None:
    name, example = collection
    path = f"/v1/collections/{name}/estimate?method={method}&level={CONFIDENCE}"
    answer = collector.ask("GET", path)
    counts = sf.aggregate(example.mechanism, example.reports)
    try:
        estimate = sf.estimate(example.mechanism, counts, method)
    except sf.errors.InvalidInput:
        assert answer.reason == "invalid"
        return
    low, high = estimate.interval(CONFIDENCE)
    numbers = np.column_stack([estimate.frequencies, estimate.standard_errors, low, high]).tolist()
    labels = [list(label) if isinstance(label, tuple) else label for label in estimate.values]
    rows = [
        {"value": label, **dict(zip(COLUMNS, row, strict=True))} for label, row in zip(labels, numbers, strict=True)
    ]

    assert (answer.status, answer.json["reports"], answer.json["rows"]) == (200, estimate.n, rows)
    assert answer.json["warnings"] == list(estimate.warnings)
    assert first_event(collector, path.replace("/estimate?", "/live?")) == answer.json
    # The file of the service, and the CSV that the command line writes of the same table.
    table = pq.read_table(io.BytesIO(collector.ask("GET", path, headers={"Accept": PARQUET}).body))
    assert table.equals(estimate.to_arrow(CONFIDENCE))
    for name, columns in (("theirs.csv", table.to_pydict()), ("ours.csv", estimate.to_columns(CONFIDENCE))):
        write_table(tmp_path / name, columns)
    assert (tmp_path / "theirs.csv").read_bytes() == (tmp_path / "ours.csv").read_bytes()


def test_parquet_without_pyarrow_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), 1)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, [0, 1]))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ApiError, match=r"Request the estimate as JSON, .*install the extra 'arrow'") as refused:
        as_parquet(estimate, CONFIDENCE)
    assert (refused.value.reason, refused.value.status) == ("unsupported-type", 415)


def test_an_impossible_estimate_says_what_to_do_next_and_hides_the_rejected_value() -> None:
    error = sf.errors.InvalidInput("estimate", "aggregate", "not be empty", "secret", hint="Count a report first.")
    assert in_words(error) == "aggregate must not be empty. Count a report first."
