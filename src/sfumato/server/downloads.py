"""Estimates as files."""

from __future__ import annotations

import io
from typing import Any

from sfumato._estimate import estimate
from sfumato.errors import SfumatoError
from sfumato.server.collections import Collection
from sfumato.server.refusals import Refusal

__all__ = ["PARQUET_TYPE", "as_parquet"]

PARQUET_TYPE = "application/vnd.apache.parquet"


def as_parquet(collection: Collection, counts: Any, method: str, level: float) -> bytes:
    """The estimate as a Parquet file, the same table as ``sfumato estimate -o estimate.parquet`` writes."""
    if not counts.n:
        raise Refusal("invalid", "there are no reports to estimate from yet")
    try:
        table = estimate(collection.mechanism, counts, method).to_arrow(level)
    except SfumatoError as error:
        raise Refusal("invalid", str(error)) from None
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()
