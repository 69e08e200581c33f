"""Collecting: reports in files and batches, and their exact counts."""

from sfumato.collecting.aggregates import Aggregate, aggregate
from sfumato.collecting.batch import decode_batch, encode_batch
from sfumato.collecting.file_counting import aggregate_files, aggregate_group_files
from sfumato.collecting.files import read_reports, write_reports
from sfumato.collecting.grouped import GroupedAggregate
from sfumato.collecting.groups import aggregate_groups
from sfumato.collecting.pairs import PairCounts, aggregate_pairs
from sfumato.collecting.weights import weight_classes

__all__ = [
    "Aggregate",
    "GroupedAggregate",
    "PairCounts",
    "aggregate",
    "aggregate_files",
    "aggregate_group_files",
    "aggregate_groups",
    "aggregate_pairs",
    "decode_batch",
    "encode_batch",
    "read_reports",
    "weight_classes",
    "write_reports",
]


# For the other packages of Sfumato; not part of the public interface.
from sfumato.collecting.batch import (
    HEADER_BYTES as HEADER_BYTES,
    batch_header as batch_header,
    write_batch as write_batch,
)
from sfumato.collecting.columns import open_columns as open_columns
from sfumato.collecting.files import (
    METADATA_KEY as METADATA_KEY,
    REPORT_COLUMN as REPORT_COLUMN,
    REPORT_SUFFIXES as REPORT_SUFFIXES,
    read_grouped_reports as read_grouped_reports,
    rows_by_group as rows_by_group,
    write_report_rows as write_report_rows,
)
from sfumato.collecting.grouped import check_columns as check_columns
from sfumato.collecting.groups import Grouping as Grouping, GroupTally as GroupTally, row_of_file as row_of_file
from sfumato.collecting.hashes import check_origin as check_origin, wrong_mechanism as wrong_mechanism
from sfumato.collecting.labels import group_document as group_document, read_group as read_group
from sfumato.collecting.sources import (
    ARROW as ARROW,
    PARQUET as PARQUET,
    STREAM as STREAM,
    Source as Source,
    source_of as source_of,
    standard_input as standard_input,
    suffix_of as suffix_of,
)
from sfumato.collecting.tables import write_table as write_table
from sfumato.collecting.weights import read_weights as read_weights
