"""Activity: what people are told of a turn that ended where unprompted output lands."""

from typing import cast

from wakeful.bus.bus import Bus
from wakeful.prompts.silence import spoken
from wakeful.store.database import Tx
from wakeful.turn.sizing import is_unheard
from wakeful.turns.turns import End, Turn, TurnState
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record

_WENT_WRONG = frozenset({TurnState.FAILED, TurnState.TIMED_OUT})


class ActivityMessage(Record):
    """The end of a turn in an Activity session."""

    text: str
    is_news: bool  # people should read it


def message_of(turn: Turn, how: End) -> ActivityMessage | None:
    """Return what is said of the end of a turn; None: it has a conversation of its own."""
    if turn.session_key != keys.activity(turn.agent_id):
        return None
    if how.state in _WENT_WRONG:
        is_news = _kind(turn) is None or not is_unheard(turn)
        return ActivityMessage(text=how.error or how.reply or "", is_news=is_news)
    said = spoken(how.reply or "")
    is_news = how.state is TurnState.DONE and not said.is_silent and not is_unheard(turn)
    return ActivityMessage(text="" if said.is_silent else said.text, is_news=is_news)


def publish(tx: Tx, bus: Bus, turn: Turn, how: End, message: ActivityMessage) -> None:
    """Show those who watch Activity what ended there, whatever came of it."""
    kind = _kind(turn)
    bus.publish(
        tx,
        "activity.message",
        turn.session_key,
        turn_id=turn.id,
        agent_id=turn.agent_id,
        origin=None if kind is None else kind.origin.value,
        source=turn.source,
        state=how.state.value,
        text=message.text,
    )


def _kind(turn: Turn) -> Kind | None:
    """Return the kind of a turn; None: its row cannot be read whole, and it ends all the same."""
    return cast("Kind | None", turn.kind)
