"""Looking without a server: the routes that only look, over a database that is only read."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast
from urllib.parse import unquote, urlencode

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Message, Scope

from wakeful.access.credentials import Credentials
from wakeful.access.gatekeeper import Gatekeeper
from wakeful.access.principal import Principal
from wakeful.assembly.views import Cards, views_over
from wakeful.bus.bus import Bus
from wakeful.cli.client import answered
from wakeful.cli.exits import Unreachable
from wakeful.doors.http.activity import ActivityEndpoints
from wakeful.doors.http.agents import AgentEndpoints
from wakeful.doors.http.app import App
from wakeful.doors.http.approvals import ApprovalEndpoints
from wakeful.doors.http.attachments import Attachments
from wakeful.doors.http.automations import AutomationEndpoints
from wakeful.doors.http.budgets import BudgetEndpoints
from wakeful.doors.http.endpoint import Endpoint
from wakeful.doors.http.forecast import ForecastEndpoints
from wakeful.doors.http.inbox import InboxEndpoints
from wakeful.doors.http.notices import NoticeEndpoints
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.quiet import QuietEndpoints
from wakeful.doors.http.search import Search
from wakeful.doors.http.sessions import Sessions
from wakeful.doors.http.stimuli import Stimuli
from wakeful.doors.http.table import Table
from wakeful.doors.http.tokens import TokenEndpoints
from wakeful.doors.http.turns import Turns
from wakeful.doors.http.usage import UsageEndpoints
from wakeful.gate.days import Days
from wakeful.intake.bindings import Bindings
from wakeful.settings.load import Loaded
from wakeful.store.database import Lock, Row, Store, Tx, Verb
from wakeful.store.full_text import SQLITE_FULL_TEXT
from wakeful.store.opening import is_postgres
from wakeful.store.sqlite import open_read_only
from wakeful.store.sqlite_connection import SqliteReader
from wakeful.tools.builtin import default_tools
from wakeful.tools.toolbox import Toolbox
from wakeful.transcript.jsonl.exporting import export, source
from wakeful.turn.agent import Agent, model_name
from wakeful.views.agents import AgentCard, ServerStatus
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import StoreRefused
from wakeful.vocabulary.forecast import USUAL_DAYS, Forecast
from wakeful.vocabulary.ids import Ids

T = TypeVar("T")


def offline(loaded: Loaded, database: Path, clock: Clock) -> "Offline":
    """Return what reads the database, if it is one that can be read without a server."""
    if is_postgres(loaded.settings.database):
        raise Unreachable("no server runs, and PostgreSQL is read through one; start `wakeful up`")
    return Offline(loaded, database, clock)


class Offline:
    """Answers what a server would, as long as nothing has to be changed for it."""

    def __init__(self, loaded: Loaded, database: Path, clock: Clock) -> None:
        self._loaded = loaded
        self._database = database
        self._clock = clock

    def get(self, path: str, **query: object) -> Any:
        """Answer a GET; raise as the client does."""
        params = {name: str(value) for name, value in query.items() if value is not None}
        with open_read_only(self._existing()) as reader:
            response = asyncio.run(self._ask(ReadOnlyStore(reader, self._clock), path, params))
        return answered(*response, "http://offline")

    @contextmanager
    def exported(
        self, session: str, transcript: str | None
    ) -> Generator[Iterator[bytes], None, None]:
        """Read a transcript as a file, piece by piece, for as long as the block lasts."""
        key = keys.canonical(session, self._loaded.agents[0].id, "session")
        with open_read_only(self._existing()) as reader, asyncio.Runner() as runner:
            store = ReadOnlyStore(reader, self._clock)
            wanted = runner.run(source(store, key, transcript))
            yield _stepwise(runner, export(store, wanted))

    def _existing(self) -> Path:
        if not self._database.exists():
            raise StoreRefused(f"there is no database at {self._database}; start `wakeful up`")
        return self._database

    async def _ask(
        self, store: "ReadOnlyStore", path: str, params: dict[str, str]
    ) -> tuple[int, bytes]:
        # Whoever can read the file of the database has the operator's eyes already.
        app = App(Table(self._routes(store)), CollectorRegistry())
        return await _answer(app.as_seen_by(Principal.operator()), path, params)

    def _routes(self, onlooker: "ReadOnlyStore") -> list[Endpoint]:
        """Return the routes that only look."""
        store: Store = onlooker
        clock, ids = self._clock, Ids(self._clock)
        loaded = self._loaded
        agents = Agents({agent.id: agent.config for agent in loaded.agents})
        days = Days(loaded.settings.zone)
        views = views_over(
            store, Bus(store, ids), clock, self._bindings(), self._cards(), agents, days
        )
        streams = OpenStreams(Gatekeeper(store, clock), CollectorRegistry())
        subjects = (
            AgentEndpoints(views),
            QuietEndpoints(views),
            AutomationEndpoints(views),
            BudgetEndpoints(views),
            Sessions(views),
            Search(views),
            Stimuli(views),
            NoticeEndpoints(views),
            ApprovalEndpoints(views),
            InboxEndpoints(views),
            ActivityEndpoints(views),
            UsageEndpoints(views),
            ForecastEndpoints(partial(self._forecast, store)),
            Attachments(views),
            TokenEndpoints(Credentials(store, ids)),
            Turns(views, streams),
        )
        every = (endpoint for subject in subjects for endpoint in subject.endpoints())
        return [endpoint for endpoint in every if endpoint.method == "GET"]

    async def _forecast(
        self, store: Store, days: int = USUAL_DAYS, agent: str | None = None
    ) -> Forecast:
        # Loads the whole engine, which nobody else who looks needs.
        from wakeful.assembly.forecasting import Forecaster, looked_at

        chosen = looked_at(self._loaded.agents, self._loaded.settings, self._clock)
        return await Forecaster(store, self._clock, chosen)(days, agent)

    def _bindings(self) -> Bindings:
        settings = self._loaded.settings
        return Bindings(default_agent=self._loaded.agents[0].id, is_unified=settings.unified)

    def _cards(self) -> Cards:
        return {agent.id: partial(_card, agent) for agent in self._loaded.agents}


class ReadOnlyStore:
    """A store that only reads, for views; SQLite itself refuses anything else."""

    full_text = SQLITE_FULL_TEXT
    yielding_rows = 0  # nothing is written

    def __init__(self, reader: SqliteReader, clock: Clock) -> None:
        self._reader = reader
        self.now = clock.now()

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        return self._reader.read(sql, params)

    async def transact(
        self, fn: Callable[[Tx], T], *, locks: Iterable[Lock] = (), yields: bool = False
    ) -> T:
        """Run a function that, in spite of its place, only looks."""
        return fn(cast("Tx", cast("object", self)))

    def all(self, sql: str, /, **params: object) -> Sequence[Row]:
        return self._reader.read(sql, params)

    def one(self, sql: str, /, **params: object) -> Row | None:
        rows = self._reader.read(sql, params)
        return rows[0] if rows else None

    async def batch(self, verb: Verb[Any, T], row: object) -> T:
        _refuse()

    async def batch_all(self, verb: Verb[Any, T], rows: Iterable[Any]) -> list[T | Exception]:
        _refuse()

    def listen(self, channel: str, act: Callable[[str], object]) -> Callable[[], None]:
        return lambda: None

    async def wait_failed(self) -> None:
        _refuse()

    async def close(self) -> None:
        with suppress(Exception):
            self._reader.close()


async def _answer(app: ASGIApp, path: str, params: dict[str, str]) -> tuple[int, bytes]:
    """Return the status and body of an answer; a client made for it takes longer than the rest."""
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "root_path": "",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": urlencode(params).encode(),
        "headers": [(b"host", b"offline")],
    }
    status, body = 0, bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        body.extend(message.get("body", b""))

    await app(scope, receive, send)
    return status, bytes(body)


def _stepwise(runner: asyncio.Runner, parts: AsyncGenerator[bytes, None]) -> Iterator[bytes]:
    async def following() -> bytes | None:
        return await anext(parts, None)

    while (part := runner.run(following())) is not None:
        yield part


def _card(agent: Agent) -> AgentCard:
    builtin = default_tools() if agent.has_default_tools else ()
    toolbox = Toolbox([*agent.tools, *builtin])
    return AgentCard(
        config=agent.config,
        model=model_name(agent.model),
        fallback_models=tuple(map(model_name, agent.fallback_models)),
        tools=tuple(toolbox.all()),
        mcp=tuple(ServerStatus(name=name, state="down") for name in agent.mcp),
    )


def _refuse() -> NoReturn:
    raise StoreRefused("nothing can be changed while no server runs; start `wakeful up`")
