"""Write docs/cli.md: the help of every command, as the commands themselves print it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from sfumato.cli import sfumato

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

HEAD = """# The command line

The help of every command. Written by `scripts/make_cli_reference.py`; a test fails when it is out of date.

Errors are one line on standard error and exit code 2; the answer "no" (a policy is violated) is exit code 1; a fault of
the program itself is a traceback and exit code 70. Files are written whole or not at all, and never over one that the
same command reads. `--json` answers for programs. Completion for bash (zsh and fish alike):
`eval "$(_SFUMATO_COMPLETE=bash_source sfumato)"`.

In pipes `-` stands for standard input or output, wherever a file is read or written except for plots:

    sfumato privatize mechanism.json - -o - < values.txt | sfumato aggregate mechanism.json - -o - \\
        | sfumato estimate mechanism.json - -o - > estimate.csv

Input is known by its first bytes: a policy is JSON if it begins with a brace, TOML otherwise; reports are a binary
batch, Parquet, an Arrow file or stream, lines, or counts; values are Parquet, Arrow, CSV if a column is named, or one a
line. A command reads standard input for one thing only. Text, batches and Arrow streams are read as they come; Parquet
and Arrow files are held in memory.

Output has the format that `--format` says. None of it is written before all of it is right (it waits in memory, beyond
64 MiB in a temporary file without a name), and what a command says to people goes to standard error. A command whose
output nobody reads to the end stops without a word (exit code 141).

`lines` are reports as text: `sfumato-reports 1` and the mechanism's hash on the first line; then a report a line, an
index in plain digits or any other report as its bytes in hex digits; `end` and the number of reports on the last.
"""


def reference() -> str:
    """The whole page."""
    runner = CliRunner()
    parts = [HEAD]
    for command in [None, *sfumato.list_commands(None)]:  # type: ignore[arg-type]
        arguments = ["--help"] if command is None else [command, "--help"]
        text = runner.invoke(sfumato, arguments, prog_name="sfumato", terminal_width=100).output.rstrip()
        parts.append(f"## sfumato {command or ''}".rstrip() + f"\n\n```\n{text}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
