"""The registry of mechanisms: one entry per family, which leads to the kernel, estimator and report format.

``families.py`` lists the families of the library. ``register`` adds a mechanism that is defined elsewhere.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, overload

from sfumato._core import Floats, Integers
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.provenance import is_library_class, is_library_format, is_library_mechanism
from sfumato.mechanisms.reports.base import ReportFormat
from sfumato.mechanisms.reports.index import IndexFormat

if TYPE_CHECKING:
    from numpy.random import Generator

    from sfumato.mechanisms.base import Mechanism
    from sfumato.mechanisms.estimators.base import Estimator
    from sfumato.mechanisms.kernels.base import Kernel
    from sfumato.mechanisms.memoized.forms import Form

__all__ = [
    "Family",
    "add_family",
    "all_families",
    "count_law_for",
    "estimator_for",
    "format_for",
    "kernel_for",
    "mechanism_classes",
    "memory_form_for",
    "register",
]

Kind = TypeVar("Kind", bound="type[Mechanism]")
#: Function that draws the counts of n people whose values follow a distribution.
CountLaw = Callable[["Generator", int, Floats], Integers]


@dataclass(frozen=True, eq=False, kw_only=True)
class Family:
    """A family of mechanisms: the classes of one folder, and the functions that belong to them.

    Functions with few callers are named ``"module:function"`` and imported on first use, so that importing the library
    does not import numba.

    Parameters
    ----------
    mechanisms
        The classes; each has the ``name`` that its specs state.
    estimator
        Returns the estimator of a mechanism. By default, a mechanism that reports an index has the estimator of tables.
    report_format
        Returns the report format of a mechanism. By default, reports are indices.
    kernel
        ``"module:function"`` that returns the compiled sampler of a mechanism. By default, arrays are sampled value by
        value.
    candidates
        Yields short names and candidates for a request. ``plan`` compares mechanisms of the family for the policies
        that yield any.
    count_law
        Draws the counts of n people directly from their law, without drawing reports. Histograms do not need one.
    in_browser
        Whether the browser client runs these mechanisms.
    memory
        ``"module:object"`` that names the division of these mechanisms into permanent answers and reports. By default,
        only tables of their laws are divided.
    is_of_library
        Whether the family is the library's. Candidates of other families are audited before ``plan`` compares them.
    """

    mechanisms: tuple[type[Mechanism], ...]
    estimator: Callable[[Any], Estimator] | None = None
    report_format: Callable[[Any], ReportFormat] | None = None
    kernel: str | None = None
    candidates: Callable[[CandidateRequest], Iterable[tuple[str, Candidate]]] | None = None
    count_law: Callable[[Any, Generator, int, Floats], Integers] | None = None
    in_browser: bool = False
    memory: str | None = None
    is_of_library: bool = True


def _loaded(path: str) -> Callable[..., Any]:
    """Return the function that a ``"module:function"`` string names."""
    module, _, function = path.partition(":")
    return cast("Callable[..., Any]", getattr(importlib.import_module(module), function))


#: Entry point group in which a package names the module that registers its mechanism.
_ENTRY_POINTS = "sfumato.mechanisms"
_FAMILIES: list[Family] = []
_BY_CLASS: dict[type[Mechanism], Family] = {}
_BY_NAME: dict[str, type[Mechanism]] = {}


def all_families() -> tuple[Family, ...]:
    """Return all families: the library's in order of comparison, then the registered ones."""
    return tuple(_FAMILIES)


def class_named(name: object) -> type[Mechanism] | None:
    """Return the class with this name in its specs, or None.

    An installed package can declare the module that registers a class as an entry point of the group
    ``sfumato.mechanisms``, under the name of the mechanism. The module is imported when a spec with that name is first
    read.
    """
    if isinstance(name, str) and name not in _BY_NAME:
        for entry_point in importlib.metadata.entry_points(group=_ENTRY_POINTS, name=name):
            entry_point.load()
    return _BY_NAME.get(name) if isinstance(name, str) else None


def mechanism_classes() -> Mapping[str, type[Mechanism]]:
    """Return every registered class by the name in its specs."""
    return dict(_BY_NAME)


