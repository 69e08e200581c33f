"""The command `sfumato`: one file a command, and one way to fail.

To add a command, add a file: ``cli/some_name.py`` with a click command called ``command`` is ``sfumato some-name``. It
imports what it needs inside the function, so that ``sfumato --help`` stays quick, and raises what went wrong: any
SfumatoError or OSError becomes one line on stderr and exit code 2. The answer "no" (a policy is violated) is code 1;
anything else that is raised is a fault of ours, shown with its traceback, and code 70, never to be taken for a "no".
Whoever stops reading our output early has had enough of it: the command ends without a word.
"""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Sequence

import click

from sfumato.errors import SfumatoError

__all__ = ["main"]

#: EX_SOFTWARE of sysexits.h.
_OUR_FAULT = 70
#: What a shell says of programs that these signals end: 128 + SIGINT and 128 + SIGPIPE.
_INTERRUPTED = 130
_NOBODY_READS = 141


class _NobodyReads(Exception):
    """Standard output was closed at its other end."""


class _Commands(click.Group):
    """The files of this package whose names have no underscore in front."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        names = sorted(module.name for module in pkgutil.iter_modules(__path__))
        return [name.replace("_", "-") for name in names if not name.startswith("_")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{__name__}.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, SystemExit):  # SystemExit: rich turns the one into the other
            raise _NobodyReads from None


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="sfumato")
def sfumato() -> None:
    """Say which values must be hard to tell apart, and by how much; get randomizers that are proven to obey.

    Example: sfumato check policy.toml
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 yes, 1 no, 2 an error that one line on stderr names, 70 our fault."""
    try:
        code = sfumato.main(arguments, prog_name="sfumato", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        where = "sfumato" if error.ctx is None else error.ctx.command_path
        return _fail(f"{error.format_message()} (see: {where} --help)")
    except click.ClickException as error:
        return _fail(error.format_message())
    except SfumatoError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except _NobodyReads:
        return _NOBODY_READS
    except Exception:
        traceback.print_exc()
        return _OUR_FAULT


def _fail(message: str) -> int:
    click.echo("sfumato: " + " ".join(message.split()), err=True)
    return 2
