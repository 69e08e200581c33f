"""Outputs of a sampler as arrays: one row per output, one column per position.

Every type of output becomes rows of items (bytes, code points, ints). An int becomes its eight bytes, least significant
first. Shorter rows are padded, so lengths, prefixes and missing items are plain comparisons.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers, quantity
from sfumato.errors import Description, InvalidInput, shown

__all__ = ["Outputs", "read_outputs"]

_SUBJECT = "audit_sampler"
_ACCEPTED = "return bytes, str, int, bool, or a list, tuple or array of ints or bools"
#: Numpy type for the items of each output type; its smallest value marks a missing item.
_ITEM_TYPES: dict[str, type[np.signedinteger[Any]]] = {
    "bytes": np.int16,
    "int": np.int16,
    "bool": np.int16,
    "str": np.int32,
    "sequence": np.int64,
}

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs of one type: ``items[row, position]``, and the length of each row."""

    type_name: str
    items: npt.NDArray[np.signedinteger[Any]]
    lengths: Integers
    _cache: dict[object, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def width(self) -> int:
        """The length of the longest output."""
        return int(self.items.shape[1])

    @property
    def fill(self) -> int:
        """The value in place of a missing item."""
        return int(np.iinfo(self.items.dtype).min)

    @property
    def is_bytewise(self) -> bool:
        """Whether every item is a byte."""
        return self.items.dtype == np.int16

    def at(self, position: int) -> npt.NDArray[np.signedinteger[Any]]:
        """Return the item of each output at a position."""
        if position < self.width:
            return self.items[:, position]
        return np.full(len(self), self.fill, dtype=self.items.dtype)

    def once(self, key: object, compute: Callable[[Outputs], T]) -> T:
        """Return a result from the cache, or compute it; events share fingerprints, codes and scores."""
        if key not in self._cache:
            self._cache[key] = compute(self)
        result: T = self._cache[key]
        return result

    def fingerprints(self, prefix: int | None = None) -> Integers:
        """Return one number per whole output, or per beginning of ``prefix`` items.

        Any function of an output defines a valid event, so collisions of fingerprints do not affect validity.
        """
        # Subtracting the fill value makes padding zero, so padding does not change a fingerprint.
        part = self.items[:, :prefix]
        return self.once(
            ("fingerprints", prefix), lambda _: (part.astype(np.int64) - self.fill) @ _multipliers(part.shape[1])
        )

    def rows(self, chosen: slice) -> Outputs:
        """Return some of the outputs."""
        return Outputs(self.type_name, self.items[chosen], self.lengths[chosen])

    def text(self, row: int, prefix: int | None = None) -> str:
        """Return an output, or its beginning, as a person would write it."""
        items = self.items[row, : self.lengths[row]][:prefix]
        if self.type_name == "bytes":
            return shown(bytes(items.astype(np.uint8)))
        if self.type_name == "str":
            return shown("".join(map(chr, items)))
        if self.type_name == "sequence":
            return shown(items.tolist())
        number = int.from_bytes(bytes(items.astype(np.uint8)), "little", signed=True)
        return str(bool(number) if self.type_name == "bool" else number)

    def item_text(self, item: int) -> str:
        """Return one item as a person would write it."""
        if self.type_name == "sequence":
            return str(item)
        return repr(chr(item)) if self.type_name == "str" else repr(bytes([item]))

    @classmethod
    def joined(cls, parts: Sequence[Outputs]) -> Outputs:
        """Concatenate outputs."""
        width = max(part.width for part in parts)
        items = np.full((sum(map(len, parts)), width), parts[0].fill, dtype=parts[0].items.dtype)
        row = 0
        for part in parts:
            items[row : row + len(part), : part.width] = part.items
            row += len(part)
        return cls(parts[0].type_name, items, np.concatenate([part.lengths for part in parts]))


@functools.lru_cache(maxsize=64)
def _multipliers(count: int) -> Integers:
    """Return fixed odd 64-bit numbers (splitmix64 of the position) for a linear hash modulo 2^64."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) | np.uint64(1)).view(np.int64)


# -- reading ---------------------------------------------------------------------------------------------


def read_outputs(returned: Any, count: int) -> Outputs:
    """Read outputs from a list, or from an array whose first axis counts them."""
    if isinstance(returned, np.ndarray) and returned.dtype.kind in "biu" and returned.ndim in (1, 2):
        outputs = _of_array(returned)
    elif isinstance(returned, (list, tuple, np.ndarray)):
        outputs = _of_list(returned.tolist() if isinstance(returned, np.ndarray) else list(returned))
    else:
        raise InvalidInput(_SUBJECT, "the result of sampler(value, n)", "be a list or an array", type(returned))
    if len(outputs) != count:
        must = f"have {quantity(count, 'output')}"
        got = Description(quantity(len(outputs), "output"))
        raise InvalidInput(_SUBJECT, "the result of sampler(value, n)", must, got)
    return outputs


def _of_array(array: npt.NDArray[Any]) -> Outputs:
    """Read outputs from an array."""
    if array.ndim == 2:
        return _rectangle("sequence", _fitting(array))
    type_name = "bool" if array.dtype.kind == "b" else "int"
    return _rectangle(type_name, _fitting(array).astype("<i8").reshape(-1, 1).view(np.uint8))


def _of_list(outputs: list[Any]) -> Outputs:
    """Read outputs from a list of one type."""
    type_names = {_type_name(output) for output in {type(output): output for output in outputs}.values()}
    if len(type_names) > 1:
        raise InvalidInput(
            _SUBJECT, "every output", "have the same type", Description(" and ".join(sorted(type_names)))
        )
    type_name = type_names.pop() if type_names else "bytes"
    if type_name in {"int", "bool"}:
        try:
            return _of_array(np.array(outputs, dtype=np.bool_ if type_name == "bool" else np.int64))
        except OverflowError:
            hint = "Return longer ints as bytes."
            raise InvalidInput(
                _SUBJECT, "every int that the sampler returns", "fit in 64 bits", max(outputs), hint=hint
            ) from None
    lengths = np.array([len(output) for output in outputs], dtype=np.int64)
    if type_name == "bytes":
        flat: npt.NDArray[Any] = np.frombuffer(b"".join(outputs), dtype=np.uint8)
    elif type_name == "str":
        flat = np.frombuffer("".join(outputs).encode("utf-32-le", "surrogatepass"), dtype="<u4")
    else:
        flat = _flat(outputs)
    item_type = _ITEM_TYPES[type_name]
    items = np.full((len(outputs), int(lengths.max(initial=0))), np.iinfo(item_type).min, dtype=item_type)
    items[np.arange(items.shape[1]) < lengths[:, None]] = flat
    return Outputs(type_name, items, lengths)


def _type_name(output: Any) -> str:
    """Return the type of an output, or raise InvalidInput."""
    if isinstance(output, (bytes, bytearray)):
        return "bytes"
    if isinstance(output, str):
        return "str"
    if isinstance(output, (bool, np.bool_)):
        return "bool"
    if isinstance(output, (int, np.integer)):
        return "int"
    if isinstance(output, (list, tuple)) or (isinstance(output, np.ndarray) and output.ndim == 1):
        return "sequence"
    raise InvalidInput(_SUBJECT, "the sampler", _ACCEPTED, type(output))


def _flat(outputs: list[Any]) -> npt.NDArray[Any]:
    """Return the items of all sequences in one array."""
    if all(isinstance(output, np.ndarray) for output in outputs):
        return _fitting(np.concatenate(outputs))
    flat = list(chain.from_iterable(outputs))
    for item in {type(item): item for item in flat}.values():
        if not isinstance(item, (int, np.integer, np.bool_)):
            raise InvalidInput(_SUBJECT, "every item of an output", "be an int or a bool", type(item))
    try:
        return np.array(flat, dtype=np.int64)
    except OverflowError:
        raise InvalidInput(_SUBJECT, "every item of an output", "fit in 64 bits", max(flat)) from None


def _fitting(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array of ints or bools as signed integers."""
    if array.dtype.kind not in "biu":
        raise InvalidInput(_SUBJECT, "every array that the sampler returns", "contain ints or bools", array.dtype)
    if array.dtype == np.uint64:  # the same bits, so different outputs stay different
        return array.view(np.int64)
    return array


def _rectangle(type_name: str, items: npt.NDArray[Any]) -> Outputs:
    """Return outputs of equal length."""
    return Outputs(type_name, items.astype(_ITEM_TYPES[type_name]), np.full(len(items), items.shape[1], dtype=np.int64))
