"""Predicted errors of estimates by any method, from counts that are drawn from their law.

The error of the unbiased estimate has a formula. The errors of other methods depend on the true distribution, and are
simulated: counts are drawn from their law, estimated by the method, and compared with the truth.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sfumato._core import MOST_PEOPLE, Floats, check_keys, number_document, read_integer, read_number, read_string
from sfumato.collecting import Aggregate
from sfumato.domain import Domain, Frequencies, checked_distribution
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.estimation import METHODS, estimate, shrunk
from sfumato.mechanisms import Mechanism, count_law_for
from sfumato.randomness import insecure_generator

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import Generator

__all__ = [
    "TRUTHS",
    "Assumption",
    "PredictedError",
    "Visible",
    "people_for",
    "predict",
    "truth_distribution",
    "unbiased_errors",
    "value_errors",
]

#: Named truths over k values, as unnormalised weights.
TRUTHS: dict[str, Callable[[int], Floats]] = {
    "uniform": lambda k: np.ones(k, dtype=np.float64),
    "zipf": lambda k: np.asarray(1 / np.arange(1, k + 1), dtype=np.float64),
    "geometric": lambda k: np.asarray(0.95 ** np.arange(k), dtype=np.float64),
}
#: What each named truth says, in words.
_TRUTH_WORDS = {
    "uniform": "equally frequent values",
    "zipf": "frequencies proportional to 1/rank (zipf)",
    "geometric": "frequencies proportional to 0.95^rank (geometric)",
}
#: Standard errors by which a frequency has to exceed zero to be distinguished from it, at a confidence level of 95%.
DISTINCT = 1.96
#: Methods that take less than a millisecond.
_QUICK = ("unbiased", "simplex")
#: Maximum number of draws.
_MOST = 200
#: Least number of draws in the search for a number of people, for methods that take little time.
_FEWEST_IN_SEARCH = 200
#: Number of values up to which counts are always drawn from their exact law, and up to which counts that are not a
#: histogram are if single reports matter. Drawing the counts of subset selection over 100 values takes 17 ms and over
#: 1,000 values 0.2 s; the normal approximation of its estimate takes less than 1 ms.
_SMALL_EXACT, _LARGEST_EXACT = 16, 256
#: Effect of one report on a frequency, relative to its standard error, above which single reports matter.
_LARGE_EFFECT = 0.3
#: Least step of the search for a number of people, as a logarithm.
_LEAST_STEP = 0.1
#: Relative distance of an error from the target up to which it counts for the final interpolation; sum of squares of
#: logarithms below which points are too near each other for a slope.
_NEAR, _LEAST_SPREAD = 0.2, 1e-3


class _Precision(NamedTuple):
    """How many surveys are simulated: at least, at most, and the relative standard error of their mean at the end."""

    fewest: int
    most: int
    error: float


#: Of methods that take less than a millisecond.
_QUICK_PRECISION = _Precision(8, _MOST, 0.01)
#: Of methods that search for a fit, which takes milliseconds.
_FIT_PRECISION = _Precision(16, _MOST, 0.02)
#: Of the method "best", which simulates surveys for each estimate.
_BEST_PRECISION = _Precision(12, 32, 0.03)


@dataclass(frozen=True)
class PredictedError:
    """Predicted error of the frequencies that a method estimates, from simulated counts.

    Parameters
    ----------
    method
        Method of :func:`estimate` whose error is predicted.
    tv
        Expected total variation error: half the l1 distance between the estimate and the truth. It exceeds 1 only for
        estimates that are not distributions, such as those of the method ``"unbiased"``.
    tv_error
        Standard error of ``tv``, because it is a mean over simulated surveys.
    squared
        Expected squared l2 distance between the estimate and the truth. It is exact for the method ``"unbiased"``.
    squared_error
        Standard error of ``squared``; 0 if it is exact.
    draws
        Number of simulated surveys.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, plan
    >>> compared = plan(Uniform(Domain.range(100), 1), n=10_000, truth="zipf", method="simplex")
    >>> predicted = compared.best.predicted
    >>> predicted.method, round(predicted.tv, 1), predicted.tv_error < 0.01
    ('simplex', 0.4, True)
    """

    method: str
    tv: float
    tv_error: float
    squared: float
    squared_error: float
    draws: int

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per field.
        """
        numbers = ("tv", "tv_error", "squared", "squared_error")
        document = {name: number_document(getattr(self, name)) for name in numbers}
        return {"method": self.method, **document, "draws": self.draws}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PredictedError:
        """Return the prediction that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        PredictedError
            A prediction equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed, or a number is negative.
        """
        subject = "PredictedError"
        parts = check_keys(subject, "the document", document, required=tuple(cls.__dataclass_fields__))
        numbers = {
            name: read_number(subject, name, parts[name], least=0.0)
            for name in ("tv", "tv_error", "squared", "squared_error")
        }
        method = read_string(subject, "method", parts["method"])
        return cls(method=method, **numbers, draws=read_integer(subject, "draws", parts["draws"], 1))


