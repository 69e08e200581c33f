"""The command `sfumato`: one module per command, and one set of exit codes.

To add a command, add a module: the click command called ``command`` in ``cli/some_name.py`` becomes
``sfumato some-name``. A command imports its dependencies inside the function, so that ``sfumato --help`` starts fast.

Exit codes of all commands:

- 0: success; the answer to the question is "yes".
- 1: the answer is "no", for example because a mechanism violates a policy.
- 2: an error. Every SfumatoError, OSError and usage error is printed as one line on standard error.
- 70: an internal error, printed with its traceback. It is separate from 1, so that a crash never reads as a "no".
- 130: the command was interrupted.
- 141: the program that reads standard output closed it early; nothing is printed.
"""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Sequence

import click

from sfumato.errors import SfumatoError

__all__ = ["main"]

#: Exit code of an internal error: EX_SOFTWARE of sysexits.h.
_INTERNAL_ERROR = 70
#: Exit codes that shells report for programs ended by a signal: 128 + SIGINT and 128 + SIGPIPE.
_INTERRUPTED = 130
_BROKEN_PIPE = 141


class _OutputClosed(Exception):
    """The reader of standard output closed it."""


class _Commands(click.Group):
    """A group with one command per module of this package whose name does not start with an underscore."""

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
        except (BrokenPipeError, SystemExit):  # rich raises SystemExit instead of BrokenPipeError
            raise _OutputClosed from None


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="sfumato")
def sfumato() -> None:
    """Collect statistics with context-aware local differential privacy.

    A policy states which values must be hard to tell apart, and by how much. Sfumato finds a randomizer (a mechanism)
    that obeys the policy, proves that it does, randomizes values on devices, counts the reports and estimates
    frequencies with error bars.

    Example: sfumato check policy.toml
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments
        Command-line arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        0 for success, 1 for the answer "no", 2 for an error, 70 for an internal error, 130 or 141 after a signal.

    Examples
    --------
    >>> main(["--version"])  # doctest: +ELLIPSIS
    sfumato, version ...
    0
    """
    try:
        code = sfumato.main(arguments, prog_name="sfumato", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        command_path = "sfumato" if error.ctx is None else error.ctx.command_path
        return _fail(f"{error.format_message()} (see: {command_path} --help)")
    except click.ClickException as error:
        return _fail(error.format_message())
    except SfumatoError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except _OutputClosed:
        return _BROKEN_PIPE
    except Exception:
        traceback.print_exc()
        click.echo("sfumato: internal error; please report it together with the traceback above", err=True)
        return _INTERNAL_ERROR


def _fail(message: str) -> int:
    """Print an error as one line and return its exit code."""
    click.echo("sfumato: " + " ".join(message.split()), err=True)
    return 2
