"""The published laws, verdicts and documents are those of the library: clients in other languages compare with them."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato._core import canonical_json
from sfumato.mechanisms.registry import mechanism_classes
from support import ROOT

FOLDER = ROOT / "vectors"
NAMES = sorted(mechanism_classes())


def published(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def test_every_mechanism_has_published_laws() -> None:
    assert sorted(path.stem for path in (FOLDER / "laws").glob("*.json")) == NAMES


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_laws_are_those_of_the_mechanism(name: str) -> None:
    for vector in published(f"laws/{name}.json"):
        mechanism = sf.mechanism_from_spec(vector["spec"])
        assert (mechanism.name, mechanism.hash) == (name, vector["hash"])
        size = len(mechanism.domain)
        assert Fraction(vector["greatest"]) / size == mechanism.guess_probability()
        columns = [column for column in zip(*mechanism.channel().rows, strict=True) if any(column)]
        ratios = [math.inf if text == "inf" else Fraction(text) for text in vector["ratios"]]
        for x, other in itertools.product(range(size), repeat=2):
            pairs = [(column[x], column[other]) for column in columns if column[x]]
            greatest = max(math.inf if not low else high / low for high, low in pairs)
            assert ratios[vector["pairs"][x][other]] == greatest, (vector["spec"], x, other)
        check_prior(columns, vector["prior"])


def check_prior(columns: list[tuple[Fraction, ...]], prior: dict[str, Any]) -> None:
    weights = prior["weights"]
    averages = [sum(w * t for w, t in zip(weights, column, strict=True)) / sum(weights) for column in columns]
    upper = max(max(column) / a if a else math.inf for a, column in zip(averages, columns, strict=True))
    lower = max(a / min(column) if min(column) else math.inf for a, column in zip(averages, columns, strict=True) if a)
    assert float(prior["upper"]) == pytest.approx(math.log(upper), rel=1e-14, abs=1e-14)
    assert float(prior["lower"]) == pytest.approx(math.log(lower), rel=1e-14, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["verdicts", "constructors", "numbers", "means"])
def test_the_verdicts_are_those_of_the_exact_law(name: str) -> None:
    document = published(f"policies/{name}.json")
    laws = [sf.mechanism_from_spec(spec).channel() for spec in document["mechanisms"]]
    policies = [sf.policy_from_dict(policy) for policy in document["policies"]]
    for mechanism, policy, obeyed in document["cases"]:
        assert laws[mechanism].obeys(policies[policy]) == obeyed
    pairs = itertools.product(range(len(laws)), range(len(policies)))
    same = [(i, j) for i, j in pairs if laws[i].domain == policies[j].domain]
    assert [(i, j) for i, j, _ in document["cases"]] == same


def test_the_labels_have_their_canonical_documents_and_hashes() -> None:
    for vector in published("documents/labels.json"):
        mechanism = sf.mechanism_from_spec(json.loads(vector["mechanism"]))
        assert mechanism.hash == vector["hash"]
        assert canonical_json(mechanism.spec) == vector["mechanism"]
        policy = sf.policy_from_dict(json.loads(vector["policy"]))
        assert canonical_json(policy.to_dict()) == vector["policy"]
        assert policy.domain == mechanism.domain
        assert json.loads(json.dumps(list(mechanism.domain))) == vector["labels"]