@dataclass(frozen=True, eq=False)
class Assumption:
    """What a prediction assumes: the true distribution and the method of estimation."""

    truth: Floats
    words: str
    method: str

    @classmethod
    def read(
        cls, verb: str, truth: str | Frequencies | None, method: str, prior: Frequencies | None, domain: Domain
    ) -> Assumption:
        """Return the validated assumption; the truth is the prior by default, or uniform without one."""
        methods = [name for name in METHODS if name != "mmse"]
        if method not in methods:
            raise InvalidInput(verb, "method", f"be one of {', '.join(methods)}", method)
        if truth is None and prior is not None:
            return cls(checked_distribution(prior, domain, verb, "prior"), "frequencies equal to the prior", method)
        truth = "uniform" if truth is None else truth
        words = _TRUTH_WORDS[truth] if isinstance(truth, str) and truth in TRUTHS else "the given truth"
        return cls(truth_distribution(verb, truth, domain), words, method)


def truth_distribution(verb: str, truth: Any, domain: Domain) -> Floats:
    """Return a true distribution as an array; ``truth`` is a name of ``TRUTHS`` or a distribution."""
    if truth is None or (isinstance(truth, str) and truth not in TRUTHS):
        raise InvalidInput(verb, "truth", f"be a distribution, or one of {', '.join(TRUTHS)}", truth)
    if isinstance(truth, str):
        weights = TRUTHS[truth](len(domain))
        truth = weights / weights.sum()
    return checked_distribution(truth, domain, verb, "truth", absent=0.0)


def _precision(method: str) -> _Precision:
    """Return how many surveys are simulated for a method."""
    if method in _QUICK:
        return _QUICK_PRECISION
    return _BEST_PRECISION if method == "best" else _FIT_PRECISION


def predict(mechanism: Mechanism, n: int, assumed: Assumption, *, fewest: int = 0) -> PredictedError | None:
    """Return the predicted error of estimates from n reports; None if the method does not support the mechanism.

    At least ``fewest`` surveys are simulated.
    """
    if math.isinf(mechanism.risk(n, assumed.truth)):
        return None
    distances: list[float] = []
    squares: list[float] = []
    precision = _precision(assumed.method)
    try:
        for frequencies in itertools.islice(_estimates(mechanism, n, assumed), precision.most):
            difference = frequencies - assumed.truth
            distances.append(float(np.abs(difference).sum()) / 2)
            squares.append(float(difference @ difference))
            is_enough = len(distances) >= max(precision.fewest, fewest)
            if is_enough and _standard_error(distances) <= precision.error * np.mean(distances):
                break
    except (InvalidInput, LimitExceeded):  # such as the method "efficient" with reports that are bitmaps
        return None
    exact = assumed.method == "unbiased"
    return PredictedError(
        method=assumed.method,
        tv=float(np.mean(distances)),
        tv_error=_standard_error(distances),
        squared=mechanism.risk(n, assumed.truth) if exact else float(np.mean(squares)),
        squared_error=0.0 if exact else _standard_error(squares),
        draws=len(distances),
    )


def unbiased_errors(mechanism: Mechanism, n: int, truth: Floats) -> Floats:
    """Return the exact standard error of each unbiased frequency from n people whose values have this distribution."""
    return np.sqrt(np.maximum(mechanism.estimator.variances(truth), 0.0) / n)


class Visible(NamedTuple):
    """Values that can be expected to differ from zero: whether each one does, and from which frequency on all do."""

    values: npt.NDArray[np.bool_]
    least: float
    error: float

    @classmethod
    def of(cls, mechanism: Mechanism, n: int, truth: Floats) -> Visible:
        """Return what n people show; ``least`` exceeds 1 if they show no value, and ``error`` is the error there.

        The squared error of a frequency f is (a + bf - f²)/n, because the estimate is a mean of scores. ``least`` is
        the frequency that equals its ± for the value with the greatest error among those that are not visible.
        """
        errors = unbiased_errors(mechanism, n, truth)
        values = truth > DISTINCT * errors
        value = int(np.argmax(np.where(values, 0.0, errors)))
        alone = np.arange(len(truth)) == value
        rest = np.where(alone, 0.0, truth)
        # Without other people, the remaining values are equally frequent.
        rest = rest / rest.sum() if rest.sum() > 0 else (~alone) / max(len(truth) - 1, 1)
        without, certain = (float(mechanism.estimator.variances(each)[value]) for each in (rest, alone.astype(float)))
        square = DISTINCT**2 / n
        half = square * (certain + 1 - without) / 2
        least = (half + math.sqrt(half**2 + (1 + square) * square * max(without, 0.0))) / (1 + square)
        return cls(values, least, least / DISTINCT)


