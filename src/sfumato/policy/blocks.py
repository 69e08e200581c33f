"""Blocks of values: protect the value within its block, and optionally the block (context-aware LDP §6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato._core import INFINITE, ZERO, Epsilon, EpsilonLike, TextFormat, quantity, read_list
from sfumato.domain import Domain, align, checked_domain, has_labels, is_missing, read_entries
from sfumato.errors import Description, InvalidInput
from sfumato.policy.base import Policy
from sfumato.policy.epsilon_matrix import EpsilonMatrix
from sfumato.policy.pairwise import PairwisePolicy

__all__ = ["Blocks"]


class Blocks(PairwisePolicy):
    """One epsilon within each block of values, and another between blocks.

    Every value belongs to exactly one block. An output is at most e^ε times likelier for one value than for another
    value of the same block, and at most e^across times likelier than for a value of another block.

    Parameters
    ----------
    domain
        The values.
    blocks
        The partition of the domain, in one of these forms:

        - a list of lists of values;
        - a mapping from block names to lists of values;
        - one block label per value, in domain order or with the values as labels (a mapping, a pandas Series).
    epsilon
        Privacy level ε between values of the same block: one for all blocks, or one per block. The blocks are in the
        order of the lists, or of the first appearance of their labels in the domain.
    across
        Privacy level between values of different blocks. The default is infinite: a report may reveal the block.

    Raises
    ------
    InvalidInput
        If the blocks are not a partition of the domain, or if the number of epsilons is wrong.

    Examples
    --------
    >>> from sfumato import Domain
    >>> policy = Blocks(Domain(["Lyon", "Nice", "Rome", "Pisa"]), [["Lyon", "Nice"], ["Rome", "Pisa"]], 1)
    >>> policy.allows([1, 1, 0, 0]), policy.allows([1, 0, 0, 0])
    (True, False)
    """

    kind = "blocks"

    def __init__(
        self,
        domain: Domain,
        blocks: Iterable[Any] | Mapping[Any, Any],
        epsilon: EpsilonLike | Sequence[EpsilonLike],
        across: EpsilonLike = INFINITE,
    ) -> None:
        self.domain = checked_domain("Blocks", domain)
        labels = _read_blocks(domain, blocks)
        epsilons = _read_epsilons(epsilon, int(labels.max()) + 1)
        # Blocks are numbered in order of first appearance, so that equal policies have equal documents.
        order = list(dict.fromkeys(labels.tolist()))
        renumbered = np.empty(len(order), dtype=np.int64)
        renumbered[order] = np.arange(len(order))
        self._block_of = renumbered[labels]
        self._epsilons = tuple(epsilons[block] for block in order)
        self.across = Epsilon(across, subject="Blocks", parameter="across")

    @classmethod
    def from_csv(
        cls,
        domain: Domain,
        path: Path | str,
        epsilon: EpsilonLike | Sequence[EpsilonLike],
        across: EpsilonLike = INFINITE,
        *,
        column: str | None = None,
        value: str | Sequence[str] | None = None,
        delimiter: str | None = None,
        encoding: str = "utf-8",
        decimal: str = ".",
    ) -> Blocks:
        """Return the policy whose blocks are in a CSV file with one line per value, such as the district of each place.

        The file has a header, and each value of the domain is on exactly one line. Blank lines are ignored.

        Parameters
        ----------
        domain
            The values.
        path
            The CSV or TSV file, compressed with gzip or not.
        epsilon
            Privacy level within blocks: one for all, or one per block in the order in which blocks appear in the
            domain.
        across
            Privacy level between values of different blocks.
        column
            Name of the column with the blocks. It may be None if only one column remains.
        value
            Name of the column with the values, or a list with one column per part of values that are tuples. If it is
            None, the columns named like the factors of a product are read, or ``row`` and ``column`` of a grid. For
            other domains it is the only other column, or the first one of two if ``column`` is None too.
        delimiter
            Character between cells. The default is a comma, or a tab if the name ends in ``.tsv``.
        encoding
            One of ``"utf-8"``, ``"utf-8-sig"``, ``"latin-1"``, ``"cp1252"`` and ``"utf-16"``.
        decimal
            Decimal mark of numbers, ``"."`` or ``","``.

        Returns
        -------
        Blocks
            The policy.

        Raises
        ------
        InvalidInput
            If the file cannot be read, if a line has no value or no block, names an unknown value or repeats one, or if
            a value of the domain has no line. The message names the file and the line.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sfumato import Domain
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "districts.csv")
        ...     _ = path.write_text("place,district\\nharbour,city\\ncastle,hills\\nstation,city\\n")
        ...     policy = Blocks.from_csv(Domain(["harbour", "station", "castle"]), path, 1)
        >>> policy.block_of
        array([0, 0, 1])
        """
        text = TextFormat(delimiter, encoding, decimal)
        labels = read_entries(checked_domain("Blocks", domain), Path(path), column, value, text)
        return cls(domain, labels, epsilon, across)

    @property
    def block_of(self) -> npt.NDArray[np.int64]:
        """Block number of each value, from 0, as an array in domain order."""
        return self._block_of.copy()

    @property
    def epsilons(self) -> tuple[Epsilon, ...]:
        """Epsilon within each block, by block number."""
        return self._epsilons

    def epsilon_between(self, x: int, other: int) -> Epsilon:
        if x == other:
            return ZERO
        block = self._block_of[x]
        return self._epsilons[block] if block == self._block_of[other] else self.across

    def effective_epsilon(self, x: int, other: int) -> Epsilon:
        return self._shortened(self.epsilon_between(x, other)) if x != other else ZERO

    def _shortened(self, direct: Epsilon) -> Epsilon:
        """Return the smaller of a direct step and a path out of the block and back, which costs twice ``across``."""
        return min(direct, self.across + self.across) if len(self._epsilons) > 1 else direct

    def classes(self) -> npt.NDArray[np.int64]:
        return self._block_of

    def epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._epsilons_on(indices, self._epsilons)

    def effective_epsilons_on(self, indices: npt.NDArray[np.intp]) -> EpsilonMatrix:
        return self._epsilons_on(indices, tuple(self._shortened(e) for e in self._epsilons))

    def _epsilons_on(self, indices: npt.NDArray[np.intp], within: tuple[Epsilon, ...]) -> EpsilonMatrix:
        """Return the epsilons between values, given those within each block."""
        block = self._block_of[indices]
        positions = np.where(block[:, None] == block, block[:, None] + 2, 1)
        np.fill_diagonal(positions, 0)
        return EpsilonMatrix.from_epsilons(positions, [ZERO, self.across, *within])

    def parameters(self) -> dict[str, Any]:
        same = len(set(self._epsilons)) == 1
        epsilon = str(self._epsilons[0]) if same else [str(e) for e in self._epsilons]
        return {"blocks": self._block_of.tolist(), "epsilon": epsilon, "across": str(self.across)}

    def _compose_same(self, other: PairwisePolicy) -> Policy | None:
        if isinstance(other, Blocks) and np.array_equal(self._block_of, other._block_of):
            first = [self._shortened(e) for e in self._epsilons]
            second = [other._shortened(e) for e in other._epsilons]
            within = [(a + b).as_promise() for a, b in zip(first, second, strict=True)]
            return Blocks(self.domain, self._block_of, within, (self.across + other.across).as_promise())
        return None

    def restrict(self, values: Sequence[Any]) -> Policy:
        block = self._block_of[[self.domain.index(value) for value in values]]
        blocks = list(dict.fromkeys(block.tolist()))
        within = [self._shortened(self._epsilons[b]) for b in blocks]
        return Blocks(self.domain.subset(values), block, within, self.across)


def _read_blocks(domain: Domain, blocks: Iterable[Any] | Mapping[Any, Any]) -> npt.NDArray[np.int64]:
    """Return the number of each value's block."""
    must = f"be lists of values, or {quantity(len(domain), 'block label')}, one per value"
    if isinstance(blocks, Mapping) and blocks and all(map(_is_block, blocks.values())):
        blocks = list(blocks.values())
    by_value = has_labels(domain, blocks)
    blocks = align(domain, blocks, "Blocks", "blocks")
    entries = list(blocks) if isinstance(blocks, str) else read_list("Blocks", "blocks", must, blocks)
    # A tuple of values of the domain is a block; any other tuple is a block label.
    is_partition = bool(entries) and all(
        _is_block(block) or (not by_value and isinstance(block, tuple) and all(value in domain for value in block))
        for block in entries
    )
    if not is_partition:
        if len(entries) != len(domain):
            raise InvalidInput("Blocks", "blocks", must, Description(quantity(len(entries), "label")))
        # A missing label would make the value a block by itself, which may be revealed.
        without = next((x for x, label in enumerate(entries) if is_missing(label)), None)
        if without is not None:
            raise InvalidInput("Blocks", f"the block of {domain.label(without)!r}", "be a label", entries[without])
        numbers: dict[object, int] = {}
        try:
            return np.array([numbers.setdefault(label, len(numbers)) for label in entries], dtype=np.int64)
        except TypeError:  # a mixture of lists and labels
            raise InvalidInput("Blocks", "blocks", must, entries) from None
    block_of = np.full(len(domain), -1, dtype=np.int64)
    for number, block in enumerate(entries):
        if len(block) == 0:
            raise InvalidInput("Blocks", f"block {number}", "have at least one value", Description("an empty block"))
        for value in block:
            x = domain.index(value)
            if block_of[x] >= 0:
                where = f"blocks {block_of[x]} and {number}" if block_of[x] != number else f"block {number} twice"
                raise InvalidInput("Blocks", "blocks", "contain each value once", Description(f"{value!r} in {where}"))
            block_of[x] = number
    missing = np.flatnonzero(block_of < 0)
    if len(missing):
        more = f" and {quantity(len(missing) - 1, 'more value')}" if len(missing) > 1 else ""
        got = Description(f"no block for {domain.label(int(missing[0]))!r}{more}")
        raise InvalidInput("Blocks", "blocks", "contain every value of the domain", got)
    return block_of


def _is_block(block: object) -> bool:
    """Return whether an entry is a collection of values."""
    return isinstance(block, (list, set, frozenset, range, np.ndarray))


def _read_epsilons(epsilon: EpsilonLike | Sequence[EpsilonLike], count: int) -> tuple[Epsilon, ...]:
    """Return one epsilon per block."""
    if isinstance(epsilon, (list, tuple, np.ndarray)):
        if len(epsilon) != count:
            must = f"be one epsilon, or a list of {quantity(count, 'epsilon')}, one per block"
            raise InvalidInput("Blocks", "epsilon", must, Description(quantity(len(epsilon), "epsilon")))
        return tuple(
            Epsilon(e, subject="Blocks", parameter=f"epsilon of block {number}") for number, e in enumerate(epsilon)
        )
    single: Any = epsilon
    return (Epsilon(single, subject="Blocks"),) * count
