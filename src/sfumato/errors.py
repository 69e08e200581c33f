"""Every error Sfumato raises, and the one template their messages share.

SfumatoError
├── InvalidInput (ValueError)     a parameter that cannot be accepted; nothing was built
│   ├── NotIdentifiable           reports do not tell all values apart: nothing to estimate (sfumato.mechanisms)
│   ├── UnknownLabel (KeyError)   a result has no row with this label
│   ├── UnknownSpec               a spec, policy or certificate of a kind or version not known here
│   ├── UnreadableFile (OSError)  a file that cannot be opened, read or written; errno and filename are the system's
│   │   └── MissingFile           the same for a file that does not exist (FileNotFoundError)
│   └── Refused                   the same, said by an executor of Spark (sfumato.spark)
├── PolicyViolated                a certificate that does not hold was asked to hold
├── NoAnswer                      the arguments are valid, but there is no answer; the message says why
│   ├── Undecided                 no method here proves or disproves it, or the evidence is not enough
│   ├── LimitExceeded             the computation is larger than the limit in the message
│   │   └── TooManyBranches       a sampler has more branches than the auditor follows (sfumato.auditing)
│   ├── SolverFailed              a numerical search found no solution
│   │   └── OutOfTime             a search had no mechanism to show at its deadline (sfumato.compiler)
│   └── NoMechanism               no mechanism meets the request (bits per report, policy, utility, target)
├── CannotCompose                 the privacy of two releases together has no bound of this kind
├── BudgetExceeded                a release would spend more than the ledger's budget; nothing was drawn
├── ValueChanged                  a collection was answered with another value before; nothing was drawn
├── CollectorRefused              a collector refused for good; the message gives its reason (sfumato.device)
├── CollectorUnreachable          no answer of a collector came, however often it was asked (sfumato.device)
└── MissingExtra (ImportError)    an optional dependency is needed; the message names it
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BudgetExceeded",
    "CannotCompose",
    "InvalidInput",
    "LimitExceeded",
    "MissingExtra",
    "MissingFile",
    "NoAnswer",
    "NoMechanism",
    "PolicyViolated",
    "SfumatoError",
    "SolverFailed",
    "Undecided",
    "UnknownLabel",
    "UnknownSpec",
    "UnreadableFile",
    "ValueChanged",
]

_LONGEST_SHOWN = 80


class SfumatoError(Exception):
    """The root of every error raised on purpose by this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Constructors take what a message is made of, and a copy needs the message: errors cross process borders.
        system = {name: getattr(self, name) for name in ("errno", "strerror", "filename") if hasattr(self, name)}
        return _restore, (type(self), self.args, {**system, **self.__dict__})


class InvalidInput(SfumatoError, ValueError):
    """An argument, a file or a document that cannot be accepted.

    All messages follow one template: ``subject: parameter must …; got …``, then what to do next where the requirement
    alone does not say it.

    Parameters
    ----------
    subject
        The function, class or file that rejects the input.
    parameter
        The name of the parameter or field.
    must
        The requirement, as the words after "must".
    got
        The rejected value; long ones are shortened.
    row
        The index of the rejected report, where the input is a column of reports.
    hint
        What to do next, as a full sentence.

    Examples
    --------
    >>> print(InvalidInput("Uniform", "epsilon", "be at least 0", -1))
    Uniform: epsilon must be at least 0; got -1
    >>> print(InvalidInput("estimate", "aggregate", "not be empty", 0, hint="Aggregate at least one report first."))
    estimate: aggregate must not be empty; got 0. Aggregate at least one report first.
    """

    def __init__(
        self, subject: str, parameter: str, must: str, got: object, *, row: int | None = None, hint: str | None = None
    ) -> None:
        ending = "" if hint is None else f". {hint}"
        super().__init__(f"{subject}: {parameter} must {must}; got {shown(got)}{ending}")
        self.row = row


class UnknownLabel(InvalidInput, KeyError):
    """A result was asked for a value or a group that it does not have: ``estimate["label"]``."""

    __str__ = Exception.__str__  # that of KeyError quotes the message


class UnknownSpec(InvalidInput):
    """A document names a kind or a version that this release does not know."""


class UnreadableFile(InvalidInput, OSError):
    """A file that cannot be opened, read or written.

    It is also an :class:`OSError` with the ``errno``, ``strerror`` and ``filename`` of the system's error.
    """

    def __str__(self) -> str:
        return str(self.args[0])  # an OSError with a file name would print the system's message


class MissingFile(UnreadableFile, FileNotFoundError):
    """A file that does not exist; also a :class:`FileNotFoundError`."""


class PolicyViolated(SfumatoError):
    """A mechanism does not obey its policy; the message names the pair and the output."""


class NoAnswer(SfumatoError):
    """A valid request has no exact answer; nothing was approximated instead. The subclass says why."""


class Undecided(NoAnswer):
    """No method known here proves or disproves the statement, or the evidence is weaker than required."""


class LimitExceeded(NoAnswer):
    """The computation is larger than the limit that the message states."""


class SolverFailed(NoAnswer):
    """A numerical search did not converge, or did not finish in time."""


class NoMechanism(NoAnswer):
    """No mechanism meets the request: the bits per report, the policy, the utility or the target."""


class CannotCompose(SfumatoError):
    """The composition of two policies does not exist, or is not known to."""


class BudgetExceeded(SfumatoError):
    """A release would spend more than the ledger's budget; nothing was drawn."""


class ValueChanged(SfumatoError):
    """A collection asks again, and the value is no longer the one that was answered; nothing was drawn."""


class MissingExtra(SfumatoError, ImportError):
    """An optional dependency is missing: ``purpose`` needs the ``extra``.

    >>> print(MissingExtra("arrow", "encoding an Arrow column"))
    encoding an Arrow column needs the optional dependency: pip install 'sfumato[arrow]'
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the optional dependency: pip install 'sfumato[{extra}]'")


def _restore(kind: type[SfumatoError], arguments: tuple[Any, ...], state: dict[str, Any]) -> SfumatoError:
    """Return an error again from its parts, without its constructor."""
    maker = OSError if issubclass(kind, OSError) else Exception  # the only two layouts that these classes have
    error: SfumatoError = maker.__new__(kind, *arguments)
    error.args = arguments
    for name, value in state.items():
        setattr(error, name, value)
    return error


def file_error(error: OSError, subject: str, parameter: str, must: str, got: object) -> UnreadableFile:
    """Return the system's error as one of this package: MissingFile if the file does not exist, else UnreadableFile."""
    kind = MissingFile if isinstance(error, FileNotFoundError) else UnreadableFile
    result = kind(subject, parameter, must, got)
    result.errno, result.strerror = error.errno, error.strerror or str(error)
    result.filename = subject if error.filename is None else error.filename  # pyarrow leaves it out
    return result


def shown(value: object) -> str:
    """``repr(value)``, cut where a message would become unreadable.

    >>> shown(10**5000)  # Python writes out no int this long
    '<int that cannot be shown>'
    """
    try:
        text = repr(value)
    except ValueError:
        text = f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
