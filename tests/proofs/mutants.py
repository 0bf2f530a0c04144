"""Mutants: deliberately broken builds, each of which the checker must catch.

The rig applies one when WAKEFUL_MUTANT names it. Every mutant breaks one promise by patching the
place that keeps it, which it names as `module:Class.attribute`; a place that is not there any more
is an error, since a mutant that patches nothing proves nothing.
"""
# A mutant must reach into what is private: that is where promises are kept.
# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false
# pyright: reportUnknownLambdaType=false

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import asdict, replace

from tests.proofs.mutants_of_access import (
    owner_not_in_the_query,
    secret_in_an_error,
    strangers_trusted,
    taint_lost_on_resume,
)
from tests.proofs.mutants_of_inbox import (
    counts_never_fall,
    delivery_id_forgotten,
    items_read_twice,
)
from tests.proofs.mutants_of_money import (
    broken_call_is_free,
    budget_in_memory,
    chain_budget_ignored,
    day_moves_back,
    depth_not_raised,
    fallback_is_free,
    own_work_counts_as_human,
    reserve_after_the_call,
    settle_twice,
    storms_forgotten,
    storms_ignored,
    summary_not_counted,
    usage_settled_again_on_resume,
)
from tests.proofs.mutants_of_time import (
    generation_ignored,
    nothing_wakes,
    pending_waker_overlooked,
    sleep_not_in_the_feed,
    sleep_outlasts_a_message,
    timer_fires_twice,
    timers_fire_early,
)
from tests.proofs.patching import original, patch
from wakeful.broker import stimuli
from wakeful.bus.bus import Bus
from wakeful.doors.sender import Sender
from wakeful.gate.money import Grant
from wakeful.intake import dedup
from wakeful.lanes.dispatcher import Dispatcher
from wakeful.lanes.pool import Hint
from wakeful.models.model import Reply, Request, as_message
from wakeful.outbox.outbox import Delivery, DeliveryState, ReadyDelivery
from wakeful.store.database import Tx
from wakeful.store.grouped import GroupedStore
from wakeful.store.sqlite import SqliteBackend
from wakeful.telemetry.metrics import Metrics
from wakeful.turn import next_step
from wakeful.turn.asking import ModelAsker
from wakeful.turn.attempt import StepResult, StepState, TurnAttempt
from wakeful.turn.commit import TurnCommit
from wakeful.turn.committing import TurnWriter
from wakeful.turn.ending import Ending
from wakeful.turns.tool_calls import CallState, RecordedCall
from wakeful.turns.turns import End, Interrupt, Turn, TurnState
from wakeful.vocabulary.approving import Permission, ToolPermission
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.message import ToolMessage
from wakeful.vocabulary.stimulus import Draft, Stimulus

BEGIN, COMMIT = (
    "wakeful.store.sqlite:SqliteBackend.begin",
    "wakeful.store.sqlite:SqliteBackend.commit",
)
PUBLISH = "wakeful.bus.bus:Bus.publish"
IS_HELD = "wakeful.broker.lane_rows:is_held"
SEND = "send"  # the failpoint before a delivery leaves
LEAKED_FILES = 200

Mutant = Callable[[], None]


def apply(name: str) -> None:
    """Break this process in the named way."""
    MUTANTS[name]()


def acknowledge_before_commit() -> None:
    """Answer a group that wakes nobody at once, and commit it only when the next one begins."""
    begin, commit = original(BEGIN), original(COMMIT)

    def begin_late(self: SqliteBackend) -> None:
        if self._connection.in_transaction:
            commit(self)
        begin(self)

    def commit_some(self: SqliteBackend) -> None:
        if self.notes or not self.acts:
            commit(self)

    patch(BEGIN, begin_late)
    patch(COMMIT, commit_some)


def commits_not_synced() -> None:
    """Leave it to the kernel when a commit reaches the disk."""
    start = original("wakeful.store.sqlite:SqliteBackend.start")

    def start_unsynced(self: SqliteBackend, *args: Any, **rest: Any) -> None:
        start(self, *args, **rest)
        self._live_cursor.execute("PRAGMA synchronous = OFF")

    patch("wakeful.store.sqlite:SqliteBackend.start", start_unsynced)


