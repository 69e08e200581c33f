"""Every kind of question and the words around it, from Studio to the answers of people and to the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import sfumato as sf
from support.browsing import DESKTOP, PHONE, People, choose, enter_studio, opened, read, send
from support.collectors import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.component

#: Words that would run or show as markup if a page inserted them as HTML.
MARKUP = "<img src=x onerror=alert(1)>"
WIDE = "document.documentElement.scrollWidth - innerWidth"
STORED = "import('/static/sfumato.js').then(module => module.answers())"


def test_consent_sections_required_questions_and_the_end_reach_participants(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    for number, title in enumerate(("Do you smoke?", "Do you drink?")):
        if number:
            page.click("text=Add a question")
        page.fill("#title", title)
        page.fill("#values", "yes\nno")
    # Moving a question keeps the focus on the button, or on its neighbour if the button is gone.
    for button in ("Move earlier", "Move later"):
        page.focus(f"button:text-is('{button}')")
        page.keyboard.press("Enter")
        page.wait_for_function("document.querySelector('[aria-label=Questions]').contains(document.activeElement)")
    assert page.input_value("#title") == "Do you drink?"
    page.click("summary:text-is('Section, required')")
    page.fill("#heading", f"Habits {MARKUP}")
    page.fill("#section", "Two short questions.")
    page.check("#required")
    page.fill("#consent", f"We study habits.\nYou may stop at any time. {MARKUP}")
    page.fill("#ending", f"Thank you! {MARKUP}")
    draft = page.context.new_page()  # a draft survives the tab
    draft.goto(f"{collector.url}/studio")
    assert draft.input_value("#consent").startswith("We study habits.")
    draft.click("button:text-is('Question 2')")
    assert draft.is_checked("#required")
    draft.close()
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    link = page.input_value("[aria-label='Link to the survey']")

    person = people(PHONE)
    person.goto(link)
    person.wait_for_selector("#consent")
    assert person.inner_text("h1") == "Before you start"
    assert MARKUP in person.inner_text("#consent")
    assert person.locator("img").count() == 0
    assert person.evaluate(WIDE) <= 0
    person.select_option(".language select", "de")
    person.wait_for_selector("h1:text-is('Bevor Sie beginnen')")
    person.select_option(".language select", "en")
    person.wait_for_selector("h1:text-is('Before you start')")
    # A choice made while the page is on its way into another language stays.
    held: list[Route] = []
    person.route("**/v1/collections/*", lambda route: held.append(route))
    with person.expect_request("**/v1/collections/*"):
        person.select_option(".language select", "de")
    person.click("#disagree")
    person.wait_for_selector("h1:text-is('Sie haben nicht zugestimmt')")
    with person.expect_response("**/v1/collections/*"):
        held[0].continue_()
    person.unroute("**/v1/collections/*")
    person.wait_for_timeout(200)
    assert person.inner_text("h1") == "Sie haben nicht zugestimmt"
    person.select_option(".language select", "en")
    person.wait_for_selector("h1:text-is('Before you start')")
    person.click("#disagree")
    person.wait_for_selector("text=You did not agree")
    assert person.locator("form").count() == 0
    assert person.evaluate(STORED) == []
    person.click("text=Read it again")
    person.focus("#agree")
    person.keyboard.press("Enter")
    person.wait_for_selector("h1:text-is('Do you smoke?')")
    assert person.evaluate("document.activeElement.tagName") == "H1"
    assert person.locator("#section").count() == 0
    person.click("text=I would rather not answer")
    person.click("text=Next question")
    # The agreement covers all questions with the same words; the second one is required.
    person.wait_for_selector("#section")
    assert person.inner_text("#section .name") == f"Habits {MARKUP}"
    assert person.locator("button:text-is('I would rather not answer')").count() == 0
    person.click("form button.main")
    assert "close the page" in person.inner_text("form .alarm")
    choose(person, "no")
    send(person)
    person.wait_for_selector("[data-state=sent]")
    person.click("text=Finish")
    person.wait_for_selector("#ending")
    assert person.inner_text("#ending") == f"Thank you! {MARKUP}"
    assert person.evaluate(WIDE) <= 0

    # A question that is opened by itself asks for the same consent, and a copy of it, too.
    second = link.split("then=")[1].split("#")[0]
    stored = read(collector, second)
    assert stored["presentation"]["required"]
    copy = collector.as_admin("POST", f"/v1/collections/{second}/copies", {}).json["collection"]
    assert copy["presentation"] == stored["presentation"]
    change = collector.as_admin("PATCH", f"/v1/collections/{second}", {"presentation": {"ending": "Changed."}})
    assert change.reason == "invalid"
    plain = opened(collector, stored["title"], stored["policy"]["domain"], stored["policy"]["policy"])
    assert read(collector, plain)["presentation"] is None
    assert read(collector, plain)["wording_hash"] != stored["wording_hash"]
    alone = people(PHONE)
    alone.goto(f"{collector.url}/c/{second}")
    alone.wait_for_selector("#consent")
    alone.goto(f"{collector.url}/c/{plain}")
    alone.wait_for_selector("text=Do you drink?")
    assert alone.locator("#consent").count() == 0


def studio_link(page: Page) -> str:
    """Open the survey of Studio, and return its link."""
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    return page.input_value("[aria-label='Link to the survey']")


def test_a_scale_goes_from_studio_to_results(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "How content are you?")
    page.click("text=A scale")
    page.fill("#high", "1")
    page.wait_for_selector("#promise:has-text('the smaller one first')")
    page.fill("#high", "7")
    page.fill("#lowLabel", f"not at all {MARKUP}")
    page.fill("#highLabel", "very")
    page.check("input[name=one-of-learn][value=mean]")
    page.wait_for_selector("#predicted:has-text('the mean will be known to about ±')")
    page.wait_for_selector("label:has-text('I need the mean to within')")
    page.wait_for_selector("#shares li:has-text('mean:')")
    page.wait_for_selector("#level-curve svg")
    # The ± of the page is that of the plan, in units of the scale.
    plan = sf.plan(sf.Uniform(sf.Domain.range(1, 8), 1), 1000, question="mean")
    half = 1.96 * plan.standard_error(plan.best)
    assert f"± {float(f'{half:.2g}'):g}" in page.inner_text("#predicted")
    link = studio_link(page)
    name = link.partition("#")[0].rpartition("/")[2]
    stored = read(collector, name)
    assert stored["policy"]["domain"] == {"low": 1, "high": 8}
    assert stored["question"] == {"question": "mean"}
    assert stored["presentation"] == {"low_label": f"not at all {MARKUP}", "high_label": "very"}

    person = people(PHONE)
    person.goto(link)
    person.wait_for_selector(".scale")
    assert person.locator(".scale .choice").all_inner_texts() == [str(n) for n in range(1, 8)]
    assert person.inner_text(".ends .low") == f"not at all {MARKUP}"
    assert person.locator("img").count() == 0
    assert person.evaluate(WIDE) <= 0
    person.get_by_label("7: very", exact=True).check()
    person.wait_for_selector("#often:has-text('“7”')")
    send(person)
    person.wait_for_selector("[data-state=sent]")
    assert "code" not in person.inner_text("#drawn")
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#answer .big")
    assert "Mean" in page.inner_text("#question h2")


def test_a_number_is_put_into_its_bin_on_the_device(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "How old are you?")
    page.click("text=A number")
    page.fill("#from", "0.5")
    page.fill("#to", "100.5")
    page.fill("#bins", "20")
    page.check("input[name=one-of-learn][value=distribution]")
    page.wait_for_selector("#predicted:has-text('the share of people up to each value')")
    page.wait_for_selector("#simulated svg")
    page.click("text=Some values are sensitive")
    page.click(".cell:has-text('0.5 to below 5.5')")
    page.wait_for_selector("#promise:has-text('0.5 to below 5.5')")
    page.check("input[name=one-of-submission][value=open]")
    page.fill("#keep-days", "soon")
    page.click("text=Open the survey")
    page.wait_for_selector(".alarm:has-text('as a whole number')")
    page.fill("#keep-days", "90")
    link = studio_link(page)
    name = link.partition("#")[0].rpartition("/")[2]
    assert read(collector, name)["keep_days"] == 90
    assert read(collector, name)["policy"]["domain"] == {"low": "0.5", "high": "100.5", "bins": 20}

    person = people(PHONE)
    person.goto(link)
    person.wait_for_selector("#often li")
    person.click("text=Check my choice")
    assert "Choose an answer first" in person.inner_text("form .alarm")
    bodies: list[str] = []
    person.on("request", lambda request: bodies.append(request.post_data or ""))
    for number, label in (("35.5", "35.5 to below 40.5"), ("-3", "0.5 to below 5.5"), ("1e9", "95.5 to 100.5")):
        person.fill("#number", number)
        person.wait_for_selector(f"#counted:has-text('{label}')")
    person.fill("#number", "41.25")
    person.click("text=Check my choice")
    person.wait_for_selector("#confirm:has-text('41.25, which counts as 40.5 to below 45.5')")
    person.click("#confirm button.main")
    person.wait_for_selector("[data-state=sent]")
    # The number itself leaves the field neither for the network nor for the storage of the browser.
    assert bodies
    assert not any("41.25" in body for body in bodies)
    assert "41.25" not in str(person.evaluate(STORED))
    assert person.evaluate(WIDE) <= 0
    page.goto(f"{collector.url}/c/{name}/results")
    page.wait_for_selector("#distribution svg")
    assert "40.5 to below 45.5" in (page.text_content("#table") or "")


def test_a_number_outside_is_refused_where_the_domain_says_so(people: People, collector: Served) -> None:
    domain = {"low": 0, "high": 200, "out_of_range": "refuse", "missing": "do not know"}
    name = opened(collector, "How many?", domain, {"kind": "uniform", "epsilon": "1"})
    person = people(PHONE)
    person.goto(f"{collector.url}/c/{name}?lang=de")
    for number in ("200", "-1", "1.5"):
        person.fill("#number", number)
        person.wait_for_selector("#counted:has-text('ganze Zahl von 0 bis 199')")
    person.fill("#number", "199")
    person.wait_for_selector("#counted:has-text('„199“'), #counted:has-text('“199”')")
    person.get_by_label("do not know").check()
    person.wait_for_selector("#counted:has-text('do not know')")
    person.click("form button.main")
    person.wait_for_selector("#confirm:has-text('do not know')")
    person.click("#confirm button.main")
    person.wait_for_selector("[data-state=sent]")


def test_a_number_with_two_meanings_is_not_counted(people: People, collector: Served) -> None:
    """German pages write 4.500 for four thousand five hundred, and English pages for four and a half."""
    domain = {"low": 0, "high": 5000, "bins": 2500}
    name = opened(collector, "How much?", domain, {"kind": "uniform", "epsilon": "1"})
    person = people(PHONE)
    person.goto(f"{collector.url}/c/{name}?lang=de")
    person.wait_for_selector("#often li")
    for typed, first, second in (("4.500", "4,5", "4500"), ("4,125", "4125", "4,1250"), ("-1.000", "-1", "-1000")):
        person.fill("#number", typed)
        person.wait_for_selector(f"#counted:has-text('Das kann {first} oder {second} bedeuten.')")
        person.click("text=Auswahl prüfen")
        assert person.locator("#confirm").is_hidden()
    meant = {
        4500: ("4500", "4 500", "4'500", "4.500,0", "4,500.00", "٤٥٠٠", "٤٬٥٠٠", "4.5e3"),
        4: ("4.5", "4,5", "4,1250", "4.1250", "4.5000", "٤٫٥"),
        0: ("0.125", "0,125", ".5", ",5", "-3", "−3"),
        4998: ("1.234.567", "1 234 567,8", "12345"),
    }
    for low, numbers in meant.items():
        for typed in numbers:
            person.fill("#number", "")
            person.wait_for_selector("#counted:has-text('noch keine Antwort')")
            person.fill("#number", typed)
            person.wait_for_selector(f"#counted:has-text('„{low} bis')")
    for typed in ("5.", "1,2,3", "12.34.567", "four", "1e"):
        person.fill("#number", typed)
        person.wait_for_selector("#counted:has-text('Geben Sie eine Zahl von 0 bis 5000 ein.')")


#: Quoted words, and whether each quotation mark is on its side of the word in a line from right to left.
QUOTES = """() => {
    const place = (node, at) => {
        const range = document.createRange()
        range.setStart(node, at)
        range.setEnd(node, at + 1)
        return range.getBoundingClientRect()
    }
    const nodes = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), all = []
    while (nodes.nextNode()) for (const match of nodes.currentNode.data.matchAll(/[«“](\u2068?)([a-z]+)\u2069?[»”]/g)) {
        const node = nodes.currentNode, at = match.index
        if (!node.parentElement.checkVisibility() || getComputedStyle(node.parentElement).direction !== "rtl") continue
        const word = place(node, at + 1 + match[1].length)
        const before = place(node, at), after = place(node, at + match[0].length - 1)
        all.push([match[2], before.left > word.left && after.left < word.left])
    }
    return all
}"""


def test_quotes_around_latin_words_are_on_their_sides_in_arabic(people: People, collector: Served) -> None:
    """Without isolation, two Latin words in a row form one run, which is read from left to right with their quotes."""
    policy = {"kind": "high-low", "sensitive": ["flu", "hiv", "cancer"], "epsilon": "1"}
    name = opened(collector, "Which?", {"values": ["none", "flu", "hiv", "cancer"]}, policy)
    person = people(DESKTOP)
    person.goto(f"{collector.url}/c/{name}?lang=ar")
    person.wait_for_selector("#often li")
    person.wait_for_selector(".disclosure strong")
    quotes = person.evaluate(QUOTES)
    assert {word for word, _ in quotes} == {"none", "flu", "hiv", "cancer"}
    assert all(is_right for _, is_right in quotes), quotes
    assert "“" not in person.inner_text("main")
