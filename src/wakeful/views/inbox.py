"""Look at the inbox: what sources left there, what waits and what was read."""

from wakeful.broker import inbox_counts
from wakeful.broker.stimuli import STIMULI
from wakeful.store.database import Store
from wakeful.views.pages import fitting
from wakeful.vocabulary.errors import NotFound
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import Priority, State, Stimulus

_NEWEST = "~"  # after every id
_ANY = ("in_inbox = 1", "id < :before", "priority <= :floor")
# Of which there is an index of its own: they are found in no order, however much was read since.
_WAITING = frozenset({State.HELD, State.PARKED})


class InboxFilter(Record):
    """Which items are wanted; None: any."""

    source: str | None = None
    floor: Priority = Priority.LATER  # at least as urgent
    state: State | None = None
    agent_id: str | None = None


class InboxView:
    """Reads items; it is for the operator's eyes, and those whom the operator lets read all."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, wanted: InboxFilter, after: str | None, limit: int) -> list[Stimulus]:
        """Return items from the newest on; `after` is the id of the last one seen.

        There are fewer than `limit` where they would not fit on a page.
        """
        is_waiting = wanted.state in _WAITING
        conditions = _waiting(wanted.state) if is_waiting else _ANY
        params: dict[str, object] = {
            "before": _NEWEST if after is None else after,
            "floor": int(wanted.floor),
            "limit": limit,
        }
        for name in ("source", "agent_id") if is_waiting else ("source", "state", "agent_id"):
            if (value := getattr(wanted, name)) is not None:
                conditions = (*conditions, f"{name} = :{name}")
                params[name] = str(value)
        order = "id || ''" if is_waiting else "id"
        where = f"WHERE {' AND '.join(conditions)} ORDER BY {order} DESC LIMIT :limit"
        # The sizes first: what does not go on a page is not even read.
        sizes = await self._store.read(f"SELECT OCTET_LENGTH(text) FROM stimuli {where}", **params)  # noqa: S608
        params["limit"] = fitting(size for (size,) in sizes)
        return STIMULI.read_known(await self._store.read(STIMULI.select(where), **params))

    async def get(self, stimulus_id: str) -> Stimulus:
        """Return one item."""
        rows = await self._store.read(
            STIMULI.select("WHERE id = :id AND in_inbox = 1"), id=stimulus_id
        )
        if not rows:
            raise NotFound("id", f"no item {stimulus_id[:80]!r} in the inbox")
        return STIMULI.read(rows[0])

    async def waiting(self) -> int:
        """Return how many items have not ended."""
        ((count,),) = await self._store.read(inbox_counts.TOTAL)
        return count


def _waiting(state: State | None) -> tuple[str, ...]:
    """Return what finds items that wait, by the index of those that do."""
    return (f"state = '{state}'", "in_inbox + 0 = 1", "id || '' < :before", "priority <= :floor")
