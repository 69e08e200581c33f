"""Write docs/cli.md: the help of every command, as the commands themselves print it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from sfumato.cli import sfumato

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"

HEAD = """# The command line

The help of every command. Written by `scripts/make_cli_reference.py`; a test fails when it is out of date.

Errors are one line on standard error and exit code 2; the answer "no" (a policy is violated) is exit code 1. Files are
written whole or not at all. `--json` answers for programs. Completion for bash (zsh and fish alike):
`eval "$(_SFUMATO_COMPLETE=bash_source sfumato)"`.
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
