"""Import: a file becomes a session, which nobody sees before it is whole."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

import msgspec

from wakeful import attachments
from wakeful.bus.bus import Bus
from wakeful.store.database import Store, Tx
from wakeful.transcript.entries import APPENDED, ENTRIES
from wakeful.transcript.jsonl import imports
from wakeful.transcript.jsonl.file import File, Found, Trouble
from wakeful.transcript.jsonl.imports import EntryLine
from wakeful.transcript.jsonl.splitting import FileLine, lines
from wakeful.transcript.sessions import SESSIONS, Session
from wakeful.vocabulary import session_key as keys
from wakeful.vocabulary.entry import CompactionBody, Entry, chain, decode_body
from wakeful.vocabulary.errors import InvalidInput, Permanent
from wakeful.vocabulary.event import Event
from wakeful.vocabulary.failpoints import failpoint
from wakeful.vocabulary.ids import Ids
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.session_key import SessionKey

MOST_ROWS = 400  # that one write adds
MOST_BYTES = 1024 * 1024
LONGEST_NAME = 64

_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
_READ_HERE = (
    "; read are lines of JSON, of pi, openclaw and Claude Code, or each with a role and a content"
)

_ADD_BRANCH = (
    "INSERT INTO branches (id, transcript_id, parent, fork_depth, created_at) "
    "VALUES (:id, :transcript_id, :parent, :fork_depth, :created_at)"
)


# Is called with the key of a session in the commit that shows it.
OnShown = Callable[[Tx, str], None]


class ImportReport(Record):
    """What became of a file."""

    session_key: str
    transcript_id: str | None  # None: it was only tried
    entries: int
    branches: int
    troubles: int
    told: Sequence[Trouble]  # the first of them
    unknown: int = 0  # lines that were kept though nobody here reads them
    unread_blocks: int = 0  # of messages, likewise


class Importer:
    """Writes files into the ledger, in small steps."""

    def __init__(
        self,
        store: Store,
        bus: Bus,
        ids: Ids,
        default_agent: str,
        on_shown: OnShown = lambda tx, key: None,
    ) -> None:
        self._on_shown = on_shown
        self._store = store
        self._bus = bus
        self._ids = ids
        self._default_agent = default_agent

    async def run(
        self, chunks: AsyncIterator[bytes], session: SessionKey | None, *, is_trial: bool
    ) -> ImportReport:
        """Make a session of a file, or only say what would become of it.

        A kill leaves rows that nobody sees; the janitor removes them, and the file may be
        imported again at once.
        """
        if session is not None:
            await self._refuse_existing(session)
        work = ImportWork(self._store, self._ids.new("tr"), is_trial=is_trial)
        try:
            await work.read(chunks)
            key = session or _key(self._default_agent, work)
            if session is None:
                await self._refuse_existing(key)
            if not is_trial:
                await self._finish(key, work)
        except BaseException:
            with suppress(Exception):  # else the janitor does it
                await work.undo()
            raise
        file = work.file
        return ImportReport(
            session_key=key,
            transcript_id=None if is_trial else work.transcript_id,
            entries=len(file.tree),
            branches=file.tree.branches,
            troubles=file.trouble_count,
            told=file.troubles,
            unknown=file.unknown_count,
            unread_blocks=file.unread_blocks,
        )

    async def _refuse_existing(self, key: SessionKey) -> None:
        if await self._store.read("SELECT 1 FROM sessions WHERE key = :key", key=key):
            raise _taken(key)

    async def _finish(self, key: SessionKey, work: "ImportWork") -> None:
        failpoint("import-written")
        if not await self._store.transact(lambda tx: self._show(tx, key, work)):
            raise _taken(key)
        failpoint("import-done")

    def _show(self, tx: Tx, key: SessionKey, work: "ImportWork") -> bool:
        """Let everybody see the session; False if somebody made one of this name meanwhile."""
        session = SESSIONS.params(work.session(key, tx.now))
        if not tx.run(f"{SESSIONS.insert} ON CONFLICT DO NOTHING", **session):
            return False
        if not imports.finish(tx, work.transcript_id, work.file.header):
            raise _swept()
        self._on_shown(tx, key)
        entries = len(work.file.tree)
        event = Event(kind="session.imported", session_key=key, data={"entries": entries})
        self._bus.publish(tx, event)
        return True


class ImportWork:
    """One import under way."""

    def __init__(self, store: Store, transcript_id: str, *, is_trial: bool) -> None:
        self.transcript_id = transcript_id
        self.file = File(transcript_id)
        self._store = store
        self._is_trial = is_trial
        self._is_compressed = False
        self._branches = 1  # the first has no row
        self._last: Entry | None = None
        self._compaction: tuple[str, int] | None = None  # the last one on the way to the leaf

    async def read(self, chunks: AsyncIterator[bytes]) -> None:
        if not self._is_trial:
            await self._store.transact(lambda tx: imports.begin(tx, self.transcript_id))
        pieces: list[FileLine] = []
        size = 0
        async for piece in lines(chunks):
            self._is_compressed |= piece.number == 1 and piece.text.startswith(_COMPRESSED)
            pieces.append(piece)
            size += len(piece.text)
            if len(pieces) >= MOST_ROWS or size >= MOST_BYTES:
                await self._take(pieces)
                pieces, size = [], 0
        await self._take(pieces, is_end=True)
        self._refuse_unknown()
        await self._find_compaction()

    def _refuse_unknown(self) -> None:
        """Refuse a file of which nothing was understood: to keep it would not be to import it."""
        file = self.file
        has_more = file.unknown_count + file.trouble_count + len(file.tree) > 0
        if file.understood or (file.header is not None and not has_more):
            return
        trouble = [f": line {one.line}: {one.what}" for one in file.troubles[:1]]
        if file.unknown_count:
            trouble = [f" that is known here: {file.unknown_count} lines are of other kinds"]
        if self._is_compressed:
            trouble = [": it is compressed, unpack it first"]
        raise InvalidInput("file", "holds no transcript" + "".join([*trouble, _READ_HERE]))

    async def undo(self) -> None:
        if self._is_trial:
            return
        is_gone = False
        while not is_gone:
            is_gone = await self._store.transact(
                lambda tx: imports.undo(tx, self.transcript_id, MOST_ROWS)
            )

    def session(self, key: SessionKey, now: int) -> Session:
        """Return the row of the session that goes on where the file ends."""
        tree, last = self.file.tree, self._last
        cycle, context_from = self._compaction or ("", 0)
        row = Session(
            key=key,
            agent_id=keys.agent_of(key),
            transcript_id=self.transcript_id,
            branch=self.transcript_id,
            created_at=now,
            started_at=now,
            last_write_at=now,
            label=self.file.label,
        )
        if last is None:
            return row
        return msgspec.structs.replace(
            row,
            branch=last.branch,
            last_write_at=min(last.at, now),
            fork_depth=tree.fork(tree.branch_of[len(tree) - 1])[1],
            leaf_id=last.id,
            leaf_depth=last.depth,
            leaf_hash=last.hash,
            cycle=cycle,
            context_from=context_from,
            compactions=len(self.file.compactions),
            seen_depth=last.depth,
        )

    async def _take(self, pieces: list[FileLine], *, is_end: bool = False) -> None:
        # Off the loop: it takes some milliseconds.
        found = await asyncio.to_thread(self.file.understand, pieces, is_end=is_end)
        if self._is_trial or not found:
            return
        hashes = await self._hashes_above(found)
        entries = await asyncio.to_thread(self._entries, found, hashes)
        kept = [
            EntryLine(entry_id=one.id, name=one.name, line=one.line)
            for one in found
            if one.name is not None or one.line is not None
        ]
        branches = self._new_branches()

        def write(tx: Tx) -> None:
            if not imports.touch(tx, self.transcript_id):
                raise _swept()
            tx.many(_ADD_BRANCH, [{**branch, "created_at": tx.now} for branch in branches])
            tx.many(ENTRIES.insert, [ENTRIES.params(entry) for entry in entries])
            imports.add_lines(tx, kept)
            for one in found:
                attachments.keep(tx, one.id, one.brought)
            for branch in {entry.branch for entry in entries}:
                tx.notify(APPENDED, branch)

        await self._store.transact(write)
        self._last = entries[-1]
        failpoint("import-page")

    async def _hashes_above(self, found: Sequence[Found]) -> dict[int, str]:
        """Return the hashes of lines above these that an earlier write added."""
        first = found[0].number
        above = {one.parent for one in found if one.parent is not None and one.parent < first}
        ids = {self.file.id_of(number): number for number in above}
        if self._last is not None and len(ids) == 1 and self._last.id in ids:
            return {ids[self._last.id]: self._last.hash}
        rows = await self._store.read(
            "SELECT id, hash FROM entries WHERE id IN :ids", ids=list(ids)
        )
        if len(rows) < len(ids):
            raise _swept()
        return {ids[row[0]]: row[1] for row in rows}

    def _entries(self, found: Sequence[Found], hashes: dict[int, str]) -> list[Entry]:
        tree, entries = self.file.tree, list[Entry]()
        for one in found:
            above = "" if one.parent is None else hashes[one.parent]
            hashes[one.number] = chain(above, one.id, one.kind, one.body)
            entries.append(
                Entry(
                    id=one.id,
                    transcript_id=self.transcript_id,
                    branch=self._branch_id(tree.branch_of[one.number]),
                    depth=tree.depth_of[one.number],
                    parent_id=one.parent_id,
                    turn_id=None,
                    stimulus_id=None,
                    epoch=0,
                    kind=one.kind,
                    at=one.at,
                    body=one.body,
                    hash=hashes[one.number],
                )
            )
        return entries

    def _new_branches(self) -> list[dict[str, object]]:
        tree, rows = self.file.tree, list[dict[str, object]]()
        for branch in range(self._branches, tree.branches):
            parent, fork_depth = tree.fork(branch)
            rows.append(
                {
                    "id": self._branch_id(branch),
                    "transcript_id": self.transcript_id,
                    "parent": self._branch_id(parent),
                    "fork_depth": fork_depth,
                }
            )
        self._branches = max(self._branches, tree.branches)
        return rows

    def _branch_id(self, branch: int) -> str:
        if branch <= 0:
            return self.transcript_id
        digits = self.transcript_id.rpartition("_")[2]
        return f"br_{digits}{branch:08x}"

    async def _find_compaction(self) -> None:
        """Find what the model sees first when the session goes on."""
        file = self.file
        leaf = len(file.tree) - 1
        on_path = (one for one in reversed(file.compactions) if file.tree.is_above(one, leaf))
        number = next(on_path, None)
        if number is None or self._is_trial:
            return
        entry_id = file.id_of(number)
        rows = await self._store.read("SELECT body FROM entries WHERE id = :id", id=entry_id)
        body = decode_body(rows[0][0])
        assert isinstance(body, CompactionBody)
        # Without a summary it only undid another compaction, and began no cycle of its own.
        self._compaction = entry_id if body.summary else "", body.first_kept_depth


def _key(agent_id: str, work: ImportWork) -> SessionKey:
    """Name a session by what the header of its file is called."""
    name = work.file.header_id[:LONGEST_NAME] or work.transcript_id
    return keys.build(agent_id, "import", keys.escape(name))


def _taken(key: str) -> InvalidInput:
    return InvalidInput("session", f"there is a session {key!r} already: name another")


def _swept() -> Permanent:
    return Permanent("the import took a rest of an hour and was swept away; repeat it")
