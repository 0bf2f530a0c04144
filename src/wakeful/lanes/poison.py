"""Poison: what cannot even be opened is given up, visibly, so that its lane goes on."""

from wakeful.broker import lanes, stimuli
from wakeful.store.database import Tx
from wakeful.turn.sheet import Pen
from wakeful.turns import turns
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.errors import UnreadableRow
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.stimulus import State

LOOKED_AT = 200  # stimuli, as many as one opening looks at
POISONED = "poisoned"
SENTENCE = "This could not be opened, however often it was tried; it will not be tried again."


def give_up(tx: Tx, pen: Pen, session_key: str) -> None:
    """Fail the turn that a lane cannot go on with, or the stimulus that it cannot begin with.

    Touches as little as it can of what may be damaged. The caller holds the lane's lock.
    """
    try:
        lane = lanes.get(tx, session_key)
    except UnreadableRow:
        lanes.forget_overflow(tx, session_key)  # nothing else of it can be unreadable
        return
    if lane is None or lane.owner is not None:
        return
    turn = None if lane.turn_id is None else turns.get_partly(tx, lane.turn_id)
    if turn is not None:
        how = End(state=TurnState.FAILED, reply=SENTENCE, error_kind=POISONED, error=SENTENCE)
        pen.ending.end_turn(tx, turn, how, lane.epoch)
        return
    for stimulus_id in _to_blame(tx, session_key):
        stimuli.move(tx, [stimulus_id], State.FAILED, POISONED)
        pen.bus.publish(
            tx,
            Event(
                kind="stimulus.failed",
                session_key=session_key,
                stimulus_id=stimulus_id,
                data={"reason": POISONED},
            ),
        )
    lanes.touch(tx, session_key)


def _to_blame(tx: Tx, session_key: str) -> list[str]:
    """Return the stimuli that cannot be read; if there are none, the one that is first."""
    if found := stimuli.unreadable(tx, session_key, LOOKED_AT):
        return found
    head = stimuli.head_id(tx, session_key)
    return [] if head is None else [head]
