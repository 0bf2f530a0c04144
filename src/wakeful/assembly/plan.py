"""What a runtime was asked to be, and what it expects of a door."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from wakeful.assembly.hooks import NO_HOOKS, Hooks
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.sender import Door
from wakeful.settings.settings import Settings
from wakeful.telemetry.metrics import Metrics
from wakeful.turn.agent import Agent
from wakeful.vocabulary.clock import Clock

DATABASE_NAME = "wakeful.db"


class Service(Protocol):
    """Something that runs until it is cancelled."""

    async def run(self) -> None: ...


class Listener(Service, Protocol):
    """A service that others reach at an address."""

    @property
    def port(self) -> int: ...

    @property
    def url(self) -> str: ...

    def close(self) -> None:
        """Give the port back, also if the service never ran."""
        ...


class HttpDoor(Protocol):
    """The door of `doors/http/door.py`, which only those who want it import."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        ...

    @property
    def operator_token(self) -> str | None:
        """The secret that the operator chose; None: the one in the home folder."""
        ...

    def open(self, rooms: Rooms) -> Listener:
        """Take the port; the runtime runs what this returns."""
        ...


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a runtime was asked to be."""

    settings: Settings
    agents: Mapping[str, Agent]  # the first one is meant where none is named
    doors: Mapping[str, Door]
    http: HttpDoor | None
    clock: Clock
    metrics: Metrics
    hooks: Hooks = NO_HOOKS

    @property
    def default_agent(self) -> str:
        return next(iter(self.agents))
