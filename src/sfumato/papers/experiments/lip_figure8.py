"""Jiang, Li, Tandon, Figure 8: popular pages of a news portal, and check-ins in a district."""

from __future__ import annotations

import numpy as np

from sfumato.papers.data.gowalla import district_users
from sfumato.papers.data.kosarak import page_clicks
from sfumato.papers.experiment import Experiment, Run
from sfumato.papers.experiments._priors import PAPER, beats, panel, rows_of
from sfumato.papers.result import Claim, Result, Row

__all__ = ["EXPERIMENT"]

#: Pages with more clicks are popular.
_POPULAR = 15_000


def _run(run: Run) -> Result:
    levels = [0.5 * step for step in run.of(range(0, 21, 5), range(21))]
    clicks, users = page_clicks(run.folder), district_users(run.folder)
    popular = clicks.value > _POPULAR
    cases = {
        "Kosarak": np.full(len(popular), popular.mean()),
        "Gowalla": users.value.priors,
    }
    rows: list[Row] = []
    panels, artefacts, better = [], [], []
    for name, priors in run.each(cases.items()):
        found, curves = rows_of(name, priors, levels)
        rows += found
        panels.append(panel(name, levels, curves))
        artefacts.append(beats(name, levels, curves))
        better.append(bool((np.array(curves["ε-Opt-LIP"]) <= np.array(curves["ε-Opt-LDP"]) * (1 + 1e-12)).all()))
    return Result(
        quantity="√(E/N); measured: ε-Opt-LIP as printed (Theorem 2)",
        ours_is="the corrected optimum of ε-LIP for each user",
        rows=tuple(rows),
        claims=(
            Claim(
                "ε-Opt-LDP has larger errors than ε-Opt-LIP",
                all(better),
                f"on {sum(better)} of {len(better)} data sets",
            ),
            *artefacts,
        ),
        notes=(
            f"{int(popular.sum())} of {len(popular):,} pages are popular; {len(users.value.priors):,} users, "
            f"{int((users.value.priors > 0).sum())} of whom were in the district before. The paper prints no numbers.",
            "A prior that is learnt from a person's own history must not be used as it is: a report shows the prior it "
            "was made with. The errors are those that the paper computes all the same.",
        ),
        panels=tuple(panels),
        sources=(clicks, users),
    )


EXPERIMENT = Experiment("lip-figure8", "Popular pages, and check-ins in a district", f"{PAPER}, Figure 8", _run)
