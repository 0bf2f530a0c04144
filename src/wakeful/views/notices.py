"""What people were told, newest first."""

from wakeful.notices.notices import NOTICES, Notice
from wakeful.store.database import Store

_PAGE = NOTICES.select("WHERE id < :before ORDER BY id DESC LIMIT :limit")
_PAGE_OF_AGENT = NOTICES.select(
    "WHERE agent_id = :agent_id AND id < :before ORDER BY id DESC LIMIT :limit"
)
_NEWEST = "~"  # sorts after every id


class NoticeView:
    """Reads the notices."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, agent_id: str | None, after: str | None, limit: int) -> list[Notice]:
        """Return notices from the newest on; `after` is the id of the last one seen."""
        before = _NEWEST if after is None else after
        if agent_id is None:
            rows = await self._store.read(_PAGE, before=before, limit=limit)
        else:
            rows = await self._store.read(
                _PAGE_OF_AGENT, agent_id=agent_id, before=before, limit=limit
            )
        return NOTICES.read_known(rows)
