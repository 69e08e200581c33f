"""Privatize DataFrames and count report tables on Spark, with the code that runs on one machine.

The executors run the same samplers, kernels and readers, and Spark adds up their counts. The counts are the same
integers as those of one process. Sfumato must be installed on the executors; ``docs/spark.md`` shows how.
"""

from sfumato.spark.counting import aggregate, aggregate_files, aggregate_group_files, aggregate_groups
from sfumato.spark.privatizing import privatize, privatize_files
from sfumato.spark.sessions import session
from sfumato.spark.tables import read_table

__all__ = [
    "aggregate",
    "aggregate_files",
    "aggregate_group_files",
    "aggregate_groups",
    "privatize",
    "privatize_files",
    "read_table",
    "session",
]
