"""Turns that were open at two unclean stops go on one at a time, beside everything else."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.integration.engine.looking import turn_of
from tests.integration.engine.stages import rounds
from wakeful.lanes import recovery
from wakeful.lanes.poison import LOOK_AGAIN_MS
from wakeful.models.model import Delta, Reply, Request
from wakeful.models.scripted import Line
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.store.database import Tx
from wakeful.store.opening import open_store
from wakeful.testing.kit import ManualClock, Pause, Scripted, call, in_memory, says
from wakeful.tools.tool import Effect, Tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.stimulus import Receipt

GONE = "a process that is gone"


class Voices:
    """Answers each session by a script of its own, named by the first thing said there."""

    name = "voices"

    def __init__(self, **scripts: Sequence[Line | Pause]) -> None:
        self._scripts = {name: Scripted(lines) for name, lines in scripts.items()}
        self.asked: asyncio.Queue[str] = asyncio.Queue()

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        name = request.messages[0].text
        self.asked.put_nowait(name)
        async for piece in self._scripts[name].stream(request):
            yield piece


async def left_open(settings: Settings, *names: str) -> dict[str, Receipt]:
    """Leave a turn open in each of these sessions, its question unanswered."""
    pauses = {name: Pause("thinking") for name in names}
    voices = Voices(**{name: [pause] for name, pause in pauses.items()})
    receipts: dict[str, Receipt] = {}
    async with in_memory(voices, settings=settings) as runtime:
        for name, pause in pauses.items():
            receipts[name] = await runtime.send(name, session=name)
            await pause.reached.wait()
    return receipts


async def charge(settings: Settings, stops: Mapping[str, int], running: Sequence[str] = ()) -> None:
    """Have turns been open at so many unclean stops, the last one while some of them ran."""

    def write(tx: Tx) -> None:
        for name, count in stops.items():
            tx.run(
                "UPDATE turns SET attempts = :count, phase = 'streaming' WHERE session_key = :key",
                key=f"agent:main:{name}",
                count=count + (name in running),
            )
        for name in running:
            tx.run(
                "UPDATE lanes SET owner = :gone, resume_at = NULL, ready_at = NULL "
                "WHERE session_key = :key",
                key=f"agent:main:{name}",
                gone=GONE,
            )

    home, database = settings.home, settings.database
    address = database if home is None else home / "wakeful.db"
    store = await open_store(address, clock=ManualClock())
    await store.transact(write)
    await store.close()


async def attempts(runtime: Runtime) -> dict[str, int]:
    rows = await runtime.store.read("SELECT session_key, attempts FROM turns")
    return {row[0].rpartition(":")[2]: row[1] for row in rows}


async def test_suspects_go_on_one_at_a_time_and_others_do_not_wait(lasting: SettingsFor):
    clock = ManualClock()
    receipts = await left_open(lasting(drain_s=0), "a", "b")
    await charge(lasting(), {"a": 2, "b": 2})
    pauses = {name: Pause(f"answer to {name}") for name in ("a", "b")}
    voices = Voices(**{name: [pause] for name, pause in pauses.items()}, other=["at once"])
    async with in_memory(voices, clock=clock, settings=lasting()) as runtime:
        first = await voices.asked.get()
        (second,) = {"a", "b"} - {first}
        other = await turn_of(runtime, await runtime.send("other", session="other"))
        status = await runtime.lane(second)
        pauses[first].go_on.set()
        turns = [await turn_of(runtime, receipts[first])]
        clock.advance(LOOK_AGAIN_MS / 1000)
        await pauses[second].reached.wait()
        pauses[second].go_on.set()
        turns.append(await turn_of(runtime, receipts[second]))

    assert other.reply == "at once"
    assert (status.state, status.holder) == ("waiting", None)
    assert status.waits_for == "another turn that was open when the process was stopped"
    assert [turn.reply for turn in turns] == [f"answer to {first}", f"answer to {second}"]


async def test_a_suspect_that_makes_a_step_is_one_no_more(lasting: SettingsFor):
    def look() -> str:
        """Look."""
        return "seen"

    clock = ManualClock()
    await left_open(lasting(drain_s=0), "a", "b")
    await charge(lasting(), {"a": 2, "b": 2})
    pauses = {name: Pause("thinking") for name in ("a", "b")}
    voices = Voices(**{n: [says("", call("look")), pause] for n, pause in pauses.items()})
    agent = Agent(model=voices, tools=[Tool(look, effect=Effect.READ)])
    settings = lasting(drain_s=0)
    async with Runtime(agents=[agent], clock=clock, settings=settings) as runtime:
        await voices.asked.get()
        while not all(pause.reached.is_set() for pause in pauses.values()):
            clock.advance(LOOK_AGAIN_MS / 1000)  # the other one waits, and is looked at again
            await rounds(runtime)
        found = await attempts(runtime)

    assert found == {"a": 1, "b": 1}


async def test_a_stop_reaches_a_suspect_that_waits(lasting: SettingsFor):
    receipts = await left_open(lasting(drain_s=0), "a", "b")
    await charge(lasting(), {"a": 2, "b": 2})
    pauses = {name: Pause("thinking") for name in ("a", "b")}
    voices = Voices(**{name: [pause] for name, pause in pauses.items()})
    settings = lasting(drain_s=0)
    async with in_memory(voices, clock=ManualClock(), settings=settings) as runtime:
        (waiting,) = {"a", "b"} - {await voices.asked.get()}
        await runtime.stop(waiting)
        turn = await turn_of(runtime, receipts[waiting])

    assert turn.state is TurnState.STOPPED


@pytest.mark.parametrize("step", [1, 500])
async def test_an_unclean_stop_is_charged_to_the_suspect_that_ran(
    lasting: SettingsFor, step: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recovery, "STEP", step)  # lanes that one write takes back
    receipts = await left_open(lasting(drain_s=0), "a", "b", "c", "d")
    stops = {"a": 0, "b": 1, "c": 2, "d": 2}  # "d" waited
    await charge(lasting(), stops, running=["a", "b", "c"])
    names = ("a", "b", "c", "d")
    pauses = {name: Pause(f"answer to {name}") for name in names}
    voices = Voices(**{name: [pause] for name, pause in pauses.items()})
    clock = ManualClock()
    async with in_memory(voices, clock=clock, settings=lasting()) as runtime:
        poisoned = await turn_of(runtime, receipts["c"])
        others: list[str | None] = []
        for pause in pauses.values():
            pause.go_on.set()
        for name in ("a", "b", "d"):
            clock.advance(LOOK_AGAIN_MS / 1000)
            await rounds(runtime)
            clock.advance(LOOK_AGAIN_MS / 1000)
            others.append((await turn_of(runtime, receipts[name])).reply)

    assert (poisoned.state, poisoned.error_kind) == (TurnState.FAILED, "poisoned")
    assert others == ["answer to a", "answer to b", "answer to d"]


async def test_a_turn_that_may_be_tried_once_is_tried_again_if_a_suspect_ran_beside_it(
    lasting: SettingsFor,
):
    receipts = await left_open(lasting(drain_s=0), "a", "c")
    await charge(lasting(), {"a": 0, "c": 2}, running=["a", "c"])
    agent = Agent(model=Voices(a=["answer"]), limits=Limits(attempts=1))
    async with Runtime(agents=[agent], settings=lasting()) as runtime:
        turns = [await turn_of(runtime, receipts[name]) for name in ("a", "c")]

    assert turns[0].reply == "answer"
    assert turns[1].error_kind == "poisoned"
