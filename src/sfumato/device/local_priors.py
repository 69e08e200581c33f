"""One prior per user over a binary value: one report each, and the best estimate of the number of ones.

Each user's report is drawn as by ``PriorBinary`` under the prior of that user. The parameters of all users are integers
that compiled code computes at once; ``docs/proofs/local-priors.md`` defines them. By Proposition 2 of Jiang, Li and
Tandon, the errors of independent users add. The best mechanism for each user is therefore the best for all.

**A prior is visible.** It fixes the probabilities of a report, so the reader of the report knows it. A prior must
therefore be public, or that of a group whose membership does not depend on the value, or itself released privately.
``prior_source`` states which. A prior learned from a person's private history reveals that history.
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

from sfumato._core import Epsilon, EpsilonLike, Floats, Words, core_count, floor_of_ratio, quantity, read_integer
from sfumato.auditing import Channel
from sfumato.domain import Domain, align, checked_domain, labels_domain, library
from sfumato.errors import Description, InvalidInput
from sfumato.estimation import EventEstimate, Events
from sfumato.mechanisms import TOTAL, TOTAL_BITS, Draws, Field, Layout, reports_to_column
from sfumato.policy import Prior
from sfumato.randomness import MAIN, SecureStream, Stream, keystream

__all__ = ["DECLARATIONS", "LAYOUT", "EventEstimate", "LocalPriors", "LocalTotal"]

#: Accepted origins of a prior, each with the statement that the caller makes by declaring it.
DECLARATIONS = {
    "public": "everyone could know the prior in advance, without data of these people",
    "cohort": "the prior is that of a group, and membership does not depend on the value",
    "released": "the prior was estimated from private reports, and their privacy was accounted for",
}

#: Level above which e^-ε is less than 2^-62.
_BELOW_ONE_UNIT = Epsilon(44)

#: One decision per user (docs/words-to-decisions.md): whether to report the first value, bernoulli(·, 2^62).
LAYOUT = Layout(64, (Field.number(2, TOTAL_BITS),))


@dataclass(frozen=True, eq=False, repr=False)
class LocalTotal(EventEstimate):
    """Estimated number of users with the second value of a binary domain.

    :meth:`LocalPriors.estimate` returns it. Users do not construct it.

    Parameters
    ----------
    value
        Estimated number of users; not rounded to an integer.
    standard_error
        Standard error of ``value``, in users.
    n
        Number of users who sent a report.
    unseen
        Always 0 here; other estimates use this field for reports that never occurred.
    terms
        Always empty here; ``events`` determines the confidence intervals.
    rounding
        The error that bins add (see :class:`LinearEstimate`); 0 here.
    clipped
        The bounds to which numbers were clipped; None for other numbers.
    warnings
        Sentences about ends of the range to which many numbers were clipped.
    events
        Model of the estimation error, from which the confidence intervals are computed.

    See Also
    --------
    LocalPriors.estimate : Compute a total from reports.

    Examples
    --------
    >>> import sfumato as sf
    >>> users = sf.LocalPriors([0.2, 0.5, 0.9], epsilon=2, prior_source="public")
    >>> total = users.estimate([0, 1, 1])
    >>> total.n, round(total.value, 2)
    (3, 1.95)
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
        """Estimated fraction of the users with the second value: the total divided by ``n``."""
        return self.scaled(1 / self.n)

    def merge(self, other: LocalTotal) -> LocalTotal:
        """Add the total of another group of users, whose reports are independent of these.

        Parameters
        ----------
        other
            Estimated total of the other group.

        Returns
        -------
        LocalTotal
            Estimated total of both groups. The values, the numbers of users and the squared standard errors add.
        """
        error = float(np.hypot(self.standard_error, other.standard_error))
        return LocalTotal(self.value + other.value, error, self.n + other.n, events=self.events + other.events)


