"""People with browsers of their own: helpers of the tests of the pages."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from support.collectors import Served
from support.components import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route

__all__ = [
    "DESKTOP",
    "ILLNESSES",
    "PHONE",
    "Held",
    "People",
    "answer",
    "choose",
    "enter_studio",
    "high_low",
    "opened",
    "planned",
    "read",
    "send",
]

PHONE, DESKTOP = (390, 844), (1180, 860)
ILLNESSES = ["none", "flu", "hiv", "cancer"]


def opened(collector: Served, title: str, domain: dict[str, Any], policy: dict[str, Any], **about: Any) -> str:
    """The id of a new collection, which is public and listed unless stated otherwise."""
    access = {"submission": "open", "results": "public", "listed": True}
    body = {"title": title, "policy": {"domain": domain, "policy": policy}, "n": 1000, **access, **about}
    created = collector.as_admin("POST", "/v1/collections", body)
    assert created.status == 201, created.body
    return str(created.json["collection"]["id"])


def high_low(collector: Served, title: str = "Which of these?", **about: Any) -> str:
    policy = {"kind": "high-low", "sensitive": ["hiv", "cancer"], "epsilon": "1"}
    return opened(collector, title, {"values": ILLNESSES}, policy, **about)


def read(collector: Served, name: str) -> Any:
    return collector.ask("GET", f"/v1/collections/{name}").json


@dataclass
class People:
    """Fresh browsers, one a person; whatever goes wrong in their pages is noted."""

    browser: Browser
    collector: Served
    faults: list[str] = field(default_factory=list)
    #: Pattern of the faults that a test causes. They may be noted after its last step.
    expected: str | None = None
    contexts: list[BrowserContext] = field(default_factory=list)

    def __call__(self, size: tuple[int, int] = PHONE, scheme: Any = "light", *, workers: Any = "block") -> Page:
        # Requests of a service worker cannot be intercepted, so most tests have none.
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, service_workers=workers
        )
        context.set_default_timeout(PATIENCE)
        self.contexts.append(context)
        context.on("console", self._said)
        context.on("weberror", lambda error: self._note(str(error.error)))
        context.on("request", lambda request: self._away(request.url))
        return context.new_page()

    def close(self) -> list[str]:
        """Close all browsers, and return the faults that were not expected."""
        for context in self.contexts:
            context.close()
        return [fault for fault in self.faults if self.expected is None or not re.search(self.expected, fault)]

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._note(message.text)

    def _note(self, fault: str) -> None:
        # What a page cannot reach while it is cut off is no fault of its own.
        if "ERR_INTERNET_DISCONNECTED" not in fault:
            self.faults.append(fault)

    def _away(self, url: str) -> None:
        if not url.startswith((self.collector.url, "blob:")):
            self._note(f"a request to {url}")


def enter_studio(page: Page, collector: Served, *, public: bool = True) -> None:
    """Opens Studio with the admin token; with ``public``, anybody may answer and read."""
    page.goto(f"{collector.url}/studio")
    page.fill("#admin-token", collector.admin)
    page.click("text=Use it")
    page.wait_for_selector("text=Forget it")
    if public:
        page.check("input[name=one-of-submission][value=open]")
        page.check("input[name=one-of-results][value=public]")


def planned(page: Page, people: int) -> None:
    """Says how many people will answer, and waits until the planner has, which so has heard of all that was said.

    Its words move what is below them, and a button that moves while the mouse is down is not clicked.
    """
    page.fill("#people", str(people))
    page.wait_for_selector(f"#predicted:has-text('With {people:,} people')")


def choose(page: Page, *values: str) -> None:
    """Chooses an answer, in each part of the question, and waits for what comes last and moves the buttons below."""
    for value in values:
        page.get_by_label(value, exact=True).check()
    page.wait_for_selector(".disclosure strong")


def answer(page: Page, link: str, value: str) -> str:
    """Answers a question about a list, and waits until that has arrived; what was drawn."""
    page.goto(link)
    choose(page, value)
    send(page)
    page.wait_for_selector("[data-state=sent]")
    return page.inner_text("#drawn")


def send(page: Page) -> None:
    """Sends what was chosen; a choice from a long list or a map is confirmed first."""
    if page.locator("text=Check my choice").count():
        page.click("text=Check my choice")
        page.wait_for_selector("#confirm:visible")
        page.click("#confirm button.main")
    else:
        page.click("form button.main")


@dataclass
class Held:
    """The requests of a page to some addresses, held back until they are released."""

    page: Page
    pattern: str
    routes: list[Route] = field(default_factory=list)
    ended: bool = False

    def __post_init__(self) -> None:
        self.page.route(self.pattern, lambda route: route.continue_() if self.ended else self.routes.append(route))

    def wait(self, count: int = 1) -> None:
        """Wait until this number of requests is held."""
        for _ in range(PATIENCE // 10):
            if len(self.routes) >= count:
                return
            self.page.wait_for_timeout(10)
        pytest.fail(f"{len(self.routes)} of {count} requests came to {self.pattern}")

    def release(self, number: int) -> None:
        """Let one request through, and give the page time to use the response."""
        route = self.routes[number]
        with self.page.expect_event("requestfinished", lambda request: request == route.request):
            route.continue_()
        self.page.wait_for_timeout(100)

    def end(self) -> None:
        """Let all later requests through; ending the route itself would release those that are held."""
        self.ended = True
