"""The feed over every session: one row for each thing that happened, at the cost of a page."""

import asyncio
from collections.abc import Sequence
from datetime import date
from typing import Any, cast

import msgspec
import pytest

from tests.conformance.engine.conftest import SettingsFor
from wakeful.models.scripted import Pause, Scripted
from wakeful.notices.notices import Notices
from wakeful.runtime import Runtime
from wakeful.store.database import Row, Store, Tx
from wakeful.store.opening import is_postgres
from wakeful.testing.kit import ManualClock, in_memory
from wakeful.turn.agent import Agent
from wakeful.turns.turns import TURNS
from wakeful.views.activity import LOOKED_AT, ActivityView, FeedFilter, FeedRow
from wakeful.views.counts import CountsView
from wakeful.views.turns import TurnFilter, TurnView
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.kinds import Origin

MANY = 10_000
OFF = HeartbeatRules(every=0)
ACTIVITY = "system:activity"

OTHER_COLUMNS = ", ".join(
    name for name in TURNS.fields if name not in ("id", "agent_id", "kind", "ended_at")
)
# Every tenth turn is another agent's, every hundredth a webhook's.
COPY = f"""
INSERT INTO turns (id, agent_id, kind, ended_at, {OTHER_COLUMNS})
WITH RECURSIVE counting(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < {MANY})
SELECT id || '-' || n, CASE WHEN n % 10 = 0 THEN 'scout' ELSE 'main' END,
  CASE WHEN n % 100 = 0 THEN 'webhook' ELSE 'user' END, ended_at - n, {OTHER_COLUMNS}
FROM turns, counting
"""


class Reading:
    """A store that keeps how it would read, and counts how often it is asked."""

    def __init__(self, store: Store, explain: str) -> None:
        self._store = store
        self._explain = explain
        self.plan: list[str] = []
        self.reads = 0

    async def read(self, sql: str, /, **params: object) -> Sequence[Row]:
        self.reads += 1
        rows = await self._store.transact(lambda tx: tx.all(f"{self._explain} {sql}", **params))
        self.plan += [str(row[-1]) for row in rows]
        return await self._store.read(sql, **params)


def two_agents(settings: Any, clock: ManualClock) -> Runtime:
    agents = [
        Agent(id=name, model=Scripted(lambda _: "well"), heartbeat=OFF)
        for name in ("main", "scout")
    ]
    return Runtime(agents=agents, settings=settings, clock=clock)


async def every(view: ActivityView, wanted: FeedFilter, limit: int) -> list[FeedRow]:
    """Return the whole feed, read page by page."""
    rows: list[FeedRow] = []
    page = await view.page(wanted, None, limit)
    rows += page.rows
    while page.next is not None:
        page = await view.page(wanted, page.next, limit)
        rows += page.rows
    return rows


async def fill(runtime: Runtime) -> None:
    """Leave something of each kind in the feed, of two agents."""
    tell = Notices(runtime.bus, runtime.services.ids)
    for number in range(3):
        await runtime.ask(f"hello {number}")
        await runtime.ask(f"hello {number}", session="agent:scout:main")

        def told(tx: Tx, number: int = number) -> None:
            tell.add(tx, "storm", "loud", str(number), "Loud.", "main")
            tell.add(tx, "storm", "loud", f"scout {number}", "Loud.", "scout")

        await runtime.store.transact(told)
        await runtime.sleep("main", 600, "lunch")
        await runtime.wake("main")
        await runtime.wait(await runtime.send("again"))


