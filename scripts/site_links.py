"""Turn links to files outside docs/ into plain text: a hook of mkdocs, because the site does not hold these files."""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the page without such links; mkdocs calls this hook for every page."""
    folder = posixpath.dirname(page.file.src_uri)

    def replacement(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        return link[1] if target.startswith("../") else link[0]

    return _LINK.sub(replacement, markdown)
