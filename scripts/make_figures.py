"""Write docs/figures: the pictures that pages show, made by running the Python of those pages; and that of the flow.

A page that shows ``figures/some-name.svg`` writes ``"some-name.svg"`` in its own code.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import readme_figure
from pages import DOCS, blocks, run_python

FOLDER = DOCS / "figures"

_INK, _BAND, _SIDE, _ACCENT = "#1f4e79", "#dce9f5", "#f6f6f3", "#c55a11"


def plain(svg: str) -> str:
    """Without matplotlib's metadata and document type, which name other hosts."""
    svg = re.sub(r"<!DOCTYPE.*?>\s*", "", svg, flags=re.DOTALL)
    return re.sub(r" *<metadata>.*?</metadata>\n", "", svg, flags=re.DOTALL)


def figures_of(page: Path, folder: Path) -> dict[str, str]:
    """The pictures that the code of a page writes, by running it in this folder; nothing is run if it writes none."""
    code = "".join(block.text for block in blocks(page) if block.language == "python")
    names = re.findall(r'"([\w-]+\.svg)"', code)
    if "rehearsal.svg" in names:
        rehearse(page, folder)
    elif names:
        run_python(page, folder)
    return {name: plain((folder / name).read_text(encoding="utf-8")) for name in names}


def rehearse(page: Path, folder: Path) -> None:
    """As the reader of the first tutorial does: its files, its design, its rehearsal."""
    for block in blocks(page):
        if block.is_file:
            (folder / block.title).write_text(block.text, encoding="utf-8")
    design = ["-m", "sfumato.cli", "design", "policy.toml", "--n", "20000", "-o", "mechanism.json"]
    for command in (design, ["rehearse.py"]):
        subprocess.run([sys.executable, *command], cwd=folder, check=True, capture_output=True)


def words(x: float, y: int, text: str, *, size: int = 12, colour: str = "#333", more: str = "") -> str:
    """Text in the middle of x."""
    return f'<text x="{x:g}" y="{y}" font-size="{size}" text-anchor="middle" fill="{colour}"{more}>{text}</text>'


def flow() -> str:
    """What runs where, from a policy to an estimate."""
    sides = {
        "whoever asks": (10, 330),
        "each person's device": (350, 150),
        "the collector, and anybody who reads it": (510, 340),
    }
    boxes = {
        "policy": ("what must be hard", "to tell apart"),
        "mechanism": ("exact randomizer,", "integers only"),
        "reports": ("randomized values:", "all that leaves"),
        "aggregate": ("exact counts,", "mergeable"),
        "estimate": ("frequencies with", "error bars"),
    }
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 250" width="860" height="250" '
        'font-family="system-ui, sans-serif" role="img" aria-label="policy, mechanism, reports, aggregate, estimate">',
        '<rect width="860" height="250" fill="#ffffff"/>',
    ]
    for name, (x, width) in sides.items():
        parts.append(f'<rect x="{x}" y="14" width="{width}" height="156" rx="8" fill="{_SIDE}" stroke="#cfcfc8"/>')
        parts.append(words(x + width / 2, 34, name, size=13, colour="#555"))
    for number, (name, (first, second)) in enumerate(boxes.items()):
        x = 20 + 170 * number
        parts.append(f'<rect x="{x}" y="72" width="130" height="80" rx="6" fill="{_BAND}" stroke="{_INK}"/>')
        parts.append(words(x + 65, 98, name, size=16, colour=_INK, more=' font-weight="600"'))
        parts += [words(x + 65, 120, first), words(x + 65, 138, second)]
    for number, name in enumerate(("plan, design", "privatize", "count", "decode")):
        x = 151 + 170 * number
        parts.append(f'<path d="M{x} 112h34m-7 -5l7 5l-7 5" fill="none" stroke="{_INK}" stroke-width="1.6"/>')
        parts.append(words(x + 14, 62, name, colour=_ACCENT))
    parts += [
        f'<path d="M85 158v40h170v-40" fill="none" stroke="{_INK}" stroke-width="1.6"/>',
        words(170, 218, f'<tspan fill="{_ACCENT}">audit</tspan>: an exact certificate'),
        words(170, 236, "that the mechanism obeys the policy"),
        words(425, 198, "the value itself"),
        words(425, 214, "never leaves it"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    made = {"flow.svg": flow(), "same-privacy.svg": readme_figure.draw()}
    for page in sorted(DOCS.rglob("*.md")):
        with tempfile.TemporaryDirectory() as folder:
            made |= figures_of(page, Path(folder))
    for name, svg in made.items():
        (FOLDER / name).write_text(svg, encoding="utf-8")
        print(f"{name}: {len(svg) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
