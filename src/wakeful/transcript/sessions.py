"""Session rows: small, one per key, pointing at the newest entry."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary.message import Usage
from wakeful.vocabulary.queueing import NO_OVERRIDES, QueueOverrides
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.route import Route
from wakeful.vocabulary.stimulus import OPERATOR

ResponseUsage = Literal["off", "tokens", "full"]


class Reset(Record):
    """A new transcript begins with whatever was accepted from a number of the lane on."""

    from_seq: int
    by: str  # the command or the rule


class SessionPolicy(Record):
    """What accepting a stimulus must know of a session."""

    key: str
    agent_id: str
    binding: str | None = None  # that opened it
    route: Route | None = None  # of the last human message
    queue: QueueOverrides = NO_OVERRIDES
    owner: str = OPERATOR  # who made it
    last_human_at: int | None = None
    display_name: str | None = None  # of the peer or room, as its door told last
    subject: str | None = None
    resets: tuple[Reset, ...] = ()  # that wait for the turn of what they begin with


class Overrides(Record):
    """What somebody chose for one session, in place of its agent's configuration."""

    model: str | None = None
    thinking: str | None = None
    send_policy: Literal["allow", "deny"] | None = None  # deny: nothing is sent from here
    activation: Literal["mention", "always"] | None = None  # which messages of a room count
    response_usage: ResponseUsage | None = None  # with which replies end that are delivered


NOTHING_CHOSEN = Overrides()

# What somebody chose for a session, and whether it holds for its next conversation, too.
KEPT_BY_RESET: dict[str, bool] = {
    "label": True,
    "queue": True,
    "model": True,
    "thinking": False,  # chosen for the question at hand
    "send_policy": True,
    "activation": True,
    "response_usage": True,
}


class Session(SessionPolicy):
    """One conversation."""

    transcript_id: str
    branch: str
    leaf_id: str | None = None
    leaf_depth: int = -1
    leaf_hash: str = ""
    context_from: int = 0
    created_at: int
    started_at: int
    last_write_at: int | None = None
    stopped_note: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    parent: str | None = None  # the session it came of
    parent_kind: Literal["thread", "fork", "spawn"] | None = None
    label: str | None = None
    overrides: Overrides = NOTHING_CHOSEN
    fork_depth: int = -1  # entries up to this depth lie on the branches before this one
    seen_depth: int = -1  # up to which people have read
    unread: int = 0  # what the agent said to people since then
    cycle: str = ""  # the entry of the last compaction
    flushed_cycle: str | None = None  # whose memories are written down
    compactions: int = 0
    failed_compactions: int = 0  # in this cycle
    context_tokens: int = 0  # as last known
    last_heartbeat_text: str | None = None  # what people were told by one
    last_heartbeat_sent_at: int | None = None


SESSIONS = RowTable("sessions", Session)
POLICIES = RowTable("sessions", SessionPolicy)
DELETED = "sessions.gone"  # a session is gone: its key

_overrides = msgspec.json.Decoder(Overrides)
_MOVED = (
    *("transcript_id", "branch", "leaf_id", "leaf_depth", "leaf_hash", "context_from"),
    *(
        "started_at",
        "fork_depth",
        "seen_depth",
        "unread",
        "stopped_note",
        "label",
        "queue",
        "overrides",
    ),
    *("resets", "input_tokens", "output_tokens", "cost", "cycle", "flushed_cycle"),
    *("compactions", "failed_compactions", "context_tokens"),
)
_CHANGES = ", ".join(f"{name} = :{name}" for name in _MOVED)
_BEGIN = f"UPDATE sessions SET {_CHANGES} WHERE key = :key"  # noqa: S608 (names of ours)


def add_missing(tx: Tx, sessions: Sequence[Session]) -> None:
    tx.many(f"{SESSIONS.insert} ON CONFLICT DO NOTHING", [SESSIONS.params(row) for row in sessions])


def get(tx: Tx, key: str) -> Session | None:
    row = tx.one(SESSIONS.select("WHERE key = :key"), key=key)
    return None if row is None else SESSIONS.read(row)


def get_partly(tx: Tx, key: str) -> Session | None:
    """Return a session for whoever removes it: what cannot be read of it is None."""
    row = tx.one(SESSIONS.select("WHERE key = :key"), key=key)
    return None if row is None else SESSIONS.read_partly(row)


def policies(tx: Tx, keys: Sequence[str]) -> dict[str, SessionPolicy]:
    rows = tx.all(POLICIES.select("WHERE key IN :keys"), keys=list(keys))
    return {row[0]: POLICIES.read(row) for row in rows}


def note_heartbeat(tx: Tx, key: str, text: str, now: int) -> None:
    """Keep what people were told by a heartbeat: the same is not told again for a day."""
    tx.run(
        "UPDATE sessions SET last_heartbeat_text = :text, last_heartbeat_sent_at = :now "
        "WHERE key = :key",
        key=key,
        text=text,
        now=now,
    )


def note_spoken(tx: Tx, sessions: Sequence[SessionPolicy]) -> None:
    """Keep where answers go since somebody spoke in these sessions, when a person did last, and
    what their doors call them.
    """
    names = ("key", "route", "last_human_at", "display_name", "subject")
    tx.many(
        "UPDATE sessions SET last_human_at = :last_human_at, route = :route, "
        "display_name = :display_name, subject = :subject WHERE key = :key",
        [{name: params[name] for name in names} for params in map(POLICIES.params, sessions)],
    )


