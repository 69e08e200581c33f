"""Studio shows the trade-off: error by level and people, the ± of each share, simulated results, a preview."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sfumato as sf
from support import ROOT
from support.browsing import DESKTOP, ILLNESSES, PHONE, People, enter_studio, planned
from support.collectors import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.component

PAGES = ROOT / "src" / "sfumato" / "server" / "pages"
SHARES = [0.6, 0.35, 0.03, 0.02]
HARD = ["مرحبا بالعالم", "😀" * 40, "<b>bold</b>", "https://example.org/" + "a" * 300, "none"]


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def policy_at(epsilon: Any) -> sf.Policy:
    return sf.HighLow(sf.Domain(ILLNESSES), ["hiv", "cancer"], epsilon=epsilon)


def test_a_plan_has_errors_by_level_and_a_simulated_survey(collector: Served) -> None:
    """A simulated share is within 6 standard errors of the expected one, which fails with probability below 1e-7."""
    body = {"policy": policy_at(1).to_dict(), "n": 5000, "levels": ["0.5", "1", "2"], "expected": SHARES}
    response = collector.as_admin("POST", "/v1/plan", body).json
    assert [row["epsilon"] for row in response["levels"]] == ["0.5", "1", "2"]
    for row in response["levels"]:
        direct = sf.plan(policy_at(row["epsilon"]), 5000)
        assert row["standard_error"] == pytest.approx(direct.standard_error(direct.best), rel=1e-3)
        assert row["standard_error"] < row["alike"]
    mechanism = sf.design(policy_at(1), 5000)
    exact = [math.sqrt(v / 5000) for v in mechanism.estimator.variances(np.array(SHARES))]
    rows = response["preview"]["rows"]
    assert [row["expected"] for row in rows] == SHARES
    assert [row["expected_error"] for row in rows] == pytest.approx(exact)
    assert all(abs(row["frequency"] - row["expected"]) < 6 * row["expected_error"] for row in rows)
    assert collector.as_admin("POST", "/v1/plan", body).json == response
    other = collector.as_admin("POST", "/v1/plan", body | {"draw": 1}).json["preview"]["rows"]
    assert [row["frequency"] for row in other] != [row["frequency"] for row in rows]
    without = collector.as_admin("POST", "/v1/plan", {"policy": policy_at(1).to_dict(), "n": 5000}).json
    assert (without["levels"], without["preview"]) == ([], None)
    for wrong in ({"levels": ["1"] * 25}, {"expected": "often"}, {"expected": [1.0]}, {"draw": -1}):
        assert collector.as_admin("POST", "/v1/plan", body | wrong).reason == "invalid"


def test_studio_shows_the_trade_off(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Which of these?")
    page.fill("#values", "\n".join(ILLNESSES))
    page.check("input[name=one-of-keep][value=high-low]")
    for value in ("hiv", "cancer"):
        page.click(f".cell:has-text('{value}')")
    planned(page, 5000)
    # By keyboard: the expected shares, then another simulated survey.
    page.focus("#expected")
    page.keyboard.press("End")
    page.wait_for_selector("#own-shares")
    assert page.evaluate("document.activeElement.id") == "expected"
    page.keyboard.press("Tab")
    page.keyboard.type("60 35 3")
    half = 1.96 * math.sqrt(sf.design(policy_at(1), 5000).estimator.variances(np.array(SHARES))[2] / 5000)
    page.wait_for_selector(f"#shares li:has-text('hiv: 3.0% ± {100 * half:.1f}%')")
    assert "Simulated" in page.inner_text("#simulated-note")
    drawn = page.inner_html("#simulated")
    page.focus("#draw-again")
    page.keyboard.press("Enter")
    page.wait_for_function("before => document.querySelector('#simulated').innerHTML !== before", arg=drawn)
    assert page.evaluate("document.activeElement.id") == "draw-again"

    for chart in ("#curve", "#level-curve"):
        assert page.locator(f"{chart} .dot").count() == 1
        assert page.locator(f"{chart} path.other").count() == 1
    level, number = (page.locator(f"{one} svg").bounding_box() for one in ("#level-curve", "#curve"))
    assert level is not None
    assert number is not None
    assert level["y"] == pytest.approx(number["y"], abs=2)
    assert level["x"] + level["width"] <= number["x"]
    # Each technical term appears by hover, by keyboard and by touch, and Escape closes it.
    words = page.locator("#alike button.term")
    note = page.locator("#alike .note")
    words.hover()
    note.wait_for(state="visible")
    page.mouse.move(0, 0)
    note.wait_for(state="hidden")
    words.focus()
    assert "classical local differential privacy" in note.inner_text()
    assert words.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "/guide#alike"
    page.keyboard.press("Escape")
    note.wait_for(state="hidden")
    assert page.evaluate("document.activeElement.textContent") == "Hiding everything alike"
    page.fill("#target", "0.0001")
    page.wait_for_selector("#level-goal:has-text('no level up to 6')")
    page.fill("#target", "10")
    page.wait_for_selector("#level-goal:has-text('gives ± 10.0% or less')")
    plan = sf.plan(policy_at(1), 5000)
    page.click("text=Compare all randomizers")
    assert page.locator("#plan-table tbody th").count() == len(plan.rows)
    halves = [f"{100 * min(1, 1.96 * plan.standard_error(row)):.1f}%" for row in plan.rows]
    assert page.locator("#plan-table td:nth-child(2)").all_inner_texts() == halves
    participants = page.inner_text("#participants")
    assert "Which of these?" in participants
    assert "from 10% to at most 23.2%" in participants
    assert page.locator("#participants input, #participants button").count() == 0


def test_studio_compares_no_rule_with_itself(people: People, collector: Served) -> None:
    """If every value is hidden alike, no randomizer hides more, so there is nothing to compare with."""
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Which of these?")
    page.click("text=Any of a list")
    page.fill("#values", "flu\nhiv\nlong covid")
    page.wait_for_selector("#predicted:has-text('the share of each option')")
    page.wait_for_selector("#level-curve svg")
    page.click("text=Compare all randomizers")
    rows = page.locator("#plan-table tbody tr")
    assert rows.count() == page.locator("#plan-table tbody tr:has-text('hides every value alike')").count() > 5
    assert page.locator("#curve path.other, #level-curve path.other").count() == 0
    assert page.inner_text("#alike") == ""
    page.click("text=A number")
    page.check("input[name=one-of-learn][value=mean]")
    page.wait_for_selector("#predicted:has-text('the mean will be known to about')")
    assert page.locator("#curve path.other, #level-curve path.other").count() == 0
    assert page.inner_text("#alike") == ""


def test_studio_states_what_can_be_seen_of_many_values(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Which of these?")
    page.fill("#values", "\n".join(f"value {number}" for number in range(60)))
    planned(page, 1000)
    plan = sf.plan(sf.Uniform(sf.Domain.range(60), 1), 1000)
    half = 1.96 * math.sqrt(plan.best.risk / 60)
    expected = 1 / np.arange(1, 61)
    expected /= expected.sum()
    errors = 1.96 * np.sqrt(plan.best.mechanism.estimator.variances(expected) / 1000)
    assert plan.best.half_l1 > 1
    page.wait_for_selector(
        f"#predicted:has-text('only shares above about {100 * half:.1f}% can be distinguished from 0. "
        f"Of the shares that you expect, these are {(expected > errors).sum()} of 60. "
        f"For 1% you need about {float(f'{1000 * (half / 0.01) ** 2:.2g}'):,.0f} people.')"
    )
    assert f"Each single share: about ± {100 * half:.1f}%" in page.inner_text("#each-share")
    planned(page, 10)
    page.wait_for_selector("#predicted:has-text('nothing can be estimated: the expected ± is 100% or more')")
    assert page.inner_text("#each-share") == ""
    above = 1.96 * math.sqrt(sf.plan(sf.Uniform(sf.Domain.range(60), 1), 10).best.risk / 60)
    assert above > 1
    for curve in ("#curve", "#level-curve"):  # predictions above 100% are stated, not clipped
        page.wait_for_selector(f"{curve} svg :text-is('{100 * above:.1f}%')")


def test_the_target_of_studio_fits_the_people_until_the_author_states_one(people: People, collector: Served) -> None:
    """A share of one half has ± 3.1% from 1,000 people who hide nothing, so ± 2% is out of reach."""
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Do you vote?")
    page.fill("#values", "yes\nno")
    for number, target in ((100, "20"), (1000, "10"), (20_000, "2"), (10**6, "0.2"), (10**12, "0.1"), (3, "50")):
        planned(page, number)
        assert page.input_value("#target") == target
        if number < 10**12:
            assert 2 * 98 / math.sqrt(number) <= float(target) or target == "50"
    planned(page, 1000)
    page.wait_for_selector("#goal:has-text('For ± 10% you need about')")
    page.wait_for_selector("#level-goal:has-text('gives ± 10.0% or less')")
    page.fill("#target", "3")
    page.wait_for_selector("#level-goal:has-text('no level up to 6 gives ± 3.0%')")
    planned(page, 20_000)
    page.reload()
    page.wait_for_selector("#goal:has-text('For ± 3% you need about')")
    assert page.input_value("#target") == "3"


def test_hard_labels_and_large_domains_fit_a_phone_in_studio(people: People, collector: Served) -> None:
    page = people(PHONE)
    enter_studio(page, collector)
    page.fill("#title", "<i>" + "Question" * 20)
    page.fill("#values", "\n".join(HARD))
    page.wait_for_selector("#participants:has-text('<b>bold</b>')")
    page.wait_for_selector("#simulated svg")
    assert page.locator("#participants b, #participants i, #shares b").count() == 0
    assert overflow(page) <= 0
    # Chromium needs long to type 2,000 lines, so they are set at once.
    page.evaluate(
        """lines => {
            const field = document.querySelector("#values")
            field.value = lines.join("\\n")
            field.dispatchEvent(new Event("input", { bubbles: true }))
        }""",
        [f"value {i}" for i in range(2000)],
    )
    page.wait_for_selector("#shares:has-text('and 1,988 more values')")
    assert overflow(page) <= 0
    page.check("input[name=one-of-kind][value=grid]")
    page.fill("#rows", "40")
    page.fill("#columns", "40")
    page.wait_for_selector("#simulated .patch >> nth=1599", state="attached")
    assert overflow(page) <= 0
    page.check("input[name=one-of-kind][value=marks]")
    page.fill("#values", "flu\nmeasles\ncold")
    page.wait_for_selector("#shares li:has-text('measles: 50.0%')")
    assert overflow(page) <= 0


def test_the_guide_defines_the_terms_of_studio_as_the_glossary(people: People, collector: Served) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    page = people(PHONE)
    page.goto(f"{collector.url}/guide")
    sections = page.locator("main section")
    linked = set(
        re.findall(r"^\t(\w+): t\(\"Technical term", (PAGES / "terms.js").read_text(encoding="utf-8"), flags=re.M)
    )
    assert linked == set(sections.evaluate_all("all => all.map((one) => one.id)"))
    for section in sections.all():
        entry = glossary.partition(f"## {section.locator('strong').first.inner_text()}\n\n")[2].partition("\n\n")[0]
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(entry.split())).replace("`", "")
        definition, _, source = plain.partition(" See ")
        assert section.locator(".definition").inner_text() == definition
        file = section.locator("code").last.inner_text()
        assert (ROOT / "docs" / file).is_file()
        assert f"({file})" in entry
        assert source.rstrip(".") in section.inner_text()
    assert overflow(page) <= 0
