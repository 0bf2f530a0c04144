"""What people were told, newest first."""

from wakeful.notices.notices import NOTICES, Notice
from wakeful.store.database import Store

_PAGES = {
    # By whether one agent's and one kind's are asked for.
    (False, False): NOTICES.select("WHERE id < :before ORDER BY id DESC LIMIT :limit"),
    (True, False): NOTICES.select(
        "WHERE agent_id = :agent_id AND id < :before ORDER BY id DESC LIMIT :limit"
    ),
    (False, True): NOTICES.select(
        "WHERE kind = :kind AND id < :before ORDER BY id DESC LIMIT :limit"
    ),
    (True, True): NOTICES.select(
        "WHERE agent_id = :agent_id AND kind = :kind AND id < :before ORDER BY id DESC LIMIT :limit"
    ),
}
_NEWEST = "~"  # sorts after every id


class NoticeView:
    """Reads the notices."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self, agent_id: str | None, kind: str | None, after: str | None, limit: int
    ) -> list[Notice]:
        """Return notices from the newest on; `after` is the id of the last one seen."""
        wanted = {"agent_id": agent_id, "kind": kind}
        params = {name: value for name, value in wanted.items() if value is not None}
        sql = _PAGES[agent_id is not None, kind is not None]
        before = _NEWEST if after is None else after
        return NOTICES.read_known(await self._store.read(sql, before=before, limit=limit, **params))
