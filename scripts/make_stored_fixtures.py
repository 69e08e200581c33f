"""Write a document of every format that is stored or sent, with the results that this release computes from it.

The files in ``tests/stored`` were written by this script with the sources of the commit that its README names. They
are frozen: later releases must read them and compute the same results (``tests/test_stored_formats.py``). The script
takes an empty folder as its argument, so that it cannot replace them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato._aggregate.checkpoint import Checkpoint, state_of
from sfumato.client import Client
from sfumato.mechanisms import (
    BinaryOptimal,
    BlockMechanism,
    ComposedSubsets,
    ConditionalReporting,
    ConditionalUnary,
    HadamardResponse,
    HighLowHadamard,
    HighLowSubset,
    IndependentReporting,
    Mechanism,
    NestedSubsets,
    PriorBinary,
    PriorSymmetric,
    RandomizedResponse,
    SecretRandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UnaryEncoding,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
)
from sfumato.mechanisms.metric_exponential import best_exponential
from sfumato.reports import decode_batch, encode_batch
from sfumato.reports.files import write_reports
from sfumato.reports.lines import write_lines
from sfumato.reports.sources import Source
from sfumato.server.store import Submission, open_store
from sfumato.server.store.sqlite import PendingBatchIds

#: Number of reports that are counted per mechanism, and number of these that are stored.
COUNTED, STORED = 600, 24
#: Maximum number of values of a mechanism whose counts are stored.
MOST_VALUES = 80
#: Maximum number of values of a mechanism whose results are all stored.
SURROGATE_VALUES = 20
#: Modification time of report files in nanoseconds; fixed, because a checkpoint records it.
MODIFIED = 1_760_000_000_000_000_000

FEW = sf.Domain(["none", "flu", "hiv", "cancer", "other"])
MORE = sf.Domain.range(70)
TWO = sf.Domain(["no", "yes"])
PAIRS = sf.Domain.product(S=["s", "t"], U=["u", "v"])
GRID = sf.Domain.grid(latitude=(0, 2), longitude=(0, 3), rows=2, columns=3)
LABELLED = [
    sf.Domain([True, False]),
    sf.Domain([0.5, -1.25, 1e-7]),
    sf.Domain([3, -1, 2**40]),
    sf.Domain(["é", "日本", '"\\"', ""]),
    sf.Domain.product(where=GRID, who=["me", "you"]),
    PAIRS.subset([("t", "v"), ("s", "u"), ("s", "v")]),
]
FEARED = ["flu", "hiv", "cancer"]


# -- mechanisms --------------------------------------------------------------------------------------------


def weights(domain: sf.Domain, rows: list[str]) -> Any:
    """Return integer weights over 2^62 in these proportions."""
    numbers = [[int(part) for part in row.split()] for row in rows]
    return TableMechanism.from_matrix(domain, [[Fraction(n, sum(row)) for n in row] for row in numbers]).weights


def mechanisms() -> list[Mechanism]:
    blocks = sf.Blocks(FEW, "abbba", [1, "ln 3"])
    robust = sf.Secret(PAIRS, "S", 1, sf.ChiSquare([[40, 30], [20, 50]]))
    dependent = sf.Secret(PAIRS, "S", 1, sf.ChiSquare([[400, 300], [200, 500]], alpha="0.01"))
    rows = [[2**62, 0, 0], [2**60, 2**61, 2**60], [2**62 // 3, 2**62 // 3, 2**62 - 2 * (2**62 // 3)]]
    return [
        *(RandomizedResponse(FEW, epsilon) for epsilon in (1, 0, "inf", "1/2*ln 3", "0.1")),
        RandomizedResponse(FEW, 1, threshold=2**60),
        *(RandomizedResponse(domain, 2) for domain in LABELLED),
        RandomizedResponse(GRID, "ln 3"),
        RandomizedResponse(sf.Domain.range(1), 1),
        RandomizedResponse(sf.Domain.range(1_000_003), "ln 3"),
        *(UnaryEncoding(FEW, epsilon) for epsilon in (1, 0, "inf")),
        UnaryEncoding(MORE, "0.5", optimized=True),
        UnaryEncoding(FEW, 1, own=2**63, other=2**61),
        *(UtilityOptimizedRappor(FEW, FEARED, epsilon) for epsilon in (1, 0, "inf")),
        UtilityOptimizedRappor(MORE, range(1, 70, 3), "0.5"),
        UtilityOptimizedRappor(FEW, FEW, "ln 3"),
        *(SubsetSelection(FEW, epsilon, 2) for epsilon in (1, 0, "inf")),
        SubsetSelection(MORE, "0.5"),
        SubsetSelection(sf.Domain.range(64), 3),
        HadamardResponse(FEW, 1),
        HadamardResponse(FEW, 3),
        HadamardResponse(FEW, 0, block_size=4),
        HadamardResponse(FEW, "inf", block_size=4, blocks=3),
        HadamardResponse(sf.Domain.range(200_000), 1, block_size=2**17),
        NestedSubsets(sf.Domain(["n", "e", "s", "w"]), "abba", 1, 3),
        NestedSubsets(sf.Domain.range(12), "abcabcabcabc", "0.5", 1, high=2, sizes=[2, 1]),
        NestedSubsets(MORE, [x % 5 for x in MORE], "ln 2", 2),
        ComposedSubsets(FEW, "abbba", 1, 2),
        ComposedSubsets(MORE, [x % 5 for x in MORE], "ln 2", 2),
        TableMechanism(sf.Domain(["a", "b", "c"]), rows),
        TableMechanism(sf.Domain(["a", "b"]), [[2**62], [2**62]]),
        TableMechanism.from_matrix(FEW, RandomizedResponse(FEW, 1).matrix()),
        best_exponential(sf.Metric(sf.Domain([1, 2, 4, 7]), "absolute", "0.4")),
        best_exponential(sf.Metric(GRID, "km", "0.01")),
        BinaryOptimal(TWO, "0.5", 2),
        BinaryOptimal.warner(TWO, "ln 3"),
        BinaryOptimal.mangat(TWO, "yes", 1),
        BinaryOptimal(TWO, 0, 0),
        BinaryOptimal(TWO, "inf", "inf"),
        PriorBinary(TWO, ["0.99", "0.01"], 1),
        PriorBinary(TWO, ["1/3", "2/3"], 1, "upper"),
        PriorBinary(TWO, ["1/3", "2/3"], 1, "lower"),
        PriorBinary(TWO, [1, 0], "0.5"),
        PriorBinary(TWO, ["1/3", "2/3"], 0),
        PriorBinary(TWO, ["1/3", "2/3"], "inf"),
        PriorBinary.one_sided_as_printed(TWO, ["0.99", "0.01"], 1),
        PriorSymmetric(TWO, ["0.9", "0.1"], 1),
        PriorSymmetric(TWO, ["1/3", "2/3"], 0),
        SecretRandomizedResponse(PAIRS, "S", "ln 3"),
        SecretRandomizedResponse(sf.Domain.product(U=["u", "v", "w"], S=range(3)), "S", 1),
        SecretRandomizedResponse(PAIRS, "U", 0),
        SecretRandomizedResponse(PAIRS, "S", "inf"),
        IndependentReporting.for_policy(robust),
        IndependentReporting.for_policy(dependent, "estimation"),
        ConditionalReporting.for_policy(robust, "estimation"),
        ConditionalReporting(
            PAIRS,
            "S",
            {"secret": "0.693147181", "other": ["inf", "1.09861229"], "sizes": [1, 1]},
            weights(PAIRS, ["16 0 3 5", "0 16 3 5", "4 4 12 4", "4 4 4 12"]),
        ),
        ConditionalUnary.for_policy(dependent, "estimation"),
        ConditionalUnary(
            PAIRS,
            "S",
            {"own": "1", "others": "1", "other": ["inf", "0.693147181"], "sizes": [1, 1]},
            weights(PAIRS, ["5 7 0 0", "0 0 5 7", "4 2 4 2", "2 4 2 4"]),
        ),
        *(UtilityOptimizedRR(FEW, FEARED, epsilon) for epsilon in (1, 0, "inf")),
        UtilityOptimizedRR(MORE, range(1, 70, 3), "0.5"),
        HighLowHadamard(FEW, FEARED, 1, block_size=4),
        HighLowHadamard(FEW, FEARED, 0, block_size=4),
        HighLowHadamard(FEW, FEARED, "inf", block_size=4),
        HighLowHadamard(MORE, range(1, 70, 3), 3, block_size=8),
        HighLowHadamard(FEW, ["hiv"], "0.5", published=True),
        *(HighLowSubset(FEW, FEARED, epsilon, 2) for epsilon in (1, 0, "inf")),
        HighLowSubset(MORE, range(63), "0.5", 20),
        HighLowSubset(FEW, ["hiv"], "ln 3"),
        *(BlockMechanism.for_policy(blocks, inner) for inner in ("rr", "subset", "hadamard", None)),
        BlockMechanism(
            MORE,
            [0] * 40 + [1] * 20 + [2] * 9 + [3],
            [
                SubsetSelection(sf.Domain.range(40), 1, 10),
                HadamardResponse(sf.Domain.range(20), 3, block_size=8),
                RandomizedResponse(sf.Domain.range(9), 2),
                RandomizedResponse(sf.Domain.range(1), "inf"),
            ],
        ),
    ]


def some_values(mechanism: Mechanism, count: int) -> list[Any]:
    """Return values, the first ones of the domain more often than the last."""
    size = len(mechanism.domain)
    return [
        mechanism.domain.label(i * i % 97 * size // 97) if i % 3 else mechanism.domain.label(0) for i in range(count)
    ]


def plain(report: Any) -> int | str:
    """Return a report as the collector accepts it in JSON: a number, or its bytes in hexadecimal digits."""
    return bytes(report).hex() if getattr(report, "ndim", 0) else int(report)


def numbers(array: Any) -> list[float]:
    return [float(number) for number in array]


def results(mechanism: Mechanism, counts: sf.Aggregate) -> dict[str, Any] | None:
    """Return the estimates from the counts, or None if the reports carry no information."""
    try:
        estimate = sf.estimate(mechanism, counts)
    except sf.SfumatoError:
        return None
    values: dict[str, Any] = {
        "frequencies": numbers(estimate.frequencies),
        "standard_errors": numbers(estimate.standard_errors),
        "covariance": numbers(estimate.covariance[0, :SURROGATE_VALUES]),
    }
    if len(mechanism.domain) > SURROGATE_VALUES:
        return values
    values["variances"] = numbers(np.diag(estimate.covariance))
    for method in ("simplex", "efficient"):
        with contextlib.suppress(sf.SfumatoError):
            values[method] = numbers(sf.estimate(mechanism, counts, method).frequencies)
    return values


def write_mechanisms(folder: Path) -> None:
    lines = []
    examples = mechanisms()
    assert {mechanism.name for mechanism in examples} == set(Mechanism.registry)
    for seed, mechanism in enumerate(examples):
        risk = mechanism.risk(1000)
        entry: dict[str, Any] = {
            "hash": mechanism.hash,
            "spec": mechanism.spec,
            "outputs": str(mechanism.outputs),
            "risk": None if np.isinf(risk) else risk,
        }
        if len(mechanism.domain) <= MOST_VALUES:
            stream = sf.InsecureSeeded(seed)
            reports = sf.privatize(mechanism, some_values(mechanism, COUNTED), stream=stream)
            counts = sf.aggregate(mechanism, reports)
            with tempfile.TemporaryFile() as file:
                write_lines(mechanism, file, iter([reports[:STORED]]))
                file.seek(0)
                report_lines = file.read().decode()
            entry |= {
                "reports": [plain(report) for report in reports[:STORED]],
                "batch": encode_batch(mechanism, reports[:STORED]).hex(),
                "lines": report_lines,
                "counts_of_reports": sf.aggregate(mechanism, reports[:STORED]).counts.tolist(),
                "counts": json.loads(counts.to_json()),
                "binary_counts": base64.b64encode(counts.to_bytes()).decode(),
                "results": results(mechanism, counts),
            }
            assert counts.to_json() == json.dumps(entry["counts"]) + "\n"
        lines.append(entry)
    write_list(folder / "mechanisms.json", lines)


def write_list(path: Path, entries: list[Any]) -> None:
    """Write JSON with one entry per line."""
    lines = [json.dumps(entry, ensure_ascii=False, allow_nan=False) for entry in entries]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def write_one(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


# -- policies, certificates, plans -------------------------------------------------------------------------


def policies() -> dict[str, sf.Policy]:
    abc = sf.Domain(["a", "b", "c"])
    survey = sf.Domain.product(S=["yes", "no"], U=sf.Domain.range(2))
    return {
        "uniform": sf.Uniform(FEW, 1),
        "uniform-zero": sf.Uniform(FEW, 0),
        "uniform-infinite": sf.Uniform(FEW, "inf"),
        "uniform-range": sf.Uniform(sf.Domain.range(64), "ln 3"),
        "high-low": sf.HighLow(FEW, FEARED, "1/2*ln 3"),
        **{f"high-low-labels-{i}": sf.HighLow(domain, [domain.label(1)], 1) for i, domain in enumerate(LABELLED)},
        "high-low-grid": sf.HighLow(GRID, [(0, 1), (1, 2)], 1),
        "high-low-product": sf.HighLow(survey, [("yes", 0)], 1),
        "blocks": sf.Blocks(FEW, [["none", "flu"], ["hiv", "cancer", "other"]], "1/3"),
        "blocks-levels": sf.Blocks(FEW, "abbba", ["ln 2", 1], across="1+ln 5"),
        "metric-matrix": sf.Metric(abc, [["0", "1/2", "1"], ["1/2", "0", "1/3"], ["1", "1/3", "0"]], "ln 4"),
        "metric-absolute": sf.Metric(sf.Domain([1, 2, 4, 7]), "absolute", "0.4"),
        "metric-km": sf.Metric(GRID, "km", "0.01"),
        "metric-discrete": sf.Metric(abc, "discrete", 1),
        "pairwise": sf.Pairwise(abc, {("a", "b"): "1+ln 2", ("b", "a"): 0, ("c", "a"): "2/7"}),
        "pairwise-asymmetric": sf.Pairwise(abc, [[0, 1, 3], [2, 0, "inf"], ["1/2", 1, 0]]),
        "prior": sf.Prior(FEW, ["0.6", "0.2", "1/10", "1/10", 0], "ln 2"),
        "prior-two": sf.Prior(TWO, ["1/3", "2/3"], 1),
        "prior-upper": sf.Prior(TWO, ["1/3", "2/3"], 1, "upper"),
        "prior-lower": sf.Prior(TWO, ["1/3", "2/3"], 1, "lower"),
        "secret-anything": sf.Secret(PAIRS, "S", 1, sf.Anything()),
        "secret-known": sf.Secret(survey, "U", "ln 2", sf.Known([["1/2", "1/8"], [0, "3/8"]])),
        "secret-at-least": sf.Secret(PAIRS, "S", 1, sf.AtLeast([["1/8", "1/8"], ["1/4", "1/8"]])),
        "secret-chi-square": sf.Secret(PAIRS, "S", 1, sf.ChiSquare([[40, 30], [20, 50]])),
        "secret-chi-square-alpha": sf.Secret(PAIRS, "S", 1, sf.ChiSquare([[400, 300], [200, 500]], alpha="0.01")),
    }


#: Policy files as people write them: with short forms, and with labels in a separate file.
BY_HAND = {
    "by-hand.toml": """\
