"""All errors that Sfumato raises, and the template of their messages.

SfumatoError
├── InvalidInput (ValueError)     an argument, file or document was rejected; nothing was built
│   ├── NotIdentifiable           the reports do not determine the requested frequencies or sums (sfumato.mechanisms)
│   ├── UnknownLabel (KeyError)   a result has no row with this label
│   ├── UnknownSpec               a spec, policy or certificate has a kind or version that this release does not know
│   ├── UnreadableFile (OSError)  a file cannot be opened, read or written; errno and filename come from the system
│   │   └── MissingFile           a file does not exist (also FileNotFoundError)
│   └── Refused                   a Spark executor rejected its input (sfumato.spark)
├── PolicyViolated                a certificate shows that a mechanism violates its policy
├── NoAnswer                      the arguments are valid, but no answer exists; the message gives the reason
│   ├── Undecided                 no available method proves or disproves the statement, or evidence is insufficient
│   ├── LimitExceeded             the computation is larger than the limit in the message
│   │   └── TooManyBranches       a sampler has more branches than the auditor follows (sfumato.auditing)
│   ├── SolverFailed              a numerical search did not find a solution
│   │   └── OutOfTime             a search had no mechanism to return at its deadline (sfumato.compiler)
│   └── NoMechanism               no mechanism meets the request (bits per report, policy, utility, target)
├── CannotCompose                 the privacy loss of two releases together has no bound of this kind
├── BudgetExceeded                a release would exceed the budget of the ledger; nothing was drawn
├── ValueChanged                  the person answered this collection with another value before; nothing was drawn
├── CollectorRefused              a collector rejected a request for good; the message gives its reason (sfumato.device)
├── CollectorUnreachable          a collector did not answer any of the retries (sfumato.device)
└── MissingExtra (ImportError)    an optional dependency is missing; the message names it
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

#: Maximum characters of a rejected value in a message, and of a description; longer ones are cut.
_LONGEST_SHOWN, _LONGEST_DESCRIPTION = 80, 240


class SfumatoError(Exception):
    """Base class of all errors that Sfumato raises on purpose.

    ``except SfumatoError`` catches every error with a message for the user. Other exceptions are faults of the program.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors are sent between processes, and a copy has only the message. The constructors take its parts instead.
        system = {name: getattr(self, name) for name in ("errno", "strerror", "filename") if hasattr(self, name)}
        return _restore, (type(self), self.args, {**system, **self.__dict__})


class InvalidInput(SfumatoError, ValueError):
    """Error raised if an argument, a file or a document is rejected; also a :class:`ValueError`.

    All messages follow one template: ``subject: parameter must …; got …``. A hint follows if the requirement alone does
    not say what to do next.

    Parameters
    ----------
    subject
        The function, class or file that rejects the input.
    parameter
        The name of the parameter or field.
    must
        The requirement, as the words after "must".
    got
        The rejected value, shown by its ``repr`` and shortened if it is long.
    row
        Index of the rejected report, if the input is a column of reports, or the number of its row, from 1, if it is a
        file of reports; stored in the attribute ``row``.
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
        self.hint = hint


class Description(str):
    """Words that describe a rejected value, which a message shows after "got" without quotation marks.

    >>> print(InvalidInput("Prior", "prior", "have 3 entries", Description("2 entries")))
    Prior: prior must have 3 entries; got 2 entries
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class UnknownLabel(InvalidInput, KeyError):
    """Error raised if a result has no row with a label, as in ``estimate["label"]``.

    It is also a :class:`KeyError`. Users catch it and do not construct it; the parameters are those of
    :class:`InvalidInput`.
    """

    __str__ = Exception.__str__  # KeyError.__str__ would put the message in quotation marks


class UnknownSpec(InvalidInput):
    """Error raised if a file or dict has a kind or a format version that this release does not know.

    Examples are the spec of a mechanism, a policy or a certificate that a later release wrote. Users catch it and do
    not construct it; the parameters are those of :class:`InvalidInput`.
    """


class UnreadableFile(InvalidInput, OSError):
    """Error raised if a file cannot be opened, read or written; users catch it and do not construct it.

    It is also an :class:`OSError` with the ``errno``, ``strerror`` and ``filename`` of the system's error. The
    parameters are those of :class:`InvalidInput`.
    """

    def __str__(self) -> str:
        return str(self.args[0])  # OSError.__str__ would print the system's message instead


