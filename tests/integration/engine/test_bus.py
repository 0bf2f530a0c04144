"""What the bus promises its readers: every stored event, once, in order."""

import asyncio
import threading

import pytest

from tests.integration.engine.stages import cycles
from wakeful.bus import bus as bus_module
from wakeful.bus import replays
from wakeful.bus.bus import Bus
from wakeful.store.database import Store, Tx
from wakeful.store.sqlite import open_sqlite
from wakeful.vocabulary.clock import Clock, ManualClock, SystemClock
from wakeful.vocabulary.event import Event, matches
from wakeful.vocabulary.ids import Ids

PATIENCE_S = 10.0


async def opened(clock: Clock | None = None) -> tuple[Store, Bus]:
    clock = clock or SystemClock()
    store = await open_sqlite(None, clock=clock)
    bus = Bus(store, Ids(clock))
    await bus.start()
    return store, bus


async def publish(store: Store, bus: Bus, *kinds: str) -> None:
    def write(tx: Tx) -> None:
        for kind in kinds:
            bus.publish(tx, Event(kind=kind, session_key="s"))

    await store.transact(write)


async def test_replay_and_live_events_meet_without_gap_or_repeat():
    store, bus = await opened()
    await publish(store, bus, *["a.b"] * 1200)
    events = bus.follow(since=(await bus.head()).replace("-1200", "-0"))
    seen = [(await anext(events)).seq for _ in range(600)]
    await publish(store, bus, *["a.b"] * 5)
    seen += [(await anext(events)).seq for _ in range(605)]

    assert seen == list(range(1, 1206))
    await store.close()


async def test_many_who_replay_leave_the_readers_of_the_store_to_others():
    store, bus = await opened()
    await publish(store, bus, *["a.b"] * 200)
    epoch = (await bus.head()).removesuffix("-200")
    followers = [bus.follow(since=f"{epoch}-{number}") for number in range(50)]
    for follower in followers:
        await follower.batch()  # it finds its position
    done: list[int] = []

    async def replay(number: int) -> None:
        await followers[number].batch()
        done.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(len(followers)):
            tasks.create_task(replay(number))
        await tasks.create_task(store.read("SELECT 1"))
        before = len(done)

    assert before < len(followers) // 2
    assert done == list(range(50))
    await store.close()


async def test_what_several_replay_is_read_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replays, "KEPT_S", 3600.0)
    store, bus = await opened()
    await publish(store, bus, *["a.b"] * 350)
    first, second = bus.follow(since="0"), bus.follow(since="0", topics=["a.*"])
    seen = [[await anext(one) for _ in range(350)] for one in (first, second)]
    await publish(store, bus, "a.b")
    last = [(await anext(one)).seq for one in (first, second)]

    assert [event.seq for event in seen[0]] == list(range(1, 351))
    assert [one is two for one, two in zip(*seen, strict=True)] == [True] * 300 + [False] * 50
    assert last == [351, 351]
    await store.close()


async def test_an_event_has_one_time_live_and_replayed():
    clock = ManualClock()
    store, bus = await opened(clock)
    live = bus.follow()
    entered, leave, next_ran = threading.Event(), threading.Event(), threading.Event()

    def publish_slowly(tx: Tx) -> None:
        entered.set()
        assert leave.wait(PATIENCE_S)
        bus.publish(tx, Event(kind="x"))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(store.transact(publish_slowly))
        assert await asyncio.to_thread(entered.wait, PATIENCE_S)
        clock.advance(5)
        tasks.create_task(store.transact(lambda _: next_ran.set()))
        await cycles()
        # The event loop stands still: the next group begins before anybody is told of the first.
        leave.set()
        assert next_ran.wait(PATIENCE_S)
    told = (await anext(live)).at
    ((stored,),) = await store.read("SELECT at FROM events")

    assert told == stored == clock.now() - 5000
    await store.close()


