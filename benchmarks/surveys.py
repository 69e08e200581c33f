"""Measure the coverage of weighted and post-stratified answers on a skewed sample.

    python -m benchmarks.surveys [--repetitions R] [--people N]

People are drawn with unequal probabilities: the young answer 14 times as often as the old. Their numbers depend on the
age and are skewed. Each repetition draws the sizes of the age groups and the counts of reports from their law, and
computes a 95% interval with the library. The output is Markdown.

The law of a post-stratified estimate is inverted numerically, which takes most of the time. Its limits are therefore
computed only if the estimate is between 1.75 and 2.2 standard errors from the truth. All estimates closer than that are
within their interval, and all others outside; a random sample of them is checked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import sfumato as sf
from sfumato.collecting import GroupedAggregate
from sfumato.mechanisms import Mechanism

Floats = npt.NDArray[np.float64]

#: Share of each age group among the people who answer, and the integer weight of its people.
SAMPLE = np.array([0.56, 0.29, 0.11, 0.04])
WEIGHTS = np.array([1, 3, 7, 14])
#: Share of each age group in the population that these weights imply.
POPULATION = SAMPLE * WEIGHTS / (SAMPLE @ WEIGHTS)
#: Numbers that people have; their mean and the share of at least 10 are estimated.
NUMBERS = np.arange(21)
#: Distances in standard errors between which limits are computed.
_NEAR, _FAR = 1.75, 2.2
#: Number of other repetitions whose limits are computed as a check.
_CHECKED = 50


def distributions() -> Floats:
    """Return the distribution of the numbers in each age group: skewed to the right, with different means."""
    shapes = [np.exp(-NUMBERS / 2), np.exp(-NUMBERS / 4), np.exp(-np.abs(NUMBERS - 5) / 4), np.exp(-(20 - NUMBERS) / 6)]
    return np.array([shape / shape.sum() for shape in shapes])


@dataclass(frozen=True)
class Coverage:
    """Result of one study."""

    inside: int
    repetitions: int
    #: Mean of the estimates minus the truth, and its standard error.
    bias: float
    bias_error: float
    #: Root mean square of the standard errors, divided by the standard deviation of the estimates.
    error_ratio: float
    width: float

    @property
    def rate(self) -> float:
        """The share of intervals that contain the truth."""
        return self.inside / self.repetitions


def study(
    mechanism: Mechanism, question: sf.Question, method: str, people: int, repetitions: int, seed: int = 1
) -> Coverage:
    """Return the coverage of the 95% interval; ``method`` is "weights" or "totals"."""
    generator = np.random.default_rng(seed)
    laws = distributions() @ mechanism.matrix()
    laws /= laws.sum(axis=1, keepdims=True)
    rows = question.checked(mechanism.domain).matrix()
    truth = float(POPULATION @ distributions() @ rows[0])
    sizes = generator.multinomial(people, SAMPLE, repetitions)
    counts = np.stack([generator.multinomial(sizes[:, age], law) for age, law in enumerate(laws)], axis=1)
    values, errors, widths, inside, checked = [], [], [], 0, 0
    for size, count in zip(sizes.tolist(), counts, strict=True):
        groups = {
            int(weight): sf.Aggregate(mechanism.hash, n, each)
            for weight, n, each in zip(WEIGHTS, size, count, strict=True)
            if n
        }
        weight = "weight" if method == "weights" else None
        grouped = sf.estimate_groups(mechanism, GroupedAggregate(mechanism.hash, groups, ("weight",), weight))
        totals = None if method == "weights" else dict(zip(WEIGHTS.tolist(), POPULATION.tolist(), strict=True))
        number = grouped.answers(question, by=[], totals=totals).total[0]
        values.append(number.value)
        errors.append(number.standard_error)
        distance = abs(number.value - truth) / number.standard_error
        decided = method == "totals" and not _NEAR <= distance <= _FAR
        if decided and checked >= _CHECKED:
            inside += distance < _NEAR
            continue
        low, high = number.interval(0.95)
        if decided:
            checked += 1
            assert (low <= truth <= high) == (distance < _NEAR), distance
        inside += low <= truth <= high
        widths.append(high - low)
    spread = float(np.std(values))
    bias = float(np.mean(values)) - truth
    ratio = float(np.sqrt(np.mean(np.square(errors)))) / spread
    return Coverage(inside, repetitions, bias, spread / repetitions**0.5, ratio, float(np.mean(widths)))


def mechanisms() -> dict[str, Mechanism]:
    """Return the mechanisms of the study by their names in the table."""
    domain = sf.Domain.range(len(NUMBERS))
    two_reports = np.stack([0.75 - NUMBERS / 40, 0.25 + NUMBERS / 40], axis=1)
    return {
        "randomized response, ε = 3": sf.mechanisms.RandomizedResponse(domain, 3),
        "two reports for a mean, ε = ln 3": sf.mechanisms.TableMechanism.from_matrix(domain, two_reports),
    }


def main(arguments: Sequence[str] | None = ("--repetitions", "500")) -> None:
    """Print the coverage of all studies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20_000)
    parser.add_argument("--people", type=int, default=2000)
    options = parser.parse_args(arguments)
    questions: dict[str, sf.Question] = {"mean": sf.Mean(), "share from 10": sf.Ranges([(10, 20)])}
    print(f"Skewed sample of {options.people:,} people, {options.repetitions:,} repetitions, 95% intervals\n")
    print("| mechanism | answer | estimate | coverage | bias / its standard error | stated / true error | seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, mechanism in mechanisms().items():
        for answer, question in questions.items():
            if answer != "mean" and not mechanism.estimator.is_complete:
                continue
            for method in ("weights", "totals"):
                start = time.perf_counter()
                result = study(mechanism, question, method, options.people, options.repetitions)
                seconds = time.perf_counter() - start
                numbers = f"{result.rate:.2%} | {result.bias / result.bias_error:+.1f} | {result.error_ratio:.3f}"
                print(f"| {name} | {answer} | {method} | {numbers} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main(None)