async def test_the_feed_has_one_row_for_each_turn_notice_and_end_of_a_sleep(
    settings_for: SettingsFor,
):
    async with two_agents(settings_for(), ManualClock()) as runtime:
        await fill(runtime)
        rows = await every(runtime.services.views.activity, FeedFilter(), 2)
        ended = await runtime.store.read("SELECT id FROM turns WHERE ended_at IS NOT NULL")
        told = await runtime.store.read("SELECT id FROM notices")

    by_kind = {
        kind: [row for row in rows if row.kind == kind] for kind in ("turn", "notice", "sleep")
    }
    assert sorted(row.id for row in by_kind["turn"]) == sorted(row[0] for row in ended)
    assert sorted(row.id for row in by_kind["notice"]) == sorted(row[0] for row in told)
    assert [row.state for row in by_kind["sleep"]] == ["ended", "entered"] * 3
    assert {row.trigger for row in by_kind["sleep"]} == {"lunch"}
    assert [row.place for row in rows] == sorted((row.place for row in rows), reverse=True)
    assert len({row.id for row in rows}) == len(rows)
    first = min(by_kind["turn"], key=lambda row: row.place)
    assert (first.trigger, first.reply, first.origin, first.state) == (
        "hello 0",
        "well",
        "user",
        "done",
    )


async def test_a_filtered_feed_is_the_feed_without_the_rest(settings_for: SettingsFor):
    filters = [
        FeedFilter(agent_id="main"),
        FeedFilter(origin=Origin.USER),
        FeedFilter(origin=Origin.SYSTEM),
        FeedFilter(origin=Origin.WAKE),
        FeedFilter(agent_id="scout", origin=Origin.USER),
        FeedFilter(agent_id="scout", origin=Origin.HUB),
    ]
    async with two_agents(settings_for(), ManualClock()) as runtime:
        await fill(runtime)
        view = runtime.services.views.activity
        rows = await every(view, FeedFilter(), 100)
        filtered = [await every(view, wanted, 2) for wanted in filters]

    assert filtered == [
        [
            row
            for row in rows
            if wanted.agent_id in (None, row.agent_id) and wanted.origin in (None, row.origin)
        ]
        for wanted in filters
    ]


async def test_pages_neither_skip_nor_repeat_while_new_rows_come(settings_for: SettingsFor):
    async with two_agents(settings_for(), ManualClock()) as runtime:
        await fill(runtime)
        view = runtime.services.views.activity
        before = await every(view, FeedFilter(), 100)
        page = await view.page(FeedFilter(), None, 2)
        seen = list(page.rows)
        while page.next is not None:
            await runtime.ask("meanwhile")
            page = await view.page(FeedFilter(), page.next, 2)
            seen += page.rows

    assert [row.id for row in seen] == [row.id for row in before]


async def test_a_page_costs_the_same_with_10_000_turns(settings_for: SettingsFor):
    filters = [
        FeedFilter(),
        FeedFilter(agent_id="scout"),
        FeedFilter(origin=Origin.WEBHOOK),
        FeedFilter(origin=Origin.SYSTEM),
        FeedFilter(agent_id="main", origin=Origin.WEBHOOK),
        FeedFilter(agent_id="main", origin=Origin.SYSTEM),
    ]
    settings, clock = settings_for(), ManualClock()
    on_postgres = is_postgres(settings.database)
    async with two_agents(settings, clock) as runtime:
        await runtime.ask("hello")
        await runtime.store.transact(lambda tx: tx.run(COPY))
        if on_postgres:
            await runtime.store.transact(lambda tx: tx.run("ANALYZE turns"))
        reading = Reading(runtime.store, "EXPLAIN" if on_postgres else "EXPLAIN QUERY PLAN")
        view = ActivityView(cast("Any", reading))
        for wanted in filters:
            page = await view.page(wanted, None, 200)
            if page.next is not None:
                await view.page(wanted, page.next, 200)

    steps = [step.strip(" ->") for step in reading.plan]
    looks = [step for step in steps if " turns" in step or " stimuli" in step]
    assert looks
    assert not [step for step in looks if step.startswith("Seq Scan") or is_whole(step)]
    assert not [step for step in steps if "TEMP B-TREE" in step]
    assert reading.reads <= len(filters) * 2 * 5


def is_whole(step: str) -> bool:
    """Tell whether SQLite reads a whole table, and not as far as it likes along an index."""
    return step.startswith("SCAN") and "USING" not in step


