"""How a mechanism divides into a permanent answer and a report about it.

Families with a closed form have one in their module ``memory.py``, which their registry entry names.

A form takes two mechanisms that differ only in their level: the law of one report, and the law of the permanent answer.
A report is the permanent answer with probability ρ, and otherwise a report that does not depend on the value. The
functions of a form return ρ, a sampler of such *blank* reports, and the part of the values to which an answer belongs.
The sets of subset selection, alone or in a part, may also differ in size: a report then extends the permanent set with
probability ρ.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from sfumato._core import ZERO, Epsilon, Floats
from sfumato.errors import InvalidInput
from sfumato.mechanisms.base import Finished, Mechanism
from sfumato.mechanisms.draws import Draws
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.policy import Policy, on_pairs

__all__ = [
    "KEEP_BITS",
    "MIXTURE",
    "Form",
    "MixtureForm",
    "Odds",
    "ResponseForm",
    "at_level",
    "check_sets",
    "mixture_odds",
    "moments_of_copies",
]

#: Bits of the probability ρ of a table. Weights of a permanent table are multiples of 2^22, so that the law of one
#: report has integer weights too.
KEEP_BITS = 22

Kind = TypeVar("Kind", bound=Mechanism)
#: A probability as two integers: numerator and denominator.
Odds = tuple[int, int]


class Form(ABC, Generic[Kind]):
    """Division of a class of mechanisms into permanent answers and reports.

    ``shares_answers`` states whether several values may share a permanent answer.
    """

    shares_answers = False

    @abstractmethod
    def permanent_for(self, single: Kind, lifetime: Policy) -> Kind | None:
        """Return the same mechanism at the levels of the lifetime policy, or None if the policy has another form."""

    @abstractmethod
    def check(self, single: Kind, permanent: Kind) -> None:
        """Raise InvalidInput unless the two mechanisms differ only in their levels."""

    @abstractmethod
    def keep(self, single: Kind, permanent: Kind) -> tuple[Odds, ...]:
        """Return the probability ρ that a report is the permanent answer, for each part of the values."""

    @abstractmethod
    def blank(self, single: Kind, permanent: Kind) -> Kind:
        """Return the mechanism of reports that depend only on the part of a value."""

    def part_of(self, permanent: Kind, x: int) -> int:  # noqa: ARG002
        """Return the part of a value."""
        return 0

    def value_like(self, permanent: Kind, report: int) -> int:  # noqa: ARG002
        """Return a value of the part to which a report belongs."""
        return 0

    # -- reports that keep the permanent answer ------------------------------------------------------------------

    def extend(self, permanent: Kind, blank: Kind, answer: int) -> Hashable | Finished:  # noqa: ARG002
        """Return the report that keeps a permanent answer, or the first state of a sampler that draws one."""
        return Finished(answer)

    def extend_step(self, blank: Kind, state: Any, draws: Draws) -> Hashable | Finished:
        """Run one step of the sampler of reports that keep a permanent answer."""
        raise NotImplementedError

    def extension_probability(self, permanent: Kind, blank: Kind, report: int, answer: int) -> Fraction:  # noqa: ARG002
        """Return the probability of a report that keeps a permanent answer."""
        return Fraction(report == answer)

    def joint_probability(
        self,
        permanent: Kind,
        blank: Kind,  # noqa: ARG002
        reports: Sequence[int],
        x: int,
        keep: Fraction,
        blank_probabilities: Sequence[Fraction],
    ) -> Fraction:
        """Return the probability of several reports about one answer.

        ``blank_probabilities`` has the probability of each report to be blank and to be this one.
        """
        # A report differs from the permanent answer only if it is blank, so answers that were not reported are alike.
        all_blank = math.prod(blank_probabilities, start=Fraction(1))
        total = all_blank
        for answer in dict.fromkeys(reports):
            likelihood = permanent.probability(answer, x)
            pairs = zip(reports, blank_probabilities, strict=True)
            total += likelihood * (math.prod(rest + keep * (report == answer) for report, rest in pairs) - all_blank)
        return total

    def shared_moments(self, single: Kind, permanent: Kind, u: Floats) -> Floats:  # noqa: ARG002
        """Return Σ_x u(x)·E[ψ_v(Z)² | x] for every value v, where ψ(z) is the mean score of reports about an answer z.

        Reports about an answer have affine counts, and so has the answer itself. Only one affine score is unbiased, so
        ψ is the score of the permanent mechanism.
        """
        return moments_of_copies(permanent, u)

    def variants(self, single: Kind, lifetime: Policy) -> Iterable[Kind]:  # noqa: ARG002
        """Return mechanisms of one report at the same level whose sets may suit means over many waves better."""
        return ()

    def most_answers(self, permanent: Kind) -> int:
        """Return the greatest number of permanent answers that one person needs: one per value or bucket."""
        return len(permanent.domain)

    def key(self, permanent: Kind, x: int, earlier: int) -> int:  # noqa: ARG002
        """Return the number under which a device stores the permanent answer of a value."""
        return x

    def start(self, permanent: Kind, x: int, earlier: int | None) -> Hashable:  # noqa: ARG002
        """Return the first state of the sampler for a further permanent answer of a person."""
        return permanent.start(x)


def moments_of_copies(mechanism: Mechanism, u: Floats) -> Floats:
    """Return Σ_x u(x)·E[φ_v(Y)² | x] for every value v, with the score φ(y) of a report that is sent twice."""
    total = float(u.sum())
    if total <= 0:
        return np.zeros(len(u))
    p = u / total
    return total * np.maximum(mechanism.estimator.variances(p) + p**2, 0.0)


def mixture_odds(single: Mixture, permanent: Mixture) -> Odds:
    """Return ρ of two mixtures over the same sets; it is 1 if both are uniform."""
    if single.threshold > permanent.threshold:
        must = "be at least as large as the level of one report"
        raise InvalidInput("MemoizedMechanism", "the level of the permanent answer", must, permanent)
    return (single.threshold, permanent.threshold) if permanent.threshold else (1, 1)


def at_level(mechanism: Kind, epsilon: Epsilon) -> Kind:
    """Return the mechanism with the same sets at another level."""
    parameters = {**mechanism.parameters(), "epsilon": str(epsilon)}
    parameters.pop("threshold")
    rebuilt = type(mechanism).from_parameters(mechanism.domain, parameters)
    assert isinstance(rebuilt, type(mechanism))
    return rebuilt


def check_sets(subject: str, single: Mechanism, permanent: Mechanism) -> None:
    """Raise InvalidInput unless two mechanisms have the same class and the same parameters except the level."""
    level = {"epsilon", "threshold"}
    sets = [{key: part for key, part in each.parameters().items() if key not in level} for each in (single, permanent)]
    if type(single) is not type(permanent) or single.domain != permanent.domain or sets[0] != sets[1]:
        must = "have the class, the values and the sets of the mechanism of one report"
        raise InvalidInput("MemoizedMechanism", subject, must, permanent)


class MixtureForm(Form[Mixture]):
    """Mixtures: with probability γ the report is forced. The permanent answer has a larger γ, and ρ is their ratio."""

    def permanent_for(self, single: Mixture, lifetime: Policy) -> Mixture | None:
        pairs = on_pairs(lifetime)
        return None if pairs is None else at_level(single, pairs.least[0])

    def check(self, single: Mixture, permanent: Mixture) -> None:
        check_sets("the permanent mechanism", single, permanent)

    def keep(self, single: Mixture, permanent: Mixture) -> tuple[Odds, ...]:
        return (mixture_odds(single, permanent),)

    def blank(self, single: Mixture, permanent: Mixture) -> Mixture:  # noqa: ARG002
        return at_level(permanent, ZERO)


class ResponseForm(Form[TableMechanism]):
    """Tables that any channel joins: one report has the law of the permanent table times the channel."""

    def __init__(self, response: TableMechanism) -> None:
        self._response = response

    def permanent_for(self, single: TableMechanism, lifetime: Policy) -> TableMechanism | None:  # noqa: ARG002
        return None  # the compiler searches for both stages

    def check(self, single: TableMechanism, permanent: TableMechanism) -> None:
        tables = (single, permanent, self._response)
        sizes = len(self._response.domain) == permanent.outputs and self._response.outputs == single.outputs
        if any(type(table) is not TableMechanism for table in tables) or not sizes:
            must = "be a table with one row per permanent answer and one column per report"
            raise InvalidInput("MemoizedMechanism", "response", must, self._response)
        halves = [table.weights.astype(object) for table in (permanent, self._response)]
        product = halves[0] @ halves[1]
        if not np.array_equal(product, single.weights.astype(object) * TOTAL):
            must = "be the permanent table times the response"
            raise InvalidInput("MemoizedMechanism", "the table of one report", must, single)

    def keep(self, single: TableMechanism, permanent: TableMechanism) -> tuple[Odds, ...]:  # noqa: ARG002
        return ()

    def blank(self, single: TableMechanism, permanent: TableMechanism) -> TableMechanism:  # noqa: ARG002
        return self._response

    def joint_probability(
        self,
        permanent: TableMechanism,
        blank: TableMechanism,
        reports: Sequence[int],
        x: int,
        keep: Fraction,  # noqa: ARG002
        blank_probabilities: Sequence[Fraction],  # noqa: ARG002
    ) -> Fraction:
        answers = range(permanent.outputs)
        laws = (math.prod((blank.probability(y, z) for y in reports), start=Fraction(1)) for z in answers)
        return sum((permanent.probability(z, x) * law for z, law in zip(answers, laws, strict=True)), Fraction(0))

    def shared_moments(self, single: TableMechanism, permanent: TableMechanism, u: Floats) -> Floats:
        scores = np.array([single.estimator.output_scores(unit) for unit in np.eye(len(u))])
        return np.asarray((scores @ self._response.matrix().T) ** 2 @ (u @ permanent.matrix()))


#: The form of mixtures whose sets do not depend on the level.
MIXTURE = MixtureForm()