# Which illnesses must be hard to tell apart.
[domain]
file = "labels.csv"
column = "illness"

[policy]
kind = "high-low"
sensitive = ["hiv", "cancer"]
epsilon = "ln 3"
""",
    "by-hand-product.toml": """\
[policy]
kind = "secret"
secret = "S"
epsilon = 0.5
distributions = {chi-square = {counts = [[12, 30, 8], [9, 21, 20]], alpha = 0.05}}

[domain]
order = ["S", "U"]

[domain.product]
U = {size = 3}
S = ["no", "yes"]
""",
    "labels.csv": "code,illness\n0,none\n1,flu\n2,hiv\n3,cancer\n",
}


def write_policies(folder: Path) -> dict[str, sf.Policy]:
    subfolder = folder / "policies"
    subfolder.mkdir()
    for name, policy in policies().items():
        sf.save_policy(policy, subfolder / f"{name}.toml")
        sf.save_policy(policy, subfolder / f"{name}.json")
    for name, document in BY_HAND.items():
        (subfolder / name).write_text(document, encoding="utf-8")
    files = sorted(path for path in subfolder.iterdir() if path.suffix in (".toml", ".json"))
    write_one(folder / "policies.json", {path.name: sf.load_policy(path).hash for path in files})
    return policies()


def certificates(policies: dict[str, sf.Policy]) -> Iterator[tuple[Mechanism, sf.Policy]]:
    weak = RandomizedResponse(FEW, 1, threshold=2**64 - 2**60)
    for name in ("uniform", "uniform-zero", "uniform-infinite", "high-low", "blocks", "blocks-levels", "prior"):
        yield RandomizedResponse(FEW, "0.1"), policies[name]
        yield weak, policies[name]
    yield UnaryEncoding(FEW, 1), policies["uniform"]
    yield UnaryEncoding(MORE, 1), sf.Uniform(MORE, 1)
    yield UnaryEncoding(MORE, "1.001"), sf.Uniform(MORE, 1)
    yield SubsetSelection(sf.Domain.range(64), "ln 3"), policies["uniform-range"]
    yield SubsetSelection(sf.Domain.range(64), 2), policies["uniform-range"]
    yield HadamardResponse(sf.Domain.range(64), 1), policies["uniform-range"]
    yield HadamardResponse(sf.Domain.range(3_000), 1), sf.Uniform(sf.Domain.range(3_000), 1)
    yield HighLowSubset(FEW, FEARED, "1/2*ln 3", 2), policies["high-low"]
    yield HighLowSubset(FEW, FEARED, "1/2*ln 3", 2), policies["uniform"]
    yield UtilityOptimizedRappor(FEW, FEARED, "1/2*ln 3"), policies["high-low"]
    yield UtilityOptimizedRR(FEW, FEARED, 1), policies["high-low"]
    yield HighLowHadamard(FEW, FEARED, "1/2*ln 3", block_size=4), policies["high-low"]
    yield BlockMechanism.for_policy(policies["blocks"], "subset"), policies["blocks"]
    yield BlockMechanism.for_policy(policies["blocks"], "subset"), policies["uniform"]
    yield ComposedSubsets(FEW, "abbba", "ln 2", "1+ln 5"), policies["blocks-levels"]
    yield (
        NestedSubsets(sf.Domain.range(6), "abcabc", "0.5", 1),
        sf.Blocks(sf.Domain.range(6), "abcabc", "0.5", across=1),
    )
    for name in ("metric-absolute", "metric-km"):
        yield best_exponential(policies[name]), policies[name]
        yield RandomizedResponse(policies[name].domain, 3), policies[name]
    for name in ("metric-matrix", "metric-discrete", "pairwise", "pairwise-asymmetric"):
        yield RandomizedResponse(policies[name].domain, "1/2"), policies[name]
    for name in ("high-low-labels-1", "high-low-labels-4", "high-low-grid", "high-low-product"):
        yield RandomizedResponse(policies[name].domain, 1), policies[name]
        yield RandomizedResponse(policies[name].domain, "1.0001"), policies[name]
    yield BinaryOptimal(TWO, "0.5", 2), sf.Pairwise(TWO, [[0, "0.5"], [2, 0]])
    yield BinaryOptimal(TWO, "0.5", 2), sf.Pairwise(TWO, [[0, 2], ["0.5", 0]])
    yield PriorBinary(TWO, ["1/3", "2/3"], 1), policies["prior-two"]
    yield PriorSymmetric(TWO, ["1/3", "2/3"], 1), policies["prior-two"]
    yield PriorBinary(TWO, ["1/3", "2/3"], 1, "upper"), policies["prior-upper"]
    yield PriorBinary(TWO, ["1/3", "2/3"], 1, "upper"), policies["prior-lower"]
    yield RandomizedResponse(TWO, 2), policies["prior-two"]
    robust = policies["secret-chi-square"]
    yield SecretRandomizedResponse(PAIRS, "S", 1), policies["secret-anything"]
    yield SecretRandomizedResponse(PAIRS, "S", 2), policies["secret-anything"]
    yield SecretRandomizedResponse(PAIRS, "S", 1), policies["secret-at-least"]
    yield IndependentReporting.for_policy(robust), robust
    yield IndependentReporting.for_policy(robust), policies["secret-anything"]
    yield ConditionalReporting.for_policy(policies["secret-chi-square-alpha"]), policies["secret-chi-square-alpha"]
    known = policies["secret-known"]
    yield RandomizedResponse(known.domain, "ln 2"), known
    yield RandomizedResponse(known.domain, 5), known


def write_certificates(folder: Path, policies: dict[str, sf.Policy]) -> None:
    documents = []
    for mechanism, policy in certificates(policies):
        certificate = sf.audit(mechanism, policy).to_json()
        documents.append(json.loads(certificate))
        assert certificate == json.dumps(documents[-1], indent=2, ensure_ascii=False) + "\n"
    write_list(folder / "certificates.json", documents)


def write_plans(folder: Path, policies: dict[str, sf.Policy]) -> None:
    planned = [
        "uniform", "uniform-range", "high-low", "blocks", "blocks-levels", "metric-absolute", "prior-two",
        "secret-anything", "secret-chi-square",
    ]  # fmt: skip
    entries = []
    for name in planned:
        plan = sf.plan(policies[name], 1000)
        rows = [{"name": row.name, "risk": row.risk, "bits": row.bits} for row in plan.rows]
        entries.append({"policy": f"{name}.toml", "n": plan.n, "best": plan.best.name, "rows": rows})
    write_list(folder / "plans.json", entries)


# -- files of reports, and a checkpoint --------------------------------------------------------------------


def write_report_files(folder: Path) -> None:
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        for mechanism in (
            RandomizedResponse(FEW, 1),
            HadamardResponse(sf.Domain.range(200_000), 1, block_size=2**17),
            UnaryEncoding(sf.Domain.range(20), 1),
            SubsetSelection(FEW, 1, 2),
            HighLowSubset(FEW, FEARED, 1, 2),
            TableMechanism(sf.Domain(["a", "b"]), [[2**62], [2**62]]),
        ):
            reports = sf.privatize(mechanism, some_values(mechanism, 40), stream=sf.InsecureSeeded(40))
            files = {}
            for suffix in (".parquet", ".arrow", ".sfb"):
                path = Path(scratch, f"reports{suffix}")
                write_reports(mechanism, reports, path)
                files[suffix] = base64.b64encode(path.read_bytes()).decode()
            expected = [plain(report) for report in reports]
            entries.append({"spec": mechanism.spec, "reports": expected, "files": files})
    write_list(folder / "report-files.json", entries)


def write_checkpoint(folder: Path) -> None:
    """Write the checkpoint of an aggregation that stopped inside a Parquet file of three row groups."""
    import pyarrow.parquet

    mechanism = SubsetSelection(FEW, 1, 2)
    reports = sf.privatize(mechanism, some_values(mechanism, 150), stream=sf.InsecureSeeded(7))
    with tempfile.TemporaryDirectory() as scratch:
        paths = [Path(scratch, name).resolve() for name in ("first.sfb", "second.parquet", "third.arrow")]
        for path, part in zip(paths, np.split(reports, [40, 130]), strict=True):
            write_reports(mechanism, part, path)
        table = pyarrow.parquet.read_table(paths[1])
        pyarrow.parquet.write_table(table, paths[1], row_group_size=30, write_page_checksum=True)
        for path in paths:
            os.utime(path, ns=(MODIFIED, MODIFIED))
        sources = [Source(str(path), path.suffix) for path in paths]
        done = [(sources[0], state_of(sources[0]), None), (sources[1], state_of(sources[1]), 2)]
        counted = sf.aggregate(mechanism, reports[:100])
        Checkpoint.start(mechanism).extended(counted, done).write(Path(scratch, "checkpoint"))
        checkpoint = Path(scratch, "checkpoint").read_text(encoding="utf-8")
        document = {
            "spec": mechanism.spec,
            "checkpoint": json.loads(checkpoint.replace(str(Path(scratch).resolve()), "{folder}")),
            "modified": MODIFIED,
            "files": {path.name: base64.b64encode(path.read_bytes()).decode() for path in paths},
            "counted": json.loads(counted.to_json()),
            "counts": json.loads(sf.aggregate(mechanism, reports).to_json()),
        }
    write_one(folder / "checkpoint.json", document)


# -- a ledger ----------------------------------------------------------------------------------------------


def write_ledger(folder: Path) -> None:
    ledger = sf.Ledger(budget=[sf.Uniform(FEW, 4), sf.HighLow(sf.Domain.range(7), range(4), 3), sf.Uniform(TWO, 2)])
    ledger._key = bytes(range(32))
    stream = sf.InsecureSeeded(11)
    one, subset = RandomizedResponse(FEW, 1), SubsetSelection(FEW, "1/2*ln 3", 2)
    parted, two = HighLowSubset(sf.Domain.range(7), range(4), 1, 2), RandomizedResponse(TWO, "0.7")
    high_low = sf.HighLow(sf.Domain.range(7), range(4), 1)
    requests = [
        ("monday", one, sf.Uniform(FEW, 1), "flu"),
        ("tuesday", subset, sf.Uniform(FEW, "ln 3"), "hiv"),
        ("where", parted, high_low, 2),
        ("prior", two, sf.Prior(TWO, ["1/3", "2/3"], 1), "yes"),
    ]
    for collection, mechanism, policy, value in requests:
        ledger.answer(collection, mechanism, policy, value, stream=stream)
    ledger.answer("where", parted, high_low, 6, allow_change=True, stream=stream)
    requests.append(("where", parted, high_low, 6))
    ledger.charge("wednesday", RandomizedResponse(FEW, "0.25"), sf.Uniform(FEW, "1/4"))
    with tempfile.TemporaryDirectory() as scratch:
        ledger.save(Path(scratch, "ledger.json"))
        (folder / "ledger.json").write_bytes(Path(scratch, "ledger.json").read_bytes())
    releases = []
    for collection, mechanism, policy, value in requests:
        (report,) = ledger.answer(collection, mechanism, policy, value)
        document = policy.to_dict()
        releases.append(
            {
                "collection": collection,
                "spec": mechanism.spec,
                "policy": document,
                "value": value,
                "report": plain(report),
            }
        )
    questions = []
    for domain in (FEW, sf.Domain.range(7), TWO):
        spent = ledger.spent(domain)
        assert spent is not None
        try:
            remaining: str | None = str(ledger.remaining(domain))
        except sf.SfumatoError:
            remaining = None
        questions.append({"domain": domain.to_dict(), "spent": spent.to_dict(), "remaining": remaining})
    cost = ledger.cost_of_change("monday", one, sf.Uniform(FEW, 1), "none")
    assert cost.added is not None
    refused = ("thursday", RandomizedResponse(FEW, 3), sf.Uniform(FEW, 3))
    write_one(
        folder / "ledger-results.json",
        {
            "answers": releases,
            "questions": questions,
            "total": str(ledger.total),
            "worst_cases": [str(release.worst_case) for release in ledger.releases],
            "change": {
                "collection": "monday",
                "value": "none",
                "added": cost.added.to_dict(),
                "total": cost.total.to_dict(),
                "allowed": cost.allowed,
            },
            "refused": {
                "collection": refused[0],
                "spec": refused[1].spec,
                "policy": refused[2].to_dict(),
                "allowed": ledger.allows(*refused),
            },
        },
    )


def write_secret_ledger(folder: Path) -> None:
    """Write one release per question about a secret, because a second release does not compose with the first."""
    ledger = sf.Ledger()
    ledger._key = bytes(range(32, 64))
    stream = sf.InsecureSeeded(12)
    answers = []
    for names, distributions in (("ab", sf.Known([["1/4"] * 2] * 2)), ("cd", sf.ChiSquare([[10, 20], [30, 40]]))):
        domain = sf.Domain.product(S=list(names), U=["x", "y"])
        mechanism, policy = SecretRandomizedResponse(domain, "S", 1), sf.Secret(domain, "S", 1, distributions)
        value, collection = (names[0], "y"), f"asked-{names}"
        (report,) = ledger.answer(collection, mechanism, policy, value, stream=stream)
        document = {"collection": collection, "spec": mechanism.spec, "policy": policy.to_dict()}
        answers.append({**document, "value": list(value), "report": plain(report)})
    with tempfile.TemporaryDirectory() as scratch:
        ledger.save(Path(scratch, "ledger.json"))
        (folder / "ledger-secret.json").write_bytes(Path(scratch, "ledger.json").read_bytes())
    write_one(folder / "ledger-secret-results.json", {"answers": answers, "total": str(ledger.total)})


# -- the store of a collector ------------------------------------------------------------------------------


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> Any:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None and not isinstance(body, bytes):
        body, sent = json.dumps(body).encode(), sent | {"Content-Type": "application/json"}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        return json.loads(content) if content.startswith(b"{") else content


@contextlib.contextmanager
def collector(store: str, log: Path) -> Iterator[tuple[int, str]]:
    """Run `sfumato serve` in a process and return its port and its admin token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "sfumato.cli", "serve", "--store", store, "--port", str(port), "--rate", "0"]
    command += ["--open-batch", "0"]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            while True:
                assert process.poll() is None, log.read_text()
                with contextlib.suppress(OSError):
                    ask(port, "GET", "/readyz")
                    break
                time.sleep(0.05)
            token = re.search(r"sfa_\S+", log.read_text())
            assert token is not None
            yield port, token[0]
        finally:
            process.terminate()


