"""Write docs/figures: run the Python of the pages that draw figures, and draw the diagram of the data flow.

The code of a page that shows ``figures/some-name.svg`` writes the file ``"some-name.svg"``. Figures are drawn on white;
docs/stylesheets/site.css adapts them to the dark scheme of the site.
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
    """Return an SVG without matplotlib's metadata and document type, which name other hosts."""
    svg = re.sub(r"<!DOCTYPE.*?>\s*", "", svg, flags=re.DOTALL)
    return re.sub(r" *<metadata>.*?</metadata>\n", "", svg, flags=re.DOTALL)


def figures_of(page: Path, folder: Path) -> dict[str, str]:
    """Return the figures that the code of a page writes; run the code in this folder if it writes any."""
    code = "".join(block.text for block in blocks(page) if block.language == "python")
    names = re.findall(r'"([\w-]+\.svg)"', code)
    if "rehearsal.svg" in names:
        rehearse(page, folder)
    elif names:
        run_python(page, folder)
    return {name: plain((folder / name).read_text(encoding="utf-8")) for name in names}


def rehearse(page: Path, folder: Path) -> None:
    """Follow the first tutorial: write its files, design a mechanism and run the rehearsal."""
    for block in blocks(page):
        if block.is_file:
            (folder / block.title).write_text(block.text, encoding="utf-8")
    design = ["-m", "sfumato.cli", "design", "policy.toml", "--n", "20000", "-o", "mechanism.json"]
    for command in (design, ["rehearse.py"]):
        subprocess.run([sys.executable, *command], cwd=folder, check=True, capture_output=True)


def label(x: float, y: int, words: str, *, size: int = 12, colour: str = "#333", more: str = "") -> str:
    """Return SVG text that is centred on x."""
    return f'<text x="{x:g}" y="{y}" font-size="{size}" text-anchor="middle" fill="{colour}"{more}>{words}</text>'


def flow() -> str:
    """Return the diagram of the data flow from a policy to an estimate, with the place where each step runs."""
    sides = {
        "analyst": (10, 330),
        "each person's device": (350, 150),
        "collector, and readers of its results": (510, 340),
    }
    boxes = {
        "policy": ("values that are", "hard to tell apart"),
        "mechanism": ("exact randomizer,", "integers only"),
        "reports": ("randomized values,", "sent by the device"),
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
        parts.append(label(x + width / 2, 34, name, size=13, colour="#555"))
    for number, (name, (first, second)) in enumerate(boxes.items()):
        x = 20 + 170 * number
        parts.append(f'<rect x="{x}" y="72" width="130" height="80" rx="6" fill="{_BAND}" stroke="{_INK}"/>')
        parts.append(label(x + 65, 98, name, size=16, colour=_INK, more=' font-weight="600"'))
        parts += [label(x + 65, 120, first), label(x + 65, 138, second)]
    for number, name in enumerate(("plan, design", "privatize", "aggregate", "estimate")):
        x = 151 + 170 * number
        parts.append(f'<path d="M{x} 112h34m-7 -5l7 5l-7 5" fill="none" stroke="{_INK}" stroke-width="1.6"/>')
        parts.append(label(x + 14, 62, name, colour=_ACCENT))
    parts += [
        f'<path d="M85 158v40h170v-40" fill="none" stroke="{_INK}" stroke-width="1.6"/>',
        label(170, 218, f'<tspan fill="{_ACCENT}">audit</tspan>: exact certificate'),
        label(170, 236, "that the mechanism obeys the policy"),
        label(425, 198, "the value itself"),
        label(425, 214, "stays on the device"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    figures = {"flow.svg": flow(), "same-privacy.svg": readme_figure.draw()}
    for page in sorted(DOCS.rglob("*.md")):
        with tempfile.TemporaryDirectory() as folder:
            figures |= figures_of(page, Path(folder))
    for name, svg in figures.items():
        (FOLDER / name).write_text(svg, encoding="utf-8")
        print(f"{name}: {len(svg) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
