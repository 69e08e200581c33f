"""HTML pages: the first page, Studio, My surveys, survey and results, and their static files under ``/static/``.

All files come from this host; the pages load nothing from other hosts.
"""

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

__all__ = ["PAGES", "client_library", "error_page", "give_embedded_results", "give_file", "give_first_page", "page"]

#: Files of this folder, by the path of their page. The service worker is at the root, because it serves all of them.
PAGES = {
    "/studio": "studio.html",
    "/surveys": "surveys.html",
    "/guide": "guide.html",
    "/c/{id}": "survey.html",
    "/c/{id}/results": "results.html",
    "/c/{id}/embed": "embed.html",
    "/worker.js": "worker.js",
}

_FOLDER = importlib.resources.files("sfumato.server.pages")
#: Files of the browser client. The wheel contains them in this folder; their source is ``clients/js``.
_CLIENT_FILES = frozenset(f"sfumato{suffix}" for suffix in (".js", ".d.ts"))
#: Names of files that are served; they exclude the Python files of this folder.
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9]+)*\.(css|html|js|svg|ts)")

_TEMPLATE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/plain.css">
<a class="skip" href="#main">Skip to content</a>
<header class="top"><a class="name" href="/">Sfumato</a><a href="/studio">Studio</a><a href="/surveys">My surveys</a>
<a href="/docs">API</a></header>
<main id="main">
<h1>{title}</h1>
{body}
</main>
</html>
"""


def page(title: str, body: str) -> Response:
    """Return an HTML page with a title; ``body`` is HTML."""
    return HTMLResponse(_TEMPLATE.format(title=html.escape(title), body=body))


#: Headings and advice of error pages, by reason; other reasons have the last one.
_ERRORS = {
    "not-found": (
        "This page does not exist",
        "Check that the address is complete. If you followed a link, ask its sender for it.",
    ),
    "rate": ("Too many requests", "Wait a few seconds, then reload the page."),
    "overloaded": ("The collector is busy", "Wait a few seconds, then reload the page."),
    "unavailable": (
        "The collector is not available",
        "Wait a minute, then reload the page. Replies that wait in your browser are kept.",
    ),
    "": ("This page cannot be shown", "Go back, or start at the first page."),
}


def error_page(error: ApiError) -> Response:
    """Return an error as a page for people, with the status and the headers of its JSON form."""
    title, advice = _ERRORS.get(error.reason, _ERRORS[""])
    body = (
        f'<p class="lead">{html.escape(advice)}</p><p class="quiet">{html.escape(error.message)} '
        f"(<code>{html.escape(error.reason)}</code>)</p>"
        '<p class="actions"><a class="button main" href="/">First page</a></p>'
    )
    response = page(title, body)
    response.status_code = error.status
    copied = (b"retry-after", b"www-authenticate")
    response.raw_headers += [header for header in error.response().raw_headers if header[0] in copied]
    return response


def client_library(name: str) -> Traversable:
    """Return a file of the browser client, from the package or, in a source checkout, from ``clients/js``."""
    packaged = _FOLDER / name
    checkout = Path(str(importlib.resources.files("sfumato"))).parents[1]
    return packaged if packaged.is_file() else checkout / "clients" / "js" / name


async def give_file(collector: Collector, request: Request) -> Response:  # noqa: ARG001
    """Return a page or a static file."""
    name = PAGES.get(request.scope["route"].path) or request.path_params["name"]
    file = client_library(name) if name in _CLIENT_FILES else _FOLDER / name
    if not _NAME.fullmatch(name) or not file.is_file():
        raise ApiError("not-found", "this file does not exist; check its name")
    content = file.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(content, media_type=kind, headers=headers)


#: Policy of the only page that other sites may show in a frame. It has no form and uses no token.
_EMBEDDED_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors *"
)


async def give_embedded_results(collector: Collector, request: Request) -> Response:
    """Return the page of results for frames of other sites, if the results are public."""
    collection = await collector.collections.get(request.path_params["id"])
    response = await give_file(collector, request)
    if collection.metadata.results == "public":
        response.headers["Content-Security-Policy"] = _EMBEDDED_POLICY
    return response


_INTRODUCTION = """<p class="lead">This collector runs surveys. The device of each person randomizes their answer and
sends only the random reply. The author of a survey sets how much a reply reveals, and every question states it before
people answer. From many replies the collector estimates the share of each answer, with intervals.</p>"""

_START = """<section class="card"><h2>{heading}</h2>
<p>In <a href="/studio">Studio</a> you list the possible answers, choose which of them must stay hidden, see the
expected error, and get a link to share.</p>
<p>Studio asks for an <strong>admin token</strong>, which begins with <code>sfa_</code>, or the token of an author. The
collector printed an admin token in the terminal when it first started, unless there was one already. The collector
stores only hashes of tokens, so a lost token cannot be recovered. To create
another one, run this command, with the same <code>--store</code> as the collector:</p>
<pre><code>sfumato admin-tokens --new</code></pre>
<p class="actions"><a class="button main" href="/studio">Open Studio</a>
<a class="button" href="/docs">API</a></p></section>"""

_LIST = """<section class="card"><h2>Collections</h2><div class="wide"><table class="stacked">
<thead><tr><th scope="col">question</th><th scope="col" class="number">answers
shown</th><th scope="col">state</th>
<th scope="col">links</th></tr></thead><tbody>{rows}</tbody></table></div>{more}</section>"""

_NONE = """<section class="card"><h2>Collections</h2><p class="quiet">No collections are listed yet.</p></section>"""


async def give_first_page(collector: Collector, request: Request) -> Response:
    """Return the first page: an introduction, the way to Studio, and the listed collections."""
    response = msgspec.json.decode((await list_collections(collector, request)).body, type=CollectionList)
    rows = "".join(map(_row, response.collections))
    more = f'<p><a href="/?after={response.next}">More</a></p>' if response.next else ""
    listed = _LIST.format(rows=rows, more=more) if rows else _NONE
    start = _START.format(heading="Create another survey" if rows else "Start here")
    return page("A Sfumato collector", _INTRODUCTION + (listed + start if rows else start + listed))


def _row(collection: ListedCollection) -> str:
    """Return the table row of a collection."""
    links = {"answer": f"/c/{collection.id}"} if collection.state == "open" and collection.submission == "open" else {}
    if collection.results == "public":
        links["results"] = f"/c/{collection.id}/results"
    links["certificate"] = f"/v1/collections/{collection.id}/certificate"
    linked = " ".join(f'<a href="{path}">{name}</a>' for name, path in links.items())
    return (
        f'<tr><th scope="row">{html.escape(collection.title)}</th><td class="number">{collection.reports:,}</td>'
        f'<td class="state">{collection.state}</td><td class="links">{linked}</td></tr>'
    )
