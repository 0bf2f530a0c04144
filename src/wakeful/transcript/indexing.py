"""The indexer: a service that adds new entries to the index of what was said.

It follows behind the turns, so that no turn waits for it: adding a line at a time inside their
commits took a tenth of their CPU. How far each branch has come is a row, moved in the commit
that adds the lines.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain, islice

from wakeful.store.database import Row, Store
from wakeful.transcript import search
from wakeful.transcript.entries import APPENDED, ENTRIES
from wakeful.transcript.search import Indexed, indexed
from wakeful.vocabulary.clock import Clock
from wakeful.vocabulary.retrying import retrying

GATHER_S = 0.25  # lines that come together are cheaper
TOGETHER = 16  # branches that are read at once
PAGE = 200  # entries of one branch that are read at once, and lines that one write adds
REMEMBERED = 4096  # branches
MOST_WORDS = 20_000  # that one write adds
BRANCHES = 1000  # that are looked at together when the runtime starts

_LAST = "COALESCE((SELECT MAX(entries.depth) FROM entries WHERE entries.branch = {}), -1)"

# Where a kill, or a release without an index, may have left something behind: pages of names,
# their branches and whether those are behind. A page is of what is looked at, not of what is
# found: with nothing behind, one statement would look at everything.
_BEHIND = tuple(
    "SELECT page.name, page.branch, page.depth > COALESCE(search_heads.depth, -1) FROM "  # noqa: S608
    f"(SELECT {name} AS name, {branch} AS branch, {depth} AS depth FROM {table} "
    f"WHERE {name} > :after ORDER BY {name} LIMIT :limit) AS page "
    "LEFT JOIN search_heads ON search_heads.branch = page.branch ORDER BY page.name"
    for table, name, branch, depth in (
        ("sessions", "key", "branch", "leaf_depth"),
        ("sessions", "key", "transcript_id", _LAST.format("sessions.transcript_id")),
        ("branches", "id", "id", _LAST.format("branches.id")),
        ("past_transcripts", "id", "id", _LAST.format("past_transcripts.id")),
    )
)


_NEW = " UNION ALL ".join(
    f"SELECT * FROM (SELECT {ENTRIES.columns} FROM entries "  # noqa: S608 (ours)
    f"WHERE branch = :branch{number} AND depth > :head{number} ORDER BY depth LIMIT :page) "
    f"AS new{number}"
    for number in range(TOGETHER)
)


class Indexer:
    """Keeps the index current."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: set[str] = set()
        self._heads: dict[str, int] = {}  # how far branches have come, as last known
        self._woken = asyncio.Event()

    async def run(self) -> None:
        undo = self._store.listen(APPENDED, self._note)
        try:
            await retrying(self._clock, "indexing", self.find_behind)
            while True:
                await retrying(self._clock, "indexing", self.catch_up)
                await self._woken.wait()
                await self._clock.sleep(GATHER_S)
        finally:
            undo()

    async def catch_up(self) -> None:
        """Add what is new on the branches that were noted."""
        self._woken.clear()
        while self._waiting:
            branches = list(islice(self._waiting, TOGETHER))
            self._waiting.difference_update(branches)
            try:
                await self._follow(branches)
            except BaseException:
                self._waiting.update(branches)
                self._woken.set()
                raise

    async def find_behind(self) -> None:
        for sql in _BEHIND:
            after = ""
            while rows := await self._store.read(sql, after=after, limit=BRANCHES):
                after = rows[-1][0]
                for _, branch, is_behind in rows:
                    if is_behind:
                        self._note(branch)
                await self.catch_up()

    async def _follow(self, branches: Sequence[str]) -> None:
        """Add the next entries of some branches; those with more of them are noted again."""
        heads = await self._heads_of(branches)
        params: dict[str, object] = {"page": PAGE}
        for number in range(TOGETHER):
            branch = branches[number] if number < len(branches) else ""
            params |= {f"branch{number}": branch, f"head{number}": heads.get(branch, -1)}
        rows = await self._store.read(_NEW, **params)
        found = await asyncio.to_thread(_by_branch, rows)
        for batch in _batches(found):
            done = await self._store.transact(
                lambda tx, batch=batch: search.add(tx, self._store.full_text, batch, heads)
            )
            heads.update(done)
        for branch, lines in found.items():
            if heads[branch] == lines[-1].depth:
                self._remember(branch, heads[branch])
            if len(lines) == PAGE or branch not in self._heads:
                self._note(branch)

    async def _heads_of(self, branches: Sequence[str]) -> dict[str, int]:
        heads = {branch: self._heads.pop(branch, -1) for branch in branches}
        unknown = [branch for branch, depth in heads.items() if depth < 0]
        if unknown:
            rows = await self._store.read(
                "SELECT branch, depth FROM search_heads WHERE branch IN :unknown", unknown=unknown
            )
            heads |= {row[0]: row[1] for row in rows}
        return heads

    def _remember(self, branch: str, depth: int) -> None:
        self._heads[branch] = depth
        while len(self._heads) > REMEMBERED:
            del self._heads[next(iter(self._heads))]

    def _note(self, branch: str) -> None:
        self._waiting.add(branch)
        self._woken.set()


def _by_branch(rows: Sequence[Row]) -> dict[str, list[Indexed]]:
    found: dict[str, list[Indexed]] = {}
    for row in rows:
        line = indexed(ENTRIES.read_partly(row))  # one that cannot be read holds up no other
        found.setdefault(line.branch, []).append(line)
    return found


def _batches(found: Mapping[str, Sequence[Indexed]]) -> list[list[Indexed]]:
    """Part lines into what one write may add."""
    batches: list[list[Indexed]] = [[]]
    size = 0
    for line in chain.from_iterable(found.values()):
        if len(batches[-1]) == PAGE or (batches[-1] and size + len(line.words) > MOST_WORDS):
            batches.append([])
            size = 0
        batches[-1].append(line)
        size += len(line.words)
    return [batch for batch in batches if batch]
