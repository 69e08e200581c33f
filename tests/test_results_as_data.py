"""Results are data: exact through JSON, equal by content, short in a shell, and tables elsewhere."""

from __future__ import annotations

import ast
import dataclasses
import html
import importlib
import inspect
import json
import pickle
import pkgutil
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.auditing import PriorSetAudit
from sfumato.errors import InvalidInput, UnknownLabel
from support.mutations import assert_read_or_rejected

DOMAIN = sf.Domain(["none", "flu", "hiv"])
POLICY = sf.HighLow(DOMAIN, ["hiv"], "ln 3")
PAIRS = sf.Domain.product(S=["x", "y"], U=["a", "b"])
ROBUST = sf.Secret(PAIRS, "S", 1, sf.ChiSquare([[40, 10], [20, 30]]))


def plan() -> sf.Plan:
    return sf.plan(POLICY, n=1000)


def plan_for_information() -> sf.Plan:
    return sf.plan(POLICY, n=1000, utility="mutual-information", prior=[0.5, 0.3, 0.2], max_bits=8)


def plan_without_hope() -> sf.Plan:
    return sf.plan(sf.Uniform(DOMAIN, 0), n=10)


def leaky_audit() -> sf.SamplerAudit:
    return sf.audit_sampler(lambda value: value == "hiv", sf.Uniform(DOMAIN, 1), 2000)


def worst_prior() -> PriorSetAudit:
    mechanism = sf.mechanisms.RandomizedResponse(DOMAIN, 1)
    return sf.audit_priors(mechanism, sf.PriorBox.around(DOMAIN, ["1/2", "1/4", "1/4"], "0.1"), 1)


MAKERS: dict[str, Callable[[], Any]] = {
    "plan for a negative loss": lambda: sf.plan(POLICY, 1, utility=sf.ExpectedLoss(-np.eye(3))),
    "optimum for a negative loss": lambda: sf.optimal(POLICY, sf.ExpectedLoss(-np.eye(3)), max_seconds=5),
    "plan": plan,
    "plan for information": plan_for_information,
    "plan without hope": plan_without_hope,
    "row": lambda: plan().best,
    "optimum": lambda: sf.optimal(POLICY, max_seconds=5),
    "robust information": lambda: sf.robust_information(
        sf.design(ROBUST, mechanism="rr"), ROBUST, [0.25, 0.25, 0.25, 0.25]
    ),
    "certificate": lambda: sf.audit(sf.mechanisms.RandomizedResponse(DOMAIN, 1), sf.Uniform(DOMAIN, 1)),
    "violated certificate": lambda: sf.audit(sf.mechanisms.RandomizedResponse(DOMAIN, 2), sf.Uniform(DOMAIN, 1)),
    "sampler audit": leaky_audit,
    "audit of priors": worst_prior,
    "simulation": lambda: sf.simulate(POLICY, n=1000, truth=[0.5, 0.3, 0.2]),
    "error region": lambda: sf.error_region(sf.mechanisms.RandomizedResponse(DOMAIN, 1), "flu", "hiv"),
    "policy region": lambda: sf.policy_region(POLICY, "flu", "hiv"),
}
TABLES = [name for name in MAKERS if name != "row"]


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return {name: make() for name, make in MAKERS.items()}


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_is_frozen_and_exact_through_json(name: str, results: dict[str, Any]) -> None:
    result = results[name]
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    again = type(result).from_dict(document)
    assert again == result
    assert hash(again) == hash(result)
    assert again.to_dict() == result.to_dict() == document
    assert again != 1
    first = dataclasses.fields(result)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, first, None)


@pytest.mark.parametrize("name", MAKERS)
def test_documents_with_unknown_or_missing_keys_are_rejected(name: str, results: dict[str, Any]) -> None:
    kind, document = type(results[name]), results[name].to_dict()
    with pytest.raises(sf.errors.InvalidInput):
        kind.from_dict({**document, "colour": "red"})
    with pytest.raises(sf.errors.InvalidInput):
        kind.from_dict({})


