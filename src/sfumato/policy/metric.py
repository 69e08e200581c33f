"""Privacy levels that grow with the distance between values: E[x, x'] = ε·d(x, x')."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, exact_fraction
from sfumato.domain import Domain, align_table, checked_domain
from sfumato.errors import Description, InvalidInput
from sfumato.policy.base import Policy
from sfumato.policy.epsilon_matrix import LARGEST_DENSE, EpsilonMatrix
from sfumato.policy.pairwise import MatrixPolicy, PairwisePolicy

__all__ = ["Metric"]

#: Accepted forms of a distance.
Distance = str | Callable[[Any, Any], Any] | Sequence[Sequence[Any]] | Mapping[Any, Any] | npt.NDArray[Any]

#: Mean radius of the earth.
_EARTH_RADIUS_KM = 6371.0088


class Metric(MatrixPolicy):
    """Privacy level proportional to a distance: close values are hard to distinguish, distant ones less so.

    Parameters
    ----------
    domain
        The values, at most 4096.
    distance
        One of the following:

        - ``"absolute"``: the difference of numeric labels;
        - ``"discrete"``: 1 between any two different values;
        - ``"km"``: kilometres on the sphere between the centres of grid cells, rounded down to whole metres, so the
          policy is never weaker than with the exact distance;
        - a symmetric matrix in domain order, or with labels on both axes (a DataFrame, a mapping of mappings);
        - a function that takes two labels and returns their distance.
    epsilon
        Privacy level ε per unit of distance, in any form that :class:`Epsilon` accepts.

    Raises
    ------
    InvalidInput
        If the distance is negative, asymmetric, not zero from a value to itself, or unsuitable for the domain.

    Notes
    -----
    Let Q(y|x) be the probability of output y for value x, and d the distance. The policy requires Q(y|x) ≤
    e^(ε·d(x,x'))·Q(y|x') for all values x, x' and every output y.

    Examples
    --------
    >>> from sfumato import Domain
    >>> ages = Metric(Domain.range(100), "absolute", "0.1")
    >>> ages.effective_epsilon(20, 35)
    Epsilon('1.5')
    """

    kind = "metric"

    def __init__(self, domain: Domain, distance: Distance, epsilon: EpsilonLike) -> None:
        self.domain = checked_domain("Metric", domain)
        if len(domain) > LARGEST_DENSE:
            raise InvalidInput("Metric", "domain", f"have at most {LARGEST_DENSE} values", len(domain))
        self.epsilon = Epsilon(epsilon, subject="Metric")
        self._distance = distance if isinstance(distance, str) else None
        self._places, self._distances = _read_distance(domain, distance)

    def distance(self, x: int, other: int) -> Fraction:
        """Return the exact distance between two values.

        Parameters
        ----------
        x
            Index of the first value.
        other
            Index of the second value.

        Returns
        -------
        Fraction
            The distance, in the unit of the ``distance`` argument of the policy (kilometres for ``"km"``).
        """
        return self._distances[int(self._places[x, other])]

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        return self.epsilon * self.distance(x, other)

    @functools.cached_property
    def _epsilon_matrix(self) -> EpsilonMatrix:  # type: ignore[override]  # the base class declares an attribute
        return EpsilonMatrix.from_epsilons(self._places, [self.epsilon * d for d in self._distances])

    def parameters(self) -> dict[str, Any]:
        distance: Any = self._distance
        if distance is None:
            strings = [str(d) for d in self._distances]
            distance = [[strings[p] for p in row] for row in self._places.tolist()]
        return {"distance": distance, "epsilon": str(self.epsilon)}

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:
        if isinstance(other, Metric) and self.parameters()["distance"] == other.parameters()["distance"]:
            distance = self._distance or self.parameters()["distance"]
            return Metric(self.domain, distance, (self.epsilon + other.epsilon).as_promise())
        return None


def _read_distance(domain: Domain, distance: Distance) -> tuple[npt.NDArray[np.intp], list[Fraction]]:
    """Return for each pair of values a position in a list of distinct exact distances, and that list."""
    size = len(domain)
    if isinstance(distance, str):
        array = _named_distance(domain, distance)
    elif callable(distance):
        labels = domain.labels
        array = np.array([[distance(a, b) for b in labels] for a in labels], dtype=object)
    else:
        distance = align_table(domain, domain, distance, "Metric", "distance")
        array = np.asarray(distance, dtype=None if isinstance(distance, np.ndarray) else object)
    if array.shape != (size, size):
        must = f"be a {size} by {size} matrix, with a row and a column per value"
        raise InvalidInput("Metric", "distance", must, Description(f"the shape {array.shape}"))

    def named(x: int, other: int) -> str:
        return f"d({domain.label(x)!r}, {domain.label(other)!r})"

    def pair(mask: npt.NDArray[np.bool_]) -> str:
        return named(*np.argwhere(mask)[0].tolist())

    # Equal entries are parsed once, because a large matrix usually has few different distances.
    exact: list[Fraction] = []
    known: dict[tuple[type, Any], int] = {}
    numbers: dict[Fraction, int] = {}
    places = np.empty(size * size, dtype=np.intp)
    for i, entry in enumerate(array.ravel().tolist()):
        key = (type(entry), entry) if isinstance(entry, Hashable) else (type(entry), i)
        if key not in known:
            try:
                number = exact_fraction(entry)
            except (TypeError, ValueError, ArithmeticError):
                name = named(*divmod(i, size))
                raise InvalidInput("Metric", f"distance {name}", "be a finite number", entry) from None
            if number not in numbers:  # "1/2" and 0.5 are the same number
                numbers[number] = len(exact)
                exact.append(number)
            known[key] = numbers[number]
        places[i] = known[key]
    by_pair: npt.NDArray[np.intp] = places.reshape(size, size)

    negative = np.array([d < 0 for d in exact])[by_pair]
    if negative.any():
        raise InvalidInput("Metric", "distance", "be at least 0", Description(f"a negative {pair(negative)}"))
    from_itself = (np.array([d != 0 for d in exact])[by_pair]) & np.eye(size, dtype=bool)
    if from_itself.any():
        got = Description(f"a non-zero {pair(from_itself)}")
        raise InvalidInput("Metric", "distance", "be 0 from a value to itself", got)
    asymmetric = by_pair != by_pair.T
    if asymmetric.any():
        got = Description(f"an asymmetric {pair(asymmetric)}")
        hint = "Use Pairwise for epsilons that depend on the direction."
        raise InvalidInput("Metric", "distance", "be symmetric", got, hint=hint)
    return by_pair, exact


def _named_distance(domain: Domain, name: str) -> npt.NDArray[Any]:
    """Return the matrix of a distance that is given by name."""
    size = len(domain)
    if name == "discrete":
        return 1 - np.eye(size, dtype=np.int64)
    if name == "absolute":
        labels = domain.labels
        if not all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels):
            must = "match the domain: 'absolute' requires numeric labels"
            raise InvalidInput("Metric", "distance", must, Description(f"the label {labels[0]!r}"))
        numbers = np.array([exact_fraction(label) for label in labels], dtype=object)
        absolute: npt.NDArray[Any] = np.abs(numbers[:, None] - numbers)
        return absolute
    if name == "km":
        try:
            centres = np.radians(domain.centres())
        except (AttributeError, InvalidInput):
            must = "match the domain: 'km' requires a Domain.grid"
            raise InvalidInput("Metric", "distance", must, domain) from None
        latitude, longitude = centres.T
        half = (
            np.sin((latitude[:, None] - latitude) / 2) ** 2
            + np.cos(latitude[:, None]) * np.cos(latitude) * np.sin((longitude[:, None] - longitude) / 2) ** 2
        )
        half = np.minimum(half, half.T)  # both directions are rounded separately: use the smaller result
        metres = np.floor(2 * _EARTH_RADIUS_KM * 1000 * np.arcsin(np.sqrt(np.clip(half, 0, 1)))).astype(np.int64)
        distinct, places = np.unique(metres, return_inverse=True)
        kilometres = np.array([Fraction(int(m), 1000) for m in distinct], dtype=object)
        in_km: npt.NDArray[Any] = kilometres[places].reshape(size, size)
        return in_km
    raise InvalidInput("Metric", "distance", "be a matrix, a function, 'absolute', 'discrete' or 'km'", name)
