"""Following a session over HTTP: every event once, across restarts of the server."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from wakeful.cli.client import (
    ANSWER_S,
    CONNECT_S,
    LONGEST_EVENT,
    SILENCE_S,
    SseFrame,
    answered,
    failure,
    frame_of,
)
from wakeful.cli.context import CliContext
from wakeful.cli.exits import Unreachable
from wakeful.vocabulary.record import Record

AGAIN_AFTER_S = 1.0


class Lost(Record):
    """The connection went; it is tried again and again."""


class Back(Record):
    """There is a connection: the first one, or again."""

    is_first: bool


class SessionLink:
    """A session at a server that may go and come back, perhaps at another address."""

    def __init__(self, context: CliContext, session: str) -> None:
        self._context = context
        self._session = session
        self._since: str | None = None

    async def follow(self) -> AsyncIterator[SseFrame | Lost | Back]:
        """Yield what happens, for ever."""
        is_first, is_lost = True, False
        while True:
            try:
                async for event in self._connected():
                    yield Back(is_first=is_first) if event is None else event
                    is_first = is_lost = False
            except (httpx2.TransportError, httpx2.SSEError, Unreachable):
                pass
            if not is_lost:
                yield Lost()
            is_lost = True
            await self._context.clock.sleep(AGAIN_AFTER_S)

    async def _connected(self) -> AsyncIterator[SseFrame | None]:
        """Yield None once there is a connection, then what happens until it is lost."""
        params = {"session": self._session}
        if self._since is not None:
            params["since"] = self._since
        async with (
            self._http(SILENCE_S) as http,
            http.stream("GET", "/api/events", params=params) as response,
        ):
            if response.status_code != 200:
                raise failure(response.status_code, await response.aread())
            yield None
            async for event in httpx2.EventSource(response, LONGEST_EVENT):
                self._since = event.id or self._since
                frame = frame_of(event.id, event.event, event.data)
                if frame is not None:
                    yield frame

    async def get(self, path: str) -> Any:
        return await self._ask("GET", path)

    async def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        return await self._ask("POST", path, body or {})

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        try:
            async with self._http(ANSWER_S) as http:
                answer = await http.request(method, path, json=body)
                return answered(answer.status_code, answer.content, str(answer.url))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise Unreachable("no server answers; it was not sent") from error
        except httpx2.TransportError as error:
            raise Unreachable("the server went away; it may have arrived") from error

    def _http(self, timeout_s: float) -> httpx2.AsyncClient:
        url = self._context.url
        if url is None:
            raise Unreachable(f"no server runs in {self._context.home}")
        token = self._context.token
        return httpx2.AsyncClient(
            base_url=url.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(timeout_s, connect=CONNECT_S),
            trust_env=False,
            verify=not url.startswith("http://"),
        )
