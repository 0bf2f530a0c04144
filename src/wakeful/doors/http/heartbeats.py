"""Heartbeats by the operator's word."""

from datetime import datetime
from typing import Literal

from wakeful.doors.http.endpoint import Call, Endpoint, Given, Nothing
from wakeful.doors.http.shapes import ReceiptShape, shaped
from wakeful.services import Services
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR


class HeartbeatBody(Given):
    """What to do about it."""

    action: Literal["on", "off", "now"]


class HeartbeatShape(Record):
    """An agent's heartbeat, as it is set and as it went."""

    enabled: bool
    every: str
    every_ms: int | None
    prompt: str
    target: str
    model: str | None
    ack_max_chars: int
    last_run_at: datetime | None
    last_outcome: str | None
    next_due_at: datetime | None


class HeartbeatEndpoints:
    """The switch, and the wish for one now."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/agents/{id}/heartbeat",
                scope=OPERATOR,
                summary="Turn an agent's heartbeat on or off, or ask for one now",
                answer=self.act,
                body=HeartbeatBody,
                returns={200: HeartbeatShape, 202: ReceiptShape},
            )
        ]

    async def act(
        self, call: Call[Nothing, HeartbeatBody]
    ) -> tuple[int, HeartbeatShape] | tuple[int, ReceiptShape]:
        views, action = self._services.views, call.body.action
        config = views.agents.card(call.path["id"]).config
        if action == "now":
            return 202, shaped(ReceiptShape, await self._services.heartbeats.ask(config.id))
        await self._services.heartbeats.switch(config.id, is_on=action == "on")
        return 200, shaped(HeartbeatShape, await views.heartbeats.of(config.id, config.heartbeat))
