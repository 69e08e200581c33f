"""Pictures: estimates with their intervals, maps, the levels of a policy, what tests can tell, error against
the number of people.

Each function gives a matplotlib figure; ``save`` writes one as SVG or PNG.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato._core import checked_count, import_optional, percent, register_plot, replacing
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
from sfumato.errors import InvalidInput
from sfumato.estimation import Estimate, FrequencyTable, GroupedEstimate
from sfumato.mechanisms import Mechanism
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
    "plot_groups",
    "plot_matrix",
    "plot_plan",
    "plot_region",
    "plot_sampler_audit",
    "plot_simulation",
    "save",
]

#: More bars than this would be a comb: the frequencies are then drawn as a line with a band.
_MOST_BARS = 60
_INK, _BAND, _TRUTH = "#1f4e79", "#9dc3e6", "#c55a11"


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure: Figure = import_optional("matplotlib.figure", "plot", "drawing a figure").Figure(
        figsize=(width, height), layout="constrained"
    )
    return figure, figure.add_subplot()


def save(figure: Figure, path: Path | str) -> None:
    """Write a figure to an .svg or .png file, whole or not at all; the same figure gives the same bytes."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".svg", ".png"):
        raise InvalidInput(str(path), "the name of a plot", "end in .svg or .png", Path(path).name)
    import matplotlib

    metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
    with replacing(path) as file, matplotlib.rc_context({"svg.hashsalt": "sfumato", "svg.fonttype": "none"}):
        figure.savefig(file, format=suffix[1:], dpi=150, metadata=metadata)


@register_plot(Estimate)
def plot_estimate(
    estimate: Estimate, confidence: float = 0.95, truth: Any = None, *, simultaneous: bool = False
) -> Figure:
    """Plot frequencies with their intervals: bars, or a map if the domain is a grid; with the truth if given.

    ``simultaneous`` intervals hold all together, as those of ``Estimate.interval``. The truth is in domain order, or
    has labels (a mapping, a pandas Series) and is aligned by them.
    """
    if estimate.domain.kind == "grid":
        return _plot_map(estimate)
    if truth is not None:
        truth = checked_distribution(truth, estimate.domain, "plot_estimate", "truth", absent=0.0)
    low, high = estimate.interval(confidence, simultaneous=simultaneous)
    shown = f"{percent(confidence)} interval{', all together' if simultaneous else ''}"
    places = np.arange(len(estimate.domain))
    has_bars = len(places) <= _MOST_BARS
    figure, axes = _figure(max(6.0, 0.28 * len(places) if has_bars else 10.0), 4.0)
    if has_bars:
        axes.bar(places, estimate.frequencies, color=_BAND, label="estimate")
        axes.vlines(places, low, high, color=_INK, linewidth=1.5, label=shown)
        turned = {"rotation": 45, "ha": "right"} if len(places) > 8 else {}
        axes.set_xticks(places, [str(label) for label in estimate.domain], **turned)
    else:
        axes.fill_between(places, low, high, color=_BAND, label=shown)
        axes.plot(places, estimate.frequencies, color=_INK, linewidth=0.8, label="estimate")
        axes.set_xlabel("value, in domain order")
    if truth is not None:
        axes.plot(places, truth, "D" if has_bars else "-", color=_TRUTH, markersize=5, linewidth=0.8, label="truth")
    axes.set_ylabel("frequency")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{estimate.n:,} reports, method {estimate.method}")
    axes.legend(frameon=False)
    return figure


def _plot_map(estimate: Estimate) -> Figure:
    latitudes, longitudes = estimate.domain.edges
    rows, columns = estimate.domain.shape
    figure, axes = _figure(7.0, max(3.0, 6.0 * rows / columns))
    # What lies below the noise is drawn as nothing: a map of noise misleads.
    shown = np.where(estimate.frequencies > estimate.standard_errors, estimate.frequencies, 0.0)
    mesh = axes.pcolormesh(longitudes, latitudes, shown.reshape(rows, columns), cmap="Blues")
    figure.colorbar(mesh, ax=axes, label="frequency (cells above one standard error)")
    axes.set_xlabel("longitude")
    axes.set_ylabel("latitude")
    axes.set_title(f"{estimate.n:,} reports, method {estimate.method}")
    return figure