def no_fencing() -> None:
    patch(IS_HELD, lambda *_: True)


def event_outside_the_transaction() -> None:
    publish = original(PUBLISH)

    def publish_later(self: Bus, tx: Tx, what: Any, *rest: Any, **data: Any) -> None:
        def alone(other: Tx) -> None:
            publish(self, other, what, *rest, **data)

        tx.after_commit(lambda: _write(self, alone))

    patch(PUBLISH, publish_later)


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

    patch("wakeful.intake.dedup:claim", claim)


def notify_before_commit() -> None:
    """Hand out events and wake listeners while the transaction is still open."""
    commit, start = original(COMMIT), original("wakeful.store.grouped:GroupedStore.start")
    loops: list[asyncio.AbstractEventLoop] = []

    async def start_and_remember(self: GroupedStore) -> None:
        loops.append(asyncio.get_running_loop())
        await start(self)

    def commit_late(self: SqliteBackend) -> None:
        acts, self.acts = self.acts, []
        loop, heard = loops[-1], threading.Event()

        def listen(rounds: int) -> None:
            """Let the loop go round, so that whoever was woken has heard it before the commit."""
            if rounds:
                loop.call_soon(listen, rounds - 1)
            else:
                heard.set()

        for act in acts:
            loop.call_soon_threadsafe(act)
        if acts:
            loop.call_soon_threadsafe(listen, 20)
            heard.wait(1)
        commit(self)

    patch("wakeful.store.grouped:GroupedStore.start", start_and_remember)
    patch(COMMIT, commit_late)


def intent_after_the_tool() -> None:
    """Write a call down when its result is there, not before it runs."""
    add = original("wakeful.turns.tool_calls:add")
    settle = original("wakeful.turns.tool_calls:settle")
    unwritten: dict[tuple[str, int, str], RecordedCall] = {}

    def add_later(tx: Tx, calls: Sequence[RecordedCall]) -> None:
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

    patch("wakeful.turns.tool_calls:add", add_later)
    patch("wakeful.turns.tool_calls:settle", add_and_settle)


def result_after_the_next_ask() -> None:
    """Ask the model about results that are not committed yet."""
    advance = original("wakeful.turn.committing:TurnWriter.advance")
    ask = original("wakeful.turn.asking:ModelAsker.ask")
    early: dict[str, Reply] = {}

    async def advance_late(self: TurnWriter, attempt: TurnAttempt, news: StepResult) -> Any:
        if news.outcomes and len(attempt.step.open_calls) <= len(news.outcomes):
            messages = [
                ToolMessage(call_id=outcome.call.id, name=outcome.call.name, text="early")
                for outcome in news.outcomes
            ]
            request = Request(
                system="",
                messages=(*attempt.context.messages, *messages),
                turn_id=attempt.turn.id,
                step=attempt.turn.step + 1,
            )
            async for piece in attempt.agent.model.stream(request):
                if isinstance(piece, Reply):
                    early[attempt.turn.id] = piece
        return await advance(self, attempt, news)

    async def ask_nobody(self: ModelAsker, attempt: TurnAttempt, grant: Grant) -> Any:
        reply = early.pop(attempt.turn.id, None)
        return await ask(self, attempt, grant) if reply is None else as_message(reply)

    patch("wakeful.turn.committing:TurnWriter.advance", advance_late)
    patch("wakeful.turn.asking:ModelAsker.ask", ask_nobody)


def double_settle() -> None:
    settle = original("wakeful.turn.ending:Ending._settle")

    def settle_twice(self: Ending, tx: Tx, turn: Turn, how: End) -> list[str]:
        settled = settle(self, tx, turn, how)
        for stimulus_id in settled:
            self._bus.publish(
                tx, "stimulus.failed", turn.session_key, turn_id=turn.id, stimulus_id=stimulus_id
            )
        return settled

    patch("wakeful.turn.ending:Ending._settle", settle_twice)


