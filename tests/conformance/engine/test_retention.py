"""What is settled and old is forgotten; what is open never is."""

import asyncio

from tests.conformance.engine.conftest import SettingsFor
from wakeful.bus.bus import Bus
from wakeful.intake import dedup
from wakeful.operations.janitor import DAY_MS, STEP, Janitor
from wakeful.runtime import Runtime
from wakeful.store.database import Tx
from wakeful.testing.kit import Scripted, in_memory, operator_draft
from wakeful.vocabulary.clock import ManualClock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.retention import Retention
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Trust

MAIN = "agent:main:main"
TABLES = ("stimuli", "turns", "asks", "deliveries", "dedup", "entries")


SAID = "stimuli WHERE kind = 'user'"  # without what the agent gave itself to do


async def count(runtime: Runtime, table: str) -> int:
    return (await runtime.store.read(f"SELECT COUNT(*) FROM {table}"))[0][0]


async def janitor(runtime: Runtime, clock: ManualClock, *, events: int = 1000) -> Janitor:
    bus = Bus(runtime.store, Ids(clock))
    await bus.start()
    return Janitor(runtime.store, bus, clock, Retention(events=events))


async def test_only_what_is_settled_and_old_goes(settings_for: SettingsFor):
    clock = ManualClock()
    received: list[str] = []

    async def out(delivery: object) -> None:
        received.append(str(delivery))

    model = Scripted(lambda _: "ok")
    settings = settings_for()
    async with in_memory(model, settings=settings, clock=clock, doors={"out": out}) as runtime:
        route = Route(door="out", address="ann")
        for number in range(3):
            await runtime.wait(await runtime.send("x", dedup_key=f"{number}", route=route))
        await runtime.halt()
        await runtime.send("waits for months")
        sweeper = await janitor(runtime, clock)
        await sweeper.sweep()
        early = {table: await count(runtime, table) for table in TABLES}
        clock.jump_to(clock.now() + 91 * DAY_MS)
        await sweeper.sweep()
        late = {table: await count(runtime, table) for table in TABLES}
        events = await count(runtime, "events")

    assert early == dict.fromkeys(TABLES, 3) | {"stimuli": 4, "entries": 6}
    assert late == {
        "stimuli": 1,
        "turns": 0,
        "asks": 0,
        "deliveries": 0,
        "dedup": 0,
        "entries": 6,
    }
    assert events == 0
    assert len(received) == 3


async def test_a_key_counts_for_as_long_as_the_ledger_keeps_its_message(settings_for: SettingsFor):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        first = await runtime.send("x", dedup_key="k")
        await runtime.wait(first)
        sweeper = await janitor(runtime, clock)
        outcomes: list[Outcome] = []
        for days in (1, 88, 2):
            clock.jump_to(clock.now() + days * DAY_MS)
            await sweeper.sweep()
            outcomes.append((await runtime.send("x", dedup_key="k")).outcome)

    assert outcomes == [Outcome.DUPLICATE, Outcome.DUPLICATE, Outcome.STARTED]


async def test_keys_are_forgotten_in_steps_and_only_with_their_stimuli(settings_for: SettingsFor):
    clock = ManualClock()
    async with in_memory(Scripted([]), settings=settings_for(), clock=clock) as runtime:
        await runtime.halt()
        for number in range(3):
            await runtime.send("x", dedup_key=f"kept {number}")
        await runtime.send("/whoami", dedup_key="a command")

        def write(tx: Tx) -> None:
            tx.many(
                "INSERT INTO dedup (scope, key, stimulus_id, body_hash, receipt, expires_at) "
                "VALUES ('s', :key, 'st_gone', '', '', :expires_at)",
                [{"key": f"{n:05}", "expires_at": dedup.WITH_STIMULUS} for n in range(2 * STEP)],
            )

        await runtime.store.transact(write)
        await (await janitor(runtime, clock)).sweep()
        kept = await count(runtime, "dedup")
        clock.jump_to(clock.now() + 8 * DAY_MS)
        await (await janitor(runtime, clock)).sweep()
        later = await count(runtime, "dedup")

    assert (kept, later) == (4, 3)


async def test_events_are_bounded_in_number_from_the_oldest_on(settings_for: SettingsFor):
    clock = ManualClock()
    async with in_memory(Scripted([]), settings=settings_for(), clock=clock) as runtime:

        def write(tx: Tx) -> None:
            tx.run("DELETE FROM events")
            tx.many(
                "INSERT INTO events (seq, kind, at, data) VALUES (:seq, 'x', :at, '{}')",
                [{"seq": seq, "at": clock.now()} for seq in range(1, 3 * STEP + 1)],
            )
            tx.run("UPDATE bus_head SET seq = :head", head=3 * STEP)

        await runtime.store.transact(write)
        sweeper = await janitor(runtime, clock, events=100)
        await sweeper.sweep()
        rows = await runtime.store.read("SELECT MIN(seq), COUNT(*) FROM events")
        pruned = await runtime.store.read("SELECT pruned_through FROM bus_head")

    assert tuple(rows[0]) == (3 * STEP - 99, 100)
    assert pruned[0][0] == 3 * STEP - 100


