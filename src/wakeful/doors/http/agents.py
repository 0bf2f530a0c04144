"""Agents: what they are and do, and the switch that halts them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from wakeful.doors.http.budgets import BudgetShape
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.heartbeats import HeartbeatShape
from wakeful.doors.http.paging import Page
from wakeful.doors.http.quiet import QuietShape
from wakeful.doors.http.shapes import shaped, time_or_none
from wakeful.gate.halts import EVERYTHING
from wakeful.services import Services, Views
from wakeful.views.agents import AgentStatus
from wakeful.vocabulary.agent import Limits, ThinkingLevel, ThrottleRules
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR


class SleepShape(Record):
    """A session that sleeps."""

    session_key: str | None
    reason: str
    wake_at: datetime
    refused: str | None


class SkippedShape(Record):
    """What did not wake an agent, why, how often and when last."""

    origin: str
    reason: str
    count: int
    last_at: datetime


class McpShape(Record):
    """An MCP server whose tools an agent has."""

    name: str
    state: str
    tools: Sequence[str]
    problems: Sequence[str]


class HeldShape(Record):
    """Messages that nobody asked for and that were too many: they leave as a digest."""

    messages: int
    leaves_at: datetime | None


class AgentShape(Record):
    """An agent."""

    id: str
    model: str
    fallback_models: Sequence[str]
    thinking: ThinkingLevel | None
    tools: Sequence[str]
    mcp: Sequence[McpShape]
    queue: QueueOverrides
    limits: Limits
    is_halted: bool
    lanes: Mapping[str, int]
    sleep: Sequence[SleepShape]
    heartbeat: HeartbeatShape
    throttle: ThrottleRules
    held: HeldShape
    budget: BudgetShape  # what is left of it today
    quiet: QuietShape
    skipped: Sequence[SkippedShape]  # lately, in its main session
    approvals: int  # open: what it asked people
    automations: int  # that are on
    next_wake_at: datetime | None


class HaltBody(Given):
    """Whom to halt or resume; nobody named: everybody."""

    agent: str | None = None


class Halted(Record):
    """What became of the switch."""

    scope: str
    is_halted: bool
    is_changed: bool


class AgentEndpoints:
    """Who lives here."""

    def __init__(self, views: Views) -> None:
        self._views = views

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="GET",
                path="/api/agents",
                scope="read",
                summary="List the agents",
                answer=self.page,
                returns={200: Page[AgentShape]},
            ),
            Endpoint(
                method="GET",
                path="/api/agents/{id}",
                scope="read",
                summary="Look at an agent",
                answer=self.get,
                returns={200: AgentShape},
            ),
        ]

    async def page(self, call: Call[Nothing, Nothing]) -> Page[AgentShape]:
        found = [_shape(status) for status in await self._views.agents.all()]
        return Page(items=found, next=None)

    async def get(self, call: Call[Nothing, Nothing]) -> AgentShape:
        return _shape(await self._views.agents.get(call.path["id"]))


class Halts:
    """The big switch."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/halt",
                scope=OPERATOR,
                summary="Stop every model and tool call of an agent, or of all",
                answer=self.halt,
                body=HaltBody,
                returns={200: Halted},
            ),
            Endpoint(
                method="POST",
                path="/api/resume",
                scope=OPERATOR,
                summary="Lift a halt; everything goes on where it was",
                answer=self.resume,
                body=HaltBody,
                returns={200: Halted},
            ),
        ]

    async def halt(self, call: Call[Nothing, HaltBody]) -> Halted:
        scope = self._scope(call.body.agent)
        is_changed = await self._services.intake.halt(call.body.agent, by=call.principal.name)
        return Halted(scope=scope, is_halted=True, is_changed=is_changed)

    async def resume(self, call: Call[Nothing, HaltBody]) -> Halted:
        scope = self._scope(call.body.agent)
        is_changed = await self._services.intake.resume(call.body.agent, by=call.principal.name)
        return Halted(scope=scope, is_halted=False, is_changed=is_changed)

    def _scope(self, agent: str | None) -> str:
        """Name what a halt covers; an agent that is not there is not found."""
        return EVERYTHING if agent is None else self._services.views.agents.card(agent).config.id


def _shape(status: AgentStatus) -> AgentShape:
    card = status.card
    return shaped(
        AgentShape,
        card,
        id=card.config.id,
        thinking=card.config.thinking,
        mcp=[shaped(McpShape, server) for server in card.mcp],
        queue=card.config.queue,
        limits=card.config.limits,
        is_halted=status.is_halted,
        lanes=status.lanes,
        sleep=[shaped(SleepShape, sleep) for sleep in status.sleeps],
        heartbeat=shaped(HeartbeatShape, status.heartbeat),
        throttle=card.config.throttle,
        held=shaped(HeldShape, status.held),
        budget=shaped(BudgetShape, status.budget),
        quiet=shaped(QuietShape, status.quiet),
        skipped=[shaped(SkippedShape, one) for one in status.skipped],
        approvals=status.approvals,
        automations=status.automations,
        next_wake_at=time_or_none(status.next_wake_at),
    )
