"""Questions: their matrices, names, documents and refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.questions import read_question

AGES = sf.Domain([18, 30, 45, 60])
SIZES = sf.Domain(["small", "medium", "large"])
PAY = sf.Domain.numbers(0, 400, bins=4, missing="unknown")


@pytest.mark.parametrize(
    ("question", "domain", "rows"),
    [
        (sf.Frequencies(), SIZES, np.eye(3)),
        (sf.Mean(), AGES, [[18, 30, 45, 60]]),
        (sf.Mean({"large": 3, "small": 1, "medium": 2}), SIZES, [[1, 2, 3]]),
        (sf.Mean(pd.Series([3.0, 1.0, 2.0], index=["large", "small", "medium"])), SIZES, [[1, 2, 3]]),
        (sf.Mean(), sf.Domain.numbers(edges=[0, 1, 4]), [[0.5, 2.5]]),
        (sf.Mean({**dict(zip(PAY, [50, 150, 250, 350], strict=False)), "unknown": 0}), PAY, [[50, 150, 250, 350, 0]]),
        (sf.Distribution(), SIZES, [[1, 0, 0], [1, 1, 0]]),
        (sf.Distribution(), PAY, np.tri(4, 5)),
        (sf.Ranges([(100, 300), (200, None), (None, 100)]), PAY, [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0], [1, 0, 0, 0, 0]]),
        (sf.Ranges([(18, None)]), sf.Domain.range(17, 20, missing="unknown"), [[0, 1, 1, 0]]),
        (sf.Ranges([("medium", None)]), sf.Domain(SIZES, missing="unknown"), [[0, 1, 1, 0]]),
        (sf.Ranges([(18, 45), (None, 29), (46, None)]), AGES, [[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]]),
        (sf.Ranges({"not small": ("medium", "large")}), SIZES, [[0, 1, 1]]),
        (sf.Workload([[1, 0, -1]]), SIZES, [[1, 0, -1]]),
        (sf.Workload({"ends": {"large": 1, "small": 1}}), SIZES, [[1, 0, 1]]),
        (
            sf.Workload(pd.DataFrame({"large": [1, 2], "small": [3, 4]}, index=["a", "b"])),
            SIZES,
            [[3, 0, 1], [4, 0, 2]],
        ),
    ],
)
def test_matrix_states_the_answers(question: sf.Question, domain: sf.Domain, rows: object) -> None:
    fitted = question.checked(domain)
    np.testing.assert_array_equal(fitted.matrix(), rows)
    assert len(fitted.names) == len(fitted.matrix())
    again = sf.Question.from_dict(json.loads(json.dumps(fitted.to_dict()))).checked(domain)
    assert again == fitted
    assert again.names == fitted.names
    assert hash(again) == hash(fitted)
    np.testing.assert_array_equal(again.matrix(), rows)


def test_prefixes_of_bins_are_named_by_their_ends() -> None:
    assert sf.Distribution().checked(PAY).names == ("< 100", "< 200", "< 300", "≤ 400")
    right = sf.Domain.numbers(0, 4, bins=2, closed="right")
    assert sf.Distribution().checked(right).names == ("≤ 2",)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (sf.Mean(), "Mean: values must be given, because answers may be missing; got None. The mean over the people"),
        (sf.Quantiles(), "Quantiles: the domain must have no value for missing answers"),
        (
            sf.Ranges([(50, 100)]),
            "Domain.between: a bound must be an edge of a bin; got 50. The nearest edges are 0 and",
        ),
    ],
)
def test_questions_about_missing_values_are_refused(question: sf.Question, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        question.checked(PAY)
    assert str(caught.value).startswith(message)


def test_quantiles_follow_the_prior() -> None:
    question = sf.Quantiles([0.5]).checked(sf.Domain.range(10))
    weights = question.matrix().max(axis=1) ** 2
    assert int(weights.argmax()) == 4  # half of the people have a value up to 4
    prior = np.array([0.5, *np.full(9, 0.5 / 9)])
    weights = question.matrix(prior).max(axis=1) ** 2
    assert int(weights.argmax()) == 0
    assert weights.min() == pytest.approx(0.01)  # far prefixes keep a small weight
    assert sf.Question.from_dict(question.to_dict()).checked(sf.Domain.range(10)) == question


def test_names_are_read() -> None:
    assert isinstance(read_question("plan", None, AGES), sf.Frequencies)
    assert isinstance(read_question("plan", "mean", AGES), sf.Mean)
    with pytest.raises(InvalidInput, match="one of 'frequencies', 'mean', 'distribution', 'quantiles'"):
        read_question("plan", "medians", AGES)


@pytest.mark.parametrize(("word", "notation"), [("median", "quantiles:0.5"), ("CDF", "distribution")])
def test_a_synonym_names_the_string_to_write(word: str, notation: str) -> None:
    with pytest.raises(InvalidInput, match=f"did you mean '{notation}'"):
        read_question("plan", word, AGES)
    read_question("plan", notation, AGES)


def test_ranges_without_a_limit_are_named_by_the_other_one() -> None:
    question = sf.Ranges([(None, 18), (30, 45), (60, None), (None, None)])
    assert question.checked(AGES).names == ("up to 18", "30 to 45", "from 60", "all values")


def test_levels_of_quantiles_are_a_list() -> None:
    levels: Any
    for levels in (0.5, [50], []):
        with pytest.raises(InvalidInput, match="a list of numbers between 0 and 1, such as"):
            sf.Quantiles(levels)


def refusal(question: sf.Question, domain: sf.Domain) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_question("plan", question, domain)
    return str(caught.value)


def test_wrong_questions_are_refused() -> None:
    assert "Pass Mean(values) with one number per value" in refusal(sf.Mean(), SIZES)
    assert "differ" in refusal(sf.Mean([1, 1, 1]), SIZES)
    assert "one per value" in refusal(sf.Mean([1, 2]), SIZES)
    assert "finite" in refusal(sf.Mean([1, 2, float("nan")]), SIZES)
    assert "increasing" in refusal(sf.Distribution(), sf.Domain([3, 1, 2]))
    assert "one dimension" in refusal(sf.Distribution(), sf.Domain.product(a=AGES, b=SIZES))
    assert "at least one value" in refusal(sf.Ranges([(31, 44)]), AGES)
    assert "number or None" in refusal(sf.Ranges([("18", 45)]), AGES)
    assert "leave out a value" in refusal(sf.Ranges([(None, None), (18, 200)]), sf.Domain([18, 20]))
    assert "different weights" in refusal(sf.Workload([[2, 2, 2]]), SIZES)
    wrong: Any
    for wrong in ([5], [], "ab", [(1, 2, 3)]):
        with pytest.raises(InvalidInput, match="pairs"):
            sf.Ranges(wrong)
    for wrong in ([], [0.0], [1.5], ["a"], 0.5):
        with pytest.raises(InvalidInput, match="between 0 and 1"):
            sf.Quantiles(wrong)
    with pytest.raises(InvalidInput, match="2 names"):
        sf.Workload([[1, 0], [0, 1]], names=["one"])
    for wrong in (5, "a"):
        with pytest.raises(InvalidInput, match="be names, one per row"):
            sf.Workload([[1, 0]], names=wrong)
    with pytest.raises(InvalidInput, match="fitted to a domain"):
        sf.Mean().matrix()
    for wrong in ({"question": "median"}, {}, [], {"question": "mean", "number": 1}):
        with pytest.raises(InvalidInput):
            sf.Question.from_dict(wrong)
