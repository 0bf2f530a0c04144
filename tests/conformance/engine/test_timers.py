"""Timers fire once, in order and together; none is ever lost, whatever goes wrong meanwhile."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conformance.engine.conftest import SettingsFor
from tests.conformance.store.tables import together
from wakeful.broker import lane_rows
from wakeful.bus.bus import Bus
from wakeful.runtime import Runtime
from wakeful.store.database import LocksNeeded, Store, Tx
from wakeful.store.opening import open_store
from wakeful.testing.kit import ManualClock, Scripted, in_memory, operator_draft, wait_for
from wakeful.timers import timers
from wakeful.timers.timekeeper import LOOK_EVERY_MS, MANY, PAGE, Due, Timekeeper, TimerKind
from wakeful.timers.timers import Timer
from wakeful.turn.agent import Agent
from wakeful.vocabulary.errors import Invariant, StoreBusy, StoreRefused
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind

MAIN, OTHER = "agent:main:main", "agent:main:other"

Fire = Callable[[Tx, Sequence[Due[Any]]], None]


@dataclass
class Place:
    """A store with a timekeeper that looks only when it is told to."""

    store: Store
    bus: Bus
    clock: ManualClock

    def keeper(self, **kinds: TimerKind[Any]) -> Timekeeper:
        def locks(timer: Timer) -> Sequence[Any]:
            return [lane_rows.lock(timer.target)]

        return Timekeeper(self.store, self.bus, self.clock, kinds, locks)

    async def set(self, *wanted: Timer) -> None:
        def put(tx: Tx) -> None:
            for timer in wanted:
                timers.put(tx, timer)

        await self.store.transact(put)

    async def left(self) -> list[str]:
        return [row[0] for row in await self.store.read("SELECT id FROM timers ORDER BY id")]

    async def events(self, kind: str) -> list[dict[str, Any]]:
        sql = "SELECT data FROM events WHERE kind = :kind ORDER BY seq"
        return [msgspec.json.decode(row[0]) for row in await self.store.read(sql, kind=kind)]

    def due(self, timer_id: str, *, ago_ms: int = 0, kind: str = "test") -> Timer:
        return Timer(id=timer_id, due_at=self.clock.now() - ago_ms, kind=kind, target=MAIN)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str | None:
    match request.param:
        case "memory":
            return None
        case "sqlite":
            return tmp_path / "home" / "wakeful.db"
        case _:
            return request.getfixturevalue("postgres_url")


@pytest.fixture
async def place(address: Path | str | None) -> AsyncIterator[Place]:
    clock = ManualClock()
    store = await open_store(address, clock=clock)
    bus = Bus(store, Ids(clock))
    await bus.start()
    yield Place(store, bus, clock)
    await store.close()


class Fired:
    """What has fired, in order; a handler for tests."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.sizes: list[int] = []
        self.errors: dict[str, Exception] = {}  # that it fails with, as long as they are there

    def __call__(self, tx: Tx, dues: Sequence[Due[Any]]) -> None:
        for due in dues:
            if error := self.errors.get(due.timer.id):
                raise error
        ids = [due.timer.id for due in dues]
        tx.after_commit(lambda: self._note(ids))

    def _note(self, ids: list[str]) -> None:
        self.ids += ids
        self.sizes.append(len(ids))


async def test_timers_of_one_instant_fire_in_order_and_together(place: Place):
    fired = Fired()
    numbers = [*range(PAGE + 50)]
    await place.set(*(place.due(f"{number:04}") for number in reversed(numbers)))
    await place.set(place.due("early", ago_ms=1), place.due("later", ago_ms=-1))

    look_at = await place.keeper(test=TimerKind(fired)).fire_due()

    assert fired.ids == ["early", *(f"{number:04}" for number in numbers)]
    together = place.store.yielding_rows
    assert max(fired.sizes) <= together
    assert len(fired.sizes) <= 2 * (PAGE + 50) / together  # commits
    assert await place.left() == ["later"]
    assert look_at == place.clock.now() + 1


@pytest.mark.parametrize(("count", "left"), [(MANY - 1, 0), (MANY, MANY)])
async def test_many_that_are_due_let_others_write_first_and_few_do_not(
    place: Place, count: int, left: int
):
    page = [place.due(f"{number:04}") for number in range(count)]
    await place.set(*page)
    keeper = place.keeper(test=TimerKind(Fired()))
    seen: list[int] = []

    def look(tx: Tx) -> None:
        rows = tx.all("SELECT id FROM timers")
        seen.append(len(rows))

    firing = keeper._fire_page(page)  # pyright: ignore[reportPrivateUsage]
    await together(place.store, firing, place.store.transact(look))

    assert seen == [left]
    assert await place.left() == []