@pytest.mark.parametrize("name", MAKERS)
def test_malformed_documents_are_rejected_and_nothing_else_happens(name: str, results: dict[str, Any]) -> None:
    document = json.loads(json.dumps(results[name].to_dict()))
    if "rows" in document:  # two rows stand for all; test_vectors.py changes the specs of all mechanisms
        document["rows"] = document["rows"][:2]
    assert_read_or_rejected(type(results[name]), document)


@pytest.mark.parametrize("name", ["plan", "certificate", "sampler audit", "simulation"])
def test_a_deeply_nested_document_is_rejected(name: str, results: dict[str, Any]) -> None:
    nested: Any = []
    for _ in range(20_000):
        nested = [nested]
    document = results[name].to_dict()
    for key in document:
        with pytest.raises(InvalidInput):
            type(results[name]).from_dict({**document, key: nested})


def changed(result: Any, *path: Any, to: Any) -> dict[str, Any]:
    """The document of a result with one part replaced."""
    document: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    part: Any = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = to
    return document


OTHER_SPEC = sf.mechanisms.RandomizedResponse(sf.Domain(["x", "y", "z"]), 2).spec


@pytest.mark.parametrize(
    ("name", "path", "to", "message"),
    [
        ("plan", ("rows", 0, "risk"), -5, "risk must be a number of at least 0; got -5"),
        ("plan", ("rows", 0, "mechanism"), OTHER_SPEC, "must equal the domain of the policy"),
        ("plan", ("rows", 0, "classical"), "no", "classical must be true or false; got 'no'"),
        ("plan", ("utility",), 7, "utility must be a string; got 7"),
        ("plan", ("prior",), [0.5, 0.5], "prior must be a list of 3"),
        ("plan", ("prior",), [0.5, 0.5, 0.5], "prior must"),
        ("row", ("bits",), "8", "bits must be an integer"),
        ("optimum", ("value",), True, "value must be a number; got True"),
        ("optimum", ("smaller_is_better",), "no", "smaller_is_better must be true or false; got 'no'"),
        ("optimum", ("prior",), [1, 1, -1], "a probability of prior must be"),
        ("robust information", ("least",), -1, "least must be a number of at least 0"),
        ("sampler audit", ("violated",), "yes", "violated must be true or false; got 'yes'"),
        ("sampler audit", ("counts",), [10**6, 0], "counts must be at most"),
        ("audit of priors", ("prior",), ["1", "1", "1"], "prior must be probabilities that sum to one"),
        ("error region", ("points",), [["0", "1"], ["2", "-1"]], "points must be a decreasing curve"),
        ("simulation", ("one_by_one",), "no", "one_by_one must be true or false; got 'no'"),
        ("simulation", ("mechanism",), OTHER_SPEC, "the mechanism must have the spec of the document"),
        ("simulation", ("truth",), [0.5, 0.5], "truth must be a list of 3"),
        ("simulation", ("truth",), [0.5, 0.5, 0.5], "truth must"),
    ],
)
def test_documents_that_contradict_themselves_are_rejected(
    name: str, path: tuple[Any, ...], to: Any, message: str, results: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match=message):
        type(results[name]).from_dict(changed(results[name], *path, to=to))


def test_a_certificate_does_not_share_the_document_that_it_was_read_from(results: dict[str, Any]) -> None:
    document = results["certificate"].to_dict()
    certificate = sf.Certificate.from_dict(document)
    document["mechanism"]["mechanism"] = document["policy"]["policy"] = "another"
    assert certificate == results["certificate"]


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_survives_pickling_with_its_arrays_read_only(name: str, results: dict[str, Any]) -> None:
    again = pickle.loads(pickle.dumps(results[name]))
    assert again == results[name]
    for array in vars(again).values():
        assert not isinstance(array, np.ndarray) or not array.flags.writeable


