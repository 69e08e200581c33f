"""Every user their own prior over a binary value: one report each, and the best estimate of how many hold the second.

Each user is privatized as by ``PriorBinary`` under their own prior. Their parameters are integers, found for all of
them at once by compiled code that ``user_thresholds`` states one by one. By Proposition 2 of Jiang, Li, Tandon the
errors of independent users add, so the best mechanism for each is the best for all.

**A prior is visible**: it fixes the probabilities of a report, and whoever reads the report knows it. So it must be
public, or that of a group to which people belong whatever their value, or itself released privately; ``prior_source``
says which. A prior learnt from a person's private history tells that history.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Floats, Words, core_count, floor_of_ratio, read_integer
from sfumato.auditing import Channel
from sfumato.domain import Domain, align, checked_domain, labels_domain, library
from sfumato.errors import InvalidInput
from sfumato.estimation import EventEstimate, Events
from sfumato.mechanisms import TOTAL, TOTAL_BITS, Draws, Field, Layout, reports_to_column
from sfumato.policy import Prior
from sfumato.randomness import MAIN, SecureStream, Stream, keystream

__all__ = ["DECLARATIONS", "LAYOUT", "EventEstimate", "LocalPriors", "LocalTotal", "user_thresholds"]

#: What a prior may be, and what is thereby declared.
DECLARATIONS = {
    "public": "everyone could know it beforehand, without any of these people's data",
    "cohort": "it is that of a group, and nobody's value decides to which group they belong",
    "released": "it was estimated from reports that were private themselves, and their privacy was accounted for",
}

#: At this ε and above, e^-ε is less than 2^-62.
_BELOW_ONE_UNIT = Epsilon(44)

#: One decision a user (docs/words-to-decisions.md): report the first value, bernoulli(·, 2^62).
LAYOUT = Layout(64, (Field.number(2, TOTAL_BITS),))


def user_thresholds(prior: int, least: int) -> tuple[int, int]:
    """How many of 2^62 reports name the first value, if the user holds the first and if they hold the second.

    ``prior`` is 2^62·Pr(X=1), ``least`` is e^-ε·2^62 rounded up. Every rounding is to the private side:
    ``docs/proofs/local-priors.md``.
    """
    first, second = _edge(TOTAL - prior, least), _edge(prior, least)
    left, right = TOTAL - first, TOTAL - second
    whole = left + right - left * right // TOTAL
    if whole == 0:
        return TOTAL // 2, TOTAL // 2
    second = right * TOTAL // whole
    return second, _up(first * second, TOTAL)


def _edge(prior: int, least: int) -> int:
    """At least 2^62 times the least likelihood of the other value beside one of the value with this ``prior``."""
    other = TOTAL - prior
    edge = 0
    # Of the two bounds the greater is in force, and only where its divisor is at least a half.
    if other >= TOTAL // 2 - 2 and least > prior:
        edge = _up((least - prior) * TOTAL, other)
    below = TOTAL - _up(other * least, TOTAL)
    if below >= TOTAL // 2 - 2:
        edge = max(edge, _up(_up(prior * least, TOTAL) * TOTAL, below))
    return min(edge, int(TOTAL))


def _up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


@dataclass(frozen=True, eq=False, repr=False)
class LocalTotal(EventEstimate):
    """How many of ``n`` users hold the second value: ``value`` with its ``standard_error``.

    ``events`` are what the error is made of: people whose value is not the one that their report makes likely.
    ``unseen`` is 0, because every report counts. ``terms`` is empty, because the events give the limits.
    """

    n: int

    format: ClassVar[str] = "sfumato-local-total"
    _further_keys: ClassVar[tuple[str, ...]] = ("events", "n")

    def _further(self) -> dict[str, Any]:
        return {**super()._further(), "n": self.n}

    @classmethod
    def _read_further(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._read_further(document), "n": read_integer("LocalTotal", "n", document["n"], 1)}

    @property
    def frequency(self) -> EventEstimate:
        """The same number as a fraction of the users."""
        return self.scaled(1 / self.n)

    def merge(self, other: LocalTotal) -> LocalTotal:
        """Return the total of both groups of users: independent, so variances add."""
        error = float(np.hypot(self.standard_error, other.standard_error))
        return LocalTotal(self.value + other.value, error, self.n + other.n, events=self.events + other.events)


class LocalPriors:
    """Users with priors of their own, all at one ε. ``priors[i]`` is how probable the second value is for user i.

    A prior is rounded to a multiple of 2^-62, and that is the prior a report is private under. ``prior_source`` must be
    one of "public", "cohort" and "released": see ``DECLARATIONS``. Immutable.

    Priors that are labelled with their users (a pandas Series, a mapping) fix the order of the users. Values, priors
    and reports that are labelled too are then brought into it, and what has no labels is in this order already.
    """

    def __init__(
        self,
        priors: Any,
        epsilon: EpsilonLike,
        *,
        prior_source: str | None = None,
        domain: Domain | None = None,
    ) -> None:
        _check_declared(prior_source)
        self.domain = Domain([0, 1]) if domain is None else checked_domain("LocalPriors", domain)
        if len(self.domain) != 2:
            raise InvalidInput("LocalPriors", "domain", "have exactly two values", len(self.domain))
        self.epsilon = Epsilon(epsilon, subject="LocalPriors")
        self.prior_source = prior_source
        self._users = labels_domain(priors, "LocalPriors", "priors")
        self._fixed = _fixed_point("priors", self._by_user("priors", priors))

    def __len__(self) -> int:
        return len(self._fixed)

    @property
    def priors(self) -> Floats:
        """The priors as they count: the nearest doubles to multiples of 2^-62."""
        return np.asarray(self._fixed / TOTAL)

    @functools.cached_property
    def thresholds(self) -> Words:
        """A row of ``user_thresholds`` for each user."""
        from sfumato.mechanisms import write_thresholds

        thresholds = np.empty((len(self), 2), np.uint64)
        least = np.uint64(_least_rounded_up(self.epsilon))
        parts = [slice(*ends) for ends in _parts(len(self))]
        if len(parts) == 1:
            write_thresholds(self._fixed, least, thresholds)
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                list(pool.map(lambda part: write_thresholds(self._fixed[part], least, thresholds[part]), parts))
        thresholds.setflags(write=False)
        return thresholds

    # -- one user ----------------------------------------------------------------------------------------------

    def policy(self, user: int) -> Prior:
        """What the report of one user promises."""
        prior = Fraction(int(self._fixed[user]), TOTAL)
        return Prior(self.domain, [1 - prior, prior], self.epsilon)

    def law(self, user: int) -> Channel:
        """The exact law of one user's report."""
        rows = [Fraction(int(threshold), TOTAL) for threshold in self.thresholds[user]]
        return Channel(self.domain, [[p, 1 - p] for p in rows])

    def sample(self, user: int, x: int, draws: Draws) -> int:
        """One report, of the value with index x: what ``privatize`` does for all."""
        return 0 if draws.bernoulli(int(self.thresholds[user, x]), TOTAL) else 1

    # -- all of them -------------------------------------------------------------------------------------------

    def privatize(self, values: Any, stream: Stream | None = None) -> Any:
        """Return a report for the value of each user, 0 or 1, in the order of the users.

        For a pandas Series, a Series named "report" with the labels of the users; for polars a Series, for Arrow an
        array, for anything else a numpy array. Randomness is secure unless ``stream`` is given.
        """
        indices = self.domain.encode(self._by_user("values", values))
        self._check_count("values", len(indices))
        chosen = np.take_along_axis(self.thresholds, indices[:, None], axis=1)[:, 0]
        per_chunk = LAYOUT.chunk_values
        key, first = (stream or SecureStream()).reserve(-(-len(indices) // per_chunk))
        reports = np.empty(len(indices), np.uint8)
        for chunk, start in enumerate(range(0, len(indices), per_chunk), first):
            part = chosen[start : start + per_chunk]
            words = np.frombuffer(keystream(key, chunk, MAIN).update(bytes(8 * len(part))), "<u8")
            reports[start : start + per_chunk] = words >> np.uint64(64 - TOTAL_BITS) >= part
        column = reports_to_column(reports, values)
        if library(values) != "pandas" or self._users is None:
            return column
        labels = labels_domain(values, "LocalPriors", "values")
        return column if labels in (None, Domain.range(len(self))) else column.set_axis(list(self._users))

    def posterior_means(self, reports: Any) -> Floats:
        """Pr(X=1|Y) of each user: what their report makes of their prior."""
        chosen = self._reports(reports)
        low, high = self._posteriors
        return np.where(chosen == 1, high, low)

    def estimate(self, reports: Any, method: str = "mmse") -> LocalTotal:
        """How many users hold the second value.

        ``mmse``: Σ E[Xᵢ|Yᵢ], the least mean square error if the priors are right; its standard error is that of
        Σ Xᵢ given the reports. ``unbiased``: right on average for every set of values, whatever the priors; far less
        exact. If the two differ by more than their errors, the priors are wrong.
        """
        chosen = self._reports(reports)
        if method == "mmse":
            means = self.posterior_means(chosen)
            error = float(np.sum(means * (1 - means))) ** 0.5
            ones = np.ones(len(self))
            # A user who holds the second value makes the total larger than the sum of the means: the error falls.
            return LocalTotal(float(means.sum()), error, len(self), events=tuple(Events.of(means, -ones, ones)))
        if method != "unbiased":
            raise InvalidInput("LocalPriors", "method", "be one of mmse, unbiased", method)
        thresholds = self.thresholds.astype(np.int64)
        gap = (thresholds[:, 0] - thresholds[:, 1]) / TOTAL
        if not gap.all():
            raise InvalidInput("LocalPriors", "method", "not be 'unbiased' where a report tells nothing", method)
        ones = 1 - thresholds / TOTAL  # Pr(Y=1|x)
        each = (chosen - ones[:, 0]) / gap
        noise = ones * (1 - ones)
        variance = float(np.sum((noise[:, 0] + each * (noise[:, 1] - noise[:, 0])) / gap**2))
        # How many hold each value is as uncertain as the total; at least one each is reckoned with.
        events = []
        for x, holds in enumerate((1 - each, each)):
            weights = np.full(len(self), max(float(holds.sum()), 1.0) / len(self))
            events += Events.of(ones[:, x], 1 / gap, weights)
        return LocalTotal(float(each.sum()), max(variance, 0.0) ** 0.5, len(self), events=tuple(events))

    @property
    def errors(self) -> Floats:
        """Each user's mean square error of E[X|Y] under their prior. They add (Proposition 2)."""
        return self._error_parts(self.priors)[1]

    def error_if(self, true_priors: Any) -> tuple[float, float]:
        """Bias and mean square error of the ``mmse`` total if the true priors are these, and not those assumed."""
        true = _fixed_point("true_priors", self._by_user("true_priors", true_priors)) / TOTAL
        self._check_count("true_priors", len(true))
        biases, squares = self._error_parts(true)
        bias = float(biases.sum())
        return bias, float(np.sum(squares - biases**2)) + bias**2

    # -- what these are made of --------------------------------------------------------------------------------

    @functools.cached_property
    def _posteriors(self) -> tuple[Floats, Floats]:
        """Pr(X=1|Y=0) and Pr(X=1|Y=1)."""
        p, zeros = self.priors, self.thresholds / TOTAL
        ones = (np.uint64(TOTAL) - self.thresholds) / TOTAL  # not 1 - zeros: a rare report keeps its digits
        return _posterior(p, zeros), _posterior(p, ones)

    def _error_parts(self, true: Floats) -> tuple[Floats, Floats]:
        """Each user's mean error and mean square error, for values drawn from ``true``."""
        low, high = self._posteriors
        zeros = self.thresholds / TOTAL
        bias, square = np.zeros(len(self)), np.zeros(len(self))
        for x, weight in enumerate((1 - true, true)):
            for guess, likelihood in ((low, zeros[:, x]), (high, 1 - zeros[:, x])):
                bias += weight * likelihood * (guess - x)
                square += weight * likelihood * (guess - x) ** 2
        return bias, square

    def _reports(self, reports: Any) -> npt.NDArray[np.uint8]:
        array = np.asarray(self._by_user("reports", reports))
        self._check_count("reports", array.shape[0] if array.ndim == 1 else -1)
        if array.dtype.kind not in "iub" or not np.isin(array, (0, 1)).all():
            raise InvalidInput("LocalPriors", "reports", "be 0 or 1", reports)
        return array.astype(np.uint8)

    def _by_user(self, parameter: str, entries: Any) -> Any:
        """Return entries in the order of the users: by label, where both these and the priors have labels."""
        if self._users is None:
            return entries
        labels = labels_domain(entries, "LocalPriors", parameter)
        if labels is not None and len(labels) < len(self._users):
            without = next(user for user in self._users if user not in labels)
            raise InvalidInput("LocalPriors", parameter, "be one for each user", f"none for {without!r}")
        return align(self._users, entries, "LocalPriors", parameter)

    def _check_count(self, parameter: str, count: int) -> None:
        if count != len(self):
            raise InvalidInput("LocalPriors", parameter, f"be one for each of {len(self)} users", count)


def _posterior(prior: Floats, likelihoods: Floats) -> Floats:
    """P₁T₁/(P₀T₀ + P₁T₁); where the report is impossible, the prior."""
    joint = prior * likelihoods[:, 1]
    total = (1 - prior) * likelihoods[:, 0] + joint
    return np.divide(joint, total, out=prior.copy(), where=total > 0)


def _check_declared(prior_source: str | None) -> None:
    if prior_source not in DECLARATIONS:
        choices = ", ".join(repr(choice) for choice in DECLARATIONS)
        raise InvalidInput(
            "LocalPriors",
            "prior_source",
            f"be declared as one of {choices}: a report shows the prior it was made with, so one learnt from a "
            "person's private history must first be released privately",
            prior_source,
        )


def _fixed_point(parameter: str, priors: Any) -> Words:
    """Probabilities as multiples of 2^-62."""
    try:
        array = np.asarray(priors, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("LocalPriors", parameter, "be a row of numbers in [0, 1]", priors) from None
    if array.ndim != 1 or len(array) == 0:
        raise InvalidInput("LocalPriors", parameter, "be a row of at least one number", f"shape {array.shape}")
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        user = int(wrong.argmax())
        raise InvalidInput("LocalPriors", f"{parameter}: that of user {user}", "lie in [0, 1]", float(array[user]))
    return np.asarray(np.rint(array * TOTAL).astype(np.uint64))


def _least_rounded_up(epsilon: Epsilon) -> int:
    """The least integer that is at least e^-ε·2^62: certified."""
    if epsilon.is_infinite:
        return 0
    if epsilon > _BELOW_ONE_UNIT:
        return 1
    return -floor_of_ratio((Fraction(0), Fraction(-TOTAL)), (Fraction(1), Fraction(0)), epsilon)


def _parts(count: int) -> Iterator[tuple[int, int]]:
    """The users in as many parts as there are cores, if they are many."""
    size = max(-(-count // core_count()), 2**15)
    return ((start, min(start + size, count)) for start in range(0, count, size))
