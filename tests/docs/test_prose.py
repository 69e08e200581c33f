"""What people read is plain English: no phrase that the style guide bans, and short sentences."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support import ROOT

#: Phrases that CONTRIBUTING.md bans, each with what to write instead.
BANNED = {
    r"\bso (?:many|much)\b(?! (?:\w+ )?(?:that|as)\b)": 'state the quantity: "at most N", "per report"',
    r"\bbesides?\b": '"next to" or "compared with"',
    r"\btold\b": "name the actor and the verb: report, return, warn",
    r"\bin (?:the )?clear\b": '"revealed" or "unprotected"',
    r"\bnone any more\b": '"no longer"',
    r"\b(?<!there )(?:is|are|was|were) no\b(?! (?:longer|more|less|worse|\w+er)\b)": '"is not a", "has no"',
    r"\banew\b": '"again"',
    r"\bmend(?:s|ed|ing)?\b": '"fix" or "repair"',
    r"\btexts\b|\ba text\b(?! (?:file|field|box|editor|block)\b)": '"string"',
    r"\bdear(?:er|est)?\b": '"expensive" or "costly"',
    r"\bof (?:its|their|his|her|your|our) own\b": '"its own", "separate"',
    r"\b(?:nobody|whoever)\b": "name the actor: client, caller, collector, analyst",
    r"\bbits a report\b|\b(?:a|one) parameter a line\b": '"per"',
    r"\btimes the least\b": '"optimal" or "1.08× the lower bound"',
}
#: Participles that are not names of variables.
PARTICIPLES = {"found", "told", "kept", "asked", "own", "given", "made", "said", "held"}
#: Modules whose parameters have the names of keys in published specs, which are frozen: "own" is one.
FROZEN_KEYS = {"unary/mechanism.py"}

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(
    path
    for folder, suffixes in {
        "src": (".py", ".js", ".html", ".css", ".sql", ".toml"),
        "clients": (".js", ".mjs", ".ts", ".html", ".md"),
        "examples": (".py", ".js", ".html", ".toml"),
        "scripts": (".py",),
        "benchmarks": (".py", ".md"),
    }.items()
    for path in (ROOT / folder).rglob("*")
    if path.suffix in suffixes and "node_modules" not in path.parts
)
#: Words quoted from elsewhere, or that must stay: (file, phrase) with the reason.
QUOTATIONS = {
    ("src/sfumato/auditing/audits.py", "of its own"): "a fault in stored certificates, which are compared with it",
}
#: Longest sentence that counts as short, in words, and the share of sentences that must be short.
WORDS, SHARE = 30, 0.95


def banned_phrases(text: str) -> list[tuple[int, str, str]]:
    """Return the line, the phrase and what to write instead, for every banned phrase outside quotations."""
    return sorted(
        (text.count("\n", 0, match.start()) + 1, match[0], instead)
        for pattern, instead in BANNED.items()
        for match in re.finditer(pattern, _without_quotations(text), flags=re.IGNORECASE)
    )


def _without_quotations(text: str) -> str:
    """Blank Markdown's quotations, which repeat what others wrote."""
    return re.sub(r"^> .*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_banned_phrase(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    problems = [
        f"{name}:{line}: {phrase!r}; write {instead}"
        for line, phrase, instead in banned_phrases(path.read_text(encoding="utf-8"))
        if (name, phrase) not in QUOTATIONS
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.suffix == ".py" and f"{path.parent.name}/{path.name}" not in FROZEN_KEYS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_no_variable_is_named_by_a_participle(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [(node.lineno, node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)]
    names += [(node.lineno, node.arg) for node in ast.walk(tree) if isinstance(node, ast.arg)]
    assert not [f"{path.name}:{line}: {name}" for line, name in names if name in PARTICIPLES]


def sentences(page: str) -> list[str]:
    """Return the sentences of a page: its prose without code, tables, headings, formulas and addresses of links."""
    text = re.sub(r"^(```|~~~).*?^\1", "\n\n", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?: {4}\S|#|\||:::).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`\n]*(?:\n[^`\n]*)?`", "Code", text)
    text = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", text, flags=re.MULTILINE)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return [
        sentence
        for paragraph in paragraphs
        for sentence in re.split(r"(?<=[.!?])\)? +(?=[A-Z\"“(*])", paragraph)
        if re.search(r"[a-z]", sentence)
    ]


def word_count(sentence: str) -> int:
    """Return the number of words: not of symbols in formulas, which have one letter."""
    return len(re.findall(r"[^\W\d_]{2,}|\b[aAI]\b", sentence))


def test_sentences_of_a_page_are_counted() -> None:
    page = "# Title\n\nOne idea. Two\nideas.\n\n- first item\n- second [item](there.md)\n\n```python\nx = 1. + 2\n```\n"
    assert sentences(page) == ["One idea.", "Two ideas.", "first item", "second item"]
    assert word_count("Let M = 2^62, and `x` a value") == 4


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    lengths = {sentence: word_count(sentence) for sentence in sentences(page.read_text(encoding="utf-8"))}
    long = [f"{length} words: {sentence}" for sentence, length in lengths.items() if length > WORDS]
    assert len(long) <= (1 - SHARE) * len(lengths), "\n".join(long)


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_advice_installs_sfumato_by_its_name(path: Path) -> None:
    """On a package index the name may belong to another project; only a path of the checkout or the wheel is safe."""
    by_name = re.findall(r"pip\s+install\s+(?:-\S+\s+)*[\"'`]*sfumato[\[\s\"'`]", path.read_text(encoding="utf-8"))
    is_warning = path.relative_to(ROOT).as_posix() == "docs/how-to/install.md"  # "do not run pip install sfumato"
    assert len(by_name) == (1 if is_warning else 0)


def test_the_readme_names_the_commands_of_the_checkout() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in ("demo", "test", "quick"):
        assert f"make {target}" in readme
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_banned_phrases_are_reported_outside_quotations() -> None:
    page = "It is told beside a text.\n> told\nThere is no longer a cost."
    assert [phrase for _, phrase, _ in banned_phrases(page)] == ["a text", "beside", "told"]
