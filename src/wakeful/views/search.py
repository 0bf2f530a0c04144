"""Look for what was said."""

import asyncio
from collections.abc import Sequence

from wakeful.access import rules
from wakeful.store.database import Row, Store
from wakeful.store.full_text import Term
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.search import Role, first_number, said_in
from wakeful.transcript.words import Part, parse_query, snippet
from wakeful.views.in_turn import InTurn
from wakeful.views.pages import PAGE_BYTES, fitting
from wakeful.views.sessions import OWNED
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import OPERATOR

RANKED = 2000  # matches that are ranked together, the newest first: so a search has a bounded cost

# Who said an entry: the session that made its branch, or began its transcript.
_MAKER = (
    "COALESCE((SELECT NULLIF(session_key, '') FROM branches WHERE branches.id = entries.branch), "
    "(SELECT NULLIF(session_key, '') FROM branches WHERE branches.id = entries.transcript_id), "
    "(SELECT MIN(key) FROM sessions WHERE sessions.transcript_id = entries.transcript_id), "
    "(SELECT MIN(session_key) FROM past_transcripts "
    "WHERE past_transcripts.id = entries.transcript_id))"
)
# Where an entry is found: in the session that made it, else in one that forked off after it. A
# transcript without a session is one that is being imported, or that was deleted.
_PLACE = (
    "COALESCE((SELECT place.key FROM sessions place "  # noqa: S608 (ours)
    f"WHERE place.key = {_MAKER} AND (place.transcript_id = entries.transcript_id OR EXISTS "
    "(SELECT 1 FROM past_transcripts WHERE past_transcripts.session_key = place.key "
    "AND past_transcripts.id = entries.transcript_id)) {wanted}), "
    "(SELECT MIN(place.key) FROM inherited_branches "
    "JOIN sessions place ON place.key = inherited_branches.session_key "
    "WHERE inherited_branches.branch = entries.branch "
    "AND inherited_branches.last_depth >= entries.depth {wanted}))"
)
# The branches that the entries of sessions lie on, and some of others in the same transcripts.
_TRANSCRIPTS = (
    "SELECT transcript_id FROM sessions WHERE key {keys} "
    "UNION SELECT id FROM past_transcripts WHERE session_key {keys}"
)
_BRANCHES = (
    f"({_TRANSCRIPTS} UNION SELECT id FROM branches "  # noqa: S608 (ours)
    f"WHERE transcript_id IN ({_TRANSCRIPTS}))"
)
_PAGE = (
    "SELECT MAX(newest.id) OVER () + 1, MIN(newest.id) OVER (), COUNT(*) OVER (), "  # noqa: S608
    "newest.role, newest.place, newest.entry_id, OCTET_LENGTH(entries.body) FROM ("
    "SELECT search_lines.id AS id, search_lines.role AS role, entry_id, place.key AS place, "
    "{rank} AS score FROM search_words "
    "JOIN search_lines ON search_lines.id = search_words.rowid "
    "JOIN entries ON entries.id = search_lines.entry_id "
    "JOIN sessions place ON place.key = {place} WHERE {matches} "
    f"ORDER BY search_words.rowid DESC LIMIT {RANKED}) AS newest "
    "JOIN entries ON entries.id = newest.entry_id "
    "ORDER BY newest.score, newest.id DESC LIMIT :limit OFFSET :offset"
)
_ENTRIES = ENTRIES.select("WHERE id IN :ids")
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
    is_cut: bool = False  # it was ranked among as many as are ranked: older ones come later


ANYWHERE = Wanted()