class LocalPriors:
    """A group of users with a binary value each, and a separate prior for every user.

    Every user reports 0 or 1 under a :class:`Prior` policy with their own prior and the same epsilon. Each prior is
    rounded to a multiple of 2^-62, and the policy holds for the rounded prior. Instances are immutable.

    Parameters
    ----------
    priors
        Probability of the second value of the domain, one number in [0, 1] per user. A pandas Series or a mapping also
        names the users, and fixes their order. Values and reports with such names are aligned by name; those without
        names must have this order.
    epsilon
        Epsilon of the prior policy of every user.
    prior_source
        Required declaration of the origin of the priors:

        - ``"public"``: everyone could know them in advance, without data of these users;
        - ``"cohort"``: each is the prior of a group, and membership does not depend on the value;
        - ``"released"``: they were estimated from private reports whose privacy was accounted for.
    domain
        Domain of exactly two values. The default is ``Domain([0, 1])``.

    Raises
    ------
    InvalidInput
        If a prior is not in [0, 1], the domain does not have two values, or ``prior_source`` is not declared.

    Notes
    -----
    The mechanism and the estimate of the total come from Jiang, Li and Tandon, "Context-aware Data Aggregation with
    Localized Information Privacy". By Proposition 2 there, the mean squared error of the total is the sum of the users'
    mean squared errors, so the best mechanism for each user is the best for the total.

    Examples
    --------
    >>> import sfumato as sf
    >>> users = sf.LocalPriors([0.2, 0.5, 0.9], epsilon=2, prior_source="public")
    >>> reports = users.privatize([0, 1, 1])
    >>> users.estimate(reports).n
    3
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
            got = Description(quantity(len(self.domain), "value"))
            raise InvalidInput("LocalPriors", "domain", "have exactly two values", got)
        self.epsilon = Epsilon(epsilon, subject="LocalPriors")
        self.prior_source = prior_source
        self._users = labels_domain(priors, "LocalPriors", "priors")
        self._fixed = _fixed_point("priors", self._by_user("priors", priors))

    def __len__(self) -> int:
        return len(self._fixed)

    @property
    def priors(self) -> Floats:
        """Prior probability of the second value for each user, in the order of the users; rounded to 2^-62."""
        return np.asarray(self._fixed / TOTAL)

    @functools.cached_property
    def thresholds(self) -> Words:
        """Exact probabilities of the report 0 as integers, in units of 2^-62: shape (users, 2).

        Entry [i, x] is 2^62 · Pr(report 0 | value x) of user i, for x = 0 (first value of the domain) and x = 1.
        """
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
        """Return the policy that the report of one user obeys.

        Parameters
        ----------
        user
            Position of the user, from 0.

        Returns
        -------
        Prior
            The policy with the rounded prior of that user and the common epsilon.
        """
        prior = Fraction(int(self._fixed[user]), TOTAL)
        return Prior(self.domain, [1 - prior, prior], self.epsilon)

    def law(self, user: int) -> Channel:
        """Return the exact probabilities of one user's report for each value.

        Parameters
        ----------
        user
            Position of the user, from 0.

        Returns
        -------
        Channel
            The table Pr(report y | value x), with one row per value and one column per report, as exact fractions.
        """
        rows = [Fraction(int(threshold), TOTAL) for threshold in self.thresholds[user]]
        return Channel(self.domain, [[p, 1 - p] for p in rows])

    def sample(self, user: int, x: int, draws: Draws) -> int:
        """Draw the report of one user from a source of random decisions.

        Auditors call this method; :meth:`privatize` draws the reports of all users with the same probabilities.

        Parameters
        ----------
        user
            Position of the user, from 0.
        x
            Index of the user's value in the domain, 0 or 1.
        draws
            Source of random decisions; the method asks for one Bernoulli draw.

        Returns
        -------
        int
            The report, 0 or 1.
        """
        return 0 if draws.bernoulli(int(self.thresholds[user, x]), TOTAL) else 1

    # -- all of them -------------------------------------------------------------------------------------------

    def privatize(self, values: Any, stream: Stream | None = None) -> Any:
        """Randomize the value of every user into a report, 0 or 1.

        Parameters
        ----------
        values
            One value of the domain per user, in the order of the priors: a list, an array, or a column of pandas,
            polars or Arrow.
        stream
            Source of random words for simulations and tests, such as :class:`InsecureSeeded`. The default is the secure
            randomness of the operating system.

        Returns
        -------
        array or column
            One report per user, in the order of the users. A pandas Series gives a Series named "report" with the
            labels of the users, a polars column a Series, an Arrow column an array, and all others a numpy array.
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
        """Return the probability that each user has the second value, given their prior and their report.

        Parameters
        ----------
        reports
            One report per user, 0 or 1, as :meth:`privatize` returns them.

        Returns
        -------
        numpy.ndarray
            Pr(second value | report) of each user, by Bayes' rule, in the order of the users.
        """
        chosen = self._reports(reports)
        low, high = self._posteriors
        return np.where(chosen == 1, high, low)

    def estimate(self, reports: Any, method: str = "mmse") -> LocalTotal:
        """Estimate the number of users with the second value.

        Parameters
        ----------
        reports
            One report per user, 0 or 1, as :meth:`privatize` returns them.
        method
            How to estimate:

            - ``"mmse"`` (minimum mean squared error) adds up :meth:`posterior_means`. No estimate has a smaller mean
              squared error if the priors are right. The standard error is that of the true total given the reports.
            - ``"unbiased"`` has the right mean for every set of values, even if the priors are wrong. Its error is much
              larger.

        Returns
        -------
        LocalTotal
            The estimated number of users, with its standard error and confidence intervals.

        Raises
        ------
        InvalidInput
            If the method is unknown, or it is ``"unbiased"`` and the report of some user is independent of the value.

        Notes
        -----
        Compare both methods to check the priors: if the estimates differ by more than their errors, the priors are
        wrong.
        """
        chosen = self._reports(reports)
        if method == "mmse":
            means = self.posterior_means(chosen)
            error = float(np.sum(means * (1 - means))) ** 0.5
            ones = np.ones(len(self))
            # A user with the second value makes the true total larger than the estimate, so the error decreases.
            return LocalTotal(float(means.sum()), error, len(self), events=tuple(Events.of(means, -ones, ones)))
        if method != "unbiased":
            raise InvalidInput("LocalPriors", "method", "be one of mmse, unbiased", method)
        thresholds = self.thresholds.astype(np.int64)
        gap = (thresholds[:, 0] - thresholds[:, 1]) / TOTAL
        if not gap.all():
            must = "not be 'unbiased', because the report of some user is independent of the value"
            hint = "Use method='mmse', or a larger epsilon."
            raise InvalidInput("LocalPriors", "method", must, method, hint=hint)
        ones = 1 - thresholds / TOTAL  # Pr(Y=1|x)
        each = (chosen - ones[:, 0]) / gap
        noise = ones * (1 - ones)
        variance = float(np.sum((noise[:, 0] + each * (noise[:, 1] - noise[:, 0])) / gap**2))
        # The number of users with each value is as uncertain as the total; assume at least one of each.
        events = []
        for x, holds in enumerate((1 - each, each)):
            weights = np.full(len(self), max(float(holds.sum()), 1.0) / len(self))
            events += Events.of(ones[:, x], 1 / gap, weights)
        return LocalTotal(float(each.sum()), max(variance, 0.0) ** 0.5, len(self), events=tuple(events))

    @property
    def errors(self) -> Floats:
        """Mean squared error of each user's posterior mean, in the order of the users: shape (users,).

        The posterior mean (:meth:`posterior_means`) estimates whether the user has the second value, 0 or 1. The
        expectation is over values drawn from the user's prior and over reports. ``errors.sum()`` is the mean squared
        error of the ``"mmse"`` total of :meth:`estimate`, if the users are independent.
        """
        return self._error_parts(self.priors)[1]

    def error_if(self, true_priors: Any) -> tuple[float, float]:
        """Return the error of the ``"mmse"`` total if the values follow other priors than the assumed ones.

        Parameters
        ----------
        true_priors
            True probability of the second value for each user, in the order of the users.

        Returns
        -------
        tuple of float
            The bias (expected estimate minus expected number of users) and the mean squared error of the total.
        """
        true = _fixed_point("true_priors", self._by_user("true_priors", true_priors)) / TOTAL
        self._check_count("true_priors", len(true))
        biases, squares = self._error_parts(true)
        bias = float(biases.sum())
        return bias, float(np.sum(squares - biases**2)) + bias**2

    # -- parts of the computations -----------------------------------------------------------------------------

    @functools.cached_property
    def _posteriors(self) -> tuple[Floats, Floats]:
        """Return Pr(X=1|Y=0) and Pr(X=1|Y=1) of each user."""
        p, zeros = self.priors, self.thresholds / TOTAL
        ones = (
            np.uint64(TOTAL) - self.thresholds
        ) / TOTAL  # not 1 - zeros, which would lose the digits of a rare report
        return _posterior(p, zeros), _posterior(p, ones)

    def _error_parts(self, true: Floats) -> tuple[Floats, Floats]:
        """Return the mean error and the mean squared error of each user, for values drawn from ``true``."""
        low, high = self._posteriors
        zeros = self.thresholds / TOTAL
        bias, square = np.zeros(len(self)), np.zeros(len(self))
        for x, weight in enumerate((1 - true, true)):
            for guess, likelihood in ((low, zeros[:, x]), (high, 1 - zeros[:, x])):
                bias += weight * likelihood * (guess - x)
                square += weight * likelihood * (guess - x) ** 2
        return bias, square

    def _reports(self, reports: Any) -> npt.NDArray[np.uint8]:
        """Return the reports as an array, or raise InvalidInput."""
        array = np.asarray(self._by_user("reports", reports))
        self._check_count("reports", array.shape[0] if array.ndim == 1 else -1)
        if array.dtype.kind not in "iub" or not np.isin(array, (0, 1)).all():
            raise InvalidInput("LocalPriors", "reports", "be 0 or 1", reports)
        return array.astype(np.uint8)

    def _by_user(self, parameter: str, entries: Any) -> Any:
        """Return entries in the order of the users, aligned by label if both the entries and the priors have labels."""
        if self._users is None:
            return entries
        labels = labels_domain(entries, "LocalPriors", parameter)
        if labels is not None and len(labels) < len(self._users):
            without = next(user for user in self._users if user not in labels)
            got = Description(f"no entry for {without!r}")
            raise InvalidInput("LocalPriors", parameter, "have one entry per user", got)
        return align(self._users, entries, "LocalPriors", parameter)

    def _check_count(self, parameter: str, count: int) -> None:
        """Raise InvalidInput unless there is one entry per user."""
        if count != len(self):
            must = f"have {quantity(len(self), 'entry')}, one per user"
            got = Description(quantity(count, "entry") if count >= 0 else "an array with several dimensions")
            raise InvalidInput("LocalPriors", parameter, must, got)


