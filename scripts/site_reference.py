"""Support the API reference of the site: a hook of mkdocs and an extension of Griffe.

The hook replaces ``<!-- summary -->`` by a table of the names that a page documents, and
``<!-- summary of page.md -->`` by the table of another page. The extension turns the Sphinx roles of docstrings into
links of the site.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

import griffe

DOCS = Path(__file__).parents[1] / "docs"

_SUMMARY = re.compile(r"^<!-- summary(?: of (\S+))? -->$", flags=re.MULTILINE)
_DIRECTIVE = re.compile(r"^::: (\S+)", flags=re.MULTILINE)
_ROLE = re.compile(r":(?:py:)?(?:func|class|meth|attr|mod|exc|data|obj|ref):`~?\.?([\w.]+)(?:\(\))?`")
#: A vertical bar, which ends a cell of a table unless it is inside code.
_BAR = re.compile(r"`[^`]+`|\|")
_LITERAL_BLOCK = re.compile(r"::$", flags=re.MULTILINE)


# -- summary tables ---------------------------------------------------------------------------------------


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the summary tables of a page; mkdocs calls this hook for every page."""
    folder = posixpath.dirname(page.file.src_uri)

    def table(marker: re.Match[str]) -> str:
        source = DOCS / folder / marker[1] if marker[1] else DOCS / page.file.src_uri
        return summary_table(documented_names(source))

    return _SUMMARY.sub(table, markdown)


def documented_names(page: Path) -> list[str]:
    """Return the import paths that the directives of a page document, in order."""
    return _DIRECTIVE.findall(page.read_text(encoding="utf-8"))


def summary_table(paths: list[str]) -> str:
    """Return a Markdown table with one row per name: a link, and the first paragraph of the docstring."""
    rows = [f"| [`{path.removeprefix('sfumato.')}`][{path}] | {_summary(path)} |" for path in paths]
    return "\n".join(["| Name | Summary |", "|---|---|", *rows])


def _summary(path: str) -> str:
    module, _, name = path.rpartition(".")
    docstring = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    summary = to_markdown(" ".join(docstring.partition("\n\n")[0].split()))
    return _BAR.sub(lambda part: part[0] if part[0].startswith("`") else r"\|", summary)


# -- docstrings -------------------------------------------------------------------------------------------


class PlainMarkdown(griffe.Extension):
    """Turn the reStructuredText of docstrings into Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object that Griffe has loaded."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Add the constructor that Griffe does not see: that of a class with ``__new__``, or of a named tuple."""
        if "__init__" in cls.members:
            return
        if isinstance(new := cls.members.get("__new__"), griffe.Function):
            cls.set_member("__init__", griffe.Function("__init__", parameters=new.parameters, lineno=new.lineno))
        elif any(str(base).endswith("NamedTuple") for base in cls.bases):
            kind = griffe.ParameterKind.positional_or_keyword
            parameters = [
                griffe.Parameter(field.name, annotation=field.annotation, kind=kind, default=field.value)
                for field in cls.members.values()
                if field.is_attribute and field.annotation is not None
            ]
            signature = griffe.Parameters(griffe.Parameter("self", kind=kind), *parameters)
            cls.set_member("__init__", griffe.Function("__init__", parameters=signature, lineno=cls.lineno))


def to_markdown(docstring: str) -> str:
    """Replace roles by links, and the double colon before an indented block by a single one."""
    return _LITERAL_BLOCK.sub(":", _ROLE.sub(_link, docstring))


def _link(role: re.Match[str]) -> str:
    """Return a link to a documented name or one of its members; plain code if the site does not document it."""
    first, *members = role[1].removeprefix("sfumato.").split(".")
    path = public_paths().get(role[1].removeprefix("sfumato."))
    if path is None and members and (owner := public_paths().get(first)):
        path = ".".join([owner, *members])
    if path is None:
        return f"`{role[1]}`"
    return f'<autoref identifier="{path}" optional>`{role[1].rpartition(".")[2]}`</autoref>'


@functools.cache
def public_paths() -> dict[str, str]:
    """Return the path of every documented name, by its path without the package and by its last part."""
    paths = [path for page in sorted((DOCS / "reference").glob("*.md")) for path in documented_names(page)]
    by_name = {path.rpartition(".")[2]: path for path in sorted(paths, key=len, reverse=True)}
    return by_name | {path.removeprefix("sfumato."): path for path in paths}
