"""A collection carries its question, and its results answer it as the library does."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.mechanisms import RandomizedResponse, TableMechanism
from sfumato.server.store import Record, open_store
from support.collectors import Served, served

PARQUET = "application/vnd.apache.parquet"
AGES = sf.Domain([20, 30, 40, 50])
POLICY = sf.Uniform(AGES, "ln 4")
#: Two outputs: reports determine the mean, and no frequency.
ONE_BIT = TableMechanism.from_matrix(AGES, [["3/4", "1/4"], ["7/12", "5/12"], ["5/12", "7/12"], ["1/4", "3/4"]])
COMPLETE = RandomizedResponse(AGES, 1)
PEOPLE = [20, 30, 30, 40, 50] * 60


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("questions")
    with served(f"sqlite:///{folder}/collect.db", live_seconds=0.05) as running:
        yield running


def create(collector: Served, mechanism: sf.mechanisms.Mechanism, **metadata: Any) -> tuple[str, sf.Estimate]:
    """Create a collection and send the reports of 300 people; return its id and the estimate of the library."""
    name, _, _ = collector.create(POLICY, mechanism=mechanism.spec, **metadata)
    reports = sf.privatize(mechanism, PEOPLE, sf.InsecureSeeded(1))
    assert collector.send(name, mechanism, reports, "all-its-reports").status == 200
    return name, sf.estimate(mechanism, sf.aggregate(mechanism, reports))


def check_answers(answer: Any, answers: Any, confidence: float = 0.95) -> None:
    """Compare the answers in a response with those of the library."""
    columns = answers.to_columns(confidence)
    for key, column in zip(("answer", "value", "standard_error", "low", "high"), columns.values(), strict=True):
        assert [row[key] for row in answer["answers"]] == np.asarray(column).tolist(), key


def parquet(collector: Served, path: str) -> Any:
    """Return the table of a Parquet file that the collector sends."""
    return pq.read_table(io.BytesIO(collector.ask("GET", path, headers={"Accept": PARQUET}).body))


@pytest.mark.component
@pytest.mark.parametrize(
    "question",
    [
        "mean",
        sf.Quantiles([0.5]).to_dict(),
        "ranges:20-30,45-",
        sf.Ranges({"young": (None, 35)}).to_dict(),
        "distribution",
        sf.Workload([[1, 2, 0, 1]], ["sum"]).checked(AGES).to_dict(),
    ],
)
def test_results_answer_the_question(collector: Served, question: Any) -> None:
    name, estimate = create(collector, COMPLETE, question=question)
    asked = sf.Question.from_dict(question) if isinstance(question, dict) else question
    answers = estimate.answers(asked)
    assert collector.ask("GET", f"/v1/collections/{name}").json["question"] == answers.question.to_dict()
    result = collector.ask("GET", f"/v1/collections/{name}/estimate?level=0.9").json
    assert result["question"] == answers.question.to_dict()
    assert result["complete"] is True
    assert [row["frequency"] for row in result["rows"]] == estimate.frequencies.tolist()
    check_answers(result, answers, 0.9)
    path = f"/v1/collections/{name}/estimate"
    assert parquet(collector, path).equals(answers.to_arrow())
    assert parquet(collector, f"{path}?question=frequencies").equals(estimate.to_arrow())


@pytest.mark.component
def test_a_request_may_ask_another_question(collector: Served) -> None:
    name, estimate = create(collector, COMPLETE)
    assert collector.ask("GET", f"/v1/collections/{name}").json["question"] is None
    result = collector.ask("GET", f"/v1/collections/{name}/estimate").json
    assert (result["question"], result["answers"]) == (None, [])
    result = collector.ask("GET", f"/v1/collections/{name}/estimate?question=quantiles:0.25,0.5").json
    check_answers(result, estimate.answers(sf.Quantiles([0.25, 0.5])))
    for wrong in ("meen", "ranges:90-", "quantiles:2", "x" * 3000):
        assert collector.ask("GET", f"/v1/collections/{name}/estimate?question={wrong}").reason == "invalid"


@pytest.mark.component
def test_reports_that_do_not_distinguish_all_values(collector: Served) -> None:
    name, estimate = create(collector, ONE_BIT, question="mean")
    result = collector.ask("GET", f"/v1/collections/{name}/estimate").json
    assert (result["rows"], result["complete"], result["reports"]) == ([], False, len(PEOPLE))
    check_answers(result, estimate.answers("mean"))
    assert parquet(collector, f"/v1/collections/{name}/estimate").equals(estimate.answers("mean").to_arrow())
    nothing = collector.ask("GET", f"/v1/collections/{name}/estimate?question=frequencies").json
    assert (nothing["rows"], nothing["answers"], nothing["complete"]) == ([], [], False)
    assert collector.ask("GET", f"/v1/collections/{name}/estimate?question=distribution").reason == "invalid"
    assert collector.ask("GET", f"/v1/collections/{name}/estimate?method=mle").reason == "invalid"


@pytest.mark.component
def test_questions_without_an_answer_are_refused(collector: Served) -> None:
    body = {"title": "ages", "policy": POLICY.to_dict(), "mechanism": ONE_BIT.spec}
    for question, message in ((None, "frequencies cannot"), ("distribution", "the answers to the question cannot")):
        refused = collector.as_admin("POST", "/v1/collections", body | {"question": question})
        assert refused.reason == "invalid"
        assert message in refused.json["error"]["message"]
    wrong: Any
    for wrong in ("meen", {"question": "median"}, {}, "ranges:90-"):
        assert collector.as_admin("POST", "/v1/collections", body | {"question": wrong}).reason == "invalid"


@pytest.mark.component
def test_the_planner_designs_for_the_question_of_the_policy(collector: Served) -> None:
    policy = {"question": "mean", **POLICY.to_dict()}
    created = collector.as_admin("POST", "/v1/collections", {"title": "ages", "policy": policy}).json
    assert created["collection"]["question"] == {"question": "mean"}
    assert created["collection"]["policy"] == POLICY.to_dict()
    assert "standard error of the mean" in created["why"]
    plan = collector.as_admin("POST", "/v1/plan", {"policy": policy, "n": 1000}).json
    compared = sf.plan(POLICY, 1000, question="mean")
    errors = {row.name: compared.standard_error(row) for row in compared.rows}
    assert {row["name"]: row["standard_error"] for row in plan["rows"]} == pytest.approx(errors)
    without = collector.as_admin("POST", "/v1/plan", {"policy": policy, "n": 1000, "question": "frequencies"}).json
    assert {row["standard_error"] for row in without["rows"]} == {None}
    assert collector.as_admin("POST", "/v1/plan", {"policy": policy, "target": 2.5}).status == 200


@pytest.mark.component
def test_streams_leave_many_answers_out(collector: Served) -> None:
    for count, is_sent in ((256, True), (257, False)):
        question = sf.Ranges([(20, 30)] * count).to_dict()
        name, _, _ = collector.create(POLICY, mechanism=COMPLETE.spec, question=question)
        event = first_event(collector, f"/v1/collections/{name}/live")
        assert event["question"] == (question if is_sent else None)
        assert collector.ask("GET", f"/v1/collections/{name}/estimate").json["question"] == question


def first_event(collector: Served, path: str) -> Any:
    """Return the first event of a live stream."""
    connection = http.client.HTTPConnection("127.0.0.1", collector.port, timeout=60)
    try:
        connection.request("GET", path)
        return next(json.loads(line[6:]) for line in connection.getresponse() if line.startswith(b"data: "))
    finally:
        connection.close()


@pytest.mark.component
def test_the_client_states_and_reads_the_question(collector: Served) -> None:
    with collector.client(collector.admin) as client:
        median = sf.Quantiles([0.5])
        questions: dict[Any, sf.Question] = {"mean": sf.Mean(), median: median, "quantiles:0.5": median}
        for question, expected in questions.items():
            name, _ = client.create("ages", POLICY, COMPLETE, question=question)
            assert client.collection(name).question == expected.checked(AGES)
        name, _ = client.create("ages", POLICY, COMPLETE)
        assert client.collection(name).question is None
        with pytest.raises(sf.errors.InvalidInput, match=r"Client\.create: question must be one of"):
            client.create("ages", POLICY, question="meen")


def test_a_store_keeps_the_question(tmp_path: Any) -> None:
    store = open_store(f"sqlite:///{tmp_path}/collect.db")
    asked = msgspec.json.encode({"question": "mean"}).decode()
    for name, question in (("a" * 16, asked), ("b" * 16, None)):
        store.add_collection(Record(name, 0, 0, None, "{}", "{}", "{}", '{"title":"t"}', None, question))
        record = store.collection(name)
        assert record is not None
        assert record.question == question
    store.close()


@pytest.mark.component
@pytest.mark.parametrize("strategy", ["split evenly", "sample pairs evenly"])
def test_results_of_several_attributes_are_tables(collector: Served, strategy: str) -> None:
    factors = {"sex": sf.Domain(["f", "m"]), "age": sf.Domain(["young", "old"]), "job": sf.Domain(["yes", "no"])}
    questionnaire = sf.Questionnaire(factors, 2)
    mechanism = questionnaire.design(strategy=strategy, question=sf.Marginals(2))
    name, _, _ = collector.create(questionnaire.policy, mechanism=mechanism.spec, question="marginals")
    reports = sf.privatize(mechanism, [("f", "old", "yes"), ("m", "old", "no")] * 150, sf.InsecureSeeded(1))
    assert collector.send(name, mechanism, reports, "all-its-reports").status == 200
    result = collector.ask("GET", f"/v1/collections/{name}/estimate").json
    tables = sf.estimate(mechanism, sf.aggregate(mechanism, reports)).marginals(2)
    assert result["question"] == {"question": "marginals", "order": 2}
    assert [row["answer"] for row in result["answers"]] == list(tables.names)
    assert [row["value"] for row in result["answers"]] == tables.values.tolist()
    assert [row["low"] for row in result["answers"]] == tables.interval()[0].tolist()
