"""Maps with a background: districts from a GeoJSON file, from Studio to participants and to the shares of districts."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.device import privatize_indices
from sfumato.server.store import management, open_store
from support import ROOT
from support.browsing import DESKTOP, PHONE, People, enter_studio, opened, read
from support.collectors import Served
from support.components import absent

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAGES = ROOT / "src" / "sfumato" / "server" / "pages"
WIDE = "document.documentElement.scrollWidth - innerWidth"
MARKUP = "<img src=x onerror=alert(1)>"


def polygon(name: str, *points: tuple[float, float]) -> dict[str, Any]:
    """A feature of GeoJSON."""
    return {
        "type": "Feature",
        "properties": {"id": 7, "name": name},
        "geometry": {"type": "Polygon", "coordinates": [[*points, points[0]]]},
    }


#: Two districts in the south, and one in the north that leaves cells without a district.
CITY = {
    "type": "FeatureCollection",
    "features": [
        polygon(f"West {MARKUP}", (13, 52), (13.5, 52), (13.5, 52.5), (13, 52.5)),
        polygon("شرق", (13.5, 52), (14, 52), (14, 52.5), (13.5, 52.5)),
        polygon("North", (13, 52.5), (14, 52.5), (13.7, 53), (13.3, 53)),
    ],
}
#: The district of each of 4 × 4 cells, from the south-west.
DISTRICTS = [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 2, -1, 2, 2, -1]


def upload(page: Page, content: str, name: str = "city.geojson") -> None:
    page.set_input_files("#geojson", {"name": name, "mimeType": "application/geo+json", "buffer": content.encode()})


@pytest.mark.component
def test_districts_go_from_a_file_to_their_shares(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Where do you live?")
    page.click("text=A place on a map")
    page.fill("#rows", "4")
    page.fill("#columns", "4")
    for content, fault in (
        ("{", "not valid JSON"),
        ("[]", "no features"),
        ('{"type": "Point", "coordinates": [1, 2]}', "no polygons or lines"),
        ('{"type": "Polygon", "coordinates": [[[4e6, 5], [5e6, 6], [4e6, 6]]]}', "not degrees"),
        ('{"type": "LineString", "coordinates": [[1, 2], [1, 2]]}', "no area"),
        ('{"type": "Polygon"}', "no coordinates"),
    ):
        upload(page, content)
        page.wait_for_selector(f".alarm:has-text('{fault}')")
    upload(page, json.dumps(CITY), f"{MARKUP}.geojson")
    page.wait_for_selector("#districts:has-text('3 shapes')")
    assert page.locator("img").count() == 0
    page.click("#group-districts")
    page.wait_for_selector(".cells.map .background .outline")
    page.wait_for_selector("#promise strong")
    assert page.locator(".brushes button").count() == 4  # three districts, and the cells outside
    draft = page.context.new_page()  # a draft survives the tab
    draft.goto(f"{collector.url}/studio")
    draft.wait_for_selector("#districts:has-text('3 shapes')")
    draft.close()
    page.click("text=Open the survey")
    page.wait_for_selector("text=The survey is open")
    link = page.input_value("[aria-label='Link to the survey']")
    name = link.partition("#")[0].rpartition("/")[2]
    stored = read(collector, name)
    assert stored["presentation"]["background"]["districts"] == DISTRICTS
    assert stored["policy"]["policy"]["blocks"] == [one % 4 for one in DISTRICTS]
    assert stored["policy"]["domain"]["grid"]["latitude"] == [52, 53]

    person = people(PHONE)
    person.goto(link)
    person.wait_for_selector(".pick .background .outline")
    assert person.locator(".background .outline").count() == 3
    person.get_by_label("row 1, column 3, شرق, group 2").check(force=True)
    person.wait_for_selector("fieldset:has-text('Chosen: row 1, column 3, شرق')")
    before = person.locator(".pick .cell").first.bounding_box()
    for _ in range(3):
        person.click("[aria-label='Enlarge the map']")
    after = person.locator(".pick .cell").first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > 2.5 * before["width"]
    assert person.evaluate(WIDE) <= 0
    person.click("text=Check my choice")
    person.wait_for_selector("#confirm:has-text('شرق')")
    person.click("#confirm button.main")
    person.wait_for_selector("[data-state=sent]")
    assert person.evaluate(WIDE) <= 0

    mechanism = sf.mechanism_from_spec(stored["mechanism"])
    places = np.array([0] * 400 + [3] * 300 + [9] * 200 + [15] * 100)
    reports = privatize_indices(mechanism, places, sf.InsecureSeeded(1))
    assert collector.send(name, mechanism, reports, "all-its-reports").status == 200
    reader = people(PHONE)
    reader.goto(f"{collector.url}/c/{name}/results")
    reader.wait_for_selector("#districts tbody tr")
    assert reader.locator("#chart .outline").count() == 3
    assert reader.locator("#districts tbody th").all_inner_texts() == [f"West {MARKUP}", "شرق", "North"]
    assert reader.locator("img").count() == 0
    assert reader.evaluate(WIDE) <= 0
    # The shares are those of the library, with the covariance of the cells.
    estimate = sf.estimate(mechanism, collector_counts(collector, name, mechanism))
    rows = collector.ask("GET", f"/v1/collections/{name}/estimate?question=districts").json
    assert rows["question"] == {"question": "districts"}
    for district, row in enumerate(rows["answers"]):
        share = estimate.set_fraction([estimate.values[x] for x, one in enumerate(DISTRICTS) if one == district])
        assert row["value"] == pytest.approx(share.value)
        assert row["standard_error"] == pytest.approx(share.standard_error)
        # Groups are revealed, so the shares are those of the sample and one more answer.
        assert abs(row["value"] - (0.4, 0.3, 0.2)[district]) < 0.01
    with reader.expect_download() as saved:
        reader.click("text=Districts as CSV")
    assert saved.value.path().read_text(encoding="utf-8").startswith("district,share,standard_error,low,high")
    width = reader.locator("#chart svg").get_attribute("width")
    reader.click("[aria-label='Enlarge the map']")
    assert float(reader.locator("#chart svg").get_attribute("width") or 0) > float(width or 0)
    assert reader.evaluate(WIDE) <= 0
    reader.click("button:text-is('Bars')")
    assert not reader.is_visible("[aria-label='Enlarge the map']")


def collector_counts(collector: Served, name: str, mechanism: sf.mechanisms.Mechanism) -> Any:
    """The counts of a collection."""
    body = collector.ask("GET", f"/v1/collections/{name}/aggregate").body
    counts = sf.Aggregate.from_json(body.decode())
    assert counts.mechanism_hash == mechanism.hash
    return counts


@pytest.mark.component
def test_a_background_fits_its_collection(collector: Served) -> None:
    grid = {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 2, "columns": 2}}
    rule = {"kind": "uniform", "epsilon": "1"}
    square = {"rings": [[[0, 0], [10000, 0], [10000, 10000]]], "name": "A"}

    def reason(domain: dict[str, Any], background: dict[str, Any]) -> str:
        body = {"title": "?", "policy": {"domain": domain, "policy": rule}, "presentation": {"background": background}}
        response = collector.as_admin("POST", "/v1/collections", body)
        assert response.status == 422
        return str(response.json["error"]["message"])

    assert "a grid" in reason({"values": ["a", "b"]}, {"shapes": [square]})
    assert "each of the 4 cells" in reason(grid, {"shapes": [square], "districts": [0]})
    assert "indices of shapes" in reason(grid, {"shapes": [square], "districts": [0, 0, 1, 0]})
    assert "at most 20,000 points" in reason(grid, {"shapes": [{"rings": [[[0, 0]] * 10_000] * 3}]})
    assert reason(grid, {"shapes": []})
    assert reason(grid, {"shapes": [{"rings": [[[0, 30_000], [0, 0]]]}]})
    assert reason(grid, {"shapes": [{**square, "href": "x"}]})
    plain = opened(collector, "No districts?", grid, rule, presentation={"background": {"shapes": [square]}})
    answer = collector.ask("GET", f"/v1/collections/{plain}/estimate?question=districts")
    assert (answer.status, answer.reason) == (422, "invalid")


@pytest.mark.component
def test_lists_of_collections_read_no_backgrounds(collector: Served) -> None:
    """A background has up to 20,000 points: a list of maps that decoded them would hold up all other requests."""
    grid = {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 2, "columns": 2}}
    rule = {"kind": "uniform", "epsilon": "1"}
    shown = {"background": {"shapes": [{"rings": [[[number, 0] for number in range(10_000)]] * 2}]}}
    name = opened(collector, "Where?", grid, rule, presentation=shown)
    assert read(collector, name)["presentation"] == shown
    store = open_store(collector.store_url)
    metadata = {row[1]: row[2] for row in store.collections(0, 100)}
    owned = {row.id: row.metadata for row in management.owned(store, None, 0, 100, 0)}
    store.close_all()
    assert len(metadata[name]) < 1000
    assert owned[name] == metadata[name]


def test_shapes_are_simplified_and_cells_belong_to_the_shape_around_their_centre() -> None:
    node = shutil.which("node")
    if node is None:
        absent("node, which runs the scripts of the pages, is not on this machine")
    module = (PAGES / "geojson.js").as_uri()
    script = f"""
        globalThis.document = {{ documentElement: {{}} }}
        const {{ readGeoJson, placedShapes, districtsOf }} = await import({json.dumps(module)})
        const {{ shapes, bounds }} = readGeoJson({json.dumps(json.dumps(CITY))})
        const placed = placedShapes(shapes, bounds.latitude, bounds.longitude)
        const ring = Array.from({{ length: 300001 }}, (_, i) => i / 300000 * 2 * Math.PI)
            .map((a, i) => [10 + (1 + (i % 2) / 500) * Math.cos(a), 50 + Math.sin(a)])
        const circle = readGeoJson(JSON.stringify({{ type: "Polygon", coordinates: [ring] }}))
        const few = placedShapes(circle.shapes, circle.bounds.latitude, circle.bounds.longitude)
        const holed = [{{ rings: [[[0, 0], [10000, 0], [10000, 10000], [0, 10000]],
            [[2500, 2500], [7500, 2500], [7500, 7500], [2500, 7500]]] }}]
        const cells = [districtsOf(placed, 4, 4), districtsOf(few, 20, 20), districtsOf(holed, 4, 4)]
        console.log(JSON.stringify([few[0].rings[0].length, ...cells]))
    """
    run = subprocess.run([node, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    points, districts, inside, holed = json.loads(run.stdout)
    assert districts == DISTRICTS
    assert points <= 10_000
    centres = (np.arange(20) + 0.5) / 10 - 1
    # The circle is a little wider than high, so cells near its edge are left out.
    radius = np.hypot(*np.meshgrid(centres, centres)).ravel()
    clear = np.abs(radius - 1) > 0.01
    assert np.array_equal((np.array(inside) == 0)[clear], (radius < 1)[clear])
    assert holed == [0, 0, 0, 0, 0, -1, -1, 0, 0, -1, -1, 0, 0, 0, 0, 0]
