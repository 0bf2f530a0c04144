"""Say something outside before the turn ends, or to somebody else than who asked."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from wakeful.broker import stimuli
from wakeful.gate import throttle
from wakeful.outbox import outbox
from wakeful.outbox.outbox import Along, Delivery, DeliveryState
from wakeful.tools.outward_files import read_files
from wakeful.tools.tool import Effect, LedgerContext, Tool, ToolContext, ToolResult, tool
from wakeful.transcript import sessions
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.spans import format_span
from wakeful.vocabulary.text import clean, is_plain

LONGEST_TEXT = 100_000  # characters
LONGEST_ID = 256


async def _files_of_message(context: ToolContext, arguments: Mapping[str, Any]) -> ToolResult:
    """Read the files that go along; no file is read inside a transaction."""
    try:
        names = msgspec.convert(arguments.get("files"), list[str])
    except msgspec.ValidationError as error:
        raise InvalidInput("files", str(error)) from None
    return ToolResult(text="", attachments=await read_files(context, names))


_READS_FILES = Tool(_files_of_message, name="send_message", effect=Effect.READ, schema={})


# Each is a word of the tool; a model names the few it needs.
@tool(effect=Effect.LEDGER, prepare=_READS_FILES)
def send_message(  # noqa: PLR0913, PLR0917
    context: LedgerContext,
    text: str,
    files: list[str] | None = None,
    reply_to: str = "",
    door: str = "",
    address: str = "",
    thread: str = "",
    account: str = "",
) -> str | ToolResult:
    """Send a message now: to this conversation, or to another address that you may use.

    Leave door, address, thread and account out to send to this conversation. `files` are paths in
    the workspace, `attachment:ID` or `output:ID`. `reply_to` is the id of the message it answers;
    in this conversation, by default the one that you answer.
    """
    said = _checked(text, reply_to, has_files=bool(context.attachments))
    wanted = Route(door=door, address=address, thread=thread, account=account)
    route = _chosen(wanted, _own(context), context.agent.routes)
    if not sessions.may_send(context.tx, context.turn.session_key):
        raise InvalidInput("door", "nothing may be sent from this conversation")
    if not route.is_sent_to:
        return _shown(context, route)
    along = Along(attachments=context.attachments, reply_to=reply_to or _answered(context, route))
    delivery = outbox.file(
        context.tx,
        context.ids.new("dl"),
        route,
        said,
        session_key=context.turn.session_key,
        turn_id=context.turn.id,
        along=throttle.paced(context.tx, context.agent.throttle, context.turn, route.target, along),
    )
    kind, data = outbox.filed_event(delivery)
    context.publish(kind, **data)
    where = f"{_described(route)}{_along(context)}"
    return f"filed as {delivery.id} for {where}{_held(context, delivery)}"


def _checked(text: str, reply_to: str, *, has_files: bool) -> str:
    said = clean(text)
    if not said.strip() and not has_files:
        raise InvalidInput("text", "must not be empty")
    if len(said) > LONGEST_TEXT:
        raise InvalidInput("text", f"must be at most {LONGEST_TEXT} characters, not {len(said)}")
    if len(reply_to) > LONGEST_ID or not is_plain(reply_to):
        raise InvalidInput("reply_to", f"must be at most {LONGEST_ID} characters on one line")
    return said


def _shown(context: LedgerContext, route: Route) -> ToolResult:
    """Give files to somebody who reads this conversation: they are attached to this result."""
    if not context.attachments:
        raise InvalidInput(
            "door",
            f"nothing is sent to {route.door!r}: whoever is there reads your reply itself, "
            "so say it in your reply",
        )
    return ToolResult(
        text="attached here for whoever reads this conversation; say the rest in your reply",
        attachments=context.attachments,
    )


def _answered(context: LedgerContext, route: Route) -> str | None:
    """Return what the door of this turn calls the message that opened it."""
    if route != context.turn.route:
        return None
    opener = stimuli.get(context.tx, context.turn.opened_by)
    return None if opener is None else opener.message_id


def _along(context: LedgerContext) -> str:
    names = ", ".join(repr(one.name[:80]) for one in context.attachments)
    return f" with {names}" if names else ""


def _held(context: LedgerContext, delivery: Delivery) -> str:
    """Tell that a message waits, and why: more of the same would only wait with it."""
    if delivery.state is not DeliveryState.HELD:
        return ""
    return (
        "; nobody there asked, and you have sent as many messages as you may in an hour: it leaves "
        f"in {format_span(delivery.due_at - context.tx.now)}, with whatever else waits by then"
    )


def _own(context: LedgerContext) -> Sequence[Route]:
    """Return the routes of this conversation, the one of this turn first."""
    routes = (context.turn.route, context.session.route)
    return tuple(dict.fromkeys(route for route in routes if route is not None))


def _chosen(wanted: Route, own: Sequence[Route], granted: Sequence[Route]) -> Route:
    """Return the one allowed route that is meant; never one made up from the arguments."""
    allowed = tuple(dict.fromkeys((*own, *granted)))
    names = "; ".join(map(_described, allowed)) or "none"
    if not any((wanted.door, wanted.address, wanted.thread, wanted.account)):
        if own:
            return own[0]
        raise InvalidInput("address", f"this conversation has no address; you may use: {names}")
    if wanted in allowed:
        return wanted
    fitting = [route for route in allowed if _fits(wanted, route)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise InvalidInput("address", f"could mean several: {'; '.join(map(_described, fitting))}")
    raise InvalidInput("address", f"you may not send to {_described(wanted)}; you may use: {names}")


def _fits(wanted: Route, route: Route) -> bool:
    return all(
        not part or part == getattr(route, name)
        for name in Route.__struct_fields__
        if isinstance(part := getattr(wanted, name), str)
    )


def _described(route: Route) -> str:
    parts = ((name, getattr(route, name)) for name in Route.__struct_fields__)
    return " ".join(f"{name}={value[:200]!r}" for name, value in parts if value)
