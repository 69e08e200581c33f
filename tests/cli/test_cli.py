"""The command line: what each command prints, its exit codes, and that every failure is one plain line."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import sfumato as sf
from sfumato.cli import main, sfumato
from support import ROOT

COMMANDS = sfumato.list_commands(sfumato.make_context("sfumato", ["check"], resilient_parsing=True))

POLICY = """
[domain]
values = ["none", "flu", "hiv", "cancer"]
[policy]
kind = "high-low"
sensitive = ["hiv", "cancer"]
epsilon = "ln 3"
"""

#: Says the value it was given, but for a sensitive one only one time in two: epsilon is infinite.
LEAKY = """
import json, random, sys
random.seed(7)
for line in sys.stdin:
    value = json.loads(line)
    print(value if random.random() < 0.5 else "none")
"""

QUIET = "import sys\nfor line in sys.stdin: print('none')\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "leaky.py").write_text(LEAKY)
    (tmp_path / "quiet.py").write_text(QUIET)
    return tmp_path


class Run:
    """A command, run: its exit code and what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
        self.code = main(arguments)
        self.out, self.err = capsys.readouterr()

    def failed(self) -> str:
        """The one line on stderr, without the name of the program."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.startswith("sfumato: ")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("sfumato: ").rstrip("\n")


# -- every command -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, command, "--help")
    assert run.code == 0
    assert f"Example: sfumato {command} " in run.out
    assert Run(capsys, command, "-h").out == run.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_sentence_and_a_default(name: str) -> None:
    root = click.Context(sfumato, **sfumato.context_settings)
    command = sfumato.get_command(root, name)
    assert command is not None
    context = command.make_context(name, [], parent=root, resilient_parsing=True)
    for option in command.params:
        if isinstance(option, click.Option):
            record = option.get_help_record(context)
            assert record is not None
            assert re.match(r"[A-Z][^\[]*\.? .*\[(default: .+|required)\]", record[1]), record


def test_help_lists_every_command_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "--help")
    assert run.code == 0
    assert {"audit", "audit-sampler", "check"} <= set(COMMANDS)
    for command in COMMANDS:
        assert re.search(rf"^  {command}  +[A-Z].*", run.out, flags=re.MULTILINE)
    assert Run(capsys).code == 2  # no command is an error, with the same help
    assert Run(capsys, "--version").out.startswith("sfumato, version ")


def test_help_imports_nothing_heavy() -> None:
    heavy = ("flint", "cryptography", "numba", "scipy", "pyarrow", "pandas", "polars")
    code = (
        "import sys; from sfumato.cli import main; main(['--help']); "
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "No such command 'nonsense'. (see: sfumato --help)"),
        ("check", "Missing argument 'POLICY'. (see: sfumato check --help)"),
        ("check nothing.toml", "Invalid value for 'POLICY': File 'nothing.toml' does not exist."),
        ("check --loud policy.toml", "No such option '--loud'"),
        ("check leaky.py", "leaky.py: the file must be a readable policy document; got"),
        ("audit leaky.py --policy policy.toml", "a mechanism spec: the document must be JSON; got"),
        ("audit leaky.py", "Missing option '--policy'."),
        ("audit-sampler --policy policy.toml", "Missing argument"),
        ("audit-sampler --policy policy.toml --trials 10 -- true", "audit_sampler: trials must be an int of at least"),
        (
            "audit-sampler --policy policy.toml --confidence 2 -- true",
            "audit_sampler: confidence must be strictly between",
        ),
        ("audit-sampler --policy policy.toml --values flu --values cold -- true", "audit_sampler: values must be"),
        ("audit-sampler --policy policy.toml -- ./no-such-program", "cannot start ./no-such-program: No such file"),
    ],
)
def test_every_failure_is_one_line_and_code_2(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in Run(capsys, *line.split()).failed()


def test_a_file_that_cannot_be_written_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mechanism.json").write_text(mechanism("ln 3").to_json())
    (folder / "file").write_text("")
    failed = Run(capsys, "audit", "mechanism.json", "--policy", "policy.toml", "-o", "file/certificate.json").failed()
    assert "file/certificate.json" in failed


@pytest.mark.usefixtures("folder")
def test_a_fault_of_ours_is_neither_a_no_nor_an_error_of_theirs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code 1 says that a policy is violated: a crash must not."""

    def breaks(*_: object) -> None:
        raise ZeroDivisionError("in the middle of it")

    Path("mechanism.json").write_text(mechanism("ln 3").to_json())
    monkeypatch.setattr("sfumato.auditing.audit", breaks)
    run = Run(capsys, "audit", "mechanism.json", "--policy", "policy.toml")
    assert (run.code, run.out) == (70, "")
    assert run.err.startswith("Traceback ")
    assert run.err.endswith(
        "ZeroDivisionError: in the middle of it\n"
        "sfumato: internal error; please report it together with the traceback above\n"
    )


