"""Agents that speak without being asked, and somebody who hears them."""

from collections.abc import Sequence

from wakeful.doors.sender import Door
from wakeful.models.model import Request
from wakeful.models.scripted import Scripted
from wakeful.outbox.outbox import ReadyDelivery
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, operator_draft
from wakeful.tools.tool import Tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import Turn
from wakeful.vocabulary.agent import ThrottleRules
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import WakefulError
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import UserMessage
from wakeful.vocabulary.route import Route

MAIN = "agent:main:main"
ANN = Route(door="out", address="ann")
HOUR_S = 3600
# 10:00 of a day in UTC.
MORNING = 1_790_000_000_000 // 86_400_000 * 86_400_000 + 36_000_000


class Hearer:
    """A door that keeps what it is given, and may refuse it."""

    def __init__(self, refuses: WakefulError | None = None) -> None:
        self.heard: list[ReadyDelivery] = []
        self.refuses = refuses

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.heard]

    async def take(self, delivery: ReadyDelivery) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.heard.append(delivery)


def echo() -> Scripted:
    """Return a model that says what it was told last."""

    def answer(request: Request) -> str:
        said = [message.text for message in request.messages if isinstance(message, UserMessage)]
        return said[-1]

    return Scripted(answer)


def speaking(
    door: Door,
    clock: Clock,
    *,
    model: Scripted | None = None,
    per_hour: int | None = 2,
    settings: Settings | None = None,
    agents: Sequence[str] = ("main",),
    tools: Sequence[Tool] = (),
) -> Runtime:
    return Runtime(
        agents=[
            Agent(
                name,
                model=model or echo(),
                heartbeat=NO_HEARTBEAT,
                throttle=ThrottleRules(per_hour=per_hour),
                tools=tools,
            )
            for name in agents
        ],
        settings=settings or Settings(timezone="UTC"),
        clock=clock,
        doors={"out": door},
    )


async def unasked(
    runtime: Runtime,
    text: str,
    *,
    session: str = MAIN,
    route: Route = ANN,
    kind: Kind = Kind.CALLBACK,
) -> Turn:
    """Let an agent say something to somebody who did not ask."""
    draft = operator_draft(session, text, kind=kind, route=route)
    turn = await runtime.wait(await runtime.accept(draft))
    assert turn is not None
    return turn


async def deliveries(runtime: Runtime) -> list[tuple[str, str]]:
    """Return the text and state of all deliveries, in the order of filing."""
    rows = await runtime.store.read("SELECT text, state FROM deliveries ORDER BY id")
    return [(row[0], row[1]) for row in rows]


async def settled(runtime: Runtime, count: int) -> None:
    """Wait until so many deliveries have been acknowledged."""
    seen = 0
    start = (await runtime.cursor()).rpartition("-")[0] + "-0"
    async for _ in runtime.subscribe(topics=["delivery.acknowledged"], since=start):
        seen += 1
        if seen == count:
            return