async def test_a_slow_reader_is_told_of_the_gap_and_still_gets_every_stored_event():
    store, bus = await opened()
    await publish(store, bus, "x")
    reader = bus.follow(since=await bus.head())
    await publish(store, bus, "x")
    assert (await anext(reader)).seq == 2
    total = bus_module.QUEUE_LIMIT + 10
    for _ in range(total):
        await publish(store, bus, "x")
    kinds = [await anext(reader) for _ in range(total + 1)]

    assert [event.kind for event in kinds].count("gap") == 1
    assert [event.seq for event in kinds if event.seq] == list(range(3, total + 3))
    await store.close()


async def test_an_unknown_cursor_gets_one_reset_and_then_live_events():
    store, bus = await opened()
    await publish(store, bus, "x")
    epoch = (await bus.head()).rpartition("-")[0]
    for cursor in ("other-1", "nonsense", f"{epoch}-99", f"{epoch}-{'9' * 5000}"):
        events = bus.follow(since=cursor)
        assert (await anext(events)).kind == "reset"
        await publish(store, bus, "y")
        assert (await anext(events)).kind == "y"
    await store.close()


async def test_a_pruned_position_gets_a_reset():
    store, bus = await opened()
    start = await bus.head()
    await publish(store, bus, "x", "x", "x")

    def prune(tx: Tx) -> None:
        tx.run("DELETE FROM events WHERE seq <= 2")
        tx.run("UPDATE bus_head SET pruned_through = 2")

    await store.transact(prune)

    assert (await anext(bus.follow(since=start))).kind == "reset"
    await store.close()


async def test_zero_stands_before_the_oldest_event_that_is_kept():
    store, bus = await opened()
    await publish(store, bus, "a", "b", "c")

    def prune(tx: Tx) -> None:
        tx.run("DELETE FROM events WHERE seq <= 2")
        tx.run("UPDATE bus_head SET pruned_through = 2")

    whole = bus.follow(since="0")
    kinds = [(await anext(whole)).kind for _ in range(3)]
    await store.transact(prune)

    assert kinds == ["a", "b", "c"]
    assert (await anext(bus.follow(since="0"))).kind == "c"
    await store.close()


async def test_topics_choose_what_is_seen():
    store, bus = await opened()
    events = bus.follow(topics=["turn.*", "halt.set"], since=await bus.head())
    await publish(store, bus, "stimulus.accepted", "turn.started", "halt.lifted", "halt.set")

    assert [(await anext(events)).kind for _ in range(2)] == ["turn.started", "halt.set"]
    await store.close()


async def test_a_failed_transaction_publishes_nothing():
    store, bus = await opened()

    def fail(tx: Tx) -> None:
        bus.publish(tx, Event(kind="never"))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await store.transact(fail)
    assert not await store.read("SELECT 1 FROM events")
    await store.close()


def test_a_topic_is_a_kind_or_a_beginning():
    assert matches("*", "anything")
    assert matches("turn.*", "turn.started")
    assert not matches("turn.*", "stimulus.accepted")
    assert not matches("turn.started", "turn.finished")


async def test_a_session_is_followed_apart_from_the_others():
    store, bus = await opened()
    start = await bus.head()

    def write(tx: Tx) -> None:
        for key in ("a", "b", "a"):
            bus.publish(tx, Event(kind="x", session_key=key))

    await store.transact(write)
    events = bus.follow(session_key="a", since=start)
    await store.transact(write)

    assert [(await anext(events)).seq for _ in range(4)] == [1, 3, 4, 6]
    await store.close()


async def test_live_frames_keep_their_place_between_stored_events():
    store, bus = await opened()
    events = bus.follow(since=await bus.head())
    await publish(store, bus, "before")
    bus.show(Event(kind="live", session_key="s"))
    await publish(store, bus, "after")

    assert [(await anext(events)).kind for _ in range(3)] == ["before", "live", "after"]
    await store.close()


async def test_a_reader_that_is_let_go_is_forgotten():
    store, bus = await opened()
    events = bus.follow(session_key="s")
    assert bus.is_watched("s")
    await events.aclose()
    assert not bus.is_watched("s")
    await store.close()
