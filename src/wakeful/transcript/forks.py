"""Forks: a new path from any entry, in the same session or in a new one; no row is copied."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from wakeful.store.database import Row, Store, Tx
from wakeful.transcript import branches, entries, resets
from wakeful.transcript.branches import Branch
from wakeful.transcript.sessions import Session
from wakeful.vocabulary.entry import CompactionBody, Entry
from wakeful.vocabulary.errors import InvalidInput, NotFound

MOST_BRANCHES = 1_000  # of one conversation; each view of it looks at all of them

SHORTEST_NAME = 4  # characters of an id that are enough, if no other entry's begins so

_SHORT = re.compile(r"[0-9a-f]{8}")
_TRANSCRIPTS = (
    "SELECT transcript_id FROM sessions WHERE key = :key "
    "UNION SELECT id FROM past_transcripts WHERE session_key = :key"
)
_CALLED = (
    "SELECT id FROM entries WHERE id >= :first AND id < :end AND "  # noqa: S608 (ours)
    f"transcript_id IN ({_TRANSCRIPTS}) ORDER BY id LIMIT 2"
)
# Looks at every entry of the session's transcripts: asked by people alone, and off the writer.
_CALLED_ELSEWHERE = (
    "SELECT id FROM entries LEFT JOIN entry_lines ON entry_id = id "  # noqa: S608 (ours)
    f"WHERE branch IN ({_TRANSCRIPTS} UNION SELECT id FROM branches "
    f"WHERE transcript_id IN ({_TRANSCRIPTS})) "
    "AND (name = :name OR (name IS NULL AND id LIKE :ending)) ORDER BY id LIMIT 2"
)


async def entry_called(store: Store, session_key: str, name: str) -> str:
    """Return the id of the entry that somebody means: by its id, the beginning of it, or what it
    is called in a file of the session; a name that means none is returned as it is.
    """
    if len(name.removeprefix("en_")) < SHORTEST_NAME:
        return name
    if await store.read("SELECT 1 FROM entries WHERE id = :id", id=name):
        return name
    rows: Sequence[Row] = ()
    if not name.startswith("en_"):
        ending = f"%{name}" if _SHORT.fullmatch(name) else ""
        rows = await store.read(_CALLED_ELSEWHERE, key=session_key, name=name, ending=ending)
    if not rows:
        start = f"en_{name.removeprefix('en_')}"
        rows = await store.read(_CALLED, key=session_key, first=start, end=f"{start}g")
    if len(rows) > 1:
        raise InvalidInput("at", f"several entries are called {name[:80]!r}: say more of its id")
    return rows[0][0] if rows else name


def fork_point(tx: Tx, session: Session, entry_id: str) -> Entry:
    """Return an entry of one of the session's transcripts, whichever branch it is on."""
    entry = entries.get(tx, entry_id)
    if entry is not None:
        known = {session.transcript_id, *(past.id for past in resets.of_session(tx, session.key))}
        if entry.transcript_id in known and _is_own(tx, session, entry):
            return entry
    raise NotFound("at", f"no entry {entry_id[:80]!r} in this session")


def onto_branch(tx: Tx, session: Session, at: Entry, branch_id: str) -> Session:
    """Return the session as it goes on from an entry, and write down its new branch.

    The caller holds the lane's lock, no turn is open, and the caller writes the session's row.
    """
    transcript_id = at.transcript_id
    if branches.count(tx, transcript_id, session.key) >= MOST_BRANCHES:
        rule = f"this conversation has {MOST_BRANCHES} branches; fork it into a session of its own"
        raise InvalidInput("at", rule)
    branches.add(
        tx,
        Branch(
            id=transcript_id,
            transcript_id=transcript_id,
            session_key=_beginner(tx, transcript_id) or session.key,
            parent=None,
            fork_depth=-1,
            created_at=tx.now,
        ),
    )
    branches.add(
        tx,
        Branch(
            id=branch_id,
            transcript_id=transcript_id,
            session_key=session.key,
            parent=at.branch,
            fork_depth=at.depth,
            created_at=tx.now,
        ),
    )
    moved = replace(
        session,
        transcript_id=transcript_id,
        branch=branch_id,
        fork_depth=at.depth,
        leaf_id=at.id,
        leaf_depth=at.depth,
        leaf_hash=at.hash,
        seen_depth=min(session.seen_depth, at.depth),
        flushed_cycle=None,
        failed_compactions=0,
        context_tokens=0,
    )
    moved = replace(moved, unread=entries.count_heard(tx, moved, moved.seen_depth))
    return _with_context(tx, moved)


def inherit(tx: Tx, session: Session) -> None:
    """Keep what a session that forked off takes over from others: there it is found, too."""
    tx.many(
        "INSERT INTO inherited_branches (session_key, branch, last_depth) "
        "VALUES (:session_key, :branch, :last_depth) ON CONFLICT DO NOTHING",
        [
            {"session_key": session.key, "branch": part.branch, "last_depth": part.last}
            for part in entries.segments_of(tx, session)
        ],
    )


def copy_of(session: Session, key: str, owner: str, now: int) -> Session:
    """Return a new session that begins as another one is, but for its words and its people.

    It is whose it will be, not who made the other one: that one must not hear what is said here.
    """
    return Session(
        key=key,
        agent_id=session.agent_id,
        binding=session.binding,
        queue=session.queue,
        overrides=session.overrides,
        owner=owner,
        parent=session.key,
        parent_kind="fork",
        created_at=now,
        started_at=now,
        transcript_id=session.transcript_id,
        branch=session.branch,
        seen_depth=session.leaf_depth,
    )


def _with_context(tx: Tx, session: Session) -> Session:
    """Find out from which entry on the model sees a path that somebody else may have compacted."""
    compaction = entries.last_compaction(tx, entries.segments_of(tx, session))
    if compaction is None:
        return replace(session, context_from=0, cycle="")
    body = _body(compaction)
    cycle = compaction.id
    if body.undoes is not None:  # then the cycle is that of the view which came back
        undone = entries.get(tx, body.undoes)
        cycle = (None if undone is None else _body(undone).previous) or ""
    return replace(session, context_from=body.first_kept_depth, cycle=cycle)


def _body(compaction: Entry) -> CompactionBody:
    body = compaction.content()
    assert isinstance(body, CompactionBody)
    return body


def _is_own(tx: Tx, session: Session, entry: Entry) -> bool:
    """Tell whether an entry is on a path or on a branch of this session."""
    rows = branches.of_transcript(tx, entry.transcript_id)
    if branches.beginner(rows) in (None, session.key) and entry.branch == entry.transcript_id:
        return True
    if entry.branch in [row.id for row in branches.owned(rows, session.key)]:
        return True
    tips = [session, *resets.of_session(tx, session.key)]
    return any(
        entries.is_on(
            entry,
            branches.segments(tx, tip.branch, fork_depth=tip.fork_depth, leaf_depth=tip.leaf_depth),
        )
        for tip in tips
    )


def _beginner(tx: Tx, transcript_id: str) -> str | None:
    """Return the session that began a transcript, as long as no fork made more of it."""
    row = tx.one(
        "SELECT key FROM sessions WHERE transcript_id = :id UNION "
        "SELECT session_key FROM past_transcripts WHERE id = :id ORDER BY 1 LIMIT 1",
        id=transcript_id,
    )
    return None if row is None else row[0]
