"""The summary of a conversation: what is read, what is asked, and whether the answer will do."""

from collections.abc import Awaitable, Callable

from wakeful.broker import stimuli
from wakeful.models.model import Request
from wakeful.prompts import compaction as template
from wakeful.prompts.fence import fenced
from wakeful.store.database import Store, Tx
from wakeful.transcript import entries, sessions
from wakeful.turn.asking import Show
from wakeful.turn.attempt import TurnAttempt
from wakeful.turn.compaction import LONGEST_SHARE, CompactionPlan, plan
from wakeful.turn.sizing import is_compaction, is_unheard, room
from wakeful.turn.tokens import CHARACTERS_PER_TOKEN
from wakeful.vocabulary.compacting import NO_WISH
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import Garbled
from wakeful.vocabulary.message import AssistantMessage, UserMessage
from wakeful.vocabulary.stimulus import Trust

_OUTSIDER = "who asked for the summary"


async def summarise(
    store: Store, attempt: TurnAttempt, ask: Callable[[Request, Show], Awaitable[AssistantMessage]]
) -> tuple[CompactionPlan, AssistantMessage] | None:
    """Ask for the summary that a compaction needs; None if there is nothing to compact.

    An answer that cannot take the place of what it stands for is Garbled.
    """
    turn, space = attempt.turn, room(attempt.agent)
    path, wish = await store.transact(lambda tx: _read(tx, attempt))
    is_wish = is_compaction(turn) and not is_unheard(turn)
    made = plan(path, space, open_turn_id=turn.id, is_needed=not is_wish)
    if made is None:
        return None
    longest = space.is_used_up_at * CHARACTERS_PER_TOKEN // LONGEST_SHARE
    text = template.question(
        made.compacted, made.turn, previous=made.previous, wish=wish, longest=longest
    )
    request = Request(
        system=template.SYSTEM,
        messages=(UserMessage(text=text),),
        max_tokens=space.reserve * 4 // 5,
        turn_id=turn.id,
        step=turn.step,
        purpose="summary",
    )
    reply = await ask(request, lambda _: None)
    fault = template.fault(
        reply.text,
        is_split=bool(made.turn),
        input_size=len(text),
        most=space.reserve * CHARACTERS_PER_TOKEN,
    )
    if fault is not None:
        raise Garbled(fault)
    return made, reply


def _read(tx: Tx, attempt: TurnAttempt) -> tuple[list[Entry], str]:
    """Return what the model sees of a conversation, and what somebody wishes of its summary."""
    session = sessions.get(tx, attempt.turn.session_key)
    assert session is not None
    path = entries.path(tx, session, session.context_from - 1)
    if not is_compaction(attempt.turn):
        return path, ""
    stimulus = stimuli.get(tx, attempt.turn.opened_by)
    if stimulus is None or stimulus.text == NO_WISH:
        return path, ""
    if stimulus.trust is Trust.EXTERNAL:
        return path, fenced(stimulus.text, source=_OUTSIDER, entry_id=stimulus.id)
    return path, stimulus.text
