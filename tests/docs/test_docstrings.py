"""Every public function, class, method and property has a complete numpydoc docstring."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from typing import Any

import numpydoc.docscrape
import numpydoc.validate
import pytest

from sfumato.errors import SfumatoError
from support.public_names import PublicName, public_members, public_names

#: What numpydoc checks here. Left out: types of parameters (annotations state them), extended summaries, "See Also".
CHECKS = {
    *("GL01", "GL03", "GL05", "GL06", "GL07", "GL08", "GL10"),  # the layout
    *("SS01", "SS02", "SS03", "SS04", "SS05", "SS06"),  # the summary: one line, an imperative verb or a noun
    *("PR01", "PR02", "PR03", "PR05", "PR07", "PR08", "PR09", "PR10"),  # every parameter, with a description
    *("RT01", "RT02", "RT03", "RT04", "RT05", "YD01"),  # what comes back
}
#: Packages whose examples need a running component; their how-to pages hold examples that run.
WITHOUT_EXAMPLES = ("sfumato.spark",)


@pytest.mark.parametrize("name", public_names(), ids=lambda name: name.test_id)
def test_public_docstrings_are_complete(name: PublicName) -> None:
    problems = [f"{each.path}: {problem}" for each in (name, *public_members(name)) for problem in _problems(each)]
    if _needs_an_example(name.value) and not _parsed(name.value)["Examples"]:
        problems.append(f"{name.path}: no Examples section")
    assert not problems, "\n".join(problems)


def test_an_incomplete_docstring_is_reported() -> None:
    def scale(values: list[float], factor: float) -> list[float]:
        """Scales values

        Parameters
        ----------
        values
            what to scale
        """
        if factor < 0:
            raise ValueError("negative")
        return [factor * value for value in values]

    problems = " ".join(_problems(PublicName("scale", scale)))
    for code in ("SS03", "SS05", "PR01", "PR08", "PR09", "RT01", "raises ValueError"):
        assert code in problems


def _problems(name: PublicName) -> list[str]:
    """Return what numpydoc and the rule on exceptions find wrong with one docstring."""
    function = _function(name.value)
    docstring = inspect.getdoc(function) or ""
    if not docstring:
        return ["GL08 no docstring"]
    if isinstance(name.value, (property, functools.cached_property)):
        checked = CHECKS - {
            "PR01",
            "RT01",
            "YD01",
        }  # a property has no parameters, and its summary says what it returns
    elif inspect.isclass(name.value) and not _takes_arguments(name.value):
        checked = CHECKS - {"PR01", "PR02", "PR03"}
    else:
        checked = CHECKS
    errors = numpydoc.validate.validate(_parsed(function))["errors"]
    problems = [f"{code} {message}" for code, message in errors if code in checked]
    return problems + [f"raises {error} without saying so" for error in _raised(function) if error not in docstring]


def _function(value: Any) -> Any:
    """Return the function behind a property, a class method or a static method."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    return value.__func__ if isinstance(value, (classmethod, staticmethod)) else value


def _raised(function: Any) -> set[str]:
    """Return the classes of errors that the body of a function raises by name."""
    if not inspect.isfunction(function):
        return set()
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    return {name for name in raised if name[0].isupper() and name != "NotImplementedError"}


def _takes_arguments(kind: type) -> bool:
    """Return whether users construct the class with arguments of its own."""
    return not (inspect.isabstract(kind) or getattr(kind, "_is_protocol", False) or issubclass(kind, Exception))


def _needs_an_example(value: Any) -> bool:
    if value.__module__.startswith(WITHOUT_EXAMPLES):
        return False
    return inspect.isfunction(value) or (_takes_arguments(value) and not issubclass(value, SfumatoError))


def _parsed(value: Any) -> Any:
    """Return the sections of a docstring, as numpydoc reads them."""
    return numpydoc.docscrape.get_doc_object(value)
