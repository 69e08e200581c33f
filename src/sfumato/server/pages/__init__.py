"""Pages for people: a first page, and the files of this folder under ``/static/``, all from this host alone."""

from __future__ import annotations

import hashlib
import html
import importlib.resources
import mimetypes
import re
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from sfumato.server.api.administration import list_collections
from sfumato.server.api.collector import Collector
from sfumato.server.api.schemas import CollectionList, ListedCollection
from sfumato.server.http.responses import ApiError

__all__ = ["PAGES", "client_library", "give_file", "give_first_page", "page"]

#: Pages that are files of this folder, by their path.
PAGES = {"/studio": "studio.html", "/c/{id}": "survey.html", "/c/{id}/results": "results.html"}

_FOLDER = importlib.resources.files("sfumato.server.pages")
#: Files of the browser client. The wheel has them among the pages; their source is ``clients/js`` of the repository.
_CLIENT_FILES = frozenset(f"sfumato{suffix}" for suffix in (".js", ".d.ts"))
#: Names of files that are served; Python's own in this folder are not.
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9]+)*\.(css|html|js|svg|ts)")

_TEMPLATE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/plain.css">
<a class="skip" href="#main">To the content</a>
<header class="top"><a class="name" href="/">Sfumato</a><a href="/studio">Studio</a><a href="/docs">API</a></header>
<main id="main">
<h1>{title}</h1>
{body}
</main>
</html>
"""


def page(title: str, body: str) -> Response:
    """Return a plain page; ``body`` is HTML."""
    return HTMLResponse(_TEMPLATE.format(title=html.escape(title), body=body))


def client_library(name: str) -> Traversable:
    """Return a file of the browser client: the packaged one, or in a source checkout that of ``clients/js``."""
    packaged = _FOLDER / name
    checkout = Path(str(importlib.resources.files("sfumato"))).parents[1]
    return packaged if packaged.is_file() else checkout / "clients" / "js" / name


async def give_file(collector: Collector, request: Request) -> Response:  # noqa: ARG001
    """Return a page, or a static file of the pages."""
    name = PAGES.get(request.scope["route"].path) or request.path_params["name"]
    file = client_library(name) if name in _CLIENT_FILES else _FOLDER / name
    if not _NAME.fullmatch(name) or not file.is_file():
        raise ApiError("not-found", "there is no such file")
    content = file.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(content, media_type=kind, headers=headers)


_WHAT = """<p class="lead">Surveys in which each answer is randomized on the device of the person who gives it, and only
the random reply is sent. How much a reply reveals is set by who makes the survey, and every question states it before
it is answered. From many replies the shares of all answers can be estimated, with intervals.</p>"""

_START = """<section class="card"><h2>{heading}</h2>
<p>In <a href="/studio">Studio</a> you describe what may be answered and what must stay hidden, see what error to
expect, and get a link to send around.</p>
<p>Studio asks for the <strong>admin token</strong>. The collector printed it in the terminal at its first start; it
begins with <code>sfa_</code> and is stored as a hash only. If it is lost, this prints another one (with the
<code>--store</code> that this collector was started with):</p>
<pre><code>sfumato admin-tokens --new</code></pre>
<p class="actions"><a class="button main" href="/studio">Open Studio</a>
<a class="button" href="/docs">The API</a></p></section>"""

_LIST = """<section class="card"><h2>Collections</h2><div class="wide"><table class="stacked">
<thead><tr><th scope="col">question</th><th scope="col" class="number">answers</th><th scope="col">state</th>
<th scope="col">see</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</section>"""

_NONE = """<section class="card"><h2>Collections</h2><p class="quiet">None is listed yet.</p></section>"""


async def give_first_page(collector: Collector, request: Request) -> Response:
    """Return the first page: introduction, start, and the listed collections."""
    response = msgspec.json.decode((await list_collections(collector, request)).body, type=CollectionList)
    rows = "".join(map(_row, response.collections))
    more = f'<p><a href="/?after={response.next}">More</a></p>' if response.next else ""
    listed = _LIST.format(rows=rows, more=more) if rows else _NONE
    start = _START.format(heading="Open another" if rows else "Start here")
    return page("A Sfumato collector", _WHAT + (listed + start if rows else start + listed))


def _row(collection: ListedCollection) -> str:
    links = {"answer": f"/c/{collection.id}"} if collection.state == "open" and collection.submission == "open" else {}
    if collection.results == "public":
        links["results"] = f"/c/{collection.id}/results"
    links["certificate"] = f"/v1/collections/{collection.id}/certificate"
    linked = " ".join(f'<a href="{path}">{name}</a>' for name, path in links.items())
    return (
        f'<tr><th scope="row">{html.escape(collection.title)}</th><td class="number">{collection.reports:,}</td>'
        f'<td class="state">{collection.state}</td><td class="links">{linked}</td></tr>'
    )
