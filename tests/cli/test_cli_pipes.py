"""The command line in pipes: `-` for whatever is read or written, all or nothing, and no word too many."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato._core import atomic_files as atomic
from sfumato.cli import main
from sfumato.collecting.files import read_reports, write_reports
from sfumato.device.values import read_values
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.reports import base as formats
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.shifts import CyclicDesign
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.systems.subsets import SubsetSelection
from sfumato.mechanisms.unary.mechanism import UnaryEncoding

SFUMATO = f"{shlex.quote(sys.executable)} -m sfumato.cli"

VALUES = ["none", "flu", "hiv", "cancer"]
POLICY = """\
[domain]
values = ["none", "flu", "hiv", "cancer"]
[policy]
kind = "high-low"
sensitive = ["hiv", "cancer"]
epsilon = "1"
"""
SHARES = {"none": 0.6, "flu": 0.25, "hiv": 0.05, "cancer": 0.1}
DOMAIN = sf.Domain(VALUES)

#: One that reports an index, and three whose reports are bitmaps of one byte and of several.
MECHANISMS: dict[str, Mechanism] = {
    "index": RandomizedResponse(DOMAIN, 1),
    "wide index": HadamardResponse(sf.Domain.range(3000), 1),
    "cyclic": CyclicDesign(sf.Domain.range(1000), 2),
    "bitmap": SubsetSelection(DOMAIN, 1, 2),
    "long bitmap": UnaryEncoding(sf.Domain.range(21), 1),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "mechanism.json").write_text(sf.design(sf.load_policy("policy.toml")).to_json())
    return tmp_path


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Put bytes on standard input."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def said(err: bytes) -> str:
    """What a command wrote on standard error, but for the news that a kernel is compiled, once per machine."""
    return "".join(line for line in err.decode().splitlines(keepends=True) if not line.startswith("compiling "))


class Run:
    """A command with these bytes on its standard input: exit code and what it wrote."""

    def __init__(self, capsysbinary: pytest.CaptureFixture[bytes], stdin: bytes, *arguments: str) -> None:
        capsysbinary.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            self.code = main(arguments)
        captured = capsysbinary.readouterr()
        self.out, self.err = captured.out, said(captured.err)

    def worked(self) -> bytes:
        """What it wrote on standard output."""
        assert self.code == 0, self.err
        return self.out

    def failed(self) -> str:
        """The one line of a failure that wrote nothing else."""
        assert self.code == 2
        assert self.out == b""
        assert self.err.startswith("sfumato: ")
        assert self.err.count("\n") == 1
        return self.err


def drawn(mechanism: Mechanism, count: int = 100) -> Any:
    labels = mechanism.domain.labels
    return sf.privatize(mechanism, [labels[i % len(labels)] for i in range(count)], stream=sf.InsecureSeeded(7))


def as_stream(file: bytes) -> bytes:
    """The Arrow IPC stream with the content of an Arrow IPC file."""
    table = ipc.open_file(file).read_all()
    stream = io.BytesIO()
    with ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def piped(capsysbinary: pytest.CaptureFixture[bytes], mechanism: Mechanism, reports: Any, suffix: str) -> bytes:
    """Reports as they go through a pipe."""
    capsysbinary.readouterr()
    assert write_reports(mechanism, reports, "-", piped=".arrow" if suffix == ".arrows" else suffix) == len(reports)
    written = capsysbinary.readouterr().out
    return as_stream(written) if suffix == ".arrows" else written


# -- whole pipelines ---------------------------------------------------------------------------------------


def shell(line: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", line.replace("sfumato ", f"{SFUMATO} ")], capture_output=True, check=True, timeout=300
    )


@pytest.mark.slow
def test_a_pipeline_of_the_shell_from_policy_to_estimate(folder: Path) -> None:
    values = "".join(f"{value}\n" * round(20_000 * share) for value, share in SHARES.items())
    (folder / "values.txt").write_text(values)
    before = sorted(folder.iterdir())
    made = shell("sfumato design - -o - < policy.toml | tee /dev/stderr | sfumato audit - --policy policy.toml -o -")
    assert json.loads(made.stdout)["holds"]
    assert (folder / "mechanism.json").read_bytes() in made.stderr
    run = shell(
        "sfumato privatize mechanism.json - -o - < values.txt"
        " | sfumato aggregate mechanism.json - -o -"
        " | sfumato estimate mechanism.json - -o -"
    )
    rows = list(csv.DictReader(io.StringIO(run.stdout.decode())))
    assert [row["value"] for row in rows] == VALUES
    for row in rows:
        # Five standard errors and more: a false alarm in four values is below 1e-6.
        error = abs(float(row["frequency"]) - SHARES[row["value"]])
        assert error < 5.2 * float(row["standard_error"])
    for said in ("20,000 reports of ", "counts written to standard output", "20,000 reports, method unbiased"):
        assert said in run.stderr.decode()
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGPIPE")
@pytest.mark.parametrize(
    "line",
    [
        "check policy.toml",
        "plan policy.toml --n 1000",
        "design policy.toml -o -",
        "audit mechanism.json --policy policy.toml -o -",
        "privatize mechanism.json values.txt -o - --format lines",
    ],
)
def test_a_pipe_that_nobody_reads_ends_the_command_without_a_word(line: str, folder: Path) -> None:
    (folder / "values.txt").write_text("none\n" * 50_000)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "sfumato.cli", *line.split()]
    run = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=300)
    os.close(writing)
    assert (run.returncode, said(run.stderr)) == (141, "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("line", ["check policy.toml", "design policy.toml -o -"])
@pytest.mark.usefixtures("folder")
def test_a_full_disk_behind_the_pipe_is_one_line(line: str) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "sfumato.cli", *line.split()]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=300)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "No space left on device" in result.stderr


CLOSED_INPUT = "sfumato: standard input: the pipe must be open; got nothing. Pass the path of a file instead of -.\n"


def test_standard_input_or_output_that_is_closed_is_one_line(
    folder: Path,  # noqa: ARG001
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", None)
        for line in ("check -", "privatize mechanism.json - -o -", "aggregate mechanism.json - -o -"):
            assert main(line.split()) == 2
            assert capsys.readouterr().err == CLOSED_INPUT
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["design", "policy.toml", "-o", "-"]) == 2
    assert (
        capsys.readouterr().err
        == "sfumato: standard output: the pipe must be open; got a closed stream. Write to a file instead of '-'.\n"
    )


# -- documents ---------------------------------------------------------------------------------------------

POLICY_COMMANDS = [
    "check -",
    "plan - --n 1000",
    "simulate - --n 1000",
    "design - -o -",
    "audit mechanism.json --policy -",
    "audit-sampler --policy - --trials 1000 -- sh -c 'sed s/.*/same/'",
]
DOCUMENT_COMMANDS = [
    *POLICY_COMMANDS,
    "audit - --policy policy.toml",
    "verify -",
    "privatize - values.txt -o -",
    "aggregate - counts.json -o -",
    "estimate - counts.json -o -",
    "aggregate mechanism.json - -o -",
    "estimate mechanism.json - -o -",
]


@pytest.mark.slow
@pytest.mark.parametrize("line", POLICY_COMMANDS)
def test_policies_come_by_pipe_in_toml_or_json(
    line: str, folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    as_json = json.dumps(sf.load_policy(folder / "policy.toml").to_dict(), indent=2).encode()
    by_name = ["policy.toml" if word == "-" else word for word in shlex.split(line.replace("-o -", ""))]
    expected = Run(capsysbinary, b"", *by_name, *(["-o", "-"] if "-o -" in line else [])).worked()
    assert expected
    for document in (POLICY.encode(), as_json, b"\n " + as_json):
        assert Run(capsysbinary, document, *shlex.split(line)).worked() == expected


def test_a_policy_from_a_pipe_names_files_of_the_working_folder(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "pages.csv").write_text("page\nhome\nhelp\n")
    policy = b'[domain]\nfile = "pages.csv"\n[policy]\nkind = "uniform"\nepsilon = "1"\n'
    (folder / "pages.toml").write_bytes(policy)
    assert Run(capsysbinary, policy, "check", "-").worked() == Run(capsysbinary, b"", "check", "pages.toml").worked()


def test_what_is_said_goes_aside_where_the_document_goes_through(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    spec = (folder / "mechanism.json").read_bytes()
    design = Run(capsysbinary, b"", "design", "policy.toml", "-o", "-")
    assert design.worked() == spec
    assert "parts obeys the high-low policy" in design.err
    in_json = Run(capsysbinary, b"", "design", "policy.toml", "-o", "-", "--json")
    assert in_json.worked() == spec
    assert json.loads(in_json.err)["mechanism"] == "parts"

    Run(capsysbinary, spec, "audit", "-", "--policy", "policy.toml", "-o", "certificate.json").worked()
    for as_json in ((), ("--json",)):
        audit = Run(capsysbinary, spec, "audit", "-", "--policy", "policy.toml", "-o", "-", *as_json)
        assert audit.worked() == (folder / "certificate.json").read_bytes()
        assert "parts" in audit.err


def test_a_certificate_comes_by_pipe_and_a_policy_with_a_byte_order_mark(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    marked = b"\xef\xbb\xbf" + (folder / "policy.toml").read_bytes()
    certificate = Run(capsysbinary, marked, "audit", "mechanism.json", "--policy", "-", "-o", "-").worked()
    assert Run(capsysbinary, certificate, "verify", "-", "--json").worked() == certificate


def test_the_file_behind_standard_input_is_not_written_over(folder: Path) -> None:
    line = f"{SFUMATO} design - -o policy.toml < policy.toml"
    run = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 2
    assert "'-o' / '--output': policy.toml is also read for 'POLICY'" in run.stderr
    assert (folder / "policy.toml").read_text() == POLICY


def test_a_refusal_says_no_through_the_pipe_too(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    lax = RandomizedResponse(DOMAIN, 2).to_json().encode()
    run = Run(capsysbinary, lax, "audit", "-", "--policy", str(folder / "policy.toml"), "-o", "-")
    assert run.code == 1
    assert not json.loads(run.out)["holds"]


@pytest.fixture
def documents(folder: Path) -> Path:
    mechanism = sf.mechanism_from_spec((folder / "mechanism.json").read_bytes())
    (folder / "values.txt").write_text("none\nflu\n")
    (folder / "counts.json").write_text(sf.aggregate(mechanism, drawn(mechanism)).to_json())
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("line", DOCUMENT_COMMANDS)
@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"[dom", b'{"mechanism": "subs', b'{"format": 1', b"{}", b"[]", b"\xff\xfe\x00", b"\x00" * 99],
    ids=["empty", "blank", "cut toml", "cut spec", "cut counts", "no keys", "a list", "no utf-8", "zeros"],
)
def test_what_is_no_document_is_one_line_that_names_standard_input(
    line: str, data: bytes, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert Run(capsysbinary, data, *shlex.split(line)).failed().startswith("sfumato: standard input: ")


def test_a_document_that_was_cut_anywhere_is_refused(
    documents: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for name, line in (
        ("mechanism.json", "audit - --policy policy.toml"),
        ("counts.json", "aggregate mechanism.json - -o -"),
    ):
        whole = (documents / name).read_bytes().rstrip()
        Run(capsysbinary, whole, *line.split()).worked()
        for cut in {*range(0, len(whole), 7), len(whole) - 1}:
            assert "standard input: " in Run(capsysbinary, whole[:cut], *line.split()).failed()


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    ("line", "second", "first"),
    [
        ("audit - --policy -", "'MECHANISM'", "'--policy'"),
        ("audit --policy - -", "'MECHANISM'", "'--policy'"),
        ("privatize - - -o never.sfb", "'VALUES'", "'MECHANISM'"),
        ("aggregate - - -o never.json", "'REPORTS...'", "'MECHANISM'"),
        ("aggregate mechanism.json - counts.json - -o never.json", "'REPORTS...'", "'REPORTS...'"),
        ("estimate - - -o never.csv", "'COUNTS'", "'MECHANISM'"),
    ],
)
def test_standard_input_cannot_be_two_things(
    line: str, second: str, first: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    failed = Run(capsysbinary, b"anything", *line.split()).failed()
    assert f"Invalid value for {second}: standard input (-) is already read for {first}. Give a file" in failed
    assert not list(Path().glob("never*"))


def test_a_file_that_is_called_dash_is_reached_by_its_folder(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "-").write_text(POLICY)
    assert b"high-low" in Run(capsysbinary, b"", "check", "./-").worked()
    assert "must end in .svg or .png" in Run(capsysbinary, b"", "check", "policy.toml", "--plot", "-").failed()


# -- reports -----------------------------------------------------------------------------------------------

PIPED = [".sfb", ".parquet", ".arrow", ".arrows", ".lines"]


@pytest.mark.parametrize("suffix", [".sfb", ".parquet", ".arrow"])
def test_a_pipe_brings_what_the_file_would_hold(
    suffix: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    mechanism = MECHANISMS["index"]
    reports = drawn(mechanism)
    write_reports(mechanism, reports, tmp_path / f"reports{suffix}")
    assert piped(capsysbinary, mechanism, reports, suffix) == (tmp_path / f"reports{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", PIPED)
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("count", [0, 1, 100])
def test_reports_come_back_through_a_pipe_in_every_format(
    suffix: str,
    name: str,
    count: int,
    capsysbinary: pytest.CaptureFixture[bytes],
    feed: Callable[[bytes], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(formats, "_PIECE_BYTES", 64)  # so that a hundred reports are many pieces
    mechanism = MECHANISMS[name]
    reports = drawn(mechanism, count)
    feed(piped(capsysbinary, mechanism, reports, suffix))
    pieces = list(read_reports(mechanism, "-"))
    assert len(pieces) > 1 or count < 100
    empty = np.empty((0, *mechanism.report_format.shape), mechanism.report_format.dtype)
    assert np.array_equal(np.concatenate([empty, *pieces]), reports)
    assert not sys.stdin.buffer.closed


@pytest.mark.parametrize("suffix", PIPED)
@pytest.mark.parametrize("name", ["index", "bitmap"])
def test_reports_that_were_cut_anywhere_or_go_on_are_refused(
    suffix: str, name: str, capsysbinary: pytest.CaptureFixture[bytes], feed: Callable[[bytes], None]
) -> None:
    mechanism = MECHANISMS[name]
    whole = piped(capsysbinary, mechanism, drawn(mechanism, 20), suffix)
    for data in (*(whole[:cut] for cut in range(len(whole))), whole + b"\0"):
        feed(data)
        with pytest.raises(InvalidInput, match=r"^standard input: "):
            list(read_reports(mechanism, "-"))


def test_an_arrow_stream_without_its_last_batches_is_refused(feed: Callable[[bytes], None]) -> None:
    """pyarrow takes it for a shorter stream: the messages that are there are whole."""
    mechanism = MECHANISMS["index"]
    schema = pa.schema([pa.field("report", pa.uint32(), nullable=False)])
    stream, ends = io.BytesIO(), []
    with ipc.new_stream(stream, schema.with_metadata({"sfumato.mechanism": mechanism.hash})) as writer:
        for _ in range(3):
            writer.write_batch(pa.record_batch([pa.array([0, 1, 2], pa.uint32())], schema=schema))
            ends.append(stream.tell())
    for end in ends:
        cut = stream.getvalue()[:end]
        assert ipc.open_stream(cut).read_all().num_rows in (3, 6, 9)
        feed(cut)
        with pytest.raises(InvalidInput, match="must end with its end-of-stream mark; got a truncated stream"):
            list(read_reports(mechanism, "-"))
    feed(stream.getvalue())
    assert [piece.tolist() for piece in read_reports(mechanism, "-")] == [[0, 1, 2]] * 3


@pytest.mark.parametrize("suffix", PIPED)
def test_reports_of_another_mechanism_are_refused(
    suffix: str, capsysbinary: pytest.CaptureFixture[bytes], feed: Callable[[bytes], None]
) -> None:
    feed(piped(capsysbinary, MECHANISMS["index"], drawn(MECHANISMS["index"]), suffix))
    other = RandomizedResponse(DOMAIN, 2)
    with pytest.raises(InvalidInput, match=f"^standard input: .*mechanism.* must be {other.hash[:12]}…; got "):
        list(read_reports(other, "-"))


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("index", b"4\n", "the report in row 2 must be in 0 … 3"),
        ("index", b"-1\n", "the report in row 2 must be in 0 … 3"),
        ("index", b"99999999999999999999\n", "the report in row 2 must be in 0 … 3"),
        ("index", b"01\n", "the report in row 2 must be in 0 … 3, in plain digits; got b'01"),
        ("index", b" 1\n", "the report in row 2 must be in 0 … 3, in plain digits"),
        ("index", b"1\r\n", "the report in row 2 must be in 0 … 3, in plain digits"),
        ("index", b"1_0\n", "the report in row 2 must"),
        ("index", b"\n", "the report in row 2 must be in 0 … 3, in plain digits"),
        ("index", b"flu\n", "the report in row 2 must be in 0 … 3, in plain digits"),
        ("index", b"1" * 200 + b"\n", "the report in row 2 must be in 0 … 3"),
        (
            "index",
            b"end 1\n",
            "its last line must be 'end 1', the number of reports before it; got more lines after it",
        ),
        ("index", b"end 3\n", "its last line must be 'end 1', the number of reports before it; got b'end 3"),
        ("bitmap", b"01\n", "the report in row 2 must have exactly 2 bits set"),
        ("bitmap", b"0A\n", "the report in row 2 must be 1 byte in lower-case hexadecimal digits"),
        ("bitmap", b"0 3\n", "the report in row 2 must be 1 byte in lower-case hexadecimal digits"),
        ("bitmap", b"3\n", "the report in row 2 must be 1 byte in lower-case hexadecimal digits"),
        ("bitmap", b"0303\n", "the report in row 2 must be 1 byte in lower-case hexadecimal digits"),
        ("bitmap", b"\n", "the report in row 2 must be 1 byte in lower-case hexadecimal digits"),
        ("bitmap", "٠٣\n".encode(), "the report in row 2 must be 1 byte in lower-case hexadecimal digits"),
        ("long bitmap", b"03\n", "the report in row 2 must be 3 bytes in lower-case hexadecimal digits"),
        ("long bitmap", b"000020\n", "the report in row 2 must leave its last 3 bits zero"),
    ],
)
def test_lines_that_would_not_have_been_written_are_refused(
    name: str, line: bytes, message: str, feed: Callable[[bytes], None]
) -> None:
    mechanism = MECHANISMS[name]
    good = {"index": b"1\n", "bitmap": b"03\n", "long bitmap": b"030000\n"}[name]
    head = f"sfumato-reports 1 {mechanism.hash}\n".encode()
    feed(head + good + good + b"end 2\n")
    assert sum(map(len, read_reports(mechanism, "-"))) == 2
    feed(head + good + line + b"end 2\n")
    with pytest.raises(InvalidInput) as caught:
        list(read_reports(mechanism, "-"))
    assert str(caught.value).startswith(f"standard input: {message}")


def test_lines_of_another_version_are_refused_by_name(feed: Callable[[bytes], None]) -> None:
    mechanism = MECHANISMS["index"]
    feed(f"sfumato-reports 2 {mechanism.hash}\nend 0\n".encode())
    with pytest.raises(UnknownSpec, match=r"^standard input: the format version in its first line must be 1; got '2'"):
        list(read_reports(mechanism, "-"))


@pytest.mark.parametrize("suffix", [*PIPED, ".json"])
def test_aggregate_counts_whatever_the_pipe_brings(
    suffix: str, documents: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    mechanism = sf.mechanism_from_spec((documents / "mechanism.json").read_bytes())
    reports = drawn(mechanism)
    counts = (documents / "counts.json").read_bytes()
    data = counts if suffix == ".json" else piped(capsysbinary, mechanism, reports, suffix)
    run = Run(capsysbinary, data, "aggregate", "mechanism.json", "-", "-o", "-")
    assert run.worked() == counts
    assert run.err == "100 reports counted; counts written to standard output\n"
    twice = Run(capsysbinary, data, "aggregate", "mechanism.json", "counts.json", "-", "-o", "-", "--json")
    assert json.loads(twice.worked())["n"] == 200
    assert json.loads(twice.err)["reports"] == 200


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    "data", [b"none\nflu\n", b"PAR1", b"PAR1\x15", b"ARROW1\0\0", b"\xff\xff\xff\xff", b"SFUM", b"["]
)
def test_what_holds_no_reports_is_refused(data: bytes, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    run = Run(capsysbinary, data, "aggregate", "mechanism.json", "-", "-o", "-")
    assert run.failed().startswith("sfumato: standard input: ")


@pytest.mark.parametrize("form", [None, "sfb", "parquet", "arrow", "lines"])
def test_privatize_writes_reports_to_a_pipe(
    form: str | None, documents: Path, capsysbinary: pytest.CaptureFixture[bytes], feed: Callable[[bytes], None]
) -> None:
    options = () if form is None else ("--format", form)
    run = Run(capsysbinary, b"none\nflu\n" * 50, "privatize", "mechanism.json", "-", "-o", "-", *options)
    beginnings = {"sfb": b"SFUM", "parquet": b"PAR1", "arrow": b"ARROW1", "lines": b"sfumato-reports 1 "}
    assert run.worked().startswith(beginnings[form or "sfb"])
    assert run.err == "100 reports of 2 bits each written to standard output\n"
    feed(run.out)
    mechanism = sf.mechanism_from_spec((documents / "mechanism.json").read_bytes())
    assert sum(map(len, read_reports(mechanism, "-"))) == 100


@pytest.mark.slow
@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize("form", ["sfb", "parquet", "arrow", "lines"])
def test_a_wrong_value_far_in_leaves_the_pipe_empty(form: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    data = b"none\n" * 70_000 + b"cold\n"
    failed = Run(capsysbinary, data, "privatize", "mechanism.json", "-", "-o", "-", "--format", form).failed()
    assert "line 70001" in failed


def test_what_waits_for_a_pipe_may_be_longer_than_memory(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = MECHANISMS["index"]
    reports = drawn(mechanism, 5000)
    whole = {suffix: piped(capsysbinary, mechanism, reports, suffix) for suffix in PIPED}
    monkeypatch.setattr(atomic, "_MOST_IN_MEMORY", 100)
    assert {suffix: piped(capsysbinary, mechanism, reports, suffix) for suffix in PIPED} == whole


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    "line",
    [
        "privatize mechanism.json values.txt -o never.sfb --format sfb",
        "estimate mechanism.json counts.json -o never.csv --format csv",
        "estimate mechanism.json counts.json --format csv",
    ],
)
def test_a_format_is_for_a_pipe_only(line: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert "--format requires -o - (a pipe)" in Run(capsysbinary, b"", *line.split()).failed()
    assert not list(Path().glob("never*"))


# -- values and estimates ----------------------------------------------------------------------------------


def in_every_format(table: pa.Table) -> dict[str, bytes]:
    parquet, arrow = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    with ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table)
    return {"parquet": parquet.getvalue(), "arrow": arrow.getvalue(), "stream": as_stream(arrow.getvalue())}


@pytest.mark.parametrize("form", ["parquet", "arrow", "stream"])
def test_columns_of_values_come_by_pipe(form: str, feed: Callable[[bytes], None]) -> None:
    table = pa.table({"person": [1, 2, 3], "answer": ["none", "flu", "none"]})
    for given, column in ((table, "answer"), (table.select(["answer"]), None)):
        feed(in_every_format(given)[form])
        assert [value for piece in read_values("-", column) for value in piece.to_pylist()] == ["none", "flu", "none"]
    feed(in_every_format(table)[form])
    with pytest.raises(InvalidInput, match=r"^standard input: the column must be one of 'person', 'answer'; got 'age'"):
        list(read_values("-", "age"))
    whole = in_every_format(table)[form]
    for cut in range(10, len(whole)):
        feed(whole[:cut])
        with pytest.raises(InvalidInput, match=r"^standard input: "):
            list(read_values("-", "answer"))


@pytest.mark.parametrize("word", ["PAR1", "PAR15", "ARROW1", "SFUM", "{", "sfumato-reports 1", "x"])
def test_texts_may_begin_like_another_format(word: str, feed: Callable[[bytes], None]) -> None:
    feed(f"{word}\nsecond\n".encode())
    assert list(read_values("-")) == [[word, "second"]]
    feed(f"{word},other\n1,2\n".encode())
    assert list(read_values("-", word)) == [["1"]]


def test_texts_are_read_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte of values, of which the first piece takes what it needs and no more."""

    class Long(io.RawIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            size = min(len(buffer), 2**30 - self.given) // 4 * 4
            buffer[:size] = b"abc\n" * (size // 4)
            self.given += size
            return size

    source = Long()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(source)))
    pieces = read_values("-")
    for number in range(1, 4):
        assert set(next(pieces)) == {"abc"}
        assert source.given < number * 2**18 + 2**20


@pytest.mark.parametrize("form", [None, "csv", "parquet", "arrow"])
def test_estimates_go_to_a_pipe_and_the_table_aside(
    form: str | None, documents: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    counts = (documents / "counts.json").read_bytes()
    name = f"estimate.{form or 'csv'}"
    shown = Run(capsysbinary, counts, "estimate", "mechanism.json", "-", "-o", name).worked().decode()
    assert "100 reports, method unbiased" in shown
    options = () if form is None else ("--format", form)
    run = Run(capsysbinary, counts, "estimate", "mechanism.json", "-", "-o", "-", *options)
    assert run.worked() == (documents / name).read_bytes()
    assert run.err == shown
    in_json = Run(capsysbinary, counts, "estimate", "mechanism.json", "-", "-o", "-", "--json", *options)
    assert in_json.worked() == run.out
    assert json.loads(in_json.err)["n"] == 100


def test_a_plot_that_fails_leaves_the_pipe_empty(documents: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    counts = (documents / "counts.json").read_bytes()
    run = Run(capsysbinary, counts, "estimate", "mechanism.json", "-", "-o", "-", "--plot", "estimate.jpg")
    assert ".svg or .png" in run.failed()
