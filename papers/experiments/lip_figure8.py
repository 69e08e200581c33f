"""Jiang, Li, Tandon, Figure 8: popular pages of a news portal, and check-ins in a district."""

from __future__ import annotations

import numpy as np

from papers.experiment import Experiment, Run
from papers.experiments._priors import PAPER, Comparison
from papers.result import Result
from sfumato.datasets.gowalla import district_users
from sfumato.datasets.kosarak import page_clicks

__all__ = ["EXPERIMENT"]

#: Number of clicks above which a page is popular.
_POPULAR = 15_000


def _run(run: Run) -> Result:
    epsilons = [0.5 * step for step in run.of(range(0, 21, 5), range(21))]
    clicks, users = page_clicks(run.folder), district_users(run.folder)
    popular = clicks.value > _POPULAR
    cases = {
        "Kosarak": lambda: np.full(len(popular), popular.mean()),
        "Gowalla": lambda: users.value.priors,
    }
    return Comparison.of(run, cases, epsilons).result(
        "ε-Opt-LDP has larger errors than ε-Opt-LIP",
        "on {} of {} data sets",
        [
            f"{int(popular.sum())} of {len(popular):,} pages are popular; {len(users.value.priors):,} users, "
            f"{int((users.value.priors > 0).sum())} of whom visited the district before. The paper prints no numbers.",
            "A prior that is learned from a person's history must not be used directly, because a report reveals its "
            "prior. We nevertheless compute the errors that the paper computes.",
        ],
        [clicks, users],
    )


EXPERIMENT = Experiment("lip-figure8", "Popular pages, and check-ins in a district", f"{PAPER}, Figure 8", _run)
