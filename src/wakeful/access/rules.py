"""Who may see, enter or make a session: the only place where that is decided.

What somebody may not see does not exist for them; whoever asks these functions answers so.
"""

import re

from wakeful.access.principal import INBOX, Principal
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.kinds import Held
from wakeful.vocabulary.session_key import KeyKind, SessionKey
from wakeful.vocabulary.stimulus import OPERATOR, Stimulus

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLACES = frozenset({KeyKind.DM, KeyKind.GROUP, KeyKind.CHANNEL})
_OF_APPROVALS = "approval."  # events that only the operator hears


def sees_all(viewer: str) -> bool:
    """Tell whether an owner sees what everybody owns."""
    return viewer == OPERATOR


def sees(viewer: str, owner: str | None) -> bool:
    """Tell whether an owner sees what belongs to `owner`; None: to nobody who is known."""
    return sees_all(viewer) or (viewer != "" and viewer == owner)


def may_see(principal: Principal, owner: str | None) -> bool:
    """Tell whether what belongs to `owner` is shown to a principal."""
    return sees(principal.viewer, owner)


def may_change(principal: Principal, owner: str | None) -> bool:
    """Tell whether a principal may change what belongs to `owner`.

    To read everything is not to write everywhere: only the operator changes what others own.
    """
    return principal.is_operator or (principal.owner != "" and principal.owner == owner)


def may_write(owner: str, holder: str | None) -> bool:
    """Tell whether what is done for an owner may touch what belongs to `holder`.

    Asked in the write itself, where only the owner's name is known; doors ask `may_enter` before.
    """
    return sees(owner, holder)


def may_enter(principal: Principal, key: SessionKey, owner: str | None) -> bool:
    """Tell whether a principal may write to a session; one without an owner is not there yet."""
    return may_make(principal, key) if owner is None else may_change(principal, owner)


def may_make(principal: Principal, key: SessionKey) -> bool:
    """Tell whether a session that is not there may begin with what a principal says.

    A token makes sessions below `api`, and web chats under names that nobody chooses: one that
    the operator might choose, too, would let its maker read along. Whoever came without a token
    has the conversation with their peer or room, and threads in it.
    """
    if principal.is_operator:
        return True
    parts = keys.parse(key)
    if not principal.token_id:
        return parts.kind in _PLACES and keys.place_of(key) == principal.owner
    is_api = parts.kind is KeyKind.OTHER and parts.words[0] == "api" and len(parts.words) > 1
    return is_api or (parts.kind is KeyKind.WEB and _UUID.fullmatch(parts.id) is not None)


def may_speak_as(principal: Principal, source: str) -> bool:
    """Tell whether a principal may say who else sends: only the operator speaks for others."""
    return principal.is_operator or source == principal.name


def may_hear_of(principal: Principal, kind: str) -> bool:
    """Tell whether events of a kind are for a principal at all: what is to be approved is not for
    whoever cannot approve it, not even in their own session.
    """
    return principal.is_operator or not kind.startswith(_OF_APPROVALS)


def inbox_sources(principal: Principal) -> list[str]:
    """Return the sources as which a principal may leave something in the inbox, by its scopes."""
    return [scope.removeprefix(INBOX) for scope in principal.scopes if scope.startswith(INBOX)]


def may_post_as(principal: Principal, source: str) -> bool:
    """Tell whether a principal may leave something in the inbox as a source."""
    return principal.is_operator or source in inbox_sources(principal)


def may_dismiss(principal: Principal, item: Stimulus) -> bool:
    """Tell whether a principal may throw an item away: a source only what it left itself."""
    is_posted = item.kind.rule.held is Held.ALWAYS
    return principal.is_operator or (is_posted and may_post_as(principal, item.source))


def may_choose_agent(principal: Principal, agent_id: str, own: str) -> bool:
    """Tell whether an item may be left for an agent: the operator chooses, a source has its own."""
    return principal.is_operator or agent_id == own


def has_prefix(key: SessionKey, prefix: str | None, agent_id: str) -> bool:
    """Tell whether a session is one that a source may name: of its agent, below its prefix.

    The operator has no more to say in it: what a source may reach stands in the settings.
    """
    if prefix is None:
        return False
    whole = prefix if prefix.startswith("agent:") else f"agent:{agent_id}:{prefix}"
    is_below = key == whole or key.startswith(whole if whole.endswith(":") else f"{whole}:")
    return is_below and keys.agent_of(key) == agent_id
