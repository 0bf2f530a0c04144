"""Intake: accept, stop, cancel, halt, resume. Each is one commit, then a notification."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from wakeful.access import audit
from wakeful.broker import inbox_counts, lane_rows, parking, stimuli
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate import halts, parked
from wakeful.gate.wakes import MayWake
from wakeful.intake import stopping
from wakeful.intake.accept import Acceptance, IntakeRules
from wakeful.intake.bindings import Bindings
from wakeful.intake.draft import checked
from wakeful.intake.lane_work import LaneWorks
from wakeful.intake.queue_rules import QueueRules
from wakeful.store.database import Lock, Store, Tx, Verb
from wakeful.timers import timers
from wakeful.transcript import sessions
from wakeful.transcript.sessions import SessionPolicy
from wakeful.turns import turns
from wakeful.turns.turns import Interrupt
from wakeful.vocabulary import queueing
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.agent import Agents
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.kinds import Work
from wakeful.vocabulary.queueing import RULES, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import (
    OPERATOR,
    WAITING,
    Draft,
    Outcome,
    Receipt,
    State,
    Trust,
)

RELEASE_STEP = 200  # lanes that one write of `resume` touches

# Written in the accepting transaction, beside a stimulus that was filed.
Beside = Callable[[Tx, Receipt], None]


_NOT_FILED = frozenset({Outcome.DUPLICATE, Outcome.REFUSED})


class Stopped(Record):
    """What a stop found to end."""

    turn_id: str | None
    cancelled: tuple[str, ...]
    waiting: int = 0  # messages that were waiting, all of them cancelled in time


class Intake:
    """The one way in."""

    # Each is a room of its own, or what the operator chose.
    def __init__(  # noqa: PLR0913
        self,
        store: Store,
        bus: Bus,
        ids: Ids,
        agents: Agents,
        rules: IntakeRules,
        bindings: Bindings | None = None,
        *,
        settlement: Settlement,
        may_wake: MayWake,
    ) -> None:
        self._store = store
        self._bus = bus
        self._ids = ids
        self._agents = agents
        self._settlement = settlement
        self.bindings = bindings or Bindings()
        self.attachments = rules.attachments  # what doors let through
        self.inbox = rules.inbox
        self.queue = QueueRules(agents, self.bindings, everywhere=rules.queue, doors=rules.doors)
        self._works = LaneWorks(bus, ids)
        self._acceptance = Acceptance(
            bus, ids, self._works, self.queue, rules, settlement=settlement, may_wake=may_wake
        )
        self._verb: Verb[tuple[Draft, Beside | None], Receipt] = Verb(
            "accept",
            self._accept_all,
            locks=_locks,
            is_followed=True,  # by the opening of its turn
        )

    def follow(self, rules: IntakeRules) -> None:
        """Accept by other rules from now on."""
        self.queue.follow(rules.queue, rules.doors)
        self._acceptance.follow(rules)
        self.attachments = rules.attachments
        self.inbox = rules.inbox

    async def accept(self, draft: Draft) -> Receipt:
        """Accept a stimulus; it is on disk when this returns."""
        return await self._accept(draft, None)

    async def accept_with(self, draft: Draft, write: Beside) -> Receipt:
        """Accept a stimulus and, in the same commit, write what belongs to it.

        For a duplicate nothing is written: what belongs to the first is there. Nor is it for what
        is refused.
        """
        return await self._accept(draft, write)

    async def _accept(self, draft: Draft, beside: Beside | None) -> Receipt:
        draft = self.checked(draft)
        failpoint("accept")
        receipt = await self._store.batch(self._verb, (draft, beside))
        failpoint("accepted")
        return receipt

    def _accept_all(self, tx: Tx, items: Sequence[tuple[Draft, Beside | None]]) -> list[Receipt]:
        receipts = self._acceptance.run(tx, [draft for draft, _ in items])
        for (_, beside), receipt in zip(items, receipts, strict=True):
            if beside is not None and receipt.outcome not in _NOT_FILED:
                beside(tx, receipt)
        return receipts

    def accept_in(self, tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
        """Accept stimuli as part of another change, which holds the locks of their lanes."""
        lane_rows.require(tx, {draft.session_key for draft in drafts})
        return self._acceptance.run(tx, [self.checked(draft) for draft in drafts])

    def open_in(self, tx: Tx, draft: Draft) -> None:
        """Make the session that a draft would make, for what is chosen before it is spoken in."""
        lane_rows.require(tx, {draft.session_key})
        self._works.open(tx, self.checked(draft))

    async def open_activity(self, agent_id: str) -> None:
        """Make the session in which everything lands that has no other, if it is not there."""
        key = keys.activity(agent_id)
        if await self._store.read("SELECT 1 FROM sessions WHERE key = :key", key=key):
            return
        draft = Draft(session_key=key, trust=Trust.OPERATOR, owner=OPERATOR)
        await self._store.transact(
            lambda tx: self._works.make(tx, draft), locks=[lane_rows.lock(key)]
        )

    def keep_in(self, tx: Tx, drafts: Sequence[Draft]) -> list[Receipt]:
        """Accept as `accept_in` does, for an absent agent, too: what is for it waits for it."""
        lane_rows.require(tx, {draft.session_key for draft in drafts})
        return self._acceptance.run(tx, [checked(draft) for draft in drafts])

    def refuse_in(self, tx: Tx, refused: Sequence[tuple[Draft, str]]) -> list[Receipt]:
        """File what is the runtime's own and comes to nothing, and why."""
        return self._acceptance.refuse(tx, [(checked(draft), why) for draft, why in refused])

    def checked(self, draft: Draft) -> Draft:
        draft = checked(draft)
        self._agents.get(keys.agent_of(draft.session_key))
        return draft

    async def stop(self, session_key: SessionKey) -> Stopped:
        """End the running turn and cancel what people have waiting; past queue and debounce.

        When this returns, nothing of what was said before it begins any more.
        """
        stopped = await self._store.transact(
            lambda tx: self.stop_in(tx, session_key), locks=[lane_rows.lock(session_key)]
        )
        more = await self.finish_stop(session_key)
        return replace(stopped, cancelled=stopped.cancelled + more)

    async def finish_stop(self, session_key: SessionKey) -> tuple[str, ...]:
        """Cancel what a stop has left of what was said before it, which no turn takes any more."""
        cancelled: list[str] = []
        while more := await self._store.transact(
            lambda tx: stopping.cancel_some(tx, self._settlement, session_key),
            locks=[lane_rows.lock(session_key)],
        ):
            cancelled += more
        return tuple(cancelled)

    async def abort(self, turn_id: str) -> bool:
        """End one turn; False if it had ended already."""
        rows = await self._store.read("SELECT session_key FROM turns WHERE id = :id", id=turn_id)
        if not rows:
            raise NotFound("turn_id", f"no turn {turn_id!r}")
        session_key: str = rows[0][0]

        def write(tx: Tx) -> bool:
            lane = lane_rows.get(tx, session_key)
            if lane is None or lane.turn_id != turn_id:
                return False
            self._interrupt(tx, session_key, turn_id)
            return True

        return await self._store.transact(write, locks=[lane_rows.lock(session_key)])

    async def cancel(self, stimulus_id: str) -> bool:
        """Cancel a stimulus that still waits; False if it is too late for that."""
        rows = await self._store.read(
            "SELECT session_key FROM stimuli WHERE id = :id", id=stimulus_id
        )
        if not rows:
            raise NotFound("stimulus_id", f"no stimulus {stimulus_id!r}")
        session_key: str = rows[0][0]

        def write(tx: Tx) -> bool:
            stimulus = stimuli.get(tx, stimulus_id)
            if stimulus is None or stimulus.state not in WAITING:
                return False
            self._settlement.settle(tx, [stimulus_id], State.CANCELLED, "by-sender")
            lane_rows.touch(tx, session_key)
            return True

        return await self._store.transact(write, locks=[lane_rows.lock(session_key)])

    async def set_queue(self, session_key: SessionKey, queue: QueueOverrides) -> None:
        """Keep queue settings for a session; what waits in its lane follows them."""
        queue = queueing.checked(queue)
        await self._store.transact(
            lambda tx: self.set_queue_in(tx, session_key, queue),
            locks=[lane_rows.lock(session_key)],
        )

    def set_queue_in(self, tx: Tx, session_key: SessionKey, queue: QueueOverrides) -> None:
        """Keep queue settings, which were checked, under the lock of the session's lane."""
        session = sessions.get(tx, session_key)
        if session is None:
            raise NotFound("session", f"no session {session_key!r}")
        chosen = replace(session, queue=queue)
        sessions.choose(tx, chosen)
        self.follow_queue(tx, chosen)

    def follow_queue(self, tx: Tx, session: SessionPolicy) -> None:
        """Let what waits for a window follow the settings that hold now; it never waits longer."""
        settings = self.queue.of_session(session)
        waits = settings.debounce_ms > 0 and RULES[settings.mode].debounces
        if waits:
            lane_rows.shorten_window(tx, session.key, tx.now + settings.debounce_ms)
        else:
            lane_rows.forget_window(tx, session.key)

    async def halt(self, agent_id: str | None, by: str = OPERATOR) -> bool:
        """Stop all model and tool calls of an agent, or of the runtime, until `resume`."""
        scope = self.scope_of(agent_id)
        return await self._store.transact(
            lambda tx: self.halt_in(tx, scope, by), locks=[halts.CHANGING]
        )

    def halt_in(self, tx: Tx, scope: str, by: str) -> bool:
        """Halt as part of another change; the caller holds the lock of the halts."""
        audit.note(tx, self._ids, who=by, action="halt", target=scope)
        if not halts.halt(tx, scope, by):
            return False
        self._bus.publish(tx, "halt.set", scope=scope, by=by)
        return True

    async def resume(self, agent_id: str | None, by: str = OPERATOR) -> bool:
        """Lift a halt and let everything that nothing else halts go on, in small steps."""
        scope = self.scope_of(agent_id)
        is_lifted = await self._store.transact(
            lambda tx: self.lift_in(tx, scope, by), locks=[halts.CHANGING]
        )
        await self.release_all(agent_id)
        return is_lifted

    def lift_in(self, tx: Tx, scope: str, by: str) -> bool:
        """Lift a halt as part of another change; the caller must then `release_all`."""
        audit.note(tx, self._ids, who=by, action="resume", target=scope)
        if not halts.lift(tx, scope):
            return False
        self._bus.publish(tx, "halt.lifted", scope=scope)
        everybody = self._agents.ids() if scope == halts.EVERYTHING else [scope]
        wakes = (parked.release_timer(one, tx.now, reason=parked.HALTED) for one in everybody)
        timers.put(tx, *wakes)  # who should have woken meanwhile
        return True

    async def release_all(self, agent_id: str | None) -> None:
        """Let one agent's lanes go on, or everybody's."""
        for each in self._agents.ids() if agent_id is None else [agent_id]:
            await self.release(each)

    async def release(self, agent_id: str) -> None:
        """Let an agent's lanes go on; also run at start, since a crash may cut a resume short."""
        for reason in ("halted", "no-agent"):
            await self._release(agent_id, parking.PARKED_LANES, {"reason": reason})
        await self._release(agent_id, lane_rows.STALLED, {})

    async def _release(self, agent_id: str, sql: str, params: dict[str, str]) -> None:
        """Release lanes found by a statement until it finds none, or the agent is halted."""
        while True:
            rows = await self._store.read(sql, agent_id=agent_id, limit=RELEASE_STEP, **params)
            keys_found = [row[0] for row in rows]
            locks = [halts.ASKING, *map(lane_rows.lock, keys_found)]
            if not keys_found or not await self._store.transact(
                lambda tx, found=keys_found: self._release_step(tx, agent_id, found), locks=locks
            ):
                return

    def _release_step(self, tx: Tx, agent_id: str, session_keys: list[str]) -> bool:
        if halts.is_halted(tx, agent_id):
            return False
        for key in session_keys:
            freed = parking.unpark(tx, key, "halted") + parking.unpark(tx, key, "no-agent")
            for stimulus_id in freed:
                self._bus.publish(
                    tx, "stimulus.pending", key, stimulus_id=stimulus_id, reason="resumed"
                )
            lane_rows.resume_stalled(tx, key, tx.now)
        return True

    def stop_in(self, tx: Tx, session_key: str) -> Stopped:
        """Stop a session as part of another change; the caller holds the lock of its lane.

        From this commit on no turn takes anything that was said before; `finish_stop` cancels
        what one write does not.
        """
        lane = lane_rows.get(tx, session_key)
        if lane is None:
            return Stopped(turn_id=None, cancelled=())
        lane_rows.forget_window(tx, session_key)
        lane_rows.stop(tx, session_key)
        if lane.turn_id is not None:
            self._interrupt(tx, session_key, lane.turn_id)
        waiting = stimuli.count_said(tx, session_key)
        cancelled = stopping.cancel_some(tx, self._settlement, session_key)
        return Stopped(turn_id=lane.turn_id, cancelled=tuple(cancelled), waiting=waiting)

    def _interrupt(self, tx: Tx, session_key: str, turn_id: str) -> None:
        turns.interrupt(tx, turn_id, Interrupt.STOP)
        turn = turns.get(tx, turn_id)
        if turn is not None and turn.kind.rule.work is Work.REPLY:
            sessions.note_stopped(tx, session_key, True)
        lane_rows.resume(tx, session_key, tx.now)  # a turn without a task needs one to end

    def scope_of(self, agent_id: str | None) -> str:
        """Name what a halt covers: an agent that is known, or everything."""
        if agent_id is None:
            return halts.EVERYTHING
        return self._agents.get(agent_id, "agent_id").id


def _locks(item: tuple[Draft, Beside | None]) -> Sequence[Lock]:
    """Return the locks of what is accepted; where it may be refused, that of the counts, too."""
    draft, _ = item
    own = (lane_rows.lock(draft.session_key), halts.ASKING)
    return own if draft.caps is None else (*own, inbox_counts.COUNTS)
