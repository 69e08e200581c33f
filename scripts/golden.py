"""Record the golden corpus in tests/golden, or compare it with what the library does now.

    python scripts/golden.py compare [NAME …]     list differences; exit status 1 if one is not in changes.toml
    python scripts/golden.py record NAME … | all  write the files of these names

A name is that of a spec, such as subset-selection, or "plans". The whole corpus takes some minutes. Record only after a
deliberate difference was reviewed with ``compare``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import golden
from support.golden_cases import CASES
from support.golden_grid import GRID


def entries(name: str) -> dict[str, Callable[[], Any]]:
    """Return the functions that measure the entries of one file."""
    if name == "plans":
        return {key: lambda key=key: golden.measured_plan(key) for key in GRID}
    return {key: lambda key=key: golden.measured_case(key) for key in CASES if key.partition("/")[0] == name}


def record(name: str) -> str:
    """Write the file of one name."""
    golden.record(name, {key: measure() for key, measure in entries(name).items()})
    return f"{name}: {(golden.FOLDER / f'{name}.json').stat().st_size:,} bytes"


def compare(name: str) -> tuple[list[str], int]:
    """Return the differences of one file in words, and the number of those that are not listed."""
    now, before = entries(name), golden.recorded(name)
    lines, unlisted = [], 0
    for key in [*before, *(key for key in now if key not in before)]:
        try:
            after = now[key]() if key in now else None
        except Exception as error:  # a case that breaks is a difference
            after = f"{type(error).__name__}: {error}"
        path = f"plans.{key}" if name == "plans" else key
        for change in golden.compared(path, before.get(key), after):
            reason = golden.listed(change)
            unlisted += reason is None
            lines.append(f"{change}  [{reason or 'not listed'}]")
    return lines, unlisted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("record", "compare"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    arguments = parser.parse_args()
    everything = [*dict.fromkeys(key.partition("/")[0] for key in CASES), "plans"]
    names = everything if arguments.names in ([], ["all"]) else arguments.names
    if not arguments.names and arguments.mode == "record":
        parser.error("name the files to record, or all")
    total = 0
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        if arguments.mode == "record":
            for line in pool.map(record, names):
                print(line, flush=True)
            return
        for name, (lines, unlisted) in zip(names, pool.map(compare, names), strict=True):
            print("\n".join([f"{name}: {len(lines)} differences, {unlisted} not listed", *lines]), flush=True)
            total += unlisted
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
