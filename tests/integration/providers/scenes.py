"""What the tests of the providers have in common."""

from wakeful.runtime import Runtime
from wakeful.testing.kit import wait_for
from wakeful.tools.tool import Effect, Tool, ToolContext
from wakeful.turn.agent import Agent
from wakeful.turns.turns import Turn
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.clock import Clock

ANTHROPIC = "anthropic:claude-opus-5"
CHAT = "openai-chat:gpt-4.1"
RESPONSES = "openai:gpt-5.6"
WIRES = (ANTHROPIC, CHAT, RESPONSES)


def look(context: ToolContext, at: str = "sky") -> str:
    """Look at something."""
    return f"{at} is there"


def talking(
    model: str = ANTHROPIC,
    *fallbacks: str,
    limits: Limits | None = None,
    clock: Clock | None = None,
    thinking: str | None = None,
) -> Runtime:
    """Return a runtime on a database in memory whose agent speaks with a provider."""
    agent = Agent(
        model=model,
        fallback_models=fallbacks,
        thinking=thinking,
        tools=[Tool(look, effect=Effect.READ)],
        has_default_tools=False,
        limits=limits or Limits(),
    )
    return Runtime(agents=[agent], clock=clock)


async def answered(runtime: Runtime, text: str, session: str = "main") -> Turn:
    """Say something and return the turn when it has ended."""
    turn = await runtime.wait(await runtime.send(text, session=session))
    assert turn is not None
    return turn


async def left(runtime: Runtime, number: int = 1) -> int:
    """Wait until a turn was left for the `number`-th time and return until when."""
    event = await wait_for(runtime, "turn.left", lambda event: event.data["epoch"] == number)
    assert event.data["reason"] == "waiting for the model"
    return event.data["resume_at"]


async def asks(runtime: Runtime) -> list[str]:
    """Return what became of each question, in order."""
    rows = await runtime.store.read("SELECT state FROM asks ORDER BY turn_id, step, attempt")
    return [row[0] for row in rows]