def value_errors(mechanism: Mechanism, n: int, assumed: Assumption) -> Floats:
    """Return the expected root mean square error of each frequency; exact for the method "unbiased"."""
    if assumed.method == "unbiased":
        return unbiased_errors(mechanism, n, assumed.truth)
    draws = itertools.islice(_estimates(mechanism, n, assumed), _precision(assumed.method).most)
    squares = [(frequencies - assumed.truth) ** 2 for frequencies in draws]
    return np.asarray(np.sqrt(np.mean(squares, axis=0)))


def people_for(target: float, mechanism: Mechanism, assumed: Assumption, start: float) -> int | None:
    """Return the number of people whose predicted total variation error is the target; None if it is above 2^53.

    Parameters
    ----------
    target
        The total variation error to reach, above 0 and below 1.
    mechanism
        A mechanism whose reports determine all frequencies.
    assumed
        The assumed truth and method.
    start
        A first guess of the number.
    """

    def excess(people: float) -> float:
        """Return the logarithm of the predicted error, relative to the target; at most 0 if people are enough."""
        predicted = predict(mechanism, round(people), assumed, fewest=fewest)
        assert predicted is not None
        return math.log(max(predicted.tv, 1e-300) / target)

    # More surveys than for a prediction, where they take little time, because errors of 1% are 2% of the people.
    fewest, interpolations = (_FEWEST_IN_SEARCH, 8) if assumed.method in _QUICK else (0, 3)
    # Errors decrease about as 1/√n, so that each guess moves by the square of the ratio, and farther if it repeats.
    people, factor = min(max(start, 1.0), float(MOST_PEOPLE)), 2.0
    too_few: tuple[float, float] | None = None
    enough: tuple[float, float] | None = None
    while too_few is None or enough is None:
        above = excess(people)
        if above <= 0:
            enough = people, above
            if people == 1:
                return 1
        else:
            too_few = people, above
            if people == MOST_PEOPLE:
                return None
        step = math.copysign(max(abs(factor * above), _LEAST_STEP), above)
        people, factor = min(max(people * math.exp(min(step, 60.0)), 1.0), float(MOST_PEOPLE)), 2 * factor
    points = [too_few, enough]
    for _ in range(interpolations):
        share = min(max(too_few[1] / (too_few[1] - enough[1]), 0.1), 0.9)
        people = too_few[0] * (enough[0] / too_few[0]) ** share
        points.append((people, excess(people)))
        too_few, enough = (too_few, points[-1]) if points[-1][1] <= 0 else (points[-1], enough)
    return math.ceil(_root([point for point in points if abs(point[1]) <= _NEAR] or [enough]))


def _root(points: list[tuple[float, float]]) -> float:
    """Return the number at which a line through points (n, excess) is zero, with n on a logarithmic scale.

    Simulated errors are noisy, and the line averages over them.
    """
    logarithms, excesses = np.log([people for people, _ in points]), np.array([above for _, above in points])
    middle, spread = float(logarithms.mean()), logarithms - logarithms.mean()
    flat = float(spread @ spread) < _LEAST_SPREAD
    slope = -0.5 if flat else float(np.clip(spread @ excesses / (spread @ spread), -1.0, -0.2))
    return math.exp(min(max(middle - float(excesses.mean()) / slope, 0.0), math.log(MOST_PEOPLE)))


def _standard_error(numbers: list[float]) -> float:
    """Return the standard error of the mean of independent numbers."""
    return float(np.std(numbers, ddof=1)) / math.sqrt(len(numbers)) if len(numbers) > 1 else 0.0


def _estimates(mechanism: Mechanism, n: int, assumed: Assumption) -> Iterator[Floats]:
    """Yield the frequencies that the method estimates in simulated surveys; the seed is fixed."""
    generator, truth = insecure_generator(0), assumed.truth
    law, of_unbiased = count_law_for(mechanism), _OF_UNBIASED.get(assumed.method)
    if of_unbiased is not None:
        for unbiased, fractions in _unbiased_frequencies(mechanism, n, assumed, generator):
            yield of_unbiased(mechanism, unbiased, fractions, n)
    elif law is None:
        raise InvalidInput("plan", "method", f"be one of {', '.join(_OF_UNBIASED)} for {mechanism!r}", assumed.method)
    else:
        for _ in range(_MOST):
            counts = Aggregate(mechanism.hash, n, law(generator, n, truth))
            yield estimate(mechanism, counts, assumed.method).frequencies


