"""Reports at rest: what a valid one is, and how many of them are kept in a binary batch or a file."""

from sfumato.reports.batch import decode_batch, encode_batch
from sfumato.reports.files import read_reports, write_reports
from sfumato.reports.validity import check_reports

__all__ = ["check_reports", "decode_batch", "encode_batch", "read_reports", "write_reports"]
