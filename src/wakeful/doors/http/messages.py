"""Messages: send one, wait for its answer, or watch it come."""

import asyncio
import binascii
from typing import Annotated

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from wakeful.commands.command import Caller, Said
from wakeful.commands.repeats import KeyReused
from wakeful.doors.http.endpoint import Call, Endpoint, Given, Link, Nothing, invalid
from wakeful.doors.http.forms import read_form
from wakeful.doors.http.lasting import Lasting
from wakeful.doors.http.problems import Problem
from wakeful.doors.http.rooms import Rooms
from wakeful.doors.http.shapes import Answered, ReceiptShape, receipt_shape, turn_end
from wakeful.doors.http.sse import MEDIA_TYPE, EventStream, frame
from wakeful.doors.http.stimulus_stream import StimulusSource
from wakeful.intake.draft import parse_priority
from wakeful.turns.turns import Turn
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import Mode
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import OPERATOR, Attachment, Draft, Outcome, Receipt
from wakeful.vocabulary.text import one_line

LARGEST_ATTACHMENTS = 10 * 1024 * 1024
LARGEST_MESSAGE = 15 * 1024 * 1024  # 10 MiB in base64, and the text
LONGEST_WAIT_S = 120
IDEMPOTENT_S = 86_400
DEFAULT_WINDOW_S = 300
LONGEST_NAME = 256

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


class MessageBody(Given):
    """A message to an agent."""

    text: str = ""
    priority: str = "next"
    mode: Mode | None = None
    source: Name | None = None
    dedup_key: Name | None = None
    attachments: tuple[Attachment, ...] = ()


class WaitQuery(Given):
    """How many seconds to wait for the turn that takes the message."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0


class Messages:
    """The hot route of the door, and its streaming twin."""

    def __init__(self, rooms: Rooms, lasting: Lasting) -> None:
        self._rooms = rooms
        self._lasting = lasting

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
        draft = await self._draft(call)
        said = await self._commanded(call, draft)
        if said is not None:
            answered = _command_shape(draft, said)
            turn = None if said.receipt is None else await self._wait(call, said.receipt)
            return 200, answered if turn is None else replace(answered, turn=turn_end(turn))
        receipt = await self._rooms.intake.accept(draft)
        shape = self._told(call, receipt)
        turn = await self._wait(call, receipt)
        if turn is None:
            return 202, shape
        return 200, Answered(**msgspec.structs.asdict(shape), turn=turn_end(turn))

    async def _wait(self, call: Call[WaitQuery, MessageBody], receipt: Receipt) -> Turn | None:
        """Return the turn that took a message, if it ends while the sender wants to wait."""
        if not call.query.wait:
            return None
        try:
            async with self._lasting.wait(call.principal):
                return await self._rooms.turns.wait_for_stimulus(receipt, call.query.wait)
        except (TimeoutError, Problem):
            return None  # the server stops, or the token went: the message is on disk all the same

    async def stream(self, call: Call[Nothing, MessageBody]) -> Response:
        self._lasting.check_room(call.principal)
        draft = await self._draft(call)
        # Followed before it is sent, so that not a word of the answer is missed.
        subscription = self._rooms.bus.follow(session_key=draft.session_key)
        try:
            said = await self._commanded(call, draft)
            if said is None:
                receipt = await self._rooms.intake.accept(draft)
                told = self._told(call, receipt)
            else:
                receipt, told = said.receipt, _command_shape(draft, said)
        except BaseException:
            await subscription.aclose()
            raise
        if receipt is None:
            await subscription.aclose()
            return Response(frame("receipt", told), media_type=MEDIA_TYPE)
        source = StimulusSource(self._rooms, subscription, receipt, told)
        return EventStream(source, call.principal, self._lasting, self._rooms.clock)

    async def _draft(
        self, call: Call[WaitQuery, MessageBody] | Call[Nothing, MessageBody]
    ) -> Draft:
        body, principal = call.body, call.principal
        idempotency_key = call.request.headers.get(IDEMPOTENCY_KEY)
        if idempotency_key is not None and body.dedup_key is not None:
            raise InvalidInput("dedup_key", f"give this or {IDEMPOTENCY_KEY}, not both")
        await _check_attachments(body.attachments)
        return Draft(
            session_key=await self._rooms.entered(principal, call.path["key"]),
            text=body.text,
            priority=parse_priority(body.priority),
            trust=principal.trust,
            source=_source(call),
            scope=principal.token_id,
            dedup_key=body.dedup_key if idempotency_key is None else idempotency_key,
            dedup_window_s=DEFAULT_WINDOW_S if idempotency_key is None else IDEMPOTENT_S,
            route=Route(door="http"),
            mode=body.mode,
            attachments=body.attachments,
            owner=principal.owner,
        )

    async def _commanded(
        self, call: Call[WaitQuery, MessageBody] | Call[Nothing, MessageBody], draft: Draft
    ) -> Said | None:
        """Do what a message says to the runtime itself; None if it is for the agent."""
        commands = self._rooms.commands
        if commands is None or draft.attachments:
            return None
        key = SessionKey(draft.session_key)
        caller = Caller(session_key=key, principal=call.principal, draft=draft)
        try:
            return await commands.run(caller)
        except KeyReused:
            raise Problem(
                "conflict", f"this {IDEMPOTENCY_KEY} was used with another body"
            ) from None

    def _told(
        self, call: Call[WaitQuery, MessageBody] | Call[Nothing, MessageBody], receipt: Receipt
    ) -> ReceiptShape:
        """Return what the sender hears; a repeated request hears its first answer again."""
        shape = receipt_shape(receipt)
        if receipt.outcome is not Outcome.DUPLICATE or IDEMPOTENCY_KEY not in call.request.headers:
            return shape
        if receipt.reason == "different-body":
            raise Problem("conflict", f"this {IDEMPOTENCY_KEY} was used with another body")
        return msgspec.structs.replace(
            shape,
            stimulus_id=receipt.duplicate_of or receipt.stimulus_id,
            outcome=Outcome(receipt.reason or Outcome.STARTED),
            reason=receipt.first_reason,
            duplicate_of=None,
            first_reason=None,
        )


def _command_shape(draft: Draft, said: Said) -> Answered:
    receipt = said.receipt
    return Answered(
        session_key=draft.session_key,
        outcome=Outcome.COMMAND,
        stimulus_id=None if receipt is None else receipt.stimulus_id,
        turn_id=None if receipt is None else receipt.turn_id,
        reply=said.text,
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


def _source(call: Call[WaitQuery, MessageBody] | Call[Nothing, MessageBody]) -> str:
    """Return who sends; only the operator may speak for others."""
    wanted = None if call.body.source is None else one_line(call.body.source, LONGEST_NAME)
    if wanted is None or wanted == call.principal.name:
        return call.principal.name
    if not call.principal.may(OPERATOR):
        raise Problem("forbidden", f"source: this token sends as {call.principal.name!r}")
    if not wanted:
        raise InvalidInput("source", "must not be blank")
    return wanted


async def _check_attachments(attachments: tuple[Attachment, ...]) -> None:
    if attachments and await asyncio.to_thread(_size, attachments) > LARGEST_ATTACHMENTS:
        raise Problem("too-large", "attachments: must be at most 10 MiB together")


def _size(attachments: tuple[Attachment, ...]) -> int:
    try:
        return sum(
            len(binascii.a2b_base64(attachment.data, strict_mode=True))
            for attachment in attachments
        )
    except ValueError:
        raise InvalidInput("attachments", "data must be base64") from None
