"""What people and peers say, at every door: filed for an agent, or done at once.

A door proves who speaks, names the session or the contact, and renders what comes back. Commands
are read here and nowhere else; trust and owner are the principal's.
"""

from typing import Literal

from msgspec.structs import replace

from wakeful.access import rules
from wakeful.access.principal import Principal
from wakeful.commands import commands, queue_words
from wakeful.commands.command import Caller
from wakeful.doors import naming
from wakeful.intake import dedup
from wakeful.intake.bindings import Contact
from wakeful.intake.draft import AttachmentLimits, check_length, parse_priority, ready
from wakeful.services import Services
from wakeful.store.database import Tx
from wakeful.transcript import overheard
from wakeful.transcript.overheard import Overheard
from wakeful.transcript.sessions import SESSIONS
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import KeyKind, SessionKey
from wakeful.vocabulary.stimulus import (
    Attachment,
    Draft,
    Outcome,
    ReadyAttachment,
    Receipt,
    Trust,
)
from wakeful.vocabulary.text import one_line

LONGEST_NAME = 256
LONGEST_DESCRIPTION = 200
IDEMPOTENT_S = 86_400
CHAT_DEBOUNCE_MS = 1000  # people at chats say one thing in several messages


IDEMPOTENT = "idempotency-key"  # before the scope: such keys and dedup keys never meet
_PLACES = frozenset({KeyKind.DM, KeyKind.GROUP, KeyKind.CHANNEL})


class Forbidden(InvalidInput):
    """The principal may not do this."""


class TooLarge(InvalidInput):
    """More was sent than is taken."""


class Message(Record):
    """What somebody says, as their door has read it."""

    text: str = ""
    priority: str = "next"
    queue: QueueOverrides = NO_OVERRIDES
    source: str | None = None  # who sends it, if not the principal itself
    dedup_key: str | None = None
    idempotency_key: str | None = None  # instead: who repeats it gets the first answer again
    attachments: tuple[Attachment, ...] = ()
    route: Route | None = None  # where the answer goes; a contact is its own
    is_mention: bool | None = None  # in a room: whether the agent is meant; None: by its name
    message_id: str | None = None  # what the door calls it: an answer names it


class Address(Record):
    """Where a message goes, and whose word it is there."""

    principal: Principal
    session_key: SessionKey
    scope: str  # of dedup keys
    source: str
    route: Route | None
    binding: str | None = None
    debounce_ms: int = 0
    makes_for: str | None = None  # whose a new session is, if not the principal's
    contact: Contact | None = None  # None: the session was named


class Prepared(Record):
    """A message whose speaker may say it where it goes, ready to be filed."""

    caller: Caller
    is_idempotent: bool
    is_addressed: bool = True  # False: said in a room to others than the agent

    @property
    def session_key(self) -> SessionKey:
        return self.caller.session_key


async def send(
    services: Services, principal: Principal, to: str | Contact, message: Message
) -> Receipt:
    """Say something in a session, or as a contact; it is on disk when this returns."""
    return await file(services, await prepare(services, principal, to, message))


async def prepare(
    services: Services, principal: Principal, to: str | Contact, message: Message
) -> Prepared:
    """Find out where a message goes and whether it may; nothing is written."""
    if message.idempotency_key is not None and message.dedup_key is not None:
        raise InvalidInput("dedup_key", "give this or an idempotency key, not both")
    check_length(message.text)
    _check_attachments(message.attachments, services.intake.attachments)
    size = len(message.text.encode("utf-8", "surrogatepass")) + _size(message.attachments)
    services.gatekeeper.take_bytes(principal, size)
    if isinstance(to, Contact):
        address = await _of_contact(services, principal, to, message)
    else:
        address = await _of_session(services, principal, to, message)
    draft = _draft(address, message, await ready(message.attachments))
    return Prepared(
        caller=Caller(principal=address.principal, draft=draft),
        is_idempotent=message.idempotency_key is not None,
        is_addressed=await _is_addressed(services, address, message),
    )


async def file(services: Services, spoken: Prepared) -> Receipt:
    """Do what a message commands, or file it for the agent."""
    draft = spoken.caller.draft
    receipt = await commands.run(services, spoken.caller)
    if receipt is None and not spoken.is_addressed:
        receipt = await _overhear(services, draft)
    elif receipt is None:
        inline = queue_words.cut_out(draft.text)
        if inline.queue is not NO_OVERRIDES:
            draft = replace(draft, text=inline.text, queue=draft.queue.under(inline.queue))
        receipt = await services.intake.accept(draft)
    return dedup.as_first_answered(receipt) if spoken.is_idempotent else receipt


async def _of_session(
    services: Services, principal: Principal, words: str, message: Message
) -> Address:
    return Address(
        principal=principal,
        session_key=await naming.writable_session(
            services.views, principal, words, services.gatekeeper.make_session
        ),
        scope=principal.token_id or principal.owner,
        source=_source(principal, message) or principal.name,
        route=message.route,
    )


