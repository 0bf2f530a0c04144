"""The summary of a conversation: what is read, what is asked, and whether the answer will do."""

from collections.abc import Awaitable, Callable

from wakeful.broker import stimuli
from wakeful.models.model import Request
from wakeful.models.windows import tokens_of_request
from wakeful.prompts import compaction as template
from wakeful.prompts.fence import fenced
from wakeful.store.database import Store, Tx
from wakeful.transcript import entries, sessions
from wakeful.turn.asking import Show
from wakeful.turn.attempt import TurnAttempt
from wakeful.turn.compaction import CompactionPlan, Room, plan
from wakeful.turn.sizing import is_compaction, is_unheard, room, summary_tokens
from wakeful.turns import asks
from wakeful.turns.turns import Turn
from wakeful.vocabulary.compacting import NO_WISH
from wakeful.vocabulary.errors import ContextOverflow, Garbled, Permanent
from wakeful.vocabulary.message import AssistantMessage, UserMessage
from wakeful.vocabulary.stimulus import Trust
from wakeful.vocabulary.text import shortened
from wakeful.vocabulary.tokens import CHARACTERS_PER_TOKEN

AskModel = Callable[[Request, Show], Awaitable[AssistantMessage]]

_OUTSIDER = "who asked for the summary"


class TooSmall(Permanent):
    """Not even a small part of the conversation fits the model."""


async def summarise(
    store: Store, attempt: TurnAttempt, ask: AskModel, most: int | None
) -> tuple[CompactionPlan, AssistantMessage] | None:
    """Ask for the summary that a compaction needs; None if there is nothing to compact.

    An answer that cannot take the place of what it stands for is Garbled. A question that is too
    long for the model is a ContextOverflow: the next one is made from a smaller part. `most` is
    what was reserved for it.
    """
    turn, space = attempt.turn, room(attempt.agent, attempt.refused)
    made, wish = await store.transact(lambda tx: _planned(tx, attempt, space))
    if made is None:
        return None
    known = made.previous
    text = template.question(
        made.compacted,
        made.turn,
        previous=known and shortened(known, space.most_known * CHARACTERS_PER_TOKEN),
        wish=wish,
        longest=made.longest * CHARACTERS_PER_TOKEN,
        most=made.most * CHARACTERS_PER_TOKEN,
    )
    request = Request(
        system=template.SYSTEM,
        messages=(UserMessage(text=text),),
        max_tokens=min(summary_tokens(space), most or summary_tokens(space)),
        turn_id=turn.id,
        step=turn.step,
        purpose="summary",
    )
    reply = await _answered(attempt, request, ask)
    fault = template.fault(
        reply.text,
        is_split=bool(made.turn),
        input_size=len(text),
        most=space.reserve * CHARACTERS_PER_TOKEN,
    )
    if fault is not None:
        raise Garbled(fault)
    return made, reply


async def _answered(attempt: TurnAttempt, request: Request, ask: AskModel) -> AssistantMessage:
    """Ask, unless so much was too long already; remember what was."""
    tokens = tokens_of_request(request)
    if attempt.refused is not None and tokens >= attempt.refused:
        raise TooSmall
    try:
        return await ask(request, lambda _: None)
    except ContextOverflow:
        attempt.refused = tokens
        raise


def what_to_leave_out(tx: Tx, attempt: TurnAttempt) -> CompactionPlan | None:
    """Return how to make room in a conversation that cannot be summed up."""
    return _plan(tx, attempt, room(attempt.agent, attempt.refused), is_asked=False)


def _plan(
    tx: Tx, attempt: TurnAttempt, space: Room, *, is_asked: bool = True
) -> CompactionPlan | None:
    turn = attempt.turn
    session = sessions.get(tx, turn.session_key)
    assert session is not None
    path = entries.path(tx, session, session.context_from - 1)
    is_wish = is_compaction(turn) and not is_unheard(turn)
    return plan(
        path,
        space,
        open_turn_id=turn.id,
        is_needed=not is_wish,
        rescues=asks.rescues(tx, turn.id),
        is_asked=is_asked,
    )


def _planned(tx: Tx, attempt: TurnAttempt, space: Room) -> tuple[CompactionPlan | None, str]:
    """Return what is to be summed up, and what somebody wishes of the summary."""
    return _plan(tx, attempt, space), _wish(tx, attempt.turn)


def _wish(tx: Tx, turn: Turn) -> str:
    if not is_compaction(turn):
        return ""
    stimulus = stimuli.get(tx, turn.opened_by)
    if stimulus is None or stimulus.text == NO_WISH:
        return ""
    if stimulus.trust is Trust.EXTERNAL:
        return fenced(stimulus.text, source=_OUTSIDER, entry_id=stimulus.id)
    return stimulus.text
