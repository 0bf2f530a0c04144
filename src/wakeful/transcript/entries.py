"""Entries: appended at the leaf, read by range, never changed."""

from collections.abc import Sequence

from msgspec import structs

from wakeful import attachments
from wakeful.store.database import Row, Store, Tx
from wakeful.store.rows import RowTable
from wakeful.transcript import branches, sessions
from wakeful.transcript.branches import Segment
from wakeful.transcript.sessions import Session
from wakeful.vocabulary.entry import (
    POST_TOPIC,
    AssistantBody,
    Body,
    Entry,
    EntryKind,
    NoteBody,
    attachments_of,
    chain,
    encode_body,
)
from wakeful.vocabulary.record import Record

ENTRIES = RowTable("entries", Entry)
APPENDED = "entry.appended"  # a branch has new entries: its id
READ_AT_ONCE = 5_000  # rows of one read that is none of the writer's

_OF_SEGMENT = "WHERE branch = :branch AND depth >= :first AND depth <= :last"
_STRETCH = ENTRIES.select(f"{_OF_SEGMENT} ORDER BY depth")
_STRETCH_OF_TURN = ENTRIES.select(f"{_OF_SEGMENT} AND turn_id = :turn_id ORDER BY depth")


_HEARD_KINDS = frozenset({EntryKind.MESSAGE, EntryKind.CUSTOM_MESSAGE})
MOST_COUNTED = 1000  # entries that are looked at to count what is unread


class NewEntry(Record):
    """An entry that is about to be written."""

    id: str
    kind: EntryKind
    body: Body
    turn_id: str | None = None
    stimulus_id: str | None = None
    epoch: int = 0


def append(tx: Tx, session: Session, lines: Sequence[NewEntry]) -> tuple[Session, list[Entry]]:
    """Write lines after the session's leaf and return the session as it is then.

    The caller holds the lane's lock and read `session` in this transaction.
    """
    if not lines:
        return session, []
    written: list[Entry] = []
    parent_id, depth, last_hash = session.leaf_id, session.leaf_depth, session.leaf_hash
    for line in lines:
        depth += 1
        body = encode_body(line.body).decode()
        last_hash = chain(last_hash, line.id, line.kind, body)
        written.append(
            Entry(
                id=line.id,
                transcript_id=session.transcript_id,
                branch=session.branch,
                depth=depth,
                parent_id=parent_id,
                turn_id=line.turn_id,
                stimulus_id=line.stimulus_id,
                epoch=line.epoch,
                kind=line.kind,
                at=tx.now,
                body=body,
                hash=last_hash,
            )
        )
        parent_id = line.id
    tx.many(ENTRIES.insert, [ENTRIES.params(entry) for entry in written])
    attachments.hold(
        tx, [(one.id, kept.hash) for one in lines for kept in attachments_of(one.body)]
    )
    heard = sum(is_heard(line.body) for line in lines)
    session = structs.replace(
        session,
        leaf_id=parent_id,
        leaf_depth=depth,
        leaf_hash=last_hash,
        unread=session.unread + heard,
    )
    sessions.move_leaf(tx, session)
    tx.notify(APPENDED, session.branch)
    return session, written


def is_heard(body: Body) -> bool:
    """Tell whether an entry is something that the agent said to people."""
    if isinstance(body, NoteBody):
        return body.topic == POST_TOPIC
    return isinstance(body, AssistantBody) and not body.is_silent and bool(body.message.text)


def count_heard(tx: Tx, session: Session, after_depth: int) -> int:
    """Return how much of the session's path below a depth was said to people.

    No more than the newest entries are looked at.
    """
    first = max(after_depth, session.leaf_depth - MOST_COUNTED)
    return sum(
        is_heard(entry.content())
        for entry in path(tx, session, first)
        if entry.kind in _HEARD_KINDS
    )


def get(tx: Tx, entry_id: str) -> Entry | None:
    row = tx.one(ENTRIES.select("WHERE id = :id"), id=entry_id)
    return None if row is None else ENTRIES.read(row)


def path(tx: Tx, session: Session, after_depth: int) -> list[Entry]:
    """Return the entries of the session's path below `after_depth`, oldest first."""
    return [
        ENTRIES.read(row)
        for segment in segments_of(tx, session, after_depth)
        for row in tx.all(_STRETCH, **structs.asdict(segment))
    ]


def path_of_turn(tx: Tx, session: Session, turn_id: str) -> list[Entry]:
    """Return the entries of one turn on the session's path, as far as a model sees it."""
    return [
        ENTRIES.read(row)
        for segment in segments_of(tx, session, session.context_from - 1)
        for row in tx.all(_STRETCH_OF_TURN, turn_id=turn_id, **structs.asdict(segment))
    ]


async def read_path(store: Store, path: Sequence[Segment]) -> list[Row]:
    """Return the rows of a path without keeping the writer from anybody; `decoded` reads them.

    What lies on a path is never changed: no more than its end may have moved meanwhile.
    """
    found: list[Row] = []
    for segment in path:
        for first in range(segment.first, segment.last + 1, READ_AT_ONCE):
            last = min(first + READ_AT_ONCE - 1, segment.last)
            found += await store.read(_STRETCH, branch=segment.branch, first=first, last=last)
    return found


def decoded(rows: Sequence[Row]) -> list[Entry]:
    return [ENTRIES.read(row) for row in rows]


def segments_of(tx: Tx, session: Session, after_depth: int = -1) -> list[Segment]:
    return branches.segments(
        tx,
        session.branch,
        fork_depth=session.fork_depth,
        leaf_depth=session.leaf_depth,
        after=after_depth,
    )


def is_on(entry: Entry, path: Sequence[Segment]) -> bool:
    """Tell whether an entry lies on a path."""
    return any(
        entry.branch == segment.branch and segment.first <= entry.depth <= segment.last
        for segment in path
    )


def last_compaction(tx: Tx, path: Sequence[Segment]) -> Entry | None:
    """Return the compaction that counts for the context of a path."""
    for segment in reversed(path):
        row = tx.one(
            ENTRIES.select(
                "WHERE branch = :branch AND kind = 'compaction' "
                "AND kind IN ('compaction', 'label') AND depth >= :first AND depth <= :last "
                "ORDER BY depth DESC LIMIT 1"
            ),
            **structs.asdict(segment),
        )
        if row is not None:
            return ENTRIES.read(row)
    return None


def shown(tx: Tx, session: Session, stimulus_ids: Sequence[str]) -> dict[str, bool]:
    """Return which of these stimuli have their entry, and whether a model still sees it.

    What was compacted into a summary, or lies on a path that was left, is not seen.
    """
    rows = tx.all(ENTRIES.select("WHERE stimulus_id IN :ids"), ids=list(stimulus_ids))
    found = [ENTRIES.read(row) for row in rows]
    path = segments_of(tx, session, session.context_from - 1) if found else []
    return {entry.stimulus_id: is_on(entry, path) for entry in found if entry.stimulus_id}
