"""Look for what was said."""

import asyncio
from collections.abc import Sequence

from wakeful.access import rules
from wakeful.store.database import Row, Store
from wakeful.store.full_text import Term
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.search import Role, first_number, said_in
from wakeful.transcript.words import Part, parse_query, snippet
from wakeful.views.sessions import OWNED
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR

_ENTRY = ", ".join(f"entries.{name}" for name in ENTRIES.fields)
# Whose an entry is: of the session that made its branch, or began its transcript. A transcript
# without a session is one that is being imported, or that was deleted.
_HITS = (
    f"SELECT search_lines.id, search_lines.role, place.key, {_ENTRY} "  # noqa: S608 (ours)
    "FROM search_words JOIN search_lines ON search_lines.id = search_words.rowid "
    "JOIN entries ON entries.id = search_lines.entry_id "
    "JOIN sessions place ON place.key = COALESCE("
    "(SELECT NULLIF(session_key, '') FROM branches WHERE branches.id = entries.branch), "
    "(SELECT NULLIF(session_key, '') FROM branches WHERE branches.id = entries.transcript_id), "
    "(SELECT MIN(key) FROM sessions WHERE sessions.transcript_id = entries.transcript_id), "
    "(SELECT MIN(session_key) FROM past_transcripts "
    "WHERE past_transcripts.id = entries.transcript_id)) "
    "AND (place.transcript_id = entries.transcript_id OR EXISTS (SELECT 1 FROM past_transcripts "
    "WHERE past_transcripts.session_key = place.key "
    "AND past_transcripts.id = entries.transcript_id)) "
)
_END = 2**63 - 1


class Wanted(Record):
    """Where to look; None: anywhere."""

    session_key: str | None = None
    agent_id: str | None = None
    role: Role | None = None
    since: int | None = None
    until: int | None = None


class Hit(Record):
    """An entry that was found."""

    place: str  # the cursor after it
    session_key: str
    role: Role
    entry: Entry
    snippet: Sequence[Part]


ANYWHERE = Wanted()


class SearchView:
    """Finds entries by their words; what a viewer may not see is not found."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self,
        query: str,
        *,
        viewer: str = OPERATOR,
        wanted: Wanted = ANYWHERE,
        after: str | None = None,
        limit: int,
    ) -> Sequence[Hit]:
        """Return what was said with all these words, the newest first."""
        terms = parse_query(query)
        conditions = [
            self._store.full_text.matches,
            "search_words.rowid < :before",
            "search_words.rowid >= :since",
        ]
        params: dict[str, object] = {
            "query": self._store.full_text.query(terms),
            "before": _END if wanted.until is None else first_number(wanted.until),
            "since": 0 if wanted.since is None else first_number(wanted.since),
            "limit": limit,
        }
        if after is not None:
            params["before"] = min(_place(after), int(str(params["before"])))
        for column, value in (
            ("place.key", wanted.session_key),
            ("place.agent_id", wanted.agent_id),
            ("search_lines.role", wanted.role),
        ):
            if value is not None:
                name = column.replace(".", "_")
                conditions.append(f"{column} = :{name}")
                params[name] = str(value)
        if not rules.sees_all(viewer):
            conditions.append(f"place.key IN {OWNED}")
            params["owner"] = viewer
        sql = (
            f"{_HITS} WHERE {' AND '.join(conditions)} "
            "ORDER BY search_words.rowid DESC LIMIT :limit"
        )
        found: list[Hit] = []
        while len(found) < limit:
            rows = await self._store.read(sql, **params)
            # Off the loop: texts may be long, and there may be hundreds of them.
            found += await asyncio.to_thread(_hits, rows, terms)
            if len(rows) < limit:
                break
            params["before"] = rows[-1][0]  # also of one that cannot be read
        return found[:limit]


def _hits(rows: Sequence[Row], terms: Sequence[Term]) -> list[Hit]:
    """Return what was found, without the entries that cannot be read."""
    return [_hit(row, entry, terms) for row in rows for entry in ENTRIES.read_known([row[3:]])]


def _hit(row: Row, entry: Entry, terms: Sequence[Term]) -> Hit:
    spoken = said_in(entry)
    return Hit(
        place=str(row[0]),
        session_key=row[2],
        role=Role(row[1]),
        entry=entry,
        snippet=snippet(spoken[1] if spoken else "", terms),
    )


def _place(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 20):
        raise InvalidInput("after", f"is not a cursor of this list: {cursor[:80]!r}")
    return min(int(cursor), _END)
