"""The end of a sleep that something disturbs, in the transaction of what disturbs it."""

from wakeful.broker import stimuli
from wakeful.bus.bus import Bus
from wakeful.sleeps import sleeps
from wakeful.sleeps.sleeps import Sleep
from wakeful.store.database import Tx


def interrupt(tx: Tx, bus: Bus, sleep: Sleep, session_key: str) -> None:
    """End a sleep and let go on what waited for its end."""
    sleeps.end(tx, sleep.owner)
    slept_ms = tx.now - sleep.created_at
    bus.publish(tx, "sleep.woken", session_key, reason="interrupted", slept_ms=slept_ms)
    for stimulus_id in stimuli.unpark(tx, session_key, "asleep"):
        bus.publish(tx, "stimulus.pending", session_key, stimulus_id=stimulus_id, reason="woken")
