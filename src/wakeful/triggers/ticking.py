"""Ticks: a session that is left alone wakes by itself.

A ticking session always has its timer. Firing sets the next one in the same commit, whatever
becomes of the tick; the end of a turn and a sleep only move it. It ends where it finds, when it
fires, that nobody wants it any more.
"""

from collections.abc import Collection, Sequence

import msgspec

from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settled
from wakeful.intake.filing import File
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
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Priority, Receipt, Trust

TIMER_KIND = "tick"
SOURCE = "proactive"


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
        self._count_from(tx, turn.session_key, tx.now, tx.now)

    def on_sleep(self, tx: Tx, asleep: Sequence[Sleep]) -> None:
        """Let nobody tick who sleeps: the next tick is an interval after its end."""
        until = {one.session_key: one.wake_at for one in asleep if one.session_key is not None}
        rules = self._rules(tx, list(until))
        ended = _ended_at(tx, list(rules))
        timers.put(
            tx, *(_timer(key, ended[key], next_tick(key, until[key], rules[key])) for key in rules)
        )

    def on_settled(self, tx: Tx, settled: Sequence[Settled]) -> None:
        """Greet again whom the first tick did not reach: it was refused in its lane, or ended."""
        unheard = [one.id for one in settled if one.turn_id is None and _is_of_its_own(one)]
        if unheard:
            tx.run("DELETE FROM greetings WHERE stimulus_id IN :ids", ids=unheard)

    async def reconcile(self, store: Store, agent_ids: Sequence[str]) -> None:
        """Give the main session of each proactive agent its timer, if it has none."""
        if not self._blocks.is_any_enabled():
            return
        for agent_id in agent_ids:
            key = keys.main(agent_id)
            await store.transact(
                lambda tx, key=key: self._begin(tx, key), locks=[lane_rows.lock(key)]
            )

    def on_deleted(self, tx: Tx, key: str) -> None:
        """Forget that a session was greeted: another one of that name may come."""
        tx.run("DELETE FROM greetings WHERE session_key = :key", key=key)

    def fire(self, tx: Tx, dues: Sequence[Due[None]]) -> None:
        """Set the next timers, then file the ticks of those where nobody is busy."""
        rules = self._rules(tx, [due.timer.target for due in dues])  # without those switched off
        since = {due.timer.target: _since.decode(due.timer.payload).end_ms for due in dues}
        # Whatever becomes of these ticks, the next are an interval away; but unless a turn comes of
        # them, they go on counting from the end of the last one.
        timers.put(
            tx, *(_timer(key, since[key], next_tick(key, tx.now, rules[key])) for key in rules)
        )
        idle = sorted(rules.keys() - _busy(tx, list(rules)))
        greeted = _greeted(tx, idle)
        receipts = self._file(
            tx,
            [
                _tick(tx, key, since[key], is_greeting=_greets(rules[key], key, greeted))
                for key in idle
            ],
        )
        _note_greeted(tx, [one for one in receipts if one.outcome is not Outcome.SUPPRESSED])

    def _count_from(self, tx: Tx, key: str, end_ms: int, instant: int) -> None:
        """Set the tick an interval after an instant; it tells how long ago the last turn ended."""
        rules = self._rules(tx, [key]).get(key)
        if rules is not None:
            timers.put(tx, _timer(key, end_ms, next_tick(key, instant, rules)))

    def _begin(self, tx: Tx, key: str) -> None:
        rules = self._rules(tx, [key]).get(key)
        if rules is None or timers.get(tx, timer_id(key)) is not None:
            return
        is_greeting = _greets(rules, key, _greeted(tx, [key]))
        timers.put(
            tx, _timer(key, tx.now, tx.now if is_greeting else next_tick(key, tx.now, rules))
        )

    def _rules(self, tx: Tx, session_keys: Sequence[str]) -> dict[str, ProactiveRules]:
        """Return the blocks by which sessions tick, without those that do not.

        An agent's own block is for its main session; a binding's for those that it opened.
        """
        if not self._blocks.is_any_enabled():
            return {}
        known = sessions.policies(tx, session_keys)
        found: dict[str, ProactiveRules] = {}
        for key in session_keys:
            rules = self._blocks.ticking(key, known[key].binding if key in known else None)
            if rules is not None:
                found[key] = rules
        return found


def _busy(tx: Tx, session_keys: Sequence[str]) -> set[str]:
    """Return the sessions in which a turn runs, or somebody's words wait."""
    lanes = lane_rows.get_all(tx, session_keys)
    running = {key for key, lane in lanes.items() if lane.turn_id is not None}
    return running | stimuli.with_something_said(tx, session_keys)


def _tick(tx: Tx, key: str, end_ms: int, *, is_greeting: bool) -> Draft:
    if is_greeting:
        text = wake_block("greeting", 0, "first tick")
    else:
        text = wake_block("tick", max(0, tx.now - end_ms), "interval")
    return Draft(
        session_key=key,
        text=text,
        kind=Kind.TICK,
        priority=Priority.LATER,
        trust=Trust.OPERATOR,
        owner=OPERATOR,
        source=SOURCE,
    )


def _timer(key: str, end_ms: int, due_at: int) -> Timer:
    payload = msgspec.json.encode(Since(end_ms=end_ms)).decode()
    return Timer(id=timer_id(key), due_at=due_at, kind=TIMER_KIND, target=key, payload=payload)


def timer_id(key: str) -> str:
    return f"{TIMER_KIND} {key}"


def _ended_at(tx: Tx, session_keys: Sequence[str]) -> dict[str, int]:
    """Return when the last turns of sessions ended, as far as their timers know."""
    known = timers.get_all(tx, list(map(timer_id, session_keys)))
    ends = {timer.target: _since.decode(timer.payload).end_ms for timer in known}
    return {key: ends.get(key, tx.now) for key in session_keys}


def _is_of_its_own(settled: Settled) -> bool:
    return settled.kind is not None and settled.kind.rule.is_of_its_own


def _greets(rules: ProactiveRules, key: str, greeted: Collection[str]) -> bool:
    return rules.initial_greeting and key not in greeted


def _greeted(tx: Tx, session_keys: Sequence[str]) -> set[str]:
    """Return the sessions that have had their first tick."""
    rows = tx.all(
        "SELECT session_key FROM greetings WHERE session_key IN :keys", keys=list(session_keys)
    )
    return {row[0] for row in rows}


def _note_greeted(tx: Tx, ticks: Sequence[Receipt]) -> None:
    tx.many(
        "INSERT INTO greetings (session_key, greeted_at, stimulus_id) VALUES (:key, :now, :id) "
        "ON CONFLICT DO NOTHING",
        [{"key": one.session_key, "now": tx.now, "id": one.stimulus_id} for one in ticks],
    )
