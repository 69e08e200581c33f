"""Policies with exchangeable values, from the sizes of their classes."""

from __future__ import annotations

from collections.abc import Sequence

import sfumato as sf

__all__ = ["blocks_of", "classes_of", "secret_of"]


def _class_numbers(sizes: Sequence[int]) -> list[int]:
    """Return the number of the class of each value."""
    return [number for number, size in enumerate(sizes) for _ in range(size)]


def blocks_of(sizes: Sequence[int], epsilon: str | Sequence[str], across: str) -> sf.Blocks:
    """Return blocks of these sizes."""
    return sf.Blocks(sf.Domain.range(sum(sizes)), _class_numbers(sizes), epsilon, across)


def classes_of(sizes: Sequence[int], epsilons: Sequence[Sequence[str]]) -> sf.Pairwise:
    """Return a policy whose epsilons depend only on the classes of the values."""
    numbers = list(enumerate(_class_numbers(sizes)))
    matrix = [[epsilons[c][d] if x != y else "0" for y, d in numbers] for x, c in numbers]
    return sf.Pairwise(sf.Domain.range(len(numbers)), matrix)


def secret_of(secrets: int, others: int, epsilon: str) -> sf.Secret:
    """Return a secret under any distribution, next to an attribute with this many values."""
    people = sf.Domain.product(S=list(range(secrets)), U=list(range(others)))
    return sf.Secret(people, "S", epsilon, sf.Anything())
