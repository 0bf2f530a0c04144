"""The index of what was said: which entries are in it, and under which numbers.

A line of the index is numbered by its time, with room for those of the same millisecond, so that
the database finds the newest first without sorting.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import groupby

import msgspec

from wakeful.store.database import Tx
from wakeful.store.full_text import FullText
from wakeful.transcript.words import words_of
from wakeful.vocabulary.entry import (
    AssistantBody,
    Body,
    CompactionBody,
    Entry,
    EntryKind,
    NoteBody,
    ToolBody,
    TriggerBody,
    UserBody,
)
from wakeful.vocabulary.record import Record

MOST_WORDS = 4000  # of one entry that can be found
MOST_TOOL_WORDS = 1000
TIE_BITS = 21
MOST_TOGETHER = 1000  # that one write adds
LATEST_MS = (1 << 42) - (1 << 20)  # in 2109; later times count as this one, with room after it

_FOUND_KINDS = frozenset(
    {
        EntryKind.MESSAGE,
        EntryKind.COMPACTION,
        EntryKind.BRANCH_SUMMARY,
        EntryKind.CUSTOM_MESSAGE,
        EntryKind.AUTOMATION_TRIGGER,
    }
)


class Role(StrEnum):
    """Who said it."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NOTE = "note"  # of the runtime, or of an extension
    SUMMARY = "summary"


class Indexed(Record):
    """An entry as the index takes it."""

    entry_id: str
    branch: str
    depth: int
    at: int
    role: Role | None  # None: nobody looks for it
    words: Sequence[str] = ()


def indexed(entry: Entry) -> Indexed:
    """Return what can be found of an entry; of one that cannot be read, nothing."""
    role, text = said_in(entry) or (None, "")
    limit = MOST_TOOL_WORDS if role is Role.TOOL else MOST_WORDS
    return Indexed(
        entry_id=entry.id,
        branch=entry.branch,
        depth=entry.depth,
        at=entry.at,
        role=role,
        words=words_of(text, limit),
    )


def said_in(entry: Entry) -> tuple[Role, str] | None:
    """Return who said what in an entry; None if it is not looked for, or cannot be read."""
    if entry.kind not in _FOUND_KINDS:
        return None
    try:
        return _spoken(entry.kind, entry.content())
    except msgspec.DecodeError:
        return None


def _spoken(kind: EntryKind, body: Body) -> tuple[Role, str] | None:
    """Return who said an entry's words; None if they were for nobody to read."""
    match body:
        case UserBody():
            return Role.USER, body.text
        case AssistantBody(is_silent=True):
            return None
        case AssistantBody():
            return Role.ASSISTANT, body.message.text
        case ToolBody():
            return Role.TOOL, body.message.text
        case CompactionBody():
            return Role.SUMMARY, body.summary
        case NoteBody(is_hidden=True):
            return None
        case TriggerBody():
            return Role.NOTE, body.text
        case NoteBody():
            return (Role.SUMMARY if kind is EntryKind.BRANCH_SUMMARY else Role.NOTE), body.text


def first_number(at: int) -> int:
    """Return the smallest number of a line of this time."""
    return min(max(at, 0), LATEST_MS) << TIE_BITS


def add(
    tx: Tx, full_text: FullText, entries: Sequence[Indexed], heads: Mapping[str, int]
) -> dict[str, int]:
    """Add entries, in the order of their branches, after those that were added last.

    Return how far each branch has come; one that somebody else followed meanwhile is left out.
    """
    done: dict[str, int] = {}
    found: list[Indexed] = []
    for branch, group in groupby(entries, key=lambda entry: entry.branch):
        lines = list(group)
        if _move_head(tx, branch, heads[branch], lines[-1].depth):
            done[branch] = lines[-1].depth
            found += [line for line in lines if line.words]
    rows = list(zip(_numbers(tx, found), found, strict=True))
    tx.many(
        "INSERT INTO search_lines (id, entry_id, branch, role) "
        "VALUES (:id, :entry_id, :branch, :role)",
        [
            {"id": number, "entry_id": one.entry_id, "branch": one.branch, "role": str(one.role)}
            for number, one in rows
        ],
    )
    tx.many(
        full_text.insert,
        [{"id": number, "words": full_text.words(one.words)} for number, one in rows],
    )
    return done


def sweep(tx: Tx, after: str, limit: int) -> str | None:
    """Forget entries that are gone; takes and returns a cursor, None at the end.

    Of a branch that others stand on, the end alone may be gone.
    """
    rows = tx.all(
        "SELECT branch, depth, COALESCE((SELECT MAX(entries.depth) FROM entries "
        "WHERE entries.branch = search_heads.branch), -1) "
        "FROM search_heads WHERE branch > :after ORDER BY branch LIMIT :limit",
        after=after,
        limit=limit,
    )
    for branch, head, last in rows:
        if last < head and not _forget(tx, branch, last, limit):
            return after
    return rows[-1][0] if rows else None


def _move_head(tx: Tx, branch: str, head: int, depth: int) -> bool:
    sql = (
        "INSERT INTO search_heads (branch, depth) VALUES (:branch, :depth) ON CONFLICT DO NOTHING"
        if head < 0
        else "UPDATE search_heads SET depth = :depth WHERE branch = :branch AND depth = :head"
    )
    return bool(tx.run(sql, branch=branch, depth=depth, head=head))


def _numbers(tx: Tx, entries: Sequence[Indexed]) -> list[int]:
    """Number lines by their time, after those of the same millisecond."""
    numbers: list[int] = []
    last: dict[int, int] = {}
    for entry in entries:
        first = first_number(entry.at)
        if first not in last:
            last[first] = _last_taken(tx, first)
        last[first] += 1
        numbers.append(last[first])
    return numbers


def _last_taken(tx: Tx, first: int) -> int:
    """Return the last number of a millisecond; of the next one with room, if it is full."""
    end = first + (1 << TIE_BITS)
    row = tx.one(
        "SELECT MAX(id) FROM search_lines WHERE id >= :first AND id < :end", first=first, end=end
    )
    taken = None if row is None else row[0]
    if taken is None:
        return first - 1
    return _last_taken(tx, end) if taken >= end - MOST_TOGETHER else taken


def _forget(tx: Tx, branch: str, last: int, limit: int) -> bool:
    """Remove some lines of a branch whose entries are gone; True when none are left."""
    rows = tx.all(
        "SELECT id FROM search_lines WHERE branch = :branch "
        "AND NOT EXISTS (SELECT 1 FROM entries WHERE entries.id = search_lines.entry_id) "
        "ORDER BY id DESC LIMIT :limit",
        branch=branch,
        limit=limit,
    )
    ids = [row[0] for row in rows]
    if ids:
        tx.many("DELETE FROM search_words WHERE rowid = :id", [{"id": one} for one in ids])
        tx.many("DELETE FROM search_lines WHERE id = :id", [{"id": one} for one in ids])
        return False
    if last < 0:
        tx.run("DELETE FROM search_heads WHERE branch = :branch", branch=branch)
    else:
        tx.run(
            "UPDATE search_heads SET depth = :last WHERE branch = :branch", branch=branch, last=last
        )
    return True