async def test_a_timer_that_fails_is_kept_tried_again_later_and_holds_up_no_other(place: Place):
    fired = Fired()
    fired.errors["bad"] = RuntimeError("half \ud83d")
    keeper = place.keeper(test=TimerKind(fired))
    bad = place.due("bad", ago_ms=10)
    await place.set(bad, *(place.due(f"good{number}") for number in range(5)))

    look_at = await keeper.fire_due()
    kept = await place.left()
    place.clock.advance(0.999)
    await keeper.fire_due()
    early = len(await place.events("timer.failed"))
    fired.errors["bad"] = Invariant("still bad")
    place.clock.advance(0.001)
    await keeper.fire_due()
    fired.errors.clear()
    place.clock.advance(2)
    await keeper.fire_due()

    assert kept == ["bad"]
    assert early == 1
    assert look_at == bad.due_at + 10 + 1_000
    assert fired.ids == [*(f"good{number}" for number in range(5)), "bad"]
    assert await place.left() == []
    told = {"timer_id": "bad", "kind": "test", "due_at": bad.due_at}
    assert await place.events("timer.failed") == [
        told | {"error": "half \ufffd", "failures": 1, "retry_at": look_at},
        told | {"error": "still bad", "failures": 2, "retry_at": look_at + 2_000},
    ]
    (again,) = [one for one in await place.events("timer.fired") if one["timer_id"] == "bad"]
    assert again["late_ms"] == 3_010


async def test_a_timer_that_needs_another_lane_fires_in_its_place_with_that_lock(place: Place):
    fired = Fired()
    held: list[bool] = []

    def fire(tx: Tx, dues: Sequence[Due[Any]]) -> None:
        if any(due.timer.id == "b" for due in dues):
            lane_rows.require(tx, [OTHER])
            held.append(tx.holds(lane_rows.lock(OTHER)))
        fired(tx, dues)

    await place.store.transact(lambda tx: lane_rows.add_missing(tx, [MAIN, OTHER]))
    await place.set(*map(place.due, "abc"))
    await place.keeper(test=TimerKind(fire)).fire_due()

    assert fired.ids == ["a", "b", "c"]
    assert held == [True]
    assert await place.events("timer.failed") == []


async def test_a_timer_that_needs_what_cannot_be_locked_is_one_timers_failure(place: Place):
    fired = Fired()
    fired.errors["b"] = LocksNeeded([lane_rows.lock("agent:main:gone")])
    await place.set(*map(place.due, "abc"))

    await place.keeper(test=TimerKind(fired)).fire_due()

    assert sorted(fired.ids) == ["a", "c"]
    assert [one["timer_id"] for one in await place.events("timer.failed")] == ["b"]


@pytest.mark.parametrize("error", [StoreRefused("no"), StoreBusy("no")])
async def test_a_store_that_refuses_costs_no_timer_its_turn(place: Place, error: Exception):
    fired = Fired()
    fired.errors["a"] = error
    keeper = place.keeper(test=TimerKind(fired))
    await place.set(place.due("a"))

    with pytest.raises(type(error)):
        await keeper.fire_due()
    failed = await place.events("timer.failed")
    fired.errors.clear()
    await keeper.fire_due()

    assert failed == []
    assert fired.ids == ["a"]


async def test_a_timekeeper_goes_on_whatever_it_fails_with(
    place: Place, caplog: pytest.LogCaptureFixture
):
    fired = Fired()
    fired.errors["a"] = StoreRefused("no")
    keeper = place.keeper(test=TimerKind(fired))
    await place.set(place.due("a"))

    async with asyncio.TaskGroup() as group:
        running = group.create_task(keeper.run())
        for error in (StoreBusy("no"), Invariant("no"), None):
            while not caplog.records:
                place.clock.advance(1)
                await place.store.read("SELECT 1")
            caplog.clear()
            fired.errors |= {"a": error} if error else {}
        fired.errors.clear()
        while not fired.ids:
            place.clock.advance(1)
            await place.store.read("SELECT 1")
        running.cancel()

    assert fired.ids == ["a"]


async def test_a_kind_of_another_release_is_left_alone_and_named_once(
    place: Place, caplog: pytest.LogCaptureFixture
):
    fired = Fired()
    keeper = place.keeper(test=TimerKind(fired))
    await place.set(*(place.due(f"x{number}", kind="dream", ago_ms=5) for number in range(PAGE)))
    await place.set(place.due("known"))

    look_at = await keeper.fire_due()
    await keeper.fire_due()

    assert fired.ids == ["known"]
    assert len(await place.left()) == PAGE
    assert look_at == place.clock.now() + LOOK_EVERY_MS
    assert [one.getMessage() for one in caplog.records if "dream" in one.getMessage()] == [
        "timers of the kind 'dream' wait for a release that knows it"
    ]


