"""What a caller's words name: a session, a turn or a stimulus, if there is one for that caller.

The rules are those of `access`; what they do not allow is told as if it did not exist.
"""

import re
from collections.abc import Awaitable, Callable

from wakeful.access import rules
from wakeful.access.principal import Principal
from wakeful.services import Views
from wakeful.transcript.sessions import Session
from wakeful.turns.turns import Turn
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.stimulus import Stimulus

Making = Callable[
    [Principal], Awaitable[None]
]  # told of each session that is about to be made; may refuse


def key_of(views: Views, words: str, field: str = "session_key") -> SessionKey:
    """Return the key that words name; short forms mean the first agent."""
    return keys.canonical(words, views.bindings.default_agent, field)


async def writable_session(
    views: Views, principal: Principal, words: str, making: Making
) -> SessionKey:
    """Return the key of a session that a principal may write to, or make."""
    if principal.is_operator:  # who may enter every session, and is told why a name is none
        return views.bindings.answering_session(key_of(views, words), principal.owner)
    key = _known_key(views, words)
    await check_writable(views, principal, key, making)
    return key


async def check_writable(
    views: Views, principal: Principal, key: SessionKey, making: Making
) -> None:
    """Refuse a session that a principal may neither write to nor make; `making` counts a new one.

    Intake looks again in the accepting transaction, since two may make one at once.
    """
    is_served = views.agents.knows(keys.agent_of(key))
    owner = await views.sessions.owner_of(key)
    if not is_served or not rules.may_enter(principal, key, owner):
        raise _not_writable(principal, key)
    if owner is None:
        await making(principal)


async def seen_session(views: Views, principal: Principal, words: str) -> Session:
    """Return a session that a principal may see, by any of its names."""
    key = _known_key(views, words)
    answering = views.bindings.answering_session(key, principal.owner)
    return await views.sessions.get(answering, principal.viewer)


async def own_session_key(views: Views, principal: Principal, words: str) -> SessionKey:
    """Return the key of a session that a principal may change; its row need not be readable."""
    key = views.bindings.answering_session(_known_key(views, words), principal.owner)
    owner = await views.sessions.owner_of(key)
    if owner is None or not rules.may_change(principal, owner):
        raise _no_session(key)
    return key


def is_named(text: str, agent_id: str) -> bool:
    """Tell whether a text names an agent: its id after an `@`, and no longer word."""
    return (
        re.search(rf"(?<![\w@-])@{re.escape(agent_id)}(?![\w-])", text, re.IGNORECASE) is not None
    )


def is_alias(views: Views, principal: Principal, words: str) -> bool:
    """Tell whether words name a web chat that stands for the session all web chats share."""
    key = _known_key(views, words)
    return views.bindings.answering_session(key, principal.owner) != key


async def seen_turn(views: Views, principal: Principal, turn_id: str) -> Turn:
    """Return a turn that a principal may see."""
    turn = await views.turns.turn(turn_id)
    if not rules.may_see(principal, await views.sessions.owner_of(turn.session_key)):
        raise NotFound("turn_id", f"no turn {turn_id!r}")
    return turn


async def own_turn(views: Views, principal: Principal, turn_id: str) -> Turn:
    """Return a turn that a principal may end."""
    turn = await views.turns.turn(turn_id)
    if not rules.may_change(principal, await views.sessions.owner_of(turn.session_key)):
        raise NotFound("turn_id", f"no turn {turn_id!r}")
    return turn


async def own_stimulus(views: Views, principal: Principal, stimulus_id: str) -> Stimulus:
    """Return a stimulus that a principal may cancel."""
    stimulus = await views.ledger.get(stimulus_id, principal.viewer)
    if not rules.may_change(principal, await views.sessions.owner_of(stimulus.session_key)):
        raise NotFound("stimulus_id", f"no stimulus {stimulus_id!r}")
    return stimulus


def _known_key(views: Views, words: str) -> SessionKey:
    try:
        return key_of(views, words)
    except InvalidInput:
        raise _no_session(words) from None


def _not_writable(principal: Principal, key: SessionKey) -> NotFound:
    """Say which names a token may use, by the name alone: not whether there is such a session."""
    if not principal.token_id or rules.may_make(principal, key):
        return _no_session(key)
    rule = "it writes to sessions that it made, whose names are 'api:…' or 'web:' and a UUID"
    return NotFound("session", f"no session {key[:120]!r} for this token; {rule}")


def _no_session(words: str) -> NotFound:
    return NotFound("session", f"no session {words[:120]!r}")
