"""Heartbeats: at regular times an agent looks whether something needs attention.

An agent whose heart beats always has its timer. Firing sets the next one, in step with the last,
in the commit that files the heartbeat or records why there is none; nothing else moves it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path

from msgspec.structs import replace

from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settled
from wakeful.bus.bus import Bus
from wakeful.gate import halts
from wakeful.intake.filing import File
from wakeful.prompts import heartbeat as prompts
from wakeful.sleeps import sleeps
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.timers.timers import Timer
from wakeful.transcript import sessions
from wakeful.transcript.sessions import SessionPolicy
from wakeful.triggers import heartbeat_rows
from wakeful.triggers.heartbeat_rows import HeartbeatRow, due_after
from wakeful.triggers.heartbeat_skips import AskedBy, BeatFacts, Tasks, skip_reason
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.errors import NotFound, WakefulError
from wakeful.vocabulary.heartbeat import HeartbeatRules
from wakeful.vocabulary.kinds import RULES, Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Priority, Receipt, State, Trust
from wakeful.workspace import Workspace

TIMER_KIND = "heartbeat"
WINDOW_MS = 250  # how long one that is asked for waits for more who ask

# Files that of which nothing comes, and why.
Refuse = Callable[[Tx, Sequence[tuple[Draft, str]]], list[Receipt]]
WorkspaceOf = Callable[[str], Path | None]
_BEATS = frozenset(kind for kind, rule in RULES.items() if rule.acknowledges)


class _Wanted(Record):
    """A heartbeat that somebody wants of an agent."""

    agent_id: str
    asked_by: AskedBy
    source: str
    tasks: Tasks


class Beating:
    """Sets and fires the timers of heartbeats; the caller holds the lane's lock."""

    def __init__(
        self, agents: Agents, bus: Bus, file: File, refuse: Refuse, workspace_of: WorkspaceOf
    ) -> None:
        self._agents = agents
        self._bus = bus
        self._file = file
        self._refuse = refuse
        self._workspace_of = workspace_of
        self.zone: tzinfo | None = None  # the user's; None: the machine's

    def follow(self, zone: tzinfo | None) -> None:
        """Go by the clocks of this zone where settings mean the user's."""
        self.zone = zone

    async def reconcile(self, store: Store, agent_ids: Sequence[str]) -> None:
        """Give each agent whose heart should beat its timer, in step with the last time."""
        for agent_id in agent_ids:
            rules = self._rules(agent_id)
            if rules is not None and not await _is_set(store, agent_id, rules):
                await store.transact(
                    lambda tx, agent_id=agent_id: self.set(tx, agent_id),
                    locks=[lane_rows.lock(rules.session_of(agent_id))],
                )

    def set(self, tx: Tx, agent_id: str, *, is_off: bool | None = None) -> None:
        """Bring the timer in line with the settings and the operator's word, new or as it was."""
        rules = self._rules(agent_id)
        assert rules is not None
        key, every_ms = rules.session_of(agent_id), rules.every_ms
        row = heartbeat_rows.get(tx, agent_id)
        if row is None:
            row = HeartbeatRow(agent_id=agent_id, every_ms=0, phase_at=tx.now)
        if is_off is not None:
            row = replace(row, is_off=is_off)
        is_new = every_ms not in (0, row.every_ms)
        if is_new:
            row = replace(row, every_ms=every_ms, phase_at=_first_due(row, every_ms, tx.now))
        heartbeat_rows.put(tx, row)
        timer = timers.get(tx, timer_id(agent_id))
        if not every_ms or row.is_off:
            timers.cancel(tx, timer_id(agent_id))
            self._release_events(tx, key)
        elif is_new:
            timers.put(tx, _timer(agent_id, key, row.phase_at))
        elif timer is None:
            timers.put(tx, _timer(agent_id, key, due_after(row.phase_at, every_ms, tx.now)))
        elif timer.target != key:
            timers.put(tx, _timer(agent_id, key, timer.due_at))

    def prepare(self, timer: Timer) -> Tasks:
        """Look whether the file of tasks holds any; it may block."""
        folder = self._workspace_of(keys.agent_of(timer.target))
        if folder is None:
            return Tasks.ABSENT
        try:
            text = Workspace(folder).read(prompts.FILE).decode("utf-8", "replace")
        except NotFound:
            return Tasks.ABSENT
        except WakefulError:
            return Tasks.SOME  # somebody wanted something: the agent is told what went wrong
        return Tasks.SOME if prompts.has_tasks(text) else Tasks.NONE

    def fire(self, tx: Tx, dues: Sequence[Due[Tasks]]) -> None:
        """Set the next timer, then file the heartbeat, or why there is none."""
        due_of = {keys.agent_of(due.timer.target): due for due in dues}
        rows = heartbeat_rows.get_all(tx, list(due_of))
        gone: dict[str, str] = {}
        moved: list[HeartbeatRow] = []
        following: list[Timer] = []
        wanted: list[_Wanted] = []
        for agent_id, due in due_of.items():
            rules, row, due_at = self._rules(agent_id), rows.get(agent_id), due.timer.due_at
            if rules is None or row is None:
                gone[agent_id] = "skipped:disabled"
                continue  # the agent is gone; should it come back, it goes on in step
            if rules.every_ms and not row.is_off:
                moved.append(replace(row, phase_at=due_at))
                next_at = due_after(due_at, rules.every_ms, tx.now)
                following.append(_timer(agent_id, rules.session_of(agent_id), next_at))
            wanted.append(
                _Wanted(
                    agent_id=agent_id, asked_by=AskedBy.TIMER, source=prompts.SOURCE, tasks=due.fact
                )
            )
        heartbeat_rows.note(tx, gone)
        heartbeat_rows.put(tx, *moved)
        timers.put(tx, *following)
        self._beat(tx, wanted, rows)

    def ask(self, tx: Tx, agent_id: str, asked_by: AskedBy, source: str) -> Receipt:
        """File a heartbeat that somebody wants now; a moment later it takes along all who ask."""
        wanted = _Wanted(
            agent_id=agent_id, asked_by=asked_by, source=prompts.asked_by(source), tasks=Tasks.SOME
        )
        (receipt,) = self._beat(tx, [wanted], heartbeat_rows.get_all(tx, [agent_id]))
        return receipt

    def on_settled(self, tx: Tx, settled: Sequence[Settled]) -> None:
        """Tell of the heartbeats that asked no model, and why."""
        skipped = [
            (keys.agent_of(one.session_key), one)
            for one in settled
            if one.state is State.SUPPRESSED and one.kind in _BEATS
        ]
        if not skipped:
            return
        outcomes = {agent_id: f"skipped:{one.reason}" for agent_id, one in skipped}
        heartbeat_rows.note(tx, outcomes)
        following = {timer.id: timer for timer in timers.get_all(tx, list(map(timer_id, outcomes)))}
        for agent_id, one in skipped:
            timer = following.get(timer_id(agent_id))
            self._bus.publish(
                tx,
                "heartbeat.skipped",
                one.session_key,
                stimulus_id=one.id,
                reason=one.reason,
                next_due_at=None if timer is None else timer.due_at,
            )

    def on_ended(self, tx: Tx, turn: Turn, how: End) -> None:
        """Keep what came of a heartbeat."""
        if turn.kind not in _BEATS or how.state is TurnState.PREEMPTED:
            return  # a preempted one is picked up again; one that cannot be read has no kind
        outcome = (how.reason or "sent") if how.state is TurnState.DONE else "failed"
        heartbeat_rows.note(tx, {turn.agent_id: outcome})

    def _beat(
        self, tx: Tx, wanted: Sequence[_Wanted], rows: Mapping[str, HeartbeatRow]
    ) -> list[Receipt]:
        """File what is wanted of different agents, or why it comes to nothing."""
        facts = self._facts(tx, wanted, rows)
        drafts = self._drafts(tx, wanted)
        filed: list[Draft] = []
        refused: list[tuple[Draft, str]] = []
        for one, fact, draft in zip(wanted, facts, drafts, strict=True):
            reason = skip_reason(fact, one.asked_by)
            if reason is None:
                filed.append(draft)
            else:
                refused.append((draft, reason))
        receipts = self._refuse(tx, refused) if refused else []
        return [*receipts, *self._file(tx, filed)] if filed else receipts

    def _drafts(self, tx: Tx, wanted: Sequence[_Wanted]) -> list[Draft]:
        asked = [(one, self._known_rules(one.agent_id)) for one in wanted]
        to_last = [rules.session_of(one.agent_id) for one, rules in asked if rules.target == "last"]
        sessions_there = sessions.policies(tx, to_last) if to_last else {}
        return [
            Draft(
                session_key=(key := rules.session_of(one.agent_id)),
                text=rules.prompt or prompts.PROMPT,
                kind=Kind.HEARTBEAT,
                priority=Priority.LATER,
                trust=Trust.OPERATOR,
                owner=OPERATOR,
                source=one.source,
                route=_target(rules, sessions_there.get(key)),
                not_before=None if one.asked_by is AskedBy.TIMER else _window(tx, key),
                ignores_quiet_hours=one.asked_by is AskedBy.OPERATOR,
            )
            for one, rules in asked
        ]

    def _facts(
        self, tx: Tx, wanted: Sequence[_Wanted], rows: Mapping[str, HeartbeatRow]
    ) -> list[BeatFacts]:
        """Return what decides about each, read once for all: they are of different agents."""
        asked = [(one, self._known_rules(one.agent_id)) for one in wanted]
        session_keys = [rules.session_of(one.agent_id) for one, rules in asked]
        lanes = lane_rows.get_all(tx, session_keys)
        halted = halts.scopes(tx)
        asleep = sleeps.get_all(tx, session_keys)
        said = stimuli.with_something_said(tx, session_keys)
        events = stimuli.with_something_to_take_along(tx, session_keys)
        facts: list[BeatFacts] = []
        for (one, rules), key in zip(asked, session_keys, strict=True):
            row, lane, hours = rows.get(one.agent_id), lanes.get(key), rules.active_hours
            is_running = lane is not None and lane.turn_id is not None
            facts.append(
                BeatFacts(
                    is_on=rules.every_ms > 0 and not (row is not None and row.is_off),
                    is_active_hour=hours is None or hours.cover(tx.now, self.zone),
                    is_halted=halts.covers(halted, one.agent_id),
                    is_asleep=key in asleep,
                    is_busy=is_running or key in said,
                    has_event=key in events,
                    tasks=one.tasks,
                    has_own_prompt=rules.prompt is not None,
                )
            )
        return facts

    def _known_rules(self, agent_id: str) -> HeartbeatRules:
        rules = self._rules(agent_id)
        assert rules is not None
        return rules

    def _rules(self, agent_id: str) -> HeartbeatRules | None:
        config = self._agents.find(agent_id)
        return None if config is None else config.heartbeat

    def _release_events(self, tx: Tx, key: str) -> None:
        """Let what waits for a heartbeat open turns of its own: there will be none."""
        if stimuli.release_taken_along(tx, key):
            lane_rows.touch(tx, key)


