"""Connections: bounded in number, in the time and size of their headers, and cut off on request."""

import resource
import sys
from asyncio import BaseTransport, Transport
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from wakeful.doors.http.addresses import canonical_address
from wakeful.doors.http.forwarding import Proxies
from wakeful.doors.http.gathering import Gathering
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.state import ABORT, WHOLE
from wakeful.doors.http.table import Table
from wakeful.doors.http.unsent import Unsent
from wakeful.vocabulary.clock import Alarm, Clock

HEADER_SECONDS = 10.0
LARGEST_HEAD = 64 * 1024  # bytes of the request line and the headers together
SMALL_BODY = 64 * 1024  # one read; within nearly every limit, and then not measured again
CONNECTIONS_EACH = 512  # per address
CONNECTIONS = 2048
OWN_FILES = 128  # left to the rest of the process: database, tools, log


def room() -> int:
    """Return how many connections this process has files for, beside those it needs itself."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return CONNECTIONS
    return min(CONNECTIONS, max(files - OWN_FILES, files // 4))


class Connections:
    """How many connections there are, and from where."""

    def __init__(self, clock: Clock, proxies: Proxies, table: Table) -> None:
        self.clock = clock
        self.table = table  # says which paths are WebSockets, and how a refusal is told
        self.unsent = Unsent(clock)
        self.silent: dict[HttpConnection, None] = {}  # nothing is done for these, oldest first
        self._most = room()
        self._proxies = proxies
        self._count: dict[str, int] = {}
        self._total = 0

    def enter(self, peer: str) -> str:
        """Count a connection; return the name it counts under, or raise the refusal.

        When there is no room, whoever has been silent the longest makes some, of the same address
        where that one has too many: connections that ask for nothing must not keep out those that
        do, whether they never spoke or are done.
        """
        address = canonical_address(peer)
        # Behind a proxy's address are many clients.
        most = self._most if self._proxies.trusts(peer) else CONNECTIONS_EACH
        if self._count.get(address, 0) >= most:
            problem = Problem("too-many-requests", "too many connections", retry_after_s=1)
            self._make_room((one for one in self.silent if one.address == address), problem)
        elif self._total >= self._most:
            self._make_room(iter(self.silent), _no_room())
        self._total += 1
        self._count[address] = self._count.get(address, 0) + 1
        return address

    def _make_room(self, silent: Iterator["HttpConnection"], refusal: Problem) -> None:
        oldest = next(silent, None)
        if oldest is None:
            raise refusal
        oldest.give_way()

    def leave(self, address: str) -> None:
        self._total -= 1
        self._count[address] -= 1
        if not self._count[address]:
            del self._count[address]


def protocol(connections: Connections) -> Callable[..., HttpToolsProtocol]:
    """Return what makes the connections of one server."""

    class Bound(HttpConnection):
        _connections = connections

    return Bound


class HttpConnection(HttpToolsProtocol):
    """One connection; uvicorn's own waits for headers for ever and takes them at any length."""

    _connections: Connections
    address: str | None = None  # that it counts under; None: it does not count, or no longer
    _alarm: Alarm | None = None
    _is_head_open = True  # headers are expected, or under way
    url = b""  # as far as it came
    _head = 0
    _unread = 0  # bytes since the parser last got anywhere: it gathers a line until it ends

    def connection_made(self, transport: BaseTransport) -> None:
        line = Gathering(cast("Transport", transport), self.loop, self._connections.unsent)
        super().connection_made(cast("Any", line))
        try:
            self.address = self._connections.enter(self.client[0] if self.client else "unknown")
        except Problem as problem:
            self._refuse(problem)
            return
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_came()
        self._connections.unsent.forget(cast("Any", self.transport))
        if self.address is not None:
            self._connections.leave(self.address)
            self.address = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unread += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.address is None:
            return
        if self._unread > LARGEST_HEAD:
            self._refuse(Problem("headers-too-large"))
        # Most requests come whole: only what is still to come needs an alarm. So does whatever
        # comes after an answer, since each byte of it stops uvicorn's own.
        elif self._alarm is None and (self._is_head_open or self._is_idle):
            self._expect_headers()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._is_head_open = True
        self.scope.setdefault("state", {})[ABORT] = self.transport.abort

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._head += len(url)
        if self._head > LARGEST_HEAD:
            self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_head_open:
            self._refuse(Problem("bad-request", "headers after the body are not taken"))
            return
        super().on_header(name, value)
        self._head += len(name) + len(value)
        if self._head > LARGEST_HEAD:
            self._refuse_head()

    def on_headers_complete(self) -> None:
        self._headers_came()
        self._unread = 0
        if self._names_two_hosts():
            self._refuse(Problem("foreign-host", "the address names another host than Host does"))
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        if self.transport.is_closing():
            return
        # Before an upgrade there is no cycle, or one of an earlier request.
        is_own = self.cycle and self.cycle.scope is self.scope
        if is_own and len(self.cycle.body) <= SMALL_BODY:
            self.scope.setdefault("state", {})[WHOLE] = True
        super().on_message_complete()

    def _names_two_hosts(self) -> bool:
        """Tell whether the request is written as to a proxy, and not for the host of its header."""
        _, is_whole, rest = self.url.partition(b"://")
        authority = rest.partition(b"/")[0]
        is_path = self.url.startswith(b"/") or not is_whole
        return not is_path and (b"host", authority) not in self.headers

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_idle and not self.transport.is_closing():
            self._connections.silent[self] = None

    def _should_upgrade_to_ws(self) -> bool:
        """Upgrade where the table has a WebSocket; elsewhere the request is one like any other."""
        is_alone = not self.cycle or self.cycle.response_complete
        path = self.url.partition(b"?")[0]
        is_possible = super()._should_upgrade_to_ws()
        return is_possible and is_alone and self._connections.table.is_socket(path)

    def handle_websocket_upgrade(self) -> None:
        """Hand the transport over, and with it the duty to count the connection off."""
        make, connections, address = self.ws_protocol_class, self._connections, self.address
        assert make is not None
        assert address is not None
        left = partial(connections.leave, address)
        self.ws_protocol_class = partial(make, clock=connections.clock, left=left)
        super().handle_websocket_upgrade()
        self.address = None

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: it is answered like any other request, and anybody can fill a log."""

    def send_400_response(self, msg: str) -> None:
        """Blame the sender of what could not be parsed, unless it was memory that was missing."""
        error = sys.exc_info()[1]
        is_short = error is not None and isinstance(error.__context__, MemoryError)
        self._refuse(_no_room() if is_short else Problem("bad-request", msg))

    def give_way(self) -> None:
        """Leave the room to somebody else: nothing is being done here."""
        self._headers_came()
        if self.cycle:
            self._leave()
        else:
            self._refuse(_no_room())

    @property
    def _is_idle(self) -> bool:
        """Whether no answer is under way; the rest of a body that nobody wants may be."""
        return not self.cycle or self.cycle.response_complete

    def _refuse_head(self) -> None:
        self._refuse(Problem("headers-too-large"))

    def _expect_headers(self) -> None:
        self._alarm = self._connections.clock.call_later(HEADER_SECONDS, self._late)
        self._connections.silent[self] = None

    def _headers_came(self) -> None:
        self._is_head_open = False
        self._connections.silent.pop(self, None)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _late(self) -> None:
        is_asking = self._is_head_open
        self._headers_came()
        if is_asking:
            self._refuse(Problem("timeout"))
        else:
            self._leave()

    def _leave(self) -> None:
        """Close without a word: whatever was asked here has been answered."""
        self.transport.close()
        if self.transport.get_write_buffer_size():  # and nobody takes the answer
            self.transport.abort()

    def _refuse(self, problem: Problem) -> None:
        if self.transport.is_closing():
            return
        if self.cycle and self.cycle.response_started != self.cycle.response_complete:
            self.transport.abort()  # inside an answer there is no place for another
            return
        response = self._connections.table.refusal(self.url.partition(b"?")[0], problem)
        response.headers["connection"] = "close"
        lines = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
        head = b"HTTP/1.1 %d Refused\r\n%b\r\n" % (response.status_code, lines)
        self.transport.write(head + bytes(response.body))
        self.transport.close()


def _no_room() -> Problem:
    return Problem("unavailable", "there is no room for more", retry_after_s=1)
