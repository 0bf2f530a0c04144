"""Poison: what cannot even be opened is given up, visibly, so that its lane goes on."""

from wakeful.broker import lanes, stimuli
from wakeful.store.database import Tx
from wakeful.turn.sheet import Pen
from wakeful.turns import turns
from wakeful.turns.turns import End, TurnState
from wakeful.vocabulary.stimulus import State

POISONED = "poisoned"
SENTENCE = "This could not be opened, however often it was tried; it will not be tried again."


def give_up(tx: Tx, pen: Pen, session_key: str) -> None:
    """Fail the turn that a lane cannot go on with, or the stimulus that it cannot begin with.

    Touches as little as it can of what may be damaged. The caller holds the lane's lock.
    """
    lane = lanes.get(tx, session_key)
    if lane is None or lane.owner is not None:
        return
    turn = None if lane.turn_id is None else turns.get(tx, lane.turn_id)
    if turn is not None:
        how = End(state=TurnState.FAILED, reply=SENTENCE, error_kind=POISONED, error=SENTENCE)
        pen.ending.end_turn(tx, turn, how, lane.epoch)
        return
    head = stimuli.head_id(tx, session_key)
    if head is not None:
        pen.settlement.settle(tx, [head], State.FAILED, POISONED)
    lanes.touch(tx, session_key)
