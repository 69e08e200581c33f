"""Privacy levels that grow with the distance between values: E[x, x'] = ε·d(x, x')."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sfumato._core import Epsilon, EpsilonLike, exact_fraction
from sfumato.domain import Domain, align_table, checked_domain, exact_coordinates
from sfumato.errors import Description, InvalidInput
from sfumato.policy.base import Policy
from sfumato.policy.epsilon_matrix import LARGEST_DENSE, EpsilonMatrix
from sfumato.policy.pairwise import MatrixPolicy, PairwisePolicy

__all__ = ["Metric"]

#: Accepted forms of a distance.
Distance = str | Callable[[Any, Any], Any] | Sequence[Sequence[Any]] | Mapping[Any, Any] | npt.NDArray[Any]

#: Mean radius of the earth.
_EARTH_RADIUS_KM = 6371.0088
#: Other names of distances.
_ALIASES = {"haversine": "km"}
#: Steps per unit of the coordinates to which Euclidean distances are rounded down.
_EUCLIDEAN_STEPS = 10**6
#: Maximum size of integer coordinates whose squared distances fit 64 bits, for up to 32 coordinates.
_LARGEST_COORDINATE = 2**28


class Metric(MatrixPolicy):
    """Privacy level proportional to a distance: close values are hard to distinguish, distant ones less so.

    Parameters
    ----------
    domain
        The values, at most 4096.
    distance
        One of the following:

        - ``"absolute"``: the difference of numeric labels, or of the midpoints of bins;
        - ``"manhattan"``: the sum of the differences of all coordinates;
        - ``"euclidean"``: the straight line, rounded down as the notes describe;
        - ``"discrete"``: 1 between any two different values;
        - ``"km"``: kilometres on the sphere between the centres of the cells of a map, rounded down to whole metres, so
          the policy is never weaker than with the exact distance. ``"haversine"`` is another name of the same distance;
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

    ``"manhattan"`` and ``"euclidean"`` take numeric labels and tuples of numbers: the values of a product with numeric
    factors, or the cells of a grid without latitude and longitude, whose unit is one row or one column. They reject
    maps, because a step of one row and a step of one column are different lengths there; use ``"km"``.

    Euclidean distances are irrational. Let u be the largest number of which all coordinates are integer multiples: 1
    for integers, 0.1 for numbers with one decimal. Distances are rounded down to multiples of u/1,000,000, and those
    that are multiples already are exact. The policy is never weaker than with the exact distance, and the relative
    error is below one millionth.

    Examples
    --------
    >>> from sfumato import Domain
    >>> ages = Metric(Domain.range(100), "absolute", "0.1")
    >>> ages.effective_epsilon(20, 35)
    Epsilon('1.5')
    >>> board = Metric(Domain.grid(8, 8), "euclidean", 1)
    >>> board.distance(0, 9), board.distance(0, 8 * 3 + 4)
    (Fraction(1414213, 1000000), Fraction(5, 1))
    """

    kind = "metric"

    def __init__(self, domain: Domain, distance: Distance, epsilon: EpsilonLike) -> None:
        self.domain = checked_domain("Metric", domain)
        if len(domain) > LARGEST_DENSE:
            raise InvalidInput("Metric", "domain", f"have at most {LARGEST_DENSE} values", len(domain))
        self.epsilon = Epsilon(epsilon, subject="Metric")
        # Documents have one name per distance.
        self._distance = _ALIASES.get(distance, distance) if isinstance(distance, str) else None
        self._places, self._distances = _read_distance(domain, self._distance or distance)

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


#: For each pair of values a position in a list of distinct distances, and that list.
Distances = tuple[npt.NDArray[np.intp], list[Fraction]]


def _read_distance(domain: Domain, distance: Distance) -> Distances:
    """Return the distances of all pairs of values."""
    if isinstance(distance, str):
        return _named_distance(domain, distance)
    if callable(distance):
        labels = domain.labels
        array = np.array([[distance(a, b) for b in labels] for a in labels], dtype=object)
    else:
        distance = align_table(domain, domain, distance, "Metric", "distance")
        array = np.asarray(distance, dtype=None if isinstance(distance, np.ndarray) else object)
    return _read_matrix(domain, array)


def _read_matrix(domain: Domain, array: npt.NDArray[Any]) -> Distances:
    """Return the distances of a matrix of numbers, after checking that it is a symmetric distance."""
    size = len(domain)
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


def _named_distance(domain: Domain, name: str) -> Distances:
    """Return the distances of all pairs of values for a distance that is given by name."""
    if name == "discrete":
        return 1 - np.eye(len(domain), dtype=np.intp), [Fraction(0), Fraction(1)]
    if name == "km":
        return _kilometres(domain)
    if name not in ("absolute", "manhattan", "euclidean"):
        must = "be a matrix, a function, 'absolute', 'manhattan', 'euclidean', 'discrete', 'km' or 'haversine'"
        raise InvalidInput("Metric", "distance", must, name)
    numbers, unit = _coordinates(domain, name)
    total = np.zeros((len(numbers), len(numbers)), dtype=numbers.dtype)
    for axis in numbers.T:  # one coordinate at a time, which needs less memory
        steps = np.abs(axis[:, None] - axis)
        total += steps**2 if name == "euclidean" else steps
    distinct, places = np.unique(total, return_inverse=True)
    integers = [int(number) for number in distinct.tolist()]
    if name == "euclidean":
        integers = [math.isqrt(number * _EUCLIDEAN_STEPS**2) for number in integers]
        unit = unit / _EUCLIDEAN_STEPS
    return places.reshape(total.shape), [unit * number for number in integers]


def _coordinates(domain: Domain, name: str) -> tuple[npt.NDArray[Any], Fraction]:
    """Return the coordinates of each value as integers, and their unit."""
    must = f"match the domain: {name!r} requires numeric labels"
    if name != "absolute":
        must += " or tuples of numbers"
        if domain.is_map:
            hint = "Use 'km', or a Domain.grid without latitude and longitude to count rows and columns."
            raise InvalidInput("Metric", "distance", f"match the domain: {name!r} rejects maps", domain, hint=hint)
    rows = exact_coordinates(domain)
    for x, row in enumerate(rows):
        if None in row or (name == "absolute" and (len(row) > 1 or isinstance(domain.label(x), tuple))):
            got = Description(f"the label {domain.label(x)!r}")
            to_missing = "Pass a matrix or a function that states the distance of every pair."
            raise InvalidInput("Metric", "distance", must, got, hint=to_missing if domain.missing else None)
    exact = cast("list[tuple[Fraction, ...]]", rows)
    parts = [part for row in exact for part in row]
    unit = Fraction(1, math.lcm(*(part.denominator for part in parts)))
    integers = [[int(part / unit) for part in row] for row in exact]
    fits = max(abs(part) for row in integers for part in row) <= _LARGEST_COORDINATE and len(rows[0]) <= 32
    return np.array(integers, dtype=np.int64 if fits else object), unit


def _kilometres(domain: Domain) -> Distances:
    """Return the distances between the centres of the cells of a map, rounded down to whole metres."""
    if not domain.is_map:
        must = "match the domain: 'km' requires a Domain.grid with latitude and longitude"
        raise InvalidInput("Metric", "distance", must, domain)
    latitude, longitude = np.radians(domain.centres()).T
    half = (
        np.sin((latitude[:, None] - latitude) / 2) ** 2
        + np.cos(latitude[:, None]) * np.cos(latitude) * np.sin((longitude[:, None] - longitude) / 2) ** 2
    )
    half = np.minimum(half, half.T)  # both directions are rounded separately: use the smaller result
    metres = np.floor(2 * _EARTH_RADIUS_KM * 1000 * np.arcsin(np.sqrt(np.clip(half, 0, 1)))).astype(np.int64)
    distinct, places = np.unique(metres, return_inverse=True)
    return places.reshape(metres.shape), [Fraction(int(m), 1000) for m in distinct]
