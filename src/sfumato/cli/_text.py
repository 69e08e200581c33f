"""Options of commands that read values: how text files spell their cells, and what missing values mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import ENCODINGS, TextFormat

if TYPE_CHECKING:
    from sfumato.domain import Domain, Label

__all__ = ["MissingCommand", "MissingRule", "text_options"]

_MISSING = "--missing"
_VALUE = "value"


@dataclass(frozen=True)
class MissingRule:
    """What a missing value means: an error, a label of the domain, or a row to drop."""

    labels: tuple[str, ...] = ()
    drop: bool = False

    @classmethod
    def of(cls, rules: Sequence[MissingRule]) -> MissingRule:
        """Return one rule for all uses of the option; only labels of different attributes come together."""
        if len(rules) > 1 and not all(rule.labels for rule in rules):
            raise click.UsageError("--missing may be repeated only as --missing value NAME=LABEL, once per attribute.")
        return cls(tuple(label for rule in rules for label in rule.labels), any(rule.drop for rule in rules))

    def label(self, domain: Domain) -> Label | Mapping[str, Label] | None:
        """Return the label of missing values, or the labels of attributes; None if there is none."""
        pairs = [label.partition("=") for label in self.labels]
        if pairs and all(mark and name in domain.factors for name, mark, _ in pairs):
            labels = {name: label for name, _, label in pairs}
            if len(labels) < len(pairs):
                raise click.UsageError("--missing value names an attribute twice.")
            return labels
        if len(self.labels) > 1:
            names = ", ".join(domain.factors) or "none"
            message = "--missing may be repeated only as --missing value NAME=LABEL, once per attribute."
            raise click.UsageError(f"{message} The attributes are: {names}.")
        return self.labels[0] if self.labels else None


class _Missing(click.ParamType):  # type: ignore[type-arg]  # older releases are not generic
    """One of ``reject``, ``value LABEL`` and ``drop``."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> MissingRule:
        if isinstance(value, MissingRule):
            return value
        word, _, label = value.partition(" ")
        if word == _VALUE and label:
            return MissingRule((label,))
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
        *args: Any,
        missing: tuple[MissingRule, ...],
        delimiter: str | None,
        encoding: str,
        decimal: str,
        null: tuple[str, ...],
        **options: Any,
    ) -> None:
        rule = MissingRule.of(missing)
        command(*args, missing=rule, text=TextFormat(delimiter, encoding, decimal, null), **options)

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
        multiple=True,
        metavar="RULE",
        help="What an empty cell or null means: reject the file, unless the domain declares a value for it; value "
        "LABEL, this value of the domain; value NAME=LABEL, repeated for several attributes of a product; or drop the "
        "row, which is not private.  [default: reject]",
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
