"""Figures of answers to questions: numbers, distribution functions and quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._core import Floats, percent, quantity, register_plot
from sfumato.estimation import (
    Answers,
    DistributionEstimate,
    LinearEstimate,
    PartialEstimate,
    QuantileAnswers,
    QuantileEstimate,
)
from sfumato.plotting.style import BAND, INK, MOST_BARS, TRUTH, new_figure
from sfumato.questions import numeric_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_answers", "plot_distribution", "plot_number", "plot_quantiles"]


@register_plot(LinearEstimate)
def plot_number(number: LinearEstimate, confidence: float = 0.95) -> Figure:
    """Plot an estimated number, such as a mean, on an axis with its confidence interval.

    Parameters
    ----------
    number
        The number, such as ``Estimate.mean`` returns it.
    confidence
        Confidence level of the interval, above 0 and below 1.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato.estimation import LinearEstimate
    >>> plot_number(LinearEstimate(36.5, 0.4)).axes[0].get_xlabel()
    'estimate'
    """
    low, high = number.interval(confidence)
    return _points([""], [number.value], [low], [high], percent(confidence), f"Estimate {number}")


@register_plot(PartialEstimate)
def _plot_partial(estimate: PartialEstimate, confidence: float = 0.95, truth: Any = None) -> Figure:  # noqa: ARG001
    """Plot the mean and the frequencies that the reports determine."""
    columns = estimate._columns(confidence)
    title = f"Answers from {quantity(estimate.n, 'report')}"
    low, high = columns["low"], columns["high"]
    return _points(columns["answer"], columns["value"], low, high, percent(confidence), title)


def _points(
    names: Sequence[str],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    confidence: str,
    title: str,
) -> Figure:
    """Plot numbers as points on one horizontal axis, with their intervals."""
    figure, axes = new_figure(6.0, 1.4 + 0.3 * len(names))
    places = np.arange(len(names))[::-1]
    axes.hlines(places, low, high, color=BAND, linewidth=6, label=f"{confidence} interval")
    axes.plot(values, places, "o", color=INK, label="estimate")
    axes.set_yticks(places, names)
    axes.set_ylim(-0.8, len(names) - 0.2)
    axes.set_xlabel("estimate")
    axes.set_title(title)
    axes.legend(frameon=False, loc="best")
    return figure


@register_plot(Answers)
def plot_answers(answers: Answers, confidence: float = 0.95, *, simultaneous: bool = False) -> Figure:
    """Plot the answers to a question as bars with their confidence intervals.

    A single answer, such as a mean, is drawn as a point. More than 60 answers are drawn as a line with a band.

    Parameters
    ----------
    answers
        The answers, from ``Estimate.answers``.
    confidence
        Confidence level of the intervals, above 0 and below 1.
    simultaneous
        If True, all intervals together contain the true answers with this confidence (see ``Answers.interval``).

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, Ranges, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 20 + [2] * 10 + [3] * 10))
    >>> plot_answers(result.answers(Ranges({"low": (0, 1), "high": (2, 3)}))).axes[0].get_title()
    'Answers to the question "ranges" from 100 reports'
    """
    low, high = answers.interval(confidence, simultaneous=simultaneous)
    title = f'Answers to the question "{answers.question.name}" from {quantity(answers.estimate.n, "report")}'
    names = [str(name) for name in answers.names]
    if len(names) == 1:
        return _points(names, answers.values.tolist(), low.tolist(), high.tolist(), percent(confidence), title)
    places = np.arange(len(names))
    has_bars = len(names) <= MOST_BARS
    figure, axes = new_figure(max(6.0, 0.28 * len(names) if has_bars else 10.0), 4.0)
    label = _interval_label(confidence, simultaneous=simultaneous)
    if has_bars:
        axes.bar(places, answers.values, color=BAND, label="estimate")
        axes.vlines(places, low, high, color=INK, linewidth=1.5, label=label)
        turned = {"rotation": 45, "ha": "right"} if len(places) > 8 else {}
        axes.set_xticks(places, names, **turned)
    else:
        axes.fill_between(places, low, high, color=BAND, label=label)
        axes.plot(places, answers.values, color=INK, linewidth=0.8, label="estimate")
    axes.set_xlabel("answer")
    axes.set_ylabel("estimate")
    axes.set_title(title)
    axes.legend(frameon=False)
    return figure


@register_plot(DistributionEstimate)
def plot_distribution(
    distribution: DistributionEstimate, confidence: float = 0.95, *, simultaneous: bool = True
) -> Figure:
    """Plot the estimated distribution function as a step function with its band.

    Parameters
    ----------
    distribution
        The distribution function, from ``Estimate.cdf``.
    confidence
        Confidence level of the band, above 0 and below 1.
    simultaneous
        If True, the band contains the whole distribution function with this confidence. If False, it contains each
        share on its own.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. The line is ``DistributionEstimate.monotone``.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 60 + [1] * 20 + [2] * 10 + [3] * 10))
    >>> plot_distribution(result.cdf()).axes[0].get_ylabel()
    'share of people up to the value'
    """
    return _draw_distribution(distribution, confidence, simultaneous=simultaneous)[0]


def _draw_distribution(
    distribution: DistributionEstimate, confidence: float, *, simultaneous: bool
) -> tuple[Figure, Any, Floats]:
    """Plot a distribution function; return also the axes, and the place of each value on the horizontal axis."""
    domain = distribution.estimate.domain
    low, high = (np.append(limit, 1.0) for limit in distribution.interval(confidence, simultaneous=simultaneous))
    numbers = numeric_labels(domain)
    has_numbers = numbers is not None and bool(np.isfinite(numbers).all())
    places = numbers if numbers is not None and has_numbers else np.arange(len(domain), dtype=np.float64)
    figure, axes = new_figure(8.0, 4.0)
    label = _interval_label(confidence, simultaneous=simultaneous).replace("interval", "band")
    axes.fill_between(places, low, high, step="post", color=BAND, label=label)
    axes.step(places, np.append(distribution.monotone, 1.0), where="post", color=INK, label="estimate")
    if not has_numbers:
        turned = {"rotation": 45, "ha": "right"} if len(places) > 8 else {}
        if len(places) <= MOST_BARS:
            axes.set_xticks(places, [str(label) for label in domain.labels], **turned)
    axes.set_xlabel("value")
    axes.set_ylabel("share of people up to the value")
    axes.set_ylim(0, 1.02)
    axes.set_title(f"Distribution function from {quantity(distribution.estimate.n, 'report')}")
    axes.legend(frameon=False, loc="lower right")
    return figure, axes, places


@register_plot(QuantileEstimate)
@register_plot(QuantileAnswers)
def plot_quantiles(
    quantiles: QuantileEstimate | QuantileAnswers, confidence: float = 0.95, *, simultaneous: bool = False
) -> Figure:
    """Plot quantiles as marks on the distribution function, each with its confidence interval.

    Parameters
    ----------
    quantiles
        One quantile, from ``Estimate.quantile``, or several, from ``Estimate.answers``.
    confidence
        Confidence level of the band and of the intervals, above 0 and below 1.
    simultaneous
        If True, all intervals of quantiles together have this confidence. The band always does.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from sfumato import Domain, aggregate, estimate
    >>> from sfumato.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(Domain.range(4), "ln 8")
    >>> result = estimate(mechanism, aggregate(mechanism, [0] * 40 + [1] * 40 + [2] * 10 + [3] * 10))
    >>> plot_quantiles(result.quantile(0.5)).axes[0].get_title()
    'Distribution function from 100 reports'
    """
    single = isinstance(quantiles, QuantileEstimate)
    marks = [quantiles] if isinstance(quantiles, QuantileEstimate) else [quantiles[level] for level in quantiles]
    figure, axes, places = _draw_distribution(marks[0].distribution, confidence, simultaneous=True)
    level = 1 - (1 - confidence) / (1 if single or not simultaneous else len(marks))
    for number, mark in enumerate(marks):
        low, high = mark._positions(level)
        label = f"quantile, {percent(confidence)} interval" if number == 0 else None
        axes.hlines(mark.level, places[low], places[high], color=TRUTH, linewidth=2)
        axes.plot(places[mark._position], mark.level, "o", color=TRUTH, label=label)
    axes.legend(frameon=False, loc="lower right")
    return figure


def _interval_label(confidence: float, *, simultaneous: bool) -> str:
    """Return the words for intervals in a legend."""
    return f"{percent(confidence)} interval{' (simultaneous)' if simultaneous else ''}"
