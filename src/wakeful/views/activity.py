"""The feed: what happened in every session, newest first, read from the ledgers.

A turn that ended, a notice, a sleep that began or ended: one row each. Every page costs what it
shows, however long the history is.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from wakeful.activity.activity import MOST_UNREAD, UNREAD, unread_of
from wakeful.notices.notices import NOTICE_STATE
from wakeful.store.database import Row, Store
from wakeful.vocabulary.errors import InvalidInput
from wakeful.vocabulary.kinds import Origin, kinds_of
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.text import one_line

LONGEST_TRIGGER = 200  # characters of what woke an agent
LONGEST_REPLY = 2000  # characters; the whole reply is with its turn
LOOKED_AT = 2000  # turns that one page looks through where no index knows what is wanted

# What is told under these origins besides turns.
NOTICE_ORIGIN = Origin.SYSTEM
SLEEP_ORIGIN = Origin.WAKE

FeedKind = Literal["turn", "notice", "sleep"]


class FeedPlace(NamedTuple):
    """Where in the feed a row stands; the newest is the greatest."""

    at: int
    id: str


NEWEST = FeedPlace(2**62, "")


class FeedRow(Record):
    """One thing that happened."""

    id: str
    at: int
    kind: FeedKind
    agent_id: str | None
    session_key: str | None
    turn_id: str | None
    origin: str
    source: str
    trigger: str | None  # the beginning of what caused it
    state: str
    reply: str | None
    error: str | None
    cost: float | None
    is_unread: bool
    until: int | None = None  # when a sleep is to end

    @property
    def place(self) -> FeedPlace:
        return FeedPlace(self.at, self.id)


class FeedPage(Record):
    """A page of the feed; `next` is the cursor of the page that follows."""

    rows: Sequence[FeedRow]
    next: str | None


class FeedFilter(Record):
    """What is wanted; None: everything."""

    agent_id: str | None = None
    origin: Origin | None = None

    def takes(self, origin: Origin) -> bool:
        return self.origin is None or self.origin is origin


class _Found(NamedTuple):
    rows: list[FeedRow]
    looked_to: FeedPlace | None = None  # how far one looked who did not look at everything


_TURN = (
    "SELECT id, ended_at, agent_id, session_key, kind, source, state, "  # noqa: S608 (words of ours)
    f"SUBSTR(reply, 1, {LONGEST_REPLY + 1}), SUBSTR(error, 1, {LONGEST_REPLY + 1}), cost, is_news, "
    f"(SELECT SUBSTR(text, 1, {LONGEST_TRIGGER * 4}) FROM stimuli WHERE stimuli.id = opened_by)"
)
_ENDED = "ended_at IS NOT NULL AND (ended_at, id) < (:at, :id)"
_NEWEST_ENDED = "ORDER BY ended_at DESC, id DESC LIMIT :limit"
TURNS_OF_ALL = f"{_TURN} FROM turns WHERE {_ENDED} {_NEWEST_ENDED}"
TURNS_OF_AGENT = f"{_TURN} FROM turns WHERE agent_id = :agent_id AND {_ENDED} {_NEWEST_ENDED}"
# The newest of an agent are looked through for those of some kinds, so many and no more.
TURNS_AMONG = (
    f"{_TURN} FROM (SELECT * FROM turns WHERE agent_id = :agent_id AND {_ENDED} "  # noqa: S608
    "ORDER BY ended_at DESC, id DESC LIMIT :among) AS newest WHERE kind IN :kinds "
    f"{_NEWEST_ENDED}"
)
LAST_AMONG = (
    f"SELECT ended_at, id FROM turns WHERE agent_id = :agent_id AND {_ENDED} "  # noqa: S608
    "ORDER BY ended_at DESC, id DESC LIMIT 1 OFFSET :skipped"
)

_NOTICE = "SELECT id, created_at, agent_id, session_key, kind, subject, text FROM notices"
_NOTICED = "(created_at, id) < (:at, :id) ORDER BY created_at DESC, id DESC LIMIT :limit"
NOTICES_OF_ALL = f"{_NOTICE} WHERE {_NOTICED}"
NOTICES_OF_AGENT = f"{_NOTICE} WHERE COALESCE(agent_id, '') = :agent_id AND {_NOTICED}"

_SLEEP = "SELECT id, at, agent_id, session_key, edge, source, reason, wake_at FROM sleep_marks"
_MARKED = "(at, id) < (:at, :id) ORDER BY at DESC, id DESC LIMIT :limit"
SLEEPS_OF_ALL = f"{_SLEEP} WHERE {_MARKED}"
SLEEPS_OF_AGENT = f"{_SLEEP} WHERE agent_id = :agent_id AND {_MARKED}"


def turns_of_kinds(count: int) -> str:
    """Return the statement of the newest turns of so many kinds: as many of each, by its index."""
    # Databases sort all that an index of several kinds finds; of one kind it is in order.
    parts = (
        f"SELECT * FROM ({_TURN} FROM turns WHERE kind = :kind{number} "  # noqa: S608 (ours)
        f"AND {_ENDED} {_NEWEST_ENDED}) AS kind{number}"
        for number in range(count)
    )
    return " UNION ALL ".join(parts)


class ActivityView:
    """Reads the feed, and how much of it is unread."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, wanted: FeedFilter, after: str | None, limit: int) -> FeedPage:
        """Return rows from the newest on; `after` is the `next` of the page before.

        A page may hold less than it could, where much had to be looked through.
        """
        place = NEWEST if after is None else _place(after)
        seen = await self._seen()
        found = await self._turns(wanted, place, limit + 1, seen)
        rows = [
            *found.rows,
            *await self._notices(wanted, place, limit + 1, seen),
            *await self._sleeps(wanted, place, limit + 1),
        ]
        rows.sort(key=lambda row: row.place, reverse=True)
        if (edge := found.looked_to) is not None:
            rows = [row for row in rows if row.place >= edge]
            if len(rows) <= limit:
                return FeedPage(rows=rows, next=_cursor(edge))
        shown = rows[:limit]
        return FeedPage(rows=shown, next=_cursor(shown[-1].place) if len(rows) > limit else None)

    async def unread(self) -> dict[str, int]:
        """Return how much people have not read yet, by agent; '': what is no agent's."""
        return unread_of(await self._store.read(UNREAD, most=MOST_UNREAD))

    async def _seen(self) -> dict[str, int]:
        rows = await self._store.read("SELECT agent_id, seen_at FROM activity_seen")
        return {agent_id: seen_at for agent_id, seen_at in rows}

    async def _turns(
        self, wanted: FeedFilter, place: FeedPlace, limit: int, seen: dict[str, int]
    ) -> _Found:
        params: dict[str, object] = {"at": place.at, "id": place.id, "limit": limit}
        if wanted.agent_id is not None:
            params["agent_id"] = wanted.agent_id
            if wanted.origin is not None:
                return await self._turns_among(kinds_of(wanted.origin), params, limit, seen)
            rows = await self._store.read(TURNS_OF_AGENT, **params)
        elif wanted.origin is not None:
            kinds = kinds_of(wanted.origin)
            params |= {f"kind{number}": kind for number, kind in enumerate(kinds)}
            rows = await self._store.read(turns_of_kinds(len(kinds)), **params)
        else:
            rows = await self._store.read(TURNS_OF_ALL, **params)
        return _Found([_turn(row, seen) for row in rows])

    async def _turns_among(
        self, kinds: Sequence[str], params: dict[str, object], limit: int, seen: dict[str, int]
    ) -> _Found:
        rows = await self._store.read(TURNS_AMONG, **params, kinds=list(kinds), among=LOOKED_AT)
        edge: Sequence[Row] = ()
        if len(rows) < limit:
            params = {name: value for name, value in params.items() if name != "limit"}
            edge = await self._store.read(LAST_AMONG, **params, skipped=LOOKED_AT - 1)
        looked_to = FeedPlace(*edge[0]) if edge else None
        return _Found([_turn(row, seen) for row in rows], looked_to)

    async def _notices(
        self, wanted: FeedFilter, place: FeedPlace, limit: int, seen: dict[str, int]
    ) -> list[FeedRow]:
        if not wanted.takes(NOTICE_ORIGIN):
            return []
        sql = NOTICES_OF_ALL if wanted.agent_id is None else NOTICES_OF_AGENT
        rows = await self._store.read(sql, **_params(wanted, place, limit))
        return [_notice(row, seen) for row in rows]

    async def _sleeps(self, wanted: FeedFilter, place: FeedPlace, limit: int) -> list[FeedRow]:
        if not wanted.takes(SLEEP_ORIGIN):
            return []
        sql = SLEEPS_OF_ALL if wanted.agent_id is None else SLEEPS_OF_AGENT
        return [_sleep(row) for row in await self._store.read(sql, **_params(wanted, place, limit))]


