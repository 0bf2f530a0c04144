"""The guard: limits, host, origin and credential, before anything else sees a request."""

import ipaddress
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.access.gatekeeper import Gatekeeper
from wakeful.access.principal import Principal
from wakeful.doors.http.problems import Problem, problem_of
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.record import Record

COOKIE = "wakeful"
BODY_SECONDS = 10.0
CONNECTIONS_EACH = 256  # requests under way per address
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

# Answered without a credential; anything that is not here needs one.
PUBLIC = frozenset({"/healthz", "/readyz", "/api/login"})

_SECRET_NAMES = frozenset({"token", "access_token", "api_key", "apikey", "authorization"})


class GuardRules(Record):
    """What the guard lets through."""

    hosts: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]", "testserver"})
    origins: frozenset[str] = frozenset()
    largest_body: int = 1024 * 1024
    larger_bodies: dict[str, int] = {}  # by the end of the path


class Guard:
    """Default deny, in one place; requests come out with their principal."""

    def __init__(
        self, app: ASGIApp, gatekeeper: Gatekeeper, clock: Clock, rules: GuardRules
    ) -> None:
        self._app = app
        self._gatekeeper = gatekeeper
        self._clock = clock
        self._rules = rules
        self._under_way: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        address = _address(scope)
        try:
            self._enter(address)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        try:
            self._check_request(request)
            scope["principal"] = await self._principal(request, address)
            self._check_origin(request)
            body = _Body(receive, self._largest(scope["path"]), self._clock)
            await self._app(scope, body.receive, send)
        except Problem as problem:
            await problem.response()(scope, receive, send)
        except Exception as error:
            await problem_of(error).response()(scope, receive, send)
        finally:
            self._leave(address)

    def _enter(self, address: str) -> None:
        count = self._under_way.get(address, 0)
        if count >= CONNECTIONS_EACH:
            raise Problem("too-many-requests", "too many connections", retry_after_s=1)
        self._under_way[address] = count + 1

    def _leave(self, address: str) -> None:
        count = self._under_way[address] - 1
        if count:
            self._under_way[address] = count
        else:
            del self._under_way[address]

    def _check_request(self, request: Request) -> None:
        host = request.headers.get("host", "")
        if _host_name(host) not in self._rules.hosts:
            raise Problem("foreign-host", "the Host header names no host of ours")
        if _SECRET_NAMES & {name.lower() for name in request.query_params}:
            raise Problem("token-in-url")
        encoding = request.headers.get("content-encoding", "identity")
        if encoding not in ("", "identity"):
            raise Problem("unsupported-media-type", "the body must not be compressed")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._largest(request.url.path):
            raise Problem("too-large")

    async def _principal(self, request: Request, address: str) -> Principal | None:
        if request.url.path in PUBLIC:
            return None
        principal = await self._known(request)
        if principal is None:
            wait_s = self._gatekeeper.failed(address)
            if wait_s is not None:
                raise Problem("too-many-requests", "too many wrong tokens", retry_after_s=wait_s)
            raise Problem("unauthorized")
        return principal

    async def _known(self, request: Request) -> Principal | None:
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and secret.strip():
            return await self._gatekeeper.by_secret(secret.strip())
        cookie = request.cookies.get(COOKIE)
        return None if cookie is None else await self._gatekeeper.by_cookie(cookie)

    def _check_origin(self, request: Request) -> None:
        """Refuse what another site's page may have sent."""
        headers = request.headers
        origin = headers.get("origin")
        own = {f"{scheme}://{headers.get('host', '')}" for scheme in ("http", "https")}
        if origin is not None and origin not in own | self._rules.origins:
            raise Problem("foreign-origin", "the Origin header names another site")
        if request.method in SAFE:
            return
        has_bearer = "authorization" in headers
        is_own = origin is not None or headers.get("sec-fetch-site") in ("same-origin", "none")
        if not has_bearer and not is_own and request.url.path not in PUBLIC:
            raise Problem("foreign-origin", "an unsafe request needs our Origin or a bearer token")
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if has_body and media_type != "application/json":
            raise Problem("unsupported-media-type")

    def _largest(self, path: str) -> int:
        for ending, size in self._rules.larger_bodies.items():
            if path.endswith(ending):
                return size
        return self._rules.largest_body


class _Body:
    """A body that must arrive whole, in time and within its size."""

    def __init__(self, receive: Receive, largest: int, clock: Clock) -> None:
        self._receive = receive
        self._largest = largest
        self._clock = clock
        self._size = 0
        self._is_whole = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        try:
            async with time_limit(self._clock, BODY_SECONDS):
                message = await self._receive()
        except TimeoutError:
            raise Problem("timeout") from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > self._largest:
                raise Problem("too-large")
            self._is_whole = not message.get("more_body", False)
        return message


def _address(scope: Scope) -> str:
    """Return one spelling of the peer's address; nothing is granted by it."""
    client = scope.get("client")
    if not client:
        return "unknown"
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        return str(client[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        # One customer has a whole network of these.
        return str(ipaddress.ip_network(f"{address}/64", strict=False))
    return str(address)


def _host_name(host: str) -> str:
    """Return a Host header without its port, in lower case."""
    try:
        parts = urlsplit(f"//{host}")
        name = parts.hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name