def write_store(folder: Path) -> None:
    collections: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "collect.db")
        with collector(f"sqlite:///{path}", Path(scratch, "log")) as (port, admin):
            client = Client(f"http://127.0.0.1:{port}", admin)
            parted = HighLowSubset(FEW, FEARED, 1, 2)
            surveys: list[tuple[Mechanism, sf.Policy, dict[str, Any]]] = [
                (
                    parted,
                    sf.HighLow(FEW, FEARED, 1),
                    {"description": "Which illness?", "origins": ["https://a.example"]},
                ),
                (RandomizedResponse(FEW, 1), sf.Uniform(FEW, 1), {"submission": "key", "keep_days": 0}),
                (
                    UnaryEncoding(sf.Domain.range(130), 1),
                    sf.Uniform(sf.Domain.range(130), 1),
                    {"submission": "token", "results": "admin", "listed": False},
                ),
                (SubsetSelection(FEW, "ln 3", 2), sf.Uniform(FEW, "ln 3"), {"keep_days": 30}),
            ]
            for number, (mechanism, policy, about) in enumerate(surveys):
                previous = {"previous": collections[0]["id"]} if number == 3 else {}
                name, key = client.create(
                    f"survey {number}", policy, mechanism, **{"submission": "open", **about, **previous}
                )
                collections.append(fill_collection(port, client, name, key, mechanism, number))
            client.change(collections[3]["id"], state="closed")
            client.change(collections[0]["id"], label="survey 0, renamed")
            for entry in collections:
                read_collection(port, admin, entry)
            client.close()
        run_maintenance(f"sqlite:///{path}", collections[0]["id"], collections[3]["id"])
        with contextlib.closing(sqlite3.connect(path)) as database:
            (folder / "store.sql").write_text("\n".join(database.iterdump()) + "\n", encoding="utf-8")
    write_list(folder / "store-results.json", [{"admin_token": admin}, *collections])


