"""Estimates as files."""

from __future__ import annotations

import io

from sfumato.estimation import Estimate

__all__ = ["PARQUET_TYPE", "as_parquet"]

PARQUET_TYPE = "application/vnd.apache.parquet"


def as_parquet(found: Estimate, level: float) -> bytes:
    """The estimate as a Parquet file, the same table as ``sfumato estimate -o estimate.parquet`` writes."""
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(found.to_arrow(level), file)
    return file.getvalue()
