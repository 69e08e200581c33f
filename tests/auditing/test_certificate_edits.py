"""Every leaf of a certificate, changed, removed or added: verification fails unless the leaf is listed as free."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato._core import canonical_hash
from sfumato.errors import SfumatoError
from sfumato.mechanisms import Mechanism, RandomizedResponse, SubsetSelection, UnaryEncoding, binary_for_policy

STORED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "stored" / "certificates.json").read_text(encoding="utf-8")
)
GRID, FEW, MANY = sf.Domain.grid(2, 2), sf.Domain.range(150), sf.Domain.range(2000)
DOMAIN = sf.Domain(["none", "flu", "hiv", "cancer", "other"])
UNIFORM = sf.Uniform(DOMAIN, 1)
#: Parts that an audit cannot recompute, and that verification therefore ignores.
FREE = {("wording_hash",)}


@pytest.fixture(autouse=True)
def audits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every audit, but only once per mechanism and policy."""
    certificates: dict[tuple[str, str], sf.Certificate] = {}

    def audit_once(mechanism: Mechanism, policy: sf.Policy) -> sf.Certificate:
        key = (mechanism.to_json(), json.dumps(policy.to_dict()))
        if key not in certificates:
            certificates[key] = sf.audit(mechanism, policy)
        return certificates[key]

    monkeypatch.setattr("sfumato.auditing.audits.audit", audit_once)


def _of_two_values() -> sf.Certificate:
    policy = sf.Prior(sf.Domain(["x", "y"]), ["0.9", "0.1"], 1)
    return sf.audit(binary_for_policy(policy), policy)


def _of_attributes() -> sf.Certificate:
    policy = sf.Product(
        {"sex": sf.Uniform(sf.Domain(["f", "m"]), 1), "age": sf.Metric(sf.Domain.range(3), "absolute", 1)}
    )
    return sf.audit(sf.design(policy, n=1000), policy)


#: Certificates of every coverage and verdict, and with parts that the stored ones lack.
SMALL: dict[str, Callable[[], sf.Certificate]] = {
    "obeyed": lambda: sf.audit(RandomizedResponse(DOMAIN, 1), UNIFORM),
    "violated": lambda: sf.audit(RandomizedResponse(DOMAIN, 2), UNIFORM),
    "infinite": lambda: sf.audit(RandomizedResponse(DOMAIN, "inf"), UNIFORM),
    "unconstrained": lambda: sf.audit(RandomizedResponse(DOMAIN, "inf"), sf.Pairwise(DOMAIN, {})),
    "memoized": lambda: sf.audit(sf.design(UNIFORM, mechanism="rr", lifetime=sf.Uniform(DOMAIN, 2)), UNIFORM),
    "information": _of_two_values,
}
FRESH: dict[str, Callable[[], sf.Certificate]] = SMALL | {
    "labels of lists": lambda: sf.audit(RandomizedResponse(GRID, 1), sf.Metric(GRID, "manhattan", 1)),
    "only a bound": lambda: sf.audit(RandomizedResponse(FEW, 1), sf.Prior(FEW, ["1/150"] * 150, 1)),
    "surrogate": lambda: sf.audit(SubsetSelection(FEW, 1), sf.Uniform(FEW, 1)),
    "bit by bit": lambda: sf.audit(UnaryEncoding(FEW, 1), sf.Uniform(FEW, 1)),
    "some values": lambda: sf.audit(RandomizedResponse(MANY, 1), sf.Uniform(MANY, 1)),
    "attributes": _of_attributes,
}


def replacements(leaf: Any) -> Iterator[Any]:
    """Other leaves than this one, some of which a lenient reader takes for the same."""
    yield from (None, [], {}, True, 7, 7.5, "trust me", ["none", "flu"])
    if isinstance(leaf, bool):
        yield from (not leaf, int(leaf))
    elif isinstance(leaf, (int, float)):
        yield from (leaf + 1, leaf * (1 + 1e-6), str(leaf), bool(leaf), float(leaf))
    elif isinstance(leaf, str):
        yield from (
            leaf + " ",
            leaf + "0",
            leaf[1:],
            leaf.upper(),
            "0" + leaf,
            "-" + leaf,
            leaf.replace("/", "0/") + "0",
        )


def leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part that is neither a mapping nor a list, and of every empty one."""
    if not isinstance(document, (dict, list)) or not document:
        yield path
    else:
        for key, part in document.items() if isinstance(document, dict) else enumerate(document):
            yield from leaves(part, (*path, key))


def containers(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every mapping and of every list."""
    if isinstance(document, (dict, list)):
        yield path
        for key, part in document.items() if isinstance(document, dict) else enumerate(document):
            yield from containers(part, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def strictly(value: Any) -> str:
    """Return a string in which 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)


def edits(document: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Copies with one leaf changed, removed or added, and the path of the leaf."""

    def edited(path: tuple[Any, ...]) -> tuple[dict[str, Any], Any]:
        copied = copy.deepcopy(document)
        return copied, at(copied, path)

    for path in leaves(document):
        for replacement in replacements(at(document, path)):
            if strictly(replacement) != strictly(at(document, path)):
                copied, parent = edited(path[:-1])
                parent[path[-1]] = replacement
                yield path, copied
        copied, parent = edited(path[:-1])
        del parent[path[-1]]
        yield path, copied
    for path in containers(document):
        copied, parent = edited(path)
        if isinstance(parent, list):
            parent.append(copy.deepcopy(parent[-1]) if parent else "none")
        else:
            parent["note"] = "approved"
        yield path, copied


def is_verified(document: dict[str, Any]) -> bool:
    try:
        sf.verify(sf.Certificate.from_json(json.dumps(document)))
    except SfumatoError:
        return False
    return True


def name(document: dict[str, Any]) -> str:
    return f"{document['mechanism']['mechanism']}-{document['policy']['policy']['kind']}-{document['holds']}"


def check_edits(document: dict[str, Any]) -> None:
    """Assert that a certificate is verified, and that no edit of it is."""
    document = {**document, "wording_hash": "0" * 64}
    assert is_verified(document)
    for path, edited in edits(document):
        if path not in FREE:
            assert not is_verified(edited), (path, at(edited, path[:-1]))


@pytest.mark.slow
@pytest.mark.parametrize("document", STORED, ids=map(name, STORED))
def test_no_leaf_of_a_stored_certificate_can_be_edited(document: dict[str, Any]) -> None:
    check_edits(document)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FRESH)
def test_no_leaf_of_a_fresh_certificate_can_be_edited(kind: str) -> None:
    check_edits(FRESH[kind]().to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("kind", SMALL)
def test_an_edited_mechanism_or_policy_with_its_hash_needs_its_own_audit(kind: str) -> None:
    """Edits of the mechanism or the policy with the right hash are verified only if an audit returns this document."""
    document = SMALL[kind]().to_dict()
    for path, edited in edits(document):
        if path[:1] not in {("mechanism",), ("policy",)} or len(path) < 2:
            continue
        edited[f"{path[0]}_hash"] = canonical_hash(edited[path[0]])
        if is_verified(edited):
            mechanism, policy = sf.mechanism_from_spec(edited["mechanism"]), sf.policy_from_dict(edited["policy"])
            assert strictly(sf.audit(mechanism, policy).to_dict()) == strictly(edited), path


def test_last_digits_of_rounded_numbers_and_the_hash_of_the_wording_are_free() -> None:
    """These are the only edits that verification accepts: no digit that a certificate prints depends on them."""
    prior = SMALL["information"]().to_dict()
    stated, excess = prior["information"], float(prior["worst"]["excess"])

    def nudged(factor: float) -> list[dict[str, Any]]:
        return [
            prior | {"information": stated | {"nats": stated["nats"] * factor}},
            prior | {"information": stated | {"bound": stated["bound"] * factor}},
            prior | {"worst": prior["worst"] | {"excess": str(excess * factor)}},
        ]

    assert [is_verified(edited) for edited in nudged(1 + 1e-12)] == [True] * 3
    assert [is_verified(edited) for edited in nudged(1 + 1e-8)] == [False] * 3
    assert is_verified(prior | {"wording_hash": "0" * 64})
    assert not is_verified(prior | {"wording_hash": "0" * 63})
