"""Export: a transcript leaves as lines, page by page."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from wakeful import attachments
from wakeful.store.database import Row, Store
from wakeful.transcript.branches import BRANCHES, CHAIN
from wakeful.transcript.entries import ENTRIES
from wakeful.transcript.jsonl import images, writing
from wakeful.transcript.jsonl.file import prefix_of
from wakeful.transcript.jsonl.numbers import Numbers
from wakeful.transcript.jsonl.references import references, renamed
from wakeful.transcript.jsonl.writing import Links
from wakeful.vocabulary.entry import CompactionBody, Entry, attached
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record

PAGE = 200  # entries that are read, and sent, at once
NO_LIMIT = 2**62
MOST_LABELS = 1000  # of one branch, the newest of them

_PAGES = (
    f"SELECT {ENTRIES.columns}, name, line FROM entries "  # noqa: S608 (ours)
    "LEFT JOIN entry_lines ON entry_id = id "
)
_NAMED = "SELECT id, name FROM entries LEFT JOIN entry_lines ON entry_id = id "


class ExportSource(Record):
    """A transcript, as it is when the export begins."""

    session_key: str
    transcript_id: str
    started_at: int
    branch: str  # the active one: its entries come last
    leaf_depth: int
    leaf_id: str | None


async def source(store: Store, session_key: str, transcript_id: str | None = None) -> ExportSource:
    """Return a transcript of a session: the one it goes on in, or one from before a reset."""
    rows = await store.read(
        "SELECT transcript_id, started_at, branch, leaf_depth, leaf_id, 0 AS is_past "
        "FROM sessions WHERE key = :key "
        "UNION ALL SELECT id, started_at, branch, leaf_depth, leaf_id, 1 "
        "FROM past_transcripts WHERE session_key = :key ORDER BY is_past",
        key=session_key,
    )
    if not rows:
        raise NotFound("session", f"no session {session_key!r}")
    for row in rows:
        if transcript_id in (None, row[0]):
            return ExportSource(
                session_key=session_key,
                transcript_id=row[0],
                started_at=row[1],
                branch=row[2],
                leaf_depth=row[3],
                leaf_id=row[4],
            )
    raise NotFound("transcript", f"no transcript {str(transcript_id)[:80]!r} in this session")


async def export(store: Store, wanted: ExportSource) -> AsyncGenerator[bytes, None]:
    """Yield whole lines, many at a time; memory does not grow with the transcript's texts.

    First come the lines of the file it was imported from, in their order, then what was said
    since, branch by branch, the active one last. If the session stands elsewhere than at the last
    of them, a line says where. The branches of a session that forked off are its own, and leave
    with it alone; labels of what it took over leave with it, too. When the session is deleted
    meanwhile it ends in NotFound: what was left out must not seem to be all.
    """
    has_begun = await _has_begun(store, wanted)
    rows = await store.read(
        "SELECT header FROM imports WHERE transcript_id = :id", id=wanted.transcript_id
    )
    header = rows[0][0] if rows else None
    yield _header(wanted, header, has_begun=has_begun) + b"\n"
    scribe = _Scribe(store)
    prefix = prefix_of(wanted.transcript_id) if has_begun and rows else None
    if prefix is not None:
        async for page in _imported(store, prefix):
            yield await scribe.written(page)
    async for segment in _segments(store, wanted, has_begun, prefix):
        async for page in _pages(store, segment):
            yield await scribe.written(page)
    if not has_begun:
        yield await scribe.labelled(await _labels_beyond(store, wanted))
    last = await scribe.leaf(wanted.leaf_id)
    await source(store, wanted.session_key, wanted.transcript_id)
    if last is not None:
        yield last


def _header(wanted: ExportSource, imported: str | None, *, has_begun: bool) -> bytes:
    """Return the first line: that of the file it came from, or one that names where it forked."""
    if has_begun and imported is not None:
        return imported.encode()
    if has_begun:
        return writing.header(wanted.transcript_id, wanted.started_at, None)
    known = None if imported is None else msgspec.json.decode(imported).get("id")
    parent = known if isinstance(known, str) else writing.header_id(wanted.transcript_id)
    return writing.header(wanted.branch, wanted.started_at, parent)


async def _has_begun(store: Store, wanted: ExportSource) -> bool:
    """Tell whether the session began this transcript, or forked off it."""
    rows = await store.read(
        "SELECT session_key FROM branches WHERE id = :id AND session_key <> ''",
        id=wanted.transcript_id,
    )
    return not rows or rows[0][0] == wanted.session_key


@dataclass(frozen=True)
class _Segment:
    """A piece of a branch: the entries below one depth, down to another."""

    branch: str
    after: int
    until: int


class _Scribe:
    """Writes lines, and knows what it called the entries so far."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._taken = Numbers()
        self._whole: set[str] = set()  # ids whose end was another's name already
        self._last: tuple[str, str] = ("", "")  # the id and the name of the entry before
        self._last_at = 0

    async def written(self, rows: Sequence[Row]) -> bytes:
        lines = [await self._line(ENTRIES.read(row[:-2]), row[-2], row[-1]) for row in rows]
        return b"".join(line + b"\n" for line in lines)

    async def _line(self, entry: Entry, given: str | None, kept: str | None) -> bytes:
        name = self._named(entry.id, given)
        if kept is None:
            line = await self._composed(entry, name)
        else:
            line = images.unfolded(kept, await self._contents(entry)).encode()
        self._last, self._last_at = (entry.id, name), entry.at
        return line

    async def labelled(self, rows: Sequence[Row]) -> bytes:
        """Return lines with labels, each below what it labels: its own place is left behind."""
        lines: list[bytes] = []
        for row in rows:
            entry = ENTRIES.read(row[:-2])
            body = entry.content()
            (target,) = references(entry.kind, body)
            name, parent = self._named(entry.id, row[-2]), await self._name_of(target)
            links = Links(name=name, parent=parent, first_kept=name)
            said = renamed(entry.kind, body, {target: parent or target})
            lines.append(writing.line(entry.kind, entry.at, said, links, writing.NO_CONTENTS))
            self._last, self._last_at = (entry.id, name), entry.at
        return b"".join(line + b"\n" for line in lines)

    async def leaf(self, leaf_id: str | None) -> bytes | None:
        """Return the line that says where the session stands; None: at the last line."""
        last_id, last_name = self._last
        if leaf_id == (last_id or None):
            return None
        target = None if leaf_id is None else await self._name_of(leaf_id)
        digits = hashlib.blake2b(f"{last_name} {target}".encode(), digest_size=32).hexdigest()
        names = (digits[:size] for size in (8, 16, 64))
        name = next((name for name in names if self._taken.add(name, 0)), digits)
        return writing.leaf(name, target, self._last_at) + b"\n"

    async def _composed(self, entry: Entry, name: str) -> bytes:
        body = entry.content()
        first_kept = ""
        if isinstance(body, CompactionBody):
            is_kept = body.first_kept_depth < entry.depth
            first_kept = await self._name_at(entry.branch, body.first_kept_depth) if is_kept else ""
        named = references(entry.kind, body)
        names = {one: found for one in named if (found := await self._name_of(one))}
        links = Links(
            name=name,
            parent=None if entry.parent_id is None else await self._name_of(entry.parent_id),
            first_kept=first_kept or name,
        )
        contents = await self._contents(entry)
        return writing.line(entry.kind, entry.at, renamed(entry.kind, body, names), links, contents)

    async def _contents(self, entry: Entry) -> Mapping[str, str]:
        """Return the bytes of what is attached to an entry."""
        hashes = [one.hash for one in attached(entry)]
        if not hashes:
            return writing.NO_CONTENTS
        return await asyncio.to_thread(
            images.canonical, await attachments.read(self._store, hashes)
        )

    def _named(self, entry_id: str, given: str | None) -> str:
        """Name an entry: as its file did, else by the end of its id, else by all of it."""
        name = given or entry_id[-8:]
        if not self._taken.add(name, 0) and given is None:
            self._whole.add(entry_id)
            name = entry_id.rpartition("_")[2]
        return name

    async def _name_of(self, entry_id: str) -> str | None:
        if entry_id == self._last[0]:
            return self._last[1]
        rows = await self._store.read(f"{_NAMED} WHERE id = :id", id=entry_id)
        return self._known(rows)

    async def _name_at(self, branch: str, depth: int) -> str | None:
        """Return the name of the entry at a depth on the way from a branch to the root."""
        async for part in _lineage(self._store, branch, NO_LIMIT):
            if depth > part.after:
                rows = await self._store.read(
                    f"{_NAMED} WHERE branch = :branch AND depth = :depth",
                    branch=part.branch,
                    depth=depth,
                )
                return self._known(rows)
        return None

    def _known(self, rows: Sequence[Row]) -> str | None:
        if not rows:
            return None
        entry_id, given = rows[0]
        if given is not None:
            return given
        return entry_id.rpartition("_")[2] if entry_id in self._whole else entry_id[-8:]