def _posterior(prior: Floats, likelihoods: Floats) -> Floats:
    """Return P₁T₁/(P₀T₀ + P₁T₁), or the prior if the report is impossible."""
    joint = prior * likelihoods[:, 1]
    total = (1 - prior) * likelihoods[:, 0] + joint
    return np.divide(joint, total, out=prior.copy(), where=total > 0)


def _check_declared(prior_source: str | None) -> None:
    """Raise InvalidInput unless the origin of the priors is declared."""
    if prior_source not in DECLARATIONS:
        choices = ", ".join(repr(choice) for choice in DECLARATIONS)
        raise InvalidInput(
            "LocalPriors",
            "prior_source",
            f"be one of {choices}",
            prior_source,
            hint="A report reveals its prior. Release a prior that was learned from private data privately first.",
        )


def _fixed_point(parameter: str, priors: Any) -> Words:
    """Return probabilities as multiples of 2^-62."""
    try:
        array = np.asarray(priors, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("LocalPriors", parameter, "be a sequence of numbers in [0, 1]", priors) from None
    if array.ndim != 1 or len(array) == 0:
        raise InvalidInput(
            "LocalPriors", parameter, "be a sequence of at least one number", Description(f"shape {array.shape}")
        )
    wrong = ~((array >= 0) & (array <= 1))
    if wrong.any():
        user = int(wrong.argmax())
        raise InvalidInput("LocalPriors", f"{parameter}[{user}]", "be in [0, 1]", float(array[user]))
    return np.asarray(np.rint(array * TOTAL).astype(np.uint64))


def _least_rounded_up(epsilon: Epsilon) -> int:
    """Return the smallest integer that is at least e^-ε·2^62, certified."""
    if epsilon.is_infinite:
        return 0
    if epsilon > _BELOW_ONE_UNIT:
        return 1
    return -floor_of_ratio((Fraction(0), Fraction(-TOTAL)), (Fraction(1), Fraction(0)), epsilon)


def _parts(count: int) -> Iterator[tuple[int, int]]:
    """Divide the users into one part per core, unless there are few."""
    size = max(-(-count // core_count()), 2**15)
    return ((start, min(start + size, count)) for start in range(0, count, size))