async def _is_set(store: Store, agent_id: str, rules: HeartbeatRules) -> bool:
    """Tell whether there is nothing to change: most starts find everything as it should be."""
    found = await store.read(
        "SELECT heartbeats.every_ms, heartbeats.is_off, timers.target FROM heartbeats "
        "LEFT JOIN timers ON timers.id = :timer_id WHERE heartbeats.agent_id = :agent_id",
        agent_id=agent_id,
        timer_id=timer_id(agent_id),
    )
    if not found:
        return False
    every_ms, is_off, target = found[0]
    if is_off or not rules.every_ms:
        return target is None
    return every_ms == rules.every_ms and target == rules.session_of(agent_id)


def _first_due(row: HeartbeatRow, every_ms: int, now: int) -> int:
    """Return when it beats after its interval was changed: so long after the last time."""
    if row.every_ms == 0:
        return now + every_ms
    last = row.phase_at if row.last_run_at is None else row.last_run_at
    return max(now, last + every_ms)


def timer_id(agent_id: str) -> str:
    return f"{TIMER_KIND} {agent_id}"


def _timer(agent_id: str, key: str, due_at: int) -> Timer:
    return Timer(
        id=timer_id(agent_id), due_at=due_at, kind=TIMER_KIND, target=key, owner_kind="agent"
    )


def _target(rules: HeartbeatRules, session: SessionPolicy | None) -> Route | None:
    """Return where the answer goes: where people spoke last, a route of its own, or nowhere."""
    if isinstance(rules.target, Route):
        return rules.target
    return None if session is None else session.route


def _window(tx: Tx, key: str) -> int:
    """Return when one that is asked for starts: with those who have asked already."""
    return stimuli.next_acknowledged(tx, key) or tx.now + WINDOW_MS
