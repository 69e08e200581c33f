"""What tests share: collectors, clocks, reference computations, and where the repository is."""

from __future__ import annotations

from pathlib import Path

__all__ = ["ROOT"]

#: The folder of the repository.
ROOT = Path(__file__).parents[2]
