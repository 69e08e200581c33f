"""The browser's module, in a real browser: it decides as Python does; what it keeps, sends and refuses."""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import math
import os
import random
import re
import shutil
import subprocess
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sfumato as sf
from sfumato._core.documents import canonical_hash, canonical_json
from sfumato.device.ledger import Ledger
from sfumato.mechanisms.base import Mechanism
from sfumato.mechanisms.draws import BitDraws, RecordingDraws
from sfumato.mechanisms.registry import all_families
from support import ROOT
from support.components import PATIENCE, absent, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.component

MODULE = ROOT / "clients" / "js" / "sfumato.js"
PAGES = ROOT / "src" / "sfumato" / "server" / "pages"
HARNESS = ROOT / "tests" / "browser" / "harness.js"
VECTORS = ROOT / "vectors"
NAMES = sorted(kind.name for family in all_families() if family.in_browser for kind in family.mechanisms)

#: The page's policy, under which the module has to work.
POLICY = "default-src 'self'"
TYPESCRIPT = "5.9.3"
#: What the module exports has the declared types, and nothing that it exports is undeclared.
DECLARATIONS = """
/** @type {typeof import("./sfumato.js")} */
export const declared = await import("./undeclared.js")
/** @type {keyof typeof import("./undeclared.js") extends keyof typeof import("./sfumato.js") ? true : never} */
export const complete = true
"""


#: Responses in JSON that do not come from the collector of the batch.
FIREWALLS: dict[str, tuple[int, Any]] = {
    "firewall 403": (403, {"reason": "blocked", "message": "blocked by your organisation"}),
    "firewall 200": (200, {"reason": "not-open", "message": "in the form of the collector", "row": None}),
    "firewall string": (403, "access denied"),
    "another batch": (409, {"reason": "conflict", "message": "", "batch": "another-batch", "collection": "again"}),
    "no collection": (409, {"reason": "conflict", "message": "", "batch": None, "collection": None}),
}

# -- a collector of a few lines, and a browser ---------------------------------------------------------------


@dataclass
class Collector:
    """Serves the module and some collections, and takes reports; ``way`` is how it treats them."""

    module: str = field(default_factory=functools.partial(MODULE.read_text, encoding="utf-8"))
    collections: dict[str, str] = field(default_factory=dict)
    way: str = "counts"
    counted: dict[str, Any] = field(default_factory=dict)
    posts: list[tuple[str, str | None, dict[str, Any]]] = field(default_factory=list)
    origin: str = ""

    def opens(self, name: str, mechanism: Mechanism | dict[str, Any], epsilon: Any = "inf", **about: Any) -> str:
        """A new collection; its address."""
        spec = mechanism.spec if isinstance(mechanism, Mechanism) else mechanism
        policy = {"domain": spec["domain"], "policy": {"kind": "uniform", "epsilon": str(epsilon)}}
        stated = mechanism.hash if isinstance(mechanism, Mechanism) else None
        document = {"id": name, "title": name, "state": "open", "submission": "open", "asks": "", **about}
        document |= {"mechanism_hash": about.get("mechanism_hash", stated)}
        parts = json.dumps(document)[:-1]
        # As the collector has it: documents stand in the answer as their canonical texts.
        self.collections[name] = f'{parts}, "mechanism": {canonical_json(spec)}, "policy": {canonical_json(policy)}}}'
        return f"{self.origin}/v1/collections/{name}"

    def get(self, path: str) -> tuple[str, str] | None:
        files = {"/static/sfumato.js": lambda: self.module, "/static/harness.js": HARNESS.read_text}
        if path in files:
            return "text/javascript", files[path]()
        name = urllib.parse.unquote(path.partition("?")[0]).removeprefix("/v1/collections/")
        if name in self.collections:
            return "application/json", self.collections[name]
        return ("text/html", "<!doctype html><title>a page</title>") if path == "/" else None

    def post(self, path: str, authorization: str | None, body: dict[str, Any]) -> tuple[int, str] | None:
        """Status and answer, or None to hang up."""
        if path.split("/")[-2] not in self.collections:
            return 404, ""  # sent by a page of an earlier test, which has closed since
        self.posts.append((path, authorization, body))
        if self.way == "busy":
            return 503, '{"error": {"reason": "overloaded", "message": "too much waits already"}}'
        if self.way == "portal":
            return 200, "<html>please log in to this network</html>"
        if self.way == "refuses":
            error = {"reason": "token-unknown", "message": "not one of ours", "batch": body["batch"]}
            return 401, json.dumps({"error": error | {"collection": path.split("/")[-2]}})
        if self.way in FIREWALLS:
            status, blocked = FIREWALLS[self.way]
            return status, json.dumps({"error": blocked})
        known = self.counted.setdefault(body["batch"], (path, body["report"]))
        assert known == (path, body["report"]), "another payload under the same batch id"
        return None if self.way == "loses answers" else (200, json.dumps({"batch": body["batch"], "reports": 1}))


