"""Deletion of a session: in one commit it is gone for everybody, then its entries are removed.

What runs in it is ended first, in that same commit: the lane is taken from the turn, so that
nothing the turn still does can be written.
"""

import logging
from collections.abc import Callable, Sequence

from wakeful.access import audit
from wakeful.broker import lane_rows, stimuli
from wakeful.broker.lane_rows import Lane
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate.locking import write_in_lanes
from wakeful.intake.accept import SESSION_DELETED
from wakeful.intake.sessions import existing
from wakeful.sleeps import marks, sleeps
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.transcript import discards, resets, sessions
from wakeful.transcript.sessions import Session
from wakeful.turns import turns
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import StoreFailed
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.retrying import retrying
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import OPERATOR, State

STEP = 500  # stimuli that one write cancels
FINISH_EVERY_S = 3_600.0

log = logging.getLogger(__name__)


class BoundAutomation(Record):
    """An automation of a user that runs in one session."""

    id: str
    name: str
    enabled: bool


class Deleted(Record, omit_defaults=True):
    """What came of a deletion."""

    deleted: bool
    blocked_by_automations: bool = False
    automations: Sequence[BoundAutomation] = ()


BoundTo = Callable[[Tx, SessionKey], Sequence[BoundAutomation]]
OnDeleted = Callable[[Tx, SessionKey], None]  # what else goes with a session
EndTurn = Callable[[Tx, Turn, End, int], None]


# Names that something still speaks of: somebody else who took one could read it.
_SPOKEN_OF = (
    "SELECT key FROM sessions WHERE key IN :keys "
    "UNION SELECT session_key FROM stimuli WHERE session_key IN :keys "
    "UNION SELECT session_key FROM turns WHERE session_key IN :keys "
    "UNION SELECT session_key FROM lanes WHERE session_key IN :keys "
    "AND (owner IS NOT NULL OR turn_id IS NOT NULL)"
)


def forget(tx: Tx, keys: Sequence[str]) -> int:
    """Forget deleted sessions that no ledger speaks of any more, and their lanes; return how many.

    The caller holds the locks of their lanes.
    """
    spoken_of = {row[0] for row in tx.all(_SPOKEN_OF, keys=list(keys))}
    gone = [key for key in keys if key not in spoken_of]
    lane_rows.forget(tx, gone)
    sessions.forget_deleted(tx, gone)
    return len(gone)


class Deletion:
    """Deletes sessions; a service, so that what was begun is finished."""

    # Each is a room of its own, or what another one wants done.
    def __init__(  # noqa: PLR0913
        self,
        store: Store,
        bus: Bus,
        ids: Ids,
        clock: Clock,
        settlement: Settlement,
        end_turn: EndTurn,
        bound_to: BoundTo,
        *,
        on_deleted: Sequence[OnDeleted] = (),
    ) -> None:
        self._store = store
        self._settlement = settlement
        self._bus = bus
        self._ids = ids
        self._clock = clock
        self._end_turn = end_turn
        self._bound_to = bound_to
        self._on_deleted = on_deleted

    async def delete(
        self, key: SessionKey, *, by: str = OPERATOR, is_confirmed: bool = False
    ) -> Deleted:
        """Delete a session, unless automations are bound to it and nobody confirmed.

        Who did it is audited in the commit that removes it, whatever door it came through.
        """
        deleted: Deleted | None = None
        while deleted is None:
            deleted = await write_in_lanes(
                self._store, [key], lambda tx: self._step(tx, key, by, is_confirmed=is_confirmed)
            )
        failpoint("session-deleted")
        if deleted.deleted:
            await self._try_to_finish()
        return deleted

    async def run(self) -> None:
        """Finish what a kill or a full disk has cut short, at the start and now and then."""
        while True:
            await retrying(self._clock, "removing sessions", self.finish)
            await self._clock.sleep(FINISH_EVERY_S)

    async def finish(self) -> None:
        """Remove the entries of every session that was deleted."""
        after: str | None = ""
        while after is not None:
            rows = await self._store.read(discards.NEXT, after=after)
            after = rows[0][0] if rows else None
            while after is not None and await self._store.transact(
                lambda tx, transcript_id=after: discards.sweep(tx, transcript_id)
            ):
                failpoint("entries-removed")

    async def _try_to_finish(self) -> None:
        """Finish, or leave it for later: the session is gone for everybody all the same."""
        try:
            await self.finish()
        except StoreFailed:
            raise
        except Exception:
            log.warning("the entries of a session are removed later", exc_info=True)

    def _step(self, tx: Tx, key: SessionKey, by: str, *, is_confirmed: bool) -> Deleted | None:
        """Delete the session if what waits there can be cancelled at once, else cancel some.

        Nobody could be rid of it otherwise: here a session need not be readable.
        """
        session = existing(tx, key, sessions.get_partly)
        bound = self._bound_to(tx, key)
        if bound and not is_confirmed:
            return Deleted(deleted=False, blocked_by_automations=True, automations=bound)
        waiting = stimuli.all_waiting(tx, key, STEP + 1)
        self._settlement.settle(tx, waiting[:STEP], State.CANCELLED, SESSION_DELETED)
        lane_rows.touch(tx, key)
        if len(waiting) > STEP:
            return None
        lane = lane_rows.get_partly(tx, key)
        if lane is not None:
            self._clear(tx, lane)
        audit.note(tx, self._ids, who=by, action="sessions.delete", target=key)
        self._remove(tx, session)
        return Deleted(deleted=True)

    def _clear(self, tx: Tx, lane: Lane) -> None:
        """End what runs in a lane. Its row, and its epoch, stay while a ledger speaks of it."""
        turn = None if lane.turn_id is None else turns.get_partly(tx, lane.turn_id)
        if turn is not None:
            self._end_turn(
                tx, turn, End(state=TurnState.STOPPED, reason=SESSION_DELETED), lane.epoch
            )
            tx.notify(turns.INTERRUPT, turn.id)
        lane_rows.forget_window(tx, lane.session_key)
        lane_rows.forget_overflow(tx, lane.session_key)

    def _remove(self, tx: Tx, session: Session) -> None:
        marks.end_unread(tx, session.key, SESSION_DELETED)
        sleeps.end(tx, session.key)
        timers.forget(tx, session.key)
        for hook in self._on_deleted:
            hook(tx, SessionKey(session.key))
        for transcript_id in (session.transcript_id, *resets.forget(tx, session.key)):
            discards.discard(tx, transcript_id)
        sessions.remove(tx, session)
        self._bus.publish(tx, "session.deleted", session.key)
