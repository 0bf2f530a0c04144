"""Agents that pay for their words: ten dollars for a million tokens, nothing for reading."""

from collections.abc import Callable, Iterable

from wakeful.models.model import Model, Reply, Request
from wakeful.models.prices import Price, Rate
from wakeful.models.scripted import Line, Pause, Scripted
from wakeful.models.tariffs import Tariff
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.tools.tool import Tool
from wakeful.turn.agent import Agent
from wakeful.views.budgets import BudgetStatus
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.budget import BudgetRules
from wakeful.vocabulary.clock import Clock, ManualClock
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import Text, ToolCall, Usage
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Priority, Trust

MAIN = "agent:main:main"
RATE = 10.0  # dollars for a million tokens
PRICE = Price(output=Rate(base=RATE))
PAID = Tariff(price=PRICE, max_output=4_000)  # 0.04 for the longest answer
# Noon of a day in UTC.
NOON = 1_790_000_000_000 // 86_400_000 * 86_400_000 + 43_200_000


def costs(tokens: int, text: str = "well", *calls: ToolCall) -> Reply:
    """Return an answer of so many tokens."""
    usage = Usage(input=10, output=tokens, cost=tokens * RATE / 1_000_000)
    reason = "tool_use" if calls else "stop"
    return Reply(content=(Text(text=text), *calls), stop_reason=reason, usage=usage, model="paid")


def paid(
    lines: Iterable[Line | Pause] | Callable[[Request], Line], tariff: Tariff = PAID
) -> Scripted:
    return Scripted(lines, tariff=tariff)


def spending(
    model: Model,
    budget: BudgetRules,
    *,
    clock: Clock | None = None,
    tools: tuple[Tool, ...] = (),
    limits: Limits = Limits(),  # noqa: B008 (a record)
    settings: Settings | None = None,
) -> Runtime:
    agent = Agent(model=model, budget=budget, tools=tools, limits=limits)
    return Runtime(
        agents=[agent],
        settings=settings or Settings(timezone="UTC"),
        clock=clock or ManualClock(NOON),
    )


def outsider(
    text: str = "ping", source: str = "alarm", session: str = MAIN, **more: object
) -> Draft:
    """Return what nobody said whom the agent works for."""
    fields = {"kind": Kind.WEBHOOK, "priority": Priority.NOW, **more}
    return Draft(
        session_key=session,
        text=text,
        trust=Trust.EXTERNAL,
        owner=OPERATOR,
        source=source,
        **fields,  # pyright: ignore[reportArgumentType]
    )


async def status(runtime: Runtime, scope: str = "agent") -> BudgetStatus:
    found = await runtime.services.views.budgets.of_agent("main")
    return next(one for one in found if one.scope == scope)


async def reply(runtime: Runtime, text: str = "hello", session: str = "main") -> str | None:
    turn = await runtime.wait(await runtime.send(text, session=session))
    assert turn is not None
    return turn.reply
