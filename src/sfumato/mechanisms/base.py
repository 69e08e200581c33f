"""The base class of mechanisms: a frozen spec, a sampler, and the exact law that the mechanism states.

The *sampler* is the code that runs: a small state machine that makes its random choices through ``Draws``. Formulas,
risks and audits of large domains use the *stated law*. The contract suite in ``sfumato.testing`` proves the two equal.
"""

from __future__ import annotations

import functools
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats, canonical_hash, check_kind, checked_count, count_text, project_to_simplex
from sfumato.domain import Domain, Frequencies, checked_distribution
from sfumato.errors import Description, InvalidInput, LimitExceeded, UnknownSpec
from sfumato.mechanisms.channel import Channel, check_channel_size
from sfumato.mechanisms.draws import Draws, Layout
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.provenance import is_library_class
from sfumato.mechanisms.registry import class_named, estimator_for, format_for, mechanism_classes
from sfumato.mechanisms.reports.base import ReportFormat
from sfumato.policy import Policy, TightestConstraint

if TYPE_CHECKING:
    from sfumato.mechanisms.estimators.base import Estimator

__all__ = [
    "LARGEST_MATRIX",
    "SURROGATE_VALUES",
    "Finished",
    "Mechanism",
    "mechanism_from_spec",
    "surrogate_of",
]


#: Maximum number of entries of `matrix()`; bounds its memory.
LARGEST_MATRIX = 10**7
#: Next step in errors about a spec that was changed or cut.
_WRITE_AGAIN = "Write the spec again with Mechanism.to_json()."
#: Maximum number of values of an audit surrogate; an audit enumerates all branches of its sampler in moments.
SURROGATE_VALUES = 6


@dataclass(frozen=True)
class Finished:
    """Final state of a sampler: :meth:`Mechanism.step` returns it to end with a report.

    Parameters
    ----------
    report
        The report, as an integer from 0 to 2^bits - 1.

    Examples
    --------
    >>> from sfumato.mechanisms import Finished
    >>> Finished(3)
    Finished(report=3)
    """

    report: int