def settled_outside_the_closing_transaction() -> None:
    settle = original("wakeful.turn.ending:Ending._settle")

    def settle_later(self: Ending, tx: Tx, turn: Turn, how: End) -> list[str]:
        def alone(other: Tx) -> None:
            settle(self, other, turn, how)

        tx.after_commit(lambda: _write(self._bus, alone, delay_s=0.2))
        return []

    patch("wakeful.turn.ending:Ending._settle", settle_later)


def steer_lost() -> None:
    """Claim what joins a turn without showing it to the model."""

    def take_silently(commit: TurnCommit) -> None:
        joining = next_step._steers(commit)
        stimuli.claim(commit.tx, [stimulus.id for stimulus in joining], commit.turn.id)
        for stimulus in joining:
            commit.publish("stimulus.claimed", stimulus.id, how="steered")

    patch("wakeful.turn.next_step:_take_steers", take_silently)


def entry_rewritten() -> None:
    append = original("wakeful.transcript.entries:append")

    def append_and_tidy(tx: Tx, session: Any, lines: Sequence[Any]) -> Any:
        tx.run(
            "UPDATE entries SET body = REPLACE(body, 'answer', 'reply') "
            "WHERE branch = :branch AND depth = :depth",
            branch=session.branch,
            depth=session.leaf_depth,
        )
        return append(tx, session, lines)

    patch("wakeful.transcript.entries:append", append_and_tidy)


def tool_rerun_on_resume() -> None:
    patch("wakeful.lanes.opening:may_run_again", lambda *_: True)


def reply_asked_twice() -> None:
    stream = original("wakeful.turn.asking:ModelAsker.ask")

    async def stream_twice(self: ModelAsker, attempt: TurnAttempt, grant: Grant) -> Any:
        await stream(self, attempt, grant)
        return await stream(self, attempt, grant)

    patch("wakeful.turn.asking:ModelAsker.ask", stream_twice)


def answer_forgotten_on_resume() -> None:
    """Forget on resume that the current step was answered."""

    def forget(_tx: Tx, _session: Any, attempt: TurnAttempt) -> bool:
        attempt.step = StepState()
        return False

    patch("wakeful.lanes.opening:load_step", forget)
    patch("wakeful.turn.commit:load_step", forget)


def delivery_settled_before_sent() -> None:
    async def note_and_send(self: Sender, delivery: Delivery) -> None:
        await self._note(delivery, DeliveryState.ACKNOWLEDGED, None)
        failpoint(SEND)
        await self._doors[delivery.route.door](ReadyDelivery(**asdict(delivery)))

    patch("wakeful.doors.sender:Sender._attempt", note_and_send)


def order_ignored() -> None:
    waiting = original("wakeful.broker.stimuli:waiting")

    def newest_first(tx: Tx, session_key: str, limit: int) -> list[Stimulus]:
        return waiting(tx, session_key, limit)[::-1]

    patch("wakeful.broker.stimuli:waiting", newest_first)


def stop_ignored() -> None:
    """Look at an interrupt only when the turn ends."""
    patch("wakeful.lanes.interrupts:Interrupts.raise_on", lambda *_: None)
    go_on = original("wakeful.turn.next_step:go_on")

    def go_on_regardless(commit: TurnCommit) -> Any:
        commit.turn = replace(commit.turn, interrupt=Interrupt.NONE)
        return go_on(commit)

    patch("wakeful.turn.next_step:go_on", go_on_regardless)


def counted_before_commit() -> None:
    publish = original(PUBLISH)

    def publish_and_count(self: Bus, tx: Tx, what: Any, *rest: Any, **data: Any) -> None:
        kind = what if isinstance(what, str) else what.kind
        self._metrics._events.labels(kind).inc()
        publish(self, tx, what, *rest, **data)

    def position_alone(self: Metrics, kinds: Any, position: int) -> None:
        self._position.set(position)

    patch(PUBLISH, publish_and_count)
    patch("wakeful.telemetry.metrics:Metrics.committed", position_alone)


