"""Sockets: WebSockets, off until a row asks for them; each has a principal, or none for long."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from wakeful.access.gatekeeper import Gatekeeper
from wakeful.access.principal import Principal
from wakeful.doors.http.addresses import canonical_address
from wakeful.doors.http.app import Visit
from wakeful.doors.http.endpoint import SOCKET, Row
from wakeful.doors.http.guard import refused
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.problems import Problem, note_bug
from wakeful.doors.http.state import ABORT, GROW
from wakeful.vocabulary.clock import Clock, time_limit

INTRODUCTION_S = 5.0  # for the first frame, where it brings the credential
UNKNOWN = 512  # sockets that have not said who they are
UNKNOWN_EACH = 100  # per address
LARGEST_MESSAGE = 2 * 1024 * 1024
CLOSE_S = 1.0  # until one that does not take our goodbye is cut

# Close codes of RFC 6455 and its registry.
DONE, REFUSED, BROKEN, STOPPING = 1000, 1008, 1011, 1012


@dataclass(frozen=True, slots=True)
class SocketCall:
    """A socket that was let through and accepted."""

    principal: Principal
    path: Mapping[str, str]
    socket: WebSocket


@dataclass(frozen=True, kw_only=True)
class Socket(Row):
    """A row that talks with whoever comes, until one of the two has enough."""

    method: str = SOCKET
    largest_body: int = LARGEST_MESSAGE
    answer: Callable[[SocketCall], Awaitable[None]]
    # Finds the token in a first frame; None: the credential must come with the request.
    token_in: Callable[[str | bytes], str | None] | None = None

    def __post_init__(self) -> None:
        if self.is_open:
            raise ValueError(f"{self.path} is a socket: it needs a scope")

    @property
    def may_introduce_later(self) -> bool:
        return self.token_in is not None

    def lets_in(self, principal: Principal | None) -> bool:
        if principal is None:
            return self.may_introduce_later
        return super().lets_in(principal)


class Sockets:
    """Accepts sockets, learns who they are, and ends them with their token or the server."""

    def __init__(self, gatekeeper: Gatekeeper, streams: OpenStreams, clock: Clock) -> None:
        self._gatekeeper = gatekeeper
        self._streams = streams
        self._clock = clock
        self._unknown: dict[str, int] = {}

    async def serve(self, visit: Visit) -> None:
        """Talk until the end; refusals are raised for as long as nothing was accepted."""
        row, socket = visit.place.row, WebSocket(visit.scope, visit.receive, visit.send)
        assert isinstance(row, Socket)
        with row.admitted(visit.scope, visit.place.path):
            try:
                principal = visit.principal
                if principal is None:
                    principal = await self._introduced(row, visit, socket)
                else:
                    self._streams.check_room(principal)
                    await _accept(visit, socket)
                visit.scope["state"][GROW](row.largest_body)
                call = SocketCall(principal, visit.place.path, socket)
                code, reason = await self._talk(row, call)
            except WebSocketDisconnect:
                return
            except Problem as problem:
                if socket.application_state is WebSocketState.CONNECTING:
                    raise
                code, reason = REFUSED, problem.title
            await self._close(visit.scope, socket, code, reason)

    async def _introduced(self, row: Socket, visit: Visit, socket: WebSocket) -> Principal:
        """Accept a socket without a credential, and learn whose it is from its first frame."""
        with self._room_for_unknown(visit.scope):
            await _accept(visit, socket)
            try:
                async with time_limit(self._clock, INTRODUCTION_S):
                    secret = await _secret(row, socket)
                    principal = await self._gatekeeper.by_secret(secret) if secret else None
            except TimeoutError:
                raise Problem("timeout") from None
        if principal is None:
            raise refused(self._gatekeeper, visit.scope)
        if not row.lets_in(principal):
            raise Problem("forbidden")
        return principal

    @contextmanager
    def _room_for_unknown(self, scope: Scope) -> Generator[None, None, None]:
        client = scope.get("client")
        address = canonical_address(client[0] if client else "unknown")
        each = self._unknown.get(address, 0)
        if each >= UNKNOWN_EACH or sum(self._unknown.values()) >= UNKNOWN:
            raise Problem("too-many-requests", "too many sockets of nobody", retry_after_s=5)
        self._unknown[address] = each + 1
        try:
            yield
        finally:
            self._unknown[address] -= 1
            if not self._unknown[address]:
                del self._unknown[address]

    async def _talk(self, row: Socket, call: SocketCall) -> tuple[int, str]:
        """Return how to say goodbye when the row is done, the token gone or the server stopping."""
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        try:
            async with limit:
                with self._streams.hold(call.principal, lambda: limit.reschedule(loop.time())):
                    await self._streams.check(call.principal)
                    await row.answer(call)
        except (WebSocketDisconnect, Problem):
            raise
        except Exception as error:
            if limit.expired():
                is_stopping = self._streams.is_closed
                return (STOPPING, "") if is_stopping else (REFUSED, "The token is gone")
            note_bug(f"the socket at {row.path}", error)
            return BROKEN, ""
        return DONE, ""

    async def _close(self, scope: Scope, socket: WebSocket, code: int, reason: str) -> None:
        states = (socket.application_state, socket.client_state)
        if WebSocketState.DISCONNECTED in states:
            return
        try:
            async with time_limit(self._clock, CLOSE_S):
                await socket.close(code, reason)
        except TimeoutError:
            scope["state"][ABORT]()
        except WebSocketDisconnect:
            return


async def _accept(visit: Visit, socket: WebSocket) -> None:
    await socket.accept()
    visit.count(101)


async def _secret(row: Socket, socket: WebSocket) -> str | None:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"])
    frame = message.get("text") if message.get("text") is not None else message.get("bytes")
    assert row.token_in is not None
    return None if frame is None else row.token_in(frame)
