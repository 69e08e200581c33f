"""The glossary defines each term once, in alphabetical order, and links to the page that explains it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
#: Terms that pages use in a technical sense; each must have its definition.
REQUIRED = {
    "Aggregate", "Answer", "Audit", "Certificate", "Collection", "Collector", "Counts", "Coverage", "Domain",
    "Epsilon (ε)", "Estimate", "Law", "Ledger", "Level", "Lower bound", "Mechanism", "Policy", "Question", "Report",
    "Risk", "Sampler", "Value",
}  # fmt: skip


def entries() -> dict[str, str]:
    """Return the definitions of the glossary by term."""
    headings = re.split(r"^## (.+)$", GLOSSARY.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    terms, definitions = headings[::2], headings[1::2]
    assert len(set(map(str.casefold, terms))) == len(terms), "a term is defined twice"
    return dict(zip(terms, definitions, strict=True))


def anchor(heading: str) -> str:
    """Return the anchor that the site gives to a heading."""
    words = re.sub(r"[^\w\s-]", "", heading.encode("ascii", "ignore").decode()).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def anchors(page: Path) -> set[str]:
    """Return the anchors of all headings of a page."""
    return {anchor(title) for title in re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)}


def test_every_term_is_defined_once_in_alphabetical_order() -> None:
    terms = list(entries())
    assert terms == sorted(terms, key=str.casefold)
    assert set(terms) >= REQUIRED


@pytest.mark.parametrize("term", entries())
def test_a_definition_is_short_and_its_links_lead_somewhere(term: str) -> None:
    definition = entries()[term]
    links = re.findall(r"\]\(([^)]+)\)", definition)
    assert any(".md" in link for link in links), "it links to no page that explains the term"
    assert len(definition.split()) <= 60
    for link in links:
        name, _, target = link.partition("#")
        page = GLOSSARY.parent / name if name else GLOSSARY
        assert page.is_file(), link
        assert not target or target in anchors(page), link
