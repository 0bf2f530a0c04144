"""Mutants: deliberately broken builds, each of which the checker must catch.

The rig applies one when WAKEFUL_MUTANT names it. Every mutant breaks one promise by patching the
place that keeps it.
"""
# A mutant must reach into what is private: that is where promises are kept.
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false
# pyright: reportUnknownLambdaType=false

import asyncio
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.proofs.mutants_of_time import timer_fires_twice, timers_fire_early
from wakeful.broker import lanes, stimuli
from wakeful.bus.bus import Bus
from wakeful.doors.sender import Sender
from wakeful.intake import dedup
from wakeful.lanes import opening
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.lanes.interrupts import Interrupts
from wakeful.models.model import Reply, Request, as_message
from wakeful.outbox.outbox import Delivery, DeliveryState
from wakeful.store import opening as store_opening
from wakeful.store.database import Tx
from wakeful.store.grouped import GroupedStore
from wakeful.store.sqlite import SqliteBackend
from wakeful.telemetry.metrics import Metrics
from wakeful.tools.tool import Effect
from wakeful.transcript import entries, sessions
from wakeful.turn import record
from wakeful.turn.ending import Ending
from wakeful.turn.journal import Journal, News
from wakeful.turn.page import Page
from wakeful.turn.turn import Thinker
from wakeful.turns import tool_calls, turns
from wakeful.turns.tool_calls import Call, CallState
from wakeful.turns.turns import End, Interrupt, Turn, TurnState
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.stimulus import Draft, Stimulus

LEAKED_FILES = 200

Mutant = Callable[[], None]


def apply(name: str) -> None:
    """Break this process in the named way."""
    MUTANTS[name]()


def acknowledge_before_commit() -> None:
    """Answer a group that wakes nobody at once, and commit it only when the next one begins."""
    begin, commit = SqliteBackend.begin, SqliteBackend.commit

    def begin_late(self: SqliteBackend) -> None:
        if self._connection.in_transaction:
            commit(self)
        begin(self)

    def commit_some(self: SqliteBackend) -> None:
        if self.notes or not self.acts:
            commit(self)

    SqliteBackend.begin = begin_late
    SqliteBackend.commit = commit_some


def commits_not_synced() -> None:
    """Leave it to the kernel when a commit reaches the disk."""
    start = SqliteBackend.start

    def start_unsynced(self: SqliteBackend, *args: Any, **rest: Any) -> None:
        start(self, *args, **rest)
        self._live_cursor.execute("PRAGMA synchronous = OFF")

    SqliteBackend.start = start_unsynced


def no_fencing() -> None:
    lanes.is_held = lambda *_: True


def event_outside_the_transaction() -> None:
    publish = Bus.publish

    def publish_later(self: Bus, tx: Tx, event: Any) -> None:
        def alone(other: Tx) -> None:
            publish(self, other, event)

        tx.after_commit(lambda: _write(self, alone))

    Bus.publish = publish_later


def dedup_in_memory() -> None:
    known: dict[tuple[str, str], dedup.First] = {}

    def claim(tx: Tx, draft: Draft, stimulus_id: str) -> dedup.First | None:
        key = (dedup.scope_of(draft), draft.dedup_key or "")
        if key in known:
            return known[key]
        known[key] = dedup.First(
            stimulus_id=stimulus_id, body_hash=dedup.body_hash(draft), receipt=""
        )
        return None

    dedup.claim = claim


def notify_before_commit() -> None:
    """Hand out events and wake listeners while the transaction is still open."""
    commit, start = SqliteBackend.commit, GroupedStore.start
    loops: list[asyncio.AbstractEventLoop] = []

    async def start_and_remember(self: GroupedStore) -> None:
        loops.append(asyncio.get_running_loop())
        await start(self)

    def commit_late(self: SqliteBackend) -> None:
        acts, self.acts = self.acts, []
        for act in acts:
            loops[-1].call_soon_threadsafe(act)
        commit(self)

    GroupedStore.start = start_and_remember
    SqliteBackend.commit = commit_late