async def _of_contact(
    services: Services, principal: Principal, contact: Contact, message: Message
) -> Address:
    """Return where a contact's messages go; whoever has no name of their own speaks for it."""
    bound = services.views.bindings.resolve(contact, is_operator=principal.is_operator)
    principal = replace(principal, owner=principal.owner or bound.place)
    making = services.gatekeeper.make_session
    await naming.check_writable(services.views, principal, bound.session_key, making)
    return Address(
        principal=principal,
        session_key=bound.session_key,
        scope=contact.dedup_scope,
        source=_source(principal, message) or contact.peer or contact.door,
        route=message.route or contact.route,
        binding=bound.binding_id,
        debounce_ms=CHAT_DEBOUNCE_MS,
        # A room is nobody's own, even if the operator speaks first: else others could not follow.
        makes_for=bound.place if contact.is_room else None,
        contact=contact,
    )


async def _is_addressed(services: Services, address: Address, message: Message) -> bool:
    """Tell whether a message is for the agent; in a room, by default, only if it is mentioned.

    Whoever names the session of a room instead of the room speaks to its agent, unless the
    session itself wants mentions.
    """
    key = address.session_key
    if not overheard.is_room(key) or message.is_mention:
        return True
    rows = await services.views.store.read(SESSIONS.select("WHERE key = :key"), key=key)
    chosen = next((row.overrides.activation for row in SESSIONS.read_known(rows)), None)
    if chosen is None:
        chosen = "always" if address.contact is None else "mention"
    if chosen == "always":
        return True
    return message.is_mention is None and naming.is_named(message.text, keys.agent_of(key))


async def _overhear(services: Services, draft: Draft) -> Receipt:
    """Keep what was said to others for the next turn in this room; it is no stimulus."""
    draft = services.intake.checked(draft)

    def write(tx: Tx) -> Receipt:
        first = None if draft.dedup_key is None else dedup.claim(tx, draft, "")
        if first is not None:
            return dedup.repeated(first, draft, None)
        line = Overheard(
            id=services.ids.new("oh"),
            session_key=draft.session_key,
            source=draft.source,
            text=draft.text,
            is_external=draft.trust is Trust.EXTERNAL,
            at=tx.now,
        )
        overheard.note(tx, line)
        receipt = Receipt(stimulus_id="", session_key=draft.session_key, outcome=Outcome.OVERHEARD)
        if draft.dedup_key is not None:
            dedup.keep_receipts(tx, [(draft, receipt)])
        return receipt

    return await services.views.store.transact(write)


def _draft(address: Address, message: Message, attachments: tuple[ReadyAttachment, ...]) -> Draft:
    is_idempotent = message.idempotency_key is not None
    return Draft(
        session_key=address.session_key,
        trust=address.principal.trust,
        owner=address.principal.owner,
        text=message.text,
        priority=parse_priority(message.priority),
        source=address.source,
        scope=f"{IDEMPOTENT} {address.scope}" if is_idempotent else address.scope,
        dedup_key=message.idempotency_key if is_idempotent else message.dedup_key,
        dedup_window_s=IDEMPOTENT_S if is_idempotent else None,
        route=address.route,
        queue=message.queue,
        debounce_ms=address.debounce_ms,
        attachments=attachments,
        binding=address.binding,
        makes_for=address.makes_for,
        display_name=_description(address, "display_name"),
        subject=_description(address, "subject"),
        message_id=message.message_id,
    )


def _description(address: Address, field: Literal["display_name", "subject"]) -> str | None:
    """Return what a door tells of a peer or room, for the session that is theirs alone."""
    if address.contact is None or keys.parse(address.session_key).kind not in _PLACES:
        return None
    return one_line(getattr(address.contact, field), LONGEST_DESCRIPTION) or None


def _source(principal: Principal, message: Message) -> str | None:
    """Return who a message says it is from; None: it does not say."""
    if message.source is None:
        return None
    source = one_line(message.source, LONGEST_NAME)
    if not rules.may_speak_as(principal, source):
        raise Forbidden("source", f"you send as {principal.name!r}")
    if not source:
        raise InvalidInput("source", "must not be blank")
    return source


def _check_attachments(attachments: tuple[Attachment, ...], limits: AttachmentLimits) -> None:
    """Refuse more than one message may bring, before any of it is read."""
    if len(attachments) > limits.most_files:
        rule = f"must be at most {limits.most_files} files, not {len(attachments)}"
        raise InvalidInput("attachments", rule)
    size = _size(attachments)
    if size > limits.most_bytes:
        rule = f"must be at most {limits.most_bytes} bytes together, not {size}"
        raise TooLarge("attachments", rule)


def _size(attachments: tuple[Attachment, ...]) -> int:
    """Return how many bytes there are in base64; whether it is base64, intake looks."""
    return sum(len(one.data) * 3 // 4 - one.data[-2:].count("=") for one in attachments)
