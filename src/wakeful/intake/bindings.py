"""Bindings: which agent and which session somebody at a door is talking to."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from wakeful.access import rules
from wakeful.vocabulary import proactive
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.proactive import ProactiveRules
from wakeful.vocabulary.queueing import QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.session_key import KeyKind, SessionKey


class DmScope(StrEnum):
    MAIN = "main"
    PER_PEER = "per-peer"
    PER_CHANNEL_PEER = "per-channel-peer"
    PER_ACCOUNT_CHANNEL_PEER = "per-account-channel-peer"


class Contact(Record):
    """Where somebody speaks: with a peer alone in a direct conversation, else in a room."""

    door: str
    account: str = ""
    peer: str = ""
    group: str = ""
    channel: str = ""
    thread: str = ""
    display_name: str = ""  # of the peer or room, for people; it names no session
    subject: str = ""  # what the room is about

    @property
    def is_room(self) -> bool:
        return bool(self.group or self.channel)

    @property
    def route(self) -> Route:
        """Where an answer goes."""
        address = self.group or self.channel or self.peer
        return Route(door=self.door, address=address, thread=self.thread, account=self.account)

    @property
    def dedup_scope(self) -> str:
        """Name whoever numbers the messages: a provider does it for each of its places."""
        place = msgspec.json.encode((self.account, self.peer, self.group, self.channel))
        return f"{self.door} {hashlib.sha256(place).hexdigest()[:32]}"


class Match(Record):
    """What a binding asks of a contact; an empty field asks nothing."""

    door: str
    account: str = ""
    peer: str = ""
    group: str = ""
    channel: str = ""


class Binding(Record):
    """A rule that sends what arrives at a door to an agent; a block given here replaces its."""

    match: Match
    agent: str = "main"
    queue: QueueOverrides | None = None
    proactive: ProactiveRules | None = None

    @property
    def id(self) -> str:
        """Name the binding by what it matches, so that its order in a file means nothing."""
        return hashlib.sha256(msgspec.json.encode(self.match)).hexdigest()[:16]


class BoundContact(Record):
    """Where a contact's messages go."""

    agent_id: str
    session_key: SessionKey
    binding_id: str | None = None

    @property
    def place(self) -> str:
        """The room or peer, which owns what strangers say there."""
        return keys.place_of(self.session_key)


class Bindings:
    """The bindings of a runtime, the most specific one first."""

    def __init__(
        self,
        bindings: Sequence[Binding] = (),
        *,
        default_agent: str = "main",
        dm_scope: DmScope = DmScope.MAIN,
        identity_links: Mapping[str, Sequence[str]] | None = None,
        is_unified: bool = False,
    ) -> None:
        self._by_id = {binding.id: binding for binding in bindings}
        if len(self._by_id) != len(bindings):
            raise InvalidInput("bindings", "two bindings match the same contacts")
        for position, binding in enumerate(bindings):
            if not binding.match.door:
                raise InvalidInput(f"bindings[{position}].match.door", "must not be empty")
            if binding.proactive is not None:
                proactive.checked(binding.proactive, f"bindings[{position}].proactive")
        self._ordered = sorted(bindings, key=lambda binding: _rank(binding.match))
        self.default_agent = default_agent
        self._dm_scope = dm_scope
        self._is_unified = is_unified
        self._links = {
            address.casefold(): canonical
            for canonical, addresses in (identity_links or {}).items()
            for address in addresses
        }

    def follow(self, other: "Bindings") -> None:
        """Resolve as another set of bindings does, from now on."""
        vars(self).update(vars(other))

    def __iter__(self) -> Iterator[Binding]:
        return iter(self._ordered)

    def get(self, binding_id: str | None) -> Binding | None:
        return None if binding_id is None else self._by_id.get(binding_id)

    def resolve(self, contact: Contact, *, is_operator: bool) -> BoundContact:
        """Return the agent and session of a contact: peer > room > account > door > default.

        Only the operator's direct messages may share a conversation, by `dm_scope`.
        """
        binding = next((b for b in self._ordered if _matches(b.match, contact)), None)
        agent_id = self.default_agent if binding is None else binding.agent
        scope = self._dm_scope if is_operator else _STRANGERS_SCOPES[self._dm_scope]
        return BoundContact(
            agent_id=agent_id,
            session_key=self._session_key(agent_id, contact, scope),
            binding_id=None if binding is None else binding.id,
        )

    def answering_session(self, key: SessionKey, owner: str) -> SessionKey:
        """Return the session whose turns answer what is said in this one.

        In unified mode the operator's web chats share one; other owners never share theirs.
        """
        if (
            not self._is_unified
            or not rules.sees_all(owner)
            or keys.parse(key).kind is not KeyKind.WEB
        ):
            return key
        return keys.unified(keys.agent_of(key))

    def _session_key(self, agent_id: str, contact: Contact, scope: DmScope) -> SessionKey:
        if contact.group:
            key = keys.room(agent_id, contact.door, "group", contact.group)
        elif contact.channel:
            key = keys.room(agent_id, contact.door, "channel", contact.channel)
        else:
            key = self._direct_key(agent_id, contact, scope)
        return keys.thread(key, contact.thread) if contact.thread else key

    def _direct_key(self, agent_id: str, contact: Contact, scope: DmScope) -> SessionKey:
        if scope is DmScope.MAIN:
            return keys.main(agent_id)
        linked = self._linked(contact)
        if linked is not None:
            return keys.direct(agent_id, linked)
        door, account = contact.door, contact.account or "default"
        match scope:
            case DmScope.PER_PEER:
                return keys.direct(agent_id, contact.peer)
            case DmScope.PER_CHANNEL_PEER:
                return keys.direct(agent_id, contact.peer, door=door)
            case DmScope.PER_ACCOUNT_CHANNEL_PEER:
                return keys.direct(agent_id, contact.peer, door=door, account=account)

    def _linked(self, contact: Contact) -> str | None:
        """Return the one name of a peer that is known under several addresses."""
        if not contact.peer:
            return None
        prefix, peer = f"{contact.door}:".casefold(), contact.peer.casefold()
        bare = peer.removeprefix(prefix)
        return next(
            (self._links[name] for name in (prefix + bare, peer, bare) if name in self._links), None
        )


# What would merge several peers, or the same name at several doors, is for the operator alone.
_STRANGERS_SCOPES: dict[DmScope, DmScope] = {
    DmScope.MAIN: DmScope.PER_CHANNEL_PEER,
    DmScope.PER_PEER: DmScope.PER_CHANNEL_PEER,
    DmScope.PER_CHANNEL_PEER: DmScope.PER_CHANNEL_PEER,
    DmScope.PER_ACCOUNT_CHANNEL_PEER: DmScope.PER_ACCOUNT_CHANNEL_PEER,
}


def _rank(match: Match) -> tuple[bool, bool, bool]:
    return (not match.peer, not (match.group or match.channel), not match.account)


def _matches(match: Match, contact: Contact) -> bool:
    return all(
        not wanted or wanted == getattr(contact, field)
        for field, wanted in msgspec.structs.asdict(match).items()
    )