def intent_after_the_tool() -> None:
    """Write a call down when its result is there, not before it runs."""
    add, settle = tool_calls.add, tool_calls.settle
    unwritten: dict[tuple[str, int, str], Call] = {}

    def add_later(tx: Tx, calls: Sequence[Call]) -> None:
        for call in calls:
            if call.state is CallState.INTENDED:
                unwritten[call.turn_id, call.step, call.call_id] = call
            else:
                add(tx, [call])

    def add_and_settle(tx: Tx, turn_id: str, step: int, call_id: str, **rest: Any) -> None:
        call = unwritten.get((turn_id, step, call_id))
        if call is not None:
            add(tx, [call])
        settle(tx, turn_id, step, call_id, **rest)

    tool_calls.add, tool_calls.settle = add_later, add_and_settle


def result_after_the_next_ask() -> None:
    """Ask the model about results that are not committed yet."""
    commit, ask = Thinker._commit, Thinker._ask
    early: dict[str, Reply] = {}

    async def commit_late(self: Thinker, journal: Journal, news: News) -> Any:
        if news.outcomes and not journal.remaining[len(news.outcomes) :]:
            messages = [
                ToolMessage(call_id=outcome.call.id, name=outcome.call.name, text="early")
                for outcome in news.outcomes
            ]
            request = Request(
                system="",
                messages=(*journal.context.messages, *messages),
                turn_id=journal.turn.id,
                step=journal.turn.step + 1,
            )
            async for piece in journal.mind.model.stream(request):
                if isinstance(piece, Reply):
                    early[journal.turn.id] = piece
        return await commit(self, journal, news)

    async def ask_nobody(self: Thinker, journal: Journal) -> Any:
        reply = early.pop(journal.turn.id, None)
        if reply is None:
            return await ask(self, journal)
        return await commit(self, journal, News(reply=as_message(reply)))

    Thinker._commit, Thinker._ask = commit_late, ask_nobody


def double_settle() -> None:
    move = Ending._move

    def move_twice(self: Ending, tx: Tx, turn: Turn, ids: list[str], *rest: Any) -> None:
        move(self, tx, turn, ids, *rest)
        for stimulus_id in ids:
            self._publish(tx, "stimulus.failed", turn, stimulus_id, {})

    Ending._move = move_twice


def settled_outside_the_closing_transaction() -> None:
    settle = Ending._settle

    def settle_later(self: Ending, tx: Tx, turn: Turn, how: End) -> list[str]:
        def alone(other: Tx) -> None:
            settle(self, other, turn, how)

        tx.after_commit(lambda: _write(self._bus, alone, delay_s=0.2))
        return []

    Ending._settle = settle_later


def steer_lost() -> None:
    """Claim what joins a turn without showing it to the model."""

    def take_silently(self: Page) -> None:
        joining = self._steers()
        stimuli.claim(self.tx, [stimulus.id for stimulus in joining], self.turn.id)
        for stimulus in joining:
            self.sheet.publish("stimulus.claimed", stimulus.id, how="steered")

    Page._take_steers = take_silently


def entry_rewritten() -> None:
    append = entries.append

    def append_and_tidy(tx: Tx, session: Any, lines: Sequence[Any]) -> Any:
        tx.run(
            "UPDATE entries SET body = REPLACE(body, 'answer', 'reply') "
            "WHERE branch = :branch AND depth = :depth",
            branch=session.branch,
            depth=session.leaf_depth,
        )
        return append(tx, session, lines)

    entries.append = append_and_tidy


def tool_rerun_on_resume() -> None:
    opening._RERUNS = frozenset(effect.value for effect in Effect)


def reply_asked_twice() -> None:
    stream = Thinker._stream

    async def stream_twice(self: Thinker, journal: Journal) -> Any:
        await stream(self, journal)
        return await stream(self, journal)

    Thinker._stream = stream_twice


def answer_forgotten_on_resume() -> None:
    """Forget on resume that the current step was answered."""

    def forget(_tx: Tx, _session: Any, journal: Journal) -> bool:
        journal.calls, journal.settled, journal.said = (), frozenset(), ""
        return False

    opening.load_step = forget
    record.load_step = forget


def delivery_settled_before_sent() -> None:
    async def note_and_send(self: Sender, delivery: Delivery) -> None:
        await self._note(delivery, DeliveryState.ACKNOWLEDGED, None)
        failpoint("P12")
        await self._doors[delivery.route.door](delivery)

    Sender._attempt = note_and_send


