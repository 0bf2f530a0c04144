"""The grammar of session keys; nothing else builds or splits them.

`agent:{agent_id}:{rest}`, all lower case. Identifiers that come from outside are escaped, so that
no colon, slash, capital or control character in them can forge another key, and parsing gives
them back. A word of the grammar that names a door or an account is escaped, too.
"""

import re
from enum import StrEnum
from typing import Literal, NewType

from msgspec.structs import replace

from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record

SessionKey = NewType("SessionKey", str)
ChatType = Literal["direct", "group", "channel"]

LONGEST_KEY = 1024  # bytes; an index entry of PostgreSQL holds 2.7 kB
ACTIVITY_ALIAS = "system:activity"

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-@+.")
_SEGMENT = re.compile(r"(?:[a-z0-9_@+.-]|~[0-9a-f]{2})+|~")
_KEY = re.compile(rf"agent:{_AGENT_ID.pattern}(?::(?!\.+(?::|\Z))(?:{_SEGMENT.pattern}))+")
_THREAD = "thread"


class KeyKind(StrEnum):
    """What a session is for; each is a word of the grammar, but for `other`."""

    MAIN = "main"
    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"
    SUBAGENT = "subagent"
    AUTOMATION = "automation"
    ACTIVITY = "activity"
    UNIFIED = "unified"
    WEB = "web"
    OTHER = "other"  # a name of the caller's choice


_ALONE = frozenset({KeyKind.MAIN, KeyKind.ACTIVITY, KeyKind.UNIFIED})
_NUMBERED = frozenset({KeyKind.SUBAGENT, KeyKind.AUTOMATION, KeyKind.WEB})
_ROOMS = frozenset({KeyKind.GROUP, KeyKind.CHANNEL})
_WORDS = frozenset(KeyKind) - {KeyKind.OTHER} | {_THREAD}


class KeyParts(Record):
    """What a key says, its identifiers as they were before they were escaped."""

    agent_id: str
    kind: KeyKind
    door: str = ""
    account: str = ""
    id: str = ""  # of the peer, the room, the run, the job or the chat
    threads: tuple[str, ...] = ()  # the outermost first
    words: tuple[str, ...] = ()  # of a name of the caller's choice, as they stand in the key

    @property
    def chat_type(self) -> ChatType:
        match self.kind:
            case KeyKind.GROUP:
                return "group"
            case KeyKind.CHANNEL:
                return "channel"
            case _:
                return "direct"

    @property
    def key(self) -> SessionKey:
        """The key that these are the parts of."""
        threads = (word for one in self.threads for word in (_THREAD, escape(one)))
        return build(self.agent_id, *self._base(), *threads)

    def _base(self) -> tuple[str, ...]:
        if self.kind is KeyKind.OTHER:
            return self.words
        if self.kind in _ALONE:
            return (self.kind,)
        is_room = self.kind in _ROOMS
        scope = (_escape_name(self.door),) if is_room else _scope(self.door, self.account)
        return (*scope, self.kind, escape(self.id))


def escape(identifier: str) -> str:
    """Return an identifier as one segment of a key."""
    if not identifier:
        return "~"
    raw = identifier.encode("utf-8", "surrogatepass")
    # A segment of dots alone would read as a path.
    plain = _PLAIN - set(b".") if identifier.strip(".") == "" else _PLAIN
    return "".join(chr(byte) if byte in plain else f"~{byte:02x}" for byte in raw)


def unescape(segment: str) -> str:
    """Return the identifier that `escape` made into this segment."""
    if segment == "~":
        return ""
    parts = re.split(r"~([0-9a-f]{2})", segment)
    raw = b"".join(
        bytes([int(part, 16)]) if odd % 2 else part.encode() for odd, part in enumerate(parts)
    )
    return raw.decode("utf-8", "surrogatepass")


def checked_agent_id(agent_id: str, field: str = "agent_id") -> str:
    """Return a valid agent id or refuse it."""
    if not _AGENT_ID.fullmatch(agent_id):
        raise InvalidInput(
            field,
            "must be 1 to 64 of a-z, 0-9, '_' and '-', starting with a letter or digit, "
            f"not {agent_id[:80]!r}",
        )
    return agent_id


def canonical(key: str, default_agent: str = "main", field: str = "session_key") -> SessionKey:
    """Return the key that a caller's words name, or refuse them.

    `main` and other short forms mean a session of the default agent. What is not escaped as
    `escape` does it is refused: no session has two names.
    """
    if key == ACTIVITY_ALIAS:
        return build(default_agent, KeyKind.ACTIVITY)
    text = key if key.startswith("agent:") else f"agent:{default_agent}:{key}"
    # Most keys need no more than this; it is asked for every stimulus.
    if "~" not in text and len(text) <= LONGEST_KEY and _KEY.fullmatch(text):
        return SessionKey(text)
    head, _, rest = text.removeprefix("agent:").partition(":")
    checked_agent_id(head, field)
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST_KEY:
        raise InvalidInput(field, f"must be at most {LONGEST_KEY} bytes")
    if not rest or not all(map(_is_segment, rest.split(":"))):
        raise InvalidInput(
            field,
            "must be 'agent:{agent_id}:{rest}' in lower case, other characters escaped as ~xx, "
            f"not {key[:120]!r}",
        )
    return SessionKey(text)


