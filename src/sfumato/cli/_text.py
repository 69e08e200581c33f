"""Options of commands that read values: how text files spell their cells, and what missing values mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from sfumato._core import ENCODINGS, TextFormat

__all__ = ["MissingCommand", "MissingRule", "text_options"]

_MISSING = "--missing"
_VALUE = "value"


@dataclass(frozen=True)
class MissingRule:
    """What a missing value means: an error, a label of the domain, or a row to drop."""

    label: str | None = None
    drop: bool = False


class _Missing(click.ParamType):  # type: ignore[type-arg]  # older releases are not generic
    """One of ``reject``, ``value LABEL`` and ``drop``."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> MissingRule:
        if isinstance(value, MissingRule):
            return value
        word, _, label = value.partition(" ")
        if word == _VALUE and label:
            return MissingRule(label)
        if value not in ("reject", "drop"):
            self.fail(f"{value!r} must be reject, value LABEL, or drop.", param, ctx)
        return MissingRule(drop=value == "drop")


class MissingCommand(click.Command):
    """A command whose option ``--missing value LABEL`` has two words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Join the two words into one before click parses the arguments."""
        joined: list[str] = []
        for word in args:
            if joined[-2:] == [_MISSING, _VALUE] or joined[-1:] == [f"{_MISSING}={_VALUE}"]:
                joined[-1] += f" {word}"
            else:
                joined.append(word)
        return super().parse_args(ctx, joined)


def _delimiter(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """Return the delimiter; shells make it hard to write a tab."""
    return "\t" if value in ("tab", "\\t") else value


def text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options ``--missing``, ``--delimiter``, ``--encoding``, ``--decimal`` and ``--null``.

    The command receives a :class:`MissingRule` as ``missing`` and a :class:`TextFormat` as ``text``.
    """

    def with_format(
        *args: Any, delimiter: str | None, encoding: str, decimal: str, null: tuple[str, ...], **options: Any
    ) -> None:
        command(*args, text=TextFormat(delimiter, encoding, decimal, null), **options)

    with_format.__doc__ = command.__doc__
    with_format.__name__ = command.__name__
    with_format.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        option(with_format)
    return with_format


_OPTIONS = (
    click.option(
        _MISSING,
        type=_Missing(),
        default="reject",
        metavar="RULE",
        help="What an empty cell or null means: reject the file, unless the domain declares a value for it; value "
        "LABEL, this value of the domain; or drop the row, which is not private.  [default: reject]",
    ),
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        callback=_delimiter,
        help="Character between the cells of a text file, or tab.  [default: a comma; a tab for .tsv]",
    ),
    click.option(
        "--encoding",
        type=click.Choice(ENCODINGS),
        default="utf-8",
        help="Encoding of a text file.  [default: utf-8]",
    ),
    click.option(
        "--decimal",
        type=click.Choice((".", ",")),
        default=".",
        help="Decimal mark of the numbers in a text file.  [default: .]",
    ),
    click.option(
        "--null",
        multiple=True,
        metavar="CELL",
        help="Cell of a text file that counts as empty, such as NA; repeat the option for several.  [default: none]",
    ),
)
