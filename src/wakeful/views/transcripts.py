"""Look at what was said."""

from wakeful.store.database import Store
from wakeful.transcript.entries import ENTRIES
from wakeful.vocabulary.entry import Entry
from wakeful.vocabulary.errors import InvalidInput

LARGEST_PAGE = 1000


class TranscriptView:
    """Reads transcripts by page, never whole."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def newest(self, session_key: str, limit: int) -> list[Entry]:
        """Return the last entries of the active branch, oldest first."""
        if not 1 <= limit <= LARGEST_PAGE:
            raise InvalidInput("limit", f"must be from 1 to {LARGEST_PAGE}, not {limit}")
        rows = await self._store.read(
            ENTRIES.select(
                "WHERE branch = (SELECT branch FROM sessions WHERE key = :key) "
                "ORDER BY depth DESC LIMIT :limit"
            ),
            key=session_key,
            limit=limit,
        )
        return [ENTRIES.read(row) for row in reversed(rows)]