def run_maintenance(url: str, collection: str, shuffled: str) -> None:
    """Run the maintenance that a collector does from time to time.

    A commit without new reports moves some batch ids from the log to the sorted table. The reports of one collection
    are shuffled.
    """
    PendingBatchIds.gathered = PendingBatchIds.at_once = 4
    store = open_store(url)
    name = hashlib.blake2b(b"batch-0-0", key=collection.encode(), digest_size=16).digest()
    record = store.collection(collection)
    assert record is not None
    mechanism = sf.mechanism_from_spec(record.mechanism)
    none = np.empty((0, *mechanism.report_format.shape), mechanism.report_format.dtype)
    (result,) = store.commit([Submission(collection, mechanism, name, bytes(20), none, False, None, 0)])
    assert result.outcome == "conflict"
    record = store.collection(shuffled)
    assert record is not None
    assert store.shuffle_reports(shuffled, sf.mechanism_from_spec(record.mechanism), before_day=10**6) == 3
    store.close_all()


def fill_collection(
    port: int, client: Client, name: str, key: str | None, mechanism: Mechanism, number: int
) -> dict[str, Any]:
    """Send two batches and a single report, or single reports with tokens."""
    entry: dict[str, Any] = {"id": name, "key": key, "sent": [], "tokens": []}
    reports = sf.privatize(mechanism, some_values(mechanism, 80), stream=sf.InsecureSeeded(20 + number))
    sender = {} if key is None else {"Authorization": f"Bearer {key}"}
    where = f"/v1/collections/{name}/reports"
    if number == 2:
        tokens = client.tokens(name, 5)
        entry["tokens"] = [{"token": token, "spent": place < 3} for place, token in enumerate(tokens)]
        pieces, senders = np.split(reports[:3], 3), [{"Authorization": f"Bearer {token}"} for token in tokens]
    else:
        pieces, senders = [reports[:50], reports[50:79]], [sender, sender]
    for place, (piece, authorization) in enumerate(zip(pieces, senders, strict=False)):
        batch, payload = f"batch-{number}-{place}", encode_batch(mechanism, piece)
        headers = {"Content-Type": "application/vnd.sfumato.reports", "Idempotency-Key": batch, **authorization}
        receipt = ask(port, "POST", where, payload, **headers)
        assert decode_batch(mechanism, payload).tolist() == piece.tolist()
        entry["sent"].append({"batch": batch, "payload": payload.hex(), "receipt": receipt})
    if number != 2:
        body = {"batch": f"single-{number}-0", "report": plain(reports[79])}
        entry["sent"].append({"json": body, "receipt": ask(port, "POST", where, body, **sender)})
    return entry