async def test_sources_that_have_been_quiet_are_forgotten_by_the_storm_guard(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        sweeper = await janitor(runtime, clock)
        for source in ("quiet", "quiet too"):
            await runtime.accept(operator_draft(MAIN, text="x", kind=Kind.A2A, source=source))
        clock.jump_to(clock.now() + 2 * DAY_MS)
        await runtime.accept(operator_draft(MAIN, text="x", kind=Kind.A2A, source="loud"))
        await sweeper.sweep()
        rows = await runtime.store.read("SELECT source FROM storms")

    assert [row[0] for row in rows] == ["a2a:loud"]


async def test_the_share_of_a_stranger_is_forgotten_when_it_was_quiet_for_days(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        sweeper = await janitor(runtime, clock)
        found: list[list[str]] = []
        for source, days in (("quiet", 6), ("loud", 6)):
            said = Draft(
                session_key=MAIN, text="x", trust=Trust.EXTERNAL, owner=OPERATOR, source=source
            )
            await runtime.wait(await runtime.accept(said))
            clock.jump_to(clock.now() + days * DAY_MS)
            await sweeper.sweep()
            rows = await runtime.store.read(
                "SELECT scope FROM budgets WHERE scope LIKE 'source:%' ORDER BY scope"
            )
            found.append([row[0] for row in rows])

    assert found == [["source:quiet"], ["source:loud"]]


async def rows_of_deleted(runtime: Runtime) -> tuple[int, int]:
    return await count(runtime, "deleted_sessions"), await count(runtime, "lanes")


async def test_a_session_deleted_long_ago_leaves_no_row_and_its_epochs_never_come_again(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        sweeper = await janitor(runtime, clock)
        for _ in range(3):
            await runtime.wait(await runtime.send("x", session="gone"))
        ((before,),) = await runtime.store.read("SELECT epoch FROM lanes")
        await runtime.delete("gone")
        clock.jump_to(clock.now() + 90 * DAY_MS)
        await sweeper.sweep()
        early = await rows_of_deleted(runtime)
        clock.jump_to(clock.now() + 2 * DAY_MS)
        await sweeper.sweep()
        late = await rows_of_deleted(runtime)
        turn = await runtime.wait(await runtime.send("back", session="gone"))
        ((after,),) = await runtime.store.read("SELECT epoch FROM lanes")

    assert (early, late) == ((1, 1), (0, 0))
    assert turn is not None
    assert (before, after) == (3, 4)


async def test_the_name_of_a_deleted_session_is_kept_while_a_ledger_speaks_of_it(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        sweeper = await janitor(runtime, clock)
        for session in ("told", "back"):
            await runtime.wait(await runtime.send("x", session=session))
            await runtime.delete(session)
        clock.jump_to(clock.now() + 100 * DAY_MS)
        await runtime.wait(await runtime.send("again", session="back"))
        await runtime.store.transact(
            lambda tx: tx.run(
                "UPDATE turns SET ended_at = :now WHERE session_key LIKE '%told'", now=tx.now
            )
        )
        await sweeper.sweep()
        kept = await rows_of_deleted(runtime)

    assert kept == (2, 2)


class WatchedClock(ManualClock):
    """Tells when the runtime's own janitor waits for its next sweep."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: asyncio.Queue[float] = asyncio.Queue()

    async def sleep(self, seconds: float) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name() == "janitor":
            self.waits.put_nowait(seconds)
        await super().sleep(seconds)


async def test_a_clock_that_is_ahead_for_a_moment_makes_nothing_forgotten(
    settings_for: SettingsFor,
):
    clock = WatchedClock()
    model = Scripted(lambda _: "ok")
    async with in_memory(model, settings=settings_for(), clock=clock) as runtime:
        await runtime.wait(await runtime.send("x", dedup_key="1"))
        true = clock.now()
        clock.jump_to(true + 400 * DAY_MS)
        clock.advance(await clock.waits.get())
        wait_s = await clock.waits.get()
        clock.jump_to(true)
        clock.advance(wait_s)
        wait_s = await clock.waits.get()
        left = await count(runtime, SAID), await count(runtime, "turns")
        clock.jump_to(true + 400 * DAY_MS)
        clock.advance(wait_s)
        clock.advance(await clock.waits.get())
        await clock.waits.get()
        late = await count(runtime, SAID), await count(runtime, "turns")

    assert (left, late) == ((1, 1), (0, 0))


async def test_where_sleeps_began_and_ended_is_kept_as_long_as_turns_are(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    async with in_memory(Scripted(lambda _: "ok"), settings=settings_for(), clock=clock) as runtime:
        await runtime.ask("hello")
        await runtime.sleep("main", 600, "first")
        await runtime.sleep("main", 600, "second")
        sweeper = await janitor(runtime, clock)
        await sweeper.sweep()
        early = await count(runtime, "sleep_marks")
        clock.jump_to(clock.now() + 91 * DAY_MS)
        await runtime.sleep("main", 600, "third")
        await sweeper.sweep()
        late = [row.trigger for row in (await runtime.activity()).rows]

    assert early == 3
    assert late[0] == "third"
    assert "first" not in late
