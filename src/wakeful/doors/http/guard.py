"""The guard: limits, host, origin and credential, before anything else sees a request."""

import re

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.access.gatekeeper import Gatekeeper
from wakeful.access.principal import Principal
from wakeful.access.tokens import PREFIX
from wakeful.doors.http.addresses import canonical_address
from wakeful.doors.http.arriving import Arriving
from wakeful.doors.http.connection import SMALL_BODY
from wakeful.doors.http.endpoint import BodyRule, Row
from wakeful.doors.http.forwarding import FORWARDED_SCHEME, Proxies
from wakeful.doors.http.problems import Problem, problem_of
from wakeful.doors.http.state import WHOLE
from wakeful.doors.http.table import Table
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.record import Record

COOKIE = "wakeful"
OUTSIDE = (  # for a person who is not signed in, whatever page they ask for
    '<!doctype html><html lang="en"><title>wakeful</title>'
    '<p>You are not signed in here: <a href="/">sign in</a>.</p></html>'
)
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

NO_PROXIES = Proxies()

_LOCAL = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_SECRET = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{20,}}")  # as we make them, whatever it is called
_SECRET_NAMES = frozenset({"token", "access_token", "api_key", "apikey", "authorization", "code"})


class GuardRules(Record):
    """What the guard lets through, beside the machine's own names."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    proxies: Proxies = NO_PROXIES


class Guard:
    """Default deny, in one place; requests come out with their row and their principal."""

    def __init__(
        self, app: ASGIApp, table: Table, gatekeeper: Gatekeeper, clock: Clock, rules: GuardRules
    ) -> None:
        self._app = app
        self._table = table
        self._gatekeeper = gatekeeper
        self._arriving = Arriving(clock)
        self.follow(rules)

    def follow(self, rules: GuardRules) -> None:
        """Let through what these rules say, from now on."""
        self._hosts = _LOCAL | {host.lower() for host in rules.hosts}
        self._origins = rules.origins
        self._proxies = rules.proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._proxies:
                self._proxies.believe(scope)
            headers = _read_headers(scope)
            self._check_host(headers["host"])
            if scope["query_string"]:
                _refuse_secrets(HTTPConnection(scope))
            place = self._table.find(scope)
            is_http = scope["type"] == "http"
            if is_http:
                _check_body(scope["method"], headers, place.body)
            scope["principal"], is_bearer = await self._principal(scope, headers, place.row)
            self._check_origin(scope, headers, is_bearer=is_bearer)
            is_small = place.body.largest >= SMALL_BODY and WHOLE in scope.get("state", ())
            del headers  # what comes now may last for days
            if is_small or not is_http:
                await self._app(scope, receive, send)
                return
            with self._arriving.body(receive, send, place.body, scope["principal"]) as body:
                await self._app(scope, body.receive, body.send)
        except Exception as error:
            problem = problem_of(error)
            if problem.code == "unauthorized" and _is_visit(scope):
                response = Response(OUTSIDE, problem.status, problem.headers, "text/html")
            else:
                response = self._table.refusal(scope["raw_path"], problem)
            await response(scope, receive, send)

    def _check_host(self, host: str) -> None:
        match = _HOST.fullmatch(host.lower())
        if match is None or match[1] not in self._hosts:
            raise Problem("foreign-host", "the Host header names no host of ours")

    async def _principal(
        self, scope: Scope, headers: dict[str, str], row: Row | None
    ) -> tuple[Principal | None, bool]:
        """Return who asks, and whether they showed a bearer token, which no browser adds."""
        if row is not None and row.is_open:
            return None, False
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer"
        if is_bearer:
            principal = await self._gatekeeper.by_secret(secret.strip())
        else:
            cookie = HTTPConnection(scope).cookies.get(COOKIE)
            if not (cookie or scheme) and row is not None and row.may_introduce_later:
                return None, False
            principal = None if not cookie else await self._gatekeeper.by_cookie(cookie)
        if principal is None:
            raise refused(self._gatekeeper, scope)
        return principal, is_bearer

    def _check_origin(self, scope: Scope, headers: dict[str, str], *, is_bearer: bool) -> None:
        """Refuse what another site's page may have sent."""
        origin = headers.get("origin")
        host = headers["host"]
        # Only a trusted proxy knows which of the two a browser speaks.
        schemes = (scope[FORWARDED_SCHEME],) if FORWARDED_SCHEME in scope else ("http", "https")
        own = {f"{scheme}://{host}" for scheme in schemes}
        if origin is not None and origin not in self._origins | own:
            raise Problem("foreign-origin", "the Origin header names another site")
        if is_bearer:
            return
        fetch_site = headers.get("sec-fetch-site")
        is_foreign = fetch_site in ("cross-site", "same-site") and origin not in self._origins
        if is_foreign and not _follows_link(scope, headers):
            raise Problem("foreign-origin", "another site's page asks")
        if scope["principal"] is None:
            return
        # A browser adds the cookie by itself, whoever made it ask.
        if scope["type"] == "websocket":
            is_own = origin is not None
        else:
            is_own = origin is not None or fetch_site in ("same-origin", "none")
            is_own = is_own or scope["method"] in SAFE
        if not is_own:
            raise Problem("foreign-origin", "the cookie needs our Origin, or use a bearer token")


def _is_visit(scope: Scope) -> bool:
    """Tell whether a person's browser asks for a page."""
    headers = dict(scope["headers"])
    modes = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest"))
    return scope["type"] == "http" and modes == (b"navigate", b"document")


def _follows_link(scope: Scope, headers: dict[str, str]) -> bool:
    """Tell whether a browser leaves another site for a page of ours that everybody may see."""
    is_page = scope["principal"] is None and scope["type"] == "http" and scope["method"] == "GET"
    modes = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return is_page and modes == ("navigate", "document")


def _read_headers(scope: Scope) -> dict[str, str]:
    """Read the headers once; each that is given twice counts as its last, a host as none."""
    headers: dict[str, str] = {"host": ""}
    for name, value in scope["headers"]:
        if name == b"host" and headers["host"]:
            raise Problem("foreign-host", "there are two Host headers")
        headers[name.decode("latin-1")] = value.decode("latin-1")
    return headers


def refused(gatekeeper: Gatekeeper, scope: Scope, detail: str = "") -> Problem:
    """Count a wrong secret against the address it came from, and say what to answer."""
    client = scope.get("client")
    wait_s = gatekeeper.failed(canonical_address(client[0] if client else "unknown"))
    if wait_s is not None:
        rule = "too many wrong tokens or signatures from this address"
        return Problem("too-many-requests", rule, retry_after_s=wait_s)
    return Problem("unauthorized", detail)


def _refuse_secrets(request: HTTPConnection) -> None:
    given = request.query_params.multi_items()
    if _SECRET_NAMES & {name.lower() for name, _ in given}:
        raise Problem("token-in-url")
    if any(_SECRET.search(text) for pair in given for text in pair):
        raise Problem("token-in-url")


def _check_body(method: str, headers: dict[str, str], rule: BodyRule) -> None:
    if headers.get("content-encoding", "identity") not in ("", "identity"):
        raise Problem("unsupported-media-type", "the body must not be compressed")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()):
        raise Problem("bad-request", "Content-Length is no number")
    if int(length[:20]) > rule.largest:
        raise Problem("too-large")
    has_body = int(length[:20]) > 0 or "transfer-encoding" in headers
    if has_body and method not in SAFE:
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not rule.takes(media_type):
            wanted = " or ".join(sorted(rule.media_types))
            raise Problem("unsupported-media-type", f"send the header Content-Type: {wanted}")
