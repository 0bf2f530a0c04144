"""Messages: send one, wait for its answer, or watch it come."""

from collections.abc import Awaitable
from typing import Annotated, TypeVar, assert_never

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from wakeful.doors import messaging, stimulus_stream
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Link, Nothing, invalid
from wakeful.doors.http.forms import read_form
from wakeful.doors.http.open_streams import OpenStreams
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.shapes import (
    Answered,
    ReceiptShape,
    TurnEnd,
    answered,
    shaped,
    time_or_none,
)
from wakeful.doors.http.sse import MEDIA_TYPE, EventStream, frame
from wakeful.doors.messaging import LONGEST_NAME, Forbidden, Message, TooLarge
from wakeful.doors.stimulus_stream import (
    ModelWaits,
    PutOff,
    StimulusStream,
    StoryDelta,
    StoryItem,
    StoryRestart,
    ToolPhase,
)
from wakeful.intake.dedup import KeyReused
from wakeful.services import Services
from wakeful.turns.turns import Turn
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, Mode, QueueOverrides
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import Attachment, Receipt, Stimulus

LARGEST_MESSAGE = 15 * 1024 * 1024  # 10 MiB in base64, and the text
LONGEST_WAIT_S = 120

IDEMPOTENCY_KEY = "Idempotency-Key"
_HEADERS = {
    IDEMPOTENCY_KEY: "Repeating a request with the same key within a day repeats its first answer."
}

_LINKS = (
    Link("GET", "/api/stimuli/{id}", "id", "/stimulus_id"),
    Link("DELETE", "/api/stimuli/{id}", "id", "/stimulus_id"),
    Link("GET", "/api/sessions/{key}", "key", "/session_key"),
    Link("GET", "/api/sessions/{key}/entries", "key", "/session_key"),
    Link("POST", "/api/sessions/{key}/stop", "key", "/session_key"),
)

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
T = TypeVar("T")


class MessageBody(Given):
    """A message to an agent."""

    exact = ("source", "dedup_key")

    text: str = ""
    priority: str = "next"
    mode: Mode | None = None
    source: Name | None = None
    dedup_key: Name | None = None
    is_mention: bool | None = None  # in a room, whether the agent is meant; null: by its name
    attachments: tuple[Attachment, ...] = ()


class WaitQuery(Given):
    """How many seconds to wait for the turn that takes the message."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0


class Messages:
    """The hot route of the door, and its streaming twin."""

    def __init__(self, services: Services, streams: OpenStreams) -> None:
        self._services = services
        self._streams = streams

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                method="POST",
                path="/api/sessions/{key}/messages",
                scope="send",
                summary="Send a message; the receipt leaves when it is on disk",
                answer=self.send,
                query=WaitQuery,
                body=MessageBody,
                read_form=_read_form,
                headers=_HEADERS,
                returns={202: ReceiptShape, 200: Answered},
                links=_LINKS,
                largest_body=LARGEST_MESSAGE,
            ),
            Endpoint(
                method="POST",
                path="/api/sessions/{key}/stream",
                scope="send",
                summary="Send a message and watch its answer: receipt, delta, tool, turn",
                answer=self.stream,
                body=MessageBody,
                read_form=_read_form,
                headers=_HEADERS,
                returns={200: MEDIA_TYPE},
                largest_body=LARGEST_MESSAGE,
                streams=True,
            ),
        ]

    async def send(
        self, call: Call[WaitQuery, MessageBody]
    ) -> tuple[int, ReceiptShape] | tuple[int, Answered]:
        receipt = await answer_or_problem(
            messaging.send(self._services, call.principal, call.path["key"], _message(call))
        )
        turn = await self._wait(call, receipt)
        if turn is None and receipt.reply is None:
            return 202, shaped(ReceiptShape, receipt)
        return 200, answered(receipt, turn)

    async def _wait(self, call: Call[WaitQuery, MessageBody], receipt: Receipt) -> Turn | None:
        """Return the turn that took a message, if it ends while the sender wants to wait."""
        if not call.query.wait:
            return None
        try:
            async with self._streams.wait(call.principal):
                return await self._services.views.turns.wait_for_stimulus(receipt, call.query.wait)
        except (TimeoutError, Problem):
            return None  # the server stops, or the token went: the message is on disk all the same

    async def stream(self, call: Call[Nothing, MessageBody]) -> Response:
        self._streams.check_room(call.principal)
        stream = await answer_or_problem(
            stimulus_stream.send(self._services, call.principal, call.path["key"], _message(call))
        )
        clock = self._services.views.clock
        return EventStream(StimulusFrames(stream), call.principal, self._streams, clock)


class StimulusFrames:
    """The story of a stimulus as server-sent events."""

    def __init__(self, stream: StimulusStream) -> None:
        self._stream = stream
        self.nudge = stream.nudge
        self.close = stream.aclose

    async def next(self) -> bytes | None:
        items = await self._stream.batch()
        return None if items is None else b"".join(map(_frame, items))


def _frame(item: StoryItem) -> bytes:
    match item:
        case Receipt():
            is_command = item.reply is not None
            return frame("receipt", answered(item) if is_command else shaped(ReceiptShape, item))
        case StoryDelta():
            return frame("delta", item)
        case StoryRestart():
            return frame("restart", item)
        case ModelWaits():
            return frame("waiting", {"until": time_or_none(item.until), "error": item.error})
        case PutOff():
            look_at = time_or_none(item.look_at)
            return frame(
                "put_off", {"state": item.state, "reason": item.reason, "look_at": look_at}
            )
        case ToolPhase():
            return frame("tool", item)
        case Turn():
            return frame("turn", shaped(TurnEnd, item))
        case Stimulus():
            end = {"id": item.id, "state": item.state, "reason": item.state_reason}
            return frame("stimulus", end)
        case _:
            assert_never(item)


async def answer_or_problem(saying: Awaitable[T]) -> T:
    """Return what came of a message, or why it was refused, in the words of this door."""
    try:
        return await saying
    except KeyReused:
        raise Problem("conflict", f"this {IDEMPOTENCY_KEY} was used with another body") from None
    except Forbidden as error:
        raise Problem("forbidden", str(error)) from None
    except TooLarge as error:
        raise Problem("too-large", str(error)) from None


def _message(call: Call[WaitQuery, MessageBody] | Call[Nothing, MessageBody]) -> Message:
    body = call.body
    return Message(
        text=body.text,
        priority=body.priority,
        queue=NO_OVERRIDES if body.mode is None else QueueOverrides(mode=body.mode),
        source=body.source,
        dedup_key=body.dedup_key,
        idempotency_key=call.request.headers.get(IDEMPOTENCY_KEY),
        attachments=body.attachments,
        route=Route(door="http"),
        is_mention=body.is_mention,
    )


async def _read_form(request: Request) -> MessageBody:
    """Read a message whose attachments are the files of a form."""
    fields, files = await read_form(request)
    if "attachments" in fields:
        raise InvalidInput("attachments", "must be files")
    try:
        body = msgspec.convert(fields, MessageBody, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(error, "body") from None
    return msgspec.structs.replace(body, attachments=files)
