"""Proactive mode by binding: the sessions that it opened tick, by its block and no other."""

from tests.integration.triggers.test_ticks import RULES, always, ended, ticks
from wakeful.access.principal import Principal
from wakeful.intake.bindings import Binding, Contact, DmScope, Match
from wakeful.runtime import Runtime
from wakeful.settings.settings import Settings
from wakeful.testing.kit import NO_HEARTBEAT, ManualClock, Scripted, operator_draft, wait_for
from wakeful.triggers.tick_times import next_tick
from wakeful.turn.agent import Agent
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import QueueOverrides

MAIN = "agent:main:main"
CHAT = ProactiveRules(enabled=True, tick_interval_secs=900, jitter_pct=0, initial_greeting=False)
MAIL = ProactiveRules(enabled=True, tick_interval_secs=3_600, jitter_pct=0, initial_greeting=False)


def bound(chat: ProactiveRules | None, mail: ProactiveRules | None = None) -> Settings:
    bindings = (
        Binding(match=Match(door="chat"), proactive=chat),
        Binding(match=Match(door="mail"), proactive=mail),
    )
    queue = QueueOverrides(debounce_ms=0)
    return Settings(bindings=bindings, dm_scope=DmScope.PER_CHANNEL_PEER, queue=queue)


def agent(model: Scripted, rules: ProactiveRules = ProactiveRules()) -> Agent:  # noqa: B008
    return Agent(model=model, proactive=rules, heartbeat=NO_HEARTBEAT)


async def say(runtime: Runtime, door: str) -> str:
    """Have somebody speak at a door; return the session that is theirs."""
    receipt = await runtime.receive(Principal.operator(), Contact(door=door, peer="ann"), "hi")
    await runtime.wait(receipt)
    return receipt.session_key


async def due(runtime: Runtime) -> dict[str, int]:
    rows = await runtime.store.read("SELECT target, due_at FROM timers WHERE kind = 'tick'")
    return {row[0]: row[1] for row in rows}


async def test_each_session_ticks_by_the_whole_block_of_the_binding_that_opened_it() -> None:
    clock, model = ManualClock(), Scripted(always)
    async with Runtime(
        agents=[agent(model, RULES)], settings=bound(CHAT, MAIL), clock=clock
    ) as runtime:
        chat, mail = await say(runtime, "chat"), await say(runtime, "mail")
        end, found = clock.now(), await due(runtime)
        clock.advance(900)
        await ended(runtime, 4)  # two that people began, main's own, and the chat's

    assert found == {
        MAIN: next_tick(MAIN, end, RULES),
        chat: end + 900_000,
        mail: end + 3_600_000,
    }


async def test_a_binding_without_a_block_has_sessions_that_do_not_tick() -> None:
    clock, model = ManualClock(), Scripted(always)
    async with Runtime(
        agents=[agent(model, RULES)], settings=bound(CHAT, None), clock=clock
    ) as runtime:
        mail = await say(runtime, "mail")
        found = await due(runtime)

    assert mail not in found
    assert MAIN in found


async def test_a_newly_proactive_binding_begins_at_the_next_turns_end_and_can_end() -> None:
    clock, model = ManualClock(), Scripted(always)
    agents = [agent(model)]
    async with Runtime(agents=agents, settings=bound(None), clock=clock) as runtime:
        chat = await say(runtime, "chat")
        await runtime.reconfigure(agents=agents, settings=bound(CHAT))
        before = await due(runtime)
        await say(runtime, "chat")
        begun = await due(runtime)
        await runtime.reconfigure(agents=agents, settings=bound(None))
        clock.advance(900)
        await wait_for(runtime, "timer.fired", lambda event: event.data["kind"] == "tick")
        after, filed = await due(runtime), await ticks(runtime)

    assert before == {}
    assert begun == {chat: clock.now()}
    assert (after, filed) == ({}, [])


async def test_ticks_and_jobs_of_one_session_both_run() -> None:
    clock, model = ManualClock(), Scripted(always)
    async with Runtime(agents=[agent(model)], settings=bound(CHAT), clock=clock) as runtime:
        chat = await say(runtime, "chat")
        clock.advance(900)
        await ended(runtime, 2)
        job = operator_draft(chat, "report", kind=Kind.AUTOMATION, source="cron:daily")
        clock.advance(600)
        await runtime.wait(await runtime.accept(job))
        moved = await due(runtime)
        clock.advance(900)
        await ended(runtime, 4)
        kinds = await runtime.store.read("SELECT kind FROM turns ORDER BY id")

    assert moved == {chat: clock.now()}
    assert [kind for (kind,) in kinds] == ["user", "tick", "automation.bound", "tick"]
