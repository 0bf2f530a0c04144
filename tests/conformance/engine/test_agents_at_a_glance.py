"""What an agent does and when it wakes next is known from indexes, however many sleep."""

from tests.conformance.engine.conftest import SettingsFor
from wakeful.models.scripted import Pause
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.store.opening import is_postgres
from wakeful.testing.kit import ManualClock, Scripted, operator_draft
from wakeful.timers import timers
from wakeful.timers.timers import Timer
from wakeful.turn.agent import Agent
from wakeful.views.agents import LANES
from wakeful.vocabulary.agent import Limits
from wakeful.vocabulary.heartbeat import HeartbeatRules

PATIENT = Limits(first_token_s=86_400, idle_s=86_400, answer_s=86_400, wall_s=86_400)


def timer(target: str, due_at: int) -> Timer:
    return Timer(id=f"test {target}", due_at=due_at, kind="stimulus", target=target)


async def test_the_next_wake_of_an_agent_counts_its_own_timers(settings_for: SettingsFor):
    clock = ManualClock()
    agents = [Agent(id=name, model=Scripted([])) for name in ("main", "scout", "idle")]
    async with Runtime(agents=agents, settings=settings_for(), clock=clock) as runtime:
        soon, late = clock.now() + 60_000, clock.now() + 120_000

        def write(tx: Tx) -> None:
            timers.put(tx, timer("agent:main:main", soon), timer("agent:scout:main", late))

        await runtime.store.transact(write)
        found = {
            one.card.config.id: one.next_wake_at
            for one in await runtime.services.views.agents.all()
        }

    assert (found["main"], found["scout"]) == (soon, late)
    assert found["idle"] not in (soon, late)


async def test_lanes_are_counted_by_what_they_do(settings_for: SettingsFor):
    clock, pause = ManualClock(), Pause("busy")
    agent = Agent(model=Scripted([pause, "idle"]), limits=PATIENT)
    async with Runtime(agents=[agent], settings=settings_for(), clock=clock) as runtime:
        await runtime.send("work", session="busy")
        await pause.reached.wait()
        await runtime.wait(await runtime.send("hello", session="idle"))
        later = clock.now() + 60_000
        await runtime.accept(
            operator_draft(session_key="agent:main:later", text="hello", not_before=later)
        )
        status = await runtime.services.views.agents.get("main")
        pause.go_on.set()

    assert status.lanes == {"running": 1, "waiting": 1, "idle": 1}
    assert status.next_wake_at == later


async def test_what_did_not_wake_an_agent_is_counted_by_its_reason(settings_for: SettingsFor):
    clock = ManualClock()
    agent = Agent(model=Scripted([]), heartbeat=HeartbeatRules(every="30m"))
    async with Runtime(agents=[agent], settings=settings_for(), clock=clock) as runtime:
        skips = runtime.subscribe(topics=["heartbeat.skipped"])
        for _ in range(3):
            clock.advance(1800)
            await anext(skips)
        status = await runtime.services.views.agents.get("main")

    (skipped,) = status.skipped
    assert (skipped.origin, skipped.reason, skipped.count) == ("heartbeat", "nothing-to-do", 3)
    assert status.heartbeat.last_run_at is not None
    assert skipped.last_at >= status.heartbeat.last_run_at
    assert status.budget.turns.used == 0


async def test_no_look_at_agents_reads_every_lane(settings_for: SettingsFor):
    settings = settings_for()
    explain = "EXPLAIN" if is_postgres(settings.database) else "EXPLAIN QUERY PLAN"
    async with Runtime(agents=[Agent(model=Scripted([]))], settings=settings) as runtime:
        rows = await runtime.store.transact(
            lambda tx: tx.all(f"{explain} {LANES}", id="main", most=1000)
        )

    looks = [str(row[-1]) for row in rows if " lanes" in str(row[-1])]
    assert looks
    assert not [look for look in looks if "Seq Scan" in look or look == "SCAN lanes"]
