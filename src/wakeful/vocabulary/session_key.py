"""The grammar of session keys; nothing else builds or splits them.

`agent:{agent_id}:{rest}`, all lower case. Identifiers that come from outside are escaped, so that
no colon, slash, capital or control character in them can forge another key, and unescaping gives
them back.
"""

import re
from typing import NewType

from wakeful.vocabulary.errors import InvalidInput

SessionKey = NewType("SessionKey", str)

LONGEST_KEY = 1024  # bytes; an index entry of PostgreSQL holds 2.7 kB
ACTIVITY_ALIAS = "system:activity"

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-@+.")
_SEGMENT = re.compile(r"(?:[a-z0-9_@+.-]|~[0-9a-f]{2})+|~")
_KEY = re.compile(rf"agent:{_AGENT_ID.pattern}(?::(?:{_SEGMENT.pattern}))+")
_THREAD = ":thread:"


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

    `main` and other short forms mean a session of the default agent.
    """
    if key == ACTIVITY_ALIAS:
        return build(default_agent, "activity")
    text = key if key.startswith("agent:") else f"agent:{default_agent}:{key}"
    if len(text) <= LONGEST_KEY and _KEY.fullmatch(text):
        return SessionKey(text)
    # Something is wrong with it: say what.
    checked_agent_id(text.removeprefix("agent:").partition(":")[0], field)
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST_KEY:
        raise InvalidInput(field, f"must be at most {LONGEST_KEY} bytes")
    raise InvalidInput(
        field,
        "must be 'agent:{agent_id}:{rest}' in lower case, other characters escaped as ~xx, "
        f"not {key[:120]!r}",
    )


def build(agent_id: str, *segments: str) -> SessionKey:
    """Return the key of a session of this agent from words of the grammar and escaped ids."""
    key = ":".join(("agent", checked_agent_id(agent_id), *segments))
    if len(key) > LONGEST_KEY:
        raise InvalidInput("session_key", f"must be at most {LONGEST_KEY} bytes")
    return SessionKey(key)


def main(agent_id: str) -> SessionKey:
    return build(agent_id, "main")


def activity(agent_id: str) -> SessionKey:
    return build(agent_id, "activity")


def room(agent_id: str, door: str, kind: str, identifier: str) -> SessionKey:
    """Return the key of a group or channel; never shared with a direct conversation."""
    return build(agent_id, escape(door), kind, escape(identifier))


def direct(agent_id: str, peer: str, *, door: str = "", account: str = "") -> SessionKey:
    """Return the key of a direct conversation, as narrow as the arguments that are given."""
    scope = tuple(escape(part) for part in (door, account) if part)
    return build(agent_id, *scope, "dm", escape(peer))


def thread(parent: SessionKey, identifier: str) -> SessionKey:
    return SessionKey(f"{parent}{_THREAD}{escape(identifier)}")


def parent(key: SessionKey) -> SessionKey | None:
    """Return the session a thread belongs to, or None."""
    head, found, _ = key.rpartition(_THREAD)
    return SessionKey(head) if found else None


def agent_of(key: str) -> str:
    return key.split(":", 2)[1]


def rest_of(key: str) -> str:
    return key.split(":", 2)[2]


def pool_of(key: str) -> str:
    """Name the pool of lanes that this session's turns run in."""
    kind = rest_of(key).partition(":")[0]
    return kind if kind in ("subagent", "automation") else "main"
