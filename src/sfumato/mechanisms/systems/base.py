"""The base class of set systems: the sets of values that the outputs of a mixture stand for."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Floats, Integers, count_text, quantity
from sfumato.errors import LimitExceeded
from sfumato.mechanisms.base import LARGEST_MATRIX, Finished
from sfumato.mechanisms.draws import Draws, Layout

__all__ = ["OUTSIDE", "Force", "MixtureDraws", "SetSystem"]

#: Marks a value that is in no set, and the forced report of such a value.
OUTSIDE = -1
#: Maximum number of outputs that are listed to compare values; bounds the time of a comparison.
_MOST_LISTED = 2**20
#: The decision whether a report is forced to depend on the value.
Force = Callable[[], bool]


@dataclass(frozen=True)
class MixtureDraws:
    """Decisions that a mixture makes after the first one, for kernels that run several mixtures.

    A mixture that reports an index draws one of ``choices``, and one of ``columns`` in it. A cyclic design draws one of
    ``choices``, or one of ``forced`` shifts of the true value modulo ``modulus``. A mixture that reports a set draws
    ``members`` of ``values`` with coins, each set with probability coin/2^planes. Fields that do not apply are zero.
    """

    columns: int = 0
    choices: int = 0
    forced: int = 0
    modulus: int = 0
    values: int = 0
    members: int = 0
    coin: int = 0
    planes: int = 0


class SetSystem(ABC):
    """Base class of set systems: every output has a set of values, and every value is in the same share of the sets.

    A :class:`Mixture` over a set system reports, with probability γ, an output drawn uniformly from those whose set
    contains the value, and otherwise an output drawn uniformly from all. Law, audit, estimator and risk of the mixture
    follow from the system.

    A subclass is an immutable value, such as a frozen dataclass. It sets ``size``, ``outputs`` and ``density``, and
    defines :meth:`contains`. All other methods have defaults that list the sets; a subclass overrides one for speed, or
    for systems too large to list.

    Attributes
    ----------
    size : int
        The number k of values.
    outputs : int
        The number N of outputs. By default, reports are the integers from 0 to N-1.
    density : Fraction
        The share of the sets that contain a value, the same for every value.
    layout : Layout
        Bits of a value's frame that the decisions of :meth:`step` read; by default, all decisions draw bits on demand.
    blocks : int
        The number of blocks into which values and outputs are divided, so that each set has values of one block only.
        1 unless a subclass overrides :meth:`block_of`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from fractions import Fraction
    >>> import sfumato as sf
    >>> @dataclass(frozen=True)
    ... class Pairs(sf.mechanisms.SetSystem):
    ...     '''The sets {y, y + 1} modulo k.'''
    ...     size: int
    ...     @property
    ...     def outputs(self): return self.size
    ...     @property
    ...     def density(self): return Fraction(2, self.size)
    ...     def contains(self, report, x): return (x - report) % self.size < 2
    >>> Pairs(5).separating(1, 2)
    0
    """

    size: int
    layout: Layout = Layout(64, ())
    blocks: int = 1

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number N of outputs."""

    @property
    @abstractmethod
    def density(self) -> Fraction:
        """Share of the sets that contain a value."""

    @abstractmethod
    def contains(self, report: int, x: int) -> bool:
        """Return whether the set of a report contains a value.

        Parameters
        ----------
        report
            The report.
        x
            Index of the value, from 0.

        Returns
        -------
        bool
            True if the set contains the value.
        """

    @functools.cached_property
    def degree(self) -> int:
        """Number of sets that contain a value, the same for every value."""
        return int(self.density * self.outputs)

    # -- the sampler -----------------------------------------------------------------------------------------

    def start(self, x: int) -> Hashable:
        """Return the first state of the sampler for one value.

        Parameters
        ----------
        x
            Index of the value.

        Returns
        -------
        Hashable
            The state that the first call of :meth:`step` receives.
        """
        return x

    def step(self, state: Any, draws: Draws, force: Force) -> Hashable | Finished:
        """Run one step of the sampler of a mixture.

        The default makes the decision, then draws one of the outputs in question. A subclass may own the order of its
        draws, but must call ``force`` exactly once per report.

        Parameters
        ----------
        state
            The current state: by default, the index of the value, or -1 for a value that is in no set.
        draws
            The source of random decisions.
        force
            Draws the decision of the mixture, True with probability γ. A forced report is uniform among the outputs
            whose set contains the value; for a value in no set, it is the report -1.

        Returns
        -------
        Hashable or Finished
            The next state, or ``Finished(report)``.
        """
        if not force():
            return Finished(draws.below(self.outputs))
        if state == OUTSIDE:
            return Finished(OUTSIDE)
        return Finished(self.member(state, draws.below(self.degree)))

    def member(self, x: int, number: int) -> int:
        """Return one of the outputs whose set contains a value.

        Parameters
        ----------
        x
            Index of the value.
        number
            Number of the output among those, from 0.

        Returns
        -------
        int
            The report.
        """
        return [report for report in self.reports() if self.contains(report, x)][number]

    def surrogate(self) -> SetSystem | None:
        """Return a small system with the same kind of sampler, or None.

        Audits enumerate the sampler of the small system if this one has too many random branches.

        Returns
        -------
        SetSystem or None
            A system of the same class over a few values; None if the class does not define one.
        """
        return None

    def draws(self) -> MixtureDraws:
        """Return the decisions after the first one, for kernels that run several mixtures.

        Returns
        -------
        MixtureDraws
            The numbers of outcomes of the decisions.
        """
        return MixtureDraws(choices=self.outputs)

    # -- the sets --------------------------------------------------------------------------------------------

    def reports(self) -> Iterable[int]:
        """Return all reports, in order.

        Returns
        -------
        Iterable of int
            The reports; by default, 0 to N-1.
        """
        return range(self.outputs)

    def members(self, values: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return which sets contain each of some values.

        Parameters
        ----------
        values
            Indices of values.

        Returns
        -------
        ndarray
            Booleans, with a row per value and a column per output.

        Raises
        ------
        LimitExceeded
            If the system has too many outputs to list.
        """
        self._check_listed(len(values))
        units = np.zeros((len(values), self.size), np.int64)
        units[np.arange(len(values)), np.asarray(values, np.intp)] = 1
        return np.array([self.spread(unit) for unit in units], bool).reshape(len(values), self.outputs)

    def _check_listed(self, values: int) -> None:
        """Raise LimitExceeded if the sets of this many values are too many to list."""
        if self.outputs > _MOST_LISTED or values * self.outputs > LARGEST_MATRIX:
            raise LimitExceeded(
                f"a system of sets over {quantity(self.size, 'value')} has {count_text(self.outputs)} outputs, too "
                f"many to list for {quantity(values, 'value')}: at most {_MOST_LISTED:,} outputs, and values times "
                f"outputs may be at most {LARGEST_MATRIX:,}. Use a mechanism with fewer outputs, or SubsetSelection."
            )

    @functools.cached_property
    def _listed(self) -> npt.NDArray[np.bool_]:
        """Whether each set contains each value, with a row per value."""
        self._check_listed(self.size)
        rows = [[self.contains(report, x) for report in self.reports()] for x in range(self.size)]
        return np.array(rows, bool).reshape(self.size, self.outputs)

    def spread(self, weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the total weight of the values in each set.

        Parameters
        ----------
        weights
            A weight per value: floats, or integers of any size as objects, which are added exactly.

        Returns
        -------
        ndarray
            A sum per output, of the same type.
        """
        return np.asarray(weights @ self._listed.astype(weights.dtype))

    def gather(self, outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each value the sum over the outputs whose set contains it.

        Parameters
        ----------
        outputs
            A number per output: floats, or integers, which are added exactly.

        Returns
        -------
        ndarray
            A sum per value, of the same type.
        """
        return np.asarray(self._listed.astype(outputs.dtype) @ outputs)

    def contrast(self, outputs: npt.NDArray[Any], share: float) -> npt.NDArray[Any]:
        """Return the sums of :meth:`gather`, less a share of the sum over the outputs of the value's block.

        Parameters
        ----------
        outputs
            A number per output.
        share
            The share of the block's outputs whose set contains a value by chance.

        Returns
        -------
        ndarray
            A difference per value.
        """
        blocks = outputs.reshape(self.blocks, -1).sum(axis=1)
        return np.asarray(self.gather(outputs) - share * (blocks if self.blocks == 1 else blocks[self.block_of()]))

    def shared(self, outputs: Floats) -> Floats:
        """Return for each pair of values the sum over the outputs whose set contains both.

        Parameters
        ----------
        outputs
            A number per output.

        Returns
        -------
        ndarray
            Sums, shape (k, k).
        """
        rows = [self.gather(outputs * self.spread(unit)) for unit in np.eye(self.size)]
        return np.array(rows).reshape(self.size, self.size)

    @functools.cached_property
    def set_sizes(self) -> Integers:
        """Number of values in the set of each output."""
        return np.asarray(self.spread(np.ones(self.size, np.int64)), np.int64)

    def empty_outputs(self) -> int:
        """Return the number of outputs whose set contains no value.

        Returns
        -------
        int
            The number of empty sets.
        """
        return int((self.set_sizes == 0).sum())

    def separating(self, x: int, other: int) -> int:
        """Return a report whose set contains one value and not another.

        Parameters
        ----------
        x
            Index of the value in the set.
        other
            Index of the other value.

        Returns
        -------
        int
            The report; audits compare the likelihoods of both values for it.
        """
        return next(y for y in self.reports() if self.contains(y, x) and not self.contains(y, other))

    def extreme(self, weights: Sequence[Fraction], *, heaviest: bool) -> int:
        """Return the report of the lightest or heaviest set that is neither empty nor the whole domain.

        Parameters
        ----------
        weights
            A weight per value.
        heaviest
            Whether to return the heaviest set.

        Returns
        -------
        int
            The first such report.
        """
        scale = math.lcm(*(weight.denominator for weight in weights))
        sums = self.spread(np.array([int(weight * scale) for weight in weights], object))
        binding = np.flatnonzero((self.set_sizes > 0) & (self.set_sizes < self.size))
        best = max if heaviest else min
        return int(best(binding.tolist(), key=sums.__getitem__))

    # -- values together -------------------------------------------------------------------------------------

    def block_of(self) -> Integers:
        """Return the number of each value's block; the values and the outputs of a block follow one another.

        Returns
        -------
        ndarray
            One number per value, from 0 to ``blocks`` - 1.
        """
        return np.zeros(self.size, np.int64)

    @functools.cached_property
    def pair_density(self) -> Fraction | None:
        """Share of a value's sets that contain another value of its block, if it is the same for all pairs; else None.

        Estimators of the mixture have a closed form if this number is not None.
        """
        pairs = self._pair_counts(np.arange(self.size))
        counts = set(pairs[~np.eye(self.size, dtype=bool)].tolist()) or {0}
        return Fraction(counts.pop(), self.degree) if len(counts) == 1 else None

    @property
    def triple_density(self) -> Fraction | None:
        """Share of the sets of two values that contain a third one, if it is known to be the same for all triples."""
        return None

    def symmetry_classes(self) -> Integers:
        """Return a class per value, so that two values of given classes always share equally many sets.

        Returns
        -------
        ndarray
            One class number per value: by default, its block if all pairs of a block share equally many sets.
        """
        return np.arange(self.size) if self.pair_density is None else self.block_of()

    def pair_kinds(self, values: npt.NDArray[np.intp]) -> Integers:
        """Return a number per pair of values that is equal for pairs that share equally many sets.

        Parameters
        ----------
        values
            Indices of values.

        Returns
        -------
        ndarray
            Numbers, shape (m, m) for m values.
        """
        if self.pair_density is None:
            return self._pair_counts(values)
        block = self.block_of()[values]
        return np.asarray(block[:, None] == block, np.int64)

    def _pair_counts(self, values: npt.NDArray[np.intp]) -> Integers:
        """Return for each pair of values how many sets contain both."""
        members = self.members(values.tolist()).astype(np.float64)
        return np.asarray(members @ members.T).astype(np.int64)

    def pattern_counts(self, values: Sequence[int]) -> Mapping[tuple[bool, ...], int]:
        """Return how many sets contain some of these values and not the others.

        Parameters
        ----------
        values
            Indices of a few different values.

        Returns
        -------
        Mapping
            The number of sets by pattern, a boolean per value; patterns without sets are left out.
        """
        m = len(values)
        codes = np.bincount(np.left_shift(1, np.arange(m)) @ self.members(values), minlength=1 << m)
        patterns = ((tuple(bool(code >> i & 1) for i in range(m)), code) for code in range(1 << m))
        return {pattern: int(codes[code]) for pattern, code in patterns if codes[code]}

    # -- the spec --------------------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """Return the parameters of the system in specs, without the number of values.

        Returns
        -------
        dict
            JSON-compatible parameters by name; none by default.
        """
        return {}