class Server(ThreadingHTTPServer):
    """One address for all tests of this file; each has a collector of its own there."""

    collector: Collector
    daemon_threads = True

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/admission"):  # rejections come with the report, as if just too late
            self._say(200, "application/json", json.dumps({"batch": self.headers["Idempotency-Key"]}))
            return
        answer = self.server.collector.get(self.path)
        self._say(404, "text/plain", "nothing here") if answer is None else self._say(200, *answer)

    def do_POST(self) -> None:
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["Cookie"] is None
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.server.collector.post(self.path, self.headers["Authorization"], body)
        if answer is None:
            self.close_connection = True
        else:
            self._say(answer[0], "application/json", answer[1])

    def _say(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server(("127.0.0.1", 0), Handler)
    found.collector = Collector(origin=found.origin)
    thread = threading.Thread(target=found.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture
def collector(server: Server) -> Collector:
    server.collector = Collector(origin=server.origin)
    return server.collector


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # A name that is not this machine's own, so that a page from it is not secure.
    with chromium("--host-resolver-rules=MAP sfumato.test 127.0.0.1") as found:
        yield found


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    found = browser.new_context()
    found.set_default_timeout(PATIENCE)
    yield found
    found.close()


@pytest.fixture
def page(context: BrowserContext, collector: Collector) -> Page:
    return opened(context, collector)


@pytest.fixture(scope="module")
def shared(browser: Browser, server: Server) -> Iterator[Page]:
    """A page for tests that leave no trace which another of them could meet."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    yield opened(context, server.collector)
    context.close()


def opened(context: BrowserContext, collector: Collector) -> Page:
    """A page that has loaded the module."""
    page = context.new_page()
    page.goto(collector.origin)
    ready(page)
    return page


def ready(page: Page) -> None:
    page.evaluate("async () => { window.sf = await import('/static/sfumato.js') }")


def harness(page: Page, call: str, *arguments: Any) -> Any:
    return page.evaluate(
        f"async (given) => (await import('/static/harness.js')).{call}(...given)", [*map(plain, arguments)]
    )


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def answer(page: Page, address: str, value: Any, token: str | None = None) -> Any:
    """What the page gets for this value; or the name of the refusal, and what it says."""
    call = """async ([address, value, token]) => {
        try { return await (await sf.openCollection(address)).answer(value, token ?? undefined) }
        catch (error) { return { refused: error.name, words: error.message } }
    }"""
    return page.evaluate(call, [address, value, token])


def answers(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate("() => sf.answers()")
    return found


def flush(page: Page) -> int:
    return int(page.evaluate("() => sf.flush()"))


# -- the file ------------------------------------------------------------------------------------------------


def test_the_module_is_one_small_file_without_dependencies() -> None:
    source = MODULE.read_bytes()
    assert len(source) < 92_000
    text = source.decode()
    assert not re.search(r"^\s*(import|export)\b.*\bfrom\b|\bimport\(|\brequire\(", text, flags=re.MULTILINE)
    assert "Math.random" not in text
    assert "eval(" not in text
    assert not re.search(r"https?://", text)


def test_the_types_fit(tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        absent("node and npm, which run the type checker, are not on this machine")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = caches / "sfumato-tests" / f"typescript-{TYPESCRIPT}"
    compiler = cache / "node_modules" / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        command = [npm, "install", "--no-audit", "--no-fund", "--fetch-retries=10", "--prefix", str(cache)]
        command += [f"typescript@{TYPESCRIPT}"]
        if subprocess.run(command, capture_output=True, check=False, cwd=tmp_path).returncode != 0:
            absent(f"the type checker, typescript {TYPESCRIPT}, could not be installed")

    # All in one folder, as the collector serves them.
    for file in (MODULE, MODULE.with_suffix(".d.ts"), *PAGES.glob("*.js")):
        shutil.copy(file, tmp_path)
    # A copy of the module that has no declarations shows whether those of the module are what it exports.
    shutil.copy(MODULE, tmp_path / "undeclared.js")
    (tmp_path / "declarations.js").write_text(DECLARATIONS, encoding="utf-8")
    # A copy with one fault shows that faults are found.
    wrong = MODULE.read_text(encoding="utf-8").replace("other = draws.below(k)", "other = draws.beneath(k)")
    (tmp_path / "wrong.js").write_text(wrong, encoding="utf-8")
    options = "--noEmit --allowJs --checkJs --strict --target es2022 --lib es2022,dom,dom.iterable --module es2022"
    scripts = sorted(path.name for path in tmp_path.glob("*.js"))
    command = [node, str(compiler), *options.split(), "--moduleResolution", "bundler", *scripts]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path).stdout
    (fault,) = found.splitlines()
    assert re.match(r"wrong\.js\(\d+,\d+\): error TS2339: Property 'beneath' does not exist", fault)


# -- the same decisions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_vectors_give_the_recorded_decisions_and_reports(name: str, shared: Page) -> None:
    assert harness(shared, "replay", vectors(name)) == []


def vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
    return found


#: Faults that show in one word of 2^16 or fewer, or in the order of decisions alone.
FAULTS = {
    "auxiliary(width - read) < low": "auxiliary(width - read) <= low",
    "low > 0n && auxiliary": "auxiliary",
    "while ((value": "if ((value",
    "const truthful = draws.bernoulli(keep, ONE),": (
        "const first = draws.below(k), truthful = draws.bernoulli(keep, ONE),"
    ),
}


@pytest.mark.parametrize("right", FAULTS)
def test_a_small_fault_shows_in_the_vectors(right: str, context: BrowserContext, collector: Collector) -> None:
    broken(collector, right, FAULTS[right])
    assert harness(opened(context, collector), "replay", vectors("randomized-response"))


def broken(collector: Collector, right: str, wrong: str) -> None:
    assert collector.module.count(right) == 1
    collector.module = collector.module.replace(right, wrong)


def mechanisms() -> list[Mechanism]:
    """Others than those of the vectors: more values, more parts, other domains."""
    grid = sf.Domain.grid(latitude=(47, 55), longitude=(6, 15), rows=7, columns=11)
    pairs = sf.Domain.product(sex=["f", "m"], age=sf.Domain.range(9))
    sizes = [1, 2, 3, 5, 9, 17, 40]
    block_of = [block for block, size in enumerate(sizes) for _ in range(size)]
    random.Random(3).shuffle(block_of)
    blocks = sf.Blocks(grid, block_of, [2, "ln 2", "0.5", 1, 3, 1, 2])
    make = sf.mechanisms
    return [
        make.RandomizedResponse(grid, "0.3"),
        make.UnaryEncoding(sf.Domain.range(130), 1),
        make.SubsetSelection(pairs, 1),
        make.SubsetSelection(sf.Domain.range(300), "0.1"),
        make.HadamardResponse(sf.Domain.range(1000), 2),
        make.HadamardResponse(sf.Domain.range(2**20), "ln 3"),
        make.CyclicDesign(sf.Domain.range(1000), 1),
        make.CyclicDesign(grid, "ln 3", design=make.CyclicDesign.singer(3, 2, 3)),
        make.CyclicDesign(sf.Domain.range(90), 4, design=make.CyclicDesign.residues(97, 1, cosets=3)),
        make.BlockMechanism.for_policy(blocks),
        *(make.BlockMechanism.for_policy(blocks, inner) for inner in ("rr", "subset", "hadamard", "cyclic")),
        make.HighLowSubset(pairs, [("f", 0), ("m", 3), ("m", 8)], 1),
        make.HighLowSubset(sf.Domain.range(100), range(0, 100, 2), "0.5"),
        make.HighLowHadamard(sf.Domain.range(100), range(50), 3),
        make.HighLowCyclic(sf.Domain.range(100), range(1, 100, 2), 2),
        make.UtilityOptimizedRR(sf.Domain([0.5, 1.0, 2.0]), [1.0], "ln 2"),
        make.NestedCyclic(pairs, "abc" * 6, "0.5", 2),
        make.NestedCyclic(sf.Domain.range(1200), [x // 50 for x in range(1200)], 1, 3, max_bits=15),
        make.ComposedSubsets(grid, [x % 6 for x in range(77)], 1, 3),
        make.Waves(sf.Domain.range(500), 1),
        make.ProductMechanism(
            grid, [make.HadamardResponse(sf.Domain.range(7), 1), make.RandomizedResponse(sf.Domain.range(11), 2)]
        ),
        make.SecretRandomizedResponse(pairs, "sex", 1),
        sf.design(sf.Metric(sf.Domain.range(30), "absolute", "0.2")),
        sf.design(sf.Uniform(sf.Domain(["yes", "no"]), "ln 3")),
        *(
            sf.design(first, lifetime=lifetime)
            for first, lifetime in (
                # Permanent sets that are smaller than those of a report, alone and within parts; a response table.
                [sf.Uniform(sf.Domain.range(50), level) for level in (1, 3)],
                [sf.HighLow(sf.Domain.range(40), range(25), level) for level in (1, 3)],
                [sf.Metric(sf.Domain.range(4), "absolute", level) for level in ("0.3", "0.9")],
            )
        ),
    ]


def fresh_vectors(cases: int, seed: int) -> list[dict[str, Any]]:
    """What Python makes of random words, as in the published vectors."""
    generator = random.Random(seed)
    found = []
    for mechanism in mechanisms():
        vector: dict[str, Any] = {"spec": mechanism.spec, "cases": []}
        for _ in range(cases):
            x = generator.randrange(len(mechanism.domain))
            layout = mechanism.layout_of(x)
            frame = generator.getrandbits(layout.frame_bits)
            words: list[int] = []

            def auxiliary(width: int, words: list[int] = words) -> int:
                words.append(generator.getrandbits(64))
                return words[-1] & (1 << width) - 1

            recording = RecordingDraws(BitDraws(auxiliary, layout, frame))
            report = mechanism.report_format.encode(mechanism.sample(x, recording)).hex()
            case = {"value": x, "frame": frame.to_bytes(layout.frame_bits // 8, "little").hex(), "report": report}
            decisions = [decision.document() for decision in recording.decisions]
            vector["cases"].append(case | {"auxiliary": [*map(str, words)], "decisions": decisions})
        found.append(vector)
    return found


def test_random_words_give_what_python_makes_of_them(shared: Page, request: pytest.FixtureRequest) -> None:
    soak = request.config.getoption("--soak")
    for vector in fresh_vectors(400 if soak else 8, random.randrange(2**32) if soak else 11):
        assert harness(shared, "replay", [vector]) == []


# -- the law that is stated: what the page's promise is computed from -------------------------------------------

EPSILONS = ["0", "0.1", "0.5", "1", "2", "5", "10", "20", "inf"]


def families(epsilon: str) -> dict[str, list[Mechanism]]:
    """Every mechanism that there is, over small domains."""
    make = sf.mechanisms
    seven, pairs = sf.Domain.range(7), sf.Domain.product(sex=["f", "m"], age=sf.Domain.range(3))
    level = sf.Epsilon(epsilon)
    finite = not level.is_infinite
    across = str(level + sf.Epsilon(1)) if finite else "inf"
    counts = sf.ChiSquare([[30, 20, 10], [10, 20, 30]])
    binary = sf.Domain(["yes", "no"])
    blocks = sf.Blocks(seven, "abbccdd", epsilon)
    designs = [
        make.CyclicDesign.singer(2, 2, 3),
        make.CyclicDesign.residues(7, 2, zero=1),
        make.CyclicDesign.residues(11, 5),
    ]
    found: list[Mechanism] = [
        make.RandomizedResponse(seven, epsilon),
        make.UnaryEncoding(seven, epsilon),
        make.UnaryEncoding(seven, epsilon, optimized=True),
        *(make.SubsetSelection(seven, epsilon, size) for size in (1, 3, 6)),
        *(make.HadamardResponse(seven, epsilon, block_size=b, blocks=e) for b, e in ((2, 7), (4, 3), (8, 3), (16, 2))),
        *(make.HadamardResponse(sf.Domain.range(k), epsilon, block_size=16) for k in (1, 2, 3)),
        *(make.CyclicDesign(seven, epsilon, design=design) for design in designs),
        *(make.CyclicDesign(sf.Domain.range(k), epsilon, design=designs[0]) for k in (2, 5)),
        *(make.UtilityOptimizedRR(seven, range(s), epsilon) for s in (1, 4, 7)),
        *(make.HighLowHadamard(seven, range(s), epsilon) for s in (1, 4, 7)),
        *(make.HighLowCyclic(seven, range(s), epsilon, design=designs[0]) for s in (2, 4, 7)),
        *(make.HighLowSubset(seven, range(s), epsilon) for s in (1, 4, 7)),
        *([make.HighLowMixedSubsets(seven, range(4), epsilon)] if finite and level > sf.Epsilon(0) else []),
        *(make.BlockMechanism.for_policy(blocks, inner) for inner in (None, "rr", "hadamard", "cyclic")),
        make.BinaryOptimal(binary, epsilon, "1"),
        make.ProductMechanism(
            sf.Domain.range(6),
            [make.BinaryOptimal(binary, epsilon, "1"), make.RandomizedResponse(sf.Domain.range(3), epsilon)],
        ),
        make.SampledParts(
            sf.Domain.product(a=binary, b=range(3)),
            {
                "a": make.RandomizedResponse(binary, epsilon),
                ("a", "b"): make.RandomizedResponse(sf.Domain.range(6), epsilon),
            },
            [1, 4],
        ),
        make.binary_for_policy(sf.Prior(binary, ["1/3", "2/3"], epsilon)),
        make.PriorSymmetric(binary, ["1/2", "1/2"], epsilon),
        make.SecretRandomizedResponse(pairs, "sex", epsilon),
        make.Waves(seven, epsilon, modulus=8, waves=[(1, 1, 2, 3), (1, 4, 3, 1)]),
        make.OneBit(seven, epsilon),
        # Few and many buckets, some without a value; as many values as hash functions.
        *(make.LocalHashing(seven, epsilon, buckets=g) for g in (2, 3, 11)),
        make.LocalHashing(sf.Domain.range(4), epsilon),
        make.ShiftedBins(seven, epsilon, width=4),
        make.TruncatedGeometric(seven, epsilon),
        make.TableMechanism.from_matrix(binary, [["1/2", "1/2", 0, 0], ["1/9", 0, "8/9", 0]]),
    ]  # fmt: skip
    if finite and epsilon != "0":
        robust = sf.Secret(pairs, "sex", epsilon, counts)
        found += [make.IndependentReporting(robust), make.ConditionalReporting(robust)]
        found += [make.ConditionalUnary(robust)]
    if finite:
        lifetime = sf.Uniform(seven, across)
        repeated: list[Callable[[str], Mechanism]] = [
            lambda level: make.RandomizedResponse(seven, level),
            lambda level: make.SubsetSelection(seven, level, 3),
            lambda level: make.LocalHashing(seven, level, buckets=3),
            lambda level: make.HighLowSubset(seven, range(4), level),
            lambda level: make.BlockMechanism.for_policy(sf.Blocks(seven, "abbccdd", level)),
        ]
        found += [make.MemoizedMechanism(of(epsilon), of(across), lifetime) for of in repeated]
        found += [make.NestedCyclic(seven, labels, epsilon, across, max_bits=7) for labels in ("aaabbbb", "abbccdd")]
        found += [
            make.ComposedSubsets(seven, "abbccdd", epsilon, across, sizes=[s, b]) for s, b in ((2, 2), (5, 1), (6, 3))
        ]
    named: dict[str, list[Mechanism]] = {}
    for mechanism in found:
        named.setdefault(mechanism.name, []).append(mechanism)
    return named


def exact_ratios(mechanism: Mechanism) -> list[list[float]]:
    """The logarithm of the greatest ratio of likelihoods for each two values, by the exact law."""
    size = len(mechanism.domain)
    columns = [[mechanism.probability(y, x) for x in range(size)] for y in mechanism.reports()]

    def greatest(x: int, other: int) -> float:
        ratios = ((column[x], column[other]) for column in columns if column[x])
        return max(math.inf if not low else math.log(high / low) for high, low in ratios) if x != other else 0.0

    return [[greatest(x, other) for other in range(size)] for x in range(size)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_odds_are_those_of_the_exact_law(epsilon: str, shared: Page) -> None:
    """For every mechanism that the browser runs: the chance of a right guess exactly, ratios to twelve digits."""
    named = families(epsilon)
    everything = set(NAMES) if epsilon not in ("0", "inf") else set(named)
    assert set(named) == everything
    mechanisms = list(itertools.chain.from_iterable(named.values()))
    for mechanism, law in zip(mechanisms, harness(shared, "laws", [m.spec for m in mechanisms]), strict=True):
        size = len(mechanism.domain)
        assert Fraction(*map(int, law["greatest"])) / size == Mechanism.guess_probability(mechanism), mechanism
        exact = exact_ratios(mechanism)
        for x, other in itertools.product(range(size), repeat=2):
            found = law["ratios"][x][other]
            assert found == pytest.approx(exact[x][other], rel=1e-12, abs=1e-12), (mechanism, x, other)


def test_the_odds_of_large_mechanisms_are_those_of_the_closed_forms(shared: Page) -> None:
    found = [*mechanisms(), sf.mechanisms.UnaryEncoding(sf.Domain.range(2000), "0.5")]
    for mechanism, law in zip(found, harness(shared, "odds", [m.spec for m in found]), strict=True):
        greatest = Fraction(*(int(digits, 16) for digits in law))
        assert greatest / len(mechanism.domain) == mechanism.guess_probability(), mechanism.name


def test_averages_over_a_prior_are_those_of_the_exact_law(shared: Page) -> None:
    generator = random.Random(4)
    cases = []
    for epsilon in ("0.1", "5"):
        for mechanism in itertools.chain.from_iterable(families(epsilon).values()):
            if mechanism.name in (
                "composed-subsets",
                "high-low-mixed-subsets",
                "product",
                "sampled-parts",
                "shifted-waves",
            ):
                continue
            weights = [generator.randrange(10) for _ in mechanism.domain]
            cases.append(
                (
                    mechanism,
                    [weight / sum(weights) for weight in weights]
                    if any(weights)
                    else [1.0] + [0.0] * (len(weights) - 1),
                )
            )
    for (mechanism, prior), (upper, lower) in zip(
        cases, harness(shared, "against", [(m.spec, p) for m, p in cases]), strict=True
    ):
        columns = [[float(mechanism.probability(y, x)) for x in range(len(prior))] for y in mechanism.reports()]
        averages = [
            (sum(p * t for p, t in zip(prior, column, strict=True)), column) for column in columns if any(column)
        ]
        above = max(math.inf if not average else math.log(max(column) / average) for average, column in averages)
        below = max(
            math.inf if not min(column) and average else math.log(average / min(column)) if average else 0.0
            for average, column in averages
        )
        assert upper == pytest.approx(above, rel=1e-9, abs=1e-9), (mechanism, prior)
        assert lower == pytest.approx(below, rel=1e-9, abs=1e-9), (mechanism, prior)


def weaker(policy: sf.Policy) -> dict[str, Any]:
    """The document of a policy that asks a little more: every level less by a millionth."""
    document: dict[str, Any] = plain(policy.to_dict())

    def less(level: Any) -> Any:
        if isinstance(level, list):
            return [less(one) for one in level]
        return level if level in ("0", "inf") else str(sf.Epsilon(level) * Fraction(10**6 - 1, 10**6))

    for key in ("epsilon", "across", "matrix"):
        if key in document["policy"]:
            document["policy"][key] = less(document["policy"][key])
    return document


def test_designs_are_taken_under_their_policies_and_none_that_breaks_one(
    shared: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module and the exact law agree; only an estimated distribution it cannot decide."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    stated: list[sf.Policy] = importlib.import_module("make_law_vectors").policies()
    designs = [sf.design(policy) for policy in stated]
    pairs = [(mechanism.spec, policy.to_dict()) for mechanism, policy in zip(designs, stated, strict=True)]
    for policy, verdict in zip(stated, harness(shared, "verdicts", pairs), strict=True):
        estimated = "chi-square" in str(policy.to_dict()["policy"])
        assert verdict == ("undecided" if estimated else "proved"), policy

    # Every mechanism under every policy of its domain, and under one that asks a little more.
    cases = [
        (mechanism, document)
        for mechanism in designs
        for policy in stated
        if policy.domain == mechanism.domain
        for document in (plain(policy.to_dict()), weaker(policy))
    ]
    verdicts = harness(shared, "verdicts", [(mechanism.spec, document) for mechanism, document in cases])
    seen, laws = set(), {mechanism: mechanism.channel() for mechanism in designs}
    for (mechanism, document), verdict in zip(cases, verdicts, strict=True):
        holds = laws[mechanism].obeys(sf.policy_from_dict(document))
        seen.add((document["policy"]["kind"], verdict))
        assert verdict == "undecided" or verdict == ("proved" if holds else "PolicyViolated"), (mechanism, document)
        if verdict == "undecided":
            assert "chi-square" in str(document) or document["policy"]["kind"] in ("prior", "secret")
    for kind in ("uniform", "high-low", "blocks", "metric", "pairwise", "prior", "secret"):
        assert {(kind, "proved"), (kind, "PolicyViolated")} <= seen, kind


def test_the_identity_is_refused_under_every_policy_that_asks_anything(page: Page, collector: Collector) -> None:
    """The threshold 2^64 under ε = 1/10, served with its true hash."""
    mechanism = sf.mechanisms.RandomizedResponse(ILLNESSES, "1/10", threshold=2**64)
    found = answer(page, collector.opens("false", mechanism, "1/10"), "hiv")
    assert found["refused"] == "PolicyViolated"
    assert "uniform policy" in found["words"]
    assert answers(page) == []
    assert collector.posts == []


def test_a_policy_over_another_domain_is_refused(page: Page, collector: Collector) -> None:
    address = collector.opens("domains", sf.mechanisms.RandomizedResponse(ILLNESSES, 1))
    policy = canonical_json(sf.Uniform(sf.Domain(["none", "flu", "cancer", "hiv"]), "inf").to_dict())
    text = collector.collections["domains"]
    collector.collections["domains"] = f'{text[: text.index(chr(34) + "policy" + chr(34))]}"policy": {policy}}}'
    assert answer(page, address, "hiv")["refused"] == "InvalidInput"


def test_documents_that_only_look_like_a_policy_are_refused(shared: Page) -> None:
    """Each would let the identity pass if its numbers were taken as they are."""
    pairs = sf.Domain.product(sex=["f", "m"], age=sf.Domain.range(2))
    identity = sf.mechanisms.TableMechanism.from_matrix(pairs, np.eye(4))
    wrong: list[dict[str, Any]] = [
        {"kind": "prior", "prior": ["100"] * 4, "epsilon": "1", "side": "upper"},
        {"kind": "prior", "prior": ["2", "-1", "0", "0"], "epsilon": "1", "side": "upper"},
        {"kind": "prior", "prior": ["1/2", "1/2"], "epsilon": "1"},
        {"kind": "pairwise", "matrix": [["0"]]},
        {"kind": "pairwise", "matrix": [["0", "NaN", "1", "1"]] * 4},
        {"kind": "blocks", "blocks": [0, 1], "epsilon": "1"},
        {"kind": "metric", "distance": "furlongs", "epsilon": "1"},
        {"kind": "metric", "distance": "absolute", "epsilon": "1"},
        {"kind": "high-low", "sensitive": ["nobody"], "epsilon": "1"},
        {"kind": "uniform"},
        {"kind": "something", "epsilon": "1"},
        {"kind": "secret", "secret": "name", "epsilon": "1", "distributions": {"anything": True}},
        {"kind": "secret", "secret": "sex", "epsilon": "1", "distributions": {}},
        {"kind": "secret", "secret": "sex", "epsilon": "1", "distributions": {"known": [["1/2"], ["1/2"]]}},
        {"kind": "secret", "secret": "sex", "epsilon": "1", "distributions": {"at-least": [["2", "-1"], ["1", "0"]]}},
    ]
    cases = [(identity.spec, {"domain": pairs.to_dict(), "policy": policy}) for policy in wrong]
    for policy, verdict in zip(wrong, harness(shared, "verdicts", cases), strict=True):
        assert verdict in ("InvalidInput", "UnknownSpec", "PolicyViolated", "TypeError"), policy


@pytest.mark.parametrize("level", ["1", "0.1", "3/2", "ln 3", "1/2*ln 3", "ln 3/2", "1+ln 2", "-1+ln 5", "0", "inf"])
def test_levels_are_read_as_python_reads_them(level: str, shared: Page) -> None:
    epsilon = sf.Epsilon(level)
    (found,) = harness(shared, "levels", [str(epsilon)])
    assert found == pytest.approx(float(epsilon), rel=1e-14)


@pytest.mark.parametrize("text", ["", "one", "ln", "1//2", "NaN", "-", "1e3", "ln 0/0"])
def test_what_is_no_level_is_refused(text: str, shared: Page) -> None:
    with pytest.raises(Exception, match="a level must be a number"):
        harness(shared, "levels", [text])


# -- the law that runs -------------------------------------------------------------------------------------


def sampler(page: Page, mechanism: Mechanism) -> Callable[[Any, int], list[bytes]]:
    length = (mechanism.bits + 7) // 8

    def reports(value: Any, count: int) -> list[bytes]:
        data = bytes.fromhex(harness(page, "sample", mechanism.spec, mechanism.domain.index(value), count))
        return [data[i * length : (i + 1) * length] for i in range(count)]

    return reports


def audited(
    page: Page, mechanism: Mechanism, policy: sf.Policy, trials: int, values: list[str] | None = None
) -> sf.SamplerAudit:
    return sf.audit_sampler(sampler(page, mechanism), policy, trials, batch=True, values=values)


ILLNESSES = sf.Domain(["none", "flu", "hiv", "cancer"])


@pytest.fixture
def few() -> list[tuple[Mechanism, sf.Policy]]:
    uniform, response = sf.Uniform(ILLNESSES, 1), sf.mechanisms.RandomizedResponse(ILLNESSES, 1)
    high_low = sf.HighLow(ILLNESSES, ["hiv", "cancer"], "0.5")
    return [
        (response, uniform),
        (sf.mechanisms.SubsetSelection(ILLNESSES, 1), uniform),
        (sf.mechanisms.UtilityOptimizedRR(ILLNESSES, ["hiv", "cancer"], "0.5"), high_low),
        (sf.mechanisms.TableMechanism.from_matrix(ILLNESSES, response.matrix()), uniform),
    ]


def test_the_law_stands_the_audit_of_samplers(
    few: list[tuple[Mechanism, sf.Policy]], page: Page, request: pytest.FixtureRequest
) -> None:
    """Honest samplers are accused with probability 1e-6 each; seeded, but for the long run."""
    soak = request.config.getoption("--soak")
    if not soak:
        harness(page, "seed", 5)
    for mechanism, policy in few:
        found = audited(page, mechanism, policy, 100_000 if soak else 4_000)
        assert not found.violated, found
        assert float(found.epsilon) - found.epsilon_lower < (0.15 if soak else 0.6), "the audit saw next to nothing"


#: What a careless port might do: hardly any noise, one draw for two decisions, a value forced into a set of full size.
LEAKS = {
    "BigInt(truthful ? x : other)": "BigInt(other === 0 ? other : x)",
    "const positions = field(layout, next++)": "const positions = field(layout, 0 * next++)",
    "turn(bit)\n": "\n",
}


@pytest.mark.parametrize("right", LEAKS)
def test_the_audit_finds_a_broken_module(
    right: str, few: list[tuple[Mechanism, sf.Policy]], context: BrowserContext, collector: Collector
) -> None:
    broken(collector, right, LEAKS[right])
    page = opened(context, collector)
    harness(page, "seed", 5)
    assert any(audited(page, mechanism, policy, 4_000).violated for mechanism, policy in few[:2])


@pytest.mark.soak
def test_the_long_audit_finds_five_percent(
    few: list[tuple[Mechanism, sf.Policy]],
    context: BrowserContext,
    collector: Collector,
) -> None:
    right = '"randomized-response": (p, k) => {\n\t\tconst keep = integer(p.threshold)'
    broken(collector, right, f"{right} * 21n / 20n")
    mechanism, policy = few[0]
    assert audited(opened(context, collector), mechanism, policy, 600_000, ["none", "flu"]).violated


# -- what is kept and sent -----------------------------------------------------------------------------------


#: Two draws of this are never the same.
WIDE = sf.mechanisms.UnaryEncoding(sf.Domain.range(256), "0.1")


def sent_reports(collector: Collector, address: str) -> list[Any]:
    path = address.removeprefix(collector.origin) + "/reports"
    return [report for where, report in collector.counted.values() if where == path]


#: What is kept of an answer to a collection without a version before it.
KEPT = {"collection", "mechanism", "policy", "report", "batch", "state", "question"}


def test_an_answer_is_kept_then_sent_and_its_value_is_kept_nowhere(page: Page, collector: Collector) -> None:
    address = collector.opens("health", sf.mechanisms.RandomizedResponse(ILLNESSES, 1))
    given = answer(page, address, "hiv")
    assert given.pop("repeated") is False
    assert {key for key, value in given.items() if value is not None} == KEPT
    assert (given["state"], given["collection"]) == ("waiting", address)
    assert flush(page) == 0
    assert sent_reports(collector, address) == [int(given["report"])]
    assert [kept["state"] for kept in answers(page)] == ["sent"]
    assert answers(page)[0] | {"state": "waiting"} == given
    assert "hiv" not in json.dumps([{**kept, "policy": ""} for kept in answers(page)])


@pytest.mark.parametrize("name", NAMES)
def test_reports_are_sent_as_the_collector_reads_them(name: str, shared: Page, collector: Collector) -> None:
    for number, vector in enumerate(vectors(name)):
        mechanism = sf.mechanism_from_spec(vector["spec"])
        address = collector.opens(f"{name}{number}", mechanism)
        last = len(mechanism.domain) - 1
        given = answer(shared, address, mechanism.domain.label(last))
        assert flush(shared) == 0
        (sent,) = sent_reports(collector, address)
        assert sent == json.loads(given["report"])
        if mechanism.report_format.encoding == "index":
            report = sent
        else:
            assert len(bytes.fromhex(sent)) == (mechanism.bits + 7) // 8
            report = int.from_bytes(bytes.fromhex(sent), "little")
        assert mechanism.probability(report, last) > 0


def test_a_second_answer_is_the_first_one_whatever_its_value(page: Page, collector: Collector) -> None:
    address = collector.opens("wide", WIDE)
    first = answer(page, address, 3)
    flush(page)
    again = answer(page, address, 200)
    assert (again["report"], again["batch"]) == (first["report"], first["batch"])
    page.reload()
    ready(page)
    known = page.evaluate("async (address) => (await sf.openCollection(address)).answered()", address)
    assert (known["report"], known["state"]) == (first["report"], "sent")
    assert len(collector.posts) == 1


def test_two_tabs_that_answer_at_once_draw_once(context: BrowserContext, collector: Collector) -> None:
    pages = [opened(context, collector) for _ in range(2)]
    both = "(a) => { window.given = sf.openCollection(a).then((c) => Promise.all([c.answer(1), c.answer(2)])) }"
    for number in range(5):
        address = collector.opens(f"tabs{number}", WIDE)
        for page in pages:
            page.evaluate(both, address)
        reports = {given["report"] for page in pages for given in page.evaluate("() => window.given")}
        assert len(reports) == 1
        assert [flush(page) for page in pages] == [0, 0]
        assert sent_reports(collector, address) == [json.loads(*reports)]


def test_a_reload_in_the_middle_of_an_answer_changes_nothing(page: Page, collector: Collector) -> None:
    """Whatever was stored when the page went away is what is shown, and what arrives, once."""
    start = "(a) => { sf.openCollection(a).then((c) => setTimeout(() => c.answer(1), %d)) }"
    for number in range(24):
        address = collector.opens(f"reload{number}", WIDE)
        collector.way = ("counts", "loses answers", "busy")[number % 3]
        page.evaluate(start % (number // 2), address)
        page.wait_for_timeout(number // 2)
        page.reload()
        ready(page)
        kept = [record for record in answers(page) if record["collection"] == address]
        before = sent_reports(collector, address)
        collector.way = "counts"
        given = answer(page, address, 77)
        assert not kept or given["report"] == kept[0]["report"]
        assert flush(page) == 0
        assert sent_reports(collector, address) == [json.loads(given["report"])]
        assert before in ([], [json.loads(given["report"])])


def test_an_answer_given_offline_arrives_once_and_later(context: BrowserContext, collector: Collector) -> None:
    page = opened(context, collector)
    address = collector.opens("offline", WIDE)
    page.evaluate("async (address) => { window.collection = await sf.openCollection(address) }", address)
    context.set_offline(True)
    given = page.evaluate("() => collection.answer(7)")
    assert flush(page) == 1
    assert not collector.posts
    context.set_offline(False)  # which the page is told of
    wait_until_sent(page)
    assert sent_reports(collector, address) == [json.loads(given["report"])]
    ((_, _, body),) = collector.posts
    assert body == {"batch": given["batch"], "report": json.loads(given["report"])}


def test_an_answer_of_a_page_that_was_closed_arrives_later(context: BrowserContext, collector: Collector) -> None:
    page = opened(context, collector)
    address = collector.opens("closed", WIDE)
    page.evaluate("async (address) => { window.collection = await sf.openCollection(address) }", address)
    context.set_offline(True)
    given = page.evaluate("() => collection.answer(7)")
    page.close()
    context.set_offline(False)
    later = opened(context, collector)
    wait_until_sent(later)
    assert sent_reports(collector, address) == [json.loads(given["report"])]
    later.reload()
    ready(later)
    assert flush(later) == 0
    assert len(collector.posts) == 1


def wait_until_sent(page: Page) -> None:
    # Not by wait_for_function: a promise is true to it before it is kept.
    sent = "(await sf.answers()).every(({ state }) => state === 'sent')"
    for _ in range(6000):
        if page.evaluate(f"async () => {sent}"):
            return
        page.wait_for_timeout(10)
    pytest.fail("the answers were not sent in a minute")


@pytest.mark.parametrize("way", ["loses answers", "busy", "portal", *FIREWALLS])
def test_what_was_not_acknowledged_is_sent_again_under_its_batch_id(way: str, page: Page, collector: Collector) -> None:
    address = collector.opens("again", WIDE)
    collector.way = way
    given = answer(page, address, 1)
    assert flush(page) == 1
    assert [kept["state"] for kept in answers(page)] == ["waiting"]
    collector.way = "counts"
    assert flush(page) == 0
    assert {body["batch"] for _, _, body in collector.posts} == {given["batch"]}
    assert len(collector.posts) > 1
    assert sent_reports(collector, address) == [json.loads(given["report"])]


def test_without_web_locks_answers_are_sent_all_the_same(context: BrowserContext, collector: Collector) -> None:
    context.add_init_script("Object.defineProperty(Navigator.prototype, 'locks', { get: () => undefined })")
    page = opened(context, collector)
    address = collector.opens("no-locks", WIDE)
    given = answer(page, address, 1)
    assert flush(page) == 0
    assert sent_reports(collector, address) == [json.loads(given["report"])]


def test_without_storage_nothing_is_drawn_and_the_page_hears_of_it(
    context: BrowserContext, collector: Collector
) -> None:
    context.add_init_script("IDBDatabase.prototype.transaction = () => { throw new DOMException('blocked') }")
    page = opened(context, collector)
    assert answer(page, collector.opens("no-storage", WIDE), 1)["words"] == "blocked"
    assert not collector.posts


def test_a_link_fixes_the_mechanism(page: Page, collector: Collector) -> None:
    address = collector.opens("fixed", WIDE)
    open_it = """async ([address, start]) => {
        try { return (await sf.openCollection(address, start)).id } catch (error) { return error.name }
    }"""
    assert page.evaluate(open_it, [address, WIDE.hash[:32]]) == "fixed"
    assert page.evaluate(open_it, [address, "0" * 32]) == "HashMismatch"


def test_a_token_is_sent_with_the_report_and_forgotten(page: Page, collector: Collector) -> None:
    address = collector.opens("tokens", WIDE, submission="token")
    assert answer(page, address, 1)["refused"] == "TokenNeeded"
    assert answers(page) == []
    collector.way = "refuses"
    given = answer(page, address, 1, "wrong")
    assert flush(page) == 0
    (kept,) = answers(page)
    assert (kept["state"], kept["problem"]["reason"], kept["token"]) == ("refused", "token-unknown", None)
    collector.way = "counts"
    assert answer(page, address, 1)["state"] == "refused"  # nothing is sent again without another token
    again = answer(page, address, 1, "right")
    assert flush(page) == 0
    assert (again["report"], again["batch"]) == (given["report"], given["batch"])
    assert [authorization for _, authorization, _ in collector.posts] == ["Bearer wrong", "Bearer right"]
    assert [(kept["state"], kept["token"]) for kept in answers(page)] == [("sent", None)]


def test_what_was_spent_is_a_ledger_that_python_reads(page: Page, collector: Collector) -> None:
    mechanism = sf.mechanisms.RandomizedResponse(ILLNESSES, "0.5")
    for name, epsilon in (("spring", "0.5"), ("autumn", "ln 3")):
        answer(page, collector.opens(name, mechanism, epsilon), "flu")
    # The expression of docs/browser-client.md.
    said = (ROOT / "docs" / "browser-client.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```js\n(const ledger = .*?)^```$", said, re.MULTILINE | re.DOTALL)
    ledger = Ledger.from_json(page.evaluate(f"async () => {{ const {{ answers }} = sf; {code}; return ledger }}"))
    assert ledger.spent(ILLNESSES) == sf.Uniform(ILLNESSES, "0.5 + ln 3")
    assert {release.mechanism for release in ledger.releases} == {mechanism.hash}


# -- the same question again -----------------------------------------------------------------------------------


def test_the_same_question_is_answered_from_memory(page: Page, collector: Collector) -> None:
    """Twelve collections that ask the same draw once, whatever is answered the second time."""
    sent = set()
    for number in range(12):
        address = collector.opens(
            f"wave{number}", WIDE, title=" Where  do you live?" if number % 2 else "Where do you LIVE?"
        )
        given = answer(page, address, number)
        assert given["repeated"] == (number > 0)
        sent.add(given["report"])
    assert flush(page) == 0
    assert len(sent) == 1
    assert len(collector.posts) == len(collector.counted) == 12
    assert {kept.get("drawn") for kept in answers(page)} == {None, f"{collector.origin}/v1/collections/wave0"}
    # Another question, and the same one with another mechanism, are drawn for.
    others = [collector.opens("other", WIDE, title="Where do you work?")]
    others += [
        collector.opens("finer", sf.mechanisms.RandomizedResponse(WIDE.domain, "12.5"), title="Where do you live?")
    ]
    again = "async (address) => (await sf.openCollection(address)).drawnAgain()"
    assert [page.evaluate(again, address) for address in others] == [False, True]
    assert [answer(page, address, 1)["repeated"] for address in others] == [False, False]


def test_another_version_of_a_collection_is_answered_from_memory(page: Page, collector: Collector) -> None:
    for first, second in (("spring1", "autumn1"), ("autumn2", "spring2")):  # in either order
        number = first[-1]
        collector.opens(f"spring{number}", WIDE, title=f"Spring {number}")
        collector.opens(f"autumn{number}", WIDE, title=f"Autumn {number}", previous=f"spring{number}")
        addresses = [f"{collector.origin}/v1/collections/{name}" for name in (first, second)]
        given = [answer(page, address, value) for address, value in zip(addresses, (1, 2), strict=True)]
        assert [one["repeated"] for one in given] == [False, True]
        assert given[0]["report"] == given[1]["report"]
        assert given[0]["batch"] != given[1]["batch"]


def test_a_kept_reply_needs_no_value_and_nothing_else_does_without(page: Page, collector: Collector) -> None:
    first, second = (collector.opens(name, WIDE, title="The same") for name in ("first", "second"))
    call = "async (address) => (await sf.openCollection(address)).answer().catch((error) => error.name)"
    assert page.evaluate(call, first) == "InvalidInput"
    given = answer(page, first, 1)
    remembered = "async (address) => (await (await sf.openCollection(address)).remembered())?.collection ?? null"
    assert page.evaluate(remembered, second) == first
    assert page.evaluate(call, second)["report"] == given["report"]
    assert page.evaluate(call, first)["repeated"] is True
    assert answer(page, second, "nothing of the domain")["refused"] == "InvalidInput"


# -- waves -------------------------------------------------------------------------------------------------------


def weekly(values: int, epsilon: str, lifetime: str, **settings: int) -> sf.mechanisms.MemoizedMechanism:
    """Randomized response with permanent answers."""
    domain = sf.Domain.range(values)
    single = sf.mechanisms.RandomizedResponse(domain, epsilon)
    first, total = sf.Uniform(domain, epsilon), sf.Uniform(domain, lifetime)
    return sf.mechanisms.MemoizedMechanism.for_policies(single, first, total, **settings)


def answer_wave(page: Page, collector: Collector, name: str, mechanism: Mechanism, wave: int, value: Any) -> Any:
    """What the page gets for this value in a wave."""
    waves = {"count": 30, "days": 7, "start": 0, "current": wave, "next": None}
    return answer(page, collector.opens(name, mechanism, waves=waves), value)


def permanent_answers(page: Page) -> list[dict[str, str]]:
    return [each for record in answers(page) for each in record.get("kept", [])]


def answer_waves(page: Page, collector: Collector) -> list[dict[str, Any]]:
    """The answers to 25 waves with one value, which is the permanent answer; half of the reports are this value."""
    mechanism = weekly(1000, "ln 999", "inf")
    given = [answer_wave(page, collector, "weekly", mechanism, wave, 777) for wave in range(25)]
    assert flush(page) == 0
    assert len({each["batch"] for each in given}) == 25
    return given


def check_fresh_reports(given: list[dict[str, Any]]) -> None:
    """Check that the reports of the waves are independent draws."""
    reports = [int(each["report"]) for each in given]
    # At most 1 of 25 reports is the value, or at least 24, with probability below 1e-6 each.
    assert 1 < reports.count(777) < 24, "reports repeat"
    assert len(set(reports)) > 2, "reports repeat"


def test_every_wave_sends_a_new_report_about_one_permanent_answer(page: Page, collector: Collector) -> None:
    given = answer_waves(page, collector)
    check_fresh_reports(given)
    reports = [int(each["report"]) for each in given]
    (permanent,) = permanent_answers(page)
    assert permanent["answer"] == "777"
    sent = [(body["wave"], body["report"]) for _, _, body in collector.posts]
    assert sorted(sent) == list(enumerate(reports))
    again = answer_wave(page, collector, "weekly", weekly(1000, "ln 999", "inf"), 3, 5)
    assert (again["report"], again["batch"], again["repeated"]) == (given[3]["report"], given[3]["batch"], True)
    assert flush(page) == 0
    assert len(collector.posts) == 25


#: The draws of a report, and faults that use the randomness of an earlier wave again.
REPORT_DRAWS = "memory.report(BigInt(permanent.answer), secureDraws(mechanism.layoutOf(x)))"
REUSED = {
    "the report": (
        "report: written(memory.report(",
        "report: all.find((one) => one.about === permanent.key)?.report ?? written(memory.report(",
    ),
    "the random words": (
        REPORT_DRAWS,
        """memory.report(BigInt(permanent.answer), ((words, next = 0) => bitDraws(
            (width) => BigInt.asUintN(width, BigInt(`0x${hex(words[next++] ??= randomBytes(8))}`)),
            mechanism.layoutOf(x),
            words.frame ??= randomBytes(mechanism.layoutOf(x).frame_bits / 8),
        ))(globalThis.reusedWords ??= []))""",
    ),
    "the random words of two waves in turn": (
        REPORT_DRAWS,
        """memory.report(BigInt(permanent.answer), ((words, next = 0) => bitDraws(
            (width) => BigInt.asUintN(width, BigInt(`0x${hex(words[next++] ??= randomBytes(8))}`)),
            mechanism.layoutOf(x),
            words.frame ??= randomBytes(mechanism.layoutOf(x).frame_bits / 8),
        ))((globalThis.reusedWords ??= [[], []])[wave % 2]))""",
    ),
}


@pytest.mark.parametrize("fault", REUSED)
def test_randomness_that_is_used_again_shows(fault: str, context: BrowserContext, collector: Collector) -> None:
    broken(collector, *REUSED[fault])
    given = answer_waves(opened(context, collector), collector)
    with pytest.raises(AssertionError, match="reports repeat"):
        check_fresh_reports(given)


def test_later_waves_have_the_mechanism_of_the_first(page: Page, collector: Collector) -> None:
    """A collector that serves another mechanism in a later wave would get further permanent answers at its levels."""
    answer_wave(page, collector, "weekly", weekly(9, "1", "2"), 0, 3)
    flush(page)
    before, posts = answers(page), len(collector.posts)
    for other in (weekly(9, "3", "4"), weekly(9, "1", "2", max_changes=7), weekly(9, "1", "2", refresh_every=1)):
        for wave in (0, 1):
            assert answer_wave(page, collector, "weekly", other, wave, 3)["refused"] == "HashMismatch"
    flush(page)
    assert (answers(page), len(collector.posts)) == (before, posts)
    assert answer_wave(page, collector, "weekly", weekly(9, "1", "2"), 1, 3)["repeated"] is False
    assert len(permanent_answers(page)) == 1


def test_an_exhausted_memory_keeps_answering(page: Page, collector: Collector) -> None:
    # Every report is the permanent answer, which is the value, so reports show what the device speaks about.
    limited, scheduled = (weekly(9, "inf", "inf", max_changes=1, **more) for more in ({}, {"refresh_every": 2}))
    values = [4, 5, 6, 4, 7, 5]
    for name, mechanism in (("limited", limited), ("scheduled", scheduled)):
        given = [answer_wave(page, collector, name, mechanism, wave, value) for wave, value in enumerate(values)]
        reported = mechanism.effective_values([values])[0].tolist()
        assert [int(each["report"]) for each in given] == reported
    assert len(permanent_answers(page)) == 4


def test_collections_with_the_same_question_share_permanent_answers(page: Page, collector: Collector) -> None:
    mechanism = weekly(9, "1", "inf")
    for name, value in (("first", 3), ("second", 3), ("second", 4), ("first", 4)):
        waves = {"count": 9, "days": None, "start": 0, "current": value, "next": None}
        answer(page, collector.opens(name, mechanism, title="The same question", waves=waves), value)
    assert sorted(each["answer"] for each in permanent_answers(page)) == ["3", "4"]


def test_a_wave_that_is_over_or_not_memoized_is_refused(page: Page, collector: Collector) -> None:
    over = {"count": 2, "days": 7, "start": 0, "current": None, "next": None}
    address = collector.opens("over", weekly(9, "1", "2"), waves=over)
    assert answer(page, address, 3)["refused"] == "NotOpen"
    assert answer_wave(page, collector, "once", WIDE, 0, 3)["refused"] == "InvalidInput"
    assert answer_wave(page, collector, "strict", weekly(9, "1", "2"), 0, 9)["refused"] == "InvalidInput"
    assert answers(page) == []


#: Stops the page at its n-th write: the transaction is on disk, and nothing after it runs.
STOP = """([address, value, n]) => new Promise((stopped) => {
    const put = IDBObjectStore.prototype.put
    IDBObjectStore.prototype.put = function (...given) {
        if (n-- > 0) return put.apply(this, given)
        stopped()
        throw new Error("the page was closed here")
    }
    window.fetch = ((fetch) => (...given) => {
        if (given[1]?.method === "POST") { stopped(); return new Promise(() => 0) }
        return fetch(...given)
    })(window.fetch)
    sf.openCollection(address).then((collection) => collection.answer(value)).catch(() => 0)
})"""


def kills(context: BrowserContext, collector: Collector, rounds: int) -> list[tuple[list[Any], list[Any]]]:
    """Close pages between two steps of an answer; return permanent answers and reports before and after each."""
    mechanism = weekly(2**16, "ln 60000", "inf", max_changes=9)
    found = []
    for wave in range(rounds):
        value = (wave + 2) // 3  # a new one whenever the page ends after one write
        waves = {"count": 99, "days": 7, "start": 0, "current": wave, "next": None}
        address = collector.opens("killed", mechanism, waves=waves)
        page = opened(context, collector)
        page.evaluate(STOP, [address, value, wave % 3])
        page.close()
        later = opened(context, collector)
        before = permanent_answers(later), [each for each in answers(later) if each.get("wave") == wave]
        given = answer(later, address, value)
        assert flush(later) == 0
        found.append(([before[0], permanent_answers(later)], [before[1], given]))
        later.close()
    return found


def check_kills(found: list[tuple[list[Any], list[Any]]], collector: Collector) -> None:
    for (before, after), (stored, given) in found:
        assert after[: len(before)] == before  # nothing is drawn again
        assert [(each["report"], each["batch"]) for each in stored] in ([], [(given["report"], given["batch"])])
    waves = {given["wave"]: given for _, (_, given) in found}
    assert len(found[-1][0][1]) == len({(wave + 2) // 3 for wave in waves}), "an answer was drawn again"
    # Every wave was sent under one batch id with the same bytes.
    sent = {(body["wave"], body["batch"], body["report"]) for _, _, body in collector.posts}
    assert sent == {(wave, given["batch"], int(given["report"])) for wave, given in waves.items()}


def test_a_page_closed_between_two_draws_draws_nothing_again(context: BrowserContext, collector: Collector) -> None:
    found = kills(context, collector, 12)
    check_kills(found, collector)
    # Every third page ended after the permanent answer and before the report, every third after both.
    new = [len(before) - len(found[max(wave - 1, 0)][0][1]) for wave, ((before, _), _) in enumerate(found)]
    assert new[1:] == [1, 0, 0] * 3 + [1, 0]
    assert [len(stored) for _, (stored, _) in found] == [0, 0, 1] * 4


#: Faults that draw a permanent answer again: in every wave, and in every page that is loaded.
REDRAWN = {
    "in every wave": ("if (one.key === (await keyed(earlier ?? 0n, one.salt))) return one", "if (!one.key) return one"),
    "after a reload": ('every ? "time" : "value"', 'every ? "time" : globalThis.visit ??= hex(randomBytes(8))'),
}


@pytest.mark.parametrize("fault", REDRAWN)
def test_a_permanent_answer_that_is_drawn_again_shows(
    fault: str, context: BrowserContext, collector: Collector
) -> None:
    broken(collector, *REDRAWN[fault])
    found = kills(context, collector, 3)
    with pytest.raises(AssertionError, match="an answer was drawn again"):
        check_kills(found, collector)


def test_the_ledger_of_waves_counts_permanent_answers(page: Page, collector: Collector) -> None:
    mechanism = weekly(4, "1", "2")
    for wave, value in enumerate([1, 1, 2, 1]):
        answer_wave(page, collector, "weekly", mechanism, wave, value)
    said = (ROOT / "docs" / "browser-client.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```js\n(const ledger = .*?)^```$", said, re.MULTILINE | re.DOTALL)
    ledger = Ledger.from_json(page.evaluate(f"async () => {{ const {{ answers }} = sf; {code}; return ledger }}"))
    assert ledger.spent(mechanism.domain) == mechanism.lifetime_policy(1)


# -- documents, and what is refused ----------------------------------------------------------------------------


AWKWARD = [
    sf.Domain([0.5, 1.0, 1e16, 1e-7, -2.5e-300]),
    sf.Domain(['quoted "label"', "back\\slash", "tab\t", "é", "日本", "😀", "\u2028", "\x7f", "\x01", "1", "n1"]),
    sf.Domain([False, True]),
    sf.Domain([-3, 2**53 - 1, 7]),
    sf.Domain.product(ünï=["a", "b"], cell=sf.Domain.grid(latitude=(0, 1.5), longitude=(-1e-5, 1), rows=2, columns=3)),
]


def test_documents_have_the_hash_that_python_gives_them(page: Page, collector: Collector) -> None:
    places = "async ([address, labels]) => labels.map((await sf.openCollection(address)).domain.place)"
    for number, domain in enumerate(AWKWARD):
        address = collector.opens(f"awkward{number}", sf.mechanisms.RandomizedResponse(domain, "inf"))
        assert page.evaluate(places, [address, plain(list(domain))]) == list(range(len(domain)))
        assert answer(page, address, plain(domain.label(1)))["report"] == "1"


def test_values_that_are_not_of_the_domain_have_no_place(page: Page, collector: Collector) -> None:
    places = "async ([address, values]) => values.map((await sf.openCollection(address)).domain.place)"
    pairs = sf.Domain.product(sex=["f", "m"], age=sf.Domain.range(9))
    cases: list[tuple[str, sf.Domain, list[Any]]] = [
        ("labels", sf.Domain(["1", "2"]), [1, None, "3", [], True]),
        ("range", sf.Domain.range(5), ["1", 5, -1, 1.5, True, None]),
        ("pairs", pairs, [["f"], ["f", 9], "f", None, {"sex": "f"}, ["x", 1]]),
    ]
    for name, domain, wrong in cases:
        address = collector.opens(name, sf.mechanisms.RandomizedResponse(domain, 1))
        assert page.evaluate(places, [address, wrong]) == [-1] * len(wrong)
        assert answer(page, address, wrong[0])["refused"] == "InvalidInput"
    assert page.evaluate(places, [address, [{"age": 4, "sex": "m"}]]) == [13]


def refused(spec: dict[str, Any], page: Page, collector: Collector) -> tuple[str, str]:
    """How a spec is refused whose hash is right."""
    address = collector.opens("refused", spec, mechanism_hash=canonical_hash(spec))
    found = answer(page, address, 0)
    assert answers(page) == []
    return found["refused"], found["words"]


def test_unknown_specs_are_refused_by_name(page: Page, collector: Collector) -> None:
    spec = plain(sf.mechanisms.RandomizedResponse(sf.Domain.range(5), 1).spec)
    for change, named in (
        ({"mechanism": "quantum-response"}, "quantum-response"),
        ({"mechanism": "constructor"}, "constructor"),
        ({"version": 2}, "2"),
        ({"domain": {"file": "labels.csv"}}, "labels.csv"),
    ):
        name, words = refused(spec | change, page, collector)
        assert name == "UnknownSpec"
        assert named in words


def test_wrong_parameters_are_refused(page: Page, collector: Collector) -> None:
    spec = plain(sf.mechanisms.RandomizedResponse(sf.Domain.range(5), 1).spec)
    for threshold in ("-1", "1e3", "1.5", str(2**64 + 1), "", 0.5, None, True, [1], 2**60):
        parameters = {"epsilon": "1", "threshold": threshold}
        assert refused(spec | {"parameters": parameters}, page, collector)[0] == "InvalidInput"


def test_decisions_that_would_share_bits_are_refused(page: Page, collector: Collector) -> None:
    spec = plain(sf.mechanisms.RandomizedResponse(sf.Domain.range(5), 1).spec)
    for numbers in ([[16, 32], [0, 32]], [[32, 32], [0, 33]], [[33, 32], [0, 32]], [[-1, 32], [32, 32]]):
        assert refused(spec | {"layout": spec["layout"] | {"numbers": numbers}}, page, collector)[0] == "InvalidInput"
    # Bits of a part of a byte, which would never be drawn and read as 0.
    for bits in (3, 7, 63):
        layout = {"frame_bits": bits, "numbers": [[0, bits]], "lanes": 0, "planes": 0, "planes_start": 0}
        assert refused(spec | {"layout": layout}, page, collector)[0] == "InvalidInput"
    # Too few bits for its decision.
    layout = spec["layout"] | {"numbers": [[32, 32], [0, 2]]}
    with pytest.raises(Exception, match="choose among 5"):
        harness(page, "sample", spec | {"layout": layout}, 0, 1)


def test_weights_that_do_not_sum_to_one_are_refused(page: Page, collector: Collector) -> None:
    spec = plain(sf.mechanisms.TableMechanism(sf.Domain.range(2), [[2**61, 2**61], [2**62, 0]]).spec)
    half, whole = str(2**61), str(2**62)
    for weights in ([[half, str(2**61 - 1)], [whole, "0"]], [[whole], [half, half]], [[whole, "0"]], [], None):
        changed = {"parameters": spec["parameters"] | {"weights": weights}}
        assert refused(spec | changed, page, collector)[0] == "InvalidInput"


def test_the_distribution_that_a_table_was_designed_for_changes_no_report(page: Page) -> None:
    weights, sampled = [[2**61, 2**60, 2**60], [0, 2**61, 2**61]], []
    for design_prior in (None, [2**60, 3 * 2**60]):
        table = sf.mechanisms.TableMechanism(sf.Domain.range(2), weights, design_prior=design_prior)
        harness(page, "seed", 5)
        sampled.append([harness(page, "sample", plain(table.spec), x, 50) for x in (0, 1)])
    assert sampled[0] == sampled[1]


def test_a_mechanism_that_does_not_fit_its_hash_is_refused(page: Page, collector: Collector) -> None:
    right = sf.mechanisms.RandomizedResponse(sf.Domain.range(5), 1)
    other = sf.mechanisms.RandomizedResponse(sf.Domain.range(5), "inf")
    address = collector.opens("swapped", plain(other.spec), mechanism_hash=right.hash)
    assert answer(page, address, 0)["refused"] == "HashMismatch"
    assert answers(page) == []


def test_a_collection_that_is_not_open_is_refused_before_anything_is_drawn(page: Page, collector: Collector) -> None:
    address = collector.opens("closed", WIDE, state="closed")
    assert answer(page, address, 0)["refused"] == "NotOpen"
    assert answer(page, f"{collector.origin}/v1/collections/nothing", 0)["refused"] == "NotFound"
    assert answers(page) == []


def test_a_collection_has_one_address(page: Page, collector: Collector) -> None:
    """Answers are kept under it: a second one would be a second draw."""
    address = collector.opens("abc", WIDE)
    given = answer(page, address, 1)
    for path in ("collections/%61bc", "collections/abc?", "collections/abc#", "%63ollections/abc"):
        for end in ("", "?x=/v1/collections/abc", "#/v1/collections/abc"):
            assert answer(page, f"{collector.origin}/v1/{path}{end}", 2)["refused"] == "InvalidInput", (path, end)
    collector.collections["other"] = collector.collections["abc"]
    assert answer(page, f"{collector.origin}/v1/collections/other", 2)["refused"] == "InvalidInput"
    assert answer(page, f"{collector.origin}/v1/x/../collections/abc", 2)["report"] == given["report"]
    assert [kept["collection"] for kept in answers(page)] == [address]


def test_a_page_that_is_not_secure_is_refused(context: BrowserContext, collector: Collector) -> None:
    page = context.new_page()
    page.goto(collector.origin.replace("127.0.0.1", "sfumato.test"))
    name = page.evaluate("() => import('/static/sfumato.js').then(() => 'loaded', (error) => error.name)")
    assert name == "InsecurePage"
