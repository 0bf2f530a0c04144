"""Look at what was said."""

from collections.abc import Sequence

from wakeful.store.database import Store
from wakeful.transcript.entries import ENTRIES
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import InvalidInput

LARGEST_PAGE = 1000

_BRANCH = "branch = (SELECT branch FROM sessions WHERE key = :key)"


class TranscriptView:
    """Reads transcripts by page, never whole."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def newest(self, session_key: str, limit: int) -> list[Entry]:
        """Return the last entries of the active branch, oldest first."""
        return list(await self.page(session_key, limit=limit))

    async def page(
        self, session_key: str, *, after: str | None = None, before: str | None = None, limit: int
    ) -> Sequence[Entry]:
        """Return entries of the active branch, oldest first: those that follow the entry `after`,
        or else those that lead up to the entry `before`, or to the newest.
        """
        if not 1 <= limit <= LARGEST_PAGE:
            raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}, not {limit}")
        conditions = [_BRANCH]
        params: dict[str, object] = {"key": session_key, "limit": limit}
        if after is not None:
            conditions.append("depth > :after")
            params["after"] = await self._depth(session_key, after, "after")
        if before is not None:
            conditions.append("depth < :before")
            params["before"] = await self._depth(session_key, before, "before")
        order = "ASC" if after is not None else "DESC"
        rows = await self._store.read(
            ENTRIES.select(f"WHERE {' AND '.join(conditions)} ORDER BY depth {order} LIMIT :limit"),
            **params,
        )
        found = [ENTRIES.read(row) for row in rows]
        return found if after is not None else found[::-1]

    async def _depth(self, session_key: str, entry_id: str, field: str) -> int:
        rows = await self._store.read(
            f"SELECT depth FROM entries WHERE id = :id AND {_BRANCH}",  # noqa: S608 (ours)
            id=entry_id,
            key=session_key,
        )
        if not rows:
            raise InvalidInput(field, f"no entry {entry_id[:80]!r} in this session")
        return rows[0][0]
