"""Replays: pages of stored events, for all who follow from an earlier position, in turn."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from wakeful.store.database import Row, Store
from wakeful.vocabulary.event import Event

BATCH_LIMIT = 100  # events a reader is handed at once: what a stopped one holds in memory
PAGE_LENGTH = 262_144  # characters of the events read at once, but for the last one of them
AT_ONCE = 1  # pages that are read, or handed out, between two looks at everything else
KEPT_PAGES = 8  # for others who are as far
KEPT_S = 1.0

_PAGE = (  # one statement, one snapshot: commit order is number order, so a page has no holes
    "SELECT epoch, pruned_through, page.seq, kind, session_key, turn_id, stimulus_id, at, data "
    "FROM bus_head LEFT JOIN (SELECT seq, kind, session_key, turn_id, stimulus_id, at, data, "
    "SUM(LENGTH(data)) OVER (ORDER BY seq) - LENGTH(data) AS length_before "
    "FROM events WHERE seq > :after ORDER BY seq LIMIT :page) page "
    "ON page.length_before < :length ORDER BY page.seq"
)
_decode = msgspec.json.Decoder(dict[str, object]).decode


@dataclass(frozen=True, slots=True)
class StoredPage:
    """Events as they are in the ledger, and what was known of it when they were read."""

    epoch: str
    pruned_through: int
    events: Sequence[Event]
    read_at: float


class Replays:
    """Reads for hundreds who begin at the oldest event, and keeps nobody else waiting.

    A page that several want is read once, and no other is read meanwhile: the threads that read are
    there for everybody.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._pages: OrderedDict[int, StoredPage] = OrderedDict()

    async def page(self, after: int) -> StoredPage:
        """Return the stored events that follow a number, as many as are read at once."""
        now = asyncio.get_running_loop().time()
        async with self._turn:
            known = self._pages.get(after)
            if known is not None and now - known.read_at < KEPT_S:
                await asyncio.sleep(0)  # noqa: TID251 (no time passes: others have their turn)
                return known
            rows = await self._store.read(_PAGE, after=after, page=BATCH_LIMIT, length=PAGE_LENGTH)
            page = _read(rows, now)
            if len(rows) == BATCH_LIMIT:  # else it may grow
                self._pages[after] = page
                while len(self._pages) > KEPT_PAGES:
                    self._pages.popitem(last=False)
            return page


def _read(rows: Sequence[Row], now: float) -> StoredPage:
    events = [_event(row) for row in rows if row[2] is not None]
    return StoredPage(epoch=rows[0][0], pruned_through=rows[0][1], events=events, read_at=now)


def _event(row: Row) -> Event:
    epoch, _, seq, kind, session_key, turn_id, stimulus_id, at, data = row
    return Event(
        kind=kind,
        session_key=session_key,
        turn_id=turn_id,
        stimulus_id=stimulus_id,
        data=_decode(data),
        at=at,
        seq=seq,
        epoch=epoch,
    )
