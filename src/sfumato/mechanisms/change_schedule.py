"""Reports about the changes of a status: one level for all reports of a person, at any times of the changes."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    INFINITE,
    ZERO,
    Epsilon,
    EpsilonLike,
    canonical_hash,
    check_keys,
    checked_integer,
    checked_type,
    label_document,
    plain_integer,
    quantity,
    read_items,
    read_label,
    reads_document,
)
from sfumato.domain import Domain, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms.base import Mechanism, read_epsilon
from sfumato.mechanisms.mean.one_bit import OneBit
from sfumato.mechanisms.product.mechanism import ProductMechanism
from sfumato.mechanisms.table.alias import TOTAL
from sfumato.mechanisms.table.mechanism import TableMechanism
from sfumato.mechanisms.two_level import ONE
from sfumato.policy import Pairwise, Policy, Uniform

__all__ = ["ChangeSchedule"]

#: Greatest number of waves.
_MOST_WAVES = 2**20
_FORMAT, _VERSION = "sfumato-change-schedule", 1
#: The change of a status: it fell, stayed or rose.
_CHANGES = Domain.range(-1, 2)


@dataclass(frozen=True, init=False, repr=False)
class ChangeSchedule:
    """Reports in which people state randomized changes of a status, for counts of people over many waves.

    A person's *status* is whether the value is one of the ``counted`` values. A report states whether the status rose
    or fell over an interval of waves, by a random sign that is uniform if it did neither. All reports of a person
    together obey ``epsilon``, for any number of waves and whenever the status changes. A device ignores changes after
    ``max_changes``, without a visible difference. :meth:`Ledger.answer_change` draws the reports, and
    :func:`estimate_changes` reads them.

    Parameters
    ----------
    domain
        The values.
    counted
        The values of the people to count.
    epsilon
        The level of all reports of one person together.
    waves
        The number of waves, at most 2^20.
    max_changes
        Greatest number of changes of the status that a device reports. The status before the first wave is "not
        counted", so a person who is counted in the first wave has changed once. It is 1 for an event that happens at
        most once, such as a first infection.
    dyadic
        Whether to use intervals of 1, 2, 4, … waves, of which each device draws one length once. The counts of people
        are then more accurate after many waves, and the changes between two waves less. By default, every device
        reports in every wave.
    weight
        The integer that a stored schedule holds. Omit it to compute it from ``epsilon``.

    Raises
    ------
    InvalidInput
        If a parameter is out of range, ``counted`` has no value or all values of the domain, or ``epsilon`` is so small
        that signs tell nothing.

    Notes
    -----
    With a = ε/``max_changes``, a sign is right with probability e^a/(1 + e^a), rounded to the private side. The signs
    of two people differ only in intervals in which one of them changes. If one changes and the other does not, the
    ratio of likelihoods is at most 2e^a/(1 + e^a) on one side and (1 + e^a)/2 on the other, whose product is e^a. So c
    changes of each have at most the ratio e^(c·a). The proof is in ``docs/proofs/change-schedule.md``. The method is
    that of Erlingsson et al. (2019), who have dyadic intervals.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["never infected", "infected before"])
    >>> schedule = sf.mechanisms.ChangeSchedule(domain, ["infected before"], epsilon=1, waves=30)
    >>> sf.audit(*schedule.promise).holds
    True
    >>> round(schedule.change_error(n=10_000), 4)
    0.0216
    """

    domain: Domain
    counted: tuple[Any, ...]
    epsilon: Epsilon
    waves: int
    max_changes: int
    dyadic: bool
    weight: int

    #: Name in error messages.
    name = "change-schedule"

    def __init__(
        self,
        domain: Domain,
        counted: Iterable[Hashable],
        epsilon: EpsilonLike,
        waves: int,
        *,
        max_changes: int = 1,
        dyadic: bool = False,
        weight: int | str | None = None,
    ) -> None:
        subject = "ChangeSchedule"
        checked_domain(subject, domain)
        if isinstance(counted, (str, bytes)) or not isinstance(counted, Iterable):
            raise InvalidInput(subject, "counted", "be a list of values", counted)
        indices = sorted({domain.index(value) for value in counted})
        if not 0 < len(indices) < len(domain):
            must = "have at least one value, and not all values"
            raise InvalidInput(subject, "counted", must, [domain.label(x) for x in indices])
        level = read_epsilon(subject, epsilon)
        if level == ZERO:
            raise InvalidInput(subject, "epsilon", "be above 0, because reports at 0 tell nothing", epsilon)
        checked_type(subject, "dyadic", dyadic, bool)
        changes = checked_integer(subject, "max_changes", plain_integer(max_changes), 1, _MOST_WAVES)
        greatest = _greatest_weight(level / changes)
        if greatest == 0:
            must = "be at least about 1e-18 per change, because signs at a lower level tell nothing"
            raise InvalidInput(subject, "epsilon", must, epsilon)
        settings: dict[str, Any] = {
            "domain": domain,
            "counted": tuple(domain.label(x) for x in indices),
            "epsilon": level,
            "waves": checked_integer(subject, "waves", plain_integer(waves), 1, _MOST_WAVES),
            "max_changes": changes,
            "dyadic": dyadic,
            "weight": greatest if weight is None else checked_integer(subject, "weight", weight, 1, greatest),
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    # -- what is reported --------------------------------------------------------------------------------------

    @functools.cached_property
    def sign(self) -> TableMechanism:
        """The mechanism of one report: a sign, 1 or 0, for a status that fell (-1), stayed (0) or rose (1)."""
        half = TOTAL // 2
        return TableMechanism(_CHANGES, [[half - self.weight * s, half + self.weight * s] for s in (-1, 0, 1)])

    @property
    def gain(self) -> float:
        """The mean of the sign, as -1 or 1, of a status that rose: tanh(ε/2) if ``max_changes`` is 1."""
        return float(2 * self.weight / TOTAL)

    @property
    def scales(self) -> int:
        """The number of lengths of intervals: 1, 2, 4, … waves if the schedule is dyadic, and otherwise only 1."""
        return self.waves.bit_length() if self.dyadic else 1

    @property
    def policy(self) -> Policy:
        """The policy that all reports of one person obey together, which a ledger charges once."""
        return Uniform(self.domain, self.epsilon)

    @property
    def promise(self) -> tuple[Mechanism, Policy]:
        """A mechanism and a policy whose audit proves the level: two reports of people with at most one change each.

        The policy allows ε/``max_changes`` between any two such people, whenever they change. Two people with more
        changes differ in the intervals of at most ``max_changes`` such pairs of changes, whose levels add up to ε.
        """
        two = Domain.product(first=_CHANGES, second=_CHANGES)
        few = [np.count_nonzero(changes) <= 1 for changes in two]
        level = self.epsilon / self.max_changes
        matrix = [
            [ZERO if x == y else level if few[x] and few[y] else INFINITE for y in range(len(few))]
            for x in range(len(few))
        ]
        return ProductMechanism(two, [self.sign, self.sign]), Pairwise(two, matrix)

    def status(self, value: object) -> int:
        """Return the status of a value: 1 if it is counted, and otherwise 0.

        Parameters
        ----------
        value
            A value of the domain.

        Returns
        -------
        int
            The status.
        """
        return int(self.domain.encode_one(value) in self._indices)

    @functools.cached_property
    def _indices(self) -> frozenset[int]:
        """The indices of the counted values."""
        return frozenset(self.domain.index(value) for value in self.counted)

    def is_due(self, scale: int, wave: int) -> bool:
        """Return whether an interval of 2^scale waves ends with a wave, so that devices of this scale report.

        Parameters
        ----------
        scale
            Binary logarithm of the length of the intervals.
        wave
            Number of the wave, from 0.

        Returns
        -------
        bool
            Whether devices of this scale report in this wave.

        Raises
        ------
        InvalidInput
            If the schedule lacks the scale or the wave.
        """
        return (self._checked_wave(wave) + 1) % (1 << self._checked_scale(scale)) == 0

    def _checked_scale(self, scale: Any) -> int:
        """Return a scale of the schedule, or raise InvalidInput."""
        return checked_integer("ChangeSchedule", "scale", plain_integer(scale), 0, self.scales - 1)

    def _checked_wave(self, wave: Any) -> int:
        """Return the number of a wave of the schedule, or raise InvalidInput."""
        return checked_integer("ChangeSchedule", "wave", plain_integer(wave), 0, self.waves - 1)

    def effective_statuses(self, statuses: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the statuses that devices report about, which stay the same after ``max_changes`` changes.

        The bias of a count is the difference between these statuses and the true ones.

        Parameters
        ----------
        statuses
            The true statuses, 0 or 1, shape (people, waves).

        Returns
        -------
        ndarray
            The statuses that the reports are about, of the same shape.

        Raises
        ------
        InvalidInput
            If the statuses do not have two axes, or are not 0 or 1.

        Examples
        --------
        >>> import sfumato as sf
        >>> schedule = sf.mechanisms.ChangeSchedule(sf.Domain(["no", "yes"]), ["yes"], 1, waves=5, max_changes=2)
        >>> schedule.effective_statuses([[0, 1, 0, 1, 1]]).tolist()
        [[0, 1, 0, 0, 0]]
        """
        true = np.asarray(statuses)
        if true.ndim != 2 or not np.isin(true, (0, 1)).all():
            got = Description(f"shape {true.shape}")
            raise InvalidInput("effective_statuses", "statuses", "have shape (people, waves), with 0 and 1", got)
        result = true.astype(np.int64)
        last = np.zeros(len(result), dtype=np.int64)
        left = np.full(len(result), self.max_changes)
        for wave in range(result.shape[1]):
            changed = (result[:, wave] != last) & (left > 0)
            left -= changed
            last = np.where(changed, result[:, wave], last)
            result[:, wave] = last
        return result

    def probability(self, scale: int, signs: Sequence[int], statuses: Sequence[int]) -> Fraction:
        """Return the exact probability of all reports of a device.

        Parameters
        ----------
        scale
            The scale that the device draws.
        signs
            The sign, 0 or 1, of each interval of this scale in the order of time.
        statuses
            The status, 0 or 1, in each wave.

        Returns
        -------
        Fraction
            The probability of the scale and the signs.

        Raises
        ------
        InvalidInput
            If the schedule lacks the scale, or the number of signs or statuses is not that of the schedule.

        Examples
        --------
        >>> import sfumato as sf
        >>> schedule = sf.mechanisms.ChangeSchedule(sf.Domain(["no", "yes"]), ["yes"], "ln 3", waves=2)
        >>> schedule.probability(0, [0, 1], [0, 1])
        Fraction(3, 8)
        """
        width = 1 << self._checked_scale(scale)
        for name, items, number in (("signs", signs, self.waves // width), ("statuses", statuses, self.waves)):
            if len(items) != number:
                raise InvalidInput("ChangeSchedule", name, f"have {quantity(number, 'item')}", items)
        reported = self.effective_statuses([list(statuses)])[0].tolist()
        ends = [0, *reported[width - 1 :: width]]
        pairs = zip(signs, itertools.pairwise(ends), strict=True)
        likelihoods = (self.sign.probability(sign, 1 + end - start) for sign, (start, end) in pairs)
        return math.prod(likelihoods, start=Fraction(1, self.scales))

    # -- errors ------------------------------------------------------------------------------------------------

    def intervals(self, wave: int) -> list[tuple[int, int]]:
        """Return the intervals whose changes add up to the count of people in a wave.

        Parameters
        ----------
        wave
            Number of the wave, from 0.

        Returns
        -------
        list of tuple
            The scale of each interval, and the wave that it ends with.

        Raises
        ------
        InvalidInput
            If the schedule lacks the wave.
        """
        left = self._checked_wave(wave) + 1
        if not self.dyadic:
            return [(0, each) for each in range(left)]
        ends = []
        while left:
            scale = (left & -left).bit_length() - 1
            ends.append((scale, left - 1))
            left -= 1 << scale
        return ends[::-1]

    def standard_error(self, n: int, wave: int) -> float:
        """Return the expected standard error of the share of people who are counted in a wave.

        Parameters
        ----------
        n
            The number of people, who answer in all waves.
        wave
            Number of the wave, from 0.

        Returns
        -------
        float
            An upper bound, which is reached if no person has changed.

        Raises
        ------
        InvalidInput
            If the schedule lacks the wave, or ``n`` is not positive.
        """
        people = checked_integer("ChangeSchedule", "n", plain_integer(n), 1, 2**62)
        return math.sqrt(len(self.intervals(wave)) * self.scales / people) / self.gain

    def change_error(self, n: int) -> float:
        """Return the expected standard error of the change of that share from one wave to the next.

        Parameters
        ----------
        n
            The number of people.

        Returns
        -------
        float
            An upper bound, which is reached if no person changes.
        """
        people = checked_integer("ChangeSchedule", "n", plain_integer(n), 1, 2**62)
        return math.sqrt(self.scales / people) / self.gain

    # -- documents ---------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule as a JSON-compatible dict; :meth:`from_dict` reads it.

        Returns
        -------
        dict
            One entry per parameter.
        """
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "domain": self.domain.to_dict(),
            "counted": [label_document(value) for value in self.counted],
            "epsilon": str(self.epsilon),
            "waves": self.waves,
            "max_changes": self.max_changes,
            "dyadic": self.dyadic,
            "weight": str(self.weight),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> ChangeSchedule:
        """Return the schedule that :meth:`to_dict` wrote.

        Parameters
        ----------
        document
            A dict from ``to_dict``, also after a round trip through JSON.

        Returns
        -------
        ChangeSchedule
            A schedule equal to the one that was written.

        Raises
        ------
        InvalidInput
            If the dict is malformed.
        """
        subject = "ChangeSchedule.from_dict"
        settings = ("domain", "counted", "epsilon", "waves", "max_changes", "dyadic", "weight")
        content = check_keys(subject, "the document", document, required=("format", "version", *settings))
        if (content["format"], content["version"]) != (_FORMAT, _VERSION):
            must = f"have the format {_FORMAT} and the version {_VERSION}"
            raise InvalidInput(subject, "the document", must, (content["format"], content["version"]))
        counted = list(map(read_label, read_items(subject, "counted", content["counted"])))
        options = {name: content[name] for name in ("max_changes", "dyadic", "weight")}
        return cls(Domain.from_dict(content["domain"]), counted, content["epsilon"], content["waves"], **options)

    @functools.cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON of the schedule, in hexadecimal."""
        return canonical_hash(self.to_dict())

    def __repr__(self) -> str:
        counted = ", ".join(map(repr, self.counted[:3])) + (", …" if len(self.counted) > 3 else "")
        return (
            f"ChangeSchedule(counted=[{counted}], epsilon={str(self.epsilon)!r}, waves={self.waves}, "
            f"max_changes={self.max_changes}, dyadic={self.dyadic})"
        )


def _greatest_weight(epsilon: Epsilon) -> int:
    """Return the greatest w with (1/2 + w/2^62) ≤ e^ε·(1/2 - w/2^62)."""
    return int(OneBit(_CHANGES, epsilon).step_size * TOTAL // ONE)
