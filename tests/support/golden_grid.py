"""The policies of the golden corpus: those that mechanisms are audited against, and the grid of plans."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import sfumato as sf

__all__ = ["GRID", "audited_policies"]

#: Maximum number of values over which policies with a matrix or a prior are stated.
_MOST_STATED = 100


def audited_policies(domain: sf.Domain) -> dict[str, sf.Policy]:
    """Return twelve policies over a domain, fewer over a large one."""
    k = len(domain)
    labels = list(domain) if k <= _MOST_STATED else []
    policies: dict[str, sf.Policy] = {f"uniform {level}": sf.Uniform(domain, level) for level in ("1/2", "1", "3")}
    if not labels:
        return policies
    policies |= {
        "high-low 1": sf.HighLow(domain, labels[: (k + 1) // 2], 1),
        "high-low 2": sf.HighLow(domain, labels[::3], 2),
        "blocks 1": sf.Blocks(domain, [x % 2 for x in range(k)], 1),
        "blocks 1/2": sf.Blocks(domain, [x % 2 for x in range(k)], 1, 2),
        "metric": sf.Metric(domain, [[abs(x - y) for y in range(k)] for x in range(k)], "1/2"),
        "pairwise": sf.Pairwise(domain, [[_level(x, y) for y in range(k)] for x in range(k)]),
        "per-value": sf.PerValue(domain, [f"{1 + x % 3}/2" for x in range(k)]),
        "prior": sf.Prior(domain, _weights(k), 1),
    }
    if len(domain.shape) > 1:
        name = next(iter(domain.factors))
        size = domain.shape[0]
        known = sf.Known([[f"1/{k}"] * (k // size)] * size)
        if len(domain.shape) == 2:
            return {**policies, "secret": sf.Secret(domain, name, 1, known)}
    return {**policies, "prior upper": sf.Prior(domain, _weights(k), 2, "upper")}


def _level(x: int, y: int) -> str:
    """Return an asymmetric level between two values."""
    return "0" if x == y else "inf" if (x + y) % 5 == 4 else str(1 + (x + 2 * y) % 3)


def _weights(k: int) -> list[str]:
    """Return a skewed prior with weights 1, 2, 3, …"""
    return [f"{x + 1}/{k * (k + 1) // 2}" for x in range(k)]


# -- plans -------------------------------------------------------------------------------------------------

Stated = Callable[[], sf.Policy]


def _uniform(k: int, epsilon: str) -> sf.Policy:
    return sf.Uniform(sf.Domain.range(k), epsilon)


def _high_low(k: int, sensitive: int, epsilon: str) -> sf.Policy:
    return sf.HighLow(sf.Domain.range(k), range(sensitive), epsilon)


def _blocks(sizes: tuple[int, ...], epsilon: str, across: str) -> sf.Policy:
    blocks = [number for number, size in enumerate(sizes) for _ in range(size)]
    return sf.Blocks(sf.Domain.range(len(blocks)), blocks, epsilon, across)


def _line(k: int, epsilon: str) -> sf.Policy:
    return sf.Metric(sf.Domain.range(k), "absolute", epsilon)


def _square(side: int, epsilon: str) -> sf.Policy:
    domain = sf.Domain.product(row=sf.Domain.range(side), column=sf.Domain.range(side))
    return sf.Metric(domain, "manhattan", epsilon)


def _pairwise(k: int) -> sf.Policy:
    return sf.Pairwise(sf.Domain.range(k), [[_level(x, y) for y in range(k)] for x in range(k)])


def _per_value(k: int, *levels: str) -> sf.Policy:
    return sf.PerValue(sf.Domain.range(k), [levels[x % len(levels)] for x in range(k)])


def _prior(k: int, epsilon: str, side: str) -> sf.Policy:
    return sf.Prior(sf.Domain.range(k), _weights(k), epsilon, side)


def _secret(secrets: int, others: int, epsilon: str, kind: str) -> sf.Policy:
    domain = sf.Domain.product(S=sf.Domain.range(secrets), U=sf.Domain.range(others))
    counts = [[30 + 10 * ((s + 2 * u) % 3) for u in range(others)] for s in range(secrets)]
    total = sum(map(sum, counts))
    known: dict[str, Any] = {
        "anything": sf.Anything(),
        "known": sf.Known([[f"{count}/{total}" for count in row] for row in counts]),
        "chi-square": sf.ChiSquare(counts),
    }
    return sf.Secret(domain, "S", epsilon, known[kind])


def _product(epsilon: str, *sizes: int) -> sf.Policy:
    return sf.Product({f"a{i}": sf.Uniform(sf.Domain.range(size), epsilon) for i, size in enumerate(sizes)})


def _grid() -> dict[str, Stated]:
    """Return about 140 policies by name; each is built when it is needed."""
    grid: dict[str, Stated] = {}
    for k in (2, 3, 5, 10, 30, 100, 300, 1000):
        for epsilon in ("0.25", "0.5", "1", "2", "4"):
            grid[f"uniform k={k} eps={epsilon}"] = partial(_uniform, k, epsilon)
    for k in (3, 10, 100, 1000):
        for sensitive in sorted({max(1, k // 4), (k + 1) // 2, max(2, 9 * k // 10)}):
            for epsilon in ("0.5", "1", "3"):
                grid[f"high-low k={k} sensitive={sensitive} eps={epsilon}"] = partial(_high_low, k, sensitive, epsilon)
    for sizes in ((5, 5), (2,) * 5, (50, 50), (10,) * 10, (500, 500), (30,) * 33, (1, 1, 1, 30), (2, 8, 20, 70)):
        shown = f"{len(sizes)}x{sizes[0]}" if len(set(sizes)) == 1 else "+".join(map(str, sizes))
        for epsilon, across in (("0.5", "inf"), ("2", "inf"), ("0.5", "3"), ("1", "2")):
            grid[f"blocks {shown} eps={epsilon}/{across}"] = partial(_blocks, sizes, epsilon, across)
    for k in (5, 10, 100):
        for epsilon in ("0.25", "1"):
            grid[f"metric k={k} eps={epsilon}"] = partial(_line, k, epsilon)
    for side in (3, 5):
        grid[f"metric {side}x{side} eps=1"] = partial(_square, side, "1")
    for k in (3, 6, 20):
        grid[f"pairwise k={k}"] = partial(_pairwise, k)
    for k in (5, 20, 100):
        grid[f"per-value k={k}"] = partial(_per_value, k, "0.5", "1", "4")
    for k in (2, 3, 10, 100):
        for bounds in ("both", "upper"):
            grid[f"prior k={k} side={bounds}"] = partial(_prior, k, "1", bounds)
    for kind in ("anything", "known", "chi-square"):
        grid[f"secret 2x3 {kind}"] = partial(_secret, 2, 3, "1", kind)
    grid["secret 4x5 anything"] = partial(_secret, 4, 5, "2", "anything")
    for dimensions in ((3, 4), (10, 10), (2, 3, 5), (30, 30)):
        grid[f"product {'x'.join(map(str, dimensions))}"] = partial(_product, "1", *dimensions)
    return grid


GRID = _grid()
assert math.isclose(len(GRID), 140, rel_tol=0.1)
