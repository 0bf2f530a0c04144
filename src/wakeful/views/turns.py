"""Look at turns and wait for them."""

from collections.abc import Sequence
from datetime import date

from wakeful.access import rules
from wakeful.broker.stimuli import STIMULI
from wakeful.bus.bus import Bus
from wakeful.gate.days import Days
from wakeful.store.database import Row, Store
from wakeful.turns.turns import TURNS, Turn, TurnState
from wakeful.views.pages import fitting
from wakeful.views.sessions import OWNED
from wakeful.vocabulary.clock import Clock, time_limit
from wakeful.vocabulary.errors import InvalidInput, NotFound
from wakeful.vocabulary.kinds import Origin, kinds_of
from wakeful.vocabulary.record import Record
from wakeful.vocabulary.stimulus import TERMINAL, Receipt, Stimulus

LOOKED_AT = 2000  # turns that one page looks through for those that are wanted

EARLIEST, LATEST = 1970, 9998  # years of days that have turns, and a day after them

_FIRST, _LAST = "tn_", "tn_~"  # before and after every turn


class TurnFilter(Record):
    """Which turns are wanted; None: any."""

    session_key: str | None = None
    origin: Origin | None = None
    day: date | None = None  # of the user's zone, on which they began


class TurnPage(Record):
    """A page of turns; `next` is the cursor of the page that follows."""

    turns: Sequence[Turn]
    next: str | None


class TurnView:
    """Reads turns and stimuli, and waits for their ends."""

    def __init__(self, store: Store, bus: Bus, clock: Clock, days: Days | None = None) -> None:
        self._days = days or Days()
        self._store = store
        self._bus = bus
        self._clock = clock

    async def turn(self, turn_id: str) -> Turn:
        rows = await self._store.read(TURNS.select("WHERE id = :id"), id=turn_id)
        if not rows:
            raise NotFound("turn_id", f"no turn {turn_id!r}")
        return TURNS.read(rows[0])

    def words_so_far(self, turn_id: str) -> str | None:
        """Return what a turn's model has said of an answer that it is giving here."""
        return self._bus.words.of(turn_id)

    async def page(
        self, viewer: str, wanted: TurnFilter, after: str | None, limit: int
    ) -> TurnPage:
        """Return turns, the one that began last first; `after` is the `next` of the page before.

        A page may hold less than it could, where much had to be looked through, or is on it.
        """
        since, before = self._span(wanted.day)
        before = before if after is None else min(after, before)
        found, edge = await self._found(viewer, wanted, since, before, limit + 1)
        shown = fitting((size for _, size in found[:limit]))
        ids = [row[0] for row in found[:shown]]
        rows = await self._store.read(TURNS.select("WHERE id IN :ids ORDER BY id DESC"), ids=ids)
        has_more = len(found) > shown
        return TurnPage(turns=TURNS.read_known(rows), next=ids[-1] if has_more else edge)

    async def _found(
        self, viewer: str, wanted: TurnFilter, since: str, before: str, limit: int
    ) -> tuple[Sequence[Row], str | None]:
        """Return ids and sizes of turns, and how far one looked who did not look at everything."""
        params: dict[str, object] = {"since": since, "before": before}
        where = "id >= :since AND id < :before"
        if wanted.session_key is not None:
            where = f"session_key = :session_key AND {where}"
            params["session_key"] = wanted.session_key
        conditions: list[str] = []
        chosen: dict[str, object] = {}
        if wanted.origin is not None:
            conditions.append("kind IN :kinds")
            chosen["kinds"] = kinds_of(wanted.origin)
        if not rules.sees_all(viewer):
            conditions.append(f"session_key IN {OWNED}")
            chosen["owner"] = viewer
        columns = "SELECT id, COALESCE(OCTET_LENGTH(reply), 0) FROM"
        newest = "ORDER BY id DESC LIMIT"
        if not conditions:
            sql = f"{columns} turns WHERE {where} {newest} :limit"
            return await self._store.read(sql, limit=limit, **params), None
        rows = await self._store.read(
            # Of ours alone: no word of a caller is in it.
            f"{columns} (SELECT * FROM turns WHERE {where} {newest} :among) AS newest "  # noqa: S608
            f"WHERE {' AND '.join(conditions)} {newest} :limit",
            among=LOOKED_AT,
            limit=limit,
            **params,
            **chosen,
        )
        if len(rows) == limit:
            return rows, None
        edge = await self._store.read(
            f"SELECT id FROM turns WHERE {where} {newest} 1 OFFSET :skipped",  # noqa: S608 (ours)
            skipped=LOOKED_AT - 1,
            **params,
        )
        return rows, edge[0][0] if edge else None

    def _span(self, day: date | None) -> tuple[str, str]:
        """Return the ids between which the turns of a day lie: they begin with their time."""
        if day is None:
            return _FIRST, _LAST
        if not EARLIEST <= day.year <= LATEST:
            raise InvalidInput("day", f"must be a day of the years {EARLIEST} to {LATEST}")
        number = day.toordinal()
        return _id_at(self._days.begin(number)), _id_at(self._days.begin(number + 1))

    async def stimulus(self, stimulus_id: str) -> Stimulus:
        rows = await self._store.read(STIMULI.select("WHERE id = :id"), id=stimulus_id)
        if not rows:
            raise NotFound("stimulus_id", f"no stimulus {stimulus_id!r}")
        return STIMULI.read(rows[0])

    async def wait_for_stimulus(self, receipt: Receipt, timeout_s: float) -> Turn | None:
        """Return the turn that settled a stimulus; None if it ended, or time did, without one."""
        stimulus_id = receipt.duplicate_of or receipt.stimulus_id
        if not stimulus_id:
            return None  # a command that filed nothing
        try:
            async with time_limit(self._clock, timeout_s):
                with self._bus.watch(receipt.session_key) as watch:
                    while (stimulus := await self.stimulus(stimulus_id)).state not in TERMINAL:
                        await watch.until(
                            lambda event: (
                                event.stimulus_id == stimulus_id
                                and event.kind.removeprefix("stimulus.") in TERMINAL
                            )
                        )
        except TimeoutError:
            return None
        return None if stimulus.turn_id is None else await self.turn(stimulus.turn_id)

    async def wait_for_turn(self, turn_id: str, timeout_s: float) -> Turn:
        """Return a turn when it has ended, or as it is when the time is over."""
        turn = await self.turn(turn_id)
        try:
            async with time_limit(self._clock, timeout_s):
                with self._bus.watch(turn.session_key) as watch:
                    while (turn := await self.turn(turn_id)).state is TurnState.OPEN:
                        await watch.until(
                            lambda event: event.turn_id == turn_id and event.kind == "turn.finished"
                        )
        except TimeoutError:
            pass
        return turn


def _id_at(instant: int) -> str:
    return f"{_FIRST}{max(instant, 0):012x}"
