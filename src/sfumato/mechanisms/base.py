"""What every mechanism is: a frozen spec, a sampler, and the exact law it states.

The *sampler* is what runs: a small state machine that makes its random choices through ``Draws``. The *stated
law* is what formulas, risks and large audits use. The contract suite in ``sfumato.testing`` proves them equal.
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


#: `matrix()` refuses to build more entries than this.
LARGEST_MATRIX = 10**7
#: Maximum number of values of an audit surrogate: all branches of its sampler are read in a moment.
SURROGATE_VALUES = 6


@dataclass(frozen=True)
class Finished:
    """The last state of a sampler: its report."""

    report: int


class Mechanism(ABC):
    """A randomizer of one value. Immutable; everything about it follows from its spec.

    A report is an integer of ``bits`` bits: the index of an output, or a bitmap over the domain (bit i for
    value i). It has one serialised form, of constant length, so order, length and precision carry nothing.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    domain: Domain
    #: Which bits of a frame the decisions read. Without fields they read the auxiliary stream alone.
    layout: Layout = Layout(64, ())

    # -- the sampler: what runs --------------------------------------------------------------------------

    def start(self, x: int) -> Hashable:
        """The sampler's first state for the value with index x."""
        return x

    @abstractmethod
    def step(self, state: Any, draws: Draws) -> Hashable | Finished:
        """The next state. All that follows depends on the state alone, so equal states can be merged."""

    def layout_of(self, x: int) -> Layout:  # noqa: ARG002
        """Which bits of a frame the decisions for the value with index x read."""
        return self.layout

    def layouts(self) -> Sequence[Layout]:
        """All the different layouts that values have."""
        return (self.layout,)

    def sample(self, x: int, draws: Draws) -> int:
        """Run the sampler on the value with index x."""
        state: Any = self.start(x)
        while not isinstance(state, Finished):
            state = self.step(state, draws)
        return state.report

    def representatives(self) -> Iterable[int]:
        """One value of each kind that the sampler treats in its own way; an audit reads these among others."""
        return ()

    def audit_surrogate(self) -> Mechanism | None:
        """One of the same class over a few values, read where this one has too many branches; None if none is known.

        What is not bound to the number of values stays as it is. Its law follows its own rule, not that of a policy.
        """
        return None

    @property
    def is_of_library(self) -> bool:
        """Whether the class that runs is one of Sfumato's own, whose sampler the contract suite holds to its law.

        Any other may sample otherwise than it states, a subclass too.
        """
        return is_library_class(type(self))

    # -- the stated law ----------------------------------------------------------------------------------

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many different reports there are."""

    def reports(self) -> Iterable[int]:
        """All reports, in the order of the columns of ``matrix()``; of an index mechanism 0, 1, 2, ..."""
        return range(self.outputs)

    @abstractmethod
    def probability(self, report: int, x: int) -> Fraction:
        """The exact probability of a report given the value with index x."""

    def worst_columns(self, policy: Policy) -> Iterator[tuple[int, list[Fraction]]] | None:  # noqa: ARG002
        """Reports with their likelihoods (up to a factor), among which is the worst of all reports for this policy.

        None where no shorter statement is known than all reports.
        """
        return None

    @property
    def stated_epsilon(self) -> Epsilon | None:
        """The level ε that the mechanism was made for, if it has one."""
        epsilon = getattr(self, "epsilon", None)
        return epsilon if isinstance(epsilon, Epsilon) else None

    def classical_epsilon(self) -> Epsilon | None:
        """Return the ε that the mechanism states for all pairs of values, if its stated law is known to keep it."""
        return None

    def guess_probability(self) -> Fraction:
        """Return the probability that the best guess of the value from one report is right.

        All values are taken to be equally likely before the report. Without a report the best guess is right with
        probability 1/k, where k is the number of values.

        Returns
        -------
        Fraction
            (1/k)·Σ_y max_x Q(y|x), exact.

        Raises
        ------
        LimitExceeded
            If the law has too many entries to go through and no closed form of the sum is known.

        Notes
        -----
        The guess that is right most often names a value of greatest likelihood for the report. This is the Bayes
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
                f"{self.name} over {size} values has too many outputs to go through, and no closed form of the "
                f"probability of a right guess is known"
            )
        greatest = (max(self.probability(y, x) for x in range(size)) for y in self.reports())
        return sum(greatest, Fraction(0)) / size

    @functools.cached_property
    def estimator(self) -> Estimator:
        """The estimator of frequencies from the counts of this mechanism's reports.

        It has the moments that risks, plans, standard errors and intervals are computed from. Accessing it raises
        ``NotIdentifiable``, an ``InvalidInput``, if reports do not tell all values apart, as at epsilon 0.
        """
        return estimator_for(self)

    def risk(self, n: int, p: Frequencies | None = None) -> float:
        """Return the expected squared l2 error of the unbiased estimate from n reports.

        Parameters
        ----------
        n
            The number of reports.
        p
            The distribution of the values, uniform unless given: in domain order, or with labels (a mapping, a pandas
            Series) by which it is aligned.

        Returns
        -------
        float
            The risk; infinite if reports do not tell all values apart.
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
            The risk; infinite if reports do not tell all values apart.
        """
        # m·p - |p|², m the second moments, is concave: greatest where p = max(m - λ, 0)/2 sums to one, the point of the
        # simplex nearest to m/2.
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
        """Return the distribution at which a numeric estimate has the least error; None where it has a closed form."""
        return None

    def matrix(self) -> npt.NDArray[np.float64]:
        """Q(y|x) in doubles: one row per value in domain order, one column per report."""
        entries = len(self.domain) * self.outputs
        if entries > LARGEST_MATRIX:
            raise LimitExceeded(f"a matrix of {count_text(entries)} entries is refused (at most {LARGEST_MATRIX})")
        reports = list(self.reports())
        return np.array([[float(self.probability(y, x)) for y in reports] for x in range(len(self.domain))])

    def channel(self, values: Iterable[Any] | None = None) -> Channel:
        """Return the exact law that the mechanism states.

        Parameters
        ----------
        values
            The values whose rows are returned, in this order; all values of the domain unless given.

        Returns
        -------
        Channel
            A row of exact probabilities per value and a column per report; its outputs are the reports, as integers.

        Raises
        ------
        LimitExceeded
            If the channel has too many entries to be enumerated.

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

    # -- the wire ----------------------------------------------------------------------------------------

    @functools.cached_property
    def report_format(self) -> ReportFormat:
        """How reports are written, checked and counted."""
        return format_for(self)

    @property
    def bits(self) -> int:
        """The length of a report in bits."""
        return self.report_format.bits

    # -- the spec ----------------------------------------------------------------------------------------

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The mechanism's own parameters: JSON-able, and enough to rebuild it."""

    @classmethod
    @abstractmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> Mechanism:
        """The inverse of ``parameters``."""

    @property
    def spec(self) -> dict[str, Any]:
        """Everything a client in any language needs to run this mechanism."""
        return {
            "mechanism": self.name,
            "version": self.version,
            "domain": self.domain.to_dict(),
            "parameters": self.parameters(),
            "report": {"encoding": self.report_format.encoding, "bits": self.bits},
            "layout": self.layout_document(),
        }

    def layout_document(self) -> Any:
        """The layout as part of the spec."""
        return self.layout.document()

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON spec."""
        return canonical_hash(self.spec)

    def to_json(self) -> str:
        """The spec as a JSON text."""
        return json.dumps(self.spec, indent=2, ensure_ascii=False) + "\n"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return type(self) is type(other) and self.spec == other.spec

    def __hash__(self) -> int:
        return hash(self.hash)

    def __getstate__(self) -> dict[str, Any]:
        # The estimator follows from the spec and may hold large tables: neither pickled nor copied.
        return {name: value for name, value in self.__dict__.items() if name != "estimator"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, {_brief(self.parameters())})"


def surrogate_of(mechanism: Mechanism) -> Mechanism | None:
    """Return the audit surrogate of a mechanism if it is of the same class: another says nothing about this one."""
    surrogate = mechanism.audit_surrogate()
    return surrogate if type(surrogate) is type(mechanism) else None


def mechanism_from_spec(spec: Any) -> Mechanism:
    """Rebuild a mechanism from its spec (a dict, or a JSON text); refuse what is unknown or inconsistent."""
    if isinstance(spec, (str, bytes)):
        try:
            spec = json.loads(spec)
        except (ValueError, RecursionError) as error:
            raise InvalidInput("a mechanism spec", "the text", "be JSON", str(error)) from None
    if not isinstance(spec, dict):
        raise InvalidInput("a mechanism spec", "the document", "be a JSON object", spec)
    name = spec.get("mechanism")
    kind = class_named(name)
    if kind is None:
        known = ", ".join(sorted(mechanism_classes()))
        must = f"be one of {known}, or of a class that an imported module registers"
        raise UnknownSpec("a mechanism spec", "mechanism", must, name)
    if spec.get("version") != kind.version:
        raise UnknownSpec(f"the spec of {kind.name}", "version", f"be {kind.version}", spec.get("version"))
    parameters = spec.get("parameters")
    if not isinstance(parameters, dict):
        raise InvalidInput(f"the spec of {kind.name}", "parameters", "be a JSON object", parameters)
    try:
        mechanism = kind.from_parameters(Domain.from_dict(spec["domain"]), parameters)
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"the spec of {kind.name}", "the document", "have all its parts", str(error)) from None
    # What is derived (encoding, layout) is stated for other clients; a spec that states it otherwise is refused.
    rebuilt = mechanism.spec
    for key in {*spec, *rebuilt}:
        if spec.get(key) != rebuilt.get(key):
            raise InvalidInput(f"the spec of {kind.name}", key, f"be {rebuilt.get(key)}", spec.get(key))
    return mechanism


def read_epsilon(mechanism: str, epsilon: Any) -> Epsilon:
    """The epsilon of a mechanism, with its name in the error."""
    return Epsilon(epsilon, subject=mechanism)


def _brief(parameters: dict[str, Any]) -> str:
    shown = {key: value if len(repr(value)) <= 40 else "…" for key, value in parameters.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items())
