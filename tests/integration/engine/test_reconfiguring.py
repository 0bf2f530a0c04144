"""Other settings are taken while turns go on: nobody waits, and nothing is cut."""

import asyncio
from pathlib import Path

import pytest

from tests.integration.engine.looking import turn_of
from wakeful.access.principal import Principal
from wakeful.doors.sender import Door
from wakeful.intake.bindings import Binding, Contact, Match
from wakeful.models.scripted import Pause, call, says
from wakeful.outbox.outbox import Delivery
from wakeful.runtime import Runtime
from wakeful.settings.settings import LaneSettings, Settings, StormSettings
from wakeful.testing.kit import ManualClock, Scripted, in_memory, operator_draft, wait_for
from wakeful.tools.tool import tool
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TurnState
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.stimulus import Outcome


def says_always(text: str) -> Scripted:
    return Scripted(lambda _: text)


async def test_an_open_turn_goes_on_with_what_it_opened_with():
    begun, go_on = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def work_long() -> str:
        """Do something that takes a while."""
        begun.set()
        await go_on.wait()
        return "done"

    old = Scripted([says("", call("work_long")), says("", call("work_long")), "old"])
    async with in_memory(old, tools=[work_long]) as runtime:
        long = await runtime.send("work long")
        await begun.wait()

        kept = await runtime.reconfigure(agents=[Agent(model=says_always("new"))])
        short = await turn_of(runtime, await runtime.send("hello", session="api:other"))
        still = await runtime.lane()
        go_on.set()
        turn = await turn_of(runtime, long)
        after = await turn_of(runtime, await runtime.send("and now?"))

    assert list(kept) == []
    assert short.reply == "new"
    assert still.state == "tools"
    assert (turn.state, turn.reply, turn.attempts) == (TurnState.DONE, "old", 1)
    assert after.reply == "new"


async def test_agents_come_and_go_and_what_waits_for_one_waits():
    names = ("main", "scout")
    async with Runtime(agents=[Agent(name, model=says_always(name)) for name in names]) as runtime:
        await runtime.reconfigure(agents=[Agent(model=says_always("main"))])
        with pytest.raises(InvalidInput, match="no agent 'scout'"):
            await runtime.send("hello", session="agent:scout:main")
        listed = await runtime.services.views.agents.all()
        await runtime.reconfigure(
            agents=[Agent("scout", model=says_always("back")), Agent(model=says_always("main"))]
        )
        turn = await turn_of(runtime, await runtime.send("hello", session="main"))

    assert [one.card.config.id for one in listed] == ["main"]
    assert (turn.agent_id, turn.reply) == ("scout", "back")  # which is the first now


async def test_what_waited_for_an_agent_goes_on_when_it_is_back():
    pause = Pause("busy")
    scout = Scripted([pause])
    agents = [Agent(model=says_always("main")), Agent("scout", model=scout)]
    async with Runtime(agents=agents) as runtime:
        await runtime.send("first", session="agent:scout:main")
        await pause.reached.wait()
        second = await runtime.send("second", session="agent:scout:main", mode="queue")
        await runtime.reconfigure(agents=agents[:1])
        pause.go_on.set()
        await wait_for(runtime, "stimulus.parked", lambda e: e.data["reason"] == "no-agent")

        await runtime.reconfigure(agents=[agents[0], Agent("scout", model=says_always("back"))])
        turn = await turn_of(runtime, second)

    assert turn.reply == "back"


async def test_rules_bindings_and_pools_follow_at_once():
    first, second = Pause("one"), Pause("two")
    settings = Settings(lanes=LaneSettings(main=1))
    async with in_memory([first, second], settings=settings) as runtime:
        await runtime.send("a", session="api:a")
        await first.reached.wait()
        waits = await runtime.send("b", session="api:b")
        new = Settings(
            lanes=LaneSettings(main=2),
            queue=QueueOverrides(mode=Mode.FOLLOWUP),
            bindings=(Binding(match=Match(door="chat"), agent="main"),),
            storm=StormSettings(turns=1),
            unified=True,
        )
        model = Scripted([second])
        await runtime.reconfigure(agents=[Agent(model=model)], settings=new)
        await second.reached.wait()  # there is room for it now
        queued = await runtime.send("c", session="api:a")
        web = await runtime.send("d", session="web:1", priority="later")
        storm = [
            (
                await runtime.accept(
                    operator_draft("agent:main:main", "x", kind=Kind.HUB, source="feed")
                )
            ).outcome
            for _ in range(2)
        ]
        bound = await runtime.receive(
            Principal.stranger(), Contact(door="chat", peer="ann"), "/whoami"
        )
        first.go_on.set()
        second.go_on.set()
        done = await turn_of(runtime, waits)

    assert queued.outcome is Outcome.QUEUED
    assert web.session_key == "agent:main:unified"
    assert storm[1] is Outcome.HELD
    assert bound.session_key == "agent:main:chat:dm:ann"
    assert done.state is TurnState.DONE


async def test_settings_that_could_not_work_change_nothing():
    async with in_memory(says_always("well")) as runtime:
        before = runtime.settings
        for agents, settings in (
            ([Agent(model="nobody:knows")], None),
            ([Agent(mcp=["missing"])], None),
            ([Agent(), Agent()], None),
            ([Agent()], Settings(bindings=(Binding(match=Match(door="x"), agent="nobody"),))),
        ):
            with pytest.raises(InvalidInput):
                await runtime.reconfigure(agents=agents, settings=settings)

        assert runtime.settings is before
        assert (await turn_of(runtime, await runtime.send("hello"))).reply == "well"


async def test_what_only_a_start_can_change_is_named_and_stays(tmp_path: Path):
    async with Runtime(home=tmp_path, agents=[Agent(model=says_always("well"))]) as runtime:
        wanted = Settings(home=tmp_path / "other", database="postgresql://x/y", drain_s=1)
        kept = await runtime.reconfigure(settings=wanted)

        assert sorted(kept) == ["database", "home"]
        assert (runtime.settings.home, runtime.settings.database) == (tmp_path, "sqlite")
        assert runtime.settings.drain_s == 1


async def test_doors_of_ones_own_stay_open():
    arrived: list[str] = []

    async def mail(delivery: Delivery) -> None:
        arrived.append(delivery.text)

    doors: dict[str, Door] = {"mail": mail}
    async with in_memory(says_always("well"), doors=doors) as runtime:
        await runtime.reconfigure(agents=[Agent(model=says_always("still here"))])
        contact = Contact(door="mail", peer="me")
        await runtime.receive(Principal.operator(), contact, "/queue queue hello")
        await wait_for(runtime, "delivery.acknowledged")

    assert arrived == ["still here"]


async def test_many_changes_at_once_come_one_after_the_other():
    async with in_memory(says_always("first"), clock=ManualClock()) as runtime:
        await asyncio.gather(
            *(
                runtime.reconfigure(agents=[Agent(model=says_always(f"{number}"))])
                for number in range(10)
            )
        )
        turn = await turn_of(runtime, await runtime.send("hello"))

    assert turn.reply == "9"