def move_leaf(tx: Tx, session: Session) -> None:
    """Keep where the newest entry is; called by the one function that appends."""
    tx.run(
        "UPDATE sessions SET leaf_id = :leaf_id, leaf_depth = :leaf_depth, leaf_hash = :leaf_hash, "
        "unread = :unread, last_write_at = :now WHERE key = :key",
        key=session.key,
        leaf_id=session.leaf_id,
        leaf_depth=session.leaf_depth,
        leaf_hash=session.leaf_hash,
        unread=session.unread,
        now=tx.now,
    )


def set_resets(tx: Tx, key: str, resets: Sequence[Reset]) -> None:
    tx.run(
        "UPDATE sessions SET resets = :resets WHERE key = :key",
        key=key,
        resets=msgspec.json.encode(resets).decode(),
    )


def begin(tx: Tx, session: Session) -> None:
    """Keep that a session goes on elsewhere: in another transcript, or on another branch."""
    tx.run(_BEGIN, **SESSIONS.params(session))


def choose(tx: Tx, session: Session) -> None:
    """Keep what somebody chose for a session."""
    params = SESSIONS.params(session)
    tx.run(
        "UPDATE sessions SET label = :label, queue = :queue, overrides = :overrides "
        "WHERE key = :key",
        **{name: params[name] for name in ("key", "label", "queue", "overrides")},
    )


def note_seen(tx: Tx, session: Session) -> None:
    """Keep up to which entry people have read, and how much they have not."""
    tx.run(
        "UPDATE sessions SET seen_depth = :depth, unread = :unread WHERE key = :key",
        key=session.key,
        depth=session.seen_depth,
        unread=session.unread,
    )


def may_send(tx: Tx, key: str) -> bool:
    """Tell whether anything may be sent from a session; nothing if its choice cannot be read."""
    row = tx.one("SELECT overrides FROM sessions WHERE key = :key", key=key)
    try:
        chosen = NOTHING_CHOSEN if row is None else _overrides.decode(row[0])
    except msgspec.DecodeError:
        return False
    return chosen.send_policy != "deny"


def remove(tx: Tx, session: Session) -> None:
    """Remove a session's row; what the ledgers say of it stays its owner's."""
    tx.run("DELETE FROM sessions WHERE key = :key", key=session.key)
    tx.run("DELETE FROM inherited_branches WHERE session_key = :key", key=session.key)
    tx.run("DELETE FROM overheard WHERE session_key = :key", key=session.key)
    tx.run(
        "INSERT INTO deleted_sessions (key, owner, deleted_at) VALUES (:key, :owner, :now) "
        "ON CONFLICT (key) DO UPDATE SET owner = :owner, deleted_at = :now",
        key=session.key,
        owner=session.owner,
        now=tx.now,
    )
    tx.notify(DELETED, session.key)


def past_owners(tx: Tx, keys: Sequence[str]) -> dict[str, str]:
    """Return whose the sessions were that had these keys and were deleted."""
    rows = tx.all("SELECT key, owner FROM deleted_sessions WHERE key IN :keys", keys=list(keys))
    return {row[0]: row[1] for row in rows}


# Sessions that were deleted before an instant, by page.
DELETED_BEFORE = (
    "SELECT key FROM deleted_sessions WHERE key > :after AND deleted_at < :before "
    "ORDER BY key LIMIT :limit"
)


def forget_deleted(tx: Tx, keys: Sequence[str]) -> None:
    """Forget whose these sessions were: their names are free for anybody."""
    tx.run("DELETE FROM deleted_sessions WHERE key IN :keys", keys=list(keys))


def note_stopped(tx: Tx, key: str, is_stopped: bool) -> None:
    """Remember that the next prompt must say the last turn was stopped, or that it has."""
    tx.run(
        "UPDATE sessions SET stopped_note = :note WHERE key = :key", key=key, note=int(is_stopped)
    )


# The columns of one change.
def note_compaction(
    tx: Tx, key: str, *, context_from: int, cycle: str, tokens: int, by: int = 1
) -> None:
    """Keep that a conversation was compacted, or restored: what the model sees, and the cycle."""
    tx.run(
        "UPDATE sessions SET context_from = :context_from, cycle = :cycle, "
        "compactions = compactions + :by, failed_compactions = 0, context_tokens = :tokens "
        "WHERE key = :key",
        key=key,
        context_from=context_from,
        cycle=cycle,
        tokens=tokens,
        by=by,
    )


def note_failed_compaction(tx: Tx, key: str) -> None:
    tx.run(
        "UPDATE sessions SET failed_compactions = failed_compactions + 1 WHERE key = :key", key=key
    )


def note_flush(tx: Tx, key: str, cycle: str) -> None:
    """Keep that memories of this cycle were asked for."""
    tx.run("UPDATE sessions SET flushed_cycle = :cycle WHERE key = :key", key=key, cycle=cycle)


def add_usage(tx: Tx, key: str, usage: Usage, context_tokens: int | None) -> None:
    """Count what a reply used; None leaves the size of the conversation as it was known."""
    tx.run(
        "UPDATE sessions SET input_tokens = input_tokens + :input, "
        "output_tokens = output_tokens + :output, cost = cost + :cost, "
        "context_tokens = COALESCE(CAST(:context_tokens AS BIGINT), context_tokens) "
        "WHERE key = :key",
        key=key,
        context_tokens=context_tokens,
        input=usage.input,
        output=usage.output,
        cost=usage.cost or 0.0,
    )