def add_family(family: Family) -> None:
    """Add a family to the registry; raise InvalidInput if one of its names is taken."""
    for kind in family.mechanisms:
        known = _BY_NAME.get(kind.name)
        if known is not None:
            hint = "Set the class attribute name to another string."
            must = f"differ from the name of the registered class {known.__module__}.{known.__qualname__}"
            raise InvalidInput("register", "the name of the mechanism", must, kind.name, hint=hint)
    _FAMILIES.append(family)
    for kind in family.mechanisms:
        _BY_CLASS[kind], _BY_NAME[kind.name] = family, kind


def _remove(kind: type[Mechanism]) -> None:
    """Remove the family of a class from the registry."""
    _FAMILIES.remove(_BY_CLASS.pop(kind))
    del _BY_NAME[kind.name]


def _family_of(*kinds: type) -> Family | None:
    """Return the family of the first of these classes that has one."""
    return next((_BY_CLASS[kind] for kind in kinds if kind in _BY_CLASS), None)


# -- lookups by mechanism ----------------------------------------------------------------------------------


def format_for(mechanism: Mechanism) -> ReportFormat:
    """Return the report format of a mechanism."""
    family = _family_of(*type(mechanism).__mro__)
    if family is None or family.report_format is None:
        return IndexFormat(mechanism.outputs)
    report_format = family.report_format(mechanism)
    if not family.is_of_library and not is_library_format(report_format):
        _refuse_format(type(mechanism), type(report_format))
    return report_format


def estimator_for(mechanism: Mechanism) -> Estimator:
    """Return the estimator of a mechanism.

    Raises
    ------
    InvalidInput
        If the mechanism has no estimator and does not report an index.
    """
    family = _family_of(*type(mechanism).__mro__)
    if family is not None and family.estimator is not None:
        return family.estimator(mechanism)
    from sfumato.mechanisms.estimators.matrix import default_estimator
    from sfumato.mechanisms.estimators.mixture import mixture_estimator
    from sfumato.mechanisms.mixture import Mixture

    return mixture_estimator(mechanism) if isinstance(mechanism, Mixture) else default_estimator(mechanism)


def kernel_for(mechanism: Mechanism) -> Kernel | None:
    """Return the kernel that samples as the mechanism does, or None.

    An audit enumerates the sampler, not the kernel. Tests prove the two equal for the library's own classes. Any other
    class may sample differently, as may a subclass or a part, so it has no kernel.
    """
    family = _BY_CLASS.get(type(mechanism))
    if family is None or family.kernel is None or not is_library_mechanism(mechanism):
        return None
    return cast("Kernel | None", _loaded(family.kernel)(mechanism))


def memory_form_for(mechanism: Mechanism) -> Form[Any] | None:
    """Return the division of a mechanism into permanent answers and reports, or None if its class has none."""
    family = _BY_CLASS.get(type(mechanism))
    return None if family is None or family.memory is None else cast("Form[Any]", _loaded(family.memory))


def count_law_for(mechanism: Mechanism) -> CountLaw | None:
    """Return the law of a mechanism's counts, or None if only the law of its reports is known.

    A class from outside the library may sample from a law other than the one it states, so it has no count law.
    """
    if not is_library_mechanism(mechanism):
        return None
    family = _family_of(*type(mechanism).__mro__)
    if family is not None and family.count_law is not None:
        law = family.count_law
        return lambda generator, n, truth: law(mechanism, generator, n, truth)
    if not mechanism.report_format.is_histogram:
        return None
    from sfumato.mechanisms.reports.count_laws import histogram_counts

    return lambda generator, n, truth: histogram_counts(mechanism, generator, n, truth)


# -- mechanisms from elsewhere -----------------------------------------------------------------------------


@overload
def register(
    mechanism: Kind,
    *,
    estimator: Callable[[Any], Estimator] | None = None,
    report_format: Callable[[Any], ReportFormat] | None = None,
    candidates: Callable[[CandidateRequest], Iterable[tuple[str, Candidate]]] | None = None,
) -> Kind: ...


@overload
def register(
    mechanism: None = None,
    *,
    estimator: Callable[[Any], Estimator] | None = None,
    report_format: Callable[[Any], ReportFormat] | None = None,
    candidates: Callable[[CandidateRequest], Iterable[tuple[str, Candidate]]] | None = None,
) -> Callable[[Kind], Kind]: ...


