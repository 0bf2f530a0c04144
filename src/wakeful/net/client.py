"""The client: one request, one connection, one answer.

A connection serves one request and is closed, so that nothing one caller may reach is left open
for another. There is no jar of cookies, no decoding, no proxy and no redirect to switch off: this
is built on the layer below those.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from typing import Any

import httpcore2

from wakeful.net.addresses import NOBODY, Allowed
from wakeful.net.guard import Resolver, system_resolver
from wakeful.net.target import Target, parse
from wakeful.net.wire import Observer, Patience, Wire
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import InvalidInput, Transient
from wakeful.vocabulary.record import Record

MOST_BYTES = 1024 * 1024  # of an answer's body
USER_AGENT = "wakeful"

# What callers may say; the client itself says Host, Content-Length, Connection, Accept-Encoding.
SENT_HEADERS = frozenset(
    {
        "accept",
        "authorization",
        "content-type",
        "idempotency-key",
        "user-agent",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
    }
)
HEARD_HEADERS = frozenset({"content-type", "location", "retry-after"})

_METHOD = re.compile(r"DELETE|GET|HEAD|PATCH|POST|PUT")
_VALUE = re.compile(r"[\x21-\x7e]+( +[\x21-\x7e]+)*")


class HttpRequest(Record):
    """What is asked of whom."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    allowed: Allowed = NOBODY
    most_bytes: int = MOST_BYTES  # 0: only the status and the headers are wanted


class HttpResponse(Record):
    """What came back; any status, redirects included."""

    status: int
    headers: Mapping[str, str]  # the few that mean something to us, names in small letters
    body: bytes
    is_whole: bool  # False: more was there than was wanted


class Client:
    """The only code that connects to other machines by HTTP."""

    def __init__(
        self,
        clock: Clock,
        *,
        patience: Patience | None = None,
        resolver: Resolver = system_resolver,
        dialer: httpcore2.AsyncNetworkBackend | None = None,
        observer: Observer | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._clock = clock
        self._patience = patience or Patience()
        self._resolver = resolver
        self._dialer = dialer or _sockets()
        self._observer = observer
        self._tls = tls

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Return the answer; raise InvalidInput for a request that may not be sent, Permanent for
        an address that may not be reached, Transient when there is no answer this time.
        """
        target = parse(request.url)
        sent = _wire_form(request, target)
        with _translated(target):
            async with (
                time_limit(self._clock, self._patience.total_s),
                self._connection(target, request.allowed) as connection,
            ):
                return await _exchange(connection, sent, request.most_bytes)

    @asynccontextmanager
    async def _connection(
        self, target: Target, allowed: Allowed
    ) -> AsyncGenerator[httpcore2.AsyncHTTPConnection, None]:
        if target.scheme == "https" and self._tls is None:
            # Reading the authorities of the machine takes longer than the loop may stand still.
            self._tls = await asyncio.to_thread(ssl.create_default_context)
        wire = Wire(
            clock=self._clock,
            patience=self._patience,
            allowed=allowed,
            resolver=self._resolver,
            dialer=self._dialer,
            observer=self._observer,
        )
        origin = httpcore2.Origin(target.scheme.encode(), target.host.encode(), target.port)
        async with httpcore2.AsyncHTTPConnection(
            origin, ssl_context=self._tls, network_backend=wire
        ) as connection:
            yield connection


def _sockets() -> httpcore2.AsyncNetworkBackend:
    sockets: Any = httpcore2.AnyIOBackend()  # declared as if anyio might be missing
    return sockets


async def _exchange(
    connection: httpcore2.AsyncHTTPConnection, sent: httpcore2.Request, most_bytes: int
) -> HttpResponse:
    response = await connection.handle_async_request(sent)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(response.aclose)
        body, is_whole = bytearray(), most_bytes > 0
        if most_bytes > 0:
            chunks = await stack.enter_async_context(aclosing(response.aiter_stream()))
            async for chunk in chunks:
                body += chunk
                if len(body) > most_bytes:
                    is_whole = False
                    break
        return HttpResponse(
            status=response.status,
            headers=_heard(response.headers),
            body=bytes(body[:most_bytes]),
            is_whole=is_whole,
        )


def _wire_form(request: HttpRequest, target: Target) -> httpcore2.Request:
    """Return the request as it is sent, with the headers that are ours to say."""
    if _METHOD.fullmatch(request.method) is None:
        raise InvalidInput("method", "must be DELETE, GET, HEAD, PATCH, POST or PUT")
    said = {"user-agent": USER_AGENT, **{name.lower(): v for name, v in request.headers.items()}}
    for name, value in said.items():
        if name not in SENT_HEADERS:
            raise InvalidInput("headers", f"{name[:60]!r} may not be sent")
        if _VALUE.fullmatch(value) is None:
            raise InvalidInput("headers", f"{name!r} must be printable ASCII on one line")
    own = {
        "Host": target.place,
        "Connection": "close",
        "Accept-Encoding": "identity",  # a small answer stays small
        "Content-Length": str(len(request.body)),
    }
    return httpcore2.Request(
        request.method,
        httpcore2.URL(
            scheme=target.scheme.encode(),
            host=target.host.encode(),
            port=target.port,
            target=target.path.encode(),
        ),
        headers=[(k.encode(), v.encode()) for k, v in (*own.items(), *said.items())],
        content=request.body,
    )


def _heard(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name = raw_name.decode("latin-1").lower()
        if name in HEARD_HEADERS:
            found.setdefault(name, raw_value.decode("latin-1"))
    return found


@contextmanager
def _translated(target: Target) -> Generator[None]:
    """Turn what the network says into our words, naming the host and never the path."""
    host = repr(target.host)
    try:
        yield
    except (TimeoutError, httpcore2.TimeoutException) as error:
        raise Transient(f"{host} took too long") from error
    except httpcore2.ConnectError as error:
        if _is_about_certificate(error):
            raise Transient(f"{host} has a certificate that cannot be trusted") from error
        raise Transient(f"{target.place!r} cannot be connected to") from error
    except (httpcore2.NetworkError, OSError) as error:
        raise Transient(f"{host} broke the connection") from error
    except httpcore2.ProtocolError as error:
        raise Transient(f"{host} does not speak HTTP/1.1") from error


def _is_about_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__
    return False