class Mechanism(ABC):
    """Base class of mechanisms: each turns one value of a domain into a random report.

    Devices run a mechanism with :func:`privatize`; the methods of this class serve audits, estimates and authors of
    new mechanisms. A mechanism is immutable. Its *spec*, a JSON-compatible dictionary, determines it completely.

    A report is an integer of ``bits`` bits: the index of an output, or a bitmap over the domain (bit i for value i).
    Every report has exactly one serialized form, of constant length, so the order, length and precision of reports
    reveal nothing.

    A subclass defines three parts. Pass it to :func:`register`, so that Sfumato can rebuild it from its spec.

    - The sampler, ``step``: the code that draws a report.
    - The stated output probabilities Q(report | value): ``outputs`` and ``probability``. An audit enumerates the
      sampler and checks that it has exactly these probabilities.
    - The spec: ``parameters`` and ``from_parameters``.

    Attributes
    ----------
    name : str
        Name of the mechanism in specs.
    version : int
        Version of the spec's format.
    domain : Domain
        Values that the mechanism randomizes.
    layout : Layout
        Bits of a value's frame (a fixed number of random bits) that each decision of the sampler reads. By default,
        the layout has no fields, and all decisions draw bits on demand.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    domain: Domain
    #: Bits of a value's frame that the decisions read. Without fields, decisions read only the auxiliary stream.
    layout: Layout = Layout(64, ())

    # -- the sampler: the code that runs -----------------------------------------------------------------

    def start(self, x: int) -> Hashable:
        """Return the first state of the sampler for one value.

        Subclasses may override this method; the default state is the index itself.

        Parameters
        ----------
        x
            Index of the value in the domain.

        Returns
        -------
        Hashable
            The state that :meth:`sample` passes to the first call of :meth:`step`.
        """
        return x

    @abstractmethod
    def step(self, state: Any, draws: Draws) -> Hashable | Finished:
        """Run one step of the sampler; subclasses must define it.

        :meth:`sample` calls ``step`` until it returns :class:`Finished`.

        Parameters
        ----------
        state
            The current state. It must hold everything that later steps depend on, because an audit merges equal
            states.
        draws
            The source of random decisions. The step must use no other randomness.

        Returns
        -------
        Hashable or Finished
            The next state, or ``Finished(report)``.
        """

    def layout_of(self, x: int) -> Layout:  # noqa: ARG002
        """Return the layout that the sampler uses for one value.

        A layout assigns the random bits of a value's frame to the decisions of the sampler. Most mechanisms use
        ``layout`` for every value.

        Parameters
        ----------
        x
            Index of the value in the domain.

        Returns
        -------
        Layout
            The layout for this value.
        """
        return self.layout

    def layouts(self) -> Sequence[Layout]:
        """Return the distinct layouts that :meth:`layout_of` returns.

        Returns
        -------
        Sequence of Layout
            Each layout once; a single layout for most mechanisms.
        """
        return (self.layout,)

    def sample(self, x: int, draws: Draws) -> int:
        """Draw a report for one value with the decisions of a given source.

        To randomize real data use :func:`privatize`, which draws from secure random bits.

        Parameters
        ----------
        x
            Index of the value in the domain.
        draws
            The source of random decisions.

        Returns
        -------
        int
            The report.
        """
        state: Any = self.start(x)
        while not isinstance(state, Finished):
            state = self.step(state, draws)
        return state.report

    def representatives(self) -> Iterable[int]:
        """Return values that an audit must enumerate if the domain is too large to enumerate all values.

        Override this method if the sampler has branches for kinds of values, such as sensitive and harmless ones, and
        return at least one value of each kind.

        Returns
        -------
        Iterable of int
            Indices of values in the domain. Audits also enumerate the first, the middle and the last value.
        """
        return ()

    def audit_surrogate(self) -> Mechanism | None:
        """Return a small instance of this class for exhaustive auditing, or None.

        If this mechanism has too many random branches, an audit enumerates the sampler of the small instance instead.
        The small instance keeps every parameter that does not depend on the number of values. It need not obey the
        policy of this mechanism.

        Returns
        -------
        Mechanism or None
            An instance over a few values, or None if the class does not define one.
        """
        return None

    @property
    def is_of_library(self) -> bool:
        """Whether Sfumato itself defines the class.

        Sfumato's tests enumerate the samplers of its classes and prove that they have exactly the output probabilities
        that :meth:`probability` states. A class defined elsewhere, even a subclass, may state other probabilities than
        its sampler has. Only :func:`audit` compares the two for such a class.
        """
        return is_library_class(type(self))

    # -- the stated law ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of distinct reports that the mechanism can send."""

    def reports(self) -> Iterable[int]:
        """Return all reports, in the order of the columns of ``matrix()``.

        Returns
        -------
        Iterable of int
            The reports; 0, 1, 2, … for a mechanism that reports an index.
        """
        return range(self.outputs)

    @abstractmethod
    def probability(self, report: int, x: int) -> Fraction:
        """Return the exact probability of a report given a value.

        Parameters
        ----------
        report
            The report, as an integer.
        x
            Index of the value in the domain.

        Returns
        -------
        Fraction
            The probability Q(report | x) that the mechanism states.
        """

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:  # noqa: ARG002
        """Return a short list of reports that is enough to check a policy, or None.

        The list must include the report that comes closest to violating the policy. Audits of large domains check only
        these reports. Override this method if the structure of the mechanism determines such a list.

        Parameters
        ----------
        policy
            The policy that the mechanism is audited against.

        Returns
        -------
        Iterator of tuple or None
            Pairs (report, likelihoods), where ``likelihoods[x]`` is Q(report | x) times a factor that does not depend
            on x, in domain order. None if no short list is known, so that an audit has to check all reports.
        """
        return None

    def tightest(self, policy: Policy) -> tuple[int, TightestConstraint] | None:  # noqa: ARG002
        """Return the report that comes closest to violating a policy, with the rule in question, or None.

        Override this method if both follow from the structure of the mechanism and of the policy, without the
        likelihoods of all values, as for a :class:`Product` policy over very many values.

        Parameters
        ----------
        policy
            The policy that the mechanism is audited against.

        Returns
        -------
        tuple or None
            The report and its tightest constraint, decided exactly. None if no such shortcut is known, so that an audit
            compares the likelihoods of all values.
        """
        return None

    def classical_epsilon(self) -> Epsilon | None:
        """Return a level ε of classical local differential privacy that the mechanism satisfies, or None.

        At this level, Q(y|x) ≤ e^ε·Q(y|x') for every report y and every pair of values x, x'.

        Returns
        -------
        Epsilon or None
            The level, or None if the class does not know one. To prove a level, pass a :class:`Uniform` policy to
            :func:`audit`.
        """
        return None

    def guess_probability(self) -> Fraction:
        """Return the probability that an observer of one report guesses the value correctly.

        The observer considers all k values equally likely before the report, and guesses the value with the greatest
        likelihood Q(report | value). Without a report, a guess is correct with probability 1/k.

        Returns
        -------
        Fraction
            (1/k)·Σ_y max_x Q(y|x), exact, where y runs over the reports and x over the values.

        Raises
        ------
        LimitExceeded
            If the table of all Q(y|x) has more than 10,000,000 entries, and the class has no formula for the sum.

        Notes
        -----
        This probability is the Bayes vulnerability of the channel at the uniform distribution (Smith 2009, "On the
        foundations of quantitative information flow").

        Examples
        --------
        >>> from sfumato import Domain
        >>> from sfumato.mechanisms import RandomizedResponse
        >>> illnesses = Domain(["none", "flu", "hiv", "cancer"])
        >>> round(float(RandomizedResponse(illnesses, 5).guess_probability()), 6)
        0.980187
        >>> RandomizedResponse(illnesses, 0).guess_probability()
        Fraction(1, 4)
        """
        size = len(self.domain)
        if size * self.outputs > LARGEST_MATRIX:
            raise LimitExceeded(
                f"guess_probability() cannot enumerate the outputs of {self.name} over {size} values: values times "
                f"outputs may be at most {LARGEST_MATRIX:,}. Compute it for a domain with fewer values."
            )
        greatest = (max(self.probability(y, x) for x in range(size)) for y in self.reports())
        return sum(greatest, Fraction(0)) / size

    @functools.cached_property
    def estimator(self) -> Estimator:
        """Estimator that turns the counts of this mechanism's reports into unbiased frequencies.

        If the reports do not distinguish all values, the estimator of a table has ``is_complete`` False and estimates
        only some sums of frequencies. Other mechanisms, such as those at ε = 0, raise :class:`NotIdentifiable`, a
        subclass of ``InvalidInput``.
        """
        return estimator_for(self)

    def risk(self, n: int, p: Frequencies | None = None) -> float:
        """Return the risk: the expected squared error of the frequencies estimated from n reports.

        Parameters
        ----------
        n
            The number of reports.
        p
            The distribution p of the values; uniform by default. A sequence is in domain order. A mapping or a pandas
            Series is aligned by its labels.

        Returns
        -------
        float
            E[Σ_x (p̂_x - p_x)²] for the unbiased estimate p̂, summed over all values x. It decreases as 1/n, and is
            infinite if the reports do not distinguish all values.
        """
        # E|mean φ - p|² = (E|φ|² - |p|²)/n for any estimate that is a mean over the reports.
        count = checked_count("risk", n)
        probabilities = checked_distribution(p, self.domain)
        second_moments = self._second_moments()
        if second_moments is None:
            return math.inf
        return max(float(second_moments @ probabilities - probabilities @ probabilities), 0.0) / count

    def worst_risk(self, n: int) -> float:
        """Return the greatest risk over all distributions of the values.

        The risk is the expected squared error of the frequencies estimated from n reports, summed over all values; see
        :meth:`risk`.

        Parameters
        ----------
        n
            The number of reports.

        Returns
        -------
        float
            The maximum over p of ``risk(n, p)``. It is infinite if the reports do not distinguish all values.
        """
        # With second moments m, the risk m·p - |p|² is concave in p. Its maximum is at p = max(m - λ, 0)/2 with sum
        # one, which is the point of the simplex nearest to m/2.
        count = checked_count("worst_risk", n)
        second_moments = self._second_moments()
        if second_moments is None:
            return math.inf
        return self.risk(count, project_to_simplex(second_moments / 2))

    def _second_moments(self) -> Floats | None:
        """Return the second moments of the estimator, or None if reports do not distinguish all values."""
        try:
            return self.estimator.second_moments()
        except NotIdentifiable:
            return None

    def matrix(self) -> npt.NDArray[np.float64]:
        """Return the probabilities Q(y|x) of all reports y for all values x, as floats.

        Use :meth:`channel` for exact fractions.

        Returns
        -------
        ndarray
            Shape (k, outputs): one row per value in domain order, one column per report in the order of ``reports()``.

        Raises
        ------
        LimitExceeded
            If the matrix has more than 10,000,000 entries.
        """
        entries = len(self.domain) * self.outputs
        if entries > LARGEST_MATRIX:
            raise LimitExceeded(
                f"the matrix of {self.name} has {count_text(entries)} entries, more than the limit of "
                f"{LARGEST_MATRIX}. Use probability(report, x) for single entries."
            )
        reports = list(self.reports())
        return np.array([[float(self.probability(y, x)) for y in reports] for x in range(len(self.domain))])

    def channel(self, values: Iterable[Any] | None = None) -> Channel:
        """Return the exact probabilities Q(y|x) of all reports y as a :class:`Channel`.

        Parameters
        ----------
        values
            The values whose rows are returned, in this order; all values of the domain by default.

        Returns
        -------
        Channel
            A row of exact fractions per value and a column per report. Its ``outputs`` are the reports, as integers.

        Raises
        ------
        LimitExceeded
            If the channel has more than 1,000,000 entries.

        Examples
        --------
        >>> from sfumato import Domain
        >>> from sfumato.mechanisms import BinaryOptimal
        >>> channel = BinaryOptimal(Domain(["yes", "no"]), "ln 3", "ln 3").channel()
        >>> channel.posterior(["1/2", "1/2"], 0)
        (Fraction(3, 4), Fraction(1, 4))
        """
        domain = self.domain if values is None else self.domain.subset(values)
        check_channel_size(len(domain), self.outputs, f"the channel of {self.name}")
        reports = list(self.reports())
        indices = [self.domain.index(label) for label in domain]
        return Channel(domain, [[self.probability(y, x) for y in reports] for x in indices], reports)

    # -- reports -----------------------------------------------------------------------------------------

    @functools.cached_property
    def report_format(self) -> ReportFormat:
        """Object that encodes, validates and counts the reports of this mechanism."""
        return format_for(self)

    @property
    def bits(self) -> int:
        """Length of a report in bits."""
        return self.report_format.bits

    # -- the spec ----------------------------------------------------------------------------------------

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the parameters from which :meth:`from_parameters` rebuilds the mechanism.

        Subclasses must define this method. The result is the entry ``"parameters"`` of :attr:`spec`.

        Returns
        -------
        dict
            JSON-compatible parameters by name, without the domain.
        """

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> Self:
        """Rebuild a mechanism from its parameters.

        By default, the constructor receives the domain, and the parameters by name. To rebuild a mechanism of any class
        from its spec, call :func:`mechanism_from_spec`.

        Parameters
        ----------
        domain
            The values that the mechanism randomizes.
        parameters
            The dictionary that :meth:`parameters` returned.

        Returns
        -------
        Mechanism
            A mechanism equal to the one whose ``parameters()`` were passed.
        """
        return cls(domain, **parameters)  # type: ignore[call-arg]

    @property
    def spec(self) -> dict[str, Any]:
        """JSON-compatible dictionary from which a client in any language can run this mechanism.

        Its keys are ``"mechanism"`` (the name), ``"version"``, ``"domain"``, ``"parameters"``, ``"report"`` (encoding
        and length in bits) and ``"layout"``. :func:`mechanism_from_spec` rebuilds the mechanism from it.
        """
        return {
            "mechanism": self.name,
            "version": self.version,
            "domain": self.domain.to_dict(),
            "parameters": self.parameters(),
            "report": {"encoding": self.report_format.encoding, "bits": self.bits},
            "layout": self.layout_document(),
        }

    def layout_document(self) -> Any:
        """Return the entry ``"layout"`` of :attr:`spec`: which random bits each decision of the sampler reads.

        Returns
        -------
        Any
            A JSON-compatible object; for most mechanisms, the dictionary of ``layout.document()``.
        """
        return self.layout.document()

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 hash of the canonical JSON form of :attr:`spec`, as 64 hexadecimal digits."""
        return canonical_hash(self.spec)

    def to_json(self) -> str:
        """Return :attr:`spec` as a JSON string, which :func:`mechanism_from_spec` reads.

        Returns
        -------
        str
            Indented JSON that ends with a newline.
        """
        return json.dumps(self.spec, indent=2, ensure_ascii=False) + "\n"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return type(self) is type(other) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.hash)

    def __getstate__(self) -> dict[str, Any]:
        # The estimator follows from the spec and may hold large tables, so it is neither pickled nor copied.
        return {name: value for name, value in self.__dict__.items() if name != "estimator"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, {_brief(self.parameters())})"


