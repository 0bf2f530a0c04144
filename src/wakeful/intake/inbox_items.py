"""The end of what waits in the inbox and is never read: its time is over, or nobody wants it."""

from collections.abc import Callable, Sequence

from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settled, Settlement
from wakeful.broker.stimuli import STIMULI
from wakeful.store.database import Store, Tx
from wakeful.timers import timers
from wakeful.timers.timekeeper import Due
from wakeful.timers.timers import Timer
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.stimulus import WAITING, State, Stimulus

TIMER_KIND = "expiry"

_OF_IDS = STIMULI.select("WHERE id IN :ids AND in_inbox = 1")


def expire_in_time(tx: Tx, stimulus: Stimulus) -> None:
    """Set what ends an item when its time is over: what is held has no turn to look at it."""
    assert stimulus.expires_at is not None
    timer = Timer(
        id=_timer_id(stimulus.id),
        due_at=stimulus.expires_at + 1,  # at that very instant it is not yet too late
        kind=TIMER_KIND,
        target=stimulus.session_key,
        payload=f'"{stimulus.id}"',
    )
    timers.put(tx, timer)


def forget_expiry(tx: Tx, settled: Sequence[Settled]) -> None:
    """Drop what would have ended items that have ended otherwise."""
    may_be_held = [one for one in settled if one.kind is not None and one.kind.rule.is_guarded]
    timers.cancel(tx, *(_timer_id(one.id) for one in may_be_held))


class InboxItems:
    """Ends items that no turn was given."""

    def __init__(self, store: Store, settlement: Settlement) -> None:
        self._store = store
        self._settlement = settlement

    def fire(self, tx: Tx, dues: Sequence[Due[None]]) -> None:
        """End those that still wait; the locks of their lanes are held."""
        ids = [due.timer.payload.strip('"') for due in dues]
        late = [one.id for one in _found(tx, ids) if one.state in WAITING]
        self._settlement.settle(tx, late, State.EXPIRED, "expired")
        for due in dues:
            lane_rows.touch(tx, due.timer.target)

    async def dismiss(self, stimulus_id: str, may: Callable[[Stimulus], bool]) -> Stimulus | None:
        """End an item that nobody was given yet; None if it is too late for that.

        `may` tells whether it is the caller's; if not, it is not there.
        """
        rows = await self._store.read(_OF_IDS, ids=[stimulus_id])
        if not rows or not may(STIMULI.read(rows[0])):
            raise NotFound("id", f"no item {stimulus_id[:80]!r} in the inbox")
        key = STIMULI.read(rows[0]).session_key

        def write(tx: Tx) -> Stimulus | None:
            item = stimuli.get(tx, stimulus_id)
            if item is None or item.state not in WAITING or item.preemptions:
                return None
            self._settlement.settle(tx, [stimulus_id], State.CANCELLED, "dismissed")
            lane_rows.touch(tx, key)
            return stimuli.get(tx, stimulus_id)

        return await self._store.transact(write, locks=[lane_rows.lock(key)])


def _timer_id(stimulus_id: str) -> str:
    return f"{TIMER_KIND} {stimulus_id}"


def _found(tx: Tx, ids: Sequence[str]) -> list[Stimulus]:
    return [STIMULI.read(row) for row in tx.all(_OF_IDS, ids=list(ids))]