@register_plot(GroupedEstimate)
def plot_groups(grouped: GroupedEstimate, confidence: float = 0.95) -> Figure:
    """Plot a ``grouped`` estimate: one bar per group and value, with its interval.

    The most frequent values are drawn if there are too many bars, in domain order.
    """
    names = list(grouped)
    most = max(1, _MOST_BARS // len(names))
    chosen = np.sort(np.argsort(-grouped.total.frequencies, kind="stable")[:most])
    places = np.arange(len(chosen))
    width = 0.8 / len(names)
    figure, axes = _figure(max(6.0, 0.28 * len(chosen) * len(names)), 4.0)
    for number, name in enumerate(names):
        estimate = grouped[name]
        low, high = estimate.interval(confidence)
        at = places + (number - (len(names) - 1) / 2) * width
        axes.bar(at, estimate.frequencies[chosen], width, label=str(name))
        axes.vlines(at, low[chosen], high[chosen], color=_INK, linewidth=1.0)
    axes.set_xticks(places, [str(grouped.total.domain.label(x)) for x in chosen.tolist()], rotation=45, ha="right")
    axes.set_ylabel("frequency")
    axes.set_ylim(bottom=0)
    left_out = len(grouped.total) - len(chosen)
    most_frequent = f", the {len(chosen)} most frequent values" if left_out else ""
    axes.set_title(f"{grouped.total.n:,} reports, {percent(confidence)} intervals{most_frequent}")
    axes.legend(frameon=False)
    return figure


@register_plot(FrequencyTable)
def plot_frequency_table(table: FrequencyTable, confidence: float = 0.95) -> Figure:
    """Plot the ``table`` of a difference or of weighted frequencies: one bar per value, from 0, with its interval.

    The values with the largest numbers are drawn if there are too many bars, in domain order.
    """
    rows = list(table.items())
    values = np.array([row.value for _, row in rows])
    chosen = np.sort(np.argsort(-np.abs(values), kind="stable")[:_MOST_BARS])
    low, high = np.array([rows[x][1].interval(confidence) for x in chosen]).T
    places = np.arange(len(chosen))
    figure, axes = _figure(max(6.0, 0.28 * len(chosen)), 4.0)
    axes.bar(places, values[chosen], color=_BAND, label=table.quantity)
    axes.vlines(places, low, high, color=_INK, linewidth=1.5, label=f"{percent(confidence)} interval")
    axes.axhline(0, color="grey", linewidth=0.8)
    turned = {"rotation": 45, "ha": "right"} if len(places) > 8 else {}
    axes.set_xticks(places, [str(rows[x][0]) for x in chosen], **turned)
    axes.set_ylabel(table.quantity)
    groups = [str(group) for group, *_ in table.terms]
    axes.set_title(" minus ".join(groups) if table.quantity == "difference" else f"{len(groups)} groups, weighted")
    axes.legend(frameon=False)
    return figure


def plot_epsilons(policy: Policy) -> Figure:
    """The effective epsilon between every two values: row x, column x', how much likelier x may make an output."""
    if not isinstance(policy, PairwisePolicy):
        raise InvalidInput("plot_epsilons", "policy", "bind pairs of values", policy.kind)
    epsilons = policy.effective_epsilon_matrix().floats
    figure, axes = _figure(6.0, 5.0)
    finite = np.where(np.isfinite(epsilons), epsilons, np.nan)
    image = axes.imshow(finite, cmap="viridis_r", vmin=0)
    figure.colorbar(image, ax=axes, label="effective ε (blank: no rule)")
    if len(epsilons) <= 20:
        labels = [str(label) for label in policy.domain]
        axes.set_xticks(range(len(epsilons)), labels, rotation=45, ha="right")
        axes.set_yticks(range(len(epsilons)), labels)
    axes.set_title(f"{policy.kind} policy")
    return figure


def plot_error_region(mechanism: Mechanism | Channel, policy: Policy, x: object, other: object) -> Figure:
    """False alarm against missed detection of tests of ``x`` against ``other``: in reach, and allowed by the policy."""
    allowed, reached = policy_region(policy, x, other), error_region(mechanism, x, other)
    figure, axes = _figure(5.0, 4.6)
    alarm, missed = allowed.vertices.T
    axes.fill_between(alarm, missed, 1 - alarm, color=_BAND, alpha=0.5, linewidth=0, label="allowed by the policy")
    axes.plot(*reached.vertices.T, color=_INK, marker="o", markersize=3, label="best tests of a report")
    _label_errors(axes, x, other)
    axes.set_title(f"{policy.kind} policy")
    axes.legend(frameon=False)
    return figure


def plot_plan(policy: Policy | Plan, numbers: Any = (10**3, 10**4, 10**5, 10**6, 10**7)) -> Figure:
    """Expected total variation error of every suitable mechanism against the number of people; of a policy or plan."""
    figure, axes = _figure(6.0, 4.0)
    numbers = [checked_count("plot_plan", n, "numbers") for n in numbers]
    compared = policy if isinstance(policy, Plan) else plan(policy, n=1)
    policy = compared.policy
    for row in compared.rows:
        errors = [min(row.half_l1 * (compared.n / n) ** 0.5, 1.0) for n in numbers]
        axes.loglog(numbers, errors, marker="o", markersize=3, label=row.name)
    axes.axhline(1, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel("people")
    axes.set_ylabel("expected total variation error")
    axes.set_title(f"{policy.kind} policy over {len(policy.domain):,} values")
    axes.legend(frameon=False)
    return figure


@register_plot(Plan)
def plot_comparison(comparison: Plan) -> Figure:
    """Plot the expected total variation error of every mechanism of a plan as a bar, the best on top.

    In a plan for another utility than estimation a bar is the value of that utility.
    """
    rows = comparison.rows
    by_error = comparison.utility == "estimation"
    lengths = [row.tv if by_error else row.value or 0.0 for row in rows]
    figure, axes = _figure(6.0, max(2.0, 0.35 * len(rows) + 1.2))
    places = np.arange(len(rows))
    axes.barh(places, lengths, color=[_INK if row is comparison.best else _BAND for row in rows])
    axes.set_yticks(places, [f"{row.name} ({row.bits:,} bits)" for row in rows])
    axes.invert_yaxis()
    if not by_error and comparison.bound is not None and np.isfinite(comparison.bound):
        axes.axvline(comparison.bound, color=_TRUTH, linewidth=1.2, label="bound for any mechanism")
        axes.legend(frameon=False)
    axes.set_xlabel("expected total variation error" if by_error else comparison.utility)
    axes.set_title(
        f"{comparison.policy.kind} policy over {len(comparison.policy.domain):,} values, n = {comparison.n:,}"
    )
    return figure


@register_plot(Optimum)
def plot_matrix(optimum: Optimum) -> Figure:
    """Plot the probability of every report (a column) for every value (a row) of an optimal mechanism."""
    matrix = optimum.mechanism.matrix()
    figure, axes = _figure(6.0, 5.0)
    image = axes.imshow(matrix, cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
    figure.colorbar(image, ax=axes, label="probability")
    if len(matrix) <= 20:
        axes.set_yticks(range(len(matrix)), [str(label) for label in optimum.mechanism.domain])
    axes.set_xlabel("report")
    axes.set_ylabel("value")
    axes.set_title(f"{optimum.utility} {optimum.value:.4g}, bound {optimum.bound:.4g}")
    return figure


@register_plot(Simulation)
def plot_simulation(simulation: Simulation) -> Figure:
    """Plot the estimate of a simulated collection with its intervals and the truth."""
    return plot_estimate(simulation.estimate, truth=simulation.truth)


@register_plot(Certificate)
def plot_certificate(certificate: Certificate) -> Figure:
    """Plot the epsilon that the tightest constraint of a certificate allows and the one that the mechanism reaches."""
    worst = certificate.worst
    allowed = float(worst.epsilon)
    reached = allowed + worst.excess if math.isfinite(allowed) else allowed
    verdict = "obeys" if certificate.holds else "does not obey"
    title = f"{certificate.mechanism['mechanism']} {verdict} the {certificate.policy['policy']['kind']} policy"
    return _plot_epsilon_bars({"allowed by the policy": allowed, "reached by the mechanism": reached}, title)


@register_plot(SamplerAudit)
def plot_sampler_audit(audit: SamplerAudit) -> Figure:
    """Plot the epsilon that the policy allows between two values and the lower bound that a black-box audit found."""
    confidence = percent(1 - audit.alpha)
    bars = {
        "allowed by the policy": float(audit.epsilon),
        f"lower bound ({confidence} confidence)": audit.epsilon_lower,
    }
    return _plot_epsilon_bars(bars, f"{audit.pair[0]!r} against {audit.pair[1]!r}")


def _plot_epsilon_bars(bars: dict[str, float], title: str) -> Figure:
    """Plot one horizontal bar per epsilon; an infinite one is written instead of drawn."""
    figure, axes = _figure(6.0, 1.8)
    for place, (label, epsilon) in enumerate(reversed(bars.items())):
        length = epsilon if math.isfinite(epsilon) else 0.0
        axes.barh(place, length, color=_BAND if label.startswith("allowed") else _INK)
        axes.text(length, place, f" {epsilon:.4g}" if math.isfinite(epsilon) else " infinite", va="center")
    axes.set_yticks(range(len(bars)), list(reversed(bars)))
    axes.set_xlabel("ε")
    axes.set_title(title)
    axes.margins(x=0.15)
    return figure


@register_plot(ErrorRegion)
@register_plot(PolicyRegion)
def plot_region(region: ErrorRegion | PolicyRegion) -> Figure:
    """Plot false alarm against missed detection of the tests of one value against another."""
    figure, axes = _figure(5.0, 4.6)
    alarm, missed = region.vertices.T
    axes.fill_between(alarm, missed, 1 - alarm, color=_BAND, alpha=0.5, linewidth=0)
    axes.plot(alarm, missed, color=_INK, marker="o", markersize=3)
    _label_errors(axes, region.x, region.other)
    return figure


def _label_errors(axes: Any, x: object, other: object) -> None:
    """Draw the diagonal of tests that ignore the report, and name the axes."""
    axes.plot([0, 1], [1, 0], color="grey", linewidth=0.8, linestyle=":", label="tests that ignore the report")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel(f"false alarm: says {x!r} of {other!r}")
    axes.set_ylabel(f"missed detection: says {other!r} of {x!r}")