# -- check -------------------------------------------------------------------------------------------------


def test_check_says_what_a_policy_asks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(capsys, "check", "policy.toml")
    assert run.code == 0
    assert run.out.splitlines() == [
        "a high-low policy over 4 values",
        "requires:         no report is more than 3 times (epsilon ln 3) as likely for a sensitive value "
        "('hiv', 'cancer') as for any other value; the other values may be revealed.",
        "smallest epsilon: ln 3 ('hiv' against 'none')",
        f"hash:             {sf.load_policy(folder / 'policy.toml').hash}",
    ]


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_policy_file_may_begin_with_a_byte_order_mark(
    suffix: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sf.save_policy(sf.load_policy("policy.toml"), folder / f"plain.{suffix}")
    (folder / f"marked.{suffix}").write_bytes(b"\xef\xbb\xbf" + (folder / f"plain.{suffix}").read_bytes())
    assert Run(capsys, "check", f"marked.{suffix}").out == Run(capsys, "check", f"plain.{suffix}").out != ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("high-low", "high-lwo", "wrong.toml: [policy]: kind must be one of uniform, high-low, blocks, metric, "),
        ("high-low", "high-lwo", "secret (did you mean 'high-low'?); got 'high-lwo'"),
        ("high-low", "nothing", "prior, product, secret; got 'nothing'"),
        ("[policy]", "[polices]", "wrong.toml: a policy document: the document key must be one of"),
        ('"ln 3"', "-1", "wrong.toml: "),
        ("[domain]", "[domain", "wrong.toml: the file must be a readable policy document"),
    ],
)
def test_what_is_wrong_with_a_policy_is_said_with_its_file(
    old: str, new: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wrong.toml").write_text(POLICY.replace(old, new))
    failed = Run(capsys, "check", "wrong.toml").failed()
    assert message in failed
    assert failed.count("wrong.toml") == 1


def test_what_no_number_of_people_suffices_for_is_null_in_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sf.save_policy(sf.Uniform(sf.Domain.range(3), 0), folder / "zero.toml")
    said = Run(capsys, "plan", "zero.toml", "--n", "100", "--json").out
    assert not re.search("Infinity|NaN", said)
    assert json.loads(said)["rows"][0]["risk"] is None


GRID = sf.Domain.grid(latitude=(0, 1), longitude=(0, 1), rows=2, columns=2)
PRODUCT = sf.Domain.product(S=["yes", "no"], U=["x", "y"])
THREE = sf.Domain(["a", "b", "c"])


@pytest.mark.parametrize(
    ("policy", "asks", "least"),
    [
        (sf.Uniform(THREE, 1), "more than 2.718 times (epsilon 1) as likely for one value", "1 ('a' against 'b')"),
        (sf.Uniform(THREE, 1000), "more than e^1000 times as likely for one value", "1000 ('a' against 'b')"),
        (sf.Uniform(THREE, "inf"), "nothing: a report may be the value itself", "inf (the policy has no rules)"),
        (sf.HighLow(THREE, ["a"], "inf"), "nothing: a report may be the value itself", "inf (the policy has no rules)"),
        (sf.Prior(THREE, ["1/2", "1/4", "1/4"], "inf"), "nothing: a report may be", "inf (the policy has no rules)"),
        (
            sf.Secret(PRODUCT, "S", "inf", sf.Known([["1/4"] * 2] * 2)),
            "nothing: a report",
            "inf (the policy has no rules)",
        ),
        (
            sf.Blocks(THREE, "aab", "inf", across=1),
            "values of the same block may be distinguished",
            "1 ('a' against 'c')",
        ),
        (sf.Blocks(sf.Domain.range(4), "aabb", [1, "inf"]), "of some blocks may be distinguished", "1 (0 against 1)"),
        (
            sf.Metric(THREE, "discrete", "inf"),
            "nothing: a report may be the value itself",
            "inf (the policy has no rules)",
        ),
        (
            sf.Metric(THREE, [[0, 0, 1], [0, 0, 1], [1, 1, 0]], "inf"),
            "no report distinguishes values at distance 0",
            "0 ('a' against 'b')",
        ),
        (sf.Pairwise(THREE, {}), "nothing: a report may be the value itself", "inf (the policy has no rules)"),
        (sf.HighLow(sf.Domain.range(9), list(range(8)), 1), "(0, 1, 2, 3, 4 and 3 more)", "1 (0 against 1)"),
        (
            sf.Blocks(THREE, [["a", "b"], ["c"]], 1),
            "another value of the same block; the block itself may be revealed",
            "1 (",
        ),
        (
            sf.Blocks(THREE, [["a", "b"], ["c"]], [1, 2], 3),
            "to 7.389 times (epsilon 2), depending on the block, as likely",
            "1 (",
        ),
        (
            sf.Metric(THREE, "discrete", 1),
            "per unit of distance, no report is more than 2.718 times (epsilon 1) as likely",
            "1 ('a' against 'b')",
        ),
        (
            sf.PerValue(THREE, {"a": "1/2", "b": 2, "c": "inf"}),
            "the smaller of the epsilons of the two values: 0.5 for 'a'; 2 for 'b'; unlimited for 'c'; together, these "
            "limits keep every pair within epsilon 1.",
            "0.5 ('a' against 'b')",
        ),
        (sf.PerValue(THREE, [1, 2, 3], "max"), "the larger of the epsilons", "2 ('a' against 'b')"),
        (
            sf.PerValue(sf.Domain.range(7), [f"1.{x}" for x in range(7)]),
            "two values: 1 for 0, and 5 levels up to 1.6 for 6.",
            "1 (0 against 1)",
        ),
        (sf.PerValue(THREE, ["inf"] * 3), "nothing: a report may be the value itself", "inf (the policy has no rules)"),
        (
            sf.Graph(THREE, [("a", "b")], 1),
            "as likely for one value as for a neighbour in a graph with 1 edge, and limits add up along paths; the 2 "
            "parts of the graph that no path joins may be distinguished.",
            "1 ('a' against 'b')",
        ),
        (
            sf.Graph(THREE, [("a", "b", 1), ("b", "c", 2)]),
            "2.718 times (epsilon 1) to 7.389 times (epsilon 2), depending on the edge, as likely",
            "1 ('a' against 'b')",
        ),
        (sf.Graph(THREE, []), "nothing: a report may be the value itself", "inf (the policy has no rules)"),
        (
            sf.Prior.maximal_leakage(THREE, ["1/2", "1/4", "1/4"], "ln 2"),
            "raises the prior probability of any value by a factor of more than 2 (epsilon ln 2), which limits the "
            "pointwise maximal leakage.",
            "inf (any two",
        ),
        (sf.Pairwise(THREE, {("a", "c"): "0.5"}), "for 1 of the 6 ordered pairs", "0.5 ('a' against 'c')"),
        (
            sf.Prior(THREE, ["1/2", "1/4", "1/4"], "ln 2"),
            "raises or lowers the prior probability of any value by a factor of more than 2 (epsilon ln 2)",
            "2*ln 2 (any two",
        ),
        (
            sf.Secret(PRODUCT, "S", 1, sf.Anything()),
            "however the other attributes depend on it",
            "1 (('yes', 'x') against ('no'",
        ),
        (
            sf.Secret(PRODUCT, "S", 1, sf.Known([["1/4"] * 2] * 2)),
            "depend on it as the policy states",
            "1 (any two sec",
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, sf.Policy) else "",
)
def test_check_knows_words_for_every_kind(
    policy: sf.Policy, asks: str, least: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sf.save_policy(policy, tmp_path / "policy.json")
    run = Run(capsys, "check", str(tmp_path / "policy.json"))
    assert run.code == 0
    lines = run.out.splitlines()
    assert asks in lines[1]
    assert "inf times" not in run.out
    assert lines[2].startswith(f"smallest epsilon: {least}")
    assert lines[3].endswith(policy.hash)


REVEALING = [
    (
        sf.Uniform(THREE, 20),
        "a report almost always reveals the value: a guess based on it may be wrong with a probability of only 4.1e-09",
    ),
    (sf.Uniform(THREE, 1000), "a guess based on it may be wrong with a probability below 1e-300"),
    (sf.Uniform(THREE, "inf"), "this policy protects nothing: a report may be the value itself"),
    (sf.Prior(THREE, ["1/2", "1/4", "1/4"], 20), "a report almost always reveals the value"),
    (sf.HighLow(THREE, ["a", "b"], 20), "a report may reveal 2 of 3 values ('a', 'b')"),
    (sf.Blocks(THREE, "aab", 1), "a report may reveal 1 of 3 values ('c'): a guess based on it may be certain"),
    (sf.Secret(PRODUCT, "S", 20, sf.Anything()), "a report almost always reveals S"),
]


@pytest.mark.parametrize(("policy", "warning"), REVEALING, ids=lambda given: getattr(given, "kind", ""))
def test_check_design_and_plan_warn_where_a_report_reveals_the_value(
    policy: sf.Policy, warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "policy.json")
    sf.save_policy(policy, path)
    for command in (["check", path], ["design", path, "-o", str(tmp_path / "m.json")], ["plan", path, "--n", "1000"]):
        run = Run(capsys, *command)
        assert run.code == 0
        last = run.out.splitlines()[-1]
        assert last.startswith("WARNING:")
        assert warning in last
        (stated,) = json.loads(Run(capsys, *command, "--json").out)["warnings"]
        assert warning in stated
    assert str(sf.plan(policy, n=1000)).splitlines()[-1] == f"WARNING: {stated}"


@pytest.mark.usefixtures("folder")
def test_ordinary_policies_raise_no_alarm(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["check", "policy.toml"], ["plan", "policy.toml", "--n", "1000"]):
        assert "WARNING" not in Run(capsys, *command).out
        assert json.loads(Run(capsys, *command, "--json").out)["warnings"] == []


# -- audit -------------------------------------------------------------------------------------------------


def mechanism(epsilon: str) -> sf.mechanisms.Mechanism:
    return sf.mechanisms.RandomizedResponse(sf.Domain(["none", "flu", "hiv", "cancer"]), epsilon)


def test_audit_writes_a_certificate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mechanism.json").write_text(mechanism("ln 3").to_json())
    run = Run(capsys, "audit", "mechanism.json", "--policy", "policy.toml", "-o", "certificate.json")
    assert run.code == 0
    assert run.out.startswith("randomized-response obeys the high-low policy: ")
    assert "evidence: law read from the sampler" in run.out
    certificate = sf.Certificate.from_json((folder / "certificate.json").read_text())
    assert sf.verify(certificate).holds


def test_audit_says_no_with_code_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mechanism.json").write_text(mechanism("ln 4").to_json())
    run = Run(capsys, "audit", "mechanism.json", "--policy", "policy.toml")
    assert run.code == 1
    assert run.out.startswith("randomized-response does not obey the high-low policy: ")
    assert run.err == ""


def test_a_certificate_from_others_is_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = sf.load_policy("policy.toml")
    for epsilon, code, said in (("ln 3", 0, "obeys"), ("ln 4", 1, "does not obey")):
        certificate = sf.audit(mechanism(epsilon), policy)
        (folder / "certificate.json").write_text(certificate.to_json())
        run = Run(capsys, "verify", "certificate.json")
        assert (run.code, run.err) == (code, "")
        assert run.out.splitlines() == [
            certificate.summary(),
            f"evidence:  {certificate.evidence}",
            f"mechanism: {mechanism(epsilon).hash}",
            f"policy:    {policy.hash}",
        ]
        assert f"randomized-response {said} the high-low policy" in run.out
        assert Run(capsys, "verify", "certificate.json", "--json").out == certificate.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"holds": True}, "its statement must be that of the repeated audit: randomized-response does not obey"),
        ({"fault": "none"}, "its statement must be that of the repeated audit"),
        ({"policy_hash": "0"}, "policy_hash must be "),
        ({"mechanism": {}}, "mechanism_hash must be "),
        ({"worst": {}}, "the document must be a complete JSON certificate"),
        ({"output": 7}, "output must be a string or null; got 7"),
        (
            {"version": 2},
            "\"format\" and \"version\" must be 'sfumato-certificate' and 1; got 'sfumato-certificate' and 2",
        ),
        ({"policy": math.inf}, "the document must be a complete JSON certificate"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_certificate_that_says_anything_else_is_refused(
    change: dict[str, object], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(sf.audit(mechanism("ln 4"), sf.load_policy("policy.toml")).to_json())
    (folder / "forged.json").write_text(json.dumps(document | change))
    failed = Run(capsys, "verify", "forged.json").failed()
    assert failed.startswith("forged.json: a certificate: ")
    assert message in failed


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "{", '{"format": "sfumato-certificate", "version": 1}'])
def test_what_is_no_certificate_is_one_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("no.json").write_text(text)
    assert "no.json: a certificate: the document must be" in Run(capsys, "verify", "no.json").failed()


# -- audit-sampler -----------------------------------------------------------------------------------------


def audit_sampler(capsys: pytest.CaptureFixture[str], *arguments: str, trials: int = 5000) -> Run:
    return Run(capsys, "audit-sampler", "--policy", "policy.toml", "--trials", str(trials), *arguments)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_a_leaky_program_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    run = audit_sampler(capsys, "--", sys.executable, "leaky.py")
    assert run.code == 1
    assert run.out.startswith("the sampler violates the policy: epsilon is at least ")
    assert run.out.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_a_program_that_says_nothing_of_its_value_is_left_in_peace(capsys: pytest.CaptureFixture[str]) -> None:
    run = audit_sampler(capsys, "--", sys.executable, "quiet.py")
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("no violation found, which does not prove that the sampler obeys the policy: ")


@pytest.mark.usefixtures("folder")
def test_the_result_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    run = audit_sampler(capsys, "--json", "--values", "hiv", "--values", "none", "--", sys.executable, "leaky.py")
    assert run.code == 1
    document = json.loads(run.out)
    assert (document["pair"], document["level"], document["counts"][1]) == (["hiv", "none"], "ln 3", 0)
    assert (document["trials"], document["tested"], document["alpha"]) == (5000, 2500, 1e-6)


def test_values_that_are_not_texts_are_given_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sf.save_policy(sf.Uniform(GRID, 1), folder / "policy.toml")
    run = audit_sampler(capsys, "--json", "--values", "[0, 1]", "--values", "[1,0]", "--", "cat", trials=1000)
    assert run.code == 1
    assert sorted(json.loads(run.out)["pair"]) == [[0, 1], [1, 0]]


PROGRAMS = {
    "ends at once": (
        "import sys; sys.exit(3)",
        "ended after 0 reports of 5,000 (exit code 3). A sampler must read one",
    ),
    "fails": ("import no_such_module", "(exit code 1: ModuleNotFoundError: No module named 'no_such_module')"),
    "ends early": ("import sys\nfor i in range(700): print(sys.stdin.readline())", "reports of 5,000 (exit code "),
    "is silent": ("import sys; sys.stdin.read()", "ended after 0 reports of 5,000 (exit code 0)"),
    "says too much": ("import sys\nfor line in sys.stdin: print('a\\nb')", "wrote more reports than it read values"),
    "talks on": ("while True: print('a')", "wrote more reports than it read values (5,000)"),
    "fails at last": (
        "import sys\nfor l in sys.stdin: print(1)\nsys.exit(4)",
        "failed after its last report (exit code 4",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", PROGRAMS)
def test_a_program_that_breaks_the_protocol_is_one_plain_line(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, message = PROGRAMS[case]
    (folder / "program.py").write_text(script)
    failed = audit_sampler(capsys, "--", sys.executable, "program.py").failed()
    assert message in failed
    assert failed.startswith(f"{sys.executable} (for 'none') ")


@pytest.mark.slow
def test_no_side_waits_for_the_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that first reads everything, one that writes far more than a pipe holds, one that flushes each line."""
    (folder / "patient.py").write_text("import sys\nlines = list(sys.stdin)\nfor line in lines: print('x')\n")
    (folder / "wordy.py").write_text("import sys\nfor line in sys.stdin: print('x' * 1000)\n")
    (folder / "prompt.py").write_text("import sys\nfor line in sys.stdin: print('x', flush=True)\n")
    for name in ("patient.py", "wordy.py", "prompt.py"):
        assert audit_sampler(capsys, "--", sys.executable, name, trials=20_000).code == 0


@pytest.mark.slow
def test_the_example_of_the_page_runs_as_it_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "audit-sampler.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(toml|py|sh|console)\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL))
    (folder / "policy.toml").write_text(blocks["toml"])
    (folder / "sampler.py").write_text(blocks["py"])
    arguments = blocks["sh"].split()
    assert arguments[0] == "sfumato"
    run = Run(capsys, *(sys.executable if word == "python" else word for word in arguments[1:]))
    assert (run.code, run.out) == (1, blocks["console"])
    (folder / "sampler.py").write_text(blocks["py"].replace("print(*report)", "print(*sorted(report))"))
    assert Run(capsys, *(sys.executable if word == "python" else word for word in arguments[1:])).code == 0


@pytest.mark.parametrize("arguments", [["serve"], ["admin-tokens"], ["store", "check"], ["collections", "list"]])
def test_commands_of_a_collector_name_the_missing_extra(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sfumato.server", None)  # importing it raises ImportError
    assert main(arguments) == 2
    assert "pip install '.[server]'" in capsys.readouterr().err
