"""Links that are used, unknown, closed or early: the survey page says so before it draws or sends anything."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from support.browsing import People, answer, choose, high_low, opened, read, send
from support.collectors import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.component

STORED = "import('/static/sfumato.js').then(({ answers }) => answers())"


def posted(page: Page) -> list[str]:
    """What a browser sends from now on, other than requests to read."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method != "GET" else None)
    return sent


def with_links(collector: Served, count: int, **about: Any) -> tuple[str, list[str]]:
    """A collection with one-time links."""
    name = high_low(collector, f"Link {time.time_ns()}?", submission="token", **about)
    tokens = collector.as_admin("POST", f"/v1/collections/{name}/tokens", {"count": count}).json["tokens"]
    return name, [f"{collector.url}/c/{name}#{token}" for token in tokens]


def test_a_used_link_is_refused_before_anything_is_drawn_or_sent(people: People, collector: Served) -> None:
    """Two browsers have the same link: the collector must never hold two replies of one person."""
    name, (link,) = with_links(collector, 1)
    early, late = people(), people()
    sent, sent_late = posted(early), posted(late)
    early.goto(link)
    choose(early, "hiv")  # the form is open while another browser uses the link
    answer(people(), link, "flu")
    send(early)
    early.wait_for_selector("#problem:has-text('used before')")
    late.goto(link)
    late.wait_for_selector("#problem:has-text('used before')")
    for page in (early, late):
        assert "No reply was drawn or sent" in page.inner_text("main")
        assert page.locator("form").count() == 0
        assert page.evaluate(STORED) == []
    assert (sent, sent_late) == ([], [])
    assert read(collector, name)["reports"] == 1
    people.expected = "403"


def test_unknown_and_closed_links_are_refused_before_anything_is_drawn_or_sent(
    people: People, collector: Served
) -> None:
    name, (link,) = with_links(collector, 1)
    page = people()
    sent = posted(page)
    page.goto(f"{link}x")
    page.wait_for_selector("#problem:has-text('not valid for this survey')")
    assert page.locator("form").count() == 0
    # It closes while the form is open, of a survey with links and of one without.
    closing = people()
    sent_closing = posted(closing)
    for place in (link, f"{collector.url}/c/{high_low(collector, 'Closing?')}"):
        closing.goto(place)
        choose(closing, "hiv")
        path = f"/v1/collections/{place.split('/')[-1].partition('#')[0]}"
        assert collector.as_admin("PATCH", path, {"state": "closed"}).status == 200
        send(closing)
        closing.wait_for_selector("#problem:has-text('is closed')")
    for one in (page, closing):
        assert one.evaluate(STORED) == []
    assert (sent, sent_closing) == ([], [])
    assert read(collector, name)["reports"] == 0
    people.expected = "401|409"


def test_another_mechanism_is_refused_after_the_terms_were_shown(people: People, collector: Served) -> None:
    """An address that a person typed has no hash, so the page remembers the mechanism whose terms it showed."""
    values: dict[str, Any] = {"values": ["yes", "no"]}
    name, weak = (opened(collector, "Swapped?", values, {"kind": "uniform", "epsilon": level}) for level in ("1", "4"))
    page = people()
    page.goto(f"{collector.url}/c/{name}")
    choose(page, "yes")
    swapped = read(collector, weak) | {"id": name}
    page.route(f"**/v1/collections/{name}", lambda route: route.fulfill(json=swapped))
    page.select_option(".language select", "de")
    page.wait_for_selector("main .alarm:has-text('mechanism_hash')")
    assert page.locator("form").count() == 0
    assert page.evaluate(STORED) == []


def test_declining_sends_only_the_question_whether_the_link_counts(people: People, collector: Served) -> None:
    name, (link,) = with_links(collector, 1)
    page = people()
    sent, asked = posted(page), set[str]()
    page.on("request", lambda request: asked.add(request.url) if "authorization" in request.headers else None)
    page.goto(link)
    page.click("text=I would rather not answer")
    page.wait_for_selector("text=No reply was drawn or sent")
    assert asked == {f"{collector.url}/v1/collections/{name}/admission"}
    assert sent == []
    assert page.evaluate(STORED) == []


def test_a_reply_drawn_offline_is_not_sent_if_the_link_was_used_meanwhile(people: People, collector: Served) -> None:
    name, (link,) = with_links(collector, 1)
    page = people()
    sent = posted(page)
    page.goto(link)
    choose(page, "hiv")
    page.context.set_offline(True)
    send(page)
    page.wait_for_selector("[data-state=waiting]")
    answer(people(), link, "flu")
    page.context.set_offline(False)
    page.wait_for_selector("[data-state=refused]")
    assert "used before" in page.inner_text("#outcome")
    assert sent == []
    assert read(collector, name)["reports"] == 1
    people.expected = "403|ERR_|Failed to fetch"


def test_a_reply_whose_receipt_was_lost_is_acknowledged_with_its_link(people: People, collector: Served) -> None:
    """The link is used then, by this very reply, so it is sent again and gets its receipt."""
    name, (link,) = with_links(collector, 1)
    page = people()

    lost: list[Any] = []

    def lose(route: Any) -> None:
        lost.append(route.fetch().status)
        route.fulfill(status=503, json={"error": {"reason": "overloaded"}})

    page.route("**/reports", lose, times=1)
    page.goto(link)
    choose(page, "hiv")
    send(page)
    page.wait_for_selector("[data-state=sent]")  # by the second attempt
    assert lost == [200]
    assert read(collector, name)["reports"] == 1
    people.expected = "503"


@pytest.mark.parametrize(
    ("language", "words"), [("en", "not open yet"), ("de", "noch nicht offen"), ("ar", "لم يُفتح هذا السؤال بعد")]
)
def test_a_survey_before_its_start_says_when_it_opens(
    people: People, collector: Served, language: str, words: str
) -> None:
    opens = 4_000_000_000
    name = high_low(collector, "Not yet?", opens=opens)
    page = people()
    page.goto(f"{collector.url}/c/{name}?lang={language}")
    page.wait_for_selector(f"#problem:has-text('{words}')")
    date = page.evaluate(
        f"new Date({opens}000).toLocaleString('{language}-u-nu-latn', {{ dateStyle: 'long', timeStyle: 'short' }})"
    )
    assert date in page.inner_text("#problem")
    assert re.search(r"2096", date)
    assert read(collector, name)["state"] == "scheduled"
    # An owner who closes it takes the date back.
    collector.as_admin("PATCH", f"/v1/collections/{name}", {"state": "closed"})
    page.reload()
    page.wait_for_selector("#problem")
    assert date not in page.inner_text("#problem")
    assert read(collector, name)["state"] == "closed"
