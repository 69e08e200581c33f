"""The question about marginal tables: tables, names, rows, notation, documents and refusals."""

from __future__ import annotations

import itertools
import json
from typing import Any, cast

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, LimitExceeded
from sfumato.questions import cell_positions, marginal_sums, read_question

PEOPLE = sf.Domain.product(sex=sf.Domain(["f", "m"]), race=sf.Domain(["a", "b", "c"]), old=sf.Domain([False, True]))


def test_all_tables_of_an_order() -> None:
    assert sf.Marginals(1).checked(PEOPLE).tables == (("sex",), ("race",), ("old",))
    assert sf.Marginals().checked(PEOPLE).tables == (("sex", "race"), ("sex", "old"), ("race", "old"))
    assert sf.Marginals(3).checked(PEOPLE).tables == (("sex", "race", "old"),)
    assert sf.Marginals(2, attributes=["old", "sex"]).checked(PEOPLE).tables == (("sex", "old"),)


@pytest.mark.parametrize(
    "question", [sf.Marginals(1), sf.Marginals(2), sf.Marginals(3), sf.Marginals(tables=["old", ("old", "sex")])]
)
def test_rows_are_the_indicators_of_the_cells(question: sf.Marginals) -> None:
    fitted = question.checked(PEOPLE)
    matrix = fitted.matrix()
    expected = []
    for names in fitted.tables:
        factors = [PEOPLE.factors[name].labels for name in names]
        places = [list(PEOPLE.factors).index(name) for name in names]
        shown: list[tuple[Any, ...]] = [tuple(cast("Any", value)[i] for i in places) for value in PEOPLE.labels]
        expected += [[chosen == cell for chosen in shown] for cell in itertools.product(*factors)]
    np.testing.assert_array_equal(matrix, np.array(expected, float))
    np.testing.assert_array_equal(np.array(list(fitted.rows())), matrix)
    p = np.arange(len(PEOPLE)) / 66
    np.testing.assert_allclose(fitted.answers_of(p), matrix @ p)
    again = sf.Question.from_dict(json.loads(json.dumps(fitted.to_dict()))).checked(PEOPLE)
    assert again == fitted
    assert again.names == fitted.names
    assert len(fitted.names) == len(matrix)


def test_cells_are_named_by_attributes_and_labels() -> None:
    assert sf.Marginals(tables=[("old", "sex")]).checked(PEOPLE).names == (
        "old=False, sex=f",
        "old=False, sex=m",
        "old=True, sex=f",
        "old=True, sex=m",
    )


def test_sums_and_positions_agree_in_any_order_of_axes() -> None:
    shape, vector = (2, 3, 4), np.arange(24.0)
    for count in range(1, 4):
        for axes in itertools.permutations(range(3), count):
            by_position = np.bincount(cell_positions(shape, axes), weights=vector)
            np.testing.assert_array_equal(marginal_sums(vector, shape, axes), by_position)


@pytest.mark.parametrize(
    ("notation", "question"),
    [
        ("marginals", sf.Marginals(2)),
        ("marginals:1", sf.Marginals(1)),
        ("marginals:sex*race,old", sf.Marginals(tables=[("sex", "race"), "old"])),
        ("marginals: sex * old", sf.Marginals(tables=[("sex", "old")])),
    ],
)
def test_strings_state_marginals(notation: str, question: sf.Question) -> None:
    assert read_question("plan", notation, PEOPLE) == question.checked(PEOPLE)


@pytest.mark.parametrize("notation", ["marginals:", "marginals:sex*,old", "marginals:0", "marginals:sex*sex"])
def test_wrong_strings_are_refused(notation: str) -> None:
    with pytest.raises(InvalidInput, match=r"question|Marginals"):
        read_question("plan", notation, PEOPLE)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"order": 4}, "order must be at most 3"),
        ({"order": 0}, "order must be a whole number"),
        ({"attributes": ["age"]}, "an attribute must be one of 'sex', 'race', 'old'; got 'age'"),
        ({"attributes": "sex"}, "attributes must be a list of different names"),
        ({"attributes": ["sex", "sex"]}, "attributes must be a list of different names"),
        ({"attributes": ["sex"]}, "order must be at most 1"),
        ({"tables": []}, "tables must be a list of different tables"),
        ({"tables": [("sex", "race"), ("race", "sex")]}, "tables must be a list of different tables"),
        ({"tables": [("sex", 3)]}, "an attribute must be a string"),
        ({"tables": ["age"]}, "an attribute must be one of"),
        ({"tables": ["sex"], "order": 1}, "tables must be passed alone"),
    ],
)
def test_wrong_tables_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sf.Marginals(**parameters).checked(PEOPLE)


def test_domains_without_attributes_and_tables_too_large_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"be a product of attributes.*Domain\.product"):
        sf.Marginals().checked(sf.Domain.range(4))
    wide = sf.Domain.product(a=sf.Domain.range(300), b=sf.Domain.range(300))
    question = sf.Marginals(2).checked(wide)
    assert next(question.rows()).sum() == 1
    with pytest.raises(LimitExceeded, match=r"Use rows\(\)"):
        question.matrix()
    huge = sf.Domain.product(a=sf.Domain.range(2000), b=sf.Domain.range(2000))
    with pytest.raises(InvalidInput, match="at most 1,000,000 cells"):
        sf.Marginals(2).checked(huge)