def build(agent_id: str, *segments: str) -> SessionKey:
    """Return the key of a session of this agent from words of the grammar and escaped ids."""
    key = ":".join(("agent", checked_agent_id(agent_id), *segments))
    if len(key) > LONGEST_KEY:
        raise InvalidInput("session_key", f"must be at most {LONGEST_KEY} bytes, not {len(key)}")
    return SessionKey(key)


def parse(key: SessionKey) -> KeyParts:
    """Return what a canonical key says; `parse(key).key` is the key again."""
    _, agent_id, *segments = key.split(":")
    base, threads = list(segments), list[str]()
    while len(base) > 2 and base[-2] == _THREAD:
        threads.insert(0, unescape(base[-1]))
        del base[-2:]
    found = replace(_parse_base(agent_id, base), threads=tuple(threads))
    if found.key == key:
        return found
    # It looks like another key, but no door would have built it.
    return KeyParts(agent_id=agent_id, kind=KeyKind.OTHER, words=tuple(segments))


def _parse_base(agent_id: str, segments: list[str]) -> KeyParts:
    match segments:
        case [word] if word in _ALONE:
            return KeyParts(agent_id=agent_id, kind=KeyKind(word))
        case [word, id] if word in _NUMBERED or word == KeyKind.DM:
            return KeyParts(agent_id=agent_id, kind=KeyKind(word), id=unescape(id))
        case [door, word, id] if word in _ROOMS or word == KeyKind.DM:
            door, id = unescape(door), unescape(id)
            return KeyParts(agent_id=agent_id, kind=KeyKind(word), door=door, id=id)
        case [door, account, KeyKind.DM, id]:
            door, account, id = unescape(door), unescape(account), unescape(id)
            return KeyParts(agent_id=agent_id, kind=KeyKind.DM, door=door, account=account, id=id)
        case _:
            return KeyParts(agent_id=agent_id, kind=KeyKind.OTHER, words=tuple(segments))


def main(agent_id: str) -> SessionKey:
    return build(agent_id, KeyKind.MAIN)


def activity(agent_id: str) -> SessionKey:
    return build(agent_id, KeyKind.ACTIVITY)


def is_activity(key: str) -> bool:
    """Tell whether a session is the one in which everything lands that has no other."""
    return rest_of(key) == KeyKind.ACTIVITY


def unified(agent_id: str) -> SessionKey:
    return build(agent_id, KeyKind.UNIFIED)


def web(agent_id: str, chat: str) -> SessionKey:
    return build(agent_id, KeyKind.WEB, escape(chat))


def subagent(agent_id: str, run: str) -> SessionKey:
    return build(agent_id, KeyKind.SUBAGENT, escape(run))


def automation(agent_id: str, job_id: str) -> SessionKey:
    return build(agent_id, KeyKind.AUTOMATION, escape(job_id))


def room(agent_id: str, door: str, kind: str, identifier: str) -> SessionKey:
    """Return the key of a group or channel; never shared with a direct conversation."""
    return build(agent_id, _escape_name(door), kind, escape(identifier))


def direct(agent_id: str, peer: str, *, door: str = "", account: str = "") -> SessionKey:
    """Return the key of a direct conversation, as narrow as the arguments that are given."""
    return build(agent_id, *_scope(door, account), KeyKind.DM, escape(peer))


def thread(parent: SessionKey, identifier: str) -> SessionKey:
    _, agent_id, rest = parent.split(":", 2)
    return build(agent_id, rest, _THREAD, escape(identifier))


def parent(key: SessionKey) -> SessionKey | None:
    """Return the session a thread belongs to, or None."""
    parts = parse(key)
    return replace(parts, threads=parts.threads[:-1]).key if parts.threads else None


def place_of(key: SessionKey) -> str:
    """Name the room, peer or chat that a session is with, whichever agent and thread it is."""
    return rest_of(replace(parse(key), threads=()).key)


def agent_of(key: str) -> str:
    return key.split(":", 2)[1]


def rest_of(key: str) -> str:
    return key.split(":", 2)[2]


def pool_of(key: str) -> str:
    """Name the pool of lanes that this session's turns run in."""
    kind = rest_of(key).partition(":")[0]
    return kind if kind in (KeyKind.SUBAGENT, KeyKind.AUTOMATION) else "main"


def _escape_name(name: str) -> str:
    """Return a door or an account as a segment that is no word of the grammar."""
    return f"~{ord(name[0]):02x}{name[1:]}" if name in _WORDS else escape(name)


def _scope(door: str, account: str) -> tuple[str, ...]:
    """Return what stands before `dm`: an account belongs to a door."""
    return tuple(_escape_name(part) for part in (door, account if door else "") if part)


def _is_segment(text: str) -> bool:
    """Tell whether a segment is one that `escape` gives for some identifier."""
    if not _SEGMENT.fullmatch(text):
        return False
    if "~" not in text:
        return text.strip(".") != ""
    try:
        identifier = unescape(text)
    except UnicodeDecodeError:
        return False
    return text in (escape(identifier), _escape_name(identifier))
