"""The indexer: a service that adds new entries to the index of what was said.

It follows behind the turns, so that no turn waits for it: adding a line at a time inside their
commits took a tenth of their CPU. How far each branch has come is a row, moved in the commit
that adds the lines.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from wakeful.store.database import Store
from wakeful.transcript import search
from wakeful.transcript.entries import APPENDED, ENTRIES
from wakeful.transcript.search import Indexed, indexed
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import Transient

GATHER_S = 0.25  # lines that come together are cheaper
RETRY_S = 5.0
PAGE = 200  # entries that are read at once
MOST_WORDS = 20_000  # that one write adds
BRANCHES = 500  # that are looked at together when the runtime starts

log = logging.getLogger(__name__)

# What a kill, or a release without an index, left behind; each takes and orders by a cursor.
_BEHIND = (
    "SELECT sessions.key, sessions.branch FROM sessions "
    "LEFT JOIN search_heads ON search_heads.branch = sessions.branch "
    "WHERE sessions.key > :after AND sessions.leaf_depth > COALESCE(search_heads.depth, -1) "
    "ORDER BY sessions.key LIMIT :limit",
    *(
        f"SELECT {key}, {branch} FROM {table} "  # noqa: S608 (ours)
        f"LEFT JOIN search_heads ON search_heads.branch = {branch} WHERE {key} > :after AND "
        f"COALESCE((SELECT MAX(depth) FROM entries WHERE entries.branch = {branch}), -1) "
        f"> COALESCE(search_heads.depth, -1) ORDER BY {key} LIMIT :limit"
        for table, key, branch in (
            ("sessions", "sessions.key", "sessions.transcript_id"),
            ("branches", "branches.id", "branches.id"),
            ("past_transcripts", "past_transcripts.id", "past_transcripts.id"),
        )
    ),
)


class Indexer:
    """Keeps the index current."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: set[str] = set()
        self._woken = asyncio.Event()

    async def run(self) -> None:
        undo = self._store.listen(APPENDED, self._note)
        try:
            await self._patiently(self.find_behind)
            while True:
                await self._patiently(self.catch_up)
                await self._woken.wait()
                await self._clock.sleep(GATHER_S)
        finally:
            undo()

    async def catch_up(self) -> None:
        """Add what is new on the branches that were noted."""
        self._woken.clear()
        while self._waiting:
            branch = next(iter(self._waiting))
            self._waiting.discard(branch)
            try:
                await self._follow(branch)
            except BaseException:
                self._note(branch)
                raise

    async def find_behind(self) -> None:
        for sql in _BEHIND:
            after = ""
            while rows := await self._store.read(sql, after=after, limit=BRANCHES):
                after = rows[-1][0]
                for _, branch in rows:
                    self._note(branch)
                await self.catch_up()

    async def _follow(self, branch: str) -> None:
        rows = await self._store.read(
            "SELECT depth FROM search_heads WHERE branch = :branch", branch=branch
        )
        head = rows[0][0] if rows else -1
        while True:
            rows = await self._store.read(
                ENTRIES.select(
                    "WHERE branch = :branch AND depth > :head ORDER BY depth LIMIT :page"
                ),
                branch=branch,
                head=head,
                page=PAGE,
            )
            if not rows:
                return
            lines = await asyncio.to_thread(_indexed, [ENTRIES.read(row) for row in rows])
            for group in _groups(lines):
                is_ours = await self._store.write(
                    lambda tx, group=group, head=head: search.add(
                        tx, self._store.full_text, branch, head, group
                    )
                )
                if not is_ours:
                    return  # another node follows this branch
                head = group[-1].depth

    async def _patiently(self, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await act()
            except Transient:
                log.warning("indexing waits: the store is not ready", exc_info=True)
                await self._clock.sleep(RETRY_S)

    def _note(self, branch: str) -> None:
        self._waiting.add(branch)
        self._woken.set()


def _indexed(entries: Sequence[Entry]) -> list[Indexed]:
    return [indexed(entry) for entry in entries]


def _groups(lines: Sequence[Indexed]) -> list[list[Indexed]]:
    """Part lines into what one write may add."""
    groups: list[list[Indexed]] = [[]]
    size = 0
    for line in lines:
        if groups[-1] and size + len(line.words) > MOST_WORDS:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += len(line.words)
    return groups
