"""Results whose answers wait for a release do not say that there are none."""

from __future__ import annotations

import pytest

import sfumato as sf
from support.browsing import DESKTOP, ILLNESSES, People
from support.collectors import Served


@pytest.mark.component
def test_results_before_the_first_release_say_that_answers_may_wait(people: People, collector: Served) -> None:
    policy = sf.Uniform(sf.Domain(ILLNESSES), 1)
    name, mechanism, key = collector.create(policy, mechanism="rr", submission="key", release_every=2000)
    reports = [x % 4 for x in range(1000)]
    assert collector.send(name, mechanism, reports, "the-first", key).status == 200
    page = people(DESKTOP)
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("text=No results are released yet")
    text = page.inner_text("main")
    assert "steps of at least 2,000 answers" in text
    assert "0 released answers" in " ".join(text.split())
    assert "with the first answers" not in text
    assert collector.send(name, mechanism, reports, "the-second", key).status == 200
    page.wait_for_selector("text=2,000")
    page.wait_for_selector("#chart svg")
