"""Inputs with one entry per value: labels align them, wherever they come in, and no other order is believed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.auditing.prior_sets import PriorMixtures
from sfumato.compiler import bounds
from sfumato.domain.labelled import align, align_table, unaligned_table
from sfumato.errors import InvalidInput
from sfumato.estimation import information_privacy
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.composed_subsets.mechanism import ComposedSubsets
from sfumato.mechanisms.parts import BlockMechanism
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.mechanisms.table.mechanism import TableMechanism

#: Sorted, while tables come sorted by frequency.
DOMAIN = sf.Domain(["?", "Private", "State"])
SHARES = [0.1, 0.6, 0.3]
SHUFFLED = ["Private", "State", "?"]
SERIES = pd.Series({"Private": 0.6, "State": 0.3, "?": 0.1})

LABELLED: dict[str, Any] = {
    "mapping": {"Private": 0.6, "State": 0.3, "?": 0.1},
    "series": SERIES,
    "value_counts": pd.Series(["Private"] * 6 + ["?"] + ["State"] * 3).value_counts(normalize=True),
    "categorical index": SERIES.set_axis(pd.CategoricalIndex(SHUFFLED, categories=list(DOMAIN))),
    "numpy labels": SERIES.set_axis(pd.Index([np.str_(label) for label in SHUFFLED], dtype=object)),
    "one column": SERIES.to_frame(),
    "two columns": SERIES.rename_axis("workclass").reset_index(name="proportion"),
    "polars": pl.DataFrame({"workclass": SHUFFLED, "proportion": [0.6, 0.3, 0.1]}),
    "polars value_counts": pl.Series("w", ["Private"] * 6 + ["?"] + ["State"] * 3).value_counts(normalize=True),
    "arrow table": pa.table({"workclass": SHUFFLED, "proportion": [0.6, 0.3, 0.1]}),
    "arrow dictionary": pa.table({"w": pa.array(SHUFFLED).dictionary_encode(), "p": [0.6, 0.3, 0.1]}),
    "arrow batch": pa.record_batch({"workclass": SHUFFLED, "proportion": [0.6, 0.3, 0.1]}),
    "arrow structs": pa.array([{"v": v, "p": p} for v, p in zip(SHUFFLED, [0.6, 0.3, 0.1], strict=True)]),
    "arrow struct": pa.scalar({"Private": 0.6, "State": 0.3, "?": 0.1}),
    "arrow map": pa.scalar([("Private", 0.6), ("State", 0.3), ("?", 0.1)], type=pa.map_(pa.string(), pa.float64())),
}
UNLABELLED: dict[str, Any] = {
    "list": SHARES,
    "tuple": tuple(SHARES),
    "numpy": np.array(SHARES),
    "series without an index": pd.Series(SHARES),
    "polars": pl.Series(SHARES),
    "arrow": pa.array(SHARES),
    "arrow chunks": pa.chunked_array([SHARES]),
}


@pytest.mark.parametrize("form", LABELLED)
def test_a_prior_is_aligned_by_its_labels(form: str) -> None:
    assert sf.Prior(DOMAIN, LABELLED[form], 1) == sf.Prior(DOMAIN, SHARES, 1)


@pytest.mark.parametrize("form", UNLABELLED)
def test_what_has_no_labels_is_in_domain_order(form: str) -> None:
    assert sf.Prior(DOMAIN, UNLABELLED[form], 1) == sf.Prior(DOMAIN, SHARES, 1)


def test_entries_stay_exact() -> None:
    texts = pd.Series({"Private": "1/3", "State": "1/3", "?": "1/3"})
    assert sf.Prior(DOMAIN, texts, 1).prior == (Fraction(1, 3),) * 3
    short = SERIES.astype("float32")
    assert sf.Prior(DOMAIN, short, 1).prior == (Fraction(1, 10), Fraction(3, 5), Fraction(3, 10))
    exact = pd.Series({"State": Fraction(1, 7), "?": Fraction(2, 7), "Private": Fraction(4, 7)})
    assert sf.Prior(DOMAIN, exact, 1).prior == (Fraction(2, 7), Fraction(4, 7), Fraction(1, 7))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            SERIES.drop("?"),
            r"have an entry for every value of the domain; got no entry for '\?'\. To add zeros, call "
            r"reindex\(.*fill_value=0\)",
        ),
        ({"Private": 1}, r"have an entry for every value of the domain; got no entry for '\?', 'State'"),
        (pd.concat([SERIES, SERIES[:1]]), r"name each value once; got 'Private' twice"),
        (pd.concat([SERIES, pd.Series({"Self": 0.0})]), r"each label of prior must be one of .*; got 'Self'"),
        (SERIES.rename({"?": np.nan}), r"each label of prior must be one of .*; got nan"),
        (SERIES.rename({"?": 0}), r"each label of prior must be one of .*; got 0"),
        (SERIES.sort_index().set_axis([0, 1, 2]), r"each label of prior must be one of .*; got 0"),
        (SERIES.sort_index().reset_index(drop=True).iloc[[2, 1, 0]], r"each label of prior must be one of .*; got 2"),
        (pl.DataFrame({"?": [0.1], "Private": [0.6], "State": [0.3]}), "have two columns, values and numbers"),
        (pd.DataFrame(np.eye(3)), "have two columns, values and numbers"),
        (pd.DataFrame(np.eye(3), index=SHUFFLED), "be a Series or a frame with one column"),
        (pl.DataFrame({"v": [*SHUFFLED, "?"], "p": [0.6, 0.3, 0, 0.1]}), r"name each value once; got '\?' twice"),
        (pa.table({"v": SHUFFLED[:2], "p": [0.6, 0.4]}), r"have an entry for every value .*'\?'"),
    ],
)  # fmt: skip
def test_missing_unknown_and_repeated_labels_are_rejected_by_name(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sf.Prior(DOMAIN, given, 1)


def test_the_default_index_of_pandas_is_a_label_where_labels_are_numbers() -> None:
    unlabelled = pd.Series(SHARES)
    assert sf.Prior(sf.Domain.range(3), unlabelled, 1).prior == sf.Prior(DOMAIN, SHARES, 1).prior
    assert sf.Prior(sf.Domain([2, 1, 0]), unlabelled, 1).prior[0] == Fraction(3, 10)
    assert sf.Prior(sf.Domain([2.0, 1.0, 0.0]), unlabelled, 1).prior[0] == Fraction(3, 10)
    with pytest.raises(InvalidInput, match="each label of prior must be one of the int labels 1, 2, 3; got 0"):
        sf.Prior(sf.Domain([1, 2, 3]), unlabelled, 1)
    assert sf.Prior(sf.Domain([False, True]), pd.Series([0.1, 0.9]), 1).prior[0] == Fraction(1, 10)
    named = pd.Series(SHARES, index=pd.RangeIndex(3, name="workclass"))
    with pytest.raises(InvalidInput, match="each label of prior"):
        sf.Prior(DOMAIN, named, 1)


# -- products, whose labels are tuples ---------------------------------------------------------------------

PAIRS = sf.Domain.product(S=["n", "y"], U=["y", "n"])  # both factors have the same labels, in different orders
PEOPLE = pd.DataFrame({"S": list("yyyyynnnnn"), "U": list("yynnnynnnn")})
JOINT = [[1, 4], [2, 3]]


@pytest.mark.parametrize("levels", [["S", "U"], ["U", "S"]])
def test_levels_of_an_index_are_matched_with_factors_by_name(levels: list[str]) -> None:
    flat = [Fraction(count, 10) for row in JOINT for count in row]
    shares = PEOPLE.value_counts(levels, normalize=True)
    forms: list[Any] = [shares, shares.reset_index(), pl.from_pandas(shares.reset_index())]
    for given in forms:
        assert list(sf.Prior(PAIRS, given, 1).prior) == flat
    assert sf.Prior(PAIRS, shares.rename_axis([None, None]), 1).prior[0] == flat[0 if levels[0] == "S" else 3]
    with pytest.raises(InvalidInput, match="prior must have an index with the levels 'S', 'U'"):
        sf.Prior(PAIRS, shares.rename_axis([levels[0], "x"]), 1)


def test_cells_of_a_grid_are_labelled_by_row_and_column() -> None:
    grid = sf.Domain.grid(latitude=(0, 1), longitude=(0, 1), rows=1, columns=2)
    shares = pd.Series([0.75, 0.25], index=pd.MultiIndex.from_tuples([(0, 1), (0, 0)], names=["row", "column"]))
    for given in (shares, shares.swaplevel(), {(0, 1): 0.75, (0, 0): 0.25}, shares.reset_index(name="p")):
        assert sf.Prior(grid, given, 1).prior == (Fraction(1, 4), Fraction(3, 4))


# -- matrices ----------------------------------------------------------------------------------------------

MATRIX = pd.DataFrame([[0, 1, 2], [3, 0, 4], [5, 6, 0]], index=SHUFFLED, columns=SHUFFLED)
ORDERED = MATRIX.loc[list(DOMAIN), list(DOMAIN)].to_numpy().tolist()


@pytest.mark.parametrize(
    "given",
    [
        MATRIX,
        MATRIX.T.sort_index().T,
        MATRIX.astype(str),
        MATRIX.T.to_dict(),
        pl.from_pandas(MATRIX.reset_index()),
        pa.Table.from_pandas(MATRIX.reset_index()),
        [dict(MATRIX.loc[label]) for label in DOMAIN],
        pd.DataFrame(ORDERED),
        ORDERED,
    ],
    ids=["frame", "axes in two orders", "texts", "mappings", "polars", "arrow", "rows", "no labels", "list"],
)
def test_a_matrix_of_levels_is_aligned_on_both_axes(given: Any) -> None:
    policy = sf.Pairwise(DOMAIN, given)
    assert [[float(policy.epsilon_between(x, y)) for y in range(3)] for x in range(3)] == ORDERED
    symmetric = np.array(ORDERED) + np.array(ORDERED).T
    distance = pd.DataFrame(symmetric, index=list(DOMAIN), columns=list(DOMAIN)).loc[SHUFFLED, SHUFFLED]
    assert sf.Metric(DOMAIN, distance, 1) == sf.Metric(DOMAIN, symmetric.tolist(), 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (MATRIX.reset_index(drop=True), r"have labels for its rows \(with set_index\) too, or for neither axis"),
        (MATRIX.set_axis(range(3), axis=1), "have labels for its columns too, or for neither axis"),
        (
            MATRIX.drop(columns="?"),
            r"matrix, columns must have an entry for every value of the domain; got no entry for '\?'",
        ),
        (
            MATRIX.drop(index="?"),
            r"matrix, rows must have an entry for every value of the domain; got no entry for '\?'",
        ),
        (pd.concat([MATRIX, MATRIX[:1]]), r"matrix, rows must name each value once; got 'Private' twice"),
        (MATRIX.rename({"?": "x"}), "each label of matrix, rows must be one of .*; got 'x'"),
        (pl.from_pandas(MATRIX), "have row labels in the first column, followed by one column per value"),
        ({"?": {"?": 0}, "Private": {}, "State": {}}, r"matrix\['\?'\] must have an entry for every value"),
    ],
)
def test_a_matrix_with_wrong_labels_is_rejected(given: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sf.Pairwise(DOMAIN, given)


def test_mappings_of_pairs_are_still_sparse() -> None:
    policy = sf.Pairwise(DOMAIN, {("?", "State"): 2})
    assert (float(policy.epsilon_between(0, 2)), policy.epsilon_between(2, 0).is_infinite) == (2, True)


# -- tables of a secret and the rest -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        pd.crosstab(PEOPLE.S, PEOPLE.U),
        pd.crosstab(PEOPLE.S, PEOPLE.U).loc[["y", "n"], ["y", "n"]],
        PEOPLE.groupby(["S", "U"]).size(),
        PEOPLE.groupby(["U", "S"]).size(),
        PEOPLE.groupby(["S", "U"]).size().to_dict(),
        {"y": {"y": 2, "n": 3}, "n": {"n": 4, "y": 1}},
        pl.DataFrame({"S": ["y", "n"], "n": [3, 4], "y": [2, 1]}),
        JOINT,
    ],
    ids=["crosstab", "another order", "series", "levels exchanged", "cells", "mappings", "polars", "list"],
)
def test_tables_of_a_secret_are_aligned(given: Any) -> None:
    policy = sf.Secret(PAIRS, "S", 1, sf.ChiSquare(given))
    assert policy == sf.Secret(PAIRS, "S", 1, sf.ChiSquare(JOINT))
    shares = (given / 10) if isinstance(given, (pd.Series, pd.DataFrame)) else _tenths(given)
    for kind in (sf.Known, sf.AtLeast):
        assert sf.Secret(PAIRS, "S", 1, kind(shares)) == sf.Secret(PAIRS, "S", 1, kind(np.array(JOINT) / 10))


def _tenths(given: Any) -> Any:
    if isinstance(given, pl.DataFrame):
        return pl.DataFrame({"S": ["y", "n"], "n": [0.3, 0.4], "y": [0.2, 0.1]})
    if isinstance(given, dict):
        return {key: _tenths(value) for key, value in given.items()}
    return [_tenths(value) for value in given] if isinstance(given, list) else given / 10


@pytest.mark.parametrize("kind", [sf.Known, sf.ChiSquare])
def test_a_table_keeps_its_labels_from_one_policy_to_the_next(kind: Any) -> None:
    table = pd.crosstab(PEOPLE.S, PEOPLE.U)
    given = kind(table / 10 if kind is sf.Known else table)
    first = sf.Secret(PAIRS, "S", 1, given)
    turned = sf.Domain.product(S=["y", "n"], U=["n", "y"])
    for distributions in (given, first.distributions):
        second = sf.Secret(turned, "S", 1, distributions)
        flat = second.distributions.document()
        rows = flat["known"] if kind is sf.Known else flat["chi-square"]["counts"]
        assert rows == ([["3/10", "1/5"], ["2/5", "1/10"]] if kind is sf.Known else [[3, 2], [4, 1]])


def test_a_table_with_its_axes_exchanged_is_rejected() -> None:
    exchanged = pd.crosstab(PEOPLE.U, PEOPLE.S)
    with pytest.raises(InvalidInput, match="counts must have 'S' in its rows and 'U' in its columns"):
        sf.Secret(PAIRS, "S", 1, sf.ChiSquare(exchanged))
    assert sf.Secret(PAIRS, "U", 1, sf.ChiSquare(exchanged)) == sf.Secret(
        PAIRS, "U", 1, sf.ChiSquare(np.array(JOINT).T.tolist())
    )


def test_a_cell_that_was_never_counted_is_named() -> None:
    counts = PEOPLE[:5].groupby(["S", "U"]).size()
    with pytest.raises(
        InvalidInput, match=r"ChiSquare: counts must have every cell of the table; got .*no entry for \('n', 'y'\)"
    ):
        sf.Secret(PAIRS, "S", 1, sf.ChiSquare(pd.concat([counts, PEOPLE[6:].groupby(["S", "U"]).size()]).to_dict()))


def test_a_confidence_set_compares_no_labelled_table_by_position() -> None:
    confidence = sf.Secret(PAIRS, "S", 1, sf.ChiSquare(JOINT)).distributions
    assert isinstance(confidence, sf.ChiSquare)
    assert confidence.holds((np.array(JOINT) / 10).tolist())
    with pytest.raises(InvalidInput, match="joint must be rows of numbers in the order of the counts"):
        confidence.holds(pd.crosstab(PEOPLE.S, PEOPLE.U) / 10)


def test_several_other_factors_make_the_columns_of_a_table() -> None:
    domain = sf.Domain.product(A=["a", "b"], S=["n", "y"], B=["c", "d"])
    counts = pd.Series(range(1, 9), index=pd.MultiIndex.from_product([["a", "b"], ["n", "y"], ["c", "d"]]))
    named = counts.rename_axis(["A", "S", "B"])
    table = [[1, 2, 5, 6], [3, 4, 7, 8]]
    expected = sf.Secret(domain, "S", 1, sf.ChiSquare(table))
    for given in (named, named.reorder_levels(["B", "S", "A"]), named.unstack(["A", "B"]), named.unstack(["B", "A"])):
        assert sf.Secret(domain, "S", 1, sf.ChiSquare(given)) == expected


# -- blocks and sensitive values ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "blocks",
    [
        pd.Series({"State": "paid", "?": "other", "Private": "paid"}),
        {"State": "paid", "?": "other", "Private": "paid"},
        {"paid": ["Private", "State"], "other": ["?"]},
        {"State": (1, 2), "?": (0, 2), "Private": (1, 2)},
        pl.DataFrame({"w": ["State", "?", "Private"], "block": ["paid", "other", "paid"]}),
    ],
    ids=["series", "mapping", "lists by name", "tuples", "polars"],
)
def test_blocks_are_aligned_by_value(blocks: Any) -> None:
    policy = sf.Blocks(DOMAIN, blocks, 1)
    assert policy == sf.Blocks(DOMAIN, [["?"], ["Private", "State"]], 1)


def test_a_tuple_under_a_value_is_the_name_of_a_block() -> None:
    policy = sf.Blocks(sf.Domain.range(4), {3: (0, 1), 2: (0, 1), 1: (2, 3), 0: (2, 3)}, 1)
    assert policy.block_of.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_value_without_a_block_is_not_one_by_itself(missing: Any) -> None:
    with pytest.raises(InvalidInput, match=r"the block of '\?' must be a label"):
        sf.Blocks(DOMAIN, pd.Series({"State": "paid", "?": missing, "Private": "paid"}), 1)
    with pytest.raises(
        InvalidInput, match=r"blocks must have an entry for every value of the domain; got no entry for '\?'"
    ):
        sf.Blocks(DOMAIN, pd.Series({"State": "paid", "Private": "paid"}), 1)


def test_sensitive_values_may_be_flagged() -> None:
    expected = sf.HighLow(DOMAIN, ["?", "State"], 1)
    flags = {"State": True, "Private": False, "?": True}
    assert sf.HighLow(DOMAIN, flags, 1) == expected
    assert sf.HighLow(DOMAIN, pd.Series(flags), 1) == expected
    assert sf.HighLow(DOMAIN, pd.Series(["State", "?"], index=[7, 3]), 1) == expected
    with pytest.raises(InvalidInput, match="sensitive must have an entry for every value of the domain"):
        sf.HighLow(DOMAIN, {"State": True}, 1)
    with pytest.raises(InvalidInput, match="sensitive must be a list of values; got 'State'"):
        sf.HighLow(DOMAIN, "State", 1)


# -- everything else that takes a number per value ---------------------------------------------------------

UNIFORM = sf.Uniform(DOMAIN, 2)
MECHANISM = RandomizedResponse(DOMAIN, 2)
ESTIMATE = sf.simulate(MECHANISM, n=2_000, truth=SHARES, seed=3).estimate
COUNTS = sf.aggregate(MECHANISM, sf.privatize(MECHANISM, ["State", "?", "?"], sf.InsecureSeeded(1)))
LOSSES = pd.DataFrame({"first": [0.0, 1.0, 5.0], "second": [2.0, 0.0, 1.0]}, index=list(DOMAIN))
LAW = pd.DataFrame([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]], index=list(DOMAIN))
SMALL_PRIOR = sf.Prior(DOMAIN, SHARES, 1)

#: Each is called with shares in domain order, and with the same under labels in another order.
TAKES_SHARES: dict[str, Callable[[Any], Any]] = {
    "plan": lambda p: sf.plan(UNIFORM, 100, prior=p).best.risk,
    "design": lambda p: sf.design(SMALL_PRIOR, 100, prior=p).hash,
    "optimal": lambda p: sf.optimal(SMALL_PRIOR, "mutual-information", prior=p, max_seconds=5).value,
    "risk": lambda p: UnevenTable.risk(1, p),
    "reports_for": lambda p: bounds.reports_for(UnevenTable, 0.1, p),
    "simulate": lambda p: sf.simulate(MECHANISM, n=100, truth=p).truth,
    "plot_estimate": lambda p: ESTIMATE.plot(truth=p).axes[0].lines[-1].get_ydata(),
    "estimate": lambda p: sf.estimate(MECHANISM, COUNTS, "mmse", prior=p).frequencies,
    "linear": lambda p: ESTIMATE.linear(p).value,
    "PriorMixtures": lambda p: PriorMixtures(DOMAIN, [p]).priors,
    "audit_priors": lambda p: sf.audit_priors(MECHANISM, [p], 2).epsilon,
    "PriorBox": lambda p: sf.PriorBox(DOMAIN, p, p).low,
    "PriorBox.around": lambda p: sf.PriorBox.around(DOMAIN, p, 0).low,
    "learn_prior": lambda p: sf.learn_prior(ESTIMATE, towards=p).prior,
    "mmse": lambda p: information_privacy.mmse(MECHANISM, p),
    "estimate_error": lambda p: information_privacy.estimate_error(MECHANISM, SHARES, p).bias,
    "estimate_error, values": lambda p: information_privacy.estimate_error(MECHANISM, SHARES, SHARES, p).mean_square,
    "posterior": lambda p: MECHANISM.channel().posterior(p, 0),
    "mutual_information": lambda p: MECHANISM.channel().mutual_information(p),
    "allows": lambda p: sf.Prior(DOMAIN, ["1/2", "1/4", "1/4"], "1.2").worst(p),
    "worst": lambda p: sf.HighLow(DOMAIN, ["State"], 1).worst(p),
    "SquaredError": lambda p: sf.optimal(SMALL_PRIOR, sf.SquaredError(p), max_seconds=5).value,
}  # fmt: skip

UnevenTable: Mechanism = TableMechanism.from_matrix(DOMAIN, [[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]])


@pytest.mark.slow
@pytest.mark.parametrize("name", TAKES_SHARES)
def test_every_number_per_value_is_aligned(name: str) -> None:
    take = TAKES_SHARES[name]
    expected = take(SHARES)
    for form in ("mapping", "series", "polars", "arrow table"):
        np.testing.assert_equal(take(LABELLED[form]), expected)
    with pytest.raises(InvalidInput, match="must have an entry for every value of the domain"):
        take(SERIES.drop("State"))
    with pytest.raises(InvalidInput, match="'Self'"):
        take({**LABELLED["mapping"], "Self": 0.0})


def test_mappings_may_leave_out_zeros_where_that_is_said() -> None:
    assert sf.simulate(MECHANISM, n=10, truth={"State": 1}).truth.tolist() == [0, 0, 1]
    assert ESTIMATE.linear({"State": 1}) == ESTIMATE.linear([0, 0, 1])
    assert sf.SquaredError({"State": 1}).checked(DOMAIN).numbers.tolist() == [0, 0, 1]


def test_robust_information_is_asked_for_by_label() -> None:
    policy = sf.Secret(PAIRS, "S", 1, sf.ChiSquare(JOINT))
    mechanism = sf.design(policy, mechanism="secret-rr")
    shares = PEOPLE.value_counts(["U", "S"], normalize=True)
    given = sf.robust_information(mechanism, policy, shares).at_given
    assert given == sf.robust_information(mechanism, policy, np.array(JOINT).ravel() / 10).at_given
    assert policy.cut(shares) == policy.cut((np.array(JOINT).ravel() / 10).tolist())


def test_tables_with_a_row_per_value_are_aligned() -> None:
    losses, law = LOSSES.loc[SHUFFLED], LAW.loc[SHUFFLED]
    assert sf.ExpectedLoss(losses).checked(DOMAIN).matrix.tolist() == LOSSES.to_numpy().tolist()
    assert sf.ExpectedLoss(losses.T.to_dict("list")).checked(DOMAIN).matrix.tolist() == LOSSES.to_numpy().tolist()
    assert sf.Channel(DOMAIN, law) == sf.Channel(DOMAIN, LAW.to_numpy().tolist())
    assert TableMechanism.from_matrix(DOMAIN, law) == TableMechanism.from_matrix(DOMAIN, LAW.to_numpy())
    weights = pd.DataFrame(UnevenTable.weights, index=list(DOMAIN)).loc[SHUFFLED]  # type: ignore[attr-defined]
    assert TableMechanism(DOMAIN, weights) == UnevenTable
    with pytest.raises(
        InvalidInput,
        match=r"ExpectedLoss: matrix, rows must have an entry for every value of the domain; got no entry for '\?'",
    ):
        sf.design(UNIFORM, utility=sf.ExpectedLoss(LOSSES.drop("?")))
    with pytest.raises(InvalidInput, match="matrix must be rows of numbers in the order of the outputs"):
        MECHANISM.channel().then(pd.DataFrame(np.eye(3)))


def test_mechanisms_with_blocks_are_aligned() -> None:
    given = pd.Series({"State": 1, "?": 0, "Private": 1})
    parts = [RandomizedResponse(sf.Domain.range(1), "inf"), RandomizedResponse(sf.Domain.range(2), 1)]
    assert BlockMechanism(DOMAIN, given, parts) == BlockMechanism(DOMAIN, [0, 1, 1], parts)
    assert ComposedSubsets(DOMAIN, given, 1, 2) == ComposedSubsets(DOMAIN, [0, 1, 1], 1, 2)
    sizes = pd.Series({"small": 2, "large": 5})
    totals = pd.Series({"large": 0.9, "small": 0.1})
    assert bounds.blocks_least_risk(sizes, 1, totals) == bounds.blocks_least_risk([2, 5], 1, [0.1, 0.9])


def test_weights_of_groups_and_questions_may_be_a_series() -> None:
    grouped = sf.estimate_groups(MECHANISM, {"north": COUNTS, "south": COUNTS})
    weights = pd.Series({"south": 3, "north": 1})
    assert grouped.weighted(weights) == grouped.weighted({"north": 1, "south": 3})
    survey = sf.Questionnaire({"a": DOMAIN, "b": DOMAIN}, 1)
    assert survey.split(pd.Series({"b": 3, "a": 1})) == survey.split({"a": 1, "b": 3})
    with pytest.raises(InvalidInput, match="weights must name each label once; got 'a' twice"):
        survey.split(pd.Series([1, 2, 3], index=["a", "a", "b"]))


def test_users_with_priors_of_their_own_are_matched_by_label() -> None:
    priors = pd.Series({"ann": 0.1, "bob": 0.9, "cy": 0.5})
    users = sf.LocalPriors(priors, 1, prior_source="public")
    values = pd.Series({"cy": 0, "bob": 1, "ann": 0})
    stream = [users.privatize(given, sf.InsecureSeeded(4)).tolist() for given in (values, [0, 1, 0])]
    assert stream[0] == stream[1]
    reports = users.privatize(values, sf.InsecureSeeded(4))
    assert reports.to_dict() == dict(zip(priors.index, stream[0], strict=True))
    assert reports.name == "report"
    by_place = users.privatize(pd.Series([0, 1, 0]), sf.InsecureSeeded(4))
    assert by_place.to_dict() == dict(enumerate(stream[0]))
    assert isinstance(users.privatize([0, 1, 0]), np.ndarray)
    assert users.posterior_means(reports[::-1]).tolist() == users.posterior_means(stream[0]).tolist()
    assert users.error_if(priors[::-1]) == users.error_if([0.1, 0.9, 0.5])
    with pytest.raises(InvalidInput, match="values must have one entry per user; got no entry for 'bob'"):
        users.privatize(values.drop("bob"))
    unnamed = sf.LocalPriors(pd.Series([0.1, 0.9, 0.5]), 1, prior_source="public")
    assert unnamed.error_if(pd.Series([0.5, 0.9, 0.1], index=[2, 1, 0])) == unnamed.error_if([0.1, 0.9, 0.5])


def test_labels_of_other_libraries_are_not_ignored() -> None:
    class Series:
        """As dask, modin and others have: values under an index, and an array of them for numpy."""

        index = SHUFFLED

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.array([0.6, 0.3, 0.1], dtype)

        def __iter__(self) -> Any:
            return iter([0.6, 0.3, 0.1])

        def __len__(self) -> int:
            return 3

    given: Any = Series()
    for take in (lambda: sf.Prior(DOMAIN, given, 1), lambda: sf.plan(UNIFORM, 10, prior=given)):
        with pytest.raises(
            InvalidInput, match="be a pandas, polars or Arrow object, a mapping, or a list in domain order"
        ):
            take()


def test_policy_documents_may_name_values() -> None:
    named = {"domain": DOMAIN.to_dict(), "policy": {"kind": "prior", "prior": LABELLED["mapping"], "epsilon": "1"}}
    assert sf.policy_from_dict(named) == SMALL_PRIOR


def test_helpers_leave_alone_what_has_no_labels() -> None:
    for given in (SHARES, np.eye(3), "abc", 7, None):
        assert align(DOMAIN, given, "f", "p") is given
        assert align_table(DOMAIN, DOMAIN, given, "f", "p") is given
        assert unaligned_table(given, "f", "p") is given
