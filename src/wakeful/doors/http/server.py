"""The server: listens for one app until it is cancelled."""

import asyncio
import errno
import ipaddress
import logging
import socket
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from wakeful.access.gatekeeper import MEGABYTES_PER_DAY, SESSIONS_PER_HOUR
from wakeful.doors.http.connection import Connections, protocol
from wakeful.doors.http.forwarding import Proxies
from wakeful.doors.http.headers import ALWAYS
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.table import Table
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Permanent
from wakeful.vocabulary.record import Record

DEFAULT_PORT = 8484
GRACE_S = 2  # for answers under way when the server stops
IDLE_S = 30  # until a connection without a request is closed
UNHEARD_S = 30  # until a connection is cut whose other side does not even acknowledge packets
PING_S = 30  # between two questions whether a WebSocket is still there
PONG_S = 40  # until one that does not answer is closed
BACKLOG = 1024

# What uvicorn says of requests that it cannot read: whoever sent them is told, and the log is not
# theirs to fill.
_OF_CLIENTS = frozenset(
    {"Invalid HTTP request received.", "Invalid UTF-8 sequence received from client."}
)


class HttpOptions(Record):
    """Where the server listens, and under which names; port 0: any free one."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks
    sessions_per_hour: int = SESSIONS_PER_HOUR  # that one token may make
    megabytes_per_day: int = MEGABYTES_PER_DAY  # that one token may send
    operator_token: str | None = None  # chosen by the operator; None: the one in the home folder


class HttpServer:
    """A service; the port is taken when it is made, so that a failure stops the start."""

    def __init__(
        self,
        app: ASGIApp,
        table: Table,
        options: HttpOptions,
        clock: Clock,
        streams: OpenStreams,
        *,
        beside: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    ) -> None:
        self._streams = streams
        self._beside = beside  # services that run for as long as the server
        self._socket = _bound(options)
        name = self._socket.getsockname()
        self.host: str = name[0]
        self._port: int = name[1]
        logging.getLogger("uvicorn.error").addFilter(_is_ours)
        connections = Connections(clock, Proxies(options.trusted_proxies), table)
        self._server = _Server(
            uvicorn.Config(
                app,
                http=protocol(connections),  # pyright: ignore[reportArgumentType]
                ws=_websockets() if table.has_sockets else "none",
                ws_ping_interval=PING_S,
                ws_ping_timeout=PONG_S,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                log_level="warning",  # its starts and stops are the runtime's, which tells them
                access_log=False,
                proxy_headers=False,
                server_header=False,
                headers=ALWAYS,
                timeout_keep_alive=IDLE_S,
                timeout_graceful_shutdown=GRACE_S,
                backlog=BACKLOG,
            )
        )

    @property
    def port(self) -> int:
        """The port, also when any free one was asked for."""
        return self._port

    @property
    def url(self) -> str:
        """The address as a person on this machine would type it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    async def run(self) -> None:
        """Serve until cancelled; then end what lasts and let the rest finish, for a moment."""
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(run(), name="beside the server") for run in self._beside]
            serving = group.create_task(self._server.serve(sockets=[self._socket]), name="uvicorn")
            try:
                await asyncio.Event().wait()
            finally:
                self._streams.close()
                self._server.should_exit = True
                await serving
                for task in beside:
                    task.cancel()

    def close(self) -> None:
        """Give the port back, also if the server never ran."""
        self._socket.close()


class _Server(uvicorn.Server):
    """Leaves signals to the runtime."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _is_ours(record: logging.LogRecord) -> bool:
    """Tell whether a record is about the server, and not about what anybody sent."""
    return record.msg not in _OF_CLIENTS


def _websockets() -> type[asyncio.Protocol]:
    # The library takes time and memory: only who has sockets pays for it.
    from wakeful.doors.http.upgraded import Upgraded

    return Upgraded


def _bound(options: HttpOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # By its number: the event loop switches Nagle's delay off only where it sees TCP named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; its connections inherit it
            # A keep-alive fits into any buffer: only the kernel knows that nobody takes it.
            timeout_ms = UNHEARD_S * 1000
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, timeout_ms)
        listener.bind((options.host.strip("[]"), options.port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        where = f"{options.host}:{options.port}"
        advice = "; stop what runs there, or choose another (`server.port`, WAKEFUL_PORT)"
        hint = advice if error.errno == errno.EADDRINUSE else ""
        raise Permanent(f"cannot listen on {where}: {error.strerror or error}{hint}") from error
    return listener


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
