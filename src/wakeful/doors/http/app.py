"""The app: asks for the scope of the row where a request leads, and has it answered."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Counter
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.access.principal import Principal
from wakeful.doors.http.endpoint import SOCKET, Endpoint, Row, respond
from wakeful.doors.http.headers import add_defaults
from wakeful.doors.http.problems import Problem, problem_of
from wakeful.doors.http.table import RowMatch, Table, place_of
from wakeful.vocabulary.stimulus import Trust

NOBODY = Principal(token_id="", name="", scopes=(), owner="", trust=Trust.EXTERNAL)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request that was let through to a row which writes its answers itself."""

    place: RowMatch
    principal: Principal | None  # None: whoever it is must still say so
    scope: Scope
    receive: Receive
    send: Send
    count: Callable[[int], None]  # to be told the status as soon as it is sent


# Answers what is no endpoint; it raises refusals for as long as nothing was sent.
Serve = Callable[[Visit], Awaitable[None]]


class App:
    """An ASGI app made of a table; the guard has found the row and put the principal beside it."""

    def __init__(
        self,
        table: Table,
        registry: CollectorRegistry,
        others: Mapping[type[Row], Serve] | None = None,
    ) -> None:
        self._table = table
        self._others = others or {}
        self._requests = Counter(
            "wakeful_http_requests",
            "Requests answered, by route and status.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._counters: dict[tuple[str, str, int], Counter] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place, principal = place_of(scope), scope["principal"]
        row = place.row
        try:
            if row is None:
                raise _nowhere(place)
            if not row.lets_in(principal):
                raise _refusal(row)
            if not isinstance(row, Endpoint):
                count = partial(self._count, row)
                visit = Visit(place, principal, scope, receive, send, count)
                await self._others[type(row)](visit)
                return
            with row.admitted(scope, place.path):
                request = Request(scope, receive)
                response = await respond(row, request, place.path, principal or NOBODY)
            add_defaults(response.raw_headers)
        except Exception as error:
            response = self._table.refusal(scope["raw_path"], problem_of(error))
        self._count(row, response.status_code)
        await response(scope, receive, send)

    def as_seen_by(self, principal: Principal) -> ASGIApp:
        """Return the app without a guard, for a caller who is known already to be this one."""

        async def seen(scope: Scope, receive: Receive, send: Send) -> None:
            inside = {**scope, "principal": principal}
            self._table.find(inside)
            await self(inside, receive, send)

        return seen

    def _count(self, row: Row | None, status: int) -> None:
        method, route = (row.method, row.path) if row else ("none", "none")
        counter = self._counters.get((method, route, status))
        if counter is None:
            counter = self._requests.labels(method, route, str(status))
            self._counters[method, route, status] = counter
        counter.inc()


def _refusal(row: Row) -> Problem:
    if row.is_hidden:
        return Problem("not-found")
    return Problem("forbidden", f"this needs the scope {row.scope!r}")


def _nowhere(place: RowMatch) -> Problem:
    if not place.methods:
        return Problem("not-found")
    if place.methods == (SOCKET,):
        return Problem("upgrade-required", headers={"Upgrade": "websocket"})
    allowed = ", ".join(sorted(method for method in place.methods if method != SOCKET))
    return Problem("method-not-allowed", headers={"Allow": allowed})
