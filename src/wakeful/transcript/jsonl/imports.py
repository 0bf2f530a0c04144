"""The ledger of imports: what nobody sees yet, and what is told of a file beside its entries."""

from collections.abc import Sequence
from typing import Literal

from wakeful import attachments
from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.transcript.jsonl.file import prefix_of
from wakeful.vocabulary.record import Record

STALE_MS = 3_600_000  # without a write for so long, whoever imported is gone


class Import(Record):
    """A transcript that came from a file."""

    transcript_id: str
    state: Literal["running", "done"]
    header: str | None  # None: the file had none that could be kept
    touched_at: int


class EntryLine(Record):
    """What an entry cannot say of the line it came from."""

    entry_id: str
    name: str | None
    line: str | None


IMPORTS = RowTable("imports", Import)
ENTRY_LINES = RowTable("entry_lines", EntryLine)

# What the sweep may have begun to undo never goes on, though its row is removed last.
_GOES_ON = "transcript_id = :transcript_id AND state = 'running' AND touched_at >= :stale"


def begin(tx: Tx, transcript_id: str) -> None:
    row = Import(transcript_id=transcript_id, state="running", header=None, touched_at=tx.now)
    tx.run(IMPORTS.insert, **IMPORTS.params(row))


def touch(tx: Tx, transcript_id: str) -> bool:
    """Keep that an import goes on; False if it may have been swept away meanwhile."""
    return bool(
        tx.run(
            f"UPDATE imports SET touched_at = :now WHERE {_GOES_ON}",  # noqa: S608 (ours)
            transcript_id=transcript_id,
            now=tx.now,
            stale=tx.now - STALE_MS,
        )
    )


def finish(tx: Tx, transcript_id: str, header: str | None) -> bool:
    """Keep that an import is whole; False if it may have been swept away meanwhile."""
    return bool(
        tx.run(
            "UPDATE imports SET state = 'done', header = :header, touched_at = :now "  # noqa: S608
            f"WHERE {_GOES_ON}",
            transcript_id=transcript_id,
            header=header,
            now=tx.now,
            stale=tx.now - STALE_MS,
        )
    )


def add_lines(tx: Tx, lines: Sequence[EntryLine]) -> None:
    tx.many(ENTRY_LINES.insert, [ENTRY_LINES.params(line) for line in lines])


def sweep(tx: Tx, limit: int) -> str | None:
    """Undo a part of an import that nobody finished; None when there is none left."""
    row = tx.one(
        "SELECT transcript_id FROM imports "
        "WHERE state = 'running' AND touched_at < :before ORDER BY transcript_id LIMIT 1",
        before=tx.now - STALE_MS,
    )
    if row is None:
        return None
    undo(tx, row[0], limit)
    return row[0]


def undo(tx: Tx, transcript_id: str, limit: int) -> bool:
    """Remove a part of what an import wrote; True when nothing is left of it."""
    first = prefix_of(transcript_id)
    rows = tx.all(
        "SELECT id FROM entries WHERE id > :first AND id < :end ORDER BY id LIMIT :limit",
        first=first,
        end=f"{first}g",
        limit=limit,
    )
    ids = [row[0] for row in rows]
    if ids:
        attachments.release(tx, ids)
        tx.run("DELETE FROM entry_lines WHERE entry_id IN :ids", ids=ids)
        tx.run("DELETE FROM entries WHERE id IN :ids", ids=ids)
        return False
    forked = tx.run(
        "DELETE FROM branches WHERE id IN "
        "(SELECT id FROM branches WHERE transcript_id = :transcript_id LIMIT :limit)",
        transcript_id=transcript_id,
        limit=limit,
    )
    if forked:
        return False
    tx.run("DELETE FROM imports WHERE transcript_id = :id", id=transcript_id)
    return True
