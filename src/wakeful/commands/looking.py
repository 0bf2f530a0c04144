"""Commands that only look: what the session is doing, what it cost, why it did what it did."""

from datetime import UTC, datetime

from wakeful.access import rules
from wakeful.commands.command import Caller, Deed, saying
from wakeful.services import Services
from wakeful.transcript.sessions import Session
from wakeful.views.inbox import InboxFilter
from wakeful.views.lanes import LaneStatus
from wakeful.views.why import ChainLink
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.spans import format_span
from wakeful.vocabulary.stimulus import State, Stimulus
from wakeful.vocabulary.text import one_line

MOST_SESSIONS = 10
MOST_TURNS = 1000  # that are looked through for answers of unknown price, the newest
_UNPRICED = (
    "SELECT COUNT(*) FROM asks JOIN (SELECT id FROM turns WHERE session_key = :key "
    "ORDER BY id DESC LIMIT :most) newest ON newest.id = asks.turn_id "
    "WHERE asks.asked_at >= :since AND asks.state = 'answered' AND asks.cost IS NULL"
)
LONGEST_TRIGGER = 80  # characters shown of what woke a turn
MOST_ITEMS = 10  # shown of the inbox
LONGEST_ITEM = 100


async def status(services: Services, caller: Caller, _rest: str) -> Deed:
    agent_id = keys.agent_of(caller.session_key)
    card = services.views.agents.card(agent_id)
    lane = await services.views.lanes.status(caller.session_key)
    session = await session_of(services, caller)
    chosen = None if session is None else session.overrides.model
    model = card.model if chosen is None else f"{chosen}, chosen for this session"
    lines = [f"{caller.session_key}: {lane.state}", f"agent {agent_id}, model {model}"]
    if lane.waits_for is not None:
        lines.append(f"waits for {lane.waits_for}{_until(lane)}")
    if lane.turn_id is not None:
        lines.append(f"open turn {lane.turn_id}")
    if lane.waiting:
        lines.append(f"{lane.waiting} waiting")
    if session is not None:
        lines.append(
            f"context about {session.context_tokens} tokens, compacted {session.compactions} times"
        )
        lines.append(await used(services, session))
    return saying("\n".join(lines))


async def sessions(services: Services, caller: Caller, _rest: str) -> Deed:
    agent_id = keys.agent_of(caller.session_key)
    found = await services.views.sessions.of_agent(
        agent_id, caller.principal.viewer, limit=MOST_SESSIONS
    )
    names = ((one.key, one.label or one.display_name) for one in found)
    lines = [f"{key} ({name})" if name else key for key, name in names]
    return saying("\n".join(lines) or "There are no sessions yet.")


async def why(services: Services, caller: Caller, rest: str) -> Deed:
    word = rest or "last"
    turn_id = await _turn_id(services, caller, word)
    try:
        links = await services.views.why.chain(turn_id, caller.principal.viewer)
    except NotFound:  # said of what was named, not of what that led to: it may be another's
        raise NotFound("turn", f"there is no turn or stimulus {word[:80]!r}") from None
    more = links[-1].goes_on_at
    further = [] if more is None else [f"… and more; ask for it with /why {more}"]
    return saying("\n".join([*map(_link_line, links), *further]))


async def whoami(_services: Services, caller: Caller, _rest: str) -> Deed:
    who = caller.principal
    return saying(
        f"{who.name}, with the scopes {', '.join(who.scopes)}; what you send is trusted as "
        f"{who.trust.value}. This is {caller.session_key}."
    )


async def inbox(services: Services, caller: Caller, _rest: str) -> Deed:
    """Show what waits for the agent; it is not read by that."""
    agent_id = keys.agent_of(caller.session_key)
    found = [
        item
        for state in (State.PARKED, State.HELD)  # what is parked is urgent, and may not run now
        for item in await services.views.inbox.page(
            InboxFilter(state=state, agent_id=agent_id), None, MOST_ITEMS + 1
        )
    ]
    now = services.views.clock.now()
    lines = [_item_line(item, now) for item in found[:MOST_ITEMS]]
    more = ["… and more; `wakeful inbox list` shows them"] if len(found) > MOST_ITEMS else []
    return saying("\n".join([*lines, *more]) or "Nothing waits in the inbox.")


async def session_of(services: Services, caller: Caller) -> Session | None:
    """Return the session in which something is said; None before its first message."""
    try:
        return await services.views.sessions.get(caller.session_key, caller.principal.viewer)
    except NotFound:
        return None


async def _turn_id(services: Services, caller: Caller, word: str) -> str:
    """Return the turn that is meant: by its id, by that of a stimulus, or the last one here."""
    if word == "last":
        rows = await services.views.store.read(
            "SELECT id FROM turns WHERE session_key = :key ORDER BY id DESC LIMIT 1",
            key=caller.session_key,
        )
    else:
        rows = await services.views.store.read(
            "SELECT turn_id, session_key FROM stimuli WHERE id = :id", id=word
        )
        if rows and not await _is_seen(services, caller, rows[0][1]):
            return word  # as if it did not exist
    if not rows:
        if word == "last":
            raise NotFound("turn", "there was no turn in this session yet")
        return word
    if rows[0][0] is None:
        raise NotFound("turn", f"the stimulus {word!r} has led to no turn")
    return rows[0][0]


async def _is_seen(services: Services, caller: Caller, session_key: str) -> bool:
    return rules.may_see(caller.principal, await services.views.sessions.owner_of(session_key))


def _cause(stimulus: Stimulus) -> str:
    """Say what kind of thing came, and from whom."""
    kind = stimulus.kind
    return " ".join(dict.fromkeys(filter(None, (kind.origin.value, kind.detail, stimulus.source))))


def _item_line(item: Stimulus, now: int) -> str:
    age = format_span(now - item.accepted_at)
    put_off = f", put off ({item.state_reason})" if item.state is State.PARKED else ""
    head = f"{item.priority.name.lower()}, {one_line(item.source, 40)}, {age} ago{put_off}"
    return f"{head}: {one_line(item.text, LONGEST_ITEM)}"


def _until(lane: LaneStatus) -> str:
    """Say until when a model is waited for, and why."""
    if lane.failure is None or lane.ready_at is None:
        return ""
    until = datetime.fromtimestamp(lane.ready_at // 1000, UTC)
    return f" until {until:%Y-%m-%d %H:%M:%S} UTC: {lane.failure}"


async def used(services: Services, session: Session) -> str:
    """Tell what a conversation has used; a price that nobody knows is told as such."""
    ((unpriced,),) = await services.views.store.read(
        _UNPRICED, key=session.key, since=session.started_at, most=MOST_TURNS
    )
    line = (
        f"{session.input_tokens} tokens read, {session.output_tokens} written, "
        f"${session.cost:.4f} spent in this conversation"
    )
    if not unpriced:
        return line
    return f"{line}, and {unpriced} {'answer' if unpriced == 1 else 'answers'} of unknown price"


def _link_line(link: ChainLink) -> str:
    turn = link.turn
    woken = "; ".join(
        f"{_cause(one)}: {one_line(one.text, LONGEST_TRIGGER)!r}" for one in link.stimuli
    )
    woken += f"; and {link.more_stimuli} more" if link.more_stimuli else ""
    return (
        f"{turn.id} ({turn.state.value}) because of {woken}; questions: {len(link.asks)}, "
        f"tool calls: {len(link.tools)}, ${turn.cost:.4f} spent"
    )
