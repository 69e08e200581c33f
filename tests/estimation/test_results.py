"""Results are data: equal after a round trip through JSON, without an estimator inside, and tables."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import json
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, UnknownLabel, UnknownSpec
from sfumato.estimation import (
    CombinedEstimate,
    CrossTable,
    EventEstimate,
    FrequencyTable,
    LearntPrior,
    LinearEstimate,
    MechanismEstimate,
    PartialEstimate,
    cross_table,
)
from sfumato.estimation.estimators import EfficientEstimators, array_bytes
from sfumato.mechanisms import Estimator, HadamardResponse, RandomizedResponse, mechanism_classes
from support.examples import EXAMPLES, FIRST_EXAMPLES, METHODS, estimated
from support.families import is_library_class
from support.mutations import assert_read_or_rejected

DISEASES = sf.Domain(["none", "flu", "hiv", "cancer"])


def estimate_of(domain: sf.Domain = DISEASES, n: int = 300, method: str = "unbiased") -> MechanismEstimate:
    mechanism = RandomizedResponse(domain, 2)
    reports = np.minimum(np.random.default_rng(n).geometric(0.4, n) - 1, len(domain) - 1)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports), method)
    assert isinstance(estimate, MechanismEstimate)
    return estimate


def grouped() -> sf.GroupedEstimate:
    mechanism = RandomizedResponse(DISEASES, 2)
    groups = {"north": [0] * 50 + [1] * 30 + [2] * 10, "south": [0] * 40 + [3] * 30, 7: [1] * 20, ("a", 1): [2] * 9}
    return sf.estimate_groups(mechanism, {name: sf.aggregate(mechanism, reports) for name, reports in groups.items()})


def through_json(document: dict[str, Any]) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


def assert_same(first: sf.Estimate, second: sf.Estimate) -> None:
    assert second == first
    if not first.is_complete:
        assert second.to_columns() == first.to_columns()
        return
    np.testing.assert_array_equal(second.standard_errors, first.standard_errors)
    for confidence in (0.5, 0.95):
        np.testing.assert_array_equal(second.interval(confidence), first.interval(confidence))


# -- documents ---------------------------------------------------------------------------------------------


def test_every_mechanism_has_an_example() -> None:
    classes = mechanism_classes()
    names = {name for name, kind in classes.items() if is_library_class(kind)}
    assert {example.mechanism.name for example in EXAMPLES.values()} == names
    assert {example.mechanism.domain.kind for example in EXAMPLES.values()} == {"list", "range", "product", "grid"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FIRST_EXAMPLES)
def test_an_estimate_of_every_mechanism_survives_json(name: str, method: str) -> None:
    example = EXAMPLES[name]
    first = estimated(example, method)
    is_complete = example.mechanism.estimator.is_complete
    if first is None:  # some methods do not exist for bitmaps, or if reports do not distinguish all values
        assert example.mechanism.report_format.encoding != "index" or method == "mle" or not is_complete
        return
    document = through_json(first.to_dict())
    assert_same(first, sf.Estimate.from_dict(document))
    again = sf.Estimate.from_dict(document, mechanism=example.mechanism)
    assert isinstance(again, MechanismEstimate if is_complete else PartialEstimate)
    assert again.mechanism is example.mechanism
    assert_same(first, again)
    if is_complete:
        np.testing.assert_array_equal(again.covariance, first.covariance)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*EXAMPLES} - {*FIRST_EXAMPLES}))
def test_an_estimate_of_every_stored_mechanism_survives_json(name: str) -> None:
    for method in METHODS:
        first = estimated(EXAMPLES[name], method)
        if first is not None:
            assert_same(first, sf.Estimate.from_dict(through_json(first.to_dict())))


def test_a_document_holds_no_matrix() -> None:
    domain = sf.Domain.range(300)
    document = json.dumps(estimate_of(domain, method="efficient").to_dict())
    assert len(document) < 300 * 100


@pytest.mark.parametrize(
    "labels", [["a", "b"], [1, 5], [0.5, -0.25, 1e300], [False, True], ["é", "\n", ""]], ids=lambda labels: repr(labels)
)
def test_labels_of_every_type_survive_json(labels: list[Any]) -> None:
    first = estimate_of(sf.Domain(labels))
    again = sf.Estimate.from_dict(through_json(first.to_dict()))
    assert_same(first, again)
    assert [(type(value), value) for value in again.values] == [(type(value), value) for value in labels]


def combined() -> CombinedEstimate:
    return sf.combine([estimate_of(n=200), estimate_of(n=300, method="simplex"), sf.combine([estimate_of(n=50)])])


def test_a_combined_estimate_stores_its_parts() -> None:
    first = combined()
    assert [part.n for part in first.parts] == [200, 300, 50]
    again = sf.Estimate.from_dict(through_json(first.to_dict()))
    assert isinstance(again, CombinedEstimate)
    assert again.parts == first.parts
    assert_same(first, again)
    np.testing.assert_array_equal(again.covariance, first.covariance)
    assert again.set_fraction(["flu", "hiv"]).interval() == first.set_fraction(["flu", "hiv"]).interval()


def linear_estimates() -> Iterator[LinearEstimate]:
    estimate = estimate_of(sf.Domain.range(5))
    yield estimate[1]
    yield estimate.set_fraction([1, 3])
    yield estimate.mean()
    yield estimate.set_fraction([0, 1, 2, 3, 4])
    yield estimate.set_fraction([1]) - estimate_of(sf.Domain.range(5), 100, "simplex").set_fraction([1])
    yield combined().set_fraction(["flu"])
    yield LinearEstimate(0.5, 0.1, unseen=0.01)
    priors = sf.LocalPriors([0.2, 0.5, 0.7], 1, prior_source="public")
    total = priors.estimate([0, 1, 1])
    yield total
    yield total.frequency


@pytest.mark.parametrize("number", range(9))
def test_a_number_survives_json(number: int) -> None:
    first = list(linear_estimates())[number]
    again = LinearEstimate.from_dict(through_json(first.to_dict()))
    assert again == first
    assert type(again) is type(first)
    assert again != dataclasses.replace(first, value=first.value + 1e-9)
    for confidence in (0.5, 0.99):
        assert again.interval(confidence) == first.interval(confidence)
    assert again.p_value(0.3) == first.p_value(0.3)


def test_groups_survive_json() -> None:
    first = grouped()
    document = through_json(first.to_dict())
    assert [row["group"] for row in document["groups"]] == ["north", "south", 7, ["a", 1]]
    assert "mechanism" not in document["groups"][0]["estimate"]  # that of the total
    again = sf.GroupedEstimate.from_dict(document)
    assert again == first
    for group in first:
        assert_same(first[group], again[group])
    assert_same(first.total, again.total)
    for table in (first.difference("north", "south"), first.weighted(dict.fromkeys(first.groups, 1))):
        copied = FrequencyTable.from_dict(through_json(table.to_dict()))
        assert copied == table
        pd.testing.assert_frame_equal(copied.to_pandas(), table.to_pandas())


def test_groups_of_different_mechanisms_survive_json() -> None:
    first = sf.GroupedEstimate({"a": estimate_of(n=90), "b": combined()}, combined())
    assert sf.GroupedEstimate.from_dict(through_json(first.to_dict())) == first


def test_a_group_that_json_cannot_name_is_rejected() -> None:
    first = sf.GroupedEstimate({frozenset([1]): estimate_of()}, estimate_of())
    with pytest.raises(InvalidInput, match="a group must be a string, a finite number"):
        first.to_dict()


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b"],
        [1, 2],
        [True, False],
        [0.5, 2.0],
        [datetime.date(2026, 1, 31), datetime.date(2026, 2, 1)],
        [datetime.datetime(2026, 1, 31, 12, 30, 5, 123456), datetime.datetime(2026, 2, 1)],
        pd.to_datetime(["2026-01-31 12:30", "2026-02-01 00:00"]),
        pd.to_datetime(["2026-01-31 12:30", "2026-02-01 00:00"]).tz_localize("Europe/Berlin"),
        pd.Categorical(["a", "b"]),
        np.array([3, 4], np.uint8),
    ],
    ids=lambda column: f"{getattr(column, 'dtype', type(column[0]).__name__)}",
)
def test_groups_of_a_frame_survive_json(column: Any) -> None:
    frame = pd.DataFrame({"when": column, "part": ["x", "y"], "report": [0, 1]})
    mechanism = RandomizedResponse(DISEASES, 2)
    for by in ("when", ["when", "part"]):
        counts = {name: sf.aggregate(mechanism, part.report) for name, part in frame.groupby(by, observed=True)}
        first = sf.estimate_groups(mechanism, counts)
        again = sf.GroupedEstimate.from_dict(through_json(first.to_dict()))
        assert again == first
        assert again.to_dict() == first.to_dict()
        for name in counts:
            assert again[name] == first[name]


def test_groups_without_a_name_survive_json() -> None:
    first = sf.GroupedEstimate({None: estimate_of(), (None, 1): estimate_of()}, estimate_of())
    assert sf.GroupedEstimate.from_dict(through_json(first.to_dict())) == first


@pytest.mark.parametrize(
    "group",
    [
        pd.Interval(0, 1),
        pd.Period("2026-01"),
        pd.NaT,
        pd.Timestamp(1, unit="ns"),
        pd.Timedelta(1, unit="s"),
        np.datetime64("2026-01-01T00:00:00", "ns"),
        float("nan"),
        float("inf"),
    ],
    ids=repr,
)
def test_a_group_that_would_not_come_back_is_rejected(group: Any) -> None:
    first = sf.GroupedEstimate({group: estimate_of()}, estimate_of())
    with pytest.raises(InvalidInput, match=r"a group must be .*Name groups of other types by str"):
        first.to_dict()


def test_a_learnt_prior_survives_json() -> None:
    first = sf.learn_prior(estimate_of(), confidence=0.9)
    again = LearntPrior.from_dict(through_json(first.to_dict()))
    assert again == first
    assert (again.prior, again.likely.low, again.likely.high) == (first.prior, first.low, first.high)
    assert again.policy(1) == first.policy(1)


def test_a_cross_table_survives_json() -> None:
    domain = sf.Domain.product(sex=["f", "m"], smokes=["no", "yes"], age=[1, 2, 3])
    first = cross_table(estimate_of(domain), "age", "sex")
    again = CrossTable.from_dict(through_json(first.to_dict()))
    assert again == first
    np.testing.assert_array_equal(again.standard_errors, first.standard_errors)
    assert again.marginals == first.marginals
    frame = again.to_pandas()
    assert list(frame) == ["age", "sex", "frequency", "standard_error"]
    assert frame.frequency.tolist() == first.frequencies.ravel().tolist()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"format": "sfumato-aggregate"}, UnknownSpec, 'the document.s "format" must be one of'),
        ({"version": 2}, UnknownSpec, 'the document.s "version" must be 1; got 2'),
        ({"frequencies": [0.5]}, InvalidInput, "frequencies must be a list of 4 numbers"),
        ({"unbiased": ["0", 0, 0, 0]}, InvalidInput, "unbiased must be finite numbers"),
        ({"nearest": [float("nan"), 0, 0, 0]}, InvalidInput, "nearest must be finite numbers"),
        ({"counts": [1, 2, 3]}, InvalidInput, "counts must have 4 entries"),
        ({"n": 1}, InvalidInput, "every count must be in"),
        ({"n": 301}, InvalidInput, "counts must sum to"),
        ({"n": 0, "counts": [0, 0, 0, 0]}, InvalidInput, "n must be at least 1"),
        ({"method": "nonsense"}, InvalidInput, "method must be one of unbiased, efficient, simplex, mle, mmse"),
        ({"method": "mle"}, InvalidInput, "fit must be present with method 'mle'"),
        ({"frequencies": [9.0, 9.0, 9.0, 9.0]}, InvalidInput, "frequencies must agree with the counts"),
        ({"unbiased": [0.25, 0.25, 0.25, 0.25]}, InvalidInput, "unbiased must agree with the counts"),
        ({"unbiased": [10**400, 0, 0, 0]}, InvalidInput, "unbiased must be finite numbers"),
        ({"nearest": [0.25, 0.25, 0.25, 0.25]}, InvalidInput, "nearest must agree with the counts"),
        ({"nearest": [-5.0, 2.0, 2.0, 2.0]}, InvalidInput, "nearest must be probabilities that sum to one"),
        ({"nearest": [0.25, 0.25, 0.25, 0.26]}, InvalidInput, "nearest must be probabilities that sum to one"),
        ({"fit": 3}, InvalidInput, "fit must have the keys"),
        ({"method": None}, InvalidInput, "method must be a string"),
        ({"more": 1}, InvalidInput, "key must be one of"),
        ({"mechanism": None}, InvalidInput, "a mechanism spec"),
    ],
    ids=str,
)
def test_a_document_of_no_estimate_is_rejected(change: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sf.Estimate.from_dict({**estimate_of().to_dict(), **change})


def test_a_document_of_another_mechanism_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="the mechanism must have the spec of the document"):
        sf.Estimate.from_dict(estimate_of().to_dict(), mechanism=RandomizedResponse(DISEASES, 3))
    with pytest.raises(InvalidInput, match="the mechanism must be left out"):
        sf.Estimate.from_dict(combined().to_dict(), mechanism=RandomizedResponse(DISEASES, 2))


def stored_results() -> dict[str, Any]:
    domain = sf.Domain.product(sex=["f", "m"], smokes=["no", "yes"])
    return {
        "estimate": estimate_of(),
        "fitted estimate": estimate_of(method="mle"),
        "combined estimate": sf.combine([estimate_of(n=50), estimate_of(n=60)]),
        "grouped estimate": sf.estimate_groups(
            RandomizedResponse(DISEASES, 2),
            {datetime.date(2026, 1, 1): estimate_of(n=20).counts, ("a", 1): estimate_of(n=30).counts},
        ),
        "frequency": estimate_of()["flu"],
        "share": estimate_of().set_fraction(["flu", "hiv"]),
        "mean": estimate_of(sf.Domain.range(3)).mean(),
        "total": sf.LocalPriors([0.2, 0.5, 0.7], 1, prior_source="public").estimate([0, 1, 1]),
        "learnt prior": sf.learn_prior(estimate_of()),
        "cross table": cross_table(estimate_of(domain), "smokes", "sex"),
        "difference": sf.GroupedEstimate({1: estimate_of(n=20), 2: estimate_of(n=9)}, estimate_of()).difference(1, 2),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", stored_results())
def test_malformed_documents_are_rejected_and_nothing_else_happens(name: str) -> None:
    result = stored_results()[name]
    assert_read_or_rejected(type(result), through_json(result.to_dict()))


def test_a_fit_has_a_truth_value_and_a_number_of_iterations() -> None:
    document = estimate_of(method="mle").to_dict()
    for key, wrong in (("converged", "no"), ("converged", 1), ("iterations", "x"), ("iterations", True)):
        with pytest.raises(InvalidInput, match=f"{key} of fit must be"):
            sf.Estimate.from_dict({**document, "fit": {**document["fit"], key: wrong}})
    with pytest.raises(InvalidInput, match="frequencies must be probabilities"):
        sf.Estimate.from_dict({**document, "frequencies": [9.0, 9.0, 9.0, 9.0]})


def test_a_combined_estimate_has_its_only_method() -> None:
    document = combined().to_dict()
    changes: list[dict[str, Any]] = [{"method": "unbiased"}, {"frequencies": [1.0, 0.0, 0.0, 0.0]}, {"parts": []}]
    for change in changes:
        with pytest.raises(InvalidInput):
            sf.Estimate.from_dict({**document, **change})


def test_a_frequency_is_the_one_of_its_value() -> None:
    document = estimate_of()["flu"].to_dict()
    term = document["terms"][0]
    changes: list[dict[str, Any]] = [
        {"terms": [{**term, "index": 2}]},
        {"terms": [{**term, "index": 4}]},
        {"terms": [{**term, "index": True}]},
        {"terms": [{**term, "extra": 1}]},
        {"terms": [{**term, "coefficient": 2.0}]},
        {"terms": [term, term]},
        {"terms": []},
        {"value": 0.5},
        {"unbiased": 0.5},
        {"standard_error": -1.0},
    ]
    for change in changes:
        with pytest.raises(InvalidInput):
            LinearEstimate.from_dict({**document, **change})
    assert LinearEstimate.from_dict(document) == estimate_of()["flu"]


def test_a_group_is_stored_once() -> None:
    document = grouped().to_dict()
    rows = document["groups"]
    for wrong, message in (
        ([], "groups must contain at least one group"),
        ([rows[0], rows[0]], "groups must contain each group once; got 'north' twice"),
        ([{"group": 1, "estimate": estimate_of(sf.Domain.range(4)).to_dict()}], "must equal that of the total"),
        ([{"group": {}, "estimate": rows[0]["estimate"]}], "GroupedEstimate.from_dict"),
        ([{"group": {"date": "31 Jan"}, "estimate": rows[0]["estimate"]}], "GroupedEstimate.from_dict"),
    ):
        with pytest.raises(InvalidInput, match=message):
            sf.GroupedEstimate.from_dict({**document, "groups": wrong})
    table = grouped().difference("north", "south").to_dict()
    table["terms"][0]["weight"] = 0.5
    with pytest.raises(InvalidInput, match="be 1 and -1"):
        FrequencyTable.from_dict(table)


# -- data ----------------------------------------------------------------------------------------------------


def reachable(value: Any) -> Iterator[Any]:
    """All objects in the fields of a result, and in those of its parts."""
    yield value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from reachable(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from reachable(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from reachable(part)


@pytest.mark.parametrize("result", [estimate_of(method="mle"), combined(), grouped(), estimate_of()["flu"]], ids=type)
def test_no_result_has_an_estimator_in_its_fields(result: Any) -> None:
    assert not [part for part in reachable(result) if isinstance(part, Estimator)]
    str(result)  # whatever was derived is neither compared nor copied
    copied = pickle.loads(pickle.dumps(result))
    assert copied == result
    assert set(vars(copied)) == {field.name for field in dataclasses.fields(result)}
    assert hash(copied) == hash(result)
    assert copy.deepcopy(result) == result


def test_a_pickled_estimate_has_no_estimator() -> None:
    estimate = estimate_of(sf.Domain.range(60))
    before = len(pickle.dumps(estimate))
    assert estimate.mechanism.estimator is estimate.estimator
    estimate.interval()
    assert len(pickle.dumps(estimate)) == before
    assert "estimator" not in vars(pickle.loads(pickle.dumps(estimate)).mechanism)


def test_estimates_are_equal_by_content() -> None:
    assert estimate_of() == estimate_of()
    assert estimate_of() != estimate_of(method="simplex")
    assert estimate_of() != estimate_of(n=301)
    assert estimate_of() != combined()
    assert grouped() == grouped()
    assert grouped() != sf.GroupedEstimate({"north": estimate_of()}, estimate_of())
    assert grouped().difference("north", "south") != grouped().difference("south", "north")


def test_an_estimate_cannot_be_changed() -> None:
    estimate = estimate_of()
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.method = "mle"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        estimate.frequencies[0] = 1


def arrays_of(result: Any) -> list[Any]:
    return [part for part in reachable(result) if isinstance(part, np.ndarray)]


@pytest.mark.parametrize("name", stored_results())
def test_arrays_are_read_only_also_after_a_round_trip(name: str) -> None:
    result = stored_results()[name]
    for each in (result, pickle.loads(pickle.dumps(result)), type(result).from_dict(result.to_dict())):
        assert each == result
        assert not any(array.flags.writeable for array in arrays_of(each))


def test_groups_cannot_be_added() -> None:
    every: list[Any] = [grouped().groups, pickle.loads(pickle.dumps(grouped())).groups]
    for groups in every:
        with pytest.raises(TypeError, match="does not support item assignment"):
            groups["east"] = estimate_of()


def test_few_bytes_of_efficient_estimators_are_kept() -> None:
    mechanisms = [RandomizedResponse(sf.Domain.range(50), epsilon) for epsilon in (1, 2, 3, 4)]
    one = array_bytes(EfficientEstimators(0).get(mechanisms[0]))
    assert one >= 2 * 8 * 50 * 50  # the matrix and its inverse
    cache = EfficientEstimators(2 * one)
    first = cache.get(mechanisms[0])
    assert cache.get(mechanisms[0]) is first
    for mechanism in mechanisms[1:]:
        cache.get(mechanism)
        assert cache.bytes <= 2 * one
    assert cache.get(mechanisms[0]) is not first
    small = EfficientEstimators(1)
    assert small.get(mechanisms[0]) is small.get(mechanisms[0])  # the last one stays whatever its size
    small.get(mechanisms[1])
    assert small.bytes == one


@pytest.mark.parametrize("method", ["unbiased", "efficient"])
def test_estimates_of_one_mechanism_share_its_estimator(method: str) -> None:
    first = estimate_of(method=method)
    again = sf.Estimate.from_dict(through_json(first.to_dict()), mechanism=first.mechanism)
    assert again.estimator is first.estimator
    assert (first.estimator is first.mechanism.estimator) == (method == "unbiased")


def test_everything_that_is_returned_can_be_imported() -> None:
    estimate = estimate_of(method="mle")
    results = [
        estimate,
        estimate["flu"],
        estimate.set_fraction(["flu"]),
        estimate.fit,
        combined(),
        grouped(),
        grouped().difference("north", "south"),
        sf.learn_prior(estimate),
    ]
    for result in results:
        assert type(result).__name__ in sf.estimation.__all__
    assert EventEstimate.__name__ in sf.estimation.__all__


# -- single values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["unbiased", "simplex", "mle"])
def test_a_label_has_its_row(method: str) -> None:
    estimate = estimate_of(n=25, method=method)
    low, high = estimate.interval(0.9)
    for x, label in enumerate(DISEASES):
        row = estimate[label]
        assert (row.value, row.unbiased) == (estimate.frequencies[x], estimate.unbiased[x])
        assert row.standard_error == estimate.standard_errors[x]
        assert row.interval(0.9) == pytest.approx((low[x], high[x]), abs=1e-6)
        assert (row - row).value == 0
    assert len(estimate) == 4
    assert list(estimate) == list(DISEASES)
    assert "flu" in estimate
    assert "pest" not in estimate


def test_a_label_of_several_parts_is_a_tuple() -> None:
    product = estimate_of(sf.Domain.product(sex=["f", "m"], smokes=["no", "yes"]))
    assert product["m", "no"].value == product.frequencies[2]
    grid = estimate_of(sf.Domain.grid(latitude=(50, 51), longitude=(8, 9), rows=2, columns=3))
    assert grid[1, 2].value == grid.frequencies[5]


@pytest.mark.parametrize("label", ["pest", 0, None, ("flu",), float("nan"), ["flu"], (["flu"],), {}])
def test_an_unknown_label_is_a_key_error(label: object) -> None:
    with pytest.raises(UnknownLabel, match=r"^Estimate: the label must be a value of Domain\(") as caught:
        estimate_of()[label]
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, InvalidInput)
    unknown: list[Any] = [(1, 2), ["north"], (["north"], 1), {}]
    for group in unknown:
        assert group not in grouped()
        with pytest.raises(UnknownLabel):
            grouped()[group]
    with pytest.raises(KeyError):
        grouped().difference("north", "south")[label]
    assert grouped().difference("north", "south").get(label) is None


def test_a_domain_of_one_value() -> None:
    estimate = estimate_of(sf.Domain(["only"]))
    assert (estimate["only"].value, estimate["only"].interval()) == (1, (1, 1))
    assert str(estimate).splitlines()[-1].split() == ["only", "1.00000", "0.00000", "1.00000", "1.00000"]


# -- tables --------------------------------------------------------------------------------------------------


def test_the_representation_is_one_line() -> None:
    assert repr(estimate_of()) == "Estimate(n=300, values=4, method='unbiased', mechanism='randomized-response')"
    assert repr(combined()) == "Estimate(n=550, values=4, method='combined', cohorts=3)"
    assert repr(grouped()) == "GroupedEstimate(groups=4, n=189, values=4, method='unbiased')"
    table = grouped().difference("north", 7)
    assert repr(table) == "FrequencyTable('difference', groups=['north', 7], values=4)"
    large = HadamardResponse(sf.Domain.range(100_000), 1)
    assert len(repr(sf.estimate(large, sf.aggregate(large, [0, 1])))) < 120


def test_many_values_are_printed_by_frequency() -> None:
    estimate = estimate_of(sf.Domain.range(50))
    lines = str(estimate).splitlines()
    title, head, *rows = lines[: lines.index("… 30 more")]
    assert title == "300 reports, method unbiased, 95% intervals, the 20 most frequent of 50 values"
    assert head.split() == ["value", "frequency", "standard_error", "low", "high"]
    assert lines[-1] == f"WARNING: {estimate.warnings[-1]}"
    assert "cannot be distinguished from zero with 300 reports" in lines[-1]
    order = np.argsort(-estimate.frequencies, kind="stable")[:20]
    low, high = estimate.interval()
    for x, row in zip(order, rows, strict=True):
        numbers = (estimate.frequencies[x], estimate.standard_errors[x], low[x], high[x])
        frequency = estimate.frequencies[x]
        mark = ["above", "1"] if frequency > 1 else ["below", "0"] if frequency < 0 else []
        assert row.split() == [str(x), *(f"{number:.5f}" for number in numbers), *mark]
    unmarked = [row.removesuffix("  above 1").removesuffix("  below 0") for row in [head, *rows]]
    assert len({len(row) for row in unmarked}) == 1  # aligned
    page = estimate._repr_html_()
    assert page.count("<tr>") == 22
    assert "… 30 more" in page


def test_labels_are_escaped_in_a_notebook() -> None:
    page = estimate_of(sf.Domain(["<b>", "a&b"]))._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "a&amp;b" in page


def test_an_estimate_as_a_frame() -> None:
    estimate = estimate_of()
    frame = estimate.to_pandas(0.9)
    assert list(frame) == ["value", "frequency", "standard_error", "low", "high"]
    assert frame["value"].tolist() == list(DISEASES)
    low, high = estimate.interval(0.9)
    columns = np.column_stack([estimate.frequencies, estimate.standard_errors, low, high])
    np.testing.assert_array_equal(frame.iloc[:, 1:].to_numpy(), columns)
    together = estimate.interval(0.9, simultaneous=True)[0]
    assert estimate.to_pandas(0.9, simultaneous=True).low.tolist() == together.tolist()
    pd.testing.assert_frame_equal(estimate.to_arrow(confidence=0.9).to_pandas(), frame)


def test_a_grid_carries_coordinates() -> None:
    estimate = estimate_of(sf.Domain.grid(latitude=(50, 52), longitude=(8, 11), rows=2, columns=3))
    frame = estimate.to_pandas()
    assert list(frame) == ["value", "frequency", "standard_error", "low", "high", "latitude", "longitude"]
    assert frame["value"][4] == (1, 1)
    assert frame.latitude.tolist() == [50.5] * 3 + [51.5] * 3
    assert frame.longitude.tolist() == [8.5, 9.5, 10.5] * 2
    assert estimate.to_arrow()["value"].to_pylist()[4] == "(1, 1)"


def test_a_grid_without_coordinates_has_rows_and_columns() -> None:
    frame = estimate_of(sf.Domain.grid(2, 3)).to_pandas()
    assert list(frame) == ["value", "frequency", "standard_error", "low", "high", "row", "column"]
    assert frame.row.tolist() == [0] * 3 + [1] * 3
    assert frame.column.tolist() == [0, 1, 2] * 2


def test_a_product_has_a_column_per_attribute() -> None:
    estimate = estimate_of(sf.Domain.product(sex=["f", "m"], frequency=[1, 2, 3]))
    frame = estimate.to_pandas()
    assert list(frame) == ["value", "frequency", "standard_error", "low", "high", "sex", "frequency_value"]
    assert frame.sex.tolist() == ["f"] * 3 + ["m"] * 3
    assert frame.frequency_value.tolist() == [1, 2, 3] * 2


@pytest.mark.parametrize(
    "name", ["value", "frequency", "standard_error", "low", "high", "group", "difference", "prior"]
)
def test_an_attribute_may_be_named_like_a_column(name: str) -> None:
    factors: dict[str, Any] = {name: ["f", "m"], f"{name}_value": [1, 2], f"{name}_value_value": [3, 4]}
    domain = sf.Domain.product(**factors)
    estimate = estimate_of(domain)
    groups = sf.GroupedEstimate({"a": estimate, "b": estimate}, estimate)
    tables = [
        estimate,
        groups,
        groups.difference("a", "b"),
        groups.weighted({"a": 1, "b": 1}),
        sf.learn_prior(estimate),
    ]
    for table in tables:
        frame = table.to_pandas()
        assert frame[f"{name}_value"].tolist()[:8] == [1, 1, 2, 2] * 2
        assert frame[f"{name}_value_value"].tolist()[:8] == [3, 4] * 4
        assert frame[f"{name}_value_value_value"].tolist()[:8] == ["f"] * 4 + ["m"] * 4
        if name in frame:
            assert frame[name].tolist()[:8] != ["f"] * 4 + ["m"] * 4
        assert table.to_arrow().column_names == list(frame)
    pd.testing.assert_series_equal(estimate.to_pandas()["low"], pd.Series(estimate.interval()[0], name="low"))


def test_a_question_may_be_named_like_a_column() -> None:
    domain = sf.Domain.product(frequency=["f", "m"], frequency_value=[1, 2])
    frame = cross_table(estimate_of(domain)).to_pandas()
    assert list(frame) == ["frequency_value_value", "frequency_value", "frequency", "standard_error"]


def test_a_value_may_be_named_like_a_printed_column() -> None:
    estimate = estimate_of(sf.Domain(["group", "reports"]))
    head = str(sf.GroupedEstimate({"a": estimate}, estimate)).splitlines()[1]
    assert head.split() == ["group", "reports", "group_value", "reports_value"]


def test_a_number_is_a_table_with_one_row() -> None:
    for number in linear_estimates():
        frame = number.to_pandas(0.9)
        low, high = number.interval(0.9)
        assert frame.to_dict("records") == [
            {"value": number.value, "standard_error": number.standard_error, "low": low, "high": high}
        ]
        assert number.to_arrow().num_rows == 1
        assert number._repr_html_().startswith("<table>")
        assert " ± " in str(number)


def test_groups_as_a_table() -> None:
    groups = grouped()
    title, head, *rows = str(groups).splitlines()
    assert title == "4 groups, method unbiased, frequency ± standard error of 4 values"
    assert [row.split()[0] for row in rows] == ["north", "south", "7", "('a',", "all"]
    assert head.split() == ["group", "reports", *DISEASES]
    frame = groups.to_pandas(0.9)
    assert list(frame) == ["group", "value", "frequency", "standard_error", "low", "high"]
    assert len(frame) == 16
    north = frame[frame.group == "north"].drop(columns="group").reset_index(drop=True)
    pd.testing.assert_frame_equal(north, groups["north"].to_pandas(0.9))
    assert groups.to_arrow(0.9)["group"].to_pylist()[::4] == ["north", "south", "7", "('a', 1)"]


def test_a_difference_is_a_mapping_and_a_table() -> None:
    table = grouped().difference("north", "south")
    assert isinstance(table, Mapping)
    assert list(table) == list(DISEASES)
    frame = table.to_pandas(0.9)
    assert list(frame) == ["value", "difference", "standard_error", "low", "high"]
    for row, (label, number) in zip(frame.itertuples(), table.items(), strict=True):
        assert (row.value, row.difference, row.standard_error) == (label, number.value, number.standard_error)
        assert (row.low, row.high) == number.interval(0.9)
    title, *_, last = str(table).splitlines()
    assert title == "difference: north minus south, 95% intervals"
    assert last.split()[0] == "cancer"
    weighted = grouped().weighted({"north": 1, "south": 2, 7: 0, ("a", 1): 1})
    assert list(weighted.to_pandas())[1] == "frequency"
    assert str(weighted).startswith("frequency: north 0.25, south 0.5, 7 0, ('a', 1) 0.25, 95% intervals\n")


def test_a_learnt_prior_is_a_table() -> None:
    prior = sf.learn_prior(estimate_of())
    frame = prior.to_pandas()
    assert list(frame) == ["value", "prior", "low", "high"]
    assert frame.prior.sum() == pytest.approx(1)
    assert ((frame.low <= frame.prior) & (frame.prior <= frame.high)).all()
    assert len(repr(prior)) < 80


@pytest.mark.parametrize("result", [estimate_of(), combined(), grouped()], ids=type)
def test_results_are_plotted(result: Any) -> None:
    (axes,) = result.plot(confidence=0.9).axes[:1]
    assert axes.get_ylabel() == "frequency (fraction of people)"
    assert len(axes.patches) == len(DISEASES) * (4 if isinstance(result, sf.GroupedEstimate) else 1)


def test_a_group_has_no_difference_from_itself() -> None:
    mechanism = RandomizedResponse(sf.Domain(["a", "b"]), 1)
    counts = {"north": sf.aggregate(mechanism, [0, 1]), "south": sf.aggregate(mechanism, [1])}
    grouped = sf.estimate_groups(mechanism, counts)
    with pytest.raises(InvalidInput, match="the groups must be two different groups; got 'north' twice"):
        grouped.difference("north", "north")
    with pytest.raises(
        InvalidInput,
        match=r"every group must have at least one report; got no reports in \['east'\]\. Leave out groups",
    ):
        sf.estimate_groups(mechanism, {**counts, "east": sf.aggregate(mechanism, [])})