def test_a_plan_has_no_row_for_a_list(results: dict[str, Any]) -> None:
    with pytest.raises(UnknownLabel):
        results["plan"][["rr"]]


@pytest.mark.parametrize("name", MAKERS)
def test_a_repr_is_one_short_line(name: str, results: dict[str, Any]) -> None:
    text = repr(results[name])
    assert "\n" not in text
    assert len(text) < 400
    assert type(results[name]).__name__ in text


@pytest.mark.parametrize("name", TABLES)
def test_a_result_is_a_table(name: str, results: dict[str, Any]) -> None:
    result = results[name]
    frame, table = result.to_pandas(), result.to_arrow()
    assert list(frame.columns) == table.column_names
    assert len(frame) == table.num_rows > 0
    assert result._repr_html_().startswith("<table>")
    assert str(result)


@pytest.mark.parametrize("name", ["plan", "plan for information", "optimum", "error region", "policy region"])
def test_a_result_is_drawn(name: str, results: dict[str, Any]) -> None:
    figure = results[name].plot()
    assert figure.axes[0].get_xlabel()


def test_a_simulation_is_drawn_and_a_table() -> None:
    simulation = sf.simulate(POLICY, n=1000, truth=[0.5, 0.3, 0.2])
    assert simulation.to_pandas()["truth"].tolist() == [0.5, 0.3, 0.2]
    assert "n = 1,000" in repr(simulation)
    assert "\n" not in repr(simulation)
    assert simulation.plot().axes[0].get_ylabel() == "frequency (fraction of people)"


def test_arrays_of_results_cannot_be_written() -> None:
    arrays = [sf.optimal(POLICY, max_seconds=5).prior, sf.simulate(POLICY, n=10, truth="uniform").truth]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_a_certificate_document_is_its_file() -> None:
    certificate = sf.audit(sf.mechanisms.RandomizedResponse(DOMAIN, 1), POLICY)
    assert json.loads(certificate.to_json()) == certificate.to_dict()
    document = certificate.to_dict()
    document["mechanism"]["domain"] = None
    assert certificate.verify() == certificate, "the document is a copy"


def test_a_plan_has_rows_by_name_reason_bound_and_gap() -> None:
    made = plan()
    assert made["rr"].name == "rr"
    assert list(made) == list(made.rows)
    assert len(made) == len(made.rows)
    with pytest.raises(UnknownLabel, match=r"the mechanism must be one of .*, rr.*; got 'rrr'"):
        made["rrr"]
    assert made.reason in str(made)
    assert made.bound == made.best.bound == pytest.approx(made.best.risk)
    assert made.gap == pytest.approx(0, abs=1e-9)
    assert plan_without_hope().gap is None or plan_without_hope().gap == 0
    assert made.to_pandas().set_index("mechanism").loc["rr", "risk"] == made["rr"].risk


@pytest.mark.parametrize("utility", ["estimation", "worst-estimation", "mutual-information", "mmse", "loss"])
def test_design_is_the_best_of_the_plan(utility: str) -> None:
    policy = sf.Metric(sf.Domain.range(4), "absolute", "0.7")
    goal: Any = sf.ExpectedLoss(1 - np.eye(4)) if utility == "loss" else utility
    made = sf.plan(policy, 1, utility=goal)
    assert sf.design(policy, utility=goal) == made.best.mechanism
    assert made.utility == (utility if utility != "loss" else "expected-loss")
    assert made.gap is not None
    assert made.gap < 1e-3
    assert made.reason.startswith(f"{made.best.name}: ")
    assert made.best.value is not None
    values = [row.value for row in made.rows if row.value is not None]
    assert values == sorted(values, reverse=utility == "mutual-information")
    if utility in ("estimation", "worst-estimation"):  # errors fall with n, other utilities do not depend on it
        assert sf.plan(policy, 10, utility=goal).best.value == pytest.approx(made.best.value / 10)
    else:
        assert sf.plan(policy, 10, utility=goal).best.value == pytest.approx(made.best.value, rel=1e-3)


