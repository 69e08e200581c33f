"""Write docs/cli.md: an introduction, and the help that each command prints."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from sfumato.cli import sfumato

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

HEAD = """# Command line

This page shows the help of every command. `scripts/make_cli_reference.py` writes it, and a test fails when it is out
of date.

Commands write a file completely or not at all, and never over a file that the same command reads. `--json` prints a
result for programs. For completion in bash, run `eval "$(_SFUMATO_COMPLETE=bash_source sfumato)"`; use `zsh_source`
or `fish_source` for zsh and fish.

## Exit codes

| Code | Meaning |
|---|---|
| 0 | Success. |
| 1 | The answer is "no", for example because a mechanism violates a policy. |
| 2 | Invalid input. One line on standard error states the reason. |
| 70 | A fault of the program, with a traceback. |
| 141 | The reader of the output closed it before the end. The command prints no message. |

## Pipes

In place of a file, `-` means standard input or standard output. Plots are the only exception.

    sfumato privatize mechanism.json - -o - < values.txt | sfumato aggregate mechanism.json - -o - \\
        | sfumato estimate mechanism.json - -o - > estimate.csv

A command recognizes the format of its input by the first bytes:

| Input | Formats |
|---|---|
| policy | JSON if it begins with a brace, otherwise TOML |
| reports | binary batch, Parquet, Arrow file or stream, lines, or counts |
| values | Parquet, Arrow, CSV if a column is named, otherwise one value per line |

A command reads standard input for one purpose only. It reads text, batches and Arrow streams in pieces. It holds
Parquet and Arrow files in memory.

`--format` sets the format of the output. A command writes no output before the whole output is ready. The output
waits in memory, and beyond 64 MiB in an unnamed temporary file. Messages for people go to standard error.

## Reports as lines

The format `lines` stores reports as text:

- The first line holds `sfumato-reports 1` and the hash of the mechanism.
- Each further line holds one report: an index in decimal digits, or the bytes of any other report in hexadecimal
  digits.
- The last line holds `end` and the number of reports.
"""


def reference() -> str:
    """Return the whole page."""
    runner = CliRunner()
    parts = [HEAD]
    for command in [None, *sfumato.list_commands(None)]:  # type: ignore[arg-type]
        arguments = ["--help"] if command is None else [command, "--help"]
        help_page = runner.invoke(sfumato, arguments, prog_name="sfumato", terminal_width=100).output.rstrip()
        parts.append(f"## sfumato {command or ''}".rstrip() + f"\n\n```\n{help_page}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
