"""False alarm against missed detection: what a test of one value against another can reach.

A test looks at one report and says "x" or "other". Its two errors are the *false alarm* Pr("x" | other) and the
*missed detection* Pr("other" | x). A mechanism obeys a policy on pairs iff, for every two values, the errors of every
test lie in the region that the policy leaves (Acharya et al. 2020, Thm 1).

A region is what lies on or above a falling convex curve from (0, 1), the test that never says "x", to (1, 0), the one
that always does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato._core import (
    Epsilon,
    Floats,
    Result,
    check_keys,
    exceeds,
    label_document,
    plot_result,
    read_fractions,
    read_items,
    read_label,
    reads_document,
)
from sfumato.domain import Domain
from sfumato.errors import InvalidInput
from sfumato.mechanisms import Channel, Mechanism
from sfumato.policy import PairwisePolicy, Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ErrorRegion", "PolicyRegion", "error_region", "policy_region"]

#: False alarm and missed detection.
Point = tuple[Fraction, Fraction]

#: Where the curve of the best tests begins and ends.
_ENDS = [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))]


@dataclass(frozen=True, repr=False)
class ErrorRegion(Result):
    """The errors within reach of a test of ``x`` against ``other``: on or above the curve through ``points``."""

    x: object
    other: object
    points: tuple[Point, ...]

    @property
    def vertices(self) -> npt.NDArray[np.float64]:
        """The corners of the curve in doubles: false alarm and missed detection, from (0, 1) to (1, 0)."""
        return np.array(self.points, dtype=np.float64)

    def contains(self, region: ErrorRegion) -> bool:
        """Whether every test that the other region allows is in reach here too. Exact.

        For two values this is Blackwell's order: the other's reports could be made from reports of this one.
        """
        _check_pair(self, region)
        return all(
            (f1 - f0) * (missed - m0) >= (m1 - m0) * (alarm - f0)
            for alarm, missed in region.points
            for (f0, m0), (f1, m1) in pairwise(self.points)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the region as a document of plain JSON types, with exact fractions as strings."""
        points = [[str(alarm), str(missed)] for alarm, missed in self.points]
        return {"x": label_document(self.x), "other": label_document(self.other), "points": points}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> ErrorRegion:
        """Return the region that a document holds: the inverse of ``to_dict``."""
        parts = check_keys("ErrorRegion", "the document", document, required=("x", "other", "points"))
        points = []
        for point in read_items("ErrorRegion", "points", parts["points"]):
            alarm, missed = read_fractions("ErrorRegion", "a point", point, 2)
            points.append((alarm, missed))
        alarms, misses = [alarm for alarm, _ in points], [missed for _, missed in points]
        is_curve = alarms == sorted(alarms) and misses == sorted(misses, reverse=True)
        if not is_curve or [*points[:1], *points[-1:]] != _ENDS:
            raise InvalidInput("ErrorRegion", "points", "be a curve that falls from (0, 1) to (1, 0)", parts["points"])
        return cls(read_label(parts["x"]), read_label(parts["other"]), tuple(points))

    def plot(self) -> Figure:
        """Draw the errors of the best tests; needs matplotlib."""
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return _corners(self.vertices)

    def _title(self) -> str:
        return f"errors within reach of tests of {self.x!r} against {self.other!r}"

    def __repr__(self) -> str:
        return f"<ErrorRegion: {self._title()}, {len(self.points)} corners>"


