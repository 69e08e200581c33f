"""Write vectors with which a client in any language checks its statements about a mechanism.

- ``vectors/laws/*.json``: for every mechanism at levels from 0 to infinity the exact sum of greatest likelihoods, the
  exact greatest ratio of likelihoods for every pair of values, and the ratios to an average over a prior.
- ``vectors/policies/verdicts.json``: mechanisms, policies, and whether each mechanism obeys each policy of its domain.
- ``vectors/policies/constructors.json``: the same for kinds of policy and distances that were added later.
- ``vectors/policies/numbers.json``: the same for domains of numbers.
- ``vectors/policies/means.json``: the same for the mechanisms for a mean.
- ``vectors/policies/attributes.json``: the same for policies with one policy per attribute.
- ``vectors/documents/labels.json``: specs and policies over labels that are hard to write, with their hashes.
- ``vectors/documents/numbers.json``: the same for domains of numbers, with the index of numbers at and near edges.

``vectors/README.md`` describes the formats. Run the script again when a mechanism is added; it keeps existing files.
"""

from __future__ import annotations

import json
import math
import random
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato._core import canonical_json
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.registry import mechanism_classes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.family_examples import all_examples

FOLDER = Path(__file__).parents[1] / "vectors"
EPSILONS = ["0", "0.1", "0.5", "1", "2", "5", "10", "20", "inf"]
#: Factor by which a stricter policy lowers every level.
STRICTER = Fraction(10**6 - 1, 10**6)


def families(epsilon: str) -> list[Mechanism]:
    """Return examples of every mechanism over small domains."""
    return [mechanism for examples in all_examples() for mechanism in examples.laws(epsilon)]


def policies() -> list[sf.Policy]:
    """Return policies of every kind for which ``design`` finds a mechanism."""
    six, pairs = sf.Domain.range(6), sf.Domain.product(sex=["f", "m"], age=sf.Domain.range(3))
    grid = sf.Domain.grid(latitude=(47, 48), longitude=(6, 8), rows=2, columns=3)
    matrix = [["0" if x == y else f"{1 + (x + 2 * y) % 3}/2" for y in range(4)] for x in range(4)]
    shares = [["1/4", "1/4", "1/4"], ["1/4", "1/5", "1/6"]]
    joint = [["0.3", "0.1", "0.1"], ["0.1", "0.1", "0.3"]]
    return [
        *(sf.Uniform(six, epsilon) for epsilon in ("0.1", "1", "1+ln 2", "3/2*ln 3", "5", "12", "20", "inf")),
        sf.Uniform(sf.Domain(["yes", "no"]), "ln 3"),
        *(sf.HighLow(pairs, [("f", 0), ("m", 2)], epsilon) for epsilon in ("0.1", "1", "ln 3", "12")),
        sf.Blocks(six, "aabbbc", ["1", "ln 2", "0"]),
        *(sf.Blocks(six, "aabbcc", epsilon, across) for epsilon, across in (("0.5", "2"), ("1", "1.5"), ("2", "1"))),
        sf.Metric(six, "absolute", "0.3"),
        sf.Metric(six, "discrete", "0.7"),
        sf.Metric(sf.Domain([0.5, 1.5, 4.25]), "absolute", "1/3"),
        sf.Metric(sf.Domain.range(3), [[0, "1/2", 1], ["1/2", 0, 1], [1, 1, 0]], "ln 2"),
        sf.Metric(grid, "km", "0.01"),
        sf.Pairwise(sf.Domain.range(4), matrix),
        sf.Pairwise(sf.Domain.range(3), {(0, 1): "1", (2, 0): "0.5"}),
        *(sf.Prior(sf.Domain.range(4), ["0.4", "0.3", "0.2", "0.1"], "1", side) for side in ("both", "upper", "lower")),
        sf.Prior(sf.Domain.range(2), ["1/3", "2/3"], "0.5"),
        sf.Secret(pairs, "sex", "1", sf.Anything()),
        sf.Secret(pairs, "age", "0.5", sf.Anything()),
        sf.Secret(pairs, "sex", "1", sf.Known(joint)),
        sf.Secret(pairs, "sex", "0.5", sf.AtLeast(shares)),
        sf.Secret(pairs, "sex", "0.5", sf.ChiSquare([[300, 100, 100], [100, 100, 300]])),
    ]


