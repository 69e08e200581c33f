"""Plots: the right marks for the right data, the same bytes for the same figure, and plain refusals."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.mechanisms.systems.hadamard_rows import HadamardResponse
from sfumato.mechanisms.systems.singletons import RandomizedResponse
from sfumato.plotting import plot_epsilons, plot_estimate, plot_plan, save


def example(domain: sf.Domain) -> sf.Estimate:
    mechanism = HadamardResponse(domain, 2)
    indices = np.arange(20_000) % len(domain)
    values = domain.centres()[indices] if domain.is_map else domain.decode(indices)
    counts = sf.aggregate(mechanism, sf.privatize(mechanism, values, sf.InsecureSeeded(1)))
    return sf.estimate(mechanism, counts)


def test_few_values_are_bars_with_intervals() -> None:
    estimate = example(sf.Domain(["none", "flu", "hiv"]))
    axes: Any = plot_estimate(estimate, truth=[0.3, 0.3, 0.4]).axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(list(estimate.frequencies))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["none", "flu", "hiv"]
    low, high = estimate.interval()
    segments = axes.collections[0].get_segments()
    assert [segment[0][1] for segment in segments] == pytest.approx(list(low))
    assert [segment[1][1] for segment in segments] == pytest.approx(list(high))
    assert list(axes.lines[0].get_ydata()) == [0.3, 0.3, 0.4]


def test_a_difference_is_bars_around_zero() -> None:
    first, second = (example(sf.Domain.range(size)) for size in (3, 100))
    for estimate, bars in ((first, 3), (second, 60)):
        groups = sf.GroupedEstimate({"a": estimate, "b": estimate}, estimate)
        table = groups.difference("a", "b")
        axes: Any = table.plot(0.9).axes[0]
        assert len(axes.patches) == bars
        assert (axes.get_ylabel(), axes.get_title()) == (
            "difference (fraction of people)",
            "Difference of frequencies: a minus b",
        )
        segments = axes.collections[0].get_segments()
        assert all(low < 0 < high for (_, low), (_, high) in segments)
    weighted = sf.GroupedEstimate({"a": first, "b": first}, first).weighted({"a": 1, "b": 3})
    axes = weighted.plot().axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(list(first.unbiased))
    limits = [tuple(end[1] for end in segment) for segment in axes.collections[0].get_segments()]
    assert limits == [pytest.approx(weighted[value].interval()) for value in weighted]


def test_many_values_are_a_line_and_a_grid_is_a_map() -> None:
    assert len(plot_estimate(example(sf.Domain.range(200))).axes[0].lines) == 1
    grid = sf.Domain.grid(latitude=(0, 1), longitude=(0, 2), rows=3, columns=4)
    estimate = example(grid)
    mesh = plot_estimate(estimate).axes[0].collections[0]
    shown = np.where(estimate.frequencies > estimate.standard_errors, estimate.frequencies, 0)
    assert np.asarray(mesh.get_array()).ravel() == pytest.approx(shown)


def test_a_grid_without_coordinates_is_drawn_by_row_and_column() -> None:
    axes: Any = plot_estimate(example(sf.Domain.grid(3, 4))).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("column", "row")
    assert np.asarray(axes.collections[0].get_array()).shape == (3, 4)
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 3.5), (-0.5, 2.5))


def test_levels_and_plans() -> None:
    domain = sf.Domain(["a", "b", "c"])
    policy = sf.HighLow(domain, ["b"], 1)
    drawn: Any = plot_epsilons(policy).axes[0].images[0].get_array()
    image = np.ma.filled(drawn, np.nan)
    assert image[1].tolist() == [1, 0, 1]
    assert np.isnan(image[0, 1])
    lines = plot_plan(policy).axes[0].lines
    assert len(lines) == 9  # five classical mechanisms, three for this policy, and the line at one
    compared = sf.plan(sf.Uniform(sf.Domain.range(4), 1), 100, question="mean", max_seconds=0)
    axes = plot_plan(compared, [100, 400]).axes[0]
    assert axes.get_ylabel() == "standard error of the answer"
    last = np.asarray(axes.lines[-1].get_ydata(), np.float64)  # the best is drawn last, on top of the others
    assert last.tolist() == pytest.approx([compared.standard_error(compared.best) / root for root in (1, 2)])
    assert [text.get_text() for text in axes.texts if "recommended" in text.get_text()] == [
        f"{compared.best.name} (recommended)"
    ]
    assert len({line.get_color() for line in axes.lines[:-1]} & {axes.lines[-1].get_color()}) == 0
    assert axes.get_legend() is None
    bars: Any = compared.plot().axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx([compared.standard_error(row) for row in compared.rows])
    with pytest.raises(InvalidInput, match="have an epsilon for pairs of values"):
        plot_epsilons(sf.Prior(domain, ["1/2", "1/4", "1/4"], 1))
    with pytest.raises(InvalidInput, match="numbers must be a whole number"):
        plot_plan(policy, [100, 0])


def test_a_truth_has_a_share_for_each_value() -> None:
    estimate = example(sf.Domain(["none", "flu", "hiv"]))
    with pytest.raises(InvalidInput, match="plot_estimate: truth must have 3 entries"):
        plot_estimate(estimate, truth=[1])
    with pytest.raises(InvalidInput, match="plot_estimate: truth must"):
        plot_estimate(estimate, truth={"none": 20, "flu": 3})  # counts, not shares
    plot_estimate(estimate, truth={"none": 1})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["e.svg", "e.png"])
def test_the_same_figure_gives_the_same_file(tmp_path: Path, name: str) -> None:
    estimate = example(sf.Domain(["none", "flu", "hiv"]))
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save(plot_estimate(estimate), tmp_path / folder / name)
        files.append((tmp_path / folder / name).read_bytes())
    assert files[0] == files[1]
    with pytest.raises(InvalidInput, match=r"end in .svg or .png; got 'e.pdf'"):
        save(plot_estimate(estimate), tmp_path / "e.pdf")


def test_an_estimate_without_noise_draws_points_for_intervals() -> None:
    domain = sf.Domain(["a", "b"])
    clear = RandomizedResponse(domain, "inf")
    estimate = sf.estimate(clear, sf.aggregate(clear, [0, 0, 1, 1]))
    assert len(plot_estimate(estimate).axes[0].patches) == 2


def test_audits_are_drawn_with_what_is_allowed_and_what_was_found() -> None:
    domain = sf.Domain(["none", "flu", "hiv"])
    mechanism = sf.mechanisms.RandomizedResponse(domain, 1)
    for certificate in (
        sf.audit(mechanism, sf.Uniform(domain, 1)),
        sf.audit(mechanism, sf.Uniform(domain, "1/2")),
        sf.audit(sf.mechanisms.RandomizedResponse(domain, "inf"), sf.Uniform(domain, 1)),
    ):
        (axes,) = certificate.plot().axes
        assert [text.get_text() for text in axes.get_yticklabels()] == [
            "reached by the mechanism",
            "allowed by the policy",
        ]
        reached, allowed = (text.get_text().strip() for text in axes.texts)
        assert float(allowed) == float(certificate.worst.epsilon)
        assert (reached == "infinite") == (certificate.worst.right == 0)
        assert certificate.holds == (reached != "infinite" and float(reached) <= float(allowed))
    audit = sf.audit_sampler(lambda value: value, sf.Uniform(domain, 1), trials=2000)
    (axes,) = audit.plot().axes
    assert [text.get_text() for text in axes.texts] == [f" {audit.epsilon_lower:.4g}", " 1"]


def test_labels_are_shown_as_they_are_and_do_not_smear() -> None:
    """Dollar signs are not formulas, long labels are cut and turned, and products are not Python tuples."""
    long = "a label that is far too long to be shown next to others"
    figure = plot_estimate(example(sf.Domain(["$5 or $10", long, "a^$2$_b"])))
    figure.draw_without_rendering()
    axes: Any = figure.axes[0]
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert ticks[0] == r"\$5 or \$10"
    assert len(ticks[1]) == 28
    assert ticks[1].endswith("…")
    assert {tick.get_rotation() for tick in axes.get_xticklabels()} == {45.0}
    boxes = [tick.get_window_extent() for tick in axes.get_xticklabels()]
    assert boxes[0].width < figure.bbox.width / 2
    pair = sf.Domain.product(sex=["f", "m"], age=["young", "old"])
    axes = plot_estimate(example(pair)).axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["f · young", "f · old", "m · young", "m · old"]
    axes = plot_epsilons(sf.Uniform(pair, 1)).axes[0]
    assert axes.get_yticklabels()[0].get_text() == "f · young"


def test_marks_of_the_truth_leave_intervals_visible() -> None:
    axes: Any = plot_estimate(example(sf.Domain(["none", "flu", "hiv"])), truth=[0.3, 0.3, 0.4]).axes[0]
    intervals = [segment[0][0] for segment in axes.collections[0].get_segments()]
    assert all(abs(x - at) > 0.1 for x, at in zip(axes.lines[0].get_xdata(), intervals, strict=True))
    assert axes.lines[0].get_markerfacecolor() == "none"


def test_maps_show_rare_cells_and_take_a_title() -> None:
    grid = sf.Domain.grid(latitude=(0, 1), longitude=(0, 2), rows=3, columns=4)
    axes: Any = plot_estimate(example(grid), title="The true map").axes[0]
    assert axes.get_title() == "The true map"
    scale = axes.collections[0].norm
    assert scale(scale.vmax / 100) == pytest.approx(0.1)


def test_labels_of_a_plan_are_outside_of_the_axes_and_apart() -> None:
    figure = plot_plan(sf.plan(sf.HighLow(sf.Domain(["a", "b", "c", "d"]), ["c"], 1), 1000))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    # The extent of the words alone, without the line from the label.
    labels: list[Any] = list(axes.texts)
    extents = {Text.get_window_extent(text): text for text in labels}
    boxes = sorted(extents, key=lambda box: float(box.y0))
    assert len(boxes) > 5
    assert all(box.x0 > axes.bbox.x1 for box in boxes)
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(above.y0 >= below.y0 + 0.8 * below.height for below, above in itertools.pairwise(boxes))
    # Each label has a line to the end of its own line, and labels are in the order of the ends.
    ends = [extents[box].xy[1] for box in boxes]
    assert ends == sorted(ends)


def test_the_legend_of_an_estimate_covers_nothing() -> None:
    domain = sf.Domain(["a", "b", "c", "d"])
    mechanism = sf.mechanisms.RandomizedResponse(domain, 1)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, [0] * 30 + [1] * 20 + [2] * 25 + [3] * 25))
    figure = plot_estimate(estimate, truth=[0.4, 0.1, 0.2, 0.3])
    figure.draw_without_rendering()
    (axes,) = figure.axes
    drawn = axes.get_legend()
    assert drawn is not None
    legend = drawn.get_window_extent()
    high = max(estimate.interval(0.95)[1].max(), 0.4)
    assert axes.transData.transform((0, high))[1] < legend.y0
    assert legend.x0 >= axes.bbox.x0
