"""Look at the conversations of a session: the one that goes on, and those before a reset."""

from collections.abc import Collection, Sequence

from wakeful.store.database import Row, Store
from wakeful.transcript.branches import BRANCHES, Branch, Tip, beginner, owned
from wakeful.transcript.resets import PAST, PastTranscript
from wakeful.transcript.sessions import SESSIONS
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.record import Record

MOST_BRANCHES = 1000  # of the conversations of one page that are shown, the newest
ENDS_AT_ONCE = 500  # branches whose ends one statement looks up
_NOW = 2**62  # ends after all that has ended

_ENDS = (
    "SELECT entries.branch, entries.id, entries.depth FROM entries JOIN "
    "(SELECT branch, MAX(depth) AS depth FROM entries WHERE branch IN :names GROUP BY branch) ends "
    "ON ends.branch = entries.branch AND ends.depth = entries.depth"
)
_PAST = PAST.select(
    "WHERE session_key = :key AND (ended_at < :at OR (ended_at = :at AND id < :id)) "
    "ORDER BY ended_at DESC, id DESC LIMIT :limit"
)
_ROOTS = BRANCHES.select("WHERE transcript_id IN :ids AND parent IS NULL")
_OWN = (
    "WHERE transcript_id IN :ids AND parent IS NOT NULL "
    "AND (session_key = :key OR (session_key = '' AND transcript_id IN :begun)) "
)
_MADE = BRANCHES.select(f"{_OWN} ORDER BY created_at DESC, id DESC LIMIT :limit")
_COUNTS = f"SELECT transcript_id, COUNT(*) FROM branches {_OWN} GROUP BY transcript_id"  # noqa: S608


class TranscriptCard(Record):
    """One conversation of a session: the one that goes on, or one before a reset."""

    tip: Tip
    is_current: bool
    started_at: int
    ended_at: int | None = None
    ended_by: str | None = None
    branches: Sequence[Tip] = ()  # the paths that were gone in it, the oldest first
    has_more_branches: bool = False  # that are not among them, though older

    @property
    def place(self) -> str:
        """The cursor after this one."""
        return f"{_NOW if self.ended_at is None else self.ended_at}.{self.tip.transcript_id}"


async def page(
    store: Store, session_key: str, after: str | None, limit: int
) -> list[TranscriptCard]:
    """Return conversations of a session, the newest first; `after` is the place of the last one."""
    rows = await store.read(SESSIONS.select("WHERE key = :key"), key=session_key)
    if not rows:
        raise NotFound("session", f"no session {session_key!r}")
    cards = [_current(rows[0])] if after is None else []
    at, last = (_NOW, "") if after is None else _place(after)
    past = await store.read(_PAST, key=session_key, at=at, id=last, limit=limit - len(cards))
    cards += [_ended(PAST.read(row)) for row in past]
    return await _with_branches(store, session_key, cards)


async def tip_called(store: Store, session_key: str, name: str) -> Tip | None:
    """Return where a path of a session ends that is called by its transcript, its branch or its
    last entry; None if there is none.
    """
    rows = await store.read(
        "SELECT transcript_id, branch, fork_depth, leaf_id, leaf_depth FROM sessions "
        "WHERE key = :key AND transcript_id = :name UNION ALL "
        "SELECT id, branch, fork_depth, leaf_id, leaf_depth FROM past_transcripts "
        "WHERE session_key = :key AND id = :name",
        key=session_key,
        name=name,
    )
    if rows:
        return _tip(rows[0])
    held = await store.read(
        "SELECT branch, transcript_id FROM entries WHERE id = :name UNION ALL "
        "SELECT id, transcript_id FROM branches WHERE id = :name",
        name=name,
    )
    for branch, transcript_id in held:
        tip = await _tip_of(store, session_key, transcript_id, branch)
        if tip is not None and name in (tip.branch, tip.leaf_id):
            return tip
    return None


async def owned_branches(
    store: Store, session_key: str, transcript_ids: Collection[str]
) -> dict[str, tuple[int, int]]:
    """Return which entries of transcripts are a session's: the first and last depth by branch.

    Those of its own branches, and what it took over where it forked off another session.
    """
    rows = await store.read(
        BRANCHES.select("WHERE transcript_id IN :ids"), ids=list(transcript_ids)
    )
    made: dict[str, list[Branch]] = {one: [] for one in transcript_ids}
    for branch in map(BRANCHES.read, rows):
        made[branch.transcript_id].append(branch)
    found = {
        branch.id: (0, _NOW)
        for one, branches in made.items()
        for branch in owned(branches or [_root(one, session_key)], session_key)
    }
    inherited = await store.read(
        "SELECT branch, last_depth FROM inherited_branches WHERE session_key = :key",
        key=session_key,
    )
    return {branch: (0, last) for branch, last in inherited} | found