def later_policies() -> list[sf.Policy]:
    """Return policies of the kinds and distances that were added after ``verdicts.json`` was published."""
    four, board = sf.Domain.range(4), sf.Domain.grid(2, 3)
    boxes = sf.Domain.product(width=[1, 4, 9], height=[-2, 7])
    return [
        *(sf.PerValue(four, ["0.5", "0.75", "1", "1"], rule) for rule in ("min", "mean", "max")),
        sf.PerValue(sf.Domain(["none", "flu", "hiv"]), ["inf", "ln 3", "1"]),
        sf.Graph(four, [(0, 1), (1, 2), (2, 3)], "1"),
        sf.Graph(four, [(0, 1, "ln 2"), (2, 3, "3/2")]),
        sf.Graph(board, [((0, 0), (0, 1)), ((0, 1), (1, 1), "1/2"), ((1, 2), (0, 2))], "1"),
        *(sf.Metric(domain, name, "1/2") for domain in (board, boxes) for name in ("manhattan", "euclidean")),
    ]


def attribute_designs() -> tuple[list[sf.Policy], list[Mechanism]]:
    """Return policies with one policy per attribute, each with a product and with sampled parts."""
    jobs, ages, two = sf.Domain(["clerk", "judge", "spy"]), sf.Domain.range(4), sf.Domain.range(2)
    stated: list[sf.Product] = [
        sf.Product({"job": sf.HighLow(jobs, ["spy"], 1), "age": sf.Metric(ages, "absolute", "1/2")}),
        sf.Product({"a": sf.Uniform(two, "ln 2"), "b": sf.Uniform(two, 1), "c": sf.Uniform(two, "1/2")}),
        sf.Product({"a": sf.Blocks(jobs, "xxy", 1, 2), "b": sf.PerValue(two, ["1/2", "1"])}),
    ]
    policies: list[sf.Policy] = []
    mechanisms: list[Mechanism] = []
    for policy in stated:
        parts = {name: attribute_mechanism(part) for name, part in policy.policies.items()}
        policies += [policy] * 2
        mechanisms += [
            sf.mechanisms.ProductMechanism(policy.domain, list(parts.values())),
            sf.mechanisms.SampledParts(policy.domain, dict(parts), range(1, len(parts) + 1)),
        ]
    return policies, mechanisms


def attribute_mechanism(policy: sf.policy.PairwisePolicy) -> Mechanism:
    """Return a mechanism for one attribute: the table of least risk, or randomized response for two values."""
    if len(policy.domain) > 2:
        return sf.optimal(policy).mechanism
    return sf.mechanisms.RandomizedResponse(policy.domain, policy.least[0])


def domains() -> list[sf.Domain]:
    """Return domains whose labels languages write in different ways."""
    cells = sf.Domain.grid(latitude=(0, 1.5), longitude=(-1e-5, 1), rows=2, columns=3)
    return [
        sf.Domain([0.5, 1.0, 1e16, 1e-7, -2.5e-300]),
        sf.Domain(['quoted "label"', "back\\slash", "tab\t", "é", "日本", "😀", "\u2028", "\x7f", "\x01", "1", "n1"]),
        sf.Domain([False, True]),
        sf.Domain([-3, 2**53 - 1, 7]),
        sf.Domain.product(ünï=["a", "b"], cell=cells),
    ]


def stricter(policy: sf.Policy) -> dict[str, Any]:
    """Return the document of a slightly stricter policy: every epsilon is lower by a millionth."""
    document: dict[str, Any] = json.loads(json.dumps(policy.to_dict()))

    def lower(level: Any) -> Any:
        if isinstance(level, list):
            return [lower(one) for one in level]
        return level if level in ("0", "inf") else str(sf.Epsilon(level) * STRICTER)

    for rules in (document["policy"], *document["policy"].get("attributes", {}).values()):
        for key in ("epsilon", "epsilons", "across", "matrix"):
            if key in rules:
                rules[key] = lower(rules[key])
        for edge in rules.get("edges", []):
            edge[2:] = lower(edge[2:])
    return document


def columns(mechanism: Mechanism) -> list[list[Fraction]]:
    """Return the exact likelihoods of all values, for each report of positive probability."""
    size = range(len(mechanism.domain))
    likelihoods = ([mechanism.probability(y, x) for x in size] for y in mechanism.reports())
    return [column for column in likelihoods if any(column)]


def greatest_ratio(column_pairs: list[tuple[Fraction, Fraction]]) -> str:
    """Return the greatest ratio of two likelihoods as a fraction, or ``inf`` if a report excludes the second value."""
    if any(high and not low for high, low in column_pairs):
        return "inf"
    return str(max(high / low for high, low in column_pairs if high))


def logarithm(high: Fraction, low: Fraction) -> float | str:
    return math.log(high / low) if low else "inf"


