"""The end of a sleep, in the transaction of whatever ends it."""

from wakeful.broker import parking
from wakeful.bus.bus import Bus
from wakeful.sleeps import marks, sleeps
from wakeful.sleeps.marks import SleepEdge
from wakeful.sleeps.sleeps import Sleep, WokenBy
from wakeful.store.database import Tx


def end(tx: Tx, bus: Bus, sleep: Sleep, session_key: str, by: WokenBy) -> None:
    """End a sleep and let go on what waited for its end; its timer will find it gone."""
    sleeps.end(tx, sleep.owner)
    tell_woken(tx, bus, sleep, session_key, by)
    for stimulus_id in parking.unpark(tx, session_key, "asleep"):
        bus.publish(tx, "stimulus.pending", session_key, stimulus_id=stimulus_id, reason="woken")


def tell_woken(tx: Tx, bus: Bus, sleep: Sleep, session_key: str, by: WokenBy) -> None:
    marks.add(tx, sleep, SleepEdge.ENDED, by.value)
    bus.publish(
        tx,
        "sleep.woken",
        session_key,
        id=sleep.id,
        reason=by.value,
        slept_ms=max(0, tx.now - sleep.created_at),
        buffered=sleep.buffered,
        dropped=sleep.dropped,
    )
