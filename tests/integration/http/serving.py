"""Shared by the tests of the HTTP door: a real server on a free port, tokens and clients."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2
import msgspec

from tests.patience import patience
from wakeful.access.tokens import NewToken
from wakeful.doors.http.door import HttpDoor
from wakeful.doors.http.endpoint import Row
from wakeful.doors.http.problems import ErrorForm
from wakeful.doors.http.server import HttpOptions
from wakeful.doors.http.table import Table
from wakeful.models.model import Model, Request
from wakeful.models.scripted import Line, Pause, Scripted
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT
from wakeful.tools.tool import Tool
from wakeful.turn.agent import Agent
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.stimulus import Trust

PATIENCE_S = patience(10)


@dataclass
class House:
    """A runtime with an open door, and the operator's token to it."""

    runtime: Runtime
    url: str
    port: int
    operator: str
    table: Table

    async def token(self, *scopes: str, name: str = "", **wanted: Any) -> str:
        """Return the secret of a new token."""
        name = name or "-".join(scopes).replace(":", ".")
        made = await self.runtime.credentials.add(
            NewToken(name=name, scopes=scopes, **wanted), by="test"
        )
        return made.secret

    def client(self, token: str | None = None, **options: Any) -> httpx2.AsyncClient:
        """Return a client that shows a token, or none."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(
            base_url=self.url,
            headers=headers | options.pop("headers", {}),
            timeout=PATIENCE_S,
            **options,
        )


def door_with(*rows: Row, error_forms: Mapping[str, ErrorForm] | None = None) -> HttpDoor:
    """Return a door that answers more than our own routes."""
    return HttpDoor(HttpOptions(port=0), others=rows, error_forms=error_forms)


@asynccontextmanager
async def house(  # noqa: PLR0913 (what a server may be given, all but the model with a default)
    model: Model | Sequence[Line | Pause] | Callable[[Request], Line] = lambda _: "well",
    *,
    tools: Sequence[Tool] = (),
    mcp: Sequence[str] = (),
    settings: Settings | None = None,
    clock: Clock | None = None,
    options: HttpOptions | None = None,
    door: HttpDoor | None = None,
    heartbeat: HeartbeatRules = NO_HEARTBEAT,
    budget: BudgetRules = BudgetRules(),  # noqa: B008 (a record)
    approvals: Mapping[str, str] | None = None,
) -> AsyncGenerator[House, None]:
    """Run a server on a free port; answers are `well` unless a script is given."""
    voice = model if isinstance(model, Model) else Scripted(model)
    door = door or HttpDoor(options or HttpOptions(port=0))
    agent = Agent(
        model=voice,
        tools=tools,
        mcp=mcp,
        heartbeat=heartbeat,
        budget=budget,
        approvals=approvals or {},
    )
    runtime = Runtime(
        agents=[agent],
        settings=settings or Settings(drain_s=1),
        clock=clock,
        http=door,
    )
    async with runtime:
        assert runtime.http is not None
        if runtime.operator is None:
            made = await runtime.credentials.add(
                NewToken(name="the operator", scopes=("operator",), trust=Trust.OPERATOR),
                by="test",
            )
        else:
            made = runtime.operator
        port = runtime.http.port
        yield House(runtime, f"http://127.0.0.1:{port}", port, made.secret, door.table)


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    kind: str
    data: dict[str, Any]
    id: str | None = None


async def frames(response: httpx2.Response) -> AsyncIterator[Frame | str]:
    """Yield frames, and comments as text, as they come."""
    lines: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line.startswith(":"):
            yield line
        elif line:
            name, _, value = line.partition(": ")
            lines[name] = value
        elif lines:
            yield Frame(lines["event"], msgspec.json.decode(lines["data"]), lines.get("id"))
            lines = {}


@asynccontextmanager
async def following(
    client: httpx2.AsyncClient, query: str = "", **headers: str
) -> AsyncGenerator[AsyncIterator[Frame | str], None]:
    """Follow `/api/events`; when this is entered, the stream has begun."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with client.stream("GET", f"/api/events{query}", headers=named) as response:
        told = frames(response)
        assert await anext(told) == ": wakeful"
        yield told


async def take(source: AsyncIterator[Frame | str], count: int) -> list[Frame]:
    """Return the next frames; comments are passed over."""
    found: list[Frame] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < count:
            one = await anext(source)
            if isinstance(one, Frame):
                found.append(one)
    return found


def is_time(text: str) -> bool:
    """Tell whether a text is an RFC 3339 time with its offset."""
    return datetime.fromisoformat(text).tzinfo is not None
