"""What was said in a room to others than the agent: kept until its next turn there, which reads it.

It is no stimulus and no entry yet: a room may go on for days without anybody meaning the agent.
"""

from collections.abc import Sequence

from wakeful.store.database import Tx
from wakeful.store.rows import RowTable
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey
from wakeful.vocabulary.text import one_line

MOST_LINES = 20
MOST_CHARACTERS = 4000
LONGEST_LINE = 1000
KEPT_MS = 7 * 86_400_000


class Overheard(Record):
    """One thing that somebody said."""

    id: str
    session_key: str
    source: str
    text: str
    is_external: bool
    at: int


OVERHEARD = RowTable("overheard", Overheard)


def is_room(session_key: str) -> bool:
    """Tell whether a session is a room's, or a thread's in one."""
    if ":group:" not in session_key and ":channel:" not in session_key:
        return False  # asked for every message
    return keys.parse(SessionKey(session_key)).chat_type != "direct"


def note(tx: Tx, line: Overheard) -> None:
    """Keep a line, and no more than the newest of its room."""
    short = Overheard(
        id=line.id,
        session_key=line.session_key,
        source=line.source,
        text=one_line(line.text, LONGEST_LINE),
        is_external=line.is_external,
        at=line.at,
    )
    tx.run(OVERHEARD.insert, **OVERHEARD.params(short))
    tx.run(
        "DELETE FROM overheard WHERE session_key = :key AND id NOT IN "
        "(SELECT id FROM overheard WHERE session_key = :key ORDER BY id DESC LIMIT :most)",
        key=line.session_key,
        most=MOST_LINES,
    )


def take(tx: Tx, session_key: str) -> Sequence[Overheard]:
    """Return what was said since the last turn, the oldest first, and forget it."""
    rows = tx.all(
        f"DELETE FROM overheard WHERE session_key = :key RETURNING {OVERHEARD.columns}",  # noqa: S608
        key=session_key,
    )
    found: list[Overheard] = []
    left = MOST_CHARACTERS
    for line in sorted(map(OVERHEARD.read, rows), key=lambda line: line.id, reverse=True):
        left -= len(line.text)
        if left < 0 or len(found) == MOST_LINES:
            break
        found.append(line)
    return found[::-1]


def prune(tx: Tx, before: int, limit: int) -> str | None:
    """Forget what no turn came to read."""
    gone = tx.run(
        "DELETE FROM overheard WHERE id IN "
        "(SELECT id FROM overheard WHERE at < :before LIMIT :limit)",
        before=before,
        limit=limit,
    )
    return "more" if gone == limit else None
