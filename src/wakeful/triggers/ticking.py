"""Ticks: a session that is left alone wakes by itself.

A ticking session always has its timer. Firing sets the next one in the same commit, whatever
becomes of the tick; the end of a turn and a sleep only move it. It ends where it finds, when it
fires, that nobody wants it any more.
"""

from collections.abc import Callable, Sequence

import msgspec

from wakeful.broker import lane_rows, stimuli
from wakeful.prompts.ticks import wake_block
from wakeful.sleeps.sleeps import Sleep
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.timers.timers import Timer
from wakeful.transcript import sessions
from wakeful.triggers.blocks import ProactiveBlocks
from wakeful.triggers.tick_times import next_tick
from wakeful.turns.turns import End, Turn
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Priority, Receipt, Trust

TIMER_KIND = "tick"
SOURCE = "proactive"

File = Callable[[Tx, Sequence[Draft]], list[Receipt]]


class Since(Record):
    """What a tick's timer carries: the end of the turn that it counts from."""

    end_ms: int


_since = msgspec.json.Decoder(Since)


class Ticking:
    """Sets, moves and fires the timers of ticks; the caller holds the lane's lock."""

    def __init__(self, blocks: ProactiveBlocks, file: File) -> None:
        self._blocks = blocks
        self._file = file

    def on_ended(self, tx: Tx, turn: Turn, _how: End) -> None:
        """Count from the end of this turn, however it ended."""
        rules = self._rules(tx, turn.session_key)
        if rules is not None:
            self._set(tx, turn.session_key, tx.now, next_tick(turn.session_key, tx.now, rules))

    def on_sleep(self, tx: Tx, sleep: Sleep) -> None:
        """Let nobody tick who sleeps: the next tick counts from the end of the sleep."""
        key = sleep.session_key
        rules = None if key is None else self._rules(tx, key)
        if key is not None and rules is not None:
            self._set(tx, key, tx.now, next_tick(key, sleep.wake_at, rules))

    async def reconcile(self, store: Store, agent_ids: Sequence[str]) -> None:
        """Give the main session of each proactive agent its timer, if it has none."""
        if not self._blocks.is_any_enabled():
            return
        for agent_id in agent_ids:
            key = keys.main(agent_id)
            await store.transact(
                lambda tx, key=key: self._begin(tx, key), locks=[lane_rows.lock(key)]
            )

    def fire(self, tx: Tx, dues: Sequence[Due[None]]) -> None:
        """Set the next timer, then file the tick, if nobody is busy there."""
        for due in dues:
            key = due.timer.target
            rules = self._rules(tx, key)
            if rules is None:
                continue  # switched off since: the loop ends here
            self._set(tx, key, tx.now, next_tick(key, tx.now, rules))
            if not self._is_busy(tx, key):
                end_ms = _since.decode(due.timer.payload).end_ms
                self._file(tx, [self._tick(tx, key, end_ms, rules)])

    def _begin(self, tx: Tx, key: str) -> None:
        rules = self._rules(tx, key)
        if rules is None or timers.get(tx, _timer_id(key)) is not None:
            return
        is_greeting = rules.initial_greeting and not _is_greeted(tx, key)
        self._set(tx, key, tx.now, tx.now if is_greeting else next_tick(key, tx.now, rules))

    def _rules(self, tx: Tx, key: str) -> ProactiveRules | None:
        """Return the block by which a session ticks, or None if it does not.

        An agent's own block is for its main session; a binding's for those that it opened.
        """
        if not self._blocks.is_any_enabled():
            return None
        session = sessions.policies(tx, [key]).get(key)
        return self._blocks.ticking(key, None if session is None else session.binding)

    def _is_busy(self, tx: Tx, key: str) -> bool:
        """Tell whether a turn runs, or somebody's words wait."""
        lane = lane_rows.get(tx, key)
        return (lane is not None and lane.turn_id is not None) or stimuli.count_said(tx, key) > 0

    def _tick(self, tx: Tx, key: str, end_ms: int, rules: ProactiveRules) -> Draft:
        if rules.initial_greeting and not _is_greeted(tx, key):
            text = wake_block("greeting", 0, "first tick")
        else:
            text = wake_block("tick", max(0, tx.now - end_ms), "interval")
        _note_greeted(tx, key)
        return Draft(
            session_key=key,
            text=text,
            kind=Kind.TICK,
            priority=Priority.LATER,
            trust=Trust.OPERATOR,
            owner=OPERATOR,
            source=SOURCE,
        )

    def _set(self, tx: Tx, key: str, end_ms: int, due_at: int) -> None:
        payload = msgspec.json.encode(Since(end_ms=end_ms)).decode()
        timers.put(
            tx,
            Timer(id=_timer_id(key), due_at=due_at, kind=TIMER_KIND, target=key, payload=payload),
        )


def _timer_id(key: str) -> str:
    return f"{TIMER_KIND} {key}"


def _is_greeted(tx: Tx, key: str) -> bool:
    return tx.one("SELECT 1 FROM greetings WHERE session_key = :key", key=key) is not None


def _note_greeted(tx: Tx, key: str) -> None:
    tx.run(
        "INSERT INTO greetings (session_key, greeted_at) VALUES (:key, :now) "
        "ON CONFLICT DO NOTHING",
        key=key,
        now=tx.now,
    )
