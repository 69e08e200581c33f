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
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, Floats, canonical_hash, checked_count, count_text, project_to_simplex
from sfumato.domain import Domain, Frequencies, checked_distribution
from sfumato.errors import InvalidInput, LimitExceeded, UnknownSpec
from sfumato.mechanisms.channel import Channel, check_channel_size
from sfumato.mechanisms.draws import Draws, Layout
from sfumato.mechanisms.estimators.identifiability import NotIdentifiable
from sfumato.mechanisms.provenance import is_library_class
from sfumato.mechanisms.registry import class_named, estimator_for, format_for, mechanism_classes
from sfumato.mechanisms.reports.base import ReportFormat
from sfumato.policy import Policy

if TYPE_CHECKING:
    from sfumato.mechanisms.estimators.base import Estimator

__all__ = ["LARGEST_MATRIX", "SURROGATE_VALUES", "Finished", "Mechanism", "mechanism_from_spec", "surrogate_of"]


#: Maximum number of entries of `matrix()`; bounds its memory.
LARGEST_MATRIX = 10**7
#: Maximum number of values of an audit surrogate; an audit enumerates all branches of its sampler in moments.
SURROGATE_VALUES = 6


@dataclass(frozen=True)
class Finished:
    """Final state of a sampler, which holds the report.

    Parameters
    ----------
    report
        The report, as an integer.

    Examples
    --------
    >>> from sfumato.mechanisms import Finished
    >>> Finished(3)
    Finished(report=3)
    """

    report: int