class MissingFile(UnreadableFile, FileNotFoundError):
    """Error raised if a file does not exist; users catch it and do not construct it.

    It is also a :class:`FileNotFoundError`, so ``except FileNotFoundError`` catches it. The parameters are those of
    :class:`InvalidInput`.
    """


class PolicyViolated(SfumatoError):
    """Error raised by ``raise_if_violated`` if an audit shows that a mechanism or sampler violates a policy.

    The message names the pair of values and the output that show the violation.
    """


class NoAnswer(SfumatoError):
    """Base class of errors raised if the arguments are valid, but the requested answer does not exist or is not known.

    Sfumato does not return an approximation instead. The subclass and the message give the reason.
    """


class Undecided(NoAnswer):
    """Error raised if no available method proves or disproves a statement, or if the evidence is insufficient.

    For example, :func:`implies` raises it if no exact method compares two kinds of policies.
    """


class LimitExceeded(NoAnswer):
    """Error raised if a computation is larger than a fixed limit, such as a dense matrix over more than 4096 values."""


class SolverFailed(NoAnswer):
    """Error raised if a numerical search does not converge, or finds no solution before its time limit."""


class NoMechanism(NoAnswer):
    """Error raised if no mechanism meets a request, such as a maximum number of bits per report or a target error.

    The message names the requirement that cannot be met.
    """


class CannotCompose(SfumatoError):
    """Error raised if no bound is known on the privacy loss of two releases together.

    :meth:`Policy.compose` and the ledger raise it.
    """


class BudgetExceeded(SfumatoError):
    """Error raised if a report would exceed the privacy budget of the ledger; no report was drawn."""


class ValueChanged(SfumatoError):
    """Error raised if a person has already answered a collection with another value; no report was drawn.

    A second report about another value would reveal more than the first report alone.
    """


class MissingExtra(SfumatoError, ImportError):
    """Error raised if an optional dependency is not installed; also an :class:`ImportError`.

    Parameters
    ----------
    extra
        The name of the extra that installs the dependency.
    purpose
        What needs the dependency, as the start of the message.

    Examples
    --------
    >>> print(MissingExtra("arrow", "encoding an Arrow column"))
    encoding an Arrow column requires the extra 'arrow'; in the checkout of Sfumato, run: pip install '.[arrow]'
    """

    def __init__(self, extra: str, purpose: str) -> None:
        # Only a path: the name on a package index may belong to another project.
        super().__init__(
            f"{purpose} requires the extra {extra!r}; in the checkout of Sfumato, run: pip install '.[{extra}]'"
        )


def _restore(kind: type[SfumatoError], arguments: tuple[Any, ...], state: dict[str, Any]) -> SfumatoError:
    """Return a copy of an error from its parts, without calling its constructor."""
    base = OSError if issubclass(kind, OSError) else Exception  # these classes have only these two memory layouts
    error: SfumatoError = base.__new__(kind, *arguments)
    error.args = arguments
    for name, value in state.items():
        setattr(error, name, value)
    return error


def file_error(
    error: OSError, subject: str, parameter: str, must: str, got: object = None, *, hint: str | None = None
) -> UnreadableFile:
    """Convert an OSError: MissingFile if the file does not exist, otherwise UnreadableFile.

    ``got`` is the message of the system's error unless it is set.
    """
    kind = MissingFile if isinstance(error, FileNotFoundError) else UnreadableFile
    got = Description(f"the system error: {error.strerror or error}") if got is None else got
    result = kind(subject, parameter, must, got, hint=hint)
    result.errno, result.strerror = error.errno, error.strerror or str(error)
    result.filename = subject if error.filename is None else error.filename  # errors of pyarrow have no file name
    return result


def shown(value: object) -> str:
    """Return ``repr(value)``, cut to 80 characters, or a description, cut to 240 characters.

    >>> shown(10**5000)  # Python does not convert an int of this length to a string
    '<int that cannot be shown>'
    """
    try:
        text = repr(value)
    except ValueError:
        text = f"<{type(value).__name__} that cannot be shown>"
    longest = _LONGEST_DESCRIPTION if isinstance(value, Description) else _LONGEST_SHOWN
    return text if len(text) <= longest else text[: longest - 1] + "…"