async def _tip_of(store: Store, session_key: str, transcript_id: str, branch: str) -> Tip | None:
    """Return the end of a branch, if it is one of this session's."""
    known = await store.read(
        "SELECT 1 FROM sessions WHERE key = :key AND transcript_id = :id UNION ALL "
        "SELECT 1 FROM past_transcripts WHERE session_key = :key AND id = :id",
        key=session_key,
        id=transcript_id,
    )
    if not known:
        return None
    rows = await store.read(
        BRANCHES.select("WHERE transcript_id = :id AND (parent IS NULL OR id = :branch)"),
        id=transcript_id,
        branch=branch,
    )
    made = [BRANCHES.read(row) for row in rows]
    if not made and branch == transcript_id:
        made = [_root(transcript_id, session_key)]
    mine = [one for one in owned(made, session_key) if one.id == branch]
    return (await _tips(store, mine)).get(branch)


async def _with_branches(
    store: Store, session_key: str, cards: Sequence[TranscriptCard]
) -> list[TranscriptCard]:
    ids = [card.tip.transcript_id for card in cards]
    roots = {
        root.transcript_id: root for root in map(BRANCHES.read, await store.read(_ROOTS, ids=ids))
    }
    begun = [one for one in ids if beginner(_known(roots.get(one))) in (None, "", session_key)]
    whose = {"ids": ids, "begun": begun, "key": session_key}
    rows = await store.read(_MADE, **whose, limit=MOST_BRANCHES)
    made = [BRANCHES.read(row) for row in rows]
    is_cut = len(made) == MOST_BRANCHES
    counts = {row[0]: row[1] for row in await store.read(_COUNTS, **whose)} if is_cut else {}
    mine = [*(roots[one] for one in begun if one in roots), *reversed(made)]
    tips = await _tips(store, mine)
    found: list[TranscriptCard] = []
    for card in cards:
        own = [tips[one.id] for one in mine if one.transcript_id == card.tip.transcript_id]
        shown = sum(one.transcript_id == card.tip.transcript_id for one in made)
        has_more = counts.get(card.tip.transcript_id, 0) > shown
        found.append(
            TranscriptCard(
                tip=card.tip,
                is_current=card.is_current,
                started_at=card.started_at,
                ended_at=card.ended_at,
                ended_by=card.ended_by,
                branches=own,
                has_more_branches=has_more,
            )
        )
    return found


async def _tips(store: Store, made: Sequence[Branch]) -> dict[str, Tip]:
    """Return where branches end."""
    ends: dict[str, tuple[str, int]] = {}
    for start in range(0, len(made), ENDS_AT_ONCE):
        names = [branch.id for branch in made[start : start + ENDS_AT_ONCE]]
        for name, leaf_id, leaf_depth in await store.read(_ENDS, names=names):
            ends[name] = (leaf_id, leaf_depth)
    found: dict[str, Tip] = {}
    for branch in made:
        leaf_id, leaf_depth = ends.get(branch.id, (None, branch.fork_depth))
        found[branch.id] = Tip(
            transcript_id=branch.transcript_id,
            branch=branch.id,
            fork_depth=branch.fork_depth,
            leaf_id=leaf_id,
            leaf_depth=leaf_depth,
        )
    return found


def _known(root: Branch | None) -> list[Branch]:
    return [] if root is None else [root]


def _root(transcript_id: str, session_key: str) -> Branch:
    """Return the only branch of a transcript that never forked."""
    return Branch(
        id=transcript_id,
        transcript_id=transcript_id,
        session_key=session_key,
        parent=None,
        fork_depth=-1,
        created_at=0,
    )


def _current(row: Row) -> TranscriptCard:
    session = SESSIONS.read(row)
    tip = Tip(
        transcript_id=session.transcript_id,
        branch=session.branch,
        fork_depth=session.fork_depth,
        leaf_id=session.leaf_id,
        leaf_depth=session.leaf_depth,
    )
    return TranscriptCard(tip=tip, is_current=True, started_at=session.started_at)


def _ended(past: PastTranscript) -> TranscriptCard:
    tip = Tip(
        transcript_id=past.id,
        branch=past.branch,
        fork_depth=past.fork_depth,
        leaf_id=past.leaf_id,
        leaf_depth=past.leaf_depth,
    )
    return TranscriptCard(
        tip=tip,
        is_current=False,
        started_at=past.started_at,
        ended_at=past.ended_at,
        ended_by=past.ended_by,
    )


def _tip(row: Row) -> Tip:
    transcript_id, branch, fork_depth, leaf_id, leaf_depth = row
    return Tip(
        transcript_id=transcript_id,
        branch=branch,
        fork_depth=fork_depth,
        leaf_id=leaf_id,
        leaf_depth=leaf_depth,
    )


def _place(cursor: str) -> tuple[int, str]:
    at, _, transcript_id = cursor.partition(".")
    if not (at.isascii() and at.isdecimal() and len(at) < 20):
        raise InvalidInput("after", f"is not a cursor of this list: {cursor[:80]!r}")
    return min(int(at), _NOW), transcript_id
