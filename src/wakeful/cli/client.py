"""The HTTP API as the command line uses it: one client, its errors as sentences."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx2
import msgspec

from wakeful.cli.exits import Busy, CommandFailed, Denied, Missing, Misused, Unreachable
from wakeful.vocabulary.record import Record

CONNECT_S = 3.0
ANSWER_S = 30.0
LONGEST_EVENT = 16 * 1024 * 1024
SILENCE_S = 60.0  # keep-alives of a stream come every 15 seconds

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
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx2.Timeout(ANSWER_S, connect=CONNECT_S)
        # A proxy of the environment is for the outside world, not for this machine's server.
        self._http = httpx2.Client(
            base_url=self.url,
            headers=headers,
            timeout=timeout,
            trust_env=False,
            verify=not self.url.startswith("http://"),  # reading certificates takes a while
        )

    def get(self, path: str, **query: object) -> Any:
        return self._ask("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any] | None = None, **query: object) -> Any:
        return self._ask("POST", path, query=query, body=body or {})

    def delete(self, path: str, **query: object) -> Any:
        return self._ask("DELETE", path, query=query)

    def is_ready(self) -> bool:
        """Tell whether the server can commit a row."""
        try:
            return self._http.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    @contextmanager
    def events(
        self, method: str, path: str, *, body: Mapping[str, Any] | None = None, **query: object
    ) -> Generator[Iterator[SseFrame], None, None]:
        """Follow an event stream for as long as the block lasts."""
        timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
        params = {name: str(value) for name, value in query.items() if value is not None}
        with (
            self._translated(),
            self._http.stream(method, path, params=params, json=body, timeout=timeout) as response,
        ):
            if response.status_code != 200:
                response.read()
                raise _failure(response)
            yield _frames(response)

    @contextmanager
    def lines(self, path: str, **query: object) -> Generator[Iterator[bytes], None, None]:
        """Read an answer piece by piece for as long as the block lasts."""
        params = {name: str(value) for name, value in query.items() if value is not None}
        with self._translated(), self._http.stream("GET", path, params=params) as response:
            if response.status_code != 200:
                response.read()
                raise _failure(response)
            yield response.iter_bytes()

    def send_lines(self, path: str, pieces: Iterator[bytes], **query: object) -> Any:
        """Send a file piece by piece."""
        params = {name: str(value) for name, value in query.items() if value is not None}
        headers = {"Content-Type": LINES}
        with self._translated():
            return answered(self._http.post(path, params=params, content=pieces, headers=headers))

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object],
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        params = {name: str(value) for name, value in query.items() if value is not None}
        wait_s = float(params.get("wait", params.get("timeout", "0")))
        timeout = httpx2.Timeout(ANSWER_S + wait_s, connect=CONNECT_S)
        with self._translated():
            response = self._http.request(method, path, params=params, json=body, timeout=timeout)
        return answered(response)

    @contextmanager
    def _translated(self) -> Generator[None, None, None]:
        try:
            yield
        except httpx2.TimeoutException as error:
            raise Unreachable(f"{self.url} does not answer in time; is it overloaded?") from error
        except (httpx2.TransportError, httpx2.SSEError) as error:
            raise Unreachable(
                f"no server answers at {self.url}; start one with `wakeful up`"
            ) from error


def segment(name: str) -> str:
    """Return a name as one segment of a path."""
    return quote(name, safe="")


def answered(response: httpx2.Response) -> Any:
    """Return what a response says, or raise what it complains about."""
    if response.status_code >= 400:
        raise _failure(response)
    try:
        return msgspec.json.decode(response.content) if response.content else None
    except msgspec.DecodeError:
        raise CommandFailed(f"{response.url.host} answers unlike a wakeful server") from None


def _frames(response: httpx2.Response) -> Iterator[SseFrame]:
    for event in httpx2.EventSource(response, LONGEST_EVENT):
        if (frame := frame_of(event)) is not None:
            yield frame


def frame_of(event: httpx2.ServerSentEvent) -> SseFrame | None:
    """Return what an event says, None if it is of a kind that is not known here."""
    try:
        data = msgspec.json.decode(event.data or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    return SseFrame(id=event.id, kind=event.event, data=data)


def _failure(response: httpx2.Response) -> CommandFailed:
    try:
        problem = msgspec.json.decode(response.content, type=dict[str, Any])
    except msgspec.DecodeError:
        problem = {}
    sentence = str(problem.get("detail") or problem.get("title") or f"HTTP {response.status_code}")
    match response.status_code:
        case 401:
            return Denied("the server does not know this token; check WAKEFUL_TOKEN or --home")
        case 403 | 421:
            return Denied(sentence)
        case 404:
            return Missing(sentence)
        case 400 | 405 | 409 | 413 | 415 | 422:
            return Misused(sentence)
        case status if status in _BUSY:
            return Busy(sentence)
        case _:
            return CommandFailed(sentence)