async def test_what_a_kind_prepares_is_read_off_the_loop_and_the_writer(place: Place):
    found: list[tuple[str, str]] = []
    threads: set[threading.Thread] = set()
    writers: set[threading.Thread] = set()
    broken = ["b"]

    def prepare(timer: Timer) -> str:
        threads.add(threading.current_thread())
        if timer.id in broken:
            raise OSError("no such file")
        return f"fact of {timer.id}"

    def fire(tx: Tx, dues: Sequence[Due[str]]) -> None:
        writers.add(threading.current_thread())
        pairs = [(due.timer.id, due.fact) for due in dues]
        tx.after_commit(lambda: found.extend(pairs))

    keeper = place.keeper(test=TimerKind(fire, prepare))
    await place.set(place.due("a"), place.due("b"))
    await keeper.fire_due()
    (failed,) = await place.events("timer.failed")
    broken.clear()
    place.clock.advance(1)
    await keeper.fire_due()

    assert found == [("a", "fact of a"), ("b", "fact of b")]
    assert failed["error"] == "no such file"
    assert not threads & {threading.main_thread(), *writers}


async def test_a_timer_that_is_set_again_begins_anew(place: Place):
    fired = Fired()
    fired.errors["a"] = RuntimeError("once")
    keeper = place.keeper(test=TimerKind(fired))
    await place.set(place.due("a"))
    await keeper.fire_due()

    fired.errors.clear()
    await place.set(place.due("a"))
    await keeper.fire_due()

    assert fired.ids == ["a"]


async def test_a_timer_that_fires_may_set_itself_again(place: Place):
    def fire(tx: Tx, dues: Sequence[Due[None]]) -> None:
        for due in dues:
            timers.put(tx, msgspec.structs.replace(due.timer, due_at=tx.now + 5_000))

    keeper = place.keeper(test=TimerKind(fire))
    await place.set(place.due("a"))

    look_at = await keeper.fire_due()

    assert look_at == place.clock.now() + 5_000
    assert await place.left() == ["a"]


def stimulus_timer(timer_id: str, due_at: int, key: str, **rest: Any) -> Timer:
    draft = operator_draft(key, text=timer_id, kind=Kind.AUTOMATION)
    payload = msgspec.json.encode(draft).decode()
    return Timer(id=timer_id, due_at=due_at, kind="stimulus", target=key, payload=payload, **rest)


async def put(runtime: Runtime, *wanted: Timer) -> None:
    def write(tx: Tx) -> None:
        for timer in wanted:
            timers.put(tx, timer)

    await runtime.store.transact(write)


async def test_deleting_a_session_leaves_the_timers_of_its_agent_and_of_jobs(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    later = clock.now() + 1_000
    async with in_memory(
        Scripted(lambda _: "well"), settings=settings_for(), clock=clock
    ) as runtime:
        await runtime.wait(await runtime.send("hello"))
        await put(
            runtime,
            stimulus_timer("callback", later, MAIN),
            stimulus_timer("heartbeat", later, MAIN, owner_kind="agent"),
            stimulus_timer("isolated job", later, MAIN, owner_kind="job"),
        )
        await runtime.delete("main")
        left = await runtime.store.read("SELECT id FROM timers ORDER BY id")

    assert [row[0] for row in left] == ["heartbeat", "isolated job"]


async def test_a_timer_of_an_absent_agent_is_kept_until_it_is_back(lasting: SettingsFor):
    clock = ManualClock()
    gone, stays = Agent("gone", model=Scripted(["here I am"])), Agent("main", model=Scripted([]))
    async with Runtime(agents=[stays], settings=lasting(), clock=clock) as runtime:
        await put(runtime, stimulus_timer("tea", clock.now(), "agent:gone:main"))
        parked = await wait_for(runtime, "stimulus.parked")

    async with Runtime(agents=[gone, stays], settings=lasting(), clock=clock) as runtime:
        finished = await wait_for(runtime, "turn.finished")

    assert parked.data["reason"] == "no-agent"
    assert (finished.session_key, finished.data["reply"]) == ("agent:gone:main", "here I am")


async def test_timers_file_their_stimuli_in_the_order_in_which_they_were_due(
    settings_for: SettingsFor,
):
    clock = ManualClock()
    async with in_memory(
        Scripted(lambda _: "well"), settings=settings_for(), clock=clock
    ) as runtime:
        due_at = clock.now() + 5_000
        wanted = [
            stimulus_timer(f"{number:02}", due_at + number // 10, MAIN) for number in range(40)
        ]
        await put(runtime, *reversed(wanted))
        clock.advance(60)
        await wait_for(runtime, "timer.fired", lambda event: event.data["timer_id"] == "39")
        rows = await runtime.store.read("SELECT text FROM stimuli ORDER BY seq")

    assert [row[0] for row in rows] == [timer.id for timer in wanted]
