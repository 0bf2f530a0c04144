"""What a runtime was asked to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.assembly.hooks import NO_HOOKS, Hooks
from wakeful.doors.sender import Door
from wakeful.settings.settings import Settings
from wakeful.telemetry.metrics import Metrics
from wakeful.turn.agent import Agent
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import InvalidInput

if TYPE_CHECKING:  # loaded by those alone who want it: the web framework takes time and memory
    from wakeful.doors.http.door import HttpDoor


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a runtime was asked to be."""

    settings: Settings
    agents: Mapping[str, Agent]  # the first one is meant where none is named
    doors: Mapping[str, Door]
    http: "HttpDoor | None"
    clock: Clock
    metrics: Metrics
    hooks: Hooks = NO_HOOKS

    def check(self) -> None:
        """Refuse what two parts of the plan both claim."""
        if clash := self.doors.keys() & self.settings.outbound.keys():
            raise InvalidInput(f"outbound.{min(clash)}", "must not be the name of another door")

    @property
    def default_agent(self) -> str:
        return next(iter(self.agents))
