"""Ask a model one question, wait for its whole answer, and know when to ask again."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from wakeful.models.model import (
    LONGEST_REPLY,
    Delta,
    Model,
    Reply,
    Request,
    Restart,
    as_message,
    asked,
)
from wakeful.vocabulary.apart import Apart
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Garbled, Transient
from wakeful.vocabulary.message import AssistantMessage, ToolCall
from wakeful.vocabulary.text import indexable

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0
LONGEST_RETRY_AFTER_S = 86_400.0  # whoever names a later time is asked after a day
LEAST_PART = 0.5  # of a wait, so that those who failed together do not come back together

Show = Callable[[Delta | Restart], None]


async def answer(
    model: Model,
    request: Request,
    show: Show,
    *,
    clock: Clock,
    abandoned: Callable[[], object],
) -> AssistantMessage:
    """Return the answer as the transcript keeps it, having shown its pieces as they came.

    A cancelled question closes its connection, and so does one whose time is over; a model that
    goes on all the same is abandoned.
    """
    apart = Apart(
        _answer(model, request, show),
        name=f"model {model.name}",
        clock=clock,
        keeps_own_limits=True,
    )
    try:
        return await apart.result()
    finally:
        if apart.is_abandoned:
            abandoned()


def next_try(error: Transient, retries: int, limit: int, now: int, random: Random) -> int | None:
    """Return when to try again, or None if it has been tried often enough."""
    if retries >= limit:
        return None
    wait_s = min(FIRST_WAIT_S * 2**retries, LONGEST_WAIT_S) * random.uniform(LEAST_PART, 1)
    if error.retry_after_s is not None:
        wait_s = max(wait_s, min(error.retry_after_s, LONGEST_RETRY_AFTER_S))
    return now + round(wait_s * 1000)


async def _answer(model: Model, request: Request, show: Show) -> AssistantMessage:
    size = 0
    reply: Reply | None = None
    async with asked(model, request) as pieces:
        async for piece in pieces:
            if reply is not None:
                raise Garbled("the model went on after its final reply")
            match piece:
                case Delta(text=text):
                    size += len(text)
                    if size > LONGEST_REPLY:
                        raise Garbled("the model's answer does not end")
                    show(piece)
                case Restart():
                    size = 0
                    show(piece)
                case Reply():
                    reply = piece
    if reply is None:
        raise Garbled("the model's answer broke off")
    return _with_indexable_ids(as_message(reply))


def _with_indexable_ids(message: AssistantMessage) -> AssistantMessage:
    """Return an answer whose calls have ids that any database can look up; the model sees them."""
    if all(indexable(call.id) is call.id for call in message.tool_calls):
        return message
    content = tuple(
        replace(block, id=indexable(block.id)) if isinstance(block, ToolCall) else block
        for block in message.content
    )
    return replace(message, content=content)
