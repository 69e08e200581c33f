"""Questions as strings and in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, MissingFile
from sfumato.questions import read_question

AGES = sf.Domain([-5, 17, 18, 64, 65, 90])
SIZES = sf.Domain(["small", "medium", "large"])


@pytest.mark.parametrize(
    ("notation", "question"),
    [
        ("frequencies", sf.Frequencies()),
        ("mean", sf.Mean()),
        ("distribution", sf.Distribution()),
        ("quantiles", sf.Quantiles([0.25, 0.5, 0.75])),
        ("quantiles:0.1,0.9", sf.Quantiles([0.1, 0.9])),
        ("ranges:18-64,65-", sf.Ranges([(18, 64), (65, None)])),
        ("ranges:-17", sf.Ranges([(None, 17)])),
        ("ranges:-5-17,-5-,--5", sf.Ranges([(-5, 17), (-5, None), (None, -5)])),
        ("ranges:17.5-70.25", sf.Ranges([(17.5, 70.25)])),
    ],
)
def test_strings_state_questions(notation: str, question: sf.Question) -> None:
    assert read_question("plan", notation, AGES) == question.checked(AGES)


def test_ranges_of_labels() -> None:
    question = read_question("plan", "ranges:small-medium,large-", SIZES)
    assert question.matrix().tolist() == [[1, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("notation", "message"),
    [
        ("meen", "did you mean 'mean'"),
        ("mean:1", "one of 'frequencies'"),
        ("median:0.5", "one of 'frequencies'"),
        ("ranges", "such as 'ranges:18-64,65-'"),
        ("quantiles:half", "numbers between 0 and 1"),
        ("quantiles:2", "between 0 and 1"),
        ("ranges:18", "such as 18-64, 65- or -17"),
        ("ranges:-", "such as 18-64, 65- or -17"),
        ("ranges:2026-01-01-", "in a question file"),
        ("ranges:small-large", "number or None"),
    ],
)
def test_wrong_strings_are_refused(notation: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=r"plan|Quantiles|Ranges") as caught:
        read_question("plan", notation, AGES)
    assert message in str(caught.value)


POLICY = '[domain]\nsize = 4\n[policy]\nkind = "uniform"\nepsilon = 1\n'


@pytest.mark.parametrize(
    ("name", "content", "question"),
    [
        ("a.toml", f'question = "mean"\n{POLICY}', sf.Mean()),
        ("a.toml", f'question = "ranges:1-2"\n{POLICY}', sf.Ranges([(1, 2)])),
        ("a.toml", f'{POLICY}[question]\nquestion = "quantiles"\nlevels = [0.5]\n', sf.Quantiles([0.5])),
        ("a.toml", 'question = "mean"\nvalues = [1, 2, 3, 5]\n', sf.Mean([1, 2, 3, 5])),
        ("a.json", json.dumps(sf.Ranges({"low": (None, 1)}).to_dict()), sf.Ranges({"low": (None, 1)})),
        ("a.toml", POLICY, None),
    ],
)
def test_files_state_questions(name: str, content: str, question: sf.Question | None, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    loaded, domain = sf.load_question(tmp_path / name), sf.Domain.range(4)
    assert (None if loaded is None else loaded.checked(domain)) == (question and question.checked(domain))
    if "policy" in content:
        assert sf.load_policy(tmp_path / name) == sf.Uniform(domain, 1)


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="Check the path of the question file"):
        sf.load_question(tmp_path / "missing.toml")
    for content in ("question = ", 'question = "median"', "levels = [0.5]", f"question = 3\n{POLICY}"):
        (tmp_path / "wrong.toml").write_text(content)
        with pytest.raises(InvalidInput):
            sf.load_question(tmp_path / "wrong.toml")
