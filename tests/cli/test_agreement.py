"""The command line and Python agree: the same names and the same defaults for every verb."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import sfumato as sf
from sfumato.cli import main, sfumato
from sfumato.cli._text import MissingRule
from sfumato.collecting import aggregate_files

#: Parameters that a command has in another form: files instead of objects, a bar instead of a callback.
_OTHERWISE = {
    "amplify": {"mechanism", "policy"},
    "audit": {"mechanism", "policy"},
    "audit-sampler": {"sampler", "policy", "batch", "progress"},
    "design": {"policy", "progress"},
    "plan": {"policy", "progress"},
    "privatize": {"mechanism", "values", "stream", "out", "progress"},
    "aggregate": {"mechanism", "paths", "read_counts", "progress"},
    "estimate": {"mechanism", "counts", "aggregate"},
    "simulate": {"policy_or_mechanism", "progress"},
}
_VERBS: list[tuple[str, Callable[..., Any]]] = [
    ("amplify", sf.amplify),
    ("audit", sf.audit),
    ("audit-sampler", sf.audit_sampler),
    ("design", sf.design),
    ("plan", sf.plan),
    ("privatize", sf.privatize),
    ("aggregate", aggregate_files),
    ("estimate", sf.estimate),
    ("estimate", sf.Estimate.interval),
    ("simulate", sf.simulate),
]
#: An option that may be given several times has no value rather than none; a rule for missing values has no label.
_EMPTY = (None, (), MissingRule())


@pytest.mark.parametrize(("name", "verb"), _VERBS, ids=lambda given: given if isinstance(given, str) else "")
def test_every_parameter_is_an_option_with_the_same_name_and_default(name: str, verb: Callable[..., Any]) -> None:
    root = click.Context(sfumato, **sfumato.context_settings)
    command = sfumato.get_command(root, name)
    assert command is not None
    context = command.make_context(name, [], parent=root, resilient_parsing=True)
    options = {option.name: option for option in command.params}
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.name in {"self", *_OTHERWISE[name]}:
            continue
        assert parameter.name in options, f"sfumato {name} has no --{parameter.name.replace('_', '-')}"
        option = options[parameter.name]
        assert f"--{parameter.name.replace('_', '-')}" in option.opts
        default = None if parameter.default is inspect.Parameter.empty else parameter.default
        if isinstance(default, (str, int, float)):
            assert context.params[parameter.name] == default, f"{name} --{option.name}"
        elif not option.required:
            assert context.params[parameter.name] in _EMPTY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    policy = sf.Metric(sf.Domain.range(4), "absolute", "0.7")
    Path("policy.json").write_text(json.dumps(policy.to_dict()))
    Path("prior.csv").write_text("3,0.1\n0,0.5\n1,0.25\n2,0.15\n")
    Path("shares.csv").write_text("0.5\n0.25\n0.15\n0.1\n")
    Path("loss.csv").write_text("0,1,2,3\n1,0,1,2\n2,1,0,1\n3,2,1,0\n")
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["prior.csv", "shares.csv"])
@pytest.mark.usefixtures("folder")
def test_a_plan_takes_a_utility_and_a_prior(capsys: pytest.CaptureFixture[str], prior: str) -> None:
    options = ("--n", "100", "--utility", "mutual-information", "--prior", prior, "--json")
    found = answer(capsys, "plan", "policy.json", *options)
    policy = sf.load_policy("policy.json")
    plan = sf.plan(policy, 100, utility="mutual-information", prior=[0.5, 0.25, 0.15, 0.1])
    assert found["best"] == plan.best.name
    assert {row["name"]: row["value"] for row in found["rows"]} == pytest.approx(
        {row.name: row.value for row in plan.rows}, rel=1e-3
    )
    assert main(["plan", "policy.json", *options[:-1]]) == 0
    assert "mutual-information" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_plan_takes_a_loss_or_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "plan", "policy.json", "--n", "100", "--loss", "loss.csv", "--json")
    assert "expected-loss" in found["why"]
    assert [row["name"] for row in found["rows"]] == ["optimal"]
    named = answer(capsys, "plan", "policy.json", "--n", "100", "--mechanism", "rr", "--json")
    assert [row["name"] for row in named["rows"]] == ["rr"]
    assert "value" not in named["rows"][0], "the document is as it was"


@pytest.mark.usefixtures("folder")
def test_a_mechanism_is_designed_for_a_prior(capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, "design", "policy.json", "-o", "m.json", "--prior", "prior.csv", "--json")
    made = sf.mechanism_from_spec(Path("m.json").read_text())
    assert made == sf.design(sf.load_policy("policy.json"), prior=[0.5, 0.25, 0.15, 0.1])


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("option", "max_bits"),
    [((), "short"), (("--max-bits", "short"), "short"), (("--max-bits", "none"), None), (("--max-bits", "7"), 7)],
)
def test_the_length_of_reports_is_a_word_or_a_number(
    capsys: pytest.CaptureFixture[str], option: tuple[str, ...], max_bits: Any
) -> None:
    policy = sf.Uniform(sf.Domain.range(100), 1)
    Path("policy.json").write_text(json.dumps(policy.to_dict()))
    plan = sf.plan(policy, 1000, max_bits=max_bits)
    found = answer(capsys, "plan", "policy.json", "--n", "1000", *option, "--json")
    assert (found["best"], found["why"]) == (plan.best.name, plan.reason)
    assert [row["name"] for row in found["rows"]] == [row.name for row in plan.rows]
    answer(capsys, "design", "policy.json", "-o", "m.json", *option, "--json")
    assert sf.mechanism_from_spec(Path("m.json").read_text()) == plan.best.mechanism
    simulated = answer(capsys, "simulate", "policy.json", "--n", "1000", "--by-law", *option, "--json")
    assert simulated["mechanism"] == plan.best.mechanism.name


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("wrong", ["0", "-3", "long", "Short", "1.5", "", "²"])
def test_another_length_of_reports_is_refused(capsys: pytest.CaptureFixture[str], wrong: str) -> None:
    for command in (["plan", "policy.json", "--n", "10"], ["design", "policy.json", "-o", "m.json"]):
        assert main([*command, "--max-bits", wrong]) == 2
        message = f"{wrong!r} is not short, none or a positive whole number of bits, such as 16."
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "culprit"), [("a,b,c\n", "every line must be a frequency"), ("0.5,x\n", "every line")]
)
@pytest.mark.usefixtures("folder")
def test_a_prior_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], text: str, culprit: str) -> None:
    Path("bad.csv").write_text(text)
    assert main(["plan", "policy.json", "--n", "10", "--prior", "bad.csv"]) == 2
    assert culprit in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_simulation_draws_from_the_law_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "simulate", "policy.json", "--n", "1000", "--mechanism", "rr", "--by-law", "--json")
    assert (found["one_by_one"], found["truth"]) == (False, "uniform")


@pytest.mark.usefixtures("folder")
def test_counts_are_estimated_with_a_prior(capsys: pytest.CaptureFixture[str]) -> None:
    mechanism = sf.design(sf.load_policy("policy.json"), mechanism="rr")
    counts = sf.aggregate(mechanism, sf.privatize(mechanism, [0, 1, 2, 3] * 25, sf.InsecureSeeded(1)))
    Path("m.json").write_text(mechanism.to_json())
    Path("counts.json").write_text(counts.to_json())
    options = ("--method", "mmse", "--prior", "prior.csv", "--confidence", "0.9", "--json")
    found = answer(capsys, "estimate", "m.json", "counts.json", *options)
    expected = sf.estimate(mechanism, counts, "mmse", prior=[0.5, 0.25, 0.15, 0.1])
    assert [row["frequency"] for row in found["rows"]] == expected.frequencies.tolist()
    assert [row["low"] for row in found["rows"]] == expected.interval(0.9)[0].tolist()
