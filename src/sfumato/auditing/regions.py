"""False alarms and missed detections: the errors of tests that distinguish two values by one report.

A test looks at one report and says "x" or "other". Its two errors are the *false alarm* Pr("x" | other) and the
*missed detection* Pr("other" | x). A mechanism obeys a policy on pairs if and only if, for every two values, the errors
of every test lie in the region that the policy allows (Acharya et al. 2020, Thm 1).

A region consists of the points on or above a decreasing convex curve. The curve runs from (0, 1), the test that never
says "x", to (1, 0), the test that always says it.
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
from sfumato.errors import Description, InvalidInput
from sfumato.mechanisms import Channel, Mechanism
from sfumato.policy import PairwisePolicy, Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ErrorRegion", "PolicyRegion", "error_region", "policy_region"]

#: False alarm and missed detection.
Point = tuple[Fraction, Fraction]

#: First and last point of the curve of the best tests.
_ENDS = [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))]


@dataclass(frozen=True, repr=False)
class ErrorRegion(Result):
    """The errors that tests of one value against another can achieve.

    The region consists of the points on or above the curve through ``points``. Each point is a pair of false alarm and
    missed detection.

    Parameters
    ----------
    x
        The value that a test detects.
    other
        The value that it is distinguished from.
    points
        Corners of the curve as exact fractions, from (0, 1) to (1, 0).

    See Also
    --------
    error_region : Compute the region of a mechanism.

    Examples
    --------
    >>> import sfumato as sf
    >>> region = sf.error_region(sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), 1), "yes", "no")
    >>> region.vertices.round(4).tolist()
    [[0.0, 1.0], [0.2689, 0.2689], [1.0, 0.0]]
    """

    x: object
    other: object
    points: tuple[Point, ...]

    @property
    def vertices(self) -> npt.NDArray[np.float64]:
        """The corners of the curve in doubles: false alarm and missed detection, from (0, 1) to (1, 0)."""
        return np.array(self.points, dtype=np.float64)

    def contains(self, region: ErrorRegion) -> bool:
        """Return whether this region contains another one. The decision is exact.

        For two values this is Blackwell's order: reports of the other mechanism can be computed from reports of this
        one.

        Parameters
        ----------
        region
            Region of the same pair of values.

        Returns
        -------
        bool
            Whether every test of the other region has its errors in this region too.
        """
        _check_pair(self, region)
        return all(
            (f1 - f0) * (missed - m0) >= (m1 - m0) * (alarm - f0)
            for alarm, missed in region.points
            for (f0, m0), (f1, m1) in pairwise(self.points)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the region as a document of plain JSON types, with exact fractions as strings.

        Returns
        -------
        dict
            The document that :meth:`from_dict` reads.
        """
        points = [[str(alarm), str(missed)] for alarm, missed in self.points]
        return {"x": label_document(self.x), "other": label_document(self.other), "points": points}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> ErrorRegion:
        """Read a region from a document.

        Parameters
        ----------
        document
            Document that :meth:`to_dict` returned.

        Returns
        -------
        ErrorRegion
            An equal region.

        Raises
        ------
        InvalidInput
            If the points are not a decreasing curve from (0, 1) to (1, 0).
        """
        parts = check_keys("ErrorRegion", "the document", document, required=("x", "other", "points"))
        points = []
        for point in read_items("ErrorRegion", "points", parts["points"]):
            alarm, missed = read_fractions("ErrorRegion", "a point", point, 2)
            points.append((alarm, missed))
        alarms, misses = [alarm for alarm, _ in points], [missed for _, missed in points]
        is_curve = alarms == sorted(alarms) and misses == sorted(misses, reverse=True)
        if not is_curve or [*points[:1], *points[-1:]] != _ENDS:
            raise InvalidInput("ErrorRegion", "points", "be a decreasing curve from (0, 1) to (1, 0)", parts["points"])
        return cls(read_label(parts["x"]), read_label(parts["other"]), tuple(points))

    def plot(self) -> Figure:
        """Draw the errors of the best tests.

        Requires matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return _corners(self.vertices)

    def _title(self) -> str:
        return f"errors that tests of {self.x!r} against {self.other!r} can achieve"

    def __repr__(self) -> str:
        return f"<ErrorRegion: {self._title()}, {len(self.points)} corners>"


@dataclass(frozen=True, repr=False)
class PolicyRegion(Result):
    """The errors that a policy allows for tests of one value against another.

    Parameters
    ----------
    x
        The value that a test detects.
    other
        The value that it is distinguished from.
    epsilon
        Level E[x, other].
    epsilon_back
        Level E[other, x].

    See Also
    --------
    policy_region : Compute the region of a policy.

    Notes
    -----
    The region is ``alarm + e^E[other,x]·missed ≥ 1`` and ``e^E[x,other]·alarm + missed ≥ 1``. An infinite level
    requires nothing, even if the error that it multiplies is zero.

    Examples
    --------
    >>> import sfumato as sf
    >>> domain = sf.Domain(["no", "yes"])
    >>> allowed = sf.policy_region(sf.Uniform(domain, 1), "yes", "no")
    >>> allowed.contains(sf.error_region(sf.mechanisms.RandomizedResponse(domain, 1), "yes", "no"))
    True
    """

    x: object
    other: object
    epsilon: Epsilon
    epsilon_back: Epsilon

    @property
    def vertices(self) -> npt.NDArray[np.float64]:
        """The corners of the curve in doubles, from (0, 1) to (1, 0)."""
        # The intersection of both bounds is the error of the best mechanism for two values (Acharya et al. 2020, proof
        # of Thm 2).
        a, b = np.exp(-float(self.epsilon)), np.exp(-float(self.epsilon_back))
        left_a, left_b = -np.expm1(-float(self.epsilon)), -np.expm1(-float(self.epsilon_back))
        if left_a == 0 or left_b == 0:  # at epsilon 0 a report is useless to every test
            return np.array([[0.0, 1.0], [1.0, 0.0]])
        whole = left_a + a * left_b  # 1 - ab, without cancellation
        return np.array([[0.0, 1.0], [a * left_b / whole, b * left_a / whole], [1.0, 0.0]])

    def contains(self, region: ErrorRegion) -> bool:
        """Return whether the policy allows the errors of every test. The decision is certified.

        Parameters
        ----------
        region
            Region of a mechanism, for the same pair of values.

        Returns
        -------
        bool
            Whether no test has smaller errors than the policy allows.
        """
        _check_pair(self, region)
        return not any(
            exceeds(1 - alarm, missed, self.epsilon_back) or exceeds(1 - missed, alarm, self.epsilon)
            for alarm, missed in region.points
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the region as a document of plain JSON types, with exact levels as strings.

        Returns
        -------
        dict
            The document that :meth:`from_dict` reads.
        """
        return {
            "x": label_document(self.x),
            "other": label_document(self.other),
            "epsilon": str(self.epsilon),
            "epsilon_back": str(self.epsilon_back),
        }

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> PolicyRegion:
        """Read a region from a document.

        Parameters
        ----------
        document
            Document that :meth:`to_dict` returned.

        Returns
        -------
        PolicyRegion
            An equal region.
        """
        keys = ("x", "other", "epsilon", "epsilon_back")
        parts = check_keys("PolicyRegion", "the document", document, required=keys)
        epsilons = Epsilon(parts["epsilon"]), Epsilon(parts["epsilon_back"])
        return cls(read_label(parts["x"]), read_label(parts["other"]), *epsilons)

    def plot(self) -> Figure:
        """Draw the errors that the policy allows.

        Requires matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        figure: Figure = plot_result(self)
        return figure

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return _corners(self.vertices)

    def _title(self) -> str:
        return f"errors that the policy allows for tests of {self.x!r} against {self.other!r}"

    def __repr__(self) -> str:
        return f"<PolicyRegion: {self._title()}, epsilon {self.epsilon} and back {self.epsilon_back}>"


def _corners(vertices: Floats) -> Mapping[str, Sequence[Any]]:
    """Return the corners of a curve as the columns of a table."""
    return {"false_alarm": vertices[:, 0].tolist(), "missed_detection": vertices[:, 1].tolist()}


def error_region(mechanism: Mechanism | Channel, x: object, other: object) -> ErrorRegion:
    """Return the errors that tests can achieve with one report of a mechanism.

    Parameters
    ----------
    mechanism
        Mechanism whose outputs can be enumerated, or a channel.
    x
        The value that a test detects.
    other
        The value that it is distinguished from.

    Returns
    -------
    ErrorRegion
        The region of false alarm and missed detection.

    Notes
    -----
    By the Neyman-Pearson lemma, the best tests say "x" on the outputs with the greatest likelihood ratios.

    Examples
    --------
    >>> import sfumato as sf
    >>> region = sf.error_region(sf.mechanisms.RandomizedResponse(sf.Domain(["no", "yes"]), "ln 3"), "yes", "no")
    >>> region.vertices.round(3).tolist()
    [[0.0, 1.0], [0.25, 0.25], [1.0, 0.0]]
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
            # The share of x in the sum orders outputs as the ratio does, and is finite where the ratio is infinite.
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
    """Return the errors that a policy on pairs allows for tests of one value against another.

    The region uses the effective levels of the policy, which all its constraints imply together.

    Parameters
    ----------
    policy
        A policy on pairs of values.
    x
        The value that a test detects.
    other
        The value that it is distinguished from.

    Returns
    -------
    PolicyRegion
        The region of false alarm and missed detection.

    Raises
    ------
    InvalidInput
        If the policy does not constrain pairs of values.

    Examples
    --------
    >>> import sfumato as sf
    >>> region = sf.policy_region(sf.Uniform(sf.Domain(["no", "yes"]), "ln 3"), "yes", "no")
    >>> region.vertices.round(3).tolist()
    [[0.0, 1.0], [0.25, 0.25], [1.0, 0.0]]
    """
    if not isinstance(policy, PairwisePolicy):
        must = "constrain pairs of values (Uniform, HighLow, Blocks, Metric or Pairwise)"
        raise InvalidInput("policy_region", "policy", must, Description(f"a {policy.kind} policy"))
    i, j = _check_different("policy_region", policy.domain, x, other)
    return PolicyRegion(x, other, policy.effective_epsilon(i, j), policy.effective_epsilon(j, i))


def _check_different(subject: str, domain: Domain, x: object, other: object) -> tuple[int, int]:
    """Return the indices of two different values, or raise InvalidInput."""
    i, j = domain.index(x), domain.index(other)
    if i == j:
        raise InvalidInput(subject, "other", "differ from x", other)
    return i, j


def _check_pair(region: ErrorRegion | PolicyRegion, inner: ErrorRegion) -> None:
    """Raise InvalidInput unless both regions are about the same pair of values."""
    if (region.x, region.other) != (inner.x, inner.other):
        raise InvalidInput("contains", "the region", f"be about {region.x!r} against {region.other!r}", inner)