def _params(wanted: FeedFilter, place: FeedPlace, limit: int) -> dict[str, object]:
    params: dict[str, object] = {"at": place.at, "id": place.id, "limit": limit}
    return params if wanted.agent_id is None else params | {"agent_id": wanted.agent_id}


def _turn(row: Row, seen: dict[str, int]) -> FeedRow:
    id, at, agent_id, session_key, kind, source, state, reply, error, cost, is_news, text = row
    return FeedRow(
        id=id,
        at=at,
        kind="turn",
        agent_id=agent_id,
        session_key=session_key,
        turn_id=id,
        origin=kind.partition(".")[0],
        source=source,
        trigger=None if text is None else one_line(text, LONGEST_TRIGGER),
        state=state,
        reply=_cut(reply),
        error=_cut(error),
        cost=cost,
        is_unread=bool(is_news) and at > seen.get(agent_id, -1),
    )


def _notice(row: Row, seen: dict[str, int]) -> FeedRow:
    id, at, agent_id, session_key, kind, subject, text = row
    return FeedRow(
        id=id,
        at=at,
        kind="notice",
        agent_id=agent_id,
        session_key=session_key,
        turn_id=None,
        origin=NOTICE_ORIGIN.value,
        source=kind,
        trigger=one_line(subject, LONGEST_TRIGGER),
        state=NOTICE_STATE,
        reply=_cut(text),
        error=None,
        cost=None,
        is_unread=at > seen.get(agent_id or "", -1),
    )


def _sleep(row: Row) -> FeedRow:
    id, at, agent_id, session_key, edge, source, reason, wake_at = row
    return FeedRow(
        id=id,
        at=at,
        kind="sleep",
        agent_id=agent_id,
        session_key=session_key,
        turn_id=None,
        origin=SLEEP_ORIGIN.value,
        source=source,
        trigger=one_line(reason, LONGEST_TRIGGER),
        state=edge,
        reply=None,
        error=None,
        cost=None,
        is_unread=False,
        until=wake_at,
    )


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_REPLY:
        return text
    return text[: LONGEST_REPLY - 1] + "…"


def _cursor(place: FeedPlace) -> str:
    return f"{place.at}.{place.id}"


def _place(cursor: str) -> FeedPlace:
    at, _, id = cursor.partition(".")
    if not (at.isascii() and at.isdecimal() and len(at) < 16):
        raise InvalidInput("after", f"is not a cursor of this list: {cursor[:80]!r}")
    return FeedPlace(int(at), id)
