"""One end: the only writer of a turn's terminal state, and of all that follows from it."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from wakeful.broker import lane_rows, stimuli
from wakeful.broker.settlement import Settlement
from wakeful.bus.bus import Bus
from wakeful.gate import throttle
from wakeful.gate.budgets import Budgets
from wakeful.gate.money import dollars
from wakeful.outbox import outbox
from wakeful.outbox.outbox import Along
from wakeful.prompts.silence import spoken
from wakeful.store.database import Tx
from wakeful.transcript import sessions
from wakeful.turn import activity
from wakeful.turn.sizing import is_unheard
from wakeful.turns import asks, tool_calls, turns
from wakeful.turns.asks import AskEnd, AskState
from wakeful.turns.tool_calls import CallState
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.stimulus import State

# What becomes of the stimuli of a turn; a preempted one gives them back instead.
_SETTLES: dict[TurnState, tuple[State, str | None]] = {
    TurnState.DONE: (State.DONE, None),
    TurnState.FAILED: (State.FAILED, None),
    TurnState.TIMED_OUT: (State.FAILED, "timed-out"),
    TurnState.STOPPED: (State.CANCELLED, "stop"),
    TurnState.SUPERSEDED: (State.CANCELLED, "superseded"),
}


# Called in the transaction that ends a turn: what else ends with it is written there.
OnEnded = Callable[[Tx, Turn, End], None]


class Ending:
    """Ends turns."""

    def __init__(
        self,
        bus: Bus,
        ids: Ids,
        settlement: Settlement,
        budgets: Budgets,
        hooks: Sequence[OnEnded] = (),
    ) -> None:
        self._budgets = budgets
        self._bus = bus
        self._ids = ids
        self._settlement = settlement
        self._hooks = tuple(hooks)

    def end_turn(self, tx: Tx, turn: Turn, how: End, epoch: int) -> None:
        """Write the terminal state, settle the stimuli, file the reply, free the lane.

        What was asked and begun, and has no answer, is closed with it. Does nothing to a turn that
        has ended. The caller holds the lane's lock.
        """
        message = activity.message_of(turn, how)
        if not turns.end(tx, turn, how, is_news=message is not None and message.is_news):
            return
        why = how.error or how.reason or how.state.value
        left = AskEnd(state=AskState.FAILED, error=why, is_estimate=True, costs_all=True)
        fail_asks(tx, self._budgets, turn, left)
        for call_id, name in tool_calls.abandon(tx, turn.id):
            lost = {"call_id": call_id, "name": name, "phase": CallState.UNKNOWN.value}
            self._bus.publish(tx, "turn.tool", turn.session_key, turn_id=turn.id, **lost)
        settled = self._settle(tx, turn, how)
        if how.reply:
            self._deliver(tx, turn, how.reply, how.usage_line)
        lane_rows.release(tx, turn.session_key, resume_at=None, keeps_turn=False)
        data: dict[str, Any] = {
            "state": how.state.value,
            "reply": how.reply,
            "epoch": epoch,
            "stimuli": settled,
        }
        if how.usage_line is not None:
            data["usage_line"] = how.usage_line
        if how.error_kind is not None:
            data["error"] = {"kind": how.error_kind, "message": how.error}
        self._bus.publish(tx, "turn.finished", turn.session_key, turn_id=turn.id, **data)
        if message is not None:
            activity.publish(tx, self._bus, turn, how, message)
        for hook in self._hooks:
            hook(tx, turn, how)

    def _settle(self, tx: Tx, turn: Turn, how: End) -> list[str]:
        if how.state is TurnState.PREEMPTED:
            given_back = stimuli.give_back(tx, turn.id)
            for stimulus_id in given_back:
                self._bus.publish(
                    tx,
                    "stimulus.pending",
                    turn.session_key,
                    turn_id=turn.id,
                    stimulus_id=stimulus_id,
                    reason="interrupted",
                )
            return given_back
        state, reason = _SETTLES[how.state]
        reason = how.reason or reason or how.error_kind
        return self._settlement.settle_turn(tx, turn.id, turn.opened_by, state, reason)

    def _deliver(self, tx: Tx, turn: Turn, reply: str, usage_line: str | None) -> None:
        """File the reply for its route, unless it is silence or was sent in this turn already."""
        route, said = turn.route, spoken(reply)
        if route is None or not route.is_sent_to or said.is_silent or is_unheard(turn):
            return
        if not sessions.may_send(tx, turn.session_key):
            return
        if outbox.was_sent_in_turn(tx, turn.id, route.target, said.text):
            return
        rules = self._budgets.throttle(turn.agent_id)
        along = Along(reply_to=_answered(tx, turn), usage_line=usage_line)
        delivery = outbox.file(
            tx,
            self._ids.new("dl"),
            route,
            said.text,
            session_key=turn.session_key,
            turn_id=turn.id,
            along=throttle.paced(tx, rules, turn, route.target, along, is_reply=True),
        )
        kind, data = outbox.filed_event(delivery)
        self._bus.publish(tx, kind, turn.session_key, turn_id=turn.id, **data)


def fail_asks(tx: Tx, budgets: Budgets, turn: Turn, how: AskEnd, step: int | None = None) -> Turn:
    """Settle the questions that a turn has no answer to, and count what they may have cost."""
    for settled in asks.settle(tx, turn.id, step, how):
        budgets.settle(tx, turn.agent_id, settled)
        spent = dollars(settled.cost or 0)
        turns.note_usage(tx, turn.id, Usage(cost=spent))
        turn = replace(turn, cost=turn.cost + spent, reserved=0)
    return turn


def _answered(tx: Tx, turn: Turn) -> str | None:
    """Return what the door calls the message that opened a turn."""
    opener = stimuli.get(tx, turn.opened_by)
    return None if opener is None else opener.message_id
