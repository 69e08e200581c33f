"""The layers: imports are as CONTRIBUTING.md says, per module and transitively; front doors; light imports."""

from __future__ import annotations

import ast
import copy
import functools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import ROOT

PACKAGE = ROOT / "src" / "sfumato"


def layers() -> dict[str, int]:
    """Package -> row, from the table in CONTRIBUTING.md."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## What may import what")[2]
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|", section, flags=re.MULTILINE)
    return {package: int(row) for row, packages in rows for package in re.findall(r"`(\w+)`", packages)}


def package_of(module: str) -> str:
    """The package of a dotted name: sfumato.policy.base -> policy; the root itself is the empty string."""
    return module.split(".")[1] if "." in module else ""


def server_parts() -> dict[str, int]:
    """Part of the server -> row, from the table in the docstring of the package."""
    text = ast.get_docstring(ast.parse((PACKAGE / "server" / "__init__.py").read_text(encoding="utf-8"))) or ""
    lines = text.splitlines()
    _, begin, end = (place for place, line in enumerate(lines) if line.startswith("==="))
    return {line.split()[0]: row for row, line in enumerate(lines[begin + 1 : end])}


def server_part(module: str) -> str:
    """The part of the server that a dotted name belongs to: sfumato.server.http.middleware -> http; else empty."""
    return module.split(".")[2] if module.startswith("sfumato.server.") else ""


@dataclass(frozen=True)
class Import:
    """A statement of ``module`` that imports ``name`` of ``source``; ``name`` is empty for ``import source``."""

    module: str
    source: str
    name: str


class Tree:
    """Every module of a source tree, and what its statements import, functions included."""

    def __init__(self, folder: Path) -> None:
        self.modules = {self._name(path, folder): path for path in sorted(folder.rglob("*.py"))}
        self.parsed = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in self.modules.items()}
        self.imports = {module: list(self._imports(module, parsed)) for module, parsed in self.parsed.items()}
        self.edges = {module: self._edges(statements) for module, statements in self.imports.items()}

    def with_line(self, module: str, line: str) -> Tree:
        """The same tree with a line more in one module."""
        other = copy.copy(self)
        statements = [*self.imports[module], *self._imports(module, ast.parse(line))]
        other.imports = self.imports | {module: statements}
        other.edges = self.edges | {module: self._edges(statements)}
        return other

    def _edges(self, statements: list[Import]) -> list[str]:
        """The modules that statements load, each once."""
        return list(dict.fromkeys(target for statement in statements for target in self.targets(statement)))

    @staticmethod
    def _name(path: Path, folder: Path) -> str:
        parts = path.relative_to(folder.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imports(self, module: str, parsed: ast.Module) -> Iterator[Import]:
        for node in ast.walk(parsed):
            if isinstance(node, ast.Import):
                yield from (Import(module, alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module} has a relative import"
                yield from (Import(module, node.module or "", alias.name) for alias in node.names)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("sfumato."):
                # A name that importlib, runpy or a new process may load.
                yield Import(module, node.value.partition(":")[0], "")

    def targets(self, statement: Import) -> list[str]:
        """The modules that a statement loads: the module named and the packages around it, except the root."""
        named = f"{statement.source}.{statement.name}"
        deepest = named if named in self.modules else statement.source
        if deepest not in self.modules:
            return []
        if deepest == "sfumato":
            return ["sfumato"]
        parts = deepest.split(".")
        around = (".".join(parts[:end]) for end in range(2, len(parts) + 1))
        return [name for name in around if name in self.modules]

    def reached(self, module: str) -> dict[str, str]:
        """Every module that is loaded with one, each with the module that loads it."""
        seen = {module: ""}
        waiting = [module]
        while waiting:
            current = waiting.pop()
            for target in self.edges[current]:
                if target not in seen:
                    seen[target] = current
                    waiting.append(target)
        return seen

    def faults(self) -> list[str]:
        """Every import that the layers forbid."""
        rows = layers()
        faults = []
        for module in self.modules:
            package = package_of(module)
            if module == "sfumato":
                continue
            for target in self.edges[module]:
                other = package_of(target)
                if other != package and rows.get(other, 99) >= rows[package]:
                    faults.append(f"{module} imports {target}")
            if package == "server":
                seen = self.reached(module)
                faults += [
                    f"{module} reaches {target} through {seen[target]}"
                    for target in seen
                    if package_of(target) in ("device", "")
                ]
        return faults

    def server_faults(self) -> list[str]:
        """Every import inside the server from a part that its docstring lists below the importing one."""
        rows = server_parts()
        faults = []
        for module, statements in self.imports.items():
            part = server_part(module)
            faults += [
                f"{module} imports {target}"
                for statement in statements
                for target in self.targets(statement)
                if part and server_part(target) and rows[server_part(target)] > rows[part]
            ]
        return faults

    def exports(self, module: str) -> set[str]:
        """The names that a module imports, and those that starred imports bring."""
        names = set()
        for statement in self.imports.get(module, ()):
            names |= self.starred(statement.source) if statement.name == "*" else {statement.name}
        return names

    def starred(self, module: str) -> set[str]:
        """What a starred import of a module brings: its ``__all__``, or all that it imports."""
        for node in self.parsed[module].body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return set(ast.literal_eval(node.value))
        return self.exports(module)

    def back_doors(self) -> list[str]:
        """Every import from inside another package."""
        faults = []
        for module, statements in self.imports.items():
            for statement in statements:
                inside = any(target.count(".") > 1 for target in self.targets(statement))
                door = f"sfumato.{package_of(statement.source)}"
                exported = statement.source == door and statement.name in self.exports(door)
                if inside and not exported and package_of(statement.source) != package_of(module):
                    faults.append(f"{module} imports {statement.source}.{statement.name}")
        return faults


@functools.cache
def package_tree() -> Tree:
    """The tree of the package, read once and not while tests are collected."""
    return Tree(PACKAGE)


def test_every_package_has_a_row_and_every_row_a_package() -> None:
    names = {package_of(module) for module in package_tree().modules} - {""}
    assert names == set(layers())
    others = (path for path in PACKAGE.iterdir() if path.name != "__init__.py")
    entries = [path for path in others if path.suffix == ".py" or any(path.glob("*.py"))]
    assert len(entries) <= 18


def test_modules_import_only_from_rows_above_their_own() -> None:
    assert package_tree().faults() == []


def test_every_part_of_the_server_has_a_row() -> None:
    assert set(server_parts()) == set(map(server_part, package_tree().modules)) - {""}


def test_parts_of_the_server_import_only_from_rows_above_their_own() -> None:
    assert package_tree().server_faults() == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("store.base", "from sfumato.server.http.responses import ApiError"),
        ("http.middleware", "from sfumato.server.api.collector import Collector"),
        ("jobs.writer", "def late():\n    import sfumato.server.api.schemas"),
        ("http.connections", "APP = 'sfumato.server.app:from_environment'"),
    ],
)
def test_a_deliberate_violation_inside_the_server_is_found(module: str, line: str) -> None:
    assert len(package_tree().with_line(f"sfumato.server.{module}", line).server_faults()) > 0


def test_packages_are_entered_by_their_front_doors() -> None:
    assert package_tree().back_doors() == []


@pytest.mark.parametrize(
    ("module", "line", "fault"),
    [
        ("server", "from sfumato.device import privatize", "sfumato.server reaches sfumato.device"),
        ("server", "from sfumato import privatize", "sfumato.server imports sfumato"),
        ("server", "import sfumato.device.values", "sfumato.server reaches sfumato.device.values"),
        ("server", "MODULE = 'sfumato.device.values'", "sfumato.server reaches sfumato.device.values"),
        ("collecting", "from sfumato.device import privatize", "sfumato.collecting imports sfumato.device"),
        (
            "collecting",
            "from sfumato.device import read_values as read_values",
            "reaches sfumato.device through sfumato.collecting",
        ),
        ("policy.base", "def late():\n    from sfumato.mechanisms import Mechanism", "sfumato.policy.base imports"),
        ("auditing.regions", "from sfumato.collecting import Aggregate", "imports sfumato.collecting"),
    ],
)
def test_a_deliberate_violation_is_found(module: str, line: str, fault: str) -> None:
    assert any(fault in found for found in package_tree().with_line(f"sfumato.{module}", line).faults())


def test_a_back_door_is_found() -> None:
    tree = package_tree().with_line("sfumato.plotting", "from sfumato.policy.base import Policy")
    assert tree.back_doors() == ["sfumato.plotting imports sfumato.policy.base.Policy"]


def test_a_running_collector_does_not_load_the_device() -> None:
    modules = [module for module in package_tree().modules if package_of(module) == "server"]
    code = (
        f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\n"
        "print([name for name in sys.modules if name.startswith('sfumato.device')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("package", "homes"),
    [
        ("cryptography", ("sfumato.randomness",)),
        ("numba", ("sfumato.mechanisms",)),
        ("flint", ("sfumato._core",)),
        ("highspy", ("sfumato.compiler.solvers",)),
        ("clarabel", ("sfumato.compiler.solvers",)),
        ("random", ("sfumato.testing",)),
    ],
)
def test_an_outside_package_stays_in_its_home(package: str, homes: tuple[str, ...]) -> None:
    for module, statements in package_tree().imports.items():
        if any(statement.source.split(".")[0] == package for statement in statements):
            assert module.startswith(homes), f"{module} imports {package}"


def test_no_module_uses_numpys_random_numbers() -> None:
    for module, path in package_tree().modules.items():
        if module not in ("sfumato.testing", "sfumato.randomness"):
            text = path.read_text(encoding="utf-8").replace("from numpy.random import Generator", "")  # a type
            assert not re.search(r"np\.random|numpy\.random|secrets\.\w|os\.urandom", text), module


def test_importing_sfumato_imports_nothing_heavy() -> None:
    heavy = ("flint", "cryptography", "numba", "scipy", "pyarrow", "pandas", "polars")
    code = f"import sys, sfumato; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_tree_of_errors_has_every_error() -> None:
    from sfumato import errors

    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for parsed in package_tree().parsed.values()
        for node in ast.walk(parsed)
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
    public -= {"TYPE_CHECKING", "Any", "load_plots_with"}
    assert public == {name for name in sfumato.__all__ if not _is_submodule(getattr(sfumato, name))}
    assert set(dir(sfumato)) >= set(sfumato.__all__)
    with pytest.raises(AttributeError, match="no attribute 'privatise'"):
        _ = sfumato.privatise  # type: ignore[attr-defined]


def test_no_package_has_the_name_of_a_function_of_the_root() -> None:
    import sfumato

    packages = {package_of(module) for module in package_tree().modules} - {""}
    assert packages & {name for name in sfumato.__all__ if not _is_submodule(getattr(sfumato, name))} == set()


def _is_submodule(value: object) -> bool:
    return type(value).__name__ == "module"


def test_no_helper_and_no_alias_is_defined_twice() -> None:
    functions: dict[str, list[str]] = defaultdict(list)
    aliases: dict[str, list[str]] = defaultdict(list)
    for module, parsed in package_tree().parsed.items():
        for node in parsed.body:
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                code = ast.unparse(node.args) + "".join(map(ast.unparse, body))
                if len(code) > 60:  # shorter ones are alike by chance
                    functions[code].append(f"{module}.{node.name}")
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, ast.Subscript):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                aliases[f"{ast.unparse(target)} = {ast.unparse(node.value)}"].append(module)
    assert [names for names in (*functions.values(), *aliases.values()) if len(names) > 1] == []