def surrogate_of(mechanism: Mechanism) -> Mechanism | None:
    """Return the audit surrogate of a mechanism, or None if it is of another class."""
    surrogate = mechanism.audit_surrogate()
    return surrogate if type(surrogate) is type(mechanism) else None


def mechanism_from_spec(spec: Any) -> Mechanism:
    """Rebuild a mechanism from its spec, the JSON-compatible dictionary that defines it.

    Parameters
    ----------
    spec
        The dictionary :attr:`Mechanism.spec`, or the JSON string that :meth:`Mechanism.to_json` returns.

    Returns
    -------
    Mechanism
        A mechanism whose spec is equal to the given one.

    Raises
    ------
    InvalidInput
        If the spec is not JSON or lacks an entry. Also if a derived entry, such as the layout, does not follow from the
        parameters.
    UnknownSpec
        If no class of Sfumato, and no class passed to :func:`register`, has the spec's mechanism name and version.

    Examples
    --------
    >>> import sfumato as sf
    >>> mechanism = sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3")
    >>> sf.mechanism_from_spec(mechanism.to_json()) == mechanism
    True
    """
    if isinstance(spec, (str, bytes)):
        try:
            spec = json.loads(spec)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(
                "a mechanism spec", "the document", "be JSON", Description(error), hint=_WRITE_AGAIN
            ) from None
    if not isinstance(spec, dict):
        raise InvalidInput("a mechanism spec", "the document", "be a JSON object", spec, hint=_WRITE_AGAIN)
    check_kind("a mechanism spec", "the spec of a mechanism", spec)
    name = spec.get("mechanism")
    kind = class_named(name)
    if kind is None:
        known = ", ".join(sorted(mechanism_classes()))
        hint = "If a package defines the mechanism, import the module that registers it."
        raise UnknownSpec("a mechanism spec", "mechanism", f"be one of {known}", name, hint=hint)
    if spec.get("version") != kind.version:
        hint = "Read the spec with the version of Sfumato that wrote it, or write it again with this one."
        version = spec.get("version")
        raise UnknownSpec(f"the spec of {kind.name}", "version", f"be {kind.version}", version, hint=hint)
    parameters = spec.get("parameters")
    if not isinstance(parameters, dict):
        raise InvalidInput(f"the spec of {kind.name}", "parameters", "be a JSON object", parameters)
    try:
        mechanism = kind.from_parameters(Domain.from_dict(spec["domain"]), parameters)
    except (KeyError, TypeError) as error:
        must = "have all its parts and no others"
        got = Description(f"no {error}" if isinstance(error, KeyError) else error)
        raise InvalidInput(f"the spec of {kind.name}", "the document", must, got, hint=_WRITE_AGAIN) from None
    # A spec also states derived fields (encoding, layout) for other clients. They must agree with the parameters.
    rebuilt = mechanism.spec
    for key in {*spec, *rebuilt}:
        if spec.get(key) != rebuilt.get(key):
            hint = f"The other entries of the spec determine this one. {_WRITE_AGAIN}"
            raise InvalidInput(f"the spec of {kind.name}", key, f"be {rebuilt.get(key)}", spec.get(key), hint=hint)
    return mechanism


def read_epsilon(mechanism: str, epsilon: Any) -> Epsilon:
    """Return the epsilon of a mechanism; errors name the mechanism."""
    return Epsilon(epsilon, subject=mechanism)


def _brief(parameters: dict[str, Any]) -> str:
    """Return the parameters for a repr, with long values left out."""
    shown = {key: value if len(repr(value)) <= 40 else "…" for key, value in parameters.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())
