"""`sfumato reproduce`: the papers' figures and tables again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._show import JSON_OPTION, progress_bar, show_json, show_table

if TYPE_CHECKING:
    from sfumato.papers import Experiment, Result


@click.command(short_help="Run a paper's experiment again, beside its published numbers.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--list", "as_list", is_flag=True, help="List the experiments.")
@click.option("--all", "all_", is_flag=True, help="Run every experiment.")
@click.option("--quick", is_flag=True, help="The fewest and smallest cases: seconds, to see that all of it works.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    help="The folder with data files; else SFUMATO_DATA names it, or stand-ins are invented.",
)
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), help="A folder for NAME.svg, NAME.json and NAME.md of each."
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
    """Run experiments of the papers again: each number beside the published one, and beside our best mechanism's.

    Where a paper's data are not at hand, the answer says what stands in for them.

    Example: sfumato reproduce icml-table1 --data data -o results
    """
    from sfumato.papers import Run, all_experiments, data_folder, experiment_named

    if as_list + all_ + bool(names) != 1:
        raise click.UsageError("Give names, or --all, or --list.")
    if as_list:
        _list(list(all_experiments().values()), as_json)
        return
    folder = data_folder(data)
    documents = []
    for experiment in all_experiments().values() if all_ else [experiment_named(name) for name in names]:
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
    if as_json:
        show_json([{"name": each.name, "title": each.title, "place": each.place} for each in known])
    else:
        show_table(("name", "what"), [(each.name, each.title) for each in known])


def _remarks(result: Result, document: dict[str, Any]) -> list[str]:
    """What stands below a table."""
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
    headings, cells = result.table()
    show_table(headings, cells, title=f"{experiment.name}: {experiment.title}")
    click.echo(f"{experiment.place}\nNumbers: {result.quantity}.")
    for line in _remarks(result, document):
        click.echo(f"- {line}")
    click.echo()


def _write(folder: Path, experiment: Experiment, result: Result, document: dict[str, Any]) -> None:
    import json

    from sfumato._core import replacing
    from sfumato.papers import draw
    from sfumato.plotting import save

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
    for suffix, text in (("json", json.dumps(document, indent=2, ensure_ascii=False)), ("md", "\n".join(lines))):
        with replacing(folder / f"{experiment.name}.{suffix}") as file:
            file.write(f"{text}\n".encode())
