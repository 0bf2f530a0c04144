"""The runtime: starts what the assembly built, has the public verbs, drains and stops."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from wakeful.access.credentials import Credentials, Made
from wakeful.assembly.plan import Plan
from wakeful.assembly.running import Running, start
from wakeful.bus.bus import Bus
from wakeful.doors.sender import Door
from wakeful.operations import server_note
from wakeful.operations.server_note import RunningServer
from wakeful.services import Services
from wakeful.settings.settings import Settings
from wakeful.store.database import Store
from wakeful.store.opening import is_postgres
from wakeful.telemetry.metrics import Metrics
from wakeful.turn.agent import Agent
from wakeful.verbs import LONGEST_WAIT_S, Verbs
from wakeful.vocabulary.clock import Clock, SystemClock, time_limit
from wakeful.vocabulary.errors import InvalidInput, StoreFailed

if TYPE_CHECKING:
    from wakeful.doors.http.door import HttpDoor
    from wakeful.doors.http.server import HttpServer


class Runtime(Verbs):
    """Keeps agents alive; use it as `async with Runtime(...) as runtime`."""

    def __init__(
        self,
        *,
        agents: Sequence[Agent] = (),
        home: Path | str | None = None,
        settings: Settings | None = None,
        doors: Mapping[str, Door] | None = None,
        http: "HttpDoor | None" = None,
        clock: Clock | None = None,
    ) -> None:
        settings = settings or Settings()
        if home is not None:
            settings = msgspec.structs.replace(settings, home=Path(home).expanduser())
        self.clock: Clock = clock or SystemClock()
        self.metrics = Metrics()
        self._plan = Plan(
            settings=settings,
            agents=_by_id(agents),
            doors=dict(doors or {}),
            http=http,
            clock=self.clock,
            metrics=self.metrics,
        )
        self._plan.check()
        self._stack = AsyncExitStack()
        self._running: Running  # from the start on

    async def __aenter__(self) -> Self:
        try:
            self._running = await start(self._plan, self._stack)
            self._note_server()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    def _note_server(self) -> None:
        """Let the command line find this server, if there is one and it has a home."""
        home = self.settings.home
        if home is None or self.url is None:
            return
        has_file = not is_postgres(self.settings.database)
        here = RunningServer(
            pid=os.getpid(), url=self.url, started_at=self.clock.now(), has_file=has_file
        )
        server_note.note(home, here)
        self._stack.callback(server_note.forget, home)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self._drain()
        self.leave()
        try:
            await self._stack.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            failed, _ = group.split(StoreFailed)
            if failed is None:
                raise
            raise _first(failed) from group

    @property
    def settings(self) -> Settings:
        return self._plan.settings

    @property
    def services(self) -> Services:
        return self._running.built.services

    @property
    def store(self) -> Store:
        return self.services.views.store

    @property
    def bus(self) -> Bus:
        return self.services.views.bus

    @property
    def credentials(self) -> Credentials:
        return self.services.credentials

    @property
    def http(self) -> "HttpServer | None":
        """The HTTP door, if there is one."""
        return self._running.built.http

    @property
    def url(self) -> str | None:
        """Where this machine reaches the HTTP door, if there is one."""
        return None if self.http is None else server_note.reachable(self.http.url)

    @property
    def operator(self) -> Made | None:
        """The token in the home folder, if there is a door."""
        return self._running.built.operator

    async def reconfigure(
        self, *, agents: Sequence[Agent] | None = None, settings: Settings | None = None
    ) -> Sequence[str]:
        """Work by other agents and settings from now on; nothing waits, and no turn is cut.

        What is None stays. An open turn keeps what it opened with; whatever begins next takes what
        is new. Return the keys that a start alone can change, which stay as they are. If the new
        settings could not work, this raises and changes nothing.
        """
        known = self._plan.agents if agents is None else _by_id(agents)
        plan = replace(self._plan, agents=known, settings=settings or self.settings)
        plan.check()
        kept = await self._running.take(plan)
        self._plan = self._running.plan
        return kept

    async def serve(self) -> None:
        """Run until SIGTERM or SIGINT; a second one leaves at once, losing nothing."""
        loop = asyncio.get_running_loop()
        first = asyncio.Event()

        def asked_to_stop() -> None:
            if first.is_set():
                self.leave()
            first.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked_to_stop)
        await first.wait()

    def leave(self) -> None:
        """End every service at once; what was going on goes on at the next start."""
        self._running.leave()

    async def _drain(self) -> None:
        """Wait for running turns, though not for ever; what is left goes on at the next start."""
        try:
            async with time_limit(self.clock, self.settings.drain_s):
                await self._running.built.followers.dispatcher.drain()
        except TimeoutError:
            pass


def ask(
    text: str,
    *,
    agent: Agent | None = None,
    home: Path | str | None = None,
    timeout_s: float = LONGEST_WAIT_S,
) -> str:
    """Ask an agent something and return its answer: a runtime for one question.

    With a `home` the conversation is kept there and goes on with the next question.
    """

    async def asked() -> str:
        async with Runtime(agents=[agent] if agent else (), home=home) as runtime:
            return await runtime.ask(text, timeout_s=timeout_s)

    return asyncio.run(asked())


def _by_id(agents: Sequence[Agent]) -> dict[str, Agent]:
    known = {agent.id: agent for agent in agents or (Agent(),)}
    if len(known) != len(agents or (1,)):
        raise InvalidInput("agents", "two agents have the same id")
    return known


def _first(group: BaseExceptionGroup[StoreFailed]) -> StoreFailed:
    error: StoreFailed | BaseExceptionGroup[StoreFailed] = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