def test_a_plan_of_one_mechanism_has_one_row() -> None:
    made = sf.plan(POLICY, 100, mechanism="unary", prior=[0.5, 0.3, 0.2])
    assert [row.name for row in made.rows] == ["unary"]
    assert made.best.risk == sf.mechanisms.UnaryEncoding(DOMAIN, "ln 3").risk(100, [0.5, 0.3, 0.2])
    assert made.reason == "unary: requested by name, not compared with other mechanisms"
    informed = sf.plan(POLICY, 100, mechanism="rr", utility="mutual-information")
    compared = sf.plan(POLICY, 100, utility="mutual-information")
    assert informed["rr"].value == pytest.approx(compared["rr"].value)


def test_policies_have_methods_of_the_same_names() -> None:
    strict, lenient = sf.Uniform(DOMAIN, 1), POLICY
    assert strict.implies(lenient) == sf.implies(strict, lenient) is True
    assert lenient.implies(strict) is False
    assert sf.Pairwise(DOMAIN, [[0, 1, 1], [1, 0, 1], [1, 1, 0]]).simplify() == strict


#: What methods return that only the engine calls: parts of a sampler, of an estimator and of a search.
_ENGINE = {"AliasTable", "Cohort", "MixtureDraws", "SamplingDistribution", "ScoreLaw", "Scores", "Solved", "Utility"}


# -- what is public ----------------------------------------------------------------------------------------


def public_modules() -> Iterator[types.ModuleType]:
    yield sf
    for module in pkgutil.iter_modules(sf.__path__):
        if not module.name.startswith("_") and module.name not in ("cli", "server"):
            yield importlib.import_module(f"sfumato.{module.name}")


def public_objects() -> dict[str, Any]:
    found = {}
    for module in public_modules():
        for name in module.__all__:
            found[f"{module.__name__}.{name}"] = getattr(module, name)
    return found


def returned_names(function: Any) -> set[str]:
    """The capitalised names in the return annotation of a function."""
    annotation = getattr(function, "__annotations__", {}).get("return", "")
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    names = {node.id for node in ast.walk(ast.parse(text or "None")) if isinstance(node, ast.Name)}
    return {name for name in names if re.match(r"[A-Z]\w*[a-z]", name)}


def callables(value: Any) -> Iterator[Any]:
    if inspect.isfunction(value):
        yield value
    elif inspect.isclass(value) and value.__module__.startswith("sfumato."):
        for name, member in vars(value).items():
            if name.startswith("_"):
                continue
            inner = getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", None)
            yield inner or member


def test_everything_that_a_public_call_returns_can_be_imported() -> None:
    objects = public_objects()
    public = {value for value in objects.values() if inspect.isclass(value)}
    hidden = set()
    for path, value in objects.items():
        for function in callables(value):
            home = importlib.import_module(getattr(function, "__module__", "builtins") or "builtins")
            for name in returned_names(function):
                kind = getattr(home, name, None)
                ours = inspect.isclass(kind) and kind.__module__.startswith("sfumato.")
                if ours and kind not in public and name not in _ENGINE:
                    hidden.add(f"{path}: {name}")
    assert sorted(hidden) == []


def test_a_notebook_shows_the_reason_and_the_warnings_of_a_plan() -> None:
    plan = sf.plan(sf.Uniform(sf.Domain(["a", "b", "c"]), "inf"), n=100)
    assert plan.warnings
    page = plan._repr_html_()
    assert html.escape(plan.reason) in page
    assert "WARNING: " in page


def test_a_violated_certificate_is_false() -> None:
    domain = sf.Domain(["a", "b", "c"])
    mechanism = sf.mechanisms.RandomizedResponse(domain, 2)
    assert sf.audit(mechanism, sf.Uniform(domain, 2))
    assert not sf.audit(mechanism, sf.Uniform(domain, 1))
