"""What sources leave in the inbox, at every door: it is data for an agent, and never a command.

A door proves who posts and renders the receipt. Who may post as which source, where it lands and
how urgent it may be is decided here, by `access/rules.py` and the settings of the source.
"""

from wakeful.access import rules
from wakeful.access.principal import Principal
from wakeful.doors.messaging import (
    IDEMPOTENT,
    IDEMPOTENT_S,
    LONGEST_NAME,
    Forbidden,
    TooLarge,
)
from wakeful.intake import dedup
from wakeful.intake.draft import check_length, parse_priority
from wakeful.services import Services
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput, TooOften
from wakeful.vocabulary.inbox import InboxRules, InboxSource
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import (
    OPERATOR,
    Draft,
    Outcome,
    Priority,
    Receipt,
    Trust,
    WaitingCaps,
)
from wakeful.vocabulary.text import one_line

RETRY_S = 60.0  # when the inbox is full: somebody must read it first


class InboxItem(Record):
    """What somebody leaves for an agent, as their door has read it."""

    text: str
    priority: str = "next"
    source: str | None = None  # as which it is posted; None: the one that the principal may be
    dedup_key: str | None = None
    idempotency_key: str | None = None  # instead: who repeats it gets the first answer again
    agent: str | None = None  # the operator's choice
    session: str | None = None  # one with the prefix that the settings of its source name
    expires_at: int | None = None


async def post(services: Services, principal: Principal, item: InboxItem) -> Receipt:
    """Leave something in the inbox; it is on disk when this returns, and no turn is waited for."""
    if item.idempotency_key is not None and item.dedup_key is not None:
        raise InvalidInput("dedup_key", "give this or an idempotency key, not both")
    inbox = services.intake.inbox
    source = _source(principal, item)
    of_source = inbox.of(source)
    _check_size(services, principal, item.text, inbox)
    session_key = await _session_key(services, principal, item, of_source)
    now = services.views.clock.now()
    if item.expires_at is not None and item.expires_at <= now:
        raise InvalidInput("expires_at", "must be in the future")
    draft = _draft(principal, item, source, session_key, inbox)
    services.gatekeeper.take_post(source, of_source.per_minute)
    receipt = await services.intake.accept(draft)
    if receipt.outcome is Outcome.REFUSED:
        rule = f"too much waits in the inbox already (of {source!r}, or in all)"
        raise TooOften(rule, retry_after_s=RETRY_S)
    return receipt if item.idempotency_key is None else dedup.as_first_answered(receipt)


def _source(principal: Principal, item: InboxItem) -> str:
    """Return as which source an item is posted."""
    wanted = None if item.source is None else one_line(item.source, LONGEST_NAME)
    if wanted is not None and not wanted:
        raise InvalidInput("source", "must not be blank")
    own = rules.inbox_sources(principal)
    if wanted is None and not principal.is_operator and len(own) != 1:
        raise InvalidInput("source", f"must be one of {', '.join(own)}")
    source = wanted or (principal.name if principal.is_operator else own[0])
    if not rules.may_post_as(principal, source):
        raise Forbidden("source", f"you post as {', '.join(own) or 'nobody'}")
    return source


def _check_size(services: Services, principal: Principal, text: str, inbox: InboxRules) -> None:
    check_length(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > inbox.max_bytes:
        raise TooLarge("text", f"must be at most {inbox.max_bytes} bytes, not {size}")
    services.gatekeeper.take_bytes(principal, size)


async def _session_key(
    services: Services, principal: Principal, item: InboxItem, source: InboxSource
) -> SessionKey:
    """Return where an item lands: in its agent's Activity, or where its source may choose."""
    views = services.views
    own = source.agent or views.bindings.default_agent
    agent = own if item.agent is None else item.agent
    if not rules.may_choose_agent(principal, agent, own):
        raise Forbidden("agent", f"this source writes to {own!r}")
    if not views.agents.knows(agent):
        raise InvalidInput("agent", f"no agent {agent[:64]!r} is configured")
    if item.session is None:
        return keys.activity(agent)
    key = keys.canonical(item.session, agent, "session")
    if not rules.has_prefix(key, source.session_prefix, agent):
        raise Forbidden("session", "this source may not choose that session")
    if await views.sessions.owner_of(key) is None:
        await services.gatekeeper.make_session(principal)
    return key


def _draft(
    principal: Principal, item: InboxItem, source: str, session_key: SessionKey, inbox: InboxRules
) -> Draft:
    of_source, scope = inbox.of(source), principal.token_id or principal.owner
    is_idempotent = item.idempotency_key is not None
    cap = parse_priority(of_source.priority_cap)
    return Draft(
        session_key=session_key,
        kind=Kind.INBOX,
        trust=Trust.EXTERNAL,  # whoever posts it: a source's words are never the operator's
        owner=OPERATOR,
        text=item.text,
        priority=lowered(parse_priority(item.priority), cap),
        source=source,
        scope=f"{IDEMPOTENT} {scope}" if is_idempotent else scope,
        dedup_key=item.idempotency_key if is_idempotent else item.dedup_key,
        dedup_window_s=IDEMPOTENT_S if is_idempotent else _window(item, of_source),
        expires_at=item.expires_at,
        storm=of_source.storm,
        caps=WaitingCaps(of_source=of_source.depth, in_all=inbox.depth),
    )


def lowered(wanted: Priority, cap: Priority) -> Priority:
    """Return the less urgent of two priorities."""
    return max(wanted, cap)


def _window(item: InboxItem, source: InboxSource) -> int | None:
    return None if item.dedup_key is None else source.dedup_window_s
