"""Ask the model of a turn: what it is shown, its words as they come, and when to ask again."""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from msgspec.structs import replace

from wakeful.bus.bus import Bus
from wakeful.gate.money import Grant
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
from wakeful.models.sight import sight_of
from wakeful.store.database import Store
from wakeful.telemetry.metrics import Metrics
from wakeful.turn.attempt import Asking, TurnAttempt
from wakeful.turn.jobs import with_prompt
from wakeful.turn.showing import Showing, attached_to
from wakeful.turn.sizing import is_flush, is_light_heartbeat
from wakeful.vocabulary.apart import Apart
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.errors import Garbled, Permanent, Transient
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.message import AssistantMessage, Message, ToolCall
from wakeful.vocabulary.text import indexable

Show = Callable[[Delta | Restart], None]

NO_CONTENTS: Mapping[str, str] = {}

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 300.0
LONGEST_RETRY_AFTER_S = 86_400.0  # whoever names a later time is asked after a day
LEAST_PART = 0.5  # of a wait, so that those who failed together do not come back together


class ModelAsker:
    """Asks the models of turns."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._metrics = metrics

    async def ask(self, attempt: TurnAttempt, grant: Grant) -> AssistantMessage:
        """Ask the model and show its words as they come."""
        agent, turn = attempt.agent, attempt.turn
        await agent.toolbox.settled()
        if attempt.system is None or attempt.system[0] is not turn.trust:
            flush = agent.config.compaction.memory_flush
            more = flush.system_prompt if is_flush(turn) else ""
            prompt = await agent.system(turn.trust, is_light=is_light_heartbeat(turn))
            prompt = "\n\n".join(filter(None, (prompt, more)))
            attempt.system = turn.trust, prompt
            attempt.can_remember = await agent.can_remember()
        messages, contents = await self._shown(attempt)
        request = Request(
            system=attempt.system[1],
            messages=tuple(messages),
            contents=contents,
            tools=agent.toolbox.specs(turn.trust, turn.granted),
            max_tokens=grant.max_tokens,
            thinking=agent.config.thinking,
            turn_id=turn.id,
            step=turn.step,
        )
        if not is_light_heartbeat(turn):  # what it reads says nothing of what others read
            agent.note_request(request)
        attempt.partial.clear()

        def show(piece: Delta | Restart) -> None:
            if isinstance(piece, Delta):
                attempt.partial.append(piece.text)
                self._show(attempt, piece.text)
            else:
                attempt.partial.clear()
                self._show(attempt, "", restarted=piece.model, failure=piece.failure)

        with self._bus.words.written(turn.id, attempt.partial):
            return await self.answer(attempt, request, show, grant)

    async def _shown(self, attempt: TurnAttempt) -> tuple[Sequence[Message], Mapping[str, str]]:
        """Return the conversation as the model is shown it, with what is attached to it."""
        context, run = attempt.context, attempt.run
        messages = context.messages if run is None else with_prompt(context.messages, run)
        if not any(attached_to(message) for message in messages):
            return messages, NO_CONTENTS
        attempt.showing = attempt.showing or Showing(self._store)
        sight = sight_of(attempt.agent.model)
        return await attempt.showing.show(messages, context.refused, sight)

    async def answer(
        self, attempt: TurnAttempt, request: Request, show: Show, grant: Grant
    ) -> AssistantMessage:
        """Ask, and keep in mind what an answer may have cost that breaks off."""
        asking = attempt.asking = Asking(grant=grant)

        def seen(piece: Delta | Restart) -> None:
            if isinstance(piece, Delta):
                asking.seen += len(piece.text)
            else:
                asking.seen, asking.lost = 0, asking.lost + piece.lost
            show(piece)

        try:
            return await answer(
                attempt.agent.model,
                request,
                seen,
                clock=self._clock,
                abandoned=lambda: self._metrics.abandoned("model"),
            )
        except (Transient, Permanent) as error:
            asking.is_free = error.is_free
            raise

    def _show(self, attempt: TurnAttempt, text: str, **more: object) -> None:
        if self._bus.is_watched(attempt.turn.session_key):
            self._bus.show(
                Event(
                    kind="turn.delta",
                    session_key=attempt.turn.session_key,
                    turn_id=attempt.turn.id,
                    data={"text": text, "step": attempt.turn.step, **more},
                )
            )


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


def next_try(error: Transient, retries: int, limit: int, now: int, random: Random) -> int | None:
    """Return when to try again, or None if it has been tried often enough."""
    if retries >= limit:
        return None
    wait_s = min(FIRST_WAIT_S * 2**retries, LONGEST_WAIT_S) * random.uniform(LEAST_PART, 1)
    if error.retry_after_s is not None:
        wait_s = max(wait_s, min(error.retry_after_s, LONGEST_RETRY_AFTER_S))
    return now + round(wait_s * 1000)