def _unbiased_frequencies(
    mechanism: Mechanism, n: int, assumed: Assumption, generator: Generator
) -> Iterator[tuple[Floats, Floats]]:
    """Yield unbiased frequencies and fractions of reports of simulated surveys, from their exact or the normal law."""
    law, estimator, truth = count_law_for(mechanism), mechanism.estimator, assumed.truth
    if law is None or _is_drawn_as_normal(mechanism, n, assumed):
        for unbiased in _normal_frequencies(mechanism, n, truth, generator):
            yield unbiased, estimator.expected_counts(unbiased)
    else:
        for _ in range(_MOST):
            counts = law(generator, n, truth)
            yield estimator.frequencies_of_counts(counts, n), counts / n


def _is_drawn_as_normal(mechanism: Mechanism, n: int, assumed: Assumption) -> bool:
    """Return whether the normal law replaces the exact law of counts.

    It takes less time if reports are bitmaps. For methods with few draws, it is used for other reports too: mechanisms
    with the same variances then have the same simulated errors, because the seed is fixed.
    """
    is_histogram, size = mechanism.report_format.is_histogram, len(assumed.truth)
    if size <= _SMALL_EXACT or (is_histogram and assumed.method in _QUICK):
        return False
    if size > _LARGEST_EXACT and not is_histogram:
        return True
    truth = assumed.truth
    least, greatest = mechanism.estimator.honest_score_bounds()
    effects = np.maximum(greatest - truth, truth - least) / n
    deviations = unbiased_errors(mechanism, n, truth)
    return bool((effects <= _LARGE_EFFECT * deviations).all())


def _normal_frequencies(mechanism: Mechanism, n: int, truth: Floats, generator: Generator) -> Iterator[Floats]:
    """Yield normal unbiased frequencies with the exact variances; their sum is 1 if all reports have this sum.

    Totals of groups that reports reveal are drawn as counts of people, and errors sum to zero within each group.
    """
    estimator = mechanism.estimator
    group = estimator.known_groups()
    totals = np.bincount(group, weights=truth)
    parts = np.divide(truth, totals[group], out=np.zeros(len(truth)), where=totals[group] > 0)
    between = parts**2 * totals[group] * (1 - totals[group]) if len(totals) > 1 else np.zeros(len(truth))
    variances = np.maximum(estimator.variances(truth) - between, 0.0) / n
    sums = np.bincount(group, weights=variances)[group]
    total = float(variances.sum())
    has_sum = total > 0 and (len(totals) > 1 or estimator.variance(np.ones(len(truth)), truth) <= 1e-9 * total * n)
    share = np.divide(variances, sums, out=np.zeros(len(truth)), where=sums > 0) if has_sum else np.zeros(len(truth))
    scale = np.sqrt(variances / np.maximum(1 - share, 0.5))  # centring removes this part of each variance
    for _ in range(_MOST):
        noise = scale * generator.standard_normal(len(truth))
        noise -= share * np.bincount(group, weights=noise)[group]
        people = generator.multinomial(n, totals / totals.sum()) / n if len(totals) > 1 else totals
        yield parts * people[group] + noise


def _simplex(mechanism: Mechanism, unbiased: Floats, fractions: Floats, n: int) -> Floats:  # noqa: ARG001
    """Return the frequencies of the method "simplex"."""
    return mechanism.estimator.nearest(unbiased, fractions)


def _shrunk(method: str, mechanism: Mechanism, unbiased: Floats, fractions: Floats, n: int) -> Floats:
    """Return the frequencies of the method "bayes" or "best"."""
    nearest = mechanism.estimator.nearest(unbiased, fractions)
    return shrunk(mechanism, unbiased, nearest, n, method, early=True)[0]


#: Methods that depend only on the unbiased frequencies, which are nearly normal if there are many reports.
_OF_UNBIASED: dict[str, Callable[[Mechanism, Floats, Floats, int], Floats]] = {
    "unbiased": lambda mechanism, unbiased, fractions, n: unbiased,  # noqa: ARG005
    "simplex": _simplex,
    "bayes": functools.partial(_shrunk, "bayes"),
    "best": functools.partial(_shrunk, "best"),
}
