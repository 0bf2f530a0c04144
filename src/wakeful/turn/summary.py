"""The summary of a conversation: what is read, what is asked, and whether the answer will do."""

import asyncio
from collections.abc import Awaitable, Callable

from wakeful.broker import stimuli
from wakeful.models.model import Request
from wakeful.models.windows import tokens_of_request
from wakeful.prompts import compaction as template
from wakeful.prompts.fence import fenced
from wakeful.store.database import Store, Tx
from wakeful.transcript import entries, sessions
from wakeful.transcript.branches import Segment
from wakeful.transcript.sessions import Session
from wakeful.turn.asking import Show
from wakeful.turn.attempt import TurnAttempt
from wakeful.turn.compaction import PreparedCompaction, plan
from wakeful.turn.context import rest_of
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
) -> tuple[PreparedCompaction, AssistantMessage] | None:
    """Ask for the summary that a compaction needs; None if there is nothing to compact.

    An answer that cannot take the place of what it stands for is Garbled. A question that is too
    long for the model is a ContextOverflow: the next one is made from a smaller part. `most` is
    what was reserved for it.
    """
    turn, space = attempt.turn, room(attempt.agent, attempt.refused)
    prepared = await prepare(store, attempt)
    if prepared is None:
        return None
    made, wish = prepared.plan, await store.transact(lambda tx: _wish(tx, turn))
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
    return prepared, reply


async def prepare(
    store: Store, attempt: TurnAttempt, *, is_asked: bool = True
) -> PreparedCompaction | None:
    """Return how to make room in a conversation; without `is_asked`, in one that is left out.

    A long one takes seconds to read and to weigh: the writer is spared that, and the event loop.
    """
    turn, space = attempt.turn, room(attempt.agent, attempt.refused)
    session, segments, rescues = await store.transact(lambda tx: _path_of(tx, turn))
    rows = await entries.read_path(store, segments)

    def prepared() -> PreparedCompaction | None:
        path = entries.decoded(rows)
        made = plan(
            path,
            space,
            open_turn_id=turn.id,
            is_needed=not is_compaction(turn) or is_unheard(turn),
            rescues=rescues,
            is_asked=is_asked,
        )
        if made is None:
            return None
        rest = rest_of(session.branch, path, made.first_kept_depth, turn.id)
        return PreparedCompaction(made, rest)

    return await asyncio.to_thread(prepared)


def _path_of(tx: Tx, turn: Turn) -> tuple[Session, list[Segment], int]:
    """Return the session, where the entries lie that its model sees, and how often it refused."""
    session = sessions.get(tx, turn.session_key)
    assert session is not None
    segments = entries.segments_of(tx, session, session.context_from - 1)
    return session, segments, asks.rescues(tx, turn.id)


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


def _wish(tx: Tx, turn: Turn) -> str:
    if not is_compaction(turn):
        return ""
    stimulus = stimuli.get(tx, turn.opened_by)
    if stimulus is None or stimulus.text == NO_WISH:
        return ""
    if stimulus.trust is Trust.EXTERNAL:
        return fenced(stimulus.text, source=_OUTSIDER, entry_id=stimulus.id)
    return stimulus.text
