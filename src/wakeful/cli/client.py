"""The HTTP API as the command line uses it: one client, its errors as sentences.

Python's own HTTP, since a verb must answer at once: the library that the live conversation uses
takes longer to load than most questions to answer.
"""

import http.client
import ssl
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from wakeful.cli.exits import Busy, CommandFailed, Denied, Missing, Misused, Unreachable
from wakeful.vocabulary.record import Record

CONNECT_S = 3.0
ANSWER_S = 30.0
LONGEST_EVENT = 16 * 1024 * 1024
SILENCE_S = 60.0  # keep-alives of a stream come every 15 seconds
PIECE = 64 * 1024

LINES = "application/x-ndjson"

_BUSY = frozenset({408, 429, 503, 507})


class SseFrame(Record):
    """One frame of an event stream."""

    id: str
    kind: str
    data: dict[str, Any]


class ServerClient:
    """A server, reached with a token."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, **query: object) -> Any:
        return self._ask("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None, **query: object) -> Any:
        return self._ask("POST", path, query=query, body=body or {})

    def put(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._ask("PUT", path, query={}, body=body)

    def patch(self, path: str, body: Mapping[str, Any], **query: object) -> Any:
        return self._ask("PATCH", path, query=query, body=body)

    def delete(self, path: str, **query: object) -> Any:
        return self._ask("DELETE", path, query=query)

    def is_ready(self) -> bool:
        """Tell whether the server can commit a row."""
        try:
            with self._answer("GET", "/readyz", {}) as response:
                return response.status == 200
        except Unreachable:
            return False

    @contextmanager
    def events(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, **query: object
    ) -> Generator[Iterator[SseFrame], None, None]:
        """Follow an event stream for as long as the block lasts."""
        content = None if body is None else msgspec.json.encode(body)
        with self._answer(method, path, query, content, silence_s=SILENCE_S) as response:
            self._refuse_problem(response)
            yield frames(_lines(self._parts(response)))

    @contextmanager
    def lines(self, path: str, **query: object) -> Generator[Iterator[bytes], None, None]:
        """Read an answer piece by piece for as long as the block lasts."""
        with self._answer("GET", path, query) as response:
            self._refuse_problem(response)
            yield self._parts(response)

    def send_lines(self, path: str, pieces: Iterator[bytes], **query: object) -> Any:
        """Send a file piece by piece."""
        with self._answer("POST", path, query, _own(pieces)) as response:
            return self._said(response)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object],
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        content = None if body is None else msgspec.json.encode(body)
        wait_s = float(str(query.get("wait") or query.get("timeout") or 0))
        silence_s = ANSWER_S + wait_s
        with self._answer(method, path, query, content, silence_s=silence_s) as response:
            return self._said(response)

    def _refuse_problem(self, response: http.client.HTTPResponse) -> None:
        if response.status != 200:
            raise failure(response.status, self._whole(response))

    def _parts(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yield an answer part by part; what its reader does wrong is not the server's doing."""
        while True:
            with self._translated():
                part = response.read1(PIECE)  # which tells an end from a break, as lines do not
            if not part:
                return
            yield part

    def _said(self, response: http.client.HTTPResponse) -> Any:
        return answered(response.status, self._whole(response), self.url)

    def _whole(self, response: http.client.HTTPResponse) -> bytes:
        with self._translated():
            return response.read()

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, object],
        body: bytes | Iterator[bytes] | None = None,
        *,
        silence_s: float = ANSWER_S,
    ) -> Generator[http.client.HTTPResponse, None, None]:
        """Ask on a connection of its own, which is kept for as long as the block lasts."""
        given = {name: str(value) for name, value in query.items() if value is not None}
        is_json = body is None or isinstance(body, bytes)
        headers = {**self._headers, "Content-Type": "application/json" if is_json else LINES}
        with self._translated():
            connection = self._connected()
        try:
            assert connection.sock is not None
            connection.sock.settimeout(silence_s)
            target = urlsplit(self.url).path + path + (f"?{urlencode(given)}" if given else "")
            with self._translated(method):
                # Who refuses a body before its end is still heard.
                with suppress(BrokenPipeError, ConnectionResetError):
                    connection.request(method, target, body, headers, encode_chunked=not is_json)
                response = connection.getresponse()
            yield response
        finally:
            connection.close()

    @contextmanager
    def _translated(self, asked: str = "") -> Generator[None, None, None]:
        """Tell what went wrong; a change that was asked for may have been made all the same."""
        try:
            yield
        except TimeoutError as error:
            raise Unreachable(f"{self.url} does not answer in time; is it overloaded?") from error
        except (OSError, http.client.HTTPException) as error:
            if asked not in ("", "GET"):
                raise Unreachable(
                    f"{self.url} went away before it answered; what was asked may be on disk: "
                    "look there before you ask again"
                ) from error
            raise Unreachable(
                f"no server answers at {self.url}; start one with `wakeful up`"
            ) from error

    def _connected(self) -> http.client.HTTPConnection:
        place = self._place()
        # Neither looks for a proxy: that of the environment is for the outside world.
        if self.url.startswith("https:"):
            tls = ssl.create_default_context()
            connection = http.client.HTTPSConnection(*place, timeout=CONNECT_S, context=tls)
        else:
            connection = http.client.HTTPConnection(*place, timeout=CONNECT_S)
        connection.connect()
        return connection

    def _place(self) -> tuple[str, int | None]:
        with suppress(ValueError):
            parts = urlsplit(self.url)
            if parts.scheme in ("http", "https") and parts.hostname:
                return parts.hostname, parts.port
        raise Misused(f"{self.url!r} is no address of a server, such as http://127.0.0.1:8484")


