"""Entries: appended at the leaf, read by range, never changed."""

from collections.abc import Sequence

import msgspec

from wakeful.store.database import Tx
from wakeful.store.rows import Table
from wakeful.transcript import sessions
from wakeful.transcript.sessions import Session
from wakeful.vocabulary.entry import Body, Entry, Kind, chain, encode_body
from wakeful.vocabulary.record import Record

ENTRIES = Table("entries", Entry)
APPENDED = "entry.appended"  # a branch has new entries: its id


class Line(Record):
    """An entry that is about to be written."""

    id: str
    kind: Kind
    body: Body
    turn_id: str | None = None
    stimulus_id: str | None = None
    epoch: int = 0


def append(tx: Tx, session: Session, lines: Sequence[Line]) -> tuple[Session, list[Entry]]:
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
    session = msgspec.structs.replace(
        session, leaf_id=parent_id, leaf_depth=depth, leaf_hash=last_hash
    )
    sessions.move_leaf(tx, session)
    tx.notify(APPENDED, session.branch)
    return session, written


def get(tx: Tx, entry_id: str) -> Entry | None:
    row = tx.one(ENTRIES.select("WHERE id = :id"), id=entry_id)
    return None if row is None else ENTRIES.read(row)


def path(tx: Tx, session: Session, after_depth: int) -> list[Entry]:
    """Return the entries of the active branch below `after_depth`, oldest first."""
    rows = tx.all(
        ENTRIES.select("WHERE branch = :branch AND depth > :after ORDER BY depth"),
        branch=session.branch,
        after=after_depth,
    )
    return [ENTRIES.read(row) for row in rows]


def has_stimulus(tx: Tx, stimulus_ids: Sequence[str]) -> set[str]:
    """Return which of these stimuli already have their entry."""
    rows = tx.all(
        "SELECT stimulus_id FROM entries WHERE stimulus_id IN :ids", ids=list(stimulus_ids)
    )
    return {row[0] for row in rows}