class SearchView:
    """Finds entries by their words; what a viewer may not see is not found."""

    def __init__(self, store: Store, in_turn: InTurn | None = None) -> None:
        self._store = store
        self._in_turn = in_turn or InTurn(store)

    async def page(
        self,
        query: str,
        *,
        viewer: str = OPERATOR,
        wanted: Wanted = ANYWHERE,
        after: str | None = None,
        limit: int,
    ) -> Sequence[Hit]:
        """Return what was said with all these words, the best match first, of equals the newest.

        The newest matches are ranked among themselves; those older than all of them follow.
        There are fewer than `limit` where their entries would not fit on a page.
        """
        terms = parse_query(query)
        sql, params = self._statement(terms, wanted, viewer)
        before, offset = _END, 0
        if wanted.until is not None:
            before = first_number(wanted.until)
        if after is not None:
            anchor, offset = _place(after)
            before = min(anchor, before)
        found: list[Hit] = []
        while len(found) < limit and (room := PAGE_BYTES - sum(map(size_of, found))) > 0:
            place = {"before": before, "offset": offset, "limit": limit - len(found)}
            # What is looked for may be in every line of a ledger, and belong to others.
            rows = await self._in_turn.read(viewer, sql, **place, **params)
            if not rows:
                break
            before, last, size = rows[0][:3]
            rows = rows[: fitting((row[-1] for row in rows), room)]
            entries = await self._store.read(_ENTRIES, ids=[row[-2] for row in rows])
            # Off the loop: texts may be long, and there may be hundreds of them.
            found += await asyncio.to_thread(_hits, rows, entries, terms, offset)
            offset += len(rows)
            if offset >= size:
                before, offset = last, 0
        return found

    def _statement(
        self, terms: Sequence[Term], wanted: Wanted, viewer: str
    ) -> tuple[str, dict[str, object]]:
        """Return how a page is read, and what is looked for."""
        full_text = self._store.full_text
        since = 0 if wanted.since is None else first_number(wanted.since)
        params: dict[str, object] = {"query": full_text.query(terms), "since": since}
        matches = f"{full_text.matches} AND search_words.rowid < :before"
        matches += " AND search_words.rowid >= :since"
        if wanted.role is not None:
            matches += " AND search_lines.role = :role"
            params["role"] = str(wanted.role)
        place = ""
        if wanted.session_key is not None:
            place += " AND place.key = :session_key"
            matches += f" AND search_lines.branch IN {_BRANCHES.format(keys='= :session_key')}"
            params["session_key"] = wanted.session_key
        if wanted.agent_id is not None:
            place += " AND place.agent_id = :agent_id"
            params["agent_id"] = wanted.agent_id
        if not rules.sees_all(viewer):
            place += f" AND place.key IN {OWNED}"
            # Looked at first, since whose an entry is takes long to find out.
            matches += f" AND search_lines.branch IN {_BRANCHES.format(keys=f'IN {OWNED}')}"
            params["owner"] = viewer
        found_in = _PLACE.format(wanted=place)
        return _PAGE.format(rank=full_text.rank, place=found_in, matches=matches), params


def size_of(hit: Hit) -> int:
    """Return how much room a match takes on a page: its whole entry is read for it."""
    return len(hit.entry.body.encode())


def _hits(
    rows: Sequence[Row], entries: Sequence[Row], terms: Sequence[Term], offset: int
) -> list[Hit]:
    """Return what was found, without the entries that cannot be read."""
    known = {entry.id: entry for entry in ENTRIES.read_known(entries)}
    return [
        _hit(row, known[row[-2]], terms, number)
        for number, row in enumerate(rows, offset + 1)
        if row[-2] in known
    ]


def _hit(row: Row, entry: Entry, terms: Sequence[Term], number: int) -> Hit:
    """Return a match, the one of this number among those that were ranked with it."""
    spoken = said_in(entry)
    before, last, size, role, session_key, *_ = row
    return Hit(
        place=f"{last}.0" if number == size else f"{before}.{number}",
        session_key=session_key,
        role=Role(role),
        entry=entry,
        snippet=snippet(spoken[1] if spoken else "", terms),
        is_cut=size >= RANKED,
    )


def _place(cursor: str) -> tuple[int, int]:
    """Return before which line to look, and how many of what is found there to pass over."""
    before, _, offset = cursor.partition(".")
    for number in (before, offset or "0"):
        if not (number.isascii() and number.isdecimal() and len(number) < 20):
            raise InvalidInput("after", f"is not a cursor of this list: {cursor[:80]!r}")
    return min(int(before), _END), min(int(offset or "0"), RANKED)
