"""Look for what was said."""

import asyncio
from collections.abc import Sequence

from wakeful.access import rules
from wakeful.store.database import Row, Store
from wakeful.store.full_text import FullText, Term
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

RANKED = 50_000  # matches that are ranked together, the newest first: some 60 to 100 ms of a reader
LOOKED_AT = 200  # of the best: whose they are takes ten times as long as ranking them
MOST_LOOKED_AT = 4000

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
_BEST = (
    "WITH newest AS MATERIALIZED (SELECT search_words.rowid AS id, {rank} AS score "
    "FROM search_words{lines} WHERE {matches} "
    "ORDER BY search_words.rowid DESC LIMIT {ranked}) "
    "SELECT newest.id, facts.first, facts.last, facts.size FROM newest, "
    "(SELECT MAX(id) AS first, MIN(id) AS last, COUNT(*) AS size FROM newest) AS facts "
    "ORDER BY newest.score, newest.id DESC LIMIT :limit OFFSET :offset"
)
_LINES = " JOIN search_lines ON search_lines.id = search_words.rowid"
_SHOWN = (
    "SELECT search_lines.id, search_lines.role, place.key, entry_id, "
    "OCTET_LENGTH(entries.body) FROM search_lines "
    "JOIN entries ON entries.id = search_lines.entry_id "
    "JOIN sessions place ON place.key = {place} WHERE search_lines.id IN :ids"
)
_OF_AGENT = "(SELECT key FROM sessions WHERE agent_id = :agent_id)"
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


class SearchStatements(Record):
    """How the best matches are read, and which of them are shown; and what is looked for."""

    best: str
    best_params: dict[str, object]
    shown: str
    shown_params: dict[str, object]


class Ranked(Record):
    """A line that matches, and its place among those that were ranked with it."""

    id: int
    number: int  # from 1
    first: int  # the newest line of them
    last: int
    size: int  # how many there are

    @property
    def place(self) -> str:
        """The cursor after it."""
        is_last = self.number == self.size
        return f"{self.last}.0" if is_last else f"{self.first + 1}.{self.number}"


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
        statements = _statements(self._store.full_text, terms, wanted, viewer)
        before, offset = _END, 0
        if wanted.until is not None:
            before = first_number(wanted.until)
        if after is not None:
            anchor, offset = _place(after)
            before = min(anchor, before)
        found: list[Hit] = []
        look_at = max(LOOKED_AT, limit)
        while len(found) < limit and (room := PAGE_BYTES - sum(map(size_of, found))) > 0:
            # What is looked for may be in every line of a ledger, and belong to others.
            ranked = await self._best(viewer, statements, before, offset, look_at)
            if not ranked:
                break
            rows = await self._shown(viewer, statements, ranked)
            taken = rows[: limit - len(found)]
            taken = taken[: fitting((row[-1] for _, row in taken), room)]
            entries = await self._store.read(_ENTRIES, ids=[row[-2] for _, row in taken])
            # Off the loop: texts may be long, and there may be hundreds of them.
            found += await asyncio.to_thread(_hits, taken, entries, terms)
            end = ranked[-1] if len(taken) == len(rows) else taken[-1][0]
            before, offset = _place(end.place)
            look_at = min(look_at * 4, MOST_LOOKED_AT)  # most of them belong to others
        return found

    async def _best(
        self, viewer: str, statements: SearchStatements, before: int, offset: int, limit: int
    ) -> list[Ranked]:
        """Return the best of the newest matches, after as many of them as were passed over."""
        place = {"before": before, "offset": offset, "limit": limit}
        rows = await self._in_turn.read(viewer, statements.best, **place, **statements.best_params)
        return [
            Ranked(id=row[0], number=number, first=row[1], last=row[2], size=row[3])
            for number, row in enumerate(rows, offset + 1)
        ]

    async def _shown(
        self, viewer: str, statements: SearchStatements, ranked: Sequence[Ranked]
    ) -> list[tuple[Ranked, Row]]:
        """Return those lines, in their order, that are in a session where it is looked."""
        ids = [line.id for line in ranked]
        found = await self._in_turn.read(
            viewer, statements.shown, ids=ids, **statements.shown_params
        )
        rows = {row[0]: row for row in found}
        return [(line, rows[line.id]) for line in ranked if line.id in rows]


def _statements(
    full_text: FullText, terms: Sequence[Term], wanted: Wanted, viewer: str
) -> SearchStatements:
    """Return how matches are read where somebody may look and wants to."""
    since = 0 if wanted.since is None else first_number(wanted.since)
    params: dict[str, object] = {"query": full_text.query(terms), "since": since}
    matches = f"{full_text.matches} AND search_words.rowid < :before"
    matches += " AND search_words.rowid >= :since"
    sessions, place, named = "", "", _names(wanted, viewer)
    if "session_key" in named:
        place += " AND place.key = :session_key"
        sessions += f" AND search_lines.branch IN {_BRANCHES.format(keys='= :session_key')}"
    if "agent_id" in named:
        place += " AND place.agent_id = :agent_id"
        sessions += f" AND search_lines.branch IN {_BRANCHES.format(keys=f'IN {_OF_AGENT}')}"
    if "owner" in named:
        place += f" AND place.key IN {OWNED}"
        sessions += f" AND search_lines.branch IN {_BRANCHES.format(keys=f'IN {OWNED}')}"
    params |= named
    if wanted.role is not None:
        sessions += " AND search_lines.role = :role"
        params["role"] = str(wanted.role)
    best = _BEST.format(
        rank=full_text.rank,
        lines=_LINES if sessions else "",
        matches=matches + sessions,
        ranked=RANKED,
    )
    shown = _SHOWN.format(place=_PLACE.format(wanted=place))
    return SearchStatements(best=best, best_params=params, shown=shown, shown_params=named)


def _names(wanted: Wanted, viewer: str) -> dict[str, object]:
    """Return by what it is narrowed down in which sessions to look."""
    names = {
        "session_key": wanted.session_key,
        "agent_id": wanted.agent_id,
        "owner": None if rules.sees_all(viewer) else viewer,
    }
    return {name: value for name, value in names.items() if value is not None}


def size_of(hit: Hit) -> int:
    """Return how much room a match takes on a page: its whole entry is read for it."""
    return len(hit.entry.body.encode())


def _hits(
    rows: Sequence[tuple[Ranked, Row]], entries: Sequence[Row], terms: Sequence[Term]
) -> list[Hit]:
    """Return what was found, without the entries that cannot be read."""
    known = {entry.id: entry for entry in ENTRIES.read_known(entries)}
    return [_hit(line, row, known[row[-2]], terms) for line, row in rows if row[-2] in known]


def _hit(line: Ranked, row: Row, entry: Entry, terms: Sequence[Term]) -> Hit:
    spoken = said_in(entry)
    return Hit(
        place=line.place,
        session_key=row[2],
        role=Role(row[1]),
        entry=entry,
        snippet=snippet(spoken[1] if spoken else "", terms),
        is_cut=line.size >= RANKED,
    )


def _place(cursor: str) -> tuple[int, int]:
    """Return before which line to look, and how many of what is found there to pass over."""
    before, _, offset = cursor.partition(".")
    for number in (before, offset or "0"):
        if not (number.isascii() and number.isdecimal() and len(number) < 20):
            raise InvalidInput("after", f"is not a cursor of this list: {cursor[:80]!r}")
    return min(int(before), _END), min(int(offset or "0"), RANKED)
