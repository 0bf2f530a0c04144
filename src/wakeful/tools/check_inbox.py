"""`check_inbox`: read what sources left for the agent; each item is read once."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec

from wakeful.access import rules
from wakeful.broker import held
from wakeful.prompts.inbox import read_items
from wakeful.tools.tool import CallFacts, Effect, LedgerContext, ToolResult, tool
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.stimulus import OPERATOR, Priority, State, Stimulus, Trust

MOST_AT_ONCE = 50
MOST_BYTES = 12 * 1024  # so that a result shows whole what it took; one long item may be more


def _activity(arguments: Mapping[str, Any], facts: CallFacts) -> Iterable[str]:
    """Name the lane whose lock says who reads what lies in the agent's Activity."""
    return (keys.activity(facts.agent_id),)


@tool(effect=Effect.LEDGER, is_for_external=True, locks=_activity)
def check_inbox(
    context: LedgerContext,
    priority_floor: Literal["now", "next", "later"] = "next",
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)] = 10,
) -> ToolResult:
    """Read what waits in your inbox: reports and alarms that were left for you.

    Each item is shown once, so deal with it or tell people of it. `priority_floor` "later" shows
    what can wait, too. Once you have read something, this turn has fewer tools.
    """
    floor = Priority[priority_floor.upper()]
    items: list[Stimulus] = []
    for session_key in _readable(context):
        if len(items) < limit and (room := MOST_BYTES - _size(items)) > 0:
            most = limit - len(items)
            items += held.give(context.tx, session_key, context.turn.id, most, room, floor)
    for item in items:
        context.publish("stimulus.claimed", item.id, how="read")
    context.settle([item.id for item in items], State.MERGED)
    more = sum(held.count(context.tx, key, floor) for key in _readable(context))
    is_external = any(item.trust is Trust.EXTERNAL for item in items)
    text = read_items(items, more, context.tx.now)
    return ToolResult(text=text, is_external=is_external, ends_grants=is_external)


def _readable(context: LedgerContext) -> list[str]:
    """Return the sessions whose items this one may read: its own, then its agent's Activity.

    The latter is the operator's; whoever else a session belongs to would hear of it there.
    """
    own, activity = context.session.key, keys.activity(context.session.agent_id)
    if own == activity or not rules.sees(context.session.owner, OPERATOR):
        return [own]
    return [own, activity]


def _size(items: Iterable[Stimulus]) -> int:
    return sum(len(item.text.encode()) for item in items)