def register(
    mechanism: Kind | None = None,
    *,
    estimator: Callable[[Any], Estimator] | None = None,
    report_format: Callable[[Any], ReportFormat] | None = None,
    candidates: Callable[[CandidateRequest], Iterable[tuple[str, Candidate]]] | None = None,
) -> Kind | Callable[[Kind], Kind]:
    """Register a mechanism class that is defined outside Sfumato.

    All functions that take a mechanism, the ledger and report files then accept instances of the class, and
    :func:`mechanism_from_spec` rebuilds them. Call the function, or use it to decorate the class.

    The class must define a sampler and the output probabilities that it states; see :class:`Mechanism`.
    :func:`privatize` runs the sampler for one value at a time, because an audit enumerates no other code.

    Parameters
    ----------
    mechanism
        A subclass of :class:`Mechanism` with its own ``name``.
    estimator
        A function that takes an instance and returns its :class:`Estimator`. By default, the class inherits the
        estimator of the registered class that it derives from, unless ``report_format`` is given. Without any
        estimator, a mechanism that reports an index gets the least-squares estimator of its matrix Q(y|x).
    report_format
        A function that takes an instance and returns its :class:`ReportFormat`, which must be of a class of Sfumato,
        such as :class:`IndexFormat` or :class:`BitmapFormat`. By default, the class inherits the format of the
        registered class that it derives from; otherwise reports are indices.
    candidates
        A function that takes a :class:`CandidateRequest` and yields pairs of a short name and a :class:`Candidate`.
        :func:`plan` and :func:`design` audit these candidates, and compare those that obey the policy with Sfumato's
        mechanisms.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    InvalidInput
        If the class does not derive from Mechanism, lacks an abstract method, has no name, or has the name of another
        mechanism. Also if the report format is not of a class of Sfumato. A class that is defined again under the same
        module and name, as in a notebook, replaces the earlier one.

    Examples
    --------
    >>> import sfumato as sf
    >>> @sf.register
    ... class Coin(sf.mechanisms.RandomizedResponse):
    ...     '''Randomized response under another name.'''
    ...     name = "documented-coin"
    >>> mechanism = Coin(sf.Domain(["no", "yes"]), "ln 3")
    >>> sf.mechanism_from_spec(mechanism.spec) == mechanism
    True
    """

    def add(kind: Kind) -> Kind:
        _check_class(kind)
        if isinstance(report_format, type) and not is_library_class(report_format):
            _refuse_format(kind, report_format)
        known = _BY_NAME.get(kind.name)
        if known is not None and _is_defined_again(known, kind):
            _remove(known)
        # A subclass may sample differently, so it inherits neither the kernel nor the count law.
        base = _family_of(*kind.__mro__[1:])
        inherits = base is not None and report_format is None
        add_family(
            Family(
                mechanisms=(kind,),
                estimator=base.estimator if base and inherits and estimator is None else estimator,
                report_format=base.report_format if base and inherits else report_format,
                candidates=candidates,
                is_of_library=False,
            )
        )
        return kind

    return add if mechanism is None else add(mechanism)


def _refuse_format(kind: type, got: object) -> NoReturn:
    """Raise InvalidInput for a report format that is not one of the library's."""
    must = "be of a class of sfumato.mechanisms, because audits compare reports in these formats"
    hint = "Return an IndexFormat or a BitmapFormat from report_format."
    raise InvalidInput("register", f"the report format of {kind.__name__}", must, got, hint=hint)


def _check_class(kind: object) -> None:
    """Raise InvalidInput if a class cannot be registered."""
    from sfumato.mechanisms.base import Mechanism

    if not isinstance(kind, type) or not issubclass(kind, Mechanism):
        raise InvalidInput("register", "the mechanism", "be a subclass of Mechanism", kind)
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        must = "define every abstract method of Mechanism"
        raise InvalidInput("register", f"the class {kind.__name__}", must, Description(f"no {missing}"))
    name = kind.__dict__.get("name")
    if not isinstance(name, str) or not name:
        must = "define the class attribute name, a non-empty string"
        raise InvalidInput("register", f"the class {kind.__name__}", must, name)


def _is_defined_again(known: type, kind: type) -> bool:
    """Return whether a class outside the library replaces an earlier definition of itself."""
    outside = not known.__module__.startswith("sfumato.")
    return outside and (known.__module__, known.__qualname__) == (kind.__module__, kind.__qualname__)
