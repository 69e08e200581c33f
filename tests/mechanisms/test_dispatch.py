"""No code outside ``mechanisms/`` depends on which mechanism it has, and the list of mechanisms exists once.

A reader is the exception: a function with a default for every mechanism, to which a package registers what only it
needs (``functools.singledispatch``).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.kernels.base import Kernel
from sfumato.mechanisms.registry import all_families, mechanism_classes
from sfumato.mechanisms.reports.base import ReportFormat
from support import ROOT

PACKAGE = ROOT / "src" / "sfumato"
#: The front door brings every name, and does not list them.
LISTS = {PACKAGE / "mechanisms" / "families.py", PACKAGE / "mechanisms" / "__init__.py"}
OUTSIDE = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "mechanisms"]


def derived(base: type) -> Iterator[type]:
    kind: type
    for kind in base.__subclasses__():
        # A class of a doctest has the name of the module, but is not in it. Modules of other packages may be gone.
        if kind.__module__.startswith("sfumato.") and vars(sys.modules[kind.__module__]).get(kind.__name__) is kind:
            yield kind
            yield from derived(kind)


#: The classes of mechanisms, estimators, formats and kernels; their bases may be asked for.
CLASSES = {kind.__name__ for base in (Mechanism, Estimator, ReportFormat, Kernel) for kind in derived(base)}
#: The names in specs that are no everyday words.
NAMES = set(mechanism_classes()) - {"table", "parts", "product"}
ENCODINGS = {"index", "bitmap", "parted"}


def last_name(node: ast.AST) -> str:
    """The last part of a dotted name, or nothing."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def names_a_class(node: ast.AST) -> bool:
    """Whether an expression is a class of a mechanism, or a tuple or union with one."""
    return any(last_name(part) in CLASSES for part in ast.walk(node))


def is_about_a_mechanism(node: ast.AST) -> bool:
    """Whether an expression is the name, the encoding or the class of something that is called a mechanism."""
    if isinstance(node, ast.Attribute) and node.attr in ("name", "__name__", "__qualname__"):
        owner = node.value
        return "mechanism" in last_name(owner).lower() or is_a_type(owner)
    return (isinstance(node, ast.Attribute) and node.attr == "encoding") or is_a_type(node)


def is_a_type(node: ast.AST) -> bool:
    """Whether an expression is ``type(mechanism)`` or ``mechanism.__class__``."""
    if isinstance(node, ast.Attribute) and node.attr == "__class__":
        return "mechanism" in last_name(node.value).lower()
    called = isinstance(node, ast.Call) and last_name(node.func) == "type" and len(node.args) == 1
    return called and "mechanism" in last_name(node.args[0]).lower()  # type: ignore[attr-defined]


def states_a_name(node: ast.AST) -> bool:
    """Whether an expression has the name of a mechanism written out."""
    return any(isinstance(part, ast.Constant) and part.value in NAMES for part in ast.walk(node))


def faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that depend on which mechanism they have, and how."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Call):
            function = last_name(node.func)
            if function in ("isinstance", "issubclass") and len(node.args) == 2 and names_a_class(node.args[1]):
                yield line, f"{function} of a class"
            if function in ("hasattr", "getattr") and node.args and "mechanism" in last_name(node.args[0]).lower():
                yield line, "an attribute that only some mechanisms have"
            if function in ("get", "pop", "setdefault") and node.args and is_about_a_mechanism(node.args[0]):
                yield line, "a lookup by name or class"
            if function in ("startswith", "endswith") and is_about_a_mechanism(getattr(node.func, "value", node)):
                yield line, "a comparison of a name"
            if function == "dispatch" and any(map(names_a_class, node.args)):
                yield line, "dispatch on a class"
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(is_about_a_mechanism, sides)):
                yield line, "a comparison of a name, an encoding or a class"
            if any(map(states_a_name, sides)):
                yield line, "a comparison with a name"
            if any(isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) for op in node.ops) and any(
                last_name(side) in CLASSES for side in sides
            ):
                yield line, "a comparison with a class"
        elif isinstance(node, ast.Match):
            if is_about_a_mechanism(node.subject):
                yield line, "a match on a name, an encoding or a class"
            for case in node.cases:
                for pattern in ast.walk(case.pattern):
                    if isinstance(pattern, ast.MatchClass) and names_a_class(pattern.cls):
                        yield line, "a match on a class"
                    if isinstance(pattern, ast.MatchValue) and states_a_name(pattern.value):
                        yield line, "a match on a name"
        elif isinstance(node, ast.Subscript):
            if is_about_a_mechanism(node.slice):
                yield line, "a lookup by name or class"
        elif isinstance(node, ast.Dict):
            keys = [key for key in node.keys if key is not None]
            if any(last_name(key) in CLASSES for key in keys) or any(
                isinstance(key, ast.Constant) and key.value in NAMES for key in keys
            ):
                yield line, "a table by name or class"
        elif isinstance(node, (ast.Tuple, ast.List)):
            # A table of pairs: class first.
            rows = [row.elts for row in node.elts if isinstance(row, ast.Tuple) and row.elts]
            if len(rows) > 1 and any(last_name(row[0]) in CLASSES for row in rows):
                yield line, "a table by class"
        elif isinstance(node, ast.Attribute) and node.attr == "encoding":
            owner = last_name(node.value)
            if "mechanism" in owner.lower() or owner == "report_format":
                yield line, "the encoding of a mechanism"


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_outside_mechanisms_depends_on_which_one_it_has(path: Path) -> None:
    assert list(faults(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(mechanism, SubsetSelection)",
        "isinstance(mechanism, (Known, TableMechanism))",
        "isinstance(mechanism, SubsetSelection | UnaryEncoding)",
        "isinstance(mechanism, sf.mechanisms.Parts)",
        "isinstance(estimator, HistogramEstimator)",
        "isinstance(mechanism.report_format, IndexFormat)",
        "issubclass(kind, TwoLevelMechanism)",
        "type(mechanism) is RandomizedResponse",
        "type(mechanism) == other",
        "kind is HadamardResponse",
        "mechanism.__class__ is kind",
        "type(mechanism).__name__ == 'SubsetSelection'",
        "mechanism.name == 'subset-selection'",
        "row.mechanism.name in ('hadamard-response', 'unary-encoding')",
        "spec['mechanism'] == 'subset-selection'",
        "mechanism.name.startswith('high-low')",
        "mechanism.encoding == 'index'",
        "mechanism.report_format.encoding != wanted",
        "LAWS = {SubsetSelection: 1}",
        "LAWS = {'subset-selection': 1}",
        "LAWS = ((SubsetSelection, 1), (UnaryEncoding, 2))",
        "LAWS[type(mechanism)]",
        "LAWS.get(type(mechanism))",
        "LAWS[mechanism.name]",
        "LAWS.get(self.mechanism.name)",
        "hasattr(mechanism, 'size')",
        "getattr(mechanism, 'epsilon', None)",
        "match mechanism:\n    case SubsetSelection():\n        pass",
        "match mechanism.name:\n    case other:\n        pass",
        "match name:\n    case 'subset-selection':\n        pass",
        "law.dispatch(SubsetSelection)",
    ],
)
def test_a_deliberate_violation_is_found(line: str) -> None:
    assert list(faults(ast.parse(line))) != []


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(mechanism, Mechanism)",
        "mechanism.report_format.is_histogram",
        "SubsetSelection(domain, 1).risk(1)",
        "MAKERS = {'SS': SubsetSelection}",
        "goal.name == 'estimation'",
        "open(path, encoding='utf-8')",
        "mechanism_from_spec(spec) == mechanism",
        "law.register(SubsetSelection, draw)",
        "@law.register\ndef _(mechanism: SubsetSelection): ...",
    ],
)
def test_what_asks_the_mechanism_is_no_violation(line: str) -> None:
    assert list(faults(ast.parse(line))) == []


# -- the list exists once ----------------------------------------------------------------------------------

#: As many classes or names of mechanisms make a list.
MOST = 5


def mentioned(tree: ast.AST) -> set[str]:
    """The classes and names of mechanisms that a module has in its code; docstrings do not count."""
    kinds = {kind.__name__: name for name, kind in mechanism_classes().items()}
    found = set()
    for node in ast.walk(tree):
        names = [node.name] if isinstance(node, ast.alias) else [last_name(node)]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]
        found |= {kinds.get(name, name) for name in names if name in kinds or name in NAMES}
    return found


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if path not in LISTS],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_no_other_module_lists_the_mechanisms(path: Path) -> None:
    package = "sfumato." + ".".join(path.relative_to(PACKAGE).parent.parts) + "."
    own = {name for name, kind in mechanism_classes().items() if kind.__module__.startswith(package)}
    assert len(mentioned(ast.parse(path.read_text(encoding="utf-8"))) - own) < MOST


def test_the_list_has_one_line_per_family() -> None:
    tree = ast.parse((PACKAGE / "mechanisms" / "families.py").read_text(encoding="utf-8"))
    starred = [
        node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]
    modules = [family.mechanisms[0].__module__ for family in all_families()]
    assert len(starred) == len(modules)
    assert all(f"{module}.".startswith(f"{entry}.") for entry, module in zip(starred, modules, strict=True))
    assert mentioned(tree) == set()
    assert mentioned(ast.parse((PACKAGE / "mechanisms" / "__init__.py").read_text(encoding="utf-8"))) == set()


def test_every_class_with_a_name_is_registered() -> None:
    named = {kind for kind in derived(Mechanism) if "name" in kind.__dict__}
    assert named == set(mechanism_classes().values())


def test_a_second_list_is_found() -> None:
    line = "from sfumato.mechanisms import SubsetSelection, UnaryEncoding, Parts, RandomizedResponse\n"
    assert len(mentioned(ast.parse(line))) < MOST
    assert len(mentioned(ast.parse(f"{line}NAMES = ['nested-cyclic']"))) == MOST
