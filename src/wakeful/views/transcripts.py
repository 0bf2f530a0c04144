"""Look at what was said: on the path a session goes on, on those it left, and before a reset."""

from collections.abc import Sequence

from wakeful.store.database import Store
from wakeful.transcript import resets
from wakeful.transcript.branches import BRANCHES, CHAIN, Segment, Tip, owned, stretches
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.resets import PAST
from wakeful.transcript.sessions import SESSIONS
from wakeful.views.pages import fitting
from wakeful.vocabulary.entry import Entry, NoteBody
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.record import Record

LARGEST_PAGE = 1000
BRANCHES_AT_ONCE = 500  # whose ends one statement looks up
MOST_LABELS = 1000  # that are looked at, the newest of them

_MARKS = "kind = 'label' AND kind IN ('compaction', 'label')"  # as the index of them says it
_NEVER = 2**62
_LAST = (
    "SELECT entries.branch, entries.id, entries.depth FROM entries JOIN "
    "(SELECT branch, MAX(depth) AS depth FROM entries WHERE branch IN :names GROUP BY branch) ends "
    "ON ends.branch = entries.branch AND ends.depth = entries.depth"
)
_SIZE = (  # known without reading the body
    "SELECT OCTET_LENGTH(body) FROM entries "
    "WHERE branch = :branch AND depth >= :low AND depth <= :high"
)


class TranscriptCard(Record):
    """One conversation of a session: the one that goes on, or one before a reset."""

    tip: Tip
    is_current: bool
    started_at: int
    ended_at: int | None = None
    ended_by: str | None = None
    branches: Sequence[Tip] = ()  # every path that was ever gone in it


class TranscriptView:
    """Reads transcripts by page, never whole."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def newest(self, session_key: str, limit: int) -> list[Entry]:
        """Return the last entries of the session's path, oldest first."""
        return list(await self.page(session_key, limit=limit))

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

    async def cards(self, session_key: str) -> list[TranscriptCard]:
        """Return the conversations of a session, the newest first."""
        rows = await self._store.read(SESSIONS.select("WHERE key = :key"), key=session_key)
        if not rows:
            raise NotFound("session", f"no session {session_key!r}")
        session = SESSIONS.read(rows[0])
        found = [
            TranscriptCard(
                tip=Tip(
                    transcript_id=session.transcript_id,
                    branch=session.branch,
                    fork_depth=session.fork_depth,
                    leaf_id=session.leaf_id,
                    leaf_depth=session.leaf_depth,
                ),
                is_current=True,
                started_at=session.started_at,
                branches=await self._branches(session.transcript_id, session_key),
            )
        ]
        for row in reversed(await self._store.read(resets.OF_SESSION, key=session_key)):
            past = PAST.read(row)
            tip = Tip(
                transcript_id=past.id,
                branch=past.branch,
                fork_depth=past.fork_depth,
                leaf_id=past.leaf_id,
                leaf_depth=past.leaf_depth,
            )
            card = TranscriptCard(
                tip=tip,
                is_current=False,
                started_at=past.started_at,
                ended_at=past.ended_at,
                ended_by=past.ended_by,
                branches=await self._branches(past.id, session_key),
            )
            found.append(card)
        return found

    async def paths(self, session_key: str, *, is_current: bool) -> list[list[Segment]]:
        """Return the path that a session goes on, or also every other one that it ever went."""
        if is_current:
            tip = await self._tip(session_key, None)
            return [] if tip is None else [await self._segments(tip)]
        cards = await self.cards(session_key)
        tips = [tip for card in cards for tip in (card.tip, *card.branches)]
        return [await self._segments(tip) for tip in tips]

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

    async def _branches(self, transcript_id: str, session_key: str) -> list[Tip]:
        """Return the ends of every path that this session has gone in a transcript."""
        rows = await self._store.read(
            BRANCHES.select(
                "WHERE transcript_id = :id ORDER BY parent IS NOT NULL, created_at, id"
            ),
            id=transcript_id,
        )
        made = owned([BRANCHES.read(row) for row in rows], session_key)
        ends: dict[str, tuple[str, int]] = {}
        for start in range(0, len(made), BRANCHES_AT_ONCE):
            names = [branch.id for branch in made[start : start + BRANCHES_AT_ONCE]]
            for name, leaf_id, leaf_depth in await self._store.read(_LAST, names=names):
                ends[name] = (leaf_id, leaf_depth)
        found: list[Tip] = []
        for branch in made:
            leaf_id, leaf_depth = ends.get(branch.id, (None, branch.fork_depth))
            tip = Tip(
                transcript_id=transcript_id,
                branch=branch.id,
                fork_depth=branch.fork_depth,
                leaf_id=leaf_id,
                leaf_depth=leaf_depth,
            )
            found.append(tip)
        return found

    async def _tip(self, session_key: str, path: str | None) -> Tip | None:
        """Return where a path of a session ends; None if there is no session."""
        if path is None:
            rows = await self._store.read(
                "SELECT transcript_id, branch, fork_depth, leaf_id, leaf_depth FROM sessions "
                "WHERE key = :key",
                key=session_key,
            )
            return Tip(**dict(zip(_TIP, rows[0], strict=True))) if rows else None
        cards = await self.cards(session_key)
        known = {name: tip for card in cards for tip in card.branches for name in _names(tip)}
        known |= {tip.transcript_id: tip for card in cards for tip in (card.tip,)}
        if path not in known:
            raise NotFound("transcript", f"no transcript {path[:80]!r} in this session")
        return known[path]

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


def _names(tip: Tip) -> list[str]:
    """Return what a path may be called; the first branch has the name of its transcript."""
    return [name for name in (tip.leaf_id, tip.branch) if name not in (None, tip.transcript_id)]
