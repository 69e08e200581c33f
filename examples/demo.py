"""Run a survey with sensitive answers and a map of a city from policy to estimate.

The program prints each result and writes build/demo/report.html with the figures. The people and their answers are
invented. The randomness that protects them is real, so the estimates differ between runs.
"""

from __future__ import annotations

import contextlib
import html
import io
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.device import Client
from sfumato.mechanisms import Mechanism, RandomizedResponse
from sfumato.plotting import plot_epsilons, plot_estimate, plot_plan

FOLDER = Path(__file__).parents[1] / "build" / "demo"

#: Number of people by answer; the policy below protects two of the answers.
PEOPLE = {"none": 27_000, "flu": 14_000, "hiv": 1_500, "cancer": 3_500, "prefer not to say": 4_000}
ANSWERS = [answer for answer, count in PEOPLE.items() for _ in range(count)]
SHARES = {answer: count / len(ANSWERS) for answer, count in PEOPLE.items()}
POLICY = sf.HighLow(sf.Domain(list(PEOPLE)), sensitive=["hiv", "cancer"], epsilon=1)

INTRODUCTION = """Every person's device adds random noise to an answer before it leaves the device.
The policy states which answers the noise must protect, and how strongly (epsilon).
From the noisy reports, Sfumato estimates how common each answer is, with 95% intervals.
(The first run on a machine also compiles some code, which takes a few seconds.)"""
LEGEND = """l2 risk: expected squared error; TV: total variation error, the share of people assigned to a wrong answer;
bits: size of a report; × bound: risk divided by a proven lower bound; *: recommended."""


#: Maximum characters of a line of a table; longer lines are sentences.
_WIDEST = 90


class Report:
    """Print results and collect them, with figures, in one HTML page."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def heading(self, title: str) -> None:
        print(f"\n== {title}")
        self._parts.append(f"<h2>{html.escape(title)}</h2>")

    def sentence(self, sentence: object) -> None:
        """Add words, which the page wraps."""
        print(sentence)
        self._parts.append(f"<p>{html.escape(str(sentence).strip())}</p>")

    def table(self, table: object) -> None:
        """Add aligned lines, which the page scrolls; a long last line is a sentence, which it wraps."""
        print(table)
        lines = str(table).splitlines()
        words = lines.pop() if len(lines[-1]) > _WIDEST else ""
        if lines:
            self._parts.append(f'<pre tabindex="0">{html.escape(chr(10).join(lines))}</pre>')
        if words:
            self._parts.append(f"<p>{html.escape(words)}</p>")

    def figure(self, figure: Any, caption: str) -> None:
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg")
        drawing = buffer.getvalue()
        svg = drawing[drawing.index("<svg") :]
        self._parts.append(f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>")

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        style = (
            ":root{color-scheme:light dark;--paper:#faf9f7;--ink:#23262b;--muted:#5b6068;--sunken:#f1efeb}"
            "@media(prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e9e7e2;--muted:#a8acb3;--sunken:#262a2f}}"
            "body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem;"
            "background:var(--paper);color:var(--ink);overflow-wrap:anywhere}"
            "pre{background:var(--sunken);padding:.7rem;overflow-x:auto;font-size:.8rem}figure{margin:1rem 0}"
            "svg{max-width:100%;height:auto;background:#fff;border-radius:8px}figcaption{color:var(--muted)}"
        )
        title = "Sfumato: a private survey and a private map"
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
            f'initial-scale=1"><title>{title}</title><style>{style}</style>'
            f"<main><h1>{title}</h1>{''.join(self._parts)}</main></html>"
        )
        path.write_text(page, encoding="utf-8")


def collect(mechanism: Mechanism, values: Any, method: str) -> sf.Estimate:
    """Privatize the values as devices would, then count the reports and estimate as an analyst would."""
    reports = sf.privatize(mechanism, values)
    return sf.estimate(mechanism, sf.aggregate(mechanism, reports), method)


def compared_with_truth(estimate: sf.Estimate) -> str:
    """Return one line per answer of the survey: its true share, its estimate and the 95% interval."""
    low, high = estimate.interval()
    return "\n".join(
        f"{answer!s:20} truth {SHARES[str(answer)]:.4f}   estimate {share:.4f}   95% interval [{a:.4f}, {b:.4f}]"
        for answer, share, a, b in zip(estimate.values, estimate.frequencies, low, high, strict=True)
    )


@contextlib.contextmanager
def collector(folder: Path) -> Iterator[tuple[str, str]]:
    """Run ``sfumato serve`` on a free local port; yield its URL and its admin token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "sfumato.cli", "serve", "--store", f"sqlite:///{folder}/collect.db"]
    with (folder / "serve.log").open("wb") as log:
        service = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert service.stdout is not None
        yield f"http://127.0.0.1:{port}", service.stdout.readline().split()[-1]
    finally:
        service.terminate()
        service.communicate()


def service(report: Report, mechanism: Mechanism, reports: Any, estimate: sf.Estimate) -> None:
    """Send the reports of the survey to a collector, and estimate from its counts."""
    report.heading("The same reports over HTTP: the collector counts each of them once")
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder)) as (url, token):
        with Client(url, token) as admin:
            collection, key = admin.create("Health survey", POLICY, mechanism, submission="key")
        with Client(url, key) as client:
            sf.verify(client.certificate(collection))  # the client repeats the collector's audit
            sent = client.submit(collection, reports, batch="monday")
            client.submit(collection, reports, batch="monday")  # a retry is not counted again
        with Client(url, token) as admin:  # by default only owners and administrators read results
            counts = admin.aggregate(collection)
    size = f"{mechanism.bits} bits per report"
    report.sentence(
        f"The {sent[0].reports:,} reports above ({size}) were sent twice to {url}; counted once: {counts.n:,}."
    )
    collected = sf.estimate(mechanism, counts)
    assert collected.frequencies.tolist() == estimate.frequencies.tolist()
    report.sentence("The estimates from the collector's counts equal those above, because the reports are the same:")
    report.table(compared_with_truth(collected))


