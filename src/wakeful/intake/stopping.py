"""What was said before a stop: no turn takes it any more, and it is cancelled in small steps."""

from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settlement
from wakeful.store.database import Tx
from wakeful.vocabulary.stimulus import State

STEP = 500  # stimuli that one write cancels


def cancel_some(tx: Tx, settlement: Settlement, session_key: str) -> list[str]:
    """Cancel some of what people had said before a stop; none are left when this returns none.

    The caller holds the lane's lock.
    """
    lane = lane_rows.get(tx, session_key)
    if lane is None or lane.stopped_seq == 0:
        return []
    said = stimuli.said(tx, session_key, lane.stopped_seq, STEP)
    settlement.settle(tx, said, State.CANCELLED, "stop")
    if len(said) < STEP:
        lane_rows.forget_stop(tx, session_key)
    lane_rows.touch(tx, session_key)
    return said
