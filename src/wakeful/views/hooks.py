"""What came in by hooks, as far as the ledger still knows."""

from collections.abc import Sequence

from wakeful.store.database import Store
from wakeful.vocabulary.record import Record

_TAKEN = (
    "SELECT COUNT(*), MAX(accepted_at) FROM stimuli WHERE kind = 'webhook' AND source = :source"
)


class HookTraffic(Record):
    """How many deliveries of one hook are in the ledger, and when the newest came."""

    accepted: int
    last_at: int | None


class HookView:
    """Reads the stimuli of hooks."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, names: Sequence[str]) -> list[HookTraffic]:
        """Return what came in by each of these hooks."""
        found: list[HookTraffic] = []
        for name in names:
            [(count, last_at)] = await self._store.read(_TAKEN, source=name)
            found.append(HookTraffic(accepted=count, last_at=last_at))
        return found