def survey(report: Report) -> tuple[Mechanism, Any, sf.Estimate]:
    """Plan, audit and run the survey in this process; return its mechanism, reports and estimate."""
    report.heading("A survey: 'hiv' and 'cancer' are protected, the other answers may be revealed")
    policy, n = POLICY, len(ANSWERS)
    odds = policy.posterior_odds_bound("hiv", "none")
    report.sentence(f"A report multiplies the odds of 'hiv' against 'none' by at most {odds:.4g}.")
    report.figure(
        plot_epsilons(policy),
        "ε for each pair: a report may be e^ε times likelier for the row than for the column. Blank: no limit.",
    )

    report.sentence(f"\nThe mechanisms that obey this policy, with the error to expect from {n:,} people:")
    compared = sf.plan(policy, n)
    report.table(compared)
    report.sentence(LEGEND)
    report.figure(plot_plan(compared), "Expected error by number of people; the recommended mechanism is dark.")

    mechanism = sf.design(policy, n)
    certificate = sf.audit(mechanism, policy).raise_if_violated()
    report.sentence("\nThe proof:")
    report.table(certificate)
    allowed = RandomizedResponse(policy.domain, 1)
    broken = RandomizedResponse(policy.domain, 1, threshold=allowed.threshold + 1)
    report.sentence(f"The audit detects an excess of one part in 2^64: {sf.audit(broken, policy).summary()}")

    reports = sf.privatize(mechanism, ANSWERS)
    estimate = sf.estimate(mechanism, sf.aggregate(mechanism, reports))
    report.sentence("\nThe estimates, next to the true shares, which no collector knows:")
    report.table(compared_with_truth(estimate))
    sensitive = SHARES["hiv"] + SHARES["cancer"]
    report.sentence(
        f"hiv or cancer: {estimate.set_fraction(['hiv', 'cancer'])} (truth {sensitive:.4f}; ± is the standard error)"
    )
    report.figure(
        plot_estimate(estimate, truth=SHARES),
        "The survey: estimates with 95% intervals, and the true shares, which no collector knows.",
    )
    return mechanism, reports, estimate


def city(report: Report) -> None:
    """Draw a map of where people are from reports that hide the place within its district."""
    report.heading("A map of a city: the district may be revealed, the place within it is protected")
    domain = sf.Domain.grid(latitude=(52.4, 52.6), longitude=(13.2, 13.6), rows=16, columns=24)
    districts = [(row // 4, column // 4) for row, column in domain]
    policy = sf.Blocks(domain, blocks=districts, epsilon=1)
    centres = domain.centres()
    density = sum(
        weight * np.exp(-(((centres - place) / size) ** 2).sum(axis=1))
        for place, size, weight in (
            (np.array([52.52, 13.40]), np.array([0.02, 0.03]), 1.0),
            (np.array([52.48, 13.30]), np.array([0.015, 0.025]), 0.6),
            (np.array([52.55, 13.52]), np.array([0.02, 0.02]), 0.4),
        )
    )
    counts = np.rint(400_000 * density / np.sum(density)).astype(int)
    points = np.repeat(centres, counts, axis=0)
    n = len(points)
    report.sentence(f"{n:,} people, {len(domain)} places in {len(set(districts))} districts")
    report.table(sf.plan(policy, n))
    mechanism = sf.design(policy, n)
    report.table(sf.audit(mechanism, policy).raise_if_violated())
    estimate = collect(mechanism, points, "simplex")
    error = float(np.abs(estimate.frequencies - counts / n).sum()) / 2
    report.sentence(f"{n:,} reports, {mechanism.bits} bits per report")
    report.sentence(f"Total variation distance to the true map: {error:.3f}")
    classical = collect(sf.design(sf.Uniform(domain, 1)), points, "simplex")
    error = float(np.abs(classical.frequencies - counts / n).sum()) / 2
    report.sentence(f"The same distance if the district is protected too (classical LDP): {error:.3f}")
    # An infinite level reveals every value, so this estimate is the true map.
    open_mechanism = RandomizedResponse(domain, "inf")
    truth = sf.estimate(open_mechanism, sf.aggregate(open_mechanism, domain.encode(points)))
    maps = {
        "The true map, which the collector does not know": truth,
        "Estimated from reports that hide the place within its district": estimate,
        "Estimated from reports that hide the district too (classical LDP)": classical,
    }
    for title, shown in maps.items():
        figure = plot_estimate(shown, title=title)
        figure.axes[0].collections[0].set_clim(0, float(truth.frequencies.max()))  # one scale for all maps
        report.figure(figure, f"{title}.")


def main() -> None:
    report = Report()
    report.sentence(INTRODUCTION)
    mechanism, reports, estimate = survey(report)
    service(report, mechanism, reports, estimate)
    city(report)
    page = FOLDER / "report.html"
    report.save(page)
    print(f"\nThe figures are in {page.relative_to(Path(__file__).parents[1])}")


if __name__ == "__main__":
    main()
