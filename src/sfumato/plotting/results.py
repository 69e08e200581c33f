"""Figures of estimates, maps, privacy levels, error regions, plans and audits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._core import checked_count, import_optional, percent, quantity, register_plot
from sfumato.auditing import (
    Certificate,
    Channel,
    ErrorRegion,
    PolicyRegion,
    SamplerAudit,
    error_region,
    policy_region,
)
from sfumato.compiler import Optimum, Plan, plan
from sfumato.device import Simulation
from sfumato.domain import checked_distribution
from sfumato.errors import Description, InvalidInput
from sfumato.estimation import Comparison, Estimate, FrequencyTable, GroupedAnswers, GroupedEstimate
from sfumato.mechanisms import Mechanism
from sfumato.plotting.style import BAND, FREQUENCY, INK, MOST_BARS, TRUTH, display, label_ticks, new_figure
from sfumato.policy import PairwisePolicy, Policy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "plot_certificate",
    "plot_comparison",
    "plot_epsilons",
    "plot_error_region",
    "plot_estimate",
    "plot_frequency_table",
    "plot_group_answers",
    "plot_group_differences",
    "plot_groups",
    "plot_matrix",
    "plot_plan",
    "plot_region",
    "plot_sampler_audit",
    "plot_simulation",
]

#: Axis labels of utilities, with units.
_UTILITIES = {
    "worst-estimation": "worst-case expected squared error",
    "mutual-information": "mutual information (nats)",
    "mmse": "mean squared error",
    "expected-loss": "expected loss",
}


@register_plot(Estimate)
def plot_estimate(
    estimate: Estimate,
    confidence: float = 0.95,
    truth: Any = None,
    *,
    simultaneous: bool = False,
    title: str | None = None,
) -> Figure:
    """Plot the estimated frequency of every value with its confidence interval.

    The figure shows one bar per value, or a line with a band if there are more than 60 values. If the domain is a grid,
    it shows a map without intervals, on which frequencies below one standard error are drawn as 0. The colours of a map
    follow the square root of the frequency, so that rare cells are visible next to frequent ones.

    Parameters
    ----------
    estimate
        The estimate, from :func:`estimate` or :func:`combine`.
    confidence
        Confidence level of the intervals, above 0 and below 1.
    truth
        The true distribution to draw as well, for example of a simulation: a sequence in domain order, or a mapping or
        pandas Series with the values as labels. Maps do not show it.
    simultaneous
        If True, all intervals together contain the true frequencies with this confidence; if False, each does so on its
        own (see ``Estimate.interval``).
    title
        Title of the figure. By default, the number of reports and the method.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10))
    >>> plot_estimate(result).axes[0].get_title()
    'Estimated frequencies from 100 reports (method unbiased)'
    """
    title = _estimate_title(estimate) if title is None else title.replace("$", r"\$")
    if estimate.domain.kind == "grid":
        return _plot_map(estimate, title)
    if truth is not None:
        truth = checked_distribution(truth, estimate.domain, "plot_estimate", "truth", absent=0.0)
    low, high = estimate.interval(confidence, simultaneous=simultaneous)
    shown = f"{percent(confidence)} interval{' (simultaneous)' if simultaneous else ''}"
    places = np.arange(len(estimate.domain))
    has_bars = len(places) <= MOST_BARS
    width = max(6.0, 0.28 * len(places) if has_bars else 10.0)
    figure, axes = new_figure(width, 4.0)
    if has_bars:
        axes.bar(places, estimate.frequencies, color=BAND, label="estimate")
        axes.vlines(places, low, high, color=INK, linewidth=1.5, label=shown)
        label_ticks(axes, places, estimate.domain, width)
        axes.set_xlabel("value")
    else:
        axes.fill_between(places, low, high, color=BAND, label=shown)
        axes.plot(places, estimate.frequencies, color=INK, linewidth=0.8, label="estimate")
        axes.set_xlabel("value, in domain order")
    if truth is not None:
        # Hollow marks next to the middle of the bar leave the interval visible.
        at, mark = (places + 0.22, "D") if has_bars else (places, "-")
        hollow = {"markerfacecolor": "none"} if has_bars else {}
        axes.plot(at, truth, mark, color=TRUTH, markersize=5, linewidth=0.8, label="truth", **hollow)
    axes.set_ylabel(FREQUENCY)
    # The legend has a row above everything that is drawn.
    axes.set_ylim(0, 1.22 * max(axes.get_ylim()[1], 1e-9))
    axes.set_title(title)
    axes.legend(frameon=False, loc="upper center", ncols=3)
    return figure


def _estimate_title(estimate: Estimate) -> str:
    """Return the title of a figure of one estimate."""
    return f"Estimated frequencies from {quantity(estimate.n, 'report')} (method {estimate.method})"


def _plot_map(estimate: Estimate, title: str) -> Figure:
    """Plot the frequencies of a grid as a map, or by row and column if it has no coordinates."""
    rows, columns = estimate.domain.shape
    is_map = estimate.domain.is_map
    vertical, horizontal = (
        estimate.domain.edges if is_map else (np.arange(rows + 1) - 0.5, np.arange(columns + 1) - 0.5)
    )
    figure, axes = new_figure(7.0, max(3.0, 6.0 * rows / columns))
    # Frequencies below the noise are drawn as 0, because a map of noise would mislead.
    shown = np.where(estimate.frequencies > estimate.standard_errors, estimate.frequencies, 0.0)
    scale = import_optional("matplotlib.colors", "plot", "drawing a figure").PowerNorm(0.5, vmin=0.0)
    mesh = axes.pcolormesh(horizontal, vertical, shown.reshape(rows, columns), cmap="Blues", norm=scale)
    figure.colorbar(mesh, ax=axes, label="frequency (square-root scale)")
    axes.set_xlabel("longitude (degrees)" if is_map else "column")
    axes.set_ylabel("latitude (degrees)" if is_map else "row")
    axes.set_title(title)
    return figure


@register_plot(GroupedEstimate)
def plot_groups(grouped: GroupedEstimate, confidence: float = 0.95) -> Figure:
    """Plot the estimated frequency of every value in every group as a bar with its confidence interval.

    If there would be more than 60 bars, the figure shows only the most frequent values, in domain order.

    Parameters
    ----------
    grouped
        The estimates of the groups, from :func:`estimate_groups`.
    confidence
        Confidence level of the intervals, above 0 and below 1.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate_groups
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> north = aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> south = aggregate(mechanism, [0] * 40 + [1] * 50 + [2] * 10)
    >>> groups = estimate_groups(mechanism, {"north": north, "south": south})
    >>> plot_groups(groups).axes[0].get_title()
    'Estimated frequencies from 200 reports, 95% intervals'
    """
    names = list(grouped)
    most = max(1, MOST_BARS // len(names))
    chosen = np.sort(np.argsort(-grouped.total.frequencies, kind="stable")[:most])
    places = np.arange(len(chosen))
    width = 0.8 / len(names)
    inches = max(6.0, 0.28 * len(chosen) * len(names))
    figure, axes = new_figure(inches, 4.0)
    for number, name in enumerate(names):
        estimate = grouped[name]
        low, high = estimate.interval(confidence)
        at = places + (number - (len(names) - 1) / 2) * width
        axes.bar(at, estimate.frequencies[chosen], width, label=display(name))
        axes.vlines(at, low[chosen], high[chosen], color=INK, linewidth=1.0)
    label_ticks(axes, places, [grouped.total.domain.label(x) for x in chosen.tolist()], inches)
    axes.set_xlabel("value")
    axes.set_ylabel(FREQUENCY)
    axes.set_ylim(bottom=0)
    left_out = len(grouped.total) - len(chosen)
    most_frequent = f", {quantity(len(chosen), 'most frequent value')}" if left_out else ""
    reports = quantity(grouped.total.n, "report")
    axes.set_title(f"Estimated frequencies from {reports}, {percent(confidence)} intervals{most_frequent}")
    axes.legend(frameon=False)
    return figure


@register_plot(FrequencyTable)
def plot_frequency_table(table: FrequencyTable, confidence: float = 0.95) -> Figure:
    """Plot differences or weighted frequencies as one bar per value, starting at 0, with its confidence interval.

    If there are more than 60 values, the figure shows only the 60 with the largest absolute numbers, in domain order.

    Parameters
    ----------
    table
        A table from ``GroupedEstimate.difference`` or ``GroupedEstimate.weighted``.
    confidence
        Confidence level of the intervals, above 0 and below 1.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate_groups
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain(["none", "flu", "hiv"]), "ln 8")
    >>> north = aggregate(mechanism, [0] * 60 + [1] * 30 + [2] * 10)
    >>> south = aggregate(mechanism, [0] * 40 + [1] * 50 + [2] * 10)
    >>> table = estimate_groups(mechanism, {"north": north, "south": south}).difference("north", "south")
    >>> plot_frequency_table(table).axes[0].get_title()
    'Difference of frequencies: north minus south'
    """
    rows = list(table.items())
    values = np.array([row.value for _, row in rows])
    chosen = np.sort(np.argsort(-np.abs(values), kind="stable")[:MOST_BARS])
    low, high = np.array([rows[x][1].interval(confidence) for x in chosen]).T
    places = np.arange(len(chosen))
    width = max(6.0, 0.28 * len(chosen))
    figure, axes = new_figure(width, 4.0)
    axes.bar(places, values[chosen], color=BAND, label=table.quantity)
    axes.vlines(places, low, high, color=INK, linewidth=1.5, label=f"{percent(confidence)} interval")
    axes.axhline(0, color="grey", linewidth=0.8)
    label_ticks(axes, places, [rows[x][0] for x in chosen], width)
    axes.set_xlabel("value")
    groups = [display(group) for group, *_ in table.terms]
    if table.quantity == "difference":
        axes.set_ylabel("difference (fraction of people)")
        axes.set_title(f"Difference of frequencies: {' minus '.join(groups)}")
    else:
        axes.set_ylabel(FREQUENCY)
        axes.set_title(f"Weighted frequencies of {quantity(len(groups), 'group')}")
    axes.legend(frameon=False)
    return figure


@register_plot(GroupedAnswers)
def plot_group_answers(answers: GroupedAnswers, confidence: float = 0.95, *, simultaneous: bool = False) -> Figure:
    """Plot the answers of each group as points with their confidence intervals, one row per group and answer.

    If there are more than 60 rows, the figure shows only the first 60.

    Parameters
    ----------
    answers
        The answers of the groups, from ``GroupedEstimate.answers``.
    confidence
        Confidence level of the intervals, above 0 and below 1.
    simultaneous
        If True, all intervals together contain the true answers with this confidence.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate_groups
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(3), "ln 8")
    >>> counts = {"north": aggregate(mechanism, [0, 1, 2]), "south": aggregate(mechanism, [0, 1])}
    >>> plot_group_answers(estimate_groups(mechanism, counts).answers("mean")).axes[0].get_title()
    'Answers to the question "mean" in 2 groups, 95% intervals'
    """
    columns = answers.to_columns(confidence, simultaneous=simultaneous)
    several = len(answers.names) > 1
    groups = [group for group in answers.groups or ["all"] for _ in answers.names]
    labels = [
        f"{display(group)}: {display(name)}" if several else display(group)
        for group, name in zip(groups, columns["answer"], strict=True)
    ]
    count = f" in {quantity(len(answers), 'group')}" if answers.by else ""
    title = f'Answers to the question "{answers.question.name}"{count}, {percent(confidence)} intervals'
    return _points(labels, columns["value"], columns["low"], columns["high"], title, "answer")


@register_plot(Comparison)
def plot_group_differences(comparison: Comparison, confidence: float = 0.95, *, simultaneous: bool = True) -> Figure:
    """Plot the differences between groups as points with their confidence intervals, next to a line at 0.

    If there are more than 60 differences, the figure shows only the first 60.

    Parameters
    ----------
    comparison
        The differences, from ``GroupedAnswers.compare``.
    confidence
        Confidence level of the intervals, above 0 and below 1.
    simultaneous
        If True, all intervals together contain the true differences with this confidence.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate_groups
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(3), "ln 8")
    >>> counts = {"north": aggregate(mechanism, [0, 1, 2]), "south": aggregate(mechanism, [0, 1])}
    >>> comparison = estimate_groups(mechanism, counts).answers("mean").compare()
    >>> plot_group_differences(comparison).axes[0].get_title()
    'Differences in the question "mean", 95% simultaneous intervals'
    """
    columns = comparison.to_columns(confidence, simultaneous=simultaneous)
    several = len(comparison.answers.names) > 1
    labels = [
        f"{display(first)} - {display(second)}" + (f": {display(name)}" if several else "")
        for first, second, name in zip(columns["group"], columns["minus"], columns["answer"], strict=True)
    ]
    together = " simultaneous" if simultaneous else ""
    question = comparison.answers.question.name
    title = f'Differences in the question "{question}", {percent(confidence)}{together} intervals'
    figure = _points(labels, columns["difference"], columns["low"], columns["high"], title, "difference")
    figure.axes[0].axvline(0, color="grey", linewidth=0.8)
    return figure


def _points(labels: list[str], values: Any, low: Any, high: Any, title: str, axis: str) -> Figure:
    """Draw points with intervals, one row each, the first at the top."""
    shown = min(len(labels), MOST_BARS)
    places = np.arange(shown)
    figure, axes = new_figure(7.0, max(2.5, 0.28 * shown + 1.2))
    axes.hlines(places, np.asarray(low)[:shown], np.asarray(high)[:shown], color=BAND, linewidth=3.0)
    axes.plot(np.asarray(values)[:shown], places, "o", color=INK, markersize=4)
    axes.set_yticks(places, labels[:shown])
    axes.invert_yaxis()
    axes.set_xlabel(axis)
    axes.set_title(title)
    return figure


def plot_epsilons(policy: Policy) -> Figure:
    """Plot the effective epsilon of every ordered pair of values as a coloured matrix.

    The effective epsilon of (x, x') is the least ε that all rules of the policy together imply for the pair: Q(y|x) ≤
    e^ε·Q(y|x') for every report y of every mechanism that obeys the policy. It is drawn in row x and column x'.

    Parameters
    ----------
    policy
        A policy that has an epsilon for each pair of values: :class:`Uniform`, :class:`HighLow`, :class:`Blocks`,
        :class:`Metric` or :class:`Pairwise`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. Pairs without a limit (ε = ∞) are blank. Labels are drawn for up to 20 values.

    Raises
    ------
    InvalidInput
        If the policy has no epsilon for pairs of values.

    Examples
    --------
    >>> from sfumato import Domain, HighLow
    >>> plot_epsilons(HighLow(Domain(["none", "flu", "hiv"]), ["hiv"], 1)).axes[0].get_title()
    'Privacy levels of a high-low policy'
    """
    if not isinstance(policy, PairwisePolicy):
        hint = "Such policies are Uniform, HighLow, Blocks, Metric and Pairwise."
        got = Description(f"a {policy.kind} policy")
        raise InvalidInput("plot_epsilons", "policy", "have an epsilon for pairs of values", got, hint=hint)
    epsilons = policy.effective_epsilon_matrix().floats
    figure, axes = new_figure(6.0, 5.0)
    finite = np.where(np.isfinite(epsilons), epsilons, np.nan)
    image = axes.imshow(finite, cmap="viridis_r", vmin=0)
    figure.colorbar(image, ax=axes, label="effective ε (blank: no rule)")
    if len(epsilons) <= 20:
        labels = [display(label) for label in policy.domain]
        axes.set_xticks(range(len(epsilons)), labels, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(epsilons)), labels)
    axes.set_xlabel("alternative value x'")
    axes.set_ylabel("true value x")
    axes.set_title(f"Privacy levels of a {policy.kind} policy")
    return figure


def plot_error_region(mechanism: Mechanism | Channel, policy: Policy, x: object, other: object) -> Figure:
    """Plot how well an attacker can decide from one report which of two values a person has.

    A test looks at the report and says ``x`` or ``other``. Its false alarm rate is the probability that it says ``x``
    if the value is ``other``. Its missed detection rate is the probability that it says ``other`` if the value is
    ``x``. The figure shows the pairs of rates that the policy allows as an area, and the best tests for this mechanism
    as a curve.

    Parameters
    ----------
    mechanism
        The mechanism, or a :class:`Channel` (a matrix of output probabilities).
    policy
        The policy, over the same domain.
    x
        The value that a test tries to detect.
    other
        The value from which the test distinguishes it.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: false alarm rate on the horizontal axis, missed detection rate on the vertical axis.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, design
    >>> policy = Uniform(Domain(["none", "flu", "hiv"]), 1)
    >>> plot_error_region(design(policy), policy, "hiv", "none").axes[0].get_title()
    'Errors of tests under a uniform policy'
    """
    allowed, reached = policy_region(policy, x, other), error_region(mechanism, x, other)
    figure, axes = new_figure(5.0, 4.6)
    alarm, missed = allowed.vertices.T
    axes.fill_between(alarm, missed, 1 - alarm, color=BAND, alpha=0.5, linewidth=0, label="allowed by the policy")
    axes.plot(*reached.vertices.T, color=INK, marker="o", markersize=3, label="best tests of a report")
    _label_errors(axes, x, other)
    axes.set_title(f"Errors of tests under a {policy.kind} policy")
    axes.legend(frameon=False)
    return figure


def plot_plan(policy: Policy | Plan, numbers: Any = (10**3, 10**4, 10**5, 10**6, 10**7)) -> Figure:
    """Plot the expected error of every mechanism that :func:`plan` compares, against the number of people.

    Parameters
    ----------
    policy
        A policy, or a :class:`Plan` from :func:`plan`.
    numbers
        The numbers of people at which errors are drawn; 1,000 to 10 million by default.

    Returns
    -------
    matplotlib.figure.Figure
        One line per mechanism, labelled at its right end: its expected total variation error (half the l1 error), on
        logarithmic axes with a dotted line at 1. The recommended mechanism is dark and on top. For a plan with a
        question, the standard error of the answers.

    Raises
    ------
    InvalidInput
        If a number of people is not a positive integer.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> plot_plan(Uniform(Domain.range(3), 1), numbers=[100, 1000]).axes[0].get_xlabel()
    'number of people'
    """
    figure, axes = new_figure(7.5, 4.4)
    numbers = [checked_count("plot_plan", n, "numbers") for n in numbers]
    compared = policy if isinstance(policy, Plan) else plan(policy, n=1)
    policy = compared.policy
    asks = compared.question is not None
    best = compared.best
    ends: list[tuple[float, str, bool]] = []
    # The recommended mechanism is drawn last and thicker, so that no other line hides it.
    for row in sorted(compared.rows, key=lambda row: row is best):
        error = compared.standard_error(row) if asks else row.half_l1
        if not math.isfinite(error):
            continue
        errors = [error * (compared.n / n) ** 0.5 for n in numbers]
        is_best = row is best
        style = {"color": INK, "linewidth": 2.5} if is_best else {"color": BAND, "linewidth": 1.2}
        axes.loglog(numbers, errors, marker="o", markersize=4 if is_best else 2.5, label=row.name, **style)
        ends.append((errors[-1], row.name, is_best))
    _label_ends(axes, max(numbers), ends)
    if not asks:
        axes.axhline(1, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel("number of people")
    axes.set_ylabel(_error_label(compared))
    axes.set_title(f"{policy.kind.capitalize()} policy over {quantity(len(policy.domain), 'value')}")
    return figure


#: Least distance of two labels, as a fraction of the height of the axes, and their place to the right of the axes.
_LABEL_STEP, _LABEL_PLACE = 0.048, 1.04


def _label_ends(axes: Any, last: int, ends: list[tuple[float, str, bool]]) -> None:
    """Label lines to the right of the axes, with a thin line from each label to the end of its line."""
    low, high = (math.log10(bound) for bound in axes.get_ylim())
    ends = sorted(ends)
    places = _moved_apart([math.log10(error) for error, _, _ in ends], _LABEL_STEP * (high - low))
    for (error, name, is_best), place in zip(ends, places, strict=True):
        colour = INK if is_best else "#5b6068"
        axes.annotate(
            f"{name} (recommended)" if is_best else name,
            (last, error),
            (_LABEL_PLACE, 10**place),
            textcoords=axes.get_yaxis_transform(),
            fontsize=8,
            va="center",
            color=colour,
            fontweight="bold" if is_best else "normal",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 3,
                "relpos": (0, 0.5),
            },
        )
    axes.set_ylim(10**low, 10**high)


def _moved_apart(places: list[float], step: float) -> list[float]:
    """Return the nearest places in the sense of least squares that are at least a step apart, in the same order.

    Without the steps, this is the regression of increasing numbers, which pools neighbours that decrease.
    """
    pools: list[tuple[float, int]] = []
    for i, place in enumerate(places):
        mean, size = place - i * step, 1
        while pools and pools[-1][0] > mean:
            earlier, count = pools.pop()
            mean, size = (mean * size + earlier * count) / (size + count), size + count
        pools.append((mean, size))
    means = [mean for mean, size in pools for _ in range(size)]
    return [mean + i * step for i, mean in enumerate(means)]


@register_plot(Plan)
def plot_comparison(comparison: Plan) -> Figure:
    """Plot one bar per mechanism of a plan, the smallest error on top.

    The bars show the expected total variation error, or the standard error of the answers to a question. In a plan for
    another utility than estimation, they show the values of that utility, and a line shows the bound on every
    mechanism. Infinite values have no bar.

    Parameters
    ----------
    comparison
        The plan, from :func:`plan`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with the recommended mechanism in the darker colour.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, plan
    >>> plot_comparison(plan(Uniform(Domain.range(3), 1), n=1000)).axes[0].get_title()
    'Uniform policy over 3 values, 1,000 people'
    """
    rows = comparison.rows
    by_error = comparison.utility == "estimation"
    lengths = [row.tv if by_error else row.value or 0.0 for row in rows]
    if by_error and comparison.question is not None:
        lengths = [comparison.standard_error(row) for row in rows]
    lengths = [length if np.isfinite(length) else 0.0 for length in lengths]
    figure, axes = new_figure(6.0, max(2.0, 0.35 * len(rows) + 1.2))
    places = np.arange(len(rows))
    axes.barh(places, lengths, color=[INK if row is comparison.best else BAND for row in rows])
    axes.set_yticks(places, [f"{row.name} ({quantity(row.bits, 'bit')})" for row in rows])
    axes.invert_yaxis()
    if not by_error and comparison.bound is not None and np.isfinite(comparison.bound):
        axes.axvline(comparison.bound, color=TRUTH, linewidth=1.2, label="bound on every mechanism")
        axes.legend(frameon=False)
    utility = _UTILITIES.get(comparison.utility, comparison.utility)
    axes.set_xlabel(_error_label(comparison) if by_error else utility)
    values, people = quantity(len(comparison.policy.domain), "value"), quantity(comparison.n, "person")
    axes.set_title(f"{comparison.policy.kind.capitalize()} policy over {values}, {people}")
    return figure


def _error_label(compared: Plan) -> str:
    """Return the label of the axis of errors."""
    question = compared.question
    if question is None:
        return "expected total variation error"
    one = len(question.names) == 1
    return "standard error of the answer" if one else "standard error of the answers (root mean square)"


@register_plot(Optimum)
def plot_matrix(optimum: Optimum) -> Figure:
    """Plot the output probabilities Q(y|x) of an optimal mechanism as an image.

    Parameters
    ----------
    optimum
        The result of :func:`optimal`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with one row per value x in domain order and one column per report y.

    Examples
    --------
    >>> from sfumato import Domain, Metric, optimal
    >>> plot_matrix(optimal(Metric(Domain.range(3), "absolute", 1))).axes[0].get_title()
    'Optimal mechanism: estimation 3.951, bound 3.951'
    """
    matrix = optimum.mechanism.matrix()
    figure, axes = new_figure(6.0, 5.0)
    image = axes.imshow(matrix, cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="probability")
    if len(matrix) <= 20:
        axes.set_yticks(range(len(matrix)), [display(label) for label in optimum.mechanism.domain])
    axes.set_xlabel("report")
    axes.set_ylabel("value")
    axes.set_title(f"Optimal mechanism: {optimum.utility} {optimum.value:.4g}, bound {optimum.bound:.4g}")
    return figure


@register_plot(Simulation)
def plot_simulation(simulation: Simulation) -> Figure:
    """Plot the estimated frequencies of a simulated collection, with 95% intervals and the true distribution.

    With a question, plot the answers with their 95% intervals.

    Parameters
    ----------
    simulation
        The result of :func:`simulate`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, design, simulate
    >>> mechanism = design(Uniform(Domain.range(3), 1))
    >>> plot_simulation(simulate(mechanism, n=1000, seed=1)).axes[0].get_ylabel()
    'frequency (fraction of people)'
    """
    if simulation.question is not None:
        return simulation.answers.plot()
    return plot_estimate(simulation.estimate, truth=simulation.truth)


@register_plot(Certificate)
def plot_certificate(certificate: Certificate) -> Figure:
    """Plot the epsilon that the policy allows and the epsilon that the mechanism reaches, as two bars.

    Both are those of the tightest constraint: the one that the mechanism exceeds the most, or comes closest to.

    Parameters
    ----------
    certificate
        The certificate, from :func:`audit`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. Its title says whether the mechanism obeys the policy.

    Examples
    --------
    >>> from sfumato import Domain, Uniform, audit, design
    >>> policy = Uniform(Domain.range(3), 1)
    >>> plot_certificate(audit(design(policy), policy)).axes[0].get_title()
    'randomized-response obeys the uniform policy'
    """
    worst = certificate.worst
    allowed = float(worst.epsilon)
    reached = allowed + worst.excess if math.isfinite(allowed) else allowed
    verdict = "obeys" if certificate.holds else "does not obey"
    title = f"{certificate.mechanism['mechanism']} {verdict} the {certificate.policy['policy']['kind']} policy"
    return _plot_epsilon_bars({"allowed by the policy": allowed, "reached by the mechanism": reached}, title)


@register_plot(SamplerAudit)
def plot_sampler_audit(audit: SamplerAudit) -> Figure:
    """Plot the epsilon that the policy allows and the lower bound that a black-box audit proved, as two bars.

    Both are for the pair of values in the title. If the lower bound exceeds the allowed epsilon, the audit has proved,
    at its confidence level, that the sampler violates the policy.

    Parameters
    ----------
    audit
        The result of :func:`audit_sampler`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. The label of the lower bound states its confidence level.

    Examples
    --------
    >>> import random
    >>> from sfumato import Domain, Uniform, audit_sampler
    >>> generator = random.Random(1)
    >>> def sampler(value):
    ...     return value if generator.random() < 0.7 else 1 - value
    >>> audit = audit_sampler(sampler, Uniform(Domain([0, 1]), 1), trials=2000)
    >>> plot_sampler_audit(audit).axes[0].get_xlabel()
    'ε'
    """
    confidence = percent(1 - audit.alpha)
    bars = {
        "allowed by the policy": float(audit.epsilon),
        f"lower bound ({confidence} confidence)": audit.epsilon_lower,
    }
    first, second = (display(repr(value)) for value in audit.pair)
    return _plot_epsilon_bars(bars, f"Black-box audit of {first} against {second}")


def _plot_epsilon_bars(bars: dict[str, float], title: str) -> Figure:
    """Plot one horizontal bar per epsilon; write an infinite epsilon as a word."""
    figure, axes = new_figure(6.0, 1.8)
    for place, (label, epsilon) in enumerate(reversed(bars.items())):
        length = epsilon if math.isfinite(epsilon) else 0.0
        axes.barh(place, length, color=BAND if label.startswith("allowed") else INK)
        axes.text(length, place, f" {epsilon:.4g}" if math.isfinite(epsilon) else " infinite", va="center")
    axes.set_yticks(range(len(bars)), list(reversed(bars)))
    axes.set_xlabel("ε")
    axes.set_title(title)
    axes.margins(x=0.15)
    return figure


@register_plot(ErrorRegion)
@register_plot(PolicyRegion)
def plot_region(region: ErrorRegion | PolicyRegion) -> Figure:
    """Plot the error rates of all tests that decide from one report between two values.

    A test says ``region.x`` or ``region.other``. The horizontal axis shows its false alarm rate, the probability that
    it says ``x`` if the value is ``other``. The vertical axis shows its missed detection rate, the probability that it
    says ``other`` if the value is ``x``. The area contains the rates of all tests that are no worse than guessing.

    Parameters
    ----------
    region
        The region of a mechanism, from :func:`error_region`, or of a policy, from :func:`policy_region`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, Uniform
    >>> from sfumato.auditing import policy_region
    >>> plot_region(policy_region(Uniform(Domain.range(3), 1), 0, 1)).axes[0].get_title()
    'Errors of tests between 0 and 1'
    """
    figure, axes = new_figure(5.0, 4.6)
    alarm, missed = region.vertices.T
    axes.fill_between(alarm, missed, 1 - alarm, color=BAND, alpha=0.5, linewidth=0)
    axes.plot(alarm, missed, color=INK, marker="o", markersize=3)
    _label_errors(axes, region.x, region.other)
    axes.set_title(f"Errors of tests between {display(repr(region.x))} and {display(repr(region.other))}")
    return figure


def _label_errors(axes: Any, x: object, other: object) -> None:
    """Draw the diagonal of tests that ignore the report, and label the axes."""
    axes.plot([0, 1], [1, 0], color="grey", linewidth=0.8, linestyle=":", label="tests that ignore the report")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    first, second = display(repr(x)), display(repr(other))
    axes.set_xlabel(f"false alarm rate\n(test says {first} if the value is {second})")
    axes.set_ylabel(f"missed detection rate\n(test says {second} if the value is {first})")