def against(law: list[list[Fraction]], weights: list[int]) -> dict[str, Any]:
    """Return log max T_x / (π·T) and log max (π·T) / T_x over reports and values; π is the prior of these weights."""
    averages = [sum(weight * t for weight, t in zip(weights, column, strict=True)) / sum(weights) for column in law]
    upper = [logarithm(max(column), average) for average, column in zip(averages, law, strict=True)]
    lower = [logarithm(average, min(column)) for average, column in zip(averages, law, strict=True) if average]
    return {
        "weights": weights,
        "upper": "inf" if "inf" in upper else max(upper),
        "lower": "inf" if "inf" in lower else max(lower),
    }


def law_vector(epsilon: str, mechanism: Mechanism, generator: random.Random) -> dict[str, Any]:
    """Return the vector of one mechanism: its spec and the exact ratios of its likelihoods."""
    law, size = columns(mechanism), range(len(mechanism.domain))
    weights = [generator.randrange(10) for _ in size]
    ratios, pairs = ["1"], [[0 for _ in size] for _ in size]
    for x in size:
        for other in size:
            ratio = greatest_ratio([(column[x], column[other]) for column in law])
            if ratio not in ratios:
                ratios.append(ratio)
            pairs[x][other] = ratios.index(ratio)
    return {
        "epsilon": epsilon,
        "spec": mechanism.spec,
        "hash": mechanism.hash,
        "greatest": str(sum(map(max, law))),
        "ratios": ratios,
        "pairs": pairs,
        "prior": against(law, weights if any(weights) else [1, *weights[1:]]),
    }


def law_vectors() -> dict[str, list[dict[str, Any]]]:
    """Return the vectors of all mechanisms at all levels, by the name of the mechanism."""
    vectors: dict[str, list[dict[str, Any]]] = {}
    # One generator per mechanism: adding a mechanism must not change the vectors of another.
    generators = {name: random.Random(name) for name in mechanism_classes()}
    for epsilon in EPSILONS:
        for mechanism in families(epsilon):
            vector = law_vector(epsilon, mechanism, generators[mechanism.name])
            vectors.setdefault(mechanism.name, []).append(vector)
    return vectors


def verdicts(stated: list[sf.Policy], designs: list[Mechanism]) -> dict[str, Any]:
    """Return mechanisms, policies, and for every pair over the same domain whether the mechanism obeys the policy."""
    documents = [*(policy.to_dict() for policy in stated), *map(stricter, stated)]
    read = [sf.policy_from_dict(document) for document in documents]
    laws = [mechanism.channel() for mechanism in designs]
    cases = [
        [i, j, law.obeys(policy)]
        for i, law in enumerate(laws)
        for j, policy in enumerate(read)
        if policy.domain == law.domain
    ]
    return {"mechanisms": [mechanism.spec for mechanism in designs], "policies": documents, "cases": cases}


def labels(domains: list[sf.Domain]) -> list[dict[str, Any]]:
    """Return documents over domains, with the hash of each mechanism and the labels."""
    entries = []
    for domain in domains:
        mechanism, policy = sf.mechanisms.RandomizedResponse(domain, "inf"), sf.Uniform(domain, "inf")
        documents = {"mechanism": canonical_json(mechanism.spec), "policy": canonical_json(policy.to_dict())}
        entries.append({**documents, "hash": mechanism.hash, "labels": list(domain)})
    return entries


def numeric_domains() -> list[sf.Domain]:
    """Return domains of numbers whose edges are hard to compute."""
    return [
        sf.Domain.range(17, 91),
        sf.Domain.range(-3, 4, out_of_range="refuse", missing="unknown"),
        sf.Domain.numbers(0, 1, bins=10),
        sf.Domain.numbers(0, 200_000, step=5_000, missing="unknown"),
        sf.Domain.numbers("-0.7", "1.1", bins=7, closed="right"),
        sf.Domain.numbers("1/3", 2, bins=3, out_of_range="refuse"),
        sf.Domain.numbers(edges=[-1e-7, 0, "0.1", "0.30000000000000004", 18, 25.5, 2**53], missing=""""quoted" é"""),
        sf.Domain.numbers(-(10**15), 10**15, bins=9, closed="right", out_of_range="refuse", missing="none"),
        sf.Domain(["no", "yes"], missing="unknown"),
        sf.Domain([-1.5, 2.0], missing="unknown"),
    ]


