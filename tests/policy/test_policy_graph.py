"""Policy graphs: every form of edges gives the same policy, and levels are lengths of paths."""

from __future__ import annotations

import itertools
import json
import random

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato._core.exact import INFINITE
from support.reference import refusal

PLACES = sf.Domain(["clinic", "park", "school", "airport"])
PATH = [("clinic", "park"), ("park", "school")]
FRAME = pd.DataFrame(PATH, columns=["from", "to"])


@pytest.mark.parametrize(
    "edges",
    [
        PATH,
        iter(PATH),
        [list(edge) for edge in PATH],
        [("school", "park"), ("park", "clinic"), ("clinic", "park")],
        np.array(PATH),
        {"park": ["clinic", "school"]},
        {"park": {"clinic", "school"}, "clinic": ("park",), "airport": []},
        {"clinic": {"park": 1}, "school": {"park": "1"}},
        {("clinic", "park"): 1, ("school", "park"): 1.0},
        FRAME,
        FRAME.assign(epsilon=[1, 1]),
        FRAME.assign(epsilon=[1, np.nan]),
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
    ],
)
def test_every_form_of_edges_gives_the_same_policy(edges: object) -> None:
    policy = sf.Graph(PLACES, edges, 1)
    assert policy.to_dict()["policy"] == {"kind": "graph", "edges": [list(edge) for edge in PATH], "epsilon": "1"}
    assert policy == sf.Graph(PLACES, PATH, 1)
    assert policy.edges == [("clinic", "park", sf.Epsilon(1)), ("park", "school", sf.Epsilon(1))]
    assert policy.components == [["clinic", "park", "school"], ["airport"]]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (
            [("clinic", "harbour")],
            "Graph: edge 0 ('clinic', 'harbour') must join two values of the domain; got 'harbour",
        ),
        (
            [("park", "school", 1), ("park", "park", 1)],
            "Graph: edge 1 ('park', 'park') must join two different values; got 'park'",
        ),
        (
            [("clinic", "park", 1), ("park", "clinic", 2)],
            "Graph: edges must state one epsilon for each pair of values; got 'park' and 'clinic' at 1 and at 2",
        ),
        ([("clinic", "park")], "Graph: edge 0 ('clinic', 'park') must have an epsilon; got None. Pass epsilon= for"),
        ([("clinic", "park", -1)], "Graph: the epsilon of edge 0 ('clinic', 'park') must "),
        ([("clinic",)], "Graph: edge 0 must be a pair of values, with an optional epsilon; got ('clinic',)"),
        (["clinic park"], "Graph: edge 0 must be a pair of values, with an optional epsilon; got 'clinic park'"),
        ("clinic", "Graph: edges must be pairs of values"),
        ({"clinic": "park"}, "Graph: edges must be pairs of values"),
        ({"clinic": ["park"], "park": 1}, "Graph: edges must be pairs of values"),
        (FRAME.iloc[:, :1], "Graph: edges must have two or three columns if it is a frame; got 1 column"),
    ],
)
def test_wrong_edges_are_named(edges: object, message: str) -> None:
    assert refusal(sf.Graph, PLACES, edges).startswith(message)


def test_too_many_values_are_rejected() -> None:
    assert refusal(sf.Graph, sf.Domain.range(4097), [], 1) == "Graph: domain must have at most 4096 values; got 4097"


def test_levels_add_up_along_paths_and_end_between_components() -> None:
    ring = sf.Graph(sf.Domain.range(7), [(x, (x + 1) % 6) for x in range(6)], "1/2")
    for x in range(6):
        for y in range(6):
            steps = min((x - y) % 6, (y - x) % 6)
            assert ring.effective_epsilon(x, y) == sf.Epsilon("1/2") * steps
        assert ring.effective_epsilon(x, 6) == INFINITE
    assert len(list(ring.inequalities())) == 12
    assert ring.compose(ring) == sf.Graph(ring.domain, [edge[:2] for edge in ring.edges], 1)


def test_searches_agree_with_the_closure_of_the_matrix() -> None:
    generator = random.Random(7)
    for levels in (["0", "1", "1/3"], ["1", "ln 2"], ["1/1000000007", "999999937"], ["inf", "2"]):
        for size in (2, 5, 9):
            pairs = [pair for pair in itertools.combinations(range(size), 2) if generator.random() < 0.4]
            policy = sf.Graph(sf.Domain.range(size), [(*pair, generator.choice(levels)) for pair in pairs])
            closed, expected = policy.effective_epsilon_matrix(), policy.epsilon_matrix().closed()
            for x, y in itertools.product(range(size), repeat=2):
                assert closed.at(x, y) == expected.at(x, y)


def test_composition_at_several_levels_is_a_matrix() -> None:
    """The sum of two shortest paths can be shorter than the shortest path of sums."""
    first = sf.Graph(sf.Domain.range(4), [(0, 1, 1), (1, 3, 1), (0, 2, 5), (2, 3, 5)])
    second = sf.Graph(sf.Domain.range(4), [(0, 1, 5), (1, 3, 5), (0, 2, 1), (2, 3, 1)])
    both = first.compose(second)
    assert isinstance(both, sf.Pairwise)
    assert both.effective_epsilon(0, 3) == sf.Epsilon(4)


@pytest.mark.parametrize(
    ("edges", "simplest"),
    [
        ([(0, 1), (1, 2), (0, 2)], sf.Uniform(sf.Domain.range(3), 1)),
        ([(0, 1)], sf.Blocks(sf.Domain.range(3), [0, 0, 1], 1)),
        ([], sf.Uniform(sf.Domain.range(3), "inf")),
        ([(0, 1), (1, 2)], sf.Blocks(sf.Domain.range(3), [0, 1, 0], "inf", across=1)),
    ],
)
def test_cliques_and_stars_are_recognized(edges: list[tuple[int, int]], simplest: sf.Policy) -> None:
    assert sf.Graph(sf.Domain.range(3), edges, 1).simplify() == simplest


def test_a_grid_of_steps_is_the_manhattan_distance() -> None:
    board = sf.Domain.grid(3, 4)
    right = [((r, c), (r, c + 1)) for r in range(3) for c in range(3)]
    up = [((r, c), (r + 1, c)) for r in range(2) for c in range(4)]
    graph, metric = sf.Graph(board, right + up, "ln 2"), sf.Metric(board, "manhattan", "ln 2")
    assert sf.implies(graph, metric)
    assert sf.implies(metric, graph)
    assert sf.policy_from_dict(json.loads(json.dumps(graph.to_dict()))) == graph


def test_neighbours_in_a_policy_file() -> None:
    document = {
        "domain": PLACES.to_dict(),
        "policy": {"kind": "graph", "edges": {"park": ["clinic", "school"]}, "epsilon": "1"},
    }
    assert sf.policy_from_dict(document) == sf.Graph(PLACES, PATH, 1)


def test_a_mechanism_is_designed_and_audited() -> None:
    policy = sf.Graph(PLACES, [*PATH, ("school", "airport")], 1)
    mechanism = sf.design(policy, 1000)
    assert sf.audit(mechanism, policy).holds
    assert not sf.audit(mechanism, sf.Uniform(PLACES, 1)).holds
