"""Pages: single-page apps as rows of the table, their index at every real path, and their files."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePath

from starlette.requests import Request
from starlette.responses import Response

from wakeful.doors.http.endpoint import ANYBODY, PUBLIC, Call, Endpoint, Nothing
from wakeful.doors.http.problems import Problem

MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
PACKED = {"br": ".br", "gzip": ".gz"}  # beside a file, the best first
ASSETS = "assets"  # the folder of files whose names change with their content

FOR_EVER = "public, max-age=31536000, immutable"
ASK_FIRST = "no-cache"  # kept, but shown only after we said that it still holds


@dataclass(frozen=True, kw_only=True)
class Site:
    """A folder as a bundler leaves it: an index, files beside it, hashed ones in `assets`."""

    folder: Traversable
    index: str = "index.html"
    paths: tuple[str, ...]  # that a reader may enter, return to and share; all show the index
    below: str = ""  # the path where the other files lie
    scope: str = PUBLIC
    summary: str

    def endpoints(self) -> list[Endpoint]:
        """Return a row for each path and each file, and one for all that are hashed."""
        files = _files(self.folder)
        index = files.pop(self.index)
        rows = [self._row(path, index) for path in self.paths]
        rows += [self._row(f"{self.below}/{name}", file) for name, file in sorted(files.items())]
        assets = self.folder.joinpath(ASSETS)
        return [*rows, self._assets(_files(assets))] if assets.is_dir() else rows

    def _row(self, path: str, file: "PageFile") -> Endpoint:
        async def answer(call: Call[Nothing, Nothing]) -> Response:
            return file.response(call.request, ASK_FIRST)

        return Endpoint(
            method="GET",
            path=path,
            scope=self.scope,
            summary=self.summary,
            answer=answer,
            headers={"If-None-Match": "What the reader has already"},
            returns={200: file.media_type.partition(";")[0], 304: ""},
        )

    def _assets(self, files: "dict[str, PageFile]") -> Endpoint:
        async def answer(call: Call[Nothing, Nothing]) -> Response:
            file = files.get(call.path["name"])
            if file is None:
                raise Problem("not-found")
            return file.response(call.request, FOR_EVER)

        return Endpoint(
            method="GET",
            path=f"{self.below}/{ASSETS}/{{name}}",
            scope=self.scope,
            summary=self.summary,
            answer=answer,
            returns={200: "*/*", 304: ""},
        )


class PageFile:
    """A file, with what a bundler packed of it; read when it is first asked for."""

    def __init__(self, file: Traversable, packed: dict[str, Traversable]) -> None:
        suffix = PurePath(file.name).suffix
        if suffix not in MEDIA_TYPES:
            raise ValueError(f"nobody knows what kind of file {file.name!r} is")
        self.media_type = MEDIA_TYPES[suffix]
        self._plain = _Content(file)
        self._packed = {encoding: _Content(one) for encoding, one in packed.items()}

    def response(self, request: Request, caching: str) -> Response:
        """Return the content in the form that the reader likes best, unless it has it already."""
        encoding = best_encoding(request.headers.get("accept-encoding", ""), self._packed)
        content = self._packed[encoding] if encoding else self._plain
        headers = {"Cache-Control": caching, "ETag": content.tag, "Content-Type": self.media_type}
        if self._packed:
            headers["Vary"] = "Accept-Encoding"
        if is_known(request.headers.get("if-none-match", ""), content.tag):
            return Response(status_code=304, headers=headers)
        if encoding:
            headers["Content-Encoding"] = encoding
        return Response(content.raw, headers=headers)


class _Content:
    def __init__(self, file: Traversable) -> None:
        self._file = file

    @cached_property
    def raw(self) -> bytes:
        return self._file.read_bytes()

    @cached_property
    def tag(self) -> str:
        return f'"{sha256(self.raw).hexdigest()[:32]}"'


def best_encoding(accepted: str, there: Collection[str]) -> str | None:
    """Return the best form that is there and that a reader takes; None: as it is."""
    wanted: dict[str, bool] = {}
    for one in accepted.lower().split(","):
        name, _, weight = one.partition(";")
        wanted[name.strip()] = weight.strip().removeprefix("q=").strip("0.") != "" or not weight
    for encoding in PACKED:
        if encoding in there and wanted.get(encoding, False):
            return encoding
    return None


def is_known(known: str, tag: str) -> bool:
    """Tell whether a reader's `If-None-Match` names a tag."""
    return tag in (one.strip().removeprefix("W/") for one in known.split(","))


def _files(folder: Traversable) -> dict[str, PageFile]:
    """Return the files of a folder by name, each with the packed forms beside it."""
    every = {file.name: file for file in folder.iterdir() if file.is_file()}
    return {
        name: PageFile(
            file,
            {
                encoding: every[name + suffix]
                for encoding, suffix in PACKED.items()
                if name + suffix in every
            },
        )
        for name, file in every.items()
        if not name.endswith(tuple(PACKED.values()))
    }


def endpoints() -> list[Endpoint]:
    """Return the rows of our own pages."""
    folder = resources.files("wakeful.doors.http").joinpath("pages")
    # The page at `/` must be there before anybody has signed in; it holds nothing that is secret.
    home = Site(
        folder=folder.joinpath("home"),
        index="home.html",
        paths=("/",),
        summary="The page that signs a browser in, or a part of it",
    )
    docs = Site(
        folder=folder.joinpath("docs"),
        index="docs.html",
        paths=("/docs",),
        below="/docs",
        scope=ANYBODY,
        summary="The page that shows /openapi.json, or a part of it",
    )
    return [*home.endpoints(), *docs.endpoints()]
