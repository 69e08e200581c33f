"""How a survey reaches people: QR codes, texts to send, paper."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sfumato as sf
import sfumato.server.pages
from sfumato.device import privatize_indices
from support.browsing import DESKTOP, PHONE, People, enter_studio, opened, read
from support.collectors import Served
from support.components import absent

if TYPE_CHECKING:
    from playwright.sync_api import Page

FOLDER = Path(sfumato.server.pages.__file__).parent
CODES = Path(__file__).parents[1] / "references" / "qr-codes.json"


def run_script(script: str) -> Any:
    """Run a module with node; the value of its ``result``."""
    node = shutil.which("node")
    if node is None:
        absent("node, which runs the scripts of the pages, is not on this machine")
    script = f"{script}\nconsole.log(JSON.stringify(result))"
    run = subprocess.run([node, "--input-type=module", "-"], input=script, capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_qr_codes_are_those_of_other_software() -> None:
    reference = json.loads(CODES.read_text(encoding="utf-8"))
    lengths = [(one["length"], one["mask"]) for one in reference["versions"]]
    contents = [(one["content"], one["mask"]) for one in reference["codes"]]
    contents += [("x" * (length - 1) + "y", mask) for length, mask in lengths]
    result = run_script(f"""
        const {{ qrCode, versionFor }} = await import({json.dumps((FOLDER / "qr.js").as_uri())})
        const rows = (code) => code.map((row) => row.map(Number).join(""))
        const given = {json.dumps(contents)}
        const result = {{
            codes: given.map(([content, mask]) => rows(qrCode(content, mask))),
            chosen: given.map(([content]) => {{
                const best = String(rows(qrCode(content)))
                return [0, 1, 2, 3, 4, 5, 6, 7].some((mask) => best === String(rows(qrCode(content, mask))))
            }}),
            versions: {json.dumps([length for length, _ in lengths])}.map(versionFor),
            long: [versionFor(997), versionFor(998), qrCode("x".repeat(998))],
        }}""")
    count = len(reference["codes"])
    for one, rows in zip(reference["codes"], result["codes"][:count], strict=True):
        assert [f"{int(row, 2):x}" for row in rows] == one["rows"]
    for one, rows in zip(reference["versions"], result["codes"][count:], strict=True):
        assert hashlib.sha256("\n".join(rows).encode()).hexdigest() == one["sha256"], one["version"]
    assert result["versions"] == [one["version"] for one in reference["versions"]] == list(range(1, 26))
    assert all(result["chosen"])
    assert result["long"] == [25, 0, None]


def modules(path: str) -> set[tuple[int, int]]:
    """The dark modules of a drawn code, as columns and rows."""
    return {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", path)}


@pytest.mark.component
def test_a_survey_is_shared_by_link_text_and_code(people: People, collector: Served) -> None:
    page = people(PHONE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    enter_studio(page, collector)
    page.fill("#title", "Tea & <b>coffee</b>?")
    page.fill("#values", "tea\ncoffee")
    page.click("text=Open the survey")
    link = page.input_value("input[aria-label='Link to the survey']")
    message = page.input_value("textarea[aria-label='Text to send']")
    assert link in message
    assert "“Tea & <b>coffee</b>?”" in message
    page.click(".copy:has(textarea) button")
    page.wait_for_selector(".copy:has(textarea) button:text-is('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == message
    page.click("summary:text-is('QR code')")
    picture = page.get_by_role("img", name="QR code of the link to the survey “Tea & <b>coffee</b>?”")
    drawn = modules(picture.locator("path").get_attribute("d") or "")
    code = page.evaluate("(link) => import('/static/qr.js').then(({ qrCode }) => qrCode(link))", link)
    assert drawn == {(x + 4, y + 4) for y, row in enumerate(code) for x, dark in enumerate(row) if dark}
    assert page.evaluate(WIDER) == []
    with page.expect_download() as download:
        page.click("text=Download as SVG")
    assert download.value.suggested_filename == "tea-b-coffee-b-qr.svg"
    saved = ET.parse(download.value.path()).getroot()
    assert modules(saved[1].attrib["d"]) == drawn
    assert saved.attrib["viewBox"] == f"0 0 {len(code) + 8} {len(code) + 8}"
    with page.expect_download() as download:
        page.click("text=Download as PNG")
    assert download.value.path().read_bytes().startswith(b"\x89PNG")

    # On paper there is only the poster.
    page.evaluate("window.print = () => { window.printed = true }")
    page.click("text=Print a poster")
    assert page.evaluate("window.printed")
    page.emulate_media(media="print")
    assert picture.is_visible()
    assert page.locator(".poster .address").inner_text() == link
    for hidden in ("h1", "h2", ".top", "textarea", "text=live results", "text=Download as SVG"):
        assert page.locator(hidden).first.is_hidden(), hidden
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("h2:text-is('The survey is open')").is_visible()


@pytest.mark.component
def test_one_time_links_are_printed_as_a_sheet_of_codes(people: People, collector: Served) -> None:
    page = people(DESKTOP)
    enter_studio(page, collector)
    page.fill("#title", "Once?")
    page.fill("#values", "yes\nno")
    page.click("text=One answer for each one-time link")
    page.fill("#links", "5")
    page.click("text=Open the survey")
    page.wait_for_selector("text=Download the links (CSV)")
    with page.expect_download() as download:
        page.click("text=Download the links (CSV)")
    links = [line.partition(",")[2] for line in download.value.path().read_text(encoding="utf-8").splitlines()[1:]]
    page.evaluate("window.print = () => { window.printed = true }")
    page.click("text=Print as QR codes")
    assert page.evaluate("window.printed")
    page.emulate_media(media="print")
    assert page.locator(".sheet .address").all_inner_texts() == links
    for i in range(5):
        assert page.get_by_role("img", name=f"QR code of one-time link {i + 1}", exact=True).is_visible()
    assert page.locator("main").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".sheet").count() == 0
    assert page.locator("#links-csv").count() == 1


# -- languages -----------------------------------------------------------------------------------------------

#: Modules of the pages for owners and readers whose messages are translated.
TRANSLATED = (
    "answers.js",
    "api.js",
    "charts.js",
    "days.js",
    "differences.js",
    "district-totals.js",
    "dom.js",
    "embed-code.js",
    "embed.js",
    "geojson.js",
    "owners.js",
    "painter.js",
    "result-options.js",
    "result-table.js",
    "results.js",
    "share.js",
    "studio-map.js",
    "studio-numbers.js",
    "studio-structure.js",
    "studio.js",
    "surveys.js",
    "terms.js",
    "tradeoff.js",
    "trend.js",
)
#: Words of English that are in no German or Arabic message.
ENGLISH = re.compile(
    r"\b(the|and|of|is|are|this|that|your|you|with|for|not|only|they|survey|surveys|question|questions|answer|answers"
    r"|share|values?|people|show|close|closed|open|save|delete|remove|create|download|copy|choose|enter|each)\b",
    re.IGNORECASE,
)


#: Elements that make a page wider than the screen.
WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([one, { left, right }]) => !one.closest('.wide') && (left < 0 || right > innerWidth))
    .map(([one]) => one.outerHTML.slice(0, 200))"""


