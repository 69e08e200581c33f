"""Lopuhaä-Zwakenberg, Goseling, Figure 7: more people in the public table, 5 x 5."""

from __future__ import annotations

from sfumato.papers.experiment import Experiment, Run
from sfumato.papers.experiments._robust import PAPER
from sfumato.papers.experiments._sweep import LEVELS, drawn, sweep
from sfumato.papers.result import Claim, Result

__all__ = ["EXPERIMENT"]


def _run(run: Run) -> Result:
    shape = run.of((2, 2), (5, 5))
    draws, of_ours = run.of((3, 1), (200, 2))
    numbers = run.of((100, 10_000), (100, 1000, 10_000, 100_000))
    levels, ours_at = run.of(((0.5, 2.0), (0.5,)), (LEVELS, (0.5, 2.0, 6.0)))
    seed = next(run.seeds())  # the same for each n: only that shall change
    kinds = {f"n = {n:,}": drawn(seed, shape, n, draws) for n in numbers}
    found = sweep(run, kinds, levels, of_ours, ours_at)
    names = list(kinds)

    def rise(protocol: str) -> float:
        """How much more of H(X) is told with the most people than with the fewest, mean of the levels."""
        ends = [found.means[names[-1], e][protocol] - found.means[names[0], e][protocol] for e in levels]
        return sum(ends) / len(ends)

    rises = {protocol: rise(protocol) for protocol in ("IR", "GRR-CR", "UE-CR", "SRR", "GRR")}
    return found.result(
        names,
        (
            Claim(
                "larger n has no effect on SRR and GRR",
                max(abs(rises["SRR"]), abs(rises["GRR"])) < 0.03,
                f"{rises['SRR']:+.3f} and {rises['GRR']:+.3f}: P̂ itself changes with n",
            ),
            Claim(
                "IR, GRR-CR and UE-CR tell more the larger n is",
                min(rises[name] for name in ("IR", "GRR-CR", "UE-CR")) > 0,
                ", ".join(f"{name} {rises[name]:+.3f}" for name in ("IR", "GRR-CR", "UE-CR")),
            ),
            Claim(
                "more so GRR-CR and UE-CR than IR",
                min(rises["GRR-CR"], rises["UE-CR"]) > rises["IR"],
                "mean of the levels, as above",
            ),
        ),
        f"{shape[0]} x {shape[1]}, α = 0.05, {draws} draws; ours on the first {of_ours}. The text does not list n; "
        "these are ours. The paper prints no numbers.",
    )


EXPERIMENT = Experiment("rldp-figure7", "More people in the public table", f"{PAPER}, Figure 7", _run)
