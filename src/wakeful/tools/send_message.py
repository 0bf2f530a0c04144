"""Say something outside before the turn ends, or to somebody else than who asked."""

from collections.abc import Sequence

from wakeful.outbox import outbox
from wakeful.tools.tool import Effect, LedgerContext, tool
from wakeful.transcript import sessions
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.text import clean

LONGEST_TEXT = 100_000  # characters


@tool(effect=Effect.LEDGER)
def send_message(
    context: LedgerContext,
    text: str,
    door: str = "",
    address: str = "",
    thread: str = "",
    account: str = "",
) -> str:
    """Send a message now: to this conversation, or to another address that you may use.

    Leave door, address, thread and account out to send to this conversation.
    """
    said = clean(text)
    if not said.strip():
        raise InvalidInput("text", "must not be empty")
    if len(said) > LONGEST_TEXT:
        raise InvalidInput("text", f"must be at most {LONGEST_TEXT} characters, not {len(said)}")
    wanted = Route(door=door, address=address, thread=thread, account=account)
    route = _chosen(wanted, _own(context), context.agent.routes)
    if not sessions.may_send(context.tx, context.turn.session_key):
        raise InvalidInput("door", "nothing may be sent from this conversation")
    if not route.is_sent_to:
        raise InvalidInput(
            "door",
            f"nothing is sent to {route.door!r}: whoever is there reads your reply itself, "
            "so say it in your reply",
        )
    delivery = outbox.file(
        context.tx,
        context.ids.new("dl"),
        route,
        said,
        session_key=context.turn.session_key,
        turn_id=context.turn.id,
    )
    context.publish("delivery.queued", delivery_id=delivery.id)
    return f"filed as {delivery.id} for {_described(route)}"


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
