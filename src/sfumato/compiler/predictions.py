"""Predicted errors of estimates by any method, from counts that are drawn from their law.

The error of the unbiased estimate has a formula. The errors of other methods depend on the true distribution, and are
simulated: counts are drawn from their law, estimated by the method, and compared with the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._core import MOST_PEOPLE, Floats, check_keys, number_document, read_integer, read_number, read_string
from sfumato.collecting import Aggregate
from sfumato.domain import Domain, Frequencies, checked_distribution
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.estimation import METHODS, estimate
from sfumato.mechanisms import Estimator, Mechanism, count_law_for
from sfumato.randomness import insecure_generator

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["TRUTHS", "Assumption", "PredictedError", "people_for", "predict", "truth_distribution", "value_errors"]

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
#: Least and greatest number of draws, and the relative standard error of the mean distance at which draws end.
_FEWEST, _MOST, _ACCURACY = 8, 200, 0.01
#: The same relative error for methods that search for a fit, because an estimate may take a second.
_ROUGH_ACCURACY = 0.03
#: Number of values up to which counts that are not a histogram are always drawn from their exact law, and up to which
#: they are if single reports matter. Drawing the counts of subset selection over 100 values takes 17 ms and over 1,000
#: values 0.2 s; the normal approximation of its estimate takes less than 1 ms.
_SMALL_EXACT, _LARGEST_EXACT = 16, 256
#: Effect of one report on a frequency, relative to its standard error, above which single reports matter.
_LARGE_EFFECT = 0.3
#: Steps of the bisection for a number of people, each by a factor of 2 at first; the last one is by 1%.
_BISECTIONS = 7


@dataclass(frozen=True)
class PredictedError:
    """Predicted error of the frequencies that a method estimates, from simulated counts.

    Parameters
    ----------
    method
        Method of :func:`estimate` whose error is predicted.
    tv
        Expected total variation distance between the estimate and the truth, at most 1.
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


def predict(mechanism: Mechanism, n: int, assumed: Assumption) -> PredictedError | None:
    """Return the predicted error of estimates from n reports; None if the method does not support the mechanism."""
    if math.isinf(mechanism.risk(n, assumed.truth)):
        return None
    distances: list[float] = []
    squares: list[float] = []
    accuracy = _ACCURACY if assumed.method in _OF_UNBIASED else _ROUGH_ACCURACY
    try:
        for frequencies in _estimates(mechanism, n, assumed):
            difference = frequencies - assumed.truth
            distances.append(min(float(np.abs(difference).sum()) / 2, 1.0))
            squares.append(float(difference @ difference))
            if len(distances) >= _FEWEST and _standard_error(distances) <= accuracy * np.mean(distances):
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


def value_errors(mechanism: Mechanism, n: int, assumed: Assumption) -> Floats:
    """Return the expected root mean square error of each frequency; exact for the method "unbiased"."""
    if assumed.method == "unbiased":
        return np.sqrt(np.maximum(mechanism.estimator.variances(assumed.truth), 0.0) / n)
    squares = [(frequencies - assumed.truth) ** 2 for frequencies in _estimates(mechanism, n, assumed)]
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

    def is_enough(people: float) -> bool:
        predicted = predict(mechanism, round(people), assumed)
        assert predicted is not None
        return predicted.tv <= target

    people = min(max(start, 1.0), float(MOST_PEOPLE))
    enough, factor = is_enough(people), 2.0
    while True:
        other = people / factor if enough else people * factor
        if other < 1:
            if is_enough(1.0):
                return 1
            other = 1.0
            break
        if other > MOST_PEOPLE:
            return None
        if is_enough(other) != enough:
            break
        people, factor = other, factor**2
    low, high = sorted((people, other))
    steps = _BISECTIONS + max(0, math.ceil(math.log2(max(math.log2(high / low), 1.0))))
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return math.ceil(high)


def _standard_error(numbers: list[float]) -> float:
    """Return the standard error of the mean of independent numbers."""
    return float(np.std(numbers, ddof=1)) / math.sqrt(len(numbers)) if len(numbers) > 1 else 0.0


def _estimates(mechanism: Mechanism, n: int, assumed: Assumption) -> Iterator[Floats]:
    """Yield the frequencies that the method estimates in simulated surveys; the seed is fixed."""
    generator, truth = insecure_generator(0), assumed.truth
    law, linear = count_law_for(mechanism), _OF_UNBIASED.get(assumed.method)
    if linear is not None and (law is None or _is_drawn_as_normal(mechanism, n, truth)):
        for unbiased in _normal_frequencies(mechanism, n, truth, generator):
            yield linear(mechanism.estimator, unbiased)
    elif law is None:
        raise InvalidInput("plan", "method", f"be one of {', '.join(_OF_UNBIASED)} for {mechanism!r}", assumed.method)
    else:
        for _ in range(_MOST):
            counts = Aggregate(mechanism.hash, n, law(generator, n, truth))
            yield estimate(mechanism, counts, assumed.method).frequencies


def _is_drawn_as_normal(mechanism: Mechanism, n: int, truth: Floats) -> bool:
    """Return whether the normal law replaces the exact law of counts, because that takes long to draw from."""
    if mechanism.report_format.is_histogram or len(truth) <= _SMALL_EXACT:
        return False
    if len(truth) > _LARGEST_EXACT:
        return True
    least, greatest = mechanism.estimator.honest_score_bounds()
    effects = np.maximum(greatest - truth, truth - least) / n
    deviations = np.sqrt(np.maximum(mechanism.estimator.variances(truth), 0.0) / n)
    return bool((effects <= _LARGE_EFFECT * deviations).all())


def _normal_frequencies(mechanism: Mechanism, n: int, truth: Floats, generator: Generator) -> Iterator[Floats]:
    """Yield normal unbiased frequencies with the exact variances; their sum is 1 if all reports have this sum."""
    estimator = mechanism.estimator
    variances = np.maximum(estimator.variances(truth), 0.0) / n
    total = float(variances.sum())
    has_sum = total > 0 and estimator.variance(np.ones(len(truth)), truth) <= 1e-9 * total * n
    share = variances / total if has_sum else np.zeros(len(truth))
    scale = np.sqrt(variances / np.maximum(1 - share, 0.5))  # centring removes this part of each variance
    for _ in range(_MOST):
        noise = scale * generator.standard_normal(len(truth))
        yield truth + noise - share * noise.sum()


#: Methods that depend only on the unbiased frequencies, which are nearly normal if there are many.
_OF_UNBIASED: dict[str, Callable[[Estimator, Floats], Floats]] = {
    "unbiased": lambda estimator, unbiased: unbiased,  # noqa: ARG005
    "simplex": lambda estimator, unbiased: estimator.nearest(unbiased, estimator.expected_counts(unbiased)),
}
