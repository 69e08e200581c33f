"""Encode columns of files: rules for missing values, and rows that messages name as the file does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sfumato._core import Integers
from sfumato.domain.domain import Domain
from sfumato.domain.lookup import indices_of
from sfumato.domain.missing_values import filled_kind, marked_kind
from sfumato.domain.refusals import At

__all__ = ["drop_marked", "encode_rows", "filled_domain", "marked_domain"]


def filled_domain(domain: Domain, label: object, at: At) -> Domain:
    """Return a domain that only encodes columns; missing values count as the value with a label."""
    return Domain._of(filled_kind(domain._kind, label, at))


def marked_domain(domain: Domain, at: At) -> Domain:
    """Return a domain that only encodes columns; missing values get one more index, for :func:`drop_marked`."""
    return Domain._of(marked_kind(domain._kind, at))


def encode_rows(domain: Domain, values: object, subject: str, row_name: Callable[[int], str]) -> Integers:
    """Return the index of each value; errors name the file and the row, such as "line 7, column 'age'"."""
    return indices_of(domain._kind, values, At(subject, "values"), copy=False, row_name=row_name, hints=True)


def drop_marked(domain: Domain, marked: Domain, indices: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the indices in a domain of the rows without marked values, and the mask of these rows."""
    parts = np.unravel_index(indices, marked.shape)
    selection = np.logical_and.reduce([part < size for part, size in zip(parts, domain.shape, strict=True)])
    return np.ravel_multi_index(tuple(part[selection] for part in parts), domain.shape).astype(np.int64), selection
