"""Who answers and who reads until the owner decides: one rule for API, Python client and Studio, for every policy."""

from __future__ import annotations

from typing import Any

import pytest

import sfumato as sf
from support.browsing import ILLNESSES, People, enter_studio, planned, read
from support.collectors import Served

#: One report per person, results for owners only, and no title on the first page.
SAFE = {"submission": "token", "results": "admin", "listed": False}
DOMAIN = sf.Domain(ILLNESSES)
POLICIES: dict[str, sf.Policy] = {
    "every value, alike": sf.Uniform(DOMAIN, 1),
    "one value": sf.HighLow(DOMAIN, ["hiv"], 1),
    "groups": sf.Blocks(DOMAIN, "aabb", 1),
}


def access(collector: Served, name: str) -> dict[str, Any]:
    collection = read(collector, name)
    return {field: collection[field] for field in SAFE}


@pytest.mark.component
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_every_policy_has_the_same_safe_defaults(collector: Served, policy: sf.Policy) -> None:
    title = f"Delicate {policy.hash}"
    body = {"title": title, "policy": policy.to_dict()}
    created = collector.as_admin("POST", "/v1/collections", body).json["collection"]["id"]
    assert access(collector, created) == SAFE
    survey = collector.as_admin("POST", "/v1/surveys", {"questions": [body]}).json["questions"][0]["collection"]["id"]
    assert access(collector, survey) == SAFE
    with collector.client(collector.admin) as client:
        by_client, _ = client.create(title, policy)
        telemetry, _ = client.create(title, policy, submission="key")
    assert access(collector, by_client) == SAFE
    assert access(collector, telemetry) == SAFE | {"submission": "key"}
    for path in ("/", "/v1/collections"):
        assert title.encode() not in collector.ask("GET", path).body
    assert collector.ask("GET", f"/v1/collections/{telemetry}/estimate").reason == "unauthorized"
    listed = collector.as_admin("PATCH", f"/v1/collections/{created}", {"listed": True, "results": "public"}).json
    assert (listed["listed"], listed["results"]) == (True, "public")
    assert title.encode() in collector.ask("GET", "/").body


@pytest.mark.component
@pytest.mark.parametrize("rule", ["Every value, alike", "Some values are sensitive"])
def test_studio_opens_what_the_api_opens_by_default(people: People, collector: Served, rule: str) -> None:
    page = people()
    enter_studio(page, collector, public=False)
    page.fill("#title", f"By default: {rule}?")
    page.fill("#values", "\n".join(ILLNESSES))
    page.click(f"text={rule}")
    if rule == "Some values are sensitive":
        page.click(".cell:has-text('hiv')")
    planned(page, 1000)
    with page.expect_response("**/v1/surveys") as opened:
        page.click("text=Open the survey")
    answer = opened.value.json()
    assert access(collector, answer["questions"][0]["collection"]["id"]) == SAFE
    assert len(answer["tokens"][0]) == 100
    page.evaluate("onbeforeunload = null")
