"""Who sleeps, until when and why."""

from wakeful.sleeps.sleeps import SLEEPS, Sleep
from wakeful.store.database import Store
from wakeful.triggers.ticking import timer_id as tick_timer

_OF_OWNER = SLEEPS.select("WHERE owner = :owner")
_PAGE = SLEEPS.select("WHERE owner > :after ORDER BY owner LIMIT :limit")
_PAGE_OF_AGENT = SLEEPS.select(
    "WHERE agent_id = :agent_id AND owner > :after ORDER BY owner LIMIT :limit"
)


class SleepView:
    """Reads the sleeps."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of_session(self, session_key: str) -> Sleep | None:
        rows = await self._store.read(_OF_OWNER, owner=session_key)
        return SLEEPS.read(rows[0]) if rows else None

    async def next_tick_at(self, session_key: str) -> int | None:
        """Return when a session wakes by itself, if it does."""
        rows = await self._store.read(
            "SELECT due_at FROM timers WHERE id = :id", id=tick_timer(session_key)
        )
        return rows[0][0] if rows else None

    async def page(self, agent_id: str | None, after: str, limit: int) -> list[Sleep]:
        """Return sleeps in the order of their owners, after one."""
        if agent_id is None:
            rows = await self._store.read(_PAGE, after=after, limit=limit)
        else:
            rows = await self._store.read(
                _PAGE_OF_AGENT, agent_id=agent_id, after=after, limit=limit
            )
        return SLEEPS.read_known(rows)
