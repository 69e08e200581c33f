"""Identification of the library's own classes, without relying on the statements of other classes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sfumato.mechanisms.reports.base import ReportFormat

if TYPE_CHECKING:
    from sfumato.mechanisms.base import Mechanism

__all__ = ["is_library_class", "is_library_format", "is_library_mechanism"]

_PACKAGE = "sfumato.mechanisms."


def is_library_class(kind: type) -> bool:
    """Return whether a class is defined at the top level of a module of ``sfumato.mechanisms``."""
    module = sys.modules.get(kind.__module__) if kind.__module__.startswith(_PACKAGE) else None
    return module is not None and vars(module).get(kind.__qualname__) is kind


def is_library_mechanism(mechanism: Mechanism) -> bool:
    """Return whether the class of a mechanism, and of each of its parts, is the library's."""
    return is_library_class(type(mechanism)) and mechanism.is_of_library


def is_library_format(report_format: object) -> bool:
    """Return whether a report format is the library's, so that its encoding holds everything a report reveals."""
    if not isinstance(report_format, ReportFormat) or not is_library_class(type(report_format)):
        return False
    return getattr(report_format.encode, "__func__", None) is ReportFormat.encode
