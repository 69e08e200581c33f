"""`sfumato aggregate`: report files become exact counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sfumato._core import PIPE
from sfumato.cli._engine import HADOOP_INPUT, engine_options, spark_session
from sfumato.cli._files import CHECKPOINT, INPUT, JSON_OUTPUT, named, read_mechanism
from sfumato.cli._show import JSON_OPTION, THREADS_OPTION, progress_bar, quantity, show_json

if TYPE_CHECKING:
    from sfumato.collecting import Aggregate
    from sfumato.mechanisms import Mechanism


@click.command(short_help="Count the reports of any number of files, exactly.")
@click.argument("mechanism", type=INPUT)
@click.argument("reports", type=HADOOP_INPUT, nargs=-1, required=True)
@click.option("-o", "--output", type=JSON_OUTPUT, required=True, help="The counts file to write: .json; - for a pipe.")
@click.option("--resume", type=CHECKPOINT, help="A checkpoint file: go on where it ends, and keep it.")
@THREADS_OPTION
@engine_options
@JSON_OPTION
def command(
    mechanism: str,
    reports: tuple[str, ...],
    output: str,
    resume: str | None,
    threads: int | None,
    engine: str,
    master: str | None,
    as_json: bool,
) -> None:
    """Count reports exactly. Files that hold counts already (.json) are merged in; every report is checked.

    - reads a pipe, whatever it brings: a binary batch, Parquet, Arrow, lines, or counts.

    All cores count, in little memory. --resume keeps what was counted in a file: whatever ends the command, the same
    command goes on from there, and more files can be added to it. Delete the file to begin anew.

    With --engine spark --master spark://host:7077, reports are files or folders at paths of Hadoop's, and the counts
    the same integers.

    Example: sfumato aggregate mechanism.json monday.parquet tuesday.parquet -o counts.json
    """
    from sfumato._core import writing

    if resume is not None and engine != "process":
        raise click.UsageError("--resume is for one process; Spark has retries of its own.")
    sampler = read_mechanism(mechanism)
    with spark_session(engine, master) as spark:
        if spark is None:
            counts = _count_here(sampler, reports, resume, threads)
        else:
            from sfumato.spark import aggregate_files

            counts = aggregate_files(sampler, spark, *reports)
    with writing(output) as file:
        file.write(counts.to_json().encode())
    aside = output == PIPE
    if as_json:
        show_json({"reports": counts.n, "mechanism_hash": counts.mechanism_hash, "file": output}, aside=aside)
        return
    click.echo(f"{quantity(counts.n, 'report')} counted in {named(output)}", err=aside)


def _count_here(sampler: Mechanism, reports: tuple[str, ...], resume: str | None, threads: int | None) -> Aggregate:
    from sfumato.collecting import aggregate_files

    with progress_bar("counting") as progress:
        return aggregate_files(sampler, reports, resume=resume, progress=progress, threads=threads)
