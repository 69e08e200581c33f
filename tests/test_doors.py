"""What comes in is accepted or rejected at once: what is no domain, what is one value, which names are known."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.auditing.prior_sets import PriorMixtures
from sfumato.errors import InvalidInput
from sfumato.mechanisms.registry import mechanism_classes
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism
from support.families import is_library_class
from support.family_examples import all_examples

DOMAIN = sf.Domain(["?", "Private", "State"])
PAIRS = sf.Domain.product(S=["n", "y"], U=["y", "n"])
UNIFORM = sf.Uniform(DOMAIN, 2)
ESTIMATE = sf.simulate(RandomizedResponse(DOMAIN, 2), n=2_000, truth=[0.1, 0.6, 0.3], seed=3).estimate

LABELS: Any = ["a", "b"]
DOORS: dict[str, Callable[[], object]] = {
    "Uniform": lambda: sf.Uniform(LABELS, 1),
    "HighLow": lambda: sf.HighLow(LABELS, ["a"], 1),
    "Blocks": lambda: sf.Blocks(LABELS, [["a"], ["b"]], 1),
    "Metric": lambda: sf.Metric(LABELS, "discrete", 1),
    "Pairwise": lambda: sf.Pairwise(LABELS, [[0, 1], [1, 0]]),
    "Prior": lambda: sf.Prior(LABELS, ["1/2", "1/2"], 1),
    "Secret": lambda: sf.Secret(LABELS, "a", 1, sf.Anything()),
    "Channel": lambda: sf.Channel(LABELS, [[1], [1]]),
    "LocalPriors": lambda: sf.LocalPriors([0.5], 1, prior_source="public", domain=LABELS),
    "PriorBox": lambda: sf.PriorBox(LABELS, [0, 0], [1, 1]),
    "PriorBox.around": lambda: sf.PriorBox.around(LABELS, [0.5, 0.5], 0),
    "PriorMixtures": lambda: PriorMixtures(LABELS, [[0.5, 0.5]]),
    "Ledger.spent": lambda: sf.Ledger().spent(LABELS),
    "Ledger.remaining": lambda: sf.Ledger().remaining(LABELS),
    "TableMechanism.from_matrix": lambda: TableMechanism.from_matrix(LABELS, [[1], [1]]),
}


#: One mechanism of every class.
MECHANISMS = {made.name: made for examples in all_examples() for made in examples.laws("1")}
DOORS |= {
    f"a spec of {name}": functools.partial(type(made).from_parameters, LABELS, made.parameters())
    for name, made in MECHANISMS.items()
}


@pytest.mark.parametrize("door", DOORS)
def test_a_list_of_labels_is_no_domain(door: str) -> None:
    with pytest.raises(InvalidInput, match=r"domain must be a Domain, such as Domain\(\[\"yes\", \"no\"\]\)"):
        DOORS[door]()


def test_every_mechanism_is_tried() -> None:
    assert set(MECHANISMS) == {name for name, kind in mechanism_classes().items() if is_library_class(kind)}


def test_a_share_is_that_of_one_value_or_of_several() -> None:
    assert (
        ESTIMATE.set_fraction("State")
        == ESTIMATE.set_fraction(["State"])
        == ESTIMATE.set_fraction(pd.Series(["State"]))
    )
    with pytest.raises(InvalidInput, match=r"must be one of the str labels .*; got 'Male'"):
        ESTIMATE.set_fraction("Male")
    with pytest.raises(InvalidInput, match="values must be a value or a list of values"):
        ESTIMATE.set_fraction({"State": 1})
    pairs = sf.simulate(sf.Uniform(PAIRS, 1), n=100).estimate
    assert pairs.set_fraction(("n", "y")) == pairs.set_fraction([("n", "y")])
    assert pairs.set_fraction((("n", "y"), ("y", "y"))) == pairs.set_fraction([("n", "y"), ("y", "y")])
    numbers = sf.simulate(sf.Uniform(sf.Domain.range(3), 1), n=100).estimate
    assert numbers.set_fraction(1) == numbers.set_fraction([1])
    assert numbers.set_fraction((0, 1)) == numbers.set_fraction([0, 1])


@pytest.mark.parametrize("epsilon", ["0.5", "ln 3", 2, "inf"])
def test_binary_is_randomized_response_where_two_values_are_alike(epsilon: Any) -> None:
    policy = sf.Uniform(sf.Domain(["a", "b"]), epsilon)
    mechanism = sf.design(policy, mechanism="binary")
    assert sf.audit(mechanism, policy).holds
    np.testing.assert_allclose(mechanism.matrix(), sf.design(policy, mechanism="rr").matrix(), rtol=1e-15)
    assert "binary" not in {row.name for row in sf.plan(policy, 100).rows}
    symmetric = sf.Pairwise(policy.domain, [[0, epsilon], [epsilon, 0]])
    assert sf.design(symmetric, mechanism="binary") == mechanism


VALUES = sf.Domain(["a", "b", "c"])


@pytest.mark.parametrize(
    ("function", "arguments", "options"),
    [
        (sf.implies, (VALUES, VALUES), {}),
        (sf.optimal, (VALUES,), {}),
        (sf.structure_of, (3,), {}),
        (sf.aggregate, (3, [0]), {}),
        (sf.design, (sf.Uniform(VALUES, 1),), {"max_seconds": "x"}),
        (sf.design, (sf.Uniform(VALUES, 1),), {"mechanism": []}),
        (sf.Prior, (VALUES, {"1/2", "1/3", "1/6"}, 1), {}),
        (sf.Blocks, (VALUES, {frozenset("ab"), frozenset("c")}, [1, 2]), {}),
    ],
)
def test_what_is_of_another_kind_is_rejected_by_name(
    function: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        function(*arguments, **options)
