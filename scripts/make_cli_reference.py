"""Write docs/cli.md, which shows the help of every command."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from sfumato.cli import sfumato

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

HEAD = """# Command line

This page shows the help of every command. `scripts/make_cli_reference.py` generates it from the commands; a test fails
when it is out of date.

## Exit codes

| code | meaning |
|---|---|
| 0 | Success. The answer to a question, such as "does the mechanism obey the policy?", is "yes". |
| 1 | The answer is "no", for example because a mechanism violates a policy. |
| 2 | An error. One line on standard error states it. |
| 70 | An internal error, with a traceback. |
| 130 | The command was interrupted (Ctrl+C). |
| 141 | The program that reads standard output closed it early. The command prints nothing. |

## Files and pipes

- A command writes a file completely or not at all.
- A command never overwrites a file that it also reads.
- `--json` prints the result as JSON, for programs.
- `-` means standard input or standard output, wherever a command reads or writes a file. Plots and checkpoints are
  exceptions.
- Only one argument of a command can read standard input.

A pipeline from values to estimates:

    sfumato privatize mechanism.json - -o - < values.txt | sfumato aggregate mechanism.json - -o - \\
        | sfumato estimate mechanism.json - -o - > estimate.csv

A command detects the format of standard input from its first bytes:

| input | formats |
|---|---|
| policy | JSON if it begins with a brace, else TOML |
| reports | binary batch, Parquet, Arrow file, Arrow stream, lines, or counts |
| values | Parquet, Arrow, CSV if `--column` is given, or one value per line |

Commands stream text, batches and Arrow streams. They hold Parquet and Arrow files from a pipe in memory.

`--format` sets the format of standard output. A command writes nothing until the whole output is valid. Until then the
output waits in memory, and above 64 MiB in an unnamed temporary file. Messages for people go to standard error.

The format `lines` is text:

- The first line is `sfumato-reports 1` and the hash of the mechanism.
- Each following line is one report: an index in decimal digits, or the bytes of the report in hexadecimal digits.
- The last line is `end` and the number of reports.

## Shell completion

For bash, run `eval "$(_SFUMATO_COMPLETE=bash_source sfumato)"`. For zsh or fish, use `zsh_source` or `fish_source`.
"""


def reference() -> str:
    """Return the content of the page."""
    runner = CliRunner()
    parts = [HEAD]
    for command in [None, *sfumato.list_commands(None)]:  # type: ignore[arg-type]
        arguments = ["--help"] if command is None else [command, "--help"]
        output = runner.invoke(sfumato, arguments, prog_name="sfumato", terminal_width=100).output.rstrip()
        parts.append(f"## sfumato {command or ''}".rstrip() + f"\n\n```\n{output}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
