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
    """The pairs of errors that tests can achieve when they distinguish two values by one report.

    A test looks at one report and decides for ``x`` or for ``other``. Its *false alarm* is the probability that it
    decides for ``x`` if the value is ``other``. Its *missed detection* is the probability that it decides for ``other``
    if the value is ``x``. The region consists of the points (false alarm, missed detection) on or above the curve
    through ``points``, which are the errors of the best tests.

    Parameters
    ----------
    x
        The value that a test detects.
    other
        The value from which the test distinguishes ``x``.
    points
        Corners of the curve as exact fractions (false alarm, missed detection), from (0, 1) to (1, 0).

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
        """The corners of the curve from (0, 1) to (1, 0): floats of shape (n, 2), false alarm and missed detection."""
        return np.array(self.points, dtype=np.float64)

    def contains(self, region: ErrorRegion) -> bool:
        """Return whether this region contains another one; the decision is exact.

        A larger region means that reports distinguish the two values better. If this region contains the other one,
        reports of the other mechanism could be computed from reports of this one, for these two values (Blackwell's
        order).

        Parameters
        ----------
        region
            Region of another mechanism, for the same ``x`` and ``other``.

        Returns
        -------
        bool
            Whether this region contains the errors of every test in the other region.
        """
        _check_pair(self, region)
        return all(
            (f1 - f0) * (missed - m0) >= (m1 - m0) * (alarm - f0)
            for alarm, missed in region.points
            for (f0, m0), (f1, m1) in pairwise(self.points)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the region as a JSON-compatible dict, with exact fractions as strings.

        Returns
        -------
        dict
            The dict that :meth:`from_dict` reads.
        """
        points = [[str(alarm), str(missed)] for alarm, missed in self.points]
        return {"x": label_document(self.x), "other": label_document(self.other), "points": points}

    @classmethod
    @reads_document
    def from_dict(cls, document: Mapping[str, Any]) -> ErrorRegion:
        """Return the region that :meth:`to_dict` serialized.

        Parameters
        ----------
        document
            Dict that :meth:`to_dict` returned.

        Returns
        -------
        ErrorRegion
            The region that was serialized.

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
        """Draw the false alarm and the missed detection of the best tests of ``x`` against ``other``.

        The horizontal axis is the false alarm, the vertical axis the missed detection. Every test that uses one report
        lies on or above the curve. Requires matplotlib.

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
    """The pairs of errors that a policy allows for tests that distinguish two values by one report.

    A test looks at one report and decides for ``x`` or for ``other``. Its *false alarm* is the probability that it
    decides for ``x`` if the value is ``other``. Its *missed detection* is the probability that it decides for ``other``
    if the value is ``x``.

    Parameters
    ----------
    x
        The value that a test detects.
    other
        The value from which the test distinguishes ``x``.
    epsilon
        Effective epsilon E[x, other]: an output is at most e^epsilon times likelier for ``x`` than for ``other``.
    epsilon_back
        Effective epsilon E[other, x] in the opposite direction.

    See Also
    --------
    policy_region : Compute the region of a policy.

    Notes
    -----
    The region is ``alarm + e^E[other,x]·missed ≥ 1`` and ``e^E[x,other]·alarm + missed ≥ 1``, where ``alarm`` is the
    false alarm and ``missed`` the missed detection. An infinite epsilon requires nothing, even if the error that it
    multiplies is zero.

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
        """The corners of the curve from (0, 1) to (1, 0): floats of shape (n, 2), false alarm and missed detection."""
        # The intersection of both bounds is the error of the best mechanism for two values (Acharya et al. 2020, proof
        # of Thm 2).
        a, b = np.exp(-float(self.epsilon)), np.exp(-float(self.epsilon_back))
        left_a, left_b = -np.expm1(-float(self.epsilon)), -np.expm1(-float(self.epsilon_back))
        if left_a == 0 or left_b == 0:  # at epsilon 0 a report is useless to every test
            return np.array([[0.0, 1.0], [1.0, 0.0]])
        whole = left_a + a * left_b  # 1 - ab, without cancellation
        return np.array([[0.0, 1.0], [a * left_b / whole, b * left_a / whole], [1.0, 0.0]])

    def contains(self, region: ErrorRegion) -> bool:
        """Return whether the policy allows all errors that tests can achieve with reports of a mechanism.

        If it does, the mechanism obeys the rules between ``x`` and ``other``. Exact arithmetic decides, so rounding
        cannot change the answer.

        Parameters
        ----------
        region
            Region of the mechanism from :func:`error_region`, for the same ``x`` and ``other``.

        Returns
        -------
        bool
            True if every point of ``region`` lies in this region; False if some test has errors that the policy
            forbids.
        """
        _check_pair(self, region)
        return not any(
            exceeds(1 - alarm, missed, self.epsilon_back) or exceeds(1 - missed, alarm, self.epsilon)
            for alarm, missed in region.points
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the region as a JSON-compatible dict, with exact epsilons as strings.

        Returns
        -------
        dict
            The dict that :meth:`from_dict` reads.
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
        """Return the region that :meth:`to_dict` serialized.

        Parameters
        ----------
        document
            Dict that :meth:`to_dict` returned.

        Returns
        -------
        PolicyRegion
            The region that was serialized.

        Raises
        ------
        InvalidInput
            If a key is missing or unknown, or if a level is not an epsilon.
        """
        keys = ("x", "other", "epsilon", "epsilon_back")
        parts = check_keys("PolicyRegion", "the document", document, required=keys)
        epsilons = Epsilon(parts["epsilon"]), Epsilon(parts["epsilon_back"])
        return cls(read_label(parts["x"]), read_label(parts["other"]), *epsilons)

    def plot(self) -> Figure:
        """Draw the smallest false alarm and missed detection that the policy allows.

        The horizontal axis is the false alarm, the vertical axis the missed detection. A test of ``x`` against
        ``other`` may lie on or above the curve. Requires matplotlib.

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
    """Return the pairs of errors that tests can achieve with one report of a mechanism.

    A test decides from one report whether the value is ``x`` or ``other``. Its errors are the false alarm (it decides
    for ``x``, but the value is ``other``) and the missed detection (it decides for ``other``, but the value is ``x``).

    Parameters
    ----------
    mechanism
        Mechanism whose outputs can be enumerated, or a :class:`Channel`, a table of output probabilities Q(y|x).
    x
        The value that a test detects.
    other
        The value from which the test distinguishes ``x``.

    Returns
    -------
    ErrorRegion
        The region of pairs (false alarm, missed detection).

    Raises
    ------
    InvalidInput
        If a value is not in the domain, or if both are the same value.

    Notes
    -----
    By the Neyman-Pearson lemma, the best tests decide for ``x`` on the outputs with the greatest likelihood ratios.

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
    """Return the pairs of errors that a policy allows for tests that distinguish two values by one report.

    A test decides from one report whether the value is ``x`` or ``other``. Its errors are the false alarm (it decides
    for ``x``, but the value is ``other``) and the missed detection (it decides for ``other``, but the value is ``x``).

    Parameters
    ----------
    policy
        A policy on pairs of values: Uniform, HighLow, Blocks, Metric or Pairwise.
    x
        The value that a test detects.
    other
        The value from which the test distinguishes ``x``.

    Returns
    -------
    PolicyRegion
        The region of pairs (false alarm, missed detection). It uses the effective epsilons between ``x`` and ``other``:
        the smallest ones that follow from all rules of the policy (see :meth:`PairwisePolicy.effective_epsilon`).

    Raises
    ------
    InvalidInput
        If the policy does not constrain pairs of values, if a value is not in the domain, or if both are the same
        value.

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
