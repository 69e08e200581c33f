"""`sfumato estimate`: estimate frequencies from counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from sfumato._core import PIPE, quantity
from sfumato.cli._associations import ASSOCIATIONS_OPTION, associations_of
from sfumato.cli._files import (
    INPUT,
    OUTPUT,
    PLOT_FILE,
    POSTERIOR_PRIOR_OPTION,
    counts_of,
    format_option,
    grouped_counts_of,
    named,
    piped_suffix,
    question_option,
    read_bytes,
    read_mechanism,
    read_prior,
)
from sfumato.cli._groups import (
    COMPARE_OPTION,
    TOTALS_OPTION,
    compared,
    group_options,
    is_grouped,
    read_totals,
    with_weight,
)
from sfumato.cli._show import JSON_OPTION, method_option, show_json, show_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfumato.collecting import Aggregate
    from sfumato.estimation import Answers, Comparison, Estimate, GroupedAnswers, LinearEstimate
    from sfumato.mechanisms import Mechanism
    from sfumato.questions import Question

#: Maximum rows of the printed table.
_MOST_ROWS = 30
_FORMATS = ("csv", "parquet", "arrow")


@dataclass(frozen=True)
class _Show:
    """How results are shown: the intervals, and the files to write."""

    confidence: float
    simultaneous: bool
    plot: str | None
    output: str | None
    piped: str
    as_json: bool

    @property
    def aside(self) -> bool:
        """Whether standard output carries the data, so that text goes to standard error."""
        return self.output == PIPE

    @property
    def limits(self) -> list[str]:
        """The headings of the limits of intervals."""
        from sfumato._core import percent

        at = f"{percent(self.confidence)}{', all' if self.simultaneous else ''}"
        return [f"low ({at})", f"high ({at})"]

    def write(
        self,
        table: Answers | Comparison | Estimate | GroupedAnswers,
        draw: Callable[[], Figure],
        *,
        simultaneous: bool | None = None,
    ) -> None:
        """Draw the figure and write the table, if their files are set."""
        if self.plot is not None:
            from sfumato.plotting import save

            save(draw(), self.plot)
        if self.output is not None:
            from sfumato.collecting import write_table

            simultaneous = self.simultaneous if simultaneous is None else simultaneous
            columns = table.to_columns(self.confidence, simultaneous=simultaneous)
            write_table(self.output, columns, piped=self.piped)

    def document(self, result: Estimate) -> dict[str, Any]:
        """Return the entries that every JSON result has."""
        entries: dict[str, Any] = {"n": result.n, "method": result.method, "level": self.confidence}
        if result.choice is not None:
            entries["choice"] = result.choice.to_dict()
        return {**entries, "simultaneous": self.simultaneous}


@click.command(short_help="Estimate frequencies or answers from counts, with confidence intervals.")
@click.argument("mechanism", type=INPUT)
@click.argument("counts", type=INPUT)
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="File to write all estimates to: .csv, .parquet or .arrow; - writes to standard output.  "
    "[default: not written]",
)
@format_option(_FORMATS)
@question_option("frequencies")
@group_options(
    "Column of the counts by which to estimate; repeat the option for several. By default, counts by group are "
    "estimated by all of their columns.",
    "Column of the counts with survey weights. By default, the weights that `sfumato aggregate --weight` stored.",
)
@TOTALS_OPTION
@COMPARE_OPTION
@ASSOCIATIONS_OPTION
@method_option(with_prior=True)
@POSTERIOR_PRIOR_OPTION
@click.option(
    "--smooth",
    is_flag=True,
    help="Let neighbouring values share a prior, with the methods bayes and best, for grids and numbers.  "
    "[default: all values share it]",
)
@click.option(
    "--confidence",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals, between 0 and 1.",
)
@click.option(
    "--simultaneous",
    is_flag=True,
    help="Widen the intervals, so that all of them contain their values at the confidence level together.  "
    "[default: each interval separately]",
)
@click.option("--plot", type=PLOT_FILE, help="File to draw the estimate to: .svg or .png.  [default: not drawn]")
@click.option(
    "--dishonest",
    type=float,
    metavar="FRACTION",
    help="Also print how far this fraction of dishonest reports, from 0 to 1, can move each frequency.  "
    "[default: not printed]",
)
@JSON_OPTION
def command(
    mechanism: str,
    counts: str,
    output: str | None,
    form: str | None,
    question: Question | None,
    by: tuple[str, ...],
    weight: str | None,
    totals: str | None,
    compare: str | None,
    associations: bool,
    method: str,
    prior: str | None,
    smooth: bool,
    confidence: float,
    simultaneous: bool,
    plot: str | None,
    dishonest: float | None,
    as_json: bool,
) -> None:
    """Estimate the frequency of each value, or the answers to a question, with standard errors and intervals.

    MECHANISM is the JSON file that `sfumato design` wrote; COUNTS is the file that `sfumato aggregate` wrote. Either
    may be -, which reads standard input. The command prints the 30 most frequent values, or the first 30 answers;
    --output writes all of them.

    A mechanism that was designed for a question may not distinguish all values. Without --question, the command then
    prints the mean and the frequencies that its reports determine.

    Counts by group, from `sfumato aggregate --by`, give one table with all groups. Answers are weighted if the counts
    have survey weights, and adjusted to the population with --totals.

    Example: sfumato estimate mechanism.json counts.json --question mean -o answers.csv --plot answers.svg
    """
    from sfumato._core import percent
    from sfumato.estimation import MarginalTables, estimate
    from sfumato.questions import Frequencies, Marginals, Mean

    if associations and not isinstance(question, Marginals):
        raise click.UsageError("--associations requires --question marginals, or marginals:NAME*NAME for some tables.")
    piped = piped_suffix(output, form, _FORMATS)
    sampler = read_mechanism(mechanism)
    data = read_bytes(counts)
    show = _Show(confidence, simultaneous, plot, output, piped, as_json)
    if is_grouped(data):
        if prior is not None or dishonest is not None or smooth or associations:
            message = "--prior, --smooth, --dishonest and --associations do not apply to counts by group."
            raise click.UsageError(f"{message} Leave them out.")
        request = _GroupRequest(by, weight, totals, compare)
        _show_groups(sampler, data, named(counts, "input"), question, method, request, show)
        return
    if by or weight is not None or totals is not None or compare is not None:
        message = "--by, --weight, --totals and --compare require counts by group."
        raise click.UsageError(f"{message} Count with `sfumato aggregate --by`.")
    known = counts_of(sampler, data, named(counts, "input"))
    assumed = None if prior is None else read_prior(prior, sampler.domain)
    result = estimate(sampler, known, method, prior=assumed, smooth=smooth)
    if isinstance(question, Frequencies) or (question is None and result.is_complete):
        _show_frequencies(result, dishonest, show)
        return
    _warn_if_implausible(sampler, known)
    if dishonest is not None:
        raise click.UsageError("--dishonest applies to frequencies only. Leave out --question or --dishonest.")
    if question is None:
        show.write(result, lambda: result.plot(confidence))
        _show_rows(result.to_columns(confidence, simultaneous=simultaneous), result, {}, show)
        if not as_json:
            click.echo("The reports do not distinguish all values; they determine only these numbers.", err=show.aside)
        return
    answers = result.answers(question)
    show.write(answers, lambda: answers.plot(confidence, simultaneous=simultaneous))
    document = {"question": answers.question.to_dict(), "rounding": answers.rounding, "warnings": answers.warnings}
    measures, notes = (
        associations_of(answers, confidence) if isinstance(answers, MarginalTables) and associations else ({}, [])
    )
    if associations:
        document |= {"associations": _records(measures), "notes": notes}
    _show_rows(answers.named_columns(confidence, simultaneous=simultaneous), result, document, show)
    if associations and not as_json:
        if measures["measure"]:
            _show_columns(measures, f"associations, {percent(confidence)} intervals", show)
        for note in notes:
            click.echo(note, err=show.aside)
    if isinstance(question, Mean) and not as_json:
        _show_mean_notes(answers["mean"], show)


def _show_mean_notes(mean: LinearEstimate, show: _Show) -> None:
    """Print what bins and clipped numbers add to the error of a mean."""
    from sfumato.estimation import mean_notes

    for note in mean_notes(mean):
        click.echo(note, err=show.aside)


def _show_rows(columns: Mapping[str, Sequence[Any]], result: Estimate, document: dict[str, Any], show: _Show) -> None:
    """Print answers with their errors, as a table or with further entries as JSON."""
    lists: list[list[Any]] = [
        column.tolist() if hasattr(column, "tolist") else list(column) for column in columns.values()
    ]
    rows = list(zip(*lists, strict=True))
    if show.as_json:
        names = ("answer", "value", "standard_error", "low", "high")
        documents = [dict(zip(names, row, strict=True)) for row in rows]
        show_json({**show.document(result), **document, "rows": documents}, aside=show.aside)
        return
    name, value, *_ = columns
    heading = f"question {document['question']['question']}" if document else f"method {result.method}"
    cells = [[f"{cell:.5g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows[:_MOST_ROWS]]
    title = f"{quantity(result.n, 'report')}, {heading}"
    show_table([name, value, "standard error", *show.limits], cells, title=title, aside=show.aside)
    if len(rows) > _MOST_ROWS:
        note = f"the first {_MOST_ROWS} of {len(rows):,} answers; use -o FILE to write all of them"
        click.echo(note, err=show.aside)


def _warn_if_implausible(sampler: Mechanism, counts: Aggregate) -> None:
    """Warn about improbable counts; the table of frequencies prints this warning itself."""
    from sfumato.estimation import implausible

    for warning in implausible(sampler, counts):
        click.echo(f"WARNING: {warning}", err=True)


@dataclass(frozen=True)
class _GroupRequest:
    """The options of an estimate by group."""

    by: tuple[str, ...]
    weight: str | None
    totals: str | None
    compare: str | None


def _show_groups(
    sampler: Mechanism,
    data: bytes,
    shown: str,
    question: Question | None,
    method: str,
    request: _GroupRequest,
    show: _Show,
) -> None:
    """Print the answers of each group, and their differences."""
    from sfumato.estimation import estimate_groups

    counts = with_weight(grouped_counts_of(sampler, data, shown), request.weight)
    strata, totals = (None, None) if request.totals is None else read_totals(request.totals, counts)
    grouped = estimate_groups(sampler, counts, method)
    _warn_if_implausible(sampler, counts.total())
    if question is None and not grouped.total.is_complete:
        raise click.UsageError("the reports do not distinguish all values. Add --question, such as --question mean.")
    answers = grouped.answers(question, by=request.by or None, strata=strata, totals=totals)
    comparison = None if request.compare is None else compared(answers, request.compare)
    if comparison is None:
        show.write(answers, lambda: answers.plot(show.confidence, simultaneous=show.simultaneous))
    else:
        show.write(comparison, lambda: comparison.plot(show.confidence), simultaneous=True)
    columns = answers.to_columns(show.confidence, simultaneous=show.simultaneous)
    differences = None if comparison is None else comparison.to_columns(show.confidence, simultaneous=True)
    if show.as_json:
        entries = {"n": grouped.total.n, "method": method, "level": show.confidence, "simultaneous": show.simultaneous}
        columns_used = {"question": answers.question.to_dict(), "by": list(answers.by), "weight": counts.weight}
        rows = {"rows": _records(columns), "total": _records(_total_columns(answers, show))}
        more = {} if differences is None else {"differences": _records(differences)}
        show_json({**entries, **columns_used, "unprotected": list(counts.columns), **rows, **more}, aside=show.aside)
        return
    weights = f", weighted by {counts.weight}" if counts.weight is not None else ""
    known = f", {quantity(len(totals), 'known total')}" if totals is not None else ""
    title = f"{quantity(grouped.total.n, 'report')}, question {answers.question.name}{weights}{known}"
    _show_columns(columns, title, show)
    _show_columns(_total_columns(answers, show), "all people", show)
    _show_mean_notes(answers.total[0], show)
    if differences is not None:
        _show_columns(differences, "differences, simultaneous intervals, Holm's p-values", show)


def _total_columns(answers: GroupedAnswers, show: _Show) -> dict[str, Any]:
    """Return the table of the answers for all people."""
    from dataclasses import replace

    return replace(answers, by=()).to_columns(show.confidence, simultaneous=show.simultaneous)


def _records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts."""
    lists = [column.tolist() if hasattr(column, "tolist") else list(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _show_columns(columns: Mapping[str, Any], title: str, show: _Show) -> None:
    """Print the first rows of a table."""
    rows = [list(record.values()) for record in _records(columns)]
    cells = [[f"{cell:.5g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows[:_MOST_ROWS]]
    show_table([name.replace("_", " ") for name in columns], cells, title=title, aside=show.aside)
    if len(rows) > _MOST_ROWS:
        note = f"the first {_MOST_ROWS} of {len(rows):,} rows; use -o FILE to write all of them"
        click.echo(note, err=show.aside)


def _plot_frequencies(result: Estimate, show: _Show) -> Figure:
    """Return the figure of the frequencies of all values."""
    from sfumato.plotting import plot_estimate

    return plot_estimate(result, show.confidence, simultaneous=show.simultaneous)


def _show_frequencies(result: Estimate, dishonest: float | None, show: _Show) -> None:
    """Print the frequencies of all values, as a table or as JSON, and write them to files."""
    import numpy as np

    from sfumato._core import percent
    from sfumato.estimation import estimate_notes, outside_column

    show.write(result, lambda: _plot_frequencies(result, show))
    low, high = result.interval(show.confidence, simultaneous=show.simultaneous)
    columns = ["value", "frequency", "standard error", *show.limits]
    numbers = [result.frequencies, result.standard_errors, low, high]
    names = ["frequency", "standard_error", "low", "high"]
    if dishonest is not None:
        columns.append(f"± if {percent(dishonest)} lie")
        numbers.append(result.influence(dishonest))
        names.append("influence")
    labels = result.domain.labels
    if show.as_json:
        rows = [
            {"value": label, **dict(zip(names, row, strict=True))}
            for label, row in zip(labels, np.column_stack(numbers).tolist(), strict=True)
        ]
        show_json({**show.document(result), "rows": rows, "warnings": list(result.warnings)}, aside=show.aside)
        return
    order = np.argsort(-result.frequencies, kind="stable")[:_MOST_ROWS]
    marks = outside_column(result.frequencies[order], result.outside[order])
    columns += list(marks)
    marked = [*zip(*marks.values(), strict=True)] or [()] * len(order)
    cells = [[f"{column[x]:.5f}" for column in numbers] for x in order.tolist()]
    table = [(str(labels[x]), *row, *mark) for x, row, mark in zip(order.tolist(), cells, marked, strict=True)]
    title = f"{quantity(result.n, 'report')}, method {result.method}"
    show_table(columns, table, title=title, aside=show.aside)
    if len(labels) > _MOST_ROWS:
        note = f"the {_MOST_ROWS} most frequent of {len(labels):,} values; use -o FILE to write all of them"
        click.echo(note, err=show.aside)
    if result.choice is not None:
        click.echo(f"Method best chose {result.choice}.", err=show.aside)
    for note in estimate_notes(result):
        click.echo(note, err=show.aside)
