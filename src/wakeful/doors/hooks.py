"""Webhooks in: prove, read, file. Every door that takes one does it by this function."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from wakeful.access.principal import Principal
from wakeful.doors.inbox import RETRY_S
from wakeful.intake import dedup
from wakeful.intake.dedup import KeyReused
from wakeful.services import Services
from wakeful.views.hooks import HookTraffic
from wakeful.vocabulary.errors import InvalidInput, TooOften
from wakeful.vocabulary.inbox import EVERY_SOURCE
from wakeful.vocabulary.kinds import Kind
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR, Draft, Outcome, Receipt, WaitingCaps
from wakeful.webhooks.examples import Example, example
from wakeful.webhooks.hook import Hook, message_of
from wakeful.webhooks.payload import UnreadableBody
from wakeful.webhooks.verification import Proof, Proved, Scheme, Unproven, verify

UNKNOWN = "unknown-name"
CONFLICT = "different-body"
UNREADABLE = "unreadable"
FULL = "inbox-full"

# What nobody has: a name that is no hook's costs as much time as one that is.
_NOBODY = Proof(scheme=Scheme.STANDARD, keys=(secrets.token_bytes(32),))


class NotProved(InvalidInput):
    """Nobody of that name has sent this; which of the two is wrong is not told."""


class Taken(Record):
    """A delivery that is in the ledger, and whether it was there before."""

    receipt: Receipt
    is_repeated: bool


class HookStatus(Record):
    """A hook, and what came to it."""

    name: str
    verify: Scheme
    agent: str
    session: str | None
    priority: str
    tools: tuple[str, ...]
    accepted: int  # that the ledger still knows
    refused: int  # since the process began: of these nothing is written
    last_at: int | None
    last_refused_at: int | None
    last_refusal: str | None


async def receive(services: Services, name: str, headers: Mapping[str, str], body: bytes) -> Taken:
    """File what a hook's sender says, once; headers have their names in lower case.

    Raise NotProved for an unknown name and for a bad signature alike, UnreadableBody for a body
    that is not what it says, and KeyReused for another body under the id of an earlier one.
    """
    hooks = services.webhooks
    hook = hooks.find(name)
    proof = _NOBODY if hook is None else hook.proof
    proved = verify(proof, headers, body, services.views.clock.now())
    if hook is None or isinstance(proved, Unproven):
        hooks.note_refused(name, UNKNOWN if hook is None else str(proved))
        raise NotProved("signature", "is not that of a known sender")
    try:
        draft = _draft(services, hook, headers, body, proved)
    except UnreadableBody:
        hooks.note_refused(name, UNREADABLE)
        raise
    receipt = await services.intake.accept(draft)
    if receipt.outcome is Outcome.REFUSED:
        hooks.note_refused(name, FULL)
        raise TooOften("too much waits in the inbox already", retry_after_s=RETRY_S)
    is_repeated = receipt.outcome is Outcome.DUPLICATE
    try:
        first = dedup.as_first_answered(receipt)
    except KeyReused:
        hooks.note_refused(name, CONFLICT)
        raise
    hooks.note_taken(name, "repeated" if is_repeated else "accepted")
    return Taken(receipt=first, is_repeated=is_repeated)


async def send_example(services: Services, name: str, payload: Any = None) -> Taken:
    """Send a hook an example, signed as its sender signs, as if it had come from outside."""
    made = example_for(services, name, payload)
    return await receive(services, name, made.headers, made.body)


def example_for(services: Services, name: str, payload: Any = None) -> Example:
    """Return an example that a hook takes, under an id that nobody has used."""
    hook, now = services.webhooks.get(name), services.views.clock.now()
    return example(hook, services.ids.new("test"), now, payload)


async def statuses(services: Services) -> list[HookStatus]:
    """Return every hook, what the ledger has of it and what was refused since the start."""
    hooks = services.webhooks.all()
    traffic = await services.views.hooks.of([hook.name for hook in hooks])
    return [_status(services, *pair) for pair in zip(hooks, traffic, strict=True)]


def _status(services: Services, hook: Hook, traffic: HookTraffic) -> HookStatus:
    refused = services.webhooks.refusals(hook.name)
    return HookStatus(
        name=hook.name,
        verify=hook.proof.scheme,
        agent=hook.agent_id,
        session=hook.session_key if hook.has_session else None,
        priority=hook.priority.name.lower(),
        tools=hook.tools,
        accepted=traffic.accepted,
        refused=refused.count,
        last_at=traffic.last_at,
        last_refused_at=refused.last_at,
        last_refusal=refused.last_reason,
    )


def headers_of(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by their names in lower case; one that is given twice counts as a list."""
    found: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _draft(
    services: Services, hook: Hook, headers: Mapping[str, str], body: bytes, proved: Proved
) -> Draft:
    principal = Principal.hook(hook.name)
    words, depth = message_of(hook, headers, body, proved.delivery_id), services.intake.inbox.depth
    return Draft(
        session_key=services.views.bindings.answering_session(hook.session_key, OPERATOR),
        trust=principal.trust,
        owner=principal.owner,
        text=words.text,
        kind=Kind.WEBHOOK,
        priority=hook.priority,
        source=principal.name,
        scope=f"hook {hook.name}",  # keys of a token of that name are others
        dedup_key=words.dedup_key,
        dedup_window_s=hook.dedup_window_s,
        body_hash=hashlib.sha256(body).hexdigest(),
        storm=hook.storm,
        caps=WaitingCaps(of_source=EVERY_SOURCE.depth, in_all=depth),
    )
