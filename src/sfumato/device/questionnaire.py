"""Several questions to one person, who has one classical budget for all of them.

There are three ways to divide it. *Split*: every question is answered, each at a part of ε; the parts add up to it.
*Sample*: each person answers one question at the full ε; it is drawn beforehand, whatever the answers, and so tells
nothing of them. *Joint*: one report about the combination of all answers, at the full ε; it alone tells how answers
depend on each other. ``plan`` predicts the error of each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato._core import (
    ZERO,
    Epsilon,
    EpsilonLike,
    Floats,
    FrozenData,
    Result,
    check_keys,
    checked_count,
    checked_type,
    exact_fraction,
    read_items,
    read_string,
    reads_document,
    unused_name,
)
from sfumato.compiler import Row, plan
from sfumato.domain import Domain, read_mapping
from sfumato.errors import InvalidInput, UnknownSpec
from sfumato.estimation import Estimate, LinearEstimate
from sfumato.mechanisms import BitDraws, Draws, Mechanism
from sfumato.policy import Uniform
from sfumato.randomness import AUXILIARY, Stream, WordReader, secure

__all__ = ["CrossTable", "Questionnaire", "QuestionnairePlan", "Sampling", "Strategy", "cross_table"]

#: Weights that people give: one per question, positive, in any unit.
Weights = Mapping[str, Any]

#: Searched weights are multiples of 1/32 of an even fraction.
_PARTS = 32
#: A joint report is not compared where its combinations times the answers of all questions exceed this.
_LARGEST_JOINT = 10**7
#: ``below`` reads 32 bits.
_LARGEST_DENOMINATOR = 2**32
#: Columns of numbers in a cross-table; a question with one of these names is renamed.
_TABLE_COLUMNS = ("frequency", "standard_error")


@dataclass(frozen=True)
class Sampling:
    """Each person answers one question at the full ε: ``policies`` of the questions, and how often each is drawn."""

    policies: dict[str, Uniform]
    weights: dict[str, Fraction]

    def choose(self, stream: Stream | None = None) -> str:
        """The question that one person answers: exactly by the weights, from secure bits.

        It must be drawn before the answers are looked at, and once per person. ``stream`` is for tests only.
        """
        if stream is None:
            return self.draw(BitDraws(secure.bits))
        key, chunk = stream.reserve(1)
        return self.draw(BitDraws(WordReader(key, chunk, AUXILIARY).word))

    def draw(self, draws: Draws) -> str:
        """The same, through any draws: one whole number below the common denominator of the weights."""
        denominator = math.lcm(*(weight.denominator for weight in self.weights.values()))
        left = draws.below(denominator)
        for name, weight in self.weights.items():
            left -= int(weight * denominator)
            if left < 0:
                return name
        raise AssertionError("the weights sum to one")


@dataclass(frozen=True)
class Strategy:
    """One way to divide the budget, and the error to expect of it.

    ``risk`` is the expected squared l2 error, summed over ``risks`` of the questions. ``weights`` are shares of the
    budget or of the people. ``mechanisms`` names for each question what answers it; a joint one answers all.
    ``bits`` is the most that one person sends.
    """

    name: str
    risk: float
    risks: dict[str, float]
    weights: dict[str, Fraction] | None
    mechanisms: dict[str, Mechanism]
    bits: int


@dataclass(frozen=True)
class QuestionnairePlan:
    """Every strategy for n people, the best first. ``left_out`` says what was not compared, and why."""

    n: int
    rows: tuple[Strategy, ...]
    left_out: str | None = None

    @property
    def best(self) -> Strategy:
        """The least total risk; among equals the simplest."""
        return self.rows[0]

    @property
    def reason(self) -> str:
        """Why the best strategy is recommended, in a sentence."""
        best = self.best
        even = next(row for row in self.rows if row.name == "split evenly")
        gain = f", {even.risk / best.risk:.3g} times less than splitting evenly" if best.risk < even.risk else ""
        error = f"the least expected squared error over all questions of those compared ({best.risk:.3g}{gain})"
        return f"{best.name}: {_HOW[best.name]}; {error}"

    def __str__(self) -> str:
        lines = [f"{len(self.rows[0].risks)} questions, n = {self.n}"]
        lines.append(f"{'':2}{'strategy':18}{'l2 risk':>12}{'bits':>8}  weights")
        for row in self.rows:
            weights = ", ".join(f"{name} {weight}" for name, weight in (row.weights or {}).items())
            lines.append(
                f"{'* ' if row is self.best else '  '}{row.name:18}{row.risk:12.4g}{row.bits:8}  {weights}".rstrip()
            )
        return "\n".join([*lines, *([self.left_out] if self.left_out else []), self.reason])


_HOW = {
    "split evenly": "everybody answers all questions, each at an equal part of epsilon",
    "split by weights": "everybody answers all questions, each at its own part of epsilon",
    "sample evenly": "each person answers one question at the full epsilon",
    "sample by weights": "each person answers one question at the full epsilon, some questions more often than others",
    "joint": "everybody sends one report about all answers together",
}


class Questionnaire:
    """Questions that one person answers within one budget of classical LDP.

    >>> health = Questionnaire({"smokes": Domain(["yes", "no"]), "age": Domain.range(9)}, epsilon=2)
    >>> {name: str(policy.epsilon) for name, policy in health.split({"smokes": 1, "age": 3}).items()}
    {'smokes': '0.5', 'age': '1.5'}
    """

    def __init__(self, questions: Mapping[str, Domain], epsilon: EpsilonLike) -> None:
        self.questions = _read_questions(questions)
        self.epsilon = Epsilon(epsilon, subject="Questionnaire")
        if self.epsilon == ZERO:
            raise InvalidInput("Questionnaire", "epsilon", "be more than 0: nothing can be asked for nothing", epsilon)

    def split(self, weights: Weights | None = None) -> dict[str, Uniform]:
        """The policy of each question if everybody answers all: parts of ε that add up to it exactly."""
        fractions = self._fractions(weights)
        return {name: Uniform(domain, self.epsilon * fractions[name]) for name, domain in self.questions.items()}

    def sampled(self, weights: Weights | None = None) -> Sampling:
        """One question per person, at the full ε: drawn with these weights, evenly unless given."""
        fractions = self._fractions(weights)
        denominator = math.lcm(*(fraction.denominator for fraction in fractions.values()))
        if denominator > _LARGEST_DENOMINATOR:
            must = f"have a common denominator of at most {_LARGEST_DENOMINATOR}"
            raise InvalidInput("Questionnaire", "weights", must, denominator)
        return Sampling({name: Uniform(domain, self.epsilon) for name, domain in self.questions.items()}, fractions)

    def choose(self, stream: Stream | None = None, *, weights: Weights | None = None) -> str:
        """The question that one person answers; see ``Sampling.choose``."""
        return self.sampled(weights).choose(stream)

    def joint(self) -> Uniform:
        """The policy of one report about all answers: a ``Domain.product`` of the questions, at the full ε."""
        return Uniform(Domain.product(**self.questions), self.epsilon)

    def plan(self, n: int) -> QuestionnairePlan:
        """Predict the error of each strategy with n people: exact risks at uniform answers, summed over the questions.

        Weights are searched among multiples of 1/32 of an even fraction, from the even ones by ever smaller steps: what
        is found is a local optimum. When questions are sampled, n·weight people are taken to answer each.
        """
        n = checked_count("Questionnaire.plan", n)
        best: dict[tuple[str, Fraction], Row] = {}

        def row(name: str, fraction: Fraction) -> Row:
            """The best mechanism for one question at a fraction of ε, with the risk of one report."""
            if (name, fraction) not in best:
                best[name, fraction] = plan(Uniform(self.questions[name], self.epsilon * fraction), 1).best
            return best[name, fraction]

        def split(name: str, fraction: Fraction) -> float:
            return row(name, fraction).risk

        def sampled(name: str, fraction: Fraction) -> float:
            return row(name, Fraction(1)).risk / float(fraction)

        even, everything = self._fractions(None), dict.fromkeys(self.questions, Fraction(1))
        rows = []
        for verb, cost, bits in (("split", split, sum), ("sample", sampled, max)):
            for how, fractions in (("evenly", even), ("by weights", _best_fractions(cost, even))):
                risks = {name: cost(name, fraction) / n for name, fraction in fractions.items()}
                used = fractions if verb == "split" else everything
                mechanisms = {name: row(name, fraction).mechanism for name, fraction in used.items()}
                most = bits(mechanism.bits for mechanism in mechanisms.values())
                rows.append(Strategy(f"{verb} {how}", sum(risks.values()), risks, fractions, mechanisms, most))
        combinations = math.prod(len(domain) for domain in self.questions.values())
        answers = sum(len(domain) for domain in self.questions.values())
        left_out = None
        if combinations * answers <= _LARGEST_JOINT:
            joint, skipped = self._joint_strategy(n)
            rows.append(joint)
            left_out = None if skipped is None else f"joint: not compared: {skipped}"
        else:
            left_out = f"joint: not compared, for there are {combinations} combinations of answers"
        return QuestionnairePlan(n, tuple(sorted(rows, key=lambda row: row.risk)), left_out)

    def _joint_strategy(self, n: int) -> tuple[Strategy, str | None]:
        """The mechanism whose estimates of the questions' own frequencies are best, not those of the combinations.

        And what its plan did not compare.
        """
        policy = self.joint()
        candidates = []
        compared = plan(policy, 1)
        for row in compared.rows:
            risks = dict.fromkeys(self.questions, math.inf)
            if math.isfinite(row.risk):
                estimator, uniform = row.mechanism.estimator, np.full(len(policy.domain), 1 / len(policy.domain))
                for name in self.questions:
                    groups = _indicators(policy.domain, name)
                    risks[name] = sum(estimator.variance(group, uniform) for group in groups) / n
            mechanisms = dict.fromkeys(self.questions, row.mechanism)
            candidates.append(Strategy("joint", sum(risks.values()), risks, None, mechanisms, row.bits))
        return min(candidates, key=lambda row: (row.risk, row.bits)), compared.skipped

    def _fractions(self, weights: Weights | None) -> dict[str, Fraction]:
        """The weights divided by their sum, exactly and in the order of the questions."""
        exact = _read_weights(dict.fromkeys(self.questions, 1) if weights is None else weights, self.questions)
        whole = sum(exact.values(), Fraction(0))
        return {name: weight / whole for name, weight in exact.items()}

    def __repr__(self) -> str:
        return f"Questionnaire({self.questions!r}, epsilon={self.epsilon})"


def _read_questions(questions: Any) -> dict[str, Domain]:
    if not isinstance(questions, Mapping) or len(questions) < 2:
        raise InvalidInput("Questionnaire", "questions", "be at least two names with their domains", questions)
    for name, domain in questions.items():
        if not isinstance(name, str) or not isinstance(domain, Domain) or len(domain) < 2:
            must = "be a name with a Domain of at least two values"
            raise InvalidInput("Questionnaire", f"question {name!r}", must, domain)
    return dict(questions)


def _read_weights(weights: Any, questions: Mapping[str, Domain]) -> dict[str, Fraction]:
    must = f"name each of the questions {', '.join(map(repr, questions))}"
    weights = read_mapping(weights, "Questionnaire", "weights", must)
    if set(weights) != set(questions):
        raise InvalidInput("Questionnaire", "weights", must, weights)
    exact = {}
    for name in questions:
        try:
            exact[name] = exact_fraction(weights[name])
        except (TypeError, ValueError, ArithmeticError):
            raise InvalidInput("Questionnaire", f"the weight of {name!r}", "be a number", weights[name]) from None
        if exact[name] <= 0:
            raise InvalidInput("Questionnaire", f"the weight of {name!r}", "be more than 0", weights[name])
    return exact


def _best_fractions(cost: Callable[[str, Fraction], float], even: dict[str, Fraction]) -> dict[str, Fraction]:
    """Return fractions that no transfer of one part from one question to another improves; coarse steps first."""
    if not math.isfinite(sum(cost(name, fraction) for name, fraction in even.items())):
        return even
    parts = dict.fromkeys(even, _PARTS)
    whole = _PARTS * len(even)

    def change(name: str, step: int) -> float:
        return cost(name, Fraction(parts[name] + step, whole)) - cost(name, Fraction(parts[name], whole))

    step = _PARTS // 2
    while step:
        gains = [(change(name, step), name) for name in even]
        losses = [(change(name, -step), name) for name in even if parts[name] > step]
        gain, loss, to, giver = min(
            ((gain, loss, to, giver) for gain, to in gains for loss, giver in losses if to != giver),
            key=lambda move: move[0] + move[1],
            default=(0.0, 0.0, "", ""),
        )
        if gain + loss < 0:
            parts[to] += step
            parts[giver] -= step
        else:
            step //= 2
    return {name: Fraction(part, whole) for name, part in parts.items()}


# -- what joint reports tell -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class CrossTable(FrozenData, Result):
    """How often the answers of two questions occur together: one row per answer of the first.

    ``labels`` are the answers of both; ``frequencies`` and their ``standard_errors`` have one column per answer of the
    second.
    ``marginals`` has for each of the two questions its answers with their estimated frequencies. All follow from
    the ``estimate`` of the joint answers: cells are its frequencies, marginals and errors those of its unbiased form.
    """

    estimate: Estimate
    questions: tuple[str, str]

    format: ClassVar[str] = "sfumato-cross-table"

    @property
    def labels(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The answers of both questions."""
        rows, columns = (self.estimate.domain.factors[name].labels for name in self.questions)
        return rows, columns

    @functools.cached_property
    def frequencies(self) -> Floats:
        """The frequency of each pair of answers."""
        return self._table(self.estimate.frequencies)

    @functools.cached_property
    def standard_errors(self) -> Floats:
        """The standard error of each frequency."""
        estimate, domain = self.estimate, self.estimate.domain
        if len(domain.factors) == 2:
            return self._table(estimate.standard_errors)
        rows, columns = (_indicators(domain, name) for name in self.questions)
        return np.array([[estimate.linear(a * b).standard_error for b in columns] for a in rows])

    @functools.cached_property
    def marginals(self) -> dict[str, dict[Any, LinearEstimate]]:
        """For each of the two questions its answers with their estimated frequencies."""
        domain = self.estimate.domain
        return {
            name: {
                label: self.estimate.linear(group)
                for label, group in zip(domain.factors[name], _indicators(domain, name), strict=True)
            }
            for name in self.questions
        }

    def _table(self, vector: Floats) -> Floats:
        """Return a number per combination of all answers, summed over the other questions."""
        names = list(self.estimate.domain.factors)
        first, second = (names.index(name) for name in self.questions)
        others = tuple(axis for axis in range(len(names)) if axis not in (first, second))
        sums = vector.reshape(self.estimate.domain.shape).sum(axis=others)
        return np.asarray(sums if first < second else sums.T)

    def _columns(self) -> Mapping[str, Any]:
        rows, columns = self.labels
        first, second = self.questions
        first = unused_name(first, {*_TABLE_COLUMNS, second})
        second = unused_name(second, {*_TABLE_COLUMNS, first})
        return {
            first: [row for row in rows for _ in columns],
            second: [column for _ in rows for column in columns],
            "frequency": self.frequencies.ravel(),
            "standard_error": self.standard_errors.ravel(),
        }

    def _title(self) -> str:
        return f"{self.questions[0]} by {self.questions[1]}, {self.estimate.n:,} reports"

    def __repr__(self) -> str:
        return f"CrossTable(questions={self.questions}, n={self.estimate.n})"

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a document of plain JSON types, from which ``from_dict`` makes an equal one."""
        return {
            "format": self.format,
            "version": 1,
            "estimate": self.estimate.to_dict(),
            "questions": list(self.questions),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> CrossTable:
        """Return the table that ``to_dict`` described; see ``Estimate.from_dict`` for what is checked."""
        subject = "CrossTable.from_dict"
        document = check_keys(
            subject, "the document", document, required=("format", "version", "estimate", "questions")
        )
        if (document["format"], document["version"]) != (cls.format, 1):
            must = f"be {cls.format!r} in version 1"
            raise UnknownSpec(subject, "format", must, (document["format"], document["version"]))
        rows, columns = (
            read_string(subject, "a question", question)
            for question in read_items(subject, "questions", document["questions"], 2)
        )
        return cross_table(Estimate.from_dict(document["estimate"]), rows, columns)

    def __str__(self) -> str:
        corner = f"{self.questions[0]} by {self.questions[1]}"
        lines = ["".join(f"{label!s:>20}" for label in (corner, *self.labels[1]))]
        for label, frequencies, errors in zip(self.labels[0], self.frequencies, self.standard_errors, strict=True):
            cells = (
                f"{f'{frequency:.4f} ± {error:.4f}':>20}" for frequency, error in zip(frequencies, errors, strict=True)
            )
            lines.append(f"{label!s:>20}" + "".join(cells))
        return "\n".join(lines)


def cross_table(estimate: Estimate, rows: str | None = None, columns: str | None = None) -> CrossTable:
    """Return the cross-table of two questions from joint reports, with the standard error of every cell.

    ``rows`` and ``columns`` name two factors of the estimate's ``Domain.product``; they may be left out where it has
    only two. Cells are the estimate's frequencies; marginals and errors are those of its unbiased form.
    """
    checked_type("cross_table", "the estimate", estimate, Estimate)
    domain = estimate.domain
    factors = domain.factors
    if rows is None and columns is None and len(factors) == 2:
        rows, columns = factors
    if rows not in factors or columns not in factors or rows == columns:
        must = (
            f"name two of the questions {', '.join(map(repr, factors)) or '(there are none: the domain is no product)'}"
        )
        raise InvalidInput("cross_table", "rows and columns", must, (rows, columns))
    assert rows is not None
    assert columns is not None
    return CrossTable(estimate, (rows, columns))


def _indicators(domain: Domain, name: str) -> list[Floats]:
    """For each answer of one question, which combinations have it: vectors of zeros and ones."""
    axis = list(domain.factors).index(name)
    size = domain.shape[axis]
    place = np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(domain.shape))])
    answer = np.broadcast_to(place, domain.shape).ravel()
    return [(answer == index).astype(np.float64) for index in range(size)]
