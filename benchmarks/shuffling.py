"""Certified central levels of shuffled reports: reference levels, numbers of people, policies, and accuracy.

    python -m benchmarks.shuffling [TABLE ...]

The tables are ``reference``, ``people``, ``policies`` and ``accuracy``, all by default. The output is Markdown. Levels
are certified and do not depend on the machine; seconds do.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import sfumato as sf
from sfumato.mechanisms import (
    BlockMechanism,
    Mechanism,
    RandomizedResponse,
    SubsetSelection,
    TableMechanism,
    UtilityOptimizedRR,
)

DELTA = "1e-6"
#: Levels in doubles, which two independent computations gave at n = 10^5 and δ = 10^-6, by local level and mechanism.
REFERENCE = {
    4: {"generic": 0.118, "subset, k = 1000": 0.0815, "k-ary, k = 1000": 0.0244, "k-ary, k = 10": 0.110},
    6: {"generic": 0.357, "subset, k = 1000": 0.229, "k-ary, k = 1000": 0.181, "k-ary, k = 10": 0.353},
}


def main(arguments: Sequence[str] | None = ()) -> None:
    """Print the tables that the arguments name, all by default."""
    tables: dict[str, Callable[[], None]] = {
        "reference": reference,
        "people": people,
        "policies": policies,
        "accuracy": accuracy,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[*tables, []], metavar="TABLE", help="tables, all by default")
    for name in parser.parse_args(arguments).tables or tables:
        tables[name]()
        print(flush=True)


def row(*cells: object) -> None:
    """Print one row of a Markdown table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def header(*cells: object) -> None:
    """Print the head of a Markdown table."""
    row(*cells)
    row(*["---"] * len(cells))


def generic(epsilon: int) -> Mechanism:
    """Return a mechanism with the blanket of the bound for all mechanisms of one ε: two likelihoods, two outputs.

    A third output with almost no probability keeps the sharper bound for two outputs from being used.
    """
    one_bit = RandomizedResponse(sf.Domain.range(2), epsilon)
    total, rare = 2**62, 2**8
    high = int(one_bit.probability(0, 0) * total) - rare
    rows = [[high, total - high - rare, rare], [total - high - rare, high, rare]]
    return TableMechanism(one_bit.domain, rows)


def level(mechanism: Mechanism, epsilon: int, n: int) -> tuple[sf.Amplification, float]:
    """Return the central levels of a classical mechanism, and the seconds of processor time that they took."""
    begin = time.process_time()
    result = sf.amplify(mechanism, sf.Uniform(mechanism.domain, epsilon), n, DELTA)
    return result, time.process_time() - begin


def reference() -> None:
    """Print the levels for which published figures exist."""
    header("ε of a report", "mechanism", "reference", "upper bound", "lower bound", "upper/lower", "seconds")
    for epsilon, figures in REFERENCE.items():
        mechanisms: dict[str, Mechanism] = {
            # Randomized response over three values nearly attains this bound.
            "generic": generic(epsilon),
            # The reference for ε = 6 uses sets of two values; sets of three have the least risk.
            "subset, k = 1000": SubsetSelection(sf.Domain.range(1000), epsilon, 18 if epsilon == 4 else 2),
            "k-ary, k = 1000": RandomizedResponse(sf.Domain.range(1000), epsilon),
            "k-ary, k = 10": RandomizedResponse(sf.Domain.range(10), epsilon),
        }
        for name, mechanism in mechanisms.items():
            result, seconds = level(mechanism, epsilon, 10**5)
            lower = result.lower
            if name == "generic":
                lower = level(RandomizedResponse(sf.Domain.range(3), epsilon), epsilon, 10**5)[0].lower
            upper, least = float(result.epsilon), float(lower)
            row(epsilon, name, figures[name], f"{upper:.5g}", f"{least:.5g}", f"{upper / least:.3f}", f"{seconds:.2f}")


def people() -> None:
    """Print the levels of k-ary response for increasing numbers of people."""
    header("n", "k", "upper bound", "lower bound", "upper/lower", "seconds")
    for exponent in range(3, 9):
        for k in (2, 10, 1000):
            result, seconds = level(RandomizedResponse(sf.Domain.range(k), 4), 4, 10**exponent)
            upper, lower = float(result.epsilon), float(result.lower)
            row(f"10^{exponent}", k, f"{upper:.5g}", f"{lower:.5g}", f"{upper / lower:.3f}", f"{seconds:.2f}")


def policies() -> None:
    """Print the levels of sensitive values and of blocks, pair by pair."""
    domain = sf.Domain.range(20)
    high_low = sf.HighLow(domain, range(10), 4)
    print(sf.amplify(UtilityOptimizedRR(domain, range(10), 4), high_low, 10**5, DELTA), "\n")
    blocks = sf.Blocks(domain, [0] * 10 + [1] * 9 + [2], 4)
    for least in (None, 10**4):
        print(sf.amplify(BlockMechanism.for_policy(blocks, "rr"), blocks, 10**5, DELTA, minimum_counts=least), "\n")


def accuracy() -> None:
    """Print the error and the report length of four mechanisms at the same central level."""
    header("central ε", "mechanism", "ε of a report", "bits", "l2 risk", "total variation")
    policy = sf.Uniform(sf.Domain.range(100), 6)
    for central in ("0.02", "0.05", "0.1"):
        for name in ("rr", "subset", "cyclic", "hadamard"):
            (choice,) = sf.plan(policy, 10**5, mechanism=name, central=central, delta=DELTA)
            local = choice.mechanism.stated_epsilon
            assert local is not None
            row(central, name, f"{float(local):.2f}", choice.bits, f"{choice.risk:.4g}", f"{choice.tv:.4f}")


if __name__ == "__main__":
    main(None)
