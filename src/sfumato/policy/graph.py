"""Policy graphs: values joined by an edge must be hard to distinguish (Blowfish, PGLP)."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, label_document, quantity, read_list
from sfumato.domain import Domain, checked_domain, frame_rows, is_missing
from sfumato.errors import Description, InvalidInput
from sfumato.policy.base import Inequality, Policy
from sfumato.policy.epsilon_matrix import INFINITE_CODE, LARGEST_DENSE, EpsilonMatrix
from sfumato.policy.pairwise import MatrixPolicy, PairwisePolicy

__all__ = ["Graph"]

#: Limit below which floats represent every integer, so that sums of codes are exact.
_EXACT_IN_FLOAT = 2**53
#: Accepted forms of the edges, for messages.
_FORMS = (
    "be pairs of values, with an epsilon as an optional third entry, or a mapping from values to lists of neighbours, "
    "or a mapping from pairs to epsilons"
)


class Graph(MatrixPolicy):
    """Policy graph: each edge joins two values that must be hard to distinguish.

    Limits add up along paths. Values that no path joins may be distinguished without a limit.

    Parameters
    ----------
    domain
        The values, at most 4096.
    edges
        The edges, which have no direction, in one of these forms:

        - pairs ``(value, other)``, with the epsilon of the edge as an optional third entry;
        - a mapping from each value to its neighbours: a list, or a mapping from neighbours to epsilons;
        - a mapping from pairs to epsilons;
        - a DataFrame with two or three columns: the two values, and optionally the epsilon.
    epsilon
        Privacy level of the edges that do not state one, in any form that :class:`Epsilon` accepts.

    Raises
    ------
    InvalidInput
        If an edge names an unknown value, joins a value to itself, has no epsilon, or occurs with two epsilons.

    Notes
    -----
    Let Q(y|x) be the probability of output y for value x. For each edge between x and x' with level ε, the policy
    requires Q(y|x) ≤ e^ε·Q(y|x') and Q(y|x') ≤ e^ε·Q(y|x) for every output y. He, Machanavajjhala and Ding (2014,
    Blowfish Privacy) introduced policy graphs, and Cao et al. (2020, PGLP) use them for locations. The effective
    epsilon of two values is the length of the shortest path between them.

    Examples
    --------
    >>> from sfumato import Domain
    >>> places = Domain(["clinic", "park", "school", "airport"])
    >>> policy = Graph(places, [("clinic", "park"), ("park", "school", "1/2")], 1)
    >>> policy.effective_epsilon(0, 2), policy.effective_epsilon(0, 3)
    (Epsilon('1.5'), Epsilon('inf'))
    """

    kind = "graph"

    def __init__(self, domain: Domain, edges: Any, epsilon: EpsilonLike | None = None) -> None:
        self.domain = checked_domain("Graph", domain)
        if len(domain) > LARGEST_DENSE:
            raise InvalidInput("Graph", "domain", f"have at most {LARGEST_DENSE} values", len(domain))
        default = None if epsilon is None else Epsilon(epsilon, subject="Graph")
        self._edges = dict(sorted(_read_edges(domain, edges, default).items()))
        distinct = list(dict.fromkeys(self._edges.values()))
        place = {level: number for number, level in enumerate(distinct, 2)}
        positions = np.ones((len(domain), len(domain)), dtype=np.intp)
        np.fill_diagonal(positions, 0)
        for (x, other), level in self._edges.items():
            positions[x, other] = positions[other, x] = place[level]
        self._epsilon_matrix = EpsilonMatrix.from_epsilons(positions, [ZERO, INFINITE, *distinct])

    @property
    def edges(self) -> list[tuple[object, object, Epsilon]]:
        """The edges, each once, in domain order: two values and an epsilon."""
        label = self.domain.label
        return [(label(x), label(other), epsilon) for (x, other), epsilon in self._edges.items()]

    @property
    def components(self) -> list[list[object]]:
        """The sets of values that edges connect, directly or through other values; reports may reveal the set."""
        joined: list[list[int]] = [[] for _ in range(len(self.domain))]
        for (x, other), epsilon in self._edges.items():
            if not epsilon.is_infinite:
                joined[x].append(other)
                joined[other].append(x)
        components: list[list[object]] = []
        component_of = [-1] * len(joined)
        for start in range(len(joined)):
            if component_of[start] >= 0:
                continue
            component_of[start] = len(components)
            pending = [start]
            while pending:
                for neighbour in joined[pending.pop()]:
                    if component_of[neighbour] < 0:
                        component_of[neighbour] = len(components)
                        pending.append(neighbour)
            components.append([])
        for label, component in zip(self.domain, component_of, strict=True):
            components[component].append(label)
        return components

    @functools.cached_property
    def _closed(self) -> EpsilonMatrix:
        """The effective epsilons: one search per value, because most graphs have few edges per value."""
        matrix, size = self._epsilon_matrix, len(self.domain)
        pairs = np.array(list(self._edges), dtype=np.intp).reshape(-1, 2)
        codes = matrix.codes[tuple(pairs.T)]
        pairs, codes = pairs[codes < INFINITE_CODE], codes[codes < INFINITE_CODE]
        if matrix.unit is None or int(codes.max(initial=0)) * size >= _EXACT_IN_FLOAT:
            return matrix.closed()
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        weights = csr_array((codes.astype(np.float64), tuple(pairs.T)), shape=(size, size))
        lengths = dijkstra(weights, directed=False)
        reached = np.isfinite(lengths)
        closed = np.where(reached, np.where(reached, lengths, 0).astype(np.int64), INFINITE_CODE)
        return EpsilonMatrix(closed, matrix.unit)

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        return ZERO if x == other else self._edges.get((min(x, other), max(x, other)), INFINITE)

    def inequalities(self) -> Iterator[Inequality]:
        for (x, other), epsilon in self._edges.items():
            if epsilon.is_infinite:
                continue
            for first, second in ((x, other), (other, x)):
                names = self.domain.label(first), self.domain.label(second)
                yield Inequality({first: Fraction(1)}, {second: Fraction(1)}, epsilon, names)

    def parameters(self) -> dict[str, Any]:
        levels = set(self._edges.values())
        pairs = [[label_document(value), label_document(other)] for value, other, _ in self.edges]
        if len(levels) == 1:
            return {"edges": pairs, "epsilon": str(levels.pop())}
        return {"edges": [[*pair, str(level)] for pair, level in zip(pairs, self._edges.values(), strict=True)]}

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:
        # With one epsilon per graph, every shortest path has the least number of edges, so the lengths add up.
        if not isinstance(other, Graph) or list(self._edges) != list(other._edges):
            return None
        first, second = set(self._edges.values()), set(other._edges.values())
        if len(first) != 1 or len(second) != 1:
            return None
        pairs = [(value, neighbour) for value, neighbour, _ in self.edges]
        return Graph(self.domain, pairs, (first.pop() + second.pop()).as_promise())


def _read_edges(domain: Domain, edges: Any, default: Epsilon | None) -> dict[tuple[int, int], Epsilon]:
    """Return the epsilon of each edge, by the indices of its two values in ascending order."""
    levels: dict[tuple[int, int], Epsilon] = {}
    for number, edge in enumerate(_listed(edges)):
        if isinstance(edge, np.ndarray):
            edge = edge.tolist()
        if not isinstance(edge, (tuple, list)) or len(edge) not in (2, 3):
            raise InvalidInput("Graph", f"edge {number}", "be a pair of values, with an optional epsilon", edge)
        value, other, *stated = edge
        name = f"edge {number} ({value!r}, {other!r})"
        for end in (value, other):
            if end not in domain:
                raise InvalidInput("Graph", name, "join two values of the domain", end)
        pair = domain.index(value), domain.index(other)
        if pair[0] == pair[1]:
            raise InvalidInput("Graph", name, "join two different values", value)
        if stated and not is_missing(stated[0]):
            level = Epsilon(stated[0], subject="Graph", parameter=f"the epsilon of {name}")
        elif default is not None:
            level = default
        else:
            hint = "Pass epsilon= for the edges that do not state one."
            raise InvalidInput("Graph", name, "have an epsilon", None, hint=hint)
        if levels.setdefault((min(pair), max(pair)), level) != level:
            before = levels[min(pair), max(pair)]
            got = Description(f"{value!r} and {other!r} at {before} and at {level}")
            raise InvalidInput("Graph", "edges", "state one epsilon for each pair of values", got)
    return levels


def _listed(edges: Any) -> Sequence[Any]:
    """Return edges in any accepted form as a list of tuples."""
    rows = frame_rows(edges)
    if rows is not None:
        if rows and len(rows[0]) not in (2, 3):
            got = Description(quantity(len(rows[0]), "column"))
            raise InvalidInput("Graph", "edges", "have two or three columns if it is a frame", got)
        return rows
    if not isinstance(edges, Mapping):
        return read_list("Graph", "edges", _FORMS, edges)
    by_value = [isinstance(entry, (list, tuple, set, frozenset, np.ndarray, Mapping)) for entry in edges.values()]
    if all(by_value):
        return [edge for value, neighbours in edges.items() for edge in _edges_of(value, neighbours)]
    if any(by_value) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in edges):
        raise InvalidInput("Graph", "edges", _FORMS, edges)
    return [(*pair, epsilon) for pair, epsilon in edges.items()]


def _edges_of(value: object, neighbours: Any) -> list[tuple[Any, ...]]:
    """Return the edges of one value, from its neighbours or from a mapping of neighbours to epsilons."""
    if isinstance(neighbours, Mapping):
        return [(value, other, epsilon) for other, epsilon in neighbours.items()]
    return [(value, other) for other in (neighbours.tolist() if isinstance(neighbours, np.ndarray) else neighbours)]
