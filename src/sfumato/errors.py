"""Every error Sfumato raises, and the one template their messages share.

SfumatoError
├── InvalidInput (ValueError)     a parameter that cannot be accepted; nothing was built
│   ├── UnknownSpec               a spec, policy or certificate of a kind or version not known here
│   └── Refused                   the same, said by an executor of Spark (sfumato.spark)
├── PolicyViolated                a certificate that does not hold was asked to hold
├── CannotDecide                  an exact answer is out of reach; the message says what is missing
│   ├── OutOfTime                 a search had no mechanism to show when its time was over (sfumato.compiler.solvers)
│   └── TooManyBranches           a sampler has more branches than were to be followed (sfumato.auditing.interpreter)
├── CannotCompose                 the privacy of two releases together has no bound of this kind
├── BudgetExceeded                a release would spend more than the ledger's budget; nothing was drawn
├── ValueChanged                  a collection was answered with another value before; nothing was drawn
├── CollectorRefused              a collector refused for good; the message gives its reason (sfumato.device)
├── CollectorUnreachable          no answer of a collector came, however often it was asked (sfumato.device)
└── MissingExtra (ImportError)    an optional dependency is needed; the message names it
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "CannotCompose",
    "CannotDecide",
    "InvalidInput",
    "MissingExtra",
    "PolicyViolated",
    "SfumatoError",
    "UnknownSpec",
    "ValueChanged",
]

_LONGEST_SHOWN = 80


class SfumatoError(Exception):
    """The root of every error raised on purpose by this package."""


class InvalidInput(SfumatoError, ValueError):
    """Which parameter of what, what it must be, what it got: one template for every refusal.

    >>> print(InvalidInput("Uniform", "epsilon", "be at least 0", -1))
    Uniform: epsilon must be at least 0; got -1

    ``row`` is that of the offending report, where the input is a column of them.
    """

    def __init__(self, what: str, parameter: str, must: str, got: object, *, row: int | None = None) -> None:
        super().__init__(f"{what}: {parameter} must {must}; got {shown(got)}")
        self.row = row


class UnknownSpec(InvalidInput):
    """A document names a kind or a version that this release does not know."""


class PolicyViolated(SfumatoError):
    """A mechanism does not obey its policy; the message names the pair and the output."""


class CannotDecide(SfumatoError):
    """An exact answer was asked for and cannot be given; nothing was approximated instead."""


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