class Mechanism(ABC):
    """Base class of mechanisms: randomizers of one value.

    A mechanism is immutable, and its spec determines everything about it. A report is an integer of ``bits`` bits: the
    index of an output, or a bitmap over the domain (bit i for value i). Every report has exactly one serialized form,
    of constant length, so the order, length and precision of reports reveal nothing.

    Subclasses define the sampler (``step``), the stated law (``outputs``, ``probability``) and the spec
    (``parameters``, ``from_parameters``). Use :func:`register` to add a subclass to the library.

    Attributes
    ----------
    name : str
        Name of the mechanism in specs.
    version : int
        Version of the spec's format.
    domain : Domain
        Values that the mechanism randomizes.
    layout : Layout
        Bits of a frame that the decisions read. Without fields, decisions read only the auxiliary stream.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    domain: Domain
    #: Bits of a frame that the decisions read. Without fields, decisions read only the auxiliary stream.
    layout: Layout = Layout(64, ())

    # -- the sampler: the code that runs -----------------------------------------------------------------

    def start(self, x: int) -> Hashable:
        """Return the first state of the sampler for one value.

        Parameters
        ----------
        x
            Index of the value in the domain.

        Returns
        -------
        Hashable
            The state from which ``step`` starts.
        """
        return x

    @abstractmethod
    def step(self, state: Any, draws: Draws) -> Hashable | Finished:
        """Return the state that follows another state.

        Parameters
        ----------
        state
            The current state. It determines the law of all later states, so an audit may merge equal states.
        draws
            The source of random decisions.

        Returns
        -------
        Hashable or Finished
            The next state, or the report.
        """

    def layout_of(self, x: int) -> Layout:  # noqa: ARG002
        """Return the bits of a frame that the decisions for one value read.

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
        """Return the distinct layouts of all values.

        Returns
        -------
        Sequence of Layout
            Each layout once.
        """
        return (self.layout,)

    def sample(self, x: int, draws: Draws) -> int:
        """Run the sampler on one value.

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
        """Return one value for each kind of value that the sampler treats differently.

        Returns
        -------
        Iterable of int
            Indices of values that an audit must enumerate, in addition to those it selects itself.
        """
        return ()

    def audit_surrogate(self) -> Mechanism | None:
        """Return a small instance of this class for exhaustive auditing, or None.

        An audit enumerates the surrogate's sampler when this mechanism has too many branches. The surrogate keeps every
        parameter that does not depend on the number of values. It need not obey the policy of this mechanism.

        Returns
        -------
        Mechanism or None
            An instance over at most a few values, or None if the class does not define one.
        """
        return None

    @property
    def is_of_library(self) -> bool:
        """Whether the class is defined by Sfumato, so that the contract suite has proved its sampler equal to its law.

        A class defined elsewhere may sample from a law other than the one it states, even if it is a subclass.
        """
        return is_library_class(type(self))

    # -- the stated law ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of distinct reports."""

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
        """Return a few reports that include the worst of all reports for a policy.

        Audits of large domains check only these reports.

        Parameters
        ----------
        policy
            The policy that the mechanism is audited against.

        Returns
        -------
        Iterator of tuple or None
            Pairs of a report and the likelihoods of all values for it, up to a common factor. None if the mechanism
            knows no such list, so that an audit has to check all reports.
        """
        return None

    @property
    def stated_epsilon(self) -> Epsilon | None:
        """Level ε that the mechanism was built for, or None."""
        epsilon = getattr(self, "epsilon", None)
        return epsilon if isinstance(epsilon, Epsilon) else None

    def classical_epsilon(self) -> Epsilon | None:
        """Return the level ε that the stated law is known to keep between all pairs of values, or None.

        Returns
        -------
        Epsilon or None
            The level of classical local differential privacy.
        """
        return None

    def guess_probability(self) -> Fraction:
        """Return the probability that the best guess of the value from one report is right.

        Before the report all values are equally likely. Without a report the best guess is right with probability 1/k,
        where k is the number of values.

        Returns
        -------
        Fraction
            (1/k)·Σ_y max_x Q(y|x), exact.

        Raises
        ------
        LimitExceeded
            If the law has too many entries to enumerate and the mechanism has no closed form of the sum.

        Notes
        -----
        The best guess names a value of greatest likelihood for the report. Its success probability is the Bayes
        vulnerability of the channel at the uniform distribution (Smith 2009, "On the foundations of quantitative
        information flow").

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
                f"{self.name} over {size} values has too many outputs to enumerate, and no closed form of the "
                f"probability of a right guess is known. Compute it for a domain with fewer values."
            )
        greatest = (max(self.probability(y, x) for x in range(size)) for y in self.reports())
        return sum(greatest, Fraction(0)) / size

    @functools.cached_property
    def estimator(self) -> Estimator:
        """The estimator of frequencies from the counts of this mechanism's reports.

        Its moments determine risks, plans, standard errors and intervals. Accessing the property raises
        :class:`NotIdentifiable`, a subclass of ``InvalidInput``, if reports do not tell all values apart, as at ε = 0.
        """
        return estimator_for(self)

    def risk(self, n: int, p: Frequencies | None = None) -> float:
        """Return the expected squared l2 error of the unbiased estimate from n reports.

        Parameters
        ----------
        n
            The number of reports.
        p
            The distribution of the values; uniform by default. A sequence is in domain order. A mapping or a pandas
            Series is aligned by its labels.

        Returns
        -------
        float
            The risk. It is infinite if reports do not tell all values apart.
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

        Parameters
        ----------
        n
            The number of reports.

        Returns
        -------
        float
            The risk. It is infinite if reports do not tell all values apart.
        """
        # With second moments m, the risk m·p - |p|² is concave in p. Its maximum is at p = max(m - λ, 0)/2 with sum
        # one, which is the point of the simplex nearest to m/2.
        count = checked_count("worst_risk", n)
        second_moments = self._second_moments()
        if second_moments is None:
            return math.inf
        return self.risk(count, project_to_simplex(second_moments / 2))

    def _second_moments(self) -> Floats | None:
        """Return the second moments of the estimator, or None if reports do not tell all values apart."""
        try:
            return self.estimator.second_moments()
        except NotIdentifiable:
            return None

    def design_distribution(self) -> Floats | None:
        """Return the distribution at which the numeric estimator has the least error.

        Returns
        -------
        ndarray or None
            A probability per value, or None if the estimator has a closed form.
        """
        return None

    def matrix(self) -> npt.NDArray[np.float64]:
        """Return the law Q(y|x) as a matrix of doubles.

        Returns
        -------
        ndarray
            One row per value in domain order, one column per report in the order of ``reports()``.

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
        """Return the exact law that the mechanism states.

        Parameters
        ----------
        values
            The values whose rows are returned, in this order; all values of the domain by default.

        Returns
        -------
        Channel
            A row of exact probabilities per value and a column per report. The outputs are the reports, as integers.

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
        check_channel_size(len(domain), self.outputs, f"the law of {self.name}")
        reports = list(self.reports())
        indices = [self.domain.index(label) for label in domain]
        return Channel(domain, [[self.probability(y, x) for y in reports] for x in indices], reports)

    # -- reports -----------------------------------------------------------------------------------------

    @functools.cached_property
    def report_format(self) -> ReportFormat:
        """Format in which reports are encoded, validated and counted."""
        return format_for(self)

    @property
    def bits(self) -> int:
        """Length of a report in bits."""
        return self.report_format.bits

    # -- the spec ----------------------------------------------------------------------------------------

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Return the parameters from which ``from_parameters`` rebuilds the mechanism.

        Returns
        -------
        dict
            JSON-serializable parameters, without the domain.
        """

    @classmethod
    @abstractmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> Mechanism:
        """Rebuild a mechanism from its parameters; the inverse of ``parameters``.

        Parameters
        ----------
        domain
            The values that the mechanism randomizes.
        parameters
            The dictionary that ``parameters`` returned.

        Returns
        -------
        Mechanism
            An equal mechanism.
        """

    @property
    def spec(self) -> dict[str, Any]:
        """JSON-serializable document from which a client in any language can run this mechanism."""
        return {
            "mechanism": self.name,
            "version": self.version,
            "domain": self.domain.to_dict(),
            "parameters": self.parameters(),
            "report": {"encoding": self.report_format.encoding, "bits": self.bits},
            "layout": self.layout_document(),
        }

    def layout_document(self) -> Any:
        """Return the layout as the spec states it.

        Returns
        -------
        Any
            A JSON-serializable document.
        """
        return self.layout.document()

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON spec, in hexadecimal."""
        return canonical_hash(self.spec)

    def to_json(self) -> str:
        """Return the spec as a JSON string.

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
    """Rebuild a mechanism from its spec.

    Parameters
    ----------
    spec
        The spec, as a dictionary or as a JSON string.

    Returns
    -------
    Mechanism
        A mechanism whose spec is equal to the given one.

    Raises
    ------
    InvalidInput
        If the spec is not JSON, lacks a part, or states a derived field (such as the layout) that does not follow from
        its parameters.
    UnknownSpec
        If no registered class has the spec's mechanism name and version.

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
            raise InvalidInput("a mechanism spec", "the document", "be JSON", str(error)) from None
    if not isinstance(spec, dict):
        raise InvalidInput("a mechanism spec", "the document", "be a JSON object", spec)
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
        hint = "Write the spec again with to_json()."
        raise InvalidInput(
            f"the spec of {kind.name}", "the document", "have all its parts", str(error), hint=hint
        ) from None
    # A spec also states derived fields (encoding, layout) for other clients. They must agree with the parameters.
    rebuilt = mechanism.spec
    for key in {*spec, *rebuilt}:
        if spec.get(key) != rebuilt.get(key):
            hint = "The other fields of the spec determine this one; write the spec again with to_json()."
            raise InvalidInput(f"the spec of {kind.name}", key, f"be {rebuilt.get(key)}", spec.get(key), hint=hint)
    return mechanism


def read_epsilon(mechanism: str, epsilon: Any) -> Epsilon:
    """Return the epsilon of a mechanism; errors name the mechanism."""
    return Epsilon(epsilon, subject=mechanism)


def _brief(parameters: dict[str, Any]) -> str:
    """Return the parameters for a repr, with long values left out."""
    shown = {key: value if len(repr(value)) <= 40 else "…" for key, value in parameters.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())
