"""Two nodes on one PostgreSQL: every verb that reads and then writes, from both at once."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence

import msgspec
import pytest

from tests.wake_gate import open_gate
from wakeful.approvals.answering import Answering
from wakeful.automations.acts import AutomationActs
from wakeful.automations.scheduling import Scheduling
from wakeful.automations.wishes import Checks
from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate import halts
from wakeful.intake.accept import IntakeRules
from wakeful.intake.bindings import Bindings
from wakeful.intake.intake import Intake
from wakeful.lanes.opening import Opened, Opening
from wakeful.models.scripted import Scripted
from wakeful.notices.notices import Notices
from wakeful.outbox import outbox
from wakeful.outbox.outbox import DeliveryState
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, SleepPolicy
from wakeful.store.database import Lock, LockSpace, Store, Tx
from wakeful.store.postgres import open_postgres
from wakeful.testing.kit import operator_draft
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due, Timekeeper, TimerKind
from wakeful.timers.timers import Timer
from wakeful.tools.toolbox import Toolbox
from wakeful.turn import next_step
from wakeful.turn.agent import Agent, ReadyAgent
from wakeful.turn.attempt import Ended, Fenced, StepResult
from wakeful.turn.commit import TurnDeps, commit_step
from wakeful.turn.ending import Ending
from wakeful.turn.ready_agents import ReadyAgents
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.automation import AutomationLimits
from wakeful.vocabulary.clock import Clock, SystemClock
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.message import AssistantMessage, Text
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import Mode, QueueOverrides
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Draft, Outcome, Receipt, StormLimits, Trust

MAIN = "agent:main:main"
ROUNDS = 25
DAY_MS = 86_400_000


def _no_event(_tx: Tx, _draft: Draft, _wakes: bool) -> Receipt:
    raise AssertionError("nothing here is an event")


class Node:
    """One node's rooms, without its services: the test says who does what, when."""

    def __init__(self, store: Store, name: str, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        ids = Ids(clock)
        agent = Agent(model=Scripted([]))
        self.store = store
        self.bus = Bus(store, ids)
        settlement, gate = Settlement(self.bus), open_gate(self.bus, ids, agent.config)
        self.intake = Intake(
            store,
            self.bus,
            ids,
            Agents({"main": agent.config}),
            IntakeRules(storm=StormLimits(turns=3)),
            settlement=settlement,
            may_wake=gate.may_wake,
        )
        self.scheduling = Scheduling(
            Agents({"main": agent.config}),
            self.bus,
            ids,
            clock,
            Notices(self.bus, ids),
            self.intake.accept_in,
            _no_event,
        )
        checks = Checks(
            limits=AutomationLimits(), check_model=lambda _: None, knows_door=lambda _: False
        )
        pen = TurnDeps(
            bus=self.bus,
            ids=ids,
            ending=Ending(self.bus, ids, settlement, gate.budgets),
            settlement=settlement,
            gate=gate,
            queue_settings_of=self.intake.queue.of,
            file=self.intake.accept_in,
            grants_of=lambda _stimulus: (),
            reports_to=lambda _tx, _stimulus: None,
            proactive_of=lambda _session: ProactiveRules(),
            answering=Answering(self.bus, Notices(self.bus, ids), self.intake.keep_in),
            automations=AutomationActs(store, Bindings(), settlement, self.scheduling, checks),
        )
        mind = ReadyAgent(agent, Scripted([]), Toolbox(()))
        self.opening = Opening(
            pen, ReadyAgents({"main": mind}, lambda _name, _limits: Scripted([])), owner=name
        )
        self.deps = pen
        self.ids = ids

    async def accept(self, text: str, key: str = MAIN, **rest: object):
        draft = msgspec.structs.replace(operator_draft(key, text=text), **rest)
        return await self.intake.accept(draft)

    async def claim(self, key: str = MAIN) -> Opened | None:
        return await self.store.transact(
            lambda tx: self.opening.open_next(tx, key), locks=[lane_rows.lock(key)]
        )

    async def finish(self, opened: Opened):
        news = StepResult(reply=AssistantMessage(content=(Text(text="done"),)))
        advanced = await self.store.transact(
            lambda tx: commit_step(
                self.deps, tx, opened.attempt, lambda commit: next_step.advance(commit, news)
            ),
            locks=[lane_rows.lock(MAIN)],
        )
        return advanced.next


@pytest.fixture
async def nodes(migrated_url: str) -> AsyncIterator[tuple[Node, Node]]:
    clock = SystemClock()
    first = await open_postgres(migrated_url, clock=clock, exclusive=False)
    second = await open_postgres(migrated_url, clock=clock, exclusive=False)
    pair = Node(first, "first"), Node(second, "second")
    await pair[0].bus.start()
    await pair[1].bus.start()
    yield pair
    await first.close()
    await second.close()


async def column(node: Node, sql: str) -> list[object]:
    return [row[0] for row in await node.store.read(sql)]


async def test_both_accept_into_one_new_lane_without_losing_a_number(nodes: tuple[Node, Node]):
    await asyncio.gather(
        *(node.accept(f"{n}", kind=Kind.SYSTEM_EVENT) for n in range(100) for node in nodes)
    )

    numbers = await column(nodes[0], "SELECT seq FROM stimuli ORDER BY seq")
    assert numbers == list(range(1, 201))
    assert await column(nodes[0], "SELECT seq FROM lanes") == [200]


async def test_one_key_on_both_nodes_is_one_stimulus(nodes: tuple[Node, Node]):
    for number in range(ROUNDS):
        receipts = await asyncio.gather(
            *(node.accept("x", dedup_key=f"k{number}", kind=Kind.SYSTEM_EVENT) for node in nodes)
        )
        outcomes = [receipt.outcome for receipt in receipts]
        assert outcomes.count(Outcome.DUPLICATE) == 1

    assert len(await column(nodes[0], "SELECT id FROM stimuli")) == ROUNDS


async def test_keys_in_opposite_order_never_deadlock(nodes: tuple[Node, Node]):
    keys = [f"k{n}" for n in range(20)]
    for _ in range(3):
        await asyncio.gather(
            *(nodes[0].accept("x", f"agent:main:dm:{k}", dedup_key=k) for k in keys),
            *(nodes[1].accept("x", f"agent:main:dm:{k}", dedup_key=k) for k in reversed(keys)),
        )

    assert len(await column(nodes[0], "SELECT id FROM stimuli")) == 20


async def test_only_one_node_claims_a_lane_and_epochs_rise_by_one(nodes: tuple[Node, Node]):
    for number in range(ROUNDS):
        await nodes[0].accept(f"{number}", queue=QueueOverrides(mode=Mode.QUEUE))
        claims = await asyncio.gather(*(node.claim() for node in nodes))
        winners = [(node, o) for node, o in zip(nodes, claims, strict=True) if o is not None]
        assert len(winners) == 1
        node, opened = winners[0]
        assert opened.attempt.claim.epoch == number + 1
        assert isinstance(await node.finish(opened), Ended)


async def test_a_lane_that_ends_while_another_node_accepts_is_never_left_for_dead(
    nodes: tuple[Node, Node],
):
    for number in range(ROUNDS):
        await nodes[0].accept(f"first {number}", queue=QueueOverrides(mode=Mode.QUEUE))
        opened = await nodes[0].claim()
        assert opened is not None
        await asyncio.gather(
            nodes[0].finish(opened),
            nodes[1].accept(f"second {number}", queue=QueueOverrides(mode=Mode.QUEUE)),
        )
        rows = await nodes[0].store.read("SELECT owner, turn_id, ready_at FROM lanes")
        owner, turn_id, ready_at = rows[0]
        assert (owner, turn_id) == (None, None)
        assert ready_at is not None
        again = await nodes[1].claim()
        assert again is not None
        await nodes[1].finish(again)


async def test_a_late_owner_changes_nothing(nodes: tuple[Node, Node]):
    """F30: the late one's writes change no row."""
    await nodes[0].accept("work")
    late = await nodes[0].claim()
    assert late is not None
    await nodes[1].store.transact(
        lambda tx: lane_rows.release(tx, MAIN, resume_at=tx.now, keeps_turn=True),
        locks=[lane_rows.lock(MAIN)],
    )
    taken = await nodes[1].claim()
    assert taken is not None

    assert isinstance(await nodes[0].finish(late), Fenced)
    assert len(await column(nodes[0], "SELECT id FROM entries")) == 1
    assert isinstance(await nodes[1].finish(taken), Ended)
    assert len(await column(nodes[0], "SELECT id FROM entries")) == 2


async def test_a_transaction_held_open_delays_only_its_own_lane(
    nodes: tuple[Node, Node], migrated_url: str
):
    first, second = nodes
    # A third node, since the writer of the second one will wait for the lock.
    other = await open_postgres(migrated_url, clock=SystemClock(), exclusive=False)
    third = Node(other, "third")
    await third.bus.start()
    await first.accept("make the lane", kind=Kind.SYSTEM_EVENT)
    entered, let_go = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        stimuli.waiting(tx, MAIN, 10)
        entered.set()
        assert let_go.wait(10)

    async with asyncio.TaskGroup() as group:
        group.create_task(first.store.transact(hold, locks=[lane_rows.lock(MAIN)]))
        await asyncio.to_thread(entered.wait, 10)
        blocked = group.create_task(second.accept("waits", kind=Kind.SYSTEM_EVENT))
        try:
            passed = await asyncio.wait_for(third.accept("passes", "agent:main:dm:other"), 5)
            assert not blocked.done()
        finally:
            let_go.set()
    await other.close()

    assert passed.outcome is Outcome.STARTED
    numbers = await column(first, "SELECT seq FROM events ORDER BY seq")
    assert numbers == list(range(1, len(numbers) + 1))


async def test_readers_never_see_a_later_event_before_an_earlier_one(nodes: tuple[Node, Node]):
    stop = asyncio.Event()
    gaps: list[tuple[int, int]] = []

    async def read() -> None:
        seen = 0
        while not stop.is_set():
            rows = await nodes[0].store.read(
                "SELECT seq FROM events WHERE seq > :seen ORDER BY seq", seen=seen
            )
            for (seq,) in rows:
                if seq != seen + 1:
                    gaps.append((seen, seq))
                seen = seq

    async with asyncio.TaskGroup() as group:
        group.create_task(read())
        await asyncio.gather(
            *(
                node.accept(f"{n}", f"agent:main:dm:{n % 7}", kind=Kind.SYSTEM_EVENT)
                for n in range(150)
                for node in nodes
            )
        )
        stop.set()

    assert gaps == []


async def test_a_timer_is_fired_by_one_of_two_timekeepers(nodes: tuple[Node, Node]):
    fired: list[str] = []
    done = asyncio.Event()

    def fire(tx: Tx, dues: Sequence[Due[None]]) -> None:
        def note() -> None:
            fired.extend(due.timer.id for due in dues)
            if len(fired) == 50:
                done.set()

        tx.after_commit(note)

    def keeper_of(node: Node) -> Timekeeper:
        kinds = {"test": TimerKind(fire)}
        return Timekeeper(
            node.store, node.bus, SystemClock(), kinds, lambda timer: [lane_rows.lock(timer.target)]
        )

    def put(tx: Tx) -> None:
        for number in range(50):
            due = tx.now - number
            timers.put(tx, Timer(id=f"t{number}", due_at=due, kind="test", target=MAIN))

    await nodes[0].store.transact(put)
    async with asyncio.TaskGroup() as group:
        keepers = [group.create_task(keeper_of(node).run()) for node in nodes]
        await asyncio.wait_for(done.wait(), 10)
        for keeper in keepers:
            keeper.cancel()

    assert sorted(fired) == sorted(f"t{number}" for number in range(50))
    assert await column(nodes[0], "SELECT id FROM timers") == []


async def test_the_storm_guard_counts_over_both_nodes(nodes: tuple[Node, Node]):
    receipts = await asyncio.gather(
        *(node.accept("x", kind=Kind.HUB, source="loud") for _ in range(10) for node in nodes)
    )

    let_in = [receipt for receipt in receipts if receipt.outcome is not Outcome.HELD]
    started = await column(nodes[0], "SELECT seq FROM events WHERE kind = 'storm.started'")
    told = await column(nodes[0], "SELECT id FROM notices")
    assert len(let_in) == 3
    assert len(started) == len(told) == 1


async def test_two_nodes_that_tell_the_same_at_once_tell_it_once(nodes: tuple[Node, Node]):
    def tell(node: Node, subject: str) -> Callable[[Tx], bool]:
        notices = Notices(node.bus, node.ids)
        return lambda tx: notices.add_once_in(tx, DAY_MS, "budget", subject, "Enough.", "main")

    for round_ in range(ROUNDS):
        told = await asyncio.gather(
            *(node.store.transact(tell(node, f"agent-{round_}")) for node in nodes)
        )
        assert sorted(told) == [False, True]

    rows = await column(nodes[0], "SELECT id FROM notices")
    events = await column(nodes[0], "SELECT seq FROM events WHERE kind = 'notice.added'")
    assert len(rows) == len(events) == ROUNDS


async def test_a_sleep_is_ended_once(nodes: tuple[Node, Node]):
    sleep = Sleep(
        owner=MAIN,
        agent_id="main",
        session_key=MAIN,
        id="sl_1",
        trust=Trust.OPERATOR,
        cause_id=None,
        policy=SleepPolicy.WAKE,
        reason="rest",
        requested_ms=60_000,
        final_ms=60_000,
        created_at=0,
        wake_at=60_000,
    )
    await nodes[0].store.transact(lambda tx: sleeps.enter(tx, sleep))
    await asyncio.gather(*(node.accept("wake") for node in nodes))

    woken = await column(nodes[0], "SELECT seq FROM events WHERE kind = 'sleep.woken'")
    assert len(woken) == 1


async def test_a_halt_is_set_once_and_a_delivery_ends_once(nodes: tuple[Node, Node]):
    halted = await asyncio.gather(
        *(node.store.transact(lambda tx: halts.halt(tx, "main", "test")) for node in nodes)
    )
    route = Route(door="out", address="ann")
    await nodes[0].store.transact(
        lambda tx: outbox.file(tx, "dl_1", route, "hi", session_key=MAIN, turn_id=None)
    )
    settled = await asyncio.gather(
        *(
            node.store.transact(
                lambda tx: outbox.settle(tx, "dl_1", DeliveryState.ACKNOWLEDGED, None)
            )
            for node in nodes
        )
    )

    assert sorted(halted) == [False, True]
    assert sorted(settled) == [False, True]


async def test_locks_are_taken_in_one_order(nodes: tuple[Node, Node]):
    space = LockSpace(
        name="lanes",
        rank=0,
        lock="SELECT session_key FROM lanes WHERE session_key IN :keys "
        "ORDER BY session_key FOR UPDATE",
    )
    keys = [f"agent:main:dm:{n}" for n in range(10)]
    for key in keys:
        await nodes[0].accept("x", key)

    async def both(node: Node, order: list[str]) -> None:
        for _ in range(10):
            await node.store.transact(
                lambda tx: lane_rows.get_all(tx, order), locks=[Lock(space, key) for key in order]
            )

    await asyncio.gather(both(nodes[0], keys), both(nodes[1], keys[::-1]))
