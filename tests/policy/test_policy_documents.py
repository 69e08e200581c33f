"""Policies as documents: what is written is read back as the same policy, and what is misspelt is named."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from sfumato._core import exact
from sfumato._core.exact import INFINITE, Epsilon
from sfumato.domain.domain import Domain
from sfumato.errors import UnknownSpec
from sfumato.policy.base import Policy
from sfumato.policy.blocks import Blocks
from sfumato.policy.distributions import Anything, Known
from sfumato.policy.document import load_policy, policy_from_dict, save_policy
from sfumato.policy.graph import Graph
from sfumato.policy.high_low import HighLow
from sfumato.policy.metric import Metric
from sfumato.policy.pairwise import Pairwise
from sfumato.policy.per_value import PerValue
from sfumato.policy.prior import Prior
from sfumato.policy.product import Product
from sfumato.policy.secret import Secret
from sfumato.policy.uniform import Uniform
from support.reference import Case, any_case, columns, product_domain, refusal

ILLNESS = Domain(["none", "flu", "hiv", "cancer"])
ABC = Domain(["a", "b", "c"])
GRID = Domain.grid(latitude=(0, 2), longitude=(0, 3), rows=2, columns=3)
BOARD = Domain.grid(2, 3)
SURVEY = Domain.product(S=["yes", "no"], U=Domain.range(2))
QUARTERS = [["1/4", "1/4"], ["1/4", "1/4"]]

POLICIES: dict[str, Policy] = {
    "uniform": Uniform(ILLNESS, 0.1),
    "uniform, infinite": Uniform(ILLNESS, "inf"),
    "uniform over a range": Uniform(Domain.range(1000), "ln 3"),
    "high-low": HighLow(ILLNESS, ["hiv", "cancer"], "1/2*ln 3"),
    "high-low over truth values": HighLow(Domain([True, False]), [True], 1),
    "high-low over floats": HighLow(Domain([0.5, -1.25]), [-1.25], 1),
    "high-low over a grid": HighLow(GRID, [(0, 1), (1, 2)], 1),
    "high-low over a product": HighLow(SURVEY, [("yes", 0)], 1),
    "high-low over part of a product": HighLow(SURVEY.subset([("no", 1), ("yes", 0)]), [("yes", 0)], 1),
    "high-low over tuples of tuples": HighLow(
        Domain.product(where=GRID, who=["me", "you"]), [((1, 2), "me"), ((0, 0), "you")], 1
    ),
    "blocks": Blocks(ILLNESS, [["none", "flu"], ["hiv", "cancer"]], "1/3"),
    "blocks at several levels": Blocks(ILLNESS, "xyxy", ["ln 2", 1], across="1+ln 5"),
    "blocks of one value each": Blocks(ILLNESS, "abcd", 1, across=2),
    "metric": Metric(ABC, [["0", "1/2", "1"], ["1/2", "0", "1/3"], ["1", "1/3", "0"]], "ln 4"),
    "metric by name": Metric(Domain([1, 5, 9]), "absolute", "0.001"),
    "metric on a map": Metric(GRID, "km", "0.01"),
    "metric, discrete": Metric(ABC, "discrete", 1),
    "metric, Manhattan": Metric(BOARD, "manhattan", "ln 2"),
    "metric, Euclidean": Metric(BOARD, "euclidean", 1),
    "metric, Euclidean over a product": Metric(Domain.product(a=[0.5, 2.25], b=[1, 4]), "euclidean", "1/3"),
    "per value": PerValue(ILLNESS, {"hiv": "1/2", "cancer": "ln 2", "flu": 1, "none": "inf"}),
    "per value, mean": PerValue(ILLNESS, ["inf", 1, "1/2", "1/2"], rule="mean"),
    "product": Product({"illness": HighLow(ILLNESS, ["hiv"], 1), "age": Metric(Domain.range(5), "absolute", "1/2")}),
    "product of a product": Product(
        {
            "home": Product({"row": Uniform(Domain.range(2), "ln 3"), "column": Uniform(Domain.range(3), 1)}),
            "abc": Blocks(ABC, "xxy", "1/3"),
        }
    ),
    "per value over a grid": PerValue(BOARD, [1, 1, 2, 2, 3, 3], rule="max"),
    "graph": Graph(ABC, [("c", "a"), ("a", "b")], "ln 3"),
    "graph at several levels": Graph(ILLNESS, {("none", "flu"): 1, ("hiv", "cancer"): "1/2"}),
    "graph over a grid": Graph(BOARD, [((0, 0), (0, 1)), ((1, 2), (0, 2), 2)], 1),
    "graph without edges": Graph(ABC, []),
    "pairwise": Pairwise(ABC, {("a", "b"): "1+ln 2", ("b", "a"): 0, ("c", "a"): "2/7"}),
    "pairwise, free": Pairwise(ABC, {}),
    "pairwise, long levels": Pairwise(ABC, {("a", "b"): "99*ln 2 + 100*ln 3 + 101*ln 5", ("b", "c"): "1e-30"}),
    "prior": Prior(ILLNESS, [0.7, 0.2, "1/10", 0], "ln 2"),
    "prior over thirds": Prior(ABC, [1 / 3] * 3, 1),
    "secret, anything": Secret(SURVEY, "S", 1, Anything()),
    "secret, known": Secret(SURVEY, "U", "ln 2", Known([["1/2", "1/8"], [0, "3/8"]])),
}
every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())


# -- round trips -------------------------------------------------------------------------------------------


def same(first: Policy, second: Policy) -> None:
    assert first == second
    assert type(first) is type(second)
    assert first.domain == second.domain
    assert first.to_dict() == second.to_dict()
    assert first.hash == second.hash
    assert hash(first) == hash(second)
    assert repr(first) == repr(second)
    if len(first.domain) < 100:
        assert list(first.inequalities()) == list(second.inequalities())


@every_policy
def test_a_policy_is_its_document(policy: Policy) -> None:
    same(policy, policy_from_dict(policy.to_dict()))
    same(policy, policy_from_dict(json.loads(json.dumps(policy.to_dict(), allow_nan=False))))
    assert policy.to_dict()["policy"]["kind"] == type(policy).kind


@every_policy
@pytest.mark.parametrize("name", ["policy.toml", "policy.json", "policy", "policy.txt"])
def test_a_policy_is_its_file(policy: Policy, name: str, tmp_path: Path) -> None:
    save_policy(policy, tmp_path / name)
    same(policy, load_policy(tmp_path / name))
    same(policy, load_policy(str(tmp_path / name)))
    text = (tmp_path / name).read_text(encoding="utf-8")
    read = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
    assert set(read) == {"domain", "policy"}


@pytest.mark.parametrize(
    ("policy", "document"),
    [
        (PerValue(ABC, ["inf", 1, "1/2"]), '{"epsilons":["inf","1","0.5"],"kind":"per-value"}'),
        (PerValue(ABC, ["inf", 1, "1/2"], "mean"), '{"epsilons":["inf","1","0.5"],"kind":"per-value","rule":"mean"}'),
        (
            Graph(ABC, [("c", "b"), ("a", "b", "ln 3")], "ln 3"),
            '{"edges":[["a","b"],["b","c"]],"epsilon":"ln 3","kind":"graph"}',
        ),
        (
            Graph(ABC, [("c", "b", 2), ("a", "b")], "ln 3"),
            '{"edges":[["a","b","ln 3"],["b","c","2"]],"kind":"graph"}',
        ),
        (Graph(ABC, [], 1), '{"edges":[],"kind":"graph"}'),
    ],
)
def test_documents_of_levels_per_value_and_graphs_are_frozen(policy: Policy, document: str) -> None:
    whole = f'{{"domain":{{"values":["a","b","c"]}},"policy":{document}}}'
    assert policy.hash == hashlib.sha256(whole.encode()).hexdigest()


def test_documents_of_grids_without_coordinates_are_frozen() -> None:
    whole = '{"domain":{"grid":{"columns":3,"rows":2}},"policy":{"distance":"euclidean","epsilon":"1","kind":"metric"}}'
    assert Metric(BOARD, "euclidean", 1).hash == hashlib.sha256(whole.encode()).hexdigest()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(any_case, st.data())
def test_random_policies_survive_their_files(tmp_path: Path, case: Case, data: st.DataObject) -> None:
    for name in ("policy.toml", "policy.json"):
        save_policy(case.policy, tmp_path / name)
        again = load_policy(tmp_path / name)
        same(case.policy, again)
        column = data.draw(columns(case.size))
        assert again.allows(column) == case.allows(column)


@every_policy
def test_reading_leaves_the_document_as_it_was(policy: Policy) -> None:
    document = policy.to_dict()
    before = copy.deepcopy(document)
    policy_from_dict(document)
    assert document == before


@every_policy
def test_composed_and_restricted_policies_are_documents_too(policy: Policy) -> None:
    if isinstance(policy, (Secret, Prior)) or len(policy.domain) > 100:
        return
    same(policy.compose(policy), policy_from_dict(policy.compose(policy).to_dict()))
    some = list(policy.domain)[:2][::-1]
    same(policy.restrict(some), policy_from_dict(policy.restrict(some).to_dict()))


def test_sums_of_the_largest_levels_can_be_written_and_read() -> None:
    largest = exact._LARGEST
    restricted = Pairwise(ABC, {("a", "b"): largest, ("b", "c"): largest}).restrict(["a", "c"])
    same(restricted, policy_from_dict(restricted.to_dict()))


def test_levels_at_the_largest_compose_to_documents_that_can_be_read() -> None:
    largest = exact._LARGEST
    for policy in (
        Uniform(ABC, largest),
        HighLow(ABC, ["a"], largest),
        Blocks(ABC, [0, 0, 1], largest, largest),
        Metric(ABC, "discrete", largest),
        Prior(ABC, ["1/2", "1/4", "1/4"], largest),
        Pairwise(ABC, {("a", "b"): largest}),
    ):
        both = policy.compose(policy)
        same(both, policy_from_dict(both.to_dict()))
        some = policy.restrict(["a", "b"])
        same(some, policy_from_dict(some.to_dict()))


def test_sums_with_long_fractions_are_stated_as_the_next_level_above() -> None:
    one, other = (Uniform(ABC, Fraction(1, prime**n)) for prime, n in ((3, 2500), (5, 1700)))
    both = one.compose(other)
    same(both, policy_from_dict(both.to_dict()))
    assert isinstance(both, Uniform)
    assert one.epsilon + other.epsilon < both.epsilon <= Epsilon(Fraction(1, 2**159))


def test_sums_of_large_levels_can_be_written_and_read() -> None:
    """Each level is within what is accepted; a path over two of them must not be a document nobody can read."""
    chain = Pairwise(ABC, {("a", "b"): 10**9, ("b", "c"): 10**9})
    restricted = chain.restrict(["a", "c"])
    same(restricted, policy_from_dict(restricted.to_dict()))


# -- hashes and equality -----------------------------------------------------------------------------------


def test_the_hash_is_that_of_the_canonical_text() -> None:
    text = '{"domain":{"values":["a","b","c"]},"policy":{"epsilon":"0.1","kind":"high-low","sensitive":["b","c"]}}'
    policy = HighLow(ABC, ["c", "b"], 0.1)
    assert policy.hash == hashlib.sha256(text.encode()).hexdigest()
    umlaut = '{"domain":{"values":["ä","ß"]},"policy":{"epsilon":"ln 3","kind":"uniform"}}'
    assert Uniform(Domain(["ä", "ß"]), "ln 3").hash == hashlib.sha256(umlaut.encode()).hexdigest()


@pytest.mark.parametrize(
    "alike",
    [
        [Uniform(ABC, "ln 9"), Uniform(ABC, "2*ln 3"), Uniform(ABC, Epsilon("ln 3") * 2)],
        [Uniform(ABC, 0.1), Uniform(ABC, "1/10"), Uniform(ABC, Fraction(1, 10)), Uniform(ABC, np.float64(0.1))],
        [HighLow(ABC, ["a", "c"], 1), HighLow(ABC, ("c", "a"), 1.0), HighLow(ABC, iter(["c", "a"]), "1")],
        [
            Blocks(ABC, ["x", "y", "x"], 1),
            Blocks(ABC, [["b"], ["c", "a"]], [1, "1.0"]),
            Blocks(ABC, [{"a", "c"}, {"b"}], 1, across=math.inf),
            Blocks(ABC, np.array([5, 3, 5]), 1, INFINITE),
        ],
        [Prior(ABC, [0.5, 0.25, 0.25], 1), Prior(ABC, ["1/2", "0.25", Fraction(1, 4)], 1)],
        [
            Pairwise(ABC, {("a", "b"): "ln 4"}),
            Pairwise(ABC, [[0, "2*ln 2", "inf"], [math.inf, 0, "inf"], ["inf", "inf", 0.0]]),
        ],
        [
            Metric(ABC, [[0, 0.5, 1], [0.5, 0, 1], [1, 1, 0]], 1),
            Metric(ABC, [["0", "1/2", "1"], ["1/2", "0", "1"], ["1", "1", "0"]], 1),
        ],
        [Secret(SURVEY, "S", 1, Known(QUARTERS)), Secret(SURVEY, "S", "1", Known(np.full((2, 2), 0.25)))],
    ],
    ids=lambda alike: alike[0].kind,
)  # fmt: skip
def test_one_policy_has_one_document(alike: list[Policy]) -> None:
    for policy in alike[1:]:
        same(alike[0], policy)
    assert len(set(alike)) == 1


def test_different_policies_are_different() -> None:
    distinct = [
        *POLICIES.values(),
        Uniform(ILLNESS, "0.2"),
        HighLow(ILLNESS, ["hiv"], "1/2*ln 3"),
        Blocks(ILLNESS, [["none", "flu"], ["hiv", "cancer"]], "1/3", across=1),
        Uniform(Domain(["none", "flu", "cancer", "hiv"]), 0.1),
        HighLow(ILLNESS, ["none", "flu", "hiv", "cancer"], 0.1),
        Secret(SURVEY, "S", "ln 2", Known([["1/2", "1/8"], [0, "3/8"]])),
        Prior(ILLNESS, [0.2, 0.7, "1/10", 0], "ln 2"),
    ]
    assert len({policy.hash for policy in distinct}) == len(distinct)
    assert len(set(distinct)) == len(distinct)
    for i, first in enumerate(distinct):
        assert all(first != second for second in distinct[i + 1 :])
    assert Uniform(ABC, 1) != "uniform"


# -- documents written by people ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        (
            """
            [domain]
            values = ["none", "flu", "hiv", "cancer"]
            [policy]
            kind = "high-low"
            sensitive = ["hiv", "cancer"]
            epsilon = "1"
            """,
            HighLow(ILLNESS, ["hiv", "cancer"], 1),
        ),
        ("domain.size = 1000\npolicy = {kind = 'uniform', epsilon = 0.1}", Uniform(Domain.range(1000), "1/10")),
        ("domain.size = 3\npolicy = {kind = 'uniform', epsilon = inf}", Uniform(Domain.range(3), "inf")),
        (
            "domain.values = ['a', 'b', 'c']\n"
            "policy = {kind = 'blocks', blocks = [['a', 'c'], ['b']], epsilon = [1, 'ln 2']}",
            Blocks(ABC, "xyx", [1, "ln 2"]),
        ),
        (
            "domain.values = ['a', 'b', 'c']\n"
            "policy = {kind = 'blocks', blocks = ['u', 'v', 'u'], epsilon = 1, across = 3}",
            Blocks(ABC, "xyx", 1, across=3),
        ),
        (
            """
            [domain.product]
            S = ["yes", "no"]
            U = {size = 2}
            [policy]
            kind = "blocks"
            blocks = [[["yes", 0], ["no", 1]], [["yes", 1], ["no", 0]]]
            epsilon = 1
            """,
            Blocks(SURVEY, [[("yes", 0), ("no", 1)], [("yes", 1), ("no", 0)]], 1),
        ),
        (
            """
            [domain.grid]
            latitude = [0, 2]
            longitude = [0, 3]
            rows = 2
            columns = 3
            [policy]
            kind = "high-low"
            sensitive = [[1, 2], [0, 1]]
            epsilon = 1
            """,
            HighLow(GRID, [(0, 1), (1, 2)], 1),
        ),
        (
            "domain.values = [1, 5, 9]\npolicy = {kind = 'metric', distance = 'absolute', epsilon = '0.001'}",
            Metric(Domain([1, 5, 9]), "absolute", "0.001"),
        ),
        (
            "domain.values = ['a', 'b']\npolicy = {kind = 'metric', distance = [[0, 0.1], [0.1, 0]], epsilon = 1}",
            Metric(Domain(["a", "b"]), [["0", "1/10"], ["1/10", "0"]], 1),
        ),
        (
            "domain.values = ['a', 'b']\npolicy = {kind = 'metric', distance = [[0, '1/3'], ['1/3', 0]], epsilon = 1}",
            Metric(Domain(["a", "b"]), [["0", "1/3"], ["1/3", "0"]], 1),
        ),
        (
            "domain.values = ['a', 'b']\npolicy = {kind = 'pairwise', matrix = [[0, inf], ['ln 3', 0]]}",
            Pairwise(Domain(["a", "b"]), {("b", "a"): "ln 3"}),
        ),
        (
            "domain.values = ['a', 'b', 'c']\npolicy = {kind = 'prior', prior = [0.1, '0.2', 0.7], epsilon = 'ln 2'}",
            Prior(ABC, ["1/10", "1/5", "7/10"], "ln 2"),
        ),
        (
            """
            [domain.product]
            S = ["yes", "no"]
            U = {size = 2}
            [policy]
            kind = "secret"
            secret = "S"
            epsilon = 1
            distributions = {known = [[0.25, "1/4"], [0.5, 0]]}
            """,
            Secret(SURVEY, "S", 1, Known([["1/4", "1/4"], ["1/2", 0]])),
        ),
        (
            """
            [domain.product]
            S = ["yes", "no"]
            U = {size = 2}
            [policy]
            kind = "secret"
            secret = "S"
            epsilon = 1
            [policy.distributions]
            anything = true
            """,
            Secret(SURVEY, "S", 1, Anything()),
        ),
    ],
)  # fmt: skip
def test_files_written_by_hand(text: str, policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    same(load_policy(tmp_path / "policy.toml"), policy)


def test_a_domain_in_a_file_beside_the_policy(tmp_path: Path) -> None:
    (tmp_path / "pages.csv").write_text("page\nhome\nhelp\n", encoding="utf-8")
    (tmp_path / "policy.toml").write_text(
        "domain.file = 'pages.csv'\npolicy = {kind = 'uniform', epsilon = 1}", encoding="utf-8"
    )
    same(load_policy(tmp_path / "policy.toml"), Uniform(Domain(["home", "help"]), 1))


# -- what is refused ---------------------------------------------------------------------------------------


def document(base: str, /, **changes: Any) -> dict[str, Any]:
    """A sound document of this kind over the values a, b, c with some keys changed; ... takes one out."""
    sound: dict[str, dict[str, Any]] = {
        "uniform": {"epsilon": "1"},
        "high-low": {"epsilon": "1", "sensitive": ["a"]},
        "blocks": {"epsilon": "1", "blocks": ["x", "x", "y"]},
        "metric": {"epsilon": "1", "distance": "discrete"},
        "pairwise": {"matrix": [["0"] * 3] * 3},
        "prior": {"epsilon": "1", "prior": ["1/2", "1/2", "0"]},
        "secret": {"epsilon": "1", "secret": "S", "distributions": {"anything": True}},
    }
    stated = {"kind": base, **sound[base], **changes}
    domain = SURVEY.to_dict() if base == "secret" else {"values": ["a", "b", "c"]}
    return {"domain": domain, "policy": {key: value for key, value in stated.items() if value is not ...}}


KINDS = ("uniform", "high-low", "blocks", "metric", "pairwise", "prior", "secret")
NEEDED = {
    "uniform": {"epsilon"},
    "high-low": {"epsilon", "sensitive"},
    "blocks": {"epsilon", "blocks"},
    "metric": {"epsilon", "distance"},
    "pairwise": {"matrix"},
    "prior": {"epsilon", "prior"},
    "secret": {"epsilon", "secret", "distributions"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_needs_each_of_its_keys_and_takes_no_other(kind: str) -> None:
    assert policy_from_dict(document(kind)).kind == kind
    for key in NEEDED[kind]:
        message = refusal(policy_from_dict, document(kind, **{key: ...}))
        assert f"[policy] of kind {kind}: the document must have the key {key!r}" in message
        misspelt = key[:-1]
        message = refusal(policy_from_dict, document(kind, **{misspelt: 1}))
        assert f"did you mean {key!r}?" in message
        assert message.endswith(f"got {misspelt!r}")
    message = refusal(policy_from_dict, document(kind, zzz=1))
    assert "did you mean" not in message
    assert message.endswith("got 'zzz'")
    assert all(key in message for key in NEEDED[kind])


def test_an_optional_key_misspelt() -> None:
    assert "did you mean 'across'?" in refusal(policy_from_dict, document("blocks", acros=3))
    assert refusal(policy_from_dict, document("uniform", across=3)).endswith("got 'across'")


@pytest.mark.parametrize("kind", ["unifrom", "Uniform", "", None, 7, ["uniform"], {}, ...], ids=repr)
def test_an_unknown_kind(kind: Any) -> None:
    with pytest.raises(UnknownSpec, match=r"\[policy\]: kind must be one of uniform, high-low, blocks"):
        policy_from_dict(document("uniform", kind=kind))


@pytest.mark.parametrize(
    ("wrong", "culprit"),
    [
        ({"domain": {"size": 3}}, "'policy'"),
        ({"policy": {"kind": "uniform", "epsilon": 1}}, "'domain'"),
        ({"domain": {"size": 3}, "polcy": {}}, "did you mean 'policy'?"),
        ({"domain": {"size": 3}, "policy": {"kind": "uniform", "epsilon": 1}, "extra": 1}, "got 'extra'"),
        ({"domain": {"size": 3}, "policy": "uniform"}, "'uniform'"),
        ({"domain": {"size": 3}, "policy": ["uniform"]}, "['uniform']"),
        ({"domain": {"size": 3}, "policy": None}, "None"),
        ({"domain": {"sizes": 3}, "policy": {"kind": "uniform", "epsilon": 1}}, "did you mean 'size'?"),
        ({"domain": 3, "policy": {"kind": "uniform", "epsilon": 1}}, "got 3"),
        ([], "got []"),
        ("uniform", "got 'uniform'"),
        (None, "got None"),
    ],
)
def test_documents_of_the_wrong_shape(wrong: Any, culprit: str) -> None:
    assert culprit in refusal(policy_from_dict, wrong)


@pytest.mark.parametrize(
    ("wrong", "culprit"),
    [
        (document("uniform", epsilon=-1), "Uniform: epsilon must be at least 0; got -1"),
        (document("uniform", epsilon=math.nan), "Uniform: epsilon must be "),
        (document("uniform", epsilon=True), "got True"),
        (document("uniform", epsilon=[1]), "got [1]"),
        (document("high-low", sensitive="ab"), "HighLow: sensitive must be a list of values; got 'ab'"),
        (document("high-low", sensitive=5), "got 5"),
        (document("high-low", sensitive=[]), "at least one"),
        (document("high-low", sensitive=["z"]), "'z'"),
        (document("high-low", sensitive=[["a"]]), "'a'"),
        (document("blocks", blocks=5), "got 5"),
        (document("blocks", blocks=[["a"], ["a", "b"]]), "'a' in blocks 0 and 1"),
        (document("blocks", blocks=[["a", "b"]]), "no block for 'c'"),
        (document("blocks", blocks=[["a"], "b", "c"]), "be lists of values, or 3 block labels, one per value"),
        (document("blocks", blocks=[{}, {}, {}]), "be lists of values, or 3 block labels, one per value"),
        (document("blocks", epsilon=[1, 2, 3]), "a list of 2 epsilons, one per block; got 3 epsilons"),
        (document("metric", distance="miles"), "got 'miles'"),
        (document("metric", distance=[["0", "1"], ["1", "0"]]), "3 by 3"),
        (document("pairwise", matrix=[["0", "1"], ["1", "0"]]), "3 by 3"),
        (document("pairwise", matrix="x"), "3 by 3"),
        (document("pairwise", matrix={"a": 1}), "'a'"),
        (document("prior", prior=["1/2", "1/2"]), "3 entries"),
        (document("prior", prior=5), "got 5"),
        (document("prior", prior="100"), "'100'"),
        (document("secret", secret="X"), "be one of the factors S, U; got 'X'"),
        (document("secret", distributions="anything"), "distributions"),
        (document("secret", distributions={"anything": False}), "distributions"),
        (document("secret", distributions={"anything": 1.5}), "distributions"),
        (document("secret", distributions={"knwon": QUARTERS}), "knwon"),
        (document("secret", distributions={"known": QUARTERS, "anything": True}), "distributions"),
        (document("secret", distributions={"known": [["1/2", "1/2"]]}), "2 rows of 2"),
        (document("secret", distributions={"known": 5}), "2 rows of 2"),
    ],
)
def test_values_that_are_wrong_are_named(wrong: dict[str, Any], culprit: str) -> None:
    assert culprit in refusal(policy_from_dict, wrong)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    contents = {
        "missing.toml": None,
        "broken.toml": "[domain\n",
        "broken.json": "{",
        "twice.toml": "[domain]\nsize = 1\n[domain]\nsize = 2\n",
        "toml.json": "domain.size = 3",
        "list.json": "[]",
        "empty.toml": "",
    }
    for name, text in contents.items():
        if text is not None:
            (tmp_path / name).write_text(text, encoding="utf-8")
        message = refusal(load_policy, tmp_path / name)
        assert name in message or "a policy document" in message
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    assert "bytes.toml" in refusal(load_policy, tmp_path / "bytes.toml")
    assert str(tmp_path) in refusal(load_policy, tmp_path)


def test_a_policy_shows_what_it_is() -> None:
    assert repr(HighLow(ILLNESS, ["hiv"], "ln 3")) == (
        "HighLow(Domain(['none', 'flu', 'hiv', 'cancer']), sensitive=['hiv'], epsilon='ln 3')"
    )
    assert len(repr(Pairwise(Domain.range(500), {}))) < 200
    assert repr(Secret(product_domain(2, 2), "S", 1, Anything())).endswith("distributions={'anything': True})")
