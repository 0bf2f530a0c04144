"""Look at what was said: on the path a session goes on, on those it left, and before a reset."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from wakeful.store.database import Store
from wakeful.transcript.branches import BRANCHES, CHAIN, Segment, Tip, owned, stretches
from wakeful.transcript.entries import ENTRIES
from wakeful.views import cards
from wakeful.views.cards import TranscriptCard
from wakeful.views.pages import fitting
from wakeful.vocabulary.entry import Entry, NoteBody
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.record import Record

LARGEST_PAGE = 1000
MOST_LABELS = 1000  # that are looked at, the newest of them

_MARKS = "kind = 'label' AND kind IN ('compaction', 'label')"  # as the index of them says it
_NEVER = 2**62
_SIZE = (  # known without reading the body
    "SELECT OCTET_LENGTH(body) FROM entries "
    "WHERE branch = :branch AND depth >= :low AND depth <= :high"
)


class EntryCause(Record):
    """What an entry came of: the stimulus whose text it is, or the one that opened its turn."""

    origin: str
    source: str


class TranscriptView:
    """Reads transcripts by page, never whole."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def newest(self, session_key: str, limit: int) -> list[Entry]:
        """Return the last entries of the session's path, oldest first."""
        return list(await self.page(session_key, limit=limit))

    async def causes(self, entries: Sequence[Entry]) -> dict[str, EntryCause]:
        """Return what each entry came of, as far as the ledgers still know: by its id."""
        said = await self._causes("stimuli", {one.stimulus_id for one in entries})
        opened = await self._causes("turns", {one.turn_id for one in entries})
        found = {
            one.id: said.get(one.stimulus_id or "") or opened.get(one.turn_id or "")
            for one in entries
        }
        return {entry_id: cause for entry_id, cause in found.items() if cause is not None}

    async def _causes(self, table: str, ids: AbstractSet[str | None]) -> dict[str, EntryCause]:
        rows = await self._store.read(
            f"SELECT id, kind, source FROM {table} WHERE id IN :ids",  # noqa: S608 (ours)
            ids=sorted(one for one in ids if one is not None),
        )
        return {row[0]: EntryCause(origin=row[1].partition(".")[0], source=row[2]) for row in rows}

    async def page(
        self,
        session_key: str,
        *,
        path: str | None = None,
        after: str | None = None,
        before: str | None = None,
        limit: int,
        is_page: bool = False,
    ) -> Sequence[Entry]:
        """Return entries of a path, oldest first: those that follow the entry `after`, or else
        those that lead up to the entry `before`, or to the newest.

        A path is named by its transcript (then it is the last that was gone there), its branch or
        its last entry; without a name, it is the one that goes on. With `is_page`, there are fewer
        where they would not fit on one.
        """
        if not 1 <= limit <= LARGEST_PAGE:
            raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}, not {limit}")
        tip = await self._tip(session_key, path)
        if tip is None:
            return []
        segments = await self._segments(tip)
        first, last = 0, tip.leaf_depth
        if after is not None:
            first = await self._depth(segments, after, "after") + 1
        if before is not None:
            last = await self._depth(segments, before, "before") - 1
        step = self._read_page if is_page else self._read
        return await step(segments, first, last, limit, is_forward=after is not None)

    async def cards(
        self, session_key: str, *, after: str | None = None, limit: int = LARGEST_PAGE
    ) -> list[TranscriptCard]:
        """Return conversations of a session, the newest first; `after` is a card's place."""
        return await cards.page(self._store, session_key, after, limit)

    async def path(self, session_key: str) -> list[Segment]:
        """Return the path that a session goes on."""
        tip = await self._tip(session_key, None)
        return [] if tip is None else await self._segments(tip)

    async def labels(self, session_key: str) -> dict[str, str]:
        """Return the labels of the entries on the session's path; the last one of each counts.

        A label stays though its line lies on a path that was left, or that a fork came from.
        """
        tip = await self._tip(session_key, None)
        if tip is None:
            return {}
        segments = await self._segments(tip)
        found: dict[str, str] = {}
        for line in await self._label_lines(tip.transcript_id, session_key, segments):
            body = line.content()
            if isinstance(body, NoteBody):
                found.setdefault(body.topic, body.text)
        rows = await self._store.read(
            "SELECT id, branch, depth FROM entries WHERE id IN :ids", ids=list(found)
        )
        seen = {row[0] for row in rows if _is_on(row[1], row[2], segments)}
        return {entry_id: label for entry_id, label in found.items() if label and entry_id in seen}

    async def _label_lines(
        self, transcript_id: str, session_key: str, segments: Sequence[Segment]
    ) -> list[Entry]:
        """Return the newest lines with labels: a session's own, and those that it took over."""
        rows = await self._store.read(
            BRANCHES.select("WHERE transcript_id = :id"), id=transcript_id
        )
        made = owned([BRANCHES.read(row) for row in rows], session_key)
        own = {branch.id for branch in made} if rows else {transcript_id}
        came_at = min((one.created_at for one in made if one.parent not in own), default=0)
        others = [segment.branch for segment in segments if segment.branch not in own]
        found = [
            ENTRIES.read(row)
            for names, until in ((sorted(own), _NEVER), (others, came_at))
            for row in await self._store.read(
                ENTRIES.select(
                    f"WHERE branch IN :names AND {_MARKS} AND at <= :until "
                    "ORDER BY at DESC, id DESC LIMIT :limit"
                ),
                names=names,
                until=until,
                limit=MOST_LABELS,
            )
        ]
        found.sort(key=lambda line: (line.at, line.id), reverse=True)
        return found[:MOST_LABELS]

    async def _tip(self, session_key: str, path: str | None) -> Tip | None:
        """Return where a path of a session ends; None if there is no session."""
        if path is None:
            rows = await self._store.read(
                "SELECT transcript_id, branch, fork_depth, leaf_id, leaf_depth FROM sessions "
                "WHERE key = :key",
                key=session_key,
            )
            return Tip(**dict(zip(_TIP, rows[0], strict=True))) if rows else None
        tip = await cards.tip_called(self._store, session_key, path)
        if tip is None:
            raise NotFound("transcript", f"no transcript {path[:80]!r} in this session")
        return tip

    async def _segments(self, tip: Tip) -> list[Segment]:
        if tip.fork_depth < 0:
            return stretches(tip.branch, [], tip.leaf_depth)
        rows = await self._store.read(CHAIN, branch=tip.branch)
        return stretches(tip.branch, [BRANCHES.read(row) for row in rows], tip.leaf_depth)

    async def _read(
        self, segments: Sequence[Segment], first: int, last: int, limit: int, *, is_forward: bool
    ) -> list[Entry]:
        """Read up to `limit` entries of a range from one of its ends."""
        order = "ASC" if is_forward else "DESC"
        found: list[Entry] = []
        for segment in segments if is_forward else reversed(segments):
            low, high = max(segment.first, first), min(segment.last, last)
            if low > high or len(found) == limit:
                continue
            rows = await self._store.read(
                ENTRIES.select(
                    "WHERE branch = :branch AND depth >= :low AND depth <= :high "
                    f"ORDER BY depth {order} LIMIT :limit"
                ),
                branch=segment.branch,
                low=low,
                high=high,
                limit=limit - len(found),
            )
            found += map(ENTRIES.read, rows)
        return found if is_forward else found[::-1]

    async def _read_page(
        self, segments: Sequence[Segment], first: int, last: int, limit: int, *, is_forward: bool
    ) -> list[Entry]:
        """Read as many entries of a range, up to `limit`, as fit on a page."""
        order = "ASC" if is_forward else "DESC"
        sizes: list[int] = []
        for segment in segments if is_forward else reversed(segments):
            rows = await self._store.read(
                f"{_SIZE} ORDER BY depth {order} LIMIT :limit",
                branch=segment.branch,
                low=max(segment.first, first),
                high=min(segment.last, last),
                limit=limit - len(sizes),
            )
            sizes += [size for (size,) in rows]
        return await self._read(segments, first, last, fitting(sizes), is_forward=is_forward)

    async def _depth(self, segments: Sequence[Segment], entry_id: str, field: str) -> int:
        rows = await self._store.read(
            "SELECT branch, depth FROM entries WHERE id = :id", id=entry_id
        )
        for branch, depth in rows:
            if _is_on(branch, depth, segments):
                return depth
        raise InvalidInput(field, f"no entry {entry_id[:80]!r} in this session")


def _is_on(branch: str, depth: int, segments: Sequence[Segment]) -> bool:
    return any(
        branch == segment.branch and segment.first <= depth <= segment.last for segment in segments
    )


_TIP = ("transcript_id", "branch", "fork_depth", "leaf_id", "leaf_depth")