def near(domain: sf.Domain) -> list[float]:
    """Return numbers at, just below and just above each edge or label of a domain, and some out of range."""
    marks = domain.bin_edges if domain.kind == "numbers" else domain.numeric_values[np.isfinite(domain.numeric_values)]
    points = [
        np.nextafter(marks, -np.inf),
        marks,
        np.nextafter(marks, np.inf),
        [-1e300, -math.inf, 1e300, math.inf, 0.1 * 3, 0.0],
    ]
    return [float(point) for point in np.concatenate(points)]


def numbers() -> list[dict[str, Any]]:
    """Return documents over numbers, and the index of numbers as decimal strings; -1 if a number is rejected."""
    entries = labels(numeric_domains())
    for entry, domain in zip(entries, numeric_domains(), strict=True):
        cases: list[Any] = [["NaN", place(domain, math.nan)], [None, place(domain, None)]]
        if domain.kind != "list" or not isinstance(domain.label(0), str):
            cases += [[repr(number).replace("inf", "Infinity"), place(domain, number)] for number in near(domain)]
        entry["cases"] = cases
    return entries


def place(domain: sf.Domain, value: float | None) -> int:
    """Return the index of a value, or -1 if the domain rejects it."""
    try:
        return domain.encode_one(value)
    except sf.errors.InvalidInput:
        return -1


def numeric_policies() -> list[sf.Policy]:
    """Return policies over domains of numbers."""
    ages, pay = sf.Domain.range(17, 25), sf.Domain.numbers(0, 4, bins=8, missing="unknown")
    tenths = sf.Domain.numbers(0, 1, bins=5)
    return [
        sf.Metric(ages, "absolute", "1/4"),
        sf.Metric(tenths, "absolute", 3),
        sf.Metric(sf.Domain.numbers(edges=[0, "0.5", 2, 7]), "absolute", "1/2"),
        sf.Metric(sf.Domain.product(a=sf.Domain.numbers(0, 2, bins=2), b=sf.Domain.range(-1, 2)), "manhattan", 1),
        sf.Uniform(pay, 1),
        sf.HighLow(pay, pay.above(3), 1),
        sf.Blocks(pay, pay.split([1, 3]), 1, 3),
    ]


def mean_designs() -> tuple[list[sf.Policy], list[Mechanism]]:
    """Return policies, and for each a mechanism for a mean; with 150 values, clients may state bounds of their laws."""
    six, many = sf.Domain.range(6), sf.Domain.range(150)
    prior = ["1/10", "3/10", "3/20", "3/20", "1/5", "1/10"]
    designs: list[tuple[sf.Policy, str]] = [
        *((sf.Uniform(domain, 1), name) for domain in (six, many) for name in ("one-bit", "shifted-bins")),
        *((sf.Metric(six, "absolute", "0.3"), name) for name in ("one-bit", "geometric")),
        *((sf.Metric(many, "absolute", epsilon), name) for epsilon in ("0.02", 3) for name in ("one-bit", "geometric")),
        *((sf.Prior(six, prior, 1, side), name) for side in ("both", "upper") for name in ("one-bit", "shifted-bins")),
        (sf.PerValue(six, ["0.5", "1", "0.75", "2", "1", "1"]), "one-bit"),
        (sf.HighLow(six, [0, 5], 1), "shifted-bins"),
    ]
    mechanisms = [sf.design(policy, mechanism=name, question="mean") for policy, name in designs]
    return [policy for policy, _ in designs], mechanisms


def lines(items: list[Any]) -> str:
    """Return a JSON list with one item per line."""
    return "[\n" + ",\n".join(json.dumps(item, ensure_ascii=False) for item in items) + "\n]"


def write(name: str, content: str) -> None:
    """Write a file unless it exists: published vectors do not change."""
    path = FOLDER / name
    if path.exists():
        print(f"{name}: already published, not changed")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content + "\n", encoding="utf-8")
    print(f"{name}: {len(content):,} characters")


def main() -> None:
    for name, vectors in law_vectors().items():
        write(f"laws/{name}.json", lines(vectors))
    stated_policies = {"verdicts": policies(), "constructors": later_policies(), "numbers": numeric_policies()}
    designs = {name: (stated, [sf.design(policy) for policy in stated]) for name, stated in stated_policies.items()}
    for name, (stated, mechanisms) in {**designs, "means": mean_designs(), "attributes": attribute_designs()}.items():
        parts = ",\n".join(f'"{key}": {lines(items)}' for key, items in verdicts(stated, mechanisms).items())
        write(f"policies/{name}.json", "{" + parts + "}")
    write("documents/labels.json", lines(labels(domains())))
    write("documents/numbers.json", lines(numbers()))


if __name__ == "__main__":
    main()
