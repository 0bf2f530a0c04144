"""Pages: the files that browsers load, as rows of the table."""

from functools import cache
from importlib import resources
from pathlib import PurePath

from starlette.responses import Response

from wakeful.doors.http.endpoint import ANYBODY, PUBLIC, Call, Endpoint, Nothing

MEDIA_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}

# The page at `/` must be there before anybody has signed in; it holds nothing that is secret.
PUBLIC_PAGES = {
    "/": "home.html",
    "/home.js": "home.js",
    "/home.css": "home.css",
    "/icon.svg": "icon.svg",
}
DOCS_PAGES = {"/docs": "docs.html", "/docs/docs.js": "docs.js", "/docs/docs.css": "docs.css"}


def endpoints() -> list[Endpoint]:
    """Return a row for each file."""
    public = [
        _page(path, name, PUBLIC, "The page that signs a browser in, or a part of it")
        for path, name in PUBLIC_PAGES.items()
    ]
    docs = [
        _page(path, name, ANYBODY, "The page that shows /openapi.json, or a part of it")
        for path, name in DOCS_PAGES.items()
    ]
    return [*public, *docs]


def _page(path: str, name: str, scope: str, summary: str) -> Endpoint:
    media_type = MEDIA_TYPES[PurePath(name).suffix]

    async def answer(call: Call[Nothing, Nothing]) -> Response:
        return Response(_content(name), headers={"Content-Type": f"{media_type}; charset=utf-8"})

    return Endpoint(
        method="GET",
        path=path,
        scope=scope,
        summary=summary,
        answer=answer,
        returns={200: media_type},
    )


@cache
def _content(name: str) -> bytes:
    return resources.files("wakeful.doors.http").joinpath("pages", name).read_bytes()