@dataclass(frozen=True, repr=False)
class PolicyRegion(Result):
    """The errors that a policy leaves: ``alarm + e^E[other,x]·missed ≥ 1`` and ``e^E[x,other]·alarm + missed ≥ 1``.

    ``epsilon`` is E[x,other], ``epsilon_back`` E[other,x]. An infinite epsilon asks nothing, also where the error it
    multiplies is zero.
    """

    x: object
    other: object
    epsilon: Epsilon
    epsilon_back: Epsilon

    @property
    def vertices(self) -> npt.NDArray[np.float64]:
        """The corners of the curve in doubles, from (0, 1) to (1, 0)."""
        # Where both bounds meet (Acharya et al. 2020, proof of Thm 2): the errors of the best mechanism for two values.
        a, b = np.exp(-float(self.epsilon)), np.exp(-float(self.epsilon_back))
        left_a, left_b = -np.expm1(-float(self.epsilon)), -np.expm1(-float(self.epsilon_back))
        if left_a == 0 or left_b == 0:  # an epsilon of zero leaves only tests that do not look at the report
            return np.array([[0.0, 1.0], [1.0, 0.0]])
        whole = left_a + a * left_b  # 1 - ab, without cancellation
        return np.array([[0.0, 1.0], [a * left_b / whole, b * left_a / whole], [1.0, 0.0]])

    def contains(self, region: ErrorRegion) -> bool:
        """Whether no test of the region errs less than the policy allows. Certified."""
        _check_pair(self, region)
        return not any(
            exceeds(1 - alarm, missed, self.epsilon_back) or exceeds(1 - missed, alarm, self.epsilon)
            for alarm, missed in region.points
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the region as a document of plain JSON types, with exact levels as strings."""
        return {
            "x": label_document(self.x),
            "other": label_document(self.other),
            "epsilon": str(self.epsilon),
            "epsilon_back": str(self.epsilon_back),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> PolicyRegion:
        """Return the region that a document holds: the inverse of ``to_dict``."""
        keys = ("x", "other", "epsilon", "epsilon_back")
        parts = check_keys("PolicyRegion", "the document", document, required=keys)
        epsilons = Epsilon(parts["epsilon"]), Epsilon(parts["epsilon_back"])
        return cls(read_label(parts["x"]), read_label(parts["other"]), *epsilons)

    def plot(self) -> Figure:
        """Draw the errors that the policy leaves; needs matplotlib."""
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return _corners(self.vertices)

    def _title(self) -> str:
        return f"errors that the policy leaves to tests of {self.x!r} against {self.other!r}"

    def __repr__(self) -> str:
        return f"<PolicyRegion: {self._title()}, epsilon {self.epsilon} and back {self.epsilon_back}>"


def _corners(vertices: Floats) -> Mapping[str, Sequence[Any]]:
    """Return the corners of a curve as the columns of a table."""
    return {"false_alarm": vertices[:, 0].tolist(), "missed_detection": vertices[:, 1].tolist()}


def error_region(mechanism: Mechanism | Channel, x: object, other: object) -> ErrorRegion:
    """What tests of ``x`` against ``other`` can reach from one report of a mechanism whose outputs can be enumerated.

    By Neyman and Pearson the best tests say "x" on the outputs with the greatest likelihood ratios.
    """
    i, j = _check_different("error_region", mechanism.domain, x, other)
    if isinstance(mechanism, Channel):
        rows = [mechanism.rows[i], mechanism.rows[j]]
    else:
        rows = list(mechanism.channel([x, other]).rows)
    by_ratio: dict[Fraction, Point] = {}
    for likelihood, other_likelihood in zip(*rows, strict=True):
        both = likelihood + other_likelihood
        if both:
            # The fraction of x in both orders as the ratio does, and is there where the ratio is infinite.
            posterior = likelihood / both
            mass, other_mass = by_ratio.get(posterior, (Fraction(0), Fraction(0)))
            by_ratio[posterior] = (mass + likelihood, other_mass + other_likelihood)
    alarm, missed = Fraction(0), Fraction(1)
    points = [(alarm, missed)]
    for posterior in sorted(by_ratio, reverse=True):
        mass, other_mass = by_ratio[posterior]
        alarm, missed = alarm + other_mass, missed - mass
        points.append((alarm, missed))
    return ErrorRegion(x, other, tuple(points))


def policy_region(policy: Policy, x: object, other: object) -> PolicyRegion:
    """The errors that a policy on pairs leaves to tests of ``x`` against ``other``, by its effective epsilons."""
    if not isinstance(policy, PairwisePolicy):
        raise InvalidInput("policy_region", "policy", "bind pairs of values", policy.kind)
    i, j = _check_different("policy_region", policy.domain, x, other)
    return PolicyRegion(x, other, policy.effective_epsilon(i, j), policy.effective_epsilon(j, i))


def _check_different(subject: str, domain: Domain, x: object, other: object) -> tuple[int, int]:
    i, j = domain.index(x), domain.index(other)
    if i == j:
        raise InvalidInput(subject, "other", "be another value", other)
    return i, j


def _check_pair(region: ErrorRegion | PolicyRegion, inner: ErrorRegion) -> None:
    if (region.x, region.other) != (inner.x, inner.other):
        raise InvalidInput("contains", "the region", f"be about {region.x!r} against {region.other!r}", inner)
