"""The odds and the names that the survey page shows are those of the exact law, for the rules that Studio can make."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.mechanisms import keeps_answers
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.registry import all_families
from support import ROOT
from support.components import absent
from support.family_examples import examples_of
from support.family_examples.parts import examples

PAGES = ROOT / "src" / "sfumato" / "server" / "pages"
#: Reports above which a law is not compared output by output.
MOST_REPORTS = 3000
LEVELS = ("0.1", "1", "ln 3", "2", "6")

#: What Studio offers to learn, by the kind of values; None for the share of every value.
QUESTIONS: dict[str, tuple[str | None, ...]] = {
    "marks": ("marginals:1",),
    "scale": (None, "mean", "distribution"),
    "number": (None, "mean", "distribution"),
}

_SCRIPT = """
import { replyReader } from "REPLIES"
const read = (value) => JSON.parse(value)
const answers = CASES.map(({ spec, size, sizes, reports }) => {
    const reader = replyReader(spec, size, sizes)
    if (!reader) return null
    return {
        parts: reader.parts.map((part) => ({
            axes: part.axes ?? null, scale: !!part.scale, groups: part.groups ?? null, one: part.one,
            share: part.share.map(String),
            own: Array.from({ length: part.groups ? size : part.size }, (_, x) => part.own(x).map(String)),
            other: part.other && Array.from({ length: part.size }, (_, x) => part.other(x).map((f) => f.map(String))),
        })),
        named: reports.map((report) => reader.read(BigInt(report))
            .map(([at, rest]) => [at, reader.parts[at].names(rest)])),
    }
})
console.log(JSON.stringify(answers))
"""


def studio_policies() -> list[sf.Policy]:
    """Return rules of every kind that Studio makes, over lists, maps and several things at once."""
    four, six = sf.Domain(["none", "flu", "hiv", "cancer"]), sf.Domain.range(6)
    grid = sf.Domain.grid(latitude=(0, 1), longitude=(0, 1), rows=2, columns=3)
    pair = sf.Domain.product(cheated=["yes", "no"], age=["young", "middle", "old"])
    policies: list[sf.Policy] = []
    for epsilon in LEVELS:
        policies += [sf.Uniform(domain, epsilon) for domain in (sf.Domain(["yes", "no"]), four, grid, pair)]
        policies += [sf.HighLow(four, ["hiv", "cancer"], epsilon), sf.HighLow(six, [1, 2, 4], epsilon)]
        policies += [sf.HighLow(four, ["hiv"], epsilon), sf.HighLow(grid, [(0, 1), (1, 1), (1, 2)], epsilon)]
        policies += [sf.Blocks(six, blocks, epsilon) for blocks in ("aabbcc", "aaabbc", "abcabc")]
        policies += [sf.Blocks(domain, "aaabbb", epsilon, across="3") for domain in (six, grid)]
        policies += [sf.Blocks(six, "aabbcc", epsilon, across="2"), sf.Blocks(six, "aabbbc", epsilon, across="4")]
        policies += [sf.Secret(pair, secret, epsilon, sf.Anything()) for secret in ("cheated", "age")]
    return policies


def node(script: str) -> Any:
    """Run a script as a module and return what it prints, as JSON."""
    program = shutil.which("node")
    if program is None:
        absent("node, which runs the scripts of the pages, is not on this machine")
    run = subprocess.run(
        [program, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the module, next to the client library as the collector serves both."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    shutil.copy(ROOT / "clients" / "js" / "sfumato.js", folder)
    shutil.copy(PAGES / "replies.js", folder)
    return (folder / "replies.js").as_uri()


def law(mechanism: Mechanism, reports: list[int]) -> list[list[Fraction]]:
    """Return the exact probability of each report for each value."""
    return [[mechanism.probability(report, x) for x in range(len(mechanism.domain))] for report in reports]


def factors(mechanism: Mechanism) -> list[int] | None:
    """Return the sizes of the attributes of a value, if its domain or its mechanism has some."""
    domain, p = mechanism.domain, mechanism.spec["parameters"]
    if domain.kind == "product":
        return list(domain.shape)
    return [p["kinds"][kind]["size"] for kind in p["kind"]] if mechanism.spec["mechanism"] == "product" else None


def compare(mechanisms: list[Mechanism], module: str, stated: tuple[str, ...] = ()) -> int:
    """Compare the names and the odds of these mechanisms with their exact laws; return how many the module knows.

    The module must know the odds of another value for the families in ``stated``.
    """
    small = [mechanism for mechanism in mechanisms if mechanism.outputs <= MOST_REPORTS]
    reports = [list(mechanism.reports()) for mechanism in small]
    cases = [
        {
            "spec": mechanism.spec,
            "size": len(mechanism.domain),
            "sizes": factors(mechanism),
            "reports": list(map(str, each)),
        }
        for mechanism, each in zip(small, reports, strict=True)
    ]
    known = 0
    for mechanism, each, answer in zip(
        small, reports, node(_SCRIPT.replace("REPLIES", module).replace("CASES", json.dumps(cases))), strict=True
    ):
        if answer is None:
            continue
        known += 1
        columns, size = law(mechanism, each), len(mechanism.domain)
        for at, part in enumerate(answer["parts"]):
            of = _projection(mechanism, part)
            named = [{x for place, values in replies if place == at for x in values} for replies in answer["named"]]
            about = [any(place == at for place, _ in replies) for replies in answer["named"]]
            share = Fraction(*map(int, part["share"]))
            for x in range(size):
                own = Fraction(*map(int, part["own"][x if part["groups"] else of(x)]))
                # A bit about a scale names no value: its odds are those of a one.
                held = [bool(report) for report in each] if part["scale"] else [of(x) in values for values in named]
                exact = sum((column[x] for column, is_held in zip(columns, held, strict=True) if is_held), Fraction())
                assert exact == own * share, (mechanism.spec["mechanism"], x, float(exact), float(own * share))
                assert sum((c[x] for c, is_about in zip(columns, about, strict=True) if is_about), Fraction()) == share
            assert mechanism.spec["mechanism"] not in stated or part.get("other")
            if part.get("other") and size > 1 and not part["axes"] and not part["groups"]:
                for x in range(size):
                    odds = [
                        sum((c[other] for c, values in zip(columns, named, strict=True) if x in values), Fraction())
                        for other in range(size)
                        if other != x
                    ]
                    bounds = tuple(Fraction(*map(int, bound)) for bound in part["other"][x])
                    assert (min(odds), max(odds)) == bounds, mechanism.spec["mechanism"]
        if len(answer["parts"]) == 1 and not answer["parts"][0]["scale"]:
            for column, ((_, values),) in zip(columns, answer["named"], strict=True):
                likeliest = [x for x in range(size) if column[x] == max(column)]
                assert values in (likeliest, []), mechanism.spec["mechanism"]
    return known


def _projection(mechanism: Mechanism, part: dict[str, Any]) -> Any:
    """Return the function from the index of a value to the index that a part of a reply is about."""
    if part["groups"]:
        return lambda x: part["groups"][x]
    if not part["axes"]:
        return lambda x: x
    sizes = factors(mechanism) or []

    def project(x: int) -> int:
        digits: list[int] = []
        for size in reversed(sizes):
            digits.insert(0, x % size)
            x //= size
        index = 0
        for axis in part["axes"]:
            index = index * sizes[axis] + digits[axis]
        return index

    return project


@pytest.mark.slow
def test_the_odds_on_the_page_are_exact_for_every_rule_of_studio(replies: str) -> None:
    mechanisms: dict[str, Mechanism] = {}
    for policy in studio_policies():
        for row in sf.plan(policy, 1000, max_seconds=0).rows:
            try:
                mechanism = row.mechanism
            except SfumatoError:
                continue
            mechanisms[mechanism.hash] = mechanism
    assert compare(list(mechanisms.values()), replies) > 150


@pytest.mark.slow
def test_the_odds_of_parts_with_and_without_unprotected_values_are_exact(replies: str) -> None:
    mechanisms = [mechanism for level in ("0.5", "3", "inf") for mechanism in examples().laws(level)]
    assert any(len(mechanism.parameters()["unprotected"]) for mechanism in mechanisms if mechanism.outputs > 7)
    assert compare(mechanisms, replies, ("parts",)) == len(mechanisms)


def offered(epsilon: str, factor: int = 1) -> dict[tuple[str, str], list[sf.Policy]]:
    """Return rules by the kind of values and the rule that Studio offers, with multiples of the levels."""
    level = Fraction(epsilon) * factor
    domains = {
        "list": sf.Domain(["none", "flu", "hiv", "cancer"]),
        "grid": sf.Domain.grid(latitude=(0, 1), longitude=(0, 1), rows=2, columns=3),
        "product": sf.Domain.product(cheated=["yes", "no"], age=["young", "middle", "old"]),
        "scale": sf.Domain.range(1, 6),
        "number": sf.Domain.numbers(0, 100, bins=10),
        "marks": sf.Domain.product(flu=["no", "yes"], cold=["no", "yes"], hiv=["no", "yes"]),
    }
    rules: dict[tuple[str, str], list[sf.Policy]] = {
        (kind, "uniform"): [sf.Uniform(domain, level)] for kind, domain in domains.items()
    }
    for kind in ("list", "scale", "number", "grid", "product"):
        domain = domains[kind]
        groups = [x % 2 for x in range(len(domain))]
        rules[kind, "high-low"] = [sf.HighLow(domain, [domain.labels[1], domain.labels[-1]], level)]
        rules[kind, "blocks"] = [
            sf.Blocks(domain, groups, level),
            sf.Blocks(domain, [0, *[1] * (len(domain) - 1)], level),
            sf.Blocks(domain, groups, level, across=2 * factor),
        ]
    rules["product", "secret"] = [
        sf.Secret(domains["product"], secret, level, sf.Anything()) for secret in ("cheated", "age")
    ]
    return rules


def test_the_rules_of_the_tests_are_those_that_studio_offers() -> None:
    script = (PAGES / "studio.js").read_text(encoding="utf-8")
    kinds = re.search(r"kind: ([^,]*),", script)
    keeps = re.search(r"keep: ([^,]*),", script)
    assert kinds is not None
    assert keeps is not None
    rules = offered("1")
    assert {kind for kind, _ in rules} == set(re.findall(r'"([\w-]+)"', kinds[1]))
    assert {keep for _, keep in rules} == set(re.findall(r'"([\w-]+)"', keeps[1]))
    script = (PAGES / "studio-numbers.js").read_text(encoding="utf-8")
    learned = re.search(r'"learn",\s*t\("[^"]*"\),\s*\[(.*?)\n\t+\]', script, flags=re.DOTALL)
    assert learned is not None
    assert set(re.findall(r'\["(\w+)",', learned[1])) == {str(one or "shares") for one in QUESTIONS["scale"]}


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.1", "1/3", "1", "6"])
def test_the_odds_of_every_survey_of_studio_are_shown_and_exact(replies: str, epsilon: str) -> None:
    """Once or in waves, for each kind of values and each rule: the mechanism that the collector would open."""
    mechanisms: dict[str, Mechanism] = {}
    for (kind, _), policies in offered(epsilon).items():
        for question in QUESTIONS.get(kind, (None,)):
            for policy in policies:
                one = sf.design(policy, 1000, question=question, max_seconds=0.5)
                mechanisms[one.hash] = one
    for factor in (2, 4):
        pairs = zip(offered(epsilon).items(), offered(epsilon, factor).values(), strict=True)
        for ((kind, _), policies), lifetimes in pairs:
            choices = itertools.product(QUESTIONS.get(kind, (None,)), zip(policies, lifetimes, strict=True))
            for question, (policy, lifetime) in choices:
                try:
                    one = sf.design(policy, 1000, question=question, max_seconds=0.5, lifetime=lifetime)
                except SfumatoError:
                    continue
                mechanisms[one.hash] = one
    assert sum(keeps_answers(one) for one in mechanisms.values()) >= 10
    assert max(one.outputs for one in mechanisms.values()) <= MOST_REPORTS
    assert compare(list(mechanisms.values()), replies) == len(mechanisms)


@pytest.mark.parametrize(("epsilon", "across"), [("0.1", "0.2"), ("1", "3"), ("ln 3", "2"), ("2", "6")])
def test_the_odds_of_another_value_are_exact_for_blocks_at_two_levels(replies: str, epsilon: str, across: str) -> None:
    """For sets in low blocks or none, blocks of several sizes, and values that are not in the order of their blocks."""
    make = sf.mechanisms.NestedCyclic
    mechanisms: list[Mechanism] = [
        make(sf.Domain.range(6), "aaabbb", epsilon, across, high=1, sizes=[1, 1], patterns=4, seed=3),
        make(sf.Domain.range(6), "abcabc", epsilon, across, high=2, sizes=[1, 0], patterns=3, seed=1),
        make(sf.Domain.range(5), "aaabb", epsilon, across, high=1, sizes=[2, 1], patterns=3, seed=1),
        make(sf.Domain.range(12), "abcabcabcabc", epsilon, across, max_bits=7),
    ]
    assert compare(mechanisms, replies, stated=("nested-cyclic",)) == len(mechanisms)


@pytest.mark.slow
def test_the_odds_on_the_page_are_exact_for_the_examples_of_every_family(replies: str) -> None:
    known = [examples_of(family) for family in all_families() if family.in_browser]
    mechanisms = [one for example in known for level in ("0.5", "2") for one in example.laws(level)]
    assert compare(mechanisms, replies) > 40
