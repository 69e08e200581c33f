"""Figures of estimates, answers, maps, privacy levels, error regions, plans and audits.

Each function returns a matplotlib figure. :func:`save` writes a figure as SVG or PNG. Matplotlib is an optional
dependency, the extra ``plot``.
"""

from sfumato.plotting.amplification import plot_amplification
from sfumato.plotting.answers import plot_answers, plot_distribution, plot_number, plot_quantiles
from sfumato.plotting.results import (
    plot_certificate,
    plot_comparison,
    plot_epsilons,
    plot_error_region,
    plot_estimate,
    plot_frequency_table,
    plot_group_answers,
    plot_group_differences,
    plot_groups,
    plot_matrix,
    plot_plan,
    plot_region,
    plot_sampler_audit,
    plot_simulation,
)
from sfumato.plotting.style import save
from sfumato.plotting.waves import plot_wave_table, plot_waves

__all__ = [
    "plot_amplification",
    "plot_answers",
    "plot_certificate",
    "plot_comparison",
    "plot_distribution",
    "plot_epsilons",
    "plot_error_region",
    "plot_estimate",
    "plot_frequency_table",
    "plot_group_answers",
    "plot_group_differences",
    "plot_groups",
    "plot_matrix",
    "plot_number",
    "plot_plan",
    "plot_quantiles",
    "plot_region",
    "plot_sampler_audit",
    "plot_simulation",
    "plot_wave_table",
    "plot_waves",
    "save",
]
