"""The app: finds the endpoint of a request in the table, asks for its scope, has it answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from urllib.parse import unquote_to_bytes

from prometheus_client import CollectorRegistry, Counter
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from wakeful.access.principal import Principal
from wakeful.doors.http.endpoint import FORM, PLAIN_BODY, BodyRule, Endpoint, respond
from wakeful.doors.http.problems import Problem, problem_of
from wakeful.vocabulary.stimulus import Trust

NOBODY = Principal(token_id="", name="", scopes=(), owner="", trust=Trust.EXTERNAL)

_PLACE = "wakeful.place"  # in a scope: where in the table its path leads


@dataclass
class _Branch:
    """The endpoints whose paths begin alike."""

    words: dict[str, "_Branch"] = dataclass_field(default_factory=dict[str, "_Branch"])
    any: "_Branch | None" = None
    name: str = ""  # of the parameter that led here
    methods: dict[str, Endpoint] = dataclass_field(default_factory=dict[str, Endpoint])
    body: BodyRule = PLAIN_BODY


class App:
    """An ASGI app made of a table; what is not in the table answers 404.

    Paths are split before they are decoded, so that no %2F can move a border.
    """

    def __init__(self, table: Sequence[Endpoint], registry: CollectorRegistry) -> None:
        self._root = _Branch()
        for endpoint in table:
            self._add(endpoint)
        self._requests = Counter(
            "wakeful_http_requests",
            "Requests answered, by route and status.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._counters: dict[tuple[str, str, int], Counter] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the guard has put its principal into the scope."""
        endpoint: Endpoint | None = None
        try:
            endpoint, path = self._find(scope)
            principal: Principal = scope["principal"] or NOBODY
            if not endpoint.lets_in(principal):
                raise Problem("forbidden", f"this needs the scope {endpoint.scope!r}")
            response = await respond(endpoint, Request(scope, receive), path, principal)
        except Exception as error:
            response = problem_of(error).response()
        self._count(endpoint, response.status_code)
        await response(scope, receive, send)

    def as_seen_by(self, principal: Principal) -> ASGIApp:
        """Return the app without a guard, for a caller who is known already to be this one."""

        async def seen(scope: Scope, receive: Receive, send: Send) -> None:
            inside = {**scope, "principal": principal}
            self.body_rule(inside)  # which looks up where the path leads
            await self(inside, receive, send)

        return seen

    def body_rule(self, scope: Scope) -> BodyRule:
        """Return what may be sent to a path, before anybody knows who sends it."""
        branch, _ = scope[_PLACE] = self._walk(scope["raw_path"])
        return branch.body if branch and branch.methods else PLAIN_BODY

    def _count(self, endpoint: Endpoint | None, status: int) -> None:
        method, route = (endpoint.method, endpoint.path) if endpoint else ("none", "none")
        counter = self._counters.get((method, route, status))
        if counter is None:
            counter = self._requests.labels(method, route, str(status))
            self._counters[method, route, status] = counter
        counter.inc()

    def _add(self, endpoint: Endpoint) -> None:
        branch = self._root
        for word in endpoint.path.strip("/").split("/"):
            if word.startswith("{"):
                branch.any = branch.any or _Branch(name=word.strip("{}"))
                branch = branch.any
            else:
                branch = branch.words.setdefault(word, _Branch())
        if endpoint.method in branch.methods:
            raise ValueError(f"two endpoints answer {endpoint.method} {endpoint.path}")
        branch.methods[endpoint.method] = endpoint
        branch.body = BodyRule(
            largest=max(branch.body.largest, endpoint.largest_body),
            streamed=endpoint.streamed or branch.body.streamed,
            form=FORM if endpoint.read_form else branch.body.form,
        )

    def _find(self, scope: Scope) -> tuple[Endpoint, dict[str, str]]:
        branch, path = scope[_PLACE]
        if branch is None or not branch.methods:
            raise Problem("not-found")
        method = scope["method"]
        found = branch.methods.get(method)
        if method == "HEAD":
            found = branch.methods.get("GET")
            found = None if found is None or found.streams else found
        if found is None:
            allowed = ", ".join(sorted(branch.methods))
            raise Problem("method-not-allowed", headers={"Allow": allowed})
        return found, path

    def _walk(self, raw_path: bytes) -> tuple[_Branch | None, dict[str, str]]:
        branch = self._root
        path: dict[str, str] = {}
        if not raw_path.startswith(b"/"):
            return None, path
        for raw in raw_path[1:].split(b"/"):
            try:
                word = (unquote_to_bytes(raw) if b"%" in raw else raw).decode()
            except UnicodeDecodeError:
                return None, path
            if (known := branch.words.get(word)) is not None:
                branch = known
            elif branch.any is not None and word:
                branch = branch.any
                path[branch.name] = word
            else:
                return None, path
        return branch, path
