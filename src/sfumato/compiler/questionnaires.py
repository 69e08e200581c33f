"""Several questions to one person, who has one classical budget for all of them.

There are three ways to divide the budget:

- *Split*: every person answers every question, each at a part of ε. The parts add up to ε.
- *Sample*: every person answers one question at the full ε. The question is drawn beforehand and independently of the
  answers, so it reveals nothing about them.
- *Joint*: every person sends one report about the combination of all answers, at the full ε. Only this way shows how
  answers depend on each other.

``Questionnaire.plan`` predicts the error of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import ZERO, Epsilon, EpsilonLike, checked_count, exact_fraction, quantity
from sfumato.compiler.planning import plan
from sfumato.compiler.plans import Row
from sfumato.compiler.report_length import SHORT, MaxBits, ReportLength
from sfumato.domain import Domain, read_mapping
from sfumato.errors import InvalidInput
from sfumato.mechanisms import BitDraws, Draws, Mechanism
from sfumato.policy import Uniform
from sfumato.questions import Marginals
from sfumato.randomness import AUXILIARY, Stream, WordReader, secure

__all__ = ["Questionnaire", "QuestionnairePlan", "Sampling", "Strategy"]

#: A positive weight per question, in any unit.
Weights = Mapping[str, Any]

#: Number of parts in an equal share; the search for weights moves whole parts.
_PARTS = 32
#: Maximum number of combinations times number of answers for which a plan compares a joint report; bounds its time.
_LARGEST_JOINT = 10**7
#: Maximum common denominator of weights, because ``below`` reads 32 bits.
_LARGEST_DENOMINATOR = 2**32


@dataclass(frozen=True)
class Sampling:
    """A questionnaire where every person answers one randomly drawn question with the full budget epsilon.

    Parameters
    ----------
    policies
        Policy by question name; all policies have the epsilon of the questionnaire.
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

    policies: dict[str, Uniform]
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
    """One way to ask the questions of a questionnaire within its budget, with its expected error.

    Parameters
    ----------
    name
        Name of the strategy:

        - ``"split evenly"`` and ``"split by weights"``: a person answers all questions, each with a part of epsilon;
        - ``"sample evenly"`` and ``"sample by weights"``: a person answers one question with the full epsilon;
        - ``"joint"``: a person sends one report about all answers together.
    risk
        Sum of ``risks``.
    risks
        Expected squared l2 error of the estimated frequencies, by question name, if all answers are equally frequent.
    weights
        Fraction of epsilon (split) or of the people (sample) by question name; None for a joint report.
    mechanisms
        Mechanism with the smallest risk by question name; a joint report has the same mechanism for all questions.
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
    >>> best.name, best.bits
    ('sample evenly', 1)
    """

    name: str
    risk: float
    risks: dict[str, float]
    weights: dict[str, Fraction] | None
    mechanisms: dict[str, Mechanism]
    bits: int


