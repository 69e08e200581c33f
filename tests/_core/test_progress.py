"""Progress: one object for every callback."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect

import pytest

import sfumato as sf
from sfumato.collecting import aggregate_files


def test_progress_prints_what_is_done() -> None:
    assert str(sf.Progress(0, 0, "values")) == "0 of 0 values (100%)"
    assert str(sf.Progress(250, 1000, "people")) == "250 of 1,000 people (25%)"
    assert str(sf.Progress(3, None, "rounds", 2.5)) == "3 rounds, value 2.5"
    assert str(sf.Progress(3, None, "rounds", 2.5, 2.25)) == "3 rounds, value 2.5, bound 2.25"
    assert sf.Progress(3, None, "rounds").fraction is None


def test_progress_is_data() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        sf.Progress(1, 2, "reports").done = 2  # type: ignore[misc]


def test_every_progress_parameter_takes_a_function_of_a_progress() -> None:
    verbs = (sf.audit_sampler, sf.design, sf.optimal, sf.plan, sf.privatize, sf.simulate, aggregate_files)
    for verb in verbs:
        assert inspect.signature(verb).parameters["progress"].annotation == "ProgressCallback | None"


def test_the_version_is_that_of_the_package() -> None:
    assert sf.__version__ == importlib.metadata.version("sfumato")
