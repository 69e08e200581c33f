"""Local hashing: a random hash function puts the values into few buckets, and randomized response hides the bucket."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import EpsilonLike, Integers, checked_integer
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput, LimitExceeded
from sfumato.mechanisms.base import LARGEST_MATRIX, SURROGATE_VALUES, Finished, read_epsilon
from sfumato.mechanisms.draws import Draws, Field, Layout
from sfumato.mechanisms.two_level import ONE, MixtureDraws, MixtureMechanism, mixing_threshold

__all__ = ["LocalHashing"]

#: Greatest number of buckets, and of hash functions, which one decision draws.
_MOST_BUCKETS, _MOST_HASHES = 2**15, 2**31


class LocalHashing(MixtureMechanism):
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
        subject = "LocalHashing"
        self.domain = checked_domain(subject, domain)
        self.epsilon = read_epsilon(subject, epsilon)
        self.buckets = checked_integer(subject, "buckets", buckets, 2, _MOST_BUCKETS)
        if any(self.buckets % factor == 0 for factor in range(2, math.isqrt(self.buckets) + 1)):
            raise InvalidInput(subject, "buckets", "be a prime number", buckets)
        if len(domain) < 2:
            hint = "Use RandomizedResponse for a single value."
            raise InvalidInput(subject, "domain", "have at least two values", domain, hint=hint)
        self.digits = next(m for m in range(1, 64) if self.buckets**m >= len(domain))
        self.hashes: int = self.buckets**self.digits
        if self.hashes > _MOST_HASHES:
            must = f"be small enough for at most {_MOST_HASHES} hash functions"
            raise InvalidInput(subject, "the number of values", must, Description(f"{self.hashes} hash functions"))
        self.density = Fraction(1, self.buckets)
        if threshold is None:
            threshold = mixing_threshold(self.epsilon, self.density)
        self.threshold = checked_integer(subject, "threshold", threshold, 0, ONE)
        self.layout = Layout(96, (Field.number(0, 32), Field.number(32, 32), Field.number(64, 32)))

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
        total = 0
        while hash_function and x:
            hash_function, first = divmod(hash_function, self.buckets)
            x, second = divmod(x, self.buckets)
            total += first * second
        return total % self.buckets

    # -- the sampler -----------------------------------------------------------------------------------------

    def start(self, x: int) -> tuple[int, int | None]:
        return x, None

    def step(self, state: tuple[int, int | None], draws: Draws) -> tuple[int, int] | Finished:
        x, hash_function = state
        if hash_function is None:
            return x, draws.below(self.hashes)
        keep = draws.bernoulli(self.threshold, ONE)
        bucket = self.bucket(hash_function, x) if keep else draws.below(self.buckets)
        return Finished(hash_function * self.buckets + bucket)

    def audit_surrogate(self) -> LocalHashing:
        return self.from_parameters(Domain.range(min(len(self.domain), SURROGATE_VALUES)), self.parameters())

    def draws(self) -> MixtureDraws:
        return MixtureDraws(choices=self.hashes, columns=self.buckets)

    # -- the stated law --------------------------------------------------------------------------------------

    @property
    def outputs(self) -> int:
        return self.hashes * self.buckets

    def in_set(self, report: int, x: int) -> bool:
        hash_function, bucket = divmod(report, self.buckets)
        return self.bucket(hash_function, x) == bucket

    def members(self, values: Sequence[int]) -> npt.NDArray[np.bool_]:
        functions, rest = np.arange(self.hashes), np.asarray(values, np.int64)[:, None]
        total = np.zeros((len(values), self.hashes), np.int64)
        for _ in range(self.digits):
            total += functions % self.buckets * (rest % self.buckets)
            functions, rest = functions // self.buckets, rest // self.buckets
        bucket = total[:, :, None] % self.buckets
        return np.asarray(bucket == np.arange(self.buckets)).reshape(len(values), self.outputs)

    def symmetry_classes(self) -> Integers:
        # Two different values are in one bucket under exactly a fraction 1/g of the hash functions.
        return np.zeros(len(self.domain), np.int64)

    def pair_kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        return np.zeros((len(values), len(values)), np.int64)

    def separating(self, x: int, other: int) -> int:
        # The hash function that reads the lowest digit in which the two values differ.
        place = 1
        while x // place % self.buckets == other // place % self.buckets:
            place *= self.buckets
        return place * self.buckets + x // place % self.buckets

    def empty_outputs(self) -> int:
        return int((self._sums([1] * len(self.domain)) == 0).sum())

    def lightest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=False)

    def heaviest(self, weights: Sequence[Fraction]) -> int:
        return self._extreme(weights, heaviest=True)

    def _extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        """Return the output of the lightest or heaviest set that is neither empty nor the whole domain."""
        scale = math.lcm(*(weight.denominator for weight in weights))
        sums, members = self._sums([int(weight * scale) for weight in weights]), self._sums([1] * len(self.domain))
        binding = np.flatnonzero((members > 0) & (members < len(self.domain)))
        best = max if heaviest else min
        return int(best(binding.tolist(), key=sums.__getitem__))

    def _sums(self, weights: Sequence[int]) -> Any:
        """Return the sum of the integer weights in the set of each output."""
        sums = np.zeros((self.hashes, self.buckets), dtype=object)
        for x, weight in enumerate(weights):
            sums[np.arange(self.hashes), self._all_buckets[x]] += weight
        return sums.ravel()

    @functools.cached_property
    def _all_buckets(self) -> Integers:
        """The bucket of each value under each hash function, shape (k, hashes)."""
        if len(self.domain) * self.hashes > LARGEST_MATRIX:
            raise LimitExceeded(
                f"cannot list the buckets of {len(self.domain)} values under {self.hashes} hash functions. Use a "
                "smaller domain, or a cyclic design."
            )
        places = self.buckets ** np.arange(self.digits)
        values, hashes = (np.arange(size)[:, None] // places % self.buckets for size in (len(self.domain), self.hashes))
        return np.asarray(values @ hashes.T % self.buckets)

    def parameters(self) -> dict[str, Any]:
        return {"epsilon": str(self.epsilon), "buckets": self.buckets, "threshold": str(self.threshold)}

    @classmethod
    def from_parameters(cls, domain: Domain, parameters: dict[str, Any]) -> LocalHashing:
        return cls(domain, **parameters)
