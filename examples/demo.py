"""The main job, end to end: a survey with sensitive answers and a map of a city, from policy to private answers.

Prints what it does and writes build/demo/report.html with the pictures. People and their answers are made up; the
randomness that hides them is real.
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

#: The survey: how many people have which answer, and which answers must be deniable.
PEOPLE = {"none": 27_000, "flu": 14_000, "hiv": 1_500, "cancer": 3_500, "prefer not to say": 4_000}
ANSWERS = [answer for answer, count in PEOPLE.items() for _ in range(count)]
SHARES = {answer: count / len(ANSWERS) for answer, count in PEOPLE.items()}
POLICY = sf.HighLow(sf.Domain(list(PEOPLE)), sensitive=["hiv", "cancer"], epsilon=1)


class Report:
    """Collects what is printed, and pictures, for a page that stands alone."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def heading(self, text: str) -> None:
        print(f"\n== {text}")
        self._parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, text: object) -> None:
        print(text)
        self._parts.append(f"<pre>{html.escape(str(text))}</pre>")

    def picture(self, figure: Any, caption: str) -> None:
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg")
        drawing = buffer.getvalue()
        svg = drawing[drawing.index("<svg") :]
        self._parts.append(f"<figure>{svg}<figcaption>{html.escape(caption)}</figcaption></figure>")

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        style = (
            "body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:2rem auto;padding:0 1rem}"
            "pre{background:#f4f6f8;padding:.7rem;overflow-x:auto;font-size:.8rem}svg{max-width:100%;height:auto}"
            "figcaption{color:#555}"
        )
        title = "Sfumato: a survey and a map, private from the start"
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
            f"<h1>{title}</h1>{''.join(self._parts)}</html>"
        )
        path.write_text(page, encoding="utf-8")


def collect(mechanism: Mechanism, values: Any, method: str) -> sf.Estimate:
    """What happens between a person and an answer: randomized on their side, counted and estimated on ours."""
    reports = sf.privatize(mechanism, values)
    return sf.estimate(mechanism, sf.aggregate(mechanism, reports), method)


def beside_the_truth(estimate: sf.Estimate) -> str:
    """A line for each answer of the survey: its true share, and what private reports say of it."""
    low, high = estimate.interval()
    return "\n".join(
        f"{answer!s:20} truth {SHARES[str(answer)]:.4f}   estimate {share:.4f}   95% interval [{a:.4f}, {b:.4f}]"
        for answer, share, a, b in zip(estimate.values, estimate.frequencies, low, high, strict=True)
    )


@contextlib.contextmanager
def collector(folder: Path) -> Iterator[tuple[str, str]]:
    """`sfumato serve` on a free port of this machine: its URL and its admin token."""
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


def service(report: Report) -> None:
    report.heading("The same survey as a service: reports over HTTP, each counted exactly once")
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder)) as (url, token):
        with Client(url, token) as admin:
            collection, key = admin.create("Health survey", POLICY, submission="key")
        with Client(url, key) as client:
            mechanism = client.collection(collection).mechanism
            sf.verify(client.certificate(collection))  # a client need not believe the collector
            reports = sf.privatize(mechanism, ANSWERS)
            sent = client.submit(collection, reports, batch="monday")
            client.submit(collection, reports, batch="monday")  # the network hiccupped: sent again, counted once
            counts = client.aggregate(collection)
    report.text(f"{sent[0].reports:,} reports of {mechanism.bits} bits sent twice to {url}; counted: {counts.n:,}")
    report.text(beside_the_truth(sf.estimate(mechanism, counts)))


def survey(report: Report) -> None:
    report.heading("A survey: 'hiv' and 'cancer' must be deniable, the rest may be told")
    policy, n = POLICY, len(ANSWERS)
    report.text(policy)
    odds = policy.posterior_odds_bound("hiv", "none")
    report.text(
        f"After an answer, the odds of 'hiv' against 'none' are at most {odds:.4g} times what they were before."
    )
    report.picture(
        plot_epsilons(policy), "How much likelier a row may make an answer than a column: ε, blank for no rule."
    )

    plan = sf.plan(policy, n)
    report.text(plan)
    report.picture(plot_plan(policy), "The error to expect, before anybody is asked.")

    mechanism = sf.design(policy, n)
    certificate = sf.audit(mechanism, policy).raise_if_violated()
    report.text(certificate)
    allowed = RandomizedResponse(policy.domain, 1)
    broken = RandomizedResponse(policy.domain, 1, threshold=allowed.threshold + 1)
    report.text(f"One part in 2^64 too much is caught: {sf.audit(broken, policy).summary()}")

    estimate = collect(mechanism, ANSWERS, "unbiased")
    report.text(beside_the_truth(estimate))
    sensitive = SHARES["hiv"] + SHARES["cancer"]
    report.text(f"Sensitive together: {estimate.set_fraction(['hiv', 'cancer'])} (truth {sensitive:.4f})")
    report.picture(
        plot_estimate(estimate, truth=SHARES), "The survey: estimate, intervals, and the truth that stayed home."
    )


def city(report: Report) -> None:
    report.heading("A map of a city: the district may be known, nobody's place in it is")
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
    report.text(f"{policy}, {n:,} people")
    report.text(sf.plan(policy, n))
    mechanism = sf.design(policy, n)
    report.text(sf.audit(mechanism, policy).raise_if_violated())
    estimate = collect(mechanism, points, "simplex")
    error = float(np.abs(estimate.frequencies - counts / n).sum()) / 2
    report.text(f"{n:,} reports of {mechanism.bits} bits; total variation distance to the true map: {error:.3f}")
    classical = collect(sf.design(sf.Uniform(domain, 1)), points, "simplex")
    error = float(np.abs(classical.frequencies - counts / n).sum()) / 2
    report.text(f"If the district had to be hidden as well as the place: {error:.3f}")
    report.picture(plot_estimate(estimate), "The map from private reports.")
    truth = sf.estimate(
        RandomizedResponse(domain, "inf"), sf.aggregate(RandomizedResponse(domain, "inf"), domain.encode(points))
    )
    report.picture(plot_estimate(truth), "The true map, which no collector ever saw.")


def main() -> None:
    report = Report()
    survey(report)
    service(report)
    city(report)
    page = FOLDER / "report.html"
    report.save(page)
    print(f"\nThe pictures are in {page.relative_to(Path(__file__).parents[1])}")


if __name__ == "__main__":
    main()
