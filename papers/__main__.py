"""`python -m papers`: repeat the experiments of the papers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from papers import Experiment, Result, Run, all_experiments, experiment_named
from papers.figure import draw
from sfumato._core import replacing
from sfumato.cli._show import JSON_OPTION, progress_bar, show_json, show_table
from sfumato.datasets import data_folder
from sfumato.errors import InvalidInput
from sfumato.plotting import save


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "as_list", is_flag=True, help="List the experiments and exit.  [default: off]")
@click.option("--all", "all_", is_flag=True, help="Run every experiment.  [default: only those named]")
@click.option(
    "--quick",
    is_flag=True,
    help="Run few and small cases, which takes seconds, to test the installation.  [default: full size]",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of the random numbers; a seed repeats its results."
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder with the papers' data files. Without it, synthetic data replace them.  "
    "[default: environment variable SFUMATO_DATA]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False),
    help="Folder to write NAME.svg, NAME.json and NAME.md of each experiment to.  [default: not written]",
)
@JSON_OPTION
def command(
    names: tuple[str, ...],
    as_list: bool,
    all_: bool,
    quick: bool,
    seed: int,
    data: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Repeat experiments of the papers, and compare the results with the published numbers and with Sfumato's best.

    NAME is an experiment from --list. If a paper's data are not available, the output names the data that replace
    them.

    Example: python -m papers icml-table1 --data data -o results
    """
    if as_list + all_ + bool(names) != 1:
        raise click.UsageError("Give the names of experiments, or --all, or --list.")
    if as_list:
        _list(list(all_experiments().values()), as_json)
        return
    folder = data_folder(data)
    try:
        chosen = list(all_experiments().values()) if all_ else [experiment_named(name) for name in names]
    except InvalidInput as error:
        raise click.UsageError(str(error)) from None
    documents = []
    for experiment in chosen:
        started = time.monotonic()
        with progress_bar(experiment.name) as progress:
            result = experiment.run(Run(quick, seed, folder, progress))
        document = {
            "name": experiment.name,
            "title": experiment.title,
            "place": experiment.place,
            "quick": quick,
            "seed": seed,
            "seconds": round(time.monotonic() - started, 1),
            **result.document(),
        }
        documents.append(document)
        if output is not None:
            _write(Path(output), experiment, result, document)
        if not as_json:
            _show(experiment, result, document)
    if as_json:
        show_json(documents[0] if len(names) == 1 else {"experiments": documents})


def _list(known: list[Experiment], as_json: bool) -> None:
    """Print the names and titles of the experiments."""
    if as_json:
        show_json([{"name": each.name, "title": each.title, "place": each.place} for each in known])
    else:
        show_table(("name", "title"), [(each.name, each.title) for each in known])


def _remarks(result: Result, document: dict[str, Any]) -> list[str]:
    """Return the notes below a table: data, mechanism, claims, seed and duration."""
    lines = [f"Data: {each.source}." for each in result.sources]
    if result.ours_is:
        lines.append(f"Ours: {result.ours_is}.")
    lines += [
        f"{'Confirmed' if each.holds else 'Not confirmed'}: {each.text}. Result: {each.finding}."
        for each in result.claims
    ]
    size = ", quick" if document["quick"] else ""
    return [*lines, *result.notes, f"Seed {document['seed']}{size}, {document['seconds']} s."]


def _show(experiment: Experiment, result: Result, document: dict[str, Any]) -> None:
    """Print the table and the notes of an experiment."""
    headings, cells = result.table()
    show_table(headings, cells, title=f"{experiment.name}: {experiment.title}")
    click.echo(f"{experiment.place}\nNumbers: {result.quantity}.")
    for line in _remarks(result, document):
        click.echo(f"- {line}")
    click.echo()


def _write(folder: Path, experiment: Experiment, result: Result, document: dict[str, Any]) -> None:
    """Write the figure, the JSON document and the Markdown table of an experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    save(draw(experiment.title, result.panels), folder / f"{experiment.name}.svg")
    headings, cells = result.table()
    lines = [
        f"# {experiment.title}",
        "",
        f"{experiment.place}. Numbers: {result.quantity}.",
        "",
        "| " + " | ".join(headings) + " |",
        "|---" * len(headings) + "|",
        *("| " + " | ".join(row) + " |" for row in cells),
        "",
        *(f"- {line}" for line in _remarks(result, document)),
    ]
    for suffix, content in (("json", json.dumps(document, indent=2, ensure_ascii=False)), ("md", "\n".join(lines))):
        with replacing(folder / f"{experiment.name}.{suffix}") as file:
            file.write(f"{content}\n".encode())


if __name__ == "__main__":
    command(prog_name="python -m papers")
