"""Several attributes of one person under one policy, and the ways to ask for them.

There are three ways to stay within the policy:

- *Split*: every person answers every question. Under one ε, each at a part of it; under a policy per attribute, each
  under its policy.
- *Sample*: every person answers one question, or a pair of them, at the full level. It is drawn beforehand and
  independently of the answers, so it reveals nothing about them.
- *Joint*: every person sends one report about the combination of all answers, at the full level.

Each way is one mechanism over the product of all domains. ``Questionnaire.plan`` predicts the error of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import (
    ZERO,
    Epsilon,
    EpsilonLike,
    Result,
    checked_count,
    checked_seconds,
    exact_fraction,
    quantity,
)
from sfumato.compiler.planning import plan_request
from sfumato.compiler.report_length import SHORT, MaxBits, ReportLength, checked_max_bits
from sfumato.compiler.requests import Request
from sfumato.compiler.solvers.deadline import Deadline
from sfumato.compiler.strategies import Strategies, Way, errors_by_table
from sfumato.domain import Domain, read_mapping
from sfumato.errors import InvalidInput, NoAnswer, NoMechanism, UnknownLabel
from sfumato.mechanisms import BitDraws, Draws, Mechanism, policy_of_part
from sfumato.policy import PairwisePolicy, Policy, Product, Uniform
from sfumato.questions import Marginals, Question, read_question
from sfumato.randomness import AUXILIARY, Stream, WordReader, secure

__all__ = ["Questionnaire", "QuestionnairePlan", "Sampling", "Strategy"]

#: A positive weight per question, in any unit.
Weights = Mapping[str, Any]

#: Maximum number of combinations times number of cells for which a plan compares a joint report; bounds its time.
_LARGEST_JOINT = 5 * 10**7
#: Maximum common denominator of weights, because ``below`` reads 32 bits.
_LARGEST_DENOMINATOR = 2**32
#: Time limit in seconds for the mechanisms of attributes whose policy has no closed form.
_SECONDS = 20.0


@dataclass(frozen=True)
class Sampling:
    """A questionnaire where every person answers one randomly drawn question at its full level.

    Parameters
    ----------
    policies
        Policy by question name, at the full level of the questionnaire.
    weights
        Probability that a person is asked each question, by question name; the probabilities sum to one.

    See Also
    --------
    Questionnaire.sampled : Construct a sampling from the weights of the questions.

    Examples
    --------
    >>> import sfumato as sf
    >>> health = sf.Questionnaire({"smokes": sf.Domain(["yes", "no"]), "age": sf.Domain.range(9)}, epsilon=2)
    >>> sampling = health.sampled({"smokes": 1, "age": 3})
    >>> sampling.weights
    {'smokes': Fraction(1, 4), 'age': Fraction(3, 4)}
    >>> sampling.choose(sf.InsecureSeeded(1)) in ("smokes", "age")
    True
    """

    policies: dict[str, PairwisePolicy]
    weights: dict[str, Fraction]

    def choose(self, stream: Stream | None = None) -> str:
        """Draw the question that one person answers.

        Call this method once per person, on the device. The choice must not depend on the answers.

        Parameters
        ----------
        stream
            Source of random words for tests, such as :class:`InsecureSeeded`. The default is the secure randomness of
            the operating system.

        Returns
        -------
        str
            The name of a question, drawn with exactly the probabilities ``weights``.
        """
        if stream is None:
            return self.draw(BitDraws(secure.bits))
        key, chunk = stream.reserve(1)
        return self.draw(BitDraws(WordReader(key, chunk, AUXILIARY).word))

    def draw(self, draws: Draws) -> str:
        """Draw the question from a source of random decisions.

        Auditors call this method; applications call :meth:`choose`, which uses secure randomness.

        Parameters
        ----------
        draws
            Source of random decisions. The method asks for one integer below the common denominator of the weights.

        Returns
        -------
        str
            The name of a question.

        Raises
        ------
        AssertionError
            If the weights do not sum to one.
        """
        denominator = math.lcm(*(weight.denominator for weight in self.weights.values()))
        left = draws.below(denominator)
        for name, weight in self.weights.items():
            left -= int(weight * denominator)
            if left < 0:
                return name
        raise AssertionError("the weights sum to one")


@dataclass(frozen=True)
class Strategy:
    """One way to ask the questions of a questionnaire under its policy, with its expected error.

    Parameters
    ----------
    name
        Name of the strategy:

        - ``"split evenly"`` and ``"split by weights"``: a person answers all questions, each with a part of epsilon;
        - ``"split"``: a person answers all questions, each under the policy of its attribute;
        - ``"sample evenly"`` and ``"sample by weights"``: a person answers one question at the full level;
        - ``"sample pairs evenly"`` and ``"sample pairs by weights"``: a person answers a pair of questions together;
        - ``"joint"``: a person sends one report about all answers together.
    risk
        Sum of ``risks``.
    risks
        Expected squared error of each table of the question asked, if all answers are equally frequent. A table of one
        attribute has its name, others have names such as "sex × age".
    weights
        Fraction of epsilon (split) or of the people (sample) by the name of the question or pair; None otherwise.
    mechanisms
        Mechanism by the name of the question or pair; a joint report has the same mechanism for all questions.
    mechanism
        The mechanism over all questions together. It privatizes whole rows of a table.
    bits
        Maximum number of bits that one person sends.

    See Also
    --------
    Questionnaire.plan : Compare all strategies.

    Examples
    --------
    >>> import sfumato as sf
    >>> health = sf.Questionnaire({"smokes": sf.Domain(["yes", "no"]), "sex": sf.Domain(["f", "m"])}, epsilon=1)
    >>> best = health.plan(n=1000).best
    >>> best.name, best.mechanism.name, best.bits
    ('sample evenly', 'sampled-parts', 2)
    """

    name: str
    risk: float
    risks: dict[str, float]
    weights: dict[str, Fraction] | None
    mechanisms: dict[str, Mechanism]
    mechanism: Mechanism
    bits: int

    @classmethod
    def of(cls, way: Way, question: Marginals, n: int) -> Strategy:
        """Return a way to ask with its errors from n people.

        Parameters
        ----------
        way
            The way to ask.
        question
            The tables by which it is compared, fitted to the domain.
        n
            The number of people.

        Returns
        -------
        Strategy
            The strategy.
        """
        size = len(question.domain)
        # A constant array without memory: there may be more combinations of answers than memory holds.
        one = errors_by_table(way.mechanism, question, np.broadcast_to(np.float64(1 / size), (size,)))
        risks = {name: error / n for name, error in one.items()}
        bits = way.mechanism.bits
        return cls(way.name, sum(risks.values()), risks, way.weights, way.mechanisms, way.mechanism, bits)


@dataclass(frozen=True)
class QuestionnairePlan(Result):
    """The strategies to ask the questions of a questionnaire, ordered by their expected error.

    ``plan["joint"]`` returns the strategy with this name.

    Parameters
    ----------
    n
        Number of people.
    rows
        The strategies, smallest risk first: the expected squared error, summed over all tables of the question asked.
    left_out
        Sentence that names strategies or mechanisms that were not compared, with the reason, or None.
    question
        The tables by which strategies are compared; by default the frequencies of each attribute.

    See Also
    --------
    Questionnaire.plan : Construct a plan.

    Examples
    --------
    >>> import sfumato as sf
    >>> health = sf.Questionnaire({"smokes": sf.Domain(["yes", "no"]), "sex": sf.Domain(["f", "m"])}, epsilon=1)
    >>> len(health.plan(n=1000).rows)
    5
    """

    n: int
    rows: tuple[Strategy, ...]
    left_out: str | None = None
    question: Question | None = None

    @property
    def best(self) -> Strategy:
        """The strategy with the smallest expected squared error, summed over the tables.

        Ties go to the first in this order: split, sample, joint, each evenly before by weights.
        """
        return self.rows[0]

    def __getitem__(self, name: str) -> Strategy:
        """Return the strategy with this name; raise UnknownLabel if the plan has no such strategy."""
        for row in self.rows:
            if row.name == name:
                return row
        names = ", ".join(repr(row.name) for row in self.rows)
        raise UnknownLabel("QuestionnairePlan", "the strategy", f"be one of {names}", name)

    @property
    def reason(self) -> str:
        """Sentence that explains why the best strategy is recommended."""
        best = self.best
        split = next((row for row in self.rows if row.name in ("split", "split evenly")), best)
        how = "splitting evenly" if split.name == "split evenly" else "splitting"
        gain = f", compared with {split.risk:.3g} for {how}" if best.risk < split.risk else ""
        return (
            f"{best.name}: {_HOW[best.name]}. This has the smallest expected squared error, summed over all "
            f"{self._answers}, of the strategies compared ({best.risk:.3g}{gain})."
        )

    @property
    def _answers(self) -> str:
        """The word for what the error is summed over."""
        is_plain = self.question is None or all(len(axes) == 1 for axes in self.question.axes or ())
        return "questions" if is_plain else "tables"

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return {
            "strategy": [row.name for row in self.rows],
            "risk": [row.risk for row in self.rows],
            "bits": [row.bits for row in self.rows],
            "mechanism": [row.mechanism.name for row in self.rows],
            "weights": [_weights_text(row) for row in self.rows],
        }

    def _title(self) -> str:
        tables = len(self.rows[0].risks)
        what = quantity(tables, "question") if self._answers == "questions" else quantity(tables, "table")
        return f"{what}, {quantity(self.n, 'person')}"

    def __str__(self) -> str:
        lines = [self._title()]
        width = max(18, *(len(row.name) + 2 for row in self.rows))
        lines.append(f"{'':2}{'strategy':{width}}{'l2 risk':>12}{'bits':>8}  weights")
        for row in self.rows:
            start = f"{'* ' if row is self.best else '  '}{row.name:{width}}{row.risk:12.4g}{row.bits:8}"
            lines.append(f"{start}  {_weights_text(row)}".rstrip())
        return "\n".join([*lines, *([self.left_out] if self.left_out else []), self.reason])

    def __repr__(self) -> str:
        return f"<QuestionnairePlan: {self._title()}, best {self.best.name!r}>"


def _weights_text(row: Strategy) -> str:
    """Return the weights of a strategy for tables."""
    return ", ".join(f"{name} {weight}" for name, weight in (row.weights or {}).items())


_PAIRS = "every person answers one pair of questions together, at the full level"
_TABLES = "every person answers the questions of one table together, at the full level"
_HOW = {
    "split evenly": "every person answers all questions, each at an equal part of epsilon",
    "split by weights": "every person answers all questions, each at a separate part of epsilon",
    "split": "every person answers all questions, each under its policy",
    "sample evenly": "every person answers one question at the full epsilon",
    "sample by weights": "every person answers one question at the full epsilon, some questions more often than others",
    "sample pairs evenly": _PAIRS,
    "sample pairs by weights": f"{_PAIRS}, some pairs more often than others",
    "sample tables evenly": _TABLES,
    "sample tables by weights": f"{_TABLES}, some tables more often than others",
    "joint": "every person sends one report about all answers together",
}


class Questionnaire:
    """Several questions that one person answers under one policy.

    There are three ways to stay within the policy: answer all questions separately (:meth:`split`), answer one question
    or one pair (:meth:`sampled`), or send one report about all answers (:meth:`joint`). :meth:`plan` compares their
    errors, and :meth:`design` returns the mechanism of one of them.

    Parameters
    ----------
    questions
        What people are asked, by question name; at least two questions. One of:

        - a mapping to domains, with ``epsilon``: one level of classical local differential privacy for all answers;
        - a mapping to policies: one per question, such as :class:`HighLow` for one and :class:`Metric` for another. The
          levels of answers that differ in several questions add up (see :class:`Product`);
        - one policy over a ``Domain.product`` with a factor per question.
    epsilon
        Level of all questions together, more than 0, if ``questions`` are domains; otherwise leave it out.

    Raises
    ------
    InvalidInput
        If there are fewer than two questions, a domain has fewer than two values, or epsilon is not positive.

    Examples
    --------
    >>> import sfumato as sf
    >>> health = sf.Questionnaire({"smokes": sf.Domain(["yes", "no"]), "age": sf.Domain.range(9)}, epsilon=2)
    >>> {name: str(policy.epsilon) for name, policy in health.split({"smokes": 1, "age": 3}).items()}
    {'smokes': '0.5', 'age': '1.5'}
    >>> ages = sf.Metric(sf.Domain.range(9), "absolute", "1/4")
    >>> own = sf.Questionnaire({"smokes": sf.Uniform(sf.Domain(["yes", "no"]), 1), "age": ages})
    >>> own.policy.kind
    'product'
    """

    def __init__(
        self,
        questions: Mapping[str, Domain] | Mapping[str, PairwisePolicy] | Policy,
        epsilon: EpsilonLike | None = None,
    ) -> None:
        if isinstance(questions, Policy) or _has_policies(questions):
            if epsilon is not None:
                raise InvalidInput("Questionnaire", "epsilon", "be left out, because policies state levels", epsilon)
            policy = questions if isinstance(questions, Policy) else Product(questions)  # type: ignore[arg-type]
            self.epsilon = policy.epsilon if isinstance(policy, Uniform) else None
            self.questions = _read_questions(policy.domain.factors)
        else:
            self.questions = _read_questions(questions)
            if epsilon is None:
                must = "be given with domains, as the level of all questions together"
                raise InvalidInput("Questionnaire", "epsilon", must, None)
            self.epsilon = Epsilon(epsilon, subject="Questionnaire")
            if self.epsilon == ZERO:
                raise InvalidInput("Questionnaire", "epsilon", "be more than 0", epsilon)
            policy = Uniform(Domain.product(**self.questions), self.epsilon)
        self._policy = policy

    @property
    def policy(self) -> Policy:
        """The policy over all questions together; every strategy obeys it."""
        return self._policy

    def split(self, weights: Weights | None = None) -> dict[str, PairwisePolicy]:
        """Return the policy of each question, for people who answer all of them.

        Parameters
        ----------
        weights
            Positive number per question name, in any unit; only ratios matter. The default is equal weights. Leave it
            out for a policy per question, which states the levels already.

        Returns
        -------
        dict of str to PairwisePolicy
            The policy by question name. With one epsilon for all questions, the epsilons are proportional to the
            weights and sum to the budget exactly.

        Raises
        ------
        InvalidInput
            If the weights do not fit the questions, or the policy is neither one epsilon nor a policy per question.
        """
        if self.epsilon is not None:
            fractions, epsilon = self._fractions(weights), self.epsilon
            return {name: Uniform(domain, epsilon * fractions[name]) for name, domain in self.questions.items()}
        if weights is not None or not isinstance(self._policy, Product):
            must = "be left out, and the policy be one per question, or one epsilon for all"
            raise InvalidInput("Questionnaire", "weights", must, weights)
        return self._policy.policies

    def sampled(self, weights: Weights | None = None) -> Sampling:
        """Return the policies and probabilities for people who answer one question each.

        Parameters
        ----------
        weights
            Positive number per question name, in any unit; only ratios matter. The default is equal weights.

        Returns
        -------
        Sampling
            The policies, all at the full level, and the probability of each question, proportional to its weight.

        Raises
        ------
        InvalidInput
            If the common denominator of the weights exceeds 2^32.
        """
        fractions = self._fractions(weights)
        denominator = math.lcm(*(fraction.denominator for fraction in fractions.values()))
        if denominator > _LARGEST_DENOMINATOR:
            must = f"have a common denominator of at most {_LARGEST_DENOMINATOR}"
            hint = "Use weights with small whole numbers, such as 1 and 3."
            raise InvalidInput("Questionnaire", "weights", must, denominator, hint=hint)
        return Sampling(self._full_policies(), fractions)

    def _full_policies(self) -> dict[str, PairwisePolicy]:
        """Return the policy of each question alone."""
        if self.epsilon is not None:
            return {name: Uniform(domain, self.epsilon) for name, domain in self.questions.items()}
        policies: dict[str, PairwisePolicy] = {}
        for axis, name in enumerate(self.questions):
            shape = self._policy.domain.shape
            part = policy_of_part(self._policy, shape, (axis,)) if isinstance(self._policy, PairwisePolicy) else None
            if part is None:
                must = "be on pairs of values, over at most 4096 combinations of answers"
                raise InvalidInput("Questionnaire", "the policy", must, self._policy)
            policies[name] = part
        return policies

    def choose(self, stream: Stream | None = None, *, weights: Weights | None = None) -> str:
        """Draw the one question that a person answers.

        This is ``sampled(weights).choose(stream)``. Call it once per person, on the device. Mechanisms of the
        strategies that sample draw the question themselves.

        Parameters
        ----------
        stream
            Source of random words for tests, such as :class:`InsecureSeeded`. The default is the secure randomness of
            the operating system.
        weights
            Positive number per question name, in any unit; only ratios matter. The default is equal weights.

        Returns
        -------
        str
            The name of a question.
        """
        return self.sampled(weights).choose(stream)

    def joint(self) -> Policy:
        """Return the policy for people who send one report about all answers together.

        Returns
        -------
        Policy
            The policy over the product of all domains. Its values are the combinations of answers.
        """
        return self._policy

    def plan(
        self,
        n: int,
        *,
        question: Question | str | None = None,
        max_bits: MaxBits = SHORT,
        max_seconds: float | None = 0,
    ) -> QuestionnairePlan:
        """Compare the expected errors of all strategies: split, sample and joint report.

        Parameters
        ----------
        n
            Number of people.
        question
            The tables to learn: a :class:`Marginals` such as ``Marginals(2)``, or its notation ``"marginals:2"``. The
            default, ``Marginals(1)``, is the frequency of every answer to each question.
        max_bits
            Length of a report in bits. As for :func:`plan`, the default ``"short"`` chooses a longer joint report only
            if it reduces the error by more than 5%. An integer is a limit, and None means no limit.
        max_seconds
            Time limit of the search for the best joint mechanism in seconds, as for :func:`plan`. The default 0
            compares the known mechanisms only.

        Returns
        -------
        QuestionnairePlan
            The strategies, smallest expected squared error first. The error is summed over all cells of the tables.

        Raises
        ------
        InvalidInput
            If a parameter is invalid, or the question is not about tables.
        NoMechanism
            If no strategy has reports of at most ``max_bits``.

        Notes
        -----
        The errors are exact if all answers are equally frequent. A joint report over very many combinations of answers
        is left out.

        The search for the weights of "by weights" starts with equal weights. It moves shares from one question to
        another, in smaller and smaller steps, as long as the error decreases. Weights are multiples of 1/32 of an equal
        share, and the result is a local optimum. The weights of pairs ignore that pairs share attributes.

        Examples
        --------
        >>> import sfumato as sf
        >>> sizes = {"sex": sf.Domain(["f", "m"]), "race": sf.Domain.range(5), "age": sf.Domain.range(8)}
        >>> compared = sf.Questionnaire(sizes, epsilon=1).plan(10_000, question=sf.Marginals(2))
        >>> compared.best.name, compared.best.mechanism.name
        ('sample pairs by weights', 'sampled-parts')
        """
        n = checked_count("Questionnaire.plan", n)
        tables = self._read_question(question)
        length = ReportLength(checked_max_bits("Questionnaire.plan", max_bits), len(self._policy.domain))
        seconds = checked_seconds("Questionnaire.plan", max_seconds)
        strategies = Strategies(self._policy, tables, length.limit, Deadline(seconds or _SECONDS))
        rows, left_out = [], []
        for name, build in strategies.ways():
            try:
                rows.append(Strategy.of(build(), tables, n))
            except NoAnswer as error:
                left_out.append(f"{name}: not compared, because {error}")
        combinations, cells = len(self._policy.domain), len(tables.names)
        if combinations * cells <= _LARGEST_JOINT:
            self._add_joint(tables, n, max_bits, seconds, rows, left_out)
        else:
            left_out.append(f"joint: not compared, because there are {combinations} combinations of answers")
        rows = [row for row in rows if length.limit is None or row.bits <= length.limit]
        if not rows:
            raise NoMechanism(f"no strategy has reports of at most {length.limit} bits. Raise max_bits.")
        shown = "; ".join([*strategies.left_out, *left_out]) or None
        return QuestionnairePlan(n, tuple(sorted(rows, key=lambda row: row.risk)), shown, tables)

    def design(
        self,
        n: int | None = None,
        *,
        strategy: str | None = None,
        question: Question | str | None = None,
        max_bits: MaxBits = SHORT,
        max_seconds: float | None = 0,
    ) -> Mechanism:
        """Return the mechanism of the best strategy, or of a strategy by name.

        The mechanism is over the product of all questions: :func:`privatize` takes whole rows of a table, and
        ``Estimate.marginals`` returns the tables.

        Parameters
        ----------
        n
            Number of people. The choice of the strategy does not depend on it, so it may be left out.
        strategy
            Name of the strategy, as :meth:`plan` lists it, such as ``"split evenly"``. The default is the best one.
        question
            The tables to learn, as for :meth:`plan`.
        max_bits
            Length of a report in bits, as for :meth:`plan`.
        max_seconds
            Time limit of the search for the best joint mechanism in seconds, as for :meth:`plan`.

        Returns
        -------
        Mechanism
            The mechanism. It obeys :attr:`policy`.

        Examples
        --------
        >>> import sfumato as sf
        >>> health = sf.Questionnaire({"smokes": sf.Domain(["yes", "no"]), "age": sf.Domain.range(9)}, epsilon=2)
        >>> health.design(strategy="split evenly").name
        'product'
        """
        compared = self.plan(1 if n is None else n, question=question, max_bits=max_bits, max_seconds=max_seconds)
        return (compared.best if strategy is None else compared[strategy]).mechanism

    def _read_question(self, question: Question | str | None) -> Marginals:
        """Return the tables to learn, fitted to the domain."""
        tables = read_question(
            "Questionnaire.plan", Marginals(1) if question is None else question, self._policy.domain
        )
        if not isinstance(tables, Marginals):
            hint = "Call sfumato.plan(questionnaire.policy, question=...) for other questions."
            raise InvalidInput(
                "Questionnaire.plan", "question", "be about tables, as Marginals(2)", question, hint=hint
            )
        return tables

    def _add_joint(
        self,
        tables: Marginals,
        n: int,
        max_bits: MaxBits,
        max_seconds: float | None,
        rows: list[Strategy],
        left_out: list[str],
    ) -> None:
        """Add the best joint mechanism, or the reason why there is none."""
        request = Request.read(
            "Questionnaire.plan",
            self._policy,
            "estimation",
            tables,
            mechanism=None,
            prior=None,
            max_bits=max_bits,
            max_seconds=max_seconds,
            progress=None,
            cache=None,
        )
        compared = plan_request(replace(request, with_strategies=False))
        try:
            mechanism = compared.best.mechanism
        except NoMechanism:
            left_out.append("joint: not compared, because its reports are longer than max_bits")
            return
        way = Way("joint", mechanism, dict.fromkeys(self.questions, mechanism), None)
        rows.append(Strategy.of(way, tables, n))
        if compared.skipped:
            left_out.append(f"not compared for the joint report: {compared.skipped}")

    def _fractions(self, weights: Weights | None) -> dict[str, Fraction]:
        """Return the weights divided by their sum, exactly and in the order of the questions."""
        exact = _read_weights(dict.fromkeys(self.questions, 1) if weights is None else weights, self.questions)
        whole = sum(exact.values(), Fraction(0))
        return {name: weight / whole for name, weight in exact.items()}

    def __repr__(self) -> str:
        if isinstance(self._policy, Uniform):
            return f"Questionnaire({self.questions!r}, epsilon={self.epsilon})"
        return f"Questionnaire({self._policy!r})"


def _has_policies(questions: object) -> bool:
    """Return whether a mapping has policies instead of domains."""
    return isinstance(questions, Mapping) and any(isinstance(part, Policy) for part in questions.values())


def _read_questions(questions: Any) -> dict[str, Domain]:
    """Return the questions, or raise InvalidInput."""
    if not isinstance(questions, Mapping) or len(questions) < 2:
        raise InvalidInput(
            "Questionnaire", "questions", "be a mapping from at least two names to their domains", questions
        )
    for name, domain in questions.items():
        if not isinstance(name, str) or not isinstance(domain, Domain) or len(domain) < 2:
            must = "be a name with a Domain of at least two values"
            raise InvalidInput("Questionnaire", f"question {name!r}", must, domain)
    return dict(questions)


def _read_weights(weights: Any, questions: Mapping[str, Domain]) -> dict[str, Fraction]:
    """Return the weights as exact fractions, or raise InvalidInput."""
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
