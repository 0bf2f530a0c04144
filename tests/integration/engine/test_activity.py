"""Each agent's Activity session: there from the first start on, once."""

from pathlib import Path

from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import Scripted, in_memory
from wakeful.turn.agent import Agent

KEYS = ["agent:helper:activity", "agent:main:activity"]


def two(home: Path) -> Runtime:
    agents = [Agent(model=Scripted([])), Agent("helper", model=Scripted([]))]
    return Runtime(agents=agents, settings=Settings(home=home))


async def sessions(runtime: Runtime) -> list[str]:
    rows = await runtime.store.read("SELECT key FROM sessions ORDER BY key")
    return [row[0] for row in rows]


async def test_every_agent_has_its_activity_from_the_first_start_on(tmp_path: Path) -> None:
    async with two(tmp_path) as runtime:
        first = await sessions(runtime)
    async with two(tmp_path) as runtime:
        again = await sessions(runtime)
        made = await runtime.store.read("SELECT 1 FROM events WHERE kind = 'session.created'")

    assert first == again == KEYS
    assert len(made) == 2


async def test_whoever_writes_there_is_answered() -> None:
    async with in_memory(Scripted(["hello"])) as runtime:
        turn = await runtime.wait(await runtime.send("hi", session="system:activity"))

    assert turn is not None
    assert (turn.session_key, turn.reply) == ("agent:main:activity", "hello")
