"""Marks of what people have read: one per agent, the same for every client."""

from collections.abc import Iterable, Sequence

from wakeful.bus.bus import Bus
from wakeful.store.database import Row, Store, Tx

MOST_UNREAD = 1000  # that are counted for an agent: nobody needs to know more exactly
NOBODY = ""  # the mark of what is no agent's

# Each count is a bounded look at what came after a mark, by its index.
UNREAD = """
SELECT agent_id,
  (SELECT COUNT(*) FROM (SELECT 1 FROM turns WHERE turns.is_news = 1
    AND turns.agent_id = activity_seen.agent_id AND turns.ended_at > activity_seen.seen_at
    LIMIT :most) AS unread_turns),
  (SELECT COUNT(*) FROM (SELECT 1 FROM notices
    WHERE COALESCE(notices.agent_id, '') = activity_seen.agent_id
    AND notices.created_at > activity_seen.seen_at LIMIT :most) AS unread_notices)
FROM activity_seen ORDER BY agent_id
"""

_MOVE = """
INSERT INTO activity_seen (agent_id, seen_at) VALUES (:agent_id, :until)
ON CONFLICT (agent_id) DO UPDATE SET seen_at = excluded.seen_at
WHERE activity_seen.seen_at < excluded.seen_at
"""
_MAKE = "INSERT INTO activity_seen (agent_id, seen_at) VALUES (:agent_id, 0) ON CONFLICT DO NOTHING"


class ActivityActs:
    """Moves the marks."""

    def __init__(self, store: Store, bus: Bus) -> None:
        self._store = store
        self._bus = bus

    async def open(self, agent_ids: Iterable[str]) -> None:
        """Begin to count what people have not read of agents, from their first turn on."""
        known = {row[0] for row in await self._store.read("SELECT agent_id FROM activity_seen")}
        missing = sorted({NOBODY, *agent_ids} - known)
        if missing:
            rows = [{"agent_id": agent_id} for agent_id in missing]
            await self._store.transact(lambda tx: tx.many(_MAKE, rows))

    async def see(self, until: int, agent_id: str | None = None) -> int:
        """Note that people have read what happened up to an instant, of one agent or of all.

        Return how much is left unread there. What is yet to come is not read by anybody.
        """
        return await self._store.transact(lambda tx: self._see(tx, until, agent_id))

    def _see(self, tx: Tx, until: int, agent_id: str | None) -> int:
        marks = tx.all("SELECT agent_id FROM activity_seen ORDER BY agent_id")
        wanted = [row[0] for row in marks] if agent_id is None else [agent_id]
        moved = [
            one for one in wanted if tx.run(_MOVE, agent_id=one, until=min(until, tx.now)) == 1
        ]
        unread = unread_of(tx.all(UNREAD, most=MOST_UNREAD))
        for one in moved:
            self._bus.publish(tx, "activity.seen", agent_id=one or None, unread=unread[one])
        return sum(unread[one] for one in wanted)


def unread_of(rows: Sequence[Row]) -> dict[str, int]:
    """Return how much is unread, by agent, of the rows of `UNREAD`."""
    return {agent_id: min(turns + notices, MOST_UNREAD) for agent_id, turns, notices in rows}