async def _imported(store: Store, prefix: str) -> AsyncIterator[Sequence[Row]]:
    after = prefix
    while True:
        rows = await store.read(
            f"{_PAGES} WHERE id > :after AND id < :end ORDER BY id LIMIT :page",
            after=after,
            end=f"{prefix}g",
            page=PAGE,
        )
        if not rows:
            return
        yield rows
        after = rows[-1][0]


async def _pages(store: Store, segment: _Segment) -> AsyncIterator[Sequence[Row]]:
    after = segment.after
    while after < segment.until:
        rows = await store.read(
            f"{_PAGES} WHERE branch = :branch AND depth > :after AND depth <= :until "
            "ORDER BY depth LIMIT :page",
            branch=segment.branch,
            after=after,
            until=segment.until,
            page=PAGE,
        )
        if not rows:
            return
        yield rows
        after = ENTRIES.read(rows[-1][:-2]).depth


@dataclass
class _Walk:
    """How far each branch was written."""

    imported: str | None  # what the ids of imported entries begin with
    done: dict[str, int] = field(default_factory=dict[str, int])


async def _segments(
    store: Store, wanted: ExportSource, has_begun: bool, imported: str | None
) -> AsyncIterator[_Segment]:
    """Yield what was said here, so that every entry comes after the one above it."""
    walk = _Walk(imported)
    async for branch in _branches(store, wanted, has_begun, imported):
        if branch != wanted.branch:
            async for segment in _rest(store, walk, branch, NO_LIMIT):
                yield segment
    async for segment in _rest(store, walk, wanted.branch, wanted.leaf_depth):
        yield segment