def catalogues() -> dict[str, dict[str, str]]:
    """The messages for owners and readers, by language."""
    files = {language: (FOLDER / f"owners-{language}.js").as_uri() for language in ("en", "de", "ar")}
    imports = ", ".join(f'{language}: (await import("{file}")).default' for language, file in files.items())
    participants = f'participants: (await import("{(FOLDER / "messages.js").as_uri()}")).ENGLISH'
    result: dict[str, dict[str, str]] = run_script(f"const result = {{ {imports}, {participants} }}")
    return result


def test_every_message_for_owners_is_in_every_catalogue() -> None:
    used = set()
    for name in TRANSLATED:
        source = (FOLDER / name).read_text(encoding="utf-8")
        assert not re.search(r'[^\w.]t\((?!\s*(?:"|\(?document|\(element))', source), (
            f"{name}: a message without a literal key"
        )
        used |= {json.loads(one) for one in re.findall(r'\bt\(\s*("(?:[^"\\]|\\.)*")', source)}
    for page in ("surveys.html", "results.html", "embed.html", "studio.html"):
        source = (FOLDER / page).read_text(encoding="utf-8")
        used |= {one.strip() for one in re.findall(r"<[^>]* data-t>([^<]*)<", source)}
        used |= set(re.findall(r"<title>([^<]*)</title>", source))
    every = catalogues()
    # A wording that is a key of another message would be replaced by that message.
    assert (used & set(every.pop("participants"))) <= set(every["en"])
    for language, catalogue in every.items():
        places = {key: sorted(set(re.findall(r"\{\w+\}", message))) for key, message in catalogue.items()}
        for key in places:
            base = re.sub(r"\.(zero|one|two|few|many|other)$", "", key)
            assert base in used, f"{language}: “{key}” is not used"
            wanted = set(re.findall(r"\{\w+\}", base))
            assert set(places[key]) == wanted or (key != base and wanted - set(places[key]) == {"{count}"}), (
                language,
                key,
            )
        if language != "en":
            missing = used - set(catalogue) - {key.removesuffix(".other") for key in catalogue}
            assert not missing, (language, sorted(missing))


