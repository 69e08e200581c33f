"""Compare the speed of two source trees, side by side in one run.

    python -m benchmarks.compare OTHER_TREE

Each operation runs alternately in one process per tree, several times. The printed ratio is the median time of this
tree divided by that of the other: above 1, this tree is slower. The benchmark uses only stable public names, so that it
can compare trees from before and after a redesign.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf

_REPEATS = 9
_PEOPLE = 10**6


def operations() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the label of every operation and a function that runs it."""
    values = np.random.default_rng(1).integers(0, 64, _PEOPLE)
    domain = sf.Domain.range(64)
    uniform = sf.Uniform(domain, 1)
    high_low = sf.HighLow(domain, list(range(8)), 1)
    blocks = sf.Blocks(domain, [x // 8 for x in range(64)], 1)
    two_levels = sf.Blocks(domain, [x // 8 for x in range(64)], 1, across=2)
    designs = [
        *((uniform, name) for name in ("rr", "unary", "unary-optimized", "subset", "hadamard")),
        *((high_low, name) for name in ("high-low-subset", "high-low-hadamard", "uo-rr")),
        *((blocks, name) for name in ("block-rr", "block-subset", "block-hadamard")),
        *((two_levels, name) for name in ("nested-cyclic", "composed")),
        (sf.Metric(domain, np.abs(np.subtract.outer(range(64), range(64))).tolist(), "0.1"), "exponential"),
    ]
    for policy, name in designs:
        mechanism = sf.design(policy, mechanism=name)
        reports = sf.privatize(mechanism, values)
        counts = sf.aggregate(mechanism, reports)
        yield f"privatize {name}", _call(sf.privatize, mechanism, values)
        yield f"aggregate {name}", _call(sf.aggregate, mechanism, reports)
        yield f"estimate {name}", _call(_estimate, mechanism, counts)
        yield f"risk {name}", _call(mechanism.risk, _PEOPLE)
    policies = {"Uniform": uniform, "HighLow": high_low, "Blocks": blocks, "Blocks, two epsilons": two_levels}
    for label, policy in policies.items():
        yield f"plan {label}", _call(sf.plan, policy, _PEOPLE, max_seconds=0)
        yield f"audit {label}", _call(sf.audit, sf.design(policy, max_seconds=0), policy)
    large = sf.Uniform(sf.Domain.range(43_750), 1)
    yield "plan Uniform, 43,750 values", _call(sf.plan, large, _PEOPLE, max_seconds=0)


def _call(function: Callable[..., object], *arguments: Any, **options: Any) -> Callable[[], object]:
    """Return a function without parameters that makes this call."""
    return lambda: function(*arguments, **options)


def _estimate(mechanism: Any, counts: Any) -> object:
    """Estimate frequencies with intervals."""
    return sf.estimate(mechanism, counts, "simplex").interval(0.95)


def serve() -> None:
    """Run one operation per line of input, and print the seconds that it took."""
    known = list(operations())
    print(json.dumps([label for label, _ in known]), flush=True)
    for line in sys.stdin:
        work = known[int(line)][1]
        start = time.perf_counter()
        work()
        print(time.perf_counter() - start, flush=True)


class Tree:
    """A process that runs operations of one source tree."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.labels: list[str] = json.loads(self._read())

    def seconds(self, number: int) -> float:
        """Run an operation once and return its duration."""
        assert self._process.stdin is not None
        print(number, file=self._process.stdin, flush=True)
        return float(self._read())

    def _read(self) -> str:
        """Return the next line of output."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of a source tree ended early; see its error output above")
        return line


def main() -> None:
    """Compare this tree with another and print one line per operation."""
    if sys.argv[1:] == ["--serve"]:
        serve()
        return
    here, there = Tree(Path(__file__).resolve().parents[1]), Tree(Path(sys.argv[1]).resolve())
    print(f"{'operation':40}{'this, ms':>12}{'other, ms':>12}{'ratio':>8}")
    ratios = []
    for number, label in enumerate(here.labels):
        other = there.labels.index(label)
        here.seconds(number), there.seconds(other)  # the first call may compile kernels
        pairs = [(here.seconds(number), there.seconds(other)) for _ in range(_REPEATS)]
        this, that = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratios.append(this / that)
        print(f"{label:40}{1e3 * this:12.3f}{1e3 * that:12.3f}{this / that:8.2f}", flush=True)
    print(f"median ratio {statistics.median(ratios):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