def two_turns_at_once() -> None:
    """Leave a lane free while a turn of it runs."""
    claim = original("wakeful.broker.lane_rows:claim")

    def claim_and_forget(tx: Tx, lane: Any, **rest: Any) -> int:
        epoch = claim(tx, lane, **rest)
        tx.run(
            "UPDATE lanes SET owner = NULL, turn_id = NULL WHERE session_key = :key",
            key=lane.session_key,
        )
        return epoch

    def start_always(self: Dispatcher, group: Any, pool: Any, hint: Hint) -> None:
        pool.take("nobody")
        group.create_task(self._run_lane(hint.session_key, yields=False))

    patch("wakeful.broker.lane_rows:claim", claim_and_forget)
    patch(IS_HELD, lambda *_: True)
    patch("wakeful.lanes.dispatcher:Dispatcher._start", start_always)


def skipped_calls_left_open() -> None:
    patch("wakeful.turn.calls:skip_open", lambda *_: None)


def replay_skips_one() -> None:
    page = original("wakeful.bus.bus:Bus.page")

    async def page_without_first(self: Bus, *args: Any) -> Any:
        return (await page(self, *args))[1:]

    patch("wakeful.bus.bus:Bus.page", page_without_first)


def store_replaced_by_an_empty_one() -> None:
    open_sqlite = original("wakeful.store.opening:open_sqlite")

    async def start_anew(path: Path | None, **rest: Any) -> Any:
        assert path is not None
        shutil.rmtree(path.parent, ignore_errors=True)
        return await open_sqlite(path, **rest)

    patch("wakeful.store.opening:open_sqlite", start_anew)


def files_leaked() -> None:
    for _ in range(LEAKED_FILES):
        os.open("/dev/null", os.O_RDONLY)


def stopped_turn_left_open() -> None:
    end = original("wakeful.turns.turns:end")

    def end_unless_stopped(tx: Tx, turn: Turn, how: End) -> bool:
        return True if how.state is TurnState.STOPPED else end(tx, turn, how)

    patch("wakeful.turns.turns:end", end_unless_stopped)


def compacted_without_a_view() -> None:
    """Write the entry of a compaction, and leave the session's view as it was."""
    patch("wakeful.transcript.sessions:note_compaction", lambda *_, **__: None)


def nobody_is_asked() -> None:
    """Let every call run, whatever the settings say."""
    allowed = ToolPermission(rule=Permission.ALLOW)
    patch("wakeful.turn.calls:permission_of", lambda _rules, _tool: allowed)


def grant_used_twice() -> None:
    """Let a grant be as it was when its call begins."""
    patch("wakeful.approvals.approvals:use", lambda *_: True)


MUTANTS: dict[str, Mutant] = {
    mutant.__name__: mutant
    for mutant in (
        acknowledge_before_commit,
        commits_not_synced,
        no_fencing,
        event_outside_the_transaction,
        dedup_in_memory,
        delivery_id_forgotten,
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
        pending_waker_overlooked,
        sleep_outlasts_a_message,
        nothing_wakes,
        generation_ignored,
        sleep_not_in_the_feed,
        compacted_without_a_view,
        reserve_after_the_call,
        settle_twice,
        budget_in_memory,
        day_moves_back,
        usage_settled_again_on_resume,
        broken_call_is_free,
        fallback_is_free,
        summary_not_counted,
        chain_budget_ignored,
        depth_not_raised,
        own_work_counts_as_human,
        storms_forgotten,
        storms_ignored,
        taint_lost_on_resume,
        strangers_trusted,
        owner_not_in_the_query,
        secret_in_an_error,
        nobody_is_asked,
        grant_used_twice,
        items_read_twice,
        counts_never_fall,
    )
}


_tasks: set[asyncio.Task[None]] = set()


def _write(bus: Bus, alone: Callable[[Tx], None], delay_s: float = 0.0) -> None:
    """Write in a transaction of its own, after the one that should have held it."""
    loop = asyncio.get_running_loop()
    store = bus._store

    def begin() -> None:
        task = loop.create_task(store.transact(alone))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)

    loop.call_later(delay_s, begin)
