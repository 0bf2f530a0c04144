"""Poison: what stops the process, or cannot even be opened, is given up, visibly.

A turn that was open at two unclean stops is a suspect. Suspects go on one at a time, beside
everything else, so that the next unclean stop tells who causes it: it is charged to the suspect
that ran. What ran beside it may become a suspect by that, and never more.
"""

from wakeful.broker import lane_rows, stimuli
from wakeful.broker.lane_rows import Lane
from wakeful.store.database import Tx
from wakeful.turn.commit import TurnDeps
from wakeful.turns import turns
from wakeful.turns.turns import SUSPECT_STOPS, End, Interrupt, TurnState
from wakeful.vocabulary.errors import UnreadableRow
from wakeful.vocabulary.stimulus import State

LOOKED_AT = 200  # stimuli, as many as one opening looks at
POISONED = "poisoned"
SENTENCE = "This could not be opened, however often it was tried; it will not be tried again."
LOOK_AGAIN_MS = 1_000  # while a suspect waits for another one

_RUNNING_SUSPECT = (
    "SELECT turns.id FROM lanes JOIN turns ON turns.id = lanes.turn_id "
    "WHERE lanes.owner IS NOT NULL AND turns.attempts > :stops LIMIT 1"
)


def is_suspect(stops: int, limit: int) -> bool:
    """Tell whether a turn may be what stops the process; one that will be given up is not asked."""
    return SUSPECT_STOPS <= stops < limit


def stops_after(attempts: int, limit: int, *, beside_suspect: bool) -> int:
    """Return how many unclean stops a turn is charged with that was running at another one.

    Beside a suspect it is never charged so much that it would be given up for it.
    """
    return min(attempts, SUSPECT_STOPS, limit - 1) if beside_suspect else attempts


def running_suspect(tx: Tx) -> str | None:
    """Return the suspect that is running, or was when the process stopped."""
    row = tx.one(_RUNNING_SUSPECT, stops=SUSPECT_STOPS)
    return None if row is None else row[0]


def must_wait(tx: Tx, lane: Lane, limit: int) -> bool:
    """Hold a suspect back while another one runs; what was told to end may end at once.

    The caller holds the lane's lock.
    """
    turn = None if lane.turn_id is None else turns.get(tx, lane.turn_id)
    if turn is None or turn.interrupt is not Interrupt.NONE:
        return False
    if not is_suspect(turn.attempts, limit) or running_suspect(tx) is None:
        return False
    lane_rows.release(tx, lane.session_key, resume_at=tx.now + LOOK_AGAIN_MS, keeps_turn=True)
    return True


def give_up(tx: Tx, deps: TurnDeps, session_key: str, owner: str) -> None:
    """Fail the turn that a lane cannot go on with, or the stimulus that it cannot begin with.

    Touches as little as it can of what may be damaged. The caller holds the lane's lock.
    """
    try:
        lane = lane_rows.get(tx, session_key)
    except UnreadableRow:
        lane_rows.forget_overflow(tx, session_key)  # nothing else of it can be unreadable
        return
    if lane is None or lane.owner not in (None, owner):
        return
    if lane.owner is not None:  # by a task of ours that has ended: no lane has two
        lane_rows.release(tx, session_key, resume_at=tx.now, keeps_turn=True)
    turn = None if lane.turn_id is None else turns.get_partly(tx, lane.turn_id)
    if turn is not None:
        how = End(state=TurnState.FAILED, reply=SENTENCE, error_kind=POISONED, error=SENTENCE)
        deps.ending.end_turn(tx, turn, how, lane.epoch)
        return
    deps.settlement.settle(tx, _to_blame(tx, session_key), State.FAILED, POISONED)
    lane_rows.touch(tx, session_key)


def _to_blame(tx: Tx, session_key: str) -> list[str]:
    """Return the stimuli that cannot be read; if there are none, the one that is first."""
    if found := stimuli.unreadable(tx, session_key, LOOKED_AT):
        return found
    head = stimuli.head_id(tx, session_key)
    return [] if head is None else [head]