async def test_a_page_that_looked_through_much_goes_on_where_it_stopped(settings_for: SettingsFor):
    async with two_agents(settings_for(), ManualClock()) as runtime:
        await runtime.ask("hello")
        await runtime.store.transact(lambda tx: tx.run(COPY))
        view = runtime.services.views.activity
        wanted = FeedFilter(agent_id="scout", origin=Origin.USER)
        nothing = await view.page(FeedFilter(agent_id="main", origin=Origin.WEBHOOK), None, 50)
        rare = FeedFilter(agent_id="scout", origin=Origin.WEBHOOK)
        found = await every(view, rare, 1000)
        rest = await every(view, wanted, 7)

    assert (nothing.rows, nothing.next is not None) == ([], True)
    assert LOOKED_AT < MANY
    assert len(found) == len({row.id for row in found}) == MANY // 100
    assert len(rest) == len({row.id for row in rest}) == MANY // 10 - MANY // 100


async def test_a_sleep_that_never_took_effect_began_before_it_ended(settings_for: SettingsFor):
    async with in_memory(Scripted(lambda _: "well"), settings=settings_for()) as runtime:
        await runtime.ask("hello")
        await runtime.sleep("main", 600, "first")
        await runtime.sleep("main", 900, "second")
        await runtime.delete("main", is_confirmed=True)
        rows = await every(runtime.services.views.activity, FeedFilter(origin=Origin.WAKE), 50)

    assert [(row.trigger, row.state, row.source) for row in reversed(rows)] == [
        ("first", "entered", "operator"),
        ("first", "ended", "replaced"),
        ("second", "entered", "operator"),
        ("second", "ended", "session-deleted"),
    ]


async def test_unread_is_what_ended_in_activity_and_what_people_were_told(
    settings_for: SettingsFor,
):
    answers = ["one", "NO_REPLY", "elsewhere"]
    async with in_memory(Scripted(answers), settings=settings_for()) as runtime:
        view, acts = runtime.services.views.activity, runtime.services.activity
        tell = Notices(runtime.bus, runtime.services.ids)
        for _ in range(2):
            await runtime.wait(await runtime.send("look", session=ACTIVITY))
        await runtime.ask("hello")
        await runtime.store.transact(lambda tx: tell.add(tx, "a", "b", "", "About main.", "main"))
        await runtime.store.transact(lambda tx: tell.add(tx, "a", "c", "", "About nobody."))
        unread = await view.unread()
        rows = {row.reply: row.is_unread for row in (await view.page(FeedFilter(), None, 9)).rows}
        now = runtime.clock.now()
        left = await acts.see(now, "main"), await view.unread()
        nothing = await acts.see(now), await view.unread()
        back = await acts.see(0)

    assert unread == {"": 1, "main": 2}
    assert rows == {
        "one": True,
        "NO_REPLY": False,
        "elsewhere": False,
        "About main.": True,
        "About nobody.": True,
    }
    assert left == (0, {"": 1, "main": 0})
    assert nothing == (0, {"": 0, "main": 0})
    assert back == 0


async def test_a_mark_never_moves_back_nor_ahead_of_the_clock(settings_for: SettingsFor):
    clock = ManualClock()
    async with in_memory(
        Scripted(lambda _: "well"), settings=settings_for(), clock=clock
    ) as runtime:
        acts, view = runtime.services.activity, runtime.services.views.activity
        start = clock.now()
        clock.advance(10)
        await runtime.wait(await runtime.send("look", session=ACTIVITY))
        read = await acts.see(2**50)
        await asyncio.gather(*(acts.see(start + number) for number in range(5)))
        after = await view.unread()
        clock.advance(1)
        await runtime.wait(await runtime.send("look", session=ACTIVITY))
        later = await view.unread()
        seen = await runtime.store.read("SELECT data FROM events WHERE kind = 'activity.seen'")

    assert (read, after["main"], later["main"]) == (0, 0, 1)
    assert len(seen) == 2  # one for the agent, one for what is nobody's