def order_ignored() -> None:
    waiting = stimuli.waiting

    def newest_first(tx: Tx, session_key: str, limit: int) -> list[Stimulus]:
        return waiting(tx, session_key, limit)[::-1]

    stimuli.waiting = newest_first


def stop_ignored() -> None:
    """Look at an interrupt only when the turn ends."""
    Interrupts.raise_on = lambda *_: None
    go_on = Page.go_on

    def go_on_regardless(self: Page) -> Any:
        self.sheet.turn = replace(self.sheet.turn, interrupt=Interrupt.NONE)
        return go_on(self)

    Page.go_on = go_on_regardless


def counted_before_commit() -> None:
    publish = Bus.publish

    def publish_and_count(self: Bus, tx: Tx, event: Any) -> None:
        self._metrics._events.labels(event.kind).inc()
        publish(self, tx, event)

    Bus.publish = publish_and_count
    Metrics.committed = lambda self, kinds, position: self._position.set(position)


def two_turns_at_once() -> None:
    """Leave a lane free while a turn of it runs."""
    claim = lanes.claim

    def claim_and_forget(tx: Tx, lane: Any, **rest: Any) -> int:
        epoch = claim(tx, lane, **rest)
        tx.run(
            "UPDATE lanes SET owner = NULL, turn_id = NULL WHERE session_key = :key",
            key=lane.session_key,
        )
        return epoch

    def start_always(self: Dispatcher, group: Any, pool: Any, session_key: str) -> None:
        pool.running += 1
        group.create_task(self._run_lane(session_key))

    lanes.claim = claim_and_forget
    lanes.is_held = lambda *_: True
    Dispatcher._start = start_always


def skipped_calls_left_open() -> None:
    Page._skip = lambda *_: None


def replay_skips_one() -> None:
    page = Bus.page

    async def page_without_first(self: Bus, *args: Any) -> Any:
        return (await page(self, *args))[1:]

    Bus.page = page_without_first


def store_replaced_by_an_empty_one() -> None:
    open_sqlite = store_opening.open_sqlite

    async def start_anew(path: Path | None, **rest: Any) -> Any:
        assert path is not None
        shutil.rmtree(path.parent, ignore_errors=True)
        return await open_sqlite(path, **rest)

    store_opening.open_sqlite = start_anew


def files_leaked() -> None:
    for _ in range(LEAKED_FILES):
        os.open("/dev/null", os.O_RDONLY)


def stopped_turn_left_open() -> None:
    end = turns.end

    def end_unless_stopped(tx: Tx, turn: Turn, how: End) -> bool:
        return True if how.state is TurnState.STOPPED else end(tx, turn, how)

    turns.end = end_unless_stopped


def folded_without_a_view() -> None:
    """Write the entry of a compaction, and leave the session's view as it was."""
    sessions.note_compaction = lambda *_, **__: None


MUTANTS: dict[str, Mutant] = {
    mutant.__name__: mutant
    for mutant in (
        acknowledge_before_commit,
        commits_not_synced,
        no_fencing,
        event_outside_the_transaction,
        dedup_in_memory,
        notify_before_commit,
        intent_after_the_tool,
        result_after_the_next_ask,
        double_settle,
        settled_outside_the_closing_transaction,
        steer_lost,
        entry_rewritten,
        tool_rerun_on_resume,
        reply_asked_twice,
        answer_forgotten_on_resume,
        delivery_settled_before_sent,
        order_ignored,
        stop_ignored,
        counted_before_commit,
        two_turns_at_once,
        skipped_calls_left_open,
        replay_skips_one,
        store_replaced_by_an_empty_one,
        files_leaked,
        stopped_turn_left_open,
        timers_fire_early,
        timer_fires_twice,
        folded_without_a_view,
    )
}


_tasks: set[asyncio.Task[None]] = set()


def _write(bus: Bus, alone: Callable[[Tx], None], delay_s: float = 0.0) -> None:
    """Write in a transaction of its own, after the one that should have held it."""
    loop = asyncio.get_running_loop()
    store = bus._store

    def begin() -> None:
        task = loop.create_task(store.write(alone))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    loop.call_later(delay_s, begin)