@dataclass(frozen=True)
class QuestionnairePlan:
    """The strategies to ask the questions of a questionnaire, ordered by their expected error.

    Parameters
    ----------
    n
        Number of people.
    rows
        The strategies, smallest risk first: the expected squared l2 error, summed over the questions.
    left_out
        Sentence that names strategies or mechanisms that were not compared, with the reason, or None.

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

    @property
    def best(self) -> Strategy:
        """The strategy with the smallest expected squared error, summed over the questions.

        Ties go to the first in this order: split evenly, split by weights, sample evenly, sample by weights, joint.
        """
        return self.rows[0]

    @property
    def reason(self) -> str:
        """Sentence that explains why the best strategy is recommended."""
        best = self.best
        even = next(row for row in self.rows if row.name == "split evenly")
        gain = f", compared with {even.risk:.3g} for splitting evenly" if best.risk < even.risk else ""
        return (
            f"{best.name}: {_HOW[best.name]}. This has the smallest expected squared error, summed over all questions, "
            f"of the strategies compared ({best.risk:.3g}{gain})."
        )

    def __str__(self) -> str:
        lines = [f"{quantity(len(self.rows[0].risks), 'question')}, {quantity(self.n, 'person')}"]
        lines.append(f"{'':2}{'strategy':18}{'l2 risk':>12}{'bits':>8}  weights")
        for row in self.rows:
            weights = ", ".join(f"{name} {weight}" for name, weight in (row.weights or {}).items())
            lines.append(
                f"{'* ' if row is self.best else '  '}{row.name:18}{row.risk:12.4g}{row.bits:8}  {weights}".rstrip()
            )
        return "\n".join([*lines, *([self.left_out] if self.left_out else []), self.reason])


_HOW = {
    "split evenly": "every person answers all questions, each at an equal part of epsilon",
    "split by weights": "every person answers all questions, each at a separate part of epsilon",
    "sample evenly": "every person answers one question at the full epsilon",
    "sample by weights": "every person answers one question at the full epsilon, some questions more often than others",
    "joint": "every person sends one report about all answers together",
}


class Questionnaire:
    """Several questions that one person answers within one privacy budget.

    The budget is an epsilon of classical local differential privacy for all answers together. There are three ways to
    stay within it: :meth:`split` epsilon among the questions, ask every person one question (:meth:`sampled`), or send
    one report about all answers (:meth:`joint`). :meth:`plan` compares their errors.

    Parameters
    ----------
    questions
        Domain of the possible answers by question name; at least two questions.
    epsilon
        Budget for all questions together; more than 0.

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
    """

    def __init__(self, questions: Mapping[str, Domain], epsilon: EpsilonLike) -> None:
        self.questions = _read_questions(questions)
        self.epsilon = Epsilon(epsilon, subject="Questionnaire")
        if self.epsilon == ZERO:
            raise InvalidInput("Questionnaire", "epsilon", "be more than 0", epsilon)

    def split(self, weights: Weights | None = None) -> dict[str, Uniform]:
        """Divide epsilon among the questions, for people who answer all of them.

        Parameters
        ----------
        weights
            Positive number per question name, in any unit; only ratios matter. The default is equal weights.

        Returns
        -------
        dict of str to Uniform
            The policy by question name. The epsilons are proportional to the weights and sum to the budget exactly.
        """
        fractions = self._fractions(weights)
        return {name: Uniform(domain, self.epsilon * fractions[name]) for name, domain in self.questions.items()}

    def sampled(self, weights: Weights | None = None) -> Sampling:
        """Return the policies and probabilities for people who answer one question each.

        Parameters
        ----------
        weights
            Positive number per question name, in any unit; only ratios matter. The default is equal weights.

        Returns
        -------
        Sampling
            The policies, all with the full epsilon, and the probability of each question, proportional to its weight.

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
        return Sampling({name: Uniform(domain, self.epsilon) for name, domain in self.questions.items()}, fractions)

    def choose(self, stream: Stream | None = None, *, weights: Weights | None = None) -> str:
        """Draw the one question that a person answers.

        This is ``sampled(weights).choose(stream)``. Call it once per person, on the device.

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

    def joint(self) -> Uniform:
        """Return the policy for people who send one report about all answers together.

        Returns
        -------
        Uniform
            The policy with the full epsilon over the product of all domains. Its values are the combinations of
            answers.
        """
        return Uniform(Domain.product(**self.questions), self.epsilon)

    def plan(self, n: int, *, max_bits: MaxBits = SHORT) -> QuestionnairePlan:
        """Compare the expected errors of all strategies: split, sample and joint report.

        Parameters
        ----------
        n
            Number of people.
        max_bits
            Length in bits of the report to one question, or of the joint report. As for :func:`plan`, the default
            ``"short"`` chooses longer reports only if they reduce the error by more than 5%. An integer is a limit, and
            None means no limit.

        Returns
        -------
        QuestionnairePlan
            The strategies, smallest expected squared error first. The error is summed over the questions.

        Notes
        -----
        The errors are exact if all answers are equally frequent. For sampled questions, the plan assumes that exactly
        ``n · weight`` people answer each question. A joint report over very many combinations of answers is left out.

        The search for the weights of "by weights" starts with equal weights. It moves shares from one question to
        another, in smaller and smaller steps, as long as the error decreases. Weights are multiples of 1/32 of an equal
        share, and the result is a local optimum.
        """
        n = checked_count("Questionnaire.plan", n)
        best: dict[tuple[str, Fraction], Row] = {}

        def row(name: str, fraction: Fraction) -> Row:
            """Return the best mechanism for one question at a fraction of ε, with the risk of one report."""
            if (name, fraction) not in best:
                policy = Uniform(self.questions[name], self.epsilon * fraction)
                best[name, fraction] = plan(policy, 1, max_bits=max_bits).best
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
            joint, skipped = self._joint_strategy(n, max_bits)
            if joint is None:
                left_out = "joint: not compared, because its reports are longer than max_bits"
            else:
                rows.append(joint)
                left_out = None if skipped is None else f"not compared for the joint report: {skipped}"
        else:
            left_out = f"joint: not compared, because there are {combinations} combinations of answers"
        return QuestionnairePlan(n, tuple(sorted(rows, key=lambda row: row.risk)), left_out)

    def _joint_strategy(self, n: int, max_bits: MaxBits) -> tuple[Strategy | None, str | None]:
        """Return the mechanism with the best estimates of the frequencies of each question, and what its plan skipped.

        The best mechanism for the frequencies of all combinations may be another one. The strategy is None if every
        report is longer than ``max_bits``.
        """
        policy = self.joint()
        candidates = []
        compared = plan(policy, 1, max_bits=max_bits)
        for row in compared.rows:
            risks = dict.fromkeys(self.questions, math.inf)
            if math.isfinite(row.risk):
                estimator, uniform = row.mechanism.estimator, np.full(len(policy.domain), 1 / len(policy.domain))
                for name in self.questions:
                    groups = Marginals(tables=[name]).checked(policy.domain).rows()
                    risks[name] = sum(estimator.variance(group, uniform) for group in groups) / n
            mechanisms = dict.fromkeys(self.questions, row.mechanism)
            candidates.append(Strategy("joint", sum(risks.values()), risks, None, mechanisms, row.bits))
        candidates.sort(key=lambda row: (row.risk, row.bits))
        length = ReportLength(max_bits, len(policy.domain))
        best = length.recommended([row.risk for row in candidates], [row.bits for row in candidates])
        return None if best is None else candidates[best], compared.skipped

    def _fractions(self, weights: Weights | None) -> dict[str, Fraction]:
        """Return the weights divided by their sum, exactly and in the order of the questions."""
        exact = _read_weights(dict.fromkeys(self.questions, 1) if weights is None else weights, self.questions)
        whole = sum(exact.values(), Fraction(0))
        return {name: weight / whole for name, weight in exact.items()}

    def __repr__(self) -> str:
        return f"Questionnaire({self.questions!r}, epsilon={self.epsilon})"


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


def _best_fractions(cost: Callable[[str, Fraction], float], even: dict[str, Fraction]) -> dict[str, Fraction]:
    """Return fractions that no transfer of one part between two questions improves; start with large transfers."""
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
        gain, loss, receiver, giver = min(
            ((gain, loss, receiver, giver) for gain, receiver in gains for loss, giver in losses if receiver != giver),
            key=lambda move: move[0] + move[1],
            default=(0.0, 0.0, "", ""),
        )
        if gain + loss < 0:
            parts[receiver] += step
            parts[giver] -= step
        else:
            step //= 2
    return {name: Fraction(part, whole) for name, part in parts.items()}
