"""The sizes of the packages stay within budget.toml, and scripts/size counts what it says."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from support import ROOT

SOURCE = '''"""A module
with a docstring."""

import os  # an import


class Leaf(Mechanism):
    """One line."""

    def __init__(self, other):
        assert isinstance(other, Leaf)

    def run(self, other):  # a comment
        return isinstance(other, (Leaf, int)) and os.sep
'''


def script() -> ModuleType:
    """Load scripts/size, which has no suffix."""
    loader = importlib.machinery.SourceFileLoader("size_script", str(ROOT / "scripts" / "size"))
    spec = importlib.util.spec_from_loader("size_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["size_script"] = module
    loader.exec_module(module)
    return module


@pytest.mark.slow
def test_no_package_exceeds_its_budget() -> None:
    budget = tomllib.loads((ROOT / "budget.toml").read_text(encoding="utf-8"))
    sizes = script().measure(ROOT / "src")
    assert sorted(budget) == sorted(sizes)
    exceeded = [
        f"{package}: {getattr(sizes[package], column)} {column}, budget {most}"
        for package, numbers in budget.items()
        for column, most in numbers.items()
        if getattr(sizes[package], column) > most
    ]
    assert not exceeded, "raise a number of budget.toml only with a reason in the commit: " + "; ".join(exceeded)


def test_lines_are_counted_by_their_tokens(tmp_path: Path) -> None:
    package = tmp_path / "sfumato" / "leaves"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('__all__ = ["Leaf", "other"]\n', encoding="utf-8")
    (package / "leaf.py").write_text(SOURCE, encoding="utf-8")
    size = script().measure(tmp_path)["leaves"]
    assert (size.lines, size.code, size.words, size.names) == (15, 6, 7, 2)
    assert size.statements == 9
    assert size.checks == 1  # not the one of the constructor
