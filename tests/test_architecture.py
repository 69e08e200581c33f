"""The layers: what imports what is what CONTRIBUTING.md says, and importing the package stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sfumato"


def import_table() -> dict[str, set[str]]:
    """Part -> parts it may import, from the table in CONTRIBUTING.md."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## What may import what")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section, flags=re.MULTILINE)
    named = {part: set(re.findall(r"`(\w+)`", allowed)) for part, allowed in rows}
    everything = set(named)
    for part, allowed in rows:
        if allowed.startswith("everything except"):
            named[part] = everything - named[part]
        elif allowed.startswith("everything"):
            named[part] = everything
    return named


def part_of(module: str) -> str:
    """The part of a dotted module name: sfumato._audit and sfumato.policy.base are `audit` and `policy`."""
    return module.split(".")[1].lstrip("_") if "." in module else ""


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "sfumato":
                found |= {f"sfumato.{alias.name}" for alias in node.names}
            found.add(node.module)
    return found


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_row_allows(path: Path) -> None:
    part = path.relative_to(PACKAGE).parts[0].removesuffix(".py").lstrip("_")
    table = import_table()
    assert part in table, f"{part} has no row in the table of CONTRIBUTING.md"
    for module in imports(path):
        if module.startswith("sfumato."):
            assert part_of(module) in table[part] | {part}, f"{part} imports {module}"


@pytest.mark.parametrize(
    ("package", "parts"),
    [("cryptography", {"entropy"}), ("numba", {"kernels"}), ("flint", {"exact"}), ("random", {"testing"})],
)
def test_an_outside_package_stays_in_its_part(package: str, parts: set[str]) -> None:
    for path in MODULES:
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py").lstrip("_")
        if any(module.split(".")[0] == package for module in imports(path)):
            assert part in parts, f"{path} imports {package}"


def test_no_module_uses_numpys_random_numbers() -> None:
    for path in MODULES:
        if "testing" not in path.name:
            assert not re.search(
                r"np\.random|numpy\.random|secrets\.|os\.urandom", path.read_text(encoding="utf-8")
            ) or (path.name == "entropy.py"), path


def test_importing_sfumato_imports_nothing_heavy() -> None:
    heavy = ("flint", "cryptography", "numba", "scipy", "pyarrow", "pandas", "polars")
    code = f"import sys, sfumato; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_tree_of_errors_has_every_error() -> None:
    from sfumato import errors

    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }

    def is_error(name: str) -> bool:
        return name == "SfumatoError" or any(map(is_error, bases.get(name, ())))

    tree = re.findall(r"^[│├└─ ]*(\w+)(?: \(|  |$)", (errors.__doc__ or "").partition("\n\n")[2], flags=re.MULTILINE)
    assert sorted(tree) == sorted(name for name in bases if is_error(name) and not name.startswith("_"))


def test_the_root_exports_exactly_what_it_says() -> None:
    import sfumato

    assert sorted(sfumato.__all__) == list(sfumato.__all__)
    for name in sfumato.__all__:
        assert getattr(sfumato, name).__doc__, f"{name} has no docstring"
    public = {name for name, value in vars(sfumato).items() if not name.startswith("_") and not _is_submodule(value)}
    assert public == {name for name in sfumato.__all__ if not _is_submodule(getattr(sfumato, name))}


def _is_submodule(value: object) -> bool:
    return type(value).__name__ == "module"
