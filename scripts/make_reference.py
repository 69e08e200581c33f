"""Write docs/reference.md: every public name with its signature and the first paragraph of its docstring."""

from __future__ import annotations

import inspect
from pathlib import Path

import sfumato
from sfumato import errors, mechanisms, testing

PAGE = Path(__file__).parents[1] / "docs" / "reference.md"

HEAD = """# Reference

Every public name. Written by `scripts/make_reference.py` from the docstrings; a test fails when it is out of date.
"""


def entry(prefix: str, name: str, value: object) -> str:
    paragraph = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    return f"### `{prefix}{name}{signature(value)}`\n\n{paragraph}\n"


def signature(value: object) -> str:
    if inspect.ismodule(value) or not callable(value):
        return ""
    if inspect.isclass(value) and (inspect.isabstract(value) or issubclass(value, Exception)):
        return ""
    text = str(inspect.signature(value)).partition(" -> ")[0].replace("'", "")
    return text if len(text) < 100 else "(…)"


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for heading, prefix, module in (
        ("The package", "sfumato.", sfumato),
        ("Mechanisms", "sfumato.mechanisms.", mechanisms),
        ("Errors", "sfumato.errors.", errors),
        ("Testing", "sfumato.testing.", testing),
    ):
        parts.append(f"## {heading}\n")
        parts += [entry(prefix, name, getattr(module, name)) for name in module.__all__]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
