"""Sleep and wake by the operator's word."""

from wakeful.broker import lane_rows
from wakeful.gate import halts
from wakeful.intake.sessions import existing
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep, SleepPolicy, WokenBy
from wakeful.store.database import Store, Tx
from wakeful.triggers.blocks import ProactiveBlocks
from wakeful.triggers.durations import duration
from wakeful.triggers.sleeping import Sleeping
from wakeful.vocabulary.errors import InvalidInput, Underway
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Outcome, Trust
from wakeful.vocabulary.text import one_line

LONGEST_REASON = 500


class Entered(Record):
    """A sleep that begins, and what became of the wish for its length."""

    id: str
    requested_ms: int
    clamped_ms: int
    final_ms: int
    wake_at: int


class Woken(Record):
    """What came of a wake."""

    woken: bool
    slept_ms: int | None = None
    stimulus_id: str | None = None
    reason: str | None = None  # why the session may not run now


class SleepActs:
    """Puts sessions to sleep, and wakes them."""

    def __init__(self, store: Store, ids: Ids, sleeping: Sleeping, blocks: ProactiveBlocks) -> None:
        self._store = store
        self._ids = ids
        self._sleeping = sleeping
        self._blocks = blocks

    async def sleep(self, key: SessionKey, requested_ms: int, reason: str = "") -> Entered:
        """Let a session rest until a time, or until somebody needs it."""
        return await self._store.transact(
            lambda tx: self.sleep_in(tx, key, requested_ms, reason),
            locks=[lane_rows.lock(key), halts.ASKING],
        )

    def sleep_in(self, tx: Tx, key: SessionKey, requested_ms: int, reason: str) -> Entered:
        """Sleep as part of another change; the caller holds the lane's lock."""
        if requested_ms <= 0:
            raise InvalidInput("seconds", "must be above 0")
        session = existing(tx, key)
        lane = lane_rows.get(tx, key)
        if lane is not None and lane.turn_id is not None:
            raise Underway(f"a turn is running in {key!r}: stop it, or wait for its end")
        length = duration(
            requested_ms, self._blocks.of(session), self._blocks.cache_edges_of(session)
        )
        sleep = Sleep(
            owner=key,
            id=self._ids.new("sl"),
            agent_id=session.agent_id,
            session_key=key,
            policy=SleepPolicy.WAKE,
            reason=one_line(reason, LONGEST_REASON),
            trust=Trust.OPERATOR,
            cause_id=None,
            requested_ms=requested_ms,
            final_ms=length.final_ms,
            created_at=tx.now,
            wake_at=tx.now + length.final_ms,
        )
        self._sleeping.enter(tx, sleep, by="operator", is_snapped=length.is_snapped)
        lane_rows.touch(tx, key)
        return Entered(
            id=sleep.id,
            requested_ms=requested_ms,
            clamped_ms=length.clamped_ms,
            final_ms=length.final_ms,
            wake_at=sleep.wake_at,
        )

    async def wake(self, key: SessionKey) -> Woken:
        """End a session's sleep."""
        return await self._store.transact(
            lambda tx: self.wake_in(tx, key), locks=[lane_rows.lock(key), halts.ASKING]
        )

    def wake_in(self, tx: Tx, key: SessionKey) -> Woken:
        """Wake as part of another change; the caller holds the locks of lane and halts."""
        existing(tx, key)
        sleep = sleeps.get(tx, key)
        if sleep is None:
            return Woken(woken=False, reason="awake")
        (receipt,) = self._sleeping.wake(tx, [sleep], WokenBy.OPERATOR)
        is_refused = receipt.outcome is Outcome.SUPPRESSED
        return Woken(
            woken=not is_refused,
            slept_ms=None if is_refused else max(0, tx.now - sleep.created_at),
            stimulus_id=receipt.stimulus_id,
            reason=receipt.reason if is_refused else None,
        )
