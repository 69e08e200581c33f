"""Buckets of random hash functions: local hashing (Wang et al. 2017)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, Integers, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput, LimitExceeded
from sfumato.mechanisms.base import LARGEST_MATRIX, SURROGATE_VALUES, Finished
from sfumato.mechanisms.candidates import Candidate, CandidateRequest
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.estimators.base import Estimator
from sfumato.mechanisms.estimators.matrix import default_estimator
from sfumato.mechanisms.estimators.mixture import mixture_estimator
from sfumato.mechanisms.mixture import Mixture
from sfumato.mechanisms.registry import Family
from sfumato.mechanisms.systems.base import Force, MixtureDraws, SetSystem

__all__ = ["LOCAL_HASHING", "Buckets", "LocalHashing"]

#: Greatest number of buckets, and of hash functions, which one decision draws.
_MOST_BUCKETS, _MOST_HASHES = 2**15, 2**31


@dataclass(frozen=True)
class Buckets(SetSystem):
    """The values in each bucket of each hash function.

    Values and hash functions are vectors of m digits modulo g, the number of buckets, which is a prime. The bucket is
    their inner product modulo g.
    """

    size: int
    buckets: int
    layout = Layout(96, (Field.number(0, 32), Field.number(32, 32), Field.number(64, 32)))

    @functools.cached_property
    def digits(self) -> int:
        """The least number m of digits with g^m ≥ k."""
        return next(m for m in range(1, 64) if self.buckets**m >= self.size)

    @property
    def hashes(self) -> int:
        """Number of hash functions, g^m."""
        return int(self.buckets**self.digits)

    @property
    def outputs(self) -> int:
        return self.hashes * self.buckets

    @property
    def density(self) -> Fraction:
        return Fraction(1, self.buckets)

    def bucket(self, hash_function: int, x: int) -> int:
        """Return the bucket of a value under a hash function."""
        total = 0
        while hash_function and x:
            hash_function, first = divmod(hash_function, self.buckets)
            x, second = divmod(x, self.buckets)
            total += first * second
        return total % self.buckets

    def start(self, x: int) -> tuple[int, int | None]:
        return x, None

    def step(self, state: tuple[int, int | None], draws: Draws, force: Force) -> tuple[int, int] | Finished:
        x, hash_function = state
        if hash_function is None:
            return x, draws.below(self.hashes)
        bucket = self.bucket(hash_function, x) if force() else draws.below(self.buckets)
        return Finished(hash_function * self.buckets + bucket)

    def surrogate(self) -> Buckets:
        return Buckets(min(self.size, SURROGATE_VALUES), self.buckets)

    def draws(self) -> MixtureDraws:
        return MixtureDraws(choices=self.hashes, columns=self.buckets)

    # -- the sets --------------------------------------------------------------------------------------------

    def contains(self, report: int, x: int) -> bool:
        hash_function, bucket = divmod(report, self.buckets)
        return self.bucket(hash_function, x) == bucket

    @functools.cached_property
    def _all_buckets(self) -> Integers:
        """The bucket of each value under each hash function, shape (k, hashes)."""
        if self.size * self.hashes > LARGEST_MATRIX:
            raise LimitExceeded(
                f"cannot list the buckets of {self.size} values under {self.hashes} hash functions. Use a smaller "
                "domain, or a cyclic design."
            )
        places = self.buckets ** np.arange(self.digits)
        values, hashes = (np.arange(size)[:, None] // places % self.buckets for size in (self.size, self.hashes))
        return np.asarray(values @ hashes.T % self.buckets)

    def spread(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        sums = np.zeros((self.hashes, self.buckets), weights.dtype)
        for x, weight in enumerate(weights):
            sums[np.arange(self.hashes), self._all_buckets[x]] += weight
        return sums.ravel()

    def gather(self, outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        rows = outputs.reshape(self.hashes, self.buckets)
        return np.array([rows[np.arange(self.hashes), bucket].sum() for bucket in self._all_buckets], outputs.dtype)

    def separating(self, x: int, other: int) -> int:
        # The hash function that reads the lowest digit in which the two values differ.
        place = 1
        while x // place % self.buckets == other // place % self.buckets:
            place *= self.buckets
        return place * self.buckets + x // place % self.buckets

    @property
    def pair_density(self) -> Fraction:
        # Two different values are in one bucket under exactly a fraction 1/g of the hash functions.
        return self.density

    def document(self) -> dict[str, Any]:
        return {"buckets": self.buckets}


class LocalHashing(Mixture):
    """Local hashing: report a random hash function and the bucket of the value, which is often replaced.

    Every report draws a hash function that puts the k values into g buckets. It then reports the bucket of the value
    with probability γ, and otherwise a uniform bucket. The set of a report is the values in its bucket.

    In a :class:`MemoizedMechanism`, a person keeps one hash function, and has at most one permanent answer per bucket.
    However often the value changes, these answers together obey g times the lifetime level, for people whose buckets
    change at the same times (see :meth:`MemoizedMechanism.lifetime_policy`). For a single report, :class:`CyclicDesign`
    has shorter reports and about the same error.

    Parameters
    ----------
    domain
        The k values, at least two.
    epsilon
        The level ε of classical local differential privacy.
    buckets
        The number g of buckets, a prime number.
    threshold
        The integer ⌊2^64·γ⌋ that a stored spec holds. Omit it to compute it from ``epsilon``.

    Raises
    ------
    InvalidInput
        If the number of buckets is not a prime, or the domain has too few or too many values.

    Notes
    -----
    Values and hash functions are vectors of m digits modulo g, with the least m for which g^m ≥ k. The bucket of value
    x under hash function a is the inner product ⟨a, x⟩ modulo g. Because g is prime, two different values are in
    one bucket under exactly a fraction 1/g of the hash functions (Carter and Wegman 1979). The density of the sets is
    1/g, and γ = (t-1)/(t-1+g) with t = e^ε, rounded down to a multiple of 2^-64. Wang et al. (2017) analyze the error,
    and Arcolezi et al. (2023) the use of few buckets for changing values. The proof is in
    ``docs/proofs/local-hashing.md``.

    Examples
    --------
    >>> from sfumato import Domain
    >>> from sfumato.mechanisms import LocalHashing
    >>> mechanism = LocalHashing(Domain.range(100), 1, buckets=3)
    >>> mechanism.hashes, mechanism.outputs, mechanism.bits
    (243, 729, 10)
    >>> mechanism.bucket(7, 5)
    1
    """

    name = "local-hashing"

    def __init__(
        self, domain: Domain, epsilon: EpsilonLike, *, buckets: int = 2, threshold: int | str | None = None
    ) -> None:
        subject, values = "LocalHashing", checked_domain("LocalHashing", domain)
        level = Epsilon(epsilon, subject=subject)
        self.buckets = checked_integer(subject, "buckets", buckets, 2, _MOST_BUCKETS)
        if any(self.buckets % factor == 0 for factor in range(2, math.isqrt(self.buckets) + 1)):
            raise InvalidInput(subject, "buckets", "be a prime number", buckets)
        if len(values) < 2:
            hint = "Use RandomizedResponse for a single value."
            raise InvalidInput(subject, "domain", "have at least two values", domain, hint=hint)
        system = Buckets(len(values), self.buckets)
        self.hashes = system.hashes
        if self.hashes > _MOST_HASHES:
            must = f"be small enough for at most {_MOST_HASHES} hash functions"
            raise InvalidInput(subject, "the number of values", must, Description(f"{self.hashes} hash functions"))
        super().__init__(values, level, system, threshold=threshold)

    def bucket(self, hash_function: int, x: int) -> int:
        """Return the bucket of a value under a hash function.

        Parameters
        ----------
        hash_function
            Number of the hash function, from 0.
        x
            Index of the value in the domain.

        Returns
        -------
        int
            The bucket, from 0: the inner product of the digits of both numbers, modulo the number of buckets.
        """
        assert isinstance(self.system, Buckets)
        return self.system.bucket(hash_function, x)


def _estimator(mechanism: LocalHashing) -> Estimator:
    """Return least squares, up to 30% less variance because sets differ in size, or the closed form of many values."""
    is_listed = len(mechanism.domain) * mechanism.outputs <= LARGEST_MATRIX
    return default_estimator(mechanism) if is_listed else mixture_estimator(mechanism)


def _candidates(request: CandidateRequest) -> Iterator[tuple[str, Candidate]]:
    """Yield two buckets, which have the least level of all permanent answers, only if the caller names them."""
    build = functools.partial(LocalHashing, request.policy.domain, request.epsilon)
    yield "local-hashing", Candidate(build, "k²", classical=True, compared=False)


LOCAL_HASHING = Family(
    mechanisms=(LocalHashing,),
    estimator=_estimator,
    kernel="sfumato.mechanisms.kernels.buckets:build",
    candidates=_candidates,
    in_browser=True,
    memory="sfumato.mechanisms.memoized.buckets:BUCKETS",
)
