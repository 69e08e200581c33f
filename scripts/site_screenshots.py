"""Add screenshots of the collector's pages to the documentation site: a hook of mkdocs.

``tests/docs/test_screenshots.py`` writes the pictures to build/screenshots, once per size and colour scheme; they are
not in the repository. A page shows one by the comment ``<!-- screenshot name: description -->``. A picture that was not
taken is replaced by a placeholder that says so.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).parents[1] / "build" / "screenshots"
#: Pictures that pages may show.
SCREENSHOTS = (
    "studio",
    "studio-map",
    "tradeoff",
    "outlook",
    "survey",
    "survey-map",
    "reply",
    "results",
    "results-map",
    "my-surveys",
)
SIZES, SCHEMES = ("desktop", "phone"), ("light", "dark")
PLACEHOLDER = "screenshots/not-taken.svg"

_MARKER = re.compile(r"<!-- screenshot ([\w-]+): (.*?) -->", flags=re.DOTALL)
_PLACEHOLDER_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 120" width="640" height="120" role="img">
<rect x="1" y="1" width="638" height="118" rx="8" fill="none" stroke="#808080" stroke-dasharray="6 6"/>
<text x="320" y="66" font-family="system-ui, sans-serif" font-size="16" text-anchor="middle" fill="#808080">Screenshot \
not taken. Run "make docs" on a machine with Chromium.</text>
</svg>
"""


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pictures and the placeholder to the files of the site; mkdocs calls this hook once."""
    for path in sorted(FOLDER.glob("*.png")):
        files.append(File.generated(config, f"screenshots/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, PLACEHOLDER, content=_PLACEHOLDER_SVG))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Replace the comments that name screenshots by pictures; mkdocs calls this hook for every page."""
    to_root = posixpath.relpath(".", posixpath.dirname(page.file.src_uri) or ".")
    return _MARKER.sub(lambda marker: _pictures(marker[1], " ".join(marker[2].split()), to_root, files), markdown)


def _pictures(name: str, description: str, to_root: str, files: Files) -> str:
    """Return one picture per size and colour scheme, or the placeholder; the theme shows the scheme that fits."""
    if name not in SCREENSHOTS:
        raise ValueError(f"{name!r} must be one of the screenshots {', '.join(SCREENSHOTS)}")
    # Ask the site, not the folder: a picture may be taken while the site is built.
    kinds = [f"{name}-{size}-{scheme}" for size in SIZES for scheme in SCHEMES]
    if not all(files.get_file_from_path(f"screenshots/{kind}.png") for kind in kinds):
        return f"![{description}]({to_root}/{PLACEHOLDER})"
    pictures = [
        f"![{description}, on a {size}]({to_root}/screenshots/{name}-{size}-{scheme}.png#only-{scheme})"
        f"{{ .screenshot .{size} loading=lazy }}"
        for size in SIZES
        for scheme in SCHEMES
    ]
    return "\n".join(pictures)