async def test_the_end_of_a_turn_in_activity_is_told_whatever_came_of_it(
    settings_for: SettingsFor,
):
    answers = ["one", "NO_REPLY", ValueError("broken")]
    async with in_memory(Scripted(answers), settings=settings_for()) as runtime:
        for _ in range(3):
            await runtime.wait(await runtime.send("look", session=ACTIVITY))
        told = await runtime.store.read(
            "SELECT data, turn_id FROM events WHERE kind = 'activity.message' ORDER BY seq"
        )
        unread = await runtime.services.views.activity.unread()

    data = [msgspec.json.decode(row[0]) for row in told]
    assert [(one["state"], one["origin"], one["agent_id"]) for one in data] == [
        ("done", "user", "main"),
        ("done", "user", "main"),
        ("failed", "user", "main"),
    ]
    assert [one["text"] for one in data[:2]] == ["one", ""]
    assert data[2]["text"]
    assert unread["main"] == 2


async def test_counts_and_lists_of_turns_never_read_the_history(settings_for: SettingsFor):
    settings = settings_for()
    on_postgres = is_postgres(settings.database)
    async with two_agents(settings, ManualClock()) as runtime:
        await runtime.ask("hello")
        await runtime.store.transact(lambda tx: tx.run(COPY))
        if on_postgres:
            await runtime.store.transact(lambda tx: tx.run("ANALYZE turns"))
        reading = Reading(runtime.store, "EXPLAIN" if on_postgres else "EXPLAIN QUERY PLAN")
        store = cast("Any", reading)
        counts = await CountsView(store, runtime.bus).get()
        view = TurnView(store, runtime.bus, runtime.clock)
        wanted = [
            TurnFilter(),
            TurnFilter(session_key="agent:main:main", origin=Origin.TICK),
            TurnFilter(origin=Origin.WEBHOOK, day=date(2027, 1, 15)),
        ]
        for one in wanted:
            await view.page("operator", one, None, 50)
        await view.page("ann", TurnFilter(), None, 50)

    assert (counts.turns, counts.sessions) == (0, 3)
    steps = [step.strip(" ->") for step in reading.plan]
    tables = (" turns", " stimuli", " lanes", " deliveries", " notices")
    looks = [step for step in steps if any(table in step for table in tables)]
    assert looks
    assert not [step for step in looks if step.startswith("Seq Scan") or is_whole(step)]
    assert not [step for step in steps if "TEMP B-TREE" in step]


async def test_a_turn_of_another_release_in_activity_ends_and_is_told(settings_for: SettingsFor):
    pause = Pause("thinking")
    async with in_memory(Scripted([pause, "well"]), settings=settings_for()) as runtime:
        receipt = await runtime.send("look", session=ACTIVITY)
        await pause.reached.wait()
        await runtime.store.transact(lambda tx: tx.run("UPDATE turns SET kind = 'moonlight'"))
        await runtime.delete(ACTIVITY, is_confirmed=True)
        pause.go_on.set()
        ((state,),) = await runtime.store.read("SELECT state FROM turns")
        (row,) = await every(runtime.services.views.activity, FeedFilter(), 5)

    assert receipt.turn_id is None or state == "stopped"
    assert (row.origin, row.state) == ("moonlight", "stopped")


async def test_a_program_sees_what_its_own_runtime_did():
    async with in_memory(Scripted(["one", "two"])) as runtime:
        await runtime.ask("look", session=ACTIVITY)
        await runtime.ask("hello")
        page = await runtime.activity(limit=1)
        rest = await runtime.activity(after=page.next)
        ticks = await runtime.activity(origin="tick", agent="main")
        before = (await runtime.counts()).unread
        left = await runtime.see_activity(agent="main")
        with pytest.raises(InvalidInput, match="origin"):
            await runtime.activity(origin="moon")
        with pytest.raises(NotFound):
            await runtime.see_activity(agent="nobody")

    assert [row.reply for row in [*page.rows, *rest.rows]] == ["two", "one"]
    assert (ticks.rows, before, left) == ([], 1, 0)