def read_collection(port: int, admin: str, entry: dict[str, Any]) -> None:
    """Add the responses of the collector about a collection to its entry."""
    where, header = f"/v1/collections/{entry['id']}", {"Authorization": f"Bearer {admin}"}
    entry["collection"] = ask(port, "GET", where, **header)
    entry["aggregate"] = ask(port, "GET", f"{where}/aggregate", **header)
    entry["binary_aggregate"] = base64.b64encode(
        ask(port, "GET", f"{where}/aggregate", Accept="application/vnd.sfumato.aggregate", **header)
    ).decode()
    entry["estimate"] = ask(port, "GET", f"{where}/estimate", **header)
    for row in entry["estimate"]["rows"]:
        del row["low"], row["high"]  # intervals are not frozen
    entry["certificate"] = ask(port, "GET", f"{where}/certificate", **header)


# -- files that commands write -----------------------------------------------------------------------------------


def write_estimates(folder: Path) -> None:
    entries = []
    with tempfile.TemporaryDirectory() as scratch:
        spec, counts, table = (Path(scratch, name) for name in ("mechanism.json", "counts.json", "estimate.csv"))
        for mechanism in (RandomizedResponse(FEW, 1), UnaryEncoding(GRID, 2), HighLowSubset(FEW, FEARED, 1, 2)):
            reports = sf.privatize(mechanism, some_values(mechanism, COUNTED), stream=sf.InsecureSeeded(5))
            spec.write_text(mechanism.to_json(), encoding="utf-8")
            counts.write_text(sf.aggregate(mechanism, reports).to_json(), encoding="utf-8")
            command = ["estimate", str(spec), str(counts), "--output", str(table), "--json"]
            answer = subprocess.run([sys.executable, "-m", "sfumato.cli", *command], check=True, capture_output=True)
            entries.append(
                {
                    "spec": mechanism.spec,
                    "counts": json.loads(counts.read_text(encoding="utf-8")),
                    "json": json.loads(answer.stdout),
                    "csv": table.read_text(encoding="utf-8"),
                }
            )
    write_list(folder / "estimates.json", entries)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        sys.exit(f"{folder} is not empty; name an empty or a new folder")
    print(f"written by {Path(sf.__file__).parent}")
    write_mechanisms(folder)
    stored_policies = write_policies(folder)
    write_certificates(folder, stored_policies)
    write_plans(folder, stored_policies)
    write_report_files(folder)
    write_checkpoint(folder)
    write_ledger(folder)
    write_secret_ledger(folder)
    write_store(folder)
    write_estimates(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
