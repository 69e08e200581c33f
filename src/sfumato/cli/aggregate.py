"""`sfumato aggregate`: count the reports in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from sfumato._core import PIPE, quantity
from sfumato.cli._engine import HADOOP_INPUT, engine_options, spark_session
from sfumato.cli._files import CHECKPOINT, INPUT, JSON_OUTPUT, named, read_mechanism
from sfumato.cli._groups import group_options
from sfumato.cli._show import JSON_OPTION, THREADS_OPTION, progress_bar, show_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sfumato.collecting import Aggregate, GroupedAggregate
    from sfumato.mechanisms import Mechanism


@click.command(short_help="Count the reports in one or more files.")
@click.argument("mechanism", type=INPUT)
@click.argument("reports", type=HADOOP_INPUT, nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=JSON_OUTPUT,
    required=True,
    help="File to write the counts to, with the suffix .json; - writes to standard output.",
)
@click.option(
    "--resume",
    type=CHECKPOINT,
    help="Checkpoint file: save progress to it, and continue from it if it exists.  [default: no checkpoint]",
)
@group_options(
    "Column of the reports by which to count, such as a region; repeat the option for several.",
    "Column of integer survey weights; the counts of each weight stay separate.",
)
@THREADS_OPTION
@engine_options
@JSON_OPTION
def command(
    mechanism: str,
    reports: tuple[str, ...],
    output: str,
    resume: str | None,
    by: tuple[str, ...],
    weight: str | None,
    threads: int | None,
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Count the reports in one or more files and write exact integer counts.

    MECHANISM is the JSON file that `sfumato design` wrote. REPORTS are files of reports (.parquet, .arrow or .sfb) or
    counts files (.json), which are merged into the result. Every report is validated. With -, the command reads
    standard input and detects the format: a binary batch, Parquet, Arrow, lines, or counts.

    Files are streamed, so memory use stays small. With --resume, an interrupted command continues from its checkpoint
    when it is run again; further files may be added to the same command. Delete the checkpoint to start over.

    With --by or --weight, the counts of each group are separate. Report files are then Parquet or Arrow files that
    have these columns, and counts files have the same columns.

    With --engine spark --master spark://host:7077, REPORTS are files or folders at Hadoop paths. The counts are the
    same integers.

    Example: sfumato aggregate mechanism.json monday.parquet tuesday.parquet -o counts.json
    """
    from sfumato._core import writing

    if resume is not None and engine != "process":
        raise click.UsageError("--resume requires --engine process. Leave it out: Spark retries failed tasks itself.")
    sampler = read_mechanism(mechanism)
    counts: Aggregate | GroupedAggregate
    with spark_session(engine, master) as spark:
        if spark is None:
            counts = _count_here(sampler, reports, by, weight, resume, threads)
        else:
            counts = _count_on_spark(spark, sampler, reports, by, weight)
    with writing(output) as file:
        file.write(counts.to_json().encode())
    aside = output == PIPE
    if as_json:
        answer = {"reports": counts.n, "mechanism_hash": counts.mechanism_hash, "file": output}
        groups = {"groups": len(counts), "unprotected": [*by, *_listed(weight)]} if isinstance(counts, Mapping) else {}
        show_json({**answer, **groups}, aside=aside)
        return
    grouped = f" in {quantity(len(counts), 'group')}" if isinstance(counts, Mapping) else ""
    click.echo(f"{quantity(counts.n, 'report')}{grouped} counted; counts written to {named(output)}", err=aside)


def _listed(weight: str | None) -> list[str]:
    """Return the column of weights as a list."""
    return [] if weight is None else [weight]


def _count_here(
    sampler: Mechanism,
    reports: tuple[str, ...],
    by: tuple[str, ...],
    weight: str | None,
    resume: str | None,
    threads: int | None,
) -> Aggregate | GroupedAggregate:
    """Count the reports in this process."""
    from sfumato.collecting import aggregate_files, aggregate_group_files

    with progress_bar("counting") as progress:
        if by or weight is not None:
            return aggregate_group_files(
                sampler, reports, by, weight=weight, resume=resume, progress=progress, threads=threads
            )
        return aggregate_files(sampler, reports, resume=resume, progress=progress, threads=threads)


def _count_on_spark(
    spark: SparkSession, sampler: Mechanism, reports: tuple[str, ...], by: tuple[str, ...], weight: str | None
) -> Aggregate | GroupedAggregate:
    """Count the reports on Spark."""
    from sfumato.spark import aggregate_files, aggregate_group_files

    if by or weight is not None:
        return aggregate_group_files(sampler, spark, *reports, by=by, weight=weight)
    return aggregate_files(sampler, spark, *reports)
