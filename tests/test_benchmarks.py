"""Every benchmark can be imported, so that a name that moves does not break ``make bench`` unnoticed."""

from __future__ import annotations

import importlib

import pytest

from support import ROOT

NAMES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("__"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module(f"benchmarks.{name}")
    assert callable(module.main)
