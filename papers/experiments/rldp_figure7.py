"""Lopuhaä-Zwakenberg, Goseling, Figure 7: more people in the public table, 5 x 5."""

from __future__ import annotations

from papers.experiment import Experiment, Run
from papers.experiments._robust import PAPER
from papers.experiments._sweep import EPSILONS, draw_tables, sweep
from papers.result import Claim, Result

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    shape = run.of((2, 2), (5, 5))
    draws, of_ours = run.of((3, 1), (200, 2))
    numbers = run.of((100, 10_000), (100, 1000, 10_000, 100_000))
    epsilons, ours_at = run.of(((0.5, 2.0), (0.5,)), (EPSILONS, (0.5, 2.0, 6.0)))
    seed = next(run.seeds())  # the same for each n, so that only n changes
    cases = {f"n = {n:,}": draw_tables(seed, shape, n, draws) for n in numbers}
    result = sweep(run, cases, epsilons, of_ours, ours_at)
    names = list(cases)

    def rise(protocol: str) -> float:
        """Return the increase of I(X;Y)/H(X) from the fewest to the most people, averaged over the epsilons."""
        ends = [result.means[names[-1], e][protocol] - result.means[names[0], e][protocol] for e in epsilons]
        return sum(ends) / len(ends)

    rises = {protocol: rise(protocol) for protocol in ("IR", "GRR-CR", "UE-CR", "SRR", "GRR")}
    return result.result(
        names,
        (
            Claim(
                "larger n has no effect on SRR and GRR",
                max(abs(rises["SRR"]), abs(rises["GRR"])) < 0.03,
                f"{rises['SRR']:+.3f} and {rises['GRR']:+.3f}, because P̂ itself changes with n",
            ),
            Claim(
                "the mutual information of IR, GRR-CR and UE-CR grows with n",
                min(rises[name] for name in ("IR", "GRR-CR", "UE-CR")) > 0,
                ", ".join(f"{name} {rises[name]:+.3f}" for name in ("IR", "GRR-CR", "UE-CR")),
            ),
            Claim(
                "it grows more for GRR-CR and UE-CR than for IR",
                min(rises["GRR-CR"], rises["UE-CR"]) > rises["IR"],
                "averaged over the levels, as above",
            ),
        ),
        f"{shape[0]} x {shape[1]}, α = 0.05, {draws} draws; ours on the first {of_ours}. The paper does not "
        "list n, so we chose the values. It prints no numbers.",
    )


EXPERIMENT = Experiment("rldp-figure7", "More people in the public table", f"{PAPER}, Figure 7", _run)