def english(page: Page, *own: str) -> list[str]:
    """The English words that a page shows, without the words of its author and without codes."""
    shown = page.evaluate("""() => {
        const skipped = 'script, style, noscript, code, pre, .language, .address, [lang=en]', found = []
        const walk = (node) => {
            if (node.nodeType === 3) found.push(node.data)
            else if (!node.matches || !node.matches(skipped)) {
                for (const name of ['aria-label', 'placeholder', 'title']) found.push(node.getAttribute?.(name) ?? '')
                node.childNodes.forEach(walk)
            }
        }
        walk(document.body)
        return [document.title, ...found].map((one) => one.trim()).filter(Boolean)
    }""")
    return [one for one in shown if ENGLISH.search(one) and not any(word in one for word in own)]


@pytest.mark.component
@pytest.mark.parametrize(
    ("language", "direction", "name"), [("de", "ltr", "Meine Umfragen"), ("ar", "rtl", "استطلاعاتي")]
)
def test_my_surveys_speak_the_language_of_the_owner(
    people: People, collector: Served, language: str, direction: str, name: str
) -> None:
    policy = {"kind": "uniform", "epsilon": "1"}
    mine = [
        opened(collector, f"Tee {i}", {"values": ["Tee", "Saft"]}, policy, submission=way)
        for i, way in enumerate(("open", "token"))
    ]
    page = people(PHONE)
    page.goto(f"{collector.url}/surveys")
    page.select_option(".language select", language)
    page.wait_for_selector(f"h1:text-is('{name}')")
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [language, direction]
    # The choice is kept by this browser.
    page.goto(f"{collector.url}/surveys")
    page.wait_for_selector(f"h1:text-is('{name}')")
    page.fill("#admin-token", collector.admin)
    page.keyboard.press("Enter")
    for one in mine:
        card = page.locator(f"[data-survey='{one}']")
        card.locator("summary").first.click()
        card.locator("form >> nth=0").wait_for()
        for part in card.locator("details details > summary").all():
            part.click()
    page.locator(f"#count-{mine[1]}").fill("2")
    page.locator(f"form:has(#count-{mine[1]}) button").click()
    page.wait_for_selector("[data-once]")
    page.wait_for_function("!document.querySelector('.records') || document.querySelectorAll('.records').length > 1")
    assert english(page, "Tee", "create", "open") == []
    assert page.evaluate(WIDER) == []


@pytest.mark.component
@pytest.mark.parametrize(("language", "direction", "word"), [("de", "ltr", "Ergebnisse"), ("ar", "rtl", "النتائج")])
def test_results_speak_the_language_of_the_reader(
    people: People, collector: Served, language: str, direction: str, word: str
) -> None:
    """Every part of the page: single values, maps, groups, waves, a question, and public results in a frame."""
    policy = {"kind": "uniform", "epsilon": "1"}
    grid = {"grid": {"latitude": [0, 1], "longitude": [0, 1], "rows": 2, "columns": 2}}
    square = {"rings": [[[0, 0], [10000, 0], [10000, 10000], [0, 10000]]], "name": "Tee"}
    shown = {"background": {"shapes": [square], "districts": [0, 0, 0, -1]}}
    names = [opened(collector, f"Tee {language} {i}", {"values": ["Tee", "Saft"]}, policy) for i in range(3)]
    names.append(opened(collector, "Tee, wo", grid, policy, presentation=shown))
    names.append(opened(collector, "Tee, Mittel", {"low": 1, "high": 6}, policy, question="mean"))
    for name in names:
        mechanism = sf.mechanism_from_spec(read(collector, name)["mechanism"])
        values = np.arange(600) % len(mechanism.domain)
        reports = privatize_indices(mechanism, values, sf.InsecureSeeded(1))
        assert collector.send(name, mechanism, reports, "all-its-reports").status == 200
    page = people(PHONE)
    page.goto(f"{collector.url}/c/{names[0]}/results")
    page.select_option(".language select", language)
    page.wait_for_selector(f".step:text-is('{word}')")
    page.evaluate("token => sessionStorage.setItem('sfumato-admin-token', token)", collector.admin)
    others = f"{names[1]},{names[2]}"
    for path, selector in (
        (f"{names[0]}/results", "#table tbody"),
        (f"{names[0]}/results?with={others}", "#differences tbody"),
        (f"{names[0]}/results?then={others}", "#table-3 tbody"),
        (f"{names[3]}/results", "#districts tbody"),
        (f"{names[4]}/results", "#answer .big"),
        (f"{names[0]}/embed", "#about"),
    ):
        page.goto(f"{collector.url}/c/{path}")
        page.wait_for_selector(selector)
        page.wait_for_selector("#permalink, #about")
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [language, direction]
        assert english(page, "Tee", "<iframe") == [], path
        assert page.evaluate(WIDER) == [], path