def _lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    pending = b""
    for part in parts:
        *whole, pending = (pending + part).split(b"\n")
        yield from whole
        if len(pending) > LONGEST_EVENT:
            raise CommandFailed(f"the server tells more than {LONGEST_EVENT} bytes at once")


def _own(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts of a file; what goes wrong with it is not the server's doing."""
    try:
        yield from pieces
    except OSError as error:
        raise CommandFailed(f"{error.strerror or error}") from error


def segment(name: str) -> str:
    """Return a name as one segment of a path."""
    return quote(name, safe="")


def answered(status: int, content: bytes, where: str) -> Any:
    """Return what an answer says, or raise what it complains about."""
    if status >= 400:
        raise failure(status, content)
    try:
        return msgspec.json.decode(content) if content else None
    except msgspec.DecodeError:
        host = urlsplit(where).hostname
        raise CommandFailed(f"{host} answers unlike a wakeful server") from None


def frames(lines: Iterable[bytes]) -> Iterator[SseFrame]:
    """Yield the frames of an event stream; what stands in no field of theirs is passed over."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode("utf-8", "replace").rstrip("\r\n").partition(":")
        if name:
            fields[name] = fields.get(name, "") + value.removeprefix(" ")
        elif fields.get("data"):
            frame = frame_of(fields.get("id", ""), fields.get("event", "message"), fields["data"])
            fields = {}
            if frame is not None:
                yield frame


def frame_of(cursor: str, kind: str, text: str) -> SseFrame | None:
    """Return what an event says, None if it is of a form that is not known here."""
    try:
        data = msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    return SseFrame(id=cursor, kind=kind, data=data)


def failure(status: int, content: bytes) -> CommandFailed:
    """Return what a problem document complains about."""
    try:
        problem = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.DecodeError:
        problem = {}
    sentence = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    match status:
        case 401:
            return Denied("the server does not know this token; check WAKEFUL_TOKEN or --home")
        case 403 | 421:
            return Denied(sentence)
        case 404:
            return Missing(sentence)
        case 400 | 405 | 409 | 413 | 415 | 422:
            return Misused(sentence)
        case _ if status in _BUSY:
            return Busy(sentence)
        case _:
            return CommandFailed(sentence)
