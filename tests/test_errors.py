"""The classes of errors: what a missing file and a question without an answer raise."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.collecting import Source, read_reports, write_reports
from sfumato.device import read_values
from sfumato.errors import (
    InvalidInput,
    LimitExceeded,
    MissingFile,
    NoAnswer,
    NoMechanism,
    SfumatoError,
    SolverFailed,
    Undecided,
    UnreadableFile,
)

MECHANISM = sf.mechanisms.RandomizedResponse(sf.Domain(["a", "b", "c"]), 1)

OPENERS: dict[str, Callable[[Path], object]] = {
    "policy": lambda path: sf.load_policy(path / "policy.toml"),
    "ledger": lambda path: sf.Ledger.load(path / "ledger.json"),
    "batch": lambda path: list(read_reports(MECHANISM, path / "reports.sfb")),
    "parquet": lambda path: list(read_reports(MECHANISM, path / "reports.parquet")),
    "arrow": lambda path: list(read_reports(MECHANISM, path / "reports.arrow")),
    "values": lambda path: list(read_values(path / "values.csv", "x")),
    "value column": lambda path: list(read_values(path / "values.parquet", "x")),
    "labels": lambda path: sf.Domain.from_dict({"file": "labels.txt"}, base=path),
    "output": lambda path: write_reports(MECHANISM, [0], path / "folder" / "reports.sfb"),
}


@pytest.mark.parametrize("name", OPENERS)
def test_a_missing_file_is_an_error_of_the_system_too(name: str, tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="must be") as caught:
        OPENERS[name](tmp_path)
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, InvalidInput)
    assert caught.value.errno == errno.ENOENT
    assert str(tmp_path) in str(caught.value.filename)


def test_a_directory_is_an_unreadable_file(tmp_path: Path) -> None:
    for name in ("policy.toml", "ledger.json", "reports.sfb", "reports.parquet", "values.csv", "labels.txt"):
        (tmp_path / name).mkdir()
    for name in ("policy", "ledger", "batch", "parquet", "values", "labels"):
        with pytest.raises(UnreadableFile) as caught:
            OPENERS[name](tmp_path)
        assert isinstance(caught.value, OSError)
        assert not isinstance(caught.value, FileNotFoundError)


def test_the_file_named_is_the_one_at_fault(tmp_path: Path) -> None:
    """An error of writing is not blamed on the file that is read meanwhile."""
    write_reports(MECHANISM, [0, 1], tmp_path / "reports.sfb")
    with pytest.raises(MissingFile, match="other"), Source(str(tmp_path / "reports.sfb"), ".sfb").open():
        write_reports(MECHANISM, [0], tmp_path / "other" / "reports.sfb")


def test_a_question_without_an_answer_says_why() -> None:
    domain = sf.Domain(["a", "b", "c"])
    for kind in (Undecided, LimitExceeded, SolverFailed, NoMechanism):
        assert issubclass(kind, NoAnswer)
        assert issubclass(kind, SfumatoError)
        assert not issubclass(kind, ValueError)
    large = sf.Domain(range(100))
    certificate = sf.audit(sf.mechanisms.SubsetSelection(large, 1), sf.Uniform(large, 1))
    with pytest.raises(Undecided):
        certificate.raise_if_violated(coverage="all")
    with pytest.raises(LimitExceeded):
        sf.Uniform(sf.Domain(range(10**5)), 1).effective_epsilon_matrix()
    with pytest.raises(NoMechanism):
        sf.design(sf.Uniform(domain, 1), 100, max_bits=1)


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("Uniform", "epsilon", "be at least 0", -1, row=3),
        sf.errors.UnknownLabel("an estimate", "the label", "be a value", "x"),
        sf.errors.MissingExtra("arrow", "a column"),
        sf.errors.NoMechanism("no mechanism here has reports of at most 1 bit"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_process_borders(error: sf.SfumatoError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_a_file_error_keeps_its_number_across_a_process_border(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        sf.load_policy(tmp_path / "none.toml")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (type(copy), str(copy)) == (type(raised.value), str(raised.value))
    assert (copy.errno, copy.filename) == (raised.value.errno, raised.value.filename)