@pytest.mark.component
@pytest.mark.parametrize(
    ("language", "direction", "heading"), [("de", "ltr", "Was fragen Sie?"), ("ar", "rtl", "ماذا تسأل؟")]
)
def test_studio_speaks_the_language_of_the_author(
    people: People, collector: Served, language: str, direction: str, heading: str
) -> None:
    """Every kind of question and every rule, from the first visit to the open survey."""
    page = people(PHONE)
    page.goto(f"{collector.url}/studio")
    page.select_option(".language select", language)
    page.wait_for_selector(f"h2:text-is('{heading}')")
    assert page.evaluate("[document.documentElement.lang, document.documentElement.dir]") == [language, direction]
    assert english(page, "Sfumato") == []
    page.fill("#admin-token", collector.admin)
    page.keyboard.press("Enter")
    page.locator("#admin-token").wait_for(state="detached")
    page.fill("#title", "Tee")
    shapes = json.dumps({"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 1]]]})
    for kind, keep in (
        ("list", "high-low"),
        ("marks", "uniform"),
        ("scale", "uniform"),
        ("number", "uniform"),
        ("grid", "blocks"),
        ("product", "secret"),
    ):
        page.check(f"input[name=one-of-kind][value={kind}]")
        if kind in ("list", "marks"):
            page.fill("#values", "Tee 1\nTee 2")
        if kind in ("scale", "number"):
            page.check("input[name=one-of-learn][value=mean]")
        if kind == "grid":
            content: Any = {"name": "a.json", "mimeType": "application/json", "buffer": shapes.encode()}
            broken: Any = {**content, "buffer": b"{"}
            page.set_input_files("#geojson", broken)
            page.wait_for_selector("form .alarm:visible")
            page.set_input_files("#geojson", content)
            page.wait_for_selector("#districts")
            page.click("#group-districts")
        if kind == "product":
            for i in range(2):
                page.fill(f"#part-{i}", f"Tee {i}")
                page.fill(f"#part-values-{i}", "Tee 1\nTee 2")
        page.check(f"input[name=one-of-keep][value={keep}]")
        if keep == "high-low":
            page.locator(".cells .cell").first.click()
        if kind == "list":
            page.select_option("#expected", "own")
            page.check("input[name=one-of-again][value=again]")
            page.wait_for_selector("#lifetime strong")
        page.wait_for_selector("#predicted strong")
        page.wait_for_selector("#participants .promise")
        page.wait_for_function("document.querySelector('#level-curve svg')")
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert english(page, "Tee", "a.json") == [], kind
        assert page.evaluate(WIDER) == [], kind
        if kind == "list":
            page.check("input[name=one-of-again][value=once]")
    page.check("input[name=one-of-kind][value=list]")
    page.fill("#values", "Tee 1\nTee 2")
    page.check("input[name=one-of-submission][value=open]")
    page.locator(".tabs button.plain").nth(1).click()
    page.wait_for_selector("#together strong")
    assert english(page, "Tee") == []
    page.click("button[type=submit].main")
    page.wait_for_selector("#done h2")
    assert english(page, "Tee", "http") == []
    assert page.evaluate(WIDER) == []