async def _labels_beyond(store: Store, wanted: ExportSource) -> list[Row]:
    """Return the lines that label what a fork took over, and lie beyond where it forked off."""
    forks = [BRANCHES.read(row) for row in await store.read(CHAIN, branch=wanted.branch)]
    own = {fork.id: fork.created_at for fork in forks if fork.session_key == wanted.session_key}
    parts = [part async for part in _lineage(store, wanted.branch, wanted.leaf_depth)]
    found: dict[str, tuple[Row, bool]] = {}
    for row, part in await _label_lines(store, parts, own):
        entry = ENTRIES.read(row[:-2])
        is_beyond = part.branch not in own and entry.depth > part.until
        for target in references(entry.kind, entry.content()):
            found.setdefault(target, (row, is_beyond))
    targets = await store.read(
        "SELECT id, branch, depth FROM entries WHERE id IN :ids", ids=list(found)
    )
    until = {part.branch: part.until for part in parts}
    taken = {row[0] for row in targets if row[2] <= until.get(row[1], -1)}
    lines = [row for target, (row, is_beyond) in found.items() if is_beyond and target in taken]
    return lines[::-1]


async def _label_lines(
    store: Store, parts: Sequence[_Segment], own: Mapping[str, int]
) -> list[tuple[Row, _Segment]]:
    """Return the labels on the branches of a path, the newest first; others' until the fork."""
    came_at = min(own.values(), default=0)
    found = [
        (row, part)
        for part in parts
        for row in await store.read(
            f"{_PAGES} WHERE branch = :branch AND kind = 'label' "
            "AND kind IN ('compaction', 'label') AND at <= :until "
            "ORDER BY at DESC, id DESC LIMIT :limit",
            branch=part.branch,
            until=NO_LIMIT if part.branch in own else came_at,
            limit=MOST_LABELS,
        )
    ]
    found.sort(key=lambda one: (ENTRIES.read(one[0][:-2]).at, one[0][0]), reverse=True)
    return found


async def _branches(
    store: Store, wanted: ExportSource, has_begun: bool, imported: str | None
) -> AsyncIterator[str]:
    """Yield the session's branches as they were made; not those that came whole from a file."""
    if has_begun:
        yield wanted.transcript_id
    after = ""
    while True:
        rows = await store.read(
            "SELECT id, (SELECT leaf.id FROM entries leaf WHERE leaf.branch = branches.id "
            "ORDER BY leaf.depth DESC LIMIT 1) AS leaf_id FROM branches "
            "WHERE transcript_id = :transcript_id AND id > :after AND parent IS NOT NULL "
            "AND session_key IN :owners ORDER BY id LIMIT :page",
            transcript_id=wanted.transcript_id,
            owners=[wanted.session_key, *([""] if has_begun else [])],
            after=after,
            page=PAGE,
        )
        if not rows:
            return
        for branch, leaf_id in rows:
            if imported is None or not (leaf_id or "").startswith(imported):
                yield branch
        after = rows[-1][0]


async def _rest(store: Store, walk: _Walk, branch: str, until: int) -> AsyncIterator[_Segment]:
    """Yield what is still unwritten on the way from the root to the end of a branch."""
    parts = [part async for part in _lineage(store, branch, until)]
    for part in reversed(parts):
        if part.branch not in walk.done:
            walk.done[part.branch] = await _end_of_import(store, walk, part)
        after = max(part.after, walk.done[part.branch])
        if after < part.until:
            yield _Segment(part.branch, after, part.until)
            walk.done[part.branch] = part.until


async def _lineage(store: Store, branch: str, until: int) -> AsyncIterator[_Segment]:
    """Yield the pieces of the path from a branch to the root, the nearest first."""
    for row in await store.read(CHAIN, branch=branch):
        fork = BRANCHES.read(row)
        if fork.parent is not None:
            yield _Segment(branch, fork.fork_depth, until)
            branch, until = fork.parent, min(until, fork.fork_depth)
    yield _Segment(branch, -1, until)


async def _end_of_import(store: Store, walk: _Walk, part: _Segment) -> int:
    """Return the depth of the last imported entry of a branch."""
    if walk.imported is None:
        return -1
    rows = await store.read(
        "SELECT depth FROM entries WHERE branch = :branch AND id > :first AND id < :end "
        "ORDER BY depth DESC LIMIT 1",
        branch=part.branch,
        first=walk.imported,
        end=f"{walk.imported}g",
    )
    return rows[0][0] if rows else -1
